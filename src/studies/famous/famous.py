"""Do published results hold of the small models of this book?

What varies: the result, one of ``published.toml``, which says what is measured and when the
sentence holds. Rivals and nulls stand there, too; each was written down before it was
measured. Statistic: the share of results that hold; its interval is over results.

Models: SmolLM2-135M-Instruct, MiniLM and our GPT, or what stands in their places; one
result trains a toy.
"""

from lmcourse.numbers import bootstrap_interval
from studies.famous import little, minilm, smollm2
from studies.famous.published import RESULTS
from studies.harness import grid, verdict

CHAPTER = "famous"
AFTER = ("sonnets",)  # our GPT, of which some results are
CLAIM = (
    "Asked in one form each, about half of eighteen published results hold of small models"
)
RIVAL = "what we foretold before we measured"
NULL = "for each result a world in which there is nothing to find: shuffled or dealt"
SETTINGS = {"results": [*RESULTS]}
# Between these a share is about half.
LOW = 0.35
HIGH = 0.65
MEASURED_BY = {
    "SmolLM2": smollm2,
    "MiniLM": minilm,
    "our GPT": little,
    "a toy model": little,
}


def plan(small):
    """Return the settings of all runs, one for each result.

    Parameters
    ----------
    small : bool
        Whether to measure three of the published results, on few texts.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "results"; ``name``, the result that
        is measured; ``small``, whether on few texts.
    """
    names = ["letters", "order", "superposition"] if small else SETTINGS["results"]
    return grid(group="results", name=names, small=small)


def run(folder, group, name, small):
    """Measure one result.

    Parameters
    ----------
    folder : Path
        Unused.
    group : {"results"}
        The only kind of run; unused.
    name : str
        A key of `RESULTS`, the published results, such as "errand".
    small : bool
        Whether on few texts.

    Returns
    -------
    dict
        ``name``, and the mean (``ours``), its ``interval``, ``null``, ``n`` and whether it
        ``holds``; also what the function of its name adds, such as ``able``, whether the
        model can be asked.
    """
    return {"name": name} | measure(name, small)


def measure(name, small=False):
    """Measure one result on the models that are loaded by default.

    The function of its name in `minilm`, `little` or `smollm2` does, by the model asked.

    Parameters
    ----------
    name : str
        A key of `RESULTS`, the published results, such as "errand".
    small : bool
        Whether on few texts.

    Returns
    -------
    dict
        The mean (``ours``), its 95 % ``interval``, ``null``, the mean where there is
        nothing to find, ``n`` and whether it ``holds`` (True, False, or None if it is too
        close to say); also what the function of its name adds, such as ``able``, whether
        the model can be asked.
    """
    return getattr(MEASURED_BY[RESULTS[name].model], name)(small)


def summary(results):
    """Return what is stored beside the outcomes.

    Parameters
    ----------
    results : dict of str to list of dict
        "results" → a dict for each published result: ``holds`` (True, False, or None if it
        is too close to say) and, of some, ``able``, whether the model can be asked.

    Returns
    -------
    dict
        ``n``, how many results; ``seeds``; ``interval``, 95 % of the share of results that
        hold; ``verdict``, "holds" or "not so": whether the share lies between 0.35 and
        0.65, so that it is about half. One of which the model can't be asked counts as not
        holding.
    """
    holds = [
        float(row["holds"] is True and row.get("able", True)) for row in results["results"]
    ]
    share = sum(holds) / len(holds)
    span = [round(end, 2) for end in bootstrap_interval(holds)]
    return {
        "n": len(holds),
        "seeds": [0],
        "interval": span,
        "verdict": verdict(LOW < share < HIGH),
    }
