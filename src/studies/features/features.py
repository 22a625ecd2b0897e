"""Does a sparse autoencoder find more in a trained model than its neurons show?

What varies: the model, our GPT and SmolLM2, trained or with its weights shuffled; the seed
of the autoencoder; what is read: features, neurons, coordinates of the state, random and
principal directions, features of an autoencoder that learned from states whose coordinates
had been shuffled one by one, and, with labels, a difference of means.

Rivals: each of these. Nulls: shuffled weights, random directions.

Statistics: the best unit's F1 for a known property of a character or token, chosen on
training texts, judged on others; the model's own loss when a layer is given back what the
autoencoder made of its states; of features that are named by their ten strongest places,
how often the name is right elsewhere; what is moved by a direction that is added, and what
the others among the next characters lose by it.

Foretold before it was run, and why: `FORETOLD`.
"""

import numpy as np
import torch
import torch.nn.functional as F

from lmcourse.data import load_texts, train_val_test_split
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.llama import Llama, load_talker
from lmcourse.patching import changed_states
from lmcourse.shuffled import shuffled_weights
from lmcourse.sparse import character_marks, train_autoencoder
from lmcourse.weights import read_all_weights, save_model, save_tensors
from studies.features.reading import best_units, f1_scores, named
from studies.features.tokens import token_windows
from studies.harness import count, grid, verdict

CHAPTER = "features"
AFTER = ("sonnets",)
CLAIM = (
    "One feature of a sparse autoencoder tells a known property of a character better than "
    "the best neuron of our GPT does, in most of sixteen properties"
)
RIVAL = "the best of as many neurons, of random directions, or of principal directions"
NULL = "an autoencoder on the states of a GPT with shuffled weights"
CHECKPOINTS = ("autoencoder",)
FORETOLD = {
    "features beat neurons": (
        "In most of the sixteen properties, with every seed: neurons add up to states, and "
        "nothing made a single one stand for a property."
    ),
    "shuffled weights do as well near by": (
        "For properties of the character itself, features of a GPT with shuffled weights "
        "are as good: a state holds its token's vector, trained or not. For properties "
        "that lie further back they are worse."
    ),
    "labels win": (
        "A difference of means, which knows the labels, is better than the best feature in "
        "most properties."
    ),
    "top ten": (
        "Of features whose ten strongest places share a property, the name is right at "
        "less than half of all places where the feature is there; and features of shuffled "
        "weights get names as often."
    ),
    "loss": (
        "Eight features in place of a state keep four fifths of what a layer is worth, "
        "more than eight principal directions do."
    ),
    "steering": (
        "Pushed to the same effect, the difference of means harms other characters less "
        "than a feature does; a random direction does not get there."
    ),
    "SmolLM2": "The same order, with smaller gaps: its autoencoder has read far less.",
}
SETTINGS = {
    "seeds": [0, 1, 2],
    "layer": 3,
    "features": 512,
    "active": 8,
    "steps": 1500,
    "talker": {"layer": 12, "features": 1024, "active": 32, "steps": 1000},
    "strengths": [0.2, 0.4, 0.7, 1.0, 1.5, 2.0],
    "foretold": FORETOLD,
}
FIRST = 32  # characters that the GPT has read before a place is looked at
CHOSEN = 10_000  # places on which units are chosen
TARGETS = {
    "a line’s end": "\n",
    "a space": " ",
    "a comma": ",",
    "e": "e",
    "t": "t",
    "s": "s",
}


def plan(small):
    """Return the settings of all runs: our GPT from each seed, then SmolLM2.

    Parameters
    ----------
    small : bool
        Whether to return one short run, of our GPT.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, the model that is read, "gpt" or "talker";
        ``seed``, 0 to 2; ``steps`` of each autoencoder's training, 1,500 of our GPT's,
        1,000 of SmolLM2's.
    """
    if small:
        return grid(group="gpt", seed=0, steps=3)
    runs = grid(group="gpt", seed=SETTINGS["seeds"], steps=SETTINGS["steps"])
    steps = SETTINGS["talker"]["steps"]
    return runs + grid(group="talker", seed=SETTINGS["seeds"], steps=steps)


