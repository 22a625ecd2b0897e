"""Codes for a class: what somebody predicted, in six characters for a teacher.

A code holds the task and the letter chosen, and its last character tells when it was
mistyped. It hides nothing from whoever reads this file. ``static/tasks/class-codes.js``
writes and reads the same codes: who pastes those of a class into the page sees how often
each answer was given.
"""

SYMBOLS = "23456789abcdefghjkmnpqrstuvwxyz"  # 31, a prime; no 0, 1, i, l, o
LETTERS = "abcdefgh"  # answers that a task may have


def task_label(name: str) -> str:
    """Return the label of a check's task: "ex-attention-merge-heads".

    ``name`` : of the check, such as "attention.merge_heads".
    """
    return f"ex-{name.replace('.', '-').replace('_', '-')}"


def class_code(label: str, letter: str) -> str:
    """Return the code of an answer, such as "k7f-2qx".

    It is written with the 31 digits and small letters of `SYMBOLS`, of which 0, 1, i, l and
    o are missing. Four characters are a hash of the task (FNV-1a), the fifth is the
    answer's place in `LETTERS` (a to h), moved by that hash. The sixth is the sum of the
    others, each times its number from 1, modulo 31: one wrong character, or two that
    changed places, change it.

    Parameters
    ----------
    label : str
        Of the task, such as "ex-attention-sharper" (`task_label`).
    letter : str
        The answer, from a to h.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the letter is another.
    """
    hashed = 2166136261
    for byte in label.encode():
        hashed = (hashed ^ byte) * 16777619 % 2**32
    base = len(SYMBOLS)
    numbers = [hashed // base**place % base for place in range(4)]
    numbers.append((LETTERS.index(letter) + hashed // base**4) % base)
    numbers.append(sum(place * number for place, number in enumerate(numbers, 1)) % base)
    code = "".join(SYMBOLS[number] for number in numbers)
    return f"{code[:3]}-{code[3:]}"
