"""Does a small GPT gain by n-grams of other lengths than the best as well?

What varies: the length of the n-grams with which three small GPTs are averaged, from two
characters to eight. The GPTs are those of the study *ladder*, trained again: three seeds of
the whole model. The probabilities of both are averaged, on the test text.

Rivals: the three GPTs, averaged with each other.

Null: for each sonnet it is drawn at random which average has which gain.

Statistic: how much lower the loss of the average is than that of the GPT alone, in nats a
character, and than that of the better one of the two. The interval is that of the gain over
the better one by n-grams of five to eight characters, the length with the least of them,
less that of two GPTs: 95 % over the test sonnets drawn again.

Foretold before it was run, and why: `FORETOLD`.
"""

from itertools import combinations

import numpy as np
import torch

from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.gpt.inside import losses_at
from lmcourse.ngrams import NgramModel
from lmcourse.numbers import bootstrap_interval
from lmcourse.tokenization import CharTokenizer
from studies.harness import verdict
from studies.mini_gpt.ladder import FAR, RUNGS, positions_to_test, train_rung
from studies.mini_gpt.line_ends import BEST, SEEDS

CHAPTER = "mini-gpt"
CLAIM = (
    "Averaged with n-grams of any length from five to eight characters, a small GPT "
    "improves more on held-out sonnets than two small GPTs averaged with each other do"
)
RIVAL = "averaging two small GPTs that differ in their seed alone"
NULL = "averaging any two models improves them equally"
LENGTHS = range(2, 9)  # of n-grams, in characters
LONG = (5, 6, 7, 8)  # those whose gains are compared
FORETOLD = {
    "long": (
        "With 5, 6, 7 and 8 characters the gain is within 0.02 nats of one another, and "
        "above that of two GPTs: beyond five characters n-grams hardly differ."
    ),
    "four": "With 4 characters a small GPT still gains more than with a second GPT.",
    "short": (
        "With 2 and 3 characters it gains less than with a second GPT, and with 2 it gets "
        "worse: they know nothing that the GPT does not know."
    ),
    "best": "Most is gained with 6 or 7 characters.",
}
SETTINGS = {"lengths": list(LENGTHS), "far": FAR, **BEST, "foretold": FORETOLD}


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to train two models for two steps, and to test at few positions.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, "trained" or "averaged"; ``every``: one
        position in so many is tested; of "trained" also ``seed``, 1 to 3, and ``steps`` of
        training, 1,000; of "averaged" ``seeds``, whose models are averaged.
    """
    every = {"every": 50 if small else 1}
    steps = 2 if small else 1000
    seeds = SEEDS[: 2 if small else 3]
    trained = [{"group": "trained", "seed": s, "steps": steps} | every for s in seeds]
    return [*trained, {"group": "averaged", "seeds": seeds} | every]


def run(folder, group, every, seed=0, steps=0, seeds=()):
    """Train the whole GPT of the study *ladder* and save its losses, or average all.

    Losses are on the test text from the 64th character on, in nats.

    Parameters
    ----------
    folder : Path
        The losses of each GPT are saved there as ``SEED.npy``.
    group : {"trained", "averaged"}
        "trained" trains a GPT and saves its losses, "averaged" averages the probabilities
        of these and of n-gram models.
    every : int
        Test at one position in so many.
    seed, steps : int, optional
        Of a model that is trained: of all that is drawn, and how many steps.
    seeds : sequence of int, optional
        Of the models that are averaged.

    Returns
    -------
    dict or list of dict
        Of "trained": ``seed`` and ``test``, the mean loss in nats a character. Of
        "averaged" a row for each GPT and what it is averaged with: its ``seed``; ``with``,
        the length of n-grams, or "GPT"; lists by sonnet of what the average gains:
        ``gained``, over the better one, and ``over_gpt``; ``alone``, the mean loss of the
        other model. All in nats a character.
    """
    tokenizer = CharTokenizer(load_corpus("sonnets"))
    texts = train_val_test_split(load_texts("sonnets"))
    parts = [torch.tensor(tokenizer.encode(text)) for text in texts]
    if group == "averaged":
        return average(folder, tokenizer, parts, seeds, every)
    model = train_rung(tokenizer, parts, RUNGS[-1], seed, **BEST, steps=steps).gpt
    positions = torch.arange(FAR, len(parts[2]), every)
    losses = losses_at(model, parts[2], positions, FAR)
    np.save(folder / f"{seed}.npy", losses)
    return {"seed": seed, "test": round(float(np.mean(losses)), 4)}


def average(folder, tokenizer, parts, seeds, every):
    """Average the probabilities of each GPT with n-grams, and with those of another GPT.

    Parameters
    ----------
    folder : Path
        Holds the losses of the GPTs, arrays (positions,), as ``SEED.npy``.
    tokenizer : CharTokenizer
    parts : list of int64 Tensor of shape (tokens,)
        The ids of the training, validation and test text.
    seeds : sequence of int
        Of the GPTs.
    every : int
        Test at one position in so many.

    Returns
    -------
    list of dict
        ``seed``, of the GPT; ``with``, the length of the n-grams, 2 to 8, or "GPT" for
        another seed, two rows for each pair of GPTs. Lists, by sonnet, of how much lower
        the loss of the average is: ``gained``, than that of the better one of the two by
        its loss on the whole text; ``over_gpt``, than that of the GPT of ``seed``.
        ``alone`` is the mean loss of what it is averaged with. All in nats a character.
    """
    training, _, test = (part.numpy() for part in parts)
    _, positions, sonnets = positions_to_test(tokenizer, parts[2], every)
    gpts = {seed: np.load(folder / f"{seed}.npy") for seed in seeds}
    rows = []

    def add(seed, name, other):
        """Add the row of a GPT averaged with another model.

        ``seed`` : int; ``name`` : what ``with`` says, the length of n-grams or "GPT";
        ``other`` : its losses, (positions,), in nats.
        """
        own = gpts[seed]
        both = np.log(2) - np.logaddexp(-own, -other)
        better = min(own, other, key=np.mean)
        row = {"seed": seed, "with": name, "alone": round(float(other.mean()), 4)}
        row["gained"] = by_sonnet(better - both, sonnets)
        rows.append(row | {"over_gpt": by_sonnet(own - both, sonnets)})

    for length in LENGTHS:
        model = NgramModel(training, length, tokenizer.vocab_size)
        counted = -np.log(model.probabilities(test)[positions])
        for seed in seeds:
            add(seed, length, counted)
    for one, other in combinations(seeds, 2):
        add(one, "GPT", gpts[other])
        add(other, "GPT", gpts[one])
    return rows


def by_sonnet(values, sonnets):
    """Return the mean of some values on each sonnet, rounded to 4 decimals.

    Parameters
    ----------
    values : float array of shape (positions,)
    sonnets : int array of shape (positions,)
        The number of the sonnet in which each position is.

    Returns
    -------
    list of float
    """
    return [round(float(values[sonnets == n].mean()), 4) for n in np.unique(sonnets)]


def mean_gain(rows, name):
    """Return what averaging gains over the better of two models, by sonnet, mean of seeds.

    Parameters
    ----------
    rows : list of dict
        Of the group "averaged": ``with``, what a GPT was averaged with, and ``gained``, a
        list of the gain on each sonnet, in nats a character.
    name : int or str
        What ``with`` says: the length of the n-grams, or "GPT".

    Returns
    -------
    float array of shape (sonnets,)
    """
    return np.mean([row["gained"] for row in rows if row["with"] == name], axis=0)


def summary(results):
    """Compare the least gain by five to eight characters with that of two GPTs.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs; those of "averaged" have ``seed``, ``with`` (the
        length of the n-grams with which a GPT was averaged, or "GPT" for a second one) and
        ``gained``, a list of the gain on each sonnet, in nats a character.

    Returns
    -------
    dict
        ``n``, the number of rows of averaged models, and their ``seeds``; ``interval``,
        [low, high], 95 % of the least mean gain by n-grams of five to eight characters less
        the mean gain by a second GPT, over sonnets, in nats a character; ``verdict``,
        "holds" or "not so": whether it is above zero.
    """
    rows = results["averaged"]
    least = min((mean_gain(rows, length) for length in LONG), key=np.mean)
    low, high = bootstrap_interval(least - mean_gain(rows, "GPT"))
    seeds = sorted({row["seed"] for row in rows})
    interval = [round(low, 4), round(high, 4)]
    return {
        "n": len(rows),
        "seeds": seeds,
        "interval": interval,
        "verdict": verdict(low > 0),
    }
