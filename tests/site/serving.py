"""The built site and a server for it, for the tests that need them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from lmbook.bench.play import serve
from lmbook.execute.keys import ROOT, build_folder

__all__ = ["DEMO", "DEMO_PAGES", "ROOT", "SITE", "build_demo", "serve"]

SITE = build_folder(ROOT) / "html"
DEMO = Path(__file__).parent / "demo"
DEMO_PAGES = sorted(path.stem for path in DEMO.glob("*.md"))


def build_demo(book):
    """Build the demonstration book as the real one is; return the site's folder.

    With another model than the default, an empty folder: no page of it loads a model, and
    some findings do not hold.
    """
    shutil.copytree(DEMO, book / "chapters")
    (book / "src").mkdir()
    (book / "chapters" / "_studies").rename(book / "src" / "studies")
    for name in ("_static", "_logo"):
        shutil.copytree(ROOT / "chapters" / name, book / "chapters" / name)
    shutil.copy(ROOT / "chapters" / "references.bib", book / "chapters")
    shutil.copy(ROOT / "_config.yml", book)
    files = "".join(f"- file: {name}\n" for name in DEMO_PAGES if name != "index")
    pages = f"format: jb-book\nroot: index\nchapters:\n{files}"
    (book / "_toc.yml").write_text(pages, encoding="utf-8")
    (book / "another-bert").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "lmbook.build", str(book)],
        capture_output=True,
        text=True,
        env=os.environ | {"LMCOURSE_BERT": "./another-bert", "LMBOOK_BUILD": "_build"},
        cwd=book,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return book / "_build" / "html"
