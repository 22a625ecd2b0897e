"""The view *whole* in a browser: numbers are PyTorch's, the tour tells the reader's own."""

import re
from functools import cache

import pytest
import torch
from playwright.sync_api import expect

import strange
import visits
from bare import both_ways, served
from lmcourse import llama, views
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.inside import lens, states
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.mini_bert import load_mini_bert
from lmcourse.views.whole import ALIKE
from lmcourse.weights import save_model

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STORE = "gpt"
LINE = "And thou shal"
GAP = "My [MASK]' eyes are nothing like the sun"
BERT = "BERT: hidden word"
TALKER = "Model that talks: next word"


@cache
def gpt():
    tokenizer, model, _ = load_gpt(device="cpu")
    return tokenizer, model.half().float()  # as the site carries it


@cache
def bert():
    tokenizer, model, _ = load_mini_bert()
    return tokenizer, model.half().float()


@cache
def talker():
    return llama.load_talker(device="cpu")


@cache
def view():
    given = {"bert": (GAP, *bert()), "talker": ("The capital of France is", *talker())}
    return views.whole(gpt=(LINE, *gpt()), **given)


def make():
    return view(), {}


def ask(page):
    page.get_by_label("Your line").fill("Love")


def use(page):
    write(page, "Naïve 🦋 " + "x" * 90)
    part(page, "head 1").press("Enter")
    part(page, "neurons").press("Enter")
    page.get_by_text("The numbers").click()
    page.get_by_role("button", name="Take the tour").click()


def part(page, key):
    return page.locator(f"[data-key='{key}']")


def write(page, text):
    """Type a line and wait until the picture shows its last tokens."""
    again(page, lambda: page.get_by_label("Your line").fill(text))


def drawn_anew(page):
    page.wait_for_function(
        "() => !document.querySelector('.lmw-picture > g').seen", timeout=visits.LOAD
    )


def watch_work(page):
    """Note from now on, in the page's ``work``, what is told while the model computes."""
    page.evaluate(
        """() => {
          window.work = [];
          const frame = document.querySelector(".lmw-frame");
          const sentence = document.querySelector(".play-remains");
          new MutationObserver(() => work.push([frame.ariaBusy, sentence.textContent]))
            .observe(sentence, { childList: true });
        }"""
    )


def again(page, act):
    """Do something that asks the model, and wait for what it answers."""
    page.evaluate("document.querySelector('.lmw-picture > g').seen = true")
    act()
    drawn_anew(page)


def numbers(page):
    """Return the rows of the table of numbers of the part that is open."""
    return page.locator(".lmw-inside details tr").evaluate_all(
        "rows => rows.map(row => Array.from(row.cells, cell => cell.textContent))"
    )[1:]


def opened(page, key, layer=None):
    """Open a part by key, and return its numbers."""
    if layer is not None:
        part(page, f"layer {layer}").press("Enter")
    part(page, key).press("Enter")
    return numbers(page)


def number(text):
    return float(re.search(r"[−+]?[\d.]+", text.replace(",", ""))[0].replace("−", "-"))


def drawn(page):
    """What is stored and what is drawn have in common: the answer of the first model."""
    rows = page.locator(".lmw-answer tr")
    if rows.count():
        cells = [row.locator("th, td").all_text_contents() for row in rows.all()[1:6]]
        return [(name, round(number(share))) for name, share in cells]
    return [(name, round(number(share))) for name, _, share in opened(page, "next")[:5]]


def answer(page):
    return {name: number(share) / 100 for name, _, share in opened(page, "next")}


def shown(character):
    return {" ": "·", "\n": "⏎"}.get(character, character)


def same(shares, probs, names):
    """The page's ten likeliest tokens are those, and have these probabilities."""
    best = probs.topk(10)
    for share, i in zip(best.values.tolist(), best.indices.tolist(), strict=True):
        assert shares.get(names[i], 0) == pytest.approx(share, abs=2e-3)


