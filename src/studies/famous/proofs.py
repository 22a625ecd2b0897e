"""What the page *famous* claims, checked where the page places it.

The ``page`` of a proof or a null is a `studies.findings.Page`: the names that the page has
defined so far, as attributes.
"""

import os

import numpy as np
import torch

from lmcourse.shuffled import shuffled_weights
from studies.famous import elsewhere, minilm
from studies.famous.famous import measure
from studies.famous.little import Unasked
from studies.famous.outcomes import cosines
from studies.famous.published import RESULTS
from studies.findings import Page, proof

VARIABLES = {  # what puts another model in a default one's place
    "SmolLM2": "LMCOURSE_TALKER",
    "MiniLM": "LMCOURSE_BERT",
    "our GPT": "LMCOURSE_GPT",
}
AGAIN = ("superposition", "queen", "heads")  # quick ones, measured anew on every build
FORMS = elsewhere.SETTINGS["results"]  # those that are asked in other forms, too
UNMEASURED = "–"  # in the place of a number; no format changes it (`lmbook.pages.glue`)
NEAR = 0.02  # how far a measurement may be from the stored one: another processor rounds


def is_swapped(name: str) -> bool:
    """Return whether another model stands in the place of the one that a result asks.

    ``name`` : str, a key of `RESULTS`. A variable of the environment, such as
    ``LMCOURSE_GPT``, puts it there.
    """
    return bool(os.environ.get(VARIABLES.get(RESULTS[name].model, ""), ""))


def verdict_on(found: dict) -> str:
    """Return the verdict on a result, given what was measured.

    That is "holds", "not so", "too close to say" (the interval includes the bar) or "can’t
    be asked": a model that fails at the task everywhere can't be asked where it fails.

    Parameters
    ----------
    found : dict
        ``holds``, True, False or None where it is too close to say; perhaps ``able``,
        whether the model can be asked.
    """
    if not found.get("able", True):
        return "can’t be asked"
    if found["holds"] is None:
        return "too close to say"
    return "holds" if found["holds"] else "not so"


def verdict_over(found: dict, forms: dict) -> str:
    """Return the verdict on a result that is asked in several forms.

    ``found`` : dict, the outcome of the first: ``holds``, True, False or None where it is
    too close to say, and perhaps ``able``, whether the model can be asked; ``forms`` : dict
    of str to dict, those of the others, by the form's name; empty if there is no other.
    Returned is "it depends" if it holds in one form and not in another; else "holds", "not
    so", "too close to say" or "can’t be asked".
    """
    if not forms or not found.get("able", True):
        return verdict_on(found)
    return elsewhere.over_forms([each["holds"] for each in (found, *forms.values())])


def measured(name: str, stored: dict) -> dict:
    """Measure a result on the model that stands in the place of a default one.

    Parameters
    ----------
    name : str
        The result, as the study *famous* calls it.
    stored : dict
        The stored outcome, of which only the keys are used: ``ours``, the mean, its
        ``interval``, ``null``, ``n``, ``holds`` and more.

    Returns
    -------
    dict
        The same keys, measured anew. Of a model that can't be asked at all each is
        `UNMEASURED`, ``holds`` is None, ``able`` False, and ``reason`` says why.
    """
    try:
        return measure(name)
    except Unasked as error:
        unmeasured = dict.fromkeys(stored, UNMEASURED)
        return unmeasured | {"holds": None, "able": False, "reason": str(error)}


def with_reason(verdict: str, found: dict) -> str:
    """Return a verdict, and behind it why a model can't be asked at all, if it can't.

    ``verdict`` : str, such as "can’t be asked"; ``found`` : dict, an outcome; its key
    ``reason``, a str, is there if the model can't be asked at all.
    """
    return f"{verdict}: {found['reason']}" if "reason" in found else verdict


def shown(name: str, found: dict) -> dict:
    """Return what the page may quote of an outcome, ``name_key`` → value.

    ``name`` : str, of the result, and of the form behind it, such as "errand_stories";
    ``found`` : dict, an outcome, whose keys ``name`` and ``holds`` are left out.
    """
    hidden = ("name", "holds")
    return {f"{name}_{key}": each for key, each in found.items() if key not in hidden}


