"""What does looking back at a text buy, is a look a use, and what is copied?

Varied, with three styles of dates to learn from: what the decoder gets of the source (all
states, or one vector, once or at every step; Transformers and LSTMs), with rates chosen
alike on held-out days, for one seed, one date and the shorter training; one part of the
source hidden from a trained decoder, and the month from one trained again on the same,
fixed memory, in sixteen readers; and what training varied (letters, commas, centuries).
Rivals: one vector; the weights as a measure of use; that every training helps every style.
Null: a memory that tells of the month only its length, since another as long was dealt; and
one whose other characters could not look at the month. Statistic: shares of held-out days
read right; the interval is that of the month, hidden, less the same with the months dealt,
by seed. Stored too: the weights of the first model, in int8, for the view.
"""

import base64
import datetime
import random

import numpy as np
import torch
import torch.nn.functional as F

from lmcourse.int8 import rounded, to_int8
from studies.encoder_decoder import shown
from studies.harness import best_tuned, count, grid, paired

CHAPTER = "encoder-decoder"
CLAIM = (
    "With the month hidden that a decoder looked at, another decoder, trained on the same "
    "memory, reads clearly more months than their length tells: by over a fifth of all"
)
RIVAL = "the decoder guesses from the month's length, which shows in where the year stands"
NULL = (
    "a memory in which another month of the same length was dealt, read by such a decoder"
)
SETTINGS = {"seeds": [0, 1, 2, 3, 4], "steps": 300, "again": 120, "more": [*range(5, 16)]}
SETTINGS |= {"rates": [3e-3, 1e-2, 3e-2, 6e-2], "short": 400, "long": 700}
SETTINGS |= {"vectors": [0, 1, 2]}
KINDS = ["Transformer", "Transformer, one vector", "LSTM, looking back"]
KINDS += ["LSTM, one vector at every step", "LSTM, one vector"]
VARIED = {"case": (0, 1, 2, 6), "commas": (0, 1, 2, 3), "centuries": (0, 1, 2)}
ODD = ["February 31, 1886", "15 May 1750", "15 May 2050", "15 Mai 1886", "Sept 1, 1886"]
CENTURIES = [c for c in range(10, 30) if c not in (17, 20)]  # 17 and 20 are asked


def plan(small):
    """Readers, readers of varied training, and readers through one vector."""
    most, steps = (1, 3) if small else (None, SETTINGS["steps"])
    seeds, few = SETTINGS["seeds"][:most], SETTINGS["vectors"][:most]
    found = grid(group="runs", seed=seeds, steps=steps)
    found += grid(group="more", seed=SETTINGS["more"][:most], steps=steps)
    found += grid(group="varied", vary=[*VARIED][:most], seed=seeds, steps=steps)
    short, long = (3, 3) if small else (SETTINGS["short"], SETTINGS["long"])
    for kind in KINDS[-1:] if small else KINDS:
        tuned = {"group": "tuning", "kind": kind, "steps": short, "seed": 9}
        found += grid(**tuned, rate=SETTINGS["rates"][small:])
        tried = [(short, 1)] + [(long, 1)] * ("one" in kind)
        for many, dates in tried + [(long, 2)] * ("LSTM" in kind):
            found += grid(group="vectors", kind=kind, steps=many, dates=dates, seed=few)
    return found


def run(folder, group, seed, steps, **how):
    """Train a reader, and ask it."""
    if group in ("tuning", "vectors"):
        return vector(folder, group, seed, steps, **how)
    held_out, known = shown.split_days()
    vary = how.get("vary", "")
    if vary == "centuries":
        known = sorted({*shown.days_of(*CENTURIES)} - {*held_out})
    draw = shown.drawing(known, seed, VARIED.get(vary, (0, 1, 2)))
    model = shown.new_model(seed)
    shown.train(model, draw, steps)
    asked, again = 10 if steps < 10 else 500, min(steps, SETTINGS["again"])
    found = {"seed": seed, "steps": steps}
    if group == "more":
        return found | months(model, known, held_out[:asked], seed, again)
    found["right"] = reads(model, held_out[:asked])
    if group == "varied":
        return found | {"vary": vary}
    found |= uses(model, held_out[:asked])
    found |= months(model, known, held_out[:asked], seed, again)
    return found | (first(model) if seed == SETTINGS["seeds"][0] else {})


def reads(model, held_out):
    """Return the share read right of each style, and of the first in other centuries."""
    strange = random.Random(1).sample(shown.days_of(17, 20), len(held_out))
    asked = [shown.pairs_of(held_out, style) for style in range(8)]
    asked.append(shown.pairs_of(strange))
    return [round(float(shown.share_right(model, pairs)), 4) for pairs in asked]


def uses(model, held_out):
    """Return looks and what hiding does, place by place."""
    pairs = shown.pairs_of(held_out)
    views = [shown.hidden(model, part) for part in (-1, 0, 1, 2, 3)]
    kept = [shown.right_at(view, pairs).numpy().round(4).tolist() for view in views]
    found = {"looks": shown.look(model, pairs).numpy().round(4).tolist(), "kept": kept}
    found["spaces"] = [spaces(model, held_out, few) for few in (True, False)]
    return found


