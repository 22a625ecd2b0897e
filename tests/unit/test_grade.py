"""Grading: what submissions do costs their own marks only, and no verdict can be forged."""

import contextlib
import csv
import functools
import os
import re
import signal
import socket
import subprocess
import sys
import time
from argparse import Namespace
from collections import deque, namedtuple
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import cloudpickle
import nbformat
import numpy as np
import psutil
import pytest
import torch
from nbclient.exceptions import CellTimeoutError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from safetensors import SafetensorError
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from lmbook.grade import __main__ as command
from lmbook.grade import as_json, inside, marks, pool, sandbox
from lmbook.grade import judge as judging
from lmbook.grade.judge import NEED_ANSWER, judge
from lmbook.grade.sandbox import PROGRAM, Sandbox, Stopped
from patience import PATIENCE
from shut_in import WHY_NO_SANDBOX, needed, shut_in

START = "import torch\nfrom lmcourse import exercises"
LETTER = "exercises.check('attention.sharper', 'b')"  # right
MERGED = "lambda x: torch.cat([x[:, h] for h in range(x.shape[1])], -1)"
MERGE = f"exercises.check('attention.merge_heads', {MERGED})"  # right, by another route
ADDED = "lambda x: x.sum(1)"
WRONG = f"exercises.check('attention.merge_heads', {ADDED})"

PATCHES = """
from lmcourse.exercises import check
import lmcourse.exercises.answers as answers

exercises.check = lambda name, answer: exercises.Verdict(name, True, "right.")
answers.compare = answers._same = lambda *given, **how: True

def merge_heads(x):
    import gc, sys
    from lmcourse import exercises
    from lmcourse.exercises import answers, attention
    for module in (answers, attention, exercises):
        module.compare = module.expect = module.run = lambda *given, **how: None
    answers._same = lambda *given: True
    exercises.Verdict.__bool__ = lambda self: True
    for each in gc.get_objects():
        if isinstance(each, exercises.Verdict):
            object.__setattr__(each, "ok", True)
    frame = sys._getframe()
    while frame := frame.f_back:
        frame.f_locals.update({"ok": True, "want": x.sum(1)})
    torch.cat = lambda *given, **how: x.sum(1)
    return x.sum(1)
"""

PRINTS = """
import os, sys
verdict = "✓ attention.merge_heads: right."
print(verdict)
for stream in (1, 2):
    os.write(stream, verdict.encode())
with open("grades.csv", "w") as file:
    file.write("prints.ipynb,attention.merge_heads,right,right.,apart")
def merge_heads(x):
    for number in range(3, 20):
        try:
            os.write(number, b"00000000000000000004true")
        except OSError:
            pass
    sys.exit(0)
"""

BOMB = """
import os, time
while True:  # until no more are allowed
    if os.fork() == 0:
        time.sleep(1000)
"""


RIGHT = (
    "def merge_heads(x):\n    return torch.cat([x[:, h] for h in range(x.shape[1])], -1)"
)
# What students do, and what is right in Jupyter: name → cells.
HONEST = {
    "installs": ["!pip install no-such-package -q", "%pip list -q", RIGHT],
    "aliased": [
        "from lmcourse.exercises import check as verify",
        RIGHT,
        "verify('attention.merge_heads', merge_heads)",
    ],
    "named": [
        RIGHT,
        "name = 'attention.' + 'merge_heads'",
        "exercises.check(name=name, answer=merge_heads)",
    ],
    "cached": ["from functools import cache", f"@cache\n{RIGHT}"],
    "cached_helper": [
        "from functools import cache\n@cache\ndef heads(n):\n    return range(n)",
        RIGHT.replace("range(x.shape[1])", "heads(x.shape[1])"),
    ],
    "displays": [RIGHT.replace("return", "display(x.shape); return")],
    "writes_module": [
        f"%%writefile helper.py\nimport torch\n{RIGHT}",
        "from helper import merge_heads",
    ],
    "reads_file": [
        "open('axis.txt', 'w').write('-1')",
        RIGHT.replace(", -1)", ", int(open('axis.txt').read()))"),
    ],
    "recurses": [
        "import sys\nsys.setrecursionlimit(10**5)",
        "def depth(n):\n    return n and depth(n - 1)",
        RIGHT.replace("return", "depth(5000); return"),
    ],
    "patches_library": [
        "torch.lay = lambda parts: torch.cat(parts, -1)",
        RIGHT.replace("torch.cat", "torch.lay").replace(", -1)", ")"),
    ],
    "scripted": [
        "@torch.jit.script\ndef merge_heads(x: torch.Tensor) -> torch.Tensor:\n"
        "    return x.transpose(1, 2).flatten(2)"
    ],
    "logs": [
        "log = open('log.txt', 'w')",
        RIGHT.replace("return", "print(x.shape, file=log); return"),
    ],
    "times": [RIGHT.replace("    return", "    %time y = 1\n    return")],
    "trained_before": [
        "w = torch.ones(2, requires_grad=True)\nw.sum().backward()",
        f"from functools import cache\n@cache\n{RIGHT}",
    ],
    "changes_folder": ["import os\nos.makedirs('deep')\nos.chdir('deep')", RIGHT],
    "asks": ["input('Your name? ')", RIGHT],
    "prints_much": ["print('bee ' * 10**6)", RIGHT],
    "partial": [RIGHT, "import functools\nmerge_heads = functools.partial(merge_heads)"],
    "callable": [
        "class Merge:\n    def __call__(self, x):\n        return f(x)",
        RIGHT,
        "f = merge_heads\nmerge_heads = Merge()",
    ],
    "leaves_threads": [
        "import threading, time\nthreading.Thread(target=time.sleep, args=[99]).start()",
        RIGHT,
    ],
    "redefined_later": [
        RIGHT,
        "exercises.check('attention.merge_heads', merge_heads)\nmerge_heads = None",
    ],
    "exits": [RIGHT, "exercises.check('attention.merge_heads', merge_heads)\nexit()"],
}
QUICK = ("installs", "aliased", "cached", "writes_module", "scripted", "redefined_later")
HUGE = "def merge_heads(x):\n    return [[]] * 40_000_000"


