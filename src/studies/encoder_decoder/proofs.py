"""What the chapter *encoder-decoder* claims, checked where the page places it.

The ``page`` of a proof or a null is a `studies.findings.Page`: the names that the page has
defined so far, as attributes; ``page.study`` is the page's variable ``study``.
"""

import base64
import copy

import numpy as np
import pandas as pd
import torch
from torch import nn

from lmcourse import dates
from lmcourse.attention import causal_mask
from lmcourse.data import stored
from lmcourse.int8 import from_int8
from lmcourse.transformer import Block
from studies import nulls
from studies.findings import finding, proof
from studies.measures import extremes

SEEDS = range(5)  # of shuffled weights
SURE = (0, 4, 7, 10)  # of what is written: the first 1, both hyphens and the end
DIGITS = (1, 2, 3, 5, 6, 8, 9)  # the digits that have to be found out
BACK = "LSTM, looking back"
EVERY = "LSTM, one vector at every step"
ONCE = "LSTM, one vector"
ONE = "Transformer, one vector"
# Which variations of the training texts carry over to new ones, by the letter of a task's
# choice
SURE_OF = {
    "a": {"letters", "commas", "centuries"},
    "b": set(),
    "c": {"letters", "commas"},
    "d": {"letters", "centuries"},
}
close = torch.testing.assert_close


# --- the first picture ------------------------------------------------------------------


def unpacked(packed) -> dict:
    """Return a model's weights, by name, from the form in which the study stores them.

    Parameters
    ----------
    packed : dict
        Name → a list of numbers, or a dict with ``int8``, base64 of the rows' bytes, and
        ``scale``, a number for each row.

    Returns
    -------
    dict of str to Tensor
    """
    weights = {}
    for name, weight in packed.items():
        if isinstance(weight, dict):
            values = np.frombuffer(base64.b64decode(weight["int8"]), np.int8).copy()
            scale = torch.tensor(weight["scale"])
            weight = from_int8(torch.from_numpy(values).view(len(scale), -1), scale)
        weights[name] = torch.as_tensor(weight)
    return weights


@proof("With shuffled weights the model of the first picture reads no date.")
def nothing_without_learning(page):
    """Check that with shuffled weights the model reads no date.

    The model reads its three styles; with shuffled weights, five seeds, no day at all.

    Of the date of the picture, with the month hidden, the trained model writes the month
    "00".

    Parameters
    ----------
    page : Page
        ``study``: group → outcomes of the study *encoder-decoder*; the first dict of "runs"
        has ``weights``, name → list of numbers, or a dict of bytes and scales
        (`unpacked`), and ``without``, what is written of a date with the month hidden, a
        str.

    Returns
    -------
    dict
        ``without``: that text; ``share``: the lowest share of days read right in three
        styles, 0 to 1; ``shuffles``: how many; ``d_model``: the model's width;
        ``sources``: how many characters "15 May 1886" has.
    """
    first = page.study["runs"][0]
    model = dates.new_model(0)
    model.load_state_dict(unpacked(first["weights"]))
    days = dates.split_days()[0][:500]
    shares = [dates.share_right(model, dates.pairs_of(days, style)) for style in range(3)]
    shuffled = [nulls.shuffled_weights(model, seed) for seed in SEEDS]
    by_shuffled = [dates.share_right(each, dates.pairs_of(days)) for each in shuffled]
    assert min(shares) > 0.95
    assert max(by_shuffled) == 0
    assert first["without"] == "1886-00-15"
    return {
        "without": first["without"],
        "share": min(shares),
        "shuffles": len(shuffled),
        "d_model": dates.SIZES["d_model"],
        "sources": len("15 May 1886"),
    }


# --- one vector -------------------------------------------------------------------------


def kinds_exchanged(page):
    """The kinds of model exchanged at random among the runs of one task.

    Parameters
    ----------
    page : Page
        ``vectors`` is a DataFrame, a row for each training, with the columns ``kind``, the
        model; ``dates``, how many a source has; ``steps`` of training; ``right``, the share
        of sources read right, 0 to 1.

    Returns
    -------
    Page
        Its ``vectors`` have ``right`` shuffled within each task: as many dates and steps.
    """
    rng = np.random.default_rng(1)
    mixed = page.vectors.copy()
    for _, rows in mixed.groupby(["dates", "steps"]):
        mixed.loc[rows.index, "right"] = rng.permutation(rows.right)
    return page.replaced(vectors=mixed)


