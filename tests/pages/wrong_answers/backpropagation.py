"""What goes wrong in the exercises of *backpropagation*, diagnosis → answer."""

import numpy as np

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
    """Return attention with another forward pass; by default the right one.

    ``scores`` and ``weights`` : functions that change the scores before the mask, and the
    weights after the softmax. ``keep`` : whether the weights are kept. ``order`` : which
    inputs are taken for query, key and value. ``hide`` : whether later tokens are hidden
    "before" the softmax, "after" it, or "never".
    """

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
    """The right way back of attention, but for the mask's."""
    d_weights, d_value = self.mix.backward(delta)
    d_scores = self.scale.backward(self.softmax.backward(d_weights))
    d_query, d_key = self.product.backward(d_scores)
    return d_query, swap(d_key), d_value


def attention_back(change):
    """Return attention with another way back from the scores.

    ``change`` : from the module and the gradients of the scaled scores and of the value to
    those of query, key and value.
    """

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


def untransposed_value(self, delta):
    return *Attention.gradient(self, delta)[:2], self.weights @ delta


def square_only(self, delta):
    back = Attention.gradient(self, delta)
    square = self.weights.shape[-1] == self.weights.shape[-2]
    return back if square else tuple(0 * each for each in back)


def unsoftened(self, delta):
    d_scores, d_v = self.mix.backward(delta)
    d_q, d_k = self.product.backward(self.scale.backward(d_scores))
    return d_q, swap(d_k), d_v


def softened(change):
    """Return attention with another way back through its softmax.

    ``change`` : from the weights and their gradient to the gradient of the scores.
    """

    def gradient(self, delta):
        d_w, d_v = self.mix.backward(delta)
        d_q, d_k = self.product.backward(self.scale.backward(change(self.weights, d_w)))
        return d_q, swap(d_k), d_v

    return module(Attention, None, gradient)


def hidden_past():
    """Return attention whose mask hides the tokens before, not those after."""

    def init(self, d_head, causal=False):
        Attention.__init__(self, d_head, causal)
        if causal:
            self.mask.compute = lambda s: np.where(np.tri(s.shape[-1]).T, s, -np.inf)

    return type("Answer", (Attention,), {"__init__": init})


Head = attention.ProjectedAttention


def head(turn="qk", value=lambda self, q, k, v: self.value.forward(v), pick=(0, 1, 2)):
    """Return one head with other passes; by default the right one.

    ``turn`` : which of query, key and value are rotated, their first letters. ``value`` :
    from the head and its three inputs to the values. ``pick`` : which inputs are taken for
    query, key and value.
    """

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
    """Return one head with another backward pass; by default the right one.

    ``turned`` : whether the gradients of query and key are rotated back; "query": only the
    first; "on": the first is rotated once more, and the second not. ``linear`` : whether
    the linear layers collect gradients. ``summed`` : whether one array is returned.
    """

    def gradient(self, delta):
        d_q, d_k, d_v = self.attention.backward(delta)
        if turned == "on":
            d_q = self.turn_query.forward(d_q)
        elif turned:
            d_q = self.turn_query.backward(d_q)
        if turned is True:
            d_k = self.turn_key.backward(d_k)
        named = zip((d_q, d_k, d_v), (self.query, self.key, self.value), strict=True)
        if not linear:
            return tuple(d @ layer.matrix.T for d, layer in named)
        back = tuple(layer.backward(d) for d, layer in named)
        return sum(back[:1]) if summed else back

    return module(Head, None, gradient)


Heads = attention.MultiHeadAttention


def many(last=True, order=1):
    """Return several heads with another forward pass; by default the right one.

    ``last`` : whether the last linear layer is used. ``order`` : -1 joins the heads in the
    opposite order.
    """

    def compute(self, *inputs):
        outputs = self.heads.forward(*inputs)[::order]
        joined = self.concat.forward(*outputs)
        out = self.output.forward(joined)
        return out if last else joined

    return module(Heads, compute)


def many_back(reduce=None, output=True):
    """Return several heads with another backward pass; by default the right one.

    ``reduce`` : from the gradients that the heads have for an input to one gradient; None,
    their sum. ``output`` : whether the last linear layer collects gradients.
    """

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


def spoilt(base, change):
    """Return a module whose parameters' gradients are changed in the end."""

    def gradient(self, delta):
        back = base.gradient(self, delta)
        change(self)
        return back

    return module(base, None, gradient)


def without_bias(self):
    self.query.bias.grad[...] = 0


def fivefold(self):
    self.output.weight.grad *= 5


def first_kept():
    """Return attention whose way back has the weights of its first way there."""

    def compute(self, *inputs):
        output = Attention.compute(self, *inputs)
        self.first = getattr(self, "first", self.weights)
        return output

    def gradient(self, delta):
        return *Attention.gradient(self, delta)[:2], swap(self.first) @ delta

    return module(Attention, compute, gradient)


def negative_value(self, d_s, d_v):
    d_q, d_k = self.product.backward(self.scale.backward(d_s))
    return d_q, swap(d_k), -d_v


