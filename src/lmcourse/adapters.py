"""Small modules that change a trained model and leave its weights as they were.

LoRA beside a linear layer, prefix vectors in front of the keys and values of every
attention, prompt vectors in front of the tokens. Each wraps a part of a model of this
course, begins near or at what that part computed, is all that is trained, can be saved
alone, and can be taken away again.
"""

import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save as to_bytes
from torch import nn

from lmcourse.attention import MultiHeadAttention, attention, causal_mask
from lmcourse.gpt.model import CausalAttention
from lmcourse.transformer import Block
from lmcourse.weights import parse_json, read_header, read_weights

__all__ = ["LoRA", "Prefix", "Prompt", "add_lora", "add_prefix", "add_prompt", "freeze"]
__all__ += ["load_adapters", "merge", "remove", "save_adapters", "trainable", "unmerge"]

MATRICES = (".qkv", ".query", ".key", ".value", ".output", ".up", ".gate", ".down")


class LoRA(nn.Module):
    """A linear layer and, beside it, a product of two thin matrices (Hu et al. 2022).

    Parameters
    ----------
    inside : nn.Linear
        It is frozen.
    rank : int
        How thin: ``down`` is (rank, in_features), ``up`` (out_features, rank).
    scale : float
        Of what is added; α/r in the paper.

    Raises
    ------
    ValueError
        If the rank is not positive or larger than the matrix has.
    """

    def __init__(self, inside, rank, scale=1.0):
        super().__init__()
        most = min(inside.weight.shape)
        if not 1 <= rank <= most:
            raise ValueError(f"a rank from 1 to {most}, please, not {rank}")
        self.inside, self.scale, self.original = inside.requires_grad_(False), scale, None
        kind = {"dtype": inside.weight.dtype, "device": inside.weight.device}
        self.down = nn.Parameter(torch.empty(rank, inside.in_features, **kind))
        self.up = nn.Parameter(torch.zeros(inside.out_features, rank, **kind))
        nn.init.normal_(self.down, std=1 / math.sqrt(inside.in_features))

    def forward(self, x):
        """Map (..., in_features) to (..., out_features)."""
        if self.original is not None:  # merged
            return self.inside(x)
        return self.inside(x) + self.scale * (x @ self.down.T) @ self.up.T

    def merge(self):
        """Add the product to the layer's own matrix: no more to compute than before."""
        if self.original is None:
            self.original = self.inside.weight.detach().clone()
            self.inside.weight.data += self.scale * (self.up @ self.down).detach()

    def unmerge(self):
        """Put the layer's own matrix back, bit for bit."""
        if self.original is not None:
            self.inside.weight.data.copy_(self.original)
            self.original = None


class Prefix(nn.Module):
    """An attention with learned keys and values in front (Li & Liang 2021).

    Every token may look at them. They are no tokens: nothing is computed of them.

    Parameters
    ----------
    inside : MultiHeadAttention or CausalAttention
        A self-attention; it is frozen.
    length : int
        How many.
    """

    def __init__(self, inside, length):
        super().__init__()
        self.inside = inside.requires_grad_(False)
        like = inside.output.weight
        kind = {"dtype": like.dtype, "device": like.device}
        self.keys, self.values = (
            nn.Parameter(0.1 * torch.randn(length, like.shape[1], **kind)) for _ in "kv"
        )

    def forward(self, x, mask=None, cache=None, rotate=None):
        """Map (batch, tokens, d_model) to the same, and the weights on the tokens.

        Parameters
        ----------
        x : Tensor of shape (batch, tokens, d_model)
        mask : bool Tensor broadcastable to (batch, heads, tokens, tokens), optional
            True where a token may look; of a `CausalAttention` its own.
        cache : optional
            As for a `CausalAttention`.
        rotate : callable, optional
            As for a `MultiHeadAttention`. The learned keys have no place: they are not
            turned.
        """
        inside, (batch, tokens, _), length = self.inside, x.shape, len(self.keys)
        if isinstance(inside, CausalAttention):
            query, key, value = inside.project(x, cache.tokens if cache else 0)
            if cache:
                key, value = cache.append(key, value)  # (batch, heads, keys, d_head)
            mask = causal_mask(key.shape[2], x.device)[-tokens:]
        else:
            parts = inside.query(x), inside.key(x), inside.value(x)
            query, key, value = map(inside.split, parts)
            if rotate is not None:
                query, key = rotate(query), rotate(key)

        def in_front(learned, others):
            heads = learned.unflatten(-1, (inside.heads, -1)).transpose(0, 1)
            heads = heads.expand(batch, -1, -1, -1)  # (batch, heads, length, d_head)
            return torch.cat([heads, others], dim=2)

        if mask is not None:
            mask = F.pad(mask, (length, 0), value=True)
        output, weights = attention(
            query, in_front(self.keys, key), in_front(self.values, value), mask
        )
        merged = output.transpose(-3, -2).flatten(-2)  # (batch, tokens, d_model)
        return inside.output(merged), weights[..., length:]


