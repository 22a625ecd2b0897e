"""What a wheel would hold."""

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
