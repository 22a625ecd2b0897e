"""Checks for the exercises of the chapter *encoder-decoder*."""

import math

import torch
import torch.nn.functional as F

from lmcourse.exercises import Wrong, compare, exercise, expect, judge, predict, run
from lmcourse.exercises.answers import array, diagnose, normal, number, type_name, unpack


@exercise("encoder-decoder.perplexity")
def perplexity(answer):
    """Compare with the exponential of PyTorch's cross-entropy."""
    logits, pad = 2 * normal(2, 5, 6).double(), 3
    targets = torch.tensor([[1, 0, 5, 3, 3], [2, 4, 4, 1, 3]])
    kept = targets != pad
    losses = F.cross_entropy(logits.mT, targets, reduction="none")  # (batch, tokens)
    mean = losses[kept].mean()
    texts = [row[keep].mean() for row, keep in zip(losses, kept, strict=True)]
    twice = F.cross_entropy(logits.softmax(-1).mT, targets, ignore_index=pad)
    mistakes = {
        "the sign: this is exp of the negative cross-entropy. Perplexity is never "
        "below 1.": (-mean).exp(),
        "this is the cross-entropy; perplexity is its exponential.": mean,
        "padding is counted.": losses.mean().exp(),
        "padding is counted in the number of tokens, though not in the sum.": (
            (losses * kept).mean().exp()
        ),
        "the softmax is applied before a loss that applies it itself.": twice.exp(),
        "you average the perplexities of single tokens; average first, then take the "
        "exponential.": losses[kept].exp().mean(),
        "this is the mean probability's inverse; average the logarithms.": (
            1 / (-losses[kept]).exp().mean()
        ),
        "cross-entropy is in nats: its exponential is taken to base e, not 2.": 2**mean,
        "the losses are summed; take their mean.": losses[kept].sum().exp(),
        "each text is averaged by itself; every token counts the same.": (
            torch.stack(texts).mean().exp()
        ),
    }
    expect(answer, [logits, targets, pad], mean.exp(), mistakes)
    large = torch.tensor([[[1e4, 0.0, 0.0], [0.0, 1e4, 1e4]]], dtype=torch.float64)
    overflown = {
        "logits of ten thousand overflow: `exp` of them is infinite. Use `log_softmax` or "
        "`F.cross_entropy`.": math.nan
    }
    expect(answer, [large, torch.tensor([[0, 1]]), 2], math.sqrt(2), overflown)


@exercise("encoder-decoder.loss", kind="spot the bug")
def loss(answer):
    """Compare with PyTorch's cross-entropy, on ordinary logits and on sure ones."""
    logits, pad = 3 * normal(2, 5, 6).double(), 3
    targets = torch.tensor([[1, 0, 5, 3, 3], [2, 4, 4, 1, 3]])
    kept = targets != pad
    each = F.cross_entropy(logits.mT, targets, reduction="none")  # (batch, tokens)
    p = logits.softmax(-1)
    chosen = p.gather(-1, targets[..., None])[..., 0]
    twice = F.cross_entropy(p.mT, targets, reduction="none")
    mistakes = {
        "even a model that is certain and right would be told a loss above 1: "
        "`F.cross_entropy` applies the softmax itself, and here it is applied twice.": (
            twice[kept].mean()
        ),
        "the softmax is still applied twice, and padded places are counted.": twice.mean(),
        "padding counts.": each.mean(),
        "these are probabilities without their logarithm.": -chosen[kept].mean(),
        "the sign: a loss is minus the logarithm.": -each[kept].mean(),
        "the losses are summed; take their mean.": each[kept].sum(),
        "this is the perplexity; the loss is its logarithm.": each[kept].mean().exp(),
        "the softmax runs over the places, not over the vocabulary.": (
            -logits.log_softmax(-2).gather(-1, targets[..., None])[..., 0][kept].mean()
        ),
    }
    compare(run(answer, logits, targets, pad), each[kept].mean(), mistakes)
    large = torch.tensor([[[1e4, 0.0, 0.0], [0.0, 1e4, 1e4]]], dtype=torch.float64)
    overflown = {
        "logits of ten thousand overflow: `exp` of them is infinite. Let "
        "`F.cross_entropy` do the work, or `log_softmax`.": math.nan,
        "the chance of what came is 0 when it is rounded, and its logarithm infinite. Take "
        "`log_softmax` of the logits.": math.inf,
    }
    want = (1e4 + math.log(2)) / 2
    expect(answer, [large, torch.tensor([[0, 0]]), 2], want, overflown)