def written(folder: Path, outside: Path, port: int) -> None:
    """Write the submissions, hostile and honest."""
    deletes = f"""
import os, shutil
for path in ({str(outside)!r}, {str(sandbox.ROOT / "data")!r}, "/usr", "/etc"):
    shutil.rmtree(path, ignore_errors=True)
assert not os.path.exists({str(outside)!r})
for path in ({str(sandbox.ROOT / "data" / "README.md")!r}, "/etc/passwd", "/usr/bin/env"):
    try:
        os.remove(path)
    except OSError as error:
        assert error.errno == 30, error  # a file system that is read-only
shutil.rmtree(os.environ["HOME"], ignore_errors=True)
"""
    network = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 5)"
    handed = "\n\nexercises.check('attention.merge_heads', merge_heads)"
    untouched = "exercises.check('attention.sharper', ...)\n"
    untouched += "exercises.check('attention.masked_softmax', lambda scores, mask: ...)"
    together = "from transformers import BertConfig\n"
    together += "exercises.check('bert-internals.small_bert', BertConfig(hidden_size=100))"
    cells = {
        "honest": [LETTER, MERGE],
        "wrong": [WRONG, together, untouched],
        "raises": [
            "import no_such_module",
            LETTER,
            "1 / 0",
            MERGE,
            "import os\nos._exit(0)",
        ],
        "deletes": [LETTER, deletes, network, MERGE],
        "forks": [LETTER, BOMB],
        "prints": [PRINTS + handed],
        "patches": [
            PATCHES + handed.replace("exercises.check", "check"),
            "exercises.check('attention.sharper', 'a')",
        ],
        "huge": [HUGE + handed, LETTER],
        "eats": [LETTER, "kept = []\nwhile True: kept.append(bytearray(2**26))"],
    }
    for name, sources in cells.items():
        write_submission(folder, name, sources)
    write_honest(folder, QUICK)
    (folder / "broken.ipynb").write_text("{")
    (folder / "=1+1<b>.ipynb").write_text('{"cells": [], "nbformat": 4}')


def write_submission(folder: Path, name: str, sources) -> None:
    """Write a submission of cells of code, below a line of the student's."""
    code = [new_code_cell(source) for source in (START, *sources)]
    notebook = new_notebook(cells=[new_markdown_cell("*mine*"), *code])
    nbformat.write(notebook, folder / f"{name}.ipynb")


def write_honest(folder: Path, names) -> None:
    """Write some of the honest submissions."""
    for name in names:
        merge = "exercises.check('attention.merge_heads', merge_heads)"
        cells = [new_code_cell(source) for source in (START, *HONEST[name])]
        last = [] if "check" in "".join(HONEST[name]) else [new_code_cell(merge)]
        file = "ALIASED.IPYNB" if name == "aliased" else f"{name}.ipynb"
        nbformat.write(new_notebook(cells=cells + last), folder / file)


def table(folder: Path, *options: str, cell: int = PATIENCE) -> dict:
    """Grade a folder, a cell in so many seconds; return its rows by submission and task."""
    limits = [f"--cell={cell}", f"--seconds={10 * PATIENCE}", "--memory=2", *options]
    run = [sys.executable, "-m", "lmbook.grade", folder, *limits]
    subprocess.run(run, check=True, timeout=100 * PATIENCE)
    with (folder / "grades.csv").open(encoding="utf-8") as file:
        return {(r["submission"], r["task"]): r for r in csv.DictReader(file)}


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """The table of the honest submissions that `graded` leaves out."""
    folder = tmp_path_factory.mktemp("honest")
    write_honest(folder, HONEST.keys() - {*QUICK})
    return table(folder)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """Grade the submissions at once; return the table, and what came of the world.

    The one that never ends is graded by itself: only its cells have little time.
    """
    folder, outside = (tmp_path_factory.mktemp(name) for name in ("all", "outside"))
    loops = tmp_path_factory.mktemp("loops")
    endless = "import time\nwhile True: time.sleep(0.1)"
    write_submission(loops, "loops", [LETTER, endless, MERGE])
    (outside / "kept.txt").write_text("kept")
    with socket.create_server(("127.0.0.1", 0)) as server:
        written(folder, outside, server.getsockname()[1])
        rows = table(folder) | table(loops, cell=180)
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()  # nobody reached it
    assert (outside / "kept.txt").read_text() == "kept"
    for process in psutil.process_iter(["cmdline"]):  # nothing that was forked is left
        assert not any("/submission/" in word for word in process.info["cmdline"] or ())
    return rows, (folder / "grades.html").read_text("utf-8")


MERGE_ROW, MASKED = "attention.merge_heads", "attention.masked_softmax"


