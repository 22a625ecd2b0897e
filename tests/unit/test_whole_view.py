"""What the view *whole* shows before any script runs, and what it refuses."""

import bs4
import pytest
import torch

from gpts import small_gpt
from lmcourse import views
from lmcourse.gpt.inside import lens
from lmcourse.masking import MaskedBert
from lmcourse.mini_bert import load_mini_bert
from lmcourse.tokenization import CharTokenizer
from lmcourse.views.whole import _neurons, read, strongest_attention

TEXT = "a <b>b"


@pytest.fixture(scope="module")
def gpt():
    return CharTokenizer("ab< >\n"), small_gpt()


@pytest.fixture(scope="module")
def bert():
    tokenizer, model, _ = load_mini_bert()
    assert isinstance(model, MaskedBert)
    return tokenizer, model.half().float()


def reading(view):
    return view.data["models"][0]["reading"]


def test_what_is_stored_of_a_gpt_is_torch_s(gpt):
    tokenizer, model = gpt
    view = views.whole(gpt=(TEXT, tokenizer, model))
    ids = torch.tensor([tokenizer.encode(TEXT)])
    page = bs4.BeautifulSoup(view.stored, "html.parser")
    with torch.no_grad():
        probs = model(ids)[0, -1].softmax(-1)
        layers = lens(model, ids)[1:, 0, -1].softmax(-1)
    share, best = probs.max(-1)
    names = {" ": "·", "\n": "⏎"}
    word = names.get(tokenizer.alphabet[best], tokenizer.alphabet[best])
    first = page.select(".lmw-answer tr")[1]
    assert [cell.text for cell in first] == [word, f"{100 * share:.1f}\N{NO-BREAK SPACE}%"]
    rows = page.select(".lmw-layers tr")[1:]
    for row, probs in zip(rows, layers, strict=True):
        share, own = probs.max(-1)
        name = names.get(tokenizer.alphabet[own], tokenizer.alphabet[own])
        assert row.select("td")[-1].text == f"“{name}” {100 * share:.0f}\N{NO-BREAK SPACE}%"
    data = reading(view)
    for layer, weights in enumerate(model.attentions(ids)):
        stored = torch.tensor(data["weights"][layer]).view(weights[0].shape) / 1000
        torch.testing.assert_close(stored, weights[0], atol=6e-4, rtol=0)
    assert f"“{word}”" in view.alt
    assert not page.find("b", string="b")  # the text is text


def test_without_its_strongest_neuron_a_layer_says_what_is_told(gpt, bert):
    for tokenizer, model, blocks, place in (
        (*gpt, gpt[1].blocks, 5),
        (*bert, bert[1].bert.layers, 2),
    ):
        is_bert = isinstance(model, MaskedBert)
        ids = bert[0]("my [MASK] is")["input_ids"] if is_bert else tokenizer.encode(TEXT)
        data = read(model, ids, place, str)
        layer = len(blocks) - 1  # after it the model itself answers
        neuron, value, up, more, down, less = data["neurons"][layer][0]

        def remove(module, inputs, neuron=neuron, value=value, place=place):
            assert inputs[0][0, place, neuron].item() == pytest.approx(value, abs=1e-3)
            changed = inputs[0].clone()
            changed[0, place, neuron] = 0
            return (changed,)

        with torch.no_grad():
            before = model(torch.tensor([ids]))[0, place].softmax(-1)
            with blocks[layer].feed_forward.down.register_forward_pre_hook(remove):
                after = model(torch.tensor([ids]))[0, place].softmax(-1)
        change = before - after
        assert (int(change.argmax()), int(change.argmin())) == (up, down)
        assert change.max().item() == pytest.approx(more, abs=1e-3)
        assert change.min().item() == pytest.approx(less, abs=1e-3)


def test_the_strongest_attention_leaves_out_the_first_token_and_the_place():
    data = {"ids": [5, 6, 7], "place": 2}
    rows = [[0] * 6 + [700, 100, 200], [0] * 6 + [500, 300, 200]]
    assert strongest_attention(data | {"weights": [rows]}, 0) == (1, 1, 300)
    alone = {"ids": [5], "place": 0, "weights": [[[1000]]]}
    assert strongest_attention(alone, 0) == (0, 0, 1000)


def test_what_cannot_be_shown_is_told(gpt, bert):
    with pytest.raises(ValueError, match="a model, please"):
        views.whole()
    for text, message in (("", "these are 0"), ("a" * 9, "1 to 8 tokens.*these are 9")):
        with pytest.raises(ValueError, match=message):
            views.whole(gpt=(text, *gpt))
    for text in ("my eyes", "[MASK] my [MASK]"):
        with pytest.raises(ValueError, match="one \\[MASK\\]"):
            views.whole(bert=(text, *bert))
    with pytest.raises(ValueError, match="1 to 40 tokens"):
        views.whole(bert=("[MASK] " + "sun " * 60, *bert))


def test_of_tokens_that_are_the_same_but_for_rounding_the_first_is_named():
    changes = torch.tensor([[0.1, -0.2, -0.2 - 2e-7, 0.1 + 2e-7]])
    ((number, _, raised, _, lowered, _),) = _neurons(
        torch.tensor([1]), torch.ones(2), changes
    )
    assert (number, raised, lowered) == (1, 0, 1)


@pytest.mark.parametrize(
    ("changes", "first"),
    [
        ([0.1, 0.102, -0.202], 1),  # two in a hundred more is no rounding
        ([0.1, 0.1005, -0.2005], 0),
        ([-3e-9, -1e-9, -2e-9], 1),  # nothing but rounding: none is above 0
    ],
)
def test_a_token_that_changes_more_is_named_wherever_it_stands(changes, first):
    changes = torch.tensor([changes])
    ((_, _, raised, more, _, _),) = _neurons(torch.tensor([1]), torch.ones(2), changes)
    assert raised == first
    assert more == pytest.approx(changes[0, first].item(), abs=1e-4)
    ((_, _, _, _, lowered, less),) = _neurons(torch.tensor([1]), torch.ones(2), -changes)
    assert lowered == first
    assert less == pytest.approx(-changes[0, first].item(), abs=1e-4)
