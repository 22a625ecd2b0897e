"""The code cells of a chapter, and the exercise that each stands in."""

import re
from dataclasses import dataclass

import jupytext

_GATE = re.compile(
    r"^(?:`{3,}|:{3,})\{(exercise|solution)-(start|end)\}[ \t]*(\S*)(.*?)^(?:`{3,}|:{3,})",
    re.MULTILINE | re.DOTALL,
)
_LABEL = re.compile(r"^:label:[ \t]*(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """A code cell: its source, its tags and the exercise that it stands in, if any."""

    source: str
    tags: tuple[str, ...] = ()
    exercise: str = ""  # the label, "ex-chapter-name"
    part: str = ""  # "exercise" (the starter) or "solution"


def parse_cells(text: str) -> list[Cell]:
    """Return the code cells of a page, in order, each with the exercise that it is in.

    ``text`` : the page, in MyST. A cell has ``source``; ``tags``; ``exercise``, the label
    of its exercise, such as "ex-attention-heads", and ``part``, "exercise" (it stands
    between ``exercise-start`` and ``exercise-end``) or "solution": both "" if it is in
    none. Of an exercise without a label ``exercise`` is the first word of its title.
    """
    cells = []
    label = ""
    part = ""
    for cell in jupytext.reads(text, fmt="md:myst").cells:
        if cell.cell_type == "code":
            tags = tuple(cell.metadata.get("tags", ()))
            cells.append(Cell(cell.source, tags, label, part))
            continue
        for kind, edge, argument, options in _GATE.findall(cell.source):
            if edge == "end":
                label, part = "", ""
            elif kind == "solution":
                label = argument  # the exercise's, not one of its own
                part = "solution"
            else:
                named = _LABEL.search(options)
                label = named[1] if named else argument  # its title's first word
                part = "exercise"
    return cells
