"""From a model that writes to one that does as asked: dialogues, preferences, rewards.

A dialogue is a request and an answer. Supervised fine-tuning lowers the loss of the answer
alone. A preference is a pair of answers of which somebody likes one better; it can be
turned into a reward (Bradley and Terry 1952), or move the model by itself (Rafailov et al.
2023). In this course the request is a letter, and the answer a line of verse.
"""

import copy
import re
from collections import Counter

import numpy as np
import torch
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR

from lmcourse.gpt.generation import generate
from lmcourse.training_loop import train_model

WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
PROPERTIES = ("characters", "words", "echoes", "capitals", "marks")
LONGEST = 59  # characters of an answer: request, answer and its end fit into our GPT
RATE = 1e-4  # the highest learning rate of DPO

# --- what can be measured of a line ---------------------------------------------------


def properties(line):
    """Return what can be counted in a line.

    Parameters
    ----------
    line : str

    Returns
    -------
    dict of str to int
        ``characters``, how many there are; ``words``, runs of letters with apostrophes and
        hyphens; ``echoes``, how many of the words begin with the same letter as another
        word of the line, in either case; ``capitals``, capital letters; ``marks`` of
        punctuation, those of ,.;:!?—. In this order.
    """
    words = WORD.findall(line)
    first_letters = Counter(word[0].lower() for word in words)
    return {
        "characters": len(line),
        "words": len(words),
        "echoes": sum(times for times in first_letters.values() if times > 1),
        "capitals": sum(letter.isupper() for letter in line),
        "marks": sum(letter in ",.;:!?—" for letter in line),
    }


def differences(first, second, names=PROPERTIES):
    """Return the properties of each first line less those of each second line.

    Parameters
    ----------
    first, second : list of str
        Of one length.
    names : sequence of str
        Which properties: "characters", "words", "echoes" (words that begin with the letter
        of another one), "capitals", "marks" of punctuation. Default: all, in this order.

    Returns
    -------
    float64 array of shape (pairs, names)
    """
    pairs = zip(first, second, strict=True)
    rows = [[properties(a)[name] - properties(b)[name] for name in names] for a, b in pairs]
    return np.array(rows, dtype=float).reshape(-1, len(names))


# --- dialogues ------------------------------------------------------------------------


def request(letter):
    """Return how a line is asked for that begins with a letter: ``"(T)\\n"``."""
    return f"({letter})\n"


def encode_dialogues(tokenizer, requests, answers):
    """Return dialogues as ids, and where the answers are.

    Parameters
    ----------
    tokenizer : CharTokenizer
    requests, answers : list of str
        As many of both; an answer holds the new line that ends it.

    Returns
    -------
    ids : int64 Tensor of shape (dialogues, tokens)
        Shorter dialogues are filled up with zeros.
    is_answer : bool Tensor of shape (dialogues, tokens)
        Neither the request nor what fills up.
    """
    asked = [tokenizer.encode(each) for each in requests]
    answered = [tokenizer.encode(each) for each in answers]
    tokens = max(len(a) + len(b) for a, b in zip(asked, answered, strict=True))
    ids = torch.zeros(len(asked), tokens, dtype=torch.int64)
    is_answer = torch.zeros(len(asked), tokens, dtype=torch.bool)
    for row, (a, b) in enumerate(zip(asked, answered, strict=True)):
        ids[row, : len(a) + len(b)] = torch.tensor(a + b)
        is_answer[row, len(a) : len(a) + len(b)] = True
    return ids, is_answer


def token_log_probs(logits, ids):
    """Return the log-probability of each token but the first, given those before it.

    Parameters
    ----------
    logits : Tensor of shape (batch, tokens, vocab_size)
        At each position those of the token after it; the last ones are not used.
    ids : int64 Tensor of shape (batch, tokens)

    Returns
    -------
    Tensor of shape (batch, tokens - 1)
        In nats.
    """
    log_probs = logits[:, :-1].log_softmax(-1)
    return log_probs.gather(-1, ids[:, 1:, None])[..., 0]


def answer_log_probs(model, ids, is_answer):
    """Return the log-probability of each answer as a whole, given its request.

    Parameters
    ----------
    model : callable
        From ids (batch, tokens) to logits (batch, tokens, vocab_size).
    ids : int64 Tensor of shape (batch, tokens)
        Each row a request, its answer, and what fills it up.
    is_answer : bool Tensor of shape (batch, tokens)
        True at the tokens of the answer.

    Returns
    -------
    Tensor of shape (batch,)
        In nats: a sum over the answer's tokens.
    """
    log_probs = token_log_probs(model(ids), ids)
    return (log_probs * is_answer[:, 1:]).sum(-1)


def answer_loss(logits, ids, is_answer):
    """Return the loss of supervised fine-tuning: the mean over the answers' tokens.

    Parameters
    ----------
    logits : Tensor of shape (batch, tokens, vocab_size)
    ids : int64 Tensor of shape (batch, tokens)
    is_answer : bool Tensor of shape (batch, tokens)
        The tokens whose loss counts; those of the request do not.

    Returns
    -------
    Tensor of one number
        In nats a token.
    """
    judged = is_answer[:, 1:]  # the first token has nothing before it
    return -(token_log_probs(logits, ids) * judged).sum() / judged.sum()


