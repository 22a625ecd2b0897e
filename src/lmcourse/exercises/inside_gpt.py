"""Checks for the tasks of the chapter *inside-gpt*."""

from collections import Counter

import numpy as np
import torch
import torch.nn.functional as F
from transformers import TemperatureLogitsWarper, TopPLogitsWarper

from lmcourse.ablation import replaced
from lmcourse.data import load_texts, train_val_test_split
from lmcourse.exercises import Wrong, compare, exercise, expect, judge, predict
from lmcourse.exercises.answers import normal
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.inside import outputs
from lmcourse.gpt.model import GPT, GPTConfig

OTHERS = "thou", "they"


def _nucleus(logits, temperature, p, first=True, share=True):
    """Return top-p after the temperature, or in a way that is often met."""
    heat = TemperatureLogitsWarper(float(temperature))
    warm = heat(None, logits) if first else logits
    kept = TopPLogitsWarper(p)(None, warm).isfinite()
    warm = heat(None, logits)
    if share:
        return warm.masked_fill(~kept, -torch.inf).softmax(-1)
    whole = warm.softmax(-1) if first else logits.softmax(-1) ** (1 / temperature)
    return whole.masked_fill(~kept, 0)


@exercise("inside-gpt.nucleus", "spot the bug")
def nucleus(answer):
    """Compare with the samplers of `transformers`, in their order."""
    logits, p = 2 * normal(3, 12, seed=3).double(), 0.7
    for temperature in (0.5, 1.8):
        given = logits, temperature, p
        warm = TemperatureLogitsWarper(temperature)(None, logits)
        total = (_nucleus(*given) ** (1 / temperature)).sum(-1, keepdim=True)
        mistakes = {
            "two things are still wrong: the temperature comes after the nucleus is cut, "
            "and the rows do not sum to 1.": _nucleus(*given, first=False, share=False),
            "the rows sum to 1. But the nucleus is cut from the chances at temperature 1: "
            "the temperature belongs before it.": _nucleus(*given, first=False),
            "the order is right. But what is left of the chances does not sum to 1 "
            "again.": _nucleus(*given, share=False),
            "nothing is left out: p is not used.": warm.softmax(-1),
            "the temperature is not used.": _nucleus(logits, 1.0, p),
            "the temperature is used twice: in the logits, and again as a power of the "
            "chances.": _nucleus(*given) ** (1 / temperature) / total,
            "the temperature is used twice, and the rows do not sum to 1.": (
                (warm.softmax(-1) * (_nucleus(*given) > 0)) ** (1 / temperature)
            ),
            "the temperature multiplies; it should divide.": _nucleus(
                logits, 1 / temperature, p
            ),
            "the chances stand in falling order: scatter them back to their tokens.": (
                _nucleus(*given).sort(descending=True).values
            ),
            "these are logits, or their logarithms; chances are asked for.": (
                _nucleus(*given).log()
            ),
        }
        expect(answer, given, _nucleus(*given), mistakes)


@exercise("inside-gpt.places", "spot the bug")
def places(answer):
    """Compare with the vectors of the whole text, of which the last are wanted."""
    tokens, positions = normal(9, 4).double(), normal(8, 4, seed=1).double()
    ids = torch.tensor([[3, 1, 4, 1, 5], [2, 7, 1, 8, 2]])
    whole = F.embedding(ids, tokens) + positions[:5]  # (batch, tokens, d_model)
    for kept in (2, 4, 0):
        new = ids[:, kept:]
        mistakes = {
            "positions start at zero again: the first new token is told that it is the "
            "first of the text. Before it stand those that the cache holds.": (
                tokens[new] + positions[: new.shape[1]]
            ),
            "one place too late.": tokens[new] + positions[kept + 1 : 6],
            "all vectors are there; those of the first `kept` tokens are in the cache "
            "already.": whole,
            "positions are missing.": tokens[new],
            "every new token gets the same position.": tokens[new] + positions[kept],
            "these are the first tokens; the new ones are wanted.": whole[:, : 5 - kept],
        }
        if kept > 1:
            mistakes["one place too early."] = tokens[new] + positions[kept - 1 : 4]
        expect(answer, [tokens, positions, ids, kept], whole[:, kept:], mistakes)


