"""The built site and a server for it, for the tests that need them."""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

from lmbook.execute.keys import ROOT, build_folder

SITE = build_folder(ROOT) / "html"
DEMO = Path(__file__).parent / "demo"
DEMO_PAGES = sorted(path.stem for path in DEMO.glob("*.md"))


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


def build_demo(book):
    """Build the demonstration book as the real one is; return the site's folder.

    With another model than the default, an empty folder: no page of it loads a model, and
    some findings do not hold.
    """
    shutil.copytree(DEMO, book / "chapters")
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


@contextmanager
def serve(folder):
    """Serve a folder on a free port of this machine; gives the address."""
    handler = functools.partial(Quiet, directory=str(folder))
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    httpd.daemon_threads = True
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_address[1]}"
    httpd.shutdown()
