"""The noise of rounding is small, repeatable, and really there."""

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import torch
from torch import nn

from jitter.rounding import APPROXIMATE, KEY, Rounding, nudge, stem

TESTS = Path(__file__).parents[1]


def numbers(dtype=torch.float32):
    return torch.randn(20_000, generator=torch.Generator().manual_seed(0), dtype=dtype)


def nudged(tensor, seed=1):
    moved = tensor.clone()
    nudge(moved, seed)
    return moved


def test_one_input_gives_one_result_and_another_seed_another():
    x = numbers()
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
        torch.tensor([2.0**30, torch.inf, -torch.inf, torch.nan]),
        numbers(torch.float64),
    ):
        torch.testing.assert_close(nudged(x), x, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x @ x,
        lambda x: x.softmax(-1),
        lambda x: x.clone().exp_(),
        lambda x: nn.functional.scaled_dot_product_attention(*[x[None, None]] * 3),
        lambda x: torch.autograd.grad(nn.functional.gelu(x).sum(), x)[0],
    ],
)
def test_every_such_operation_is_moved_and_only_inside(operation):
    x = numbers()[:2500].view(50, 50).requires_grad_()
    plain = operation(x)
    with Rounding(1):
        noisy = operation(x)
    assert not torch.equal(noisy, plain)
    largest = plain.abs().max().item()
    torch.testing.assert_close(noisy, plain, rtol=2**-20, atol=2**-20 * largest)
    assert torch.equal(operation(x), plain)


def test_what_is_made_of_several_operations_is_moved_without_gradients_too():
    x = numbers()[:2500].view(50, 50)
    with torch.inference_mode():
        plain = nn.functional.linear(x, x, x[0])
        with Rounding(1):
            assert not torch.equal(nn.functional.linear(x, x, x[0]), plain)


def test_names_are_those_of_operations():
    names = torch._C._dispatch_get_all_op_names()
    known = {stem(n.removeprefix("aten::").partition(".")[0]) for n in names}
    assert not APPROXIMATE - known


def test_the_notebooks_are_compared_under_noise(tmp_path, monkeypatch):
    """A copy of their conftest, and a notebook that says whether there is noise."""
    source = f"import torch\nkey = torch._C.DispatchKey.{KEY}\n"
    source += "print(torch._C._dispatch_tls_is_dispatch_key_excluded(key))"
    cell = nbformat.v4.new_code_cell(source, execution_count=1)
    cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="False\n")]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": kernel})
    shutil.copy(TESTS / "pages" / "notebooks" / "conftest.py", tmp_path)
    nbformat.write(notebook, tmp_path / "one.ipynb")
    monkeypatch.delenv("JITTER", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(TESTS))  # where it finds what it imports
    command = [sys.executable, "-m", "pytest", "-q", "--nbval", "--nbval-current-env"]
    done = subprocess.run([*command, "-p", "no:cacheprovider", tmp_path], cwd=tmp_path)
    assert done.returncode == 0
