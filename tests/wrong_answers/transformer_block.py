"""What goes wrong in the exercises of *transformer-block*, diagnosis → answer."""

import torch
import torch.nn.functional as F


def norm(divide, axis=-1, scale=True, shift=True):
    def layer_norm(x, weight, bias, eps):
        centred = x - x.mean(axis, keepdim=True)
        variance = x.var(axis, correction=0, keepdim=True)
        y = centred / divide(variance, eps)
        return y * (weight if scale else 1) + (bias if shift else 0)

    return layer_norm


def root(variance, eps):
    return (variance + eps).sqrt()


def unbiased(x, weight, bias, eps):
    return (x - x.mean(-1, keepdim=True)) / root(
        x.var(-1, keepdim=True), eps
    ) * weight + bias


def rms(x, weight, bias, eps):
    return x / root((x**2).mean(-1, keepdim=True), eps) * weight + bias


def whole(x, weight, bias, eps):
    return (x - x.mean()) / root(x.var(correction=0), eps) * weight + bias


def swapped(x, weight, bias, eps):
    return norm(root)(x, bias, weight, eps)


def gated(hidden):
    return lambda x, gate, up, down: hidden(x @ gate.T, x @ up.T) @ down.T


def order(pre, post):
    return lambda x, step, norm, norm_first: (pre if norm_first else post)(x, step, norm)


def pre(x, step, norm):
    return x + step(norm(x))


def post(x, step, norm):
    return norm(x + step(x))


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


WRONG = {
    "layer_norm": {
        "divide by the variance": norm(lambda v, eps: v + eps),
        "d_model - 1": unbiased,
        "inside the square root": norm(lambda v, eps: v.sqrt() + eps),
        "eps is not used": norm(lambda v, eps: v.sqrt()),
        "weight and bias are not used": norm(root, scale=False, shift=False),
        "bias is not": norm(root, shift=False),
        "swapped": swapped,
        "RMSNorm": rms,
        "over the tokens": norm(root, axis=1),
        "whole tensor": whole,
        "numbers differ": lambda x, weight, bias, eps: x,
        "shape": lambda x, weight, bias, eps: x[0],
        "TypeError": lambda x: x,
        "pass the function itself": 3,
    },
    "swiglu": {
        "wrong branch": gated(lambda g, u: g * F.silu(u)),
        "sigmoid only": gated(lambda g, u: g.sigmoid() * u),
        "multiply": gated(lambda g, u: F.silu(g) + u),
        "SiLU is missing": gated(lambda g, u: g * u),
        "gate alone": gated(lambda g, u: F.silu(g * u)),
        "up is not used": gated(lambda g, u: F.silu(g)),
        "GEGLU": gated(lambda g, u: F.gelu(g) * u),
        "down is not applied": lambda x, gate, up, down: F.silu(x @ gate.T) * (x @ up.T),
        "RuntimeError": lambda x, gate, up, down: x @ gate,
    },
    "around": {
        "wrong one for pre-norm": order(post, pre),
        "wrong one for post-norm": order(pre, pre),
        "stream itself": order(lambda x, s, n: n(x) + s(n(x)), post),
        "norm_first=True, x is not added": order(lambda x, s, n: s(n(x)), post),
        "norm_first=False, x is not added": order(pre, lambda x, s, n: n(s(x))),
        "norm is on the update": order(lambda x, s, n: x + n(s(x)), post),
        "norm is not used": order(lambda x, s, n: x + s(x), post),
        "normalises the sum": order(pre, lambda x, s, n: x + n(x + s(x))),
    },
    "gpt_size": {
        "is counted; it is the token": size(output=1),
        "with a bias": size(output=1, bias=1),
        "positions are missing": size(places=0),
        "token table is missing": size(table=0),
        "norm after the last block": size(last=0),
        "blocks' norms": size(norms=0),
        "no norm": size(norms=0, last=0),
        "biases of the linear": size(biases=0),
        "output projection": size(matrices=11, biases=8),
        "cross-attention": size(matrices=16, biases=13, norms=6),
        "four times": size(matrices=6, biases=6),
        "only one block": lambda v, c, layers, d: size()(v, c, 1, d),
        "differ": lambda *sizes: size()(*sizes) + 1,
    },
    "perplexity": {
        "the sign": on_losses(lambda at, kept: (-at[kept].mean()).exp()),
        "this is the cross-entropy": on_losses(lambda at, kept: at[kept].mean()),
        "padding is counted.": on_losses(lambda at, kept: at.mean().exp()),
        "number of tokens": on_losses(lambda at, kept: (at * kept).mean().exp()),
        "softmax is applied before": softmax_first,
        "perplexities of single": on_losses(lambda at, kept: at[kept].exp().mean()),
        "mean probability": on_losses(lambda at, kept: 1 / (-at[kept]).exp().mean()),
        "base e": on_losses(lambda at, kept: 2 ** at[kept].mean()),
        "take their mean": on_losses(lambda at, kept: at[kept].sum().exp()),
        "every token counts the same": on_losses(texts),
        "overflow": unsafe,
    },
    "write_greedily": {
        "`start` out of": writer(keep_start=True),
        "`start` and `stop` out of": writer(keep_start=True, keep_stop=True),
        "`stop` out of": writer(keep_stop=True),
        "go on after `stop`": writer(stops=False),
        "the loop does not end": writer(stops=False, extra=100),
        "argmin": writer(least=True),
        "all ids so far": writer(last=True),
        "one too few": writer(extra=-1),
        "a limit of 2 you wrote 3": [writer(extra=1), writer(extra=9)],
        "a list of whole": lambda *given: torch.tensor([4]),
        "numbers are expected": lambda *given: ["a"],
        "the list should hold whole numbers": lambda *given: [4.5],
    },
}

RIGHT = {"gpt_size": [size()], "write_greedily": [writer()]}