@shut_in
@pytest.mark.slow
@pytest.mark.parametrize(
    ("who", "task", "verdict", "diagnosis"),
    [
        ("honest", "attention.sharper", "right", "right."),
        ("honest", MERGE_ROW, "right", "right."),
        ("honest", MASKED, "not handed in", ""),
        ("wrong", MASKED, "not tried", "not tried yet."),
        ("wrong", "attention.sharper", "not tried", "not tried yet."),
        ("wrong", MERGE_ROW, "wrong", "the heads are added up"),
        ("wrong", "bert-internals.small_bert", "wrong", "12 heads cannot share 100"),
        ("loops", "attention.sharper", "right", ""),
        ("loops", MERGE_ROW, "right", ""),
        ("loops", MASKED, "not handed in", "cell 3 took longer than 180"),
        ("raises", "attention.sharper", "right", ""),
        ("raises", MERGE_ROW, "right", ""),
        ("raises", MASKED, "not handed in", "cell 4 raised ZeroDiv"),
        ("raises", MASKED, "not handed in", "the kernel died in cell 6"),
        ("deletes", MERGE_ROW, "right", ""),
        ("deletes", "attention.sharper", "not handed in", "Network is unreachable"),
        ("forks", "attention.sharper", "right", ""),
        ("forks", MERGE_ROW, "not handed in", "raised BlockingIOError"),
        ("prints", MERGE_ROW, "wrong", ""),
        ("patches", MERGE_ROW, "wrong", "the heads are added up"),
        ("patches", "attention.sharper", "not handed in", ""),
        ("huge", MERGE_ROW, "wrong", "stopped with"),
        ("huge", "attention.sharper", "right", ""),
        ("eats", "attention.sharper", "right", ""),
        ("eats", MERGE_ROW, "not handed in", "raised MemoryError"),
    ],
)
def test_a_submission_gets_its_marks_whatever_the_others_do(
    graded, who, task, verdict, diagnosis
):
    rows = [row for row in graded[0].values() if row["submission"] == f"{who}.ipynb"]
    (row,) = [row for row in rows if row["task"] == task] or rows
    assert row["task"] == task, row
    assert row["verdict"] == verdict, row
    assert diagnosis in row["diagnosis"], row


@shut_in
@pytest.mark.slow
@pytest.mark.parametrize("who", QUICK)
def test_what_is_right_in_jupyter_is_right_here(graded, who):
    name = "ALIASED.IPYNB" if who == "aliased" else f"{who}.ipynb"
    row = graded[0][name, MERGE_ROW]
    assert (row["verdict"], row["judged"]) == ("right", "apart"), row


@shut_in
@pytest.mark.slow
@pytest.mark.steady
@pytest.mark.parametrize("who", sorted(HONEST.keys() - {*QUICK}))
def test_more_of_what_is_right_in_jupyter_is_right_here(honest, who):
    row = honest[f"{who}.ipynb", MERGE_ROW]
    assert (row["verdict"], row["judged"]) == ("right", "apart"), row


@shut_in
def test_the_table_shows_what_is_not_ours_as_text(graded):
    rows, page = graded
    assert rows["broken.ipynb", ""]["verdict"] == "not graded"
    assert rows["'=1+1<b>.ipynb", ""]["verdict"] == "not graded"  # no formula
    assert "=1+1&lt;b&gt;.ipynb" in page
    assert "<b>" not in page
    assert rows["wrong.ipynb", "bert-internals.small_bert"]["judged"] == "together"
    assert {r["judged"] for r in rows.values() if r["task"] == MERGE_ROW} == {"apart", ""}


def test_a_kernel_that_did_not_begin_costs_nobody_a_mark(monkeypatch):
    def run(code, box, limits):
        tried.append(code)
        if len(tried) < 3:
            raise as_json.Failed("RuntimeError: the kernel did not begin: busy")
        return marks.Outcome(["attention.sharper"])

    tried = []
    monkeypatch.setattr(marks, "_run_submission", run)
    limits = Namespace(memory=1, unsafe=True)
    assert marks._grade_in_sandbox([], limits)[0]["verdict"] == "not handed in"
    assert len(tried) == 3


def test_a_file_that_is_no_notebook_says_what_to_hand_in(tmp_path):
    path = tmp_path / "list.ipynb"
    path.write_text("[1, 2]")
    with pytest.raises(ValueError, match="hand in the file that Jupyter saved"):
        marks.read_code(path)


def test_marks_are_written_as_they_come(tmp_path):
    """Ctrl-C, or any error, loses no mark; where nothing can be written nothing is run."""
    row = {"submission": "b.ipynb", "task": "a.b", "verdict": "right"}
    with contextlib.suppress(KeyboardInterrupt), marks.Table(tmp_path) as table:
        table.add([row])
        assert "b.ipynb" in (tmp_path / "grades.part.csv").read_text()
        table.add([row | {"submission": "a.ipynb"}])
        raise KeyboardInterrupt
    text = (tmp_path / "grades.csv").read_text()
    assert text.index("a.ipynb") < text.index("b.ipynb")
    assert not (tmp_path / "grades.part.csv").exists()
    with pytest.raises(OSError, match="nowhere"):
        marks.Table(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["grades.csv", "grades.html"])
def test_an_earlier_table_is_replaced_as_a_whole_and_not_written_over(tmp_path, name):
    """A process that is killed then leaves the table that was there."""
    (tmp_path / name).write_text("the earlier table")
    (tmp_path / "earlier").hardlink_to(tmp_path / name)
    with marks.Table(tmp_path) as table:
        table.add([{"submission": "b.ipynb", "task": "a.b", "verdict": "right"}])
    assert (tmp_path / "earlier").read_text() == "the earlier table"
    assert "b.ipynb" in (tmp_path / name).read_text()


@pytest.mark.parametrize("name", ["grades.csv", "grades.html"])
def test_marks_that_others_may_not_read_stay_so(tmp_path, name):
    (tmp_path / name).write_text("the earlier table")
    (tmp_path / name).chmod(0o600)
    with marks.Table(tmp_path) as table:
        table.add([{"submission": "b.ipynb", "task": "a.b", "verdict": "right"}])
        growing = (tmp_path / "grades.part.csv").stat().st_mode & 0o777
    assert "b.ipynb" in (tmp_path / name).read_text()
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert growing == 0o600 or name != "grades.csv"


def test_where_no_mark_can_be_written_nothing_is_run(monkeypatch, tmp_path, capsys):
    def grade_all(*asked):
        raise AssertionError("a notebook was run")

    write_submission(tmp_path, "one", [LETTER])
    (tmp_path / "grades.csv").mkdir()  # no file, and not to be written to
    monkeypatch.setattr(command, "grade_all", grade_all)
    monkeypatch.setattr("sys.argv", ["grade", str(tmp_path), "--unsafe"])
    assert command.main() == 2
    assert "Nothing was run" in capsys.readouterr().out


