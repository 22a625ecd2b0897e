"""Codes of a class in a browser, on the demonstration's page *tasks*."""

import pytest

import visits
from lmcourse.exercises.codes import class_code

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TASK = "ex-tasks-mean"


def codes(letters):
    return [class_code(TASK, letter) for letter in letters]


@pytest.fixture(params=["http", "file"])
def page(browser, demo, demo_server, request):
    place = demo_server if request.param == "http" else demo.as_uri()
    with visits.visit(browser, f"{place}/tasks.html") as visit:
        yield visit.page
        visit.clean()


def press(page, letter):
    name = f"#{TASK} .lm-choose li >> nth={'abc'.index(letter)}"
    page.locator(name).locator("button").click()


def code(page):
    return page.locator(f"#{TASK} .lm-code code")


def open_class(page):
    page.locator(f"#{TASK} .lm-class summary").click()
    return page.get_by_label("Codes of the class").first


def counts(page):
    rows = page.locator(f"#{TASK} .lm-class tr")
    return [
        [cell.strip() for cell in row.locator("th, td").all_text_contents()]
        for row in rows.all()
    ]


def status(page):
    return page.locator(f"#{TASK} .lm-class [aria-live]").text_content()


def problems(page):
    return page.locator(f"#{TASK} .lm-class li").all_text_contents()


def test_the_first_answer_has_the_code_that_python_gives_it(page):
    assert not code(page).count()
    press(page, "c")
    assert code(page).text_content() == class_code(TASK, "c")
    press(page, "b")  # the right one, after the verdict
    assert code(page).text_content() == class_code(TASK, "c")
    assert "your first answer, c" in page.locator(f"#{TASK} .lm-code").text_content()


def test_thirty_codes_become_a_distribution(page):
    given = codes("b" * 15 + "a" * 9 + "c" * 6)
    open_class(page).fill("\n".join(given))
    assert status(page).startswith("30 answers.")
    assert problems(page) == []
    assert [row[2:] for row in counts(page)] == [
        ["9", "30\u00a0%"],
        ["15", "50\u00a0%"],
        ["6", "20\u00a0%"],
    ]
    assert [row[0][:3] for row in counts(page)] == ["a. ", "b. ", "c. "]
    words = page.locator(f"#{TASK} .lm-choose > ol > li > p").all_inner_texts()
    shown = page.locator(f"#{TASK} .lm-class th p").all_inner_texts()
    assert shown == words  # formulas, too
    assert page.evaluate("document.querySelectorAll('.lm-class th [id]').length") == 0
    # Which is right, it does not tell.
    verdicts = page.locator(f"#{TASK} .lm-choose > ol > li[data-verdict]")
    assert verdicts.count() == 0


def test_codes_come_as_people_send_them(page):
    a, b, c = codes("abc")
    joined, apart = b.replace("-", ""), c.replace("-", " ")
    sent = ["Anna: " + a.upper(), "", f"  {joined}  ", f"B. C.: {apart}."]
    open_class(page).fill("\r\n".join(sent))
    assert problems(page) == []
    assert [row[2] for row in counts(page)] == ["1", "1", "1"]


def test_a_bad_line_is_named_and_the_others_count(page):
    good = codes("ab")
    swapped = good[0][1] + good[0][0] + good[0][2:]
    assert swapped != good[0]
    other = class_code("ex-tasks-good", "a")
    nowhere = class_code("ex-of-another-book", "a")
    beyond = class_code(TASK, "h")
    lines = [good[0], swapped, "k7f", good[1], "k7f-20x", other, nowhere, beyond]
    area = open_class(page)
    area.fill("\n".join(lines))
    assert status(page).startswith("2 answers. 6 lines could not be read")
    messages = problems(page)
    assert messages[0].startswith(f"Line 2: “{swapped}” is mistyped")
    assert messages[1].startswith("Line 3: “k7f”: 3 characters, and a code has 6")
    assert "Line 5" in messages[2]
    assert "no code has “0”" in messages[2]
    assert messages[3] == f"Line 6: “{other}” is the code of another task (tasks-good)."
    assert messages[4] == f"Line 7: “{nowhere}” is the code of another task."
    assert messages[5] == "and 1 more"
    area.fill("\n".join([beyond, "<img src=x onerror=alert(1)>"]))
    assert problems(page)[0].endswith("stands for an answer that is not here.")
    assert area.input_value().startswith(beyond)  # nothing is lost
    assert page.locator(f"#{TASK} .lm-class img").count() == 0


def test_a_long_line_is_quoted_in_short_and_stays_in_its_box(page):
    open_class(page).fill("x" * 300 + "\n" + "🦋" * 300)
    quoted = ["x" * 20 + "…", "🦋" * 20 + "…"]
    assert all(
        f"“{start}”" in problem
        for start, problem in zip(quoted, problems(page), strict=True)
    )
    part = page.locator(f"#{TASK} .lm-class")
    assert part.evaluate("part => part.scrollWidth <= part.clientWidth")


def test_keys_and_forgetting(page):
    press(page, "a")
    summary = page.locator(f"#{TASK} .lm-class summary")
    summary.focus()
    page.keyboard.press("Enter")
    area = page.get_by_label("Codes of the class").first
    area.fill(codes("a")[0])
    stored = page.evaluate("JSON.stringify(localStorage)")
    assert codes("a")[0] not in stored
    press(page, "b")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Forget my progress").click()
    assert area.input_value() == ""
    assert status(page) == ""
    assert not page.locator(f"#{TASK} .lm-code").is_visible()
    press(page, "b")
    assert code(page).text_content() == class_code(TASK, "b")


def test_only_predictions_have_a_part_for_a_class(page):
    parts = page.locator(".lm-class").evaluate_all(
        "all => all.map((one) => one.closest('.exercise').classList.contains('predict'))"
    )
    assert parts
    assert all(parts)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_it_is_legible(browser, demo_server, theme):
    with visits.visit(
        browser, f"{demo_server}/tasks.html", width=390, theme=theme
    ) as visit:
        press(visit.page, "a")
        open_class(visit.page).fill("\n".join(codes("aab")))
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
        assert visits.audit(visit.page) == []
        visit.clean()
