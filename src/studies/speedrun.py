"""Which ideas let a small Transformer learn Shakespeare's letters sooner, and how much?

Varied: the recipe (nanoGPT's for a CPU; cut to as many tokens as all ideas are given;
smaller; that with each of `IDEAS` alone; ideas added up; each left out of the whole; the
whole for longer: the record), three seeds, large models one. Rival: nanoGPT's recipe whole,
and as short. Null: the ideas save no time. Statistic: seconds in which the processor worked
for this process on one thread, from the call of a recipe to the model that it returns, so
that what else the machine does counts little; the reference's over the record's, seed by
seed, which take turns. The reference's steps are alike: for that a hundred are timed, in
turn with the record, and counted twenty times. Ideas and rates were tuned on the first half
of the last tenth of the text; the loss is that of fixed windows of the second half.
"""

import math
import time
from functools import cache
from statistics import median

import torch
from torch import nn

from lmcourse.data import load_corpus
from lmcourse.gpt.training import estimate, split
from lmcourse.speedrun import CONTEXT, Recipe, train
from lmcourse.tokenization import CharTokenizer
from studies.harness import verdict

CHAPTER = "scaling"
CLAIM = (
    "A Transformer of at most 800,000 parameters without n-gram tables reaches a "
    "validation loss of 1.909 in a fifteenth of the seconds of nanoGPT's recipe for a CPU"
)
RIVAL = "nanoGPT's recipe, by the same loop, and cut to as many tokens"
NULL = "the ideas save no time: a ratio of 1"
SETTINGS = {"corpus": "tinyshakespeare", "target": 1.909, "parameters": 800_000}
SETTINGS |= {"windows": 400, "threads": 1, "goal": 15, "reference_steps": 100}
# What the fastest recipe changes, in the order in which it is added up.
IDEAS = {
    "size": {"layers": 1, "heads": 2, "d_model": 64},
    "schedule": {"learning_rate": 1e-2, "linear": True, "weight_decay": 0.0},
    "rotary": {"positions": "rotary"},
    "norm": {"light": True},
    "scale": {"scaled": True},
    "muon": {"optimizer": "muon", "muon_learning_rate": 0.05, "learning_rate": 0.06},
    "before": {"before": 3},
}
TABLES = "tables"  # apart: a row for pairs and triples of characters
STEPS = 420  # of a short run
SIZE, *OTHERS = NAMES = [*IDEAS]
WAYS = {"reference": None, "timed": None, "textbook": [], SIZE: [SIZE]}
WAYS |= {f"{name} alone": [SIZE, name] for name in OTHERS}
WAYS |= {f"up to {NAMES[i]}": NAMES[: i + 1] for i in range(2, len(NAMES) - 2)}
WAYS |= {f"without {name}": [x for x in NAMES if x != name] for name in NAMES}
WAYS |= {"whole": NAMES, "tables": [*NAMES, TABLES], "record": NAMES}
LONGER = 640  # steps of the record: the whole, until it is as good as the target
ONCE = "reference", "textbook", f"without {SIZE}"  # of the large size: from one seed


