"""Where the book is published: the repository, the site, the wheel."""

import os
import re
import subprocess

from lmbook.execute.keys import ROOT

FOLDER = "notebooks"
BRANCH = "gh-pages"  # holds the site; .github/workflows/site.yml writes it


def repository() -> str:
    """Return "owner/name" from ``GITHUB_REPOSITORY`` or the git remote; else empty."""
    asked = ["git", "-C", str(ROOT), "config", "--get", "remote.origin.url"]
    remote = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    remote = remote if "github.com" in remote else ""
    named = os.environ.get("GITHUB_REPOSITORY") or remote
    match = re.search(r"([\w.-]+/[\w.-]+?)(?:\.git)?/?$", named)
    return match[1] if match else ""


def site_address() -> str:
    """Return the address of the published site, ending in a slash; "" if unknown."""
    owner, _, name = repository().partition("/")
    if not name:
        return ""
    host = f"https://{owner.lower()}.github.io/"
    return host if name.lower() == f"{owner.lower()}.github.io" else f"{host}{name}/"


def wheel_address(wheel: str) -> str:
    """Return where Colab gets the wheel: beside the notebook, on the branch of both."""
    owner = repository()
    held = f"https://raw.githubusercontent.com/{owner}/{BRANCH}/{FOLDER}/"
    return f"{held}{wheel}" if owner else wheel
