"""Looking into a GPT while it reads a text.

The residual stream, past all blocks, is the sum of what the embedding, every head and every
feed-forward network added to it. Here it is read (`states`, `lens`) and taken apart
(`contributions`). What changes a model is in `lmcourse.ablation`.
"""

from contextlib import ExitStack
from functools import partial

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.ablation import PARTS, hooked_heads, without
from lmcourse.gpt.model import evaluating
from lmcourse.ids import check_ids
from lmcourse.numbers import bootstrap_interval


@torch.no_grad()
def states(model, ids):
    """Return the residual stream before the first block and after each.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
        In a ``with`` of `lmcourse.ablation.replaced`, the stream of the changed model.
    ids : int64 Tensor of shape (batch, tokens)

    Returns
    -------
    Tensor of shape (layers + 1, batch, tokens, d_model)
    """
    streams = []

    def keep_input(module, inputs):
        """Note the residual stream that goes into a block, the first of ``inputs``.

        A forward pre-hook: nothing is changed, ``module`` is not used.
        """
        streams.append(inputs[0])

    with evaluating(model), ExitStack() as hooks:
        for module in [*model.blocks, model.norm]:  # each is given the stream
            hooks.enter_context(module.register_forward_pre_hook(keep_input))
        model(ids)
    return torch.stack(streams)


def line_states(model, ids, lengths, last=False):
    """Return one vector for each line, before the first block and after each.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    ids : int64 Tensor of shape (lines, tokens)
        Padded at the end, where no token of the line attends.
    lengths : int64 Tensor of shape (lines,)
        How many tokens of each line are its own.
    last : bool
        Whether to return the state of a line's last token instead of the mean of all.

    Returns
    -------
    Tensor of shape (layers + 1, lines, d_model)
    """
    positions = torch.arange(ids.shape[1], device=ids.device)
    chosen = positions < lengths[:, None]  # (lines, tokens)
    if last:
        chosen = positions == lengths[:, None] - 1
    stream = states(model, ids)  # (layers + 1, lines, tokens, d_model)
    shares = chosen.to(stream) / chosen.sum(1, keepdim=True)  # (lines, tokens)
    return torch.einsum("bltd,lt->bld", stream, shares)


@torch.no_grad()
def lens(model, ids):
    """Return the logits that a model would have if it ended earlier: the logit lens.

    It might end before the first block, and after each of them: the last norm and the
    output matrix read the state there (nostalgebraist 2020).

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    ids : int64 Tensor of shape (batch, tokens)

    Returns
    -------
    Tensor of shape (layers + 1, batch, tokens, vocab_size)
        The last are the model's own.
    """
    return F.linear(model.norm(states(model, ids)), model.output_matrix)


@torch.no_grad()
def outputs(model, ids):
    """Return what each head and each feed-forward network returns.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    ids : int64 Tensor of shape (batch, tokens)

    Returns
    -------
    dict of (int, int or "feed_forward") to Tensor
        Layer and part, a head or the feed-forward network, numbers from 0 → what it
        returned: (batch, tokens, d_head) of a head, before the matrix ``output``, or
        (batch, tokens, d_model).
    """
    by_part = {}

    def keep_heads(layer, heads):
        """Note the output of every head of a layer.

        ``layer`` is its number; ``heads`` are the heads' outputs before the matrix
        ``output``, (batch, tokens, heads, d_head).
        """
        for head, output in enumerate(heads.unbind(-2)):
            by_part[layer, head] = output

    def keep_feed_forward(layer, module, inputs, output):
        """Note the output of a layer's feed-forward network, (batch, tokens, d_model).

        A forward hook behind ``layer`` (int): nothing is changed, ``module`` and ``inputs``
        are not used.
        """
        by_part[layer, "feed_forward"] = output

    with evaluating(model), ExitStack() as hooks:
        for layer, block in enumerate(model.blocks):
            keep = partial(keep_heads, layer)
            hooks.enter_context(hooked_heads(block.attention, keep))
            keep = partial(keep_feed_forward, layer)
            hooks.enter_context(block.feed_forward.register_forward_hook(keep))
        model(ids)
    return by_part