@finding(
    "Equally trained, an LSTM that may attend to its source rewrites two dates; "
    "one given a single summary vector instead hardly ever does.",
    rival="the vector at every step, which is enough for one date; two more rates",
    null=kinds_exchanged,
    n="500 held-out sources of each kind, three seeds",
    interval="two dates read, over seeds: {back:.0%} with attention, {one:.1%} without",
)
def two_dates_need_a_look_back(page):
    """Check that an LSTM needs attention to its source to rewrite two dates.

    After 700 steps, attention reads two dates; a vector at every step reads one.

    Each reads nearly all such sources, with every seed. Of sources with two dates, one
    vector reads hardly any, whether it is given once or at every step, also at two other
    learning rates. Given at every step, after four times as many steps, it reads more than
    half of them, with every seed.

    After 400 steps, a Transformer with attention reads nearly every source with one date.
    With the mean of its vectors in place of attention, it reads fewer than six in ten. No
    learning rate that is chosen is the lowest or the highest that was tried.

    Parameters
    ----------
    page : Page
        ``vectors`` is a DataFrame, a row for each training: ``kind``, the model
        ("Transformer"; "Transformer, one vector"; "LSTM, looking back", with attention;
        "LSTM, one vector at every step"; "LSTM, one vector"); ``dates``, how many a source
        has; ``steps``; ``right``, the share of sources read right. ``settings`` has
        ``short`` and ``long``, numbers of steps. ``bottleneck["rates"]`` and
        ``bottleneck["longer"]`` list dicts, one a training, with ``right`` and ``steps``;
        ``study["tuning"]`` dicts with ``kind``, ``rate``, the learning rate, and the loss
        ``validation``.

    Returns
    -------
    dict
        Shares of sources read right. Two dates: ``back`` by attention and ``one`` by one
        vector, both (lowest, highest); ``longer``, by one vector after four times the
        steps, the lowest. One date: ``every`` by the vector at every step, the lowest;
        ``once`` by the vector given once, (lowest, highest); ``whole`` by a Transformer
        with attention, the lowest; ``mean`` by one with a mean, the highest. ``short`` and
        ``long``, numbers of steps.
    """
    settings = page.settings
    short = settings["short"]
    long = settings["long"]
    right = page.vectors.set_index(["kind", "dates", "steps"]).sort_index().right
    back = right.loc[BACK, 2, long]
    one = np.concatenate([right.loc[kind, 2, long] for kind in (EVERY, ONCE)])
    other_rates = [row["right"] for row in page.bottleneck["rates"]]
    longer = [row["right"] for row in page.bottleneck["longer"]]
    whole = right.loc["Transformer", 1, short]
    mean = right.loc[ONE, 1, short]
    rates = pd.DataFrame(page.study["tuning"])
    best = rates.loc[rates.groupby("kind").validation.idxmin(), "rate"]
    assert rates.rate.min() < best.min()
    assert best.max() < rates.rate.max()
    assert back.min() > 0.95
    assert max(one.max(), *other_rates) < 0.05
    assert right.loc[EVERY, 1, long].min() > 0.95
    assert min(longer) > 0.5
    assert all(row["steps"] == 4 * long for row in page.bottleneck["longer"])
    assert whole.min() > 0.95
    assert mean.max() < 0.6
    return {
        "back": extremes(back),
        "one": extremes(one),
        "every": right.loc[EVERY, 1, long].min(),
        "once": extremes(right.loc[ONCE, 1, long]),
        "longer": min(longer),
        "whole": whole.min(),
        "mean": mean.max(),
        "short": short,
        "long": long,
    }


# --- cross-attention --------------------------------------------------------------------


@proof("The lines are the block; each written token depends on all that was read.")
def lines_are_the_block(page):
    """Check that the block gives what the page's lines give, and what it depends on.

    Nothing that is written changes if its inputs from position 3 on do, but for those
    positions; every token read changes everything that is written. In float64.

    Parameters
    ----------
    page : Page
        ``block`` is the lesson's decoder block, which returns its output and the weights of
        attention; ``start`` is its input and ``x`` its output as the page's lines compute
        it, (1, 5, d_model); ``memory`` the encoder's states, (1, sources, d_model);
        ``weights`` those of cross-attention, (1, heads, 5, sources).

    Returns
    -------
    dict
        ``weights``: their shape, as text, such as "(1, 4, 5, 7)".
    """
    exact = copy.deepcopy(page.block).double()
    given = page.start.double()
    source = page.memory.double()
    written = exact(given, source, mask=causal_mask(5))[0]
    close(written, page.x.double(), rtol=0, atol=1e-5 * page.x.abs().max().item())
    later = given.clone()
    later[:, 3:] += 1
    moved = (exact(later, source, mask=causal_mask(5))[0] - written).abs()
    assert moved[:, :3].max() < 1e-9
    assert moved[:, 3:].max() > 1e-5
    for token in range(source.shape[1]):
        other = source.clone()
        other[:, token] += 1
        moved = exact(given, other, mask=causal_mask(5))[0] - written
        assert moved.abs().amax(-1).min() > 1e-5
    return {"weights": str(tuple(page.weights.shape))}


