"""What an n-gram model and an LSTM expect after some lines, and one unit of the LSTM."""

import html
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F

from lmcourse.data import load_texts, train_val_test_split
from lmcourse.ngrams import NgramModel
from lmcourse.numbers import format_number, percent
from lmcourse.recurrent import load_char_lstm, watch
from lmcourse.shuffled import shuffled_weights
from lmcourse.views.markup import table
from lmcourse.views.tokenizer import SIGNS
from lmcourse.views.view import View

LONGEST, BARS = 640, 6


def sequence(text, *, order=5, unit=0) -> View:
    """Show what an n-gram model and an LSTM expect after a text, and one unit of the LSTM.

    On the site the reader types any lines, chooses the length of the n-grams and a unit of
    the LSTM, and sees what changes when the unit's memory is frozen at its mean over the
    training sonnets. A switch shuffles the LSTM's weights
    (`lmcourse.shuffled.shuffled_weights`). The n-grams are counted in the same sonnets and
    smoothed as `lmcourse.ngrams` does; the LSTM is that of
    `lmcourse.recurrent.load_char_lstm`. Both read from the beginning, after a line end.

    Parameters
    ----------
    text : str
        What is read first: 1 to 640 characters, all of which occur in the Sonnets.
    order : int, optional
        The length of the n-grams, 1 to 6.
    unit : int, optional
        Which of the LSTM's units, from 0.

    Returns
    -------
    View
        Its alternative text says which characters are the likeliest, where the unit's
        memory is lowest, and the loss with the unit free and frozen at its mean.

    Raises
    ------
    ValueError
        If the text is empty or too long, or has a character that the Sonnets have not; or
        if order or unit is none that there is.
    """
    tokenizer, reader = load_char_lstm()
    width = reader.output.in_features
    if not 1 <= len(text) <= LONGEST or order not in range(1, 7):
        raise ValueError("1 to 640 characters and an order of 1 to 6, please")
    if unit not in range(width):
        raise ValueError(f"there are units 0 to {width - 1}, not {unit}")
    data = {"text": text, "order": order, "unit": unit, "alphabet": tokenizer.alphabet}
    data |= _reading(tokenizer, reader.double(), text, order, unit)
    data["untrained"] = {"means": unit_means(random=True).numpy().round(4).tolist()}
    alt, rows = _summary(data)
    stored = f"<p>Your lines: {_coloured(text, data['memory'])}</p>"
    stored += table(["next", "n-gram", "LSTM", f"unit {unit} frozen"], rows)
    stores = ["sonnets-training", "lstm", "lstm-random"]
    return View("sequence-view", data, stored, alt=alt, stores=stores)


def _reading(tokenizer, reader, text: str, order: int, unit: int) -> dict:
    """Return what the LSTM and counting expect after a text, and one unit's memory.

    Parameters
    ----------
    tokenizer : CharTokenizer
    reader : CharLSTM
    text : str
    order : int
        Of the n-gram model.
    unit : int
        The unit that is watched, and frozen at its mean in a second run.

    Returns
    -------
    dict
        ``counted``, ``lstm``, ``off``: lists of the probabilities of the next character, by
        its id, by n-grams of the training sonnets, by the LSTM, and by the LSTM with the
        unit frozen; ``means`` of the memories of all units over the training sonnets;
        ``gates`` (the forget gate, 0 to 1) and ``memory`` of the unit, one number a
        character; ``losses``, nested lists (2, characters), in nats, free and frozen.
    """
    ids = tokenizer.encode("\n" + text)
    means = unit_means()
    # The text is read twice: with all units free (NaN), and with one frozen at its mean.
    held = torch.full((2, len(means)), torch.nan, dtype=torch.float64)
    held[1, unit] = means[unit]
    logits, memories, gates = watch(reader, torch.tensor([ids, ids]), held)
    targets = torch.tensor([ids[1:]] * 2)
    losses = F.cross_entropy(logits[:, :-1].mT, targets, reduction="none")
    lstm, off = logits[:, -1].softmax(-1).numpy().round(6).tolist()
    training = tokenizer.encode(train_val_test_split(load_texts("sonnets")).training)
    counted = NgramModel(training, order, tokenizer.vocab_size)
    return {
        "counted": counted.next_probs(ids).tolist(),
        "lstm": lstm,
        "off": off,
        "means": means.numpy().round(4).tolist(),
        "gates": gates[0, 1:, unit].numpy().round(4).tolist(),
        "memory": memories[0, 1:, unit].numpy().round(4).tolist(),
        "losses": losses.numpy().round(4).tolist(),
    }


