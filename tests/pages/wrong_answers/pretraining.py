"""What goes wrong in the exercises of *pretraining*, diagnosis → answer."""

import math

import torch
import torch.nn.functional as F


def draw(ids, share, generator):
    return torch.rand(ids.shape, generator=generator) < share


def same_draw(ids, special, share, generator):
    again = torch.Generator().manual_seed(3)
    return draw(ids, share, again) & ~torch.isin(ids, special)


def global_draw(ids, special, share, generator):
    return (torch.rand(ids.shape) < share) & ~torch.isin(ids, special)


def in_runs(length, shared=False):
    """Return what hides runs, drawn for each text or once for all."""

    def choose(ids, special, share, generator):
        begin = 1 - (1 - share) ** (1 / length)
        starts = draw(ids[:1] if shared else ids, begin, generator).expand_as(ids)
        chosen = starts.clone()
        for k in range(1, length):
            chosen[:, k:] |= starts[:, :-k]
        return chosen & ~torch.isin(ids, special)

    return choose


def one_run(ids, special, share, generator):
    """Hide one run in each text, wherever it begins."""
    real = ~torch.isin(ids, special)
    size = real.sum(1, keepdim=True)
    long = (share * size).round()
    start = (draw_one(ids, generator) * (size + 1)).long() % size
    after = (real.cumsum(1) - 1 - start) % size
    return real & (after < long)


def draw_one(ids, generator):
    return torch.rand(len(ids), 1, generator=generator)


def whole_texts(ids, special, share, generator):
    return (draw_one(ids, generator) < share) & ~torch.isin(ids, special)


def left_half(ids, special, share, generator):
    """Hide runs, and twice as many, but only near the beginning."""
    real = ~torch.isin(ids, special)
    near = real.cumsum(1) <= real.sum(1, keepdim=True) / 2
    return in_runs(3)(ids, special, 2 * share, generator) & near


def skewed(ids, special, share, generator):
    """Hide runs, nearly all of them near the beginning."""
    real = ~torch.isin(ids, special)
    near = real.cumsum(1) <= real.sum(1, keepdim=True) / 2
    many = in_runs(3)(ids, special, min(1.9 * share, 0.95), generator)
    return torch.where(near, many, in_runs(3)(ids, special, 0.1 * share, generator))


def in_pairs(ids, special, share, generator):
    half = draw(ids[:, ::2], share, generator)
    return half.repeat_interleave(2, 1)[:, : ids.shape[1]] & ~torch.isin(ids, special)


def doubled_left(ids, special, share, generator):
    left = torch.arange(ids.shape[1]) < ids.shape[1] / 2
    odds = torch.where(left, min(2 * share, 1.0), float(share == 1))
    return draw(ids, odds, generator) & ~torch.isin(ids, special)


def in_blocks(ids, special, share, generator):
    """Hide blocks of three at fixed places: each place has its turn."""
    blocks = draw(ids[:, ::3], share, generator)
    hidden = blocks.repeat_interleave(3, 1)[:, : ids.shape[1]]
    return hidden & ~torch.isin(ids, special)


def global_runs(ids, special, share, generator):
    return in_runs(3)(ids, special, share, None)


def same_runs(ids, special, share, generator):
    return in_runs(3)(ids, special, share, torch.Generator().manual_seed(3))


def real(ids, pad):
    return (ids != pad)[:, None, None, :]  # (batch, 1, 1, tokens)


def causal(ids):
    return torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()


def cut(ids, spans, names, *, each=False, same=False, mark=True, named=True, end=True):
    """Do as the page does, but for what is asked for."""
    source = []
    target = []
    last = 0
    for (a, b), own in zip(spans, names, strict=False):
        name = names[0] if same else own
        source += ids[last:a]
        if mark and each:
            source += [name] * (b - a)
        elif mark:
            source.append(name)
        if named:
            target.append(name)
        target += ids[a:b]
        last = b
    if end:
        target.append(names[len(spans)])
    return source + ids[last:], target


def changed(**how):
    return lambda ids, spans, names: cut(ids, spans, names, **how)


def without_end(ids, spans, names):
    source, target = cut(ids, spans, names)
    return source[: len(source) - len(ids) + spans[-1][1]], target


def named_after(ids, spans, names):
    both = zip(names, spans, strict=False)
    target = [x for name, (a, b) in both for x in (*ids[a:b], name)]
    return cut(ids, spans, names)[0], [*target, names[len(spans)]]


def ended(ids, spans, names):
    return cut(ids, [(a, b + 1) for a, b in spans], names)


def forwards(ids, spans, names):
    source = [*ids]
    for (a, b), name in zip(spans, names, strict=False):
        source[a:b] = [name]
    return source, cut(ids, spans, names)[1]