def copy_attention(ours, theirs):
    """Copy the weights of PyTorch's attention into ours.

    Parameters
    ----------
    ours : lmcourse.attention.MultiHeadAttention
        Its weights are overwritten.
    theirs : torch.nn.MultiheadAttention
        Of the same sizes.
    """
    layers = (ours.query, ours.key, ours.value)
    parts = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
    for layer, weight, bias in zip(layers, *parts, strict=True):
        layer.weight.data.copy_(weight)
        layer.bias.data.copy_(bias)
    ours.output.load_state_dict(theirs.out_proj.state_dict())


@proof("Our block with cross-attention equals PyTorch's decoder layer.")
def block_is_pytorchs(page):
    """Compare them in float64, with the norms before each step, and after it.

    Parameters
    ----------
    page : Page
        Unused: both blocks are made here, one with the weights of the other.
    """
    torch.manual_seed(0)
    targets = torch.randn(2, 5, 12).double()  # (batch, targets, d_model)
    sources = torch.randn(2, 7, 12).double()
    for norm_first in (True, False):
        options = {"norm_first": norm_first, "activation": "gelu"}
        theirs = nn.TransformerDecoderLayer(
            12, nhead=3, dim_feedforward=20, batch_first=True, **options
        )
        theirs = theirs.double().eval()
        ours = Block(12, heads=3, d_ff=20, cross=True, **options).double().eval()
        copy_attention(ours.attention, theirs.self_attn)
        copy_attention(ours.cross, theirs.multihead_attn)
        ours.feed_forward.up.load_state_dict(theirs.linear1.state_dict())
        ours.feed_forward.down.load_state_dict(theirs.linear2.state_dict())
        norms = ours.norm_1, ours.norm_cross, ours.norm_2  # in the order of the steps
        for norm, number in zip(norms, (1, 2, 3), strict=True):
            norm.load_state_dict(getattr(theirs, f"norm{number}").state_dict())
        got, _ = ours(targets, sources, mask=causal_mask(5))
        want = theirs(targets, sources, tgt_mask=~causal_mask(5))
        close(got, want, rtol=0, atol=1e-9)


# --- learning and writing ---------------------------------------------------------------


@proof("The page's model reads most held-out days; an untrained one reads none.")
def it_reads_dates(page):
    """Check that the page's model reads most held-out days, an untrained one none.

    It reads over 80 % in each of three styles; the study's models read over 95 %.

    These were trained longer.

    No day is both for training and held out.

    Parameters
    ----------
    page : Page
        ``reader`` is the page's trained model; ``known`` and ``held_out`` are lists of days
        (datetime.date), those of training and others; ``study``: group → outcomes of the
        study *encoder-decoder*, of which those of "runs", one a model, have ``right``, the
        shares of days read right by style.

    Returns
    -------
    dict
        ``models``: how many the study has; ``worst``: the lowest share of days that one of
        them reads right, of three styles, 0 to 1; ``days``: how many there are, for
        training and held out.
    """
    stored_shares = np.array([run["right"][:3] for run in page.study["runs"]])
    asked = page.held_out[:300]
    here = [dates.share_right(page.reader, dates.pairs_of(asked, s)) for s in range(3)]
    untrained = dates.share_right(dates.new_model(1), dates.pairs_of(asked))
    assert not set(page.held_out) & set(page.known)
    assert len(page.known) > 70_000
    assert stored_shares.min() > 0.95
    assert min(here) > 0.8
    assert untrained == 0
    return {
        "models": len(stored_shares),
        "worst": stored_shares.min(),
        "days": len(page.held_out) + len(page.known),
    }


# --- attention and use ------------------------------------------------------------------


