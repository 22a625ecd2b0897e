"""Ids that are none of a model's: every kind of model says so before it looks them up."""

import pytest
import torch
from transformers import BertConfig

from gpts import small_gpt
from lmcourse.families import Family
from lmcourse.gpt.inside import contributions
from lmcourse.ids import check_ids
from lmcourse.llama import Llama, LlamaConfig
from lmcourse.masking import MaskedBert

VOCAB = 6  # as many as a small GPT has
BERT = {"hidden_size": 12, "num_attention_heads": 3, "intermediate_size": 24}


def llama():
    sizes = {"layers": 1, "heads": 2, "kv_heads": 1, "d_model": 8, "d_ff": 12}
    return Llama(LlamaConfig(vocab_size=VOCAB, context=8, **sizes))


def masked_bert():
    return MaskedBert(BertConfig(vocab_size=VOCAB, num_hidden_layers=1, **BERT))


def writer(written):
    """Read a text that is right, and hand on what has been written so far."""
    family = Family("encoder-decoder", VOCAB, d_model=12, heads=3)
    return family(torch.tensor([[1, 2]]), written)


READERS = {
    "Llama": lambda ids: llama()(ids),
    "MaskedBert": lambda ids: masked_bert()(ids),
    "Family": lambda ids: Family("decoder", VOCAB, d_model=12, heads=3)(ids),
    "written": writer,
    "contributions": lambda ids: contributions(small_gpt(), ids, 1),
}
WRONG = {
    "one axis": (torch.tensor([1, 2, 3]), r"not .* of shape \(3,\): .*ids\[None\]"),
    "fractions": (torch.tensor([[1.0, 2.0]]), "whole numbers .*, not torch.float32"),
    "too large": (torch.tensor([[3, VOCAB]]), "ids from 3 to 6, .* 0 to 5: is it the"),
    "negative": (torch.tensor([[-1, 3]]), "ids from -1 to 3"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("wrong", WRONG)
def test_ids_that_are_none_of_this_model(reader, wrong):
    ids, message = WRONG[wrong]
    with pytest.raises(ValueError, match=message):
        READERS[reader](ids)


@pytest.mark.parametrize("reader", READERS)
def test_ids_of_this_model(reader):
    READERS[reader](torch.tensor([[1, VOCAB - 1]]))  # 0 is padding


def test_without_a_vocabulary_any_whole_number_will_do():
    check_ids(torch.tensor([[-1, 10**6]]))
    check_ids(torch.zeros(2, 0, dtype=torch.int64), 5)
