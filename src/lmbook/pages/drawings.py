"""Drawings by hand: ``chapters/_figures/NAME.svg``, checked and made part of the page.

Inline, so that the theme's colours reach them; with a style of their own where a notebook
shows them. How they are drawn: ``docs/tasks-and-drawings.md``.
"""

import base64
import functools
import re
from collections.abc import Callable
from html import escape
from pathlib import Path
from xml.etree import ElementTree

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from lmbook.pages.glue import format_glue

STYLE = Path(__file__).parents[1] / "static" / "drawings.css"
PAPER = ":root { --d-paper: white; }"  # in a notebook, as that of its other figures
PHONE_WIDTH = 360  # units, on a phone
MOST_PIXELS = 1.3  # pixels for a unit, at most
NEW_STEP_STYLE = "font-weight:700;stroke-width:2.75"  # what a step adds stands out
_VALUE_PLACE = re.compile(r"\{\{\s*([\w.-]+)(?::([^{}]*))?\s*\}\}")
ARROW_HEAD = """<marker viewBox="0 0 8 8" refX="6.5" refY="4" orient="auto" markerWidth="6"
 markerHeight="6" id="{}"><path class="{}" d="M0 0.5L7.5 4L0 7.5z" /></marker>"""


def fill_values(text: str, value: Callable[[str, str], str]) -> str:
    """Return a drawing with its values, where ``{{key}}`` or ``{{key:format}}`` stands.

    Parameters
    ----------
    text : str
        The drawing, an SVG.
    value : callable
        Called with a key and a format, both str (the format is "" if there is none);
        returns the value as text, which is escaped here.

    Returns
    -------
    str
        The SVG.
    """
    return _VALUE_PLACE.sub(lambda m: escape(value(m[1], (m[2] or "").strip())), text)


# --- checks ---------------------------------------------------------------------------


def parse_drawing(text: str) -> ElementTree.Element:
    """Parse a drawing, and check that it has a size, a title and a description.

    Parameters
    ----------
    text : str
        The SVG, glued values filled in.

    Returns
    -------
    Element
        Its root; names are without their namespace.

    Raises
    ------
    ValueError
        If it is no SVG of some size, with a title and a description.
    """
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"it is not well-formed XML: {error}") from None
    for part in root.iter():
        part.tag = part.tag.rpartition("}")[2]
    box = re.fullmatch(r"0 0 [\d.]+ [\d.]+", root.get("viewBox", ""))
    if root.tag != "svg" or box is None or {"width", "height"} & {*root.keys()}:
        raise ValueError(
            'it must begin with <svg viewBox="0 0 WIDTH HEIGHT">, without width= or height='
        )
    if [part.tag for part in root[:2] if (part.text or "").strip()] != ["title", "desc"]:
        raise ValueError("its first two elements must be <title> and <desc>, with words")
    return root


# --- forms ----------------------------------------------------------------------------


def _complete(root: ElementTree.Element, prefix: str) -> ElementTree.Element:
    """Complete a drawing in place, and return it.

    It gets the lines of its matrices (`_grid_lines`), heads of arrows, its greatest width,
    and what a screen reader says of it: its title and description. Its width in units
    becomes the variable ``--units`` of CSS, by which ``course.css`` keeps a wide drawing
    legible on a narrow screen.

    ``root`` : of the drawing, as `parse_drawing` returns it, title and description first;
    ``prefix`` : what the ids begin with that it gets.
    """
    width = float(root.get("viewBox").split()[2])
    root.attrib |= {
        "class": "lm-drawing",
        "role": "img",
        "xmlns": "http://www.w3.org/2000/svg",
        "aria-labelledby": f"{prefix}-title {prefix}-desc",
        "style": f"--units: {width:g}; max-width: {width * MOST_PIXELS:.0f}px",
    }
    for part in root[:2]:  # title and description
        part.set("id", f"{prefix}-{part.tag}")
    for parent in list(root.iter()):
        for rect in parent.findall("rect[@data-cells]"):
            parent.insert(list(parent).index(rect) + 1, _grid_lines(rect))
    root.insert(2, _add_arrow_heads(root, prefix))  # behind these two
    return root


