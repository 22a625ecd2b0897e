"""What goes wrong in the tasks of *inside-gpt*, diagnosis → answer."""

import numpy as np
import torch

from lmcourse.data import load_texts, train_val_test_split
from lmcourse.exercises.inside_gpt import _art, _openings
from lmcourse.gpt.checkpoints import load_gpt

ART = _art()
SONNETS = train_val_test_split(load_texts("sonnets"))


def cut(probs, p, rising=False):
    """Return what a nucleus leaves of probabilities, not summing to one."""
    falling, ids = probs.sort(descending=not rising)
    remaining = falling.where(falling.cumsum(-1) - falling < p, 0)
    return torch.zeros_like(probs).scatter(-1, ids, remaining)


def whole(probs):
    return probs / probs.sum(-1, keepdim=True)


def right(logits, temperature, p):
    return whole(cut((logits / temperature).softmax(-1), p))


def batch(logits, temperature, p):
    remaining = cut((logits / temperature).softmax(-1), p)
    return remaining / remaining.sum()


def crossing(logits, temperature, p):
    held, ids = (logits / temperature).softmax(-1).sort(descending=True)
    remaining = held.where(held.cumsum(-1) <= p, 0)
    return torch.zeros_like(logits).scatter(-1, ids, whole(remaining))


def late(logits, temperature, p):
    return cut(logits.softmax(-1), p) ** (1 / temperature)


def falling(logits, temperature, p):
    return right(logits, temperature, p).sort(descending=True).values


def gathered(logits, temperature, p):
    """The falling probabilities, gathered where they should be scattered."""
    ids = (logits / temperature).argsort(descending=True)
    return falling(logits, temperature, p).gather(-1, ids)


def given(page):
    """The model, and the names that the page makes of it."""
    tokenizer, gpt, _ = load_gpt(device="cpu")
    heads = list(np.ndindex(gpt.config.layers, gpt.config.heads))
    names = {"tokenizer": tokenizer, "gpt": gpt, "config": gpt.config, "HEADS": heads}
    return names | {"OPENINGS": _openings(16), "parts": SONNETS, "ids_of": ids_of}


def ids_of(text):
    """Return a text as ids, (1, tokens)."""
    tokenizer, _, _ = load_gpt(device="cpu")
    return torch.tensor([tokenizer.encode(text)])


def hooked(change, keep=False):
    """Return an answer to `carry`: a hook that makes a change in (…, heads, d_head)."""

    def answer(model, ids, layer, head, value):
        attention = model.blocks[layer].attention

        def hook(module, inputs):
            heads = inputs[0].unflatten(-1, (attention.heads, -1)).clone()
            change(heads, head, value)
            return (heads.flatten(-2),)

        handle = attention.output.register_forward_pre_hook(hook)
        logits = model(ids)[:, -1]
        if not keep:
            handle.remove()
        return logits

    return answer


def put(x, head, value):
    x[:, -1, head] = value


def everywhere(x, head, value):
    x[:, :, head] = value[:, None]


def at_first(x, head, value):
    x[:, 0, head] = value


def before_last(x, head, value):
    x[:, -2, head] = value


def one_text(x, head, value):
    x[0, -1, head] = value[0]


def beside(x, head, value):
    x[:, -1, head - 1] = value


def plus(x, head, value):
    x[:, -1, head] += value


def gone(x, head, value):
    x[:, -1, head] = 0


def behind(model, ids, layer, head, value):
    """The value behind the output matrix."""

    def hook(module, inputs, output):
        heads = output.unflatten(-1, (-1, value.shape[-1])).clone()
        heads[:, -1, head] = value
        return heads.flatten(-2)

    with model.blocks[layer].attention.output.register_forward_hook(hook):
        return model(ids)[:, -1]


def interleaved(model, ids, layer, head, value):
    """The heads' numbers taken in turn."""

    def hook(module, inputs):
        x = inputs[0].unflatten(-1, (value.shape[-1], -1)).clone()
        x[:, -1, :, head] = value
        return (x.flatten(-2),)

    with model.blocks[layer].attention.output.register_forward_pre_hook(hook):
        return model(ids)[:, -1]


