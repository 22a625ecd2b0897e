"""LoRA and prefix vectors: against peft, against hand-made models, as files.

LoRA is held against peft's on the page *fine-tuning* itself.
"""

import copy
from functools import partial

import pytest
import torch
from peft import PrefixTuningConfig, get_peft_model
from torch import nn
from transformers import BertConfig

from lmcourse import adapters
from lmcourse.bert import Bert
from lmcourse.families import Family
from lmcourse.gpt.generation import Cache
from lmcourse.gpt.gpt2 import to_transformers
from lmcourse.gpt.model import GPT, GPTConfig

MAKERS = {"lora": adapters.add_lora, "prefix": adapters.add_prefix}
close = torch.testing.assert_close
exactly = partial(close, rtol=0, atol=1e-12)
IDS = torch.tensor([[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]])
MASK = torch.tensor([[1, 1, 1, 1, 0, 0], [1] * 6])
X = torch.randn(2, 6, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def trained(model, seed=0):
    """Give every trainable number of a model a value that matters."""
    generator = torch.Generator().manual_seed(seed)
    for weight in model.parameters():
        if weight.requires_grad:
            weight.data = torch.randn(weight.shape, generator=generator).to(weight) / 3
    return model


def gpt(layers=2, positions="learned"):
    sizes = {"layers": layers, "heads": 2, "d_model": 12, "positions": positions}
    return GPT(GPTConfig(vocab_size=11, context=9, **sizes))


def bert():
    sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 20, "max_position_embeddings": 9, "vocab_size": 11}
    return Bert(BertConfig(**sizes), pooler=False)


MODELS = {  # how it is made, and what it is given
    "gpt": (gpt, (IDS,)),
    "rotary": (partial(gpt, positions="rotary"), (IDS,)),
    "bert": (bert, (IDS, MASK)),
    "two stacks": (
        partial(Family, "encoder-decoder", 11, 2, 12, 2),
        (IDS, IDS.flip(1)[:, :4]),
    ),
}
FITTING = [(k, n) for k in MAKERS for n in MODELS if k == "lora" or n in ("gpt", "rotary")]


def small_model(name, **options):
    """Return a small model of numbers that float32 has, too, none of them zero."""
    torch.manual_seed(0)
    model = MODELS[name][0](**options).eval()
    for weight in model.parameters():
        weight.data += torch.randn_like(weight) / 5
    return model.double()


def computed(model, *given):
    """Return what a model makes of its inputs."""
    output = model(*given)
    return getattr(output, "last_hidden_state", output)


def unchanged(model, before):
    return all(torch.equal(w, before[n]) for n, w in model.state_dict().items())


@pytest.mark.parametrize(("kind", "name"), FITTING)
def test_only_the_adapters_learn_and_taking_them_away_gives_the_model_back(name, kind):
    model, given = small_model(name), MODELS[name][1]
    before, want = copy.deepcopy(model.state_dict()), computed(model, *given)
    trained(MAKERS[kind](model, 3))
    names = {n for n, w in model.named_parameters() if w.requires_grad}
    own = {"lora": {"down", "up"}, "prefix": {"keys", "values"}}
    assert {n.rpartition(".")[2] for n in names} == own[kind]
    changed = computed(model, *given)
    assert changed.shape == want.shape
    assert (changed - want).abs().max() > 1e-3
    changed.square().mean().backward()
    for n, w in model.named_parameters():
        assert (w.grad is not None and w.grad.abs().max() > 0) == (n in names), n
    adapters.remove(model)
    assert model.state_dict().keys() == before.keys()
    assert unchanged(model, before)
    assert torch.equal(computed(model, *given), want)


@pytest.mark.parametrize("name", MODELS)
def test_lora_begins_at_the_model_itself_and_can_be_merged(name):
    model, given = small_model(name), MODELS[name][1]
    want = computed(model, *given)
    adapters.add_lora(model, 3, scale=0.7)
    assert torch.equal(computed(model, *given), want)
    before, want = copy.deepcopy(trained(model).state_dict()), computed(model, *given)
    for _ in range(2):  # a second time nothing is added
        exactly(computed(adapters.merge(model), *given), want)
    assert not unchanged(model, before)
    adapters.unmerge(adapters.unmerge(model))
    assert unchanged(model, before)
    assert torch.equal(computed(model, *given), want)


def test_prefix_is_pefts():
    """And two prefixes in one batch: each text has its own."""
    base, length = small_model("gpt"), 3
    config = PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=length)
    theirs = get_peft_model(to_transformers(base, "eager").double(), config).double().eval()
    ours = trained(adapters.add_prefix(copy.deepcopy(base), length))
    parts = [x for b in ours.blocks for x in (b.attention.keys, b.attention.values)]
    theirs.prompt_encoder["default"].embedding.weight.data = torch.cat(parts, 1).detach()
    positions = theirs.base_model.transformer.wpe.weight  # theirs count the prefix, too
    positions.data = positions.data.roll(length, 0)
    close(ours(IDS), theirs(IDS).logits, rtol=0, atol=1e-9)
    other = trained(adapters.add_prefix(copy.deepcopy(base), length), seed=1)
    for own, its in zip(ours.parameters(), other.parameters(), strict=True):
        own.data = torch.stack([own, its]) if own.requires_grad else own
    close(ours(IDS), torch.cat([theirs(IDS).logits[:1], other(IDS)[1:]]), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["gpt", "rotary"])
