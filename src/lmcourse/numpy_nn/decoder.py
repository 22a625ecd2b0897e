"""A decoder of words: its text, the model, its training, sampling, saving and loading."""

import json
import re
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save as to_bytes
from tqdm import tqdm

from lmcourse.embeddings import unit, word_vectors, words
from lmcourse.files import write_whole
from lmcourse.numpy_nn.attention import MultiHeadAttention
from lmcourse.numpy_nn.core import Adam, Chain, Fork, Identity, Module, Parameter
from lmcourse.numpy_nn.layers import (
    Linear,
    OneHotDictionary,
    ReLU,
    SkipAddNorm,
    SoftmaxCrossEntropy,
    softmax,
)

START, END, LINE = "<start>", "<end>", "/"


def mark_sentences(poem):
    """Return a poem's words as a list, with tokens where sentences and lines end.

    Parameters
    ----------
    poem : str

    Returns
    -------
    list of str
        Words in small letters; "<start>" (`START`) before each sentence, which ends at one
        of .?!, "<end>" (`END`) after it, and "/" (`LINE`) where a line breaks within it.
    """
    tokens = []
    for sentence in re.split("[.?!]", poem):
        lines = [words(line) for line in sentence.splitlines() if words(line)]
        for i, line in enumerate(lines):
            tokens.append(LINE if i > 0 else START)
            tokens += line
        if lines:
            tokens.append(END)
    return tokens


def verse(tokens):
    """Return words and tokens as text, each line capitalised.

    ``tokens`` : list of str, a poem's words in small letters, with "<start>" and "<end>"
    around sentences, which are left out, and "/" where a line breaks. The word i becomes I.
    """
    text = " ".join(word for word in tokens if word not in (START, END))
    text = re.sub(r"\bi\b", "I", text)
    lines = [line.strip() for line in text.split(LINE)]
    return "\n".join(line[:1].upper() + line[1:] for line in lines)


def initial_vectors(seen, unseen, d_model=60):
    """Return a vocabulary, and vectors counted on the words of training alone.

    Parameters
    ----------
    seen, unseen : list of str
        The words of the training text, in their order; and other words. Those that are only
        among the others come last, as zeros.
    d_model : int
        Width of the vectors.

    Returns
    -------
    vocabulary : list of str
        All different words; those of training come first.
    vectors : array of shape (vocab_size, d_model)
        Of length 1, or zeros.
    """
    vocabulary, vectors = word_vectors([seen], d_model, window=4)
    vectors = unit(vectors - vectors.mean(axis=0))
    new = sorted(set(unseen) - set(vocabulary))
    return vocabulary + new, np.vstack([vectors, np.zeros((len(new), d_model))])


class FeedForward(Chain):
    """Two linear layers with a ReLU between; each token by itself.

    Parameters
    ----------
    d_model, d_ff : int
    rng : numpy.random.Generator, optional
        For the first weights.
    """

    def __init__(self, d_model, d_ff, rng=None):
        self.up = Linear(d_model, d_ff, rng)
        self.down = Linear(d_ff, d_model, rng)
        super().__init__(self.up, ReLU(), self.down)


class Block(Chain):
    """Causal rotary self-attention, then a feed-forward network; a norm after each.

    What is named here and held by the chain as well counts once, under its name.

    Parameters
    ----------
    d_model, heads, d_ff : int
    rng : numpy.random.Generator, optional
        For the first weights.
    """

    def __init__(self, d_model, heads, d_ff, rng=None):
        self.attention = MultiHeadAttention(d_model, heads, rng, causal=True, rotary=True)
        self.feed_forward = FeedForward(d_model, d_ff, rng)
        same = Fork(Identity(), Identity(), Identity())  # query, key and value
        first = SkipAddNorm(Chain(same, self.attention), d_model)
        second = SkipAddNorm(self.feed_forward, d_model)
        self.norm_1, self.norm_2 = first.norm, second.norm
        super().__init__(first, second)


