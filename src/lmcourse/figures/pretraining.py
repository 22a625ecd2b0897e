"""What the chapter *pretraining* draws: data in, figure or view out."""

from html import escape

import matplotlib.pyplot as plt
import numpy as np

from lmcourse import views

SIX = {  # the kind of knowledge → two sentences, their words, and what one must know
    "a fact": (
        ("Hamlet was written by ▢.", "Oliver Twist was written by ▢."),
        ("Shakespeare", "Dickens"),
        "who wrote what: a fact about the world, which the sentence does not say",
    ),
    "agreement": (
        (
            "The poems in the booklet ▢ never printed.",
            "The poem in the booklets ▢ never printed.",
        ),
        ("were", "was"),
        "which noun is the subject: the nearer one has another number",
    ),
    "coreference": (
        (
            "Mary copied the poems because John, who was ill, had asked ▢ to.",
            "John copied the poems because Mary, who was ill, had asked ▢ to.",
        ),
        ("her", "him"),
        "who is meant: the one who asks is not the one who is asked",
    ),
    "topic": (
        (
            "Waves, gulls, salt: we had come to the ▢ at last.",
            "Flour, butter, ovens: we had come to the ▢ at last.",
        ),
        ("sea", "bakery"),
        "what the listed things have in common",
    ),
    "a judgement": (
        (
            "The guests praised the soup, which was ▢.",
            "The guests sent back the soup, which was ▢.",
        ),
        ("delicious", "disgusting"),
        "not what the thing is, but whether somebody liked it",
    ),
    "a sum": (
        (
            "She wrote three poems in May and four in June, which makes ▢ in all.",
            "She wrote three poems in May and two in June, which makes ▢ in all.",
        ),
        ("seven", "five"),
        "a number that no word of the sentence names: it must be computed",
    ),
}
WRITERS = {"0": "untrained", "100": "step 100", "300": "step 300", "900": "step 900"}

# --- blanks that take one kind of knowledge each ------------------------------------------


def blanks():
    """Show two sentences of each kind, and what belongs into their blanks.

    Returns
    -------
    View
    """
    shown, answers = {}, []
    for kind, (lines, words, knowledge) in SIX.items():
        shown[kind] = (f"Choose for each: {words[0]} or {words[1]}?", "\n".join(lines))
        answers.append(
            "<details><summary>What belongs there?</summary>"
            f"<p>First <em>{words[0]}</em>, then <em>{words[1]}</em>. "
            f"You must know {escape(knowledge)}.</p></details>"
        )
    return views.samples("What must one know?", shown, answers)


# --- a small BERT that learns -------------------------------------------------------------


def words_of_line(poem, positions, tokenizer, most=5):
    """Return a poem's first line, and the words in it that are one token.

    Parameters
    ----------
    poem : str
    positions : list of int
        Where words of one token stand in the poem's first passage, [CLS] counted.
    tokenizer : PreTrainedTokenizerFast
    most : int
        How many words to return at most.

    Returns
    -------
    line : str
    words : list of (str, int, int)
        Each word, and where it begins and ends in the line.
    """
    line = next(row for row in poem.splitlines() if row.strip())
    spans = tokenizer(line, add_special_tokens=False, return_offsets_mapping=True)
    spans = spans["offset_mapping"]
    ends = [spans[position - 1] for position in positions if position <= len(spans)]
    return line, [(line[start:end], start, end) for start, end in ends[:most]]


def first_guesses(results, vocabulary, poem, words):
    """Return each writer's first guesses at the words of a poem's first line.

    Parameters
    ----------
    results : dict of str to list of dict
        Of the study *pretraining*.
    vocabulary : list of str
        Tokens by id.
    poem : int
        Which of the test poems.
    words : int
        How many words.

    Returns
    -------
    dict of str to list of (str, float)
        Writer → its guess, and its probability of the poet's word.
    """
    stops = results["runs"][0]["stops"]
    rows = {name: stops[step]["words"] for step, name in WRITERS.items()}
    rows |= {f"{k} a side": x for k, x in results["counting"][0]["words"].items()}
    return {
        name: [(vocabulary[token], share) for token, share in poems[poem]["begin"][:words]]
        for name, poems in rows.items()
    }


def _guesses_picture(guesses, words):
    """Return guesses, as of `first_guesses`, as an SVG: a writer a row, a word a column."""
    marks, told = [], []
    for y, (writer, row) in enumerate(guesses.items()):
        top = 18 + 26 * y + 8 * (y > 3)
        marks.append(f'<text x="0" y="{top}">{writer}</text>')
        hits = 0
        for x, ((guess, share), (word, _, _)) in enumerate(zip(row, words, strict=True)):
            hit = guess == word.lower()
            hits += hit
            weight = "style='font-weight:700'" if hit else ""
            left, wide = 78 + 65 * x, max(1, 58 * share)
            marks.append(
                f'<text x="{left}" y="{top}" {weight}>'
                f"{escape(guess.replace('##', '-'))}</text>"
                f'<path d="M{left} {top + 4}h{wide:.0f}v4h-{wide:.0f}z"/>'
            )
        told.append(f"{writer}: {hits} of {len(words)}")
    alt = f"Right first guesses. {'; '.join(told)}."
    return (
        '<svg class="lm-looks" viewBox="0 0 400 204" role="img" '
        f'aria-label="{escape(alt)}">{"".join(marks)}</svg>'
    )


def guesses(results, poems, chosen, tokenizer):
    """Show what a small BERT, and tables, guess in some first lines, one to choose.

    Parameters
    ----------
    results : dict of str to list of dict
        Of the study *pretraining*.
    poems : list of str
        Its test poems.
    chosen : list of int
        Which of them to show.
    tokenizer : PreTrainedTokenizerFast

    Returns
    -------
    View
    """
    shown, pictures = {}, []
    for poem in chosen:
        positions = results["counting"][0]["places"][poem][0]
        line, words = words_of_line(poems[poem], positions, tokenizer)
        gaps = line
        for _, start, end in reversed(words):
            gaps = f"{gaps[:start]}▢▢▢{gaps[end:]}"
        poet = ", ".join(word for word, _, _ in words)
        shown[" ".join(line.split()[:3]) + " …"] = (gaps, f"The poet: {poet}.")
        told = first_guesses(results, results["vocabulary"], poem, len(words))
        pictures.append(_guesses_picture(told, words))
    return views.samples("Which line?", shown, pictures)


def learning(results, frequencies):
    """Draw the loss at hidden tokens by step, with what tables reach.

    Parameters
    ----------
    results : dict of str to list of dict
        Of the study *pretraining*.
    frequencies : float
        The loss of token frequencies alone, in nats a token.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(6, 3.4))
    for run in results["runs"]:
        steps = [int(step) for step in run["stops"]]
        means = [np.mean(stop["losses"]) for stop in run["stops"].values()]
        ax.plot(steps, means, "-o", ms=3, color=views.PALETTE[0])
    tables = {"0": frequencies}
    tables |= {k: np.mean(x) for k, x in results["counting"][0]["losses"].items()}
    dashes = ":", "--", "-.", (0, (9, 2))
    for (k, loss), colour, dash in zip(
        tables.items(), views.PALETTE[1:], dashes, strict=False
    ):
        ax.axhline(loss, color=colour, ls=dash, lw=1.6, label=f"{k} a side")
    ax.set(xlabel="step", ylabel="nats per hidden token")
    ax.legend(title="counting")
    plt.show()
