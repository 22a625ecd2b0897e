"""What the chapter *mini-gpt* claims, checked where the page places it.

The ``page`` of a proof or a null is a `studies.findings.Page`: the names that the page has
defined so far, as attributes. Losses are in nats a character. ``page.climbed``,
``page.sized`` and ``page.ended`` are the results of the studies *ladder*, *sizes* and
*line-ends*.
"""

import copy
import itertools
import math

import numpy as np
import torch

from lmcourse import lines, train
from lmcourse.data import load_texts
from lmcourse.gpt import training
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.generation import generate
from lmcourse.gpt.inside import losses_at
from lmcourse.gpt.stored_runs import BEST_NGRAMS, COURSE, gains, losses_alone
from lmcourse.gpt.training import TrainingConfig
from lmcourse.ngrams import NgramModel
from lmcourse.numbers import bootstrap_interval
from lmcourse.shuffled import shuffled_weights
from studies import nulls
from studies.findings import Page, finding, proof
from studies.harness import alike
from studies.measures import extremes, ratio_of_sums
from studies.mini_gpt.ngram_lengths import mean_gain

MIDDLE = (33, 53)  # nearly all of Shakespeare's lines have so many characters
SAME_LENGTH = ["letters shuffled", "one letter throughout", "no vowels", "no spaces"]
SHORTER = ["words halved", "20 characters fewer"]
LONGER = "20 characters more"
LONG = (5, 6, 7, 8)  # lengths of n-grams
close = torch.testing.assert_close


# --- the text -----------------------------------------------------------------------------


@proof("Each sonnet is in one of the three parts, and each part has early and late ones.")
def parts_are_whole(page: Page):
    """Check that each sonnet is in one part, and each part has early and late ones.

    Early: before the twentieth; late: after the hundred and fortieth.

    The corpus is the same after it was made ids and text again.

    Parameters
    ----------
    page : Page
        ``parts`` are the texts for training, validation and test, each a str of sonnets
        with an empty line between them; ``tokenizer`` makes ids of a text and back;
        ``sonnets_text`` is the corpus, a str.

    Returns
    -------
    dict
        ``characters``, of the corpus; ``vocab``, how many different ones; ``validation``
        and ``test``, how many sonnets these parts have.
    """
    sonnets = load_texts("sonnets")
    numbers = {text: number for number, text in enumerate(sonnets, 1)}
    split = [part.removesuffix("\n").split("\n\n") for part in page.parts]
    assert sorted(itertools.chain(*split)) == sorted(sonnets)
    for part in split:
        assert min(numbers[text] for text in part) < 20
        assert max(numbers[text] for text in part) > 140
    ids = page.tokenizer.encode(page.sonnets_text)
    assert page.tokenizer.decode(ids) == page.sonnets_text
    return {
        "characters": len(page.sonnets_text),
        "vocab": page.tokenizer.vocab_size,
        "validation": len(split[1]),
        "test": len(split[2]),
    }


@proof("Targets are the inputs one character later, and the package cuts the same windows.")
def targets_are_next(page: Page):
    """Check that targets are the inputs one character later, as the package cuts them.

    The page's batch is that of the first three windows of the training text.

    Parameters
    ----------
    page : Page
        ``inputs`` and ``targets`` are a batch, (batch, context) each; ``train_ids`` are the
        ids of the training text, (characters,); ``context`` is the length of a window.

    Returns
    -------
    dict
        ``context``: how many characters a window has.
    """
    close(page.inputs[:, 1:], page.targets[:, :-1])
    starts = torch.arange(3)
    want = training.cut_windows(page.train_ids, starts, page.context)
    close((page.inputs, page.targets), want)
    return {"context": page.context}


@proof("Of n-grams up to eight characters, those of about six predict new sonnets best.")
def best_ngrams(page: Page):
    """Check that n-grams of five to seven characters have the lowest validation loss.

    Longer ones are within 0.02 nats of the best, four is more than 0.05 above it.

    The study *ladder* has the same order, and its loss within 0.001.

    ``held_out`` is their test loss by which sonnets are held out: each of the ten shares of
    every tenth sonnet in turn, eight other tenths being counted.

    Parameters
    ----------
    page : Page
        ``ladder``: length → n-gram model; ``counted``: a Series, length → its validation
        loss; ``best_n`` is the best length; ``guess`` the loss of equal probabilities;
        ``climbed["counting"]``: one dict with the ``order`` that the study *ladder* chose
        and its ``validation`` loss; ``tokenizer``, of characters, of which there are
        ``vocab_size``. Losses are in nats a character.

    Returns
    -------
    dict
        ``n``: the best length; losses ``guess``, ``pairs`` and ``best``; ``held_out``:
        lowest and highest over the ten shares.
    """
    best = page.counted[page.best_n]
    assert page.best_n in (5, 6, 7)
    assert page.counted[5:].max() < best + 0.02
    assert best < page.counted[4] - 0.05
    stored = page.climbed["counting"][0]
    assert stored["order"] == page.best_n
    assert abs(stored["validation"] - best) < 1e-3
    sonnets = load_texts("sonnets")
    return {
        "n": page.best_n,
        "guess": page.guess,
        "pairs": float(page.counted[2]),
        "best": float(best),
        "held_out": extremes([held_out_loss(page, sonnets, share) for share in range(10)]),
    }


def held_out_loss(page, sonnets, share) -> float:
    """Return the loss of n-grams on every tenth sonnet, counted in eight other tenths.

    So the page's own validation text is one of them.

    Parameters
    ----------
    page : Page
        ``tokenizer`` encodes a text to a list of int; ``vocab_size``, how many characters
        there are; ``best_n``, the length of the n-grams.
    sonnets : list of str
        All of them.
    share : int
        From 0 to 9: which tenth.

    Returns
    -------
    float
        In nats a character.
    """
    left_out = (share, (share + 5) % 10)
    counted = [text for i, text in enumerate(sonnets) if i % 10 not in left_out]
    own, new = (
        page.tokenizer.encode("\n\n".join(texts)) for texts in (counted, sonnets[share::10])
    )
    return NgramModel(own, page.best_n, page.vocab_size).loss(new)


# --- the model ----------------------------------------------------------------------------


