"""Texts of the reader's own, read by a BERT layer by layer as the poems are.

The texts come from a file, or from a table in Python::

    mine = climb("my-poems.csv")
    mine.table
    mine.nearest(0)

A text file has an empty line between two texts; if texts have empty lines of their own,
between stanzas, two empty lines. A table (``.csv``, ``.tsv``) has a column ``text``, and
may have ``label`` and ``title``. Nothing is written, and nothing leaves the machine.
"""

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

from lmcourse.models import load_bert
from lmcourse.pooling import nearest, pool_layers, untrained
from lmcourse.probe import gram, interval, predict, score, smoothers

MOST = 3000  # texts: their products, pair by pair, have to fit into memory
LEAST = 4  # texts, so that each has three others
LEAST_OF_A_LABEL = 3  # texts: two are left out at once
SHOWN = 3  # nearest texts in a table
DEALS = 20  # random deals of the labels
TABLES = {".csv": ",", ".tsv": "\t"}


def read(path, encoding="utf-8"):
    """Read texts from a file.

    Parameters
    ----------
    path : path
        A table, if it ends in ``.csv`` or ``.tsv``, else a text file.
    encoding : str
        How its characters are stored.

    Returns
    -------
    DataFrame
        One row a text, with the columns ``text`` and ``title``, and ``label`` if the file
        has one. The title is the first line where the file has none.

    Raises
    ------
    ValueError
        If the file holds no text, is stored otherwise, or a table has no column ``text``
        or a row that has more or fewer cells than the first; naming the file and the line.
    """
    path = Path(path)
    content = _decode(path, encoding)
    if path.suffix.lower() in TABLES:
        rows = _table_rows(content, TABLES[path.suffix.lower()], path.name)
    else:
        rows = [{"text": text} for text in _parts(content)]
    rows = [row for row in rows if row["text"].strip()]
    if not rows:
        raise ValueError(f"{path.name} holds no text: every line of it is empty")
    texts = pd.DataFrame(rows)
    first_lines = texts.text.str.strip().str.split("\n").str[0].str.strip()
    if "title" not in texts:
        return texts.assign(title=first_lines)
    return texts.assign(title=texts.title.where(texts.title.str.strip() != "", first_lines))


