"""What is read and replaced inside a GPT, against the GPT taken apart by hand."""

import copy
import math

import pytest
import torch

from lmcourse.ablation import replaced, without
from lmcourse.gpt.generation import generate
from lmcourse.gpt.gpt2 import to_transformers
from lmcourse.gpt.inside import (
    contributions,
    lens,
    line_states,
    losses_at,
    means,
    outputs,
    states,
)
from near import near
from test_gpt_generation import lively
from test_gpt_model import CONTEXT, D_MODEL, HEADS, KINDS, LAYERS, VOCAB, gpt, some_ids

D_HEAD = D_MODEL // HEADS


def exact(**options):
    return gpt(**options).double().requires_grad_(False)


# --- reading --------------------------------------------------------------------------


def test_states_are_those_of_transformers():
    model, ids = exact(), some_ids()
    with torch.no_grad():
        theirs = to_transformers(model).double()(ids, output_hidden_states=True)
    ours = states(model, ids)
    assert ours.shape == (LAYERS + 1, *ids.shape, D_MODEL)
    for got, want in zip(ours[:-1], theirs.hidden_states[:-1], strict=True):
        near(got, want)
    near(model.norm(ours[-1]), theirs.hidden_states[-1])  # theirs: after the norm


def test_a_line_is_read_as_if_it_stood_alone():
    model, ids = exact(), some_ids()
    lengths = torch.arange(len(ids)) % ids.shape[1] + 1
    for last in (False, True):
        vectors = line_states(model, ids, lengths, last)
        for i, n in enumerate(lengths):
            own = states(model, ids[i : i + 1, :n])[:, 0]  # (layers + 1, tokens, d_model)
            near(vectors[:, i], own[:, -1] if last else own.mean(1))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"positions": "rotary"},
        {"ngrams": (13, 17)},
        {"tied": False, "norm": "rms", "bias": False, "previous_tokens": 2},
    ],
    ids=str,
)
def test_the_lens_is_what_a_shorter_model_says(options):
    model, ids = exact(**options), some_ids()
    logits = lens(model, ids)
    for layers in range(LAYERS + 1):
        shorter = copy.deepcopy(model)
        shorter.blocks = shorter.blocks[:layers]
        near(logits[layers], shorter(ids))


def shares(scores):
    """Return exp(score) of each, divided by their sum; of float64 scores."""
    powers = [math.exp(score) for score in scores.tolist()]
    return torch.tensor(powers, dtype=torch.float64) / sum(powers)


def sprinters_logits(weights, ids, layers):
    """Return what a GPT of the speedrun says of one text after so many layers.

    By hand, token by token: RMS norms without weights, no biases, squared ReLU, learned
    positions, one table of tokens before, an output matrix of its own.

    Parameters
    ----------
    weights : dict of str to float64 Tensor
        As the model names them.
    ids : list of int
    layers : int

    Returns
    -------
    float64 Tensor of shape (tokens, vocab_size)
    """

    def norm(x):
        return x / math.sqrt(float(x @ x) / len(x) + torch.finfo(torch.float64).eps)

    stream = [
        weights["tokens.weight"][now]
        + weights["positions.weight"][place]
        + weights["previous.0.weight"][before]
        for place, (now, before) in enumerate(
            zip(ids, [0, *(i + 1 for i in ids)], strict=False)
        )
    ]
    for layer in range(layers):
        own = {
            name.removeprefix(f"blocks.{layer}."): weight
            for name, weight in weights.items()
            if name.startswith(f"blocks.{layer}.")
        }
        query, key, value = zip(
            *((own["attention.qkv.weight"] @ norm(x)).split(D_MODEL) for x in stream),
            strict=True,
        )
        for place in reversed(range(len(stream))):
            read = []
            for head in range(HEADS):
                at = slice(head * D_HEAD, (head + 1) * D_HEAD)
                scores = [query[place][at] @ k[at] for k in key[: place + 1]]
                attended = shares(torch.stack(scores) / math.sqrt(D_HEAD))
                read.append(sum(s * v[at] for s, v in zip(attended, value, strict=False)))
            x = stream[place] + own["attention.output.weight"] @ torch.cat(read)
            hidden = (own["feed_forward.up.weight"] @ norm(x)).clamp(min=0) ** 2
            stream[place] = x + own["feed_forward.down.weight"] @ hidden
    return torch.stack([weights["head.weight"] @ norm(x) for x in stream])


