"""A browser for the tests: found, fetched, or told how to get one."""

import json
import os
import subprocess

import pytest

from lmbook import browser
from lmbook.execute.keys import ROOT


@pytest.fixture(autouse=True)
def without_chromium(tmp_path, monkeypatch):
    """A machine without Chromium."""
    browser.find_chromium.cache_clear()
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(browser, "NAMES", ("chromium-of-the-tests",))
    monkeypatch.setattr(browser, "MAC", str(tmp_path / "none"))
    monkeypatch.setattr(browser, "FETCHED", tmp_path / "fetched")
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    yield
    browser.find_chromium.cache_clear()


def program(path, status=0):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\nexit {status}\n")
    path.chmod(0o755)
    return str(path)


def test_the_first_that_starts_is_taken(tmp_path, monkeypatch):
    fetched = program(browser.FETCHED / "start")
    program(tmp_path / "chromium-of-the-tests", status=127)  # it lacks a library, say
    assert browser.find_chromium() == fetched
    browser.find_chromium.cache_clear()
    on_path = program(tmp_path / "chromium-of-the-tests")
    assert browser.find_chromium() == on_path
    browser.find_chromium.cache_clear()
    monkeypatch.setenv("CHROMIUM", program(tmp_path / "own"))
    assert browser.find_chromium() == str(tmp_path / "own")


def test_a_choice_that_does_not_start_is_told_and_nothing_is_fetched(monkeypatch, capsys):
    monkeypatch.setenv("CHROMIUM", "/nowhere")
    monkeypatch.setattr(browser, "fetch", lambda: pytest.fail("it fetches"))
    assert browser.main() == 1
    assert "CHROMIUM is /nowhere; it does not start" in capsys.readouterr().out


@pytest.mark.parametrize("machine", ["x86_64", "arm64"])
def test_where_none_can_be_had_the_end_says_what_did_not_run(machine, monkeypatch, capsys):
    def fail():
        tried.append(machine)
        raise OSError("npm could not")

    tried = []
    monkeypatch.setattr(browser.platform, "system", lambda: "Linux")
    monkeypatch.setattr(browser.platform, "machine", lambda: machine)
    monkeypatch.setattr(browser, "fetch", fail)
    monkeypatch.setattr(browser, "_fetch_playwright", lambda: tried.append("playwright"))
    assert browser.main() == 1
    ways = ["x86_64", "playwright"] if machine == "x86_64" else ["playwright"]
    assert tried == ways
    output = capsys.readouterr().out
    assert "apt-get install chromium" in output
    assert output.endswith("NOT RUN: the tests of tests/site that open pages, make pdf.\n")


@pytest.mark.parametrize(("target", "goes_on"), [("test", True), ("pdf", False)])
def test_all_other_tests_run_without_one_and_no_book_is_printed(tmp_path, target, goes_on):
    """With a Python that finds no browser, and notes what it is called with."""
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\necho "$*" >> {tmp_path}/called\n[ "$2" != lmbook.browser ]\n'
    )
    python.chmod(0o755)
    built = [word for what in (".venv/.installed", "html") for word in ("--old-file", what)]
    make = ["make", "--no-print-directory", *built, target, f"PY={python}"]
    done = subprocess.run(make, cwd=ROOT, capture_output=True, env=os.environ)
    called = [line.split()[1] for line in (tmp_path / "called").read_text().splitlines()]
    then = {"test": "pytest", "pdf": "lmbook.publish.paper"}[target]
    assert "lmbook.browser" in called
    assert (then in called, done.returncode == 0) == (goes_on, goes_on)


def test_what_is_fetched_is_locked_by_its_hash():
    lock = json.loads((browser.LOCK / "package-lock.json").read_text(encoding="utf-8"))
    packages = [entry for path, entry in lock["packages"].items() if path]
    assert all(entry["integrity"].startswith("sha512-") for entry in packages)
