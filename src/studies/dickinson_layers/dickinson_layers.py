"""Which neighbours does a poem keep in a BERT, and which word decides its section?

Levels are numbered as in `lmcourse.pooling.PooledLayers.levels`: static vectors, before
layer 0, after layer 0, 1, … Poems are numbered by their rows in `lmcourse.data.load_poems`.
A section's support is that of `lmcourse.probe.Predictions`, predicted from all other poems;
it is stored in hundredths, as int.

Varied: the layers whose weights learned nothing (all, or the last alone, on what the
trained ones hand it), shuffled or drawn at their size, five seeds each. Statistic: the
share of a poem's ten nearest that a layer keeps; the interval is that of the last layer,
untrained alone less trained, widest over ways and seeds, poems drawn again. Rival: an
untrained last layer on the same input. Null: neighbours drawn at random.

Then every word of every third poem is struck out by itself, and all other poems are asked
in which section it would be: with the vectors of the last layer, and with static ones.
"""

import itertools
import re
from functools import cache

import numpy as np
import torch

from lmcourse.data import load_poems
from lmcourse.models import load_bert
from lmcourse.numbers import bootstrap_interval
from lmcourse.pooling import kept, pool_layers, untrained
from lmcourse.probe import ask, predict
from studies.harness import count, grid, verdict

CHAPTER = "dickinson-layers"
CLAIM = (
    "The last layer keeps fewer of a poem's ten nearest neighbours than it does with "
    "untrained weights"
)
RIVAL = "the last layer alone untrained, on the input of the trained one"
NULL = "neighbours drawn at random: ten in 305 are kept"
SETTINGS = {"seeds": [0, 1, 2, 3, 4], "count": 10, "draws": 1000, "every": 3, "close": 8}
KNOWN = (
    "Hope is the thing",
    "Essential oils",
    "My life closed twice",
    "Portraits are to daily",
    "The daisy follows soft",
    "Except to heaven",
    "Because I could not",
    "A narrow fellow",
    "I'm nobody",
    "To make a prairie",
)


