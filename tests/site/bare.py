"""A page with views that run in it and nothing else, made without building the book."""

import json
import shutil
from contextlib import contextmanager
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe

import visits
from lmbook.pages import renderer
from lmbook.play import modules, stores
from lmbook.publish import assets
from serving import ROOT

PHONE = 390  # pixels


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
    staged = {name: stores.stage(name, lib, work or folder / "work") for name in names}
    needed = dict.fromkeys(other for name in texts for other in modules.order(name))
    needed |= dict.fromkeys(name for name in extra if name.endswith(".js"))
    scripts = ["modules.js", *(f"play/{name}" for name in needed)]
    given = {"data-libraries": dict.fromkeys(kinds, scripts), "data-stores": staged}
    attributes = " ".join(f"{name}='{json.dumps(value)}'" for name, value in given.items())
    sheets = [f"play/{name}" for name in extra if name.endswith(".css")]
    sheets += assets.styles(kinds)
    links = "".join(f'<link rel="stylesheet" href="lib/{name}">' for name in sheets)
    drawn = "\n".join(map(renderer.view_html, descriptions))
    (folder / "index.html").write_text(PAGE % (links, drawn, attributes), "utf-8")
    return folder / "index.html"


# A view that hands its tools to whoever drives the page.
PROBE = """lmcourse.define("probe.js", ["client.js"], need => ({
  mount(element, data, context) { window.probe = { ...need("client.js"), context }; },
}));"""


def make_page(folder, views, work):
    """Write ``index.html`` and all that its views load, in the book's colours; its path."""
    scripts = {name: modules.script(name) for name in modules.files(".js")}
    colours = (ROOT / "chapters" / "_static" / "course.css").read_text("utf-8")
    return write_page(folder, views, scripts, {"course.css": colours}, work)


@contextmanager
def opening(browser, address, *, theme="light", **how):
    """Visit a page whose first view is drawn."""
    with visits.visit(browser, address, theme=theme, **how) as visit:
        visit.page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        visit.page.wait_for_selector("[data-state=drawn]", timeout=visits.LOAD)
        yield visit


def is_fit(visit):
    """No wider than a phone, accessible, and without complaints."""
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= PHONE
    options = {"resultTypes": ["violations"], "preload": False}
    found = Axe().run(visit.page, options=options)
    assert [violation["id"] for violation in found.response["violations"]] == []
    visit.clean()
