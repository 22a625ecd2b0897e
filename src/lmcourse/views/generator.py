"""A GPT that goes on with a line: what comes next, and which parts of it say so."""

import copy
import html
import math
import re

import torch

from lmcourse.gpt.generation import Cache
from lmcourse.gpt.inside import states
from lmcourse.numbers import percent
from lmcourse.random_order import bits_at
from lmcourse.tokenization import CharTokenizer
from lmcourse.views.markup import table
from lmcourse.views.tokenizer import SIGNS
from lmcourse.views.view import View

SEED = 1
TEMPERATURE = 0.8
BARS = 10  # likeliest next tokens
LENS_CHOICES = 3  # of each layer
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")  # bytes that a page may not hold
LARGEST = 64  # MiB of weights that a page may be asked to load


def generator(
    text, tokenizer, model, *, count=160, store="gpt", temperature=TEMPERATURE, lines=()
) -> View:
    """Show a line and how a GPT goes on with it; the reader can change the line.

    On the site the reader types a line, moves temperature, top-k and top-p, switches heads
    off, and sees the next characters' probabilities, what each head attends to, what each
    layer would predict (the logit lens), and the text that follows. The site carries the
    book's own GPT, and that of ``LMCOURSE_GPT`` if there is one; pass the same: ::

        tokenizer, model, _ = load_gpt()
        views.generator("Shall I compare thee", tokenizer, model)

    What does not run in the page is shown as it is at first, and the view says why.

    Parameters
    ----------
    text : str
        The line to begin with, at most as long as the model's context.
    tokenizer : lmcourse.tokenization.CharTokenizer or lmcourse.gpt.gpt2.WrappedTokenizer
        With pieces of words it does not run in the page.
    model : lmcourse.gpt.model.GPT
        Its weights are rounded to float16, as the site carries them. Larger than `LARGEST`
        it does not run in the page.
    count : int, optional
        How many tokens to write.
    store : {"gpt", "sonnets-gpt"}
        Where the site has the model's weights from: ``load_gpt()`` or
        ``load_gpt("sonnets")``, the book's own whatever ``LMCOURSE_GPT`` says.
    temperature : float, optional
        Above 0; what the reader finds set.
    lines : sequence of str, optional
        To begin with instead, at a click; then layers and heads stand above the text.

    Returns
    -------
    View
        Its alternative text tells the likeliest characters and the text that follows.

    Raises
    ------
    ValueError
        If the text is empty, too long, or has characters that the model does not know; or
        if the temperature is not above 0.
    """
    if not 0 < temperature < math.inf:
        raise ValueError(f"temperature must be above 0, not {temperature}")
    context = model.config.context
    ids = tokenizer.encode(text)
    if not 1 <= len(ids) <= context:
        raise ValueError(f"a text of 1 to {context} tokens, please: these are {len(ids)}")
    model = copy.deepcopy(model).cpu().half().float().eval()
    lens, weights = read_last_token(model, ids)
    written = tokenizer.decode(sample_continuation(model, ids, count, temperature))
    names = _names(tokenizer, model.config.vocab_size)
    bars = _likeliest(lens[-1] / temperature, names, BARS, 1)
    layers = [_likeliest(logits, names, LENS_CHOICES, 0) for logits in lens]
    likeliest = ", ".join(map(" ".join, bars[:3]))
    unit = "character" if isinstance(tokenizer, CharTokenizer) else "piece"
    shown = UNSEEN.sub("\ufffd", written)
    alt = f"After “{text}” the likeliest {unit}s are {likeliest}. It goes on: “{shown}”."
    layers = [[f"layer {i}", *map(" ".join, pairs)] for i, pairs in enumerate(layers)]
    heading = f"The next {unit}, at a temperature of {temperature}:"
    stored = _stored(text, shown, heading, bars, layers)
    if why := why_not_in_page(tokenizer, model):
        why = f"This model does not run in the page: {why}. This was computed before."
        stored = f"<p><small>{html.escape(why)}</small></p>{stored}"
        return View("generator-view", None, stored, alt=alt, plain=f"[{why}] {alt}")
    data = {
        "text": text,
        "written": written,
        "temperature": temperature,
        "room": context,
        "alphabet": tokenizer.alphabet,
        "heads": model.config.heads,
        "store": store,
        "lines": list(lines),
        "seed": SEED,
        "lens": lens.tolist(),
        "weights": weights,
    }
    return View("generator-view", data, stored, alt=alt, stores=[store])


