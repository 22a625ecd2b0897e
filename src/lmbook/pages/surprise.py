"""A poem as a model reads it: each letter coloured by how little it was expected.

The directive ``surprise`` names a poem by its first line. The book's own GPT reads it when
the page is read; the page carries what it expected at each letter.
"""

import math
from html import escape

import torch
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from lmbook.pages.renderer import view_node
from lmcourse.data import load_poems
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.views import View

LIKELIEST = 4  # shown of each letter
STRONGEST = 10  # bits: no colour is stronger than that of this surprise
START = "\n\n"  # a poem begins


@torch.no_grad()
def expectations(text: str) -> list[tuple[float, list[tuple[str, float]]]]:
    """Return, for each letter of a poem, its probability by the book's own GPT.

    The model, trained on Shakespeare's sonnets, sees what stands before the letter, as much
    as it can hold.

    Parameters
    ----------
    text : str
        A poem.

    Returns
    -------
    list of (float, list of (str, float))
        For each letter of the poem (each character, new lines too) its probability, from 0
        to 1, and the `LIKELIEST` likeliest letters in its place, each with its own.
    """
    tokenizer, model, _ = load_gpt("sonnets", "cpu")
    ids = tokenizer.encode(START + text)
    expected = []
    for position in range(len(START), len(ids)):
        before = torch.tensor([ids[max(0, position - model.config.context) : position]])
        probabilities = model(before)[0, -1].softmax(-1)  # (vocab_size,)
        top = probabilities.topk(LIKELIEST)
        letters = [tokenizer.decode([i]) for i in top.indices.tolist()]
        likeliest = list(zip(letters, top.values.tolist(), strict=True))
        expected.append((probabilities[ids[position]].item(), likeliest))
    return expected


def surprise_view(text: str, expected: list[tuple[float, list[tuple[str, float]]]]) -> View:
    """Return a poem as a view: its letters coloured, and what was expected at each.

    Parameters
    ----------
    text : str
        The poem.
    expected : list of (float, list of (str, float))
        For each letter of the poem its probability, from 0 to 1, and the likeliest letters
        in its place, each with its own: what `expectations` returns.

    Returns
    -------
    View
        Of the kind "surprise". Its data are ``text`` and ``letters``: of each its
        probability in per cent; its colour's strength, which is its surprise in bits
        divided by `STRONGEST`, at most 1; and the likeliest letters with theirs in per
        cent.
    """
    letters, spans = [], []
    for letter, (probability, guesses) in zip(text, expected, strict=True):
        strength = round(min(-math.log2(max(probability, 1e-9)) / STRONGEST, 1), 2)
        per_cent = [[guess, round(100 * p, 1)] for guess, p in guesses]
        letters.append([round(100 * probability, 1), strength, per_cent])
        inside = "↵</span><br>" if letter == "\n" else f"{escape(letter)}</span>"
        spans.append(f'<span style="--s: {strength}">{inside}')
    stored = (
        f'<p class="visually-hidden">{escape(text)}</p>'
        f'<p class="lm-verse" aria-hidden="true">{"".join(spans)}</p>'
    )
    alt = "A poem, each letter the stronger coloured the less it was expected."
    return View("surprise", {"text": text, "letters": letters}, stored, alt=alt)


class Surprise(SphinxDirective):
    """``surprise`` with a poem's first line; what stands in it is the caption."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return a figure with the view of the poem whose first line is the argument.

        What stands in the directive is its caption. It is an error if no poem, or more than
        one, begins with that line.
        """
        self.env.note_reread()  # model, poems or code may be others
        poems = load_poems()
        poem = poems[poems["first_line"] == self.arguments[0]]
        if len(poem) != 1:
            raise self.error(f"no poem begins with the line {self.arguments[0]!r}")
        text = poem["text"].iloc[0]
        figure = nodes.container(classes=["lm-poem"])
        figure += view_node(surprise_view(text, expectations(text)).description())
        caption = self.parse_content_to_nodes()
        figure += nodes.container("", *caption, classes=["lm-poem-caption"])
        return [figure]


def setup(app: Sphinx) -> None:
    """Add the directive ``surprise`` to Sphinx."""
    app.add_directive("surprise", Surprise)
