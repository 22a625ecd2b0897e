"""Proofs, findings and folded sections in a browser: keys, links, paper, no scripts."""

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
    cell = proofs.locator(".lm-proof .cell").first
    assert not cell.is_visible()
    assert line.bounding_box()["height"] < 40
    line.focus()
    proofs.keyboard.press("Enter")
    assert cell.is_visible()
    assert "a table of what was compared" in cell.locator(".cell_output").inner_text()
    proofs.keyboard.press("Space")
    assert not cell.is_visible()
    said = "When this page was built, 4 statements were checked, 3 of them in 3 proofs."
    assert proofs.locator(".lm-checked").inner_text().startswith(said)


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
    proof = proofs.locator("#finding-in-a-fold-there-is-proof-too")
    assert (
        proof.locator("summary").inner_text() == "✓ checked: In a fold there is proof, too"
    )
    assert not proof.locator("li").first.is_visible()
    proof.locator("summary").click()
    said = [
        "rival: counting on <b>fingers</b>, with len",
        "null: nobody counts",
        "n: 2.0 hands",
    ]
    assert proof.locator(".lm-fields li").all_inner_texts() == said


def test_a_finding_that_does_not_hold_says_so_and_marks_its_prose(proofs):
    line = proofs.locator("#finding-no-other-model-was-chosen > summary")
    assert line.inner_text().strip() == (
        "✗ not so for another-bert: No other model was chosen"
    )
    marked = proofs.locator(".lm-found-with")
    said = "Found with the built-in all-MiniLM-L6-v2; not so for another-bert."
    assert marked.locator(".lm-found-note").all_inner_texts() == [said, said]
    first, second = marked.all_inner_texts()
    assert "The tests build this page" in first
    assert "and more." in first
    assert second.endswith("This is said after the proof. Nothing leads to it.")
    assert "A paragraph between cells" not in first + second
    width = marked.first.evaluate("e => parseFloat(getComputedStyle(e).paddingLeft)")
    assert width >= 8
    line.click()
    cell = proofs.locator("#finding-no-other-model-was-chosen .cell_output")
    assert cell.inner_text().strip().split("\n")[-1] == "AssertionError: a model was chosen"
    holds = proofs.locator("#finding-the-name-of-a-model-is-a-string > summary")
    assert holds.inner_text().startswith("✓ checked: ")


def test_the_list_of_findings_leads_to_each(browser, demo_server):
    with visits.visit(browser, f"{demo_server}/findings.html", width=390) as visit:
        page = visit.page
        assert "1 of 3 findings hold for these models." in page.inner_text("article")
        marks = page.locator("table.lm-findings .lm-mark").all_inner_texts()
        assert marks == ["✓ holds", "✗ not so", "✓ holds", "✗ not so"]
        rows = page.locator("table.lm-findings tbody tr")
        said = ["In a fold there is proof, too", "counting on <b>fingers</b>, with len"]
        said += ["nobody counts", "2.0 hands", "–"]
        assert rows.first.locator("td").all_inner_texts()[:5] == said
        rows.nth(2).locator("a").click()
        page.wait_for_url("**/proofs.html#finding-the-name-of-a-model-is-a-string")
        place = page.locator("#finding-the-name-of-a-model-is-a-string")
        place.locator(".cell").wait_for(state="visible")
        visit.clean()
