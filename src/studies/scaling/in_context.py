"""Does a small model learn a task from examples in its window, or look one up?

Varied: whether each text of the training is of any of 61,440 tasks, or of one of 16 that
come again and again; how many examples stand before. Rates are chosen for each kind by
texts of their own, by three other seeds. Rivals: copying the last answer of the same
question; counting all its answers; counting those of its pair, too. What they trust is
chosen on the same texts. Null: the answers of a text change places. Statistic: nats for
each of the last twelve answers of tasks held out from all training; the interval is that
of how much more counting pays than the model, seed by seed.
"""

from functools import partial
from itertools import product

import torch

from lmcourse import in_context
from lmcourse.repeats import Repeater
from lmcourse.training_loop import train_scheduled
from lmcourse.weights import save_model
from studies.harness import best_rate, count, paired

CHAPTER = "scaling"
CHECKPOINTS = ("in-context",)
CLAIM = "Told a new task by examples, the model pays less than who counts the same question"
RIVAL = "copying the last answer of the same question; counting all of them"
NULL = "the answers of each text change places"
KINDS, SEEDS, STEPS = {"new": None, "known": 16}, [0, 1, 2, 3, 4], 1200
TUNING, RATES = [97, 98, 99], [3.125e-4, 6.25e-4, 1.25e-3, 2.5e-3, 5e-3, 1e-2, 2e-2]
TRUST = [0.5, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95]
SETTINGS = {"kinds": KINDS, "steps": STEPS, "tuning": TUNING, "rates": RATES}
SETTINGS |= {"trust": TRUST, "texts": 2000, "last": 12}
RIVALS = {
    "copy": in_context.copy_losses,
    "count": in_context.count_losses,
    "count pairs": partial(in_context.count_losses, pairs=True),
}


def plan(small):
    """Choose rates, then each kind from five seeds, and the rivals; or two steps each."""
    rates, seeds = (RATES[:1], SEEDS[:1]) if small else (RATES, SEEDS)
    steps, tuning = {"steps": 2 if small else STEPS}, TUNING[:1] if small else TUNING
    runs = [
        {"group": "tuning", "kind": kind, "seed": seed, "rate": rate}
        for kind, rate, seed in product(KINDS, rates, tuning)
    ]
    runs += [
        {"group": "runs", "kind": kind, "seed": seed} for seed in seeds for kind in KINDS
    ]
    return [each | steps for each in runs] + [{"group": "rivals", "way": w} for w in RIVALS]


def drawn(seed):
    """Return texts of tasks that were held out."""
    generator = torch.Generator().manual_seed(seed)
    return in_context.sample_texts(
        in_context.sample_tasks(SETTINGS["texts"], generator, held_out=True), generator
    )


def last(losses):
    """Return the mean of the last answers."""
    return round(losses[:, -SETTINGS["last"] :].mean().item(), 4)


def by_example(losses):
    """Return the mean cost after 0, 1, 2 … examples."""
    return [round(each, 4) for each in losses.mean(0).tolist()]


def train_on_tasks(seed, steps, learning_rate, known=None, batch=32):
    """Train a model on texts of tasks.

    Parameters
    ----------
    seed, steps : int
    learning_rate : float
        Reached after 50 steps; it falls to zero over the last fifth.
    known : int, optional
        So many tasks come again and again. Default: each text is of a new one. None is a
        held-out task.
    batch : int
        Texts a step.

    Returns
    -------
    model : Repeater
    history : list of float
        The loss of each step, in nats an answer.
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    known_tasks = in_context.sample_tasks(known or 1, generator)
    model = Repeater()

    def loss_at(step):
        which = torch.randint(len(known_tasks), (batch,), generator=generator)
        tasks = known_tasks[which] if known else in_context.sample_tasks(batch, generator)
        return in_context.answer_losses(
            model, in_context.sample_texts(tasks, generator)
        ).mean()

    def share_at(step):
        rising = (step + 1) / 50
        falling = (steps - step) / (0.2 * steps)
        return min(1, rising, falling)

    history = train_scheduled(model, loss_at, steps, learning_rate, share_at, max_norm=1.0)
    return model, history


@torch.no_grad()
def run(folder, group, kind="", seed=0, rate=None, steps=0, way=""):
    """Train one model, or let a rival answer."""
    choose, judge = drawn(10**6), drawn(10**6 + 1)
    if way:
        best = min(TRUST, key=lambda trust: last(RIVALS[way](choose, trust)))
        losses = RIVALS[way](judge, best)
        return {
            "way": way,
            "value": best,
            "loss": last(losses),
            "examples": by_example(losses),
        }
    rate = rate or best_rate(folder, kind=kind)
    with torch.enable_grad():
        model, history = train_on_tasks(seed, steps, rate, KINDS[kind])
    found = {"kind": kind, "seed": seed, "rate": rate}
    if group == "tuning":
        return found | {"validation": last(in_context.answer_losses(model, choose))}
    if kind == "new" and seed == SEEDS[0]:
        save_model(folder / "in-context.safetensors", model, {"steps": steps})
    losses = in_context.answer_losses(model, judge)
    mixed = in_context.shuffle_answers(judge, torch.Generator().manual_seed(seed))
    found |= {"loss": last(losses), "examples": by_example(losses)}
    found["shuffled"] = last(in_context.answer_losses(model, mixed, judge))
    every = max(1, steps // 60)
    means = torch.tensor(history[: steps // every * every]).view(-1, every).mean(1)
    return found | {"history": [round(each, 3) for each in means.tolist()]}


def summary(results):
    """Compare counting with the model, seed by seed."""
    ours = [each["loss"] for each in results["runs"] if each["kind"] == "new"]
    rival = [each["loss"] for each in results["rivals"] if each["way"] == "count"] * len(
        ours
    )
    return count(results["runs"]) | paired(rival, ours, max(ours) < min(rival))
