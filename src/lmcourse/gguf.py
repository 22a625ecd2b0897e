"""Reading a GGUF file: a model's sizes, its tokenizer and its quantised weights.

GGUF is the file format of llama.cpp. A file is a list of named fields, a list of named
tensors, and then the tensors' bytes. Most matrices are quantised: cut into blocks of 32
numbers, each of which is stored as a small integer and a scale for the whole block.

`GgufFile` reads a file, `dequantise` turns a tensor's bytes back into numbers, and
`quantise` shows what a given number of bits would leave of any matrix.
"""

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

BLOCK = 32  # numbers that share a scale
MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = 32  # bytes, unless the file's field "general.alignment" says otherwise

# A field's type, by the number that stands for it: its letter for `struct`.
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?"}
_SCALARS |= {10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9

# How the numbers of a tensor are stored, by the number that stands for it:
# name, numbers in a block, bytes of a block.
_KINDS = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", BLOCK, 2 + 16),
    3: ("Q4_1", BLOCK, 2 + 2 + 16),
    8: ("Q8_0", BLOCK, 2 + 32),
    30: ("BF16", 1, 2),
}


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies in a file, and how its numbers are stored.

    Attributes
    ----------
    shape : tuple of int
        As in PyTorch: rows first.
    kind : str
        ``"F32"``, ``"F16"``, ``"BF16"``, ``"Q8_0"``, ``"Q4_0"`` or ``"Q4_1"``.
    start, length : int
        Where its first byte is in the file, from 0, and how many bytes it has.
    """

    shape: tuple[int, ...]
    kind: str
    start: int
    length: int


class GgufFile:
    """The fields and tensors of a GGUF file, which is mapped into memory, not loaded.

    Parameters
    ----------
    path : path

    Attributes
    ----------
    fields : dict of str to object
        Numbers, strings, and lists of them.
    tensors : dict of str to StoredTensor

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it is not a GGUF file of a known version, or if it ends before what it announces.
    """

    def __init__(self, path):
        self.path = Path(path).expanduser()
        with self.path.open("rb") as file:
            if not self.path.stat().st_size:
                raise ValueError(f"{self.path} is empty: it is not a GGUF file")
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._at = 0
        try:
            self._read_header()
        except (struct.error, UnicodeDecodeError) as error:
            raise ValueError(
                f"{self.path} is damaged: its header cannot be read at byte {self._at} "
                f"({error})"
            ) from error

    def read_bytes(self, name):
        """Return the bytes of a tensor as they are stored, a uint8 array without a copy.

        ``name`` : str, a key of ``tensors``.
        """
        stored = self.tensors[name]
        return np.frombuffer(self._bytes, np.uint8, stored.length, stored.start)

    def read(self, name):
        """Return a tensor's numbers.

        Parameters
        ----------
        name : str
            A key of ``tensors``.

        Returns
        -------
        float32 Tensor of the tensor's shape
        """
        stored = self.tensors[name]
        values = dequantise(self.read_bytes(name), stored.kind)
        return torch.from_numpy(values).view(stored.shape)

    # --- the header -------------------------------------------------------------------

    def _read_header(self):
        """Read a GGUF file's header, and set ``fields`` and ``tensors`` to what it says.

        It begins with the letters GGUF, the version, and how many tensors and fields there
        are; the fields follow, name, type and value of each, and then of each tensor its
        name, shape, format and place. ``fields`` is a dict of str to number, str or list of
        these, ``tensors`` one of str to `StoredTensor`.

        Raises
        ------
        ValueError
            If it is no GGUF file of version 2 or 3, has an alignment that is no whole
            number from 1, or is shorter than what it announces.
        """
        if self._take(4) != MAGIC:
            raise ValueError(f"{self.path} is not a GGUF file: it does not begin with GGUF")
        version = self._scalar("I")
        if version not in VERSIONS:
            raise ValueError(
                f"{self.path} has version {version} of GGUF; versions 2 and 3 can be read"
            )
        tensor_count = self._scalar("Q")
        field_count = self._scalar("Q")
        self.fields = {}
        for _ in range(self._count(field_count, 13)):  # 13 bytes: the shortest field
            name = self._string()
            self.fields[name] = self._value(self._scalar("I"))
        announced = [self._announced() for _ in range(self._count(tensor_count, 25))]
        alignment = self.fields.get("general.alignment", ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1:
            raise ValueError(f"{self.path}: general.alignment is {alignment!r}")
        data = math.ceil(self._at / alignment) * alignment
        self.tensors = {
            name: self._stored(name, dimensions, number, data + offset)
            for name, dimensions, number, offset in announced
        }

    def _take(self, length):
        """Return the next bytes of the header; a ValueError if it ends before.

        ``length`` : int, how many.
        """
        if length > len(self._bytes) - self._at:
            raise ValueError(
                f"{self.path} is damaged: it ends at byte {len(self._bytes)}, before its "
                "header does"
            )
        start = self._at
        self._at = self._at + length
        return self._bytes[start : self._at]

    def _scalar(self, letter):
        """Return the next number of the header, int or float.

        ``letter`` : its type as `struct` names it, such as "I".
        """
        length = struct.calcsize("<" + letter)
        return struct.unpack("<" + letter, self._take(length))[0]

    def _count(self, number, least):
        """Return ``number``, how many things follow, if there is room for them.

        ``least`` is how many bytes each has at least; a ValueError if there is no room.
        """
        if number * least > len(self._bytes) - self._at:
            raise ValueError(
                f"{self.path} is damaged: it is too short for the {number} entries that it "
                f"announces at byte {self._at}"
            )
        return number

    def _string(self):
        """Return the next text of the header, a str.

        Its length in bytes stands before its bytes.
        """
        return self._take(self._scalar("Q")).decode("utf-8")

    def _value(self, number):
        """Return the value of a field: a number, a str, or a list of these.

        ``number`` : int, GGUF's for its type: 8 is a text, 9 a list, others up to 12 are
        kinds of numbers. An unknown type, or a list of lists, is a ValueError.
        """
        if number in _SCALARS:
            return self._scalar(_SCALARS[number])
        if number == _STRING:
            return self._string()
        if number != _ARRAY:
            raise ValueError(f"{self.path} is damaged: no field has the type {number}")
        inner = self._scalar("I")
        count = self._scalar("Q")
        if inner in _SCALARS:
            letter = _SCALARS[inner]
            data = self._take(count * struct.calcsize("<" + letter))
            return list(struct.unpack(f"<{count}{letter}", data))
        if inner != _STRING:
            raise ValueError(f"{self.path} has a list of lists, which is not supported")
        return [self._string() for _ in range(self._count(count, 8))]

    def _announced(self):
        """Return what the header says of the next tensor.

        Returns
        -------
        name : str
        dimensions : list of int
            Its shape, the last axis first.
        number : int
            GGUF's, for the format of its numbers: 0 is F32, 1 F16, 2 Q4_0, and so on.
        offset : int
            Where its bytes begin, counted from where those of all tensors do.
        """
        name = self._string()
        dimensions = [self._scalar("Q") for _ in range(self._count(self._scalar("I"), 8))]
        return name, dimensions, self._scalar("I"), self._scalar("Q")

    def _stored(self, name, dimensions, number, start):
        """Return where a tensor lies in the file, after a check of what the header says.

        Parameters
        ----------
        name : str
            Of the tensor, for messages.
        dimensions : sequence of int
            Its shape, the last axis first.
        number : int
            GGUF's for its format: 0 is F32, 1 F16, 2 Q4_0, 3 Q4_1, 8 Q8_0, 30 BF16.
        start : int
            The byte at which it begins.

        Returns
        -------
        StoredTensor
            Shape (rows first), name of the format, first byte and number of bytes.

        Raises
        ------
        ValueError
            If the format is not known, rows are not whole blocks, or the file is too short.
        """
        if number not in _KINDS:
            known = ", ".join(kind for kind, _, _ in _KINDS.values())
            raise ValueError(
                f"{self.path}: {name} is stored in the format of number {number}; only "
                f"{known} can be read"
            )
        kind, block_numbers, block_bytes = _KINDS[number]
        if dimensions and dimensions[0] % block_numbers:
            raise ValueError(f"{self.path}: rows of {name} are not whole blocks of {BLOCK}")
        length = math.prod(dimensions) // block_numbers * block_bytes
        if start + length > len(self._bytes):
            raise ValueError(
                f"{self.path} is damaged: {name} should end at byte {start + length}, and "
                f"the file has {len(self._bytes)}"
            )
        return StoredTensor(tuple(reversed(dimensions)), kind, start, length)


# --- from bytes to numbers ------------------------------------------------------------


def dequantise(data, kind):
    """Turn a tensor's bytes back into numbers.

    In Q8_0, Q4_0 and Q4_1 each block of 32 numbers has a float16 scale, in Q4_1 also a
    float16 minimum, and then integers of 8 or 4 bits. A number is scale times integer (less
    8 in Q4_0), plus the minimum.

    Parameters
    ----------
    data : uint8 array
        Whole blocks.
    kind : str
        How the numbers are stored, by GGUF's name: "F32", "F16", "BF16", "Q8_0", "Q4_0" or
        "Q4_1"; any other is a KeyError.

    Returns
    -------
    float32 array of shape (numbers,)
    """
    if kind in ("F32", "F16"):
        return data.view(np.float32 if kind == "F32" else np.float16).astype(np.float32)
    if kind == "BF16":  # the upper half of a float32
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if kind == "Q8_0":
        blocks = data.reshape(-1, 2 + BLOCK)
        scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)  # (blocks, 1)
        return (scale * blocks[:, 2:].view(np.int8)).reshape(-1)
    head = {"Q4_0": 2, "Q4_1": 4}[kind]  # bytes before the sixteen that hold the integers
    blocks = data.reshape(-1, head + BLOCK // 2)
    integers = unpack_nibbles(blocks[:, head:])  # (blocks, 32), 0 … 15
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)  # (blocks, 1)
    if kind == "Q4_0":
        return (scale * (integers.astype(np.float32) - 8)).reshape(-1)
    minimum = blocks[:, 2:4].copy().view(np.float16).astype(np.float32)  # (blocks, 1)
    return (scale * integers + minimum).reshape(-1)


def unpack_nibbles(data):
    """Return the two four-bit integers of every byte.

    The lower half of the bytes comes first: byte i holds the integers i and i + 16.

    Parameters
    ----------
    data : uint8 array of shape (blocks, 16)
        A block of 32 integers a row, two in each byte.

    Returns
    -------
    uint8 array of shape (blocks, 32)
        From 0 to 15.
    """
    return np.concatenate([data & 15, data >> 4], axis=1)


# --- from numbers to fewer bits -------------------------------------------------------


def quantise(matrix, bits, block=BLOCK):
    """Store a matrix with so many bits a number: integers, a scale and a minimum a block.

    The smallest number of a block becomes 0, the largest ``2 ** bits - 1``; the others are
    rounded to the nearest step between. With four bits that is Q4_1.

    Parameters
    ----------
    matrix : float Tensor of shape (rows, columns)
        Whole blocks a row.
    bits : int
        From 1 to 8.
    block : int
        How many numbers share a scale and a minimum.

    Returns
    -------
    integers : uint8 Tensor of shape (rows, columns / block, block)
    scale, minimum : float16 Tensor of shape (rows, columns / block, 1)

    Raises
    ------
    ValueError
        If ``bits`` is not from 1 to 8, or the rows are not whole blocks.
    """
    if not (isinstance(bits, int) and 1 <= bits <= 8):
        raise ValueError(f"bits must be a whole number from 1 to 8, not {bits!r}")
    if matrix.shape[-1] % block:
        raise ValueError(f"rows of {matrix.shape[-1]} are not whole blocks of {block}")
    blocks = matrix.float().unflatten(-1, (-1, block))
    minimum = blocks.amin(-1, keepdim=True)
    scale = (blocks.amax(-1, keepdim=True) - minimum) / (2**bits - 1)
    steps = (blocks - minimum) / torch.where(scale == 0, 1, scale)
    return steps.round().to(torch.uint8), scale.half(), minimum.half()


def restore(integers, scale, minimum):
    """Undo `quantise`, but for the rounding.

    Parameters
    ----------
    integers : uint8 Tensor of shape (rows, blocks, block)
        The stored numbers, in steps of the scale.
    scale, minimum : float16 Tensor of shape (rows, blocks, 1)
        Of each block.

    Returns
    -------
    float32 Tensor of shape (rows, columns)
    """
    return (integers * scale.float() + minimum.float()).flatten(-2)
