"""Find a Chromium for the browser tests; fetch one where that is possible."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["find_chromium"]

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"


def find_chromium() -> str:
    """Return the path of a Chromium: ``CHROMIUM``, one on the PATH, or Playwright's own.

    Raises
    ------
    FileNotFoundError
        If there is none, saying how to install one.
    """
    from playwright.sync_api import sync_playwright

    candidates = [os.environ.get("CHROMIUM"), *map(shutil.which, NAMES), MAC]
    for path in candidates:
        if path and Path(path).is_file():
            return path
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    if Path(path).is_file():
        return path
    raise FileNotFoundError(
        "the browser tests need Chromium: install it (Debian: `apt-get install chromium`), "
        "or set CHROMIUM to its path"
    )


def main() -> int:
    try:
        find_chromium()
    except FileNotFoundError as error:
        print(f"{error}. Trying Playwright's own build …", file=sys.stderr)
        fetched = subprocess.run(
            [sys.executable, "-m", "playwright", "install", "chromium"]
        )
        return fetched.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
