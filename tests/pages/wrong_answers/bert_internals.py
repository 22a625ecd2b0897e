"""What goes wrong in the exercises of *bert-internals*, diagnosis → answer."""

import torch
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


def looked_back(weights):
    shares = [[head[i, :i].sum() for i in range(1, len(head))] for head in weights]
    return [float(sum(head) / len(head)) for head in shares]


WRONG = {
    "embed": {
        "at once": [
            lambda b, i, k: b(i, token_type_ids=k),
            lambda b, i, k: b.embeddings(i, token_type_ids=k),
        ]
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

RIGHT = {
    "embed": [added],
    "same": [
        lambda x, y: torch.allclose(x, y, atol=1e-5),
        lambda x, y: bool((x - y).abs().max() < 1e-4),
    ],
    "small_bert": [sizes(128, 30, 4, 512), sizes(96, 62, 4, 384)],
    "last_four": [one_by_one],
    "lookback": [looked_back, lambda weights: weights.tril(-1)[:, 1:].sum(-1).mean(-1)],
}

NONSENSE = {
    "small_bert": [sizes(4, 2, 2, 550_000), sizes(0, 1, 1), BertConfig()],
}
FORBIDDEN = {"embed": {"do all of it at once": WRONG["embed"]["at once"][1]}}
