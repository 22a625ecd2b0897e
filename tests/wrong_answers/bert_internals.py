"""What goes wrong in the exercises of *bert-internals*, diagnosis → answer."""

import torch


def places(bert, ids):
    return bert.embeddings.position_embeddings(torch.arange(ids.shape[1]))


def word(bert, ids):
    return bert.embeddings.word_embeddings(ids)


def kind(bert, kinds):
    return bert.embeddings.token_type_embeddings(kinds)


def norm(bert, total):
    return bert.embeddings.LayerNorm(total)


def pooled(states, weight, bias):
    return torch.tanh(states @ weight.T + bias)


def means(states, mask):
    mask = mask[..., None]
    return [(h * mask).sum(1) / mask.sum(1) for h in states]


def most(average, special, itself=True):
    hidden = special | (torch.eye(len(special), dtype=torch.bool) & itself)
    return average.masked_fill(hidden, -1).argmax(-1)


NO = torch.zeros(7, dtype=torch.bool)

WRONG = {
    "embed": {
        "word table alone": lambda b, i, k: word(b, i),
        "not normalised": lambda b, i, k: word(b, i) + places(b, i) + kind(b, k),
        "position is missing": lambda b, i, k: norm(b, word(b, i) + kind(b, k)),
        "type is missing": lambda b, i, k: norm(b, word(b, i) + places(b, i)),
        "not used": lambda b, i, k: norm(b, word(b, i) + places(b, i) + kind(b, 0 * k)),
        "before the sum": lambda b, i, k: (
            norm(b, word(b, i)) + norm(b, places(b, i)) + norm(b, kind(b, k))
        ),
        "stopped with TypeError": lambda b, i, k: b(i, token_type_ids=k),
    },
    "layer_parameters": {
        "biases are missing": lambda d, f: 4 * d * d + 2 * d * f + 2 * d,
        "biases of the linear layers": lambda d, f: 4 * d * d + 2 * d * f + 4 * d,
        "normalisations are missing": lambda d, f: 4 * (d * d + d) + 2 * d * f + d + f,
        "only one normalisation": lambda d, f: 4 * (d * d + d) + 2 * d * f + d + f + 2 * d,
        "fourth matrix": lambda d, f: 3 * (d * d + d) + 2 * d * f + d + f + 4 * d,
        "two linear layers": lambda d, f: 4 * (d * d + d) + d * f + f + 4 * d,
    },
    "pooler": {
        "tanh is missing": lambda s, w, b: s[:, 0] @ w.T + b,
        "wrong way round": lambda s, w, b: torch.tanh(s[:, 0] @ w + b),
        "mean of the tokens": lambda s, w, b: pooled(s.mean(1), w, b),
        "last token": lambda s, w, b: pooled(s[:, -1], w, b),
        "first text of the batch": lambda s, w, b: pooled(s[0], w, b),
        "every token": pooled,
        "bias is missing": lambda s, w, b: pooled(s[:, 0], w, 0 * b),
    },
    "last_four": {
        "padding is averaged in": lambda h, m: torch.cat([x.mean(1) for x in h[-4:]], -1),
        "still counted": lambda h, m: torch.cat(
            [(x * m[..., None]).mean(1) for x in h[-4:]], -1
        ),
        "first four": lambda h, m: torch.cat(means(h[:4], m), -1),
        "itself is left out": lambda h, m: torch.cat(means(h[-5:-1], m), -1),
        "turned round": lambda h, m: torch.cat(means(h[:-5:-1], m), -1),
        "are averaged": lambda h, m: sum(means(h[-4:], m)) / 4,
        "are added": lambda h, m: sum(means(h[-4:], m)),
        "CLS": lambda h, m: torch.cat([x[:, 0] for x in h[-4:]], -1),
    },
    "most_attended": {
        "[CLS] and [SEP] are still allowed": lambda w, s: most(w.mean(0), NO),
        "itself is still allowed": lambda w, s: most(w.mean(0), s, itself=False),
        "nothing is left out": lambda w, s: w.mean(0).argmax(-1),
        "looks most at each": lambda w, s: most(w.mean(0).T, s),
        "left out as rows": lambda w, s: (
            w.mean(0)
            .masked_fill(s[:, None] | torch.eye(7, dtype=torch.bool), -1)
            .argmax(-1)
        ),
        "only the first head": lambda w, s: most(w[0], s),
        "one answer a head": lambda w, s: most(w, s),
        "these are weights": lambda w, s: w.mean(0).masked_fill(s, -1).max(-1).values,
    },
    "lookback": {
        "looks forward: rows": lambda w: w.triu(1).sum(-1)[:, :-1].mean(-1),
        "forward, and over all": lambda w: w.triu(1).sum(-1).mean(-1),
        "columns to the left": lambda w: w.triu(1).sum(-1)[:, 1:].mean(-1),
        "itself is counted; only": lambda w: w.tril().sum(-1)[:, 1:].mean(-1),
        "counted, and the first": lambda w: w.tril().sum(-1).mean(-1),
        "first token is averaged in": lambda w: w.tril(-1).sum(-1).mean(-1),
        "only the token just before": lambda w: w.diagonal(-1, dim1=-2, dim2=-1).mean(-1),
        "sum over the tokens": lambda w: w.tril(-1).sum((-1, -2)),
        "3 of 3 numbers differ": lambda w: torch.zeros(3),
    },
}
