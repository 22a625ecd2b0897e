"""Small modules that change a trained model and leave its weights as they were.

LoRA beside the linear layers of any model; in a GPT, prefix vectors in front of the keys
and values of every attention. Each wraps a part of the model, begins near or at what that
part computed, is all that is trained, can be saved alone, and can be taken away again.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.attention import attention, causal_mask
from lmcourse.gpt.model import CausalAttention
from lmcourse.weights import read_record, read_weights, save_tensors

LAYERS = (".qkv", ".query", ".key", ".value", ".output", ".up", ".gate", ".down")


class LoRA(nn.Module):
    """A linear layer and, beside it, a product of two thin matrices (Hu et al. 2022).

    Parameters
    ----------
    base : nn.Linear
        It is frozen.
    rank : int
        How thin: ``down`` is (rank, in_features), ``up`` (out_features, rank).
    scale : float
        Of what is added; α/r in the paper.

    Raises
    ------
    ValueError
        If the rank is below 1 or above that of the matrix.
    """

    def __init__(self, base, rank, scale=1.0):
        super().__init__()
        most = min(base.weight.shape)
        if not 1 <= rank <= most:
            raise ValueError(f"a rank from 1 to {most}, please, not {rank}")
        self.base = base.requires_grad_(False)
        self.scale = scale
        self.original = None
        self.down = nn.Parameter(base.weight.new_empty(rank, base.in_features))
        self.up = nn.Parameter(base.weight.new_zeros(base.out_features, rank))
        nn.init.normal_(self.down, std=1 / math.sqrt(base.in_features))

    def forward(self, x):
        """Return the layer's output and, unless it is merged, what LoRA adds.

        ``x`` : Tensor (..., in_features); returned is one of shape (..., out_features).
        """
        if self.original is not None:  # merged
            return self.base(x)
        return self.base(x) + self.scale * (x @ self.down.T) @ self.up.T

    def merge(self):
        """Add the product to the layer's own matrix: no more to compute than before.

        Nothing is done if it was added already.
        """
        if self.original is None:
            self.original = self.base.weight.detach().clone()
            self.base.weight.data += self.scale * (self.up @ self.down).detach()

    def unmerge(self):
        """Put the layer's own matrix back, bit for bit, if the product was added to it."""
        if self.original is not None:
            self.base.weight.data.copy_(self.original)
            self.original = None


def _random(length, like):
    """Return random vectors to learn, from N(0, 0.1²): (length, columns of ``like``).

    ``length`` : int, how many; ``like`` : matrix, whose dtype and device they have.
    """
    return nn.Parameter(0.1 * torch.randn(length, like.shape[1]).to(like))


class Prefix(nn.Module):
    """An attention with learned keys and values in front (Li & Liang 2021).

    Every token attends to them. They are no tokens: nothing is computed from them, and they
    have no position.

    Parameters
    ----------
    base : CausalAttention
        It is frozen.
    length : int
        How many. For a prefix of its own in each example of a batch, stack ``keys`` and
        ``values`` of several: (batch, length, d_model).

    Raises
    ------
    ValueError
        If there is none.
    """

    def __init__(self, base, length):
        super().__init__()
        if length < 1:
            raise ValueError(f"a prefix of 1 vector or more, please, not {length}")
        self.base = base.requires_grad_(False)
        self.keys = _random(length, base.output.weight)
        self.values = _random(length, base.output.weight)

    def forward(self, x, cache=None):
        """Return the update of the residual stream, and None for the weights.

        Parameters
        ----------
        x : Tensor of shape (batch, tokens, d_model)
        cache : LayerCache, optional
            Keys and values of the tokens before ``x``, ``cache.tokens`` of them; those of
            ``x`` are added. The learned ones are not kept there.

        Returns
        -------
        update : Tensor of shape (batch, tokens, d_model)
        weights : None
        """
        base, (batch, tokens, _), length = self.base, x.shape, self.keys.shape[-2]
        query, key, value = base.project(x, cache.tokens if cache else 0)
        if cache:
            key, value = cache.append(key, value)  # (batch, heads, keys, d_head)

        def prepend(learned, others):
            """Return the learned vectors, cut into heads, before those of the text.

            ``learned`` : Tensor (length, d_model) or (batch, length, d_model); ``others`` :
            (batch, heads, keys, d_head). Returned is (batch, heads, length + keys, d_head).
            """
            heads = learned.unflatten(-1, (base.heads, -1)).transpose(-3, -2)
            heads = heads.expand(batch, -1, -1, -1)  # (batch, heads, length, d_head)
            return torch.cat([heads, others], dim=2)

        mask = causal_mask(key.shape[2], x.device)[-tokens:]
        mask = F.pad(mask, (length, 0), value=True)  # (tokens, length + keys)
        key = prepend(self.keys, key)
        value = prepend(self.values, value)
        output, _ = attention(query, key, value, mask)
        return base.output(output.transpose(-3, -2).flatten(-2)), None


