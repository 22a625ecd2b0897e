"""Weights in one byte each."""

import torch

from lmcourse import int8
from lmcourse.models import load_bert


def test_no_number_is_further_off_than_half_a_step():
    matrix = torch.randn(5, 40, generator=torch.Generator().manual_seed(0))
    matrix[3] = 0
    values, scale = int8.to_int8(matrix)
    assert values.dtype == torch.int8
    assert scale[3] == 0
    assert values.abs().amax(1).tolist() == [127, 127, 127, 0, 127]
    off = (int8.from_int8(values, scale) - matrix).abs()
    assert (off <= 0.501 * scale[:, None]).all()


def test_drift_is_told_layer_by_layer_and_padding_is_not_looked_at():
    tokenizer, model = load_bert(device="cpu")
    text, padding = ["A bird came down"], {"padding": "max_length", "max_length": 12}
    alone = int8.drift(model, **tokenizer(text, return_tensors="pt"))
    padded = tokenizer(text, return_tensors="pt", **padding)
    assert alone.shape == (model.config.num_hidden_layers + 1,)
    batch = tokenizer(text, return_tensors="pt")
    ways = [each(**batch).last_hidden_state for each in (model, int8.rounded(model))]
    largest = (ways[1] - ways[0]).abs().max() / ways[0].abs().max()
    torch.testing.assert_close(alone[-1], largest.detach(), rtol=1e-4, atol=0)
    assert (alone > 1e-4).all()
    assert (alone < 0.1).all()
    assert (int8.drift(model, **padded) - alone).abs().max() < 1e-3 * alone.max()
    assert (int8.drift(int8.rounded(model), **padded) < 1e-4).all()
