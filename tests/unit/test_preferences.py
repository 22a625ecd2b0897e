"""Preferences: what is counted in a line, masked losses, rewards, and DPO."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression

from lmcourse import preferences as pref
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.tokenization import CharTokenizer
from studies.preferences import rounds
from studies.preferences.rarer import kinds_of_pairs

TOKENIZER = CharTokenizer("\n ()ATabcdeft")


@pytest.fixture
def model():
    torch.manual_seed(0)
    sizes = {"layers": 1, "heads": 2, "d_model": 8, "context": 64, "dropout": 0.5}
    return GPT(GPTConfig(TOKENIZER.vocab_size, **sizes)).eval()


@pytest.mark.parametrize(
    ("line", "counted"),
    [
        ("When to the sessions of sweet silent thought", (44, 8, 6, 1, 0)),
        ("O! Thou, that thy", (17, 4, 3, 2, 2)),
        ("", (0, 0, 0, 0, 0)),
        ("Love's not Time's fool,", (23, 4, 0, 2, 1)),
    ],
)
def test_properties_are_counted(line, counted):
    assert tuple(pref.properties(line).values()) == counted
    assert tuple(pref.properties(line)) == pref.PROPERTIES


def test_differences_are_first_less_second():
    differences = pref.differences(["a a b", "c"], ["a b", "c d e"], ("words", "echoes"))
    assert differences.tolist() == [[1, 2], [-2, 0]]
    assert pref.differences([], []).shape == (0, 5)


def test_only_the_answer_is_marked():
    ids, is_answer = pref.encode_dialogues(TOKENIZER, ["(A)\n", "(T)\n"], ["ab\n", "t\n"])
    marked = [
        TOKENIZER.decode(row[mark].tolist())
        for row, mark in zip(ids, is_answer, strict=True)
    ]
    assert ids.shape == (2, 7)
    assert marked == ["ab\n", "t\n"]
    assert TOKENIZER.decode(ids[1, :6].tolist()) == "(T)\nt\n"


def test_log_probs_and_loss_are_those_of_the_answer(model):
    ids, is_answer = pref.encode_dialogues(TOKENIZER, ["(A)\n", "(T)\n"], ["ab\n", "t\n"])
    with torch.no_grad():
        logits = model(ids)
        log_probs = pref.answer_log_probs(model, ids, is_answer)
    by_hand = []
    for row, text in enumerate(("ab\n", "t\n")):
        at = logits[row, 3 : 3 + len(text)]  # the last character of the request foretells
        wanted = torch.tensor(TOKENIZER.encode(text))
        by_hand.append(-F.cross_entropy(at, wanted, reduction="sum"))
    torch.testing.assert_close(log_probs, torch.stack(by_hand))
    loss = pref.answer_loss(logits, ids, is_answer)
    torch.testing.assert_close(loss, -sum(by_hand) / 5)


def test_request_has_no_gradient(model):
    ids, is_answer = pref.encode_dialogues(TOKENIZER, ["(A)\n"], ["ab\n"])
    logits = model(ids).detach().requires_grad_()
    pref.answer_loss(logits, ids, is_answer).backward()
    assert (logits.grad[0].abs().sum(-1) > 0).tolist() == [False] * 3 + [True] * 3 + [False]


def test_bradley_terry_of_a_hand_worked_example():
    # Odds of 3 to 1 and of 1 to 1: probabilities 3/4 and 1/2.
    margins = torch.tensor([np.log(3.0), 0.0])
    expected = -(np.log(0.75) + np.log(0.5)) / 2
    assert pref.bradley_terry_loss(margins).item() == pytest.approx(expected)
    far = torch.tensor([-1000.0], requires_grad=True)
    pref.bradley_terry_loss(far).backward()
    assert far.grad.item() == pytest.approx(-1)


@pytest.mark.parametrize("ridge", [0.1, 1.0, 7.0])
def test_reward_is_a_logistic_regression(ridge):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3)) * [10, 1, 3]
    chosen = rows @ [0.1, -1, 0.3] + rng.logistic(size=40) > 0
    other = LogisticRegression(C=1 / ridge, fit_intercept=False, tol=1e-10, max_iter=10_000)
    expected = other.fit(rows, chosen).coef_[0]
    coefficients = pref.fit_reward(rows, chosen, ridge)
    np.testing.assert_allclose(coefficients, expected, rtol=1e-4, atol=1e-6)
    # Which of the two stands first is nothing to the reward.
    np.testing.assert_allclose(
        pref.fit_reward(-rows, ~chosen, ridge), coefficients, atol=1e-9
    )


def test_reward_of_choices_that_can_all_be_foretold_stays_finite():
    rows = np.array([[1000.0, 1], [2000, -1], [-1500, 2]])
    weights = pref.fit_reward(rows, rows[:, 0] > 0, 1e-3)
    assert np.isfinite(weights).all()
    assert ((rows @ weights > 0) == (rows[:, 0] > 0)).all()


def test_reward_is_found_where_whole_steps_jump_too_far():
    rng = np.random.default_rng(128)
    rows = np.round(rng.standard_cauchy((10, 3)) * 100)
    chosen = rng.random(10) < 0.5
    signed = np.where(chosen[:, None], rows, -rows)

    def gradient(weights):
        wrong = 1 / (1 + np.exp(np.clip(signed @ weights, -500, 500)))
        return -signed.T @ wrong + 0.001 * weights

    assert np.abs(gradient(pref.fit_reward(rows, chosen, 0.001))).max() < 1e-6


def test_reward_of_nothing_is_zero():
    assert pref.fit_reward(np.zeros((6, 2)), np.arange(6) < 3).tolist() == [0, 0]
    assert pref.fit_reward(np.zeros((0, 3)), np.zeros(0)).tolist() == [0, 0, 0]


def test_reward_says_what_does_not_fit():
    with pytest.raises(ValueError, match=r"\(4, 2\)"):
        pref.fit_reward(np.zeros((4, 2)), np.zeros(3))
    with pytest.raises(ValueError, match="ridge"):
        pref.fit_reward(np.zeros((4, 2)), np.zeros(4), ridge=0)


def test_dpo_begins_at_log_two_and_has_the_published_gradient():
    generator = torch.Generator().manual_seed(0)
    sides = torch.randn(4, 6, dtype=torch.float64, generator=generator)
    start = pref.dpo_loss(sides[0], sides[1], sides[0], sides[1])
    assert start.item() == pytest.approx(np.log(2))
    chosen, rejected = (side.clone().requires_grad_() for side in sides[:2])
    pref.dpo_loss(chosen, rejected, sides[2], sides[3], beta=0.3).backward()
    margins = 0.3 * ((sides[0] - sides[2]) - (sides[1] - sides[3]))
    expected = -0.3 * torch.sigmoid(-margins) / 6  # Rafailov et al. 2023, section 4
    torch.testing.assert_close(chosen.grad, expected)
    torch.testing.assert_close(rejected.grad, -expected)


def test_dpo_gradient_by_finite_differences():
    sides = [torch.randn(3, dtype=torch.float64) for _ in range(4)]
    inputs = [side.requires_grad_() for side in sides]
    assert torch.autograd.gradcheck(pref.dpo_loss, inputs)


def test_best_of_takes_the_first_of_equals():
    groups = [["aa", "b", "cc"], ["d", "e", "f"]]
    assert pref.best_of(groups, len) == ["aa", "d"]


def test_batches_take_all_once():
    drawn = pref.batches_of(7, 3, seed=0)
    rows = [next(drawn) for _ in range(3)]
    assert sorted(torch.cat(rows).tolist()) == list(range(7))
    assert [len(each) for each in rows] == [3, 3, 1]


def dialogues(answers):
    return pref.encode_dialogues(TOKENIZER, ["(A)\n", "(T)\n"] * 2, answers)


def test_fine_tuning_raises_answers_and_leaves_the_model(model):
    taught = dialogues(["ab ab\n", "tt tt\n"] * 2)
    before = pref.reference_log_probs(model, *taught)
    weights = [weight.clone() for weight in model.parameters()]
    trained = pref.train_answers(model, taught, 30, rate=1e-2, batch=3)
    assert (pref.reference_log_probs(trained, *taught) > before).all()
    assert all(map(torch.equal, weights, model.parameters()))
    again = pref.train_answers(model, taught, 30, rate=1e-2, batch=3)
    assert all(map(torch.equal, trained.parameters(), again.parameters()))


def test_dpo_raises_the_chosen_above_the_rejected(model):
    chosen, rejected = dialogues(["ab ab\n"] * 4), dialogues(["cd\n"] * 4)
    start = [pref.reference_log_probs(model, *side) for side in (chosen, rejected)]
    trained = pref.train_dpo(model, chosen, rejected, 20, rate=1e-2, batch=2)
    end = [pref.reference_log_probs(trained, *side) for side in (chosen, rejected)]
    gained = (end[0] - start[0]) - (end[1] - start[1])
    assert (gained > 1).all()
    as_published = pref.train_dpo(model, chosen, rejected, 20, beta=0.1, rate=1e-2, batch=2)
    assert all(map(torch.equal, trained.parameters(), as_published.parameters()))


def test_answers_end_with_their_line(model):
    written = pref.write_answers(model, TOKENIZER, ["(A)\n"] * 5, seed=1, temperature=1.0)
    assert len(written) == 5
    assert not any("\n" in line or len(line) > pref.LONGEST for line in written)
    assert len(set(written)) > 1
    assert written == pref.write_answers(
        model, TOKENIZER, ["(A)\n"] * 5, seed=1, temperature=1.0
    )


def test_kinds_of_pairs_of_groups_worked_by_hand():
    """Four answers have 0, 2, 4 and 5 echoes; others to the same request are as good."""
    poor, fair, good, best = "a b c d e", "a a b c d", "a a b b c", "a a b b b"
    groups = [[good, poor, best, fair], ["f f g g g", poor], ["a b", "c d"], [best, poor]]
    requests = ["(A)", "(A)", "(B)", "(B)"]
    pairs = kinds_of_pairs(requests, groups, 0)
    other = groups[1][0]
    assert pairs["far apart"] == [
        ("(A)", best, poor),
        ("(A)", other, poor),
        ("(B)", best, poor),
    ]
    assert pairs["both poor"] == [
        ("(A)", fair, poor),
        ("(A)", other, poor),
        ("(B)", best, poor),
    ]
    assert pairs["equals"] == [("(A)", best, other), ("(A)", other, best)]


@pytest.mark.parametrize(
    ("way", "chosen"),
    [
        ("the best", ["a a b b b", "f f g g g"]),
        ("DPO", ["a a b b b"]),  # of the second request all lines have as many echoes
    ],
)
def test_a_round_trains_the_model_on_what_was_chosen_of_its_lines(monkeypatch, way, chosen):
    groups = [["a a b b c", "a a b b b", "a b c d e"], ["f f g g g", "f f f g g"]]
    runs = SimpleNamespace(
        seed=3,
        part=lambda steps: steps,
        encoded=lambda requests, lines: list(zip(requests, lines, strict=True)),
        dpo=lambda model, pairs, steps: (model, pairs, steps),
    )
    monkeypatch.setattr(
        rounds,
        "train_answers",
        lambda model, dialogues, steps, *_, **__: (model, dialogues, steps),
    )
    trained, lines = rounds.one_round(runs, "before", way, ["(A)", "(F)"], groups, None)
    pairs = {"the best": list(zip(["(A)", "(F)"], chosen, strict=False))}
    pairs["DPO"] = [("(A)", "a a b b b", "a b c d e")]
    assert lines == chosen
    assert trained == ("before", pairs[way], 100)


def test_any_line_of_each_group_is_drawn(monkeypatch):
    runs = SimpleNamespace(seed=3, part=lambda steps: steps, encoded=lambda *_: None)
    monkeypatch.setattr(rounds, "train_answers", lambda *_, **__: None)
    rng = np.random.default_rng(0)
    groups = [["a a b", "a b c", "b c d"]] * 60
    _, chosen = rounds.one_round(runs, None, "any line", ["(A)"] * 60, groups, rng)
    assert len(chosen) == 60
    assert {*chosen} == {*groups[0]}


def test_a_line_is_asked_for_by_its_letter():
    assert pref.request("T") == "(T)\n"


@pytest.mark.parametrize(
    ("line", "words", "marks"),
    [
        ("O'er well-known ways; o'er — what?", 5, 3),
        ("a, b. c: d! ’tis", 5, 4),
    ],
)
def test_words_hold_apostrophes_and_hyphens_and_marks_are_counted(line, words, marks):
    counts = pref.properties(line)
    assert (counts["words"], counts["marks"]) == (words, marks)


@pytest.fixture
def exact_model(model):
    """The model in double precision.

    The loss has no gradient by the keys' biases but what rounding leaves. AdamW divides it
    by its own size, so in single precision these few weights differ between processors.
    """
    return model.double()


def by_hand(model, loss_of, steps, rate):
    """Train a copy as the docstrings say, with PyTorch's own schedule; return it."""
    model = copy.deepcopy(model).eval()
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.0)
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        falling.step()
    return model


