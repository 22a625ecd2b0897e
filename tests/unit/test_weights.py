"""Files of weights and settings: whole and as expected, or refused by name."""

import json
import struct

import pytest
import torch
from safetensors.torch import save_file

from lmcourse.weights import parse_json, read_header, read_json, read_weights

SHAPES = {"up": (2, 3), "bias": (3,)}


def weights(**changed):
    state = {name: torch.ones(shape) for name, shape in SHAPES.items()}
    return {name: x for name, x in (state | changed).items() if x is not None}


def written(path, state, **metadata):
    save_file(state, path, metadata=metadata)
    return path


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_what_is_expected_is_loaded(tmp_path, dtype):
    state = {name: x.to(dtype) for name, x in weights().items()}
    path = written(tmp_path / "a.safetensors", state, record="{}")
    assert read_header(path) == (SHAPES, {"record": "{}"})
    found = read_weights(path, SHAPES)
    path.write_bytes(b"")  # the tensors do not depend on it
    torch.testing.assert_close(found, state, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"bias": None}, "lacks 1 tensors: bias"),
        ({"gate": torch.ones(1)}, "besides what is expected, 1 tensors: gate"),
        ({"up": torch.ones(3, 2)}, r"up has the shape \(3, 2\), not \(2, 3\)"),
        ({"up": torch.ones(2, 3, dtype=torch.int8)}, "up is I8"),
        ({"up": torch.ones(2, 3, dtype=torch.float64)}, "up is F64"),
        ({"bias": torch.tensor([1.0, torch.nan, 0])}, "bias holds .* not finite"),
        ({"bias": torch.tensor([1.0, torch.inf, 0])}, "bias holds .* not finite"),
    ],
)
def test_other_weights_are_refused_by_name(tmp_path, changed, said):
    path = written(tmp_path / "a.safetensors", weights(**changed))
    with pytest.raises(ValueError, match=said) as error:
        read_weights(path, SHAPES)
    assert str(path) in str(error.value)


def test_other_tensors_are_left_alone_on_demand(tmp_path):
    count = {"position_ids": torch.arange(3)}
    path = written(tmp_path / "a.safetensors", weights() | count)
    assert read_weights(path, SHAPES, others=True).keys() == SHAPES.keys()
    with pytest.raises(ValueError, match="position_ids"):
        read_weights(path, SHAPES)


def test_nothing_is_loaded_before_the_header_is_checked(tmp_path, monkeypatch):
    path = written(tmp_path / "a.safetensors", weights(up=torch.ones(9, 9)))
    monkeypatch.setattr(torch.Tensor, "clone", lambda *a: pytest.fail("loaded"))
    with pytest.raises(ValueError, match="up has the shape"):
        read_weights(path, SHAPES)


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"a": 1', "Expecting"),
        (b"", "Expecting value"),
        (b'{"a":' * 100_000, "recursion"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": -Infinity}', "-Infinity is not JSON"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "'c' stands in it twice"),
        (b'{"a": ' + b"9" * 9999 + b"}", "digits"),
        (b'{"a": "\xff"}', "decode"),
        (b"[1]", "holds a list"),
    ],
)
def test_json_is_an_object_or_refused_by_name(tmp_path, text, said):
    path = tmp_path / "config.json"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=said) as error:
        read_json(path)
    assert str(path) in str(error.value)


def test_json_is_read(tmp_path):
    (tmp_path / "a.json").write_text('{"é": [1, null]}', encoding="utf-8")
    assert (
        read_json(tmp_path / "a.json")
        == {"é": [1, None]}
        == parse_json('{"é":[1,null]}', "x")
    )
    with (tmp_path / "a.json").open("wb") as file:
        file.truncate(2**24 + 1)
    with pytest.raises(ValueError, match=r"a\.json is longer than"):
        read_json(tmp_path / "a.json")
