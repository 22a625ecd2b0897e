"""``python -m lmbook.build [FOLDER] [--page NAME]``: execute the chapters, build the site.

If nothing changed since the last build, that is all there is to say. Otherwise Sphinx reads
only what changed, provided that its last build ended well, the site is as that left it, and
neither the set of pages nor what makes pages of them is another; if not, all pages are made
anew. So no page of an earlier build outlives its chapter, and a warning comes back until it
is fixed.

The site is built in a folder beside the old one, ``_build/stage``, and takes its place when
Sphinx has come to its end. A build that was stopped, or that broke, leaves the old site as
it was.
"""

import argparse
import shutil
import sys
from pathlib import Path

from lmbook import fingerprint
from lmbook.execute.keys import ROOT, build_folder, reader_settings
from lmbook.pages.course import CourseError, read_course, read_yaml
from lmbook.publish.addresses import repository
from lmcourse.arguments import path_argument

OF_SPHINX = ("html", ".doctrees", "jupyter_execute")
NO_COLAB = "No page has a button Open in Colab: set GITHUB_REPOSITORY, or a GitHub remote."


def build(root: Path = ROOT, page: str | None = None) -> int:
    """Execute the chapters that changed, and build the site from all of them.

    If nothing changed since a build that ended well, nothing is done. What happens is
    printed, and at the end the chapters that failed.

    Parameters
    ----------
    root : Path
        The folder of ``chapters``, ``data``, ``_toc.yml`` and ``_config.yml``.
    page : str, optional
        Execute this chapter alone; the other pages are built with what they have.

    Returns
    -------
    int
        The exit status: 0 if the site is whole, 1 if it is not, 2 if what it is made of is
        at fault (no such chapter, a configuration or front matter that cannot be read, a
        model that is missing), 130 if it was stopped by Ctrl-C.
    """
    root = root.resolve()
    if page and not _is_chapter(page, root):
        return 2
    made_of = {"inputs": fingerprint.inputs(root), "pages": fingerprint.pages(root)}
    before = fingerprint.stored(root)
    now = made_of | fingerprint.left(root)
    if before == now:
        print(f"Nothing changed: {build_folder(root) / 'html' / 'index.html'}")
        return 0
    try:  # what these return is not needed: their errors are told before anything runs
        reader_settings()
        if (root / "_config.yml").exists():
            read_yaml(root / "_config.yml")
        read_course(root)
    except (OSError, CourseError) as error:  # OSError: no folder of a model, no file
        print(f"error: {error}")
        return 2
    fingerprint.forget(root)
    anew = any(before.get(part) != now[part] for part in ("pages", "html"))
    from lmbook.execute.run import execute_chapters, print_failures  # slow to import

    try:
        # For one chapter the other pages stay as they are, to be quick. The next build of
        # all finds no fingerprint, and makes every page anew.
        failures = execute_chapters(root, only=page)
        whole = _build_site(root, anew and not page, page) and not failures
    except KeyboardInterrupt:
        print("\nstopped: chapters and pages that were not done are not kept")
        return 130
    if not repository():
        print(NO_COLAB)
    print_failures(failures)
    if page:
        print(f"{page}: {build_folder(root) / 'html' / page}.html")
    elif whole:
        fingerprint.store(root, made_of)
    return 0 if whole else 1


def _is_chapter(page: str, root: Path) -> bool:
    """Return whether a page is a chapter that can be executed; print why if it is none.

    ``page`` : its name; ``root`` : the book's folder.
    """
    from lmbook.execute.run import require_chapter

    try:
        require_chapter(page, root)
    except (LookupError, CourseError) as error:  # no such page, or one that is not UTF-8
        print(f"error: {error}")
        return False
    return True


def _build_site(root: Path, anew: bool, page: str | None) -> bool:
    """Let Sphinx build the site; say whether it ended without a warning.

    If one chapter alone was executed, warnings do not count: other pages lack outputs.

    It builds in ``_build/stage``, from what the last build left if that can be used; what
    it made takes the place of that at the end. If it breaks, the old site stays.

    Parameters
    ----------
    root : Path
        The folder of the book, with ``chapters`` and ``_toc.yml``.
    anew : bool
        Whether nothing of the last build can be used.
    page : str or None
        The chapter that alone was executed, such as "attention"; None for all.

    Returns
    -------
    bool
        False also if no site could be built.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C.
    """
    from jupyter_book.sphinx import build_sphinx

    from lmbook.play.stores import link_or_copy

    folder = build_folder(root)
    stage = folder / "stage"
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    kept = () if anew else OF_SPHINX
    for name in kept:
        if (folder / name).is_dir():
            options = {"symlinks": True, "copy_function": link_or_copy}
            shutil.copytree(folder / name, stage / name, **options)
    toc = str((root / "_toc.yml").resolve())
    status = build_sphinx(
        root / "chapters",
        stage / "html",
        noconfig=True,
        path_config=root / "_config.yml",
        confoverrides={
            "external_toc_path": toc,
            "latex_individualpages": False,  # Jupyter Book reads it without asking
            "lmbook_only": page or "",
        },
        warningiserror=not page,  # pages that were not executed lack what they show
        keep_going=True,
    )
    if isinstance(status, BaseException):
        shutil.rmtree(stage)
        if isinstance(status, KeyboardInterrupt):
            raise status
        left = " The site of the last build stays." if (folder / "html").is_dir() else ""
        print(f"\nThe site could not be built: {status}{left}")
        return False
    _replace(folder, stage)
    return status == 0


def _replace(folder: Path, stage: Path) -> None:
    """Put what was built in the place of what an earlier build left.

    That is the site and Sphinx's own folders, named by `OF_SPHINX`. ``folder`` : of builds,
    where they lie; ``stage`` : where they were built, which is gone after, with what was
    there before. Folders are renamed, not copied, so that the site is away for a moment
    only; one that was not built anew is gone as well.
    """
    for name in OF_SPHINX:
        old = stage / f"old-{name}"
        if (folder / name).exists():
            (folder / name).rename(old)
        if (stage / name).exists():
            (stage / name).rename(folder / name)
    shutil.rmtree(stage)


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, execute the chapters, build the site; return the exit status.

    ``arguments`` : list of str, of the command line; default ``sys.argv[1:]``. They are the
    book's folder, into whose ``_build/html`` the site comes, and ``--page NAME``, with
    which only that chapter is executed: the others are built with the outputs of their last
    execution. The statuses are those of `build`.
    """
    parser = argparse.ArgumentParser("python -m lmbook.build", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "folder", nargs="?", type=path_argument, default=ROOT, help="of the book"
    )
    parser.add_argument("--page", help="execute this chapter alone, for example attention")
    asked = parser.parse_args(arguments)
    return build(asked.folder, (asked.page or "").removesuffix(".md") or None)


if __name__ == "__main__":
    sys.exit(main())
