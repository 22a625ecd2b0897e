"""Do three published results hold in other forms than the one that was asked first?

What varies: the form. A story in place of the sentence about the drink; shorter and longer
rows of tokens, and rows of words; prose in place of poems, and letters that many others
stand before. ``published.toml`` says of each what was known, and the rule by which the row
is then judged. Rival: the form that was asked first, whose outcomes are those of the study
*famous*. Null: as there. Statistic: the mean logit difference of the other stories; its
interval is over stories.

Model: SmolLM2-135M-Instruct, or what stands in its place.
"""

import numpy as np
import torch

from lmcourse.data import corpora_folder
from lmcourse.numbers import bootstrap_interval
from lmcourse.prompts import NAMES, errands
from studies.famous.outcomes import above, below, both, outcome, rounded
from studies.famous.smollm2 import (
    beginnings,
    bits_of,
    continued,
    letters_in,
    name_gaps,
    poem_tokens,
    talker,
)
from studies.famous.words import NOUNS, TASKS, THINGS
from studies.harness import grid, verdict
from studies.measures import ratio_of_sums

CHAPTER = "famous"
CLAIM = (
    "Two findings hold of SmolLM2 in the form that was asked first and fail in another: "
    "who gets the drink, and repeated tokens"
)
RIVAL = "the form that was asked first"
NULL = "a third person gives; the second half of a row is another row"
SETTINGS = {"results": ["errand", "repeats", "letters"]}


def plan(small):
    """Return the settings of all runs, one for each of "errand", "repeats" and "letters".

    Parameters
    ----------
    small : bool
        Whether to measure on few texts.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "results"; ``name``, the result that
        is measured; ``small``, whether on few texts.
    """
    return grid(group="results", name=SETTINGS["results"], small=small)


def run(folder, group, name, small):
    """Measure one result in its other forms.

    Parameters
    ----------
    folder : Path
        Unused.
    group : {"results"}
        The only kind of run; unused.
    name : str
        "errand", "repeats" or "letters".
    small : bool
        Whether on few texts.

    Returns
    -------
    dict
        The setting ``name``; ``forms``: name of each form → the mean (``ours``), its
        ``interval``, ``null``, ``n`` and whether it ``holds``.
    """
    return {"name": name, "forms": measure(name, small)}


def measure(name, small=False):
    """Measure one result in its other forms: call the function of its name.

    Parameters
    ----------
    name : {"errand", "repeats", "letters"}
        The published result.
    small : bool
        Whether on few texts.

    Returns
    -------
    dict of str to dict
        Name of each form, such as "stories" or "short" → the mean (``ours``), its 95 %
        ``interval``, ``null``, the mean where there is nothing to find, ``n``, the verdict
        (``holds``: True, False, or None if it is too close to say), and what the function
        of the result's name adds.
    """
    asked = {"errand": errand, "repeats": repeats, "letters": letters}
    return asked[name](small)


def summary(results):
    """Return what is stored beside the outcomes.

    Parameters
    ----------
    results : dict of str to list of dict
        "results" → a dict for each published result: ``name``, and ``forms``, name of each
        form → a dict with ``holds`` (True, False, or None if it is too close to say), ``n``
        and ``interval``.

    Returns
    -------
    dict
        ``n``, how many stories; ``seeds``; ``interval`` at 95 % of the mean difference of
        two names' logits in these stories; ``verdict``, "holds" or "not so": whether the
        results "errand" and "repeats" each fail in one of their forms.
    """
    forms = {row["name"]: row["forms"] for row in results["results"]}
    fails = [
        any(form["holds"] is False for form in forms[name].values())
        for name in ("errand", "repeats")
    ]
    stories = forms["errand"]["stories"]
    return {
        "n": stories["n"],
        "seeds": [0],
        "interval": stories["interval"],
        "verdict": verdict(all(fails)),
    }


def over_forms(said):
    """Return the verdict on a row from what its rule says of each form.

    Parameters
    ----------
    said : list of bool or None
        For each form, whether the rule is met; None where that is too close to say.

    Returns
    -------
    str
        "it depends" if it is met in one form and not in another, however close the others
        are; "holds" or "not so" if all say so; else "too close to say".
    """
    if True in said and False in said:
        return "it depends"
    if None in said:
        return "too close to say"
    return "holds" if said[0] else "not so"


# --- other stories -----------------------------------------------------------------------

