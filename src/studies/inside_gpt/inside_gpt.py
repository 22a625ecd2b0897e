"""Can one layer of attention continue a row that the text repeats, if it trains for longer?

What varies: the layers (two, or one with ten times the steps); the heads of the one layer,
two or eight of the same total width; positions, rotary (as in Llama) or added (as in
GPT-2), these with four times the steps. The learning rate of each kind is chosen by the
same rule, by the loss on texts of their own, with a seed of its own.

Rivals: n-gram models counted in the text at hand, of tokens alone, of what followed the
present token, and of what followed the present two. How much a shorter n-gram weighs is
chosen on the same texts as the learning rates.

Null: a random guess among 32 tokens.

Statistic: the loss in nats for each token of the repetition, on texts that no training
drew. The interval is that of one layer's loss less two layers', from the lowest to the
highest over seeds. Of two layers each head is ablated alone, too.
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

CHAPTER = "inside-gpt"
CLAIM = (
    "One layer of attention has a higher loss on repeated rows than two layers, even after "
    "ten times the steps"
)
RIVAL = "n-gram models that are counted in the text at hand"
NULL = "a random guess among 32 tokens"
KINDS = {  # layers, steps, seeds, other sizes of `lmcourse.repeats.Repeater`
    "two layers": (2, 250, 10, {}),
    "one layer": (1, 2500, 5, {}),
    "eight heads": (1, 2500, 3, {"heads": 8}),
    "added positions": (2, 1000, 5, {"rotary": False}),
}
SETTINGS = {"seeds": list(range(10)), "rates": [5e-3, 1e-2]}
SETTINGS |= {"weights": [0.001, 0.01, 0.1, 1.0], "texts": 256}
SETTINGS |= {"steps": {kind: steps for kind, (_, steps, _, _) in KINDS.items()}}


def plan(small):
    """Return the settings of all runs: learning rates, then models, then n-gram models.

    Parameters
    ----------
    small : bool
        Whether to return one run of each group, with two steps of training.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``. "tuning" and "runs": ``kind``, the model, "two
        layers", "one layer", "eight heads" or "added positions"; ``seed``, 99 of "tuning",
        from 0 on ten, five, three or five of "runs"; ``steps`` of training; of "tuning"
        also ``rate``, the learning rate that is tried. "counts": ``order``, the length of
        the n-grams, 1 to 3 tokens.
    """
    kinds = ["two layers"] if small else KINDS
    most = 1 if small else None
    rates = SETTINGS["rates"][:most]
    settings = grid(group="tuning", kind=[*kinds], seed=99, rate=rates)
    for kind in kinds:
        _, _, seed_count, _ = KINDS[kind]
        seeds = SETTINGS["seeds"][: most or seed_count]
        settings += grid(group="runs", kind=kind, seed=seeds)
    steps = SETTINGS["steps"]
    settings = [each | {"steps": 2 if small else steps[each["kind"]]} for each in settings]
    return settings + grid(group="counts", order=(1, 2, 3)[:most])


def sample_rows(tuning):
    """Return texts, each of which repeats a row of 8 to 24 random tokens.

    Parameters
    ----------
    tuning : bool
        Whether the texts are those to choose a learning rate by, instead of those to test.

    Returns
    -------
    int64 Tensor of shape (256, 49)
    """
    generator = torch.Generator().manual_seed(7 if tuning else 8)
    lengths = torch.randint(8, 25, (SETTINGS["texts"],), generator=generator)
    return repeat_rows(lengths, generator) if tuning else held_out_texts(lengths)


def count_losses(ids, order, weight=0.01):
    """Return the losses of n-gram models on second halves of texts.

    Each text has a model of its own, which has counted what came so far in the text.

    Parameters
    ----------
    ids : int64 Tensor of shape (batch, 49)
    order : {1, 2, 3}
        1 counts the tokens that the text had so far; 2, those that followed the present
        token; 3, those that followed the present two.
    weight : float
        How many counts the prediction of the next shorter n-gram adds; to the shortest it
        is an even share of all tokens.

    Returns
    -------
    Tensor of shape (batch, 24)
        Of the last 24 tokens of each text, in nats.
    """
    losses = torch.zeros(len(ids), TEXT - 1 - LONGEST)
    for row, text in enumerate(ids):
        for position in range(LONGEST, TEXT - 1):
            probs = torch.full((TOKENS,), 1 / TOKENS)
            for context in range(order):
                counts = _followers(text[: position + 1], context)
                probs = (weight * probs + counts) / (weight + counts.sum())
            losses[row, position - LONGEST] = -probs[text[position + 1]].log()
    return losses


def _followers(text, context):
    """Count which tokens followed the last few of a text where these stood earlier in it.

    Parameters
    ----------
    text : int64 Tensor of shape (tokens,)
    context : int
        How many tokens have to be the same; 0 counts every token.

    Returns
    -------
    int64 Tensor of shape (32,)
        How often each token did.
    """
    end = len(text)
    same = torch.ones(end - context, dtype=torch.bool)  # by the position that follows
    for back in range(context):
        same &= text[context - 1 - back : end - 1 - back] == text[end - 1 - back]
    return torch.bincount(text[context:][same], minlength=TOKENS)


def run(folder, group, kind="", seed=0, rate=None, steps=0, order=None):
    """Train one model, or count n-grams, and return the loss on repetitions.

    Parameters
    ----------
    folder : Path
        Holds the finished runs of the group "tuning".
    group : {"tuning", "runs", "counts"}
        "tuning" tries a learning rate, "runs" trains at the best one, "counts" tests an
        n-gram model.
    kind : str
        The model, a key of `KINDS`: "two layers", "one layer", "eight heads" or "added
        positions".
    seed : int
        Of the first weights, and of all that is drawn.
    rate : float, optional
        The learning rate. Default: the tuned one.
    steps : int
        How many steps of training.
    order : int, optional
        Of the group "counts": how many tokens an n-gram has, 1 to 3.

    Returns
    -------
    dict
        Losses are of tokens of the repetition, in nats a token.

        - "counts": ``order``; ``weight``, how many counts a shorter n-gram adds; ``loss``,
        - "tuning": ``kind``, ``seed``, ``rate``; ``validation``, the loss on texts for
          tuning,
        - "runs": ``kind``, ``seed``, ``rate``; ``loss``, on test texts; ``numbers``, how
          many parameters; ``history``, the training loss in about 100 means; of two layers
          also ``heads``, a list with a dict for each head: ``layer`` and ``head``, from 0;
          its attention, 0 to 1, to the token ``before`` and to what ``followed`` last time;
          and by how much the loss rises without it on the ``first`` row and on the
          repetition, ``again``.
    """
    if group == "counts":
        return count_rows(order)
    if group == "tuning":
        return train_rows(kind, seed, rate, steps, tuning=True)
    best = best_tuned(folder, kind=kind)["rate"]
    return train_rows(kind, seed, best, steps, tuning=False)


def count_rows(order):
    """Return the loss of an n-gram model on test texts.

    Parameters
    ----------
    order : {1, 2, 3}
        How many tokens an n-gram has.

    Returns
    -------
    dict
        ``order``; ``weight``, how many counts a shorter n-gram adds, 0.001 to 1, chosen on
        the tuning texts; ``loss``, in nats a token of the repetition.
    """
    tuning_texts = sample_rows(tuning=True)
    best = min(
        SETTINGS["weights"], key=lambda w: count_losses(tuning_texts, order, w).mean()
    )
    loss = count_losses(sample_rows(tuning=False), order, best).mean().item()
    return {"order": order, "weight": best, "loss": round(loss, 4)}


def train_rows(kind, seed, rate, steps, tuning):
    """Train one model on texts that repeat a row, and return its loss on repetitions.

    Parameters
    ----------
    kind : str
        A key of `KINDS`, which has the model's layers and sizes: "two layers", "one layer",
        "eight heads" or "added positions".
    seed : int
        Of the first weights, and of all that is drawn.
    rate : float
        The highest learning rate.
    steps : int
        How many steps of training.
    tuning : bool
        Whether to measure the loss on the tuning texts, and nothing else.

    Returns
    -------
    dict
        ``kind``, ``seed``, ``rate``; ``validation``, the loss on the tuning texts, or:
        ``loss``, that on test texts; ``numbers``, the model's parameters; ``history``, the
        loss in training, in about 100 means; of two layers ``heads``, a dict for each:
        ``layer`` and ``head``, from 0; in the repetition its attention, 0 to 1, to the
        token ``before`` and to what ``followed`` last time; how much the loss rises without
        it on the ``first`` row and on the repetition, ``again``. Losses are in nats a
        token.
    """
    layers, _, _, sizes = KINDS[kind]
    model, history = train_repeater(seed, layers, steps, rate, **sizes)
    with torch.no_grad():
        loss = token_losses(model, sample_rows(tuning))[:, LONGEST:].mean().item()
    row = {"kind": kind, "seed": seed, "rate": rate}
    if tuning:
        return row | {"validation": round(loss, 4)}
    row["loss"] = round(loss, 4)
    row["numbers"] = sum(weight.numel() for weight in model.parameters())
    every = max(1, steps // 100)
    means = torch.tensor(history[: steps // every * every]).view(-1, every).mean(1)
    row["history"] = [round(mean, 3) for mean in means.tolist()]
    if layers == 2:
        heads = ablate_heads(model, held_out_texts(torch.full((64,), LONGEST)))
        row["heads"] = [{k: round(x, 3) for k, x in head.items()} for head in heads]
    return row


def summary(results):
    """Compare the losses of one layer and of two, seed by seed.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs; those of "runs", in the order of seeds, have ``kind``,
        "one layer" or "two layers" among others, ``seed``, and ``loss`` on the repetition,
        in nats a token.

    Returns
    -------
    dict
        ``n``, the number of outcomes of "runs", and their ``seeds``; ``interval``, [lowest,
        highest] over seeds of one layer's loss less two layers', in nats a token;
        ``verdict``, "holds" or "not so": whether every model of one layer has a higher loss
        than every model of two layers.
    """
    kinds = (alike(results["runs"], kind=kind) for kind in ("one layer", "two layers"))
    one, two = ([row["loss"] for row in rows] for rows in kinds)
    if not one:  # a short run
        one = two
    two = two[: len(one)]
    return count(results["runs"]) | paired(one, two, min(one) > max(two))
