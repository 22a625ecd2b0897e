"""Whose is a poem? What a linear classifier makes of vectors, of words, or of a length."""

import numpy as np
import pandas as pd
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import RidgeClassifierCV
from torch.nn.utils.rnn import pad_sequence

from lmcourse.data import load_poems, load_sonnets
from lmcourse.fine_tuning import AS_KNOWN, MARKS
from lmcourse.gpt.inside import line_states

LINES = 4  # of a poem
SHORTEST = 20  # characters that a line has at least


def cut_poems(length):
    """Return four lines of each poem of both poets that has four of 20 characters or more.

    Two characters that the Sonnets' alphabet lacks are replaced (`AS_KNOWN`).

    Parameters
    ----------
    length : int
        Characters to which each line is cut.

    Returns
    -------
    DataFrame
        A row for each poem, Shakespeare's first. Columns ``lines`` (a list of four str),
        ``poet`` ("Shakespeare" or "Dickinson"), and ``held``: whether the poem is held out
        from training, as two of each ten are.
    """
    rows = []
    for poet, table in {"Shakespeare": load_sonnets(), "Dickinson": load_poems()}.items():
        for number, text in enumerate(table.text):
            lines = text.translate(AS_KNOWN).splitlines()
            lines = [line[:length] for line in lines if len(line) >= SHORTEST][:LINES]
            if len(lines) == LINES:
                rows.append((lines, poet, number % 10 in (4, 9)))
    return pd.DataFrame(rows, columns=["lines", "poet", "held"])


def readings(model, tokenizer, table, last=False):
    """Return a vector of each poem before a GPT's first layer and after each.

    Parameters
    ----------
    model : GPT
    tokenizer : CharTokenizer
    table : DataFrame
        Of `cut_poems`: a row for each poem, with ``lines``, four str, and ``held``, whether
        it is held out from training.
    last : bool
        Whether to use the state of each line's last character, instead of the mean of all
        states of the line.

    Returns
    -------
    array of shape (layers + 1, poems, d_model)
        The mean over a poem's lines, less the mean of training poems, of unit length.
    """
    lines = [torch.tensor(tokenizer.encode(line)) for line in table.lines.explode()]
    ids = pad_sequence(lines, batch_first=True)  # (lines, tokens)
    parts = zip(ids.split(256), torch.tensor([*map(len, lines)]).split(256), strict=True)
    x = torch.cat([line_states(model, *part, last) for part in parts], dim=1)
    x = x.unflatten(1, (-1, LINES)).mean(2)  # (layers + 1, poems, d_model)
    x = x - x[:, ~torch.tensor(table.held.to_numpy())].mean(1, keepdim=True)
    return (x / x.norm(dim=-1, keepdim=True)).numpy()  # of unit length


def told_right(x, table, size, seed, **kind):
    """Return which held-out poems a ridge classifier assigns to the right poet.

    It is trained on few labelled poems; its penalty is chosen on these.

    Parameters
    ----------
    x : array of shape (poems, d_model), or list of str
        Vectors of all poems, or their texts, which become bags of words.
    table : DataFrame
        Of `cut_poems`: a row for each poem, with ``poet`` and ``held``, whether it is held
        out from training.
    size : int
        How many labelled poems it is trained on, half of them Shakespeare's, half
        Dickinson's.
    seed : int
        Of the draw of these poems.
    **kind
        Arguments of `TfidfVectorizer`, for texts.

    Returns
    -------
    bool array of shape (held-out poems,)
        In the order of the table.
    """
    rng = np.random.default_rng(seed)
    who = table.poet.to_numpy()
    held = table.held.to_numpy()
    pools = [np.flatnonzero(~held & (who == poet)) for poet in MARKS]
    rows = np.concatenate([rng.choice(each, size // 2, replace=False) for each in pools])
    if isinstance(x, list):  # texts, for a bag of words or of another kind
        counter = TfidfVectorizer(sublinear_tf=True, **kind).fit([x[i] for i in rows])
        x = counter.transform(x).toarray()
    ridge = RidgeClassifierCV(np.logspace(-4, 3, 15), class_weight="balanced")
    return ridge.fit(x[rows], who[rows]).predict(x[held]) == who[held]
