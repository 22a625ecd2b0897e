"""What the view *generator* shows before any script runs."""

import bs4
import pytest
import torch

from lmcourse import views
from lmcourse.gpt.model import GPT
from lmcourse.gpt.settings import GPTConfig
from lmcourse.tokenization import CharTokenizer

TEXT = "a <b>b"


@pytest.fixture(scope="module")
def gpt():
    torch.manual_seed(0)
    model = GPT(GPTConfig(6, 8, 2, heads=2, d_model=8)).half().float()
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.5 * torch.randn(weight.shape).half()
    return CharTokenizer("ab< >\n"), model.half().float().eval()


def test_the_stored_state_is_torch_s(gpt):
    tokenizer, model = gpt
    view = views.generator(TEXT, tokenizer, model, temperature=0.5, count=20)
    page = bs4.BeautifulSoup(view.data["stored"], "html.parser")
    with torch.no_grad():
        logits = model(torch.tensor([tokenizer.encode(TEXT)]))[0, -1]
    shares, ids = (logits / 0.5).softmax(0).sort(descending=True)
    rows = [row.get_text().split() for row in page.select(".lmg-bars tr")]
    names = {" ": "·", "\n": "⏎"}
    assert [name for name, *_ in rows] == [
        names.get(c, c) for c in tokenizer.decode(ids.tolist())
    ]
    for (_, found, _), share in zip(rows, shares, strict=True):
        assert float(found) == pytest.approx(100 * share.item(), abs=0.06)
    lens = [" ".join(row.text.split()) for row in page.select(".lmg-lens tr")]
    assert len(lens) == 2
    likeliest = tokenizer.alphabet[logits.argmax()]
    assert lens[-1].startswith(f"layer 1 {names.get(likeliest, likeliest)} ")
    written = page.select_one(".lmg-text b").text
    assert page.select_one(".lmg-text").text == TEXT + written
    assert len(written) == 20
    assert set(written) <= set(tokenizer.alphabet)
    assert f"After “{TEXT}”" in view.alt
    weights = torch.tensor(view.data["data"]["weights"]).view(2, 2, len(TEXT))
    wanted = [w[0, :, -1] for w in model.attentions(torch.tensor([tokenizer.encode(TEXT)]))]
    torch.testing.assert_close(weights, torch.stack(wanted), atol=6e-4, rtol=0)


@pytest.mark.parametrize(
    ("text", "settings", "said"),
    [
        ("", {}, "1 to 8 characters .* these are 0"),
        ("a" * 9, {}, "these are 9"),
        ("a", {"temperature": 0}, "greater than 0"),
        ("z", {}, "z"),
    ],
)
def test_what_cannot_be_begun_with_is_told(gpt, text, settings, said):
    with pytest.raises(ValueError, match=said):
        views.generator(text, *gpt, **settings)
