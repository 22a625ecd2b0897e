"""Proofs, findings and folded sections in a browser: keys, links, paper, no scripts."""

import json

import pytest

import visits

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def proofs(browser, demo_server):
    """The page of the demonstration that has each of them."""
    with visits.visit(browser, f"{demo_server}/proofs.html") as visit:
        yield visit.page
        visit.clean()


def is_open(page, selector):
    """Say whether what stands in folds can be seen, and that each of them is open."""
    place = page.locator(selector).first
    place.wait_for(state="visible")  # the address changes after a click
    return place.evaluate("e => !e.closest('details:not([open])')")


def test_a_proof_is_a_line_that_opens_by_key(proofs):
    line = proofs.locator(".lm-proof > summary").first
    assert line.inner_text().strip() == (
        "✓ checked: One and one are two, as sum_of_two says, and <b>nothing</b> else"
    )
    code = proofs.locator(".lm-proof pre").first
    assert not code.is_visible()
    assert line.bounding_box()["height"] < 40
    line.focus()
    proofs.keyboard.press("Enter")
    assert code.is_visible()
    assert "def one_and_one_are_two(page):" in code.inner_text()
    returned = proofs.locator(".lm-proof .lm-fields li").first
    assert returned.inner_text() == "returned sum: 2"
    proofs.keyboard.press("Space")
    assert not code.is_visible()
    summary = "When this page was built, 4 statements were checked, 3 of them in 3 proofs."
    assert proofs.locator(".lm-checked").inner_text().startswith(summary)


LINKS = {
    "place inside": "#demo-inside",
    "Figure": "#fig-demo-folded",
    "by its title": "#demo-fold",
    "longer story": "#demo-fold",
}


def test_a_link_into_a_fold_opens_it(proofs):
    folded = proofs.locator("#fig-demo-folded")
    for text, target in LINKS.items():
        for _ in ("another hash", "the hash as it is"):
            assert not folded.is_visible()
            proofs.locator("article a.reference", has_text=text).first.click()
            assert is_open(proofs, "#fig-demo-folded")
            top = proofs.locator(target).evaluate("e => e.getBoundingClientRect().top")
            assert -1 <= top < 900
            proofs.locator("#demo-fold > summary").click()


def test_an_address_into_a_fold_opens_it(browser, demo_server):
    with visits.visit(browser, f"{demo_server}/proofs.html#demo-inside") as visit:
        assert is_open(visit.page, "#demo-inside")
        visit.clean()


@pytest.mark.parametrize("scripts", [True, False])
def test_they_print_and_open_without_scripts(browser, demo_server, scripts):
    address = f"{demo_server}/proofs.html"
    with visits.visit(browser, address, javascript=scripts) as visit:
        page = visit.page
        figure = page.locator("#fig-demo-folded")
        assert not figure.is_visible()
        page.emulate_media(media="print")
        assert figure.bounding_box()["height"] > 50
        page.emulate_media(media="screen")
        page.locator("#demo-fold > summary").click()
        assert figure.is_visible()


def test_an_opened_proof_shows_what_it_was_held_against(proofs):
    proofs.locator("#demo-fold > summary").click()
    proof = proofs.locator("#in-a-fold-too")
    assert (
        proof.locator("summary").inner_text() == "✓ checked: In a fold there is proof, too"
    )
    assert not proof.locator("li").first.is_visible()
    proof.locator("summary").click()
    fields = [
        "rival: counting on <b>fingers</b>, with len",
        "null: Nobody counts",
        "n: 2.0 hands",
        "returned hands: 2",
    ]
    assert proof.locator(".lm-fields li").all_inner_texts() == fields


def test_a_finding_that_does_not_hold_says_so_and_marks_its_prose(proofs):
    line = proofs.locator("#no-other-model > summary")
    assert line.inner_text().strip() == (
        "✗ not so for another-bert: No other model was chosen"
    )
    marked = proofs.locator(".lm-found-with")
    note = "Found with the built-in all-MiniLM-L6-v2; not so for another-bert."
    assert marked.locator(".lm-found-note").all_inner_texts() == [note, note]
    first, second = marked.all_inner_texts()
    assert "The tests build this page" in first
    assert "and more." in first
    assert second.endswith("This is said after the proof. Nothing leads to it.")
    assert "A paragraph between cells" not in first + second
    width = marked.first.evaluate("e => parseFloat(getComputedStyle(e).paddingLeft)")
    assert width >= 8
    line.click()
    fields = proofs.locator("#no-other-model li").all_inner_texts()
    assert fields[-2:] == [
        'not so: assert not page.name, "a model was chosen": a model was chosen',
        "returned chosen: True",
    ]
    holds = proofs.locator("#the-name-is-a-string > summary")
    assert holds.inner_text().startswith("✓ checked: ")


