"""Word order and positions, made visible: the scores of a line under six schemes.

`order_parts` and `order_schemes` make the scores; `pair_score` reads one of them anywhere;
`mean_cosines` says how alike the rows of a table are; `hands` and `dial_scores`
are rotary positions as the hands of clocks. The chapter *positional-encoding* shows them.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F

from lmcourse import positions

# --- a line whose words change places -------------------------------------------------

FARTHER = 20  # words that can stand before the line
D_HEAD = 12
PRICE = 0.5  # ALiBi's, for a token of distance


@dataclass
class OrderParts:
    """What the scores of a line are made of; random numbers from one seed.

    Attributes
    ----------
    words : float64 Tensor of shape (words, d_model)
    queries, keys : float64 Tensor of shape (d_model, 12)
        Random projections.
    sinusoidal, learned : float64 Tensor of shape (words + 20, d_model)
        Position vectors; the learned ones are a BERT's.
    prices : float64 Tensor of shape (2 * words - 1,)
        A random number for each offset, in place of learned ones.
    """

    words: torch.Tensor
    queries: torch.Tensor
    keys: torch.Tensor
    sinusoidal: torch.Tensor
    learned: torch.Tensor
    prices: torch.Tensor


def of_one_size(x):
    """Return vectors divided by the standard deviation of all their numbers.

    Parameters
    ----------
    x : Tensor of shape (..., d_model)

    Returns
    -------
    Tensor
        Of the shape of ``x``.
    """
    return x / x.std()


@torch.no_grad()
def order_parts(line, tokenizer, bert):
    """Return the vectors and projections of which a line's attention scores are made.

    The score of two words is the product of the first one's query with the second one's
    key; `order_schemes` makes the scores of these parts.

    Parameters
    ----------
    line : list of str
        Its words.
    tokenizer : PreTrainedTokenizerFast
        The BERT's.
    bert : BertModel
        Of ``transformers``; only its tables of word and position vectors are read.

    Returns
    -------
    OrderParts
        All in float64, on the CPU. ``words`` (words, d_model), rows of the BERT's table,
        the mean over the pieces of a word; ``queries`` and ``keys`` (d_model, 12), random
        matrices; ``sinusoidal`` and ``learned`` (words + 20, d_model), vectors of
        positions: a word may stand up to 20 positions (`FARTHER`) after its place in the
        line; ``prices`` (2 * words - 1,), a random number for each offset of a key from a
        query. `of_one_size` divides words and positions by their standard deviation.
    """
    tables = bert.embeddings
    d_model = bert.config.hidden_size
    vectors = []
    for word in line:
        ids = tokenizer(word, add_special_tokens=False, return_tensors="pt").input_ids
        vectors.append(tables.word_embeddings(ids.to(bert.device))[0].mean(0))
    generator = torch.Generator().manual_seed(6)
    projections = torch.randn(2, d_model, D_HEAD, generator=generator).double()
    queries, keys = projections / math.sqrt(d_model)
    tokens = len(line) + FARTHER
    learned = tables.position_embeddings.weight[:tokens].cpu().double()
    return OrderParts(
        words=of_one_size(torch.stack(vectors).cpu().double()),
        queries=queries,
        keys=keys,
        sinusoidal=of_one_size(positions.sinusoidal(tokens, d_model).double()),
        learned=of_one_size(learned),
        prices=torch.randn(2 * len(line) - 1, generator=generator).double(),
    )


def order_schemes(parts):
    """Return the attention scores of all pairs of words under six schemes of positions.

    Parameters
    ----------
    parts : OrderParts
        The words' vectors, ``words``, (words, d_model); projections ``queries`` and
        ``keys``, (d_model, 12); vectors of positions, ``sinusoidal`` and ``learned``,
        (positions, d_model); ``prices``, (2 * words - 1,), a number for each offset.

    Returns
    -------
    dict of str to dict of str to Tensor
        Scheme, "none", "sinusoidal", "learned", "rotary", "ALiBi" (half a point less for
        each token of distance) or "relative" (the offset's number of ``prices`` is added) →
        either ``offsets``, (words, words, offsets), if the score depends on the offset
        alone: by query, key, and offset of the key from the query, from 1 - words to
        words - 1; or the four terms of its sum, word or position with word or position:
        ``ww`` (words, words), ``wp`` (words, positions), ``pw`` (positions, words), ``pp``
        (positions, positions).
    """
    words = parts.words
    span = len(words)

    def compared(a, b, turns=0):
        """Return the scores of each query of ``a`` with each key of ``b``, (queries, keys).

        ``a``, ``b`` : Tensors (queries, d_model), (keys, d_model), not yet projected.
        ``turns`` : int, the tokens by which every key is rotated, as rotary positions do;
        queries are not. A score is the product divided by the root of the width.
        """
        keys = positions.rotate(b @ parts.keys, torch.full((len(b),), turns))
        return (a @ parts.queries) @ keys.T / math.sqrt(D_HEAD)

    def added(p):
        """Return the four terms of the scores of vectors that are word plus position.

        ``p`` : Tensor (positions, d_model), the vectors of positions. A dict: ``ww``
        (words, words), ``wp`` (words, positions), ``pw`` (positions, words), ``pp``
        (positions, positions); the query is named first.
        """
        pairs = {"ww": (words, words), "wp": (words, p), "pw": (p, words), "pp": (p, p)}
        return {name: compared(*pair) for name, pair in pairs.items()}

    def by_offset(turns=0, price=lambda offset: 0.0):
        """Return the scores for each offset of the key from the query.

        Parameters
        ----------
        turns : int
            1: keys are rotated by the offset, in tokens; 0: not at all.
        price : callable
            From an offset, an int, to the number that is added to the score.

        Returns
        -------
        dict
            ``offsets``: a Tensor (words, words, offsets), by query, key and offset, which
            goes from 1 - span to span - 1; ``span`` is the number of words in the line.
        """
        scores = [
            compared(words, words, turns * offset) + price(offset)
            for offset in range(1 - span, span)
        ]
        return {"offsets": torch.stack(scores, -1)}

    return {
        "none": by_offset(),
        "sinusoidal": added(parts.sinusoidal),
        "learned": added(parts.learned),
        "rotary": by_offset(turns=1),
        "ALiBi": by_offset(price=lambda offset: -PRICE * abs(offset)),
        "relative": by_offset(price=lambda offset: parts.prices[offset + span - 1]),
    }


def pair_score(scheme, a, b, m, n):
    """Return the score of word a at position m, which attends to word b at position n.

    Parameters
    ----------
    scheme : dict of str to Tensor
        ``offsets`` (words, words, offsets), a score for each offset of the key from the
        query, the lowest first; or ``ww``, ``wp``, ``pw`` and ``pp``, the four terms of
        word or position with word or position.
    a, b : int
        Numbers of the words, from 0: a is the query, b the key.
    m, n : int
        The position of word a, and that of word b, in tokens.

    Returns
    -------
    Tensor of shape ()
    """
    if "offsets" in scheme:
        offsets = scheme["offsets"][a, b]
        return offsets[n - m + (len(offsets) - 1) // 2]
    return scheme["ww"][a, b] + scheme["wp"][a, n] + scheme["pw"][m, b] + scheme["pp"][m, n]


def count_changed(scheme, order, start=0):
    """Return how many scores change when a line's words stand in another order, or later.

    Parameters
    ----------
    scheme : dict of str to Tensor
        The scores of a scheme of positions. Either ``offsets``, (words, words, offsets), a
        score for each offset of the key from the query, the lowest (negative) first and 0
        in the middle; or the four terms of a sum, query first: ``ww`` (words, words),
        ``wp`` (words, positions), ``pw`` (positions, words), ``pp`` (positions, positions).
    order : list of int
        The words as they stand now: their positions in the line itself, from 0.
    start : int
        Position of the first.

    Returns
    -------
    int
        Of all pairs of words, a query and a key each (a word with itself among them), those
        whose score differs by more than 0.005 from that of the same two words in the line.
    """
    gaps = [
        pair_score(scheme, a, b, m + start, n + start) - pair_score(scheme, a, b, a, b)
        for m, a in enumerate(order)
        for n, b in enumerate(order)
    ]
    return int((torch.stack(gaps).abs() > 0.005).sum())


# --- tables of positions --------------------------------------------------------------


def mean_cosines(table, most=40):
    """Return the mean cosine of two rows of a table, by how many rows they are apart.

    Parameters
    ----------
    table : Tensor of shape (positions, d_model)
    most : int
        How many rows apart two of them are at most.

    Returns
    -------
    float array of shape (most + 1,)
        At d the mean over all pairs of rows i and i + d; 1 at 0.
    """
    unit = F.normalize(table.detach().cpu().double(), dim=-1)
    cosine = unit @ unit.T  # (positions, positions)
    return np.array([cosine.diagonal(d).mean().item() for d in range(most + 1)])


def shuffled_rows(table, seed=3):
    """Return a table with its rows in a random order.

    Parameters
    ----------
    table : Tensor of shape (rows, d_model)
    seed : int

    Returns
    -------
    Tensor of shape (rows, d_model)
    """
    order = torch.randperm(len(table), generator=torch.Generator().manual_seed(seed))
    return table[order]


# --- hands of clocks ------------------------------------------------------------------

DIALS = 6  # pairs of dimensions
BEHIND = 3  # how far back the query looks
FAR = 40  # the farthest key
FIRST_ANGLES = (0.9, 0.4, 1.2, 0.2, 0.7, 0.5)  # of the query's hands, in half turns


def hands():
    """Return a query, and a key that fits it best three tokens before.

    Each pair of dimensions, of which there are six, is the hand of a clock: rotary
    positions turn it by its speed for every token.

    Returns
    -------
    query, key : float64 Tensor of shape (6, 2)
        Points at distance 1 from the origin. The query's angles are fixed (`FIRST_ANGLES`,
        in half turns); each of the key's is larger by three times (`BEHIND`) the hand's
        speed. By that much less a key is turned that stands three tokens before the query,
        so there their hands coincide.
    speeds : float64 Tensor of shape (6,)
        Radians a token: 1 for the first hand, less for each that follows.
    """
    speeds = positions.frequencies(2 * DIALS)
    angles = torch.tensor(FIRST_ANGLES).double() * math.pi
    query, key = (
        torch.stack((angle.cos(), angle.sin()), -1)
        for angle in (angles, angles + BEHIND * speeds)
    )
    return query, key, speeds


def dial_scores():
    """Return the scores of a query with a key that stands 0, 1, … 40 tokens before it.

    Query and key are those of `hands`: six pairs of dimensions, turned as rotary positions
    turn them, which fit best at a distance of three.

    Returns
    -------
    float64 Tensor of shape (41, 6)
        A row for each distance, in tokens; columns: the score of the first pair of
        dimensions alone, the sum of the first two pairs, …, of all six.
    """
    query, key, _ = hands()
    scores = []
    for distance in range(FAR + 1):
        turned = positions.rotate(key.flatten()[None], torch.tensor([-distance]))
        scores.append((query * turned.view(DIALS, 2)).sum(-1).cumsum(0))
    return torch.stack(scores)
