"""Models that read dates: their data, and what is hidden from them."""

import datetime
from collections import Counter

import pytest
import torch
from torch.testing import assert_close

from lmcourse import data, dates
from studies.encoder_decoder.one_vector import KINDS, join_pairs, new_kind
from studies.encoder_decoder.proofs import unpacked

SHORT, LONG = "1 May 1886", "21 September 1886"


def reader(seed=0):
    return dates.new_model(seed).eval()


def trained():
    """Return the model of the page's first picture."""
    model = dates.new_model(0)
    stored = data.stored("encoder-decoder")["results"]["runs"][0]["weights"]
    model.load_state_dict(unpacked(stored))
    return model


def days(count=60):
    first = datetime.date(1886, 1, 1)
    return [first + datetime.timedelta(7 * week) for week in range(count)]


def test_days_are_split_without_a_rest():
    held_out, known = dates.split_days()
    assert not set(held_out) & set(known)
    first, last = datetime.date(1800, 1, 1), datetime.date(1999, 12, 31)
    both = {*held_out, *known}
    assert (min(both), max(both)) == (first, last)
    assert len(both) == (last - first).days + 1


def test_every_style_names_the_day():
    for day in days():
        for source in dates.styles(day):
            assert str(day.year) in source
            assert f"{day:%b}".lower() in source.lower()
            assert str(day.day) in source.replace(str(day.year), "")


def test_ids_become_the_text_again_without_padding():
    rows = dates.to_ids([SHORT, LONG])
    assert dates.to_text(rows[0]).rstrip("_") == SHORT
    assert dates.to_text(rows[1]) == LONG


def test_the_parts_of_a_source():
    found = dates.parts(dates.to_ids([SHORT, LONG]))[0].tolist()
    assert found == [0, 3, 1, 1, 1, 3, 2, 2, 2, 2] + [4] * (len(LONG) - len(SHORT))


def test_exchanged_months_have_their_length_and_nothing_else():
    pairs = dates.pairs_of(days())
    exchanged = dates.exchange_months(pairs)
    moved = 0
    for (source, answer), (other, same) in zip(pairs, exchanged, strict=True):
        day, month, year = source.split()
        assert answer == same
        assert [day, year] == other.split()[::2]
        assert len(other.split()[1]) == len(month)
        moved += other.split()[1] != month
    assert moved > 0
    months = [
        Counter(source.split()[1] for source, _ in each) for each in (pairs, exchanged)
    ]
    assert months[0] == months[1]


@pytest.mark.parametrize("part", range(4))
def test_a_hidden_part_gets_no_attention(part):
    model = dates.without_part(reader(), part)
    pairs = dates.pairs_of(days(8))
    assert dates.attention_to_parts(model, pairs)[:, part].max() == 0
    assert dates.attention_to_parts(reader(), pairs)[:, part].min() > 0


def test_many_sources_at_once_are_written_as_one_by_one():
    model, alone = trained(), []
    for source in (SHORT, LONG):
        written = [dates.START]
        while written[-1] != dates.STOP and len(written) <= 12:
            logits = model(dates.to_ids([source]), torch.tensor([written]))
            written.append(int(logits[0, -1].argmax()))
        alone.append(dates.to_text(torch.tensor(written[1:])))
    assert alone == ["1886-05-01", "1886-09-21"]
    assert dates.write(model, [SHORT, LONG]) == alone
    assert dates.write(model, [LONG, SHORT], limit=4) == ["1886", "1886"]


def test_the_share_right_at_each_position_is_that_of_the_likeliest_characters():
    model, pairs = reader(), dates.pairs_of(days(9))
    right = torch.zeros(11)
    for source, answer in pairs:
        given = dates.to_ids([f"<{answer}"])
        best = model(dates.to_ids([source]), given)[0].argmax(-1)
        right += best == dates.to_ids([f"{answer}>"])[0]
    assert_close(dates.right_at(model, pairs).float(), right / 9)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing(kind):
    model = new_kind(kind, 0).eval()
    target = dates.to_ids(["<1886"])
    alone = model(dates.to_ids([SHORT]), target)
    beside = model(dates.to_ids([SHORT, LONG]), target.expand(2, -1))[:1]
    assert_close(beside, alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "one vector" in kind])
def test_one_vector_leaves_one_place_to_attend_to(kind):
    memory, mask = new_kind(kind, 0).encode(dates.to_ids([SHORT, LONG]))
    if kind != "LSTM, one vector":  # which does not attend
        assert mask.shape == (2, 1, 1, 1)
    states = memory if torch.is_tensor(memory) else memory[1][0][0]
    assert states.reshape(2, -1).shape == (2, 64)


def test_pairs_are_joined_two_by_two():
    pairs = [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]
    assert join_pairs(pairs, 2) == [("a b", "1 2"), ("c d", "3 4")]


def test_training_lowers_the_loss():
    model = reader()
    _, known = dates.split_days()
    losses = dates.train(model, dates.drawing(known, 0, size=16), 12, 1e-2)
    assert losses[-1] < losses[0] - 0.5
