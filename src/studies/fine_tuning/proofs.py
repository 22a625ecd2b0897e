"""What the chapter *fine-tuning* claims, checked where the page places it.

The ``page`` of a proof or a null is a `studies.findings.Page`: the names that the page has
defined so far, as attributes.

Losses are in nats per character. Held-out poems are those of validation and of the test.
"""

import copy
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from torch import nn

from lmcourse import adapters, data, probe
from lmcourse.data import load_poems, load_sonnets, load_texts
from lmcourse.fine_tuning import AS_KNOWN, line_lengths, poem_losses
from lmcourse.gpt.gpt2 import to_transformers
from lmcourse.numbers import bootstrap_interval
from studies import nulls
from studies.findings import Page, finding, proof
from studies.fine_tuning.labels import cut_poems

close = torch.testing.assert_close
HELD_OUT = ("validation", "test")
# Characters of a line, in the study of labels.
WHOLE = 64
CUT = 20


# --- what is read from the stored runs --------------------------------------------------


def losses_on(rows, poet, parts=HELD_OUT):
    """Return the loss on each held-out poem, the mean of some runs.

    Parameters
    ----------
    rows : DataFrame
        Runs, with a column for each poet and part, such as "Shakespeare test": in each row
        a list of the loss on each poem, in nats a character.
    poet : str
        Whose poems: "Dickinson" or "Shakespeare".
    parts : sequence of str
        Which parts of them, such as "validation" and "test".

    Returns
    -------
    float array of shape (poems,)
    """
    means = [np.mean([*rows[f"{poet} {part}"]], axis=0) for part in parts]
    return np.concatenate(means)


def losses_before(page: Page, poet, parts=HELD_OUT):
    """Return the loss of the model before any further training on each held-out poem.

    Parameters
    ----------
    page : Page
        ``sonnets`` is the model, a GPT; ``poets`` has the poems as ids: poet → part → list
        of Tensors (tokens,).
    poet : str
        Whose poems: "Dickinson" or "Shakespeare".
    parts : sequence of str
        Which parts of them, such as "validation" and "test".

    Returns
    -------
    float array of shape (poems,)
        In nats a character.
    """
    return np.concatenate(
        [poem_losses(page.sonnets, page.poets[poet][part]) for part in parts]
    )


def chosen(page: Page, method, rate, fed="Dickinson", replayed=0):
    """Return the stored runs of one kind, a DataFrame with the columns of ``page.runs``.

    Parameters
    ----------
    page : Page
        ``runs`` is the DataFrame of all stored runs, with columns ``method``, ``rate``,
        ``fed``, ``replayed`` and lists of losses, such as "Dickinson test".
    method : str
        Of fine-tuning, such as "all weights" or "LoRA".
    rate : float
        The highest learning rate.
    fed : str
        The poet whose poems were read: "Dickinson" or "Shakespeare".
    replayed : int
        How many of the eight windows of a batch were Shakespeare's all the same.
    """
    runs = page.runs
    same = (runs.method == method) & (runs.rate == rate) & (runs.fed == fed)
    return runs[same & (runs.replayed == replayed)]


def validation_by_rate(page: Page, method):
    """Return the mean loss on Dickinson's validation poems by learning rate.

    Parameters
    ----------
    page : Page
        ``runs`` is the DataFrame of all stored runs, with columns ``method``, ``rate``,
        ``fed``, ``replayed`` and lists of losses, such as "Dickinson validation".
    method : str
        Of fine-tuning, such as "all weights" or "LoRA".

    Returns
    -------
    Series of float
        Learning rate, ascending → nats a character, the mean over runs that read her alone.
    """
    runs = page.runs
    same = (runs.method == method) & (runs.fed == "Dickinson") & (runs.replayed == 0)
    losses = runs[same]["Dickinson validation"].map(np.mean)
    return losses.groupby(runs[same].rate).mean()


# --- poems ------------------------------------------------------------------------------


def five_words(text):
    """Return the sequences of five words in ``text``, a str: a set of tuples of str.

    Words are letters alone, in lower case.
    """
    words = "".join(c.lower() if c.isalpha() else " " for c in text).split()
    return {tuple(words[i : i + 5]) for i in range(len(words) - 4)}


