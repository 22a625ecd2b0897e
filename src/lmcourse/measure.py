"""Time and memory, as far as pages measure them: a process for each way, by turns.

What is measured has to be importable, since each measurement starts a process of its own;
so the ways that two pages compare stand here: of attention (the chapter *attention*) and
of pooling hidden states (*dickinson-layers*).
"""

import multiprocessing
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from transformers import BertConfig, BertModel

from lmcourse.attention import MultiHeadAttention
from lmcourse.data import load_poems
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
    "forget_peak",
    "isolated",
    "peak_mib",
    "prepare_attention",
    "prepare_pooling",
]


def forget_peak() -> None:
    """Make Linux start the peak anew, so that what came before does not count."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mib() -> float:
    """Return this process's peak memory in MiB.

    Where there is a ``/proc``, from there: ``getrusage`` in a new process begins at the
    memory of the process that started it.
    """
    with suppress(OSError):
        status = Path("/proc/self/status").read_text()
        found = re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)
        if found:
            return int(found[1]) / 2**10
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        return psutil.Process().memory_info().peak_wset / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _child(connection, function: Callable, args: tuple) -> None:
    prepared = function(*args)  # loads data and model; returns the thunk to be measured
    forget_peak()
    before = peak_mib()
    start = time.perf_counter()
    result = prepared()
    seconds = time.perf_counter() - start
    connection.send((result, seconds, peak_mib(), before))


def isolated(function: Callable, *args) -> dict:
    """Measure ``function(*args)()`` in a fresh process.

    Parameters
    ----------
    function : callable
        Importable; prepares (unmeasured time) and returns the callable to be timed.

    Returns
    -------
    dict
        ``result``, ``seconds``, ``peak_mib`` (of the whole process) and ``start_mib``
        (its peak before the timed part).

    Raises
    ------
    RuntimeError
        If the process dies.
    """
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(send, function, args))
    process.start()
    send.close()
    try:
        result, seconds, peak, before = receive.recv()
    except EOFError:
        process.join()
        raise RuntimeError(
            f"{function.__name__}{args} died with exit code {process.exitcode}"
        ) from None
    process.join()
    return {
        "result": result,
        "seconds": seconds,
        "peak_mib": peak,
        "start_mib": before,
    }


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
