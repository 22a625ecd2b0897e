"""What is installed, and what importing brings with it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from sphinx.errors import ExtensionError

from lmbook.publish import notebooks

ROOT = Path(__file__).parents[2]


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
    advice = "run `pip uninstall rfc3987-syntax` in an environment from before"
    code = f"import nbformat, sys; assert 'lark' not in sys.modules, {advice!r}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_text_and_numpy_need_no_pytorch():
    names = ["data", "tokenization", "wordpiece", "numpy_nn.decoder"]
    imports = "\n".join(f"import lmcourse.{name}" for name in names)
    code = f"{imports}\nimport sys; print({{'torch', 'transformers'}} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("set()\n", 0), done.stderr


def test_a_wheel_that_cannot_be_built_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    for folder in ("src/lmcourse", "data"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("README.md", "LICENSE"):
        (tmp_path / name).touch()
    backend = '[build-system]\nrequires = []\nbuild-backend = "none_of_that_name"\n'
    (tmp_path / "pyproject.toml").write_text(
        f'{backend}[project]\nname = "lmcourse"\nversion = "1"\n'
    )
    with pytest.raises(ExtensionError, match=r"(?s)wheel.*none_of_that_name") as failed:
        notebooks.build_wheel(tmp_path / "wheels")
    assert "make install" in str(failed.value)
