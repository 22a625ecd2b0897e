"""The view *superposition* in a browser: it learns what Python learns."""

import pytest
import torch

import visits
from lmcourse import sparse, views

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def make():
    return views.superposition(0.9), {}


def use(page):
    page.get_by_label("how often a feature is 0").fill("0.5")


def drawn(page):
    """Return the table's rows, once the toy has learned."""
    live = page.locator("[aria-live=polite]")
    if live.count():  # scripts run, and it says so at the end
        visits.heard(live, "Arrows")
    return page.locator("tbody tr").all_inner_texts()


@pytest.mark.parametrize("sparsity", [0.0, 0.6, 0.9])
def test_the_arrows_are_those_of_torch(lab, sparsity):
    toy = lab.evaluate(
        """async ([data, sparsity]) => {
          const { learner } = await import("/play/superposition-view.js");
          const { toy, step } = learner(data, sparsity);
          while (step());
          return toy;
        }""",
        [views.superposition(0.9).data, sparsity],
    )
    weights, bias, loss = sparse.train_toy(sparsity)
    close = torch.testing.assert_close
    close(torch.tensor(toy["arrows"]).double(), weights.T, atol=1e-4, rtol=0)
    close(torch.tensor(toy["bias"]).double(), bias, atol=1e-4, rtol=0)
    assert toy["loss"] == pytest.approx(loss, abs=1e-5)


def test_random_weights_come_back(opened):
    page = opened.page
    page.get_by_label("Had it learned nothing?").select_option("random weights")
    visits.heard(page.locator("[aria-live=polite]"), "Random weights")
    lengths = sparse.toy_start().norm(dim=0).tolist()
    cells = page.locator("tr td:nth-child(2)").all_text_contents()[-5:]
    assert [float(text) for text in cells] == pytest.approx(lengths, abs=0.006)


def test_the_table_stays_beside_the_picture(opened):
    """The sentence below the table is longer for random weights: it wraps."""
    page = opened.page
    page.locator(".lmc-play").evaluate("e => { e.style.width = '766px'; }")
    boxes = []
    for world in ("trained", "random weights"):
        page.get_by_label("Had it learned nothing?").select_option(world)
        visits.heard(
            page.locator("[aria-live=polite]"), {"trained": "Arrows"}.get(world, "Random")
        )
        plane, table = page.locator(".lms-plane"), page.locator(".lms-told table")
        boxes.append(plane.bounding_box())
        assert table.bounding_box()["x"] >= boxes[-1]["x"] + boxes[-1]["width"]
    assert boxes[0] == boxes[1]
