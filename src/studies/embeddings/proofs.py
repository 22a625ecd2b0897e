"""What the chapter *embeddings* claims, checked where the page places it.

The ``page`` of a proof or a null is a `studies.findings.Page`: the names that the page has
defined so far, as attributes.
"""

import math
from collections import Counter
from functools import cache

import numpy as np
import torch
from sklearn.decomposition import PCA
from torch.nn import functional as F

from lmcourse.embeddings import (
    cooccurrence,
    unit,
    word_vectors,
    words,
)
from lmcourse.numbers import bootstrap_interval, crossed_interval
from lmcourse.verbs_and_nouns import (
    NEVER_VERBS,
    TAUGHT,
    TRIED,
    encode_pairs,
    pairs,
    told_apart,
    words_before,
)
from lmcourse.word_tests import (
    fourth_words,
    shared_neighbours,
    shuffled_texts,
    spelling_vectors,
)
from studies.embeddings.embeddings import mean_cosine
from studies.findings import Page, finding, proof

close = np.testing.assert_allclose
DECAYS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)  # of the words before
SEEDS = range(5)  # of shuffled texts
TOP = 60  # most frequent words, which are told apart from the others
WAYS = {"sum": (-1, 1, 1), "own": (0, 0, 1), "added": (0, 1, 1)}  # weights of a, b, c


# --- the table ----------------------------------------------------------------------------


@proof(
    "To look tokens up is to multiply one-hot vectors by the table; only the rows that "
    "are looked up get a gradient."
)
def lookup_is_a_product(page: Page):
    """Compare row by row; a token that occurs twice gets the sum of two gradients.

    Parameters
    ----------
    page : Page
        ``table`` is BERT's table, Tensor (vocab_size, d_model); ``ids`` are some tokens,
        list of int, and ``lookup`` and ``product`` their vectors by indexing and by a
        product with one-hot vectors, (tokens, d_model); ``number``: token → its ID;
        ``bert`` and ``tokenizer`` are the model's.

    Returns
    -------
    dict
        ``bee``, the table's row of the word "bee", int; ``before``, the token of the row
        before; ``share``, of all numbers of the model those in the table, 0 to 1;
        ``vocab``, ``d_model``: the table's sizes.
    """
    picked = torch.stack([page.table[token] for token in page.ids])  # (tokens, d_model)
    close(page.product, picked, rtol=1e-6)
    close(page.lookup, picked, rtol=0)
    sizes = page.bert.config.vocab_size, page.bert.config.hidden_size
    assert page.table.shape == sizes
    layer = torch.nn.Embedding.from_pretrained(page.table, freeze=False)
    ids = page.tokenizer("the bee, and the bee", add_special_tokens=False)["input_ids"]
    layer(torch.tensor(ids)).square().sum().backward()
    gradient = layer.weight.grad  # (vocab_size, d_model)
    touched = gradient.abs().sum(dim=1).nonzero().flatten().tolist()
    assert touched == sorted(set(ids))
    for row, times in Counter(ids).items():
        close(gradient[row], times * 2 * page.table[row], rtol=1e-5)
    of_all = page.table.numel() / sum(p.numel() for p in page.bert.parameters())
    assert of_all > 0.1
    bee = page.number["bee"]
    before = page.tokenizer.convert_ids_to_tokens(bee - 1)
    vocab, d_model = sizes
    values = {"bee": bee, "before": before, "share": of_all}
    return values | {"vocab": vocab, "d_model": d_model}


@proof("One matrix product gives the same cosines as a loop over the words.")
def one_product(page: Page):
    """Compare the cosines of the six nearest of *bee* with the formula, one by one.

    Parameters
    ----------
    page : Page
        ``matrix`` is the table of vectors, array (vocab_size, d_model); ``number``: token →
        its row. ``neighbours(vectors, row, k)`` is the lesson's function: it returns the
        rows of the k nearest, the nearest first, and their cosines.
    """
    bee = page.matrix[page.number["bee"]]
    nearest, cosines = page.neighbours(page.matrix, page.number["bee"], 6)
    lengths = [math.sqrt((v @ v) * (bee @ bee)) for v in page.matrix[nearest]]
    by_hand = [v @ bee / n for v, n in zip(page.matrix[nearest], lengths, strict=True)]
    close(cosines, by_hand)


def random_table(page: Page):
    """BERT's table with its numbers shuffled.

    Parameters
    ----------
    page : Page
        ``matrix`` is the table, array (vocab_size, d_model); ``whole_rows`` are the numbers
        of its rows that belong to whole words.

    Returns
    -------
    Page
        ``vectors``, array (words, d_model), are these rows of the shuffled table.
    """
    rng = np.random.default_rng(0)
    mixed = rng.permutation(page.matrix.ravel()).reshape(page.matrix.shape)
    return page.replaced(vectors=mixed[page.whole_rows])


def random_map(page: Page):
    """A map of the same rows of a table with its numbers shuffled.

    Parameters
    ----------
    page : Page
        ``mixed`` is that table, array (vocab_size, d_model); ``random_points`` are the
        points of its map, (words, 3).

    Returns
    -------
    Page
        ``matrix`` is the shuffled table, ``points``, those of the page's map, are
        ``random_points``.
    """
    return page.replaced(matrix=page.mixed, points=page.random_points)


def own_group(vectors, labels) -> np.ndarray:
    """Return, for each word, whether the nearest other one (Euclidean) is of its group.

    Parameters
    ----------
    vectors : float array of shape (words, d)
    labels : array of shape (words,)
        The groups.

    Returns
    -------
    float array of shape (words,)
        1 or 0.
    """
    apart = np.linalg.norm(vectors[:, None] - vectors, axis=-1)  # (words, words)
    np.fill_diagonal(apart, np.inf)
    return (labels[apart.argmin(axis=1)] == labels).astype(float)


