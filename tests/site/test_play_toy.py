"""The view *attention toy* in a browser: its numbers are PyTorch's, its points move."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

import visits
from lmcourse import views

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WORDS = ["prairie", "clover", "bee", "<b>revery"]
KEYS = [[-1.6, 1.9], [1.2, 2.0], [2.3, 0.3], [-0.9, -1.8]]
QUERY = [1.1, 0.9]


def make():
    view = views.attention_toy(WORDS, KEYS, QUERY)
    view.data["position"] = 2
    return view, {}


def use(page):
    page.get_by_label("causal mask").check()


def drawn(page):
    return column(page, -1)


def weights(page):
    return [int(text.removesuffix("\u00a0%")) for text in column(page, -1)]


def column(page, index):
    rows = page.locator("tr:has(td)")
    return [rows.nth(i).locator("td").all_text_contents()[index] for i in range(4)]


def wanted(query=QUERY, keys=KEYS, divisor=2**0.5, seen=4):
    """Return the weights in percent, as PyTorch has them."""
    query, keys = torch.tensor(query).double(), torch.tensor(keys).double()
    shares = (keys[:seen] @ query / divisor).softmax(0)
    return [*(100 * shares).round().int().tolist(), *[0] * (4 - seen)]


def test_the_numbers_are_pytorch_s(lab):
    for tokens, size in ((1, 1), (2, 0.5), (5, 1), (40, 1), (5, 30)):
        query, keys, values = (
            size * torch.randn(n, 2).double() for n in (1, tokens, tokens)
        )
        seen = torch.rand(1, tokens) < 0.6
        seen[0, 0] = True
        divisor = 0.1 + 3 * torch.rand(1).item()
        result = lab.evaluate(
            """async (given) => {
              const { attend } = await import("/play/toy-view.js");
              return attend(...given);
            }""",
            [
                query[0].tolist(),
                keys.tolist(),
                values.tolist(),
                divisor,
                (~seen[0]).tolist(),
            ],
        )
        for name, what in (("output", values), ("weights", torch.eye(tokens).double())):
            mine = torch.tensor([result[name]], dtype=torch.float64)
            theirs = scaled_dot_product_attention(
                query, keys, what, attn_mask=seen, scale=1 / divisor
            )
            torch.testing.assert_close(mine, theirs, atol=1e-9, rtol=1e-9)


def test_arrow_keys_move_a_point(opened):
    opened.page.get_by_role("slider", name="query").focus()
    for key in ("ArrowLeft", "ArrowDown", "Shift+ArrowLeft"):
        opened.page.keyboard.press(key)
    assert weights(opened.page) == wanted(query=[0.5, 0.8])
    opened.page.get_by_role("slider", name="bee").focus()
    for _ in range(30):
        opened.page.keyboard.press("Shift+ArrowUp")  # it stops at the edge
    assert weights(opened.page) == wanted([0.5, 0.8], [*KEYS[:2], [2.3, 3.0], KEYS[3]])
    value_text = opened.page.get_by_role("slider", name="bee").get_attribute(
        "aria-valuetext"
    )
    assert value_text == f"2.3, 3.0; weight {weights(opened.page)[2]}\u00a0%"
    live = opened.page.locator("[aria-live=polite]")
    visits.heard(live, f"bee {weights(opened.page)[2]}\u00a0%, ")


def place(page, point):
    """Return where a point of the plane is on the screen."""
    box = page.locator(".lmt-plane").bounding_box()
    unit = box["width"] / 480
    x, y = 240 + 75 * point[0], 240 - 75 * point[1]
    return box["x"] + unit * x, box["y"] + unit * y


def test_the_mouse_drags_a_point(opened):
    mouse = opened.page.mouse
    mouse.move(*place(opened.page, QUERY))
    mouse.down()
    mouse.move(*place(opened.page, [0, 0]))
    mouse.move(*place(opened.page, [-1.5, 1]))
    mouse.up()
    assert weights(opened.page) == wanted(query=[-1.5, 1])
    mouse.move(*place(opened.page, [2, 2]))  # let go
    assert weights(opened.page) == wanted(query=[-1.5, 1])


def test_a_finger_drags_a_point(browser, address, request):
    context = browser.new_context(has_touch=True, viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.set_default_timeout(visits.LOAD)
    visits.slow(page)
    page.goto(address(request.module))
    page.wait_for_selector("[data-state=drawn]", timeout=visits.LOAD)
    page.locator(".lmt-plane").scroll_into_view_if_needed()
    client = context.new_cdp_session(page)
    path = [("touchStart", QUERY), ("touchMove", [0, 1]), ("touchMove", [-1, 1.5])]
    for kind, point in path:
        x, y = place(page, point)
        touch = {"type": kind, "touchPoints": [{"x": x, "y": y}]}
        client.send("Input.dispatchTouchEvent", touch)
    client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert weights(page) == wanted(query=[-1, 1.5])
    context.close()


def test_switches_do_what_they_say(opened):
    page = opened.page
    page.get_by_label("divide by √2").uncheck()
    assert weights(page) == wanted(divisor=1)
    page.get_by_label("causal mask").check()
    assert weights(page) == wanted(divisor=1, seen=3)
    assert column(page, 2) == ["0", "0", "0", "−∞"]
    page.get_by_label("which hides what stands after").select_option("prairie")
    assert weights(page) == [100, 0, 0, 0]
    page.get_by_label("causal mask").uncheck()
    page.get_by_label("temperature").fill("2")
    assert weights(page) == wanted(divisor=4)
    page.get_by_role("button", name="Start again").click()
    assert drawn(page) == [f"{share}\u00a0%" for share in wanted()]
    assert page.locator("svg b").count() == 0
