"""What the chapter *positional-encoding* draws: data in, figure or view out."""

import cmath
import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from torch.nn import functional as F

from lmcourse import lengths, positions, views
from lmcourse.lengths import LONG, SHORT
from lmcourse.long_texts import (
    BASES,
    D_HEAD,
    REACHES,
    angles_met,
    curve,
    far_loss,
    guess_loss,
    near_loss,
    rotary_runs,
    runs_by_scheme,
    slowed,
    untrained_losses,
)
from lmcourse.numbers import format_number
from lmcourse.word_order import (
    FAR,
    FARTHER,
    count_changed,
    dial_scores,
    hands,
    mean_cosines,
    order_parts,
    order_schemes,
    shuffled_rows,
)

# --- a line whose words change places -------------------------------------------------

EXPLAINED = {
    "none": "No positions. Two words have the same score wherever they stand.",
    "sinusoidal": "A fixed wave is added to each word’s vector. Where the two words stand "
    "matters, not only how far apart they are.",
    "learned": "A learned vector is added to each word’s. Where the two words stand "
    "matters, not only how far apart they are.",
    "rotary": "Queries and keys are rotated by their positions. What matters is how far "
    "apart the two words are, and which comes first.",
    "ALiBi": "Each word of distance lowers the score by a fixed amount, in both directions "
    "alike.",
    "relative": "Each distance has a learned number that is added to the score; before and "
    "after have numbers of their own.",
}


def order(line, swapped, tokenizer, bert):
    """Show the scores of a line whose words can change places, or have others before them.

    They are attention scores of all pairs of words, under six schemes of positions: none,
    sinusoidal, learned, rotary, ALiBi and relative.

    Parameters
    ----------
    line : list of str
        The words of a line.
    swapped : list of int
        The order of the words shown first: the words' positions in the line, from 0.
    tokenizer : PreTrainedTokenizerFast
    bert : BertModel
        Its embeddings are used.

    Returns
    -------
    View
        Stored is a table: how many scores a scheme changes when the words stand in the
        order ``swapped``, and how many when ten words come before the line.
    """
    schemes = order_schemes(order_parts(line, tokenizer, bert))
    counts = {
        name: (
            count_changed(scheme, swapped),
            count_changed(scheme, [*range(len(line))], 10),
        )
        for name, scheme in schemes.items()
    }
    columns = ["two words change places", "ten words before the line"]
    table = pd.DataFrame(counts, index=columns).T.to_html()
    summary = ", ".join(f"{name} {n} and {m}" for name, (n, m) in counts.items())
    data = {
        "words": line,
        "most": FARTHER,
        "opens": {"order": swapped, "scheme": [*schemes].index("sinusoidal")},
        "schemes": [
            {"name": name, "told": EXPLAINED[name]}
            | {key: each.numpy().round(3).tolist() for key, each in scheme.items()}
            for name, scheme in schemes.items()
        ],
    }
    return views.View(
        "order-view",
        data,
        table,
        alt=f"A table of the scores of {len(line)} words under six schemes of positions. "
        f"How many of the {len(line) ** 2} scores change when two words change places, and "
        f"how many when ten words come before the line: {summary}.",
    )


# --- tables of positions --------------------------------------------------------------