def random_weights(page):
    """A model of dates whose weights are shuffled.

    Parameters
    ----------
    page : Page
        ``reader`` is the trained model; ``asked`` are pairs of a date as it is written and
        as it should be read, list of (str, str). ``wrong_without(model, pairs)`` returns
        the share of characters that a model gets wrong with each part of the source hidden
        (day, month, year, spaces), (targets, 4).

    Returns
    -------
    Page
        Its ``reader`` has shuffled weights; of that model are ``attended``, the attention
        to each part at each character that is written, (targets, 4), and ``wrong``, what
        ``wrong_without`` returns.
    """
    model = nulls.shuffled_weights(page.reader)
    wrong = page.wrong_without(model, page.asked)
    attended = dates.attention_to_parts(model, page.asked)
    return page.replaced(reader=model, attended=attended, wrong=wrong)


@finding(
    "A model that rewrites dates attends to part of the source while it writes a hyphen; "
    "with that part hidden, it writes the hyphen all the same.",
    rival="at seven digits the same hiding leaves at most {digits_most:.0%} right",
    null=random_weights,
    n="{models} models and that of the page, 500 held-out days",
    interval="right without the part with most attention, over models: {sure:.1%}",
)
def attention_is_not_use(page):
    """Check that hyphens are written without the part that has most attention.

    With this part hidden, hyphens, the first 1 and the end stay right.

    Of dates such as "1886-05-15" each of these stays right in over 90 %. Seven other digits
    do not: each is right in fewer than 85 %, and in the study's models less than 5 points
    more often than if the most frequent digit were always written. At the hyphens the
    page's model gives over 99 % of its attention to the source's day, month, year and
    spaces.

    Parameters
    ----------
    page : Page
        ``study``: group → outcomes of the study *encoder-decoder*; those of "runs", one a
        model, have ``looks``, the attention to day, month, year and spaces at each
        character that is written, (11, 4), and ``kept``, the share of characters right with
        nothing hidden and without each of these parts, (5, 11). Of the page's model
        ``attended`` is the attention, Tensor (11, 4), and ``wrong`` the share of wrong
        characters without each part, (11, 4). ``asked`` are pairs of a date as it is
        written and as it should be read, list of (str, str).

    Returns
    -------
    dict
        ``models``: how many the study has; over these, with the part hidden, ``sure``: the
        lowest and the highest share right of hyphens, the first 1 and the end;
        ``digits_most``: the highest of the digits.
    """
    sure = []
    digits = []
    for run in page.study["runs"]:
        top = np.array(run["looks"]).argmax(1)  # (targets,)
        without = np.array(run["kept"])[1 + top, range(11)]
        sure.append(without[[*SURE]])
        digits.append(without[[*DIGITS]])
    columns = zip(*(answer for _, answer in page.asked), strict=True)
    frequent = [max(map(column.count, column)) / len(column) for column in columns]
    top = page.attended.argmax(1, keepdim=True)
    here = 1 - page.wrong.gather(1, top)[:, 0]  # (targets,)
    assert page.attended[[4, 7]].sum(-1).min() > 0.99
    assert np.min(sure) > 0.9
    assert np.max(digits) < 0.85
    assert (np.array(digits) - np.array(frequent)[[*DIGITS]]).max() < 0.05
    assert here[[*SURE]].min() > 0.9
    assert here[[*DIGITS]].max() < 0.85
    return {
        "models": len(sure),
        "sure": extremes(sure),
        "digits_most": np.max(digits),
    }


def no_spreading(page):
    """Encoders whose other characters cannot attend to the month.

    Parameters
    ----------
    page : Page
        ``study``: group → outcomes of the study *encoder-decoder*. In those of "runs" and
        "more", one a model, ``again`` is the share of hidden months that a decoder reads
        when it is trained anew and cannot attend to the month's letters; ``cut`` the same
        where, in the encoder, no other character could attend to them either.

    Returns
    -------
    Page
        In ``study``, each ``again`` is the run's ``cut``.
    """
    cut = {
        group: [run | {"again": run["cut"]} for run in page.study[group]]
        for group in ("runs", "more")
    }
    return page.replaced(study=page.study | cut)


