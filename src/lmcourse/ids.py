"""Ids of tokens, as models are given them: checked before a table is asked for them."""

import torch


def check_ids(ids, vocab_size=None):
    """Raise ValueError unless ids are those of a model's tokens, in two axes.

    Parameters
    ----------
    ids : Tensor
        Whole numbers of shape (batch, tokens).
    vocab_size : int, optional
        How many tokens the model knows: ids are 0 to ``vocab_size - 1``. Without it any
        whole number will do.
    """
    if ids.ndim != 2 or ids.is_floating_point() or ids.dtype == torch.bool:
        raise ValueError(
            f"ids must be whole numbers of shape (batch, tokens), not {ids.dtype} of "
            f"shape {tuple(ids.shape)}: for one text write ids[None]"
        )
    if vocab_size is None or not ids.numel():
        return
    low, high = torch.stack(ids.aminmax()).tolist()
    if low < 0 or high >= vocab_size:
        raise ValueError(
            f"ids from {low} to {high}, but this model's vocabulary has 0 to "
            f"{vocab_size - 1}: is it the tokenizer of this model?"
        )
