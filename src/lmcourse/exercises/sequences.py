"""Checks for the exercises of the chapter *sequences*."""

import numpy as np
import torch

from lmcourse.exercises import Wrong, compare, exercise, expect, judge, predict, run
from lmcourse.exercises.answers import normal, number, unpack
from lmcourse.recurrent import load_char_lstm

predict(
    "sequences.own_text",
    a=None,
    b="rare runs harm where they do not come again. In its own text each of them "
    "does come.",
    c="on new text it levels off, because long runs are new there. On its own text "
    "no run is new.",
)


judge(
    "sequences.sun",
    a="runs of five see four characters. What is left of the eyes in them?",
    b="this sonnet was kept apart: it was not counted.",
    c=None,
)


@exercise("sequences.witten_bell")
def witten_bell(answer):
    """Compare with Witten and Bell's formula, term by term."""
    counts = np.array([2, 0, 1, 4, 2, 0, 2])  # some tokens came equally often
    lower, kinds, total = np.array([10, 30, 20, 20, 5, 10, 5]) / 100, 5, 11
    seen = counts > 0

    def mixed(parts, lower=lower):
        return (counts + parts * lower) / (total + parts)

    mistakes = {
        "raw shares: what never followed has probability zero.": counts / total,
        "this does not sum to one: divide by the count and the number of different tokens "
        "together.": (counts + kinds * lower) / total,
        "the shorter context gets as many parts as there are different *counts*; count the "
        "tokens that did follow.": mixed(3),
        "the shorter context gets as many parts as there are tokens that did *not* follow; "
        "count those that did.": mixed(2),
        "the shorter context gets as many parts as there are tokens that followed *once*; "
        "count all that did.": mixed(1),
        "the counts have no say; the shorter context gets a part only.": lower,
        "the shorter context gets as many parts as there are occurrences; it is as many as "
        "there are *different* tokens.": mixed(total),
        "the shorter context gets as many parts as the vocabulary has tokens; count those "
        "that did follow.": mixed(7),
        "the reserve is shared out evenly; the shorter context knows better.": (
            mixed(kinds, 1 / 7)
        ),
        "only tokens that never followed get a part of the reserve; the shorter context "
        "has its say on all.": np.where(seen, counts, kinds * lower) / (total + kinds),
        "what was seen keeps its share, and the rest gets all of the shorter context's: "
        "together that is more than one.": np.where(seen, counts / total, lower),
        "a constant is added to each count; the shorter context is not asked.": (
            mixed(7, 1 / 7)
        ),
    }
    for taken in (0.5, 0.75, 1):
        words = f"{taken} is taken from each count; Witten and Bell take nothing."
        mistakes[words] = ((counts - taken) * seen + taken * kinds * lower) / total
    expect(answer, [counts, lower], mixed(kinds), mistakes)
    never = {
        "after a context that never occurred you divide by zero; let the shorter one "
        "decide.": np.full(7, np.nan),
        "after a context that never occurred nothing is left; let the shorter one "
        "decide.": np.zeros(7),
        "after a context that never occurred all tokens are equally likely; ask the "
        "shorter one.": np.full(7, 1 / 7),
    }
    with np.errstate(all="ignore"):
        expect(answer, [np.zeros(7, dtype=int), lower], lower, never)


def _line_length(unit, value):
    """Return the mean length of lines that the LSTM writes with one unit held."""
    tokenizer, reader = load_char_lstm()
    (end,), draw = tokenizer.encode("\n"), torch.Generator().manual_seed(100)
    token, ends = torch.full((24,), end), 0
    h = memory = torch.zeros(24, reader.output.in_features)
    with torch.no_grad():
        for _ in range(240):
            h, memory, _ = reader.lstm.step(reader.tokens(token), h, memory)
            memory[:, unit] = value
            shares = reader.output(h).softmax(-1)
            token = torch.multinomial(shares, 1, generator=draw)[:, 0]
            ends += int((token == end).sum())
    return 24 * 240 / max(1, ends)


@exercise("sequences.knob", kind="experiment")
def knob(answer):
    """Hold the unit at the value, and measure the lines of texts drawn here."""
    unit, value = map(number, unpack(answer, 2, "a unit and a value: (unit, value)"))
    if unit not in range(128):
        raise Wrong("units have the whole numbers from 0 to 127.")
    length = _line_length(int(unit), value)
    told = f"with unit {unit:.0f} held at {value:.2f} our texts have "
    return {
        told + "hardly a line end: the lines are far too long.": length > 100,
        told + "lines as long as ever, or longer: another value, or another unit.": (
            length >= 38
        ),
        told + f"lines of {length:.0f} characters: still too long.": length > 30,
        told + f"lines of {length:.0f} characters: too short.": length < 20,
    }


judge(
    "sequences.order",
    a="that these models do without the order here does not say that there is nothing "
    "in it; and look at the characters, too.",
    b=None,
    c="one query for all texts is one use of attention: no token looks at another.",
    d="shuffled, the window has just as many weights. Where is its lead?",
)


@exercise("sequences.last_state", kind="spot the bug")
def last_state(answer):
    """Compare with each text's last real state, on a batch of three lengths."""
    states, lengths = normal(3, 6, 2).double(), torch.tensor([2, 5, 3])
    rows = torch.arange(3)
    mistakes = {
        "this is the state after the padding: a short text's last state stands earlier.": (
            states[:, -1]
        ),
        "off by one: the last of n tokens has the number n - 1.": states[rows, lengths],
        "each text by the length of the longest; every text has its own.": states[:, 4],
        "each text by the length of the first; every text has its own.": states[:, 1],
        "these are the states of all texts at each other's lengths; pair rows and lengths, "
        "as in `states[torch.arange(3), …]`.": states[:, lengths - 1],
        "this is the mean of the real states; the last one is asked for.": torch.stack(
            [row[:n].mean(0) for row, n in zip(states, lengths, strict=True)]
        ),
        "these are the first states.": states[:, 0],
        "that is one before the last.": states[rows, lengths - 2],
    }
    got = run(answer, states, lengths)
    if torch.is_tensor(got) and got.shape == (3, 3, 2):
        raise Wrong(list(mistakes)[4])
    compare(got, states[rows, lengths - 1], mistakes)
