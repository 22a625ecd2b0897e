"""What the chapter *dickinson-layers* claims, checked where the page places it.

The ``page`` of a proof or a null is a `studies.findings.Page`: the names that the page has
defined so far, as attributes; ``page.levels`` is the page's variable ``levels``. A null
returns the page with some of these names replaced. Hits are
as in `lmcourse.probe.Predictions`: a number for each poem, 1.0 where the predicted section
is the poem's own, else 0.0.
"""

from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import (
    ENGLISH_STOP_WORDS,
    CountVectorizer,
    TfidfTransformer,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.naive_bayes import ComplementNB, MultinomialNB
from torch.nn import functional as F

from lmcourse import probe
from lmcourse.pooling import kept, nearest, pool, pool_layers, untrained
from lmcourse.probe import ask, interval, predict, score
from studies import nulls
from studies.findings import Page, finding, proof, right_letter

COUNT = 10  # nearest neighbours
SEEDS = range(20, 25)  # of untrained layers; the page and the study have others
close = torch.testing.assert_close


def mean_interval(values) -> tuple[float, float]:
    """Return the 95 % interval of a mean over poems; ``values`` has a number for each."""
    low, high = interval(np.asarray(values, dtype=float), np.zeros(len(values)))
    return float(low), float(high)


def paired(new, old, labels) -> tuple[float, float]:
    """Return the 95 % interval of a difference of balanced accuracies, new less old.

    Parameters
    ----------
    new, old : float array of shape (poems,)
        1.0 where a poem's section is predicted right, else 0.0.
    labels : array of shape (poems,)
        The sections of the poems, str; each has the same weight.
    """
    low, high = interval(new - old, labels)
    return float(low), float(high)


# --- how a poem becomes vectors ---------------------------------------------------------


@proof("`states[1]` is what layer 0 makes of `states[0]`, and static vectors are neither.")
def levels_are_named(page: Page):
    """Check that layer 0 makes ``states[1]`` of ``states[0]``; static vectors are neither.

    Layer 0 is run by itself on ``page.states[0]``, what enters it.

    Static vectors are the rows of the token table.

    Parameters
    ----------
    page : Page
        ``model`` is BERT and ``depth`` its number of layers; ``encoded`` is a poem as its
        input, with ``input_ids`` (1, tokens). ``states`` are the poem's hidden states,
        depth + 1 Tensors (1, tokens, d_model): before layer 0, after layer 0, 1, and so on;
        ``level_names``, list of str, has one name more, since static vectors have one, too.

    Returns
    -------
    dict
        ``tokens`` of the poem; ``d_model``, the width of their vectors; ``last``, the
        number of the last layer, counted from 0.
    """
    model = page.model
    ids = page.encoded["input_ids"]
    with torch.no_grad():
        static = model.embeddings.word_embeddings(ids)  # (1, tokens, d_model)
        after_0 = model.encoder.layer[0](page.states[0])  # (1, tokens, d_model)
    largest = page.states[1].abs().max().item()
    close(after_0, page.states[1], rtol=0, atol=1e-5 * largest)
    assert not torch.allclose(static, page.states[0], atol=0.1)
    assert len(page.states) == page.depth + 1 == len(page.level_names) - 1
    tokens, d_model = static.shape[1:]
    return {"tokens": tokens, "d_model": d_model, "last": page.depth - 1}


@proof(
    "Before layer 0, [CLS] has the same vector in two poems; after each layer it differs."
)
def cls_is_blank_at_first(page: Page):
    """Compare two poems of different length, before layer 0 and after each layer.

    Parameters
    ----------
    page : Page
        ``cls_one`` and ``cls_other`` are lists of the vectors of [CLS] in two poems,
        Tensors (d_model,): before layer 0, after layer 0, 1, and so on.
    """
    for level, (one, other) in enumerate(zip(page.cls_one, page.cls_other, strict=True)):
        largest = one.abs().max().item()
        same = torch.allclose(one, other, rtol=0, atol=1e-5 * largest)
        assert same == (level == 0), level


@proof("A poem's vectors are the same read alone, in a batch, or padded to 512 tokens.")
def padding_changes_nothing(page: Page):
    """Compare one poem alone and in a batch, some padded, to 1e-5 of the largest number.

    How much more work padding makes is counted in FLOPs (operations).

    Parameters
    ----------
    page : Page
        ``states`` are the hidden states of the poem ``prairie`` (a str), read alone,
        Tensors (1, tokens, d_model). ``pooled.layers`` are the vectors (means over tokens)
        of all ``texts`` (a list of str), (layers + 1, texts, d_model), ``few.layers`` those
        of some poems; ``padded_last`` are those of the same poems padded to 512 tokens,
        after the last layer, (poems, d_model). ``flops`` and ``flops_padded`` are the
        numbers of operations without padding to 512 and with it.

    Returns
    -------
    dict
        ``times``, how many times as many FLOPs padding needs; ``answer``, the letter of the
        right choice in a task: "a" below 1.5 times, "b" below 30, "c" above.
    """
    alone = torch.stack([level.mean(dim=1)[0] for level in page.states]).cpu()
    in_batch = page.pooled.layers[:, page.texts.index(page.prairie)]
    largest = alone.abs().max().item()
    close(in_batch, alone, rtol=0, atol=1e-5 * largest)
    close(page.padded_last, page.few.layers[-1], rtol=0, atol=1e-5 * largest)
    times = page.flops_padded / page.flops
    answer = "abc"[int(np.digitize(times, [1.5, 30]))]
    return {"times": times, "answer": answer}


@proof("The quick formula gives what refitting without the poem gives.")
def left_out_is_refitted(page: Page):
    """Check that the quick formula gives what refitting without the poem gives.

    ``page.left_out`` is compared with scikit-learn's ridge, for three poems.

    `ask`, which predicts one poem from all others, gives what `predict` gives for it.

    Parameters
    ----------
    page : Page
        ``left_out(kernel, truth, penalty)`` is the lesson's formula: from products of the
        poems' vectors, (poems, poems), and one-hot sections, (poems, sections), to a ridge
        regression's prediction of these, each poem left out in its turn. ``levels`` are the
        poems' vectors, Tensor (levels, poems, d_model); ``guesses`` the `Predictions` from
        each level, with ``support``, (poems, sections), a prediction over the section's
        share of the poems, and ``penalty``, (poems,); ``sections`` the poems' sections,
        array of str; ``texts`` the poems, list of str.
    """
    kernel = probe.gram(page.levels[-1])
    truth = F.one_hot(torch.tensor(np.unique(page.sections, return_inverse=True)[1]))
    truth = truth.double()  # (poems, sections)
    quick = page.left_out(kernel, truth, 1.0)
    for poem in (0, 100, len(page.texts) - 1):
        rest = np.delete(np.arange(len(page.texts)), poem)
        slow = KernelRidge(alpha=1.0, kernel="precomputed")
        slow.fit(kernel[rest][:, rest].numpy(), truth[rest].numpy())
        guess = torch.tensor(slow.predict(kernel[poem, rest][None].numpy())[0])
        close(guess, quick[poem], atol=1e-8, rtol=1e-8)
        guesses = page.guesses[-1]
        penalty = guesses.penalty[poem].item()
        last = page.levels[-1]
        support = ask(last, page.sections, poem, last[[poem]], penalty)[0]
        close(support, guesses.support[poem], atol=1e-6, rtol=1e-6)


# --- does context help? -----------------------------------------------------------------


def shuffled_sections(page: Page):
    """The editors' sections shuffled among the poems.

    Predicted again from the levels of the model and of one with random weights.

    Parameters
    ----------
    page : Page
        ``sections`` has the section of each poem, array of str; ``levels`` and
        ``random_levels`` are the poems' vectors, (levels, poems, d_model), of the model and
        of one with random weights.

    Returns
    -------
    Page
        ``sections`` are shuffled; ``guesses`` and ``random_guesses`` predict these from
        both models' vectors: for each level a `Predictions`, whose ``hits``, (poems,), are
        1.0 where the section is right, else 0.0.
    """
    sections = np.array(nulls.shuffled(page.sections))
    guesses = [predict(level, sections) for level in page.levels]
    random_guesses = [predict(level, sections) for level in page.random_levels]
    return page.replaced(sections=sections, guesses=guesses, random_guesses=random_guesses)


def weighted_static(page: Page) -> dict[str, torch.Tensor]:
    """Return, for each poem, six averages of its tokens' static vectors.

    All are without the special tokens: plain; without stop words; weighted by idf, and by
    its square; smooth inverse frequency with its first direction taken off (Arora et al.
    2017); each token once.

    Parameters
    ----------
    page : Page
        With ``model`` and ``tokenizer``, BERT's, and the poems ``texts``, a list of str.

    Returns
    -------
    dict of str to Tensor of shape (poems, d_model)
        By the name of the average: "no special tokens", "no stop words", "idf", "idf
        squared", "SIF" and "each token once".
    """
    table = page.model.embeddings.word_embeddings.weight.detach().cpu()
    ids = [window[1:-1] for window in page.tokenizer(page.texts)["input_ids"]]
    counts = torch.zeros(len(ids), len(table))  # (poems, vocabulary)
    for row, window in zip(counts, ids, strict=True):
        row += torch.bincount(torch.tensor(window), minlength=len(table))
    in_poems = (counts > 0).sum(dim=0)
    idf = torch.log((1 + len(ids)) / (1 + in_poems)) + 1
    frequency = counts.sum(dim=0) / counts.sum()
    stop = page.tokenizer.convert_tokens_to_ids(sorted(ENGLISH_STOP_WORDS))
    no_stop = torch.ones(len(table))
    no_stop[stop] = 0
    sif = 1e-3 / (1e-3 + frequency)

    def averaged(weights, each=counts):
        """Return poems' weighted means of static vectors, (poems, d_model).

        ``weights`` : of each token of the vocabulary, (vocabulary,); ``each`` : how often a
        poem has it, (poems, vocabulary).
        """
        weighted = each * weights
        return weighted @ table / weighted.sum(dim=1, keepdim=True).clamp(min=1e-9)

    smooth = averaged(sif)
    first = torch.tensor(TruncatedSVD(1, random_state=0).fit(smooth.numpy()).components_)
    return {
        "no special tokens": averaged(torch.ones(len(table))),
        "no stop words": averaged(no_stop),
        "idf": averaged(idf),
        "idf squared": averaged(idf**2),
        "SIF": smooth - smooth @ first.T.to(smooth) @ first.to(smooth),
        "each token once": averaged(torch.ones(len(table)), (counts > 0).float()),
    }


def naive_bayes(texts, labels) -> float:
    """Return the best balanced accuracy of six naive Bayes models, 0 to 1.

    They count words, and each poem is predicted from all others: multinomial and complement
    naive Bayes, with three amounts of smoothing. ``texts`` : list of str; ``labels`` :
    array of str (poems,), the poems' sections.
    """
    counts = CountVectorizer().fit_transform(texts).tocsr()
    scores = []
    for kind in (MultinomialNB, ComplementNB):
        for alpha in (0.1, 0.3, 1.0):
            hits = np.zeros(len(texts))
            for poem in range(len(texts)):
                rest = np.delete(np.arange(len(texts)), poem)
                model = kind(alpha=alpha).fit(counts[rest], labels[rest])
                hits[poem] = model.predict(counts[poem])[0] == labels[poem]
            scores.append(score(hits, labels))
    return max(scores)


def letters_and_words(texts, labels) -> np.ndarray:
    """Return the hits of the best of eight bags of words or of letter sequences.

    Single words, or three to five letters inside words; all, or those that occur in two
    poems at least; counts, or counts weighted by rarity. Predicted by a ridge regression.

    Parameters
    ----------
    texts : list of str
    labels : array of shape (poems,)
        The poems' sections.

    Returns
    -------
    float array of shape (poems,)
        1.0 where the poem's own section is predicted from all other poems, else 0.0; of the
        bag with the best balanced accuracy.
    """
    candidates = []
    for unit, sizes in (("word", (1, 1)), ("char_wb", (3, 5))):
        vectorizer = CountVectorizer(analyzer=unit, ngram_range=sizes)
        counts = vectorizer.fit_transform(texts)
        for least in (1, 2):
            plain = counts[:, counts.getnnz(axis=0) >= least]
            for bag in (plain, TfidfTransformer().fit_transform(plain)):
                candidates.append(
                    predict(torch.tensor(bag.toarray()).double(), labels).hits
                )
    return max(candidates, key=lambda hits: score(hits, labels))


def by_neighbours(vectors, labels, count=5) -> np.ndarray:
    """Return the hits of a vote of the nearest poems, divided by the sections' shares.

    Nearest by cosine, after the mean vector is subtracted.

    Parameters
    ----------
    vectors : Tensor of shape (poems, d_model)
    labels : array of shape (poems,)
        The poems' sections.
    count : int
        How many of the nearest vote.

    Returns
    -------
    float array of shape (poems,)
        1.0 where the poem's own section has most of the vote, else 0.0.
    """
    names, code = np.unique(labels, return_inverse=True)
    code = torch.tensor(code)
    votes = F.one_hot(code[nearest(vectors, count)], len(names)).sum(dim=1)
    shares = torch.bincount(code) / len(code)
    return ((votes / shares).argmax(dim=1) == code).double().numpy()


def across_volumes(vectors, labels, volumes) -> float:
    """Return the balanced accuracy where a poem's whole volume is left out.

    The sections are predicted by a ridge regression on the other volumes; its penalty is
    the one that is chosen for most of their poems.

    Parameters
    ----------
    vectors : Tensor of shape (poems, d_model)
    labels, volumes : array of shape (poems,)
        The section of each poem, and the volume in which it was printed.

    Returns
    -------
    float
        From 0 to 1.
    """
    kernel = probe.gram(vectors)
    names, code = np.unique(labels, return_inverse=True)
    truth = F.one_hot(torch.tensor(code), len(names)).double()
    hits = np.zeros(len(labels))
    for volume in np.unique(volumes):
        out = np.flatnonzero(volumes == volume)
        rest = np.flatnonzero(volumes != volume)
        penalty = predict(vectors[rest], labels[rest]).penalty.mode().values.item()
        inner = kernel[rest][:, rest] + penalty * torch.eye(len(rest)).double()
        support = kernel[out][:, rest] @ torch.linalg.solve(inner, truth[rest])
        support = support / truth[rest].mean(dim=0)
        hits[out] = (support.argmax(dim=1).numpy() == code[out]).astype(float)
    return score(hits, labels)


@finding(
    "The section that the editors gave to a Dickinson poem is guessed better from a small "
    "BERT's last layer than from the static vectors of the same words.",
    rival="six other averages of the words' vectors, the best with a balanced accuracy of "
    "{weighted:.2f}; naive Bayes, {bayes:.2f}; length, {length:.2f}; layers with random "
    "weights, {nothing:.2f}",
    null=shuffled_sections,
    n="{poems} poems of one poet",
    interval="after the last layer less static: {gain:.2f}",
)
def context_helps(page: Page):
    """Compare balanced accuracies of ridge regressions: last layer and static vectors.

    Each poem is left out in its turn; its penalty is chosen among the others. The gain's
    interval is above zero, and so are those of the last layer's lead over the best other
    average and over one model with random layers, which falls below the static vectors.
    Naive Bayes and the length are below the last layer. The gain keeps its sign where the
    poem's whole volume is left out. It is open against the best of eight bags of words and
    letter sequences and against the best level below (both intervals begin below 0.03), and
    none is shown for a vote of the five nearest. No level below is shown to be better than
    the static vectors.

    Parameters
    ----------
    page : Page
        ``guesses`` are the `Predictions` from each level, whose ``hits`` (poems,) are 1.0
        where the section is right; ``random_guesses`` those of a model with random layers.
        ``levels`` are the poems' vectors, Tensor (levels, poems, d_model), static vectors
        first; ``sections`` their sections, array of str; ``texts`` the poems as a list,
        ``poems`` as a DataFrame with the volume, ``series``; ``pooled.tokens`` are their
        lengths in tokens; ``model`` and ``tokenizer`` are BERT's.

    Returns
    -------
    dict
        Balanced accuracies: ``last`` and ``static``, and of the rivals ``weighted``,
        ``bayes``, ``length``, ``nothing`` (random layers), ``letters``; with a volume left
        out ``volume_last`` and ``volume_static``; by the nearest ``near_last`` and
        ``near_static``. Intervals, 95 %: ``gain``, last less static; ``letters_gain``, last
        less the letters or words; ``lower_gain``, last less the best level below. How many
        poems: ``agree``, predicted right after the last layer; ``poems``, all; ``few``, of
        the section Love.
    """
    sections = page.sections
    texts = page.texts
    static = page.guesses[0].hits
    last = page.guesses[-1].hits
    volumes = page.poems.series.to_numpy()
    weighted = [predict(x, sections).hits for x in weighted_static(page).values()]
    weighted = max(weighted, key=lambda hits: score(hits, sections))
    length = torch.log(page.pooled.tokens.double())[:, None]
    letters = letters_and_words(texts, sections)
    between = [guess.hits for guess in page.guesses[1:-1]]
    lower = max(between, key=lambda hits: score(hits, sections))
    random_hits = page.random_guesses[-1].hits
    ends = (page.levels[0], page.levels[-1])
    apart = [across_volumes(x, sections, volumes) for x in ends]
    near = [by_neighbours(x, sections) for x in ends]
    values = {
        "last": score(last, sections),
        "static": score(static, sections),
        "gain": paired(last, static, sections),
        "weighted": score(weighted, sections),
        "bayes": naive_bayes(texts, sections),
        "length": score(predict(length, sections).hits, sections),
        "nothing": score(random_hits, sections),
        "letters": score(letters, sections),
        "letters_gain": paired(last, letters, sections),
        "lower_gain": paired(last, lower, sections),
        "volume_last": apart[1],
        "volume_static": apart[0],
        "near_last": score(near[1], sections),
        "near_static": score(near[0], sections),
        "agree": int(last.sum()),
        "poems": len(texts),
        "few": int((sections == "Love").sum()),
    }
    assert values["gain"][0] > 0
    assert paired(last, random_hits, sections)[0] > 0
    assert paired(last, weighted, sections)[0] > 0
    assert values["last"] > max(values[name] for name in ("bayes", "length", "nothing"))
    assert values["nothing"] < values["static"]
    assert values["volume_last"] > values["volume_static"]
    for open_gain in (values["letters_gain"], values["lower_gain"]):
        assert open_gain[0] < 0.03
    assert paired(near[1], near[0], sections)[0] < 0
    assert all(paired(hits, static, sections)[0] <= 0 for hits in between)
    return values


# --- one word -----------------------------------------------------------------------------


def untrained_last_layer(page: Page):
    """The last layer's weights shuffled; it reads what the trained layers hand it.

    Parameters
    ----------
    page : Page
        ``model`` is the trained BERT, ``tokenizer`` its tokenizer, ``depth`` its number of
        layers; ``texts`` are the poems, list of str, ``sections`` their sections, array of
        str.

    Returns
    -------
    Page
        ``model`` has the shuffled layer; ``levels``, the poems' vectors, a Tensor (levels,
        poems, d_model), and ``guesses``, the `Predictions` of their sections from each
        level, are computed with it.
    """
    # With seed 9, as on the page; True: the weights are shuffled, not drawn anew.
    shuffled = untrained(page.model, 9, True, [page.depth - 1])
    levels = pool_layers(page.texts, page.tokenizer, shuffled).levels
    guesses = [predict(level, page.sections) for level in levels]
    return page.replaced(model=shuffled, levels=levels, guesses=guesses)


def without(page: Page, start: str, word: str):
    """Predict a poem's section as printed, and without a word, from the last layer.

    Parameters
    ----------
    page : Page
        ``model`` and ``tokenizer`` are BERT's; ``texts`` are the poems, list of str,
        ``sections`` the names of their sections, array of str; ``levels`` are the poems'
        vectors, a Tensor (poems, d_model) a level. ``guesses`` has of each level what a
        ridge regression of all other poems predicts for each poem: the ``support``, a
        Tensor (poems, sections), which is its guess, 0 to 1 and beyond, over the section's
        share of the poems, and the ``penalty`` that was chosen, (poems,).
    start : str
        How the poem begins.
    word : str
        It is taken out where it first stands.

    Returns
    -------
    poem : int
        The row of the poem, from 0.
    support, without_word : Tensor of shape (sections,)
        The support for each section, as printed and without the word; the greatest is the
        prediction.
    """
    poem = next(i for i, text in enumerate(page.texts) if text.startswith(start))
    shorter = page.texts[poem].replace(word, "", 1)
    vector = pool_layers([shorter], page.tokenizer, page.model).levels[-1]
    guess = page.guesses[-1]
    penalty = guess.penalty[poem].item()
    support = ask(page.levels[-1], page.sections, poem, vector, penalty)[0]
    return poem, guess.support[poem], support


@finding(
    "Strike out one word, “Hope”, and a small BERT moves “Hope is the thing with feathers” "
    "from Life to Nature.",
    rival="each other word of the poem; {others} of them move it, too",
    null=untrained_last_layer,
    n="1 poem, {words} words: an example that was chosen",
)
def hope_is_in_a_word(page: Page):
    """Check that without *Hope* the poem's predicted section changes to Nature.

    The section is predicted from all other poems, with the word and without it.

    The regression's penalty is the one that was chosen for all poems. Not asserted: with a
    much smaller one the poem goes to Love, or stays. Of the poem's other words none takes
    more support from Life.

    Parameters
    ----------
    page : Page
        A level is what goes into layer 0 (the first level) or what comes out of a layer.
        ``levels``, list of Tensors (poems, d_model), one a level: the mean of a poem's
        token vectors. ``guesses`` are the predictions from each level: ``support`` (poems,
        sections) is a linear regression's guess, 0 to 1 and beyond, over the section's
        share of the poems; the greatest is the prediction. ``names`` are the sections, list
        of str, ``sections`` those of the poems, array of str; ``texts`` (list of str) are
        the poems; with the BERT
        ``model`` and its ``tokenizer`` the poem is read again without the word. ``close``
        lists stored results, dicts with ``poem`` (a row), ``words`` (list of str) and
        ``said``: [level][word][section], the support without that word, in hundredths.

    Returns
    -------
    dict
        Support for Life, 1 where it is predicted as often as poems have it: ``full``, as
        printed, and ``without`` the word; ``lead``, by how much the first section, Life, is
        ahead of the next. ``words``, how many the poem has, and ``others``, how many more
        of them move it to another section.
    """
    names = page.names
    poem, as_printed, without_word = without(page, "Hope is the thing", "Hope")
    stored = next(row for row in page.close if row["poem"] == poem)
    life = names.index("Life")
    by_word = np.array(stored["said"][-1])  # (words, sections), in hundredths
    moving = [
        word
        for word, scores in zip(stored["words"], by_word, strict=True)
        if scores.argmax() != life
    ]
    below = [names[guess.support[poem].argmax()] for guess in page.guesses[:-1]]
    assert names[as_printed.argmax()] == page.sections[poem] == "Life"
    assert names[without_word.argmax()] == "Nature"
    assert set(below) == {"Nature"}
    assert set(moving) == {"Hope", "is", "sore"}
    assert stored["words"][by_word[:, life].argmin()] == "Hope"
    # The first word is "Hope".
    assert np.abs(without_word.numpy() - by_word[0] / 100).max() < 0.03
    top_two = as_printed.topk(2).values
    return {
        "full": as_printed[life].item(),
        "without": without_word[life].item(),
        "lead": (top_two[0] - top_two[1]).item(),
        "words": len(stored["words"]),
        "others": len(moving) - 1,
    }


@proof(
    "*When roses cease to bloom* is read as Love if one of its words is removed; no other "
    "word does this."
)
def bees(page: Page):
    """Check that one poem is read as Love without *bumble-bees* and no other word.

    The stored study (``page.close``) is of the default model, whatever the page's is.

    A poem is read as the section that has the most support after the last layer.

    Parameters
    ----------
    page : Page
        ``texts`` are the poems, ``names`` the sections, lists of str; ``close`` lists
        stored results, dicts with ``poem`` (a row), ``words`` (list of str) and ``said``,
        (levels, words, sections): the support for each section without each word, in
        hundredths, the last layer's last.

    Returns
    -------
    dict
        ``answer``: the letter of the right choice in a task, "a", the word "bumble-bees".
    """
    start = "When roses cease"
    poem = next(i for i, text in enumerate(page.texts) if text.startswith(start))
    row = next(each for each in page.close if each["poem"] == poem)
    predicted = np.array(row["said"][-1]).argmax(axis=1)
    love = [
        w for w, s in zip(row["words"], predicted, strict=True) if page.names[s] == "Love"
    ]
    assert love == ["bumble-bees"]
    options = ["bumble-bees", "violets", "roses", "sun"]
    return {"answer": "abcd"[options.index(love[0])]}


def columns_mixed(page: Page):
    """The last layer's leads and the static vectors' exchanged at random, poem by poem.

    Parameters
    ----------
    page : Page
        ``struck`` lists stored results, a dict for each poem. ``static`` and ``top``, with
        static vectors and after the last layer, are leads without one word, for each word,
        lists of int, in hundredths of support: that of the section which leads as the poem
        is printed, less the highest of the others; below 0 the lead is lost.

    Returns
    -------
    Page
        In ``struck``, ``static`` and ``top`` are exchanged or not, poem by poem.
    """
    rng = np.random.default_rng(0)
    mixed = []
    for row in page.struck:
        names = rng.permutation(["static", "top"]).tolist()
        pair = dict(zip(names, (row["static"], row["top"]), strict=True))
        mixed.append(row | pair)
    return page.replaced(struck=mixed)


@finding(
    "Strike out one word, and a Dickinson poem's guessed section may change: in more poems "
    "with a small BERT's last layer than with static word vectors.",
    rival="static vectors, {static:.0%} of the poems",
    null=columns_mixed,
    n="every third poem, {poems} in all, and each of their {words:,} words",
    interval="last layer less static: {gap:.0%}",
)
def one_word_decides(page: Page):
    """Check that one word moves more poems by the last layer than by static vectors.

    A poem counts if its leading section loses the lead without at least one word.

    The share of all words that move their poem differs by less than one in a hundred
    between the two; after the last layer they are spread over more poems. Of the third of
    poems with the smallest leads more than 60 % are moved, of the third with the largest
    fewer than 20 %; most of the poems that are moved belong to the first of these thirds.

    Parameters
    ----------
    page : Page
        ``struck`` lists stored results, dicts with ``poem`` (a row, from 0), ``words`` (how
        many) and, for ``static`` vectors and the ``top`` layer, the lead without each word,
        lists of int in hundredths of support: that of the section which leads as the poem
        is printed, less the highest of the others; below 0 the lead is lost;
        ``guesses`` are the `Predictions` from each level, with the ``support`` for each
        section, (poems, sections).

    Returns
    -------
    dict
        Shares of poems that one word moves: ``top``, ``static``, the interval ``gap`` of
        their difference, and of the last layer ``narrow`` and ``wide``, those with small
        and with large leads. ``poems``, ``words``: how many.
    """
    moved = {
        name: np.array([(np.array(row[name]) < 0).any() for row in page.struck])
        for name in ("static", "top")
    }
    support = page.guesses[-1].support[[row["poem"] for row in page.struck]]
    top_two = support.topk(2, dim=1).values
    order = (top_two[:, 0] - top_two[:, 1]).argsort()
    third = len(order) // 3
    gap = mean_interval(moved["top"].astype(float) - moved["static"])
    narrow = moved["top"][order[:third]].mean()
    wide = moved["top"][order[-third:]].mean()
    by_word = {
        name: np.mean(np.concatenate([np.array(row[name]) < 0 for row in page.struck]))
        for name in ("static", "top")
    }
    assert gap[0] > 0
    assert abs(by_word["top"] - by_word["static"]) < 0.01
    assert narrow > 0.6
    assert narrow * third > moved["top"].sum() / 2
    assert wide < 0.2
    return {
        "top": moved["top"].mean(),
        "static": moved["static"].mean(),
        "gap": gap,
        "narrow": narrow,
        "wide": wide,
        "poems": len(page.struck),
        "words": sum(row["words"] for row in page.struck),
    }


# --- from layer to layer ------------------------------------------------------------------


@cache
def untrained_tops(model, tokenizer, texts: tuple[str, ...]) -> list[torch.Tensor]:
    """Return poems' vectors after an untrained last layer, for each of five seeds.

    Its weights are shuffled; the layers below are the trained ones.

    Parameters
    ----------
    model, tokenizer
        A BERT's, such as those that `lmcourse.models.load_bert` loads.
    texts : tuple of str

    Returns
    -------
    list of Tensor of shape (poems, d_model)
        One for each seed of `SEEDS`.
    """
    depth = model.config.num_hidden_layers
    inputs = []

    def catch(level, *batch):
        """Keep what the last layer is given of a batch; other levels are let go.

        ``level`` : int, 0 for static vectors, 1 before layer 0, 2 after it, and so on;
        ``batch`` : the texts' rows, their states, (batch, tokens, d_model), and a bool
        mask, (batch, tokens), True at real tokens.
        """
        if level == depth:  # what the last layer is given
            inputs.append(batch)

    pooled = pool_layers(texts, tokenizer, model, on_output=catch)
    tops = []
    for seed in SEEDS:
        # True: the weights are shuffled, not drawn anew.
        layer = untrained(model, seed, True, [depth - 1]).encoder.layer[-1]
        vectors = torch.empty_like(pooled.layers[-1])
        with torch.no_grad():
            for rows, states, mask in inputs:
                bias = ~mask[:, None, None] * torch.finfo(states.dtype).min
                vectors[rows] = pool(layer(states, bias), mask).cpu()
        tops.append(vectors)
    return tops


def blank_last(page: Page):
    """A last layer whose weights are shuffled, on the same input.

    Parameters
    ----------
    page : Page
        ``blank_levels`` are the poems' vectors, level by level, with that layer.

    Returns
    -------
    Page
        ``levels``, the poems' vectors, (levels, poems, d_model), are ``blank_levels``.
    """
    return page.replaced(levels=page.blank_levels)


@finding(
    "The last layer of a small BERT gives a poem mostly new neighbours: of ten it keeps "
    "three. With random weights of the same size it would keep six.",
    rival="the same layer with its weights shuffled or drawn at random, on the same input: "
    "{alone:.0%}",
    null=blank_last,
    n="{poems} poems; untrained layers by {seeds} random seeds",
    interval="untrained less trained: {gap:.0%}",
)
def last_layer_reshuffles(page: Page):
    """Check that the trained last layer keeps fewer neighbours than untrained ones.

    The mean share kept is between a quarter and a third; each layer below keeps half.

    An untrained last layer on the same input keeps more, of three and of thirty nearest,
    too; the stored study says so for ten more, and all keep 55 to 65 %. Taking off the
    vectors what a cubic in the logarithm of the length predicts moves the trained layer's
    share less than half of the way to that of the untrained ones. The cosines of pairs of
    poems before and after the trained layer correlate less than for any untrained one.

    Parameters
    ----------
    page : Page
        ``model`` and ``tokenizer`` are BERT's, ``texts`` the poems; ``levels`` are the
        poems' vectors, Tensor (levels, poems, d_model), the last layer's last.
        ``beside_runs`` lists stored runs, dicts with ``where`` the layers are untrained
        ("last" or "all") and ``steps``, the share of neighbours that each layer keeps;
        ``pooled.tokens`` are the poems' lengths in tokens.

    Returns
    -------
    dict
        Shares of ten neighbours kept: ``last``, by the last layer; ``blank`` and ``alone``,
        by untrained ones, the lowest, and lowest and highest; ``gap``, of untrained less
        trained, the lowest and the highest end of intervals over poems, one for each seed;
        ``random``, by chance. Correlations of the cosines of pairs of poems before and
        after the last layer: ``alike``, trained; ``alike_blank``, untrained, the lowest.
        ``poems``, ``seeds`` (of untrained layers): how many; ``answer``, the letter of the
        right choice in a task: "c" if all of this model's untrained layers keep more, "a"
        if all keep fewer (both by the intervals), else "b".
    """
    tops = untrained_tops(page.model, page.tokenizer, tuple(page.texts))
    before, after = page.levels[-2:]
    steps = [
        kept(*pair, COUNT).mean().item()
        for pair in zip(page.levels[1:-1], page.levels[2:], strict=True)
    ]
    ours = kept(before, after, COUNT)
    gaps = [mean_interval((kept(before, top, COUNT) - ours).numpy()) for top in tops]
    means = [kept(before, top, COUNT).mean().item() for top in tops]
    stored = [row["steps"][-1] for row in page.beside_runs if row["where"] == "last"]
    all_untrained = [*stored, *means]
    correlated = [alike(before, top) for top in tops]
    same_length = [without_length(x, page.pooled.tokens) for x in (before, after)]
    kept_more = min(low for low, _ in gaps) > 0
    kept_fewer = max(high for _, high in gaps) < 0
    assert 0.25 < steps[-1] < 1 / 3
    assert min(steps[:-1]) > 0.5
    assert kept_more
    assert min(all_untrained) > 0.55
    assert max(all_untrained) < 0.65
    for count in (3, 30):  # not ten alone
        gap = kept(before, tops[0], count) - kept(before, after, count)
        assert mean_interval(gap.numpy())[0] > 0
    assert kept(*same_length).mean() < (steps[-1] + min(means)) / 2
    assert alike(before, after) < min(correlated)
    return {
        "last": steps[-1],
        "blank": min(all_untrained),
        "alone": (min(all_untrained), max(all_untrained)),
        "gap": (min(low for low, _ in gaps), max(high for _, high in gaps)),
        "alike": alike(before, after),
        "alike_blank": min(correlated),
        "poems": len(page.texts),
        "seeds": len(all_untrained),
        "random": COUNT / (len(page.texts) - 1),
        "answer": right_letter({"c": kept_more, "a": kept_fewer}, otherwise="b"),
    }


def without_length(vectors, tokens) -> torch.Tensor:
    """Take off poems' vectors what a cubic in the logarithm of their length predicts.

    Parameters
    ----------
    vectors : Tensor of shape (poems, d_model)
    tokens : integer Tensor of shape (poems,)
        The lengths of the poems.

    Returns
    -------
    Tensor of shape (poems, d_model)
    """
    long = torch.log(tokens.float())
    cubic = torch.tensor(np.vander(long - long.mean(), 4)).float()  # (poems, 4)
    return vectors - cubic @ torch.linalg.lstsq(cubic, vectors).solution


def alike(before, after) -> float:
    """Return how the cosines of all pairs of poems, before and after, correlate.

    ``before`` and ``after`` are Tensors (poems, d_model); their means are subtracted.
    """
    units = [F.normalize(x - x.mean(dim=0), dim=-1) for x in (before, after)]
    first, second = torch.triu_indices(len(before), len(before), 1)
    cosines = [(unit @ unit.T)[first, second] for unit in units]  # (pairs,) each
    return torch.corrcoef(torch.stack(cosines))[0, 1].item()


def share_of_own(close_to, sections, count) -> np.ndarray:
    """Return which share of each poem's nearest poems is from its own section.

    Parameters
    ----------
    close_to : Tensor of shape (poems, poems)
        How near each poem is to each other one: the larger, the nearer. Of a poem and
        itself it is not used.
    sections : array of shape (poems,)
        The section of each poem, str.
    count : int
        How many of the nearest.

    Returns
    -------
    float array of shape (poems,)
    """
    others = close_to.clone().fill_diagonal_(-torch.inf)
    near = others.topk(count).indices.numpy()  # (poems, count)
    return (sections[near] == sections[:, None]).mean(axis=1)


def cosines_of(vectors, centred=True) -> torch.Tensor:
    """Return the cosine of each pair of poems, (poems, poems).

    ``vectors`` : Tensor (poems, d_model); ``centred`` : bool, whether the mean of all
    poems is subtracted first.
    """
    unit = F.normalize(vectors - centred * vectors.mean(dim=0), dim=-1)
    return unit @ unit.T


def mean_positions(model, tokens) -> torch.Tensor:
    """Return the mean of the position vectors of each poem's tokens.

    Parameters
    ----------
    model : BertModel
    tokens : integer Tensor of shape (poems,)
        How many tokens each poem has.

    Returns
    -------
    Tensor of shape (poems, d_model)
        It depends on nothing but the poem's length.
    """
    table = model.embeddings.position_embeddings.weight.detach().cpu()
    return table.cumsum(dim=0)[tokens - 1] / tokens[:, None]


def sections_at_random(page: Page):
    """The editors' sections, shuffled among the poems.

    Parameters
    ----------
    page : Page
        ``sections`` has the section of each poem, array of str.

    Returns
    -------
    Page
        ``sections`` are shuffled; all else is as it was.
    """
    return page.replaced(sections=np.array(nulls.shuffled(page.sections)))


@finding(
    "After the last layer of a small BERT, more of a Dickinson poem's nearest poems are "
    "from its own section than before that layer.",
    rival="the same layer with its weights shuffled, on the same input: {blank:.0%} of ten "
    "at most; static vectors, {static:.0%}",
    null=sections_at_random,
    n="{poems} poems of one poet; of each its ten nearest",
    interval="after the last layer less before it: {gain:.0%}; less static: {lead:.0%}",
)
def new_neighbours_are_its_own(page: Page):
    """Check that the last layer brings poems nearer to others of their section.

    The share of its section grows among the five, ten and twenty nearest, by 95 % intervals
    over poems.

    Of ten the gain is larger than in any of 200 shufflings of the sections, and the share
    is above that after the last layer with shuffled weights, for each of five seeds. The
    gain's interval is above zero, too, if each section has the same weight, only poems of
    other volumes are neighbours, or what the poem's length predicts is taken off the
    vectors; if the mean of all poems is not subtracted, or distances take the place of
    angles.

    Before layer 0 the share of five, ten and twenty is below that of static vectors, and
    adding the vectors of the positions to these is enough to bring it down. From before
    layer 0 to before the last layer the change of the share of ten is less than three
    points, by both ends of its interval, which includes zero; and before the last layer the
    share is below that of static vectors, too. Without subtracting the mean, or with
    distances, no such loss is shown. The last layer's lead over static vectors is below
    eight points; of ten its interval begins below one point.

    Parameters
    ----------
    page : Page
        ``model`` and ``tokenizer`` are BERT's, ``texts`` the poems; ``levels`` are the
        poems' vectors, Tensor (levels, poems, d_model): static, before layer 0, after each
        layer; ``sections`` their sections, array of str; ``poems`` are a DataFrame with the
        volume, ``series``; ``pooled.tokens`` are their lengths in tokens, (poems,).

    Returns
    -------
    dict
        Shares of ten neighbours that are from the poem's own section: ``static``, with
        static vectors; ``placed``, before layer 0; ``below`` and ``last``, before the last
        layer and after it; ``blank``, after last layers with shuffled weights, the highest;
        ``random``, by chance. Intervals: ``gain``, last less below; ``lost``, before layer
        0 less static; ``lead`` and ``lead_20``, last less static, of ten and of twenty.
        ``poems``: how many.
    """
    sections = page.sections
    levels = page.levels
    tokens = page.pooled.tokens

    def own(vectors, count=COUNT):
        """Return shares of nearest poems from the own section, (poems,).

        ``vectors`` : Tensor (poems, d_model); ``count`` : how many nearest.
        """
        return share_of_own(cosines_of(vectors), sections, count)

    def gains(measure):
        """Return the 95 % intervals of two mean differences of a share, each (low, high).

        They are: after the last layer less before it, and before layer 0 less static.
        ``measure`` : callable, from vectors (poems, d_model) to shares (poems,).
        """
        static, placed, below, last = (measure(levels[i]) for i in (0, 1, -2, -1))
        return mean_interval(last - below), mean_interval(placed - static)

    static, placed, below, last = (own(levels[i]) for i in (0, 1, -2, -1))
    tops = untrained_tops(page.model, page.tokenizer, tuple(page.texts))
    blanks = [own(top) for top in tops]
    rng = np.random.default_rng(0)
    cosines = [cosines_of(levels[i]) for i in (-2, -1)]
    by_chance = []
    for _ in range(200):
        mixed = rng.permutation(sections)
        low, high = (share_of_own(x, mixed, COUNT).mean() for x in cosines)
        by_chance.append(high - low)
    leads = {}
    with_positions = levels[0] + mean_positions(page.model, tokens)
    for count in (5, COUNT, 20):
        gain, lost = gains(partial(own, count=count))
        by_positions = own(with_positions, count) - own(levels[0], count)
        leads[count] = mean_interval(own(levels[-1], count) - own(levels[0], count))
        assert gain[0] > 0, count
        assert lost[1] < 0, count
        assert mean_interval(by_positions)[1] < 0, count
        assert leads[count][1] < 0.08, count
    sizes = (sections[:, None] == sections).sum(axis=1)  # (poems,)
    volume = page.poems.series.to_numpy()
    same_volume = torch.tensor(volume[:, None] == volume)
    variants = {
        "each section alike": lambda x: own(x) / sizes * sizes.mean(),
        "other volumes": lambda x: share_of_own(
            cosines_of(x).masked_fill(same_volume, -torch.inf), sections, COUNT
        ),
        "without length": lambda x: own(without_length(x, tokens)),
        "mean not subtracted": lambda x: share_of_own(
            cosines_of(x, False), sections, COUNT
        ),
        "distances": lambda x: share_of_own(-torch.cdist(x, x), sections, COUNT),
    }
    shown = {name: gains(measure) for name, measure in variants.items()}
    for name, (gain, _) in shown.items():
        assert gain[0] > 0, name
    for name in ("mean not subtracted", "distances"):
        assert shown[name][1][1] > 0, name
    assert (last - below).mean() > max(by_chance)
    for blank in blanks:
        assert mean_interval(last - blank)[0] > 0
    between = mean_interval(below - placed)
    assert -0.03 < between[0] < 0 < between[1] < 0.03
    assert mean_interval(below - static)[1] < 0
    assert leads[COUNT][0] < 0.01
    return {
        "static": static.mean(),
        "placed": placed.mean(),
        "below": below.mean(),
        "last": last.mean(),
        "blank": max(blank.mean() for blank in blanks),
        "random": ((sizes - 1) / (len(sizes) - 1)).mean(),
        "gain": mean_interval(last - below),
        "lost": mean_interval(placed - static),
        "lead": leads[COUNT],
        "lead_20": leads[20],
        "poems": len(sections),
    }


@proof("The solution's poems are within twelve tokens of each other.")
def poems_of_a_length(page: Page):
    """Check the lengths of the forty different poems ``page.chosen``.

    Parameters
    ----------
    page : Page
        ``chosen`` are rows of poems, list of int from 0; ``share``, a float, is what the
        solution finds: the mean share of a poem's five nearest, of these forty, that the
        last layer keeps. ``pooled.tokens`` are the poems' lengths in tokens, (poems,).

    Returns
    -------
    dict
        ``share``, as the page has it, and ``random``, the share of five among 39 others
        that chance keeps.
    """
    lengths = page.pooled.tokens[page.chosen]
    assert len(set(page.chosen)) == 40
    assert lengths.max() - lengths.min() <= 12
    return {"share": page.share, "random": 5 / 39}


@proof("Twenty different poems were drawn, five from each section, of at most eight lines.")
def twenty_were_drawn(page: Page):
    """Check the poems ``page.drawn``, which are given by their rows.

    ``chance`` is how far two independent scores of twenty poems differ by chance alone, if
    60 % are right: in poems, the half width of the 95 % interval of their difference.

    Parameters
    ----------
    page : Page
        ``drawn`` are rows of poems, list of int from 0; ``texts`` are all poems, list of
        str, ``sections`` their sections, array of str, ``names`` the names of the four
        sections.

    Returns
    -------
    dict
        ``chance``, as above, in poems.
    """
    drawn = page.drawn
    assert len(set(drawn)) == 20
    lines = [[x for x in page.texts[i].split("\n") if x.strip()] for i in drawn]
    assert max(map(len, lines)) <= 8
    assert [int((page.sections[drawn] == name).sum()) for name in page.names] == [5] * 4
    return {"chance": 1.96 * np.sqrt(2 * 20 * 0.6 * 0.4)}


def labels_shuffled(page: Page):
    """The labels in a random order, at every level and in the counts.

    Parameters
    ----------
    page : Page
        ``mine`` are the sonnets as `lmcourse.own_poems` reads them: ``names`` of the levels
        and ``table``, a DataFrame with a row for each level, for "words counted" and for
        "labels shuffled", whose columns say how often a group is predicted right.

    Returns
    -------
    Page
        A page like this one; in ``mine``, each row of ``table`` is that of "labels
        shuffled".
    """
    table = page.mine.table.copy()
    table.loc[:] = [table.loc["labels shuffled"]] * len(table)
    return page.replaced(mine=SimpleNamespace(names=page.mine.names, table=table))


@finding(
    "A small BERT's last layer tells Shakespeare's sonnets to the young man from those to "
    "the dark lady, but counting words does it about as well.",
    rival="words counted: {words:.0%}",
    null=labels_shuffled,
    n="{sonnets} sonnets, each predicted from all others",
    interval="after the last layer {span:.0%}",
)
def sonnets_are_told(page: Page):
    """Check that the last layer tells the sonnets' two groups about as counting does.

    After the last layer the interval is above a half, and above that of shuffled labels.

    Words that are counted, and static vectors, lie within the interval of the last layer.

    Parameters
    ----------
    page : Page
        ``mine`` are the sonnets as `lmcourse.own_poems` reads them: ``names`` of the
        levels, the last layer's last, and ``table``, a DataFrame with a row for each level
        ("static" is one), for "words counted" and for "labels shuffled", and the columns
        ``right``, the balanced accuracy (the mean over both groups of the share that is
        predicted right), ``from`` and ``to``, the ends of its 95 % interval; of "labels
        shuffled" they bound 95 % of the shufflings. ``sonnets`` is a DataFrame, one row for
        each.

    Returns
    -------
    dict
        Balanced accuracies: ``right``, of the last layer, with its interval ``span``, a
        pair; ``words``, of counting words. ``sonnets``: how many.
    """
    table = page.mine.table
    last = table.loc[page.mine.names[-1]]
    words = table.right["words counted"]
    assert last["from"] > max(0.5, table.to["labels shuffled"])
    assert last["from"] < words < last["to"]
    assert last["from"] < table.right["static"] < last["to"]
    return {
        "right": last.right,
        "span": (last["from"], last["to"]),
        "words": words,
        "sonnets": len(page.sonnets),
    }