class Prompt(nn.Module):
    """A block that runs with learned vectors before the tokens (Lester et al. 2021).

    The first block of a stack puts them in, the last one takes them out again.

    Parameters
    ----------
    inside : Block
        It is frozen.
    length : int
        How many.
    first, last : bool
        Which of the stack's blocks this is; both, if it is the only one.
    """

    def __init__(self, inside, length, first, last):
        super().__init__()
        self.inside, self.length = inside.requires_grad_(False), length
        self.last, self.vectors = last, None
        if first:
            like = next(inside.parameters())
            kind = {"dtype": like.dtype, "device": like.device}
            d_model = inside.attention.output.out_features
            self.vectors = nn.Parameter(0.1 * torch.randn(length, d_model, **kind))

    def forward(self, x, mask=None, **looking):
        """Run the block; as `lmcourse.transformer.Block`, with more tokens in between.

        Raises
        ------
        ValueError
            If there is a cache: it would take the vectors for tokens.
        """
        if looking.get("cache"):
            raise ValueError("prompt vectors do without a cache: generate(…, cached=False)")
        length = self.length
        if self.vectors is not None:
            learned = self.vectors.expand(len(x), -1, -1)  # (batch, length, d_model)
            x = torch.cat([learned, x], dim=1)
        if mask is not None:
            rows, keys = mask.shape[-2:]
            mask = F.pad(mask, (length, 0), value=True)  # all may look at them
            if rows == keys:  # and they at no token: it may be a later one
                mask = F.pad(mask, (0, 0, length, 0))
                mask[..., :length, :length] = causal_mask(length, x.device)
            looking["mask"] = mask
        x, weights = self.inside(x, **looking)
        return (x[:, length:] if self.last else x), weights


KINDS = (LoRA, Prefix, Prompt)


def adapters(model):
    """Return the adapters of a model, by name."""
    return {name: m for name, m in model.named_modules() if isinstance(m, KINDS)}


def freeze(model):
    """Let training change nothing of a model, and return it."""
    return model.requires_grad_(False)


def trainable(model):
    """Return how many numbers training may change."""
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def _replace(model, wrap, kind, what):
    """Put ``wrap(module)`` in the place of each module that ``kind`` says yes to."""
    if adapters(model):
        raise ValueError("this model has adapters already: take them away with `remove`")
    found = [name for name, module in model.named_modules() if kind(name, module)]
    if not found:
        raise ValueError(f"this model has no {what}")
    freeze(model)
    for name in found:
        parent, _, own = name.rpartition(".")
        parent = model.get_submodule(parent)
        setattr(parent, own, wrap(getattr(parent, own), name, found))
    return model