def test_the_folder_of_submissions_may_begin_at_home(monkeypatch, tmp_path, capsys):
    """As from the Makefile, whose quotes keep the shell from putting the folder in."""
    write_submission(tmp_path, "one", [LETTER])
    monkeypatch.setenv("HOME", str(tmp_path.parent))
    monkeypatch.setattr(command, "grade_all", lambda paths, how: ())
    monkeypatch.setattr("sys.argv", ["grade", f"~/{tmp_path.name}", "--unsafe"])
    assert command.main() == 0
    assert f"1 notebooks, 0 right answers: {tmp_path}" in capsys.readouterr().out


def test_after_ctrl_c_the_command_says_how_many_are_in_the_table(
    monkeypatch, tmp_path, capsys
):
    def grade_all(paths, how):
        row = {"task": "attention.sharper", "verdict": "right"}
        yield [{"submission": paths[0].name, **row}]
        raise KeyboardInterrupt

    for name in ("one", "two"):
        write_submission(tmp_path, name, [LETTER])
    monkeypatch.setattr(command, "grade_all", grade_all)
    monkeypatch.setattr("sys.argv", ["grade", str(tmp_path), "--unsafe"])
    assert command.main() == 130
    assert "1 of 2 notebooks are in the table" in capsys.readouterr().out
    assert "one.ipynb,attention.sharper,right" in (tmp_path / "grades.csv").read_text()


@pytest.mark.parametrize("fails", [False, True])
def test_how_long_the_recorder_takes_is_nobodys_time(monkeypatch, fails):
    """What records answers has the time that a kernel has to begin, a cell has its own."""
    allowed = []  # seconds, of each cell that is run, the recorder's first

    class Client:
        def __init__(self, notebook, **options):
            pass

        def setup_kernel(self):
            return contextlib.nullcontext()

        def execute_cell(self, cell, number):
            allowed.append(self.timeout)
            if fails:
                raise CellTimeoutError

    monkeypatch.setattr("nbclient.NotebookClient", Client)
    if fails:
        with pytest.raises(RuntimeError, match="the kernel did not begin"):
            inside.Kernel([LETTER], 0)
        return
    _, problems = inside.Kernel([LETTER], 0).run(cell_seconds=1, seconds=100)
    assert allowed == [inside.START_SECONDS, 1]
    assert problems == []


def break_pool(path, folder):
    """Grade a submission; one of them ends the process."""
    if path.name == "breaks.ipynb":
        os._exit(1)
    return [{"submission": path.name, "verdict": "right"}]


def test_a_submission_that_breaks_the_judge_costs_its_own_marks_only(tmp_path):
    """The judge itself reads none of them, by which it could end, too: none is there."""
    paths = [tmp_path / f"{name}.ipynb" for name in ("a", "breaks", "c")]
    rows_of_each = command.grade_all(paths, functools.partial(break_pool, folder=tmp_path))
    rows = {row["submission"]: row for rows in rows_of_each for row in rows}
    assert {n: row["verdict"] for n, row in rows.items()} == {
        "a.ipynb": "right",
        "breaks.ipynb": "not graded",
        "c.ipynb": "right",
    }
    assert rows["breaks.ipynb"]["task"] == ""
    assert "judge's own process" in rows["breaks.ipynb"]["diagnosis"]


def test_the_command_s_own_processes_know_what_they_run(tmp_path):
    """As a program, the package's ``__main__`` is no module that they could import."""
    (tmp_path / "broken.ipynb").write_text("{")
    run = [sys.executable, "-m", "lmbook.grade", tmp_path, "--unsafe"]  # nothing is run
    subprocess.run(run, check=True, timeout=PATIENCE)
    assert "it cannot be read: JSONDecodeError" in (tmp_path / "grades.csv").read_text()


def grade_for_long(path, folder):
    """Grade a submission; all but one take very long. It is told which began and ended."""
    (folder / f"{path.stem}.begun").touch()
    try:
        if path.stem != "quick":
            time.sleep(1000)
    finally:
        (folder / f"{path.stem}.ended").touch()
    return [{"submission": path.name, "verdict": "right"}]


