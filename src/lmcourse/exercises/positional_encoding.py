"""Checks for the exercises of the chapter *positional-encoding*."""

import math
from functools import cache, partial
from types import SimpleNamespace

import torch
from torch.nn import functional as F

from lmcourse.exercises import Case, Faults, exercise, judge, predict, run
from lmcourse.exercises.answers import Unfit, array, normal, rotated
from lmcourse.lengths import losses_by_position, train_position_model
from lmcourse.positions import frequencies, rotate

# One block's last output is made of a sum over what it attends to.
predict(
    "positional-encoding.shuffled_past",
    a=None,
    b="the earlier words do attend to others now, but one block compares and averages what "
    "the words were before it. Each score is still made of two words alone.",
    c="a feed-forward network works on each word’s own vector. What attention has not put "
    "in, it cannot see.",
)


@exercise("positional-encoding.turn")
def turn():
    """Check a reader's rotation of vectors by their positions (rotary positions, RoPE).

    The answer is a function of x (tokens, d_head) and speeds (d_head / 2,), radians a
    position for each pair of neighbouring numbers. It returns a Tensor of x's shape.
    Oracle: complex numbers, at the speeds that a base of 10,000 gives and at others.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    x = normal(5, 6, seed=2).double()  # (tokens, d_head)
    speeds = torch.tensor([1.0, 0.3, 0.05]).double()

    def turned(speeds, layout=1, start=0, step=1, more=0.0):
        """Rotate the pairs of x, (5, 6), as complex numbers, with one detail changed.

        Parameters
        ----------
        speeds : Tensor of shape (pairs,)
            The angle of each pair from one position to the next, in radians.
        layout : int
            1: pair i is the numbers 2i and 2i + 1; 0: the numbers i and i + 3.
        start, step : int
            The first position, and how far the next one is.
        more : float
            Added to every angle.

        Returns
        -------
        Tensor of the shape of x
        """
        angle = (step * torch.arange(5.0)[:, None] + start).double() * speeds + more
        parts = x.unflatten(-1, (-1, 2)) if layout else x.unflatten(-1, (2, -1)).mT
        numbers = torch.view_as_complex(parts.contiguous())
        numbers = numbers * torch.polar(torch.ones_like(angle), angle)
        pairs = torch.view_as_real(numbers)
        return (pairs if layout else pairs.mT).flatten(-2)

    angle = torch.arange(5.0)[:, None].double() * speeds
    right = turned(speeds)
    b_cos = x[:, 1::2] * angle.cos()  # a pair (a, b) becomes a cos - b sin, a sin + b cos
    a, b = right[:, 0::2], right[:, 1::2]

    def beside(second):
        """Return vectors with the right first number of each pair, and another second one.

        ``second`` : Tensor (tokens, pairs), as ``a``, the right first numbers. Returns
        (tokens, 2 * pairs), the two numbers of a pair next to each other.
        """
        return torch.stack((a, second), -1).flatten(-2)

    mistakes = {
        "nothing is rotated.": x,
        "the hands turn backwards: a sign is wrong.": turned(-speeds),
        "the first half is paired with the second; here neighbours make a pair.": turned(
            speeds, layout=0
        ),
        "off by one: positions count from 0; the first token stays.": turned(speeds, 1, 1),
        "all pairs turn at one speed; each has its own.": turned(speeds[:1].expand(3)),
        "the speeds are in the wrong order: the first pair has the first.": turned(
            speeds.flip(0)
        ),
        "`speeds` is not used; these are the usual ones.": rotated(x),
        "the angle is twice what it should be.": turned(2 * speeds),
        "the angle is half of what it should be.": turned(speeds / 2),
        "positions are counted from the end; the first token has position 0.": turned(
            speeds, 1, 4, -1
        ),
        "all tokens are rotated alike: the position is missing.": turned(speeds, 1, 1, 0),
        "the numbers are right, but in the order of the half-split layout: a and b of a "
        "pair must be neighbours.": right.unflatten(-1, (-1, 2)).mT.flatten(-2),
        "the second number of a pair is a sin + b cos; the minus belongs to the first.": (
            beside(b - 2 * b_cos)
        ),
        "both numbers of a pair are the same: the second is a sin + b cos.": beside(a),
        "x is still in it: return the rotated vectors alone.": x + right,
        "the speeds are in radians already; nothing has to be converted.": turned(
            speeds * math.pi / 180
        ),
        "a was overwritten before b was computed: both need the old a.": beside(
            a * angle.sin() + b_cos
        ),
        "sine and cosine have changed places.": turned(-speeds, more=math.pi / 2),
    }
    yield Case([x, speeds], right, mistakes)
    yield Case([normal(4, 2, seed=3), frequencies(2)], rotated(normal(4, 2, seed=3)))


@exercise("positional-encoding.values_too", kind="spot the bug")
def values_too():
    """Check a reader's attention with rotary positions, which must leave the values alone.

    The answer is a function of the fused projections (heads, tokens, 3 * d_head), each
    token's query, key and value end to end, and of positions (tokens,). It returns the
    output (heads, tokens, d_head). Oracle: PyTorch's attention on queries and keys turned
    by complex numbers.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    fused = normal(2, 5, 12, seed=5).double()  # (heads, tokens, 3 * d_head)
    positions = torch.tensor([3, 4, 5, 6, 7])
    query, key, value = fused.chunk(3, -1)
    attended = F.scaled_dot_product_attention

    def turn(x, half=False):
        """Return x (..., tokens, d_head), rotated by the positions given to the answer.

        ``half`` : bool, whether a pair is a number of the first half and one of the second.
        """
        return rotated(x, positions.tolist(), half)

    q = turn(query)
    k = turn(key)
    first = turn(fused).chunk(3, -1)
    back = [rotated(x, (-positions).tolist()) for x in (query, key)]
    wide = attended(*turn(fused[..., :8]).chunk(2, -1), value)
    mistakes = {
        "the values are still rotated, and each third is rotated at the speeds of a vector "
        "three times as wide: separate first, then rotate.": attended(*first),
        "to count from the first token only hides the mistake: the three are still one "
        "vector, and the values are rotated with it.": attended(
            *rotated(fused).chunk(3, -1)
        ),
        "query and key are rotated as one vector: separate these, too.": wide,
        "query and key have changed places.": attended(k, q, value),
        "the values are left alone, but queries and keys are rotated at the speeds of a "
        "vector three times as wide: separate first, then rotate.": attended(
            *first[:2], value
        ),
        "the values are rotated, too: the output then depends on where the text begins. "
        "Rotate what is compared, not what is handed over.": attended(q, k, turn(value)),
        "the keys are not rotated: then the score depends on the query’s position, not on "
        "the offset.": attended(q, key, value),
        "the queries are not rotated: then the score depends on the key’s position, not on "
        "the offset.": attended(query, k, value),
        "nothing is rotated: the positions are not used.": attended(query, key, value),
        "queries and keys are rotated backwards: a sign is wrong.": attended(*back, value),
        "`positions` is not used: this text begins at position 3. (The scores are right, "
        "because they depend on offsets only; so the values must be rotated.)": attended(
            rotated(query), rotated(key), rotated(value)
        ),
        "queries and keys are rotated in the half-split layout; these are interleaved.": (
            attended(turn(query, half=True), turn(key, half=True), value)
        ),
    }
    both = "these are output and weights; return the output alone: `[0]`."
    yield Faults(partial(_is_pair, fused, positions), {both: lambda is_pair: is_pair})
    yield Case([fused, positions], attended(q, k, value), mistakes)


