"""The site in a real browser, with every other host cut off.

Every page of the built site, and a small book that has each view once, with tokens that
could do harm.
"""

import json
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import expect

import pictures
import visits
from lmbook.publish import assets
from serving import DEMO_PAGES, ROOT, SITE

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PHONE, DESK = 360, 1400  # pixels
FEW = ["site:index", "demo:views"]
LABELS = [  # the tokens of the demonstration
    "[CLS]",
    "</script>",
    "<b>bold</b>",
    '"quoted"',
    "&lt;",
    "<img src=x onerror=harm()>",
    "🦋",
    "שלום",
    "##ing",
    "[SEP]",
]


def site_pages():
    """Return the pages of the built site, without their suffix."""
    paths = (path.relative_to(SITE) for path in SITE.rglob("*.html"))
    names = (path for path in paths if path.parts[0] not in {"_static", "_sources"})
    return sorted(path.with_suffix("").as_posix() for path in names)


PAGES = [f"site:{name}" for name in site_pages()]
PAGES += [f"demo:{name}" for name in DEMO_PAGES]
LOOKS = [*product(FEW, ["dark"], [PHONE])]
LOOKS += [
    pytest.param(*look, marks=pytest.mark.steady)
    for look in product(PAGES, ["light", "dark"], [DESK, PHONE])
    if look[1:] != ("light", DESK) and look not in LOOKS
]


@pytest.fixture
def visiting(request, browser):
    """Return a function that visits a page of the site or of the demonstration."""

    def visit(page, **how):
        place, _, name = page.partition(":")
        address = request.getfixturevalue("server" if place == "site" else "demo_server")
        return visits.visit(browser, f"{address}/{name}.html", **how)

    return visit


def test_the_site_is_built(site):
    assert {"index", "search"} <= set(site_pages())


@pytest.mark.parametrize("page", PAGES)
def test_every_page(visiting, page):
    """Drawn on a phone, which is then turned into a desktop; worked through, then read."""
    with visiting(page, width=PHONE) as visit:
        visit.draw()
        does_not_scroll_sideways(visit)
        opens_with_something_to_touch(visit)
        visit.turn(pictures.PHONE)
        pictures.legible(visit)
        visit.turn(DESK)
        is_typeset(visit)
        for root, kind, data in visit.views():
            visits.check(root, kind, data)
            assert pictures.moves_by_wheel(visit.page, root), f"a view {kind} takes it"
            visits.react(visit, root, kind, data)
        visits.scrolling_is_seen(visit.page)
        pictures.legible(visit)
        assert visits.audit(visit.page, "others") == []
        is_legible(visit)
        visit.theme("dark")
        assert visit.page.evaluate(pictures.LIT) == []
        leaves_code_out(visit)
        visit.clean()


@pytest.mark.parametrize(("page", "theme", "width"), LOOKS)
def test_in_other_looks(visiting, page, theme, width):
    with visiting(page, theme=theme, width=width) as visit:
        visit.draw()
        does_not_scroll_sideways(visit)
        assert visits.audit(visit.page, "others") == []
        is_legible(visit)
        visit.clean()


def does_not_scroll_sideways(visit):
    assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


TOPS = """() => [...document.querySelectorAll(
  "article :is(button, input, select, textarea, [role=button])")]
  .filter((control) => control.checkVisibility())
  .map((control) => control.getBoundingClientRect().top + scrollY)"""


def opens_with_something_to_touch(visit):
    """A chapter does, on the first screen of a phone."""
    if visit.page.locator("article .course-line").count():
        assert min(visit.page.evaluate(TOPS)) < visit.page.viewport_size["height"]


def is_typeset(visit):
    """Every equation is; a page without one loads nothing for it."""
    if visit.page.locator(".math").count():
        visit.page.wait_for_function(
            "() => [...document.querySelectorAll('.math')]"
            ".every(e => e.querySelector('mjx-container'))",
            timeout=visits.LOAD,
        )
        assert visit.page.locator("mjx-merror").count() == 0
    else:
        assert not any("mathjax" in address for address in visit.inside)