def learned_tables(bert_rows, gpt_rows):
    """Draw how alike the rows of learned position tables are.

    On the left the cosine of any two rows of BERT's, of which every second is drawn; on the
    right the mean cosine of two rows by how many rows they are apart, 0 to 40, of both
    models and of BERT's rows in another order.

    Parameters
    ----------
    bert_rows, gpt_rows : Tensor of shape (positions, d_model)
        The position tables of a BERT and of our GPT.

    Returns
    -------
    None
        The figure is shown.
    """
    unit = F.normalize(bert_rows, dim=-1)
    alike = unit @ unit.T  # (positions, positions)
    _, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.6))
    image = left.imshow(
        alike[::2, ::2],
        cmap=views.DIVERGING,
        vmin=-1,
        vmax=1,
        extent=(0, len(alike), len(alike), 0),
        interpolation="none",
    )
    left.set(xlabel="position", ylabel="position", title="BERT: cosine of two rows")
    left.grid(False)
    left.figure.colorbar(image, ax=left)
    right.plot(mean_cosines(bert_rows), label="BERT")
    right.plot(mean_cosines(gpt_rows), "-.", label="our GPT")
    shuffled = mean_cosines(shuffled_rows(bert_rows))
    right.plot(shuffled, ":", color="black", label="BERT, rows shuffled")
    right.set(xlabel="rows apart", title="Mean cosine", xticks=range(0, 41, 6))
    right.set_yticks((-0.5, 0, 0.5, 1))  # no cosine is larger
    right.set_ylim(top=1.98)  # the legend stands above the curves
    right.legend(loc="upper right", handlelength=1.3)
    plt.show()


def digits_and_waves(bits, waves):
    """Draw positions in binary digits beside the same positions as sinusoids.

    Parameters
    ----------
    bits : Tensor of shape (positions, digits)
        Each position's binary digits, 0 or 1.
    waves : Tensor of shape (positions, d_model)
        Each position's sinusoids, from -1 to 1.

    Returns
    -------
    None
        The figure is shown.
    """
    _, (left, right) = plt.subplots(1, 2, figsize=(7, 3.6), sharey=True)
    shown = {"aspect": "auto", "interpolation": "nearest"}
    left.imshow(bits, cmap=views.SEQUENTIAL, **shown)
    left.set(xlabel="digit", ylabel="position", title="Binary")
    right.imshow(waves, cmap=views.DIVERGING, **shown)
    right.set(xlabel="dimension", title="Sinusoidal")
    for ax in (left, right):
        ax.grid(False)
    plt.show()


# --- hands of dials -------------------------------------------------------------------


def _dials_picture(query, key, speeds, position, behind):
    """Return dials as an SVG: hands of a query and of a key before it, and their score.

    Parameters
    ----------
    query, key : Tensor of shape (pairs, 2)
        A pair of numbers, of length 1, is a hand of a dial.
    speeds : Tensor of shape (pairs,)
        Radians for each position.
    position, behind : int
        The query's position, from 0, and by how many tokens the key is before it.

    Returns
    -------
    str
        SVG markup.
    """
    marks = []
    for i, speed in enumerate(speeds.tolist()):
        ends = []
        hands_of_pair = ((key[i], position - behind, 44), (query[i], position, 32))
        for (x, y), at, length in hands_of_pair:
            end = length * complex(x, y) * cmath.exp(1j * speed * at)
            ends.append(end)
        left = 54 + 108 * i
        lines = "".join(
            f'<path d="M{left} 54l{end.real:.1f} {-end.imag:.1f}" stroke="{colour}"{dash}/>'
            for end, colour, dash in zip(
                ends, views.PALETTE[:2], (' stroke-dasharray="5 4"', ""), strict=True
            )
        )
        product = (ends[0] * ends[1].conjugate()).real / (44 * 32)
        marks.append(
            f'<circle cx="{left}" cy="54" r="48" stroke="currentColor" stroke-width="1"/>'
            f'{lines}<text x="{left}" y="122" fill="currentColor" text-anchor="middle" '
            f'font-size="15">{format_number(product, ".2f")}</text>'
        )
    return (
        f'<svg viewBox="0 0 {108 * len(marks)} 130" style="width: 100%; max-width: 40rem" '
        'fill="none" stroke-width="3" role="img" aria-label="Dials with two hands each.">'
        f"{''.join(marks)}</svg>"
    )