@proof("The page's model has as many parameters as the formula says, however many heads.")
def parameters_by_formula(page: Page):
    """Check that the page's model has as many parameters as the formula says.

    These are two tables, and for each block four square matrices and a network four times
    as wide.

    Parameters
    ----------
    page : Page
        ``MiniGPT`` is the lesson's class, made with a number of characters and ``heads``,
        ``fresh`` one with two layers of width 64; ``vocab_size`` and ``context``, how many
        characters there are, and how many a window has.

    Returns
    -------
    dict
        ``parameters``: how many.
    """
    layers = 2
    width = 64
    attention = 4 * (width * width + width)
    feed_forward = (4 * width * width + 4 * width) + (4 * width * width + width)
    norms = 2 * 2 * width
    tables = (page.vocab_size + page.context) * width
    want = tables + layers * (attention + feed_forward + norms) + 2 * width
    assert parameters_of(page.fresh) == want
    for heads in (heads for heads in range(1, width + 1) if width % heads == 0):
        assert parameters_of(page.MiniGPT(page.vocab_size, heads=heads)) == want
    return {"parameters": want}


def parameters_of(model) -> int:
    """Return how many parameters a model has.

    Parameters
    ----------
    model : nn.Module
    """
    return sum(weight.numel() for weight in model.parameters())


@proof(
    "With PyTorch's first weights the model repeats characters; with small ones it guesses."
)
def first_loss(page: Page):
    """Check the loss of a model with PyTorch's first weights, and with small ones.

    With PyTorch's, in 45 windows more than 95 % of the likeliest characters are the last
    one again.

    The loss is more than 5 nats above that of equal probabilities; with small weights it is
    within 0.2 of it.

    Parameters
    ----------
    page : Page
        ``fresh`` is a model with PyTorch's first weights, ``small`` one with small weights;
        ``estimate`` is a function from a model and ids to the loss, in nats a character;
        ``val_ids`` are those of the validation text, (characters,); ``guess`` is the loss
        of equal probabilities; ``Windows`` makes of ids a sequence of windows and their
        targets, (context,) each; ``device`` is where the models are.

    Returns
    -------
    dict
        ``bad`` and ``good``: losses with PyTorch's and with small first weights;
        ``answer``: the letter of the right choice.
    """
    bad = page.estimate(page.fresh, page.val_ids)
    good = page.estimate(page.small, page.val_ids)
    assert bad > page.guess + 5
    assert abs(good - page.guess) < 0.2
    windows = page.Windows(page.val_ids)
    ids = torch.stack([windows[start][0] for start in range(0, 9000, 200)]).to(page.device)
    with torch.no_grad():
        repeats = page.fresh(ids).argmax(dim=-1) == ids
    assert repeats.double().mean() > 0.95
    return {"bad": bad, "good": good, "answer": "a" if bad > 2 * page.guess else "c"}


@proof(
    "The learning rate rises in the warm-up and falls to a tenth, as the package's does."
)
def rate_is_the_packages(page: Page):
    """Check the lesson's learning rate against the package's.

    At each of 400 steps, of which 40 are the warm-up.

    Parameters
    ----------
    page : Page
        ``rate`` is the lesson's function, from a step and the number of steps to the share
        of the highest learning rate, 0 to 1.

    Returns
    -------
    dict
        ``last``: the share at the end.
    """
    plan = TrainingConfig(steps=400, warmup=40)
    shares = [page.rate(step, 400) for step in range(401)]
    close(shares, [training.schedule(step, plan) for step in range(401)])
    assert max(shares) == shares[40] == 1
    assert abs(shares[-1] - 0.1) < 1e-12
    return {"last": shares[-1]}


@proof(
    "After 150 steps the model beats 2-grams; after 1,000 it is behind the best n-grams."
)
def learned_so_far(page: Page):
    """Check that after 150 steps the GPT beats 2-grams, and after 1,000 not the best.

    By the estimate on validation windows; 1,000 steps are those of three stored runs.

    Before the first step the loss is within 0.2 of that of equal probabilities.
    `counting_adds_more` compares losses on the test text.

    Parameters
    ----------
    page : Page
        ``history``: a DataFrame of the page's run by step, with the column ``validation``;
        ``runs``: three stored runs, dicts with ``history``, lists of step, training and
        validation loss; ``guess``, the loss of equal probabilities; ``counted``: a Series,
        length of n-grams → validation loss; ``best_n``, the best length. Losses are in nats
        a character.

    Returns
    -------
    dict
        ``perplexity`` after 150 steps; ``final``: lowest and highest loss of the three
        stored runs.
    """
    last = page.history.validation[150]
    last_losses = [run["history"][-1][2] for run in page.runs]
    assert abs(page.history.validation[0] - page.guess) < 0.2
    assert last < page.counted[2]
    assert len(page.runs) == 3
    assert min(last_losses) > page.counted[page.best_n]
    return {"perplexity": math.exp(last), "final": extremes(last_losses)}


# --- line ends ----------------------------------------------------------------------------


def ngrams_instead(page: Page):
    """An n-gram model in the place of each GPT.

    Parameters
    ----------
    page : Page
        ``ended``: dict, "trained", "course" or "counting" → list of dict, one a model, with
        ``reach``: kind of character → characters shown, a str → mean loss; of "counting",
        n-grams, there is one.

    Returns
    -------
    Page
        A page like this one; in ``ended``, every GPT has the ``reach`` of the n-grams.
    """
    (counting,) = page.ended["counting"]
    groups = {
        group: [row | {"reach": counting["reach"]} for row in page.ended[group]]
        for group in ("trained", "course")
    }
    return page.replaced(ended=page.ended | groups)


