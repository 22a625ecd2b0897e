"""JavaScript and CSS have one form, scripts right types, and `make test` says where not."""

import json
import shutil
from pathlib import Path

import pytest

from lmbook.execute.keys import ROOT
from lmbook.javascript import TYPES, check


@pytest.fixture
def book(tmp_path):
    """A folder with the book's settings and one script in good form."""
    shutil.copy(ROOT / "biome.jsonc", tmp_path)
    rules = Path("src") / "lmbook" / "js" / "statements.grit"
    (tmp_path / rules.parent).mkdir(parents=True)
    shutil.copy(ROOT / rules, tmp_path / rules)
    types = {"extends": str(TYPES), "include": ["src/*.js"]}
    (tmp_path / "types.json").write_text(json.dumps(types))
    (tmp_path / "src" / "good.js").write_text("export const one = 1;\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "fixed"),
    [
        ("form.js", "export const one=1\n", "export const one = 1;\n"),
        ("form.mjs", "export const one=1\n", "export const one = 1;\n"),
        ("form.css", "a{color:red}\n", "a {\n  color: red;\n}\n"),
        ("two.js", "export const f = (x) => (x = 1, x);\n", None),  # two things a line
        ("unused.js", "function never() {}\n", None),
        ("hidden.js", "if (scrollY) scrollX && scrollTo(0, 0);\n", None),
        ("either.js", "scrollX ? scrollTo(0, 0) : scrollTo(0, 1);\n", None),
        ("value.js", 'export const clear = () => (document.title = "");\n', None),
        ("both.js", 'document.title = document.dir = "";\n', None),
        (
            "nested.js",
            "export const side = scrollX > 0 ? 1 : scrollX < 0 ? -1 : 0;\n",
            None,
        ),
        (
            "returns.js",
            "/** @param {number} x */\nexport const double = (x) => {\n"
            "  if (x) return 2 * x;\n};\n",
            None,
        ),
        (
            "imports.js",
            '/** @import { one } from "./good.js" */\nexport const two = 2;\n',
            None,
        ),
        ("untyped.js", "export const double = (x) => 2 * x;\n", None),
        (
            "wrong.js",
            "/** @param {string} text */\nexport const double = (text) => 2 * text;\n",
            None,
        ),
    ],
)
def test_what_is_wrong_is_an_error_and_fixed_where_that_is_safe(book, name, text, fixed):
    types = book / "types.json"
    assert check(book, types=types) == 0
    (book / "src" / name).write_text(text)
    assert check(book, types=types) == 1
    assert check(book, types=types, write=True) == (0 if fixed else 1)
    assert fixed in (None, (book / "src" / name).read_text())
