"""A text of the reader's own: how it is cut, what is compared, and what is refused."""

import math

import numpy as np
import pytest
import torch

from lmcourse import own_text, views
from lmcourse.data import load_corpus
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.ngrams import NgramModel

VERSE = "so long as men can breathe or eyes can see\n"
TINY = {"layers": 1, "heads": 1, "d_model": 16, "context": 16, "batch": 4}


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "mine.txt"
    path.write_text(VERSE * 60)
    return own_text.contest(path, steps=30, device="cpu", learning_rate=0.02, **TINY)


def test_a_context_of_one_character_is_a_table_of_pairs():
    torch.manual_seed(0)
    model = GPT(GPTConfig(5, 1, 1, heads=1, d_model=4)).double().eval()
    ids = torch.tensor([3, 1, 4, 1, 0])
    pairs = model(ids[:-1, None])[:, -1].log_softmax(-1)
    wanted = -pairs[torch.arange(4), ids[1:]].detach().numpy()
    np.testing.assert_allclose(own_text.losses(model, ids), wanted, atol=1e-9)


@pytest.mark.parametrize("length", [1000, 1234, 54_321, 1_000_000])
def test_parts_are_the_text_and_are_spread(length):
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 1000))) * (length // 1000 + 1)
    text = text[:length]
    parts = own_text.parts_of(text)
    assert sum(map(len, parts)) == length
    assert sorted("".join(parts)) == sorted(text)
    assert len(parts.validation) == len(parts.test) <= min(length // 10, 20_000)
    assert len(parts.test) >= min(length // 11, 19_000)
    piece = parts.test[:100]
    assert piece in text
    assert text[-100:] in parts.test  # the end is judged, too


def test_the_best_order_is_chosen_on_held_out_text():
    ids = np.random.default_rng(0).integers(0, 5, 3000)
    noise = own_text.best_ngrams(ids[:2000], ids[2000:], 5)
    assert noise.order == 1
    cycle = np.tile([0, 1, 2, 1, 3, 1], 400)
    assert own_text.best_ngrams(cycle[:2000], cycle[2000:], 5).order >= 2
    huge = np.arange(2000) % 1500
    assert 1 <= own_text.best_ngrams(huge, huge, 1500).order <= 5  # 63 bits name no longer


def test_each_character_is_predicted_once_from_half_a_context_at_least():
    torch.manual_seed(0)
    model = GPT(GPTConfig(7, 8, 1, heads=1, d_model=8)).double().eval()
    ids = torch.randint(7, (45,))
    losses = own_text.losses(model, ids)
    assert len(losses) == 44
    for at, loss in enumerate(losses, 1):
        start = 0 if at <= 8 else (at - 5) // 4 * 4
        assert at <= 8 or 4 < at - start <= 8
        logits = model(ids[None, start:at])[0, -1]
        assert loss == pytest.approx(-logits.log_softmax(-1)[ids[at]].item(), abs=1e-9)


def test_both_are_judged_on_the_same_characters(mine):
    parts = own_text.parts_of(VERSE * 60)
    tokenizer = mine.tokenizer
    assert mine.characters == len(parts.test) - 1
    ids = tokenizer.encode(parts.test)
    counted = NgramModel(
        tokenizer.encode(parts.training), mine.ngrams.order, tokenizer.vocab_size
    )
    wanted = -np.log(counted.probabilities(ids)[1:]).mean()
    assert mine.table.loss["n-grams"] == pytest.approx(wanted)
    assert mine.table.loss["GPT"] == pytest.approx(
        own_text.losses(mine.model, torch.tensor(ids)).mean()
    )
    assert mine.table.loss["GPT"] < math.log(tokenizer.vocab_size)
    assert (mine.samples(40)["it writes"].map(len) == 40).all()
    assert set("".join(mine.samples(40)["it writes"])) <= set(VERSE)


def test_the_file_is_a_model_of_the_course(mine, tmp_path):
    path = tmp_path / "my-gpt.safetensors"
    mine.save(path)
    tokenizer, model, _ = load_gpt(path, device="cpu")
    ids = torch.tensor([tokenizer.encode(VERSE[:16])])
    assert tokenizer.alphabet == mine.tokenizer.alphabet
    torch.testing.assert_close(model(ids), mine.model.cpu()(ids))


def test_a_gpt_that_grows_worse_is_taken_at_its_best(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text(VERSE * 60)
    wild = TINY | {"learning_rate": 3.0, "warmup": 29}
    result = own_text.contest(path, steps=30, device="cpu", **wild)
    assert result.history["validation loss"].iloc[-1] > 4
    assert result.table.loss["GPT"] < 4


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"a" * 5000, "one character"),
        ("日".encode() * 5000, "one character"),
        (VERSE.encode(), "1,000 are the least"),
        ("é".encode("latin-1") * 5000, "UTF-8"),
        (bytes(range(256)) * 20, "UTF-8"),
        (VERSE.encode() * 60 + b"\0", "NUL"),
    ],
)
def test_what_cannot_be_learned_is_told(tmp_path, content, words):
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words):
        own_text.contest(path, steps=2, **TINY)


def test_the_view_counts_the_sonnets_and_stores_what_it_counts():
    text = load_corpus("sonnets")[:20_000]
    view = views.own_text(text)
    parts = own_text.parts_of(text)
    alphabet = sorted(set(text))
    first, last = ([alphabet.index(c) for c in part] for part in parts[:2])
    loss = NgramModel(first, 3, len(alphabet)).loss(last)
    assert f'<th scope="row">3-grams</th><td>{loss:.2f}</td>' in view.stored
    assert f"{len(parts.test) - 1:,} other held-out characters" in view.stored
    assert view.stores == ["sonnets"]
