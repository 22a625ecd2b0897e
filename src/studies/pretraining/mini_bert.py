"""The mini-BERT: a small BERT that fills blanks, ``mini-bert.safetensors``.

No question, no rivals: it makes a model and its vocabulary, on the training poems of both
poets, in some minutes. What it can and cannot do is measured in the chapters *pretraining*
and *bert-internals*. Its record, the losses on the way among it, lies in the file.
"""

import time

import torch
import transformers
from tokenizers import BertWordPieceTokenizer
from torch.nn.utils.rnn import pad_sequence

from lmcourse.data import fingerprint
from lmcourse.masking import MaskedBert, place_losses, train
from lmcourse.mini_bert import passages, poem_splits
from lmcourse.positions import sinusoidal
from lmcourse.weights import save_model

CHAPTER = "pretraining"
CHECKPOINTS = ("mini-bert",)
SIZES = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZES |= {"intermediate_size": 512, "max_position_embeddings": 64, "type_vocab_size": 1}
SETTINGS = {"vocab_size": 2000, "steps": 4000, "batch": 16, "share": 0.3, "seed": 1886}
SETTINGS |= {"learning_rate": 0.003, "muon_learning_rate": 0.02, "weight_decay": 0.05}
SETTINGS |= {"dropout": 0.2}


def train_tokenizer(texts, vocab_size):
    """Learn a vocabulary of word pieces, and return it as the tokenizer of a BERT.

    The library breaks ties by chance: a few pieces differ from process to process.
    """
    learner = BertWordPieceTokenizer()
    learner.train_from_iterator(texts, vocab_size=vocab_size, show_progress=False)
    return transformers.BertTokenizerFast(learner.get_vocab())


def new_model(tokenizer, settings):
    """Return an untrained `MaskedBert` of the size of the stored one, and its sizes.

    Its positions begin as waves, and the four heads of its first layer by looking one and
    two places back and ahead: large BERTs learn such heads, and so little text does not
    teach them in a few minutes. Everything is trained on from there.
    """
    sizes = SIZES | {"vocab_size": len(tokenizer)}
    torch.manual_seed(settings["seed"])
    dropped = {"hidden_dropout_prob": settings["dropout"]}
    model = MaskedBert(transformers.BertConfig(**dropped, **sizes))
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


def judge(model, texts, tokenizer, room):
    """Return the mean loss of hidden pieces of poems, in nats per piece."""
    ids = [each for text in texts for each in passages(text, tokenizer, room)]
    losses = place_losses(model, pad_sequence(ids, batch_first=True), tokenizer)
    return losses[losses > 0].mean().item()


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