def recipe_of(ideas=IDEAS, **changes):
    """Return nanoGPT's recipe cut to `STEPS`, with ideas."""
    settings = {"steps": STEPS, "warmup": STEPS // 20}
    for idea in ideas:
        settings |= {"ngrams": (2048, 4096)} if idea == TABLES else IDEAS[idea]
    return Recipe(**settings | changes)


class Refused(ValueError):
    """An entry broke a rule; says which."""


@cache
def parts(corpus):
    """Return a vocabulary's size, and the text's parts: training, tuning, judging."""
    text = load_corpus(corpus)
    tokenizer = CharTokenizer(text)
    training, held = split(torch.from_numpy(tokenizer.encode_array(text)))
    half = len(held) // 2
    return tokenizer.vocab_size, training, held[:half], held[half:]


def check(model, windows, vocab_size, most):
    """Raise Refused unless this is a model by the rules.

    Parameters
    ----------
    model : object
    windows : int64 Tensor of shape (batch, CONTEXT)
    vocab_size, most : int
        ``most`` is how many numbers it may hold.
    """
    if not isinstance(model, nn.Module):
        raise Refused(f"train must return a torch.nn.Module, not {type(model).__name__}")
    if (held := numbers(model)) > most:
        raise Refused(f"{held:,} parameters and buffers: at most {most:,} are allowed")
    other = windows.clone()
    other[:, -1] = (other[:, -1] + 1) % vocab_size
    with torch.no_grad():
        logits, moved = model.eval()(windows), model(other)
    expected = (*windows.shape, vocab_size)
    found = getattr(logits, "shape", type(logits).__name__)
    if found != expected:
        raise Refused(f"the model must return logits {expected}, not {found}")
    if not torch.allclose(logits[:, :-1], moved[:, :-1], 0, 1e-3, equal_nan=True):
        raise Refused("a logit depends on a later token: the model looks ahead")


def numbers(model):
    """Count what a model holds: parameters and buffers, one that is shared once."""
    return sum(x.numel() for x in (*model.parameters(), *model.buffers()))


@cache
def warm_up():
    """Take a step, so that no run pays for what PyTorch loads with its first."""
    train(Recipe(steps=1, warmup=0), torch.arange(100) % 2, 2)


def judge(entry, corpus, seed, most=math.inf):
    """Train, time and judge one entry.

    Parameters
    ----------
    entry : callable
        Given copies of the ids to train on and to tune on, the size of the vocabulary and
        a seed, it returns a model: ids (batch, CONTEXT) to logits. It never sees the rest.
    corpus : str
    seed : int
    most : int, optional
        How many parameters it may have.

    Returns
    -------
    dict
        ``parameters``, ``loss``, ``seconds`` (of the processor) and ``wall``.

    Raises
    ------
    Refused
        If the entry fails or breaks a rule.
    """
    warm_up()
    vocab_size, *shown, hidden = parts(corpus)
    shown = [ids.clone() for ids in shown]  # a view would let it see what it is a part of
    start, worked = time.perf_counter(), time.process_time()
    try:
        model = entry(*shown, vocab_size, seed)
        worked, wall = time.process_time() - worked, time.perf_counter() - start
        check(model, hidden[: 2 * CONTEXT].long().view(2, CONTEXT), vocab_size, most)
        loss = estimate(model, hidden, CONTEXT, SETTINGS["windows"])
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"it failed: {type(error).__name__}: {error}") from error
    if not math.isfinite(loss):
        raise Refused(f"its loss is {loss}")
    found = {"parameters": numbers(model), "loss": round(loss, 4)}
    return found | {
        "seconds": round(max(worked, 0.001), 3),
        "wall": round(max(wall, 0.001), 3),
    }


def entry_of(way, steps=None):
    """Return one of the ways, or so many steps of it, as an entry; and its tokens."""
    changes = {} if steps is None else {"steps": steps, "warmup": 0}
    if way == "record":
        changes = {"steps": LONGER} | changes
    ideas = WAYS[way]  # none, for the reference
    recipe = Recipe(**changes) if ideas is None else recipe_of(ideas, **changes)

    def entry(training, tuning, vocab_size, seed):
        return train(recipe, training, vocab_size, seed)

    return entry, recipe.steps * recipe.batch * CONTEXT


def plan(small):
    """All ways from three seeds, or one; or each for one step, on the sonnets."""
    how = {"group": "ways", "corpus": "sonnets" if small else SETTINGS["corpus"]}
    how |= {"steps": 1 if small else None}
    seeds = {way: 1 if small or way in ONCE else 3 for way in WAYS}
    return [how | {"way": w, "seed": s} for s in range(3) for w in WAYS if s < seeds[w]]


def run(folder, group, corpus, steps, way, seed):
    """Train in a way, and judge the model; of the reference that is timed, a part."""
    part = steps or (SETTINGS["reference_steps"] if way == "timed" else None)
    found = judge(entry_of(way, part)[0], corpus, seed)
    found.pop("wall")  # of a machine that does other things
    found = {"way": way, "seed": seed, "tokens": entry_of(way)[1]} | found
    if way == "timed":
        seconds = found["seconds"] * Recipe().steps / part
        found |= {"seconds": round(seconds, 2), "loss": None}
    return found


def summary(results):
    """Compare the whole with the reference, seed by seed."""
    rows = results["ways"]
    ours, theirs = ([r for r in rows if r["way"] == w] for w in ("record", "timed"))
    ratios = [b["seconds"] / a["seconds"] for a, b in zip(ours, theirs, strict=True)]
    reached = median(row["loss"] for row in ours) <= SETTINGS["target"]
    small = max(row["parameters"] for row in ours) <= SETTINGS["parameters"]
    holds = reached and small and min(ratios) >= SETTINGS["goal"]
    found = {"n": len(rows), "seeds": sorted({row["seed"] for row in rows})}
    interval = [round(min(ratios), 2), round(max(ratios), 2)]
    return found | {"interval": interval, "verdict": verdict(holds)}
