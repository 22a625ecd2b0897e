"""What pictures must be, on a phone and at a desk: legible, and well-behaved.

Letters are measured as they come out on the screen. What scrolls shows it at the side where
it is cut, captions are as large as the text, and the mouse wheel belongs to the page.
"""

from playwright.sync_api import TimeoutError as Waited

import visits

PHONE = 390  # pixels
LEAST = 11  # pixels on the screen, less what rounding takes

# Of every figure the smallest letters that show: of drawings as they are scaled. A raised
# or lowered digit counts as large as the word that it belongs to.
LETTERS = """() => {
  const sizes = {};
  const shown = e => e.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const size = e => parseFloat(getComputedStyle(e).fontSize);
  for (const figure of document.querySelectorAll("article figure")) {
    const name = figure.id || figure.closest("[id]")?.id || "?";
    const walk = document.createTreeWalker(figure, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      let e = node.parentElement;
      const out = "figcaption, details, .play-hidden, script, style, title, desc, " +
        "option, sub, sup";
      if (!node.data.trim() || e.closest(out) || !shown(e)) continue;
      let [px, scale] = [size(e), 1];
      const word = e.closest("text");
      if (word) {
        px = Math.max(size(word), ...Array.from(word.querySelectorAll("tspan"), size));
        const m = word.getScreenCTM();
        scale = Math.sqrt(Math.abs(m.a * m.d - m.b * m.c));
      }
      const box = (word || e).getBoundingClientRect();
      if (box.width < 2 || box.height < 2) continue;
      sizes[name] = Math.min(sizes[name] ?? 99, px * scale);
    }
  }
  return sizes;
}"""
# Boxes that scroll sideways and do not show it.
CUT = """() => Array.from(document.querySelectorAll("article *")).filter(e => {
  const style = getComputedStyle(e);
  return /auto|scroll/.test(style.overflowX) && e.scrollWidth > e.clientWidth + 1 &&
    e.clientWidth > 60 && e.checkVisibility() && !/gradient/.test(style.backgroundImage) &&
    !e.matches("textarea, input");
}).map(e => e.outerHTML.slice(0, 120))"""
CAPTIONS = """() => {
  const size = e => parseFloat(getComputedStyle(e).fontSize);
  const text = size(document.querySelector("article") || document.body);
  return Array.from(document.querySelectorAll("figcaption"))
    .filter(e => size(e) < 0.9 * text || getComputedStyle(e).fontWeight < 400)
    .map(e => e.textContent.slice(0, 60).trim());
}"""
# In the dark: outputs on light ground.
LIT = """() => Array.from(document.querySelectorAll("article .cell_output .output")).filter(
  e => /^rgb\\((1[5-9]|2)\\d/.test(getComputedStyle(e).backgroundColor)
).map(e => e.className)"""


# The first listener of all; what it leaves to be done later comes after all others.
HEAR_WHEEL = """() => {
  window.wheelIsTaken = false;
  const hear = (turn) => setTimeout(() => {
    window.wheelIsTaken = turn.defaultPrevented;
  });
  addEventListener("wheel", hear, { capture: true, passive: true, once: true });
}"""


def small(visit):
    """Return the figures whose smallest letters are too small."""
    sizes = visit.page.evaluate(LETTERS)
    return {name: round(px, 1) for name, px in sizes.items() if px < LEAST - 0.05}


def legible(visit):
    """Nothing in the pictures is too small, or cut off without a sign."""
    assert small(visit) == {}
    assert visit.page.evaluate(CUT) == []
    assert visit.page.evaluate(CAPTIONS) == []


def moves_by_wheel(page, root):
    """Turn the wheel over the middle of a view; say whether the page moves.

    Waits until it has moved, or until all who heard of the wheel were done and one of them
    had taken it for itself. If neither comes, a box within the view has scrolled.
    """
    root.evaluate("e => e.scrollIntoView({ block: 'center', behavior: 'instant' })")
    where = root.locator(".lmc-canvas").first.bounding_box()
    height = page.viewport_size["height"]
    low, high = max(0, where["y"]), min(height, where["y"] + where["height"])
    before = page.evaluate("scrollY")
    end = page.evaluate("document.documentElement.scrollHeight") - height
    page.evaluate(HEAR_WHEEL)
    page.mouse.move(where["x"] + where["width"] / 2, (low + high) / 2)
    page.mouse.wheel(0, -150 if before > end - 200 else 150)
    try:
        page.wait_for_function(
            f"wheelIsTaken || Math.abs(scrollY - {before}) > 20", timeout=visits.LOAD
        )
    except Waited:
        return False
    return not page.evaluate("wheelIsTaken")