@cache
def printed(count=None):
    """Load the poems, and predict their sections from each level of the model.

    Parameters
    ----------
    count : int, optional
        How many poems, the first ones. Default: all.

    Returns
    -------
    poems : DataFrame
        One row for each poem, with its ``text``, its ``section`` (such as "Love") and more
        (`load_poems`).
    tokenizer, model
        BERT's (`load_bert`).
    levels : Tensor of shape (levels, poems, d_model)
        The mean of a poem's token vectors at each level: static vectors, before layer 0,
        after layer 0, 1, and so on.
    predictions : list of lmcourse.probe.Predictions
        One for each level, each poem predicted from all others: ``support``, a Tensor
        (poems, sections), the predicted share of each section over its share of the poems;
        ``penalty``, of the regression, (poems,).
    """
    poems = load_poems()[:count]
    tokenizer, model = load_bert()
    levels = pool_layers(poems.text.tolist(), tokenizer, model).levels
    return poems, tokenizer, model, levels, [predict(x, poems.section) for x in levels]


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return two runs of "beside", one of them with the trained model, and one
        of "words", on the first 120 poems.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``. "beside" (which neighbours a layer keeps):
        ``way``, the model as it is ("trained"), with weights shuffled ("dealt") or drawn at
        their size ("drawn"); ``where``, in "all" layers or the "last"; ``seed``. "words"
        (each word is struck out): ``first`` and ``end``, the rows between which every third
        poem is used. "close" (the same for a few poems, at every level) has no other
        argument. A small plan also has ``poems``, how many of them there are.
    """
    ways = {"way": ("dealt", "drawn"), "where": ("all", "last")}
    runs = grid(group="beside", seed=SETTINGS["seeds"], **ways)
    runs = runs[1:2] if small else runs
    runs = [{"group": "beside", "way": "trained", "where": "all", "seed": 0}, *runs]
    every = 17 * SETTINGS["every"]
    first = range(0, 1 if small else len(load_poems()), 1 if small else every)
    strikes = [{"group": "words", "first": i, "end": i + first.step} for i in first]
    if small:
        return [run | {"poems": 120} for run in (*runs, *strikes)]
    return [*runs, *strikes, {"group": "close"}]


def run(folder, group, **setting):
    """Measure which neighbours layers keep, or what each word does to a poem's section.

    Parameters
    ----------
    folder : Path
        Unused: no weights are saved.
    group : {"beside", "words", "close"}
        What is measured. "beside": how many of a poem's ten nearest neighbours each layer
        keeps; "words": the lead of a poem's first section when each of its words is struck
        out; "close": the support for all sections, of a few poems, at every level.
    **setting
        Of "beside" ``way``, "trained",
        "dealt" (weights shuffled) or "drawn" (drawn at their size); ``where``, in "all"
        layers or the "last"; ``seed``. Of "words" ``first`` and ``end``, rows of poems. Of
        both ``poems``, how many there are, by default all.

    Returns
    -------
    dict or list of dict
        Of "beside" the setting; ``steps``, the share of the ten nearest that each layer
        keeps, and ``last``, how many each poem keeps in the last layer. Of the others a
        dict for each poem: ``poem``, its row, from 0; of "words" ``words``, how many it
        has, and ``static`` and ``top``, the lead of its first section without each of them;
        of "close" ``words``, a list of str, and ``said``, the support for each section,
        (levels, words, sections). Leads and support are in hundredths, int.
    """
    return {"beside": beside, "words": words, "close": close}[group](**setting)


def beside(way, where, seed, poems=None):
    """Measure how many of a poem's ten nearest neighbours each layer of a model keeps.

    Parameters
    ----------
    way : {"trained", "dealt", "drawn"}
        The model: as it is; with weights shuffled ("dealt"); with weights drawn at random,
        with the mean and the spread of the trained ones.
    where : {"all", "last"}
        The layers that are untrained, where the model is not "trained".
    seed : int
        Of the weights that are shuffled or drawn.
    poems : int, optional
        How many poems, the first ones. Default: all.

    Returns
    -------
    dict
        The settings ``way``, ``where``, ``seed``; ``steps``, a list of float, the share
        from 0 to 1 of the ten nearest that each layer keeps, mean over poems; ``last``, a
        list of int, how many of its ten each poem keeps in the last layer.
    """
    texts, tokenizer, model, levels, _ = printed(poems)
    depth = len(levels) - 2
    if way != "trained":
        layers = range(depth) if where == "all" else [depth - 1]
        other = untrained(model, seed, way == "dealt", layers)
        levels = pool_layers(texts.text.tolist(), tokenizer, other).levels
    pairs = itertools.pairwise(levels[1:])  # what goes into a layer, and what comes out
    shares = [kept(*pair, SETTINGS["count"]) for pair in pairs]  # (poems,) each
    row = {"way": way, "where": where, "seed": seed}
    row |= {"steps": [round(share.mean().item(), 4) for share in shares]}
    return row | {"last": (SETTINGS["count"] * shares[-1]).round().int().tolist()}


def struck(poem, count=None):
    """Return a poem's words, and its vectors when each word is struck out by itself.

    Parameters
    ----------
    poem : int
        Its row, from 0.
    count : int, optional
        How many poems, the first ones. Default: all.

    Returns
    -------
    words : list of str
        In the order of the text; apostrophes and hyphens belong to a word.
    levels : Tensor of shape (levels, words, d_model)
        The poem's vector, the mean of its tokens', at each level without each word; the
        levels are static vectors, before layer 0, after layer 0, 1, and so on.
    """
    poems, tokenizer, model, _, _ = printed(count)
    text = poems.text[poem]
    matches = list(re.finditer(r"[\w'-]+", text))
    versions = [text[: at.start()] + text[at.end() :] for at in matches]
    return [at[0] for at in matches], pool_layers(versions, tokenizer, model).levels


def answers(poem, level, versions, count=None):
    """Predict the section of new versions of a poem from all other poems.

    By a ridge regression, with the penalty that was chosen for the poem as printed.

    Parameters
    ----------
    poem : int
        Its row, from 0.
    level : int
        The level of the vectors, from 0: static vectors, before layer 0, after layer 0, 1,
        and so on.
    versions : Tensor of shape (versions, d_model)
        The poem's vector in each version.
    count : int, optional
        How many poems, the first ones. Default: all.

    Returns
    -------
    int32 Tensor of shape (versions, sections)
        The support for each section, in hundredths: 100 where the vector adds nothing to
        the section's share of the poems, more where it speaks for it.
    """
    poems, _, _, levels, predictions = printed(count)
    penalty = predictions[level].penalty[poem].item()
    support = ask(levels[level], poems.section, poem, versions, penalty)
    return (100 * support).round().int()


def words(first, end, poems=None):
    """Measure the lead of a poem's first section without each of its words.

    The support for a section is the share that a regression on all other poems predicts of
    it, over its share of the poems. The first section is the one with the most support as
    printed; its lead is its support less the highest of the others, below zero where
    another section takes its place.

    Parameters
    ----------
    first, end : int
        Every third poem from row ``first`` on is used, before row ``end``. Rows are counted
        from 0.
    poems : int, optional
        How many poems, the first ones. Default: all.

    Returns
    -------
    list of dict
        Of each poem ``poem``, its row; ``words``, how many it has; ``static`` and ``top``,
        the lead without each word, in hundredths of support, a list of int in the order of
        the words: with static vectors, and with those after the last layer.
    """
    texts, *_, predictions = printed(poems)
    rows = []
    for poem in range(first, min(end, len(texts)), SETTINGS["every"]):
        names, vectors = struck(poem, poems)
        row = {"poem": poem, "words": len(names)}
        for name, level in (("static", 0), ("top", len(vectors) - 1)):
            support = answers(poem, level, vectors[level], poems)
            first_section = predictions[level].support[poem].argmax()
            others = support.clone()
            others[:, first_section] = -(10**6)
            row[name] = (support[:, first_section] - others.max(dim=1).values).tolist()
        rows.append(row)
    return rows


def close():
    """Predict the sections of a few poems without each of their words, at every level.

    The poems are those that begin with a text of `KNOWN`, ten well-known ones, and eight
    others (``SETTINGS["close"]``): of those that the last layer puts into another section
    than the layer before it does, the ones for which the new section leads by most.

    Returns
    -------
    list of dict
        Of each poem ``poem``, its row, from 0; ``words``, a list of str; ``said``, nested
        lists of int of shape (levels, words, sections): the support for each section
        without each word, in hundredths. The levels are static vectors, before layer 0,
        after layer 0, 1, and so on.
    """
    poems, *_, predictions = printed()
    last, before = (each.support for each in (predictions[-1], predictions[-2]))
    two_highest = last.topk(2).values  # (poems, 2)
    moved = last.argmax(dim=1) != before.argmax(dim=1)
    lead = torch.where(moved, two_highest[:, 0] - two_highest[:, 1], -1)
    starts = poems.text.str.startswith
    chosen = [int(np.flatnonzero(starts(start))[0]) for start in KNOWN]
    clear = lead.topk(len(KNOWN) + SETTINGS["close"]).indices.tolist()
    chosen += [i for i in clear if i not in chosen][: SETTINGS["close"]]
    rows = []
    for poem in chosen:
        names, vectors = struck(poem)
        supports = [answers(poem, i, x).tolist() for i, x in enumerate(vectors)]
        rows.append({"poem": poem, "words": names, "said": supports})
    return rows


def summary(results):
    """Compare how many neighbours the last layer keeps, untrained alone and trained.

    Parameters
    ----------
    results : dict of str to list of dict
        "beside" → a dict for each model: ``way``, "trained" or how its layers are
        untrained; ``where``, in "all" layers or the "last"; ``seed``; ``last``, how many of
        its ten nearest each poem keeps in the last layer, a list of int.

    Returns
    -------
    dict
        ``n``, the number of poems; ``seeds``, of the models whose last layer alone is
        untrained, a list of int; ``interval``, [low, high], of the share of ten nearest
        kept, untrained less trained: the lowest and the highest end of the 95 % intervals
        over poems, one for each way and seed; ``verdict``, "holds" or "not so": whether all
        are above zero.
    """
    rows = results["beside"]
    trained = np.array(next(r["last"] for r in rows if r["way"] == "trained"))
    alone = [r for r in rows if r["where"] == "last"]
    ends = []
    for row in alone:
        gap = (np.array(row["last"]) - trained) / SETTINGS["count"]
        ends.append(bootstrap_interval(gap, draws=SETTINGS["draws"]))
    low = np.min(ends, axis=0)[0]
    high = np.max(ends, axis=0)[1]
    record = count(alone) | {"n": len(trained), "verdict": verdict(low > 0)}
    return record | {"interval": [round(float(low), 4), round(float(high), 4)]}