def test_each_part_of_a_typed_line_is_pytorch_s(opened_page):
    page, text = opened_page, "O thou, my lovely boy, wh"
    write(page, text)
    tokenizer, model = gpt()
    ids = torch.tensor([tokenizer.encode(text)])
    names = [shown(c) for c in tokenizer.alphabet]
    with torch.no_grad():
        logits = model(ids)[0, -1]
        layers = lens(model, ids)[1:, 0, -1].softmax(-1)
        attentions = model.attentions(ids)
        stream = states(model, ids)[1:, 0, -1]
    same(answer(page), logits.softmax(-1), names)
    scores = {name: number(score) for name, score, _ in numbers(page)}
    best = int(logits.argmax())
    assert scores[names[best]] == pytest.approx(logits[best].item(), abs=0.01)
    weights = [number(row[-1]) for row in opened(page, "head 2", layer=1)]
    torch.testing.assert_close(
        torch.tensor(weights), attentions[1][0, 2, -1], atol=1e-3, rtol=0
    )
    for row, probs, x in zip(opened(page, "lens"), layers, stream, strict=True):
        assert row[1].split()[0] == names[int(probs.argmax())]
        assert number(row[4]) == pytest.approx(100 * probs[best].item(), abs=0.06)
        assert number(row[5]) == pytest.approx(x.norm().item(), abs=0.06)
    assert [int(number) for _, _, number in opened(page, "tokens")] == ids[0].tolist()


def test_a_neuron_away_changes_what_the_layer_would_say_by_so_much(opened_page):
    page, layer = opened_page, 2
    tokenizer, model = gpt()
    ids = torch.tensor([tokenizer.encode(LINE)])
    write(page, LINE + "?")
    write(page, LINE)
    opened(page, "neurons", layer=layer)
    cells = page.locator(".lmw-rows tbody tr, .lmw-rows > tr").first.locator("th, td")
    neuron, _, value, raised, _ = cells.all_text_contents()
    values = []

    def remove(module, inputs):
        values.append(inputs[0][0, -1, int(neuron)].item())
        changed = inputs[0].clone()
        changed[0, -1, int(neuron)] = 0
        return (changed,)

    before = lens(model, ids)[layer + 1, 0, -1].softmax(-1)
    down = model.blocks[layer].feed_forward.down
    with down.register_forward_pre_hook(remove):
        after = lens(model, ids)[layer + 1, 0, -1].softmax(-1)
    change = before - after
    name, points = raised.split()[:2]
    most = int((change >= ALIKE * change.max()).int().argmax())
    assert number(value) == pytest.approx(values[0], abs=0.06)
    assert name == shown(tokenizer.alphabet[most])
    assert number(points) == pytest.approx(100 * change[most].item(), abs=0.1)


