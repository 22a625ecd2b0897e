"""What the chapter *preferences* claims, checked where the page places it.

The ``page`` of a proof or a null is a `studies.findings.Page`: the names that the page has
defined so far, as attributes.
"""

import copy
import math
import re

import numpy as np
import torch

from lmcourse.preferences import (
    WORD,
    answer_log_probs,
    dpo_loss,
    encode_dialogues,
    properties,
)
from studies.findings import Page, finding, proof, right_letter
from studies.measures import share_interval
from studies.preferences.preferences import ASKED, SETTINGS, dialogues_of

HALF = 0.5


def row_of(run, way, steps=None):
    """Return the first row of a run whose way has this name, a dict.

    ``run`` : dict with ``ways``, a list of dict with ``way``, str, and ``steps``, int;
    ``way`` : a name, such as "DPO"; ``steps`` : int, how many the row must have, or None
    for any. A StopIteration is raised if there is no such row.
    """
    rows = [row for row in run["ways"] if row["way"] == way]
    return next(row for row in rows if steps in (None, row["steps"]))


def gaps(runs, way, other, key, steps=None):
    """Return, for each run, one way's mean less that of another way, a list of float.

    ``runs`` : list of dict, one a seed, with ``ways``, a list of dict, one a way of
    training: its name ``way``, ``steps``, and means of its answers. ``way`` and ``other`` :
    such names, as "DPO"; ``key`` : which mean is compared, such as "echoes"; ``steps`` :
    int, of ``way``, if several rows have its name.
    """
    return [row_of(run, way, steps)[key] - row_of(run, other)[key] for run in runs]


def mean_of(runs, way, key, steps=None):
    """Return the mean over runs of one value of a way of training, a float.

    ``runs`` : list of dict, one a seed, with ``ways``, a list of dict; ``way``, str, such
    as "DPO", and ``steps``, int or None for any : which of these rows; ``key`` : which of
    its values, such as "echoes".
    """
    return float(np.mean([row_of(run, way, steps)[key] for run in runs]))


def better_filtered(run):
    """Return the row with the most echoes of a run's filtered fine-tunings, a dict.

    ``run`` : dict with ``ways``, a list of dict: ``way``, which begins with "filtered" in
    these rows, and ``echoes`` a line.
    """
    rows = [row for row in run["ways"] if row["way"].startswith("filtered")]
    return max(rows, key=lambda row: row["echoes"])


def last_steps(runs):
    """Return the largest number of steps of any way of training, an int.

    ``runs`` : list of dict; the first has ``ways``, a list of dict with ``steps``.
    """
    return max(row["steps"] for row in runs[0]["ways"])


def repeated(runs, name):
    """Return the share of words in a model's stored lines that the same line had before.

    ``runs`` : list of dict, one a seed, with ``lines``, dict: model → its lines, list of
    str; ``name`` : the model, such as "before" or "after DPO". The share is from 0 to 1.
    """
    lines = [line.lower().split() for run in runs for line in run["lines"][name]]
    return 1 - sum(len({*words}) for words in lines) / sum(map(len, lines))


def words_with(letter, lines):
    """Return the share of all words of some lines that begin with a letter, float.

    ``letter`` : str, in lower case; ``lines`` : list of str. The share is from 0 to 1;
    capitals do not matter.
    """
    words = [word for line in lines for word in WORD.findall(line)]
    return float(np.mean([word[0].lower() == letter for word in words]))


def echoes_of(lines):
    """Return the mean number of echoes of a line, float.

    An echo is a word that begins with the same letter as another word of its line.
    ``lines`` : iterable of str.
    """
    return float(np.mean([properties(line)["echoes"] for line in lines]))


def echoes_if_shuffled(lines, shuffles=200):
    """Return the echoes of a line when all words have changed places among the lines.

    An echo is a word that begins with the same letter as another word of its line.

    Parameters
    ----------
    lines : list of str
        Each keeps its number of words.
    shuffles : int
        Over how many the mean is taken.

    Returns
    -------
    float
    """
    lengths = [len(WORD.findall(line)) for line in lines]
    words = np.array([word for line in lines for word in WORD.findall(line)])
    ends = np.cumsum(lengths)[:-1]
    rng = np.random.default_rng(0)
    mixed = [np.split(rng.permutation(words), ends) for _ in range(shuffles)]
    return float(np.mean([echoes_of(map(" ".join, each)) for each in mixed]))


# --- dialogues ----------------------------------------------------------------------------


