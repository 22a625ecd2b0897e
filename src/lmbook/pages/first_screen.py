"""The first screen of a page: a picture, and nothing between it and the text.

In a chapter the cell that imports and the cell that draws stand before their picture, since
they run first. On the site they stand behind it, folded, in the same order. Notebooks,
published ones too, keep the order of the source.
"""

from docutils import nodes
from sphinx.transforms import SphinxTransform


class FirstScreen(SphinxTransform):
    """Put the code before a page's first picture behind it."""

    default_priority = 12  # exercises and folds are put together

    def apply(self) -> None:
        before = []  # imports, and what else is folded and shows nothing
        for node in self.document.findall(nodes.Element):
            if isinstance(node, nodes.figure):
                break
            silent = not any(output.astext().strip() for output in node[1:])
            silent = silent and node.get("hide_mode") == "input"
            if silent and isinstance(node.parent, nodes.section):
                before.append(node)
        else:
            return
        around = node.parent
        drawn = around if around.get("nb_element") == "cell_code_output" else None
        place = drawn.parent if drawn else node
        for cell in before:
            cell.parent.remove(cell)
        if drawn and place.get("hide_mode") == "input":
            own = place.copy()  # a cell of its own, with the same tags
            own.append(place.pop(0))
            del place["hide_mode"]
            before.append(own)
        at = place.parent.index(place) + 1
        place.parent[at:at] = before


def setup(app) -> None:
    """Add the transform."""
    app.add_transform(FirstScreen)