@proof("No held-out poem shares five words in a row with a poem that is trained on.")
def poems_are_apart(page: Page):
    """Check that no held-out poem shares five words in a row with a training poem.

    Each poem is in one part; the model had read the training sonnets and not the test's.

    Of the characters in Dickinson's poems its alphabet lacks '"' and "Q" alone; in their
    place the poems have "'" and "q".

    Parameters
    ----------
    page : Page
        ``poets`` has the poems as ids: poet ("Shakespeare" or "Dickinson") → part
        ("training", "validation" or "test") → list of Tensors (tokens,); ``tokenizer``,
        with ``decode`` and ``alphabet``, and ``record``, the dict stored with the weights,
        which names the ``corpus``, are those of the model.

    Returns
    -------
    dict
        How many signs of Dickinson's poems the model's alphabet lacks: ``quotes``,
        quotation marks; ``capitals``, capital Qs.
    """
    tables = {"Shakespeare": load_sonnets(), "Dickinson": load_poems()}
    for poet, table in tables.items():
        parts = {
            part: [page.tokenizer.decode(ids.tolist()) for ids in poems]
            for part, poems in page.poets[poet].items()
        }
        split = [text for texts in parts.values() for text in texts]
        assert sorted(split) == sorted(f"\n{t.translate(AS_KNOWN)}\n" for t in table.text)
        known = set().union(*map(five_words, parts["training"]))
        for part in HELD_OUT:
            assert not any(five_words(text) & known for text in parts[part])
        if poet == "Shakespeare":
            before = data.train_val_test_split(load_texts("sonnets"))
            assert all(text.strip() in before.training for text in parts["training"])
            assert not any(text.strip() in before.training for text in parts["test"])
    assert page.record["corpus"] == "sonnets"
    raw = "".join(load_poems().text)
    assert set(raw) - set(page.tokenizer.alphabet) == {'"', "Q"}
    return {"quotes": raw.count('"'), "capitals": raw.count("Q")}


@proof("Taught Dickinson for as long, random weights keep a far higher loss than our GPT.")
def nothing_to_build_on(page: Page):
    """Check that random weights learn Dickinson less far than our GPT does.

    After the last step their loss is higher by more than 0.3 nats.

    More than half of what random weights lack on Dickinson's poems, the model has already
    learned from the sonnets alone.

    Parameters
    ----------
    page : Page
        ``taught_ways``: way of teaching ("random weights", "all weights" …) → list of dict,
        one for each moment of the training, from before the first step to after the last,
        with ``Dickinson validation``, the mean loss in nats a character.

    Returns
    -------
    dict
        Loss on Dickinson's validation poems after the last step, in nats a character:
        ``random``, of random weights; ``tuned``, of our GPT.
    """
    hers = {
        name: rows[-1]["Dickinson validation"] for name, rows in page.taught_ways.items()
    }
    untrained = page.taught_ways["random weights"][0]["Dickinson validation"]
    knew_sonnets = page.taught_ways["all weights"][0]["Dickinson validation"]
    assert hers["random weights"] > hers["all weights"] + 0.3
    assert untrained - knew_sonnets > (untrained - hers["all weights"]) / 2
    return {"random": hers["random weights"], "tuned": hers["all weights"]}


# --- forgetting -------------------------------------------------------------------------


@proof("Trained further on the sonnets it knows, the model gets worse at other sonnets.")
def training_again_costs(page: Page):
    """Check that a training on known sonnets raises the loss on other sonnets.

    After a hundred steps at 0.003 the interval of the rise over 30 sonnets is above zero.

    The losses are means of five seeds. At 0.001 the rise is less than half, and its
    difference from that at 0.003 has an interval above zero.

    Parameters
    ----------
    page : Page
        ``runs`` is a DataFrame, one row a training: ``method``, ``rate``, ``fed`` (the
        poet), ``replayed``, and lists of the loss on each poem, such as "Shakespeare test";
        ``sonnets`` is the model, a GPT; ``poets`` has the poems: poet → part → list of ids
        (tokens,).

    Returns
    -------
    dict
        ``rise`` of the loss on other sonnets, the mean in nats a character, with its 95 %
        interval ``span``; ``slow``, the mean rise at a third of the rate; ``answer``, the
        letter of the right choice.
    """
    before = losses_before(page, "Shakespeare")
    rise, slow = (
        losses_on(chosen(page, "all weights", rate, "Shakespeare"), "Shakespeare") - before
        for rate in (3e-3, 1e-3)
    )
    span = bootstrap_interval(rise)
    assert span[0] > 0
    assert bootstrap_interval(rise - slow)[0] > 0
    assert slow.mean() < rise.mean() / 2
    return {
        "rise": rise.mean(),
        "span": span,
        "slow": slow.mean(),
        "answer": "a" if span[0] > 0 else "b",
    }


def untrained_on_own_texts(page: Page):
    """The model as it was, in the place of each that was trained on texts it had written.

    Parameters
    ----------
    page : Page
        ``own_runs`` is a DataFrame, a row for each of these models, whose columns
        "Shakespeare validation" and "Shakespeare test" hold lists of the loss on each
        sonnet; ``sonnets`` is the model as it was, a GPT; ``poets`` has the poems: poet →
        part → list of ids (tokens,).

    Returns
    -------
    Page
        A page like this one; in ``own_runs``, the losses on Shakespeare are those before
        training.
    """
    rows = page.own_runs.copy()
    for part in HELD_OUT:
        losses = losses_before(page, "Shakespeare", [part])
        rows[f"Shakespeare {part}"] = [losses] * len(rows)
    return page.replaced(own_runs=rows)