def assert_same_weights(trained, expected):
    for a, b in zip(trained.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(a, b.detach(), rtol=1e-6, atol=1e-12)
    assert not trained.training
    assert not any(weight.requires_grad for weight in trained.parameters())


def test_fine_tuning_is_adamw_at_a_rate_that_falls_to_zero(exact_model):
    """A batch holds all dialogues, so that their order is nothing to the loss."""
    ids, is_answer = dialogues(["ab ab\n", "tt tt\n"] * 2)

    def loss_of(trained):
        log_probs = trained(ids)[:, :-1].log_softmax(-1)
        picked = log_probs.gather(-1, ids[:, 1:, None])[..., 0]
        return -picked[is_answer[:, 1:]].mean()

    expected = by_hand(exact_model, loss_of, 5, 3e-3)
    frozen = exact_model.requires_grad_(False)
    tuned = pref.train_answers(frozen, (ids, is_answer), 5, 3e-3, 4)
    assert_same_weights(tuned, expected)


def test_dpo_is_trained_against_the_model_that_it_began_with(exact_model):
    chosen, rejected = dialogues(["ab ab\n"] * 4), dialogues(["cd\n"] * 4)
    reference = copy.deepcopy(exact_model)

    def gained(trained, side):
        ids, is_answer = side
        sums = []
        for each in (trained, reference):
            log_probs = each(ids)[:, :-1].log_softmax(-1)
            picked = log_probs.gather(-1, ids[:, 1:, None])[..., 0]
            sums.append((picked * is_answer[:, 1:]).sum(1))
        return sums[0] - sums[1].detach()

    def loss_of(trained):
        margins = 0.5 * (gained(trained, chosen) - gained(trained, rejected))
        return torch.log1p(torch.exp(-margins)).mean()

    expected = by_hand(exact_model, loss_of, 5, 3e-3)
    tuned = pref.train_dpo(exact_model, chosen, rejected, 5, 0.5, 3e-3, 4)
    assert_same_weights(tuned, expected)


def test_log_probs_are_the_same_in_parts(model):
    ids, is_answer = dialogues(["ab ab\n", "tt tt\n", "c\n", "d d\n"])
    at_once = pref.answer_log_probs(model, ids, is_answer)
    in_parts = pref.reference_log_probs(model, ids, is_answer, batch=3)
    torch.testing.assert_close(in_parts, at_once.detach())
    assert not in_parts.requires_grad


def test_an_answer_at_a_low_temperature_is_the_likeliest(model):
    ids = TOKENIZER.encode("(A)\n")
    for _ in range(pref.LONGEST):
        ids.append(model(torch.tensor([ids]))[0, -1].argmax().item())
    likeliest = TOKENIZER.decode(ids[4:]).partition("\n")[0]
    assert pref.write_answers(model, TOKENIZER, ["(A)\n"], temperature=1e-4) == [likeliest]
    other = pref.write_answers(model, TOKENIZER, ["(A)\n"] * 4, 1, temperature=1.0)
    assert other != pref.write_answers(model, TOKENIZER, ["(A)\n"] * 4, 2, temperature=1.0)