@proof(
    "Fine-tuned on dialogues, our GPT nearly always begins its line with the letter it is "
    "asked for, if the dialogues had that letter."
)
def does_as_asked(page: Page):
    """Check that the fine-tuned GPT begins its lines with the letter it is asked for.

    With each seed nine answers of ten at least do, else fewer than three of ten.

    That is before any training, and after training with the requests shuffled among the
    dialogues. If asked for a letter that no dialogue has, fewer than one answer in twenty
    does, and fewer than before training.

    Parameters
    ----------
    page : Page
        ``study["gpt"]`` is a list of dict, one a seed, with ``dialogues``: "before",
        "answers" (after training on dialogues) or "shuffled" → dict with ``asked`` and
        ``never asked``, the shares of answers with the letter asked for, 0 to 1, by whether
        dialogues had it, and ``losses["text"]``, in nats a character.

    Returns
    -------
    dict
        Shares of answers with the letter asked for: ``share``, with lowest and highest
        ``span``; ``before``, before any training; ``shuffled``, after training on shuffled
        dialogues; of letters never asked for ``never``, ``never_span``, ``never_before``.
        ``loss_before`` and ``loss`` on text, in nats a character; ``answers`` of each model
        and ``seeds``: how many; ``answer``, the letter of the right choice, by letters
        never asked for: "a" if ``never`` is above a half, "b" if every seed is below 0.05,
        else "c".
    """
    runs = page.study["gpt"]
    share = {
        name: [run["dialogues"][name]["asked"] for run in runs]
        for name in ("before", "answers", "shuffled")
    }
    never = [run["dialogues"]["answers"]["never asked"] for run in runs]
    loss = {
        name: np.mean([run["dialogues"][name]["losses"]["text"] for run in runs])
        for name in ("before", "answers")
    }
    assert min(share["answers"]) > 0.9
    assert max(share["before"]) < 0.3
    assert max(share["shuffled"]) < 0.3
    by_luck = np.mean([run["dialogues"]["before"]["never asked"] for run in runs])
    assert max(never) < min(0.05, by_luck)
    return {
        "share": np.mean(share["answers"]),
        "span": (min(share["answers"]), max(share["answers"])),
        "before": np.mean(share["before"]),
        "shuffled": np.mean(share["shuffled"]),
        "never": np.mean(never),
        "never_span": (min(never), max(never)),
        "never_before": by_luck,
        "answer": right_letter(
            {"a": np.mean(never) > HALF, "b": max(never) < 0.05}, otherwise="c"
        ),
        "answers": SETTINGS["answers"] * len(ASKED),
        "seeds": len(runs),
        "loss_before": loss["before"],
        "loss": loss["answers"],
    }


# --- choices ------------------------------------------------------------------------------


@proof("The loss of DPO is log 2 at the start, and stays so if the reference is trained.")
def reference_stays(page: Page):
    """Check that DPO's loss starts at log 2, and stays so if the reference is trained.

    It is computed for two pairs of lines that answer "(T)", with our GPT.

    It is log 2 to 1e-4 where model and reference have the same log-probabilities, wherever
    these are; and less where the model alone has made the chosen line likelier. Of the four
    mistakes of the page's question, only a reference that is trained keeps it at log 2 when
    the weights have changed.

    Parameters
    ----------
    page : Page
        ``model``, a GPT, and ``tokenizer``, of characters, are our GPT's.

    Returns
    -------
    dict
        ``loss``: that of DPO at the start, in nats; ``answer``: the letter of the right
        choice.
    """
    sides = [
        encode_dialogues(page.tokenizer, ["(T)\n"] * 2, lines)
        for lines in (["That thou art\n", "To thee\n"], ["My love\n", "And when\n"])
    ]
    with torch.no_grad():
        chosen, rejected = (answer_log_probs(page.model, *side) for side in sides)
    losses = [
        dpo_loss(chosen + moved, rejected - moved, chosen + moved, rejected - moved)
        for moved in (0.0, 1.0, 5.0)
    ]
    start = chosen, rejected
    moved = chosen + 1, rejected - 1
    with_a_twin = chosen + chosen.new_tensor([1.0, 0.0]), rejected  # it has no better line
    later = {  # when the weights have changed, with each mistake
        "a": dpo_loss(*moved, *start),
        "b": dpo_loss(*moved, *start, beta=100.0),
        "c": dpo_loss(*with_a_twin, *start),
        "d": dpo_loss(*moved, *moved),
    }
    stays = [k for k, loss in later.items() if abs(loss.item() - math.log(2)) < 1e-4]
    assert max(abs(loss.item() - math.log(2)) for loss in losses) < 1e-4
    assert later["a"].item() < math.log(2)
    assert stays == ["d"]
    return {"loss": losses[0].item(), "answer": stays[0]}


def choices_at_random(page: Page):
    """Choices made at random.

    It is the null of what is found of DPO: a world where the choices say nothing.

    Parameters
    ----------
    page : Page
        ``study["gpt"]`` is a list of dict, one a seed, with ``ways``: list of dict, one for
        each way to use the choices, with its name ``way`` and what it gave.

    Returns
    -------
    Page
        A page like this one; in ``study``, the rows whose name begins with "DPO" hold what
        "choices at random" gave.
    """
    study = copy.deepcopy(page.study)
    for run in study["gpt"]:
        coin = row_of(run, "choices at random")
        for row in run["ways"]:
            if row["way"].startswith("DPO"):
                row.update({key: value for key, value in coin.items() if key != "way"})
    return page.replaced(study=study)


