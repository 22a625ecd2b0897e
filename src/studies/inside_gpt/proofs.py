"""What the chapter *inside-gpt* claims, checked where the page places it.

The ``page`` of a proof or a null is a `studies.findings.Page`: the names that the page has
defined so far, as attributes.
"""

import copy
import itertools
import re
import string
from contextlib import ExitStack

import numpy as np
import torch
import torch.nn.functional as F
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from lmcourse.ablation import replaced
from lmcourse.data import load_texts
from lmcourse.gpt.generation import Cache, cache_bytes, generate
from lmcourse.gpt.inside import lens, outputs
from lmcourse.gpt.model import GPTConfig
from lmcourse.lines import MARKS
from lmcourse.ngrams import NgramModel
from lmcourse.numbers import bootstrap_interval
from lmcourse.patching import copied_heads
from studies import nulls
from studies.findings import Page, finding, proof, right_letter
from studies.measures import share_interval

close = torch.testing.assert_close


def random_weights(page: Page):
    """A GPT whose weights are shuffled.

    Parameters
    ----------
    page : Page
        ``gpt`` is the trained model.

    Returns
    -------
    Page
        A page like this one, whose ``gpt`` is the shuffled one.
    """
    return page.replaced(gpt=nulls.shuffled_weights(page.gpt))


# --- choosing -----------------------------------------------------------------------------


@proof(
    "The page's rules give what those of `transformers` give, and its loop writes the same "
    "text as `generate`."
)
def rules_are_those_of_transformers(page: Page):
    """Check the page's rules of sampling against `transformers`, and its loop.

    They are temperature, top-k and top-p in that order, min-p, and the penalty, of random
    logits; the loop writes what `generate` writes.

    In float64 to 1e-9. The text is one of 30 letters, written with top-p 0.9 and seed 0.

    Parameters
    ----------
    page : Page
        ``top_k``, ``top_p`` and ``min_p`` are the page's rules, from probabilities and a
        number to probabilities; ``penalized`` goes from logits, ids and a number to logits;
        ``write`` is its loop, from a text, a number of tokens and a rule to a text; ``gpt``
        the model; ``ids_of`` goes from a text to ids (1, tokens), ``text_of`` back.
    """
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(4, 40, generator=generator).double()  # (batch, vocab_size)
    ids = torch.randint(40, (4, 9), generator=generator)
    for heat, k, p in [(0.6, 5, 0.9), (1.4, 12, 0.5), (1.0, 40, 0.99)]:
        want = TopKLogitsWarper(k)(None, TemperatureLogitsWarper(heat)(None, logits))
        probs = page.top_k((logits / heat).softmax(-1), k)
        close(probs, want.softmax(-1), rtol=0, atol=1e-9)
        want = TopPLogitsWarper(p)(None, want)
        close(page.top_p(probs, p), want.softmax(-1), rtol=0, atol=1e-9)
        want = MinPLogitsWarper(p / 3)(None, logits)
        probs = page.min_p(logits.softmax(-1), p / 3)
        close(probs, want.softmax(-1), rtol=0, atol=1e-9)
    want = RepetitionPenaltyLogitsProcessor(1.5)(ids, logits)
    close(page.penalized(logits, ids, 1.5), want, rtol=0, atol=1e-9)
    start = page.ids_of("Shall I compare ")
    generator = torch.Generator().manual_seed(0)
    want = generate(page.gpt, start, 30, generator=generator, top_p=0.9)[0]
    nucleus = page.write("Shall I compare ", 30, lambda x: page.top_p(x.softmax(-1), 0.9))
    assert nucleus == page.text_of(want)


def human_lines(page: Page):
    """Shakespeare's own lines, in the place of what each rule wrote.

    Parameters
    ----------
    page : Page
        ``texts``: name of who wrote them → ids (texts, tokens); ``human`` are
        Shakespeare's, the same shape.

    Returns
    -------
    Page
        A page like this one, whose ``texts`` are Shakespeare's, whoever is said to have
        written them.
    """
    return page.replaced(texts=dict.fromkeys(page.texts, page.human))


@finding(
    "If our GPT always writes the likeliest letter, it finds its text more probable than "
    "Shakespeare's own lines; but the text repeats itself, and he hardly does.",
    rival="greedy writing with a penalty on repetition, which repeats {penalty:.0%}; four "
    "beams, which repeat {beams:.0%}",
    null=human_lines,
    n="{texts} beginnings, half of them from held-out sonnets",
    interval="repetition of greedy writing: {span:.0%}",
)
def likely_is_not_good(page: Page):
    """Check that greedy texts are more probable than Shakespeare's, and repeat more.

    Both go on from the same beginnings, for 52 characters.

    The greedy text has a lower loss than Shakespeare's after more than 95 % of the
    beginnings, and so it is with four beams. A tenth and more of both is ten-character
    sequences that were there before; of Shakespeare's, less than a hundredth. With a
    penalty greedy writing keeps a lower loss than his as often, and repeats less than 5 %.
    Of whole sonnets most have some ten characters twice; on average these are less than 1
    %.

    Parameters
    ----------
    page : Page
        ``texts``: who wrote them ("greedy", "four beams", "greedy, penalty 1.3",
        "Shakespeare" …) → ids (texts, tokens), beginnings and continuations. Functions of
        such ids: ``surprise`` returns the mean loss in nats a character, ``repetition`` the
        share of ten-character sequences that were there before, Tensors (texts,).

    Returns
    -------
    dict
        Shares of ten-character sequences that were there before, means: ``greedy``, with
        its 95 % interval ``span``; ``beams``, of four beams; ``penalty``, greedy with one.
        ``sonnets``, the share of sonnets with any; ``texts``, how many.
    """
    losses = {name: page.surprise(ids) for name, ids in page.texts.items()}
    repeated = {name: page.repetition(ids).numpy() for name, ids in page.texts.items()}
    human_losses = losses["Shakespeare"]
    span = bootstrap_interval(repeated["greedy"])
    beams = bootstrap_interval(repeated["four beams"])
    for name in ("greedy", "four beams", "greedy, penalty 1.3"):
        assert (losses[name] < human_losses).double().mean() > 0.95
    assert min(span[0], beams[0]) > 0.1
    assert repeated["Shakespeare"].mean() < 0.01
    assert repeated["greedy, penalty 1.3"].mean() < 0.05
    sonnets = np.array([share_repeated(text) for text in load_texts("sonnets")])
    assert (sonnets > 0).mean() > 0.5
    assert sonnets.mean() < 0.01
    return {
        "greedy": repeated["greedy"].mean(),
        "span": span,
        "beams": repeated["four beams"].mean(),
        "penalty": repeated["greedy, penalty 1.3"].mean(),
        "texts": len(human_losses),
        "sonnets": (sonnets > 0).mean(),
    }


