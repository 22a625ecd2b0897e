"""Writing with a GPT, against its own logits and ``transformers``."""

import math

import numpy as np
import pytest
import torch

from lmcourse.gpt.generation import (
    Cache,
    apply_temperature,
    beam_search,
    cache_bytes,
    generate,
    keep_top_k,
    keep_top_p,
    penalize,
)
from lmcourse.gpt.gpt2 import to_transformers
from near import near
from test_gpt_model import BATCH, CONTEXT, KINDS, VOCAB, gpt, some_ids


def lively(**options):
    """Return a GPT, in float64, whose text depends on what it reads.

    With biases as large as weights it would write one token for ever, whatever is wrong.
    """
    model = gpt(**options).double().requires_grad_(False)
    for name, weight in model.named_parameters():
        if "norm" in name and name.endswith("weight"):
            weight.add_(1)
        else:
            weight.mul_(0.1 if name.endswith("bias") else 3)
    return model


def test_generate_draws_the_same_with_the_same_seed():
    model, ids = gpt(), some_ids(tokens=3)

    def write(seed):
        return generate(model, ids, 20, generator=torch.Generator().manual_seed(seed))

    assert torch.equal(write(1), write(1))
    assert not torch.equal(write(1), write(2))
    assert write(1).shape == (BATCH, 23)
    assert torch.equal(write(1)[:, :3], ids)
    assert torch.equal(generate(model, ids, 0), ids)


@KINDS
def test_temperature_zero_takes_the_likeliest_and_sees_the_context(options):
    model, ids = lively(**options), some_ids(tokens=CONTEXT + 2)  # longer than it sees
    got = generate(model, ids, 6, temperature=0)
    for i in range(BATCH):
        written = ids[i].tolist()
        for _ in range(6):
            logits = model(torch.tensor([written[-CONTEXT:]]))[0, -1]
            written.append(max(range(VOCAB), key=lambda k: logits[k].item()))
        assert got[i].tolist() == written


@pytest.mark.parametrize("training", [True, False])
def test_generate_leaves_the_mode_alone_and_never_drops(training):
    model, ids = gpt(dropout=0.5), some_ids(tokens=2)
    want = generate(model, ids, 6, temperature=0)
    model.train(training)
    assert torch.equal(generate(model, ids, 6, temperature=0), want)
    assert model.training is training
    with pytest.raises(ValueError, match="0 tokens"):
        generate(model, ids[:, :0], 1)
    assert model.training is training


# --- distributions --------------------------------------------------------------------


SETTINGS = [
    {},
    {"temperature": 0.7},
    {"temperature": 2.5, "top_k": 3},
    {"top_k": 1},
    {"top_k": 500},
    {"top_p": 0.6},
    {"top_p": 1.0},
    {"top_p": 0.01},
    {"temperature": 0.5, "top_p": 0.8},  # temperature first, or other tokens are kept
    {"temperature": 1.7, "top_k": 6, "top_p": 0.7},  # p of what k has left
    {"repetition_penalty": 1.8},
    {"repetition_penalty": 0.6, "temperature": 0.8, "top_k": 5, "top_p": 0.9},
]


def test_what_is_kept_by_hand():
    probs = torch.tensor([[0.1, 0.4, 0.3, 0.2]])
    near(keep_top_k(probs, 2), torch.tensor([[0, 4 / 7, 3 / 7, 0]]))
    near(keep_top_p(probs, 0.75), torch.tensor([[0, 4 / 9, 3 / 9, 2 / 9]]))
    logits, ids = torch.tensor([[2.0, -2.0, 1.0]]), torch.tensor([[0, 1, 0]])
    near(penalize(logits, ids, 2.0), torch.tensor([[1.0, -4.0, 1.0]]))
    assert logits.tolist() == [[2, -2, 1]]  # as they were
    equal = torch.tensor([[0.0, 3.0, 3.0]])
    assert apply_temperature(equal, 0).tolist() == [[0, 1, 0]]
    for temperature in (1e-38, 1e-45, 1e-46, 5e-324):  # nothing overflows, nor is 0 / 0
        assert apply_temperature(equal, temperature).tolist() == [[0, 0.5, 0.5]]
        adjacent = torch.tensor([[1.0, 1.0 + 2**-23, -5.0]])  # neighbours in float32
        assert apply_temperature(adjacent, temperature).tolist() == [[0, 1, 0]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -0.1}, "temperature -0.1 is no"),
        ({"temperature": math.nan}, "temperature nan is no"),
        ({"top_k": True}, "top_k must be a whole number from 1, not True"),
        ({"top_k": 0}, "top_k must be a whole number from 1, not 0"),
        ({"top_k": 2.5}, r"top_k must be a whole number from 1, not 2\.5"),
        ({"top_p": 0}, "top_p must be above 0 and at most 1, not 0"),
        ({"top_p": 1.1}, r"top_p must be above 0 and at most 1, not 1\.1"),
        ({"repetition_penalty": math.nan}, "repetition_penalty nan"),
    ],
    ids=str,
)
def test_settings_out_of_their_range(settings, message):
    with pytest.raises(ValueError, match=message):
        generate(gpt(), some_ids(), 1, **settings)