def months(model, known, held_out, seed, steps):
    """Return the share of hidden months that decoders read which learn anew."""
    pairs, found = shown.pairs_of(held_out), {}
    for name in ("again", "dealt", "cut"):
        other = cut(model) if name == "cut" else shown.hidden(model, 1)
        change = shown.dealt if name == "dealt" else list
        draw = shown.drawing(known, seed + 100, (0,))
        shown.train(other, lambda change=change, draw=draw: change(draw()), steps, 1e-2)
        month = shown.share_right(other, change(pairs), shown.ANSWER["month"])
        found[name] = round(float(month), 4)
    return found


def spaces(model, held_out, few):
    """Return, for the first digit of days of one digit or two, three numbers.

    The weight on the day, that on the spaces, and the share wrong without the spaces.
    """
    pairs = shown.pairs_of([day for day in held_out if (day.day < 10) == few])
    day, _, _, gap = shown.look(model, pairs)[8].tolist()
    right = shown.right_at(shown.hidden(model, 3), pairs)[8].item()
    return [round(x, 4) for x in (day, gap, 1 - right)]


def cut(model):
    """Return a copy: the month is hidden, to the encoder's other characters, too."""
    other = shown.hidden(model, 1)

    def encode(source):
        real, month = source != other.pad, shown.parts(source) == 1
        allowed = real[:, None] & ~(month[:, None] & ~month[..., None])
        memory, _ = other.encoder(other.embed(source), mask=allowed[:, None])
        return memory, (real & ~month)[:, None, None]

    other.encode = encode
    return other


def vector(folder, group, seed, steps, kind, dates=1, rate=None):
    """Train one of the kinds; return its validation loss, or what it reads right."""
    rate = rate or best_tuned(folder, kind=kind)["rate"]
    torch.manual_seed(seed)
    if kind.startswith("LSTM"):
        of = shown.EveryStep if "every" in kind else shown.Recurrent
        model = of(len(shown.CHARACTERS), 64, kind != "LSTM, one vector")
    else:
        of = shown.OneVector if "one" in kind else shown.Transformer
        model = shown.new_model(seed, of)
    held_out, known = shown.split_days()
    draw = shown.drawing(known, seed, size=64 * dates)
    shown.train(model, lambda: joined(draw(), dates), steps, rate)
    found = {"kind": kind, "seed": seed, "steps": steps, "rate": rate}
    late = shown.drawing(held_out[1000:], 0, size=500 * dates)()
    if group == "tuning":
        source, target = shown.tensors(late)
        with torch.no_grad():
            logits = model(source, target[:, :-1])
        return found | {"validation": F.cross_entropy(logits.mT, target[:, 1:]).item()}
    asked = joined(shown.drawing(held_out[:1000], 0, size=500 * dates)(), dates)
    share = round(float(shown.share_right(model, asked)), 4)
    return found | {"dates": dates, "right": share}


def joined(pairs, dates):
    """Make one pair of so many, with a space between."""
    rows = [pairs[i : i + dates] for i in range(0, len(pairs), dates)]
    return [tuple(" ".join(side) for side in zip(*row, strict=True)) for row in rows]


def first(model):
    """Return a model's weights in int8, what it then writes, and one of its looks.

    And what it writes of a day without the month, and at the hyphens without what each of
    them looks at most.
    """
    model, day = rounded(model), datetime.date.fromisoformat(shown.SHOWN[0])
    sources = [*shown.styles(day), *ODD]
    source, target = shown.tensors(shown.pairs_of([day]))
    with torch.no_grad():
        memory, mask = model.encode(source)
        _, weights = model.decode(target[:, :-1], memory, mask)
        look, hyphens = weights[-1][0].mean(0), ""  # (targets, sources)
        for place in (4, 7):
            gone = F.one_hot(look[place].argmax(), look.shape[1]).bool()
            logits, _ = model.decode(target[:, :-1], memory, mask & ~gone)
            hyphens += shown.CHARACTERS[logits[0, place].argmax()]
    written = dict(zip(sources, shown.write(model, sources), strict=True))
    found = {"weights": packed(model), "written": written, "hyphens": hyphens}
    found["look"] = look[6].numpy().round(4).tolist()
    return found | {"without": shown.write(shown.hidden(model, 1), sources[:1])[0]}


def packed(model):
    """Return weights by name: matrices as bytes and scales of rows, others as numbers."""
    found = {}
    for name, weight in model.state_dict().items():
        if weight.ndim == 1:
            found[name] = weight.numpy().round(4).tolist()
        else:
            values, scale = to_int8(weight)
            written = base64.b64encode(values.numpy().tobytes()).decode()
            found[name] = {"int8": written, "scale": scale.numpy().round(6).tolist()}
    return found


def summary(results):
    """Compare what is read of a hidden month with what its length tells."""
    rows = results["runs"] + results["more"]
    again, dealt, cut = (np.array([r[n] for r in rows]) for n in ("again", "dealt", "cut"))
    holds = float((again - np.maximum(dealt, cut)).min()) > 0.2
    return count(rows) | paired(again, dealt, holds)