KINDS = (LoRA, Prefix)


def adapters(model):
    """Return the adapters of a model: a dict of str to `LoRA` or `Prefix`, by name.

    ``model`` : nn.Module.
    """
    return {name: m for name, m in model.named_modules() if isinstance(m, KINDS)}


def trainable(model):
    """Return how many numbers of a model training may change, an int.

    ``model`` : nn.Module.
    """
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def _replace(model, wrap, kind, ends, what):
    """Put an adapter in the place of each module of a kind whose name ends so.

    Everything else is frozen. The names of the parameters that were trainable before are
    kept on the model, as ``trainable_before``, for `remove`. If a module cannot be wrapped,
    the model is as it was.

    Parameters
    ----------
    model : nn.Module
        It is changed, and returned.
    wrap : callable
        From a module to its adapter, a `LoRA` or a `Prefix`.
    kind : type
        Of the modules.
    ends : str or tuple of str
        How their names end; "" for any name.
    what : str
        What an error says is missing if there is no such module.

    Returns
    -------
    nn.Module
        The model.

    Raises
    ------
    ValueError
        If the model has adapters already, or no such module. Errors of ``wrap`` come
        through.
    """
    if adapters(model):
        raise ValueError("this model has adapters already: take them away with `remove`")
    inside = model.named_modules()
    modules = {n: m for n, m in inside if isinstance(m, kind) and n.endswith(ends)}
    if not modules:
        raise ValueError(f"this model has no {what}")
    trainable_before = {n for n, w in model.named_parameters() if w.requires_grad}
    try:
        wrapped = {name: wrap(module) for name, module in modules.items()}
    except Exception:
        _set_trainable(model, trainable_before)
        raise
    model.requires_grad_(False)
    for name, adapter in wrapped.items():
        model.set_submodule(name, adapter)
    model.trainable_before = trainable_before
    return model


def _set_trainable(model, names):
    """Let training change the parameters of these names, and no others.

    Parameters
    ----------
    model : nn.Module
        Changed in place.
    names : collection of str
        As ``model.named_parameters()`` has them.
    """
    for name, weight in model.named_parameters():
        weight.requires_grad_(name in names)


def add_lora(model, rank, scale=1.0):
    """Put a `LoRA` beside all of attention and feed-forward, and freeze everything else.

    A LoRA adds to a linear layer the product of two thin matrices, which are trained. It is
    put beside each nn.Linear whose name ends in ".qkv", ".query", ".key", ".value",
    ".output", ".up", ".gate" or ".down". The names of the parameters that were trainable
    before are kept on the model, as ``trainable_before``, for `remove`.

    Parameters
    ----------
    model : nn.Module
        It is changed, and returned.
    rank : int
        Of the product beside each layer: from 1 to the smaller side of its matrix.
    scale : float
        By which the product is multiplied.

    Returns
    -------
    nn.Module
        The model.

    Raises
    ------
    ValueError
        If there are adapters already, no such layer, or the rank is not possible; the
        model is as it was.
    """
    what = f"linear layer whose name ends in {', '.join(LAYERS)}"
    return _replace(model, lambda m: LoRA(m, rank, scale), nn.Linear, LAYERS, what)


