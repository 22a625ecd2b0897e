"""Masked words: what BERT was trained to do (Devlin et al. 2019).

Some places of a text are chosen, most of them hidden behind [MASK], and the model is asked
what stood there. `MaskedBert` is the course's own `lmcourse.bert.Bert` with a head that
answers; `lmcourse.mini_bert` makes a small one of poems.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from lmcourse.bert import Bert
from lmcourse.gpt.optimizers import Muon
from lmcourse.ngrams import NgramModel

__all__ = ["MaskedBert", "between", "mask_tokens", "masked_loss", "place_losses", "train"]

SHARE = 0.15  # of the places are asked for; of these, 80 % hidden, 10 % swapped, 10 % kept


def mask_tokens(ids, tokenizer, generator, share=SHARE):
    """Choose places at random and hide them, as in Devlin et al. (2019), section 3.1.

    A chosen place becomes [MASK] with a probability of 80 %, another piece with one of
    10 %, and stays as it is else. Special tokens are never chosen and never put in.

    Parameters
    ----------
    ids : int Tensor of shape (batch, tokens)
    tokenizer : PreTrainedTokenizerFast
        Of a BERT.
    generator : torch.Generator
        On the CPU. Each call draws new places: call it anew in every epoch.
    share : float
        The probability that a place is chosen.

    Returns
    -------
    inputs : int Tensor of shape (batch, tokens)
        What the model is shown.
    chosen : bool Tensor of shape (batch, tokens)
        Where it is asked.
    """
    special = torch.tensor(tokenizer.all_special_ids)
    pieces = torch.arange(len(tokenizer))
    pieces = pieces[~torch.isin(pieces, special)]
    draw, how = torch.rand(2, *ids.shape, generator=generator)  # (batch, tokens) each
    chosen = (draw < share) & ~torch.isin(ids, special)
    others = pieces[torch.randint(len(pieces), ids.shape, generator=generator)]
    inputs = torch.where(chosen & (how < 0.9), others, ids)
    return inputs.masked_fill(chosen & (how < 0.8), tokenizer.mask_token_id), chosen


class MaskedBert(nn.Module):
    """A BERT and the head that guesses hidden pieces (Devlin et al. 2019, appendix A).

    The head is a linear layer, GELU and a norm; then each piece is scored by the product
    with its own row of the word embeddings, plus a bias.

    Parameters
    ----------
    config : BertConfig
    """

    def __init__(self, config):
        super().__init__()
        self.bert = Bert(config, pooler=False)
        self.pad = config.pad_token_id
        for block in self.bert.layers:
            block.dropout.p = config.hidden_dropout_prob
        d_model = config.hidden_size
        norm = nn.LayerNorm(d_model, eps=config.layer_norm_eps)
        self.head = nn.Sequential(nn.Linear(d_model, d_model), nn.GELU(), norm)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        for table in self.bert.embeddings.children():
            if isinstance(table, nn.Embedding):
                nn.init.normal_(table.weight, std=config.initializer_range)

    def forward(self, ids, places=None):
        """Score every piece of the vocabulary.

        Parameters
        ----------
        ids : int Tensor of shape (batch, tokens)
        places : bool Tensor of shape (batch, tokens), optional
            Where to score; the head is computed nowhere else.

        Returns
        -------
        Tensor of shape (batch, tokens, vocab_size), or (places, vocab_size)
        """
        states = self.bert(ids, ids != self.pad).last_hidden_state
        states = states if places is None else states[places]  # (places, d_model)
        return self.head(states) @ self.bert.embeddings.word.weight.T + self.bias


def masked_loss(model, ids, inputs, chosen):
    """Return the mean of minus the log probability of what stood at the chosen places.

    Parameters
    ----------
    model : MaskedBert
    ids, inputs : int Tensors of shape (batch, tokens)
        The text, and what the model is shown of it.
    chosen : bool Tensor of shape (batch, tokens)
    """
    return F.cross_entropy(model(inputs, chosen), ids[chosen])


@torch.no_grad()
def place_losses(model, ids, tokenizer, rounds=7):
    """Hide every place once, some in each round, and measure how well it is guessed.

    Parameters
    ----------
    model : MaskedBert
        In evaluation mode.
    ids : int Tensor of shape (batch, tokens)
    tokenizer : PreTrainedTokenizerFast
    rounds : int
        Hidden places are this far apart.

    Returns
    -------
    Tensor of shape (batch, tokens)
        Minus the log probability of each piece; 0 at special tokens.
    """
    ordinary = ~torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
    losses = torch.zeros(ids.shape)
    for first in range(rounds):
        turn = torch.arange(ids.shape[1]) % rounds == first  # (tokens,)
        chosen = ordinary & turn
        shown = ids.masked_fill(chosen, tokenizer.mask_token_id)
        logits = model(shown, chosen)  # (places, vocab_size)
        losses[chosen] = F.cross_entropy(logits, ids[chosen], reduction="none")
    return losses


def between(ids, vocab_size):
    """Count pairs of neighbours, and guess a piece from the ones on both its sides.

    In a chain of pairs P(piece | left, right) is P(piece | left) P(right | piece), made to
    sum to 1. The pairs are smoothed as in `lmcourse.ngrams`.

    Parameters
    ----------
    ids : int array of shape (tokens,)
        The text that is counted.
    vocab_size : int

    Returns
    -------
    callable
        From left and right, int arrays of shape (places,), to the log probabilities of
        every piece between them, (places, vocab_size).
    """
    pairs = NgramModel(ids, 2, vocab_size)
    table = np.log([pairs.following([piece]) for piece in range(vocab_size)])

    def guess(left, right):
        scores = table[left] + table.T[right]  # (places, vocab_size)
        return scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True)

    return guess


def _optimizers(model, settings):
    """Muon for the matrices of the layers and the head, AdamW for the rest."""
    hidden, rest = [], []
    for name, weight in model.named_parameters():
        inside = weight.ndim == 2 and "embeddings" not in name
        (hidden if inside else rest).append(weight)
    decay, rate = settings["weight_decay"], settings["learning_rate"]
    return [
        Muon(hidden, settings["muon_learning_rate"]),
        torch.optim.AdamW(rest, rate, weight_decay=decay),
    ]


def train(model, ids, tokenizer, settings, report=None):
    """Train a model to guess hidden pieces; new places are hidden at every step.

    Parameters
    ----------
    model : MaskedBert
    ids : list of int Tensors of shape (tokens,)
        Passages.
    tokenizer : PreTrainedTokenizerFast
    settings : dict
        ``steps``, ``batch``, ``share`` of the places to ask for, ``learning_rate``,
        ``muon_learning_rate``, ``weight_decay`` and ``seed``.
    report : callable, optional
        Given the step and its loss, once a step.
    """
    random = torch.Generator().manual_seed(settings["seed"])
    optimizers = _optimizers(model, settings)
    schedules = [
        torch.optim.lr_scheduler.OneCycleLR(
            optimizer,
            optimizer.defaults["lr"],
            settings["steps"],
            pct_start=0.1,
            cycle_momentum=False,
        )
        for optimizer in optimizers
    ]
    model.train()
    for step in range(settings["steps"]):
        rows = torch.randint(len(ids), (settings["batch"],), generator=random)
        batch = pad_sequence([ids[row] for row in rows], batch_first=True)
        inputs, chosen = mask_tokens(batch, tokenizer, random, settings["share"])
        loss = masked_loss(model, batch, inputs, chosen)
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for mover in (*optimizers, *schedules):
            mover.step()
        if report:
            report(step + 1, loss.item())
    model.eval()
