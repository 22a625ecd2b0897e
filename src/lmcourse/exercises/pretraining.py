"""Checks for the exercises of the chapter *pretraining*."""

from unittest import mock

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from transformers import BertTokenizerFast

from lmcourse import data
from lmcourse.exercises import Wrong, compare, exercise, judge, predict, run
from lmcourse.exercises.answers import array, diagnose, normal, unpack
from lmcourse.masking import place_losses
from lmcourse.mini_bert import passages, poem_splits


@exercise("pretraining.places", kind="spot the bug")
def places(answer):
    """Look at what is chosen with a share of one, of nothing, and in two draws."""
    ids = torch.tensor([[2, 7, 9, 6, 3, 0], [2, 5, 8, 3, 0, 0]])
    special, ordinary = torch.tensor([0, 1, 2, 3, 4]), ids >= 5

    def chosen(share, random, text=ids, special=special):
        found = array(run(answer, text, special, share, random))
        if found.dtype != bool or found.shape != tuple(text.shape):
            raise Wrong("return a tensor of True and False of the shape of ids.")
        return torch.as_tensor(found)

    random = torch.Generator().manual_seed(0)
    state = torch.get_rng_state()
    every, none = chosen(1.0, random), chosen(0.0, random)
    many = torch.full((400, 20), 7)
    first, second = chosen(0.15, random, many), chosen(0.15, random, many)
    share = first.double().mean().item()
    others = chosen(1.0, random, special=torch.tensor([7, 8]))
    return {
        "with a share of 1 special tokens are chosen: padding, [CLS], [SEP]. A model "
        "would learn to say that texts begin with [CLS].": (every & ~ordinary).any(),
        "with a share of 1 ordinary places are left out.": (ordinary & ~every).any(),
        "with a share of 0 something is chosen.": none.any(),
        "`special` is not used: in another vocabulary other ids are no text.": (
            others[(ids == 7) | (ids == 8)].any() or not others[ids == 0].all()
        ),
        "two draws choose the same places: draw anew each time, from the generator.": (
            torch.equal(first, second)
        ),
        "a share of 0.15 chooses 85 %: which way round is the comparison?": share > 0.8,
        f"a share of 0.15 chooses {share:.0%}.": abs(share - 0.15) > 0.03,
        "the reader's own random state moved: draw from the generator that is given.": (
            not torch.equal(state, torch.get_rng_state())
        ),
    }


predict(
    "pretraining.ever_asked",
    a="that is what ten independent draws would come to. How many draws were there?",
    b=None,
    c="to be asked for everything a place must be drawn again and again. How often "
    "was it drawn here?",
)


@exercise("pretraining.loss", kind="spot the bug")
def loss(answer):
    """Compare with PyTorch's cross-entropy at the chosen places."""
    logits = 2 * normal(3, 6, 9, seed=0).double()  # (batch, tokens, vocab_size)
    ids = torch.randint(9, (3, 6), generator=torch.Generator().manual_seed(1))
    chosen = torch.zeros(3, 6, dtype=torch.bool)
    chosen[0, [1, 4]] = chosen[1, 2] = chosen[2, [0, 3, 5]] = True
    each = F.cross_entropy(logits.mT, ids, reduction="none")  # (batch, tokens)
    mistakes = {
        "all places count: what was never hidden is asked for, too, and copying it is "
        "rewarded.": each.mean(),
        "only the places that were *not* chosen count.": each[~chosen].mean(),
        "the losses of the chosen places are divided by the number of all places.": (
            (each * chosen).mean()
        ),
        "the losses are summed; take their mean.": each[chosen].sum(),
        "the sign: a loss is minus the logarithm.": -each[chosen].mean(),
        "each text is averaged by itself; every chosen place counts the same.": (
            torch.stack([row[c].mean() for row, c in zip(each, chosen, strict=True)]).mean()
        ),
    }
    compare(run(answer, logits, ids, chosen), each[chosen].mean(), mistakes)


@exercise("pretraining.training", kind="experiment")
def training(answer):
    """Train with a seed of its own, count the steps, and judge on validation poems."""
    found = data.stored("pretraining")["results"]["vocabulary"]
    tokenizer = BertTokenizerFast({piece: i for i, piece in enumerate(found)})
    backward = torch.Tensor.backward
    with mock.patch.object(
        torch.Tensor, "backward", autospec=True, side_effect=backward
    ) as steps:
        model = run(answer, 7)
    if not isinstance(model, nn.Module):
        raise Wrong("return the trained model: it is trained here, with a seed of its own.")
    ids = [x for text in poem_splits()[1][::4] for x in passages(text, tokenizer, 32)]
    ids = pad_sequence(ids, batch_first=True)  # (passages, tokens)
    costs = place_losses(lambda x, places: model.eval()(x, places=places), ids, tokenizer)
    loss = costs[costs > 0].mean().item()
    return {
        f"that took {steps.call_count} steps; sixty are allowed.": steps.call_count > 60,
        "it was not trained at all.": steps.call_count == 0,
        f"on seed 7 it comes to {loss:.2f} nats per piece on validation poems; more can be "
        "had in sixty steps. Each step asks for `share` of the places: what does a larger "
        "share buy?": not loss < 5.26,
    }


