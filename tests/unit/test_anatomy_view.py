"""The view of a hidden word's way up, and its switch to a model that learned nothing."""

import bs4
import pytest

from lmcourse import views

TRAINED = {"bee": [("word", "w", [1.0, -2.0], "a row")], "sun": [("word", "w", None, "no")]}
RANDOM = {word: [("word", "w", [0.5, 0.5], f"noise of {word}")] for word in TRAINED}


def panels(view):
    page = bs4.BeautifulSoup(view.stored, "html.parser")
    return {part["data-choice"]: part.text for part in page.find_all("section")}


def test_without_an_untrained_model_there_is_a_panel_a_word_and_no_switch():
    view = views.anatomy("Which?", TRAINED, "sun")
    assert panels(view).keys() == {"0", "1"}
    assert "learned nothing" not in view.stored


def test_each_word_has_a_panel_of_the_untrained_model_that_a_rule_shows():
    view = views.anatomy("Which?", TRAINED, "sun", RANDOM)
    texts = panels(view)
    assert texts.keys() == {"0", "1", "random-0", "random-1"}
    assert "noise of bee" in texts["random-0"]
    assert "noise" not in texts["0"]
    assert "Had it learned nothing?" in view.stored
    for world in ("trained", "random"):
        assert view.stored.count(f':has([value="{world}"]:checked)') == len(TRAINED)


def test_other_words_of_the_untrained_model_are_refused():
    with pytest.raises(ValueError, match=r"bee.*sun"):
        views.anatomy("Which?", TRAINED, "sun", {"bee": []})
