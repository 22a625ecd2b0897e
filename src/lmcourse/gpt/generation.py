"""Writing with a GPT: from logits to probabilities, from these to a token, and again.

The order of the steps is that of ``transformers``: a penalty on what stands there already,
temperature, the ``top_k`` likeliest, of these the likeliest that hold ``top_p``.
"""

import math

import torch

from lmcourse.gpt.model import evaluating
from lmcourse.ids import check_ids
from lmcourse.settings import whole_number

# --- distributions --------------------------------------------------------------------


def penalize(logits, ids, penalty):
    """Make tokens that stand in the text less likely (Keskar et al. 2019, section 4.1).

    Parameters
    ----------
    logits : Tensor of shape (batch, vocab_size)
    ids : int64 Tensor of shape (batch, tokens)
        The text so far.
    penalty : float
        Divides a logit above 0 and multiplies one below; 1 changes nothing, less than 1
        makes such tokens likelier. How often a token stands there does not matter.

    Returns
    -------
    Tensor of shape (batch, vocab_size)

    Raises
    ------
    ValueError
        If the penalty is not above 0.
    """
    if not 0 < penalty < math.inf:
        raise ValueError(f"repetition_penalty {penalty} is not above 0")
    in_text = torch.zeros_like(logits, dtype=torch.bool).scatter(1, ids, True)
    lowered = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(in_text, lowered, logits)


def apply_temperature(logits, temperature):
    """Turn logits into probabilities: the lower the temperature, the more peaked.

    Parameters
    ----------
    logits : Tensor of shape (..., vocab_size)
    temperature : float
        Divides the logits; with 0 the likeliest token has all (of equals, the first).

    Returns
    -------
    Tensor of shape (..., vocab_size)
        Each row sums to 1.

    Raises
    ------
    ValueError
        If the temperature is negative or not finite.
    """
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature {temperature} is no finite number from 0")
    best = logits.argmax(-1, keepdim=True)  # (..., 1)
    if temperature == 0:
        return torch.zeros_like(logits).scatter(-1, best, 1.0)
    below = logits - logits.gather(-1, best)  # so that no quotient is too large
    # A lower temperature would be rounded to 0, and 0 / 0 is no number.
    lowest = torch.finfo(logits.dtype).tiny
    return (below / max(temperature, lowest)).softmax(-1)


def keep_top_k(probs, k):
    """Keep the k likeliest tokens and share all among them (Fan et al. 2018, section 5.1).

    Parameters
    ----------
    probs : Tensor of shape (..., vocab_size)
    k : int
        At least 1; more than there are tokens keeps all.

    Returns
    -------
    Tensor of shape (..., vocab_size)
        Each row sums to 1. Tokens as likely as the last one kept are kept, too.

    Raises
    ------
    ValueError
        If k is no whole number from 1.
    """
    k = whole_number(k, "top_k")
    last = probs.topk(min(k, probs.shape[-1])).values[..., -1:]  # (..., 1)
    remaining = probs.where(probs >= last, 0)
    return remaining / remaining.sum(-1, keepdim=True)


def keep_top_p(probs, p):
    """Keep the fewest tokens that hold a share p (Holtzman et al. 2020, section 3.1).

    Parameters
    ----------
    probs : Tensor of shape (..., vocab_size)
    p : float
        Above 0; 1 keeps all.

    Returns
    -------
    Tensor of shape (..., vocab_size)
        Each row sums to 1; of the tokens kept, the least likely is needed to hold p.

    Raises
    ------
    ValueError
        If p is not above 0 and at most 1.
    """
    if not 0 < p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, not {p}")
    ordered, ids = probs.sort(dim=-1)  # the likeliest last
    dropped = ordered.cumsum(-1) <= 1 - p  # without these, the rest still holds p
    dropped[..., -1] = False
    remaining = probs.masked_fill(dropped.scatter(-1, ids, dropped), 0)
    return remaining / remaining.sum(-1, keepdim=True)


def next_probs(
    logits, ids, *, temperature=1.0, top_k=None, top_p=None, repetition_penalty=1.0
):
    """Return the probabilities from which the next token is drawn.

    Parameters
    ----------
    logits : Tensor of shape (batch, vocab_size)
    ids : int64 Tensor of shape (batch, tokens)
        The text so far, whose tokens ``repetition_penalty`` makes less likely.
    temperature : float
        Divides the logits; 0 always takes the likeliest token.
    top_k : int, optional
        Keep so many of the likeliest tokens only.
    top_p : float, optional
        Keep the likeliest tokens only that together have at least this probability, at
        the temperature given.
    repetition_penalty : float
        Above 1, it makes tokens that stand in the text less likely.

    Returns
    -------
    Tensor of shape (batch, vocab_size)
        Each row sums to 1.

    Raises
    ------
    ValueError
        If a setting is out of its range.
    """
    probs = apply_temperature(penalize(logits, ids, repetition_penalty), temperature)
    if top_k is not None:
        probs = keep_top_k(probs, top_k)
    if top_p is not None:
        probs = keep_top_p(probs, top_p)
    return probs


# --- the cache ------------------------------------------------------------------------


class LayerCache:
    """The keys and values of one layer, for the tokens read so far.

    Attributes
    ----------
    both : Tensor of shape (2, batch, heads, tokens, d_head), or None
        The keys, then the values; None before the first token.
    """

    def __init__(self):
        self.both = None  # (2, batch, heads, tokens, d_head)

    @property
    def tokens(self):
        """How many tokens were read."""
        return 0 if self.both is None else self.both.shape[3]

    def append(self, key, value):
        """Add keys and values of new tokens; return those of all.

        Parameters
        ----------
        key, value : Tensor of shape (batch, heads, new, d_head)

        Returns
        -------
        Tensor of shape (2, batch, heads, tokens, d_head)
            The keys, then the values.
        """
        new = torch.stack([key, value])
        self.both = new if self.both is None else torch.cat([self.both, new], dim=3)
        return self.both