def share_repeated(text: str, size: int = 10) -> float:
    """Return which share of the sequences of a text's characters occurred in it before.

    Parameters
    ----------
    text : str
    size : int
        Characters of a sequence; the text has as many at least.
    """
    sequences = [text[i : i + size] for i in range(len(text) - size + 1)]
    return 1 - len({*sequences}) / len(sequences)


@proof(
    "With a cache the logits and the text stay the same, even if the text grows longer "
    "than the context."
)
def cache_changes_nothing(page: Page):
    """Check that with a cache logits and text are the same as without.

    Compared are logits in float64, a greedy text longer than the context, and the cache's
    bytes with the formula.

    The text is written only if the context has 64 tokens at most.

    Parameters
    ----------
    page : Page
        ``ids`` is a text, (1, tokens); ``gpt`` is the model and ``config`` its GPTConfig.

    Returns
    -------
    dict
        ``mebibytes``: the cache of GPT-2 with 1,024 tokens, 4 bytes a number.
    """
    exact = copy.deepcopy(page.gpt).double()
    cache = Cache(exact)
    with torch.no_grad():
        exact(page.ids[:, :-1], cache)
        close(exact(page.ids, cache)[0, -1], exact(page.ids)[0, -1], rtol=0, atol=1e-9)
    room = page.config.context
    if room <= 64:  # a larger model would take minutes
        written = [generate(exact, page.ids, room, 0, cached=x) for x in (True, False)]
        assert torch.equal(*written)
    cache = Cache(page.gpt)
    with torch.no_grad():
        page.gpt(page.ids, cache)
    numbers = 2 * page.config.layers * page.ids.shape[1] * page.config.d_model
    assert cache.nbytes == 4 * numbers
    gpt2 = GPTConfig(50257, context=1024, layers=12, heads=12, d_model=768)
    assert cache_bytes(gpt2, 1024) == 2 * 12 * 1024 * 768 * 4
    return {"mebibytes": cache_bytes(gpt2, 1024) / 2**20}


# --- a thou from some way back ------------------------------------------------------------


def ngram_orders(page: Page):
    """Return n-gram models of the training text by the length of their n-grams.

    Parameters
    ----------
    page : Page
        ``tokenizer`` encodes a str to a list of int; ``parts.training`` is the text;
        ``vocab_size``, how many tokens there are.

    Returns
    -------
    dict of int to NgramModel
        All lengths from 4 to 10 that 64-bit numbers can name; length 3, if there are none.
    """
    ids = page.tokenizer.encode(page.parts.training)
    lengths = [n for n in range(4, 11) if page.vocab_size**n < 2**63] or [3]
    return {n: NgramModel(ids, n, page.vocab_size) for n in lengths}


def expects_t(page: Page, pronoun: str, after: str = "") -> list[bool]:
    """Return after which prompts the GPT finds *t* likelier than *l*.

    Parameters
    ----------
    page : Page
        ``WORDS`` stand between the pronoun and each of the ``ENDS``, *shal* and *wil*;
        ``lean`` returns the logit of *t* less that of *l* after a text.
    pronoun : str
        It follows "And" at the beginning of each prompt.
    after : str
        What follows the word in between, with a space before it.

    Returns
    -------
    list of bool
        One for each prompt: those with *shal* first.
    """
    return [
        page.lean(f"And {pronoun} {word}{after} {end}") > 0
        for end in page.ENDS
        for word in page.WORDS
    ]


def shares_far_away(page: Page, pronoun: str, counts=(2, 3)) -> list[float]:
    """Return after how many prompts *t* is likelier than *l*, over some words.

    Parameters
    ----------
    page : Page
        The words are drawn from its ``WORDS``, a list of str; ``lean`` returns the logit of
        *t* less that of *l* after a text.
    pronoun : str
        It follows "And" at the beginning of each prompt.
    counts : sequence of int
        How many words stand in between.

    Returns
    -------
    list of float
        The share of 40 prompts that end in *shal*, 0 to 1: three seeds with each number of
        words.
    """
    shares = []
    for count in counts:
        for seed in (1, 2, 3):
            rng = np.random.default_rng(seed)
            between = [" ".join(rng.choice(page.WORDS, count)) for _ in range(40)]
            hits = [page.lean(f"And {pronoun} {words} shal") > 0 for words in between]
            shares.append(float(np.mean(hits)))
    return shares


def pronouns_matter(page: Page) -> float:
    """Return how far apart *thou* and *they* put the two letters' logits, on average.

    Parameters
    ----------
    page : Page
        ``WORDS`` stand between the pronoun and *shal*; ``lean`` returns the logit of *t*
        less that of *l* after a text.

    Returns
    -------
    float
        The mean size of the difference over the words, in logits.
    """
    gaps = [
        page.lean(f"And thou {word} shal") - page.lean(f"And they {word} shal")
        for word in page.WORDS
    ]
    return float(np.abs(gaps).mean())


