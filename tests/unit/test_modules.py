"""ES modules made classic scripts."""

import pytest

from lmbook.play import modules


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.setattr(modules, "PLAY", tmp_path)

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.js").write_text(text)

    return write


def test_a_module_is_a_function_of_what_it_needs(written):
    written(
        a='/* A. */\nimport { one, two } from "./b.js";\nexport class A {}\n',
        b="export const one = 1;\nexport async function two() {}\nconst own = 3;\n",
    )
    assert modules.script("a.js") == (
        'lmcourse.define("a.js", function (need) { "use strict"; /* A. */\n'
        'const { one, two } = need("b.js");\nclass A {}\nreturn { A };\n});\n'
    )
    assert "return { one, two };" in modules.script("b.js")


def test_what_a_module_needs_comes_before_it_once(written):
    written(
        view='import { a } from "./a.js";\nimport { b } from "./b.js";\n',
        a='import {\n  b\n} from "./b.js";\nexport const a = b;\n',
        b="export const b = 1;\n",
    )
    assert modules.order("view.js") == ["b.js", "a.js", "view.js"]