def _decode(path, encoding) -> str:
    """Return what a file holds, with lines that end in a newline.

    A mark at the beginning that says how it is stored (BOM) is taken off.
    """
    stored = path.read_bytes()
    if stored[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    elif encoding == "utf-8":
        encoding = "utf-8-sig"
    try:
        content = stored.decode(encoding)
    except UnicodeDecodeError as error:
        line = stored[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{path.name}, line {line}: byte {stored[error.start]:#04x} is no {encoding}. "
            'Save the file as UTF-8, or say how it is stored: encoding="latin-1"'
        ) from error
    if "\0" in content:
        line = content[: content.index("\0")].count("\n") + 1
        raise ValueError(
            f"{path.name}, line {line}: a zero byte, so this is no text. Export a text "
            "file or a table from the program that made it"
        )
    return content.replace("\r\n", "\n").replace("\r", "\n")


def _parts(content) -> list[str]:
    """Cut a text at two empty lines or more, if it has such, else at each empty line."""
    blank = r"\n[^\S\n]*"
    mark = (
        f"(?:{blank}){{3,}}"
        if re.search(f"(?:{blank}){{2}}\n", content.strip())
        else (f"(?:{blank}){{2,}}")
    )
    return [part for part in re.split(mark, content) if part.strip()]


def _table_rows(content, delimiter, name) -> list[dict]:
    """Return the rows of a table as dicts of ``text``, and ``label``, ``title`` if given.

    Raises
    ------
    ValueError
        If it has no column ``text``, or a row whose cells are not those of the first.
    """
    reader = csv.reader(io.StringIO(content), delimiter=delimiter)
    header = [cell.strip().lower() for cell in next(reader, [])]
    if "text" not in header:
        raise ValueError(
            f"{name}: its first line names the columns {header}; one should be `text`. "
            "`label` and `title` may stand beside it"
        )
    rows = []
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            raise ValueError(
                f"{name}, line {reader.line_num}: {len(cells)} cells, and the first line "
                f"has {len(header)}. A text with {delimiter!r} in it stands in quotes"
            )
        row = dict(zip(header, cells, strict=True))
        rows.append({key: row[key] for key in ("text", "label", "title") if key in row})
    return rows


def check(texts):
    """Raise ValueError if texts cannot be compared, saying what to do.

    Parameters
    ----------
    texts : DataFrame
        As `read` returns it.
    """
    if "text" not in texts:
        raise ValueError(f"the table has the columns {[*texts]}; one should be `text`")
    if not LEAST <= len(texts) <= MOST:
        what = (
            "there is nothing to compare" if len(texts) < LEAST else "take a part of them"
        )
        raise ValueError(
            f"{len(texts):,} texts, where {LEAST} to {MOST:,} can be compared: {what}. "
            "A text file has an empty line between two texts"
        )
    if "label" not in texts:
        return
    counts = texts.label.astype(str).str.strip().value_counts()
    if "" in counts:
        empty = [*texts.title[texts.label.astype(str).str.strip() == ""][:3]]
        raise ValueError(
            f"{counts['']} texts have no label, such as {empty}: give them one"
        )
    if len(counts) < 2:
        raise ValueError(
            f"all texts have the label {counts.index[0]!r}: give two labels or more, or "
            "leave the column out"
        )
    if counts.min() < LEAST_OF_A_LABEL:
        rare = [*counts.index[counts < LEAST_OF_A_LABEL][:5]]
        raise ValueError(
            f"{rare}: a label needs {LEAST_OF_A_LABEL} texts, else none is left to tell it "
            "by. Join rare labels, or leave those texts out"
        )


@dataclass(frozen=True, eq=False)
class Climb:
    """Texts at every level of a BERT, and at those of one with random weights.

    Attributes
    ----------
    texts : DataFrame
        As `read` returns it.
    names : list of str
        Of the levels, the lowest first.
    levels, random_levels : Tensor of shape (levels, texts, d_model)
    """

    texts: pd.DataFrame
    names: list
    levels: torch.Tensor
    random_levels: torch.Tensor

    @property
    def table(self):
        """How well the labels are told at each level, a DataFrame.

        Each text's label is predicted from all the others, as in the chapter. The columns
        are shares predicted right, the mean over the labels: ``right``, its 95 % interval
        ``from`` and ``to``, and ``random weights``. Two rows have no level: ``words
        counted``, a regression on the words' frequencies; and ``labels dealt``, the last
        level's vectors with the labels dealt out anew, where the interval is that of the
        deals.

        Raises
        ------
        ValueError
            If the texts have no labels.
        """
        labels = self.labels
        rows = {}
        for name, level, random in zip(
            self.names, self.levels, self.random_levels, strict=True
        ):
            rows[name] = _told(level, labels)
            rows[name]["random weights"] = score(predict(random, labels).hits, labels)
        rows["words counted"] = _told(_word_vectors(self.texts.text), labels)
        rows["labels dealt"] = _dealt(self.levels[-1], labels)
        return pd.DataFrame(rows).T

    def nearest(self, row):
        """Return the titles of the texts nearest to one, level by level, a DataFrame.

        Parameters
        ----------
        row : int
            Of the text, from 0.
        """
        titles = self.texts.title.to_numpy()
        found = [nearest(level, SHOWN)[row].numpy() for level in self.levels]
        columns = range(1, SHOWN + 1)
        return pd.DataFrame([titles[f] for f in found], self.names, columns).iloc[::-1]

    @property
    def labels(self):
        """The label of each text, an array of str of shape (texts,).

        Raises
        ------
        ValueError
            If the texts have no labels.
        """
        if "label" not in self.texts:
            raise ValueError(
                "these texts have no labels: `nearest` works without. For the labels, give "
                "a table with the columns `text` and `label`"
            )
        return self.texts.label.astype(str).str.strip().to_numpy(str)


def _told(vectors, labels) -> dict:
    """Return how well labels are told by vectors (texts, d), with the 95 % interval."""
    hits = predict(vectors, labels).hits
    low, high = interval(hits, labels)
    return {"right": score(hits, labels), "from": low, "to": high}


def _word_vectors(texts) -> torch.Tensor:
    """Return how frequent each word is in each text, weighted by rarity: (texts, words)."""
    counted = TfidfVectorizer(token_pattern=r"\w+", sublinear_tf=True).fit_transform(texts)
    return torch.from_numpy(counted.toarray())


def _dealt(vectors, labels) -> dict:
    """Return how well labels are told that were dealt out anew: mean, and 95 % of deals."""
    hats, rng = smoothers(gram(vectors)), np.random.default_rng(0)
    scores = []
    for _ in range(DEALS):
        dealt = rng.permutation(labels)
        scores.append(score(predict(hats, dealt).hits, dealt))
    low, high = np.quantile(scores, [0.025, 0.975])
    return {"right": float(np.mean(scores)), "from": low, "to": high}


def climb(source, tokenizer=None, model=None, encoding="utf-8"):
    """Read texts with a BERT, layer by layer, and with one that has learned nothing.

    Some hundred texts of a sonnet's length take a minute.

    Parameters
    ----------
    source : path, or DataFrame
        A file, as `read` takes it, or a table with a column ``text``; ``label`` and
        ``title`` may stand beside it.
    tokenizer, model : optional
        As `lmcourse.models.load_bert` returns them, which is the default.
    encoding : str
        How a file's characters are stored.

    Returns
    -------
    Climb

    Raises
    ------
    ValueError
        If the file cannot be read, or its texts cannot be compared: see `read`, `check`.
    """
    if isinstance(source, pd.DataFrame):
        texts = source.reset_index(drop=True)
        if "text" in texts and "title" not in texts:
            texts = texts.assign(title=texts.text.str.strip().str.split("\n").str[0])
    else:
        texts = read(source, encoding)
    check(texts)
    if model is None:
        tokenizer, model = load_bert()
    depth = model.config.num_hidden_layers
    names = ["static", "before layer 0", *(f"after layer {i}" for i in range(depth))]
    random = untrained(model, seed=0, shuffle=True, layers=range(depth))
    both = [pool_layers([*texts.text], tokenizer, each).levels for each in (model, random)]
    return Climb(texts, names, *both)
