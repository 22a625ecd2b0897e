"""The engine of the page against PyTorch, in a browser.

Random models of odd sizes, and those that the book carries. Everything is compared with the
largest magnitude: 1e-4 for float32, and for weights rounded alike; 1e-3 for float16.
"""

from functools import partial
from itertools import product

import pytest
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from lmbook.play import stores
from lmcourse import int8
from lmcourse.dates import Transformer
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.models import load_bert

pytestmark = pytest.mark.browser

RUN = """async calls => {
  const model = await open(), cache = calls.some(c => c.cached) ? model.cache() : null;
  return calls.map(({ ids, cached, ...options }) => {
    for (const patch of Object.values(options.patch || {}))
      patch.values = Float32Array.from(patch.values);
    if (cached) options.cache = cache;
    const { logits, kept } = model.forward(ids, options), states = {};
    for (const [name, { values, shape }] of Object.entries(kept))
      states[name] = [Array.from(values), shape];
    return { logits: logits && Array.from(logits), kept: states };
  });
}"""


def run(lab, content, *calls):
    """Run a model of the page; each answer has logits and kept tensors by name."""
    (lab.folder / "model.safetensors").write_bytes(content)
    answers = lab.evaluate(RUN, list(calls))
    for answer in answers:
        for name, (values, shape) in answer["kept"].items():
            answer["kept"][name] = torch.tensor(values).float().view(shape)
        if answer["logits"] is not None:
            answer["logits"] = torch.tensor(answer["logits"])
    return answers


def near(result, wanted, limit=1e-4):
    """Compare with the largest magnitude."""
    wanted = wanted.detach().float()
    off = (result.view(wanted.shape) - wanted).abs().max() / wanted.abs().max()
    assert off <= limit, f"off by {off:.1e} of the largest"


def shaken(model):
    """Give a model weights at which every part of it matters."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(0.3 * torch.randn(weight.shape, generator=generator))
            if weight.ndim == 1:
                weight += 1.0
    return model.eval()


def small_gpt(positions):
    config = GPTConfig(11, 13, 2, heads=3, d_model=12, positions=positions)
    return shaken(GPT(config))


def gpt_states(model, ids):
    """Return what each block of a GPT hands on, embeddings first, and the logits."""
    states = []
    hooks = [model.dropout.register_forward_hook(lambda *a: states.append(a[2][0]))]
    hooks += [
        block.register_forward_hook(lambda *a: states.append(a[2][0][0]))
        for block in model.blocks
    ]
    with torch.no_grad():
        logits = model(torch.tensor([ids]))[0]
    for hook in hooks:
        hook.remove()
    return states, logits


IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5]
STATES = ["embeddings", "blocks.*"]
GPTS = {
    "learned": lambda: small_gpt("learned"),
    "rotary": lambda: small_gpt("rotary"),
    "sonnets": lambda: load_gpt(device="cpu")[1],
}


def gpt(name, dtype=torch.float32):
    """Return a GPT and its file."""
    model = GPTS[name]()
    return model, stores.gpt_file(model, "", dtype)


@pytest.mark.parametrize("name", GPTS)
def test_a_gpt_computes_what_pytorch_does(lab, name):
    half = name == "sonnets"  # as the site carries it
    dtype, limit = (torch.float16, 1e-3) if half else (torch.float32, 1e-4)
    model, content = gpt(name, dtype)
    (answer,) = run(lab, content, {"ids": IDS, "keep": STATES})
    states, logits = gpt_states(model.to(dtype).float(), IDS)
    for place, state in zip(answer["kept"].values(), states, strict=True):
        near(place, state, limit)
    near(answer["logits"], logits, limit)


@pytest.mark.parametrize("name", ["learned", "rotary"])
def test_a_cache_changes_nothing(lab, name):
    _, content = gpt(name)
    parts = [IDS[:4], IDS[4:5], IDS[5:]]
    calls = [{"ids": part, "cached": True, "keep": STATES} for part in parts]
    whole, *answers = run(lab, content, {"ids": IDS, "keep": STATES}, *calls)
    near(torch.cat([answer["logits"] for answer in answers]), whole["logits"])
    for state, values in whole["kept"].items():
        near(torch.cat([answer["kept"][state] for answer in answers]), values)


def test_attention_weights_and_values_are_those_of_pytorch(lab):
    model, content = gpt("rotary")
    keep = [f"blocks.*.attention.{n}" for n in ("weights", "query", "value", "lengths")]
    (answer,) = run(lab, content, {"ids": IDS, "keep": keep})
    states, _ = gpt_states(model, IDS)
    attentions = model.attentions(torch.tensor([IDS]))
    for layer, block in enumerate(model.blocks):
        computed = {
            k.split(".")[-1]: v for k, v in answer["kept"].items() if f".{layer}." in k
        }
        near(computed["weights"], attentions[layer][0])
        with torch.no_grad():
            query, _, value = block.attention.project(block.norm_1(states[layer])[None])
            moved = torch.stack(
                [v @ w.mT for v, w in zip(value[0], heads_of(block), strict=True)]
            )
        near(computed["query"], query[0].transpose(0, 1).flatten(1))
        near(computed["value"], value[0].transpose(0, 1).flatten(1))
        near(computed["lengths"], moved.norm(dim=-1))


def heads_of(block):
    """Return each head's columns of the output matrix, (heads, d_model, d_head)."""
    return block.attention.output.weight.unflatten(1, (3, -1)).transpose(0, 1)


