"""What the chapters say of themselves: short names, minutes, and what each builds on.

A chapter is a page in a numbered part of ``_toc.yml``. Its front matter has::

    course:
      short: Attention
      minutes: 45
      builds_on: [tokenization, embeddings]

Sidebar, numbers, cross references, the top and the end of a page and the map of the book
are made of it, and of the page's title; none of that is written twice.
"""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from lmbook.execute.keys import ROOT

__all__ = ["Chapter", "CourseError", "leads_to", "read_course", "steps"]

_FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_TITLE = re.compile(r"^# (.+?)\s*$", re.MULTILINE)
_FENCED = re.compile(r"^(`{3,}|~{3,}).*?^\1 *$", re.MULTILINE | re.DOTALL)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


KEYS = {  # key → what it may be, and how that is said
    "short": (_is_name, "a name of a word or two, as `short: Attention`"),
    "minutes": (
        lambda value: type(value) is int and value > 0,  # True is an int, too
        "a whole number greater than 0, as `minutes: 45`",
    ),
    "builds_on": (
        lambda value: (
            isinstance(value, list)
            and all(map(_is_name, value))
            and len(set(value)) == len(value)
        ),
        "a list of chapters' files, as `builds_on: [tokenization]` or []",
    ),
}


class CourseError(ValueError):
    """What is wrong with the chapters' front matter, a line each."""


@dataclass(frozen=True)
class Chapter:
    """A chapter as its front matter and its place in ``_toc.yml`` describe it.

    Attributes
    ----------
    name : str
        Its file, without the suffix.
    number : int
        Its place among the chapters, from 1.
    title : str
        The question at its top.
    short : str
        Its name in the sidebar and in cross references.
    minutes : int
        How long reading takes.
    builds_on : tuple of str
        Names of earlier chapters.
    """

    name: str
    number: int
    title: str
    short: str
    minutes: int
    builds_on: tuple[str, ...]


def read_course(root: Path = ROOT) -> dict[str, Chapter]:
    """Return the chapters in the order of the book, name → chapter.

    Raises
    ------
    CourseError
        If a front matter lacks a key or has an unknown one, a value is of the wrong kind,
        or a chapter builds on one that is not there or comes later; naming each file.
    """
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    parts = [part for part in toc.get("parts", []) if part.get("numbered")]
    inside = [page["file"] for part in parts for page in part["chapters"]]
    found, wrong = {}, []
    for number, name in enumerate(inside, 1):
        text = _text(root, name)
        values, faults = _checked(_front(text).get("course"))
        title = _TITLE.search(_FENCED.sub("", text))
        if not title:
            faults.append("it has no title, a line that begins with `# `")
        wrong += [f"chapters/{name}.md: {each}" for each in faults]
        if not faults:
            below = tuple(values["builds_on"])
            found[name] = Chapter(name, number, title[1], **values | {"builds_on": below})
    for name in sorted(
        {path.stem for path in (root / "chapters").glob("*.md")} - {*inside}
    ):
        if "course" in _front(_text(root, name)):
            said = "has `course:`, but is in no part of _toc.yml with `numbered: 1`"
            wrong.append(f"chapters/{name}.md {said}")
    wrong = wrong or [
        f"chapters/{name}.md: course: {each}"
        for name in found
        for each in _clashes(name, found)
    ]
    if wrong:
        raise CourseError("\n".join(wrong))
    return found


def _text(root: Path, name: str) -> str:
    try:
        return (root / "chapters" / f"{name}.md").read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"_toc.yml lists {name}, but there is no chapters/{name}.md"
        raise CourseError(message) from None


def _front(text: str) -> dict:
    """Return a page's front matter; what cannot be read is as good as none."""
    block = _FRONT.match(text)
    try:
        front = yaml.safe_load(block[1]) if block else None
    except yaml.YAMLError:
        front = None
    return front if isinstance(front, dict) else {}


def _checked(values: object) -> tuple[dict, list[str]]:
    """Return what stands under ``course``, and what is wrong with it by itself."""
    if not isinstance(values, dict):
        return {}, [f"its front matter lacks `course:` with {', '.join(KEYS)}"]
    wrong = [
        f"course: {key!r} is unknown; the keys are {', '.join(KEYS)}"
        for key in values.keys() - KEYS.keys()
    ]
    for key, (fits, example) in KEYS.items():
        if key not in values:
            wrong.append(f"course: {key} is missing: give {example}")
        elif not fits(values[key]):
            wrong.append(f"course: {key} is {values[key]!r}: give {example}")
    return values, wrong


def _clashes(name: str, chapters: dict[str, Chapter]) -> Iterator[str]:
    """Yield where a chapter does not go with the others."""
    chapter = chapters[name]
    for below in chapter.builds_on:
        if below not in chapters:
            near = difflib.get_close_matches(below, chapters, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            said = f"which is no chapter of a numbered part of _toc.yml.{hint}"
            yield f"builds_on names {below!r}, {said}"
        elif chapters[below].number >= chapter.number:
            yield f"builds_on names {below!r}, which does not come earlier in _toc.yml"
    for other in chapters.values():
        same = other.short.casefold() == chapter.short.casefold()
        if same and other.number < chapter.number:
            yield f"short is {chapter.short!r}, as that of {other.name}.md"


def steps(chapters: dict[str, Chapter]) -> dict[str, list[str]]:
    """Return, for each chapter, what it builds on and none of that builds on already."""
    below: dict[str, set[str]] = {}  # all that a chapter builds on, in one step or more
    found = {}
    for name, chapter in chapters.items():
        through = set().union(*(below[other] for other in chapter.builds_on))
        found[name] = [other for other in chapter.builds_on if other not in through]
        below[name] = through | {*chapter.builds_on}
    return found


def leads_to(name: str, chapters: dict[str, Chapter]) -> list[Chapter]:
    """Return what to read after a chapter: the next in the book, and each a step away."""
    after = [c for c in chapters.values() if c.number > chapters[name].number]
    taken = steps(chapters)
    return after[:1] + [c for c in after[1:] if name in taken[c.name]]
