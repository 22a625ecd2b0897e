"""`lmcourse.numpy_nn` against PyTorch's autograd, finite differences and its own claims."""

import json
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
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
    initial_vectors,
    load,
    mark_sentences,
    sample,
    save,
    train,
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
    got = theirs(tensors, p)
    got = got if isinstance(got, tuple) else (got,)
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


def linear(p, name, x):
    return x @ p[f"{name}.weight"] + p[f"{name}.bias"]


def normed(x, p, start=""):
    return F.layer_norm(x, x.shape[-1:], p[start + "weight"], p[start + "bias"])


def simple(make, theirs):
    """Return a case of one input."""

    def case(draw, rng, lead, t, d):
        return make(d, rng), [rng.normal(size=(*lead, t, d))], theirs

    return case


def away_from_zero(draw, rng, lead, t, d):
    x = rng.normal(size=(*lead, t, d))
    return ReLU(), [x + 0.01 * np.sign(x)], lambda x, p: F.relu(x[0])


def dot_product(draw, rng, lead, t, d):
    other = draw(st.integers(1, 4))
    inputs = [rng.normal(size=(*lead, t, d)), rng.normal(size=(*lead, d, other))]
    return DotProduct(), inputs, lambda x, p: x[0] @ x[1]


def concat(draw, rng, lead, t, d):
    widths = [d, *draw(st.lists(st.integers(1, 4), max_size=3))]
    inputs = [rng.normal(size=(*lead, t, width)) for width in widths]
    return Concat(), inputs, lambda x, p: torch.cat(x, -1)


def linked(transposed):
    """Use one weight twice, the second time perhaps transposed."""

    def case(draw, rng, lead, t, d):
        first = Linear(d, d + 2 * transposed, rng)
        second = Linear(d + 2 * transposed, d, weight=first.weight, transposed=transposed)

        def theirs(x, p):
            w = p["modules.0.weight"]
            other = w.T if transposed else w
            return (x[0] @ w + p["modules.0.bias"]) @ other + p["modules.1.bias"]

        return Chain(first, second), [rng.normal(size=(*lead, t, d))], theirs

    return case


def attention(causal):
    def case(draw, rng, lead, t, d):
        keys = t if causal else draw(st.integers(1, 6))
        sizes = [(t, d), (keys, d), (keys, draw(st.integers(1, 4)))]
        inputs = [rng.normal(size=(*lead, *size)) for size in sizes]

        def theirs(x, p):
            return F.scaled_dot_product_attention(*x, is_causal=causal)

        return ScaledDotProductAttention(d, causal), inputs, theirs

    return case


def heads(several, causal, rotary):
    """One head, or three and a linear layer, with and without mask and positions."""

    def case(draw, rng, lead, t, d):
        kind, count = (MultiHeadAttention, 3) if several else (ProjectedAttention, 4)
        keys = t if causal else draw(st.integers(1, 6))
        inputs = [rng.normal(size=(*lead, n, 6)) for n in (t, keys, keys)]
        turn = positions.rotate if rotary else (lambda x: x)

        def one(x, p, name=""):
            names = [f"{name}{part}" for part in ("query", "key", "value")]
            q, k, v = (linear(p, *pair) for pair in zip(names, x, strict=True))
            return F.scaled_dot_product_attention(turn(q), turn(k), v, is_causal=causal)

        def theirs(x, p):
            if not several:
                return one(x, p)
            outputs = [one(x, p, f"heads.branches.{h}.") for h in range(3)]
            return linear(p, "output", torch.cat(outputs, -1))

        return kind(6, count, rng, causal, rotary), inputs, theirs

    return case


def rotary(layout):
    def case(draw, rng, lead, t, d):
        x = rng.normal(size=(*lead, t, 2 * d))
        turn = lambda x, p: positions.rotate(x[0], layout=layout)  # noqa: E731
        return Rotary(2 * d, layout=layout), [x], turn

    return case


def skip_add_norm(draw, rng, lead, t, d):
    d += 3  # so that the variance is not close to zero

    def theirs(x, p):
        return normed(x[0] + linear(p, "module", x[0]), p, "norm.")

    module = SkipAddNorm(Linear(d, d, rng), d)
    return module, [rng.normal(size=(*lead, t, d))], theirs


