"""Why do word vectors crowd into a cone when skip-gram begins to learn?

Varied: the negatives drawn for each pair (k, one to five); a constant added to every
score; the hundred most frequent words left out. Rivals: that the most frequent words push
all vectors the same way; that k makes no difference. Null: a constant of ln k in the score,
which a dot product need not make up for, changes nothing. Statistic: the mean cosine of
all pairs of words, at its greatest in 3,300 steps; the interval is that of five negatives
less five with the constant -ln 5, by seed. Model and training are the chapter's.
"""

import math
from collections import Counter
from functools import cache
from itertools import chain

import numpy as np

from lmcourse.data import load_poems, load_sonnets
from lmcourse.embeddings import unit, words
from studies.embeddings import shown
from studies.harness import alike, count, grid, paired

CHAPTER = "embeddings"
CLAIM = (
    "Early in training, five negatives a pair crowd skip-gram's word vectors into a narrow "
    "cone; a constant of -ln 5 in the score mostly prevents it"
)
RIVAL = "the most frequent words push all vectors the same way; without a hundred they do"
NULL = (
    "a constant in the score changes nothing; but with +ln 5 one negative crowds them as "
    "five do"
)
SETTINGS = {"seeds": [0, 1, 2], "steps": 3300, "drawn_at": 330}
LN5 = round(math.log(5), 4)
KINDS = [{"k": k} for k in range(1, 6)]
KINDS += [{"k": 5, "constant": -LN5}, {"k": 1, "constant": LN5}, {"k": 5, "without": 100}]
EVERY = 20  # one word in so many is drawn
BETWEEN = 30  # steps from one measure to the next
LEAST = 5  # times that a word must occur


@cache
def split():
    """Return the words of each poem and sonnet, a list of lists of str."""
    return [words(text) for text in [*load_poems().text, *load_sonnets().text]]


def material(without=0):
    """Return what a skip-gram model is trained on.

    Parameters
    ----------
    without : int
        How many of the most frequent words are left out.

    Returns
    -------
    learned : list of str
        The words that occur five times or more, the most frequent first.
    pairs : int array of shape (pairs, 2)
        Numbers of words in that list, from 0: a word, and a word at most four words from
        it.
    shares : array of shape (words,)
        The probability with which each is drawn as a negative: in proportion to the power
        0.75 of how often it occurs.
    """
    counted = Counter(word for text in split() for word in text)
    vocabulary = sorted(counted, key=lambda word: (-counted[word], word))
    learned = [word for word in vocabulary[without:] if counted[word] >= LEAST]
    times = np.array([counted[word] for word in learned]) ** 0.75
    return learned, shown.word_pairs(split(), learned), times / times.sum()


def plan(small):
    """Return the settings of all runs, one for each kind of training and each seed.

    Parameters
    ----------
    small : bool
        Whether it is one short run instead.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, ``seed``, ``steps``, and ``k``, the negatives
        drawn for each pair. Some kinds also have ``constant``, which is added to every
        score, or ``without``, how many of the most frequent words are left out; where they
        are missing, both are 0.
    """
    if small:
        return [{"group": "cones", "seed": 0, "steps": 30, "k": 1}]
    seeds = SETTINGS["seeds"]
    steps = SETTINGS["steps"]
    return [*chain(*(grid(group="cones", seed=seeds, steps=steps, **k) for k in KINDS))]


def run(folder, group, seed, steps, k=5, constant=0.0, without=0):
    """Train word vectors, and measure on the way how far they point the same way.

    Parameters
    ----------
    folder : Path
        Unused: no weights are saved.
    group : {"cones"}
        The only kind of run; unused.
    seed : int
        Of the first weights, and of the draws.
    steps : int
        How many steps of training.
    k : int
        Negatives drawn for each pair.
    constant : float
        Added to every score.
    without : int
        How many of the most frequent words are left out.

    Returns
    -------
    dict
        The arguments; ``most`` and ``last``, the highest and the last mean cosine of all
        pairs of words; ``cosines``, the first eleven of these, one every 30 steps. Of seed
        0 and all words also ``picture``, a dict, after 330 steps, for the page to draw:
        ``cosine``, the mean cosine of all pairs of words; ``opposed``, that of the mean
        word and the mean context; ``score``, the mean score; ``angles``, of every twentieth
        word and context, two lists of degrees; and ``words``, those words, list of str.
    """
    learned, pairs, shares = material(without)
    cosines = []
    picture = {}
    training = shown.train_skip_gram(pairs, shares, k, constant, seed, steps)
    for step, model in enumerate(training, 1):
        if step % BETWEEN == 0:
            cosines.append(round(mean_cosine(tables(model)[0]), 4))
        if step == SETTINGS["drawn_at"] and seed == 0 and not without:
            picture = {"picture": drawn(model) | {"words": learned[::EVERY]}}
    kind = {"seed": seed, "steps": steps, "k": k, "constant": constant, "without": without}
    stored = {"most": max(cosines), "last": cosines[-1], "cosines": cosines[:11]}
    return kind | stored | picture