def _stored(text: str, written: str, heading: str, bars: list, layers: list) -> str:
    """Return what stands there without scripts, as HTML.

    Parameters
    ----------
    text : str
        What the model was given.
    written : str
        How the model went on; it stands behind the text, in bold.
    heading : str
        What stands above the bars, in HTML.
    bars : list of (str, str)
        The likeliest next characters and their shares, such as ("e", "21.3 %").
    layers : list of list of str
        A row for each layer: its name, then the likeliest characters with their shares.
    """
    return (
        '<p class="lmg-text" style="white-space: pre-wrap">'
        f"{html.escape(text)}<b>{html.escape(written)}</b></p>\n"
        f'<p>{heading}</p><div class="lmg-bars">{table([], bars)}</div>\n'
        "<p>If the model ended after a layer:</p>"
        f'<div class="lmg-lens">{table([], layers)}</div>'
    )


def why_not_in_page(tokenizer, model) -> str:
    """Say why a model does not run in the page, such as "it has …"; "" if it does.

    It does not if its weights have more than 64 MiB in float16 (`LARGEST`), if its tokens
    are not characters, if it looks n-grams up, or if its architecture isn't GPT-2's (other
    positions than GPT-2's are known to the page).

    ``tokenizer``, ``model`` : of a GPT of the course or a GPT-2. ``model.config`` says the
    architecture.
    """
    mib = 2 * model.parameters_count / 2**20  # in float16
    why = []
    if mib > LARGEST:
        why.append(f"its weights are {mib:,.0f} MiB to load")
    if not isinstance(tokenizer, CharTokenizer):
        why.append(f"it reads {tokenizer.vocab_size:,} pieces of words, not characters")
    if model.config.ngrams:
        why.append("it looks n-grams up in tables")
    for name, value in model.config.unlike_gpt2().items():
        if name not in ("positions", "ngrams"):
            why.append(f"it has {name} = {value}")
    return " and ".join(why)


def _names(tokenizer, vocab_size: int) -> list[str]:
    """Return how each token of a vocabulary is shown, spaces and line breaks made visible.

    They become "·" and "⏎"; characters that a page may not hold become U+FFFD.

    ``tokenizer`` : with ``decode``, from a list of ids to a text; ``vocab_size`` : int, how
    many tokens there are. Returns a list of str, by id.
    """
    tokens = (UNSEEN.sub("\ufffd", tokenizer.decode([i])) for i in range(vocab_size))
    return [
        "".join(SIGNS.get(character, character) for character in token) for token in tokens
    ]


@torch.no_grad()
def read_last_token(model, ids: list[int]) -> tuple[torch.Tensor, list]:
    """Return what a model computes at the last token of a text.

    Parameters
    ----------
    model : GPT
    ids : list of int
        The text's tokens.

    Returns
    -------
    lens : Tensor of shape (layers, vocab_size)
        The logits if the model ended after each layer.
    weights : list of list of float
        The attention weights on each token, a list for each head, layer by layer.
    """
    text = torch.tensor([ids])
    last_states = states(model, text)[1:, 0, -1]  # (layers, d_model)
    lens = (model.norm(last_states) @ model.output_matrix.T).double().round(decimals=4)
    weights = torch.cat([layer[0, :, -1] for layer in model.attentions(text)])
    return lens, [[round(weight, 3) for weight in head] for head in weights.tolist()]


@torch.no_grad()
def sample_continuation(model, ids: list[int], count: int, temperature: float) -> list[int]:
    """Return the tokens that the page writes.

    Each is drawn from all tokens, by a random number from 0 to 1 that depends on `SEED` and
    on how many were written before. When the context is full, the model goes on from its
    last half.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    ids : list of int
        The tokens that it goes on from.
    count : int
        How many tokens to write.
    temperature : float
        Above 0: what logits are divided by.

    Returns
    -------
    list of int
        The tokens written. The random numbers are those that the page's script draws, the
        same at every call.
    """
    context = model.config.context
    window = list(ids)
    written = []
    cache = Cache(model)
    for place in range(count):
        number = bits_at(SEED, place) / 2**32  # from 0 to 1
        if len(window) > context:
            window = window[-(context // 2) :]
            cache = Cache(model)
        logits = model(torch.tensor([window]), cache)[0, -1]
        probs = (logits.double() / temperature).softmax(-1)
        token = (probs.cumsum(0) <= number).sum().clamp(max=len(probs) - 1).item()
        written.append(token)
        window.append(token)
    return written


def _likeliest(logits, names, count: int, digits: int) -> list[tuple[str, str]]:
    """Return the likeliest characters and their shares, as `generator-view.js` does.

    Parameters
    ----------
    logits : Tensor of shape (vocab_size,)
    names : list of str
        What each token is called (`_names`).
    count : int
        How many to return.
    digits : int
        Decimals of a share.

    Returns
    -------
    list of (str, str)
        The likeliest first, such as ("e", "21.3 %").
    """
    shares, ids = logits.softmax(-1).sort(descending=True, stable=True)
    likeliest = zip(ids[:count].tolist(), shares.tolist(), strict=False)
    return [(names[i], percent(share, digits)) for i, share in likeliest]