def layer_norm(draw, rng, lead, t, d):
    x = rng.normal(size=(*lead, t, d + 3))
    return LayerNorm(d + 3), [x], lambda x, p: normed(x[0], p)


def fork(draw, rng, lead, t, d):
    module = Fork(Identity(), Linear(d, 3, rng), Softmax())

    def theirs(x, p):
        return x[0], linear(p, "branches.1", x[0]), x[0].softmax(-1)

    return module, [rng.normal(size=(*lead, t, d))], theirs


def chain(draw, rng, lead, t, d):
    module = Chain(Fork(Linear(d, 3, rng), Identity()), Concat(), Softmax())

    def theirs(x, p):
        return torch.cat([linear(p, "modules.0.branches.0", x[0]), x[0]], -1).softmax(-1)

    return module, [rng.normal(size=(*lead, t, d))], theirs


def dictionary(draw, rng, lead, t, d):
    module = OneHotDictionary("abcde", Parameter(rng.normal(size=(5, d))))
    numbers = rng.integers(5, size=(*lead, t))
    return module, [numbers], lambda x, p: F.embedding(x[0], p["table"])


def cross_entropy(draw, rng, lead, t, d):
    logits, targets = rng.normal(size=(*lead, t, d)), rng.integers(d, size=(*lead, t))

    def theirs(x, p):
        return F.cross_entropy(x[0].reshape(-1, d), x[1].flatten())

    return SoftmaxCrossEntropy(), [logits, targets], theirs


def causal_mask(draw, rng, lead, t, d):
    """Followed by a softmax, since finite differences of infinity are none."""

    def theirs(x, p):
        future = torch.ones(t, t, dtype=torch.bool).triu(1)
        return x[0].masked_fill(future, -torch.inf).softmax(-1)

    return Chain(CausalMask(), Softmax()), [rng.normal(size=(*lead, t, t))], theirs


CASES = {
    "linear": simple(
        lambda d, rng: Linear(d, 3, rng), lambda x, p: x[0] @ p["weight"] + p["bias"]
    ),
    "linked": linked(transposed=False),
    "linked transposed": linked(transposed=True),
    "relu": away_from_zero,
    "softmax": simple(lambda d, rng: Softmax(), lambda x, p: x[0].softmax(-1)),
    "cross-entropy": cross_entropy,
    "chain": chain,
    "fork": fork,
    "concat": concat,
    "transpose": simple(lambda d, rng: Transpose(), lambda x, p: x[0].mT),
    "scalar": simple(
        lambda d, rng: ScalarProduct(0.3, True), lambda x, p: x[0] * p["scale"]
    ),
    "dot": dot_product,
    "mask": causal_mask,
    "attention": attention(causal=False),
    "causal attention": attention(causal=True),
    "head": heads(several=False, causal=False, rotary=False),
    "causal rotary head": heads(several=False, causal=True, rotary=True),
    "heads": heads(several=True, causal=False, rotary=False),
    "causal rotary heads": heads(several=True, causal=True, rotary=True),
    "norm": layer_norm,
    "skip-add-norm": skip_add_norm,
    "rotary interleaved": rotary("interleaved"),
    "rotary half": rotary("half"),
    "dictionary": dictionary,
}


@pytest.mark.parametrize("name", CASES)
@settings(deadline=None, max_examples=8)
@given(
    data=st.data(),
    lead=st.sampled_from([(), (1,), (3,), (2, 3)]),
    tokens=st.integers(1, 5),
    width=st.integers(1, 4),
    seed=st.integers(0, 10**6),
)
def test_equals_autograd_and_finite_differences(name, data, lead, tokens, width, seed):
    rng = np.random.default_rng(seed)
    module, inputs, theirs = CASES[name](data.draw, rng, lead, tokens, width)
    check(module, inputs, theirs, rng)


def small_decoder(vocab_size=11, d_model=20):
    vectors = np.random.default_rng(3).normal(size=(vocab_size, d_model))
    return Decoder([f"w{i}" for i in range(vocab_size)], vectors, d_ff=9)