class Decoder(Module):
    """Numbers of words (..., tokens) → logits of the next one (..., tokens, vocab_size).

    The output layer is the table of word vectors, transposed and linked.

    Parameters
    ----------
    vocabulary : sequence of str
        The word of each number.
    vectors : array of shape (vocab_size, d_model)
        The initial word vectors.
    heads, layers, d_ff : int
    seed : int
    """

    def __init__(self, vocabulary, vectors, heads=5, layers=2, d_ff=128, seed=0):
        rng, (vocab_size, d_model) = np.random.default_rng(seed), vectors.shape
        self.sizes = {"heads": heads, "layers": layers, "d_ff": d_ff}
        self.dictionary = OneHotDictionary(vocabulary, Parameter(vectors))
        self.blocks = Chain(*[Block(d_model, heads, d_ff, rng) for _ in range(layers)])
        table = self.dictionary.table
        self.output = Linear(d_model, vocab_size, weight=table, transposed=True)

    def compute(self, numbers):
        """Return logits (..., tokens, vocab_size) of numbers (..., tokens)."""
        x = self.dictionary.forward(numbers)  # (..., tokens, d_model)
        return self.output.forward(self.blocks.forward(x))  # (..., tokens, vocab_size)

    def gradient(self, delta):
        """Add to the parameters' gradients; numbers have none.

        ``delta`` : the gradient of the logits, (..., tokens, vocab_size).
        """
        delta = self.blocks.backward(self.output.backward(delta))
        self.dictionary.backward(delta)  # a number has no gradient

    def weights(self, layer):
        """Return a block's weights in the last pass, (..., heads, tokens, tokens).

        ``layer`` : int, the number of the block.
        """
        return self.blocks.modules[layer].attention.weights


def windows(numbers, context):
    """Return all windows of ``context + 1`` neighbouring numbers: (windows, context + 1).

    ``numbers`` : array (tokens,); ``context`` : int. The windows are views of the array,
    one from each position from which so many follow.
    """
    return np.lib.stride_tricks.sliding_window_view(numbers, context + 1)


def train_decoder(
    model, numbers, steps, context=7, batch=32, learning_rate=4e-3, seed=0, watch=None
):
    """Train a decoder to predict the next word at every position of random windows.

    Parameters
    ----------
    model : Decoder
    numbers : int array of shape (words of the text,)
        The words' numbers in the model's vocabulary.
    steps, context, batch : int
        How many steps; words of a window; windows of a step.
    learning_rate : float
        Of Adam; falls to a tenth along a straight line.
    seed : int
    watch : callable, optional
        Called after each backward pass, before the weights change, with the number of the
        step, from 0; the `SoftmaxCrossEntropy`; the right words of the first window, an int
        array (context,); and the running mean of the loss, in nats. A string that it
        returns stands beside the progress bar.

    Returns
    -------
    list of float
        The running mean of the loss after each step, in nats a word: each batch moves it
        by a fiftieth; the first is the first batch's.
    """
    rng = np.random.default_rng(seed)
    loss = SoftmaxCrossEntropy()
    examples = windows(numbers, context)
    adam = Adam(model.parameters().values(), learning_rate)
    running_means = []
    bar = tqdm(range(steps), mininterval=1.0)
    for step in bar:
        chosen = examples[rng.integers(len(examples), size=batch)]
        logits = model.forward(chosen[:, :-1])  # (batch, context, vocab_size)
        mean = float(loss.forward(logits, chosen[:, 1:]))
        if running_means:
            mean = 0.98 * running_means[-1] + 0.02 * mean
        running_means.append(mean)
        model.backward(loss.backward(1.0))
        if watch is not None:
            message = watch(step, loss, chosen[0, 1:], mean)
            bar.set_postfix_str(message or "", refresh=False)
        adam.learning_rate = learning_rate * (1 - 0.9 * step / steps)
        adam.step()
    return running_means


def last_attention(model, lines):
    """Return the last word's attention weights, averaged over lines.

    Parameters
    ----------
    model : Decoder
    lines : int array of shape (lines, tokens)
        Words by their numbers in the model's vocabulary.

    Returns
    -------
    array of shape (layers, heads, tokens)
    """
    model.forward(lines)
    layers = range(model.sizes["layers"])
    return np.stack([model.weights(i)[:, :, -1].mean(axis=0) for i in layers])