class Toy:
    """A model of nine ids that writes 4, 6, 5, then the stop mark 2, then 7 for ever."""

    after = {1: 4, 4: 6, 6: 5, 5: 2, 2: 7, 7: 7}  # noqa: RUF012

    def __init__(self):
        self.calls, self.whole = 0, True

    def __call__(self, so_far):
        self.calls += 1
        if self.calls > 50:
            raise RuntimeError("next_logits was asked 50 times: the loop does not end")
        self.whole &= len(so_far) == self.calls and so_far[0] == 1
        logits = torch.zeros(9)
        logits[3], logits[self.after.get(int(so_far[-1]), 8)] = 1.9, 2.0
        logits[0] = -1.0
        return logits


def _ids(got):
    if not isinstance(got, (list, tuple)):
        raise Wrong(f"a list of whole numbers is expected, not of type {type_name(got)}.")
    found = array(got)
    if found.ndim != 1 or (found % 1 != 0).any():
        raise Wrong("the list should hold whole numbers.")
    return found.astype(int).tolist()


@exercise("encoder-decoder.write_greedily")
def write_greedily(answer):
    """Compare with what a toy model is known to write, with and without a limit."""
    toy = Toy()
    got = _ids(run(answer, toy, 1, 2, 20))
    faults = {
        "next_logits did not get all ids so far, `start` first, one more each time: a "
        "model needs the whole text at every step.": not toy.whole,
        "leave `start` out of what you return.": got == [1, 4, 6, 5],
        "leave `start` and `stop` out of what you return.": got == [1, 4, 6, 5, 2],
        "leave `stop` out of what you return.": got == [4, 6, 5, 2],
        "you go on after `stop`.": got[:5] == [4, 6, 5, 2, 7],
        "the first id is 0, the least likely: use argmax, not argmin.": got[:1] == [0],
        f"for a toy model that writes three ids and stops you wrote {got[:50]}.": (
            got != [4, 6, 5]
        ),
    }
    diagnose(faults)
    for limit in [2, 3]:
        got = _ids(run(answer, Toy(), 1, 2, limit))
        faults = {
            "one too few: `start` does not count towards the limit.": len(got) == limit - 1,
            f"with a limit of {limit} you wrote {len(got)} ids.": len(got) > limit,
            f"with a limit of {limit} you wrote {got}.": got != [4, 6, 5][:limit],
        }
        diagnose(faults)


predict(
    "encoder-decoder.february",
    a="that takes a calendar. Was there a day in training that a calendar was needed for?",
    b="the month is read from its name, and nothing in this name says March.",
    c="it has no way to refuse: every training date had an answer of this form.",
    d=None,
)


@exercise("encoder-decoder.new_style", kind="experiment")
def new_style(answer):
    """Look at the shares that the reader measured."""
    new, old = map(number, unpack(answer, 2, "two shares, new and old: (new, old)"))
    if not (0 <= new <= 1 and 0 <= old <= 1):
        raise Wrong("both are shares of days, between 0 and 1.")
    return {
        "it reads the new style and has forgotten the old ones: show it both while it "
        "learns.": new >= 0.9 and old < 0.9,
        "nothing is forgotten, but the new style is not learned yet: train for longer, "
        "show it more often, or at a higher rate.": new < 0.9 and old >= 0.9,
        "neither the new style nor the old ones are read: is the rate too high, or the "
        "training too short?": new < 0.9,
    }


judge(
    "encoder-decoder.translation",
    a=None,
    b="the systems differ in more than attention: depth, width, training, how words "
    "are cut. The table compares systems.",
    c="BLEU counts runs of words shared with a reference. It is no share of right "
    "translations.",
    d="the ensembles are in the table, and lie below.",
)
