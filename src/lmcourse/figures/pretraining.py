"""What the chapter *pretraining* draws: data in, figure or view out."""

from html import escape

import matplotlib.pyplot as plt
import numpy as np

from lmcourse import views
from lmcourse.numbers import bootstrap_interval
from lmcourse.views.markup import table

SHOWN = {  # the kind of knowledge → which pair of twins is shown, and what one must know
    "a fact": (
        0,
        "who wrote what: a fact about the world, which the sentence does not say",
    ),
    "agreement": (0, "which noun is the subject: the nearer one has another number"),
    "coreference": (0, "who is meant: nobody asks himself or herself"),
    "topic": (0, "what the listed things have in common"),
    "a judgement": (1, "not what the thing is, but whether somebody liked it"),
    "a sum": (0, "a number that no word of the sentence names: it must be computed"),
}
WRITERS = {"0": "untrained", "100": "step 100", "300": "step 300", "900": "step 900"}

# --- blanks that take one kind of knowledge each ------------------------------------------


def blanks(results):
    """Show a pair of sentences of each kind, and what a model puts into their blanks.

    Parameters
    ----------
    results : dict of str to list of dict
        Of the study *blanks*: groups "trained" and "random", one row a ``kind`` of
        knowledge (such as "a fact"), of the second also one a ``seed``, of which 0 is
        shown. ``twins``, of the first, pairs of sentences: dicts with two ``begins``, the
        ``end`` of both sentences, and two ``words``, the right ones; ``leads``: for each
        pair how far either right word is ahead of the other word, above 0 if it is chosen.

    Returns
    -------
    View
        A panel for each of six kinds (`SHOWN`): two sentences with a gap, and, folded, what
        belongs there, what both models choose, and what one must know.
    """
    trained = {row["kind"]: row for row in results["trained"]}
    untrained = {row["kind"]: row for row in results["random"] if row["seed"] == 0}
    shown = {}
    answers = []
    for kind, (index, knowledge) in SHOWN.items():
        twin = trained[kind]["twins"][index]
        words = twin["words"]
        lines = [f"{begin} ▢{twin['end']}" for begin in twin["begins"]]
        shown[kind] = (f"Choose for each: {words[0]} or {words[1]}?", "\n".join(lines))
        columns = [words]
        for row in (trained[kind], untrained[kind]):
            leads = row["leads"][index]
            columns.append([words[i] if leads[i] > 0 else words[1 - i] for i in (0, 1)])
        rows = [(lines[i], *(column[i] for column in columns)) for i in (0, 1)]
        head = ("sentence", "right", "SmolLM2", "random weights")
        answers.append(
            "<details><summary>What belongs there, and what do the models choose?"
            f"</summary>{table(head, rows)}<p>You must know {escape(knowledge)}.</p>"
            "</details>"
        )
    return views.samples("What must one know?", shown, answers=answers)


