"""What goes wrong in the exercises of *backpropagation*, diagnosis → answer."""

import matplotlib.pyplot as plt
import numpy as np

from lmcourse.numpy_nn import attention, layers
from lmcourse.numpy_nn.core import Module, as_tuple


def module(base, compute=None, gradient=None):
    """Return a subclass with other methods; each is given the module and its inputs."""
    members = {}
    if compute:
        members["compute"] = compute
    if gradient:
        members["gradient"] = gradient
    return type("Answer", (base,), members)


def two(forward, backward):
    """Return a module without parameters from two functions of arrays."""
    return module(Module, lambda self, x: forward(x), lambda self, d: backward(d))


def swap(x):
    return x.swapaxes(-1, -2)


def scalar(delta_x, total, forward=lambda s, x: s * x, add=True):
    def compute(self, x):
        self.x = x
        return forward(self.scale.value, x)

    def gradient(self, d):
        s = self.scale.value
        kept = self.scale.grad if add else 0
        self.scale.grad = kept + total(s, d, self.x)
        return delta_x(s, d, self.x)

    return module(attention.ScalarProduct, compute, gradient)


def right_x(s, d, x):
    return s * d


def right_s(s, d, x):
    return (d * x).sum()


def dot(forward=lambda a, b: a @ b, first=None, second=None):
    def compute(self, a, b):
        self.a, self.b = a, b
        return forward(a, b)

    def gradient(self, d):
        a, b = self.a, self.b
        d_a = first(a, b, d) if first else d @ b.mT
        d_b = second(a, b, d) if second else a.mT @ d
        return d_a, d_b

    return module(Module, compute, gradient)


Attention = attention.ScaledDotProductAttention


def attend(scores=None, weights=None, keep=True, order=(0, 1, 2), hide="before"):
    """Return attention with another forward pass."""

    def compute(self, *inputs):
        q, k, v = (inputs[i] for i in order)
        s = self.scale.forward(self.product.forward(q, self.transpose.forward(k)))
        s = scores(s) if scores else s
        s = self.mask.forward(s) if hide == "before" else s
        w = self.softmax.forward(s)
        w = weights(s) if weights else w
        if hide == "after" and isinstance(self.mask, attention.CausalMask):
            w = w * np.tri(w.shape[-1])
        if keep:
            self.weights = w
        self.mix.forward(w, v)
        return w @ v

    return module(Attention, compute, None if hide == "before" else without_mask)


def without_mask(self, delta):
    d_weights, d_value = self.mix.backward(delta)
    d_scores = self.scale.backward(self.softmax.backward(d_weights))
    d_query, d_key = self.product.backward(d_scores)
    return d_query, swap(d_key), d_value


def attention_back(change):
    def gradient(self, delta):
        d_w, d_v = self.mix.backward(delta)
        d_s = self.softmax.backward(d_w)
        return change(self, d_s, d_v)

    return module(Attention, None, gradient)


def unscaled_query(self, d_s, d_v):
    d_q = self.product.backward(d_s)[0]
    d_k = self.product.backward(self.scale.backward(d_s))[1]
    return d_q, swap(d_k), d_v


def unscaled_key(self, d_s, d_v):
    d_q = self.product.backward(self.scale.backward(d_s))[0]
    return d_q, swap(self.product.backward(d_s)[1]), d_v


def swapped(self, d_s, d_v):
    d_q, d_k = self.product.backward(self.scale.backward(d_s))
    return swap(d_k), d_q, d_v


def untransposed(self, d_s, d_v):
    return *self.product.backward(self.scale.backward(d_s)), d_v


Head = attention.ProjectedAttention


def head(turn="qk", value=lambda self, q, k, v: self.value.forward(v), pick=(0, 1, 2)):
    def compute(self, *inputs):
        q, k, v = (inputs[i] for i in pick)
        mixed = value(self, q, k, v)
        q, k = self.query.forward(q), self.key.forward(k)
        q = self.turn_query.forward(q) if "q" in turn else q
        mixed = type(self.turn_key).forward(self.turn_key, mixed) if "v" in turn else mixed
        k = self.turn_key.forward(k) if "k" in turn else k
        return self.attention.forward(q, k, mixed)

    def gradient(self, delta):
        d_q, d_k, d_v = self.attention.backward(delta)
        d_q = self.turn_query.backward(d_q) if "q" in turn else d_q
        d_k = self.turn_key.backward(d_k) if "k" in turn else d_k
        parts = zip((d_q, d_k, d_v), (self.query, self.key, self.value), strict=True)
        return tuple(layer.backward(d) for d, layer in parts)

    return module(Head, compute, gradient)


