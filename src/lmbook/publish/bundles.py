"""The site's own scripts and style sheets, as esbuild makes them for browsers.

``static/`` has ES modules, which tests and readers of this repository see as they are. A
page that was opened as a file loads no module, so ``js/bundle.mjs`` makes classic scripts
of them: one for each part of every page, and ``play.js`` with all views that run in it.
"""

import json
from pathlib import Path

from lmbook.publish import npm
from lmcourse.views import notebook

STATIC = Path(__file__).parents[1] / "static"
PLAY = STATIC / "play"
SHARED = Path(notebook.__file__).parent / "static"  # what notebooks need as well
IN_NOTEBOOKS = ("dom.js", "poems.js", "poems.css")
BUNDLE = Path(__file__).parents[1] / "js" / "bundle.mjs"


def view_files(suffix: str) -> dict[str, Path]:
    """Return the JavaScript modules of views, or their style sheets, sorted by name.

    ``suffix`` : ".js" or ".css". The result has the name of each file, such as "dom.js" →
    its path.
    """
    paths = [*PLAY.iterdir(), *(SHARED / name for name in IN_NOTEBOOKS)]
    return {path.name: path for path in sorted(paths) if path.suffix == suffix}


def write_bundles(work: Path, out: Path, own: Path = STATIC) -> None:
    """Write all scripts and style sheets of the site, made of ES modules by esbuild.

    Parameters
    ----------
    work : Path
        Where npm installed esbuild (`lmbook.publish.npm.install`).
    out : Path
        The site's folder of libraries.
    own : Path
        The folder of the ES modules and style sheets.

    Raises
    ------
    ExtensionError
        If a script or a style sheet cannot be read, with what esbuild said of it.
    """
    folders = {"own": str(own), "shared": str(SHARED), "out": str(out)}
    failed = "esbuild could not read a script or a style sheet:"
    npm.run("node", [str(BUNDLE), json.dumps(folders)], failed, cwd=work)
