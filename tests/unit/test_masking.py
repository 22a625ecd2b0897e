"""Masked words: what is chosen and hidden, the loss, counting, and the stored model."""

import math

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from letters import SPECIAL, letters_tokenizer, random_letters
from lmcourse import masking, mini_bert
from lmcourse.bert import rename
from lmcourse.data import fingerprint, load_poems
from lmcourse.ngrams import NgramModel
from near import near
from studies.pretraining import mini_bert as study
from studies.pretraining.counting import between_infill, count_infill

SMALL = {"vocab_size": 25, "hidden_size": 12, "num_hidden_layers": 2, "type_vocab_size": 2}
SMALL |= {"num_attention_heads": 3, "intermediate_size": 20, "max_position_embeddings": 10}


@pytest.fixture(scope="module")
def tokenizer():
    return letters_tokenizer()


@pytest.fixture(scope="module")
def stored():
    return mini_bert.load_mini_bert()


@pytest.fixture
def theirs():
    model = BertForMaskedLM(BertConfig(**SMALL)).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return model


@pytest.fixture
def ours(theirs):
    """The same weights in the course's model; their head has other names."""
    model, head = masking.MaskedBert(theirs.config).eval(), theirs.cls.predictions
    bert = {rename(f"bert.{n}"): w for n, w in theirs.bert.state_dict().items()}
    model.bert.load_state_dict({n: w for n, w in bert.items() if "position_ids" not in n})
    model.head[0].load_state_dict(head.transform.dense.state_dict())
    model.head[2].load_state_dict(head.transform.LayerNorm.state_dict())
    model.bias.data = head.bias.data.clone()
    return model


def test_each_share_is_what_the_paper_says(tokenizer):
    ids = random_letters(4000, 9)
    given, chosen = masking.mask_tokens(ids, tokenizer, torch.Generator().manual_seed(3))
    ordinary = ids >= 5
    asked, shown, true = chosen[ordinary], given[chosen], ids[chosen]
    many = chosen.sum().item()
    error = 4 * math.sqrt(0.25 / many)  # of any share
    hidden, same = (shown == 4), (shown == true)
    assert asked.double().mean().item() == pytest.approx(0.15, abs=error)
    assert hidden.double().mean().item() == pytest.approx(0.8, abs=error)
    # Of the 10 % that are swapped one in twenty meets itself.
    assert same.double().mean().item() == pytest.approx(0.1 + 0.1 / 20, abs=error)
    swapped = shown[~hidden & ~same]
    assert swapped.double().numel() / many == pytest.approx(0.095, abs=error)
    assert set(swapped.tolist()) == set(range(5, 25))  # any piece, no special token
    assert torch.equal(given[~chosen], ids[~chosen])


def test_special_tokens_are_never_asked_for_and_a_seed_repeats_what_is_hidden(tokenizer):
    ids, state = random_letters(500), torch.get_rng_state()
    generator = torch.Generator().manual_seed(7)
    first, second = (masking.mask_tokens(ids, tokenizer, generator) for _ in range(2))
    generator.manual_seed(7)
    assert all(map(torch.equal, first, masking.mask_tokens(ids, tokenizer, generator)))
    assert not torch.equal(first[1], second[1])
    chosen = masking.mask_tokens(ids, tokenizer, generator, 1.0)[1]
    assert torch.equal(chosen, ids >= 5)  # a share of 1 asks for all others
    assert torch.equal(state, torch.get_rng_state())  # the reader's own is left alone


def test_the_loss_is_that_of_transformers(tokenizer, theirs, ours):
    """Places that are not chosen do not count, and padding is not seen."""
    ids = random_letters()
    generator = torch.Generator().manual_seed(2)
    given, chosen = masking.mask_tokens(ids, tokenizer, generator, 0.4)
    labels = ids.masked_fill(~chosen, -100)
    with torch.no_grad():
        want = theirs.double()(given, attention_mask=(ids != 0).long(), labels=labels)
        got = masking.masked_loss(
            ours.double(), ids, tokenizer, generator.manual_seed(2), 0.4
        )
        near(ours(given)[ids != 0], want.logits[ids != 0])
    near(got, want.loss)


def test_every_place_is_hidden_once(tokenizer, ours):
    ids = random_letters()
    losses = masking.place_losses(ours, ids, tokenizer, rounds=3)
    assert torch.equal(losses > 0, ids >= 5)
    hidden = ids.clone()
    hidden[1, [2, 5]] = 4  # the places of one round
    with torch.no_grad():
        want = -ours(hidden)[1, 5].log_softmax(-1)[ids[1, 5]]
    torch.testing.assert_close(losses[1, 5], want, rtol=1e-4, atol=1e-6)


def test_infilling_is_bayes_with_pairs():
    ids = np.array([0, 1, 2, 0, 1, 1, 2, 0, 2, 1, 0, 0, 1, 2])
    pairs, table = NgramModel(ids, 2, 3), count_infill(ids, 3, 1)
    p = np.array([pairs.next_probs([left]) for left in range(3)])  # (left, piece)
    left, right = np.divmod(np.arange(9), 3)
    want = p[left] * p[:, right].T
    want = np.log(want / want.sum(1, keepdims=True))
    probs = np.exp([between_infill(ids, 3)([1], [0]), table([1], [0])])
    np.testing.assert_allclose(probs[0], np.array([1, 0, 3]) / 9 + 5 / 9 * probs[1])
    for row, sides in zip(want, zip(left, right, strict=True), strict=True):
        np.testing.assert_allclose(table(*([x] for x in sides)), row, atol=1e-12)
    longer, counted = count_infill(ids, 3, 2), NgramModel(ids, 3, 3)
    run = [[0, 1, piece, 2, 0] for piece in range(3)]  # all that comes after the two
    want = np.log(
        [np.prod([counted.next_probs(x[:k])[x[k]] for k in (2, 3, 4)]) for x in run]
    )
    np.testing.assert_allclose(np.diff(longer([0, 1], [2, 0])), np.diff(want), atol=1e-12)


