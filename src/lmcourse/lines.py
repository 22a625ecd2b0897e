"""Where lines of verse end, and lines that are changed to see how a model knows.

After a comma or another mark comes a new line or a space. Which it is cannot be told from
the last few characters. Here are the positions after such marks, ways to change the line up
to there, and how probable a model finds the new line.
"""

import random
import re
from collections.abc import Callable, Sequence

import torch

from lmcourse.gpt.model import evaluating

MARKS = ",;:.!?"
UNCHANGED = 5  # characters before a position that no change touches
WORD = re.compile(r"[A-Za-z'’]+")


def after_marks(text: str, context: int) -> list[int]:
    """Return the positions of spaces and new lines that follow one of the marks ,;:.!?

    Parameters
    ----------
    text : str
    context : int
        The beginning of a position's line has to be among so many characters before it.
        Twice as many have to stand before the position, so that a line can be cut short.

    Returns
    -------
    list of int
        Positions of characters, from 0.
    """
    return [
        position
        for position in range(2 * context, len(text))
        if text[position - 1] in MARKS
        and text[position] in " \n"
        and "\n" in text[position - context : position]
    ]


def shuffled(line: str) -> str:
    """Return the characters of a line in random order, spaces among them.

    The line itself is the seed: it is shuffled in the same way every time.
    """
    characters = [*line]
    random.Random(line).shuffle(characters)
    return "".join(characters)


def one_letter(line: str) -> str:
    """Return a line that is as long, and all e's."""
    return "e" * len(line)


def no_vowels(line: str) -> str:
    """Return a line of as many characters that has an x for every vowel: no syllables."""
    return re.sub("[aeiouy]", "x", line, flags=re.IGNORECASE)


def no_spaces(line: str) -> str:
    """Return a line of as many characters that has an e for every space: one word."""
    return line.replace(" ", "e")


def words_halved(line: str) -> str:
    """Return the first half of each word, rounded down but one letter at least.

    Words are runs of letters and apostrophes; what stands between them stays.
    """
    return WORD.sub(lambda word: word[0][: max(1, len(word[0]) // 2)], line)


def cut_short(line: str, characters: int = 20) -> str:
    """Return a line without its first characters; ``characters`` is how many go."""
    return line[characters:]


def lengthened(line: str, characters: int = 20) -> str:
    """Return a line with e's in front; ``characters`` is how many."""
    return "e" * characters + line


def before(text: str, position: int, change: Callable[[str], str], context: int) -> str:
    """Return the text before a position, with a change made to the line that leads to it.

    Parameters
    ----------
    text : str
    position : int
        What comes before it in its line is changed, but for the last five characters.
    change : callable
        From the line so far to another one.
    context : int
        How many characters to return, the last ones.

    Returns
    -------
    str
    """
    begin = text.rfind("\n", 0, position) + 1
    end = max(begin, position - UNCHANGED)
    changed = text[:begin] + change(text[begin:end]) + text[end:position]
    return changed[-context:]


@torch.no_grad()
def new_line_probs(model, tokenizer, texts: Sequence[str]) -> torch.Tensor:
    """Return how probable a model finds a new line after each text, rather than a space.

    Parameters
    ----------
    model : nn.Module
        From ids (batch, tokens) to logits (batch, tokens, vocab_size).
    tokenizer : CharTokenizer
    texts : sequence of str
        All of one length.

    Returns
    -------
    float64 Tensor of shape (texts,)
        The probability of a new line as a share of that of a new line or a space.
    """
    choice = tokenizer.encode("\n ")
    device = next(model.parameters()).device
    ids = torch.tensor([tokenizer.encode(text) for text in texts], device=device)
    with evaluating(model):
        logits = [model(part)[:, -1, choice] for part in ids.split(500)]
    return torch.cat(logits).cpu().double().softmax(dim=-1)[:, 0]
