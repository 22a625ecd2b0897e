"""What the chapter *transformer-block* claims, checked where the page places it.

The ``page`` of a proof or a null is a `studies.findings.Page`: the names that the page has
defined so far, as attributes. Losses are in nats a character. ``page.flows`` are those of
`lmcourse.lacking.random_flows`, twelve random stacks of 24 blocks of each kind;
``page.held_out`` has `EACH` windows of each validation sonnet, one sonnet after the other.
"""

import copy
import itertools
import math
from contextlib import ExitStack

import numpy as np
import torch
from scipy.spatial import ConvexHull
from torch import nn
from torch.nn import functional as F

from lmcourse.attention import causal_mask
from lmcourse.data import load_texts, stored, train_val_test_split
from lmcourse.gpt.inside import window_losses
from lmcourse.ngrams import NgramModel
from lmcourse.numbers import bootstrap_interval
from lmcourse.stand_ins import given_and_returned, instead, straight_line
from lmcourse.tokenization import CharTokenizer
from lmcourse.transformer import Stack
from studies import nulls
from studies.findings import finding, proof, right_letter
from studies.measures import extremes
from studies.transformer_block import bend
from studies.transformer_block.transformer_block import frequency_loss

EACH = 4  # windows of a sonnet
SEEDS = range(5)
close = torch.testing.assert_close


def sonnet_interval(values) -> tuple[float, float]:
    """Return the 95 % interval of a mean over sonnets.

    Parameters
    ----------
    values : Tensor of shape (windows,)
        Four windows of each sonnet, one sonnet after the other. Those of a sonnet, which
        are not independent, count as one.

    Returns
    -------
    low, high : float
    """
    return bootstrap_interval(values.view(-1, EACH).mean(dim=1).numpy())


# --- the block ----------------------------------------------------------------------------


@proof("Before it is trained, the GPT guesses blindly.")
def untrained_guesses_blindly(page):
    """Check that the untrained GPT's loss is near that of equal probabilities.

    It is within 0.5 nats.

    ``ceiling`` is a bound, in tenths of a nat, on how much its loss changes when any one
    part is removed; ``most`` is the largest change of the trained GPT.

    Parameters
    ----------
    page : Page
        ``gpt`` is the trained GPT; ``without`` and ``random_without`` are tables of the
        trained and the untrained GPT, one row for each part that is removed: the ``loss``
        then, and its ``change``, in nats a character.

    Returns
    -------
    dict
        ``loss``: of the untrained GPT, in nats; ``blind``: of equal probabilities;
        ``characters``: the vocabulary's size; ``ceiling`` and ``most``: as above.
    """
    blind = math.log(page.gpt.config.vocab_size)
    parts = page.random_without
    whole = float((parts.loss - parts.change).iloc[0])
    assert abs(whole - blind) < 0.5
    return {
        "loss": whole,
        "blind": blind,
        "characters": page.gpt.config.vocab_size,
        "ceiling": math.ceil(10 * float(parts.change.abs().max())) / 10,
        "most": float(page.without.change.max()),
    }


@proof("The two lines, written out, are what a layer of the GPT computes.")
def two_lines(page):
    """Check that the two lines of the page compute what a layer of the GPT computes.

    ``page.after`` is made by hand from ``page.before``, with the parts of layer 0.

    They agree to 1e-5 of the largest number. ``times`` is the mean length of what the
    feed-forward network of layer 0 adds, divided by that of the residual stream before it,
    on the training sonnets.

    Parameters
    ----------
    page : Page
        ``gpt`` is the trained GPT; ``before`` and ``after`` are states at its layer 0, the
        first, Tensors (1, tokens, d_model); ``passed`` is a dict, module → what it was
        given and what it returned on the training sonnets, Tensors (tokens, d_model).

    Returns
    -------
    dict
        ``layers``, ``tokens``, ``d_model`` and ``d_ff``: sizes; ``times``: as above.
    """
    layer = page.gpt.blocks[0]
    with torch.no_grad():
        whole, _ = layer(page.before)
    largest = whole.abs().max().item()
    close(page.after, whole, rtol=0, atol=1e-5 * largest)
    stream, _ = page.passed[layer.norm_2]
    _, added = page.passed[layer.feed_forward]
    tokens, d_model = page.before.shape[1:]
    return {
        "layers": len(page.gpt.blocks),
        "tokens": tokens,
        "d_model": d_model,
        "d_ff": layer.feed_forward.up.weight.shape[0],
        "times": (added.norm(dim=-1).mean() / stream.norm(dim=-1).mean()).item(),
    }


# --- averages -----------------------------------------------------------------------------


@proof("Each round of attention lies within the convex hull of the one before.")
def averages_stay_inside(page):
    """Check nine points after each of four rounds, in units of their spread before it.

    Parameters
    ----------
    page : Page
        ``rounds``: list of float64 Tensors (9, 2), the points as drawn, then those after
        each of the rounds of averaging.

    Returns
    -------
    dict
        ``first`` and ``last``: the largest distance of two points, as drawn and after the
        last round.
    """
    for before, after in itertools.pairwise(page.rounds):
        middle = before.mean(dim=0)
        spread = before.std()  # late rounds are very small
        outer, inner = ((x - middle) / spread for x in (before, after))
        # A point is inside if its product with each normal, plus its offset, is below 0.
        half_planes = ConvexHull(outer.numpy()).equations
        normals = half_planes[:, :2]
        offsets = half_planes[:, 2]
        assert (inner.numpy() @ normals.T + offsets < 1e-9).all()
    widest = [torch.cdist(x, x).max().item() for x in (page.rounds[0], page.rounds[-1])]
    return {"first": widest[0], "last": widest[1]}


