"""`lmcourse.pooling` against the usual way, on all the poems.

The usual way pads every text to the model's window, and runs all of them in one batch that
returns every hidden state. Each way runs in a process of its own, so that each peak of
memory is its own. On the CPU.
"""

import torch

from lmbook.bench import report
from lmbook.bench.measure import isolated
from lmcourse.data import load_poems
from lmcourse.models import load_bert
from lmcourse.pooling import pool_layers


def pool_padded(texts, tokenizer, model):
    """Pool a BERT's hidden states over the tokens of each text, in the usual way.

    That is to pad all texts to the model's window, and run them in one batch that keeps
    every hidden state.

    Parameters
    ----------
    texts : list of str
    tokenizer, model
        A BERT's, of `transformers`; the model is in evaluation mode.

    Returns
    -------
    Tensor of shape (layers + 2, texts, d_model)
        The mean of the tokens' static vectors, then of their states before layer 0 and
        after each layer.
    """
    window = model.config.max_position_embeddings
    options = {"truncation": True, "max_length": window, "return_tensors": "pt"}
    encoded = tokenizer(texts, padding="max_length", **options)
    with torch.no_grad():
        output = model(**encoded, output_hidden_states=True)
        static = model.embeddings.word_embeddings(encoded["input_ids"])
    mask = encoded["attention_mask"][..., None]  # (texts, window, 1)
    pooled = [
        (states * mask).sum(dim=1) / mask.sum(dim=1)
        for states in [static, *output.hidden_states]
    ]  # layers + 2 of (texts, d_model)
    return torch.stack(pooled)


def pool_by_layer(texts, tokenizer, model):
    """Pool a BERT's hidden states over the tokens of each text, in the course's way.

    That is to pool as each layer is computed, without padding to the model's window.

    Parameters
    ----------
    texts : list of str
    tokenizer, model
        A BERT's, as `lmcourse.models.load_bert` returns them.

    Returns
    -------
    Tensor of shape (layers + 2, texts, d_model)
        The mean of the tokens' static vectors, then of their states before layer 0 and
        after each layer.
    """
    return pool_layers(texts, tokenizer, model).levels


WAYS = {"usual": pool_padded, "engine": pool_by_layer}


def prepare(way, poems):
    """Return the function that `lmbook.bench.measure.isolated` measures.

    Parameters
    ----------
    way : str
        One of `WAYS`.
    poems : int or None
        How many poems it reads, the first ones; all if None.

    Returns
    -------
    callable
        Without arguments: pools the poems in that way, and returns a float32 array as
        `pool_padded` and `pool_by_layer` describe it.
    """
    tokenizer, model = load_bert(device="cpu")
    texts = list(load_poems().text)[:poems]
    return lambda: WAYS[way](texts, tokenizer, model).numpy()


def main(*, poems: int | None = None) -> int:
    """Compare two ways to pool the poems' tokens; print a table and one line of JSON.

    The ways are `WAYS`, each in a process of its own: padding all poems to the model's
    window, and the course's `pool_layers`. Of each, seconds and peak memory in MiB.

    Parameters
    ----------
    poems : int, optional
        How many are read; default all.

    Returns
    -------
    int
        The exit status: 1 if their results differ by more than 1e-5, else 0.
    """
    slow, fast = runs = [isolated(prepare, way, poems) for way in WAYS]
    measured = [{key: run[key] for key in ("seconds", "peak_mib")} for run in runs]
    rows = [{"way": way, **figures} for way, figures in zip(WAYS, measured, strict=True)]
    difference = float(abs(slow["result"] - fast["result"]).max())
    summary = {
        "times_faster": round(slow["seconds"] / fast["seconds"], 2),
        "memory_share": round(fast["peak_mib"] / slow["peak_mib"], 3),
        "difference": difference,
    }
    report(rows, {"benchmark": "layers", **summary})
    return int(difference > 1e-5)
