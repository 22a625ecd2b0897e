"""Files of weights and settings: written whole, read as expected, or refused by name."""

import json
import os
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from lmcourse.weights import (
    load_model,
    read_header,
    read_json,
    read_record,
    read_weights,
    save_model,
)

SHAPES = {"up": (2, 3), "bias": (3,)}


def weights(**changed):
    state = {name: torch.ones(shape) for name, shape in SHAPES.items()}
    return {name: x for name, x in (state | changed).items() if x is not None}


def written(path, state, **metadata):
    save_file(state, path, metadata=metadata)
    return path


# --- reading --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_what_is_expected_is_loaded(tmp_path, dtype):
    state, count = {name: x.to(dtype) for name, x in weights().items()}, torch.arange(3)
    path = written(tmp_path / "a.safetensors", state | {"count": count}, record="{}")
    assert read_header(path) == (SHAPES | {"count": (3,)}, {"record": "{}"})
    loaded = read_weights(path, SHAPES, spare=lambda name: name == "count")
    path.write_bytes(b"")  # the tensors do not depend on it
    want = {name: x.float() for name, x in state.items()}
    torch.testing.assert_close(loaded, want, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"bias": None}, "lacks 1 tensor: bias"),
        ({"gate": torch.ones(1)}, "besides what is expected, 1 tensor: gate"),
        ({"up": torch.ones(3, 2)}, r"up has the shape \(3, 2\), not \(2, 3\)"),
        ({"up": torch.ones(2, 3, dtype=torch.int8)}, "up is I8"),
        ({"up": torch.ones(2, 3, dtype=torch.float64)}, "up is F64"),
        ({"bias": torch.tensor([1.0, torch.nan, 0])}, "bias holds .* not finite"),
        ({"bias": torch.tensor([1.0, torch.inf, 0])}, "bias holds .* not finite"),
    ],
)
def test_other_weights_are_refused_by_name(tmp_path, changed, message):
    path = written(tmp_path / "a.safetensors", weights(**changed))
    with pytest.raises(ValueError, match=message) as error:
        read_weights(path, SHAPES)
    assert str(path) in str(error.value)


def test_a_cut_or_damaged_file_is_refused_by_name(tmp_path):
    whole = written(tmp_path / "a.safetensors", weights()).read_bytes()
    damaged = tmp_path / "b.safetensors"
    claims = json.dumps({"up": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 8]}})
    for content in (
        *(whole[:end] for end in range(0, len(whole), 7)),
        whole + b"\0",
        struct.pack("<Q", 2**60) + whole[8:],
        struct.pack("<Q", len(claims)) + claims.encode() + bytes(8),
    ):
        damaged.write_bytes(content)
        with pytest.raises(ValueError, match=r"b\.safetensors cannot be read as"):
            read_weights(damaged, SHAPES)
    for missing in (tmp_path / "none", tmp_path):
        with pytest.raises(OSError, match=missing.name):
            read_header(missing)


@pytest.mark.parametrize("transposed", [False, True])
def test_a_model_is_made_of_a_file_and_of_no_random_numbers(tmp_path, transposed):
    model, before = nn.Linear(2, 3), torch.get_rng_state()
    state = {"weight": model.weight.half(), "bias": model.bias}
    theirs = {
        f"old.{n}": x.mT if x.ndim == 2 and transposed else x for n, x in state.items()
    }
    theirs = {name: x.detach().contiguous() for name, x in theirs.items()}
    path = written(tmp_path / "a.safetensors", theirs)
    loaded = load_model(
        path,
        lambda: nn.Linear(2, 3),
        1,
        rename=lambda name: f"old.{name}",
        is_transposed=lambda name, weight: transposed and name == "old.weight",
    )
    assert not loaded.training
    assert torch.equal(loaded.weight, model.weight.half().float())
    assert torch.equal(loaded.bias, model.bias)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(ValueError, match=r"a\.safetensors holds fewer tensors than 3"):
        load_model(path, lambda: pytest.fail("built"), 3)
    with pytest.raises(ValueError, match=r"no model .* for .*a\.safetensors: KeyError"):
        load_model(path, lambda: {}["swish"], 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"a": 1', "Expecting"),
        (b"", "Expecting value"),
        (b'{"a":' * 100_000, "recursion"),
        (b'{"a": ' + b"9" * 9999 + b"}", "digits"),
        (b'{"a": "\xff"}', "decode"),
        (b"[1]", "holds a list"),
    ],
)
def test_json_is_an_object_or_refused_by_name(tmp_path, text, message):
    path = tmp_path / "config.json"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=message) as error:
        read_json(path)
    assert str(path) in str(error.value)


# --- writing, death and full disks ----------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.safetensors"


def write(path, number, size=8):
    """Write a model whose record and weights are a number."""
    model = nn.Linear(size, size)
    nn.init.constant_(model.weight, number)
    save_model(path, model, {"number": number}, {"other": torch.ones(2)})


def number_of(path):
    """Return what `write` was given; the file is whole and alone."""
    number = read_record(path)["number"]
    assert (load_file(path)["model.weight"] == number).all()
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    return number


def test_a_model_replaces_the_one_before_it(tmp_path):
    path = tmp_path / "folder" / "a.safetensors"
    for number in (1, 2):
        write(path, number)
        assert number_of(path) == number
    assert load_file(path).keys() == {"model.weight", "model.bias", "other"}


def test_a_link_stays_one(path):
    link = path.with_name("link.safetensors")
    link.symlink_to(path)
    write(link, 1)
    assert link.is_symlink()
    assert not path.is_symlink()
    assert read_record(path) == {"number": 1}


@pytest.mark.parametrize("moment", ["mkdir", "open", "fsync", "replace"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_whatever_stops_it_the_former_file_is_whole(path, monkeypatch, error, moment):
    def stop(*args, **kwargs):
        raise error("No space left")

    write(path, 1)
    monkeypatch.setattr(os if moment == "fsync" else Path, moment, stop)
    with pytest.raises(error) as caught:
        write(path, 2)
    monkeypatch.undo()
    assert number_of(path) == 1
    if error is OSError:
        reason = "could not be written: No space left; what was there before is whole"
        assert str(caught.value) == f"{path} {reason}"


def test_what_a_death_left_is_written_over(path):
    path.with_name(f".{path.name}.unfinished").write_bytes(b"half")
    write(path, 1)
    assert number_of(path) == 1


def test_the_first_that_cannot_be_written_leaves_nothing(path, monkeypatch):
    monkeypatch.setattr(Path, "replace", lambda *names: Path("none").stat())
    with pytest.raises(OSError, match=r"run.safetensors could not be written: .*'none'$"):
        write(path, 1)
    assert list(path.parent.iterdir()) == []
