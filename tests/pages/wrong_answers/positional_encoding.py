"""What goes wrong in the exercises of *positional-encoding*, diagnosis → answer."""

import cmath

import torch

from lmcourse.attention import attention
from lmcourse.positions import frequencies, rotate


def attend(query=True, key=True, value=False, early=False, layout="interleaved", late=None):
    """Attention of what one projection has made, turned right or nearly."""

    def attended(fused, positions):
        positions = positions if late is None else positions - late
        parts = [*fused.chunk(3, -1)]
        rotated_as_one = rotate(fused, positions, layout).chunk(3, -1)
        for i, turn in enumerate((query, key, value)):
            if turn and early:
                parts[i] = rotated_as_one[i]
            elif turn:
                parts[i] = rotate(parts[i], positions, layout)
        return attention(*parts)[0]

    return attended


def by_complex_numbers(x, speeds):
    """Turn pair by pair and token by token, as Python's complex numbers."""
    turned = x.clone()
    for m, row in enumerate(turned):
        for i, speed in enumerate(speeds.tolist()):
            hand = complex(row[2 * i], row[2 * i + 1]) * cmath.exp(1j * m * speed)
            row[2 * i], row[2 * i + 1] = hand.real, hand.imag
    return turned


def by_rotate(x, speeds):
    return rotate(x, speeds=speeds)


def half_order(x):
    return x.unflatten(-1, (-1, 2)).mT.flatten(-2)


def cosines_first(x, speeds):
    angle = torch.pi / 2 - torch.arange(len(x))[:, None] * speeds
    a, b = x[:, 0::2], x[:, 1::2]
    turned = (a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos())
    return torch.stack(turned, -1).flatten(-2)


def in_place(x, speeds):
    angle, x = torch.arange(len(x))[:, None] * speeds, x.clone()
    x[:, 0::2] = x[:, 0::2] * angle.cos() - x[:, 1::2] * angle.sin()
    x[:, 1::2] = x[:, 0::2] * angle.sin() + x[:, 1::2] * angle.cos()
    return x


def turned_twice_minus(x, speeds):
    angle, a, b = torch.arange(len(x))[:, None] * speeds, x[:, 0::2], x[:, 1::2]
    first = a * angle.cos() - b * angle.sin()
    return torch.stack((first, a * angle.sin() - b * angle.cos()), -1).flatten(-2)


def first_repeated(x, speeds):
    return rotate(x, speeds=speeds)[:, 0::2].repeat_interleave(2, -1)


def from_the_first(fused, positions):
    return attention(*rotate(fused, positions - positions[0]).chunk(3, -1))[0]


def backwards(fused, positions):
    return attend()(fused, -positions)


