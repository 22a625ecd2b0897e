"""Checkpoints: round trips, deaths at every moment, full disks, damage."""

import errno
import fcntl
import json
import os
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from lmcourse.gpt import checkpoint
from lmcourse.gpt.checkpoint import fingerprint, latest, load_gpt, restore, save, save_model
from lmcourse.tokenization import CharTokenizer
from lmcourse.train import prepare

TEXT = "Shall I compare thee to a summer's day?\nThou art more lovely, and more so.\n" * 3
CORPUS = fingerprint(TEXT)
SIZES = {"context": 5, "layers": 1, "heads": 2, "d_model": 8, "ngrams": (13, 17)}
HOW = {"steps": 8, "batch": 3, "warmup": 2, "evaluate_every": 2, "windows": 4}


class Killed(BaseException):
    """What no one catches, like the end of the process."""


def trainer(text=TEXT, **changes):
    return prepare(text, "fast", device="cpu", **SIZES | HOW | changes)[1]


def advance(one, steps, folder=None):
    """Take steps, estimate, and save if there is a folder to save to."""
    for _ in range(steps):
        one.step()
    one.evaluate()
    if folder:
        save(folder, one, CharTokenizer(TEXT).alphabet, CORPUS)
    return one


def same(one, other):
    """Are two states equal, bit by bit?"""
    assert one.keys() == other.keys()
    return all(torch.equal(one[name], other[name]) for name in one)


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


# --- round trips ----------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_a_restored_run_goes_on_as_if_it_had_not_stopped(tmp_path, optimizer):
    whole = advance(trainer(optimizer=optimizer), 3, tmp_path)
    resumed = trainer(optimizer=optimizer)
    assert not same(resumed.bare.state_dict(), whole.bare.state_dict())
    restore(latest(tmp_path), resumed, CORPUS)
    assert same(resumed.bare.state_dict(), whole.bare.state_dict())
    assert resumed.progress == whole.progress
    for one in (whole, resumed):
        advance(one, 4)
    assert same(resumed.bare.state_dict(), whole.bare.state_dict())
    for got, want in zip(resumed.optimizers, whole.optimizers, strict=True):
        states = got.state_dict()["state"], want.state_dict()["state"]
        assert states[0].keys() == states[1].keys() != set()
        assert all(same(states[0][index], states[1][index]) for index in states[0])
    losses = [
        [(h["train_loss"], h["val_loss"]) for h in x.history] for x in (whole, resumed)
    ]
    assert losses[0] == losses[1]
    assert [entry["step"] for entry in resumed.history] == [3, 7]


def test_only_the_newest_stays_and_nothing_is_pickled(tmp_path):
    (tmp_path / "step-0000009.tmp-ab3_x9yz" / "new").mkdir(parents=True)
    half = tmp_path / "step-0000009.tmp-ab3_x9yz" / "new" / "model.safetensors"
    half.write_bytes(b"half")
    (tmp_path / "step-0000009.tmp").mkdir()  # someone else's
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "step-by-step").mkdir()
    assert latest(tmp_path) is None
    one = advance(trainer(), 1, tmp_path)
    assert latest(tmp_path) == tmp_path / "step-0000001"
    advance(one, 2, tmp_path)
    assert latest(tmp_path) == tmp_path / "step-0000003"
    others = ["notes.txt", "step-0000003", "step-0000009.tmp", "step-by-step"]
    assert names(tmp_path) == others
    files = ["model.safetensors", "optimizer.safetensors", "training.json"]
    assert names(latest(tmp_path)) == files
    for file in latest(tmp_path).glob("*.safetensors"):
        assert load_file(file)  # what it says it is


def test_latest_goes_by_the_number(tmp_path):
    assert latest(tmp_path / "nowhere") is None
    for name in ("step-0000900", "step-9999999", "step-0000099", "step-10000000"):
        (tmp_path / name).mkdir()
    assert latest(tmp_path).name == "step-10000000"


@pytest.mark.parametrize("below", [True, False])
def test_a_finished_model_is_loaded(tmp_path, below):
    one = advance(trainer(), 2, tmp_path)
    tokenizer, model, record = load_gpt(tmp_path if below else latest(tmp_path), "cpu")
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT
    assert model.config == one.bare.config
    assert not model.training
    assert same(model.state_dict(), one.bare.state_dict())
    assert record["progress"]["history"] == one.history
    ids = torch.tensor([tokenizer.encode("Thou ")])
    assert torch.equal(model(ids), one.bare.eval()(ids))


