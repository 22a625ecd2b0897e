"""Checks for the exercises of the chapter *attention*."""

import math
from functools import cache, partial

import numpy as np
import torch
from torch.nn import functional as F

from lmcourse.exercises import Case, Faults, exercise, judge, predict, run
from lmcourse.exercises.answers import Called, array, normal, number, unpack
from lmcourse.models import load_bert
from lmcourse.pronouns import crossings

# Softmax answers to differences of scores, which have become ten times greater.
predict(
    "attention.sharper",
    a="the division makes a row sum to one again, but not in the old proportions: "
    "exponentials of greater differences lie further apart.",
    b=None,
    c="even weights need even scores; these differ more than before.",
)


LARGEST_FALL = 4  # by which a lean may fall, as it lies between -2 and 2


def _called(answer, *inputs):
    """Return the names of the functions of PyTorch that an answer calls, such as "matmul".

    Parameters
    ----------
    answer : callable
        The reader's function.
    *inputs
        What it is called with.

    Returns
    -------
    list of str
        One name for each call, in the order of the calls.
    """
    with Called() as watch:
        run(answer, *inputs)
    return watch.names


@exercise("attention.all_at_once")
def all_at_once():
    """Check a reader's attention of all queries at once.

    The answer is a function of query (..., queries, d_head), key (..., keys, d_head) and
    value (..., keys, d_value), which returns the output and the weights. Oracle: PyTorch's
    attention, and a softmax of products of pairs. There are two widths, leading axes, and
    no two sizes alike. An answer that loops over the queries passes every `Case` and fails
    in the `Faults` only: it calls PyTorch more often for more queries.

    Yields
    ------
    Case
        How the answer is called (``ask``), the right result, and those of known mistakes.
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    for lead, width in (((), 4), ((), 9), ((2, 3), 9)):
        query = normal(*lead, 5, width, seed=1)
        key = normal(*lead, 7, width, seed=2)
        value = normal(*lead, 7, 6, seed=3)
        yield from _attention_cases(*(x.double() for x in (query, key, value)))
    loop = "right, but by a loop over the queries; one matrix product has them all."
    yield Faults(_calls, {loop: lambda calls: calls[0] != calls[1]})


def _calls(answer):
    """Return how often an answer calls PyTorch for two queries, and for nine: [int, int].

    ``answer`` : the reader's callable, from query (queries, 4), key (7, 4) and value (7,
    6).
    """
    return [len(_called(answer, normal(n, 4), normal(7, 4), normal(7, 6))) for n in (2, 9)]


def _attention_cases(query, key, value):
    """Yield what an answer's weights, and then its output, are compared with.

    Parameters
    ----------
    query : Tensor of shape (..., queries, d_head)
    key : Tensor of shape (..., keys, d_head)
    value : Tensor of shape (..., keys, d_value)

    Yields
    ------
    Case
        A function that calls the answer with the three (``ask``), the right weights or
        output, and known mistakes: what the reader is told → what the mistake gives. Where
        there are leading axes and the answer raises an error, ``instead`` says that it fits
        one matrix only.
    """

    def ask(place, answer):
        """Call an answer with query, key and value; return one of the two that it gives.

        ``place`` : 0 for the output, 1 for the weights; ``answer`` : callable. Anything but
        a pair is `Unfit`.
        """
        what = "output and weights, in this order"
        return unpack(run(answer, query, key, value), 2, what)[place]

    batch = (
        "{error}. Each matrix is right, a batch of heads is not: swap the last two axes "
        "only, with `mT`."
    )
    stopped = {"stopped with": batch} if query.ndim > 2 else {}
    scores = torch.einsum("...qd,...kd->...qk", query, key)  # (..., queries, keys)
    root = math.sqrt(key.shape[-1])
    theirs = F.scaled_dot_product_attention(query, key, value)

    def over(divisor, axis=-1):
        """Return the weights if the scores are divided by a number: (..., queries, keys).

        ``divisor`` : that number; ``axis`` : int, the axis of the softmax, by default the
        keys.
        """
        return (scores / divisor).softmax(axis)

    right = over(root)
    mistakes = {
        "these are scores, not weights: the softmax is missing.": scores / root,
        "the scores are not divided by the square root of d_head.": over(1),
        "the scores are divided by d_head itself, not by its square root.": over(root**2),
        "the scores are divided by 2, which is right for a width of 4 only; take the width "
        "of the keys that are given.": over(2),
        "the scores are divided by the root of the page's `d_head`, 32; take the width of "
        "the keys that are given.": over(math.sqrt(32)),
        "the scores are divided by the root of the number of keys; the width of a key, its "
        "last axis, is asked for.": over(math.sqrt(key.shape[-2])),
        "the scores are divided by the root of the width of a value; queries and keys are "
        "compared, so their width counts.": over(math.sqrt(value.shape[-1])),
        "each column sums to 1: the softmax runs over the queries. It must run over the "
        "keys, the last axis.": over(root, -2),
        "all weights together sum to 1; each row must, since every query has its own.": (
            (scores / root).flatten().softmax(0).view_as(scores)
        ),
        "output and weights, in this order; yours are the other way round.": theirs,
        "the scores are divided by the root of d_model; what is added up is d_head "
        "products, so the root of d_head counts.": over(math.sqrt(384)),
    }
    yield Case([], right, mistakes, ask=partial(ask, 1), instead=stopped)
    mistakes = {
        "the weights are right; the output is the plain mean of the values.": (
            value.mean(-2, keepdim=True).expand(theirs.shape)
        ),
        "the weights are right; the output averages the keys. The values are asked for.": (
            torch.einsum("...qk,...kd->...qd", right, key)
        ),
    }
    yield Case([], theirs, mistakes, ask=partial(ask, 0), instead=stopped)


def _row_by_row(scores, mask):
    """Return attention weights, computed row by row from the allowed scores alone.

    Parameters
    ----------
    scores : Tensor of shape (..., queries, keys)
    mask : bool Tensor of that shape
        True where a query may attend.

    Returns
    -------
    Tensor of that shape
        Each row's softmax over what is allowed; 0 elsewhere.
    """
    weights = torch.zeros_like(scores)
    for place in np.ndindex(scores.shape[:-1]):
        weights[place][mask[place]] = scores[place][mask[place]].softmax(0)
    return weights


predict(
    "attention.future",
    a="shares of a row sum to one, but a row whose keys have not changed keeps its shares.",
    b="“it” may not attend to the last word: the mask hides what stands later.",
    c=None,
)


@exercise("attention.masked_softmax", kind="spot the bug")
def masked_softmax():
    """Check a reader's softmax of scores under a mask.

    The answer is a function of scores and mask, two Tensors (..., queries, keys); the mask
    is True where a query may attend. It returns the weights, and does without PyTorch's
    softmax: the names of the functions that it calls are looked at. Oracle: the softmax of
    each row's allowed scores alone, for small scores and enormous ones.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    scores = normal(2, 4, 4, seed=5).double()
    mask = normal(2, 4, 4, seed=6) < 0.3
    mask |= torch.eye(4, dtype=torch.bool)  # every row and column allows something
    hidden = scores.masked_fill(~mask, -math.inf)
    mistakes = {
        "you mask after the softmax: the rows no longer sum to 1, and hidden scores still "
        "count in the denominator.": scores.softmax(-1) * mask,
        "each column sums to 1: the softmax runs over the queries. It must run over the "
        "keys, the last axis.": hidden.softmax(-2),
        "the mask is the wrong way round: True means that a query may attend there.": (
            scores.masked_fill(mask, -math.inf).softmax(-1)
        ),
        "a hidden score became 0, which is a score like any other; it must become so low "
        "that its exponential is 0.": (scores * mask).softmax(-1),
        "the mask changes nothing yet.": scores.softmax(-1),
        "all is NaN: 0 × ∞ is no number, so a mask times infinity spoils what is allowed, "
        "too. Put minus infinity in the hidden places only.": scores * math.nan,
    }
    ready_made = "do without PyTorch's softmax: exponentials, and a sum to divide by."
    forbidden = {ready_made: lambda names: any("softmax" in name for name in names)}
    yield Faults(lambda answer: _called(answer, scores, mask), forbidden)
    yield Case([scores, mask], _row_by_row(scores, mask), mistakes)
    large = 1e4 * scores
    overflows = (
        "right for small scores, but exp(10000) overflows: subtract each row's greatest "
        "allowed score first. The weights stay the same."
    )
    least = float(large.min()) - 1
    yield from _large_scores(large.masked_fill(~mask, least), mask, overflows)
    divides = (
        "0/0: a hidden score is the greatest of its row, and beside it every allowed "
        "exponential is 0. Subtract the greatest of the allowed scores."
    )
    yield from _large_scores(torch.where(mask, scores, 1e4), mask, divides)


