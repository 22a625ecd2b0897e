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
KEYS = {
    "short": (str, "a name of a word or two, as `short: Attention`"),
    "minutes": (int, "a whole number greater than 0, as `minutes: 45`"),
    "builds_on": (list, "a list of chapters' files, as `builds_on: [tokenization]` or []"),
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
    parts = toc.get("parts", [])
    inside = [p["file"] for part in parts if part.get("numbered") for p in part["chapters"]]
    outside = [path.stem for path in (root / "chapters").glob("*.md")]
    found, wrong = {}, []
    for number, name in enumerate(inside, 1):
        text = _text(root, name)
        values, complaints = _checked(text)
        title = _TITLE.search(_FENCED.sub("", text))
        if not title:
            complaints.append("it has no title, a line that begins with `# `")
        if complaints:
            wrong += [f"chapters/{name}.md: {each}" for each in complaints]
        else:
            values["builds_on"] = tuple(values["builds_on"])
            found[name] = Chapter(name, number, title[1], **values)
    for name in sorted(set(outside) - set(inside)):
        if "course" in _front(_text(root, name)):
            said = "has `course:`, but is in no part of _toc.yml with `numbered: 1`"
            wrong.append(f"chapters/{name}.md {said}")
    wrong = wrong or [*_relations(found), *_names(found)]
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


def _checked(text: str) -> tuple[dict, list[str]]:
    """Return what a front matter says under ``course``, and what is wrong with it."""
    values = _front(text).get("course")
    if not isinstance(values, dict):
        return {}, [f"its front matter lacks `course:` with {', '.join(KEYS)}"]
    wrong = [
        f"course: {key!r} is unknown; the keys are {', '.join(KEYS)}"
        for key in values.keys() - KEYS.keys()
    ]
    for key, (kind, example) in KEYS.items():
        if key not in values:
            wrong.append(f"course: {key} is missing: give {example}")
        elif not _fits(values[key], kind):
            wrong.append(f"course: {key} is {values[key]!r}: give {example}")
    return values, wrong


def _fits(value: object, kind: type) -> bool:
    if kind is list:
        each = isinstance(value, list) and all(isinstance(item, str) for item in value)
        return each and len(set(value)) == len(value)
    if kind is str:
        return isinstance(value, str) and bool(value.strip())
    return type(value) is kind and value > 0  # True is an int, too


def _relations(chapters: dict[str, Chapter]) -> Iterator[str]:
    """Yield what is wrong with what builds on what."""
    for chapter in chapters.values():
        for name in chapter.builds_on:
            said = f"chapters/{chapter.name}.md: course: builds_on names {name!r}, "
            if name not in chapters:
                near = difflib.get_close_matches(name, chapters, n=1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                yield f"{said}which is no chapter of a numbered part of _toc.yml.{hint}"
            elif chapters[name].number >= chapter.number:
                back = _way(name, chapter.name, chapters)
                if back:
                    yield f"{said}a cycle: {' → '.join([chapter.name, *back])}"
                else:
                    yield f"{said}which comes later in _toc.yml: move one, or drop it"


def _way(start: str, goal: str, chapters: dict[str, Chapter]) -> list[str]:
    """Return how one leads to another by what is built on; nothing if it does not."""
    ways, seen = [[start]], {start}
    while ways:
        way = ways.pop(0)
        if way[-1] == goal:
            return way
        nexts = chapters[way[-1]].builds_on if way[-1] in chapters else ()
        ways += [[*way, name] for name in nexts if name not in seen]
        seen |= set(nexts)
    return []


def _names(chapters: dict[str, Chapter]) -> Iterator[str]:
    """Yield what is wrong with short names: each is to be one chapter's."""
    owners: dict[str, str] = {}
    for chapter in chapters.values():
        first = owners.setdefault(chapter.short.casefold(), chapter.name)
        if first != chapter.name:
            said = f"course: short is {chapter.short!r}, as that of {first}.md"
            yield f"chapters/{chapter.name}.md: {said}"


def steps(chapters: dict[str, Chapter]) -> dict[str, list[str]]:
    """Return, for each chapter, what it builds on and none of that builds on already."""
    return {
        chapter.name: [
            name
            for name in chapter.builds_on
            if not any(_way(o, name, chapters) for o in chapter.builds_on if o != name)
        ]
        for chapter in chapters.values()
    }


def leads_to(name: str, chapters: dict[str, Chapter]) -> list[Chapter]:
    """Return what to read after a chapter: the next in the book, and each a step away."""
    after = [c for c in chapters.values() if c.number > chapters[name].number]
    taken = steps(chapters)
    return after[:1] + [c for c in after[1:] if name in taken[c.name]]
