"""Does a decoder find a hidden month over an encoder that never learned to read?

What varies: encoders with random weights, which stay as they are, under a decoder that
learns without the month; and the century on which models are tested that learned from the
years 1800 to 1999.

Rival: the length of the month's name, which the positions of the other characters tell. Who
knows the length alone reads at most seven months in twelve.

Null: encoders whose other characters cannot attend to the month, study *encoder-decoder*.

Statistic: the share of months of held-out days that are read right, although the decoder
cannot attend to the month's letters. The interval is over seeds.
"""

import random

from lmcourse import dates
from studies.harness import count, grid, verdict

CHAPTER = "encoder-decoder"
CLAIM = (
    "Even an encoder with random weights spreads the month over the other characters: a "
    "decoder that cannot attend to its letters learns to read it"
)
RIVAL = "the length of the month's name, from which seven months in twelve can be told"
NULL = "an encoder whose other characters cannot attend to the month"
SETTINGS = {
    "seeds": [0, 1, 2, 3, 4],
    "steps": 300,  # of a model that learns dates
    "decoder": 420,  # of a decoder over a random encoder: 300 + 120, as over a trained one
    "others": [17, 20],  # centuries to be tested on
}
LEAST = 0.8  # the share of months


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return one run of each kind, with three steps.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, "untrained" (a decoder learns to read what an
        encoder of random weights makes) or "centuries" (both learn); ``seed``; ``steps`` of
        training; of "centuries" also ``shown``, how many of them a model learns from.
    """
    seeds = SETTINGS["seeds"]
    decoder = SETTINGS["decoder"]
    steps = SETTINGS["steps"]
    if small:
        seeds = seeds[:1]
        decoder = steps = 3
    settings = grid(group="untrained", seed=seeds, steps=decoder)
    settings += grid(group="centuries", shown=2, seed=seeds, steps=steps)
    return settings


def run(folder, group, seed, steps, shown=2):
    """Train a decoder over a random encoder, or a model on the days of two centuries.

    Parameters
    ----------
    folder : Path
        Not used: no run needs another one.
    group : {"untrained", "centuries"}
        What is trained: a decoder over an encoder with random weights, whose states of the
        month it cannot attend to, or a whole model on the days of 1800 to 1999.
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.
    shown : int
        How many centuries a model learns from; it is stored and changes nothing.

    Returns
    -------
    dict
        The settings ``seed``, ``steps``; of "untrained" ``month``, the share of hidden
        months read right, 0 to 1; of "centuries" ``shown``, and ``right``, a list: the
        share of 500 days of the years 1700 to 1799 read right, then the same of 2000 to
        2099.
    """
    held_out, training_days = dates.split_days()
    row = {"seed": seed, "steps": steps}
    model = dates.new_model(seed)
    if group == "untrained":
        decoder = dates.without_part(model, 1)
        draw = dates.drawing(training_days, seed + 100, (0,))
        dates.train_on_dates(decoder, draw, steps, 1e-2)
        pairs = dates.pairs_of(held_out[:500])
        share = dates.share_right(decoder, pairs, dates.ANSWER["month"])
        return row | {"month": round(float(share), 4)}
    dates.train_on_dates(model, dates.drawing(training_days, seed), steps)
    right = []
    for century in SETTINGS["others"]:
        days = random.Random(1).sample(dates.days_of(century), 500)
        right.append(dates.share_right(model, dates.pairs_of(days)))
    return row | {"shown": shown, "right": [round(float(share), 4) for share in right]}


def summary(results):
    """Judge how many hidden months are read over encoders with random weights.

    Parameters
    ----------
    results : dict of str to list of dict
        "untrained" → a dict for each decoder over a random encoder: ``seed``, and
        ``month``, the share of hidden months read right, 0 to 1.

    Returns
    -------
    dict
        ``n``, the number of outcomes over random encoders, and their ``seeds``;
        ``interval``, the lowest and the highest share of months read over these;
        ``verdict``, "holds" or "not so": whether all are above 0.8 (`LEAST`).
    """
    months = [row["month"] for row in results["untrained"]]
    return count(results["untrained"]) | {
        "interval": [min(months), max(months)],
        "verdict": verdict(min(months) > LEAST),
    }
