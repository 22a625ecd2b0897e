"""One training step of the NumPy decoder against PyTorch, and against loops over rows.

The three start from the same weights and see the same words; the gradients are compared
before anything is timed. The loops are this file's: the same modules, one row at a time.
On the CPU, one thread.
"""

import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F
from threadpoolctl import threadpool_limits

from lmbook.bench import report
from lmcourse.numpy_nn import (
    Adam,
    Decoder,
    DotProduct,
    LayerNorm,
    Linear,
    OneHotDictionary,
    ReLU,
    Softmax,
    SoftmaxCrossEntropy,
)
from lmcourse.numpy_nn.layers import rows

__all__ = ["LOOPS", "looped", "main", "torch_loss", "torch_parameters"]


def _each(function, *arrays):
    """Apply a function row by row; return an array with as many rows."""
    return np.array([function(*each) for each in zip(*arrays, strict=True)])


class RowLinear(Linear):
    def compute(self, x):
        self.x = x
        made = _each(lambda row: row @ self.matrix + self.bias.value, rows(x))
        return made.reshape(*x.shape[:-1], -1)

    def gradient(self, delta):
        for x, d in zip(rows(self.x), rows(delta), strict=True):
            self.weight.grad += np.outer(d, x) if self.transposed else np.outer(x, d)
            self.bias.grad += d
        return _each(lambda d: self.matrix @ d, rows(delta)).reshape(self.x.shape)


class RowReLU(ReLU):
    def compute(self, x):
        self.positive = x > 0
        return _each(lambda row: np.maximum(row, 0), rows(x)).reshape(x.shape)

    def gradient(self, delta):
        kept = _each(lambda d, on: d * on, rows(delta), rows(self.positive))
        return kept.reshape(delta.shape)


class RowSoftmax(Softmax):
    def compute(self, x):
        exps = _each(lambda row: np.exp(row - row.max()), rows(x))
        self.y = _each(lambda row: row / row.sum(), exps).reshape(x.shape)
        return self.y

    def gradient(self, delta):
        back = _each(lambda d, y: y * (d - d @ y), rows(delta), rows(self.y))
        return back.reshape(delta.shape)


class RowLayerNorm(LayerNorm):
    def compute(self, x):
        centred = _each(lambda row: row - row.mean(), rows(x))
        scale = _each(lambda row: 1 / np.sqrt((row @ row) / len(row) + 1e-5), centred)
        self.scale = scale.reshape(*x.shape[:-1], 1)
        self.y = _each(lambda row, s: row * s, centred, scale).reshape(x.shape)
        return self.y * self.weight.value + self.bias.value

    def gradient(self, delta):
        back = []
        triples = zip(rows(delta), rows(self.y), rows(self.scale), strict=True)
        for d, y, scale in triples:
            self.weight.grad += d * y
            self.bias.grad += d
            d = d * self.weight.value
            back.append(scale * (d - d.mean() - y * (d * y).mean()))
        return np.array(back).reshape(delta.shape)


class RowDotProduct(DotProduct):
    def compute(self, a, b):
        self.a, self.b = a, b
        pairs = zip(a, b, strict=True)
        return np.array([[row @ right for row in left] for left, right in pairs])

    def gradient(self, delta):
        d_a, d_b = np.empty_like(self.a), np.zeros_like(self.b)
        for one in range(len(delta)):
            for i, d in enumerate(delta[one]):
                d_a[one, i] = self.b[one] @ d
                d_b[one] += np.outer(self.a[one, i], d)
        return d_a, d_b


class RowDictionary(OneHotDictionary):
    def compute(self, numbers):
        self.one_hot_rows = self.one_hot(numbers).toarray()
        made = _each(lambda row: row @ self.table.value, self.one_hot_rows)
        return made.reshape(*numbers.shape, -1)

    def gradient(self, delta):
        for row, d in zip(self.one_hot_rows, rows(delta), strict=True):
            self.table.grad += np.outer(row, d)


class RowLoss(SoftmaxCrossEntropy):
    def compute(self, logits, targets):
        self.targets, self.logits_shape = np.ravel(targets), logits.shape
        exps = _each(lambda row: np.exp(row - row.max()), rows(logits))
        self.p = _each(lambda row: row / row.sum(), exps)
        return _each(lambda p, right: -np.log(p[right]), self.p, self.targets).mean()

    def gradient(self, delta=1.0):
        d = self.p.copy()
        for row, right in zip(d, self.targets, strict=True):
            row[right] -= 1
            row *= delta / len(d)
        return d.reshape(self.logits_shape)


LOOPS = {
    Linear: RowLinear,
    ReLU: RowReLU,
    Softmax: RowSoftmax,
    LayerNorm: RowLayerNorm,
    DotProduct: RowDotProduct,
    OneHotDictionary: RowDictionary,
}


def looped(module):
    """Turn a model's modules into those of this file, in place; return it."""
    module.__class__ = LOOPS.get(type(module), type(module))
    for _, part in module.parts():
        if hasattr(part, "compute"):
            looped(part)
    return module


def torch_parameters(model):
    """Return a decoder's parameters as tensors that want a gradient, by name."""
    named = model.parameters().items()
    return {name: torch.tensor(p.value, requires_grad=p.trainable) for name, p in named}


