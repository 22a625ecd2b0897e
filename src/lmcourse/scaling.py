"""What a model costs and what it brings: counted, and foretold by power laws.

The law is that of Hoffmann et al. (2022, section 3.3): a loss that nothing takes away, and
two parts that fall as a power, one of the number of parameters and one of that of tokens.
"""

from itertools import product

import numpy as np

EXPONENTS = np.arange(0.05, 1.5, 0.025)
WAYS = ("law", "line", "neighbour", "ratio", "same")  # to foretell a run


def training_flops(config, tokens):
    """Return the multiplications and additions of training on so many tokens.

    A product of matrices has two for each number of the weights and token, forwards, and
    twice as many backwards; attention adds two products of length by length.

    Parameters
    ----------
    config : lmcourse.gpt.model.GPTConfig
    tokens : int
        In windows as long as the context.
    """
    width, layers = config.d_model, config.layers
    weights = 12 * layers * width**2 + config.vocab_size * width
    looking = 2 * layers * config.context * width
    return 6 * tokens * (weights + looking)


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
    counts = np.ones((1, len(losses))) if counts is None else counts
    pairs = np.array([*product(EXPONENTS, repeat=2)])
    parts = np.ones((len(pairs), len(losses), 3))
    parts[..., 1] = np.power.outer(parameters, -pairs[:, 0]).T
    parts[..., 2] = np.power.outer(tokens, -pairs[:, 1]).T
    parts /= np.asarray(losses)[:, None]  # (pairs, runs, 3): shares of each loss
    products = np.einsum("dr,pri,prj->dpij", counts, parts, parts, optimize=True)
    sums = np.einsum("dr,pri->dpi", counts, parts, optimize=True)
    products += 1e-12 * np.eye(3)  # draws of few places leave something open
    found = np.linalg.solve(products, sums[..., None])[..., 0]  # (draws, pairs, 3)
    errors = counts.sum(1)[:, None] - (found * sums).sum(-1)  # squared, summed
    errors = np.where((found >= 0).all(-1), errors, np.inf)
    best = errors.argmin(1)
    rest, powers = found[np.arange(len(counts)), best], pairs[best]
    rest[np.isinf(errors.min(1))] = np.nan
    return np.stack([*rest.T[:2], powers[:, 0], rest[:, 2], powers[:, 1]], -1)


def law(fitted, parameters, tokens):
    """Return the losses that fits foretell, shape (draws, places)."""
    e, a_size, a, b_size, b = np.asarray(fitted).T[..., None]
    parameters, tokens = (np.atleast_1d(each) for each in (parameters, tokens))
    return e + a_size * parameters ** (-1.0 * a) + b_size * tokens ** (-1.0 * b)


def straight(parameters, tokens, losses, at_parameters, at_tokens):
    """Foretell by a straight line in logarithms: a power law without an offset."""
    inputs = np.log([np.full(len(tokens), np.e), parameters, tokens])  # (3, runs)
    line = np.linalg.lstsq(inputs.T, np.log(losses), rcond=None)[0]
    return np.exp(np.log([np.e, at_parameters, at_tokens]) @ line)


def resampled(groups, draws, seed=0):
    """Return counts (draws, runs): groups of runs drawn again, with replacement.

    Parameters
    ----------
    groups : sequence
        To which each run belongs: runs that differ in their seed alone are of one.
    draws, seed : int
    """
    names, place = np.unique(groups, return_inverse=True)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), draws)
    return drawn[:, place].astype(float)


def foretell(rows, targets, draws=400):
    """Foretell runs from others, by the law and by its rivals.

    Parameters
    ----------
    rows : list of dict
        Finished runs: ``parameters``, ``tokens``, ``test`` (a loss).
    targets : list of dict
        What is to come: ``parameters``, ``tokens``.

    Returns
    -------
    list of dict
        Of each target ``law`` with its ``interval`` (95 % of the fits to runs drawn
        again), ``line`` (straight in logarithms), ``ratio`` (what the last step in
        tokens did to this size, again as far), ``neighbour`` (what the same step did to
        the next smaller size) and ``same`` (nothing more is gained).
    """
    names = ("parameters", "tokens", "test")
    size, tokens, loss = (np.array([row[x] for row in rows], float) for x in names)
    best = fit(size, tokens, loss)
    many = fit(size, tokens, loss, resampled(size * 1e9 + tokens, draws))

    def mean_at(parameters, read):
        return loss[(size == parameters) & (tokens == read)].mean()

    found = []
    for target in targets:
        at = target["parameters"], target["tokens"]
        smaller, read = size[size < at[0]].max(), np.unique(tokens[size == at[0]])[-2:]
        first, last = (mean_at(at[0], each) for each in read)
        steps = np.log(at[1] / read[1]) / np.log(read[1] / read[0])
        gain = mean_at(smaller, at[1]) / mean_at(smaller, read[1])
        told = law(best, *at)[0, 0], straight(size, tokens, loss, *at), last * gain
        told = *told, last * (last / first) ** steps, last
        ends = np.nanquantile(law(many, *at), [0.025, 0.975])
        guesses = {way: round(float(x), 4) for way, x in zip(WAYS, told, strict=True)}
        found.append(target | guesses | {"interval": ends.round(4).tolist()})
    return found


def misses(foretold, runs):
    """Return by how much each way missed each target, as a share of the mean loss."""
    found = []
    for told in foretold:
        at = told["parameters"], told["tokens"]
        came = np.mean([r["test"] for r in runs if (r["parameters"], r["tokens"]) == at])
        found.append({way: float(told[way] / came - 1) for way in WAYS})
    return found


def saved_bytes(config, batch):
    """Return how many bytes a GPT's way forward keeps for the way back, in float32.

    Of each token and layer 16 vectors: what enters and leaves each norm, queries, keys and
    values, what attention gives, and the hidden layer (four wide) before and behind its
    activation. Each norm keeps two numbers more, each head one; the end the last norm's
    vectors and the logits; the ids, of 8 bytes, are kept twice.
    """
    kept = 16 * config.d_model + 4 + config.heads
    kept = config.layers * kept + 2 * config.d_model + 2 + config.vocab_size
    return batch * config.context * (4 * kept + 16)