def run(folder, group, seed, steps):
    """Make one run: train autoencoders from a seed, and read them beside their rivals.

    It is asked how well a unit tells a property of the text at a position, such as "begins
    a line". The units are an autoencoder's features; their rivals are the model's neurons,
    and random and principal directions of its states.

    Parameters
    ----------
    folder : Path
        Where weights and states are kept for later runs.
    group : {"gpt", "talker"}
        The model that is read: our GPT (`train_on_gpt`), or SmolLM2 (`train_on_talker`).
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        Of each autoencoder's training.

    Returns
    -------
    dict
        ``seed``; and, for the model with its own weights ("trained") and with shuffled ones
        ("shuffled"), a dict each:

        - ``scores``: kind of unit, such as "features" → list of the F1 of each property,
        - ``quality``: how well the autoencoder rebuilds the states, a dict (`quality`),
        - ``named``: kind of unit → which units got a name, a dict (`named`),
        - ``losses``, of "trained" alone: what replaces the states → list of the loss of
          each window, in nats a token,
        - ``steering``, of "trained" and our GPT alone: list of dict, what each push does
          (`steer_all`).
    """
    make = train_on_gpt if group == "gpt" else train_on_talker
    return {"seed": seed} | make(folder, seed, steps)


# --- what models hold ---------------------------------------------------------------------


@torch.no_grad()
def states_and_neurons(model, windows, layer, first):
    """Return states that go into a layer, and the neurons of the layer before.

    A Llama computes no logits but each window's last, to save time.

    Parameters
    ----------
    model : GPT or Llama
        Its layers are ``blocks``.
    windows : int64 Tensor of shape (windows, tokens)
    layer : int
        From 1 on (the first block is 0): the block whose input is kept.
    first : int
        Positions before this one are left out.

    Returns
    -------
    states : Tensor of shape (windows, tokens - first, d_model)
    neurons : Tensor of shape (windows, tokens - first, d_ff)
        What goes into the second matrix of the block before.
    """
    kept_states = []
    kept_neurons = []

    def keep_state(module, inputs):
        """Keep the states that go into a block, from ``first`` on: a pre-hook of it.

        ``inputs`` : tuple, of which the first is a Tensor (windows, tokens, d_model);
        ``module``, the block, is not used.
        """
        kept_states.append(inputs[0][:, first:])

    def keep_neurons(module, inputs):
        """Keep what goes into the matrix ``down``, from ``first`` on: a pre-hook of it.

        ``inputs`` : tuple, of which the first is a Tensor (windows, tokens, d_ff);
        ``module``, the matrix, is not used.
        """
        kept_neurons.append(inputs[0][:, first:])

    down = model.blocks[layer - 1].feed_forward.down
    with (
        model.blocks[layer].register_forward_pre_hook(keep_state),
        down.register_forward_pre_hook(keep_neurons),
    ):
        for part in windows.split(16):
            options = {"last": True} if isinstance(model, Llama) else {}
            model(part, **options)
    return torch.cat(kept_states), torch.cat(kept_neurons)


def cut(ids, context, first):
    """Cut a text into windows, each of which begins with the last ``first`` tokens of the
    one before.

    So every token is at a position of ``first`` or more in exactly one window, but for the
    text's first ``first`` tokens and for those at its end that fill no window.

    Parameters
    ----------
    ids : Tensor of shape (tokens, ...)
        Of each token its id, or a row of marks.
    context : int
        How many tokens a window has.
    first : int
        By how many tokens windows overlap.

    Returns
    -------
    Tensor of shape (windows, context, ...)
    """
    starts = torch.arange(0, len(ids) - context, context - first)
    return ids[starts[:, None] + torch.arange(context)]


def shuffled_coordinates(vectors, seed):
    """Return a copy of vectors in which the numbers of each column are shuffled by itself.

    ``vectors`` : Tensor (n, d); ``seed`` : int, of the shuffles. Returns a Tensor (n, d).
    """
    generator = torch.Generator().manual_seed(seed)
    order = torch.rand(vectors.shape, generator=generator).argsort(0)
    return vectors.gather(0, order)


def principal(vectors):
    """Return the principal directions of vectors, the widest first.

    ``vectors`` : Tensor (n, d), n at least d; their mean is subtracted. Returns a Tensor
    (d, d), whose rows are the directions, of length 1.
    """
    return torch.linalg.svd((vectors - vectors.mean(0)), full_matrices=False).Vh


