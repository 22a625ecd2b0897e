"""Twenty pairs of lines: the reader takes the better of each, and a small model moves."""

import copy
import html

import numpy as np
import torch

from lmcourse.gpt.generation import generate
from lmcourse.guessing import held_out_lines
from lmcourse.numbers import format_number, plural
from lmcourse.preferences import PROPERTIES, differences, fit_reward, properties
from lmcourse.views.generator import why_not_in_page
from lmcourse.views.markup import table
from lmcourse.views.view import View

PAIRS = 20
SAMPLED = 160  # lines from which the pairs are taken
SHORTEST, LONGEST = 18, 44  # characters of a line, without the new line that ends it
SEED, TEMPERATURE = 3, 0.7
RIDGE = 1.0  # of the reward
MEASURED = 60  # characters after which a line is cut that the page measures
WINDOWS = 12  # held-out texts on which the loss is measured
# How the page trains: by DPO, a few pairs at a time.
TRAINING = {"steps": 40, "pairs": 4, "rate": 3e-4, "beta": 0.1, "lines": 40}


def choices(tokenizer, model) -> View:
    """Show twenty pairs of a GPT's lines, from each of which the reader chooses one.

    On the site the reader takes the better line of each pair; a reward, a weighted sum of
    what can be counted in a line (`PROPERTIES`: characters, words, echoes, capitals, marks
    of punctuation), is fitted to the choices, and the GPT learns from them by direct
    preference optimisation, in the page. Before, and on paper, stand the first pair and
    what somebody would get who always takes the line with more echoes (words that begin
    with the same letter as another one): ::

        views.choices(*load_gpt()[:2])

    Parameters
    ----------
    tokenizer : lmcourse.tokenization.CharTokenizer
        Of the course's own GPT. With another kind, the view stays as it is stored.
    model : lmcourse.gpt.model.GPT
        Its weights are rounded to float16, as the site carries them.

    Returns
    -------
    View
        Its alternative text has the first pair, and how well the reward predicts. If the
        model does not run in the page, it has no data, and says why.

    Raises
    ------
    ValueError
        If the model writes too few lines that differ.
    """
    model = copy.deepcopy(model).cpu().half().float().eval()
    pairs = write_pairs(tokenizer, model)
    stored = _stored(pairs)
    alt = _alternative_text(pairs)
    if why := why_not_in_page(tokenizer, model):
        why = f"There is nothing to choose in the page, because of the chosen GPT: {why}."
        stored = f"<p><small>{html.escape(why)}</small></p>{stored}"
        return View("choices-view", None, stored, alt=alt, plain=f"[{why}] {alt}")
    context = model.config.context
    data = {
        "pairs": pairs,
        "names": list(PROPERTIES),
        "ridge": RIDGE,
        "seed": SEED,
        "alphabet": tokenizer.alphabet,
        "held_out": _held_out(tokenizer, context),
        "longest": min(MEASURED, context - 2),
        "temperature": TEMPERATURE,
        "training": TRAINING,
    }
    return View("choices-view", data, stored, alt=alt, stores=["gpt"])


def write_pairs(tokenizer, model, seed: int = SEED) -> list[list[str]]:
    """Return `PAIRS` = 20 pairs of lines that a model writes, always the same.

    They are taken from 160 lines (`SAMPLED`), drawn at a temperature of 0.7, each after a
    line break. Lines of 18 to 44 characters that end by themselves come first; others are
    cut after 44. The two lines of a pair differ in the number of their echoes (words that
    begin with the same letter as another one), so that who looks for these always knows
    which one.

    Parameters
    ----------
    seed : int
        Of the random draws.
    tokenizer : CharTokenizer
    model : GPT

    Returns
    -------
    list of [str, str]
        The two lines of each pair.

    Raises
    ------
    ValueError
        If the model writes too few lines that differ.
    """
    start = torch.tensor([tokenizer.encode("\n")] * SAMPLED)
    generator = torch.Generator().manual_seed(seed)
    ids = generate(model, start, LONGEST + 1, TEMPERATURE, generator)[:, start.shape[1] :]
    texts = [tokenizer.decode(row.tolist()) for row in ids]
    suitable = [text.partition("\n")[0] for text in texts if _is_suitable(text)]
    others = [text.partition("\n")[0] for text in texts if not _is_suitable(text)]
    lines = (line[:LONGEST].strip() for line in suitable + others)
    left = [line for line in dict.fromkeys(lines) if line]
    pairs = []
    while left and len(pairs) < PAIRS:
        first = left.pop(0)
        count = properties(first)["echoes"]
        other = next((line for line in left if properties(line)["echoes"] != count), None)
        if other is not None:
            left.remove(other)
            pairs.append([first, other])
    if len(pairs) < PAIRS:
        raise ValueError(f"of {SAMPLED} lines only {len(pairs)} pairs differ, not {PAIRS}")
    return pairs