def norm_back(mean=1, along=1, scaled=True, calls=1, sign=1):
    """Return the norm of a sum with another gradient; by default the right one.

    ``mean`` and ``along`` : how often the two terms are taken off, the gradient's mean and
    its part along y: 0 leaves one out; 4, with vectors of 4 numbers, makes a sum of a mean.
    ``scaled`` : whether the gradient is divided by the standard deviation. ``calls`` : how
    often the module inside is called for its gradient; with 0 it collects none. ``sign`` :
    of what comes through that module.
    """

    def gradient(self, delta):
        y = self.y * (delta * self.y).mean(-1, keepdims=True)
        d = delta - mean * delta.mean(-1, keepdims=True) - along * y
        d = self.scale * d if scaled else d
        through = [self.module.backward(d) for _ in range(calls)]
        return d + sign * (through[0] if calls else d @ self.module.matrix.T)

    return type("Answer", (normed(),), {"gradient": gradient})


def delta_inside():
    """Return the norm of a sum whose module inside is handed delta itself."""

    def gradient(self, delta):
        through = normed().gradient(self, delta)
        passed = self.scale * (
            delta
            - delta.mean(-1, keepdims=True)
            - self.y * (delta * self.y).mean(-1, keepdims=True)
        )
        inside = through - passed
        return through - inside + self.module.backward(delta)

    return type("Answer", (normed(),), {"gradient": gradient})


def built(kind=Head, count=None, hidden=True, turned=True):
    """Return several heads that are made of a given kind of one.

    ``count`` : how many there are; None, as many as are asked for. ``hidden`` and
    ``turned`` : whether ``causal`` and ``rotary`` are heeded.
    """

    def init(self, d_model, heads, rng=None, causal=False, rotary=False):
        sizes = d_model, d_model // heads, rng, causal and hidden, rotary and turned
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


def descend(
    turn=1.0,
    moves=(1, 1, 1),
    keep=0,
    scale=0.5,
    more=0,
    late=False,
    in_place=False,
    kind=list,
):
    """Return steps of gradient descent, written without modules; by default right ones.

    ``turn`` : what steps are multiplied by. ``moves`` : what those of Q, K and V are
    multiplied by, 0 or 1. ``keep`` : the share of earlier gradients that is still in.
    ``scale`` : of the scores. ``more`` : how many steps too many. ``late`` : whether losses
    are measured after the steps. ``in_place`` : whether the arrays given are changed.
    ``kind`` : what makes the returned losses of a list of them.
    """

    def answer(Q, K, V, target, rate, steps):
        parts, sums, losses = [Q, K, V], [0, 0, 0], []

        def look():
            weights = layers.softmax(parts[0] @ parts[1].T * scale)
            return weights, weights @ parts[2]

        for _ in range(steps + more):
            weights, out = look()
            losses.append(((out - target) ** 2).mean())
            d_out = 2 * (out - target) / target.size
            d_w = d_out @ parts[2].T
            d_s = scale * weights * (d_w - (weights * d_w).sum(-1, keepdims=True))
            slopes = d_s @ parts[1], d_s.T @ parts[0], weights.T @ d_out
            sums = [keep * old + new for old, new in zip(sums, slopes, strict=True)]
            if in_place:
                for part, slope in zip(parts, slopes, strict=True):
                    part -= rate * slope
            else:
                both = zip(parts, moves, sums, strict=True)
                parts = [part - turn * rate * factor * d for part, factor, d in both]
        if late:
            losses = [*losses[1:], ((look()[1] - target) ** 2).mean()]
        return *parts, kind(losses)

    return answer


def in_turn(Q, K, V, target, rate, steps):
    """Return steps that move one of the three, and only then look again."""
    *parts, losses = Q, K, V, []
    for _ in range(steps):
        for i in range(3):
            moves = [j == i for j in range(3)]
            *parts, (loss,) = descend(moves=moves)(*parts, target, rate, 1)
            if i == 0:
                losses.append(loss)
    return *parts, losses


class L2Loss(Module):
    """The page's loss, the mean of the squared differences."""

    def compute(self, x, target):
        self.difference = x - target
        return (self.difference**2).mean()

    def gradient(self, delta):
        return delta * 2 * self.difference / self.difference.size


def given(page):
    """Return what the page builds on: its earlier tasks, and an array."""
    rng = np.random.default_rng(0)
    mine = {"rng": rng, "x": rng.normal(size=(2, 5, 4)), "L2Loss": L2Loss}
    package = vars(core) | vars(layers) | vars(attention) | vars(decoder)
    return package | page | mine


