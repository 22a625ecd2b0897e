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
    """Check a reader's function that cuts images into square patches.

    The answer is a function of images (count, rows, columns) and the side of a patch, an
    int, which returns (count, patches, side * side). Patches follow one another row by row,
    and so do the numbers in each. Oracle: PyTorch's `unfold`.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    for rows, columns, size in ((4, 6, 2), (4, 4, 2), (6, 9, 3)):
        images = normal(2, rows, columns)
        want = F.unfold(images[:, None], size, stride=size).mT
        down, across = rows // size, columns // size
        blocks = want.unflatten(1, (down, across)).unflatten(-1, (size, size))
        mistakes = {
            "these are strips, not squares: the numbers of a patch follow one "
            "another in the rows of the image.": (images.reshape(want.shape)),
            "the patches are right, but they go down the columns first; they should "
            "go row by row.": (blocks.transpose(1, 2).reshape(want.shape)),
            "each patch is mirrored at its diagonal: inside a patch the numbers go "
            "row by row, too.": (blocks.transpose(-1, -2).reshape(want.shape)),
            "the pixels of a patch lie far apart in the image: split an axis into "
            "(count, size), not into (size, count).": images.unflatten(-1, (size, across))
            .unflatten(1, (size, down))
            .permute(0, 2, 4, 1, 3)
            .reshape(want.shape),
            "the last two axes are swapped: each row should be a patch.": want.mT,
        }
        yield Case([images, size], want, mistakes)


predict(
    "beyond-text.dealt",
    a="its positions are learned: a patch that moves gets another position vector, "
    "and that is all.",
    b=None,
    c="the distance of two images is a sum over pixels, and a sum has no order.",
    d="two of the three were never told which patches are neighbours.",
)
predict(
    "beyond-text.no_edges",
    a="it has learned what graphs look like, but what tells it which graph this is?",
    b="nothing in the model is random. By what could it tell two of the other nodes apart?",
    c=None,
)


@exercise("beyond-text.late", "spot the bug")
def late():
    """Check a reader's attention with a bias, which must be added before the softmax.

    The answer is a function of scores and bias, both (..., queries, keys), and values (...,
    keys, d_value). It returns the output (..., queries, d_value). Oracle: PyTorch's
    attention, which adds a float mask to the scores.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    query, key, value = normal(3, 2, 5, 4).double()
    bias = 2 * normal(2, 5, 5, seed=1).double()
    scores = query @ key.mT / 2
    attention = F.scaled_dot_product_attention
    plain = scores.softmax(-1)
    added = plain + bias
    mistakes = {
        "the bias comes after the softmax: the weights are no longer shares.": (
            added @ value
        ),
        "divided by their sum, the weights sum to 1, but they may be negative: add "
        "the bias before the softmax.": added / added.sum(-1, keepdim=True) @ value,
        "a softmax of a softmax gives nearly equal weights: one is enough.": added.softmax(
            -1
        )
        @ value,
        "negative weights are cut off, but the rows still do not sum to 1: add the "
        "bias before the softmax.": added.clamp(min=0) @ value,
        "the bias is not used.": plain @ value,
        "the bias is subtracted; add it.": (scores - bias).softmax(-1) @ value,
        "the bias multiplies the scores; add it.": (scores * bias).softmax(-1) @ value,
        "the softmax runs down the columns; each row should sum to 1.": (
            (scores + bias).softmax(-2) @ value
        ),
        "these are the weights; return the values mixed by them.": (scores + bias).softmax(
            -1
        ),
    }
    yield Case([scores, bias, value], attention(query, key, value, bias), mistakes)