def dials():
    """Show six pairs of a query and a key as hands of dials, and their score.

    In each of the pairs of rotary positions the query's hand and the key's turn by a speed
    times their position; a pair's score is the cosine of the angle between the hands. The
    key fits the query best three tokens back.

    Returns
    -------
    View
        Stored are a drawing of the dials, the key five tokens back, and a table: the score
        of one pair, of two and of six, by how many tokens the key is back.
    """
    query, key, speeds = hands()
    scores = dial_scores()
    chosen = {"one pair": 1, "two pairs": 2, "six pairs": 6}
    table = pd.DataFrame({name: scores[:, n - 1] for name, n in chosen.items()})
    table = table.rename_axis("tokens back").iloc[[*range(0, 13, 3), 20, 30, FAR]]
    data = {
        "query": query.numpy().round(4).tolist(),
        "key": key.numpy().round(4).tolist(),
        "speeds": speeds.tolist(),
        "counts": [*chosen.values()],
        "far": FAR,
        "place": 12,
        "behind": 5,
    }
    picture = _dials_picture(query, key, speeds, data["place"], data["behind"])
    sentence = (
        f"The query is at {data['place']}, the key {data['behind']} tokens before it."
    )
    written = table.to_html(float_format=lambda score: format_number(score, ".2f"))
    return views.View(
        "dials-view",
        data,
        f"{picture}<p>{sentence} The score by distance:</p>{written}",
        alt="Six dials, each with a full hand for the query and a dashed one for the key, "
        "and a curve of their score against the distance. Three tokens back all six pairs "
        f"agree and the score is {format_number(scores[3, 5], '.1f')}. The first pair "
        f"alone has 1 at distance 3 and {format_number(scores[9, 0], '.2f')} again at 9; "
        f"all six have {format_number(scores[9, 5], '.1f')} there.",
    )


def biases(alibi, buckets):
    """Draw what ALiBi adds to a score, and T5's buckets, by distance.

    Parameters
    ----------
    alibi : Tensor of shape (heads, distances)
        What is added to a head's scores, by distance: 0 tokens back, 1, 2, … The colours
        are made for eight heads.
    buckets : dict of int to int Tensor of shape (distances,)
        The reach of T5's buckets (its ``max_distance``), in tokens: from this distance on
        all share the last bucket → the number of the bucket of each distance, 0, 1, 2, …
        (the distances in a bucket share one learned number). There are exactly three
        reaches, and as many distances as one likes.

    Returns
    -------
    None
        The figure is shown.
    """
    _, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3))
    for head, added in enumerate(alibi):
        color = plt.get_cmap(views.SEQUENTIAL)((head + 4) / 12)
        left.plot(added, color=color)
    left.set(xlabel="distance (tokens)", title="What ALiBi adds")
    for (reach, steps), dash in zip(buckets.items(), ("-", "--", ":"), strict=True):
        right.step(range(len(steps)), steps, dash, where="mid", label=f"reach {reach}")
    right.set(xlabel="distance (tokens)", title="Bucket of T5")
    right.legend()
    plt.show()


# --- trained short, tested long -------------------------------------------------------


def long_losses(results):
    """Draw each scheme's loss along a text four times longer than those of training.

    Parameters
    ----------
    results : dict of str to list of dict
        Group ("schemes", "reach", "bases") → runs of the study *positional-encoding*:
        ``scheme``; ``reach``, in tokens; ``base`` of rotary wavelengths; ``loss``, in nats,
        of two questions, by groups of eight positions. Drawn is the one of naming the
        character three back, a thin line a seed, a thick one their mean; not drawn are
        relative positions with a reach of 64. A dotted line shows where the texts of
        training end, a dashed one the loss of a guess.

    Returns
    -------
    None
        The figure is shown.
    """
    drawn = runs_by_scheme(results)
    del drawn["relative, reach 64"]
    fig, ax = plt.subplots(figsize=(7, 4.4))
    looks = zip("osDv^XP", (6, 1, 2, 0, 3, 4, 5), strict=True)
    for (name, runs), (mark, color) in zip(drawn.items(), looks, strict=True):
        losses = np.array([curve(run) for run in runs])  # (seeds, groups)
        color = views.PALETTE[color]
        middles = np.arange(4, LONG, 8)
        ax.plot(middles, losses.T, color=color, lw=0.6, alpha=0.5)
        ax.plot(middles, losses.mean(0), mark + "-", color=color, ms=5, label=name)
    ax.axvline(SHORT, ls=":", color="black")
    ax.axhline(guess_loss(), ls="--", color="black", lw=1)
    ax.set(xlabel="position (characters)", ylabel="loss (nats)")
    fig.legend(loc="outside upper center", ncols=2)
    plt.show()