@finding(
    "On new sonnets, text more than five characters back helps GPTs predict the ends of "
    "lines, but hardly helps them predict letters.",
    rival="n-grams that see as far; lines of another length: at the ends of Dickinson's "
    "the far text makes the course's GPT worse by {dickinson:.1f} nats",
    null=ngrams_instead,
    n="{characters:,} characters of 15 held-out sonnets, 4 models",
    interval="{ends:.2f} nats at line ends, at most {letters:.2f} at letters (lowest and "
    "highest of four models); {spaces:.2f} at spaces after a mark, {inner:.2f} lost at "
    "marks within lines (the course's GPT)",
)
def far_text_helps_at_line_ends(page: Page):
    """Check that text more than five characters back helps GPTs most at line ends.

    Three small GPTs and the course's are shown 64 characters and five.

    A line's end is its new line and the mark before it. There each model gains more than
    0.4 nats a character by the text that is further back, and more than 0.1 by what is more
    than twenty characters back. At first letters of words and at other letters it gains
    less than a tenth of that, and at the rest, spaces and other marks, less than a fourth.
    N-grams gain less than 0.05 nats at line ends. At the spaces after marks within lines
    the course's GPT gains more than 0.4 nats, too; at the marks within lines it loses more
    than 0.3, and at new lines of Dickinson's poems more than a nat.

    Parameters
    ----------
    page : Page
        ``ended``: dict, "trained" (small GPTs), "course" (one) or "counting" (n-grams) →
        list of dict, one a model, with ``reach``: kind of character ("line ends", "first
        letters", "other letters" or "other") → characters shown, "5", "64" … → mean loss in
        nats; ``parts.test``, the test text, a str; ``context``, 64; ``tokenizer``, of
        characters.

    Returns
    -------
    dict
        ``ends``: lowest and highest gain at line ends of four models; ``letters``: the
        largest at letters. ``five`` and ``all``: mean losses of the small GPTs at line ends
        with five characters and with 64. Of the course's GPT: ``spaces``, what it gains at
        spaces after a mark; ``inner`` and ``dickinson``, what it loses at marks within
        lines and at Dickinson's new lines. ``characters``: how many were tested;
        ``answer``: the letter of the right choice.
    """
    trained = [row["reach"] for row in page.ended["trained"]]
    gained = {
        kind: np.array([far_gain(each[kind]) for each in (*trained, *course_reach(page))])
        for kind in trained[0]
    }
    ends = gained["line ends"]
    letters = np.maximum(gained["first letters"], gained["other letters"])
    counting = page.ended["counting"][0]["reach"]["line ends"]
    assert len(ends) == 4
    assert ends.min() > 0.4
    for reach in (*trained, *course_reach(page)):
        assert reach["line ends"]["20"] - reach["line ends"]["64"] > 0.1
    assert (letters < ends / 10).all()
    assert (gained["other"] < ends / 4).all()
    assert far_gain(counting) < 0.05
    elsewhere = gained_by_the_courses(page)
    assert elsewhere["spaces"] > 0.4
    assert elsewhere["marks"] < -0.3
    assert elsewhere["dickinson"] < -1
    at_ends = [reach["line ends"] for reach in trained]
    return {
        "ends": extremes(ends),
        "letters": float(letters.max()),
        "five": float(np.mean([losses["5"] for losses in at_ends])),
        "all": float(np.mean([losses["64"] for losses in at_ends])),
        "spaces": elsewhere["spaces"],
        "inner": -elsewhere["marks"],
        "dickinson": -elsewhere["dickinson"],
        "characters": len(page.parts.test) - page.context,
        "answer": "b" if ends.min() > letters.max() else "a",
    }


