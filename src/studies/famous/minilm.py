"""Published results asked of MiniLM, or of another BERT that stands in its place.

Each function is named as in ``published.toml``, which says what it measures and when the
sentence holds. ``small`` asks for a tenth of the texts or so, for a quick run.
"""

from collections import defaultdict
from functools import cache
from itertools import pairwise

import numpy as np
import torch
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import GroupKFold

from lmcourse.data import load_poems, load_texts
from lmcourse.models import load_bert
from lmcourse.pooling import pool_layers
from lmcourse.shuffled import shuffled_weights
from lmcourse.word_tests import load_analogies
from studies.famous.outcomes import above, below, both, cosines, outcome
from studies.nulls import shuffled

LONGEST = 128  # tokens of a text
PENALTIES = (0.1, 1.0, 10.0, 100.0)


@cache
def bert():
    """Return the tokenizer and the model, a BERT of `transformers`, on the CPU.

    The model is MiniLM, or what ``LMCOURSE_BERT`` names, in evaluation mode; its attention
    returns weights. Both are loaded once.
    """
    return load_bert(device="cpu", attn_implementation="eager")


@cache
def poems(count):
    """Return the ids of the first ``count`` poems, a list of int64 Tensors (1, tokens).

    They are Dickinson's, each with [CLS] and [SEP] and cut after 128 tokens (`LONGEST`).
    """
    tokenizer = bert()[0]
    texts = load_poems().text[:count]
    return [
        torch.tensor([tokenizer(text, truncation=True, max_length=LONGEST).input_ids])
        for text in texts
    ]


@torch.no_grad()
def levels(ids, model=None):
    """Return the states before layer 0 and after each, Tensor (layers + 1, tokens, d).

    ``ids`` : int64 Tensor (1, tokens); ``model`` : BertModel, by default MiniLM (`bert`).
    Level 0 is what goes into layer 0.
    """
    model = model or bert()[1]
    return torch.stack(model(ids, output_hidden_states=True).hidden_states)[:, 0]


# --- attention ---------------------------------------------------------------------------


def separator(small=False):
    """Measure how much attention [SEP] gets in all layers but the first and the last.

    Parameters
    ----------
    small : bool
        Whether to read 20 poems in place of 200.

    Returns
    -------
    dict
        Of the share of attention that goes to [SEP], a number for each poem: ``ours``, the
        mean; ``interval``, that of the mean at 95 %; ``n``, how many numbers; ``null``, the
        share in the first poem with shuffled weights; ``holds``, whether the interval is
        above 0.5, or None if it is too close to say.

        Also ``first``, the mean share of the first token, and ``even``, what each token
        would get of an even share.
    """
    texts = poems(20 if small else 200)
    model = bert()[1]
    shares = np.array([shares_of_ends(model, ids) for ids in texts])
    without = np.array([shares_of_ends(shuffled_weights(model), texts[0])])
    even = np.mean([1 / ids.shape[1] for ids in texts])
    return outcome(
        shares[:, 1],
        without[:, 1].mean(),
        lambda mean, span: above(span, 0.5),
        first=float(shares[:, 0].mean()),
        even=float(even),
    )


@torch.no_grad()
def shares_of_ends(model, ids):
    """Return the shares of attention on the first token, [CLS], and on the last, [SEP].

    Parameters
    ----------
    model : BertModel
    ids : int64 Tensor of shape (1, tokens)

    Returns
    -------
    list of two floats
        Means over all tokens and heads of all layers but the first and the last.
    """
    layers = model(ids, output_attentions=True).attentions[1:-1]
    inner = torch.stack(layers)  # (layers, 1, heads, tokens, tokens)
    return [inner[..., end].mean().item() for end in (0, -1)]


# --- states ------------------------------------------------------------------------------


