"""The ways that two pages measure against each other, in processes of their own.

Of attention (the chapter *attention*) and of pooling hidden states (*dickinson-layers*).
They stand here, not in the pages, since a new process has to import them.
"""

import time

import torch
import torch.nn.functional as F
from torch import nn
from transformers import BertConfig, BertModel

from lmcourse.attention import MultiHeadAttention
from lmcourse.data import load_poems
from lmcourse.measure import forget_peak, isolated, peak_mib
from lmcourse.models import load_bert
from lmcourse.pooling import pool_layers, static_similarity, step_similarity

__all__ = [
    "D_MODEL",
    "HEADS",
    "LENGTHS",
    "METHODS",
    "MODELS",
    "WAYS",
    "compare_attention",
    "prepare_attention",
    "prepare_pooling",
]

# --- attention ------------------------------------------------------------------------

D_MODEL, HEADS, LENGTHS = 256, 4, (512, 1024, 2048, 4096)


def ours(layer, x):
    """Our module, which forms the weights."""
    return layer(x)[0]


def fused(layer, x):
    """Our projections around a kernel that never holds all the weights at once."""
    query, key, value = (layer.split(f(x)) for f in (layer.query, layer.key, layer.value))
    output = F.scaled_dot_product_attention(query, key, value)
    return layer.output(output.transpose(-3, -2).flatten(-2))


def torch_module(layer, x):
    """`nn.MultiheadAttention`, asked for its weights as it is by default."""
    return layer(x, x, x)[0]


METHODS = {"ours": ours, "nn.MultiheadAttention": torch_module, "fused": fused}


def prepare_attention(method, lengths, repeats):
    """Return what `isolated` measures: rows of tokens, seconds and peak_mib."""
    torch.manual_seed(0)
    if method == "nn.MultiheadAttention":
        layer = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True).eval()
    else:
        layer = MultiHeadAttention(D_MODEL, HEADS).eval()
    inputs = {tokens: torch.randn(1, tokens, D_MODEL) for tokens in lengths}

    @torch.no_grad()
    def measured():
        METHODS[method](layer, inputs[lengths[0]][:, :16])  # the first call sets things up
        forget_peak()
        start, rows = peak_mib(), []
        for tokens in lengths:
            often = range(repeats * lengths[-1] // tokens)  # short runs are noisier
            seconds = min(_seconds(method, layer, inputs[tokens]) for _ in often)
            peak = peak_mib() - start
            rows.append(
                {"method": method, "tokens": tokens, "seconds": seconds, "peak_mib": peak}
            )
        return rows

    return measured


def _seconds(method, layer, x):
    start = time.perf_counter()
    METHODS[method](layer, x)
    return time.perf_counter() - start


def compare_attention(lengths=LENGTHS, repeats=3):
    """Measure every method at every length, each method in a process of its own.

    Parameters
    ----------
    lengths : sequence of int
        Rising.
    repeats : int
        The fastest of so many runs is kept, of more where the text is shorter.

    Returns
    -------
    list of dict
        ``method``, ``tokens``, ``seconds`` and ``peak_mib``, the rise of the process's
        peak memory above what it held before the first length.

    Raises
    ------
    ValueError
        If the lengths do not rise: a peak would belong to an earlier length.
    """
    lengths = list(lengths)
    if lengths != sorted(set(lengths)):
        raise ValueError(f"the lengths must rise: {lengths}")
    return [
        row
        for method in METHODS
        for row in isolated(prepare_attention, method, lengths, repeats)["result"]
    ]


# --- pooling --------------------------------------------------------------------------


def base_config(tokenizer):
    """Return BertConfig's own sizes: 12 layers, 12 heads, 768 dimensions."""
    return BertConfig(vocab_size=len(tokenizer))


def load_model(name):
    """Return tokenizer and model: the default one, or a random one of BERT-base's size."""
    tokenizer, model = load_bert(device="cpu")
    if name == "default":
        return tokenizer, model
    torch.manual_seed(0)
    return tokenizer, BertModel(base_config(tokenizer)).eval()


def usual(texts, tokenizer, model):
    """Pad to the window, keep every hidden state, loop over the pairs."""
    window = model.config.max_position_embeddings
    encoded = tokenizer(
        texts,
        padding="max_length",
        truncation=True,
        max_length=window,
        return_tensors="pt",
    )
    with torch.no_grad():
        output = model(**encoded, output_hidden_states=True)
        static = model.embeddings.word_embeddings(encoded["input_ids"])
    mask = encoded["attention_mask"][..., None]  # (texts, window, 1)
    pooled = [
        (states * mask).sum(dim=1) / mask.sum(dim=1)
        for states in [static, *output.hidden_states]
    ]  # layers + 2 of (texts, d_model)
    pairs = [(pooled[0], states) for states in pooled[1:]]
    pairs += [(pooled[i], pooled[i + 1]) for i in range(1, len(pooled) - 1)]
    cosines = [
        [F.cosine_similarity(a[i], b[i], dim=0).item() for i in range(len(texts))]
        for a, b in pairs
    ]
    return torch.stack(pooled[1:]), torch.tensor(cosines)


def engine(texts, tokenizer, model):
    """Pool as each layer is computed, no padding to the window; all pairs at once."""
    pooled = pool_layers(texts, tokenizer, model)
    against_static = static_similarity(pooled.static, pooled.layers)
    return pooled.layers, torch.cat([against_static, step_similarity(pooled.layers)])


MODELS = ["default", "base"]
WAYS = {"usual": usual, "engine": engine}


def prepare_pooling(way, name, poems):
    """Return what `isolated` measures."""
    tokenizer, model = load_model(name)
    texts = list(load_poems().text)[:poems]

    def measured():
        vectors, cosines = WAYS[way](texts, tokenizer, model)
        return vectors.numpy(), cosines.numpy()

    return measured