def test_a_model_alone_replaces_the_one_before_it(tmp_path, monkeypatch):
    folder = tmp_path / "checkpoints" / "sonnets"
    for steps in (1, 2):
        one = advance(trainer(), steps)
        record = checkpoint.describe(one, CharTokenizer(TEXT).alphabet, CORPUS)
        save_model(folder, one.bare, record)
    assert names(folder) == ["model.safetensors", "training.json"]
    assert names(folder.parent) == ["sonnets"]
    monkeypatch.setattr(checkpoint, "corpora_folder", lambda: tmp_path)
    _, model, record = load_gpt(device="cpu")  # the one that comes with the course
    assert record["progress"]["step"] == 2
    assert same(model.state_dict(), one.bare.state_dict())


def test_a_fingerprint_is_that_of_the_bytes():
    want = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    assert fingerprint("hello") == want  # sha256sum
    assert fingerprint("hello ") != want


def test_every_file_is_flushed_before_it_has_its_name(tmp_path, monkeypatch):
    flushed, fsync = [], os.fsync

    def watched(number):
        writable = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_RDWR != 0
        flushed.append((os.fstat(number).st_ino, writable, names(tmp_path)))
        return fsync(number)

    advance(trainer(), 1, tmp_path)
    monkeypatch.setattr(os, "fsync", watched)
    advance(trainer(), 2, tmp_path)
    *files, folder, parent = flushed
    for number, writable, there in [*files, folder]:
        assert "step-0000002" not in there
        assert writable is (number != folder[0])  # else Windows refuses; or it is a folder
    new = latest(tmp_path)
    assert {file[0] for file in files} == {path.stat().st_ino for path in new.iterdir()}
    assert folder[0] == new.stat().st_ino
    assert parent[0] == tmp_path.stat().st_ino
    assert {"step-0000001", "step-0000002"} < set(parent[2])  # then only the old one goes


@pytest.mark.parametrize("refused", ["open", "fsync"])
def test_where_folders_cannot_be_flushed_they_are_not(tmp_path, monkeypatch, refused):
    function = getattr(os, refused)

    def watched(what, *args, **kwargs):
        if os.path.isdir(what):
            raise OSError(errno.EINVAL, "no folders")
        return function(what, *args, **kwargs)

    one = advance(trainer(), 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, refused, watched)
        save(tmp_path, one, CharTokenizer(TEXT).alphabet, CORPUS)
    assert latest(tmp_path).name == "step-0000001"
    advance(one, 1, tmp_path)  # and what could not be removed then is removed now
    assert names(tmp_path) == ["step-0000002"]


# --- death and full disks -------------------------------------------------------------


def interrupt(monkeypatch, error, moment):
    """Raise at the given moment: the nth call of those that change the disk.

    Returns a list of the calls so far.
    """
    calls = []

    def watch(name, function):
        def watched(*args, **kwargs):
            calls.append(name)
            if len(calls) == moment:
                raise error
            return function(*args, **kwargs)

        return watched

    owners = {"save_file": checkpoint, "fsync": os, "unlink": os, "rmdir": os}
    owners |= dict.fromkeys(("mkdir", "write_text", "rename"), Path)
    owners["mkdtemp"] = tempfile
    for name, owner in owners.items():
        monkeypatch.setattr(owner, name, watch(name, getattr(owner, name)))
    return calls


def calls_of(action):
    """Return the names of all calls that an action makes, in their order."""
    with pytest.MonkeyPatch.context() as patch:
        calls = interrupt(patch, None, 0)
        action()
    return list(calls)


def calls_of_a_save(folder):
    one = advance(trainer(), 1, folder)
    calls = calls_of(lambda: advance(one, 1, folder))
    changing = {"mkdir", "mkdtemp", "save_file", "write_text", "fsync", "rename"}
    assert set(calls) == changing | {"unlink", "rmdir"}
    assert calls.count("rename") == 1
    return calls


