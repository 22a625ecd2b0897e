"""Things in the random order that a page's scripts give them, the same on every machine.

`lmcourse` draws at random with NumPy and torch. What a page goes on with, in JavaScript, it
draws as ``random.js`` does, so that both find the same.
"""

import re

SEED = 1  # of another order in every view
# An ideograph is a word by itself, as a BERT reads it.
IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
WORD = re.compile(rf"[{IDEOGRAPHS}]|[^\s{IDEOGRAPHS}]+")


def bits_at(seed, place):
    """Return the number at a position of an endless sequence that looks random.

    The sequence is mulberry32's.

    Parameters
    ----------
    seed : int
        From 0 on.
    place : int
        The position, from 0.

    Returns
    -------
    int
        From 0 to 2³² - 1.
    """
    modulus = 2**32
    state = (seed + (place + 1) * 0x6D2B79F5) % modulus
    mixed = (state ^ state >> 15) * (state | 1) % modulus
    mixed ^= (mixed + (mixed ^ mixed >> 7) * (mixed | 61)) % modulus
    return mixed ^ mixed >> 14


def reordered(items, seed=SEED):
    """Return things in a random order, the same on every machine.

    They are shuffled with the numbers of `bits_at` (Fisher and Yates). If that leaves them
    as they were, the first goes last.

    Parameters
    ----------
    items : iterable
    seed : int
        From 0 on.

    Returns
    -------
    list
    """
    items = [*items]
    order = [*range(len(items))]
    for last in range(len(items) - 1, 0, -1):
        other = bits_at(seed, last) % (last + 1)
        order[last], order[other] = order[other], order[last]
    if order == sorted(order):
        order = order[1:] + order[:1]
    return [items[place] for place in order]


def reordered_words(text, tokenizer, room):
    """Return a text in which the words that a BERT reads have changed places at random.

    A word is what stands between spaces; a Chinese character is one by itself.

    Spaces and ends of lines stay, and punctuation goes with the word that it is written to.
    Where a text is longer than what is read, only the words that are read whole change
    places: the model reads the same tokens as before, in another order.

    Parameters
    ----------
    text : str
    tokenizer : PreTrainedTokenizerFast
        A BERT's.
    room : int
        How many tokens are read, special tokens aside.

    Returns
    -------
    str
    """
    words = WORD.findall(text)
    if not words:
        return text
    tokens = 0
    words_read = 0
    for ids in tokenizer(words, add_special_tokens=False)["input_ids"]:
        tokens += len(ids)
        words_read += tokens <= room
    mixed = iter(reordered(words[:words_read]) + words[words_read:])

    def next_word(match):
        """Return the next of the shuffled words, to be put in the place of one.

        A space is put before it where another word touches its place.

        ``match`` : re.Match of the word in the text whose place it takes.
        """
        before = text[: match.start()][-1:]
        return (" " if before.strip() else "") + next(mixed)

    return WORD.sub(next_word, text)
