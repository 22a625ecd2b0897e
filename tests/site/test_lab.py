"""JupyterLab itself: a chapter as a notebook, and its first run, with no other host."""

import os
import socket
import subprocess
import sys
import time

import pytest
from playwright.sync_api import expect

from lmbook.pages.drawings import image
from serving import DEMO
from test_execute import HEADER

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
DRAWING = image((DEMO / "_figures" / "every-class.svg").read_text("utf-8"))
START = 120_000  # milliseconds: JupyterLab and a kernel, on a busy machine
CHAPTER = f"""{HEADER}
It is {{glue:text}}`the-name:.2f`.

{DRAWING}

```{{code-cell}} python
{CELL}
```

:::{{exercise-start}} A task
:label: ex-a-task
:::
Which one?
:::{{exercise-end}}
:::
"""
MARKS = {
    "#bertviz-attention line": 2 * 3 * 3,
    "rect.attn_background": 2,
    "canvas": 3,
    ".barlayer .point": 2,
}


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory):
    """The address of a notebook in a JupyterLab of its own."""
    tmp_path = tmp_path_factory.mktemp("jupyter")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "chapter.md").write_text(CHAPTER, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": tmp_path / "root",
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "IdentityProvider.token": "secret",
    }
    own = {name: str(tmp_path / name) for name in ("JUPYTER_CONFIG_DIR", "IPYTHONDIR")}
    arguments = [f"--{name}={value}" for name, value in options.items()]
    command = [sys.executable, "-m", "jupyterlab", *arguments]
    log = tmp_path / "log"
    with log.open("w") as said:
        server = subprocess.Popen(command, env=os.environ | own, stderr=said)
    while "is running at" not in log.read_text():
        assert server.poll() is None, log.read_text()
        time.sleep(0.1)
    yield f"http://127.0.0.1:{port}/lab/tree/chapter.md?token=secret"
    server.kill()
    server.wait()


def test_a_chapter_opens_as_a_notebook_and_its_views_draw_at_the_first_run(
    jupyter, browser
):
    page, asked = browser.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(jupyter)
    code = page.locator(".jp-Notebook .jp-CodeCell .cm-content").first
    code.wait_for(timeout=START)
    cells = page.locator(".jp-MarkdownCell .myst")  # not its source, hidden beside it
    expect(cells.filter(has_text="Which one?")).to_have_count(1, timeout=START)
    for source in (":::", "{glue:text}"):
        expect(cells.filter(has_text=source)).to_have_count(0, timeout=START)
    drawing = page.locator(".jp-MarkdownCell img").first
    assert drawing.evaluate("i => i.decode().then(() => i.naturalWidth > 0)")
    assert drawing.get_attribute("alt").startswith("Every class of a drawing")
    # What is run before the kernel is there is not run at all.
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=START)
    code.click()
    page.keyboard.press("Shift+Enter")
    for selector, count in MARKS.items():
        marks = page.locator(f".jp-OutputArea-output {selector}")
        marks.nth(count - 1).wait_for(state="attached", timeout=START)
        assert marks.count() == count, selector
    labels = page.locator(".xaxislayer-above text").all_text_contents()
    assert labels == ["<b>", "c"]
    here = jupyter.partition("/lab")[0]
    assert [url for url in asked if not url.startswith((here, "data:", "blob:"))] == []
    page.close()