def word_pairs(count, seed=0):
    """Return the states of pairs of tokens, drawn from two poems each, at every level.

    Parameters
    ----------
    count : int
        How many poems, the first ones.
    seed : int
        Of the draw of a token of each poem, [CLS] and [SEP] left out, and of the pairs.

    Returns
    -------
    first, second : Tensor of shape (levels, count // 2, d)
        The states of the pairs' tokens; the levels are before layer 0, after layer 0, 1,
        and so on.
    """
    rng = np.random.default_rng(seed)
    states = []
    for ids in poems(count):
        states.append(levels(ids)[:, rng.integers(1, ids.shape[1] - 1)])
    mixed = torch.stack([states[at] for at in rng.permutation(count)], 1)
    return mixed[:, : count // 2], mixed[:, count // 2 : count // 2 * 2]


def cone(small=False):
    """Measure how alike words of different poems are, in the layer where they are least so.

    Parameters
    ----------
    small : bool
        Whether to take ten pairs of words in place of 500.

    Returns
    -------
    dict
        Of the cosines of pairs of words at level ``lowest``: ``ours``, the mean;
        ``interval``, that of the mean at 95 %; ``n``, how many numbers; ``null``, the mean
        where the signs of one word's numbers are drawn at random; ``holds``, whether the
        interval is above 0.05, or None if it is too close to say.

        Also ``by_level``, the mean cosine at each level, a list, and ``lowest``, the level
        with the lowest of these, level 0 left out.
    """
    count = 20 if small else 200
    draws = 1 if small else 5
    pairs = [word_pairs(count, seed) for seed in range(draws)]
    first, second = (torch.cat(each, 1) for each in zip(*pairs, strict=True))
    by_level = np.array([cosines(*pair) for pair in zip(first, second, strict=True)])
    lowest = int(by_level[1:].mean(1).argmin()) + 1
    generator = torch.Generator().manual_seed(0)
    signs = torch.randint(2, first[lowest].shape, generator=generator) * 2 - 1
    return outcome(
        by_level[lowest],
        cosines(first[lowest] * signs, second[lowest]).mean(),
        lambda mean, span: above(span, 0.05),
        by_level=[float(level.mean()) for level in by_level],
        lowest=lowest,
    )


def contextual(small=False):
    """Measure how much more alike a word is to itself in another poem than to other words.

    That is the cosine of a word in two poems, less that of two different words in them.

    Parameters
    ----------
    small : bool
        Whether to read the first 20 poems in place of 200.

    Returns
    -------
    dict
        Of the differences of two cosines after the last layer, a number for each word:
        ``ours``, the mean; ``interval``, that of the mean at 95 %; ``n``, how many numbers;
        ``null``, the mean cosine of two different words there; ``holds``, whether the mean
        falls from each level to the next, and in the end to less than half of the first, or
        None if it is too close to say.

        Also ``before``, the mean difference before the first layer; ``by_level``, that of
        each level, a list; ``able``, whether the null is below a half. Where it is not, the
        model can't be asked: a word that is no more like itself than like others has not
        changed with its context.
    """
    same, different = same_words(20 if small else 200)
    gaps = np.array(
        [
            cosines(*each) - cosines(*other)
            for each, other in zip(same, different, strict=True)
        ]
    )  # (levels, words)
    means = gaps.mean(1)
    falls = bool((np.diff(means) < 0).all())
    in_common = cosines(*different[-1]).mean()
    return outcome(
        gaps[-1],
        in_common,
        lambda mean, span: both(falls, below(span, means[0] / 2)),
        able=bool(in_common < 0.5),
        before=float(means[0]),
        by_level=[float(mean) for mean in means],
    )


def same_words(count):
    """Return the states of words that stand in two poems, and of pairs of two words.

    Parameters
    ----------
    count : int
        How many poems, the first ones. Of a word the first two poems that have it are
        taken, and in each its first place; pieces of words and [CLS] and [SEP] are left
        out, so that "love" is not taken from "loveliest" if that is "love" and "##liest".

    Returns
    -------
    same, different : Tensor of shape (levels, 2, words, d)
        States at each level, which are before layer 0, after layer 0, 1, and so on; axis 1
        is the first poem and the second. In ``different`` the second is that of the next
        word.
    """
    tokenizer = bert()[0]
    positions = defaultdict(list)
    for number, ids in enumerate(poems(count)):
        words = tokenizer.convert_ids_to_tokens(ids[0].tolist())
        for word, at in whole_words(words).items():
            positions[word].append((number, at))
    chosen = [occurrences[:2] for occurrences in positions.values() if len(occurrences) > 1]
    states = [levels(ids) for ids in poems(count)]
    halves = [
        torch.stack([states[number][:, at] for number, at in half], 1)
        for half in zip(*chosen, strict=True)
    ]  # two of (levels, words, d)
    same = torch.stack(halves, 1)
    different = torch.stack([halves[0], halves[1].roll(-1, dims=1)], 1)
    return same, different


def whole_words(tokens):
    """Return where each word that is one token of a text stands first, dict of str to int.

    Positions are from 0.

    ``tokens`` : list of str, from [CLS] to [SEP]; what continues a word begins with ##.
    """
    positions = {}
    for at, (token, after) in enumerate(pairwise(tokens)):
        if token.isalpha() and not after.startswith("##"):
            positions.setdefault(token, at)
    return positions


# --- order -------------------------------------------------------------------------------


def order(small=False):
    """Measure how much of what a classifier gets right stays right when words are shuffled.

    It tells Dickinson's lines from Shakespeare's by the mean of MiniLM's last states.

    Parameters
    ----------
    small : bool
        Whether to take 30 texts of each poet in place of 300.

    Returns
    -------
    dict
        Of the texts that are classified rightly, 1 where the text with its words shuffled
        is, too, else 0: ``ours``, the mean; ``interval``, that of the mean at 95 %; ``n``,
        how many numbers; ``null``, the mean with the poets' names shuffled; ``holds``,
        whether the interval is above 0.75, or None if it is too close to say.

        Also ``right``, the share of texts that are classified rightly in their own order.
    """
    texts, poets, groups = four_lines(30 if small else 300)
    mixed = [" ".join(shuffled(text.split(), number)) for number, text in enumerate(texts)]
    whole, changed = (
        pool_layers(each, *bert()).layers[-1].numpy() for each in (texts, mixed)
    )
    stays, right = stay_right(whole, changed, poets, groups)
    shuffled_poets = np.array(shuffled(poets))
    null, _ = stay_right(whole, changed, shuffled_poets, groups)
    return outcome(
        stays, null.mean(), lambda mean, span: above(span, 0.75), right=float(right.mean())
    )


def four_lines(count):
    """Return pieces of four lines by two poets: beginnings of poems, quatrains of sonnets.

    Parameters
    ----------
    count : int
        Texts of each poet: the first four lines of Dickinson's poems whose first stanza has
        four or more; of Shakespeare's sonnets, three quatrains each, as many as are needed.

    Returns
    -------
    texts : list of str
    poets : int array of shape (2 * count,)
        0: Dickinson, 1: Shakespeare.
    groups : list of str
        The poem that each is from, such as "sonnet 3"; the numbers begin with 0.
    """
    by_poet = {0: [], 1: []}
    for number, text in enumerate(load_poems().text):
        lines = text.split("\n\n")[0].splitlines()[:4]
        if len(lines) == 4:
            by_poet[0].append(("\n".join(lines), f"poem {number}"))
    for number, text in enumerate(load_texts("sonnets")):
        lines = [line for line in text.splitlines() if line]
        for start in (0, 4, 8):
            by_poet[1].append(("\n".join(lines[start : start + 4]), f"sonnet {number}"))
    chosen = [pair for pairs in by_poet.values() for pair in pairs[:count]]
    poets = [poet for poet, pairs in by_poet.items() for _ in pairs[:count]]
    return [text for text, _ in chosen], np.array(poets), [poem for _, poem in chosen]


def stay_right(whole, changed, labels, groups):
    """Return which texts a classifier gets right, and which of these with shuffled words.

    A ridge classifier is fitted to four fifths of the groups and asked of the last, five
    times; one of four penalties is chosen by leaving out each text (`PENALTIES`).

    Parameters
    ----------
    whole, changed : float array of shape (texts, d)
        The states of the texts, and of the same with their words shuffled; only ``whole``
        is learned from.
    labels : int array of shape (texts,)
        What is to be predicted, such as 0 and 1 for two poets.
    groups : list of str
        A name for each text; texts of one group are never both learned from and asked.

    Returns
    -------
    stays : bool array of shape (right texts,)
        Of the texts that are classified rightly, whether the same with their words shuffled
        are, too.
    right : bool array of shape (texts,)
        Whether each is classified rightly.
    """
    of_whole = np.empty_like(labels)
    of_changed = np.empty_like(labels)
    for fit, test in GroupKFold(5).split(whole, labels, groups):
        classifier = RidgeClassifierCV(PENALTIES).fit(whole[fit], labels[fit])
        of_whole[test] = classifier.predict(whole[test])
        of_changed[test] = classifier.predict(changed[test])
    right = of_whole == labels
    return of_changed[right] == labels[right], right


# --- the table ---------------------------------------------------------------------------


@torch.no_grad()
def queen(small=False):
    """Measure how often "king - man + woman" is nearest to "queen" in MiniLM's token table.

    All rows of the table may answer, those of the question as well. Questions are Google's
    analogies of which all four words are one token.

    Parameters
    ----------
    small : bool
        Whether to ask every twentieth question.

    Returns
    -------
    dict
        Of the questions "a is to b as c is to d", 1 where d is the nearest row, else 0:
        ``ours``, the mean; ``interval``, that of the mean at 95 %; ``n``, how many numbers;
        ``null``, the mean where the row nearest to c answers; ``holds``, whether the
        interval is above 0.5, or None if it is too close to say.

        Also ``itself``, the share of questions in which the nearest row is c.
    """
    tokenizer, model = bert()
    table = torch.nn.functional.normalize(model.get_input_embeddings().weight, dim=1)
    vocabulary = tokenizer.get_vocab()
    asked = []
    for pairs in load_analogies().values():
        known = [pair for pair in pairs if all(word in vocabulary for word in pair)]
        asked += pairwise(known)
    asked = asked[:: 20 if small else 1]
    rows = torch.tensor(
        [[vocabulary[word] for pair in question for word in pair] for question in asked]
    )  # (questions, 4): a is to b as c is to d
    a, b, c, d = rows.unbind(1)
    nearest = ((table[b] - table[a] + table[c]) @ table.T).argmax(1)
    near_c = table[c] @ table.T
    near_c[torch.arange(len(c)), c] = -1
    return outcome(
        (nearest == d).float(),
        (near_c.argmax(1) == d).float().mean(),
        lambda mean, span: above(span, 0.5),
        itself=float((nearest == c).float().mean()),
    )