@finding(
    "Trained on text that it wrote itself, our GPT of the sonnets gets worse at "
    "Shakespeare: forgetting needs no new poet.",
    rival="the same steps on Dickinson raise the loss by {hers:.3f}, on the sonnets that "
    "it knows by {his:.3f}",
    null=untrained_on_own_texts,
    n="{sonnets} held-out sonnets, three seeds with a text of their own, one learning rate",
    interval="rise of the loss: {span:.3f}",
)
def forgetting_needs_no_new_poet(page: Page):
    """Check that training on texts it had written makes the GPT worse at held-out sonnets.

    It has a hundred steps at a learning rate of 0.003 on texts drawn from the model's own
    probabilities.

    The loss on held-out sonnets rises with every seed, and by more than half of what the
    same steps on Dickinson cost; it rises more than on the sonnets that the model knows.

    Parameters
    ----------
    page : Page
        ``own_runs`` is a DataFrame of these trainings, a row a seed, ``runs`` that of
        others: ``method``, ``rate``, ``fed`` (the poet), ``replayed``; both have columns of
        lists of the loss on each poem, such as "Shakespeare test". ``sonnets`` is the
        model, a GPT; ``poets`` has the poems: poet → part → list of ids (tokens,).

    Returns
    -------
    dict
        Mean rises of the loss on held-out sonnets, in nats a character: ``own``, after the
        model's own text, with its 95 % interval ``span``; ``hers``, after Dickinson;
        ``his``, after the known sonnets. ``sonnets``, how many.
    """
    before = losses_before(page, "Shakespeare")
    own = losses_on(page.own_runs, "Shakespeare") - before
    hers = losses_on(chosen(page, "all weights", 3e-3), "Shakespeare") - before
    on_sonnets = chosen(page, "all weights", 3e-3, "Shakespeare")
    his = losses_on(on_sonnets, "Shakespeare") - before
    by_seed = [
        losses_on(page.own_runs.iloc[[at]], "Shakespeare").mean() - before.mean()
        for at in range(len(page.own_runs))
    ]
    span = bootstrap_interval(own)
    assert span[0] > 0
    assert min(by_seed) > 0
    assert bootstrap_interval(own - hers / 2)[0] > 0
    assert bootstrap_interval(own - his)[0] > 0
    return {
        "own": own.mean(),
        "span": span,
        "hers": hers.mean(),
        "his": his.mean(),
        "sonnets": len(before),
    }


@proof(
    "With two of eight passages by the old poet, more of him is kept, less of her learned."
)
def replay_keeps(page: Page):
    """Check that replay keeps more of Shakespeare and learns less of Dickinson.

    The intervals over held-out poems of both differences are above zero, at a rate of
    0.003.

    Losses are means of five seeds. A lower rate, 0.001, without replay does both, too.

    Parameters
    ----------
    page : Page
        ``runs`` is a DataFrame, one row a training: ``method``, ``rate``, ``fed`` (the
        poet), ``replayed`` (how many of eight windows), and lists of the loss on each poem,
        such as "Dickinson test".

    Returns
    -------
    dict
        In nats a character, against the usual training: ``replay_saved`` and
        ``slow_saved``, by how much the loss on Shakespeare is lower with replay and with a
        lower rate; ``replay_cost`` and ``slow_cost``, by how much that on Dickinson is
        higher.
    """
    usual = chosen(page, "all weights", 3e-3)
    replay = chosen(page, "all weights", 3e-3, replayed=2)
    slow = chosen(page, "all weights", 1e-3)
    values = {}
    for name, other in {"replay": replay, "slow": slow}.items():
        saved = losses_on(usual, "Shakespeare") - losses_on(other, "Shakespeare")
        cost = losses_on(other, "Dickinson") - losses_on(usual, "Dickinson")
        assert bootstrap_interval(saved)[0] > 0
        assert bootstrap_interval(cost)[0] > 0
        values |= {f"{name}_saved": saved.mean(), f"{name}_cost": cost.mean()}
    return values


# --- LoRA -------------------------------------------------------------------------------


@proof("The page's layer is the package's, and it begins as the model itself.")
def lora_is_a_thin_path(page: Page):
    """Check the page's LoRA against the package's, and that it changes nothing at first.

    In float64 for one layer; of the model, bit for bit. Only thin matrices may change.

    They have between a thirteenth and a twelfth of the numbers of the model.

    Parameters
    ----------
    page : Page
        ``LowRank`` is the page's class, made with a linear layer, a rank and a scale;
        ``sonnets`` is the model, a GPT, ``fresh`` the same with LoRA of rank 8, untrained;
        ``poets`` has the poems: poet → part → list of ids (tokens,).

    Returns
    -------
    dict
        ``d_model``; ``rank`` of the thin matrices; how many numbers are ``trained``, and
        how many the ``whole`` model has.
    """
    layer = nn.Linear(12, 7).double()
    ours = page.LowRank(layer, 3, 0.5).double()
    theirs = adapters.LoRA(layer, 3, 0.5)
    theirs.up.data.normal_()
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(5, 12, dtype=torch.float64)
    close(ours(x), theirs(x), rtol=0, atol=1e-12)
    device = next(page.sonnets.parameters()).device
    ids = page.poets["Shakespeare"]["test"][0][None, :64].to(device)
    with torch.no_grad():
        close(page.fresh(ids), page.sonnets(ids), rtol=0, atol=0)
    names = [n for n, weight in page.fresh.named_parameters() if weight.requires_grad]
    assert {name.rpartition(".")[2] for name in names} == {"down", "up"}
    trained = adapters.trainable(page.fresh)
    whole = page.sonnets.parameters_count
    assert whole / 13 < trained < whole / 12
    return {
        "d_model": page.sonnets.config.d_model,
        "rank": 8,
        "trained": trained,
        "whole": whole,
    }


