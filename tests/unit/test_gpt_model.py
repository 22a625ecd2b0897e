"""The GPT against MultiHeadAttention, written-out sizes and plain loops.

Against GPT-2 of ``transformers``: ``test_gpt_gpt2.py``.
"""

import json
import math
from dataclasses import asdict
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from lmcourse import positions
from lmcourse.attention import MultiHeadAttention, causal_mask
from lmcourse.gpt.generation import beam_search, generate
from lmcourse.gpt.inside import states
from lmcourse.gpt.model import GPT, CausalAttention, GPTConfig, ngram_rows
from lmcourse.positions import frequencies, rotate, rotations
from near import near

BATCH, TOKENS, VOCAB, CONTEXT, LAYERS, HEADS, D_MODEL = 5, 7, 11, 9, 3, 2, 12
SIZES = {"vocab_size": VOCAB, "context": CONTEXT}
SIZES |= {"layers": LAYERS, "heads": HEADS, "d_model": D_MODEL}
KINDS = pytest.mark.parametrize(
    "options",
    [
        {},
        {"positions": "rotary"},
        {"ngrams": (13, 17)},
        {"ngrams": (1,)},
        {"previous_tokens": 2, "tied": False, "activation": "relu_squared"},
    ],
    ids=["learned", "rotary", "ngrams", "one row", "untied, previous tokens"],
)