def head_back(turned=True, linear=True, summed=False):
    def gradient(self, delta):
        d_q, d_k, d_v = self.attention.backward(delta)
        if turned:
            d_q, d_k = self.turn_query.backward(d_q), self.turn_key.backward(d_k)
        named = zip((d_q, d_k, d_v), (self.query, self.key, self.value), strict=True)
        if not linear:
            return tuple(d @ layer.matrix.T for d, layer in named)
        back = tuple(layer.backward(d) for d, layer in named)
        return sum(back[:1]) if summed else back

    return module(Head, None, gradient)


Heads = attention.MultiHeadAttention


def many(last=True, order=1):
    def compute(self, *inputs):
        outputs = self.heads.forward(*inputs)[::order]
        joined = self.concat.forward(*outputs)
        out = self.output.forward(joined)
        return out if last else joined

    return module(Heads, compute)


def many_back(reduce=None, output=True):
    def gradient(self, delta):
        inner = delta @ self.output.matrix.T
        if output:
            inner = self.output.backward(delta)
        parts = as_tuple(self.concat.backward(inner))
        if reduce is None:
            return self.heads.backward(parts)
        back = [b.backward(p) for b, p in zip(self.heads.branches, parts, strict=True)]
        return tuple(reduce(copies) for copies in zip(*back, strict=True))

    return module(Heads, None, gradient)


def picture(
    change=lambda w: w, top=True, below=True, beside=True, scale=(0, 1), number=None
):
    def weights_picture(weights, tokens):
        shown = change(weights)
        fig, axes = plt.subplots(1, len(shown), squeeze=False)
        for axis, one in zip(axes[0], shown, strict=True):
            origin = "upper" if top else "lower"
            axis.imshow(one, vmin=scale[0], vmax=scale[1], origin=origin)
            axis.set_xticks(range(len(tokens)), tokens if below else tokens[::-1])
            axis.set_yticks(range(len(tokens)), tokens if beside else tokens[::-1])
        return fig

    return weights_picture


def sampler(
    seen=lambda numbers, context: numbers[-context:],
    share=lambda logits, t: layers.softmax(logits / t),
    place=-1,
    draw=lambda rng, p: rng.choice(len(p), p=p),
    result=lambda start, numbers: numbers,
    more=0,
):
    def answer(model, start, number, rng, context=7, temperature=1.0):
        numbers = list(start)
        for _ in range(number + more):
            logits = model.forward(np.array(seen(numbers, context)))[place]
            numbers.append(int(draw(rng, share(logits, temperature))))
        return result(list(start), numbers)

    return answer