def _is_suitable(text: str) -> bool:
    """Return whether a text begins with a whole line of 18 to 44 characters.

    A line is whole if a line break ends it.
    """
    line, end, _ = text.partition("\n")
    return bool(end) and SHORTEST <= len(line) <= LONGEST


def correct_predictions(differences, chosen_first, ridge: float = RIDGE) -> float:
    """Return how many choices a reward predicts that was fitted to all the others.

    Parameters
    ----------
    differences : array of shape (pairs, properties)
        Of each pair what was counted in the first line (such as its words) less the same of
        the second.
    chosen_first : array of bool, of shape (pairs,)
        Whether the first line was chosen.
    ridge : float
        How strongly large weights of the reward are held down; above 0.

    Returns
    -------
    float
        How many of the pairs, 0 to all. One whose lines have the same reward counts one
        half.
    """
    differences = np.asarray(differences, dtype=float)
    chosen_first = np.asarray(chosen_first, dtype=bool)
    right = 0.0
    for i in range(len(differences)):
        others = np.arange(len(differences)) != i
        weights = fit_reward(differences[others], chosen_first[others], ridge)
        margin = differences[i] @ weights
        if margin == 0:
            right += 0.5
        elif (margin > 0) == chosen_first[i]:
            right += 1
    return right


def more_echoes(pairs) -> list[bool]:
    """Return whether the first line of each pair has more echoes, list of bool.

    An echo is a word that begins with the same letter as another word of its line.

    ``pairs`` : sequence of (str, str), two lines each.
    """
    return [properties(a)["echoes"] > properties(b)["echoes"] for a, b in pairs]


def _held_out(tokenizer, context: int) -> list[str]:
    """Return texts that the model was not trained on, each of a context and one more.

    A text is a line of the test sonnets and the two lines before it, cut after ``context``
    + 1 characters; those that are shorter, or have a character that the model does not
    know, are left out.

    ``tokenizer`` : CharTokenizer, of which the ``alphabet``, a str, is used; ``context`` :
    how many tokens, here characters, the model reads at most. Returns a list of 12 str
    (`WINDOWS`) at the most.
    """
    texts = [line.before + line.text for line in held_out_lines()]
    known = set(tokenizer.alphabet)
    long = [text for text in texts if len(text) > context and known >= set(text)]
    return [text[: context + 1] for text in long[:WINDOWS]]


def _fitted(pairs):
    """Fit the reward that somebody gets who always takes the line with more echoes.

    An echo is a word that begins with the same letter as another word of its line.

    ``pairs`` : sequence of (str, str), two lines each. Returns a tuple: the reward's
    weights (properties,), an array in the order of `PROPERTIES`; and a float, how many of
    the choices the reward predicts when each is left out of the fit.
    """
    apart = differences(*zip(*pairs, strict=True))
    taken = more_echoes(pairs)
    return fit_reward(apart, taken, RIDGE), correct_predictions(apart, taken)


def _stored(pairs) -> str:
    """Return what stands there without scripts, as HTML: the first pair, a fitted reward.

    The reward is that of somebody who always takes the line with more echoes: a weight for
    each of `PROPERTIES`, and how many of the choices it predicts when each is left out.

    ``pairs`` : list of [str, str], two lines each.
    """
    weights, right = _fitted(pairs)
    shown = "".join(f"<li>{html.escape(line)}</li>" for line in pairs[0])
    rows = [
        (name, format_number(weight, ".2f"))
        for name, weight in zip(PROPERTIES, weights, strict=True)
    ]
    return (
        f'<p>Which line do you like better?</p><ol class="lmv-lines">{shown}</ol>\n'
        f"<p>That is the first of {PAIRS} pairs. If you always took the line with more "
        "echoes (words that begin with the same letter as another word of the line), this "
        "reward would fit your choices:</p>\n"
        + table(["property", "weight"], rows)
        + f"<p>Fitted to all choices but one, it predicts that one correctly {right:g} "
        f"{plural(right, 'time')} in {PAIRS}. A coin would be right {PAIRS / 2:g} "
        "times on average.</p>"
    )


def _alternative_text(pairs) -> str:
    """Return the alternative text: the first pair, and how well a reward predicts choices.

    ``pairs`` : list of [str, str], two lines each.
    """
    _, right = _fitted(pairs)
    first, second = pairs[0]
    return (
        f"{PAIRS} pairs of lines to choose from; the first: “{first}” or “{second}”. If "
        f"you always took the line with more echoes, a reward would predict {right:g} of "
        f"{PAIRS} choices correctly."
    )
