"""What a GPT loses when a block of it runs without one of its parts."""

from contextlib import contextmanager

import pandas as pd
import torch
import torch.nn.functional as F

from lmcourse.gpt.inside import hooked, replaced
from lmcourse.gpt.model import evaluating

__all__ = ["PARTS", "losses_without", "without"]

FIRST = ("norm_1", "attention", "residual_1")
PARTS = (*FIRST, "norm_2", "feed_forward", "residual_2")


@contextmanager
def without(block, part):
    """Let a block run without a part, inside a ``with``.

    Parameters
    ----------
    block : lmcourse.transformer.Block
        With the norm first, as a GPT's; a head can be away in any.
    part : str or int
        A norm passes on what it is given; ``"attention"`` and ``"feed_forward"`` add
        nothing; without ``"residual_1"`` or ``"residual_2"`` the path past the one or the
        other is cut, and only what it returns goes on; a number is a head, which returns
        zeros.

    Raises
    ------
    ValueError
        If there is no such part, or it is no head and the norm is not first.
    """
    attention, path = block.attention, []
    heads = range(attention.heads)
    if part not in (*PARTS, *heads) or not (part in heads or block.norm_first):
        raise ValueError(
            f"part {part!r} is none of {PARTS}, nor a head; or norm_first is not"
        )
    first = part in FIRST
    step = (block.norm_1, attention) if first else (block.norm_2, block.feed_forward)

    def at_norm(module, inputs, output):
        path.append(inputs[0])
        return inputs[0] if part in ("norm_1", "norm_2") else output

    def at_step(module, inputs, output):
        x, update = path.pop(), output[0] if first else output
        update = 0 * update if part in ("attention", "feed_forward") else update
        update = update - x if part in ("residual_1", "residual_2") else update
        return (update, output[1]) if first else update

    if part in PARTS:
        pairs = zip(step, (at_norm, at_step), strict=True)
        away = hooked(*(module.register_forward_hook(hook) for module, hook in pairs))
    else:
        away = replaced(block, part)
    with away:
        yield


@torch.no_grad()
def losses_without(model, inputs, targets):
    """Measure the loss of a GPT with each part of each block away, one at a time.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    inputs, targets : int64 Tensor of shape (windows, context)
        Of `lmcourse.gpt.trainer.cut_windows`: text that it was not trained on.

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
            for part in (*PARTS, *range(block.attention.heads)):
                with without(block, part):
                    change = losses() - whole
                mean, spread = change.mean(), 1.96 * change.std() / len(change) ** 0.5
                numbers = (whole.mean() + mean, mean, mean - spread, mean + spread)
                rows.append((layer, part, *map(float, numbers)))
    return pd.DataFrame(rows, columns=["layer", "part", "loss", "change", "low", "high"])
