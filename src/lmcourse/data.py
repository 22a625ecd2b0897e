"""The corpora: poems of Emily Dickinson and the Sonnets of Shakespeare, and larger ones.

The first two are in the public domain and travel with the package; ``data/README.md``
tells where they come from and how they were checked.
"""

import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pooch

SECTIONS = {
    "life": "Life",
    "love": "Love",
    "nature": "Nature",
    "time-and-eternity": "Time and Eternity",
}
# Sonnet → (as the edition we follow has it, as it must be). The file keeps the edition's
# reading, so that it can be checked line by line; readers get the mended one.
MISPRINTS = {
    27: ("dear respose", "dear repose"),
    58: ("privilage", "privilege"),
    67: ("And steel dead", "And steal dead"),
    91: ("wretchcd", "wretched"),
    126: ("his fickle hour", "his sickle, hour"),
    153: ("seeting bath", "seething bath"),
}
TINY_SHAKESPEARE = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
TINY_SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
SHA256 = {
    "dickinson.txt": "1728d3bb43c57c09f88dc0c89056df2d9fc99080c8e6886b2b33534654947665",
    "sonnets.txt": "5d94ee506c28253a5610aa4ec9eb2948080bb7d51219dc854f686ee39eb8d649",
}


def corpora_folder() -> Path:
    """Return the folder of the corpora: in a wheel, or beside ``src`` in a checkout."""
    installed = Path(__file__).parent / "_data"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "data"


def stored(name: str) -> dict:
    """Return what a study found: the contents of ``data/studies/NAME.json``.

    Parameters
    ----------
    name : str
        Of the study.

    Returns
    -------
    dict
        The JSON of the file. Most of it: ``settings``, a dict, how the study was run, and
        ``results``, group of runs → list of dict, one for each run.

    Raises
    ------
    ValueError
        If the file is missing or damaged, saying how to make it.
    """
    path = corpora_folder() / "studies" / f"{name}.json"
    advice = f"make it with `python -m studies {name} --write`"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is missing or damaged ({error}): {advice}") from error


def _blocks(name: str, header: str) -> list[tuple[tuple[str, ...], str]]:
    """Split a corpus into what each header says and the text below it.

    Its SHA-256 is taken over lines that end in a newline, whatever a checkout on Windows
    made of them.

    Parameters
    ----------
    name : str
        Of the file in ``data``: "dickinson.txt" or "sonnets.txt".
    header : str
        A pattern that matches a header, with a group for each part of it.

    Returns
    -------
    list of (tuple of str, str)
        For each header its groups, and the text below it without blank ends.

    Raises
    ------
    ValueError
        If the file is missing or another one.
    """
    path = corpora_folder() / name
    content = path.read_bytes().replace(b"\r\n", b"\n") if path.is_file() else b""
    digest = hashlib.sha256(content).hexdigest()
    if digest != SHA256[name]:
        raise ValueError(
            f"{path} is missing or not the corpus it should be (SHA-256 {digest}, expected "
            f"{SHA256[name]}): restore it with `git checkout -- data`, or install lmcourse "
            "again"
        )
    text = content.decode()
    headers = list(re.finditer(header, text, re.MULTILINE))
    ends = [match.start() for match in headers[1:]] + [len(text)]
    pairs = zip(headers, ends, strict=True)
    return [(match.groups(), text[match.end() : end].strip()) for match, end in pairs]


def _poem(where: tuple[str, ...], text: str) -> dict:
    """Return one poem as a row of the table.

    Parameters
    ----------
    where : (str, str, str)
        Year of the edition, section as in "time-and-eternity", and number in it, all
        digits.
    text : str
        As it is printed; a first line in capitals before a blank one is the title.

    Returns
    -------
    dict
        ``title`` ("" if none was printed), ``first_line``, ``text``, ``series`` (the year,
        int), ``section`` (as printed: "Time and Eternity"), ``number`` (int).
    """
    series, section, number = where
    title, blank, rest = text.partition("\n\n")
    printed = blank and title == title.upper() and "\n" not in title
    if printed:
        title = title.rstrip(".")
        text = rest.strip("\n")
    else:
        title = ""
    return {
        "title": title,
        "first_line": text.partition("\n")[0],
        "text": text,
        "series": int(series),
        "section": SECTIONS[section],
        "number": int(number),
    }


def load_poems() -> pd.DataFrame:
    """Return the poems of Emily Dickinson as printed in 1890, 1891 and 1896.

    Returns
    -------
    DataFrame
        One row a poem in the order of the editions, with the columns ``title`` (empty
        where none was printed), ``first_line``, ``text`` (without the title; a newline
        between lines, an empty line between stanzas), ``series`` (the year), ``section``
        (Life, Love, Nature, Time and Eternity) and ``number`` within the section.

    Raises
    ------
    ValueError
        If the file is missing or damaged, naming it.
    """
    poems = _blocks("dickinson.txt", r"^\[(\d{4})/([a-z-]+)/(\d+)\]$")
    return pd.DataFrame([_poem(where, text) for where, text in poems])


