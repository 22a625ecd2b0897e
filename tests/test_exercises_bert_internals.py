"""The exercises of *bert-internals*: each known mistake is recognised and named."""

import pytest
import torch

from lmcourse import exercises

CHAPTER = "bert-internals"


def places(bert, ids):
    return bert.embeddings.position_embeddings(torch.arange(ids.shape[1]))


def word(bert, ids):
    return bert.embeddings.word_embeddings(ids)


def kind(bert, kinds):
    return bert.embeddings.token_type_embeddings(kinds)


def norm(bert, total):
    return bert.embeddings.LayerNorm(total)


def pooled(states, weight, bias):
    return torch.tanh(states @ weight.T + bias)


def means(states, mask):
    mask = mask[..., None]
    return [(h * mask).sum(1) / mask.sum(1) for h in states]


def most(average, special, itself=True):
    hidden = special | (torch.eye(len(special), dtype=torch.bool) & itself)
    return average.masked_fill(hidden, -1).argmax(-1)


NO = torch.zeros(7, dtype=torch.bool)
MISTAKES = [
    ("embed", lambda b, i, k: word(b, i), "word table alone"),
    ("embed", lambda b, i, k: word(b, i) + places(b, i) + kind(b, k), "not normalised"),
    ("embed", lambda b, i, k: norm(b, word(b, i) + kind(b, k)), "position is missing"),
    ("embed", lambda b, i, k: norm(b, word(b, i) + places(b, i)), "type is missing"),
    (
        "embed",
        lambda b, i, k: norm(b, word(b, i) + places(b, i) + kind(b, 0 * k)),
        "not used",
    ),
    (
        "embed",
        lambda b, i, k: norm(b, word(b, i)) + norm(b, places(b, i)) + norm(b, kind(b, k)),
        "before the sum",
    ),
    ("embed", lambda b, i, k: b(i, token_type_ids=k), "stopped with TypeError"),
    ("layer_parameters", lambda d, f: 4 * d * d + 2 * d * f + 2 * d, "biases are missing"),
    ("layer_parameters", lambda d, f: 4 * d * d + 2 * d * f + 4 * d, "linear layers"),
    (
        "layer_parameters",
        lambda d, f: 4 * (d * d + d) + 2 * d * f + d + f,
        "normalisations are missing",
    ),
    (
        "layer_parameters",
        lambda d, f: 4 * (d * d + d) + 2 * d * f + d + f + 2 * d,
        "only one normalisation",
    ),
    (
        "layer_parameters",
        lambda d, f: 3 * (d * d + d) + 2 * d * f + d + f + 4 * d,
        "fourth matrix",
    ),
    (
        "layer_parameters",
        lambda d, f: 4 * (d * d + d) + d * f + f + 4 * d,
        "two linear layers",
    ),
    ("pooler", lambda s, w, b: s[:, 0] @ w.T + b, "tanh is missing"),
    ("pooler", lambda s, w, b: torch.tanh(s[:, 0] @ w + b), "wrong way round"),
    ("pooler", lambda s, w, b: pooled(s.mean(1), w, b), "mean of the tokens"),
    ("pooler", lambda s, w, b: pooled(s[:, -1], w, b), "last token"),
    ("pooler", lambda s, w, b: pooled(s[0], w, b), "first text of the batch"),
    ("pooler", pooled, "every token"),
    ("pooler", lambda s, w, b: pooled(s[:, 0], w, 0 * b), "bias is missing"),
    (
        "last_four",
        lambda h, m: torch.cat([x.mean(1) for x in h[-4:]], -1),
        "padding is averaged in",
    ),
    (
        "last_four",
        lambda h, m: torch.cat([(x * m[..., None]).mean(1) for x in h[-4:]], -1),
        "still counted",
    ),
    ("last_four", lambda h, m: torch.cat(means(h[:4], m), -1), "first four"),
    ("last_four", lambda h, m: torch.cat(means(h[-5:-1], m), -1), "left out"),
    ("last_four", lambda h, m: torch.cat(means(h[:-5:-1], m), -1), "turned round"),
    ("last_four", lambda h, m: sum(means(h[-4:], m)) / 4, "are averaged"),
    ("last_four", lambda h, m: sum(means(h[-4:], m)), "are added"),
    ("last_four", lambda h, m: torch.cat([x[:, 0] for x in h[-4:]], -1), "CLS"),
    (
        "most_attended",
        lambda w, s: most(w.mean(0), NO),
        "[CLS] and [SEP] are still allowed",
    ),
    (
        "most_attended",
        lambda w, s: most(w.mean(0), s, itself=False),
        "itself is still allowed",
    ),
    ("most_attended", lambda w, s: w.mean(0).argmax(-1), "nothing is left out"),
    ("most_attended", lambda w, s: most(w.mean(0).T, s), "looks most at each"),
    (
        "most_attended",
        lambda w, s: (
            w.mean(0)
            .masked_fill(s[:, None] | torch.eye(7, dtype=torch.bool), -1)
            .argmax(-1)
        ),
        "left out as rows",
    ),
    ("most_attended", lambda w, s: most(w[0], s), "only the first head"),
    ("most_attended", lambda w, s: most(w, s), "one answer a head"),
    (
        "most_attended",
        lambda w, s: w.mean(0).masked_fill(s, -1).max(-1).values,
        "these are weights",
    ),
    ("lookback", lambda w: w.triu(1).sum(-1)[:, :-1].mean(-1), "looks forward: rows"),
    ("lookback", lambda w: w.triu(1).sum(-1).mean(-1), "forward, and over all"),
    ("lookback", lambda w: w.triu(1).sum(-1)[:, 1:].mean(-1), "columns to the left"),
    ("lookback", lambda w: w.tril().sum(-1)[:, 1:].mean(-1), "itself is counted"),
    ("lookback", lambda w: w.tril().sum(-1).mean(-1), "counted, and the first"),
    ("lookback", lambda w: w.tril(-1).sum(-1).mean(-1), "first token is averaged in"),
    (
        "lookback",
        lambda w: w.diagonal(-1, dim1=-2, dim2=-1).mean(-1),
        "only the token just before",
    ),
    ("lookback", lambda w: w.tril(-1).sum((-1, -2)), "sum over the tokens"),
]


@pytest.mark.parametrize(("name", "answer", "said"), MISTAKES)
def test_each_mistake_has_its_diagnosis(name, answer, said):
    verdict = exercises.check(f"{CHAPTER}.{name}", answer)
    assert not verdict.ok
    assert said in verdict.message


def test_diagnoses_differ():
    messages = {
        exercises.check(f"{CHAPTER}.{name}", answer).message for name, answer, _ in MISTAKES
    }
    assert len(messages) == len(MISTAKES)


def test_a_new_mistake_is_told_without_the_answer():
    verdict = exercises.check(f"{CHAPTER}.lookback", lambda w: torch.zeros(3))
    assert not verdict.ok
    assert "3 of 3 numbers differ" in verdict.message