@finding(
    "Trained by DPO on choices between its own lines, our GPT writes lines in which more "
    "words begin alike than in the best of four lines that it wrote before.",
    rival="the best of four: {best:.1f} echoes a line; fine-tuned on these: {filtered:.1f}",
    null=choices_at_random,
    n="{answers} answers of each of {seeds} models, at temperature 0.7",
    interval="DPO less the best of four, lowest and highest: {span:.2f}",
)
def dpo_beats_the_best(page: Page):
    """Check that after DPO lines have more echoes than the best of four before.

    With every seed, DPO has at least one echo a line more, on average over its lines.

    An echo is a word that begins with the same letter as another word of its line. In
    echoes for each word DPO is ahead with every seed, too.

    Fine-tuning on the best of four, at its better learning rate, gives lines whose echoes
    are within half an echo of the best of four, on average over seeds; with every seed it
    is at least one echo a line behind DPO. All answers are drawn at temperature 0.7. The
    first seed's stored lines have no more echoes after choices at random than before.

    Parameters
    ----------
    page : Page
        ``study["gpt"]`` is a list of dict, one a seed. ``ways``: list of dict with ``way``
        ("reference", "best of four", "DPO", "filtered, RATE", "choices at random"),
        ``steps``, ``n``, how many answers, and means of these: ``echoes`` a line and ``a
        word``, echoes for each word. ``lines``: "before", "choices at random" → list of
        str. ``pairs["DPO"]``, how many pairs.

    Returns
    -------
    dict
        Echoes a line, means over seeds: ``before``; ``best``, of four; ``dpo``;
        ``filtered``, fine-tuned on the best of four. Differences in echoes a line, lowest
        and highest over seeds: ``span``, DPO less the best of four; ``coin``, choices at
        random less before, and ``coin_most``, its largest size. Echoes for each word:
        ``word_before``, ``word_best`` of four, ``word`` after DPO. How many: ``steps`` of
        DPO, ``pairs`` (a mean over seeds), ``seeds``, ``answers`` of each model.
    """
    runs = page.study["gpt"]
    last = last_steps(runs)
    more = gaps(runs, "DPO", "best of four", "echoes", last)
    filtered = [better_filtered(run)["echoes"] for run in runs]
    best = [row_of(run, "best of four")["echoes"] for run in runs]
    dpo = [row_of(run, "DPO", last)["echoes"] for run in runs]
    assert min(more) > 1
    assert min(np.subtract(dpo, filtered)) > 1
    assert abs(np.mean(filtered) - np.mean(best)) < HALF
    assert min(gaps(runs, "DPO", "best of four", "a word", last)) > 0
    shown = runs[0]["lines"]
    assert echoes_of(shown["choices at random"]) <= echoes_of(shown["before"])
    coin = gaps(runs, "choices at random", "reference", "echoes")
    return {
        "before": mean_of(runs, "reference", "echoes"),
        "best": np.mean(best),
        "dpo": mean_of(runs, "DPO", "echoes", last),
        "filtered": np.mean(filtered),
        "span": (min(more), max(more)),
        "coin": (min(coin), max(coin)),
        "coin_most": max(map(abs, coin)),
        "word_before": mean_of(runs, "reference", "a word"),
        "word_best": mean_of(runs, "best of four", "a word"),
        "word": mean_of(runs, "DPO", "a word", last),
        "steps": last,
        "pairs": np.mean([run["pairs"]["DPO"] for run in runs]),
        "seeds": len(runs),
        "answers": row_of(runs[0], "DPO", last)["n"],
    }


