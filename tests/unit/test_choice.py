"""Panels to choose between: texts, pictures of heads, a word's way up, switches."""

import re

import bs4
import pytest

from lmcourse import views

SHOWN = {"counting <b>": ("It counts.", "\nShall I <script>\nO&O"), "a GPT": ("Two", "so")}


ROWS = [("<word>", "w = W[id]", [0.5, -0.25], "a & b"), ("head", "scores", None, "“tree”")]
NAMES = [("<off>", "on"), ("here", "there")]
SETTINGS = [(one, two) for one in (False, True) for two in (False, True)]


def read(view):
    return bs4.BeautifulSoup(view._repr_html_(), "html.parser")


def test_a_words_way_up_has_strips_and_words_and_is_escaped():
    view = views.anatomy("Which?", {"she": ROWS, "tree": ROWS[::-1]}, "tree")
    page = read(view)
    assert [radio.has_attr("checked") for radio in page.select("input")] == [False, True]
    assert [item.b.contents[0] for item in page.section.select("li")] == ["<word>", "head"]
    assert [len(item.select("svg")) for item in page.section.select("li")] == [1, 0]
    assert page.section.li.span.text == "a & b"
    assert "[tree]\nhead: “tree”" in repr(view)
    with pytest.raises(ValueError, match="there is no 'nobody' to show first, but: she"):
        views.anatomy("Which?", {"she": ROWS}, "nobody")


def test_each_setting_of_the_switches_has_its_own_shares():
    shown = {key: {"layer <0>": (key[0] + 2 * key[1]) / 10} for key in SETTINGS}
    sentences = {key: f"{key} & so on" for key in SETTINGS}
    page = read(views.switches("Share?", NAMES, shown, sentences, even=0.25))
    assert [field.text.split() for field in page.select("fieldset")] == [
        ["<off>", "on"],
        ["here", "there"],
    ]
    key = page.input["name"][:-1]
    for setting, section in zip(SETTINGS, page.select("section"), strict=True):
        first, second = map(int, setting)
        chosen = f'[name="{key}0"][value="{first}"]:checked):has([name="{key}1"]'
        chosen += f'[value="{second}"]:checked) [data-choice="{first}{second}"]'
        assert chosen in page.style.text
        share = 10 * (first + 2 * second)
        assert section.select("td")[1].text == f"{share}\N{NO-BREAK SPACE}%"
        assert f"h{share}.0v20" in section.path["d"]
        assert section.select("path")[1]["d"] == "M25.0 0v26"
        assert section.p.text == sentences[setting]
    assert not page.select("off")


def test_texts_are_escaped_and_whole():
    page = read(views.samples("Who <wrote> it?", SHOWN))
    assert not page.select("script, b, wrote")
    assert page.legend.text == "Who <wrote> it?"
    assert page.label.text.strip() == "counting <b>"
    first = [line.text for line in page.section.find_all("p")]
    assert first == ["It counts.", "Shall I <script>\nO&O"]


def test_two_of_them_do_not_meet_and_one_is_the_same_twice():
    others = (SHOWN, SHOWN, SHOWN | {"third": ("x", "y")})
    first, again, other = (read(views.samples("Who?", s)).input["name"] for s in others)
    assert first == again != other


def test_as_text_all_are_there():
    assert repr(views.samples("Who?", SHOWN)).split("\n\n")[1] == "[a GPT: Two]\nso"


def test_a_picture_stands_with_its_text():
    view = views.samples("Who?", SHOWN, ["<svg>1</svg>", "<svg>2</svg>"])
    assert [panel.svg.text for panel in read(view).select("section")] == ["1", "2"]


def test_an_answer_is_read_after_its_text():
    folded = ["<details>a nightingale</details>", "<details>a machine</details>"]
    view = views.samples("Who?", SHOWN, ["<svg>1</svg>", "<svg>2</svg>"], answers=folded)
    for panel, (_, text) in zip(read(view).select("section"), SHOWN.values(), strict=True):
        written = panel.select_one(".lm-text")
        assert written.text == text.strip("\n")
        assert written.find_next("details") is panel.details
        assert not panel.select(".lm-beside details")


def test_another_than_the_first_may_be_shown_first():
    inputs = read(views.samples("Who?", SHOWN, first="a GPT")).select("input")
    assert [radio.has_attr("checked") for radio in inputs] == [False, True]
    with pytest.raises(ValueError, match=r"no 'nobody' to show first.*<b>, a GPT"):
        views.samples("Who?", SHOWN, first="nobody")


def test_a_bar_is_as_high_as_its_share():
    shares = [
        [[0.25, 0.75], [0.5, 0.5]],
        [[1.0, 0.0], [0.1, 0.9]],
    ]  # (rows, layers, tokens)
    svg = views.looks(shares, ["<b>", "two"], alt="Four <heads>")
    bars = [re.findall(r"v-([\d.]+)h18", d) for d in re.findall(r'<path d="([^"]*)"', svg)]
    flat = [share for layer in shares for head in layer for share in head]
    assert [float(h) for bar in bars for h in bar] == [pytest.approx(64 * s) for s in flat]
    assert 'aria-label="Four &lt;heads&gt;"' in svg
    assert "&lt;b&gt;, layer 1" in svg
    assert svg.count('class="lm-even"') == 4
