"""The mutation run is worth something only if its verdicts hold."""

import ast
import textwrap

import pytest

import mutants

HALF = """\
def half(x: int = 0) -> float:
    if x < 0:
        raise ValueError(f"{x + 1} is negative")
    return x / 2
"""
FILES = {
    "src/lmcourse/__init__.py": "",
    "src/lmcourse/half.py": HALF,
    "tests/test_half.py": """\
        from pathlib import Path
        from lmcourse.half import half

        def test_half():
            assert half(4) == int((Path(__file__).parents[1] / "data/two").read_text())
        """,
    "tests/test_weak.py": "from lmcourse.half import half\ndef test_it(): half(4)\n",
    "data/two": "2",
    "pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['slow']\n",
}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A repository with one module, two test files and a data folder."""
    monkeypatch.setattr(mutants, "PRELOAD", ("pytest",))
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return tmp_path


def changes(source, path="lmcourse/half.py", tests=("test_half.py",)):
    """The changes of a source, by what they replace and by what."""
    return {(m.old, m.new): m for m in mutants.find_mutants(path, source, tests)}


def test_changes_are_found_in_what_computes_and_nowhere_else():
    """Not in messages, annotations, decorators."""
    assert set(changes(HALF)) == {
        ("0", "1"),
        ("x < 0", "x <= 0"),
        ("x / 2", "x * 2"),
        ("2", "3"),
    }
    assert not changes(
        "@cache(2)\ndef f(x: Literal[3]) -> A[1]: raise E(1 + 2)\nassert 1 > 0"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a + b", "a - b"),
        ("a - b", "a + b"),
        ("a * b", "a / b"),
        ("a / b", "a * b"),
        ("a // b", "a * b"),
        ("a >= b", "a > b"),
        ("a == b", "a != b"),
        ("a is not b", "a is b"),
        ("a in b", "a not in b"),
        ("a and b", "a or b"),
        ("a & b", "a | b"),
        ("not a", "a"),
        ("~a", "a"),
        ("-a", "a"),
        ("True", "False"),
        ("3", "4"),
        ("0.5", "1.0"),
        ("f(a, b, c)", "f(b, a, c)"),
    ],
)
def test_what_is_changed_and_into_what(old, new):
    mutant = changes(f"x = g({old})")[old, new]
    assert ast.unparse(ast.parse(mutant.source)) == f"x = g({new})"


def test_only_the_place_itself_is_changed():
    """Comments and characters of several bytes stay where they are."""
    source = "é = 'ü' + f(b +  # why\n  c); d = b + c\n"
    sources = {m.source for m in mutants.find_mutants("m.py", source, ())}
    assert sources == {
        "é = ('ü' - f(b + c)); d = b + c\n",
        "é = 'ü' + f((b - c)); d = b + c\n",
        "é = 'ü' + f(b +  # why\n  c); d = (b - c)\n",
    }


def test_every_module_of_the_catalogue_can_be_changed():
    """And the same changes are drawn twice."""
    drawn = mutants.draw_mutants(each=1)
    assert drawn == mutants.draw_mutants(each=1)
    assert all((mutants.ROOT / "tests" / test).is_file() for m in drawn for test in m.tests)
    modules = mutants.tomllib.loads(mutants.CATALOGUE.read_text(encoding="utf-8"))
    assert {mutant.path for mutant in drawn} == set(modules)


def test_a_mutant_is_caught_by_the_test_that_sees_it(root):
    twice = changes(HALF)["x / 2", "x * 2"]
    limit = mutants.limit_unchanged(twice.tests, root)
    assert 60 < limit < mutants.LIMIT
    assert mutants.run_mutant(twice, limit, root) == "test_half.py::test_half"
    assert mutants.run_mutant(twice._replace(tests=("test_weak.py",)), limit, root) == ""
    endless = twice._replace(source="def half(x):\n    while True:\n        pass\n")
    assert mutants.run_mutant(endless, 5, root) == "no end within 5 s"


def test_no_verdict_comes_of_tests_that_say_nothing(root):
    missing = changes(HALF)["2", "3"]._replace(tests=("test_missing.py",))
    with pytest.raises(RuntimeError, match="pytest"):
        mutants.run_mutant(missing, mutants.LIMIT, root)
    (root / "src/lmcourse/half.py").write_text("def half(x):\n    return 0\n")
    with pytest.raises(RuntimeError, match="fails without any change"):
        mutants.limit_unchanged(("test_half.py",), root)