def sprinter():
    """Return a GPT of the speedrun's kind, float64, whose text depends on what it reads."""
    options = {"norm": "rms", "activation": "relu_squared", "bias": False, "tied": False}
    return lively(**options, previous_tokens=1)


def test_the_lens_of_a_gpt_of_the_speedrun_is_what_is_computed_by_hand():
    model, ids = sprinter(), some_ids(batch=2)
    by_layer, weights = lens(model, ids), model.state_dict()
    for layers in range(LAYERS + 1):
        for text, logits in zip(ids.tolist(), by_layer[layers], strict=True):
            near(logits, sprinters_logits(weights, text, layers))


@pytest.mark.parametrize("temperature", [0, 0.8])
def test_a_gpt_of_the_speedrun_writes_what_is_drawn_by_hand(temperature):
    """Within its context and beyond, where it sees the last tokens only."""
    model, prompt = sprinter(), some_ids(batch=1, tokens=CONTEXT - 2)
    draws = [torch.Generator().manual_seed(3) for _ in range(2)]
    ids = generate(model, prompt, 6, temperature, draws[0])
    text, weights = prompt[0].tolist(), model.state_dict()
    for _ in range(6):
        logits = sprinters_logits(weights, text[-CONTEXT:], LAYERS)[-1]
        if temperature:
            drawn = torch.multinomial(shares(logits / temperature), 1, generator=draws[1])
            text.append(drawn.item())
        else:
            text.append(max(range(VOCAB), key=logits.tolist().__getitem__))
    assert ids[0].tolist() == text
    assert len({*text[CONTEXT - 2 :]}) > 1


def test_losses_are_of_the_token_that_follows_what_is_shown():
    model, text = exact(dropout=0.5).train(), some_ids(batch=1, tokens=20)[0]
    positions = torch.tensor([4, 11, 19])
    losses = losses_at(model, text, positions, 4)
    model.eval()
    for position, loss in zip(positions.tolist(), losses, strict=True):
        logits = model(text[None, position - 4 : position])[0, -1]
        near(torch.tensor(loss), -logits.log_softmax(-1)[text[position]])


@KINDS
@pytest.mark.parametrize("training", [True, False])
def test_contributions_add_up_to_the_logit(options, training):
    model, ids = exact(**options, dropout=0.5), some_ids(batch=1)
    logits = model(ids)[0, -1]
    model.train(training)
    for token in range(VOCAB):
        table = contributions(model, ids, token)
        assert len(table) == 3 + LAYERS * (HEADS + 2)
        assert table.contribution.sum() == pytest.approx(logits[token].item(), rel=1e-9)
    assert model.training is training


@pytest.mark.parametrize(
    "options", [{"bias": False}, {"norm": "rms", "tied": False}], ids=str
)
def test_contributions_of_models_that_are_no_gpt2(options):
    model, ids = exact(**options), some_ids(batch=1)
    total = contributions(model, ids, 3).contribution.sum()
    assert total == pytest.approx(model(ids)[0, -1, 3].item(), rel=1e-9)


def parts_by_hand(model, ids):
    """Yield (layer, part, what it returns, what it adds to the residual stream)."""
    x = model.embed(ids)
    for layer, block in enumerate(model.blocks):
        seen, attention = block.norm_1(x), block.attention
        _, _, value = attention.project(seen)
        heads = (attention.weights(seen) @ value).unbind(1)
        for head, returned in enumerate(heads):  # (batch, tokens, d_head)
            columns = attention.output.weight[:, head * D_HEAD : (head + 1) * D_HEAD]
            yield layer, head, returned, returned @ columns.T
        x = x + attention(seen)[0]
        returned = block.feed_forward(block.norm_2(x))
        yield layer, "feed_forward", returned, returned
        x = x + returned


