"""``python -m lmbook.build [FOLDER]``: execute the chapters, then build the site of them.

Sphinx reads only what changed since the last build. It may, if that build ended well and
if neither the set of pages nor what makes pages of them is another; else everything that
it left is removed first. So no page of an earlier build outlives its chapter, a warning
comes back until it is mended, and what a stopped build left half done is not trusted.
"""

import itertools
import json
import shutil
import sys
import time
from pathlib import Path

from jupyter_book.sphinx import build_sphinx

from lmbook.execute.keys import ROOT, built, choices, digest, hashes, installed
from lmbook.execute.run import complain, execute_chapters
from lmbook.pages.course import CourseError, read_course

__all__ = ["build", "setup"]

MADE = ("html", ".doctrees", "jupyter_execute")
_MOMENTS: dict[str, float] = {}  # part → when it ended


def _house(root: Path) -> str:
    """Hash what every page depends on."""
    names = sorted(path.name for path in (root / "chapters").glob("*.md"))
    settings = [(root / name).read_text("utf-8") for name in ("_config.yml", "_toc.yml")]
    here = Path(__file__).parent
    ours = {
        k: v
        for k, v in hashes(here, here).items()
        if k.endswith(".py")
        or Path(k).name.startswith(("draw-", "views.", "modules."))
        or Path(k).parent.name == "play"
    }
    return digest([str(root.resolve()), names, settings, ours, installed(), sys.version])


def _site(root: Path) -> bool:
    """Let Sphinx build the site; say whether it ended without a warning."""
    folder, house = built(root), _house(root)
    mark = folder / "whole"
    if not mark.is_file() or mark.read_text() != house:
        for name in MADE:
            shutil.rmtree(folder / name, ignore_errors=True)
    mark.unlink(missing_ok=True)
    toc = str((root / "_toc.yml").resolve())
    done = build_sphinx(
        root / "chapters",
        folder / "html",
        noconfig=True,
        path_config=root / "_config.yml",
        confoverrides={"external_toc_path": toc, "latex_individualpages": False},
        warningiserror=True,
        keep_going=True,
    )
    if isinstance(done, BaseException):  # old pages may lie beside new ones
        shutil.rmtree(folder / "html", ignore_errors=True)
        if isinstance(done, KeyboardInterrupt):
            raise done
    if done == 0:
        mark.write_text(house)
    return done == 0


def build(root: Path = ROOT) -> int:
    """Execute and build, note the time it took; return the exit status."""
    _MOMENTS.clear()
    _note("begin")
    try:
        choices()
        read_course(root)
    except (FileNotFoundError, CourseError) as error:  # a folder of a model that is none
        print(f"error: {error}")
        return 2
    try:
        failures = execute_chapters(root)
        _note("executing")
        whole = _site(root)
    except KeyboardInterrupt:
        print("\nstopped: chapters and pages that were not done are not kept")
        return 130
    _note("publishing")
    parts = itertools.pairwise(_MOMENTS.items())
    times = {name: now - before for (_, before), (name, now) in parts}
    (built(root) / "times.json").write_text(json.dumps(times))
    complain(failures)
    return 0 if whole and not failures else 1


def _note(part: str) -> None:
    _MOMENTS[part] = time.monotonic()


def setup(app) -> None:
    """Note when Sphinx ends a part of its work."""
    app.connect("env-before-read-docs", lambda *_: _note("starting"))
    app.connect("env-updated", lambda *_: _note("reading"))
    app.connect("build-finished", lambda *_: _note("writing"), priority=1)


if __name__ == "__main__":
    from lmbook.build import build  # the module that Sphinx calls `setup` of

    sys.exit(build(*map(Path, sys.argv[1:])))
