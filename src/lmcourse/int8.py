"""Weights in one byte each: whole numbers from -127 to 127, and a scale for each row."""

import copy

import torch


def to_int8(matrix):
    """Round each row to whole numbers, so that its largest becomes 127.

    Parameters
    ----------
    matrix : float Tensor of shape (rows, columns)

    Returns
    -------
    values : int8 Tensor of shape (rows, columns)
    scale : float32 Tensor of shape (rows,)
        What 1 stands for in each row; 0 in a row of zeros.
    """
    scale = matrix.float().abs().amax(1) / 127  # (rows,)
    values = (matrix.float() / scale.clamp(min=1e-30)[:, None]).round()
    return values.to(torch.int8), scale


def from_int8(values, scale):
    """Return the float32 matrix that int8 numbers stand for.

    Parameters
    ----------
    values : int8 Tensor of shape (rows, columns)
    scale : float32 Tensor of shape (rows,)
        By which each row is multiplied; both are of `to_int8`.

    Returns
    -------
    float32 Tensor of shape (rows, columns)
    """
    return values.float() * scale[:, None]


@torch.no_grad()
def rounded(model):
    """Return a copy of a model whose matrices were converted to int8 and back.

    ``model`` : nn.Module, which is not changed.
    """
    model = copy.deepcopy(model)
    for weight in model.parameters():
        if weight.ndim == 2:
            weight.copy_(from_int8(*to_int8(weight.cpu())))
    return model


@torch.no_grad()
def drift(model, **batch):
    """Measure how far int8 moves the hidden states of a BERT.

    Parameters
    ----------
    model : transformers.BertModel or lmcourse.bert.Bert
        As its weights are in float32.
    **batch : Tensor of shape (batch, tokens)
        What a tokenizer gives, with ``input_ids`` and ``attention_mask``; padding does not
        count.

    Returns
    -------
    float32 Tensor of shape (layers + 1,)
        The largest difference of a number in each layer, embeddings first, as a share of
        the largest number there.
    """
    is_token = batch["attention_mask"].bool()  # (batch, tokens), False at padding
    states_of_both = []
    for bert in (model, rounded(model)):
        # The course's own BERT always returns its states; that of transformers if asked.
        with_states = {} if hasattr(bert, "layers") else {"output_hidden_states": True}
        states = torch.stack(bert(**batch, **with_states).hidden_states)
        states_of_both.append(states[:, is_token])  # (layers + 1, real tokens, d_model)
    exact, moved = states_of_both
    return (moved - exact).abs().amax((1, 2)) / exact.abs().amax((1, 2))
