"""What would be wrong with a page's pictures is seen (every page: ``test_browser.py``)."""

import pytest
from playwright.sync_api import expect

import visits
from pictures import CAPTIONS, CUT, PHONE, moves_by_wheel, small

pytestmark = [pytest.mark.browser, pytest.mark.steady]

# Letters of 6 pixels in a figure, a caption of 9, and a box that scrolls without a sign.
WRONG = """<figure id="fig-tiny"><svg viewBox="0 0 1000 100" width="300"><text y="50"
font-size="20">bee</text></svg><figcaption><span>bee</span></figcaption></figure>
<style>#fig-tiny figcaption { font-size: 9px !important }</style>
<div style="overflow-x: auto"><p style="width: 3000px">wide</p></div>"""
SWALLOW = """e => e.addEventListener("wheel", w => w.preventDefault(),
  { capture: true, passive: false })"""


def test_what_would_be_wrong_is_seen(browser, demo_server):
    """The checks that every page goes through find the faults that are put in here.

    These are a view that swallows the wheel (`SWALLOW`), and the three faults of `WRONG`.
    """
    with visits.visit(browser, f"{demo_server}/views.html", width=PHONE) as visit:
        visit.draw()
        root = next(visit.views())[0]
        assert moves_by_wheel(visit.page, root)
        root.evaluate(SWALLOW)
        assert not moves_by_wheel(visit.page, root)
        add = "w => document.querySelector('article').insertAdjacentHTML('beforeend', w)"
        visit.page.evaluate(add, WRONG)
        assert "fig-tiny" in small(visit)
        assert len(visit.page.evaluate(CUT)) == 1
        assert visit.page.evaluate(CAPTIONS) == ["bee"]


def test_the_chosen_head_has_its_size_again_after_a_zoom(browser, demo_server):
    with visits.visit(browser, f"{demo_server}/views.html") as visit:
        visit.draw()
        picture = visit.page.locator(".lmc-attention-heads .lmc-zoomed canvas").first
        width = picture.evaluate("canvas => canvas.clientWidth")
        visit.page.evaluate("document.body.style.zoom = '2.5'")
        expect(picture).not_to_have_js_property("clientWidth", width)
        visit.page.evaluate("document.body.style.zoom = ''")
        expect(picture).to_have_js_property("clientWidth", width)
