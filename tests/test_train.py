"""The command line: kills, several processes, targets, errors."""

import json
import math
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from lmcourse import train
from lmcourse.data import load_corpus
from lmcourse.gpt import checkpoint
from lmcourse.gpt import trainer as training
from lmcourse.gpt.checkpoint import latest, load_gpt

# So that processes started here, and the forks, compute alike.
ENVIRONMENT = {"LMCOURSE_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}
STEPS = 30
OPTIONS = ["--steps", str(STEPS), "--evaluate-every", "2", "--set", "windows=20"]
PATIENCE = 120  # seconds


@pytest.fixture(scope="module", autouse=True)
def _environment():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "verse.txt"
    path.write_text(load_corpus("sonnets")[:4000], encoding="utf-8")
    return str(path)


def run(*command):
    """Run a command to its end, as a reader would."""
    process = subprocess.Popen(
        [sys.executable, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        with suppress(ProcessLookupError):  # and those that it started
            os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """A run that nothing interrupts: its folder, and what it printed."""
    folder = tmp_path_factory.mktemp("whole")
    command = ["-m", "lmcourse.train", "--corpus", corpus, *OPTIONS, "--out", folder]
    ended = run(*command)
    assert ended.returncode == 0, ended.stderr
    return folder, ended


def history(folder):
    """Return the steps and the losses of a run, as its checkpoint has them."""
    text = (latest(folder) / "training.json").read_text(encoding="utf-8")
    entries = json.loads(text)["progress"]["history"]
    seconds = [entry["seconds"] for entry in entries]
    assert seconds == sorted(seconds)
    losses = [entry["val_loss"] for entry in entries]
    losses += [entry["train_loss"] for entry in entries[1:]]
    return [entry["step"] for entry in entries], losses


def agree(folder, other, tolerance):
    (steps, losses), (other_steps, other_losses) = history(folder), history(other)
    assert steps == other_steps
    assert losses == pytest.approx(other_losses, rel=tolerance)


# --- processes that need not import everything again ----------------------------------


def enter(arguments, log, environment, late):
    """Be ``python -m lmcourse.train``, in a process just forked."""
    os.environ |= environment
    # A job in a shell's background ignores Ctrl-C, and so would this child of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Path(log).open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    look = checkpoint.latest
    checkpoint.latest = lambda folder: time.sleep(late) or look(folder)
    sys.exit(train.main(arguments))


@pytest.fixture(scope="module")
def start():
    """Start ``lmcourse.train`` in a new process, without waiting for its end."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lmcourse.train", "pytest"])
    started = []

    def go(arguments, log, environment=(), late=0):
        args = list(map(str, arguments)), log, ENVIRONMENT | dict(environment), late
        process = context.Process(target=enter, args=args)
        process.start()
        started.append(process)
        return process

    yield go
    for process in started:
        process.kill()
        process.join()


@pytest.fixture
def together(start, tmp_path):
    """Run several processes that form a group to their end; return what they wrote."""

    def go(arguments, count=2, late=0):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
        group |= {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
        processes = []
        for rank in map(str, range(count)):
            mine = group | {"RANK": rank, "LOCAL_RANK": rank}
            log = tmp_path / f"log-{rank}"
            processes.append(start(arguments, log, mine, late if rank != "0" else 0))
        for process in processes:
            process.join(PATIENCE)
        logs = [(tmp_path / f"log-{rank}").read_text() for rank in range(count)]
        return [process.exitcode for process in processes], logs

    return go


# --- one process ----------------------------------------------------------------------


def test_last_line_says_how_it_went(whole):
    folder, ended = whole
    last = json.loads(ended.stdout.splitlines()[-1])
    steps, losses = history(folder)
    assert steps == list(range(0, STEPS + 1, 2))
    assert last["val_loss"] == losses[len(steps) - 1]
    assert min(losses) < losses[0] - 0.5
    assert last["steps"] == STEPS
    assert last["device"] == "cpu"
    _, model, record = load_gpt(folder, "cpu")
    assert last["parameters"] == model.parameters_count
    tokens = STEPS * record["training"]["batch"] * model.config.context
    assert last["tokens_per_second"] == pytest.approx(tokens / last["train_seconds"])
    assert "reached" not in last
    assert "Traceback" not in ended.stderr


def started(process, folder):
    """Wait until a run has written a checkpoint."""
    deadline = time.monotonic() + PATIENCE
    while latest(folder) is None and process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.001)


def test_interrupted_it_says_how_to_go_on(whole, corpus, start, tmp_path):
    out, log = tmp_path / "out", tmp_path / "log"
    command = ["--corpus", corpus, *OPTIONS, "--out", out]
    process = start(command, log)
    started(process, out)
    os.kill(process.pid, signal.SIGINT)
    process.join(PATIENCE)
    assert process.exitcode == 130, log.read_text()
    last = log.read_text().splitlines()[-1]
    assert last == f"stopped; {latest(out)} is whole: add --resume"
    assert "Traceback" not in log.read_text()
    process = start([*command, "--resume"], log)
    process.join(PATIENCE)
    assert process.exitcode == 0, log.read_text()
    agree(out, whole[0], 1e-4)


def test_interrupted_before_anything_is_saved(corpus, tmp_path, capfd, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "open_run", interrupt)
    assert train.main(["--corpus", corpus, "--out", str(tmp_path)]) == 130
    assert capfd.readouterr() == ("", "stopped; nothing was saved\n")


def test_killed_again_and_again_it_ends_as_if_it_had_not_been(
    whole, corpus, start, tmp_path
):
    draw = random.Random(0)
    out = tmp_path / "out"
    command = ["--corpus", corpus, *OPTIONS, "--out", out, "--resume"]
    codes = []
    for least in (None, 0, 6, 14, 22):
        process = start(command, tmp_path / "log")
        deadline = time.monotonic() + PATIENCE
        while least is not None and process.is_alive() and time.monotonic() < deadline:
            found = latest(out)
            if found and int(found.name.removeprefix("step-")) >= least:
                break
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.08 if least is not None else 0.01))
        process.kill()
        process.join()
        codes.append(process.exitcode)
        if least is None:
            assert latest(out) is None
    assert codes.count(-signal.SIGKILL) >= 3, codes
    process = start(command, tmp_path / "log")
    process.join(PATIENCE)
    assert process.exitcode == 0, (tmp_path / "log").read_text()
    agree(out, whole[0], 1e-4)
    assert [path.name for path in out.iterdir()] == [f"step-{STEPS:07d}"]


def test_a_target_stops_and_is_reported(corpus, tmp_path, capfd):
    command = ["--corpus", corpus, *OPTIONS, "--out", str(tmp_path / "out")]
    assert train.main([*command, "--target-loss", "3.5"]) == 0
    out, _ = capfd.readouterr()
    last = json.loads(out.splitlines()[-1])
    assert last["reached"] is True
    assert last["val_loss"] <= 3.5
    assert 0 < last["steps"] < STEPS
    command = ["--steps", "2", "--evaluate-every", "2", "--out", str(tmp_path / "other")]
    export = str(tmp_path / "model")
    command += ["--corpus", corpus, "--set", "windows=20", "--export", export]
    assert train.main([*command, "--target-loss", "0.01", "--seed", "5"]) == 0
    out, _ = capfd.readouterr()
    last = json.loads(out.splitlines()[-1])
    assert last["reached"] is False
    assert last["steps"] == 2
    tokenizer, model, record = load_gpt(export, "cpu")
    assert record["training"]["seed"] == 5
    assert record["val_loss"] == last["val_loss"]
    assert record["parameters"] == model.parameters_count
    assert record["threads"] == torch.get_num_threads()
    assert tokenizer.alphabet == "".join(sorted(set(Path(corpus).read_text())))


@pytest.mark.parametrize("place", ["same", "inside", "around", "used", "file"])
def test_an_export_that_would_cost_something_is_refused_at_once(
    corpus, tmp_path, capfd, monkeypatch, place
):
    monkeypatch.setattr(train, "open_run", None)  # training is not reached
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thesis.txt").write_text("years of work")
    (tmp_path / "file").write_text("years of work")
    out = tmp_path / "runs" / "one"
    export = {"same": out, "inside": out / "model", "around": tmp_path / "runs"}
    message = "choose another folder" if place != "file" else "is no folder"
    command = ["--corpus", corpus, "--out", out, "--export"]
    fails(capfd, [*command, export.get(place, tmp_path / place)], message)
    assert (tmp_path / "used" / "thesis.txt").read_text() == "years of work"
    assert (tmp_path / "file").read_text() == "years of work"
    assert not out.exists()


def test_a_failing_export_costs_nothing_else(corpus, tmp_path, capfd):
    out, export = tmp_path / "out", tmp_path / "file" / "model"
    export.parent.write_text("mine")
    command = ["--corpus", corpus, "--steps", "2", "--set", "windows=20"]
    command += ["--out", str(out), "--export", str(export)]
    assert train.main(command) == 1
    said, err = capfd.readouterr()
    assert json.loads(said)["steps"] == 2
    assert err.splitlines()[-1].startswith(f"error: the model {export} could not be wr")
    assert "Traceback" not in err
    assert latest(out).name == "step-0000002"
    assert export.parent.read_text() == "mine"


# --- errors ---------------------------------------------------------------------------


def fails(capfd, arguments, message):
    """One line on stderr that holds the message, and status 1."""
    assert train.main(list(map(str, arguments))) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n \n", "is empty"),
        (b"a rose is a rose\n" * 20, "context of 64: take a longer text"),
        (b"\xff\xfe\x00", "is not UTF-8"),
    ],
    ids=["empty", "blank", "short", "bytes"],
)
def test_a_corpus_that_cannot_be_used(tmp_path, capfd, content, message):
    path = tmp_path / "corpus.txt"
    path.write_bytes(content)
    fails(capfd, ["--corpus", path, "--out", tmp_path / "out"], message)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--corpus", "nowhere.txt"], "there is no corpus or file 'nowhere.txt'"),
        (["--preset", "classic", "--without", "muon"], "classic has no idea muon"),
        (["--device", "abacus"], "device 'abacus'"),
        (["--steps", "0"], "steps must be at least 1"),
        (["--device", "meta"], "cannot train on device 'meta': Accelerate chooses 'cpu'"),
        (["--device", "cpu:1"], "cannot train on device 'cpu:1'"),
        (["--seed", str(10**30)], "is not between -10**12 and 10**12"),
        *(
            (["--set", f"{name}=5"], f"no setting {name}; there are context, layers")
            for name in ("depth", "vocab_size", "preset", "text", "device", "without", "")
        ),
        (["--set", "vocab_size=5"], "the corpus decides on vocab_size"),
        *(
            (["--set", f"{name}={value}"], f"{name} must be a whole number, not ")
            for name, value in [
                ("layers", "many"),
                ("layers", "1.5"),
                ("d_model", "64.0"),
                ("windows", "1.5"),
                ("batch", "2.5"),
                ("batch", "true"),
                ("warmup", "x"),
                ("seed", "1.5"),
                ("steps", "null"),
            ]
        ),
        *(
            (["--set", f"{name}={value}"], f"{name} must be a finite number, not ")
            for name, value in [
                ("learning_rate", "abc"),
                ("learning_rate", "NaN"),
                ("learning_rate", "1e999"),
                ("matrix_rate", "x"),
                ("weight_decay", "NaN"),
                ("weight_decay", "nan"),
                ("clip", "null"),
                ("dropout", "[0.1]"),
            ]
        ),
        (["--set", "ngrams=[1.5]"], "ngrams must be a list of whole numbers, not (1.5,)"),
        (["--set", "ngrams=5"], "ngrams must be a list of whole numbers, not 5"),
        (["--set", "clip=-1"], "clip must be above 0, not -1"),
        (["--set", "clip=0"], "clip must be above 0, not 0"),
        (["--set", "learning_rate=0"], "learning_rate must be above 0, not 0"),
        (["--set", "matrix_rate=-0.1"], "matrix_rate must be above 0, not -0.1"),
        (["--set", "warmup=-1"], "warmup must be at least 0, not -1"),
        (["--set", "final=-2"], "final -2 is not a share, from 0 to 1"),
        (["--set", "optimizer=5"], "optimizer 5 is not 'adamw' or 'muon'"),
        (["--set", "positions=null"], "positions None: not 'learned' or 'rotary'"),
        (["--set", "d_model=65"], "2 heads do not divide d_model = 65"),
    ],
    ids=lambda value: str(value[-1]) if isinstance(value, list) else "",
)
def test_options_that_mean_nothing(corpus, tmp_path, capfd, arguments, message):
    fails(capfd, ["--corpus", corpus, "--out", tmp_path, *arguments], message)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--without", "magic"],
        ["--preset", "slow"],
        ["--set", "layers"],
        *(["--target-loss", loss] for loss in ("nan", "-1", "0", "inf", "low")),
        [],
    ],
)
def test_options_that_do_not_exist(capfd, tmp_path, arguments):
    needed = ["--out", str(tmp_path)] if arguments else []  # --out must be given
    with pytest.raises(SystemExit) as caught:
        train.main([*needed, *arguments])
    assert caught.value.code == 2
    assert "error: " in capfd.readouterr().err.splitlines()[-1]


def test_what_is_there_is_not_overwritten(whole, corpus, capfd):
    folder, _ = whole
    before = (latest(folder) / "training.json").read_bytes()
    command = ["--corpus", corpus, *OPTIONS, "--out", folder]
    fails(capfd, command, "is there already: add --resume, or choose another --out")
    other = ["--resume", "--seed", "9"]
    fails(capfd, [*command, *other], "trained with seed = 0, not 9")
    ended = run("-m", "lmcourse.train", *command)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.count("\n") == 1
    assert (latest(folder) / "training.json").read_bytes() == before


def test_another_text_is_not_resumed(whole, corpus, tmp_path, capfd):
    folder, _ = whole
    path = tmp_path / "backwards.txt"
    path.write_text(Path(corpus).read_text()[::-1])
    command = ["--corpus", path, *OPTIONS, "--out", folder, "--resume"]
    fails(capfd, command, "another corpus")


def test_a_loss_that_is_no_number_ends_the_run(corpus, tmp_path, capfd):
    command = ["--corpus", corpus, *OPTIONS, "--out", str(tmp_path)]
    assert train.main([*command, "--set", "learning_rate=1e30"]) == 1
    out, err = capfd.readouterr()
    last = err.splitlines()[-1]
    kept = latest(tmp_path)
    assert out == ""
    assert "Traceback" not in err
    assert last.startswith("error: the loss is nan at step ")
    assert last.endswith(f"the last good checkpoint is {kept}")
    _, model, _ = load_gpt(tmp_path, "cpu")
    assert all(weight.isfinite().all() for weight in model.parameters())


def test_a_loss_that_never_was_a_number(corpus, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(
        training, "cross_entropy", lambda logits, _: logits.sum() * math.nan
    )
    fails_at_once = ["--corpus", corpus, *OPTIONS, "--out", str(tmp_path)]
    assert train.main(fails_at_once) == 1
    last = capfd.readouterr().err.splitlines()[-1]
    assert last == "error: the validation loss is nan at step 0; nothing was saved"


def test_a_full_disk_ends_the_run(corpus, tmp_path, capfd, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full)
    command = ["--corpus", corpus, *OPTIONS, "--out", str(tmp_path)]
    assert train.main(command) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert "could not be written: [Errno 28] No space left" in err.splitlines()[-1]


# --- several processes ----------------------------------------------------------------


def test_two_processes_do_what_one_does(whole, corpus, together, tmp_path):
    """Stopped by a target in the middle; then resumed."""
    out = tmp_path / "out"
    command = ["--corpus", corpus, *OPTIONS, "--out", out]
    arguments = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2]
    ended = run(*arguments, "-m", "lmcourse.train", *command, "--target-loss", "3.5")
    assert ended.returncode == 0, ended.stderr
    assert len(ended.stdout.splitlines()) == 1  # one of them speaks
    last = json.loads(ended.stdout)
    assert last["processes"] == 2
    assert last["reached"] is True
    assert 0 < last["steps"] < STEPS
    for word in ("Traceback", "arning", "destroy_process_group"):
        assert word not in ended.stderr
    codes, logs = together([*command, "--resume"])
    assert codes == [0, 0], logs
    assert json.loads(logs[0].splitlines()[-1])["steps"] == STEPS
    assert logs[1] == ""
    agree(out, whole[0], 1e-3)


def test_two_processes_train_the_classic_and_one_may_be_late(corpus, together, tmp_path):
    """The one that saves does not so before the other has seen that nothing is there."""
    command = ["--corpus", corpus, "--preset", "classic", "--evaluate-every", "2"]
    command += ["--steps", "6", "--set", "windows=20", "--out"]
    codes, logs = together([*command, tmp_path / "two"], late=2)
    assert codes == [0, 0], logs
    assert train.main([*map(str, command), str(tmp_path / "one")]) == 0
    agree(tmp_path / "two", tmp_path / "one", 1e-3)


def test_a_batch_that_two_cannot_share(corpus, together, tmp_path):
    command = ["--corpus", corpus, "--set", "batch=5", "--out", tmp_path / "out"]
    codes, logs = together(command)
    assert codes == [1, 1]
    want = "error: a batch of 5 windows cannot be shared evenly by 2 processes\n"
    assert logs == [want, want]
    assert not (tmp_path / "out").exists()
