"""Ablation: a block without one of its parts, or with another output of a part.

The block is a `lmcourse.transformer.Block`, a GPT's or a BERT's. Each change holds inside
a ``with``; when that is left, after an error too, the block is as it was before.
"""

from contextlib import contextmanager

import torch

FIRST_HALF = ("norm_1", "attention", "residual_1")
PARTS = (*FIRST_HALF, "norm_2", "feed_forward", "residual_2")


@contextmanager
def hooked_heads(attention, function):
    """Hand what the heads return to a function, which may change it, inside a ``with``.

    Parameters
    ----------
    attention : nn.Module
        With ``heads`` and, applied to all heads side by side, the linear layer ``output``:
        `lmcourse.attention.MultiHeadAttention` or `lmcourse.gpt.model.CausalAttention`.
    function : callable
        Given a Tensor of shape (batch, tokens, heads, d_head), what each head returns
        before the matrix ``output``. It returns the Tensor to go on with, of the same
        shape, or None to leave all as it is. It must not write to what it is given.

    See Also
    --------
    hooked_heads_before : The same for another library's attention.
    """
    with hooked_heads_before(attention.output, attention.heads, function):
        yield


@contextmanager
def hooked_heads_before(output, heads, function):
    """Hand what goes into a linear layer to a function, head by head, inside a ``with``.

    So any model's heads can be changed; `hooked_heads` does it for the course's own.

    Parameters
    ----------
    output : nn.Module
        Applied to all heads side by side, such as ``attention.output.dense`` of a layer of
        transformers' BertModel.
    heads : int
        How many there are; they are equally wide.
    function : callable
        As that of `hooked_heads`.
    """

    def before_output(module, inputs):
        """Give the function the heads, (batch, tokens, heads, d_head), before ``output``.

        A forward pre-hook: ``inputs`` begins with the heads side by side, (batch, tokens,
        d_model); ``module`` is not used. What the function returns goes on; None leaves all
        as it is.
        """
        changed = function(inputs[0].unflatten(-1, (heads, -1)))
        return None if changed is None else (changed.flatten(-2),)

    with output.register_forward_pre_hook(before_output):
        yield


@contextmanager
def replaced(block, part, value=0.0):
    """Let a head or the feed-forward network return something else, inside a ``with``.

    Parameters
    ----------
    block : lmcourse.transformer.Block
    part : int or {"feed_forward"}
        A head by its number, from 0.
    value : float or Tensor
        Broadcast to what the part returns: (batch, tokens, d_head) for a head, before the
        matrix ``output``; (batch, tokens, d_model) for the feed-forward network. 0: the
        part adds nothing. Its mean over other texts (`lmcourse.gpt.inside.means`): it adds
        what it always does, but nothing about this text.

    Raises
    ------
    ValueError
        If the block has no such part.
    """
    attention = block.attention
    if part != "feed_forward" and part not in range(attention.heads):
        raise ValueError(
            f"part {part!r} is neither 'feed_forward' nor a head below {attention.heads}"
        )

    def replace_head(outputs):
        """Return the heads' outputs with ``value`` in the place of one head's.

        ``outputs`` : Tensor (batch, tokens, heads, d_head), which is not changed.
        """
        outputs = outputs.clone()  # (batch, tokens, heads, d_head)
        outputs[..., part, :] = value
        return outputs

    def replace_feed_forward(module, inputs, output):
        """Return ``value`` in the shape of the network's output: a forward hook.

        ``output`` : Tensor (batch, tokens, d_model); ``module`` and ``inputs`` are not
        used.
        """
        return torch.zeros_like(output) + value

    if part == "feed_forward":
        hook = block.feed_forward.register_forward_hook(replace_feed_forward)
    else:
        hook = hooked_heads(attention, replace_head)
    with hook:
        yield


@contextmanager
def without(block, part):
    """Let a block run without a part, inside a ``with``.

    Parameters
    ----------
    block : lmcourse.transformer.Block
        With the norm first, as a GPT's; a head can be removed from any.
    part : str or int
        A norm ("norm_1", "norm_2") passes on what it is given; ``"attention"`` and
        ``"feed_forward"`` add nothing; without ``"residual_1"`` what attention returns
        takes the place of the residual stream, to which it is usually added, and without
        ``"residual_2"`` what the feed-forward network returns (in evaluation mode: dropout
        leaves some of the stream); a number, from 0, is a head, which returns zeros.

    Raises
    ------
    ValueError
        If there is no such part, or it is no head and the norm is not first.
    """
    if part not in PARTS:
        with replaced(block, part):
            yield
        return
    if not block.norm_first:
        raise ValueError(
            f"with norm_first=False {part!r} cannot be removed: only a head can"
        )
    in_first_half = part in FIRST_HALF
    norm = block.norm_1 if in_first_half else block.norm_2
    layer = block.attention if in_first_half else block.feed_forward
    streams = []  # what the norm was given: the residual stream

    def after_norm(module, inputs, output):
        """Note the residual stream; return it if this norm is left out, else the output.

        A forward hook: ``inputs`` begins with the stream, (batch, tokens, d_model), and
        ``output`` is the norm's; ``module`` is not used.
        """
        streams.append(inputs[0])
        if part in ("norm_1", "norm_2"):
            return inputs[0]
        return output

    def after_layer(module, inputs, output):
        """Take away the update, or the residual stream that the block will add to it.

        A forward hook. The update is multiplied by 0 if the layer is left out; the stream
        (noted by `after_norm`) is subtracted from it if the residual path is; without a
        norm the update stays. It returns what goes on in place of the layer's ``output``,
        an update (batch, tokens, d_model), behind attention a pair of it and the weights.
        ``module`` and ``inputs`` are not used.
        """
        stream = streams.pop()
        update = output[0] if in_first_half else output
        if part in ("attention", "feed_forward"):
            update = 0 * update
        elif part in ("residual_1", "residual_2"):
            update = update - stream  # the block adds the stream: nothing of it is left
        if in_first_half:
            return update, output[1]
        return update

    with norm.register_forward_hook(after_norm), layer.register_forward_hook(after_layer):
        yield
