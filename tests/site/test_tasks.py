"""Tasks, choices and drawings in a real browser, on the demonstration's page *tasks*."""

import base64
import json
import re

import pytest

import visits
from lmbook.pages.tasks import VERDICT_SUMMARY
from serving import SITE
from test_browser import DESK, does_not_scroll_sideways

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STORED_VERDICTS = (
    "() => JSON.parse(localStorage.getItem('lmcourse:Inside Language Models'))"
)
KINDS = ["Predict", "Spot the bug", "Build", "Experiment", "Judge"]
# The words of a drawing, and by how much they leave the picture.
DRAWN = """svg => {
  const frame = svg.getBoundingClientRect();
  return Array.from(svg.querySelectorAll("text"), text => {
    const box = text.getBoundingClientRect();
    return {
      text: text.textContent,
      over: Math.max(frame.left - box.left, box.right - frame.right,
                     frame.top - box.top, box.bottom - frame.bottom),
    };
  });
}"""


@pytest.fixture
def tasks(browser, demo_server):
    with visits.visit(browser, f"{demo_server}/tasks.html") as visit:
        yield visit


def options(page):
    return page.locator("#ex-tasks-mean .lm-choose li")


def text(locator):
    """Return all of an element's text, seen or only heard, its white space as one space."""
    return " ".join(locator.text_content().split())


def progress(page):
    return page.locator(".bd-links a", has_text="Tasks and drawings").text_content()


def done(page):
    boxes = page.locator("div.exercise:has(.lm-done input:checked)")
    return boxes.evaluate_all("all => all.map(task => task.id)")


def test_every_kind_has_its_word_and_its_look(tasks):
    titles = tasks.page.locator("div.exercise .admonition-title")
    kinds = titles.locator(".lm-task-kind")
    labels = [text.rstrip(": ").split(" · ") for text in kinds.all_text_contents()]
    assert [kind for kind, _, _ in labels] == KINDS
    assert labels[0][1:] == ["2 minutes", "level 1 of 3"]
    assert labels[3][1:] == ["30 minutes", "level 3 of 3"]
    look = "e => [getComputedStyle(e).color, getComputedStyle(e, '::before').content]"
    looks = [kinds.nth(i).evaluate(look) for i in range(len(KINDS))]
    assert len({colour for colour, _ in looks}) == len({icon for _, icon in looks}) == 5
    whole = r"Exercise [\d.]+ Predict · 2 minutes · level 1 of 3: What is the mean\?"
    assert re.fullmatch(whole, text(titles.first))
    folded = tasks.page.locator("#ex-tasks-line details p.admonition-title")
    look = "all => all.map(e => getComputedStyle(e, '::after').display)"
    assert folded.evaluate_all(look) == ["none", "none"]
    tasks.clean()


def test_on_a_phone_minutes_and_level_stay_in_one_line(browser, demo_server):
    with visits.visit(browser, f"{demo_server}/tasks.html", width=390) as visit:
        heads = visit.page.locator("div.exercise .admonition-title .lm-task-kind")
        boxes = heads.evaluate_all(
            "heads => heads.map(head => head.getBoundingClientRect())"
        )
        assert len(boxes) == len(KINDS)
        assert max(box["height"] for box in boxes) < 1.5 * min(b["height"] for b in boxes)
        sizes = heads.evaluate_all(
            "heads => heads.map(head => parseFloat(getComputedStyle(head).fontSize))"
        )
        assert all(b["height"] < 2 * size for b, size in zip(boxes, sizes, strict=True))
        assert all(box["x"] > 0 and box["right"] < 390 for box in boxes)


