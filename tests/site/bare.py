"""A page with a view that runs in it and nothing else, made without building the book."""

import atexit
import json
import re
import shutil
import tempfile
from contextlib import contextmanager
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

import visits
from lmbook.execute.keys import build_folder
from lmbook.pages import renderer
from lmbook.play import stores
from lmbook.publish import assets, bundles
from serving import ROOT

PHONE = 390  # pixels
PAGE = """<!doctype html>
<html lang="en" data-theme="light"><meta charset="utf-8"><title>Play</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
{links}
<style>body {{ color: var(--pst-color-text-base); margin: 1rem;
background: var(--pst-color-background); font-family: system-ui, sans-serif }}</style>
<main><h1>Play</h1>
{views}
</main><script>window.lmcourse = {{ reveal: () => false }}; // nothing is hidden here
</script>{scripts}<script defer src="lib/views.js" {given}></script></html>
"""


@cache
def bundled():
    """Return a folder with the site's scripts and style sheets, as a build makes them."""
    out = Path(tempfile.mkdtemp(prefix="bundled-"))
    atexit.register(shutil.rmtree, out, ignore_errors=True)
    bundles.write_bundles(build_folder(ROOT) / "npm", out)
    return out


def make_page(folder, shown, own=None, *, views_at_once=False):
    """Write ``index.html`` and all that its views load, staged as a build does.

    Parameters
    ----------
    folder : Path
    shown : list of lmcourse.views.View
    own : dict of str to callable, optional
        Stores that this page has instead of the site's.
    views_at_once : bool
        Load the views' script before a view is near, for tests that ask it themselves.
    """
    lib, own = folder / "lib", own or {}
    views = [view.description() for view in shown]
    libraries = {view["kind"]: assets.view_scripts(view["kind"]) for view in views}
    shutil.copytree(bundled(), lib, dirs_exist_ok=True)
    texts = dict.fromkeys({*chain(*libraries.values())} - {assets.VIEWS_SCRIPT}, "")
    course = (ROOT / "chapters/_static/course.css").read_text("utf-8")
    texts["course.css"] = re.sub(r"@import .*", "", course)  # of the text face
    for name, text in texts.items():
        (lib / name).parent.mkdir(parents=True, exist_ok=True)
        (lib / name).write_text(text, "utf-8")
    staged = {}
    with pytest.MonkeyPatch.context() as patch:
        for name in {name for view in views for name in view["stores"]} | set(own):
            place = folder / "work" if name in own else build_folder(ROOT) / "play"
            patch.setitem(stores.STORES, name, own.get(name, stores.STORES[name]))
            staged[name] = stores.stage(name, lib, place)
    now = [assets.VIEWS_SCRIPT] if views_at_once else []
    sheets = ["course.css", "drawings.css", *assets.view_styles([*libraries])]
    given = {"data-libraries": libraries, "data-stores": staged}
    page = PAGE.format(
        links="".join(f'<link rel="stylesheet" href="lib/{name}">' for name in sheets),
        views="\n".join(map(renderer.view_html, views)),
        scripts="".join(
            f'<script defer src="lib/{name}"></script>'
            for name in dict.fromkeys([*assets.SCRIPTS_OF_EVERY_PAGE, *now])
        ),
        given=" ".join(f"{name}='{json.dumps(value)}'" for name, value in given.items()),
    )
    (folder / "index.html").write_text(page, "utf-8")
    return folder / "index.html"


@contextmanager
def opening(browser, address, *, theme="light", **how):
    """Visit a page whose first view is drawn."""
    with visits.visit(browser, address, theme=theme, **how) as visit:
        visit.page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        visit.page.wait_for_selector("[data-state=drawn]", timeout=visits.LOAD)
        yield visit


def is_fit(visit, *audits):
    """No wider than a phone, accessible by some of axe's rules, and without complaints."""
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= PHONE
    assert visits.audit(visit.page, *audits) == []
    visit.clean()


both_ways = pytest.mark.parametrize("opened", ["http", "file"], indirect=True)
served = pytest.mark.parametrize("opened", ["http"], indirect=True)
