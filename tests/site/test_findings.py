"""The table of claims on the built site: whole, sortable, and plain without scripts."""

import json
import re

import pytest

import visits
from lmbook.execute.keys import ROOT
from test_chapters import COURSE, led_to, words
from test_pages import soup, source_cells

STUDIES = {path.stem: path for path in (ROOT / "data" / "studies").glob("*.json")}


def rows():
    return soup("findings").select("table.lm-findings tbody tr")


def test_every_finding_and_every_claim_with_a_rival_is_there():
    claims = 0
    for name in COURSE:
        for cell in source_cells(name):
            tags = {*cell.metadata.get("tags", [])}
            opening = re.match(r"(#.*\n)*", cell.source)[0]
            claims += "proof" in tags and ("finding" in tags or "\n# rival:" in opening)
    assert len(rows()) == claims + len(STUDIES)
    assert not soup("findings").select("table.lm-findings button")  # nor without scripts
    lack = [row for row in rows() if "–" in [td.get_text() for td in row("td")[1:3]]]
    said = words(soup("findings").select_one("article"))
    assert (
        f"Of {len(rows())} claims in all {len(lack)} still lack a rival or a null." in said
    )


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_told_as_it_is_stored_and_where_it_is_shown(name):
    study = json.loads(STUDIES[name].read_text("utf-8"))
    (row,) = [row for row in rows() if words(row.td) == study["claim"]]
    cells = {td["data-label"]: words(td) for td in row("td")}
    assert [cells["Rival"], cells["Null"]] == [study["rival"], study["null"]]
    assert cells["n"] == f"{study['n']}; seeds: {len(study['seeds'])}"
    assert cells["Verdict"].startswith("✓" if study["verdict"] == "holds" else "✗")
    assert study["command"] in cells["Verdict"]
    ends = [float(end) for end in re.findall(r"-?[\d.]+(?:e-?\d+)?", cells["Interval"])]
    assert ends == pytest.approx(study["interval"] or [], rel=0.01)
    code = {page: "\n".join(c.source for c in source_cells(page)) for page in COURSE}
    shown = [page for page in COURSE if f'stored("{name}")' in code[page]]
    assert led_to(row) == shown


# --- in a browser -----------------------------------------------------------------------


def column(page, label):
    return page.locator(f'table.lm-findings td[data-label="{label}"]').all_inner_texts()


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [1400, 390])
def test_a_press_on_a_name_sorts_the_table(browser, site, width):
    """Opened as a file, and by key; what is missing stays last."""
    with visits.visit(browser, (site / "findings.html").as_uri(), width=width) as visit:
        page = visit.page
        for label in ("Claim", "n"):
            before, button = (
                column(page, label),
                page.get_by_role("button", name=label, exact=True),
            )
            button.focus()
            for key, way in (("Enter", "ascending"), ("Space", "descending")):
                page.keyboard.press(key)
                assert page.locator(f"th[aria-sort={way}]").inner_text() == label
                now = column(page, label)
                assert now != before
                assert sorted(now) == sorted(before)
                full = [text for text in now if text != "–"]
                assert now[: len(full)] == full
        numbers = [int(re.match(r"[\d,]+", text)[0].replace(",", "")) for text in full]
        assert numbers == sorted(numbers, reverse=True)
        assert len({*numbers}) > 3
        visit.clean()
