"""The book on paper: one PDF with contents, page numbers, bookmarks and links.

``python -m lmbook.publish.paper OUT.pdf [--way read|work] [--folded out|open]`` opens each
page of ``_toc.yml`` in Chromium, where ``paper.js`` makes it ready, puts all of them into
one document, so that each font is there once and links lead on, and prints it twice: the
second time the contents know on which sheet each page begins.
"""

import argparse
import io
import json
import sys
from contextlib import closing
from html import escape
from pathlib import Path

from pypdf import PdfReader

from lmbook.browser import find_chromium
from lmbook.execute.keys import ROOT, build_folder
from lmbook.pages.course import CourseError, parts_in_contents, read_yaml
from lmcourse.arguments import path_argument
from lmcourse.files import write_whole

HERE = Path(__file__).parent
# Pixels: what A4 has between its margins, by scale.
VIEWPORT = {"width": 850, "height": 1100}
PDF_OPTIONS = {"prefer_css_page_size": True, "scale": 0.75, "print_background": True}
# Limits in milliseconds, which end a hang and decide nothing else; printing has none.
PATIENCE = 600_000  # for Chromium to start, and to load a page, or the book
# For a view to be drawn, with its models; for a page's formulas to be set; for its plots to
# find their places.
DRAW_PATIENCE = 600_000
NOTE = "What moves or answers on the site stands as it is before a reader touches it."
READER_SETTINGS = (
    "localStorage.mode = localStorage.theme = 'light'; localStorage['lmcourse:way'] = "
)


def book_title(root: Path) -> str:
    """Return the book's title, as ``_config.yml`` in the folder ``root`` says it.

    Raises
    ------
    CourseError
        If the file cannot be read, or has no title.
    """
    config = read_yaml(root / "_config.yml")
    if isinstance(config, dict) and config.get("title"):
        return str(config["title"])
    raise CourseError("_config.yml has no title: write `title: …` into it")


def page_for_paper(context, site: str, name: str, folded: str) -> dict:
    """Open a page of the site and make it ready for paper.

    Parameters
    ----------
    context : BrowserContext
        Playwright's.
    site : str
        The site's address, with a slash.
    name : str
        The page's.
    folded : {"out", "open"}
        Whether folds are left out, or opened.

    Returns
    -------
    dict
        What ``paper.js`` returns: ``title`` and ``html``, str; ``links``, list of str, the
        addresses of style sheets; and ``rules``, list of str, CSS that stands in the page.

    Raises
    ------
    playwright.sync_api.Error
        If the page is not loaded in `PATIENCE` milliseconds, or one of its views is not
        drawn, or its formulas are not set, or its plots do not find their places, in
        `DRAW_PATIENCE`. The error names the page, and the view, MathJax or Plotly.
    """
    with closing(context.new_page()) as page:
        page.set_default_timeout(PATIENCE)
        page.emulate_media(media="print")
        page.goto(f"{site}{name}.html")
        how = {"name": name, "site": site, "open": folded == "open"}
        how["patience"] = DRAW_PATIENCE
        script = (HERE / "paper.js").read_text("utf-8")
        return page.evaluate(f"({script})", how)  # in brackets it is a value


def contents_html(book: list, pages: dict, sheets: dict) -> str:
    """Return the book's table of contents as HTML.

    Parameters
    ----------
    book : list of (str, list of str)
        Its parts: caption, "" for the first page; names of its pages.
    pages : dict of str to dict
        Name of each page → a dict, of which ``title`` is used.
    sheets : dict of str to int
        Name of a page → the number of the sheet of paper on which it begins, from 1, as far
        as that is known.
    """
    rows = ""
    for caption, names in book:
        rows += f'<h4 role="none">{escape(caption)}</h4>'
        for name in names:
            row = f"{escape(pages[name]['title'])}</a><b>{sheets.get(name, '')}</b>"
            rows += f'<p><a href="#{name}">{row}</p>'
    return f'<nav class="lm-contents"><h1>Contents</h1>{rows}<p>{NOTE}</p></nav>'