def test_a_head_without_effect_is_one_whose_part_is_zero(lab):
    model, content = gpt("learned")
    pairs = [[0, 2], [1, 0]]
    plain, answer = run(lab, content, {"ids": IDS}, {"ids": IDS, "ablate": pairs})

    def silence(head, _, inputs):
        inputs[0].unflatten(-1, (3, -1))[..., head, :] = 0

    for layer, head in pairs:
        output = model.blocks[layer].attention.output
        output.register_forward_pre_hook(partial(silence, head))
    near(answer["logits"], gpt_states(model, IDS)[1])
    assert (answer["logits"] - plain["logits"]).abs().max() > 0.1


def test_a_patched_activation_goes_on_as_pytorch_would(lab):
    model, content = gpt("rotary")
    new = [0.5 - i / 10 for i in range(24)]
    patch = {"blocks.0": {"rows": [2, 7], "values": new}}
    (answer,) = run(lab, content, {"ids": IDS, "patch": patch, "keep": ["blocks.0"]})

    def replace(module, inputs, output):
        output[0][0, [2, 7]] = torch.tensor(new).view(2, 12)

    model.blocks[0].register_forward_hook(replace)
    near(answer["logits"], gpt_states(model, IDS)[1])
    near(answer["kept"]["blocks.0"][[2, 7]], torch.tensor(new))


def test_the_logit_lens_reads_every_layer_out(lab):
    model, content = gpt("learned")
    call = {"ids": IDS, "keep": ["blocks.*.lens"], "logits_of": [8]}
    (answer,) = run(lab, content, call)
    states, logits = gpt_states(model, IDS)
    for state, lens in zip(states[1:], answer["kept"].values(), strict=True):
        near(lens, model.norm(state) @ model.tokens.weight.mT)
    near(answer["logits"], logits[8])


@pytest.mark.parametrize("name", ["learned", "rotary"])
def test_texts_of_a_batch_do_not_see_each_other(lab, name):
    model, content = gpt(name)
    (answer,) = run(lab, content, {"ids": IDS, "tokens": 3})
    with torch.no_grad():
        wanted = model(torch.tensor(IDS).view(3, 3))
    near(answer["logits"], wanted)


# --- an encoder and a decoder ---------------------------------------------------------

TWO_MODELS = """async ([weights, config, source, target, hidden]) => {
  const { Model } = await import("/play/engine.js");
  const part = (name, how) => new Model({ ...config, ...how }, { floats: (weight) =>
    Float32Array.from(weights[name + weight] ?? weights[weight]) });
  const encoder = part("encoder.", { causal: false, output: "none" });
  const decoder = part("decoder.", { causal: true, cross: true, output: "untied" });
  const memory = encoder.forward(source, { keep: ["norm"] }).kept.norm.values;
  const options = { memory, hidden: new Set(hidden), keep: ["blocks.*.cross.weights"] };
  const { logits, kept } = decoder.forward(target, options);
  const looks = Object.values(kept).map(({ values }) => Array.from(values));
  return [memory, logits].map(all => Array.from(all)).concat([looks]);
}"""