class Cache:
    """The keys and values of every layer of a GPT.

    What a token's keys and values are depends on the tokens before it, and not on those
    after. So they stay right while a text grows at its end, and ``model(ids, cache)`` asks
    for those of the new tokens alone. If anything else changes, the first token cut off for
    example, so that all others move a place, begin with an empty one.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    """

    def __init__(self, model):
        self.layers = [LayerCache() for _ in model.blocks]

    @property
    def tokens(self):
        """How many tokens were read; the next one's position."""
        return self.layers[0].tokens

    @property
    def nbytes(self):
        """How much memory its keys and values take, in bytes."""
        return sum(layer.both.nbytes for layer in self.layers if layer.tokens)

    def reorder(self, rows):
        """Keep some texts of the batch, in a new order; a text may be kept twice.

        Parameters
        ----------
        rows : int64 Tensor of shape (texts,)
            The row in the batch of each text that is kept.
        """
        for layer in self.layers:
            if layer.tokens:
                layer.both = layer.both[:, rows]


def cache_bytes(config, tokens, batch=1, bytes_each=4):
    """Return how many bytes a `Cache` takes: a key and a value for each token and layer.

    Parameters
    ----------
    config : lmcourse.gpt.model.GPTConfig
    tokens, batch : int
        Tokens of a text, and texts.
    bytes_each : int
        Of a number: 4 in float32.
    """
    return 2 * config.layers * batch * tokens * config.d_model * bytes_each


# --- texts ----------------------------------------------------------------------------


def next_logits(model, ids, cache=None):
    """Return the logits (batch, vocab_size) of the next token, on the CPU.

    They are float32 at least, whatever the model computes in.

    The model sees the last ``context`` tokens. Once the text is longer, each new token
    moves all of them one position, and no key or value that was kept is right any more:
    then all are computed anew, with or without a cache.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    ids : int64 Tensor of shape (batch, tokens)
    cache : Cache, optional
        Of the first of these tokens; it grows by the others.
    """
    context = model.config.context
    if ids.shape[1] > context:
        cache = None
    logits = model(ids[:, -context:], cache)[:, -1].cpu()
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


@torch.no_grad()
def generate(
    model, ids, tokens, temperature=1.0, generator=None, *, cached=True, **settings
):
    """Continue each text by ``tokens`` tokens, none of which ends it.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
        It evaluates while it writes, in whatever mode it is.
    ids : int64 Tensor of shape (batch, prompt)
        The model sees its last ``context`` tokens.
    tokens : int
        How many to write.
    temperature : float
        Divides the logits; 0 always takes the likeliest token.
    generator : torch.Generator, optional
        For the same text every time. On the CPU.
    cached : bool
        Whether to keep keys and values instead of computing them again; the text is the
        same, but for rounding. Beyond the context nothing can be kept, since each new token
        moves all others.
    **settings
        ``top_k``, ``top_p`` and ``repetition_penalty`` of `next_probs`.

    Returns
    -------
    int64 Tensor of shape (batch, prompt + tokens)

    Raises
    ------
    ValueError
        If the prompt is empty, ids are not whole numbers in two axes, or a setting is out
        of its range.
    """
    tokens = whole_number(tokens, "tokens", least=0)
    check_ids(ids)
    settings["temperature"] = temperature
    cache = Cache(model) if cached else None
    with evaluating(model):
        for _ in range(tokens):
            probs = next_probs(next_logits(model, ids, cache), ids.cpu(), **settings)
            if temperature > 0:
                token = torch.multinomial(probs, 1, generator=generator)  # (batch, 1)
            else:
                token = probs.argmax(-1, keepdim=True)  # (batch, 1)
            ids = torch.cat([ids, token.to(ids.device)], dim=1)
    return ids


@torch.no_grad()
def beam_search(model, ids, tokens, beams):
    """Look for the likeliest continuation, keeping several beginnings at each step.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    ids : int64 Tensor of shape (batch, prompt)
    tokens : int
        How many are added.
    beams : int
        How many beginnings are kept. 1 is the likeliest token every time.

    Returns
    -------
    texts : int64 Tensor of shape (batch, beams, prompt + tokens)
        The likeliest first.
    log_probs : Tensor of shape (batch, beams)
        The log probability of each continuation, falling.

    Raises
    ------
    ValueError
        If the prompt is empty, ids are not whole numbers in two axes, or there is not one
        beam at least.
    """
    beams = whole_number(beams, "beams")
    tokens = whole_number(tokens, "tokens", least=0)
    check_ids(ids)
    batch = len(ids)
    cache = Cache(model)
    texts = ids.repeat_interleave(beams, 0)  # (batch * beams, tokens)
    # At first all beams of a text are the same, so only one of them counts.
    log_probs = torch.full((batch, beams), -math.inf)
    log_probs[:, 0] = 0.0
    first_rows = torch.arange(batch)[:, None] * beams  # where a text's beams begin
    with evaluating(model):
        for _ in range(tokens):
            added = next_logits(model, texts, cache).log_softmax(-1)
            vocab_size = added.shape[-1]
            sums = log_probs.to(added).flatten()[:, None] + added  # (rows, vocab_size)
            log_probs, best = sums.view(batch, -1).topk(beams)  # (batch, beams)
            rows = (first_rows + best // vocab_size).flatten().to(ids.device)
            next_tokens = (best % vocab_size).view(-1, 1).to(ids.device)
            texts = torch.cat([texts[rows], next_tokens], dim=1)
            cache.reorder(rows)
    return texts.unflatten(0, (batch, beams)), log_probs
