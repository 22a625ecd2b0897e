"""The view *dials* in a browser: its numbers are those of turned pairs."""

import math

import pytest
import torch

from bare import PHONE
from lmcourse import views
from lmcourse.positions import frequencies, rotate

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAIRS = 3
SPEEDS = frequencies(2 * PAIRS)
START = torch.tensor([0.3, 1.2, 2.0]).double()


def hands(angles):
    return torch.stack((angles.cos(), angles.sin()), -1)


def make():
    data = {"query": hands(START).tolist(), "key": hands(START + 2 * SPEEDS).tolist()}
    data |= {"speeds": SPEEDS.tolist(), "counts": [1, 3], "far": 20}
    data |= {"place": 5, "behind": 1}
    return views.View("dials-view", data, "<p>stored</p>", alt="Three dials."), {}


def use(page):
    page.get_by_role("radio", name="1 pair").check()


def test_the_dials_show_the_products_of_turned_pairs(opened):
    page = opened.page
    for query, behind in ((5, 1), (5, 9), (17, 9)):
        page.get_by_label("position of the query").fill(str(query))
        page.get_by_label("the key is before it by").fill(str(behind))
        q = rotate(hands(START).flatten()[None], [query]).view(-1, 2)
        ahead = hands(START + 2 * SPEEDS).flatten()
        k = rotate(ahead[None], [query - behind]).view(-1, 2)
        products = (q * k).sum(-1)
        texts = page.locator(".lmd-dials text").all_text_contents()
        numbers = [float(text.replace("−", "-")) for text in texts]
        assert numbers == pytest.approx(products.tolist(), abs=0.0051)
        status = page.get_by_role("status").text_content().replace("−", "-")
        assert status.endswith(f": {products.sum():.2f} of at most 3.")
    page.get_by_role("radio", name="1 pair").check()
    texts = page.locator(".lmd-dials text").all_text_contents()
    assert texts[1:] == ["not counted"] * 2
    one = math.cos((9 - 2) * SPEEDS[0])
    assert f"{one:.2f} of at most 1" in page.get_by_role("status").text_content()


def test_on_a_phone_a_value_stands_beside_its_slider(opened):
    opened.page.set_viewport_size({"width": PHONE, "height": 844})
    labels = opened.page.locator(".play-slider")
    assert labels.count() == 2
    for label in labels.all():
        slider, value = (
            label.locator(part).bounding_box() for part in ("input", ".play-value")
        )
        assert value["x"] >= slider["x"] + slider["width"]
        assert (
            abs(value["y"] + value["height"] / 2 - slider["y"] - slider["height"] / 2) < 9
        )
        assert value["x"] + value["width"] <= PHONE


def test_a_key_before_the_text_is_called_one(opened):
    page = opened.page
    status = page.get_by_role("status")
    page.get_by_label("position of the query").fill("5")
    for behind, early in (("5", False), ("6", True)):
        page.get_by_label("the key is before it by").fill(behind)
        assert ("before the text begins" in status.text_content()) == early