@finding(
    "In a model of dates, hidden is not gone: a decoder that cannot attend to the month's "
    "letters learns to find the month in other characters' vectors.",
    rival="the length of the month's name, which alone gives at most {length:.0%}",
    null=no_spreading,
    n="{models} models, 500 held-out days",
    interval="months read, over models: {again:.0%}; over random encoders: {random:.0%}",
)
def the_month_is_elsewhere(page):
    """Check that decoders find a hidden month in other characters' vectors.

    Every decoder reads more than the length tells by a fifth of all months.

    It also reads so much more than a decoder whose encoder's other characters could not
    attend to the month. Over encoders with random weights (stored study *date-controls*)
    decoders, too, read more than either rival by a fifth: to spread the month, attention
    has to learn nothing.

    Parameters
    ----------
    page : Page
        ``study``: group → outcomes of the study *encoder-decoder*. In those of "runs" and
        "more", one a model, are shares of hidden months that a decoder reads when it is
        trained anew: ``again``; ``dealt``, with months of one length exchanged, so that
        only the length is left; ``cut``, where no other character of the encoder could
        attend to the month.

    Returns
    -------
    dict
        Shares of months: ``again``: lowest and highest; ``least``: the lowest; ``length``
        and ``cut``: the highest of each rival; ``random`` (lowest and highest) and
        ``random_least``: over encoders with random weights. ``models``: how many;
        ``answer`` and ``signed``: the letters of the right choices in two tasks, "a" and
        "c" if the finding holds, else "c" and "b".
    """
    runs = page.study["runs"] + page.study["more"]
    again, length, cut = (
        np.array([run[name] for run in runs]) for name in ("again", "dealt", "cut")
    )
    by_random = [row["month"] for row in stored("date-controls")["results"]["untrained"]]
    lead = (again - np.maximum(length, cut)).min()
    assert again.min() > 0.8
    assert lead > 0.2
    assert min(by_random) > max(length.max(), cut.max()) + 0.2
    return {
        "again": extremes(again),
        "least": again.min(),
        "length": length.max(),
        "cut": cut.max(),
        "random": extremes(by_random),
        "random_least": min(by_random),
        "models": len(runs),
        "answer": "a" if lead > 0.2 else "c",
        "signed": "c" if lead > 0.2 else "b",  # hidden, and yet it may come from the source
    }


# --- what carries over ------------------------------------------------------------------


VARIED = ("case", "commas", "centuries")  # what three of the four trainings vary


def read_after(study, vary="") -> np.ndarray:
    """Return the shares of days that models read after a training, (models, asked).

    Asked are eight styles of dates, in the order of `lmcourse.dates.styles`, then other
    centuries.

    Parameters
    ----------
    study : dict
        Group → outcomes of the study *encoder-decoder*; those of "runs" and "varied", one a
        model, list the shares ``right``.
    vary : {"", "case", "commas", "centuries"}
        What the training texts varied; "" is the training on three styles alone.

    Returns
    -------
    float array of shape (models, 9)
        From 0 to 1.
    """
    rows = (
        [run for run in study["varied"] if run["vary"] == vary] if vary else study["runs"]
    )
    return np.array([run["right"] for run in rows])


def letters_not_shown(page):
    """Models that were never shown small letters, in place of those that were.

    Parameters
    ----------
    page : Page
        ``study``: group → outcomes of the study *encoder-decoder*, one a model; those of
        "varied" have ``vary``, what the training texts varied: "case", small letters,
        "commas" or "centuries".

    Returns
    -------
    Page
        In ``study``, the outcomes of "varied" after small letters are those of "runs",
        which were not shown them.
    """
    varied = [
        base | {"vary": row["vary"]} if row["vary"] == "case" else row
        for row, base in zip(page.study["varied"], 3 * page.study["runs"], strict=True)
    ]
    return page.replaced(study=page.study | {"varied": varied})


