"""A GPT-2 of transformers as a GPT of the course, and ours as theirs: logits, text."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import pipeline

from gpts import SMALL, TEXT, byte_level_tokenizer, random_gpt2, write_gpt2
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.gpt2 import WrappedTokenizer, to_tokenizer, to_transformers
from lmcourse.models import load_gpt2_vocabulary
from lmcourse.tokenization import CharTokenizer
from near import near
from test_gpt_model import BATCH, TOKENS, gpt, some_ids

ODD = {"n_layer": 1, "n_head": 5, "n_embd": 30, "n_positions": 33}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with a GPT-2, and the model itself."""
    folder = tmp_path_factory.mktemp("models") / "small"
    return folder, write_gpt2(folder)


@pytest.fixture
def folder(written, tmp_path):
    return shutil.copytree(written[0], tmp_path / "copy")


# --- the same model -------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [SMALL, ODD], ids=str)
def test_logits_equal_transformers(tmp_path, sizes):
    theirs = write_gpt2(tmp_path / "odd", **sizes)
    tokenizer, model, record = load_gpt(tmp_path / "odd", "cpu")
    assert record["name"] == "odd"
    assert record["model"]["layers"] == len(model.blocks) == sizes["n_layer"]
    assert model.config.context == sizes["n_positions"]
    assert not model.training
    ids = torch.randint(tokenizer.vocab_size, (3, sizes["n_positions"]))
    with torch.no_grad():
        near(model.double()(ids), theirs.double()(ids).logits)


def test_it_is_gpt2_s_own_vocabulary_that_is_read(tmp_path):
    merges, vocab = load_gpt2_vocabulary()
    lines = ["#version: 0.2", *map(" ".join, merges)]
    random_gpt2(vocab_size=len(vocab), n_embd=4).save_pretrained(tmp_path)
    (tmp_path / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "vocab.json").write_text(json.dumps(vocab))
    tokenizer, model, _ = load_gpt(tmp_path, "cpu")
    assert tokenizer.vocab_size == model.config.vocab_size == 50257
    # As in Radford et al.'s own code.
    assert tokenizer.encode("Hello world") == [15496, 995]
    assert tokenizer.decode([15496, 995]) == "Hello world"


def test_a_long_text_is_cut_up_without_a_warning(caplog):
    tokenizer = WrappedTokenizer(byte_level_tokenizer())
    tokenizer.tokenizer.model_max_length = 10
    assert len(tokenizer.encode(TEXT)) > 10
    assert not caplog.records


def test_names_without_a_prefix_masks_and_half_precision(folder):
    """As the file on the hub is: it has no prefix, and keeps causal masks."""
    weights = load_file(folder / "model.safetensors")
    renamed = {n.removeprefix("transformer."): x.half() for n, x in weights.items()}
    renamed["h.0.attn.bias"] = torch.ones(1, 1, 80, 80).half()
    renamed["lm_head.weight"] = renamed["wte.weight"].clone()
    save_file(renamed, folder / "model.safetensors")
    _, model, _ = load_gpt(folder, "cpu")
    assert {x.dtype for x in model.state_dict().values()} == {torch.float32}
    assert torch.equal(model.norm.weight, renamed["ln_f.weight"].float())


# --- which one ------------------------------------------------------------------------


def test_the_reader_s_choice_is_the_default(written, monkeypatch):
    monkeypatch.setenv("LMCOURSE_GPT", str(written[0]))
    tokenizer, _, record = load_gpt(device="cpu")
    assert isinstance(tokenizer, WrappedTokenizer)
    assert record["name"] == "small"
    for choice in ("", "sonnets"):
        monkeypatch.setenv("LMCOURSE_GPT", choice)
        tokenizer, _, record = load_gpt(device="cpu")
        assert isinstance(tokenizer, CharTokenizer)
        assert record["name"] == "sonnets"
    monkeypatch.chdir(written[0].parent)
    assert load_gpt("small", "cpu")[2]["name"] == "small"
    with pytest.raises(FileNotFoundError, match=r"large\.safetensors"):
        load_gpt("large.safetensors", "cpu")


