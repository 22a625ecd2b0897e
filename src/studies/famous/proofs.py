"""What the page *famous* claims, checked where the page places it."""

import os

import numpy as np
import torch

from lmcourse.shuffled import shuffled_weights
from studies.famous import minilm
from studies.famous.famous import measure
from studies.famous.outcomes import cosines
from studies.famous.published import RESULTS
from studies.findings import Page, proof

VARIABLES = {  # what puts another model in a default one's place
    "SmolLM2": "LMCOURSE_TALKER",
    "MiniLM": "LMCOURSE_BERT",
    "our GPT": "LMCOURSE_GPT",
}
AGAIN = ("superposition", "queen", "heads")  # quick ones, measured anew on every build
NEAR = 0.02  # how far a measurement may be from the stored one: another processor rounds


def is_swapped(name: str) -> bool:
    """Return whether another model stands in the place of the one that a result asks."""
    return bool(os.environ.get(VARIABLES.get(RESULTS[name].model, ""), ""))


def verdict_on(found: dict) -> str:
    """Return the verdict on a result, given what was measured.

    A model that fails at the task everywhere can't be asked where it fails. It is too
    close to say where the interval holds the bar.
    """
    if not found.get("able", True):
        return "can’t be asked"
    if found["holds"] is None:
        return "too close to say"
    return "holds" if found["holds"] else "not so"


def about(swapped: list[str]) -> str:
    """Return the sentence that says of which models the text speaks.

    ``swapped`` : list of str, the default models that others stand in for.
    """
    if not swapped:
        return "The text below speaks of these three."
    names = " and ".join(swapped)
    return (
        f"Another model stands here in the place of {names}: its rows and numbers are new, "
        "but the words below were written about ours."
    )


def untrained_cosine(count: int = 100) -> float:
    """Return the mean cosine of words of different poems in a BERT with shuffled weights.

    Of the layer in which it is lowest; a word is drawn from each of ``count`` poems.
    """
    model = shuffled_weights(minilm.bert()[1])
    rng = np.random.default_rng(0)
    drawn = [
        minilm.levels(ids, model)[1:, rng.integers(1, ids.shape[1] - 1)]
        for ids in minilm.poems(count)
    ]
    words = torch.stack(drawn, 1)  # (layers, words, d)
    neighbours = words.roll(1, dims=1)
    each = [cosines(*pair).mean() for pair in zip(words, neighbours, strict=True)]
    return float(min(each))


@proof("The table shows what was measured: stored for the default models, else anew.")
def results(page: Page):
    """Of the quick ones, measured again, none is far from what is stored.

    Parameters
    ----------
    page : Page
        ``stored_results`` are the outcomes of the study *famous*, by name.

    Returns
    -------
    dict
        For each result, its name before each key: ``ours``, ``interval``, ``null``,
        ``verdict``, ``foretold`` and what else was measured. ``asked``: how many results;
        ``hold``, ``not_so``, ``close``, ``unasked``: of these; ``right``: how many
        verdicts were foretold. ``about``: of which models the text speaks.
        ``untrained_cosine``: as the function of this name returns it.
    """
    values, verdicts = {}, {}
    for name, published in RESULTS.items():
        found = page.stored_results[name]
        if is_swapped(name):
            found = measure(name)
        elif name in AGAIN:
            again = measure(name)
            assert abs(again["ours"] - found["ours"]) < NEAR
            assert verdict_on(again) == verdict_on(found)
        verdicts[name] = verdict_on(found)
        shown = {key: value for key, value in found.items() if key not in ("name", "holds")}
        shown |= {"verdict": verdicts[name], "foretold": published.foretold}
        values |= {f"{name}_{key}": value for key, value in shown.items()}
    each = [*verdicts.values()]
    right = sum(verdicts[name] == result.foretold for name, result in RESULTS.items())
    return values | {
        "asked": len(RESULTS),
        "hold": each.count("holds"),
        "not_so": each.count("not so"),
        "close": each.count("too close to say"),
        "unasked": each.count("can’t be asked"),
        "right": right,
        "untrained_cosine": untrained_cosine(),
        "about": about([model for model in VARIABLES if os.environ.get(VARIABLES[model])]),
    }