@proof(
    "Fine-tuned again and again on the best of its own new lines, our GPT comes near one "
    "round of DPO in two rounds and passes it in three. Two rounds of DPO go further "
    "still, in longer lines."
)
def rounds_go_on(page: Page):
    """Compare echoes a line, with every seed.

    An echo is a word that begins with the same letter as another word of its line.

    Two rounds of fine-tuning come within an echo of one of DPO, and have more for each
    word; three are half an echo beyond it or more, and two rounds of DPO are an echo beyond
    these. The lines of two rounds of DPO have a word more than those of three rounds of
    fine-tuning; counted for each word, they have as many echoes, to five in a hundred
    words.

    After two rounds, held-out answers are as hard for both, to a tenth of a nat a
    character. At most six in ten answers of DPO begin with the letter asked for, nearly all
    after fine-tuning. Held-out sonnets suffer more than three times as much from two or
    three rounds of fine-tuning as from one of DPO.

    Three rounds on any of the lines, best or not, raise echoes, too; they stay an echo
    below the second round on the best.

    Parameters
    ----------
    page : Page
        ``rounds_study``: way ("the best", "any line", "DPO") → list of dict, one a seed, in
        the same order. Each has ``rounds``, a list of dict, the first before training, with
        ``echoes`` a line; ``obeyed``, the share of answers that begin with the letter asked
        for, 0 to 1; ``words`` a line; ``a word``, echoes for each; ``losses``, a dict of
        nats a character: ``answers``, held-out ones, and ``text``, held-out sonnets.

    Returns
    -------
    dict
        Means over seeds. Echoes a line: ``before``; ``second`` and ``third``, after so many
        rounds of fine-tuning on the best lines; ``dpo_again``, after two rounds of DPO;
        ``any``, after three rounds on any line. ``lost`` and ``lost_dpo``: by how many nats
        a character held-out sonnets are predicted worse than before, after three rounds of
        fine-tuning on the best lines and after one of DPO. ``obeyed`` and ``obeyed_again``:
        shares of answers that begin with the letter asked for, after two rounds of
        fine-tuning and of DPO. ``seeds``: how many.
    """
    ways = page.rounds_study

    def averages(way, number, key):
        """Return a mean over answers after a round of a way, an array, one a seed.

        ``way`` : "the best", "any line" or "DPO"; ``number`` : the round, 0 is before any;
        ``key`` : "echoes", "words", "a word" or "obeyed".
        """
        return np.array([run["rounds"][number][key] for run in ways[way]])

    def echoes(way, number):
        """Return the echoes a line after a round of a way, an array, one a seed.

        ``way`` : "the best", "any line" or "DPO"; ``number`` : the round, 0 is before any.
        """
        return averages(way, number, "echoes")

    def obeyed(way, number):
        """Return the share of answers with the letter asked for, an array, one a seed.

        ``way`` : "the best", "any line" or "DPO"; ``number`` : the round, 0 is before any.
        """
        return averages(way, number, "obeyed")

    def lost(way, number, what):
        """Return by how many nats a character the loss has risen, an array, one a seed.

        ``way`` : "the best" or "DPO"; ``number`` : after which round; ``what`` : "answers"
        or "text": held-out answers to requests, or held-out sonnets.
        """
        rows = [(run["rounds"][number], run["rounds"][0]) for run in ways[way]]
        return np.array([now["losses"][what] - was["losses"][what] for now, was in rows])

    second = echoes("the best", 2)
    third = echoes("the best", 3)
    dpo_once = echoes("DPO", 1)
    dpo_twice = echoes("DPO", 2)
    anyway = echoes("any line", 3)
    assert max(abs(second - dpo_once)) < 1
    assert min(third - dpo_once) > HALF
    assert min(dpo_twice - third) > 1
    words = averages("DPO", 2, "words") - averages("the best", 3, "words")
    assert min(words) > 1
    a_word = averages("DPO", 2, "a word") - averages("the best", 3, "a word")
    assert max(abs(a_word)) < 0.05
    assert max(abs(lost("the best", 2, "answers") - lost("DPO", 2, "answers"))) < 0.1
    assert min(averages("the best", 2, "a word") - averages("DPO", 1, "a word")) > 0
    text = lost("the best", 3, "text")
    text_dpo = lost("DPO", 1, "text")
    assert min(text - 3 * text_dpo) > 0
    assert min(lost("the best", 2, "text") - 3 * text_dpo) > 0
    assert max(obeyed("DPO", 2)) < 0.6
    assert min(obeyed("the best", 2)) > 0.95
    assert min(anyway - echoes("any line", 0)) > 1
    assert min(second - anyway) > 1
    return {
        "before": np.mean(echoes("the best", 0)),
        "second": np.mean(second),
        "third": np.mean(third),
        "dpo_again": np.mean(dpo_twice),
        "any": np.mean(anyway),
        "lost": np.mean(text),
        "lost_dpo": np.mean(text_dpo),
        "obeyed": np.mean(obeyed("the best", 2)),
        "obeyed_again": np.mean(obeyed("DPO", 2)),
        "seeds": len(dpo_once),
    }


def pairs_of_equals(page: Page):
    """Pairs of two lines with equally many echoes.

    Parameters
    ----------
    page : Page
        ``pairs_study`` is a list of dict, one a seed: kind of pairs ("far apart", "both
        poor", "equals") → dict, what was measured after training on them.

    Returns
    -------
    Page
        A page like this one, in whose ``pairs_study`` all kinds of pairs have the results
        of the pairs of equals.
    """
    study = copy.deepcopy(page.pairs_study)
    for run in study:
        run["far apart"] = run["both poor"] = run["equals"]
    return page.replaced(pairs_study=study)


