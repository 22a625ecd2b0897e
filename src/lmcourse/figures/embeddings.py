"""What the chapter *embeddings* draws: data in, figure or view out."""

import math

import matplotlib.pyplot as plt
import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from lmcourse import views
from lmcourse.embeddings import unit
from lmcourse.numbers import crossed_interval, format_number
from lmcourse.verbs_and_nouns import (
    LESSONS,
    TAUGHT,
    before_direction,
    encode_pairs,
    pairs,
    verb_direction,
)
from lmcourse.views.markup import table

SYMBOLS = ["circle", "square", "diamond", "cross", "square-open", "circle-open"]
COLOURS = [*views.PALETTE[:5], views.PALETTE[6]]
FEW_WORDS, FEW_PAIRS = 3, 8  # words and pairs of sentences in the lessons for the page
NAMED = 2  # words of each group that are named on the map


# --- the map ------------------------------------------------------------------------------


def word_map(words, groups, points, random_points):
    """Draw words as points in three dimensions, with a slider to random weights.

    A group has a colour and a symbol; its first two words (`NAMED`) are named, the others
    when a reader points at them.

    Parameters
    ----------
    words, groups : sequence of str
        A word and its group, for each point.
    points, random_points : array of shape (words, 3)
        Where each word is drawn: of the trained vectors, and of random ones.

    Returns
    -------
    View
    """
    words = np.asarray(words)
    groups = np.asarray(groups)
    names = list(dict.fromkeys(groups.tolist()))

    def traces(where):
        """Return plotly's traces of the words at the points ``where``, (words, 3).

        The result is a list of Scatter3d, one a group.
        """
        scatters = []
        for i, name in enumerate(names):
            own = groups == name
            shown = [w if k < NAMED else "" for k, w in enumerate(words[own])]
            x, y, z = where[own].T
            marker = {"size": 4, "color": COLOURS[i], "symbol": SYMBOLS[i]}
            scatters.append(
                go.Scatter3d(
                    x=x,
                    y=y,
                    z=z,
                    name=name,
                    hovertext=words[own],
                    text=shown,
                    mode="markers+text",
                    marker=marker,
                    hoverinfo="text",
                )
            )
        return scatters

    figure = go.Figure(traces(points))
    worlds = {"trained": points, "random weights": random_points}
    figure.frames = [go.Frame(name=n, data=traces(where)) for n, where in worlds.items()]
    no_labels = {"title_text": "", "showticklabels": False}
    steps = [
        {"label": n, "method": "animate", "args": [[n], views.AT_ONCE]} for n in worlds
    ]
    slider = {"steps": steps, "currentvalue_prefix": "Had it learned nothing? "}
    slider |= {
        "x": 0.15,
        "len": 0.7,
        "y": 1,
        "yanchor": "bottom",
    }  # above: the legend is below
    figure.update_layout(
        height=560,
        margin={"l": 0, "r": 0, "t": 90, "b": 0},
        legend={"orientation": "h", "itemsizing": "constant"},
        scene_camera_eye={"x": 1.2, "y": 1.2, "z": 0.6},
        scene={f"{axis}axis": no_labels for axis in "xyz"},
        sliders=[slider],
    )
    return views.plot(
        figure,
        alt=f"{len(words)} words of {len(names)} groups as points in three dimensions, two "
        "of each group named. Groups stand together; with random weights they are mixed.",
    )


# --- analogies ----------------------------------------------------------------------------


def analogies(shares):
    """Draw how many questions are answered, kind by kind.

    Parameters
    ----------
    shares : DataFrame
        The share of questions that are answered right, 0 to 1: one row a kind of question,
        one column a way to answer, three at most.

    Returns
    -------
    None
        The figure is shown.
    """
    _, axis = plt.subplots(figsize=(6.4, 4.8))
    rows = np.arange(len(shares))
    for i, (way, marker) in enumerate(zip(shares, "os^", strict=False)):
        axis.plot(shares[way], rows, marker, color=views.PALETTE[i], label=way)
    axis.hlines(rows, 0, shares.max(axis=1), color="#dddddd", zorder=0)
    axis.set_yticks(rows, shares.index)
    axis.invert_yaxis()
    axis.set(xlabel="questions answered", xlim=(-0.02, 1.04))
    axis.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=1, frameon=False)
    plt.show()


# --- verb or noun? ------------------------------------------------------------------------


