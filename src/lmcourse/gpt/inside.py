"""Looking into a GPT while it reads, and changing what it holds.

The residual stream, past all blocks, is the sum of what the embedding, every head
and every feed-forward network put on it. Here it is read (`states`, `lens`), taken apart
(`contributions`); other outputs of parts are `lmcourse.ablation`'s.
"""

from contextlib import ExitStack
from functools import partial

import pandas as pd
import torch
import torch.nn.functional as F

from lmcourse.ablation import PARTS, without
from lmcourse.gpt.model import evaluating


@torch.no_grad()
def states(model, ids):
    """Return the residual stream before the first block and after each.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
        In a ``with`` of `replaced`, what it holds then.
    ids : int64 Tensor of shape (batch, tokens)

    Returns
    -------
    Tensor of shape (layers + 1, batch, tokens, d_model)
    """
    seen = []

    def at_point(module, inputs):
        seen.append(inputs[0])

    with evaluating(model), ExitStack() as hooks:
        for module in [*model.blocks, model.norm]:  # what the stream is given to
            hooks.enter_context(module.register_forward_pre_hook(at_point))
        model(ids)
    return torch.stack(seen)


def line_states(model, ids, lengths, last=False):
    """Return a vector a line, before the first block and after each.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    ids : int64 Tensor of shape (lines, tokens)
        Padded at the end, where no token of the line looks.
    lengths : int64 Tensor of shape (lines,)
        How many tokens of each line are its own.
    last : bool
        The state of a line's last token, not the mean of all its own.

    Returns
    -------
    Tensor of shape (layers + 1, lines, d_model)
    """
    places = torch.arange(ids.shape[1], device=ids.device)
    kept = places < lengths[:, None]  # (lines, tokens)
    if last:
        kept = places == lengths[:, None] - 1
    every = states(model, ids)  # (layers + 1, lines, tokens, d_model)
    shares = kept.to(every) / kept.sum(1, keepdim=True)  # (lines, tokens)
    return torch.einsum("bltd,lt->bld", every, shares)


@torch.no_grad()
def lens(model, ids):
    """Return the logits, if the model ended before the first block or after any.

    The last norm and the table of tokens read every state (the logit lens, nostalgebraist
    2020).

    Returns
    -------
    Tensor of shape (layers + 1, batch, tokens, vocab_size)
        The last are the model's own.
    """
    return F.linear(model.norm(states(model, ids)), model.tokens.weight)


@torch.no_grad()
def outputs(model, ids):
    """Return what each head and each feed-forward network returns.

    Returns
    -------
    dict of (int, int or "feed_forward") to Tensor
        By layer and part: (batch, tokens, d_head) of a head, before the matrix ``output``,
        or (batch, tokens, d_model).
    """
    seen = {}

    def at_heads(layer, heads, module, inputs):
        split = inputs[0].unflatten(-1, (heads, -1)).unbind(-2)
        seen.update({(layer, head): output for head, output in enumerate(split)})

    def at_feed_forward(layer, module, inputs, output):
        seen[layer, "feed_forward"] = output

    with evaluating(model), ExitStack() as hooks:
        for layer, block in enumerate(model.blocks):
            heads = partial(at_heads, layer, block.attention.heads)
            hooks.enter_context(block.attention.output.register_forward_pre_hook(heads))
            whole = partial(at_feed_forward, layer)
            hooks.enter_context(block.feed_forward.register_forward_hook(whole))
        model(ids)
    return seen


def means(model, ids):
    """Return the mean output of each part over texts, to replace it with.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    ids : int64 Tensor of shape (batch, tokens)

    Returns
    -------
    dict of (int, int or "feed_forward") to Tensor of shape (d_head,) or (d_model,)
        By layer and part, as `replaced` takes them.
    """
    return {name: x.mean((0, 1)) for name, x in outputs(model, ids).items()}


