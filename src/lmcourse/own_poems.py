"""Texts of the reader's own, read by a BERT layer by layer as the poems are.

The texts come from a file, or from a table in Python::

    mine = encode_texts("my-poems.csv")
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
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

from lmcourse.levels import level_names
from lmcourse.models import load_bert
from lmcourse.numbers import plural
from lmcourse.pooling import nearest, pool_layers, untrained
from lmcourse.probe import gram, interval, predict, score, smoothers
from lmcourse.random_order import reordered_words

MOST = 3000  # texts: their products, pair by pair, have to fit into memory
LEAST = 4  # texts, so that each has three others
LEAST_OF_A_LABEL = 3  # texts: two are left out at once
SHOWN = 3  # nearest texts in a table
SHUFFLES = 20  # of the labels
OTHER_STATES = ("random weights", "shuffled words")  # had the model learned nothing?
TABLES = {".csv": ",", ".tsv": "\t"}
DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons"}
COLUMNS = ("text", "label", "title")
LONGEST_CELL = 2**30  # characters; what `csv` takes by itself is less than a long text
PROGRAMS = {  # how files begin that are no text
    b"PK\x03\x04": "a packed file: a document (.docx, .odt), a sheet (.xlsx) or a .zip",
    b"%PDF": "a PDF",
    b"{\\rtf": "a document in RTF",
    b"\xd0\xcf\x11\xe0": "a document or sheet of an old office program (.doc, .xls)",
    b"\x1f\x8b": "a packed file (.gz)",
}


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
    FileNotFoundError
        If there is no such file.
    TypeError
        If ``path`` is no path, but a list of texts for example.
    ValueError
        If it is a folder, a document of a word processor or a text itself; if the file
        holds no text or is not in this encoding; if a table has no column ``text``, or two,
        or a row that has more or fewer cells than the first. It names the file and the
        line.
    """
    path = _file(path)
    content = _decode(path, encoding)
    if path.suffix.lower() in TABLES:
        rows = _table_rows(content, TABLES[path.suffix.lower()], path.name)
    else:
        rows = [{"text": text} for text in _parts(content)]
    rows = [row for row in rows if row["text"].strip()]
    if not rows:
        raise ValueError(
            f"{path.name} holds no text: every line of it is empty. Choose another file"
        )
    return _with_titles(pd.DataFrame(rows))


def _with_titles(texts):
    """Return a table of texts with a title each: the first line where there is none.

    ``texts`` : DataFrame with ``text``, and perhaps ``title``; it is not changed.
    """
    first_lines = texts.text.str.strip().str.split("\n").str[0].str.strip()
    if "title" not in texts:
        return texts.assign(title=first_lines)
    titles = texts.title.fillna("").astype(str)
    return texts.assign(title=titles.where(titles.str.strip() != "", first_lines))


def _file(path) -> Path:
    """Return a path to a file that is there; else raise an error that says what to give.

    ``path`` : what the reader gave. No str or Path is a TypeError, a text or a folder a
    ValueError, a missing file a FileNotFoundError.
    """
    in_python = 'texts that are in Python go into a table: pd.DataFrame({"text": [...]})'
    if not isinstance(path, str | Path):
        raise TypeError(f"a path is needed, not a {type(path).__name__}; {in_python}")
    if isinstance(path, str) and ("\n" in path or not path.strip()):
        raise ValueError(f"{path[:40]!r} is a text and no path of a file; {in_python}")
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the path of one file in it")
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: there is no such file in {path.absolute().parent}. Give its whole "
            f"path, or put the file there; {in_python}"
        )
    return path


