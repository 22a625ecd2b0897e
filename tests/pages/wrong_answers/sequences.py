"""What readers of *sequences* get wrong, by exercise: diagnosis → answers that get it."""

import numpy as np
import torch


def smoothed(counts, shorter):
    kinds, total = int((counts > 0).sum()), counts.sum()
    return (counts + kinds * shorter) / (total + kinds) if kinds else shorter


def by_parts(counts, lower, parts):
    return (counts + parts * lower) / (counts.sum() + parts)


def interpolated(counts, lower):
    kinds, total = (counts > 0).sum(), counts.sum()
    share = kinds / (total + kinds) if total else 1.0
    return share * lower + (1 - share) * counts / max(total, 1)


def backed_off(counts, lower):
    kinds, to_new = (counts > 0).sum(), np.where(counts > 0, 0, lower)
    return (counts + kinds * to_new / to_new.sum()) / (counts.sum() + kinds)


def shares_and_parts(counts, lower):
    kinds = (counts > 0).sum()
    return (counts / counts.sum() + kinds * lower) / (1 + kinds)


def gru(from_token, from_state, h):
    x_r, x_z, x_n = from_token.chunk(3, -1)
    h_r, h_z, h_n = from_state.chunk(3, -1)
    new = torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n)
    return new + torch.sigmoid(x_z + h_z) * (h - new)


def gru_reversed(from_token, from_state, h):
    x_r, x_z, x_n = from_token.chunk(3, -1)
    h_r, h_z, h_n = from_state.chunk(3, -1)
    new = torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n)
    return h + torch.sigmoid(x_z + h_z) * (new - h)


def gru_thirds_exchanged(from_token, from_state, h):
    x_z, x_r, x_n = from_token.chunk(3, -1)
    h_z, h_r, h_n = from_state.chunk(3, -1)
    new = torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n)
    return new + torch.sigmoid(x_z + h_z) * (h - new)


def gathered(states, lengths):
    place = (lengths - 1)[:, None, None].expand(-1, 1, states.shape[-1])
    return states.gather(1, place)[:, 0]


def one_by_one(states, lengths):
    return torch.stack([row[n - 1] for row, n in zip(states, lengths, strict=True)])


WRONG = {
    "knob": {
        "hardly a line end": [(98, 0.9), (98, 5.0)],
        "as long as ever": [(58, 0.5), (1, -1.0), (98, 0.13)],
        "still too long": [(98, 0.0), (98, 0.05), (98, 0.08)],
        "too short": [(98, -0.6), (98, -3.0)],
        "whole numbers from 0": [(98.5, 0.0), (128, 0.0)],
        "a unit and a value": 98,
    },
    "witten_bell": {
        "followed *once*": lambda counts, lower: by_parts(
            counts, lower, (counts == 1).sum()
        ),
        "did *not* follow": lambda counts, lower: by_parts(
            counts, lower, (counts == 0).sum()
        ),
        "different *counts*; count": lambda counts, lower: by_parts(
            counts, lower, np.unique(counts[counts > 0]).size
        ),
        "zero among them": lambda counts, lower: by_parts(
            counts, lower, np.unique(counts).size
        ),
        "not their shares": shares_and_parts,
        "among the tokens that never followed": backed_off,
        "Bell take nothing": [
            lambda counts, lower, d=d: (
                (np.maximum(counts - d, 0) + d * (counts > 0).sum() * lower) / counts.sum()
            )
            for d in (0.5, 0.75, 1)
        ],
    },
    "gru": {
        "changed places: z": gru_reversed,
        "the thirds are": gru_thirds_exchanged,
    },
    "last_state": {
        "off by one": lambda states, lengths: states[torch.arange(len(states)), lengths],
        "one before the last": lambda states, lengths: states[
            torch.arange(len(states)), lengths - 2
        ],
        "length of the longest": lambda states, lengths: states[:, lengths.max() - 1],
    },
}

RIGHT = {
    "last_state": [gathered, one_by_one],
    "gru": [gru],
    "knob": [(98, -0.12), (98.0, torch.tensor(-0.08))],
    "witten_bell": [smoothed, interpolated],
}

TYPED = {"knob": [(98, 0.3), (98, -0.5), (58, -0.2)]}