def test_a_decoder_attends_to_the_memory_as_pytorch_does(lab):
    sizes = {"layers": 2, "d_model": 12, "heads": 3, "d_ff": 20}
    model = shaken(Transformer(11, **sizes))
    weights = dict(model.state_dict())
    weights["tokens.weight"] = weights.pop("embed.table.weight")
    config = sizes | {"vocab_size": 11, "context": 13, "eps": 1e-5, "activation": "gelu"}
    config |= {"positions": "sinusoidal", "norm_first": True}
    flat = {name: weight.flatten().tolist() for name, weight in weights.items()}
    source, target, hidden = IDS, [1, 7, 3, 10], [0, 4]
    given = [flat, config, source, target, hidden]
    memory, logits, looks = map(torch.tensor, lab.evaluate(TWO_MODELS, given))
    with torch.no_grad():
        states, mask = model.encode(torch.tensor([source]))
        mask[..., hidden] = False
        wanted, _ = model.decode(torch.tensor([target]), states, mask)
    near(memory, states)
    near(logits, wanted)
    looks = looks.view(2, 3, len(target), len(source))
    assert (looks[..., hidden] == 0).all()
    near(looks.sum(-1), torch.ones(2, 3, len(target)))


# --- BERT -----------------------------------------------------------------------------


def small_bert(mlm=False, **other):
    sizes = {"vocab_size": 17, "hidden_size": 12, "num_hidden_layers": 3}
    sizes |= {"num_attention_heads": 2, "intermediate_size": 20}
    sizes |= {"max_position_embeddings": 15, "type_vocab_size": 2}
    config = BertConfig(**sizes | other, attn_implementation="eager")
    return shaken((BertForMaskedLM if mlm else BertModel)(config))


def bert_answer(model, ids, types):
    """Return all that transformers tells of a text: states, weights, logits."""
    given = {"input_ids": torch.tensor([ids]), "token_type_ids": torch.tensor([types])}
    with torch.no_grad():
        return model(**given, output_hidden_states=True, output_attentions=True)


@pytest.mark.parametrize("activation", ["gelu", "relu", "gelu_new", "silu"])
def test_a_bert_of_other_sizes_computes_what_pytorch_does(lab, activation):
    model, types = small_bert(hidden_act=activation), [0] * 5 + [1] * 4
    keep = [*STATES, "blocks.*.attention.weights"]
    call = {"ids": IDS, "token_types": types, "keep": keep}
    (answer,) = run(lab, stores.bert_file(model, as_int8=False), call)
    wanted, stored = bert_answer(model, IDS, types), answer["kept"]
    states = [value for name, value in stored.items() if "weights" not in name]
    for values, state in zip(states, wanted.hidden_states, strict=True):
        near(values, state[0])
    for layer, weights in enumerate(wanted.attentions):
        near(stored[f"blocks.{layer}.attention.weights"], weights[0])
    assert answer["logits"] is None


def masked_file(model):
    """Return a `BertForMaskedLM` as a file: the engine's BERT and its head."""
    head = model.cls.predictions
    parts = {"mlm.dense": head.transform.dense, "mlm.norm": head.transform.LayerNorm}
    tensors = stores.bert_tensors(model.bert) | {"mlm.bias": head.bias}
    for name, part in parts.items():
        tensors |= {f"{name}.weight": part.weight, f"{name}.bias": part.bias}
    return stores._file(tensors, stores.bert_config(model.config) | {"output": "mlm"})


def test_a_bert_with_the_head_of_its_pretraining_names_words(lab):
    model = small_bert(mlm=True)
    (answer,) = run(lab, masked_file(model), {"ids": IDS})
    near(answer["logits"], bert_answer(model, IDS, [0] * 9).logits[0])


