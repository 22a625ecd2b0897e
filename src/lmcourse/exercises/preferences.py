"""Checks for the tasks of the chapter *preferences*."""

import math
from types import SimpleNamespace

import torch

from lmcourse.data import stored
from lmcourse.exercises import Case, Faults, exercise, judge, predict
from lmcourse.exercises.answers import Unfit, normal
from lmcourse.preferences import LONGEST, properties


@exercise("preferences.answer_loss", kind="spot the bug")
def answer_loss():
    """Check a reader's loss of the answers in dialogues.

    The answer is a function of logits (batch, tokens, vocab_size), ids (batch, tokens) and
    `is_answer`, bool (batch, tokens): True at the tokens of an answer, False at those of a
    request and of padding. It returns a mean in nats. Oracle: a loop over the answers'
    tokens, each predicted at the token before.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    logits = normal(2, 6, 5, seed=3)
    ids = torch.tensor([[1, 4, 0, 2, 3, 0], [2, 2, 1, 4, 0, 0]])
    is_answer = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 0, 0]]).bool()
    log_probs = logits.log_softmax(-1)
    losses = torch.zeros(2, 6)
    for row in range(2):
        for token in range(1, 6):
            losses[row, token] = -log_probs[row, token - 1, ids[row, token]]
    want = losses[is_answer].mean()
    shifted = losses[:, 1:][is_answer[:, :-1]].mean()
    each = (losses * is_answer).sum(1)
    mistakes = {
        "the request's tokens are in the mean, and so are the zeros that fill up.": (
            losses[:, 1:].mean()
        ),
        "the mask is one position late: loss i is that of token i + 1.": shifted,
        "the answers' losses are divided by the number of all tokens.": (
            losses[is_answer].sum() / losses[:, 1:].numel()
        ),
        "this is the loss of the requests; the mask is upside down.": (
            losses[:, 1:][~is_answer[:, 1:]].mean()
        ),
        "this is the sum; take the mean over the answers' tokens.": losses[is_answer].sum(),
        "short answers weigh more: take the mean over all answers' tokens at once.": (
            (each / is_answer.sum(1)).mean()
        ),
        "the sign is wrong: a loss falls as the answer becomes likelier.": -want,
    }
    yield Case([logits, ids, is_answer], want, mistakes)


# The proof `does_as_asked` measures it.
predict(
    "preferences.never_asked",
    a="so it would be if it had learned to copy the letter from the request.",
    b=None,
    c="training changed this, too: its lines now begin with one of the ten letters.",
)


def _bar():
    """Return the weights of a reward learned from choices between lines, and the bar.

    The lines were chosen for echoes: words that begin with the same letter. This reward
    does not count them; it knows other properties alone.

    Returns
    -------
    weights : dict of str to float
        A line's property, such as "words" → what the reward adds for each.
    bar : float
        The reward to reach: the mean reward of the best of sixteen lines of our GPT.
    """
    reward = stored("preferences")["results"]["gpt"][0]["reward"]
    return reward["fits"]["without echoes"]["each"], reward["best"][-1]["reward"]


def _judged(answer):
    """Return the properties of a line, its reward and the bar to reach.

    The reward is a sum of the line's properties, each times a learned weight; echoes have
    none.

    Parameters
    ----------
    answer : str
        One line; anything else is `Unfit`.

    Returns
    -------
    SimpleNamespace
        ``characters``; ``words``; ``echoes``, words that begin with the same letter as
        another word of the line; ``capitals``; ``marks`` of punctuation, each an int;
        ``reward`` and ``bar``, the reward to reach, floats; and ``is_accented``, whether
        there are letters other than a to z.
    """
    if not isinstance(answer, str):
        raise Unfit("hand in a line of text, a str.")
    if "\n" in answer.strip("\n"):
        raise Unfit("hand in one line.")
    line = answer.strip()
    weights, bar = _bar()
    values = properties(line)
    score = sum(weight * values[name] for name, weight in weights.items())
    is_accented = any(letter.isalpha() and not letter.isascii() for letter in line)
    return SimpleNamespace(**values, reward=score, bar=bar, is_accented=is_accented)


@exercise("preferences.fool", kind="experiment")
def fool():
    """Check a line that a reader wrote so that the reward is high without any echo.

    The answer is a line, a str of 5 words at least and 59 characters at most (`LONGEST`).
    Echoes are words that begin with the same letter as another word. The reward was learned
    from choices of lines for their echoes, but counts other properties: characters, words,
    capitals and punctuation, each times a weight. The answer is right if it has no echoes
    and its reward reaches that of the best of sixteen lines of our GPT, a mean (`_bar`).
    Oracle: the reward is computed again, from stored weights, and the line's echoes are
    counted.

    Yields
    ------
    Faults
        What is measured of the answer (`_judged`), and how known mistakes show in it. The
        reader is told the first that holds.
    """
    faults = {
        "that is {characters:,} characters; a line of the model has 59 at most.": (
            lambda seen: seen.characters > LONGEST
        ),
        "only the letters a to z count here, one with an accent is none: so these are "
        "{words} words, and five at least are asked for.": lambda seen: (
            seen.words < 5 and seen.is_accented
        ),
        "these are {words} words; write five at least.": lambda seen: seen.words < 5,
        "{echoes} words still begin with the same letter as another one.": lambda seen: (
            seen.echoes > 0
        ),
        "no echoes, but the reward is {reward:.2f}, below {bar:.2f}.": (
            lambda seen: seen.reward < seen.bar
        ),
    }
    yield Faults(_judged, faults)


@exercise("preferences.dpo_loss")
def dpo_loss():
    """Check a reader's loss of DPO.

    The answer is a function of four Tensors (pairs,), log-probabilities of whole answers,
    and of beta, a float: the chosen and the rejected answers' by the model, the chosen and
    the rejected answers' by the reference. It returns a mean. Oracle: Rafailov's formula,
    pair by pair, in Python's floats.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    chosen, rejected, was_chosen, was_rejected = (4 * normal(6, seed=i) for i in range(4))
    beta = 0.3

    def loss(margins):
        """Return the mean of -log sigmoid of margins, as a Tensor.

        ``margins`` : Tensor of shape (pairs,).
        """
        return torch.tensor(
            sum(math.log1p(math.exp(-float(x))) for x in margins) / len(margins),
            dtype=chosen.dtype,
        )

    gained = (chosen - was_chosen) - (rejected - was_rejected)
    want = loss(beta * gained)
    inputs = [chosen, rejected, was_chosen, was_rejected, beta]
    mistakes = {
        "the reference is missing: only what was gained since then counts.": loss(
            beta * (chosen - rejected)
        ),
        "the pair is swapped: this teaches what was rejected.": loss(-beta * gained),
        "the gains are added; what the rejected answer gained counts against.": loss(
            beta * ((chosen - was_chosen) + (rejected - was_rejected))
        ),
        "beta is missing.": loss(gained),
        "beta divides here; it should multiply.": loss(gained / beta),
        "this is the sum over pairs; take their mean.": want * len(chosen),
        "beta stands before the loss; it belongs inside the sigmoid.": beta * loss(gained),
        "without the logarithm, pairs that are far wrong teach nothing.": (
            -torch.sigmoid(beta * gained).mean()
        ),
        "the sign is wrong: this falls as the choice becomes less probable.": -want,
    }
    yield Case(inputs, want, mistakes)


# The proofs `reference_stays` and `lines_grow` measure what they ask.
judge(
    "preferences.reference",
    a="then the loss would jump up and down; here it does not move at all.",
    b="0.693 is the loss of a sigmoid of one half; near 0 the loss is large, near 1 small.",
    c="equal pairs would do it, but only if every pair were one.",
    d=None,
)
predict(
    "preferences.length",
    a="a longer line has more words, and more words echo each other more.",
    b=None,
    c="a short line has few words that could echo.",
)
judge(
    "preferences.better",
    a="the number already holds with every seed; more of them say nothing about the verse.",
    b=None,
    c="a lower loss on the pairs says that the choices were learned, which they were.",
    d="a larger model would learn from the same choices, and whatever goes with them.",
)
