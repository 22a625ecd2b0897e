"""Scaling laws: what a model costs, and what a larger one would gain.

The law is that of Hoffmann et al. (2022, section 3.3): a loss that nothing takes away, and
two terms that fall as a power, one of the number of parameters and one of that of tokens.
"""

from itertools import product

import numpy as np

EXPONENTS = np.arange(0.05, 1.5, 0.025)
WAYS = ("law", "line", "neighbour", "ratio", "same")  # to predict the loss of a run


def training_flops(config, tokens):
    """Return the floating-point operations of training on so many tokens.

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
    d_model, layers = config.d_model, config.layers
    weights = 12 * layers * d_model**2 + config.vocab_size * d_model
    attention = 2 * layers * config.context * d_model
    return 6 * tokens * (weights + attention)


def fit(parameters, tokens, losses, counts=None):
    """Fit loss = E + A / parameters**a + B / tokens**b, least in squared relative error.

    For given exponents the rest is linear. So all pairs of a grid are tried, each is
    solved for E, A and B, and of those without a negative one the best is kept.

    Parameters
    ----------
    parameters, tokens, losses : array of shape (runs,)
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
        Of `fit`.
    parameters, tokens : float, or array of shape (runs,)

    Returns
    -------
    array of shape (draws, runs)
    """
    e, a_factor, a, b_factor, b = np.asarray(fitted).T[..., None]  # (draws, 1) each
    parameters, tokens = np.atleast_1d(parameters), np.atleast_1d(tokens)
    return e + a_factor * parameters ** (-1.0 * a) + b_factor * tokens ** (-1.0 * b)


def predict_by_line(parameters, tokens, losses, at_parameters, at_tokens):
    """Predict by a straight line in logarithms: a power law without an offset.

    Parameters
    ----------
    parameters, tokens, losses : array of shape (runs,)
    at_parameters, at_tokens : float

    Returns
    -------
    float
    """
    inputs = np.log([np.full(len(tokens), np.e), parameters, tokens])  # (3, runs)
    line = np.linalg.lstsq(inputs.T, np.log(losses), rcond=None)[0]
    return np.exp(np.log([np.e, at_parameters, at_tokens]) @ line)


def resample_groups(groups, draws, seed=0):
    """Draw groups of runs again, with replacement.

    Parameters
    ----------
    groups : sequence
        The group to which each run belongs: runs that differ in their seed alone are of
        one.
    draws, seed : int

    Returns
    -------
    float array of shape (draws, runs)
        How often each run counts.
    """
    names, group = np.unique(groups, return_inverse=True)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), draws)
    return drawn[:, group].astype(float)


def predict_runs(rows, targets, draws=400):
    """Predict the losses of runs from others, by the law and by its rivals.

    Parameters
    ----------
    rows : list of dict
        Finished runs: ``parameters``, ``tokens``, ``test`` (a loss).
    targets : list of dict
        What is to come: ``parameters``, ``tokens``.
    draws : int
        How often the runs are drawn again for the interval.

    Returns
    -------
    list of dict
        Of each target ``law`` with its ``interval`` (95 % of the fits to runs drawn
        again), ``line`` (straight in logarithms), ``ratio`` (what the last step in
        tokens did to this size, again as far), ``neighbour`` (what the same step did to
        the next smaller size) and ``same`` (nothing more is gained).
    """
    sizes = np.array([row["parameters"] for row in rows], float)
    tokens = np.array([row["tokens"] for row in rows], float)
    losses = np.array([row["test"] for row in rows], float)
    best = fit(sizes, tokens, losses)
    resampled = fit(sizes, tokens, losses, resample_groups(sizes * 1e9 + tokens, draws))

    def mean_loss(size, read):
        """Return the mean loss of the runs of one size and one number of tokens."""
        return losses[(sizes == size) & (tokens == read)].mean()

    predictions = []
    for target in targets:
        size, wanted = target["parameters"], target["tokens"]
        smaller = sizes[sizes < size].max()
        before_last, last_read = np.unique(tokens[sizes == size])[-2:]
        first, last = mean_loss(size, before_last), mean_loss(size, last_read)
        steps = np.log(wanted / last_read) / np.log(last_read / before_last)
        gain = mean_loss(smaller, wanted) / mean_loss(smaller, last_read)
        guesses = {
            "law": law(best, size, wanted)[0, 0],
            "line": predict_by_line(sizes, tokens, losses, size, wanted),
            "neighbour": last * gain,
            "ratio": last * (last / first) ** steps,
            "same": last,
        }
        guesses = {way: round(float(guess), 4) for way, guess in guesses.items()}
        ends = np.nanquantile(law(resampled, size, wanted), [0.025, 0.975])
        predictions.append(target | guesses | {"interval": ends.round(4).tolist()})
    return predictions


def relative_errors(predictions, runs):
    """Return by how much each way missed each target, as a share of the mean loss.

    Parameters
    ----------
    predictions : list of dict
        Of `predict_runs`.
    runs : list of dict
        What came: ``parameters``, ``tokens``, ``test``.

    Returns
    -------
    list of dict of str to float
        By way; above zero if it expected too much loss.
    """
    errors = []
    for prediction in predictions:
        losses = [
            run["test"]
            for run in runs
            if run["parameters"] == prediction["parameters"]
            and run["tokens"] == prediction["tokens"]
        ]
        errors.append({way: float(prediction[way] / np.mean(losses) - 1) for way in WAYS})
    return errors


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