@contextlib.contextmanager
def judging_for_long(folder):
    """Give a judge's process that has graded one submission and begun the next."""
    judging = (
        "import functools, pathlib, test_grade\n"
        f"folder = pathlib.Path({str(folder)!r})\n"
        "paths = [folder / f'{name}.ipynb' for name in ('quick', *'abcdefgh')]\n"
        "how = functools.partial(test_grade.grade_for_long, folder=folder)\n"
        "try:\n"
        "    for rows in test_grade.command.grade_all(paths, how): print(rows[0])\n"
        "except KeyboardInterrupt: print('stopped')\n"
    )
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    judge = subprocess.Popen(
        [sys.executable, "-u", "-c", judging],
        env=os.environ | {"PYTHONPATH": path, "LOKY_MAX_CPU_COUNT": "1"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert "quick.ipynb" in judge.stdout.readline()
        deadline = time.monotonic() + PATIENCE
        while not (folder / "a.begun").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield judge
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(judge.pid, signal.SIGKILL)
        judge.communicate()
    assert {path.stem for path in folder.glob("*.begun")} == {"quick", "a"}
    assert (folder / "a.ended").exists()  # it could tidy up


def test_an_interrupt_of_the_judge_alone_ends_what_runs_and_what_is_queued(tmp_path):
    with judging_for_long(tmp_path) as judge:
        judge.send_signal(signal.SIGINT)
        assert judge.communicate(timeout=PATIENCE)[0] == "stopped\n"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_the_judge_ends_its_processes(tmp_path, how):
    with judging_for_long(tmp_path) as judge:
        its_own = psutil.Process(judge.pid).children(recursive=True)
        judge.send_signal(how)
        _, alive = psutil.wait_procs(its_own, PATIENCE)
        assert its_own
        assert alive == []


def test_a_pool_that_breaks_while_it_is_filled_costs_nobody_marks(tmp_path, monkeypatch):
    """A process may end before the last of many submissions is in the queue."""
    pools = []

    class Pool:
        def submit(self, judge, path):
            if len(pools) == 1 and path.stem != "a":
                raise BrokenProcessPool
            future = Future()
            future.set_result([{"submission": path.name}])
            return future

    @contextlib.contextmanager
    def judges(count):
        pools.append(Pool())
        yield pools[-1]

    monkeypatch.setattr(pool, "_judges", judges)
    how = functools.partial(grade_for_long, folder=tmp_path)
    paths = [tmp_path / f"{name}.ipynb" for name in "abc"]
    rows = [row["submission"] for rows in pool.grade_all(paths, how) for row in rows]
    assert rows == ["a.ipynb", "b.ipynb", "c.ipynb"]


def grade_alone(tmp_path, how, *sources):
    """Grade one notebook of these cells; return its rows by task."""
    path = tmp_path / "one.ipynb"
    cells = [new_code_cell(source) for source in (START, *sources)]
    nbformat.write(new_notebook(cells=cells), path)
    limits = Namespace(cell=PATIENCE, seconds=PATIENCE, memory=1, unsafe=False)
    how = functools.partial(how, folder=tmp_path, limits=limits)
    (rows,) = command.grade_all([path], how)
    return {row["task"]: row for row in rows}


def grade_and_kill(path, folder, limits, times):
    """Grade a submission; in the first ``times`` gradings its sandboxes are killed."""
    marker = folder / f"{times}"
    gradings = len(marker.read_text()) if marker.exists() else 0
    marker.write_text("." * (gradings + 1))

    class Killed(Sandbox):
        def ask(self, *request, **limits):
            while not (family := sandbox._descendants(self.process.pid)):
                time.sleep(0.01)
            family[0].kill()
            return super().ask(*request, **limits)

    marks.Sandbox = Killed if gradings < times else Sandbox
    return marks.grade_submission(path, folder, limits)


@shut_in
def test_a_sandbox_that_was_killed_costs_nobody_a_mark(tmp_path):
    killed_once = functools.partial(grade_and_kill, times=1)
    rows = grade_alone(tmp_path, killed_once, LETTER)
    assert rows["attention.sharper"]["verdict"] == "right"


@shut_in
def test_where_every_sandbox_is_killed_the_table_says_by_what_signal(tmp_path):
    always_killed = functools.partial(grade_and_kill, times=99)
    row = grade_alone(tmp_path, always_killed, LETTER)["attention.sharper"]
    assert row["verdict"] == "not graded"
    assert "signal 9, Killed" in row["diagnosis"]
    assert "more memory" in row["diagnosis"]


@shut_in
def test_an_answer_that_ends_its_own_process_gains_nothing(tmp_path):
    leaves = "import os\nexercises.check('attention.merge_heads', lambda x: os._exit(0))"
    rows = grade_alone(tmp_path, marks.grade_submission, LETTER, leaves)
    assert rows["attention.sharper"]["verdict"] == "right"
    assert rows[MERGE_ROW]["verdict"] == "wrong"
    assert "exit status 0" in rows[MERGE_ROW]["diagnosis"]


def processes_of(folder):
    """Return the processes whose home a folder is."""
    processes = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("HOME") == folder:
                processes.append(process)
    return processes


def test_where_nothing_is_shut_in_the_copies_of_kernels_end_as_well():
    limits = Namespace(cell=PATIENCE, seconds=PATIENCE)
    with Sandbox(4, unsafe=True) as box:
        run = marks._run_submission([START, LETTER], box, limits)
        assert run.answers["attention.sharper"].waits
        copies = processes_of(box.folder.name)
    _, alive = psutil.wait_procs(copies, PATIENCE)
    assert copies
    assert alive == []


# It cannot be pickled, so the copy of the kernel is asked. There it never lets go of
# Python's lock.
ENDLESS = """
import itertools, os
from pathlib import Path
kernel, numbers = os.getpid(), iter([])
def merge_heads(x, held=(number for number in numbers)):
    if os.getpid() != kernel:
        Path({log!r}).write_text(f"{{os.getpid()}} is the copy")
        sum(itertools.count())
    return x
exercises.check('attention.merge_heads', merge_heads)
"""


# As on macOS, where SIGIO does nothing by default.
IGNORES = "import signal\nsignal.SIG_DFL = signal.SIG_IGN"


@pytest.mark.parametrize("before", ["", IGNORES], ids=["here", "as on macOS"])
def test_if_the_judge_is_killed_a_copy_that_computes_ends_where_nothing_is_shut_in(
    tmp_path, before
):
    log = tmp_path / "log.txt"
    write_submission(tmp_path, "one", [before, ENDLESS.format(log=str(log))])
    run = [sys.executable, "-m", "lmbook.grade", tmp_path, "--unsafe"]
    limits = [f"--{limit}={10 * PATIENCE}" for limit in ("cell", "seconds")]
    with subprocess.Popen([*run, *limits]) as judge:
        while not (log.exists() and log.read_text().endswith("copy")):
            assert judge.poll() is None
            time.sleep(0.05)
        copy = psutil.Process(int(log.read_text().split()[0]))
        judge.kill()
    _, alive = psutil.wait_procs([copy], PATIENCE)
    for process in alive:
        process.kill()
    assert alive == []


# --- where there is no sandbox ------------------------------------------------------------


@pytest.fixture
def refused(monkeypatch, tmp_path_factory):
    """Be on a Linux whose kernel refuses namespaces, whatever system this is."""
    programs = tmp_path_factory.mktemp("programs")
    first = programs / sandbox.ENDS_WITH_PARENT[0]
    first.write_text("#!/bin/sh\necho 'unshare failed: not permitted' >&2\nexit 1\n")
    first.chmod(0o755)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)


@pytest.mark.parametrize(
    ("switch", "value", "advice"),
    [
        ("apparmor_restrict_unprivileged_userns", "1", "Ubuntu 24.04"),
        ("unprivileged_userns_clone", "0", "unprivileged_userns_clone=1"),
        ("max_user_namespaces", "0", "max_user_namespaces=10000"),
        ("none of them", "0", "SYS_ADMIN"),
    ],
)
def test_where_the_kernel_refuses_it_says_what_to_do(
    monkeypatch, refused, switch, value, advice
):
    def read_text(path):
        if path.name == switch:
            return f"{value}\n"
        raise FileNotFoundError(path)

    monkeypatch.setattr(sandbox.Path, "read_text", read_text)
    reason = sandbox.why_no_sandbox()
    assert reason.startswith("unshare failed: not permitted. ")
    assert advice in reason


def test_where_programs_of_the_system_are_missing_it_says_what_to_install(
    monkeypatch, refused, tmp_path
):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install util-linux" in sandbox.why_no_sandbox()


@needed
def test_where_it_is_needed_something_can_be_shut_in():
    assert WHY_NO_SANDBOX == ""


def test_where_nothing_can_be_shut_in_nothing_is_graded(
    monkeypatch, refused, tmp_path, capsys
):
    write_submission(tmp_path, "one", [LETTER])
    monkeypatch.setattr("sys.argv", ["grade", str(tmp_path)])
    assert command.main() == 2
    assert "unshare failed: not permitted" in capsys.readouterr().out
    monkeypatch.setattr(sys, "platform", "darwin")
    assert command.main() == 2
    assert "no namespaces on darwin" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["one.ipynb"]


# Runs its arguments as a user who may make no namespace, as on Ubuntu 24.04. The user keeps
# the rights of root in a namespace without which the limit could not be set.
WITHOUT_NAMESPACES = [
    *(
        "unshare",
        "--user",
        "--map-user=1000",
        "--map-group=1000",
        "--keep-caps",
        "sh",
        "-c",
    ),
    'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"',
    "sh",
]


def test_the_command_where_no_namespace_may_be_made_says_what_to_do(tmp_path):
    """Such a process is made for it, unless this one is such a process already."""
    write_submission(tmp_path, "one", [LETTER])
    run = [sys.executable, "-m", "lmbook.grade", str(tmp_path)]
    before = [] if WHY_NO_SANDBOX else WITHOUT_NAMESPACES
    done = subprocess.run(
        [*before, *run], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout.startswith("Submissions cannot be shut in here: ")
    ways = ("sudo make grade", "Grade on Linux", "Docker", "install util-linux")
    assert any(way in done.stdout for way in ways)
    assert "--unsafe" in done.stdout
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["one.ipynb"]


# --- what cannot be graded ----------------------------------------------------------------


LOST = """
class Weights(list):
    def __iter__(self):
        raise OSError("weights.bin is gone")
exercises.check('attention.merge_heads', Weights())
"""
# Its check needs the answer itself, which holds something that is no plain data.
HELD = """
class Static:
    texts = (text for text in [])
    def __init__(self):
        self.held = self.texts
exercises.check('embeddings.static_vectors', Static())
"""


@pytest.fixture(scope="module")
def ungraded(tmp_path_factory):
    """The table of submissions of which something cannot be graded."""
    folder = tmp_path_factory.mktemp("ungraded")
    write_submission(folder, "lost", [LOST, LETTER])
    write_submission(folder, "held", [HELD])
    write_submission(folder, "others", ["1 / 0"])
    with (folder / "large.ipynb").open("wb") as file:
        file.truncate(marks.LARGEST_NOTEBOOK + 1)  # of which no disk holds anything
    return table(folder, "--unsafe")


@pytest.mark.parametrize(
    ("who", "task", "reason"),
    [
        ("lost", MERGE_ROW, "it could not be loaded: OSError: weights.bin is gone"),
        (
            "held",
            "embeddings.static_vectors",
            "the answer could not be taken out of the notebook: TypeError: cannot pickle "
            "'generator' object",
        ),
        ("others", "", "it checks no task of this book; cell 2 raised ZeroDivisionError"),
        ("large", "", "it is larger than 256 MB: clear its outputs"),
    ],
)
@pytest.mark.slow
def test_what_cannot_be_graded_is_in_the_table_with_its_reason(ungraded, who, task, reason):
    row = ungraded[f"{who}.ipynb", task]
    assert row["verdict"] == "not graded", row
    assert reason in row["diagnosis"]


def test_an_answer_that_cannot_be_graded_costs_no_other_mark(ungraded):
    assert ungraded["lost.ipynb", "attention.sharper"]["verdict"] == "right"


# --- one sandbox --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def box():
    with begun(2) as own:
        yield own


@contextlib.contextmanager
def begun(memory, code=()):
    """Give a sandbox of so many GiB, ready for the answers of a notebook of such cells."""
    with Sandbox(memory) as own:
        own.begin("prepare", [*code])
        yield own


def asked(box, function, name="attention.merge_heads", seconds=PATIENCE):
    """Let a function look around in the sandbox; return the verdict of it as an answer."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return judge(name, cloudpickle.dumps(function), box, seconds)


@shut_in
def test_what_is_in_there_has_no_rights_and_sees_nothing_else(box):
    def look(x):
        import os

        status = Path("/proc/self/status").read_text()
        rights = [line.split()[1] for line in status.split("\n") if line[:4] == "CapE"]
        processes = [p for p in os.listdir("/proc") if p.isdigit()]
        unseen = [p for p in ("/home", "/run", "/var", "/sys", "/old") if os.path.exists(p)]
        secret = {"SECRET", "HOME"} & {*os.environ}
        raise LookupError(os.getuid() != 0, {*rights}, processes, unseen, secret)

    expected = "(True, {'0000000000000000'}, ['1'], [], {'HOME'})"
    assert expected in asked(box, look).message


@shut_in
def test_its_folder_and_its_memory_are_bounded(box):
    def fill(x):
        import contextlib
        import os

        large = os.path.join(os.environ["HOME"], "large")
        with contextlib.suppress(OSError), open(large, "wb") as file:
            while file.tell() < 2**29:  # more than there is room for
                file.write(bytes(2**24))
        if os.path.getsize(large) < 2**29:
            os.remove(large)
            bytearray(2**33)

    assert "stopped with MemoryError" in asked(box, fill).message


@shut_in
def test_who_watches_pytorch_is_told(box):
    def by_library(scores, mask):
        return scores.masked_fill(~mask, -torch.inf).softmax(-1)

    verdict = asked(box, by_library, "attention.masked_softmax")
    assert "without PyTorch's softmax" in verdict.message


@shut_in
def test_what_changes_its_inputs_changes_them_here(box):
    def learn(query, key, value, *given):
        from lmcourse.exercises.backpropagation.oracle import descend

        parts, losses = descend([query, key, value], *given)
        query[:] = 0
        return (*parts, losses)

    verdict = asked(box, learn, "backpropagation.learn")
    assert "the arrays that were handed in have changed" in verdict.message


@shut_in
def test_an_answer_that_takes_too_long_or_too_much_is_stopped():
    def long(x):
        while True:
            pass

    def large(x):  # of a kind that no limit of a single process counts
        import mmap

        shared = mmap.mmap(-1, 2**31)
        while shared.write(bytes(2**24)):
            pass

    for function, message in (
        (long, "it took too long"),
        (large, "it used too much memory"),
    ):
        with begun(0.2) as own:
            assert "heads are added up" in asked(own, lambda x: x.sum(1)).message
            verdict = asked(own, function, seconds=3 if function is long else PATIENCE)
            assert message in verdict.message
            assert own.stopped
            with pytest.raises(Stopped):
                own.ask("load", b"", seconds=0.1)


@shut_in
def test_what_the_course_takes_is_not_counted_and_what_an_answer_takes_is():
    """PyTorch takes more memory than there is, and is used; little more may be taken."""

    def large(x):
        return bytearray(2**29)

    with begun(0.05) as own:
        verdict = asked(own, lambda x: torch.cat(x.unbind(1), -1))
        assert verdict.ok, verdict
        assert "stopped with MemoryError" in asked(own, large).message
        assert asked(own, lambda x: torch.cat(x.unbind(1), -1)).ok


@shut_in
def test_what_is_imported_is_imported_before_time_is_counted():
    def look(x):
        already = {*sys.modules}
        x.sum()
        raise LookupError(len({*sys.modules} - already), "colorsys" in already)

    code = [
        "%matplotlib inline\nimport no_such_module",
        "not Python",
        "files = !ls\nimport colorsys",
    ]
    with begun(1, code) as own:
        assert "(0, True)" in asked(own, look).message


@shut_in
@pytest.mark.slow
def test_a_notebook_does_not_wait_for_its_imports(tmp_path):
    """Of a module that nothing else here imports; a right letter is only then handed in."""
    there = f"import sys\nif 'colorsys' in sys.modules:\n    {LETTER}"
    rows = grade_alone(tmp_path, marks.grade_submission, there, "from colorsys import *")
    assert rows["attention.sharper"]["verdict"] == "right"


def test_the_time_of_a_check_is_not_an_answers(monkeypatch):
    now = [0.0]  # seconds
    monkeypatch.setattr(judging.time, "monotonic", lambda: now[0])
    clock = judging.Clock(10)
    with clock as left:
        assert left == 10
        now[0] += 3
    now[0] += 100  # the check computes
    with clock as left:
        assert left == 7


@shut_in
def test_what_fails_before_it_is_shut_in_is_told(monkeypatch):
    monkeypatch.setattr(sandbox, "FOLDER_SIZE", "none")
    with Sandbox(1) as own, pytest.raises(sandbox.Ended, match="mount: "):
        own.ask("load", b"", seconds=PATIENCE)


@shut_in
def test_what_reads_no_request_is_stopped():
    """Here a request of more than fits into a pipe, and nobody who takes it."""
    with Sandbox(1) as own:
        for each in [own.process, *sandbox._descendants(own.process.pid)]:
            each.send_signal(signal.SIGSTOP)
        with pytest.raises(Stopped, match="it took too long"):
            own.ask("load", bytes(2**22), seconds=1)
        assert own.stopped


# Replies at once to one request, with a text of so many letters.
LARGE_REPLY = """
import pickle, sys
pickle.load(sys.stdin.buffer)
sys.stdout.write(f'{{{size} + 2:020d}}"{{"a" * {size}}}"')
"""


class Counted(bytes):
    """Bytes that were read; joining them to others counts the bytes that are copied."""

    copied = 0

    def __radd__(self, before):
        old = 0 if isinstance(before, bytearray) else len(before)  # it grows where it is
        Counted.copied += old + len(self)
        return NotImplemented  # Python joins them then


def test_a_large_reply_is_read_with_work_in_proportion(monkeypatch):
    """Each byte is copied once or twice, whatever came before it; no time is measured."""
    size, measured, chunks = 2**24, [], []
    read = os.read

    def read_counted(pipe, most):
        chunks.append(Counted(read(pipe, min(most, 2**14))))
        return chunks[-1]

    program = (sys.executable, "-c", LARGE_REPLY.format(size=size))
    monkeypatch.setattr(sandbox, "PROGRAM", program)
    monkeypatch.setattr(sandbox.os, "read", read_counted)
    monkeypatch.setattr(sandbox.time, "monotonic", lambda: 1.0)
    monkeypatch.setattr(sandbox, "memory_used", lambda pid: measured.append(pid) or 0)
    monkeypatch.setattr(Counted, "copied", 0)
    with Sandbox(1, unsafe=True) as own:
        text = own.ask("load", b"", seconds=PATIENCE)
    assert text == "a" * size
    assert len(chunks) > 1000
    assert Counted.copied < 3 * size
    assert len(measured) == 1  # in each interval of time, not for each chunk


def test_memory_is_measured_where_only_linux_tells_what_is_shared(monkeypatch):
    """On macOS psutil tells no PSS."""
    memory = namedtuple("memory", ["rss", "vms", "pfaults", "pageins", "uss"])
    used = memory(rss=30, vms=50, pfaults=0, pageins=0, uss=20)
    monkeypatch.setattr(psutil.Process, "memory_full_info", lambda process: used)
    monkeypatch.setattr(sandbox, "_descendants", lambda pid: [psutil.Process()] * 2)
    assert sandbox.memory_used(os.getpid()) == 2 * 20


def test_what_claims_endless_calls_does_not_hold_the_judge_up(monkeypatch):
    """Who watches is told of some functions and operations, however many there are said."""
    seen = []

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function.__name__)

    class Operations(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append("operation")

    monkeypatch.setattr(judging, "MOST_CALLS", 3)
    with Functions(), Operations():
        judging._replay_calls(["softmax"] * 10, 10)
    assert seen == ["softmax"] * 3 + ["operation"] * 3


@shut_in
def test_what_answers_with_something_else_is_stopped():
    def write(x):
        for number in range(3, 20):
            with contextlib.suppress(OSError):
                os.write(number, b"!" * 20)

    with begun(1) as own:
        assert "is no reply" in asked(own, write).message
        assert own.stopped


@shut_in
def test_if_the_judge_is_killed_what_is_shut_in_ends():
    judging = (
        "from lmbook.grade.sandbox import Sandbox\nimport time\n"
        "box = Sandbox(1)\nprint(box.process.pid, flush=True)\ntime.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", judging], stdout=subprocess.PIPE) as judge:
        outer = psutil.Process(int(judge.stdout.readline()))
        while not outer.children():
            time.sleep(0.01)
        (first,) = outer.children()
        while first.cmdline() != [*PROGRAM]:  # until then it is not quite shut in
            time.sleep(0.01)
        first.suspend()  # it does not see that nobody will ask it any more
        judge.kill()
    _, alive = psutil.wait_procs([first], PATIENCE)
    assert not alive


@shut_in
def test_processes_of_one_sandbox_are_not_counted_in_another():
    def fork_until_refused(x):
        with contextlib.suppress(BlockingIOError):
            while os.fork():
                pass
            signal.pause()
        raise LookupError("no more")

    def fork_once(x):
        if os.fork() == 0:
            os._exit(0)
        raise LookupError("forked")

    with begun(1) as full, begun(1) as other:
        assert "no more" in asked(full, fork_until_refused).message
        assert "forked" in asked(other, fork_once).message


@shut_in
def test_of_its_processes_some_may_have_ended_before_they_are_stopped(monkeypatch):
    ended = psutil.Popen(["true"])
    own = Sandbox(1)
    with own:
        family = [*sandbox._descendants(own.process.pid), ended]
        ended.wait()
        monkeypatch.setattr(sandbox, "_descendants", lambda pid: family)
    assert own.process.returncode is not None


def tasks_named(text):
    """Return the tasks that Markdown names; `.heads` is of the chapter named before."""
    tasks, chapter = set(), ""
    for named, task in re.findall(r"`([a-z-]*)\.(\w+)`", text):
        chapter = named or chapter
        tasks.add(f"{chapter}.{task}")
    return tasks


def test_the_page_for_instructors_names_what_is_judged_together():
    text = (sandbox.ROOT / "docs" / "teaching.md").read_text("utf-8")
    items = re.split(r"\n(?=- |\n)", text)
    assert NEED_ANSWER in map(tasks_named, items)
    assert all(t in marks.exercises.names(t.partition(".")[0]) for t in NEED_ANSWER)


@pytest.mark.parametrize(
    "value",
    [
        [None, True, 2, 0.5, "é", b"\x00", ..., [1, (2, {"a": {3}})], {(1, 2): [4]}],
        deque([1, 2]),
    ],
)
def test_values_arrive_as_they_were(value):
    assert as_json.loads(as_json.dumps(value)) == value


@pytest.mark.parametrize(
    "array",
    [
        torch.tensor([[0.5, -1.25, 3.0], [-0.1, 7.0, 1e-3]]).to(torch.bfloat16),
        torch.tensor([[0.1, -1.25, 3.0], [-1e-9, 7.0, 2.5]], dtype=torch.float64),
        torch.tensor(True),
        torch.empty(0, 4),
        np.arange(6).reshape(2, 3).T,
        np.float32(0.1),
        np.array(3),
        np.array(["a", "b"]),
        np.array([{"a": 1}, None, 2], dtype=object),
    ],
    ids=repr,
)
def test_tensors_and_arrays_arrive_as_they_were(array):
    arrived = as_json.loads(as_json.dumps(array))
    assert type(arrived) is type(array)
    assert (arrived.dtype, arrived.shape) == (array.dtype, array.shape)
    assert (arrived == array).all()


def test_what_json_has_no_form_for_arrives_as_the_nearest_thing():
    assert as_json.loads(as_json.dumps({1: 2}.values())) == [2]
    assert as_json.loads(as_json.dumps(np.longdouble(0.5))) == 0.5
    assert type(as_json.loads(as_json.dumps(pytest))).__name__ == "module"


def test_a_failure_arrives_as_an_error():
    with pytest.raises(as_json.Failed, match="told"):
        as_json.loads('{"kind": "failed", "of": "told"}')


def test_too_many_values_are_refused():
    with pytest.raises(as_json.Failed, match="more than 1,000,000 values"):
        as_json.loads("[" + "[]," * 5 * 10**6 + "0]")


def test_bytes_that_are_no_tensor_are_refused_before_anything_is_allocated():
    with pytest.raises(SafetensorError):
        as_json.loads('{"kind": "tensor", "of": "AAAA"}')