def thou_reaches_over_a_word(page: Page):
    """Check that after *thou* and a word the *t* of *shalt* and *wilt* beats *l*.

    The 95 % interval of the share of prompts, "And thou WORD shal" and the like, lies above
    80 %. With *they*, *we* or *you* in its place it is below 15 %. No n-gram model of 4 to
    10 letters expects the *t* once, nor does the page's own. No prompt occurs in the
    training text. The page's n-grams are no worse on validation text than any others. With
    *they* after the word, *t* remains likelier in more than two thirds. Over two and three
    words, drawn anew with three seeds, *t* is likelier after *thou … shal* in more than
    80 %, and after *they … shal* in less than 40 %; over six words the two shares differ by
    less than ten points. In three GPTs whose weights are shuffled the two pronouns change
    the difference of the two logits by less than a tenth as much. After *And thou shal* the
    logit lens reads *l* from layers 0, 1 and 2, and *t* from layer 3.

    Parameters
    ----------
    page : Page
        ``WORDS`` and ``ENDS``, lists of str, make the prompts; ``lean`` returns the logit
        of *t* less that of *l* after a text; ``ngram`` is the page's n-gram model, ``gpt``
        the model; ``parts`` has the texts ``training`` and ``validation``; ``tokenizer``,
        ``ids_of``, ``text_of`` and ``vocab_size`` are the model's; ``THOU`` is a text.

    Returns
    -------
    dict
        ``span``: the interval of the share after *thou*; ``ngram`` and ``they``: after how
        many of the ``thou_prompts``, an int, counting expects the *t* (added up over the
        n-gram models), and after *they* in the place of *thou* our GPT; ``they_between``:
        the share with *they* after the word; ``answer``: the letter of the task's right
        choice: "b" if that share is above 2/3, "a" if it is below 1/3, else "c".
    """
    thou = expects_t(page, "thou")
    others = {who: np.mean(expects_t(page, who)) for who in ("they", "we", "you")}
    yes = page.ids_of("t")[0, 0]
    no = page.ids_of("l")[0, 0]
    models = ngram_orders(page)
    counted = 0
    for model in models.values():
        for text in (f"And thou {word} {end}" for end in page.ENDS for word in page.WORDS):
            probs = model.next_probs(page.tokenizer.encode(text))
            counted += probs[yes] > probs[no]
    validation = page.tokenizer.encode(page.parts.validation)
    losses = {n: model.loss(validation) for n, model in models.items()}
    flat = re.sub(r"\W+", " ", page.parts.training.lower())
    known = [f"thou {w} {end}" in flat for end in page.ENDS for w in page.WORDS]
    they_between = np.mean(expects_t(page, "thou", after=" they"))
    far = {who: shares_far_away(page, who) for who in ("thou", "they")}
    six = {who: np.array(shares_far_away(page, who, counts=(6,))) for who in far}
    shuffled = [nulls.shuffled_weights(page.gpt, seed) for seed in range(3)]
    untrained = max(pronouns_matter(page.replaced(gpt=gpt)) for gpt in shuffled)
    read = lens(page.gpt, page.ids_of(page.THOU))[1:, 0, -1]  # (layers, vocab_size)
    span = share_interval(thou)
    assert span[0] > 0.8
    assert max(others.values()) < 0.15
    assert counted == 0
    assert page.ngram.loss(validation) <= min(losses.values()) + 1e-9
    assert not any(known)
    assert they_between > 2 / 3
    assert min(far["thou"]) > 0.8
    assert max(far["they"]) < 0.4
    assert abs(six["thou"] - six["they"]).max() < 0.1
    assert untrained < 0.1 * pronouns_matter(page)
    assert page.text_of(read.argmax(-1)) == "lllt"
    return {
        "span": span,
        "they": int(others["they"] * len(thou)),
        "ngram": int(counted),
        "thou_prompts": len(thou),
        "they_between": they_between,
        "answer": right_letter(
            {"b": they_between > 2 / 3, "a": they_between < 1 / 3}, otherwise="c"
        ),
    }


# --- inside -------------------------------------------------------------------------------


@proof("After the last layer the lens gives the model's own logits.")
def lens_ends_in_the_model(page: Page):
    """Check that after the last layer the logit lens gives the model's own logits.

    The page's loop and the package's lens are both compared.

    The lens is the last norm and the output matrix, applied to the states between layers.

    Parameters
    ----------
    page : Page
        ``early`` are the loop's last logits for ``THOU``, a str, (1, tokens, vocab_size);
        ``read`` the lens on ``windows``, ids (windows, tokens + 1), of shape (layers + 1,
        windows, vocab_size, tokens); ``gpt`` is the model, with its ``config``; ``ids_of``
        encodes a text.

    Returns
    -------
    dict
        ``layers``, ``heads`` and ``d_model`` of the model.
    """
    with torch.no_grad():
        close(page.early, page.gpt(page.ids_of(page.THOU)))
        close(page.read[-1].mT, page.gpt(page.windows[:, :-1]))
    sizes = page.config
    return {"layers": sizes.layers, "heads": sizes.heads, "d_model": sizes.d_model}


@finding(
    "Remove our GPT's heads one by one, and they are hardly missed on average; remove all "
    "at once, and they are missed far more than the single losses add up to.",
    rival="the sum of the single losses: {sum:.2f} nats a character, all together: "
    "{together:.2f}; an average that hides a rare case: at {line_ends} line ends the loss "
    "rises by {line_rise:.2f} without head {line_head}",
    null=random_weights,
    n="{windows} windows of held-out sonnets, all {heads} heads",
    interval="together, less five times the sum: {gap:.2f} nats",
)
def heads_are_missed_together(page: Page):
    """Check that all heads together are missed more than one by one.

    Each head is replaced by its mean output at each position, and all at once.

    The means are those over training sonnets.

    Each alone raises the loss by less than 0.05 nats; all together by more than half a
    nat, and by more than five times the sum. The latter holds with zeros, too. At line
    ends, new lines and the marks before them, head 1.2 alone raises the loss by more than
    0.3 nats, and no other by half as much. Without it a new line after a mark, rather than
    a space, is less probable there by more than 0.1.

    Parameters
    ----------
    page : Page
        ``HEADS`` are all heads, (layer, head), from 0; ``cut`` takes so many windows of so
        many tokens, here ``room``, from a text, ids (windows, tokens); ``mean_outputs``
        returns what each head gives on average at each position of windows, (layer, head) →
        (tokens, d_head); ``losses_with`` the loss of each held-out window, an array, while
        heads return what a dict has for them. ``parts.training`` is a text;
        `missed_at_line_ends` uses more.

    Returns
    -------
    dict
        Rises of the loss, in nats a character: ``sum`` of the single ones, ``together``,
        with the 95 % interval ``gap`` of the latter less five times the former; at line
        ends ``line_rise``, without the head ``line_head`` ("LAYER.HEAD"). ``new_line`` and
        ``new_line_without`` that head, probabilities of a new line after a mark;
        ``windows``, ``heads``, ``line_ends``: how many.
    """
    usual = page.mean_outputs(page.cut(page.parts.training, 96, page.room)[:, :-1])
    zeros = dict.fromkeys(page.HEADS, 0.0)
    whole = page.losses_with({})  # (windows,)

    def rises(values):
        """Return how the loss rises without each head, (heads, windows), and without all.

        ``values`` : dict, (layer, head) → what the head returns instead, a Tensor or 0.
        Returns two arrays; the second is (windows,).
        """
        single = [page.losses_with({head: values[head]}) - whole for head in page.HEADS]
        together = page.losses_with({head: values[head] for head in page.HEADS}) - whole
        return np.stack(single), together

    single, together = rises(usual)
    single_zero, together_zero = rises(zeros)
    gap = bootstrap_interval(together - 5 * single.sum(0))
    gap_zero = bootstrap_interval(together_zero - 5 * single_zero.sum(0))
    at_ends = missed_at_line_ends(page, usual)
    line_head = max(page.HEADS, key=lambda head: at_ends["rise"][head])
    line_rise = at_ends["rise"][line_head]
    next_rise = max(at_ends["rise"][head] for head in page.HEADS if head != line_head)
    fallen = at_ends["new line"][None] - at_ends["new line"][line_head]
    assert single.mean(1).max() < 0.05
    assert bootstrap_interval(together)[0] > 0.5
    assert min(gap[0], gap_zero[0]) > 0
    assert line_head == (1, 2)
    assert line_rise > max(0.3, 2 * next_rise)
    assert fallen > 0.1
    return {
        "sum": single.sum(0).mean(),
        "together": together.mean(),
        "gap": gap,
        "windows": len(whole),
        "heads": len(single),
        "line_head": ".".join(map(str, line_head)),
        "line_rise": line_rise,
        "line_ends": at_ends["count"],
        "new_line": at_ends["new line"][None],
        "new_line_without": at_ends["new line"][line_head],
    }


