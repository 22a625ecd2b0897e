"""Where the book is published: the repository, its branches, the site, the wheel."""

import os
import re
import subprocess

from lmbook.execute.keys import ROOT

FOLDER = "notebooks"
BRANCH = "gh-pages"  # holds notebooks for Colab; .github/notebooks.sh writes it


def repository() -> str:
    """Return "owner/name" from ``GITHUB_REPOSITORY`` or the git remote; else empty."""
    asked = ["git", "-C", str(ROOT), "config", "--get", "remote.origin.url"]
    remote = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    remote = remote if "github.com" in remote else ""
    named = os.environ.get("GITHUB_REPOSITORY") or remote
    match = re.search(r"([\w.-]+/[\w.-]+?)(?:\.git)?/?$", named)
    return match[1] if match else ""


def published_at() -> tuple[str, str]:
    """Return the repository, and the folder of `BRANCH` with this build's notebooks.

    In a workflow that is its commit; a build elsewhere has the newest published ones.
    """
    return repository(), os.environ.get("GITHUB_SHA") or "latest"


def source_address(page: str, what: str) -> str:
    """Return where GitHub shows a chapter's source: to "edit" it, or its "commits"."""
    branch = os.environ.get("DEFAULT_BRANCH") or _default_branch()
    return f"https://github.com/{repository()}/{what}/{branch}/chapters/{page}.md"


def _default_branch() -> str:
    """Return the remote's default branch, as git noted it when it cloned; else "main"."""
    asked = ["git", "-C", str(ROOT), "symbolic-ref", "refs/remotes/origin/HEAD"]
    noted = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    return noted.rpartition("origin/")[2] or "main"


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
