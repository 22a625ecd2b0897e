"""Chapters are executed first, all of them; what was executed is never another thing."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from safetensors.numpy import save_file
from traitlets import Integer

from lmbook.execute import keys
from lmbook.execute import run as execute
from lmbook.execute.run import (
    execute_chapters,
    load_executed_chapter,
    page_notebook,
    restore_outputs,
)
from patience import PATIENCE
from references import write_references

HEADER = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---
# A page
"""
READS = """\
import os, subprocess, sys, time
from pathlib import Path
from lmcourse import wordpiece
from safetensors import safe_open

files = !ls ../data
%matplotlib inline
len?
poems = Path("../data/poems.txt").read_text()
with safe_open("../data/weights.safetensors", "numpy") as file:
    names = list(file.keys())
subprocess.run([sys.executable, "-c", "open('../data/other.txt').read()"], check=True)
try:
    open("../data/absent.txt")
except FileNotFoundError:
    pass
Path("../data/missing.txt").is_file()
verses = sorted(path.name for path in Path("../data/verses").glob("*.txt"))
os.environ.get("LMCOURSE_BERT")
asks = "import os; 'LMCOURSE_DEVICE' in os.environ; os.environ.copy()"
subprocess.run([sys.executable, "-c", asks], check=True)
print(poems, names, "README.md" in files, os.environ["OMP_NUM_THREADS"], sys.shadowed)"""
FINDING = """\
from studies.findings import finding

SAID = {"rival": "a guess", "n": "two numbers", "no_null": "it is a test"}


@finding("What is said of the default model", **SAID)
def built_in(page):
    assert 1 + 1 == 3
"""
MEET = """\
import time
from pathlib import Path

Path("../MINE").touch()
while not Path("../YOURS").exists():
    time.sleep(0.1)"""

LATE = """\
import time

kernel = get_ipython().kernel
publish_status = kernel._publish_status


def print_first(status, *arguments, **named):
    if status == "idle":  # which is sent after the reply to a cell
        time.sleep(0.5)
        print("late", flush=True)
    publish_status(status, *arguments, **named)


kernel._publish_status = print_first"""


def page(book: Path, name: str, *cells: str) -> None:
    """Write a page of some cells."""
    for folder in ("data", "chapters"):
        (book / folder).mkdir(exist_ok=True)
    code = "".join(f"\n```{{code-cell}} python\n{cell}\n```\n" for cell in cells)
    (book / "chapters" / f"{name}.md").write_text(HEADER + code)


