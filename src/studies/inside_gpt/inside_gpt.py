"""Can one layer of attention continue a row that the text repeats, if it learns for longer?

Varied: the layers (two, one) and the steps, ten times as many for one layer; its heads,
two or eight that share the same width; positions, turned (as in Llama) or added (as in
GPT-2), these with four times the steps. Rates are chosen for each kind by the same rule,
by the loss on texts of their own, with a seed of its own. Rivals: counting, in the text at
hand, tokens, what followed the present token, and what followed the present two; the
weight of the shorter run is chosen on the same texts. Null: guessing among 32 tokens.
Statistic: nats for each token of the repetition, on texts that no training drew; the
interval is that of how much more one layer pays than two, seed by seed. Of the two layers
each head is taken away alone.
"""

import torch

from lmcourse.repeats import (
    LONGEST,
    TEXT,
    TOKENS,
    ablate_heads,
    held_out_texts,
    repeat_rows,
    token_losses,
    train_repeater,
)
from studies.harness import alike, best_tuned, count, grid, paired

CLAIM = "One layer of two heads pays more than two layers, after ten times the steps"
RIVAL = "counting tokens, and what followed the present one or two, in the text"
NULL = "guessing among 32 tokens"
KINDS = {  # layers, steps, seeds, other sizes
    "two layers": (2, 250, 10, {}),
    "one layer": (1, 2500, 5, {}),
    "eight heads": (1, 2500, 3, {"heads": 8}),
    "added positions": (2, 1000, 5, {"rotary": False}),
}
SETTINGS = {"seeds": list(range(10)), "rates": [5e-3, 1e-2]}
SETTINGS |= {"weights": [0.001, 0.01, 0.1, 1.0], "texts": 256}
SETTINGS |= {"steps": {kind: steps for kind, (_, steps, _, _) in KINDS.items()}}


def plan(small):
    """Choose rates first; then every kind on every seed, and counting."""
    kinds, most = (["two layers"], 1) if small else (KINDS, None)
    rates = SETTINGS["rates"][:most]
    runs = grid(group="tuning", kind=[*kinds], seed=99, rate=rates)
    for kind in kinds:
        seeds = SETTINGS["seeds"][: most or KINDS[kind][2]]
        runs += grid(group="runs", kind=kind, seed=seeds)
    runs = [each | {"steps": 2 if small else KINDS[each["kind"]][1]} for each in runs]
    return runs + grid(group="counts", order=(1, 2, 3)[:most])


def drawn(tuning):
    """Return texts of rows of 8 to 24 tokens: to choose by, or to judge by."""
    generator = torch.Generator().manual_seed(7 if tuning else 8)
    lengths = torch.randint(8, 25, (SETTINGS["texts"],), generator=generator)
    return repeat_rows(lengths, generator) if tuning else held_out_texts(lengths)


def count_losses(ids, order, weight=0.01):
    """Return the losses of an n-gram model of each text alone, on its second half.

    Parameters
    ----------
    ids : int64 Tensor of shape (batch, 49)
    order : {1, 2, 3}
        Counts the tokens that the text had so far; those that followed the present token;
        those that followed the present two.
    weight : float
        How much a shorter n-gram adds, in counts.

    Returns
    -------
    Tensor of shape (batch, 24)
        In nats.
    """
    losses = torch.zeros(len(ids), TEXT - 1 - LONGEST)
    for row, text in enumerate(ids):
        for at in range(LONGEST, TEXT - 1):
            probs = torch.full((TOKENS,), 1 / TOKENS)
            for context in range(order):
                counts = _followers(text[: at + 1], context)
                probs = (weight * probs + counts) / (weight + counts.sum())
            losses[row, at - LONGEST] = -probs[text[at + 1]].log()
    return losses


def _followers(text, context):
    """Count what followed the last tokens of a text where they stood before.

    Parameters
    ----------
    text : int64 Tensor of shape (tokens,)
    context : int
        How many tokens have to be the same; 0 counts every token.

    Returns
    -------
    int64 Tensor of shape (32,)
    """
    end = len(text)
    same = torch.ones(end - context, dtype=torch.bool)  # by the position that follows
    for back in range(context):
        same &= text[context - 1 - back : end - 1 - back] == text[end - 1 - back]
    return torch.bincount(text[context:][same], minlength=TOKENS)


def run(folder, group, kind="", seed=0, rate=None, steps=0, order=None):
    """Train one model, or count; return what the repetition costs."""
    if order:
        own = drawn(tuning=True)
        best = min(SETTINGS["weights"], key=lambda w: count_losses(own, order, w).mean())
        loss = count_losses(drawn(tuning=False), order, best).mean().item()
        return {"order": order, "weight": best, "loss": round(loss, 4)}
    layers, _, _, sizes = KINDS[kind]
    tuned = group == "runs"
    rate = best_tuned(folder, kind=kind)["rate"] if tuned else rate
    model, history = train_repeater(seed, layers, steps, rate, **sizes)
    with torch.no_grad():
        loss = token_losses(model, drawn(not tuned))[:, LONGEST:].mean().item()
    row = {"kind": kind, "seed": seed, "rate": rate}
    if not tuned:
        return row | {"validation": round(loss, 4)}
    every = max(1, steps // 100)
    row |= {"loss": round(loss, 4), "numbers": sum(p.numel() for p in model.parameters())}
    means = torch.tensor(history[: steps // every * every]).view(-1, every).mean(1)
    row["history"] = [round(x, 3) for x in means.tolist()]
    if layers == 2:
        heads = ablate_heads(model, held_out_texts(torch.full((64,), LONGEST)))
        row["heads"] = [{k: round(x, 3) for k, x in each.items()} for each in heads]
    return row


def summary(results):
    """Compare one layer with two, seed by seed."""
    kinds = (alike(results["runs"], kind=kind) for kind in ("one layer", "two layers"))
    one, two = ([each["loss"] for each in rows] for rows in kinds)
    two = two[: len(one) or None]  # a short run has no one layer
    return count(results["runs"]) | paired(one or two, two, min(one or two) > max(two))
