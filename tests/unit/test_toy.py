"""What the view *attention toy* shows before any script runs."""

import bs4
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from lmcourse import views

WORDS = ["prairie", "<b>clover", "bee"]
KEYS = torch.tensor([[-1.5, 2.0], [1.25, 2.0], [2.0, -0.5]]).double()
QUERY = torch.tensor([1.0, 0.5]).double()


@pytest.mark.parametrize("values", [None, [[1, 0], [0, 1], [-3, 3]]])
def test_the_stored_state_is_torch_s(values):
    view = views.attention_toy(WORDS, KEYS, QUERY, values=values)
    weights = scaled_dot_product_attention(QUERY[None], KEYS, torch.eye(3).double())[0]
    output = weights @ (KEYS if values is None else torch.tensor(values).double())
    page = bs4.BeautifulSoup(view.stored, "html.parser")
    rows = [[cell.text for cell in row] for row in page.find_all("tr")[1:]]
    products = KEYS @ QUERY
    wanted = zip(WORDS, products, products / 2**0.5, weights, strict=True)
    assert rows == [
        [word, f"{p:.2f}", f"{s:.2f}", f"{100 * w:.0f} %"] for word, p, s, w in wanted
    ]
    line = page.find_all("line")[-1]
    drawn = [float(line["x2"]) / 75 - 3.2, 3.2 - float(line["y2"]) / 75]
    torch.testing.assert_close(torch.tensor(drawn).double(), output, atol=1e-3, rtol=0)
    assert f"bee {100 * weights[2]:.0f} %" in view.alt
    assert not page.find("b")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"keys": KEYS[:2]}, r"keys, of shape \(2, 2\), should be .* \(3, 2\)"),
        ({"keys": 3 * KEYS}, "from -3 to 3"),
        ({"query": [float("nan"), 0]}, "query, of shape"),
        ({"query": [1, 2, 3]}, r"query, of shape \(3,\)"),
        ({"values": [[0, 0]]}, "values, of shape"),
        ({"position": 3}, "position 3 is none of the 3 words"),
    ],
)
def test_what_does_not_fit_is_refused(changed, told):
    with pytest.raises(ValueError, match=told):
        views.attention_toy(**({"words": WORDS, "keys": KEYS, "query": QUERY} | changed))
