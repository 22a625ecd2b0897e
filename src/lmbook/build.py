"""``python -m lmbook.build [FOLDER]``: execute the chapters, then build the site of them.

If nothing changed since the last build, that is all there is to say. Else Sphinx reads
only what changed. It may, if its last build ended well, the site is as that left it, and
neither the set of pages nor what makes pages of them is another; else everything that it
left is removed first. So no page of an earlier build outlives its chapter, a warning comes
back until it is mended, and what a stopped build left half done is not trusted.
"""

import shutil
import sys
from pathlib import Path

from lmbook import fingerprint
from lmbook.execute.keys import ROOT, build_folder, settings
from lmbook.pages.course import CourseError, read_course
from lmbook.publish.addresses import repository

OF_SPHINX = ("html", ".doctrees", "jupyter_execute")
NO_COLAB = "No page has a button Open in Colab: set GITHUB_REPOSITORY, or a GitHub remote."


def build(root: Path = ROOT) -> int:
    """Execute and build; return the exit status."""
    made_of = {"inputs": fingerprint.inputs(root), "pages": fingerprint.pages(root)}
    before, now = fingerprint.kept(root), made_of | fingerprint.left(root)
    if before == now:
        print(f"Nothing changed: {build_folder(root) / 'html' / 'index.html'}")
        return 0
    try:
        settings()
        read_course(root)
    except (FileNotFoundError, CourseError) as error:  # a folder of a model that is none
        print(f"error: {error}")
        return 2
    fingerprint.forget(root)
    if any(before.get(part) != now[part] for part in ("pages", "html")):
        for name in OF_SPHINX:
            shutil.rmtree(build_folder(root) / name, ignore_errors=True)
    from lmbook.execute.run import execute_chapters, report

    try:
        failures = execute_chapters(root)
        whole = _build_site(root) and not failures
    except KeyboardInterrupt:
        print("\nstopped: chapters and pages that were not done are not kept")
        return 130
    if not repository():
        print(NO_COLAB)
    report(failures)
    if whole:
        fingerprint.keep(root, made_of)
    return 0 if whole else 1


def _build_site(root: Path) -> bool:
    """Let Sphinx build the site; say whether it ended without a warning."""
    from jupyter_book.sphinx import build_sphinx

    html = build_folder(root) / "html"
    toc = str((root / "_toc.yml").resolve())
    status = build_sphinx(
        root / "chapters",
        html,
        noconfig=True,
        path_config=root / "_config.yml",
        confoverrides={"external_toc_path": toc, "latex_individualpages": False},
        warningiserror=True,
        keep_going=True,
    )
    if isinstance(status, BaseException):  # old pages may lie beside new ones
        shutil.rmtree(html, ignore_errors=True)
        if isinstance(status, KeyboardInterrupt):
            raise status
    return status == 0


if __name__ == "__main__":
    sys.exit(build(*map(Path, sys.argv[1:])))