def test_the_decoder_equals_autograd():
    model, numbers = small_decoder(), np.random.default_rng(4).integers(11, size=(3, 8))
    given, wanted, loss = numbers[:, :-1], numbers[:, 1:], SoftmaxCrossEntropy()
    value = loss.forward(model.forward(given), wanted)
    model.backward(loss.backward(1.0))
    p = reference.torch_parameters(model)
    want = reference.torch_loss(p, 5, 2, torch.tensor(given), torch.tensor(wanted))
    want.backward()
    assert value == pytest.approx(want.item(), abs=1e-10)
    for name, parameter in model.parameters().items():
        if parameter.trainable:
            equal(parameter.grad, p[name].grad.numpy(), name)


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


def test_a_normalised_step_goes_along_the_gradient():
    rng = np.random.default_rng(5)
    values, gradient = rng.normal(size=(2, 3, 4))
    moved, still, frozen = map(Parameter, (values, 1.0, 2.0), (True, True, False))
    adam = Adam([moved, frozen, still], learning_rate=0.5)
    moved.grad += 1e-3 * gradient
    frozen.grad += 1
    adam.step(normalised=True)
    step = moved.value - values
    equal(step, -0.05 * gradient / np.sqrt((gradient**2).mean()))
    assert (frozen.value, still.value, adam.steps) == (2.0, 1.0, 0)
    assert not moved.grad.any()
    assert not adam.mean[0].any()


def test_the_start_of_rotary_positions_is_where_they_begin():
    x = np.random.default_rng(6).normal(size=(9, 6))
    late = Rotary(6, start=4).forward(x[4:])
    np.testing.assert_array_equal(late, Rotary(6).forward(x)[4:])


def test_linked_weights_are_one_array():
    rng = np.random.default_rng(6)
    first = Linear(3, 4, rng)
    second = Linear(4, 3, weight=first.weight, transposed=True)
    assert np.shares_memory(first.matrix, second.matrix)
    assert len(Chain(first, second).parameters()) == 3  # one weight, two biases
    model = small_decoder()
    model.dictionary.table.grad += 1.0
    Adam(model.parameters().values()).step()
    assert np.shares_memory(model.output.matrix, model.dictionary.table.value)


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
    (SkipAddNorm(Linear(3, 3), 3), [(5, 4)]),
    (Chain(Linear(3, 2), ReLU()), [(5, 2)]),
    (Fork(Linear(3, 2), ReLU()), [(5, 2)]),
    (Concat(), [(5, 3), (4, 3)]),
    (Transpose(), [(5,)]),
    (Transpose(), [(5, 3), (2, 3)]),
    (DotProduct(), [(5, 3), (2, 3)]),
    (DotProduct(), [(2, 5, 3), (3, 4)]),
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
    assert any(part in str(caught.value) for part in (type(module).__name__, "Linear"))


def test_a_backward_pass_follows_a_forward_pass_of_its_shape():
    module = Linear(3, 2)
    with pytest.raises(RuntimeError, match=r"^Linear.*before forward"):
        module.backward(np.zeros((5, 2)))
    module.forward(np.zeros((5, 3)))
    with pytest.raises(ValueError, match=r"^Linear.*\(7, 9\), the output"):
        module.backward(np.zeros((7, 9)))


def test_what_cannot_be_built_says_why():
    with pytest.raises(ValueError, match=r"Linear: a weight \(2, 3\), not \(3, 2\)"):
        Linear(3, 2, weight=Linear(2, 3).weight)
    for heads in (4, 0, -2):
        with pytest.raises(ValueError, match=f"{heads} heads of 10"):
            MultiHeadAttention(10, heads)
    with pytest.raises(ValueError, match="Rotary"):
        Rotary(5)
    with pytest.raises(ValueError, match="Rotary"):
        Rotary(4, layout="whole")
    with pytest.raises(ValueError, match="2 different words"):
        OneHotDictionary("aba", Parameter(np.zeros((3, 2))))


def test_large_numbers_do_not_overflow():
    large = np.array([[1e4, -1e4, 0.0]])
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_array_equal(Softmax().forward(large), [[1, 0, 0]])
        assert SoftmaxCrossEntropy().forward(large, np.array([1])) == 2e4
        assert SoftmaxCrossEntropy().forward(large, np.array([0])) == 0
    errors = gradient_error(SoftmaxCrossEntropy(), large, np.array([1]))
    assert errors["input 0"] < TOLERANCE


