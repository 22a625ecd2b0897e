"""Published results asked of our GPT, or of another in its place, and of a toy.

Each function is named as in ``published.toml``, which says what it measures and when the
sentence holds. ``small`` asks for a tenth of the texts or so, for a quick run.
"""

from contextlib import ExitStack
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.ablation import replaced
from lmcourse.data import fingerprint, load_corpus, load_texts, train_val_test_split
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.training import cut_windows
from lmcourse.ngrams import NgramModel
from lmcourse.training_loop import train_model
from studies.famous.outcomes import above, below, outcome
from studies.measures import share_interval

ORDERS = range(3, 8)  # lengths of n-grams that are tried on validation sonnets
WINDOW = 64  # tokens, at most, of what the loss without some heads is measured on
ROUNDS = 6  # in which heads are removed one after the other, at most
KNOWN = 0.5  # the share of the sonnets' characters that a model must know, to be asked


class Unasked(ValueError):
    """A model can't be asked at all; the message says why."""


@cache
def loaded():
    """Return our GPT: its tokenizer, the model and the record of its training.

    They are loaded once, onto the CPU: a tokenizer with ``encode`` and ``vocab_size``, a
    `lmcourse.gpt.model.GPT` in evaluation mode, and a dict, with ``corpus_sha256`` if it is
    known on what text it was trained. ``LMCOURSE_GPT`` may name another model.
    """
    return load_gpt(device="cpu")


def gpt():
    """Return the tokenizer and the model of our GPT, on the CPU.

    The model is a `lmcourse.gpt.model.GPT`, or a GPT-2 in its place; the tokenizer has
    ``encode`` and ``vocab_size``, and ``alphabet``, a str, if its tokens are characters.
    """
    return loaded()[:2]


def record():
    """Return the record of our GPT, a dict: its name, and how it was trained, if known.

    ``corpus_sha256`` : str, the fingerprint of the text that it was trained on; it may be
    missing.
    """
    return loaded()[2]


@cache
def sonnets():
    """Return our GPT's ids of training, validation and test sonnets: a tuple of Tensors.

    Each is int64 of shape (tokens,). They are Shakespeare's, and made once.

    Characters that the model's alphabet lacks are left out.

    Raises
    ------
    Unasked
        If it lacks more than half of them: what is left is no text.
    """
    tokenizer = gpt()[0]
    parts = train_val_test_split(load_texts("sonnets"))
    if known := getattr(tokenizer, "alphabet", ""):
        whole = sum(map(len, parts))
        parts = ["".join(c for c in part if c in known) for part in parts]
        left = sum(map(len, parts)) / whole
        if left < KNOWN:
            raise Unasked(f"it knows {left:.0%} of the characters of Shakespeare's sonnets")
    return tuple(torch.tensor(tokenizer.encode(part)) for part in parts)


# --- counting ----------------------------------------------------------------------------


def refuse_other_texts():
    """Make sure that our GPT was trained on the sonnets, in their own alphabet.

    n-grams that have read the sonnets say nothing of a model that has read something else.
    What a model has read is known from the fingerprint of the text in its record; a GPT-2
    has none.

    Raises
    ------
    Unasked
        If it was trained on another text, or nobody knows on which, or its tokens are not
        the characters of the sonnets.
    """
    corpus = load_corpus("sonnets")
    if record().get("corpus_sha256") != fingerprint(corpus):
        raise Unasked("no record says that it was trained on these sonnets")
    if {*getattr(gpt()[0], "alphabet", "")} != {*corpus}:
        raise Unasked("its tokens are not the characters of these sonnets")


