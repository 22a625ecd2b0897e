"""The mutation run is worth something only if its verdicts hold."""

import textwrap

import pytest

import mutants
from mutants import Mutant

FILES = {
    "src/lmcourse/__init__.py": "",
    "src/lmcourse/half.py": "def half(x):\n    return x / 2\n",
    "tests/test_half.py": """\
        from pathlib import Path
        from lmcourse.half import half

        def test_half():
            assert half(4) == int((Path(__file__).parents[1] / "data/two").read_text())
        """,
    "tests/test_weak.py": """\
        from lmcourse.half import half

        def test_type():
            assert isinstance(half(4), float)
        """,
    "data/two": "2",
    "pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['slow']\n",
}
TESTS = ("test_half.py",)
TWICE = Mutant("lmcourse/half.py", "scale", "x / 2", "x / 4", TESTS)


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The copy of a repository with one module, two test files and a data folder."""
    monkeypatch.setattr(mutants, "PRELOAD", ("pytest",))
    for name, text in FILES.items():
        path = tmp_path / "repository" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return mutants.make_copy(tmp_path / "copy", tmp_path / "repository")


def test_there_are_enough_mutants_of_every_kind():
    catalogue = mutants.catalogue()
    assert len(set(catalogue)) == len(catalogue) >= 300
    assert {mutant.kind for mutant in catalogue} == mutants.KINDS


@pytest.mark.parametrize("source", ["a = 1\n", "x / 2\nx / 2\n"])
def test_a_mutant_must_apply_exactly_once(source):
    with pytest.raises(ValueError, match="exactly once"):
        TWICE.apply(source)


def test_a_caught_mutant_names_its_test_and_leaves_no_trace(copy, tmp_path):
    assert mutants.run_tests(copy, TESTS) == ""
    assert mutants.run_mutant(copy, TWICE) == "test_half.py::test_half"
    assert mutants.run_mutant(copy, TWICE._replace(tests=("test_weak.py",))) == ""
    for root in (copy, tmp_path / "repository"):
        assert (root / "src/lmcourse/half.py").read_text().endswith("x / 2\n")


@pytest.mark.parametrize(
    ("instead", "said"),
    [
        ("import os\n    os.kill(os.getpid(), 11)", "died of signal 11"),
        ("while True:\n        pass", "no end within 3 s"),
    ],
)
def test_a_mutant_that_crashes_or_never_ends_is_caught(copy, instead, said):
    mutant = TWICE._replace(old="return x / 2", new=instead)
    assert mutants.run_mutant(copy, mutant, limit=3) == said


def test_no_verdict_comes_of_tests_that_say_nothing(copy, tmp_path):
    with pytest.raises(RuntimeError, match="pytest"):
        mutants.run_tests(copy, ("test_missing.py",))
    (copy / "src/lmcourse/half.py").write_text("def half(x):\n    return 0\n")
    with pytest.raises(RuntimeError, match="fails without any change"):
        mutants.time_unchanged([TWICE], [copy])
    (copy / "src" / "lmcourse").rename(tmp_path / "gone")
    with pytest.raises(RuntimeError, match="not the copy"):
        mutants.run_tests(copy, TESTS)


@pytest.mark.parametrize(
    ("caught", "of", "enough"), [(20, 20, True), (19, 20, True), (18, 20, False)]
)
def test_closing_lists_survivors_and_judges(caught, of, enough):
    made = [TWICE._replace(old=f"x{i}") for i in range(of)]
    results = {mutant: "t" if i < caught else "" for i, mutant in enumerate(made)}
    text, verdict = mutants.closing(results)
    assert verdict is enough
    assert text.startswith(f"{caught} of {of} mutants caught")
    assert all((str(mutant) in text) is (not test) for mutant, test in results.items())
