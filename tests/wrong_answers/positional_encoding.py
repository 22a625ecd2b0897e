"""What goes wrong in the exercises of *positional-encoding*, diagnosis → answer."""

import math

import torch

from lmcourse.positions import alibi_bias, alibi_slopes, frequencies, rotate


def waves(offset, width, f=torch.cos):
    return f(offset * frequencies(width)).sum().item()


def both(turned, new):
    return torch.cat((turned, new), 1)


def turned_at(key, position):
    return rotate(key, torch.tensor([position]))


def order(heads, rows):
    one = torch.arange(rows).view(heads, -1, 2).mT  # (heads, 2, pairs)
    return one.flatten()


def step(heads, tokens):
    return alibi_bias(heads, tokens)[:, -1:]


def offsets(table, tokens):
    place = torch.arange(tokens)
    return place - place[:, None], len(table) // 2


def clipped(table, tokens):
    offset, reach = offsets(table, tokens)
    return table[offset.clamp(-reach, reach) + reach].permute(2, 0, 1)


def wrapped(table, tokens):
    offset, reach = offsets(table, tokens)
    return table[(offset + reach) % len(table)].permute(2, 0, 1)


def no_reach(table, tokens):
    offset, reach = offsets(table, tokens)
    return table[offset.clamp(-reach, reach)].permute(2, 0, 1)


def no_sign(table, tokens):
    offset, reach = offsets(table, tokens)
    return table[reach - offset.abs().clamp(max=reach)].permute(2, 0, 1)


def base(tokens, width, turn=2 * math.pi, rest=2):
    return (tokens / turn) ** (width / (width - rest))


def four(heads, tokens):
    """Use the slopes of four heads, however many there are."""
    back = torch.arange(tokens - 1, -1, -1)
    return alibi_slopes(4).repeat(2)[:heads, None, None] * -back


WRONG = {
    "dot_by_offset": {
        "sine where a cosine": lambda o, d: waves(o, d, torch.sin),
        "twice too much": lambda o, d: 2 * waves(o, d),
        "frequency of its own": lambda o, d: waves(o, 2 * d),
        "exponent is half": lambda o, d: (
            waves(o, 2 * d) - (o * frequencies(2 * d)[d // 2 :]).cos().sum().item()
        ),
        "mean over the pairs": lambda o, d: waves(o, d) / (d / 2),
    },
    "append_key": {
        "position 0": both,
        "a second time": lambda t, k: rotate(both(t, k)),
        "one too few": lambda t, k: both(t, turned_at(k, t.shape[1] - 1)),
        "one too many": lambda t, k: both(t, turned_at(k, t.shape[1] + 1)),
        "missing from the cache": lambda t, k: turned_at(k, t.shape[1]),
        "at the end": lambda t, k: both(turned_at(k, t.shape[1]), t),
    },
    "half_rows": {
        "columns are reordered": lambda w, h: w[:, order(h, len(w))],
        "as one head": lambda w, h: w[order(1, len(w))],
        "the way back": lambda w, h: w[order(h, len(w)).argsort()],
        "nothing has changed": lambda w, h: w,
    },
    "alibi_step": {
        "wrong end": lambda h, t: step(h, t).flip(-1),
        "far keys are rewarded": lambda h, t: -step(h, t),
        "distance 0 from itself": lambda h, t: step(h, t + 1)[..., :-1],
        "opposite order": lambda h, t: step(h, t).flip(0),
        "every head has the same slope": lambda h, t: step(h, t)[:1] * torch.ones(h, 1, 1),
        "axis of the query": lambda h, t: step(h, t)[:, 0],
        "only the newest one asks": alibi_bias,
        "numbers differ": four,
    },
    "clipped_bias": {
        "past and future are swapped": lambda w, t: clipped(w, t).mT,
        "first axis": lambda w, t: clipped(w, t).permute(1, 2, 0),
        "wrap around": wrapped,
        "add reach": no_reach,
        "sign of the offset is lost": no_sign,
    },
    "smallest_base": {
        "not one": lambda w, t: base(t, w, 1),
        "half a turn": lambda w, t: base(t, w, math.pi),
        "exponent is not 1": lambda w, t: base(t, w, rest=0),
        "should be positive": lambda w, t: -1.0,
        "one number": lambda w, t: torch.ones(2),
    },
}
