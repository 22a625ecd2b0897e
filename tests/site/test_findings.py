"""The page of all claims on the built site: whole, and to be read without scripts."""

import json
import re

import pytest

import visits
from lmbook.execute.keys import ROOT
from lmbook.execute.placed import is_placed_proof
from lmbook.execute.run import load_executed_chapter, load_stored_notebook
from lmbook.execute.verdicts import proof_record
from test_chapters import COURSE, led_to, words
from test_pages import PAGES, soup, source_cells

STUDIES = {path.stem: path for path in (ROOT / "data" / "studies").glob("*.json")}


def claims():
    return soup("findings").select("details.lm-claim")


def sentence(claim):
    return words(claim.select_one(".lm-sentence"))


def fields(claim):
    """Return what a claim opens on, name → words."""
    pairs = zip(claim("dt"), claim("dd"), strict=True)
    return {words(name): words(text) for name, text in pairs}


def placed_findings():
    """Return the findings that the pages place, as their runs recorded them."""
    names = [name for name in COURSE if source_cells(name)]
    cells = (
        cell
        for name in names
        for cell in load_executed_chapter(name).cells
        if is_placed_proof(cell)
    )
    return [record for record in map(proof_record, cells) if record["kind"] == "finding"]


def test_every_finding_and_every_study_is_there_with_its_rival_and_its_null():
    assert len(claims()) == len(STUDIES) + len(placed_findings())
    assert not soup("findings").select(".lm-sort, article button:not(.copybtn)")
    assert all({"Rival", "Null"} <= fields(each).keys() for each in claims())


def test_a_placed_finding_stands_there_as_it_was_run():
    shown = {sentence(each): each for each in claims()}
    placed = placed_findings()
    assert placed
    for record in placed:
        opened = fields(shown[re.sub("[`*]", "", record["sentence"])])
        assert {"Rival", "Null", "Looked at", "Code", "Shown in"} <= opened.keys()
        assert f"def {record['name']}(page" in opened["Code"]


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_told_as_it_is_stored_and_where_it_is_shown(name):
    study = json.loads(STUDIES[name].read_text("utf-8"))
    (claim,) = [each for each in claims() if sentence(each) == study["claim"]]
    terms = fields(claim)
    assert [terms["Rival"], terms["Null"]] == [study["rival"], study["null"]]
    assert terms["Looked at"] == f"{study['n']}; seeds: {len(study['seeds'])}"
    assert ("lm-holds" in claim["class"]) == (study["verdict"] == "holds")
    assert terms["Run by"] == study["command"]
    interval = terms.get("Interval", "").replace("\N{MINUS SIGN}", "-")
    ends = re.findall(r"-?[\d.]+(?:e-?\d+)?", interval)
    assert [float(e) for e in ends] == pytest.approx(study["interval"] or [], rel=0.01)
    read = f"data/studies/{name}.json"
    pages = [*COURSE, *sorted({*PAGES} - {*COURSE})]
    shown = [p for p in pages if source_cells(p) and was_read(p, read)]
    assert led_to(claim) == shown


def was_read(page, file):
    return file in load_stored_notebook(page).metadata.lmbook.reads


# --- in a browser -----------------------------------------------------------------------


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [1400, 390])
def test_claims_are_grouped_by_chapter_or_by_verdict_and_open(browser, site, width):
    """Opened as a file, and by key; nothing is lost on the way."""
    with visits.visit(browser, (site / "findings.html").as_uri(), width=width) as visit:
        page, order = visit.page, ".lm-claim .lm-sentence"
        heads = page.locator(".lm-group > h2")
        before, chapters = page.locator(order).all_inner_texts(), heads.all_inner_texts()
        page.get_by_role("button", name="by verdict").press("Enter")
        after = page.locator(order).all_inner_texts()
        assert sorted(after) == sorted(before)
        assert len(heads.all_inner_texts()) <= 2 < len(chapters)
        for verdict in ("fails", "holds"):
            mixed = page.locator(f".lm-group:has(.lm-{verdict})")
            assert mixed.count() <= 1
        page.get_by_role("button", name="by chapter").press("Space")
        assert page.locator(order).all_inner_texts() == before
        assert heads.all_inner_texts() == chapters
        first = page.locator(".lm-claim").first
        first.locator("summary").press("Enter")
        assert first.locator("dl").is_visible()
        visit.clean()
