"""What readers of *sequences* get wrong, by exercise: diagnosis → answers that get it."""

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


def gathered(states, lengths):
    place = (lengths - 1)[:, None, None].expand(-1, 1, states.shape[-1])
    return states.gather(1, place)[:, 0]


def one_by_one(states, lengths):
    return torch.stack([row[n - 1] for row, n in zip(states, lengths, strict=True)])


WRONG = {
    "open_gate": {
        "too little is left": [(1.0, 1e-5), (3.0, 0.197)],
        "stuck open": (9.0, 0.6),
        "is not left with such a bias": (1.0, 0.4),
        "what `carried` returns": (5.0, 30.0),
        "a bias and a share": 5.0,
    }
}

RIGHT = {
    "last_state": [gathered, one_by_one],
    "open_gate": [(4.0, 0.3), (5, torch.tensor(0.31))],
    "witten_bell": [smoothing()],
    "gru": [gru(mix=lambda z, n, h: n + z * (h - n))],
}
