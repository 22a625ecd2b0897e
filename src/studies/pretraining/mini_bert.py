"""The mini-BERT: a small BERT that fills blanks, ``mini-bert.safetensors``.

No question and no rivals: it makes a model and its vocabulary in some minutes, on the
training poems of both poets. What it can and cannot do is measured in the chapters
*pretraining* and *bert-internals*. Its record is in the file, with the losses in training.
"""

import time

import torch
import transformers
from tokenizers import BertWordPieceTokenizer
from torch.nn.utils.rnn import pad_sequence

from lmcourse.data import fingerprint
from lmcourse.masking import MaskedBert, place_losses, train_masked
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
    """Train a WordPiece tokenizer.

    Parameters
    ----------
    texts : list of str
    vocab_size : int
        How many tokens at most.

    Returns
    -------
    BertTokenizerFast
        The library breaks ties at random: a few tokens differ from process to process.
    """
    trained = BertWordPieceTokenizer()
    trained.train_from_iterator(texts, vocab_size=vocab_size, show_progress=False)
    return transformers.BertTokenizerFast(trained.get_vocab())


def new_model(tokenizer, settings):
    """Return an untrained model of the size of the stored one.

    It has two layers of width 128 with four heads, and 64 positions. Its position vectors
    begin as sinusoids, and the four heads of its first layer attend to the tokens one and
    two positions before and after: large BERTs learn such heads, but not in a few minutes
    from so little text. Training changes all of it.

    Parameters
    ----------
    tokenizer : BertTokenizerFast
    settings : dict
        ``seed``, of the first weights, and ``dropout``, the share of activations zeroed in
        training, count here.

    Returns
    -------
    model : lmcourse.masking.MaskedBert
        A BERT with the head that predicts hidden tokens.
    sizes : dict
        Arguments of `transformers.BertConfig`, ``max_position_embeddings`` among them.
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
        for head, offset in enumerate((-1, 1, -2, 2)):
            here = torch.arange(len(waves))
            here = here[(here + offset >= 0) & (here + offset < len(waves))]
            # `waves @ shift` are the waves of `offset` positions further on.
            shift = torch.linalg.lstsq(waves[here], waves[here + offset]).solution
            queries[head] = 5 * keys[head] @ shift.T
    return model, sizes


def mean_masked_loss(model, texts, tokenizer, room):
    """Return the mean loss of the tokens of poems, each masked once, in nats a token.

    Parameters
    ----------
    model : lmcourse.masking.MaskedBert
        A BERT with the head that predicts hidden tokens, in evaluation mode.
    texts : list of str
        The poems, which are cut into passages; special tokens do not count.
    tokenizer : BertTokenizerFast
    room : int
        Tokens of a passage at most.
    """
    ids = [each for text in texts for each in passages(text, tokenizer, room)]
    losses = place_losses(model, pad_sequence(ids, batch_first=True), tokenizer)
    return losses[losses > 0].mean().item()


def plan(small):
    """Return the setting of the one run, a training of 4,000 steps.

    Parameters
    ----------
    small : bool
        Whether it has two steps instead.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "runs"; ``training``, the settings of
        the training by name.
    """
    return [{"group": "runs", "training": SETTINGS | ({"steps": 2} if small else {})}]


def run(folder, group, training):
    """Train a tokenizer and the model on the training poems, and save both in one file.

    Parameters
    ----------
    folder : Path
        Where ``mini-bert.safetensors`` is written: the weights as float16, and a record
        with the sizes, the settings, the vocabulary and the losses in training.
    group : {"runs"}
        The only kind of run; unused.
    training : dict
        The settings by name: ``vocab_size``, ``steps``, ``batch`` (passages a step),
        ``share`` of hidden tokens (0 to 1), ``seed``, ``learning_rate`` (of AdamW),
        ``muon_learning_rate``, ``weight_decay`` and ``dropout``. The sizes of the model are
        not among them.

    Returns
    -------
    dict
        ``val_loss``: the loss on the validation poems, by which the settings were chosen,
        in nats a token.
    """
    texts, validation_poems, _ = poem_splits()
    start = time.time()
    losses = []
    tokenizer = train_tokenizer(texts, training["vocab_size"])
    model, sizes = new_model(tokenizer, training)
    room = sizes["max_position_embeddings"]
    ids = [each for text in texts for each in passages(text, tokenizer, room, overlap=True)]

    def watch(step, loss):
        """Store a step's loss; every hundred steps put their mean in place of their losses.

        ``step`` : int, from 1; ``loss`` : float, in nats.
        """
        losses.append(loss)
        if step % 100 == 0:
            losses[-100:] = [sum(losses[-100:]) / 100]

    train_masked(model, ids, tokenizer, training, watch)
    seconds = time.time() - start
    model = model.half().float()  # as it will be when it is loaded
    record = {
        "model": sizes,
        "training": training,
        "vocabulary": tokenizer.convert_ids_to_tokens(range(len(tokenizer))),
        "losses": losses,
        "val_loss": mean_masked_loss(model, validation_poems, tokenizer, room),
        "seconds": seconds,
        "torch": torch.__version__,
        "corpus_sha256": fingerprint("\n\n".join(texts)),
    }
    save_model(folder / "mini-bert.safetensors", model.half(), record)
    return {"val_loss": record["val_loss"]}
