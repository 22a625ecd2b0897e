"""Activation patching: what a model held for one text, put into its pass over another.

Each change is made inside a ``with``, at chosen tokens; when that is left, the model is as
it was before. What is copied comes from `lmcourse.gpt.inside.outputs` or `states`. The
models are those with the course's blocks, a GPT or a `lmcourse.llama.Llama`.
"""

from contextlib import ExitStack, contextmanager
from functools import partial

from lmcourse.ablation import hooked_heads


@contextmanager
def copied_heads(model, heads, outputs, token=-1):
    """Let some heads return at one token what they returned for other texts.

    Parameters
    ----------
    model : nn.Module
        With ``blocks``, a list of modules; ``attention`` in each has ``heads``, their
        number, and the linear layer ``output``, which is given their outputs side by side.
    heads : sequence of (int, int)
        Layer and head, both from 0.
    outputs : dict of (int, int) to Tensor
        Layer and head → what the head returned, (batch, tokens, d_head), for other texts in
        the same order; or (d_head,), the same for every text.
    token : int
        The position, here and there; -1 is the last.
    """
    by_layer = {}
    for layer, head in heads:
        by_layer.setdefault(layer, []).append(head)

    def replace(layer, returned):
        """Return a layer's heads, some of them copied from the other text.

        ``layer`` : int; ``returned`` : Tensor (batch, tokens, heads, d_head), as is what is
        returned.
        """
        returned = returned.clone()  # (batch, tokens, heads, d_head)
        for head in by_layer[layer]:
            source = outputs[layer, head]
            returned[:, token, head] = source[:, token] if source.ndim == 3 else source
        return returned

    with ExitStack() as hooks:
        for layer in by_layer:
            attention = model.blocks[layer].attention
            hooks.enter_context(hooked_heads(attention, partial(replace, layer)))
        yield


@contextmanager
def copied_state(model, layer, token, states):
    """Hand a layer another state of one token, inside a ``with``.

    Parameters
    ----------
    model : nn.Module
        With ``blocks``, a list of modules that are each given the residual stream first.
    layer : int
        Whose input is changed, from 0.
    token : int
        The position, from 0; -1 is the last.
    states : Tensor of shape (batch, d_model)
        What the layer is given there.
    """

    def replace(stream):
        """Return the residual stream, (batch, tokens, d_model), with the states put in."""
        stream = stream.clone()
        stream[:, token] = states
        return stream

    with changed_states(model, layer, replace):
        yield


@contextmanager
def changed_states(model, layer, change):
    """Hand a layer other states than those that come, inside a ``with``.

    Parameters
    ----------
    model : nn.Module
        With ``blocks``, a list of modules that are each given the residual stream first.
    layer : int
        Whose input is changed, from 0.
    change : callable
        From the residual stream, (batch, tokens, d_model), to another of that shape.
    """

    def before(module, inputs):
        """Return a block's inputs with the residual stream changed: a forward pre-hook.

        ``inputs`` : tuple, first the stream (batch, tokens, d_model). ``module`` is not
        used.
        """
        return (change(inputs[0]), *inputs[1:])

    with model.blocks[layer].register_forward_pre_hook(before):
        yield
