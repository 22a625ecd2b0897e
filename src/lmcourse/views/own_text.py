"""A text of the reader's, learned by a GPT on their device beside the best n-grams."""

import numpy as np

from lmcourse.ngrams import NgramModel
from lmcourse.tokenization import CharTokenizer
from lmcourse.views.markup import table
from lmcourse.views.training import STYLE
from lmcourse.views.view import View

SMALL = {"context": 32, "layers": 2, "heads": 4, "d_model": 32, "d_ff": 128}
LARGER = {"context": 64, "layers": 2, "heads": 4, "d_model": 64, "d_ff": 256}
SIZES = [
    {"name": "30,000 numbers: about a minute", "config": SMALL | STYLE, "batch": 4}
    | {"steps": 2000, "learning_rate": 0.004},
    {"name": "100,000 numbers: some minutes", "config": LARGER | STYLE, "batch": 8}
    | {"steps": 2500, "learning_rate": 0.004},
]


def own_text(text) -> View:
    """Let a reader's text be learned in the page.

    The reader pastes a text, or chooses a file. A GPT learns it in a worker, and the best
    n-gram model of the same text is its rival. At the end stand the losses of both on what
    neither has learned from, what both write, where each is surprised, and the GPT as a
    file, which `lmcourse.gpt.checkpoints.load_gpt` reads. `lmcourse.own_text.contest` does
    the same in Python.

    Parameters
    ----------
    text : str
        ``load_corpus("sonnets")``, which the site carries: an example that readers may
        take, and what the stored state counts.

    Returns
    -------
    View
        Without scripts, the losses of n-grams of the text by their length, and that of the
        best length on the part of the text that is kept for the test. Its data say between
        which sizes of the GPT the reader can choose (`SIZES`).
    """
    # It brings Accelerate: pages that do not show this view are to do without it.
    from lmcourse.own_text import LONGEST, best_ngrams, parts_of

    tokenizer = CharTokenizer(text)
    parts = parts_of(text)
    training, validation, test = map(tokenizer.encode_array, parts)
    size = tokenizer.vocab_size
    best = best_ngrams(training, validation, size)
    models = (NgramModel(training, order, size) for order in range(1, LONGEST + 1))
    rows = [[f"{model.order}-grams", f"{model.loss(validation):.2f}"] for model in models]
    loss = float(-np.log(best.probabilities(test))[1:].mean())
    paragraph = (
        f"How well does counting predict Shakespeare’s Sonnets? Of all n-grams, "
        f"{best.order}-grams have the lowest loss on {len(parts.validation):,} characters "
        f"that were held out. On {len(parts.test) - 1:,} other held-out characters their "
        f"loss is {loss:.2f} nats a character. On the site you paste a text of your own "
        "here, and a small GPT competes with n-grams in learning it."
    )
    stored = f"<p>{paragraph}</p>\n{table(['Counting', 'loss, nats a character'], rows)}"
    alt = (
        "A box for a text of your own. A small GPT learns it on your device, beside the "
        "best n-gram model of the same text; then their losses, what both write and where "
        "each is surprised are compared."
    )
    data = {"sizes": SIZES, "seed": 1}
    return View("own-text", data, stored, alt=alt, stores=["sonnets"])
