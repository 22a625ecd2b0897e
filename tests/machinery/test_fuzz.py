"""A sample of the files that ``make fuzz`` damages; and that it sees what is wrong."""

import ast
import os
import signal
import subprocess
import sys

import pytest

import fuzz


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_damaged_files_are_refused_by_name_or_load_as_they_are(kind):
    # In a process of its own, which forks before PyTorch has started threads: in a fork of
    # a process that has computed on several, computing may wait for ever.
    command = [sys.executable, fuzz.__file__, "--count", "60", kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = ast.literal_eval(done.stdout.removeprefix(kind).strip())
    assert sum(counts.values()) == 60
    assert counts.pop("loaded ") > 0
    assert counts
    assert all(what.startswith("refused ") for what in counts)


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (lambda folder: os.kill(os.getpid(), signal.SIGSEGV), "the process died: -11"),
        (lambda folder: bytearray(10 * fuzz.MEMORY), "MemoryError"),
        (lambda folder: {}["a"], "KeyError"),
        (lambda folder: int("x"), "does not name the file"),
    ],
)
def test_whatever_else_happens_is_counted_as_wrong(monkeypatch, load, said):
    def check(folder):
        if folder.name == "copy":  # the whole one loads
            load(folder)

    monkeypatch.setitem(fuzz.KINDS, "corpus", (fuzz.make_corpus, check))
    results = fuzz.fuzz("corpus", range(5))
    assert sorted(results) == [*range(5)]
    assert all(verdict == "WRONG" and said in why for verdict, why in results.values())


def test_a_load_that_hangs_is_counted_as_wrong(monkeypatch):
    monkeypatch.setattr(fuzz, "SLOW", 0.3)

    def check(folder):
        if folder.name == "copy":
            signal.pause()

    monkeypatch.setitem(fuzz.KINDS, "corpus", (fuzz.make_corpus, check))
    assert fuzz.fuzz("corpus", range(2)) == dict.fromkeys(range(2), ("WRONG", "it hangs"))
