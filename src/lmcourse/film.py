"""A training as a film: a GPT's weights at many steps in one small file.

Each stop is stored as what changed since the stop before. A row of a matrix is divided by
a scale of its own and rounded to whole numbers, most of which are 0, 1 or -1; those are
compressed. What was rounded off is part of the next change, so that errors do not add up.
A scale has 16 bits and a whole number 8, so that their product is exact in float32: a page
finds the same weights to the bit.
"""

import zlib
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

from lmcourse.data import corpora_folder
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.tokenization import CharTokenizer
from lmcourse.weights import read_record

ROUGH, FINE = 0.85, 0.05  # what 1 stands for, as a share of a row's root mean square
LARGEST = 127


def rows_of(state):
    """Return all weights of a model as rows.

    Parameters
    ----------
    state : dict of str to Tensor
        By name; a vector is one row.

    Returns
    -------
    list of Tensor of shape (rows, columns)
        In the order of the names' appearance, float32.
    """
    return [x.float().reshape(-1, x.shape[-1]) for x in state.values()]


def round_rows(change, share):
    """Round each row to whole multiples of a scale.

    Parameters
    ----------
    change : float32 Tensor of shape (rows, columns)
        What is rounded.
    share : float
        The scale, as a share of the row's root mean square. It is made larger where the
        row's largest number would become more than 127 times the scale.

    Returns
    -------
    numbers : int8 Tensor of shape (rows, columns)
        Which multiple of its row's scale each is.
    scale : float16 Tensor of shape (rows,)
        What 1 stands for in each row.
    """
    largest = change.abs().amax(1)  # (rows,)
    scale = torch.maximum(share * change.square().mean(1).sqrt(), largest / LARGEST)
    scale = scale.half()  # first, since numbers are multiples of what is stored
    divided = change / scale.float().clamp(min=1e-12)[:, None]
    return divided.round().clamp(-LARGEST, LARGEST).to(torch.int8), scale


def add_rows(values, numbers, scale):
    """Return values with a change added: float32 Tensor of shape (rows, columns).

    Parameters
    ----------
    values : float32 Tensor of shape (rows, columns)
    numbers, scale
        The change, rounded: int8 whole numbers of the shape of ``values``, and for each row
        the float16 number by which they are multiplied.
    """
    return values + numbers.float() * scale.float()[:, None]


def pack(states, rough=ROUGH):
    """Store the weights of many steps of one training in few bits.

    Each stop is stored as its change from the stop before, rounded to whole multiples of a
    scale for each row (`round_rows`), and compressed by zlib. The first is a change from 0.

    Parameters
    ----------
    states : list of dict of str to Tensor
        The weights at each stop (a step of the training that is kept) by name, all of the
        same shapes.
    rough : float
        What 1 stands for in a matrix, as a share of a row's root mean square: 0.85 takes
        about 2.4 bits a number. Vectors, which are few, are rounded more finely, with a
        share of 0.05 (`FINE`).

    Returns
    -------
    dict of str to Tensor
        Of each stop, by its place among ``states``: ``0.scales``, float16 (rows,), a scale
        for each row of all weights in their order, and ``0.numbers``, uint8 (bytes,), their
        int8 whole numbers, compressed.
    """
    packed = {}
    values = [torch.zeros_like(x) for x in rows_of(states[0])]
    before = [torch.zeros_like(x) for x in values]
    for place, state in enumerate(states):
        now = rows_of(state)
        scales = []
        numbers = []
        for i, (name, target) in enumerate(zip(state, now, strict=True)):
            change = _change(values[i], before[i], target)
            share = FINE if state[name].ndim == 1 else rough
            multiples, scale = round_rows(change, share)
            values[i] = add_rows(values[i], multiples, scale)
            scales.append(scale)
            numbers.append(multiples.flatten())
        packed[f"{place}.scales"] = torch.cat(scales)
        packed[f"{place}.numbers"] = _compress(torch.cat(numbers))
        before = now
    return packed


def _change(values, before, target):
    """Return the change to store for the next weights, row by row.

    That is the next weights less what is stored, which also makes up for what was rounded
    off. But where that is more than one and a half times as long as the true change of a
    row, it is the true change alone: else old rounding would drown what the step changed.

    Parameters
    ----------
    values, before, target : Tensor of shape (rows, columns)
        What is stored so far, the weights that it stands for, and the next weights.

    Returns
    -------
    Tensor of shape (rows, columns)
    """
    exact = target - before  # (rows, columns)
    fixed = target - values  # (rows, columns)
    is_drowned = fixed.norm(dim=1) > 1.5 * exact.norm(dim=1)  # (rows,)
    return torch.where(is_drowned[:, None], exact, fixed)