def missed_at_line_ends(page: Page, usual: dict) -> dict:
    """Return how much each head is missed where a line of the held-out sonnets ends.

    Parameters
    ----------
    page : Page
        ``gpt`` is the model, ``HEADS`` are all its heads, (layer, head), from 0;
        ``held_out`` is the text, a str, from which ``cut`` takes 96 windows of ``room``
        tokens; ``ids_of`` and ``text_of`` encode and decode.
    usual : dict
        (layer, head) → the head's mean output by position, (tokens, d_head).

    Returns
    -------
    dict
        ``rise``: by how many nats the loss rises there without a head, by (layer, head).
        ``new line``: the mean probability of a new line, as a share of that of a new line
        or a space, where one follows a mark; by (layer, head), with None for the whole
        model. ``count``: how many tokens are line ends, new lines and the marks before
        them; all are zero of a model whose tokens are none of these.
    """
    windows = page.cut(page.held_out, 96, page.room)
    decoded = {int(i): page.text_of(i[None]) for i in windows.unique()}
    texts = np.array([[decoded[int(i)] for i in row] for row in windows])
    is_new = texts == "\n"
    is_mark = np.isin(texts, [*MARKS])
    begun = (np.cumsum(is_new, 1) - is_new > 0)[:, 1:]  # the line begins within the window
    before_new = np.append(is_new[:, 1:], np.zeros_like(is_new[:, :1]), 1)
    ends = (is_new | (is_mark & before_new))[:, 1:] & begun
    after_mark = is_new[:, 1:] & is_mark[:, :-1] & begun
    choice = [int(page.ids_of(text)[0, 0]) for text in "\n "]

    def measured(values):
        """Return the loss at line ends, and the probability of a new line after a mark.

        Both are means, floats.

        ``values`` : dict, (layer, head) → what the head returns instead, (tokens, d_head).
        """
        with torch.no_grad(), ExitStack() as off:
            for (layer, head), value in values.items():
                off.enter_context(replaced(page.gpt.blocks[layer], head, value))
            logits = page.gpt(windows[:, :-1])  # (windows, tokens, vocab_size)
        losses = F.cross_entropy(logits.mT, windows[:, 1:], reduction="none").numpy()
        probs = logits[..., choice].softmax(-1)[..., 0].numpy()
        return mean_or_zero(losses[ends]), mean_or_zero(probs[after_mark])

    ablated = {head: measured({head: usual[head]}) for head in page.HEADS}
    loss, prob = measured({})
    return {
        "rise": {head: without - loss for head, (without, _) in ablated.items()},
        "new line": {None: prob} | {head: value for head, (_, value) in ablated.items()},
        "count": int(ends.sum()),
    }


def mean_or_zero(values) -> float:
    """Return the mean of ``values``, an array; 0 of an empty one."""
    return float(values.mean()) if len(values) else 0.0


def leans_with(page: Page, texts, sources, heads, *answers) -> np.ndarray:
    """Return how far *t* is above *l* after texts, some heads copied from other texts.

    Parameters
    ----------
    page : Page
        ``lean`` returns the logit of *t* less that of *l* after a text, or of two other
        letters that are given; ``gpt`` is the model, and ``ids_of`` goes from a text to ids
        (1, tokens).
    texts, sources : sequences of str of one length
        What is read, and what the heads' outputs at the last character come from.
    heads : list of (int, int)
        Layer and head, from 0: what these return at the last character is copied.
    *answers : str
        Two letters in the place of *t* and *l*.

    Returns
    -------
    array of shape (texts,)
        The logit of *t* less that of *l*.
    """
    leans = []
    for text, source in zip(texts, sources, strict=True):
        with copied_heads(page.gpt, heads, outputs(page.gpt, page.ids_of(source))):
            leans.append(page.lean(text, *answers))
    return np.array(leans)


def direct_prompts(page: Page) -> list[tuple[str, str]]:
    """Return pairs of prompts without a word in between, other openings and pronouns.

    Parameters
    ----------
    page : Page
        ``parts.training`` is the text of the training sonnets; ``ENDS`` are *shal* and
        *wil*.

    Returns
    -------
    list of (str, str)
        *… they shal* and *… thou shal*, where … is each of the 16 words that begin most
        training lines; also with *you* and *we* in the first, and with *wil* in both.
    """
    lines = (line.split() for line in page.parts.training.splitlines())
    firsts = [line[0] for line in lines if line]
    openings = sorted(set(firsts), key=lambda word: -firsts.count(word))[:16]
    return [
        (f"{word} {other} {end}", f"{word} thou {end}")
        for other in ("they", "you", "we")
        for word in openings
        for end in page.ENDS
    ]


def loses_t_without(page: Page, texts, head) -> float:
    """Return how far the probability of *t* falls after texts without a head.

    Parameters
    ----------
    page : Page
        ``gpt`` reads the texts, which ``ids_of`` encodes; ``HEADS`` are all its heads;
        ``windows`` are held-out texts, ids (windows, tokens).
    texts : sequence of str
    head : (int, int)
        Layer and head, from 0: it returns its mean over all positions of the held-out
        windows.

    Returns
    -------
    float
        The probability before less that without the head, the mean over texts; 0 if the
        model has no such head.
    """
    if head not in page.HEADS:
        return 0.0
    layer, number = head
    mean = outputs(page.gpt, page.windows[:, :-1])[head].mean((0, 1))
    yes = page.ids_of("t")[0, 0]

    def probabilities():
        """Return the probability of *t* after each text, a Tensor of shape (texts,)."""
        with torch.no_grad():
            logits = [page.gpt(page.ids_of(text))[0, -1] for text in texts]
        return torch.stack(logits).softmax(-1)[:, yes]

    before = probabilities()
    with replaced(page.gpt.blocks[layer], number, mean):
        return float((before - probabilities()).mean())