TRAINED = {"name": "The model is", "values": ["trained", "random weights"]}


def _case(losses, strips, words):
    """Return what the view of losses along a text shows of one choice.

    Parameters
    ----------
    losses : array of shape (groups,)
        By groups of eight positions, in nats.
    strips : dict of str to bool sequence of shape (tokens,)
        What a scheme tells positions by, such as "offset" or "bucket" → whether training
        has shown it, position by position of a long text.
    words : str
        What is said of this choice, in words.

    Returns
    -------
    dict
        ``loss``, a list, rounded; ``far``, the mean of the last four groups; ``strips``, a
        list of dicts with ``name`` and ``met``, a 0 or 1 for each position as a str;
        ``told``.
    """
    met = {
        name: "".join(str(int(shown)) for shown in strip) for name, strip in strips.items()
    }
    return {
        "loss": losses.round(3).tolist(),
        "far": round(float(losses[-4:].mean()), 3),
        "strips": [{"name": name, "met": strip} for name, strip in met.items()],
        "told": words,
    }


def _untrained_case(losses, strips):
    """Return the case of a model with random weights, to which everything is new.

    A case is what the view of losses along a text shows of one choice (`_case`).

    Parameters
    ----------
    losses : array of float
        By groups of eight positions, in nats.
    strips : iterable of str
        The names of the strips that say what is new.

    Returns
    -------
    dict
        ``loss``, by groups; ``far``, the mean of the last four; ``strips``, a name and a
        row of 0 for each; ``told``, what is said in words.
    """
    words = "Random weights: nothing was shown in training, for there was none."
    return _case(losses, {name: [False] * LONG for name in strips}, words)


def _lengths_view(cases, controls, alt):
    """Return a view of losses along a text, of trained models and of untrained ones.

    Parameters
    ----------
    cases : list of (array, dict of str to bool sequence, str, array)
        One for each combination of the controls' values, in the order of
        `itertools.product`: the losses of trained models, in nats by groups of eight
        positions; the strips, name → whether training has shown a position; what is said;
        and the losses of a model with random weights.
    controls : list of dict
        Each with ``name`` and ``values``, the choices of one control, and perhaps
        ``first``, the number of the one that is set first. The last control, between
        trained and random weights, is added.
    alt : str
        What the view shows, in words; the switch and the losses are added.

    Returns
    -------
    views.View
        Stored is a table of the losses over the last 32 positions (`SHORT`) of 128.
    """
    controls = [*controls, TRAINED]
    shown = []
    for losses, strips, words, random_losses in cases:
        shown += [_case(losses, strips, words), _untrained_case(random_losses, strips)]
    names = pd.MultiIndex.from_product([each["values"] for each in controls])
    ends = pd.Series([each["far"] for each in shown], names, name="loss at the far end")
    summary = "; ".join(f"{', '.join(at)} {loss:.2f}" for at, loss in ends.items())
    data = {"short": SHORT, "tokens": LONG, "guess": guess_loss(), "most": 8}
    data |= {"cases": shown, "controls": controls}
    ends.index.names = [each["name"] for each in controls]
    first = [each["name"] for each in controls[:-2]]
    table = ends.reset_index().pivot_table(
        index=controls[-2]["name"],
        columns=[controls[-1]["name"], *first],
        values=ends.name,
        sort=False,
    )
    table = table[controls[-1]["values"]].round(2)
    stored = f"<p>Loss over the last {SHORT} positions, in nats:</p>{table.to_html()}"
    switch = "A switch puts random weights in the model's place."
    ending = f"{switch} The loss over the last {SHORT} positions: {summary}."
    return views.View("lengths-view", data, stored, alt=f"{alt} {ending}")


