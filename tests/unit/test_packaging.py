"""What a wheel would hold."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_package_is_listed():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = tomllib.loads(text)["tool"]["setuptools"]["packages"]
    source = ROOT / "src"
    there = {
        ".".join(file.parent.relative_to(source).parts)
        for file in source.rglob("__init__.py")
    }
    course = {name for name in there if name.partition(".")[0] == "lmcourse"}
    assert set(listed) == course | {"lmcourse._data"}  # which is the folder data


def pins(name):
    """Return the packages that a file of requirements pins, with their versions."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==([^\s\\]+)", text, re.MULTILINE))


def test_the_lock_has_a_hash_of_every_pinned_package():
    wanted = pins("requirements.txt")
    wanted.pop("torch")  # each machine has its own build
    assert pins("requirements.lock") == wanted, "run `make lock`"
    for entry in re.split(r"\n(?=\w)", (ROOT / "requirements.lock").read_text()):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry


def test_reading_notebooks_builds_no_grammar():
    """It would take a second of every kernel that glues a number: requirements.txt."""
    assert not {"rfc3987-syntax", "lark"} & pins("requirements.lock").keys()
    told = "run `pip uninstall rfc3987-syntax` in an environment from before"
    code = f"import nbformat, sys; assert 'lark' not in sys.modules, {told!r}"
    subprocess.run([sys.executable, "-c", code], check=True)
