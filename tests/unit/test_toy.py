"""What the view *attention toy* shows before any script runs."""

import bs4
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from lmcourse import views

WORDS = ["prairie", "<b>clover", "bee"]
KEYS = torch.tensor([[-1.5, 2.0], [1.25, 2.0], [2.0, -0.5]]).double()
QUERY = torch.tensor([1.0, 0.5]).double()


def test_the_stored_state_is_torch_s():
    view = views.attention_toy(WORDS, KEYS, QUERY)
    weights = scaled_dot_product_attention(QUERY[None], KEYS, torch.eye(3).double())[0]
    output = weights @ KEYS
    page = bs4.BeautifulSoup(view.stored, "html.parser")
    rows = [[cell.text for cell in row] for row in page.find_all("tr")[1:]]
    products = KEYS @ QUERY
    wanted = zip(WORDS, products, products / 2**0.5, weights, strict=True)
    assert rows == [
        [
            word,
            *(f"{n:.2f}".replace("-", "−") for n in (p, s)),
            f"{100 * w:.0f}\N{NO-BREAK SPACE}%",
        ]
        for word, p, s, w in wanted
    ]
    line = page.find_all("line")[-2]  # the query comes last
    drawn = [float(line["x2"]) / 75 - 3.2, 3.2 - float(line["y2"]) / 75]
    torch.testing.assert_close(torch.tensor(drawn).double(), output, atol=1e-3, rtol=0)
    assert f"bee {100 * weights[2]:.0f}\N{NO-BREAK SPACE}%" in view.alt
    assert not page.find("b")


@pytest.mark.parametrize(
    ("keys", "query"), [(KEYS[:2], QUERY), (3 * KEYS, QUERY), (KEYS, [torch.nan, 0])]
)
def test_what_does_not_fit_is_refused(keys, query):
    with pytest.raises(ValueError, match="a query are points from −3 to 3"):
        views.attention_toy(WORDS, keys, query)