def schemes_view(results):
    """Show what of a long text each scheme has met in training, and its loss.

    Parameters
    ----------
    results : dict of str to list of dict
        Group ("schemes", "reach", "bases") → runs of the study *positional-encoding*:
        ``scheme``; ``reach``, in tokens; ``base`` of rotary wavelengths; ``loss``, in nats,
        of two questions, by groups of eight positions.

    Returns
    -------
    View
    """
    offset = np.arange(LONG)
    met = offset < SHORT
    absolute = "Every position has a vector of its own; those from 32 on are new."
    explained = {
        "none": ("offset", offset < LONG, "Nothing is new; there are only more keys."),
        "sinusoidal": ("position", met, absolute),
        "learned": ("row", met, absolute),
        "rotary": ("offset", met, "Offsets of more than 31 are new angles."),
        "ALiBi": ("offset", met, "Offsets of more than 31 lower a score more than ever."),
    }
    for reach in REACHES:
        steps = positions.relative_buckets(LONG, lengths.BUCKETS, reach)[-1].flip(0)
        known = (steps <= steps[SHORT - 1]).numpy()
        words = f"The buckets of offsets above {known.sum() - 1} are new."
        if known.all():
            words = "No bucket is new."
        explained[f"relative, reach {reach}"] = ("bucket", known, words)
    cases = []
    for name, runs in runs_by_scheme(results).items():
        strip, known, words = explained[name]
        losses = np.mean([curve(run) for run in runs], 0)
        reach = runs[0]["reach"]
        random = untrained_losses(name.partition(",")[0], reach=reach)
        cases.append((losses, {strip: known}, words, random))
    return _lengths_view(
        cases,
        [{"name": "Positions", "values": [*explained], "first": 7}],
        "For each scheme, a strip that says up to which position its positions, offsets or "
        "buckets occurred in training, and the curve of the loss.",
    )


REPAIRS = {  # as the view names them → as the study does, and what is said
    "nothing": ("none", "The model as it was trained."),
    "all pairs": (
        "all",
        "All angles occurred in training. But the fast pairs now take what stood three "
        "back for less than one back.",
    ),
    "pairs that came round": ("old", "The angles that are new stay new."),
    "pairs that did not": ("new", "The fast pairs are as they were; no angle is new."),
    "larger base": (
        "NTK-aware",
        "The slower a pair is, the more it is slowed: the first not at all, the last by "
        "four.",
    ),
}


def repairs_view(results):
    """Show five ways to read on with a rotary model, for four bases.

    Parameters
    ----------
    results : dict of str to list of dict
        Group, of which "bases" is used → runs of the study *positional-encoding*: ``base``
        of the rotary wavelengths, and ``ways``, way to read on → losses in nats by groups
        of eight positions. The ways: "none", the model as it is; pairs of dimensions turn
        four times slower, "all", the "old" (those that came round within the texts of
        training) or the "new" ones; and "NTK-aware", a larger base.

    Returns
    -------
    View
        Its cases: four bases (`BASES`) times five ways, of trained and random weights.
    """
    cases = []
    for base in BASES:
        waves = 2 * math.pi / positions.frequencies(D_HEAD, base)
        names = [f"pair {i}: {w:.{0 if w > 10 else 1}f}" for i, w in enumerate(waves)]
        runs = rotary_runs(results, base)
        for repair, (way, words) in REPAIRS.items():
            met = angles_met(base, repair).tolist()
            strips = dict(zip(names, met, strict=True))
            losses = np.mean([curve(run, way) for run in runs], 0)
            random = untrained_losses("rotary", slowed(base, repair), base=base)
            cases.append((losses, strips, words, random))
    return _lengths_view(
        cases,
        [
            {"name": "Base", "values": [f"{base:,}" for base in BASES], "first": 2},
            {"name": "Four times slower", "values": [*REPAIRS]},
        ],
        "For four bases and five ways to read on, a strip for each of six pairs that says "
        "where its angles are new, and the curve of the loss.",
    )


