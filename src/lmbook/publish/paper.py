"""The book on paper: one PDF with contents, page numbers and bookmarks.

``python -m lmbook.publish.paper [--way read|work] [--folded open|out] OUT.pdf`` prints the
built site through Chromium, page by page of ``_toc.yml``, and joins what comes out. Views
are drawn first and stand as they are before a reader touches them. A link from page to
page leads to the page's beginning; one to a file of the site is dropped.
"""

import argparse
import html
import io
import sys
from contextlib import closing
from pathlib import Path

import yaml
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, NameObject

from lmbook.browser import find_chromium
from lmbook.execute.keys import ROOT, build_folder

STYLE = Path(__file__).parents[1] / "static" / "paper.css"
WIDTH = 822  # pixels: what is between the margins of A4, at this scale
SHEET = {"format": "A4", "scale": 0.8, "print_background": True}
MARGIN = {"top": "16mm", "bottom": "18mm", "left": "18mm", "right": "18mm"}
PATIENCE = 300_000  # milliseconds, for the models of a page
# Unfold what is folded, or leave it out. The tables behind views stay out either way.
FOLDS = """open => {
  const all = (what, then) => document.querySelectorAll(what).forEach(then);
  all(".headerlink, details.lmc-table, template", e => e.remove());
  if (open) all(".toggle-hidden .toggle-button", e => e.click());
  else all(".toggle-hidden, .bd-article details", e => e.remove());
  all("details", e => { e.open = true; });
}"""
DRAWN = """e => { e.scrollIntoView(); return new Promise(done => setInterval(
  () => /drawn|failed/.test(e.dataset.state) && done(e.dataset.state), 50)); }"""
START = "localStorage.mode = localStorage.theme = 'light'; localStorage['lmcourse:way'] = "


def parts() -> dict[str, list[str]]:
    """Return the names of the book's pages by the captions of its parts."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    named = {p["caption"]: [page["file"] for page in p["chapters"]] for p in toc["parts"]}
    return {"Inside Language Models": [toc["root"]], **named}


def printed(context, address: str, folded: str) -> tuple[str, PdfReader]:
    """Return a page's title, and the page as a PDF of its own."""
    with closing(context.new_page()) as page:
        page.set_default_timeout(PATIENCE)
        page.emulate_media(media="print")
        page.goto(address)
        page.add_style_tag(path=STYLE)
        page.evaluate(FOLDS, folded == "open")
        for view in page.query_selector_all(".lmc-view"):
            if view.is_visible() and view.evaluate(DRAWN) == "failed":
                raise ValueError(f"{address}: a view was not drawn")
        page.wait_for_timeout(400)  # until equations and plots have found their places
        pdf = page.pdf(**SHEET, margin=MARGIN, outline=True, tagged=True)
        return page.locator("h1").first.inner_text(), PdfReader(io.BytesIO(pdf))


def sheets(context, text: str, margin=MARGIN, **options) -> PdfReader:
    """Return some HTML as a PDF."""
    with closing(context.new_page()) as page:
        page.set_content(text)
        page.add_style_tag(path=STYLE)
        return PdfReader(io.BytesIO(page.pdf(**SHEET, margin=margin, **options)))


def contents(context, book: dict, titles: dict, starts: dict) -> PdfReader:
    """Return the contents, with the number of the sheet on which each page begins."""
    rows = ""
    for caption, names in book.items():
        rows += f"<h2>{html.escape(caption)}</h2>"
        for name in names:
            rows += f"<p>{html.escape(titles[name])} <b>{starts.get(name, 0)}</b></p>"
    return sheets(context, f"<body class=contents><h1>Contents</h1>{rows}")


def relink(writer: PdfWriter, site: str, starts: dict) -> None:
    """Let links between pages lead to sheets; drop those to other files of the site."""
    for sheet in writer.pages:
        kept = ArrayObject()
        for link in sheet.get("/Annots", []):
            action = link.get_object().get("/A", {})
            address = action.get("/URI", "").partition("#")[0]
            if address.startswith(site):
                name = address.removeprefix(site + "/").removesuffix(".html")
                if name not in starts:
                    continue
                goal = writer.pages[starts[name] - 1].indirect_reference
                there = ArrayObject([goal, NameObject("/Fit")])
                link.get_object()[NameObject("/A")] = DictionaryObject(
                    {NameObject("/S"): NameObject("/GoTo"), NameObject("/D"): there}
                )
            kept.append(link)
        sheet[NameObject("/Annots")] = kept


def paper(browser, site: Path, book: dict, way: str, folded: str) -> PdfWriter:
    """Return pages of the built site as one PDF."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": 1100}, reduced_motion="reduce"
    )
    context.add_init_script(f"{START}'{way}';")
    with closing(context):
        names = [name for names in book.values() for name in names]
        done = {n: printed(context, f"{site.as_uri()}/{n}.html", folded) for n in names}
        titles = {name: title for name, (title, _) in done.items()}
        starts, count = {}, 1 + len(contents(context, book, titles, {}).pages)
        for name, (_, pdf) in done.items():
            starts[name], count = count, count + len(pdf.pages)
        blank = "<p class=blank>&nbsp;</p>" * (count - 1)
        foot = {"display_header_footer": True, "header_template": "<i></i>"}
        foot["footer_template"] = (
            "<p class=pageNumber style='width:100%;text-align:center;font-size:8px'></p>"
        )
        numbers = sheets(context, blank, **foot)
        writer = PdfWriter()
        writer.append(contents(context, book, titles, starts), "Contents")
        for _, pdf in done.values():
            writer.append(pdf)
    for sheet, number in zip(writer.pages, numbers.pages, strict=True):
        sheet.merge_page(number)
    relink(writer, site.as_uri(), starts)
    return writer


def main() -> int:
    """Print the book; return 1 if there is no site."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description="Print the book as one PDF.")
    parser.add_argument("--way", choices=("read", "work"), default="read")
    parser.add_argument("--folded", choices=("open", "out"), default="open")
    parser.add_argument("out", type=Path)
    chosen = parser.parse_args()
    site = (build_folder(ROOT) / "html").resolve()
    if not (site / "index.html").is_file():
        print(f"{site} has no index.html: run `make html` first")
        return 1
    how = {"executable_path": find_chromium(), "args": ["--no-sandbox"]}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**how)
        writer = paper(browser, site, parts(), chosen.way, chosen.folded)
    writer.write(chosen.out)
    print(f"{chosen.out}: {len(writer.pages)} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
