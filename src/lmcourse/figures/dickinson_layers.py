"""What the chapter *dickinson-layers* draws: data in, figure or view out."""

from html import escape

import matplotlib.pyplot as plt
import numpy as np
import torch

from lmcourse import views
from lmcourse.levels import level_names
from lmcourse.pooling import nearest
from lmcourse.probe import interval, predict, score

NEIGHBOURS = 10


def start_row(texts, start):
    """Return the row of the first of the ``texts`` that begins with ``start``, a str."""
    return next(i for i, text in enumerate(texts) if text.startswith(start))


def tick_names(levels):
    """Return the levels' names at an axis "after layer": "static", "before layer 0", "0", …

    ``levels`` is their number.
    """
    return ["static", "before layer 0", *map(str, range(levels - 2))]


def level_ticks(ax, levels):
    """Name the levels below an axis: "static", "before layer 0", then 0, 1, 2, …

    The words are slanted, to take less room. The axis is called "after layer".

    ``ax`` : matplotlib Axes; ``levels`` : int, how many levels there are.
    """
    names = tick_names(levels)
    names[1] = names[1].replace(" ", "\n", 1)  # in one line it would take the plot's room
    ax.set_xticks(range(levels), names)
    plt.setp(ax.get_xticklabels()[:2], rotation=60)
    ax.set(xlabel="after layer")


def explorer(poems, levels, guesses, random_levels, random_guesses, mixed):
    """Show a poem, its nearest others level by level, and the section they speak for.

    Parameters
    ----------
    poems : DataFrame
        Dickinson's poems, a row each: ``text``; ``section``, the editors'; ``series`` and
        ``number``, where it was printed.
    levels, random_levels : Tensor of shape (levels, poems, d_model)
        The poems' vectors at each level of the trained model, and of one with random
        weights: first of its tables alone, then before layer 0 and after each layer.
    guesses, random_guesses : list of Predictions
        One a level: ``support``, Tensor (poems, sections), how much speaks for each
        section, and ``names``, the sections.
    mixed : tuple of (Tensor, list of Predictions, list of str)
        The trained model's levels and guesses of the poems with their words in another
        order, and these texts.

    Returns
    -------
    View
    """

    def per_level(levels, guesses):
        """Return the support for each section and the nearest poems, level by level.

        ``levels`` : Tensor (levels, poems, d_model); ``guesses`` : list of Predictions. The
        result is a pair of Tensors: (levels, poems, sections) and (levels, poems,
        NEIGHBOURS).
        """
        near = torch.stack([nearest(level, NEIGHBOURS) for level in levels])
        return torch.stack([guess.support for guess in guesses]), near

    texts = poems.text.tolist()
    support, near = per_level(levels, guesses)
    return views.poems(
        texts,
        [f"{p.series}, {p.section}, no. {p.number}" for p in poems.itertuples()],
        poems.section.tolist(),
        support,
        near=near,
        names=guesses[-1].names,
        levels=level_names(len(levels) - 2),
        first=start_row(texts, "Hope is the thing"),
        untrained=per_level(random_levels, random_guesses),
        reordered=(*per_level(*mixed[:2]), mixed[2]),
        alt="A poem, first Hope is the thing with feathers; for each level the section "
        "that all other poems speak for, the three nearest poems, and how many of the ten "
        "nearest it kept. A switch puts random weights in the model's place, or each "
        "poem's words in another order. Folded: all poems by the editors' section and the "
        "model's.",
    )


def own_texts(mine):
    """Show each of a reader's texts, its nearest others and the label they speak for.

    The model reads the texts once more, with their words in another order.

    Parameters
    ----------
    mine : EncodedTexts
        A reader's texts. Used are ``texts``, a DataFrame with ``text`` and ``title``;
        ``labels``, array of str; ``levels`` and ``random_levels``, Tensors (levels, texts,
        d_model), of a BERT and of one with random weights; ``shuffled``, the texts with
        their words in another order, and their levels.

    Returns
    -------
    View
    """
    labels = mine.labels

    def per_level(levels):
        """Return for each level the support of each label and the nearest texts.

        ``levels`` : Tensor (levels, texts, d_model). The result is a pair of Tensors:
        (levels, texts, labels) and (levels, texts, neighbours), rows of the nearest first.
        """
        guesses = [predict(level, labels) for level in levels]
        near = [nearest(level, min(NEIGHBOURS, len(labels) - 1)) for level in levels]
        return torch.stack([guess.support for guess in guesses]), torch.stack(near)

    support, near = per_level(mine.levels)
    shuffled, shuffled_levels = mine.shuffled
    return views.poems(
        mine.texts.text.tolist(),
        mine.texts.title.tolist(),
        labels.tolist(),
        support,
        near=near,
        names=np.unique(labels).tolist(),
        levels=mine.names,
        untrained=per_level(mine.random_levels),
        reordered=(*per_level(shuffled_levels), shuffled),
        alt="A text of yours; for each level of the model the label that all other texts "
        "speak for, and the nearest texts. A switch puts random weights in the model's "
        "place, or each text's words in another order.",
    )


