"""Checks for the tasks of the chapter *inside-gpt*."""

from collections import Counter
from contextlib import ExitStack
from functools import cache, partial

import torch
import torch.nn.functional as F
from transformers import TemperatureLogitsWarper, TopPLogitsWarper

from lmcourse.ablation import hooked_heads, replaced
from lmcourse.data import load_texts, train_val_test_split
from lmcourse.exercises import Case, Faults, exercise, judge, predict
from lmcourse.exercises.answers import normal
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.inside import outputs
from lmcourse.gpt.model import GPT, GPTConfig


def _nucleus(logits, temperature, p, first=True, share=True):
    """Return the probabilities of nucleus sampling (top-p), right or with a mistake.

    The logits are divided by the temperature. The nucleus is the likeliest tokens that
    together have the probability p; all others get 0.

    Parameters
    ----------
    logits : Tensor of shape (..., vocab_size)
    temperature, p : float
    first : bool
        Whether the temperature is used before the nucleus is chosen, as it should be.
    share : bool
        Whether the probabilities in the nucleus are divided by their sum, as they should
        be. If not, they are those of the whole softmax; without ``first`` that of the
        softmax at temperature 1, to the power of 1 / temperature.

    Returns
    -------
    Tensor of shape (..., vocab_size)
    """
    by_temperature = TemperatureLogitsWarper(float(temperature))
    warm = by_temperature(None, logits)
    in_nucleus = TopPLogitsWarper(p)(None, warm if first else logits).isfinite()
    if share:
        return warm.masked_fill(~in_nucleus, -torch.inf).softmax(-1)
    probs = warm.softmax(-1) if first else logits.softmax(-1) ** (1 / temperature)
    return probs.masked_fill(~in_nucleus, 0)


def _cut(probs, p, rising=False, crossing=True):
    """Return the probabilities of a nucleus, right or with a mistake.

    The nucleus is the likeliest tokens that together have the probability p.

    Parameters
    ----------
    probs : Tensor of shape (..., vocab_size)
    p : float
        How much probability it should have.
    rising : bool
        Whether it has the least likely tokens instead.
    crossing : bool
        Whether it has the token with which the sum of probabilities exceeds p; it should.

    Returns
    -------
    Tensor of shape (..., vocab_size)
        Of sum 1 along the last axis, 0 outside the nucleus.
    """
    ordered, ids = probs.sort(descending=not rising)
    total = ordered.cumsum(-1)
    if crossing:
        total = total - ordered  # of the tokens before each
    kept = ordered.where(total < p, 0)
    return torch.zeros_like(probs).scatter(-1, ids, kept / kept.sum(-1, keepdim=True))


def _slips(*given):
    """Return what slips in nucleus sampling (top-p) give.

    The task's two mistakes are not among them: the nucleus is cut at temperature 1, and
    probabilities do not sum to 1.

    Parameters
    ----------
    *given
        ``logits``, a Tensor of shape (..., vocab_size); ``temperature`` and ``p``, floats.

    Returns
    -------
    dict of str to Tensor of shape (..., vocab_size)
        What is said of the mistake → the probabilities that it gives.
    """
    logits, temperature, p = given
    probs = _nucleus(*given)
    warm = (logits / temperature).softmax(-1)
    falling = probs.sort(descending=True).values
    return {
        "the token that crosses p is left out; it is kept.": _cut(warm, p, crossing=False),
        "these are the least likely tokens: sort with descending=True.": _cut(
            warm, p, True
        ),
        "nothing is left out: p is not used.": warm,
        "the temperature is not used.": _nucleus(logits, 1.0, p),
        "the temperature multiplies; it should divide.": _nucleus(
            logits, 1 / temperature, p
        ),
        "they are in falling order: scatter them back to their tokens.": falling,
        "these are at the wrong tokens: `scatter` puts them back, `gather` does not.": (
            falling.gather(-1, warm.argsort(descending=True))
        ),
        "these are logits or logarithms; return probabilities.": probs.log(),
    }


