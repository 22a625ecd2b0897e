"""The view *digits* in a browser: it predicts of a drawing what PyTorch predicts."""

from functools import cache

import pytest
import torch

from lmcourse import views
from lmcourse.models import trained
from lmcourse.shuffled import shuffled_weights
from lmcourse.vision import VisionTransformer, digits
from test_engine import near

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STORE = "digits"
RANDOM = "digits-random"


@cache
def model():
    return trained("digits", VisionTransformer).half().float()


@cache
def random_model():
    return shuffled_weights(trained("digits", VisionTransformer)).half().float()


def answer(ink, reader=model):
    with torch.no_grad():
        logits, weights = reader()(torch.tensor(ink).view(1, 8, 8))
    return logits[0].softmax(-1), torch.stack(weights)[:, 0]


def make():
    shown = [{"ink": image.flatten().tolist()} for image in digits()[0][:2]]
    probs, weights = answer(shown[0]["ink"])
    shown[0] |= {"probs": probs.tolist(), "weights": weights.tolist()}
    data = {"examples": shown}
    return views.View(
        "digits-view", data, "<p>stored</p>", alt="Cells.", stores=[STORE, RANDOM]
    ), {}


def ask(page):
    page.get_by_role("button", name="Clear").click()


def use(page):
    page.get_by_role("button", name="Another").click()
    heard(page, answer(digits()[0][1].flatten().tolist())[0])


def heard(page, probs):
    """Wait until the digit and its share are told."""
    share = f"{100 * probs.max():.0f}\u00a0%"
    message = f"It predicts {probs.argmax()}, with a probability of {share}"
    page.get_by_role("status").filter(has_text=message).wait_for()


def shares(page):
    texts = page.locator(".lmd-bars tr td:last-child").all_text_contents()
    return torch.tensor([float(text.removesuffix("\u00a0%")) / 100 for text in texts])


def ink(page):
    cells = page.locator(".lmd-paper rect:not(.lmd-cursor)")
    return cells.evaluate_all("all => all.map(e => +getComputedStyle(e).fillOpacity)")


def test_another_digit_gets_pytorch_s_answer_in_every_head(opened):
    page, image = opened.page, digits()[0][1].flatten().tolist()
    use(page)
    probs, weights = answer(image)
    near(shares(page), probs, 6e-3)
    for layer, head, token in ((0, 2, 0), (1, 3, 7)):
        page.get_by_label(str(layer), exact=True).first.check()
        page.get_by_label(str(head), exact=True).last.check()
        buttons = page.locator(".lmd-patch, .lmd-class")
        order = [16, *range(16)]  # the class token stands last
        buttons.nth(order[token]).click()
        texts = buttons.evaluate_all("all => all.map(e => e.getAttribute('aria-label'))")
        shown = torch.tensor([float(texts[i].split()[-2]) / 100 for i in order])
        assert (shown - weights[layer, head, token]).abs().max() < 6e-3  # per cent
        assert buttons.nth(order[token]).get_attribute("aria-pressed") == "true"


def test_with_random_weights_it_answers_as_pytorch_does_with_the_same_weights(opened):
    page, image = opened.page, digits()[0][1].flatten().tolist()
    use(page)
    page.get_by_label("Had it learned nothing?").select_option("random weights")
    heard(page, answer(image, random_model)[0])
    wanted = answer(image, random_model)[0]
    assert (shares(page) - wanted).abs().max() < 6e-3  # whole per cents
    page.get_by_label("Had it learned nothing?").select_option("as it is")
    heard(page, answer(image)[0])


def test_keys_and_the_pointer_draw(opened):
    page = opened.page
    ask(page)
    page.get_by_role("status").filter(has_text="Nothing is drawn").wait_for()
    paper = page.locator(".lmd-paper")
    paper.focus()
    for key in ("ArrowRight", "ArrowDown", " ", " ", "ArrowLeft", " "):
        page.keyboard.press(key)
    wanted = [0.0] * 64
    wanted[36], wanted[35] = 1.0, 0.5
    assert ink(page) == pytest.approx(wanted, abs=0.01)
    heard(page, answer(wanted)[0])
    page.keyboard.press("Delete")
    box = paper.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 16, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 16, box["y"] + box["height"] - 20)  # at once
    page.mouse.up()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)  # lifted
    drawn = ink(page)
    assert all(drawn[8 * row] > 0.7 for row in range(1, 7))
    assert drawn[36] == pytest.approx(1, abs=0.01)
    assert not any(drawn[8 * row + 3] for row in range(8))
    heard(page, answer(drawn)[0])
    page.get_by_label("erase").check()
    page.mouse.click(box["x"] + box["width"] * 4.5 / 8, box["y"] + box["height"] * 4.5 / 8)
    assert not ink(page)[36]


