"""What goes wrong in the exercises of *encoder-decoder*, diagnosis → answer."""

import torch
import torch.nn.functional as F


def losses_of(logits, targets):
    return F.cross_entropy(logits.mT, targets, reduction="none")


def on_losses(function):
    """Make an answer from a function of the losses and of what is not padding."""
    return lambda logits, targets, pad: function(losses_of(logits, targets), targets != pad)


def texts(losses, kept):
    means = [row[keep].mean() for row, keep in zip(losses, kept, strict=True)]
    return torch.stack(means).mean().exp()


def unsafe(logits, targets, pad):
    p = logits.exp() / logits.exp().sum(-1, keepdim=True)
    p = p.gather(-1, targets[..., None])[..., 0]
    return (-p.log()[targets != pad].mean()).exp()


def softmax_first(logits, targets, pad):
    return F.cross_entropy(logits.softmax(-1).mT, targets, ignore_index=pad).exp()


def writer(keep_start=False, keep_stop=False, stops=True, extra=0, least=False, last=False):
    def write_greedily(next_logits, start, stop, limit):
        ids = [start]
        while len(ids) <= limit + extra:
            logits = next_logits(ids[-1:] if last else ids)
            best = int(logits.argmin() if least else logits.argmax())
            if best == stop and stops:
                ids += [stop] * keep_stop
                break
            ids.append(best)
        return ids[0 if keep_start else 1 :]

    return write_greedily


def safe(logits, targets, pad):
    return F.nll_loss(logits.log_softmax(-1).mT, targets, ignore_index=pad)


def rounded(logits, targets, pad):
    p = logits.softmax(-1).gather(-1, targets[..., None])[..., 0]
    return -p.log()[targets != pad].mean()


def by_exp(logits, targets, pad):
    p = logits.exp() / logits.exp().sum(-1, keepdim=True)
    return -p.gather(-1, targets[..., None])[..., 0].log()[targets != pad].mean()


def teach(kinds, steps):
    """Stand in for the page's, which trains: what it found there, about."""
    return (0.97, 0.97) if {0, 1, 2, 6} <= {*kinds} else (0.6, 0.05)


WRONG = {
    "perplexity": {
        "the sign": on_losses(lambda at, kept: (-at[kept].mean()).exp()),
        "this is the cross-entropy": on_losses(lambda at, kept: at[kept].mean()),
        "padding is counted.": on_losses(lambda at, kept: at.mean().exp()),
        "number of tokens": on_losses(lambda at, kept: (at * kept).mean().exp()),
        "softmax is applied before": softmax_first,
        "perplexities of single": on_losses(lambda at, kept: at[kept].exp().mean()),
        "mean probability": on_losses(lambda at, kept: 1 / (-at[kept]).exp().mean()),
        "base e": on_losses(lambda at, kept: 2 ** at[kept].mean()),
        "take their mean": on_losses(lambda at, kept: at[kept].sum().exp()),
        "every token counts the same": on_losses(texts),
        "overflow": unsafe,
    },
    "loss": {
        "applied twice.": lambda x, t, pad: F.cross_entropy(
            x.softmax(-1).mT, t, ignore_index=pad
        ),
        "still applied twice": lambda x, t, pad: F.cross_entropy(x.softmax(-1).mT, t),
        "padding counts.": lambda x, t, pad: F.cross_entropy(x.mT, t),
        "without their logarithm": lambda x, t, pad: F.nll_loss(
            x.softmax(-1).mT, t, ignore_index=pad
        ),
        "the sign": on_losses(lambda at, kept: -at[kept].mean()),
        "summed": on_losses(lambda at, kept: at[kept].sum()),
        "this is the perplexity": on_losses(lambda at, kept: at[kept].mean().exp()),
        "over the places": lambda x, t, pad: F.nll_loss(
            x.log_softmax(-2).mT, t, ignore_index=pad
        ),
        "overflow": by_exp,
        "when it is rounded": rounded,
        "stopped with": lambda x, t, pad: F.cross_entropy(x, t),
    },
    "write_greedily": {
        "`start` out of": writer(keep_start=True),
        "`start` and `stop` out of": writer(keep_start=True, keep_stop=True),
        "`stop` out of": writer(keep_stop=True),
        "go on after `stop`": writer(stops=False),
        "the loop does not end": writer(stops=False, extra=100),
        "argmin": writer(least=True),
        "all ids so far": writer(last=True),
        "one too few": writer(extra=-1),
        "a limit of 2 you wrote 3": [writer(extra=1), writer(extra=9)],
        "a list of whole": lambda *given: torch.tensor([4]),
        "numbers are expected": lambda *given: ["a"],
        "the list should hold whole numbers": lambda *given: [4.5],
    },
    "february": {
        "takes a calendar": "a",
        "no way to refuse": "c",
        "with other days": "d",
        "one letter": 31,
    },
    "new_style": {
        "forgotten the old": (0.97, 0.04),
        "not learned yet": (0.5, 0.99),
        "neither": (0.1, 0.2),
        "between 0 and 1": (97, 98),
        "two shares": 0.97,
    },
    "translation": {
        "compares systems": "a",
        "runs of words": "b",
        "ensembles": "d",
        "one letter": "e",
    },
}

RIGHT = {
    "write_greedily": [writer()],
    "loss": [safe],
    "new_style": [(0.98, 0.97)],
}