def scorecard(results):
    """Return a table of which scheme of positions meets which demand.

    Parameters
    ----------
    results : dict of str to list of dict
        Group ("schemes", "reach", "bases") → runs of the study *positional-encoding*:
        ``scheme``; ``reach``, in tokens; ``loss``, in nats, of two questions, by groups of
        eight positions.

    Returns
    -------
    DataFrame
        A row for each scheme and one for a guess. Columns: four demands, with "✓", "✗" or
        "?": ``apart``, no two positions look the same; ``quiet``, what is added does not
        grow with the text; ``one step``, "three words back" is the same everywhere; ``no
        end``, there is something for every position. Then ``long texts``, the median loss
        over the last 32 of 128 characters, in nats, as text; "" for schemes that were not
        trained.
    """
    card = {
        "a number": ("✓✗✓✓", ""),
        "its share": ("✓✓✗✓", ""),
        "binary digits": ("✓✓✗✗", ""),
        "learned": ("✓✓?✗", "learned"),
        "sinusoidal": ("✓✓✓✓", "sinusoidal"),
        "rotary": ("✓✓✓✓", "rotary"),
        "ALiBi": ("✓✓✓✓", "ALiBi"),
        "relative, reach 24": ("✗✓✓✓", "relative, reach 24"),
        "relative, reach 128": ("✗✓✓✓", "relative, reach 128"),
    }
    demands = ["apart", "quiet", "one step", "no end"]
    table = pd.DataFrame([[*each] for each, _ in card.values()], [*card], demands)
    runs = runs_by_scheme(results)
    losses = [
        f"{np.median([far_loss(run) for run in runs[name]]):.1f}" if name else ""
        for _, name in card.values()
    ]
    table["long texts"] = losses
    table.loc["a guess"] = ["", "", "", "", f"{guess_loss():.1f}"]
    return table


def kinds_table(results):
    """Return how each of ten kinds of rotary models reads long texts.

    A kind is a base of the wavelengths and a length of the training texts; a long text has
    four times that length.

    Parameters
    ----------
    results : dict of str to list of dict
        Of the study *positional-encoding*; its group "bases" has runs with ``base`` of the
        rotary wavelengths, ``length`` of the training texts, and ``ways``, way to read on →
        losses in nats by groups of eight positions.

    Returns
    -------
    DataFrame
        A row for each base and length. ``first new pair``, the number of the first pair of
        dimensions, from 0, whose wavelength is longer than the texts; then the lowest and
        the highest loss of five seeds, in nats, as text: at the far end as it is, with a
        larger base, and with the slow pairs slowed; with these slowed also at trained
        lengths.
    """
    rows = {}
    for run in results["bases"]:
        waves = 2 * math.pi / positions.frequencies(D_HEAD, run["base"])
        new = int((waves > run["length"]).int().argmax())
        key = f"base {run['base']:,}, {run['length']} characters"
        row = rows.setdefault(key, {"first new pair": new, "runs": []})
        row["runs"].append(run)
    table = {}
    for key, row in rows.items():
        cells = {"first new pair": str(row["first new pair"])}
        columns = {
            "as it is": (far_loss, "none"),
            "larger base": (far_loss, "NTK-aware"),
            "slow pairs slowed": (far_loss, "new"),
            "the same, trained lengths": (near_loss, "new"),
        }
        for name, (part, way) in columns.items():
            losses = [part(run, way) for run in row["runs"]]
            low, high = (f"{end:.1f}" for end in (min(losses), max(losses)))
            cells[name] = low if low == high else f"{low}\u2060–\u2060{high}"
        table[key] = cells
    return pd.DataFrame(table).T


