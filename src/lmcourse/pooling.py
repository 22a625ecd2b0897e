"""Hidden states pooled and compared layer by layer.

A text goes through a BERT once; each layer's states are pooled to one vector the moment
they are computed and then let go. Texts of similar length share a batch, so hardly any
padding is computed. Levels are counted as ``transformers`` counts ``hidden_states``:
number 0 is the output of the embeddings, before layer 0; number i that of layer i - 1.
"""

import copy
import warnings
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lmcourse.tokenization import require_whole_characters
from lmcourse.tokenizer_files import fits_vocabulary


@dataclass(frozen=True, eq=False)
class PooledLayers:
    """One vector per text and layer.

    Attributes
    ----------
    static : Tensor of shape (texts, d_model)
        Rows of the word-embedding matrix, pooled like the layers: no position, no type,
        no normalisation, no context.
    layers : Tensor of shape (layers + 1, texts, d_model)
        ``layers[0]`` is the output of the embeddings, ``layers[i]`` of layer i - 1.
    tokens : integer Tensor of shape (texts,)
        How many tokens were pooled, special tokens included.
    """

    static: Tensor
    layers: Tensor
    tokens: Tensor

    @property
    def levels(self) -> Tensor:
        """Static, then before layer 0, after layer 0, …: (layers + 2, texts, d_model)."""
        return torch.cat([self.static[None], self.layers])


def pool(states, mask):
    """Pool the real tokens of each text to one vector, their mean.

    Parameters
    ----------
    states : Tensor of shape (batch, tokens, d_model)
    mask : bool Tensor of shape (batch, tokens)
        True at real tokens, special tokens included; False at padding.

    Returns
    -------
    Tensor of shape (batch, d_model)
    """
    padding = ~mask[..., None]  # (batch, tokens, 1)
    total = states.masked_fill(padding, 0).sum(dim=1)  # (batch, d_model)
    return total / mask.sum(dim=1, keepdim=True)


