"""Checks for the exercises of the chapter *sequences*."""

import numpy as np
import torch
from torch import nn

from lmcourse.exercises import Wrong, compare, exercise, expect, judge, predict, run
from lmcourse.exercises.answers import diagnose, normal, number, unpack
from lmcourse.recurrent import LSTM

predict(
    "sequences.own_text",
    a=None,
    b="rare runs harm where they do not come again. In its own text each of them "
    "does come.",
    c="on new text it levels off, because long runs are new there. On its own text "
    "no run is new.",
)


@exercise("sequences.witten_bell")
def witten_bell(answer):
    """Compare with Witten and Bell's formula, term by term."""
    counts, lower = np.array([2, 0, 1, 0, 2, 0]), np.array([10, 35, 20, 20, 5, 10]) / 100
    kinds, total = 3, 5  # two tokens came equally often
    want = [(n + kinds * p) / (total + kinds) for n, p in zip(counts, lower, strict=True)]
    seen = counts > 0
    mistakes = {
        "raw shares: what never followed has probability zero.": counts / total,
        "this does not sum to one: divide by the count and the number of different tokens "
        "together.": (counts + kinds * lower) / total,
        "the shorter context gets as many parts as there are different *counts*; count the "
        "tokens that did follow.": (counts + 2 * lower) / (total + 2),
        "the shorter context gets as many parts as there are occurrences; it is as many as "
        "there are *different* tokens.": (counts + total * lower) / (2 * total),
        "the shorter context gets as many parts as the vocabulary has tokens; count those "
        "that did follow.": (counts + 6 * lower) / (total + 6),
        "the reserve is shared out evenly; the shorter context knows better.": (
            (counts + kinds / 6) / (total + kinds)
        ),
        "only tokens that never followed get a part of the reserve; the shorter context "
        "has its say on all.": np.where(
            seen, counts / (total + kinds), kinds * lower / (total + kinds)
        ),
        "a constant is added to each count; the shorter context is not asked.": (
            (counts + 1) / (total + 6)
        ),
    }
    expect(answer, [counts, lower], np.array(want), mistakes)
    never = {
        "after a context that never occurred you divide by zero; let the shorter one "
        "decide.": np.full(6, np.nan),
        "after a context that never occurred nothing is left; let the shorter one "
        "decide.": np.zeros(6),
        "after a context that never occurred all tokens are equally likely; ask the "
        "shorter one.": np.full(6, 1 / 6),
    }
    with np.errstate(all="ignore"):
        expect(answer, [np.zeros(6, dtype=int), lower], lower, never)


@exercise("sequences.per_word", kind="spot the bug")
def per_word(answer):
    """Compare with the whole surprise of a text, divided by its words."""
    text, loss = "the bee is not\nafraid of me", 1.5
    words = text.split()
    letters = sum(map(len, words))
    mistakes = {
        "the characters between the words are missing: the model had to foretell spaces "
        "and line ends, too.": loss * letters / len(words),
        "divided where it should be multiplied: a word is several characters.": (
            loss * len(words) / len(text)
        ),
        "this is the surprise of the whole text; divide it by the number of words.": (
            loss * len(text)
        ),
        "this is a perplexity; a loss is asked for.": np.exp(loss * len(text) / len(words)),
        "line ends are characters as well as spaces are.": (
            loss * len(text.replace("\n", "")) / len(words)
        ),
        "one character is added to every word; the last has none after it, and an empty "
        "line is more than one. Count the text's own.": loss * (letters / len(words) + 1),
        "a line end parts two words, too: split at all white space.": (
            loss * len(text) / len(text.split(" "))
        ),
    }
    expect(answer, [loss, text], loss * len(text) / len(words), mistakes)