def test_the_dictionary_is_a_one_hot_product():
    rng = np.random.default_rng(9)
    table = rng.normal(size=(4, 3))
    module = OneHotDictionary(["a", "b", "c", "d"], Parameter(table))
    numbers = module.encode("dada")
    assert module.decode(numbers) == list("dada")
    dense = module.one_hot(numbers).toarray()
    np.testing.assert_array_equal(dense, np.eye(4)[[3, 0, 3, 0]])
    np.testing.assert_array_equal(module.forward(numbers), table[[3, 0, 3, 0]])
    with pytest.raises(KeyError, match="x"):
        module.encode("x")


def test_the_decoder_is_causal_and_works_at_any_length():
    model = small_decoder()
    numbers = np.random.default_rng(10).integers(11, size=(2, 12))
    whole = model.forward(numbers)
    np.testing.assert_allclose(whole[:, :6], model.forward(numbers[:, :6]), atol=1e-12)
    assert model.weights(0).shape == (2, 5, 6, 6)  # batch, heads, queries, keys
    assert not np.triu(model.weights(1), 1).any()


def test_training_learns_and_is_repeatable(capsys):
    numbers = np.tile(np.arange(11), 20)
    first, second = small_decoder(), small_decoder()
    floating = train(first, numbers, 80, batch=8, learning_rate=0.02)
    assert len(floating) == 80
    assert floating[-1] < 0.7 * floating[0]
    assert train(second, numbers, 80, batch=8, learning_rate=0.02) == floating
    assert not capsys.readouterr().out
    seen = []

    def watch(*told):
        seen.append(told)
        return f"seen {told[0]}"

    losses = train(small_decoder(), numbers, 3, batch=2, warm=2, watch=watch)
    assert "seen 2" in capsys.readouterr().err
    assert [told[0] for told in seen] == [0, 1, 2]
    _, loss, wanted, now = seen[0]
    assert loss.p.shape == (2 * 7, 11)
    assert wanted.shape == (7,)
    assert now == losses[0]
    continued = sample(first, [0], 5, np.random.default_rng(0), temperature=0.2)
    assert continued == [0, 1, 2, 3, 4, 5]


def test_sampling_sees_only_the_context():
    seen = []

    class Watched:
        def forward(self, numbers):
            seen.append(list(numbers))
            return np.zeros((len(numbers), 3))

    out = sample(Watched(), [2, 1], 4, np.random.default_rng(0), context=3)
    assert out[:2] == [2, 1]
    assert [len(numbers) for numbers in seen] == [2, 3, 3, 3]
    assert seen[-1] == out[2:5]


def test_sampling_stops_after_the_end_mark():
    class Counts:
        def forward(self, numbers):  # after n words the word n - 2 is certain
            sure = np.where(np.arange(3) == len(numbers) - 2, 0.0, -np.inf)
            return np.tile(sure, (len(numbers), 1))

    dice = np.random.default_rng(0)
    assert sample(Counts(), [2, 2], 3, dice) == [2, 2, 0, 1, 2]
    assert sample(Counts(), [2, 2], 3, dice, end=1) == [2, 2, 0, 1]
    assert sample(Counts(), [1, 2], 2, dice, end=1) == [1, 2, 0, 1]  # not the start's own


def test_sentences_and_lines_are_marked_and_put_back():
    poem = "Shall I go?  Not\n\nyet: I\nstay."
    tokens = mark_sentences(poem)
    assert " ".join(tokens) == "<start> shall i go <end> <start> not / yet i / stay <end>"
    assert verse(tokens[5:]) == "Not\nYet I\nStay"
    assert verse(tokens[:5]) == "Shall I go"
    assert mark_sentences("... !") == []


def test_initial_vectors_know_nothing_of_what_is_unseen():
    seen = ["a", "b", "c", "d", "a", "b", "c", "e", "a", "d", "c", "b"]
    vocabulary, vectors = initial_vectors(seen, ["z", "a", "y"], d_model=2)
    assert vocabulary == ["a", "b", "c", "d", "e", "y", "z"]
    assert vectors.shape == (7, 2)
    assert not vectors[5:].any()
    np.testing.assert_array_equal(vectors[:5], initial_vectors(seen, [], d_model=2)[1])


