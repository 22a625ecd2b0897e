"""What the chapter *mini-gpt* draws: data in, figure or table out."""

import textwrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lmcourse import views
from lmcourse.gpt.stored_runs import AXES, BEST_NGRAMS, gains, losses_alone, sizes_table
from lmcourse.numbers import bootstrap_interval, format_estimate

SHADES = ("0.75", "0.55", "0.3", "0.0")  # of four curves, from the smallest value on

# --- training -----------------------------------------------------------------------------


def curve(runs, history, pairs, best):
    """Draw perplexity during training: of stored runs, and of the page's own.

    Parameters
    ----------
    runs : list of dict
        Of the study *ladder*: ``history`` holds rows of [step, training loss, validation
        loss], in nats; the validation loss is drawn.
    history : DataFrame
        Losses of the page's run in nats, by step (the index), in the columns ``training``
        and ``validation``.
    pairs, best : float
        The losses of 2-grams and of the best n-grams, in nats.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(6.4, 3.6))
    for number, run in enumerate(runs):
        steps, _, losses = zip(*run["history"], strict=True)
        label = "1,000 steps, held-out text" if number == 0 else None
        ax.plot(steps, np.exp(losses), color="0.6", lw=1, label=label)
    ax.plot(np.exp(history.training), ":", color="C1", lw=2, label="150 steps, own text")
    ax.plot(np.exp(history.validation), color="C0", lw=2, label="150 steps, held-out text")
    _level(ax, perplexity(pairs), "2-grams", 1000)
    _level(ax, perplexity(best), BEST_NGRAMS, 1000, below=True)
    ax.set(xlabel="step", ylabel="perplexity", yscale="log", ylim=(3.5, 70))
    ax.set_yticks([5, 10, 20, 50], ["5", "10", "20", "50"])
    ax.minorticks_off()
    ax.legend()
    plt.show()


def perplexity(loss) -> float:
    """Return the perplexity of a loss in nats, its exponential.

    ``loss`` : float, the mean over characters.
    """
    return float(np.exp(loss))


def _level(ax, height, name, x, below=False):
    """Draw a dashed line across, with a name at its right end.

    Parameters
    ----------
    ax : matplotlib Axes
    height : float
        Of the line, in units of the axis.
    name : str
        What is written there.
    x : float
        Where the name ends.
    below : bool
        Whether the name stands below the line.
    """
    ax.axhline(height, ls="--", color="0.4", lw=1)
    ax.text(x, height, name, ha="right", va="top" if below else "bottom")


# --- far characters -----------------------------------------------------------------------


def reach(trained, counted):
    """Draw losses by how many characters a model is shown, for each kind of character.

    Parameters
    ----------
    trained : list of dict
        Of the study *line-ends*, one for each small GPT: ``reach``, kind of character, such
        as "line ends" → how many characters are shown (str) → loss in nats. The mean over
        the GPTs is drawn.
    counted : dict
        Of n-grams: ``reach`` as above, of four kinds of character, a panel each.

    Returns
    -------
    None
        The figure is shown.
    """
    kinds = [*counted["reach"]]
    _, axes = plt.subplots(1, 4, figsize=(7.2, 2.9), sharey=True)
    for ax, kind in zip(axes, kinds, strict=True):
        losses = pd.DataFrame([run["reach"][kind] for run in trained]).mean()
        shown = [int(characters) for characters in losses.index]
        ax.plot(shown, losses, "o-", color="C0", label="small GPT")
        ax.plot(shown, counted["reach"][kind].values(), "s--", color="C1", label="n-grams")
        ax.set(xscale="log", title=kind, ylim=(0, 3.4), xlabel="characters shown")
        ax.set_xticks([1, 5, 20, 64], ["1", "5", "20", "64"])
        ax.minorticks_off()
    axes[0].set_ylabel("loss (nats)")
    axes[0].legend(loc="lower left")
    plt.show()


def new_line_table(each, ends, ended):
    """Return mean probabilities of a new line after marks, with those of n-grams.

    Parameters
    ----------
    each : dict of str to float array of shape (marks,)
        How the line was changed → the probability of a new line after each punctuation
        mark.
    ends : bool array of shape (marks,)
        Whether the line does end at a mark.
    ended : dict
        Results of the study *line-ends*. Of its one run in "counting", n-grams, ``lines``
        has for "as written" the mean probabilities, a dict with ``ends`` and ``inside``.

    Returns
    -------
    DataFrame
        One row for each change of the line and one for the n-grams, with the mean
        probabilities ``ends``, after marks that end a line, and ``inside``, after the
        others.
    """
    rows = {
        name: {"ends": probs[ends].mean(), "inside": probs[~ends].mean()}
        for name, probs in each.items()
    }
    (counting,) = ended["counting"]
    return pd.DataFrame(rows | {"n-grams": counting["lines"]["as written"]}).T


def new_lines(probs):
    """Draw how probable a model finds a new line after marks, by what the line holds.

    Parameters
    ----------
    probs : DataFrame
        One row for each change, with the mean probabilities ``ends``, after marks that
        end a line, and ``inside``, after the others.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(6.4, 0.44 * len(probs) + 1.3))
    rows = range(len(probs))
    ax.hlines(rows, probs.inside, probs.ends, color="0.75", lw=1, zorder=0)
    ax.plot(probs.inside, rows, "o", mfc="none", color="C1", label="the line goes on")
    ax.plot(probs.ends, rows, "o", color="C0", label="the line ends")
    ax.set_yticks(rows, [textwrap.fill(name, 14) for name in probs.index])
    ax.set(xlim=(-0.03, 1.03), ylim=(len(probs) - 0.5, -0.5))
    ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    ax.set_xlabel("probability of a new line")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    plt.show()


