"""The mini-BERT: a small BERT that fills blanks, ``mini-bert.safetensors``.

No question, no rivals: it makes a model and its vocabulary, on the training poems of both
poets, in some minutes. What it can and cannot do is measured in the chapters *pretraining*
and *bert-internals*. Its record, the losses on the way among it, lies in the file.
"""

import time

import torch

from lmcourse.data import fingerprint
from lmcourse.masking import train
from lmcourse.mini_bert import (
    SETTINGS,
    judge,
    new_model,
    passages,
    poem_splits,
    train_tokenizer,
)
from lmcourse.weights import save_model

CHAPTER = "pretraining"
CHECKPOINTS = ("mini-bert",)


def plan(small):
    """One training of 4,000 steps; or of two."""
    return [{"group": "runs", "training": SETTINGS | ({"steps": 2} if small else {})}]


def run(folder, group, training):
    """Train it; its loss is that on the poems that chose the settings."""
    texts, chosen_by, _ = poem_splits()
    start, losses = time.time(), []
    tokenizer = train_tokenizer(texts, training["vocab_size"])
    model, sizes = new_model(tokenizer, training)
    room = sizes["max_position_embeddings"]
    ids = [each for text in texts for each in passages(text, tokenizer, room, overlap=True)]

    def watch(step, loss):
        losses.append(loss)
        if step % 100 == 0:
            losses[-100:] = [sum(losses[-100:]) / 100]

    train(model, ids, tokenizer, training, watch)
    seconds = time.time() - start
    model = model.half().float()  # as it will be read
    record = {
        "model": sizes,
        "training": training,
        "vocabulary": tokenizer.convert_ids_to_tokens(range(len(tokenizer))),
        "losses": losses,
        "val_loss": judge(model, chosen_by, tokenizer, room),
        "seconds": seconds,
        "torch": torch.__version__,
        "corpus_sha256": fingerprint("\n\n".join(texts)),
    }
    save_model(folder / "mini-bert.safetensors", model.half(), record)
    return {"val_loss": record["val_loss"]}