@exercise("beyond-text.by_distance", "build")
def by_distance():
    """Check a reader's bias of attention by the distance of two nodes of a graph.

    The answer is a function of the edges, bool (nodes, nodes), and the bonus of each head
    for each distance, (heads, far + 1): from ``far`` edges on, and where there is no path,
    all nodes have the last one. It returns (heads, nodes, nodes). Oracle: SciPy's shortest
    paths.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    joined = torch.zeros(7, 7, dtype=torch.bool)
    for a, b in ((0, 3), (3, 1), (1, 6), (6, 4), (3, 6), (2, 5)):  # in two pieces
        joined[a, b] = joined[b, a] = True
    steps = shortest_path(joined.numpy(), unweighted=True)
    walks = [np.linalg.matrix_power(joined.numpy().astype(int), n) > 0 for n in range(3)]
    last = np.select(walks[::-1], [2, 1, 0], 3)  # the longest walk in place of the shortest
    for far in (2, 3):
        bonus = normal(3, far + 1, seed=far).double()

        def given(steps, far=far, bonus=bonus):
            """Return the bias of each head for distances: a Tensor (heads, nodes, nodes).

            ``steps`` : array (nodes, nodes), how many edges two nodes are apart, infinite
            without a path; ``far`` : the distance from which on all have one bonus;
            ``bonus`` : Tensor (heads, far + 1), each head's for the distances 0 to ``far``.
            """
            return bonus[:, torch.tensor(np.minimum(steps, far)).long()]

        want = given(steps)
        mistakes = {
            "you only tell neighbours from all others: how many edges away are the "
            "others?": given(np.where(steps == 1, 1, np.where(steps == 0, 0, far))),
            "a node that cannot be reached counts as farthest away: it gets the last "
            "number.": (given(np.where(np.isinf(steps), 0, steps))),
            "where there is no path, the bias is the last number, not zero.": torch.where(
                torch.tensor(np.isinf(steps)), torch.zeros(()).double(), want
            ),
            "each round overwrites the one before: a node that was reached keeps its "
            "number.": given(np.where(steps < far, far - 1, far)),
            "a node is 0 edges away from itself: it gets the first number.": given(
                np.where(steps == 0, far, steps)
            ),
            "each distance is one too large: a node is 0 edges away from itself.": given(
                steps + 1
            ),
            "each distance is one too small: a neighbour is 1 edge away.": given(
                (steps - 1).clip(0)
            ),
            "the heads are the last axis; they should be the first.": want.movedim(0, -1),
            "a longer walk replaces a shorter one: a node that was reached keeps its "
            "distance.": given(last),
        }
        yield Case([joined, bonus], want, mistakes)


@exercise("beyond-text.winding", "experiment")
def winding():
    """Check a reader's function that finds how far back a letter's partner is.

    The answer is a function of ids (sequences, tokens), letters from 0 to 19. Half of the
    letters follow a rule: each is the partner of the letter that stands a certain distance
    before it. The answer returns this distance, one whole number. Oracle: the distances
    that the sequences are drawn with here, none of which is on the page.

    Yields
    ------
    Case
        One for each of five distances: what the answer is called with, the right distance,
        and known mistakes: what the reader is told → the distance that the mistake gives.
        ``instead``: the beginning of a message about a result that is not one number → what
        the reader is told in its place.
    """
    request = "return one number, the distance."
    for seed, distance in enumerate((3, 7, 1, 6, 5)):
        generator = torch.Generator().manual_seed(1000 + seed)
        ids, _ = sample_sequences(300, generator, 0.5, (distance,))
        ids = torch.randperm(20, generator=generator)[ids]  # other letters, another partner
        mistakes = {
            "one too small: count from the letter that is predicted, not from the "
            "one before it.": (distance - 1),
            "twice as far: this is the partner of the partner.": 2 * distance,
        }
        replies = {"numbers are expected": request, "the shape is": request}
        yield Case([ids], distance, mistakes, instead=replies)


judge(
    "beyond-text.copies",
    a=None,
    b="no copies are left, but both parts have digits from the same forms.",
    c="for nearly every test image, almost the same image is in the training set, "
    "with its answer.",
    d="it is the other way round: a digit that is known is easily recognised when it "
    "is turned a little.",
)