def test_whenever_it_dies_a_whole_checkpoint_is_there(tmp_path):
    for moment in range(1, len(calls_of_a_save(tmp_path / "count")) + 1):
        folder = tmp_path / str(moment)
        before = advance(trainer(), 2, folder)
        after = advance(trainer(), 2, None)
        restore(latest(folder), after, CORPUS)
        with pytest.MonkeyPatch.context() as patch:
            interrupt(patch, Killed(), moment)
            with pytest.raises(Killed):
                advance(after, 3, folder)
        resumed = trainer()
        restore(latest(folder), resumed, CORPUS)
        found = resumed.progress.step
        assert found in (2, 5)
        want = before if found == 2 else after
        assert same(resumed.bare.state_dict(), want.bare.state_dict())
        assert load_gpt(folder, "cpu")[2]["progress"]["step"] == found
        advance(resumed, 6 - found, folder)  # goes on, and cleans up
        assert names(folder) == ["step-0000006"]


def full():
    return OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("error", [full(), SafetensorError("No space left")], ids=type)
def test_whatever_cannot_be_written_the_former_is_kept(tmp_path, error):
    calls = calls_of_a_save(tmp_path / "count")
    for moment, name in enumerate(calls, 1):
        if isinstance(error, SafetensorError) and name != "save_file":
            continue  # comes from nowhere else
        folder = tmp_path / str(moment)
        one = advance(trainer(), 2, folder)
        with pytest.MonkeyPatch.context() as patch:
            interrupt(patch, error, moment)
            if name in ("unlink", "rmdir"):  # written; the former may stay a while
                advance(one, 3, folder)
                assert latest(folder).name == "step-0000005"
                continue
            text = (
                "checkpoint .*step-0000005 could not be written: .*No space left.*; "
                ".*step-000000[25] is whole; free some space and resume$"
            )
            with pytest.raises(OSError, match=text):
                advance(one, 3, folder)
        there = ["step-0000002"]
        if "rename" in calls[: moment - 1]:  # both are, if that is not sure to last
            there.append("step-0000005")
        assert names(folder) == there
        assert load_gpt(folder / "step-0000002", "cpu")[2]["progress"]["step"] == 2
        assert load_gpt(folder, "cpu")


def test_a_model_that_cannot_be_replaced_stays(tmp_path):
    one = advance(trainer(), 1)
    record = checkpoint.describe(one, CharTokenizer(TEXT).alphabet, CORPUS)
    save_model(tmp_path / "model", one.bare, record)
    calls = calls_of(lambda: save_model(tmp_path / "model", one.bare, record))
    assert calls.count("rename") == 2
    for moment, name in enumerate(calls, 1):
        folder = tmp_path / str(moment) / "model"
        save_model(folder, one.bare, record)
        neighbour = folder.with_name("model.tmp")
        neighbour.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            interrupt(patch, full(), moment)
            if name in ("unlink", "rmdir"):
                save_model(folder, one.bare, record)
            else:
                with pytest.raises(
                    OSError, match=r"model could not be written: .*No space"
                ):
                    save_model(folder, one.bare, record)
                assert names(folder.parent) == ["model", "model.tmp"]
        assert load_gpt(folder, "cpu")[2] == json.loads(json.dumps(record))
        shutil.rmtree(folder.parent)


def test_a_model_that_cannot_be_put_back_is_not_thrown_away(tmp_path, monkeypatch):
    one, rename = advance(trainer(), 1), Path.rename
    record = checkpoint.describe(one, CharTokenizer(TEXT).alphabet, CORPUS)
    save_model(tmp_path / "model", one.bare, record)

    def watched(path, target):
        if target.name == "model":
            raise full()
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", watched)
    with pytest.raises(OSError, match="model could not be written"):
        save_model(tmp_path / "model", one.bare, record)
    (left,) = tmp_path.iterdir()
    assert load_gpt(left / "old", "cpu")[2] == json.loads(json.dumps(record))


def paper(folder):
    """Make a folder with a file of someone's."""
    folder.mkdir(parents=True)
    (folder / "thesis.txt").write_text("years of work")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: paper(folder),
        lambda folder: folder.write_text("years of work"),
        lambda folder: (folder / "training.json").mkdir(parents=True),
        lambda folder: (folder.mkdir(), (folder / ".hidden").touch()),
    ],
    ids=["another file", "a file itself", "a folder", "hidden"],
)
def test_a_model_replaces_nothing_but_a_model(tmp_path, spoil):
    def everything():
        return {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}

    spoil(tmp_path / "mine")
    before, one = everything(), advance(trainer(), 1)
    record = checkpoint.describe(one, CharTokenizer(TEXT).alphabet, CORPUS)
    with pytest.raises(ValueError, match=r"choose another|is no folder"):
        save_model(tmp_path / "mine", one.bare, record)
    assert everything() == before


