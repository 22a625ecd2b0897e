"""GGUF files: read as the `gguf` library reads them; damaged ones are clear errors."""

import contextlib

import gguf
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmcourse.gguf import GgufFile, dequantise, quantise, restore, unpack_nibbles

KINDS = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"]
FIELDS = {
    "test.whole": 7,
    "test.text": "naïve 🦋",
    "test.list": ["a", "bc", ""],
    "test.numbers": [3, 1, 2],
    "test.half": 0.5,
    "test.yes": True,
}


def write(path, kinds=KINDS):
    """Write a file with `FIELDS` and a (5, 64) matrix of each kind; return the matrices."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("test.whole", FIELDS["test.whole"])
    writer.add_string("test.text", FIELDS["test.text"])
    writer.add_array("test.list", FIELDS["test.list"])
    writer.add_array("test.numbers", FIELDS["test.numbers"])
    writer.add_float32("test.half", FIELDS["test.half"])
    writer.add_bool("test.yes", FIELDS["test.yes"])
    rng = np.random.default_rng(0)
    matrices = {}
    for kind in kinds:
        matrix = rng.normal(size=(5, 64)).astype(np.float32)
        number = gguf.GGMLQuantizationType[kind]
        stored = gguf.quants.quantize(matrix, number)
        writer.add_tensor(kind, stored, raw_dtype=number)
        matrices[kind] = gguf.quants.dequantize(stored, number)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return matrices


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    return path, write(path)


def test_fields_are_those_that_were_written(written):
    file = GgufFile(written[0])
    assert {name: file.fields[name] for name in FIELDS} == FIELDS
    assert file.fields["general.architecture"] == "llama"


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_are_as_the_library_reads_them(written, kind):
    path, matrices = written
    file = GgufFile(path)
    assert file.tensors[kind].shape == (5, 64)
    assert file.tensors[kind].kind == kind
    np.testing.assert_array_equal(file.read(kind).numpy(), matrices[kind])


def test_a_block_of_four_bits_by_hand():
    scale, minimum = np.array([0.5, -2], np.float16).view(np.uint8).reshape(2, 2)
    nibbles = np.arange(16, dtype=np.uint8) | (np.arange(15, -1, -1, dtype=np.uint8) << 4)
    numbers = dequantise(np.concatenate([scale, minimum, nibbles]), "Q4_1")
    expected = [
        *(0.5 * i - 2 for i in range(16)),
        *(0.5 * i - 2 for i in range(15, -1, -1)),
    ]
    np.testing.assert_array_equal(numbers, expected)
    assert unpack_nibbles(nibbles[None])[0, [0, 1, 16, 17]].tolist() == [0, 1, 15, 14]


# --- quantising -----------------------------------------------------------------------


def test_four_bits_are_stored_as_the_library_stores_them():
    matrix = torch.from_numpy(np.random.default_rng(1).normal(size=(3, 64))).float()
    number = gguf.GGMLQuantizationType.Q4_1
    theirs = gguf.quants.dequantize(gguf.quants.quantize(matrix.numpy(), number), number)
    # Both round the scale to float16, one before and one after it divides.
    step = quantise(matrix, 4)[1].max().item()
    assert np.abs(restore(*quantise(matrix, 4)).numpy() - theirs).max() <= 1.01 * step
    assert np.mean(restore(*quantise(matrix, 4)).numpy() == theirs) > 0.95


@given(st.integers(1, 8), st.integers(0, 10**6))
def test_nothing_is_off_by_more_than_half_a_step(bits, seed):
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.randn(3, 64, generator=generator)
    integers, scale, minimum = quantise(matrix, bits)
    assert integers.max() <= 2**bits - 1
    off = (restore(integers, scale, minimum) - matrix).abs().unflatten(-1, (-1, 32))
    rounding = 1e-3 * (minimum.abs().float() + scale.float() * 2**bits)  # float16's own
    assert (off <= scale.float() / 2 + rounding).all()


def test_a_block_of_equal_numbers_stays():
    matrix = torch.full((2, 32), 0.5)
    assert torch.equal(restore(*quantise(matrix, 3)), matrix)


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match="from 1 to 8, not 9"):
        quantise(torch.zeros(2, 32), 9)
    with pytest.raises(ValueError, match="rows of 33 are not whole blocks of 32"):
        quantise(torch.zeros(2, 33), 4)


# --- damaged files --------------------------------------------------------------------

# Every example writes its file over the last one's.
in_one_folder = settings(
    suppress_health_check=[
        *settings.default.suppress_health_check,
        HealthCheck.function_scoped_fixture,
    ]
)


def test_another_file_is_refused(tmp_path):
    for content, match in [
        (b"", "is empty"),
        (b"PK\3\4" + bytes(99), "not begin with GGUF"),
    ]:
        path = tmp_path / "other.gguf"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=match):
            GgufFile(path)
    with pytest.raises(FileNotFoundError):
        GgufFile(tmp_path / "missing.gguf")


def test_an_unknown_version_is_refused(written, tmp_path):
    content = bytearray(written[0].read_bytes())
    content[4] = 1
    (tmp_path / "old.gguf").write_bytes(content)
    with pytest.raises(ValueError, match="has version 1 of GGUF; versions 2 and 3"):
        GgufFile(tmp_path / "old.gguf")


@in_one_folder
@given(data=st.data())
def test_a_file_that_was_cut_is_refused(written, tmp_path, data):
    content = written[0].read_bytes()
    tensors = GgufFile(written[0]).tensors.values()
    end = max(stored.start + stored.length for stored in tensors)  # then comes padding
    length = data.draw(st.integers(1, end - 1))
    path = tmp_path / "cut.gguf"
    path.write_bytes(content[:length])
    with pytest.raises(ValueError, match=r"cut\.gguf"):
        GgufFile(path)


@in_one_folder
@given(data=st.data())
def test_a_damaged_header_is_an_error_or_another_file(written, tmp_path, data):
    """No other exception, and no memory is taken for what is not there."""
    content = bytearray(written[0].read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, 600))
        content[place] = data.draw(st.integers(0, 255))
    path = tmp_path / "damaged.gguf"
    path.write_bytes(content)
    with contextlib.suppress(ValueError):
        file = GgufFile(path)
        for name, stored in file.tensors.items():
            assert file.read(name).shape == stored.shape
