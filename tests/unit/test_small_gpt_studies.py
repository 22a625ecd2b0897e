"""What the studies of n-gram lengths and of one layer compute."""

import numpy as np
import pytest
import torch

from lmcourse.ngrams import NgramModel
from lmcourse.tokenization import CharTokenizer
from studies.mini_gpt import ngram_lengths, one_layer

TEXT = "\n\n".join(["abba cab " * 9, "bacca bab " * 11, "cabba " * 5])  # three sonnets


@pytest.fixture
def averaged(tmp_path):
    """Return losses of two GPTs by seed, and the rows of their averages on a text."""
    tokenizer = CharTokenizer(TEXT)
    ids = torch.tensor(tokenizer.encode(TEXT))
    rng, positions = np.random.default_rng(0), len(ids) - ngram_lengths.FAR
    gpts = {1: rng.uniform(0.2, 2, positions), 3: rng.uniform(0.5, 3, positions)}
    for seed, losses in gpts.items():
        np.save(tmp_path / f"{seed}.npy", losses)
    rows = ngram_lengths.average(tmp_path, tokenizer, [ids, ids, ids], (1, 3), 1)
    return gpts, rows, tokenizer, ids.numpy()


def test_an_average_is_that_of_probabilities(averaged):
    gpts, rows, tokenizer, ids = averaged
    mean = -np.log((np.exp(-gpts[1]) + np.exp(-gpts[3])) / 2)
    (row,) = [row for row in rows if (row["seed"], row["with"]) == (3, "GPT")]
    sonnets = np.array(
        [TEXT.count("\n\n", 0, at) for at in range(ngram_lengths.FAR, len(TEXT))]
    )
    for number, (over_gpt, gained) in enumerate(
        zip(row["over_gpt"], row["gained"], strict=True)
    ):
        here = sonnets == number
        assert over_gpt == pytest.approx((gpts[3] - mean)[here].mean(), abs=1e-4)
        assert gained == pytest.approx((gpts[1] - mean)[here].mean(), abs=1e-4)
    counted = -np.log(NgramModel(ids, 5, tokenizer.vocab_size).probabilities(ids)[64:])
    (row,) = [row for row in rows if (row["seed"], row["with"]) == (1, 5)]
    both = -np.log((np.exp(-gpts[1]) + np.exp(-counted)) / 2)
    assert row["alone"] == pytest.approx(counted.mean(), abs=1e-4)
    assert row["over_gpt"][1] == pytest.approx(
        (gpts[1] - both)[sonnets == 1].mean(), abs=1e-4
    )


def test_every_gpt_is_averaged_with_every_length_and_every_other_gpt(averaged):
    _, rows, *_ = averaged
    pairs = [(row["seed"], row["with"]) for row in rows]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == {(s, n) for s in (1, 3) for n in (2, 3, 4, 5, 6, 7, 8, "GPT")}


def averages(long, other):
    """Return rows in which the worst long n-grams, and two GPTs, gain so much."""
    gains = {5: long, 6: 9.0, 7: 9.0, 8: 9.0, "GPT": other}
    return [
        {"seed": seed, "with": name, "gained": [gain, gain + 0.01 * seed]}
        for name, gain in gains.items()
        for seed in (1, 2)
    ]


@pytest.mark.parametrize(("long", "verdict"), [(0.3, "holds"), (0.1, "not so")])
def test_the_claim_of_lengths_goes_by_the_worst_of_the_long_ones(long, verdict):
    summary = ngram_lengths.summary({"averaged": averages(long, 0.2)})
    assert summary["verdict"] == verdict
    assert summary["interval"] == pytest.approx([long - 0.2, long - 0.2])


def layer(heads, **changed):
    """Return a run of one layer that goes by the number of characters, but for a change."""
    at_ends = dict.fromkeys(("as written", "letters shuffled", "no vowels"), 0.9)
    at_ends |= {"one letter throughout": 0.8, "20 characters fewer": 0.2} | changed
    probs = {change: {"ends": prob} for change, prob in at_ends.items()}
    return {
        "heads": heads,
        "seed": 1,
        "lines": probs,
        "reach": {"line ends": {"5": 2.0, "64": 1.5}},
    }


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        ([layer(4), layer(4)], "holds"),
        ([layer(4), layer(1, **{"as written": 0.1})], "holds"),  # one head isn't asked
        ([layer(4), layer(4, **{"one letter throughout": 0.4})], "not so"),
        ([layer(4, **{"20 characters fewer": 0.6}), layer(4)], "not so"),
    ],
)
def test_one_layer_goes_by_characters_with_every_seed(runs, verdict):
    summary = one_layer.summary({"runs": runs})
    assert (summary["verdict"], summary["interval"]) == (verdict, [0.5, 0.5])
