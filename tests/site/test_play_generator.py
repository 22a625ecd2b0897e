"""The view *generator* in a browser: its answers are PyTorch's and transformers'."""

from functools import cache

import pytest
import torch

import visits
from lmcourse import views
from lmcourse.ablation import without
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.numbers import plural
from test_engine import near

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STORE = "gpt"
LINE = "Shall I compare thee to a summer's d"
IDLE = """() => Array.from(document.querySelectorAll("button"))
  .find((button) => button.textContent === "stop").disabled"""


@cache
def gpt():
    tokenizer, model, _ = load_gpt(device="cpu")
    return tokenizer, model.half().float()  # as the site carries it


def make():
    return views.generator(LINE, *gpt(), count=80), {}


def ask(page):
    page.get_by_label("Your line").fill("Love")


def use(page):
    write(page, "Naïve 🦋 " + "x" * 200)
    head(page, 1, 1).click()
    idle(page)


def idle(page):
    page.wait_for_function(IDLE, timeout=visits.LOAD)


def write(page, text):
    page.get_by_label("Your line").fill(text)
    idle(page)


def head(page, layer, number):
    return page.get_by_role("button", name=f"switch off head {number} of layer {layer}")


def table(page, name):
    rows = page.locator(f".lmg-{name} tr")
    return [
        [rows.nth(i).locator("th").text_content()]
        + [text for text in rows.nth(i).locator("td").all_text_contents() if text]
        for i in range(rows.count())
    ]


def drawn(page):
    text = page.locator(".lmg-text").text_content()
    return [table(page, name) for name in ("bars", "lens")], text


def bars(page):
    return {
        c: float(share.removesuffix("\u00a0%")) / 100 for c, share in table(page, "bars")
    }


def wanted(text, temperature=0.8):
    """Return PyTorch's ten likeliest characters as the bars name them, and their shares."""
    tokenizer, model = gpt()
    with torch.no_grad():
        logits = model(torch.tensor([tokenizer.encode(text)]))[0, -1]
    shares, ids = (logits / temperature).softmax(0).topk(10)
    names = [{" ": "·", "\n": "⏎"}.get(c, c) for c in tokenizer.decode(ids.tolist())]
    return dict(zip(names, shares.tolist(), strict=True))


def same(shares, expected):
    """Compare bars, which show a thousandth; the tenth may be another one, as likely."""
    for name, share in expected.items():
        assert shares.get(name, 0) == pytest.approx(share, abs=1e-3)


def test_what_is_stored_is_what_the_model_writes(opened):
    page, before = opened.page, drawn(opened.page)
    assert not any("play/gpt/" in asked for asked in opened.inside)  # not asked for
    same(bars(page), wanted(LINE))
    write(page, LINE + "!")
    write(page, LINE)
    assert drawn(page) == before


def strongest(weights):
    """Return how a summary says which character a head attends to most, and how much."""
    best = int(weights.argmax())
    back = len(weights) - 1 - best
    position = f"{back} {plural(back, 'character')} before the last"
    if back == 0:
        position = "the last itself"
    return f"{position}, with {100 * weights[best]:.0f}\u00a0% of its attention"


@pytest.mark.parametrize("text", ["O", "\n\nLove is not love\nW"])
def test_a_line_typed_gets_pytorch_s_answer(opened, text):
    write(opened.page, text)
    same(bars(opened.page), wanted(text))
    tokenizer, model = gpt()
    with torch.no_grad():
        weights = model.attentions(torch.tensor([tokenizer.encode(text)]))[2][0, 1, -1]
    head(opened.page, 2, 1).focus()
    spans = opened.page.locator(".play-shades span")
    shares = spans.evaluate_all("all => all.map(s => +s.style.getPropertyValue('--share'))")
    near(torch.tensor(shares), weights, 1e-3)
    assert opened.page.locator(".lmg-summary").text_content().endswith(strongest(weights))


def test_a_head_switched_off_is_pytorch_s_with_it_zeroed(opened):
    page, before = opened.page, opened.page.locator(".lmg-text").text_content()
    arrows = ["ArrowDown"] * 2 + ["ArrowRight"] * 2 + ["ArrowLeft", "Enter"]
    head(page, 0, 0).focus()
    for key in arrows:
        page.keyboard.press(key)
    idle(page)
    assert head(page, 2, 1).get_attribute("aria-pressed") == "true"
    with without(gpt()[1].blocks[2], 1):
        same(bars(page), wanted(LINE))
    with pytest.raises(AssertionError):
        same(bars(page), wanted(LINE))
    assert page.locator(".lmg-text").text_content() != before
    head(page, 0, 3).click()
    idle(page)
    with without(gpt()[1].blocks[2], 1), without(gpt()[1].blocks[0], 3):
        same(bars(page), wanted(LINE))
    page.get_by_role("button", name="all heads on").click()
    idle(page)
    assert page.locator(".lmg-text").text_content() == before


