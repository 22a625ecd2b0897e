"""Does a small model learn a task from the examples in its window, or look one up?

What varies: whether each training text is of any of 61,440 tasks, or of one of 16 that come
again and again; how many examples come before. The learning rate of each kind is chosen on
texts of their own, from three other seeds.

Rivals: copying the question's last answer; counting all its earlier answers; counting those
of its pair, too. How much they trust what they find is chosen on the same texts.

Null: the answers of each text are shuffled among its questions.

Statistic: the loss in nats of each of the last twelve answers, of tasks held out from all
training. The interval is that of counting's loss less the model's, over the seeds.
"""

from functools import partial
from itertools import product

import torch

from lmcourse import in_context
from lmcourse.repeats import Repeater
from lmcourse.training_loop import train_scheduled
from lmcourse.weights import save_model
from studies.harness import alike, best_rate, count, paired

CHAPTER = "scaling"
CHECKPOINTS = ("in-context",)
CLAIM = (
    "Shown examples of a task it has never met, a small model predicts answers better than "
    "counting the question's earlier answers does"
)
RIVAL = "copying the question's last answer; counting all its earlier answers"
NULL = "the answers of each text are shuffled"
KINDS = {"new": None, "known": 16}  # how many tasks; None: each text has a new one
SEEDS = [0, 1, 2, 3, 4]
STEPS = 1200
TUNING = [97, 98, 99]  # seeds that choose the learning rate
RATES = [3.125e-4, 6.25e-4, 1.25e-3, 2.5e-3, 5e-3, 1e-2, 2e-2]
TRUST = [0.5, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95]
SETTINGS = {"kinds": KINDS, "steps": STEPS, "tuning": TUNING, "rates": RATES}
SETTINGS |= {"trust": TRUST, "texts": 2000, "last": 12}
RIVALS = {
    "copy": in_context.copy_losses,
    "count": in_context.count_losses,
    "count pairs": partial(in_context.count_losses, pairs=True),
}


def plan(small):
    """Return the settings of all runs: learning rates, then models, then the rivals.

    Parameters
    ----------
    small : bool
        Whether to return one rate and one seed of each kind, with two steps.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``. "tuning" and "runs": ``kind``, the tasks of
        the training, "new" (any) or "known" (sixteen); ``seed``; ``steps`` of training; of
        "tuning" also ``rate``, the learning rate that is tried. "rivals": ``way``, the
        rival, "copy", "count" or "count pairs".
    """
    rates = RATES[:1] if small else RATES
    seeds = SEEDS[:1] if small else SEEDS
    tuning_seeds = TUNING[:1] if small else TUNING
    steps = 2 if small else STEPS
    settings = [
        {"group": "tuning", "kind": kind, "seed": seed, "rate": rate, "steps": steps}
        for kind, rate, seed in product(KINDS, rates, tuning_seeds)
    ]
    settings += [
        {"group": "runs", "kind": kind, "seed": seed, "steps": steps}
        for seed, kind in product(seeds, KINDS)
    ]
    return settings + [{"group": "rivals", "way": name} for name in RIVALS]


def sample_held_out(seed):
    """Return 2,000 texts, each of a task that is held out from training.

    Parameters
    ----------
    seed : int
        Of all that is drawn at random.

    Returns
    -------
    int64 Tensor of shape (2000, 48)
        Each text has 24 questions (0 to 15), each followed by its answer (16 to 19).
    """
    generator = torch.Generator().manual_seed(seed)
    tasks = in_context.sample_tasks(SETTINGS["texts"], generator, held_out=True)
    return in_context.sample_texts(tasks, generator)


def mean_of_last(losses):
    """Return the mean loss of the last twelve answers of texts, a float in nats.

    ``losses`` : Tensor (texts, 24), of the answers of each text in their order.
    """
    return round(losses[:, -SETTINGS["last"] :].mean().item(), 4)


def mean_by_example(losses):
    """Return the mean loss after 0, 1, 2 … examples, a list of 24 floats in nats.

    ``losses`` : Tensor (texts, 24), of the answers of each text in their order.
    """
    return [round(loss, 4) for loss in losses.mean(0).tolist()]