# Of two people, a place, who gives, a thing, as `lmcourse.prompts.ERRAND`; most do without
# place and thing. An attack asked the first.
STORIES = [
    "Friends {} and {} found something at the {}. Later that day, {} decided to give the "
    "{} to",
    "My neighbours {0} and {1} hardly speak. Yesterday, at last, {3} apologised to",
    "{0} sat beside {1} on a night train. Somewhere before dawn, {3} offered half of an "
    "orange to",
    "Two bakers, {0} and {1}, share one kitchen. Every evening {3} carries fresh loaves "
    "over to",
    "{0} lost at chess against {1}. Smiling, {3} stood up and reached out a hand to",
    "Dear diary: {0} and {1} are no longer cross. Last night {3} sang an old song to",
    "{0} and {1} grew up in one village. Years passed, and every winter {3} sent a parcel "
    "to",
    "It was raining hard on {0} and {1}. Without a word {3} handed the umbrella to",
    "The twins {0} and {1} had one bicycle. On Sunday {3} lent it to",
    "{0} taught maths and {1} taught music. In the corridor {3} whispered something to",
]


def errand(small=False):
    """Measure whom SmolLM2 names in ten other stories, the one who gets it or who gives.

    The stories (`STORIES`) end before a name, such as "… and every winter Tom sent a parcel
    to"; each is read with several pairs of names.

    Parameters
    ----------
    small : bool
        Whether to take four pairs of names for each in place of 20.

    Returns
    -------
    dict
        ``stories``: a dict with the mean (``ours``) of the gap of two names' logits, the
        receiver's less the giver's, its 95 % ``interval``, the mean where a third person
        gives (``null``), ``n`` and the verdict (``holds``, True, False or None), each value
        the mean of a story; also ``ahead``, the share of sentences in which the right name
        is ahead; ``lowest`` and ``highest``, the means of single stories; ``fewest``, the
        least share of sentences of a story in which the right name is ahead; ``in_most``,
        in how many stories it is ahead in 95 of 100.
    """
    count = 4 if small else 20
    gaps = []
    without = []
    for seed, form in enumerate(STORIES):
        sentences = errands(count, seed=seed, form=form)
        gaps.append(name_gaps(*sentences))
        without.append(name_gaps(third_gives(sentences), sentences.other, sentences.giver))
    gaps = np.array(gaps)  # (stories, sentences)
    without = np.array(without)  # (stories, sentences)
    ahead = (gaps > 0).mean(1)
    return {
        "stories": outcome(
            gaps.mean(1),
            without.mean(),
            lambda mean, span: both(above(span, 0), float(ahead.mean()) >= 0.95),
            ahead=float(ahead.mean()),
            lowest=float(gaps.mean(1).min()),
            highest=float(gaps.mean(1).max()),
            fewest=float(ahead.min()),
            in_most=int((ahead >= 0.95).sum()),
        )
    }


def third_gives(told):
    """Return the same sentences with somebody else giving, so that neither name is right.

    Parameters
    ----------
    told : Errands
        Named tuple of three lists with an entry for each sentence: ``texts``, ``other``,
        the name of the person who gets something, and ``giver``, that of the giver.

    Returns
    -------
    list of str
        The texts; the giver's second mention is the name of a third person, the first of
        `NAMES` that is neither of the two.
    """
    texts = []
    for text, *pair in zip(*told, strict=True):
        third = next(name for name in NAMES if name not in pair)
        start, end = text.rsplit(f" {pair[1]} ", 1)
        texts.append(f"{start} {third} {end}")
    return texts


# --- other rows --------------------------------------------------------------------------


def repeats(small=False):
    """Measure whether SmolLM2 continues shorter and longer rows, and rows of words.

    Tokens are drawn at random, and the row is read twice.

    Parameters
    ----------
    small : bool
        Whether to read few rows.

    Returns
    -------
    dict
        ``short`` (rows of 10 tokens), ``long`` (50) and ``words`` (25, each a word): a dict
        each, with the mean (``ours``), its 95 % ``interval``, the mean where there is
        nothing to find (``null``), ``n`` and the verdict (``holds``: True, False, or None
        if it is too close to say) of the share of tokens that are predicted in the
        repetition; also ``length``, how many tokens a row has; ``heads``, how many heads
        attend to the token after the earlier occurrence; ``null_heads``, how many do where
        the second half is another row.
    """
    few = 4 if small else 30
    many = 6 if small else 60
    known = torch.arange(100, talker()[1].config.vocab_size)
    return {
        "short": measure_repetition(known, many, 10),
        "long": measure_repetition(known, few, 50),
        "words": measure_repetition(word_tokens(), many, 25),
    }


