"""A GPT that also looks up the pairs and triples of tokens that it reads."""

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.gpt.model import GPT


def ngram_rows(ids, order, rows):
    """Number each token together with the ``order - 1`` tokens before it.

    There may be more such n-grams than rows; then some share one (a hash).

    Parameters
    ----------
    ids : int64 Tensor of shape (batch, tokens)
    order : int
        2 for pairs, 3 for triples.
    rows : int

    Returns
    -------
    int64 Tensor of shape (batch, tokens)
        From 0 to ``rows - 1``.
    """
    key = torch.zeros_like(ids)
    for back in reversed(range(order)):
        before = F.pad(ids + 1, (back, 0))[:, : ids.shape[1]]  # 0 where nothing stands
        key = key * 1_000_003 + before  # int64 wraps around, which a hash may
    return key % rows


class NgramGPT(GPT):
    """A GPT to whose token vectors those of the pair and the triple they end are added.

    Parameters
    ----------
    config : GPTConfig
        With ``ngrams``.
    """

    def __init__(self, config):
        super().__init__(config)
        tables = (nn.Embedding(rows, config.d_model) for rows in config.ngrams)
        self.ngrams = nn.ModuleList(tables)
        self.initialise()

    def vectors(self, ids):
        """Return the vectors (batch, tokens, d_model) of tokens, places and n-grams."""
        x = super().vectors(ids)
        for order, table in enumerate(self.ngrams, start=2):
            x = x + table(ngram_rows(ids, order, table.num_embeddings))
        return x


def make_model(config):
    """Return a new model of these sizes: a `GPT`, or with tables an `NgramGPT`."""
    return (NgramGPT if config.ngrams else GPT)(config)
