"""One training step of the NumPy decoder against PyTorch.

Both start from the same weights and see the same words; the gradients are compared before
anything is timed. On the CPU, one thread.
"""

import timeit

import numpy as np
import torch
import torch.nn.functional as F
from threadpoolctl import threadpool_limits

from lmbook.bench import report
from lmcourse.numpy_nn.core import Adam
from lmcourse.numpy_nn.decoder import Decoder
from lmcourse.numpy_nn.layers import SoftmaxCrossEntropy
from lmcourse.positions import rotate

D_MODEL = 60  # numbers in a word's vector
CONTEXT = 7  # words that the decoder reads


def torch_parameters(model):
    """Return the parameters of a model as tensors, by name.

    Parameters
    ----------
    model : lmcourse.numpy_nn.decoder.Decoder

    Returns
    -------
    dict of str to Tensor
        Name in the NumPy decoder, such as "dictionary.table" → copy of the value. Those
        that are trained require a gradient.
    """
    named = model.parameters().items()
    return {name: torch.tensor(p.value, requires_grad=p.trainable) for name, p in named}


def torch_loss(parameters, heads, layers, numbers, targets):
    """Compute a decoder's loss in PyTorch.

    Parameters
    ----------
    parameters : dict of str to Tensor
        By the names that they have in the NumPy decoder, such as "dictionary.table".
    heads, layers : int
        How many the decoder has.
    numbers : int64 Tensor of shape (batch, tokens)
        Words by their number.
    targets : int64 Tensor of shape (batch, tokens)
        The word that follows each.

    Returns
    -------
    Tensor
        The mean loss, in nats.
    """
    x = F.embedding(numbers, parameters["dictionary.table"])  # (batch, tokens, d_model)
    for i in range(layers):
        x = _block(parameters, f"blocks.modules.{i}.", heads, x)
    logits = x @ parameters["dictionary.table"].T + parameters["output.bias"]
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def _block(p, block, heads, x):
    """Compute a decoder's block: causal self-attention and a feed-forward network.

    Queries and keys are rotated by their positions, and a norm comes after each of the two,
    on the sum with what went in.

    Parameters
    ----------
    p : dict of str to Tensor
        The decoder's parameters, by their names in the NumPy decoder.
    block : str
        What the names of this block's parameters begin with: "blocks.modules.0.".
    heads : int
        How many the attention has.
    x : Tensor of shape (batch, tokens, d_model)

    Returns
    -------
    Tensor of shape (batch, tokens, d_model)
    """

    def project(name):
        """Return queries, keys or values of all heads, (batch, heads, tokens, d_head).

        ``name`` is "query", "key" or "value".
        """
        names = [f"{block}attention.heads.branches.{h}.{name}." for h in range(heads)]
        weight = torch.cat([p[name + "weight"] for name in names], 1)
        bias = torch.cat([p[name + "bias"] for name in names])
        return (x @ weight + bias).unflatten(-1, (heads, -1)).transpose(1, 2)

    def linear(name, x):
        """Return x mapped by one of the block's linear layers.

        ``name`` : such as "attention.output"; ``x`` : Tensor (..., d_in). Returns (...,
        d_out).
        """
        return x @ p[f"{block}{name}.weight"] + p[f"{block}{name}.bias"]

    def norm(name, x):
        """Return x normalised by one of the block's norms.

        ``name`` : "norm_1" or "norm_2"; ``x`` : Tensor (..., d_model), as is what is
        returned.
        """
        weight, bias = p[f"{block}{name}.weight"], p[f"{block}{name}.bias"]
        return F.layer_norm(x, x.shape[-1:], weight, bias)

    query, key, value = (project(name) for name in ("query", "key", "value"))
    turned = rotate(query), rotate(key)
    mixed = F.scaled_dot_product_attention(*turned, value, is_causal=True)
    x = norm("norm_1", x + linear("attention.output", mixed.transpose(1, 2).flatten(2)))
    hidden = F.relu(linear("feed_forward.up", x))
    return norm("norm_2", x + linear("feed_forward.down", hidden))


