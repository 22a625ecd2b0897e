"""A poem as a model reads it: each letter coloured by how little it was expected.

The directive ``surprise`` names a poem by its first line. The book's own GPT reads it when
the page is read; the page carries what it expected at each letter.
"""

import json
import math
from html import escape
from pathlib import Path

import torch
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from lmbook.execute.keys import course_modules
from lmcourse.data import corpora_folder, load_poems
from lmcourse.gpt.checkpoints import load_gpt

__all__ = ["expectations", "setup", "surprise_html"]

GUESSES = 4  # shown of each letter
MOST = 10  # bits: no colour is stronger than that of this surprise
START = "\n\n"  # a poem begins


@torch.no_grad()
def expectations(text: str) -> list[tuple[float, list[tuple[str, float]]]]:
    """Return, for each letter, its probability and the likeliest letters in its place.

    The model sees what stands before, as much as it can hold.
    """
    tokenizer, model, _ = load_gpt("sonnets", "cpu")
    ids = tokenizer.encode(START + text)
    found = []
    for place in range(len(START), len(ids)):
        before = torch.tensor([ids[max(0, place - model.config.context) : place]])
        shares = model(before)[0, -1].softmax(-1)  # (vocab_size,)
        top = shares.topk(GUESSES)
        letters = [tokenizer.decode([i]) for i in top.indices.tolist()]
        likeliest = list(zip(letters, top.values.tolist(), strict=True))
        found.append((shares[ids[place]].item(), likeliest))
    return found


def surprise_html(text: str, found: list[tuple[float, list[tuple[str, float]]]]) -> str:
    """Return a poem as coloured letters, with what ``surprise.js`` shows of each."""
    letters = []
    for letter, (share, _) in zip(text, found, strict=True):
        strength = min(-math.log2(max(share, 1e-9)) / MOST, 1)
        shown = "↵" if letter == "\n" else escape(letter)
        letters.append(f'<span style="--s:{strength:.2f}">{shown}</span>')
        if letter == "\n":
            letters.append("<br>")
    data = [
        [round(100 * share, 1), [[guess, round(100 * p, 1)] for guess, p in guesses]]
        for share, guesses in found
    ]
    table = escape(json.dumps([text, data], ensure_ascii=False, separators=(",", ":")))
    return (
        f'<div class="lm-surprise" data-letters="{table}">\n'
        f'<p class="visually-hidden">{escape(text).replace(chr(10), "<br>")}</p>\n'
        f'<p class="lm-verse" aria-hidden="true">{"".join(letters)}</p>\n'
        '<div class="lm-expected"></div></div>\n'
    )


def _made_of() -> list[Path]:
    """Return the files that the colours come from: model, poems, the course's modules."""
    data = corpora_folder()
    files = [data / "checkpoints" / "sonnets.safetensors", data / "dickinson.txt"]
    return files + course_modules()


class Surprise(SphinxDirective):
    """``surprise`` with a poem's first line; what stands in it is the caption."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        for file in _made_of():
            self.env.note_dependency(str(file))
        poems = load_poems()
        poem = poems[poems["first_line"] == self.arguments[0]]
        if len(poem) != 1:
            raise self.error(f"no poem begins with the line {self.arguments[0]!r}")
        text = poem["text"].iloc[0]
        figure = nodes.container(classes=["lm-poem"])
        figure += nodes.raw("", surprise_html(text, expectations(text)), format="html")
        caption = nodes.container(classes=["lm-poem-caption"])
        self.state.nested_parse(self.content, self.content_offset, caption)
        figure += caption
        return [figure]


def _assets(app, pagename, templatename, context, doctree) -> None:
    """Add the script to a page that has such a poem."""
    if doctree is not None and any(map(_is_poem, doctree.findall(nodes.container))):
        app.add_js_file("lib/surprise.js", loading_method="defer")
        app.add_css_file("lib/surprise.css")


def _is_poem(node: nodes.container) -> bool:
    return "lm-poem" in node["classes"]


def setup(app) -> None:
    """Add the directive, its script and its style."""
    app.add_directive("surprise", Surprise)
    app.connect("html-page-context", _assets)
