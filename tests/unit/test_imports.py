"""What importing brings with it: nothing of POSIX, and PyTorch only where it is used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from chapters import CHAPTERS, page_code

SOURCE = Path(__file__).parents[2] / "src"
# What Python has on Linux and macOS alone.
POSIX = ["fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"]


def modules() -> list[str]:
    """Return the names of all modules of lmcourse, those that run at import apart."""
    paths = (path.relative_to(SOURCE) for path in (SOURCE / "lmcourse").rglob("*.py"))
    names = [".".join(path.with_suffix("").parts) for path in sorted(paths)]
    return [name.removesuffix(".__init__") for name in names if "__main__" not in name]


def page_imports() -> list[str]:
    """Return every statement with which a chapter imports something, each once."""
    found = {}
    for page in sorted(CHAPTERS.glob("*.md")):
        for node in ast.parse(page_code(page.stem)).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                found[ast.unparse(node)] = page.name
    return list(found)


def run(code: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_course_imports_without_posix():
    ours = [f"import {name}" for name in modules()]
    pages = page_imports()
    assert len(ours) > 20
    assert len(pages) > 50
    # Libraries look at sys.platform before they import these; they may have them here.
    libraries = [line for line in pages if "lmcourse" not in line]
    hide = f"import sys; sys.modules.update(dict.fromkeys({POSIX}))"
    done = run("\n".join([*libraries, hide, *ours, *pages]))
    assert done.returncode == 0, done.stderr
    done = run(f"{hide}\nimport resource")  # hidden indeed
    assert "ModuleNotFoundError" in done.stderr


def test_text_and_numpy_need_no_pytorch():
    names = ["data", "tokenization", "wordpiece", "numpy_nn.decoder"]
    imports = "\n".join(f"import lmcourse.{name}" for name in names)
    done = run(
        f"{imports}\nimport sys; print({{'torch', 'transformers'}} & {{*sys.modules}})"
    )
    assert (done.stdout, done.returncode) == ("set()\n", 0), done.stderr
