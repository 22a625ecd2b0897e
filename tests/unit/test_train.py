"""The command line: kills, several processes, targets, errors."""

import dataclasses
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from lmcourse import train
from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.files import locked
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.model import GPT
from lmcourse.train import IDEAS, PRESETS, recipe
from patience import PATIENCE

# So that processes started here, and the forks, compute alike.
ENVIRONMENT = {"LMCOURSE_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}
STEPS = 30
OPTIONS = ["--steps", str(STEPS), "--evaluate-every", "2", "--set", "validation_windows=20"]
SHORT = ["--steps", "2", "--evaluate-every", "2", "--set", "warmup=1"]
SHORT += ["--set", "validation_windows=20"]
# A training that waits halfway, so that it cannot end before it is killed.
NEVER_DONE = f"""
import sys, time
from lmcourse import train

step, left = train.Trainer.step, iter(range({STEPS // 2}))


def step_or_wait(trainer):
    if next(left, None) is None:
        time.sleep({PATIENCE})
    return step(trainer)


train.Trainer.step = step_or_wait
sys.exit(train.main(sys.argv[1:]))
"""


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
    return subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """A run that nothing interrupts: its checkpoint, and what it printed."""
    path = tmp_path_factory.mktemp("whole") / "run.safetensors"
    command = ["-m", "lmcourse.train", "--corpus", corpus, *OPTIONS, "--out", path]
    ended = run(*command)
    assert ended.returncode == 0, ended.stderr
    return path, ended


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.safetensors"


def progress(path):
    return load_gpt(path, "cpu")[2]["progress"]


def history(path):
    """Return the steps and the losses of a run, as its checkpoint has them."""
    entries = progress(path)["history"]
    seconds = [entry["seconds"] for entry in entries]
    assert seconds == sorted(seconds)
    losses = [entry["val_loss"] for entry in entries]
    losses += [entry["train_loss"] for entry in entries[1:]]
    return [entry["step"] for entry in entries], losses


def agree(path, other, tolerance):
    (steps, losses), (other_steps, other_losses) = history(path), history(other)
    assert steps == other_steps
    assert losses == pytest.approx(other_losses, rel=tolerance)


# --- one process ----------------------------------------------------------------------


def test_last_line_says_how_it_went(whole):
    path, ended = whole
    last = json.loads(ended.stdout.splitlines()[-1])
    steps, losses = history(path)
    assert steps == list(range(0, STEPS + 1, 2))
    assert last["val_loss"] == losses[len(steps) - 1]
    assert min(losses) < losses[0] - 0.5
    assert last["steps"] == STEPS
    assert last["device"] == "cpu"
    _, model, record = load_gpt(path, "cpu")
    assert record["threads"] == 1
    assert last["parameters"] == model.parameters_count
    tokens = STEPS * record["training"]["batch"] * model.config.context
    assert last["tokens_per_second"] == pytest.approx(tokens / last["train_seconds"])
    assert "reached" not in last
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("interrupted", "message"),
    [("check", "nothing was saved"), ("Trainer.step", "{out} is whole: add --resume")],
)
def test_interrupted_it_says_how_to_go_on(
    corpus, out, capfd, monkeypatch, interrupted, message
):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"lmcourse.train.{interrupted}", interrupt)
    assert train.main(["--corpus", corpus, *SHORT, "--out", str(out)]) == 130
    last_line = capfd.readouterr().err.splitlines()[-1]
    assert last_line == f"stopped; {message.format(out=out)}"


