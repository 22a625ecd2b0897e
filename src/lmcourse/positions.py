"""How a model is told where each token stands.

The forms at which the chapter *positional-encoding* arrives. Added to the token vectors:
`sinusoidal`. Rotating queries and keys: `rotate`. Added to the scores: `alibi_bias`, and a
learned number for each of `relative_buckets`.
"""

import math
from functools import lru_cache

import torch


def frequencies(width, base=10000.0):
    """Return by what angle each pair of dimensions turns from one token to the next.

    Parameters
    ----------
    width : int
        Even: ``d_model`` for sinusoids, ``d_head`` for rotary positions.
    base : float
        The slowest pair turns almost ``base`` times as slowly as the first.

    Returns
    -------
    float64 Tensor of shape (width // 2,)
        In radians a token, from 1 downwards: ``base ** (-2 * pair / width)``.

    Raises
    ------
    ValueError
        If ``width`` is odd or not positive: dimensions come in pairs.
    """
    if width < 2 or width % 2:
        raise ValueError(f"a width of {width} cannot be split into pairs")
    pair = torch.arange(width // 2, dtype=torch.float64)
    return base ** (-2 * pair / width)


def sinusoidal(tokens, d_model, base=10000.0):
    """Return sinusoidal position vectors (Vaswani et al. 2017, section 3.5).

    Parameters
    ----------
    tokens, d_model : int
    base : float
        The slowest pair turns almost ``base`` times as slowly as the first.

    Returns
    -------
    float32 Tensor of shape (tokens, d_model)
        ``sin(position * frequency)`` in the even columns, ``cos`` in the odd ones.
        To be added to token vectors; on the CPU.

    Raises
    ------
    ValueError
        If ``d_model`` is odd.
    """
    position = torch.arange(tokens, dtype=torch.float64)
    angle = position[:, None] * frequencies(d_model, base)  # (tokens, d_model / 2)
    pairs = torch.stack((angle.sin(), angle.cos()), -1)  # (tokens, d_model / 2, 2)
    return pairs.flatten(-2).float()  # (tokens, d_model)


def rotate(x, positions=None, layout="interleaved", base=10000.0, speeds=None):
    """Rotary positions (Su et al. 2021, eq. 34): turn each pair by its token's angle.

    Turn queries and keys, not values; the product of a turned query and a turned key
    depends on their positions only through the offset.

    Parameters
    ----------
    x : Tensor of shape (..., tokens, d_head)
    positions : array-like of shape (tokens,), optional
        Default 0, 1, 2, … Give them when ``x`` is not the start of a text.
    layout : {"interleaved", "half"}
        Which dimensions make a pair: 0 and 1, 2 and 3, … (the paper, GPT-J), or
        0 and d_head / 2, … (GPT-NeoX, Llama in ``transformers``).
    base : float
        Pair i turns by base^(-2i / d_head) radians a position.
    speeds : float64 Tensor of shape (d_head // 2,), optional
        Radians a position of each pair, in place of those of ``base``.

    Returns
    -------
    Tensor of the shape and dtype of ``x``

    Raises
    ------
    ValueError
        If ``d_head`` is odd, the layout unknown, or there is not one position a token.
    """
    if layout not in ("interleaved", "half"):
        raise ValueError(f"layout {layout!r} is neither 'interleaved' nor 'half'")
    tokens, d_head = x.shape[-2:]
    if positions is None:
        positions = torch.arange(tokens)
    positions = torch.as_tensor(positions)
    if positions.shape != (tokens,):
        raise ValueError(f"positions of shape {[*positions.shape]} for {tokens} tokens")
    speeds = frequencies(d_head, base) if speeds is None else speeds
    angle = positions.cpu().double()[:, None] * speeds  # (tokens, d_head / 2)
    cos = angle.cos().to(x.dtype).to(x.device)  # (tokens, d_head / 2)
    sin = angle.sin().to(x.dtype).to(x.device)  # (tokens, d_head / 2)
    return turn_pairs(x, cos, sin, layout)


def turn_pairs(x, cos, sin, layout):
    """Turn each pair of dimensions by an angle, given its cosine and sine.

    Parameters
    ----------
    x : Tensor of shape (..., tokens, d_head)
    cos, sin : Tensor of shape (tokens, d_head // 2)
        Of each token's angles.
    layout : {"interleaved", "half"}
        Which dimensions make a pair: neighbours, or one of each half.

    Returns
    -------
    Tensor of the shape of ``x``
    """
    if layout == "interleaved":
        a, b = x[..., 0::2], x[..., 1::2]  # (..., tokens, d_head / 2) each
        turned = (a * cos - b * sin, a * sin + b * cos)
        return torch.stack(turned, -1).flatten(-2)  # (..., tokens, d_head)
    a, b = x.chunk(2, -1)  # (..., tokens, d_head / 2) each
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


@lru_cache(maxsize=32)
def rotations(tokens, d_head, dtype, device, base=10000.0):
    """Return cosines and sines of the angles of positions 0 to ``tokens - 1``, kept.

    For a model that rotates the queries and keys of every layer by the same angles.

    Parameters
    ----------
    tokens, d_head : int
    dtype : torch.dtype
        Of what is returned.
    device : torch.device
        Where it lies.
    base : float
        The slowest pair turns almost ``base`` times as slowly as the first.

    Returns
    -------
    cos, sin : Tensor of shape (tokens, d_head // 2)
        For `turn_pairs`; shared by all callers, who must not write to them.
    """
    with torch.inference_mode(False):  # so that training can use them later
        positions = torch.arange(tokens, dtype=torch.float64, device="cpu")
        angle = positions[:, None] * frequencies(d_head, base).cpu()
        return angle.cos().to(dtype).to(device), angle.sin().to(dtype).to(device)


def alibi_slopes(heads):
    """Return each head's penalty for one token of distance (Press et al. 2022, sec. 3).

    Parameters
    ----------
    heads : int
        How many there are.

    Returns
    -------
    float32 Tensor of shape (heads,)
        The geometric sequence from ``2 ** (-8 / heads)`` down to ``2 ** -8``. If
        ``heads`` is no power of two, the sequence of the power below, filled up with
        every other member of the next one's, as in the authors' code.

    Raises
    ------
    ValueError
        If ``heads`` is not positive.
    """
    if heads < 1:
        raise ValueError(f"at least one head is needed, not {heads}")
    below = 2 ** math.floor(math.log2(heads))  # the largest power of two
    slopes = [2 ** (-8 * i / below) for i in range(1, below + 1)]
    between = [2 ** (-4 * i / below) for i in range(1, 2 * below + 1, 2)]
    return torch.tensor(slopes + between[: heads - below])


def alibi_bias(heads, tokens):
    """Return ALiBi's bias of attention (Press et al. 2022): farther keys get lower scores.

    Parameters
    ----------
    heads, tokens : int

    Returns
    -------
    float32 Tensor of shape (heads, tokens, tokens)
        ``-slope * |query - key|``, to be added to the scaled scores; on the CPU.

    Raises
    ------
    ValueError
        If ``heads`` is not positive.
    """
    position = torch.arange(tokens)
    distance = (position[:, None] - position).abs()  # (tokens, tokens)
    return alibi_slopes(heads)[:, None, None] * -distance  # (heads, tokens, tokens)


def relative_buckets(tokens, buckets=32, reach=128):
    """Return the bucket of each distance back (Raffel et al. 2020, section 2.1).

    These are the buckets of a decoder. Half of them hold one distance each, the others
    longer and longer ranges of distances; all from ``reach`` on share the last bucket.

    Parameters
    ----------
    tokens : int
    buckets : int
        How many there are.
    reach : int
        The distance from which on all are in the last bucket.

    Returns
    -------
    int64 Tensor of shape (tokens, tokens)
        A row for each query, a column for each key; 0 where the key is the query or later.

    Raises
    ------
    ValueError
        If there are fewer than two buckets, or half of them go as far as ``reach``.
    """
    exact = buckets // 2
    if not 1 <= exact < reach:
        raise ValueError(f"{buckets} buckets, {exact} of one distance, with reach {reach}")
    position = torch.arange(tokens)
    back = (position[:, None] - position).clamp(min=0)  # (tokens, tokens)
    growth = (back.clamp(min=1) / exact).log() / math.log(reach / exact)
    far = exact + (growth * (buckets - exact)).long()
    return torch.where(back < exact, back, far.clamp(max=buckets - 1))