@exercise("inside-gpt.nucleus", "spot the bug")
def nucleus():
    """Check a reader's nucleus sampling: which tokens are kept, with which probabilities.

    The answer is a function of logits (batch, vocab_size), a temperature and p, two floats.
    It returns probabilities (batch, vocab_size): 0 outside the nucleus, and each row sums
    to 1. Oracle: the samplers of `transformers`, first for the temperature, then for p.

    Yields
    ------
    Case
        One for each of two temperatures: the arguments, the right result, and the results
        that known mistakes give.
    """
    logits = 0.8 * normal(3, 12, seed=3).double()
    p = 0.7
    for temperature in (0.5, 1.8):
        given = logits, temperature, p
        # A power of probabilities that have this temperature already.
        heated_twice = _nucleus(*given) ** (1 / temperature)
        unnormalised = _nucleus(*given, share=False)  # the rows do not sum to 1
        mistakes = {
            "two things are still wrong: the temperature comes after the nucleus is cut, "
            "and the rows do not sum to 1.": _nucleus(*given, first=False, share=False),
            "the rows sum to 1. But the nucleus is cut from the probabilities at "
            "temperature 1: the temperature belongs before it.": _nucleus(
                *given, first=False
            ),
            "the order is right. But the probabilities that are kept no longer sum "
            "to 1.": unnormalised,
            "the temperature is used twice: in the logits, and again as a power of the "
            "probabilities.": heated_twice / heated_twice.sum(-1, keepdim=True),
            "divide each row by its own sum, not by that of all rows.": unnormalised
            / unnormalised.sum(),
            "the temperature is used twice, and the rows do not sum to 1.": (
                unnormalised ** (1 / temperature)
            ),
        }
        yield Case(given, _nucleus(*given), mistakes | _slips(*given))


@exercise("inside-gpt.places", "spot the bug")
def places():
    """Check a reader's vectors of the tokens that are new when a cache holds the others.

    The answer is a function of the tables of tokens (vocab_size, d_model) and positions
    (context, d_model), ids (batch, tokens) and how many tokens the cache holds, an int. It
    returns the vectors of the others, (batch, new tokens, d_model). Oracle: the vectors of
    the whole text, of which the last are wanted.

    Yields
    ------
    Case
        What the answer is called with, the right result, and known mistakes: what the
        reader is told → the result that the mistake gives. ``instead`` has what is said of
        an answer that stopped because two sizes do not match.
    """
    tokens = normal(9, 4).double()
    positions = normal(8, 4, seed=1).double()
    ids = torch.tensor([[3, 1, 4, 1, 5], [2, 7, 1, 8, 2]])
    whole = F.embedding(ids, tokens) + positions[:5]  # (batch, tokens, d_model)
    for kept in (2, 4, 0):
        new = ids[:, kept:]
        mistakes = {
            "positions start at zero again: the first new token gets the position of "
            "the first token of the text, although those in the cache come before it.": (
                tokens[new] + positions[: new.shape[1]]
            ),
            "each position is one too high.": tokens[new] + positions[kept + 1 : 6],
            "these are the vectors of all tokens; those of the first `kept` are in "
            "the cache already.": whole,
            "these positions are the last rows of the table, which is longer than "
            "the text.": (tokens[new] + positions[-new.shape[1] :]),
            "positions are missing.": tokens[new],
            "every new token gets the same position.": tokens[new] + positions[kept],
            "these are the first tokens; the new ones are wanted.": whole[:, : 5 - kept],
        }
        if kept > 1:
            mistakes["each position is one too low."] = (
                tokens[new] + positions[kept - 1 : 4]
            )
        unequal = (
            "there are not as many positions as new tokens: the table has rows for "
            "longer texts, too."
        )
        stopped = {"must match the size of tensor": unequal}
        given = [tokens, positions, ids, kept]
        yield Case(given, whole[:, kept:], mistakes, instead=stopped)


predict(
    "inside-gpt.subject",
    a="a reader of English would say so. Nobody told the model what a subject is.",
    b=None,
    c="that would be the answer if both pronouns mattered equally.",
)


