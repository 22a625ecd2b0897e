"""The front page: a poem to touch, and the map of the chapters."""

import pytest

import visits
from lmbook.execute.keys import ROOT
from lmbook.pages.course import read_course
from lmbook.pages.course_map import PATH_TITLES
from test_pages import soup

pytestmark = [pytest.mark.browser, pytest.mark.slow]
COURSE = read_course(ROOT)


@pytest.fixture(params=[("light", 1280), ("dark", 390)], ids=str)
def front(request, browser, server):
    theme, width = request.param
    address = f"{server}/index.html"
    with visits.visit(browser, address, theme=theme, width=width) as visit:
        visit.page.locator(".lm-bar").first.wait_for()
        yield visit
        visit.clean()


def chosen(visit):
    """Return the chosen letter's place, its text, and what the panel says is written."""
    letters = visit.page.locator(".lm-verse span")
    classes = letters.evaluate_all("e => e.map(x => x.classList.contains('lm-here'))")
    assert classes.count(True) == 1
    place = classes.index(True)
    written = visit.page.locator(".lm-written .lm-guess")
    assert written.count() == 1
    return place, letters.nth(place).text_content(), written.text_content()


def test_a_letter_tells_what_was_expected_by_pointer_and_by_key(front):
    page = front.page
    first = chosen(front)
    assert first[1] == first[2] == "d"
    assert "A wor" in page.locator(".lm-said").text_content()
    page.locator(".lm-verse span").nth(9).hover()
    place, letter, written = chosen(front)
    assert (place, letter, written) == (9, " ", "space")
    page.locator(".lm-verse span").nth(14).click()
    assert chosen(front) == (14, "↵", "new line")
    shares = page.locator(".lm-bar .lm-share").all_text_contents()
    assert len(shares) == 5
    assert shares[-1] == "under 1\u00a0%"
    slider = page.get_by_role("slider", name="letter by letter")
    slider.press("Home")
    assert chosen(front)[:2] == (0, "A")
    assert slider.get_attribute("aria-valuetext").startswith("A, expected with ")
    slider.press("ArrowRight")
    assert chosen(front)[0] == 1
    slider.press("End")
    assert chosen(front)[1] == "."


def test_the_map_leads_to_every_chapter_by_key(front):
    page = front.page
    boxes = page.locator(".course-map svg a")
    for box in boxes.locator("rect").all():
        room = box.bounding_box()
        assert min(room["width"], room["height"]) >= 24  # large enough to touch
    size = boxes.locator("text").first.evaluate(
        "t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a"
    )
    assert size >= 11
    assert page.locator(".course-map").evaluate(visits.CONTRAST) >= 4.5
    page.wait_for_load_state("networkidle")
    boxes.nth(2).focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{list(COURSE)[2]}.html")


def test_paths_lead_into_the_book_and_end_with_something_to_do():
    for part, path in zip(
        soup("index").select(".lm-paths > div"), PATH_TITLES, strict=True
    ):
        on = [name for name, c in COURSE.items() if path in (*c.paths, "whole")]
        *links, goal = [a["href"] for a in part.select("li a")]
        assert links == [f"{name}.html" for name in on]
        page, _, anchor = goal.partition(".html#")
        assert soup(page).find(id=anchor)


def test_without_scripts_the_poem_is_there_and_coloured(browser, server):
    with visits.visit(browser, f"{server}/index.html", javascript=False) as visit:
        assert visit.page.locator(".lm-verse").inner_text().startswith("A word is dead")
        colours = visit.page.locator(".lm-verse span").evaluate_all(
            "e => e.map(x => getComputedStyle(x).backgroundColor)"
        )
        assert len(set(colours)) > 10


def test_it_opens_with_the_poem_and_shows_no_code():
    article = soup("index").select_one("article")
    after = article.select_one("h1").find_next_sibling()
    assert "lm-poem" in after["class"]
    assert not article.select("div.cell")
