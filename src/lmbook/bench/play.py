"""Models in the page: times to load, to answer, to write and to train, in Chromium.

The built page *Play* is opened from a server of this machine, a second time with what the
browser kept, and as a file. ``longest_ms`` is of the thread that the page is drawn by;
``trained_s`` until a GPT that is trained in the page is better than 2-grams.
"""

import functools
import http.server
import threading
from contextlib import contextmanager
from pathlib import Path
from timeit import timeit

from lmbook.bench import report
from lmbook.browser import find_chromium
from lmbook.execute.keys import ROOT, build_folder

PATIENCE = 600_000  # milliseconds: it ends a hang, of Chromium's start too

# What is run in the page: first what is needed, then what is timed.
PREPARE = """() => {
  window.longest = 0; // of tasks, none below 50 ms
  new PerformanceObserver(list => {
    for (const { duration } of list.getEntries()) longest = Math.max(longest, duration);
  }).observe({ type: "longtask" });
  window.ids = Array.from({ length: 20 }, (_, i) => i + 1);
  const { openModel } = lmcourse.play.client;
  [window.gpt, window.bert] = ["gpt", "bert"].map(name => openModel(name, lmcourse));
}"""
TIMED_CALLS = {
    "gpt_first_s": "gpt.forward(ids, { logits_of: [19] })",
    "written_s": "gpt.write(ids, { count: 400 }, () => {})",  # characters
    "bert_load_s": "bert.load()",
    "bert_20_s": 'bert.forward(ids, { keep: ["blocks.*", "blocks.*.attention.weights"] })',
}
BETTER_OR_STOPPED = """() => /better than|stopped/.exec(
  document.querySelector("[data-module=training] [role=status]").innerText)"""


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Print nothing about a request: the benchmark prints its own lines."""


@contextmanager
def serve(folder: Path):
    """Serve a folder by HTTP on a free port of this machine, while the context is open.

    Parameters
    ----------
    folder : Path
        A built site.

    Yields
    ------
    str
        The address, without a slash at its end.
    """
    handler = functools.partial(QuietHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def opened_view(context, address: str, module: str):
    """Open the page *Play*, scroll to one of its views, and wait until it is drawn.

    The page is closed when the context is left.

    Parameters
    ----------
    context : BrowserContext
        Playwright's.
    address : str
        Of the site, without a slash at its end.
    module : str
        The name of the view's JavaScript module, such as "generator-view".

    Yields
    ------
    Locator
        Playwright's, of the view.
    """
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{address}/play.html")
    view = page.locator(f"[data-module={module}]")
    view.scroll_into_view_if_needed()
    page.wait_for_selector(f"[data-module={module}][data-state=drawn]")
    try:
        yield view
    finally:
        page.close()


def time_models(context, way: str, address: str) -> dict:
    """Return how long the book's GPT and BERT take in the browser, on the page *Play*.

    Parameters
    ----------
    context : BrowserContext
        Playwright's; what it kept of an earlier page is used.
    way : str
        What the row is called, such as "served again".
    address : str
        Of the site, without a slash at its end.

    Returns
    -------
    dict
        A row of the table. ``way``; in seconds ``gpt_first_s``, until the GPT is loaded and
        has answered once, ``written_s``, to write 400 characters with it, ``bert_load_s``,
        to load the BERT, and ``bert_20_s``, to run it on 20 tokens; and ``longest_ms``, how
        long the thread that draws the page was busy at a stretch, at most, meanwhile: 0
        if never 50 milliseconds.
    """
    with opened_view(context, address, "generator-view") as view:
        row = {"way": way}
        page = view.page
        page.evaluate(PREPARE)
        for name, call in TIMED_CALLS.items():
            run = functools.partial(page.evaluate, f"async () => {{ await {call}; }}")
            row[name] = timeit(run, number=1)
        page.wait_for_timeout(100)  # until all tasks are reported
        return row | {"longest_ms": page.evaluate("longest")}


def time_training(context, address: str) -> float:
    """Train a GPT in the page *Play*; return the seconds until it beats a 2-gram model.

    The page itself says when: the seconds are the second word of its status line.
    ``context`` : Playwright's BrowserContext; ``address`` : str, of the site, without a
    slash at its end.

    Raises
    ------
    RuntimeError
        If the training stops before; the message is the status line.
    """
    with opened_view(context, address, "training") as view:
        view.get_by_role("button", name="Train it here").click()
        view.page.wait_for_function(BETTER_OR_STOPPED)
        status = view.get_by_role("status").first.inner_text()
        if "stopped" in status:
            raise RuntimeError(f"{address}: {status}")
        return float(status.split()[1])


def main() -> int:
    """Measure the models of the page *Play* in Chromium; print a table and a line of JSON.

    A row for each way to open the page: from a server of this machine, the same again with
    what the browser kept, and as a file (`time_models` describes the columns). The line has
    ``kept_over_loaded``, how long loading the BERT takes the second time, relative to the
    first, and ``trained_s``, of a GPT that is trained in the page.

    Returns
    -------
    int
        The exit status: 1 if the site was not built, else 0.
    """
    from playwright.sync_api import sync_playwright

    site = (build_folder(ROOT) / "html").resolve()
    if not (site / "play.html").is_file():
        print(f"{site / 'play.html'} is missing: run `make html` first")
        return 1
    with sync_playwright() as playwright, serve(site) as origin:
        chromium = playwright.chromium
        options = {"args": ["--no-sandbox"], "timeout": PATIENCE}
        browser = chromium.launch(executable_path=find_chromium(), **options)
        first, other = browser.new_context(), browser.new_context()
        ways = [time_models(first, way, origin) for way in ("served", "served again")]
        ways.append(time_models(other, "a file", site.as_uri()))
        trained = time_training(other, site.as_uri())
    ratio = ways[1]["bert_load_s"] / ways[0]["bert_load_s"]
    report(ways, {"benchmark": "play", "kept_over_loaded": ratio, "trained_s": trained})
    return 0