def test_poems_are_dealt_whole_and_once():
    parts = mini_bert.poem_splits()
    assert [len(part) for part in parts] == [369, 46, 45]
    assert len({text for part in parts for text in part}) == 460
    assert any(text.startswith("Hope is") for part in parts for text in part)


def test_passages_are_whole_lines_that_fit(stored):
    tokenizer = stored[0]
    poem = next(t for t in load_poems().text if t.startswith("Hope is"))
    room, lines = 32, [line for line in poem.splitlines() if line]
    apart = list(mini_bert.passages(poem, tokenizer, room))
    assert all(len(ids) <= room for ids in apart)
    assert {(ids[0].item(), ids[-1].item()) for ids in apart} == {(2, 3)}
    inner = [i for ids in apart for i in ids[1:-1].tolist()]
    assert inner == tokenizer(" ".join(lines), add_special_tokens=False)["input_ids"]
    assert len(list(mini_bert.passages(poem, tokenizer, room, overlap=True))) == len(lines)


def train_on_nine_texts(tokenizer):
    """Train a small model for sixty steps; return it and its losses."""
    settings = study.SETTINGS | {"steps": 60, "batch": 8, "seed": 1}
    ids = [torch.tensor([2, 5, 6, 7, 8, 5, 6, 7, 8, 3][: 8 + n % 3]) for n in range(9)]
    torch.manual_seed(0)
    model = masking.MaskedBert(BertConfig(**SMALL))
    losses = []
    masking.train_masked(
        model, ids, tokenizer, settings, lambda _, loss: losses.append(loss)
    )
    return model, losses


def test_training_lowers_the_loss_and_ends_in_evaluation_mode(tokenizer):
    model, losses = train_on_nine_texts(tokenizer)
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) - 0.5
    assert not model.training


def test_training_again_gives_the_same_losses(tokenizer):
    _, first = train_on_nine_texts(tokenizer)
    _, again = train_on_nine_texts(tokenizer)
    np.testing.assert_allclose(again, first)


def test_the_stored_model_is_what_its_record_says_and_as_good(stored):
    tokenizer, model, record = stored
    training = mini_bert.poem_splits()[0]
    assert record["corpus_sha256"] == fingerprint("\n\n".join(training))
    assert tokenizer.convert_ids_to_tokens([0, 1, 2, 3, 4]) == SPECIAL
    assert len(tokenizer) == record["model"]["vocab_size"]
    assert not model.training
    assert next(model.parameters()).dtype == torch.float32
    loss = study.mean_masked_loss(model, mini_bert.poem_splits()[1], tokenizer, 64)
    assert loss == pytest.approx(record["val_loss"], abs=1e-3)


def spans(ids, share=0.15, length=3, seed=0, names=range(100, 120)):
    generator = torch.Generator().manual_seed(seed)
    return masking.corrupt_spans(torch.tensor(ids), names, generator, share, length)


def put_back(source, target):
    """Put each span where its sentinel stands."""
    cut = {}
    for piece in target.tolist():
        if piece >= 100:
            cut[piece] = span = []
        else:
            span.append(piece)
    return [p for piece in source.tolist() for p in cut.get(piece, [piece])]


@pytest.mark.parametrize("tokens", [4, 5, 9, 60])
@pytest.mark.parametrize("share", [0.0, 0.15, 0.5, 1.0])
def test_spans_go_back_to_where_they_were_cut_out(tokens, share):
    ids = [2, *range(10, 10 + tokens - 2), 3]
    for seed in range(20):
        source, target = spans(ids, share, seed=seed)
        assert put_back(source, target) == ids
        named = [p for p in source.tolist() if p >= 100]
        assert named == [*range(100, 100 + len(named))]  # in order, each once
        assert [p for p in target.tolist() if p >= 100] == [*named, 100 + len(named)]
        assert target[-1] == 100 + len(named)  # nothing after the last
        assert not ((source[1:] >= 100) & (source[:-1] >= 100)).any()  # they do not touch


def test_spans_have_the_share_and_the_mean_length_that_were_asked_for():
    """Of 60 tokens 30 % are 18; in spans of three these are six, each with a mark."""
    ids = [2, *range(10, 70), 3]
    for seed in range(200):
        source, target = spans(ids, 0.3, 3, seed)
        marks = (source >= 100).sum()
        tokens = (target < 100).sum()
        assert (marks, tokens) == (6, 18)


def test_a_text_may_begin_and_end_with_a_span_or_not():
    ids = [2, *range(10, 70), 3]
    sources = [spans(ids, 0.3, 3, seed)[0] for seed in range(200)]
    assert {source[1].item() >= 100 for source in sources} == {True, False}
    assert {source[-2].item() >= 100 for source in sources} == {True, False}


def test_what_cannot_be_cut_is_refused():
    with pytest.raises(ValueError, match="of 1 tokens between the ends none"):
        spans([2, 10, 3])
    with pytest.raises(ValueError, match="2 spans need 3 sentinels, not 2"):
        spans([2, *range(10, 50), 3], 0.15, names=range(100, 102))
