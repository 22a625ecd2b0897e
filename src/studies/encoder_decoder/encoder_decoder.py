"""What does attention to a text gain, is attention a use, and what is copied?

What varies, with three styles of dates to learn from: what the decoder gets of the source
(all states, or one vector, once or at every step; Transformers and LSTMs), each with a
learning rate chosen by the same rule on held-out days, from one seed, on one date, in the
shorter training; which part of the source is hidden from a trained decoder; whether a
decoder to which the month is hidden is trained again on the same encoder, which stays as it
is, in sixteen models; and what the training texts vary (letters, commas, centuries).

Rivals: one vector; the attention weights as a measure of use; that every kind of training
helps every style.

Null: an encoder's states that tell of the month only its length, since months of the same
length are exchanged; and states of other characters that could not attend to the month.

Statistic: the share of held-out days that are read right. The interval is that of months
read although they are hidden, less the same with months exchanged, over the seeds.

Stored too are the weights of the first model, as int8, for the view.
"""

import base64
import datetime
import random

import numpy as np
import torch
import torch.nn.functional as F

from lmcourse import dates
from lmcourse.dates import drawing, share_right, split_days, tensors, train_on_dates
from lmcourse.int8 import rounded, to_int8
from studies.encoder_decoder.one_vector import KINDS, join_pairs, new_kind
from studies.harness import best_tuned, count, grid, paired

