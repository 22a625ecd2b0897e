"""The explorer of poems: data, stored state, no harm."""

import json

import numpy as np
import pytest

from lmbook.pages.renderer import view_html
from lmbook.pages.tables import data_table
from lmcourse import views
from lmcourse.views.poems import model_shelves

NASTY = ["A <b>rose</b>\nsecond line", "</script><script>alert(1)", "plain & simple"]
NAMES = ["Love & loss", "</td>"]
LEVELS = ["static", "after layer 0"]
SUPPORT = np.array(
    [[[1.0, 2.0], [0.5, 0.1], [1.5, 1.0]], [[2.0, 1.0], [0.5, 3.0], [1.0, 0.2]]]
)


def explorer(**more):
    given = {
        "texts": NASTY,
        "sources": ["1890, no. 1", "<i>", "1896"],
        "shelves": [NAMES[0], NAMES[0], NAMES[1]],
        "support": SUPPORT,
        "near": np.array([[[1, 2], [0, 2], [0, 1]]] * 2),
        "names": NAMES,
        "levels": LEVELS,
        "alt": "A poem.",
        "first": 1,
    }
    return views.poems(**given | more)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"shelves": [NAMES[0], "Life", "Time"]}, r"\['Life', 'Time'\] are no sections"),
        ({"first": 3}, "there is no row 3: 3 poems are given"),
    ],
)
def test_what_the_explorer_cannot_show_is_told(changed, message):
    with pytest.raises(ValueError, match=message):
        explorer(**changed)


def test_who_is_filed_elsewhere_and_how_decidedly():
    assert model_shelves(explorer().data) == [(0, 0, 0.0), (0, 1, 2.5), (1, 0, 0.8)]


def test_texts_are_carried_once_and_numbers_are_whole():
    data = explorer().data
    assert json.dumps(data).count("second line") == 1
    assert data["support"][1][1] == [50, 300]
    assert data["near"][0][2] == [0, 1]


def test_a_model_that_learned_nothing_comes_along_in_the_same_form():
    near = np.array([[[2, 1], [2, 0], [1, 0]]] * 2)
    data = explorer(untrained=(SUPPORT[::-1], near)).data
    assert data["untrained"]["support"] == data["support"][::-1]
    assert data["untrained"]["near"] == near.tolist()
    assert "untrained" not in explorer().data


def test_the_stored_state_is_the_first_poem_and_both_shelves():
    text = explorer().stored
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in text
    assert "Love &amp; loss" in text
    assert "&lt;/td&gt;" in text


def test_data_is_escaped_on_the_site_and_in_notebooks():
    view = explorer()
    for page in (view_html(view.description()), view._repr_html_()):
        assert "<b>rose" not in page
        assert "<i>" not in page
        assert "</script><script>alert" not in page
    assert view._repr_html_().count("</script>") == 1  # its own
    assert "http" not in view._repr_html_().replace("http://www.w3.org/2000/svg", "")


def test_a_table_says_what_the_view_shows():
    text = data_table(explorer().description())
    assert "&lt;/script&gt;" in text
    assert "2.5" in text
    assert "A &lt;b&gt;rose" not in text  # its shelf is not disputed
