"""The view *sequence*: what it stores is what the models say."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lmcourse import views
from lmcourse.data import load_texts, train_val_test_split
from lmcourse.ngrams import NgramModel
from lmcourse.recurrent import load_char_lstm, watch

TEXT = "Or I shall live\nyour ep"


@pytest.fixture(scope="module")
def view():
    return views.sequence(TEXT, order=4, unit=98)


def test_stored_probabilities_and_unit_are_the_models_own(view):
    tokenizer, reader = load_char_lstm()
    data, ids = view.data, tokenizer.encode("\n" + TEXT)
    training = tokenizer.encode(train_val_test_split(load_texts("sonnets")).training)
    counted = NgramModel(training, 4, tokenizer.vocab_size).next_probs(ids)
    np.testing.assert_allclose(data["counted"], counted, rtol=1e-9)
    ids = torch.tensor([ids])
    logits, gates = reader.double()(ids)
    np.testing.assert_allclose(data["lstm"], logits[0, -1].softmax(-1), atol=1e-6)
    np.testing.assert_allclose(data["gates"], gates[0, 1:, 98], atol=1e-4)
    held = torch.full((1, 128), torch.nan)
    held[0, 98] = data["means"][98]
    off, memories, _ = watch(reader, ids, held)
    np.testing.assert_allclose(data["off"], off[0, -1].softmax(-1), atol=1e-3)
    for stored, scores in zip(data["losses"], (logits, off), strict=True):
        want = F.cross_entropy(scores[0, :-1], ids[0, 1:], reduction="none")
        np.testing.assert_allclose(stored, want, atol=1e-3)
    assert memories[0, 0, 98] == pytest.approx(data["means"][98])


def test_it_tells_the_likeliest_and_what_the_unit_is_worth(view):
    data = view.data
    best = data["alphabet"][int(np.argmax(data["counted"]))]
    first = f"{best} {100 * max(data['counted']):.1f}\N{NO-BREAK SPACE}%"
    sentence = f"After “your ep” the likeliest characters of the 4-gram model: {first}"
    assert sentence in view.alt
    least = int(np.argmin(data["memory"]))
    low, shown = data["memory"][least], {"\n": "⏎", " ": "·"}.get(TEXT[least], TEXT[least])
    written = f"{low:.2f}".replace("-", "−")
    assert f"98 is lowest, {written}, at character {least + 1}, “{shown}”" in view.alt
    on, off = np.mean(data["losses"], axis=1)
    assert f"Loss: {on:.2f}; with the unit frozen at its mean {off:.2f}." in view.alt
    assert view.stores == ["sonnets-training", "lstm", "lstm-random"]


def test_what_is_stored_is_escaped():
    tokenizer, _ = load_char_lstm()
    assert "&" not in tokenizer.alphabet  # nor < or >; the quote is there
    stored = views.sequence("'", order=1).stored
    assert "&#x27;</span>" in stored


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"text": ""}, "1 to 640"),
        ({"text": "a" * 641}, "1 to 640"),
        ({"text": "a", "order": 7}, "1 to 6"),
        ({"text": "a", "unit": 128}, "units 0 to 127"),
        ({"text": "day 7"}, "the character .7. is not"),
    ],
)
def test_what_it_cannot_show_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        views.sequence(**given)