def load_sonnets() -> pd.DataFrame:
    """Return Shakespeare's 154 Sonnets in modern spelling, the edition's misprints mended.

    Returns
    -------
    DataFrame
        One row a sonnet, with the columns ``number``, ``first_line`` and ``text`` (a
        newline between lines).

    Raises
    ------
    ValueError
        If the file is missing or damaged, naming it.
    """
    rows = []
    for where, text in _blocks("sonnets.txt", r"^\[(\d+)\]$"):
        number = int(where[0])
        text = text.replace(*MISPRINTS.get(number, ("", "")))
        rows.append({"number": number, "first_line": text.partition("\n")[0], "text": text})
    return pd.DataFrame(rows)


POEMS = ("sonnets", "poems")  # the corpora that are a collection of them


def load_texts(name: str) -> list[str]:
    """Return the texts of the poems in one of the embedded collections, in their order.

    ``name`` : "sonnets", Shakespeare's, or "poems", Dickinson's. ValueError for another.
    """
    if name not in POEMS:
        raise ValueError(
            f"there is no collection of poems {name!r}; there are 'sonnets' "
            "(Shakespeare) and 'poems' (Dickinson)"
        )
    table = load_sonnets() if name == "sonnets" else load_poems()
    return list(table.text)


class Parts(NamedTuple):
    """A corpus in three: to learn from, to choose by, and to judge by, once, at the end."""

    training: str
    validation: str
    test: str


def _joined(texts: Sequence[str]) -> str:
    """Return texts as one, an empty line between two, and a newline at the end."""
    return "\n\n".join(texts) + "\n"


def train_val_test_split(texts: Sequence[str]) -> Parts:
    """Split texts in three: of ten, the fifth is for validation, the tenth for the test.

    Neighbours in a collection are alike: the last tenth of the Sonnets is all about the
    Dark Lady and Cupid. So split, each part has texts from everywhere in the collection.

    The course's models of poems, and the losses that are reported of them, rest on it. One
    text that does not consist of poems is cut by `lmcourse.own_text.parts_of`, or, where
    only a validation part is needed, by `lmcourse.gpt.training.split`.

    Parameters
    ----------
    texts : sequence of str
        Whole poems; each goes to one part.

    Returns
    -------
    Parts
        ``training``, ``validation`` and ``test``: each one str, its texts with an empty
        line between two.

    Raises
    ------
    ValueError
        If there are fewer than ten.
    """
    if len(texts) < 10:
        raise ValueError(f"{len(texts)} texts cannot be split: each part needs one of ten")
    training = [text for i, text in enumerate(texts) if i % 10 not in (4, 9)]
    return Parts(_joined(training), _joined(texts[4::10]), _joined(texts[9::10]))


def _tiny_shakespeare() -> str:
    """Return the plays of Shakespeare as one str, from the cache or downloaded once.

    The cache is the folder ``LMCOURSE_CACHE``, or the user's own. The download goes to a
    temporary file, which is renamed when its hash is right.

    Raises
    ------
    OSError
        If the download fails or is not the expected file.
    """
    folder = os.environ.get("LMCOURSE_CACHE") or pooch.os_cache("lmcourse")
    name = "tinyshakespeare.txt"
    sha256 = TINY_SHAKESPEARE_SHA256
    try:
        path = pooch.retrieve(TINY_SHAKESPEARE, f"sha256:{sha256}", name, folder)
    except (OSError, ValueError) as error:  # the network; the hash
        raise OSError(
            f"tinyshakespeare could not be had from {TINY_SHAKESPEARE}: {error}\nPut that "
            f"file (SHA-256 {sha256}) at {Path(folder, name)} yourself, or use "
            'load_corpus("sonnets"), which needs no network.'
        ) from error
    return Path(path).read_text(encoding="utf-8")


def fingerprint(text: str) -> str:
    """Return the SHA-256 of a ``text``, in hexadecimal: a run knows its corpus by it."""
    return hashlib.sha256(text.encode()).hexdigest()


def load_corpus(name: str | os.PathLike) -> str:
    """Return a corpus as one string, to train on.

    Parameters
    ----------
    name : {"sonnets", "poems", "tinyshakespeare"} or path
        The embedded sonnets or poems, separated by empty lines; the plays of Shakespeare
        as used to train many small models (Karpathy 2015), downloaded once into
        ``$LMCOURSE_CACHE`` and verified; or a text file, UTF-8. A byte-order mark is
        dropped, and every line ends in a newline.

    Returns
    -------
    str

    Raises
    ------
    OSError
        If the download fails or is not the expected file, or there is no such file, or
        it must not be read.
    ValueError
        If the file is not UTF-8, empty, or holds a NUL; or if an embedded corpus is
        damaged.
    """
    if name == "tinyshakespeare":
        return _tiny_shakespeare()
    if name in POEMS:
        return _joined(load_texts(name))
    path = Path(name).expanduser()
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no corpus or text file {str(name)!r}; the corpora are 'sonnets', "
            "'poems' and 'tinyshakespeare'"
        )
    try:
        text = path.read_text(encoding="utf-8-sig")  # without a byte-order mark
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text, save it as such: {error}") from None
    if "\0" in text or not text.strip():
        raise ValueError(f"{path} is empty, or holds a NUL as no text does")
    return text