def mean_differences(vectors, marks):
    """Return for each property the mean of vectors with it minus that of those without.

    ``vectors`` : Tensor (n, d); ``marks`` : bool Tensor (n, properties), where each
    property is. Returns a Tensor (properties, d).
    """
    weights = marks.float()
    with_it = weights.T @ vectors / weights.sum(0)[:, None].clamp(min=1)
    without = (1 - weights).T @ vectors / (1 - weights).sum(0)[:, None].clamp(min=1)
    return with_it - without


def dictionaries(train, neurons, coder, shuffled_coder, seed):
    """Return the kinds of units that are compared: name → (function, signs).

    Parameters
    ----------
    train : Tensor of shape (places, d_model)
        States. Directions are taken from their mean; the principal ones are those of the
        first 10,000.
    neurons : int
        How many neurons the model has in a layer: as many random directions are drawn.
    coder, shuffled_coder : SparseAutoencoder
        Trained on the states; and on states with shuffled coordinates.
    seed : int
        Of the random directions.

    Returns
    -------
    dict of str to (callable, tuple of int)
        "features", "shuffled states", "neurons", "coordinates", "random directions" and
        "principal directions" → a function of states (places, d_model) and of activations
        of neurons (places, d_ff) to the units' values (places, units); and the signs with
        which a unit's value may be read: 1 (the property is where it is high), -1 (where it
        is low).
    """
    generator = torch.Generator().manual_seed(100 + seed)
    directions = torch.randn(train.shape[1], neurons, generator=generator)
    wide = principal(train[:CHOSEN]).T
    centre = train.mean(0)
    return {
        "features": (lambda x, _: coder.encode(x), (1,)),
        "shuffled states": (lambda x, _: shuffled_coder.encode(x), (1,)),
        "neurons": (lambda _, hidden: hidden, (1, -1)),
        "coordinates": (lambda x, _: x, (1, -1)),
        "random directions": (lambda x, _: (x - centre) @ directions, (1, -1)),
        "principal directions": (lambda x, _: (x - centre) @ wide, (1, -1)),
    }


def compare(train, test, neurons, marks, coder, shuffled_coder, seed):
    """Return the F1 of each kind of unit for each property.

    Parameters
    ----------
    train, test : Tensor of shape (places, d_model)
        States on which units are chosen, and on which they are judged.
    neurons, marks : pair of Tensor
        Of ``train`` and of ``test``: the activations of neurons, (places, d_ff); and which
        properties each place has, bool (places, properties).
    coder, shuffled_coder : SparseAutoencoder
        Trained on the states; and on states with shuffled coordinates.
    seed : int
        Of the 10,000 places on which units are chosen (`CHOSEN`), and of random directions.

    Returns
    -------
    dict of str to list of float
        F1 for each property, on ``test``. Kind of unit, a key of `dictionaries` such as
        "features" or "neurons" → that of the best unit; "labels" → that of a direction made
        for the property, the mean of places with it less that of places without; "always" →
        that of saying yes everywhere.
    """
    chosen = torch.randperm(len(train), generator=torch.Generator().manual_seed(seed))
    chosen = chosen[:CHOSEN]
    known = marks[0][chosen]
    test_marks = marks[1]
    by_kind = {}
    kinds = dictionaries(train, neurons[0].shape[1], coder, shuffled_coder, seed)
    for name, (read, signs) in kinds.items():
        chosen_on = read(train[chosen], neurons[0][chosen])
        judged_on = read(test, neurons[1])
        by_kind[name] = best_units(chosen_on, known, judged_on, test_marks, signs)[1]
    means = mean_differences(train[chosen], known).T  # (d_model, properties)
    scores = best_for_each(train[chosen] @ means, known, test @ means, test_marks)
    share = test_marks.float().mean(0)
    always = (2 * share / (1 + share)).tolist()
    return by_kind | {"labels": scores, "always": [round(each, 4) for each in always]}


def best_for_each(chosen_on, marks, judged_on, judged_marks):
    """Return the F1 of units of which each was made for one property.

    Parameters
    ----------
    chosen_on, judged_on : Tensor of shape (places, properties)
        The value of each property's unit, at the places where its threshold is chosen, and
        at those where it is judged.
    marks, judged_marks : bool Tensor of the same shapes
        Where each property is.

    Returns
    -------
    list of float
        The F1 of each property on the second places, 0 to 1.
    """
    scores = []
    for column in range(marks.shape[1]):
        at = slice(column, column + 1)
        _, score = best_units(
            chosen_on[:, at], marks[:, at], judged_on[:, at], judged_marks[:, at]
        )
        scores += score
    return scores