@finding(
    "Shown small letters in one style of date, a model reads them in a similar style that "
    "it only ever saw with capitals.",
    rival="trained as long with one more comma, or with more centuries: {others:.0%} at "
    "best, on average",
    null=letters_not_shown,
    n="four trainings, five seeds, 500 held-out days",
    interval="read, over seeds: {letters:.0%}; more than without: {more:.0%}",
)
def small_letters_carry_over(page):
    """Check that small letters shown in one style are read in a similar one.

    In each of five seeds eight in ten such dates are read, and more than without.

    So are two centuries between eighteen that were shown. With two shown, fewer than two
    thirds of 1700 to 1799 are read, and none of 2000 to 2099. Commas: some seeds read
    more than with other trainings, some less.

    Parameters
    ----------
    page : Page
        ``study``: group → outcomes of the study *encoder-decoder*, one a model: "runs", and
        "varied", whose training texts vary letters, commas or centuries (``vary``).
        ``right`` lists the shares of held-out days read, 0 to 1, by style: 0 to 2 those of
        training, 4 without the comma ("May 15 1886"), 5 with a small letter ("15 may
        1886"), 8 the centuries that were not shown. (Of the study *date-controls*, 0 are
        the years 1700 to 1799, 1 those from 2000 to 2099.)

    Returns
    -------
    dict
        Shares read, lowest and highest or ``_least``, the lowest: ``letters``, ``commas``
        and ``centuries``, after a training that varied them; ``_without``, after one that
        did not. ``more``: the gain of small letters, lowest and highest; ``others``: the
        best mean that another training reads of small letters; ``without_1700``: days of
        1700 to 1799, with two centuries shown; ``commas_centuries``: dates without the
        comma after varied centuries; ``answer``: the letter of the right choice in a task,
        by which of letters, commas and centuries are read to 80 % with every seed
        (`SURE_OF`); "?" if that is no choice.
    """
    base = read_after(page.study)
    letters, commas, centuries = (read_after(page.study, vary) for vary in VARIED)
    more = letters[:, 5] - base[:, 5]
    by_others = [rows[:, 5].mean() for rows in (base, commas, centuries)]
    two_centuries = np.array(
        [row["right"] for row in stored("date-controls")["results"]["centuries"]]
    )
    commas_gain = commas[:, 4] - centuries[:, 4]
    shares = {
        "letters": letters[:, 5],
        "commas": commas[:, 4],
        "centuries": centuries[:, 8],
    }
    sure = {name for name, read in shares.items() if read.min() >= 0.8}
    assert min(rows[:, :3].min() for rows in (base, letters, commas, centuries)) > 0.95
    assert letters[:, 5].min() >= 0.8
    assert more.min() > 0
    assert letters[:, 5].mean() > max(by_others) + 0.1
    assert centuries[:, 8].min() > 0.95
    assert two_centuries[:, 0].max() < 2 / 3
    assert two_centuries[:, 1].max() < 0.01
    assert commas_gain.min() < 0 < commas_gain.max()
    return {
        "letters": extremes(letters[:, 5]),
        "letters_without": extremes(base[:, 5]),
        "letters_least": letters[:, 5].min(),
        "more": extremes(more),
        "others": max(by_others),
        "centuries_least": centuries[:, 8].min(),
        "without_1700": extremes(two_centuries[:, 0]),
        "commas": extremes(commas[:, 4]),
        "commas_least": commas[:, 4].min(),
        "commas_without": extremes(base[:, 4]),
        "commas_centuries": extremes(centuries[:, 4]),
        "answer": next((k for k, names in SURE_OF.items() if names == sure), "?"),
    }


def order_is_free(page):
    """Models that read a date in the new order as well as in the first style.

    Parameters
    ----------
    page : Page
        ``study``: group → outcomes of the study *encoder-decoder*; in those of "runs" and
        "varied", one a model, ``right`` lists the shares of days read, 0 to 1, by style: 0
        is the first, 7 has the year first.

    Returns
    -------
    Page
        In ``study``, the share of style 7 is that of style 0.
    """

    def free(run):
        """Return a run that reads style 7, the year first, as well as style 0.

        ``run`` : dict; ``right`` has the share of dates read right in each style, a list.
        Returned is a new dict; all its other values are the same.
        """
        right = [*run["right"]]
        right[7] = right[0]
        return run | {"right": right}

    both = {name: [free(run) for run in page.study[name]] for name in ("runs", "varied")}
    return page.replaced(study=page.study | both)


@finding(
    "Trained on dates that begin with the day or the month, twenty small models read next "
    "to none that begin with the year.",
    rival="the same parts in the three orders of the training: each model reads most dates",
    null=order_is_free,
    n="{models} models of four trainings, 500 held-out days",
    interval="read with the year first, over models: {turned:.1%}",
)
def a_new_order_is_not_read(page):
    """Check that models hardly ever read dates that begin with the year.

    They read under 1 % of dates like *1886 May 15*, over 95 % of each of three styles.

    Parameters
    ----------
    page : Page
        ``study``: group → list of dict, one a model; the training texts of those of
        "varied" vary letters, commas or centuries (``vary``). ``right`` lists the shares of
        held-out days that are read, 0 to 1, by style: 0 to 2 are those of training, 7 has
        the year first.

    Returns
    -------
    dict
        ``turned``: the lowest and the highest share of the new order; ``models``: how many.
    """
    rows = np.concatenate([read_after(page.study, vary) for vary in ("", *VARIED)])
    assert rows[:, :3].min() > 0.95
    assert rows[:, 7].max() < 0.01
    assert len(rows) == 20
    return {"turned": extremes(rows[:, 7]), "models": len(rows)}
