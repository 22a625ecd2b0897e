"""A block without one of its parts, or with another output of a part, inside a ``with``.

The block is `lmcourse.transformer.Block`, a GPT's or a BERT's. When the ``with`` is left,
by an error too, it is as it was.
"""

from contextlib import contextmanager

import torch

FIRST = ("norm_1", "attention", "residual_1")
PARTS = (*FIRST, "norm_2", "feed_forward", "residual_2")


@contextmanager
def replaced(block, part, value=0.0):
    """Let a head or the feed-forward network return something else, inside a ``with``.

    Parameters
    ----------
    block : lmcourse.transformer.Block
    part : int or {"feed_forward"}
        A head by its number.
    value : float or Tensor
        Broadcast to what the part returns: (batch, tokens, d_head) for a head, before the
        matrix ``output``; (batch, tokens, d_model) for the feed-forward network. 0: the
        part adds nothing. Its mean over other texts (`means`): it adds what it always does,
        and what it says of this text is away.

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

    def at_heads(module, inputs):
        heads = inputs[0].unflatten(-1, (attention.heads, -1)).clone()
        heads[..., part, :] = value  # of (batch, tokens, heads, d_head)
        return (heads.flatten(-2),)

    def at_feed_forward(module, inputs, output):
        return torch.zeros_like(output) + value

    if part == "feed_forward":
        handle = block.feed_forward.register_forward_hook(at_feed_forward)
    else:
        handle = attention.output.register_forward_pre_hook(at_heads)
    with handle:  # removes the hook
        yield


@contextmanager
def without(block, part):
    """Let a block run without a part, inside a ``with``.

    Parameters
    ----------
    block : lmcourse.transformer.Block
        With the norm first, as a GPT's; a head can be away in any.
    part : str or int
        A norm passes on what it is given; ``"attention"`` and ``"feed_forward"`` add
        nothing; without ``"residual_1"`` or ``"residual_2"`` the residual stream past the
        one or the other is cut, and only what it returns goes on; a number is a head,
        which returns zeros.

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
        raise ValueError(f"with norm_first=False {part!r} cannot be away: only a head can")
    first, residual = part in FIRST, []
    norm = block.norm_1 if first else block.norm_2
    step = block.attention if first else block.feed_forward

    def at_norm(module, inputs, output):
        residual.append(inputs[0])
        return inputs[0] if part in ("norm_1", "norm_2") else output

    def at_step(module, inputs, output):
        x, update = residual.pop(), output[0] if first else output
        update = 0 * update if part in ("attention", "feed_forward") else update
        update = update - x if part in ("residual_1", "residual_2") else update
        return (update, output[1]) if first else update

    with norm.register_forward_hook(at_norm), step.register_forward_hook(at_step):
        yield