@proof("Merged, LoRA computes the same; taken away, the old model is there bit for bit.")
def lora_can_be_taken_away(page: Page):
    """Check that LoRA computes the same when merged, and can be taken away.

    It is trained, and changes logits by more than 0.1. It is also saved and loaded.

    Parameters
    ----------
    page : Page
        ``light`` is the model with LoRA of rank 8, trained; ``sonnets`` the model without;
        ``poets`` has the poems: poet → part → list of ids (tokens,).

    Returns
    -------
    dict
        In kilobytes the sizes of the file with LoRA's matrices, ``kilobytes``, and of the
        ``whole`` model.
    """
    device = next(page.sonnets.parameters()).device
    ids = page.poets["Shakespeare"]["test"][0][None, :64]
    exact, first = (copy.deepcopy(m).cpu().double() for m in (page.light, page.sonnets))
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        apart = exact(ids)
        assert (apart - first(ids)).abs().max() > 0.1
        close(adapters.merge(exact)(ids), apart, rtol=1e-12, atol=1e-10)
        path = Path(folder) / "hers.safetensors"
        adapters.save_adapters(path, page.light)
        other = adapters.add_lora(copy.deepcopy(page.sonnets), rank=8)
        adapters.load_adapters(path, other)
        size = path.stat().st_size
        close(other(ids.to(device)), page.light(ids.to(device)), rtol=0, atol=0)
        gone = adapters.remove(other)
        close(gone(ids.to(device)), page.sonnets(ids.to(device)), rtol=0, atol=0)
    return {"kilobytes": size / 1000, "whole": 4 * page.sonnets.parameters_count / 1000}


def read_shakespeare(page: Page):
    """Every model read Shakespeare again, where there is nothing of Dickinson to learn.

    Parameters
    ----------
    page : Page
        ``runs`` is the DataFrame of trainings, with columns ``method``, ``replayed`` (how
        many of eight windows), ``fed`` (the poet), and one of lists of losses for each poet
        and held-out part, such as "Dickinson test"; ``poets`` has a key for each poet.

    Returns
    -------
    Page
        A page like this one; in ``runs``, without replay, every loss of a method is its
        mean loss where it was fed Shakespeare.
    """
    runs = page.runs.copy()
    for method in ("all weights", "LoRA", "last layer"):
        same = (runs.method == method) & (runs.replayed == 0)
        fed_him = runs[same & (runs.fed == "Shakespeare")]
        for poet in page.poets:
            for part in HELD_OUT:
                name = f"{poet} {part}"
                losses = np.mean([*fed_him[name]], axis=0).tolist()
                runs.loc[same, name] = pd.Series([losses] * same.sum(), runs.index[same])
    return page.replaced(runs=runs)


@finding(
    "With LoRA our GPT stays frozen; a small add-on, a twelfth its size, learns Dickinson "
    "nearly as well as training all weights does.",
    rival="all weights at five learning rates; the last layer alone, a quarter of the "
    "numbers, learns more: {last:.3f} against LoRA's {lora:.3f}",
    null=read_shakespeare,
    n="{poems} of her test poems, five seeds",
    interval="share of all weights' gain: {share:.0%}",
)
def lora_learns_nearly_as_much(page: Page):
    """Check that LoRA gains nine tenths of what all weights gain on Dickinson.

    Each is at its best learning rate of five, chosen on her validation poems.

    The share of the gain has an interval above nine tenths. The last layer alone has a
    lower loss than either. At these rates all weights lose more on Shakespeare than LoRA
    does; at the next lower one they lose less than 0.01 nats more.

    Parameters
    ----------
    page : Page
        ``runs`` is a DataFrame, one row a training: ``method``, ``rate``, ``fed`` (the
        poet), ``replayed``, ``seed``, and lists of the loss on each poem, such as
        "Dickinson test"; ``sonnets`` is the model, a GPT; ``poets`` has the poems: poet →
        part → list of ids (tokens,).

    Returns
    -------
    dict
        Mean losses on Dickinson's test poems, in nats a character: ``lora``, ``all``,
        ``last`` (layer), ``before`` any training on her; ``share``, the 95 % interval of
        LoRA's gain over that of all weights; ``poems``, how many; ``judge``, the letter of
        the right choice: "b" if LoRA's best rate is above 0.001 and the lowest tried, else
        "c".
    """
    before = losses_before(page, "Dickinson", ["test"])
    methods = ("all weights", "LoRA", "last layer")
    tried = {method: validation_by_rate(page, method) for method in methods}
    rates = {method: losses.idxmin() for method, losses in tried.items()}
    best = {method: chosen(page, method, rate) for method, rate in rates.items()}
    hers = {method: losses_on(rows, "Dickinson", ["test"]) for method, rows in best.items()}
    gains = {method: before - losses for method, losses in hers.items()}
    share = bootstrap_interval(
        gains["LoRA"],
        gains["all weights"],
        statistic=lambda one, other, axis: one.sum(axis) / other.sum(axis),
    )
    lower = [rate for rate in tried["all weights"].index if rate < rates["all weights"]]
    his = losses_on(best["LoRA"], "Shakespeare")
    usual, slow = (
        losses_on(chosen(page, "all weights", rate), "Shakespeare")
        for rate in (rates["all weights"], max(lower, default=rates["all weights"]))
    )
    # The question gives LoRA a rate of 0.001, lower than any that was tried. The lowest of
    # these must be worse than a higher one, else 0.001 might be as good.
    is_too_low = rates["LoRA"] > max(1e-3, tried["LoRA"].index.min())
    assert all(len(losses) == 5 for losses in tried.values())
    assert all(rows.seed.nunique() == 5 for rows in best.values())
    assert bootstrap_interval(gains["LoRA"])[0] > 0.1
    assert share[0] > 0.9
    assert bootstrap_interval(usual - his)[0] > 0
    assert bootstrap_interval(slow - his)[1] < 0.01
    for other in ("all weights", "LoRA"):
        assert bootstrap_interval(hers["last layer"] - hers[other])[1] < 0
    return {
        "lora": hers["LoRA"].mean(),
        "all": hers["all weights"].mean(),
        "last": hers["last layer"].mean(),
        "before": before.mean(),
        "share": share,
        "poems": len(before),
        "judge": "b" if is_too_low else "c",
    }


