"""The first screen of a page: a picture, and nothing between it and the text.

In a chapter the cell that imports and the cell that draws stand before their picture, since
they run first. On the site they stand behind it, folded, in the same order. Notebooks,
published ones too, keep the order of the source.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class FirstScreen(SphinxTransform):
    """Put the code before a page's first picture behind it."""

    default_priority = 12  # exercises and folds are put together

    def apply(self) -> None:
        """Move code behind the page's first figure; a page without one stays as it is.

        Moved are the folded cells before it that show nothing, such as imports, and stand
        in a section itself, not in a task; and, if a folded cell draws the figure, that
        cell's own code, which comes last.
        """
        figure = next(self.document.findall(nodes.figure), None)
        if figure is None:
            return
        moved = _silent_cells_before(figure, self.document)
        for cell in moved:
            cell.parent.remove(cell)
        output = figure.parent
        is_drawn = output.get("nb_element") == "cell_code_output"
        shown = output.parent if is_drawn else figure  # the whole cell, or the figure alone
        if is_drawn and shown.get("hide_mode") == "input":
            moved.append(_split_off_code(shown))
        behind = shown.parent.index(shown) + 1
        shown.parent[behind:behind] = moved


def _silent_cells_before(
    figure: nodes.figure, document: nodes.document
) -> list[nodes.Element]:
    """Return the cells before a figure that are folded and show nothing, as imports do.

    Only those count that stand in a section themselves, not in a task. A folded cell is a
    node whose ``hide_mode`` is "input": first its code, then its outputs.
    """
    cells = []
    for node in document.findall(nodes.Element):
        if node is figure:
            break
        is_folded = node.get("hide_mode") == "input"
        if not (is_folded and isinstance(node.parent, nodes.section)):
            continue
        if not any(output.astext().strip() for output in node[1:]):
            cells.append(node)
    return cells


def _split_off_code(cell: nodes.Element) -> nodes.Element:
    """Take a folded cell's code out of it: return it as a cell with the same tags.

    ``cell`` : changed in place: its outputs stay, and it is folded no more.
    """
    code = cell.copy()
    code.append(cell.pop(0))
    del cell["hide_mode"]
    return code


def setup(app: Sphinx) -> None:
    """Add the transform `FirstScreen` to Sphinx."""
    app.add_transform(FirstScreen)
