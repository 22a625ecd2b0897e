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
    """Return the training, validation and test poems of both poets: three lists of str.

    They are Shakespeare's Sonnets, then Dickinson's poems, each split in the same way: of
    ten poems the fifth is for validation, the tenth for the test.
    """
    training = []
    validation = []
    test = []
    for name in POEMS:
        texts = load_texts(name)
        parts = train_val_test_split(texts)  # each part is one str, of whole poems
        training += [text for text in texts if text in parts.training]
        validation += [text for text in texts if text in parts.validation]
        test += [text for text in texts if text in parts.test]
    return training, validation, test


def passages(text, tokenizer, max_tokens, overlap=False) -> Iterator[torch.Tensor]:
    """Cut a poem into runs of whole lines that fit the model.

    Only a line that is too long by itself is not whole: its end is cut off.

    Parameters
    ----------
    text : str
    tokenizer : PreTrainedTokenizerFast
    max_tokens : int
        Of a passage, [CLS] and [SEP] included.
    overlap : bool
        Whether a passage begins at every line, or only where the last one ended.

    Yields
    ------
    int Tensor of shape (tokens,)
    """
    lines = [line for line in text.splitlines() if line.strip()]
    line_ids = tokenizer(lines, add_special_tokens=False)["input_ids"]
    max_ids = max_tokens - 2  # without [CLS] and [SEP]
    start = 0
    while start < len(line_ids):
        ids = line_ids[start]
        end = start + 1
        while end < len(line_ids) and len(ids) + len(line_ids[end]) <= max_ids:
            ids = ids + line_ids[end]
            end += 1
        yield torch.tensor([tokenizer.cls_token_id, *ids[:max_ids], tokenizer.sep_token_id])
        start = start + 1 if overlap else end


def load_mini_bert(path=None):
    """Load the stored mini-BERT.

    Parameters
    ----------
    path : path, optional
        A safetensors file, as ``python -m studies mini-bert --write`` makes it. Default:
        the one that comes with the course.

    Returns
    -------
    tokenizer : PreTrainedTokenizerFast
    model : MaskedBert
        In evaluation mode, on the CPU.
    record : dict
        How it was trained, with ``model``, the fields of a BertConfig, and ``vocabulary``,
        a list of its pieces in the order of their ids.

    Raises
    ------
    OSError, ValueError
        If there is no such file, or it is damaged.
    """
    path = Path(path or corpora_folder() / "checkpoints" / FILE)
    record = read_record(path)
    try:
        config = transformers.BertConfig(**record["model"])
        vocabulary = dict(zip(record["vocabulary"], range(config.vocab_size), strict=True))
    except Exception as error:  # of many kinds, for one wrong value each
        raise ValueError(f"the record in {path} is not a mini-BERT's: {error!r}") from error
    model = load_model(path, lambda: MaskedBert(config), config.num_hidden_layers)
    return transformers.BertTokenizerFast(vocabulary), model, record