@pytest.mark.parametrize("kind", MAKERS)
def test_a_cache_changes_nothing(kind, name):
    """And nothing later is seen: of the first tokens no more was there."""
    model = trained(MAKERS[kind](small_model(name), 3))
    cache = Cache(model)
    logits = torch.cat([model(IDS[:, :4], cache), model(IDS, cache)], dim=1)
    exactly(logits, model(IDS))


@pytest.mark.parametrize("kind", MAKERS)
def test_a_file_holds_the_adapters_alone(kind, tmp_path):
    path, make = tmp_path / "own.safetensors", MAKERS[kind]
    model = trained(make(small_model("gpt").float(), 3))
    adapters.save_adapters(path, model)
    assert path.stat().st_size < 4 * adapters.trainable(model) + 3000
    other = trained(make(small_model("gpt").float(), 3), seed=1)
    adapters.load_adapters(path, adapters.merge(other))
    assert torch.equal(other(IDS), model(IDS))


@pytest.mark.parametrize(
    ("make", "layers", "message"),
    [
        (lambda m: adapters.add_lora(m, 2), 2, r"has the shape \(3, 12\), not \(2, 12\)"),
        (lambda m: adapters.add_lora(m, 3, scale=2.0), 2, "'scale': 1.0"),
        (lambda m: adapters.add_lora(m, 3), 1, "holds, besides"),
        (lambda m: adapters.add_lora(m, 3), 3, "lacks"),
        (lambda m: adapters.add_prefix(m, 3), 2, "'LoRA'.*'Prefix'"),
        (lambda m: m, 2, "has no adapters"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(make, layers, message, tmp_path):
    path = tmp_path / "own.safetensors"
    adapters.save_adapters(path, trained(adapters.add_lora(small_model("gpt"), 3)))
    model = make(small_model("gpt", layers=layers))
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match=message):
        adapters.load_adapters(path, model)
    assert unchanged(model, before)


def test_lora_begins_with_numbers_that_keep_the_size_of_what_comes_in():
    torch.manual_seed(0)
    adapter = adapters.LoRA(nn.Linear(400, 300), 200)
    x = torch.randn(50, 400)
    assert (x @ adapter.down.T).std().item() == pytest.approx(1, rel=0.05)
    assert not adapter.up.any()


def trainable_names(model):
    return {name for name, weight in model.named_parameters() if weight.requires_grad}


@pytest.mark.parametrize("kind", MAKERS)
def test_what_was_trainable_is_so_again_without_the_adapters(kind):
    model = small_model("gpt")
    model.blocks[0].norm_1.requires_grad_(False)  # a reader's own choice
    before = trainable_names(model)
    assert 0 < len(before) < len(list(model.parameters()))
    adapters.remove(MAKERS[kind](model, 3))
    assert trainable_names(model) == before
    changed = copy.deepcopy(MAKERS[kind](model, 3))  # a copy knows it, too
    assert trainable_names(adapters.remove(changed)) == before
    adapters.remove(changed)  # nothing is left to remember
    changed.requires_grad_(False)
    assert not trainable_names(adapters.remove(changed))


def test_adapters_of_a_part_are_taken_away_with_the_whole():
    model = small_model("gpt")
    before = trainable_names(model)
    adapters.add_lora(model.blocks, 2)
    assert trainable_names(adapters.remove(model)) == before


@pytest.mark.parametrize("kind", MAKERS)
def test_a_size_that_is_refused_leaves_the_model_trainable(kind):
    """Also where the first layers could be wrapped and a later one cannot."""
    model = small_model("gpt")
    model.blocks[1].feed_forward.down = nn.Linear(48, 2)
    before, weights = trainable_names(model), copy.deepcopy(model.state_dict())
    sizes = {"lora": (0, 3), "prefix": (0, -1)}
    for size in sizes[kind]:
        with pytest.raises(ValueError, match="please, not"):
            MAKERS[kind](model, size)
        assert trainable_names(model) == before
        assert not adapters.adapters(model)
        assert unchanged(model, weights)


@pytest.mark.parametrize(
    ("wrap", "message"),
    [
        (
            lambda: adapters.add_lora(small_model("gpt"), 13),
            "a rank from 1 to 12, please, not 13",
        ),
        (
            lambda: adapters.add_lora(small_model("gpt"), 0),
            "a rank from 1 to 12, please, not 0",
        ),
        (lambda: adapters.add_lora(nn.Linear(2, 2), 2), "no linear layer whose name ends"),
        (lambda: adapters.add_prefix(small_model("bert"), 2), "no attention of a GPT"),
        (lambda: adapters.add_lora(adapters.add_lora(small_model("gpt"), 2), 2), "already"),
    ],
)
def test_what_cannot_be_wrapped_is_told(wrap, message):
    with pytest.raises(ValueError, match=message):
        wrap()
