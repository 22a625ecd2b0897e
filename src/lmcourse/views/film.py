"""A training as a film: what a GPT does with a line after more and more steps."""

import html

from lmcourse.film import first_for_good, thou_matters
from lmcourse.numbers import format_number, percent, plural
from lmcourse.views.generator import SEED, TEMPERATURE, read_last_token, sample_continuation
from lmcourse.views.markup import table
from lmcourse.views.view import View

BEGINS = "“thou” begins to matter"
SHORT = 40  # characters of a sample in the table


def film(text, tokenizer, shots, results, *, count=120) -> View:
    """Show what a GPT does with a line, with a slider over the stops of its training.

    A stop is a checkpoint: the weights after so many steps.

    On the site the reader moves through the training or lets it play, types a line, and
    sees for each stop what is written after it with the same random numbers, what a head
    attends to, what each layer would say, the loss, and with which n-grams the model
    agrees: ::

        tokenizer, shots, _ = load_film()
        results = data.stored("film")["results"]
        views.film("And thou sweet shal", tokenizer, shots, results)

    Parameters
    ----------
    text : str
        The line to begin with, at most as long as the model's context.
    tokenizer : lmcourse.tokenization.CharTokenizer
    shots : lmcourse.film.Film
        The weights at each stop: ``steps``, a list of int, ``config``, and
        ``model(number)``, the GPT of a stop.
    results : dict of str to list of dict
        What the study *film* recorded. ``stops``, one dict for each of the same stops:
        ``step``; ``train`` and ``held_out``, losses in nats a character; ``agrees``, with
        n-grams of each length, from 1, the share of positions at which the likeliest
        character is the same; ``closest``, the length with the highest; ``heads``, what
        each head brings of the lead of t over l, in logits; and what `named_stops` and
        `sentence_of` use. ``counting``, one dict of n-grams: ``losses``, by length, and
        ``spaces``. ``packed``, dicts with ``step`` and the loss ``held_out`` of the weights
        as the site carries them.
    count : int, optional
        How many characters to write at the stop that is shown first; at others 40.

    Returns
    -------
    View
        It begins where *thou* begins to matter, or at the end. Without scripts, a table of
        all stops.

    Raises
    ------
    ValueError
        If the text is empty, too long, or has characters that the model does not know; or
        if the record is of other stops.
    """
    rows, (counted,) = results["stops"], results["counting"]
    if [row["step"] for row in rows] != shots.steps:
        raise ValueError("the record is of other stops than the film")
    room = shots.config.context
    ids = tokenizer.encode(text)
    if not 1 <= len(ids) <= room:
        raise ValueError(f"a text of 1 to {room} tokens, please: these are {len(ids)}")
    named = named_stops(rows, counted)
    begins = [each["stop"] for each in named if each["name"] == BEGINS]
    at = begins[0] if begins else len(rows) - 1
    written = []
    for stop in range(len(rows)):
        length = count if stop == at else SHORT
        ids_after = sample_continuation(shots.model(stop), ids, length, TEMPERATURE)
        written.append(tokenizer.decode(ids_after))
    lens, weights = read_last_token(shots.model(at), ids)
    packed = {row["step"]: row["held_out"] for row in results["packed"]}
    cost = max(abs(packed[row["step"]] - row["held_out"]) for row in rows)
    alt = (
        f"{len(rows)} stops of a training, from step 0 to step {rows[-1]['step']:,}. "
        + " ".join(each["told"] for each in named)
    )
    data = {"text": text, "written": written[at], "stop": at, "seed": SEED}
    data |= {"temperature": TEMPERATURE, "room": room, "alphabet": tokenizer.alphabet}
    data |= {"heads": shots.config.heads, "head": head_of_thou(rows)}
    data |= {"lens": lens.tolist(), "weights": weights, "named": named}
    data |= {"ngrams": counted["losses"], "cost": f"{cost:.3f}"}
    fields = ("step", "train", "held_out", "agrees", "closest")
    data["stops"] = [
        {name: row[name] for name in fields} | {"told": sentence_of(row)} for row in rows
    ]
    stored = _stored(text, rows, written, named)
    return View("film-view", data, stored, alt=alt, stores=["film"])


def head_of_thou(rows) -> int:
    """Return the number of the head that brings most of the effect of *thou* at the end.

    That is the head whose copied output adds most to the lead of t over l at the last stop.

    ``rows`` : list of dict, one a stop; ``heads``, a list of float, layer by layer: by how
    many logits the lead of t over l rises in prompts with “they” if the output of one head
    is copied from those with “thou”. The number counts heads from 0 in that order.
    """
    brought = rows[-1]["heads"]
    return brought.index(max(brought))


def sentence_of(row) -> str:
    """Return what is said of any stop, a sentence.

    ``row`` : dict, what the study *film* recorded of the stop: ``step``; ``held_out``, a
    loss in nats a character; ``agrees``, with n-grams of each length, from 1, the share of
    positions at which the likeliest character is the same; ``closest``, the length with the
    highest; ``told``, the lead of t over l after “thou” less that after “they”, in logits;
    ``t``, word → the share of prompts in which t is likelier.
    """
    share = row["agrees"][row["closest"] - 1]
    return (
        f"After {row['step']:,} {plural(row['step'], 'step')} the loss on held-out "
        f"sonnets is {row['held_out']:.2f} nats a character. The likeliest next "
        f"character is most often that of {row['closest']}-grams: at "
        f"{percent(share)} of positions. After "
        f"“And thou … shal” the lead of t over l is {in_logits(row['told'])} logits larger "
        f"than after “And they … shal”; t is the likelier in "
        f"{percent(row['t']['thou'])} of the prompts with “thou”."
    )


