"""Many little tasks in one model: each text is of one of them, shown by examples alone.

A text is 24 questions, each with its answer. Which answer a question has is drawn for every
text; but questions come in pairs, the same in all texts, that always share their answer.
One answer in ten is random. One task in sixteen is held out from training.
"""

import math
from functools import cache

import torch
import torch.nn.functional as F

from lmcourse.repeats import TEXT

QUESTIONS = 16
ANSWERS = 4
NOISE = 0.1  # the probability that an answer is random
PAIRS = torch.arange(QUESTIONS) % 8  # question → its pair: 0 and 8, 1 and 9, …
EXAMPLES = TEXT // 2  # of a text
TASKS = ANSWERS ** (QUESTIONS // 2)  # there are so many; any number below stands for one


@cache
def task_numbers():
    """Return the numbers of the held-out tasks, and those of the others, shuffled once.

    There are 4⁸ tasks, numbered from 0: eight pairs of questions with one of four answers
    each. Two int64 Tensors come back: one task in sixteen, (4096,), and the others,
    (61440,). The same in every call.
    """
    order = torch.randperm(TASKS, generator=torch.Generator().manual_seed(0))
    return order[: TASKS // 16], order[TASKS // 16 :]


def sample_tasks(count, generator, held_out=False):
    """Return random tasks: the right answer of each of eight pairs of questions.

    Parameters
    ----------
    count : int
        How many tasks.
    generator : torch.Generator
    held_out : bool
        Whether to draw from the held-out tasks, instead of from the others.

    Returns
    -------
    int64 Tensor of shape (count, 8)
        Answers from 0 to 3.
    """
    held, others = task_numbers()
    pool = held if held_out else others
    numbers = pool[torch.randint(len(pool), (count, 1), generator=generator)]
    # A task's answers are the digits of its number to the base of four.
    return numbers // ANSWERS ** torch.arange(QUESTIONS // 2) % ANSWERS


def sample_texts(tasks, generator):
    """Return a text of each task: question, answer, question, answer …, 24 of both.

    Questions are random. Question q and q + 8 are a pair, with the same answer; one answer
    in ten is drawn at random instead (`NOISE`).

    Parameters
    ----------
    tasks : int64 Tensor of shape (texts, 8)
        The answer, 0 to 3, to each pair of questions of a task.
    generator : torch.Generator

    Returns
    -------
    int64 Tensor of shape (texts, 48)
        Questions are 0 to 15, answers the tokens 16 to 19.
    """
    questions = torch.randint(QUESTIONS, (len(tasks), EXAMPLES), generator=generator)
    right = tasks.gather(1, PAIRS[questions])  # (texts, examples)
    by_chance = torch.randint(ANSWERS, right.shape, generator=generator)
    noisy = torch.rand(right.shape, generator=generator) < NOISE
    answers = QUESTIONS + torch.where(noisy, by_chance, right)
    return torch.stack([questions, answers], -1).flatten(1)


def shuffle_answers(ids, generator):
    """Return texts in which the answers of each text are shuffled among themselves.

    Parameters
    ----------
    ids : int64 Tensor of shape (texts, 48)
        Question and answer in turn: questions are 0 to 15, answers 16 to 19.
    generator : torch.Generator

    Returns
    -------
    int64 Tensor of shape (texts, 48)
    """
    order = torch.rand(len(ids), EXAMPLES, generator=generator).argsort(1)
    shuffled = ids.clone()
    shuffled[:, 1::2] = ids[:, 1::2].gather(1, order)
    return shuffled


def answer_losses(model, ids, targets=None):
    """Return the loss of each answer.

    Parameters
    ----------
    model : Repeater
        From ids to a tuple whose first member is the logits of the next token.
    ids : int64 Tensor of shape (texts, 48)
        Question and answer in turn: questions are 0 to 15, answers 16 to 19.
    targets : int64 Tensor of shape (texts, 48), optional
        Texts whose answers are taken as right, in place of those in ``ids``.

    Returns
    -------
    Tensor of shape (texts, 24)
        In nats.
    """
    logits = model(ids)[0][:, ::2].mT  # at each question: (texts, 32, 24)
    answers = (ids if targets is None else targets)[:, 1::2]
    return F.cross_entropy(logits, answers, reduction="none")


def count_answers(ids, pairs=False):
    """Return how often the question of each answer stood before it with each of 4 answers.

    Parameters
    ----------
    ids : int64 Tensor of shape (texts, 48)
        Question and answer in turn: questions are 0 to 15, answers 16 to 19.
    pairs : bool
        Whether either question of its pair counts: 0 and 8, 1 and 9, … are pairs.

    Returns
    -------
    Tensor of shape (texts, 24, 4)
        By question of the text and by answer.
    """
    questions = PAIRS[ids[:, ::2]] if pairs else ids[:, ::2]
    answers = F.one_hot(ids[:, 1::2] - QUESTIONS, ANSWERS).float()  # (texts, 24, 4)
    same = (questions[:, :, None] == questions[:, None, :]).float()
    return same.tril(-1) @ answers


def count_losses(ids, trust, pairs=False):
    """Return the loss of each answer for a model that counts answers in the text.

    Each answer to the question so far is evidence for itself; what is right follows by
    Bayes' rule. With ``pairs`` and the true ``trust`` no model that expects all tasks alike
    can do better.

    Parameters
    ----------
    ids : int64 Tensor of shape (texts, 48)
        Question and answer in turn: questions are 0 to 15, answers 16 to 19.
    trust : float
        The probability that an answer in a text is the right one.
    pairs : bool
        Whether answers to the other question of the pair count, too.

    Returns
    -------
    Tensor of shape (texts, 24)
        In nats.
    """
    wrong = (1 - trust) / (ANSWERS - 1)  # the probability of each answer but the right one
    evidence = count_answers(ids, pairs) * math.log(trust / wrong)
    right = evidence.softmax(-1)  # (texts, 24, 4), how probably each is the right one
    probs = wrong + (trust - wrong) * right  # of being the next answer in the text
    return -probs.gather(-1, ids[:, 1::2, None] - QUESTIONS)[..., 0].log()


def copy_losses(ids, trust):
    """Return the loss of each answer for a model that copies the question's last answer.

    Parameters
    ----------
    ids : int64 Tensor of shape (texts, 48)
        Question and answer in turn: questions are 0 to 15, answers 16 to 19.
    trust : float
        The probability that the copied answer gets; the other three share the rest. Where
        the question has not stood before, all four answers are equally likely.

    Returns
    -------
    Tensor of shape (texts, 24)
        In nats.
    """
    questions = ids[:, ::2]
    answers = ids[:, 1::2]
    same = (questions[:, :, None] == questions[:, None, :]).tril(-1)  # (texts, 24, 24)
    # Which of the examples, counted from 1, asked the same question last; 0: none.
    last = (same * torch.arange(1, EXAMPLES + 1)).max(-1).values  # (texts, 24)
    copy = answers.gather(1, (last - 1).clamp(min=0))
    prob = torch.where(copy == answers, trust, (1 - trust) / (ANSWERS - 1))
    return -torch.where(last > 0, prob, 1 / ANSWERS).log()
