"""What goes wrong in the exercises of *models-you-talk-to*, diagnosis → answer."""

import struct

import numpy as np
import torch

from lmcourse.gguf import GgufFile
from lmcourse.llama import load_talker, talker_file

TOKENIZER, MODEL = load_talker(device="cpu")
FILE = GgufFile(talker_file())

MINE = "When Tom and Ruth went to the park, Ruth gave a ring to"
TWIN = "When Tom and Ruth went to the park, Tom gave a ring to"
OTHER = "When Sarah and Paul went to the store, Paul gave a book to"
OTHER_TWIN = "When Sarah and Paul went to the store, Sarah gave a book to"


def given(page):
    return {
        "tokenizer": TOKENIZER,
        "model": MODEL,
        "config": MODEL.config,
        "file": FILE,
        "block": FILE.read_bytes("blk.0.attn_q.weight")[:20],
        "HEADS": [(20, 0), (23, 3)],
    }


def parts(block):
    scale, minimum = block[:4].copy().view(np.float16).astype(np.float32)
    return scale, minimum, block[4:]


def by_struct(block):
    scale, minimum = struct.unpack("<2e", bytes(block[:4]))
    halves = [byte % 16 for byte in block[4:]] + [byte // 16 for byte in block[4:]]
    return [scale * int(half) + minimum for half in halves]


def by_torch(block):
    scale, minimum = torch.tensor(block[:4]).view(torch.float16).float()
    packed = torch.tensor(block[4:])
    return torch.cat([packed & 15, packed >> 4]) * scale + minimum


WRONG = {
    "shared": {
        "then it begins again": [
            lambda key, heads: torch.cat([key] * (heads // len(key))),
            lambda key, heads: key.repeat(heads // len(key), 1, 1),
        ],
        "as many as before": lambda key, heads: key,
        "tokens were repeated": lambda key, heads: key.repeat_interleave(2, 1),
        "once for every head": lambda key, heads: key.repeat_interleave(heads, 0),
        "first keys": lambda key, heads: key[:1].expand(heads, -1, -1),
    },
    "dequantised": {
        "side by side in yours": lambda block: (
            np.array([[b & 15, b >> 4] for b in block[4:]]).reshape(-1) * parts(block)[0]
            + parts(block)[1]
        ),
        "upper halves come first": lambda block: np.roll(by_struct(block), 16),
        "minimum is missing": lambda block: np.array(by_struct(block)) - parts(block)[1],
        "subtracted; it is added": lambda block: (
            np.array(by_struct(block)) - 2 * parts(block)[1]
        ),
        "sixteen numbers": lambda block: by_struct(block)[:16],
        "from 0 to 15": lambda block: (
            (np.array(by_struct(block)) - parts(block)[1]) / parts(block)[0]
        ),
    },
    "own": {
        "three texts": [(MINE, TWIN, 5), (MINE, 2.5, "Ruth")],
        "sentence is empty": (MINE, " ", "Ruth"),
        "word is missing": (MINE, TWIN, ""),
        "are the same": (MINE, MINE, "Ruth"),
        "too long": (MINE, TWIN * 20, "Ruth"),
        "equally long": (MINE, "Ruth gave a ring to", "Ruth"),
        "in the same way": (
            "He was born in the United",
            "She was born in the United",
            "States",
        ),
        "as it is. Copy": (MINE, TWIN, "Tom"),
        "reads another": (MINE, TWIN, "Mary"),
    },
}

RIGHT = {
    "shared": [
        lambda key, heads: torch.stack(
            [key[head * len(key) // heads] for head in range(heads)]
        ),
        lambda key, heads: key[torch.arange(heads) // (heads // len(key))],
    ],
    "dequantised": [by_struct, by_torch],
    "own": [[MINE, TWIN, " Ruth"], (OTHER, OTHER_TWIN, "Paul")],
}

TYPED = {"own": [(MINE, TWIN, "Anna"), (OTHER, OTHER_TWIN, "the")]}
