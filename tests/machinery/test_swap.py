"""The whole book on another BERT and a GPT-2: theorems hold, findings may not."""

import os
import shutil
import subprocess
import sys

import pytest
from bs4 import BeautifulSoup
from transformers import AutoTokenizer

from berts import SMALL, write_bert
from gpts import write_gpt2
from lmbook.execute.keys import ROOT
from lmbook.execute.run import chapter_paths, load_stored_notebook
from lmbook.execute.verdicts import error_outputs, is_finding
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
    odd = {"n_layer": 1, "n_head": 5, "n_embd": 30, "n_positions": 33}
    write_gpt2(folder / "gpt-2", std=0.02, **odd)
    if (ROOT / "_build" / "executed").is_dir():
        shutil.copytree(ROOT / "_build" / "executed", folder / "executed")
    # A relative folder is the reader's, seen from where `make` runs.
    choices = {"LMCOURSE_BERT": f"{FOLDER}/small", "LMCOURSE_GPT": f"{FOLDER}/gpt-2"}
    choices["LMBOOK_BUILD"] = FOLDER
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
        yield (
            folder / "html",
            {path.stem: load_stored_notebook(path.stem) for path in chapter_paths()},
        )
    shutil.rmtree(folder)


def findings(notebook):
    return [cell for cell in notebook.cells if is_finding(cell)]


def asking(pages, choice):
    """Return page → the model's name for those that ask for one."""
    named = {page: note.metadata.lmbook.models for page, note in pages.items()}
    return {page: models[choice] for page, models in named.items() if choice in models}


@pytest.mark.slow
def test_the_whole_book_builds_on_other_models(swapped):
    html, pages = swapped
    berts = asking(pages, "LMCOURSE_BERT")
    assert berts.keys() >= {"tokenization", "embeddings", "attention", "bert-internals"}
    assert {*berts.values()} == {"small"}
    gpts = asking(pages, "LMCOURSE_GPT")
    assert gpts.keys() >= {"inside-gpt", "transformer-block", "play"}
    assert {*gpts.values()} == {"gpt-2"}
    for asked in (berts, gpts):  # their weights are random
        assert [c for page in asked for c in findings(pages[page]) if error_outputs(c)]
    failed = [c for note in pages.values() for c in findings(note) if error_outputs(c)]
    assert {error_outputs(cell)[0].ename for cell in failed} == {"NotSo"}
    page = BeautifulSoup((html / "findings.html").read_text("utf-8"), "html.parser")
    rows = page.select("details.lm-claim[data-kind=finding]")
    assert len(rows) == sum(len(findings(note)) for note in pages.values())
    marks = [row.select_one(".lm-mark").get_text() for row in rows]
    assert marks.count("✗ not so") == len(failed)
    text = " ".join(page.select_one("article").get_text().split())
    assert f"{len(rows) - len(failed)} of {len(rows)} findings hold" in text
    read = (html / "transformer-block.html").read_text("utf-8")
    assert "not so for gpt-2" in read
    assert "does not run in the page" in (html / "play.html").read_text("utf-8")
