"""Each level of a BERT has a name, in the order in which vectors go through it."""

from transformers import BertConfig, BertModel

from lmcourse.levels import level_names, state_names
from lmcourse.models import load_bert
from lmcourse.pooling import pool_layers

SMALL = {"hidden_size": 12, "num_attention_heads": 2, "intermediate_size": 24}


def test_there_are_as_many_names_as_levels():
    tokenizer, _ = load_bert(device="cpu")
    model = BertModel(BertConfig(num_hidden_layers=3, **SMALL)).eval()
    pooled = pool_layers(["a bee", "a clover"], tokenizer, model)
    assert level_names(3) == [
        "static",
        "before layer 0",
        "after layer 0",
        "after layer 1",
        "after layer 2",
    ]
    assert len(level_names(3)) == len(pooled.levels)
    states = model(**tokenizer("a bee", return_tensors="pt"), output_hidden_states=True)
    assert len(state_names(3)) == len(states.hidden_states)
    assert level_names(3)[1:] == state_names(3)
