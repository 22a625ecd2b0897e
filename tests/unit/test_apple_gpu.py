"""On an Apple GPU, which has no float64, functions return what they do on the CPU.

Tensors go to the CPU before they become float64. The GPU is the stand-in of `apple_gpu`.
"""

import numpy as np
import pytest
import torch

from apple_gpu import AppleGpu
from berts import loud_bert
from gpts import small_gpt
from lmcourse import guessing, lines, own_text, verbs_and_nouns, word_order
from lmcourse.exercises.attention import normal
from lmcourse.figures import embeddings
from lmcourse.gpt.inside import losses_at, losses_without
from lmcourse.models import load_bert
from lmcourse.positions import rotate
from lmcourse.pronouns import head_parts
from lmcourse.stand_ins import straight_line
from lmcourse.tokenization import CharTokenizer

IDS = torch.tensor([0, 3, 1, 4, 1, 5, 2, 5, 3, 5, 0, 2, 4, 1, 3, 2, 0, 5])
BERT = {
    "head_parts": lambda *bert: head_parts(*bert, "a bird sang", 1, 2),
    "encode_pairs": lambda *bert: verbs_and_nouns.encode_pairs(*bert, ["dance"]),
    "words_before": lambda *bert: verbs_and_nouns.words_before(*bert, ["dance"], 0.5),
    "before_direction": verbs_and_nouns.before_direction,
    "order_parts": lambda *bert: vars(word_order.order_parts(["a", "bird"], *bert)),
}
GPT = {
    "losses_at": lambda gpt: losses_at(
        gpt, IDS.to(gpt.tokens.weight.device), torch.tensor([4, 11]), 4
    ),
    "new_line_probs": lambda gpt: lines.new_line_probs(
        gpt, CharTokenizer("\n ,abc"), ["a,", ",a"]
    ),
    "gpt_probs": lambda gpt: guessing.gpt_probs(gpt)([3, 1, 4]),
    "own_text.losses": lambda gpt: own_text.losses(gpt, IDS),
}


@pytest.fixture
def apple_gpu():
    with AppleGpu():
        yield


@pytest.fixture(scope="module")
def tokenizer():
    return load_bert(device="cpu")[0]


def small_bert():
    """Return a BERT of 12 numbers a token, always the same one."""
    sizes = {"hidden_size": 12, "intermediate_size": 24, "num_attention_heads": 3}
    return loud_bert(0, 3, **sizes)


def numbers(value):
    """Return all numbers in a float, an array, a Tensor, or several, as one array."""
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list | tuple):
        return np.concatenate([numbers(each) for each in value])
    return np.ravel(value)


def equal(got, want):
    np.testing.assert_array_equal(numbers(got), numbers(want))


@pytest.mark.usefixtures("apple_gpu")
def test_the_stand_in_has_no_float64_and_mixes_with_nothing():
    model = small_gpt().to("mps")
    logits = model(IDS[None, :5].to("mps"))
    assert logits.device == torch.device("mps")
    assert logits.cpu().double().dtype == torch.float64
    for turn in (torch.Tensor.double, lambda x: x.to(torch.float64), torch.Tensor.numpy):
        with pytest.raises(TypeError):
            turn(logits)
    with pytest.raises(RuntimeError):
        model(IDS[None, :5])


@pytest.mark.parametrize("name", BERT)
def test_what_a_bert_is_asked(tokenizer, name):
    want = BERT[name](tokenizer, small_bert())
    with AppleGpu():
        equal(BERT[name](tokenizer, small_bert().to("mps")), want)


def test_the_contest_of_verbs_and_nouns(tokenizer):
    model = small_bert()
    taught = verbs_and_nouns.encode_pairs(tokenizer, model, ["dance", "fight"])
    want = embeddings.contest(tokenizer, model, model, taught, taught)
    with AppleGpu():
        moved = small_bert().to("mps")
        view = embeddings.contest(tokenizer, moved, moved, taught, taught)
    assert view.data == want.data


@pytest.mark.parametrize("name", GPT)
def test_what_a_gpt_is_asked(name):
    want = GPT[name](small_gpt())
    with AppleGpu():
        equal(GPT[name](small_gpt().to("mps")), want)


def test_losses_without_a_part():
    windows = IDS.unfold(0, 9, 5)
    want = losses_without(small_gpt(), windows[:, :-1], windows[:, 1:])
    with AppleGpu():
        windows = windows.to("mps")
        got = losses_without(small_gpt().to("mps"), windows[:, :-1], windows[:, 1:])
    equal(got.to_numpy(), want.to_numpy())


def test_rotary_positions():
    x = normal(3, 4)
    want = rotate(x, torch.arange(3))
    with AppleGpu():
        equal(rotate(x.to("mps"), torch.arange(3, device="mps")).cpu(), want)


def test_a_straight_line():
    given, returned, asked = normal(9, 4), normal(9, 3, seed=1), normal(2, 4, seed=2)
    want = straight_line(given, returned)(asked)
    with AppleGpu():
        line = straight_line(given.to("mps"), returned.to("mps"))
        equal(line(asked.to("mps")).cpu(), want)