def means(model, ids):
    """Return the mean output of each part over texts, for mean ablation.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    ids : int64 Tensor of shape (batch, tokens)

    Returns
    -------
    dict of (int, int or "feed_forward") to Tensor of shape (d_head,) or (d_model,)
        Key: layer and part, a head by its number or "feed_forward". The mean over all
        tokens.
    """
    return {name: x.mean((0, 1)) for name, x in outputs(model, ids).items()}


@torch.no_grad()
def contributions(model, ids, token):
    """Direct logit attribution: take the logit of one next token apart.

    Each part added a vector to the residual stream; the last norm subtracts its mean,
    divides it by the spread of the whole sum (as if that were given) and weighs it, and the
    row of the token in the output matrix reads it. All that is linear, so what the parts
    contribute adds up to the logit. Indirect effects, through what later parts make of it,
    are not in it.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    ids : int64 Tensor of shape (1, tokens)
    token : int
        The id whose logit is taken apart, after the last token of the text.

    Returns
    -------
    DataFrame
        One row a part: ``layer``, from 0 (none for the embedding and the last norm);
        ``part`` (``"token"``; ``"position"``, with what tables of n-grams and of previous
        tokens add; a head's number, from 0; ``"attention bias"``; ``"feed_forward"``,
        with its bias; ``"norm bias"``); ``contribution``, in logits. A model without biases
        has no rows of them.

    Raises
    ------
    ValueError
        If ``ids`` are not one text of this model's tokens; or if the parts do not add up to
        the residual stream, as while `lmcourse.ablation.without` leaves out a block's
        attention.
    """
    check_ids(ids, model.config.vocab_size)
    if ids.shape[0] != 1:
        raise ValueError(f"one text, please, not {ids.shape[0]}")
    vectors = added_vectors(model, ids)  # (layer, part) → (d_model,)
    last_state = states(model, ids)[-1, 0, -1]  # (d_model,), after the last block
    tolerance = 1e-3 * float(last_state.abs().max())
    if not torch.allclose(sum(vectors.values()), last_state, atol=tolerance):
        raise ValueError("the parts do not add up to the residual stream: is a part away?")
    row = model.output_matrix[token]  # (d_model,)
    rows = [
        (*name, float(fixed_norm(model.norm, last_state, vector) @ row))
        for name, vector in vectors.items()
    ]
    bias = getattr(model.norm, "bias", None)
    if bias is not None:
        rows.append((None, "norm bias", float(bias @ row)))
    return pd.DataFrame(rows, columns=["layer", "part", "contribution"])


def fixed_norm(norm, whole, part):
    """Return what a norm makes of a part of a vector, divided by the spread of the whole.

    Parameters
    ----------
    norm : nn.LayerNorm or nn.RMSNorm
        Its bias is left out.
    whole, part : Tensor of shape (d_model,)
        What the norm is given, and one of the vectors that add up to it.

    Returns
    -------
    Tensor of shape (d_model,)
    """
    if isinstance(norm, nn.RMSNorm):
        eps = torch.finfo(whole.dtype).eps if norm.eps is None else norm.eps
        scaled = part / (whole.square().mean() + eps).sqrt()
    else:
        scaled = (part - part.mean()) / (whole.var(correction=0) + norm.eps).sqrt()
    return scaled if norm.weight is None else scaled * norm.weight


def added_vectors(model, ids):
    """Return the vector that each part added to the residual stream at the last token.

    Their sum is the stream after the last block.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    ids : int64 Tensor of shape (1, tokens)

    Returns
    -------
    dict of (int or None, str or int) to Tensor of shape (d_model,)
        Key: layer, from 0, None for the embedding; and part: "token", "position" (with what
        tables of n-grams and of previous tokens add), a head by its number, from 0 (after
        its columns of the matrix ``output``), "attention bias" or "feed_forward".
    """
    token = model.tokens(ids)[0, -1]
    vectors = {(None, "token"): token}
    vectors[None, "position"] = model.vectors(ids)[0, -1] - token
    for (layer, part), output in outputs(model, ids).items():
        if part == "feed_forward":
            bias = model.blocks[layer].attention.output.bias
            if bias is not None:
                vectors[layer, "attention bias"] = bias
            vectors[layer, part] = output[0, -1]
        else:
            d_head = output.shape[-1]
            matrix = model.blocks[layer].attention.output.weight  # (d_model, d_model)
            own_columns = matrix[:, part * d_head : (part + 1) * d_head]
            vectors[layer, part] = own_columns @ output[0, -1]
    return vectors