@exercise("sequences.gru")
def gru(answer):
    """Compare with PyTorch's cell, which has its own weights."""
    torch.manual_seed(0)
    cell = nn.GRUCell(3, 4).double().requires_grad_(False)
    x, h = normal(2, 3).double(), normal(2, 4, seed=1).double()
    given = x @ cell.weight_ih.T + cell.bias_ih, h @ cell.weight_hh.T + cell.bias_hh
    (x_r, x_z, x_n), (h_r, h_z, h_n) = (part.chunk(3, -1) for part in given)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    new = torch.tanh(x_n + r * h_n)
    mistakes = {
        "old and new have changed places: z = 1 keeps the old state. (The paper has it "
        "the other way round.)": z * new + (1 - z) * h,
        "reset and update have changed places: the thirds are reset, update, new.": (
            (1 - r) * torch.tanh(x_n + z * h_n) + r * h
        ),
        "the reset gate is not used: it multiplies what the state gives to the new one.": (
            (1 - z) * torch.tanh(x_n + h_n) + z * h
        ),
        "the reset gate multiplies the state itself; it belongs before the third that is "
        "made from the state.": (1 - z) * torch.tanh(x_n + r * h) + z * h,
        "the reset gate multiplies token and state together; the token passes freely.": (
            (1 - z) * torch.tanh(r * (x_n + h_n)) + z * h
        ),
        "without tanh the state can grow for ever.": (1 - z) * (x_n + r * h_n) + z * h,
        "gates go through the sigmoid, to lie between 0 and 1.": (
            (1 - x_z - h_z) * torch.tanh(x_n + (x_r + h_r) * h_n) + (x_z + h_z) * h
        ),
        "this is the new vector alone; mix it with the old state.": new,
        "the new vector is squeezed by a sigmoid; it is a tanh.": (
            (1 - z) * torch.sigmoid(x_n + r * h_n) + z * h
        ),
    }
    compare(run(answer, *given, h), cell(x, h), mistakes)


def _carried(bias, seed):
    """Return what is left of the gradient after 50 tokens in a fresh LSTM."""
    torch.manual_seed(seed)
    layer, x = LSTM(32, 64), torch.randn(16, 101, 32, requires_grad=True)
    layer.read.bias.data.chunk(4)[1].fill_(bias)
    (layer(x)[0][:, -1] @ torch.randn(64)).sum().backward()
    lengths = x.grad.norm(dim=-1).median(0).values  # (tokens,)
    return float(lengths[-51] / lengths[-1])


@exercise("sequences.open_gate", kind="experiment")
def open_gate(answer):
    """Look at the bias, and whether networks of our own carry as much as is told."""
    bias, share = map(number, unpack(answer, 2, "a bias and a share: (bias, share)"))
    rest = 1 / (1 + np.exp(-np.clip(bias, -50, 50)))
    if not 0 <= share <= 1.5:
        raise Wrong("the share is what `carried` returns, about between 0 and 1.")
    faults = {
        f"at rest this gate is {rest:.5f}: it is stuck open, and will hardly learn to "
        "forget. Try a smaller bias.": rest >= 0.999,
        "too little is left after 50 tokens. At each of them the memory is multiplied "
        "by the gate: which gate has a fifth left after fifty?": share < 0.2,
    }
    diagnose(faults)
    with torch.enable_grad():
        ours = np.median([_carried(bias, seed) for seed in range(100, 105)])
    if not ours / 1.5 < share < 1.5 * ours:
        raise Wrong(
            "five other networks carry another share: hand in what `carried` finds."
        )


judge(
    "sequences.order",
    a=None,
    b="that these models do without the order on this task does not say that there "
    "is nothing in it.",
    c="look at the squares, too.",
    d="the shuffled control has just as many weights. Where is its lead?",
)


@exercise("sequences.last_state", kind="spot the bug")
def last_state(answer):
    """Compare with each text's last real state, on a batch of three lengths."""
    states, lengths = normal(3, 5, 2).double(), torch.tensor([2, 5, 3])
    rows = torch.arange(3)
    mistakes = {
        "this is the state after the padding: a short text's last state stands earlier.": (
            states[:, -1]
        ),
        "off by one: the last of n tokens has the number n - 1.": (
            states[rows, lengths.clamp(max=4)]
        ),
        "each text by the length of the first; every text has its own.": (
            states[:, int(lengths[0]) - 1]
        ),
        "these are the states of all texts at each other's lengths; pair rows and lengths, "
        "as in `states[torch.arange(3), …]`.": states[:, lengths - 1],
        "this is the mean of the real states; the last one is asked for.": torch.stack(
            [row[:n].mean(0) for row, n in zip(states, lengths, strict=True)]
        ),
        "these are the first states.": states[:, 0],
    }
    got = run(answer, states, lengths)
    if torch.is_tensor(got) and got.shape == (3, 3, 2):
        raise Wrong(list(mistakes)[3])
    compare(got, states[rows, lengths - 1], mistakes)
