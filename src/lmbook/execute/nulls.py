"""``python -m lmbook.execute.nulls NAME``: do a chapter's findings fail on their nulls?

The lesson is executed once, up to its last finding, without drawing its figures. Each
finding is asked where the page places it: on the page, where it must hold, and in its null
(`studies.findings`), where there is nothing to find and it must raise an AssertionError. A
line for each says what came of it; the exit status is 1 if one is not as it should be.
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
from lmbook.execute.placed import is_placed, placed_name
from lmbook.execute.run import page_notebook
from lmbook.execute.verdicts import code_cells, filled
from studies.findings import Page, Proof, find, plain_values, same_draws, values_unchecked


def ask(proof: Proof, page: Page) -> dict:
    """Ask a finding on its page and in its null.

    Returns
    -------
    dict
        ``name``; ``wrong``: what is not as it should be, "" if nothing; ``no_null``: why
        it has no null, "" if it has one; ``seconds``.
    """
    start, wrong = time.monotonic(), ""
    with same_draws():
        try:
            values = plain_values(proof, proof(page))
            named = {f"{proof.name}.{key}": repr(value) for key, value in values.items()}
            for text in proof.fields().values():
                filled(text, named, f"{proof.name}.")
        except Exception as error:
            wrong = f"it fails on its page: {error!r}"
        if proof.null and not wrong:
            try:
                wrong = _ask_null(proof, page, values)
            except Exception as error:
                wrong = f"in its null it raises no AssertionError, but {error!r}"
    seconds = round(time.monotonic() - start, 1)
    return {
        "name": proof.name,
        "wrong": wrong,
        "no_null": proof.no_null,
        "seconds": seconds,
    }


def _ask_null(proof: Proof, page: Page, values: dict) -> str:
    """Return what is wrong with a finding in its null, "" if it fails as it should.

    ``values`` is what the finding returned on its page, by name.
    """
    world = proof.null(page)
    try:
        proof(world)
    except AssertionError:
        there = values_unchecked(proof, world)
        missing = sorted(values.keys() ^ there.keys())
        return f"in its null it returns other names: {missing}" if missing else ""
    return "it holds in its null as well, where there is nothing to find"


def held(chapter: str, root: Path = ROOT) -> list[dict]:
    """Execute a chapter's lesson; return what `ask` says of each of its findings.

    ``chapter`` is its name, ``root`` the folder of the book.

    This is for a process of its own: it changes the working directory, what draws figures,
    and the shell that IPython knows.

    Raises
    ------
    Exception
        Whatever the lesson raises.
    """
    from IPython.core.interactiveshell import InteractiveShell

    os.environ["LMBOOK_STUDIES"] = str(root / "src" / "studies")
    os.environ.setdefault("MPLBACKEND", "agg")
    cells = code_cells(page_notebook(root / "chapters" / f"{chapter}.md"))
    proofs = {n: find(chapter, placed_name(c)) for n, c in enumerate(cells) if is_placed(c)}
    asked = {n: each for n, each in proofs.items() if each.kind == "finding"}
    if not asked:
        return []
    os.chdir(root / "chapters")
    _draw_nothing()
    shell, found = InteractiveShell.instance(), []
    for number, cell in enumerate(cells[: max(asked) + 1]):
        if number in asked:
            found.append(ask(asked[number], Page(shell.user_ns)))
        elif number not in proofs:
            done = shell.run_cell(cell.source, silent=True)
            if "raises-exception" not in cell.metadata.get("tags", []):
                done.raise_error()
    return found


def _draw_nothing() -> None:
    """Let the functions of `lmcourse.figures` return at once."""
    for module in pkgutil.iter_modules(lmcourse.figures.__path__, "lmcourse.figures."):
        drawing = importlib.import_module(module.name)
        for name, function in inspect.getmembers(drawing, inspect.isfunction):
            if function.__module__ == module.name and not name.startswith("_"):
                setattr(drawing, name, lambda *arguments, **options: None)


def main(arguments: list[str] | None = None) -> int:
    """Print a line a finding; return 0 if all are as they should be, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", help="of the chapter")
    parser.add_argument("--root", type=Path, default=ROOT, help="the book's folder")
    parser.add_argument("--json", action="store_true", help="for programs")
    chosen = parser.parse_args(arguments)
    quiet = io.StringIO()
    with redirect_stdout(quiet), redirect_stderr(quiet):
        found = held(chosen.name, chosen.root.resolve())
    if chosen.json:
        print(json.dumps(found))
    for each in [] if chosen.json else found:
        no_null = f"it has no null, since {each['no_null']}"
        well = no_null if each["no_null"] else "it fails on its null, as it should"
        mark, said = ("✗", each["wrong"]) if each["wrong"] else ("✓", well)
        print(f"{mark} {each['name']} ({each['seconds']} s): {said}")
    return int(any(each["wrong"] for each in found))


if __name__ == "__main__":
    sys.exit(main())