def prove(book: Path, name: str, proof: str, module: str, *after: str) -> None:
    """Let a page go on with a proof of a module of its own, and then with some cells."""
    path = book / "chapters" / f"{name}.md"
    code = "".join(f"\n```{{code-cell}} python\n{cell}\n```\n" for cell in after)
    path.write_text(f"{path.read_text()}\n:::{{proof}} {proof}\n:::\n{code}")
    folder = book / "src" / "studies" / name
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "proofs.py").write_text(module)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """Two chapters, executed; each waits for the other to have begun."""
    root = tmp_path_factory.mktemp("book")
    page(root, "reads", MEET.replace("MINE", "a").replace("YOURS", "b"), READS)
    page(root, "plain", MEET.replace("MINE", "b").replace("YOURS", "a"), "1 + 1")
    for name in ("poems.txt", "other.txt", "README.md"):
        (root / "data" / name).write_text("a bee")
    (root / "data" / "verses").mkdir()
    (root / "data" / "lines").mkdir()
    save_file({"bias": np.zeros(2)}, root / "data" / "weights.safetensors")
    (root / "system").mkdir()
    (root / "system" / "sitecustomize.py").write_text(
        "import sys\n\nsys.shadowed = 'both'\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(root / "system"))
        patch.setattr(execute, "cpu_count", lambda: 2)
        assert execute_chapters(root, timeout=PATIENCE) == {}
    return root


def trouble(book: Path, name: str = "reads") -> str:
    wrong = restore_outputs(page_notebook(book / "chapters" / f"{name}.md"), name, book)
    return wrong["what"] if wrong else ""


def test_the_outputs_are_those_of_the_store(book):
    shown = load_executed_chapter("reads", book).cells[-1].outputs[0].text
    assert shown == "a bee ['bias'] True 1 both\n"
    assert (
        load_executed_chapter("plain", book).cells[-1].outputs[0].data["text/plain"] == "2"
    )


def test_what_did_not_change_is_not_executed_again(book, capsys):
    execute.store_path(".ipynb_checkpoints", book).with_suffix("").mkdir()  # by an editor
    before = {p: p.stat().st_mtime_ns for p in (book / "_build" / "executed").iterdir()}
    assert execute_chapters(book) == {}
    assert capsys.readouterr().out.count("from cache") == 2
    assert before == {p: p.stat().st_mtime_ns for p in before}


@pytest.mark.parametrize(
    ("changed", "stale"),
    [
        ("data/poems.txt", True),
        ("data/weights.safetensors", True),  # opened beside Python
        ("data/other.txt", True),  # by a process that the page starts
        ("data/absent.txt", True),  # opened in vain
        ("data/missing.txt", True),  # looked for
        ("data/verses/new.txt", True),  # a folder that was listed
        ("data/lines/new.txt", False),
        ("data/README.md", False),
        ("chapters/plain.md", False),
        ("chapters/reads.md", False),  # prose
    ],
)
def test_files_that_a_page_reads_make_it_stale(book, changed, stale):
    path = book / changed
    old = path.read_bytes() if path.exists() else None
    path.write_bytes((old or b"") + b"\n# more\n")
    try:
        assert bool(trouble(book)) is stale
    finally:
        if old is None:
            path.unlink()
        else:
            path.write_bytes(old)
    assert trouble(book) == ""


@pytest.mark.parametrize(
    ("old", "new"), [("1 + 1", "1 + 2"), ("python\n1", "python\n:tags: [x]\n1")]
)
def test_a_cell_or_its_tags_make_it_stale(book, old, new):
    path = book / "chapters" / "plain.md"
    text = path.read_text()
    path.write_text(text.replace(old, new))
    with pytest.raises(LookupError, match=r"plain .*changed.*make html"):
        load_executed_chapter("plain", book)
    path.write_text(text)


WAYS_TO_ASK = [
    "get('LMCOURSE_GPT')",
    "get('LMCOURSE_GPT', 'none')",
    "get('LMCOURSE_GPT', default='none')",
    "get(key='LMCOURSE_GPT')",
    "__contains__('LMCOURSE_GPT')",
]


@pytest.mark.parametrize("way", WAYS_TO_ASK)
def test_a_variable_is_asked_for_as_python_lets_one_ask(tmp_path, monkeypatch, way):
    monkeypatch.delenv("LMCOURSE_GPT", raising=False)
    ask = [sys.executable, "-c", f"import os; print(os.environ.{way})"]
    plain = subprocess.run(ask, check=True, capture_output=True)
    log = tmp_path / "log"
    watched = execute._kernel_environment(log, tmp_path)
    assert subprocess.run(ask, capture_output=True, env=watched).stdout == plain.stdout
    assert keys.variables_asked_for(log) == ["LMCOURSE_GPT"]


def test_a_file_is_hashed_piece_by_piece(tmp_path):
    """A model's may be larger than memory."""
    size = 2**25
    with (tmp_path / "model.gguf").open("wb") as file:
        file.truncate(size)
    tracemalloc.start()
    try:
        hashes = keys.hash_files(tmp_path, tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert hashes == {"model.gguf": hashlib.sha256(bytes(size)).hexdigest()}
    assert peak < size / 8


@pytest.mark.parametrize(("module", "stale"), [("wordpiece.py", True), ("data.py", False)])
def test_modules_of_the_course_that_a_page_imports(book, monkeypatch, module, stale):
    def changed(root, original=keys.hash_watched_files):
        hashes = original(root)
        (path,) = (p for p in hashes if p.endswith(os.path.join("lmcourse", module)))
        return hashes | {path: "another"}

    monkeypatch.setattr(keys, "hash_watched_files", changed)
    assert bool(trouble(book)) is stale


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        (sys, "version", "4.0"),
        (keys, "installed_packages", lambda: ["torch==99"]),
        (torch.accelerator, "current_accelerator", lambda **_: "cuda"),
    ],
)
def test_the_machine_counts(book, monkeypatch, where, name, value):
    assert trouble(book) == ""
    monkeypatch.setattr(where, name, value)
    assert trouble(book)


@pytest.mark.parametrize("module", ["run.py", "watch/sitecustomize.py"])
def test_what_executes_pages_counts(tmp_path, monkeypatch, module):
    """Of a copy of these modules, one is changed."""
    notebook = new_notebook(cells=[new_code_cell("1 + 1")])
    key = keys.execution_key(notebook)
    copy = tmp_path / "execute"
    shutil.copytree(Path(keys.__file__).parent, copy)
    monkeypatch.setattr(keys, "__file__", str(copy / "keys.py"))
    assert keys.execution_key(notebook) == key
    with (copy / module).open("a") as file:
        file.write("x = 1\n")
    assert keys.execution_key(notebook) != key


@pytest.mark.parametrize("name", keys.VARIABLES)
def test_a_choice_counts_for_a_page_that_asks_for_it(book, monkeypatch, name):
    monkeypatch.setenv(name, "another")
    assert bool(trouble(book)) is (name not in ("LMCOURSE_GPT", "LMCOURSE_TALKER"))
    assert not trouble(book, "plain")


@pytest.mark.parametrize(
    ("name", "model", "file"),
    [
        ("LMCOURSE_BERT", "bert", "bert/model.safetensors"),
        ("LMCOURSE_GPT", "mine.safetensors", "mine.safetensors"),
    ],
)
def test_a_model_of_the_readers_counts_with_its_files(
    tmp_path, monkeypatch, name, model, file
):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("weights")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, model)
    before = keys.hash_reader_settings()
    assert keys.reader_settings() == {name: str(tmp_path / model)}  # kernels run elsewhere
    (tmp_path / file).write_text("others")
    after = keys.hash_reader_settings()
    assert {each for each in after if after[each] != before[each]} == {name}


