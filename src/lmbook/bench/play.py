"""Models in the page: bytes of script, times to load, to answer and to write, in Chromium.

A page with a view of every model is written as a build stages it, and opened from a server
of this machine, a second time with what the browser kept, and as a file. Limits: 80 kB of
script, 0.5 s from the first key to an answer of the GPT, 100 characters a second, 1.5 s for
20 tokens of the BERT and for all that its explorer shows of them, no task of 100 ms on the
thread that the page is drawn by, a minute until a GPT that is trained in the page is better
than pairs of characters.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from lmbook.bench import report
from lmbook.bench.site import serve, squeeze
from lmbook.pages.renderer import DRAWERS, view_html
from lmbook.play import modules
from lmbook.play import stores as play
from lmbook.publish import assets, npm
from lmcourse import views
from lmcourse.data import load_corpus
from lmcourse.models import load_bert

__all__ = ["main", "write_page"]

LIMITS = {"gpt_first_s": 0.5, "bert_20_s": 1.5, "explored_s": 1.5}
LIMITS |= {"longest_ms": 100, "explorer_longest_ms": 100, "trained_s": 60}
SCRIPT = 80  # kB
SLOWEST = 100  # characters a second
TOKENS, CHARACTERS = 20, 400


PAGE = """<!doctype html>
<html lang="en" data-theme="light"><meta charset="utf-8"><title>Play</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
%s
<style>body { color: var(--pst-color-text-base); margin: 1rem;
background: var(--pst-color-background); font-family: system-ui, sans-serif }</style>
<main><h1>Play</h1>
%s
</main><script defer src="lib/views.js" %s></script></html>
"""


def write_page(folder: Path, shown, texts: dict[str, str], extra=None, work=None) -> Path:
    """Write a page with views, and stage its scripts, styles and stores as a build does.

    Parameters
    ----------
    folder : Path
        Where ``index.html`` and ``lib`` go.
    shown : list of lmcourse.views.View
        Whose modules need no libraries.
    texts : dict of str to str
        From `modules.scripts`.
    extra : dict of str to str, optional
        Modules and style sheets that are no part of the site's, likewise.
    work : Path, optional
        Where stores are kept once made; default in the folder.

    Returns
    -------
    Path
        Of ``index.html``.
    """
    lib, extra = folder / "lib", extra or {}
    (lib / "play").mkdir(parents=True)
    for name in ("modules.js", "views.js", "views.css", "drawings.css"):
        shutil.copy(assets.OWN / name, lib)
    sheets = {name: path.read_text("utf-8") for name, path in modules.files(".css").items()}
    for name, text in {**sheets, **texts, **extra}.items():
        (lib / "play" / name).write_text(text, "utf-8")
    descriptions = [view.description() for view in shown]
    kinds = [view["kind"] for view in descriptions]
    names = {name for view in descriptions for name in view["stores"]}
    stores = {name: play.stage(name, lib, work or folder / "work") for name in names}
    needed = dict.fromkeys(other for name in texts for other in modules.order(name))
    needed |= dict.fromkeys(name for name in extra if name.endswith(".js"))
    scripts = ["modules.js", *(f"play/{name}" for name in needed)]
    given = {"data-libraries": dict.fromkeys(kinds, scripts), "data-stores": stores}
    attributes = " ".join(f"{name}='{json.dumps(value)}'" for name, value in given.items())
    own = [f"play/{name}" for name in extra if name.endswith(".css")]
    links = [
        f'<link rel="stylesheet" href="lib/{x}">' for x in (*own, *assets.styles(kinds))
    ]
    drawn = "\n".join(map(view_html, descriptions))
    (folder / "index.html").write_text(PAGE % ("".join(links), drawn, attributes), "utf-8")
    return folder / "index.html"


# A view that hands its tools to whoever drives the page.
PROBE = """lmcourse.define("probe.js", ["client.js"], need => ({
  mount(element, data, context) { window.probe = { ...need("client.js"), context }; },
}));"""

MEASURE = """async ([tokens, characters]) => {
  const found = {}, ids = Array.from({ length: tokens }, (_, i) => i + 1);
  let longest = 0, from;
  const watch = new PerformanceObserver(list => {
    for (const { duration } of list.getEntries()) longest = Math.max(longest, duration);
  });
  watch.observe({ type: "longtask" });
  const since = () => (performance.now() - from) / 1000;
  const start = () => (from = performance.now());
  const [gpt, bert] = ["gpt", "bert"].map(n => probe.openModel(n, probe.context));
  start(); await gpt.forward(ids, { logits_of: [tokens - 1] }); found.gpt_first_s = since();
  start(); await gpt.forward(ids, { logits_of: [tokens - 1] }); found.gpt_next_s = since();
  let written = 0;
  start();
  await gpt.write(ids, { count: characters }, pieces => { written += pieces.length; });
  found.characters_s = written / since();
  start(); await bert.load(); found.bert_load_s = since();
  const keep = ["blocks.*", "blocks.*.attention.weights"];
  start(); await bert.forward(ids, { keep }); found.bert_20_s = since();
  await new Promise(resolve => setTimeout(resolve, 100));
  found.longest_ms = longest; // 0: none above 50
  return found;
}"""
EXPLORE = """async line => {
  const area = document.querySelector("[data-module=explorer-view] textarea");
  const rows = document.querySelector(".lmx-rows"), before = rows.textContent;
  const isWhole = () => rows.textContent !== before && !rows.textContent.includes("…")
    && document.querySelectorAll(".lmx-near ol:not(:empty)").length === 2;
  let longest = 0;
  new PerformanceObserver(list => {
    for (const { duration } of list.getEntries()) longest = Math.max(longest, duration);
  }).observe({ type: "longtask" });
  const from = performance.now();
  area.value = line;
  area.dispatchEvent(new Event("input"));
  while (!isWhole()) await new Promise(resolve => setTimeout(resolve, 5));
  const explored_s = (performance.now() - from) / 1000;
  await new Promise(resolve => setTimeout(resolve, 100));
  return { explored_s, explorer_longest_ms: longest };
}"""
BETTER = (
    "() => /better than|stopped/.exec(document.querySelector('[role=status]').innerText)"
)


def _explore(browser, folder: Path) -> dict:
    """Return how long it takes from a line of 20 tokens to all pictures of a head."""
    page = browser.new_page()
    page.goto(f"{folder.as_uri()}/index.html")
    page.locator("[data-module=explorer-view]").scroll_into_view_if_needed()
    button = page.get_by_role("button", name="Load the model")
    button.click()
    button.wait_for(state="hidden", timeout=120_000)
    found = page.evaluate(EXPLORE, "hope " * (TOKENS - 2))  # [CLS] and [SEP] are two
    page.close()
    return found


def _train(browser, folder: Path) -> dict:
    """Return how long a GPT is trained in the page until it is better than pairs."""
    page = browser.new_page()
    page.goto(f"{folder.as_uri()}/index.html")
    page.get_by_role("button", name="Train it here").click()
    page.wait_for_function(BETTER, timeout=300_000)
    said = page.get_by_role("status").first.inner_text()
    page.close()
    return {"trained_s": float(said.split()[1])}


def _measure(browser, folder: Path) -> list[dict]:
    """Return a row a way of opening the page."""
    rows, first = [], browser.new_context()
    for path in folder.rglob("*.js"):
        squeeze(path)  # a host has done so before anybody asks
    with serve(folder) as origin:
        ways = [("served", origin, first), ("served again", origin, first)]
        ways += [("a file", folder.as_uri(), browser.new_context())]
        for way, address, context in ways:
            page = context.new_page()
            page.goto(f"{address}/index.html")
            page.wait_for_function("() => window.probe")
            rows.append({"way": way, **page.evaluate(MEASURE, [TOKENS, CHARACTERS])})
            page.close()
    return rows


def script_kb(lib: Path) -> float:
    """Return how large all scripts of play are together, views included.

    Without those that draw with a library, or what is stored.
    """
    others = {"probe", "keys", "palette", *(module for module, *_ in DRAWERS.values())}
    own = [*(lib / "play").glob("*.js"), lib / "modules.js"]
    return sum(path.stat().st_size for path in own if path.stem not in others) / 1000


def complaints(rows: list[dict], script: float) -> list[str]:
    """Return what breaks the limits."""
    found = [f"{script:.1f} kB of script"] * (script > SCRIPT)
    for row in rows:
        for name, limit in LIMITS.items():
            if row.get(name, 0) > limit:
                found.append(f"{row['way']}: {name} {row[name]:.2f}, more than {limit}")
        if row.get("characters_s", SLOWEST) < SLOWEST:
            found.append(f"{row['way']}: {row['characters_s']:.0f} characters a second")
    return found


def _make(folder: Path) -> None:
    """Write the page that is measured."""
    probe = views.View("probe", {}, "", alt="Measured.", stores=["bert", "gpt"])
    training = views.training(load_corpus("sonnets"), alt="Measured.")
    explorer = views.bert_explorer("hope and fear", *load_bert(device="cpu"))
    npm.install(folder / "npm", folder / "unused")
    texts = modules.scripts(folder / "npm")
    write_page(folder, [probe, training, explorer], texts, {"probe.js": PROBE})


def main(argv: list[str]) -> int:
    """Print the table; succeed if the limits are kept."""
    from playwright.sync_api import sync_playwright

    from lmbook.browser import find_chromium

    argparse.ArgumentParser(prog="python -m lmbook.bench play").parse_args(argv)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        folder, chromium = Path(place), find_chromium()
        _make(folder)
        start = playwright.chromium.launch
        browser = start(executable_path=chromium, args=["--no-sandbox"])
        rows, explored = _measure(browser, folder), _explore(browser, folder)
        trained = _train(browser, folder)
        script = script_kb(folder / "lib")
        abouts = {n: folder / "lib" / "play" / n / "about.json" for n in ("gpt", "bert")}
        stores = {name: json.loads(path.read_text()) for name, path in abouts.items()}
    more = [{"way": "training", **trained}, {"way": "explorer", **explored}]
    broken = complaints([*rows, *more], script)
    sizes = {f"{name}_mb": about["bytes"] / 1e6 for name, about in stores.items()}
    summary = {"benchmark": "play", "script_kb": script, **sizes, **explored, **trained}
    report(rows, summary | {"complaints": broken})
    return 1 if broken else 0