def quality(coder, states):
    """Return how well an autoencoder rebuilds states, and how many of its features it uses.

    Parameters
    ----------
    coder : SparseAutoencoder
    states : Tensor of shape (places, d_model)

    Returns
    -------
    dict
        ``unexplained``: the share of the states' variance that the output misses, 0 to 1 or
        above; ``active``: how many features are above 0 at a place, on average; ``dead``:
        the share of features, 0 to 1, that are above 0 at none of the places.
    """
    strengths = coder.encode(states)
    missed = (coder.decode(strengths) - states).square().sum()
    variance = (states - states.mean(0)).square().sum()
    return {
        "unexplained": round((missed / variance).item(), 4),
        "active": round((strengths > 0).float().sum(1).mean().item(), 2),
        "dead": round((~(strengths > 0).any(0)).float().mean().item(), 4),
    }


@torch.no_grad()
def losses_with(model, windows, targets, layer, first, change=None):
    """Return the mean loss of each window when a layer's input is changed.

    Parameters
    ----------
    model : GPT or Llama
    windows, targets : int64 Tensor of shape (windows, tokens)
        Text, and the token that follows each.
    layer : int
        The block whose input is changed, from 0.
    first : int
        States before this position are left alone, and losses before it are not counted.
    change : callable, optional
        From states to states, (windows, tokens - first, d_model). Default: nothing is
        changed.

    Returns
    -------
    list of float
        In nats a token, a number for each window.
    """

    def late(x):
        """Return states, changed from position ``first`` on.

        ``x`` : Tensor (windows, tokens, d_model); so is what is returned.
        """
        return torch.cat([x[:, :first], change(x[:, first:])], 1) if change else x

    losses = []
    for part, following in zip(windows.split(8), targets.split(8), strict=True):
        with changed_states(model, layer, late):
            logits = model(part)[:, first:]
        loss = F.cross_entropy(
            logits.transpose(1, 2), following[:, first:], reduction="none"
        )
        losses += loss.mean(1).tolist()
    return [round(loss, 4) for loss in losses]


def losses(model, windows, targets, layer, first, coder, train):
    """Return the loss of each window with each replacement of a layer's states.

    Parameters
    ----------
    model : GPT or Llama
    windows, targets : int64 Tensor of shape (windows, tokens)
        Text, and the token that follows each.
    coder : SparseAutoencoder
        Its output replaces the states in "features"; as many principal directions are kept
        as it has features at a place.
    train : Tensor of shape (places, d_model)
        States, of which the mean is taken, and of the first 10,000 the principal
        directions.
    layer : int
        The block whose input is replaced, from 0.
    first : int
        The position from which on it is replaced, from 0.

    Returns
    -------
    dict of str to list of float
        What the states are replaced by → the loss of each window in nats a token. "whole":
        nothing; "features": what the autoencoder makes of them; "mean": their mean; "zero";
        "principal directions": their part in as many of these.
    """
    centre = train.mean(0)
    wide = principal(train[:CHOSEN])[: coder.active]
    changes = {
        "whole": None,
        "features": coder,
        "mean": lambda x: centre.expand_as(x),
        "zero": torch.zeros_like,
        "principal directions": lambda x: (x - centre) @ wide.T @ wide + centre,
    }
    return {
        name: losses_with(model, windows, targets, layer, first, change)
        for name, change in changes.items()
    }


# --- our GPT ------------------------------------------------------------------------------


def sonnets(tokenizer, part):
    """Return the sonnets of a part as ids, and what is true at each character.

    Parameters
    ----------
    tokenizer : CharTokenizer
    part : {"training", "validation", "test"}

    Returns
    -------
    ids : int64 Tensor of shape (characters,)
    marks : bool Tensor of shape (characters, properties)
        Whether each property is there (`lmcourse.sparse.character_marks`).
    """
    text = getattr(train_val_test_split(load_texts("sonnets")), part)
    return torch.tensor(tokenizer.encode(text)), character_marks(text)