def counts(small=False):
    """Measure how often our GPT and n-grams find the same next token likeliest.

    Parameters
    ----------
    small : bool
        Whether to ask at 600 tokens in place of 6,000.

    Returns
    -------
    dict
        Of the share of tokens for which both find the same token likeliest, a number for
        each of 20 pieces of the test text: ``ours``, the mean; ``interval``, that of the
        mean at 95 %; ``n``, how many numbers; ``null``, the share if the n-grams' answers
        are moved by half of the text; ``holds``, whether the interval is above 0.68, or
        None if it is too close to say.

        Also ``order``, the length of the n-grams, from 3 to 7 tokens, whose loss on the
        validation sonnets is lowest; ``tokens``, how many are asked; ``right`` and
        ``right_by_count``, the shares of right answers of the GPT and of the n-grams;
        ``lowest`` and ``highest``, the lowest and the highest share of agreement over all
        lengths of n-grams that were tried.

    Raises
    ------
    Unasked
        If the GPT has not read what the n-grams have, in the same alphabet.
    """
    refuse_other_texts()
    training, validation, test = sonnets()
    tokens = min(len(test), 600 if small else 6000)
    vocab_size = gpt()[0].vocab_size
    orders = [order for order in ORDERS if vocab_size**order < 2**63]  # what can be counted
    tried = [NgramModel(training.tolist(), order, vocab_size) for order in orders]
    best = min(tried, key=lambda each: each.loss(validation.tolist()))
    ids = test[:tokens]
    by_gpt = likeliest(ids).numpy()
    guesses = {each.order: counted(each, ids) for each in tried}
    shares = [(by_gpt == guess).mean() for guess in guesses.values()]
    by_count = guesses[best.order]
    same = by_gpt == by_count
    by_part = np.array([part.mean() for part in np.array_split(same, 20)])
    moved = by_gpt == np.roll(by_count, tokens // 2)
    return outcome(
        by_part,
        moved.mean(),
        lambda mean, span: above(span, 0.68),
        order=best.order,
        lowest=float(min(shares)),
        highest=float(max(shares)),
        tokens=tokens,
        right=float((by_gpt == ids[1:].numpy()).mean()),
        right_by_count=float((by_count == ids[1:].numpy()).mean()),
    )


def counted(ngrams, ids):
    """Return what an n-gram model predicts after each token of a text but the last.

    Parameters
    ----------
    ngrams : NgramModel
        Has ``order``, the length of its n-grams, and ``next_probs``, from a list of at most
        ``order - 1`` tokens to the probabilities of the next one.
    ids : int64 Tensor of shape (tokens,)
        The text.

    Returns
    -------
    int array of shape (tokens - 1,)
        The likeliest token in the place of the second one, the third, and so on.
    """
    known = ids.tolist()
    longest = ngrams.order - 1
    return np.array([ngrams.next_probs(known[max(at - longest, 0) : at]).argmax()
                     for at in range(1, len(known))])  # fmt: skip


@torch.no_grad()
def likeliest(ids):
    """Return the token that our GPT finds likeliest after each one of a text but the last.

    It reads half a context before each at least, and at the text's beginning all there is.

    Parameters
    ----------
    ids : int64 Tensor of shape (tokens,)
        Numbers of a text's tokens.

    Returns
    -------
    int64 Tensor of shape (tokens - 1,)
        The likeliest token in the place of the second one, the third, and so on.
    """
    model = gpt()[1]
    half = model.config.context // 2
    context = 2 * half  # an odd one, less one: windows then join without a gap
    guesses = [model(ids[None, :context])[0].argmax(-1)]
    for start in range(half, len(ids) - half, half):
        guesses.append(model(ids[None, start : start + context])[0, half:].argmax(-1))
    return torch.cat(guesses)[: len(ids) - 1]


# --- heads -------------------------------------------------------------------------------


def heads(small=False):
    """Measure how much the loss rises without the two fifths of heads that matter least.

    How much a head of our GPT matters is the model's loss when the head's output is 0, on
    every second window of validation sonnets; the rise is measured on the other windows.

    Parameters
    ----------
    small : bool
        Whether to read few windows, and to draw two other sets of heads.

    Returns
    -------
    dict
        Of the rise of the loss in nats a token, a number for each window: ``ours``, the
        mean; ``interval``, that of the mean at 95 %; ``n``, how many numbers; ``null``, the
        mean rise without as many heads drawn at random, over 20 draws; ``holds``, whether
        the interval is below 0.02, or None if it is too close to say.

        Also ``able``, whether the model's loss is below that of counting pairs of tokens;
        ``removed`` and ``all_heads``, how many heads are removed and how many there are;
        ``in_first``, how many of the removed are in the first layer; ``in_rounds``, the
        mean rise if they are chosen in six rounds, each without those chosen before;
        ``whole``, the mean loss with all heads, in nats a token.
    """
    chosen_on, tried_on = validation_windows(4 if small else 40)
    loss_without = {head: window_losses([head], *chosen_on).mean() for head in every_head()}
    number = round(0.4 * len(loss_without))
    removed = sorted(loss_without, key=loss_without.get)[:number]
    whole = window_losses([], *tried_on)
    rises = window_losses(removed, *tried_on) - whole
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(2 if small else 20):
        some = [
            [*loss_without][at]
            for at in rng.choice(len(loss_without), number, replace=False)
        ]
        drawn.append((window_losses(some, *tried_on) - whole).mean())
    in_rounds = removed_in_rounds(number, chosen_on)
    return outcome(
        rises,
        np.mean(drawn),
        lambda mean, span: below(span, 0.02),
        able=bool(whole.mean() < loss_by_pairs()),
        removed=number,
        all_heads=len(loss_without),
        in_first=sum(layer == 0 for layer, _ in removed),
        in_rounds=float((window_losses(in_rounds, *tried_on) - whole).mean()),
        whole=float(whole.mean()),
    )


def loss_by_pairs():
    """Return the loss of 2-grams on validation sonnets, a float in nats a token.

    They are counted in the training sonnets, of the tokens of our GPT.

    A model without any head can know pairs. One that isn't better than this has no heads
    that could be missed, however low its loss stays without them.
    """
    training, validation, _ = sonnets()
    pairs = NgramModel(training.tolist(), 2, gpt()[0].vocab_size)
    return pairs.loss(validation.tolist())


def removed_in_rounds(number, windows):
    """Choose heads to remove, in rounds: each time those without which the loss is lowest.

    In each of at most six rounds (`ROUNDS`) every head that is left is tried: the model's
    loss is measured without it and without all heads removed before. Those with the lowest
    losses are removed.

    Parameters
    ----------
    number : int
        How many heads to remove: up to six, one a round; of more, a sixth a round, rounded
        up.
    windows : (Tensor, Tensor)
        Inputs and targets, int64 (windows, tokens), on which the losses are measured.

    Returns
    -------
    list of (int, int)
        Layer and head, both from 0.
    """
    removed = []
    at_once = -(-number // ROUNDS)
    while len(removed) < number:
        left = [head for head in every_head() if head not in removed]
        losses = {head: window_losses([*removed, head], *windows).mean() for head in left}
        removed += sorted(losses, key=losses.get)[: min(at_once, number - len(removed))]
    return removed


def every_head():
    """Return all heads of our GPT, a list of (layer, head), both int from 0."""
    config = gpt()[1].config
    return [(layer, head) for layer in range(config.layers) for head in range(config.heads)]


def validation_windows(count):
    """Return windows of the validation sonnets, one after the other, in two halves.

    Parameters
    ----------
    count : int
        How many windows there are at most, in both halves.

    Returns
    -------
    chosen_on, tried_on : (Tensor, Tensor)
        Every second window, and the others: inputs, and targets, the tokens that follow
        them, int64 of shape (windows, tokens). A window has as many tokens as our GPT's
        context, and 64 at most.
    """
    _, validation, _ = sonnets()
    context = min(gpt()[1].config.context, WINDOW)
    starts = torch.arange(0, len(validation) - context - 1, context)[:count]
    inputs, targets = cut_windows(validation, starts, context)
    return (inputs[::2], targets[::2]), (inputs[1::2], targets[1::2])


@torch.no_grad()
def window_losses(removed, inputs, targets):
    """Return our GPT's mean loss in each window without some heads, in nats a token.

    Parameters
    ----------
    removed : list of (int, int)
        Layer and head, both from 0: the heads whose output is 0.
    inputs, targets : int64 Tensor of shape (windows, tokens)
        Numbers of tokens, and of those that follow them.

    Returns
    -------
    float array of shape (windows,)
    """
    model = gpt()[1]
    with ExitStack() as parts:
        for layer, head in removed:
            parts.enter_context(replaced(model.blocks[layer], head))
        logits = model(inputs).transpose(1, 2)  # (windows, vocab_size, tokens)
    return F.cross_entropy(logits, targets, reduction="none").mean(1).numpy()


# --- a toy -------------------------------------------------------------------------------

FEATURES = 5  # numbers that the toy model returns
DIMENSIONS = 2  # numbers through which they go
LONG = 0.5  # an arrow is long whose squared length is above this


def superposition(small=False):
    """Measure how many of five numbers, its features, a model can return through two.

    Parameters
    ----------
    small : bool
        Whether to train from two seeds and in 300 steps each.

    Returns
    -------
    dict
        Of how many features are kept, a number for each seed, where a feature differs from
        0 with a probability of 0.05: ``ours``, the mean; ``interval``, that of the mean at
        95 %; ``n``, how many numbers; ``null``, the mean where it always does; ``holds``,
        whether all five are kept in most trainings, or None if it is too close to say.

        Also ``straight``, the mean number kept without the ReLU; ``all_kept``, the share of
        seeds in which all five are kept.
    """
    seeds = 2 if small else 10
    steps = 300 if small else 3000
    sparse, dense, straight = (
        np.array([train_and_count(seed, steps, density, relu) for seed in range(seeds)])
        for density, relu in ((0.05, True), (1.0, True), (0.05, False))
    )
    return outcome(
        sparse,
        dense.mean(),
        lambda mean, span: above(share_interval(sparse == FEATURES), 0.5),
        straight=float(straight.mean()),
        all_kept=float((sparse == FEATURES).mean()),
    )


def train_and_count(seed, steps, density, relu):
    """Train a toy model that returns five numbers through two; count how many it keeps.

    Each number is uniform between 0 and 1 with probability ``density``, else 0. The model
    is ``relu(W.T @ W @ x + b)``, with ``W`` of shape (2, 5), or the same without ReLU; a
    column of ``W`` is a feature's arrow; the loss is the mean square of what it misses.
    Elhage et al. (2022), without importances.

    Parameters
    ----------
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.
    density : float
        The probability that a number is not 0.
    relu : bool
        Whether the model has the ReLU.

    Returns
    -------
    int
        How many of the five features have an arrow whose squared length is above 0.5
        (`LONG`).
    """
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(DIMENSIONS, FEATURES, generator=generator) * 0.5
    matrix = nn.Parameter(start)
    bias = nn.Parameter(torch.zeros(FEATURES))
    optimizer = torch.optim.Adam([matrix, bias], lr=1e-2)

    def loss_at(_step):
        """Return the mean squared error on 512 new draws of five numbers, a scalar Tensor.

        ``_step`` is not used.
        """
        x = torch.rand(512, FEATURES, generator=generator)
        x = x * (torch.rand(512, FEATURES, generator=generator) < density)
        returned = x @ matrix.T @ matrix + bias
        return F.mse_loss(returned.relu() if relu else returned, x)

    train_model(nn.ParameterList([matrix, bias]), loss_at, steps, [optimizer])
    return int((matrix.detach().pow(2).sum(0) > LONG).sum())