# --- parts and sizes ----------------------------------------------------------------------


def parts(table, best):
    """Draw the losses of models with one part more in each row.

    Parameters
    ----------
    table : DataFrame
        Test losses in nats: the first row is of a table of pairs, the second of one head of
        attention, and each other one of the model before it with one part more; a column
        for each seed (`lmcourse.gpt.stored_runs.parts_table`).
    best : float
        The loss of the best n-grams on the same text, in nats.

    Returns
    -------
    None
        The figure is shown.
    """
    pairs, one_head, *added = table.index
    names = [pairs, one_head, *(f"+ {name}" for name in added)]
    names[4] = "+ paths and norms"
    _, ax = plt.subplots(figsize=(6.4, 3))
    ax.plot(table, range(len(table)), "o", color="C0", alpha=0.7)
    ax.axvline(best, ls="--", color="0.4", lw=1)
    ax.text(best, 0, f" {BEST_NGRAMS}", va="center")
    ax.set_yticks(range(len(table)), names)
    ax.invert_yaxis()
    ax.set_xlabel("loss (nats per character)")
    plt.show()


def sweep(runs, best):
    """Draw perplexity during training for each width, number of heads and of layers.

    Parameters
    ----------
    runs : list of dict
        Of the study *sizes*: ``axis``, what is varied ("d_model", "heads" or "layers");
        ``value``, one of four, whose curves are the darker, the larger it is; ``history``,
        pairs of step and loss in nats. A curve is the mean over the seeds.
    best : float
        The loss of the best n-grams, in nats.

    Returns
    -------
    None
        The figure is shown.
    """
    _, axes = plt.subplots(3, figsize=(6.4, 8), sharex=True)
    for ax, axis in zip(axes, ("d_model", "heads", "layers"), strict=True):
        chosen = [run for run in runs if run["axis"] == axis]
        values = sorted({run["value"] for run in chosen})
        for value, shade in zip(values, SHADES, strict=True):
            histories = [run["history"] for run in chosen if run["value"] == value]
            steps, losses = np.mean(histories, axis=0).T
            ax.plot(steps[1:], np.exp(losses[1:]), color=shade, label=value)
        ax.axhline(perplexity(best), ls="--", color="C1", lw=1)
        ax.set(ylabel="perplexity", ylim=(4.5, 12))
        ax.legend(title=AXES[axis], ncols=2)
    axes[-1].set_xlabel("step")
    plt.show()


def sweep_samples(runs):
    """Let a reader choose between what the models of the sweep write.

    Parameters
    ----------
    runs : list of dict
        Of the study *sizes*: ``axis``, what is varied ("d_model", "heads" or "layers");
        ``value``; ``seed``; ``parameters``, their number; ``history``, pairs of step and
        loss in nats; ``sample``, a text.

    Returns
    -------
    View
    """
    table = sizes_table(runs)
    first_seed = table.seed.min()
    written = {}
    for run, row in zip(runs, table.itertuples(), strict=True):
        if row.seed == first_seed:
            note = f"{row.parameters:,} parameters, validation loss {row.loss:.2f}."
            written[f"{AXES[row.axis]} {row.value}"] = (note, run["sample"])
    return views.samples("Which model?", written, first="width 64")


