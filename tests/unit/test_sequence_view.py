"""The view *sequence*: what it stores is what the models say."""

import numpy as np
import pytest
import torch

from lmcourse import views
from lmcourse.data import load_texts, train_val_test_split
from lmcourse.ngrams import NgramModel
from lmcourse.recurrent import load_char_lstm


@pytest.fixture(scope="module")
def view():
    return views.sequence("Or I shall live", order=4, unit=59)


def test_stored_chances_and_gates_are_the_models_own(view):
    tokenizer, reader = load_char_lstm()
    data, ids = view.data, tokenizer.encode("\nOr I shall live")
    training = tokenizer.encode(train_val_test_split(load_texts("sonnets")).training)
    counted = NgramModel(training, 4, tokenizer.vocab_size).next_probs(ids)
    np.testing.assert_allclose(data["counted"], counted, rtol=1e-9)
    logits, gates = reader.double()(torch.tensor([ids]))
    np.testing.assert_allclose(data["lstm"], logits[0, -1].softmax(-1), atol=1e-6)
    np.testing.assert_allclose(data["gates"], gates[0, 1:], atol=1e-4)


def test_it_tells_the_likeliest_and_what_is_forgotten(view):
    data = view.data
    best = data["alphabet"][int(np.argmax(data["counted"]))]
    shown = {" ": "·"}.get(best, best)
    assert (
        f"runs of 4 characters say: {shown} {100 * max(data['counted']):.1f} %" in view.alt
    )
    kept = [row[58] for row in data["gates"]]
    least = int(np.argmin(kept))
    assert f"at character {least + 1}, “{data['text'][least]}”" in view.alt
    assert view.stores == ["sonnets-training", "lstm"]


def test_what_is_stored_is_escaped():
    tokenizer, _ = load_char_lstm()
    assert "&" not in tokenizer.alphabet  # nor < or >; the quote is there
    stored = views.sequence("'", order=1).stored
    assert "&#x27;</span>" in stored


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"text": ""}, "1 to 80"),
        ({"text": "a" * 81}, "1 to 80"),
        ({"text": "a", "order": 7}, "1 to 6"),
        ({"text": "a", "unit": 129}, "units 1 to 128"),
        ({"text": "day 7"}, "the character .7. is not"),
    ],
)
def test_what_it_cannot_show_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        views.sequence(**given)