@finding(
    "Two of our GPT's sixteen heads carry the “thou” of “shalt” and “wilt”: copy their "
    "output from “thou … shal” into “they … shal”, and the t follows.",
    rival="the other fourteen heads together, which change {others} of {told} answers; but "
    "“dost” uses another head, {dost_head}: alone it changes {dost} of {dost_told}, the "
    "two {dost_two}; and for “thou art” the fourteen, too, change {art} of {art_told}",
    null=random_weights,
    n="{told} of {prompts} pairs of prompts: those that the model tells apart",
    interval="share of answers that change: {span:.0%}",
)
def two_heads_carry_thou(page: Page):
    """Check that two heads, copied from prompts with *thou*, bring the *t* of *shalt*.

    Their outputs at the last character are copied from one prompt to another.

    Between the pronoun and the verb is a word. The model tells more than 80 % of the pairs
    apart.

    In these the two change more than 90 % of the answers from *l* to *t*, and back from *t*
    to *l*; the other fourteen less than 5 %. Each brings along more of the difference than
    any other head in every prompt that is told apart. From the next prompt with *thou*,
    which has another word, they change more than 90 %; from *we* with the same word, less
    than 5 %. Without a word in between, with other openings and pronouns, they change more
    than 95 %. For *art* they are the two strongest, too, and change more than 90 %; but so
    do the other fourteen together. For the *s* of *thou dost* they change less than 5 %,
    and head 3.1 alone more than 90 %. Head 1.3 gives *thou* more than a fifth of its
    attention at *thou shal*, and at its mean the *t* there is as likely as before, within
    0.01. With zeros in place of the two, *And thou shal* goes on with an *l*.

    Parameters
    ----------
    page : Page
        ``PAIRS`` are pairs of texts, with *they* and with *thou*; ``TWO`` is the list of
        the two heads, (layer, head) from 0, ``rest`` that of the others, ``HEADS`` of all;
        ``lean`` returns the logit of *t*, or of the first letter given, less that of *l*,
        or of the second, after a text; ``share_copied`` which share of the difference of
        two texts' leans comes along if heads are copied from the second to the first.
        ``THOU`` is a text; ``gpt`` is the model, ``ids_of`` encodes.

    Returns
    -------
    dict
        How many prompts: ``prompts``, ``told`` (apart by the model); of these, ``changed``
        by the two heads, with the interval ``span`` of the share; ``back``, in the other
        direction; ``crossed``, from the next prompt with *thou*; ``from_we``, from *we*;
        and by the ``others``. Of *dost*, ``dost`` by the head ``dost_head``, ``dost_two``
        by the two, of ``dost_told``; of *art*, ``art`` by the others, of ``art_told``.
        ``story``, the letter of the right choice, "?" if there is none.
    """
    leans = np.array([[page.lean(text) for text in pair] for pair in page.PAIRS])
    are_apart = (leans[:, 0] < 0) & (leans[:, 1] > 0)
    apart = [pair for pair, good in zip(page.PAIRS, are_apart, strict=True) if good]
    if len(apart) < 2:  # no interval of one
        apart = page.PAIRS
    they, thou = zip(*apart, strict=True)
    changed = leans_with(page, they, thou, page.TWO) > 0
    back = leans_with(page, thou, they, page.TWO) < 0
    others = leans_with(page, they, thou, page.rest) > 0
    crossed = leans_with(page, they, thou[1:] + thou[:1], page.TWO) > 0
    we = [text.replace(" they ", " we ") for text in they]
    from_we = leans_with(page, they, we, page.TWO) > 0
    single = {
        head: np.array([page.share_copied(*pair, [head]) for pair in apart])
        for head in page.HEADS
    }
    least = np.min([single[head] for head in page.TWO], axis=0)  # (prompts,)
    most = np.max([single[head] for head in page.rest], axis=0)

    pairs = direct_prompts(page)
    told = [
        (here, there) for here, there in pairs if page.lean(here) < 0 < page.lean(there)
    ]
    changed_directly = leans_with(page, *zip(*(told or pairs), strict=True), page.TWO) > 0
    art = [
        (f"{word} we ar", f"{word} thou ar")
        for word in sorted({there.split()[0] for _, there in pairs})
    ]
    for_art = {
        head: np.mean([page.share_copied(*pair, [head], "t", "e") for pair in art])
        for head in page.HEADS
    }
    art_pairs = told_apart(page, art, "t", "e")
    art_two = changed_by(page, art_pairs, page.TWO, "t", "e")
    art_rest = changed_by(page, art_pairs, page.rest, "t", "e")
    dost = told_apart(page, dost_prompts(pairs), "s", " ")
    dost_by = {head: changed_by(page, dost, [head], "s", " ") for head in page.HEADS}
    dost_head = max(page.HEADS, key=lambda head: dost_by[head].mean())
    dost_two = changed_by(page, dost, page.TWO, "s", " ")
    with ExitStack() as off:
        for layer, head in page.TWO:
            # zeros in place of what the head returns
            off.enter_context(replaced(page.gpt.blocks[layer], head))
        without = page.lean(page.THOU)
    missed = loses_t_without(page, [there for _, there in pairs], (1, 3))
    span = share_interval(changed)
    assert are_apart.mean() > 0.8
    assert span[0] > 0.9
    assert back.mean() > 0.9
    assert others.mean() < 0.05
    assert crossed.mean() > 0.9
    assert from_we.mean() < 0.05
    assert (least > most).all()
    assert len(told) > 0.9 * len(pairs)
    assert changed_directly.mean() > 0.95
    assert {*sorted(for_art, key=for_art.get)[-2:]} == {*page.TWO}
    assert min(art_two.mean(), art_rest.mean()) > 0.9
    assert dost_head == (3, 1)
    assert dost_by[dost_head].mean() > 0.9
    assert dost_two.mean() < 0.05
    assert thou_attention(page, (1, 3)) > 0.2
    assert abs(missed) < 0.01
    assert without < 0 < page.lean(page.THOU)
    return {
        "told": len(they),
        "prompts": len(leans),
        "changed": int(changed.sum()),
        "span": span,
        "back": int(back.sum()),
        "others": int(others.sum()),
        "crossed": int(crossed.sum()),
        "from_we": int(from_we.sum()),
        "dost_head": ".".join(map(str, dost_head)),
        "dost": int(dost_by[dost_head].sum()),
        "dost_two": int(dost_two.sum()),
        "dost_told": len(dost),
        "art": int(art_rest.sum()),
        "art_told": len(art_pairs),
        "story": "d" if changed.mean() > 0.5 else "?",
    }