def _turned(x):
    """Rotary positions on (batch, heads, tokens, d_head), as complex numbers."""
    tokens, d_head = x.shape[-2:]
    speed = 10000.0 ** (-torch.arange(0, d_head, 2, dtype=x.dtype) / d_head)
    angle = torch.arange(tokens, dtype=x.dtype)[:, None] * speed
    turn = torch.polar(torch.ones_like(angle), angle)
    plane = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(plane * turn).flatten(-2)


def torch_loss(parameters, heads, layers, numbers, targets):
    """Compute a decoder's loss in PyTorch, from its parameters by name."""
    x = F.embedding(numbers, parameters["dictionary.table"])  # (batch, tokens, d_model)
    for i in range(layers):
        x = _block(parameters, f"blocks.modules.{i}.", heads, x)
    logits = x @ parameters["dictionary.table"].T + parameters["output.bias"]
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def _block(p, block, heads, x):
    """Compute a block: self-attention and a feed-forward network, a norm after each."""

    def project(name):
        names = [f"{block}attention.heads.branches.{h}.{name}." for h in range(heads)]
        weight = torch.cat([p[name + "weight"] for name in names], 1)
        bias = torch.cat([p[name + "bias"] for name in names])
        return (x @ weight + bias).unflatten(-1, (heads, -1)).transpose(1, 2)

    def linear(name, x):
        return x @ p[f"{block}{name}.weight"] + p[f"{block}{name}.bias"]

    def norm(name, x):
        weight, bias = p[f"{block}{name}.weight"], p[f"{block}{name}.bias"]
        return F.layer_norm(x, x.shape[-1:], weight, bias)

    query, key, value = (project(name) for name in ("query", "key", "value"))
    query, key = _turned(query), _turned(key)
    mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    x = norm("norm_1", x + linear("attention.output", mixed.transpose(1, 2).flatten(2)))
    hidden = F.relu(linear("feed_forward.up", x))
    return norm("norm_2", x + linear("feed_forward.down", hidden))


def numpy_step(model, loss, numbers, targets):
    """Return a step (forward, backward, Adam), and one that returns the gradients."""
    parameters = list(model.parameters().values())
    adam = Adam(parameters)

    def gradients():
        loss.forward(model.forward(numbers), targets)
        model.backward(loss.backward(1.0))
        return [p.grad for p in parameters if p.trainable]

    def step():
        gradients()
        adam.step()

    def copied():
        kept = [gradient.copy() for gradient in gradients()]
        for parameter in parameters:
            parameter.grad[...] = 0
        return kept

    return step, copied


def torch_step(parameters, sizes, numbers, targets):
    """Return the same two in PyTorch."""
    trained = [p for p in parameters.values() if p.requires_grad]
    adam = torch.optim.Adam(trained)
    numbers, targets = torch.tensor(numbers), torch.tensor(targets)

    def gradients():
        adam.zero_grad()
        loss = torch_loss(parameters, sizes["heads"], sizes["layers"], numbers, targets)
        loss.backward()
        return [p.grad.numpy() for p in trained]

    def step():
        gradients()
        adam.step()

    return step, gradients


def seconds(step, times):
    """Return the best time of a few runs; another program can only make them slower."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        step()
        taken.append(time.perf_counter() - start)
    return min(taken)


def main(argv=None) -> int:
    """Print the table and one line of JSON; return 1 if gradients or speed are wrong."""
    parser = argparse.ArgumentParser(prog="python -m lmbook.bench numpy")
    parser.add_argument("--vocab-size", type=int, default=3193)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args(argv)
    rng = np.random.default_rng(0)
    vocabulary = [str(i) for i in range(options.vocab_size)]
    vectors = rng.normal(size=(options.vocab_size, 60)) / np.sqrt(60)
    numbers = rng.integers(options.vocab_size, size=(options.batch, 8))
    data = numbers[:, :-1], numbers[:, 1:]
    torch.set_num_threads(1)
    model, rowwise = Decoder(vocabulary, vectors), looped(Decoder(vocabulary, vectors))
    ways = {
        "numpy": numpy_step(model, SoftmaxCrossEntropy(), *data),
        "torch": torch_step(torch_parameters(model), model.sizes, *data),
        "loops": numpy_step(rowwise, RowLoss(), *data),
    }
    with threadpool_limits(1):
        gradients = {way: compute() for way, (_, compute) in ways.items()}
        difference = max(
            _difference(gradients["numpy"], gradients[way]) for way in ("torch", "loops")
        )
        times = {way: seconds(step, options.times) for way, (step, _) in ways.items()}
    report(
        [{"way": way, "ms_a_step": 1000 * taken} for way, taken in times.items()],
        {
            "benchmark": "numpy",
            "times_faster_than_loops": round(times["loops"] / times["numpy"], 1),
            "times_slower_than_torch": round(times["numpy"] / times["torch"], 2),
            "difference": difference,
        },
    )
    return int(difference > 1e-6 or times["loops"] < 10 * times["numpy"])


def _difference(ours, theirs):
    """Return the largest difference between two lists of gradients."""
    pairs = zip(ours, theirs, strict=True)
    return max(float(np.abs(a - b).max(initial=0)) for a, b in pairs)