def _written(model, ids, layer, columns, value, late=False):
    """Return the logits at the last position, part of an attention's output being changed.

    Parameters
    ----------
    model : GPT
    ids : int64 Tensor of shape (batch, tokens)
    layer : int
        Whose attention is changed, from 0.
    columns : slice
        Which numbers at the last position: of all heads' outputs, side by side, or, if
        ``late``, of what the matrix ``output`` makes of them.
    value : float or Tensor that broadcasts to (batch, columns)
        What stands there instead.
    late : bool
        Whether it is written behind the matrix ``output``, not before it.

    Returns
    -------
    Tensor of shape (batch, vocab_size)
    """

    attention = model.blocks[layer].attention

    def written(x):
        """Return the numbers with the value in some columns at the last position.

        ``x`` : Tensor (batch, tokens, d_model), which is not changed.
        """
        x = x.clone()
        x[:, -1, columns] = value
        return x

    def written_heads(heads):
        """Do so to all heads' outputs, side by side: (batch, tokens, heads, d_head)."""
        return written(heads.flatten(-2)).view_as(heads)

    def written_output(module, inputs, output):
        """Do so to what the matrix ``output`` returns: a forward hook."""
        return written(output)

    if late:
        hook = attention.output.register_forward_hook(written_output)
    else:
        hook = hooked_heads(attention, written_heads)
    with hook, torch.no_grad():
        return model(ids)[:, -1]


