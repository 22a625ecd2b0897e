"""The view *neighbours*: what it shows is what all cosines, sorted, give."""

import json

import numpy as np
import pytest

from lmcourse import views
from lmcourse.views.neighbours import Space, neighbours_file

NAMES = ["the", "bee", "<b>", "noon", "hill", "king", "queen", "june", "july", "once"]


@pytest.fixture
def spaces():
    """Return a table with a row that is no word, and a corpus with a rare word."""
    rng = np.random.default_rng(0)
    points = [rng.standard_normal((10, 4)) for _ in range(2)]
    units = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in points]
    table = Space("BERT's table", NAMES, units[0], None, 10, [np.delete(np.arange(10), 4)])
    counts = [3000, 2000, 9, 8, 7, 6, 6, 5, 3, 1]
    return [
        table,
        Space("Dickinson", NAMES, units[1], counts, 9, [np.arange(8), np.arange(1, 8)]),
    ]


def wanted(space, row):
    lists = []
    for shown in space.shown:
        near = sorted(
            (-float(space.vectors[i] @ space.vectors[row]), i) for i in shown if i != row
        )
        lists.append([[space.words[i], round(-100 * minus)] for minus, i in near[:6]])
    return lists


def test_lists_are_those_of_all_cosines(spaces):
    lists = views.neighbours("bee", spaces).data["lists"]
    assert [near for _, _, near in lists] == [wanted(space, 1) for space in spaces]
    assert [note for _, note, _ in lists] == ["one of 10 rows", "2,000 times in the text"]


def test_a_rare_word_is_no_neighbour_and_has_none(spaces):
    lists = views.neighbours("once", spaces).data["lists"]
    assert lists[1] == ["Dickinson", "1 time in the text: too seldom", [[]]]


def test_the_file_holds_the_lists_of_every_word(spaces):
    content = neighbours_file(spaces)
    end = content.index(b"\n") + 1
    at = end + -end % 4
    header = json.loads(content[:at])
    assert header["spaces"][0]["words"] is None  # they are BERT's own pieces
    for space in spaces:
        size = header["nearest"] * space.asked
        for which in range(len(space.shown)):
            near = np.frombuffer(content, "<u2", size, at).reshape(space.asked, -1)
            at += 2 * size + -2 * size % 4
            cosines = np.frombuffer(content, np.int8, size, at).reshape(space.asked, -1)
            at += size + -size % 4
            for row in range(space.asked):
                words = [space.words[i] for i in near[row]]
                listed = list(map(list, zip(words, cosines[row].tolist(), strict=True)))
                assert listed == wanted(space, row)[which]
    assert at == len(content)


def test_what_is_shown_without_a_script_is_escaped_and_told(spaces):
    view = views.neighbours("bee", spaces)
    assert "<b>" not in view.stored.replace("<b>BERT", "").replace("<b>Dick", "")[20:]
    assert "&lt;b&gt;" in view.stored
    assert "BERT's table: " in view.alt
    assert ", ".join(word for word, _ in wanted(spaces[1], 1)[0][:3]) in view.alt
    assert view.stores == ["neighbours", "bert-pieces"]