def numpy_ways(model, numbers, targets):
    """Return the two halves of a training step in NumPy.

    Parameters
    ----------
    model : lmcourse.numpy_nn.decoder.Decoder
        Changed by each step.
    numbers, targets : int array of shape (batch, tokens)
        Words by their number, and the word that follows each.

    Returns
    -------
    gradients : callable
        Without arguments: runs forward and backward; returns the gradients of all trained
        parameters, a list of arrays in the order of ``model.parameters()``. They are the
        model's own arrays, and each call adds to them until ``step`` is called.
    step : callable
        Without arguments: takes a step with Adam, and sets the gradients to zero.
    """
    parameters = list(model.parameters().values())
    loss = SoftmaxCrossEntropy()
    adam = Adam(parameters)

    def gradients():
        """Run forward and backward; return the gradients of all trained parameters."""
        loss.forward(model.forward(numbers), targets)
        model.backward(loss.backward(1.0))
        return [p.grad for p in parameters if p.trainable]

    return gradients, adam.step


def torch_ways(parameters, sizes, numbers, targets):
    """Return the two halves of a training step in PyTorch.

    Parameters
    ----------
    parameters : dict of str to Tensor
        By the names that they have in the NumPy decoder, such as "dictionary.table".
        Changed by each step.
    sizes : dict
        Has ``heads`` and ``layers``.
    numbers, targets : int array of shape (batch, tokens)
        Words by their number, and the word that follows each.

    Returns
    -------
    gradients : callable
        Without arguments: sets the gradients to zero, runs forward and backward; returns
        the gradients of all trained parameters, a list of arrays in the order of
        ``parameters``.
    step : callable
        Without arguments: takes a step with Adam.
    """
    trained = [p for p in parameters.values() if p.requires_grad]
    adam = torch.optim.Adam(trained)
    numbers, targets = torch.tensor(numbers), torch.tensor(targets)

    def gradients():
        """Run forward and backward; return the gradients of all trained parameters."""
        adam.zero_grad()
        loss = torch_loss(parameters, sizes["heads"], sizes["layers"], numbers, targets)
        loss.backward()
        return [p.grad.numpy() for p in trained]

    return gradients, adam.step


def best_seconds(gradients, step, times):
    """Return the seconds of the fastest of a few training steps.

    The fastest, since another program can only make a step slower.

    Parameters
    ----------
    gradients, step : callable
        What a step calls, one after the other.
    times : int
        How many steps are timed.
    """
    return min(timeit.repeat(lambda: (gradients(), step()), number=1, repeat=times))


def main(*, vocab_size: int = 3193, batch: int = 32, times: int = 5) -> int:
    """Time a training step of the same decoder in NumPy and in PyTorch.

    It prints a table, the milliseconds of a step in each, and one line of JSON. The decoder
    is like that of the page *Backpropagation*: vectors of 60 numbers, and texts of 7 words,
    which here are random.

    Parameters
    ----------
    vocab_size : int
        Of the decoder; by default about as many words as the sonnets have.
    batch : int
        How many texts a step is made on.
    times : int
        How many steps are timed; the fastest counts.

    Returns
    -------
    int
        The exit status: 1 if the gradients differ by more than 1e-6, else 0.
    """
    rng = np.random.default_rng(0)
    vocabulary = [str(i) for i in range(vocab_size)]
    vectors = rng.normal(size=(vocab_size, D_MODEL)) / np.sqrt(D_MODEL)
    numbers = rng.integers(vocab_size, size=(batch, CONTEXT + 1))
    data = numbers[:, :-1], numbers[:, 1:]  # the words, and the one that follows each
    torch.set_num_threads(1)
    model = Decoder(vocabulary, vectors)
    ways = {
        "numpy": numpy_ways(model, *data),
        "torch": torch_ways(torch_parameters(model), model.sizes, *data),
    }
    with threadpool_limits(1):
        pairs = zip(*(gradients() for gradients, _ in ways.values()), strict=True)
        # Unlike Python's, this `max` is NaN if one of the gradients holds a NaN.
        difference = float(np.max([np.abs(a - b).max(initial=0) for a, b in pairs]))
        best = {way: best_seconds(*halves, times) for way, halves in ways.items()}
    rows = [{"way": way, "ms_a_step": 1000 * taken} for way, taken in best.items()]
    summary = {"times_slower_than_torch": best["numpy"] / best["torch"]}
    report(rows, {"benchmark": "numpy", **summary, "difference": difference})
    return int(not difference <= 1e-6)  # of NaN, too, this is 1
