"""What goes wrong in the exercises of *transformer-block*, diagnosis → answer."""

import torch
import torch.nn.functional as F


def library(x, weight, bias, eps):
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def native(x, weight, bias, eps):
    return torch.native_layer_norm(x, x.shape[-1:], weight, bias, eps)[0]


def grouped(x, weight, bias, eps):
    return F.group_norm(x.flatten(0, -2), 1, eps=eps).view(x.shape) * weight + bias


def summed(x, norm_1, attend, norm_2, feed_forward):
    attended = attend(norm_1(x))
    return x + attended + feed_forward(norm_2(attended + x))


def modules(x, *parts):
    for norm, step in (parts[:2], parts[2:]):
        x = torch.add(step(norm(x)), x)
    return x


def size(vocab_size, context, layers, d):
    return (vocab_size + context) * d + layers * (12 * d * d + 13 * d) + 2 * d


def by_squares(x, weight, bias, eps):
    mean = x.mean(-1, keepdim=True)
    variance = (x**2).mean(-1, keepdim=True) - mean**2
    return (x - mean) * (variance + eps) ** -0.5 * weight + bias


def too_many(x, norm_1, attend, norm_2, feed_forward):
    return norm_2(summed(x, norm_1, attend, norm_2, feed_forward))


def deviation(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() * weight + bias


def scaled(by):
    """A norm that divides by something else."""

    def answer(x, weight, bias, small):
        centred = x - x.mean(-1, keepdim=True)
        return centred / by(x, small) * weight + bias

    return answer


def in_place(x, norm_1, attend, norm_2, feed_forward):
    x += attend(norm_1(x))
    x += feed_forward(norm_2(x))
    return x


WRONG = {
    "layer_norm": {
        "write it without": library,
        "is a square root already, and": scaled(lambda x, e: x.std(-1, keepdim=True) + e),
        "once more": scaled(lambda x, e: (x.std(-1, keepdim=True) + e).sqrt()),
        "eps is not used, and": scaled(lambda x, e: x.std(-1, keepdim=True)),
    },
    "block": {
        "a norm too many": too_many,
        "has changed, too": in_place,
        "x is added twice": lambda x, *parts: x + summed(x, *parts),
        "return x alone": lambda x, *parts: (x, None),
        "x comes back": lambda x, *parts: x,
        "post-norm": lambda x, n, a, m, f: m(n(x + a(x)) + f(n(x + a(x)))),
        "both steps read the first x": lambda x, n, a, m, f: x + a(n(x)) + f(m(x)),
        "the first update alone": lambda x, n, a, m, f: x + a(n(x)) + f(m(a(n(x)))),
        "norm_1 is used twice": lambda x, n, a, m, f: x + a(n(x)) + f(n(x + a(n(x)))),
    },
    "without_norms": {
        "let each update count less": (1.0, 1e9, 3e4),
        "hardly do anything": (0.1, 1.1, 1.1),
        "by that at the end": (0.25, 0.3, 1.5),
        "another ratio": (0.25, 1.0, 1.6),
        "another growth": (0.25, 2.667, 3.5),
        "no block does anything": (0, 1.0, 1.5),
        "is subtracted": (-0.25, 2.0, 1.6),
        "cannot be its numbers": (50.0, 2.0, 1.5),
        "greater than zero": (0.25, -1.9, 1.5),
        "three numbers": (0.25, 1.9),
    },
    "gpt_size": {
        "a weight and a bias": lambda v, c, n, d: size(v, c, n, d) - 2 * d * n - d,
        "no norm is counted": lambda v, c, n, d: size(v, c, n, d) - 4 * d * n - 2 * d,
        "biases of the linear layers": lambda v, c, n, d: size(v, c, n, d) - 9 * d * n,
    },
}

RIGHT = {
    "layer_norm": [by_squares, deviation],
    "gpt_size": [size],
    "without_norms": [(0.25, 2.667, 1.918), (0.2, 1.683, 1.431)],
    "block": [summed, modules],
}

NONSENSE = {
    "block": [
        lambda x, *parts: 0 * x,
        lambda x, *parts: x.flip(1),
        lambda x, n, a, m, f: 2 * (x + a(n(x)) + f(m(x + a(n(x))))),
    ]
}
FORBIDDEN = {
    "layer_norm": {
        "write it without": library,
        "has norms, of course": native,
        "PyTorch has": grouped,
    }
}
TYPED = {
    "without_norms": [
        (0.05, 1.1, 2.0),
        (0.27, 2.2, 3.4),
        (1e-9, 1.0, 1.3),
        (0.25, 3.0, 1.3),
        (0.25, 2.0, 2.0),
        (0.25, 3, 2),
        (0.25, 2.2, 2.1),
    ]
}