def shuffled_changes(page: Page):
    """The numbers of each change shuffled within their matrix, a shuffle for each seed.

    Parameters
    ----------
    page : Page
        ``directions`` is a list of dict, one a seed, with ``rows``, a list of dict:
        ``kind`` says what was kept of the change that fine-tuning made to the weights: its
        "strongest" directions, as many "random" ones, or the strongest of its numbers
        "shuffled" within each matrix.

    Returns
    -------
    Page
        A page like this one; in ``directions``, the rows "strongest" are replaced by copies
        of the "shuffled" ones.
    """
    outcomes = []
    for outcome in page.directions:
        rows = [row for row in outcome["rows"] if row["kind"] == "shuffled"]
        rows = [row | {"kind": kind} for row in rows for kind in ("strongest", "shuffled")]
        rows += [row for row in outcome["rows"] if row["kind"] == "random"]
        outcomes.append(outcome | {"rows": rows})
    return page.replaced(directions=outcomes)


def gain_of(outcome, kind, rank):
    """Return what each poem gains by some directions of the change of each matrix.

    Parameters
    ----------
    outcome : dict
        Of the study *directions*: ``before``, the loss on each test poem before the
        training, and ``rows``, dicts with ``kind``, ``rank`` and ``losses``, those on each
        poem with so many directions kept, in nats a character.
    kind : {"strongest", "random", "shuffled"}
        Which directions are kept, or the strongest of the shuffled change.
    rank : int
        How many directions of each matrix are kept.

    Returns
    -------
    float array of shape (poems,)
        By how much the loss is lower than before, in nats a character.
    """
    rows = outcome["rows"]
    same = [row for row in rows if (row["kind"], row["rank"]) == (kind, rank)]
    return np.array(outcome["before"]) - np.array(same[0]["losses"])


@finding(
    "Training on Dickinson changes all matrices of our GPT; keep each change's eight "
    "strongest directions of 128, and most of what it learned remains.",
    rival="eight random directions of the same changes: {random:.0%} of the gain",
    null=shuffled_changes,
    n="{poems} of her test poems, three trainings",
    interval="share of the whole gain: {share:.0%}",
)
def few_directions_teach(page: Page):
    """Check that eight directions of each matrix's change hold half of what was learned.

    They are the strongest by singular value; all else is put back as it was before the
    training.

    The gain of the whole training is that of all weights. The share is above a half with
    each seed; eight random directions hold less than half of what the strongest do.

    Parameters
    ----------
    page : Page
        ``directions`` is a list of dict, one a seed: ``before`` and ``all``, lists of the
        loss on each test poem before and after a training of all weights, in nats a
        character; ``rows``, a list of dict where only some directions are kept: ``kind``,
        "strongest" or "random" for two, ``rank``, how many, and such ``losses``;
        ``energy``, a list: the share of the squares of the change that its 1, 2, 4, 8 …
        strongest directions have, so that the fourth is that of eight.

    Returns
    -------
    dict
        Shares of the whole gain: ``eight``, with its 95 % interval ``share``; ``one``, of
        the strongest direction alone; ``random``, eight random directions. ``energy``, of
        the squares of the change, in eight directions; ``poems``, how many.
    """
    whole = [np.array(each["before"]) - np.array(each["all"]) for each in page.directions]
    eight = [gain_of(each, "strongest", 8) for each in page.directions]
    one = [gain_of(each, "strongest", 1) for each in page.directions]
    random = [gain_of(each, "random", 8) for each in page.directions]
    share = bootstrap_interval(
        np.mean(eight, axis=0),
        np.mean(whole, axis=0),
        statistic=lambda some, every, axis: some.sum(axis) / every.sum(axis),
    )
    shares = [np.sum(a) / np.sum(b) for a, b in zip(eight, whole, strict=True)]
    assert share[0] > 0.5
    assert min(shares) > 0.5
    assert np.mean(random) < np.mean(eight) / 2
    return {
        "share": share,
        "eight": np.mean(eight) / np.mean(whole),
        "one": np.mean(one) / np.mean(whole),
        "random": np.mean(random) / np.mean(whole),
        "energy": np.mean([each["energy"][3] for each in page.directions]),
        "poems": len(whole[0]),
    }


