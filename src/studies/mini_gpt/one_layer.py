"""What can a small GPT of one layer do, beside one of two?

What varies: the heads, one or four, of the page's whole model with one layer, as the study
*sizes* trains it. The learning rate is chosen by the validation loss of seed 0, of four
heads by that study; then each is trained from three other seeds.

Rivals: models of two layers, in the studies *sizes* and *line-ends*; for what heads gain
the bare model of the study *ladder*, which is attention and little else.

Null: the same models with shuffled weights.

Statistic: the validation loss; the loss on the test sonnets with 64 characters shown and
with five, by the kind of character; the probability of a new line after a mark, as the
study *line-ends* has it. The interval is that of what one layer of four heads gains at line
ends by the text more than five characters back, lowest and highest over the seeds.

Foretold before it was run, and why: `FORETOLD`.
"""

import torch

from lmcourse import lines
from lmcourse.data import load_texts, train_val_test_split
from lmcourse.gpt.inside import losses_at
from lmcourse.shuffled import shuffled_weights
from studies.harness import alike, best_tuned, count, grid, verdict
from studies.mini_gpt.line_ends import by_kind, line_probs
from studies.mini_gpt.sizes import BASE, RATES, SEEDS, SPREAD, new_trainer

CHAPTER = "mini-gpt"
CLAIM = (
    "One layer is enough for a small GPT of the Sonnets to know by a line's length in "
    "characters that the line is over"
)
RIVAL = "the words, the syllables or the letters of the line; a GPT of two layers"
NULL = "the same GPT with shuffled weights"
FORETOLD = {
    "heads": (
        "In a whole GPT of one layer four heads gain between 0.02 and 0.1 nats over one: "
        "more than in two layers, less than in the bare model. A single head has to bring "
        "the last letters and the last new line at once."
    ),
    "line ends": (
        "With four heads one layer gains by the far text at line ends at least two thirds "
        "of what two layers gain. One head can find the last new line, and the network can "
        "do the rest."
    ),
    "ruler": (
        "One layer of four heads goes by the number of characters, too: a new line is "
        "likelier than a half with other letters, and not with 20 characters fewer."
    ),
}
FAR = 64  # characters shown
NEAR = 5  # characters shown, where they are few
RATE_OF_FOUR = 1e-2  # the best of three for four heads, by the study *sizes*
SETTINGS = {"base": BASE, "spread": SPREAD, "rates": RATES, "shown": [NEAR, FAR]}
SETTINGS |= {"foretold": FORETOLD}


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return those of one seed, with two steps, tested at few positions.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, "tuning" or "runs"; ``heads`` of the one
        layer; ``changes``, settings of the training by name, such as ``steps``, that differ
        from those of the study *sizes* (`BASE`); of "tuning" also ``rate``, the learning
        rate that is tried, three from 0.003 to 0.03; of "runs" ``seed``, 1 to 3, and
        ``every``: one position in so many is tested.
    """
    few = {"steps": 2, "warmup": 1, "validation_windows": 4} if small else {}
    rates = RATES[: 1 if small else 3]
    tuning = grid(group="tuning", heads=1, rate=rates, changes=few)
    seeds = SEEDS[: 1 if small else 3]
    every = 200 if small else 1
    return tuning + grid(group="runs", heads=(4, 1), seed=seeds, every=every, changes=few)


def run(folder, group, heads, changes, rate=None, seed=0, every=1):
    """Train a whole GPT of one layer on the sonnets, and test it.

    Parameters
    ----------
    folder : Path
        Holds the finished runs of the group "tuning".
    group : {"tuning", "runs"}
        Whether only the validation loss is measured, or everything.
    heads : int
        Of the one layer.
    changes : dict
        Training settings by name, such as ``steps``, that replace those of the study
        *sizes* (`BASE`: 1,000 steps and more).
    rate : float, optional
        The highest learning rate. Default: the best that was tried; with four heads 0.01.
    seed : int
        Of the first weights, and of all that is drawn.
    every : int
        Test at one position in so many.

    Returns
    -------
    dict
        The settings ``heads``, ``rate``, ``seed``; ``validation``, the last validation loss
        in nats a character; of "runs" also ``reach``: kind of character, such as "line
        ends" → how many are shown, a str → mean loss; and ``lines`` and ``shuffled``:
        change of the line → how probable a new line is after marks, at ``ends`` of lines
        and ``inside``, with trained and with shuffled weights.
    """
    if not rate:
        rate = best_tuned(folder, heads=1)["rate"] if heads == 1 else RATE_OF_FOUR
    settings = BASE | {"layers": 1, "heads": heads, "learning_rate": rate, "seed": seed}
    settings |= changes
    tokenizer, trainer = new_trainer(settings)
    validation = round(trainer.run(quiet=True)[-1]["val_loss"], 4)
    row = {"heads": heads, "rate": rate, "seed": seed, "validation": validation}
    if group == "tuning":
        return row
    return row | measure(tokenizer, trainer.gpt.eval(), every)


def measure(tokenizer, model, every):
    """Measure a GPT's losses by kind of character, and how probable it finds line ends.

    Parameters
    ----------
    tokenizer : CharTokenizer
    model : GPT
    every : int
        Test at one position in so many.

    Returns
    -------
    dict
        ``reach``: kind of character ("line ends", "first letters", "other letters" or
        "other") → characters shown, "5" or "64" → mean loss on the test text, in nats a
        character. ``lines``: change of the line, such as "no vowels" → the mean probability
        of a new line, a dict, ``ends`` after punctuation at line ends and ``inside`` after
        other punctuation, and "n" → how many there are of both; ``shuffled``: the same of
        the model with shuffled weights.
    """
    texts = train_val_test_split(load_texts("sonnets"))
    test = torch.tensor(tokenizer.encode(texts.test))
    positions = torch.arange(FAR, len(test), every)
    losses = {shown: losses_at(model, test, positions, shown) for shown in (NEAR, FAR)}

    def probs_of(gpt):
        """Return how probable a model finds a new line after punctuation, by change.

        ``gpt`` : GPT. The result is a dict, change of the line, such as "no vowels" → dict
        with the mean probabilities ``ends``, at line ends, and ``inside``.
        """
        return line_probs(
            texts[1:],
            lambda seen: lines.new_line_probs(gpt, tokenizer, seen).numpy(),
            every,
        )

    return {
        "reach": by_kind(texts.test, positions.numpy(), losses),
        "lines": probs_of(model),
        "shuffled": probs_of(shuffled_weights(model)),
    }


def summary(results):
    """Say whether one layer of four heads goes by the number of characters.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "runs": ``heads``, of which four count;
        ``seed``; ``lines``, change of the line, such as "no vowels" → dict, ``ends``, the
        mean probability of a new line at line ends; ``reach["line ends"]``, characters
        shown, "5" or "64" → mean loss, in nats.

    Returns
    -------
    dict
        ``n``, the number of outcomes of "runs", and their ``seeds``; ``interval``, [lowest,
        highest] over the seeds of what the text more than five characters back gains at
        line ends, in nats a character; ``verdict``, "holds" or "not so": whether a new line
        at line ends is likelier than a half with other letters and the same number of
        characters, and less likely with 20 characters fewer, with every seed.
    """
    runs = alike(results["runs"], heads=4)
    same = ("as written", "letters shuffled", "one letter throughout", "no vowels")
    at_ends = [
        {change: probs["ends"] for change, probs in row["lines"].items()} for row in runs
    ]
    holds = all(
        min(row[change] for change in same) > 1 / 2 > row["20 characters fewer"]
        for row in at_ends
    )
    ends = [row["reach"]["line ends"] for row in runs]
    gained = [round(each[str(NEAR)] - each[str(FAR)], 4) for each in ends]
    counted = count(results["runs"])
    return counted | {"interval": [min(gained), max(gained)], "verdict": verdict(holds)}
