"""Where does a small GPT need what stands far back, and how does it know a line is over?

What varies: how many characters a model is shown before each that it predicts, by the kind
of character, on the test sonnets. And what the line holds up to a mark, where a space or a
new line follows, on the validation and the test sonnets. The models are the whole GPT of
the study *ladder* from three seeds, the course's GPT, and an n-gram model.

Rivals: n-gram models; the number of words, of syllables, and the letters themselves, each
changed by itself.

Null: a model with shuffled weights.

Statistic: the mean loss in nats a character; the mean probability of a new line.
"""

import numpy as np
import torch

from lmcourse import lines
from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.inside import losses_at
from lmcourse.ngrams import NgramModel
from lmcourse.shuffled import shuffled_weights
from lmcourse.tokenization import CharTokenizer
from studies.harness import alike, count, verdict
from studies.mini_gpt.ladder import REACHES, RUNGS, train_rung

CHAPTER = "mini-gpt"
AFTER = ("sonnets",)
CLAIM = (
    "GPTs trained on the Sonnets know by its number of characters when a line is over, "
    "whatever the characters are"
)
RIVAL = "the number of words, the syllables, or the letters of the line"
NULL = "a model with shuffled weights"
BEST = {"spread": 0.05, "rate": 0.01}  # of the whole GPT, by the study *ladder*
SEEDS = (1, 2, 3)
CONTEXT = 64  # characters before each position that is tested
ORDER = 6  # of n-grams, as the study *ladder* chose
SETTINGS = {"reaches": list(REACHES), "order": ORDER, "context": CONTEXT, **BEST}
CHANGES = {
    "as written": str,
    "letters shuffled": lines.shuffled,
    "one letter throughout": lines.one_letter,
    "no vowels": lines.no_vowels,
    "no spaces": lines.no_spaces,
    "words halved": lines.words_halved,
    "20 characters fewer": lines.cut_short,
    "20 characters more": lines.lengthened,
}


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to train two models for two steps, and to test at few positions.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "trained", "course" (the course's
        GPT) or "counting" (n-gram models); ``every``: one position in so many is tested; of
        "trained" also ``seed``, 1 to 3, and ``steps`` of training, 1,000.
    """
    every = {"every": 200 if small else 1}
    steps = {"steps": 2 if small else 1000}
    seeds = SEEDS[: 2 if small else 3]
    trained = [{"group": "trained", "seed": seed} | steps | every for seed in seeds]
    return [*trained, {"group": "course"} | every, {"group": "counting"} | every]


def run(folder, group, every, seed=0, steps=0):
    """Test the whole GPT of the study *ladder*, trained here, the course's, or n-grams.

    Parameters
    ----------
    folder : Path
        Unused: no weights are saved.
    group : {"trained", "course", "counting"}
        What is tested: a GPT trained here, the course's GPT, or an n-gram model.
    every : int
        Test at one position in so many.
    seed, steps : int, optional
        Of a model that is trained: of all that is drawn, and how many steps.

    Returns
    -------
    dict
        The setting ``seed``; ``reach``: kind of character ("line ends", "first letters",
        "other letters" or "other") → how many characters the model was shown, a str from
        "1" to "64" → mean loss in nats a character; ``lines``: name of a change of the text
        that is shown, a key of `CHANGES` such as "no vowels" → the mean probability of a
        new line, a dict, ``ends`` after punctuation at line ends and ``inside`` after
        other punctuation, and "n" → how many there are of both; of a GPT ``shuffled``, the
        same as ``lines`` with shuffled weights.
    """
    tokenizer = CharTokenizer(load_corpus("sonnets"))
    texts = train_val_test_split(load_texts("sonnets"))
    parts = [torch.tensor(tokenizer.encode(text)) for text in texts]
    if group == "counting":
        return count_lines(tokenizer, texts, every)
    if group == "course":
        _, model, _ = load_gpt("sonnets", device="cpu")
    else:
        model = train_rung(tokenizer, parts, RUNGS[-1], seed, **BEST, steps=steps).gpt
    positions = torch.arange(CONTEXT, len(parts[2]), every)
    losses = {reach: losses_at(model, parts[2], positions, reach) for reach in REACHES}

    def new_line(seen):
        """Return how probable a new line, not a space, is after each text: array (texts,).

        ``seen`` : list of str.
        """
        return lines.new_line_probs(model, tokenizer, seen).numpy()

    row = {"seed": seed, "reach": by_kind(texts[2], positions.numpy(), losses)}
    row["lines"] = line_probs(texts[1:], new_line, every)
    model = shuffled_weights(model)
    return row | {"shuffled": line_probs(texts[1:], new_line, every)}


def count_lines(tokenizer, texts, every):
    """Test n-gram models of several lengths as the GPTs are tested.

    Parameters
    ----------
    tokenizer : CharTokenizer
    texts : sequence of str
        The training, validation and test text.
    every : int
        Test at one position in so many.

    Returns
    -------
    dict
        ``seed``, 0; ``reach``: kind of character ("line ends", "first letters", "other
        letters" or "other") → characters shown, a str from "1" to "64" → mean loss in nats
        a character of n-grams that see about as far; ``lines``: change of the line, a key
        of `CHANGES` such as "no vowels" → the mean probability of a new line rather than a
        space by 6-grams, which the study *ladder* chose: a dict, ``ends`` after punctuation
        at line ends and ``inside`` after other punctuation, and "n" → how many there are
        of both.
    """
    training, _, test = (np.array(tokenizer.encode(text)) for text in texts)
    models = {
        n: NgramModel(training, n, tokenizer.vocab_size) for n in {*REACHES.values(), ORDER}
    }
    positions = np.arange(CONTEXT, len(test), every)
    losses = {
        reach: -np.log(models[n].probabilities(test))[positions]
        for reach, n in REACHES.items()
    }
    newline, space = tokenizer.encode("\n ")

    def new_line(seen):
        """Return how probable a new line, not a space, is after each text: array (texts,).

        ``seen`` : list of str.
        """
        probs = [models[ORDER].next_probs(tokenizer.encode(text)) for text in seen]
        return np.array([each[newline] / (each[newline] + each[space]) for each in probs])

    row = {"seed": 0, "reach": by_kind(texts[2], positions, losses)}
    return row | {"lines": line_probs(texts[1:], new_line, every)}


def kinds_of(text):
    """Return which characters of a text are of which kind.

    Parameters
    ----------
    text : str

    Returns
    -------
    dict of str to bool array of shape (characters,)
        Keys "line ends", which are new lines and the punctuation before them, "first
        letters" of words, "other letters" and "other". Each character has one kind.
    """
    letters = np.array([character.isalpha() or character in "'’" for character in text])
    newlines = np.array([character == "\n" for character in text])
    marks = np.array([character in lines.MARKS for character in text])
    ends = newlines | (marks & np.append(newlines[1:], False))
    follows_letter = np.append(False, letters[:-1])
    return {
        "line ends": ends,
        "first letters": letters & ~follows_letter,
        "other letters": letters & follows_letter,
        "other": ~letters & ~ends,
    }


def by_kind(text, positions, losses):
    """Return mean losses by the kind of character.

    Parameters
    ----------
    text : str
        The test text.
    positions : int array of shape (positions,)
        Of the characters in the text, from 0.
    losses : dict of int to array of shape (positions,)
        Characters shown → the loss at each position, in nats.

    Returns
    -------
    dict
        Kind ("line ends", "first letters", "other letters" or "other") → characters shown,
        a str → mean loss. A kind at no position is missing.
    """
    return {
        kind: {str(r): round(float(each[at].mean()), 4) for r, each in losses.items()}
        for kind, chosen in kinds_of(text).items()
        if (at := chosen[positions]).any()
    }


def line_probs(texts, new_line, every):
    """Return the mean probability of a new line after punctuation, by change of the line.

    Parameters
    ----------
    texts : sequence of str
        The validation and the test text.
    new_line : callable
        From a list of str, the 64 characters before a place at most, the line changed, to
        the probability of a new line rather than a space after each, an array.
    every : int
        One mark of punctuation in ``every // 10`` is asked: with 200 every twentieth, below
        20 every one.

    Returns
    -------
    dict of str to dict
        Change, a key of `CHANGES` such as "no vowels" → ``ends``, the mean after marks at
        line ends; ``inside``, after others. "n" → how many marks of either kind there are.
    """
    at = [
        (text, position)
        for text in texts
        for position in lines.after_marks(text, CONTEXT)[:: max(1, every // 10)]
    ]
    ends = np.array([text[position] == "\n" for text, position in at])
    by_change = {}
    for name, change in CHANGES.items():
        seen = [lines.before(text, position, change, CONTEXT) for text, position in at]
        probs = new_line(seen)
        means = {"ends": probs[ends].mean(), "inside": probs[~ends].mean()}
        by_change[name] = {where: round(float(mean), 4) for where, mean in means.items()}
    return by_change | {"n": {"ends": int(ends.sum()), "inside": int((~ends).sum())}}


def summary(results):
    """Say whether the models go by the number of characters.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs; those of "trained" and "course" have ``lines``: change
        of the line, such as "no vowels" → mean probability of a new line, 0 to 1, after
        marks, dict with ``ends``, at line ends, and ``inside``; those of "trained" also
        ``seed``.

    Returns
    -------
    dict
        ``n``, the number of outcomes of "trained", and their ``seeds``; ``interval``,
        [lowest, highest] over the models of the probability of a new line at line ends with
        one letter throughout less that with 20 characters fewer; ``verdict``, "holds" or
        "not so": whether every change that keeps the number of characters keeps that
        probability above a half, and every one that lowers the number lowers it below a
        half.
    """
    runs = [*results["trained"], *results.get("course", [])]
    at_ends = [
        {change: probs["ends"] for change, probs in row["lines"].items()} for row in runs
    ]
    fewer = ("words halved", "20 characters fewer")
    same = [change for change in CHANGES if "20" not in change and change not in fewer]
    holds = all(
        min(row[change] for change in same) > 1 / 2
        and max(row[change] for change in fewer) < 1 / 2
        for row in at_ends
    )
    gaps = [row["one letter throughout"] - row["20 characters fewer"] for row in at_ends]
    counted = count(alike(results["trained"]))
    return counted | {"interval": [min(gaps), max(gaps)], "verdict": verdict(holds)}
