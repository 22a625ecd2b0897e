"""A GPT that goes on with a line: what comes next, and which parts of it say so."""

import copy
import html
from collections.abc import Iterator
from itertools import islice

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
    data = {
        "text": text,
        "written": written,
        "alphabet": tokenizer.alphabet,
        "room": room,
        "heads": model.config.heads,
        "seed": SEED,
        "temperature": temperature,
        "lens": lens.tolist(),
        "weights": [[round(x, 3) for x in head] for layer in weights for head in layer],
    }
    rows = _bars(lens[-1], temperature, tokenizer.alphabet)
    told = ", ".join(f"{character} {share}" for character, share in rows[:3])
    alt = f"After “{text}” the likeliest characters are {told}. It goes on: “{written}”."
    stored = _stored(data, rows, lens, tokenizer.alphabet)
    return play("generator-view", data, stored, alt=alt, caption=caption, stores=["gpt"])


@torch.no_grad()
def _look(model, ids: list[int]) -> tuple[torch.Tensor, list]:
    """Return, at the last token, the lens (layers, vocab_size) and each head's weights."""
    lens, weights = [], []
    x = model.embed(torch.tensor([ids]))  # (1, tokens, d_model)
    for block in model.blocks:
        weights.append(block.attention.weights(block.norm_1(x))[0, :, -1].tolist())
        x, _ = block(x)
        lens.append(model.norm(x[0, -1]) @ model.tokens.weight.T)
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
        drawn = int((chances.cumsum(0) <= number).sum().clamp(max=len(chances) - 1))
        seen.append(drawn)
        written.append(drawn)
    return written


# --- the stored state: `generator-view.js` makes the same ------------------------------


def _top(logits, temperature: float, alphabet: str, count: int) -> list[tuple[str, float]]:
    shares = (logits / temperature).softmax(-1)
    order = torch.argsort(shares, descending=True, stable=True)[:count]
    return [(SIGNS.get(alphabet[i], alphabet[i]), float(shares[i])) for i in order]


def _bars(logits, temperature: float, alphabet: str) -> list[tuple[str, str]]:
    found = _top(logits, temperature, alphabet, BARS)
    return [(character, f"{100 * share:.1f} %") for character, share in found]


def _row(name: str, *cells: str) -> str:
    cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
    return f"<tr><th>{html.escape(name)}</th>{cells}</tr>"


def _stored(data: dict, rows: list, lens, alphabet: str) -> str:
    layers = [
        (f"layer {i}", [f"{c} {100 * s:.0f} %" for c, s in _top(x, 1, alphabet, FIRST)])
        for i, x in enumerate(lens)
    ]
    bars = "".join(_row(*row) for row in rows)
    layers = "".join(_row(name, *cells) for name, cells in layers)
    return (
        f'<p class="lmg-text" style="white-space: pre-wrap"><span>'
        f"{html.escape(data['text'])}</span><b>{html.escape(data['written'])}</b></p>\n"
        f"<p>The next character, at a temperature of {data['temperature']}:</p>\n"
        f'<table class="lmg-bars">{bars}</table>\n'
        f"<p>If the model ended after a layer:</p>\n"
        f'<table class="lmg-lens">{layers}</table>'
    )