def _compress(numbers):
    """Return int8 numbers (Tensor) as compressed bytes, a uint8 Tensor, for zlib."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 15, 9, zlib.Z_HUFFMAN_ONLY)
    content = packer.compress(numbers.numpy().tobytes()) + packer.flush()
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


class Film:
    """The weights of a GPT at many steps of its training.

    Parameters
    ----------
    config : GPTConfig
    steps : list of int
        How many steps of the training were made at each stop, one of those that are kept.
    shapes : dict of str to sequence of int
        Of each weight by name, in the order in which they are stored.
    tensors : dict of str to Tensor
        As `pack` makes them. Of each stop, by its place: ``0.scales``, float16 (rows,), and
        ``0.numbers``, uint8 (bytes,), int8 whole numbers of all rows, compressed by zlib.

    Attributes
    ----------
    config, steps, shapes, tensors
        The same.
    """

    def __init__(self, config, steps, shapes, tensors):
        """Keep what is given; nothing is unpacked yet."""
        self.config = config
        self.steps = list(steps)
        self.shapes = dict(shapes)
        self.tensors = tensors

    def state(self, stop):
        """Return the weights at a stop by name, a dict of str to float32 Tensor.

        They are the sum of the stored changes of all stops up to this one.

        Parameters
        ----------
        stop : int
            Its place among the steps, from 0.

        Raises
        ------
        IndexError
            If there is no such stop.
        """
        if not 0 <= stop < len(self.steps):
            raise IndexError(f"a stop from 0 to {len(self.steps) - 1}, not {stop}")
        zeros = {name: torch.zeros(*shape) for name, shape in self.shapes.items()}
        values = rows_of(zeros)
        for place in range(stop + 1):
            scales = self.tensors[f"{place}.scales"].split([len(x) for x in values])
            content = zlib.decompress(self.tensors[f"{place}.numbers"].numpy().tobytes())
            numbers = torch.from_numpy(np.frombuffer(content, np.int8).copy())
            numbers = numbers.split([x.numel() for x in values])
            for i, x in enumerate(values):
                values[i] = add_rows(x, numbers[i].view_as(x), scales[i])
        shaped = zip(zeros.items(), values, strict=True)
        return {name: x.view_as(weight) for (name, weight), x in shaped}

    def model(self, stop):
        """Return the GPT at a stop, in evaluation mode.

        ``stop`` : int, its place among the steps, from 0; an IndexError if there is none.
        """
        model = GPT(self.config)
        model.load_state_dict(self.state(stop))
        return model.eval()


def load_film(path=None):
    """Load the film of the training of the book's GPT.

    A film is one safetensors file that holds the weights of a GPT at many steps of its
    training: for each such stop the change since the stop before, rounded and compressed
    (`pack`), and a record as JSON in the file's metadata.

    Parameters
    ----------
    path : path, optional
        Of another film, as ``python -m studies film --write`` makes it.

    Returns
    -------
    tokenizer : CharTokenizer
        Of the record's ``alphabet``.
    film : Film
        With ``steps``, and `Film.model`, which returns the GPT at a stop.
    record : dict
        ``model`` and ``training``, the fields of a GPTConfig and of a TrainingConfig;
        ``alphabet``, the characters, a str; ``steps``, a list of int, the steps made at
        each stop; ``shapes``, name of a weight → list of int; ``corpus_sha256``; ``torch``,
        its version; ``threads``.

    Raises
    ------
    OSError, ValueError
        If there is no such file, or it holds no film.
    """
    path = Path(path or corpora_folder() / "checkpoints" / "film.safetensors").expanduser()
    record = read_record(path)
    try:
        config = GPTConfig(**record["model"])
        film = Film(config, record["steps"], record["shapes"], load_file(path))
        tokenizer = CharTokenizer(record["alphabet"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} holds no film of a training: {error!r}") from error
    return tokenizer, film, record


# --- stops --------------------------------------------------------------------------------


def first_for_good(holds):
    """Return from which place on something holds to the end, or None.

    Parameters
    ----------
    holds : sequence of bool
        Whether it holds at each place, in their order.

    Returns
    -------
    int or None
        The place, from 0; None if it does not hold at the last one.
    """
    last_failure = max((i for i, held in enumerate(holds) if not held), default=-1)
    return last_failure + 1 if last_failure + 1 < len(holds) else None


def thou_matters(row):
    """Say whether *thou* matters to a GPT: by itself, and by the heads that carry it.

    Parameters
    ----------
    row : dict
        What the study *film* recorded of a GPT at a stop of its training. ``interval``, a
        pair of float: a prompt with *they* is read with two heads' outputs copied from one
        with *thou*, and from one with *we*; the 95 % interval of by how much the lead of
        the logit of *t* over that of *l* is larger with the first. ``t``, a dict: ``thou``
        is the share of prompts with *thou*, such as "And thou never shal", after which *t*
        is likelier than *l*.

    Returns
    -------
    bool
        Whether the interval is above 0, and *t* likelier after more than half the prompts.
    """
    return row["interval"][0] > 0 and row["t"]["thou"] > 0.5