def at_the_end(flows, name, kind) -> np.ndarray:
    """Return what random stacks end with, a number for each seed: an array (seeds,).

    Parameters
    ----------
    flows : dict of str to list of dict
        What the stacks lack → for each seed a dict of lists, a number before the first
        block and after each: ``spread``, ``size`` and ``gradient``.
    name : str
        What the stacks lack, such as "paths"; "nothing" for whole ones.
    kind : {"spread", "size", "gradient"}
        How far the tokens' states are from their mean, as a share of their length; the
        standard deviation of all numbers; the length of the gradient.
    """
    return np.array([run[kind][-1] for run in flows[name]])


@proof("In random stacks without residual paths, averaging makes all tokens the same.")
def paths_keep_tokens_apart(page):
    """Compare stacks of 24 blocks, twelve seeds, from Xavier's weights and PyTorch's own.

    Without paths less than a hundred-thousandth is left of the spread in every stack. With
    the same matrices a thousand times as much is left where each token attends only to
    itself, so that nothing is averaged; with all parts a fifth and more; without attention
    still more.

    Parameters
    ----------
    page : Page
        ``flows`` and ``small_flows``, of Xavier's first weights and of PyTorch's own, are
        dicts: what is removed ("nothing", "attention", "paths", "paths, other tokens", …) →
        list of dict, one a random stack: ``spread``, a list, before and after each block
        how far the tokens' states are from their mean, as a share of their length.

    Returns
    -------
    dict
        Medians of the spread that is left, by Xavier's weights: ``all``, with all parts;
        ``paths``, without paths; ``alone``, each token attending only to itself, too.
        ``stacks``: how many.
    """
    ends = {name: at_the_end(page.flows, name, "spread") for name in page.flows}
    small = {name: at_the_end(page.small_flows, name, "spread") for name in page.flows}
    for spreads in (ends, small):
        assert spreads["paths"].max() < 1e-5
        assert spreads["paths, other tokens"].min() > 1000 * spreads["paths"].max()
        assert spreads["nothing"].min() > 0.2
        assert spreads["attention"].min() > spreads["nothing"].max()
    return {
        "all": float(np.median(ends["nothing"])),
        "paths": float(np.median(ends["paths"])),
        "alone": float(np.median(ends["paths, other tokens"])),
        "stacks": len(ends["paths"]),
    }


# --- norms --------------------------------------------------------------------------------


@proof("Our layer norm equals PyTorch's; the size and level of a token are gone.")
def layer_norm_is_pytorchs(page):
    """Check the lesson's layer norm against PyTorch's.

    No other token matters: one position alone is normalised as it is among others.

    A hundred times the vectors plus 40 gives the same, to 1e-4.

    Parameters
    ----------
    page : Page
        ``norm`` is the lesson's layer norm of 16 numbers, an nn.Module; ``x`` is a float64
        Tensor (texts, tokens, 16).

    Returns
    -------
    dict
        ``tokens``: how many a text has.
    """
    norm = page.norm
    x = page.x
    normed = norm(x)
    close(normed, nn.LayerNorm(16).double()(x))
    close(norm(100 * x + 40), normed, atol=1e-4, rtol=0)
    close(norm(x[:, 2]), normed[:, 2])
    return {"tokens": x.shape[1]}


@proof("RMSNorm equals PyTorch's; with batch norm a token depends on other texts.")
def other_norms(page):
    """Check RMSNorm against PyTorch's, and that batch norm mixes texts.

    RMSNorm forgets the size of a vector and keeps its level.

    With layer norm a token stays as it is when another text of the batch changes.

    Parameters
    ----------
    page : Page
        ``RMSNorm`` is the lesson's class, made with a width; ``norm`` its layer norm of 16
        numbers; ``x`` is a float64 Tensor (texts, tokens, 16).

    Returns
    -------
    dict
        ``d_model``: the width, 16.
    """
    rms = page.RMSNorm(16).double()
    norm = page.norm
    x = page.x
    close(rms(x), nn.RMSNorm(16, eps=1e-6).double()(x))
    close(rms(100 * x), rms(x))
    assert not torch.allclose(rms(x + 40), rms(x), atol=0.1)
    changed = x.clone()
    changed[1] = 50.0  # another text changes
    close(norm(changed)[0], norm(x)[0])
    batch_norm = nn.BatchNorm1d(16).double()
    normed = [batch_norm(each.flatten(0, 1))[0] for each in (x, changed)]
    assert not torch.allclose(*normed, atol=0.1)
    return {"d_model": x.shape[2]}


