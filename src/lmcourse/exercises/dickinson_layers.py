"""Checks for the exercises of the chapter *dickinson-layers*."""

from functools import cache, lru_cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch

from lmcourse.data import load_poems
from lmcourse.exercises import Case, Faults, exercise, judge, predict
from lmcourse.exercises.answers import NotTried, Unfit, array, normal, number, unpack
from lmcourse.models import load_bert
from lmcourse.pooling import kept, pool_layers

MANY, NEAR, WITHIN = 40, 5, 12  # poems, their nearest, tokens between longest and shortest
NEAR_TIE = 0.006  # by which a share may differ: one neighbour of 200 may be a near tie


@exercise("dickinson-layers.named", kind="spot the bug")
def named():
    """Check a reader's names of a model's states.

    The answer is a function of the number of states, which returns their names, a list of
    str: "before layer 0" for the first, then "after layer 0", "after layer 1" and so on.
    Oracle: names written out by hand.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    want = ["before layer 0", "after layer 0", "after layer 1", "after layer 2"]
    later = ["after layer 1", "after layer 2", "after layer 3"]
    mistakes = {
        "`states[0]` is named after a layer, but no layer has run yet: every name is "
        "one too high.": [f"after layer {i}" for i in range(4)],
        "there is no layer -1: what goes into the first layer comes out of none, and has a "
        "name of its own.": [f"after layer {i - 1}" for i in range(4)],
        "the first layer is called layer 1; in this book, and in the model's own names, "
        "it is layer 0.": ["before layer 0", *later],
        "`states[0]` is not among the static vectors: position and type are added, and "
        "the sum is normalised.": ["static", *want[1:]],
        "there is one state more than there are layers: a name is missing.": want[:-1],
        "there are as many names as states: one is too many.": [*want, "after layer 3"],
        "each state is named by the layer that comes next; say after which it was made.": [
            f"before layer {i}" for i in range(4)
        ],
        "the order is turned round: the first state is the one before layer 0.": want[::-1],
    }
    yield Case([4], want, mistakes)


@exercise("dickinson-layers.token_mean", kind="spot the bug")
def token_mean():
    """Check a reader's mean over the real tokens of texts.

    The answer is a function of states (texts, tokens, d_model) and mask, bool (texts,
    tokens), True where a token is real. It returns (texts, d_model). Oracle: each text's
    mean, taken by itself.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    lengths = torch.tensor([6, 2, 4, 3])
    mask = torch.arange(6) < lengths[:, None]
    states = normal(4, 6, 4, seed=2) + 3 * ~mask[..., None]  # padding is far from zero
    pairs = zip(states, lengths, strict=True)
    want = torch.stack([text[:n].mean(0) for text, n in pairs])
    count = lengths[:, None]
    total = want * count
    hidden = states * ~mask[..., None]  # only the padding
    mistakes = {
        "the sum is right, but it is divided by the length of the longest text of the "
        "batch: padding is counted, as zeros.": total / 6,
        "padding is averaged in: the mask is not used.": states.mean(1),
        "this is the sum over the real tokens, not a mean.": total,
        "this is the vector of the first token alone, [CLS].": states[:, 0],
        "it is divided by all real tokens of the batch; each text has its own.": (
            total / lengths.sum()
        ),
        "the mask is the wrong way round: only padding is summed.": hidden.sum(1) / count,
        "the mask is the wrong way round: real tokens are set to zero.": hidden.mean(1),
        "each number of a vector is divided by another text's length: keep the axis, "
        "`keepdim=True`.": total / lengths,
        "the sum still has the padding in it; it is divided by the right number.": (
            states.sum(1) / count
        ),
        "the sum still has the padding in it, and each number of a vector is divided by "
        "another text's length: keep the axis, `keepdim=True`.": states.sum(1) / lengths,
    }
    yield Case([states, mask], want, mistakes)


predict(
    "dickinson-layers.padded",
    a="the mask hides padding from the others' attention; its own vectors are computed.",
    b=None,
    c="attention does grow like that, but most of the work is done token by token.",
)


