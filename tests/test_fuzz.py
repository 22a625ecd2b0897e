"""A sample of the files that ``make fuzz`` damages; and that it sees what is wrong."""

import os
import signal

import pytest
import torch

import fuzz


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_damaged_files_are_refused_by_name_or_load_as_they_are(kind):
    results = fuzz.fuzz(kind, range(60))
    assert len(results) == 60
    wrong = {seed: why for seed, (verdict, why) in results.items() if verdict == "WRONG"}
    assert not wrong, next(iter(wrong.values()))
    assert {verdict for verdict, _ in results.values()} == {"loaded", "refused"}


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


def test_a_process_that_has_computed_on_two_threads_can_be_forked(monkeypatch):
    monkeypatch.setattr(fuzz, "SLOW", 20)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        torch.ones(600, 600) @ torch.ones(600, 600)
        results = fuzz.fuzz("checkpoint", range(2, 8, 5))  # two that load far enough
    finally:
        torch.set_num_threads(threads)
    assert "it hangs" not in {why for _, why in results.values()}
