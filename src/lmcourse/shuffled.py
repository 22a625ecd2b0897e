"""Texts in which there is nothing to learn: the letters of a text in a random order."""

import numpy as np


def shuffled_letters(text, seed=0):
    """Return a text in which all letters have changed places at random.

    Spaces, ends of lines and punctuation stay where they are, so that words and lines keep
    their lengths, and every letter is as frequent as before.

    Parameters
    ----------
    text : str
    seed : int

    Returns
    -------
    str
        As long as the text.
    """
    letters = [character for character in text if character.isalpha()]
    mixed = iter(np.random.default_rng(seed).permutation(len(letters)).tolist())
    return "".join(letters[next(mixed)] if c.isalpha() else c for c in text)