def test_a_model_may_go_into_an_empty_folder_or_through_a_link(tmp_path):
    one = advance(trainer(), 1)
    record = checkpoint.describe(one, CharTokenizer(TEXT).alphabet, CORPUS)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for folder in ("real", "link", "link"):
        save_model(tmp_path / folder, one.bare, record)
        assert load_gpt(tmp_path / "real", "cpu")
        assert names(tmp_path) == ["link", "real"]
        assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize(
    ("target", "run", "refused"),
    [
        ("a", "a", True),
        ("a/b", "a", True),
        ("a", "a/b/c", True),
        ("a/../b", "b", True),
        ("a", "ab", False),
        ("a/b", "a/c", False),
    ],
)
def test_a_model_and_a_run_lie_apart(tmp_path, target, run, refused):
    (tmp_path / "a").mkdir()
    if not refused:
        return checkpoint.check_target(tmp_path / target, tmp_path / run)
    with pytest.raises(ValueError, match="the folder of the run's checkpoints"):
        checkpoint.check_target(tmp_path / target, tmp_path / run)


def test_the_first_that_cannot_be_written_says_so(tmp_path, monkeypatch):
    interrupt(monkeypatch, full(), 3)
    with pytest.raises(OSError, match=r"step-0000001 could not .*device; free some space$"):
        advance(trainer(), 1, tmp_path)
    assert latest(tmp_path) is None
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "space"),
    [
        (errno.ENOSPC, True),
        (errno.EDQUOT, True),
        (errno.EFBIG, True),
        (errno.EACCES, False),
        (errno.EROFS, False),
        (errno.EIO, False),
    ],
)
def test_space_is_asked_for_only_if_it_is_wanting(tmp_path, monkeypatch, number, space):
    one = advance(trainer(), 1, tmp_path)
    interrupt(monkeypatch, OSError(number, "no"), 3)
    with pytest.raises(OSError, match=r"step-0000001 is whole; (.*) ?resume$") as caught:
        advance(one, 1, tmp_path)
    assert ("free some space" in str(caught.value)) is space


def fill(folder):
    """Train a model into a folder that has room for less than two checkpoints."""
    one = advance(trainer(d_model=64), 2, folder)
    size = sum(path.stat().st_size for path in latest(folder).iterdir())
    assert size > 64 * 1024
    return one


