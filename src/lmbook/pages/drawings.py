"""Drawings by hand: ``chapters/_figures/NAME.svg``, checked and made part of the page.

Inline, so that the theme's colours reach them; with a style of their own where a notebook
shows them. How they are drawn: ``docs/tasks-and-drawings.md``.
"""

import base64
import functools
import re
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from xml.etree import ElementTree

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from lmbook.pages.glue import format_glue, page_values

__all__ = ["check", "image", "inline", "setup"]

STYLE = Path(__file__).parents[1] / "static" / "drawings.css"
NOW = "font-weight:700;stroke-width:2.75"  # what a step adds stands out
WIDEST = 480  # units: what a screen of 390 px still shows legibly
SHAPES = ("circle", "ellipse", "line", "path", "polygon", "polyline", "rect")
KNOWN = {"svg", "title", "desc", "g", "text", "tspan", *SHAPES}
GUIDE = "docs/tasks-and-drawings.md says what a drawing is made of"
FORBIDDEN = re.compile(
    r"""(style|id|on\w+|.*href)=.*                      # looks are classes
    | .*=.*url\(.*
    | (fill|stroke|color)=(?!(none|currentColor)$).*
    | transform=.*(scale|matrix|skew).*                 # text keeps its size
    | font-size=(?!(1[3-9]|[2-9]\d)(\.\d+)?$).*         # which is at least 13
    | data-cells=(?![1-9]\d?x[1-9]\d?$).*
    | data-step=(?![1-9]\d?$).*
    """,
    re.DOTALL | re.VERBOSE,
)
CLASSES = set(re.findall(r"\.(d-[\w-]+)", STYLE.read_text("utf-8")))
_GLUED = re.compile(r"\{\{\s*([\w-]+)(?::([^{}]*))?\s*\}\}")


def filled(text: str, value: Callable[[str, str], str]) -> str:
    """Put glued values where ``{{key}}`` or ``{{key:format}}`` stands."""
    return _GLUED.sub(lambda m: escape(value(m[1], (m[2] or "").strip())), text)


# --- checks ---------------------------------------------------------------------------


def check(text: str) -> ElementTree.Element:
    """Parse a drawing and hold it to the rules.

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
        If it is no SVG or breaks a rule, saying which and where.
    """
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"it is not well-formed: {error}") from None
    for part in root.iter():
        part.tag = part.tag.rpartition("}")[2]
    box = re.fullmatch(r"0 0 ([\d.]+) [\d.]+", root.get("viewBox", ""))
    if root.tag != "svg" or box is None or {"width", "height"} & {*root.keys()}:
        raise ValueError('it begins with <svg viewBox="0 0 WIDTH HEIGHT">')
    if float(box[1]) > WIDEST:
        raise ValueError(f"it is {box[1]} units wide; {WIDEST} fit a narrow screen")
    if [part.tag for part in root[:2] if (part.text or "").strip()] != ["title", "desc"]:
        raise ValueError("its first two elements are <title> and <desc>, with words")
    for part in root.iter():
        for fault in _faults(part, root):
            raise ValueError(f"<{part.tag}> {fault}: {GUIDE}")
    return root


def _faults(part: ElementTree.Element, root: ElementTree.Element) -> Iterator[str]:
    """Yield what an element is or has that no drawing may."""
    if part.tag not in KNOWN or (part.tag == "svg" and part is not root):
        yield "is not allowed"
    for name, value in part.items():
        if FORBIDDEN.fullmatch(f"{name}={value}"):
            yield f"has {name}={value!r}"
    for name in {*part.get("class", "").split()} - CLASSES:
        yield f"has the class {name!r}"


# --- forms ----------------------------------------------------------------------------


def _svg(root: ElementTree.Element, prefix: str) -> ElementTree.Element:
    """Complete a drawing: grids, heads of arrows, what a screen reader is told."""
    width = float(root.get("viewBox").split()[2])
    root.attrib |= {
        "class": "lm-drawing",
        "role": "img",
        "xmlns": "http://www.w3.org/2000/svg",
        "aria-labelledby": f"{prefix}-title {prefix}-desc",
        "style": f"max-width: {width * 1.3:.0f}px",
    }
    for part in root[:2]:
        part.set("id", f"{prefix}-{part.tag}")
    parents = {child: parent for parent in root.iter() for child in parent}
    for rect in [part for part in root.iter("rect") if part.get("data-cells")]:
        place = list(parents[rect]).index(rect) + 1
        parents[rect].insert(place, _grid(rect))
    _heads(root, prefix)
    return root


def _grid(rect: ElementTree.Element) -> ElementTree.Element:
    """Return the lines between the cells of a matrix or a vector."""
    x, y, width, height = (float(rect.get(n, 0)) for n in ("x", "y", "width", "height"))
    rows, columns = map(int, rect.attrib.pop("data-cells").split("x"))
    lines = [f"M{x:g} {y + height * i / rows:g}h{width:g}" for i in range(1, rows)]
    lines += [f"M{x + width * i / columns:g} {y:g}v{height:g}" for i in range(1, columns)]
    classes = ["d-grid", *re.findall(r"d-[1-6]\b", rect.get("class", ""))]
    step = {"data-step": rect.get("data-step")} if rect.get("data-step") else {}
    found = {"class": " ".join(classes), "d": "".join(lines)} | step
    return ElementTree.Element("path", found)


