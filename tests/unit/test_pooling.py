"""lmcourse.pooling against transformers run on one text at a time, without padding."""

import json
import shutil
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, BertModel

from lmbook.bench import layers as bench
from lmcourse.models import default_checkpoint, load_bert
from lmcourse.pooling import batches, encode_windows, kept, nearest, pool_layers, untrained
from near import near

LAYERS, D_MODEL, WINDOW = 3, 24, 32
LINES = [
    "To make a prairie it takes a clover and one bee",
    "Hope",
    "I'm nobody! Who are you?\nAre you nobody, too?",
    "Bees",
    "The sky is low, the clouds are mean, a travelling flake of snow",
    "Because I could not stop for Death, he kindly stopped for me",
    "Hope",
]
LONG = "there is a certain slant of light on winter afternoons that oppresses " * 6


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(default_checkpoint())


def tiny(**changes):
    sizes = {"vocab_size": 30522, "hidden_size": D_MODEL, "num_hidden_layers": LAYERS}
    sizes |= {"num_attention_heads": 4, "intermediate_size": 40}
    sizes |= {"max_position_embeddings": WINDOW}
    torch.manual_seed(0)
    return BertModel(BertConfig(**sizes | changes)).eval()


@pytest.fixture(scope="module")
def model():
    return tiny()


def states_of(ids, model):
    """Hidden states of one window, static rows first: a list of (tokens, d_model)."""
    with torch.no_grad():
        output = model(torch.tensor([ids]), output_hidden_states=True)
        static = model.embeddings.word_embeddings.weight[ids]
    return [static, *(states[0] for states in output.hidden_states)]


def one_by_one(texts, tokenizer, model):
    """The oracle: every text alone, cut at the window, (layers + 2, texts, d_model)."""
    pooled = []
    for text in texts:
        ids = tokenizer(text, truncation=True, max_length=WINDOW)["input_ids"]
        states = states_of(ids, model)
        pooled.append(torch.stack([state.mean(dim=0) for state in states]))
    return torch.stack(pooled, dim=1)


@pytest.mark.parametrize("batch_tokens", [1, 20, 40, 4096])
def test_equals_each_text_on_its_own(tokenizer, model, batch_tokens):
    result = pool_layers(np.array(LINES), tokenizer, model, batch_tokens=batch_tokens)
    near(result.levels, one_by_one(LINES, tokenizer, model))
    assert torch.equal(result.levels[0], result.static)
    assert torch.equal(result.levels[1:], result.layers)
    assert result.tokens.tolist() == [len(tokenizer(line)["input_ids"]) for line in LINES]


def test_a_model_with_a_head_and_of_another_shape(tokenizer):
    other = tiny(hidden_size=20, num_hidden_layers=5, num_attention_heads=2)
    headed = BertForMaskedLM(other.config).eval()
    result = pool_layers((line for line in LINES), tokenizer, headed)
    near(result.levels, one_by_one(LINES, tokenizer, headed.bert))


def test_the_callers_may_train_on_the_result(tokenizer, model):
    result = pool_layers(LINES, tokenizer, model)
    weight = torch.zeros(D_MODEL, requires_grad=True)
    (result.layers[-1] @ weight).sum().backward()  # no inference tensor
    near(weight.grad, result.layers[-1].sum(dim=0))


def test_whoever_wants_more_of_the_states_sees_them(tokenizer, model):
    """Each level of each text once, at its own row, as one text alone has it."""
    seen = {}

    def see(level, rows, states, mask):
        for row, state, real in zip(rows, states, mask, strict=True):
            assert (level, row) not in seen
            assert mask.numel() <= 40
            seen[level, row] = state[real]  # (tokens, d_model)

    pool_layers(LINES, tokenizer, model, batch_tokens=40, on_output=see)
    assert len(seen) == (LAYERS + 2) * len(LINES)
    for row, line in enumerate(LINES):
        ids = tokenizer(line)["input_ids"]
        for level, state in enumerate(states_of(ids, model)):
            near(seen[level, row], state)


def test_no_hooks_are_left(tokenizer, model):
    def hooks():
        return [len(part._forward_hooks) for part in model.modules()]

    before = hooks()
    pool_layers(LINES, tokenizer, model)
    assert hooks() == before
    with pytest.raises(IndexError):
        encode_windows([[10**6]], model, [model.embeddings], lambda *_: None)
    assert hooks() == before


# --- long texts


def test_texts_that_are_too_long_are_cut_with_one_warning(tokenizer, model):
    texts = [LINES[0], LONG, LINES[1], LONG + "again"]
    with pytest.warns(UserWarning, match=r"2 of 4 texts.*first 32 tokens") as caught:
        result = pool_layers(texts, tokenizer, model)
    assert len(caught) == 1
    assert caught[0].filename == __file__  # the warning names the caller's line
    near(result.levels, one_by_one(texts, tokenizer, model))
    assert result.tokens.tolist()[1::2] == [WINDOW, WINDOW]