@proof(
    "Without norms, the numbers in deep stacks with large random weights explode; with one "
    "constant factor they do not."
)
def sizes_without_norms(page):
    """Check how the size of the numbers grows in random stacks without norms.

    24 blocks, twelve seeds: with Xavier's first weights the size grows a thousandfold.

    With PyTorch's own first weights, which are smaller, it stays below 10, as it does with
    all parts; with one constant factor for each update in place of norms it stays below 2.
    ``steep`` is how many times larger the gradient is at the input than at the end, with
    all parts.

    Parameters
    ----------
    page : Page
        ``flows`` and ``small_flows``, of Xavier's first weights and of PyTorch's own, are
        dicts: what is removed ("nothing", "norms", "norms, one constant", …) → list of
        dict, one a random stack, of lists, before and after each block: ``size``, the
        standard deviation of all numbers; ``gradient``, its length there.

    Returns
    -------
    dict
        Median sizes at the end: ``norms``, rounded to ten thousands, and ``small``, without
        norms, by Xavier's weights and PyTorch's; ``constant``, with one constant in place
        of norms; ``whole``, with all parts; these two by Xavier's. ``steep``: as above.
    """
    norms = at_the_end(page.flows, "norms", "size")
    small = at_the_end(page.small_flows, "norms", "size")
    constant = at_the_end(page.flows, "norms, one constant", "size")
    whole = at_the_end(page.flows, "nothing", "size")
    assert norms.min() > 1000
    assert max(small.max(), whole.max()) < 10
    assert constant.max() < 2
    steep = [run["gradient"][0] / run["gradient"][-1] for run in page.flows["nothing"]]
    return {
        "norms": float(np.median(norms).round(-4)),
        "small": float(np.median(small)),
        "constant": float(np.median(constant)),
        "whole": float(np.median(whole)),
        "steep": float(np.median(steep)),
    }


def changed_losses(page, model, name, function=None) -> torch.Tensor:
    """Return the loss of each held-out window with one part of every layer replaced.

    Parameters
    ----------
    page : studies.findings.Page
        ``held_out`` are windows and targets, ids (windows, tokens) both.
    model : lmcourse.gpt.model.GPT
        It is changed only meanwhile.
    name : str
        Of a part of a block, such as "norm_1" or "attention".
    function : callable, optional
        What stands in for it, called with its input, (windows, tokens, d_model). By default
        the part returns what it is given.

    Returns
    -------
    Tensor of shape (windows,)
        In nats a character.
    """
    with ExitStack() as changes, torch.no_grad():
        for block in model.blocks:
            part = getattr(block, name)
            changes.enter_context(instead(part, function or (lambda x: x)))
        return window_losses(model, *page.held_out)


def nothing_found(x):
    """Return what attention returns if it finds nothing: zeros, and no weights.

    Parameters
    ----------
    x : Tensor of shape (..., tokens, d_model)

    Returns
    -------
    zeros : Tensor
        Of the shape of ``x``.
    weights : None
    """
    return torch.zeros_like(x), None


def norms_against_attention(page, model) -> torch.Tensor:
    """Return how much worse a GPT is without norm 1 than without attention.

    The losses are those of each held-out window; either is removed from all layers.

    Parameters
    ----------
    page : Page
        ``held_out`` are held-out windows and targets, ids (windows, tokens) both.
    model : nn.Module
        A GPT.

    Returns
    -------
    Tensor of shape (windows,)
        Loss without norm 1 less that without attention, in nats a character.
    """
    without_norms = changed_losses(page, model, "norm_1")
    return without_norms - changed_losses(page, model, "attention", nothing_found)


def other_lengths(page, layer) -> torch.Tensor:
    """Return how much the loss rises if norm 1 gives each token another one's length.

    The lengths are shuffled among all tokens of all windows.

    Parameters
    ----------
    page : Page
        ``gpt`` is the trained GPT; ``held_out`` are held-out windows and targets, ids
        (windows, tokens) both; ``whole`` are its losses there, (windows,).
    layer : int
        The block whose norm 1 it is, from 0.

    Returns
    -------
    Tensor of shape (windows,)
        In nats.
    """
    norm = page.gpt.blocks[layer].norm_1

    def shuffled(module, inputs, output):
        """Return each vector with the length of another one: a forward hook.

        ``output`` : Tensor (windows, tokens, d_model), as is what is returned; ``module``
        and ``inputs`` are not used.
        """
        lengths = output.norm(dim=-1, keepdim=True)  # (windows, tokens, 1)
        order = torch.randperm(lengths.numel(), generator=torch.Generator().manual_seed(0))
        return output / lengths * lengths.flatten()[order].view_as(lengths)

    with norm.register_forward_hook(shuffled), torch.no_grad():
        return window_losses(page.gpt, *page.held_out) - page.whole


def random_weights(page):
    """A GPT with random weights, as it was before its training.

    Parameters
    ----------
    page : Page
        ``random_gpt`` is the untrained GPT.

    Returns
    -------
    Page
        A page like this one, whose ``gpt`` is the untrained one.
    """
    return page.replaced(gpt=page.random_gpt)


def longer_losses(off) -> list[float]:
    """Return the losses of the models that trained for 1,000 steps without a part.

    Parameters
    ----------
    off : str
        What is removed, such as "norms"; "nothing" for whole models.

    Returns
    -------
    list of float
        One a seed, in nats a character, as the study *transformer-block* has them.
    """
    rows = stored("transformer-block")["results"]["longer"]
    return [row["loss"] for row in rows if row["off"] == off]


