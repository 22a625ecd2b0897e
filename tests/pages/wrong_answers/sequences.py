"""What readers of *sequences* get wrong, by exercise: diagnosis → answers that get it."""

import torch


def smoothed(counts, shorter):
    kinds, total = int((counts > 0).sum()), counts.sum()
    return (counts + kinds * shorter) / (total + kinds) if kinds else shorter


def gru(from_token, from_state, h):
    x_r, x_z, x_n = from_token.chunk(3, -1)
    h_r, h_z, h_n = from_state.chunk(3, -1)
    n = torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n)
    return n + torch.sigmoid(x_z + h_z) * (h - n)


def gathered(states, lengths):
    place = (lengths - 1)[:, None, None].expand(-1, 1, states.shape[-1])
    return states.gather(1, place)[:, 0]


def one_by_one(states, lengths):
    return torch.stack([row[n - 1] for row, n in zip(states, lengths, strict=True)])


WRONG = {
    "open_gate": {
        "too little is left": [(1.0, 1e-5), (3.0, 0.197)],
        "stuck open": (9.0, 0.6),
        "carry another share": [(1.0, 0.4), (5.0, 0.9)],
        "what `carried` returns": (5.0, 30.0),
        "a bias and a share": 5.0,
    }
}

RIGHT = {
    "per_word": [lambda loss, text: sum([loss] * len(text)) / len([*text.split()])],
    "last_state": [gathered, one_by_one],
    "open_gate": [(4.0, 0.3), (5, torch.tensor(0.31))],
    "witten_bell": [smoothed],
    "gru": [gru],
}

TYPED = {"open_gate": [(5.0, 0.6), (4.5, 0.5)]}