def _is_pair(fused, positions, answer):
    """Return whether an answer gives a tuple of two, such as output and weights.

    Parameters
    ----------
    fused : Tensor of shape (heads, tokens, 3 * d_head)
        Queries, keys and values, end to end.
    positions : int64 Tensor of shape (tokens,)
    answer : callable
        The reader's function of these two.

    Returns
    -------
    bool
    """
    got = run(answer, fused, positions)
    return isinstance(got, tuple) and len(got) == 2


# Which of six pairs shows new angles that matter.
predict(
    "positional-encoding.pair",
    a="pair 0 comes round five times in 32 characters, so it has shown all its angles. "
    "If it is slowed, it no longer separates three back from two.",
    b="with a base of 10,000 that would be right. With this base another pair is the first "
    "that has not come round.",
    c=None,
    d="it has hardly turned in 32 characters, and hardly turns in 128: it says nothing, "
    "right or wrong.",
)

# What reads on with the far keys out of sight, and what that shows.
judge(
    "positional-encoding.window",
    a=None,
    b="a model that hides what is far back behaves on a long text as on a short one: it "
    "never meets a new offset. Does it ever attend to the first page?",
    c="a loss says how well the next token is guessed, whatever it is guessed from. It "
    "stays low on long texts, and that does tell you something.",
)


