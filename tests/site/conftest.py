"""What the tests of the built site share: its folder, a server, a browser."""

import functools
import http.server
import threading
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from lmcourse.book.browser import find_chromium

ROOT = Path(__file__).parents[2]
SITE = ROOT / "_build" / "html"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


def serve(folder):
    """Serve a folder on a free port of this machine; return the server and its address."""
    handler = functools.partial(Quiet, directory=str(folder))
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    httpd.daemon_threads = True
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    return httpd, f"http://127.0.0.1:{httpd.server_address[1]}"


@pytest.fixture(scope="session")
def site():
    """The built site's folder; never skipped."""
    if not (SITE / "index.html").is_file():
        pytest.fail(f"{SITE} has no index.html: run `make html` first", pytrace=False)
    return SITE


@pytest.fixture(scope="session")
def server(site):
    """The address of the built site."""
    httpd, address = serve(site)
    yield address
    httpd.shutdown()


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium; a machine without one fails.

    It is closed with the module: as long as it is open, no other test of the process can
    run an event loop.
    """
    try:
        path = find_chromium()
    except FileNotFoundError as error:
        pytest.fail(str(error), pytrace=False)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--disable-background-networking"],
        )
        yield chromium
        chromium.close()