WRONG = {
    "places": {
        "share of 1, special tokens": lambda i, s, share, g: draw(i, share, g),
        "padding is left alone": lambda i, s, share, g: draw(i, share, g) & (i != 0),
        "85 %": lambda i, s, share, g: (
            torch.where(torch.tensor(share < 1), ~draw(i, share, g), draw(i, share, g))
            & ~torch.isin(i, s)
            & (share > 0)
        ),
        "with a share of 0, something": lambda i, s, share, g: (
            (draw(i, share, g) | (torch.arange(i.shape[1]) == 1)) & ~torch.isin(i, s)
        ),
        "ordinary tokens are left out": lambda i, s, share, g: (
            draw(i, share, g) & ~torch.isin(i, s) & (torch.arange(i.shape[1]) > 1)
        ),
        "draws choose the same": same_draw,
        "pairs of neighbours": in_pairs,
        "one half is hidden": doubled_left,
        "whole texts or whole columns": [whole_texts, in_runs(1, shared=True)],
        "random state has changed": global_draw,
        "True and False of the shape": lambda i, s, share, g: i,
        "29\N{NO-BREAK SPACE}% of the tokens": lambda i, s, share, g: (
            draw(i, min(2 * share, 1), g) & ~torch.isin(i, s)
        ),
    },
    "loss": {
        "takes logits": lambda x, ids, c: F.cross_entropy(x[c].softmax(-1), ids[c]),
        "set to one number": lambda x, ids, c: F.cross_entropy(
            (x * c[..., None]).flatten(0, 1), ids.flatten()
        ),
        "id 0 as their target": lambda x, ids, c: F.cross_entropy(
            x.flatten(0, 1), ids.masked_fill(~c, 0).flatten()
        ),
        "`log_softmax` first": lambda x, ids, c: F.nll_loss(x[c], ids[c]),
        "the logarithm is missing": lambda x, ids, c: F.nll_loss(x[c].softmax(-1), ids[c]),
        "not over the vocabulary": lambda x, ids, c: F.nll_loss(
            x.log_softmax(1)[c], ids[c]
        ),
        "id 0 is left out": lambda x, ids, c: F.cross_entropy(x[c], ids[c], ignore_index=0),
        "these are bits": lambda x, ids, c: F.cross_entropy(x[c], ids[c]) / math.log(2),
        "the exponential": lambda x, ids, c: F.cross_entropy(x[c], ids[c]).exp(),
        "number of texts": lambda x, ids, c: (
            F.cross_entropy(x[c], ids[c], reduction="sum") / len(ids)
        ),
    },
    "runs": {
        "special tokens are chosen": lambda i, s, share, g: draw(i, share, g),
        "shares of 0.15 and 0.3": [
            lambda i, s, share, g: in_runs(3)(i, s, min(3 * share, 0.9), g),
            lambda i, s, share, g: in_runs(3)(i, s, 0.15, g),
        ],
        "draws choose the same": same_runs,
        "whole texts or whole columns": [whole_texts, in_runs(3, shared=True)],
        "one half is hidden": [left_half, skewed],
        "never hidden": lambda i, s, share, g: (
            in_runs(3)(i, s, share, g) & (torch.arange(i.shape[1]) != 9)
        ),
        "keep both neighbours": lambda i, s, share, g: (
            draw(i, share, g) & ~torch.isin(i, s)
        ),
        "random state has changed": global_runs,
        "True and False of the shape": lambda i, s, share, g: 0.02,
    },
    "target": {
        "are swapped": lambda *a: cut(*a)[::-1],
        "one sentinel, not one for each": changed(each=True),
        "all of them are the same": changed(each=True, same=True),
        "ends in the first sentinel again": lambda i, s, n: cut(i, s, [*n[: len(s)], n[0]]),
        "tell them apart": changed(same=True),
        "not in their order": lambda i, s, n: cut(i, s, n[::-1]),
        "keeps what should be cut": lambda i, s, n: (i, cut(i, s, n)[1]),
        "nothing marks where": changed(mark=False),
        "after the last span": without_end,
        "before the tokens that it replaced": named_after,
        "in the target only": lambda i, s, n: (
            [*cut(i, s, n)[0], n[len(s)]],
            cut(i, s, n)[1],
        ),
        "the source is not right": lambda i, s, n: (cut(i, s, n)[0][1:], cut(i, s, n)[1]),
        "lacks its last sentinel": changed(end=False),
        "but not their sentinels": changed(named=False, end=False),
        "the target is the whole text": lambda i, s, n: (cut(i, s, n)[0], i),
        "the target is not right": changed(named=False),
        "the end of a span": ended,
        "moves to the left": forwards,
        "two lists": lambda i, s, n: cut(i, s, n)[0],
    },
    "mask": {
        "the mask is causal": lambda i, p: real(i, p) & causal(i),
        "padding is not hidden": [
            lambda i, p: torch.ones_like(real(i, p)),
            lambda i, p: real(i, 0),
            lambda i, p: real(i, p) | causal(i),
        ],
        "an id below": lambda i, p: (i > p)[:, None, None, :],
        "only to itself": lambda i, p: torch.eye(i.shape[1], dtype=torch.bool) & real(i, p),
        "attend to anything": lambda i, p: torch.zeros_like(real(i, p)),
        "are swapped: the tokens": lambda i, p: ~real(i, p),
        "what comes before it": lambda i, p: real(i, p) & causal(i).T,
        "some of the real tokens": lambda i, p: (
            real(i, p) & (torch.arange(i.shape[1]) != 1)
        ),
        "True and False is expected": lambda i, p: real(i, p).float(),
        "does not broadcast": lambda i, p: torch.ones(3, 4, dtype=torch.bool),
    },
}
RIGHT = {
    "runs": [in_runs(2), in_runs(4), in_runs(10), one_run, in_blocks],
    "loss": [
        lambda x, ids, chosen: F.cross_entropy(x[chosen], ids[chosen]),
        lambda x, ids, c: F.cross_entropy(x.mT, ids.masked_fill(~c, -100)),
    ],
    "places": [lambda i, s, share, g: draw(i, share, g) & ~torch.isin(i, s)],
    "mask": [
        lambda i, p: real(i, p).expand(-1, 1, i.shape[1], -1),
        lambda i, p: real(i, p).numpy(),
    ],
    "target": [lambda i, s, n: tuple(map(torch.tensor, cut(i, s, n)))],
}

TYPED = {"runs": [0.72, 0.02, (0.72, 0.02)]}
