"""The demonstration on paper: what stands there, in both ways, and what does not."""

import io
from contextlib import closing
from functools import cache

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Error
from pypdf import PdfReader

from lmbook.publish import paper
from lmbook.publish.paper import page_for_paper, print_pages

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TITLE = "Poems & <letters>"
TITLES = {"index": "Demonstration", "ways": "Two ways", "proofs": "Proofs and folds"}
TITLES |= {"tasks": "Tasks and drawings", "views": "Every view"}
# Way and fold → the pages that are printed so and in no other form.
FURTHER_PAGES = {("read", "open"): ["views"], ("work", "out"): []}
WORK = ["sum_of_two = 1 + 1", "Prose about the quokka", "A task that needs code"]
FOLDED = ["It is judged.", "Prose in the fold", "that would be the mean", "Right. "]
BOTH = ["Second paragraph that both ways show.", "printed, for both", "A task for both"]
BUTTONS = ["Show the code", "Hide the code", "Show them", "Left out here", "Click to show"]
BUTTONS += [
    "Train it here",
    "Click a head",
    "double-click",
    "Table: ",
    "Drawing this needs",
]


def words(text):
    """A text's words, whatever its lines."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def printed(browser, demo):
    """Return a book of some pages, and the words of each of its sheets."""

    @cache
    def print_book(*how):
        book = [
            ("", ["index"]),
            ("A <part>", ["ways", "proofs", "tasks", *FURTHER_PAGES[how]]),
        ]
        pdf = print_pages(browser, demo, TITLE, book, *how)
        reader = PdfReader(io.BytesIO(pdf))
        return reader, [words(sheet.extract_text()) for sheet in reader.pages]

    return print_book


@pytest.mark.parametrize("how", FURTHER_PAGES)
def test_each_way_has_what_belongs_to_it(printed, how):
    whole, (way, folded) = " ".join(printed(*how)[1]), how
    assert [text for text in BOTH if text not in whole] == []
    assert {text in whole for text in WORK} == {way == "work"}
    assert {text in whole for text in FOLDED} == {folded == "open"}
    assert "It is written." not in whole  # folded, and for work


@pytest.mark.parametrize("how", FURTHER_PAGES)
def test_nothing_stands_there_to_press(printed, how):
    reader, texts = printed(*how)
    assert [word for word in BUTTONS if word in " ".join(texts)] == []
    lines = [line for page in reader.pages for line in page.extract_text().split("\n")]
    assert not {"Read", "Work", "¶", "#"} & {*map(str.strip, lines)}


def marks(outline, depth=0):
    """Return the bookmarks with their depths, in order."""
    for mark in outline:
        yield from marks(mark, depth + 1) if isinstance(mark, list) else [(depth, mark)]


def test_contents_bookmarks_and_sheets_agree(printed):
    reader, texts = printed("work", "out")
    assert reader.metadata.title == TITLE
    place = reader.get_destination_page_number
    bookmarks = {mark.title: (depth, place(mark)) for depth, mark in marks(reader.outline)}
    assert bookmarks["A <part>"][0] == bookmarks["Contents"][0] == 0
    assert bookmarks["A section"][0] == 2  # of the page "Proofs and folds"
    contents = texts[bookmarks["Contents"][1]]
    for name in ("index", "ways", "proofs", "tasks"):
        (depth, sheet), title = bookmarks[TITLES[name]], TITLES[name]
        assert depth == (name != "index")  # which has no part
        assert title in texts[sheet]
        assert f"{title} {sheet + 1}" in contents


def test_sheets_have_numbers_and_a_size(printed):
    reader, texts = printed("read", "open")
    assert texts[0].startswith("Demonstration")
    assert texts[1].startswith("2 Contents")
    for number, text in enumerate(texts[2:], 3):  # each has its page's title above the text
        assert text.startswith(tuple(f"{title} {number} " for title in TITLES.values()))
    assert {tuple(map(round, page.mediabox[2:])) for page in reader.pages} == {(595, 842)}


@pytest.mark.parametrize("how", FURTHER_PAGES)
def test_links_lead_to_what_is_there(printed, how):
    reader, _ = printed(*how)
    links = [a.get_object() for page in reader.pages for a in page.get("/Annots", [])]
    inside = [str(a["/Dest"]) for a in links if "/Dest" in a]
    assert {name.lstrip("/") for name in inside} >= {"tasks", "tasks.ex-tasks-mean"}
    assert ("/proofs.demo-fold" in inside) == (how[1] == "open")
    assert {*inside} <= {*reader.named_destinations}
    outside = [a["/A"]["/URI"] for a in links if "/Dest" not in a]
    assert not [address for address in outside if not address.startswith("http")]


@pytest.mark.parametrize("folded", ["out", "open"])
def test_what_was_found_is_listed_with_its_verdicts(browser, demo, folded):
    """Folded out of sight is what a claim was held against, and not the claim."""
    book = [("", ["index"]), ("A part", ["findings"])]
    pdf = print_pages(browser, demo, TITLE, book, "read", folded)
    reader = PdfReader(io.BytesIO(pdf))
    whole = words(" ".join(sheet.extract_text() for sheet in reader.pages))
    page = BeautifulSoup((demo / "findings.html").read_text("utf-8"), "html.parser")
    claims = page.select(".lm-claim")
    assert claims
    for claim in claims:
        for part in (".lm-sentence", ".lm-mark"):
            assert words(claim.select_one(part).get_text()) in whole
    assert ("Where it failed" in whole) == (folded == "open")
    assert "by verdict" not in whole  # a button


def test_views_are_there_as_they_were_drawn(printed):
    reader, texts = printed("read", "open")
    whole = " ".join(texts)
    assert "k = 1" in whole
    assert "k = 1 1" not in whole  # a slider's value, not its steps
    assert "<b>bold</b>” attends to" in whole  # which the script of the view says
    on = {text: sheet for sheet, text in zip(reader.pages, texts, strict=True)}
    lines = next(on[text] for text in on if "Every head of three layers" in text)
    drawn = lines.get_contents().get_data()
    assert drawn.count(b" l\nS") > 3 * 12 * 10 * 10 / 2  # a head draws a line a pair
    space = next(on[text] for text in on if "Points in space" in text)
    pictures = [picture.image.convert("RGB") for picture in space.images]
    assert max(len({*p.get_flattened_data()}) for p in pictures) > 20  # not blank


DRAWING = """<!doctype html><title>A page</title><article class="bd-article"><h1>One</h1>
<svg viewBox="0 0 9 9" width="90" role="img" aria-labelledby="bee-title bee-desc">
<title id="bee-title">A bee.</title><desc id="bee-desc">It sits on clover.</desc>
<rect width="5" height="5" /></svg></article>"""


def alternatives(node):
    """Yield the alternative texts in a part of a PDF's structure."""
    node = node.get_object()
    if isinstance(node, dict):
        yield from [str(node["/Alt"])] if "/Alt" in node else []
        node = [node["/K"]] if "/K" in node else []
    for each in node if isinstance(node, list) else []:
        yield from alternatives(each)


