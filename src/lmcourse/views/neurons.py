"""A neuron's strongest contexts beside those of its shuffled copy: which is which?"""

from collections import Counter
from html import escape

import numpy as np

from lmcourse.views.markup import table
from lmcourse.views.view import View


def neurons(examples, seed: int = 0) -> View:
    """Let a reader guess which of two lists is a neuron's.

    Parameters
    ----------
    examples : dict of str to (list, list)
        A neuron's name → the texts (str) at whose last characters it is most active, and as
        many of its copy, a neuron with the same weights in another order.
    seed : int
        Of the draw which of the two stands left.

    Returns
    -------
    View
        Stored are both lists of the first neuron, A and B, and the answer, folded. Its data
        have ``pairs``, a dict for each neuron: ``name``; ``lists``, the two as they stand;
        ``neuron``, 0 if the first of them is the neuron's own, else 1.

    Raises
    ------
    ValueError
        If there is no neuron.
    """
    if not examples:
        raise ValueError("one neuron or more, please")
    sides = np.random.default_rng(seed).integers(2, size=len(examples)).tolist()
    pairs = []
    for side, (name, (own, other)) in zip(sides, examples.items(), strict=True):
        lists = [other, own] if side else [own, other]
        pairs.append({"name": name, "lists": lists, "neuron": side})
    name, lists = next(iter(examples.items()))
    counts = [Counter(text[-1] for text in texts).most_common(1)[0][1] for texts in lists]
    alt = (
        f"{len(examples)} neurons, each with two lists of texts: its own and its shuffled "
        f"copy's. Of {name}'s own {len(lists[0])} texts {counts[0]} end in one letter, of "
        f"the copy's {counts[1]}."
    )
    rows = [(i, *texts) for i, texts in enumerate(zip(*pairs[0]["lists"], strict=True), 1)]
    stored = (
        f"{table(['', 'A', 'B'], rows)}<details><summary>Which list is the neuron’s?"
        f"</summary><p>{'AB'[sides[0]]} is {escape(name)}’s: {counts[0]} of its "
        f"{len(lists[0])} texts end in the same letter. In the other list it is "
        f"{counts[1]}.</p></details>"
    )
    return View("neurons-view", {"pairs": pairs}, stored, alt=alt)