def train_on_tasks(seed, steps, learning_rate, known=None, batch=32):
    """Train a model on texts of tasks.

    A task gives each of eight pairs of questions (0 to 15; 0 and 8 are a pair) one of four
    answers (16 to 19). A text is 24 questions of one task, each with its answer behind it:
    int64 ids (48,). One answer in ten is random.

    Parameters
    ----------
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.
    learning_rate : float
        Reached after 50 steps; it falls to zero over the last fifth.
    known : int, optional
        So many tasks come again and again. Default: each text is of a new one. No
        held-out task is among them.
    batch : int
        Texts a step.

    Returns
    -------
    model : Repeater
        Two layers of attention: from ids (texts, 48) to logits and attention weights.
    history : list of float
        The loss of each step, in nats an answer.
    """
    generator = torch.Generator().manual_seed(seed)
    known_tasks = in_context.sample_tasks(known or 1, generator)

    def sample(count):
        """Return ``count`` (int) new texts, int64 ids (count, 48)."""
        which = torch.randint(len(known_tasks), (count,), generator=generator)
        tasks = known_tasks[which] if known else in_context.sample_tasks(count, generator)
        return in_context.sample_texts(tasks, generator)

    return train_on_texts(sample, seed, steps, learning_rate, batch)


def train_on_texts(sample, seed, steps, learning_rate, batch=32):
    """Train a model on texts that a function draws.

    Parameters
    ----------
    sample : callable
        From a number of texts to such texts, int64 ids (texts, 48): question (0 to 15) and
        answer (16 to 19) in turn. The loss counts the answers only.
    seed : int
        Of the first weights.
    steps : int
        How many steps of training.
    learning_rate : float
        Reached after 50 steps; it falls to zero over the last fifth.
    batch : int
        Texts a step.

    Returns
    -------
    model : Repeater
        Two layers of attention: from ids (texts, 48) to logits and attention weights.
    history : list of float
        The loss of each step, in nats an answer.
    """
    torch.manual_seed(seed)
    model = Repeater()

    def loss_at(step):
        """Return the mean loss of a batch of new texts, in nats; ``step`` is not used."""
        return in_context.answer_losses(model, sample(batch)).mean()

    def share_at(step):
        """Return the share of the learning rate at a step: it rises, stays, and falls.

        ``step`` : int, from 0.
        """
        rising = (step + 1) / 50
        falling = (steps - step) / (0.2 * steps)
        return min(1, rising, falling)

    history = train_scheduled(model, loss_at, steps, learning_rate, share_at, max_norm=1.0)
    return model, history


def run(folder, group, kind="", seed=0, rate=None, steps=0, way=""):
    """Train one model, or test a rival.

    Parameters
    ----------
    folder : Path
        Holds the finished runs of the group "tuning"; ``in-context.safetensors`` is written
        there, the model of kind "new" from seed 0.
    group : {"tuning", "runs", "rivals"}
        "tuning" tries a learning rate, "runs" trains at the best one and tests, "rivals"
        tests what counts or copies.
    kind : {"new", "known"}
        The tasks of the training texts: any, or 16.
    seed : int
        Of the first weights, and of all that is drawn.
    rate : float, optional
        The learning rate. Default: the tuned one.
    steps : int
        How many steps of training.
    way : str
        The rival: "copy" the question's last answer, "count" all its earlier answers, or
        "count pairs", those of its pair, too.

    Returns
    -------
    dict
        Losses are in nats an answer.

        - "rivals": ``way``, the rival's name; ``value``, its trust, the probability that it
          gives to what it finds, 0 to 1, chosen on other texts; ``loss`` and ``examples``,
          as of "runs",
        - "tuning": ``kind``, ``seed``, ``rate``, and ``validation``, the loss on tuning
          texts,
        - "runs": ``kind``, ``seed``, ``rate``; ``loss``, the mean of the last twelve
          answers; ``examples``, a list of the mean loss after 0, 1, 2 … examples;
          ``shuffled``, the loss if the answers before were shuffled; ``history``, the
          training loss in about 60 means.
    """
    if group == "rivals":
        return rival_losses(way)
    rate = rate or best_rate(folder, kind=kind)
    return train_and_test(folder, group, kind, seed, rate, steps)


