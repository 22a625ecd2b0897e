"""A page with views that run in it and nothing else, made without building the book."""

from contextlib import contextmanager

from axe_playwright_python.sync_playwright import Axe

import visits
from lmbook.bench.play import write_page
from lmbook.play import modules
from serving import ROOT

PHONE = 390  # pixels


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