def in_logits(number) -> str:
    """Return a difference of logits as it is written, such as "1.5": a str.

    ``number`` : float.
    """
    return format_number(number, ".1f")


def named_stops(rows, counted) -> list[dict]:
    """Find the stops from which on something holds to the end of the training.

    Parameters
    ----------
    rows : list of dict
        What the study *film* recorded of each stop: ``step``; ``spaces``, their share in
        what it writes; ``words``, length (str) → the share of such words that exist, or
        None; ``held_out``, a loss in nats a character; ``brought``, ``from_we`` and
        ``interval``, what copied heads do to the lead of t over l, in logits; ``t``, word →
        the share of prompts in which t is likelier.
    counted : dict
        What it recorded of n-grams: ``losses``, one a length, and ``spaces``, their share
        in the Sonnets.

    Returns
    -------
    list of dict
        Those that there are, in the order of the training: ``stop``, the number from 0 of
        the stop from which on it holds; ``name``, such as "first spaces"; ``told``, a
        sentence with the numbers.
    """
    spaces = counted["spaces"]
    best = min(counted["losses"])

    def words(row, length):
        """Return which share of the words of a length exist: float, 0 if it wrote none.

        ``row`` : dict of a stop of the film, with ``words``; ``length`` : int, in letters.
        """
        return row["words"][str(length)] or 0

    # What may begin: a name; whether it holds at a stop; the end of a sentence about it.
    kinds = [
        (
            "first spaces",
            lambda row: spaces / 2 < row["spaces"] < 2 * spaces,
            lambda row: (
                f"{percent(row['spaces'])} of the characters that it writes are spaces; in "
                f"the Sonnets it is {percent(spaces)}."
            ),
        ),
        *(
            (
                f"words of {name} letters",
                lambda row, length=length: words(row, length) > 0.5,
                lambda row, length=length, name=name: (
                    f"of the words of {name} letters that it writes, "
                    f"{percent(words(row, length))} are words of the Sonnets."
                ),
            )
            for length, name in ((2, "two"), (4, "four"))
        ),
        (
            "better than n-grams",
            lambda row: row["held_out"] < best,
            lambda row: (
                f"its loss on held-out sonnets, {row['held_out']:.2f} nats a character, is "
                f"lower than that of every n-gram model; the best has {best:.2f}."
            ),
        ),
        (
            BEGINS,
            lambda row: row["interval"][0] > 0,
            lambda row: (
                f"if we take what two heads return in “And thou … shal” and put it into "
                f"“And they … shal”, the score of t rises by {in_logits(row['brought'])} "
                f"over that of l (the scores are logits). If we take it from “And we … "
                f"shal” instead, the score of t changes by {in_logits(row['from_we'])} "
                f"against that of l."
            ),
        ),
        (
            "“thou” decides",
            thou_matters,
            lambda row: (
                f"t is likelier than l in {percent(row['t']['thou'])} of the prompts with "
                f"“thou”, in {percent(row['t']['they'])} of those with “they”, and in "
                f"{percent(row['t']['though'])} of those with “though”. That word is here "
                "for comparison: it begins with the letters of “thou”, but no t follows "
                "from it. So the last number shows how far the model goes by these four "
                "letters, and not by the word."
            ),
        ),
    ]
    named = []
    for name, holds, tell in kinds:
        stop = first_for_good([holds(row) for row in rows])
        if stop is not None:
            sentence = f"From step {rows[stop]['step']:,} on, {name}: {tell(rows[stop])}"
            named.append({"stop": stop, "name": name, "told": sentence})
    return sorted(named, key=lambda each: each["stop"])


def _stored(text: str, rows: list, written: list, named: list) -> str:
    """Return the HTML that readers without scripts get: a table, and a list.

    The table has a row for each stop of the training, a checkpoint; the list says at which
    of them the model begins to do something. Of what a model writes, the table shows at
    most 40 characters (`SHORT`). Texts are escaped.

    Parameters
    ----------
    text : str
        The line that the model continues.
    rows : list of dict
        What the study *film* recorded of each stop: ``step``; ``held_out``, a loss in nats
        a character; ``closest``, the length of the n-grams that agree most.
    written : list of str
        The model's continuation of the line at each stop, as many as ``rows``.
    named : list of dict
        What begins, as `named_stops` found it, such as the "first spaces"; ``told`` is a
        sentence about it, and becomes an entry of the list.
    """
    lines = [
        (
            f"{row['step']:,}",
            f"{row['held_out']:.2f}",
            f"{row['closest']}-grams",
            after[:SHORT].replace("\n", "⏎"),
        )
        for row, after in zip(rows, written, strict=True)
    ]
    head = ["Steps", "loss", "agrees most with", f"after “{text}” it writes"]
    items = "".join(f"<li>{html.escape(each['told'])}</li>" for each in named)
    return f'<div class="lmf-stored">{table(head, lines)}</div>\n<ul>{items}</ul>'
