"""What goes wrong in the exercises of *bert-internals*, diagnosis → answer."""

import numpy as np
import torch
import torch.nn.functional as F
from transformers import BertConfig


def sizes(width=144, layers=22, heads=4, wide=576, **others):
    return BertConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=wide,
        **others,
    )


def added(bert, ids, kinds):
    parts = bert.embeddings
    word, kind = parts.word_embeddings.weight, parts.token_type_embeddings.weight
    place = parts.position_embeddings.weight[: ids.shape[1]]
    return parts.LayerNorm(word[ids] + place + kind[kinds])


def one_by_one(states, mask):
    """Return the last four layers of each text, its tokens cut out."""
    texts = range(len(mask))
    means = [[x[t][: int(mask[t].sum())].mean(0) for x in states[-4:]] for t in texts]
    return torch.stack([torch.cat(row) for row in means])


def layer_of(
    layer,
    x,
    heads,
    scale=True,
    relu=False,
    parts="query key value",
    norms=(0, 1),
    dense=None,
    merge=True,
    over_heads=False,
    fed=None,
    ahead=True,
    raw=False,
    by_rows=False,
):
    """Head by head, with PyTorch's fused attention."""
    own, out = layer.attention.self, layer.attention.output
    split = [getattr(own, part)(x).chunk(heads, -1) for part in parts.split()]
    factor = None if scale else 1.0
    mixed = [
        F.scaled_dot_product_attention(*h, scale=factor, is_causal=not ahead)
        for h in zip(*split, strict=True)
    ]
    if over_heads:
        q, k, v = (torch.stack(t, 1) for t in split)
        mixed = ((q @ k.mT / q.shape[-1] ** 0.5).softmax(1) @ v).unbind(1)
    if raw:
        mixed = [q @ k.mT / q.shape[-1] ** 0.5 @ v for q, k, v in zip(*split, strict=True)]
    if by_rows:
        whole = [torch.cat(t, -1).view(len(x), heads, x.shape[1], -1) for t in split]
        mixed = F.scaled_dot_product_attention(*whole).unbind(1)
    merged = torch.cat(mixed, -1) if merge else torch.stack(mixed, 1).reshape(x.shape)
    first, second = ((out.LayerNorm, layer.output.LayerNorm)[i] for i in norms)
    dense = getattr(own, dense) if dense else out.dense
    y = first(x + dense(merged))
    wide = layer.intermediate.dense(y if fed is None else fed)
    wide = wide.relu() if relu else wide * (1 + torch.erf(wide / 2**0.5)) / 2
    return second(y + layer.output.dense(wide))


def pre_norm(layer, x, heads):
    out = layer.attention.output
    own = layer.attention.self
    split = [p(out.LayerNorm(x)).chunk(heads, -1) for p in (own.query, own.key, own.value)]
    mixed = [F.scaled_dot_product_attention(*h) for h in zip(*split, strict=True)]
    y = x + out.dense(torch.cat(mixed, -1))
    wide = F.gelu(layer.intermediate.dense(layer.output.LayerNorm(y)))
    return y + layer.output.dense(wide)


def norm_inside(layer, x, heads):
    out, own = layer.attention.output, layer.attention.self
    split = [part(x).chunk(heads, -1) for part in (own.query, own.key, own.value)]
    mixed = [F.scaled_dot_product_attention(*h) for h in zip(*split, strict=True)]
    y = x + out.LayerNorm(out.dense(torch.cat(mixed, -1)))
    wide = F.gelu(layer.intermediate.dense(y))
    return y + layer.output.LayerNorm(layer.output.dense(wide))


def at_places(bert, ids, kinds, positions):
    parts = bert.embeddings
    word, kind = parts.word_embeddings(ids), parts.token_type_embeddings(kinds)
    return parts.LayerNorm(word + parts.position_embeddings(positions) + kind)


def summed(bert, ids, kinds):
    parts = bert.embeddings
    place = parts.position_embeddings.weight[: ids.shape[1]]
    return parts.word_embeddings(ids) + place + parts.token_type_embeddings(kinds)


def with_ids(bert, ids, kinds):
    parts = bert.embeddings
    place = parts.position_embeddings(parts.position_ids[:, : ids.shape[1]])
    word, kind = parts.word_embeddings(ids), parts.token_type_embeddings(kinds)
    return parts.LayerNorm(word + place + kind)


