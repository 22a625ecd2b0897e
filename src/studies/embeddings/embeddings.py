"""Why do word vectors come to point the same way, and does subtracting the mean help?

What varies: the negative samples drawn for each pair of neighbouring words (k, from one to
five); a constant that is added to every score; whether the hundred most frequent words are
left out.

Rivals: that the neighbours of the most frequent words push all vectors the same way; that k
makes no difference.

Null: a constant of ln k changes nothing. For the remedy, words shuffled among the poems.

Statistic: the mean cosine of all pairs of words, at its highest in 3,300 steps. The
interval is that of five negatives less five negatives with -ln 5 in the score, over the
seeds. For the remedy: the share of ten nearest neighbours that a word has in common
with BERT's table, the sixty most frequent words left out, before and after the mean
vector is subtracted.

Model and training are those of the chapter.
"""

import math
from collections import Counter
from functools import cache
from itertools import chain

import numpy as np

from lmcourse.data import load_poems, load_sonnets
from lmcourse.embeddings import neighbour_overlap, unit, words
from lmcourse.models import load_bert
from studies.embeddings import shown
from studies.harness import alike, count, grid, paired

CHAPTER = "embeddings"
CLAIM = (
    "Word vectors come to point almost the same way when five negatives are drawn for each "
    "pair; a constant added to the scores weakens this"
)
RIVAL = "the most frequent words push all vectors the same way"
NULL = "the constant added to the scores changes nothing"
SETTINGS = {"seeds": [0, 1, 2], "steps": 3300, "drawn_at": 330, "remedy_at": [660, 3300]}
LN5 = round(math.log(5), 4)
KINDS = [{"k": k} for k in range(1, 6)]
KINDS += [{"k": 5, "shift": -LN5}, {"k": 1, "shift": LN5}, {"k": 5, "without": 100}]
DRAWN_EVERY = 20  # every twentieth word is drawn in the figure
MEASURED_EVERY = 30  # steps
MIN_COUNT = 5  # a word is learned if it is met so often
MIN_COUNT_REMEDY = 10  # and compared with BERT's if it is met so often
NEIGHBOURS = 10
FREQUENT = 60  # so many of the most frequent words are not compared with BERT's


@cache
def load_words():
    """Load the words of each poem and sonnet, a list of lists of str."""
    return [words(text) for text in [*load_poems().text, *load_sonnets().text]]


@cache
def word_counts():
    """Return how often each word occurs in all poems and sonnets: a Counter."""
    return Counter(word for text in load_words() for word in text)


def shuffle_words(seed):
    """Return the words of all texts shuffled among texts of the same lengths.

    Parameters
    ----------
    seed : int

    Returns
    -------
    list of list of str
    """
    ends = np.cumsum([len(text) for text in load_words()])[:-1]
    every_word = np.random.default_rng(seed).permutation(np.concatenate(load_words()))
    return [part.tolist() for part in np.split(every_word, ends)]