def train_on_gpt(folder, seed, steps):
    """Train autoencoders on our GPT, and on one with shuffled weights; measure both.

    What is read are the states that go into layer 3, and the neurons of layer 2, at the
    characters of the sonnets with 32 before them; units are chosen on training sonnets and
    judged on test sonnets. An autoencoder has 512 features, 8 at a place.

    Parameters
    ----------
    folder : Path
        Where the first seed's autoencoder is saved, as ``autoencoder.safetensors``.
    seed : int
        Of the autoencoders, of the shuffled weights, and of all that is drawn.
    steps : int
        Of the training of each autoencoder.

    Returns
    -------
    dict
        By model, "trained" and "shuffled", a dict:

        - ``scores``: kind of unit → list of the F1 of each property (`compare`),
        - ``quality``: how well the autoencoder rebuilds the states: ``unexplained``,
          ``active``, ``dead`` (`quality`),
        - ``named``: "features" and "neurons" → a dict: ``tried``, how many units, and
          ``names``, of each unit that got a name a list of four: the unit, the property,
          the share of the unit's places where the name is right, and the share of the
          property's places that the unit finds,
        - ``losses``, of "trained" alone: what replaces the states → list of the loss of
          each window, in nats a character,
        - ``steering``, of "trained" alone: a list of dict, what each push towards a
          character does (`steer_all`).
    """
    tokenizer, model, _ = load_gpt("sonnets", device="cpu")
    context = model.config.context
    layer = SETTINGS["layer"]
    read = {part: sonnets(tokenizer, part) for part in ("training", "test")}
    windows = {part: cut(ids, context, FIRST) for part, (ids, _) in read.items()}
    marks = [
        cut(each, context, FIRST)[:, FIRST:].flatten(0, 1) for _, each in read.values()
    ]
    sizes = {name: SETTINGS[name] for name in ("features", "active")}
    by_model = {}
    for name in ("trained", "shuffled"):
        asked = model if name == "trained" else shuffled_weights(model, seed)
        pairs = [states_and_neurons(asked, each, layer, FIRST) for each in windows.values()]
        train, test = (pair[0].flatten(0, 1) for pair in pairs)
        neurons = [pair[1].flatten(0, 1) for pair in pairs]
        coder = train_autoencoder(train, **sizes, steps=steps, seed=seed)
        mixed = shuffled_coordinates(train, seed)
        mixed_coder = train_autoencoder(mixed, **sizes, steps=steps, seed=seed)
        by_model[name] = {
            "scores": compare(train, test, neurons, marks, coder, mixed_coder, seed),
            "quality": quality(coder, test),
            "named": {
                "features": named(
                    coder.encode(train), marks[0], coder.encode(test), marks[1]
                ),
                "neurons": named(neurons[0], marks[0], neurons[1], marks[1]),
            },
        }
        if name == "trained":
            if seed == 0:
                save_model(folder / "autoencoder.safetensors", coder, {"steps": steps})
            ids = read["test"][0]
            targets = cut(ids[1:], context, FIRST)
            inputs = windows["test"][: len(targets)]
            arguments = model, inputs, targets, layer, FIRST, coder, train
            by_model[name]["losses"] = losses(*arguments)
            by_model[name]["steering"] = steer_all(
                tokenizer, read["training"][0], *arguments, seed
            )
    return by_model