def book_html(title: str, book: list, pages: dict, sheets: dict) -> str:
    """Return the whole book as one HTML document: its first page, the contents, the rest.

    Parameters
    ----------
    title : str
        Of the book.
    book : list of (str, list of str)
        Its parts: caption, "" for the first page; names of its pages.
    pages : dict of str to dict
        Name of each page → ``title`` and ``html``, str; ``links``, list of str, the
        addresses of style sheets; ``rules``, list of str, CSS that stands in the page.
    sheets : dict of str to int
        Name of a page → the number of the sheet of paper on which it begins, from 1, as far
        as that is known: for the contents.
    """
    links = dict.fromkeys(link for page in pages.values() for link in page["links"])
    rules = dict.fromkeys(rule for page in pages.values() for rule in page["rules"])
    style = [*rules, (HERE / "paper.css").read_text("utf-8")]
    bodies = []
    for caption, names in book:
        part = f'<h1 class="lm-part">{escape(caption)}</h1>' if caption else ""
        for name in names:
            if bodies:  # above the text, but for the first page
                heading = json.dumps(pages[name]["title"], ensure_ascii=False)
                style.append(f"@page {name} {{ @top-right {{ content: {heading} }} }}")
            begin = f'<article class="bd-article" id="{name}" style="page: {name}">'
            bodies.append(f"{begin}{part}{pages[name]['html']}</article>")
            part = ""
    bodies.insert(1, contents_html(book, pages, sheets))
    head = "".join(f'<link rel="stylesheet" href="{link}">' for link in links)
    head += f'<meta charset="utf-8"><title>{escape(title)}</title>'
    head += f"<style>{''.join(style)}</style>"
    body = "".join(bodies)
    return f'<!doctype html><html lang="en" data-theme="light">{head}{body}</html>'


def print_pages(
    browser, site: Path, title: str, book: list, way: str, folded: str
) -> bytes:
    """Return pages of the built site as one PDF.

    They are printed twice: only after the first time it is known on which sheet of paper
    each page begins, which stands in the contents.

    Parameters
    ----------
    browser : Browser
        Playwright's.
    site : Path
        The site's folder.
    title : str
        Of the book.
    book : list of (str, list of str)
        Its parts: caption, "" for the first page; names of its pages.
    way : {"read", "work"}
        The way in which pages are shown: without code, or with all of it.
    folded : {"out", "open"}
        Whether folds are left out, or opened.
    """
    names = [name for _, names in book for name in names]
    address = f"{site.as_uri()}/"
    with closing(
        browser.new_context(viewport=VIEWPORT, reduced_motion="reduce")
    ) as context:
        context.add_init_script(f"{READER_SETTINGS}'{way}'")
        pages = {name: page_for_paper(context, address, name, folded) for name in names}
    sheets: dict[str, int] = {}
    with closing(browser.new_context(java_script_enabled=False)) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(f"{address}{names[0]}.html")  # a page of the site may read its files
        for _ in range(2):
            page.set_content(book_html(title, book, pages, sheets))
            pdf = page.pdf(**PDF_OPTIONS, outline=True, tagged=True)
            reader = PdfReader(io.BytesIO(pdf))
            place, marks = reader.get_destination_page_number, reader.named_destinations
            sheets = {name: 1 + place(marks[f"/{name}"]) for name in names}
    return pdf


def main() -> int:
    """Print the book as the command line says; return 1 if there is no site or contents.

    The arguments are the path of the PDF, ``--way`` and ``--folded`` (`print_pages`). 1 is
    returned also if ``_config.yml`` has no title, else 0.
    """
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description="Print the book as one PDF.")
    parser.add_argument("out", type=path_argument)
    parser.add_argument("--way", choices=("read", "work"), default="read")
    parser.add_argument("--folded", choices=("out", "open"), default="out")
    chosen = parser.parse_args()
    site = (build_folder(ROOT) / "html").resolve()
    if not (site / "index.html").is_file():
        print(f"{site} has no index.html: run `make html` first")
        return 1
    try:
        book = (book_title(ROOT), parts_in_contents(ROOT))
    except CourseError as error:
        print(f"error: {error}")
        return 1
    how = {"executable_path": find_chromium(), "args": ["--no-sandbox"]}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**how, timeout=PATIENCE)
        pdf = print_pages(browser, site, *book, chosen.way, chosen.folded)
    write_whole(chosen.out, pdf)
    print(f"The book is in {chosen.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