def measure_repetition(known, count, length):
    """Measure how random rows are continued when they are read for the second time.

    Parameters
    ----------
    known : int64 Tensor of shape (tokens,)
        Ids from which they are drawn.
    count, length : int
        How many rows, and how many tokens each has.

    Returns
    -------
    dict
        Of the share of tokens that are predicted in the repetition, a number for each row:
        ``ours``, the mean; ``interval``, that of the mean at 95 %; ``n``, how many numbers;
        ``null``, the mean where the second half is another row; ``holds``, whether the
        interval is above 0.5 and ``heads`` above 0, or None if it is too close to say.

        Also ``length``, how many tokens a row has; ``heads``, how many heads attend to the
        token after the earlier occurrence, and ``null_heads``, the same where the second
        half is another row.
    """
    generator = torch.Generator().manual_seed(length)
    rows = known[torch.randint(len(known), (2, count, length), generator=generator)]
    hits, heads = continued(torch.cat([rows[0], rows[0]], 1), length)
    null_hits, null_heads = continued(torch.cat([rows[0], rows[1]], 1), length)
    return outcome(
        hits,
        null_hits.mean(),
        lambda mean, span: both(above(span, 0.5), heads > 0),
        length=length,
        heads=heads,
        null_heads=null_heads,
    )


def word_tokens():
    """Return ids of SmolLM2's that are whole words, int64 Tensor (words,).

    The words are the nouns, the things and those of the tasks in `studies.famous.words`;
    each is encoded after a space, and those that take more than one token are left out.
    """
    words = {word for task in TASKS for each in task.values() for word in each}
    words = sorted(words.union(NOUNS, THINGS))
    encoded = [talker()[0](f" {word}").input_ids for word in words]
    return torch.tensor([ids[0] for ids in encoded if len(ids) == 1])


# --- other texts -------------------------------------------------------------------------

TOKENS = 64  # of each text that are counted
BEFORE = 32  # tokens that are read first, where they are: a hundred letters or so


def prose():
    """Return paragraphs of this book's prose, a list of str, from ``prose.txt``."""
    text = (corpora_folder() / "prose.txt").read_text(encoding="utf-8")
    return text.strip().split("\n\n")


def letters(small=False):
    """Measure how many bits a letter SmolLM2 needs for prose, and late in a text.

    Parameters
    ----------
    small : bool
        Whether to read four texts of each kind.

    Returns
    -------
    dict
        ``prose``, ``prose_late`` and ``poems_late``: the bits a letter, a dict each, with
        the mean (``ours``), its 95 % ``interval``, what a model needs to which all tokens
        are alike (``null``), ``n`` texts and whether it ``holds`` (True, False or None);
        also ``letters_before``, how many letters were read first. Of each text 64 tokens
        are counted; *late* are those before which 32 were read.
    """
    count = 4 if small else 30
    known = TOKENS + BEFORE
    paragraphs = beginnings(prose(), 4 if small else None, known)
    return {
        "prose": bits_a_letter(paragraphs[:, :TOKENS]),
        "prose_late": bits_a_letter(paragraphs, BEFORE),
        "poems_late": bits_a_letter(poem_tokens(count, known), BEFORE),
    }


def bits_a_letter(ids, before=1):
    """Measure the bits that SmolLM2 needs for each letter or space.

    Parameters
    ----------
    ids : int64 Tensor of shape (texts, tokens)
        Numbers of tokens.
    before : int
        How many tokens of each text are read first and not counted, one at least.

    Returns
    -------
    dict
        The bits a letter, of sums over all texts (``ours``), their 95 % ``interval``, what
        a model needs to which all tokens are alike (``null``), ``n`` texts and the verdict
        (``holds``: True below 1.3, False, or None if it is too close to say); also
        ``letters_before``, how many letters stand before those that are counted, in the
        text where they are fewest.
    """
    read = ids[:, :before]
    bits = bits_of(ids)
    sizes = letters_in(ids)
    if before > 1:
        bits = bits - bits_of(read)
        sizes = sizes - letters_in(read)
    span = bootstrap_interval(bits, sizes, statistic=lambda bits, sizes, axis:
                              ratio_of_sums(bits, sizes, axis))  # fmt: skip
    tokens = ids.shape[1] - before
    alike = len(ids) * tokens * np.log2(talker()[1].config.vocab_size)
    letters_before = [len(talker()[0].decode(row)) for row in read]
    result = outcome(
        bits / sizes,
        alike / sizes.sum(),
        lambda mean, _: below(span, 1.3),
        letters_before=min(letters_before),
    )
    return result | rounded({"ours": bits.sum() / sizes.sum(), "interval": list(span)})
