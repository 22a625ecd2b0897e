"""What runs on GitHub may do little, and not for long; and what it leads to."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / ".github" / "workflows"
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.yml")}
WORKFLOWS = {name: yaml.safe_load(text) for name, text in TEXTS.items()}
each = pytest.mark.parametrize("name", sorted(TEXTS))


@each
def test_a_workflow_may_do_little_and_not_for_long(name):
    parsed = WORKFLOWS[name]
    assert parsed["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in TEXTS[name]
    assert parsed["concurrency"]["group"]
    for job in parsed["jobs"].values():
        assert 0 < job["timeout-minutes"] <= 360
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


@each
def test_actions_are_commits_of_github_itself(name):
    """A tag may be moved to another commit; the release that it was stands beside it."""
    actions = re.findall(r"uses: (.+)", TEXTS[name])
    assert actions
    for action in actions:
        assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)


def test_rights_to_write_are_where_they_are_needed():
    jobs = {(n, job): how for n, w in WORKFLOWS.items() for job, how in w["jobs"].items()}
    written = {job: how["permissions"] for job, how in jobs.items() if "permissions" in how}
    pages = {"contents": "write", "pages": "write", "id-token": "write"}
    assert written == {
        ("book", "publish"): pages,
        ("weekly", "report"): {"issues": "write"},
    }
    wanted = "github.ref_name == github.event.repository.default_branch"
    assert jobs["book", "publish"]["if"].endswith(wanted)


def test_what_passed_is_published_and_waits_for_nothing_else():
    jobs = WORKFLOWS["book"]["jobs"]
    assert jobs["tests"]["needs"] == "build"
    assert jobs["publish"]["needs"] == "tests"
    started = [name for name, w in WORKFLOWS.items() if "push" in w[True]]  # YAML's "on"
    assert started == ["book"]


# --- tests that shut programs in ---------------------------------------------------------

TESTS = ("make test", "make steady")
TESTED = [
    (name, job)
    for name, workflow in WORKFLOWS.items()
    for job, how in workflow["jobs"].items()
    if how["runs-on"].startswith("ubuntu")
    and any(command in step.get("run", "") for step in how["steps"] for command in TESTS)
]


def test_the_jobs_that_test_are_known():
    """Else the tests below would have nothing to do, and nobody would see it."""
    assert {("book", "tests"), ("weekly", "steady")} <= set(TESTED)


def rehearse(name, job, folder, status):
    """Run a job's steps that ask for rights, with a ``sudo`` that does nothing.

    ``status`` : the exit status of ``sudo``. Returned is what it was asked for; and the
    environment variables, by name, that the job's tests then see.
    """
    asked, exported = folder / "asked", folder / "exported"
    sudo = folder / "sudo"
    sudo.write_text(f'#!/bin/sh\necho "$@" >> {asked}\nexit {status}\n')
    sudo.chmod(0o700)
    exported.touch()
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "GITHUB_ENV": str(exported)}
    for step in WORKFLOWS[name]["jobs"][job]["steps"]:
        if any(command in step.get("run", "") for command in TESTS):
            break
        if "sudo" in step.get("run", ""):
            subprocess.run(["bash", "-e", "-c", step["run"]], env=environment, check=True)
    variables = WORKFLOWS[name].get("env", {}) | WORKFLOWS[name]["jobs"][job].get("env", {})
    lines = exported.read_text().splitlines()
    return asked.read_text(), variables | dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize(("name", "job"), TESTED)
def test_tests_on_linux_may_shut_programs_in_and_must(name, job, tmp_path):
    asked, variables = rehearse(name, job, tmp_path, 0)
    assert "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" in asked
    assert variables["LMBOOK_NEED_SANDBOX"]


@pytest.mark.parametrize(("name", "job"), TESTED)
def test_where_that_is_refused_the_book_is_published_and_the_weekly_run_tells(
    name, job, tmp_path
):
    _, variables = rehearse(name, job, tmp_path, 1)
    assert ("LMBOOK_NEED_SANDBOX" in variables) == (name == "weekly")


# --- the branch with the notebooks, in a repository on disk -----------------------------


def git(*words):
    return subprocess.run(["git", *map(str, words)], check=True, capture_output=True).stdout


@pytest.fixture
def remote(tmp_path):
    """An empty repository, as a fork is before anything was published."""
    git("init", "--bare", "--quiet", tmp_path / "remote.git")
    return tmp_path / "remote.git"


@pytest.fixture
def publish(tmp_path, remote):
    def run(commit, text, wheel):
        built = tmp_path / f"built-{commit}"
        (built / "executed").mkdir(parents=True, exist_ok=True)
        (built / wheel).write_text(text)
        for folder in (built, built / "executed"):
            (folder / "mini-gpt.ipynb").write_text(text)
        done = [FOLDER.parent / "notebooks.sh", built, remote, commit]
        return subprocess.run(["bash", *done], capture_output=True, text=True)

    return run


def held(remote):
    return git("-C", remote, "ls-tree", "-r", "--name-only", "gh-pages").decode().split()


def test_two_publications_keep_both_commits_and_the_older_wheel(remote, publish, tmp_path):
    assert publish("aaa1", "old", "lmcourse-1.whl").returncode == 0
    clone = tmp_path / "clone"
    git("clone", "--quiet", "--branch", "gh-pages", remote, clone)
    (clone / "CNAME").write_text("book.example")
    named = ["-c", "user.name=a", "-c", "user.email=a@b"]
    git("-C", clone, "add", "CNAME")
    git("-C", clone, *named, "commit", "--quiet", "-m", "A domain of our own")
    git("-C", clone, "push", "--quiet")
    assert publish("bbb2", "new", "lmcourse-2.whl").returncode == 0
    notebooks = {
        f"{c}/{f}mini-gpt.ipynb"
        for c in ("aaa1", "bbb2", "latest")
        for f in ("", "executed/")
    }
    wheels = {"notebooks/lmcourse-1.whl", "notebooks/lmcourse-2.whl"}
    assert {*held(remote)} == notebooks | wheels | {"CNAME", ".nojekyll", "commits.txt"}
    texts = {
        c: git("-C", remote, "show", f"gh-pages:{c}/mini-gpt.ipynb")
        for c in ("aaa1", "bbb2", "latest")
    }
    assert texts == {"aaa1": b"old", "bbb2": b"new", "latest": b"new"}
    assert git("-C", remote, "show", "gh-pages:CNAME") == b"book.example"
    assert git("-C", remote, "rev-list", "--count", "gh-pages").strip() == b"1"


def test_a_commit_published_again_and_many_commits(remote, publish, tmp_path):
    for number in (*range(22), 21):
        assert publish(f"{number:x}f", "x", f"lmcourse-{number}.whl").returncode == 0
    folders = {path.partition("/")[0] for path in held(remote) if path.endswith(".ipynb")}
    assert folders == {f"{number:x}f" for number in range(2, 22)} | {"latest"}
    assert sum(path.endswith(".whl") for path in held(remote)) == 22


def test_a_remote_that_cannot_be_asked_is_not_taken_for_an_empty_one(publish, remote):
    remote.rename(remote.with_name("gone"))
    done = publish("aaa1", "old", "lmcourse-1.whl")
    assert done.returncode != 0
    assert "remote.git" in done.stderr
