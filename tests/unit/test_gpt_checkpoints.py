"""Checkpoints: round trips, deaths at every moment, full disks, files not to be trusted."""

import errno
import json
import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from lmcourse.gpt import checkpoints as checkpoint
from lmcourse.gpt.checkpoints import describe, fingerprint, load_gpt, restore, save_model
from lmcourse.tokenization import CharTokenizer
from lmcourse.train import new_run

TEXT = "Shall I compare thee to a summer's day?\nThou art more lovely, and more so.\n" * 3
CORPUS, ALPHABET = fingerprint(TEXT), CharTokenizer(TEXT).alphabet
SIZES = {"context": 5, "layers": 1, "heads": 2, "d_model": 8, "ngrams": (13, 17)}
HOW = {"steps": 8, "batch": 3, "warmup": 2, "evaluate_every": 2, "validation_windows": 4}


class Killed(BaseException):
    """What no one catches, like the end of the process."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.safetensors"


def trainer(text=TEXT, **changes):
    return new_run(text, "fast", device="cpu", **SIZES | HOW | changes)[1]


def advance(one, steps, path=None):
    """Take steps, estimate, and save if there is a file to save to."""
    for _ in range(steps):
        one.step()
    one.evaluate()
    if path:
        checkpoint.save(path, one, ALPHABET, CORPUS)
    return one


def same(one, other):
    """Are two states equal, bit by bit?"""
    assert one.keys() == other.keys()
    return all(torch.equal(one[name], other[name]) for name in one)


def kept(one):
    """Return what the optimizers keep, by number, parameter and key."""
    return {
        (number, index, key): tensor.clone()
        for number, optimizer in enumerate(one.optimizers)
        for index, state in optimizer.state_dict()["state"].items()
        for key, tensor in state.items()
    }


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def step_of(path):
    return load_gpt(path, "cpu")[2]["progress"]["step"]


# --- round trips ----------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("steps", [0, 3])
def test_a_restored_run_goes_on_as_if_it_had_not_stopped(path, optimizer, steps):
    whole = advance(trainer(optimizer=optimizer), steps, path)
    resumed = trainer(optimizer=optimizer)
    torch.nn.init.ones_(resumed.bare.tokens.weight)
    restore(path, resumed, CORPUS)
    assert same(resumed.bare.state_dict(), whole.bare.state_dict())
    assert resumed.progress == whole.progress
    for one in (whole, resumed):
        advance(one, 4)
    assert same(resumed.bare.state_dict(), whole.bare.state_dict())
    assert kept(resumed)
    assert same(kept(resumed), kept(whole))
    losses = [
        [(h["train_loss"], h["val_loss"]) for h in x.history] for x in (whole, resumed)
    ]
    assert losses[0] == losses[1]
    assert [entry["step"] for entry in resumed.history] == [steps, steps + 4]


def test_a_checkpoint_is_one_file_and_a_model_is_loaded_from_it(path):
    one = advance(advance(trainer(), 1, path), 1, path)
    assert names(path.parent) == [path.name]
    assert {name.split(".")[0] for name in load_file(path)} == {"model", "optimizer"}
    tokenizer, model, record = load_gpt(path, "cpu")
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT
    assert model.config == one.bare.config
    assert not model.training
    assert same(model.state_dict(), one.bare.state_dict())
    assert record["progress"]["history"] == one.history
    assert record["threads"] == torch.get_num_threads()
    ids = torch.tensor([tokenizer.encode("Thou ")])
    assert torch.equal(model(ids), one.bare.eval()(ids))


def test_a_model_alone_replaces_the_one_before_it(tmp_path, monkeypatch):
    path = tmp_path / "checkpoints" / "sonnets.safetensors"
    for steps in (1, 2):
        one = advance(trainer(), steps)
        save_model(path, one.bare, describe(one, ALPHABET, CORPUS))
    assert names(path.parent) == [path.name]
    assert all(name.startswith("model.") for name in load_file(path))
    monkeypatch.setattr(checkpoint, "corpora_folder", lambda: tmp_path)
    _, model, record = load_gpt(device="cpu")  # the one that comes with the course
    assert record["progress"]["step"] == 2
    assert same(model.state_dict(), one.bare.state_dict())


def test_a_link_stays_one(path):
    link = path.with_name("link.safetensors")
    link.symlink_to(path)
    advance(trainer(), 1, link)
    assert link.is_symlink()
    assert not path.is_symlink()
    assert step_of(path) == 1


def test_a_file_that_is_replaced_while_it_is_read(path, monkeypatch):
    """Weights and record are of one moment, as a page that watches a run has it."""
    read, one = checkpoint.read_weights, advance(trainer(), 0, path)

    def slow(*args, **kwargs):
        if one.progress.step == 0:
            advance(one, 2, path)
        return read(*args, **kwargs)

    monkeypatch.setattr(checkpoint, "read_weights", slow)
    _, model, record = load_gpt(path, "cpu")
    assert record["progress"]["step"] == 2
    assert same(model.state_dict(), one.bare.state_dict())


def test_a_fingerprint_is_that_of_the_bytes():
    want = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    assert fingerprint("hello") == want  # sha256sum
    assert fingerprint("hello ") != want


def test_a_file_is_flushed_before_it_has_its_name(path, monkeypatch):
    flushed, fsync = [], os.fsync

    def watched(number):
        flushed.append((os.fstat(number).st_ino, path.exists()))
        return fsync(number)

    monkeypatch.setattr(os, "fsync", watched)
    advance(trainer(), 1, path)
    folder = path.parent.stat().st_ino
    assert flushed == [(path.stat().st_ino, False), (folder, True)]


@pytest.mark.parametrize("refused", ["open", "fsync"])
def test_where_folders_cannot_be_flushed_they_are_not(path, monkeypatch, refused):
    function = getattr(os, refused)

    def watched(what, *args, **kwargs):
        if os.path.isdir(what):
            raise OSError(errno.EINVAL, "no folders")
        return function(what, *args, **kwargs)

    monkeypatch.setattr(os, refused, watched)
    advance(trainer(), 1, path)
    assert step_of(path) == 1


# --- death and full disks -------------------------------------------------------------


def interrupt(monkeypatch, error, moment):
    """Raise at the nth call of those that change the disk; return the calls so far."""
    calls = []

    def watch(name, function):
        def watched(*args, **kwargs):
            calls.append(name)
            if len(calls) == moment:
                raise error
            return function(*args, **kwargs)

        return watched

    owners = {"fsync": os, **dict.fromkeys(("mkdir", "open", "replace"), Path)}
    for name, owner in owners.items():
        monkeypatch.setattr(owner, name, watch(name, getattr(owner, name)))
    return calls


MOMENTS = ["mkdir", "open", "fsync", "replace", "fsync"]  # of the file; of its folder


def test_these_are_the_moments(path):
    with pytest.MonkeyPatch.context() as patch:
        calls = interrupt(patch, None, 0)
        advance(trainer(), 1, path)
    assert calls == MOMENTS


def spoilt_save(path, error, moment):
    """Train two steps into a file; three more are not saved, for an error."""
    one = advance(trainer(), 2, path)
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, error, moment)
        with pytest.raises(type(error)) as caught:
            advance(one, 3, path)
    return one, str(caught.value)


@pytest.mark.parametrize("error", [Killed(), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("moment", range(1, len(MOMENTS) + 1))
def test_whenever_it_dies_a_whole_checkpoint_is_there(path, error, moment):
    died, _ = spoilt_save(path, error, moment)
    resumed, before = trainer(), advance(trainer(), 2)
    restore(path, resumed, CORPUS)
    found = resumed.progress.step
    assert found == (2 if moment < 5 else 5)
    want = before if found == 2 else died
    assert same(resumed.bare.state_dict(), want.bare.state_dict())
    assert names(path.parent) == [path.name]


def test_what_a_death_left_is_written_over(path):
    half = path.with_name(f".{path.name}.unfinished")
    half.write_bytes(b"half")
    advance(trainer(), 1, path)
    assert names(path.parent) == [path.name]


@pytest.mark.parametrize("moment", range(1, len(MOMENTS)))
def test_whatever_cannot_be_written_the_former_is_kept(path, moment):
    _, said = spoilt_save(path, OSError(errno.ENOSPC, "No space left"), moment)
    assert said == (
        f"{path} could not be written: [Errno 28] No space left; what was there before "
        "is whole; free some space"
    )
    assert step_of(path) == 2
    assert names(path.parent) == [path.name]


def test_the_first_that_cannot_be_written_leaves_nothing(path, monkeypatch):
    interrupt(monkeypatch, OSError(errno.EACCES, "no"), 3)
    with pytest.raises(OSError, match=r"run.safetensors could not be written: .*no$"):
        advance(trainer(), 1, path)
    assert names(path.parent) == []


def test_a_file_that_the_system_refuses_to_write(path):
    one = advance(trainer(d_model=64), 2, path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, before[1]))
    try:
        with pytest.raises(OSError, match=r"File too large.*free some space"):
            advance(one, 1, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert step_of(path) == 2
    assert names(path.parent) == [path.name]


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no small disk can be mounted here: {getattr(error, 'stderr', error)}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("room", [0, 1, 40_000])
def test_a_full_disk(small_disk, room):
    path = small_disk / "run.safetensors"
    one = advance(trainer(d_model=64), 2, path)
    free = shutil.disk_usage(small_disk).free
    (small_disk / "ballast").write_bytes(bytes(max(0, free - room)))
    with pytest.raises(OSError, match=r"No space left.*is whole; free some space$"):
        advance(one, 2, path)
    assert names(small_disk) == ["ballast", path.name]
    assert step_of(path) == 2
    (small_disk / "ballast").unlink()
    advance(one, 2, path)
    assert step_of(path) == 6


# --- files that are not to be trusted -------------------------------------------------


def refused(path, message, loads=True):
    """Nothing is restored or loaded, and the error names the file."""
    one = advance(trainer(), 1)
    weights = {name: x.clone() for name, x in one.bare.state_dict().items()}
    before, progress = kept(one), (one.progress.step, list(one.history))
    with pytest.raises((OSError, ValueError), match=message) as caught:
        restore(path, one, CORPUS)
    assert str(path) in str(caught.value)
    assert same(one.bare.state_dict(), weights)  # all or nothing
    assert same(kept(one), before)
    assert (one.progress.step, one.history) == progress
    if loads:
        with pytest.raises((OSError, ValueError), match=message) as caught:
            load_gpt(path, "cpu")
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("damage", ["gone", "folder", "empty", "head", "half", "noise"])
def test_a_damaged_file_is_named(path, damage):
    advance(trainer(), 2, path)
    content = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage != "gone":
        parts = {"empty": b"", "head": content[:300], "half": content[: len(content) // 2]}
        path.write_bytes(parts.get(damage, bytes(range(255, 0, -1))))
    refused(path, "cannot be read")


def rewrite(path, spoil_tensors=None, spoil_record=None, text=None):
    """Write a checkpoint after its tensors, its record or the record's text changed."""
    tensors = load_file(path)
    with safe_open(path, "pt") as file:
        record = json.loads(file.metadata()["record"])
    if spoil_tensors:
        spoil_tensors(tensors)
    if spoil_record:
        spoil_record(record)
    text = json.dumps(record) if text is None else text
    save_file(tensors, path, {"record": text} if text else None)


