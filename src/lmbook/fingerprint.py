"""What the last build that ended well was made of, and what it left.

Only what can be known before torch and Sphinx are imported, which takes seconds: the
contents of all files that a build reads or leaves, what is installed, and what the reader
set. Hashes of it stand in ``_build/fingerprint.json``.
"""

import json
import os
import platform
import sys
from contextlib import suppress
from pathlib import Path

from lmbook.execute.keys import (
    PACKAGE,
    ROOT,
    build_folder,
    hash_files,
    hash_json,
    installed_packages,
)
from lmbook.publish.addresses import published_at
from lmcourse.files import write_whole

BOOK = ("chapters", "data", "_config.yml", "_toc.yml")
OURS = ("data", "pyproject.toml", "requirements.txt", "README.md", "LICENSE")
LMBOOK = Path(__file__).parent
STUDIES = LMBOOK.parent / "studies"


def inputs(root: Path) -> str:
    """Hash all that a build of a book depends on; return a SHA-256 in hexadecimal.

    That is the book's chapters, data, contents and configuration; the code and the data of
    this repository; the environment variables ``LMCOURSE_…`` and the models whose paths
    they hold; the installed packages, Python and the machine; and where the book is
    published. ``root`` : the book's folder.
    """
    paths = [*(root / name for name in BOOK), *(ROOT / name for name in OURS)]
    variables = {k: v for k, v in os.environ.items() if k.startswith("LMCOURSE_")}
    models = [Path(v).expanduser().absolute() for v in filter(None, variables.values())]
    files = [hash_files(path, root) for path in (*paths, PACKAGE, LMBOOK, STUDIES, *models)]
    machine = [platform.platform(), sorted(map(str, Path("/dev").glob("nvidia*")))]
    software = [published_at(), installed_packages(), sys.version]
    return hash_json([str(root.resolve()), files, variables, software, machine])


def pages(root: Path) -> str:
    """Hash what every page of a book depends on; return a SHA-256 in hexadecimal.

    That is the set of its pages, its configuration and contents, the code that makes pages
    (`lmbook` and `lmcourse.views`), the installed packages and Python. ``root`` : the
    book's folder.
    """
    folder = root / "chapters"
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))
    config = [hash_files(root / name, root) for name in ("_config.yml", "_toc.yml")]
    folders = (LMBOOK, PACKAGE / "views")  # of which some scripts are for pages, too
    software = [
        [hash_files(folder, folder) for folder in folders],
        installed_packages(),
        sys.version,
    ]
    return hash_json([str(root.resolve()), names, config, software])


def left(root: Path) -> dict[str, str]:
    """Hash what a build of a book left.

    Parameters
    ----------
    root : Path
        The book's folder.

    Returns
    -------
    dict of str to str
        "executed", of the folder of executed notebooks, and "html", of that of the site →
        SHA-256 in hexadecimal, over the paths and contents of all files.
    """
    folder = build_folder(root)
    return {
        name: hash_json(hash_files(folder / name, folder)) for name in ("executed", "html")
    }


def stored(root: Path) -> dict[str, str]:
    """Return the hashes that the last build of the book in ``root`` noted (`store`).

    Returns
    -------
    dict of str to str
        ``inputs`` and ``pages``, of what it was made of (`inputs`, `pages`), ``executed``
        and ``html``, of what it left (`left`) → SHA-256 in hexadecimal; empty if there was
        no build, or the last one did not end well.
    """
    with suppress(OSError, ValueError):
        return json.loads((build_folder(root) / "fingerprint.json").read_text())
    return {}


def forget(root: Path) -> None:
    """Remove the hashes of the last build (`stored`), since another one begins.

    So until that one ends well, there are none. ``root`` : the book's folder.
    """
    (build_folder(root) / "fingerprint.json").unlink(missing_ok=True)


def store(root: Path, made_of: dict[str, str]) -> None:
    """Note that a build ended well, in ``fingerprint.json`` of the folder of builds.

    Parameters
    ----------
    root : Path
        The book's folder.
    made_of : dict of str to str
        The hashes ``inputs`` and ``pages`` of what it began with. Those of what it left
        behind are added.
    """
    hashes = json.dumps(made_of | left(root))
    write_whole(build_folder(root) / "fingerprint.json", hashes)
