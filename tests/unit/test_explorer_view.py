"""The stored state of the BERT explorer: each number is what transformers computes."""

import json
from itertools import product

import bs4
import pytest
import torch

from berts import loud_bert, of_a_head
from lmcourse import views
from lmcourse.models import load_bert

LINE = "Fame is a bee. It has a song –"


@pytest.fixture(scope="module")
def tokenizer():
    return load_bert(device="cpu")[0]


def small(**other):
    sizes = {"hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 20}
    return loud_bert(5, 12, **sizes | other)


@pytest.fixture(scope="module")
def case(tokenizer):
    """A model of transformers, and its view."""
    model = small()
    return model, views.bert_explorer(LINE, tokenizer, model)


def numbers(line):
    return torch.tensor([float(word) for word in line.split()])


def pairs(line):
    words = line.split()
    return words[::2], [float(word) for word in words[1::2]]


def near(values, wanted, limit=6e-4):
    """Compare; three digits after the point are kept."""
    values = numbers(values) if isinstance(values, str) else values
    values = torch.as_tensor(values)
    torch.testing.assert_close(values, wanted, atol=limit, rtol=1e-3)


def test_numbers_of_every_head_are_those_of_transformers(case, tokenizer):
    model, view = case
    batch = tokenizer(LINE, return_tensors="pt")
    assert view.data["tokens"] == batch.tokens()
    for layer, head in product(range(3), range(2)):
        weights, lengths, moved, _ = of_a_head(model, batch, layer, head)
        lines = [view.data[name][layer][head] for name in ("weights", "lengths", "moved")]
        for line, wanted in zip(lines, (weights.flatten(), lengths, moved), strict=True):
            near(line, wanted)
        assert moved.max() > 0.01


def test_neighbours_are_the_nearest_of_the_whole_table(case, tokenizer):
    model, view = case
    table = model.embeddings.word_embeddings.weight
    *_, states = of_a_head(model, tokenizer(LINE, return_tensors="pt"), 0, 0)
    for level, state in enumerate(states):
        cosines = torch.cosine_similarity(state[4], table, dim=-1)
        tokens, stored = pairs(view.data["near"][level][4])
        near(stored, cosines.topk(len(stored)).values)
        near(stored, cosines[tokenizer.convert_tokens_to_ids(tokens)])


def test_it_begins_with_the_head_that_matters_most(case):
    data = case[1].data
    moved = [[numbers(line).mean() for line in layer] for layer in data["moved"]]
    assert moved[data["layer"]][data["head"]] == max(map(max, moved))


def test_what_is_stored_is_read_without_a_script(case):
    view = case[1]
    page, data = bs4.BeautifulSoup(view.stored, "html.parser"), view.data
    layer, head = data["layer"], data["head"]
    rows = [[cell.text for cell in row] for row in page.find_all("tr")]
    count = len(data["tokens"])
    assert [row[0] for row in rows[1 : 1 + count]] == data["tokens"]
    weights = numbers(data["weights"][layer][head])[count : 2 * count]
    lengths, moved = (numbers(data[key][layer][head]) for key in ("lengths", "moved"))
    shown = [weights, weights * lengths, moved]
    printed = torch.tensor([[float(x) for x in row[1:]] for row in rows[1 : 1 + count]])
    near(printed, torch.stack(shown).T, 0.0051)
    tokens, cosines = pairs(data["near"][layer + 1][1])
    token, cosine = rows[2 + count][1].split()
    assert token == tokens[0]
    assert float(cosine) == pytest.approx(cosines[0], abs=0.0051)
    assert f"In layer {layer}, head {head}, “fame” attends most to" in page.text
    assert view.alt in " ".join(page.text.split())
    json.dumps(view.description())


def test_a_hostile_line_is_text(tokenizer):
    view = views.bert_explorer("</script><b>&amp;</b>", tokenizer, small())
    assert "<b>&lt;/script&gt;&lt;b&gt;&amp;amp;" in view.stored
    assert "</script" not in view.stored


@pytest.mark.parametrize(
    ("line", "message"), [("", "3 to 48 tokens.* has 2"), ("bee " * 47, "has 49")]
)
def test_a_line_of_no_or_too_many_tokens_is_refused(tokenizer, line, message):
    with pytest.raises(ValueError, match=message):
        views.bert_explorer(line, tokenizer, small())


def test_a_model_of_few_positions_bounds_the_line(tokenizer):
    with pytest.raises(ValueError, match="3 to 5 tokens"):
        views.bert_explorer(LINE, tokenizer, small(max_position_embeddings=5))


def test_the_untrained_model_reads_the_same_line(case, tokenizer):
    model, plain = case
    other = loud_bert(6, 12, hidden_size=24, num_attention_heads=2, intermediate_size=20)
    view = views.bert_explorer(LINE, tokenizer, model, other)
    alone = views.bert_explorer(LINE, tokenizer, other)
    for name in ("weights", "lengths", "moved", "near"):
        assert view.data["untrained"][name] == alone.data[name]
        assert view.data[name] == plain.data[name] != alone.data[name]
    assert "untrained" not in plain.data