STEP, MOMENT = "optimizer.tokens.weight.step", "optimizer.tokens.weight.exp_avg"
NORM, TABLE = "model.norm.weight", "model.tokens.weight"


def drop_optimizer(tensors):
    for name in [name for name in tensors if name.startswith("optimizer.")]:
        del tensors[name]


@pytest.mark.parametrize(
    ("spoil", "message", "loads"),
    [
        (lambda t: t.pop(NORM), f"lacks 1 tensors: {NORM}", True),
        (lambda t: t.update({NORM: torch.ones(1, 2)}), f"{NORM} has the shape", True),
        (lambda t: t.update(alien=torch.ones(2)), "alien", True),
        (lambda t: t.update({NORM: torch.full((8,), torch.nan)}), "not finite", True),
        (lambda t: t.update({TABLE: torch.full_like(t[TABLE], torch.inf)}), "finite", True),
        (lambda t: t.update({NORM: torch.ones(8, dtype=torch.int8)}), "is I8", True),
        (drop_optimizer, "lacks", False),
        (lambda t: t.update({MOMENT: torch.ones(2)}), "exp_avg has the shape", False),
        (lambda t: t.update({MOMENT[:-3]: t.pop(MOMENT)}), "lacks", False),
        (lambda t: t.update({STEP: torch.tensor(9.0)}), "is not the step 2", False),
        (lambda t: t.update({STEP: torch.tensor(torch.nan)}), "not finite", False),
    ],
)
def test_tensors_of_another_kind(path, spoil, message, loads):
    advance(trainer(), 2, path)
    rewrite(path, spoil)
    refused(path, message, loads)