def test_sliders_change_what_is_drawn_from_at_once(opened):
    page = opened.page
    page.get_by_label("temperature").fill("1.5")
    same(bars(page), wanted(LINE, 1.5))
    page.get_by_label("top-k").fill("2")
    likeliest = list(wanted(LINE, 1.5).items())[:2]
    whole = sum(share for _, share in likeliest)
    assert [share for share in bars(page).values() if share] == pytest.approx(
        [share / whole for _, share in likeliest], abs=1e-3
    )
    page.get_by_label("top-p").fill("0.05")
    assert [*bars(page).values()] == [1] + [0] * 9
    idle(page)
    text = page.locator(".lmg-text").text_content()
    page.get_by_role("button", name="draw again").click()
    idle(page)
    assert page.locator(".lmg-text").text_content() == text  # nothing to choose from


def test_one_character_then_another_then_a_text_that_is_stopped(opened):
    page, area = opened.page, opened.page.get_by_label("Your line")
    before = page.locator(".lmg-text").text_content()
    for count in range(1, 33):  # beyond the context, which is 64
        page.get_by_role("button", name="one character").click()
        assert area.input_value() == before[: len(LINE) + count]
    idle(page)
    whole = page.locator(".lmg-text").text_content()
    assert whole.startswith(before)
    for _ in range(2):  # off and on: all is written anew
        head(page, 1, 0).click()
        idle(page)
    assert page.locator(".lmg-text").text_content() == whole
    begun = f"document.querySelector('.lmg-text').textContent.length > {len(whole)}"
    visits.stop_once(page, begun, "stop")
    page.get_by_role("button", name="go on").click()
    page.wait_for_function("stopped", timeout=visits.LOAD)
    idle(page)
    stopped = page.locator(".lmg-text").text_content()
    assert len(whole) < len(stopped) < len(whole) + 300
    page.get_by_role("button", name="go on").click()
    idle(page)
    gone_on = page.locator(".lmg-text").text_content()
    assert gone_on.startswith(stopped)
    assert page.locator(".lmg-text").evaluate("e => e.scrollTop") > 0  # its end is seen
    assert len(gone_on) == len(stopped) + 300
    live = page.locator("[aria-live=polite]").last
    visits.heard(live, "Next: ")
    page.get_by_role("button", name="draw again").click()
    idle(page)
    assert page.locator(".lmg-text").text_content() != gone_on


def test_what_it_does_not_know_is_named_and_a_long_text_cut(opened):
    page = opened.page
    write(page, "</script><img src=x onerror=harm()> שלום 🦋\u202e love")
    note = page.locator(".play-note").text_content()
    assert "Left out, as it has never read them: " in note
    assert all(c in note for c in "</>=")
    assert "\u202e" not in note
    assert "and 2 more" in note
    remaining = "scriptimg srcx onerrorharm()   love"
    assert page.locator(".lmg-text").text_content().startswith(remaining)
    same(bars(page), wanted(remaining))
    write(page, "love " * 2001)
    assert page.locator(".play-note").text_content().startswith("It sees the last ")
    seen = "".join(page.locator(".play-shades span").all_text_contents())
    assert ("love·" * 13).endswith(seen)
    assert 32 <= len(seen) <= 64
    same(bars(page), wanted(seen.replace("·", " ")))
    write(page, "")
    same(bars(page), wanted("\n"))
    write(page, "🦋")
    assert page.locator(".play-note").text_content().strip().endswith("🦋\u2069.")


def test_random_weights_answer_otherwise_and_go_away_again(opened):
    page, before = opened.page, drawn(opened.page)
    world = page.get_by_label("Had it learned nothing?")
    world.select_option("random weights")
    idle(page)
    with pytest.raises(AssertionError):
        same(bars(page), wanted(LINE))
    assert drawn(page)[1] != before[1]
    head(page, 1, 1).click()
    idle(page)
    off = drawn(page)
    page.get_by_role("button", name="all heads on").click()
    idle(page)
    assert drawn(page) != off
    world.select_option("as it is")
    idle(page)
    write(page, LINE)
    same(bars(page), wanted(LINE))
    assert drawn(page)[1] == before[1]


def test_shuffled_characters_are_read_in_another_order_and_the_sentence_counts(opened):
    page = opened.page
    page.get_by_label("Had it learned nothing?").select_option("shuffled characters")
    sentence = page.locator(".play-remains")
    sentence.get_by_text("in another order").wait_for(timeout=visits.LOAD)
    idle(page)
    seen = "".join(page.locator(".play-shades span").all_text_contents())
    mixed = seen.replace("·", " ")
    assert mixed != LINE
    assert mixed[-1] == LINE[-1]
    assert sorted(mixed) == sorted(LINE)
    same(bars(page), wanted(mixed))
    tokenizer, model = gpt()

    def top(text):
        with torch.no_grad():
            logits = model(torch.tensor([tokenizer.encode(text)]))
        logits = logits[0] if isinstance(logits, tuple) else logits
        return set(logits[0, -1].topk(5).indices.tolist())

    left = len(top(LINE) & top(mixed))
    some = {0: "none is", 1: "one is"}.get(left, f"{left} are")
    assert f"five likeliest next characters {some} left" in sentence.text_content()
    page.get_by_label("Had it learned nothing?").select_option("as it is")
    idle(page)
    same(bars(page), wanted(LINE))
    assert sentence.text_content() == ""