def test_what_the_check_says_of_a_starter_is_folded(tasks, demo):
    page = tasks.page
    folds = page.locator("div.exercise details.lm-starter")
    assert folds.locator("summary").all_inner_texts() == 2 * [VERDICT_SUMMARY]
    verdicts = page.locator("div.exercise .lm-verdict")
    assert [verdicts.nth(i).is_visible() for i in range(2)] == [False, False]
    folds.nth(0).locator("summary").focus()
    page.keyboard.press("Enter")
    assert text(verdicts.nth(0)).startswith("✗ attention.merge_heads: the heads are added")
    folds.nth(1).locator("summary").click()
    assert text(verdicts.nth(1)) == "○ attention.merge_heads: not tried yet."
    assert "lm-untried" in verdicts.nth(1).get_attribute("class")
    colours = [verdicts.nth(i).evaluate("e => getComputedStyle(e).color") for i in range(2)]
    assert colours[0] != colours[1]
    saved = json.loads((demo / "notebooks" / "executed" / "tasks.ipynb").read_text("utf-8"))
    shown = [c["outputs"] for c in saved["cells"] if "merge_heads" in "".join(c["source"])]
    for (output,) in shown:
        assert set(output["data"]) == {"text/html", "text/plain"}
        html, plain = (
            "".join(output["data"][f"text/{form}"]) for form in ("html", "plain")
        )
        assert html.startswith(f"<details><summary>{VERDICT_SUMMARY}</summary>")
        assert plain == f"{VERDICT_SUMMARY} Run it."
    tasks.clean()


def test_a_click_on_an_option_tells(tasks):
    page = tasks.page
    assert not page.locator(".lm-told:visible").count()
    options(page).nth(0).click(position={"x": 300, "y": 12})
    assert options(page).nth(0).get_attribute("data-verdict") == "wrong"
    message = text(options(page).nth(0).locator(".lm-told"))
    assert message == "Not this one: that would be the mean of the columns."
    assert text(page.locator("#ex-tasks-mean [role=status]")) == message
    assert done(page) == []
    options(page).nth(2).locator("button").click()
    message = text(options(page).nth(2).locator(".lm-told"))
    assert message.startswith("Not this one: All the numbers together have one mean; here")
    options(page).nth(1).locator("button").click()
    assert text(options(page).nth(1).locator(".lm-told")) == "Right."
    buttons = options(page).locator("button")
    pressed = buttons.evaluate_all("all => all.map(e => e.getAttribute('aria-pressed'))")
    assert pressed == ["false", "true", "false"]
    assert done(page) == ["ex-tasks-mean"]
    tasks.clean()


def test_keys_answer_and_a_screen_reader_hears_the_option(tasks):
    page = tasks.page
    options(page).nth(0).locator("button").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert options(page).nth(1).get_attribute("data-verdict") == "right"
    page.get_by_role("button", name="c one", exact=True).focus()
    page.keyboard.press("Space")
    assert options(page).nth(2).get_attribute("data-verdict") == "wrong"
    box = page.get_by_role("checkbox", name="Done: The mean of the rows")
    box.focus()
    page.keyboard.press("Space")
    assert done(page) == ["ex-tasks-mean", "ex-tasks-rows"]
    assert "(2 of 5 tasks done)" in progress(page)
    page.keyboard.press("Space")  # what is done can be undone
    assert done(page) == ["ex-tasks-mean"]
    assert page.evaluate(STORED_VERDICTS) == {"ex-tasks-mean": "right"}
    tasks.clean()