def test_a_damaged_store_is_no_store(book):
    path = execute.store_path("plain", book)
    whole = path.read_text()
    for damaged in (whole[: len(whole) // 2], "{}", ""):
        path.write_text(damaged)
        assert trouble(book, "plain") == "it was not executed"
    path.write_text(whole)


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """A book with a chapter that is whole and others that are not; what was told."""
    root = tmp_path_factory.mktemp("failing")
    (root / "_build" / "executed").mkdir(parents=True)
    (root / "_build" / "executed" / "gone.ipynb").write_text("of a chapter that was")
    page(root, "raises", "print('before')", "poem = 1\npoem / 0", "print('after')")
    page(root, "dies", "import os\nos._exit(3)")
    poem = "path = '../data/poem.txt'\nopen(path).read()\nopen(path, 'a').write('.')"
    page(root, "moving", poem)
    page(root, "good", "'well'")
    page(root, "finds", "import os\nos.environ.get('LMCOURSE_BERT')")
    prove(root, "finds", "built_in", FINDING)
    (root / "data" / "poem.txt").write_text("a bee")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LMCOURSE_BERT", raising=False)
        failures = execute_chapters(root, timeout=PATIENCE)
        page(root, "hangs", "import time\ntime.sleep(600)")
        failures |= execute_chapters(root, timeout=3, only="hangs")
        yield root, dict(sorted(failures.items()))


def test_all_failures_are_collected(failing, capsys):
    _, failures = failing
    assert sorted(failures) == ["dies", "finds", "hangs", "moving", "raises"]
    assert failures["finds"]["what"] == "cell 2 failed (NotSo)"
    assert failures["moving"]["what"] == "it changed since it was executed"
    assert failures["raises"]["what"] == "cell 2 failed (ZeroDivisionError)"
    assert "poem = 1\npoem / 0\n\n" in failures["raises"]["error"]
    assert "division by zero" in failures["raises"]["error"]
    assert failures["dies"]["what"] == "cell 1 failed (DeadKernelError)"
    assert failures["hangs"]["what"] == "cell 1 failed (CellTimeoutError)"
    execute.print_failures(failures)
    output = capsys.readouterr().out
    assert "--- raises: cell 2 failed" in output
    assert output.endswith("FAILED: dies, finds, hangs, moving, raises\n")


def test_the_others_are_executed_all_the_same(failing):
    root, _ = failing
    assert (
        load_executed_chapter("good", root).cells[-1].outputs[0].data["text/plain"]
        == "'well'"
    )
    names = sorted(path.stem for path in (root / "_build" / "executed").iterdir())
    assert names == ["dies", "finds", "good", "hangs", "moving", "raises"]


def test_a_chapter_that_failed_is_not_executed(failing):
    root, _ = failing
    with pytest.raises(LookupError, match=r"raises .*cell 2 failed .*make html"):
        load_executed_chapter("raises", root)
    with pytest.raises(LookupError, match="make html"):
        write_references(root)


def test_the_reference_of_one_chapter_is_written_alone(failing):
    root, _ = failing
    folder = root / "tests" / "pages" / "notebooks"
    folder.mkdir(parents=True)
    write_references(root, only="good")
    assert [path.name for path in folder.iterdir()] == ["good.ipynb"]
    with pytest.raises(LookupError, match=r"no chapters/nowhere\.md"):
        write_references(root, only="nowhere")


def test_a_failed_chapter_is_tried_again(tmp_path, capsys):
    page(tmp_path, "page", "from pathlib import Path\nassert Path('../there').exists()")
    assert list(execute_chapters(tmp_path)) == ["page"]
    (tmp_path / "there").touch()
    assert execute_chapters(tmp_path) == {}
    assert capsys.readouterr().out.split()[3::4] == ["FAILED", "executed"]


def test_outputs_that_come_late_are_there(tmp_path, monkeypatch):
    """The reply to a cell may come long before what it printed, on a loaded machine."""

    class Impatient(NotebookClient):
        """One that, unless it is told otherwise, does not wait for outputs at all."""

        iopub_timeout = Integer(0)

    monkeypatch.setattr(execute, "NotebookClient", Impatient)
    page(tmp_path, "page", LATE)
    assert execute_chapters(tmp_path, timeout=PATIENCE) == {}
    (output,) = load_executed_chapter("page", tmp_path).cells[-1].outputs
    assert output.text == "late\n"


def test_ctrl_c_ends_it_at_once_and_leaves_nothing(tmp_path):
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: page\n")
    begun = tmp_path / "begun"
    wait = "import os, time\nfrom pathlib import Path\n"
    wait += "Path('../begun.part').write_text(str(os.getpid()))\n"
    wait += "Path('../begun.part').rename('../begun')\ntime.sleep(600)"
    page(tmp_path, "page", wait)
    command = [sys.executable, "-m", "lmbook.build", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + PATIENCE
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, output
    assert "stopped" in output
    assert list((tmp_path / "_build" / "executed").iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)