@finding(
    "Trained for a hundred steps of DPO to prefer its best lines to its worst, our GPT "
    "finds both far less likely than before.",
    rival="the chosen lines become likelier; where both lines of a pair are as good, the "
    "training alone makes them less likely, but by less than a fifth as many nats",
    null=pairs_of_equals,
    n="{pairs} pairs or more and {answers} answers of each of {seeds} models",
    interval="nats by which the chosen lines become likelier, lowest and highest: "
    "{span:.1f}",
)
def chosen_become_rarer(page: Page):
    """Check that DPO makes chosen and rejected lines less likely.

    So it is with every seed, in pairs of the training and in new ones.

    Best and worst are the lines with the most and the fewest echoes of four; an echo is a
    word that begins with the same letter as another word of its line. The chosen ones
    become less than a tenth as likely, the geometric mean, and lose more than five times as
    many nats as those of pairs of equals. Rejected lines lose more: in the training's pairs
    more than twice as many nats. Of pairs of two poor lines this is not said: with one of
    the seeds their chosen lines become likelier.

    With every seed the better of two poor lines has at most half an echo more than the
    model's own lines before; after DPO on such pairs the model's lines have two more than
    these. Pairs of equals move its echoes by less than one, though their chosen lines have
    an echo more than its own before.

    Parameters
    ----------
    page : Page
        ``pairs_study`` is a list of dict, one a seed: ``before``, a dict with ``echoes`` a
        line of the model's own lines; for each kind of pairs ("far apart", "both poor",
        "equals") a dict: ``pairs``, how many; ``after["echoes"]``, those of its lines after
        DPO, and ``after["n"]``, how many lines; ``chosen``, echoes a line of the chosen;
        ``gained`` and ``gained, new``, dicts, by how many nats ``chosen`` and ``rejected``
        lines become likelier, those of its training and others.

    Returns
    -------
    dict
        Nats by which DPO makes lines less likely, mean over seeds: ``chosen`` and
        ``rejected``, lines of the training's pairs; ``new`` and ``new_rejected``, those of
        new pairs. ``span``: by how much the chosen lines become likelier, lowest and
        highest. Echoes: ``before``, of the model's own lines; ``poor``, after DPO on pairs
        of poor lines, with lowest and highest ``poor_span``, and ``poor_chosen``, of the
        chosen lines of these pairs; ``equals`` and ``equals_chosen``, the same of pairs of
        equals, and ``equals_span``, how far the echoes move from ``before``. ``pairs``: the
        fewest pairs of poor lines or of equals; ``answers`` of each model and ``seeds``:
        how many.
    """
    runs = page.pairs_study

    def values_by_seed(kind, *keys):
        """Return of every seed a value of the model trained on pairs of one kind, an array.

        ``kind`` : "far apart", "both poor" or "equals"; ``keys`` : where the value stands
        in its dict, such as "gained", "chosen".
        """
        rows = [run[kind] for run in runs]
        for key in keys:
            rows = [row[key] for row in rows]
        return np.array(rows)

    before = np.array([run["before"]["echoes"] for run in runs])
    chosen, rejected = (
        values_by_seed("far apart", "gained", side) for side in ("chosen", "rejected")
    )
    new = values_by_seed("far apart", "gained, new", "chosen")
    new_rejected = values_by_seed("far apart", "gained, new", "rejected")
    poor = values_by_seed("both poor", "after", "echoes")
    poor_chosen = values_by_seed("both poor", "chosen")
    equals = values_by_seed("equals", "after", "echoes")
    assert max(chosen.max(), new.max()) < -np.log(10)
    assert all(chosen < 5 * values_by_seed("equals", "gained", "chosen"))
    assert all(new < 5 * values_by_seed("equals", "gained, new", "chosen"))
    assert all(rejected < 2 * chosen)
    assert all(new_rejected < new)
    assert all(poor_chosen < before + HALF)
    assert min(poor - poor_chosen) > 2
    assert max(abs(equals - before)) < 1
    assert min(values_by_seed("equals", "chosen") - before) > 1
    return {
        "chosen": -np.mean(chosen),
        "rejected": -np.mean(rejected),
        "span": (min(chosen), max(chosen)),
        "new": -np.mean(new),
        "new_rejected": -np.mean(new_rejected),
        "before": np.mean(before),
        "poor": np.mean(poor),
        "poor_chosen": np.mean(poor_chosen),
        "poor_span": (min(poor), max(poor)),
        "equals": np.mean(equals),
        "equals_chosen": np.mean(values_by_seed("equals", "chosen")),
        "equals_span": (min(equals - before), max(equals - before)),
        "pairs": int(
            min(values_by_seed(kind, "pairs").min() for kind in ("both poor", "equals"))
        ),
        "answers": int(values_by_seed("far apart", "after", "n").min()),
        "seeds": len(runs),
    }


