"""The exercises of *positional-encoding*: each known mistake is recognised and named."""

import math

import pytest
import torch

from lmcourse import exercises
from lmcourse.positions import alibi_bias, alibi_slopes, frequencies, rotate

CHAPTER = "positional-encoding"


def check(name, answer):
    return exercises.check(f"{CHAPTER}.{name}", answer)


def waves(offset, width, f=torch.cos):
    return f(offset * frequencies(width)).sum().item()


def both(turned, new):
    return torch.cat((turned, new), 1)


def turned_at(key, position):
    return rotate(key, torch.tensor([position]))


def order(heads, rows):
    one = torch.arange(rows).view(heads, -1, 2).mT  # (heads, 2, pairs)
    return one.flatten()


def step(heads, tokens):
    return alibi_bias(heads, tokens)[:, -1:]


def offsets(table, tokens):
    place = torch.arange(tokens)
    return place - place[:, None], len(table) // 2


def clipped(table, tokens):
    offset, reach = offsets(table, tokens)
    return table[offset.clamp(-reach, reach) + reach].permute(2, 0, 1)


def wrapped(table, tokens):
    offset, reach = offsets(table, tokens)
    return table[(offset + reach) % len(table)].permute(2, 0, 1)


def no_reach(table, tokens):
    offset, reach = offsets(table, tokens)
    return table[offset.clamp(-reach, reach)].permute(2, 0, 1)


def no_sign(table, tokens):
    offset, reach = offsets(table, tokens)
    return table[reach - offset.abs().clamp(max=reach)].permute(2, 0, 1)


def base(tokens, width, turn=2 * math.pi, rest=2):
    return (tokens / turn) ** (width / (width - rest))


MISTAKES = [
    ("dot_by_offset", lambda o, d: waves(o, d, torch.sin), "sine where a cosine"),
    ("dot_by_offset", lambda o, d: 2 * waves(o, d), "twice too much"),
    ("dot_by_offset", lambda o, d: waves(o, 2 * d), "frequency of its own"),
    (
        "dot_by_offset",
        lambda o, d: (
            waves(o, 2 * d) - (o * frequencies(2 * d)[d // 2 :]).cos().sum().item()
        ),
        "exponent is half",
    ),
    ("dot_by_offset", lambda o, d: waves(o, d) / (d / 2), "mean over the pairs"),
    ("append_key", both, "position 0"),
    ("append_key", lambda t, k: rotate(both(t, k)), "a second time"),
    ("append_key", lambda t, k: both(t, turned_at(k, t.shape[1] - 1)), "one too few"),
    ("append_key", lambda t, k: both(t, turned_at(k, t.shape[1] + 1)), "one too many"),
    ("append_key", lambda t, k: turned_at(k, t.shape[1]), "missing from the cache"),
    ("append_key", lambda t, k: both(turned_at(k, t.shape[1]), t), "at the end"),
    ("half_rows", lambda w, h: w[:, order(h, len(w))], "columns are reordered"),
    ("half_rows", lambda w, h: w[order(1, len(w))], "as one head"),
    ("half_rows", lambda w, h: w[order(h, len(w)).argsort()], "the way back"),
    ("half_rows", lambda w, h: w, "nothing has changed"),
    ("alibi_step", lambda h, t: step(h, t).flip(-1), "wrong end"),
    ("alibi_step", lambda h, t: -step(h, t), "far keys are rewarded"),
    ("alibi_step", lambda h, t: step(h, t + 1)[..., :-1], "distance 0 from itself"),
    ("alibi_step", lambda h, t: step(h, t).flip(0), "opposite order"),
    (
        "alibi_step",
        lambda h, t: step(h, t)[:1] * torch.ones(h, 1, 1),
        "every head has the same slope",
    ),
    ("alibi_step", lambda h, t: step(h, t)[:, 0], "axis of the query"),
    ("alibi_step", alibi_bias, "only the newest one asks"),
    ("clipped_bias", lambda w, t: clipped(w, t).mT, "past and future are swapped"),
    ("clipped_bias", lambda w, t: clipped(w, t).permute(1, 2, 0), "first axis"),
    ("clipped_bias", wrapped, "wrap around"),
    ("clipped_bias", no_reach, "add reach"),
    ("clipped_bias", no_sign, "sign of the offset is lost"),
    ("smallest_base", lambda w, t: base(t, w, 1), "not one"),
    ("smallest_base", lambda w, t: base(t, w, math.pi), "half a turn"),
    ("smallest_base", lambda w, t: base(t, w, rest=0), "exponent is not 1"),
    ("smallest_base", lambda w, t: -1.0, "one positive number"),
    ("smallest_base", lambda w, t: torch.ones(2), "one positive number"),
]


@pytest.mark.parametrize(
    ("name", "answer", "diagnosis"), MISTAKES, ids=[f"{m[0]}-{m[2]}" for m in MISTAKES]
)
def test_a_known_mistake_is_recognised(name, answer, diagnosis):
    verdict = check(name, answer)
    assert not verdict
    assert diagnosis in verdict.message


def test_slopes_that_fit_four_heads_only_are_found_out():
    slopes = alibi_slopes(4)

    def four(heads, tokens):
        back = torch.arange(tokens - 1, -1, -1)
        return slopes.repeat(2)[:heads, None, None] * -back

    assert not check("alibi_step", four)


def test_an_answer_of_another_kind_gets_a_plain_message():
    assert "pass the function itself" in check("smallest_base", 10000.0).message
    assert "stopped with" in check("half_rows", lambda weight: weight).message