def as_one(fused, positions):
    both, value = fused.split((2 * fused.shape[-1] // 3, fused.shape[-1] // 3), -1)
    return attention(*rotate(both, positions).chunk(2, -1), value)[0]


def exchanged(fused, positions):
    key, query, value = fused.chunk(3, -1)
    return attention(rotate(query, positions), rotate(key, positions), value)[0]


def slowed(which, times=4.0):
    """Return an answer that slows the pairs of which this is true."""

    def answer(speeds, trained):
        waves = 2 * torch.pi / speeds
        return torch.where(which(waves, trained), speeds / times, speeds)

    return answer


def slowed_new(speeds, trained, times):
    return slowed(lambda waves, trained: waves > trained, times)(speeds, trained)


def only_the_first(speeds, trained):
    first = int((2 * torch.pi / speeds > trained).int().argmax())
    return slowed(lambda waves, trained: torch.arange(6) == first)(speeds, trained)


def by_degrees(speeds, trained):
    """Slow by degrees between half the trained length and twice that."""
    waves = 2 * torch.pi / speeds
    share = ((waves / trained).log2() / 2 + 0.5).clamp(0, 1)
    return speeds / 4**share


def in_a_list(speeds, trained):
    return [s / 4 if 2 * torch.pi / s > trained else s for s in speeds.tolist()]


WRONG = {
    "turn": {
        "nothing is rotated": lambda x, speeds: x,
        "backwards": lambda x, speeds: rotate(x, speeds=-speeds),
        "first half is paired": lambda x, speeds: rotate(x, layout="half", speeds=speeds),
        "the first token stays": lambda x, speeds: rotate(
            x, torch.arange(len(x)) + 1, speeds=speeds
        ),
        "at one speed": lambda x, speeds: rotate(x, speeds=speeds[:1].expand(len(speeds))),
        "wrong order": lambda x, speeds: rotate(x, speeds=speeds.flip(0)),
        "is not used": lambda x, speeds: rotate(x),
        "was overwritten": in_place,
        "rotated alike": lambda x, speeds: rotate(x, torch.ones(len(x)), speeds=speeds),
        "twice": lambda x, speeds: rotate(rotate(x, speeds=speeds), speeds=speeds),
        "half of what": lambda x, speeds: rotate(x, speeds=speeds / 2),
        "counted from the end": lambda x, speeds: rotate(
            x, torch.arange(len(x)).flip(0), speeds=speeds
        ),
        "order of the half-split": lambda x, speeds: half_order(rotate(x, speeds=speeds)),
        "changed places": cosines_first,
        "the minus belongs to the first": turned_twice_minus,
        "both numbers of a pair are the same": first_repeated,
        "x is still in it": lambda x, speeds: x + rotate(x, speeds=speeds),
        "in radians already": lambda x, speeds: rotate(x, speeds=speeds.deg2rad()),
    },
    "values_too": {
        "the values are still rotated": attend(value=True, early=True),
        "the values are left alone": attend(early=True),
        "the values are rotated, too": attend(value=True),
        "the keys are not rotated": attend(key=False),
        "the queries are not rotated": attend(query=False),
        "nothing is rotated": attend(query=False, key=False),
        "begins at position 3": attend(value=True, late=3),
        "half-split": attend(layout="half"),
        "only hides the mistake": from_the_first,
        "rotated as one vector": as_one,
        "backwards": backwards,
        "changed places": exchanged,
        "output and weights": lambda fused, at: (attend()(fused, at), None),
    },
    "mended": {
        "speeds of the training": lambda speeds, trained: speeds,
        "came round in training": [
            slowed(lambda waves, trained: waves > 0),
            slowed(lambda waves, trained: waves <= trained),
            slowed(lambda waves, trained: torch.arange(6) > 0),
            slowed(lambda waves, trained: torch.arange(6) == 1),
            slowed(lambda waves, trained: waves > 16),
            slowed(lambda waves, trained: waves > 20),
            slowed(lambda waves, trained: 2 * torch.pi / waves < 0.3),
        ],
        "its root or its quarter": [
            lambda speeds, trained: slowed_new(speeds, trained, trained**0.5),
            lambda speeds, trained: slowed_new(speeds, trained, trained / 4),
        ],
        "2π over the speed": slowed(lambda waves, trained: waves > 2 * torch.pi * trained),
        "slowed too much": [
            slowed(lambda waves, trained: waves > trained, times)
            for times in (16, 100, torch.inf)
        ],
        "slowed enough": [
            lambda speeds, trained: frequencies(12, 3000 * 4**1.2),
            slowed(lambda waves, trained: torch.arange(6) == 2),
            slowed(lambda waves, trained: waves > trained, 2),
            slowed(lambda waves, trained: waves > 25),
            slowed(lambda waves, trained: waves > 4 * trained),
        ],
        "only the first of the pairs": only_the_first,
        "six speeds": lambda speeds, trained: speeds[1:],
        "finite": lambda speeds, trained: speeds / 0,
        "does not count": [
            slowed(lambda waves, trained: waves > trained, times) for times in (0.25, -4)
        ],
    },
}

RIGHT = {
    "turn": [by_complex_numbers, by_rotate],
    "values_too": [attend()],
    "mended": [by_degrees, in_a_list],
}

TYPED = {
    "mended": [
        lambda speeds, trained: [1.0, 0.215, 0.0116, 0.0025, 0.0005, 0.0001],
        lambda speeds, trained: [0.02, 0.08, 0.1, 0.1, 0.1, 0.1],
    ]
}
