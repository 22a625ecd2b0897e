"""Recurrence against PyTorch's, and the stored reader of the Sonnets."""

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from lmcourse import recurrent
from lmcourse.recurrent import LSTM, load_char_lstm, watch

close = torch.testing.assert_close


def test_it_equals_pytorchs():
    theirs = nn.LSTM(5, 7, batch_first=True).double()
    ours = LSTM(5, 7).double()
    for name, layer in {"ih": ours.read, "hh": ours.carry}.items():
        layer.weight.data = getattr(theirs, f"weight_{name}_l0").data
        layer.bias.data = getattr(theirs, f"bias_{name}_l0").data
    x = torch.randn(3, 11, 5, dtype=torch.float64, requires_grad=True)
    got, want = ours(x)[0], theirs(x)[0]
    close(got, want, rtol=0, atol=1e-9)
    gradients = [torch.autograd.grad(y.pow(2).sum(), x)[0] for y in (got, want)]
    close(*gradients, rtol=0, atol=1e-9)


def test_gates_say_what_is_kept():
    layer = LSTM(2, 3)
    with torch.no_grad():
        layer.read.weight.zero_()
        layer.carry.weight.zero_()
        layer.carry.bias.zero_()
        layer.read.bias.zero_()
        layer.read.bias.chunk(4)[1].copy_(torch.tensor([-50.0, 0.0, 50.0]))
    memory = torch.ones(1, 3)
    _, after, keep = layer.step(torch.zeros(1, 2), torch.zeros(1, 3), memory)
    close(keep[0], torch.tensor([0.0, 0.5, 1.0]))
    close(after, keep)  # nothing new is written


def test_watching_changes_nothing_and_holding_holds():
    tokenizer, reader = load_char_lstm()
    ids = torch.tensor(
        [tokenizer.encode("Shall I compare"), tokenizer.encode("thee to a summe")]
    )
    held = torch.full((2, 128), torch.nan)
    held[1, 98] = 0.5
    (logits, gates), (seen, memories, watched_gates) = reader(ids), watch(reader, ids, held)
    close(seen[0], logits[0])
    close(watched_gates[0], gates[0])
    assert (memories[1, :, 98] == 0.5).all()
    close(seen[1, 0], logits[1, 0])  # it is held after the character, not before
    assert (seen[1, -1] - logits[1, -1]).abs().max() > 1e-3


def test_another_file_is_refused(tmp_path, monkeypatch):
    (tmp_path / "checkpoints").mkdir()
    save_file({"bias": torch.ones(2)}, tmp_path / "checkpoints" / "lstm.safetensors")
    monkeypatch.setattr(recurrent, "corpora_folder", lambda: tmp_path)
    with pytest.raises(
        ValueError, match=r"lstm.safetensors does not say how its model was made"
    ):
        load_char_lstm()
