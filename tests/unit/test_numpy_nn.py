"""`lmcourse.numpy_nn` against PyTorch's autograd and finite differences.

The page *backpropagation*, which writes the same code, asserts more: that linked weights
stay one array, that large numbers do not overflow, what is said of a wrong order or shape.
"""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from lmbook.bench import numpy as reference
from lmcourse import positions
from lmcourse.numpy_nn.attention import (
    CausalMask,
    DotProduct,
    MultiHeadAttention,
    ProjectedAttention,
    Rotary,
    ScalarProduct,
    ScaledDotProductAttention,
    Transpose,
)
from lmcourse.numpy_nn.core import (
    Adam,
    Chain,
    Concat,
    Fork,
    Identity,
    Parameter,
    as_tuple,
    gradient_error,
)
from lmcourse.numpy_nn.decoder import (
    Decoder,
    load,
    mark_sentences,
    sample_words,
    save,
    train_decoder,
    verse,
)
from lmcourse.numpy_nn.layers import (
    LayerNorm,
    Linear,
    OneHotDictionary,
    ReLU,
    SkipAddNorm,
    Softmax,
    SoftmaxCrossEntropy,
)

TOLERANCE = 1e-6  # of finite differences


def equal(ours, theirs, name=""):
    """Hold two float64 results together, to 1e-9 of the largest magnitude."""
    largest = max(1.0, np.abs(theirs).max(initial=0))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * largest, err_msg=name)


def check(module, inputs, theirs, rng):
    """Compare outputs, input gradients and parameter gradients with autograd's.

    ``theirs`` takes the inputs and the parameters (name → tensor) as tensors.
    """
    named = {n: q for n, q in module.parameters().items() if q.trainable}
    for parameter in named.values():  # not only zeros and ones
        parameter.value += 0.1 * rng.normal(size=parameter.value.shape)
    outputs = as_tuple(module.forward(*inputs))
    deltas = tuple(rng.normal(size=np.shape(output)) for output in outputs)
    back = as_tuple(module.backward(deltas if len(deltas) > 1 else deltas[0]))
    p = {name: torch.tensor(q.value, requires_grad=True) for name, q in named.items()}
    tensors = [torch.tensor(x) for x in inputs]
    wanted = [x.requires_grad_() for x in tensors if x.dtype.is_floating_point]
    got = as_tuple(theirs(tensors, p))
    for ours, other in zip(outputs, got, strict=True):
        equal(ours, other.detach().numpy())
    sum((o * torch.tensor(d)).sum() for o, d in zip(got, deltas, strict=True)).backward()
    for ours, tensor in zip(back, wanted, strict=False):
        assert ours.shape == tuple(tensor.shape)
        equal(ours, tensor.grad.numpy())
    for name, parameter in named.items():
        equal(parameter.grad, p[name].grad.numpy(), name)
    errors = gradient_error(module, *inputs)
    assert max(errors.values()) < TOLERANCE, errors


def linear(p, start, x):
    return x @ p[f"{start}weight"] + p[f"{start}bias"]


def normed(p, start, x):
    return F.layer_norm(x, x.shape[-1:], p[f"{start}weight"], p[f"{start}bias"])


def linked(d, rng):
    """Use one weight twice, the second time transposed."""
    first = Linear(d, d + 2, rng)
    return Chain(first, Linear(d + 2, d, weight=first.weight, transposed=True))


def torch_linked(x, p):
    w = p["modules.0.weight"]
    return (x[0] @ w + p["modules.0.bias"]) @ w.T + p["modules.1.bias"]


def torch_fork(x, p):
    return x[0], linear(p, "branches.1.", x[0]), x[0].softmax(-1)


def torch_heads(x, p, turn=lambda x: x, **causal):
    outputs = []
    for h in range(3):
        parts = zip(("query", "key", "value"), x, strict=True)
        q, k, v = (linear(p, f"heads.branches.{h}.{name}.", y) for name, y in parts)
        outputs.append(F.scaled_dot_product_attention(turn(q), turn(k), v, **causal))
    return linear(p, "output.", torch.cat(outputs, -1))