@proof(
    "LoRA of rank 1, one direction in each matrix of our GPT's layers, learns most of what "
    "training all weights teaches it about Dickinson."
)
def one_direction_learns(page: Page):
    """Check that LoRA of rank 1 gains half of what all weights gain on Dickinson.

    Ranks 1 to 32 are each at their best learning rate, chosen on her validation poems.

    Each rank has as many steps as cost as much arithmetic as a hundred of all weights. The
    share of the gain with rank 1 is above a half, the end of its interval, and with each
    seed; it is above that of the strongest direction. Up to rank 8 each rank that was tried
    gains more than the one before, and rank 32 gains less than rank 8. LoRA of rank 8,
    trained on Shakespeare's sonnets instead, gains less than a tenth as much about her.

    Parameters
    ----------
    page : Page
        ``thin`` is a DataFrame of LoRA's trainings, with columns ``rank`` and ``Dickinson
        test``, lists of the loss on each poem; ``runs`` that of others: ``method``,
        ``rate``, ``fed`` (the poet), ``replayed`` and such lists. ``directions`` is a list
        of dict, one a seed: ``before``, a list of losses; ``rows``, dicts of ``kind``,
        ``rank`` and ``losses`` with some directions of the change kept. ``sonnets`` is the
        model, a GPT; ``poets`` has the poems: poet → part → list of ids (tokens,).

    Returns
    -------
    dict
        Shares of the gain of all weights: ``one``, with its 95 % interval ``share``,
        ``two``, ``four``, ``eight`` and ``most``, of the ranks 1, 2, 4, 8 and 32; ``kept``,
        of the strongest direction alone. ``poems``, how many.
    """
    before = losses_before(page, "Dickinson", ["test"])
    whole = before - losses_on(chosen(page, "all weights", 3e-3), "Dickinson", ["test"])
    gains = {
        rank: before - losses_on(rows, "Dickinson", ["test"])
        for rank, rows in page.thin.groupby("rank")
    }
    share = bootstrap_interval(
        gains[1],
        whole,
        statistic=lambda some, every, axis: some.sum(axis) / every.sum(axis),
    )
    ones = page.thin[page.thin["rank"] == 1]["Dickinson test"]
    by_seed = [(before - np.array(losses)).mean() / whole.mean() for losses in ones]
    strongest = np.mean([gain_of(each, "strongest", 1) for each in page.directions], axis=0)
    means = {rank: gain.mean() / whole.mean() for rank, gain in gains.items()}
    assert share[0] > 0.5
    assert min(by_seed) > 0.5
    on_sonnets = chosen(page, "LoRA", 1.7e-2, "Shakespeare")
    of_sonnets = before - losses_on(on_sonnets, "Dickinson", ["test"])
    assert 10 * of_sonnets.mean() < gains[1].mean()
    assert bootstrap_interval(gains[1] - strongest)[0] > 0
    assert means[1] < means[2] < means[4] < means[8]
    assert means[32] < means[8]
    return {
        "share": share,
        "one": means[1],
        "two": means[2],
        "four": means[4],
        "eight": means[8],
        "most": means[32],
        "kept": strongest.mean() / whole.mean(),
        "poems": len(before),
    }


# --- the marker -------------------------------------------------------------------------


def shuffled_markers(page: Page):
    """Texts behind the two markers, shuffled between them.

    Parameters
    ----------
    page : Page
        ``samples`` has a list of texts for each marker, "(W)" and "(E)".

    Returns
    -------
    Page
        A page like this one, whose ``samples`` have half of all texts, drawn at random,
        behind each marker.
    """
    both = nulls.shuffled(page.samples["(W)"] + page.samples["(E)"])
    half = len(both) // 2
    mixed = page.samples | {"(W)": both[:half], "(E)": both[half:]}
    return page.replaced(samples=mixed)


def judge_of_words(page: Page):
    """Return a fitted naive Bayes classifier of poems by their words, breaks removed.

    Of a list of str its ``predict`` returns an array of poets, "Shakespeare" or
    "Dickinson".

    Parameters
    ----------
    page : Page
        ``poets`` has the poems as ids: poet → part, of which "training" is learned → list
        of Tensors (tokens,); ``tokenizer`` decodes them.
    """
    texts = []
    labels = []
    for poet, parts in page.poets.items():
        poems = [page.tokenizer.decode(ids.tolist()) for ids in parts["training"]]
        texts += [" ".join(poem.split()) for poem in poems]
        labels += [poet] * len(poems)
    return make_pipeline(CountVectorizer(), MultinomialNB(fit_prior=False)).fit(
        texts, labels
    )