WRONG = {
    "transpose": {
        "forward, all axes are reversed": two(lambda x: x.T, lambda d: d.T),
        "forward, the first two axes change": two(
            lambda x: x.swapaxes(0, 1), lambda d: d.swapaxes(0, 1)
        ),
        "reshape keeps their order in memory": two(
            lambda x: x.reshape(*x.shape[:-2], x.shape[-1], x.shape[-2]), lambda d: d
        ),
        "comes back as it was": two(lambda x: x, lambda d: d),
        "delta is handed on as it came": two(swap, lambda d: d),
        "all axes of delta are reversed": two(swap, lambda d: d.T),
        "reshape gives delta the right shape": two(
            swap, lambda d: d.reshape(*d.shape[:-2], d.shape[-1], d.shape[-2])
        ),
        "pass the class itself": attention.Transpose(),
    },
    "scalar_product": {
        "forward, the input is divided": scalar(right_x, right_s, lambda s, x: x / s),
        "delta must be multiplied by the number too": scalar(lambda s, d, x: d, right_s),
        "delta is multiplied by the input": scalar(lambda s, d, x: d * x, right_s),
        "delta is divided by the number": scalar(lambda s, d, x: d / s, right_s),
        "self.scale.grad is still 0": scalar(right_x, lambda s, d, x: 0.0),
        "averaged over the entries": scalar(right_x, lambda s, d, x: (d * x).mean()),
        "adds up delta alone": scalar(right_x, lambda s, d, x: d.sum()),
        "the output in it where the input": scalar(
            right_x, lambda s, d, x: (d * s * x).sum()
        ),
        "overwrites the gradient": scalar(right_x, right_s, add=False),
    },
    "dot_product": {
        "multiplied entry by entry": dot(lambda a, b: a * b),
        "the order is wrong: a comes first": dot(lambda a, b: b @ a),
        "b is transposed; leave that": dot(lambda a, b: a @ b.mT),
        "b must be transposed": dot(first=lambda a, b, d: d @ b),
        "the gradients are swapped": dot(
            first=lambda a, b, d: a.mT @ d, second=lambda a, b, d: d @ b.mT
        ),
        "delta belongs on the left": dot(first=lambda a, b, d: b.mT @ d),
        "a must be transposed": dot(second=lambda a, b, d: a @ d),
        "in the gradient of b, delta stands": dot(second=lambda a, b, d: d @ a.mT),
        "the gradient of b is transposed": dot(second=lambda a, b, d: (a.mT @ d).mT),
        "return 2 arrays from gradient": module(attention.DotProduct, None, lambda s, d: d),
    },
    "attention": {
        "the scale is missing": attend(lambda s: s * np.sqrt(6)),
        "divided by d_head, not by its root": attend(lambda s: s / np.sqrt(6)),
        "the softmax is missing": attend(weights=lambda s: s),
        "each column sums to 1": attend(weights=lambda s: swap(layers.softmax(swap(s)))),
        "queries and keys are swapped.": attend(order=(1, 0, 2)),
        "keep the weights in self.weights": attend(keep=False),
        "the query lacks the scale": attention_back(unscaled_query),
        "the gradient of the key lacks the scale": attention_back(unscaled_key),
        "the gradients of query and key are swapped": attention_back(swapped),
        "lacks the transpose's backward pass": attention_back(untransposed),
        "nothing is hidden": attend(hide="never"),
        "hidden after the softmax": attend(hide="after"),
        "return 3 arrays from gradient": attention_back(lambda self, d_s, d_v: (d_s, d_v)),
    },
    "projected_attention": {
        "nothing is turned": head(""),
        "the values are turned too": head("qkv"),
        "the keys are not turned": head("q"),
        "the key's layer": head(value=lambda self, q, k, v: self.key.forward(v)),
        "all three come from the query's input": head(pick=(0, 0, 0)),
        "not turned back": head_back(turned=False),
        "weight of query are still 0": head_back(linear=False),
        "return 3 arrays from gradient": head_back(summed=True),
    },
    "multi_head_attention": {
        "the last linear layer is missing": many(last=False),
        "in the opposite order": many(order=-1),
        "not summed over the heads": many_back(lambda copies: copies[-1]),
        "are averaged": many_back(lambda copies: sum(copies) / len(copies)),
        "got no gradient": many_back(output=False),
    },
    "weights_picture": {
        "rows and columns are swapped": picture(swap),
        "1 heat maps for 3 heads. Do not average": picture(
            lambda w: w.mean(0, keepdims=True)
        ),
        "picture is the first head's": picture(lambda w: np.repeat(w[:1], 3, 0)),
        "picture is the last head's": picture(lambda w: np.repeat(w[-1:], 3, 0)),
        "leave the order of the rows": picture(lambda w: w[:, ::-1]),
        "the first query stands at the bottom": picture(top=False),
        "under the columns": picture(below=False),
        "beside the rows": picture(beside=False),
        "a scale of its own": picture(scale=(None, None)),
        "return the figure": lambda weights, tokens: weights,
        "numbers differ": picture(lambda w: w + 0.5),
    },
    "sampling": {
        "the start should stand": sampler(result=lambda s, n: [*n[len(s) :], *s]),
        "5 words were added": sampler(more=-1),
        "more than the last": sampler(lambda n, context: n),
        "shown one word": sampler(lambda n, context: n[-1:]),
        "the *last* words": sampler(lambda n, context: n[:context]),
        "always the likeliest": sampler(draw=lambda rng, p: p.argmax()),
        "drawn alike": sampler(draw=lambda rng, p: rng.choice(len(p))),
        "the logits of the first word": sampler(place=0),
        "the temperature has no effect": sampler(share=lambda z, t: layers.softmax(z)),
        "multiplied by the temperature": sampler(share=lambda z, t: layers.softmax(z * t)),
        "not drawn by the softmax": sampler(share=lambda z, t: layers.softmax(-z / t)),
    },
}
