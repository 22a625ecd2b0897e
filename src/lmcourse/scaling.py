"""Scaling laws: what a training costs, and how its loss falls with size and text.

The law is that of Hoffmann et al. (2022, section 3.3): a loss that nothing takes away, and
two terms that fall as a power, one of the number of parameters and one of that of tokens.
"""

from itertools import product

import numpy as np

EXPONENTS = np.arange(0.05, 1.5, 0.025)


def training_flops(config, tokens):
    """Return how many floating-point operations a training on so many tokens takes.

    For each token, a product with a matrix takes two for each of its numbers in the forward
    pass, and twice as many in the backward pass. Attention adds two products of matrices of
    tokens by tokens.

    Parameters
    ----------
    config : lmcourse.gpt.model.GPTConfig
    tokens : int
        In windows as long as the context.

    Returns
    -------
    int
    """
    d_model = config.d_model
    layers = config.layers
    weights = 12 * layers * d_model**2 + config.vocab_size * d_model
    attention = 2 * layers * config.context * d_model
    return 6 * tokens * (weights + attention)


def fit(parameters, tokens, losses, counts=None):
    """Fit loss = E + A / parameters**a + B / tokens**b, least in squared relative error.

    For given exponents the rest is linear. So all pairs of a grid (a and b from 0.05 to
    below 1.5, in steps of 0.025) are tried, each is solved for E, A and B, and of those
    without a negative one the best is kept.

    Parameters
    ----------
    parameters, tokens, losses : array of shape (runs,)
        Of each run how many parameters the model has, how many tokens it read, and its loss
        in nats.
    counts : array of shape (draws, runs), optional
        How often each run counts, in each of several fits; by default once, in one.

    Returns
    -------
    array of shape (draws, 5)
        E, A, a, B, b of each fit; E, A and B are NaN where each pair has a negative one.
    """
    if counts is None:
        counts = np.ones((1, len(losses)))
    exponents = np.array([*product(EXPONENTS, repeat=2)])  # (pairs, 2)
    terms = np.ones((len(exponents), len(losses), 3))  # (pairs, runs, 3): of E, A and B
    terms[..., 1] = np.power.outer(parameters, -exponents[:, 0]).T
    terms[..., 2] = np.power.outer(tokens, -exponents[:, 1]).T
    terms /= np.asarray(losses)[:, None]  # so that errors are relative
    products = np.einsum("dr,pri,prj->dpij", counts, terms, terms, optimize=True)
    sums = np.einsum("dr,pri->dpi", counts, terms, optimize=True)
    products += 1e-12 * np.eye(3)  # draws of few runs leave something open
    solved = np.linalg.solve(products, sums[..., None])[..., 0]  # (draws, pairs, 3)
    errors = counts.sum(1)[:, None] - (solved * sums).sum(-1)  # squared, summed
    errors = np.where((solved >= 0).all(-1), errors, np.inf)  # (draws, pairs)
    best = errors.argmin(1)
    factors = solved[np.arange(len(counts)), best]  # (draws, 3)
    factors[np.isinf(errors.min(1))] = np.nan
    powers = exponents[best]  # (draws, 2)
    e, a_factor, b_factor = factors.T
    return np.stack([e, a_factor, powers[:, 0], b_factor, powers[:, 1]], -1)


def law(fitted, parameters, tokens):
    """Return the losses that fits predict.

    Parameters
    ----------
    fitted : array of shape (draws, 5)
        E, A, a, B and b of E + A parameters⁻ᵃ + B tokens⁻ᵇ, a fit a row.
    parameters, tokens : float, or array of shape (runs,)
        How many parameters a model has, and how many tokens it reads.

    Returns
    -------
    array of shape (draws, runs)
        In nats; one column if parameters and tokens are numbers.
    """
    e, a_factor, a, b_factor, b = np.asarray(fitted).T[..., None]  # (draws, 1) each
    parameters = np.atleast_1d(parameters)
    tokens = np.atleast_1d(tokens)
    return e + a_factor * parameters ** (-1.0 * a) + b_factor * tokens ** (-1.0 * b)


def saved_bytes(config, batch):
    """Return how many bytes a GPT's forward pass keeps for the backward pass, in float32.

    For each token and layer these are 16 vectors: the input and output of each norm,
    queries, keys and values, the output of attention, and the hidden layer (four times as
    wide) before and after its activation. Each norm keeps two numbers more, each head one.
    After the blocks come the last norm's vectors and the logits. The ids, of 8 bytes each,
    are kept twice.

    Parameters
    ----------
    config : lmcourse.gpt.model.GPTConfig
        Of a GPT-2, without dropout.
    batch : int
        Windows as long as the context.

    Returns
    -------
    int
    """
    layer = 16 * config.d_model + 4 + config.heads
    end = 2 * config.d_model + 2 + config.vocab_size
    numbers = config.layers * layer + end  # of a token
    return batch * config.context * (4 * numbers + 16)
