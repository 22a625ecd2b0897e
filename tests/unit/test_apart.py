"""The view *apart*: what it tells of a look is what PyTorch computes."""

import re

import bs4
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from lmcourse import views

TOKENS = ["[CLS]", "<b>it", "animal"]


def parts(seed=0, d_head=4):
    generator = torch.Generator().manual_seed(seed)
    query, *rest = torch.randn(7, d_head, generator=generator).double()
    return query, torch.stack(rest[:3]), torch.stack(rest[3:])


def bars(svg, scale):
    """Return the numbers that are drawn."""
    assert {*re.findall("13v(.)", svg.find(class_="lm-up")["d"])} <= {"-"}
    strokes = re.findall(r"M(\d+) 13v(-?[\d.]+)h3", str(svg))
    return torch.tensor(
        [-float(v) * scale / 13 for _, v in sorted(strokes, key=lambda f: int(f[0]))]
    )


def test_it_tells_the_products_the_scores_the_weights_and_the_mixture():
    one, two = parts(0), parts(1)
    view = views.apart("Which?", {"one": (TOKENS, *one), "two": (TOKENS, *two)})
    page = bs4.BeautifulSoup(view.stored, "html.parser")
    scale = max((q * k).abs().max() for q, k, _ in (one, two))
    mixtures = [scaled_dot_product_attention(q[None], k, v)[0] for q, k, v in (one, two)]
    for section, (q, k, _), mixed in zip(
        page.find_all("section"), (one, two), mixtures, strict=True
    ):
        eye = torch.eye(3).double()
        weights = scaled_dot_product_attention(q[None], k, eye)[0]
        asked, names, *rows = section.find_all("tr")
        scale_asked = max(each[0].abs().max() for each in (one, two))
        near = bars(asked.td, scale_asked)
        assert (near - q).abs().max() < 0.06 * scale_asked / 13
        assert names.find_all("th")[1].text == "query × key"
        assert [row.th.text for row in rows] == TOKENS
        for row, product, weight in zip(rows, q * k, weights, strict=True):
            drawn, *numbers = row.find_all("td")
            near = bars(drawn, scale)
            assert (near - product).abs().max() < 0.06 * scale / 13
            wanted = (
                f"{product.sum():.1f}",
                f"{product.sum() / 2:.1f}",
                f"{100 * weight:.0f}\N{NO-BREAK SPACE}%",
            )
            assert not any("-" in cell.text for cell in numbers)
            shown = tuple(cell.text.replace("−", "-") for cell in numbers)
            assert shown == wanted
            assert f"{row.th.text} {wanted[-1]}" in view.plain
        scale_mixed = max(m.abs().max() for m in mixtures)
        last = section.find_all("p")[-1]
        assert (bars(last, scale_mixed) - mixed).abs().max() < 0.06 * scale_mixed / 13
    assert not page.find("b")


def test_what_does_not_fit_is_refused():
    query, keys, values = parts()
    with pytest.raises(ValueError, match=r"should have the shape \(3, 4\)"):
        views.apart("Which?", {"one": (TOKENS, query, keys[:2], values)})


def test_the_querys_bars_stand_in_the_column_of_its_products():
    """Number stands above number: nothing but the row's name is before them."""
    view = views.apart("Which?", {"one": (TOKENS, *parts())})
    page = bs4.BeautifulSoup(view.stored, "html.parser")
    rows = [row for row in page.find_all("tr") if row.find(class_="lm-bars")]
    assert len(rows) == 1 + len(TOKENS)
    columns = {[cell.name for cell in row].index("td") for row in rows}
    assert columns == {1}
    assert all(row.find_all("td")[0].find(class_="lm-bars") for row in rows)
