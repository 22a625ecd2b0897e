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
    indices = dates.parts(dates.to_ids([SHORT, LONG]))[0].tolist()
    assert indices == [0, 3, 1, 1, 1, 3, 2, 2, 2, 2] + [4] * (len(LONG) - len(SHORT))


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
    losses = dates.train_on_dates(model, dates.drawing(known, 0, size=16), 12, 1e-2)
    assert losses[-1] < losses[0] - 0.5


def test_a_day_in_all_styles():
    assert dates.styles(datetime.date(1886, 12, 5)) == [
        "5 December 1886",
        "December 5, 1886",
        "5-Dec-1886",
        "5 December, 1886",
        "December 5 1886",
        "5 december 1886",
        "5-dec-1886",
        "1886 December 5",
    ]
    pairs = dates.pairs_of([datetime.date(1886, 1, 5)], style=7)
    assert pairs == [("1886 January 5", "1886-01-05")]


def test_centuries_have_all_their_days():
    every_day = dates.days_of(17, 19)
    assert every_day[0] == datetime.date(1700, 1, 1)
    assert every_day[-1] == datetime.date(1999, 12, 31)
    assert len(every_day) == len(set(every_day)) == 2 * 36_524  # 24 leap years each
    assert not any(day.year // 100 == 18 for day in every_day)


def test_held_out_are_the_days_of_the_page_and_two_thousand_at_random():
    held_out, known = dates.split_days()
    page = [datetime.date.fromisoformat(day) for day in dates.SHOWN]
    assert held_out[: len(page)] == page
    assert len(set(held_out)) == len(held_out) == len(page) + 2000
    assert known == sorted(known)
    assert held_out != sorted(held_out)
    assert 900 < sum(day.year < 1900 for day in held_out) < 1100


def test_a_target_stands_between_its_start_and_its_end():
    source, target = dates.tensors([(SHORT, "1886-05-01"), (LONG, "1886-09-21")])
    assert source.tolist() == dates.to_ids([SHORT, LONG]).tolist()
    assert target[:, 0].tolist() == [dates.START] * 2
    assert target[:, -1].tolist() == [dates.STOP] * 2
    assert dates.to_text(target[1, 1:]) == "1886-09-21"


def test_batches_are_drawn_from_the_days_and_styles_that_are_given():
    known = days(5)
    draw = dates.drawing(known, seed=2, kinds=(1, 4), size=50)
    batches = [draw(), draw()]
    assert batches[0] != batches[1]
    draw_again = dates.drawing(known, seed=2, kinds=(1, 4), size=50)
    assert batches == [draw_again(), draw_again()]
    seen = set()
    for source, answer in batches[0] + batches[1]:
        day = datetime.date.fromisoformat(answer)
        assert day in known
        seen.add((day, dates.styles(day).index(source)))
    assert {style for _, style in seen} == {1, 4}
    assert {day for day, _ in seen} == {*known}
    assert len(batches[0]) == 50


def test_training_draws_the_first_three_styles_and_128_days():
    batch = dates.drawing(days(), seed=0)()
    drawn = set()
    for source, answer in batch:
        drawn.add(dates.styles(datetime.date.fromisoformat(answer)).index(source))
    assert drawn == {0, 1, 2}
    assert len(batch) == 128


def test_losses_are_of_the_characters_that_are_written():
    """Of the first step; then the model has changed, and each step draws anew."""
    batch = [*dates.pairs_of(days(3)), ("1 May 33", "33")]  # a shorter target
    model = reader()
    source, target = dates.tensors(batch)
    probabilities = model(source, target[:, :-1]).softmax(-1)
    nats = [
        -probabilities[row, at, target[row, at + 1]].log().item()
        for row, (_, answer) in enumerate(batch)
        for at in range(len(answer) + 1)
    ]
    drawn = []
    losses = dates.train_on_dates(model, lambda: drawn.append(batch) or batch, 3, 1e-2)
    assert losses[0] == pytest.approx(sum(nats) / len(nats), rel=1e-5)
    assert len(losses) == len(drawn) == 3
    assert losses[2] < losses[0]


def test_the_share_right_is_of_the_characters_that_count(monkeypatch):
    pairs = [("a", "1886-05-01"), ("b", "1886-05-02"), ("c", "1887-05-01")]
    wrote = ["1886-05-01", "1886-05-01", "1886-06-01"]
    monkeypatch.setattr(dates, "write", lambda model, sources: wrote)
    assert dates.share_right(None, pairs) == pytest.approx(1 / 3)
    for part, share in (("day", 2 / 3), ("month", 2 / 3), ("year", 2 / 3)):
        assert dates.share_right(None, pairs, dates.ANSWER[part]) == pytest.approx(share)


def test_attention_to_all_parts_is_the_whole():
    weights = dates.attention_to_parts(reader(), dates.pairs_of(days(8)))
    assert weights.shape == (11, 4)  # ten characters and the end
    assert_close(weights.sum(1), torch.ones(11))


def test_what_reads_is_kept_and_what_writes_is_trained():
    whole = reader()
    hidden = dates.without_part(whole, 1)
    free = {name for name, weight in hidden.named_parameters() if weight.requires_grad}
    assert {name.partition(".")[0] for name in free} == {"decoder", "output"}
    pair = dates.tensors(dates.pairs_of(days(2)))
    logits = whole(pair[0], pair[1])
    assert not torch.allclose(hidden.eval()(*pair), logits, atol=1e-3)
    assert_close(dates.without_part(whole, -1).eval()(*pair), logits)


def test_a_new_model_hides_nothing():
    pair = dates.tensors(dates.pairs_of(days(2)))
    model = dates.new_model(0, dates.WithoutPart).eval()
    assert_close(model(*pair), reader()(*pair))


def test_what_follows_the_end_is_padding():
    rows = dates.greedy(
        trained().eval(), dates.to_ids([SHORT, LONG]), dates.START, dates.STOP, 24
    )
    text = ["".join(dates.CHARACTERS[i] for i in row) for row in rows.tolist()]
    assert text == ["1886-05-01>", "1886-09-21>"]  # no longer than the longest
    ends = dates.greedy(
        trained().eval(), dates.to_ids([SHORT, LONG]), dates.START, dates.NUMBER["5"], 10
    )
    first = "".join(dates.CHARACTERS[i] for i in ends[0].tolist())
    assert first == "1886-05___"