# --- what is not to be trusted --------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "llama"}, "model_type is 'llama', not .*unset LMCOURSE_BERT, LM"),
        ({"activation_function": "relu"}, "activation_function is 'relu', not 'gelu_new'"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings is False, not True"),
        ({"n_head": 5}, "describes no gpt2: .*5 heads do not divide d_model = 24"),
        ({"resid_pdrop": "x"}, "describes no gpt2: .*dropout must be a number"),
        ({"n_embd": None}, "d_model must be a whole number, not None"),
        ({"n_layer": 2}, r"besides what is expected, 12 tensors: transformer\.h\.2"),
        ({"n_layer": 10**7}, "holds fewer tensors than 10000000 layers"),
        ({"n_positions": 81}, r"wpe\.weight has the shape \(80, 24\), not \(81, 24\)"),
        ({"vocab_size": 200}, "has 300 pieces, but the model's vocab_size is 200"),
        ({"vocab_size": 500}, "has 300 pieces, but the model's vocab_size is 500"),
    ],
    ids=str,
)
def test_a_configuration_that_does_not_fit(folder, change, message):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=message) as caught:
        load_gpt(folder, "cpu")
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_file_that_is_missing_or_damaged(folder, name):
    (folder / name).write_bytes(b"noise")
    with pytest.raises(ValueError, match=str(folder)):
        load_gpt(folder, "cpu")
    (folder / name).unlink()
    with pytest.raises(OSError, match=str(folder)):
        load_gpt(folder, "cpu")


# --- ours as theirs --------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [{}, {"layers": 1, "heads": 3, "d_model": 15}], ids=str)
def test_logits_and_weights_equal_gpt2(sizes):
    model, ids = gpt(**sizes), some_ids()
    exported = to_transformers(model, attn_implementation="eager")
    with torch.no_grad():
        theirs = exported(ids, output_attentions=True)
        near(model(ids), theirs.logits)
    seen = model.attentions(ids)
    assert len(seen) == len(theirs.attentions) == model.config.layers
    for got, want in zip(seen, theirs.attentions, strict=True):
        assert got.shape == (BATCH, model.config.heads, TOKENS, TOKENS)
        near(got, want)


@pytest.mark.parametrize(
    "options",
    [
        {"positions": "rotary"},
        {"ngrams": (5,)},
        {"previous_tokens": 1},
        {"norm": "rms"},
        {"activation": "relu_squared"},
        {"bias": False},
        {"tied": False},
    ],
    ids=str,
)
def test_what_gpt2_has_not_is_not_exported(options):
    with pytest.raises(ValueError, match=f"no GPT-2: it has {next(iter(options))}="):
        to_transformers(gpt(**options))


def test_a_pipeline_without_options_fills_the_context_and_stops():
    text = "Shall I compare thee to a summer's day?"
    characters = CharTokenizer(text)
    model = to_transformers(gpt(vocab_size=characters.vocab_size, context=24))
    tokenizer = to_tokenizer(characters, 24)
    assert tokenizer.model_max_length == 24
    assert tokenizer.all_special_tokens == []
    write = pipeline("text-generation", model=model, tokenizer=tokenizer)
    for prompt in ("Shall I ", text[:23]):
        (answer,) = write(prompt)
        assert answer["generated_text"].startswith(prompt)
        assert len(answer["generated_text"]) == 24
    (answer,) = write("Shall I ", max_new_tokens=3)  # who asks for fewer has fewer
    assert len(answer["generated_text"]) == 11


def test_exchanged_tokenizer_drops_nothing_silently():
    text = "O, 'tis  thy\n\n spirit that thou send'st ; so far ,\nfrom home ! "
    tokenizer = WrappedTokenizer(to_tokenizer(CharTokenizer(text)))
    assert tokenizer.encode(text) == CharTokenizer(text).encode(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    with pytest.raises(ValueError, match="'far Z' cannot be encoded"):
        tokenizer.encode("far Z")