def gained_by_the_courses(page) -> dict[str, float]:
    """Return what the course's GPT gains by 64 characters over five, at some characters.

    Parameters
    ----------
    page : Page
        ``parts.test``: the test text, a str; ``tokenizer``, with ``encode`` and
        ``alphabet``; ``context``: 64.

    Returns
    -------
    dict
        Mean gains in nats. ``spaces``: at spaces after a mark, in the test text; ``marks``:
        at marks there after which no new line comes; ``dickinson``: at about
        300 line ends, one in so many, of those of Dickinson's poems that have no other
        characters than the Sonnets.
    """
    _, model, _ = load_gpt("sonnets", device="cpu")
    text = page.parts.test
    alphabet = {*page.tokenizer.alphabet}
    poems = "\n\n".join(poem for poem in load_texts("poems") if {*poem} <= alphabet)
    after_marks = lines.after_marks(text, page.context)
    inner = [
        position
        for position in range(page.context, len(text) - 1)
        if text[position] in lines.MARKS and text[position + 1] != "\n"
    ]
    line_ends = [
        position
        for position in range(page.context, len(poems))
        if poems[position] == "\n" != poems[position - 1]
    ]

    def gained(text, positions):
        """Return the mean gain in nats, a float, at some positions of a text.

        ``text`` : str; ``positions`` : list of int, from 0.
        """
        ids = torch.tensor(page.tokenizer.encode(text))
        near, far = (losses_at(model, ids, torch.tensor(positions), n) for n in (5, 64))
        return float((np.array(near) - np.array(far)).mean())

    return {
        "spaces": gained(text, [i for i in after_marks if text[i] == " "]),
        "marks": gained(text, inner),
        "dickinson": gained(poems, line_ends[:: len(line_ends) // 300]),
    }


def course_reach(page) -> list[dict]:
    """Return the losses of the course's GPT by how many characters it is shown.

    Parameters
    ----------
    page : Page
        ``ended["course"]``: a list of one dict, of the study *line-ends*, with ``reach``.

    Returns
    -------
    list of dict
        Kind of character, such as "line ends" → characters shown, a str → mean loss in nats
        a character; one dict.
    """
    return [row["reach"] for row in page.ended["course"]]


def far_gain(losses) -> float:
    """Return what is gained, in nats a character, by 64 characters over five.

    Parameters
    ----------
    losses : dict of str to float
        Characters shown → mean loss.
    """
    return losses["5"] - losses["64"]


def random_weights(page: Page):
    """The course's GPT with its weights shuffled.

    Parameters
    ----------
    page : Page
        ``sonnets`` is the GPT; ``each`` its probabilities of a new line after each mark:
        change of the line, such as "no vowels" → array (marks,); ``all_changes`` is a
        function from a GPT to such a dict.

    Returns
    -------
    Page
        A page like this one, with the weights of ``sonnets`` shuffled, and ``each``
        computed again.
    """
    shuffled = page.replaced(sonnets=shuffled_weights(page.sonnets))
    return shuffled.replaced(each=shuffled.all_changes(shuffled.sonnets))


def sonnet_interval(values, sonnets) -> tuple[float, float]:
    """Return the 95 % interval of a mean if other sonnets had been drawn.

    Parameters
    ----------
    values : array of shape (marks,)
        Of which the mean is taken.
    sonnets : int array of shape (marks,)
        The number of the sonnet that each is in.

    Returns
    -------
    low, high : float
    """
    sums = np.bincount(sonnets, values)
    sizes = np.bincount(sonnets)
    held = sizes > 0
    return bootstrap_interval(sums[held], sizes[held], statistic=ratio_of_sums)


@finding(
    "A GPT trained on the Sonnets knows by a line's length in characters that it is "
    "over: fill it with e's, and it still knows.",
    rival="the words, the syllables and the letters of the line, each changed by itself; "
    "n-grams of five to eight characters give a new line {ngrams:.0%} at line ends and "
    "{ngrams_inside:.0%} elsewhere; "
    "a table of one number, the characters since the last new line, does as well as the "
    "GPT: {table:.0%} and {table_inside:.0%}",
    null=random_weights,
    n="{ends} line ends and {inside} other marks of 15 held-out sonnets",
    interval="one letter throughout: {e_interval:.0%}; 20 characters fewer: "
    "{cut_interval:.0%}",
)
def lines_are_measured_in_characters(page: Page):
    """Check that the course's GPT goes by a line's length in characters.

    Measured is the probability of a new line after a mark, rather than a space.

    At line ends its mean stays above 70 % where the line's characters are changed and their
    number is kept: shuffled, all e's, no vowels, no spaces. After marks inside a line it
    stays below 20 %. At line ends it falls below 40 % where each word is halved, which
    keeps the number of words, where 20 characters are cut off, and where the line is all
    z's, or all commas. With 20 characters more it rises above 25 % inside lines. All this
    holds for the whole interval over sonnets. The last five characters of a line are never
    changed. A table that says for each number of characters how often a new line came after
    a mark in the training text is as sure as the GPT at line ends, less 2 % at most, and
    below 10 % elsewhere. N-grams of five to eight characters give a new line more than 30 %
    elsewhere. With shuffled weights the means at line ends and elsewhere differ by less
    than a tenth of what they do in the GPT. Three small GPTs of other seeds agree on thirty
    sonnets (the study *line-ends*): above a half where the number is kept, below it where
    it is lowered.

    Parameters
    ----------
    page : Page
        ``each``: change, such as "no vowels" → probability of a new line after each mark,
        arrays (marks,); ``ends``: which marks end a line, a bool array (marks,); ``at``:
        the positions after them in the test text, list of int; ``parts``: the texts
        ``training`` and ``test``; ``tokenizer``, of characters; ``ladder``: length → n-gram
        model; ``ended["trained"]``: list of dict, one a small GPT, with ``lines``: change →
        mean probability at ``ends`` and ``inside`` lines; ``blank``: probabilities
        (marks,), as written, of the GPT with shuffled weights. ``new_line_after(model,
        change)`` measures such probabilities; ``sonnets`` is the GPT.

    Returns
    -------
    dict
        Mean probabilities at line ends: ``written``, ``e`` (one letter throughout), ``cut``
        (20 characters fewer), ``halved``; ``e_interval`` and ``cut_interval``: over
        sonnets. ``inside`` and ``ends``: how many marks. ``before``: the mean probability
        after marks inside lines, ``longer``: the same with 20 characters more. ``ngrams``
        and ``ngrams_inside``: at line ends and inside lines, the lowest and the highest of
        n-grams of five to eight characters; ``table`` and ``table_inside``: of the table.
    """
    ends = page.ends
    numbers = np.array([page.parts.test.count("\n\n", 0, position) for position in page.at])

    def interval(name, chosen):
        """Return the interval of a mean probability, over sonnets, a pair of float.

        ``name`` : the change, such as "no vowels"; ``chosen`` : bool array (marks,).
        """
        return sonnet_interval(page.each[name][chosen], numbers[chosen])

    for name in ("as written", *SAME_LENGTH):
        assert interval(name, ends)[0] > 0.7
        assert interval(name, ~ends)[1] < 0.2
    for name in SHORTER:
        assert interval(name, ends)[1] < 0.4
    assert interval(LONGER, ~ends)[0] > 0.25
    for letter in "z,":
        filled = page.new_line_after(page.sonnets, lambda line, x=letter: x * len(line))
        assert sonnet_interval(filled[ends], numbers[ends])[1] < 0.4
    for row in page.ended["trained"]:
        assert min(row["lines"][name]["ends"] for name in SAME_LENGTH) > 1 / 2
        assert max(row["lines"][name]["ends"] for name in SHORTER) < 1 / 2
    counted = [new_line_by_ngrams(page, page.ladder[length]) for length in LONG]
    assert min(probs[~ends].mean() for probs in counted) > 0.3
    table = new_line_by_length(page)
    written = page.each["as written"]
    assert table[ends].mean() > written[ends].mean() - 0.02
    assert table[~ends].mean() < 0.1
    gap = written[ends].mean() - written[~ends].mean()
    assert abs(page.blank[ends].mean() - page.blank[~ends].mean()) < gap / 10
    means = {name: float(probs[ends].mean()) for name, probs in page.each.items()}
    return {
        "written": means["as written"],
        "e": means["one letter throughout"],
        "cut": means["20 characters fewer"],
        "halved": means["words halved"],
        "e_interval": interval("one letter throughout", ends),
        "cut_interval": interval("20 characters fewer", ends),
        "ends": int(ends.sum()),
        "inside": int((~ends).sum()),
        "before": float(page.each["as written"][~ends].mean()),
        "longer": float(page.each[LONGER][~ends].mean()),
        "ngrams": extremes([probs[ends].mean() for probs in counted]),
        "ngrams_inside": extremes([probs[~ends].mean() for probs in counted]),
        "table": float(table[ends].mean()),
        "table_inside": float(table[~ends].mean()),
    }


def new_line_by_ngrams(page, model) -> np.ndarray:
    """Return how probable an n-gram model finds a new line after each mark.

    Parameters
    ----------
    page : Page
        ``at``: positions after punctuation marks in the test text, from 0, list of int, of
        the characters that are predicted; ``parts.test``, that text; ``tokenizer``, which
        encodes it.
    model : NgramModel

    Returns
    -------
    float array of shape (marks,)
        The probability of a new line as a share of that of a new line or a space, 0 to 1.
    """
    test = page.tokenizer.encode(page.parts.test)
    newline, space = page.tokenizer.encode("\n ")
    # Of each context the model takes the last order - 1 characters.
    probs = np.array([model.next_probs(test[i - model.order : i]) for i in page.at])
    return probs[:, newline] / (probs[:, newline] + probs[:, space])


def new_line_by_length(page) -> np.ndarray:
    """Return how often a new line follows a punctuation mark, by the length of its line.

    Parameters
    ----------
    page : Page
        ``parts``: three texts, ``training``, in which it is counted, ``validation`` and
        ``test``; ``at``: the positions in the test text, from 0, of the characters that
        follow a punctuation mark (`lines.MARKS`), list of int.

    Returns
    -------
    array of shape (marks,)
        For each of ``at`` the share of new lines, among new lines and spaces, after marks
        with as many characters of their line before them; half of one is added to each.
    """

    def length(text, position):
        """Return how many characters of its line stand before a position.

        ``text`` : str; ``position`` : int, from 0.
        """
        return position - text.rfind("\n", 0, position) - 1

    training = page.parts.training
    test = page.parts.test
    longest = max(len(line) for text in page.parts for line in text.split("\n"))
    new, all_marks = np.full((2, longest + 1), 0.5)
    all_marks += 0.5
    for position in range(1, len(training)):
        if training[position - 1] in lines.MARKS and training[position] in " \n":
            all_marks[length(training, position)] += 1
            new[length(training, position)] += training[position] == "\n"
    return (new / all_marks)[[length(test, position) for position in page.at]]


def single_shuffled(page: Page):
    """The small GPTs of one layer with shuffled weights.

    Parameters
    ----------
    page : Page
        ``single``: list of dict, one a GPT of one layer: ``lines``, change of the line →
        mean probability of a new line, and ``shuffled``, the same with shuffled weights.

    Returns
    -------
    Page
        A page like this one; in ``single``, ``lines`` is what ``shuffled`` is.
    """
    return page.replaced(single=[row | {"lines": row["shuffled"]} for row in page.single])


@finding(
    "A small GPT of the Sonnets needs no more than one layer to know by a line's length in "
    "characters that the line is over.",
    rival="two layers: text more than five characters back gains {two:.2f} nats at line "
    "ends, with one layer {one:.2f}; one layer of a single head: {head:.2f}, but it goes "
    "by the length, too",
    null=single_shuffled,
    n="{ends} line ends of 30 held-out sonnets, three seeds",
    interval="how probable a new line is, lowest and highest of the seeds: as written "
    "{written:.0%}, one letter throughout {e:.0%}, 20 characters fewer {cut:.0%}",
)
def one_layer_measures_lines(page: Page):
    """Check that a GPT of one layer goes by a line's length in characters.

    It is a whole one with four heads, trained for 1,000 steps from three seeds.

    With each seed the mean probability of a new line at line ends is above a half where the
    line's characters are changed and their number is kept, and below a half where it is
    lowered: by halving each word, which keeps the number of words, and by 20 characters.
    After marks within lines it is below a fifth where the number is kept, and above a half
    with 20 characters more. All this holds with a single head, too.

    Parameters
    ----------
    page : Page
        ``single``: list of dict, one a GPT of one layer: ``heads``, 1 or 4; ``lines``,
        change of the line, such as "no vowels" → mean probability of a new line at ``ends``
        and ``inside``, and under "n" how many of either; ``reach``, kind of character, such
        as "line ends" → characters shown, "5" or "64" → mean loss. ``ended["trained"]``:
        such dicts of GPTs of two layers.

    Returns
    -------
    dict
        ``written``, ``e`` and ``cut``: lowest and highest mean probability of the seeds, as
        written, with one letter throughout, with 20 characters fewer. ``one``, ``head`` and
        ``two``: what 64 characters gain over five at line ends, mean of three seeds, in
        nats a character, with one layer of four heads, one layer of one, and two layers.
        ``ends``: how many line ends.
    """
    four = alike(page.single, heads=4)
    assert len(four) == len(alike(page.single, heads=1)) == 3
    for lines_of in (row["lines"] for row in page.single):
        for change in ("as written", *SAME_LENGTH):
            assert lines_of[change]["ends"] > 1 / 2
            assert lines_of[change]["inside"] < 1 / 5
        assert max(lines_of[change]["ends"] for change in SHORTER) < 1 / 2
        assert lines_of[LONGER]["inside"] > 1 / 2
    at_ends = {
        change: [row["lines"][change]["ends"] for row in four]
        for change in ("as written", "one letter throughout", SHORTER[1])
    }
    groups = {
        "one": four,
        "head": alike(page.single, heads=1),
        "two": page.ended["trained"],
    }
    gained = {
        name: float(np.mean([far_gain(row["reach"]["line ends"]) for row in rows]))
        for name, rows in groups.items()
    }
    return gained | {
        "written": extremes(at_ends["as written"]),
        "e": extremes(at_ends["one letter throughout"]),
        "cut": extremes(at_ends[SHORTER[1]]),
        "ends": four[0]["lines"]["n"]["ends"],
    }


# --- parts and sizes ----------------------------------------------------------------------


def parts_shuffled(page: Page):
    """The names of the parts shuffled, anew for each seed of the models.

    Parameters
    ----------
    page : Page
        ``built``: a DataFrame of test losses, one row for each part, one column for each
        seed.

    Returns
    -------
    Page
        A page like this one, with the losses in each column of ``built`` shuffled.
    """
    built = page.built.copy()
    for seed in built.columns:
        built[seed] = nulls.shuffled(built[seed].tolist(), seed)
    return page.replaced(built=built)


@finding(
    "Four heads instead of one help a bare attention model over ten times as much as they "
    "help a whole GPT of one or two layers.",
    rival="what each other part gains in the bare model: less",
    null=parts_shuffled,
    n="3 seeds of each model",
    interval="{bare:.2f} nats in the bare model, {single:.3f} in a whole GPT of one layer, "
    "{whole:.3f} in one of two (lowest and highest of three seeds)",
)
def heads_depend_on_the_rest(page: Page):
    """Check that four heads gain ten times as much in a bare model as in a whole GPT.

    Each is trained for 1,000 steps, at the learning rate that suits it best.

    Bare: token table, position table and attention alone; how large its first weights are
    was chosen, too, and its gains are on test text. Whole: one layer or two with
    everything; its gains are on validation text. (One layer of four heads has the rate of
    two layers.) In the bare model the least gain of four heads is above the largest of any
    other part.

    Parameters
    ----------
    page : Page
        ``built``: a DataFrame of test losses, one row for each part in the order in which
        they are added ("one head", "four heads", …), one column for each seed; ``sizes``: a
        DataFrame, one row a training: ``axis``, the size that is varied, "heads" for one,
        ``value`` (a str), ``seed`` and ``loss``; ``single``: list of dict, one a GPT of one
        layer, in the order of seeds, with ``heads`` and ``validation``, the loss. In nats a
        character.

    Returns
    -------
    dict
        ``bare``, ``whole`` and ``single``: lowest and highest gain of three seeds, in nats,
        in the bare model and in whole ones of two layers and of one. Mean gains
        in the order of the parts: ``head``, ``heads``, ``feed_forward``, ``paths``,
        ``layer``. ``times``: how many times as much it is in the bare model, at least.
    """
    gain = -page.built.diff().iloc[1:]
    bare = gain.loc["four heads"]
    heads = page.sizes[page.sizes.axis == "heads"].pivot_table("loss", "value", "seed")
    whole = heads.loc["1"] - heads.loc["4"]
    one, four = (alike(page.single, heads=n) for n in (1, 4))
    single = [a["validation"] - b["validation"] for a, b in zip(one, four, strict=True)]
    assert gain.shape == (5, 3)
    assert len(whole) == len(single) == 3
    assert bare.min() > 10 * max(whole.max(), *single)
    assert bare.min() > gain.drop("four heads").max().max()
    means = gain.mean(axis=1)
    return {
        "bare": extremes(bare),
        "whole": extremes(whole),
        "single": extremes(single),
        "head": float(means["one head"]),
        "heads": float(means["four heads"]),
        "feed_forward": float(means["feed-forward"]),
        "paths": float(means["residual paths and norms"]),
        "layer": float(means["a second layer"]),
        "times": int(bare.min() / max(whole.max(), *single)),
    }


@proof("Width helps from 16 to 64 numbers; layers without more parameters do not.")
def width_helps(page: Page):
    """Check what a small GPT gains by width, by depth and by shape.

    Each size has 1,000 steps, three seeds, and the best of three learning rates.

    From width 16 to 32 and from 32 to 64 the loss falls by more than 0.05 with each seed;
    from 64 to 128 not with each. Two layers are better than one of the same width, with
    each seed, but not than one wider layer with about as many parameters; four narrow ones
    are worse than two.

    Parameters
    ----------
    page : Page
        ``sizes``: a DataFrame, one row for each run of the study *sizes*: ``axis``
        ("d_model", "layers", "shape" …), ``value`` (a str, of a shape "layers × width"),
        ``seed``, ``parameters`` and ``loss`` in nats a character.

    Returns
    -------
    dict
        In nats a character: ``narrow``, lowest and highest gain from width 16 to 64;
        ``second``, mean gain of the second layer; ``deep``, how much worse four narrow
        layers are than two, on average. ``runs``: how many.
    """
    losses = page.sizes.pivot_table("loss", ["axis", "value"], "seed")
    width = losses.loc["d_model"]
    for narrow, wide in (("16", "32"), ("32", "64")):
        assert (width.loc[narrow] - width.loc[wide]).min() > 0.05
    widest = width.loc["64"] - width.loc["128"]
    assert widest.min() < 0 < widest.max()
    layers = losses.loc["layers"]
    shape = losses.loc["shape"]
    second = layers.loc["1"] - layers.loc["2"]
    flat = shape.loc["1 × 88"] - shape.loc["2 × 64"]
    deep = shape.loc["4 × 44"] - shape.loc["2 × 64"]
    assert second.min() > 0
    assert flat.min() < 0 < flat.max()
    assert deep.min() > 0
    parameters = page.sizes[page.sizes.axis == "shape"].parameters
    assert parameters.max() / parameters.min() < 1.1
    return {
        "narrow": extremes(width.loc["16"] - width.loc["64"]),
        "second": float(second.mean()),
        "deep": float(deep.mean()),
        "runs": len(page.sizes),
    }


@proof(
    "On a thirtieth of the text, the loss on new sonnets rises again; dropout slows that."
)
def little_text_is_learned_by_heart(page: Page):
    """Check that on a thirtieth of the text the held-out loss rises again.

    Three seeds with no dropout and with 0.3 are each at the better of two learning rates.

    Without dropout the loss ends more than 0.5 above its lowest point, while that on the
    model's own text ends more than 0.5 below this point. With dropout it ends less far
    above; the lowest points are within 0.02 of each other, seed by seed, and more than 0.1
    above the best n-grams of the same text.

    Parameters
    ----------
    page : Page
        ``little``: a DataFrame, one row a training: ``dropout`` (0 or 0.3), ``seed``,
        ``best``, the lowest held-out loss, and ``history``, a list of (step, loss on its
        own text, held-out loss); ``little_counted``: the n-grams' held-out loss. In nats a
        character.

    Returns
    -------
    dict
        Mean losses without dropout: ``best``, the lowest; ``end`` and ``own``, the last on
        held-out and on its own text. ``dropout``: the lowest with dropout; ``counted``:
        that of counting n-grams.
    """
    tables = [page.little[page.little.dropout == p].set_index("seed") for p in (0.0, 0.3)]
    plain, dropped = tables
    plain_end, dropped_end = (t.history.map(lambda rows: rows[-1][2]) for t in tables)
    own = plain.history.map(lambda rows: rows[-1][1])
    assert len(plain) == len(dropped) == 3
    assert (plain_end > plain.best + 0.5).all()
    assert (own < plain.best - 0.5).all()
    assert (dropped_end - dropped.best < plain_end - plain.best).all()
    assert (plain.best - dropped.best).abs().max() < 0.02
    assert min(plain.best.min(), dropped.best.min()) > page.little_counted + 0.1
    return {
        "best": plain.best.mean(),
        "end": plain_end.mean(),
        "own": own.mean(),
        "dropout": dropped.best.mean(),
        "counted": page.little_counted,
    }


# --- two models ---------------------------------------------------------------------------


def pairs_shuffled(page: Page):
    """For each sonnet it is drawn at random which pair of models has which gain.

    Parameters
    ----------
    page : Page
        ``climbed["averaged"]`` is a list of dict: ``models``, one or two names ("counting",
        seeds such as "1", "the course's"), and ``sonnets``, a list with a number for each
        sonnet, in nats a character: of one model its loss; of two how much lower the loss
        of their averaged probabilities is than that of the one that is better on the whole.

    Returns
    -------
    Page
        A page like this one; in ``climbed``, the ``sonnets`` of pairs of small GPTs and
        n-grams are exchanged, sonnet by sonnet.
    """
    by_pair = {tuple(row["models"]): [*row["sonnets"]] for row in page.climbed["averaged"]}
    pairs = [("counting", "1"), ("counting", "2"), ("counting", "3")]
    pairs += [("1", "2"), ("1", "3"), ("2", "3")]
    for sonnet in range(len(by_pair["1", "2"])):
        gained = nulls.shuffled([by_pair[pair][sonnet] for pair in pairs], sonnet)
        for pair, value in zip(pairs, gained, strict=True):
            by_pair[pair][sonnet] = value
    rows = [row | {"sonnets": by_pair[*row["models"],]} for row in page.climbed["averaged"]]
    return page.replaced(climbed=page.climbed | {"averaged": rows})


@finding(
    "A small GPT of the Sonnets gains more when its guesses are averaged with counts of "
    "six-letter sequences than with the guesses of a second such GPT.",
    rival="another seed of the small GPT in the place of the n-grams, {second:.3f}; other "
    "lengths: seven letters {seven:.3f}, eight {eight:.3f}; five {five:.3f} and four "
    "{four:.3f}, neither surely more nor less than a second GPT; of two and three letters, "
    "they make the course's GPT worse by {two:.2f} and {three:.2f}",
    null=pairs_shuffled,
    n="{sonnets} held-out sonnets, 3 seeds",
    interval="{more:.3f} nats more",
)
def counting_adds_more(page: Page):
    """Check that a small GPT gains more by n-grams than by a second such GPT.

    A gain is the loss of two models' mean probabilities, against that of the better of the
    two.

    The interval is over the test sonnets. On these the small GPT's loss is above the
    n-grams', and the course's GPT's is below, each with an interval that excludes zero.
    With sequences of seven and eight letters the small GPT gains more than with another
    GPT, too, each with an interval above zero, and more than with six on average. With five
    letters it gains more on average, with four less, and both intervals include zero. The
    course's GPT gains by sequences of five to eight letters, each with an interval above
    zero; with two or three letters it gets worse.

    Parameters
    ----------
    page : Page
        ``climbed["averaged"]``: list of dict: ``models``, one or two names ("counting",
        seeds such as "1", "the course's"), and ``sonnets``, a list, of one its loss on
        each, of two what their average gains; ``climbed["counting"][0]["order"]``, the
        length of these n-grams; ``lengths``: list of dict, of a small GPT averaged with
        another model: ``with`` (the length of n-grams, or "GPT") and ``gained``, a list, on
        each sonnet; ``sonnets``: the course's GPT; ``ladder``: length → n-gram model;
        ``test_ids``, an int64 Tensor (characters,), of ``parts.test``; ``context``, 64. In
        nats a character.

    Returns
    -------
    dict
        Mean gains of the small GPT: ``ngrams``, with n-grams of six letters, and
        ``second``, with another GPT; ``more``: 95 % interval of their difference;
        ``sonnets``: how many; ``behind``: the small GPT's loss less the n-grams';
        ``ahead``: the n-grams' less the course's GPT's; ``two`` and ``three``: what the
        course's GPT loses by 2-grams and 3-grams; ``longer``: the lowest and the highest
        mean that it gains by 5-grams to 8-grams. ``four``, ``five``, ``seven`` and
        ``eight``: what the small GPT gains by n-grams of such a length.
    """
    rows = page.climbed["averaged"]
    gained = gains(rows)
    alone = losses_alone(rows)
    difference = gained["n-grams + small GPT"] - gained["small GPT + another"]
    more = bootstrap_interval(difference)
    behind = alone["small GPT"] - alone[BEST_NGRAMS]
    ahead = alone[BEST_NGRAMS] - alone[COURSE]
    assert more[0] > 0
    assert bootstrap_interval(behind)[0] > 0
    assert bootstrap_interval(ahead)[0] > 0
    by_length = gains_by_length(page)
    longer = [by_length[n] for n in LONG]
    another = mean_gain(page.lengths, "GPT")
    by_small = {n: mean_gain(page.lengths, n) for n in range(4, 9)}
    more_by = {n: bootstrap_interval(gain - another) for n, gain in by_small.items()}
    assert page.climbed["counting"][0]["order"] == 6
    assert min(more_by[n][0] for n in (6, 7, 8)) > 0
    assert by_small[6].mean() < min(by_small[n].mean() for n in (7, 8))
    assert by_small[4].mean() < another.mean() < by_small[5].mean()
    assert max(more_by[n][0] for n in (4, 5)) < 0 < min(more_by[n][1] for n in (4, 5))
    assert min(bootstrap_interval(each)[0] for each in longer) > 0
    assert max(bootstrap_interval(by_length[n])[1] for n in (2, 3)) < 0
    return {
        "ngrams": gained["n-grams + small GPT"].mean(),
        "second": gained["small GPT + another"].mean(),
        "more": more,
        "sonnets": len(difference),
        "behind": behind.mean(),
        "ahead": ahead.mean(),
        "two": -by_length[2].mean(),
        "three": -by_length[3].mean(),
        "longer": extremes([each.mean() for each in longer]),
        "four": by_small[4].mean(),
        "five": by_small[5].mean(),
        "seven": by_small[7].mean(),
        "eight": by_small[8].mean(),
    }


def gains_by_length(page) -> dict[int, np.ndarray]:
    """Return what the course's GPT gains on each test sonnet by averaging with n-grams.

    Parameters
    ----------
    page : Page
        ``sonnets``: the GPT; ``ladder``: length → n-gram model; ``test_ids`` of the test
        text, an int64 Tensor (characters,), which is ``parts.test``, a str; ``context``:
        64. The GPT sees the last 32 to 63 characters before each.

    Returns
    -------
    dict of int to array of shape (sonnets,)
        Length of the n-grams → the GPT's loss less that of the mean of both probabilities,
        in nats a character.
    """
    half = page.context // 2
    ids = page.test_ids
    text = page.parts.test
    starts = torch.arange(0, len(ids) - page.context - 1, half)
    windows = training.cut_windows(ids, starts, page.context)
    with torch.no_grad():
        logs = page.sonnets(windows[0]).double().log_softmax(-1)
    probs = logs.gather(-1, windows[1][..., None])[:, half:, 0].exp().numpy().ravel()
    positions = (starts[:, None] + 1 + torch.arange(half, page.context)).numpy().ravel()
    numbers = np.array([text.count("\n\n", 0, position) for position in positions])
    sizes = np.bincount(numbers)
    by_length = {}
    for length in range(2, 9):
        counts = page.ladder[length].probabilities(ids.numpy())[positions]
        gained = np.log((probs + counts) / 2) - np.log(probs)
        by_length[length] = (np.bincount(numbers, gained) / np.maximum(sizes, 1))[sizes > 0]
    return by_length


@proof(
    "Nearly all of Shakespeare's lines have 33 to 53 characters; so have most of the GPT's."
)
def lines_give_it_away(page: Page):
    """Check how many lines of three writers have 33 to 53 characters.

    Of Shakespeare's lines more than 97 %, of the GPT's more than half.

    Of those of the n-grams fewer than half.

    Parameters
    ----------
    page : Page
        ``written``: eight texts of the course's GPT, a list of str; ``by_count``: one of
        the n-gram model, a str; ``sonnets_text``, a str; ``three``: letter, such as "a" →
        the beginning of that writer's text.

    Returns
    -------
    dict
        The shares of each writer's lines that have so many characters: ``gpt``, ``ngrams``
        and ``shakespeare``; ``answer``: the letter of the n-grams' text.
    """
    gpt = share_of_length(page.written)
    ngrams = share_of_length([page.by_count])
    shakespeare = share_of_length([page.sonnets_text])
    assert shakespeare > 0.97
    assert ngrams < 0.5 < gpt
    (answer,) = [
        letter for letter, text in page.three.items() if page.by_count.startswith(text)
    ]
    return {"gpt": gpt, "ngrams": ngrams, "shakespeare": shakespeare, "answer": answer}


def share_of_length(texts) -> float:
    """Return the share, 0 to 1, of the lines of texts that have 33 to 53 characters.

    Parameters
    ----------
    texts : sequence of str
        The first and the last line of each may have been cut and do not count; nor do
        empty lines.
    """
    lengths = [len(line) for text in texts for line in text.split("\n")[1:-1] if line]
    low, high = MIDDLE
    return float(np.mean([low <= length <= high for length in lengths]))


# --- going deeper -------------------------------------------------------------------------


@proof("The page's model, the package's and the one of transformers give the same logits.")
def three_models_agree(page: Page):
    """Check that the page's model, the package's and transformers' give the same logits.

    In float64 to 1e-9. Attention is the same, too, and what is written by the likeliest.

    Parameters
    ----------
    page : Page
        ``mini`` is the page's model, ``to_package`` a function that makes the package's of
        it; ``inputs`` are ids (batch, context). ``exact`` is the course's GPT in float64,
        ``theirs`` the same as a GPT-2 of transformers; ``said``, a str, is what its
        pipeline wrote; ``tokenizer``, with ``encode`` and ``decode``.

    Returns
    -------
    dict
        ``parameters``: how many the page's model has.
    """
    package = page.to_package(page.mini)
    mini = copy.deepcopy(page.mini).cpu().double().eval()
    ids = torch.tensor([page.tokenizer.encode("Shall I compare thee to a summer's day?")])
    with torch.no_grad():
        close(copy.deepcopy(package).cpu().double()(page.inputs), mini(page.inputs))
        output = page.theirs(ids, output_attentions=True)
        close(output.logits, page.exact(ids), rtol=0, atol=1e-9)
        attention = page.exact.attentions(ids)
    for ours, given in zip(attention, output.attentions, strict=True):
        close(ours, given, rtol=0, atol=1e-9)
        assert given.triu(1).abs().max() == 0
    begun = torch.tensor([page.tokenizer.encode("Shall I ")])
    greedy = generate(page.exact, begun, 40, temperature=0)[0].tolist()
    assert page.said == page.tokenizer.decode(greedy)
    return {"parameters": parameters_of(page.mini)}


@proof("A run that was stopped and resumed ends where the undisturbed one does.")
def resumed_is_undisturbed(page: Page):
    """Check that a resumed run ends where the undisturbed one does.

    Their validation losses are the same to a thousandth.

    Parameters
    ----------
    page : Page
        ``resumed`` and ``undisturbed`` are trainers after their last step, whose
        ``estimate()`` is the validation loss.

    Returns
    -------
    dict
        ``loss``: of the resumed one, in nats a character.
    """
    loss = page.resumed.estimate()
    close(loss, page.undisturbed.estimate(), rtol=1e-3, atol=0)
    return {"loss": loss}


@proof(
    "The fast recipe needs at most a tenth of the classic one's seconds to the same loss."
)
def fast_is_fast(page: Page):
    """Check that the fast recipe needs a tenth of the classic one's seconds at most.

    With each of three seeds; and the runs of both recipes reach the target loss.

    Without tables, rotary positions or the small body it takes more than 5 % longer.

    Parameters
    ----------
    page : Page
        ``recipes``: the record of the study *recipes*: ``results["ways"]`` are dicts with
        ``way``, the recipe ("classic", "fast", "without ngrams" …), ``seed``, ``seconds``
        to the loss of ``settings["target"]``, in nats a character, and ``reached``, whether
        it was.

    Returns
    -------
    dict
        ``target``: the loss; ``classic``, ``tables`` and ``small``: how many times the
        seconds of *fast* the classic recipe takes, and *fast* without its tables or with
        the large body, medians of three.
    """
    ways = page.recipes["results"]["ways"]
    seconds = {(row["way"], row["seed"]): row["seconds"] for row in ways}
    times = {
        way: [seconds[way, seed] / seconds["fast", seed] for seed in range(3)]
        for way in {row["way"] for row in ways}
    }
    assert all(row["reached"] for row in ways if row["way"] in ("classic", "fast"))
    assert min(times["classic"]) > 10
    for idea in ("ngrams", "rotary", "small"):
        assert min(times[f"without {idea}"]) > 1.05
    assert len(train.IDEAS) == 7
    return {
        "target": page.recipes["settings"]["target"],
        "classic": float(np.median(times["classic"])),
        "tables": float(np.median(times["without ngrams"])),
        "small": float(np.median(times["without small"])),
    }


@proof("Each of the three mistakes does the harm that is described.")
def mistakes_do_harm(page: Page):
    """Check what three mistakes in training do, and what the error messages say.

    Without a shift the model repeats; a rate of 1 ends a nat and more above guessing.

    Without a shift the loss is below 0.3. The error messages name the step, the context,
    and a character that is a 1.

    Parameters
    ----------
    page : Page
        ``copying``: the last loss of a model trained without a shift, in nats a character;
        ``parroted``: its prompt and what it wrote then, a str; ``high``: a trainer after
        its run at a rate of 1; ``told``: error messages of three attempts, list of str;
        ``guess``: the loss of equal probabilities.

    Returns
    -------
    dict
        ``copying``: the loss without a shift, in nats a character.
    """
    assert page.copying < 0.3
    assert set(page.parroted.removeprefix("Shall")) == {" ", "I"}
    assert page.high.history[-1]["val_loss"] > page.guess + 1
    assert "at step" in page.told[0]
    assert "context" in page.told[1]
    assert "character '1'" in page.told[2]
    return {"copying": page.copying}
