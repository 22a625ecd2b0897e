"""LoRA, prefix and prompt vectors: against peft, against hand-made models, as files."""

import copy
from functools import partial

import pytest
import torch
from peft import LoraConfig, get_peft_model
from peft import PrefixTuningConfig as PrefixConfig
from peft import PromptTuningConfig as PromptConfig
from torch import nn
from transformers import BertConfig

from lmbook.bench.dates import chapter
from lmcourse import adapters
from lmcourse.attention import MultiHeadAttention, causal_mask
from lmcourse.bert import Bert
from lmcourse.families import KINDS, Family
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.generation import Cache, generate
from lmcourse.gpt.gpt2 import to_transformers
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.positions import rotate
from lmcourse.transformer import Stack, Transformer

MAKERS = {
    "lora": adapters.add_lora,
    "prefix": adapters.add_prefix,
    "prompt": adapters.add_prompt,
}
close = torch.testing.assert_close


def shaken(model, seed=0):
    """Give every trainable number of a model a value that matters."""
    generator = torch.Generator().manual_seed(seed)
    for weight in model.parameters():
        if weight.requires_grad:
            weight.data = torch.randn(weight.shape, generator=generator).to(weight) / 3
    return model


def gpt(layers=2):
    torch.manual_seed(0)
    config = GPTConfig(vocab_size=11, context=9, layers=layers, heads=2, d_model=12)
    model = GPT(config).eval()
    for weight in model.parameters():
        weight.data += torch.randn_like(weight) / 5
    return model.double()  # of numbers that float32 has, too: so are exported ones


def bert():
    torch.manual_seed(0)
    sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 20, "max_position_embeddings": 9, "vocab_size": 11}
    return Bert(BertConfig(**sizes), pooler=False).double().eval()


def stack():
    torch.manual_seed(0)
    return Stack(2, 12, 2, 20).double().eval()


def family(kind):
    torch.manual_seed(0)
    model = Family(kind, 40, layers=2, d_model=12, heads=3).double().eval()
    for weight in model.parameters():  # some of them begin at zero
        weight.data += torch.randn_like(weight) / 5
    return model


def transformer():
    torch.manual_seed(0)
    return Transformer(11, 2, 12, 2, 20).double().eval()


