"""A small GPT that is trained on the reader's device."""

import math

import numpy as np

from lmcourse.ngrams import NgramModel
from lmcourse.views.markup import table
from lmcourse.views.view import View

# Below a bigram model in half a minute, in plain JavaScript on one core of a laptop.
SIZES = {"context": 32, "layers": 2, "heads": 4, "d_model": 32, "d_ff": 128}
STYLE = {"positions": "learned", "norm": "layer", "norm_first": True, "eps": 1e-5}
STYLE |= {"causal": True, "activation": "gelu_new", "output": "tied"}
SETTINGS = {"batch": 4, "steps": 1500, "learning_rate": 0.004, "seed": 1}


def training(text, *, alt, others=None) -> View:
    """Let a reader train a GPT of 30,000 weights on the Sonnets.

    Parameters
    ----------
    text : str
        ``load_corpus("sonnets")``, which the site carries. Its last tenth is kept apart.
    alt : str
        What the view shows, for readers who cannot see it.
    others : dict of str to float, optional
        Further models and their losses on the tenth kept apart, in nats a character.

    Returns
    -------
    View
        Before it runs, a table of what simple models reach.
    """
    alphabet = sorted(set(text))
    ids = np.array([alphabet.index(character) for character in text])
    cut = len(ids) - len(ids) // 10
    one, two = (NgramModel(ids[:cut], n, len(alphabet)).loss(ids[cut:]) for n in (1, 2))
    losses = {"all characters alike": math.log(len(alphabet))}
    losses |= {"how often each occurs": one, "pairs of characters": two, **(others or {})}
    marks = [{"label": name, "loss": round(loss, 4)} for name, loss in losses.items()]
    rows = [[mark["label"], f"{mark['loss']:.2f}"] for mark in marks]
    stored = table(["A model of", "loss, nats a character"], rows)
    data = SETTINGS | {"config": SIZES | STYLE, "marks": marks, "passes": marks[2]["label"]}
    return View("training", data, stored, alt=alt, stores=["sonnets"])
