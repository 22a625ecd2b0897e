"""The exercises of *transformer-block*: each known mistake is recognised and named."""

import pytest
import torch
import torch.nn.functional as F

from lmcourse import exercises

CHAPTER = "transformer-block"


def verdict(name, answer):
    return exercises.check(f"{CHAPTER}.{name}", answer)


def norm(divide, axis=-1, scale=True, shift=True):
    def layer_norm(x, gamma, beta, eps):
        centred = x - x.mean(axis, keepdim=True)
        variance = x.var(axis, correction=0, keepdim=True)
        y = centred / divide(variance, eps)
        return y * (gamma if scale else 1) + (beta if shift else 0)

    return layer_norm


def root(variance, eps):
    return (variance + eps).sqrt()


def unbiased(x, gamma, beta, eps):
    return (x - x.mean(-1, keepdim=True)) / root(
        x.var(-1, keepdim=True), eps
    ) * gamma + beta


def rms(x, gamma, beta, eps):
    return x / root((x**2).mean(-1, keepdim=True), eps) * gamma + beta


def whole(x, gamma, beta, eps):
    return (x - x.mean()) / root(x.var(correction=0), eps) * gamma + beta


def swapped(x, gamma, beta, eps):
    return norm(root)(x, beta, gamma, eps)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (norm(lambda v, eps: v + eps), "divide by the variance"),
        (unbiased, "d_model - 1"),
        (norm(lambda v, eps: v.sqrt() + eps), "inside the square root"),
        (norm(lambda v, eps: v.sqrt()), "eps is not used"),
        (norm(root, scale=False, shift=False), "gamma and beta are not used"),
        (norm(root, shift=False), "beta is not"),
        (swapped, "swapped"),
        (rms, "RMSNorm"),
        (norm(root, axis=1), "over the tokens"),
        (whole, "whole tensor"),
        (lambda x, gamma, beta, eps: x, "numbers differ"),
        (lambda x, gamma, beta, eps: x[0], "shape"),
        (lambda x: x, "TypeError"),
        (3, "pass the function itself"),
    ],
)
def test_layer_norm(answer, said):
    assert said in verdict("layer_norm", answer).message


def gated(hidden):
    return lambda x, gate, up, down: hidden(x @ gate.T, x @ up.T) @ down.T


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (gated(lambda g, u: g * F.silu(u)), "wrong branch"),
        (gated(lambda g, u: g.sigmoid() * u), "sigmoid only"),
        (gated(lambda g, u: F.silu(g) + u), "multiply"),
        (gated(lambda g, u: g * u), "SiLU is missing"),
        (gated(lambda g, u: F.silu(g * u)), "gate alone"),
        (gated(lambda g, u: F.silu(g)), "up is not used"),
        (gated(lambda g, u: F.gelu(g) * u), "GEGLU"),
        (lambda x, gate, up, down: F.silu(x @ gate.T) * (x @ up.T), "down is not applied"),
        (lambda x, gate, up, down: x @ gate, "RuntimeError"),
    ],
)
def test_swiglu(answer, said):
    assert said in verdict("swiglu", answer).message


def order(pre, post):
    return lambda x, step, norm, norm_first: (pre if norm_first else post)(x, step, norm)


def pre(x, step, norm):
    return x + step(norm(x))


def post(x, step, norm):
    return norm(x + step(x))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (order(post, pre), "wrong one for pre-norm"),
        (order(pre, pre), "wrong one for post-norm"),
        (order(lambda x, s, n: n(x) + s(n(x)), post), "stream itself"),
        (order(lambda x, s, n: s(n(x)), post), "no residual path"),
        (order(pre, lambda x, s, n: n(s(x))), "no residual path"),
        (order(lambda x, s, n: x + n(s(x)), post), "norm is on the update"),
        (order(lambda x, s, n: x + s(x), post), "norm is not used"),
        (order(pre, lambda x, s, n: x + n(x + s(x))), "normalises the sum"),
    ],
)
def test_around(answer, said):
    assert said in verdict("around", answer).message