def test_whole_numbers_of_numpy_are_whole_numbers():
    model, ids = lively(), some_ids(tokens=3)
    want = generate(model, ids, 4, generator=torch.Generator().manual_seed(0), top_k=3)
    numbers = {"tokens": np.int64(4), "top_k": np.int32(3), "temperature": np.float32(1)}
    got = generate(model, ids, generator=torch.Generator().manual_seed(0), **numbers)
    assert torch.equal(got, want)
    texts, _ = beam_search(model, ids, np.int64(2), np.int64(3))
    assert torch.equal(texts, beam_search(model, ids, 2, 3)[0])
    with pytest.raises(ValueError, match="tokens must be a whole number from 0, not -1"):
        generate(model, ids, -1)


@pytest.mark.parametrize("beams", [0, 1.5, True])
def test_beams_out_of_their_range(beams):
    with pytest.raises(ValueError, match="beams must be a whole number from 1"):
        beam_search(gpt(), some_ids(), 1, beams)
    with pytest.raises(ValueError, match="0 tokens, but"):
        beam_search(gpt(), some_ids(tokens=0), 1, 2)


# --- against generate of transformers -------------------------------------------------


@pytest.mark.parametrize("prompt", [2, 9, 15, 16])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_drawn_text_equals_transformers(prompt, settings):
    """With the same seed; so with logits in float32, as theirs, computed in float64."""
    model, ids, room = lively(context=16), some_ids(tokens=prompt), max(16 - prompt, 1)
    exported = to_transformers(model).double()  # which draws: before the seed
    model.register_forward_hook(lambda module, inputs, logits: logits.float())
    how = {"do_sample": True, "max_new_tokens": room, "top_k": 0} | settings
    torch.manual_seed(5)
    want = exported.generate(ids, attention_mask=torch.ones_like(ids), **how)
    assert want.shape == (BATCH, prompt + room)
    for cached in (True, False):
        torch.manual_seed(5)
        assert torch.equal(generate(model, ids, room, **settings, cached=cached), want)


@pytest.mark.parametrize("prompt", [4, 15, 16])
@pytest.mark.parametrize("beams", [1, 2, 5])
def test_beams_equal_transformers(beams, prompt):
    model, ids, room = lively(context=16), some_ids(tokens=prompt), max(16 - prompt, 1)
    options = {"num_beams": beams, "num_return_sequences": beams}
    options |= {"return_dict_in_generate": True, "output_scores": True, "length_penalty": 0}
    options |= {"attention_mask": torch.ones_like(ids), "max_new_tokens": room}
    want = to_transformers(model).double().generate(ids, do_sample=False, **options)
    texts, logs = beam_search(model, ids, room, beams)
    assert texts.shape == (BATCH, beams, prompt + room)
    assert torch.equal(texts.flatten(0, 1), want.sequences)
    assert (logs.diff(dim=-1) <= 0).all()
    if beams > 1:  # greedy decoding tells no scores
        near(logs.flatten(), want.sequences_scores.to(logs), 1e4)  # theirs: float32
    each = model(texts.flatten(0, 1)[:, :-1]).log_softmax(-1)[:, prompt - 1 :]
    chosen = each.gather(-1, texts.flatten(0, 1)[:, prompt:, None]).sum((1, 2))
    near(logs.flatten(), chosen.detach())


# --- the cache ------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("prompt", [1, 5, CONTEXT, CONTEXT + 2])
def test_cached_text_equals_uncached_beyond_the_context_too(options, prompt):
    model, ids = lively(**options), some_ids(tokens=prompt)
    texts = []
    for cached in (True, False):
        generator = torch.Generator().manual_seed(2)
        texts.append(generate(model, ids, CONTEXT, generator=generator, cached=cached))
    assert torch.equal(*texts)


@KINDS
@pytest.mark.parametrize("parts", [[1] * 7, [3, 4], [1, 5, 1]], ids=str)
def test_logits_with_a_cache_equal_those_without(options, parts):
    """However a text is cut into what is read at once, its positions go on."""
    model, ids = lively(**options), some_ids(tokens=7)
    cache, read, logits = Cache(model), 0, []
    with torch.no_grad():
        for part in parts:
            read += part
            logits.append(model(ids[:, :read], cache))
            assert logits[-1].shape == (BATCH, part, VOCAB)
            assert cache.tokens == read
        near(torch.cat(logits, 1), model(ids))


def test_a_cache_computes_nothing_again():
    model, ids, seen = gpt(context=16), some_ids(tokens=4), []
    hook = model.blocks[-1].register_forward_hook(
        lambda block, inputs, output: seen.append(inputs[0].shape[1])
    )
    generate(model, ids, 5)
    assert seen == [4, 1, 1, 1, 1]
    seen.clear()
    generate(model, some_ids(tokens=15), 4)
    assert seen == [15, 1, 16, 16]  # beyond the context all tokens move: all anew
    hook.remove()


def test_a_cache_is_as_large_as_the_formula_says():
    model = gpt(layers=2, heads=3, d_model=18)
    cache = Cache(model)
    assert cache.nbytes == cache.tokens == 0
    model(some_ids(tokens=6), cache)
    assert cache.nbytes == cache_bytes(model.config, 6, BATCH) == 2 * 2 * BATCH * 6 * 18 * 4
    cache.reorder(torch.tensor([1, 1]))
    assert cache.nbytes == cache_bytes(model.config, 6, 2)
