"""What circuitsvis draws keeps to its room until it has its size: no page jumps."""

import numpy as np
import pytest

from bare import make_page, opening
from lmbook.publish import assets
from lmcourse import views

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TOKENS = ["Rough", "winds", "do", "shake", "the", "darling", "buds", "of", "May", "."]
# In every frame: whether the view is being drawn or is drawn, and the canvas's height.
WATCHED = """
window.sizes = new Promise((resolve) => {
  const sizes = { loading: [], drawn: [] };
  const look = () => {
    const root = document.querySelector(".lmc-view");
    const canvas = root?.querySelector(".lmc-canvas");
    sizes[root?.dataset.state]?.push(canvas.getBoundingClientRect().height);
    if (sizes.drawn.length === 40) resolve(sizes);
    else requestAnimationFrame(look);
  };
  look();
});
"""


@pytest.mark.parametrize("kind", ["attention_heads", "tokens"])
def test_a_view_changes_its_height_once(browser, tmp_path, kind):
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(len(TOKENS)), (12, len(TOKENS)))
    view = {
        "attention_heads": lambda: views.attention_heads(weights, TOKENS, alt="Heads."),
        "tokens": lambda: views.tokens(TOKENS, rng.normal(size=len(TOKENS)), alt="Line."),
    }[kind]()
    page = make_page(tmp_path, [view])
    library = "circuitsvis/iife.js"
    (tmp_path / "lib" / library).unlink()  # an empty stand-in
    assets.stage_library(library, tmp_path / "lib", tmp_path / "work")
    with opening(browser, page.as_uri(), first=WATCHED) as visit:
        sizes = visit.page.evaluate("sizes")
        assert {*sizes["loading"]} == {sizes["loading"][0]}
        assert {*sizes["drawn"]} == {sizes["drawn"][0]}
        visit.clean()