def shuffled(module, std=0.3):
    """Give every parameter a random value: zeros and ones would hide a swap."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=std)
    return module.eval()


def gpt(**options):
    return shuffled(GPT(GPTConfig(**SIZES | options)))


def some_ids(batch=BATCH, tokens=TOKENS):
    return torch.randint(VOCAB, (batch, tokens))


# --- the model ------------------------------------------------------------------------


def test_weights_are_drawn_as_gpt2_draws_them():
    model = GPT(GPTConfig(300, d_model=64, layers=8, ngrams=(500,)))
    for name, weight in model.named_parameters():
        if weight.ndim == 1:
            is_norm = "norm" in name and name.endswith("weight")
            assert (weight == (1.0 if is_norm else 0.0)).all(), name
        else:
            adds = "attention.output" in name or "down" in name
            want = 0.02 / 4 if adds else 0.02  # sqrt(2 * 8) = 4
            assert weight.std().item() == pytest.approx(want, rel=0.05), name
            assert abs(weight.mean().item()) < want / 10, name


@KINDS
@pytest.mark.parametrize("place", range(1, TOKENS))
def test_a_later_token_changes_no_earlier_logits(options, place):
    model, ids = gpt(**options).double(), some_ids()
    changed = ids.clone()
    changed[:, place] = (ids[:, place] + 1) % VOCAB
    with torch.no_grad():
        before, after = model(ids), model(changed)
    near(after[:, :place], before[:, :place])
    difference = (after - before).abs().amax((0, 2))
    assert (difference[place:] > 1e-6).all()  # everything from there on sees it


def test_rotary_attention_equals_the_one_taught_before():
    ours = shuffled(CausalAttention(D_MODEL, HEADS, rotary=True)).double()
    theirs = MultiHeadAttention(D_MODEL, HEADS).double()
    weights, biases = ours.qkv.weight.chunk(3), ours.qkv.bias.chunk(3)
    parts = (theirs.query, theirs.key, theirs.value)
    for layer, weight, bias in zip(parts, weights, biases, strict=True):
        layer.load_state_dict({"weight": weight, "bias": bias})
    theirs.output.load_state_dict(ours.output.state_dict())
    x = torch.randn(BATCH, TOKENS, D_MODEL, dtype=torch.float64)
    turn = partial(rotate, layout="half")
    output, weights = theirs(x, mask=causal_mask(TOKENS), rotate=turn)
    near(ours(x)[0], output)
    near(ours.weights(x), weights)


def test_dropout_acts_in_training_only():
    still, loud = gpt(dropout=0.0), gpt(dropout=0.5)
    loud.load_state_dict(still.state_dict())
    ids = some_ids()
    near(loud(ids), still(ids))
    near(still.train()(ids), still.eval()(ids))
    loud.train()
    assert not torch.allclose(loud(ids), loud(ids))
    x = torch.randn(BATCH, TOKENS, D_MODEL)
    for part in (loud.blocks[0].attention, loud.blocks[0]):
        assert not torch.allclose(part(x)[0], part(x)[0])
    assert (loud.embed(ids) == 0).float().mean().item() == pytest.approx(0.5, abs=0.1)


@KINDS
def test_attentions_leave_the_mode_alone_and_never_drop(options):
    model, ids = gpt(dropout=0.5, **options), some_ids()
    want = model.attentions(ids)
    model.train()
    for seen, expected in zip(model.attentions(ids), want, strict=True):
        near(seen, expected)
    with pytest.raises(ValueError, match="0 tokens"):
        model.attentions(ids[:, :0])
    assert model.training is model.blocks[0].dropout.training is True


# --- tables of n-grams -----------------------------------------------------------------


@settings(max_examples=100)
@given(
    ids=st.lists(
        st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=1, max_size=4
    ),
    order=st.integers(2, 3),
    tokens=st.integers(1, 6),
)
def test_ngrams_share_a_row_only_if_equal(ids, order, tokens):
    """With rows enough; where nothing stands before, that too is part of the n-gram."""
    rows = ngram_rows(torch.tensor(ids)[:, :tokens], order, 2**61)
    seen = {}
    for i, window in enumerate(ids):
        for j in range(tokens):
            ngram = tuple(
                window[k] if k >= 0 else None for k in range(j - order + 1, j + 1)
            )
            seen.setdefault(ngram, set()).add(rows[i, j].item())
    assert all(len(own_rows) == 1 for own_rows in seen.values())
    assert len(set.union(*seen.values())) == len(seen)


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_each_table_adds_a_vector(positions):
    model, ids = gpt(positions=positions, ngrams=(13, 17)), some_ids()
    got = model.embed(ids)
    for i in range(BATCH):
        for j in range(TOKENS):
            want = model.tokens.weight[ids[i, j]]
            if positions == "learned":
                want = want + model.positions.weight[j]
            for table, order, rows in zip(model.ngrams, (2, 3), (13, 17), strict=True):
                want = want + table.weight[ngram_rows(ids[i : i + 1], order, rows)[0, j]]
            near(got[i, j], want)


# --- sizes and errors -----------------------------------------------------------------


def test_what_cannot_be_read():
    model = gpt()
    assert model(some_ids(tokens=CONTEXT)).shape == (BATCH, CONTEXT, VOCAB)
    for tokens in (0, CONTEXT + 1):
        with pytest.raises(ValueError, match=f"{tokens} tokens, but .* 1 to {CONTEXT}"):
            model(some_ids(tokens=tokens))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (
            torch.tensor([1, 2]),
            r"of shape \(batch, tokens\), not .* of shape \(2,\): .*ids\[None\]",
        ),
        (torch.tensor([[1.0, 2.0]]), "whole numbers .*, not torch.float32"),
        (
            torch.tensor([[3, VOCAB]]),
            f"ids from 3 to {VOCAB}, .* 0 to {VOCAB - 1}: is it the",
        ),
        (torch.tensor([[-1, 3]]), "ids from -1 to 3"),
    ],
)
def test_ids_that_are_none_of_this_model(ids, message):
    for read in (gpt(), gpt().attentions, partial(states, gpt())):
        with pytest.raises(ValueError, match=message):
            read(ids)
    if "vocabulary" not in message and ids.ndim == 1:
        for write in (generate, partial(beam_search, beams=2)):
            with pytest.raises(ValueError, match=message):
                write(gpt(), ids, 3)


def test_angles_of_rotary_positions_are_computed_once(monkeypatch):
    model, ids = gpt(positions="rotary", context=64), some_ids(tokens=CONTEXT)
    rotations.cache_clear()
    asked = []

    def counted(width, base):
        asked.append(width)
        return frequencies(width, base)

    monkeypatch.setattr(positions, "frequencies", counted)
    for _ in range(3):
        model(ids)
    assert len(asked) == 1  # for three layers, queries and keys, three times
    monkeypatch.undo()
    rotations.cache_clear()
    with torch.inference_mode():
        model(ids)
    model(ids).sum().backward()  # a table made there can be trained with


def test_options_beyond_gpt2_against_plain_code():
    options = {"previous_tokens": 2, "norm": "rms", "activation": "relu_squared"}
    model = gpt(**options, bias=False, tied=False).double()
    assert not any(name.endswith("bias") for name, _ in model.named_parameters())
    ids = some_ids()
    x = model.tokens(ids) + model.positions.weight[:TOKENS]
    for back, table in enumerate(model.previous, start=1):
        for i in range(BATCH):
            for j in range(TOKENS):
                row = ids[i, j - back] + 1 if j >= back else 0
                x[i, j] = x[i, j] + table.weight[row]

    def rms(x):
        return x / x.square().mean(-1, keepdim=True).sqrt()

    for block in model.blocks:
        x = x + block.attention(rms(x))[0]
        hidden = (rms(x) @ block.feed_forward.up.weight.T).clamp(min=0) ** 2
        x = x + hidden @ block.feed_forward.down.weight.T
    near(model(ids), rms(x) @ model.head.weight.T, slack=100)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            ({"layers": value}, rf"^layers must be a whole number, not {value!r}$")
            for value in (2.0, True, None, "4", np.bool_(True))
        ),
        ({"layers": 0}, "^layers must be greater than or equal to 1, not 0$"),
        (
            {"layers": 10**9},
            "^layers must be less than or equal to 100000000, not 1000000000$",
        ),
        ({"depth": 3}, "^GPTConfig has no field 'depth'$"),
        (
            {"layers": 0, "heads": "x"},
            "^layers must be .*; heads must be a whole number, not",
        ),
        ({"vocab_size": 0}, "vocab_size must be"),
        ({"context": 0}, "context must be"),
        ({"d_model": 0}, "d_model must be"),
        ({"heads": 0}, "heads must be"),
        ({"heads": 5}, "5 heads do not divide d_model = 12"),
        ({"positions": None}, "positions must be 'learned' or 'rotary', not None"),
        ({"positions": "rotary", "heads": 4}, "must be even"),
        ({"dropout": 1}, "dropout must be less than or equal to 0.99, not 1"),
        ({"dropout": math.nan}, "dropout must be a finite number, not nan"),
        ({"ngrams": (5, 0)}, "ngrams.1 must be greater than or equal to 1, not 0"),
        ({"ngrams": "ab"}, "ngrams must be a list, not 'ab'"),
    ],
    ids=str,
)
def test_sizes_that_do_not_fit(options, message):
    with pytest.raises(ValueError, match=message):
        GPTConfig(**SIZES | options)


def test_numbers_of_numpy_are_numbers():
    numbers = {"layers": np.int64(2), "dropout": np.float32(0.5), "ngrams": [np.int32(7)]}
    config = GPTConfig(**SIZES | numbers)
    assert (config.layers, config.dropout, config.ngrams) == (2, 0.5, (7,))
    assert json.loads(json.dumps(asdict(config)))["ngrams"] == [7]  # none is NumPy's


def test_a_config_survives_json():
    assert GPTConfig(**SIZES, ngrams=[1, 4]) == GPTConfig(**SIZES, ngrams=(1, 4))
    assert GPTConfig(1, heads=1, d_model=1, layers=1).vocab_size == 1