def training(model, *given):
    """Right, but the model is left in training mode."""
    return sliced(model.train(), *given)


def frozen(model, *given):
    """Right, but the weights are left frozen."""
    return sliced(model.requires_grad_(False), *given)


def hanging(model, *given):
    """Right, but a hook that changes nothing is left."""
    model.blocks[0].register_forward_pre_hook(lambda module, inputs: None)
    return sliced(model, *given)


def sliced(model, ids, layer, head, value):
    """The same by columns of what the linear layer is given, and a kept handle."""
    linear, width = model.blocks[layer].attention.output, value.shape[-1]

    def hook(module, inputs):
        x = inputs[0].clone()
        x[:, -1, head * width : (head + 1) * width] = value
        return x

    handle = linear.register_forward_pre_hook(hook)
    try:
        return model(ids)[:, -1]
    finally:
        handle.remove()


WRONG = {
    "nucleus": {
        "two things": late,
        "before it": lambda *given: whole(late(*given)),
        "no longer sum": lambda x, heat, p: cut((x / heat).softmax(-1), p),
        "by its own sum": batch,
        "p is not used": lambda x, heat, p: (x / heat).softmax(-1),
        "the temperature is not used": lambda x, heat, p: right(x, 1, p),
        "again as a power": lambda x, heat, p: whole(right(x, heat, p) ** (1 / heat)),
        "used twice, and": lambda x, heat, p: cut((x / heat).softmax(-1), p) ** (1 / heat),
        "should divide": lambda x, heat, p: right(x, 1 / heat, p),
        "falling order": falling,
        "wrong tokens": gathered,
        "crosses p": crossing,
        "least likely": lambda x, heat, p: whole(
            cut((x / heat).softmax(-1), p, rising=True)
        ),
        "logarithms": lambda *given: right(*given).log(),
    },
    "carry": {
        "nothing is changed": lambda model, ids, *_: model(ids)[:, -1],
        "at every token": hooked(everywhere),
        "the first token": hooked(at_first),
        "before the last": hooked(before_last),
        "one text of the batch": hooked(one_text),
        "another head": hooked(beside),
        "of the other layer": lambda model, ids, layer, *rest: sliced(
            model, ids, 1 - layer, *rest
        ),
        "is added": hooked(plus),
        "becomes zero": hooked(gone),
        "stays changed": hooked(put, keep=True),
        "training mode": [training, frozen],
        "still there": hanging,
        "after the output matrix": behind,
        "unflatten into": interleaved,
        "these are probabilities": lambda *given: sliced(*given).softmax(-1),
    },
    "places": {
        "stopped with RuntimeError: mat1": lambda tokens, positions, ids, kept: (
            tokens[ids] @ positions
        ),
        "last rows": lambda tokens, positions, ids, kept: (
            tokens[ids[:, kept:]] + positions[kept - ids.shape[1] :]
        ),
        "as many positions": lambda tokens, positions, ids, kept: (
            tokens[ids[:, kept:]] + positions[kept:]
        ),
    },
    "art": {
        "rounded to two places": ART.round(2),
        "rows and": ART.T,
        "sums": 16 * ART,
        "percentages": 100 * ART,
        "wrong order": ART[::-1],
        "t and l": _art("tl"),
        "other direction": _art(others=("we", "thou")),
        "heads of “shal”": _art("tl", "shal"),
        "end in “art”": _art(end="art"),
        "“they” stands in place": _art(others=("thou", "they")),
        "ratio of two means": _art(of="sums"),
        "the median": _art(of="median"),
        "take all 16": _art(of="those that turn"),
    },
}
RIGHT = {
    "nucleus": [right],
    "places": [
        lambda tokens, positions, ids, kept: (
            tokens[ids[:, kept:]] + positions[torch.arange(kept, ids.shape[1])]
        )
    ],
    "carry": [sliced, hooked(put)],
    "art": [ART],
}

TYPED = {"art": [ART.round(1), np.eye(4) / 2]}
