"""Checks for the tasks of the chapter *mini-gpt*."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn
from transformers import LlamaConfig, TemperatureLogitsWarper, TopKLogitsWarper
from transformers.models.llama import modeling_llama as llama_model

from lmcourse.exercises import Wrong, compare, exercise, expect, judge, predict, run
from lmcourse.exercises.answers import array, normal, number, unpack


@exercise("mini-gpt.windows", "build")
def windows(answer):
    """Compare with slices of the corpus."""
    ids = torch.arange(40) ** 2 % 41  # whoever is off by one gets other numbers
    starts, context = torch.tensor([3, 17, 3, 30]), 5

    def cut(shift, size=context, starts=starts):
        return torch.stack([ids[start + shift :][:size] for start in starts.tolist()])

    first, second = cut(0), cut(1)
    wrong_inputs = {
        "inputs: the windows are one token too long: cut the inputs without their last "
        "token, the targets without their first.": cut(0, context + 1),
        "inputs: the windows are one token too short.": cut(0, context - 1),
        "inputs: these are the targets: inputs and targets are swapped.": second,
        "inputs: the shape is (context, batch); each window is to be a row.": first.T,
        "inputs: these are places in the corpus, not what stands there.": (
            starts[:, None] + torch.arange(context)
        ),
        "inputs: every window begins at the first start.": cut(0, starts=starts[[0] * 4]),
    }
    wrong_targets = {
        "targets: they are the inputs again, not shifted. A model would learn to "
        "copy.": first,
        "targets: they are shifted the wrong way: this is what stood *before* each "
        "token.": cut(-1),
        "targets: they are shifted by two.": cut(2),
        "targets: the last one is the first token of the window: `roll` brings round what "
        "fell off. Cut one token more instead.": first.roll(-1, 1),
        "targets: only the token after the window is there; every token has a target.": (
            second[:, -1]
        ),
        "targets: the last one is missing: it is the token after the window.": second[
            :, :-1
        ],
    }
    got = run(answer, ids, starts, context)
    inputs, targets = unpack(got, 2, "two tensors: inputs, targets")
    compare(inputs, first, wrong_inputs)
    compare(targets, second, wrong_targets)


# The page computes it: rows of N(0, 1), read in and out by the same table.
predict(
    "mini-gpt.first_loss",
    a="it has seen nothing yet: what should make it so sure, and right?",
    b="so it should be. But a table of rows from N(0, 1) reads in *and* out: "
    "what is the product of a row with itself, and what with another?",
    c=None,
)


class _DropoutModel(nn.Module):
    """A model whose dropout shows: two calls in training mode differ."""

    def __init__(self):
        super().__init__()
        self.table, self.dropout = nn.Embedding(5, 5), nn.Dropout(0.5)
        self.table.weight.data = 3 * normal(5, 5)

    def forward(self, ids):
        return self.dropout(self.table(ids))


@exercise("mini-gpt.estimate", "spot the bug")
def estimate(answer):
    """Compare with the loss in evaluation mode, from both modes."""
    model = _DropoutModel()
    inputs = torch.tensor([[0, 3, 1, 4], [2, 2, 0, 1], [4, 0, 3, 3]])
    targets = inputs.roll(1, 1)
    with torch.no_grad():
        want = F.cross_entropy(model.eval()(inputs).flatten(0, 1), targets.flatten()).item()
        mistakes = {
            "this is the loss of the last place only; take the mean over all.": (
                F.cross_entropy(model(inputs)[:, -1], targets[:, -1])
            ),
            "the losses are added; take their mean.": want * targets.numel(),
            "this is the perplexity; return the loss.": math.exp(want),
        }
    for training in (True, False):
        model.train(training)
        got = run(answer, model, inputs, targets)
        if model.training != training:
            before, after = ("training", "evaluation")[:: 1 if training else -1]
            raise Wrong(
                f"the model came in {before} mode and is left in {after} mode: whoever "
                "goes on with it trains without dropout, or evaluates with it."
            )
        again = number(run(answer, model, inputs, targets))
        if training and abs(number(got) - again) > 1e-9:
            raise Wrong(
                "two calls on the same text give two losses: dropout is still on while it "
                "is evaluated."
            )
        compare(got, want, mistakes)


def _top(scores, k):
    return TopKLogitsWarper(k)(None, scores)


def _kept(scores, k):
    return _top(scores, k).softmax(-1)


@exercise("mini-gpt.chances", "build")
def chances(answer):
    """Compare with the samplers of `transformers`."""
    logits, temperature, k = 2 * normal(3, 8).double(), 0.6, 3
    warm = TemperatureLogitsWarper(temperature)(None, logits)
    want = _kept(warm, k)
    mistakes = {
        "the temperature multiplies; it should divide.": _kept(logits * temperature, k),
        "the temperature is not used.": _kept(logits, k),
        "the temperature divides the probabilities instead of the logits.": _kept(
            logits.softmax(-1) / temperature, k
        ),
        "k is not used.": warm.softmax(-1),
        "after the others are struck out, the rest must sum to 1 again.": (
            warm.softmax(-1) * (want > 0)
        ),
        "struck-out logits are set to 0. That still is a chance; set them to -inf.": (
            (warm * (want > 0)).softmax(-1)
        ),
        "one threshold for all texts: each row has a k-th largest of its own.": (
            warm.masked_fill(logits < logits.topk(k).values.min(), -math.inf).softmax(-1)
        ),
        "one too many is kept.": _kept(warm, k + 1),
        "one too few is kept.": _kept(warm, k - 1),
        "these are the k least likely.": (-_top(-warm, k))
        .nan_to_num(posinf=-math.inf)
        .softmax(-1),
        "the softmax runs over the texts; it belongs on the last axis.": _top(
            warm, k
        ).softmax(0),
        "only the k chances are returned; the others are there too, with a chance of 0.": (
            want.sort(descending=True).values[:, :k]
        ),
        "these are logits; a softmax is missing.": _top(warm, k),
    }
    expect(answer, [logits, temperature, k], want, mistakes)


# The page names who wrote what.
judge(
    "mini-gpt.writer",
    a="read to the end of a's lines: this writer knows how long a line is.",
    b="read to the end of b's lines: this writer knows how long a line is.",
    c=None,
)


# Above are losses that no model with a few hundred parameters a character reaches; below,
# those of a model that has not learned.
PLAUSIBLE = (0.9, 3.0)


@exercise("mini-gpt.sweep", "experiment")
def sweep(answer):
    """Look at a sweep: enough shapes, of one size, and trained."""
    rows = array(answer)
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise Wrong("hand in a list of pairs: the number of parameters, and the loss.")
    if len(rows) < 4:
        raise Wrong(f"{len(rows)} models are no sweep; train four or more.")
    sizes, losses = rows.T
    if not (sizes >= 1000).all():
        raise Wrong("the first number of each pair is a number of parameters.")
    times = sizes.max() / sizes.min()
    return {
        f"the largest has {times:.2f} times as many parameters as the smallest. Then size "
        "and shape differ at once, and the loss does not tell which it was.": times > 1.15,
        "a loss is out of range: after a few dozen steps it is well below guessing and "
        "above what a model this small can reach. Is it the loss of the validation text?": (
            not ((losses > PLAUSIBLE[0]) & (losses < math.log(61) - 0.1)).all()
        ),
        "none has learned much yet; train a little longer.": losses.min() > PLAUSIBLE[1],
        "two losses are equal to the last digit: is it the same model twice?": (
            len(set(losses.tolist())) < len(losses)
        ),
    }


def _parts(model):
    """Name the parts of a layer of `transformers` as the task names their matrices."""
    layer = model.layers[0]
    attention, mlp = layer.self_attn, layer.mlp
    parts = {"norm_1": layer.input_layernorm, "norm_2": layer.post_attention_layernorm}
    parts |= {"query": attention.q_proj, "key": attention.k_proj}
    parts |= {"value": attention.v_proj, "output": attention.o_proj}
    return parts | {"gate": mlp.gate_proj, "up": mlp.up_proj, "down": mlp.down_proj}


def _llama_layer(heads, key_heads):
    """Return a layer of `transformers`, in float64, with norms that are not all ones."""
    sizes = {"hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 1}
    sizes |= {"num_attention_heads": heads, "num_key_value_heads": key_heads}
    config = LlamaConfig(**sizes, vocab_size=7, attn_implementation="eager")
    model = llama_model.LlamaModel(config).double().eval()
    for seed, weight in enumerate(model.layers[0].parameters()):
        weight.data = normal(*weight.shape, seed=seed).double() / 2 + (weight.ndim == 1)
    return model


@torch.no_grad()
def _llama_output(model, x, causal=True, turned=True):
    places = torch.arange(x.shape[1])[None]
    cos, sin = model.rotary_emb(x, places)
    if not turned:
        cos, sin = torch.ones_like(cos), torch.zeros_like(sin)
    mask = torch.full((x.shape[1],) * 2, -torch.inf if causal else 0.0, dtype=x.dtype)
    how = {"attention_mask": mask.triu(1)[None, None], "position_ids": places}
    found = model.layers[0](x, position_embeddings=(cos, sin), **how)
    return found[0] if isinstance(found, tuple) else found


@exercise("mini-gpt.llama", "build")
def llama(answer):
    """Compare with the layer of `transformers`, its weights changed for each mistake."""
    heads, key_heads = 6, 2
    model = _llama_layer(heads, key_heads)
    x = normal(2, 5, 24).double()
    weights = {n: part.weight.detach().clone() for n, part in _parts(model).items()}
    want = _llama_output(model, x)
    mistakes = {
        "later tokens are seen: the attention must be causal.": (
            _llama_output(model, x, causal=False)
        ),
        "each query head looks at the wrong key head: heads 0, 1, 2 share the first, so "
        "repeat each with `repeat_interleave`, not the whole row of them.": (
            _with(
                model,
                x,
                query=_regrouped(weights["query"], heads, key_heads),
                output=_regrouped(weights["output"].T, heads, key_heads).T,
            )
        ),
        "gate and up are swapped: silu belongs to gate.": (
            _with(model, x, gate=weights["up"], up=weights["gate"])
        ),
        "positions are missing: turn queries and keys.": _llama_output(
            model, x, turned=False
        ),
        "neighbouring dimensions are turned in pairs; Llama pairs those that are half a "
        "head apart: the other layout of `rotate`.": _with(
            model,
            x,
            query=_paired(weights["query"], heads),
            key=_paired(weights["key"], key_heads),
        ),
    }
    mistakes |= _without_path(model, x, weights, want)
    mistakes["the norms subtract the mean; Llama's only divide."] = _centred(model, x)
    got = run(answer, x, weights, heads, key_heads)
    compare(got, want, mistakes, tolerance=1e-6)


@torch.no_grad()
def _with(model, x, **changed):
    """Return what the layer computes with other matrices in it."""
    other = copy.deepcopy(model)
    for name, matrix in changed.items():
        _parts(other)[name].weight.data = matrix
    return _llama_output(other, x)


def _without_path(model, x, weights, want):
    """Return what the layer computes when something is not added to its input."""
    silent = {name: torch.zeros_like(weights[name]) for name in ("output", "down")}
    middle = _with(model, x, down=silent["down"])
    fetched = middle - x
    return {
        "what attention found is to be added to x.": _with(
            model, fetched, output=silent["output"]
        ),
        "what the feed-forward network made is to be added to what entered it.": (
            want - middle
        ),
        "nothing is added to what was there: the residual path is missing, twice.": (
            _with(model, fetched, output=silent["output"]) - fetched
        ),
    }


def _regrouped(matrix, heads, key_heads):
    """Order the rows of query heads as whoever tiles the key heads meets them."""
    rows = matrix.unflatten(0, (heads // key_heads, key_heads, -1))
    return rows.transpose(0, 1).flatten(0, 2)


def _paired(matrix, heads):
    """Order each head's rows so that neighbours are turned together."""
    return matrix.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2)


@torch.no_grad()
def _centred(model, x):
    """Return what the layer computes with the norms of GPT-2."""
    other = copy.deepcopy(model)
    for name in ("input_layernorm", "post_attention_layernorm"):
        norm = nn.LayerNorm(x.shape[-1], eps=1e-6, bias=False).double()
        norm.weight = getattr(other.layers[0], name).weight
        setattr(other.layers[0], name, norm)
    return _llama_output(other, x)
