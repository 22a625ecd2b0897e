"""Which layer of a decoder learns to attend first, and does the length of its input decide?

The word vectors, the input of layer 0, have length 1; what layer 1 is given went through a
norm and is √60 times as long. Varied: the length of what attention is given, in either
layer: as it is, both long, both short, or swapped (long in layer 0, short in layer 1).
Only what attention is given is multiplied; what goes past it is not. Three seeds each.

Rival: the place of the layer, whatever the length of its input.

Null: the same heads before training.

Statistic: how many words back the last word of seven attends, averaged by its attention
weights and over the heads of a layer, after 100 steps. The interval is that of layer
0 less layer 1, as it is, over the seeds.
"""

import numpy as np

from lmcourse.numpy_nn import decoder
from lmcourse.numpy_nn.attention import ScalarProduct
from lmcourse.numpy_nn.core import Chain
from studies.backpropagation.backpropagation import CONTEXT, load_words
from studies.harness import count, grid, paired

CHAPTER = "backpropagation"
CLAIM = (
    "Which layer of a small decoder learns to attend first is decided by how long its "
    "input vectors are"
)
RIVAL = "the place of the layer: layer 1 would turn first whatever it is given"
NULL = "the same heads before training"
LONG = 60**0.5  # the length of a vector that went through a norm
TURNED = 2.75  # mean words back: a layer below this has learned to attend nearby
EVEN = 2.9  # mean words back: a layer above this has not
SETTINGS = {
    "steps": 100,
    "marks": [0, 25, 50, 75, 100],
    "batch": 32,
    "seeds": [0, 1, 2],
    "factors": {  # by which each layer's attention input is multiplied
        "as it is": [1.0, 1.0],
        "both long": [LONG, 1.0],
        "both short": [1.0, 1 / LONG],
        "swapped": [LONG, 1 / LONG],
    },
}


def plan(small):
    """Return the settings of all runs: one for each way and seed.

    Parameters
    ----------
    small : bool
        Whether to return one run only, with one step.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "runs"; ``way``, which layer's input
        is lengthened or shortened ("as it is", "both long", "both short", "swapped");
        ``seed``; ``steps`` of training.
    """
    settings = grid(
        group="runs",
        way=list(SETTINGS["factors"]),
        seed=SETTINGS["seeds"],
        steps=SETTINGS["steps"],
    )
    return [settings[0] | {"steps": 1}] if small else settings


def run(folder, group, way, seed, steps):
    """Train a decoder whose attention is given longer or shorter vectors.

    Parameters
    ----------
    folder : Path
        Unused: nothing is saved.
    group : {"runs"}
        The only kind of run; unused.
    way : {"as it is", "both long", "both short", "swapped"}
        By what the input of each layer's attention is multiplied
        (``SETTINGS["factors"]``): "as it is", it has length 1 in layer 0 and √60 in layer
        1; "swapped" exchanges these lengths.
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.

    Returns
    -------
    dict
        The settings ``way``, ``seed``; ``back``, how many words back the last word of seven
        attends, mean over windows and heads, nested lists (marks, layers), marks being the
        steps ``SETTINGS["marks"]``; ``lengths``, a list by layer of the mean length of the
        vectors that its attention is given before training.
    """
    vocabulary, vectors, words, _, _ = load_words()
    model = decoder.Decoder(vocabulary, vectors, seed=seed)
    factors = SETTINGS["factors"][way]
    for block, factor in zip(model.blocks.modules, factors, strict=True):
        skip = block.modules[0]  # norm(x + attention(x))
        skip.module = Chain(ScalarProduct(factor), *skip.module.modules)
    windows = decoder.windows(words, CONTEXT)[::CONTEXT, :-1]
    distances = np.arange(CONTEXT)[::-1]
    back = []
    lengths = []

    def watch(step, *_):
        """Record how far back each layer's heads attend; at step 0 also vectors' lengths.

        At a step of ``SETTINGS["marks"]`` a list, the mean over heads by layer, is added to
        ``back``. ``step`` : int; what else is handed over is not used.
        """
        if step in SETTINGS["marks"]:
            weights = decoder.last_attention(model, windows)  # (layers, heads, tokens)
            back.append((weights @ distances).mean(-1).round(4).tolist())
        if step == 0:
            for block in model.blocks.modules:
                given = block.modules[0].module.modules[0]
                norms = np.linalg.norm(given.scale.value * given.x, axis=-1)
                lengths.append(round(float(norms.mean()), 3))

    decoder.train_decoder(
        model, words, steps, batch=SETTINGS["batch"], seed=seed, watch=watch
    )
    watch(steps)
    return {"way": way, "seed": seed, "back": back, "lengths": lengths}


def distances(rows, way, mark):
    """Return how many words back the heads attend after some number of steps.

    Parameters
    ----------
    rows : list of dict
        Outcomes of `run`, with ``way`` and ``back``, how many words back the last word
        attends on average, (marks, layers).
    way : {"as it is", "both long", "both short", "swapped"}
        The outcomes of this way are taken.
    mark : int
        One of ``SETTINGS["marks"]``, a number of steps.

    Returns
    -------
    float array of shape (seeds, layers)
        Words, mean over heads.
    """
    at = SETTINGS["marks"].index(mark)
    return np.array([row["back"][at] for row in rows if row["way"] == way])


def summary(results):
    """Compare the layers, as they are and with their lengths changed.

    Parameters
    ----------
    results : dict of str to list of dict
        "runs" → a dict for each training: ``way``, a key of ``SETTINGS["factors"]``, by
        which the layers' inputs are multiplied; ``seed``; ``back``, how many words back the
        last word attends, (marks, layers), marks being the steps ``SETTINGS["marks"]``.

    Returns
    -------
    dict
        ``n``, the number of outcomes, and their ``seeds``; ``interval``, how many words
        farther back layer 0 attends than layer 1, as it is, lowest and highest over seeds;
        ``verdict``, "holds" or "not so": whether after 100 steps each layer has turned
        where its input is long, and not where it is short.
    """
    rows = results["runs"]
    if len(rows) < 12:  # a small plan
        return count(rows) | paired([0.0], [0.0], False)
    by_way = {way: distances(rows, way, 100) for way in SETTINGS["factors"]}
    long_ones = [by_way["as it is"][:, 1], *by_way["both long"].T, by_way["swapped"][:, 0]]
    short_ones = [
        by_way["as it is"][:, 0],
        *by_way["both short"].T,
        by_way["swapped"][:, 1],
    ]
    holds = np.max(long_ones) < TURNED and np.min(short_ones) > EVEN
    return count(rows) | paired(*by_way["as it is"].T, bool(holds))
