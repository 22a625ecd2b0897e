"""Does one backward pass find a better step for a decoder than random guesses do?

A step moves all trainable numbers of a decoder along a direction, by a given length. Tried
are the direction against the gradient of the loss on one sequence of words, and random
directions; what counts is by how much the step lowers the loss on this sequence.

Varied: the direction; the length of the step; the decoder, untrained or trained for 100
steps, three seeds each; the sequence, drawn at random from the training sonnets.

Rivals: the best of a thousand random directions, in all numbers, in all but the word
vectors, or in the biases of the output alone.

Null: the gradient with its entries shuffled within each parameter.

Statistic: on how many sequences the gradient's step lowers the loss more than the best
guess does, each at the better of its two lengths: on one sequence the longer step along the
gradient goes too far. The interval is that of the fall, gradient less best guess, over the
sequences.
"""

import numpy as np

from lmcourse.numbers import bootstrap_interval
from lmcourse.numpy_nn import decoder
from lmcourse.numpy_nn.layers import SoftmaxCrossEntropy
from studies.backpropagation.backpropagation import CONTEXT, load_words
from studies.harness import count, grid, verdict

CHAPTER = "backpropagation"
CLAIM = (
    "One backward pass finds a better step for a small decoder than the best of a thousand "
    "random guesses"
)
RIVAL = "the best of a thousand random directions, in all of the numbers or in a part"
NULL = "the gradient with its entries shuffled within each parameter"
SETTINGS = {
    "lengths": [0.1, 1.0],
    "guesses": {"all": 400, "no vectors": 300, "output biases": 300},
    "sequences": 5,
    "trained": [0, 100],
    "seeds": [0, 1, 2],
    "batch": 64,
}


def plan(small):
    """Return the settings of all runs: one for each decoder.

    Parameters
    ----------
    small : bool
        Whether to return one run only, with a hundredth of the guesses.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "decoders"; ``trained``, for how many
        steps the decoder was trained; ``seed``; ``guesses``, the share of the thousand
        random directions that is tried, 0 to 1.
    """
    settings = grid(
        group="decoders", trained=SETTINGS["trained"], seed=SETTINGS["seeds"], guesses=1.0
    )
    return [settings[0] | {"guesses": 0.01}] if small else settings


def run(folder, group, trained, seed, guesses):
    """Compare steps on a few sequences, for one decoder.

    Parameters
    ----------
    folder : Path
        Unused: nothing is saved.
    group : {"decoders"}
        The only kind of run; unused.
    trained : int
        For how many steps the decoder was trained.
    seed : int
        Of the first weights, and of all that is drawn.
    guesses : float
        Which share of the random directions to try.

    Returns
    -------
    list of dict
        One a sequence: ``trained``, ``seed``; ``loss``, before the step, in nats;
        ``gradient`` and ``shuffled``, by how many nats the loss falls along the gradient
        and along the shuffled one, a list by length of the step (``SETTINGS["lengths"]``);
        ``random``, the same of each random direction, a list by direction of such lists.
    """
    vocabulary, vectors, words, _, _ = load_words()
    model = decoder.Decoder(vocabulary, vectors, seed=seed)
    if trained:
        decoder.train_decoder(model, words, trained, batch=SETTINGS["batch"], seed=seed)
    rng = np.random.default_rng(seed)
    windows = decoder.windows(words, CONTEXT)
    rows = rng.choice(len(windows), SETTINGS["sequences"], replace=False)
    return [
        {"trained": trained, "seed": seed}
        | compare_steps(model, windows[row], guesses, rng)
        for row in rows
    ]


