"""Checks of what is done with a trained model: looking at it, and sampling."""

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.figure import Figure

from lmcourse.exercises import Wrong, compare, exercise, run
from lmcourse.exercises.answers import array, blame, kind

DRAWS = 4000  # of one word; a share's standard error is below 0.008
NEAR = 0.04  # how far a share may be off


@exercise("backpropagation.weights_picture")
def weights_picture(answer):
    """Look at what the figure's images hold."""
    open_before = plt.get_fignums()
    try:
        weights = np.random.default_rng(7).uniform(0.1, 1, size=(3, 4, 4))
        weights /= weights.sum(axis=-1, keepdims=True)
        tokens = ["so", "long", "lives", "this"]
        _judge_figure(run(answer, weights, tokens), weights, tokens)
    finally:
        for number in set(plt.get_fignums()) - set(open_before):
            plt.close(number)


def _judge_figure(figure, weights, tokens):
    if not isinstance(figure, Figure):
        raise Wrong(f"return the figure; this is of type {kind(figure)}.")
    drawn = [axis for axis in figure.axes if axis.images or axis.collections]
    drawn = [axis for axis in drawn if axis.get_label() != "<colorbar>"]
    if len(drawn) != len(weights):
        hint = " Do not average the heads." if len(drawn) == 1 else ""
        raise Wrong(f"{len(drawn)} heat maps for {len(weights)} heads.{hint}")
    shown = [(axis.images or axis.collections)[0] for axis in drawn]
    mistakes = {
        "rows and columns are swapped: queries are rows, and a query sees only what stands "
        "left of it.": weights.mT,
        "every head's picture is the first head's.": np.repeat(weights[:1], 3, 0),
        "every head's picture is the last head's.": np.repeat(weights[-1:], 3, 0),
        "the first row should be drawn on top; leave the order of the rows to imshow.": (
            weights[:, ::-1]
        ),
    }
    squares = [np.reshape(image.get_array(), (4, 4)) for image in shown]
    compare(squares, weights, mistakes)
    for axis, image in zip(drawn, shown, strict=True):
        across = [label.get_text() for label in axis.get_xticklabels()]
        down = [label.get_text() for label in axis.get_yticklabels()]
        faults = {
            "the first query stands at the bottom; rows go from the top.": (
                not axis.yaxis_inverted()
            ),
            "the words should stand under the columns, the keys, in order.": across
            != tokens,
            "the words should stand beside the rows, the queries, in order.": down
            != tokens,
            "each square has a scale of its own, so they cannot be compared: set vmin=0 "
            "and vmax=1.": image.get_clim() != (0, 1),
        }
        blame(faults)


class _Pretender:
    """A model that notes what it is shown; its logits depend on the last word."""

    table = np.array([[0.0, 1.2, -0.4, 0.5], [1.5, 0.0, 0.3, -0.5], [0.2, 0.9, 0.0, 1.4]])
    table = np.vstack([table, [-0.3, 0.8, 1.1, 0.0]])

    def __init__(self):
        self.shown = []

    def forward(self, numbers):
        self.shown.append([int(number) for number in np.ravel(numbers)])
        return self.table[np.ravel(numbers)]

    __call__ = forward


def _words(result):
    """Return the numbers of the words drawn."""
    numbers = array(result).ravel()
    whole = np.isfinite(numbers).all() and (numbers % 1 == 0).all()
    if not numbers.size or not whole or numbers.min() < 0:
        raise Wrong("return the numbers of the words, the start's and the new ones.")
    return numbers.astype(int).tolist()


@exercise("backpropagation.sampling")
def sampling(answer):
    """Watch what the model is shown, and count what is drawn."""
    start, model = [3, 1], _Pretender()
    drawn = _words(run(answer, model, start, 6, np.random.default_rng(8), 4))
    longest = max(map(len, model.shown), default=0)
    faults = {
        "the start should stand at the beginning of the result.": drawn[:2] != start,
        f"{len(drawn) - 2} words were added; 6 were asked for.": len(drawn) != 8,
        "the model is shown nothing.": longest == 0,
        "the model is shown more than the last `context` words.": longest > 4,
        "the model is shown one word; show it the last `context` of them.": longest == 1,
        "the model should be shown the *last* words, the newest included.": (
            model.shown[-1:] != [drawn[-5:-1]]
        ),
    }
    blame(faults)
    for temperature in (1.0, 0.5):
        _frequencies(answer, temperature)


def _frequencies(answer, temperature):
    """Draw one word many times and compare the shares with a softmax."""
    model, rng = _Pretender(), np.random.default_rng(9)
    args = (model, [0, 2, 1], 1, rng, 7, temperature)
    drawn = [_words(run(answer, *args))[-1] for _ in range(DRAWS)]
    got = np.bincount(drawn, minlength=4)[:4] / DRAWS

    def shares(row, factor=1.0):
        return torch.tensor(model.table[row] * factor).softmax(-1).numpy()

    def alike(wrong):
        return np.abs(got - wrong).max() < NEAR

    if alike(shares(1, 1 / temperature)):
        return
    faults = {
        "always the likeliest word is taken; draw by the shares.": alike(np.eye(4)[0]),
        "all words are drawn alike; rng.choice needs p.": alike(0.25),
        "the logits of the first word are used; those of the last say what comes next.": (
            alike(shares(0, 1 / temperature))
        ),
        "the temperature has no effect.": alike(shares(1)),
        "the logits are multiplied by the temperature; they are divided by it.": alike(
            shares(1, temperature)
        ),
        f"at temperature {temperature} the words are not drawn by the softmax of the "
        "logits.": True,
    }
    blame(faults)
