"""A GPT that goes on with a line: what comes next, and which parts of it say so."""

import copy
import html
from collections.abc import Iterator
from itertools import islice

import pandas as pd
import torch

from lmcourse.views.play import play
from lmcourse.views.tokenizer import SIGNS
from lmcourse.views.view import View

__all__ = ["generator"]

SEED, BARS, FIRST = 1, 10, 3  # FIRST: choices of the lens


def generator(text, tokenizer, model, *, temperature=0.8, count=160, caption="") -> View:
    """A line and how a GPT goes on, for the reader to change.

    On the site the reader types a line, moves temperature, top-k and top-p, switches heads
    off, and sees the next characters' chances, what each head looks at, what each layer
    would say (the logit lens), and the text that follows. The site carries one GPT, the
    book's or that of ``LMCOURSE_GPT``; pass the same, as a page does with ::

        tokenizer, model, _ = load_gpt(os.environ.get("LMCOURSE_GPT") or "sonnets")
        views.generator("Shall I compare thee", tokenizer, model)

    Parameters
    ----------
    text : str
        The line to begin with, at most as long as the model's context.
    tokenizer : lmcourse.tokenization.CharTokenizer
    model : lmcourse.gpt.model.GPT
        Its weights are rounded to float16, as the site carries them.
    temperature : float, optional
        To begin with; greater than 0.
    count : int, optional
        How many characters to write.
    caption : str, optional

    Returns
    -------
    View
        Its alternative text tells the likeliest characters and the text that follows.

    Raises
    ------
    ValueError
        If the text is empty, too long, or has characters that the model does not know, or
        the temperature is not greater than 0.
    """
    room = model.config.context
    if not 1 <= len(text) <= room or not temperature > 0:
        raise ValueError(
            f"a text of 1 to {room} characters and a temperature greater than 0, please: "
            f"these are {len(text)} and {temperature}"
        )
    ids = tokenizer.encode(text)
    model = copy.deepcopy(model).cpu().half().float().eval()
    lens, weights = _look(model, ids)
    written = tokenizer.decode(_write(model, ids, count, temperature))
    names = [SIGNS.get(character, character) for character in tokenizer.alphabet]
    bars = _likeliest(lens[-1] / temperature, names, BARS, 1)
    layers = [_likeliest(x, names, FIRST, 0) for x in lens]
    data = {"text": text, "written": written, "alphabet": tokenizer.alphabet}
    data |= {"room": room, "heads": model.config.heads, "seed": SEED}
    data |= {"temperature": temperature, "lens": lens.tolist(), "weights": weights}
    told = ", ".join(map(" ".join, bars[:3]))
    alt = f"After “{text}” the likeliest characters are {told}. It goes on: “{written}”."
    stored = _stored(data, bars, layers)
    return play("generator-view", data, stored, alt=alt, caption=caption, stores=["gpt"])


@torch.no_grad()
def _look(model, ids: list[int]) -> tuple[torch.Tensor, list]:
    """Return, at the last token, the lens (layers, vocab_size) and all heads' weights."""
    lens, weights = [], []
    x = model.embed(torch.tensor([ids]))  # (1, tokens, d_model)
    for block in model.blocks:
        weights += block.attention.weights(block.norm_1(x))[0, :, -1].tolist()
        x, _ = block(x)
        lens.append(model.norm(x[0, -1]) @ model.tokens.weight.T)
    weights = [[round(x, 3) for x in head] for head in weights]
    return torch.stack(lens).double().round(decimals=4), weights


def _uniform(seed: int) -> Iterator[float]:
    """Yield the numbers from 0 to 1 that `writing.js` draws with (mulberry32)."""
    state, whole = seed, 2**32
    while True:
        state = (state + 0x6D2B79F5) % whole
        mixed = (state ^ state >> 15) * (state | 1) % whole
        mixed ^= (mixed + (mixed ^ mixed >> 7) * (mixed | 61)) % whole
        yield (mixed ^ mixed >> 14) / whole


@torch.no_grad()
def _write(model, ids: list[int], count: int, temperature: float) -> list[int]:
    """Return the tokens that the page writes: when the context is full, the model goes on
    from its last half."""
    room, seen, written = model.config.context, list(ids), []
    for number in islice(_uniform(SEED), count):
        seen = seen if len(seen) <= room else seen[-(room // 2) :]
        chances = (model(torch.tensor([seen]))[0, -1].double() / temperature).softmax(-1)
        written.append(int((chances.cumsum(0) <= number).sum().clamp(max=len(chances) - 1)))
        seen.append(written[-1])
    return written


def _likeliest(logits, names, count: int, digits: int) -> list[tuple[str, str]]:
    """Return the likeliest characters and their shares, as `generator-view.js` does."""
    shares, ids = logits.softmax(-1).sort(descending=True, stable=True)
    found = zip(ids[:count].tolist(), shares.tolist(), strict=False)
    return [(names[i], f"{100 * share:.{digits}f} %") for i, share in found]


def _stored(data: dict, bars: list, layers: list) -> str:
    bars = pd.DataFrame(dict(bars), ["share"]).T
    layers = pd.DataFrame([map(" ".join, row) for row in layers]).rename("layer {}".format)
    tables = {"bars": bars, "lens": layers}
    bars, lens = (
        table.to_html(header=False, classes=f"lmg-{name}", border=0)
        for name, table in tables.items()
    )
    return (
        '<p class="lmg-text" style="white-space: pre-wrap">'
        f"{html.escape(data['text'])}<b>{html.escape(data['written'])}</b></p>\n"
        f"<p>The next character, at a temperature of {data['temperature']}:</p>{bars}\n"
        f"<p>If the model ended after a layer:</p>{lens}"
    )
