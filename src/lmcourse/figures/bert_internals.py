"""What the chapter *bert-internals* draws: data in, figure or view out."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import torch

from lmcourse import views
from lmcourse.numbers import bootstrap_interval, format_estimate, percent

# --- a hidden word ------------------------------------------------------------------------


@torch.no_grad()
def trace_hidden(line, word, tokenizer, model):
    """Trace a hidden word from the tables to the guess.

    Parameters
    ----------
    line : str
    word : str
        A word of the line that is one token; its first occurrence is hidden.
    tokenizer : PreTrainedTokenizerFast
    model : lmcourse.masking.MaskedBert
        Its BERT returns hidden states and attention weights.

    Returns
    -------
    list of (str, str, list of float or None, str)
        The rows of `views.anatomy`: a name, a formula, the vector at the hidden position,
        and what is said of it. A row for each table (word, position, text), one for their
        sum, one for each layer, which says to which other word the hidden one attended
        most, on the mean of the heads, and one without a vector: the likeliest tokens.
    """
    encoded = tokenizer(line, return_tensors="pt")
    ids = encoded["input_ids"]  # (1, tokens)
    wanted = tokenizer.convert_tokens_to_ids(word)
    at = ids[0].tolist().index(wanted)
    ids[0, at] = tokenizer.mask_token_id
    out = model.bert(ids)
    tables = model.bert.embeddings
    x, *after = (state[0, at] for state in out.hidden_states)
    rows = [
        ("word", "w = W[id]", tables.word(ids[0, at]), "the row of “hidden”"),
        ("position", f"p = P[{at}]", tables.position.weight[at], f"the row of number {at}"),
        ("text", "t = T[0]", tables.token_type.weight[0], "the row of the first text"),
        ("the sum", "x = norm(w + p + t)", x, "this enters layer 0"),
    ]
    for layer, weights in enumerate(out.attentions):
        shares = weights[0, :, at].mean(dim=0)  # (tokens,), mean over heads
        shares[[0, at, -1]] = 0  # the other words only
        other = line.split()[encoded.word_ids(0)[shares.argmax()]].lower()
        remark = f"attended most to “{other}”"
        rows.append((f"after layer {layer}", "attend, feed forward", after[layer], remark))
    rows = [(name, formula, x.tolist(), remark) for name, formula, x, remark in rows]
    guesses = _guesses(model(ids)[0, at].softmax(dim=-1), wanted, word, tokenizer)
    return [*rows, ("the head", "a score for every token", None, guesses)]


def _guesses(probs, wanted, word, tokenizer):
    """Say which four tokens are likeliest, and which rank the right word has.

    Parameters
    ----------
    probs : Tensor of shape (vocab_size,)
    wanted : int
        The id of the right word.
    word : str
        The same as text.
    tokenizer : PreTrainedTokenizerFast

    Returns
    -------
    str
        Such as "“thing” 40 %, “bird” 9 %, …. “thing” is guess 1 of 30,522."
    """
    best = probs.topk(4)
    names = tokenizer.convert_ids_to_tokens(best.indices.tolist())
    pairs = zip(names, best.values.tolist(), strict=True)
    listed = ", ".join(f"“{name}” {percent(share)}" for name, share in pairs)
    rank = 1 + int((probs > probs[wanted]).sum())
    return f"{listed}. “{word}” is guess {rank} of {len(probs):,}."


def way_up(line, first, tokenizer, model, untrained):
    """Show each word of a line, hidden, on its way from the tables to the guess.

    Words that are not one token of the vocabulary are left out.

    Parameters
    ----------
    line : str
    first : str
        The word that is hidden first, in small letters.
    tokenizer : PreTrainedTokenizerFast
    model, untrained : lmcourse.masking.MaskedBert
        The trained model, and the same with random weights.

    Returns
    -------
    View
    """
    words = [word for word in line.lower().split() if word in tokenizer.vocab]
    trained, random = (
        {word: trace_hidden(line, word, tokenizer, each) for word in dict.fromkeys(words)}
        for each in (model, untrained)
    )
    question = "Which word of the line shall be hidden?"
    return views.anatomy(question, trained, first, random)


# --- attention ----------------------------------------------------------------------------


def widths(trained, random):
    """Draw how widely each head attends, layer by layer, trained and with random weights.

    Parameters
    ----------
    trained, random : Tensor of shape (layers, heads)
        Mean entropies of the attention weights, in bits. Lines join the layers' means.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(6.4, 3.4))
    layers, heads = trained.shape
    sides = {"trained": (trained, "o", 0, -0.12), "random weights": (random, "x", 1, 0.12)}
    for label, (entropy, marker, color, shift) in sides.items():
        x = np.repeat(np.arange(layers) + shift, heads)
        style = {"color": views.PALETTE[color], "alpha": 0.7, "label": label}
        ax.plot(x, entropy.flatten(), marker, ls="", ms=5, **style)
        ax.plot(np.arange(layers) + shift, entropy.mean(dim=1), color=views.PALETTE[color])
    ax.set(xlabel="layer", ylabel="entropy (bits)", ylim=(0, 5.6))
    ax.set_xticks(range(layers))
    ax.legend(loc="upper center", ncols=2, frameon=False)
    plt.show()


SWITCHES = [
    ("[CLS] comes first", "“the” comes first"),
    ("positions from 0", "positions from 7"),
    ("trained", "random weights"),
]


def sink(received):
    """Show the first token's share of the attention, with three switches.

    Parameters
    ----------
    received : dict of (bool, bool, bool) to Tensor of shape (texts, layers, tokens)
        Whether each of three switches is set (“the” comes first instead of [CLS]; positions
        from 7 instead of 0; random weights) → the share of all attention in a layer that
        each token gets, 0 to 1; the first token comes first.

    Returns
    -------
    View
        For each setting a bar for each layer, the mean over the texts, with a mark at an
        even share, 1 / tokens; and the mean of all layers but the first and the last, with
        its 95 % interval over the texts.
    """
    shown = {}
    sentences = {}
    for setting in itertools.product((False, True), repeat=len(SWITCHES)):
        first = received[setting][..., 0]  # (texts, layers)
        by_layer = first.mean(dim=0).tolist()
        shown[setting] = {f"layer {i}": share for i, share in enumerate(by_layer)}
        middle = first[:, 1:-1].mean(dim=1)
        estimate = format_estimate(middle.mean().item(), bootstrap_interval(middle), ".0%")
        sentences[setting] = f"All layers but the first and the last: {estimate}."
    question = "The first token's share of the attention:"
    even = 1 / received[False, False, False].shape[-1]
    return views.switches(question, SWITCHES, shown, sentences, even=even)
