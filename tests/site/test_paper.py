"""Two pages on paper: contents, numbers, bookmarks, and what each way leaves out."""

import pytest

from lmbook.publish.paper import paper

pytestmark = [pytest.mark.browser, pytest.mark.slow]

BOOK = {"Back matter": ["glossary"], "Text becomes tensors": ["sequences"]}
TITLES = ["Glossary", "Why is a sequence more than a bag?"]
CODE, SOLUTION = "from lmcourse import", "Solution to"


def words(sheet):
    """The words of a sheet, whatever its lines."""
    return " ".join(sheet.extract_text().split())


@pytest.mark.parametrize("way, folded", [("read", "out"), ("work", "open")])
def test_two_pages_become_a_book(browser, site, way, folded):
    book = paper(browser, site, BOOK, way, folded)
    texts = [words(sheet) for sheet in book.pages]
    marks = [mark for mark in book.outline if not isinstance(mark, list)]
    places = [book.get_destination_page_number(mark) for mark in marks]
    assert marks[0].title == "Contents" and places[0] == 0
    for mark, place, title in zip(marks[1:], places[1:], TITLES, strict=True):
        assert title in mark.title and title in texts[place]
        assert f"{title} {place + 1}" in texts[0]
    assert all(text.endswith(f" {n}") for n, text in enumerate(texts, 1)), texts
    assert any(isinstance(mark, list) for mark in book.outline)  # the chapter's sections
    whole = " ".join(texts)
    assert (CODE in whole) == (way == "work")
    assert (SOLUTION in whole) == (folded == "open")
    links = [a.get_object().get("/A", {}) for s in book.pages for a in s["/Annots"]]
    assert any(link.get("/S") == "/GoTo" for link in links)
    assert not any(link.get("/URI", "").startswith("file:") for link in links)
