"""In a notebook, too, no view takes the mouse wheel: a figure in space would."""

import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs

import visits
from lmcourse import views

pytestmark = pytest.mark.browser


def test_the_wheel_over_a_figure_in_space_scrolls_the_page(browser, tmp_path):
    cloud = go.Scatter3d(x=[0, 1, 2], y=[0, 1, 0], z=[0, 1, 2], mode="markers")
    view = views.plot(go.Figure(cloud), alt="Three points in space.")
    page = tmp_path / "index.html"
    library = f"<meta charset=utf-8><script>{get_plotlyjs()}</script>"
    page.write_text(f"<!doctype html>{library}{view._repr_html_()}", "utf-8")
    with visits.visit(browser, page.as_uri()) as visit:
        visit.page.evaluate("document.body.style.paddingBottom = '2000px'")
        scene = visit.page.locator(".gl-container canvas").first
        scene.wait_for(timeout=visits.LOAD)
        scene.hover()
        visit.page.mouse.wheel(0, 200)
        visit.page.wait_for_function("() => scrollY > 100", timeout=visits.LOAD)
        visit.clean()