def _summary(data: dict) -> tuple[str, list]:
    """Return the alternative text, and rows of the likeliest characters.

    ``data`` : what the view carries: ``alphabet``, a str; by character ``counted``,
    ``lstm`` and ``off``, the probabilities of the next by n-grams, by the LSTM, and by the
    LSTM with the unit frozen; ``text``, ``order``, ``unit``; ``memory``, a number for each
    character of the text; ``losses``, nested lists (2, characters), in nats, free and
    frozen. A row is a character's name and the three probabilities in per cent, as str.
    """
    names = [SIGNS.get(character, character) for character in data["alphabet"]]
    shares = np.array([data["counted"], data["lstm"], data["off"]])
    likely = np.argsort(-shares[:2].max(0), kind="stable")[:BARS]
    rows = [[names[i], *(percent(share, 1) for share in shares[:, i])] for i in likely]
    first = np.argsort(-shares[0], kind="stable")[:3]
    likeliest = ", ".join(f"{names[i]} {percent(shares[0, i], 1)}" for i in first)
    text = data["text"]
    memory = data["memory"]
    free, frozen = np.mean(data["losses"], axis=1)
    lowest = int(np.argmin(memory))  # where the memory is lowest
    sign = SIGNS.get(text[lowest], text[lowest])
    return (
        f"After “{text.splitlines()[-1]}” the likeliest characters of the "
        f"{data['order']}-gram model: {likeliest}. The memory of unit {data['unit']} is "
        f"lowest, {format_number(memory[lowest], '.2f')}, at character {lowest + 1}, "
        f"“{sign}”. Loss: "
        f"{free:.2f}; with the unit frozen at its mean {frozen:.2f}."
    ), rows


@cache
def unit_means(random=False):
    """Return the mean memory of each unit of the LSTM over the training sonnets.

    It is that of `lmcourse.recurrent.load_char_lstm`, which reads characters. Each sonnet
    is read after a line break, as far as the shortest one goes.

    ``random`` : bool, whether of the LSTM with shuffled weights instead of the trained one.
    Returns a float64 Tensor (d_model,), which is kept for the next call.
    """
    tokenizer, reader = load_char_lstm()
    # An LSTM of random weights is chaotic: in float32 a rounding error at the first
    # character is as large as the memory itself 300 characters later.
    reader = shuffled_weights(reader).double() if random else reader
    learned = [s for i, s in enumerate(load_texts("sonnets")) if i % 10 not in (4, 9)]
    shortest = min(map(len, learned))
    ids = torch.tensor([tokenizer.encode("\n" + sonnet[:shortest]) for sonnet in learned])
    return watch(reader, ids)[1].double().mean((0, 1))


def _coloured(text: str, memory: list[float]) -> str:
    """Return a text as HTML, each character on a background as strong as the memory.

    ``memory`` : a number for each character; the lowest has no background, the highest the
    strongest.
    """
    shares = (np.array(memory) - min(memory)) / (np.ptp(memory) or 1)
    return "".join(
        f'<span style="background: rgb(127 191 230 / {share:.0%})">{html.escape(c)}</span>'
        for c, share in zip(text, shares, strict=True)
    )
