"""What a GPT remembers of the tokens that it has read: their keys and values."""

import torch

__all__ = ["Cache", "cache_bytes"]


class LayerCache:
    """The keys and values of one layer, for the tokens read so far."""

    def __init__(self):
        self.both = None  # (2, batch, heads, tokens, d_head)

    @property
    def tokens(self):
        """How many tokens were read."""
        return 0 if self.both is None else self.both.shape[3]

    def append(self, key, value):
        """Add those of new tokens, (batch, heads, new, d_head); return those of all."""
        new = torch.stack([key, value])
        self.both = new if self.both is None else torch.cat([self.both, new], dim=3)
        return self.both


class Cache:
    """The keys and values of every layer of a GPT.

    What a token's keys and values are depends on the tokens before it, and not on those
    after. So they stay right while a text grows at its end, and ``model(ids, cache)`` asks
    for those of the new tokens alone. If anything else changes, the first token cut off for
    example, so that all others move a place, begin with an empty one.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    """

    def __init__(self, model):
        self.layers = [LayerCache() for _ in model.blocks]

    @property
    def tokens(self):
        """How many tokens were read; the next one's position."""
        return self.layers[0].tokens

    @property
    def nbytes(self):
        """How much memory it takes."""
        return sum(layer.both.nbytes for layer in self.layers if layer.tokens)

    def take(self, rows):
        """Keep some texts of the batch, in a new order; a text may be kept twice.

        Parameters
        ----------
        rows : int64 Tensor of shape (texts,)
        """
        for layer in self.layers:
            if layer.tokens:
                layer.both = layer.both[:, rows]


def cache_bytes(config, tokens, batch=1, bytes_each=4):
    """Return what a `Cache` takes: a key and a value for each token of each layer.

    Parameters
    ----------
    config : lmcourse.gpt.settings.GPTConfig
    tokens, batch : int
    bytes_each : int
        Of a number: 4 in float32.
    """
    return 2 * config.layers * batch * tokens * config.d_model * bytes_each