def test_a_text_that_just_fits_is_read_without_a_warning(tokenizer, model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pool_layers(["bee " * (WINDOW - 2)], tokenizer, model)


# --- bad input


@pytest.mark.parametrize(
    ("texts", "error", "says"),
    [
        ([], ValueError, "texts is empty"),
        ("a poem", TypeError, "list of strings, not a single one"),
        (["a", None], TypeError, r"texts\[1\] is not a string: None"),
        (["a", " \n\t"], ValueError, r"texts\[1\] is blank to the tokenizer"),
        (["a", "half \ud800 a pair"], ValueError, r"texts\[1\] holds half a surrogate"),
    ],
)
def test_texts_that_cannot_be_read(tokenizer, model, texts, error, says):
    with pytest.raises(error, match=says):
        pool_layers(texts, tokenizer, model)


@pytest.mark.parametrize("vocab_size", [30521, 30522 + 128, 40000])
def test_a_tokenizer_of_another_size(tokenizer, vocab_size):
    with pytest.raises(ValueError, match=f"do not belong together.*{vocab_size} rows"):
        pool_layers(LINES, tokenizer, tiny(vocab_size=vocab_size))


@pytest.mark.parametrize("vocab_size", [30523, 30528, 30522 + 127])
def test_a_vocabulary_padded_as_load_bert_accepts_it_is_pooled(tmp_path, vocab_size):
    """Both ask the same function whether the tokenizer's IDs have rows."""
    tiny(vocab_size=vocab_size).save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        shutil.copy(default_checkpoint() / name, tmp_path)
    tokenizer, model = load_bert(tmp_path, device="cpu")
    assert pool_layers(LINES, tokenizer, model).static.shape == (len(LINES), D_MODEL)


def roberta():
    model = tiny()
    model.config.model_type = "roberta"
    return model


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (roberta, "a BERT is needed, not a 'roberta' model"),
        (lambda: tiny().train(), "training mode"),
    ],
)
def test_a_model_that_is_no_bert_or_not_ready(tokenizer, make, message):
    with pytest.raises(ValueError, match=message):
        pool_layers(LINES, tokenizer, make())


# --- the parts


@given(
    lengths=st.lists(st.integers(1, 50), min_size=1, max_size=40),
    budget=st.integers(1, 200),
)
@settings(max_examples=60)
def test_batches_hold_every_text_once_within_the_budget(lengths, budget):
    groups = list(batches(lengths, budget))
    assert sorted(index for group in groups for index in group) == list(range(len(lengths)))
    longest = [max(lengths[index] for index in group) for group in groups]
    assert longest == sorted(longest, reverse=True)
    for group, length in zip(groups, longest, strict=True):
        assert len(group) == 1 or len(group) * length <= budget


# --- the benchmark


def test_vectors_and_similarities_are_those_of_the_usual_way(
    monkeypatch, tokenizer, capsys
):
    def measured(prepare, *given):
        return {"result": prepare(*given)(), "seconds": 1, "peak_mib": 1, "start_mib": 0}

    monkeypatch.setattr(bench, "isolated", measured)
    wide = tiny(max_position_embeddings=256)
    monkeypatch.setattr(bench, "load_bert", lambda device: (tokenizer, wide))
    assert bench.main(poems=4) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert summary["difference"] < 1e-5


def test_neighbours_know_no_common_part_and_no_scale():
    vectors = torch.randn(30, 8, generator=torch.Generator().manual_seed(0))
    near, other = nearest(vectors, 5), torch.roll(vectors, 1, dims=0)
    assert torch.equal(near, nearest(3 * vectors + 7, 5))
    assert not (near == torch.arange(30)[:, None]).any()
    assert torch.equal(kept(vectors, vectors, 5), torch.ones(30))
    assert kept(vectors, other, 29).min() == 1  # all the others
    assert kept(vectors, other, 5).mean() < 0.5


@pytest.mark.parametrize("count", [0, 5, 6])
def test_more_neighbours_than_other_texts_are_refused(count):
    vectors = torch.eye(5)
    assert nearest(vectors, 4).shape == (5, 4)
    for measure in (nearest, lambda x, count: kept(x, x, count)):
        with pytest.raises(ValueError, match=f"of 5 texts none has {count} others"):
            measure(vectors, count)


@pytest.mark.parametrize("shuffle", [True, False])
def test_untrained_layers_keep_their_size_and_the_others_their_weights(shuffle):
    config = BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=2)
    model = BertModel(config)
    other = untrained(model, 0, shuffle, [1])
    old, new = (
        [layer.output.dense.weight for layer in m.encoder.layer] for m in (model, other)
    )
    assert torch.equal(old[0], new[0])
    assert not torch.allclose(old[1], new[1], atol=1e-3)
    torch.testing.assert_close(new[1].std(), old[1].std(), rtol=0.02, atol=0)