def test_verdicts_are_kept_and_forgotten(tasks):
    page = tasks.page
    assert "(0 of 5 tasks done)" in progress(page)
    assert not page.locator(".lm-sum").is_visible()
    options(page).nth(1).locator("button").click()
    page.locator("#ex-tasks-good .lm-done input").check()
    assert page.evaluate(STORED_VERDICTS) == {
        "ex-tasks-mean": "right",
        "ex-tasks-good": "done",
    }
    # A task that an earlier edition had.
    label = "'lmcourse:Inside Language Models'"
    progress_json = json.dumps({"ex-tasks-mean": "right", "ex-of-old": "done"})
    page.evaluate(f"progress => localStorage.setItem({label}, progress)", progress_json)
    page.reload()
    assert done(page) == ["ex-tasks-mean"]
    assert options(page).nth(1).get_attribute("data-verdict") == "right"
    assert options(page).nth(0).get_attribute("data-verdict") is None
    page.goto(f"{tasks.origin}/plain.html")
    assert "(1 of 5 tasks done)" in progress(page)
    assert "1 of " in page.locator(".lm-sum").inner_text()

    page.goto(f"{tasks.origin}/tasks.html")
    button = page.get_by_role("button", name="Forget my progress")
    page.once("dialog", lambda dialog: dialog.dismiss())
    button.click()
    assert done(page) == ["ex-tasks-mean"]
    page.evaluate("localStorage.setItem('lmcourse:line', 'a private line')")
    page.once("dialog", lambda dialog: dialog.accept())
    button.click()
    assert done(page) == []
    assert page.evaluate("localStorage.getItem('lmcourse:line')") is None
    assert page.evaluate(STORED_VERDICTS) is None
    assert not page.locator(".lm-told:visible").count()
    assert "(0 of 5 tasks done)" in progress(page)
    page.reload()
    assert done(page) == []
    assert tasks.outside == []


BROKEN = ["{", "", "right", "null", "7", '"right"', '["right"]', '{"ex-tasks-mean": {}}']


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_kept_and_broken_counts_as_nothing(tasks, broken):
    page = tasks.page
    label = "lmcourse:Inside Language Models"
    page.evaluate(f"broken => localStorage.setItem({label!r}, broken)", broken)
    page.reload()
    assert done(page) == []
    assert "(0 of 5 tasks done)" in progress(page)
    page.locator("#ex-tasks-good .lm-done input").check()
    assert page.evaluate(STORED_VERDICTS) == {"ex-tasks-good": "done"}
    page.reload()
    assert done(page) == ["ex-tasks-good"]
    page.evaluate(f"broken => localStorage.setItem({label!r}, broken)", broken)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Forget my progress").click()
    assert page.evaluate(STORED_VERDICTS) is None
    tasks.clean()


@pytest.mark.parametrize("denied", [False, True])
def test_works_from_a_folder_and_where_nothing_may_be_kept(browser, demo, denied):
    with visits.visit(browser, (demo / "tasks.html").as_uri()) as visit:
        page = visit.page
        if denied:
            page.add_init_script(
                "Object.defineProperty(window, 'lmcourseDenied', {value: true});"
                "for (const name of ['getItem', 'setItem', 'removeItem'])"
                "  Storage.prototype[name] = () => { throw new Error('denied'); };"
            )
            page.reload()
        options(page).nth(1).locator("button").click()
        page.locator("#ex-tasks-good .lm-done input").check()
        assert done(page) == ["ex-tasks-mean", "ex-tasks-good"]
        assert "(2 of 5 tasks done)" in progress(page)
        if not denied:
            visit.clean()


def test_without_scripts_there_is_a_list_and_the_solution(browser, demo_server):
    with visits.visit(browser, f"{demo_server}/tasks.html", javascript=False) as visit:
        page = visit.page
        assert page.locator("#ex-tasks-mean ol.loweralpha > li").count() == 3
        assert not page.locator(".lm-told:visible").count()
        assert page.get_by_text("As many as a row.").is_visible()


@pytest.mark.parametrize(("theme", "width"), [("light", DESK), ("dark", 390)])
def test_answered_tasks_and_drawings_are_legible(browser, demo_server, theme, width):
    address = f"{demo_server}/tasks.html"
    with visits.visit(browser, address, theme=theme, width=width) as visit:
        page = visit.page
        options(page).nth(0).locator("button").click()
        options(page).nth(1).locator("button").click()
        page.locator("#ex-tasks-good .lm-done input").check()
        page.wait_for_function("() => document.querySelector('mjx-container')")
        assert visits.audit(page) == []
        does_not_scroll_sideways(visit)
        for last in page.locator(".lm-steps label:last-of-type").all():
            last.click()  # all is there
        for drawing in page.locator("svg.lm-drawing").all():
            words = drawing.evaluate(DRAWN)
            assert words
            for word in words:
                assert word["over"] <= 0.5, word
        visit.clean()