@exercise("inside-gpt.carry", "build")
def carry(answer):
    """Compare with a model whose head is replaced by other means: its output matrix."""
    torch.manual_seed(0)
    model = GPT(GPTConfig(11, context=8, layers=2, heads=3, d_model=12)).double().eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, 0, 0.4)
    ids, value = torch.tensor([[3, 1, 4, 1, 5], [2, 7, 1, 8, 2]]), normal(2, 4).double()
    before = model(ids)[:, -1].detach()

    def logits(layer, head, value, place=slice(-1, None), part=replaced):
        own = outputs(model, ids)[layer, head].clone()
        own[:, place] = value[:, None]
        with part(model.blocks[layer], head, own), torch.no_grad():
            return model(ids)[:, -1]

    for layer, head in ((0, 1), (1, 2)):
        own = outputs(model, ids)[layer, head][:, -1]
        mistakes = {
            "nothing is changed.": before,
            "the head's output is replaced at every token, not at the last alone.": logits(
                layer, head, value, slice(None)
            ),
            "the first token is changed, not the last.": logits(layer, head, value, [0]),
            "this is another head: they lie side by side, d_head numbers each.": logits(
                layer, head - 1, value
            ),
            "this is the other layer.": logits(1 - layer, head, value),
            "the value is added to the head's output; it takes its place.": logits(
                layer, head, own + value
            ),
            "the head is switched off: where is the value?": logits(layer, head, 0 * value),
        }
        given = model, ids, layer, head, value
        expect(answer, given, logits(layer, head, value), mistakes)
        if not torch.equal(model(ids)[:, -1], before):
            raise Wrong("the model stays changed: remove the hook when you are done.")


@exercise("inside-gpt.art", "experiment")
def art(answer):
    """Measure it again, on the checkpoint that the page reads."""
    want = _art()
    mistakes = {
        "layers are rows and heads are columns.": want.T,
        "these are sums over the openings; the mean is asked for.": want * 16,
        "these are per cent: 1 is the whole difference.": want * 100,
        "the layers are in the wrong order.": want[::-1],
    }
    compare(answer, want, mistakes, tolerance=0.02)


def _art():
    """Return which part of *thou ar* each head carries into *they ar*: (layers, heads)."""
    tokenizer, model, _ = load_gpt(device="cpu")
    yes, no = (tokenizer.encode(token)[0] for token in "te")

    def lean(ids):
        with torch.no_grad():
            logits = model(ids)[0, -1]
        return (logits[yes] - logits[no]).item()

    found = np.zeros((16, model.config.layers, model.config.heads))
    for row, word in enumerate(_openings(16)):
        there, here = (torch.tensor([tokenizer.encode(f"{word} {x} ar")]) for x in OTHERS)
        new, old, before = outputs(model, there), outputs(model, here), lean(here)
        for layer, head in np.ndindex(found.shape[1:]):
            value = old[layer, head].clone()
            value[:, -1] = new[layer, head][:, -1]
            with replaced(model.blocks[layer], head, value):
                found[row, layer, head] = lean(here) - before
        found[row] /= lean(there) - before
    return found.mean(0)


def _openings(count):
    """Return the words that begin most lines of the training sonnets."""
    lines = train_val_test_split(load_texts("sonnets")).training.splitlines()
    firsts = Counter(line.split()[0] for line in lines if line.strip())
    return [word for word, _ in firsts.most_common(count)]


predict(
    "inside-gpt.longer",
    a="more steps do not give a second layer what it needs from the first.",
    b="for that it would have to look for what followed the present token last time.",
    c=None,
    d="it learns something: which tokens the text has.",
)
judge(
    "inside-gpt.story",
    a="a picture of attention says where a head looks; other heads look there as well and "
    "turn next to nothing.",
    b="other parts can stand in, and the loss on all text says little of a rare case: "
    "after *thou* these heads are missed.",
    c="what can be read from a vector need not be read by the model.",
    d=None,
)
