"""Models in the page: times to load, to answer, to write and to train, in Chromium.

The built page *Play* is opened from a server of this machine, a second time with what the
browser kept, and as a file. Limits: 0.5 s from the first key to an answer of the GPT, 100
characters a second, 1.5 s for 20 tokens of the BERT and for all that its explorer shows of
them, no task of 100 ms on the thread that the page is drawn by, a minute until a GPT that
is trained in the page is better than pairs of characters.
"""

import argparse
import functools
import http.server
import threading
from contextlib import contextmanager
from pathlib import Path

from lmbook.bench import report
from lmbook.browser import find_chromium
from lmbook.execute.keys import ROOT, build_folder

__all__ = ["main", "over_limits"]

LIMITS = {"gpt_first_s": 0.5, "bert_20_s": 1.5, "explored_s": 1.5, "trained_s": 60}
LIMITS |= {"longest_ms": 100, "explorer_longest_ms": 100}
SLOWEST = 100  # characters a second
PATIENCE = 300_000  # milliseconds

# Each is a function of the page that returns what it measured.
LONGEST = """  let longest = 0;
  new PerformanceObserver(list => {
    for (const { duration } of list.getEntries()) longest = Math.max(longest, duration);
  }).observe({ type: "longtask" }); // none below 50 ms
  const pause = ms => new Promise(resolve => setTimeout(resolve, ms));"""
MODELS = f"""async () => {{
{LONGEST}
  const ids = Array.from({{ length: 20 }}, (_, i) => i + 1), found = {{}};
  const {{ openModel }} = lmcourse.need("client.js");
  const [gpt, bert] = ["gpt", "bert"].map(name => openModel(name, lmcourse));
  const timed = async (name, work) => {{
    const from = performance.now();
    await work();
    found[name] = (performance.now() - from) / 1000;
  }};
  for (const name of ["gpt_first_s", "gpt_next_s"])
    await timed(name, () => gpt.forward(ids, {{ logits_of: [19] }}));
  let written = 0;
  const count = pieces => {{ written += pieces.length; }};
  await timed("written_s", () => gpt.write(ids, {{ count: 400 }}, count));
  found.characters_s = written / found.written_s;
  await timed("bert_load_s", () => bert.load());
  const keep = ["blocks.*", "blocks.*.attention.weights"];
  await timed("bert_20_s", () => bert.forward(ids, {{ keep }}));
  await pause(100);
  return {{ ...found, longest_ms: longest }};
}}"""
EXPLORER = f"""async line => {{
{LONGEST}
  const area = document.querySelector("[data-module=explorer-view] textarea");
  const rows = document.querySelector(".lmx-rows"), before = rows.textContent;
  const isWhole = () => rows.textContent !== before && !rows.textContent.includes("…")
    && document.querySelectorAll(".lmx-near ol:not(:empty)").length === 2;
  const from = performance.now();
  area.value = line;
  area.dispatchEvent(new Event("input"));
  while (!isWhole()) await pause(5);
  const explored_s = (performance.now() - from) / 1000;
  await pause(100);
  return {{ explored_s, explorer_longest_ms: longest }};
}}"""
BETTER = """() => /better than|stopped/.exec(
  document.querySelector("[data-module=training] [role=status]").innerText)"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, *_):
        pass


@contextmanager
def serve(folder: Path):
    """Serve a folder on this machine; gives the address."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@contextmanager
def view(context, address: str, module: str):
    """Open the page and scroll to one of its views; gives the page and the view."""
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{address}/play.html")
    found = page.locator(f"[data-module={module}]")
    found.scroll_into_view_if_needed()
    page.wait_for_selector(f"[data-module={module}][data-state=drawn]")
    yield page, found
    page.close()


def measure(browser, site: Path) -> list[dict]:
    """Return a row a way of opening the page, and what two of its views do as a file."""
    rows, first, other = [], browser.new_context(), browser.new_context()
    with serve(site) as origin:
        ways = [("served", origin, first), ("served again", origin, first)]
        for way, address, context in [*ways, ("a file", site.as_uri(), other)]:
            with view(context, address, "generator-view") as (page, _):
                rows.append({"way": way, **page.evaluate(MODELS)})
    with view(other, site.as_uri(), "explorer-view") as (page, found):
        button = found.get_by_role("button", name="Load the model")
        button.click()
        button.wait_for(state="hidden")
        line = "hope " * 18  # [CLS] and [SEP] are two
        rows.append({"way": "explorer", **page.evaluate(EXPLORER, line)})
    with view(other, site.as_uri(), "training") as (page, found):
        found.get_by_role("button", name="Train it here").click()
        page.wait_for_function(BETTER)
        said = found.get_by_role("status").first.inner_text()
        rows.append({"way": "training", "trained_s": float(said.split()[1])})
    return rows


def over_limits(rows: list[dict]) -> list[str]:
    """Return what breaks the limits."""
    found = []
    for row in rows:
        for name, limit in LIMITS.items():
            if row.get(name, 0) > limit:
                found.append(f"{row['way']}: {name} {row[name]:.2f}, more than {limit}")
        if row.get("characters_s", SLOWEST) < SLOWEST:
            found.append(f"{row['way']}: {row['characters_s']:.0f} characters a second")
    return found


def main(argv: list[str]) -> int:
    """Print the table; succeed if the limits are kept."""
    from playwright.sync_api import sync_playwright

    argparse.ArgumentParser(prog="python -m lmbook.bench play").parse_args(argv)
    site = build_folder(ROOT) / "html"
    if not (site / "play.html").is_file():
        print(f"{site / 'play.html'} is missing: run `make html` first")
        return 1
    with sync_playwright() as playwright:
        start = playwright.chromium.launch
        browser = start(executable_path=find_chromium(), args=["--no-sandbox"])
        rows = measure(browser, site.resolve())
    broken = over_limits(rows)
    *ways, explorer, training = rows
    report(ways, {"benchmark": "play", **explorer, **training, "over_limits": broken})
    return int(bool(broken))
