"""What notebooks keep of hidden cells: what others need, and nothing more."""

import pytest

from lmbook.publish.lesson import defined_and_used, lesson_code


def kept(*cells):
    """Return what is kept; a cell that begins with "H:" is hidden."""
    return lesson_code(
        [(each.removeprefix("H:"), not each.startswith("H:")) for each in cells]
    )


def test_what_nobody_uses_is_left_out():
    cells = ["x = 1\nx", "H:# One is one\ny = x\nassert y == 1", "x + 1"]
    assert kept(*cells) == ["x = 1\nx", "", "x + 1"]


@pytest.mark.parametrize(
    ("hidden", "after", "left"),
    [
        ("a = 1\nb = a + 1\nc = 2\nassert b", "b", "a = 1\nb = a + 1"),
        ("a = 1; b = 2", "b", "b = 2"),
        ("rows = []\nfor x in range(3):\n    rows.append(x)\nassert rows", "rows",
         "rows = []\nfor x in range(3):\n    rows.append(x)"),
        ("d = {}\nd['a'] = 1\nd.items()", "d", "d = {}\nd['a'] = 1"),
        ("n = 1\nn += 1", "n", "n = 1\nn += 1"),
        ("import math, os\nmath.pi", "math.e", "import math, os"),
        ("k = 1\n@cache\ndef f():\n    return k\n\nh = 2", "f()",
         "k = 1\n\n\n@cache\ndef f():\n    return k"),
        ("with open('x') as file:\n    text = file.read()", "text",
         "with open('x') as file:\n    text = file.read()"),
        ("x = 1", "for x in range(3):\n    print(x)", ""),
        ("x = 1", "x = 2\nx", ""),
        ("x = 1", "if ready:\n    x = 2\nx", "x = 1"),
        ("x = 1", "[x for x in range(3)]", ""),
        ("class Odd(Exception):\n    pass", "try:\n    go()\nexcept Odd:\n    stop()",
         "class Odd(Exception):\n    pass"),
        ("x = 1", "with open('y') as x:\n    x.read()", ""),
        ("x = 1", "def f(x):\n    return x", ""),
        ("TABLE = 1", "f()", "TABLE = 1"),
    ],
)  # fmt: skip
def test_what_is_used_below_is_kept(hidden, after, left):
    before = (
        "from functools import cache\ng, ready = 0, True\n\n\ndef f():\n    return TABLE"
    )
    assert kept(before, f"H:{hidden}", after)[1] == left


def test_a_hidden_cell_that_a_kept_one_needs_is_kept():
    cells = ["H:a = 1\nassert a", "H:b = a\nassert b == 1", "b"]
    assert kept(*cells) == ["a = 1", "b = a", "b"]


def test_a_lesson_stays_as_it_is_written():
    source = (
        "# A comment\nx = 1;  y = [2,\n 3]\n\n\n@cache\ndef f(): return x  # why\nassert x"
    )
    assert kept(source) == [source]


def test_names_that_code_defines_and_uses():
    source = "import a.b as c\nx = y\n\n\ndef f(z):\n    return z + g + x"
    assert defined_and_used(source) == ({"c", "x", "f"}, {"y", "g", "x"})