def batches(lengths, budget):
    """Split texts into batches of similar length, the longest first.

    Parameters
    ----------
    lengths : sequence of int
        The number of tokens of each text.
    budget : int
        How many tokens a batch holds at most, padded to its longest text; a longer text is
        a batch alone.

    Yields
    ------
    list of int
        The texts of a batch, as positions in ``lengths``.
    """
    order = sorted(range(len(lengths)), key=lambda text: -lengths[text])
    start = 0
    while start < len(order):
        size = max(1, budget // lengths[order[start]])
        yield order[start : start + size]
        start += size


def encode_windows(windows, model, modules, on_output, batch_tokens=1024):
    """Run a BERT on token IDs, and hand on what its modules return, batch by batch.

    Parameters
    ----------
    windows : list of list of int
        Token IDs, each list within the model's context window.
    model : BertModel
    modules : list of Module
        Parts of the model whose outputs are (batch, tokens, d_model).
    on_output : callable
        Called as ``on_output(index, rows, states, mask)`` each time a module has run: its
        index, the batch's positions in ``windows``, its output in float32, and True at
        the real tokens. What it does not keep is forgotten.
    batch_tokens : int
        Tokens of one batch, padding included.
    """
    lengths = [len(window) for window in windows]

    def hook(index, module, inputs, states):
        """Hand on a layer's output, with its number and the rows of the batch.

        A forward hook behind ``index`` (int): ``states`` are (batch, tokens, d_model),
        ``module`` and ``inputs`` are not used.
        """
        on_output(index, rows, states.float(), mask)

    with torch.inference_mode(), ExitStack() as hooks:
        for index, module in enumerate(modules):
            hooks.enter_context(module.register_forward_hook(partial(hook, index)))
        for rows in batches(lengths, batch_tokens):
            ids = [torch.tensor(windows[row]) for row in rows]
            ids = pad_sequence(ids, batch_first=True)  # (batch, tokens)
            ends = torch.tensor([[lengths[row]] for row in rows])  # (batch, 1)
            mask = (torch.arange(ids.shape[1]) < ends).to(model.device)
            model(ids.to(model.device), attention_mask=mask)


def pool_layers(texts, tokenizer, model, *, batch_tokens=1024, on_output=None):
    """Pool every layer's hidden states for each text, in the order of the texts.

    Parameters
    ----------
    texts : iterable of str
    tokenizer, model
        A BERT's, such as those that `lmcourse.models.load_bert` loads. A BERT with a head
        on it will do. The special tokens [CLS] and [SEP] count as tokens.
    batch_tokens : int
        Tokens of one batch, padding included: memory against the number of batches.
    on_output : callable, optional
        Called as ``on_output(level, rows, states, mask)`` with the states of each level
        before they are let go, to keep more of them than the one vector: the level's number
        (`PooledLayers.levels`), the texts' positions, (batch, tokens, d_model), and True at
        the real tokens.

    Returns
    -------
    PooledLayers
        Float32, on the CPU: ``static`` (texts, d_model), the means of word vectors;
        ``layers`` (layers + 1, texts, d_model), the means of states; ``tokens`` (texts,),
        how many.

    Raises
    ------
    TypeError
        If ``texts`` is no list of strings.
    ValueError
        If ``texts`` is empty, a text is blank, or one holds half a surrogate pair, which
        is no character; if the model is no BERT or is in
        training mode; if tokenizer and model do not belong together (as far as their
        vocabularies' sizes can tell).

    Warns
    -----
    UserWarning
        Once a call, if texts were truncated.
    """
    texts = _check_texts(texts)
    model = model.base_model
    _check_pair(tokenizer, model)
    windows = _windows(texts, tokenizer, model)
    modules = [model.embeddings.word_embeddings, model.embeddings, *model.encoder.layer]
    # Made outside inference mode, so that one may train on the result.
    pooled = torch.empty(len(modules), len(windows), model.config.hidden_size)
    pooled = pooled.to(model.device)

    def keep(level, rows, states, mask):
        """Store the pooled states of a batch at their rows.

        Parameters
        ----------
        level : int
            0 is the table of word vectors, 1 before the first layer, n + 1 after n layers.
        rows : list of int
            Which texts are in the batch.
        states : Tensor of shape (batch, tokens, d_model)
        mask : bool Tensor of shape (batch, tokens)
            True where a token counts, False at padding.
        """
        pooled[level, rows] = pool(states, mask)
        if on_output:
            on_output(level, rows, states, mask)

    encode_windows(windows, model, modules, keep, batch_tokens)
    pooled = pooled.cpu()
    tokens = torch.tensor([len(window) for window in windows])
    return PooledLayers(static=pooled[0], layers=pooled[1:], tokens=tokens)


def nearest(vectors, count):
    """Find the nearest other texts of each text, by cosine.

    The mean of all vectors is subtracted first: without that the vectors of a BERT point in
    much the same direction.

    Parameters
    ----------
    vectors : Tensor of shape (texts, d_model)
    count : int
        How many; at least 1 and less than there are texts.

    Returns
    -------
    int64 Tensor of shape (texts, count)
        Row numbers, the nearest first.

    Raises
    ------
    ValueError
        If ``count`` is not possible.
    """
    if not 0 < count < len(vectors):
        raise ValueError(f"of {len(vectors)} texts none has {count} others")
    unit = F.normalize(vectors - vectors.mean(dim=0), dim=-1)
    cosines = (unit @ unit.T).fill_diagonal_(-2)  # (texts, texts); none is its own
    return cosines.topk(count).indices


def kept(before, after, count=10):
    """Measure how many of each text's nearest others are still among them afterwards.

    Parameters
    ----------
    before, after : Tensor of shape (texts, d_model)
        The same texts at two levels.
    count : int
        How many of the nearest are compared.

    Returns
    -------
    float32 Tensor of shape (texts,)
        A share, from 0 to 1.

    Raises
    ------
    ValueError
        If ``count`` is less than 1, or not less than there are texts.
    """
    old, new = nearest(before, count), nearest(after, count)
    same = old[:, :, None] == new[:, None, :]  # (texts, count, count)
    return same.any(dim=2).float().mean(dim=1)


def untrained(model, seed, shuffle, layers):
    """Return a copy of a BERT in which some layers are untrained.

    The new weights of a matrix have about the mean and the spread of the old ones.

    Parameters
    ----------
    model : BertModel
        It is left as it is.
    seed : int
    shuffle : bool
        Whether the numbers of each tensor are shuffled; else each matrix is drawn from a
        normal distribution of its mean and standard deviation, and vectors stay.
    layers : iterable of int
        Which ones, counted from 0.

    Returns
    -------
    BertModel
    """
    copied = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    for layer in layers:
        for weight in copied.encoder.layer[layer].parameters():
            if shuffle:
                order = torch.randperm(weight.numel(), generator=generator)
                weight.data = weight.data.flatten()[order].view_as(weight)
            elif weight.ndim == 2:
                noise = torch.randn(weight.shape, generator=generator).to(weight)
                weight.data = weight.data.mean() + weight.data.std() * noise
    return copied


def _windows(texts, tokenizer, model) -> list[list[int]]:
    """Tokenize each text, cut to what the model can read; warn once if any was cut.

    Parameters
    ----------
    texts : list of str
    tokenizer, model
        A BERT's, such as those that `lmcourse.models.load_bert` loads.

    Returns
    -------
    list of list of int
        The ids of each text, with special tokens.

    Raises
    ------
    ValueError
        If a text is blank to the tokenizer.
    """
    size = model.config.max_position_embeddings
    encoded = tokenizer(texts, truncation=True, max_length=size)
    for text, window in enumerate(encoded["input_ids"]):
        if len(window) <= tokenizer.num_special_tokens_to_add():
            raise ValueError(f"texts[{text}] is blank to the tokenizer: {texts[text]!r}")
    truncated = sum(bool(encoding.overflowing) for encoding in encoded.encodings)
    if truncated:
        warnings.warn(
            f"{truncated} of {len(texts)} texts are longer than the context window: only "
            f"their first {size} tokens are read",
            stacklevel=3,
        )
    return encoded["input_ids"]


def _check_texts(texts) -> list[str]:
    """Return texts as a list of strings; an error names the first that is none.

    Parameters
    ----------
    texts : iterable of str

    Raises
    ------
    TypeError
        If it is a single string, or holds something else.
    ValueError
        If it is empty, or a text holds half of a surrogate pair.
    """
    if isinstance(texts, str):
        raise TypeError("texts should be a list of strings, not a single one")
    texts = list(texts)
    if not texts:
        raise ValueError("texts is empty: give at least one text")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"texts[{index}] is not a string: {text!r}")
        require_whole_characters(text, f"texts[{index}]")
    return texts


def _check_pair(tokenizer, model) -> None:
    """Refuse a model that is no BERT, is training, or does not fit the tokenizer.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
    model : BertModel

    Raises
    ------
    ValueError
        If it is refused.
    """
    kind = model.config.model_type
    if kind != "bert":
        raise ValueError(f"a BERT is needed, not a {kind!r} model")
    if model.training:
        raise ValueError("the model is in training mode (dropout): call model.eval()")
    rows = model.embeddings.word_embeddings.num_embeddings
    if not fits_vocabulary(tokenizer, rows):
        raise ValueError(
            f"tokenizer and model do not belong together: {len(tokenizer)} tokens in the "
            f"vocabulary, {rows} rows in the embedding matrix. Load both from the same "
            "checkpoint."
        )