@exercise("inside-gpt.carry", "build")
def carry():
    """Check a reader's function that puts another output in the place of a head's.

    The answer is a function of a GPT, ids (batch, tokens), layer, head, int from 0, and the
    value (batch, d_head) that replaces the head's output at the last token. It returns the
    logits there, (batch, vocab_size), and leaves the model as it was. Oracle: a model whose
    head is replaced by other means (`replaced`).

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    torch.manual_seed(0)
    model = GPT(GPTConfig(11, context=8, layers=2, heads=3, d_model=12)).double().eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, 0, 0.4)
    ids = torch.tensor([[3, 1, 4, 1, 5], [2, 7, 1, 8, 2]])
    value = normal(2, 4).double()
    before = model(ids)[:, -1].detach()
    left = _left_behind(model, ids)

    def logits(layer, head, value=value, place=slice(-1, None)):
        """Return the logits at the last position while one head gives something else.

        Parameters
        ----------
        layer, head : int
            Both from 0.
        value : Tensor of shape (batch, d_head)
            What the head gives.
        place : slice or list of int
            At which positions; by default at the last.

        Returns
        -------
        Tensor of shape (batch, vocab_size)
        """
        own = outputs(model, ids)[layer, head].clone()
        own[:, place] = value[:, None]
        with replaced(model.blocks[layer], head, own), torch.no_grad():
            return model(ids)[:, -1]

    for layer, head in ((0, 1), (1, 2)):
        own = outputs(model, ids)[layer, head][:, -1]
        put = partial(logits, layer, head)
        written = partial(_written, model, ids, layer)
        columns = slice(4 * head, 4 * head + 4)
        crossed = slice(head, None, 3)
        right = put()
        mistakes = {
            "nothing is changed.": before,
            "the head's output is replaced at every token, not at the last alone.": put(
                place=slice(None)
            ),
            "the first token is changed, not the last.": put(place=[0]),
            "the token before the last is changed.": put(place=[-2]),
            "only one text of the batch is changed; each has a row of `value`.": torch.cat(
                [right[:1], before[1:]]
            ),
            "another head is changed: the heads lie side by side, d_head numbers "
            "each.": logits(layer, head - 1),
            "a head of the other layer is changed.": logits(1 - layer, head),
            "the value is added to the head's output; it should replace it.": put(
                own + value
            ),
            "the head's output becomes zero: where is the value?": put(0 * value),
            "the value is put in after the output matrix; it belongs before it.": written(
                columns, value, True
            ),
            "unflatten into (heads, d_head), not into (d_head, heads).": written(
                crossed, value
            ),
            "these are probabilities, not logits.": right.softmax(-1),
        }
        given = model, ids, layer, head, value
        yield Case(given, right, mistakes)
        yield left


def _left_behind(model, ids):
    """Return the faults of a model that an answer, when called, did not leave as it was.

    Parameters
    ----------
    model : GPT
        As it is before the answer is called.
    ids : int64 Tensor of shape (batch, tokens)
        What it reads before and afterwards.

    Returns
    -------
    Faults
        What may be wrong with the model then: what the reader is told → a function of the
        model that says whether it is so. The answer itself is not called.
    """
    before = model(ids)[:, -1].detach()
    hooks = _hooks(model)
    faults = {
        "the model stays changed: remove the hook when you are done.": (
            lambda model: not torch.equal(model(ids)[:, -1], before)
        ),
        "a hook is still there: remove every one when you are done.": (
            lambda model: _hooks(model) != hooks
        ),
        "the model is left in training mode, or frozen: leave it as it was.": (
            lambda model: (
                model.training or not all(w.requires_grad for w in model.parameters())
            )
        ),
    }
    return Faults(lambda answer: model, faults)


def _hooks(model):
    """Return how many hooks the modules of a model have, an int.

    ``model`` : nn.Module.
    """
    parts = list(model.modules())
    return sum(len(x._forward_hooks) + len(x._forward_pre_hooks) for x in parts)


@exercise("inside-gpt.art", "experiment")
def art():
    """Check how much of *thou ar* each head of the page's GPT carries into *we ar*.

    *Thou ar* goes on with t, *we ar* with e. The answer is an array (layers, heads) of
    shares, means over the 16 words that most often open a line: which part of the
    difference between the logits of t and e follows if the head's output is copied. Oracle:
    `_art`, which measures them again on the checkpoint that the page reads.

    Yields
    ------
    Case
        A function that hands the answer on (``ask``), the right result, and known mistakes:
        what the reader is told → the result that the mistake gives.
    """
    mistakes = {
        "layers are rows and heads are columns.": lambda: _art().T,
        "these are sums over the openings; the mean is asked for.": lambda: 16 * _art(),
        "these are percentages; hand in shares, where 1 is the whole difference.": lambda: (
            100 * _art()
        ),
        "they are rounded to two places; hand them in as they were measured.": lambda: (
            _art().round(2)
        ),
        "the layers are in the wrong order.": lambda: _art()[::-1],
        "this is the difference between t and l; take that between t and e.": partial(
            _art, "tl"
        ),
        "this is the other direction: from “we” into “thou”.": partial(
            _art, others=("we", "thou")
        ),
        "these are the heads of “shal”: let the prompts end in “ar”.": partial(
            _art, "tl", "shal"
        ),
        "the prompts end in “art”: the t is what the model should predict.": partial(
            _art, end="art"
        ),
        "here “they” stands in place of “we”.": partial(_art, others=("thou", "they")),
        "divide for each opening, then take the mean; this is the ratio of two means.": (
            partial(_art, of="sums")
        ),
        "this is the median over the openings; take the mean.": partial(_art, of="median"),
        "take all 16 openings, also those after which the model does not predict e.": (
            partial(_art, of="those that turn")
        ),
    }
    yield Case([], _art, mistakes, ask=lambda answer: answer, tolerance=0.005)


@cache
def _art(answers="te", end="ar", others=("thou", "we"), of="mean"):
    """Return which part of *thou ar* each head carries into *we ar*.

    A share compares the logits of two letters: how much their difference changes if one
    head's output is copied from one text to the other, against how much it differs between
    the texts.

    Parameters
    ----------
    answers : sequence of two str
        The letters whose logits are compared: "te" is t less e.
    end : str
        What stands after the pronoun.
    others : pair of str
        The pronoun to copy from, and the one to copy to.
    of : {"mean", "median", "those that turn", "sums"}
        How the shares of the prompts, one for each opening word, become one number: their
        mean; their median; the mean over the prompts in which the model prefers the first
        letter after the first pronoun and the second letter after the second; the sum of
        the changes over the sum of the differences.

    Returns
    -------
    float array of shape (layers, heads)
        0: the head carries nothing; 1: all of the difference.
    """
    shape, starts, ends, given = _carried(answers, end, others)
    shares = (given - starts) / (ends - starts)
    turns = (ends > 0) & (starts < 0)  # (prompts, 1)
    averages = {
        "mean": shares.mean(0),
        "median": shares.quantile(0.5, 0),
        "those that turn": shares[turns.flatten()].mean(0),
        "sums": (given - starts).sum(0) / (ends - starts).sum(),
    }
    return averages[of].view(shape).numpy()


@cache
def _carried(answers, end, others):
    """Measure what is predicted after two pronouns, and after one with each head patched.

    The prompts are, for each of the 16 words that most often open a line, this word, a
    pronoun and the end, such as "And thou ar". The page's GPT reads them.

    Parameters
    ----------
    answers : sequence of two str
        The letters whose logits are compared: "te" is t less e.
    end : str
        What stands after the pronoun.
    others : pair of str
        The pronoun to copy from, and the one to copy to.

    Returns
    -------
    shape : (int, int)
        Layers and heads.
    starts, ends : float64 Tensor of shape (prompts, 1)
        The first letter's logit less the second's, with the pronoun to copy to and with the
        one to copy from.
    given : float64 Tensor of shape (prompts, layers * heads)
        The same with the pronoun to copy to, one head's output at the last token being
        copied from the other text.
    """
    tokenizer, model, _ = load_gpt(device="cpu")
    answers = [tokenizer.encode(token)[0] for token in answers]
    shape = model.config.layers, model.config.heads

    def patch(layer, new, heads):
        """Give each copy of the text one head's output at the last token of the other text.

        A forward hook of each layer's attention calls it. The copies are as many as the
        model has heads: copy ``layer * heads + head`` gets that head; copies that belong to
        heads of other layers stay as they are.

        Parameters
        ----------
        layer : int
            Whose heads these are, from 0.
        new : dict of (int, int) to Tensor of shape (1, tokens, d_head)
            The outputs on the other text, by layer and head.
        heads : Tensor of shape (layers * heads, tokens, heads, d_head)
            The layer's own outputs, a copy of the text for every head of the model.

        Returns
        -------
        Tensor of that shape
        """
        heads = heads.clone()  # (copies of the text, tokens, heads, d_head)
        for head in range(shape[1]):  # each copy has another head patched
            heads[layer * shape[1] + head, -1, head] = new[layer, head][0, -1]
        return heads

    def lean(ids):
        """Return how far the first letter's logit is above the second's after each text.

        ``ids`` : int64 Tensor (texts, tokens). Returns a float64 Tensor (texts,); the
        letters are the two of ``answers``.
        """
        with torch.no_grad():
            first, second = model(ids)[:, -1, answers].T
        return (first - second).double()

    patched = []
    unpatched = []
    for word in _openings(16):
        copied_from, copied_to = (
            torch.tensor([tokenizer.encode(f"{word} {x} {end}")]) for x in others
        )
        new = outputs(model, copied_from)
        start = lean(copied_to)
        with ExitStack() as hooks:
            for layer, block in enumerate(model.blocks):
                change = partial(patch, layer, new)
                hooks.enter_context(hooked_heads(block.attention, change))
            patched.append(lean(copied_to.repeat(shape[0] * shape[1], 1)))
        unpatched.append(torch.cat([start, lean(copied_from)]))
    starts, ends = torch.stack(unpatched).mT[..., None]  # (openings, 1) each
    return shape, starts, ends, torch.stack(patched)


def _openings(count):
    """Return the words that begin most lines of the training sonnets, a list of str.

    ``count`` : int, how many.
    """
    lines = train_val_test_split(load_texts("sonnets")).training.splitlines()
    firsts = Counter(line.split()[0] for line in lines if line.strip())
    return [word for word, _ in firsts.most_common(count)]


predict(
    "inside-gpt.longer",
    a="a layer finds only what its inputs hold. What would a layer below have to add "
    "to them?",
    b="for that it would have to find what followed the present token last time. By "
    "what could it find that position?",
    c=None,
    d="it does learn something about the text. What can one layer of attention find in it?",
)
judge(
    "inside-gpt.story",
    a="a picture of attention shows where a head takes something from, not whether "
    "it matters.",
    b="other heads can do its work, and the loss on all text says little about a "
    "rare case such as the end of “shalt”.",
    c="what a classifier can read from a vector need not be what the model uses.",
    d=None,
)
