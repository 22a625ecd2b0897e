"""Shannon's game: the reader guesses a line letter by letter, and models beside."""

import copy
import html
from functools import cache

from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.guessing import bits_of, gpt_probs, guess_line, held_out_lines, letter_of
from lmcourse.ngrams import NgramModel
from lmcourse.tokenization import CharTokenizer
from lmcourse.views.generator import why_not_in_page
from lmcourse.views.markup import table
from lmcourse.views.view import View

ORDER = 5  # of the n-grams: the best one on the validation part (chapter *sequences*)


def shannon(tokenizer, model) -> View:
    """Let a reader guess a line letter by letter, beside models (Shannon's game).

    On the site the reader guesses lines of the Sonnets that no model was trained on
    (`lmcourse.guessing.held_out_lines`); 5-grams of the training part, a GPT and, once the
    reader has loaded it, the model that talks guess the same letters. From the numbers of
    guesses come Shannon's bounds on the bits a letter has (`lmcourse.guessing.bits_of`).
    What is shown before, and on paper, is the first line, guessed by n-grams and the GPT;
    the reader is given the others.

    Parameters
    ----------
    tokenizer : lmcourse.tokenization.CharTokenizer
        Of the course's own GPT. With another kind, the view stays as it is stored, without
        the GPT.
    model : lmcourse.gpt.model.GPT
        Its weights are rounded to float16, as the site carries them.

    Returns
    -------
    View
        Its alternative text says how many letters each guesses at once, and the bounds.
    """
    example, *lines = held_out_lines()
    alphabet, counted = _counting()
    # Of a line all but its name is handed on: the text before it, and its own text.
    results = {f"{ORDER}-grams": guess_line(counted.next_probs, alphabet, *example[1:])}
    why = why_not_in_page(tokenizer, model) or _strange(tokenizer, [example, *lines])
    if not why:
        model = copy.deepcopy(model).cpu().half().float().eval()
        results["GPT"] = guess_line(gpt_probs(model), tokenizer.alphabet, *example[1:])
    stored = _stored(example, results)
    alt = _summary(example, results)
    if why:
        why = f"The game is not in the page, because of the chosen GPT: {why}."
        stored = f"<p><small>{html.escape(why)}</small></p>{stored}"
        return View("shannon-view", None, stored, alt=alt, plain=f"[{why}] {alt}")
    data = {"lines": [line._asdict() for line in lines], "order": ORDER}
    data |= {"alphabet": alphabet, "room": model.config.context}
    data |= {"gpt_alphabet": tokenizer.alphabet}
    stores = ["sonnets-training", "gpt", "talker"]
    return View("shannon-view", data, stored, alt=alt, stores=stores)


@cache
def _counting() -> tuple[str, NgramModel]:
    """Return the alphabet of the Sonnets, and 5-grams of their training part.

    The alphabet is a str, the characters in the order of their ids; the model's
    ``next_probs`` goes from a list of ids to the probabilities of the next, (vocab_size,).
    """
    characters = CharTokenizer(load_corpus("sonnets"))
    training = characters.encode(train_val_test_split(load_texts("sonnets")).training)
    return characters.alphabet, NgramModel(training, ORDER, characters.vocab_size)


def _strange(tokenizer, lines) -> str:
    """Say which characters of the lines a GPT does not know; "" if it knows all.

    ``tokenizer`` : CharTokenizer, of which the ``alphabet``, a str, is used; ``lines`` : of
    `lmcourse.guessing.Line`, each with ``text`` and the lines ``before`` it. Returns a str
    such as "it has never read [ ]".
    """
    used = {character for line in lines for character in line.before + line.text}
    strange = " ".join(sorted(used - set(tokenizer.alphabet)))
    return f"it has never read {strange}" if strange else ""


def _stored(example, results: dict) -> str:
    """Return the HTML that readers without scripts get: a line, guessed by models.

    ``example`` is a `lmcourse.guessing.Line`: its ``name``, the lines ``before`` it, and
    its ``text``. ``results`` : name of a model → a `lmcourse.guessing.Guessed`, lists by
    letter: ``guesses``, how many it needed, and ``bits``, minus the binary logarithm of the
    letter's probability.
    """
    letters = [
        [character, *_spent(results, at)] for character, at in _numbered(example.text)
    ]
    cells = zip(*letters, strict=True)
    rows = ["".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) for row in cells]
    names = ["", *results]
    marked = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th>{row}</tr>'
        for name, row in zip(names, rows, strict=True)
    )
    above = "<br>".join(map(html.escape, example.before.splitlines()))
    return (
        f'<p class="lmq-before">{above}</p>\n<p>How many guesses each letter of the next '
        f'line took ({html.escape(example.name)}):</p><div class="lmq-wide" tabindex="0">'
        f'<table class="lmq-spent">{marked}</table></div>\n'
        + table(HEADING, [_row(name, each) for name, each in results.items()])
    )


HEADING = ["", "letters", "at once", "bits a letter", "95 % interval"]
HEADING += ["by its probabilities"]


def _row(name: str, guessed) -> list[str]:
    """Return a row of the table of results, as strings.

    The cells: the name; how many letters there are; how many were right at the first guess;
    Shannon's lower and upper bound on the bits of a letter; the lower end of the first's
    95 % interval and the upper end of the second's; and the mean bits of a
    letter by the guesser's own probabilities.

    ``name`` : who guessed; ``guessed`` : lists by letter: ``guesses``, how many were
    needed, and ``bits``, minus the binary logarithm of the letter's probability.
    """
    bits = bits_of(guessed.guesses)
    count = len(guessed.guesses)
    return [
        name,
        str(count),
        str(guessed.guesses.count(1)),
        f"{bits.lower:.1f} to {bits.upper:.1f}",
        f"{bits.low:.1f} to {bits.high:.1f}",
        f"{sum(guessed.bits) / count:.1f}",
    ]


def _numbered(line: str) -> list[tuple[str, int | None]]:
    """Return the characters of a line, as they are shown, each with a number or None.

    Letters (and spaces) are counted from 0; None is of characters that nobody guesses.
    """
    numbered = []
    count = 0
    for character in line:
        is_letter = letter_of(character) is not None
        shown = "␣" if character == " " else character
        numbered.append((shown, count if is_letter else None))
        if is_letter:
            count += 1
    return numbered


def _spent(results: dict, at: int | None) -> list:
    """Return how many guesses each model needed for a letter; "" where nobody guesses.

    ``results`` : name of a model → what it needed: ``guesses``, a list of int by letter;
    ``at`` : the letter's index among those guessed, None where nobody guesses.
    """
    return [guessed.guesses[at] if at is not None else "" for guessed in results.values()]


def _summary(example, results: dict) -> str:
    """Return the alternative text: how many letters each model guessed at once, and bounds.

    These are Shannon's, on the bits of a letter, from the numbers of guesses.

    ``example`` : the line, with ``text`` and ``name``, such as "Sonnet 10"; ``results`` :
    name of a model → what it needed: ``guesses``, how many by letter.
    """
    sentences = []
    for name, guessed in results.items():
        bits = bits_of(guessed.guesses)
        sentences.append(
            f"{name}: {guessed.guesses.count(1)} of {len(guessed.guesses)} letters at the "
            f"first guess, between {bits.lower:.1f} and {bits.upper:.1f} bits a letter"
        )
    return (
        f"Shannon's game. The line “{example.text}” of {example.name}, guessed letter by "
        f"letter. {'. '.join(sentences)}. On the site you guess other lines."
    )