def add_lora(model, rank, where=MATRICES, scale=1.0):
    """Put a `LoRA` beside linear layers, and freeze everything else.

    Parameters
    ----------
    model : nn.Module
        It is changed, and returned.
    rank : int
    where : iterable of str
        How the names of the layers end; by default all of attention and feed-forward.
    scale : float

    Raises
    ------
    ValueError
        If there are adapters already, no such layer, or the rank is not possible.
    """
    ends = tuple(where)

    def kind(name, module):
        return isinstance(module, nn.Linear) and name.endswith(ends)

    what = f"linear layer whose name ends in {', '.join(ends)}"
    return _replace(model, lambda m, *_: LoRA(m, rank, scale), kind, what)


def add_prefix(model, length):
    """Put a `Prefix` around every self-attention, and freeze everything else.

    Parameters
    ----------
    model : nn.Module
        Made of `lmcourse.transformer.Block`; it is changed, and returned.
    length : int

    Raises
    ------
    ValueError
        If there are adapters already, or no attention.
    """

    def kind(name, module):
        is_one = isinstance(module, MultiHeadAttention | CausalAttention)
        return is_one and not name.endswith("cross")

    return _replace(model, lambda m, *_: Prefix(m, length), kind, "self-attention")


def add_prompt(model, length):
    """Put a `Prompt` around the blocks of each stack, and freeze everything else.

    Parameters
    ----------
    model : nn.Module
        Made of `lmcourse.transformer.Block`; it is changed, and returned.
    length : int

    Raises
    ------
    ValueError
        If there are adapters already, or no block.
    """

    def wrap(block, name, found):
        stack = name.rpartition(".")[0]
        own = [other for other in found if other.rpartition(".")[0] == stack]
        return Prompt(block, length, name == own[0], name == own[-1])

    return _replace(model, wrap, lambda name, m: isinstance(m, Block), "block")


def remove(model):
    """Take all adapters away: the model is again what it was, bit for bit."""
    unmerge(model)
    for name, adapter in adapters(model).items():
        parent, _, own = name.rpartition(".")
        setattr(model.get_submodule(parent), own, adapter.inside)
    return model


def merge(model):
    """Merge every `LoRA` of a model, and return it."""
    for adapter in adapters(model).values():
        if isinstance(adapter, LoRA):
            adapter.merge()
    return model


def unmerge(model):
    """Undo `merge`, bit for bit, and return the model."""
    for adapter in adapters(model).values():
        if isinstance(adapter, LoRA):
            adapter.unmerge()
    return model


def _own(model):
    """Return the adapters' own parameters, by name."""
    return {
        f"{name}.{own}": weight
        for name, adapter in adapters(model).items()
        for own, weight in adapter.named_parameters(recurse=False)
    }


def _record(model):
    """Return what a file says of the adapters in it."""
    found = list(adapters(model).values())
    if not found:
        raise ValueError("this model has no adapters")
    record = {"adapter": type(found[0]).__name__}
    return record | ({"scale": found[0].scale} if isinstance(found[0], LoRA) else {})


def save_adapters(path, model):
    """Write the adapters of a model, and nothing else of it.

    Parameters
    ----------
    path : path
    model : nn.Module

    Raises
    ------
    OSError
        If it cannot be written.
    ValueError
        If the model has none.
    """
    record = json.dumps(_record(model))
    tensors = {n: w.detach().cpu().contiguous() for n, w in _own(model).items()}
    Path(path).write_bytes(to_bytes(tensors, {"record": record}))


def load_adapters(path, model):
    """Fill the adapters of a model from a file of `save_adapters`, and return the model.

    Parameters
    ----------
    path : path
    model : nn.Module
        With adapters of the kind and size of the file's.

    Raises
    ------
    OSError, ValueError
        If the file cannot be read, is damaged, or holds adapters of another kind, rank,
        length or scale, or for another model; the model is as it was.
    """
    here, (_, metadata) = _record(model), read_header(path)
    said = parse_json(metadata.get("record", ""), f"the record in {path}")
    if said != here:
        raise ValueError(f"{path} holds {said}, but this model has {here}")
    own = _own(model)
    tensors = read_weights(path, {name: tuple(w.shape) for name, w in own.items()})
    unmerge(model)
    for name, weight in own.items():
        weight.data.copy_(tensors[name])
    return model