# --- a digit far back -----------------------------------------------------------------

WAYS = {  # how it is named → scheme, way of the study *far-digit*
    "rotary, as it is": ("rotary", "none"),
    "far keys hidden": ("rotary", "near keys"),
    "all pairs slowed": ("rotary", "all"),
    "larger base": ("rotary", "NTK-aware"),
    "slow pairs slowed": ("rotary", "new"),
    "no positions": ("none", "none"),
    "sinusoidal": ("sinusoidal", "none"),
    "sinusoidal, slowed": ("sinusoidal", "stretched"),
    "learned": ("learned", "none"),
    "learned, stretched": ("learned", "stretched"),
    "ALiBi": ("ALiBi", "none"),
    "ALiBi, slopes ÷ 4": ("ALiBi", "stretched"),
    "relative, reach 24": ("relative", "none"),
}


def digit_losses(results, scheme, way):
    """Return both losses at the far end of long texts, a row for each seed.

    Rotary models are those with a base of 10,000.

    Parameters
    ----------
    results : dict of str to list of dict
        Of the study *far-digit*: groups ``rotary`` and ``others``, outcomes with
        ``scheme``, ``base`` and ``ways``: way to read on → a dict of losses in nats at the
        far end of long texts, "digit far" of a digit that stands far back, and "back far"
        of the character three back.
    scheme : str
        How the models encode positions: "rotary", or a scheme of the others.
    way : str
        How they read beyond the length of their training, a key of an outcome's ``ways``:
        "none" is the model as it was trained.

    Returns
    -------
    array of shape (seeds, 2)
        Of the digit, and of the character three back; in nats.
    """
    if scheme == "rotary":
        runs = [run for run in results["rotary"] if run["base"] == 10_000]
    else:
        runs = [run for run in results["others"] if run["scheme"] == scheme]
    chosen = [run["ways"][way] for run in runs]
    return np.array([[each["digit far"], each["back far"]] for each in chosen])


def far_digit(results):
    """Draw which models find a digit far back, and which the character three back.

    A row for each scheme of positions and way to read on (`WAYS`), a dot for each seed; a
    panel for either question. Dashed lines show the loss of a guess.

    Parameters
    ----------
    results : dict of str to list of dict
        Of the study *far-digit*: groups ``rotary`` and ``others``, outcomes with
        ``scheme``, ``base`` and ``ways``: way to read on → a dict of losses in nats at the
        far end of long texts, "digit far" of a digit that stands far back, and "back far"
        of the character three back.

    Returns
    -------
    None
        The figure is shown.
    """
    _, axes = plt.subplots(1, 2, figsize=(7.2, 4.6), sharey=True)
    for row, (name, (scheme, way)) in enumerate(WAYS.items()):
        both = digit_losses(results, scheme, way)
        color = views.PALETTE[1] if name == "slow pairs slowed" else views.PALETTE[0]
        mark = "D" if name == "slow pairs slowed" else "o"
        for ax, losses in zip(axes, both.T, strict=True):
            ax.plot(losses, [row] * len(losses), mark, color=color, ms=5)
    guesses = (math.log(10), guess_loss())
    for ax, guess, title in zip(axes, guesses, ("the digit", "three back"), strict=True):
        ax.axvline(guess, ls="--", color="black", lw=1)
        ax.set(title=title, xlabel="loss (nats)")
    axes[0].set_yticks(range(len(WAYS)), WAYS)
    axes[0].invert_yaxis()
    plt.show()
