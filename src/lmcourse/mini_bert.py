"""The mini-BERT: a small BERT that fills blanks in the lines of two poets.

``python -m studies mini-bert --write`` trains it, some minutes of one core, and writes the
file that `load_mini_bert` loads.
"""

from collections.abc import Iterator
from pathlib import Path

import torch
import transformers

from lmcourse.data import POEMS, corpora_folder, load_texts, train_val_test_split
from lmcourse.masking import MaskedBert
from lmcourse.weights import load_model, read_record

FILE = "mini-bert.safetensors"


def poem_splits() -> tuple[list[str], list[str], list[str]]:
    """Return the poems of both poets to learn from, to choose by and to judge by."""
    found = ([], [], [])
    for name in POEMS:
        texts = load_texts(name)
        for kept, part in zip(found, train_val_test_split(texts), strict=True):
            kept += [text for text in texts if text in part]
    return found


def passages(text, tokenizer, room, overlap=False) -> Iterator[torch.Tensor]:
    """Cut a poem into runs of whole lines that fit the model.

    Parameters
    ----------
    text : str
    tokenizer : PreTrainedTokenizerFast
    room : int
        Tokens of a passage at most, [CLS] and [SEP] included.
    overlap : bool
        Whether one begins at every line, or only where the last one ended.

    Yields
    ------
    int Tensor of shape (tokens,)
    """
    lines = [line for line in text.splitlines() if line.strip()]
    lines = tokenizer(lines, add_special_tokens=False)["input_ids"]
    start = 0
    while start < len(lines):
        ids, end = lines[start], start + 1
        while end < len(lines) and len(ids) + len(lines[end]) <= room - 2:
            ids, end = ids + lines[end], end + 1
        ids = [tokenizer.cls_token_id, *ids[: room - 2], tokenizer.sep_token_id]
        yield torch.tensor(ids)
        start = start + 1 if overlap else end


def load_mini_bert(path=None):
    """Load the stored mini-BERT.

    Parameters
    ----------
    path : path, optional
        Default the one that comes with the course.

    Returns
    -------
    tokenizer : PreTrainedTokenizerFast
    model : MaskedBert
        In evaluation mode, on the CPU.
    record : dict
        How it was trained.

    Raises
    ------
    OSError, ValueError
        If there is no such file, or it is damaged.
    """
    path = Path(path or corpora_folder() / "checkpoints" / FILE)
    record = read_record(path)
    try:
        config = transformers.BertConfig(**record["model"])
        pieces = dict(zip(record["vocabulary"], range(config.vocab_size), strict=True))
    except Exception as error:  # of many kinds, for one wrong value each
        raise ValueError(f"the record in {path} is not a mini-BERT's: {error!r}") from error
    model = load_model(path, lambda: MaskedBert(config), config.num_hidden_layers)
    return transformers.BertTokenizerFast(pieces), model, record
