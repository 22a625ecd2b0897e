"""The wheel alone, without this checkout: any chapter's notebook runs, cell by cell."""

import ast
import json
import os
import subprocess
import sys
import sysconfig
import zipfile

import pytest

from lmbook.execute.run import chapter_paths
from serving import SITE

FOLDER = SITE / "notebooks"
NAMES = [path.stem for path in chapter_paths()]
IN_TEST = "play"  # the quickest that loads a model; all the others in `make steady`
# Python without its `site`, so without the checkout, which a file there makes importable.
RUN = """
import json, sys
from pathlib import Path
packages, notebook = sys.argv[1:]
sys.path.append(packages)
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in json.loads(Path(notebook).read_text("utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        shell.run_cell("".join(cell["source"])).raise_error()
import lmcourse
assert Path(lmcourse.__file__).is_relative_to(Path.cwd() / "wheel"), lmcourse.__file__
assert not {"lmbook", "studies"} & {*sys.modules}
"""


@pytest.fixture
def run(tmp_path):
    """Return what runs a notebook in an empty folder, with the wheel beside it."""
    (wheel,) = FOLDER.glob("lmcourse-*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "wheel")
    inherited = {"PATH", "OMP_NUM_THREADS"}
    own = {
        "HOME": str(tmp_path),
        "PYTHONPATH": str(tmp_path / "wheel"),
        "MPLBACKEND": "agg",
    }
    env = {name: os.environ[name] for name in inherited & {*os.environ}} | own

    def run(notebook):
        command = [sys.executable, "-S", "-c", RUN, sysconfig.get_path("purelib"), notebook]
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.steady if n != IN_TEST else ()) for n in NAMES],
)
def test_a_chapters_cells_run(run, name):
    run(FOLDER / f"{name}.ipynb")


# What Python has on Linux and macOS alone.
POSIX = ["fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"]
HIDE = f"import sys; sys.modules.update(dict.fromkeys({POSIX}))"
EVERY = """import importlib, pkgutil, lmcourse
for module in pkgutil.walk_packages(lmcourse.__path__, "lmcourse."):
    importlib.import_module(module.name)"""


@pytest.mark.slow
def test_it_has_what_all_chapters_import_and_needs_no_posix(run, tmp_path):
    imports = {}
    for name in NAMES:
        text = (FOLDER / f"{name}.ipynb").read_text("utf-8")
        code = ["".join(c["source"]) for c in json.loads(text)["cells"] if "outputs" in c]
        nodes = [node for source in code[1:] for node in ast.parse(source).body]
        kinds = (ast.Import, ast.ImportFrom)
        imports |= {ast.unparse(node): None for node in nodes if isinstance(node, kinds)}
    assert any("lmcourse" in line for line in imports)
    # Libraries look at sys.platform before they import these; they may have them here.
    libraries = [line for line in imports if "lmcourse" not in line]
    lines = [*libraries, HIDE, EVERY, *imports]
    cells = [{"cell_type": "code", "source": [line]} for line in lines]
    (tmp_path / "imports.ipynb").write_text(json.dumps({"cells": cells}), "utf-8")
    run(tmp_path / "imports.ipynb")