_hidden = cache(partial(train_position_model, "rotary", 120))


def _read(base, length, seed, answer):
    """Train a rotary model, and read texts four times as long with an answer's speeds.

    The model answers two questions at each position; here the second counts, which
    character stood three positions back. It is trained once for 120 steps (`_hidden`) and
    kept. A head's query and key have six pairs of numbers, each with a speed: by how many
    radians it turns from one position to the next.

    Parameters
    ----------
    base : float
        Pair i turns by base^(-i / 6) radians a position in training; such as 5000.
    length : int
        Characters of a training text.
    seed : int
        Of the model's first weights, and of its texts.
    answer : callable
        The reader's, from the speeds of training, a Tensor (6,), and ``length`` to other
        speeds.

    Returns
    -------
    SimpleNamespace
        ``speeds`` and ``usual``, Tensors of shape (6,): the answer's and those of training;
        ``new``, a bool Tensor (6,): pairs that turn by less than a whole turn within a
        training text, so that longer texts show them new angles; ``near`` and ``far``, the
        model's mean losses with the answer's speeds at trained positions (from the fourth
        on) and at the last ``length``, in nats; ``length``, as given.

    Raises
    ------
    Unfit
        If the answer does not return six finite numbers.
    """
    usual = frequencies(12, base)
    speeds = array(run(answer, usual, length))
    if speeds.shape != (6,):
        shape = tuple(speeds.shape)
        raise Unfit(f"six speeds are expected, one a pair; the shape of yours is {shape}.")
    speeds = torch.tensor(speeds.astype(float))
    if not torch.isfinite(speeds).all():
        raise Unfit("a speed is a finite number of radians a token.")
    turned = partial(rotate, speeds=speeds)
    model = _hidden(seed, length, base=base)
    losses = losses_by_position(model, 4 * length, rotate=turned)[1]
    near = losses[3:length].mean().item()
    far = losses[-length:].mean().item()
    new = 2 * math.pi / usual > length
    measured = {"near": near, "far": far, "length": length}
    return SimpleNamespace(speeds=speeds, usual=usual, new=new, **measured)


def _counts_badly(seen):
    """Return whether a model's losses say that it hardly finds the character three back.

    ``seen`` : SimpleNamespace with ``near`` and ``far``, its losses in nats at trained
    positions and far beyond; 0.5 and 1 are too much.
    """
    return max(2 * seen.near, seen.far) >= 1


def _moved(seen):
    """Return whether a pair that needs no other speed has one.

    Those pairs of a rotary model made at least a whole turn within a training text, so they
    showed all their angles there. Changing their speeds is a mistake.

    ``seen`` : SimpleNamespace with ``speeds`` and ``usual``, Tensors (6,), the speeds of
    the answer and of the training in radians a position; ``new``, a bool Tensor (6,), the
    pairs that did not make a whole turn. Speeds that differ by at most 2 % of the fastest
    count as equal.
    """
    return (seen.speeds - seen.usual)[~seen.new].abs().max() > 0.02 * seen.usual.max()


