"""Parts of a model, and what can be put in their place.

`given_and_returned` records what a part is given and what it returns while a model reads;
`instead` lets it return something else. `straight_line` is the simplest function that can
stand in for a network.
"""

from contextlib import ExitStack, contextmanager

import torch


@torch.no_grad()
def given_and_returned(model, parts, ids):
    """Return what some parts of a model are given, and what they return, for each token.

    Parameters
    ----------
    model : nn.Module
        Called with ``ids``.
    parts : list of nn.Module
        Modules within the model that are given one tensor and return one.
    ids : int64 Tensor of shape (batch, tokens)

    Returns
    -------
    dict of nn.Module to tuple of Tensor
        Each part → its inputs (batch * tokens, d_in) and its outputs (batch * tokens,
        d_out).
    """
    activations = {}

    def keep(part, inputs, output):
        """Note a part's input and output: a forward hook.

        Parameters
        ----------
        part : nn.Module
        inputs : tuple of Tensor
            The first one, (..., tokens, d_in), is noted.
        output : Tensor of shape (..., tokens, d_out)
        """
        activations[part] = inputs[0].flatten(0, -2), output.flatten(0, -2)

    with ExitStack() as hooks:
        for part in parts:
            hooks.enter_context(part.register_forward_hook(keep))
        model(ids)
    return activations


@contextmanager
def instead(part, function):
    """Let a part of a model return something else, inside a ``with``.

    Parameters
    ----------
    part : nn.Module
        The module whose output is replaced.
    function : callable
        From what the part is given, a Tensor, to what it returns.
    """

    def answer(module, inputs, output):
        """Return what the function makes of the input: a forward hook.

        Parameters
        ----------
        module : nn.Module
        inputs : tuple of Tensor
            The first one is what the function is given.
        output : Tensor
            What the module returned; it is not used.

        Returns
        -------
        Tensor
        """
        return function(inputs[0])

    with part.register_forward_hook(answer):
        yield


def straight_line(given, returned):
    """Return the linear function, with a constant, that comes nearest to some outputs.

    Parameters
    ----------
    given : Tensor of shape (tokens, d_in)
        What a part of a model was given for each token.
    returned : Tensor of shape (tokens, d_out)
        What it returned: the outputs to come near to.

    Returns
    -------
    callable
        From a Tensor (..., d_in) to a Tensor (..., d_out). Its squared error on the tokens
        given is the smallest possible. If several functions reach it, as after a norm,
        whose outputs leave one direction empty, it is the one whose matrix is smallest.
    """
    # In double precision: with single, the direction that a norm leaves empty is told from
    # the narrowest of the others by rounding, and another processor rounds otherwise.
    given = given.cpu().double()
    returned = returned.cpu().double()
    start = given.mean(dim=0)
    goal = returned.mean(dim=0)
    matrix = torch.linalg.lstsq(
        given - start, returned - goal, rcond=1e-6, driver="gelsd"
    ).solution  # (d_in, d_out)
    constant = goal - start @ matrix
    return lambda x: x @ matrix.to(x) + constant.to(x)


def shuffled_rows(weight, seed):
    """Return a matrix of neurons, each with its own numbers in a random order.

    Parameters
    ----------
    weight : Tensor of shape (neurons, d_model)
        It is not changed.
    seed : int

    Returns
    -------
    Tensor of shape (neurons, d_model)
        Each row holds the same numbers as before.
    """
    generator = torch.Generator().manual_seed(seed)
    order = torch.rand(weight.shape, generator=generator).argsort(dim=1)
    return weight.gather(1, order.to(weight.device))