def test_saved_and_loaded_is_the_same_to_the_last_bit(tmp_path):
    model = small_decoder()
    train(model, np.arange(60) % 11, 5, batch=4)
    save(model, tmp_path / "decoder.safetensors")
    again = load(tmp_path / "decoder.safetensors")
    numbers = np.arange(7)
    named = again.parameters()
    for name, parameter in model.parameters().items():
        np.testing.assert_array_equal(named[name].value, parameter.value, err_msg=name)
    want = model.forward(numbers)
    np.testing.assert_allclose(again.forward(numbers), want, rtol=0, atol=1e-9)
    assert again.dictionary.vocabulary == model.dictionary.vocabulary
    assert np.shares_memory(again.output.matrix, again.dictionary.table.value)
    half = tmp_path / "half.safetensors"
    save(model, half, np.float16)
    assert half.stat().st_size < (tmp_path / "decoder.safetensors").stat().st_size / 2
    near = load(half).parameters()["blocks.modules.0.attention.output.weight"].value
    want = named["blocks.modules.0.attention.output.weight"].value
    np.testing.assert_array_equal(near, want.astype(np.float16))


def changed(about=None, **change):
    """Return what `save` writes of a small decoder, some of it changed or left out."""

    def write(path):
        save(small_decoder(), path)
        arrays = {**load_file(path), **change}
        with safe_open(path, "np") as file:
            metadata = {"about": about} if about else file.metadata()
        save_file({k: a for k, a in arrays.items() if a is not None}, path, metadata)

    return write


def claims(**sizes):
    about = {"vocabulary": [f"w{i}" for i in range(11)]}
    about["sizes"] = {"heads": 5, "layers": 2, "d_ff": 9} | sizes
    return changed(about=json.dumps(about))


def half(path):
    save(small_decoder(), path)
    path.write_bytes(path.read_bytes()[:2000])


NO_DECODER = {
    "another program's": (lambda path: save_file({"weight": np.zeros(3)}, path), "about"),
    "no safetensors": (lambda path: path.write_bytes(b"Shall I compare thee"), "header"),
    "empty": (lambda path: path.write_bytes(b""), "header"),
    "half": (half, "header|Metadata"),
    "one parameter less": (changed(**{"output.bias": None}), "other parameters"),
    "another shape": (changed(**{"output.bias": np.zeros(3)}), "other parameters"),
    "not finite": (changed(**{"output.bias": np.full(11, np.nan)}), "not finite"),
    "pickled": (lambda path: path.write_bytes(pickle.dumps({"a": 1})), "header"),
    "about is no JSON": (changed(about="{"), "JSON"),
    "about is a list": (changed(about="[]"), "list indices"),
    "flat vectors": (changed(**{"dictionary.table": np.zeros(11)}), "tuple index"),
    "too many layers claimed": (claims(layers=10**9), "too few parameters"),
    "too wide a network claimed": (claims(d_ff=10**9), "too few parameters"),
    "no heads": (claims(heads=0), "0 heads"),
    "a size of another model": (claims(width=3), "unexpected keyword"),
}


@pytest.mark.parametrize("kind", NO_DECODER)
def test_a_file_that_holds_no_decoder_is_refused(kind, tmp_path):
    path = tmp_path / "decoder.safetensors"
    write, said = NO_DECODER[kind]
    write(path)
    with pytest.raises(ValueError, match=f"decoder.safetensors holds no decoder: .*{said}"):
        load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere.safetensors")


def test_gradient_error_sees_a_wrong_gradient_and_leaves_no_trace():
    class Wrong(Softmax):
        def gradient(self, delta):
            return delta * self.y

    x = np.random.default_rng(11).normal(size=(2, 3))
    assert gradient_error(Wrong(), x)["input 0"] > 0.01
    module = Linear(3, 2, np.random.default_rng(0))
    module.weight.grad += 5
    before = module.weight.value.copy()
    gradient_error(module, x)
    assert (module.weight.grad == 5).all()
    np.testing.assert_array_equal(module.weight.value, before)


def test_the_benchmark_runs_and_compares(capsys):
    reference.main(vocab_size=40, batch=2, times=1)
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert summary["difference"] < 1e-9


@pytest.mark.parametrize("module", [Concat(), Fork(Identity())])
def test_the_gradient_of_one_input_is_an_array(module):
    x = np.arange(6.0).reshape(2, 3)
    output = module.forward(x)
    delta = np.ones((2, 3)) if isinstance(module, Concat) else (np.ones_like(output[0]),)
    gradient = module.backward(delta)
    assert isinstance(gradient, np.ndarray)
    assert np.array_equal(gradient, np.ones((2, 3)))