def dost_prompts(pairs) -> list[tuple[str, str]]:
    """Return pairs of prompts that end in *they do* or *we do*, and in *thou do*.

    Parameters
    ----------
    pairs : sequence of (str, str)
        Pairs of prompts, of whose second ones the first words are taken.

    Returns
    -------
    list of (str, str)
        *… they do* or *… we do*, and *… thou do*; each opening once with either.
    """
    openings = sorted({there.split()[0] for _, there in pairs})
    return [(f"{w} {who} do", f"{w} thou do") for w in openings for who in ("they", "we")]


def changed_by(page: Page, pairs, heads, *answers) -> np.ndarray:
    """Return which answers change if some heads are copied.

    Parameters
    ----------
    page : Page
        ``lean`` returns the logit of *t* less that of *l* after a text, or of two other
        letters that are given; ``gpt`` is the model, and ``ids_of`` goes from a text to ids
        (1, tokens).
    pairs : sequence of (str, str)
        What is read, and what the heads' outputs at the last character come from.
    heads : list of (int, int)
        Layer and head, from 0.
    *answers : str
        Two letters: the second one is expected at first.

    Returns
    -------
    bool array of shape (pairs,)
        Whether the first letter is the likelier one with the copied heads.
    """
    return leans_with(page, *zip(*pairs, strict=True), heads, *answers) > 0


def told_apart(page: Page, pairs, *answers) -> list[tuple[str, str]]:
    """Return the pairs of texts after each of which the model expects the right letter.

    If there are none, all pairs are returned, so that a proof goes on, and fails.

    Parameters
    ----------
    page : Page
        ``lean`` returns the logit of the first of two letters less that of the second,
        after a text.
    pairs : sequence of (str, str)
    *answers : str
        The letter expected after the second text of a pair, and that after the first.

    Returns
    -------
    list of (str, str)
    """
    right = [
        (here, there)
        for here, there in pairs
        if page.lean(here, *answers) < 0 < page.lean(there, *answers)
    ]
    return right or list(pairs)


def thou_attention(page: Page, head) -> float:
    """Return how much attention a head gives *thou* at the end of *And thou shal*.

    Parameters
    ----------
    page : Page
        ``THOU`` is that text; ``gpt`` reads characters, which ``ids_of`` encodes; ``HEADS``
        are all its heads, (layer, head).
    head : (int, int)
        Layer and head, from 0.

    Returns
    -------
    float
        The sum over the four letters, 0 to 1; 0 if there is no such head, or a token is no
        character.
    """
    ids = page.ids_of(page.THOU)
    if head not in page.HEADS or ids.shape[1] != len(page.THOU):
        return 0.0
    layer, number = head
    weights = page.gpt.attentions(ids)[layer][0, number, -1]  # (tokens,)
    start = page.THOU.index("thou")
    return float(weights[start : start + len("thou")].sum())


# --- a word, or four letters --------------------------------------------------------------


def prompts_after(page: Page, word: str, ends=("shal", "wil"), most=10) -> list[str]:
    """Return prompts such as "And though WORD shal", WORD being one of the page's.

    Parameters
    ----------
    page : Page
        Its ``WORDS``, a list of str, stand in between, but for those with "tho" in them.
    word : str
        It follows "And" at the beginning of each prompt.
    ends : sequence of str
        The beginnings of verbs with which a prompt ends.
    most : int
        How many of these words are used: a prompt for each, and each end.

    Returns
    -------
    list of str
    """
    between = [each for each in page.WORDS if "tho" not in each][:most]
    return [f"And {word} {each} {end}" for end in ends for each in between]


def share_of_t(page: Page, word: str, **options) -> float:
    """Return after which share of a word's prompts *t* is likelier than *l*.

    Parameters
    ----------
    page : Page
        ``lean`` returns the logit of *t* less that of *l* after a text; ``WORDS``, a list
        of str, stand in between.
    word : str
        It follows "And" at the beginning of each prompt.
    **options
        ``ends``, the beginnings of verbs that the prompts end in, a sequence of str, and
        ``most``, how many of the words stand in between.

    Returns
    -------
    float
        From 0 to 1.
    """
    hits = [page.lean(text) > 0 for text in prompts_after(page, word, **options)]
    return float(np.mean(hits))


def share_brought(page: Page, words) -> float:
    """Return how often the two heads bring a *t* from sentences with other words.

    Parameters
    ----------
    page : Page
        ``TWO`` are the two heads, (layer, head), from 0; ``WORDS``, a list of str, stand in
        between; ``lean`` returns the logit of *t* less that of *l* after a text; ``gpt`` is
        the model, and ``ids_of`` goes from a text to ids (1, tokens).
    words : sequence of str
        In the place of *thou* in the sentences from which the heads are copied.

    Returns
    -------
    float
        The share, 0 to 1, of the pairs of a prompt *they … shal*, after which *l* is
        likelier, and the same with each word, in which *t* is likelier once the heads are
        copied; 0 if there are none.
    """
    here = prompts_after(page, "they", ends=("shal",))
    pairs = [
        pair
        for word in words
        for pair in zip(here, prompts_after(page, word, ends=("shal",)), strict=True)
        if page.lean(pair[0]) < 0
    ]
    if not pairs:
        return 0.0
    return float((leans_with(page, *zip(*pairs, strict=True), page.TWO) > 0).mean())


