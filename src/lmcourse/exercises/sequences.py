"""Checks for the exercises of the chapter *sequences*."""

from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

from lmcourse.exercises import Case, Faults, exercise, judge, predict, run
from lmcourse.exercises.answers import normal, number, unpack
from lmcourse.recurrent import load_char_lstm

predict(
    "sequences.own_text",
    a=None,
    b="long sequences are rare, and that does harm on other texts. In the text that was "
    "counted, each of them occurs.",
    c="on new sonnets it levels off because most long sequences are new there. In the text "
    "that was counted none is new.",
)


judge(
    "sequences.sun",
    a="a 5-gram model sees four characters, *the* and a space. Are the eyes among them?",
    b="this sonnet was kept apart: it is not among those that were counted.",
    c=None,
)


@exercise("sequences.witten_bell")
def witten_bell():
    """Check a reader's smoothing of counts (Witten and Bell).

    The answer is a function of counts (vocab_size,), how often each token followed a
    context, and the shorter context's probabilities (vocab_size,). It returns
    probabilities: (counts + different * lower) / (total + different), where ``different``
    tokens followed. Oracle: the formula, term by term.

    Yields
    ------
    Case
        What the answer is called with, the right result, and known mistakes: what the
        reader is told → the result that the mistake gives. The second asks about a context
        that never occurred (`_after_nothing`), where the shorter one decides.
    """
    counts = np.array([2, 0, 1, 4, 2, 0, 2])  # some tokens came equally often
    lower = np.array([10, 30, 20, 20, 5, 10, 5]) / 100
    kinds = 5
    total = 11
    followed = counts > 0

    def mixed(parts, lower=lower):
        """Return the counts mixed with the shorter context's probabilities, (vocab_size,).

        ``parts`` : int, how much the probabilities weigh, in counts; ``lower`` : these, an
        array (vocab_size,) or one float for all.
        """
        return (counts + parts * lower) / (total + parts)

    to_new = np.where(followed, 0, lower)
    mistakes = {
        "these are the plain shares: what never followed has probability zero.": (
            counts / total
        ),
        "this does not sum to one: divide by the count and the number of different tokens "
        "together.": (counts + kinds * lower) / total,
        "you count different *counts*; count the tokens that did follow.": mixed(3),
        "you count different *counts*, zero among them; count the tokens that did "
        "follow.": mixed(4),
        "you count the tokens that did *not* follow; count those that did.": mixed(2),
        "you count the tokens that followed *once*; count all that did.": mixed(1),
        "you count occurrences; count *different* tokens.": mixed(total),
        "you count all tokens of the vocabulary; count those that did follow.": mixed(7),
        "shares and parts are added up: the numerator wants the counts, not their "
        "shares.": (counts / total + kinds * lower) / (1 + kinds),
        "only tokens that never followed get a part of the reserve; the shorter context "
        "speaks for all tokens.": np.where(followed, counts, kinds * lower)
        / (total + kinds),
        "the whole reserve is shared out among the tokens that never followed; the shorter "
        "context speaks for all tokens.": (counts + kinds * to_new / to_new.sum())
        / (total + kinds),
        "the reserve is shared out evenly; the shorter context knows better.": (
            mixed(kinds, 1 / 7)
        ),
    }
    for taken in (0.5, 0.75, 1):
        words = f"{taken} is taken from each count; Witten and Bell take nothing."
        less = (counts - taken) * followed
        mistakes[words] = (less + taken * kinds * lower) / total
    yield Case([counts, lower], mixed(kinds), mistakes)
    never = {
        "after a context that never occurred you divide by zero; let the shorter one "
        "decide.": np.full(7, np.nan),
        "after a context that never occurred nothing is left; let the shorter one "
        "decide.": np.zeros(7),
        "after a context that never occurred all tokens are equally likely; ask the "
        "shorter one.": np.full(7, 1 / 7),
    }
    yield Case([], lower, never, ask=_after_nothing(lower))


def _after_nothing(lower):
    """Return the function that asks an answer about a context that never occurred.

    Parameters
    ----------
    lower : array of shape (7,)
        The probabilities of the shorter context.

    Returns
    -------
    callable
        From the reader's function to what that returns for seven counts of 0.
    """

    def ask(answer):
        """Return what an answer gives for seven counts of 0.

        ``answer`` : callable, from counts and the shorter context's probabilities. A
        division by zero gives no warning: the case says what is wrong.
        """
        with np.errstate(all="ignore"):
            return run(answer, np.zeros(7, dtype=int), lower)

    return ask


