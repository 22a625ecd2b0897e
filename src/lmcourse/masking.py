"""Masked words: what BERT was trained to do (Devlin et al. 2019).

Some positions of a text are chosen, most of them hidden behind [MASK], and the model is
asked what stood there. `MaskedBert` is the course's own `lmcourse.bert.Bert` with a head
that answers; `lmcourse.mini_bert` loads a small one. Texts and positions stay on the CPU,
where they are drawn; a model takes what it is given to its own device.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import OneCycleLR

from lmcourse.bert import Bert
from lmcourse.ids import check_ids
from lmcourse.optimizers import Muon
from lmcourse.training_loop import train_model


def mask_tokens(ids, tokenizer, generator, share=0.15):
    """Choose positions at random and hide them, as in Devlin et al. (2019), section 3.1.

    A chosen position becomes [MASK] with a probability of 80 %, another piece with one of
    10 %, and stays as it is else. Special tokens are never chosen and never put in.

    Parameters
    ----------
    ids : int Tensor of shape (batch, tokens)
    tokenizer : PreTrainedTokenizerFast
        Of a BERT.
    generator : torch.Generator
        On the CPU. Each call draws new positions: call it anew in every epoch.
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
    replacements = torch.arange(len(tokenizer))
    replacements = replacements[~torch.isin(replacements, special)]
    draw, how = torch.rand(2, *ids.shape, generator=generator)  # (batch, tokens)
    chosen = (draw < share) & ~torch.isin(ids, special)
    drawn = torch.randint(len(replacements), ids.shape, generator=generator)
    inputs = torch.where(chosen & (how < 0.9), replacements[drawn], ids)
    hidden = chosen & (how < 0.8)
    return inputs.masked_fill(hidden, tokenizer.mask_token_id), chosen


def _split(total, parts, generator):
    """Divide a whole number into parts of one or more, all divisions equally likely.

    Parameters
    ----------
    total : int
        The number, at least ``parts``.
    parts : int
        Into how many.
    generator : torch.Generator

    Returns
    -------
    int64 Tensor of shape (parts,)
        They add up to ``total``.
    """
    # Where each part but the last ends: different numbers from 1 to total - 1.
    cuts = 1 + torch.randperm(total - 1, generator=generator)[: parts - 1].sort().values
    return torch.diff(cuts, prepend=cuts.new_zeros(1), append=cuts.new_tensor([total]))


def corrupt_spans(ids, sentinels, generator, share=0.15, length=3):
    """Cut spans out of a text, as in Raffel et al. (2020), section 3.1.4.

    Each span is replaced by a sentinel, a token of its own; the target names each sentinel
    and what it stands for, and ends in one more. Spans never touch.

    Parameters
    ----------
    ids : int Tensor of shape (tokens,)
        Without padding. The first and the last, [CLS] and [SEP], are kept; between them are
        two or more.
    sentinels : sequence of int
        The ids to use, one more than there are spans or longer.
    generator : torch.Generator
    share : float
        Of the tokens between the ends, which share is cut out: one token at least, and
        never all.
    length : float
        Of a span, on average, in tokens.

    Returns
    -------
    source, target : int Tensors of shape (left,), (written,)
        The text with a sentinel for each span; and for each span its sentinel and its
        tokens, then one sentinel more.

    Raises
    ------
    ValueError
        If the text is too short, or there are too few sentinels.
    """
    first = ids[:1]
    last = ids[-1:]
    ids = ids[1:-1]
    if len(ids) < 2:
        raise ValueError(f"of {len(ids)} tokens between the ends none can be cut out")
    hidden = min(max(round(share * len(ids)), 1), len(ids) - 1)
    spans = min(max(round(hidden / length), 1), len(ids) - hidden)
    if len(sentinels) <= spans:
        raise ValueError(f"{spans} spans need {spans + 1} sentinels, not {len(sentinels)}")
    gaps = _split(len(ids) - hidden + 2, spans + 1, generator)
    gaps[0] -= 1  # a text may begin or end with a span
    gaps[-1] -= 1
    sizes = torch.stack([gaps[:-1], _split(hidden, spans, generator)], 1).flatten()
    parts = ids.split([*sizes.tolist(), int(gaps[-1])])
    names = ids.new_tensor(sentinels)[:, None]
    source = [first]
    target = []
    for name, left, cut in zip(names, parts[:-1:2], parts[1::2], strict=False):
        source += [left, name]
        target += [name, cut]
    return torch.cat([*source, parts[-1], last]), torch.cat([*target, names[spans]])