def training_data(texts, without=0):
    """Return what a skip-gram model is trained on.

    Parameters
    ----------
    texts : list of list of str
        The words of each text.
    without : int
        How many of the most frequent words are left out.

    Returns
    -------
    vocabulary : list of str
        The words that occur five times or more, the most frequent first.
    pairs : int array of shape (pairs, 2)
        The numbers of neighbouring words, as `shown.company` finds them.
    frequencies : array of shape (vocab_size,)
        The probability with which each word is drawn as a negative.
    """
    counts = word_counts()
    by_frequency = sorted(counts, key=lambda word: (-counts[word], word))
    vocabulary = [word for word in by_frequency[without:] if counts[word] >= MIN_COUNT]
    frequencies = np.array([counts[word] for word in vocabulary]) ** 0.75
    return vocabulary, shown.company(texts, vocabulary), frequencies / frequencies.sum()


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return one short run of each group.

    Returns
    -------
    list of dict
        The arguments of `run`.
    """
    if small:
        return [
            {"group": "lean", "seed": 0, "steps": 30, "k": 1},
            {"group": "remedy", "seed": 0, "steps": 10, "text": "poems"},
        ]
    seeds = SETTINGS["seeds"]
    lean = [
        grid(group="lean", seed=seeds, steps=SETTINGS["steps"], **kind) for kind in KINDS
    ]
    remedy = grid(
        group="remedy", steps=SETTINGS["remedy_at"], text=("poems", "dealt"), seed=seeds
    )
    return [*chain(*lean), *remedy]


def run(folder, group, seed, steps, k=5, shift=0.0, without=0, text="poems"):
    """Train word vectors; measure their mean cosine, or what subtracting the mean gains.

    Parameters
    ----------
    folder : Path
        Unused: no weights are saved.
    group : {"lean", "remedy"}
        What to measure.
    seed, steps : int
    k : int
        Negatives that are drawn for each pair.
    shift : float
        The constant that is added to every score.
    without : int
        How many of the most frequent words are left out.
    text : {"poems", "dealt"}
        The words of the poems in their order, or shuffled among the poems.

    Returns
    -------
    dict
        ``seed``, ``steps``. Of the group "remedy" also ``text``, and ``before`` and
        ``after`` of `overlap_with_bert`. Of "lean" the arguments; ``most`` and ``last``,
        the highest and the last mean cosine of words; ``lean``, the mean cosines of the
        first 330 steps, every 30 steps. Of "lean", seed 0, all words, also a picture after
        330 steps: ``rays``, as `angles_to_axis`; ``drawn``, its words; and ``words then``,
        ``company then``, ``opposed then``, ``score then``, the values of `shown.lean_of`.
    """
    texts = load_words() if text == "poems" else shuffle_words(seed)
    vocabulary, pairs, frequencies = training_data(texts, without)
    cosines = []
    picture = {}
    training = shown.learn(pairs, frequencies, k, shift, seed, steps)
    for step, model in enumerate(training, start=1):
        if step % MEASURED_EVERY == 0:
            cosines.append(round(shown.lean_of(model)["words"], 4))
        if step == SETTINGS["drawn_at"] and seed == 0 and not without:
            picture["rays"] = angles_to_axis(model)
            picture["drawn"] = vocabulary[::DRAWN_EVERY]
            for name, value in shown.lean_of(model).items():
                picture[f"{name} then"] = round(float(value), 4)
    row = {"seed": seed, "steps": steps}
    if group == "remedy":
        return row | {"text": text} | overlap_with_bert(vocabulary, model)
    row |= {"k": k, "shift": shift, "without": without}
    row |= {"most": max(cosines), "last": cosines[-1]}
    row["lean"] = cosines[: SETTINGS["drawn_at"] // MEASURED_EVERY]
    return row | picture


def overlap_with_bert(vocabulary, model):
    """Return how many nearest neighbours word vectors have in common with BERT's table.

    Parameters
    ----------
    vocabulary : list of str
        The model's words, the most frequent first.
    model : shown.SkipGram

    Returns
    -------
    dict of str to float
        The shared part of ten nearest neighbours, ``before`` and ``after`` the mean vector
        is subtracted; of words that BERT has as one token, the sixty most frequent left
        out.
    """
    tokenizer, bert = load_bert(device="cpu")
    table = bert.embeddings.word_embeddings.weight.detach().double().numpy()
    number = tokenizer.get_vocab()
    counts = word_counts()
    rows = [
        i
        for i, word in enumerate(vocabulary)
        if counts[word] >= MIN_COUNT_REMEDY and word in number
    ]
    compared = rows[FREQUENT:]
    vectors = model.word.weight.detach().double().numpy()
    centred = vectors - vectors.mean(axis=0)
    bert_vectors = table[[number[vocabulary[i]] for i in compared]]
    overlaps = [
        round(neighbour_overlap(own[compared], bert_vectors, NEIGHBOURS), 4)
        for own in (vectors, centred)
    ]
    return dict(zip(("before", "after"), overlaps, strict=True))


def angles_to_axis(model):
    """Return the angles of some vectors to the axis between the means of both tables.

    Parameters
    ----------
    model : shown.SkipGram

    Returns
    -------
    list of list of float
        Of every twentieth word its angle in degrees, from -180 to 180: first of the word
        vectors, then of the vectors of neighbours. The axis goes from the mean direction of
        the word vectors to that of the others; the sign says on which side of it a vector
        is, along the direction in which the word vectors vary most.
    """
    tables = [x.weight.detach().double().numpy() for x in (model.word, model.company)]
    axis = unit(unit(tables[1].mean(0)) - unit(tables[0].mean(0)))
    around = tables[0] - np.outer(tables[0] @ axis, axis)  # (words, d_model)
    side = np.linalg.svd(around - around.mean(0), full_matrices=False)[2][0]  # (d_model,)

    def angle(vector):
        """Return the signed angle of a unit vector to the axis, in degrees."""
        radians = math.copysign(math.acos(vector @ axis), vector @ side)
        return round(math.degrees(radians), 1)

    return [[angle(vector) for vector in unit(table[::DRAWN_EVERY])] for table in tables]


def summary(results):
    """Compare five negatives with five whose scores are less by ln 5, and other kinds.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs (`studies.harness`).

    Returns
    -------
    dict
        ``n``, ``seeds``; ``interval``, of the difference of the highest mean cosines;
        ``verdict``: whether these are above 0.95 with five negatives, with one and +ln 5,
        and with five where the hundred most frequent words are left out, but below 0.7 with
        one negative, and with five and -ln 5.
    """

    def highest(k, shift=0.0, without=0):
        """Return the highest mean cosine of each seed; [0.0] in a short run without any."""
        rows = alike(results["lean"], k=k, shift=shift, without=without)
        return [row["most"] for row in rows] or [0.0]

    five = highest(5)
    five_lowered = highest(5, -LN5)
    above = [five, highest(1, LN5), highest(5, without=100)]
    below = [highest(1), five_lowered]
    holds = all(min(each) > 0.95 for each in above)
    holds = holds and all(max(each) < 0.7 for each in below)
    return count(results["lean"]) | paired(five, five_lowered, holds)
