"""The corpora: poems of Emily Dickinson and the Sonnets of Shakespeare, and larger ones.

The first two are in the public domain and travel with the package; ``data/README.md``
tells where they come from and how they were checked.
"""

import os
import re
from pathlib import Path

import pandas as pd
import platformdirs
import pooch

__all__ = ["corpora_folder", "load_corpus", "load_poems", "load_sonnets"]

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
_POEM = re.compile(r"\[(\d{4})/([a-z-]+)/(\d+)\]")
_SONNET = re.compile(r"\[(\d+)\]")
_REPAIR = "restore it with `git checkout -- data`, or install lmcourse again"


def corpora_folder() -> Path:
    """Return the folder of the corpora: in a wheel, or beside ``src`` in a checkout."""
    installed = Path(__file__).parent / "_data"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "data"


def _blocks(name: str, header: re.Pattern) -> list[tuple[re.Match, list[str], int]]:
    """Split a corpus into (header, lines, line number), strictly."""
    path = corpora_folder() / name
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing: {_REPAIR}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is damaged ({error}): {_REPAIR}") from None
    blocks: list[tuple[re.Match, list[str], int]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("["):
            match = header.fullmatch(line)
            if not match:
                raise ValueError(f"{path}:{number}: damaged header {line!r}: {_REPAIR}")
            blocks.append((match, [], number))
        elif blocks:
            blocks[-1][1].append(line.rstrip())
        elif line.strip():
            raise ValueError(f"{path}:{number}: text before a header: {_REPAIR}")
    for match, lines, number in blocks:
        if not "".join(lines).strip():
            raise ValueError(f"{path}:{number}: {match[0]} has no text: {_REPAIR}")
    if not blocks:
        raise ValueError(f"{path} is empty: {_REPAIR}")
    return blocks


def _poem(match: re.Match, lines: list[str]) -> dict:
    """Read one poem; a first line in capitals before a blank one is its printed title."""
    series, section, number = match.groups()
    title = ""
    if len(lines) > 1 and not lines[1] and lines[0] == lines[0].upper():
        title, lines = lines[0].rstrip("."), lines[1:]
    text = "\n".join(lines).strip("\n")
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
        where none was printed), ``first_line``, ``text`` (lines end in a newline,
        stanzas in an empty line), ``series`` (the year), ``section`` (Life, Love,
        Nature, Time and Eternity) and ``number`` within the section.

    Raises
    ------
    FileNotFoundError, ValueError
        If the file is missing or damaged, naming it and the line.
    """
    name = "dickinson.txt"
    rows = []
    for match, lines, number in _blocks(name, _POEM):
        if match[2] not in SECTIONS:
            where = f"{corpora_folder() / name}:{number}"
            raise ValueError(f"{where}: unknown section {match[2]!r}: {_REPAIR}")
        rows.append(_poem(match, lines))
    poems = pd.DataFrame(rows)
    twice = poems[poems.duplicated(["series", "section", "number"])]
    if len(twice):
        raise ValueError(
            f"{corpora_folder() / name} holds {twice.first_line.iloc[0]!r} under a number "
            f"already taken: {_REPAIR}"
        )
    return poems


def load_sonnets() -> pd.DataFrame:
    """Return Shakespeare's 154 Sonnets in modern spelling.

    Returns
    -------
    DataFrame
        One row a sonnet, with the columns ``number``, ``first_line`` and ``text`` (lines
        end in a newline).

    Raises
    ------
    FileNotFoundError, ValueError
        If the file is missing or damaged, naming it.
    """
    name = "sonnets.txt"
    rows = []
    for match, lines, _ in _blocks(name, _SONNET):
        text = "\n".join(lines).strip("\n").replace(*MISPRINTS.get(int(match[1]), ("", "")))
        first_line = text.partition("\n")[0]
        rows.append({"number": int(match[1]), "first_line": first_line, "text": text})
    sonnets = pd.DataFrame(rows)
    if list(sonnets.number) != list(range(1, 155)):
        raise ValueError(f"{corpora_folder() / name} is not Sonnets 1 to 154: {_REPAIR}")
    return sonnets


def _cache() -> Path:
    """Return the folder of downloads: ``$LMCOURSE_CACHE``, or the platform's."""
    chosen = os.environ.get("LMCOURSE_CACHE") or platformdirs.user_cache_dir("lmcourse")
    return Path(chosen).expanduser()


def _tiny_shakespeare() -> str:
    """Download once, to a temporary file renamed when its hash is right; then reuse."""
    target = _cache() / "tinyshakespeare.txt"
    try:
        path = pooch.retrieve(
            TINY_SHAKESPEARE,
            known_hash=f"sha256:{TINY_SHAKESPEARE_SHA256}",
            fname=target.name,
            path=target.parent,
        )
    except (OSError, ValueError) as error:  # the network; the hash
        raise OSError(
            f"tinyshakespeare could not be had from {TINY_SHAKESPEARE}: {error}\nPut that "
            f"file (SHA-256 {TINY_SHAKESPEARE_SHA256}) at {target} yourself, or use "
            'load_corpus("sonnets"), which needs no network.'
        ) from error
    return Path(path).read_text(encoding="utf-8")


def load_corpus(name: str | os.PathLike) -> str:
    """Return a corpus as one string, to train on.

    Parameters
    ----------
    name : {"sonnets", "poems", "tinyshakespeare"} or path
        The embedded sonnets or poems, separated by empty lines; the plays of Shakespeare
        as used to train many small models (Karpathy 2015), downloaded once into
        ``$LMCOURSE_CACHE`` and verified; or a text file, UTF-8.

    Raises
    ------
    OSError
        If the download fails or is not the expected file, or there is no such file.
    ValueError
        If the file is not UTF-8, or empty.
    """
    if name == "tinyshakespeare":
        return _tiny_shakespeare()
    if name in ("sonnets", "poems"):
        frame = load_sonnets() if name == "sonnets" else load_poems()
        return "\n\n".join(frame.text) + "\n"
    path = Path(name)
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no corpus or file {str(name)!r}; the corpora are 'sonnets', 'poems' "
            "and 'tinyshakespeare'"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}") from None
    if not text.strip():
        raise ValueError(f"{path} is empty")
    return text
