"""Writing with a GPT, against its own logits and ``transformers``."""

import math

import pytest
import torch
from transformers import (
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from lmcourse.gpt.generation import (
    Cache,
    apply_temperature,
    beam_search,
    cache_bytes,
    generate,
    keep_top_k,
    keep_top_p,
    next_probs,
    penalize,
)
from lmcourse.gpt.gpt2 import to_transformers
from test_gpt_model import BATCH, CONTEXT, KINDS, VOCAB, close, gpt, some_ids


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


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


def processed(logits, ids, *processors):
    for processor in processors:
        logits = processor(ids, logits)
    return logits.softmax(-1)


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


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_probs_equal_transformers(settings):
    logits = 2 * torch.randn(40, VOCAB, dtype=torch.float64)
    ids = some_ids(batch=40)
    theirs = []
    if "repetition_penalty" in settings:
        theirs.append(RepetitionPenaltyLogitsProcessor(settings["repetition_penalty"]))
    if "temperature" in settings:
        theirs.append(TemperatureLogitsWarper(settings["temperature"]))
    if "top_k" in settings:
        theirs.append(TopKLogitsWarper(settings["top_k"]))
    if "top_p" in settings:
        theirs.append(TopPLogitsWarper(settings["top_p"]))
    before = logits.clone()
    got = next_probs(logits, ids, **settings)
    assert torch.equal(logits, before)
    close(got, processed(logits, ids, *theirs), 1e-9)
    close(got.sum(-1), torch.ones(40, dtype=torch.float64), 1e-9)


def test_what_is_kept_by_hand():
    probs = torch.tensor([[0.1, 0.4, 0.3, 0.2]])
    close(keep_top_k(probs, 2), torch.tensor([[0, 4 / 7, 3 / 7, 0]]))
    close(keep_top_p(probs, 0.65), torch.tensor([[0, 4 / 7, 3 / 7, 0]]))
    close(keep_top_p(probs, 0.75), torch.tensor([[0, 4 / 9, 3 / 9, 2 / 9]]))
    logits, ids = torch.tensor([[2.0, -2.0, 1.0]]), torch.tensor([[0, 1, 0]])
    close(penalize(logits, ids, 2.0), torch.tensor([[1.0, -4.0, 1.0]]))
    close(apply_temperature(logits, 0.5), torch.tensor([[4.0, -4.0, 2.0]]).softmax(-1))
    equal = torch.tensor([[0.0, 3.0, 3.0]])
    assert apply_temperature(equal, 0).tolist() == [[0, 1, 0]]
    assert apply_temperature(equal, 1e-45).tolist() == [[0, 0.5, 0.5]]  # nothing overflows


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"temperature": -0.1}, "temperature -0.1 is no"),
        ({"temperature": math.inf}, "temperature inf is no"),
        ({"temperature": math.nan}, "temperature nan is no"),
        ({"top_k": 0}, "top_k must be a whole number from 1, not 0"),
        ({"top_k": 2.5}, r"top_k must be a whole number from 1, not 2\.5"),
        ({"top_p": 0}, "top_p must be above 0 and at most 1, not 0"),
        ({"top_p": 1.1}, r"top_p must be above 0 and at most 1, not 1\.1"),
        ({"repetition_penalty": 0}, "repetition_penalty 0 is not above 0"),
        ({"repetition_penalty": math.nan}, "repetition_penalty nan"),
        ({"tokens": -1}, "-1 tokens cannot be written"),
    ],
    ids=str,
)
def test_settings_out_of_their_range(settings, said):
    with pytest.raises(ValueError, match=said):
        generate(gpt(), some_ids(), **{"tokens": 1} | settings)


@pytest.mark.parametrize("beams", [0, 1.5])
def test_beams_out_of_their_range(beams):
    with pytest.raises(ValueError, match="beams must be a whole number from 1"):
        beam_search(gpt(), some_ids(), 1, beams)
    with pytest.raises(ValueError, match="a prompt of 0 tokens"):
        beam_search(gpt(), some_ids(tokens=0), 1, 2)


def test_settings_reach_what_is_drawn():
    """Drawn often enough, the tokens are as frequent as the probs say."""
    model, ids = gpt(), some_ids(batch=1, tokens=4)
    settings = {"temperature": 1.5, "top_k": 6, "top_p": 0.8, "repetition_penalty": 1.5}
    with torch.no_grad():
        want = next_probs(model(ids)[:, -1], ids, **settings)[0]
    assert 1 < (want > 0).sum() < 6
    draw = torch.Generator().manual_seed(1)
    drawn = generate(model, ids.expand(20_000, -1), 1, generator=draw, **settings)[:, -1]
    got = drawn.bincount(minlength=VOCAB) / len(drawn)
    assert (got - want).abs().max() < 0.02  # five standard deviations
    assert (got[want == 0] == 0).all()