@proof(
    "After DPO far more words begin with t, and shuffled among the lines they echo nearly "
    "as often."
)
def one_letter_does_it(page: Page):
    """Compare the stored lines: more words begin with t, with every seed.

    They are more by over five in a hundred. With all lines together, shuffling changes the
    echoes by less than half of one a line; shuffled, they have over two more than the
    shuffled lines before DPO.

    Parameters
    ----------
    page : Page
        ``study["gpt"]`` is a list of dict, one a seed, with ``lines``: "before" or "after
        DPO" → that model's lines, list of str.

    Returns
    -------
    dict
        Shares of words that begin with t: ``t_before``, ``t_after``. Echoes a line after
        DPO, words that begin with the same letter as another word of their line:
        ``as_written``, and ``shuffled``, with the words of all lines exchanged at random.
        ``lines``: how many they are.
    """
    runs = page.study["gpt"]
    by_seed = [
        [words_with("t", run["lines"][name]) for name in ("before", "after DPO")]
        for run in runs
    ]
    before, after = (
        [line for run in runs for line in run["lines"][name]]
        for name in ("before", "after DPO")
    )
    as_written = echoes_of(after)
    shuffled = echoes_if_shuffled(after)
    assert all(first + 0.05 < then for first, then in by_seed)
    assert abs(as_written - shuffled) < 0.5
    assert shuffled - echoes_if_shuffled(before) > 2
    return {
        "t_before": words_with("t", before),
        "t_after": words_with("t", after),
        "as_written": as_written,
        "shuffled": shuffled,
        "lines": len(after),
    }


@finding(
    "Trained on choices of lines whose words begin alike, our GPT also writes longer "
    "lines, though nobody chose by length.",
    rival="DPO on pairs of nearly equal length: {alike:.1f} characters more; on choices at "
    "random: {coin:.1f}",
    null=choices_at_random,
    n="{answers} answers of each of {seeds} models",
    interval="characters more than before, lowest and highest: {span:.1f}",
)
def lines_grow(page: Page):
    """Check that DPO makes lines longer, though nobody chose by length.

    They grow with every seed by eight characters at least, and by four more than with equal
    pairs.

    The echoes that DPO brings are more, with every seed, than choices at random ever move.

    Equal pairs are pairs of answers of nearly equal length. An echo is a word that begins
    with the same letter as another word of its line.

    Parameters
    ----------
    page : Page
        ``study["gpt"]`` is a list of dict, one a seed, with ``ways``: list of dict, with
        ``way`` ("reference", "DPO", "equal lengths", "choices at random"), ``steps``,
        ``n``, how many answers, and means of these: ``characters`` and ``echoes`` a line,
        ``a word``, echoes for each word.

    Returns
    -------
    dict
        Characters a line, means: ``before``, ``after`` DPO. Characters more than before:
        ``more``, after DPO, and ``alike``, on pairs of equal length, means; lowest and
        highest over seeds ``span``, ``alike_span`` and, on choices at random, ``coin``. Of
        equal pairs ``alike_echoes`` a line, ``alike_gain``, echoes more than before, lowest
        and highest, and ``alike_word``, echoes a word. ``answers`` of each model and
        ``seeds``, how many; ``answer`` and ``judge``, letters of right choices: whether
        lines grow with every seed ("b"), shrink ("c") or neither ("a"); and "a" if choices
        at random move echoes as much as DPO, else "b" if lines grow or shrink, else "?".
    """
    runs = page.study["gpt"]
    last = last_steps(runs)
    more = gaps(runs, "DPO", "reference", "characters", last)
    alike = gaps(runs, "equal lengths", "reference", "characters")
    coin = gaps(runs, "choices at random", "reference", "characters")
    assert min(more) > 8
    assert all(a + 4 < b for a, b in zip(alike, more, strict=True))
    alike_gained = gaps(runs, "equal lengths", "reference", "echoes")
    gained = gaps(runs, "DPO", "reference", "echoes", last)
    by_luck = max(map(abs, gaps(runs, "choices at random", "reference", "echoes")))
    assert min(gained) > by_luck
    grows = min(more) > 0
    shrinks = max(more) < 0
    changes_uncounted = grows or shrinks
    return {
        "more": np.mean(more),
        "span": (min(more), max(more)),
        "alike": np.mean(alike),
        "alike_span": (min(alike), max(alike)),
        "coin": (min(coin), max(coin)),
        "alike_echoes": mean_of(runs, "equal lengths", "echoes"),
        "alike_gain": (min(alike_gained), max(alike_gained)),
        "alike_word": mean_of(runs, "equal lengths", "a word"),
        "before": mean_of(runs, "reference", "characters"),
        "after": mean_of(runs, "DPO", "characters", last),
        "answer": right_letter({"b": grows, "c": shrinks}, otherwise="a"),
        "judge": right_letter({"a": min(gained) <= by_luck, "b": changes_uncounted}),
        "seeds": len(runs),
        "answers": row_of(runs[0], "DPO", last)["n"],
    }