@finding(
    "On a three-dimensional map of BERT's word vectors, most of the words that we chose "
    "stand nearest to one of their own group: a month to a month.",
    rival="three random directions, {by_chance_directions:.0%}; the tokens' numbers, "
    "{numbered:.0%}",
    null=random_map,
    n="{words} words of six groups",
    interval="{span:.0%}",
)
def groups_on_the_map(page: Page):
    """Check the figure's points, three principal components of the words' own rows.

    The interval over words is above a half, above three random directions (the mean of 200
    draws) and above shuffled labels; the gain over the logarithms of the tokens' numbers is
    above zero. All months and feelings stand nearest to one of their group.

    Parameters
    ----------
    page : Page
        ``matrix`` is BERT's table, array (vocab_size, d_model); ``map_rows`` are the rows
        of the words that are drawn, list of int, ``groups_of_words`` the names of their
        groups; ``points`` are their places on the map, (words, 3), and ``random_points``
        those from the shuffled table.

    Returns
    -------
    dict
        Shares of words that stand nearest to one of their group: ``share``, with its
        interval ``span``; ``by_chance_directions``, along random ones; ``numbered``, by the
        tokens' numbers; ``random``, from the shuffled table. ``words``, how many.
    """
    rng = np.random.default_rng(0)
    labels = np.asarray(page.groups_of_words)
    rows = page.matrix[page.map_rows]
    components = PCA(n_components=3, svd_solver="full").fit_transform(rows)
    # The sign of a principal component is arbitrary.
    signs = np.sign((components * page.points).sum(axis=0))
    close(components * signs, page.points, atol=1e-9)
    projected = rows @ rng.standard_normal((200, rows.shape[1], 3))
    directions = np.mean([own_group(x, labels) for x in projected])
    shuffled = np.mean(
        [own_group(page.points, rng.permutation(labels)) for _ in range(200)]
    )
    hits = own_group(page.points, labels)
    numbered = own_group(np.log(np.asarray(page.map_rows, float))[:, None], labels)
    span = bootstrap_interval(hits)
    by_random = own_group(page.random_points, labels)
    assert span[0] > max(0.5, directions, shuffled)
    assert bootstrap_interval(hits - numbered)[0] > 0
    assert hits[np.isin(labels, ["months", "feelings"])].all()
    return {
        "share": hits.mean(),
        "span": span,
        "by_chance_directions": directions,
        "numbered": numbered.mean(),
        "random": by_random.mean(),
        "words": len(labels),
    }


# --- analogies ----------------------------------------------------------------------------


def share_that_stays(page: Page) -> float:
    """Return in which share of the questions about families c is nearest to its own sum.

    The sum is b − a + c, of vectors of length 1.

    Parameters
    ----------
    page : Page
        ``vectors`` are BERT's word vectors, array (words, d_model); ``asked``: kind, such
        as "families" → Google's questions "a is to b as c is to d", as numbers of four rows
        of ``vectors``, int array (questions, 4).

    Returns
    -------
    float
        From 0 to 1.
    """
    asked = page.asked["families"]
    directions = unit(page.vectors)
    a, b, c = (directions[asked[:, i]] for i in range(3))
    first = ((b - a + c) @ directions.T).argmax(axis=1)
    return float((first == asked[:, 2]).mean())


@proof("The answer is the word that has the largest cosine with king − man + woman.")
def king_stays(page: Page):
    """Check the order of the words that are nearest to king − man + woman.

    The page's first words are those of the largest cosines; each vector has length 1.

    That it is *king*, and what is so in most questions, `sums_answer` asserts.

    Parameters
    ----------
    page : Page
        ``nearest_words`` are the words nearest to king − man + woman, list of str, the
        nearest first; ``names`` are all words, list of str, and ``vectors`` BERT's vectors
        of them, array (words, d_model); ``asked``: kind, such as "families" → Google's
        questions "a is to b as c is to d", as numbers of four rows of ``vectors``, int
        array (questions, 4).

    Returns
    -------
    dict
        ``stays``, the share of questions in which c itself is nearest; ``answer``, the
        letter of the right choice in a task, "c" for "king", "?" if it is none of them.
    """
    row = {word: i for i, word in enumerate(page.names)}
    directions = unit(page.vectors)
    man, king, woman = (directions[row[word]] for word in ("man", "king", "woman"))
    cosines = directions @ unit((king - man + woman)[None])[0]
    listed = [cosines[row[word]] for word in page.nearest_words]
    close(listed, np.sort(cosines)[: -len(listed) - 1 : -1], rtol=1e-6)
    letters = {"queen": "a", "woman": "b", "king": "c", "monarch": "d"}
    return {
        "stays": share_that_stays(page),
        "answer": letters.get(page.nearest_words[0], "?"),
    }


def table_of(asked, right) -> np.ndarray:
    """Arrange the answers to questions a : b = c : d in a table.

    Parameters
    ----------
    asked : int array of shape (questions, 4)
        The numbers of a, b, c and d.
    right : array of shape (questions,)
        A value for each question.

    Returns
    -------
    float array of shape (pairs, pairs)
        The values; a and b choose the row, c and d the column. NaN where nothing is asked.
    """
    ends = sorted(
        {tuple(row) for row in asked[:, :2]} | {tuple(row) for row in asked[:, 2:]}
    )
    at = {pair: i for i, pair in enumerate(ends)}
    table = np.full((len(ends), len(ends)), np.nan)
    for (a, b, c, d), hit in zip(asked.tolist(), right, strict=True):
        table[at[a, b], at[c, d]] = hit
    return table


