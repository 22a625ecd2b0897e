"""What the page *famous* claims, checked where the page places it."""

import os

from studies.famous.famous import measure
from studies.famous.little import every_head, validation_windows, window_losses
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

    A model that fails at the task everywhere can't be asked where it fails.
    """
    if not found.get("able", True):
        return "can’t be asked"
    return "holds" if found["holds"] else "not so"


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
        ``hold``, ``not_so``: of these; ``right``: how many verdicts were foretold.
    """
    values, verdicts = {}, {}
    for name, published in RESULTS.items():
        found = page.stored_results[name]
        if is_swapped(name):
            found = measure(name)
        elif name in AGAIN:
            again = measure(name)
            assert abs(again["ours"] - found["ours"]) < NEAR
            assert again["holds"] == found["holds"]
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
        "right": right,
    }


@proof(
    "Removed one after the other, two fifths of our GPT's heads cost more than .02 nats."
)
def heads_one_after_the_other(page: Page):
    """Each time the head that is then missed least, on every second validation window.

    Parameters
    ----------
    page : Page
        ``stored_results`` say how many heads; our GPT is loaded as in the study.

    Returns
    -------
    dict
        ``rise``: of the loss on the other windows, in nats a character.
    """
    chosen_on, tried_on = validation_windows(40)
    removed = []
    for _ in range(page.stored_results["heads"]["removed"]):
        left = [head for head in every_head() if head not in removed]
        costs = {head: window_losses([*removed, head], *chosen_on).mean() for head in left}
        removed.append(min(costs, key=costs.get))
    rise = window_losses(removed, *tried_on).mean() - window_losses([], *tried_on).mean()
    assert rise > 0.02
    return {"rise": rise}