def size(table=1, places=1, last=1, norms=4, biases=9, matrices=12, output=0, bias=0):
    """Count with a part left out or added: per block, in units of d or d squared."""

    def gpt_size(vocab_size, context, layers, d):
        block = matrices * d * d + (biases + norms) * d
        tables = (table * vocab_size + places * context) * d
        return (
            tables
            + layers * block
            + last * 2 * d
            + output * vocab_size * d
            + (bias * vocab_size)
        )

    return gpt_size


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (size(output=1), "token table used again"),
        (size(output=1, bias=1), "with a bias"),
        (size(places=0), "positions are missing"),
        (size(table=0), "token table is missing"),
        (size(last=0), "norm after the last block"),
        (size(norms=0), "blocks' norms"),
        (size(norms=0, last=0), "no norm"),
        (size(biases=0), "biases of the linear"),
        (size(matrices=11, biases=8), "output projection"),
        (size(matrices=16, biases=13, norms=6), "cross-attention"),
        (size(matrices=6, biases=6), "four times"),
        (lambda v, c, layers, d: size()(v, c, 1, d), "only one block"),
        (lambda *sizes: size()(*sizes) + 1, "differ"),
    ],
)
def test_gpt_size(answer, said):
    assert said in verdict("gpt_size", answer).message
    assert verdict("gpt_size", size())


def losses_of(logits, targets):
    return F.cross_entropy(logits.mT, targets, reduction="none")


def on_losses(function):
    """Make an answer from a function of the losses and of what is not padding."""
    return lambda logits, targets, pad: function(losses_of(logits, targets), targets != pad)


def texts(losses, kept):
    means = [row[keep].mean() for row, keep in zip(losses, kept, strict=True)]
    return torch.stack(means).mean().exp()


def unsafe(logits, targets, pad):
    p = logits.exp() / logits.exp().sum(-1, keepdim=True)
    p = p.gather(-1, targets[..., None])[..., 0]
    return (-p.log()[targets != pad].mean()).exp()


def softmax_first(logits, targets, pad):
    return F.cross_entropy(logits.softmax(-1).mT, targets, ignore_index=pad).exp()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (on_losses(lambda at, kept: (-at[kept].mean()).exp()), "the sign"),
        (on_losses(lambda at, kept: at[kept].mean()), "this is the cross-entropy"),
        (on_losses(lambda at, kept: at.mean().exp()), "padding is counted."),
        (on_losses(lambda at, kept: (at * kept).mean().exp()), "number of tokens"),
        (softmax_first, "softmax is applied before"),
        (on_losses(lambda at, kept: at[kept].exp().mean()), "perplexities of single"),
        (on_losses(lambda at, kept: 1 / (-at[kept]).exp().mean()), "mean probability"),
        (on_losses(lambda at, kept: 2 ** at[kept].mean()), "base e"),
        (on_losses(lambda at, kept: at[kept].sum().exp()), "take their mean"),
        (on_losses(texts), "every token counts the same"),
        (unsafe, "overflow"),
    ],
)
def test_perplexity(answer, said):
    assert said in verdict("perplexity", answer).message


def writer(keep_start=False, keep_stop=False, stops=True, extra=0, least=False, last=False):
    def write_greedily(next_logits, start, stop, limit):
        ids = [start]
        while len(ids) <= limit + extra:
            logits = next_logits(ids[-1:] if last else ids)
            best = int(logits.argmin() if least else logits.argmax())
            if best == stop and stops:
                ids += [stop] * keep_stop
                break
            ids.append(best)
        return ids[0 if keep_start else 1 :]

    return write_greedily


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (writer(keep_start=True), "`start` out of"),
        (writer(keep_start=True, keep_stop=True), "`start` and `stop` out of"),
        (writer(keep_stop=True), "`stop` out of"),
        (writer(stops=False), "go on after `stop`"),
        (writer(stops=False, extra=100), "the loop does not end"),
        (writer(least=True), "argmin"),
        (writer(last=True), "all ids so far"),
        (writer(extra=-1), "one too few"),
        (writer(extra=1), "with a limit of 2 you wrote 3"),
        (writer(extra=9), "with a limit of 2 you wrote 3"),
        (lambda *given: torch.tensor([4]), "a list is expected"),
        (lambda *given: ["a"], "whole"),
    ],
)
def test_write_greedily(answer, said):
    assert said in verdict("write_greedily", answer).message
    assert verdict("write_greedily", writer())