# --- against generate of transformers -------------------------------------------------


def theirs(model, ids, tokens, **settings):
    """Return what generate of transformers writes, in float64."""
    exported = to_transformers(model).double()
    settings = {"do_sample": False, "max_new_tokens": tokens} | settings
    return exported.generate(ids, attention_mask=torch.ones_like(ids), **settings)


@pytest.mark.parametrize("prompt", [2, 9, 15, 16])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_drawn_text_equals_transformers(prompt, settings):
    """With the same dice; so with logits in float32, as theirs, computed in float64."""
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
    want = theirs(model, ids, room, **options)
    texts, logs = beam_search(model, ids, room, beams)
    assert texts.shape == (BATCH, beams, prompt + room)
    assert torch.equal(texts.flatten(0, 1), want.sequences)
    assert (logs.diff(dim=-1) <= 0).all()
    if beams > 1:  # greedy decoding tells no scores
        close(logs.flatten(), want.sequences_scores.to(logs), 1e-5)  # theirs: float32
    each = model(texts.flatten(0, 1)[:, :-1]).log_softmax(-1)[:, prompt - 1 :]
    chosen = each.gather(-1, texts.flatten(0, 1)[:, prompt:, None]).sum((1, 2))
    close(logs.flatten(), chosen.detach(), 1e-9)


# --- the cache ------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("prompt", [1, 5, CONTEXT, CONTEXT + 2])
def test_cached_text_equals_uncached_beyond_the_context_too(options, prompt):
    model, ids = lively(**options), some_ids(tokens=prompt)
    for temperature in (0, 1.0):
        texts = [
            generate(
                model,
                ids,
                CONTEXT,
                temperature,
                torch.Generator().manual_seed(2),
                cached=cached,
            )
            for cached in (True, False)
        ]
        assert torch.equal(*texts)
    found = [beam_search(model, ids, CONTEXT, 3, cached) for cached in (True, False)]
    assert torch.equal(found[0][0], found[1][0])
    close(found[0][1], found[1][1], 1e-9)


@KINDS
@pytest.mark.parametrize("parts", [[1] * 7, [3, 4], [1, 5, 1]], ids=str)
def test_logits_with_a_cache_equal_those_without(options, parts):
    """However a text is cut into what is read at once, its positions go on."""
    model, ids = lively(**options), some_ids(tokens=7)
    cache, read, found = Cache(model), 0, []
    with torch.no_grad():
        for part in parts:
            read += part
            found.append(model(ids[:, :read], cache))
            assert found[-1].shape == (BATCH, part, VOCAB)
            assert cache.tokens == read
        close(torch.cat(found, 1), model(ids), 1e-9)


def test_a_cache_computes_nothing_again():
    model, ids, seen = gpt(context=16), some_ids(tokens=4), []
    hook = model.blocks[-1].register_forward_hook(
        lambda block, inputs, output: seen.append(inputs[0].shape[1])
    )
    generate(model, ids, 5)
    assert seen == [4, 1, 1, 1, 1]
    seen.clear()
    generate(model, ids, 3, cached=False)
    assert seen == [4, 5, 6]
    seen.clear()
    generate(model, some_ids(tokens=15), 4)
    assert seen == [15, 1, 16, 16]  # beyond the context all tokens move: all anew
    hook.remove()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_cache_is_as_large_as_the_formula_says(dtype):
    model, ids = gpt(layers=2, heads=3, d_model=18).to(dtype), some_ids(tokens=6)
    cache = Cache(model)
    assert cache.nbytes == cache.tokens == 0
    model(ids, cache)
    assert cache.nbytes == cache_bytes(model.config, 6, BATCH, dtype.itemsize)
    assert cache.nbytes == 2 * 2 * BATCH * 6 * 18 * dtype.itemsize
    cache.reorder(torch.tensor([1, 1]))
    assert cache.nbytes == cache_bytes(model.config, 6, 2, dtype.itemsize)


def test_temperature_zero_draws_nothing():
    model, ids = gpt(), some_ids()
    state = torch.get_rng_state()
    generate(model, ids, 3, temperature=0)
    assert torch.equal(torch.get_rng_state(), state)
