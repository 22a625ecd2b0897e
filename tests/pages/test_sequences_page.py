"""What the page *sequences* says, beside what its own cells assert."""

import ast
import re

from chapters import CHAPTERS, page_code


def chronology():
    """Return the rows of the page's table."""
    code = page_code("sequences")
    return ast.literal_eval(re.search(r"^CHRONOLOGY = (\[.*?^\])", code, re.M | re.S)[1])


def test_every_row_of_the_chronology_has_its_source_of_that_year():
    entries = (CHAPTERS / "references.bib").read_text(encoding="utf-8").split("\n@")
    by_key = {entry.partition("{")[2].partition(",")[0]: entry for entry in entries}
    rows = chronology()
    assert len(rows) >= 12
    for year, name, kind, key in rows:
        assert re.search(rf"year\s*=\s*\{{{year}\}}", by_key[key]), name
        assert kind in ("count", "window", "recur", "attend")


def test_every_source_of_the_chronology_is_cited_on_the_page():
    text = (CHAPTERS / "sequences.md").read_text(encoding="utf-8")
    citations = re.findall(r"\{cite(?::t)?\}`([^`]+)`", text)
    cited = set(re.findall(r"\w+", " ".join(citations)))
    assert {key for *_, key in chronology()} <= cited


def test_the_alternative_text_of_the_time_line_names_every_year():
    text = (CHAPTERS / "sequences.md").read_text(encoding="utf-8")
    alt = next(line for line in text.splitlines() if 'alt: "A time line' in line)
    assert {str(year) for year, *_ in chronology()} == set(re.findall(r"\d{4}", alt))