def steer_all(tokenizer, text, model, windows, targets, layer, first, coder, train, seed):
    """Push towards each of six next characters, in four ways and with each strength.

    A way is a direction that is added to the states: that of the feature that detects best
    that the character comes next; of the five best such features, that of the one which
    makes the character likeliest on the first eight windows; the mean of the states before
    the character less that of all others; one drawn at random. What is returned is measured
    on the next 32 windows.

    Parameters
    ----------
    tokenizer : CharTokenizer
    text : int64 Tensor of shape (tokens,)
        The training text.
    model : GPT
    windows, targets : int64 Tensor of shape (windows, tokens)
        Test text, and the token that follows each.
    layer, first : int
        The layer whose input is pushed, from the position ``first`` on.
    coder : SparseAutoencoder
        ``encode`` returns the features' strengths; ``decoder`` has their directions as
        rows.
    train : Tensor of shape (places, d_model)
        States of the training text from ``first`` on in each window, from which directions
        are made.
    seed : int
        Of the random direction.

    Returns
    -------
    list of dict
        One for each target, way and strength; strength 0 for the way "feature" alone.
        ``target``, the character's name, such as "a comma"; ``way``, "feature", "best of
        five", "difference of means" or "random direction"; ``strength``, the push's length
        as a share of the states' mean distance from their mean; ``probs`` and ``losses``,
        lists with a number for each window: the mean probability of the target; and, over
        the positions where another character follows, the mean loss of that one in nats,
        with the target left out, so that the probabilities of the others add up to 1.
    """
    following = cut(text[1:], model.config.context, first)[:, first:].flatten()
    length = min(len(following), len(train))
    following = following[:length]
    vectors = train[:length]
    strengths = coder.encode(vectors)
    size = (vectors - vectors.mean(0)).norm(dim=1).mean()
    generator = torch.Generator().manual_seed(200 + seed)
    rows = []
    for target, character in TARGETS.items():
        token = tokenizer.encode(character)[0]
        mark = (following == token)[:, None]
        chosen = f1_scores(strengths[:CHOSEN], mark[:CHOSEN])[0][:, 0]
        best = chosen.topk(5).indices.tolist()
        tried = {unit: coder.decoder[unit] for unit in best}
        checked = windows[:8], targets[:8]
        effects = {
            unit: np.mean(
                steered(model, *checked, layer, first, token, 0.6 * size * each)[0]
            )
            for unit, each in tried.items()
        }
        ways = {
            "feature": tried[best[0]],
            "best of five": tried[max(effects, key=effects.get)],
            "difference of means": mean_differences(vectors, mark)[0],
            "random direction": torch.randn(vectors.shape[1], generator=generator),
        }
        for way, direction in ways.items():
            pushed = SETTINGS["strengths"]
            if way == "feature":
                pushed = [0.0, *pushed]
            for strength in pushed:
                push = strength * size * F.normalize(direction, dim=0)
                probs, other = steered(
                    model, windows[8:40], targets[8:40], layer, first, token, push
                )
                row = {"target": target, "way": way, "strength": strength}
                rows.append(row | {"probs": probs, "losses": other})
    return rows


@torch.no_grad()
def steered(model, windows, targets, layer, first, token, push):
    """Return a token's probability, and the others' loss, when a layer's input is pushed.

    Parameters
    ----------
    model : GPT
    windows, targets : int64 Tensor of shape (windows, tokens)
        Test text, and the token that follows each.
    layer, first : int
        The layer whose input is pushed, from the position ``first`` on.
    token : int
        Whose probability is wanted.
    push : Tensor of shape (d_model,)
        Added to every state that goes into the layer from ``first`` on.

    Returns
    -------
    probs, losses : list of float
        Of each window the mean probability of the token; and, over the positions where
        another one follows, the mean loss of that one in nats, with ``token`` left out, so
        that the probabilities of the others add up to 1.
    """

    def late(x):
        """Return states, with the push added from position ``first`` on.

        ``x`` : Tensor (windows, tokens, d_model); so is what is returned.
        """
        return torch.cat([x[:, :first], x[:, first:] + push], 1)

    with changed_states(model, layer, late):
        logits = model(windows)[:, first:]
    probs = logits.softmax(-1)[..., token].mean(1)
    right = targets[:, first:]
    without_token = logits.clone()
    without_token[..., token] = -1e9
    loss = F.cross_entropy(without_token.transpose(1, 2), right, reduction="none")
    is_other = right != token
    means = (loss * is_other).sum(1) / is_other.sum(1)
    return [round(x, 4) for x in probs.tolist()], [round(x, 4) for x in means.tolist()]


# --- SmolLM2 ------------------------------------------------------------------------------


def talker_states(folder, name, sizes):
    """Return SmolLM2, windows of text, and the states and neurons that it has there.

    Parameters
    ----------
    folder : Path
        Where states and neurons are kept, ``NAME.safetensors``; if the file is there, they
        are read.
    name : {"trained", "shuffled"}
        Whether the model's weights are its own or shuffled.
    sizes : dict
        ``layer``: the block whose input is read, from 1 on (the first block is 0); other
        keys are not used.

    Returns
    -------
    model : Llama
    windows : pair of int64 Tensor of shape (windows, tokens)
        Of training texts, and of test texts.
    pairs : list of (Tensor, Tensor)
        Of training texts, and of test texts: states that go into the layer, (windows,
        places, d_model), and activations of the neurons of the layer before, (windows,
        places, d_ff). Places are the tokens of a window but the first 16.
    marks : pair of bool Tensor of shape (windows, tokens, properties)
        Of training texts, and of test texts: which properties each token has.
    """
    tokenizer, model = load_talker(device="cpu")
    if name == "shuffled":
        model = shuffled_weights(model, 0)
    windows, marks = zip(*(token_windows(tokenizer, part) for part in (0, 1)), strict=True)
    path = folder / f"{name}.safetensors"
    if not path.is_file():
        pairs = [encode_until(model, each, sizes["layer"]) for each in windows]
        tensors = {
            f"{part}.{kind}": tensor
            for part, pair in enumerate(pairs)
            for kind, tensor in zip(("states", "neurons"), pair, strict=True)
        }
        save_tensors(path, tensors, {})
    tensors = read_all_weights(path)
    pairs = [(tensors[f"{part}.states"], tensors[f"{part}.neurons"]) for part in (0, 1)]
    return model, windows, pairs, marks