# How it is made of a width and a random generator; the axes of its inputs, "#" before those
# of whole numbers; the same in PyTorch.
CASES = {
    "linear": (lambda d, r: Linear(d, 3, r), "td", lambda x, p: linear(p, "", x[0])),
    "linked": (linked, "td", torch_linked),
    "relu": (lambda d, r: ReLU(), "td", lambda x, p: F.relu(x[0])),
    "softmax": (lambda d, r: Softmax(), "td", lambda x, p: x[0].softmax(-1)),
    "cross-entropy": (
        lambda d, r: SoftmaxCrossEntropy(),
        "td #t",
        lambda x, p: F.cross_entropy(x[0].flatten(0, -2), x[1].flatten()),
    ),
    "fork": (lambda d, r: Fork(Identity(), Linear(d, 3, r), Softmax()), "td", torch_fork),
    "concat": (lambda d, r: Concat(), "td tn te", lambda x, p: torch.cat(x, -1)),
    "scalar": (lambda d, r: ScalarProduct(0.3, True), "td", lambda x, p: x[0] * p["scale"]),
    "dot": (lambda d, r: DotProduct(), "td dk", lambda x, p: x[0] @ x[1]),
    "attention": (
        lambda d, r: ScaledDotProductAttention(d),
        "td kd kn",
        lambda x, p: F.scaled_dot_product_attention(*x),
    ),
    "heads": (lambda d, r: MultiHeadAttention(6, 3, r), "t6 k6 k6", torch_heads),
    "causal rotary heads": (
        lambda d, r: MultiHeadAttention(6, 3, r, causal=True, rotary=True),
        "t6 t6 t6",
        lambda x, p: torch_heads(x, p, positions.rotate, is_causal=True),
    ),
    "norm": (lambda d, r: LayerNorm(d + 3), "tn", lambda x, p: normed(p, "", x[0])),
    "skip-add-norm": (
        lambda d, r: SkipAddNorm(Linear(d + 3, d + 3, r), d + 3),
        "tn",
        lambda x, p: normed(p, "norm.", x[0] + linear(p, "module.", x[0])),
    ),
    "rotary": (lambda d, r: Rotary(2 * d), "te", lambda x, p: positions.rotate(x[0])),
    "dictionary": (
        lambda d, r: OneHotDictionary(range(d), Parameter(r.normal(size=(d, 3)))),
        "#t",
        lambda x, p: F.embedding(x[0], p["table"]),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("lead", "t", "k", "d"), [((), 5, 3, 4), ((3,), 1, 6, 1), ((2, 3), 4, 5, 2)], ids=str
)
def test_equals_autograd_and_finite_differences(name, lead, t, k, d):
    rng, (make, axes, theirs) = np.random.default_rng(0), CASES[name]
    sizes = {"t": t, "k": k, "d": d, "n": d + 3, "e": 2 * d, "6": 6}
    inputs = []
    for letters in axes.split():
        shape = (*lead, *(sizes[axis] for axis in letters.strip("#")))
        whole = letters.startswith("#")
        inputs.append(rng.integers(d, size=shape) if whole else rng.normal(size=shape))
    check(make(d, rng), inputs, theirs, rng)


def small_decoder(vocab_size=11, d_model=20):
    vectors = np.random.default_rng(3).normal(size=(vocab_size, d_model))
    return Decoder([f"w{i}" for i in range(vocab_size)], vectors, d_ff=9)


def test_adam_equals_pytorchs():
    rng = np.random.default_rng(5)
    ours, frozen = Parameter(rng.normal(size=(3, 4))), Parameter(2.0, trainable=False)
    theirs = torch.tensor(ours.value.copy(), requires_grad=True)
    adam, other = Adam([ours, frozen], 0.02), torch.optim.Adam([theirs], lr=0.02)
    for _ in range(7):
        gradient = rng.normal(size=(3, 4))
        ours.grad += gradient
        frozen.grad += 1
        theirs.grad = torch.tensor(gradient)
        adam.step()
        other.step()
        np.testing.assert_allclose(ours.value, theirs.detach(), rtol=0, atol=1e-12)
        assert not ours.grad.any()
        assert not frozen.grad.any()
    assert frozen.value == 2.0


def test_gradients_add_up_over_passes():
    module, rng = Linear(3, 2, np.random.default_rng(7)), np.random.default_rng(8)
    x, delta = rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
    module.forward(x)
    module.backward(delta)
    once = module.weight.grad.copy()
    module.backward(delta)
    equal(module.weight.grad, 2 * once)


MISFITS = [
    (Linear(3, 2), [(5, 4)]),
    (LayerNorm(3), [(5, 4)]),
    (Concat(), [(5, 3), (4, 3)]),
    (Transpose(), [(5,)]),
    (DotProduct(), [(5, 3), (2, 3)]),
    (CausalMask(), [(5, 4)]),
    (Rotary(4), [(5, 3)]),
    (ScaledDotProductAttention(3), [(5, 3), (4, 3), (5, 2)]),
    (ProjectedAttention(3, 2), [(5, 3), (4, 2), (4, 3)]),
    (MultiHeadAttention(4, 2), [(5, 4), (3, 4), (2, 4)]),
    (SoftmaxCrossEntropy(), [(5, 3), (4,)]),
]


@pytest.mark.parametrize(("module", "wrong"), MISFITS, ids=lambda x: type(x).__name__)
def test_errors_name_the_module_and_the_shapes(module, wrong):
    with pytest.raises(ValueError, match="does not fit") as caught:
        module.forward(*map(np.zeros, wrong))
    assert str(wrong[-1]) in str(caught.value)
    assert type(module).__name__ in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Linear(3, 2, weight=Linear(2, 3).weight), r"Linear: .* \(2, 3\), not"),
        (lambda: MultiHeadAttention(10, 4), "4 heads of 10"),
        (lambda: MultiHeadAttention(10, 0), "0 heads of 10"),
        (lambda: Rotary(5), "Rotary"),
        (lambda: OneHotDictionary("aba", Parameter(np.eye(3))), "2 different words"),
    ],
)
def test_what_cannot_be_built_says_why(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_training_learns_and_is_repeatable(capsys):
    numbers = np.tile(np.arange(11), 20)
    first, second = small_decoder(), small_decoder()
    losses = train_decoder(first, numbers, 80, batch=8, learning_rate=0.02)
    assert len(losses) == 80
    assert losses[-1] < 0.7 * losses[0]
    assert train_decoder(second, numbers, 80, batch=8, learning_rate=0.02) == losses
    continued = sample_words(first, [0], 5, np.random.default_rng(0), temperature=0.2)
    assert continued == [0, 1, 2, 3, 4, 5]
    assert not capsys.readouterr().out


class Counts:
    """After n words the word n - 2 is certain."""

    def forward(self, numbers):
        self.seen = list(numbers)
        sure = np.where(np.arange(3) == len(numbers) - 2, 0.0, -1e9)
        return np.tile(sure, (len(numbers), 1))


@pytest.mark.parametrize(
    ("start", "new_words", "options", "written", "last_context"),
    [
        ([2, 2], 3, {}, [2, 2, 0, 1, 2], [2, 2, 0, 1]),
        ([2, 2], 3, {"end": 1}, [2, 2, 0, 1], [2, 2, 0]),
        ([1, 2], 2, {"end": 1}, [1, 2, 0, 1], [1, 2, 0]),  # the start's own is no end
        ([2, 2], 3, {"context": 3}, [2, 2, 0, 1, 1], [2, 0, 1]),
    ],
)
def test_sampling_sees_the_context_and_stops_after_the_end(
    start, new_words, options, written, last_context
):
    model = Counts()
    rng = np.random.default_rng(0)
    assert sample_words(model, start, new_words, rng, **options) == written
    assert model.seen == last_context


def test_sentences_and_lines_are_marked_and_put_back():
    poem = "Shall I go?  Not\n\nyet: I\nstay."
    tokens = mark_sentences(poem)
    assert " ".join(tokens) == "<start> shall i go <end> <start> not / yet i / stay <end>"
    assert verse(tokens[5:]) == "Not\nYet I\nStay"
    assert verse(tokens[:5]) == "Shall I go"
    assert mark_sentences("... !") == []


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_saved_and_loaded_is_the_same_to_the_last_bit(dtype, tmp_path):
    model, path = small_decoder(), tmp_path / "decoder.safetensors"
    train_decoder(model, np.arange(60) % 11, 5, batch=4)
    save(model, path, dtype)
    again = load(path)
    named = again.parameters()
    for name, parameter in model.parameters().items():
        want = parameter.value.astype(dtype)
        np.testing.assert_array_equal(named[name].value, want, err_msg=name)
    assert again.dictionary.vocabulary == model.dictionary.vocabulary
    assert np.shares_memory(again.output.matrix, again.dictionary.table.value)
    numbers = sum(p.value.size for p in named.values())
    assert path.stat().st_size < np.dtype(dtype).itemsize * numbers + 12_000


def changed(record=None, **change):
    """Return what `save` writes of a small decoder, some of it changed or left out."""

    def write(path):
        save(small_decoder(), path)
        arrays = {**load_file(path), **change}
        with safe_open(path, "np") as file:
            metadata = {"record": record} if record else file.metadata()
        save_file(arrays, path, metadata)

    return write


def claims(**sizes):
    record = {"vocabulary": [f"w{i}" for i in range(11)]}
    record["sizes"] = {"heads": 5, "layers": 2, "d_ff": 9} | sizes
    return changed(record=json.dumps(record))


def half(path):
    save(small_decoder(), path)
    path.write_bytes(path.read_bytes()[:2000])


NO_DECODER = {
    "another program's": (lambda path: save_file({"weight": np.zeros(3)}, path), "record"),
    "no safetensors": (lambda path: path.write_bytes(b"Shall I compare thee"), "header"),
    "half": (half, "header|Metadata"),
    "another shape": (changed(**{"output.bias": np.zeros(3)}), "other parameters"),
    "not finite": (changed(**{"output.bias": np.full(11, np.nan)}), "not finite"),
    "its record is a list": (changed(record="[]"), "list indices"),
    "too many layers claimed": (claims(layers=10**9), "too few parameters"),
    "too wide a network claimed": (claims(d_ff=10**9), "too few parameters"),
}


@pytest.mark.parametrize("kind", NO_DECODER)
def test_a_file_that_holds_no_decoder_is_refused(kind, tmp_path):
    path = tmp_path / "decoder.safetensors"
    write, message = NO_DECODER[kind]
    write(path)
    with pytest.raises(
        ValueError, match=f"decoder.safetensors holds no decoder: .*{message}"
    ):
        load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere.safetensors")


def test_finite_differences_leave_no_trace():
    module = Linear(3, 2, np.random.default_rng(0))
    module.weight.grad += 5
    before = module.weight.value.copy()
    gradient_error(module, np.ones((2, 3)))
    assert (module.weight.grad == 5).all()
    np.testing.assert_array_equal(module.weight.value, before)


def test_the_decoders_gradients_are_autograds(capsys):
    """As its benchmark compares them before it takes the time."""
    reference.main(vocab_size=40, batch=2, times=1)
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert summary["difference"] < 1e-9


def test_a_gradient_that_is_no_number_fails_the_benchmark(monkeypatch, capsys):
    def with_nan(*arguments):
        gradients, step = torch_ways(*arguments)
        return lambda: [*gradients()[:-1], np.full_like(gradients()[-1], np.nan)], step

    torch_ways = reference.torch_ways
    monkeypatch.setattr(reference, "torch_ways", with_nan)
    assert reference.main(vocab_size=40, batch=2, times=1) == 1


@pytest.mark.parametrize("module", [Concat(), Fork(Identity())])
def test_the_gradient_of_one_input_is_an_array(module):
    delta = np.ones((2, 3))
    output = module.forward(np.arange(6.0).reshape(2, 3))
    gradient = module.backward((delta,) if isinstance(output, tuple) else delta)
    assert isinstance(gradient, np.ndarray)
    assert np.array_equal(gradient, delta)
