"""The mutation run is worth something only if its changes apply and its verdicts hold."""

import ast
import json
import re
import subprocess
import sys
import textwrap

import pytest
import yaml

import colab_shape
import mutants
from lmbook.publish.notebooks import _install_cell
from mutants import Mutant

CATALOGUE = mutants.catalogue()
WORKFLOWS = sorted((mutants.ROOT / ".github" / "workflows").glob("*.yml"))


def source_of(mutant):
    return (mutants.ROOT / mutants.PACKAGE / mutant.path).read_text(encoding="utf-8")


# --- the catalogue --------------------------------------------------------------------


@pytest.mark.parametrize("mutant", CATALOGUE, ids=str)
def test_a_mutant_applies_and_is_another_program(mutant):
    source = source_of(mutant)
    assert ast.dump(ast.parse(mutant.apply(source))) != ast.dump(ast.parse(source))


def test_there_are_enough_mutants_of_every_kind():
    assert len(set(CATALOGUE)) == len(CATALOGUE) >= 40
    assert {mutant.kind for mutant in CATALOGUE} == mutants.KINDS


def test_tests_named_exist_and_are_of_behaviour():
    named = {name for mutant in CATALOGUE for name in mutant.tests}
    assert all((mutants.ROOT / "tests" / name).is_file() for name in named)
    assert "test_same_code.py" not in named


@pytest.mark.parametrize("source", ["a = 1\n", "x = 1\nx = 1\n"])
def test_a_mutant_must_apply_exactly_once(source):
    with pytest.raises(ValueError, match="exactly once"):
        Mutant("m.py", "sign", "x = 1", "x = -1", ()).apply(source)


# --- the tool, on a package of two lines ----------------------------------------------


@pytest.fixture
def checkout(tmp_path):
    """Make a repository with one module, two test files and a data folder."""
    root = tmp_path / "repository"
    files = {
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
        "_build/junk": "",
        ".git/config": "",
        "pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['slow']\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return root


@pytest.fixture
def copy(checkout, tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "PRELOAD", ("pytest",))
    return mutants.make_copy(tmp_path / "copy", checkout)


TWICE = Mutant("lmcourse/half.py", "scale", "x / 2", "x / 4", ("test_half.py",))


def test_a_copy_has_what_the_tests_need(copy):
    assert {entry.name for entry in copy.iterdir()} == {
        *("src", "tests", "data", "pyproject.toml")
    }
    assert not (copy / "src").is_symlink()


def test_an_import_of_another_copy_is_refused(copy, tmp_path):
    (copy / "src" / "lmcourse").rename(tmp_path / "gone")
    with pytest.raises(RuntimeError, match="not the copy"):
        mutants.run_tests(copy, ("test_half.py",))


def test_a_caught_mutant_names_its_test_and_leaves_no_trace(copy, checkout):
    before = (copy / "src/lmcourse/half.py").read_text()
    assert mutants.run_tests(copy, ("test_half.py",)) == ""
    assert mutants.run_mutant(copy, TWICE) == "test_half.py::test_half"
    assert (copy / "src/lmcourse/half.py").read_text() == before
    assert (checkout / "src/lmcourse/half.py").read_text() == before


def test_a_mutant_that_weak_tests_let_through_survives(copy):
    weak = Mutant("lmcourse/half.py", "scale", "x / 2", "x / 4", ("test_weak.py",))
    assert mutants.run_mutant(copy, weak) == ""


def test_a_mutant_that_crashes_is_caught(copy):
    crash = "import os\n    os.kill(os.getpid(), 11)"
    place = ("lmcourse/half.py", "off by one", "return x / 2")
    mutant = Mutant(*place, crash, ("test_half.py",))
    assert mutants.run_mutant(copy, mutant) == "died of signal 11"


def test_a_mutant_that_never_ends_is_caught(copy):
    endless = "while True:\n        pass"
    mutant = Mutant(
        "lmcourse/half.py", "off by one", "return x / 2", endless, ("test_half.py",)
    )
    assert mutants.run_mutant(copy, mutant, limit=3) == "no end within 3 s"


def test_no_tests_is_an_error_and_not_a_catch(copy):
    with pytest.raises(RuntimeError, match="pytest"):
        mutants.run_tests(copy, ("test_missing.py",))


def test_tests_that_fail_unchanged_stop_the_run(copy):
    (copy / "src/lmcourse/half.py").write_text("def half(x):\n    return 0\n")
    with pytest.raises(RuntimeError, match="fails without any change"):
        mutants.time_unchanged([TWICE], [copy])


@pytest.mark.parametrize(
    ("caught", "of", "enough"), [(20, 20, True), (19, 20, True), (18, 20, False)]
)
def test_closing_lists_survivors_and_judges(caught, of, enough):
    made = [Mutant("m.py", "sign", f"x{i}", "y", ()) for i in range(of)]
    results = {mutant: "t" if i < caught else "" for i, mutant in enumerate(made)}
    text, verdict = mutants.closing(results)
    assert verdict is enough
    assert text.startswith(f"{caught} of {of} mutants caught")
    assert all((str(mutant) in text) is (not test) for mutant, test in results.items())


# --- the Colab-shaped run -------------------------------------------------------------


def notebook(path, source):
    cells = [
        {"cell_type": "markdown", "source": ["words"]},
        {"cell_type": "code", "source": source.splitlines(keepends=True)},
        {"cell_type": "code", "source": ["1 + 1"]},
    ]
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return path


def test_the_first_cell_is_run_with_the_wheel_that_is_here(tmp_path):
    wheel = tmp_path / "lmcourse-1-py3-none-any.whl"
    for address in (wheel.name, f"https://example.org/{wheel.name}"):
        source = _install_cell(address).source
        one, two = (notebook(tmp_path / name, source) for name in ("a.ipynb", "b.ipynb"))
        found = colab_shape.first_cell([one, two], wheel)
        assert found == _install_cell(wheel.name).source
    with pytest.raises(ValueError, match=f"want https://.*{wheel.name}, not other"):
        colab_shape.first_cell([one], tmp_path / "other.whl")
    notebook(two, source.replace("bertviz", "birdviz"))
    with pytest.raises(ValueError, match="first cells differ"):
        colab_shape.first_cell([one, two], wheel)


def test_the_cell_believes_that_it_is_in_colab():
    asked = "assert 'google.colab' in sys.modules"
    subprocess.run([sys.executable, "-c", f"{colab_shape.IN_COLAB}\n{asked}"], check=True)


def test_the_guard_lets_only_this_machine_be_reached(tmp_path):
    (tmp_path / "offline_guard.py").write_text(colab_shape.OFFLINE, encoding="utf-8")
    program = """
        import socket
        import offline_guard

        server = socket.create_server(("127.0.0.1", 0))
        socket.create_connection(server.getsockname()).close()
        for reach in (
            lambda: socket.socket().connect(("192.0.2.1", 80)),
            lambda: socket.getaddrinfo("example.org", 80),
        ):
            try:
                reach()
            except OSError as error:
                assert "no network here" in str(error), error
            else:
                raise AssertionError("reached")
        """
    code = textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, timeout=60)
    assert done.returncode == 0