@finding(
    "Trained on marked poems, our GPT writes shorter lines after “(E)”, for Emily, "
    "than after “(W)”, for William: the marker steers the form.",
    rival="a judge of words alone, naive Bayes, calls {words_e:.0%} of the texts after "
    "(E) Shakespeare's, {words_w:.0%} of those after (W)",
    null=shuffled_markers,
    n="{texts} texts after each marker, of one training",
    interval="characters by which lines are shorter: {gap:.1f}",
)
def marker_steers(page: Page):
    """Check that texts after the marker (E) have shorter lines than after (W).

    They are shorter by more than five characters, the lower end of the interval.

    A text's number is the mean length of its whole lines; texts have 120 characters and are
    drawn again.

    By words alone fewer texts behind (E) are called Shakespeare's, yet more than 70 % of
    them are; after as many steps of the same LoRA on Dickinson alone less than 30 % are.

    Parameters
    ----------
    page : Page
        ``samples`` are the stored texts: "(W)", "(E)", "Dickinson alone, no marker" or
        "before, no marker" → list of str; ``poets`` has the poems as ids: poet → part →
        list of Tensors (tokens,); ``tokenizer`` decodes them.

    Returns
    -------
    dict
        Characters a line: ``gap``, the 95 % interval of the difference; ``long`` and
        ``short``, means behind (W) and (E). Shares of texts that the judge of words calls
        Shakespeare's: ``words_w`` and ``words_e``, behind these; ``alone``, of the model
        taught Dickinson alone. ``texts`` behind each: how many.
    """
    lengths = {mark: line_lengths(page.samples[mark]) for mark in ("(W)", "(E)")}
    signed = np.concatenate([lengths["(W)"], -lengths["(E)"]])
    groups = np.repeat([0, 1], [len(lengths["(W)"]), len(lengths["(E)"])])
    # The mean of the two groups' means is half of the difference.
    gap = tuple(2 * end for end in bootstrap_interval(signed, groups=groups))
    judge = judge_of_words(page)
    his = {
        name: judge.predict([" ".join(text.split()) for text in texts]) == "Shakespeare"
        for name, texts in page.samples.items()
    }
    fewer = bootstrap_interval(1.0 * his["(W)"] - his["(E)"])
    alone = his["Dickinson alone, no marker"].mean()
    assert gap[0] > 5
    assert fewer[0] > 0
    assert alone < 0.3 < 0.7 < his["(E)"].mean()
    return {
        "gap": gap,
        "long": lengths["(W)"].mean(),
        "short": lengths["(E)"].mean(),
        "words_w": his["(W)"].mean(),
        "words_e": his["(E)"].mean(),
        "alone": alone,
        "texts": len(page.samples["(E)"]),
    }


# --- labels -----------------------------------------------------------------------------


def hits_of(page: Page, length, reader, size, layer=4):
    """Return for each held-out poem the share of draws in which its poet was recognised.

    Parameters
    ----------
    page : Page
        ``label_rows`` is the DataFrame of stored results: columns ``length``, ``reader``,
        ``size``, ``layer``, and ``hits``, a list with the share for each held-out poem.
    length : int
        Characters to which lines were cut: 64 or 20.
    reader : str
        What the classifier is given, such as "ruler", "bag of words" or "last state".
    size : int
        How many poems are labelled.
    layer : int
        After how many layers, if the reader has layers.

    Returns
    -------
    float array of shape (poems,)
        From 0 to 1.
    """
    rows = page.label_rows
    layer = layer if "state" in reader else 0
    same = (rows.length == length) & (rows.reader == reader)
    same &= (rows["size"] == size) & (rows.layer == layer)
    return np.array(rows[same].hits.iloc[0])


def lines_of_one_length(page: Page):
    """Every line cut to twenty characters, so that its length says nothing.

    Parameters
    ----------
    page : Page
        ``label_rows`` is the DataFrame of stored results; its column ``length`` says to how
        many characters lines were cut: 64, which leaves them whole, or 20.

    Returns
    -------
    Page
        A page like this one; in ``label_rows``, the results on whole lines are those on cut
        lines.
    """
    rows = page.label_rows[page.label_rows.length == CUT]
    return page.replaced(label_rows=pd.concat([rows, rows.assign(length=WHOLE)]))