def test_each_contribution_is_what_the_logit_loses_directly():
    """With the scale of the last norm and all other parts held as they were."""
    model, ids, token = exact(), some_ids(batch=1), 4
    table = contributions(model, ids, token)
    contributed = {
        (row.layer, row.part): row.contribution for row in table[2:-1].itertuples()
    }
    end = states(model, ids)[-1, 0, -1]
    scale = (end.var(correction=0) + model.norm.eps).sqrt()

    def logit(state):
        x = (state - state.mean()) / scale * model.norm.weight + model.norm.bias
        return (x @ model.tokens.weight[token]).item()

    adds = {(layer, part): x[0, -1] for layer, part, _, x in parts_by_hand(model, ids)}
    for layer, block in enumerate(model.blocks):
        adds[layer, "attention bias"] = block.attention.output.bias
    want = {name: logit(end) - logit(end - x) for name, x in adds.items()}
    assert contributed == pytest.approx(want, abs=1e-9)
    others = table.contribution.iloc[[0, 1, -1]].tolist()
    last = model.tokens.weight[ids[0, -1]], model.positions.weight[ids.shape[1] - 1]
    want = [logit(end) - logit(end - x) for x in last]
    want += [(model.norm.bias @ model.tokens.weight[token]).item()]
    assert others == pytest.approx(want, abs=1e-9)


def test_a_head_whose_output_is_removed_contributes_nothing():
    model, ids = exact(), some_ids(batch=1)
    with replaced(model.blocks[1], 0):
        table = contributions(model, ids, 2).set_index(["layer", "part"]).contribution
        assert table[1, 0] == 0
        assert table.sum() == pytest.approx(model(ids)[0, -1, 2].item(), rel=1e-9)


def test_contributions_that_do_not_add_up_are_an_error():
    model, ids = exact(), some_ids(batch=1)
    with without(model.blocks[0], "attention"), pytest.raises(ValueError, match="add up"):
        contributions(model, ids, 2)


def test_contributions_are_of_one_text():
    with pytest.raises(ValueError, match="one text, please, not 2"):
        contributions(exact(), some_ids(batch=2), 2)


def test_means_are_those_of_what_the_parts_return():
    model, ids = exact(), some_ids()
    averages = means(model, ids)
    want = {(layer, part): x for layer, part, x, _ in parts_by_hand(model, ids)}
    assert [*averages] == [*want]
    for name, x in want.items():
        near(averages[name], x.mean((0, 1)))


# --- replacing ------------------------------------------------------------------------


@pytest.mark.parametrize("part", [0, 1, "feed_forward"])
def test_a_part_returns_what_it_is_told_to(part):
    model, ids, layer = exact(), some_ids(), 1
    value = means(model, some_ids())[layer, part]
    changed, whole = copy.deepcopy(model), model(ids)
    if part == "feed_forward":
        changed.blocks[layer].feed_forward.down.weight.zero_()
        changed.blocks[layer].feed_forward.down.bias.copy_(value)
    else:
        output = changed.blocks[layer].attention.output
        columns = output.weight[:, part * D_HEAD : (part + 1) * D_HEAD]
        output.bias += columns @ value
        columns.zero_()
    with replaced(model.blocks[layer], part, value):
        near(model(ids), changed(ids))
        seen = outputs(model, ids)[layer, part]
        near(seen, value.expand_as(seen))
    assert torch.equal(model(ids), whole)


def test_what_is_replaced_is_replaced_while_it_writes():
    model, ids = lively(), some_ids(tokens=2)
    changed = copy.deepcopy(model)
    for block in changed.blocks:
        block.attention.output.weight[:, :D_HEAD] = 0
    want = generate(changed, ids, 7, temperature=0, cached=False)
    assert not torch.equal(want, generate(model, ids, 7, temperature=0))
    first, second, third = (replaced(block, 0) for block in model.blocks)
    with first, second, third:
        assert torch.equal(generate(model, ids, 7, temperature=0), want)


@pytest.mark.parametrize("part", [-1, HEADS, "attention", "norm_1"])
def test_there_is_no_such_part(part):
    message = "neither 'feed_forward' nor a head below 2"
    with pytest.raises(ValueError, match=message), replaced(gpt().blocks[0], part):
        pass


@pytest.mark.parametrize(
    "change",
    [
        lambda model: replaced(model.blocks[0], 1),
        lambda model: replaced(model.blocks[0], "feed_forward", math.nan),
    ],
)
def test_the_model_is_as_it_was_after_an_error(change):
    model, ids = exact(), some_ids()
    whole = model(ids)
    with pytest.raises(ValueError, match="0 tokens"), change(model):
        model(ids[:, :0])
    with change(model):
        assert not torch.equal(model(ids), whole)
    assert torch.equal(model(ids), whole)
    for read in (states, outputs):
        with pytest.raises(ValueError, match="0 tokens"):
            read(model, ids[:, :0])
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
