"""Many little tasks in one model: each text is of one of them, told by examples alone.

A text is 24 questions, each with its answer. Which answer a question has is drawn for every
text; but questions come in pairs, the same in all texts, that always share theirs. One
answer in ten is drawn without looking at the task. One task in sixteen is held back.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.repeats import TEXT, Repeater

QUESTIONS, ANSWERS, NOISE = 16, 4, 0.1
PAIRS = torch.arange(QUESTIONS) % 8  # question → its pair: 0 and 8, 1 and 9, …
EXAMPLES = TEXT // 2
TASKS = ANSWERS ** (QUESTIONS // 2)  # there are so many; any number below stands for one


def draw_tasks(count, dice, held=False):
    """Return the right answers of each pair in so many tasks, (count, 8).

    Of those held back if ``held``, else of the others.
    """
    order = torch.randperm(TASKS, generator=torch.Generator().manual_seed(0))
    pool = order[: TASKS // 16] if held else order[TASKS // 16 :]
    numbers = pool[torch.randint(len(pool), (count, 1), generator=dice)]
    return numbers // ANSWERS ** torch.arange(QUESTIONS // 2) % ANSWERS


def texts(tasks, dice):
    """Return a text of each task, (tasks, 48): question, answer, question, answer …

    Answers are the tokens from 16 on.
    """
    asked = torch.randint(QUESTIONS, (len(tasks), EXAMPLES), generator=dice)
    right = tasks.gather(1, PAIRS[asked])  # (tasks, examples)
    other = torch.randint(ANSWERS, right.shape, generator=dice)
    wrong = torch.rand(right.shape, generator=dice) < NOISE
    told = QUESTIONS + torch.where(wrong, other, right)
    return torch.stack([asked, told], -1).flatten(1)  # (tasks, 48)


def shuffled(ids, dice):
    """Return texts whose answers have changed places, each text's among themselves."""
    order = torch.rand(len(ids), EXAMPLES, generator=dice).argsort(1)
    mixed = ids.clone()
    mixed[:, 1::2] = ids[:, 1::2].gather(1, order)
    return mixed


def answer_costs(model, ids, targets=None):
    """Return what each answer costs, in nats, (texts, 24).

    Parameters
    ----------
    model : Repeater
    ids : int64 Tensor of shape (texts, 48)
    targets : int64 Tensor of shape (texts, 48), optional
        Whose answers are right, if the text does not say it.
    """
    logits = model(ids)[0][:, ::2].mT  # at each question: (texts, 32, 24)
    wanted = (ids if targets is None else targets)[:, 1::2]
    return F.cross_entropy(logits, wanted, reduction="none")


def learn(seed, steps, rate, known=None, batch=32):
    """Train a model on texts of ever other tasks, or of so many; none is held back.

    Returns
    -------
    model : Repeater
    history : list of float
        The loss of each step, in nats an answer.
    """
    torch.manual_seed(seed)
    dice = torch.Generator().manual_seed(seed)
    tasks = draw_tasks(known or 1, dice)
    model, history = Repeater(), []
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for step in range(steps):
        up, down = (step + 1) / 50, (steps - step) / (0.2 * steps)
        optimizer.param_groups[0]["lr"] = rate * min(1, up, down)
        each = torch.randint(len(tasks), (batch,), generator=dice)
        drawn = tasks[each] if known else draw_tasks(batch, dice)
        loss = answer_costs(model, texts(drawn, dice)).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        history.append(loss.item())
    return model, history


def seen_before(ids, pairs=False):
    """Return how often each question stood before with each answer, (texts, 24, 4).

    With ``pairs`` either question of its pair counts.
    """
    asked = PAIRS[ids[:, ::2]] if pairs else ids[:, ::2]
    told = F.one_hot(ids[:, 1::2] - QUESTIONS, ANSWERS).float()  # (texts, 24, 4)
    alike = (asked[:, :, None] == asked[:, None, :]).float().tril(-1)
    return alike @ told


def counted(ids, trust, pairs=False):
    """Return what each answer costs somebody who counts, (texts, 24).

    Each answer to the question so far speaks for itself; what is right follows by Bayes'
    rule. With ``pairs`` and the true ``trust`` nobody who expects all tasks alike can do
    better.

    Parameters
    ----------
    ids : int64 Tensor of shape (texts, 48)
    trust : float
        The probability that an answer in a text is the right one.
    pairs : bool
        Whether answers to the other question of the pair count, too.
    """
    other = (1 - trust) / (ANSWERS - 1)
    right = (seen_before(ids, pairs) * math.log(trust / other)).softmax(-1)
    share = other + (trust - other) * right  # (texts, 24, 4)
    return -share.gather(-1, ids[:, 1::2, None] - QUESTIONS)[..., 0].log()


def copied(ids, trust):
    """Return what each answer costs somebody who copies the last one of the question.

    ``trust`` is the probability that the copy gets; the others share the rest, and where
    nothing can be copied, all.
    """
    asked, told = ids[:, ::2], ids[:, 1::2]
    alike = (asked[:, :, None] == asked[:, None, :]).tril(-1)  # (texts, 24, 24)
    last = (alike * torch.arange(1, EXAMPLES + 1)).max(-1).values  # 0: none
    copy = told.gather(1, (last - 1).clamp(min=0))
    hit = torch.where(copy == told, trust, (1 - trust) / (ANSWERS - 1))
    return -torch.where(last > 0, hit, 1 / ANSWERS).log()
