"""A small GPT that is trained on the reader's device."""

import math
from itertools import islice

import numpy as np

from lmcourse.live import SETTINGS, SIZES
from lmcourse.ngrams import NgramModel
from lmcourse.tokenization import CharTokenizer
from lmcourse.views.markup import table
from lmcourse.views.view import View

STYLE = {
    "positions": "learned",
    "norm": "layer",
    "norm_first": True,
    "eps": 1e-5,
    "causal": True,
    "activation": "gelu_new",
    "output": "tied",
}
LONGEST = 7  # characters of an n-gram: longer ones bring nothing more


def training(text, *, alt, others=None, run=()) -> View:
    """Let a reader train a GPT of 30,000 weights on the Sonnets.

    Parameters
    ----------
    text : str
        ``load_corpus("sonnets")``, which the site carries. Its last tenth is kept apart.
    alt : str
        What the view shows, for readers who cannot see it.
    others : dict of str to float, optional
        Further models and their losses on the tenth kept apart, in nats a character.
    run : sequence of dict, optional
        A training to show before there is another, of each of its moments: ``step``;
        ``loss`` in nats a character; ``sample``, what it wrote. The table has every fifth.

    Returns
    -------
    View
        Without scripts, tables of the losses of simple models (blind guessing, single
        characters, n-grams) and of that training. Its data say, too, how the GPT is made
        and trained (`lmcourse.live`), and ``passes``, the model that it should overtake.
    """
    # It brings Accelerate: pages that do not show this view are to do without it.
    from lmcourse.gpt.training import split

    tokenizer = CharTokenizer(text)
    ids = np.array(tokenizer.encode(text))
    learned, apart = split(ids)
    lengths = range(1, min(LONGEST, len(ids)) + 1)
    models = [NgramModel(learned, length, tokenizer.vocab_size) for length in lengths]
    by_length = [model.loss(apart) for model in models]
    losses = {
        "blind guessing": math.log(tokenizer.vocab_size),
        "single characters": by_length[0],
        "2-grams": by_length[1],
        "best n-grams": min(by_length),
        **(others or {}),
    }
    marks = [{"label": name, "loss": round(loss, 4)} for name, loss in losses.items()]
    rows = [[mark["label"], f"{mark['loss']:.2f}"] for mark in marks]
    stored = table(["A model of", "loss, nats a character"], rows)
    if run:
        moments = (
            [f"{moment['step']:,}", f"{moment['loss']:.2f}", moment["sample"].strip()]
            for moment in run
        )
        stored += table(["After steps", "loss", "it writes"], islice(moments, 0, None, 5))
    data = SETTINGS | {
        "config": SIZES | STYLE,
        "marks": marks,
        "passes": marks[2]["label"],
        "run": [*run],
    }
    return View("training", data, stored, alt=alt, stores=["sonnets"])