@finding(
    "Our GPT takes “though” for “thou”: after “though”, and even after an invented "
    "“thoup”, it expects the t of “shalt”; after “youth” it never does.",
    rival="n-gram models of 4 to 10 letters: a t after {ngram} of {thou_prompts} prompts "
    "with “thou”; the four letters in their {orders} other orders: {other_order:.0%}; "
    "thee, thy, thine, you and youth: {never:.0%}; “when they” in the place of “though "
    "they”: {when:.0%}",
    null=random_weights,
    n="{prompts} prompts with “though”; {invented} invented words, “thou” and a letter",
    interval="share after “thou”: {span:.0%}; after “though”: {though:.0%}; after “though "
    "they”: {clause:.0%}",
)
def it_spells_thou(page: Page):
    """Check after which words in the place of *thou* the GPT expects the *t* of *shalt*.

    A prompt is "And", such a word, one word more, and *shal* or *wil*.

    The interval after *though* lies above 80 %. After each invented word *t* is likelier
    than *l* in more than 90 % of the prompts. After each word of the training text that has
    the letters "thou" in it (*without*, *thousand*) it is so in more than half of those
    with *shal*. After the other orders of the letters it is so in less than 5 % on average
    and nowhere in more than a fifth; after the hundred most frequent words without them in
    less than 5 %; after *thee*, *thy*, *thine*, *you* and *youth* never. The two heads that
    carry *thou*, copied into *they … shal*, bring the *t* from *though* and from the
    invented words in more than 90 %, from the last five words never. After *though* and a
    pronoun the interval lies above a half; after *when* and a pronoun there is no *t*. More
    than half of the words with these letters in the training text are *thou* itself. What
    *thou* itself does over one word, two and three is in `thou_reaches_over_a_word`.

    Parameters
    ----------
    page : Page
        ``counted``: Counter of the words of the training text; ``WORDS``, a list of str,
        stand in between; ``lean`` returns the logit of *t* less that of *l* after a text;
        ``TWO`` is the list of the two heads, (layer, head), from 0.
        `thou_reaches_over_a_word` uses more.

    Returns
    -------
    dict
        Shares of prompts after which *t* is likelier than *l*: 95 % intervals ``though``,
        after that word, and ``clause``, after *though* and a pronoun, whose mean is
        ``clauses``; ``when``, after *when* and a pronoun; ``other_order``, the mean of the
        other orders of the four letters, of which there are ``orders``; ``never``, the
        highest of *thee* and the four other words. ``invented``: how many words are
        invented; ``prompts``: with *though*; ``share``: which part of the words with these
        letters is *thou* itself. Also all that `thou_reaches_over_a_word` returns.
    """
    over_a_word = thou_reaches_over_a_word(page)
    counted = page.counted
    spelled = [word for word in counted if "thou" in word]
    invented = [f"thou{letter}" for letter in string.ascii_lowercase]
    invented = [word for word in invented if word not in counted]
    orders = ["".join(letters) for letters in itertools.permutations("thou")][1:]
    unlike = ["thee", "thy", "thine", "you", "youth"]
    frequent = [word for word, _ in counted.most_common() if "thou" not in word][:100]
    though = [page.lean(text) > 0 for text in prompts_after(page, "though", most=40)]
    after = {word: share_of_t(page, word) for word in (*invented, *orders, *unlike)}
    shalt = [share_of_t(page, word, ends=("shal",)) for word in spelled]
    often = [share_of_t(page, word, most=5) for word in frequent]
    clauses = {
        first: [
            page.lean(text) > 0
            for who in ("they", "we", "you", "I", "he")
            for text in prompts_after(page, f"{first} {who}", most=20)
        ]
        for first in ("though", "when")
    }
    # By the first word of each list.
    brought = {
        words[0]: share_brought(page, words) for words in (["though"], invented, unlike)
    }
    share = counted["thou"] / sum(counted[word] for word in spelled)
    span = share_interval(though)
    clause = share_interval(clauses["though"])
    other_order = [after[word] for word in orders]
    never = max(after[word] for word in unlike)
    assert span[0] > 0.8
    assert min(after[word] for word in invented) > 0.9
    assert min(shalt) > 0.5
    assert np.mean(other_order) < 0.05
    assert max(other_order) <= 0.2
    assert np.mean(often) < 0.05
    assert never == 0
    assert min(brought["though"], brought[invented[0]]) > 0.9
    assert brought["thee"] == 0
    assert clause[0] > 0.5
    assert not any(clauses["when"])
    assert share > 0.5
    return over_a_word | {
        "though": span,
        "clause": clause,
        "clauses": np.mean(clauses["though"]),
        "when": np.mean(clauses["when"]),
        "other_order": np.mean(other_order),
        "never": never,
        "orders": len(orders),
        "invented": len(invented),
        "prompts": len(though),
        "share": share,
    }


# --- repeating ----------------------------------------------------------------------------


@proof(
    "On every seed, a model of two layers predicts the repetition better than a model of "
    "one layer."
)
def two_layers_repeat(page: Page):
    """Check that every model of two layers repeats better than every one of one layer.

    Its loss on the repetition is lower. With one layer, every model of eight heads has a
    lower loss than every one of two.

    Two layers end below counting pairs and above counting triples; one layer of two heads
    less than 0.2 below counting tokens, after ten times the steps; with eight heads more
    than a nat above counting pairs. In each model with two layers the head of layer 0 that
    attends more to the token before gives it most of its attention; without it the loss on
    the repetition rises by more than the loss of a guess; without the other, by less than a
    nat. Both heads of layer 1 give more than half to what followed.

    Parameters
    ----------
    page : Page
        ``study`` is the stored study *inside-gpt*. Its ``results`` have "counts", dicts
        with ``order`` of the n-grams and ``loss``, and "runs", dicts with ``kind`` and
        ``loss`` in nats a token and, of two layers, ``heads``, those of layer 0 first:
        dicts with the attention to the token ``before`` and to what ``followed`` last time,
        0 to 1, and ``again``, how much the loss on the repetition rises without the head.
        ``settings["steps"]``: kind → steps of training.

    Returns
    -------
    dict
        Steps of training: ``steps_two``, with two layers; ``steps_one``, with one.
        ``seeds``: how many models of two layers; ``answer``: the letter of the choice whose
        loss is nearest to the mean of one layer with two heads.
    """
    results = page.study["results"]
    steps = page.study["settings"]["steps"]
    counts = {row["order"]: row["loss"] for row in results["counts"]}
    losses = {
        kind: np.array([run["loss"] for run in results["runs"] if run["kind"] == kind])
        for kind in steps
    }
    two, one, eight = (losses[x] for x in ("two layers", "one layer", "eight heads"))
    assert counts[3] < two.min()
    assert two.max() < counts[2]
    assert counts[1] - 0.2 < one.min()
    assert one.max() < counts[1]
    assert counts[2] + 1 < eight.min()
    assert eight.max() < one.min()
    assert steps["one layer"] == 10 * steps["two layers"]
    levels = {"a": two.mean(), "b": counts[2], "c": counts[1], "d": np.log(32)}
    models = [run["heads"] for run in results["runs"] if run["kind"] == "two layers"]
    for heads in models:
        spare, needed = sorted(heads[:2], key=lambda head: head["before"])
        assert needed["before"] > 0.5
        assert needed["again"] > np.log(32)
        assert spare["again"] < 1
        assert min(head["followed"] for head in heads[2:]) > 0.5
    return {
        "steps_two": steps["two layers"],
        "steps_one": steps["one layer"],
        "seeds": len(models),
        "answer": min(levels, key=lambda letter: abs(levels[letter] - one.mean())),
    }


