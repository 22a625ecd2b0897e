"""The noise of rounding is small, repeatable, and really there."""

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import torch
from torch import nn

from jitter.rounding import APPROXIMATE, Rounding, nudge, stem

JITTER = Path(__file__).parents[1] / "jitter"


def numbers(dtype=torch.float32):
    return torch.randn(20_000, generator=torch.Generator().manual_seed(0), dtype=dtype)


def nudged(tensor, seed=1):
    moved = tensor.clone()
    nudge(moved, seed)
    return moved


def test_one_input_gives_one_result_and_another_seed_another():
    x = numbers()
    assert torch.equal(nudged(x), nudged(x))
    assert torch.equal(nudged(x), nudged(x.flip(0)).flip(0))
    assert torch.equal(nudged(x.view(200, 100).T), nudged(x).view(200, 100).T)
    results = [nudged(x, seed) for seed in range(1, 6)]
    for i, one in enumerate(results):
        assert all((one != other).float().mean() > 0.4 for other in results[:i])


@pytest.mark.parametrize("seed", range(1, 6))
def test_noise_goes_both_ways_by_up_to_three_units_of_the_last_place(seed):
    x = torch.cat([numbers(), numbers() * 1e-20])
    change = nudged(x, seed).double() / x.double() - 1
    assert 2**-22 < change.abs().max() <= 3 * 2**-23
    assert 0.7 < (change != 0).float().mean() < 0.8
    assert 0.45 < (change[change != 0] > 0).float().mean() < 0.55
    assert torch.equal(nudged(-x, seed), -nudged(x, seed))


def test_whole_numbers_and_what_is_no_number_stay():
    for x in (
        torch.arange(-(2.0**18) + 1, 2**18),
        torch.arange(-100.0, 100) / 8,
        torch.tensor([2.0**30, torch.inf, -torch.inf]),
        torch.arange(-3, 1).int().view(torch.float32),  # NaN, and 0
        numbers(torch.float64),
        numbers(torch.bfloat16),
    ):
        torch.testing.assert_close(nudged(x), x, rtol=0, atol=0, equal_nan=True)
    smallest = torch.arange(1, 1000).int().view(torch.float32)
    assert (nudged(smallest) >= 0).all()
    assert (nudged(smallest) - smallest).abs().max() <= 3 * 2.0**-149


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x @ x,
        lambda x: nn.functional.linear(x, x, x[0]),
        lambda x: x.softmax(-1),
        lambda x: x.clone().exp_(),
        lambda x: nn.functional.layer_norm(x, x.shape[-1:]),
        lambda x: nn.functional.scaled_dot_product_attention(*[x[None, None]] * 3),
        lambda x: torch.linalg.svd(x)[1],
    ],
)
@pytest.mark.parametrize(
    "context", [torch.enable_grad, torch.no_grad, torch.inference_mode]
)
def test_every_such_operation_is_moved_and_only_inside(operation, context):
    x = numbers()[:2500].view(50, 50)
    with context():
        plain = operation(x)
        with Rounding(1):
            noisy = operation(x)
        again = operation(x)
    assert not torch.equal(noisy, plain)
    torch.testing.assert_close(noisy, plain, rtol=2**-20, atol=2**-20 * plain.abs().max())
    assert torch.equal(again, plain)


def test_gradients_are_moved_too():
    def gradient():
        x = numbers()[:2500].view(50, 50).requires_grad_()
        nn.functional.gelu(x).pow(2).sum().backward()
        return x.grad

    with Rounding(1):
        noisy = gradient()
    assert not torch.equal(noisy, gradient())


def test_names_are_those_of_operations():
    names = torch._C._dispatch_get_all_op_names()
    known = {stem(n.removeprefix("aten::").partition(".")[0]) for n in names}
    assert not APPROXIMATE - known


BITS = "(x @ x).view(torch.int32).long().sum().item()"


@pytest.mark.parametrize(("seed", "same"), [(None, False), ("off", True)])
def test_the_notebooks_are_compared_under_noise(tmp_path, monkeypatch, seed, same):
    """A copy of their conftest, and a notebook that tells one processor from another."""
    torch.manual_seed(0)
    x = torch.randn(50, 50)
    here = (x @ x).view(torch.int32).long().sum().item()
    source = "import torch; torch.manual_seed(0); x = torch.randn(50, 50)"
    source += f"; print('as here' if {BITS} == {here} else 'moved')"
    cell = nbformat.v4.new_code_cell(source, execution_count=1)
    cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="as here\n")]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": kernel})
    shutil.copytree(JITTER, tmp_path / "jitter")
    folder = tmp_path / "pages" / "notebooks"
    folder.mkdir(parents=True)
    shutil.copy(JITTER.parent / "pages" / "notebooks" / "conftest.py", folder)
    nbformat.write(notebook, folder / "one.ipynb")
    monkeypatch.delenv("JITTER", raising=False)
    if seed:
        monkeypatch.setenv("JITTER", seed)
    command = [sys.executable, "-m", "pytest", "-q", "--nbval", "--nbval-current-env"]
    done = subprocess.run([*command, "-p", "no:cacheprovider", folder], cwd=tmp_path)
    assert done.returncode == (0 if same else 1)
