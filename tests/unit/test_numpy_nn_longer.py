"""The stored decoder is the one its record describes, and the command makes such files."""

import json

import numpy as np
import pytest

from lmcourse.numpy_nn import longer
from lmcourse.numpy_nn.decoder import END, START, Decoder, initial_vectors, load


def stored():
    return json.loads((longer.stored_at() / "run.json").read_text(encoding="utf-8"))


def test_the_record_tells_how_it_was_made():
    run = stored()
    record = run["record"]
    assert (record["steps"], record["batch"]) == (longer.STEPS, longer.BATCH)
    assert tuple(record["marks"]) == longer.MARKS
    assert len(run["runs"]) == len(longer.SEEDS) >= 3
    for states in run["runs"]:
        assert len(states) == len(longer.MARKS)
        for state in states:
            looks = np.array(state["looks"])  # (layers, heads, tokens)
            assert looks.shape == (2, 5, 7)
            np.testing.assert_allclose(looks.sum(axis=-1), 1, rtol=0, atol=1e-3)
    warm = record["warm"]
    assert len(run["warm"]) == len(warm["rates"]) * len(warm["seeds"])


def test_the_stored_weights_have_the_recorded_losses():
    model, last = load(longer.stored_at() / "sonnets.safetensors"), stored()["runs"][0][-1]
    encode, (seen, unseen) = model.dictionary.encode, longer.texts()
    known = len(set(seen))
    for name, part in (("trained", seen), ("unseen", unseen)):
        loss = longer.loss_after(model, encode(part), known=known)
        assert loss == pytest.approx(last[name], rel=0.02)  # float16 weights


def test_it_is_small():
    files = list(longer.stored_at().iterdir())
    assert {file.name for file in files} == {"run.json", "sonnets.safetensors"}
    assert sum(file.stat().st_size for file in files) < 2**20


def test_the_command_stores_what_it_trains(tmp_path, monkeypatch):
    monkeypatch.setattr(longer, "stored_at", lambda: tmp_path / "decoder")
    few = {"steps": 2, "warm": 1, "rates": (0.01,), "seeds": (0,)}
    for name, value in {"STEPS": 2, "MARKS": (0, 2), "SEEDS": (0,), "WARM": few}.items():
        monkeypatch.setattr(longer, name, value)
    monkeypatch.setattr(
        longer, "texts", lambda: (list("abcdeabcadeb") * 3 + [START, END],) * 2
    )
    monkeypatch.setattr(longer, "initial_vectors", small_vectors)
    longer.main()
    run = stored_in(tmp_path / "decoder")
    assert [len(states) for states in run["runs"]] == [2]
    assert run["warm"][0].keys() == {"rate", "seed", "0", "1"}
    assert load(tmp_path / "decoder" / "sonnets.safetensors").sizes["heads"] == 5


def small_vectors(seen, unseen):
    vocabulary, _ = initial_vectors(seen, unseen, d_model=2)
    return vocabulary, np.random.default_rng(0).normal(size=(len(vocabulary), 20))


def stored_in(folder):
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def test_where_the_last_word_looks_is_averaged_over_lines():
    vectors = np.random.default_rng(1).normal(size=(6, 20))
    model = Decoder(list("abcdef"), vectors)
    lines = np.array([[0, 1, 2], [3, 4, 5]])
    looks = longer.last_looks(model, lines)
    each = [longer.last_looks(model, line[None]) for line in lines]
    np.testing.assert_allclose(looks, np.mean(each, axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(looks.sum(axis=-1), 1, rtol=0, atol=1e-12)


def test_places_whose_word_is_not_known_are_left_out():
    vectors = np.random.default_rng(2).normal(size=(6, 20))
    model, numbers = Decoder(list("abcdef"), vectors), np.arange(30) % 6
    whole, part = (longer.loss_after(model, numbers, 2, known) for known in (None, 3))
    assert whole == longer.loss_after(model, numbers, 2, 6) != part