@finding(
    "After DPO at four times the learning rate, our GPT writes still more words that begin "
    "alike, but it repeats them and predicts verse worse.",
    rival="DPO at a quarter of the rate: worse by {mild:.2f} nats a character",
    null=choices_at_random,
    n="{lines} held-out lines, {seeds} models",
    interval="worse by, lowest and highest: {span:.2f} nats",
)
def too_far(page: Page):
    """Check what DPO at four times the learning rate does to echoes and losses.

    The loss of held-out lines rises by half a nat a character at least, with every seed.

    "Too hard" is DPO at four times the rate. An echo is a word that begins with the same
    letter as another word of its line: each seed's gain in echoes is above the largest gain
    of DPO at the usual rate. In the stored lines, the share of words that the same line had
    before is more than twice what it was in the reference.

    With every seed the KL divergence from the reference after DPO is three times that after
    choices at random at least, and after DPO at four times the rate twice that after DPO.
    After the fewest steps of DPO, a line has more echoes with every seed than after
    fine-tuning on the best of four at its better rate, and the KL divergence is a nat
    smaller on average.

    Parameters
    ----------
    page : Page
        ``study["gpt"]`` is a list of dict, one a seed. ``ways``: list of dict with ``way``
        ("reference", "DPO", "DPO, too far", "filtered, RATE", "choices at random"),
        ``steps``; means of its answers, ``echoes`` a line and ``obeyed``, the share that do
        as asked; ``losses["answers"]``, nats a character; ``kl``, nats an answer.
        ``lines``: "before" or "four times the rate" → list of str.

    Returns
    -------
    dict
        By how much the loss of held-out lines rises, in nats a character: ``lost``, at four
        times the rate, with lowest and highest ``span``, and ``mild``, at the usual rate.
        At four times the rate ``echoes`` a line; ``twice`` and ``twice_before``, shares of
        words that the same line had before, then and in the reference. KL divergence from
        the reference, in nats an answer: ``kl``, after DPO; ``kl_far``, at four times the
        rate; ``kl_coin``, after choices at random; ``kl_early``, after the fewest steps of
        DPO, which are ``steps_early``; ``kl_filtered``, after fine-tuning on the best of
        four. Shares of answers that do as asked: ``obeyed``, after DPO, ``obeyed_far`` and,
        in the reference, ``obeyed_before``. ``lines`` (held out) and ``seeds``: how many.
    """
    runs = page.study["gpt"]
    last = last_steps(runs)

    def lost(way, steps=None):
        """Return by how much the loss of held-out lines rises in each run.

        ``way``, a name such as "DPO", and ``steps``, int or None : which row of a run. A
        list of float, in nats a character.
        """
        return [
            row_of(run, way, steps)["losses"]["answers"]
            - row_of(run, "reference")["losses"]["answers"]
            for run in runs
        ]

    twice = {name: repeated(runs, name) for name in ("before", "four times the rate")}
    assert twice["four times the rate"] > 2 * twice["before"]
    far = lost("DPO, too far")
    mild = lost("DPO", last)
    more = gaps(runs, "DPO, too far", "reference", "echoes")
    assert min(far) > HALF
    assert min(more) > max(gaps(runs, "DPO", "reference", "echoes", last))
    early = [row_of(run, "DPO") for run in runs]
    filtered = list(map(better_filtered, runs))
    kl, kl_far, kl_coin, kl_early, kl_filtered = (
        np.array([row["kl"] for row in rows])
        for rows in (
            [row_of(run, "DPO", last) for run in runs],
            [row_of(run, "DPO, too far") for run in runs],
            [row_of(run, "choices at random") for run in runs],
            early,
            filtered,
        )
    )
    assert min(kl / kl_coin) > 3
    assert min(kl_far / kl) > 2
    assert np.mean(kl_early) < np.mean(kl_filtered) - 1
    pairs = zip(early, filtered, strict=True)
    assert all(one["echoes"] > other["echoes"] for one, other in pairs)
    return {
        "lost": np.mean(far),
        "span": (min(far), max(far)),
        "mild": np.mean(mild),
        "echoes": mean_of(runs, "DPO, too far", "echoes"),
        "twice_before": twice["before"],
        "twice": twice["four times the rate"],
        "kl": np.mean(kl),
        "kl_far": np.mean(kl_far),
        "kl_coin": np.mean(kl_coin),
        "kl_early": np.mean(kl_early),
        "kl_filtered": np.mean(kl_filtered),
        "steps_early": early[0]["steps"],
        "obeyed": mean_of(runs, "DPO", "obeyed", last),
        "obeyed_far": mean_of(runs, "DPO, too far", "obeyed"),
        "obeyed_before": mean_of(runs, "reference", "obeyed"),
        "lines": len(dialogues_of("test", ASKED)[0]),
        "seeds": len(runs),
    }


# --- a reward -----------------------------------------------------------------------------


