"""The Llama: equal to transformers', from its own file, with its own tokenizer."""

import json

import gguf
import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from transformers.utils.logging import enable_progress_bar, is_progress_bar_enabled

from lmcourse import llama
from lmcourse.data import load_corpus, load_poems
from lmcourse.gguf import GgufFile
from lmcourse.gpt.generation import Cache
from lmcourse.llama import Llama, LlamaConfig, RMSNorm, chat, load_talker, sample_tokens

# Axes that all differ: 3 texts, 7 tokens, 6 heads sharing 2, d_head 8, d_ff 80.
SIZES = {"vocab_size": 96, "num_hidden_layers": 3, "num_attention_heads": 6}
SIZES |= {"num_key_value_heads": 2, "hidden_size": 48, "intermediate_size": 80}
SIZES |= {"max_position_embeddings": 32, "rms_norm_eps": 1e-3}


def small(tied=True, **options):
    """Return a small Llama of transformers, in float64, with random weights."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        **SIZES,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        tie_word_embeddings=tied,
        attn_implementation="eager",
        **options,
    )
    model = transformers.LlamaForCausalLM(config).double().eval()
    for name, weight in model.named_parameters():
        if "norm" in name:
            torch.nn.init.uniform_(weight, 0.5, 2)
    return model


@pytest.fixture(scope="module")
def ids():
    return torch.randint(96, (3, 7), generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def talker():
    return load_talker(device="cpu")


# --- the mechanism --------------------------------------------------------------------


def test_the_norm_is_pytorchs():
    norm = RMSNorm(5, eps=1e-2).double()
    norm.weight.data = torch.arange(1.0, 6.0).double()
    x = torch.randn(2, 3, 5, dtype=torch.float64)
    torch.testing.assert_close(
        norm(x),
        F.rms_norm(x, (5,), norm.weight, 1e-2).float().double(),
        rtol=1e-6,
        atol=1e-6,
    )


@pytest.mark.parametrize("tied", [True, False])
@torch.no_grad()
def test_every_layer_is_that_of_transformers(ids, tied):
    theirs = small(tied)
    ours = llama.from_transformers(theirs, torch.float64)
    output = theirs(ids, output_hidden_states=True, output_attentions=True)
    x = ours.embed(ids)
    for block, state in zip(ours.blocks[:-1], output.hidden_states[1:-1], strict=True):
        x, _ = block(x)
        torch.testing.assert_close(x, state, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(ours(ids), output.logits, rtol=1e-6, atol=1e-6)
    for weights, theirs_weights in zip(
        ours.attentions(ids), output.attentions, strict=True
    ):
        torch.testing.assert_close(weights, theirs_weights, rtol=1e-6, atol=1e-6)


@torch.no_grad()
def test_a_cache_changes_nothing(ids):
    model = llama.from_transformers(small(), torch.float64)
    cache = Cache(model)
    parts = [model(ids[:, :4], cache), model(ids[:, :5], cache), model(ids, cache)]
    torch.testing.assert_close(torch.cat(parts, 1), model(ids), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(model(ids, last=True), model(ids)[:, -1:])


def test_sizes_that_do_not_fit_are_refused():
    sizes = {"vocab_size": 96, "context": 32, "layers": 1, "d_ff": 80}
    with pytest.raises(ValueError, match="6 heads do not cut d_model = 50"):
        LlamaConfig(**sizes, heads=6, kv_heads=2, d_model=50)
    with pytest.raises(ValueError, match="6 heads cannot share 4 pairs"):
        LlamaConfig(**sizes, heads=6, kv_heads=4, d_model=48)
    model = Llama(LlamaConfig(**sizes, heads=6, kv_heads=2, d_model=48))
    for tokens in (0, 33):
        with pytest.raises(
            ValueError, match=f"{tokens} tokens, but this model sees 1 to 32"
        ):
            model(torch.zeros(1, tokens, dtype=torch.int64))


def test_what_it_has_not_is_refused():
    with pytest.raises(ValueError, match="attention_bias is True"):
        llama.from_transformers(small(attention_bias=True))


# --- from a file ----------------------------------------------------------------------


def write(path, model, **changes):
    """Write a model of transformers as a GGUF file, its pairs interleaved."""
    config = model.config
    writer = gguf.GGUFWriter(path, changes.get("architecture", "llama"))
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}
    if not config.tie_word_embeddings:
        names["lm_head"] = "output"
    for layer in range(config.num_hidden_layers):
        for theirs, ours in llama.TRANSFORMERS_NAMES.items():
            stored = {v: k for k, v in llama.GGUF_NAMES.items()}[ours]
            names[f"model.layers.{layer}.{theirs}"] = f"blk.{layer}.{stored}"
    for theirs, stored in names.items():
        weight = model.state_dict()[f"{theirs}.weight"].numpy().astype(np.float32)
        count = heads.get(theirs.rpartition(".")[2])
        if count:  # llama.cpp's own order: number i of a half beside number i of the other
            halves = weight.reshape(count, 2, -1, weight.shape[1])
            weight = halves.swapaxes(1, 2).reshape(weight.shape)
        if stored != changes.get("without"):
            writer.add_tensor(f"{stored}.weight", weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("tied", [True, False])
@torch.no_grad()
def test_a_file_gives_the_same_model(tmp_path, ids, tied):
    theirs = small(tied)
    ours = llama.read_gguf_model(GgufFile(write(tmp_path / "small.gguf", theirs)))
    torch.testing.assert_close(ours(ids), theirs.float()(ids).logits, rtol=1e-4, atol=1e-5)


def test_a_file_that_is_no_such_llama_is_refused(tmp_path):
    path = write(tmp_path / "bert.gguf", small(), architecture="bert")
    with pytest.raises(ValueError, match="is of a model of kind 'bert', not a Llama"):
        load_talker(path)
    path = write(tmp_path / "short.gguf", small(), without="blk.1.ffn_up")
    with pytest.raises(ValueError, match=r"blk\.1\.ffn_up\.weight should have the shape"):
        llama.read_gguf_model(GgufFile(path))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("attention.head_count", 0, "heads must be greater than or equal to 1, not 0"),
        ("attention.head_count", [6, 6, 6], r"heads must be a whole number, not \[6"),
        ("attention.head_count_kv", "two", "kv_heads must be a whole number, not 'two'"),
        ("block_count", -1, "layers must be greater than or equal to 1, not -1"),
        ("embedding_length", 48.0, "d_model must be a whole number, not 48.0"),
        ("vocab_size", 2**62, "vocab_size must be less than or equal to 100000000"),
        ("rope.freq_base", "slow", "base must be a number, not 'slow'"),
    ],
)
def test_a_size_that_no_llama_has_is_refused(tmp_path, field, value, message):
    file = GgufFile(write(tmp_path / "small.gguf", small()))
    file.fields[f"llama.{field}"] = value
    with pytest.raises(ValueError, match=rf"small\.gguf describes no Llama: {message}"):
        llama.read_gguf_model(file)


def test_layers_that_the_file_does_not_hold_are_not_built(tmp_path):
    file = GgufFile(write(tmp_path / "small.gguf", small()))
    file.fields["llama.block_count"] = 10**7  # to build so many would take an hour
    with pytest.raises(ValueError, match="holds fewer tensors than 10000000 layers have"):
        llama.read_gguf_model(file)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tokenizer.ggml.tokens", None),
        ("tokenizer.ggml.token_type", [1, 1]),
        ("tokenizer.ggml.merges", ["a"]),
        ("tokenizer.ggml.eos_token_id", 10**9),
    ],
)
def test_a_damaged_tokenizer_in_a_file_is_named(field, value):
    file = GgufFile(llama.talker_file())
    if value is None:
        del file.fields[field]
    else:
        file.fields[field] = value
    with pytest.raises(ValueError, match=r"the tokenizer in .*\.gguf cannot be read"):
        llama.read_gguf_tokenizer(file)


def test_a_folder_of_transformers_loads(tmp_path, ids, monkeypatch, talker):
    theirs = small()
    theirs.float().save_pretrained(tmp_path)
    talker[0].save_pretrained(tmp_path)
    monkeypatch.setenv("LMCOURSE_TALKER", str(tmp_path))
    enable_progress_bar()
    tokenizer, model = load_talker(device="cpu")
    assert is_progress_bar_enabled()  # as before
    with torch.no_grad():
        torch.testing.assert_close(model(ids), theirs(ids).logits, rtol=1e-4, atol=1e-5)
    assert tokenizer("the sea").input_ids == talker[0]("the sea").input_ids


def test_a_folder_with_other_weights_is_refused(tmp_path, talker):
    small().float().save_pretrained(tmp_path)
    talker[0].save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 4}))
    with pytest.raises(ValueError, match="not those of the Llama"):
        load_talker(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": "gpt2"}))
    with pytest.raises(ValueError, match="kind 'gpt2', not a Llama"):
        load_talker(tmp_path)


def test_a_missing_or_another_package_is_an_error(monkeypatch):
    monkeypatch.setattr(llama, "PACKAGE", "no_such_package")
    with pytest.raises(OSError, match="no-such-package"):
        load_talker()
    monkeypatch.undo()
    monkeypatch.setattr(llama, "SHA256", "0" * 64)
    with pytest.raises(OSError, match="is missing or not the file expected"):
        load_talker()


# --- the model that talks -------------------------------------------------------------


@torch.no_grad()
def test_it_knows_paris_and_mary(talker):
    tokenizer, model = talker
    for text, answer in [
        ("The capital of France is", " Paris"),
        ("When Mary and John went to the store, John gave a drink to", " Mary"),
    ]:
        ids = tokenizer(text, return_tensors="pt").input_ids
        probs = model(ids, last=True)[0, -1].softmax(-1)
        assert tokenizer.decode([int(probs.argmax())]) == answer
        assert probs.max() > 0.6


def test_texts_come_back(talker):
    tokenizer, _ = talker
    texts = [*load_poems().text, load_corpus("sonnets"), "naïve 🦋  12.50\n\n\tdon't"]
    for text in texts:
        assert tokenizer.decode(tokenizer(text).input_ids) == text


def test_the_template_marks_turns(talker):
    tokenizer, _ = talker
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]
    text = tokenizer.apply_chat_template(turns, tokenize=False)
    assert text.endswith(
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYes?<|im_end|>\n"
    )
    ids = tokenizer(text).input_ids
    assert ids.count(tokenizer.convert_tokens_to_ids("<|im_start|>")) == 3  # system, too


def test_it_answers_and_stops(talker):
    tokenizer, model = talker
    answer = chat(tokenizer, model, "Say hello.", tokens=30)
    assert answer
    assert "<|im_end|>" not in answer
    ids = tokenizer("One, two,", return_tensors="pt").input_ids
    greedy = list(sample_tokens(model, ids, 3))
    assert list(sample_tokens(model, ids, 3, stop={greedy[1]})) == greedy[:1]
    draws = [
        list(
            sample_tokens(
                model, ids, 4, temperature=1.0, generator=torch.Generator().manual_seed(s)
            )
        )
        for s in (0, 0, 1)
    ]
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.steady
@torch.no_grad()
def test_all_of_it_is_that_of_transformers(talker):
    """The model layer by layer, the tokenizer on a thousand texts, and the template."""
    tokenizer, model = talker
    path = llama.talker_file()
    options = {"gguf_file": path.name}
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, dtype=torch.float32, attn_implementation="eager", **options
    ).eval()
    ids = tokenizer(load_poems().text[3], return_tensors="pt").input_ids[:, :50]
    output = theirs(ids, output_hidden_states=True)
    x = model.embed(ids)
    for block, state in zip(model.blocks[:-1], output.hidden_states[1:-1], strict=True):
        x, _ = block(x)
        assert (x - state).abs().max() < 1e-5 * state.abs().max()
    assert (model(ids) - output.logits).abs().max() < 1e-5 * output.logits.abs().max()
    reader = transformers.AutoTokenizer.from_pretrained(path.parent, **options)
    texts = [*load_poems().text, *load_corpus("sonnets").split("\n")[:1000]]
    texts += ["1234 abc 12.5", "  two  spaces\n\n\ttab", "naïve 🦋", "don't it's"]
    assert len(texts) > 1000
    for text in texts:
        assert tokenizer(text).input_ids == reader(text).input_ids
    turns = [{"role": "user", "content": "Hi"}]
    for prompt in (True, False):
        assert tokenizer.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=prompt
        ) == reader.apply_chat_template(turns, tokenize=False, add_generation_prompt=prompt)