def interval_of_pairs(table) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean of a table, pairs drawn again.

    Rows and columns are the same pairs, so what is drawn for one is drawn for the other
    (`lmcourse.numbers.crossed_interval` draws them apart).

    ``table`` : float array of shape (pairs, pairs), a value for each question; NaN where
    nothing is asked.
    """

    def means(drawn, axis):
        """Return the mean of the table of each draw, a float array (draws,).

        ``drawn`` : float array (draws, pairs), the rows' numbers; ``axis`` is the last.
        """
        return np.array([np.nanmean(table[np.ix_(x, x)]) for x in drawn.astype(int)])

    return bootstrap_interval(range(len(table)), statistic=means)


def wrong_partners(asked) -> np.ndarray:
    """Return the questions with b replaced by the partner of the next pair's first word.

    The next pair is the one whose first word has the next higher number; after the last
    comes the first.

    ``asked`` : int array of shape (questions, 4), the words a, b, c and d of each question,
    "a is to b as c is to d", by their rows in the table of vectors. Returned is such an
    array, without questions whose new b is d.
    """
    partner = dict(asked[:, :2].tolist())
    firsts = sorted(partner)
    following = {a: partner[firsts[(i + 1) % len(firsts)]] for i, a in enumerate(firsts)}
    changed = asked.copy()
    changed[:, 1] = [following[a] for a in asked[:, 0].tolist()]
    return changed[changed[:, 1] != changed[:, 3]]


@finding(
    "From BERT's table, king − man + woman and sums like it answer most of Google's "
    "questions about families and capitals, if the question's own words are ruled out.",
    rival="the third word's own neighbour, {own:.0%} and {own_capitals:.0%}; b + c, "
    "{added:.0%} and {added_capitals:.0%}; the partner of another pair, {partner:.0%} and "
    "{partner_capitals:.0%}; but among the words that are answers, the one nearest to the "
    "third word, {listed:.0%} and {listed_capitals:.0%}",
    null=random_table,
    n="{families} and {capitals} questions, all of Google's pairs whose words are tokens",
    interval="families {span:.0%}, capitals {span_capitals:.0%}; minus what a word's own "
    "neighbour reaches, {gain:.0%} and {gain_capitals:.0%}",
)
def sums_answer(page: Page):
    """Check that sums like king − man + woman answer most questions of two kinds.

    The answer is the whole word with the largest cosine similarity to −a + b + c, of
    vectors that are brought to length 1 first; a, b and c are left out. Intervals are
    bootstrap intervals over word pairs. In the null world the numbers of BERT's table are
    shuffled.

    In each of the two kinds the interval of the share is above a half, and above the share
    with the b of another pair; the intervals of the gain over the third word's own
    neighbour and over b + c are above zero. If only the words that are answers may be
    chosen, the third word needs no sum: its own nearest of them is right as often as the
    sum's nearest of them, or more often, and in 95 % at least. With no word left out, the
    nearest to king − man + woman is *king*, then *queen*, and in most questions about
    families c is nearest to its own sum. To *bright : brightest = big : ?* the answer is
    *biggest*.

    Parameters
    ----------
    page : Page
        ``names`` are the whole words of the table, list of str, and ``vectors`` their
        vectors, array (words, d_model); ``asked``: kind ("families", "capitals" …) →
        Google's questions "a is to b as c is to d", as numbers of four rows of ``vectors``,
        int array (questions, 4); ``nearest_words`` are the words nearest to king − man +
        woman, list of str, the nearest first.

    Returns
    -------
    dict
        Shares of right answers about families, and about capitals (``…_capitals``):
        ``sum``, with its 95 % interval ``span``; of the rivals ``own``, the third word's
        own neighbour, ``added``, b + c, ``partner``, the b of another pair, ``listed``, the
        answer nearest to the third word; ``gain``, the interval of sum less own.
        ``families``, ``capitals``: how many questions.
    """
    result = {}
    row = {word: i for i, word in enumerate(page.names)}
    big = np.array([[row[w] for w in ("bright", "brightest", "big", "biggest")]])
    assert fourth_words(page.vectors, big)[0] == big[0, 3]
    assert list(page.nearest_words[:2]) == ["king", "queen"]
    assert share_that_stays(page) > 0.5
    for kind, end in {"families": "", "capitals": "_capitals"}.items():
        asked = page.asked[kind]
        right = {
            name: (fourth_words(page.vectors, asked, weights) == asked[:, 3]).astype(float)
            for name, weights in WAYS.items()
        }
        changed = wrong_partners(asked)
        partner = (fourth_words(page.vectors, changed) == changed[:, 3]).mean()
        span = interval_of_pairs(table_of(asked, right["sum"]))
        gains = {
            name: interval_of_pairs(table_of(asked, right["sum"] - right[name]))
            for name in ("own", "added")
        }
        assert span[0] > 0.5
        assert min(low for low, _ in gains.values()) > 0
        assert span[0] > partner
        result |= {f"{name}{end}": hits.mean() for name, hits in right.items()}
        result |= {f"partner{end}": partner, f"span{end}": span, f"gain{end}": gains["own"]}
        by_sum, listed = (among_answers(page.vectors, asked, w) for w in (1, 0))
        assert listed >= max(by_sum, 0.95)
        result[f"listed{end}"] = listed
        result[kind] = len(asked)
    return result


def among_answers(vectors, asked, step) -> float:
    """Return the share of questions answered right if only answers may be chosen.

    Chosen is, of all words that answer one of the questions, the nearest by cosine.

    Parameters
    ----------
    vectors : array of shape (words, d_model)
    asked : int array of shape (questions, 4)
        Rows of ``vectors``: a, b, c and the answer, where a is to b as c is to the answer.
    step : int
        1 for c + (b − a), 0 for c itself. b is never chosen.

    Returns
    -------
    float
        From 0 to 1.
    """
    directions = unit(vectors)
    answers = np.unique(asked[:, 3])
    a, b, c = (directions[asked[:, i]] for i in range(3))
    cosine = (c + step * (b - a)) @ directions[answers].T  # (questions, answers)
    cosine[asked[:, 1][:, None] == answers] = -np.inf
    return float((answers[cosine.argmax(axis=1)] == asked[:, 3]).mean())


# Men and women, and animals: pairs that are none of Google's.
OTHER_PAIRS = """
actor actress, duke duchess, god goddess, host hostess, waiter waitress, lord lady,
sir madam, hero heroine, emperor empress, baron baroness, monk nun, wizard witch,
heir heiress, priest priestess, boyfriend girlfriend, fiance fiancee, men women, boys girls,
gentlemen ladies, fathers mothers, husbands wives, kings queens, male female,
himself herself, him her, bull cow, rooster hen, stallion mare, mr mrs, lad lass,
papa mama, abbot abbess, masculine feminine, master mistress, earl countess, drake duck,
buck doe
"""


@finding(
    "In BERT's table, sums like king − man + woman are right less often for pairs of male "
    "and female that Google's questions leave out, most of them rarer words.",
    rival="the third word's own neighbour, {own:.0%} of the pairs; only the {frequent} "
    "pairs that are at least as frequent as the middle one of Google's, "
    "{kin_frequent:.0%}: no fewer than of Google's",
    null=random_table,
    n="{pairs} pairs that Google does not ask for, each with each of its families",
    interval="{span:.0%} of the pairs, over these; of Google's {googles:.0%}",
)
def sums_fail(page: Page):
    """Check that the sums answer fewer questions about pairs that Google leaves out.

    Each of `OTHER_PAIRS`, such as "actor actress", is asked with each of Google's families.

    The interval, these pairs drawn again, ends below that of Google's families. A pair is
    as rare as its rarer word, and a word the rarer, roughly, the higher its token's number.
    More than half of the pairs are rarer than the middle one of Google's. Of the others
    more than half are found, by their interval, and no fewer than of the frequent half of
    Google's. Of the rarer ones fewer are found, by their interval, than of any pair of
    Google's rarer half: so rarity is not all of it. Of all pairs fewer than half are found,
    which is not said of others. The sum is right more often than the third word's own
    neighbour.

    Google's questions are also asked the other way round, from the woman to the man or the
    country to the capital: of families it finds more than half, of capitals fewer. Of
    currencies it finds less than a fifth. Of plurals the third word's own neighbour finds
    more than half, and the sum not one point more.

    Parameters
    ----------
    page : Page
        ``names`` are the whole words of the table, list of str, ``vectors`` their vectors,
        array (words, d_model), and ``whole_rows`` the tokens' numbers, list of int;
        ``asked``: kind ("families", "capitals" …) → Google's questions "a is to b as c is
        to d", as numbers of four rows of ``vectors``, int array (questions, 4).

    Returns
    -------
    dict
        Shares of right answers: ``kin``, of other pairs, with its 95 % interval ``span``;
        ``kin_frequent``, of those no rarer than Google's middle one; ``googles``, the
        interval of Google's; ``own``, by the third word's own neighbour; ``backwards``, of
        capitals the other way round. ``pairs``, how many of the others; ``frequent``, how
        many of these are no rarer than Google's middle one; ``currencies``, how many pairs
        of a country and its currency.
    """
    row = {word: i for i, word in enumerate(page.names)}
    word_pairs = [tuple(pair.split()) for pair in OTHER_PAIRS.replace("\n", " ").split(",")]
    families = sorted({tuple(each) for each in page.asked["families"][:, :2].tolist()})
    ours = [(row[c], row[d]) for c, d in word_pairs]
    assert len(ours) >= 30
    assert not set(ours) & set(families)
    asked = np.array([(*one, *other) for one in families for other in ours])
    asked = asked[[len(set(each)) == 4 for each in asked.tolist()]]
    by_sum, by_own = (
        fourth_words(page.vectors, asked, WAYS[way]) == asked[:, 3]
        for way in ("sum", "own")
    )
    kin = by_sum.mean()
    own = by_own.mean()
    by_pair = [by_sum[(asked[:, 2:] == each).all(axis=1)].mean() for each in ours]
    span = bootstrap_interval(np.array(by_pair))
    token_numbers = np.asarray(page.whole_rows)
    rarity, googles_rarity = (token_numbers[each].max(axis=1) for each in (ours, families))
    middle = np.median(googles_rarity)
    frequent = np.array(by_pair)[rarity <= middle]
    rare = np.array(by_pair)[rarity > middle]
    backwards = {}
    for kind in ("families", "capitals"):
        turned = page.asked[kind][:, [1, 0, 3, 2]]
        backwards[kind] = (fourth_words(page.vectors, turned) == turned[:, 3]).mean()
    aunt = np.array([[row[word] for word in ("man", "woman", "uncle", "aunt")]])
    assert fourth_words(page.vectors, aunt)[0] == aunt[0, 3]
    families = page.asked["families"]  # from here on the questions, not the pairs
    hits = (fourth_words(page.vectors, families) == families[:, 3]).astype(float)
    googles = interval_of_pairs(table_of(families, hits))
    by_googles = np.nanmean(table_of(families, hits), axis=0)  # (pairs,), as googles_rarity
    assert own < kin < 0.5
    assert span[1] < googles[0]
    assert len(frequent) < len(ours) / 2
    assert bootstrap_interval(frequent)[0] > 0.5
    assert frequent.mean() >= by_googles[googles_rarity <= middle].mean()
    assert bootstrap_interval(rare)[1] < by_googles[googles_rarity > middle].min()
    assert backwards["capitals"] < 0.5 < backwards["families"]

    def answered(kind, way):
        """Return the share of Google's questions of a kind that are answered, a float.

        ``kind`` : str, such as "plurals"; ``way`` : str, a key of `WAYS`.
        """
        asked = page.asked[kind]
        return (fourth_words(page.vectors, asked, WAYS[way]) == asked[:, 3]).mean()

    assert answered("currencies", "sum") < 0.2
    assert answered("plurals", "own") > 0.5
    assert answered("plurals", "sum") - answered("plurals", "own") < 0.01
    return {
        "kin": kin,
        "span": span,
        "kin_frequent": frequent.mean(),
        "frequent": len(frequent),
        "googles": googles,
        "own": own,
        "pairs": len(ours),
        "currencies": len(np.unique(page.asked["currencies"][:, 2:], axis=0)),
        "backwards": backwards["capitals"],
    }


@proof("With its numbers shuffled, the table answers hardly any question about families.")
def nothing_left(page: Page):
    """Check that the shuffled table answers hardly any question about families.

    At most two are answered, which is less than one in a hundred.

    Words keep fewer than 2 % of their ten nearest neighbours.

    The neighbours are those of the first 2,000 words among each other.

    Parameters
    ----------
    page : Page
        ``matrix`` is BERT's table, array (vocab_size, d_model); ``whole_rows`` are the rows
        of its whole words, whose vectors are ``vectors``, (words, d_model); ``asked``:
        kind, such as "families" → Google's questions "a is to b as c is to d", as numbers
        of four rows of ``vectors``, int array (questions, 4).

    Returns
    -------
    dict
        ``right``: how many questions are answered; ``of``: how many were asked.
    """
    mixed = random_table(page)
    asked = page.asked["families"]
    right = (fourth_words(mixed.vectors, asked) == asked[:, 3]).sum()
    near = shared_neighbours(page.vectors[:2000], mixed.vectors[:2000], 10).mean()
    assert right <= 2
    assert right < 0.01 * len(asked)
    assert near < 0.02
    return {"right": int(right), "of": len(asked)}


# --- context ------------------------------------------------------------------------------


def untrained_layers(page: Page):
    """All layers' weights shuffled; the table is BERT's own.

    Parameters
    ----------
    page : Page
        ``random_taught`` and ``random_tried`` are dicts, level (str) → vectors of that
        model: of the words that give the direction from nouns to verbs, and of those that
        are tested, arrays (2, pairs, 2, words, d_model).

    Returns
    -------
    Page
        ``taught`` and ``tried``, the same of the page's model, are replaced by these.
    """
    return page.replaced(taught=page.random_taught, tried=page.random_tried)


@proof(
    "In each pair the word has the same position, the same word before it, and the "
    "same words after it."
)
def pairs_match(page: Page):
    """Check also that as many words precede it, and as many tokens.

    So a vector that knows only these tells nothing: before layer 0 the verb's leans more to
    the verbs than the noun's in half of the pairs.

    Parameters
    ----------
    page : Page
        ``level_names`` are the levels, from the input to the last layer, such as "after
        layer 0". ``taught`` and ``tried``: level → vectors of the words that give the
        direction, and of those that are tested, arrays (2, pairs, 2, words, d_model): used
        as a verb and as a noun, the verb's sentence first and second. ``tokenizer`` is
        BERT's.

    Returns
    -------
    dict
        ``pairs``: how many; ``words``: how many words are tested.
    """
    for verb, noun in pairs():
        before, after = verb.split("_")
        other_before, other_after = noun.split("_")
        assert before.split()[-1] == other_before.split()[-1]
        assert len(before.split()) == len(other_before.split())
        assert len(set(map(len, page.tokenizer([before, other_before]).input_ids))) == 1
        assert after[:-1] == other_after[:-1]
    first = page.level_names[0]
    assert abs(told_apart(page.taught[first], page.tried[first]).mean() - 0.5) < 0.02
    return {"pairs": len(pairs()), "words": len(TRIED)}


@finding(
    "After BERT's last layer, a word used as a verb is usually more like other verbs than "
    "the same word used as a noun.",
    rival="the table's rows of all words before, added up, {before:.0%}: not shown to be "
    "worse; words that are never verbs, in the same positions, {placed:.0%}; before layer "
    "0, {first:.0%}",
    null=untrained_layers,
    n="{pairs} pairs of sentences in both orders, {words} words",
    interval="{span:.0%} over pairs and words; less words before {gap:.0%}",
)
def verb_or_noun(page: Page):
    """Check that a word used as a verb leans more to verbs than the same word as a noun.

    Each pair is tried in a direction that other pairs and other words give.

    The interval is above two thirds, the share above every one of 1,000 labelings of the
    pairs at random; untrained layers are near one half. The best of six ways to add up the
    words before is not shown to be worse: the interval of the difference includes zero.
    Words that are never verbs, in the same gaps, are more than half as far above one half:
    so says the interval over pairs and words.

    Parameters
    ----------
    page : Page
        ``level_names`` are the levels, from the input to the last layer, such as "after
        layer 0". ``taught`` and ``tried``: level → vectors of the words that give the
        direction, and of those that are tested, arrays (2, pairs, 2, words, d_model): used
        as a verb and as a noun, the verb's sentence first and second; ``random_taught`` and
        ``random_tried`` are those of untrained layers. ``bert`` and ``tokenizer`` are the
        model's.

    Returns
    -------
    dict
        Shares of pairs in which the verb's vector leans more to the verbs: ``right``, after
        the last layer, with its 95 % interval ``span``; ``before``, by the words before,
        with the interval ``gap`` of the difference; ``placed``, of words that are never
        verbs, with its interval ``placed_span``; ``random``, with untrained layers;
        ``first``, before layer 0. ``pairs``, ``words``: how many.
    """
    last = page.level_names[-1]
    taught = page.taught[last]
    tried = page.tried[last]
    right = told_apart(taught, tried)
    rivals = [
        told_apart(
            *(words_before(page.tokenizer, page.bert, w, d) for w in (TAUGHT, TRIED))
        )
        for d in DECAYS
    ]
    before = max(rivals, key=np.mean)
    never = encode_pairs(page.tokenizer, page.bert, NEVER_VERBS)[last]
    placed = told_apart(taught, never)
    random = told_apart(page.random_taught[last], page.random_tried[last])
    first = page.level_names[0]
    labels = np.random.default_rng(0).choice([False, True], size=(1000, len(right)))
    chance = max(told_apart(flipped(taught, x), flipped(tried, x)).mean() for x in labels)
    gap = crossed_interval(right - before)
    assert crossed_interval(right)[0] > 2 / 3
    assert right.mean() > chance
    assert abs(random.mean() - 0.5) < 0.1
    assert gap[0] < 0 < gap[1]
    assert crossed_interval(placed - 0.5 - (right - 0.5) / 2)[0] > 0
    return {
        "right": right.mean(),
        "span": crossed_interval(right),
        "before": before.mean(),
        "gap": gap,
        "placed": placed.mean(),
        "placed_span": crossed_interval(placed),
        "random": random.mean(),
        "first": told_apart(page.taught[first], page.tried[first]).mean(),
        "pairs": len(right),
        "words": right.shape[1],
    }


def flipped(vectors, turned) -> np.ndarray:
    """Return the vectors with verb and noun exchanged in some of the pairs.

    Parameters
    ----------
    vectors : array of shape (2, pairs, 2, words, d_model)
        Used as a verb, as a noun; the verb's sentence first, second.
    turned : bool array of shape (pairs,)
        Which pairs.

    Returns
    -------
    array of the same shape as ``vectors``
    """
    return np.where(turned[:, None, None, None], vectors[::-1], vectors)


@proof("What enters layer 0 is not the table's row alone: two more rows are added to it.")
def static_is_not_level_0(page: Page):
    """Check that what enters layer 0 is the normalised sum of three rows.

    They are those of word, position and token type; the sum is right to 1e-5 of the largest
    number.

    Parameters
    ----------
    page : Page
        ``line`` is a text, a str; ``bert`` and ``tokenizer`` are the model's.
    """
    inputs = page.tokenizer(page.line, return_tensors="pt").to(page.bert.device)
    parts = page.bert.embeddings
    with torch.no_grad():
        before_0 = page.bert(**inputs, output_hidden_states=True).hidden_states[0]
        word = parts.word_embeddings(inputs["input_ids"])  # (1, tokens, d_model)
        position = parts.position_embeddings.weight[: word.shape[1]]
        kind = parts.token_type_embeddings(inputs["token_type_ids"])
        added = parts.LayerNorm(word + position + kind)
    largest = before_0.abs().max().item()
    assert not torch.allclose(before_0, word, atol=0.1)
    torch.testing.assert_close(added, before_0, rtol=0, atol=1e-5 * largest)


# --- skip-gram ----------------------------------------------------------------------------


@proof("The loss equals PyTorch's, and it is flat only where the score is PMI minus ln k.")
def flat_at_pmi(page: Page):
    """Check the slope of the loss by each score, on a table of nine counts and for five k.

    Below these scores every slope is negative, above them positive, tried from 0.01 to 10.
    The loss of a pair that is met as often as by chance is lowest at -ln k, for k from 1 to
    5.

    PMI is the logarithm of how often a pair occurs over how often it would by chance; k is
    the number of negatives for each pair.

    Parameters
    ----------
    page : Page
        ``SkipGram(vocab_size, d_model)`` is the lesson's class, which scores words and
        contexts by their numbers; ``skip_gram_loss(model, words, contexts, negatives)`` is
        its loss; ``counted``: word → how often the texts have it.

    Returns
    -------
    dict
        ``answer``, the letter of the right choice in a task, "a" if the score for five
        negatives is below −1, else "b"; ``words``, how many the texts have.
    """
    model = page.SkipGram(9, 4)
    batch = torch.tensor([1, 2]), torch.tensor([3, 4]), torch.tensor([[5, 6], [7, 8]])
    scores = torch.cat([model(batch[0], batch[1][:, None]), model(batch[0], batch[2])], 1)
    truth = torch.tensor([[1.0, 0, 0]] * 2)
    by_torch = F.binary_cross_entropy_with_logits(scores, truth, reduction="sum")
    torch.testing.assert_close(page.skip_gram_loss(model, *batch), by_torch / 2)
    times = torch.tensor([[3.0, 1, 2], [1, 5, 1], [2, 1, 4]], dtype=torch.float64)
    by_chance = times.sum(1, keepdim=True) * times.sum(0) / times.sum()
    scores = (torch.log(times / by_chance) - math.log(5)).requires_grad_()
    drawn = 5 * by_chance
    loss = -(times * F.logsigmoid(scores) + drawn * F.logsigmoid(-scores)).sum()
    (slope,) = torch.autograd.grad(loss, scores, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), scores)
    assert slope.abs().max() < 1e-9
    assert (bend > 0).all()
    for step in (0.01, 0.1, 1, 10):
        for side in (-1, 1):
            moved = (scores + side * step).detach()
            drawn_share = torch.sigmoid(moved)  # by hand, as PyTorch's slope is at zero
            by_hand = drawn * drawn_share - times * (1 - drawn_share)
            assert (side * by_hand > 0).all()
    lowest = []
    for k in range(1, 6):
        s = torch.linspace(-4, 4, 8001, dtype=torch.float64)
        lowest.append(s[(-F.logsigmoid(s) - k * F.logsigmoid(-s)).argmin()].item())
    close(lowest, [-math.log(k) for k in range(1, 6)], atol=2e-3)
    return {"answer": "a" if lowest[4] < -1 else "b", "words": sum(page.counted.values())}


@proof("The stored trainings begin like this page's, and their scores fall by about ln k.")
def cones_again(page: Page):
    """Compare the first 180 steps of two of them with the cosines of trainings here.

    The mean score falls by ln k, give or take 0.25, from that with a single negative. At
    the end words and contexts point opposite ways.

    With numbers a hundred times as large after the first step, no cone forms. With the
    constant -ln 5 words crowd less than 0.1 more than with a single negative, and with a
    single one and +ln 5 their mean cosine rises above 0.9, in all stored trainings.

    Parameters
    ----------
    page : Page
        ``trainings`` lists the stored runs, dicts with ``seed``; ``k`` negatives; a
        ``constant`` that is added to the score; ``without``, how many frequent words are
        left out; ``cosines``, the mean cosine of all pairs of words every 30 steps, and
        ``most`` and ``last``, the highest and the last of these; of seed 0 also
        ``picture``, a dict with the mean ``score`` and ``opposed``, the cosine of the mean
        word and the mean context.
        ``train_skip_gram(pairs, shares, k, constant, steps=…)`` yields a model a step;
        ``met`` are pairs of words near each other by their numbers, (pairs, 2), and
        ``shares`` how probably each word is drawn as a negative.

    Returns
    -------
    dict
        ``most`` and ``with_constant``, medians over trainings with five negatives of the
        largest mean cosine of words, without and with the constant -ln 5; ``later``, the
        largest mean cosine at the end, without it; ``large``, that of a training here whose
        numbers were made a hundred times as large after the first step.
    """
    ln5 = math.log(5)
    runs = [row for row in page.trainings if row["seed"] == 0 and not row["without"]]
    plain = [row for row in runs if not row["constant"]]
    base = plain[0]["picture"]["score"]
    beyond_ln_k = [row["picture"]["score"] - base + math.log(row["k"]) for row in plain]
    assert np.abs(beyond_ln_k).max() < 0.25
    assert plain[-1]["picture"]["opposed"] < -0.99
    for constant in (0.0, -ln5):
        row = next(r for r in runs if r["k"] == 5 and abs(r["constant"] - constant) < 0.01)
        models = page.train_skip_gram(page.met, page.shares, 5, constant, steps=180)
        cosines = [
            mean_cosine(model.words.weight.detach().double().numpy())
            for step, model in enumerate(models, 1)
            if step % 30 == 0
        ]
        close(cosines, row["cosines"][:6], atol=0.05)
    for step, model in enumerate(page.train_skip_gram(page.met, page.shares, 5), 1):
        if step == 1:
            for weight in model.parameters():
                weight.data *= 100
    large = mean_cosine(model.words.weight.detach().double().numpy())
    assert large < 0.1
    five = [row for row in page.trainings if row["k"] == 5 and not row["constant"]]
    five = [row for row in five if not row["without"]]
    shifted = [row for row in page.trainings if row["constant"] < 0]
    later = max(row["last"] for row in five)
    assert later < 0.5
    one = [row for row in page.trainings if row["k"] == 1 and not row["without"]]
    single = [row["most"] for row in one if not row["constant"]]
    assert max(row["most"] for row in shifted) < min(single) + 0.1
    assert min(row["most"] for row in one if row["constant"] > 0) > 0.9
    most, less = (float(np.median([r["most"] for r in rows])) for rows in (five, shifted))
    return {"most": most, "with_constant": less, "later": later, "large": large}


# --- counts -------------------------------------------------------------------------------


@proof("The sparse counts equal those of a loop, and `ppmi` gives what the formula says.")
def counts_are_a_loop(page: Page):
    """Compare on twenty poems with two loops; measure what fifty directions keep.

    Parameters
    ----------
    page : Page
        ``cooccurrence(texts, vocabulary, window)`` and ``ppmi(counts, smoothing)`` are the
        lesson's functions, which return sparse matrices (words, words); without
        ``smoothing`` the counts of contexts stay as they are. ``poems`` is a DataFrame with
        the column ``text``; ``split`` lists the words of each text.

    Returns
    -------
    dict
        ``kept``: the share of the table's sum of squares that fifty directions keep, over
        all words.
    """
    toy = [words(text) for text in page.poems.text[:20]]
    toy_words = sorted({word for text in toy for word in text})
    met = Counter()
    for text in toy:
        for i, word in enumerate(text):
            for other in text[max(0, i - 2) : i] + text[i + 1 : i + 3]:
                met[word, other] += 1
    looped = np.array([[met[w, c] for c in toy_words] for w in toy_words], dtype=float)
    counts = page.cooccurrence(toy, toy_words, window=2)
    np.testing.assert_array_equal(counts.toarray(), looped)
    by_chance = np.outer(looped.sum(axis=1), looped.sum(axis=0)) / looped.sum()
    with np.errstate(divide="ignore"):
        formula = np.maximum(np.log(looped / by_chance), 0)
    close(page.ppmi(counts).toarray(), formula, atol=1e-9)
    # A column of the vectors has the root of its singular value as its length. The table is
    # made as `word_vectors` makes it, with a window of 2 and a smoothing of 0.75.
    names, vectors = word_vectors(page.split, 50)
    table = page.ppmi(cooccurrence(page.split, names, window=2), 0.75)
    return {"kept": ((vectors**2).sum(axis=0) ** 2).sum() / (table.data**2).sum()}


def shuffled_text(page: Page):
    """The words of all poems shuffled among them.

    Parameters
    ----------
    page : Page
        ``split`` lists the words of each text.

    Returns
    -------
    Page
        ``split`` has texts of the same lengths, made of all words in a random order.
    """
    return page.replaced(split=shuffled_texts(page.split, 99, across=True))


@cache
def _versions(texts: tuple) -> dict:
    """Return texts as they are, each poem shuffled, and all words shuffled.

    Parameters
    ----------
    texts : tuple of tuple of str
        The words of each.

    Returns
    -------
    dict of str to list of list of list of str
        "poems" (as they are, once), "within" (each poem shuffled, for each of five seeds)
        and "across" (all words shuffled, the same) → versions, each a list of texts, each a
        list of words.
    """
    texts = [list(text) for text in texts]
    return {
        "poems": [texts],
        "within": [shuffled_texts(texts, seed) for seed in SEEDS],
        "across": [shuffled_texts(texts, seed, across=True) for seed in SEEDS],
    }


@cache
def _counted(texts: tuple, width: int, how: tuple) -> tuple:
    """Return words and their vectors, counted in texts that can be hashed.

    Parameters
    ----------
    texts : tuple of tuple of str
        The words of each.
    width : int
        Directions of the vectors.
    how : tuple of (str, value)
        Other options of `lmcourse.embeddings.word_vectors`, such as ("window", 5).

    Returns
    -------
    names : list of str
        The words, the most frequent first.
    vectors : array of shape (words, width)
    """
    return word_vectors(list(map(list, texts)), width, **dict(how))


def shares_by_word(
    page: Page, versions, width=50, count=10, **how
) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each word, on what share of its nearest words BERT and counting agree.

    These are nearest by the cosine of BERT's vectors, and by that of vectors counted in
    texts.

    Parameters
    ----------
    page : Page
        Its ``common`` are the words, list of str, the most frequent first; ``theirs`` are
        BERT's vectors of them, array (words, d_model).
    versions : list of list of list of str
        Texts as words, such as the poems shuffled with each of five seeds; the shares are
        means over these versions.
    width : int
        How many directions the counted vectors have.
    count : int
        How many nearest words are compared.
    **how
        Other options of `lmcourse.embeddings.word_vectors`: ``window``, how many words
        apart, and ``smoothing``, the power of the contexts' counts.

    Returns
    -------
    top : float array of shape (TOP,)
        Of the sixty (`TOP`) most frequent words, whose nearest are looked for among all
        words; 0 to 1.
    rest : float array of shape (words - TOP,)
        Of the other words, whose nearest are looked for among each other; 0 to 1.
    """
    top = []
    rest = []
    for texts in versions:
        hashable = tuple(map(tuple, texts))
        names, vectors = _counted(hashable, width, tuple(how.items()))
        row = {word: i for i, word in enumerate(names)}
        counted = vectors[[row[word] for word in page.common]]
        top.append(shared_neighbours(counted, page.theirs, count)[:TOP])
        rest.append(shared_neighbours(counted[TOP:], page.theirs[TOP:], count))
    return np.mean(top, axis=0), np.mean(rest, axis=0)


