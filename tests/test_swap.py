"""The whole book on another BERT: theorems hold, findings may not, the site is whole."""

import os
import shutil
import subprocess
import sys

import pytest
from bs4 import BeautifulSoup
from transformers import AutoTokenizer

from berts import SMALL, write_bert
from lmbook.execute import chapters, stored
from lmbook.findings import errors, is_finding
from lmbook.keys import ROOT
from lmcourse.models import default_checkpoint

FOLDER = "_build/swap"  # below ROOT: what the last build has executed is used again


@pytest.fixture(scope="module")
def swapped():
    """The site's folder, and what the build said."""
    folder = ROOT / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    write_bert(
        folder / "small", AutoTokenizer.from_pretrained(default_checkpoint()), **SMALL
    )
    if (ROOT / "_build" / "executed").is_dir():
        shutil.copytree(ROOT / "_build" / "executed", folder / "executed")
    # A relative folder is the reader's, seen from where `make` runs.
    choices = {"LMCOURSE_BERT": f"{FOLDER}/small", "LMBOOK_BUILD": FOLDER}
    done = subprocess.run(
        [sys.executable, "-m", "lmbook.build"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | choices,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMBOOK_BUILD", FOLDER)
        yield folder / "html", {path.stem: stored(path.stem) for path in chapters()}
    shutil.rmtree(folder)


def findings(notebook):
    return [cell for cell in notebook.cells if is_finding(cell)]


@pytest.mark.slow
def test_the_whole_book_builds_on_another_bert(swapped):
    html, pages = swapped
    named = {page: note.metadata.lmbook.models for page, note in pages.items()}
    asked = {page for page, models in named.items() if "LMCOURSE_BERT" in models}
    assert asked >= {"tokenization", "embeddings", "attention", "bert-internals"}
    assert {named[page]["LMCOURSE_BERT"] for page in asked} == {"small"}, named
    failed = [c for page in asked for c in findings(pages[page]) if errors(c)]
    assert failed  # its weights are random
    assert {errors(cell)[0].ename for cell in failed} == {"AssertionError"}
    page = BeautifulSoup((html / "findings.html").read_text("utf-8"), "html.parser")
    rows = page.select("table.lm-findings tbody tr")
    assert len(rows) == sum(len(findings(note)) for note in pages.values())
    marks = [row.select_one(".lm-mark").get_text() for row in rows]
    assert marks.count("✗ not so") == len(failed)
    text = " ".join(page.select_one("article").get_text().split())
    assert f"{len(rows) - len(failed)} of {len(rows)} findings hold for small" in text


@pytest.mark.slow
def test_pages_that_ask_for_no_bert_are_not_executed_anew(swapped):
    """What a page does not ask for cannot change it; so a swap costs what it must."""
    _, pages = swapped
    for name in ("backpropagation", "transformer-block", "mini-gpt"):
        assert "LMCOURSE_BERT" not in pages[name].metadata.lmbook.asked