def test_files_that_the_system_refuses_to_write(tmp_path):
    one = fill(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            advance(one, 1, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    one = trainer(d_model=64)
    restore(latest(tmp_path), one, CORPUS)
    assert one.progress.step == 2
    assert names(tmp_path) == ["step-0000002"]


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


@pytest.mark.parametrize("room", [0, 1, 40_000, 200_000])
def test_a_full_disk(small_disk, room):
    """With room for nothing, for a file's beginning, for some of the files."""
    one = fill(small_disk)
    free = shutil.disk_usage(small_disk).free
    (small_disk / "ballast").write_bytes(bytes(max(0, free - room)))
    checkpoints = small_disk / "step-0000002"
    with pytest.raises(OSError, match="No space left on device") as caught:
        advance(one, 2, small_disk)
    caught.match("step-0000004 could not be written: .*step-0000002 is whole; free some")
    assert names(small_disk) == ["ballast", "step-0000002"]
    assert latest(small_disk) == checkpoints
    (small_disk / "ballast").unlink()
    resumed = trainer(d_model=64)
    restore(checkpoints, resumed, CORPUS)
    advance(resumed, 2, small_disk)
    assert names(small_disk) == ["step-0000004"]


# --- damage and disagreement ----------------------------------------------------------


def both_refuse(folder, message, loads=True):
    one = trainer()
    before = {name: weight.clone() for name, weight in one.bare.state_dict().items()}
    with pytest.raises(ValueError, match=message):
        restore(folder, one, CORPUS)
    assert same(one.bare.state_dict(), before)  # all or nothing
    assert one.progress.step == 0
    assert not one.optimizers[0].state
    if loads:
        with pytest.raises(ValueError, match=message):
            load_gpt(folder, "cpu")


@pytest.mark.parametrize("damage", ["gone", "empty", "half", "noise"])
@pytest.mark.parametrize(
    "name", ["model.safetensors", "optimizer.safetensors", "training.json"]
)
def test_a_damaged_file_is_named(tmp_path, name, damage):
    advance(trainer(), 2, tmp_path)
    path = latest(tmp_path) / name
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        half, noise = content[: len(content) // 2], bytes(range(255, 0, -1))
        path.write_bytes({"empty": b"", "half": half, "noise": noise}[damage])
    both_refuse(latest(tmp_path), f"{path} cannot be read", loads="optimizer" not in name)


@pytest.mark.parametrize("text", ["{}", "[]", '{"model": {}}', '"so"', "null"])
def test_a_record_without_what_is_needed(tmp_path, text):
    advance(trainer(), 2, tmp_path)
    (latest(tmp_path) / "training.json").write_text(text)
    both_refuse(latest(tmp_path), "training.json cannot be read")


def spoilt(**changes):
    """Return what spoils a record's parts."""
    return lambda record: (
        record
        | {
            part: record[part] | change if isinstance(change, dict) else change
            for part, change in changes.items()
        }
    )


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoilt(model={"depth": 3}), "depth"),
        (lambda record: record | {"model": {}}, "vocab_size"),
        (spoilt(model={"layers": "x"}), "layers must be a whole number, not 'x'"),
        (spoilt(model={"heads": 3}), "3 heads do not divide"),
        (spoilt(alphabet="ab"), "2 characters, but vocab_size = "),
    ],
)
def test_a_record_that_makes_no_model(tmp_path, spoil, message):
    one = advance(trainer(), 2)
    record = checkpoint.describe(one, CharTokenizer(TEXT).alphabet, CORPUS)
    save_model(tmp_path / "model", one.bare, spoil(record))
    with pytest.raises(ValueError, match=rf"training\.json cannot be read: .*{message}"):
        load_gpt(tmp_path / "model", "cpu")


@pytest.mark.parametrize("change", ["in another order", "twice"])
def test_an_alphabet_is_sorted(tmp_path, change):
    one, alphabet = advance(trainer(), 2), CharTokenizer(TEXT).alphabet
    other = alphabet[::-1] if change == "in another order" else alphabet[1] + alphabet[1:]
    save_model(tmp_path / "model", one.bare, checkpoint.describe(one, other, CORPUS))
    with pytest.raises(ValueError, match=r"training\.json cannot be read: the alphabet"):
        load_gpt(tmp_path / "model", "cpu")


def test_a_record_with_strange_progress_restores_nothing(tmp_path):
    advance(trainer(), 2, tmp_path)
    path = latest(tmp_path) / "training.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(spoilt(progress={"mood": "good"})(record)))
    both_refuse(latest(tmp_path), r"training\.json cannot be read: .*mood", loads=False)


@pytest.mark.parametrize("change", ["lacks", "has another shape", "has one more"])
def test_weights_of_another_model(tmp_path, change):
    advance(trainer(), 2, tmp_path)
    path = latest(tmp_path) / "model.safetensors"
    weights = load_file(path)
    first = next(iter(weights))
    if change == "lacks":
        del weights[first]
    else:
        name = first if change == "has another shape" else "stranger"
        weights[name] = torch.zeros(1, 2, 3)
    save_file(weights, path)
    both_refuse(latest(tmp_path), f"{path} cannot be read")


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
def test_other_settings_are_named(tmp_path, changes, message):
    advance(trainer(), 2, tmp_path)
    with pytest.raises(ValueError, match=message):
        restore(latest(tmp_path), trainer(**changes), CORPUS)


def test_another_corpus_of_the_same_letters(tmp_path):
    advance(trainer(), 2, tmp_path)
    with pytest.raises(ValueError, match="another corpus"):
        restore(latest(tmp_path), trainer(TEXT[::-1]), fingerprint(TEXT[::-1]))


def test_nothing_there(tmp_path):
    with pytest.raises(ValueError, match=r"training\.json cannot be read"):
        load_gpt(tmp_path, "cpu")