class MaskedBert(nn.Module):
    """A BERT and the head that predicts hidden pieces (Devlin et al. 2019, appendix A).

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

    def forward(self, ids, positions=None):
        """Score every piece of the vocabulary.

        Parameters
        ----------
        ids : int Tensor of shape (batch, tokens)
        positions : bool Tensor of shape (batch, tokens), optional
            Where to score; the head is computed nowhere else. Default: everywhere.

        Returns
        -------
        Tensor of shape (batch, tokens, vocab_size), or (positions, vocab_size)
            Logits, on the model's device; with ``positions`` a row for each that is True,
            text by text.

        Raises
        ------
        ValueError
            If ids are not whole numbers in two axes, one is not in the vocabulary, or
            there are more tokens than the model has positions.
        """
        check_ids(ids, len(self.bias))
        ids = ids.to(self.bias.device)
        states = self.bert(ids, ids != self.pad).last_hidden_state
        if positions is not None:
            states = states[positions.to(ids.device)]  # (positions, d_model)
        return self.head(states) @ self.bert.embeddings.word.weight.T + self.bias


def masked_loss(model, ids, tokenizer, generator, share=0.15):
    """Hide positions of a batch, and return a model's loss on what stood there.

    Of the chosen positions 80 % are hidden behind [MASK], 10 % get another piece, and 10 %
    stay as they are.

    Parameters
    ----------
    model : MaskedBert
        Or another that is called with ids (batch, tokens) and ``positions``, a bool Tensor
        of that shape, and returns logits (positions, vocab_size).
    ids : int Tensor of shape (batch, tokens)
    tokenizer : PreTrainedTokenizerFast
        Of a BERT.
    generator : torch.Generator
        On the CPU; it chooses the positions to hide.
    share : float
        The probability that a position is chosen.

    Returns
    -------
    Tensor
        Without axes: the mean of minus the log probability of what stood at the chosen
        positions, in nats.
    """
    inputs, chosen = mask_tokens(ids, tokenizer, generator, share)
    logits = model(inputs, positions=chosen)  # (positions, vocab_size)
    return F.cross_entropy(logits, ids[chosen].to(logits.device))


@torch.no_grad()
def place_losses(model, ids, tokenizer, rounds=7):
    """Hide each ordinary token once, some in each round; return its loss.

    Parameters
    ----------
    model : MaskedBert
        In evaluation mode; or another callable, from ids and a bool Tensor of the positions
        that are asked for, both (batch, tokens), to logits (positions, vocab_size).
    ids : int Tensor of shape (batch, tokens)
        On the CPU.
    tokenizer : PreTrainedTokenizerFast
        Of a BERT, with [MASK].
    rounds : int
        How many times the texts are read; of the positions that are hidden together, each
        is this far from the next.

    Returns
    -------
    Tensor of shape (batch, tokens)
        Minus the log probability of each piece, in nats; 0 at special tokens. On the CPU.
    """
    ordinary = ~torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
    losses = torch.zeros(ids.shape)
    for first in range(rounds):
        in_round = torch.arange(ids.shape[1]) % rounds == first  # (tokens,)
        chosen = ordinary & in_round
        shown = ids.masked_fill(chosen, tokenizer.mask_token_id)
        logits = model(shown, chosen).cpu()  # (positions, vocab_size)
        losses[chosen] = F.cross_entropy(logits, ids[chosen], reduction="none")
    return losses


def train_masked(model, ids, tokenizer, settings, report=None, loss_function=masked_loss):
    """Train a model, in place, to fill in hidden pieces; each step hides new positions.

    Muon moves the matrices of the layers and the head, AdamW the rest.

    Parameters
    ----------
    model : MaskedBert
        Or another, if ``loss_function`` is given; trained on the device that it is on.
    ids : list of int Tensors of shape (tokens,)
        Passages.
    tokenizer : PreTrainedTokenizerFast
    settings : dict
        ``steps``; ``batch``, passages a step; ``share``, 0 to 1, of the positions to ask
        for;
        ``learning_rate`` and ``weight_decay`` of AdamW; ``muon_learning_rate``; ``seed``.
        The learning rates are the highest of one cycle.
    report : callable, optional
        Given the step and its loss, once a step.
    loss_function : callable
        From the model, a batch (an int64 Tensor (batch, tokens), 0 is padding), the
        tokenizer, a torch.Generator and the share to the loss, a Tensor without axes.
    """
    generator = torch.Generator().manual_seed(settings["seed"])
    hidden = []
    rest = []
    for name, weight in model.named_parameters():
        if weight.ndim == 2 and "embeddings" not in name:
            hidden.append(weight)
        else:
            rest.append(weight)
    adamw = torch.optim.AdamW(
        rest, settings["learning_rate"], weight_decay=settings["weight_decay"]
    )
    optimizers = [Muon(hidden, settings["muon_learning_rate"]), adamw]
    options = {"total_steps": settings["steps"], "pct_start": 0.1, "cycle_momentum": False}
    schedules = [OneCycleLR(o, o.defaults["lr"], **options) for o in optimizers]

    def loss_at(step):
        """Return the mean loss of a random batch of passages, in nats.

        `train_model` asks for it; ``step`` is not used.
        """
        rows = torch.randint(len(ids), (settings["batch"],), generator=generator)
        batch = pad_sequence([ids[row] for row in rows], batch_first=True)
        return loss_function(model, batch, tokenizer, generator, settings["share"])

    train_model(model, loss_at, settings["steps"], optimizers, schedules, 1.0, report)