def write_answers(model, tokenizer, requests, seed=0, temperature=0.7):
    """Return an answer of the model to each request, list of str.

    An answer ends with its new line, which is left out, or after 59 characters.

    Parameters
    ----------
    model : GPT
    tokenizer : CharTokenizer
    requests : list of str
        All of one length, such as `request` makes for a line that begins with a letter.
    seed : int
        Of the draws.
    temperature : float
        Divides the logits before a character is drawn.
    """
    ids = torch.tensor([tokenizer.encode(each) for each in requests])
    generator = torch.Generator().manual_seed(seed)
    written = generate(model, ids, LONGEST, temperature, generator)[:, ids.shape[1] :]
    return [tokenizer.decode(row.tolist()).partition("\n")[0] for row in written]


# --- rewards --------------------------------------------------------------------------


def bradley_terry_loss(margins):
    """Return the loss of a reward that should be higher for what was chosen.

    The probability of the choice is the sigmoid of the margin (Bradley and Terry 1952).

    Parameters
    ----------
    margins : Tensor of shape (pairs,)
        The reward of the answer chosen, less that of the other.

    Returns
    -------
    Tensor of one number
        The mean, in nats a choice: log 2 if the reward is the same for all answers.
    """
    return -F.logsigmoid(margins).mean()


def fit_reward(differences, chosen_first, ridge=1.0):
    """Fit a reward that is a weighted sum of properties: a logistic regression.

    It minimises the sum of all pairs' losses, -log σ(reward of the chosen answer less that
    of the other), plus half the ridge times the sum of the squared weights, by Newton's
    method.

    Parameters
    ----------
    differences : array of shape (pairs, properties)
        Of each pair the first answer's properties less the second's.
    chosen_first : array of bool, of shape (pairs,)
        Whether the first answer was chosen.
    ridge : float
        How strongly large weights are penalised: above 0, so that they stay finite when all
        choices can be foretold.

    Returns
    -------
    float64 array of shape (properties,)

    Raises
    ------
    ValueError
        If the shapes don't fit each other, or the ridge is not above 0.
    """
    differences = np.asarray(differences, dtype=float)
    chosen_first = np.asarray(chosen_first, dtype=bool)
    if differences.ndim != 2 or chosen_first.shape != differences.shape[:1]:
        raise ValueError(
            f"differences {differences.shape} and choices {chosen_first.shape} "
            "must be (pairs, properties) and (pairs,)"
        )
    if not ridge > 0:
        raise ValueError(f"ridge {ridge} is not above 0")
    # With these signs every row is what was chosen less what was not.
    margins_of = np.where(chosen_first[:, None], differences, -differences)
    weights = np.zeros(differences.shape[1])
    for _ in range(100):
        step = _newton_step(margins_of, weights, ridge)
        size = 1.0  # halved until the loss falls: a full step may jump too far
        now = _reward_loss(margins_of, weights, ridge)
        while _reward_loss(margins_of, weights - size * step, ridge) > now and size > 1e-9:
            size /= 2
        weights = weights - size * step
        if np.abs(step).max(initial=0) < 1e-12:
            break
    return weights


def _reward_loss(margins_of, weights, ridge):
    """Return the sum of all pairs' losses and of a penalty of large weights, a float.

    Parameters
    ----------
    margins_of : float array of shape (pairs, properties)
        Of each pair the chosen answer's properties less the other one's.
    weights : float array of shape (properties,)
        Of each property in the reward.
    ridge : float
        By which half the sum of the squared weights is multiplied.
    """
    losses = np.logaddexp(0, -margins_of @ weights)
    return losses.sum() + ridge / 2 * weights @ weights


def _newton_step(margins_of, weights, ridge):
    """Return the step of Newton's method for `_reward_loss`, (properties,).

    That is the inverse Hessian times the gradient.

    Parameters
    ----------
    margins_of : float array of shape (pairs, properties)
        Of each pair the chosen answer's properties less the other one's.
    weights : float array of shape (properties,)
        Of each property in the reward.
    ridge : float
        By which half the sum of the squared weights is multiplied.
    """
    wrong = np.exp(-np.logaddexp(0, margins_of @ weights))  # how probable the other choice
    gradient = -margins_of.T @ wrong + ridge * weights
    curvature = (margins_of.T * (wrong * (1 - wrong))) @ margins_of
    return np.linalg.solve(curvature + ridge * np.eye(len(weights)), gradient)


def best_of(groups, score):
    """Return of each group of answers the one with the highest score: best of n.

    Parameters
    ----------
    groups : list of list of str
        The answers to each request.
    score : callable
        From an answer to a number; of equals the first is taken.

    Returns
    -------
    list of str
    """
    return [max(group, key=score) for group in groups]


# --- direct preference optimisation -----------------------------------------------------