def test_the_list_of_findings_leads_to_each(browser, demo_server):
    with visits.visit(browser, f"{demo_server}/findings.html", width=390) as visit:
        page = visit.page
        assert "3 of 6 findings hold with these models." in page.inner_text("article")
        marks = page.locator(".lm-claim .lm-mark").all_inner_texts()
        assert marks == ["✓ holds", "✗ not so"] + ["✓ holds", "✗ not so"] * 2
        claim = page.locator(".lm-claim", has_text="In a fold there is proof, too")
        assert not claim.locator("dl").is_visible()
        claim.locator("summary").click()
        terms = ["counting on <b>fingers</b>, with len", "Nobody counts", "2.0 hands"]
        assert claim.locator("dd").all_inner_texts()[:3] == terms
        claim = page.locator(".lm-claim", has_text="The name of a model is a string")
        claim.locator("summary").click()
        claim.locator("a").click()
        page.wait_for_url("**/proofs.html#the-name-is-a-string")
        place = page.locator("#the-name-is-a-string")
        place.locator("pre").wait_for(state="visible")
        visit.clean()


# --- proofs that are placed ---------------------------------------------------------------


@pytest.fixture
def placed(browser, demo_server):
    """The page of the demonstration whose proofs are functions."""
    with visits.visit(browser, f"{demo_server}/placed.html") as visit:
        yield visit.page
        visit.clean()


def test_a_placed_proof_opens_on_what_it_is_and_what_it_returned(placed):
    lines = placed.locator(".lm-proof > summary").all_inner_texts()
    assert [line.strip() for line in lines] == [
        "✓ checked: The mean of numbers is the sum over the count",
        "✓ checked: Most of the numbers are <b>large</b>",
        "✗ not so for another-bert: No other model was chosen here",
    ]
    proof = placed.locator("#most-are-large")
    assert not proof.locator("pre").is_visible()
    proof.locator("summary").click()
    assert proof.locator(".lm-fields li").all_inner_texts() == [
        "rival: a number drawn at random",
        "null: Three times nothing",
        "n: 3 numbers",
        "interval: 50 to 67\N{NO-BREAK SPACE}%",
        "returned share: 0.6666666666666666",
        "returned numbers: 3",
        "returned between: (0.5, 0.6666666666666666)",
    ]
    code = proof.locator("pre").inner_text()
    assert "def most_are_large(page):" in code
    assert "def no_numbers(page):" in code
    summary = (
        "When this page was built, 2 statements were checked, all of them in 2 proofs."
    )
    assert placed.locator(".lm-checked").inner_text().startswith(summary)


def test_the_text_quotes_what_proofs_returned_and_what_is_not_so_is_marked(placed):
    text = placed.inner_text("article")
    assert "The mean of 3 numbers is 2.0." in text
    assert "Most are large, 67\N{NO-BREAK SPACE}%." in text
    marked = placed.locator(".lm-found-with").inner_text()
    assert "The name of a model has letters, which this paragraph leads to: " in marked
    assert "After the heading" not in marked
    denied = placed.locator("#none-was-chosen")
    denied.locator("summary").click()
    failure = 'not so: assert not page.name, "a model was chosen": a model was chosen'
    assert failure in denied.locator("li").all_inner_texts()


def test_notebooks_have_the_numbers_and_not_the_proofs(demo):
    for folder in ("", "executed", "student"):
        text = (demo / "notebooks" / folder / "placed.ipynb").read_text("utf-8")
        cells = json.loads(text)["cells"]
        code = [c["source"] for c in cells if c["cell_type"] == "code"]
        assert len(code) == 2  # what installs, and the lesson
        assert "Most are large, 67\N{NO-BREAK SPACE}%." in "".join(
            line for cell in cells for line in cell["source"]
        )
        assert "proof" not in "".join(map("".join, code))
        assert "{proof}" not in text