@finding(
    "Without the norms before its attention our trained GPT does worse than without "
    "attention itself; yet small GPTs that never had norms can learn just as well.",
    rival="all attention removed: {attention:.1f} nats; GPTs with shuffled weights miss "
    "norms more by {shuffled:.1f} nats at most",
    null=random_weights,
    n="{windows} windows of {sonnets} held-out sonnets; three models of each kind",
    interval="without norms worse than without attention by {gap:.1f} nats (over sonnets)",
)
def missed_is_not_needed(page):
    """Check that norms are missed when removed, and not needed in a training.

    Norm 1 of all layers, removed, costs a nat more than attention of all layers.

    Attention is all that norm 1 feeds: without it attention does more harm than it would by
    being silent. So it is in each layer after layer 0. Of all parts the feed-forward
    network of layer 0 is missed most. In three GPTs with the same weights shuffled the
    difference is smaller. What attention relies on is about the right length: with another
    token's the loss rises by less than 0.05 nats. Three models that trained for 1,000 steps
    without norms end below three whole ones; three without attention end above these by
    more than 0.2 nats. From larger first weights models without norms do not train as well;
    that is no part of this proof (`learned_without_norms`).

    Parameters
    ----------
    page : Page
        ``gpt`` is the trained GPT; ``held_out`` are held-out windows and targets, ids
        (windows, tokens) both, four windows a sonnet; ``whole`` are its losses there,
        (windows,); ``without`` is a table, one row for each part that is removed:
        ``layer``, from 0, ``part``, such as "norm_1", and the ``change`` of the loss in
        nats; ``read`` is like ``held_out``, of the training sonnets.

    Returns
    -------
    dict
        In nats a character: ``gap``, the 95 % interval of the loss without norm 1 less that
        without attention, of all layers; ``attention``, the rise without attention;
        ``shuffled``, the largest gap of shuffled weights. In one layer after layer 0:
        ``later``, a bound on the least rise without norm 1, and ``later_attention``, one on
        the greatest without attention; ``lengths``, the largest rise by other lengths;
        ``first_norm`` and ``first_attention``, the rise in the first of these layers.
        ``long_whole``, ``long_norms`` and ``long_attention``: mean losses after 1,000
        steps. ``longer``: how many times longer norm 1's input is than its output in these
        layers, at least, a whole number; ``windows`` and ``sonnets``: how many; ``answer``:
        the letter of the right choice: "b" if after 1,000 steps all models without norms
        are better than all without attention, else "a".
    """
    gap = sonnet_interval(norms_against_attention(page, page.gpt))
    copies = [nulls.shuffled_weights(page.gpt, seed).eval() for seed in range(3)]
    shuffled = [norms_against_attention(page, model).mean().item() for model in copies]
    whole, norms, attention = map(longer_losses, ("nothing", "norms", "attention"))
    by_layer = page.without.pivot(index="layer", columns="part", values="change")
    # The layers after layer 0; of a model of one layer this one.
    later = by_layer.iloc[1:] if len(by_layer) > 1 else by_layer
    lengths = [other_lengths(page, layer).mean().item() for layer in later.index]
    norm_1 = [block.norm_1 for block in page.gpt.blocks]
    passed = given_and_returned(page.gpt, norm_1, page.read[0])
    sizes = [[x.norm(dim=-1).mean() for x in passed[norm]] for norm in norm_1]
    assert gap[0] > 1
    assert gap[0] > max(shuffled)
    assert (later.norm_1 > later.attention).all()
    assert by_layer.iloc[0].feed_forward == by_layer.max(axis=None)
    assert max(lengths) < 0.05
    assert max(norms) < min(whole)
    assert max(whole) < min(attention) - 0.2
    without_attention = changed_losses(page, page.gpt, "attention", nothing_found)
    return {
        "gap": gap,
        "attention": (without_attention - page.whole).mean().item(),
        "shuffled": max(shuffled),
        "windows": len(page.whole),
        "sonnets": len(page.whole) // EACH,
        "later": math.floor(10 * float(later.norm_1.min())) / 10,
        "later_attention": math.ceil(10 * float(later.attention.max())) / 10,
        "lengths": max(lengths),
        "longer": int(min(given / normed for given, normed in sizes[-len(later) :])),
        "first_norm": float(later.norm_1.iloc[0]),
        "first_attention": float(later.attention.iloc[0]),
        "long_whole": float(np.mean(whole)),
        "long_norms": float(np.mean(norms)),
        "long_attention": float(np.mean(attention)),
        "answer": "b" if max(norms) < min(attention) else "a",
    }


# --- the feed-forward network -------------------------------------------------------------


def three_tables(page, network):
    """Return a function that adds up three tables in place of a network.

    A vector for the letter, one for the letter before and one for the position in the
    window are fitted together (with a small ridge penalty) to what the network returns on
    the training sonnets. The function ignores its input; it knows the held-out text.

    Parameters
    ----------
    page : studies.findings.Page
        ``tokenizer`` cuts into letters; ``read`` are training windows and targets, ids
        (windows, tokens) both; ``held_out`` are others; ``passed`` is a dict, network →
        what it was given and what it returned on the training windows, Tensors (windows ·
        tokens, d_model).
    network : nn.Module
        The feed-forward network of a layer.

    Returns
    -------
    callable
        From any input to a Tensor of shape (windows, tokens, d_model).
    """
    size = page.tokenizer.vocab_size

    def features(ids):
        """Return one-hot vectors of letter, letter before and position, side by side.

        ``ids`` : int64 Tensor (windows, tokens). Returned is a float Tensor (windows ·
        tokens, features).
        """
        before = F.pad(ids[:, :-1], (1, 0), value=size)
        positions = torch.arange(ids.shape[1]).expand_as(ids)
        kinds = [(ids, size), (before, size + 1), (positions, ids.shape[1])]
        return torch.cat([F.one_hot(x, n) for x, n in kinds], dim=-1).flatten(0, 1).float()

    known = features(page.read[0])
    _, returned = page.passed[network]
    gram = known.T @ known + torch.eye(known.shape[1])
    tables = torch.linalg.solve(gram, known.T @ returned)
    shape = (*page.held_out[0].shape, -1)
    return lambda x: (features(page.held_out[0]) @ tables).view(shape)