@finding(
    "Word vectors made by counting in two poets find BERT's neighbours more often than "
    "vectors made from the same words shuffled.",
    rival="each poem shuffled by itself, {within:.1%}; spelling alone, {spelling:.1%}: as "
    "many",
    null=shuffled_text,
    n="{words} words, ten neighbours each, five shuffles",
    interval="less shuffled {gain:.1%}; less spelling {less_spelling:.1%}",
)
def poems_teach(page: Page):
    """Compare neighbours of words that occur ten times, without the sixty most frequent.

    All of the words are tokens of BERT's.

    The gain's interval over words is above zero at 50 directions and a window of 2, and
    also at 20 and 200 directions and a window of 5; over each poem shuffled by itself, too.
    The poems find more than twice as many neighbours as all words shuffled. Spelling (pairs
    and triples of letters) is not beaten: the low end of that interval is below one point.
    Of the ten nearest of the sixty most frequent words shuffled text finds over four times
    what chance does, and without the smoothing of counts less than half of that.

    Parameters
    ----------
    page : Page
        ``split`` lists the words of each text; ``common`` are the words that are compared,
        list of str, the most frequent first, and ``theirs`` BERT's vectors of them, array
        (words, d_model).

    Returns
    -------
    dict
        Shares of ten neighbours that are BERT's: ``poems``, ``within`` and ``across``
        (poems shuffled by themselves, and together), ``spelling``, ``chance``; the same of
        the sixty most frequent words as ``top_…``, ``top_plain`` without smoothing,
        ``top_chance`` by chance.
        Intervals: ``gain``, poems less across; ``less_spelling``. ``words``, how many.
    """
    corpora = _versions(tuple(map(tuple, page.split)))
    top = {}
    rest = {}
    for name, versions in corpora.items():
        top[name], rest[name] = shares_by_word(page, versions)
    spelled = spelling_vectors(page.common[TOP:])
    spelling = shared_neighbours(spelled, page.theirs[TOP:], 10)
    gain = bootstrap_interval(rest["poems"] - rest["across"])
    less_spelling = bootstrap_interval(rest["poems"] - spelling)
    smoothed, plain = (
        shares_by_word(page, corpora["across"][:2], smoothing=power)[0]
        for power in (0.75, 1.0)
    )
    chance_top = 10 / (len(page.common) - 1)
    assert gain[0] > 0
    assert rest["poems"].mean() > 2 * rest["across"].mean()
    assert bootstrap_interval(rest["poems"] - rest["within"])[0] > 0
    for how in ({"width": 20}, {"width": 200}, {"window": 5}):
        ours, mixed = (
            shares_by_word(page, corpora[name][:1], **how)[1]
            for name in ("poems", "across")
        )
        assert bootstrap_interval(ours - mixed)[0] > 0, how
    assert less_spelling[0] < 0.01
    assert bootstrap_interval(top["across"])[0] > 4 * chance_top
    assert plain.mean() < smoothed.mean() / 2
    means = {name: values.mean() for name, values in rest.items()}
    means |= {f"top_{name}": values.mean() for name, values in top.items()}
    return means | {
        "spelling": spelling.mean(),
        "gain": gain,
        "less_spelling": less_spelling,
        "top_plain": plain.mean(),
        "top_chance": chance_top,
        "chance": 10 / (len(page.common) - TOP - 1),
        "words": len(page.common) - TOP,
    }


