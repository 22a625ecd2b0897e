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
    "tests/test_weak.py": "from lmcourse.half import half\ndef test_it(): half(4)\n",
    "data/two": "2",
    "pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['slow']\n",
}
TWICE = Mutant("lmcourse/half.py", "scale", "x / 2", "x / 4", ("test_half.py",))


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A repository with one module, two test files and a data folder."""
    monkeypatch.setattr(mutants, "PRELOAD", ("pytest",))
    monkeypatch.setattr(mutants, "LIMIT", 5)
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return tmp_path


def test_the_catalogue_is_of_every_kind():
    catalogue = mutants.catalogue()
    assert len(set(catalogue)) == len(catalogue) >= 300
    assert {mutant.kind for mutant in catalogue} == mutants.KINDS


def test_a_mutant_is_caught_by_the_test_that_sees_it(root):
    mutants.check_unchanged(TWICE.tests, root)
    assert mutants.run_mutant(TWICE, root) == "test_half.py::test_half"
    assert mutants.run_mutant(TWICE._replace(tests=("test_weak.py",)), root) == ""
    endless = TWICE._replace(old="return x / 2", new="while True:\n        pass")
    assert mutants.run_mutant(endless, root) == "no end within 5 s"
    with pytest.raises(ValueError, match="exactly once"):
        mutants.run_mutant(TWICE._replace(old="x"), root)


def test_no_verdict_comes_of_tests_that_say_nothing(root):
    with pytest.raises(RuntimeError, match="pytest"):
        mutants.run_mutant(TWICE._replace(tests=("test_missing.py",)), root)
    (root / "src/lmcourse/half.py").write_text("def half(x):\n    return 0\n")
    with pytest.raises(RuntimeError, match="fails without any change"):
        mutants.check_unchanged(TWICE.tests, root)
