"""Checks of what is done with a trained model: looking at it, and sampling."""

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

from lmcourse.exercises import Wrong, compare, exercise, run
from lmcourse.exercises.answers import array

DRAWS = 4000  # of one word; a share's standard error is below 0.008
NEAR = 0.04  # how far a share may be off


@exercise("backpropagation.weights_picture")
def weights_picture(answer):
    """Look at what the figure's images hold."""
    rng = np.random.default_rng(7)
    tokens = ["so", "long", "lives", "this"]
    weights = rng.uniform(0.1, 1, size=(3, 4, 4))
    weights /= weights.sum(axis=-1, keepdims=True)
    figure = run(answer, weights.copy(), list(tokens))
    if not hasattr(figure, "axes"):
        raise Wrong(f"return the figure; this is a {type(figure).__name__}.")
    drawn = [axis for axis in figure.axes if axis.images or axis.collections]
    drawn = [axis for axis in drawn if axis.get_label() != "<colorbar>"]
    if len(drawn) != len(weights):
        hint = " Do not average the heads." if len(drawn) == 1 else ""
        raise Wrong(f"{len(drawn)} heat maps for {len(weights)} heads.{hint}")
    shown = [(axis.images or axis.collections)[0] for axis in drawn]
    arrays = np.array([np.reshape(np.asarray(s.get_array()), (4, 4)) for s in shown])
    compare(
        arrays,
        weights,
        {
            "rows and columns are swapped: queries are rows, and a query sees only what "
            "stands left of it.": weights.swapaxes(-1, -2),
            "every head's picture is the first head's.": np.repeat(weights[:1], 3, 0),
            "every head's picture is the last head's.": np.repeat(weights[-1:], 3, 0),
            "the first row should be drawn on top; leave the order of the rows to "
            "imshow.": weights[:, ::-1],
        },
    )
    _labels_and_scale(drawn, shown, tokens)
    plt.close(figure)


def _labels_and_scale(drawn, shown, tokens):
    for axis, image in zip(drawn, shown, strict=True):
        across = [label.get_text() for label in axis.get_xticklabels()]
        down = [label.get_text() for label in axis.get_yticklabels()]
        if not axis.yaxis_inverted():
            raise Wrong("the first query stands at the bottom; rows go from the top.")
        if across != tokens:
            raise Wrong("the words should stand under the columns, the keys, in order.")
        if down != tokens:
            raise Wrong("the words should stand beside the rows, the queries, in order.")
        if image.get_clim() != (0, 1):
            raise Wrong(
                "each square has a scale of its own, so they cannot be compared: set "
                "vmin=0 and vmax=1."
            )


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
    if not numbers.size or (numbers % 1 != 0).any() or numbers.min() < 0:
        raise Wrong("return the numbers of the words, the start's and the new ones.")
    return numbers.astype(int).tolist()


@exercise("backpropagation.sampling")
def sampling(answer):
    """Watch what the model is shown, and count what is drawn."""
    start = [3, 1]
    model, rng = _Pretender(), np.random.default_rng(8)
    drawn = _words(run(answer, model, list(start), 6, rng, 4))
    if drawn[:2] != start:
        raise Wrong("the start should stand at the beginning of the result.")
    if len(drawn) != 8:
        raise Wrong(f"{len(drawn) - 2} words were added; {6} were asked for.")
    lengths = [len(shown) for shown in model.shown]
    if max(lengths) > 4:
        raise Wrong("the model is shown more than the last `context` words.")
    if lengths and max(lengths) == 1:
        raise Wrong("the model is shown one word; show it the last `context` of them.")
    if model.shown[-1] != drawn[-5:-1]:
        raise Wrong("the model should be shown the *last* words, the newest included.")
    for temperature in (1.0, 0.5):
        _frequencies(answer, temperature)


def _frequencies(answer, temperature):
    """Draw one word many times and compare the shares with a softmax."""
    rng = np.random.default_rng(9)
    model = _Pretender()
    args = (model, [0, 2, 1], 1, rng, 7, temperature)
    drawn = [_words(run(answer, *args))[-1] for _ in range(DRAWS)]
    got = np.bincount(drawn, minlength=4)[:4] / DRAWS

    def shares(row, factor=1.0):
        return F.softmax(torch.tensor(model.table[row]) * factor, -1).numpy()

    if np.abs(got - shares(1, 1 / temperature)).max() < NEAR:
        return
    mistakes = {
        "always the likeliest word is taken; draw by the shares.": np.eye(4)[0],
        "all words are drawn alike; rng.choice needs p.": np.full(4, 0.25),
        "the logits of the first word are used; those of the last say what comes "
        "next.": shares(0, 1 / temperature),
        "the temperature has no effect.": shares(1),
        "the logits are multiplied by the temperature; they are divided by it.": shares(
            1, temperature
        ),
    }
    for diagnosis, wrong in mistakes.items():
        if np.abs(got - wrong).max() < NEAR:
            raise Wrong(diagnosis)
    raise Wrong(
        f"at temperature {temperature} the words are not drawn by the softmax of the "
        "logits."
    )
