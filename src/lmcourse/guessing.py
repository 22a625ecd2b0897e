"""Shannon's game: how many guesses a letter takes, and how many bits that makes it.

Somebody, or a model, guesses the next letter of a text until it is right, then the one
after it [1]_. The numbers of guesses are the text in another spelling: whoever guesses the
same way can read it from them. So they hold as much information as the text does, and
Shannon gives a bound on each side. With q_i for the share of letters that took i guesses,
and q_28 = 0::

    sum_i i (q_i - q_(i+1)) log2 i  <=  bits a letter  <=  - sum_i q_i log2 q_i

The lower bound takes for granted that the likelier letter is always guessed first.

As in his experiment there are 27 letters: a to z, capitals or not, and the space. Other
characters are shown, and nobody guesses them.

.. [1] C. E. Shannon, "Prediction and entropy of printed English", Bell System Technical
   Journal 30(1), 1951.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from lmcourse.data import load_sonnets

LETTERS = "abcdefghijklmnopqrstuvwxyz "
MOST = float(np.log2(len(LETTERS)))  # bits a letter, where nothing is known
ORDINARY = 1.96  # standard errors to each side of a 95 % interval


def letter_of(character: str) -> str | None:
    """Return which of 27 letters a character is: a to z for either case, or the space.

    None for any other character: nobody guesses it.
    """
    low = character.lower()
    return low if low and low in LETTERS else None


def letter_probs(probs, alphabet: str) -> np.ndarray:
    """Return the probabilities of the 27 letters, (27,), given that it is one of them.

    They are a to z, capitals and small letters together, and the space, in this order.

    Parameters
    ----------
    probs : float array, shape (vocab_size,)
        Of the next character.
    alphabet : str
        The characters in the order of their IDs.

    Raises
    ------
    ValueError
        If none of the 27 letters has a probability, as in an alphabet without them.
    """
    totals = np.zeros(len(LETTERS))
    for character, prob in zip(alphabet, probs, strict=True):
        letter = letter_of(character)
        if letter is not None:
            totals[LETTERS.index(letter)] += prob
    if not totals.any():
        raise ValueError("none of the letters a to z, nor the space, has a probability")
    return totals / totals.sum()


def guesses_for(probs, letter: str) -> int:
    """Return at which guess a letter comes, from 1, if the likeliest are guessed first.

    Of two that are equally likely the one earlier in the alphabet is guessed first.

    Parameters
    ----------
    probs : float array, shape (27,)
        Of a to z and the space.
    letter : str
        One of these (`LETTERS`).
    """
    order = np.argsort(-np.asarray(probs), kind="stable")
    return 1 + int(np.flatnonzero(order == LETTERS.index(letter))[0])


class Guessed(NamedTuple):
    """What a model does with the letters of a line, one entry for each letter."""

    guesses: list[int]
    bits: list[float]  # minus the binary logarithm of the letter's probability


def guess_line(next_probs, alphabet: str, before: str, line: str) -> Guessed:
    """Let a model guess the letters of a line, each after the true ones before it.

    Letters are a to z, in either case, and the space; other characters are read only. The
    model guesses the likeliest letter first.

    Parameters
    ----------
    next_probs : callable
        Given a list of IDs, returns the probabilities of the next character, (vocab_size,).
    alphabet : str
        The characters in the order of their IDs.
    before : str
        The text before the line.
    line : str
        Its characters and those of ``before`` must be in the alphabet.

    Returns
    -------
    Guessed
        ``guesses``, how many each letter took, and ``bits``, minus the binary logarithm of
        its probability: lists, one entry for each letter of the line.
    """
    guessed = Guessed([], [])
    ids = [alphabet.index(character) for character in before]
    for character in line:
        letter = letter_of(character)
        if letter is not None:
            probs = letter_probs(next_probs(ids), alphabet)
            guessed.guesses.append(guesses_for(probs, letter))
            guessed.bits.append(float(-np.log2(probs[LETTERS.index(letter)])))
        ids.append(alphabet.index(character))
    return guessed


def gpt_probs(model):
    """Return a function from IDs to a GPT's probabilities of the next character.

    It takes a list of int, of which it reads as many of the last as the model's context
    holds, and returns an array (vocab_size,). ``model`` : lmcourse.gpt.model.GPT.
    """

    @torch.no_grad()
    def next_probs(ids):
        """Return the probabilities of the character after a text, an array (vocab_size,).

        ``ids`` : list of int, the text's.
        """
        device = next(model.parameters()).device
        last = torch.tensor([ids[-model.config.context :]], device=device)
        return model(last)[0, -1].cpu().double().softmax(-1).numpy()

    return next_probs


def bounds(guesses) -> tuple[float, float]:
    """Return Shannon's lower and upper bound (1951) of the entropy, in bits a letter.

    With q_i for the share of letters that took i guesses, they are the sum of
    i (q_i - q_(i+1)) log2 i, and the entropy of the q_i.

    Parameters
    ----------
    guesses : sequence of int, shape (letters,)
        How many guesses each letter took, 1 to 27.

    Returns
    -------
    lower, upper : float

    Raises
    ------
    ValueError
        If there are none, or one is not from 1 to 27.
    """
    taken = np.asarray(guesses)
    if not taken.size or taken.min() < 1 or taken.max() > len(LETTERS):
        raise ValueError(
            f"one letter or more, each with 1 to {len(LETTERS)} guesses, please"
        )
    shares = np.bincount(taken, minlength=len(LETTERS) + 2)[1:] / taken.size
    number = np.arange(1, len(LETTERS) + 1)
    lower = (number * -np.diff(shares) * np.log2(number)).sum()
    above_0 = shares[shares > 0]
    return max(0.0, float(lower)), max(0.0, float(-(above_0 * np.log2(above_0)).sum()))


@dataclass(frozen=True)
class Bits:
    """How many bits a letter has to a guesser.

    Attributes
    ----------
    lower, upper : float
        Shannon's bounds.
    low, high : float
        The lower end of a 95 % interval of the lower bound, and the upper end of one of the
        upper bound: both from the jackknife over letters, so they say how much other
        letters of such lines could change the bounds.
    """

    lower: float
    upper: float
    low: float
    high: float


def bits_of(guesses) -> Bits:
    """Return Shannon's bounds of the bits a letter has, and how uncertain they are.

    The fields of `Bits` are ``lower`` and ``upper``, the bounds, and ``low`` and ``high``,
    the lower end of a 95 % interval of the first and the upper end of one of the second.

    The jackknife leaves each letter out once. Unlike the book's bootstrap
    (`lmcourse.numbers.bootstrap_interval`) it also takes away most of what the upper bound
    lacks where letters are few: an entropy of shares comes out too small.

    ``guesses`` : sequence of int, how many guesses each letter took, 1 to 27. Of one letter
    the interval includes all that is possible, 0 to log2 27 bits.
    """
    taken = np.asarray(guesses)
    lower, upper = bounds(taken)
    count = len(taken)
    if count < 2:
        return Bits(lower, upper, 0.0, MOST)
    without = {each: bounds(_less(taken, each)) for each in np.unique(taken).tolist()}
    one_left_out = np.array([without[each] for each in taken.tolist()])  # (letters, 2)
    mean = one_left_out.mean(0)
    error = np.sqrt((count - 1) / count * ((one_left_out - mean) ** 2).sum(0))
    # The jackknife's own estimates, without most of the error of few letters.
    centre = count * np.array([lower, upper]) - (count - 1) * mean
    low = min(lower, max(0.0, centre[0] - ORDINARY * error[0]))
    high = max(upper, min(MOST, centre[1] + ORDINARY * error[1]))
    return Bits(lower, upper, float(low), float(high))


def _less(taken: np.ndarray, each: int) -> np.ndarray:
    """Return numbers of guesses without one of those that are ``each``.

    ``taken`` : int array (letters,). One letter fewer comes back.
    """
    return np.delete(taken, np.flatnonzero(taken == each)[0])


class Line(NamedTuple):
    """A line to guess, and what may be read before."""

    name: str
    before: str
    text: str


def held_out_lines() -> list[Line]:
    """Return the lines of the game: of each sonnet of the test part the third line.

    The test part is every tenth sonnet; no model of the book has learned from them
    (`lmcourse.data.train_val_test_split`). Each `Line` has ``name``, such as "Sonnet 10";
    ``before``, the two lines above, which may be read, each with its end; and ``text``.
    """
    lines = []
    for number, text in list(enumerate(load_sonnets().text, 1))[9::10]:
        first, second, third = text.splitlines()[:3]
        lines.append(Line(f"Sonnet {number}", f"{first}\n{second}\n", third.strip()))
    return lines