@torch.no_grad()
def losses_without(model, inputs, targets, controls=None, write=None):
    """Measure the loss of a GPT with each part of each block removed, one at a time.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    inputs, targets : int64 Tensor of shape (windows, context)
        Windows of a text that it was not trained on, and the token after each position.
    controls : dict of str to callable, optional
        Other changes, by name: each is given a layer's number, from 0, and makes a context
        manager in which the model is changed.
    write : callable, optional
        Called without arguments while a part is removed or a control changes the model, but
        not while a head is removed; it returns a str, for the column ``line``.

    Returns
    -------
    DataFrame
        One row for each layer and part or control. ``layer``, from 0; ``part``: "norm_1",
        "attention", "residual_1", "norm_2", "feed_forward", "residual_2", a head's number,
        from 0, or the name of a control; ``loss``, nats a token; ``change``, from the loss
        of the whole model; ``low`` and ``high``, the ends of its 95 % interval (windows are
        taken as independent, and each is compared with itself); ``line``, "" for a head and
        without ``write``.
    """
    rows = []
    with evaluating(model):
        intact = window_losses(model, inputs, targets)
        for layer in range(len(model.blocks)):
            for part, changed in _changes(model, layer, controls or {}).items():
                line = ""
                with changed():
                    losses = window_losses(model, inputs, targets)
                    if write is not None and not isinstance(part, int):
                        line = write()
                row = {"layer": layer, "part": part, **_change_of_loss(losses, intact)}
                rows.append(row | {"line": line})
    return pd.DataFrame(rows)


def _changes(model, layer, controls):
    """Return each way to change the model in one layer, for `losses_without`.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    layer : int
        From 0.
    controls : dict of str to callable
        Each is given the layer's number, and makes a context manager.

    Returns
    -------
    dict of (str or int) to callable
        Each makes, without arguments, a context manager in which the model is changed. Key:
        the part that is removed, a head by its number, or the name of a control.
    """
    block = model.blocks[layer]
    parts = [*PARTS, *range(block.attention.heads)]
    changes = {part: partial(without, block, part) for part in parts}
    for name, make in controls.items():
        changes[name] = partial(make, layer)
    return changes


def _change_of_loss(losses, whole):
    """Compare the losses of a changed model with those of the whole one.

    Parameters
    ----------
    losses, whole : float64 Tensor of shape (windows,)
        Nats a token, of the same windows.

    Returns
    -------
    dict of str to float
        ``loss``, the mean of the changed model; ``change``, from the whole one's; ``low``
        and ``high``, the ends of its 95 % interval, for which each window is compared with
        itself.
    """
    change = losses - whole
    mean = float(change.mean())
    low, high = bootstrap_interval(change.numpy())
    return {"loss": float(whole.mean()) + mean, "change": mean, "low": low, "high": high}


def window_losses(model, inputs, targets):
    """Return the mean loss of each window, in nats a token.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    inputs, targets : int64 Tensor of shape (windows, context)
        Windows, and the token after each of their positions.

    Returns
    -------
    float64 Tensor of shape (windows,)
        On the CPU: a GPU of Apple has no float64.
    """
    logits = model(inputs).transpose(1, 2)  # (windows, vocab_size, context)
    losses = F.cross_entropy(logits, targets, reduction="none")  # (windows, context)
    return losses.mean(1).cpu().double()


@torch.no_grad()
def losses_at(model, ids, positions, reach):
    """Return the losses of tokens, of which the model sees only the last few before each.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    ids : int64 Tensor of shape (tokens,)
    positions : int64 Tensor of shape (targets,)
        Of the tokens to be predicted, from 0, none below ``reach``.
    reach : int
        How many tokens before each the model sees.

    Returns
    -------
    float64 array of shape (targets,)
        Minus the log probability of each, in nats.
    """
    losses = []
    with evaluating(model):
        for part in positions.split(500):  # to bound memory
            shown = ids[part[:, None] - torch.arange(reach, 0, -1)]  # (part, reach)
            logits = model(shown)[:, -1]  # (part, vocab_size)
            losses.append(F.cross_entropy(logits, ids[part], reduction="none"))
    return torch.cat(losses).cpu().double().numpy()