def leaves_code_out(visit):
    """Read shows no code, and the page says what it leaves out."""
    visit.page.get_by_role("button", name="Read", exact=True).click()
    cells = visit.page.locator(".cell_input")
    assert visit.page.locator(".lm-left-out").count() == bool(cells.count())
    assert visit.page.locator(".cell_input:visible").count() == 0
    does_not_scroll_sideways(visit)


def is_legible(visit):
    visit.page.mouse.move(0, 0)
    for root, _, _ in visit.views():
        assert root.evaluate(visits.CONTRAST) >= 4.5
    assert visits.audit(visit.page, "colours") == []


# --- the demonstration ----------------------------------------------------------------


@pytest.fixture
def views_page(browser, demo_server):
    with visits.visit(browser, f"{demo_server}/views.html") as visit:
        yield visit


def test_views_wait_until_they_are_near(views_page):
    page = views_page.page
    states = [root.get_attribute("data-state") for root, _, _ in views_page.views()]
    assert states[-1] == "waiting"
    assert not any("plotly" in address for address in views_page.inside)
    last = page.locator(".lmc-view").last
    last.scroll_into_view_if_needed()
    expect(last).to_have_attribute("data-state", "drawn", timeout=visits.LOAD)
    libraries = [a.partition("?")[0] for a in views_page.inside if "/lib/" in a]
    assert len(libraries) == len(set(libraries)), "a library was loaded twice"


def test_a_page_without_views_loads_no_library(browser, demo_server):
    with visits.visit(browser, f"{demo_server}/plain.html") as visit:
        visit.page.wait_for_load_state("networkidle")
        scripts = [address for address in visit.inside if ".js" in address]
        assert scripts
        libraries = {a.partition("/lib/")[2].partition("?")[0] for a in scripts}
        assert libraries <= {
            "",
            *assets.SCRIPTS_OF_EVERY_PAGE,
            "ways.js",
            "tasks.js",
            "tasks-table.js",
        }
        visit.clean()


def test_every_page_has_one_viewport(browser, demo_server):
    with visits.visit(browser, f"{demo_server}/plain.html") as visit:
        assert visit.page.locator("meta[name=viewport]").count() == 1


def test_an_address_that_names_nothing_opens_its_page(browser, demo_server):
    with visits.visit(browser, f"{demo_server}/plain.html#100%") as visit:
        visit.page.wait_for_load_state("networkidle")
        visit.clean()


def test_the_site_has_no_script_or_style_that_nothing_loads(demo):
    """Every one is named by a page, or by another script or style sheet."""
    static = demo / "_static"
    files = [path for path in static.rglob("*") if path.suffix in {".js", ".css", ".map"}]
    texts = {path: path.read_text("utf-8") for path in [*files, *demo.glob("*.html")]}
    ours = [
        path for path in files if "mathjax" not in path.parts
    ]  # it loads parts by rules
    ours = [path for path in ours if not path.stem.isdigit()]  # parts of stores
    # The demonstration has not every view, the book has.
    ours = [path for path in ours if (path.parent.name, path.suffix) != ("play", ".css")]

    def is_named(path):
        name = path.name if path.parent.name != "play" else f"play/{path.name}"
        return any(name in text for other, text in texts.items() if other != path)

    assert [str(path.relative_to(static)) for path in ours if not is_named(path)] == []


def test_a_plot_answers_to_pointer_and_keys(views_page):
    page = views_page.page
    views_page.draw()
    root = next(root for root, kind, _ in views_page.views() if kind == "plot")
    root.locator(".nsewdrag").first.hover()
    root.locator(".hoverlayer .hovertext").first.wait_for()
    curve = root.locator(".scatterlayer .js-line").first
    before = curve.get_attribute("d")
    slider = root.locator("g.slider-group")
    slider.press("End")
    expect(curve).not_to_have_attribute("d", before)
    expect(slider).to_have_attribute("aria-valuetext", "3")
    root.locator(".legendtoggle").first.press("Enter")
    page.wait_for_function(
        "p => p._fullData[0].visible === 'legendonly'",
        arg=root.locator(".js-plotly-plot").element_handle(),
    )
    views_page.clean()


