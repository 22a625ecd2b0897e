"""Checks for the tasks of the chapter *beyond-text*."""

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse.csgraph import shortest_path

from lmcourse.exercises import Case, exercise, judge, predict
from lmcourse.exercises.answers import normal
from lmcourse.rules import sample_sequences


@exercise("beyond-text.cut", "spot the bug")
def cut():
    """Compare with PyTorch's `unfold`."""
    for rows, columns, size in ((4, 6, 2), (4, 4, 2), (6, 9, 3)):
        images = normal(2, rows, columns)
        want = F.unfold(images[:, None], size, stride=size).mT
        down, across = rows // size, columns // size
        blocks = want.unflatten(1, (down, across)).unflatten(-1, (size, size))
        mistakes = {
            "still strips: the numbers of a patch stand in one row of the image.": (
                images.reshape(want.shape)
            ),
            "these are the right patches, down the columns first: row by row, please.": (
                blocks.transpose(1, 2).reshape(want.shape)
            ),
            "each patch is mirrored at its diagonal: its own rows come first.": (
                blocks.transpose(-1, -2).reshape(want.shape)
            ),
            "every second pixel is taken: `size` splits an axis into (count, size), not "
            "(size, count).": images.unflatten(-1, (size, across))
            .unflatten(1, (size, down))
            .permute(0, 2, 4, 1, 3)
            .reshape(want.shape),
            "tokens and numbers have changed places: a row is a patch.": want.mT,
        }
        yield Case([images, size], want, mistakes)


predict(
    "beyond-text.dealt",
    a="its places are learned: a patch elsewhere gets another vector, and that is all.",
    b=None,
    c="a distance is a sum over pixels, and a sum has no order.",
    d="two of the three never knew which patches were neighbours.",
)
predict(
    "beyond-text.no_edges",
    a="it has learned what graphs look like; which one this is, nothing tells it.",
    b="nothing in it is drawn by lot: equal tokens get equal answers.",
    c=None,
)


@exercise("beyond-text.late", "spot the bug")
def late():
    """Compare with PyTorch's own attention, which adds a float mask to the scores."""
    query, key, value = normal(3, 2, 5, 4).double()
    bias = 2 * normal(2, 5, 5, seed=1).double()
    scores, whole = query @ key.mT / 2, F.scaled_dot_product_attention
    plain, open_ = scores.softmax(-1), (scores + bias).softmax(-1)
    added = plain + bias
    mistakes = {
        "the bias still comes after the softmax: the weights are no shares any more.": (
            added @ value
        ),
        "divided by their sum they sum to 1, but may be negative: add the bias before the "
        "softmax.": added / added.sum(-1, keepdim=True) @ value,
        "a softmax of a softmax is nearly even: one is enough.": added.softmax(-1) @ value,
        "what falls below zero is cut off, but the rows still do not sum to 1: add the "
        "bias before the softmax.": added.clamp(min=0) @ value,
        "the bias is not used.": plain @ value,
        "the bias is taken away; add it.": (scores - bias).softmax(-1) @ value,
        "the bias multiplies the scores; add it.": (scores * bias).softmax(-1) @ value,
        "the softmax runs down the columns; each row should sum to 1.": (
            (scores + bias).softmax(-2) @ value
        ),
        "these are the weights: mix the values with them.": open_,
    }
    yield Case([scores, bias, value], whole(query, key, value, bias), mistakes)


@exercise("beyond-text.by_distance", "build")
def by_distance():
    """Compare with SciPy's shortest paths."""
    joined = torch.zeros(7, 7, dtype=torch.bool)
    for a, b in ((0, 3), (3, 1), (1, 6), (6, 4), (3, 6), (2, 5)):  # in two pieces
        joined[a, b] = joined[b, a] = True
    steps = shortest_path(joined.numpy(), unweighted=True)
    walks = [np.linalg.matrix_power(joined.numpy().astype(int), n) > 0 for n in range(3)]
    last = np.select(walks[::-1], [2, 1, 0], 3)  # the longest walk in place of the shortest
    for far in (2, 3):
        bonus = normal(3, far + 1, seed=far).double()

        def given(steps, far=far, bonus=bonus):
            """Return the bias of each head for a matrix of distances."""
            return bonus[:, torch.tensor(np.minimum(steps, far)).long()]

        want = given(steps)
        mistakes = {
            "only neighbours are told apart: how many steps is it to the others?": given(
                np.where(steps == 1, 1, np.where(steps == 0, 0, far))
            ),
            "a node that cannot be reached is as far as can be: it gets the last number.": (
                given(np.where(np.isinf(steps), 0, steps))
            ),
            "where no path leads, the bias is the last number, not zero.": torch.where(
                torch.tensor(np.isinf(steps)), torch.zeros(()).double(), want
            ),
            "each round overwrites the last: who was reached keeps its number.": given(
                np.where(steps < far, far - 1, far)
            ),
            "a node is 0 steps from itself: it gets the first number.": given(
                np.where(steps == 0, far, steps)
            ),
            "one step too many: a node is 0 steps from itself.": given(steps + 1),
            "one step too few: a neighbour is 1 step away.": given((steps - 1).clip(0)),
            "the heads come last; they come first.": want.movedim(0, -1),
            "a longer walk takes the place of a shorter: who was reached stays.": given(
                last
            ),
        }
        yield Case([joined, bonus], want, mistakes)


@exercise("beyond-text.winding", "experiment")
def winding():
    """Ask for the distances of rules that the page does not have."""
    one = "return one number, the distance."
    for seed, turn in enumerate((3, 7, 1, 6, 5)):
        dice = torch.Generator().manual_seed(1000 + seed)
        ids, _ = sample_sequences(300, dice, 0.5, (turn,))
        ids = torch.randperm(20, generator=dice)[ids]  # other letters, another partner
        mistakes = {
            "one less: from the letter that looks; the letter to come is one farther.": (
                turn - 1
            ),
            "twice as far: the partner's partner.": 2 * turn,
        }
        unfit = {"numbers are expected": one, "the shape is": one}
        yield Case([ids], turn, mistakes, instead=unfit)


judge(
    "beyond-text.copies",
    a=None,
    b="no copy is left, but both parts have digits from the same forms.",
    c="each test image has nearly the same image, with its answer, in training.",
    d="the other way: whoever knows a digit finds it again a little turned.",
)
