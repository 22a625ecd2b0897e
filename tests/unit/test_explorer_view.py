"""The stored state of the BERT explorer: each number is what transformers computes."""

import json

import bs4
import pytest
import torch

from berts import loud_bert
from lmcourse import int8, views
from lmcourse.bert import rebuild
from lmcourse.models import load_bert

LINE = "Fame is a bee. It has a song –"


@pytest.fixture(scope="module")
def tokenizer():
    return load_bert(device="cpu")[0]


def small(**other):
    sizes = {"hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 20}
    return loud_bert(5, 12, **sizes | other)


@pytest.fixture(scope="module", params=["default", "small", "ours"])
def case(request, tokenizer):
    """A model of transformers, and the view's data of the same model."""
    model = small()
    if request.param == "default":
        model = load_bert(device="cpu", attn_implementation="eager")[1]
    given = model
    if request.param == "ours":
        given = rebuild(model.config, model.state_dict())
    return model, views.bert_explorer(LINE, tokenizer, given, token=4)


def run(model, tokenizer, **asked):
    with torch.no_grad():
        return model(**tokenizer(LINE, return_tensors="pt"), **asked)


def numbers(line):
    return torch.tensor([float(word) for word in line.split()])


def pairs(line):
    words = line.split()
    return words[::2], [float(word) for word in words[1::2]]


def near(found, wanted, limit=6e-4):
    """Compare; three digits after the point are kept."""
    found = numbers(found) if isinstance(found, str) else found
    found = torch.as_tensor(found)
    torch.testing.assert_close(found, wanted, atol=limit, rtol=1e-3)


def test_weights_are_those_of_transformers(case, tokenizer):
    model, view = case
    data = view.data
    attentions = run(model, tokenizer, output_attentions=True).attentions
    assert data["tokens"] == tokenizer(LINE).tokens()
    for found, wanted in zip(data["weights"], attentions, strict=True):
        for line, head in zip(found, wanted[0], strict=True):
            near(line, head.flatten())


def test_lengths_are_of_the_value_that_each_head_adds(case, tokenizer):
    model, view = case
    states = run(model, tokenizer, output_hidden_states=True).hidden_states
    for number, layer in enumerate(model.encoder.layer):
        own, dense = layer.attention.self, layer.attention.output.dense
        value, size = own.value(states[number][0]), own.attention_head_size
        for head in range(own.num_attention_heads):
            only = torch.zeros_like(value)
            part = slice(head * size, (head + 1) * size)
            only[:, part] = value[:, part]
            lengths = (dense(only) - dense.bias).norm(dim=-1)
            near(view.data["lengths"][number][head], lengths)


def test_a_head_removed_is_one_that_hands_on_zeros(case, tokenizer):
    model, view = case
    final = run(model, tokenizer).last_hidden_state[0]
    for number, head in ((0, 0), (len(model.encoder.layer) - 1, 1)):
        layer = model.encoder.layer[number].attention
        size = layer.self.attention_head_size

        def zeroed(module, inputs, head=head, size=size):
            heads = inputs[0].clone()
            heads[..., head * size : (head + 1) * size] = 0
            return (heads, *inputs[1:])

        hook = layer.output.register_forward_pre_hook(zeroed)
        without = run(model, tokenizer).last_hidden_state[0]
        hook.remove()
        moved = (without - final).norm(dim=-1) / final.norm(dim=-1)
        near(view.data["moved"][number][head], moved)
        assert moved.max() > 0.01


def test_neighbours_are_the_nearest_of_the_whole_table(case, tokenizer):
    model, view = case
    table = model.embeddings.word_embeddings.weight
    states = run(model, tokenizer, output_hidden_states=True).hidden_states
    for level, state in enumerate(states):
        cosines = torch.cosine_similarity(state[0, 4], table, dim=-1)
        pieces, found = pairs(view.data["near"][level][4])
        near(found, cosines.topk(len(found)).values)
        near(found, cosines[tokenizer.convert_tokens_to_ids(pieces)])


def test_how_far_int8_moves_the_states_is_told(case, tokenizer):
    model, view = case
    drift = int8.drift(model, **tokenizer(LINE, return_tensors="pt")).max()
    near(view.data["drift"], drift, 1e-4)


def means(data):
    """Return how far the states move without each head, (layers, heads)."""
    moved = [[numbers(line).mean() for line in layer] for layer in data["moved"]]
    return torch.tensor(moved)


def test_it_begins_with_the_head_that_matters_most(case):
    data = case[1].data
    moved = means(data)
    assert moved[data["layer"], data["head"]] == moved.max()


def test_of_a_layer_or_a_head_the_best_is_taken(tokenizer):
    data = views.bert_explorer(LINE, tokenizer, small(), layer=0).data
    moved = means(data)
    assert (data["layer"], data["head"]) == (0, int(moved[0].argmax()))
    data = views.bert_explorer(LINE, tokenizer, small(), head=1).data
    assert (data["layer"], data["head"]) == (int(moved[:, 1].argmax()), 1)


def test_what_is_stored_is_read_without_a_script(tokenizer):
    view = views.bert_explorer(LINE, tokenizer, small(), layer=1, head=1, token=2)
    page, data = bs4.BeautifulSoup(view.stored, "html.parser"), view.data
    rows = [[cell.text for cell in row] for row in page.find_all("tr")]
    count = len(data["tokens"])
    assert [row[0] for row in rows[1 : 1 + count]] == data["tokens"]
    weights = numbers(data["weights"][1][1])[2 * count : 3 * count]
    shown = [
        weights,
        weights * numbers(data["lengths"][1][1]),
        numbers(data["moved"][1][1]),
    ]
    found = torch.tensor([[float(x) for x in row[1:]] for row in rows[1 : 1 + count]])
    near(found, torch.stack(shown).T, 0.0051)
    pieces, cosines = pairs(data["near"][2][2])
    piece, cosine = rows[2 + count][1].split()
    assert piece == pieces[0]
    assert float(cosine) == pytest.approx(cosines[0], abs=0.0051)
    assert "In layer 1, head 1, “is” looks most at" in page.text
    assert view.alt in " ".join(page.text.split())
    json.dumps(view.description())


def test_a_hostile_line_is_text(tokenizer):
    view = views.bert_explorer("</script><b>&amp;</b>", tokenizer, small())
    assert "<b>&lt;/script&gt;&lt;b&gt;&amp;amp;" in view.stored
    assert "</script" not in view.stored


@pytest.mark.parametrize(
    ("line", "settings", "message"),
    [
        ("", {}, "3 to 48 tokens.* has 2"),
        ("bee " * 47, {}, "has 49"),
        ("a bee", {"layer": 3}, "layer must be 0 to 2, not 3"),
        ("a bee", {"head": -1}, "head must be 0 to 1, not -1"),
        ("a bee", {"token": 4}, "token must be 0 to 3, not 4"),
        ("a bee", {"token": None}, "token must be 0 to 3, not None"),
    ],
)
def test_what_is_not_there_is_refused(tokenizer, line, settings, message):
    with pytest.raises(ValueError, match=message):
        views.bert_explorer(line, tokenizer, small(), **settings)


def test_a_model_of_few_positions_bounds_the_line(tokenizer):
    with pytest.raises(ValueError, match="3 to 5 tokens"):
        views.bert_explorer(LINE, tokenizer, small(max_position_embeddings=5))
