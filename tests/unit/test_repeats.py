"""Rows that repeat, counting in them, and a model's heads taken away."""

import torch

from lmcourse.repeats import LONGEST, TEXT, Repeater, average, counted, dissected, fresh


def test_rows_repeat_with_their_length_and_hold_tokens_twice():
    lengths = torch.tensor([8, 24])
    texts = fresh(lengths)
    assert texts.shape == (2, TEXT)
    for text, length in zip(texts, lengths.tolist(), strict=True):
        assert torch.equal(text[length:], text[:-length])
    assert len(texts[1, :LONGEST].unique()) < LONGEST


def test_counting_is_that_of_a_loop():
    text = fresh(torch.tensor([9]))
    for order in (1, 2, 3):
        row, costs = text[0].tolist(), []
        for at in range(LONGEST, TEXT - 1):
            share = [1 / 32] * 32
            for n in range(order):
                key = row[at + 1 - n : at + 1]
                ends = [row[i] for i in range(n, at + 1) if row[i - n : i] == key]
                whole = 0.1 + len(ends)
                share = [(0.1 * x + ends.count(k)) / whole for k, x in enumerate(share)]
            costs.append(-torch.tensor(share[row[at + 1]]).log())
        found = counted(text, order, 0.1)[0]
        torch.testing.assert_close(found, torch.stack(costs), rtol=1e-3, atol=1e-5)


def test_a_head_away_returns_its_mean_and_comes_back():
    torch.manual_seed(0)
    model, texts = Repeater(rotary=False), fresh(torch.full((4,), LONGEST))
    part, whole = model.layers[1], model(texts)[0]
    with average(part, 0, 1):
        assert torch.equal(model(texts)[0], model(texts)[0])
        assert not torch.allclose(model(texts)[0], whole)
    assert torch.equal(model(texts)[0], whole)
    rows = dissected(model, texts)
    assert [(row["layer"], row["head"]) for row in rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