IDS = torch.tensor([[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]])
MASK = torch.tensor([[1, 1, 1, 1, 0, 0], [1] * 6])
X = torch.randn(2, 6, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
MODELS = {
    "gpt": (gpt, lambda model: model(IDS)),
    "bert": (bert, lambda model: model(IDS, MASK).last_hidden_state),
    "stack": (stack, lambda model: model(X, mask=causal_mask(6))[0]),
    "transformer": (transformer, lambda model: model(IDS, IDS.flip(1)[:, :4])),
}
WRITTEN = dict.fromkeys(KINDS, ()) | {"encoder-decoder": (IDS.flip(1)[:, :4],)}
MODELS |= {
    kind: (partial(family, kind), lambda model, more=more: model(IDS, *more))
    for kind, more in WRITTEN.items()
}
each = pytest.mark.parametrize("kind", MAKERS)
on = pytest.mark.parametrize("name", MODELS)


@each
@on
def test_only_the_adapters_learn_and_taking_them_away_gives_the_model_back(name, kind):
    make, compute = MODELS[name]
    model = make()
    before = copy.deepcopy(model.state_dict())
    want = compute(model)
    shaken(MAKERS[kind](model, 3))
    names = {n for n, w in model.named_parameters() if w.requires_grad}
    own = {"lora": {"down", "up"}, "prefix": {"keys", "values"}, "prompt": {"vectors"}}
    assert {n.rpartition(".")[2] for n in names} == own[kind]
    changed = compute(model)
    assert changed.shape == want.shape
    assert (changed - want).abs().max() > 1e-3
    changed.square().mean().backward()
    for n, w in model.named_parameters():
        assert (w.grad is not None and w.grad.abs().max() > 0) == (n in names), n
    adapters.remove(model)
    assert model.state_dict().keys() == before.keys()
    assert all(torch.equal(w, before[n]) for n, w in model.state_dict().items())
    assert torch.equal(compute(model), want)


@on
def test_lora_begins_at_the_model_itself(name):
    make, compute = MODELS[name]
    model = make()
    want = compute(model)
    assert torch.equal(compute(adapters.add_lora(model, 2)), want)
    assert adapters.trainable(model) == sum(
        2 * (m.inside.in_features + m.inside.out_features)
        for m in adapters.adapters(model).values()
    )


@on
def test_merged_computes_the_same_and_unmerged_is_the_same(name):
    make, compute = MODELS[name]
    model = shaken(adapters.add_lora(make(), 3, scale=0.7))
    before = copy.deepcopy(model.state_dict())
    want = compute(model)
    for _ in range(2):  # a second time nothing is added
        close(compute(adapters.merge(model)), want, rtol=1e-12, atol=1e-12)
    assert any(not torch.equal(w, before[n]) for n, w in model.state_dict().items())
    adapters.unmerge(adapters.unmerge(model))
    assert all(torch.equal(w, before[n]) for n, w in model.state_dict().items())
    assert torch.equal(compute(model), want)


def as_peft(model, config):
    """Return our GPT as a GPT-2 of transformers, with an adapter of peft."""
    theirs = to_transformers(model, "eager").double()
    return get_peft_model(theirs, config).double().eval()


def test_lora_is_pefts():
    base, rank, scale = gpt(), 3, 0.7
    names = {"qkv": "attn.c_attn", "output": "attn.c_proj"}
    names |= {"up": "mlp.c_fc", "down": "mlp.c_proj"}
    config = LoraConfig(
        r=rank,
        lora_alpha=scale * rank,
        target_modules=["c_attn", "c_proj", "c_fc"],
        fan_in_fan_out=True,
        lora_dropout=0.0,
    )
    theirs = as_peft(base, config)
    ours = shaken(adapters.add_lora(copy.deepcopy(base), rank, scale=scale))
    for layer, block in enumerate(ours.blocks):
        for own, name in names.items():
            part = block.attention if own in ("qkv", "output") else block.feed_forward
            module = theirs.base_model.model.transformer.h[layer].get_submodule(name)
            module.lora_A["default"].weight.data = getattr(part, own).down.data.clone()
            module.lora_B["default"].weight.data = getattr(part, own).up.data.clone()
    assert theirs.get_nb_trainable_parameters()[0] == adapters.trainable(ours)
    want = theirs(IDS).logits
    close(ours(IDS), want, rtol=0, atol=1e-9)
    assert (want - base(IDS)).abs().max() > 1e-2
    merged = theirs.merge_and_unload()(IDS).logits
    close(adapters.merge(ours)(IDS), merged, rtol=0, atol=1e-9)


def test_prefix_is_pefts():
    base, length = gpt(), 3
    config = PrefixConfig(task_type="CAUSAL_LM", num_virtual_tokens=length)
    theirs = as_peft(base, config)
    ours = shaken(adapters.add_prefix(copy.deepcopy(base), length))
    parts = [x for b in ours.blocks for x in (b.attention.keys, b.attention.values)]
    table = theirs.prompt_encoder["default"].embedding.weight
    table.data = torch.cat(parts, dim=1).detach().clone()
    places = theirs.base_model.transformer.wpe.weight  # theirs count the prefix, too
    places.data = places.data.roll(length, 0)
    close(ours(IDS), theirs(IDS).logits, rtol=0, atol=1e-9)


def test_prompt_is_the_model_on_more_vectors():
    base, length = gpt(), 3
    ours = shaken(adapters.add_prompt(copy.deepcopy(base), length))
    x = torch.cat([ours.blocks[0].vectors.expand(2, -1, -1), base.embed(IDS)], 1)
    for block in base.blocks:
        x, _ = block(x)
    want = base.norm(x[:, length:]) @ base.tokens.weight.T
    close(ours(IDS), want, rtol=0, atol=1e-12)
    one = shaken(adapters.add_prompt(gpt(layers=1), length))  # first and last at once
    assert one(IDS).shape == (2, 6, 11)


def test_prompt_config_of_peft_counts_the_same():
    config = PromptConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    theirs = as_peft(gpt(), config)
    ours = adapters.add_prompt(gpt(), 3)
    assert theirs.get_nb_trainable_parameters()[0] == adapters.trainable(ours)


@each
@pytest.mark.parametrize("name", ["gpt", "stack", "decoder"])
def test_nothing_later_is_seen(name, kind):
    model = shaken(MAKERS[kind](MODELS[name][0](), 3))
    if name != "stack":
        other = IDS.clone()
        other[:, 4:] = 7
        close(model(other)[:, :4], model(IDS)[:, :4], rtol=0, atol=1e-12)
    else:
        other = X.clone()
        other[:, 4:] += 1
        found = [model(x, mask=causal_mask(6))[0][:, :4] for x in (X, other)]
        close(*found, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["lora", "prefix"])
def test_a_cache_changes_nothing(kind):
    model = shaken(MAKERS[kind](gpt(), 3))
    cache = Cache(model)
    found = torch.cat([model(IDS[:, :4], cache), model(IDS, cache)], dim=1)
    close(found, model(IDS), rtol=0, atol=1e-12)


def test_prompt_vectors_refuse_a_cache():
    model = shaken(adapters.add_prompt(gpt(), 3))
    with pytest.raises(ValueError, match="cached=False"):
        generate(model, IDS, 2)
    assert generate(model, IDS, 2, cached=False).shape == (2, 8)


@pytest.mark.parametrize("name", ["gpt", "decoder", "encoder-decoder", "transformer"])
def test_a_first_token_alone_is_what_it_is_before_others(name):
    model = shaken(adapters.add_prompt(MODELS[name][0](), 3))
    read = (IDS,) if name in ("encoder-decoder", "transformer") else ()
    alone, before = model(*read, IDS[:, :1]), model(*read, IDS)
    close(alone, before[:, :1], rtol=0, atol=1e-12)


@each
@pytest.mark.parametrize("name", ["encoder-decoder", "transformer"])
def test_what_writes_sees_what_is_read_and_nothing_later(name, kind):
    model = shaken(MAKERS[kind](MODELS[name][0](), 3))
    written = IDS.flip(1)
    other = written.clone()
    other[:, 4:] = 7
    want = model(IDS, written)
    close(model(IDS, other)[:, :4], want[:, :4], rtol=0, atol=1e-12)
    assert (model(IDS.flip(0), written) - want).abs().max() > 1e-3


@pytest.mark.parametrize("name", ["encoder-decoder", "transformer"])
def test_each_stack_has_vectors_of_its_own(name):
    model = adapters.add_prompt(MODELS[name][0](), 3)
    blocks = adapters.adapters(model).values()
    assert [(b.vectors is not None, b.last) for b in blocks] == [(1, 0), (0, 1)] * 2


@each
def test_padding_stays_hidden(kind):
    model = shaken(MAKERS[kind](bert(), 3))
    other = IDS.masked_fill(MASK == 0, 10)
    want, found = (model(ids, MASK).last_hidden_state for ids in (IDS, other))
    close(found[0, :4], want[0, :4], rtol=0, atol=1e-12)


def test_tokens_are_turned_and_learned_keys_are_not():
    torch.manual_seed(0)
    inside, turn = MultiHeadAttention(12, 3).double(), partial(rotate, layout="half")
    prefix = shaken(adapters.Prefix(inside, 5))
    parts = [each.detach() for each in (prefix.keys, prefix.values)]  # (length, d_model)
    key, value = (inside.split(each.expand(2, -1, -1)) for each in parts)
    key = torch.cat([key, turn(inside.split(inside.key(X)))], dim=2)
    value = torch.cat([value, inside.split(inside.value(X))], dim=2)
    query = turn(inside.split(inside.query(X)))
    heads = nn.functional.scaled_dot_product_attention(query, key, value)
    want = inside.output(heads.transpose(1, 2).flatten(2))
    close(prefix(X, rotate=turn)[0], want, rtol=0, atol=1e-9)


GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
devices = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
GIVEN = {"gpt": (IDS,), "bert": (IDS, MASK), "transformer": (IDS, IDS.flip(1))}
GIVEN |= {kind: (IDS, *more) for kind, more in WRITTEN.items()}


def computed(model, given):
    """Return what a model makes of ids, on the CPU."""
    device = next(model.parameters()).device
    found = model(*(each.to(device) for each in given))
    return getattr(found, "last_hidden_state", found).cpu()


@GPU
@each
@pytest.mark.parametrize(("name", "given"), GIVEN.items())
def test_adapters_are_made_where_the_model_is(name, given, kind):
    model = shaken(MAKERS[kind](MODELS[name][0]().cuda(), 3))
    assert {weight.device.type for weight in model.parameters()} == {"cuda"}
    other = shaken(MAKERS[kind](MODELS[name][0](), 3))
    close(computed(model, given), computed(other, given), rtol=0, atol=1e-9)


@devices
@pytest.mark.parametrize(
    "method", ["all weights", "last layer", "LoRA", "prefix", "prompt"]
)
def test_the_pages_tuning_runs_where_the_model_is(method, device, monkeypatch, tmp_path):
    page = chapter("fine-tuning")
    monkeypatch.setitem(page.tune.__globals__, "DEVICE", torch.device(device))
    tokenizer, base, _ = load_gpt("sonnets", device)
    text = torch.arange(300) % tokenizer.vocab_size
    model = page.adapted(base, method)
    begun = copy.deepcopy(model)
    assert page.steps_within(4, model, base) >= 4
    page.tune(model, page.mixed(page.windows(text), page.windows(text)), 3, 1e-2)
    for (name, new), old in zip(model.named_parameters(), begun.parameters(), strict=True):
        assert new.device.type == device, name
        assert torch.equal(new, old) != new.requires_grad, name
    losses = page.poem_losses(model, [text[:100], text[50:90]])
    assert (losses != page.poem_losses(base, [text[:100], text[50:90]])).all()
    assert len(page.write(model, tokenizer, "The", 5)) == 8
    if adapters.adapters(model):
        adapters.save_adapters(tmp_path / "own.safetensors", model)
        loaded = adapters.load_adapters(tmp_path / "own.safetensors", begun)
        assert {weight.device.type for weight in loaded.parameters()} == {device}
        assert (page.poem_losses(loaded, [text[:100], text[50:90]]) == losses).all()


@each
def test_a_file_holds_the_adapters_alone(kind, tmp_path):
    path, make = tmp_path / "own.safetensors", MAKERS[kind]
    model = shaken(make(gpt().float(), 3))
    adapters.save_adapters(path, model)
    assert path.stat().st_size < 4 * adapters.trainable(model) + 3000
    other = make(gpt().float(), 3)
    adapters.load_adapters(path, other)
    assert torch.equal(other(IDS), model(IDS))
    merged = shaken(make(gpt().float(), 3), seed=1)
    adapters.load_adapters(path, adapters.merge(merged))
    assert torch.equal(merged(IDS), model(IDS))


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (lambda: adapters.add_lora(gpt(), 2), r"has the shape \(3, 12\), not \(2, 12\)"),
        (lambda: adapters.add_lora(gpt(), 3, scale=2.0), "'scale': 1.0"),
        (lambda: adapters.add_lora(gpt(), 3, (".qkv",)), "holds, besides"),
        (lambda: adapters.add_lora(gpt(3), 3), "lacks"),
        (lambda: adapters.add_prefix(gpt(), 3), "'LoRA'.*'Prefix'"),
        (gpt, "has no adapters"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(model, said, tmp_path):
    path = tmp_path / "own.safetensors"
    adapters.save_adapters(path, shaken(adapters.add_lora(gpt(), 3)))
    model = model()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match=said):
        adapters.load_adapters(path, model)
    assert all(torch.equal(w, before[n]) for n, w in model.state_dict().items())


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "own.safetensors"
    model = shaken(adapters.add_lora(gpt(), 3))
    adapters.save_adapters(path, model)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match="cannot be read as safetensors"):
        adapters.load_adapters(path, model)
    with pytest.raises(OSError, match="nowhere"):
        adapters.load_adapters(tmp_path / "nowhere.safetensors", model)


def test_what_cannot_be_wrapped_is_told():
    with pytest.raises(ValueError, match="a rank from 1 to 12, please, not 13"):
        adapters.add_lora(gpt(), 13, (".qkv",))
    with pytest.raises(ValueError, match="no linear layer whose name ends in query"):
        adapters.add_lora(gpt(), 2, ("query",))
    with pytest.raises(ValueError, match="no self-attention"):
        adapters.add_prefix(nn.Linear(2, 2), 2)
    with pytest.raises(ValueError, match="no block"):
        adapters.add_prompt(nn.Linear(2, 2), 2)
    with pytest.raises(ValueError, match="adapters already"):
        adapters.add_prompt(adapters.add_lora(gpt(), 2), 2)
    with pytest.raises(TypeError, match="memory"):
        adapters.Prefix(MultiHeadAttention(4, 2), 2)(torch.ones(1, 2, 4), memory=None)
