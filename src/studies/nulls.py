"""Shuffled models and texts, in which findings must fail (`studies.findings`).

Each function returns something new, from a fixed seed, and leaves what it is given as
it is. A null is written with them in a few lines; it also replaces what the page
computed:

>>> def random_weights(page):
...     '''A BERT whose weights are shuffled.'''
...     bert = nulls.shuffled_weights(page.bert)
...     return page.replaced(bert=bert, weights=attention_weights(bert, page.sentences))
"""

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn


def shuffled_weights(model: nn.Module, seed: int = 0) -> nn.Module:
    """Return a copy of a model in which the numbers of each parameter are shuffled.

    What it learned is gone, while states and scores keep about the same scale. Parameters
    that are shared stay shared.

    Parameters
    ----------
    model : nn.Module
        A BERT, a GPT, or any other.
    seed : int

    Returns
    -------
    nn.Module
    """
    other = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in other.parameters():
            order = torch.randperm(weights.numel(), generator=generator)
            mixed = weights.detach().cpu().flatten()[order].view(weights.shape)
            weights.copy_(mixed)
    return other


def shuffled_words(texts: Sequence[str], seed: int = 0) -> list[str]:
    """Return texts with as many words each, all words shuffled across the texts.

    Parameters
    ----------
    texts : sequence of str
        Words are separated by white space; line breaks become spaces.
    seed : int

    Returns
    -------
    list of str
    """
    words = [text.split() for text in texts]
    mixed = iter(shuffled([word for each in words for word in each], seed))
    return [" ".join(next(mixed) for _ in each) for each in words]


def shuffled(items: Sequence, seed: int = 0) -> list:
    """Return a sequence, for instance of labels, as a list in a random order."""
    order = np.random.default_rng(seed).permutation(len(items))
    return [items[index] for index in order]