def tables(model):
    """Return the vectors of a skip-gram model.

    ``model`` : `studies.embeddings.shown.SkipGram`, whose ``words`` and ``contexts`` are
    nn.Embedding. Returned is a list of two float64 arrays (words, d_model): of the words,
    and of the contexts.
    """
    return [x.weight.detach().double().numpy() for x in (model.words, model.contexts)]


def drawn(model):
    """Return some cosines, the mean score and the angles of vectors, for the page to draw.

    Parameters
    ----------
    model : SkipGram
        With tables of vectors of words and of contexts, and its ``constant``.

    Returns
    -------
    dict
        ``cosine``, the mean cosine of all pairs of words; ``opposed``, the cosine of the
        mean word and the mean context; ``score``, the mean score of all words with all
        contexts; ``angles``, of every twentieth word and context from the axis that runs
        from the mean word to the mean context, two lists of degrees, −180 to 180; the sign
        says on which side of the axis, by the direction in which words differ most.
    """
    both = tables(model)
    axis = unit(unit(both[1].mean(0)) - unit(both[0].mean(0)))
    across = both[0] - np.outer(both[0] @ axis, axis)  # the parts of words at right angles
    side = np.linalg.svd(across - across.mean(0), full_matrices=False)[2][0]
    angles = [
        [
            round(math.degrees(math.copysign(math.acos(v @ axis), v @ side)), 1)
            for v in unit(table[::EVERY])
        ]
        for table in both
    ]
    scores = both[0] @ both[1].T + model.constant  # (words, contexts)
    opposed = unit(both[0].mean(0)) @ unit(both[1].mean(0))
    numbers = {"cosine": mean_cosine(both[0]), "opposed": opposed, "score": scores.mean()}
    return {name: round(float(x), 4) for name, x in numbers.items()} | {"angles": angles}


def mean_cosine(vectors):
    """Average the cosine over all pairs of different rows: the anisotropy.

    The squared length of the sum of n unit vectors is the sum of all n² cosines, n of
    which are a vector's with itself; so no pair is formed. It is the measure of Ethayarajh
    (2019, section 3.4) on all pairs instead of a sample.

    Parameters
    ----------
    vectors : array of shape (words, d_model)
        Two rows at least. The cosine with a vector of zeros counts as 0.

    Returns
    -------
    float
        0 when directions cancel, 1 when all are the same.

    Raises
    ------
    ValueError
        If there are fewer than two rows.
    """
    number = len(vectors)
    if number < 2:
        raise ValueError("a pair needs two vectors")
    total = unit(vectors).sum(axis=0)  # (d_model,)
    own = np.any(vectors, axis=1).sum()  # cosines of 1; zeros have none
    return float((total @ total - own) / (number * (number - 1)))


def summary(results):
    """Compare five negatives with five and a constant of -ln 5, and the other kinds.

    Parameters
    ----------
    results : dict of str to list of dict
        "cones" → a dict for each training: ``seed``; ``k``, negatives for each pair;
        ``constant``, added to every score; ``without``, how many of the most frequent words
        are left out; ``most``, the highest mean cosine of all pairs of words.

    Returns
    -------
    dict
        ``n`` and ``seeds``, how many runs and which seeds; ``interval``, of the highest
        mean cosine with five negatives less that with five and the constant, lowest and
        highest over seeds; ``verdict``, "holds" or "not so": whether five negatives, the
        hundred most frequent words left out or not, and one with the opposite constant
        crowd the vectors above 0.95, and one negative, and five with the constant, stay
        below 0.7.
    """

    def highest_cosines(k, constant=0.0, without=0):
        """Return the highest mean cosine of each run of a kind, a list of float.

        ``k`` : negatives for each pair; ``constant`` : added to every score; ``without`` :
        how many frequent words are left out. [0.0] if there is no run.
        """
        rows = alike(results["cones"], k=k, constant=constant, without=without)
        return [each["most"] for each in rows] or [0.0]

    five = highest_cosines(5)
    one = highest_cosines(1)
    five_minus = highest_cosines(5, constant=-LN5)
    one_plus = highest_cosines(1, constant=LN5)
    five_of_rarer = highest_cosines(5, without=100)
    holds = (
        min(five) > 0.95
        and min(five_of_rarer) > 0.95
        and min(one_plus) > 0.95
        and max(one) < 0.7
        and max(five_minus) < 0.7
    )
    return count(results["cones"]) | paired(five, five_minus, holds)