def test_killed_and_resumed_it_ends_as_if_it_had_not_been(whole, corpus, out):
    command = ["--corpus", corpus, *OPTIONS, "--out", str(out), "--resume"]
    program = [sys.executable, "-c", NEVER_DONE, *command]
    process = subprocess.Popen(program, stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None and not (out.exists() and progress(out)["step"] >= 2):
            time.sleep(0.001)
    finally:
        process.kill()
    assert process.wait(PATIENCE) == -signal.SIGKILL
    assert train.main(command) == 0
    agree(out, whole[0], 1e-4)
    assert [*out.parent.iterdir()] == [out]


def test_a_target_stops_and_is_reported(corpus, out, capfd):
    command = ["--corpus", corpus, *OPTIONS, "--out", str(out)]
    assert train.main([*command, "--target-loss", "3.5"]) == 0
    last = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert last["reached"] is True
    assert last["val_loss"] <= 3.5
    assert 0 < last["steps"] < STEPS


def test_a_model_is_exported_again_and_again(corpus, tmp_path, out, capfd):
    export = str(tmp_path / "model.safetensors")
    command = ["--corpus", corpus, *SHORT, "--out", str(out), "--export", export]
    for _ in range(2):
        assert train.main([*command, "--target-loss", "0.01", "--resume"]) == 0
        last = json.loads(capfd.readouterr().out.splitlines()[-1])
        assert last["reached"] is False
        tokenizer, model, record = load_gpt(export, "cpu")
        assert record["val_loss"] == last["val_loss"]
        assert record["parameters"] == model.parameters_count
        assert tokenizer.alphabet == "".join(sorted(set(Path(corpus).read_text())))


@pytest.mark.parametrize(
    ("option", "name", "message"),
    [
        ("--export", "x/../out.safetensors", "is the checkpoint: export to another"),
        ("--export", "thesis.txt", "is there already: add --resume, or name"),
        ("--out", "thesis.txt", "is there already: add --resume, or name"),
    ],
)
def test_a_file_that_would_cost_something_is_refused_at_once(
    corpus, tmp_path, out, capfd, monkeypatch, option, name, message
):
    monkeypatch.setattr(train, "new_run", None)  # training is not reached
    (tmp_path / "thesis.txt").write_text("years of work")
    command = ["--corpus", corpus, "--out", out, option, tmp_path / name]
    fails(capfd, command, message)
    if "already" in message:
        fails(capfd, [*command, "--resume"], "cannot be read as safetensors")
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
    assert not out.exists()


def test_the_threads_are_as_many_as_asked_for(corpus, out):
    command = ["--corpus", corpus, *SHORT, "--out", str(out), "--resume"]
    try:
        for options, threads in ((["--threads", "2"], 2), ([], 1)):  # one, if none is said
            assert train.main([*command, *options]) == 0
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(1)


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
    ("arguments", "message"),
    [
        (["--corpus", "nowhere.txt"], "there is no corpus or text file 'nowhere.txt'"),
        (["--preset", "classic", "--without", "muon"], "no 'classic' without ['muon']"),
        (["--device", "abacus"], "device 'abacus'"),
        (["--device", "meta"], "cannot train on device 'meta': Accelerate chooses 'cpu'"),
        (["--threads", "0"], "0 threads cannot compute"),
        (["--steps", "5"], "a warmup of 10 steps must be shorter than the run of 5"),
        *(
            (["--set", f"{name}=5"], f"--set {name}: there is no such field, but context, ")
            for name in (
                "depth",
                "vocab_size",
                "device",
                "preset",
                "text",
                "without",
                "parts",
            )
        ),
        (["--set", "layers"], "layers must be a whole number, not ''"),
        (["--set", "learning_rate=NaN"], "learning_rate must be a finite number, not nan"),
    ],
    ids=lambda value: str(value[-1]) if isinstance(value, list) else "",
)
def test_options_that_mean_nothing(corpus, tmp_path, capfd, arguments, message):
    out = tmp_path / "out.safetensors"
    fails(capfd, ["--corpus", corpus, "--out", out, *arguments], message)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("moment", ["run", "model", "step"])
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
        torch.OutOfMemoryError("CUDA out of memory"),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_too_little_memory_is_one_line(corpus, out, capfd, monkeypatch, error, moment):
    def fail(*_, **__):
        raise error

    if moment == "model":
        monkeypatch.setattr(train, "GPT", fail)
    else:
        monkeypatch.setattr(train.Trainer, moment, fail)
    assert train.main(["--corpus", corpus, *SHORT, "--out", str(out)]) == 1
    last = capfd.readouterr().err.splitlines()[-1]
    assert last.startswith(
        "error: there is not enough memory: lower batch, context, d_model"
    )


def test_another_error_is_not_taken_for_too_little_memory(corpus, out, monkeypatch):
    def fail(*_):
        raise RuntimeError("something else")

    monkeypatch.setattr(train.Trainer, "step", fail)
    with pytest.raises(RuntimeError, match="something else"):
        train.main(["--corpus", corpus, *SHORT, "--out", str(out)])


def test_home_is_home_in_every_option(corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "verse.txt").write_text(Path(corpus).read_text())
    command = ["--corpus", "~/verse.txt", *SHORT, "--out=~/runs/x", "--export=~/runs/y"]
    assert train.main(command) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs", "verse.txt"]
    assert load_gpt(str(tmp_path / "runs" / "y"), "cpu")[2]["steps"] == 2
    assert train.main(command) == 1  # what is there already is seen there, too


def test_a_folder_is_no_checkpoint(corpus, tmp_path, capfd):
    for resume in ([], ["--resume"]):
        command = ["--corpus", corpus, "--out", tmp_path, *resume]
        fails(capfd, command, f"{tmp_path} is a folder: name a file in it, such as")


