"""Views that a notebook shows in a form of its own, without what the site's scripts do."""

import bs4

from lmcourse import views

NAMES, LEVELS = ["Life", "Love"], ["static", "after layer 0"]


def in_notebook(kind, data):
    view = views.View(kind, data, "<p>as stored</p>", alt="For a notebook.")
    html = view._repr_mimebundle_()["text/html"]
    assert "as stored" not in html
    return bs4.BeautifulSoup(html, "html.parser")


def test_a_words_ground_says_for_what_it_speaks_and_what_is_without_it():
    """Two speak for Life, one against; without the first it would be Love."""
    poem = {
        "text": "a <b>, c\nd",
        "own": 1,
        "words": ["a", "<b>", "c", "d"],
        "printed": [[0, 0], [50, 40]],
        "said": [[[0, 9]] * 4, [[10, 60], [80, 20], [44, 42], [50, 40]]],
    }
    other = poem | {"text": "second\na <b> c d"}
    data = {"poems": [poem, other], "first": 0, "names": NAMES, "levels": LEVELS}
    page = in_notebook("word-removal-view", data)
    first, second = page.find_all("blockquote")
    assert first.get_text("|") == "a| |<b>|, |c|d"
    assert not first.find("b")
    grounds = ["background" in word["style"] for word in first.find_all("span")]
    assert grounds == [True, False, True, False]
    explanation = first.find_next("p").text
    assert (
        explanation
        == "The editors: Love. The model after layer 0: Life. Without “a”: Love."
    )
    assert second.find_parent("details").summary.text == "second"
    assert first.find_parent("details") is None


def test_poems_to_be_sorted_are_whole_and_their_sections_folded():
    data = {
        "texts": ["one\ntwo", "<three>"],
        "editors": [0, 1],
        "models": [[0, 0], [1, 1]],
        "names": NAMES,
        "levels": LEVELS,
    }
    page = in_notebook("sorting-view", data)
    shown = [item.get_text(" ") for item in page.select("ol > li")]
    assert shown == ["one two", "<three>"]
    rows = [[c.text for c in row.find_all(["th", "td"])] for row in page.select("tbody tr")]
    assert rows == [["1. one", "Life", "Love"], ["2. <three>", "Love", "Love"]]
    folded = page.find("table").find_parent("details")
    assert "Life" not in page.get_text().replace(folded.get_text(), "")