def encode_until(model, windows, layer):
    """Return a layer's input states and the neurons before it; run the first blocks alone.

    ``model`` : Llama; ``windows`` : int64 Tensor (windows, tokens); ``layer`` : int, from 1
    on: blocks after this one (the first is 0) are not run. Returns Tensors (windows,
    places, d_model) and (windows, places, d_ff); the first 16 places of each window
    (`TALKER_FIRST`) are left out.
    """
    blocks = model.blocks
    model.blocks = blocks[: layer + 1]
    try:
        return states_and_neurons(model, windows, layer, TALKER_FIRST)
    finally:
        model.blocks = blocks


TALKER_FIRST = 16


def train_on_talker(folder, seed, steps):
    """Train autoencoders on SmolLM2, and on one with shuffled weights; measure both.

    What is read are the states that go into layer 12, and the neurons of layer 11, at all
    tokens of `token_windows` but each window's first 16. An autoencoder has 1,024 features,
    32 at a place.

    Parameters
    ----------
    folder : Path
        Where states are kept for later runs.
    seed : int
        Of the autoencoders, and of all that is drawn.
    steps : int
        Of the training of each autoencoder.

    Returns
    -------
    dict
        By model, "trained" and "shuffled", a dict: ``scores``, kind of unit → list of the
        F1 of each property; ``quality``, how well the autoencoder rebuilds the states
        (``unexplained``, ``active``, ``dead``); ``named``, with the key "features" alone →
        a dict: ``tried``, how many units, and ``names``, those that got a name (`named`).
        Of "trained" also ``losses``, what replaces the states → list of the loss of each of
        24 windows, in nats a token. There is no ``steering``.
    """
    sizes = SETTINGS["talker"]
    by_model = {}
    for name in ("trained", "shuffled"):
        model, windows, pairs, marks = talker_states(folder, name, sizes)
        train, test = (pair[0].flatten(0, 1) for pair in pairs)
        neurons = [pair[1].flatten(0, 1) for pair in pairs]
        marks = [each[:, TALKER_FIRST:].flatten(0, 1) for each in marks]
        how = {key: sizes[key] for key in ("features", "active")} | {"steps": steps}
        coder = train_autoencoder(train, **how, batch=256, seed=seed)
        mixed = shuffled_coordinates(train, seed)
        mixed_coder = train_autoencoder(mixed, **how, batch=256, seed=seed)
        by_model[name] = {
            "scores": compare(train, test, neurons, marks, coder, mixed_coder, seed),
            "quality": quality(coder, test),
            "named": {
                "features": named(
                    coder.encode(train), marks[0], coder.encode(test), marks[1], least=20
                ),
            },
        }
        if name == "trained":
            texts = windows[1][:24]
            by_model[name]["losses"] = losses(
                model,
                texts[:, :-1],
                texts[:, 1:],
                sizes["layer"],
                TALKER_FIRST,
                coder,
                train,
            )
    return by_model


def summary(results):
    """Return what is stored beside the outcomes.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs, each with ``seed``. Those of "gpt" have ``trained``, a
        dict whose ``scores`` are kind of unit ("features", "neurons" …) → F1 of each
        property.

    Returns
    -------
    dict
        ``n``, the number of outcomes, and their ``seeds``; ``interval``: the lowest and
        highest mean gap of F1, features less neurons of our GPT, over seeds; ``verdict``,
        "holds" or "not so": whether features are ahead in most properties with every seed.
    """
    gaps = []
    for row in results["gpt"]:
        scores = row["trained"]["scores"]
        gaps.append(np.subtract(scores["features"], scores["neurons"]))
    holds = all((gap > 0).sum() > len(gap) / 2 for gap in gaps)
    means = [float(gap.mean()) for gap in gaps]
    span = [round(min(means), 4), round(max(means), 4)]
    record = count([row for rows in results.values() for row in rows])
    return record | {"interval": span, "verdict": verdict(holds)}