def _large_scores(scores, mask, not_finite):
    """Yield what is asked of an answer with scores as large as ten thousand.

    Parameters
    ----------
    scores : Tensor of shape (..., queries, keys)
    mask : bool Tensor of that shape
        True where a query may attend.
    not_finite : str
        What is said of an answer that returns infinities or NaN.

    Yields
    ------
    Faults
        What no answer may show: numbers that are not finite, or weight on a hidden score.
    Case
        The right weights, by `_row_by_row`: each row's softmax over its allowed scores.
    """
    faults = {
        not_finite: lambda got: not np.isfinite(got).all(),
        "a hidden score of ten thousand shows through: the penalty is finite, and a "
        "score may be greater. Only minus infinity is below every score.": (
            lambda got: got.shape == mask.shape and np.abs(got[~mask.numpy()]).max() > 1e-9
        ),
    }
    yield Faults(lambda answer: array(run(answer, scores, mask)), faults)
    yield Case([scores, mask], _row_by_row(scores, mask))


@exercise("attention.merge_heads", kind="spot the bug")
def merge_heads():
    """Check a reader's function that lays the outputs of the heads side by side.

    The answer is a function of x (batch, heads, tokens, d_head), which returns (batch,
    tokens, heads * d_head). Oracle: `torch.cat` of the heads.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    x = torch.arange(120.0).reshape(2, 3, 5, 4)  # (batch, heads, tokens, d_head)
    mistakes = {
        "the shape is right, the contents are not: `view` or `reshape` read the numbers in "
        "memory order, so a row mixes several tokens of one head. Bring heads next to "
        "d_head first.": x.reshape(2, 5, 12),
        "each head's numbers are scattered: d_head stands before heads. A head's numbers "
        "must stay together.": x.permute(0, 2, 3, 1).flatten(2),
        "tokens and d_head have changed places; heads and tokens must, so that heads stand "
        "beside d_head.": x.transpose(2, 3).reshape(2, 5, 12),
        "heads and d_head have changed places; heads and tokens must, so that heads stand "
        "beside d_head.": x.transpose(1, 3).reshape(2, 5, 12),
        "each token's numbers stand one below the other: after `permute` or `transpose` "
        "the axes are in another order than the shape says.": (
            x.permute(0, 2, 3, 1).reshape(2, 12, 5).mT
        ),
        "the heads are added up; they must stand side by side.": x.sum(1),
    }
    yield Case([x], torch.cat(x.unbind(1), dim=-1), mistakes)


# What the attention of one head can support, and what it cannot.
judge(
    "attention.death",
    a="this is one head of many; these pictures do not show what the others make of “He”.",
    b=None,
    c="go back to the first picture: the head attends to a street, too.",
)


@cache
def _bert():
    """Return the tokenizer and the `BertModel` of the course; they are loaded once."""
    return load_bert()


@torch.no_grad()
def _vectors(texts):
    """Return the mean of each text's states after the last layer, as a unit vector.

    Parameters
    ----------
    texts : list of str

    Returns
    -------
    float64 Tensor of shape (texts, d_model)
        On the CPU. The states are those of the course's BERT (`_bert`).
    """
    tokenizer, bert = _bert()
    batch = tokenizer(texts, padding=True, return_tensors="pt").to(bert.device)
    mask = batch["attention_mask"][..., None]
    states = bert(**batch).last_hidden_state * mask  # (texts, tokens, d_model)
    return F.normalize(states.sum(1) / mask.sum(1), dim=-1).cpu().double()


@cache
def _falls():
    """Return how much the mean vector of a sentence leans less to the animal with "wide".

    The sentences tell of an animal that did not cross a place because "it" was too tired,
    or too wide. The lean of a sentence is the inner product of its vector with a
    difference: the vector of "The ANIMAL was tired." minus that of "The PLACE was tired." A
    text's vector is the mean of its states after BERT's last layer, at length 1
    (`_vectors`). The fall is the mean lean of the 24 sentences that end in "tired"
    (`crossings`) minus that of the same sentences with "wide".

    Returns
    -------
    falls : dict of tuple of int to float
        Key: which of the nouns (0: the animal, 1: the place) were replaced by "thing", such
        as () for neither and (0, 1) for both.
    lean : float
        The mean lean with "tired" where both nouns are replaced.
    """
    pairs = [crossings(end) for end in ("tired", "wide")]
    plain = [_vectors([f"The {s.nouns[n]} was tired." for s in pairs[0]]) for n in (0, 1)]
    direction = plain[0] - plain[1]  # (pairs, d_model)

    def texts(sentences, hidden):
        """Return the text of each sentence, with "thing" in place of some nouns.

        Parameters
        ----------
        sentences : list of Sentence
            Each with ``text`` (str) and ``nouns`` (animal and place, two str).
        hidden : sequence of int
            Which of the nouns are replaced: 0 the animal, 1 the place.

        Returns
        -------
        list of str
        """
        changed = []
        for sentence in sentences:
            text = sentence.text
            for noun in hidden:
                text = text.replace(sentence.nouns[noun], "thing")
            changed.append(text)
        return changed

    leans = {
        hidden: [
            (_vectors(texts(each, hidden)) * direction).sum(1).mean().item()
            for each in pairs
        ]
        for hidden in ((), (0,), (1,), (0, 1))
    }
    return {hidden: tired - wide for hidden, (tired, wide) in leans.items()}, leans[0, 1][0]


@exercise("attention.fooled", kind="experiment")
def fooled():
    """Check a reader's measurement of what "it" means when both nouns are called "thing".

    The sentences tell of an animal that did not cross a place because "it" was too tired,
    or too wide. A sentence leans to the animal by the inner product of its mean vector in
    BERT with the vector of "The ANIMAL was tired." minus that of "The PLACE was tired.",
    all of length 1. The answer is a number: how much this lean falls when the sentences end
    in "wide" in place of "tired", a mean over 24 pairs of sentences. A lean is between -2
    and 2, so a fall is at most `LARGEST_FALL`, 4. Oracle: `_falls`, which measures it by
    other code.

    Yields
    ------
    Faults
        First of the answer as an array (is it one number?), then of the number: what the
        reader is told → a function of the array or number that says whether it is so.
    """
    early = {
        "these are 24 falls, one a pair; their mean is asked for.": (
            lambda got: got.shape == (24,)
        ),
        "this is True or False; hand in the mean fall itself, a number.": (
            lambda got: got.dtype == bool
        ),
    }
    yield Faults(array, early)

    def is_fall(*hidden, times=1):
        """Return a function that tells whether a number is ``times`` a fall, to 2 %.

        The function takes the reader's number, a float, and returns a bool. Only when it is
        called are the falls measured (`_falls`), since that needs BERT. A fall is the mean
        lean of the sentences to the animal with "tired", less that with "wide".

        ``hidden`` : which nouns are called "thing" in the measured sentences: 0, the
        animal; 1, the place; none by default. ``times`` : a number, such as -1 for the
        mistake of the wrong sign.
        """
        return lambda got: _is_near(got, times * _falls()[0][hidden])

    faults = {
        "this is the fall with the nouns in their places: nothing has been replaced.": (
            is_fall()
        ),
        "the animals are replaced, the places are not: write *thing* for both.": is_fall(0),
        "the places are replaced, the animals are not: write *thing* for both.": is_fall(1),
        "the sign is turned: the lean with *tired*, less the lean with *wide*.": (
            is_fall(0, 1, times=-1)
        ),
        "this is the sum over the pairs; the mean is asked for.": is_fall(0, 1, times=24),
        "this is the lean with *tired*; take off the lean with *wide*.": (
            lambda got: _is_near(got, _falls()[1])
        ),
        "nothing is left to lean to: replace the nouns in the long sentences only, not in "
        "the plain ones they are compared with.": lambda got: abs(got) < 1e-6,
        "a negative number says that the lean rises. Take the lean with *tired*, less the "
        "lean with *wide*.": lambda got: got < 0,
        "this is too large: a lean is the difference of two cosines, each at most 1.": (
            lambda got: got > LARGEST_FALL
        ),
        "the check measures the 48 sentences again and finds another number. Is the lean "
        "still that towards the animals' and away from the places' plain sentences?": (
            lambda got: not _is_near(got, _falls()[0][0, 1])
        ),
    }
    yield Faults(number, faults)


def _is_near(got, value):
    """Return whether a number is within 2 % of another, which was measured by other code.

    ``got`` : float, the answer's; ``value`` : float, ours.
    """
    return math.isclose(got, value, rel_tol=0.02)