def put(part, **values):
    return lambda record: record[part].update(values)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (put("model", context=10**9), "context"),
        (put("model", layers=2000), "fewer tensors than its record has layers|= 2000"),
        (put("model", d_model=10**8), "d_model|has the shape"),
        (put("model", layers="x"), "layers"),
        (put("model", heads=3), "heads"),
        (put("model", ngrams=[13, 10**8]), "ngrams|has the shape"),
        (put("model", ngrams=None), "ngrams"),
        (lambda record: record["model"].clear(), "vocab_size"),
        (lambda record: record.update(model=[]), "no 'model'"),
        (lambda record: record.update(training=3), "no 'training'"),
        (lambda record: record.update(alphabet=["a"]), "no 'alphabet'"),
        (lambda record: record.pop("progress"), "no 'progress'"),
    ],
)
def test_a_record_that_makes_no_model(path, spoil, message):
    advance(trainer(), 2, path)
    rewrite(path, spoil_record=spoil)
    refused(path, message)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "so", '{"model": {}}', '{"a":' * 100_000, '{"a": NaN}']
)
def test_a_text_that_is_no_record(path, text):
    advance(trainer(), 2, path)
    rewrite(path, text=text)
    refused(path, f"the record in {path}")


@pytest.mark.parametrize("alphabet", [ALPHABET[::-1], ALPHABET[1] + ALPHABET[1:], "ab"])
def test_an_alphabet_is_sorted_and_as_long_as_the_table(path, alphabet):
    one = advance(trainer(), 1)
    save_model(path, one.bare, describe(one, alphabet, CORPUS))
    with pytest.raises(ValueError, match=r"cannot be right: .* the alphabet") as caught:
        load_gpt(path, "cpu")
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"mood": "good"},
        {"step": "2"},
        {"step": -1},
        {"seconds": None},
        {"history": 3},
        {"history": []},
        {"history": [3]},
        {"history": [{"step": 2}]},
        {"history": [{"step": 2, "train_loss": "x", "val_loss": 1.0, "seconds": 0.0}]},
        {"history": [{"step": 2, "train_loss": None, "val_loss": None, "seconds": 0.0}]},
    ],
    ids=str,
)
def test_strange_progress_restores_nothing(path, change):
    advance(trainer(), 2, path)
    rewrite(path, spoil_record=put("progress", **change))
    refused(path, "cannot be right", loads=False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 16}, "trained with d_model = 8, not 16"),
        ({"ngrams": (13, 18)}, r"trained with ngrams = \[13, 17\], not \[13, 18\]"),
        ({"steps": 9}, "trained with steps = 8, not 9"),
        ({"learning_rate": 0.5}, "trained with learning_rate = 0.02, not 0.5"),
        ({"seed": 1}, "trained with seed = 0, not 1: resume with the same settings, or"),
        ({"optimizer": "adamw"}, "trained with optimizer = 'muon', not 'adamw'"),
    ],
    ids=str,
)
def test_other_settings_are_named(path, changes, message):
    advance(trainer(), 2, path)
    with pytest.raises(ValueError, match=message):
        restore(path, trainer(**changes), CORPUS)


def test_another_corpus_of_the_same_letters(path):
    advance(trainer(), 2, path)
    with pytest.raises(ValueError, match="another corpus"):
        restore(path, trainer(TEXT[::-1]), fingerprint(TEXT[::-1]))
