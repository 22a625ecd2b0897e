"""What a reader's first visit costs: bytes, requests, time until the first view is drawn.

Each page of the built site is opened in headless Chromium with an empty cache, from a
server that does what static hosts do (gzip, cacheable for ten minutes), over an emulated
line. The page is scrolled to its end, so that everything lazy is counted. Then the pages
are opened once more, one after the other with a shared cache.
"""

import argparse
import functools
import gzip
import http.server
import threading
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from lmbook.bench import report

__all__ = ["cost", "main", "serve"]

SITE = Path(__file__).parents[3] / "_build" / "html"
PAGE_LIMIT, HTML_LIMIT = 2_500_000, 400_000  # bytes, gzip
MEGABITS, LATENCY = 10, 40  # the emulated line: Mbit/s, milliseconds
SQUEEZED = {".html", ".js", ".css", ".json", ".svg", ".txt"}


class Host(http.server.SimpleHTTPRequestHandler):
    """Serves a folder gzipped, as GitHub Pages does."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = Path(self.translate_path(urlsplit(self.path).path))
        if not path.is_file():
            self.send_error(404)
            return
        body = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Cache-Control", "max-age=600")
        if path.suffix in SQUEEZED:
            body = squeeze(path)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@functools.cache
def squeeze(path: Path) -> bytes:
    """Return a file as gzip; the time stamp is left out."""
    return gzip.compress(path.read_bytes(), mtime=0)


@contextmanager
def serve(folder: Path):
    """Serve a folder on this machine; gives the address."""
    handler = functools.partial(Host, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


def _watch(page) -> dict:
    """Record the bytes that each of a page's requests brings over the line."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send(
        "Network.emulateNetworkConditions",
        {
            "offline": False,
            "latency": LATENCY,
            "downloadThroughput": MEGABITS * 1e6 / 8,
            "uploadThroughput": MEGABITS * 1e6 / 8,
        },
    )
    addresses, brought = {}, {}

    def asked(event):
        if event["request"]["url"].startswith("http"):
            addresses[event["requestId"]] = event["request"]["url"]

    def finished(event):
        address = addresses.get(event["requestId"])
        if address:
            brought[address] = brought.get(address, 0) + event["encodedDataLength"]

    session.on("Network.requestWillBeSent", asked)
    session.on("Network.loadingFinished", finished)
    return brought


FIRST = "() => performance.getEntriesByName('lmcourse-view')[0]?.startTime ?? null"
GO_TO_FIRST = """addEventListener("DOMContentLoaded", () =>
  document.querySelector(".lmc-view")?.scrollIntoView());"""
OPEN_ALL = "() => document.querySelectorAll('details').forEach(d => d.open = true)"
SETTLED = "e => ['drawn', 'failed'].includes(e.dataset.state)"
PATIENCE = 120_000  # milliseconds


def _draw(page) -> tuple[int, float | None]:
    """Draw every view; return their count and when the first was there, in seconds."""
    views = page.locator(".lmc-view")
    if views.count():
        page.wait_for_function(f"({FIRST})() !== null", timeout=PATIENCE)
    page.evaluate(OPEN_ALL)
    for index in range(views.count()):
        root = views.nth(index).element_handle()
        root.evaluate("e => e.scrollIntoView()")
        page.wait_for_function(SETTLED, arg=root, timeout=PATIENCE)
    page.wait_for_load_state("networkidle", timeout=PATIENCE)
    first = page.evaluate(FIRST)
    return views.count(), None if first is None else first / 1000


def cost(context, address: str) -> dict:
    """Open one page, draw all of it, and return what it cost.

    Returns
    -------
    dict
        ``bytes`` by address (none from the cache), ``views``, and ``first_view``: seconds
        from the click until the first view is drawn, None without views.
    """
    page = context.new_page()
    brought = _watch(page)
    page.add_init_script(GO_TO_FIRST)
    page.goto(address, wait_until="load", timeout=PATIENCE)
    views, first = _draw(page)
    page.close()
    return {"bytes": brought, "views": views, "first_view": first}


def _row(name: str, cold: dict, warm: dict, html: int) -> dict:
    """Return a line of the table."""
    first = cold["first_view"]
    return {
        "page": name,
        "html_kb": html / 1000,
        "cold_kb": sum(cold["bytes"].values()) / 1000,
        "requests": len(cold["bytes"]),
        "views": cold["views"],
        "first_view_s": "-" if first is None else round(first, 2),
        "warm_kb": sum(warm["bytes"].values()) / 1000,
        "warm_libraries_kb": sum(n for a, n in warm["bytes"].items() if "/lib/" in a)
        / 1000,
    }


def measure(browser, site: Path, names: list[str]) -> list[dict]:
    """Return a row a page: cold, each in a context of its own; then warm, in one."""
    colds, rows = {}, []
    with serve(site) as origin:
        for name in names:
            context = browser.new_context()
            colds[name] = cost(context, f"{origin}/{name}")
            context.close()
        shared = browser.new_context()
        for name in names:  # fills the cache
            cost(shared, f"{origin}/{name}")
        for name in names:
            warm = cost(shared, f"{origin}/{name}")
            rows.append(_row(name, colds[name], warm, len(squeeze(site / name))))
        shared.close()
    return rows


def complaints(rows: list[dict]) -> list[str]:
    """Return what breaks the limits."""
    found = []
    for row in rows:
        if row["cold_kb"] * 1000 > PAGE_LIMIT:
            found.append(f"{row['page']} brings {row['cold_kb']:.0f} kB")
        if row["html_kb"] * 1000 > HTML_LIMIT:
            found.append(f"{row['page']} is {row['html_kb']:.0f} kB of HTML")
        if row["warm_libraries_kb"] > 0:
            found.append(f"{row['page']} brings libraries that were there")
    return found


def pages(site: Path) -> list[str]:
    """Return the addresses of a built site's pages, below its folder."""
    found = (path.relative_to(site) for path in site.rglob("*.html"))
    return sorted(p.as_posix() for p in found if p.parts[0] not in {"_static", "_sources"})


def main(argv: list[str]) -> int:
    """Print the table; succeed if every page keeps the limits."""
    from playwright.sync_api import sync_playwright

    from lmbook.browser import find_chromium

    parser = argparse.ArgumentParser(prog="python -m lmbook.bench site")
    parser.add_argument("--site", type=Path, default=SITE, help="a built site")
    site = parser.parse_args(argv).site
    names = pages(site)
    if not names:
        print(f"{site} has no pages: run `make html` first")
        return 1
    executable = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox"]
        )
        rows = measure(browser, site, names)
    broken = complaints(rows)
    times = [row["first_view_s"] for row in rows if row["first_view_s"] != "-"]
    summary = {
        "benchmark": "site",
        "pages": len(rows),
        "line_mbit_s": MEGABITS,
        "largest_cold_kb": max(row["cold_kb"] for row in rows),
        "largest_html_kb": max(row["html_kb"] for row in rows),
        "slowest_first_view_s": max(times, default=None),
        "complaints": broken,
    }
    report(rows, summary)
    return 1 if broken else 0