def test_a_gap_is_filled_as_pytorch_fills_it_and_another_token_is_hidden(opened_page):
    page = opened_page
    tokenizer, model = bert()
    names = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    page.get_by_label(BERT).check()
    write(page, "Hope is the [MASK] with feathers")
    ids = tokenizer("Hope is the [MASK] with feathers", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        same(answer(page), model(ids)[0, 4].softmax(-1), names)
        again(page, lambda: part(page, "token 3").press("Enter"))
        ids[0, 3] = tokenizer.mask_token_id
        same(answer(page), model(ids)[0, 3].softmax(-1), names)
    assert part(page, "token 3").get_attribute("aria-label") == "[MASK], the gap"
    again(page, lambda: page.get_by_label("Your line").fill("I died for beauty"))
    assert "The last word is hidden" in page.locator(".play-note").text_content()
    assert part(page, "token 4").get_attribute("aria-label") == "[MASK], the gap"


def test_what_is_stored_is_what_the_page_computes(opened_page):
    page, keys = opened_page, ["next", "lens", "neurons", "norm", "vectors", "head 3"]
    for model, line in (("GPT: next letter", LINE), (BERT, GAP)):
        page.get_by_label(model).check()
        before = {key: opened(page, key) for key in keys}
        again(page, lambda: page.get_by_label("Your line").fill("Love"))
        again(page, lambda line=line: page.get_by_label("Your line").fill(line))
        for key in keys:
            for row, stored in zip(opened(page, key), before[key], strict=True):
                for cell, other in zip(row, stored, strict=True):
                    if re.search(r"\d", other):
                        off = 0.11 if "." in other else 1.0
                        assert number(cell) == pytest.approx(number(other), abs=off)
                    else:
                        assert cell == other


def test_random_weights_say_something_else_and_trained_ones_come_back(opened_page):
    page = opened_page
    before = answer(page)
    worlds = page.get_by_label("Had it learned nothing?")
    again(page, lambda: worlds.select_option("random weights"))
    random = answer(page)
    assert max(random.values()) < max(before.values())
    assert random != before
    (name, share), *_ = before.items()
    sentence = page.locator(".play-remains").text_content()
    assert (
        f"the trained model says “\u2068{name}\u2069” ({100 * share:.0f}\u00a0%)"
        in sentence
    )
    again(page, lambda: worlds.select_option("as it is"))
    assert answer(page) == pytest.approx(before, abs=2e-4)
    assert not page.locator(".play-remains").text_content()


def left(before, now, unit):
    """The sentence that the view has to say of two lists of likely tokens."""
    count = len(set([*before][:5]) & set([*now][:5]))
    some = {0: "none is", 1: "one is"}.get(count, f"{count} are")
    return f"Of its five likeliest {unit}s, {some} left."


def tokens(page):
    """Return the tokens that the picture shows."""
    return [name for _, name, _ in opened(page, "tokens")]


def test_letters_in_another_order_are_read_as_pytorch_reads_them(opened_page):
    """The last letter, after which is asked, stays; the sentence counts what is left."""
    page, text = opened_page, "Shall I compare thee to a su"
    write(page, text)
    before = answer(page)
    worlds = page.get_by_label("Had it learned nothing?")
    again(page, lambda: worlds.select_option("shuffled text"))
    mixed = "".join(tokens(page)).replace("·", " ")
    assert mixed != text
    assert mixed[-1] == text[-1]
    assert sorted(mixed) == sorted(text)
    tokenizer, model = gpt()
    with torch.no_grad():
        probs = model(torch.tensor([tokenizer.encode(mixed)]))[0, -1].softmax(-1)
    now = answer(page)
    same(now, probs, [shown(c) for c in tokenizer.alphabet])
    assert left(before, now, "letter") != left(before, before, "letter")
    assert left(before, now, "letter") in page.locator(".play-remains").text_content()
    write(page, "Rough winds do shake th")  # the trained model is asked of it, too
    (name, share), *_ = likeliest(page, gpt, "Rough winds do shake th")
    sentence = page.locator(".play-remains").text_content()
    assert (
        f"in your order it says “\u2068{name}\u2069” ({100 * share:.0f}\u00a0%)" in sentence
    )
    write(page, "aaa")
    assert "There is no other order" in page.locator(".play-remains").text_content()
    again(page, lambda: worlds.select_option("as it is"))
    assert page.locator(".play-remains").text_content() == ""


def likeliest(page, model, text):
    """Return the likeliest letters of a model after a text, with their probabilities."""
    tokenizer, model = model()
    with torch.no_grad():
        probs = model(torch.tensor([tokenizer.encode(text)]))[0, -1].softmax(-1)
    best = probs.topk(5)
    names = [shown(tokenizer.alphabet[i]) for i in best.indices.tolist()]
    return list(zip(names, best.values.tolist(), strict=True))


def test_around_a_gap_the_words_change_places_and_the_gap_stays(opened_page):
    page, line = opened_page, "Hope is the [MASK] with feathers"
    tokenizer, model = bert()
    names = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    page.get_by_label(BERT).check()
    write(page, line)
    before, order = answer(page), tokens(page)
    worlds = page.get_by_label("Had it learned nothing?")
    again(page, lambda: worlds.select_option("shuffled text"))
    mixed, gap = tokens(page), order.index("[MASK]")
    assert mixed != order
    assert [mixed[i] for i in (0, gap, -1)] == [order[i] for i in (0, gap, -1)]
    assert sorted(mixed) == sorted(order)
    ids = torch.tensor([[int(number) for _, _, number in opened(page, "tokens")]])
    with torch.no_grad():
        same(answer(page), model(ids)[0, gap].softmax(-1), names)
    assert (
        left(before, answer(page), "token") in page.locator(".play-remains").text_content()
    )


def test_the_tour_tells_the_reader_s_own_text_by_keys_and_goes_on_where_it_was_left(
    opened_page,
):
    page = opened_page
    write(page, "Love is not lov")
    page.get_by_role("button", name="Take the tour").press("Enter")
    card = page.get_by_role("group", name="Tour")
    assert card.evaluate("card => card.contains(document.activeElement)")
    texts = []
    for stop in range(1, 11):
        assert card.inner_text().startswith(f"{stop} of 10")
        texts.append(card.inner_text())
        assert page.locator(".lmw-ring").count() == 1
        assert page.locator(".lmw-on").count() >= 1
        if stop < 10:
            page.keyboard.press("ArrowRight")
    (best, share), *_ = answer(page).items()
    assert f"“\u2068{best}\u2069”" in texts[-1]
    assert f"{100 * share:.0f}\u00a0%" in texts[-1]
    assert "15 tokens" in texts[1]
    page.keyboard.press("Escape")  # the focus is in the picture now
    part(page, "next").focus()
    card.get_by_role("button", name="Back").focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Escape")
    assert card.is_hidden()
    assert page.locator(".lmw-ring").count() == 0
    go_on = page.get_by_role("button", name="Go on with the tour: stop 7 of 10")
    assert go_on.evaluate("button => button === document.activeElement")
    go_on.press("Enter")
    assert card.inner_text().startswith("7 of 10")
    again(page, lambda: page.get_by_label("Your line").fill("And thou shal"))
    card.get_by_role("button", name="Next").click()
    assert "“\u2068t\u2069”" in card.inner_text()


def test_the_ring_of_a_stop_lies_around_what_it_speaks_of(opened_page):
    page = opened_page
    page.get_by_role("button", name="Take the tour").click()
    seen = {2: "token 0", 3: "vectors", 7: "neurons", 8: "lens", 9: "norm", 10: "next"}
    for stop in range(1, 11):
        if stop in seen:
            ring = page.locator(".lmw-ring").bounding_box()
            own = part(page, seen[stop]).bounding_box()
            middle = own["x"] + own["width"] / 2, own["y"] + own["height"] / 2
            assert ring["x"] <= middle[0] <= ring["x"] + ring["width"]
            assert ring["y"] <= middle[1] <= ring["y"] + ring["height"]
        if stop < 10:
            page.get_by_role("button", name="Next", exact=True).click()


def test_layers_and_heads_are_opened_by_key_and_keep_the_focus(opened_page):
    page = opened_page
    part(page, "layer 3").focus()
    for key in ("ArrowLeft", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    assert "after layer 1" in page.locator(".lmw-heading").text_content()
    key = page.evaluate("document.activeElement.dataset.key")
    assert key == "layer 1"
    page.get_by_label("open layer").fill("2")
    part(page, "head 1").press("Enter")
    assert page.locator(".lmw-heading").text_content() == "Layer 2, head 1"
    visits.heard(page.locator("[aria-live=polite]"), "Layer 2, head 1")


def test_texts_that_do_not_fit_get_a_clear_word(opened_page):
    page, note = opened_page, opened_page.locator(".play-note")
    # `write` may see the answer to an earlier line: the note is waited for, too.
    write(page, "Naïve love 🦋")
    expect(note).to_contain_text("Left out")
    expect(note).to_contain_text("ï")
    write(page, "x" * 39 + "abc")
    expect(note).to_contain_text("last 40 tokens")
    expect(page.locator("[data-key^='token ']")).to_have_count(40)
    page.get_by_label("Your line").fill("")
    page.get_by_text("Type something").wait_for()
    assert page.locator("[data-key^='token ']").count() == 40  # the picture stays
    page.get_by_label("Your line").fill("🦋")
    page.get_by_text("never read").wait_for()
    page.get_by_text("Nothing is left to read: the picture stays as it was.").wait_for()
    assert page.locator("[data-key^='token ']").count() == 40


STRANGE = {  # what the GPT and the BERT say
    "emoji": ("never read them: “\u2068🦋\u2069”", "[UNK] stands for"),
    "right to left": ("never read them: “\u2068ש\u2069”", "The last word is hidden"),
    "one line of a megabyte": ("for the last 40 tokens", "for the first 38 tokens"),
    "Windows line ends": ("", "The last word is hidden"),
    "a byte order mark": ("“\u2068U+FEFF\u2069”", "The last word is hidden"),
    "Latin-1 letters": ("“\u2068Ü\u2069” “\u2068ü\u2069”", "The last word is hidden"),
    "empty": ("Type something", "Type something"),
    "one letter": ("", "The last word is hidden"),
    "Chinese": ("never read them: “\u2068床\u2069”", "The last word is hidden"),
    "a zero byte": ("“\u2068U+0000\u2069”", "The last word is hidden"),
}


def test_texts_of_all_kinds_are_read_or_told_of(opened_page):
    page = opened_page
    box, note = page.get_by_label("Your line"), page.locator(".play-note")
    for which, model in enumerate(("GPT: next letter", BERT)):
        page.get_by_label(model).check()
        for name, text in strange.TEXTS.items():
            strange.paste(box, text)
            expect(note).to_contain_text(STRANGE[name][which])
            full = page.get_by_text("There is room for 2,000 characters here")
            assert full.is_visible() == (len(text) > 2000)
        # What was pasted last may still be computed, and would be taken for this answer.
        box.fill("Shall I compare")
        shown = page.locator("[data-key^='token ']")
        expect(shown).to_have_count(15 if which == 0 else 5)


def test_one_token_one_layer_and_one_head_are_told_of_as_one(opened_page, tmp_path):
    page = opened_page
    config = GPTConfig(3, 4, 1, heads=1, d_model=8)
    path = tmp_path / "mine.safetensors"
    save_model(path, GPT(config), {"alphabet": "abc", "model": vars(config)})
    page.locator("input[type=file]").set_input_files(path)
    page.get_by_text("This is your model.").wait_for(timeout=visits.LOAD)
    write(page, "b")
    part(page, "tokens").press("Enter")
    expect(page.locator(".lmw-text")).to_contain_text("Your text is 1 token.")
    page.get_by_role("button", name="Take the tour").press("Enter")
    card, texts = page.get_by_role("group", name="Tour"), []
    for _ in range(10):
        texts.append(card.inner_text())
        page.keyboard.press("ArrowRight")
    assert "cut into 1 token. " in texts[1]
    assert "through 1 layer. " in texts[3]
    assert "This model has one head. " in texts[5]


def test_the_readers_model_is_opened_from_a_file_and_the_books_comes_back(
    opened_page, tmp_path
):
    page, alphabet = opened_page, "\n adehlnostuw"
    torch.manual_seed(0)
    config = GPTConfig(len(alphabet), 9, 2, heads=3, d_model=12)
    model = GPT(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.5 * torch.randn_like(weight)
    path = tmp_path / "mine.safetensors"
    save_model(path, model, {"alphabet": alphabet, "model": vars(config)})
    before = answer(page)
    chosen = page.locator("input[type=file]")
    chosen.set_input_files(
        {"name": "a.txt", "mimeType": "text/plain", "buffer": b"no model" * 20}
    )
    page.get_by_text("It does not open: this is no model of the course").wait_for()
    chosen.set_input_files(path)
    page.get_by_text("This is your model.").wait_for(timeout=visits.LOAD)
    assert page.get_by_label("Your line").input_value() == "nd thou shal"[-9:]

    def probs_after(text):
        ids = torch.tensor([[alphabet.index(c) for c in text]])
        with torch.no_grad():
            return model(ids)[0, -1].softmax(-1)

    same(answer(page), probs_after("thou shal"), [shown(c) for c in alphabet])
    write(page, "and the sea was old")
    assert "room for the last 9 tokens" in page.locator(".play-note").text_content()
    same(answer(page), probs_after("a was old"), [*map(shown, alphabet)])
    worlds = page.get_by_label("Had it learned nothing?")
    again(page, lambda: worlds.select_option("random weights"))
    assert "the trained model says" in page.locator(".play-remains").text_content()
    page.get_by_role("button", name="the book’s model again").click()
    assert page.get_by_text("This is your model.").count() == 0
    assert answer(page) == before


def test_the_answer_becomes_part_of_the_text(opened_page):
    page = opened_page
    opened(page, "next")
    again(page, lambda: page.get_by_role("button", name="Append").click())
    assert page.get_by_label("Your line").input_value() == LINE + "t"
    assert page.locator("[data-key^='token ']").count() == len(LINE) + 1


@pytest.fixture
def opened_page(opened):
    """The page of a visit to the view, opened as a file."""
    return opened.page


@both_ways
def test_nothing_comes_before_somebody_asks(opened):
    stores = ("play/gpt/", "play/mini-bert/", "play/talker/")
    assert not any(store in asked for asked in opened.inside for store in stores)


def test_a_page_opened_as_a_file_says_what_the_model_that_talks_needs(opened):
    page = opened.page
    page.get_by_label(TALKER).check()
    assert page.get_by_role("button", name="Load the model").is_disabled()
    assert "make serve" in page.locator(".lmw-offer").text_content()
    page.get_by_label("Your line").fill("The capital of Italy is")
    assert "make serve" in page.locator(".play-note").text_content()
    assert "·Paris" in answer(page)  # what is stored stays


@served
def test_the_model_that_talks_is_loaded_by_a_click_and_read_as_in_python(opened):
    page = opened.page
    page.get_by_label(TALKER).check()
    page.get_by_label("Had it learned nothing?").select_option("random weights")
    page.get_by_text("load it first").wait_for()
    page.get_by_role("button", name="Load the model").click()
    page.get_by_text("The model is here").wait_for(timeout=visits.LOAD)
    assert not page.get_by_text("load it first").is_visible()  # it was done
    again(page, lambda: page.get_by_label("Your line").fill("The capital of Italy is"))
    tokenizer, model = talker()
    ids = tokenizer("The capital of Italy is", return_tensors="pt").input_ids
    with torch.no_grad():
        probs = model(ids, last=True)[0, -1].softmax(-1)
    best = int(probs.argmax())
    trained = answer(page)
    (name, share), *_ = trained.items()
    assert name == "·" + tokenizer.decode(best).strip()
    assert share == pytest.approx(probs[best].item(), abs=0.02)
    worlds = page.get_by_label("Had it learned nothing?")
    watch_work(page)
    again(page, lambda: worlds.select_option("random weights"))
    assert name not in answer(page)
    assert ["true", "Computing …"] in page.evaluate("work")
    expect(page.locator(".lmw-frame")).to_have_attribute("aria-busy", "false")
    expect(page.locator(".play-remains")).to_contain_text("Random weights say")
    again(page, lambda: worlds.select_option("as it is"))
    assert answer(page) == pytest.approx(trained, abs=1e-3)
    page.evaluate("caches.delete('lmcourse-weights')")
    page.evaluate("dispatchEvent(new Event('lmcourse:weights-forgotten'))")
    page.get_by_label("Your line").fill("The capital of Spain is")
    page.get_by_text("load it first").wait_for()
    assert len(page.workers) == 1  # the GPT's
    assert page.get_by_role("button", name="Load the model").is_enabled()