class CountsInText:
    """A GPT that also counts what followed the last two tokens in the text at hand.

    Parameters
    ----------
    gpt : GPT

    Notes
    -----
    Where they occurred before, half of the probability is that of what followed them.
    """

    def __init__(self, gpt):
        """Keep the model: ``gpt``, from ids (batch, tokens) to logits."""
        self.gpt = gpt

    def __call__(self, ids):
        """Return log probabilities of the next token, (batch, tokens, vocab_size).

        ``ids`` : int64 Tensor of shape (batch, tokens).
        """
        probs = self.gpt(ids).softmax(-1)
        same = ids[:, :, None] == ids[:, None, :]  # (batch, tokens, tokens)
        pair = same.clone()
        pair[:, 1:, 1:] &= same[:, :-1, :-1]
        pair[:, 0] = pair[:, :, 0] = False
        earlier = pair.tril(-1)[:, :, :-1].to(probs)  # what followed must be there
        followed = F.one_hot(ids[:, 1:], probs.shape[-1]).to(probs)
        counts = earlier @ followed  # (batch, tokens, vocab_size)
        total = counts.sum(-1, keepdim=True)
        mixed = (probs + counts / total.clamp(min=1)) / 2
        return torch.where(total > 0, mixed, probs).log()


def counts_in_text(page: Page):
    """A GPT that also counts what followed the last two letters in the text at hand.

    Parameters
    ----------
    page : Page
        ``gpt`` is the trained model.

    Returns
    -------
    Page
        A page like this one, whose ``gpt`` is a `CountsInText`: it also counts.
    """
    return page.replaced(gpt=CountsInText(page.gpt))


def gain_of_repeating(gpt, lines, stop) -> np.ndarray:
    """Return how much lower the loss on lines is after themselves than after other lines.

    Parameters
    ----------
    gpt : callable
        From ids (batch, tokens) to logits (batch, tokens, vocab_size), or to log
        probabilities.
    lines : int64 Tensor of shape (lines, tokens)
        In the order of the text, of one length.
    stop : int
        The token that ends a line.

    Returns
    -------
    array of shape (lines,)
        The loss after the line before it (of the first line, after the last) less that
        after itself, in nats a token; the line's first token does not count.
    """
    ends = torch.full((len(lines), 1), stop)

    def losses(before):
        """Return the mean loss of each line after another, (lines,).

        ``before`` : int64 Tensor of shape (lines, tokens).
        """
        ids = torch.cat([before, ends, lines], 1)
        with torch.no_grad():
            logits = gpt(ids[:, :-1]).transpose(1, 2)
        by_token = F.cross_entropy(logits, ids[:, 1:], reduction="none")
        return by_token[:, 1 - lines.shape[1] :].mean(1)

    return (losses(lines.roll(1, 0)) - losses(lines)).double().numpy()


@finding(
    "When a line is repeated, our GPT predicts it hardly any better; once it also counts "
    "what followed the same two letters before, it does much better.",
    rival="the same GPT, half of its prediction replaced by what followed the last two "
    "letters before in this text: {counted:.1f} nats a character less",
    null=counts_in_text,
    n="{lines} lines of held-out sonnets, their first {size} characters",
    interval="loss after another line, less that after itself: {gain:.3f} nats",
)
def it_does_not_repeat_lines(page: Page):
    """Check that a line's loss is hardly lower after itself than after another line.

    The other one is the line before it in the text.

    Lines are cut to half a window.

    The gain is less than 0.02 nats a character, the end of its interval; of the rival more
    than half a nat.

    Parameters
    ----------
    page : Page
        ``held_out`` is the text, a str; ``gpt`` is the model; ``tokenizer.encode`` goes
        from a text to a list of ids, ``ids_of`` to ids (1, tokens); ``room`` is how many
        tokens a window may have.

    Returns
    -------
    dict
        In nats a character: ``gain``, the 95 % interval of the loss of a line after another
        one less that after itself; ``counted``, the mean of the rival's. ``lines``, how
        many, and their ``size`` in characters.
    """
    size = page.room // 2 - 1
    encoded = [page.tokenizer.encode(line)[:size] for line in page.held_out.splitlines()]
    # Two lines of token 0 stand in if none is long enough; then the proof fails.
    lines = torch.tensor([ids for ids in encoded if len(ids) == size] or [[0] * size] * 2)
    stop = int(page.ids_of("\n")[0, 0])
    gain = bootstrap_interval(gain_of_repeating(page.gpt, lines, stop))
    counted = gain_of_repeating(CountsInText(page.gpt), lines, stop)
    assert gain[1] < 0.02
    assert bootstrap_interval(counted)[0] > 0.5
    return {"gain": gain, "counted": counted.mean(), "lines": len(lines), "size": size}


# --- going deeper -------------------------------------------------------------------------


@proof(
    "The margin between the two likeliest tokens is the sum of what the model's parts add "
    "to it."
)
def parts_add_up(page: Page):
    """Check that what the parts put into the margin adds up to it.

    The margin is the likeliest token's logit less the next one's, at each window's end.

    The sum of the parts is the same within 0.01.

    Parameters
    ----------
    page : Page
        ``margins`` is a DataFrame in logits, a row for each of the ``windows``, ids
        (windows, tokens), a column a part of the model; ``gpt`` is the model.

    Returns
    -------
    dict
        ``windows``: how many.
    """
    with torch.no_grad():
        best = page.gpt(page.windows)[:, -1].topk(2).values  # (windows, 2)
    whole = (best[:, 0] - best[:, 1]).double().numpy()
    close(page.margins.sum(axis=1).to_numpy(), whole, atol=1e-2, rtol=0)
    return {"windows": len(whole)}


@proof("GPT-2 has 124,439,808 weights, under these names and no other.")
def same_anatomy(page: Page):
    """Check that our GPT-2 has the weights of `transformers`' by name, and their number.

    The share of three kinds of parts is returned.

    Parameters
    ----------
    page : Page
        ``skeleton`` is the model of `transformers`, ``ours`` the course's; ``theirs``: the
        former's name of each parameter → the parameter; ``their_name`` goes from our name
        to theirs; ``anatomy`` is the page's DataFrame, a row for each kind of parameter:
        ``here``, its name in our model, and ``weights``, how many numbers.

    Returns
    -------
    dict
        Shares of the weights: ``tokens``, of the token vectors; ``attention``;
        ``feed_forward``. ``all``: how many weights there are.
    """
    named = {page.their_name(name): weight for name, weight in page.ours.named_parameters()}
    assert named.keys() == page.theirs.keys()
    total = int(page.anatomy.weights.sum())
    assert total == page.skeleton.num_parameters() == page.ours.parameters_count
    assert total == 124_439_808
    kinds = {
        kind: page.anatomy.weights[page.anatomy.here.str.contains(kind)].sum() / total
        for kind in ("tokens", "attention", "feed_forward")
    }
    return kinds | {"all": total}