# --- little text --------------------------------------------------------------------------


def overfitting(runs, best):
    """Draw losses while a model learns a short text by heart, with dropout and without.

    Parameters
    ----------
    runs : DataFrame
        A row for each run (`lmcourse.gpt.stored_runs.little_runs`): ``dropout``, of which
        0.0 and 0.3 are drawn, and ``history``, rows of step, loss on the model's own text
        (drawn without dropout only), and loss on held-out text, in nats.
    best : float
        The loss of the best n-grams of the same text, in nats.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(6.4, 4.2))
    for dropout, color in {0.0: "C0", 0.3: "C1"}.items():
        name = f"dropout {dropout}" if dropout else "no dropout"
        for number, history in enumerate(runs[runs.dropout == dropout].history):
            steps, own, held_out = np.array(history)[1:].T
            label = name if number == 0 else None
            ax.plot(steps, held_out, color=color, lw=1.5, label=label)
            if not dropout:
                label = "no dropout, its own text" if number == 0 else None
                ax.plot(steps, own, ls=(0, (1, 2.5)), color=color, lw=1.5, label=label)
    _level(ax, best, BEST_NGRAMS, 300, below=True)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    ax.set(xlabel="step", ylabel="loss (nats per character)")
    plt.show()


# --- two models ---------------------------------------------------------------------------


def contest(rows):
    """Return a table of models' losses on the test sonnets, and how far from the n-grams'.

    Parameters
    ----------
    rows : list of dict
        Of the study *ladder*: ``models``, a list with the name of one model, or those of
        two that are averaged; ``sonnets``, a loss for each test sonnet, in nats a
        character.

    Returns
    -------
    DataFrame
        A row for each model; as text the mean loss over the sonnets, and how much more it
        is than the n-grams', with its 95 % interval over the sonnets.
    """
    alone = losses_alone(rows)
    table = {}
    for name, losses in alone.items():
        more = losses - alone[BEST_NGRAMS]
        interval = bootstrap_interval(more)
        difference = format_estimate(more.mean(), interval, "+.3f") if more.any() else ""
        table[name] = [f"{losses.mean():.3f}", difference]
    columns = ["loss (nats per character)", "more than the n-grams (95 % interval)"]
    return pd.DataFrame(table, columns).T


def averaged(rows):
    """Draw what averaging two models gains, with 95 % intervals over the sonnets.

    That is by how much the average of their probabilities has a lower loss than the better
    of the two; a row for each pair.

    Parameters
    ----------
    rows : list of dict
        Of the study *ladder*: ``models``, a list with the name of one model, or those of
        two that are averaged; ``sonnets``, a loss for each test sonnet, in nats a
        character.

    Returns
    -------
    None
        The figure is shown.
    """
    gained = gains(rows)
    means = [each.mean() for each in gained.values()]
    intervals = [bootstrap_interval(each) for each in gained.values()]
    _, ax = plt.subplots(figsize=(6.4, 2.4))
    views.error_bars(ax, range(len(gained)), means, intervals, horizontal=True, color="C0")
    ax.set_yticks(range(len(gained)), gained)
    ax.set(ylim=(len(gained) - 0.5, -0.5), xlim=(0, None))
    ax.set_xlabel("gain (nats per character)")
    plt.show()


# --- recipes ------------------------------------------------------------------------------


def recipes(ways):
    """Draw the seconds that recipes need to the same loss, a row for each recipe.

    A dot is a run that reached the loss, a cross one that did not.

    Parameters
    ----------
    ways : list of dict
        Of the study *recipes*: ``way``, the recipe's name; ``seconds`` of one core, and
        whether the loss was ``reached`` in them, a bool.

    Returns
    -------
    None
        The figure is shown.
    """
    table = pd.DataFrame(ways)
    names = [*table.way.unique()]
    _, ax = plt.subplots(figsize=(6.4, 3.4))
    for reached, marker, color in ((True, "o", "C0"), (False, "x", "C1")):
        rows = table[table.reached == reached]
        ax.plot(rows.seconds, rows.way.map(names.index), marker, color=color)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set(xscale="log", xlabel="seconds of one core")
    ax.set_xticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
    ax.minorticks_off()
    plt.show()