def mean_distances(runs):
    """Return how many words back the last word attends, a mean over its weights and heads.

    Parameters
    ----------
    runs : list of dict
        Trainings of the study *backpropagation*, one a seed: ``states``, a dict for each
        number of steps after which was measured, as many in all runs. Its ``looks`` are
        what `last_attention` returned, nested lists (layers, heads, tokens).

    Returns
    -------
    array of shape (seeds, marks, layers)
        From 0, the last word itself, to ``tokens - 1``; attention that is the same
        everywhere gives the middle. ``marks`` are the numbers of steps.
    """
    weights = np.array([[state["looks"] for state in run["states"]] for run in runs])
    distances = np.arange(weights.shape[-1])[::-1]  # of each word, from the last
    return (weights @ distances).mean(-1)


def sample_words(model, start, most, rng, end=None, context=7, temperature=1.0):
    """Continue a text word by word.

    Parameters
    ----------
    model : Decoder
    start : sequence of int
        At least one word, by its number.
    most : int
        How many words to add at most.
    rng : numpy Generator
    end : int, optional
        The number of the word after which to stop.
    context : int
        How many of the last words the model sees.
    temperature : float
        Divides the logits; above 0.

    Returns
    -------
    list of int
        The start and what was added.
    """
    numbers = list(start)
    for _ in range(most):
        logits = model.forward(np.array(numbers[-context:]))[-1]  # (vocab_size,)
        p = softmax(logits / temperature)
        numbers.append(int(rng.choice(len(p), p=p)))
        if numbers[-1] == end:
            break
    return numbers


def save(model, path, dtype=np.float64):
    """Write a decoder's words, sizes and parameters to a safetensors file.

    The format is that of `lmcourse.weights.save_tensors`, with the words and sizes as the
    record. It is written by safetensors' functions for NumPy, since this package is to need
    no PyTorch: all that is done here is done by hand.

    Parameters
    ----------
    model : Decoder
    path : path
    dtype : numpy dtype
        Of the stored numbers; float16 takes a quarter of the room of float64.

    Raises
    ------
    OSError
        If the file cannot be written; what was there before is whole.
    """
    arrays = {name: p.value.astype(dtype) for name, p in model.parameters().items()}
    record = {"vocabulary": model.dictionary.vocabulary, "sizes": model.sizes}
    write_whole(path, to_bytes(arrays, {"record": json.dumps(record)}))


def load(path):
    """Return the decoder that `save` wrote to a file; PyTorch is not needed.

    Parameters
    ----------
    path : path

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If the file is damaged, or holds something else than a decoder.
    """
    try:
        with safe_open(Path(path).expanduser(), "np") as file:
            record = json.loads((file.metadata() or {})["record"])
            names = sorted(file.keys())
            return _decoder(record, {name: file.get_tensor(name) for name in names})
    except OSError:
        raise
    except Exception as error:  # whatever a foreign file makes go wrong
        raise ValueError(f"load: {path} holds no decoder: {error!r}") from error


def _decoder(record, arrays):
    """Build a decoder of what a file holds; ask for no more memory than the file has.

    Parameters
    ----------
    record : dict
        ``vocabulary``, a list of str, and ``sizes``: ``heads``, ``layers`` and ``d_ff``.
    arrays : dict of str to array
        The parameters by name.

    Returns
    -------
    Decoder

    Raises
    ------
    ValueError
        If the parameters do not fit the sizes, or are not finite.
    """
    vectors = arrays["dictionary.table"]
    sizes = record["sizes"]
    of_a_layer = vectors.shape[1] * (4 * vectors.shape[1] + 2 * sizes["d_ff"])
    if sizes["layers"] * of_a_layer > sum(array.size for array in arrays.values()):
        raise ValueError(f"it has too few parameters for {sizes}")
    model = Decoder(record["vocabulary"], vectors, **sizes)
    named = model.parameters()
    shapes = {name: p.value.shape for name, p in named.items()}
    if shapes != {name: array.shape for name, array in arrays.items()}:
        raise ValueError("it has other parameters than such a decoder")
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise ValueError("it holds numbers that are not finite")
    for name, parameter in named.items():
        parameter.value[...] = arrays[name]
    return model
