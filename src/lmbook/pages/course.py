"""What the chapters say of themselves: short names, minutes, and what each builds on.

A chapter is a page in a numbered part of ``_toc.yml``. Its front matter has::

    course:
      short: Attention
      minutes: {read: 25, work: 90}
      builds_on: [tokenization, embeddings]
      paths: [weekend]

Minutes are those of the two ways to read a page; ``paths``, which may be missing, names the
front page's shorter ways through the book that the chapter is on.
Sidebar, numbers, cross references, the top and the end of a page, the map of the book and
the paths through it are made of it, and of the page's title; none of that is written twice.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from lmbook.execute.keys import ROOT

_FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_TITLE = re.compile(r"^# (.+?)\s*$", re.MULTILINE)
KEYS = ("short", "minutes", "builds_on")
WAYS = ("read", "work")
PATHS = {"poems": "An hour with the poems", "weekend": "A weekend"}
HOUR = 75  # minutes of reading, at most


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
    minutes : dict of str to int
        How long it takes to ``read``, and to ``work`` through.
    builds_on : tuple of str
        Names of earlier chapters.
    paths : tuple of str
        Which of `PATHS` it is on.
    """

    name: str
    number: int
    title: str
    short: str
    minutes: dict[str, int]
    builds_on: tuple[str, ...]
    paths: tuple[str, ...] = ()


def read_course(root: Path = ROOT) -> dict[str, Chapter]:
    """Return the chapters in the order of the book, name → chapter.

    Raises
    ------
    CourseError
        If a front matter lacks a key or has an unknown one, a value is of the wrong kind,
        or a chapter builds on one that does not come earlier; naming each file.
    FileNotFoundError
        If a chapter is not there.
    """
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    parts = [part for part in toc.get("parts", []) if part.get("numbered")]
    names = [page["file"] for part in parts for page in part["chapters"]]
    found, wrong = {}, []
    for number, name in enumerate(names, 1):
        text = (root / "chapters" / f"{name}.md").read_text(encoding="utf-8")
        front, title = _FRONT.match(text), _TITLE.search(text)
        try:
            values = (yaml.safe_load(front[1]) if front else {}).get("course")
            faults = list(_faults(values, names[: number - 1]))
        except yaml.YAMLError as error:
            faults = [f"its front matter cannot be read: {error}"]
        if not title:
            faults.append("it has no title, a line that begins with `# `")
        if not faults:
            lists = {k: tuple(v) for k, v in values.items() if isinstance(v, list)}
            found[name] = Chapter(name, number, title[1], **values | lists)
            same = [c.name for c in found.values() if c.short == values["short"]][:-1]
            faults += [f"course: short is as that of {other}.md" for other in same]
        wrong += [f"chapters/{name}.md: {each}" for each in faults]
    hour = {name: c.minutes["read"] for name, c in found.items() if "poems" in c.paths}
    if sum(hour.values()) > HOUR:
        wrong.append(f"the path poems is an hour, {HOUR} minutes at most: it has {hour}")
    if wrong:
        raise CourseError("\n".join(wrong))
    return found


def _faults(values: object, earlier: list[str]) -> Iterator[str]:
    """Yield what is wrong with what stands under ``course``."""
    if not isinstance(values, dict) or {*values} - {"paths"} != {*KEYS}:
        wanted = ", ".join(KEYS)
        yield f"its front matter needs `course:` with {wanted}, and no more but paths"
        return
    short, minutes, below = (values[key] for key in KEYS)
    paths = values.get("paths", [])
    if not isinstance(short, str) or not short.strip():
        yield f"course: short is {short!r}: give a name of a word or two"
    both = minutes.values() if isinstance(minutes, dict) and {*minutes} == {*WAYS} else [0]
    if any(type(n) is not int or n <= 0 for n in both):  # True is an int, too
        yield f"course: minutes is {minutes!r}: give whole numbers, {{read: 25, work: 90}}"
    if not isinstance(paths, list) or {*map(str, paths)} - {*PATHS}:
        yield f"course: paths is {paths!r}: give a list of {', '.join(PATHS)}, or nothing"
    if not isinstance(below, list):
        yield f"course: builds_on is {below!r}: give a list of chapters' files, or []"
    for name in below if isinstance(below, list) else []:
        if name not in earlier:
            yield f"course: builds_on names {name!r}, no chapter before it in _toc.yml"


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