def test_a_drawing_is_a_numbered_figure_in_the_themes_colours(tasks):
    figure = tasks.page.locator("figure#fig-demo-tokens-drawn")
    assert figure.locator("svg").get_attribute("role") == "img"
    number = figure.locator(".caption-number").inner_text().strip()
    link = tasks.page.locator("a[href='#fig-demo-tokens-drawn'].reference")
    assert link.inner_text() == number
    assert "2 tokens × 5" in figure.locator("svg").text_content()
    ink = "text => getComputedStyle(text).fill"
    light = figure.locator("svg text").first.evaluate(ink)
    tasks.theme("dark")
    assert figure.locator("svg text").first.evaluate(ink) != light
    tasks.clean()


SHOWN = """figure => Array.from(figure.querySelectorAll("[data-step], li"), part =>
  [part.localName, getComputedStyle(part).display !== "none"])"""


def test_a_drawing_is_filled_in_step_by_step_and_is_whole_on_paper(tasks):
    figure = tasks.page.locator("#fig-demo-steps")

    def seen():
        return [name for name, there in figure.evaluate(SHOWN) if there]

    assert seen() == ["li"]
    assert "Two factors." in figure.inner_text()
    figure.locator("input").first.focus()
    tasks.page.keyboard.press("ArrowRight")
    assert seen() == ["li", "text"]
    assert "Their product." in figure.inner_text()
    figure.get_by_text("3", exact=True).first.click()
    assert seen() == ["li", "text", "path", "rect", "path"]  # the grid of the matrix too
    figure.get_by_text("1", exact=True).first.click()
    tasks.page.emulate_media(media="print")
    assert seen() == ["li", "li", "li", "text", "path", "rect", "path"]
    assert not figure.locator("fieldset").is_visible()


def test_a_notebooks_drawing_is_legible_on_its_own(browser, demo):
    notebook = json.loads((demo / "notebooks" / "tasks.ipynb").read_text("utf-8"))
    text = "".join("".join(cell["source"]) for cell in notebook["cells"])
    image = re.search(r"<img [^>]+>", text)[0]
    page = visits.new_page(browser, color_scheme="dark")
    page.set_content(f"<body style='margin: 0; background: #111'>{image}")
    size = page.locator("img").evaluate("i => i.decode().then(() => [i.width, i.height])")
    assert size == [520, 247]
    pixels = page.locator("img").evaluate(
        """image => {
          const canvas = document.createElement("canvas"), box = canvas.getContext("2d");
          [canvas.width, canvas.height] = [image.width, image.height];
          box.drawImage(image, 0, 0, image.width, image.height);
          return Array.from(box.getImageData(200, 5, 1, 1).data);
        }"""
    )
    assert pixels == [255, 255, 255, 255]  # white, as the notebook, whatever the page
    page.close()


def drawings(path):
    """Return the drawings of a notebook's text, each in base 64."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    text = "".join("".join(cell["source"]) for cell in cells)
    return re.findall(r"data:image/svg\+xml;base64,([\w+/=]+)", text)


NOTEBOOKS = sorted((SITE / "notebooks").glob("*.ipynb"))


def test_notebooks_have_drawings():
    assert any(map(drawings, NOTEBOOKS))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_word_leaves_a_drawing_of_a_notebook(browser, path):
    """Its letters are another font's than the site's, and may be wider."""
    page = visits.new_page(browser)
    for code in drawings(path):
        page.set_content(base64.b64decode(code).decode())
        words = page.locator("svg").evaluate(DRAWN)
        assert [word for word in words if word["over"] > 1] == []
    page.close()
