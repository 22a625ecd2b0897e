"""The view *graph* in a browser: its gradients are PyTorch's, a step goes against them."""

import pytest
import torch

from lmcourse import views

pytestmark = [pytest.mark.browser, pytest.mark.slow]

START = {"q": 2.0, "k": 0.5, "v": 3.0, "t": 1.0}


def make():
    data = {"start": START, "rate": 0.1}
    return views.View("graph-view", data, "<p>stored</p>", alt="Four numbers."), {}


def use(page):
    page.get_by_role("button", name="One step").click()


def test_steps_are_those_of_gradient_descent(opened):
    page = opened.page
    q, k, v, t = (torch.tensor(x, requires_grad=True) for x in START.values())
    for step in range(3):
        loss = ((q * k).sigmoid() * v - t) ** 2
        slopes = torch.autograd.grad(loss, (q, k, v, t))
        cells = page.locator(".lmg-numbers tbody tr").all()
        shown = [[*row.locator("td").all_text_contents()] for row in cells[:4]]
        numbers = [[float(x.replace("−", "-")) for x in row] for row in shown]
        for (value, slope), part, wanted in zip(numbers, (q, k, v, t), slopes, strict=True):
            assert value == pytest.approx(part.item(), abs=0.0051)
            assert slope == pytest.approx(wanted.item(), abs=0.0051)
        status = page.get_by_role("status").text_content()
        assert f"After {step} " in status
        assert status.endswith(f"L is {loss.item():.3f}.")
        use(page)
        moved = zip((q, k, v), slopes, strict=False)
        q, k, v = ((x - 0.1 * s).detach().requires_grad_() for x, s in moved)