def _grid_lines(rect: ElementTree.Element) -> ElementTree.Element:
    """Return the lines between the cells of a matrix or a vector, as a path.

    ``rect`` : the rectangle around it. Its ``data-cells``, such as "3x4", says how many
    rows and columns there are, and is removed. The path has its colour and ``data-step``.
    """
    x, y, width, height = (float(rect.get(n, 0)) for n in ("x", "y", "width", "height"))
    rows, columns = map(int, rect.attrib.pop("data-cells").split("x"))
    lines = [f"M{x:g} {y + height * i / rows:g}h{width:g}" for i in range(1, rows)]
    lines += [f"M{x + width * i / columns:g} {y:g}v{height:g}" for i in range(1, columns)]
    attributes = {"class": f"d-grid {_colour_class(rect)}".strip(), "d": "".join(lines)}
    if step := rect.get("data-step"):
        attributes["data-step"] = step
    return ElementTree.Element("path", attributes)


def _add_arrow_heads(root: ElementTree.Element, prefix: str) -> ElementTree.Element:
    """Set every arrow's head; return ``<defs>`` with the markers, still to be inserted.

    Arrows are elements of the class "d-arrow". There is a marker for each colour that they
    have (`_colour_class`), and one for those that have none. ``root`` : the drawing, which
    is changed; ``prefix`` : what the markers' ids begin with.
    """
    defs = ElementTree.Element("defs")
    arrows = [part for part in root.iter() if "d-arrow" in part.get("class", "").split()]
    for arrow in arrows:
        arrow.set("marker-end", f"url(#{prefix}-head{_colour_class(arrow)})")
    for colour in dict.fromkeys(map(_colour_class, arrows)):
        marker = ARROW_HEAD.format(f"{prefix}-head{colour}", f"d-head {colour}".strip())
        defs.append(ElementTree.fromstring(marker))
    return defs


def _colour_class(part: ElementTree.Element) -> str:
    """Return the class of an SVG element that names its colour: "d-1" to "d-6", or ""."""
    return "".join(re.findall(r"\bd-[1-6]\b", part.get("class", "")))


def inline_svg(text: str, prefix: str) -> str:
    """Return a drawing for a page, as SVG that becomes part of its HTML.

    ``text`` : the SVG, values filled in; ``prefix`` : what its ids begin with, so that none
    clash with those of another drawing. A ValueError is raised if it is no such drawing
    (`parse_drawing`).
    """
    return ElementTree.tostring(_complete(parse_drawing(text), prefix), encoding="unicode")


def image_html(text: str) -> str:
    """Return a drawing for a notebook: an HTML image that holds its data and its style.

    It is dark on white paper; title and description are its alternative text. ``text`` :
    the SVG, values filled in. A ValueError is raised if it is no such drawing
    (`parse_drawing`).
    """
    root = parse_drawing(text)
    alternative = " ".join(f"{root[0].text} {root[1].text}".split())
    root = _complete(root, "d")
    width, height = root.get("viewBox").split()[2:]
    paper = {"class": "d-paper", "width": width, "height": height}
    root.insert(2, ElementTree.Element("rect", paper))
    style = ElementTree.Element("style")
    rules = STYLE.read_text("utf-8") + PAPER
    style.text = re.sub(r"/\*.*?\*/|\s+(?=\s)", "", rules, flags=re.S)
    root.insert(2, style)
    code = base64.b64encode(ElementTree.tostring(root)).decode()
    size = f'width="{float(width) * MOST_PIXELS:.0f}"'
    return (
        f'<img alt="{escape(alternative)}" {size} src="data:image/svg+xml;base64,{code}">'
    )


# --- steps ----------------------------------------------------------------------------


def step_buttons(label: str, count: int) -> str:
    """Return buttons and rules, as HTML, for a drawing that is filled in step by step.

    There is a radio button for each step. The rules are CSS: what has ``data-step="3"`` in
    the drawing is there from the third step on, and stands out at the third; of the
    figure's numbered list the item of the chosen step is shown. It needs no script, and on
    paper everything is there.

    Parameters
    ----------
    label : str
        The figure's, which is also a class of it.
    count : int
        How many steps there are.
    """
    rules = f".{label} ol{{list-style:none;padding:0}}.{label} li{{display:none}}"
    buttons = ""
    for now in range(1, count + 1):
        at = f'.{label}:has([value="{now}"]:checked)'
        later = ",".join(f'[data-step="{i}"]' for i in range(now + 1, count + 1))
        rules += f"{at} li:nth-child({now}){{display:list-item}}"
        rules += f'{at} [data-step="{now}"]:not(.d-grid){{{NEW_STEP_STYLE}}}'
        if later:  # Bootstrap has a class d-grid, too, whose display is !important.
            rules += f"{at} :is({later}){{display:none!important}}"
        checked = " checked" if now == 1 else ""
        button = f'<input type="radio" name="{label}" value="{now}"{checked}>'
        buttons += f"<label>{button}{now}</label>"
    fieldset = f"<fieldset><legend>Step</legend>{buttons}</fieldset>"
    return f"<style>@media screen{{{rules}}}</style>{fieldset}"


