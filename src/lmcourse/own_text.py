"""A text of the reader's own: a small GPT learns it, and the best n-grams are its rival.

The view `lmcourse.views.own_text` does the same in a page, with a smaller model. ::

    mine = contest("my-own.txt")
    mine.table
    mine.save("my-gpt.safetensors")
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from lmcourse.data import Parts, fingerprint, load_corpus
from lmcourse.gpt import checkpoints
from lmcourse.gpt.generation import generate
from lmcourse.gpt.model import evaluating
from lmcourse.gpt.training import cut_windows
from lmcourse.ngrams import NgramModel
from lmcourse.tokenization import CharTokenizer
from lmcourse.train import new_run
from lmcourse.weights import save_model

LEAST = 1000  # characters of a text
HELD_OUT, PIECE, PIECES = 20_000, 1000, 10  # characters, characters, how many
LONGEST = 7  # n-grams: longer ones bring nothing more
SIZES = {"context": 64, "layers": 2, "heads": 4, "d_model": 64}
RATE = {"learning_rate": 4e-3, "batch": 24}


def parts_of(text):
    """Cut a text in three: to learn from, to choose by, and to judge by.

    What is held out are pieces from everywhere in the text, since its end may be about
    something else: a tenth of it for each of the two, but no more than 20,000 characters
    (`HELD_OUT`), in up to ten pieces of 1,000 characters or more.

    It is for any text, of which nobody knows where its poems or chapters end. Where that is
    known, `lmcourse.data.train_val_test_split` splits by whole poems.

    Parameters
    ----------
    text : str

    Returns
    -------
    Parts
        ``training``, ``validation`` and ``test``, one str each. Each piece of a part
        follows the one before without a mark between them.
    """
    held_out = min(len(text) // 10, HELD_OUT)
    count = max(1, min(PIECES, held_out // PIECE))
    size = held_out // count
    training = []
    validation = []
    test = []
    for piece in range(count):
        start = len(text) * piece // count
        end = len(text) * (piece + 1) // count
        middle = (start + end) // 2
        training += [text[start : middle - size], text[middle : end - size]]
        validation.append(text[middle - size : middle])
        test.append(text[end - size : end])
    return Parts(*map("".join, (training, validation, test)))


def check(text):
    """Raise ValueError if a text cannot be learned, saying what to do.

    It needs 1,000 characters, and two different ones.

    Parameters
    ----------
    text : str
    """
    if len(text) < LEAST:
        characters = "1 character" if len(text) == 1 else f"{len(text)} characters"
        raise ValueError(
            f"the text has {characters}, and {LEAST:,} are the least that can be learned. "
            "Take more; from 50,000 on it gets interesting"
        )
    if len(set(text)) == 1:
        raise ValueError(
            f"the text is one character, {text[0]!r}, over and over: there is nothing to "
            "predict. Take another text"
        )


def best_ngrams(training, validation, vocab_size):
    """Return the n-gram model with the lowest loss on the validation text.

    Parameters
    ----------
    training, validation : int array of shape (characters,)
        Texts as ids.
    vocab_size : int
        How many different characters there are.

    Returns
    -------
    NgramModel
        Of n-grams of 1 to 7 characters, and fewer if the alphabet is so large that they
        could not be numbered in 63 bits.
    """
    names = math.floor(63 / math.log2(vocab_size))  # n-grams have numbers of 63 bits
    orders = range(1, min(LONGEST, names) + 1)
    models = [NgramModel(training, order, vocab_size) for order in orders]
    return min(models, key=lambda model: model.loss(validation))


@torch.no_grad()
def losses(model, ids):
    """Return the loss of each character of a text but the first.

    Each is predicted from half a context at least (if the text has as much before it), and
    from a whole one at most.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    ids : integer Tensor of shape (characters,)

    Returns
    -------
    float array of shape (characters - 1,)
        In nats.
    """
    context = model.config.context
    device = next(model.parameters()).device
    values = []
    with evaluating(model):
        for start in range(0, max(1, len(ids) - 1), max(1, context // 2)):
            room = min(context, len(ids) - 1 - start)
            if len(values) >= len(ids) - 1:
                break
            inputs, targets = cut_windows(ids, torch.tensor([start]), room)
            logits = model(inputs.to(device)).cpu()[0].double()
            in_window = torch.nn.functional.cross_entropy(
                logits, targets[0], reduction="none"
            )
            # Windows overlap by half: only what the one before did not reach is new.
            values += in_window[len(values) - start :].tolist()
    return np.array(values)


@dataclass(frozen=True)
class Contest:
    """A GPT and an n-gram model that have learned the same text.

    Attributes
    ----------
    tokenizer : CharTokenizer
    model : lmcourse.gpt.model.GPT
        With the weights of the moment with the lowest validation loss.
    ngrams : NgramModel
    table : DataFrame
        Rows ``GPT`` and ``n-grams``; columns ``loss`` in nats a character and
        ``perplexity``, both on the test text.
    characters : int
        Of the test text, that both predicted.
    history : DataFrame
        Steps and validation losses of the GPT.
    record : dict
        How the GPT was trained, for its file.
    """

    tokenizer: CharTokenizer
    model: torch.nn.Module
    ngrams: NgramModel
    table: pd.DataFrame
    characters: int
    history: pd.DataFrame
    record: dict

    def samples(self, length=300, temperature=0.8, seed=1):
        """Return what the two write: a DataFrame, a row each, in the column "it writes".

        The rows are "GPT" and "n-grams". Both begin after a line break, or a space, or the
        first character of the alphabet, if the text has none of these. The GPT is moved to
        the CPU.

        Parameters
        ----------
        length : int
            Characters.
        temperature : float
            Of the GPT; the n-grams draw as they predict.
        seed : int
        """
        alphabet = self.tokenizer.alphabet
        first = self.tokenizer.encode(
            next((c for c in "\n " if c in alphabet), alphabet[0])
        )
        generator = torch.Generator().manual_seed(seed)
        start = torch.tensor([first])
        (ids,) = generate(self.model.cpu(), start, length, temperature, generator).tolist()
        drawn = self.ngrams.sample(first, length, np.random.default_rng(seed))
        texts = [self.tokenizer.decode(ids[1:]), self.tokenizer.decode(drawn)]
        return pd.DataFrame({"it writes": texts}, index=["GPT", "n-grams"])

    def save(self, path):
        """Write the GPT to a file, which `load_gpt` and the views of the site open.

        Parameters
        ----------
        path : path
            Of the safetensors file.
        """
        save_model(path, self.model, self.record)


def contest(text, steps=1000, seed=0, device=None, **sizes):
    """Train a GPT on a text, and compare it with the best n-grams of the same text.

    Of each, what there is to choose is chosen on a validation text: the moment of the GPT's
    training, and the length of the n-grams. Both are judged on a test text.

    Parameters
    ----------
    text : str or path
        The name of a corpus, "sonnets", "poems" or "tinyshakespeare", or a file in UTF-8.
    steps : int, optional
        Of the training. 1,000 take a minute or two.
    seed : int, optional
    device : str, optional
        Where to compute. Default: ``LMCOURSE_DEVICE``, else the best of CUDA, MPS and CPU.
    **sizes
        Sizes of the model and settings of the training to set otherwise, such as ``layers``
        or ``batch`` (fields of `GPTConfig` and `TrainingConfig`). By default two layers
        with four heads and states 64 wide, a context of 64 characters, batches of 24
        windows.

    Returns
    -------
    Contest
        With the trained GPT and the n-gram model, and in ``table`` their losses.

    Raises
    ------
    OSError, ValueError
        If there is no such text, or it is too short, one character over and over, or
        not text; or a setting is wrong.
    """
    text = load_corpus(text)
    check(text)
    parts = parts_of(text)
    fields = SIZES | RATE | {"warmup": max(1, steps // 20), "seed": seed, "steps": steps}
    fields |= {"evaluate_every": max(1, steps // 20), "validation_windows": 100} | sizes
    tokenizer, trainer = new_run(text, "classic", device=device, parts=parts, **fields)
    best = {}

    def keep(trainer):
        """Keep the weights in ``best`` if the validation loss was never lower.

        ``trainer`` : Trainer, after an estimate.
        """
        loss = trainer.history[-1]["val_loss"]
        if loss < best.get("loss", math.inf):
            state = {name: x.clone() for name, x in trainer.gpt.state_dict().items()}
            best.update(loss=loss, state=state)

    trainer.run(on_estimate=keep)
    trainer.gpt.load_state_dict(best["state"])
    arrays = [tokenizer.encode_array(part) for part in parts]
    counted = best_ngrams(arrays[0], arrays[1], tokenizer.vocab_size)
    test_losses = {
        "GPT": losses(trainer.gpt, torch.from_numpy(arrays[2]).long()),
        "n-grams": -np.log(counted.probabilities(arrays[2]))[1:],
    }
    means = pd.Series({name: values.mean() for name, values in test_losses.items()})
    history = [(row["step"], row["val_loss"]) for row in trainer.history]
    return Contest(
        tokenizer,
        trainer.gpt.eval(),
        counted,
        pd.DataFrame({"loss": means, "perplexity": np.exp(means)}),
        len(test_losses["GPT"]),
        pd.DataFrame(history, columns=["step", "validation loss"]),
        checkpoints.describe(trainer, tokenizer.alphabet, fingerprint(text)),
    )