@exercise("sequences.gru")
def gru():
    """Check a reader's step of a GRU.

    The answer is a function of what comes from the token and from the state, each (batch, 3
    * d): parts for the reset gate, the update gate and the new vector; and of the state h
    (batch, d). It returns the next state, (batch, d). Oracle: PyTorch's cell, which has its
    own weights.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    torch.manual_seed(0)
    cell = nn.GRUCell(3, 4).double().requires_grad_(False)
    x = normal(2, 3).double()
    h = normal(2, 4, seed=1).double()
    given = x @ cell.weight_ih.T + cell.bias_ih, h @ cell.weight_hh.T + cell.bias_hh
    (x_r, x_z, x_n), (h_r, h_z, h_n) = (part.chunk(3, -1) for part in given)
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    new = torch.tanh(x_n + r * h_n)
    mistakes = {
        "old and new have changed places: z = 1 keeps the old state. (The paper has it "
        "the other way round.)": z * new + (1 - z) * h,
        "reset and update have changed places: the thirds are reset, update, new.": (
            (1 - r) * torch.tanh(x_n + z * h_n) + r * h
        ),
        "the reset gate is not used: it multiplies what the state contributes to the new "
        "vector.": (1 - z) * torch.tanh(x_n + h_n) + z * h,
        "the reset gate multiplies the state itself; it belongs before the third that is "
        "made from the state.": (1 - z) * torch.tanh(x_n + r * h) + z * h,
        "the reset gate multiplies token and state together; it must leave the token's "
        "part alone.": ((1 - z) * torch.tanh(r * (x_n + h_n)) + z * h),
        "tanh is missing: without it the state can grow without limit.": (
            (1 - z) * (x_n + r * h_n) + z * h
        ),
        "the sigmoid is missing: it puts a gate between 0 and 1.": (
            (1 - x_z - h_z) * torch.tanh(x_n + (x_r + h_r) * h_n) + (x_z + h_z) * h
        ),
        "this is the new vector alone; mix it with the old state.": new,
        "the new vector goes through a sigmoid; it is a tanh.": (
            (1 - z) * torch.sigmoid(x_n + r * h_n) + z * h
        ),
    }
    yield Case([*given, h], cell(x, h), mistakes)


def _line_length(unit, value):
    """Return the mean length of lines that the LSTM writes with one unit frozen.

    The page's LSTM of characters writes 24 texts at once, 240 characters each, drawn at
    random; a line ends in a newline.

    Parameters
    ----------
    unit : int
        Its number in the memory of the LSTM, 0 to 127.
    value : float
        What the unit's memory is set to after every step.

    Returns
    -------
    float
        In characters; if no line ends, the number of all characters, 5760.
    """
    tokenizer, reader = load_char_lstm()
    (end,) = tokenizer.encode("\n")
    generator = torch.Generator().manual_seed(100)
    token = torch.full((24,), end)
    ends = 0
    h = memory = torch.zeros(24, reader.output.in_features)
    with torch.no_grad():
        for _ in range(240):
            h, memory, _ = reader.lstm.step(reader.tokens(token), h, memory)
            memory[:, unit] = value
            probs = reader.output(h).softmax(-1)
            token = torch.multinomial(probs, 1, generator=generator)[:, 0]
            ends += int((token == end).sum())
    return 24 * 240 / max(1, ends)


def _frozen(answer):
    """Return the unit and the value of an answer.

    ``answer`` : sequence of two numbers; anything else is `Unfit`. Returns a
    SimpleNamespace of floats: ``unit``, the number of a unit in the LSTM's memory, and
    ``value``, at which the unit is to be frozen. The unit may be any number here, such as
    1.5: `knob` says what is wrong with it.
    """
    unit, value = map(number, unpack(answer, 2, "a unit and a value: (unit, value)"))
    return SimpleNamespace(unit=unit, value=value)


def _measured(answer):
    """Return the unit and the value that a reader chose, and the lines that they give.

    Parameters
    ----------
    answer : sequence of two numbers
        What the reader hands in: the unit's number in the memory of the page's LSTM, and
        the value at which it is frozen.

    Returns
    -------
    SimpleNamespace
        Floats: ``unit``, ``value`` and ``length``, the mean length of a line in characters.
    """
    seen = _frozen(answer)
    seen.length = _line_length(int(seen.unit), seen.value)
    return seen


@exercise("sequences.knob", kind="experiment")
def knob():
    """Check the unit of the page's LSTM that a reader freezes to make lines shorter.

    The answer is (unit, value): the unit's number, 0 to 127, and the value at which its
    memory is frozen. Oracle: the LSTM writes texts with it (`_line_length`); their lines
    should have 20 to 30 characters.

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    unknown = "units have the whole numbers from 0 to 127."
    yield Faults(_frozen, {unknown: lambda seen: seen.unit not in range(128)})
    summary = "with unit {unit:.0f} frozen at {value:.2f} our texts have "
    counted = summary + "lines of {length:.0f} characters"
    lengths = {
        f"{summary}hardly a line end: the lines are far too long.": (
            lambda seen: seen.length > 100
        ),
        f"{summary}lines as long as ever, or longer. Try another value, or another unit.": (
            lambda seen: seen.length >= 43
        ),
        f"{counted}. Shorter than usual, but still too long.": (
            lambda seen: seen.length > 30
        ),
        f"{counted}: too short.": lambda seen: seen.length < 20,
    }
    yield Faults(_measured, lengths)


judge(
    "sequences.order",
    a="these models don't use the order of words. That does not show that there is nothing "
    "in it; and what about the characters?",
    b=None,
    c="it is one use of attention, with one query for all texts. No token attends to "
    "another.",
    d="trained on shuffled characters, the window has just as many weights. Where is its "
    "lead?",
)


@exercise("sequences.last_state", kind="spot the bug")
def last_state():
    """Check a reader's last state of each text of a batch.

    The answer is a function of states (texts, tokens, d) and lengths, int (texts,), which
    returns (texts, d). Oracle: each text's last real state, on a batch of three lengths.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    states = normal(3, 6, 2).double()
    lengths = torch.tensor([2, 5, 3])
    rows = torch.arange(3)
    mistakes = {
        "this is the state after the padding: a short text's last state comes earlier.": (
            states[:, -1]
        ),
        "off by one: the last of n tokens has the number n - 1.": states[rows, lengths],
        "every text is cut at the length of the longest; each has its own.": states[:, 4],
        "every text is cut at the length of the first; each has its own.": states[:, 1],
        "this is the mean of the real states; the last one is asked for.": torch.stack(
            [row[:n].mean(0) for row, n in zip(states, lengths, strict=True)]
        ),
        "these are the first states.": states[:, 0],
        "that is one before the last.": states[rows, lengths - 2],
        "these are the states of all texts at each other's lengths; pair rows and lengths, "
        "as in `states[torch.arange(3), …]`.": states[:, lengths - 1],
    }
    yield Case([states, lengths], states[rows, lengths - 1], mistakes)