# --- the directive --------------------------------------------------------------------


def read_drawing(folder: Path, name: str, value: Callable[[str, str], str]) -> str:
    """Read a drawing and fill its glued values in.

    Parameters
    ----------
    folder : Path
        The folder of the chapters.
    name : str
        The drawing's, without ".svg".
    value : callable
        ``value(key, format)`` gives the text for each ``{{key}}`` or ``{{key:format}}`` in
        the drawing. The format is such as ".2f", "" if there is none.

    Returns
    -------
    str
        The drawing as SVG.

    Raises
    ------
    ValueError
        If there is no file ``_figures/NAME.svg`` in the folder, or a value is missing.
    """
    path = folder / "_figures" / f"{name}.svg"
    if not path.is_file():
        raise ValueError(f"there is no drawing {path.parent.name}/{path.name}")
    return fill_values(path.read_text("utf-8"), value)


class Drawing(SphinxDirective):
    """A numbered figure: ``{drawing} NAME``, an option ``name``, the caption."""

    required_arguments = 1
    has_content = True
    option_spec = {"name": str}  # noqa: RUF012 as docutils has it

    def run(self) -> list[nodes.Node]:
        """Return the figure: its steps if there are any, the drawing, a caption, a legend.

        In the directive the caption, a paragraph, stands first. A numbered list after it
        has the words for each step of a drawing that is filled in step by step, and is put
        above the drawing, below the buttons; what else follows is a legend.

        It is an error if the label does not begin with "fig-"; if there is no caption, or
        something else stands before it; if there is no such drawing, it is no SVG as
        `parse_drawing` wants it, or a value that it shows was not glued; if there are
        several numbered lists, or fewer items than steps.
        """
        name = self.arguments[0]
        label = self.options.get("name", "")
        self.env.note_dependency(f"_figures/{name}.svg")
        if not label.startswith("fig-") or not self.content:
            raise self.error(f"the drawing {name} needs :name: fig-… and a caption")
        value = functools.partial(format_glue, self.env.temp_data.get("lmbook_glued", {}))
        try:
            svg = inline_svg(read_drawing(Path(self.env.srcdir), name, value), label)
        except ValueError as error:
            raise self.error(f"_figures/{name}.svg: {error}") from None
        figure = nodes.figure("", classes=["lm-figure"])
        units = float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1])
        # One that is wider than a phone scrolls there: the focus lets arrow keys do it.
        focus = 'tabindex="0"' if units > PHONE_WIDTH else ""
        parts = self.parse_content_to_nodes()
        if not parts or not isinstance(parts[0], nodes.paragraph):
            raise self.error(f"the drawing {name} must begin with a caption, a paragraph")
        caption, *rest = parts
        step_lists = [node for node in rest if isinstance(node, nodes.enumerated_list)]
        if len(step_lists) > 1:
            raise self.error(f"below the drawing {name} stand several lists of steps")
        for items in step_lists:
            figure["classes"] += ["lm-steps", label]
            buttons = step_buttons(label, len(items))
            figure += [nodes.raw("", buttons, format="html"), items]
        last_step = max(map(int, re.findall(r'data-step="(\d+)"', svg)), default=0)
        if last_step > sum(map(len, step_lists)):
            raise self.error(
                f"_figures/{name}.svg has {last_step} steps, but the list below it has "
                "fewer items: write one for each step"
            )
        html = f'<div class="lm-scrolls" {focus}>{svg}</div>'
        figure += nodes.raw("", html, format="html")
        figure += nodes.caption("", "", *caption.children)
        if legend := [node for node in rest if node not in step_lists]:
            figure += nodes.legend("", *legend)
        self.set_source_info(figure)
        self.add_name(figure)
        return [figure]


def setup(app: Sphinx) -> None:
    """Register the directive ``drawing`` and its style sheets with Sphinx."""
    app.add_directive("drawing", Drawing)
    app.add_css_file("lib/drawings.css")
    app.add_css_file("lib/steps.css")