WRONG = {
    "embed": {
        "not bert itself": lambda b, i, k: b(i, token_type_ids=k),
        "not bert.embeddings itself": lambda b, i, k: b.embeddings(i, token_type_ids=k),
        "only the row of the word table is": lambda b, i, k: b.embeddings.LayerNorm(
            b.embeddings.word_embeddings(i)
        ),
        "counted from 1": lambda *given: at_places(
            *given, torch.arange(1, 1 + given[1].shape[1])
        ),
        "type table is indexed with input_ids": lambda b, i, k: at_places(
            b, i, i, torch.arange(i.shape[1])
        ),
        "use `LayerNorm`": lambda b, i, k: F.layer_norm(
            summed(b, i, k), (8,), eps=b.embeddings.LayerNorm.eps
        ),
        "type is added after": lambda b, i, k: (
            b.embeddings.LayerNorm(
                summed(b, i, 0 * k) - b.embeddings.token_type_embeddings(0 * k)
            )
            + b.embeddings.token_type_embeddings(k)
        ),
        "the position and the norm": lambda b, i, k: (
            b.embeddings.word_embeddings(i) + b.embeddings.token_type_embeddings(k)
        ),
        "position is added after": lambda b, i, k: (
            b.embeddings.LayerNorm(
                b.embeddings.word_embeddings(i) + b.embeddings.token_type_embeddings(k)
            )
            + b.embeddings.position_embeddings.weight[: i.shape[1]]
        ),
        "position is added twice": lambda b, i, k: b.embeddings.LayerNorm(
            summed(b, i, k) + b.embeddings.position_embeddings.weight[: i.shape[1]]
        ),
    },
    "layer": {
        "not layer itself": lambda layer, x, heads: layer(x),
        "not layer.attention itself": lambda layer, x, heads: layer.attention(x),
        "not layer.attention.self itself": lambda layer, x, heads: layer.attention.self(x),
        "not layer.attention.output itself": lambda layer, x, heads: layer.attention.output(
            x, x
        ),
        "not layer.intermediate itself": lambda layer, x, heads: layer.intermediate(x),
        "not layer.output itself": lambda layer, x, heads: layer.output(
            layer.intermediate.dense(x), x
        ),
        "always use 2 heads": lambda layer, x, heads: layer_of(layer, x, 2),
        "not transposed back": lambda *given: layer_of(*given, merge=False),
        "over the heads": lambda *given: layer_of(*given, over_heads=True),
        "is given x": lambda *given: layer_of(*given, fed=given[1]),
        "key and value are swapped": lambda *given: layer_of(
            *given, parts="query value key"
        ),
        "norms are swapped": lambda *given: layer_of(*given, norms=(1, 0)),
        "both norms are attention's": lambda *given: layer_of(*given, norms=(0, 0)),
        "both norms are layer.output's": lambda *given: layer_of(*given, norms=(1, 1)),
        "query is used for key": lambda *given: layer_of(*given, parts="query query query"),
        "query and key are swapped": lambda *given: layer_of(
            *given, parts="key query value"
        ),
        "as GPT-2 does": pre_norm,
        "BERT normalises the sum": norm_inside,
        "by the square root of a head": lambda *given: layer_of(*given, scale=False),
        "causal mask hides": lambda *given: layer_of(*given, ahead=False),
        "no softmax": lambda *given: layer_of(*given, raw=True),
        "numbers of several tokens": lambda *given: layer_of(*given, by_rows=True),
        "activation is ReLU": lambda *given: layer_of(*given, relu=True),
    },
    "same": {
        "whether no number of x": lambda x, y: (x != 0).all() == (y != 0).all(),
        "last bit": torch.equal,
        "one number that agrees": lambda x, y: bool((x - y).abs().min() <= 1e-9),
        "absolute value": lambda x, y: not (x - y > 1e-9).any(),
        "cancel": lambda x, y: abs(float((x - y).sum())) <= 2e-7,
        "although one number": lambda x, y: F.l1_loss(x, y) < 1e-9,
        "`allclose`": lambda x, y: np.allclose(x, y, atol=1e-9),
        "each entry by itself": lambda x, y: torch.dist(x, y) <= 1e-9,
        "that all pairs": lambda x, y: x.shape == y.shape,
        "that no pair": lambda x, y: x is y,
    },
    "last_four": {
        "interleaved": lambda states, mask: (
            one_by_one(states, mask).unflatten(1, (4, -1)).mT.flatten(1)
        ),
        "four times": lambda states, mask: one_by_one(states[-1:] * 4, mask),
        "keep the axis": lambda states, mask: torch.cat(
            [(x * mask[..., None]).sum(1) / mask.sum(1) for x in states[-4:]], -1
        ),
        "are left out": lambda states, mask: one_by_one(
            [x[:, 1:] for x in states], mask[:, 2:]
        ),
        "[CLS] is left out": lambda states, mask: one_by_one(
            [x[:, 1:] for x in states], mask[:, 1:]
        ),
        "of the last token": lambda states, mask: torch.cat(
            [x[range(2), mask.sum(1) - 1] for x in states[-4:]], -1
        ),
        "these are sums": lambda states, mask: (
            one_by_one(states, mask) * mask.sum(1)[:, None]
        ),
        "averaged together": lambda states, mask: (
            one_by_one(states, mask).mean(0, keepdim=True).expand(2, -1)
        ),
        "padding included": lambda states, mask: torch.cat(
            [x.amax(1) for x in states[-4:]], -1
        ),
    },
    "small_bert": {
        "hand in the BertConfig": [{"hidden_size": 144}, 10_000_000],
        "30,522 tokens": sizes(vocab_size=2000),
        "512 positions": [
            sizes(152, 20, 4, 608, max_position_embeddings=n) for n in (1, -1, 128)
        ],
        "cannot share": sizes(heads=7),
        "a thousand layers": sizes(layers=2000),
        "too many": sizes(256, 4, 4, 1024),
        "too few": sizes(layers=2),
        "this is a decoder": sizes(is_decoder=True),
        "narrower than": sizes(144, 60, 4, 0),
        "too wide": sizes(256, 3, 4, 512),
    },
}

RIGHT = {
    "embed": [
        added,
        with_ids,
        lambda b, i, k: b.embeddings.LayerNorm(summed(b, i, k) / 3),  # a norm's scale is 1
    ],
    "same": [
        lambda x, y: torch.allclose(x, y, rtol=0, atol=1e-9),
        lambda x, y: np.abs(x.numpy() - y.numpy()).max() < 1e-9,
    ],
    "small_bert": [sizes(128, 30, 4, 512), sizes(96, 62, 4, 384)],
    "last_four": [one_by_one],
    "layer": [layer_of],
}

NONSENSE = {
    "same": [
        lambda x, y: bool(x[0] == y[0]),
        lambda x, y: not torch.equal(x, y),
        lambda x, y: bool((x < y).all()),
    ],
    "small_bert": [sizes(4, 2, 2, 550_000), sizes(0, 1, 1), BertConfig()],
}
FORBIDDEN = {
    "embed": {"inside bert.embeddings": WRONG["embed"]["not bert.embeddings itself"]}
}