def stroke(page, button="left"):
    """Draw down the fifth column."""
    box = page.locator(".lmd-paper").bounding_box()
    x, y = box["x"] + box["width"] * 4.5 / 8, box["y"]
    page.mouse.move(x, y + 20)
    page.mouse.down(button=button)
    page.mouse.move(x, y + box["height"] - 20)
    page.mouse.up(button=button)


@pytest.mark.parametrize("anew", ["Clear", "Another"])
def test_on_a_new_paper_the_pen_draws(opened, anew):
    page = opened.page
    page.get_by_label("erase").check()
    page.get_by_role("button", name=anew).click()
    stroke(page)
    assert not page.get_by_label("erase").is_checked()
    assert all(ink(page)[8 * row + 4] > 0.7 for row in range(1, 7))


def test_another_button_of_the_mouse_draws_nothing(opened):
    page = opened.page
    ask(page)
    stroke(page, "right")
    assert not any(ink(page))


def test_two_clicks_on_the_paper_select_no_text(opened):
    page = opened.page
    page.locator(".lmd-paper").dblclick(position={"x": 20, "y": 200})
    assert page.evaluate("getSelection().toString()") == ""


def test_without_an_answer_the_answer_of_another_model_is_gone(opened):
    page = opened.page
    switch = page.get_by_label("Had it learned nothing?")
    switch.select_option("shuffled patches")
    sentence = page.locator(".play-remains")
    sentence.get_by_text("in another order").wait_for()
    page.route(f"**/{RANDOM}/**", lambda route: route.abort())
    switch.select_option("random weights")
    page.get_by_role("status").filter(has_text="The model could not answer").wait_for()
    page.get_by_label("0", exact=True).last.check()  # it is drawn again
    assert "The model could not answer" in page.locator(".lmd-status").text_content()
    assert sentence.text_content() == ""
    assert "%" not in page.locator(".lmd-both").inner_text()
    page.unroute_all()
    opened.errors.clear()  # the file that did not come
    switch.select_option("as it is")
    heard(page, answer(digits()[0][0].flatten().tolist())[0])


def patches(cells):
    """Return the patches of a drawing (64 numbers, whole sixteenths), row after row."""
    cut = torch.tensor(cells).view(4, 2, 4, 2).permute(0, 2, 1, 3).reshape(16, 4)
    return [tuple(patch) for patch in (cut * 16).round().div(16).tolist()]


def joined(cut):
    """Return the drawing of 16 patches: the other way round."""
    return torch.tensor(cut).view(4, 4, 2, 2).permute(0, 2, 1, 3).flatten().tolist()


def read_patches(page):
    """Return what the model reads: the ink of the small patches."""
    cells = page.locator(".lmd-patch rect").evaluate_all(
        "all => all.map(e => +e.getAttribute('fill-opacity'))"
    )
    return patches(joined(torch.tensor(cells).view(16, 4).tolist()))


def test_patches_in_another_order_are_read_as_pytorch_reads_them(opened):
    """And the sentence tells what became of the digit."""
    page, image = opened.page, digits()[0][1].flatten().tolist()
    use(page)
    page.get_by_label("Had it learned nothing?").select_option("shuffled patches")
    sentence = page.locator(".play-remains")
    sentence.get_by_text("in another order").wait_for()
    mixed = read_patches(page)
    assert mixed != patches(image)
    assert sorted(mixed) == sorted(patches(image))
    now = answer(joined(mixed))[0]
    heard(page, now)
    assert (shares(page) - now).abs().max() < 1e-2  # whole per cents of float16
    before = answer(image)[0]
    digit = int(before.argmax())
    assert (
        f"the probability of {digit} goes from {100 * before[digit]:.0f}\u00a0% to "
        f"{100 * shares(page)[digit]:.0f}\u00a0%"
    ) in sentence.text_content()
    assert ink(page) == pytest.approx(image, abs=0.01)  # the paper is as it was drawn
    page.get_by_label("Had it learned nothing?").select_option("as it is")
    heard(page, before)
    assert sentence.text_content() == ""
