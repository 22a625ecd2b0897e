"""BERT rebuilt against ``transformers``, of odd sizes.

The default one is held against it on the page *bert-internals*.
"""

import re

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, BertModel
from transformers.activations import ACT2FN

from lmcourse import bert
from lmcourse.transformer import ACTIVATIONS

TOLERANCE = {"rtol": 0, "atol": 1e-9}  # in float64
THEIRS = sorted(ACTIVATIONS.keys() & ACT2FN.keys())  # all but "swiglu"


def reference(config, seed=0, kind=BertModel):
    """Return a randomly initialised model whose norms and biases are not trivial."""
    torch.manual_seed(seed)
    model = kind._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "LayerNorm" in name or name.endswith("bias"):
                weight.add_(0.1 * torch.randn_like(weight))
    return model


def small_config(**changes):
    """Return a configuration whose axes all have different sizes."""
    sizes = {"vocab_size": 47, "max_position_embeddings": 17, "type_vocab_size": 2}
    sizes |= {"hidden_size": 12, "num_hidden_layers": 5, "num_attention_heads": 3}
    return BertConfig(**sizes | {"intermediate_size": 20} | changes)


def small_batch(config, seed=1, batch=2, tokens=7):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(config.vocab_size, (batch, tokens), generator=generator)
    mask = torch.ones(batch, tokens, dtype=torch.long)
    mask[0, tokens - 3 :] = 0
    types = (torch.arange(tokens) > tokens // 2).long().expand(batch, tokens)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def assert_same(ours, theirs, config):
    """Compare every layer, every weight of every head, and the pooler."""
    assert len(ours.attentions) == config.num_hidden_layers
    for name in ours._fields:  # tensors and tuples of tensors
        torch.testing.assert_close(getattr(ours, name), getattr(theirs, name), **TOLERANCE)


@torch.no_grad()
def both(model, rebuilt, inputs):
    """Run both in float64, where rounding is no excuse, not even over padding."""
    theirs = model.double()(**inputs, output_hidden_states=True, output_attentions=True)
    return rebuilt.double()(**inputs), theirs


@pytest.mark.parametrize("activation", THEIRS)
@pytest.mark.parametrize("epsilon", [1e-12, 1e-2])
def test_other_sizes_activations_and_epsilons(activation, epsilon):
    config = small_config(hidden_act=activation, layer_norm_eps=epsilon)
    model = reference(config)
    rebuilt = bert.rebuild(config, model.state_dict())
    assert_same(*both(model, rebuilt, small_batch(config)), config)


def test_a_checkpoint_of_a_pretraining_model_with_the_old_names():
    """A prefix, a head that is not wanted, gamma and beta, and no pooler."""
    config = small_config()
    model = reference(config, kind=BertForMaskedLM)
    old = {
        re.sub("Norm.weight", "Norm.gamma", re.sub("Norm.bias", "Norm.beta", name)): tensor
        for name, tensor in model.state_dict().items()
    }
    assert any(name.startswith("cls.") for name in old)
    assert "bert.embeddings.LayerNorm.gamma" in old
    rebuilt = bert.rebuild(config, old)
    assert rebuilt.pooler is None
    ours, theirs = both(model.bert, rebuilt, small_batch(config))
    assert ours.pooler_output is None
    torch.testing.assert_close(ours.last_hidden_state, theirs[0], **TOLERANCE)


@pytest.mark.parametrize(
    "name", ["encoder.layer.3.output.dense.weight", "pooler.dense.bias"]
)
def test_a_missing_weight_is_named(name):
    config = small_config()
    weights = dict(reference(config).state_dict())
    del weights[name]
    with pytest.raises(RuntimeError, match=bert.rename(name)):
        bert.rebuild(config, weights)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"is_decoder": True}, "an encoder with"),
        ({"position_embedding_type": "relative_key"}, "absolute positions"),
    ],
)
def test_configurations_it_cannot_build(changes, message):
    with pytest.raises(ValueError, match=message):
        bert.rebuild(small_config(**changes), reference(small_config()).state_dict())


def test_too_many_tokens():
    config = small_config()
    rebuilt = bert.rebuild(config, reference(config).state_dict())
    with pytest.raises(ValueError, match="18 tokens, but positions for 17"):
        rebuilt(torch.zeros(1, 18, dtype=torch.long))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu():
    config = small_config()
    model = reference(config).cuda()
    rebuilt = bert.rebuild(config, model.state_dict())
    inputs = {name: tensor.cuda() for name, tensor in small_batch(config).items()}
    assert_same(*both(model, rebuilt, inputs), config)
