"""What nulls are made of: shuffled, whole, the same again, and nothing else touched."""

from collections import Counter

import torch
from torch import nn

from studies import nulls


def tied():
    """Return a model with an embedding that is its output matrix, too."""
    torch.manual_seed(0)
    model = nn.ModuleDict({"embed": nn.Embedding(50, 8), "out": nn.Linear(8, 50)})
    model["out"].weight = model["embed"].weight
    return model


def test_weights_are_shuffled_within_each_tensor():
    model = tied()
    before = [each.clone() for each in model.parameters()]
    other = nulls.shuffled_weights(model)
    for old, new, unchanged in zip(
        before, other.parameters(), model.parameters(), strict=True
    ):
        assert torch.equal(old, unchanged)
        assert not torch.equal(old, new)
        assert torch.equal(old.flatten().sort().values, new.flatten().sort().values)
    assert other["out"].weight is other["embed"].weight
    assert next(other.parameters()).requires_grad
    again, third = nulls.shuffled_weights(model), nulls.shuffled_weights(model, seed=1)
    assert torch.equal(again["out"].weight, other["out"].weight)
    assert not torch.equal(third["out"].weight, other["out"].weight)


def test_words_are_shuffled_among_texts_that_keep_their_lengths():
    texts = ["a bee is\na fly", "", "one two three four five six seven"]
    mixed = nulls.shuffled_words(texts)
    assert [len(text.split()) for text in mixed] == [5, 0, 7]
    assert Counter(" ".join(mixed).split()) == Counter(" ".join(texts).split())
    assert mixed != [" ".join(text.split()) for text in texts]


def test_labels_are_shuffled():
    labels = list(range(20))
    assert sorted(nulls.shuffled(labels)) == labels
    assert nulls.shuffled(labels) != labels
    assert nulls.shuffled(labels) == nulls.shuffled(labels)
