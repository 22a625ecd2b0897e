"""Three families on one block: who sees what, what is asked, and fine-tuning."""

import math

import pytest
import torch
import torch.nn.functional as F

from letters import PIECES, letters_tokenizer, random_letters
from lmcourse import families
from lmcourse.families import KINDS, SENTINELS, Family
from lmcourse.masking import corrupt_spans, mask_tokens
from near import near

SIZE = len(PIECES) + SENTINELS


@pytest.fixture(scope="module")
def tokenizer():
    return letters_tokenizer()


def family(kind):
    """Return a small one whose weights all do something, in float64."""
    torch.manual_seed(0)
    model = Family(kind, SIZE, d_model=12, heads=3, dropout=0.0).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    return model.double()


def texts(rows=4):
    return random_letters(rows, 12)


def test_who_sees_what():
    ids = texts()
    later, padded = ids.clone(), F.pad(ids, (0, 3))
    later[1, 7] = 24 if ids[1, 7] != 24 else 23
    for kind in KINDS:
        model = family(kind)
        moved = (model.read(later) - model.read(ids)).abs().amax(-1)[1]
        assert (moved[:7].max() < 1e-12) == (kind == "decoder")
        assert moved[7:].min() > 1e-9
        states = model.read(ids)
        near(model.read(padded)[:, :12], states)
        assert torch.isfinite(states).all()


def test_what_is_written_sees_what_was_read_and_what_stands_before():
    model, ids = family("encoder-decoder"), texts()
    written = torch.tensor([[25, 6, 7, 26]]).expand(4, 4)
    later, other = written.clone(), ids.clone()
    later[:, 2] = 8
    other[:, 5] = torch.where(ids[:, 5] == 9, 10, 9)
    start = model(ids, written)
    moved = (model(ids, later) - start).abs().amax(-1)
    assert moved[:, :2].max() < 1e-12
    assert moved[:, 2:].min() > 1e-9
    assert (model(other, written) - start).abs().amax(-1).min() > 1e-9
    padded = F.pad(ids, (0, 3))
    near(model(padded, written), start)


def test_each_is_asked_what_its_family_is_asked(tokenizer):
    ids = texts()

    def asked(kind):
        generator = torch.Generator().manual_seed(5)
        model = family(kind)
        return model, families.family_loss(model, ids, tokenizer, generator, 0.4)

    model, loss = asked("decoder")
    want = F.cross_entropy(model(ids[:, :-1]).mT, ids[:, 1:], ignore_index=0)
    torch.testing.assert_close(loss, want)
    model, loss = asked("encoder")
    generator = torch.Generator().manual_seed(5)
    given, chosen = mask_tokens(ids, tokenizer, generator, 0.4)
    torch.testing.assert_close(loss, F.cross_entropy(model(given)[chosen], ids[chosen]))
    model, loss = asked("encoder-decoder")
    generator, total, count = torch.Generator().manual_seed(5), 0, 0
    names = range(len(PIECES), SIZE)
    for row in ids:  # one by one, without padding
        source, target = corrupt_spans(row[row != 0], names, generator, 0.4)
        logits = model(source[None], target[None, :-1])[0]
        total += F.cross_entropy(logits, target[1:], reduction="sum")
        count += len(target) - 1
    torch.testing.assert_close(loss, total / count)


@pytest.mark.parametrize("kind", KINDS)
def test_at_first_it_knows_nothing_and_no_block_adds_anything(tokenizer, kind):
    generator = torch.Generator().manual_seed(0)
    loss = families.family_loss(Family(kind, SIZE), texts(), tokenizer, generator, 0.4)
    assert loss.item() == pytest.approx(math.log(SIZE), abs=0.3)


def test_an_unknown_family_is_refused():
    with pytest.raises(ValueError, match="no family 'decoders'; there are: decoder, enc"):
        Family("decoders", 30)


def test_an_encoder_decoder_asks_for_what_it_has_written():
    model = Family("encoder-decoder", 6, d_model=12, heads=3)
    with pytest.raises(ValueError, match="needs `written`"):
        model(torch.tensor([[1, 2]]))