# --- the workflows --------------------------------------------------------------------


def workflow(path):
    """Parse a workflow; YAML 1.1 reads its key ``on`` as true."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_workflows_are_there():
    names = ["colab.yml", "site.yml", "tests.yml", "weekly.yml"]
    assert [path.name for path in WORKFLOWS] == names


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_do_little_and_not_for_long(path):
    parsed = workflow(path)
    assert parsed["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in path.read_text(encoding="utf-8")
    assert parsed["concurrency"]["group"]
    for job in parsed["jobs"].values():
        assert 0 < job["timeout-minutes"] <= 90


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_commits_of_github_itself(path):
    """A tag may be moved to another commit; the release that it was stands beside it."""
    used = re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))
    assert used
    for action in used:
        assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)


def test_rights_to_write_are_where_they_are_needed():
    written = {
        (path.stem, name): job["permissions"]
        for path in WORKFLOWS
        for name, job in workflow(path)["jobs"].items()
        if "permissions" in job
    }
    assert written == {
        ("site", "publish"): {"contents": "write"},
        ("weekly", "report"): {"issues": "write"},
    }


def test_pushing_jobs_run_on_main_only_and_checkouts_keep_no_token():
    publish = workflow(WORKFLOWS[1])["jobs"]["publish"]
    assert publish["if"] == "github.ref == 'refs/heads/main'"
    for path in WORKFLOWS:
        for job in workflow(path)["jobs"].values():
            for step in job["steps"]:
                if step.get("uses", "").startswith("actions/checkout@"):
                    assert step["with"]["persist-credentials"] is False


def test_tests_run_on_both_systems_and_every_python():
    matrix = workflow(WORKFLOWS[2])["jobs"]["tests"]["strategy"]["matrix"]
    assert [system.split("-")[0] for system in matrix["os"]] == ["ubuntu", "macos"]
    assert matrix["python"] == ["3.11", "3.12", "3.13"]
