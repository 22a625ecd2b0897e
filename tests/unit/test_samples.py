"""Texts to choose between: what they are made of."""

import re
from html.parser import HTMLParser

import pytest

from lmcourse.views import looks, samples

SHOWN = {"counting <b>": ("It counts.", "\nShall I <script>\nO&O"), "a GPT": ("Two", "so")}


class Reader(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.words.append(data)


def test_what_is_shown_is_escaped_and_whole():
    html = samples("Who <wrote> it?", SHOWN)._repr_html_()
    read = Reader(html)
    assert {tag for tag, _ in read.tags} <= {
        *("style", "div", "fieldset", "legend", "label", "input", "section", "p"),
    }
    for text in ("counting <b>", "Shall I <script>\nO&O", "Who <wrote> it?", "It counts."):
        assert any(text in words for words in read.words), text


def test_one_is_chosen_and_each_has_its_rule():
    html = samples("Who?", SHOWN)._repr_html_()
    inputs = [found for tag, found in Reader(html).tags if tag == "input"]
    assert [("checked" in found) for found in inputs] == [True, False]
    assert len({found["name"] for found in inputs}) == 1
    shown = [found for tag, found in Reader(html).tags if tag == "section"]
    for found in shown:
        number = found["data-choice"]
        assert re.search(
            rf'\[value="{number}"\]:checked\) \[data-choice="{number}"\]', html
        )


def test_two_of_them_do_not_meet_and_one_is_the_same_twice():
    first, again = (samples("Who?", SHOWN)._repr_html_() for _ in range(2))
    other = samples("Who?", SHOWN | {"third": ("x", "y")})._repr_html_()
    names = [re.search(r'name="(\w+)"', html)[1] for html in (first, again, other)]
    assert names[0] == names[1] != names[2]


def test_as_text_all_are_there():
    assert repr(samples("Who?", SHOWN)).split("\n\n")[1] == "[a GPT: Two]\nso"


@pytest.mark.parametrize(
    ("shown", "error", "said"),
    [
        ({"one": ("x", "y")}, ValueError, "1 text is no choice"),
        (
            {"one": ("x", "y"), "two": ("x", 3)},
            TypeError,
            "the text of 'two' must be a string",
        ),
        ({"one": ("x", "y"), "two": (3, "y")}, TypeError, "note must be a string"),
    ],
)
def test_what_is_no_choice(shown, error, said):
    with pytest.raises(error, match=said):
        samples("Who?", shown)


def test_a_picture_stands_with_its_text():
    html = samples("Who?", SHOWN, ["<svg>1</svg>", "<svg>2</svg>"])._repr_html_()
    first, second = html.split("<section")[1:]
    assert "<svg>1</svg>" in first
    assert "<svg>2</svg>" in second
    with pytest.raises(ValueError, match="1 pictures for 2 texts"):
        samples("Who?", SHOWN, ["<svg></svg>"])


def test_a_bar_is_as_high_as_its_share():
    shares = [
        [[0.25, 0.75], [0.5, 0.5]],
        [[1.0, 0.0], [0.1, 0.9]],
    ]  # (layers, heads, tokens)
    svg = looks(shares, alt="Four <heads>")
    bars = [re.findall(r"v-([\d.]+)h9", d) for d in re.findall(r'<path d="([^"]*)"', svg)]
    flat = [share for layer in shares for head in layer for share in head]
    assert [float(h) for bar in bars for h in bar] == [pytest.approx(72 * s) for s in flat]
    assert 'aria-label="Four &lt;heads&gt;"' in svg
    assert svg.count('class="lm-even"') == 4
