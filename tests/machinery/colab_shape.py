"""Execute every published notebook in an environment shaped like Colab's.

``python tests/machinery/colab_shape.py [--python ...]``, after ``make html``. Needs nothing
but the standard library and pip.

1. A virtual environment is made in a temporary folder, with the versions that Colab had in
   August 2026 (`COLAB`), apart from what the course itself installs.
   ``torch`` is the version of the Python that runs this script, if it has one; else the
   newest. ``--python`` chooses another interpreter for the environment (Colab has 3.13, and
   had 3.12). PyPI's torch for Linux brings CUDA's libraries, 5 GB in all, of which nothing
   is used; where pip is configured to find PyTorch's build for the CPU, it takes that.
2. The notebooks' own first cell is run as in Colab, and installs what is missing. The
   course is the wheel that the build left beside them; its source is out of reach.
3. Each notebook is copied alone into an empty folder and executed there by
   ``jupyter execute``. From here on a connection to any other machine is an error.

The exit status is 1 if a notebook fails; its error is printed.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "_build" / "html" / "notebooks"
TIMEOUT = 3600  # seconds a cell, or until a kernel begins: only a hang takes as long
IN_COLAB = "import sys, types; sys.modules['google.colab'] = types.ModuleType('colab')"
COLAB = (
    "ipykernel==6.17.*",
    "ipython==7.34.*",
    "numpy==2.1.3",
    "plotly==5.24.1",
    "seaborn==0.13.2",
    "torch",
    "transformers==5.15.*",
    "importlib-metadata",
    "matplotlib",
    "nbclient",
    "nbformat",
    "pandas>=2.2,<3",
    "platformdirs",
    "regex",
    "requests",
    "scikit-learn",
    "scipy",
    "tqdm",
)
OFFLINE = '''\
"""Refuse connections to other machines."""

import sys

LOCAL = (None, "", "localhost", "0.0.0.0", "127.0.0.1", "::1")


def refuse(event, values):
    host = None
    if event == "socket.getaddrinfo":
        host = values[0]
    elif event == "socket.connect" and isinstance(values[1], tuple):  # else: a file
        host = values[1][0]
    if host not in LOCAL:
        raise OSError(f"no network here: {host}")


sys.addaudithook(refuse)
'''


def first_cell(notebook: Path, wheel: Path) -> str:
    """Return the code that installs, with the wheel that is here for its address."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    source = "".join(next(c for c in cells if c["cell_type"] == "code")["source"])
    address = re.search(r'"lmcourse": \("\S+", "(.+?)"\)', source)[1]
    return source.replace(address, wheel.name)


def with_torch(packages: list[str]) -> list[str]:
    """Replace a bare ``torch`` by the version of the running Python, if it has one."""
    if not find_spec("torch"):
        return packages
    here = metadata.version("torch").partition("+")[0]
    return [f"torch=={here}" if package == "torch" else package for package in packages]


def make_environment(folder: Path, python: str, packages: list[str], first: str, at: Path):
    """Make the virtual environment, cut it off the network; return its Python."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    inside = folder / "bin" / "python"
    pip = [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *packages], check=True)
    subprocess.run([inside, "-c", f"{IN_COLAB}\n{first}"], cwd=at, check=True)
    asked = [str(inside), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.check_output(asked, text=True).strip())
    (site / "offline_guard.py").write_text(OFFLINE, encoding="utf-8")
    (site / "offline_guard.pth").write_text("import offline_guard\n", encoding="utf-8")
    reach = "import socket; socket.getaddrinfo('example.org', 80)"
    errors = subprocess.run([inside, "-c", reach], capture_output=True, text=True).stderr
    assert "no network here" in errors, errors
    return inside


def execute(python: Path, notebook: Path, scratch: Path) -> str:
    """Execute a notebook alone in an empty folder; return its error, "" if none."""
    folder = scratch / notebook.stem
    folder.mkdir()
    shutil.copy(notebook, folder)
    private = ("JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR", "LMCOURSE_CACHE")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env |= {name: str(scratch / "home" / name.lower()) for name in private}
    env["PATH"] = os.pathsep.join([str(python.parent), env.get("PATH", "")])
    limits = [f"--timeout={TIMEOUT}", f"--startup_timeout={TIMEOUT}"]
    command = [python.parent / "jupyter", "execute", *limits, notebook.name]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", default=sys.executable)
    options, folder, failed = parser.parse_args(), NOTEBOOKS.resolve(), []
    notebooks, wheels = sorted(folder.glob("*.ipynb")), sorted(folder.glob("*.whl"))
    if not notebooks or len(wheels) != 1:
        parser.error(f"{folder} should hold notebooks and one wheel: run `make html`")
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        first = first_cell(notebooks[0], wheels[0])
        packages = with_torch(COLAB)
        python = make_environment(home / "venv", options.python, packages, first, folder)
        for notebook in notebooks:
            start = time.monotonic()
            error = execute(python, notebook, home)
            took = f"{time.monotonic() - start:.0f} s"
            print(f"{notebook.stem:24} {'FAILED' if error else 'ok':8} {took} {error}")
            if error:
                failed.append(notebook.stem)
    print(f"{len(notebooks) - len(failed)} of {len(notebooks)} notebooks ran")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
