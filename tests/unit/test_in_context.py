"""Little tasks told by examples, and those who copy or count."""

import math

import pytest
import torch

from lmcourse import in_context
from lmcourse.in_context import ANSWERS, NOISE, PAIRS, QUESTIONS
from studies.scaling.in_context import train_on_tasks
from studies.scaling.partners import evidence, sample_cut


def test_tasks_are_shuffled_once(monkeypatch):
    in_context.task_numbers.cache_clear()
    shuffled = []
    shuffle = torch.randperm
    monkeypatch.setattr(
        torch, "randperm", lambda *a, **k: shuffled.append(a) or shuffle(*a, **k)
    )
    train_on_tasks(0, 3, 1e-3)
    assert len(shuffled) == 1


def drawn(count=200):
    generator = torch.Generator().manual_seed(0)
    tasks = in_context.sample_tasks(count, generator)
    return tasks, in_context.sample_texts(tasks, generator)


def test_a_text_tells_its_task_and_pairs_share_their_answer():
    tasks, ids = drawn()
    asked, answered = ids[:, ::2], ids[:, 1::2] - QUESTIONS
    assert asked.unique().tolist() == list(range(QUESTIONS))
    assert answered.unique().tolist() == list(range(ANSWERS))
    right = (answered == tasks.gather(1, PAIRS[asked])).float().mean()
    assert right == pytest.approx(1 - NOISE * (1 - 1 / ANSWERS), abs=0.02)
    assert PAIRS.bincount().tolist() == [2] * 8


def test_tasks_that_are_held_back_are_never_drawn_for_training():
    generator = torch.Generator().manual_seed(1)
    apart = [
        {tuple(task) for task in in_context.sample_tasks(20_000, generator, held).tolist()}
        for held in (False, True)
    ]
    assert not apart[0] & apart[1]
    assert len(apart[0]) > 15_000
    assert len(apart[1]) > 4_000  # of 4,096


def test_shuffled_texts_have_the_same_answers_elsewhere():
    _, ids = drawn()
    mixed = in_context.shuffle_answers(ids, torch.Generator().manual_seed(1))
    assert (mixed[:, ::2] == ids[:, ::2]).all()
    assert (mixed[:, 1::2].sort(1).values == ids[:, 1::2].sort(1).values).all()
    assert (mixed != ids).float().mean() > 0.2


@pytest.mark.parametrize("pairs", [False, True])
def test_counting_is_bayes_rule(pairs):
    _, ids = drawn(3)
    losses = in_context.count_losses(ids, 0.9, pairs)
    for row, text in enumerate(ids.tolist()):
        shown = list(zip(text[::2], text[1::2], strict=True))
        for at, (asked, answered) in enumerate(shown):
            odds = [1.0] * ANSWERS
            for question, answer in shown[:at]:
                if question == asked or (pairs and question % 8 == asked % 8):
                    for right in range(ANSWERS):
                        hit = answer - QUESTIONS == right
                        odds[right] *= 0.9 if hit else 0.1 / 3
            chances = [each / sum(odds) for each in odds]
            share = sum(
                chance * (0.9 if right == answered - QUESTIONS else 0.1 / 3)
                for right, chance in enumerate(chances)
            )
            assert losses[row, at].item() == pytest.approx(-math.log(share), abs=1e-4)


def test_copying_takes_the_last_answer():
    text = torch.tensor([[0, 16, 8, 17, 0, 18, 0, 18, 0, 16] + [1, 16] * 19])
    perplexities = in_context.copy_losses(text, 0.7)[0, :5].exp()
    assert (1 / perplexities).tolist() == pytest.approx([0.25, 0.25, 0.1, 0.7, 0.1])


def test_answers_are_judged_by_the_targets_and_training_is_repeated_by_its_seed():
    model, history = train_on_tasks(0, 3, 1e-3)
    assert train_on_tasks(0, 3, 1e-3)[1] == history
    assert train_on_tasks(0, 3, 1e-3, known=2)[1] != history
    _, ids = drawn(5)
    mixed = in_context.shuffle_answers(ids, torch.Generator().manual_seed(1))
    with torch.no_grad():
        logits = model(mixed)[0][:, ::2].log_softmax(-1)
        losses = in_context.answer_losses(model, mixed, ids)
        want = -logits.gather(-1, ids[:, 1::2, None])[..., 0]
        torch.testing.assert_close(losses, want)
        assert not torch.equal(losses, in_context.answer_losses(model, mixed))


def test_what_came_before_an_answer_is_sorted():
    _, ids = drawn(20)
    masks = evidence(ids)
    for row, text in enumerate(ids[:, ::2].tolist()):
        for at in range(12):
            *before, asked = text[: 13 + at]
            itself = asked in before
            partner = (asked + 8) % 16 in before
            names = {
                "itself": itself and not partner,
                "partner": partner and not itself,
                "both": itself and partner,
                "neither": not itself and not partner,
            }
            assert {name: bool(masks[name][row, at]) for name in names} == names


def test_where_the_link_is_cut_partners_agree_by_chance():
    ids = sample_cut(2000, torch.Generator().manual_seed(0))
    asked, answered = ids[:, ::2], ids[:, 1::2]
    agree = answered[:, :, None] == answered[:, None, :]
    earlier = torch.ones(24, 24).tril(-1).bool()
    same = (asked[:, :, None] == asked[:, None, :]) & earlier
    partner = (asked[:, :, None] == (asked[:, None, :] + 8) % 16) & earlier
    assert agree[partner].float().mean() == pytest.approx(1 / ANSWERS, abs=0.02)
    right = 1 - NOISE * (1 - 1 / ANSWERS)
    both = right**2 + (1 - right) ** 2 / (ANSWERS - 1)
    assert agree[same].float().mean() == pytest.approx(both, abs=0.02)