@torch.no_grad()
def contributions(model, ids, token):
    """Take the logit of a token, after the last of a text, apart.

    Each part added a vector to the residual stream; the last norm subtracts its mean,
    divides it by the spread of the whole sum (as if that were given) and weighs it, and the
    row of the token in the table of tokens reads it. All that is linear, so what the parts
    contribute adds up to the logit. Indirect effects, through what later parts make of it,
    are not in it.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    ids : int64 Tensor of shape (1, tokens)
    token : int
        Whose logit.

    Returns
    -------
    DataFrame
        One row a part: ``layer`` (none for the embedding and the last norm), ``part``
        (``"token"``; ``"position"``, with what tables of n-grams add; a head;
        ``"attention bias"``; ``"feed_forward"``, with its bias; ``"norm bias"``), and
        ``contribution``.

    Raises
    ------
    ValueError
        If it is not one text, or a whole part is away.
    """
    if ids.shape[0] != 1:
        raise ValueError(f"one text, please, not {ids.shape[0]}")
    found = written(model, ids)  # (layer, part) → (d_model,)
    end, norm = states(model, ids)[-1, 0, -1], model.norm
    if not torch.allclose(sum(found.values()), end, atol=1e-3 * float(end.abs().max())):
        raise ValueError("the parts do not add up to the residual stream: is a part away?")
    spread = (end.var(correction=0) + norm.eps).sqrt()
    reads = norm.weight * model.tokens.weight[token] / spread  # (d_model,)
    rows = [(*name, float((x - x.mean()) @ reads)) for name, x in found.items()]
    rows.append((None, "norm bias", float(norm.bias @ model.tokens.weight[token])))
    return pd.DataFrame(rows, columns=["layer", "part", "contribution"])


def written(model, ids):
    """Return the vector (d_model,) that each part added at the last token."""
    token = model.tokens(ids)[0, -1]
    found = {(None, "token"): token}
    found[None, "position"] = model.vectors(ids)[0, -1] - token
    for (layer, part), x in outputs(model, ids).items():
        if part == "feed_forward":
            bias = model.blocks[layer].attention.output.bias
            found |= {(layer, "attention bias"): bias, (layer, part): x[0, -1]}
        else:
            output = model.blocks[layer].attention.output.weight  # (d_model, d_model)
            d_head = x.shape[-1]
            found[layer, part] = output[:, part * d_head :][:, :d_head] @ x[0, -1]
    return found


@torch.no_grad()
def losses_without(model, inputs, targets, controls=None, write=None):
    """Measure the loss of a GPT with each part of each block away, one at a time.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    inputs, targets : int64 Tensor of shape (windows, context)
        Of `lmcourse.gpt.training.cut_windows`: text that it was not trained on.
    controls : dict of str to callable, optional
        Other changes: what is given a layer's number and makes a context manager in which
        the model is changed.
    write : callable, optional
        Called in each state but those without a head; what it returns is the column
        ``line``.

    Returns
    -------
    DataFrame
        One row a part, with the columns ``layer``, ``part`` (as in `without`), ``loss``,
        ``change`` (from the loss of the whole model) and ``low`` and ``high``, a 95 %
        interval of the change: it is paired, being that of the mean difference over the
        windows, which are taken as independent.
    """

    def losses():
        logits = model(inputs).transpose(1, 2)  # (windows, vocab_size, context)
        return F.cross_entropy(logits, targets, reduction="none").mean(1).double()

    rows = []
    with evaluating(model):
        whole = losses()  # (windows,)
        for layer, block in enumerate(model.blocks):
            parts = (*PARTS, *range(block.attention.heads))
            ways = {part: partial(without, block, part) for part in parts}
            ways |= {name: partial(make, layer) for name, make in (controls or {}).items()}
            for part, way in ways.items():
                with way():
                    change = losses() - whole
                    line = write() if write and not isinstance(part, int) else ""
                mean, spread = change.mean(), 1.96 * change.std() / len(change) ** 0.5
                numbers = (whole.mean() + mean, mean, mean - spread, mean + spread)
                rows.append((layer, part, *map(float, numbers), line))
    names = ["layer", "part", "loss", "change", "low", "high", "line"]
    return pd.DataFrame(rows, columns=names)


@torch.no_grad()
def losses_at(model, ids, places, reach):
    """Return what tokens cost a model that is shown only the last few before each.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    ids : int64 Tensor of shape (tokens,)
    places : int64 Tensor of shape (places,)
        Of the tokens to be guessed, none below ``reach``.
    reach : int
        How many tokens before each are shown.

    Returns
    -------
    float64 array of shape (places,)
        Minus the log probability of each, in nats.
    """
    found = []
    with evaluating(model):
        for some in places.split(500):
            shown = ids[some[:, None] - torch.arange(reach, 0, -1)]  # (some, reach)
            logits = model(shown)[:, -1]  # (some, vocab_size)
            found.append(F.cross_entropy(logits, ids[some], reduction="none"))
    return torch.cat(found).double().cpu().numpy()