def _heads(root: ElementTree.Element, prefix: str) -> None:
    """Give every arrow its head, a marker of its colour."""
    defs = ElementTree.Element("defs")
    for part in list(root.iter()):
        classes = part.get("class", "").split()
        if "d-arrow" not in classes:
            continue
        colour = "".join(name for name in classes if re.fullmatch("d-[1-6]", name))
        name = f"{prefix}-head{colour}"
        part.set("marker-end", f"url(#{name})")
        if defs.find(f"marker[@id='{name}']") is None:
            size = {"viewBox": "0 0 8 8", "refX": "6.5", "refY": "4", "orient": "auto"}
            size |= {"markerWidth": "6", "markerHeight": "6", "id": name}
            head = {"class": f"d-head {colour}".strip(), "d": "M0 0.5L7.5 4L0 7.5z"}
            marker = ElementTree.SubElement(defs, "marker", size)
            ElementTree.SubElement(marker, "path", head)
    root.insert(2, defs)


def inline(text: str, prefix: str) -> str:
    """Return a drawing for a page; ids begin with the prefix, so that none clash."""
    return ElementTree.tostring(_svg(check(text), prefix), encoding="unicode")


def image(text: str) -> str:
    """Return a drawing for a notebook: an HTML image of its own, dark on light paper."""
    root = check(text)
    told = " ".join(f"{root[0].text} {root[1].text}".split())
    root = _svg(root, "d")
    width, height = root.get("viewBox").split()[2:]
    paper = {"class": "d-paper", "width": width, "height": height}
    root.insert(2, ElementTree.Element("rect", paper))
    style = ElementTree.Element("style")
    style.text = re.sub(r"/\*.*?\*/|\s+(?=\s)", "", STYLE.read_text("utf-8"), flags=re.S)
    root.insert(2, style)
    code = base64.b64encode(ElementTree.tostring(root)).decode()
    size = f'width="{float(width) * 1.3:.0f}"'
    return f'<img alt="{escape(told)}" {size} src="data:image/svg+xml;base64,{code}">'


# --- steps ----------------------------------------------------------------------------


def steps(label: str, count: int) -> str:
    """Return buttons and rules for a drawing that is filled in step by step.

    What has ``data-step="3"`` is there from the third step on; the words of a step are the
    item of the list. It needs no script, and on paper everything is there.
    """
    rules = [f".{label} ol{{list-style:none;padding:0}}.{label} li{{display:none}}"]
    buttons = ""
    for now in range(1, count + 1):
        at = f'.{label}:has([value="{now}"]:checked)'
        later = ",".join(f'[data-step="{i}"]' for i in range(now + 1, count + 1))
        rules.append(f"{at} li:nth-child({now}){{display:list-item}}")
        rules.append(f'{at} [data-step="{now}"]:not(.d-grid){{{NOW}}}')
        # Bootstrap has a class d-grid of its own, and is sure of it.
        rules += [f"{at} :is({later}){{display:none!important}}"] * bool(later)
        checked = " checked" if now == 1 else ""
        button = f'<input type="radio" name="{label}" value="{now}"{checked}>'
        buttons += f"<label>{button}{now}</label>"
    return (
        f"<style>@media screen{{{''.join(rules)}}}</style>"
        f"<fieldset><legend>Step</legend>{buttons}</fieldset>"
    )


# --- the directive --------------------------------------------------------------------


def source(folder: Path, name: str, value: Callable[[str, str], str]) -> str:
    """Read a drawing and fill its glued values in.

    Raises
    ------
    ValueError
        If there is none of this name, or a value is missing.
    """
    path = folder / "_figures" / f"{name}.svg"
    if not path.is_file():
        raise ValueError(f"there is no drawing {path.parent.name}/{path.name}")
    return filled(path.read_text("utf-8"), value)


class Drawing(SphinxDirective):
    """A numbered figure: ``{drawing} NAME``, an option ``name``, the caption."""

    required_arguments = 1
    has_content = True
    option_spec = {"name": str}  # noqa: RUF012 as docutils has it

    def run(self) -> list[nodes.Node]:
        name, label = self.arguments[0], self.options.get("name", "")
        values = page_values(self.state.document)
        self.env.note_dependency(f"_figures/{name}.svg")
        if not label.startswith("fig-") or not "".join(self.content).strip():
            raise self.error(f"the drawing {name} needs :name: fig-… and a caption")
        try:
            value = functools.partial(format_glue, values)
            text = source(Path(self.env.srcdir), name, value)
            svg = inline(text, label)
        except ValueError as error:
            raise self.error(f"_figures/{name}.svg: {error}") from None
        parsed = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, parsed)
        figure = nodes.figure("", classes=["lm-figure"])
        listed = parsed.first_child_matching_class(nodes.enumerated_list)
        words = [] if listed is None else [parsed.pop(listed)]
        used = max(map(int, re.findall(r'data-step="(\d+)"', text)), default=0)
        if used > sum(map(len, words)):
            raise self.error(f"_figures/{name}.svg has {used} steps, the list less")
        if words:
            figure["classes"] += ["lm-steps", label]
            buttons = steps(label, len(words[0]))
            figure += [nodes.raw("", buttons, format="html"), *words]
        figure += nodes.raw("", svg, format="html")
        figure += nodes.caption("", "", *parsed[0].children)
        if len(parsed) > 1:
            figure += nodes.legend("", *parsed[1:])
        self.set_source_info(figure)
        self.add_name(figure)
        return [figure]


def _add_style(app, pagename, templatename, context, doctree) -> None:
    if 'class="lm-drawing"' in context.get("body", ""):
        app.add_css_file("lib/drawings.css")
    if "lm-steps" in context.get("body", ""):
        app.add_css_file("lib/steps.css")


def setup(app) -> None:
    """Know the directive; style the pages that use it."""
    app.add_directive("drawing", Drawing)
    app.connect("html-page-context", _add_style)
