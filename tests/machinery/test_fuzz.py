"""``make fuzz`` sees what is wrong."""

import os
import signal

import pytest

import fuzz


def on_damage(monkeypatch, load):
    """Let only the whole files load."""

    def check(folder):
        if folder.name == "copy":
            load(folder)

    monkeypatch.setitem(fuzz.KINDS, "corpus", (fuzz.make_corpus, check))


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
    on_damage(monkeypatch, load)
    results = fuzz.fuzz("corpus", range(5))
    assert sorted(results) == [*range(5)]
    assert all(verdict == "WRONG" and said in why for verdict, why in results.values())


def test_a_load_that_hangs_is_counted_as_wrong(monkeypatch):
    monkeypatch.setattr(fuzz, "SLOW", 0.3)
    on_damage(monkeypatch, lambda folder: signal.pause())
    assert fuzz.fuzz("corpus", range(2)) == dict.fromkeys(range(2), ("WRONG", "it hangs"))