def test_the_theme_switch_redraws_open_views(views_page):
    views_page.draw()
    root, data = next((r, d) for r, k, d in views_page.views() if k == "model_view")
    root.locator("rect[role=button]").nth(1).click()
    plot = next(root for root, kind, _ in views_page.views() if kind == "plot")
    ink = "p => p._fullLayout.font.color"
    light = plot.locator(".js-plotly-plot").evaluate(ink)
    views_page.theme("dark")
    heading = root.locator("text.detail").text_content()
    assert heading == f"Layer {data['layers'][0]}, Head {data['heads'][1]}"
    assert plot.locator(".js-plotly-plot").evaluate(ink) != light
    heads = views_page.page.locator(".lmc-attention-heads .lmc-canvas").first
    assert heads.evaluate("e => getComputedStyle(e).filter") != "none"


def test_works_from_a_folder_and_tokens_show_as_themselves(browser, demo):
    """Opened as a file, with no server: everything is drawn, nothing is fetched."""
    address = (demo / "views.html").as_uri()
    with visits.visit(browser, address) as visit:
        visit.draw()
        for root, kind, data in visit.views():
            visits.check(root, kind, data)
            if kind != "plot":
                assert root.locator("b, i:not(.play-bar i), img").count() == 0
            elif data["figure"]["data"][0]["type"] == "bar":
                assert root.locator(".xaxislayer-above text").all_text_contents() == LABELS
        visit.page.wait_for_selector("mjx-container")
        visit.clean()


def test_says_something_without_scripts(browser, demo_server):
    with visits.visit(browser, f"{demo_server}/views.html", javascript=False) as visit:
        stored = visit.page.locator(".lmc-training .lmc-canvas")
        assert "the GPT <b>of this book</b>" in stored.inner_text()
        poems = visit.page.locator(".lmc-poems")  # a state of its own
        assert poems.inner_text().strip()
        others = ".lmc-view:not(.lmc-training, .lmc-poems)"
        roots = visit.page.locator(others)
        assert roots.count() == 10
        for index in range(roots.count()):
            root = roots.nth(index)
            assert root.locator(".lmc-alt").first.is_visible()
            root.locator("summary").click()
            assert root.locator("table").first.is_visible()
            assert root.locator("tbody tr").count() > 1


def test_a_library_that_does_not_arrive_is_told(browser, demo_server):
    with visits.visit(browser, f"{demo_server}/views.html", wait=False) as visit:
        visit.page.route("**/circuitsvis/**", lambda route: route.abort())
        root = visit.page.locator(".lmc-tokens").first
        root.scroll_into_view_if_needed()
        expect(root).to_have_attribute("data-state", "failed", timeout=visits.LOAD)
        assert "could not load" in root.locator(".lmc-alt").text_content()
        assert root.locator("table").is_visible()


def test_the_notebook_is_downloaded_and_the_source_shown(browser, server):
    page = browser.new_page(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    page.set_default_timeout(visits.LOAD)
    page.goto(f"{server}/attention.html")
    menu = page.locator(".dropdown", has=page.locator('a[href^="notebooks/"]'))
    menu.locator("button").click()
    with page.expect_download() as download:
        menu.get_by_text("Download the notebook").click()
    assert download.value.suggested_filename == "attention.ipynb"
    downloaded = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert downloaded == json.loads((SITE / "notebooks/attention.ipynb").read_text("utf-8"))
    source = menu.locator("a", has_text="View the source").get_attribute("href")
    shown = page.request.get(f"{server}/{source}")
    assert shown.text() == (ROOT / "chapters/attention.md").read_text(encoding="utf-8")
    page.close()
