"""Rows that repeat, counting in them, and a model whose heads are ablated."""

import copy

import pytest
import torch

from lmcourse.repeats import (
    LONGEST,
    TEXT,
    TOKENS,
    Repeater,
    ablate_heads,
    averaged_heads,
    held_out_texts,
    token_losses,
    train_repeater,
)
from studies.inside_gpt.inside_gpt import count_losses


def test_rows_repeat_with_their_length_and_hold_tokens_twice():
    lengths = torch.tensor([8, 24])
    texts = held_out_texts(lengths)
    assert texts.shape == (2, TEXT)
    for text, length in zip(texts, lengths.tolist(), strict=True):
        assert torch.equal(text[length:], text[:-length])
        assert not torch.equal(text[length - 1 : 47], text[: 48 - length])
    tokens = held_out_texts(torch.full((200,), LONGEST))[:, :LONGEST]
    assert set(tokens.flatten().tolist()) == set(range(TOKENS))
    assert len(tokens[0].unique()) < LONGEST  # drawn with replacement


def test_counting_is_that_of_a_loop():
    text = held_out_texts(torch.tensor([9]))
    for order in (1, 2, 3):
        row, losses = text[0].tolist(), []
        for at in range(LONGEST, TEXT - 1):
            share = [1 / 32] * 32
            for n in range(order):
                key = row[at + 1 - n : at + 1]
                ends = [row[i] for i in range(n, at + 1) if row[i - n : i] == key]
                whole = 0.1 + len(ends)
                share = [(0.1 * x + ends.count(k)) / whole for k, x in enumerate(share)]
            losses.append(-torch.tensor(share[row[at + 1]]).log())
        ours = count_losses(text, order, 0.1)[0]
        torch.testing.assert_close(ours, torch.stack(losses), rtol=1e-3, atol=1e-5)


def by_hand(model, texts, layer, head):
    """Return a model in which a head returns its mean over texts: columns and a bias."""
    returned = []

    def keep(module, inputs):
        returned.append(inputs[0][..., 32 * head : 32 * (head + 1)].mean((0, 1)))

    with model.layers[layer].output.register_forward_pre_hook(keep), torch.no_grad():
        model(texts[:, :-1])
    changed = copy.deepcopy(model)
    output = changed.layers[layer].output
    columns = output.weight[:, 32 * head : 32 * (head + 1)]
    output.bias = torch.nn.Parameter((columns @ returned[0]).detach())
    with torch.no_grad():
        columns.zero_()
    return changed


@pytest.mark.parametrize("rotary", [True, False])
def test_an_ablated_head_returns_its_mean_and_comes_back(rotary):
    torch.manual_seed(0)
    model = Repeater(rotary=rotary).double()
    texts = held_out_texts(torch.full((4,), LONGEST))
    with torch.no_grad():
        whole = token_losses(model, texts)
        rows = {(row["layer"], row["head"]): row for row in ablate_heads(model, texts)}
        assert [*rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        for (layer, head), row in rows.items():
            want = (token_losses(by_hand(model, texts, layer, head), texts) - whole).mean(0)
            assert row["first"] == pytest.approx(want[:23].mean().item(), abs=1e-9)
            assert row["again"] == pytest.approx(want[24:].mean().item(), abs=1e-9)
            weights = model(texts[:, :-1])[1][layer][:, head]
            before = [weights[:, i, i - 1].mean().item() for i in range(24, 48)]
            followed = [weights[:, i, i - 23].mean().item() for i in range(24, 48)]
            assert row["before"] == pytest.approx(sum(before) / 24, abs=1e-9)
            assert row["followed"] == pytest.approx(sum(followed) / 24, abs=1e-9)
        with averaged_heads(model.layers[1], 0, 1):
            flat = model.layers[1](torch.randn(3, 9, 64).double())[0]
        assert torch.allclose(flat, flat[:1, :1].expand_as(flat))  # nothing else is left
        assert torch.equal(token_losses(model, texts), whole)


def test_training_is_a_plain_loop():
    model, history = train_repeater(5, steps=3, learning_rate=0.01)
    torch.manual_seed(5)
    generator = torch.Generator().manual_seed(5)
    plain = Repeater()
    optimizer = torch.optim.AdamW(plain.parameters())
    for step in range(3):
        lengths = torch.randint(8, 25, (32,), generator=generator)
        rows = torch.randint(32, (32, 24), generator=generator)
        texts = torch.stack(
            [row[torch.arange(49) % n] for row, n in zip(rows, lengths, strict=True)]
        )
        probs = plain(texts[:, :-1])[0].log_softmax(-1)
        losses = -probs.gather(-1, texts[:, 1:, None])[..., 0]
        assert history[step] == pytest.approx(losses[:, 24:].mean().item(), rel=1e-5)
        optimizer.param_groups[0]["lr"] = 0.01 * (step + 1) / 50
        optimizer.zero_grad()
        losses.mean().backward()
        torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
        optimizer.step()
    for one, other in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