def _decode(path, encoding) -> str:
    """Return what a file holds, with lines that end in a newline.

    A byte-order mark at the beginning is taken off if it is UTF-16's, which decides the
    encoding, or if the encoding is "utf-8".

    ``path`` : Path; ``encoding`` : str, of a file without UTF-16's mark. It is a ValueError
    if the file is one of a word processor, is not in the encoding, or holds a zero byte.
    """
    stored = path.read_bytes()
    for beginning, what in PROGRAMS.items():
        if stored.startswith(beginning):
            raise ValueError(
                f"{path.name} is {what}, and no text. In the program that made it, save it "
                "as a text file (.txt) or a table (.csv)"
            )
    if stored[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    elif encoding == "utf-8":
        encoding = "utf-8-sig"
    try:
        content = stored.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding == "utf-16":
            raise ValueError(
                f"{path.name} begins as UTF-16 and goes on otherwise. Save the file as "
                "UTF-8"
            ) from error
        line = stored[: error.start].count(b"\n") + 1
        name = "UTF-8" if encoding == "utf-8-sig" else encoding
        raise ValueError(
            f"{path.name}, line {line}: a byte there is no {name}. Save the file as UTF-8, "
            'or say how it is stored: encoding="latin-1"'
        ) from error
    if "\0" in content:
        line = content[: content.index("\0")].count("\n") + 1
        raise ValueError(
            f"{path.name}, line {line}: a zero byte, so this is no text. Export a text "
            "file or a table from the program that made it"
        )
    return content.replace("\r\n", "\n").replace("\r", "\n")


def _parts(content) -> list[str]:
    """Cut a text at two empty lines or more, if it has such, else at each empty line.

    ``content`` : str, the text of a file.
    """
    blank = r"\n[^\S\n]*"
    separator = (
        f"(?:{blank}){{3,}}"
        if re.search(f"(?:{blank}){{2}}\n", content.strip())
        else (f"(?:{blank}){{2,}}")
    )
    return [part for part in re.split(separator, content) if part.strip()]


def _table_rows(content, delimiter, name) -> list[dict]:
    """Return the rows of a table as dicts of ``text``, and ``label``, ``title`` if given.

    The values are str. Rows whose cells are all empty are left out.

    Parameters
    ----------
    content : str
        The text of the file.
    delimiter : str
        The character between cells.
    name : str
        Of the file, for messages.

    Raises
    ------
    ValueError
        If it has no column ``text``, or two of a name; if a quote is not closed, or a row's
        cells are not those of the first.
    """
    _check_delimiter(content, delimiter, name)
    if not content.strip():
        return []
    rows = _cells(content, delimiter, name)
    _, first = next(rows, (1, []))
    header = [cell.strip().lower() for cell in first]
    _check_header(header, name)
    records = []
    for line, cells in rows:
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            raise ValueError(
                f"{name}, line {line}: {len(cells)} {plural(len(cells), 'cell')}, and the "
                f"first line has {len(header)}. A text with {DELIMITERS[delimiter]} in it "
                "stands in quotes"
            )
        row = dict(zip(header, cells, strict=True))
        records.append({key: row[key] for key in COLUMNS if key in row})
    return records


def _cells(content, delimiter, name):
    """Yield each row of a table: the line it begins in, and its cells, a list of str.

    Parameters
    ----------
    content : str
        The text of the file.
    delimiter : str
        The character between cells.
    name : str
        Of the file, for messages.

    Raises
    ------
    ValueError
        If a quote is not closed.
    """
    before = csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(io.StringIO(content), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{name}, line {line}: a quote opens a cell here and does not close it. A "
            "quote inside of a cell in quotes is written twice"
        ) from error
    finally:
        csv.field_size_limit(before)


def _check_delimiter(content, delimiter, name):
    """Raise ValueError if another delimiter than this one parts a table's first line.

    ``content`` : the text of the table; ``delimiter`` : the character between its cells;
    ``name`` : of the file, for the message.
    """
    first = content.split("\n")[0]

    def has_text(mark):
        """Return whether a cell of this line says ``text``, if ``mark`` parts the cells."""
        return "text" in [cell.strip(' "').lower() for cell in first.split(mark)]

    other = next((mark for mark in DELIMITERS if mark in first and has_text(mark)), None)
    if other and not has_text(delimiter):
        raise ValueError(
            f"{name}, line 1: its cells are parted by {DELIMITERS[other]}, where "
            f"{DELIMITERS[delimiter]} are needed. Save it as CSV with commas; or with "
            "tabs, and a name that ends in .tsv"
        )


def _check_header(header, name):
    """Raise ValueError if a table's first line names no column ``text``, or one name twice.

    ``header`` : list of str, its cells in lower case, of which "text", "label" and "title"
    are looked at; ``name`` : of the file, for the message.
    """
    twice = [column for column in COLUMNS if header.count(column) > 1]
    if twice:
        raise ValueError(
            f"{name}, line 1: {header.count(twice[0])} columns are named `{twice[0]}`. "
            "Rename all but one"
        )
    if "text" not in header:
        named = ", ".join(f"`{column}`" for column in header)
        raise ValueError(
            f"{name}, line 1: it names the columns {named}; one should be `text`. "
            "`label` and `title` may stand beside it"
        )


def check(texts):
    """Raise ValueError if texts cannot be compared, saying what to do.

    There must be 4 to 3,000 texts, none of them empty and not all the same. If there are
    labels, each text needs one, there must be two or more, and each on three texts or more.

    Parameters
    ----------
    texts : DataFrame
        One row a text, with the columns ``text`` and ``title``, and ``label`` if there are
        labels.
    """
    _check_columns(texts)
    if not LEAST <= len(texts) <= MOST:
        count = f"{len(texts):,} {plural(len(texts), 'text')}"
        what = (
            "there is nothing to compare" if len(texts) < LEAST else "take a part of them"
        )
        raise ValueError(
            f"{count}, where {LEAST} to {MOST:,} can be compared: {what}. "
            "A text file has an empty line between two texts"
        )
    if len(set(texts.text.str.strip())) == 1:
        raise ValueError(
            f"all {len(texts):,} texts are equal, so that none is nearer than another. "
            "Give texts that differ"
        )
    if "label" not in texts:
        return
    labels = _labels(texts)
    counts = labels.value_counts()
    if "" in counts:
        empty = "; ".join(texts.title[labels == ""][:3])
        has = "has" if counts[""] == 1 else "have"
        raise ValueError(
            f"{counts['']} of {len(texts):,} texts {has} no label: {empty}. Give each one, "
            "or leave the column `label` out"
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


def _check_columns(texts):
    """Raise ValueError if a table has no column of texts, or a cell of it is no text.

    ``texts`` : DataFrame; also if it has two columns ``text``, ``title`` or ``label``.
    """
    for column in COLUMNS:
        if [*texts].count(column) > 1:
            raise ValueError(f"two columns of the table are named `{column}`: rename one")
    if "text" not in texts:
        raise ValueError(f"the table has the columns {[*texts]}; one should be `text`")
    for row, text in enumerate(texts.text):
        if not isinstance(text, str) or not text.strip():
            raise ValueError(
                f"row {row} of the table has no text but {text!r}: leave the row out, or "
                "write a text there"
            )


def _labels(texts):
    """Return the labels of texts as a Series of str, without blanks around; "" for none.

    ``texts`` : DataFrame with a column ``label``.
    """
    return texts.label.fillna("").astype(str).str.strip()


@dataclass(frozen=True, eq=False)
class EncodedTexts:
    """Texts at every level of a BERT, and at those of one with random weights.

    Attributes
    ----------
    texts : DataFrame
        One row a text, with the columns ``text`` and ``title``, and ``label`` if there are
        labels.
    names : list of str
        Of the levels, the lowest first: "static" (word vectors), "before layer 0", "after
        layer 0", …
    levels, random_levels : Tensor of shape (levels, texts, d_model)
        A vector for each text, the mean over its tokens: in the trained model, and in a
        copy in which the weights of every layer are shuffled.
    read_by : (PreTrainedTokenizerFast, BertModel)
        The tokenizer and the trained model that have read them.
    """

    texts: pd.DataFrame
    names: list
    levels: torch.Tensor
    random_levels: torch.Tensor
    read_by: tuple

    @cached_property
    def shuffled(self):
        """A pair: the texts with their words shuffled, a list of str, and their levels.

        The levels, a Tensor of shape (levels, texts, d_model), are those of the trained
        model, which reads the texts when they are first asked for. A page shuffles a
        reader's texts in the same way.
        """
        tokenizer, model = self.read_by
        special = tokenizer.num_special_tokens_to_add()
        room = model.config.max_position_embeddings - special
        shuffled = [reordered_words(text, tokenizer, room) for text in self.texts.text]
        return shuffled, pool_layers(shuffled, tokenizer, model).levels

    @property
    def table(self):
        """The share of labels that are predicted right at each level, a DataFrame.

        Each text's label is predicted by a ridge regression on the vectors of all the
        others (`lmcourse.probe.predict`). A row is a level, such as "after layer 0". The
        columns are shares predicted right, the mean over the labels: ``right``, its 95 %
        interval ``from`` and ``to``, then ``random weights``, and ``shuffled words``: those
        of the trained model that reads each text's words in another order. Two rows have no
        level: ``words counted``, a regression on the words' frequencies; and ``labels
        shuffled``, the last level's vectors with the labels in another order, where the
        interval is that of all orders tried. Their last two columns are NaN.

        Raises
        ------
        ValueError
            If the texts have no labels.
        """
        labels = self.labels
        rows = {}
        for name, level, *others in zip(
            self.names, self.levels, self.random_levels, self.shuffled[1], strict=True
        ):
            rows[name] = _accuracy(level, labels)
            for column, other in zip(OTHER_STATES, others, strict=True):
                rows[name][column] = score(predict(other, labels).hits, labels)
        rows["words counted"] = _accuracy(word_vectors(self.texts.text), labels)
        rows["labels shuffled"] = _shuffled_accuracy(self.levels[-1], labels)
        return pd.DataFrame(rows).T

    def nearest(self, row):
        """Return the titles of the texts nearest to one, level by level, a DataFrame.

        Parameters
        ----------
        row : int
            Of the text, from 0.

        Returns
        -------
        DataFrame
            A row for each level, the highest first; columns 1, 2 and 3, titles, the nearest
            (by the cosine of the centred vectors) first.
        """
        titles = self.texts.title.to_numpy()
        neighbours = [nearest(level, SHOWN)[row].numpy() for level in self.levels]
        columns = range(1, SHOWN + 1)
        return pd.DataFrame(
            [titles[indices] for indices in neighbours], self.names, columns
        ).iloc[::-1]

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
        return _labels(self.texts).to_numpy(str)


def _accuracy(vectors, labels) -> dict:
    """Return how well a ridge regression on the other texts' vectors predicts labels.

    ``vectors`` : Tensor (texts, d); ``labels`` : array of str (texts,). The result has
    ``right``, the share predicted right, the mean over the labels, and ``from`` and ``to``,
    the ends of its 95 % interval, all float.
    """
    hits = predict(vectors, labels).hits
    low, high = interval(hits, labels)
    return {"right": score(hits, labels), "from": low, "to": high}


def word_vectors(texts) -> torch.Tensor:
    """Return TF-IDF vectors: how frequent each word is in each text, weighted by rarity.

    ``texts`` : sequence of str. Returned is a float64 Tensor (texts, words), with the
    logarithm of the counts and rows of length 1.
    """
    counted = TfidfVectorizer(token_pattern=r"\w+", sublinear_tf=True).fit_transform(texts)
    return torch.from_numpy(counted.toarray())


def _shuffled_accuracy(vectors, labels) -> dict:
    """Return how well labels are predicted that were shuffled among the texts, 20 times.

    The two ends are no bootstrap interval of a mean: they say what chance gives for one
    shuffle.

    Parameters
    ----------
    vectors : Tensor of shape (texts, d_model)
    labels : array of shape (texts,)

    Returns
    -------
    dict
        ``right``, the mean share predicted right (by a ridge regression on the other texts,
        as in `_accuracy`); ``from`` and ``to``, between which 95 % of the shuffles lie; all
        float.
    """
    hats = smoothers(gram(vectors))
    rng = np.random.default_rng(0)
    scores = []
    for _ in range(SHUFFLES):
        shuffled = rng.permutation(labels)
        scores.append(score(predict(hats, shuffled).hits, shuffled))
    low, high = np.quantile(scores, [0.025, 0.975])
    return {"right": float(np.mean(scores)), "from": low, "to": high}


def _column_name(column):
    """Return a column's name as it is asked for: " Text " is ``text``.

    So with ``label`` and ``title``; any other name stays as it is.
    """
    name = str(column).strip().lower()
    return name if name in COLUMNS else column


def encode_texts(source, tokenizer=None, model=None, encoding="utf-8"):
    """Read texts with a BERT, layer by layer, and with a copy whose layers are shuffled.

    In the copy the numbers of each weight of a layer are shuffled; its embeddings stay.
    Some hundred texts of a sonnet's length take a minute.

    Parameters
    ----------
    source : path, or DataFrame
        A file: a table, if it ends in ``.csv`` or ``.tsv``, else a text file. Or a table
        with a column ``text``; ``label`` and ``title`` may stand beside it.
    tokenizer, model : optional
        A BERT's: give both, or neither for those that `lmcourse.models.load_bert` loads.
    encoding : str
        How a file's characters are stored.

    Returns
    -------
    EncodedTexts

    Raises
    ------
    FileNotFoundError, TypeError, ValueError
        If the file cannot be read, or its texts cannot be compared, such as too few or
        empty ones; the message says what to do.
    """
    if isinstance(source, pd.DataFrame):
        texts = source.reset_index(drop=True).rename(columns=_column_name)
        _check_columns(texts)
        texts = _with_titles(texts)
    else:
        texts = read(source, encoding)
    check(texts)
    if model is None:
        tokenizer, model = load_bert()
    depth = model.config.num_hidden_layers
    random_model = untrained(model, seed=0, shuffle=True, layers=range(depth))
    levels = pool_layers([*texts.text], tokenizer, model).levels
    random_levels = pool_layers([*texts.text], tokenizer, random_model).levels
    names = level_names(depth)
    return EncodedTexts(texts, names, levels, random_levels, (tokenizer, model))
