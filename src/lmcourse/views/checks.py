"""What is handed to a view: checked, with messages that say what to do, and rounded."""

from collections.abc import Sequence

import numpy as np

from lmcourse.numbers import format_number

DECIMALS = 3
ROW_TOLERANCE = 1e-2  # half precision sums 512 weights to within this
CAUSAL_TOLERANCE = 1e-6
NO_ATTENTION = (
    "load the model with attn_implementation='eager' and call it with "
    "output_attentions=True; fused attention kernels do not return their weights"
)


def as_array(values) -> np.ndarray:
    """Return a Tensor, array or nested list of any shape as a float64 array on the CPU.

    ``values`` : a Tensor may be on a device and have a gradient.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    return np.asarray(values, dtype=np.float64)


def token_list(tokens) -> list[str]:
    """Return the tokens as a list of strings.

    Raises
    ------
    ValueError
        If there are none, or an entry is not a string.
    """
    tokens = list(tokens)
    if not tokens or not all(isinstance(token, str) for token in tokens):
        raise ValueError(
            "tokens are strings, e.g. tokenizer.convert_ids_to_tokens(ids), and at least "
            f"one; not {tokens}"
        )
    return tokens


def head_weights(attention, tokens: Sequence[str], where: str = "attention") -> np.ndarray:
    """Return checked attention weights, a float64 array of shape (heads, tokens, tokens).

    Parameters
    ----------
    attention : array-like of shape (heads, tokens, tokens) or (1, heads, tokens, tokens)
    tokens : sequence of str
    where : str
        How a message calls the array.

    Raises
    ------
    ValueError
        If it is None, has another shape, does not fit the tokens, or a row is not a
        distribution: the sum of a row may be off by 0.01, and a weight as far below 0.
    """
    if attention is None:
        raise ValueError(f"{where} is None: {NO_ATTENTION}")
    weights = as_array(attention)
    if weights.ndim == 4 and weights.shape[0] == 1:
        weights = weights[0]
    size = len(token_list(tokens))
    if weights.shape[1:] != (size, size) or not len(weights):
        raise ValueError(
            f"{where} has the shape {weights.shape}; {size} tokens of one text need "
            f"(heads, {size}, {size}): count [CLS], [SEP] and padding on both sides or "
            "on neither"
        )
    sums = weights.sum(axis=-1)  # (heads, tokens); a NaN is near to nothing
    if not (np.abs(sums - 1) <= ROW_TOLERANCE).all() or weights.min() < -ROW_TOLERANCE:
        raise ValueError(
            f"{where}: the least weight is {format_number(weights.min(), '.4g')}, and the "
            f"rows sum to {format_number((sums.min(), sums.max()), '.4g')}; weights are at "
            "least 0, and each row sums to 1. Pass the weights after the softmax, not the "
            "scores"
        )
    return weights


def check_causal(weights: np.ndarray) -> None:
    """Refuse weights on later tokens where the view would hide them.

    ``weights`` : (heads, tokens, tokens), rows are queries.

    Raises
    ------
    ValueError
        If any weight above the diagonal is more than 10⁻⁶.
    """
    later = np.triu(weights, k=1)  # (heads, tokens, tokens)
    if later.max() > CAUSAL_TOLERANCE:
        head, query, key = np.unravel_index(later.argmax(), later.shape)
        raise ValueError(
            f"causal=True hides the later tokens, but head {head} gives token {key} the "
            f"weight {later.max():.4g} when it reads for token {query}: this attention is "
            "not causal"
        )


def layer_weights(attentions, tokens: Sequence[str]) -> np.ndarray:
    """Check the attention weights of all layers.

    Parameters
    ----------
    attentions : sequence of array of shape (heads, tokens, tokens)
        One a layer; tensors and nested lists, too.
    tokens : sequence of str

    Returns
    -------
    float array of shape (layers, heads, tokens, tokens)

    Raises
    ------
    ValueError
        If the weights of a layer, which is named, are None, have another shape, other
        heads than the first or are no distributions; or if there are no layers.
    """
    if attentions is None or len(attentions) == 0:
        raise ValueError(f"there are no attentions: {NO_ATTENTION}")
    layers = [head_weights(x, tokens, f"attentions[{i}]") for i, x in enumerate(attentions)]
    heads = len(layers[0])
    for i, weights in enumerate(layers):
        if len(weights) != heads:
            raise ValueError(
                f"attentions[{i}] has {len(weights)} heads, attentions[0] {heads}: the "
                "view shows layers with as many heads each"
            )
    return np.stack(layers)


def rounded(values: np.ndarray) -> list:
    """Return nested lists of three decimals: small pages, stable references.

    ``values`` : array of any shape. A NaN or an infinity is None, a gap.
    """
    values = np.round(values, DECIMALS) + 0.0  # + 0.0: no negative zero
    return np.where(np.isfinite(values), values, None).tolist()


def indices(name: str, chosen, count: int) -> list[int]:
    """Return chosen layers, heads or tokens as a list; all where none is chosen.

    Parameters
    ----------
    name : str
        Of the argument, for the message.
    chosen : iterable of int or None
        Numbers from 0; None for all.
    count : int
        How many there are.

    Raises
    ------
    ValueError
        If one is out of range.
    """
    chosen = list(range(count)) if chosen is None else [int(index) for index in chosen]
    if not set(chosen) <= set(range(count)):
        raise ValueError(f"{name}={chosen}: there are {count}, so 0 to {count - 1}")
    return chosen