@proof(
    "No straight line comes nearer than ours to the output of layer 0's feed-forward "
    "network."
)
def line_in_layer_0(page):
    """Check that the line in place of layer 0's network is the least-squares line.

    What it leaves is at right angles to what it is given.

    The answer of the task goes by the rise of the loss with the line in place of the
    network, as a share of the rise without it: "c" below a tenth, "b" below 0.8, else "a".

    Parameters
    ----------
    page : Page
        ``gpt`` is the trained GPT and ``networks`` a list of its feed-forward networks, by
        layer; ``passed`` is a dict, network → what it was given and returned on training
        sonnets, Tensors (tokens, d_model); ``held_out`` are held-out windows and targets,
        ids (windows, tokens) both, and ``whole`` the losses there, (windows,).
        ``rise(networks, function)`` returns the rise of each window's loss, (windows,),
        with a function of the network and its input in the place of each network: ``line``,
        its least-squares line, or ``nothing``, zeros.

    Returns
    -------
    dict
        Mean rises of the loss, in nats: ``removed``, without the network of layer 0;
        ``line``, with a line in its place, and the 95 % ``interval``; ``tables``, with
        three tables (for the letter, the letter before and the position); ``together``,
        lines in all layers. ``answer``: the letter of the right
        choice.
    """
    network = page.networks[0]
    given, returned = (x.double() for x in page.passed[network])
    residual = returned - straight_line(given, returned)(given)
    scale = given.norm() * returned.norm()
    assert (given.T @ residual).abs().max() < 1e-6 * scale
    assert residual.mean(dim=0).abs().max() < 1e-6 * returned.norm()
    line = page.rise([network], page.line)
    removed = page.rise([network], page.nothing).mean().item()
    with torch.no_grad(), instead(network, three_tables(page, network)):
        tables = (window_losses(page.gpt, *page.held_out) - page.whole).mean().item()
    together = page.rise(page.networks, page.line).mean().item()
    part = line.mean().item() / removed
    return {
        "removed": removed,
        "line": line.mean().item(),
        "interval": sonnet_interval(line),
        "tables": tables,
        "together": together,
        "answer": right_letter({"c": part < 0.1, "b": part < 0.8}, otherwise="a"),
    }


@proof("Trained from the start, models without a bend learn less than without networks.")
def bend_is_needed(page):
    """Compare three models of each kind in the study *bend*, each kind at its best rate.

    It is so with each seed; the bend is the activation of the feed-forward networks.

    Parameters
    ----------
    page : Page
        Not used: the numbers are the study's.

    Returns
    -------
    dict
        Mean losses in nats a character: ``whole``; ``straight``, without the bend;
        ``none``, without the networks.
    """
    results = stored("bend")["results"]
    whole, straight, none = (np.array(bend.best_losses(results, k)) for k in bend.KINDS)
    assert (straight > none).all()
    assert (none > whole).all()
    return {
        "whole": float(whole.mean()),
        "straight": float(straight.mean()),
        "none": float(none.mean()),
    }