def add_prefix(model, length):
    """Put a `Prefix` around every attention of a GPT, and freeze everything else.

    The names of the parameters that were trainable before are kept on the model, as
    ``trainable_before``, for `remove`.

    Parameters
    ----------
    model : GPT
        It is changed, and returned.
    length : int
        How many learned keys, each with a value, stand in front of the text in every
        attention; 1 or more.

    Returns
    -------
    GPT
        The model.

    Raises
    ------
    ValueError
        If there are adapters already, it is no GPT, or the length is below 1; the model is
        as it was.
    """
    what = "attention of a GPT"
    return _replace(model, lambda m: Prefix(m, length), CausalAttention, "", what)


def remove(model):
    """Take all adapters away: the model is again what it was, bit for bit.

    What was trainable before there were adapters (``trainable_before``) is trainable again.

    Parameters
    ----------
    model : nn.Module
        It is changed, and returned.
    """
    unmerge(model)
    for name, adapter in adapters(model).items():
        model.set_submodule(name, adapter.base)
    for module in model.modules():  # it may be a part to which they were added
        if "trainable_before" in vars(module):
            _set_trainable(module, vars(module).pop("trainable_before"))
    return model


def _loras(model):
    """Return the `LoRA` modules of a model, an nn.Module, as a list."""
    return [module for module in model.modules() if isinstance(module, LoRA)]


def merge(model):
    """Add what every `LoRA` of a model adds to the matrix of its layer; return the model.

    Nothing more is then to be computed than without them. ``model`` : nn.Module, changed in
    place.
    """
    for lora in _loras(model):
        lora.merge()
    return model


def unmerge(model):
    """Give every layer with a `LoRA` its own matrix back after `merge`; return the model.

    The matrix is the same bit for bit; a LoRA that is not merged stays as it is.

    ``model`` : nn.Module, changed in place.
    """
    for lora in _loras(model):
        lora.unmerge()
    return model


def _own(model):
    """Return the adapters' own parameters, a dict of str to Parameter.

    Its keys are such as "blocks.0.attention.qkv.down": the name of the adapter in the
    model, and that of the parameter in the adapter. Those of the layers inside are left
    out.

    ``model`` : nn.Module, with adapters in place of some of its layers.
    """
    return {
        f"{name}.{own}": weight
        for name, adapter in adapters(model).items()
        for own, weight in adapter.named_parameters(recurse=False)
    }


def _record(model):
    """Return what a file says of the adapters in it.

    Parameters
    ----------
    model : nn.Module

    Returns
    -------
    dict
        ``adapter``, "LoRA" or "Prefix"; of a LoRA also its ``scale``, a float: by which
        what it adds is multiplied.

    Raises
    ------
    ValueError
        If the model has no adapters.
    """
    attached = list(adapters(model).values())
    if not attached:
        raise ValueError("this model has no adapters")
    record = {"adapter": type(attached[0]).__name__}
    return record | ({"scale": attached[0].scale} if isinstance(attached[0], LoRA) else {})


def save_adapters(path, model):
    """Write the adapters of a model to a safetensors file, and nothing else of it.

    In the file's metadata stands a record, the kind of the adapters and a LoRA's scale.

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
    save_tensors(path, _own(model), _record(model))


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
    stored = read_record(path)
    here = _record(model)
    if stored != here:
        raise ValueError(f"{path} holds {stored}, but this model has {here}")
    own = _own(model)
    tensors = read_weights(path, {name: tuple(w.shape) for name, w in own.items()})
    unmerge(model)
    for name, weight in own.items():
        weight.data.copy_(tensors[name])
    return model