@exercise("pretraining.target")
def target(answer):
    """Compare source and target of a text with two spans cut out, and of others."""
    cases = [
        ([11, 12, 13, 14, 15, 16, 17], [(1, 3), (5, 6)], [90, 91, 92]),
        ([11, 12, 13, 14], [(0, 1), (2, 4)], [90, 91, 92]),
        ([11, 12, 13], [(1, 2)], [90, 91]),
    ]
    for ids, spans, names in cases:
        got = unpack(run(answer, ids, spans, names), 2, "two lists: source and target")
        source, asked = (array(part).tolist() for part in got)
        right, start = [], 0
        for name, (a, b) in zip(names, spans, strict=False):
            right += [*ids[start:a], name]
            start = b
        right += ids[start:]
        end = names[len(spans)]
        named = [(name, ids[a:b]) for name, (a, b) in zip(names, spans, strict=False)]
        wanted = [x for name, cut in named for x in (name, *cut)]
        if (source, asked) == ([*wanted, end], right):
            raise Wrong("source and target are swapped.")
        diagnose(_how_cut(source, asked, ids, spans, names))
        diagnose(_source_faults(source, right, ids, named))
        diagnose(_target_faults(asked, wanted, end, ids, named))


def _how_cut(source, asked, ids, spans, names):
    closed = [
        x
        for name, (a, b) in zip(names, spans, strict=False)
        for x in (name, *ids[a : b + 1])
    ]
    forwards = [*ids]
    for name, (a, b) in zip(names, spans, strict=False):
        forwards[a:b] = [name]
    backwards = [*ids]
    for name, (a, b) in reversed(list(zip(names, spans, strict=False))):
        backwards[a:b] = [name]
    return {
        f"the end of a span is not part of it: of {ids} the span {spans[0]} is "
        f"{ids[slice(*spans[0])]}.": asked == [*closed, names[len(spans)]],
        "once a span is cut out of the list, all behind it moves to the left, and the next "
        f"pair points elsewhere: of {ids} with {spans} {forwards} is left.": (
            source == forwards != backwards
        ),
    }


def _source_faults(found, right, ids, named):
    names = [name for name, _ in named]
    several_each, cuts = [], dict(named)
    for x in right:
        several_each += [x] * len(cuts.get(x, [x]))
    return {
        "a span of several tokens becomes one sentinel, not one for each token.": (
            found == several_each != right
        ),
        "all spans have the same sentinel: which is which?": (
            found == [names[0] if x in names else x for x in right] != right
        ),
        "the source keeps what should be cut out.": found == ids,
        "the spans are cut out of the source, but nothing marks where.": (
            found == [x for x in right if x not in names]
        ),
        "the source ends at a sentinel: what stands behind the last span is missing.": found
        == right[: right.index(names[-1]) + 1]
        != right,
        "the source is not right.": found != right,
    }


def _target_faults(found, wanted, end, ids, named):
    return {
        "the target lacks its last sentinel, which says that it ends.": found == wanted,
        "the target holds what was cut out, without its sentinels.": (
            found == [x for _, cut in named for x in cut]
        ),
        "in the target each sentinel stands before what it stands for.": (
            found == [x for name, cut in named for x in (*cut, name)] + [end]
        ),
        "the target is the whole text; only what was cut out is asked for.": (found == ids),
        "the target is not right.": found != [*wanted, end],
    }


@exercise("pretraining.mask", kind="spot the bug")
def mask(answer):
    """Look at who may look at whom, two texts of different lengths at once."""
    ids = torch.tensor([[5, 6, 7, 8], [5, 9, 0, 0]])
    found = array(run(answer, ids, 0))
    if found.dtype != bool:
        raise Wrong("a mask of True and False is expected: True where one may look.")
    try:
        seen = torch.as_tensor(found).expand(2, 1, 4, 4)  # (batch, heads, queries, keys)
    except RuntimeError:
        raise Wrong(
            f"the shape is {found.shape}; (batch, 1, 1, tokens) or what broadcasts with it "
            "is expected."
        ) from None
    first, second = seen[0, 0], seen[1, 0, :2]  # the second text has two real tokens
    later = torch.ones(4, 4, dtype=torch.bool).triu(1)
    return {
        "True and False are swapped: padding is all that can be seen.": (
            seen[1, 0, :2, 2:].all() and not seen[1, 0, :2, :2].any()
        ),
        "padding can be looked at.": second[:, 2:].any(),
        "the mask is causal: no token sees what stands after it. A decoder must not; "
        "an encoder that fills blanks needs both sides.": not first[later].any(),
        "no token sees what stands before it.": not first[later.T].any(),
        "some real token can't be looked at.": not (first.all() and second[:, :2].all()),
    }


judge(
    "pretraining.compare",
    a="one model saw both sides of what it was asked for, the other one side: piece by "
    "piece they were not asked the same.",
    b="it is asked for fewer places, but the mean is over those; and nothing here shows "
    "that they are as good.",
    c="both sums can be right: one is over all pieces from the left, the other over "
    "hidden ones.",
    d=None,
)