@proof("GELU and SiLU are as described, and two thirds of the width make up for the gate.")
def activations_are_named(page):
    """Check what GELU and SiLU are, and how wide a gated network may be.

    GELU is x times the normal distribution function at x, SiLU x times the sigmoid.

    A gated network of width 32 has as many parameters as a plain one of width 48.

    Parameters
    ----------
    page : Page
        ``FeedForward`` is the lesson's class, made with d_model, d_ff and an activation.

    Returns
    -------
    dict
        ``parameters``: how many each network has.
    """
    grid = torch.linspace(-5, 5, 201, dtype=torch.float64)
    normal = torch.distributions.Normal(0.0, 1.0)
    close(F.gelu(grid), grid * normal.cdf(grid))
    close(F.silu(grid), grid * torch.sigmoid(grid))
    plain = page.FeedForward(12, 48, "gelu", bias=False)
    gated = page.FeedForward(12, 48 * 2 // 3, "swiglu", bias=False)
    assert parameters(plain) == parameters(gated) == 2 * 12 * 48
    return {"parameters": parameters(plain)}


def parameters(module) -> int:
    """Return how many parameters a module has.

    Parameters
    ----------
    module : nn.Module
    """
    return sum(parameter.numel() for parameter in module.parameters())


def commonest_share(letters, places) -> torch.Tensor:
    """Return which share of each neuron's places has the letter that is commonest there.

    Parameters
    ----------
    letters : int64 Tensor of shape (positions,)
        The letter at each position of a text, as a number.
    places : int64 Tensor of shape (neurons, number)
        Of each neuron some positions, from 0.

    Returns
    -------
    float64 Tensor of shape (neurons,)
        0 to 1.
    """
    last = letters[places]
    return (last == last.mode(dim=1).values[:, None]).double().mean(dim=1)


def shuffled_letters(page):
    """The letters shuffled among the positions.

    Parameters
    ----------
    page : Page
        ``letters`` are letters as numbers, an int Tensor (positions,).

    Returns
    -------
    Page
        A page like this one, whose ``letters`` are shuffled.
    """
    return page.replaced(letters=torch.tensor(nulls.shuffled(page.letters.tolist())))


@finding(
    "Even an untrained GPT's neuron seems to love one letter: of the eight "
    "characters that excite it most, more than half, on average, are identical.",
    rival="eight positions drawn at random: {random:.0%}; a trained neuron: {own:.0%}, "
    "with its weights shuffled {copy:.0%}",
    null=shuffled_letters,
    n="{neurons} neurons of layer 0, in five untrained GPTs",
    interval="untrained GPTs: {fresh:.0%} (lowest and highest of five)",
)
def favourites_without_training(page):
    """Check that an untrained neuron's strongest positions share one letter, too.

    In five untrained GPTs and for five shuffled copies it is more than half, on average.

    In untrained ones it is more than the share of positions drawn at random by 20 points. A
    trained neuron's positions have a share that is larger than its copies' by five points:
    the 95 % interval, over neurons, begins above 0.05.

    Parameters
    ----------
    page : Page
        ``gpt`` is the trained GPT; ``letters`` are the letters of held-out text as numbers,
        an int Tensor (positions,); ``own`` are the eight positions, from 0, where each
        neuron of layer 0 is strongest, int (neurons, 8); ``strongest`` is a function that
        finds these of a model or, given a seed too, of its copy with shuffled weights.

    Returns
    -------
    dict
        Mean shares of a neuron's positions that have one letter: ``own``, trained;
        ``copy``, shuffled copies; ``fresh``, lowest and highest of untrained GPTs;
        ``random``, positions drawn. ``neurons``: how many; ``more``: 95 % interval of own
        less copy.
    """
    letters = page.letters
    own = commonest_share(letters, page.own)
    copies = [commonest_share(letters, page.strongest(page.gpt, seed)) for seed in SEEDS]
    fresh = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        model = type(page.gpt)(page.gpt.config).eval()
        fresh.append(commonest_share(letters, page.strongest(model)).mean().item())
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randint(len(letters), page.own.shape, generator=generator)
    random = commonest_share(letters, drawn).mean().item()
    mean_copy = torch.stack(copies).mean(dim=0)
    more = bootstrap_interval((own - mean_copy).numpy())
    assert min(fresh) > 0.5
    assert min(each.mean() for each in copies) > 0.5
    assert min(fresh) > random + 0.2
    assert more[0] > 0.05
    return {
        "own": own.mean().item(),
        "copy": mean_copy.mean().item(),
        "fresh": extremes(fresh),
        "random": random,
        "neurons": len(own),
        "more": more,
    }


# --- trained without a part ---------------------------------------------------------------


def grid_losses(off, layers=4, weights="PyTorch's") -> np.ndarray:
    """Return the losses of the models of the study *transformer-block* that are so made.

    Parameters
    ----------
    off : str
        What they lack, such as "norms"; "nothing" for whole models.
    layers : int or sequence of int
        How many blocks they have.
    weights : {"PyTorch's", "Xavier"}
        Their first weights.

    Returns
    -------
    float array of shape (models,)
        On validation sonnets, in nats a character, after 100 steps.
    """
    depths = np.atleast_1d(layers)
    rows = stored("transformer-block")["results"]["grid"]
    chosen = [r for r in rows if (r["off"], r["weights"]) == (off, weights)]
    return np.array([row["loss"] for row in chosen if row["layers"] in depths])


@proof(
    "From four blocks on, models without residual paths learn hardly more than the "
    "frequencies of letters."
)
def learned_without_paths(page):
    """Compare stacks of four, eight and twelve blocks, from both first weights, 100 steps.

    None is more than 0.1 nats better than guessing by these frequencies; nor are four
    blocks from PyTorch's weights at three other learning rates, or after ten times the
    steps, which bring less than 0.05 nats. Four blocks without paths whose tokens attend
    only to themselves learn more, by 0.3 nats: it is not the depth alone; twelve such
    blocks gain less than 0.1 nats by it on average. Four blocks without attention end
    within 0.05 nats of those with all parts after 100 steps, and after 1,000 within 0.05 of
    counting pairs of letters. No model of four blocks, whole or not, is better after 1,000
    steps than counting triples of letters.

    Parameters
    ----------
    page : Page
        Not used: the numbers are the study's.

    Returns
    -------
    dict
        ``models``: how many; losses in nats: ``frequencies``, of letters' frequencies;
        ``paths`` and ``long_paths``, without paths after 100 and 1,000 steps; ``alone``,
        each token attending only to itself, too; ``whole``, with all parts; ``pairs`` and
        ``triples``, of n-gram models.
    """
    study = stored("transformer-block")["results"]
    kinds = ("PyTorch's", "Xavier")
    cut = np.concatenate([grid_losses("paths", [4, 8, 12], weights) for weights in kinds])
    other_rates = [row["loss"] for row in study["other"] if row["off"] == "paths"]
    alone = grid_losses("paths, other tokens", 4, "Xavier")
    frequencies = frequency_loss()
    assert min(*cut, *other_rates, *longer_losses("paths")) > frequencies - 0.1
    assert min(longer_losses("paths")) > grid_losses("paths").min() - 0.05
    assert alone.max() < grid_losses("paths", 4, "Xavier").min() - 0.3
    counted = {order: counted_loss(order) for order in (2, 3)}
    deep = [
        grid_losses(off, 12, "Xavier").mean() for off in ("paths", "paths, other tokens")
    ]
    assert deep[0] - deep[1] < 0.1
    silent, all_parts = (grid_losses(off).mean() for off in ("attention", "nothing"))
    assert abs(silent - all_parts) < 0.05
    assert np.abs(np.array(longer_losses("attention")) - counted[2]).max() < 0.05
    assert min(row["loss"] for row in study["longer"]) > counted[3]
    return {
        "models": sum(len(rows) for rows in study.values()),
        "frequencies": frequencies,
        "paths": float(cut.mean()),
        "long_paths": float(np.mean(longer_losses("paths"))),
        "alone": float(alone.mean()),
        "whole": float(grid_losses("nothing").mean()),
        "pairs": counted[2],
        "triples": counted[3],
    }


def counted_loss(order) -> float:
    """Return the loss of an n-gram model of the training sonnets on the validation ones.

    Parameters
    ----------
    order : int
        2 for pairs of letters, 3 for triples.

    Returns
    -------
    float
        In nats a character.
    """
    texts = train_val_test_split(load_texts("sonnets"))
    letters = CharTokenizer(texts.training + texts.validation)
    model = NgramModel(letters.encode(texts.training), order, letters.vocab_size)
    return model.loss(letters.encode(texts.validation))


@proof(
    "From small first weights, models learn about as well without norms; from large ones, "
    "deep models do not."
)
def learned_without_norms(page):
    """Compare models of up to twelve blocks after 100 steps, from three starts.

    From PyTorch's first weights those without norms end at most 0.1 nats above those with
    norms. From Xavier's, eight blocks end above the loss of guessing by the frequencies of
    letters, at other learning rates, too; with one constant factor for each update in place
    of the norms they end at most 0.1 nats above those with norms.

    Parameters
    ----------
    page : Page
        Not used: the numbers are the study's.

    Returns
    -------
    dict
        Losses in nats, without norms: ``four``, four blocks; ``deep``, eight from Xavier's
        weights; ``constant``, these with one constant. ``answer``: the letter of the right
        choice: "a" if none from PyTorch's weights is worse by 0.1 nats, else "c".
    """
    depths = (1, 2, 4, 8, 12)
    gap = grid_losses("norms", depths) - grid_losses("nothing", depths)
    study = stored("transformer-block")["results"]
    other_rates = [row["loss"] for row in study["other"] if row["off"] == "norms"]
    deep = grid_losses("norms", 8, "Xavier")
    constant = grid_losses("norms, one constant", 8, "Xavier")
    assert gap.max() < 0.1
    assert min(*deep, *other_rates) > frequency_loss()
    assert (constant - grid_losses("nothing", 8, "Xavier")).max() < 0.1
    return {
        "four": float(grid_losses("norms").mean()),
        "deep": float(np.median(deep)),
        "constant": float(constant.mean()),
        "answer": "a" if gap.max() < 0.1 else "c",
    }


# --- before or after ----------------------------------------------------------------------


@proof(
    "In one small task, at a high learning rate, post-norm learns less than pre-norm; a "
    "warm-up helps post-norm."
)
def warm_up_helps(page):
    """Check that post-norm learns less than pre-norm, and that a warm-up helps it.

    Twelve blocks say eight digits backwards, from three starts: the study *norm-place*.

    A third of the learning rate helps post-norm as a warm-up does, with every start.
    Without a warm-up post-norm ends within 0.2 nats of guessing, on average; pre-norm ends
    lower at the high rate than at each lower one.

    Parameters
    ----------
    page : Page
        ``orders`` is a list of dict, one a training: ``norm_first``, True for pre-norm;
        ``warmup``, in steps; ``rate``, the learning rate; ``loss``, in nats a digit.

    Returns
    -------
    dict
        Mean losses in nats a digit: ``guessing``; without a warm-up at the high rate
        ``pre``, pre-norm, and ``cold``, post-norm; ``warm`` and ``slow``, post-norm with a
        warm-up, and without one at a lower rate.
    """

    def reached(first, warmup, rate):
        """Return the losses of one kind of training, one for each start.

        Parameters
        ----------
        first : bool
            Whether the order is pre-norm.
        warmup : int
            Steps.
        rate : float
            The learning rate.

        Returns
        -------
        list of float
        """
        kind = {"norm_first": first, "warmup": warmup, "rate": rate}
        return [row["loss"] for row in page.orders if kind.items() <= row.items()]

    high = 3e-3
    lower = 1e-3
    cold = reached(False, 0, high)
    warm = reached(False, 50, high)
    slow = reached(False, 0, lower)
    pre = reached(True, 0, high)
    slower = [
        row["loss"] for row in page.orders if row["norm_first"] and row["rate"] < high
    ]
    assert max(pre) < min(*cold, *slower)
    assert abs(np.mean(cold) - math.log(10)) < 0.2
    assert max(*warm, *slow) < min(cold)
    return {
        "guessing": math.log(10),
        "pre": float(np.mean(pre)),
        "cold": float(np.mean(cold)),
        "warm": float(np.mean(warm)),
        "slow": float(np.mean(slow)),
    }


@proof(
    "The last block's gradient falls with depth in pre-norm order, but not in post-norm."
)
def last_gradients(page):
    """Check that the last block's gradient falls with depth in pre-norm order alone.

    ``page.gradients`` has random stacks of 2 to 32 blocks, five seeds each.

    In pre-norm order it is between two and eight times longer in the shallowest stack than
    in the deepest; in post-norm order between half as long and twice as long.

    Parameters
    ----------
    page : Page
        ``gradients`` is a dict, "pre-norm" or "post-norm" → dict, depth (2 to 32 blocks,
        ascending) → lengths of the last block's gradient, a list, one for each seed.

    Returns
    -------
    dict of str to float
        Order → how many times longer it is, by medians, in the shallowest stack than in the
        deepest.
    """
    fall = {}
    for name, by_depth in page.gradients.items():
        middle = [np.median(lengths) for lengths in by_depth.values()]
        fall[name] = float(middle[0] / middle[-1])
    assert 2 < fall["pre-norm"] < 8
    assert 0.5 < fall["post-norm"] < 2
    return fall


# --- training or not ----------------------------------------------------------------------


@proof("In evaluation mode two calls agree; in training mode dropout makes them differ.")
def one_switch(page):
    """Check that two calls agree in evaluation mode, and differ with dropout.

    On a copy, the loss of all held-out windows is computed five times in training mode.

    The five differ there if the model has any dropout, and do not all differ if it has
    none.

    Parameters
    ----------
    page : Page
        ``gpt`` is the trained GPT, with ``config.dropout``; ``held_out`` are held-out
        windows and targets, ids (windows, tokens) both, and ``whole`` its losses there,
        (windows,).

    Returns
    -------
    dict
        ``p``: the share of numbers that dropout zeroes; ``more``: the mean rise of the loss
        in training mode, in nats.
    """
    model = copy.deepcopy(page.gpt)
    torch.manual_seed(0)
    with torch.no_grad():
        model.train()
        calls = torch.stack([window_losses(model, *page.held_out) for _ in range(5)])
        model.eval()
        evaluated = window_losses(model, *page.held_out)
    assert torch.equal(evaluated, page.whole)
    p = page.gpt.config.dropout
    assert (calls.mean(dim=1).unique().numel() == 5) == (p > 0)
    return {"p": p, "more": (calls.mean(dim=0) - page.whole).mean().item()}


# --- going deeper -------------------------------------------------------------------------


@proof("Our block equals PyTorch's encoder layer in both orders, with and without a mask.")
def block_is_pytorchs(page):
    """Compare them in float64 to 1e-9, with PyTorch's weights in both.

    Parameters
    ----------
    page : Page
        ``Block`` is the lesson's class, which returns states and attention weights;
        ``fill_attention`` and ``fill`` are functions that copy PyTorch's weights into our
        attention, or into one layer: ours first, then PyTorch's.

    Returns
    -------
    dict
        ``orders``: 2, with norms before attention and network, and after.
    """
    torch.manual_seed(0)
    x = torch.randn(2, 7, 12, dtype=torch.float64)  # (batch, tokens, d_model)
    for norm_first in (True, False):
        options = {"norm_first": norm_first, "activation": "gelu"}
        theirs = nn.TransformerEncoderLayer(12, 3, 20, batch_first=True, **options)
        theirs = theirs.double().eval()
        ours = page.Block(12, heads=3, d_ff=20, **options).double().eval()
        page.fill_attention(ours.attention, theirs.self_attn)
        page.fill(ours.feed_forward.up, theirs.linear1)
        page.fill(ours.feed_forward.down, theirs.linear2)
        page.fill(ours.norm_1, theirs.norm1)
        page.fill(ours.norm_2, theirs.norm2)
        close(ours(x)[0], theirs(x), rtol=0, atol=1e-9)
        masked = theirs(x, src_mask=~causal_mask(7))  # True forbids
        close(ours(x, mask=causal_mask(7))[0], masked, rtol=0, atol=1e-9)
    return {"orders": 2}


@proof("Formula and count agree, for a small block of either kind and for BERT-base.")
def sizes_are_counted(page):
    """Check the formulas of sizes against the numbers of parameters.

    ``page.base`` is a `Stack` on the device meta, without numbers.

    Parameters
    ----------
    page : Page
        ``Block`` is the lesson's class; ``encoder_size``, ``decoder_size`` and
        ``feed_forward_size`` are functions from d_model and d_ff to a number of parameters;
        ``base`` is a stack of twelve blocks, 768 wide, with ``blocks``. A decoder block has
        attention to another text as well.

    Returns
    -------
    dict
        ``millions``: of parameters in twelve encoder blocks of BERT-base; ``share``: the
        part of these in feed-forward networks, 0 to 1.
    """
    assert parameters(page.Block(64, 4, 128)) == page.encoder_size(64, 128)
    assert parameters(page.Block(64, 4, 128, cross=True)) == page.decoder_size(64, 128)
    size = 12 * page.encoder_size(768, 3072)
    assert isinstance(page.base, Stack)
    assert parameters(page.base.blocks) == size
    share = 12 * page.feed_forward_size(768, 3072) / size
    assert 0.6 < share < 0.7
    return {"millions": size / 1e6, "share": share}
