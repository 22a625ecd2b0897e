"""Worlds in which there is nothing to find: what findings are run on (`studies.findings`).

Each function returns a new thing, by a fixed seed, and leaves the old one alone. A null is
made of them in a few lines, and names what the page computed from the old thing:

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
    """Return a copy of a model that has learned nothing.

    The numbers of each parameter tensor are shuffled: all keep their size, so that states
    and scores stay at about the model's own scale. Parameters that are shared stay so.

    Parameters
    ----------
    model : nn.Module
        A BERT, a GPT, or any other.
    seed : int
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
    """Return texts of the same lengths, the words of all of them shuffled among them.

    Words are what white space separates; line breaks become spaces.
    """
    words = [text.split() for text in texts]
    mixed = iter(shuffled([word for each in words for word in each], seed))
    return [" ".join(next(mixed) for _ in each) for each in words]


def shuffled(items: Sequence, seed: int = 0) -> list:
    """Return some items, for instance labels, in a random order."""
    order = np.random.default_rng(seed).permutation(len(items))
    return [items[place] for place in order]
