"""Checks for the tasks of the chapter *fine-tuning*."""

import torch
from torch import nn

from lmcourse.exercises import Wrong, exercise, expect, judge, predict, run
from lmcourse.exercises.answers import (
    array,
    diagnose,
    normal,
    number,
    strings,
    type_name,
    unpack,
)


def _poems():
    """Return twelve poems, one of which stands twice."""
    words = ["sun", "bee", "hill", "night", "rose", "sea", "bird", "frost", "love"]
    words += ["king", "door", "star"]
    ways = ("The {} is far away,", "I saw the {} at noon;", "No {} was ever so,")
    poems = ["\n".join(way.format(word) for way in ways) for word in words]
    return poems[:7] + poems[2:3] + poems[7:]


@exercise("fine-tuning.split", kind="spot the bug")
def split(answer):
    """Look at who stands where, for several orders of the same poems."""
    poems = _poems()
    lines = {line for poem in poems for line in poem.splitlines()}
    for turn in range(len(poems)):
        turned = poems[turn:] + poems[:turn]
        got = unpack(run(answer, turned), 2, "two lists of poems: to learn from, to test")
        learn, test = map(strings, got)
        both = {*learn, *test}
        faults = {
            "these are lines, not poems. A line whose neighbours were learned by heart "
            "is no test: deal out whole poems.": both & lines,
            "what you return are no poems of the list.": not both <= {*poems},
            "some poems are in neither part.": both != {*poems},
            "the test part is empty.": not test,
            "nothing is left to learn from.": not learn,
            "a poem stands in both parts: one of the list stands in it twice, and its "
            "copies were dealt to different sides.": {*learn} & {*test},
            "the test part is larger than the other: a third at most, please.": (
                len({*test}) > len(both) / 3 + 1
            ),
        }
        diagnose(faults)


# The page measures it.
predict(
    "fine-tuning.forgets",
    a="both are English verse, and more verse might help. But nothing in the new "
    "text asks for long lines, or for *thou*.",
    b=None,
    c="every weight moves, and nothing holds what the sonnets need in its place.",
)


@exercise("fine-tuning.lora", kind="spot the bug")
def lora(answer):
    """Wrap a layer, look at what it computes, and train it a little."""
    layer, x, target = nn.Linear(6, 4), normal(9, 6), normal(9, 4, seed=1)
    layer.weight.data, layer.bias.data = normal(4, 6, seed=2), normal(4, seed=3)
    want, before = layer(x).detach(), layer.weight.detach().clone()
    module = run(answer, layer, 2)
    if not isinstance(module, nn.Module):
        made = type_name(module)
        raise Wrong(f"pass the class itself; it should make a module, not {made}.")
    with torch.enable_grad():
        first = _output(module, x, want)
        named = {name: w for name, w in module.named_parameters() if w.requires_grad}
        own = [w for w in named.values() if w is not layer.weight and w is not layer.bias]
        count = sum(w.numel() for w in own)
        faults = {
            "the layer's own weights are trained, too: `requires_grad_(False)`.": (
                len(own) < len(named)
            ),
            "nothing in it is trained: its matrices must be `nn.Parameter`.": not own,
            f"{count} numbers are trained; with a rank of 2 there should be "
            "2 × (6 + 4).": count != 20,
            "the layer's own matrix has changed.": not torch.equal(layer.weight, before),
            "before it has learned anything it must compute what the layer computes: "
            "what is added must be zero.": not torch.allclose(first, want, atol=1e-5),
        }
        diagnose(faults)
        _train_a_little(module, own, x, want, target)


def _train_a_little(module, own, x, want, target):
    """Refuse a module whose own parameters don't bring it nearer to a target."""
    optimizer = torch.optim.SGD(own, 0.1)
    for step in range(50):
        loss = (_output(module, x, want) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        if step == 0 and not any(
            w.grad is not None and w.grad.abs().max() > 0 for w in own
        ):
            raise Wrong(
                "it never learns. The gradient of each factor is a product with the other "
                "one: if both are zero, both gradients are, for ever."
            )
        optimizer.step()
    if loss.item() > 0.9 * (want - target).square().mean().item():
        raise Wrong("fifty steps of training hardly change what it computes.")


def _output(module, x, want):
    found = run(module, x)
    if not isinstance(found, torch.Tensor) or found.shape != want.shape:
        raise Wrong("called with a tensor (9, 6) it should return one of shape (9, 4).")
    return found


@exercise("fine-tuning.merge")
def merge(answer):
    """Compare with the matrix whose product is the sum of both paths."""
    weight, down, up = (
        normal(*shape, seed=i).double() for i, shape in enumerate([(5, 7), (3, 7), (5, 3)])
    )
    scale, path = 0.4, up @ down
    mistakes = {
        "the scale is not used.": weight + path,
        "the scale is not divided by the rank here; it is given as it is used.": (
            weight + scale / 3 * path
        ),
        "this is what is added; the layer's own matrix is missing.": scale * path,
        "the path is subtracted: that undoes a merge.": weight - scale * path,
        "the layer's own matrix is scaled, too.": scale * (weight + path),
    }
    given = weight.clone()
    run(answer, given, down.clone(), up.clone(), scale, keep=True)
    if not torch.equal(given, weight):
        raise Wrong(
            "you changed the matrix that you were given. Return a new one: what was "
            "overwritten cannot be put back exactly."
        )
    want = weight + scale * path
    expect(answer, [weight, down, up, scale], want, mistakes, tolerance=1e-9)


judge(
    "fine-tuning.claim",
    a="the same learning rate is not a fair one: each method has its own best rate.",
    b="a step of one method costs more than a step of another; and that is not all.",
    c="more seeds would tell how sure the difference is, not what it is due to.",
    d=None,
)


BASE = 2.16, 1.66  # what the untuned model loses on the validation poems of both
LEARNED, KEPT, TOO_LOW = 1.9, 1.68, 1.55


@exercise("fine-tuning.own", kind="experiment")
def own(answer):
    """Look at the losses on both poets' validation poems."""
    pair = "two losses, on Dickinson's and on Shakespeare's validation poems"
    if not isinstance(answer, tuple | list):
        answer = array(answer).tolist()
    new, old = map(number, unpack(answer, 2, pair))
    return {
        "a loss is out of range: nats per character, please, between 1 and 4.": (
            not (1 < new < 4 and 1 < old < 4)
        ),
        "so low a loss on Dickinson no run of ours has reached: was it measured on "
        "poems that the model was trained on?": new < TOO_LOW,
        "so low a loss on Shakespeare no run of ours has reached: was it measured on "
        "sonnets that the model was trained on?": old < TOO_LOW,
        f"Shakespeare is kept, but Dickinson is hardly learned: below {LEARNED}, "
        "please. Train for longer, at a higher rate, or more of the weights.": (
            new >= LEARNED and old < KEPT
        ),
        f"Dickinson is learned, but Shakespeare is forgotten: below {KEPT}, please. "
        "What if the model goes on reading him?": new < LEARNED and old >= KEPT,
        "the new poet is not learned, and the old one is forgotten: is the rate too "
        "high?": new >= LEARNED,
    }