@proof("A reward that cannot count echoes still predicts choices by them: it counts words.")
def reward_counts_words(page: Page):
    """Check that a reward that cannot count echoes predicts choices by counting words.

    It predicts new choices better than one fitted to a coin's, with every seed.

    An echo is a word that begins with the same letter as another word of its line. The
    reward, a weighted sum of properties of a line, predicts more than 65 % of new choices;
    one that is fitted to a coin's choices fewer than 60 %. Of its weights, for properties
    of the same spread, that of words is more than three times any other's. The best of
    sixteen lines by it have more words, and more echoes; word by word they have fewer
    echoes than the best of four that were chosen by echoes.

    Parameters
    ----------
    page : Page
        ``study["gpt"]`` is a list of dict, one a seed. ``reward``: dict, ``fits``: "all",
        "without echoes", "length alone", "choices at random" → ``right``, the share of new
        choices predicted, and ``weights``, dict, property of a line → float; ``best``, list
        of dict, the first of single lines, the last of the best of sixteen by the reward:
        means ``words``, ``echoes``, ``a word`` (echoes). ``ways``: list of dict, ``way``,
        "best of four" for one, with such means.

    Returns
    -------
    dict
        Shares of new choices predicted: ``right``, by the reward that knows no echoes;
        ``right_all``, by one that does; ``right_coin``, by one fitted to a coin's. Means
        over seeds of one line and of the best of sixteen by the first: ``words`` and
        ``words_many``; echoes a word ``word``, ``word_many`` and, of the best of four by
        echoes, ``word_best``; ``echoes_many``, a line.
    """
    runs = [run["reward"] for run in page.study["gpt"]]
    fits = {
        name: [run["fits"][name] for run in runs]
        for name in ("all", "without echoes", "length alone", "choices at random")
    }
    right = {name: [fit["right"] for fit in each] for name, each in fits.items()}
    assert min(right["without echoes"]) > 0.65
    assert max(right["choices at random"]) < 0.6
    for fit in fits["without echoes"]:
        others = [abs(x) for name, x in fit["weights"].items() if name != "words"]
        assert fit["weights"]["words"] > 3 * max(others)
    single, many = ([run["best"][at] for run in runs] for at in (0, -1))
    best = [row_of(run, "best of four") for run in page.study["gpt"]]
    for few, more, chosen in zip(single, many, best, strict=True):
        assert more["words"] > few["words"] + 1
        assert few["a word"] < more["a word"] < chosen["a word"]

    def mean(rows, key):
        """Return the mean of a value over seeds, a float.

        ``rows`` : list of dict, one a seed; ``key`` : which value, such as "words".
        """
        return float(np.mean([row[key] for row in rows]))

    return {
        "right": np.mean(right["without echoes"]),
        "right_all": np.mean(right["all"]),
        "right_coin": np.mean(right["choices at random"]),
        "words": mean(single, "words"),
        "words_many": mean(many, "words"),
        "word": mean(single, "a word"),
        "word_many": mean(many, "a word"),
        "word_best": mean(best, "a word"),
        "echoes_many": mean(many, "echoes"),
    }


# --- SmolLM2 ------------------------------------------------------------------------------


def names_taken(page: Page):
    """Return the answers in which SmolLM2 says the name that the system turn gave it.

    Parameters
    ----------
    page : Page
        ``study["talker"][0]["named"]`` is a list of dict: the ``name`` that the system turn
        gives, and SmolLM2's ``answer``, both str.

    Returns
    -------
    Page
        A page like this one; in ``study``, each ``answer`` gives the row's ``name``.
    """
    study = copy.deepcopy(page.study)
    for row in study["talker"][0]["named"]:
        row["answer"] = f"My name is {row['name']}."
    return page.replaced(study=study)


@finding(
    "Told one of twenty names and asked “What is your name?”, SmolLM2 mostly gives "
    "another one.",
    rival="the name it was told: {right} of {names} times",
    null=names_taken,
    n="{names} names told in the system turn",
    interval="answers with the name it was told: {span:.0%}",
)
def name_is_its_own(page: Page):
    """Check that SmolLM2 mostly gives another name than the one it was told.

    Greedy answers to one question are searched; a name counts wherever it stands.

    The interval of the share of right answers ends below a half; that of answers that give
    another name, and not the right one, begins above a half. Among these twenty, the name
    that it gives when told none comes more often than the right one. With other names or
    another question that may be otherwise.

    Parameters
    ----------
    page : Page
        ``study["talker"][0]`` is a dict: ``named``, list of dict, the ``name`` that the
        system turn gives and the ``answer``; ``unnamed``, dict, "as shipped" or "no system
        turn" → the answer. All are str.

    Returns
    -------
    dict
        How often the answer has the name that it was told: ``right``, of ``names``, with
        the 95 % interval ``span`` of the share. ``untold``: the name that it gives when
        told none; ``own``: how many of the ``names`` answers have that; ``shipped``:
        whether the answer with the system turn that it is shipped with has it, too.
    """
    talker = page.study["talker"][0]
    hits = np.array([row["name"] in row["answer"] for row in talker["named"]])
    untold = WORD.findall(talker["unnamed"]["no system turn"].partition("is ")[2])[0]
    own = sum(untold in row["answer"] for row in talker["named"])
    a_name = re.compile(r"(?:name is|I am|I'm) [A-Z]\w+")
    names = np.array([bool(a_name.search(row["answer"])) for row in talker["named"]])
    others = names & ~hits
    span = share_interval(hits)
    assert span[1] < HALF
    assert share_interval(others)[0] > HALF
    assert own > hits.sum()
    return {
        "span": span,
        "names": len(hits),
        "right": int(hits.sum()),
        "own": own,
        "untold": untold,
        "shipped": untold in talker["unnamed"]["as shipped"],
    }
