"""Small language models whose blocks lack a part, and how the studies train them."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from lmcourse.data import load_texts, train_val_test_split
from lmcourse.lacking import Lacking, spread, use_xavier
from lmcourse.tokenization import CharTokenizer
from lmcourse.training_loop import train_model
from lmcourse.transformer import Embed

CONTEXT = 32  # characters that a model reads


def model_without(off, layers, weights, seed, vocab_size=64, d_model=32):
    """Return an untrained language model whose blocks lack some parts.

    Parameters
    ----------
    off : tuple of str
        The parts that are missing: "attention", "feed-forward" (networks), "norms", "paths"
        (residual ones: a block returns its last update alone), "other tokens" (each token
        attends only to itself) or "bend" (the activation of the networks); also "one
        constant", by which each update is multiplied, in place of norms: 1 over the root of
        twice the number of blocks.
    layers : int
        How many blocks.
    weights : {"PyTorch's", "Xavier"}
        The first weights.
    seed : int
        Of the first weights.
    vocab_size, d_model : int
        How many tokens there are, and the width of a state.

    Returns
    -------
    nn.Sequential
        Token vectors, blocks, norm, output layer: ids (batch, tokens) to logits (batch,
        tokens, vocab_size).
    """
    torch.manual_seed(seed)
    scale = 1 / math.sqrt(2 * layers) if "one constant" in off else 1.0
    blocks = nn.Sequential(*(Lacking(d_model, off, scale) for _ in range(layers)))
    if weights == "Xavier":
        use_xavier(blocks)
    norm = nn.Identity() if "norms" in off else nn.LayerNorm(d_model)
    output = nn.Linear(d_model, vocab_size)
    return nn.Sequential(Embed(vocab_size, d_model), blocks, norm, output)


def train_without(off, layers, weights, rate, seed, steps):
    """Train a model that lacks parts on the sonnets, by windows of 32 characters.

    A step of Adam reads eight windows; states have a width of 32. The model is judged on a
    third of the validation sonnets' characters.

    Parameters
    ----------
    off : tuple of str
        What is missing: "attention", "feed-forward" (networks), "norms", "paths" (residual
        ones), "other tokens" (each token attends only to itself) or "bend" (the activation
        of the networks); also "one constant", by which each update is multiplied, in place
        of norms. Empty: nothing.
    layers : int
        How many blocks.
    weights : {"PyTorch's", "Xavier"}
        The first weights.
    rate : float
        The learning rate, the same at all steps.
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.

    Returns
    -------
    loss : float
        On windows of the validation sonnets, in nats a character.
    spread : float
        How different the states of a text's tokens are after the last block, as a share of
        their length; 0 if they are all the same.
    """
    parts = train_val_test_split(load_texts("sonnets"))
    letters = CharTokenizer(parts.training + parts.validation)
    ids = torch.tensor(letters.encode(parts.training))
    validation = torch.tensor(letters.encode(parts.validation))
    # A window begins every 96 characters, so that a third of them is predicted.
    held_out = validation.unfold(0, CONTEXT + 1, 3 * CONTEXT)  # (windows, context + 1)
    model = model_without(off, layers, weights, seed, letters.vocab_size)
    optimizer = torch.optim.Adam(model.parameters(), rate, fused=True)

    def loss_at(step):
        """Return the mean loss of eight windows, drawn at random, in nats.

        `train_model` asks for it; ``step`` is not used.
        """
        starts = torch.randint(len(ids) - CONTEXT, (8, 1))
        batch = ids[starts + torch.arange(CONTEXT + 1)]
        return F.cross_entropy(model(batch[:, :-1]).mT, batch[:, 1:])

    train_model(model, loss_at, steps, [optimizer])
    with torch.no_grad():
        # The first two parts are the token vectors and the blocks.
        states = model[:2](held_out[:, :-1])  # (windows, context, d_model)
        loss = F.cross_entropy(model[2:](states).mT, held_out[:, 1:])
    return float(loss), spread(states)