@finding(
    "Shuffle the words within each poem, and counts of words at most two apart find fewer "
    "of BERT's neighbours; shuffle them across all poems, and they find fewer still.",
    rival="each poet's words shuffled, {by_poet_2:.1%} at a window of 2 and "
    "{by_poet_5:.1%} at 5; all words shuffled, {across_2:.1%} and {across_5:.1%}",
    null=shuffled_text,
    n="{words} words, ten neighbours each, five shuffles",
    interval="taken away {lost_2:.1%} at a window of 2, {lost_5:.1%} at 5; more than all "
    "words shuffled {left_2:.1%} and {left_5:.1%}",
)
def shuffled_poems(page: Page):
    """Compare shares of BERT's neighbours, each by its interval over words.

    Where words are shuffled, shares are means over five shuffles.

    At two words to each side the poems find more than their shuffled words, of the 5, 10
    and 20 nearest words; at five words to each side this is not asserted. At both, of the
    ten nearest, shuffled poems find more than all words shuffled, and more than each poet's
    words shuffled: so it is not only that there are two poets.

    Five shuffles of each poem counted together are five times the text. At two words to
    each side they find more than one shuffle does, and less than the poems.

    Parameters
    ----------
    page : Page
        ``split`` lists the words of each text, those of the DataFrame ``poems`` first;
        ``common`` are the words that are compared, list of str, the most frequent first,
        and ``theirs`` BERT's vectors of them, array (words, d_model).

    Returns
    -------
    dict
        Shares of ten neighbours that are BERT's: ``poems_…``, ``within_…``, ``by_poet_…``
        and ``across_…``, of the poems, of each poem shuffled by itself, of each poet's
        words shuffled, and of all words shuffled, with the window, 2 or 5, in the place of
        the dots; ``together``, of five shuffles of each poem counted together at a window
        of 2. Intervals: ``lost_…``, poems less within;
        ``left_…``, within less across. ``words``, how many.
    """
    corpora = dict(_versions(tuple(map(tuple, page.split))))
    poets = page.split[: len(page.poems)], page.split[len(page.poems) :]
    corpora["by_poet"] = [
        [text for poet in poets for text in shuffled_texts(poet, seed, across=True)]
        for seed in SEEDS
    ]
    five = [[text for texts in corpora["within"] for text in texts]]
    together, alone, all_poems = (
        shares_by_word(page, texts)[1]
        for texts in (five, corpora["within"], corpora["poems"])
    )
    assert bootstrap_interval(together - alone)[0] > 0
    assert bootstrap_interval(all_poems - together)[0] > 0
    for count in (5, 10, 20):
        poems, within = (
            shares_by_word(page, corpora[name], count=count)[1]
            for name in ("poems", "within")
        )
        assert bootstrap_interval(poems - within)[0] > 0, count
    result = {"words": len(page.common) - TOP, "together": together.mean()}
    for window in (2, 5):
        how = {} if window == 2 else {"window": window}
        shares = {name: shares_by_word(page, corpora[name], **how)[1] for name in corpora}
        remains = bootstrap_interval(shares["within"] - shares["across"])
        assert remains[0] > 0
        assert bootstrap_interval(shares["within"] - shares["by_poet"])[0] > 0
        result |= {f"{name}_{window}": values.mean() for name, values in shares.items()}
        result[f"lost_{window}"] = bootstrap_interval(shares["poems"] - shares["within"])
        result[f"left_{window}"] = remains
    return result


@proof("The right answer is the list that was made from shuffled words.")
def random_list(page: Page):
    """Check also that the three lists are what their texts give.

    Parameters
    ----------
    page : Page
        ``lists``: "list 1", "list 2", "list 3" → a list of words; ``order``, three letters,
        says from which text each was made, "R" for the shuffled one, "S" and "D" for
        Shakespeare and Dickinson, who have the first and the last; ``listed``: such a
        letter → the list that its text gives.

    Returns
    -------
    dict
        ``answer``: the letter of the list made from shuffled words.
    """
    letter = "abc"[page.order.index("R")]
    assert page.order == "SRD"  # as the solution says
    for number, name in enumerate(page.order, 1):
        assert page.lists[f"list {number}"] == page.listed[name]
    return {"answer": letter}
