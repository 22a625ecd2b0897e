"""What the view *generator* shows before any script runs."""

import bs4
import pytest
import torch

from gpts import byte_level_tokenizer, small_gpt
from lmcourse import views
from lmcourse.gpt.gpt2 import WrappedTokenizer
from lmcourse.gpt.inside import states
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.tokenization import CharTokenizer

TEXT = "a <b>b"


@pytest.fixture(scope="module")
def gpt():
    return CharTokenizer("ab< >\n"), small_gpt()


def test_the_stored_state_is_torch_s(gpt):
    tokenizer, model = gpt
    view = views.generator(TEXT, tokenizer, model, count=20)
    page = bs4.BeautifulSoup(view.stored, "html.parser")
    with torch.no_grad():
        logits = model(torch.tensor([tokenizer.encode(TEXT)]))[0, -1]
    shares, ids = (logits / 0.8).softmax(0).sort(descending=True)
    rows = [[cell.text for cell in row] for row in page.select(".lmg-bars tr")]
    names = {" ": "·", "\n": "⏎"}
    assert [name for name, *_ in rows] == [
        names.get(c, c) for c in tokenizer.decode(ids.tolist())
    ]
    for (_, shown), share in zip(rows, 100 * shares, strict=True):
        assert float(shown.removesuffix("\N{NO-BREAK SPACE}%")) == pytest.approx(
            share.item(), abs=0.06
        )
    lens = [[cell.text for cell in row] for row in page.select(".lmg-lens tr")]
    assert len(lens) == 2
    likeliest = tokenizer.alphabet[logits.argmax()]
    assert lens[-1][0] == "layer 1"
    assert lens[-1][1].startswith(f"{names.get(likeliest, likeliest)} ")
    written = page.select_one(".lmg-text b").text
    assert page.select_one(".lmg-text").text == TEXT + written
    assert len(written) == 20
    assert set(written) <= set(tokenizer.alphabet)
    assert f"After “{TEXT}”" in view.alt
    weights = torch.tensor(view.data["weights"]).view(2, 3, len(TEXT))
    wanted = [w[0, :, -1] for w in model.attentions(torch.tensor([tokenizer.encode(TEXT)]))]
    torch.testing.assert_close(weights, torch.stack(wanted), atol=6e-4, rtol=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "1 to 8 tokens.* these are 0"), ("a" * 9, "these are 9"), ("z", "z")],
)
def test_what_cannot_be_begun_with_is_told(gpt, text, message):
    with pytest.raises(ValueError, match=message):
        views.generator(text, *gpt)


@pytest.mark.parametrize("temperature", [0, -1, float("inf"), float("nan")])
def test_a_temperature_that_divides_nothing_is_told(gpt, temperature):
    with pytest.raises(ValueError, match="temperature must be above 0"):
        views.generator(TEXT, *gpt, temperature=temperature)


def settled(vocab_size, **options):
    torch.manual_seed(0)
    sizes = {"context": 16, "layers": 2, "heads": 2, "d_model": 8}
    return GPT(GPTConfig(vocab_size, **sizes | options)).eval()


def test_pieces_of_words_are_shown_and_do_not_run():
    tokenizer = WrappedTokenizer(byte_level_tokenizer())
    model = settled(tokenizer.vocab_size + 4)  # a table may have been filled up
    with torch.no_grad():
        model.tokens.weight.mul_(50)
    line = "Shall <I> compare"
    view = views.generator(line, tokenizer, model, count=20)
    message = "does not run in the page: it reads 300 pieces of words, not characters"
    page = bs4.BeautifulSoup(view._repr_html_(), "html.parser")
    assert message in page.text
    assert message in repr(view)
    text = page.select_one(".lmg-text")
    assert text.text.startswith(line)
    assert not {*view.stored, *view.alt} & {*map(chr, range(32))} - {"\n"}
    rows = [row.find_all(["th", "td"]) for row in page.select(".lmg-bars tr")]
    assert len(rows) == 10
    with torch.no_grad():
        rounded = model.half().float()
        logits = rounded(torch.tensor([tokenizer.encode(line)]))[0, -1]
    best = tokenizer.decode([logits.argmax().item()]).replace(" ", "·")
    assert rows[0][0].text == best
    assert len(page.select(".lmg-lens tr")) == 2


def test_pieces_of_the_same_name_each_have_a_bar():
    """A byte that is no whole character is shown as �, and there are many such bytes."""
    tokenizer = WrappedTokenizer(byte_level_tokenizer())
    model = settled(tokenizer.vocab_size)
    parts = [i for i in range(300) if tokenizer.decode([i]) == "\ufffd"]
    assert len(parts) > 9
    end = model.norm(states(model, torch.tensor([tokenizer.encode("day")]))[-1, 0, -1])
    with torch.no_grad():
        model.tokens.weight[parts] += end  # they are the likeliest
    view = views.generator("day", tokenizer, model, count=3)
    page = bs4.BeautifulSoup(view.stored, "html.parser")
    names = [row.th.text for row in page.select(".lmg-bars tr")]
    assert names == ["\ufffd"] * 10


def test_what_is_too_large_or_looks_up_n_grams_says_so():
    tokenizer = CharTokenizer("ab< >\n")
    large = settled(6, layers=1, heads=1, d_model=1700)
    mib = 2 * large.parameters_count / 2**20
    assert mib > 64
    view = views.generator("ab", tokenizer, large, count=1)
    assert f"in the page: its weights are {mib:.0f} MiB to load." in repr(view)
    view = views.generator("ab", tokenizer, settled(6, ngrams=(5,)), count=1)
    assert "in the page: it looks n-grams up in tables." in repr(view)
    assert views.MIME not in view._repr_mimebundle_()
    view = views.generator("ab", tokenizer, settled(6, norm="rms", bias=False), count=1)
    assert "in the page: it has norm = rms and it has bias = False." in repr(view)