judge(
    "dickinson-layers.bees",
    a=None,
    b="it speaks for Nature, but without it the model still says Nature.",
    c="without it the model is surer of Nature: a rose speaks for Love.",
    d="it matters little here.",
)


predict(
    "dickinson-layers.unlearned",
    a="noise moves every poem; but does it part those that are near each other?",
    b="the weights have the same size; yet fewer neighbours are parted.",
    c=None,
)


@exercise("dickinson-layers.stayed")
def stayed():
    """Check a reader's share of neighbours that stayed from one layer to the next.

    The answer is a function of the neighbours before and after, two int Tensors (poems,
    neighbours) of the numbers of poems, which returns a share for each poem, (poems,), from
    0 to 1. Oracle: sets, row by row; some neighbours are in another order or in another
    poem's row afterwards.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    before = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8], [0, 1, 5, 9], [9, 8, 2, 1]])
    after = torch.tensor([[4, 3, 9, 8], [5, 6, 8, 7], [2, 3, 4, 6], [2, 5, 3, 0]])
    pairs = zip(before.tolist(), after.tolist(), strict=True)
    want = torch.tensor([len({*one} & {*two}) / 4 for one, two in pairs])
    anywhere = torch.isin(before, after).double().mean(1)
    mistakes = {
        "you compare place by place: a neighbour that is now the third instead of the "
        "first has stayed, too.": (before == after).double().mean(1),
        "you search the rows of all poems: only the same poem's row counts.": anywhere,
        "this is how many stayed, not their share.": 4 * want,
        "this is the share of those that left.": 1 - want,
        "a share is a number from 0 to 1.": 100 * want,
        "nothing ever agrees: one entry need agree, `any`, not `all`; and entries of a "
        "tensor are never equal in a set, `.tolist()` first.": 0 * want,
        "you compare sorted rows entry by entry: one newcomer shifts the others.": (
            (before.sort(1)[0] == after.sort(1)[0]).double().mean(1)
        ),
        "divided by 10; these rows have another number of neighbours.": 0.4 * want,
        "one number for each poem is expected, not the mean of all.": want.mean(),
    }
    yield Case([before, after], want, mistakes)


@cache
def _bert():
    """Return the tokenizer and the `BertModel` of the course; they are loaded once."""
    return load_bert()


def _forty(chosen):
    """Return the positions of forty poems as a list, or say what stands there instead.

    ``chosen`` : what the reader hands in: list, tuple, array or Series of 40 (`MANY`) whole
    numbers, rows of the table of poems. Returns a list of int; anything else is `Unfit`.
    """
    rows = chosen.tolist() if isinstance(chosen, (np.ndarray, pd.Series)) else chosen
    rows = rows if isinstance(rows, (list, tuple)) else [rows]
    if any(isinstance(row, str) for row in rows):
        raise Unfit("these are texts; their positions in the list `texts` are expected.")
    chosen = array(chosen)
    if chosen.shape != (MANY,) or not np.issubdtype(chosen.dtype, np.integer):
        raise Unfit(f"{MANY} positions in `texts` are expected, whole numbers in one list.")
    return chosen.tolist()


def _handed_in(answer):
    """Return the positions and the share, and how many poems there are to choose from.

    Parameters
    ----------
    answer : tuple
        The reader's two: positions of forty poems in the table of poems, a sequence of int;
        and which share of a poem's five nearest neighbours the last layer keeps, mean of
        the forty, 0 to 1, or None.

    Returns
    -------
    SimpleNamespace
        ``chosen``, a list of int; ``share``, as it was handed in; ``last``, the last
        position there is, an int. If the share is None, ``share`` alone.

    Raises
    ------
    NotTried
        If one of the two is ``...``.
    Unfit
        If the positions aren't forty whole numbers.
    """
    chosen, share = unpack(answer, 2, "the forty positions, and the share")
    if chosen is ... or share is ...:
        raise NotTried
    if share is None:
        return SimpleNamespace(share=None)
    last = len(load_poems()) - 1
    return SimpleNamespace(chosen=_forty(chosen), share=share, last=last)


@lru_cache(maxsize=1)
def _pooled(*chosen):
    """Read the poems at these positions with the course's BERT; the last call is kept.

    ``chosen`` : int, positions in the table of poems. Returns a `PooledLayers`, which has
    ``levels``, the mean over each poem's tokens at each level, a Tensor (layers + 2, poems,
    d_model), and ``tokens``, how many each has, an integer Tensor (poems,).
    """
    texts = load_poems().text.tolist()
    return pool_layers([texts[i] for i in chosen], *_bert())


def _spread(answer):
    """Return how many tokens the longest of the chosen poems has more than the shortest.

    ``answer`` : the reader's (positions of forty poems, share). Returns a SimpleNamespace
    with ``wide``, an int.
    """
    tokens = _pooled(*_handed_in(answer).chosen).tokens
    return SimpleNamespace(wide=int(tokens.max() - tokens.min()))


def _shares(answer):
    """Return the answer's share, what is right, and what known mistakes give.

    A share is the mean over the forty poems: which part of a poem's five nearest of the
    others (`NEAR`), before the last layer, are among them after it.

    Parameters
    ----------
    answer : tuple
        The reader's: positions of forty poems, and the share.

    Returns
    -------
    SimpleNamespace
        Floats: ``got``, the answer's share; ``want``, the right one; ``of_ten``, that of
        ten neighbours; ``layer_before``, that which the layer before the last keeps;
        ``that_left`` and ``percent``, the right share taken from 1, and times 100.
    """
    handed_in = _handed_in(answer)
    before, below, top = _pooled(*handed_in.chosen).levels[-3:]
    want = kept(below, top, NEAR).mean().item()
    return SimpleNamespace(
        got=number(handed_in.share),
        want=want,
        of_ten=kept(below, top, 10).mean().item(),
        layer_before=kept(before, below, NEAR).mean().item(),
        that_left=1 - want,
        percent=100 * want,
    )


def _is(name):
    """Return a function that tells whether the share seen is that of a known mistake.

    ``name`` : the attribute of what was seen that holds the share to which the mistake
    leads: "of_ten", "layer_before", "that_left" or "percent". The function takes what was
    seen, with ``got``, the answer's share, and ``want``, the right one; shares are equal if
    they differ by less than 0.006 (`NEAR_TIE`). It returns a bool.
    """
    return lambda seen: _is_another(seen) and abs(seen.got - getattr(seen, name)) < NEAR_TIE


def _is_another(seen):
    """Return whether the share seen is not right, to 0.006 (`NEAR_TIE`).

    ``seen`` : SimpleNamespace with ``got``, the answer's share, and ``want``, the right
    one, floats. A NaN is not right.
    """
    return not abs(seen.got - seen.want) < NEAR_TIE


@exercise("dickinson-layers.equals", kind="experiment")
def equals():
    """Check forty poems of nearly equal length, and how many neighbours they keep.

    The answer is a pair: the positions of forty poems (`MANY`), whose numbers of tokens may
    be 12 apart at most (`WITHIN`), and the mean share of a poem's five nearest neighbours
    (`NEAR`) that the last layer keeps among them. Oracle: the poems are read again, and the
    share is counted again.

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    handed_in = {
        "the share is still missing; it is `None`.": lambda seen: seen.share is None,
        "a position lies outside 0 to {last}.": (
            lambda seen: not 0 <= min(seen.chosen) <= max(seen.chosen) <= seen.last
        ),
        "a poem is in it twice; are these positions, or lengths?": (
            lambda seen: len({*seen.chosen}) < MANY
        ),
    }
    yield Faults(_handed_in, handed_in)
    too_wide = "the lengths are {wide} tokens apart; take poems of one length."
    yield Faults(_spread, {too_wide: lambda seen: seen.wide > WITHIN})
    shares = {
        "you took ten nearest, not five.": _is("of_ten"),
        "this is the layer before the last.": _is("layer_before"),
        "this is the share of those that left.": _is("that_left"),
        "a share is a number from 0 to 1.": _is("percent"),
        "the check reads your forty poems again and finds another share. Is yours of the "
        "nearest among the forty, or among all poems? Take the forty's vectors first.": (
            _is_another
        ),
    }
    yield Faults(_shares, shares)
