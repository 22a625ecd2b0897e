"""How far does longer training, or another rate, help where a decoder gets one vector?

What varies, on two dates in one source: the learning rate of LSTMs whose decoder gets one
vector of the source, once or at every step, trained as long as one that looks back (study
*encoder-decoder*); and, with the vector at every step, four times as many steps.
Three seeds of each.

Rival: the same LSTM that looks back at all states of its encoder.

Null: a decoder that gets nothing of the source would write no date right but by chance.

Statistic: the share of held-out pairs of dates that are read right.
"""

from lmcourse.dates import drawing, share_right, split_days, train_on_dates
from studies.encoder_decoder.one_vector import join_pairs, new_kind
from studies.harness import count, grid, verdict

CHAPTER = "encoder-decoder"
CLAIM = (
    "With its vector at every step an LSTM reads hardly any source with two dates, at each "
    "of three rates; after four times as many steps it reads most"
)
RIVAL = "another learning rate, and four times as many steps"
NULL = "a decoder that gets nothing of the source, which could only guess"
SETTINGS = {
    "short": 700,
    "long": 2800,
    "rates": [1e-2, 6e-2],  # below and above that one
    "rate": 3e-2,  # the best on one date, study encoder-decoder
    "seeds": [0, 1, 2],
}
EVERY = "LSTM, one vector at every step"
ONCE = "LSTM, one vector"
KINDS = (EVERY, ONCE)
DATES = 2  # in one source
FEW = 0.05  # share of the pairs of dates: hardly any
MOST = 0.5  # more than half of them


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return one run of each kind, with three steps, from one seed.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, "rates" (several learning rates) or "longer"
        (four times the steps); ``kind``, the model, "LSTM, one vector at every step" or
        "LSTM, one vector"; ``steps`` of training; ``rate``, the highest learning rate;
        ``seed``.
    """
    seeds = SETTINGS["seeds"]
    rates = SETTINGS["rates"]
    short = SETTINGS["short"]
    long = SETTINGS["long"]
    if small:
        seeds = seeds[:1]
        rates = rates[:1]
        short = long = 3
    settings = grid(group="rates", kind=KINDS, steps=short, rate=rates, seed=seeds)
    settings += grid(
        group="longer", kind=EVERY, steps=long, rate=SETTINGS["rate"], seed=seeds
    )
    return settings


def run(folder, group, kind, steps, rate, seed):
    """Train a model on two dates in one source, and test it.

    Parameters
    ----------
    folder : Path
        Not used: no run needs another one.
    group : {"rates", "longer"}
        Which runs of the plan it belongs to: several rates, or more steps; unused.
    kind : {"LSTM, one vector at every step", "LSTM, one vector"}
        When the decoder gets the source's one vector.
    steps : int
        How many steps of training.
    rate : float
        The highest learning rate.
    seed : int
        Of the first weights, and of all that is drawn.

    Returns
    -------
    dict
        ``kind``, ``steps``, ``rate``, ``seed``, and ``right``, the share, 0 to 1, of 500
        held-out sources, each of two dates, that are read right as a whole.
    """
    model = new_kind(kind, seed)
    held_out, training_days = split_days()
    draw = drawing(training_days, seed, size=64 * DATES)
    train_on_dates(model, lambda: join_pairs(draw(), DATES), steps, rate)
    test_pairs = drawing(held_out[:1000], 0, size=500 * DATES)()
    share = share_right(model, join_pairs(test_pairs, DATES))
    row = {"kind": kind, "steps": steps, "rate": rate, "seed": seed}
    return row | {"right": round(float(share), 4)}


def summary(results):
    """Compare the trainings at other rates with those of four times as many steps.

    Parameters
    ----------
    results : dict of str to list of dict
        "rates" and "longer", the shorter and the longer trainings → a dict for each:
        ``seed``, and ``right``, the share of held-out sources read right, 0 to 1.

    Returns
    -------
    dict
        ``n``, the number of outcomes, and their ``seeds``; ``interval``, the lowest and the
        highest share read right after the longer training, over seeds; ``verdict``, "holds"
        or "not so": whether every shorter training reads less than 5 % (`FEW`) and every
        longer one more than half (`MOST`).
    """
    longer = [row["right"] for row in results["longer"]]
    shorter = [row["right"] for row in results["rates"]]
    return count([*results["rates"], *results["longer"]]) | {
        "interval": [min(longer), max(longer)],
        "verdict": verdict(max(shorter) < FEW and min(longer) > MOST),
    }
