"""Checks of what is done with a trained model: looking at it, judging it, sampling."""

from collections.abc import Mapping

import numpy as np
import torch

from lmcourse.exercises import Wrong, exercise, judge, run
from lmcourse.exercises.answers import array, diagnose

LAYERS, HEADS = 2, 5  # of the page's decoder
CHANCE = 0.4  # how far heads that learned nothing may be from even, over some lines
DRAWS = 4000  # of one word; a share's standard error is below 0.008
NEAR = 0.04  # how far a share may be off


@exercise("backpropagation.control", kind="experiment")
def control(answer):
    """See whether the numbers can be those of seven-word lines, and what they say."""
    if not isinstance(answer, Mapping) or not {"untrained", "trained"} <= {*answer}:
        raise Wrong("hand over a dict with the keys 'untrained' and 'trained'.")
    before, after = (array(answer[name]).astype(float) for name in ("untrained", "trained"))
    for name, found in (("untrained", before), ("trained", after)):
        if found.shape == (LAYERS, HEADS, 7):
            raise Wrong(
                f"{name}: these are the weights of the seven places. How many words back "
                "is that on average? The page has how far back each place is."
            )
        if found.shape != (LAYERS, HEADS):
            raise Wrong(
                f"{name}: one number for each head of each layer is expected, "
                f"{(LAYERS, HEADS)}, not {found.shape}. Average over your lines only."
            )
        if not (np.isfinite(found) & (found >= 0) & (found <= 6)).all():
            raise Wrong(f"{name}: with seven words nobody looks further back than 6.")
    return {
        "both are the same: each model must run on your lines before its weights are "
        "read.": np.array_equal(before, after),
        "untrained, the heads look about half as far as they should: take the last "
        "word's row. The words before it have fewer to look at.": (
            abs(before.mean() - 1.5) < CHANCE
        ),
        f"untrained heads look {before.mean():.2f} words back: without any training "
        "the seven words get about the same weight, which would be 3. Is this the "
        "decoder that was never trained?": abs(before.mean() - 3) > CHANCE,
        "the trained heads look no nearer than the untrained ones. Train longer, or "
        "take more lines: one line is an anecdote.": after.mean() > before.mean() - 0.1,
    }


# Which of two lists of neighbours comes from the trained table.
judge(
    "backpropagation.neighbours",
    a="look again at what the words have in common: do they stand near each other "
    "in a line, or can one stand where the other stands?",
    b=None,
    c="they are of different kinds. Put a neighbour in the word's place: in "
    "which column does a line still stand?",
)


class _ToyModel:
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
    """Watch what the model is shown, when it stops, and count what is drawn."""
    start, model = [3, 1], _ToyModel()
    drawn = _words(run(answer, model, start, 6, np.random.default_rng(8), None, 4))
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
    diagnose(faults)
    for temperature in (1.0, 0.5):
        _frequencies(answer, temperature)
    _ends(answer)


def _ends(answer):
    """Let the mark come after a while; once it stands in the start."""
    for start in ([0, 1], [2, 0]):
        given = _ToyModel(), start, 400, np.random.default_rng(1), 2, 4
        new = _words(run(answer, *given))[2:]
        faults = {
            "the end mark has no effect: stop once it is drawn.": len(new) == 400,
            "the end mark belongs to the result: append it, then stop.": 2 not in new,
            "the end mark is drawn and the text goes on.": 2 in new[:-1],
        }
        diagnose(faults)


def _frequencies(answer, temperature):
    """Draw one word many times and compare the shares with a softmax."""
    model, rng = _ToyModel(), np.random.default_rng(9)
    args = (model, [0, 2, 1], 1, rng, None, 7, temperature)
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
    diagnose(faults)