def accuracy_by_level(guesses, random_guesses, sections):
    """Draw how many poems are recognised at each level, and with random weights.

    Parameters
    ----------
    guesses, random_guesses : list of Predictions
        One a level, of the trained model and of random weights; ``hits``, an array, has 1
        for a poem whose section is right, else 0. What is drawn is the mean over the four
        sections of the share that is right, of the trained model with its 95 % interval.
    sections : array of shape (poems,)
        The editors' section of each poem, str.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(7, 3.2))
    x = range(len(guesses))
    views.band(ax, x, [interval(guess.hits, sections) for guess in guesses])
    lines = {"trained": (guesses, "o-", 0), "random weights": (random_guesses, "s--", 6)}
    for label, (guessed, form, color) in lines.items():
        shares = [score(guess.hits, sections) for guess in guessed]
        ax.plot(x, shares, form, color=views.PALETTE[color], label=label)
    ax.axhline(0.25, color=views.PALETTE[6], ls=":", label="blind guessing")
    level_ticks(ax, len(guesses))
    ax.set(ylabel="balanced accuracy", ylim=(0, 0.8))
    above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    ax.legend(ncols=2, columnspacing=1, handlelength=1.6, frameon=False, **above)
    plt.show()


def leads(guesses, sections, texts, starts):
    """Draw how far each poem's own section is ahead, level by level, and a few paths.

    The lead is the support of the editors' section less the most of any other. A violin
    shows all poems, a line one of them.

    Parameters
    ----------
    guesses : list of Predictions
        One a level: ``names``, the sections, and ``support``, Tensor (poems, sections), how
        much speaks for each: 1 is no more than by chance.
    sections : array of shape (poems,)
        The editors' section of each poem, one of the names.
    texts : list of str
        The poems.
    starts : list of str
        How the poems begin whose path is drawn.

    Returns
    -------
    None
        The figure is shown.
    """
    names = guesses[0].names
    own = torch.tensor([names.index(section) for section in sections])[:, None]
    ahead = []
    for guess in guesses:
        others = guess.support.scatter(1, own, -torch.inf).max(dim=1).values
        ahead.append((guess.support.gather(1, own)[:, 0] - others).numpy())
    _, ax = plt.subplots(figsize=(7, 3.6))
    x = range(len(guesses))
    parts = ax.violinplot(ahead, positions=x, widths=0.8, showextrema=False)
    for body in parts["bodies"]:
        body.set(facecolor=views.PALETTE[6], alpha=0.3)
    for place, start in enumerate(starts):
        row = start_row(texts, start)
        path = [each[row] for each in ahead]
        form = ("o-", "s-", "^-")[place % 3]
        ax.plot(x, path, form, color=views.PALETTE[place], label=start)
    ax.axhline(0, color=views.PALETTE[6], ls=":")
    level_ticks(ax, len(guesses))
    ax.set(ylabel="lead of the editors' section")
    above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    ax.legend(ncols=1, frameon=False, **above)
    plt.show()


def words(texts, sections, guesses, level_names, close):
    """Show poems whose words can be struck out, one at a time.

    Parameters
    ----------
    texts : list of str
        All poems.
    sections : array of shape (poems,)
        The editors' section of each poem.
    guesses : list of Predictions
        One a level: ``names``, the sections, and ``support``, Tensor (poems, sections), of
        the poems as they are printed.
    level_names : list of str
        How the levels are called.
    close : list of dict
        Of the study *dickinson-layers*, one for each poem that is shown: ``poem``, its row;
        ``words``, list of str; ``said``, the support in hundredths without each word,
        nested lists (levels, words, sections).

    Returns
    -------
    View
        Its data: ``names`` of the sections, ``levels``, ``first``, the number of the poem
        that is open, and ``poems``, a dict each: ``text``, ``own`` (the number of the
        editors' section), ``words``, ``said``, and ``printed``, the support of the whole
        poem in hundredths, (levels, sections).
    """
    names = guesses[0].names
    poems = []
    for each in close:
        poem = each["poem"]
        printed = [(100 * g.support[poem]).round().int().tolist() for g in guesses]
        poems.append(
            {
                "text": texts[poem],
                "own": names.index(sections[poem]),
                "words": each["words"],
                "said": each["said"],
                "printed": printed,
            }
        )
    shared = {"names": names, "levels": level_names}
    return views.View(
        "word-removal-view",
        {"poems": poems, "first": 0} | shared,
        f"<blockquote>{_with_breaks(poems[0]['text'])}</blockquote>",
        alt="A poem whose words are buttons, coloured by how much support a section loses "
        "without them; a choice of poem, section and level; a sentence that says what the "
        "model says without the word pressed.",
    )


def kept_by_layer(steps, runs):
    """Draw which share of a poem's neighbours each layer keeps, trained and untrained.

    Parameters
    ----------
    steps : list of float
        Of the trained model, one a layer: the share of its ten nearest poems that a poem
        keeps from before the layer to after it.
    runs : list of dict
        Of the study *dickinson-layers*: ``way``, "trained" (not drawn), or, for untrained
        layers, "dealt", their weights shuffled, or "drawn", at random in their size;
        ``where``, whether "all" layers are untrained or the "last"; ``steps``, for each
        layer the share of neighbours that a poem keeps.

    Returns
    -------
    None
        The figure is shown.
    """
    untrained = [run for run in runs if run["way"] != "trained"]
    all_untrained = [run["steps"] for run in untrained if run["where"] == "all"]
    last_untrained = [run["steps"][-1] for run in untrained if run["where"] == "last"]
    _, ax = plt.subplots(figsize=(7, 3.2))
    ax.plot(steps, "o-", color=views.PALETTE[0], label="trained")
    depth = len(all_untrained[0])  # of the study's model, which need not be the page's
    x = np.tile(np.arange(depth), len(all_untrained))
    y = np.ravel(all_untrained)
    ax.plot(x, y, "x", color=views.PALETTE[1], label="all layers untrained")
    x = depth - 0.9 + np.linspace(0, 0.3, len(last_untrained))  # beside the last layer
    style = {"mfc": "none", "color": views.PALETTE[2], "label": "only the last one"}
    ax.plot(x, last_untrained, "D", **style)
    ax.set(xlabel="layer", ylabel="neighbours kept", ylim=(0, 1))
    ax.set_xticks(range(max(depth, len(steps))))
    ax.legend(loc="lower left")
    plt.show()


def _with_breaks(text):
    """Return a text (str) as HTML, its lines one below the other."""
    return escape(text).replace("\n", "<br>")


def sorting(texts, sections, guesses, level_names, drawn):
    """Show poems, one after the other, to be sorted by the reader.

    Parameters
    ----------
    texts : list of str
        All poems.
    sections : array of shape (poems,)
        The editors' section of each poem.
    guesses : list of Predictions
        One a level: ``names``, the sections, and ``support``, Tensor (poems, sections).
    level_names : list of str
        How the levels are called.
    drawn : list of int
        The rows of the poems to be sorted.

    Returns
    -------
    View
        Its data: ``texts``; ``editors``, the number of the editors' section for each;
        ``models``, that of the section with the most support, (levels, texts); ``names`` of
        the sections; ``levels``, their names.
    """
    names = guesses[0].names
    first_lines = "\n".join(texts[i].split("\n")[0] for i in drawn)
    return views.View(
        "sorting-view",
        {
            "texts": [texts[i] for i in drawn],
            "editors": [names.index(sections[i]) for i in drawn],
            "models": [g.support[drawn].argmax(dim=1).tolist() for g in guesses],
            "names": names,
            "levels": level_names,
        },
        f"<p>{_with_breaks(first_lines)}</p>",
        alt="Twenty poems, one after the other, each with four buttons, the sections; at "
        "the end a table of how often the reader, the editors and each level agree.",
    )