def test_a_drawing_has_its_title_and_its_description(browser, tmp_path):
    """For who hears the book. Ids are others there, and what names them follows."""
    (tmp_path / "index.html").write_text(DRAWING)
    pdf = print_pages(browser, tmp_path, TITLE, [("", ["index"])], "read", "out")
    root = PdfReader(io.BytesIO(pdf)).trailer["/Root"]
    assert [*alternatives(root["/StructTreeRoot"])] == ["A bee. It sits on clover."]


NEVER = """<!doctype html><title>A page</title><article class="bd-article"><h1>One</h1>
<div class="lmc-view" aria-label="own view: a model answers" data-state="{}"></div>
</article>"""


@pytest.mark.parametrize(
    ("state", "time"), [("loading", " in 0.1 seconds"), ("failed", "")]
)
def test_a_view_that_is_never_drawn_ends_the_printing_and_is_named(
    browser, tmp_path, monkeypatch, state, time
):
    (tmp_path / "never.html").write_text(NEVER.format(state))
    monkeypatch.setattr(paper, "DRAW_PATIENCE", 100)
    message = f"page never was not drawn{time}: own view: a model answers"
    with pytest.raises(Error, match=message):
        print_pages(browser, tmp_path, TITLE, [("", ["never"])], "read", "out")