def right_choices(results):
    """Draw how many blanks of each kind are filled rightly, with 95 % intervals.

    The intervals are over the pairs of sentences. A dotted line shows a half, a guess.

    Parameters
    ----------
    results : dict of str to list of dict
        Of the study *blanks*: groups "trained" (SmolLM2), "random" (the same with random
        weights) and "similarity" (word vectors), rows with ``kind`` of knowledge, ``seed``,
        of which 0 is drawn, and ``leads``: for each pair of sentences how far either right
        word is ahead of the other word, above 0 if it is chosen.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(6.6, 3.8))
    groups = {
        "trained": "SmolLM2",
        "similarity": "word vectors",
        "random": "random weights",
    }
    kinds = [row["kind"] for row in results["trained"]]
    labels = [kind.replace(", ", ",\n") for kind in kinds]
    for place, (group, label) in enumerate(groups.items()):
        rows = {row["kind"]: row for row in results[group] if row["seed"] == 0}
        pairs = [(np.array(rows[kind]["leads"]) > 0).mean(axis=1) for kind in kinds]
        y = np.arange(len(kinds)) + 0.22 * (place - 1)
        means = np.array([each.mean() for each in pairs])
        ends = np.array([bootstrap_interval(each) for each in pairs])
        ax.errorbar(
            means,
            y,
            xerr=np.abs(ends.T - means),
            fmt="os^"[place],
            color=views.PALETTE[(0, 1, 6)[place]],
            label=label,
        )
    ax.axvline(0.5, color=views.PALETTE[6], ls=":")
    ax.set_yticks(range(len(kinds)), labels)
    ax.invert_yaxis()
    ax.set(xlabel="share of right choices", xlim=(0.2, 1.02))
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=1)
    plt.show()


# --- a small BERT that learns -------------------------------------------------------------


def words_of_line(poem, positions, tokenizer, most=5):
    """Return a poem's first line, and the words in it that are one token.

    Parameters
    ----------
    poem : str
        The whole text.
    positions : list of int
        Where words of one token stand in the poem's first passage: tokens, from 0, which is
        [CLS].
    tokenizer : PreTrainedTokenizerFast
    most : int
        How many words to return at most.

    Returns
    -------
    line : str
    words : list of (str, int, int)
        Each word, and where it begins and ends in the line: characters from 0, the end
        excluded.
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
        Of the study *pretraining*. ``runs[0]["stops"]``: step of an encoder's training
        ("0", "100", "300" and "900" are used) → a dict; ``counting[0]``: a dict. In the
        first ``words`` is a list with a dict for each poem; its ``begin`` has for the
        poem's first words [the token guessed, the probability of the right one]. In the
        second ``words`` has such a list for each table, under the number of neighbours on
        each side that it counts, such as "2".
    vocabulary : list of str
        Tokens by id.
    poem : int
        Which of the test poems, from 0.
    words : int
        How many of the line's words.

    Returns
    -------
    dict of str to list of (str, float)
        Writer, such as "step 900" or "2 a side" → for each word the token it guesses, and
        its probability of the poet's word, 0 to 1.
    """
    stops = results["runs"][0]["stops"]
    rows = {name: stops[step]["words"] for step, name in WRITERS.items()}
    rows |= {f"{k} a side": x for k, x in results["counting"][0]["words"].items()}
    return {
        name: [(vocabulary[token], share) for token, share in poems[poem]["begin"][:words]]
        for name, poems in rows.items()
    }


def _guesses_picture(guesses, words):
    """Return first guesses as an SVG: a writer a row, a word a column.

    Parameters
    ----------
    guesses : dict of str to list of (str, float)
        Writer → for every word its likeliest token, and the probability that the bar below
        it shows.
    words : list of (str, int, int)
        The words of the line, up to five; the numbers are not used.

    Returns
    -------
    str
        SVG markup. A right guess is bold. The first four writers are stops of a training; a
        gap parts them from the others. The alternative text has the right guesses of each.
    """
    marks = []
    counts = []
    for y, (writer, row) in enumerate(guesses.items()):
        gap = 8 if y > 3 else 0
        top = 18 + 26 * y + gap
        marks.append(f'<text x="0" y="{top}">{writer}</text>')
        hits = 0
        for x, ((guess, share), (word, _, _)) in enumerate(zip(row, words, strict=True)):
            hit = guess == word.lower()
            if hit:
                hits += 1
            weight = "style='font-weight:700'" if hit else ""
            left = 78 + 65 * x
            wide = max(1, 58 * share)
            marks.append(
                f'<text x="{left}" y="{top}" {weight}>'
                f"{escape(guess.replace('##', '-'))}</text>"
                f'<path d="M{left} {top + 4}h{wide:.0f}v4h-{wide:.0f}z"/>'
            )
        counts.append(f"{writer}: {hits} of {len(words)}")
    alt = f"Right first guesses. {'; '.join(counts)}."
    return (
        '<svg class="lm-looks" viewBox="0 0 400 204" role="img" '
        f'aria-label="{escape(alt)}">{"".join(marks)}</svg>'
    )


def guesses(results, poems, chosen, tokenizer):
    """Show what a small BERT, and tables, guess in some first lines, one to choose.

    Parameters
    ----------
    results : dict of str to list of dict
        Of the study *pretraining*. ``runs`` and ``counting`` have the guesses of an encoder
        and of tables, as `first_guesses` takes them: of each poem's first words [the token
        guessed, the probability of the right one]. ``counting[0]["places"]`` has for each
        poem and passage the positions of the words that are asked, ``vocabulary`` the
        tokens by id.
    poems : list of str
        The study's test poems.
    chosen : list of int
        Which of them to show, from 0.
    tokenizer : PreTrainedTokenizerFast

    Returns
    -------
    View
        A panel a poem: its first line with gaps, the poet's words, and a drawing of the
        guesses.
    """
    shown = {}
    pictures = []
    for poem in chosen:
        positions = results["counting"][0]["places"][poem][0]
        line, words = words_of_line(poems[poem], positions, tokenizer)
        gaps = line
        for _, start, end in reversed(words):
            gaps = f"{gaps[:start]}▢▢▢{gaps[end:]}"
        poet = ", ".join(word for word, _, _ in words)
        shown[" ".join(line.split()[:3]) + " …"] = (gaps, f"The poet: {poet}.")
        guessed = first_guesses(results, results["vocabulary"], poem, len(words))
        pictures.append(_guesses_picture(guessed, words))
    return views.samples("Which line?", shown, pictures)


def learning(results, frequencies):
    """Draw the loss at hidden tokens by step, with what tables reach.

    Parameters
    ----------
    results : dict of str to list of dict
        Of the study *pretraining*, losses by poem in nats a hidden token. ``runs``:
        ``stops``, step (str) → a dict with ``losses``; ``counting``, one dict: ``losses``,
        how many neighbours on each side are counted (str) → the losses.
    frequencies : float
        The loss of token frequencies alone, in nats a token; it is drawn as a table of no
        neighbours.

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
