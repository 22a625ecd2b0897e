"""What the chapters say of themselves: short names, minutes, and what each builds on.

A chapter is a page in a numbered part of ``_toc.yml``, or any other page there whose front
matter has ``course``. It has::

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

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from markdown_it import MarkdownIt
from mdit_py_plugins.colon_fence import colon_fence_plugin
from sphinx_external_toc.parsing import (
    FileItem,
    GlobItem,
    MalformedError,
    SiteMap,
    TocTree,
    parse_toc_yaml,
)

from lmbook.execute.keys import ROOT

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_MARKDOWN = MarkdownIt("commonmark").use(colon_fence_plugin)
REQUIRED_KEYS = ("short", "minutes", "builds_on")
WAYS = ("read", "work")
PATHS = {"poems": "An hour with the poems", "weekend": "A weekend"}
LONGEST_HOUR = 75  # minutes of reading, at most


class CourseError(ValueError):
    """What is wrong with the book's contents or its chapters, a line each."""


@dataclass(frozen=True)
class Chapter:
    """A chapter as its front matter and its place in ``_toc.yml`` describe it.

    Attributes
    ----------
    name : str
        Its file below ``chapters``, without the suffix.
    number : int
        Its place among the chapters, from 1, in the order of the book.
    numeral : str
        The number that is shown: "3", or "3.1" for a page under ``sections`` of "3"; "" in
        a part that is not numbered.
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
    numeral: str
    title: str
    short: str
    minutes: dict[str, int]
    builds_on: tuple[str, ...]
    paths: tuple[str, ...] = ()

    def with_number(self, name: str) -> str:
        """Return a name of the chapter behind its number, if it has one: "3. Attention".

        ``name`` : ``short`` or ``title``, for example.
        """
        return f"{self.numeral}. {name}" if self.numeral else name


def read_page(path: Path, root: Path = ROOT) -> str:
    """Return a page's text, without a byte order mark, with the line ends of Unix.

    ``path`` : of the file; ``root`` : the book's folder, below which a message names the
    file.

    Raises
    ------
    CourseError
        If it cannot be read, or is not UTF-8: then the line is named.
    """
    name = path.relative_to(root) if path.is_relative_to(root) else path
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CourseError(f"{name} cannot be read: {error.strerror}") from error
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise CourseError(
            f"{name}, line {line}: the byte {content[error.start]:#x} is not UTF-8. Save "
            "the file as UTF-8."
        ) from error


def read_yaml(path: Path) -> object:
    """Return what a YAML file holds: a dict, a list, or whatever it says; None if empty.

    Raises
    ------
    CourseError
        If it cannot be read, naming file and line.
    """
    try:
        return yaml.safe_load(read_page(path, path.parent))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        tab = "; YAML is indented by spaces, not by tabs" if "'\\t'" in str(error) else ""
        problem = getattr(error, "problem", None) or error
        raise CourseError(f"{path.name}{line}: {problem}{tab}") from error


def numbered_pages(root: Path = ROOT) -> dict[str, str]:
    """Return the pages of the numbered parts of ``_toc.yml``, in its order.

    Name of each page → the number that is shown, such as "3" or "3.1". ``root`` : the
    book's folder. A CourseError is raised if ``_toc.yml`` cannot be read, or a page stands
    in it twice.
    """
    return {name: numeral for name, numeral in pages_in_contents(root).items() if numeral}


def pages_in_contents(root: Path = ROOT) -> dict[str, str]:
    """Return the pages of ``_toc.yml`` in its order, without the first page of the site.

    Addresses of other sites are no pages; a ``glob`` stands for the files that it finds.

    Parameters
    ----------
    root : Path
        The book's folder.

    Returns
    -------
    dict of str to str
        Name of each page → the number that is shown, such as "3", or "3.1" for a page below
        page 3; "" in a part that is not numbered.

    Raises
    ------
    CourseError
        If ``_toc.yml`` cannot be read, or a page stands in it twice.
    """
    site = _read_contents(root)
    numerals: dict[str, str] = {}

    def add(tree: TocTree, above: str, numbers: Iterator[int], numbered: bool) -> None:
        """Add the pages of a part of the contents, and those below them, to ``numerals``.

        ``tree`` : the part; ``above`` : what stands before their numbers, such as "3." for
        pages below page 3; ``numbers`` : the numbers that are left for them; ``numbered`` :
        whether they have numbers.
        """
        for name in _page_names(tree.items, root):
            numeral = f"{above}{next(numbers)}" if numbered else ""
            numerals[name] = numeral
            numbers_below = itertools.count(1)
            for part in _parts_below(name, site):
                add(part, f"{numeral}.", numbers_below, numbered)

    numbers = itertools.count(1)
    for tree in site.root.subtrees:
        add(tree, "", numbers, bool(tree.numbered))
    return numerals


def parts_in_contents(root: Path = ROOT) -> list[tuple[str, list[str]]]:
    """Return the parts of ``_toc.yml`` in its order, with the pages of each.

    The first page of the site is a part of its own, without a caption. Addresses of other
    sites are no pages; a ``glob`` stands for the files that it finds. A page stands before
    the pages of its sections, and only where it is named first.

    Parameters
    ----------
    root : Path
        The book's folder.

    Returns
    -------
    list of (str, list of str)
        Of each part its caption, "" if it has none, and the names of its pages, at least
        one.

    Raises
    ------
    CourseError
        If ``_toc.yml`` cannot be read, or a page stands in it twice.
    """
    site = _read_contents(root)
    first = site.root.docname.removesuffix(".md")
    seen = {first}

    def new_names(tree: TocTree) -> Iterator[str]:
        """Yield the names of a part's pages, and of those below; add them to ``seen``.

        Names that are in ``seen`` already are left out. ``tree`` : the part.
        """
        for name in _page_names(tree.items, root):
            if name not in seen:
                seen.add(name)
                yield name
            for part in _parts_below(name, site):
                yield from new_names(part)

    parts = [(tree.caption or "", [*new_names(tree)]) for tree in site.root.subtrees]
    return [("", [first]), *(part for part in parts if part[1])]


def _parts_below(name: str, site: SiteMap) -> list[TocTree]:
    """Return the parts of the contents below a page, with the pages of its sections.

    ``name`` : of the page; ``site`` : the contents (`_read_contents`). None are below a
    page that stands there only by a ``glob``.
    """
    return site[name].subtrees if name in site else []


def _read_contents(root: Path) -> SiteMap:
    """Return what ``_toc.yml`` says, as a SiteMap of sphinx-external-toc.

    Its ``root`` is the site's first page, whose ``subtrees`` are the parts; it maps the
    name of each page to a document with ``subtrees`` of its own. An error in the file is a
    `CourseError`. ``root`` : the book's folder.
    """
    path = root / "_toc.yml"
    read_yaml(path)  # its errors name the line
    try:
        return parse_toc_yaml(path)
    except (MalformedError, TypeError, AttributeError, KeyError) as error:
        raise CourseError(f"_toc.yml: {error}") from error


def _page_names(items, root: Path) -> Iterator[str]:
    """Yield the names of the pages that entries of ``_toc.yml`` stand for.

    ``items`` : the entries of a part, of sphinx-external-toc: a file is a page, a pattern
    (``glob``) stands for all pages that it finds, sorted; other kinds are left out.
    ``root`` : the book's folder.
    """
    for item in items:
        if isinstance(item, FileItem):
            yield str(item).removesuffix(".md")
        elif isinstance(item, GlobItem):
            folder = root / "chapters"
            for path in sorted(folder.glob(f"{item}.md")):
                yield path.relative_to(folder).with_suffix("").as_posix()


def read_course(root: Path = ROOT) -> dict[str, Chapter]:
    """Return the chapters in the order of the book, name → `Chapter`.

    They are the pages of ``_toc.yml`` in numbered parts, and others whose front matter has
    ``course``. ``root`` : the book's folder.

    Raises
    ------
    CourseError
        If ``_toc.yml`` or a chapter cannot be read, a front matter lacks a key or has an
        unknown one, a value is of the wrong kind, two chapters have the same short name, a
        chapter builds on one that does not come earlier, or the path "poems" takes longer
        than `LONGEST_HOUR`. The message has a line for each fault, naming the file.
    """
    chapters: dict[str, Chapter] = {}
    names: list[str] = []  # also of those with faults
    wrong: list[str] = []
    for name, numeral in pages_in_contents(root).items():
        path = root / "chapters" / f"{name}.md"
        if not numeral and not path.exists():  # Sphinx says so, or it is no Markdown
            continue
        try:
            text = read_page(path, root)
        except CourseError as error:
            wrong.append(str(error))
            names.append(name)
            continue
        values, faults = _front_matter(text, names)
        if not numeral and not values:  # a page that is no chapter
            continue
        names.append(name)
        title = page_title(text)
        if not title:
            faults.append("it has no title, a line that begins with `# `")
        if not faults:
            lists = {k: tuple(v) for k, v in values.items() if isinstance(v, list)}
            same = [c.name for c in chapters.values() if c.short == values["short"]]
            faults += [f"course: short is as that of {other}.md" for other in same]
            chapters[name] = Chapter(name, len(names), numeral, title, **values | lists)
        wrong += [f"chapters/{name}.md: {fault}" for fault in faults]
    minutes = {n: c.minutes["read"] for n, c in chapters.items() if "poems" in c.paths}
    if sum(minutes.values()) > LONGEST_HOUR:
        wrong.append(
            f"the path poems is an hour, {LONGEST_HOUR} minutes at most: it has {minutes}"
        )
    if wrong:
        raise CourseError("\n".join(wrong))
    return chapters


def page_title(text: str) -> str:
    """Return a page's first heading of the first level, "" if there is none.

    ``text`` : the page, in MyST; the heading is returned as it is written. A comment in a
    code cell, which begins with ``#`` as well, is no heading.
    """
    front = _FRONT_MATTER.match(text)
    tokens = _MARKDOWN.parse(text[front.end() :] if front else text)
    for opening, inline in itertools.pairwise(tokens):
        if (opening.type, opening.tag) == ("heading_open", "h1"):
            return inline.content
    return ""


def _front_matter(text: str, earlier: list[str]) -> tuple[dict, list[str]]:
    """Read what stands under ``course`` in a page's front matter.

    Parameters
    ----------
    text : str
        The page, in MyST.
    earlier : list of str
        Names of the chapters that come before it in the book.

    Returns
    -------
    values : dict
        ``short``, a str; ``minutes``, a dict with ``read`` and ``work``, int;
        ``builds_on``, a list of names of chapters; perhaps ``paths``, a list of str. With
        faults it may be anything, None if there is no ``course``.
    faults : list of str
        What is wrong with them, a sentence each.
    """
    front = _FRONT_MATTER.match(text)
    try:
        fields = yaml.safe_load(front[1]) if front else {}
    except yaml.YAMLError as error:
        return {}, [f"its front matter cannot be read: {error}"]
    if not isinstance(fields, dict):
        kind = type(fields).__name__
        return {}, [f"its front matter is a {kind}; it should be names with values"]
    values = fields.get("course")
    return values, list(_front_matter_faults(values, earlier))


def _front_matter_faults(values: object, earlier: list[str]) -> Iterator[str]:
    """Yield what is wrong with what stands under ``course``, a sentence each.

    ``values`` : what stands there, a dict if it is right, with ``short``, ``minutes``,
    ``builds_on`` and perhaps ``paths``; ``earlier`` : the names of the chapters that come
    before this one.
    """
    if not isinstance(values, dict) or {*values} - {"paths"} != {*REQUIRED_KEYS}:
        wanted = ", ".join(REQUIRED_KEYS)
        yield f"its front matter needs `course:` with {wanted}, and no more but paths"
        return
    short, minutes, builds_on = (values[key] for key in REQUIRED_KEYS)
    paths = values.get("paths", [])
    if not isinstance(short, str) or not short.strip():
        yield f"course: short is {short!r}: give a name of a word or two"
    if not _are_minutes(minutes):
        yield f"course: minutes is {minutes!r}: give whole numbers, {{read: 25, work: 90}}"
    if not isinstance(paths, list) or {*map(str, paths)} - {*PATHS}:
        yield f"course: paths is {paths!r}: give a list of {', '.join(PATHS)}, or nothing"
    if not isinstance(builds_on, list):
        yield f"course: builds_on is {builds_on!r}: give a list of chapters' files, or []"
        return
    for name in builds_on:
        if name not in earlier:
            yield f"course: builds_on names {name!r}, no chapter before it in _toc.yml"


def _are_minutes(value: object) -> bool:
    """Return whether a value is minutes: a dict of two positive int, "read" and "work"."""
    if not isinstance(value, dict) or {*value} != {*WAYS}:
        return False
    return all(type(n) is int and n > 0 for n in value.values())  # True is an int, too


def direct_prerequisites(chapters: dict[str, Chapter]) -> dict[str, list[str]]:
    """Return what each chapter builds on directly.

    Of the chapters that its front matter names (``builds_on``), these are the ones on which
    none of the other named ones builds, however indirectly: the map of the book draws a
    line for each.

    Parameters
    ----------
    chapters : dict of str to Chapter
        Name → chapter, whose ``builds_on`` has names; in the order of the book, in which a
        chapter comes after all that it builds on.

    Returns
    -------
    dict of str to list of str
        Name of each chapter → names of those that it builds on directly.
    """
    prerequisites: dict[str, set[str]] = {}  # of each chapter, direct or not
    direct = {}
    for name, chapter in chapters.items():
        indirect = set().union(*(prerequisites[other] for other in chapter.builds_on))
        direct[name] = [other for other in chapter.builds_on if other not in indirect]
        prerequisites[name] = indirect | {*chapter.builds_on}
    return direct


def next_chapters(name: str, chapters: dict[str, Chapter]) -> list[Chapter]:
    """Return what to read after a chapter.

    That is the next chapter of the book, and each later one that builds on this one
    directly (`direct_prerequisites`), in the order of the book; none after the last.

    Parameters
    ----------
    name : str
        The chapter's.
    chapters : dict of str to Chapter
        Name → chapter, all of the book, in its order.
    """
    later = [c for c in chapters.values() if c.number > chapters[name].number]
    direct = direct_prerequisites(chapters)
    return later[:1] + [c for c in later[1:] if name in direct[c.name]]
