"""What goes wrong in the exercises of *bert-internals*, diagnosis → answer."""

import torch
from transformers import BertConfig


def places(bert, ids):
    return bert.embeddings.position_embeddings(torch.arange(ids.shape[1]))


def word(bert, ids):
    return bert.embeddings.word_embeddings(ids)


def kind(bert, kinds):
    return bert.embeddings.token_type_embeddings(kinds)


def norm(bert, total):
    return bert.embeddings.LayerNorm(total)


def means(states, mask):
    mask = mask[..., None]
    return [(h * mask).sum(1) / mask.sum(1) for h in states]


def sizes(width=144, layers=22, heads=4, wide=576, **others):
    return BertConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=wide,
        **others,
    )


WRONG = {
    "whose": {
        "its two neighbours": "a",
        "right meadow": ["c", "C"],
        "one letter of a, b, c": ["summer", 3],
    },
    "embed": {
        "word table alone": lambda b, i, k: word(b, i),
        "not normalised": lambda b, i, k: word(b, i) + places(b, i) + kind(b, k),
        "position is missing": lambda b, i, k: norm(b, word(b, i) + kind(b, k)),
        "type is missing": lambda b, i, k: norm(b, word(b, i) + places(b, i)),
        "belong to the places 0, 1, 2, … instead": lambda b, i, k: norm(
            b, word(b, i) + b.embeddings.position_embeddings(i) + kind(b, k)
        ),
        "the norm is missing": lambda b, i, k: (
            word(b, i) + b.embeddings.position_embeddings(i) + kind(b, k)
        ),
        "not used": lambda b, i, k: norm(b, word(b, i) + places(b, i) + kind(b, 0 * k)),
        "before the sum": lambda b, i, k: (
            norm(b, word(b, i)) + norm(b, places(b, i)) + norm(b, kind(b, k))
        ),
        "at once": [
            lambda b, i, k: b(i, token_type_ids=k),
            lambda b, i, k: b.embeddings(i, token_type_ids=k),
        ],
    },
    "last_four": {
        "padding is averaged in": lambda h, m: torch.cat([x.mean(1) for x in h[-4:]], -1),
        "still counted": lambda h, m: torch.cat(
            [(x * m[..., None]).mean(1) for x in h[-4:]], -1
        ),
        "in the whole batch": lambda h, m: torch.cat(
            [(x * m[..., None]).sum(1) / m.sum() for x in h[-4:]], -1
        ),
        "first four": lambda h, m: torch.cat(means(h[:4], m), -1),
        "itself is left out": lambda h, m: torch.cat(means(h[-5:-1], m), -1),
        "turned round": lambda h, m: torch.cat(means(h[:-5:-1], m), -1),
        "are averaged": lambda h, m: sum(means(h[-4:], m)) / 4,
        "are added": lambda h, m: sum(means(h[-4:], m)),
        "CLS": lambda h, m: torch.cat([x[:, 0] for x in h[-4:]], -1),
    },
    "lookback": {
        "looks forward: rows": lambda w: w.triu(1).sum(-1)[:, :-1].mean(-1),
        "forward, and over all": lambda w: w.triu(1).sum(-1).mean(-1),
        "columns to the left": lambda w: w.triu(1).sum(-1)[:, 1:].mean(-1),
        "itself is counted; only": lambda w: w.tril().sum(-1)[:, 1:].mean(-1),
        "counted, and the first": lambda w: w.tril().sum(-1).mean(-1),
        "first token is averaged in": lambda w: w.tril(-1).sum(-1).mean(-1),
        "another diagonal": lambda w: w[:, 1:].tril(-1).sum(-1).mean(-1),
        "only the token just before": lambda w: w.diagonal(-1, dim1=-2, dim2=-1).mean(-1),
        "sum over the tokens": lambda w: w.tril(-1).sum((-1, -2)),
        "3 of 3 numbers differ": lambda w: torch.zeros(3),
    },
    "same": {
        "any number is zero": lambda x, y: bool(x.all() == y.all()),
        "a zero in it": lambda x, y: bool((x == y).all() and x.all()),
        "rounding alone": lambda x, y: bool((x == y).all()),
        "second number is the larger": lambda x, y: bool((x - y).max() < 1e-4),
        "first number is the larger": lambda x, y: bool((x - y).min() > -1e-4),
        "another order": lambda x, y: bool((x.sum() - y.sum()).abs() < 1e-4),
        "one number of 24": lambda x, y: bool((x - y).abs().mean() < 1e-2),
        "one truth value": lambda x, y: torch.isclose(x, y),
        "stopped with": lambda x, y: torch.testing.assert_close(x, y) or True,
    },
    "fused": {
        "would be kind": "a",
        "none to give": ["c", " C "],
        "one letter of a, b, c": ["nothing", 2],
    },
    "small_bert": {
        "hand in the BertConfig": [{"hidden_size": 144}, 10_000_000],
        "vocabulary of 30,522": sizes(vocab_size=2000),
        "cannot share": sizes(heads=7),
        "more layers than": sizes(layers=2000),
        "too many": sizes(256, 4, 4, 1024),
        "too few": sizes(layers=2),
        "too wide": sizes(256, 3, 4, 512),
    },
}
