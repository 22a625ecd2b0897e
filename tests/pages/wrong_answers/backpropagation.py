"""What goes wrong in the exercises of *backpropagation*, diagnosis → answer."""

import numpy as np

from lmcourse.data import corpora_folder
from lmcourse.numpy_nn import attention, core, decoder, layers
from lmcourse.numpy_nn.core import Concat, Fork, Module, as_tuple


def module(base, compute=None, gradient=None):
    """Return a subclass with other methods; each is given the module and its inputs."""
    members = {}
    if compute:
        members["compute"] = compute
    if gradient:
        members["gradient"] = gradient
    return type("Answer", (base,), members)


def swap(x):
    return x.swapaxes(-1, -2)


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


def tupleless():
    """Return several heads whose way back forgets that one head makes no tuple."""

    def gradient(self, delta):
        return self.heads.backward(self.concat.backward(self.output.backward(delta)))

    return module(Heads, None, gradient)


def built(kind=Head, count=None):
    """Return several heads that are made of a given kind of one."""

    def init(self, d_model, heads, rng=None, causal=False, rotary=False):
        sizes = d_model, d_model // heads, rng, causal, rotary
        self.heads, self.concat = (
            Fork(*[kind(*sizes) for _ in range(count or heads)]),
            Concat(),
        )
        self.output = layers.Linear(d_model, d_model, rng)

    return type("Answer", (Heads,), {"__init__": init})


def normed(name="module"):
    """Return the norm of a sum, the layer inside under another name."""

    def init(self, inner, d_model):
        setattr(self, name, inner)

    def compute(self, x):
        total = x + getattr(self, name).forward(x)
        centred = total - total.mean(-1, keepdims=True)
        self.scale = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        self.y = centred * self.scale
        return self.y

    def gradient(self, delta):
        along = self.y * (delta * self.y).mean(-1, keepdims=True)
        d = self.scale * (delta - delta.mean(-1, keepdims=True) - along)
        return d + getattr(self, name).backward(d)

    members = {"__init__": init, "compute": compute, "gradient": gradient}
    return type("Answer", (Module,), members)


def looks(untrained=3.0, trained=2.0, shape=(2, 5)):
    """Return how far back heads look, a little different from head to head."""
    spread = np.linspace(-0.1, 0.1, int(np.prod(shape))).reshape(shape)
    return {"untrained": untrained + spread, "trained": trained + spread}


def sampler(
    seen=lambda numbers, context: numbers[-context:],
    share=lambda logits, t: layers.softmax(logits / t),
    place=-1,
    draw=lambda rng, p: rng.choice(len(p), p=p),
    result=lambda start, numbers: numbers,
    more=0,
    stop="after",
):
    def answer(model, start, most, rng, end=None, context=7, temperature=1.0):
        numbers = list(start)
        for _ in range(most + more):
            logits = model.forward(np.array(seen(numbers, context)))[place]
            drawn = int(draw(rng, share(logits, temperature)))
            if drawn == end and stop == "before":
                break
            numbers.append(drawn)
            if drawn == end and stop == "after":
                break
            if numbers.count(end) > 1 and stop == "late":
                break
        return result(list(start), numbers)

    return answer


def given(page):
    """Return what the page builds on: its earlier tasks, an array and two decoders."""
    rng = np.random.default_rng(0)
    mine = {"rng": rng, "x": rng.normal(size=(2, 5, 4)), "back": np.arange(7)[::-1]}
    model = decoder.load(corpora_folder() / "checkpoints" / "decoder.safetensors")
    words = model.dictionary.vocabulary
    untrained = decoder.Decoder(words, 0.1 * rng.normal(size=(len(words), 60)))
    mine |= {"model": model, "untrained": untrained, "encode": model.dictionary.encode}
    package = vars(core) | vars(layers) | vars(attention) | vars(decoder)
    return package | page | mine


def product(times):
    def compute(self, a, b):
        self.given = a, b
        return times(a, b)

    def gradient(self, delta):
        a, b = self.given
        return times(delta, swap(b)), times(swap(a), delta)

    return module(attention.DotProduct, compute, gradient)


def by_jacobian():
    """Return the norm of a sum, its whole table of derivatives written out."""

    def gradient(self, delta):
        n, y = delta.shape[-1], self.y
        outer = y[..., :, None] * y[..., None, :] / n
        jacobian = self.scale[..., None] * (np.eye(n) - 1 / n - outer)
        d = (delta[..., None, :] @ jacobian)[..., 0, :]
        return d + self.module.backward(d)

    return type("Answer", (normed(),), {"gradient": gradient})


WRONG = {
    "dot_product": {
        "return 2 arrays from gradient": module(attention.DotProduct, None, lambda s, d: d),
        "pass the class itself": attention.DotProduct(),
        "compute stopped with": module(attention.DotProduct, lambda self, a, b: a @ b[1:]),
        "gradient stopped with": module(
            attention.DotProduct, None, lambda self, d: d @ d[1:]
        ),
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
    "heads": {
        "with rotary=True nothing is turned": built(head("")),
        "the values are turned too": built(head("qkv")),
        "the keys are not turned": built(head("q")),
        "the key's layer": built(head(value=lambda self, q, k, v: self.key.forward(v))),
        "all three come from the query's input": built(head(pick=(0, 0, 0))),
        "not turned back": built(head_back(turned=False)),
        "weight of query are still 0": built(head_back(linear=False)),
        "one head: return 3 arrays from gradient": built(head_back(summed=True)),
        "the last linear layer is missing": many(last=False),
        "in the opposite order": many(order=-1),
        "not summed over the heads": many_back(lambda copies: copies[-1]),
        "are averaged": many_back(lambda copies: sum(copies) / len(copies)),
        "got no gradient": many_back(output=False),
        "with several; with heads=1": tupleless(),
        "pass the class itself": Heads(6, 3),
        "three branches": built(count=2),
    },
    "norm": {"keep the layer": normed(name="inside")},
    "control": {
        "a dict with the keys": [{}, {"trained": looks()["trained"]}, 3.0],
        "one number for each head of each layer": [
            looks(shape=(5,)),
            looks(shape=(4, 2, 5)),
            {"untrained": 3.0, "trained": 2.0},
        ],
        "these are the weights": looks(shape=(2, 5, 7)),
        "nobody looks further back than 6": [looks(7), looks(3, -1)],
        "both are the same": looks(2.9, 2.9),
        "about half as far": looks(1.5, 1.0),
        "would be 3": [looks(2.0, 1.4), looks(4.0, 2.0)],
        "no nearer than the untrained": [looks(3.0, 3.2), looks(2.9, 2.85)],
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
        "the end mark has no effect": sampler(stop="never"),
        "the end mark belongs to the result": sampler(stop="before"),
        "and the text goes on": sampler(stop="late"),
    },
}

RIGHT = {
    "dot_product": [
        product(np.matmul),
        product(lambda a, b: np.einsum("...ij,...jk->...ik", a, b)),
    ],
    "attention": [Attention, attend()],
    "control": [looks(), looks(3.2, 1.3)],
    "norm": [normed(), by_jacobian()],
    "heads": [Heads, built()],
    "sampling": [sampler()],
}

TYPED = {"control": [looks(3.1, 2.2)]}