def _by_length(seen):
    """Return whether an answer slows by the length's root or quarter, not by four.

    Texts are four times as long as in training, whatever the length, so four is right for
    the pairs to be slowed. Their mean factor counts, to 0.1. For a length of 16 root and
    quarter are four, too: then this is False.

    ``seen`` : SimpleNamespace with ``speeds`` and ``usual``, Tensors (6,), the speeds of
    the answer and of the training in radians a position; ``new``, a bool Tensor (6,), the
    pairs that made no whole turn within a training text; ``length``, an int, the characters
    of such a text.
    """
    factor = (seen.usual / seen.speeds)[seen.new].mean().item()
    length = seen.length
    return length > 16 and min(abs(factor - length**0.5), abs(factor - length / 4)) < 0.1


def _without_pi(seen):
    """Return the speeds (6,) of a reader who takes 1 over a speed for the wavelength.

    It is 2π over the speed. So too many pairs count as having made a whole turn within a
    training text; only the others are slowed, to a quarter.

    ``seen`` : SimpleNamespace with ``usual``, a Tensor (6,), the speeds of training in
    radians a position, and ``length``, an int, the characters of a training text.
    """
    return torch.where(1 / seen.usual > seen.length, seen.usual / 4, seen.usual)


def _first_alone(seen):
    """Return the speeds (6,) of a reader who slows one pair of those that must be slowed.

    A rotary model's pairs turn at falling speeds. Those that made no whole turn within a
    training text meet new angles on longer texts; all of them must be slowed to a quarter.
    This mistake slows the first of them alone.

    ``seen`` : SimpleNamespace with ``usual``, a Tensor (6,), the speeds of training in
    radians a position, and ``new``, a bool Tensor (6,), the pairs that made no whole turn.
    """
    first = torch.arange(6) == int(seen.new.int().argmax())
    return torch.where(first, seen.usual / 4, seen.usual)


def _too_slow(seen):
    """Return whether an answer slows all new pairs sixfold or more; fourfold is right.

    ``seen`` : SimpleNamespace with ``speeds`` and ``usual``, Tensors (6,), the speeds of
    the answer and of the training in radians a position, and ``new``, a bool Tensor (6,),
    the pairs that made no whole turn within a training text. Returns a bool Tensor without
    axes.
    """
    return (seen.speeds[seen.new].abs() < seen.usual[seen.new] / 6).all()


@exercise("positional-encoding.mended", kind="experiment")
def mended():
    """Check a reader's speeds with which a rotary model reads texts longer than it learned.

    The answer is a function of the speeds of training (d_head / 2,), in radians a position,
    and the trained length, which returns other speeds. Right is to slow those pairs to a
    quarter that made no whole turn within a training text. Oracle: three models are trained
    here (base, length, seed), and read texts four times as long with the answer's speeds.

    Pair 1 has made no whole turn in the first model. In the second it has, though it is
    slower: no one speed parts new from old in both. In the third several new pairs matter.

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    summary = (
        "Trained on {length} characters, the model has a loss of {near:.2f} there and of "
        "{far:.2f} at the far end."
    )
    faults = {
        f"these are the speeds of the training. {summary}": (
            lambda seen: torch.equal(seen.speeds, seen.usual)
        ),
        "pairs that came round in training have another speed: they had shown all their "
        f"angles, and told three from two. {summary}": (
            lambda seen: _moved(seen) and _counts_badly(seen)
        ),
        f"by four is meant for any length, not by its root or its quarter. {summary}": (
            _by_length
        ),
        f"a wavelength is 2π over the speed, not 1 over it. {summary}": (
            lambda seen: torch.equal(seen.speeds, _without_pi(seen))
        ),
        f"pairs are slowed too much: near positions look alike. {summary}": (
            lambda seen: _too_slow(seen) and _counts_badly(seen)
        ),
        "only the first of the pairs that have not come round is slowed; others come to "
        f"new angles, too. {summary}": (
            lambda seen: torch.allclose(seen.speeds, _first_alone(seen)) and seen.far >= 1
        ),
        f"at trained lengths it still counts. {summary} Is every pair slowed enough that "
        "has not come round?": lambda seen: seen.near < 0.5 and seen.far >= 1,
        f"it does not count to three any more. {summary}": lambda seen: seen.near >= 0.5,
    }
    for trained in ((3000.0, 16, 3), (5000.0, 32, 4), (40.0, 16, 3)):
        yield Faults(partial(_read, *trained), faults)