LINE = "Because I could not stop for Death – he kindly stopped for me"


@pytest.mark.parametrize("as_int8", [False, True])
def test_the_default_bert_computes_what_pytorch_does(lab, as_int8):
    tokenizer, model = load_bert(device="cpu")
    ids = tokenizer(LINE)["input_ids"]
    content = stores.bert_file(model, as_int8)
    (answer,) = run(lab, content, {"ids": ids, "keep": STATES})
    if as_int8:
        assert len(content) < 1.05 * sum(w.numel() for w in model.parameters())
        model = int8.rounded(model)
    wanted = bert_answer(model, ids, [0] * len(ids)).hidden_states
    for values, state in zip(answer["kept"].values(), wanted, strict=True):
        near(values, state[0])


# --- writing --------------------------------------------------------------------------


def test_a_text_goes_on_when_the_context_is_full_and_a_seed_repeats_it(lab):
    (lab.folder / "model.safetensors").write_bytes(gpt("rotary")[1])
    one, two, other = lab.evaluate(
        """async () => {
          const { write } = await import("/play/writing.js");
          const model = await open();
          const text = seed => Array.from(write(model, [1, 2], { count: 40, seed }));
          return [1, 1, 2].map(seed => text(seed).map(piece => piece.id));
        }"""
    )
    assert len(one) == 40
    assert one == two != other


def test_what_is_drawn_from_is_what_transformers_leaves(lab):
    logits = 2 * torch.randn(40, generator=torch.Generator().manual_seed(3))
    settings = [*product((0.3, 0.8, 1, 1.7), (1, 5, 17, 40), (0.05, 0.5, 0.95, 1))]
    probs = lab.evaluate(
        """async ([values, settings]) => {
          const { nextProbs } = await import("/play/writing.js");
          const logits = Float32Array.from(values);
          return settings.map(([temperature, top_k, top_p]) =>
            Array.from(nextProbs(logits, { temperature, top_k, top_p })));
        }""",
        [logits.tolist(), settings],
    )
    for (temperature, top_k, top_p), ours in zip(settings, probs, strict=True):
        warpers = [TemperatureLogitsWarper(float(temperature)), TopKLogitsWarper(top_k)]
        warpers = LogitsProcessorList([*warpers, TopPLogitsWarper(float(top_p))])
        theirs = warpers(None, logits[None])[0].softmax(0)
        assert (torch.tensor(ours) > 0).equal(theirs > 0), (temperature, top_k, top_p)
        near(torch.tensor(ours), theirs)


# --- what cannot be -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 3}, r"blocks.2.norm_1.weight has the shape undefined, not 12"),
        ({"d_model": 24}, "tokens.weight has the shape 11,12, not 11,24"),
        ({"activation": "snake"}, "the page has no activation snake"),
    ],
)
def test_another_model_than_its_configuration_says_is_refused(lab, changes, message):
    model = small_gpt("learned")
    config = stores.gpt_config(model.config) | changes
    content = stores._file(stores.gpt_tensors(model), config)
    with pytest.raises(Exception, match=message):
        run(lab, content, {"ids": IDS})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"ids": []}, "0 tokens, but this model sees 1 to 13"),
        ({"ids": [1] * 14}, "14 tokens"),
        ({"ids": [11]}, "11 is no token"),
        ({"ids": [1.5]}, "1.5 is no token"),
        ({"ids": [1], "token_types": [0]}, "no type"),
        ({"ids": [1], "memory": [1] * 12}, "cross-attention and a memory"),
        ({"ids": [1] * 4, "tokens": 3}, "4 ids are no texts of 3 tokens"),
        ({"ids": [1] * 4, "tokens": 2, "keep": ["blocks.0"]}, "nothing of it is kept"),
        ({"ids": [1], "patch": {"blocks.9": {"values": [1]}}}, "no activation blocks.9"),
        ({"ids": [1], "patch": {"blocks.0": {"values": [1]}}}, "a row has 12 numbers"),
    ],
)
def test_what_a_model_cannot_do_is_told(lab, call, message):
    with pytest.raises(Exception, match=message):
        run(lab, gpt("learned")[1], call)
