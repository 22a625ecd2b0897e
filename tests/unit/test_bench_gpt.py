"""The benchmark of training: three contenders by turns."""

import json

import pytest
import torch

from lmbook.bench import gpt


def die():
    raise SystemExit(3)


def test_gpt_crossing():
    history = [{"step": s, "val_loss": 3 - s, "seconds": 10 * s} for s in range(3)]
    assert gpt.crossing(history, 1.5) == (2, 20)
    assert gpt.crossing(history, 2) == (1, 10)
    assert gpt.crossing(history, 0.5) is None


def test_gpt_compares_by_turns(tmp_path, capsys, monkeypatch):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("the cat sat on the mat and the dog sat on the cat. " * 60)
    # Any model reaches this at its first estimate after training.
    arguments = ["--corpus", str(corpus), "--target", "2.5", "--threads", "1"]
    monkeypatch.setattr(gpt, "beside", lambda text, n: {"threads": n, "times_slower": 1.0})
    assert gpt.main([*arguments, "--without", "short"]) == 0
    *table, last = capsys.readouterr().out.splitlines()[4:]
    assert [line.split()[:2] for line in table[1:]] == [
        ["plain", "True"],
        ["classic", "True"],
        ["fast", "True"],
    ]
    said = json.loads(last)
    assert said["target"] == 2.5
    assert said["plain_arrived"]
    assert said["fast_times_sooner"] > 0
    assert said["classic_step_ratio"] > 0


def test_gpt_beside_a_busy_process(tmp_path, capsys, monkeypatch):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("the cat sat on the mat and the dog sat on the cat. " * 60)
    measure, threads = gpt.beside, torch.get_num_threads()
    monkeypatch.setattr(gpt, "beside", lambda text, n: measure(text, n, seconds=0.05))
    try:
        assert gpt.main(["--corpus", str(corpus), "--busy"]) == 0
    finally:
        torch.set_num_threads(threads)
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(said["times_slower"]) == ["1", "2"]
    assert min(said["times_slower"].values()) > 0


def test_gpt_without_its_corpus(capsys):
    assert gpt.main(["--corpus", "nowhere.txt"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: there is no corpus or file 'nowhere.txt'")


def test_gpt_tells_of_a_death():
    with pytest.raises(RuntimeError, match="the process that trains 'mine' died"):
        gpt.compete({"mine": (die,)}, 1, None)