def contest(tokenizer, model, untrained, taught, random_taught):
    """Show how far "dance" leans to the verbs in two lines, level by level.

    That is how far its unit vector goes along the direction from nouns to verbs of the
    level, beyond the middle between the two. Before all levels stands "the word before":
    the same of the table's vector of "her", along a direction from words that stand before
    nouns to words that stand before verbs.

    Parameters
    ----------
    tokenizer, model
        Of BERT, as `lmcourse.models.load_bert` returns them.
    untrained : BertModel
        The same with untrained layers.
    taught, random_taught : dict of str to array of shape (2, pairs, 2, words, d_model)
        Level, such as "before layer 0" → vectors of words as verb and as noun (first axis),
        by pair of sentences, by which sentence comes first, and by word; by the one model
        and by the other. The directions are taken from them.

    Returns
    -------
    View
        Stored is a table: a level, and the lean in both lines.
    """
    word = "dance"
    texts = ["They let her dance again.", "They read her dance again."]

    def per_level(model, taught):
        """Return where the word leans in both texts, and the directions, by level.

        At the level "the word before" it is the table's vector of “her”, the same in both.

        Parameters
        ----------
        model : BertModel
        taught : dict of str to array
            Level → unit vectors of words, (2, pairs, 2, words, d_model): as verb and as
            noun, by pair of sentences and by their order.

        Returns
        -------
        rows : list of list
            A level's name, and the lean of the word in each text beyond the middle.
        levels : list of list
            A level's name, its direction, and the middle of the leans.
        """
        levels = {"the word before": before_direction(tokenizer, model)}
        levels |= {name: verb_direction(vectors) for name, vectors in taught.items()}
        before = _row(tokenizer, model, "her") @ levels["the word before"][0]
        leans = {"the word before": np.array([before, before])}
        for name, vectors in encode_pairs(tokenizer, model, [word]).items():
            leans[name] = vectors[:, 0, :, 0].mean(axis=1) @ levels[name][0]  # (2,)
        rows = [[n, *(x - levels[n][1]).round(3).tolist()] for n, x in leans.items()]
        return rows, [[n, x.round(4).tolist(), middle] for n, (x, middle) in levels.items()]

    rows, levels = per_level(model, taught)
    data = {"texts": texts, "word": word, "told": rows, "levels": levels}
    data["untrained"] = per_level(untrained, random_taught)[0]
    data["around"] = [tokenizer.cls_token_id, tokenizer.sep_token_id]
    # From these the page learns the directions of its own copy with random weights.
    data["lessons"] = {"words": TAUGHT[:FEW_WORDS], "pairs": pairs()[:FEW_PAIRS]}
    data["lessons"]["before"] = pairs(LESSONS)
    lines = [
        [name, *(format_number(lead, "+.2f") for lead in leads)] for name, *leads in rows
    ]
    return views.View(
        "contest-view",
        data,
        table(["towards the verb", *texts], lines),
        alt=f"How far “{word}” leans towards the verbs in two lines. "
        + "; ".join(f"{name}: {a} and {b}" for name, a, b in lines)
        + ". A switch puts untrained layers in the model's place.",
        stores=["bert", "bert-pieces"],
    )


def _row(tokenizer, model, word):
    """Return a word's vector in a model's table, at length 1, a float64 array (d_model,).

    ``tokenizer``, ``model`` : of BERT; ``word`` : str, a whole token.
    """
    row = model.get_input_embeddings().weight[tokenizer.convert_tokens_to_ids(word)]
    return unit(row.detach().cpu().double().numpy())


def verb_or_noun(right, random_right, before):
    """Draw in how many pairs a verb and a noun are told apart, level by level.

    Parameters
    ----------
    right, random_right : dict of str to array of shape (pairs, words)
        Level, such as "before layer 0" → by pair of sentences and by word: 1 where the word
        as a verb leans more to the verbs than as a noun, 0 where less (means over both
        orders of the sentences); of the trained layers and of untrained ones.
    before : array of shape (pairs, words)
        The same shares, where a vector is the embedding rows of all words before the one
        in question, added up.

    Returns
    -------
    None
        The figure is shown.
    """
    _, axis = plt.subplots(figsize=(6.4, 3.2))
    where = np.arange(len(right))
    views.band(axis, where, [crossed_interval(table) for table in right.values()])
    trained, untrained = (
        [x.mean() for x in by_level.values()] for by_level in (right, random_right)
    )
    axis.plot(where, trained, "o-", label="BERT")
    axis.plot(where, untrained, "s--", color=views.PALETTE[6], label="untrained layers")
    label = "words before, added up"
    axis.axhline(before.mean(), color=views.PALETTE[1], linestyle="--", label=label)
    axis.set(xlabel="after layer", ylabel="pairs told apart", ylim=(0.2, 1.02))
    axis.set_xticks(where, ["before", *map(str, where[:-1])])
    axis.legend(loc="lower right", fontsize=9, frameon=False)
    plt.show()


# --- cones --------------------------------------------------------------------------------


def _fan(angles):
    """Return rays from the middle to the rim and back, as one line of x and y.

    Parameters
    ----------
    angles : sequence of float
        In degrees.

    Returns
    -------
    float array of shape (2, 3 · angles)
        NaN between two rays.
    """
    turns = np.radians(angles)
    ends = np.stack([np.cos(turns), np.sin(turns)])  # (2, words)
    return np.stack([0 * ends, ends, np.nan * ends], -1).reshape(2, -1)