FORMULAS = """<!doctype html><title>A page</title><article class="bd-article"><h1>One</h1>
<p id="formula">plain</p></article>
<script>
  const promise = new Promise((done) => %s).then(() => {
    document.querySelector("#formula").textContent = "typeset";
  });
  window.MathJax = { startup: { promise } };
</script>"""


def test_formulas_that_are_never_set_end_the_printing_and_the_page_is_named(
    browser, tmp_path, monkeypatch
):
    (tmp_path / "never.html").write_text(FORMULAS % "{}")  # it does nothing
    monkeypatch.setattr(paper, "DRAW_PATIENCE", 100)
    message = (
        "formulas of the page never were not set in 0.1 seconds: print again; .*MathJax"
    )
    with pytest.raises(Error, match=message):
        print_pages(browser, tmp_path, TITLE, [("", ["never"])], "read", "out")


def test_formulas_that_are_set_late_are_waited_for(browser, tmp_path):
    (tmp_path / "late.html").write_text(FORMULAS % "setTimeout(done, 2000)")
    with closing(browser.new_context()) as context:
        html = page_for_paper(context, f"{tmp_path.as_uri()}/", "late", "out")["html"]
    assert "typeset" in html


PLOT = """<!doctype html><title>A page</title><article class="bd-article"><h1>One</h1>
<div class="js-plotly-plot" style="width: 1px"></div></article>
<script>
  const plot = document.querySelector(".js-plotly-plot");
  const grow = () => {
    plot.style.width = `${parseInt(plot.style.width) + 1}px`;
    if (%s) requestAnimationFrame(grow);
  };
  window.MathJax = { startup: { promise: Promise.resolve().then(grow) } };
</script>"""


def test_a_plot_is_printed_as_soon_as_it_has_found_its_place(browser, tmp_path):
    """However many frames that takes: here 120."""
    (tmp_path / "moves.html").write_text(PLOT % "plot.clientWidth < 120")
    with closing(browser.new_context()) as context:
        html = page_for_paper(context, f"{tmp_path.as_uri()}/", "moves", "out")["html"]
    assert "width: 120px" in html


def test_a_plot_that_never_does_ends_the_printing_and_the_page_is_named(
    browser, tmp_path, monkeypatch
):
    (tmp_path / "moves.html").write_text(PLOT % "true")
    monkeypatch.setattr(paper, "DRAW_PATIENCE", 100)
    message = "plots of the page moves did not find their places in 0.1 seconds: .*Plotly"
    with pytest.raises(Error, match=message):
        print_pages(browser, tmp_path, TITLE, [("", ["moves"])], "read", "out")


LINKS = """<!doctype html><title>A page</title><article class="bd-article"><h1>One</h1>
<p><a id="up" href="other.html#bee">A bee</a> <a id="down" href="#up">Up</a>
<a id="out" href="https://example.org/#bee">Out</a> <a id="bare">No link</a></p>
</article>"""


def test_a_link_that_is_led_to_is_its_pages_own(browser, tmp_path):
    """Of the ids of all pages none may be there twice."""
    (tmp_path / "one.html").write_text(LINKS)
    site = f"{tmp_path.as_uri()}/"
    with closing(browser.new_context()) as context:
        html = page_for_paper(context, site, "one", "out")["html"]
    links = {a["id"]: a.get("href") for a in BeautifulSoup(html, "html.parser").select("a")}
    assert links == {
        "one.up": "#other.bee",
        "one.down": "#one.up",
        "one.out": "https://example.org/#bee",
        "one.bare": None,
    }