def test_another_corpus_is_named_before_its_vocabulary(corpus, tmp_path, out, capfd):
    other = tmp_path / "other.txt"
    other.write_text("abc" * 500)
    assert train.main(["--corpus", corpus, *SHORT, "--out", str(out)]) == 0
    capfd.readouterr()
    command = ["--corpus", str(other), *SHORT, "--out", str(out), "--resume"]
    assert train.main(command) == 1
    assert f"{out} was trained on another corpus" in capfd.readouterr().err


def test_two_runs_do_not_share_a_file(corpus, out, capfd):
    command = ["--corpus", corpus, *SHORT, "--out", str(out)]
    ended = []
    with locked(out):  # as another process would hold it, for this one
        program = [sys.executable, "-m", "lmcourse.train", *command]
        ended.append(
            subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE)
        )
    assert ended[0].returncode == 1
    assert ended[0].stderr.splitlines()[-1].startswith("error: another process is writing")
    assert not out.exists()
    assert train.main(command) == 0


def test_a_loss_that_is_no_number_ends_the_run(corpus, out, capfd):
    command = ["--corpus", corpus, *OPTIONS, "--out", str(out)]
    assert train.main([*command, "--set", "learning_rate=1e30"]) == 1
    output, err = capfd.readouterr()
    assert output == ""
    assert err.splitlines()[-1].startswith("error: the loss is nan at step ")
    _, model, _ = load_gpt(out, "cpu")
    assert all(weight.isfinite().all() for weight in model.parameters())


# --- several processes ----------------------------------------------------------------


def test_two_processes_do_what_one_does(whole, corpus, out):
    """One process begins, two go on to a lower loss, and one finishes the run."""
    options = [*map(str, ["--corpus", corpus, *OPTIONS, "--out", out, "--resume"])]
    assert train.main([*options, "--target-loss", "3.5"]) == 0
    steps_of_one = progress(out)["step"]

    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2]
    ended = run(*launch, "-m", "lmcourse.train", *options, "--target-loss", "3.2")
    assert ended.returncode == 0, ended.stderr
    assert not any(w in ended.stderr for w in ("Traceback", "arning", "destroy_process"))
    result = json.loads(ended.stdout)  # printed by one of the two
    assert result["processes"] == 2
    assert 0 < steps_of_one < result["steps"] < STEPS

    assert train.main(options) == 0
    agree(out, whole[0], 1e-3)


def test_poems_are_split_whole_and_other_texts_cut(tmp_path):
    whole = load_corpus("sonnets")
    parts = train_val_test_split(load_texts("sonnets"))
    tokenizer, trainer = train.new_run(whole, "fast", device="cpu", parts=parts)
    assert tokenizer.decode(trainer.validation.tolist()) == parts.validation
    assert tokenizer.decode(trainer.training.tolist()) == parts.training
    assert tokenizer.alphabet == "".join(sorted(set(whole)))
    _, trainer = train.new_run(whole, "fast", device="cpu")
    assert len(trainer.validation) == len(whole) // 10


# --- recipes --------------------------------------------------------------------------


def flat(configs):
    """The fields of both configurations in one dict."""
    model, chosen = map(dataclasses.asdict, configs)
    assert set(model) & set(chosen) == set()
    return model | chosen


@pytest.mark.parametrize("idea", IDEAS)
def test_each_idea_can_be_left_out_and_changes_its_fields_only(idea):
    classic, fast = flat(recipe("classic", 60)), flat(recipe("fast", 60))
    without = flat(recipe("fast", 60, [idea]))
    changed = {name for name in fast if fast[name] != without[name]}
    assert changed == set(IDEAS[idea])  # so that none is without effect, or shared
    assert {name: fast[name] for name in changed} == IDEAS[idea]
    assert all(without[name] == classic[name] for name in changed)


@pytest.mark.parametrize("vocab_size", [40, 65, 100])
def test_fast_has_no_more_parameters_than_classic(vocab_size):
    sizes = {p: GPT(recipe(p, vocab_size)[0]).parameters_count for p in PRESETS}
    assert sizes["fast"] <= sizes["classic"]


def test_recipes_take_changes_and_refuse_strangers():
    model, chosen = recipe("fast", 60, layers=1, seed=7)
    assert (model.layers, chosen.seed) == (1, 7)
    with pytest.raises(
        ValueError, match=r"no .slow. without .*; ideas by preset: .*classic"
    ):
        recipe("slow", 60)
