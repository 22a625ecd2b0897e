"""Models and texts in which there is nothing to find: all in a random order."""

import copy
import re

import numpy as np
import torch
from torch import nn


def shuffled_letters(text, seed=0):
    """Return a text in which all letters have changed places at random.

    Spaces, ends of lines and punctuation stay where they are, so that words and lines keep
    their lengths, and every letter is as frequent as before.

    Parameters
    ----------
    text : str
    seed : int

    Returns
    -------
    str
        As long as the text.
    """
    letters = [character for character in text if character.isalpha()]
    mixed = iter(np.random.default_rng(seed).permutation(len(letters)).tolist())
    return "".join(letters[next(mixed)] if c.isalpha() else c for c in text)


def shuffled_words(text, seed=0):
    """Return a text whose words have changed places at random.

    Spaces and ends of lines stay, so that each line has as many words as before;
    punctuation goes with the word that it is written to.

    Parameters
    ----------
    text : str
    seed : int

    Returns
    -------
    str
        As long as the text.
    """
    words = re.findall(r"\S+", text)
    order = iter(np.random.default_rng(seed).permutation(len(words)).tolist())
    return re.sub(r"\S+", lambda _: words[next(order)], text)


def shuffled_weights(model: nn.Module, seed: int = 0) -> nn.Module:
    """Return a copy of a model in which the numbers of each parameter are shuffled.

    What it learned is gone, while states and scores keep about the same scale. Parameters
    that are shared stay shared.

    Parameters
    ----------
    model : nn.Module
        A BERT, a GPT, or any other; it is left as it is.
    seed : int

    Returns
    -------
    nn.Module
    """
    copied = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in copied.parameters():
            order = torch.randperm(weights.numel(), generator=generator)
            mixed = weights.detach().cpu().flatten()[order].view(weights.shape)
            weights.copy_(mixed)
    return copied