def compare_steps(model, numbers, guesses, rng):
    """Return by how much steps of several kinds lower the loss on one sequence.

    Tried are the direction against the gradient; the same with the gradient's entries
    shuffled within each parameter; and random directions of three kinds, which move all
    numbers, all but the word vectors, or the biases of the output. The model is left as it
    was.

    Parameters
    ----------
    model : lmcourse.numpy_nn.decoder.Decoder
    numbers : int array of shape (tokens + 1,)
        The words of the sequence, by their numbers, and the word that follows its last.
    guesses : float
        Which share of the random directions to try.
    rng : numpy Generator

    Returns
    -------
    dict
        ``loss``, before the step, in nats; ``gradient`` and ``shuffled``, by how many nats
        the loss falls along the gradient and along the shuffled one, a list by length of
        the step (``SETTINGS["lengths"]``); ``random``, the same of each guess, (guesses,
        lengths), in a random order.
    """
    loss = SoftmaxCrossEntropy()
    named = {n: p for n, p in model.parameters().items() if p.trainable}

    def forward():
        """Return the loss of the sequence with the weights as they are, in nats."""
        return float(loss.forward(model.forward(numbers[:-1]), numbers[1:]))

    def falls(direction):
        """Return by how much the loss falls if the parameters move against a direction.

        ``direction`` : dict of str to array, name of a parameter → array of its shape. All
        arrays together are scaled to the length of the step, and subtracted; afterwards the
        parameters are as before. Returned is a list of float, in nats, one for each length
        of ``SETTINGS["lengths"]``; below 0 where the loss rises.
        """
        norm = np.sqrt(sum((d**2).sum() for d in direction.values()))
        lowered = []
        for length in SETTINGS["lengths"]:
            for name, d in direction.items():
                named[name].value -= length / norm * d
            lowered.append(round(start - forward(), 5))
            for name, d in direction.items():
                named[name].value += length / norm * d
        return lowered

    start = forward()
    for parameter in model.parameters().values():
        parameter.grad[...] = 0
    model.backward(loss.backward(1.0))
    gradient = {name: p.grad.copy() for name, p in named.items()}
    mixed = {n: rng.permutation(g.ravel()).reshape(g.shape) for n, g in gradient.items()}
    kinds = [
        kind
        for kind, most in SETTINGS["guesses"].items()
        for _ in range(max(1, int(guesses * most)))
    ]
    drawn = []
    for kind in rng.permutation(kinds):
        chosen = [name for name in named if is_guessed(name, kind)]
        drawn.append(falls({n: rng.standard_normal(named[n].value.shape) for n in chosen}))
    return {
        "loss": round(start, 4),
        "gradient": falls(gradient),
        "shuffled": falls(mixed),
        "random": drawn,
    }


def is_guessed(name, kind):
    """Return whether a random direction of some kind moves a parameter.

    ``name`` : str, the parameter's; ``kind`` : str, "output biases" (these alone), "all",
    or "no vectors" (all but the word vectors).
    """
    if kind == "output biases":
        return name == "output.bias"
    return kind == "all" or name != "dictionary.table"


def best_guesses(rows, most=None):
    """Return by how much the best random guess lowers the loss of each sequence.

    Parameters
    ----------
    rows : list of dict
        One a sequence; ``random`` has the falls of the loss in nats, (guesses, lengths of
        the step).
    most : int, optional
        How many guesses to take, the first ones; all by default.

    Returns
    -------
    array of shape (sequences, lengths)
        In nats, the largest fall at each length of the step.
    """
    return np.array([np.max(row["random"][:most], axis=0) for row in rows])


def summary(results):
    """Compare the gradient with the best guess, sequence by sequence.

    Parameters
    ----------
    results : dict of str to list of dict
        "decoders" → a dict for each sequence: ``seed``; ``gradient``, by how many nats a
        step along the gradient lowers the loss, a list by length of the step; ``random``,
        the same of each random direction, (guesses, lengths).

    Returns
    -------
    dict
        ``n``, the number of outcomes, and their ``seeds``; ``interval``, of the mean fall
        of the loss in nats, gradient less best guess, each at the better length, 95 % over
        sequences; ``verdict``, "holds" or "not so": whether the gradient is ahead for every
        sequence.
    """
    rows = results["decoders"]
    steps = np.array([row["gradient"] for row in rows]).max(axis=1)  # (sequences,)
    gap = steps - best_guesses(rows).max(axis=1)
    low, high = bootstrap_interval(gap)
    return count(rows) | {
        "interval": [round(low, 4), round(high, 4)],
        "verdict": verdict(bool((gap > 0).all())),
    }
