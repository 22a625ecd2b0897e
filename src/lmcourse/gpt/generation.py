"""Writing with a GPT: from logits to probabilities, from these to a token, and again.

The order of the steps is that of ``transformers``: a penalty on what stands there already,
temperature, the ``top_k`` likeliest, of these the likeliest that hold ``top_p``.
"""

import math

import torch

from lmcourse.gpt.model import evaluating

# --- distributions --------------------------------------------------------------------


def penalize(logits, ids, penalty):
    """Make tokens that stand in the text less likely (Keskar et al. 2019, section 4.1).

    Parameters
    ----------
    logits : Tensor of shape (batch, vocab_size)
    ids : int64 Tensor of shape (batch, tokens)
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
    there = torch.zeros_like(logits, dtype=torch.bool).scatter(1, ids, True)
    less = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(there, less, logits)


def apply_temperature(logits, temperature):
    """Turn logits into probabilities: the lower the temperature, the fewer share them.

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
    return (below / temperature).softmax(-1)


def keep_top_k(probs, k):
    """Keep the k likeliest tokens and share all among them (Fan et al. 2018, section 5.1).

    Parameters
    ----------
    probs : Tensor of shape (..., vocab_size)
    k : int

    Returns
    -------
    Tensor of shape (..., vocab_size)
        Each row sums to 1. Tokens as likely as the last one kept are kept, too.

    Raises
    ------
    ValueError
        If k is no whole number from 1.
    """
    if not (isinstance(k, int) and k >= 1):
        raise ValueError(f"top_k must be a whole number from 1, not {k!r}")
    last = probs.topk(min(k, probs.shape[-1])).values[..., -1:]  # (..., 1)
    kept = probs.where(probs >= last, 0)
    return kept / kept.sum(-1, keepdim=True)


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
    away = ordered.cumsum(-1) <= 1 - p  # with these gone, the rest still holds p
    away[..., -1] = False
    kept = probs.masked_fill(away.scatter(-1, ids, away), 0)
    return kept / kept.sum(-1, keepdim=True)


def next_probs(
    logits, ids, *, temperature=1.0, top_k=None, top_p=None, repetition_penalty=1.0
):
    """Return the probabilities from which the next token is drawn.

    Parameters
    ----------
    logits : Tensor of shape (batch, vocab_size)
    ids : int64 Tensor of shape (batch, tokens)
        What stands there; for `penalize`.
    temperature : float
        Divides the logits; 0 always takes the likeliest token.
    top_k : int, optional
        Keep so many of the likeliest tokens only.
    top_p : float, optional
        Keep the likeliest tokens only that together have at least this probability, at
        the temperature given.
    repetition_penalty : float
        Above 1: see `penalize`.

    Returns
    -------
    Tensor of shape (batch, vocab_size)
        Each row sums to 1.

    Raises
    ------
    ValueError
        If a setting is out of its range.
    """
    found = apply_temperature(penalize(logits, ids, repetition_penalty), temperature)
    found = found if top_k is None else keep_top_k(found, top_k)
    return found if top_p is None else keep_top_p(found, top_p)


# --- the cache ------------------------------------------------------------------------


class LayerCache:
    """The keys and values of one layer, for the tokens read so far."""

    def __init__(self):
        self.both = None  # (2, batch, heads, tokens, d_head)

    @property
    def tokens(self):
        """How many tokens were read."""
        return 0 if self.both is None else self.both.shape[3]

    def append(self, key, value):
        """Add those of new tokens, (batch, heads, new, d_head); return those of all."""
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
        """How much memory it takes."""
        return sum(layer.both.nbytes for layer in self.layers if layer.tokens)

    def reorder(self, rows):
        """Keep some texts of the batch, in a new order; a text may be kept twice.

        Parameters
        ----------
        rows : int64 Tensor of shape (texts,)
        """
        for layer in self.layers:
            if layer.tokens:
                layer.both = layer.both[:, rows]


def cache_bytes(config, tokens, batch=1, bytes_each=4):
    """Return what a `Cache` takes: a key and a value for each token of each layer.

    Parameters
    ----------
    config : lmcourse.gpt.model.GPTConfig
    tokens, batch : int
    bytes_each : int
        Of a number: 4 in float32.
    """
    return 2 * config.layers * batch * tokens * config.d_model * bytes_each


# --- texts ----------------------------------------------------------------------------


def next_logits(model, ids, cache=None):
    """Return the logits (batch, vocab_size) of what follows, on the CPU.

    The model sees the last ``context`` tokens. Once the text is longer, each new token
    moves all of them one place, and no key or value that was kept is right any more: then
    they are read anew, with or without a cache.
    """
    context = model.config.context
    cache = cache if ids.shape[1] <= context else None
    logits = model(ids[:, -context:], cache)[:, -1].cpu()
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


@torch.no_grad()
def generate(
    model, ids, tokens, temperature=1.0, generator=None, *, cached=True, **settings
):
    """Write on: so many tokens, none of which ends the text.

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
        same, but for rounding. Beyond the context nothing can be kept: see `next_logits`.
    **settings
        ``top_k``, ``top_p`` and ``repetition_penalty`` of `next_probs`.

    Returns
    -------
    int64 Tensor of shape (batch, prompt + tokens)

    Raises
    ------
    ValueError
        If the prompt is empty, or a setting out of its range.
    """
    settings["temperature"] = temperature
    cache = Cache(model) if cached else None
    with evaluating(model):
        for _ in range(tokens):
            found = next_probs(next_logits(model, ids, cache), ids.cpu(), **settings)
            drawn = found.argmax(-1, keepdim=True)  # (batch, 1)
            if temperature > 0:
                drawn = torch.multinomial(found, 1, generator=generator)
            ids = torch.cat([ids, drawn.to(ids.device)], dim=1)
    return ids


@torch.no_grad()
def beam_search(model, ids, tokens, beams):
    """Look for the likeliest continuation, keeping several beginnings at each step.

    Parameters
    ----------
    model, ids, tokens
        As `generate`.
    beams : int
        How many beginnings are kept. 1 is the likeliest token every time.

    Returns
    -------
    texts : int64 Tensor of shape (batch, beams, prompt + tokens)
        The likeliest first.
    logs : Tensor of shape (batch, beams)
        The log probability of each continuation, falling.

    Raises
    ------
    ValueError
        If the prompt is empty, or there is not one beam at least.
    """
    if not (isinstance(beams, int) and beams >= 1):
        raise ValueError(f"beams must be a whole number from 1, not {beams!r}")
    batch, cache = len(ids), Cache(model)
    texts = ids.repeat_interleave(beams, 0)  # (batch * beams, tokens)
    logs = torch.full((batch, beams), -math.inf)  # all beams are the same at first:
    logs[:, 0] = 0.0  # one counts
    first = torch.arange(batch)[:, None] * beams  # where a text's beams begin
    with evaluating(model):
        for _ in range(tokens):
            steps = next_logits(model, texts, cache).log_softmax(-1)
            sums = logs.to(steps).flatten()[:, None] + steps  # (batch * beams, vocab_size)
            logs, best = sums.view(batch, -1).topk(beams)  # (batch, beams)
            rows = (first + best // steps.shape[-1]).flatten().to(ids.device)
            drawn = (best % steps.shape[-1]).view(-1, 1).to(ids.device)
            texts = torch.cat([texts[rows], drawn], dim=1)
            cache.reorder(rows)
    return texts.unflatten(0, (batch, beams)), logs
