"""What goes wrong in the exercises of *dickinson-layers*, diagnosis → answer."""

import numpy as np
import torch

from lmcourse.data import load_poems
from lmcourse.models import load_bert
from lmcourse.pooling import kept, pool_layers

TEXTS = load_poems().text.tolist()
TOKENIZER, BERT = load_bert()
BY_LENGTH = np.argsort([*map(len, TOKENIZER(TEXTS)["input_ids"])])


def read(rows, count=5, level=-1):
    """The mean of what a step keeps among some poems."""
    levels = pool_layers([TEXTS[i] for i in rows], TOKENIZER, BERT).levels
    return kept(levels[level - 1], levels[level], count).mean().item()


SHORT, LONG = BY_LENGTH[60:100].tolist(), BY_LENGTH[110:150].tolist()
SHARE, POEMS = read(SHORT), [TEXTS[i] for i in SHORT]
WHOLE = pool_layers(TEXTS, TOKENIZER, BERT)
AMONG_ALL = kept(*WHOLE.levels[-2:], 5)[SHORT].mean().item()

NAMES = ["before layer 0", *(f"after layer {i}" for i in range(12))]


def given(page):
    return {"texts": TEXTS, "pooled": WHOLE, "levels": WHOLE.levels}


def by_sets(before, after):
    pairs = zip(before.tolist(), after.tolist(), strict=True)
    return [len({*one} & {*two}) / len(one) for one, two in pairs]


def by_search(before, after):
    rows = [torch.isin(a, b).float().mean() for a, b in zip(before, after, strict=True)]
    return torch.stack(rows)


WRONG = {
    "named": {
        "one too high": lambda count: [f"after layer {i}" for i in range(count)],
        "the first layer is called layer 1": lambda count: [
            "before layer 0",
            *(f"after layer {i}" for i in range(1, count)),
        ],
        "not among the static": lambda count: [
            "static",
            *(f"after layer {i}" for i in range(count - 1)),
        ],
        "no layer -1": lambda count: [f"after layer {i - 1}" for i in range(count)],
        "a name is missing": lambda count: NAMES[: count - 1],
        "one is too many": lambda count: NAMES[: count + 1],
        "comes next": lambda count: [f"before layer {i}" for i in range(count)],
        "turned round": lambda count: NAMES[:count][::-1],
    },
    "token_mean": {
        "first token alone": lambda x, mask: x[:, 0],
        "each number of a vector": lambda x, mask: (
            (x * mask[..., None]).sum(1) / mask.sum(1)
        ),
        "in it, and each number of a vector": lambda x, mask: x.sum(1) / mask.sum(1),
        "all real tokens": lambda x, mask: (x * mask[..., None]).sum(1) / mask.sum(),
        "only padding": lambda x, mask: (
            (x * ~mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        ),
        "set to zero": lambda x, mask: x.masked_fill(mask[..., None].bool(), 0).mean(1),
    },
    "stayed": {
        "place by place": lambda a, b: (a == b).float().mean(1),
        "rows of all poems": lambda a, b: torch.isin(a, b).float().mean(1),
        "not their share": lambda a, b: (a[:, :, None] == b[:, None]).sum((1, 2)),
        "that left": lambda a, b: 1 - by_search(a, b),
        "from 0 to 1": lambda a, b: 100 * by_search(a, b),
        "`any`, not `all`": [
            lambda a, b: (a[:, :, None] == b[:, None]).all(2).float().mean(1),
            lambda a, b: torch.zeros(len(a)),
            lambda a, b: torch.tensor(
                [len({*x} & {*y}) / len(x) for x, y in zip(a, b, strict=True)]
            ),
        ],
        "sorted rows": lambda a, b: (a.sort(1)[0] == b.sort(1)[0]).float().mean(1),
        "divided by 10": lambda a, b: (a[:, :, None] == b[:, None]).sum((1, 2)) / 10,
        "one number for each poem": lambda a, b: by_search(a, b).mean(),
    },
    "equals": {
        "positions in `texts`": [(SHORT[:30], SHARE), ([0.5] * 40, SHARE)],
        "still missing": (SHORT, None),
        "these are texts": [(each, SHARE) for each in (POEMS, np.array(POEMS), POEMS[0])],
        "lies outside": ([*SHORT[:39], 999], SHARE),
        "in it twice": ([*SHORT[:39], SHORT[0]], SHARE),
        "tokens apart": (list(range(40)), SHARE),
        "not five": (SHORT, read(SHORT, 10)),
        "before the last": (SHORT, read(SHORT, 5, -2)),
        "that left": (SHORT, 1 - SHARE),
        "from 0 to 1": (SHORT, 100 * SHARE),
        "another share": [(SHORT, 0.99), (SHORT, AMONG_ALL)],
    },
}

RIGHT = {
    "named": [
        lambda count: NAMES[:count],
        lambda count: tuple(
            f"after layer {i - 1}" if i else "before layer 0" for i in range(count)
        ),
    ],
    "token_mean": [
        lambda x, mask: torch.stack(
            [text[real].mean(0) for text, real in zip(x, mask.bool(), strict=True)]
        )
    ],
    "stayed": [by_sets, by_search],
    "equals": [(SHORT, SHARE), (torch.tensor(LONG), read(LONG)), [np.array(SHORT), SHARE]],
}

TYPED = {"equals": [(SHORT, 0.5), (LONG, SHARE + 0.1)]}
