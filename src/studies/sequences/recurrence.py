"""What do gates buy? A plain recurrent network and an LSTM of the same size.

Both predict the next character of the Sonnets. Varied: the kind of network (as many
parameters in the recurrent layer), its learning rate, the seed. Rival: the plain network;
its rate is chosen as the LSTM's is, on validation sonnets, with a seed of its own. Null:
the same networks before training. Statistics, on the test sonnets: how closely one unit, of
the LSTM's memory or the plain network's state, goes with the position in the line (the unit
that does so best on training sonnets); the loss, and the loss at line ends alone; the
gradient of a prediction by each character before it, relative to that by the last one.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.data import load_texts
from studies.harness import best_rate, grid, verdict
from studies.sequences.lstm import D_IN, Network, load_ids, train_on_windows

CHAPTER = "sequences"
CLAIM = (
    "Each LSTM that learns the Sonnets grows a unit that keeps time along the line; no "
    "plain recurrent network of the same size does"
)
RIVAL = "a plain recurrent network with as many parameters, its rate chosen in the same way"
NULL = "the same networks before training"
WIDTHS = {"RNN": 272, "LSTM": 128}  # as many parameters in the recurrent layer
RATES = [2e-3, 5e-3]
SETTINGS = {"steps": 1200, "rates": RATES, "tuning_seed": 0, "seeds": [1, 2, 3]}
BACK = 64  # characters over which the gradient is followed


def plan(small):
    """Return the settings of all runs.

    Each kind's learning rate is chosen with one seed (group "tuning"), then networks are
    trained with three others ("trained"); "fresh" ones are not trained.

    Parameters
    ----------
    small : bool
        Whether all are trained for two steps, and one of each kind with one seed.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "tuning", "trained" or "fresh";
        ``kind``, "RNN" or "LSTM"; ``seed``; ``steps`` of training; of "tuning" also
        ``rate``, the learning rate that is tried.
    """
    steps = 2 if small else SETTINGS["steps"]
    tuning = grid(
        group="tuning", kind=list(WIDTHS), rate=RATES, seed=SETTINGS["tuning_seed"]
    )
    trained = grid(group="trained", kind=list(WIDTHS), seed=SETTINGS["seeds"])
    fresh = grid(group="fresh", kind=list(WIDTHS), seed=SETTINGS["seeds"])
    runs = [*tuning, *trained, *fresh]
    if small:
        runs = [*tuning, *trained[::3], *fresh[::3]]
    return [each | {"steps": 0 if each["group"] == "fresh" else steps} for each in runs]


def run(folder, group, kind, seed, steps, rate=None):
    """Train one network, and measure it.

    Parameters
    ----------
    folder : Path
        Holds the finished runs of the group "tuning".
    group : {"tuning", "trained", "fresh"}
        "tuning" tries a learning rate, "trained" trains at the best one, "fresh" measures a
        network before training.
    kind : {"RNN", "LSTM"}
        Of network.
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.
    rate : float, optional
        The highest learning rate. Default: the tuned one.

    Returns
    -------
    dict
        The settings ``kind``, ``seed``, ``rate``, ``steps``; ``parameters``, how many the
        recurrent layer has; ``validation``, the loss in nats a character. Of the groups but
        "tuning" also, on the test sonnets, ``loss`` and ``line_ends``, the loss of all
        characters and of line ends; ``clock``, the size of the correlation of its best unit
        with the position in the line; ``gradient``, a list by distance, how much a
        prediction changes with each character before it, relative to the last.
    """
    if group == "trained":
        rate = best_rate(folder, kind=kind)
    tokenizer, training, validation = load_ids()
    torch.manual_seed(seed)
    model = make(kind, tokenizer.vocab_size)
    if steps:
        train_on_windows(model, training, steps, rate)
    model.eval()
    row = {"kind": kind, "seed": seed, "rate": rate, "steps": steps}
    row["parameters"] = sum(weight.numel() for weight in model.core.parameters())
    with torch.no_grad():
        row["validation"] = loss_of(model, validation[None]).mean().item()
    if group == "tuning":
        return row
    return rounded(row | on_test_sonnets(model, tokenizer))


def make(kind, vocab_size):
    """Return a `Network` of a kind, before it is trained: from ids to logits.

    ``kind`` : "RNN", of width 272, or "LSTM", of width 128, which have as many parameters;
    ``vocab_size`` : int, how many characters.
    """
    model = Network(vocab_size)
    width = WIDTHS[kind]
    model.core = getattr(nn, kind)(D_IN, width, batch_first=True)
    model.output = nn.Linear(width, vocab_size)
    return model


def loss_of(model, ids):
    """Return the loss of each character but the first, in nats, (texts, tokens - 1).

    ``model`` : Network; ``ids`` : int64 Tensor (texts, tokens).
    """
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.mT, ids[:, 1:], reduction="none")


def cut_alike(tokenizer, texts):
    """Return texts, cut to the shortest, as ids (texts, tokens) that begin with a line end.

    The line end is put before each text; ids are int64. ``tokenizer`` : CharTokenizer;
    ``texts`` : list of str.
    """
    shortest = min(map(len, texts))
    return torch.tensor([tokenizer.encode("\n" + text[:shortest]) for text in texts])


def positions(ids, newline):
    """Return how many characters ago the line began, an int64 Tensor (texts, tokens).

    It is 0 at a line end, 1 at the first character after it. ``ids`` : int64 Tensor (texts,
    tokens), which begin with a line end; ``newline`` : int, the id of a line end.
    """
    steps = torch.arange(ids.shape[1]).expand_as(ids)
    return steps - torch.where(ids == newline, steps, 0).cummax(dim=1).values


@torch.no_grad()
def clocks(model, ids, newline):
    """Return each unit's correlation with the position in the line.

    Parameters
    ----------
    model : Network
        ``tokens`` is its table of vectors, ``core`` an `nn.RNN` or `nn.LSTM`. An RNN's
        units are its state, an LSTM's its memory.
    ids : int64 Tensor of shape (texts, tokens)
        Each begins with a line end, at which nothing is measured.
    newline : int
        The id of a line end.

    Returns
    -------
    float array of shape (units,)
        From -1 to 1, over all characters of all texts but the first of each; 0 for a unit
        that does not change.
    """
    x = model.tokens(ids)
    core = model.core
    carried = None
    units = []
    for token in x.unbind(1):
        _, carried = core(token[:, None], carried)
        units.append((carried[1] if isinstance(carried, tuple) else carried)[0])
    units = torch.stack(units, 1)[:, 1:].flatten(0, 1).T.numpy()  # (units, characters)
    place = positions(ids, newline)[:, 1:].ravel().numpy()
    return np.nan_to_num(np.corrcoef(place, units)[0, 1:])


def on_test_sonnets(model, tokenizer):
    """Measure a network on the test sonnets, every tenth.

    Parameters
    ----------
    model : Network
        In evaluation mode.
    tokenizer : CharTokenizer

    Returns
    -------
    dict
        ``loss`` and ``line_ends``, the mean loss of all characters and of line ends, in
        nats; ``clock``, the size of the correlation with the position in the line, 0 to 1,
        of the unit that goes with it best on a quarter of the training sonnets;
        ``gradient``, a list of float, the last character first: how much a prediction's
        loss changes with each character before it, relative to the last.
    """
    (newline,) = tokenizer.encode("\n")
    sonnets = load_texts("sonnets")
    ids = cut_alike(tokenizer, sonnets[9::10])
    learned = cut_alike(tokenizer, [s for i, s in enumerate(sonnets) if i % 10 in (0, 5)])
    with torch.no_grad():
        loss = loss_of(model, ids)
    at_end = ids[:, 1:] == newline
    unit = int(abs(clocks(model, learned, newline)).argmax())
    return {
        "loss": loss.mean().item(),
        "line_ends": loss[at_end].mean().item(),
        "clock": abs(float(clocks(model, ids, newline)[unit])),
        "gradient": gradient(model, ids),
    }


def gradient(model, ids):
    """Return how much a prediction's loss changes with each character before it.

    The prediction is that of the last character of windows of 66.

    Parameters
    ----------
    model : Network
        ``tokens`` is its table of vectors, ``core`` its recurrent layer, ``output`` the
        last layer.
    ids : int64 Tensor of shape (texts, tokens)

    Returns
    -------
    list of float
        65 of them, the last character first: the length of the gradient by a character's
        vector, relative to that by the last one, the median over windows.
    """
    starts = range(0, ids.shape[1] - BACK - 2, 16)
    windows = torch.cat([ids[:, start : start + BACK + 2] for start in starts])
    x = model.tokens(windows[:, :-1]).detach().requires_grad_()
    states, _ = model.core(x)
    F.cross_entropy(model.output(states[:, -1]), windows[:, -1], reduction="sum").backward()
    sizes = x.grad.norm(dim=-1).flip(1)  # (windows, BACK + 1)
    return (sizes / sizes[:, :1]).median(dim=0).values.tolist()


def rounded(found):
    """Return an outcome with its numbers rounded, as it is stored.

    ``found`` : dict, what was measured of a network: the losses ``validation``, ``loss``
    and ``line_ends`` and the correlation ``clock``, float, and ``gradient``, a list of
    float, are rounded; other keys stay.
    """
    digits = {"validation": 4, "loss": 4, "line_ends": 4, "clock": 3}
    found = {
        key: round(value, digits[key]) if key in digits else value
        for key, value in found.items()
    }
    return found | {"gradient": [float(f"{share:.3g}") for share in found["gradient"]]}


def summary(results):
    """Compare the clocks of the two kinds, seed by seed.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "trained", in the order of seeds: ``kind``,
        "RNN" or "LSTM"; ``seed``; ``clock``, the size of the correlation of its best unit
        with the position in the line, 0 to 1.

    Returns
    -------
    dict
        ``n``, the number of trained networks, and their ``seeds``; ``interval``, [lowest,
        highest] over seeds of the LSTM's clock less the RNN's; ``verdict``, "holds" or "not
        so": whether each LSTM's clock is above each RNN's.
    """
    clocks_of = {
        kind: [run["clock"] for run in results["trained"] if run["kind"] == kind]
        for kind in WIDTHS
    }
    pairs = zip(clocks_of["LSTM"], clocks_of["RNN"], strict=True)
    gaps = [lstm - rnn for lstm, rnn in pairs]
    return {
        "n": len(results["trained"]),
        "seeds": sorted({run["seed"] for run in results["trained"]}),
        "interval": [round(min(gaps), 4), round(max(gaps), 4)],
        "verdict": verdict(min(clocks_of["LSTM"]) > max(clocks_of["RNN"])),
    }
