"""Where the book is published: the repository, its branches, the site, the wheel."""

import os
import re
import subprocess

from lmbook.execute.keys import ROOT

FOLDER = "notebooks"
BRANCH = "gh-pages"  # holds notebooks for Colab; .github/notebooks.sh writes it


def repository() -> str:
    """Return the repository on GitHub, such as "owner/name"; "" if none is known.

    The environment variable ``GITHUB_REPOSITORY`` says it, or else git's remote "origin".
    """
    asked = ["git", "-C", str(ROOT), "config", "--get", "remote.origin.url"]
    remote = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    remote = remote if "github.com" in remote else ""
    named = os.environ.get("GITHUB_REPOSITORY") or remote
    match = re.search(r"([\w.-]+/[\w.-]+?)(?:\.git)?/?$", named)
    return match[1] if match else ""


def published_at() -> tuple[str, str]:
    """Return where on GitHub this build's notebooks are published.

    Returns
    -------
    repository, folder : str
        "owner/name", or "" if none is known; and the folder on the branch `BRANCH`: the
        commit's hash in a workflow of GitHub, else "latest".
    """
    return repository(), os.environ.get("GITHUB_SHA") or "latest"


def source_address(page: str, what: str) -> str:
    """Return the address at which GitHub shows a chapter's source.

    ``page`` : the chapter's name; ``what`` : "edit", to edit it, or "commits", for its
    history. The branch is that of the environment variable ``DEFAULT_BRANCH``, or else the
    remote's default one.
    """
    branch = os.environ.get("DEFAULT_BRANCH") or _default_branch()
    return f"https://github.com/{repository()}/{what}/{branch}/chapters/{page}.md"


def _default_branch() -> str:
    """Return the default branch of the remote "origin", such as "main".

    Git noted it when it cloned; "main" if it did not.
    """
    asked = ["git", "-C", str(ROOT), "symbolic-ref", "refs/remotes/origin/HEAD"]
    noted = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    return noted.rpartition("origin/")[2] or "main"


def site_address() -> str:
    """Return the address of the site on GitHub Pages, ending in a slash; "" if unknown.

    Such as "https://owner.github.io/name/".
    """
    owner, _, name = repository().partition("/")
    if not name:
        return ""
    host = f"https://{owner.lower()}.github.io/"
    return host if name.lower() == f"{owner.lower()}.github.io" else f"{host}{name}/"


def wheel_address(wheel: str) -> str:
    """Return the address from which Colab gets the wheel of `lmcourse`.

    It lies on the branch `BRANCH`, which has the notebooks, too. ``wheel`` : the file's
    name, which is returned if no repository is known.
    """
    repo = repository()
    held = f"https://raw.githubusercontent.com/{repo}/{BRANCH}/{FOLDER}/"
    return f"{held}{wheel}" if repo else wheel