def _stop(run):
    """Return the slider's name of a training: its negatives, and its constant.

    ``run`` : dict with ``k``, negatives for each pair, and ``constant``, what was added to
    the scores: 0, or ln 5 with either sign. Such as "5" or "5, −ln 5".
    """
    constant = {0: "", -1: ", −ln 5", 1: ", +ln 5"}[int(np.sign(run["constant"]))]
    return f"{run['k']}{constant}"


def cones(runs):
    """Draw words and contexts as rays, with a slider over trainings.

    Parameters
    ----------
    runs : list of dict
        Of the study *embeddings*: ``k``, negatives for each pair; ``constant``, what was
        added to the scores; ``picture`` (not in all), with the ``angles`` of the words' and
        of the contexts' vectors in degrees, the words' mean ``cosine``, and the mean
        ``score``.

    Returns
    -------
    View
        Below the rays is the mean score by k, with a dashed line: what it would be if it
        fell by ln k from that of the first training.
    """
    runs = [run for run in runs if "picture" in run]

    def state(run):
        """Return what a slider position shows: a list of three dicts, two curves and a dot.

        ``run`` : dict, a run of the study *embeddings*: ``k``, negatives for each pair, and
        ``picture`` with ``angles`` in degrees, of words and of contexts, and ``score``.
        """
        (x, y), (u, v) = map(_fan, run["picture"]["angles"])
        at = {"x": [run["k"]], "y": [run["picture"]["score"]]}
        return [{"x": x, "y": y}, {"x": u, "y": v}, at]

    plain = [run for run in runs if not run["constant"]]
    ks = [run["k"] for run in plain]
    base = plain[0]["picture"]["score"]
    opened = len(plain) - 1
    rays = {"mode": "lines", "line_width": 1.3}
    figure = make_subplots(rows=2, cols=1, row_heights=[0.74, 0.26])
    first = state(runs[opened])
    for part, name, x, ink in zip(
        first, ["words", "contexts"], (-0.8, 0.8), views.PALETTE, strict=False
    ):
        figure.add_scatter(**part, **rays, line_color=ink, name=name)
        figure.add_annotation(x=x, y=0.7, text=name, showarrow=False, font_size=14)
    dot = {"mode": "markers", "marker": {"size": 13, "color": views.PALETTE[2]}}
    figure.add_scatter(**first[2], **dot, name="mean score", row=2, col=1)
    dashed = {"mode": "lines", "line": {"dash": "dash", "color": "grey"}}
    lower = [base - math.log(k) for k in ks]
    figure.add_scatter(x=ks, y=lower, **dashed, row=2, col=1)
    figure.frames = [
        go.Frame(name=_stop(run), traces=[0, 1, 2], data=state(run)) for run in runs
    ]
    steps = [
        {"label": name, "method": "animate", "args": [[name], views.AT_ONCE]}
        for name in map(_stop, runs)
    ]
    slider = {"active": opened, "steps": steps, "pad_t": 60, "currentvalue_prefix": "k = "}
    figure.update_layout(
        sliders=[slider],
        height=620,
        showlegend=False,
        margin={"l": 50, "r": 30, "t": 40},
        xaxis={"visible": False},
        yaxis={"visible": False, "range": [-0.85, 0.85], "scaleanchor": "x"},
        xaxis2={"title": "negatives for each pair, k", "tickvals": ks},
        yaxis2={"title": "mean score", "range": [-2.4, 0.2]},
    )
    summary = " ".join(
        f"At k = {_stop(run)} the words' mean cosine is {run['picture']['cosine']:.2f} and "
        f"the mean score {format_number(run['picture']['score'], '.1f')}."
        for run in runs
    )
    alt = f"Rays from a middle point, words to the left, contexts to the right. {summary}"
    return views.plot(figure, alt=alt)


# --- how far to trust them ----------------------------------------------------------------


def shared(frequent, others, chances):
    """Draw which share of their neighbours words have in common with BERT's table.

    Parameters
    ----------
    frequent, others : dict of str to (float, (float, float))
        Name of the vectors → the mean share of neighbours that a word has in common, 0 to
        1, and its 95 % interval; over the sixty most frequent words, and over all others.
    chances : pair of float
        The share that would be common by chance, for either.

    Returns
    -------
    None
        The figure is shown.
    """
    _, axes = plt.subplots(1, 2, figsize=(7.2, 2.8), sharex=True)
    titles = ["the sixty most frequent", "all others"]
    for axis, kinds, chance, title in zip(
        axes, (frequent, others), chances, titles, strict=True
    ):
        means = np.array([mean for mean, _ in kinds.values()])
        ends = np.array([ends for _, ends in kinds.values()]).T  # (2, kinds)
        reach = abs(ends - means)
        axis.barh(list(kinds), means, xerr=reach, color=views.PALETTE[: len(kinds)])
        axis.axvline(chance, color="grey", linestyle="--")
        axis.invert_yaxis()
        axis.set(xlabel="shared neighbours", title=title)
    plt.show()
