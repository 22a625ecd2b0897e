"""The stored contest of the three families, and the command that makes it."""

import json

import pytest
import torch
from transformers import BertTokenizerFast

from lmbook.bench import families
from lmcourse.families import KINDS, Family
from lmcourse.mini_bert import passages, poem_splits


@pytest.fixture(scope="module")
def stored():
    return json.loads(families.stored_at().read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tokenizer(stored):
    return BertTokenizerFast({piece: i for i, piece in enumerate(stored["vocabulary"])})


def test_every_family_has_every_seed_and_the_same_compute(stored, tokenizer):
    runs = stored["runs"]
    assert {(r["kind"], r["seed"]) for r in runs} == {
        (kind, seed) for kind in KINDS for seed in families.SEEDS
    }
    assert stored["settings"] == families.SETTINGS
    budgets = [run["operations"] for run in runs]
    assert max(budgets) < 1.01 * min(budgets)
    asked = families.blanks(poem_splits()[2], tokenizer, 32, families.PLACES)
    for answers in [*runs, stored["counting"]]:
        assert len(answers["goes on"]) == len(answers["fills"]) == len(asked)
        assert len(answers["vectors"]) == sum(map(len, poem_splits()[1:]))


def test_counting_is_what_is_stored(stored, tokenizer):
    parts = poem_splits()
    asked = families.blanks(parts[2], tokenizer, 32, families.PLACES)
    data = (None, asked, [*parts[1], *parts[2]])
    found = families.counting(data, tokenizer, stored["settings"])
    for name in ("goes on", "fills"):
        assert found[name] == pytest.approx(stored["counting"][name], abs=1e-3)
    both = zip(found["vectors"], stored["counting"]["vectors"], strict=True)
    assert sum(a != b for a, b in both) <= 1  # a tie may fall either way


def test_blanks_stand_inside_passages_of_unseen_poems(tokenizer):
    texts = poem_splits()[2]
    asked = families.blanks(texts, tokenizer, 32, 5)
    assert asked
    for places in asked:
        assert len({at for _, at in places}) == 5
        assert all(6 <= at < len(ids) - 2 for ids, at in places)


def test_a_short_run_is_the_same_again(tokenizer):
    parts = poem_splits()
    ids = [x for text in parts[0][:40] for x in passages(text, tokenizer, 32)]
    asked = families.blanks(parts[2][:6], tokenizer, 32, 1)
    data = (ids, asked, [*parts[1][:8], *parts[1][-8:]])
    settings = families.SETTINGS | {"steps": 3}
    (_, first), (_, again) = (
        families.run("encoder-decoder", 0, data, tokenizer, settings) for _ in range(2)
    )
    assert {**first, "seconds": 0} == {**again, "seconds": 0}
    assert first["steps"] < 3  # two stacks cost more


def test_few_labels_are_both_poets_alike(stored, tokenizer, monkeypatch):
    rows = stored["few labels"]
    assert {r["labels"] for r in rows} == {*families.LABELS}
    assert {r["way"] for r in rows} == {"counting", "pretrained", "from nothing"}
    seen = []

    def see(model, ids, labels, rate, seed):
        seen.append((len(ids), labels.mean().item()))
        return lambda texts: torch.ones(len(texts))

    monkeypatch.setattr(families, "fine_tune", see)
    monkeypatch.setattr(families, "DRAWS", range(1))
    model = Family("encoder", len(tokenizer) + 20)
    families.few_labels([model], poem_splits(), tokenizer, 32)
    assert sorted({number for number, _ in seen}) == [*families.LABELS]
    assert {share for _, share in seen} == {0.5}