def rival_losses(name):
    """Return the loss of a rival whose trust is chosen on other texts.

    Trust is one of seven probabilities, 0.5 to 0.95.

    Parameters
    ----------
    name : str
        "copy" (the question's last answer), "count" (all its earlier answers) or "count
        pairs" (those of its pair, too).

    Returns
    -------
    dict
        ``way``, the name; ``value``, the trust, the probability that it gives to what it
        finds, 0 to 1; ``loss``, the mean of the last twelve answers, in nats; ``examples``,
        the mean loss after 0, 1, 2 … examples.
    """
    tuning_texts = sample_held_out(10**6)
    test_texts = sample_held_out(10**6 + 1)
    losses_of = RIVALS[name]
    best = min(TRUST, key=lambda trust: mean_of_last(losses_of(tuning_texts, trust)))
    losses = losses_of(test_texts, best)
    return {
        "way": name,
        "value": best,
        "loss": mean_of_last(losses),
        "examples": mean_by_example(losses),
    }


def train_and_test(folder, group, kind, seed, rate, steps):
    """Train one model, and test it on tasks that it has not met.

    Parameters
    ----------
    folder : Path
        Where ``in-context.safetensors`` is written: of the group "runs", the model of kind
        "new" from seed 0.
    group : {"tuning", "runs"}
        Whether it is tested on tuning texts alone, or on test texts.
    kind : {"new", "known"}
        The tasks of the training texts: any, or 16.
    seed : int
        Of the first weights, and of all that is drawn.
    rate : float
        The highest learning rate.
    steps : int
        How many steps of training.

    Returns
    -------
    dict
        ``kind``, ``seed``, ``rate``. Of the group "tuning" ``validation``, the mean loss of
        the last twelve answers of tuning texts, in nats. Of "runs" ``loss``, the same on
        test texts; ``examples``, the mean loss after 0, 1, 2 … examples; ``shuffled``, the
        loss if the answers before were shuffled; ``history``, the training loss in about 60
        means.
    """
    tuning_texts = sample_held_out(10**6)
    test_texts = sample_held_out(10**6 + 1)
    model, history = train_on_tasks(seed, steps, rate, KINDS[kind])
    row = {"kind": kind, "seed": seed, "rate": rate}
    if group == "tuning":
        with torch.no_grad():
            losses = in_context.answer_losses(model, tuning_texts)
        return row | {"validation": mean_of_last(losses)}
    if kind == "new" and seed == SEEDS[0]:
        save_model(folder / "in-context.safetensors", model, {"steps": steps})
    mixed = in_context.shuffle_answers(test_texts, torch.Generator().manual_seed(seed))
    with torch.no_grad():
        losses = in_context.answer_losses(model, test_texts)
        mixed_losses = in_context.answer_losses(model, mixed, test_texts)
    row |= {"loss": mean_of_last(losses), "examples": mean_by_example(losses)}
    row["shuffled"] = mean_of_last(mixed_losses)
    every = max(1, steps // 60)
    means = torch.tensor(history[: steps // every * every]).view(-1, every).mean(1)
    return row | {"history": [round(mean, 3) for mean in means.tolist()]}


def summary(results):
    """Compare counting with the model of all tasks, seed by seed.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "runs", one a model: ``kind`` of its training
        tasks, "new" (all) or "known"; ``seed``; ``loss``, the mean of the last twelve
        answers of a text, in nats. Those of "rivals": ``way``, "count" for one; ``loss``.

    Returns
    -------
    dict
        ``n``, the number of outcomes of "runs", and their ``seeds``; ``interval``, [lowest,
        highest] over seeds of counting's loss less the model's; ``verdict``, "holds" or
        "not so": whether every model of all tasks has a lower loss than counting.
    """
    model_losses = [row["loss"] for row in alike(results["runs"], kind="new")]
    (counting,) = (row["loss"] for row in alike(results["rivals"], way="count"))
    holds = max(model_losses) < counting
    counting_losses = [counting] * len(model_losses)
    return count(results["runs"]) | paired(counting_losses, model_losses, holds)
