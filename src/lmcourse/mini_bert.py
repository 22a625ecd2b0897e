"""The mini-BERT: a small BERT that fills blanks in the lines of two poets.

``python -m studies mini-bert --write`` trains it, some minutes of one core, and writes the
file that `load_mini_bert` loads.
"""

from collections.abc import Iterator
from pathlib import Path

import torch
import transformers
from tokenizers import BertWordPieceTokenizer
from torch.nn.utils.rnn import pad_sequence

from lmcourse.data import POEMS, corpora_folder, load_texts, train_val_test_split
from lmcourse.masking import MaskedBert, place_losses
from lmcourse.positions import sinusoidal
from lmcourse.weights import load_model, read_record

SIZES = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZES |= {"intermediate_size": 512, "max_position_embeddings": 64, "type_vocab_size": 1}
SETTINGS = {"vocab_size": 2000, "steps": 4000, "batch": 16, "share": 0.3, "seed": 1886}
SETTINGS |= {"learning_rate": 0.003, "muon_learning_rate": 0.02, "weight_decay": 0.05}
SETTINGS |= {"dropout": 0.2}
FILE = "mini-bert.safetensors"


def poem_splits() -> tuple[list[str], list[str], list[str]]:
    """Return the poems of both poets to learn from, to choose by and to judge by."""
    found = ([], [], [])
    for name in POEMS:
        texts = load_texts(name)
        for kept, part in zip(found, train_val_test_split(texts), strict=True):
            kept += [text for text in texts if text in part]
    return found


def train_tokenizer(texts, vocab_size):
    """Learn a vocabulary of word pieces, and return it as the tokenizer of a BERT.

    The library breaks ties by chance: a few pieces differ from process to process.
    """
    learner = BertWordPieceTokenizer()
    learner.train_from_iterator(texts, vocab_size=vocab_size, show_progress=False)
    return transformers.BertTokenizerFast(learner.get_vocab())


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


def new_model(tokenizer, settings):
    """Return an untrained `MaskedBert` of the size of the stored one, and its sizes.

    Its positions begin as waves, and the four heads of its first layer by looking one and
    two places back and ahead: large BERTs learn such heads, and so little text does not
    teach them in a few minutes. Everything is trained on from there.
    """
    sizes = SIZES | {"vocab_size": len(tokenizer)}
    torch.manual_seed(settings["seed"])
    model = MaskedBert(
        transformers.BertConfig(hidden_dropout_prob=settings["dropout"], **sizes)
    )
    positions = model.bert.embeddings.position.weight
    waves = sinusoidal(*positions.shape, base=100)  # (positions, d_model)
    attention = model.bert.layers[0].attention
    queries = attention.query.weight.unflatten(0, (attention.heads, -1))
    keys = attention.key.weight.unflatten(0, (attention.heads, -1))
    with torch.no_grad():
        positions.copy_(waves * 0.03)  # the size of the word vectors
        for head, away in enumerate((-1, 1, -2, 2)):
            here = torch.arange(len(waves))
            here = here[(here + away >= 0) & (here + away < len(waves))]
            shift = torch.linalg.lstsq(waves[here], waves[here + away]).solution
            queries[head] = 5 * keys[head] @ shift.T  # waves @ shift: `away` further on
    return model, sizes


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


def judge(model, texts, tokenizer, room):
    """Return the mean loss of hidden pieces of poems, in nats per piece."""
    ids = [each for text in texts for each in passages(text, tokenizer, room)]
    losses = place_losses(model, pad_sequence(ids, batch_first=True), tokenizer)
    return losses[losses > 0].mean().item()