def past_the_norm():
    """Return the norm of a sum whose path leads past the norm on the way back."""

    def gradient(self, delta):
        through = normed().gradient(self, delta)
        y = self.y * (delta * self.y).mean(-1, keepdims=True)
        return delta + through - self.scale * (delta - delta.mean(-1, keepdims=True) - y)

    return type("Answer", (normed(),), {"gradient": gradient})


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
    "attention": {
        "the scale is missing": attend(lambda s: s * np.sqrt(6)),
        "divided by d_head, not its root": attend(lambda s: s / np.sqrt(6)),
        "the softmax is missing": attend(weights=lambda s: s),
        "each column sums to 1": attend(weights=lambda s: swap(layers.softmax(swap(s)))),
        "queries and keys are swapped.": attend(order=(1, 0, 2)),
        "keep the weights in self.weights": attend(keep=False),
        "the query lacks the scale": attention_back(unscaled_query),
        "the gradient of the key lacks the scale": attention_back(unscaled_key),
        "the gradients of query and key are swapped": attention_back(swapped),
        "lacks the transpose's backward pass": attention_back(untransposed),
        "the softmax's own backward pass is missing": module(Attention, None, unsoftened),
        "the row's average is still in": softened(lambda w, d: w * d),
        "only the diagonal": softened(lambda w, d: w * (1 - w) * d),
        "along the columns": softened(
            lambda w, d: w * (d - (w * d).sum(-2, keepdims=True))
        ),
        "the gradient of the value lacks a transpose": module(
            Attention, None, untransposed_value
        ),
        "with 3 queries and 5 keys": module(Attention, None, square_only),
        "the past is hidden": hidden_past(),
        "nothing is hidden": attend(hide="never"),
        "hidden after the softmax": attend(hide="after"),
        "backward, the gradient of the value: ": attention_back(negative_value),
        "was kept before: backward, the gradient of the value: ": first_kept(),
        "return 3 arrays from gradient": attention_back(lambda self, d_s, d_v: (d_s, d_v)),
    },
    "heads": {
        "with rotary=True nothing is turned": built(head("")),
        "the values are turned too": built(head("qkv")),
        "the keys are not turned": built(head("q")),
        "the key's layer": built(head(value=lambda self, q, k, v: self.key.forward(v))),
        "all three come from the query's input": built(head(pick=(0, 0, 0))),
        "of the query is not turned back": built(head_back(turned=False)),
        "of the key is not turned back": built(head_back(turned="query")),
        "is turned on, not back": built(head_back(turned="on")),
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
        "causal=True hides nothing": built(hidden=False),
        "rotary=True turns nothing": built(turned=False),
        "neither hide nor turn": built(hidden=False, turned=False),
        "the weight and the bias of query collected": built(spoilt(Head, without_bias)),
        "the bias of the last linear layer collected": spoilt(Heads, fivefold),
        "one gradient for each input, not a sum": module(
            Heads, None, lambda self, delta: sum(Heads.gradient(self, delta))
        ),
    },
    "norm": {
        "keep the layer": normed(name="inside"),
        "the mean of the gradient is still in": norm_back(mean=0),
        "the second term is missing": norm_back(along=0),
        "both are means": norm_back(mean=4, along=4),
        "the module inside gets delta itself": delta_inside(),
        "comes from the norm, too": past_the_norm(),
        "does not go through the norm": norm_back(mean=0, along=0, scaled=False),
        "collected everything twice": norm_back(calls=2),
        "the layer inside are still 0": norm_back(calls=0),
        "backward, the gradient of the input: ": norm_back(sign=-1),
    },
    "learn": {
        "the loss grows": descend(turn=-1),
        "the gradients of earlier steps are still in": descend(keep=1),
        "queries and keys do not move": descend(moves=(0, 0, 1)),
        "the values do not move": descend(moves=(1, 1, 0)),
        "only the queries move": descend(moves=(1, 0, 0)),
        "over all entries, not the sum": descend(turn=12),
        "the three move in turn": in_turn,
        "the factor 2": descend(turn=0.5),
        "the losses are sums": descend(kind=lambda losses: [12 * loss for loss in losses]),
        "the scale of the scores is missing": descend(scale=1.0),
        "one step too few": descend(more=-1),
        "one step too many": descend(more=1),
        "nothing has moved": descend(turn=0),
        "measured after the steps": descend(late=True),
        "the arrays that were handed in": descend(in_place=True),
        "the losses: ": descend(kind=lambda losses: [0.0 for _ in losses]),
        "return Q, K, V and the list of losses": lambda Q, K, V, target, rate, steps: (
            Q,
            K,
            V,
        ),
    },
}

RIGHT = {
    "attention": [Attention, attend()],
    "learn": [descend(), descend(kind=tuple)],
    "norm": [normed(), by_jacobian()],
    "heads": [Heads, built()],
}

TYPED = {"learn": [(np.eye(4), np.eye(4), np.eye(4), [0.9, 0.4]), 0.01]}
NONSENSE = {
    "learn": [
        lambda Q, K, V, target, rate, steps: (0 * Q, 0 * K, 0 * V, [1.0] * steps),
        lambda Q, K, V, target, rate, steps: (Q, K, V, [0.0] * steps),
        lambda Q, K, V, target, rate, steps: (K, Q, V, [1 / (i + 1) for i in range(steps)]),
    ]
}