def dpo_loss(chosen, rejected, reference_chosen, reference_rejected, beta=0.1):
    """Return the loss of direct preference optimisation (Rafailov et al. 2023).

    Parameters
    ----------
    chosen, rejected : Tensor of shape (pairs,)
        Log-probabilities, in nats, of the answer chosen and of the other one, as the model
        has them now.
    reference_chosen, reference_rejected : Tensor of shape (pairs,)
        The same as the model had them before training: they have no gradient.
    beta : float
        How much a nat of log-probability is worth as reward. The larger, the sooner a pair
        is settled, and the nearer to the reference the model stays.

    Returns
    -------
    Tensor of one number
        Log 2 at the start of a training.
    """
    gained = (chosen - reference_chosen) - (rejected - reference_rejected)
    return bradley_terry_loss(beta * gained)


def batches_of(count, batch, seed):
    """Yield indices for batches without end: all once, in random order, and again.

    Parameters
    ----------
    count : int
        How many things there are; the indices go from 0 to ``count - 1``.
    batch : int
        How many indices a batch has; the last of each round may have fewer.
    seed : int
        Of the orders.

    Yields
    ------
    int64 Tensor of shape (at most batch,)
    """
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield from torch.randperm(count, generator=generator).split(batch)


def train_answers(model, dialogues, steps, rate=1e-3, batch=32, seed=0):
    """Fine-tune a model on dialogues, so that it answers as they do.

    Parameters
    ----------
    model : GPT
        It is left as it is.
    dialogues : (Tensor, Tensor)
        The ids, int64 (dialogues, tokens), and whether each belongs to an answer, bool of
        the same shape.
    steps : int
    rate : float
        The learning rate of AdamW at the beginning; it falls to zero.
    batch, seed : int
        Dialogues of a batch; and of their order.

    Returns
    -------
    GPT
        A trained copy.
    """
    ids, is_answer = dialogues
    drawn = batches_of(len(ids), batch, seed)

    def loss_of(model):
        """Return the mean loss of ``model`` on the next batch, in nats: a Tensor."""
        rows = next(drawn)
        return answer_loss(model(ids[rows]), ids[rows], is_answer[rows])

    return _trained(model, loss_of, steps, rate)


def train_dpo(model, chosen, rejected, steps, beta=0.1, rate=RATE, batch=32, seed=0):
    """Train a model by direct preference optimisation on pairs of answers.

    Parameters
    ----------
    model : GPT
        It is left as it is: it is the reference.
    chosen, rejected : (Tensor, Tensor)
        Dialogues with the same requests: their ids, int64 (dialogues, tokens), and whether
        each belongs to the answer, bool of the same shape.
    steps : int
    beta, rate : float
        What log-probabilities gained is multiplied by; and the learning rate at the
        beginning, 1e-4 by default, which falls to zero.
    batch, seed : int
        Pairs of a batch; and of the order of the pairs.

    Returns
    -------
    GPT
        A trained copy.
    """
    reference = [reference_log_probs(model, *side) for side in (chosen, rejected)]
    drawn = batches_of(len(reference[0]), batch, seed)

    def loss_of(model):
        """Return the DPO loss of ``model`` on the next batch of pairs, a Tensor."""
        rows = next(drawn)
        now = [answer_log_probs(model, *(x[rows] for x in s)) for s in (chosen, rejected)]
        return dpo_loss(*now, *(each[rows] for each in reference), beta)

    return _trained(model, loss_of, steps, rate)


@torch.no_grad()
def reference_log_probs(model, ids, is_answer, batch=128):
    """Return the log-probability that the reference gives each answer, without gradients.

    Parameters
    ----------
    model : GPT
        The reference: a model whose weights do not change while another one is trained.
    ids : int64 Tensor of shape (dialogues, tokens)
    is_answer : bool Tensor of that shape
        Where the tokens of answers are.
    batch : int
        How many dialogues are read at a time: all at once may not fit into memory.

    Returns
    -------
    Tensor of shape (dialogues,)
        In nats: a sum over each answer's tokens.
    """
    parts = zip(ids.split(batch), is_answer.split(batch), strict=True)
    return torch.cat([answer_log_probs(model, *part) for part in parts])


def _trained(model, loss_of, steps, rate):
    """Return a copy of a model, trained by AdamW at a rate that falls to zero.

    It stays in evaluation mode: with dropout, the log-probabilities of model and reference
    would differ before anything is learned.

    Parameters
    ----------
    model : GPT
    loss_of : callable
        From the copy to the loss of one batch, a scalar Tensor to differentiate; each call
        takes the next batch.
    steps : int
    rate : float
        The learning rate at the beginning.
    """
    model = copy.deepcopy(model).requires_grad_(True)
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.0)
    scheduler = LambdaLR(optimizer, lambda step: 1 - step / steps)

    def loss_at(_step):
        """Return the loss of the next batch, without dropout, as a scalar Tensor.

        ``_step`` is not used: ``loss_of`` takes one batch after the other.
        """
        return loss_of(model.eval())

    train_model(model, loss_at, steps, [optimizer], [scheduler], max_norm=1.0)
    return model.requires_grad_(False)
