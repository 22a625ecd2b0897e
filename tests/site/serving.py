"""The built site and a server for it, for the tests that need them."""

import functools
import http.server
import threading
from pathlib import Path

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