CHAPTER = "encoder-decoder"
CLAIM = (
    "The states of the other characters carry the month: a decoder that cannot attend to "
    "the month itself can learn to read many months"
)
RIVAL = "the length of the month's name, which shows in where the year begins"
NULL = "months are exchanged for others of the same length, so that only the length is left"
SETTINGS = {
    "seeds": [0, 1, 2, 3, 4],
    "steps": 300,
    "again": 120,  # steps of a decoder that is trained again
    "more": [*range(5, 16)],  # further seeds, for hidden months alone
    "rates": [3e-3, 1e-2, 3e-2, 6e-2],
    "short": 400,  # steps of the models that are compared by what the decoder gets
    "long": 700,
    "vectors": [0, 1, 2],  # their seeds
}
# What varies in training → the styles of `lmcourse.dates.styles` that the texts have.
VARIED = {"case": (0, 1, 2, 6), "commas": (0, 1, 2, 3), "centuries": (0, 1, 2)}
ODD = ["February 31, 1886", "15 May 1750", "15 May 2050", "15 Mai 1886", "Sept 1, 1886"]
CENTURIES = [c for c in range(10, 30) if c not in (17, 20)]  # 17 and 20 are for the test


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return a few runs of each group, with three steps.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "runs" (all is measured), "more"
        (only with the month hidden), "varied" (other training texts), "tuning" (one model
        at one learning rate) or "vectors" (one model, sources of several dates);
        ``seed``; ``steps`` of training. Of "varied" also ``vary``, what the training
        texts vary: "case", "commas" or "centuries". Of "tuning" and "vectors" ``kind``,
        the model, one of `KINDS`, such as "LSTM, one vector"; of the first ``rate``, the
        learning rate, of the second ``dates``, how many a source has.
    """
    most = 1 if small else None
    steps = 3 if small else SETTINGS["steps"]
    seeds = SETTINGS["seeds"][:most]
    settings = grid(group="runs", seed=seeds, steps=steps)
    settings += grid(group="more", seed=SETTINGS["more"][:most], steps=steps)
    settings += grid(group="varied", vary=[*VARIED][:most], seed=seeds, steps=steps)
    kinds = KINDS[-1:] if small else KINDS
    for kind in kinds:
        settings += plan_kind(kind, small)
    return settings


def plan_kind(kind, small):
    """Return the settings of all runs of one kind of model, its tuning first.

    Parameters
    ----------
    kind : str
        One of `KINDS`, such as "LSTM, one vector".
    small : bool
        Whether a few short runs are enough, to try the study.

    Returns
    -------
    list of dict
        Each has ``group``, "tuning" (with ``rate``) or "vectors" (with ``dates``, how many
        dates a text has that is read), and ``kind``, ``steps``, ``seed``. Each kind reads
        one date in the shorter training; kinds with one vector also in the longer one;
        LSTMs also two dates in the longer one. Tuning is on one date.
    """
    seeds = SETTINGS["vectors"]
    rates = SETTINGS["rates"]
    short = SETTINGS["short"]
    long = SETTINGS["long"]
    if small:
        seeds = seeds[:1]
        rates = rates[1:]
        short = long = 3
    settings = grid(group="tuning", kind=kind, steps=short, seed=9, rate=rates)
    tasks = [(short, 1)]
    if "one" in kind:
        tasks.append((long, 1))
    if "LSTM" in kind:
        tasks.append((long, 2))
    for steps, per_source in tasks:
        settings += grid(
            group="vectors", kind=kind, steps=steps, dates=per_source, seed=seeds
        )
    return settings


def run(folder, group, seed, steps, **setting):
    """Train a model that reads dates, and test it.

    Parameters
    ----------
    folder : Path
        Holds a file for each finished run of the group "tuning".
    group : {"runs", "more", "varied", "tuning", "vectors"}
        What to do. "runs": train a model and measure it in every way; "more": only with the
        month hidden; "varied": train on texts that vary something; "tuning" and "vectors":
        train one kind of model, at one of several learning rates or at the tuned one.
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.
    **setting
        Of "varied": ``vary``, a key of `VARIED`, what the training texts vary. Of "tuning"
        and "vectors": ``kind``, one of `KINDS`; ``dates``, how many a source has; ``rate``,
        the learning rate.

    Returns
    -------
    dict
        ``seed`` and ``steps``; shares are from 0 to 1.

        - "tuning": ``kind``, ``rate``, and ``validation``, a loss in nats a character,
        - "vectors": ``kind``, ``rate``, ``dates``, and ``right``, the share of sources that
          are read right,
        - "varied": ``vary``, and ``right``, a list: the share of days read right in each of
          eight styles, then of days of other centuries,
        - "more": shares of months read right by decoders to which the month is hidden:
          ``again``, trained anew over the same encoder; ``dealt``, the same with months of
          one length exchanged; ``cut``, the same where the encoder's other characters
          cannot attend to the month,
        - "runs": ``right``, as of "varied"; ``again``, ``dealt`` and ``cut``, as of "more";
          ``looks``, attention to day, month, year and spaces, (targets, 4); ``kept``, the
          share of characters right with nothing and with each of these parts hidden, (5,
          targets); ``spaces``, how the day's first digit is read (`first_digit`); with the
          first seed also what `view_data` returns.
    """
    if group in ("tuning", "vectors"):
        return train_kind(folder, group, seed, steps, **setting)
    held_out, training_days = dates.split_days()
    vary = setting.get("vary", "")
    if vary == "centuries":
        training_days = sorted({*dates.days_of(*CENTURIES)} - {*held_out})
    draw = dates.drawing(training_days, seed, VARIED.get(vary, (0, 1, 2)))
    model = dates.new_model(seed)
    dates.train_on_dates(model, draw, steps)
    test_days = held_out[: 10 if steps < 10 else 500]
    steps_again = min(steps, SETTINGS["again"])
    row = {"seed": seed, "steps": steps}
    if group != "more":
        row["right"] = accuracies(model, test_days)
    if group == "varied":
        return row | {"vary": vary}
    if group == "runs":
        row |= effects_of_hiding(model, test_days)
    row |= hidden_months(model, training_days, test_days, seed, steps_again)
    if group == "runs" and seed == SETTINGS["seeds"][0]:
        row |= view_data(model)
    return row


def accuracies(model, days):
    """Return the share of days that a model reads right, written in several styles.

    Parameters
    ----------
    model : lmcourse.dates.Transformer
    days : list of datetime.date

    Returns
    -------
    list of float
        From 0 to 1: in each of the eight styles of `lmcourse.dates.styles`; then of as many
        days of the years 1700 to 1799 and 2000 to 2099, in the first style.
    """
    other_days = random.Random(1).sample(dates.days_of(17, 20), len(days))
    tests = [dates.pairs_of(days, style) for style in range(8)]
    tests.append(dates.pairs_of(other_days))
    return [round(float(dates.share_right(model, pairs)), 4) for pairs in tests]


def effects_of_hiding(model, days):
    """Return where a decoder attends, and what it reads if a part of the source is hidden.

    Parameters
    ----------
    model : lmcourse.dates.Transformer
        It reads a date such as "15 May 1886", and writes "1886-05-15".
    days : list of datetime.date
        They are written in the first style: day, month, year, with spaces between.

    Returns
    -------
    dict
        ``looks``: attention weights, nested lists of shape (targets, 4), on the day, the
        month, the year and the spaces, for each character that is written. ``kept``: the
        share of characters that are right, of shape (5, targets), with nothing hidden, and
        without each of these parts. ``spaces``: for days of one digit, and for days of two,
        how the first digit of the day is read: the attention weight on the day, that on the
        spaces, and the share of first digits that are wrong if the spaces are hidden.
    """
    pairs = dates.pairs_of(days)
    versions = [dates.without_part(model, part) for part in (-1, 0, 1, 2, 3)]
    right = [dates.right_at(each, pairs).numpy().round(4).tolist() for each in versions]
    return {
        "looks": dates.attention_to_parts(model, pairs).numpy().round(4).tolist(),
        "kept": right,
        "spaces": [first_digit(model, days, one_digit) for one_digit in (True, False)],
    }


def first_digit(model, days, one_digit):
    """Return where a decoder attends for the day's first digit, and if it needs the spaces.

    The digit is character 8, from 0, of what is written, such as "1886-05-15"; for a day
    before the tenth it is a 0 that the source does not have.

    Parameters
    ----------
    model : lmcourse.dates.Transformer
    days : list of datetime.date
        They are written in the first style, such as "15 May 1886".
    one_digit : bool
        Whether to use the days up to the 9th, instead of the others.

    Returns
    -------
    list of float
        The attention weight on the day; that on the spaces; the share of first digits that
        are wrong if the spaces are hidden.
    """
    position = 8  # of that digit, in what is written
    pairs = dates.pairs_of([day for day in days if (day.day < 10) == one_digit])
    on_day, _, _, on_spaces = dates.attention_to_parts(model, pairs)[position].tolist()
    right = dates.right_at(dates.without_part(model, 3), pairs)[position].item()
    return [round(x, 4) for x in (on_day, on_spaces, 1 - right)]


def hidden_months(model, training_days, days, seed, steps):
    """Train decoders again, with the month hidden from them; return how often they read it.

    The encoder stays as it is, and so does ``model``: copies are trained.

    Parameters
    ----------
    model : lmcourse.dates.Transformer
    training_days, days : list of datetime.date
        To train on, and to test.
    seed, steps : int
        Of the training: of what is drawn, and how long it is.

    Returns
    -------
    dict of str to float
        The share of months that are read right, 0 to 1. ``again``: the decoder cannot
        attend to the letters of the month. ``dealt``: moreover months of the same length
        are exchanged, in training and test. ``cut``: moreover the encoder's other
        characters cannot attend to the month; nothing is exchanged.
    """
    pairs = dates.pairs_of(days)
    shares = {}
    for name in ("again", "dealt", "cut"):
        decoder = hide_in_encoder(model) if name == "cut" else dates.without_part(model, 1)
        change = dates.exchange_months if name == "dealt" else list
        draw = dates.drawing(training_days, seed + 100, (0,))

        def draw_changed(change=change, draw=draw):
            """Return a drawn batch of pairs, a list of (str, str), after ``change``.

            ``change`` : callable, from such a list to another; ``draw`` : callable, without
            arguments, which draws the list.
            """
            return change(draw())

        dates.train_on_dates(decoder, draw_changed, steps, 1e-2)
        share = dates.share_right(decoder, change(pairs), dates.ANSWER["month"])
        shares[name] = round(float(share), 4)
    return shares


def hide_in_encoder(model):
    """Return a copy of a model in which nothing but the month can attend to the month.

    Parameters
    ----------
    model : lmcourse.dates.Transformer

    Returns
    -------
    lmcourse.dates.WithoutPart
        Neither its decoder nor the encoder's other characters attend to the month.
    """
    other = dates.without_part(model, 1)

    def encode(source):
        """Return a source's states, and which of them a decoder may attend to.

        ``source`` : int64 Tensor (batch, sources). Returns (batch, sources, d_model) and
        bool (batch, 1, 1, sources).
        """
        real = source != other.pad  # (batch, sources)
        month = dates.parts(source) == 1  # (batch, sources)
        allowed = real[:, None] & ~(month[:, None] & ~month[..., None])
        memory, _ = other.encoder(other.embed(source), mask=allowed[:, None])
        return memory, (real & ~month)[:, None, None]

    other.encode = encode
    return other


def train_kind(folder, group, seed, steps, kind, dates=1, rate=None):
    """Train one of the models that differ in what the decoder gets of the source.

    Parameters
    ----------
    folder : Path
        Holds a JSON file for each finished run, those of the group "tuning" among them.
    group : {"tuning", "vectors"}
        Whether it is measured by its loss on the days for tuning, or by what it reads right
        of other held-out days.
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.
    kind : str
        One of `KINDS`, such as "LSTM, one vector".
    dates : int
        How many dates a source has.
    rate : float, optional
        The learning rate. Default: the tuned one.

    Returns
    -------
    dict
        ``kind``, ``seed``, ``steps``, ``rate``. Of "tuning" also ``validation``, the loss
        in nats a character; of "vectors" ``dates`` and ``right``, the share of held-out
        sources that are read right.
    """
    rate = rate or best_tuned(folder, kind=kind)["rate"]
    model = new_kind(kind, seed)
    held_out, training_days = split_days()
    draw = drawing(training_days, seed, size=64 * dates)
    train_on_dates(model, lambda: join_pairs(draw(), dates), steps, rate)
    row = {"kind": kind, "seed": seed, "steps": steps, "rate": rate}
    if group == "tuning":
        validation_pairs = drawing(held_out[1000:], 0, size=500 * dates)()
        source, target = tensors(validation_pairs)
        with torch.no_grad():
            logits = model(source, target[:, :-1])  # (batch, targets, vocab_size)
        loss = F.cross_entropy(logits.mT, target[:, 1:])
        return row | {"validation": loss.item()}
    test_pairs = drawing(held_out[:1000], 0, size=500 * dates)()
    share = share_right(model, join_pairs(test_pairs, dates))
    return row | {"dates": dates, "right": round(float(share), 4)}


def view_data(model):
    """Return a model's weights as int8, and what it writes with them, for the page's view.

    Parameters
    ----------
    model : lmcourse.dates.Transformer

    Returns
    -------
    dict
        ``weights``: by name, vectors as lists, matrices as dicts of bytes and a scale for
        each row (`pack_weights`). ``written``: source → what the model writes, str, for a
        day in eight styles and for `ODD` dates, such as "February 31, 1886". ``hyphens``,
        two characters: what it writes at the places of the two hyphens if, at each, it
        cannot attend to the character to which it attends most. ``look``: the attention
        weights with which it writes the second digit of the month, a list of float, by
        character of the first source, mean over heads. ``without``, str: what it writes
        for the first source if the month is hidden.
    """
    model = rounded(model)
    day = datetime.date.fromisoformat(dates.SHOWN[0])
    sources = [*dates.styles(day), *ODD]
    source, target = dates.tensors(dates.pairs_of([day]))
    hyphens = ""
    with torch.no_grad():
        memory, mask = model.encode(source)
        _, weights = model.decode(target[:, :-1], memory, mask)
        attention = weights[-1][0].mean(0)  # (targets, sources)
        for position in (4, 7):
            most = F.one_hot(attention[position].argmax(), attention.shape[1]).bool()
            logits, _ = model.decode(target[:, :-1], memory, mask & ~most)
            hyphens += dates.CHARACTERS[logits[0, position].argmax()]
    return {
        "weights": pack_weights(model),
        "written": dict(zip(sources, dates.write(model, sources), strict=True)),
        "hyphens": hyphens,
        "look": attention[6].numpy().round(4).tolist(),
        "without": dates.write(dates.without_part(model, 1), sources[:1])[0],
    }


def pack_weights(model):
    """Return a model's weights in a form that JSON can hold.

    Parameters
    ----------
    model : nn.Module

    Returns
    -------
    dict of str to list or dict
        By name. A vector is a list of numbers. A matrix is a dict: ``int8``, its bytes in
        base64, and ``scale``, the number of each row by which they are multiplied.
    """
    packed = {}
    for name, weight in model.state_dict().items():
        if weight.ndim == 1:
            packed[name] = weight.numpy().round(4).tolist()
        else:
            values, scale = to_int8(weight)
            text = base64.b64encode(values.numpy().tobytes()).decode()
            packed[name] = {"int8": text, "scale": scale.numpy().round(6).tolist()}
    return packed


def summary(results):
    """Compare what is read of a hidden month with what its length tells, seed by seed.

    Parameters
    ----------
    results : dict of str to list of dict
        "runs" and "more" → a dict for each model: ``seed``, and shares, 0 to 1, of hidden
        months that are read by a decoder taught anew: ``again``, over an encoder whose
        month it cannot attend to; ``dealt``, what the length of the month's name alone
        tells; ``cut``, as ``again``, but no other character could attend to the month.

    Returns
    -------
    dict
        ``n``, ``seeds``: how many models, and their seeds; ``interval``, of ``again`` less
        ``dealt``, lowest and highest over models; ``verdict``, "holds" or "not so": whether
        ``again`` is higher than ``dealt`` and ``cut`` by more than a fifth, with every
        seed.
    """
    rows = results["runs"] + results["more"]
    again, dealt, cut = (
        np.array([row[name] for row in rows]) for name in ("again", "dealt", "cut")
    )
    holds = float((again - np.maximum(dealt, cut)).min()) > 0.2
    return count(rows) | paired(again, dealt, holds)
