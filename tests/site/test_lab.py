"""JupyterLab itself: chapters read as on the site and run, and work is saved."""

import os
import socket
import subprocess
import sys
import time

import nbformat
import pytest
from playwright.sync_api import expect

from lmbook.work import bring
from patience import PATIENCE

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CELL = """\
import numpy as np
import plotly.graph_objects as go
from IPython.display import display
from lmcourse import views

even, text = np.full((2, 3, 3), 1 / 3), {"tokens": ["a", "<b>", "c"], "alt": "Even."}
display(views.head_view([even], **text), views.model_view([even], **text))
display(views.attention_heads(even, **text))
views.plot(go.Figure(go.Bar(x=["<b>", "c"], y=[1, 2])), alt="Two bars.")"""
START = 1000 * PATIENCE  # milliseconds
MARKS = {
    "#bertviz-attention line": 2 * 3 * 3,
    "rect.attn_background": 2,
    "canvas": 3,
    ".barlayer .point": 2,
}
PROSE = "p:has(.pasted-text):not(:has(.math))"  # with numbers; how formulas read differs
CHAPTER, TASK = "attention", 'exercises.check("attention.all_at_once", attend)'
ANSWER = """\
def attend(query, key, value):
    weights = (query @ key.mT / math.sqrt(key.shape[-1])).softmax(-1)
    return weights @ value, weights
"""


@pytest.fixture(scope="module")
def jupyter(site, tmp_path_factory):
    """A JupyterLab of its own as `make lab` starts it: its address, the reader's folder."""
    tmp_path = tmp_path_factory.mktemp("jupyter")
    work = tmp_path / "work"
    assert bring(site / "notebooks", work) == []
    views = nbformat.read(work / f"{CHAPTER}.ipynb", as_version=4)  # for its kernel
    views.cells = [nbformat.v4.new_code_cell(CELL)]
    nbformat.write(views, work / "views.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": work,
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "IdentityProvider.token": "secret",
    }
    own = {name: str(tmp_path / name) for name in ("JUPYTER_CONFIG_DIR", "IPYTHONDIR")}
    arguments = [f"--{name}={value}" for name, value in options.items()]
    command = [sys.executable, "-m", "jupyterlab", *arguments]
    log = tmp_path / "log"
    with log.open("w") as errors:
        server = subprocess.Popen(command, env=os.environ | own, stderr=errors)
    while "is running at" not in log.read_text():
        assert server.poll() is None, log.read_text()
        time.sleep(0.1)
    yield f"http://127.0.0.1:{port}", work
    server.kill()
    server.wait()


@pytest.fixture
def opened(request, jupyter, browser):
    """A page with a notebook of that JupyterLab, which must ask no other host."""
    address, _ = jupyter
    page, asked = browser.new_page(), []
    page.set_default_timeout(START)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/lab/tree/{request.param}.ipynb?reset&token=secret", timeout=START)
    # What is run before the kernel is there is not run at all.
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=START)
    yield page
    assert [u for u in asked if not u.startswith((address, "data:", "blob:"))] == []
    page.close()


def run(page, cell):
    """Run a cell of code."""
    cell.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")


@pytest.mark.parametrize("opened", ["views"], indirect=True)
def test_views_draw_at_the_first_run(opened):
    run(opened, opened.locator(".jp-Notebook .jp-CodeCell").first)
    for selector, count in MARKS.items():
        marks = opened.locator(f".jp-OutputArea-output {selector}")
        marks.nth(count - 1).wait_for(state="attached", timeout=START)
        assert marks.count() == count, selector
    labels = opened.locator(".xaxislayer-above text").all_text_contents()
    assert labels == ["<b>", "c"]


def plain(text):
    """Return words as a browser shows them, quotation marks as they are typed."""
    return " ".join(text.translate(str.maketrans("“”‘’", "\"\"''")).split())


@pytest.mark.parametrize("opened", [CHAPTER], indirect=True)
def test_a_chapter_is_there_and_works(opened, browser, server, jupyter):
    reads_as_on_the_site(opened, browser, server)
    checks_a_task_and_saves_its_answer(opened, jupyter)


def reads_as_on_the_site(opened, browser, server):
    page = browser.new_page()
    page.set_default_timeout(START)
    page.goto(f"{server}/{CHAPTER}.html")
    paragraphs = {plain(text) for text in page.locator(PROSE).all_text_contents()}
    drawn = page.locator("svg.lm-drawing").count()
    page.close()
    cells = opened.locator(".jp-MarkdownCell .jp-RenderedMarkdown")
    for _ in range(START // 1000):  # cells are drawn one after the other
        lacks = paragraphs - {
            plain(text) for text in cells.locator("p").all_text_contents()
        }
        if not lacks:
            break
        opened.wait_for_timeout(1000)
    assert len(paragraphs) > 5
    assert not lacks
    drawings = cells.locator("img[src^='data:image/svg']")
    assert drawings.count() == drawn > 0
    for drawing in drawings.all():
        assert drawing.evaluate("i => i.decode().then(() => i.naturalWidth > 0)")
        assert drawing.get_attribute("alt")
    solution = cells.locator("details").filter(has_text="Solution, in words").first
    expect(solution.locator("p").first).to_be_hidden()
    solution.locator("summary").click()
    expect(solution.locator("p").first).to_be_visible()


def checks_a_task_and_saves_its_answer(opened, jupyter):
    cells = opened.locator(".jp-Notebook .jp-CodeCell")
    imports = cells.nth(1)  # folded, below the one that installs
    imports.locator(".jp-InputPlaceholder").click()
    run(opened, imports)
    task = cells.filter(has_text=TASK)
    run(opened, task)
    verdict = task.locator(".jp-OutputArea-output")
    expect(verdict).to_contain_text("not tried yet", timeout=START)
    task.locator(".cm-content").click()
    opened.keyboard.press("Control+a")
    opened.keyboard.insert_text(f"{ANSWER}\n\n{TASK}")
    opened.keyboard.press("Shift+Enter")
    expect(verdict).to_contain_text("✓", timeout=START)
    opened.keyboard.press("Control+s")
    expect(opened.locator(".jp-mod-dirty")).to_have_count(0, timeout=START)
    saved = (jupyter[1] / f"{CHAPTER}.ipynb").read_text()
    assert "weights = (query @ key.mT" in saved