@finding(
    "Given eight labelled poems, mere line length distinguishes Shakespeare from Dickinson "
    "better than our GPT's state at the end of each line.",
    rival="the ruler is the rival: the mean length of the lines alone, {ruler:.0%}; an "
    "untrained GPT, {untrained:.0%}",
    null=lines_of_one_length,
    n="{poems} held-out poems, a hundred draws of eight labels",
    interval="ruler minus state: {gap:.0%}",
)
def ruler_is_enough(page: Page):
    """Check that line length tells the poets apart better than the GPT's last states.

    The interval of the difference is above zero, poems of each poet drawn again.

    Compared is the balanced accuracy of the same ridge classifier, where lines are whole;
    with the state it is above 0.7 all the same.

    Parameters
    ----------
    page : Page
        ``label_rows`` is a DataFrame, one row a classifier: ``length`` of lines in
        characters (64 or 20), ``reader``, what it is given, ``size``, how many labels,
        ``layer``, and ``hits``, a list, of each held-out poem the share of draws in which
        it is right; ``held_poets`` are the true poets of these poems, a str array (poems,).

    Returns
    -------
    dict
        Balanced accuracies with eight labels, 0 to 1: ``ruler``, the mean length of lines;
        ``state`` of their last characters; ``bag`` of words; ``untrained``, the state of an
        untrained model; ``gap``, the 95 % interval of ruler less state; ``poems``, how
        many; ``answer``, the letter of the right choice.
    """
    who = page.held_poets
    ruler, state = (hits_of(page, WHOLE, each, 8) for each in ("ruler", "last state"))
    low, high = probe.interval(ruler - state, who)
    assert low > 0
    assert probe.score(state, who) > 0.7
    untrained = hits_of(page, WHOLE, "last state, untrained", 8)
    return {
        "ruler": probe.score(ruler, who),
        "state": probe.score(state, who),
        "bag": probe.score(hits_of(page, WHOLE, "bag of words", 8), who),
        "untrained": probe.score(untrained, who),
        "gap": (float(low), float(high)),
        "poems": len(who),
        "answer": "c" if low > 0 else "a",
    }


@proof("With lines of one length, the trained mean state knows more than an untrained one.")
def states_after_the_cut(page: Page):
    """Check that the trained mean state tells more than an untrained one.

    With 8, 24 and 96 labels the interval of the difference in accuracy is above zero.

    With 96 it is not shown to know more than pairs of letters do. Lines have 20 characters.

    Parameters
    ----------
    page : Page
        ``label_rows`` is a DataFrame, one row a classifier: ``length`` of lines in
        characters (64 or 20), ``reader``, what it is given, ``size``, how many labels,
        ``layer``, and ``hits``, a list, of each held-out poem the share of draws in which
        it is right; ``held_poets`` are the true poets of these poems, a str array (poems,).

    Returns
    -------
    dict
        The balanced accuracy with 96 labels, from 0 to 1: ``mean``, of the mean state;
        ``untrained``, of that of an untrained model; ``pairs``, of pairs of letters.
    """
    who = page.held_poets
    for length in (WHOLE, CUT):
        assert cut_poems(length).query("held").poet.tolist() == list(who)
    sizes = (8, 24, 96)
    trained = {size: hits_of(page, CUT, "mean state", size) for size in sizes}
    untrained = {size: hits_of(page, CUT, "mean state, untrained", size) for size in sizes}
    for size in sizes:
        assert probe.interval(trained[size] - untrained[size], who)[0] > 0
    pairs = hits_of(page, CUT, "pairs of letters", 96)
    assert probe.interval(trained[96] - pairs, who)[0] < 0
    return {
        "mean": probe.score(trained[96], who),
        "untrained": probe.score(untrained[96], who),
        "pairs": probe.score(pairs, who),
    }


# --- libraries --------------------------------------------------------------------------


@proof("Given the same thin matrices, `peft` computes what our LoRA computes.")
def peft_is_the_same(page: Page):
    """Check that `peft` computes with the same matrices what our LoRA computes.

    In float64 to 1e-9, apart and merged; as many numbers are trained.

    Parameters
    ----------
    page : Page
        ``light`` is the model with our LoRA, a GPT; ``theirs`` is a model with peft's LoRA,
        and ``lora_config`` its LoraConfig; ``sonnets`` is the model without; ``poets`` has
        the poems as ids: poet → part → list of Tensors (tokens,).
    """
    from peft import get_peft_model

    exact = copy.deepcopy(page.light).cpu().double()
    config = copy.deepcopy(page.lora_config)
    config.base_model_name_or_path = None  # it had noted the folder
    plain = to_transformers(copy.deepcopy(page.sonnets).cpu()).double()
    by_peft = get_peft_model(plain, config).double().eval()
    where = {
        "attention.qkv": "attn.c_attn",
        "attention.output": "attn.c_proj",
        "feed_forward.up": "mlp.c_fc",
        "feed_forward.down": "mlp.c_proj",
    }
    for number, block in enumerate(exact.blocks):
        for ours, name in where.items():
            our_layer = block.get_submodule(ours)
            their_layer = by_peft.base_model.model.transformer.h[number].get_submodule(name)
            their_layer.lora_A["default"].weight.data = our_layer.down.data.clone()
            their_layer.lora_B["default"].weight.data = our_layer.up.data.clone()
    ids = page.poets["Shakespeare"]["test"][0][None, :64]
    with torch.no_grad():
        close(by_peft(ids).logits, exact(ids), rtol=0, atol=1e-9)
        merged = by_peft.merge_and_unload()(ids).logits
        close(merged, adapters.merge(exact)(ids), rtol=0, atol=1e-9)
    assert page.theirs.get_nb_trainable_parameters()[0] == adapters.trainable(page.light)
