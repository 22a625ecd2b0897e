"""A vocabulary of letters, and random texts of them."""

import torch
from transformers import BertTokenizerFast

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = [*SPECIAL, *"abcdefghijklmnopqrst"]


def letters_tokenizer():
    """Return a BERT's tokenizer whose words are letters."""
    return BertTokenizerFast(dict(zip(PIECES, range(len(PIECES)), strict=True)))


def random_letters(rows=4, tokens=8):
    """Return a batch (rows, tokens) of ids, the first text two tokens shorter."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(len(SPECIAL), len(PIECES), (rows, tokens), generator=generator)
    ids[:, 0], ids[:, -1] = 2, 3
    ids[0, -3:] = torch.tensor([3, 0, 0])
    return ids
