"""``python -m lmbook.execute.nulls NAME``: do a chapter's findings fail on their nulls?

The lesson is executed once, up to its last finding, without drawing its figures. Each
finding is run where the page places it: on the page, where it must hold, and on its null
(`studies.findings`), where there is nothing to find and it must raise an AssertionError. A
line is printed for each; the exit status is 1 if one of them behaves otherwise.
"""

import argparse
import importlib
import inspect
import io
import json
import os
import pkgutil
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import lmcourse.figures
from lmbook.execute.keys import ROOT
from lmbook.execute.placed import is_placed_proof, proof_name
from lmbook.execute.run import page_notebook, require_chapter
from lmbook.execute.verdicts import code_cells, insert_values
from lmbook.pages.course import CourseError
from lmcourse.arguments import path_argument
from studies.findings import Page, Proof, find, plain_values, same_draws, values_unchecked


def check_finding(proof: Proof, page: Page) -> dict:
    """Run a finding on its page, where it must hold, and on its null, where it must fail.

    Parameters
    ----------
    proof : studies.findings.Proof
        The finding.
    page : studies.findings.Page
        The names that the lesson has defined where it places the finding.

    Returns
    -------
    dict
        ``name``: the finding's; ``problem``: what is not as it should be, a sentence, "" if
        nothing; ``no_null``: why it has no null, "" if it has one; ``seconds``: how long
        both runs took. It is a problem, too, if a field of the finding quotes a value that
        it does not return.
    """
    start = time.monotonic()
    problem = ""
    with same_draws():
        try:
            values = plain_values(proof, proof(page))
            named = {f"{proof.name}.{key}": repr(value) for key, value in values.items()}
            for text in proof.fields().values():
                insert_values(text, named, f"{proof.name}.")
        except Exception as error:
            problem = f"it fails on its page: {error!r}"
        if proof.null and not problem:
            try:
                problem = _problem_in_null(proof, page, values)
            except Exception as error:
                problem = f"in its null it raises no AssertionError, but {error!r}"
    seconds = round(time.monotonic() - start, 1)
    return {
        "name": proof.name,
        "problem": problem,
        "no_null": proof.no_null,
        "seconds": seconds,
    }


def _problem_in_null(proof: Proof, page: Page, values: dict) -> str:
    """Run a finding on its null, the world with nothing to find; say what is wrong there.

    Parameters
    ----------
    proof : studies.findings.Proof
        The finding. Its ``null`` makes that world's page of ``page``.
    page : studies.findings.Page
        The names that the lesson has defined.
    values : dict
        What the finding returned on its page, by name.

    Returns
    -------
    str
        What is wrong; "" if the finding fails with an AssertionError, as it should, and
        returns the same names there when its assertions are left out.
    """
    null_page = proof.null(page)
    try:
        proof(null_page)
    except AssertionError:
        null_values = values_unchecked(proof, null_page)
        different = sorted(values.keys() ^ null_values.keys())
        return f"in its null it returns other names: {different}" if different else ""
    return "it holds in its null as well, where there is nothing to find"


def check_findings(chapter: str, root: Path = ROOT) -> list[dict]:
    """Execute a chapter's lesson, and run each of its findings on the page and on its null.

    A finding is a proof about the model at hand, and must hold on the page; its null is the
    page in a world with nothing to find, where it must fail. Other proofs are not run.

    This is for a process of its own: it changes the working directory, the functions that
    draw figures, and IPython's shell.

    Parameters
    ----------
    chapter : str
        Its name.
    root : Path
        The book's folder.

    Returns
    -------
    list of dict
        One for each finding, in the page's order: ``name``; ``problem``, what is not as it
        should be, "" if nothing; ``no_null``, why it has no null, "" if it has one;
        ``seconds`` that it took.

    Raises
    ------
    Exception
        Whatever the lesson raises.
    """
    from IPython.core.interactiveshell import InteractiveShell

    os.environ["LMBOOK_STUDIES"] = str(root / "src" / "studies")
    os.environ.setdefault("MPLBACKEND", "agg")
    cells = code_cells(page_notebook(root / "chapters" / f"{chapter}.md"))
    proofs = {
        number: find(chapter, proof_name(cell))
        for number, cell in enumerate(cells)
        if is_placed_proof(cell)
    }
    findings = {n: proof for n, proof in proofs.items() if proof.kind == "finding"}
    if not findings:
        return []
    os.chdir(root / "chapters")
    _disable_figures()
    shell = InteractiveShell.instance()
    results = []
    for number, cell in enumerate(cells[: max(findings) + 1]):
        if number in findings:
            results.append(check_finding(findings[number], Page(shell.user_ns)))
        elif number not in proofs:
            done = shell.run_cell(cell.source, silent=True)
            if "raises-exception" not in cell.metadata.get("tags", []):
                done.raise_error()
    return results


def _disable_figures() -> None:
    """Replace each public function of the modules of `lmcourse.figures`, which draw.

    What takes its place takes any arguments, does nothing and returns None.
    """
    for module in pkgutil.iter_modules(lmcourse.figures.__path__, "lmcourse.figures."):
        drawing = importlib.import_module(module.name)
        for name, function in inspect.getmembers(drawing, inspect.isfunction):
            if function.__module__ == module.name and not name.startswith("_"):
                setattr(drawing, name, lambda *arguments, **options: None)


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each finding of a chapter; return 0 if none has a problem, else 1.

    A finding, a function that asserts what a sentence of the page says, has a problem if it
    fails on the page, or does not fail on its null. With ``--json`` a list is printed: of
    each finding ``name``, ``problem`` ("" if it has none), ``no_null`` (why it has no null,
    "" if it has one) and ``seconds``. ``arguments`` are those of the command line; default:
    ``sys.argv``. Where there is no such chapter, or a page is not UTF-8, that is said, and
    2 returned. An error of the lesson is raised as it is.
    """
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", help="of the chapter")
    parser.add_argument(
        "--root", type=path_argument, default=ROOT, help="the book's folder"
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    chosen = parser.parse_args(arguments)
    try:
        require_chapter(chosen.name, chosen.root.resolve())
    except (LookupError, CourseError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    discarded = io.StringIO()
    with redirect_stdout(discarded), redirect_stderr(discarded):
        results = check_findings(chosen.name, chosen.root.resolve())
    if chosen.json:
        print(json.dumps(results))
    else:
        for result in results:
            print(_line(result))
    return int(any(result["problem"] for result in results))


def _line(result: dict) -> str:
    """Return a line of text about a finding and its null.

    The null is a world in which there is nothing to find, so that the finding must fail.

    ``result`` : dict: ``name``; ``problem``, "" if there is none; ``no_null``, why it has
    no null, "" if it has one; ``seconds`` that it took.
    """
    mark = "✓"
    message = "it fails on its null, as it should"
    if result["problem"]:
        mark = "✗"
        message = result["problem"]
    elif result["no_null"]:
        message = f"it has no null, since {result['no_null']}"
    return f"{mark} {result['name']} ({result['seconds']} s): {message}"


if __name__ == "__main__":
    sys.exit(main())
