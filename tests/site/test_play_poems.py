"""The view *poems* in a browser: two other states of the model, and what is left."""

import numpy as np
import pytest

from lmcourse import views

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXTS = [f"poem {i}\nits <b>end" for i in range(5)]
MIXED = [f"{i} poem\nend its" for i in range(5)]
SHELVES, NAMES, LEVELS = (
    [0, 0, 1, 2, 2],
    ["Life", "Love", "Time"],
    ["static", "after layer 0"],
)


def support(seed):
    return np.random.default_rng(seed).random((2, 5, 3))  # (levels, poems, sections)


def near(seed):
    """Return three others of each poem at each level, (2, 5, 3)."""
    rng = np.random.default_rng(seed)
    rows = [[rng.permutation([j for j in range(5) if j != i])[:3] for i in range(5)]]
    return np.concatenate([rows, np.roll(rows, 1, axis=2)])


def make():
    view = views.poems(
        TEXTS,
        ["1890"] * 5,
        [NAMES[shelf] for shelf in SHELVES],
        support(0),
        near=near(0),
        names=NAMES,
        levels=LEVELS,
        alt="A poem.",
        first=2,
        untrained=(support(1), near(1)),
        reordered=(support(2), near(2), MIXED),
    )
    return view, {}


def agreed(seed, level):
    return int((support(seed)[level].argmax(-1) == SHELVES).sum())


def test_a_level_has_the_name_that_it_was_given(opened):
    rows = opened.page.locator(".lmp-path tbody th")
    assert rows.all_text_contents() == LEVELS[::-1]


def test_the_sentence_counts_neighbours_and_sections(opened):
    page, sentence = opened.page, opened.page.locator(".play-remains")
    worlds, text = page.get_by_label("Had it learned nothing?"), page.locator(".lmp-text")
    states = {"random weights": "With random weights", "shuffled words": "With each poem"}
    for seed, (state, how) in enumerate(states.items(), start=1):
        worlds.select_option(state)
        same = len(set(near(0)[1][2]) & set(near(seed)[1][2]))
        some = {0: "none", 1: "one"}.get(same, same)
        words = sentence.text_content()
        assert words.startswith(how)
        assert f"{some} of the 3 nearest poems after layer 0" in words
        assert (
            f"agree on {agreed(seed, 1)} of 5 poems; as it is, on {agreed(0, 1)}." in words
        )
        assert text.inner_text() == (MIXED if seed == 2 else TEXTS)[2]
        first = page.locator(".lmp-near").first.locator("button").all_text_contents()
        assert first == [f"poem {other}" for other in near(seed)[1][2]]
    page.get_by_text("All poems").click()
    page.locator("input[type=range]").fill("0")
    assert f"agree on {agreed(2, 0)} of 5 poems; as it is, on {agreed(0, 0)}." in (
        sentence.text_content()
    )
    assert "by the words alone" in sentence.text_content()
    worlds.select_option("as it is")
    assert sentence.text_content() == ""
    assert text.inner_text() == TEXTS[2]