def sentence_on_models(swapped: list[str]) -> str:
    """Return the sentence that says of which models the text speaks.

    ``swapped`` : list of str, those of "SmolLM2", "MiniLM" and "our GPT" that another model
    stands in for.
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

    It is that of the layer in which it is lowest. ``count`` : int, how many poems; a token
    of each is drawn and compared with that of the poem before.
    """
    model = shuffled_weights(minilm.bert()[1])
    rng = np.random.default_rng(0)
    drawn = [
        minilm.levels(ids, model)[1:, rng.integers(1, ids.shape[1] - 1)]
        for ids in minilm.poems(count)
    ]
    words = torch.stack(drawn, 1)  # (layers, words, d)
    neighbours = words.roll(1, dims=1)
    by_layer = [cosines(*pair).mean() for pair in zip(words, neighbours, strict=True)]
    return float(min(by_layer))


def check_words(stored: dict, forms: dict) -> None:
    """Check what the text says of the default models' results in words, without a number.

    Parameters
    ----------
    stored : dict
        Name of a result → the outcome that the study *famous* stored, a dict.
    forms : dict
        Name of a result → name of another form in which it was asked → its outcome.

    Raises
    ------
    AssertionError
        If a stored result is not as the text says.
    """
    errand, repeats, heads = (stored[name] for name in ("errand", "repeats", "heads"))
    assert errand["null"] < 0.1 * errand["lunch"]  # a third person gives: no lead
    assert repeats["null"] == repeats["null_heads"] == 0
    assert all(form["heads"] > form["null_heads"] for form in forms["repeats"].values())
    assert stored["separator"]["ours"] <= stored["separator"]["even"]
    by_layer = stored["cone"]["by_level"][1:]
    assert by_layer[-1] == min(by_layer)
    by_level = stored["contextual"]["by_level"]
    assert np.argmin(by_level) == len(by_level) - 3  # two layers before the end
    assert heads["ours"] > heads["null"] > heads["in_rounds"] > 0.02
    assert stored["superposition"]["all_kept"] == 1


@proof("The table shows what was measured: stored for the default models, else anew.")
def results(page: Page):
    """Check that three quick results, measured again, are within 0.02 of the stored ones.

    The three are "superposition", "queen" and "heads"; their verdicts are the same, too.
    `check_words` compares what the text says in words with the stored results. Where
    another model stands in a default one's place, its results are measured anew, and not
    asserted.

    Parameters
    ----------
    page : Page
        ``stored_results``: name of a result → the outcome that the study *famous* stored, a
        dict with the mean (``ours``), its ``interval``, ``null``, ``n``, ``holds`` (True,
        False or None) and more. ``stored_forms``: name → name of another form in which it
        was asked → such an outcome.

    Returns
    -------
    dict
        For each result, its name and an underscore before each key: ``ours``, ``interval``,
        ``null``, ``verdict``, ``foretold`` and what else was measured. The same for each
        other form, its name behind that of the result. ``asked``: how many results;
        ``hold``, ``not_so``, ``depends``, ``close``, ``unasked``: how many of these;
        ``right``: how many verdicts were foretold. ``about``: of which models the text
        speaks. ``untrained_cosine``: the mean cosine of words of different poems in a BERT
        with shuffled weights.
    """
    check_words(page.stored_results, page.stored_forms)
    values = {}
    verdicts = {}
    for name, published in RESULTS.items():
        stored = page.stored_results[name]
        forms = page.stored_forms.get(name, {})
        if is_swapped(name):
            stored = measured(name, stored)
            forms = elsewhere.measure(name) if name in FORMS else {}
        elif name in AGAIN:
            anew = measure(name)
            assert abs(anew["ours"] - stored["ours"]) < NEAR
            assert verdict_on(anew) == verdict_on(stored)
        verdicts[name] = verdict_over(stored, forms)
        verdict = with_reason(verdicts[name], stored)
        labels = {"verdict": verdict, "foretold": published.foretold}
        values |= shown(name, stored | labels)
        for form, outcome in forms.items():
            values |= shown(f"{name}_{form}", outcome)
    all_verdicts = [*verdicts.values()]
    right = sum(verdicts[name] == result.foretold for name, result in RESULTS.items())
    swapped = [model for model in VARIABLES if os.environ.get(VARIABLES[model])]
    return values | {
        "asked": len(RESULTS),
        "hold": all_verdicts.count("holds"),
        "not_so": all_verdicts.count("not so"),
        "depends": all_verdicts.count("it depends"),
        "close": all_verdicts.count("too close to say"),
        "unasked": all_verdicts.count("can’t be asked"),
        "right": right,
        "untrained_cosine": untrained_cosine(),
        "about": sentence_on_models(swapped),
    }
