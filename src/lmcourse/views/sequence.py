"""What follows a line, by counting and by an LSTM, and what the LSTM forgets on the way."""

import html

import numpy as np
import torch

from lmcourse.data import load_texts, train_val_test_split
from lmcourse.ngrams import NgramModel
from lmcourse.recurrent import load_char_lstm
from lmcourse.views.markup import table
from lmcourse.views.tokenizer import SIGNS
from lmcourse.views.view import View

LONGEST, BARS = 80, 8


def sequence(text, *, order=5, unit=0) -> View:
    """The next character after a line, counted and foretold, and the LSTM's forget gates.

    On the site the reader types any line, chooses how long the runs are that are counted,
    and whose gate is shown. Counts are those of the training part of the Sonnets, smoothed
    as `lmcourse.ngrams` does; the LSTM is that of `lmcourse.recurrent.load_char_lstm`. Both
    read the line from its beginning, after a line end.

    Parameters
    ----------
    text : str
        The line to begin with, of 1 to 80 characters that the Sonnets have.
    order : int, optional
        How long the runs are, 1 to 6.
    unit : int, optional
        Which of the LSTM's units, from 1; 0 for the mean of all.

    Returns
    -------
    View
        Its alternative text tells the likeliest characters and where least is kept.

    Raises
    ------
    ValueError
        If the line is empty or too long, or order or unit is none that there is.
    """
    tokenizer, reader = load_char_lstm()
    width = reader.output.in_features
    if not 1 <= len(text) <= LONGEST or order not in range(1, 7):
        raise ValueError("a line of 1 to 80 characters and an order of 1 to 6, please")
    if unit not in range(width + 1):
        raise ValueError(f"there are units 1 to {width}, and 0 for their mean; not {unit}")
    ids = tokenizer.encode("\n" + text)
    counted = _counted(tokenizer, ids, order)
    with torch.no_grad():
        logits, gates = reader.double()(torch.tensor([ids]))
    lstm, gates = logits[0, -1].softmax(-1).numpy(), gates[0, 1:].numpy()
    kept = gates[:, unit - 1] if unit else gates.mean(1)
    names = [SIGNS.get(character, character) for character in tokenizer.alphabet]
    likely = np.argsort(-counted, kind="stable")[:BARS]
    rows = [
        (names[i], f"{100 * counted[i]:.1f} %", f"{100 * lstm[i]:.1f} %") for i in likely
    ]
    data = {"text": text, "order": order, "unit": unit, "alphabet": tokenizer.alphabet}
    data |= {"counted": counted.tolist(), "lstm": lstm.round(6).tolist()}
    data |= {"gates": gates.round(4).tolist()}
    likeliest = ", ".join(" ".join(row[:2]) for row in rows[:3])
    least = int(kept.argmin())
    alt = (
        f"After “{text}” runs of {order} characters say: {likeliest}. The LSTM keeps least "
        f"of its memory, {100 * kept[least]:.1f} %, at character {least + 1}, "
        f"“{text[least]}”."
    )
    stored = f"<p>Your line: {_coloured(text, kept)}</p>"
    stored += table(["next", "counts", "LSTM"], rows)
    return View("sequence-view", data, stored, alt=alt, stores=["sonnets-training", "lstm"])


def _counted(tokenizer, ids: list[int], order: int) -> np.ndarray:
    """Return the probabilities of what follows, (vocab_size,), by the Sonnets' counts."""
    training = tokenizer.encode(train_val_test_split(load_texts("sonnets")).training)
    return NgramModel(training, order, tokenizer.vocab_size).next_probs(ids)


def _coloured(text: str, shares: np.ndarray) -> str:
    """Return a line, each character on a ground as strong as its share."""
    return "".join(
        f'<span style="background: rgb(127 191 230 / {share:.0%})">{html.escape(c)}</span>'
        for c, share in zip(text, shares, strict=True)
    )
