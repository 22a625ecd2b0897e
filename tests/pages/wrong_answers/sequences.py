"""What readers of *sequences* get wrong, by exercise: diagnosis → answers that get it."""

import numpy as np
import torch


def smoothing(parts=None, divide=None, lower=None, never=None):
    """Return Witten and Bell's smoothing with a part of it done otherwise."""

    def smooth(counts, shorter):
        kinds, total = int((counts > 0).sum()), counts.sum()
        if kinds == 0:
            return shorter if never is None else never(shorter)
        share = kinds if parts is None else parts(counts)
        below = divide(counts) if divide else total + share
        return (counts + share * (lower(shorter) if lower else shorter)) / below

    return smooth


def unseen_only(counts, lower):
    kinds = (counts > 0).sum()
    if kinds == 0:
        return lower
    return np.where(counts > 0, counts, kinds * lower) / (counts.sum() + kinds)


def gru(mix=None, new=None, gate=torch.sigmoid, swap=False):
    """Return a GRU's step with a part of it done otherwise."""

    def step(from_token, from_state, h):
        x_r, x_z, x_n = from_token.chunk(3, -1)
        h_r, h_z, h_n = from_state.chunk(3, -1)
        r, z = gate(x_r + h_r), gate(x_z + h_z)
        r, z = (z, r) if swap else (r, z)
        n = new(x_n, h_n, r) if new else torch.tanh(x_n + r * h_n)
        return mix(z, n, h) if mix else (1 - z) * n + z * h

    return step


def letters(loss, text):
    return loss * np.mean([len(word) for word in text.split()])


def gathered(states, lengths):
    place = (lengths - 1)[:, None, None].expand(-1, 1, states.shape[-1])
    return states.gather(1, place)[:, 0]


def one_by_one(states, lengths):
    return torch.stack([row[n - 1] for row, n in zip(states, lengths, strict=True)])


WRONG = {
    "own_text": {"does come": "a", "no run is new": "b", "one letter": "d"},
    "witten_bell": {
        "raw shares": lambda counts, lower: counts / counts.sum(),
        "does not sum to one": smoothing(divide=lambda counts: counts.sum()),
        "as many parts as there are occurrences": smoothing(parts=lambda c: c.sum()),
        "as the vocabulary has tokens": smoothing(parts=len),
        "shared out evenly": smoothing(lower=lambda p: np.full(len(p), 1 / len(p))),
        "only tokens that never followed": unseen_only,
        "a constant is added": lambda counts, lower: (
            (counts + 1) / (counts.sum() + len(counts))
        ),
        "divide by zero": smoothing(never=lambda p: np.full(len(p), np.nan)),
        "nothing is left": smoothing(never=lambda p: np.zeros(len(p))),
        "all tokens are equally likely": smoothing(
            never=lambda p: np.full(len(p), 1 / len(p))
        ),
        "the shape is": lambda counts, lower: counts.sum(),
        "numbers are expected": lambda counts, lower: ["a"],
    },
    "per_word": {
        "the characters between the words": letters,
        "divided where": lambda loss, text: loss * len(text.split()) / len(text),
        "surprise of the whole text": lambda loss, text: loss * len(text),
        "a perplexity": lambda loss, text: np.exp(loss * len(text) / len(text.split())),
        "one character is added": lambda loss, text: (
            loss * np.mean([len(word) + 1 for word in text.split()])
        ),
        "line ends are characters": lambda loss, text: (
            loss * len(text.replace("\n", "")) / len(text.split())
        ),
        "a line end parts": lambda loss, text: loss * len(text) / len(text.split(" ")),
        "the numbers differ": lambda loss, text: loss,
    },
    "gru": {
        "old and new have changed places": gru(mix=lambda z, n, h: z * n + (1 - z) * h),
        "reset and update have changed": gru(swap=True),
        "the reset gate is not used": gru(new=lambda x, h, r: torch.tanh(x + h)),
        "multiplies token and state": gru(new=lambda x, h, r: torch.tanh(r * (x + h))),
        "the state itself": lambda from_token, from_state, h: gru(
            new=lambda x, _, r: torch.tanh(x + r * h)
        )(from_token, from_state, h),
        "without tanh": gru(new=lambda x, h, r: x + r * h),
        "gates go through the sigmoid": gru(gate=lambda x: x),
        "the new vector alone": gru(mix=lambda z, n, h: n),
        "squeezed by a sigmoid": gru(new=lambda x, h, r: torch.sigmoid(x + r * h)),
        "the shape is": gru(mix=lambda z, n, h: n.sum()),
    },
    "open_gate": {
        "too little is left": [(1.0, 1e-5), (3.0, 0.197)],
        "stuck open": (9.0, 0.6),
        "is not left with such a bias": (1.0, 0.4),
        "what `carried` returns": (5.0, 30.0),
        "a bias and a share": 5.0,
        "numbers are expected": ("open", 0.3),
    },
    "order": {
        "does not say that there is nothing": "a",
        "look at the squares": "b",
        "just as many weights": "d",
        "one letter": 3,
    },
    "last_state": {
        "after the padding": lambda states, lengths: states[:, -1],
        "off by one": lambda states, lengths: states[
            torch.arange(len(states)), lengths.clamp(max=states.shape[1] - 1)
        ],
        "the length of the first": lambda states, lengths: states[:, int(lengths[0]) - 1],
        "at each other's lengths": lambda states, lengths: states[:, lengths - 1],
        "the mean of the real states": lambda states, lengths: torch.stack(
            [row[:n].mean(0) for row, n in zip(states, lengths, strict=True)]
        ),
        "the first states": lambda states, lengths: states[:, 0],
        "stopped with IndexError": lambda states, lengths: states[
            torch.arange(len(states)), lengths + 1
        ],
    },
}

RIGHT = {
    "last_state": [gathered, one_by_one],
    "open_gate": [(4.0, 0.3), (5, torch.tensor(0.31))],
    "witten_bell": [smoothing()],
    "gru": [gru(mix=lambda z, n, h: n + z * (h - n))],
}
