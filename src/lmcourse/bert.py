"""BERT rebuilt from its weights.

The forms at which the chapter *bert-internals* arrives: the encoder of Devlin et al.
(2019), filled with the weights of any BERT checkpoint. Axes are named ``batch``,
``heads``, ``layers``, ``tokens``, ``d_model`` and ``d_ff``. There is no dropout: it does
nothing outside training.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import torch
from torch import nn

from lmcourse.attention import padding_mask
from lmcourse.transformer import Block

# What a checkpoint calls a thing → what this course calls it; applied from top to bottom.
RENAMES = {
    "word_embeddings": "word",
    "position_embeddings": "position",
    "token_type_embeddings": "token_type",
    "embeddings.LayerNorm": "embeddings.norm",
    "encoder.layer.": "layers.",
    "attention.self.": "attention.",
    "attention.output.LayerNorm": "norm_1",
    "attention.output.dense": "attention.output",
    "intermediate.dense": "feed_forward.up",
    "output.LayerNorm": "norm_2",
    "output.dense": "feed_forward.down",
    "pooler.dense": "pooler",
    ".gamma": ".weight",
    ".beta": ".bias",
}


class BertOutput(NamedTuple):
    """Everything that a `Bert` computes on the way.

    Attributes
    ----------
    last_hidden_state : Tensor of shape (batch, tokens, d_model)
    pooler_output : Tensor of shape (batch, d_model), or None without a pooler
    hidden_states : tuple of layers + 1 Tensors of shape (batch, tokens, d_model)
        The embeddings first; the last is ``last_hidden_state``.
    attentions : tuple of layers Tensors of shape (batch, heads, tokens, tokens)
        Weights, after the softmax.
    """

    last_hidden_state: torch.Tensor
    pooler_output: torch.Tensor | None
    hidden_states: tuple[torch.Tensor, ...]
    attentions: tuple[torch.Tensor, ...]


class Embeddings(nn.Module):
    """Word, position and token type, added and normalised (Devlin et al. 2019, fig. 2).

    Parameters
    ----------
    config : BertConfig
    """

    def __init__(self, config):
        super().__init__()
        d_model = config.hidden_size
        self.word = nn.Embedding(config.vocab_size, d_model)
        self.position = nn.Embedding(config.max_position_embeddings, d_model)
        self.token_type = nn.Embedding(config.type_vocab_size, d_model)
        self.norm = nn.LayerNorm(d_model, eps=config.layer_norm_eps)

    def forward(self, input_ids, token_type_ids):
        """Look three vectors up for each token.

        Parameters
        ----------
        input_ids, token_type_ids : int Tensors of shape (batch, tokens)

        Returns
        -------
        Tensor of shape (batch, tokens, d_model)

        Raises
        ------
        ValueError
            If there are more tokens than the model has positions.
        """
        tokens, room = input_ids.shape[1], self.position.num_embeddings
        if tokens > room:
            raise ValueError(f"{tokens} tokens, but positions for {room} only")
        positions = torch.arange(tokens, device=input_ids.device)
        total = self.word(input_ids) + self.position(positions)  # (batch, tokens, d_model)
        return self.norm(total + self.token_type(token_type_ids))


class Bert(nn.Module):
    """The encoder of Devlin et al. (2019).

    Parameters
    ----------
    config : BertConfig
        Any object with the attributes of that class.
    pooler : bool
        Whether there is a pooler; some checkpoints come without.
    """

    def __init__(self, config, pooler=True):
        super().__init__()
        self.embeddings = Embeddings(config)
        d_model, heads = config.hidden_size, config.num_attention_heads
        sizes = d_model, heads, config.intermediate_size, config.hidden_act
        norm = partial(nn.LayerNorm, eps=config.layer_norm_eps)
        layers = range(config.num_hidden_layers)
        blocks = (Block(*sizes, norm_first=False, norm=norm) for _ in layers)
        self.layers = nn.ModuleList(blocks)
        self.pooler = nn.Linear(d_model, d_model) if pooler else None

    def forward(self, input_ids, attention_mask=None, token_type_ids=None):
        """Encode a batch, keeping what every layer and every head did.

        Parameters
        ----------
        input_ids : int Tensor of shape (batch, tokens)
        attention_mask : Tensor of shape (batch, tokens), optional
            1 for a token, 0 for padding; default all tokens.
        token_type_ids : int Tensor of shape (batch, tokens), optional
            0 for the first text, 1 for the second; default all 0.

        Returns
        -------
        BertOutput

        Raises
        ------
        ValueError
            If a text is all padding, or longer than the model has positions.
        """
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        mask = None if attention_mask is None else padding_mask(attention_mask)
        states, attentions = [self.embeddings(input_ids, token_type_ids)], []
        for layer in self.layers:
            state, weights = layer(states[-1], mask=mask)
            states.append(state)  # (batch, tokens, d_model)
            attentions.append(weights)  # (batch, heads, tokens, tokens)
        pooled = None
        if self.pooler is not None:
            pooled = self.pooler(states[-1][:, 0]).tanh()  # (batch, d_model)
        return BertOutput(states[-1], pooled, tuple(states), tuple(attentions))


def rename(name: str) -> str:
    """Return this course's name of a weight, given the checkpoint's; both are str."""
    name = name.removeprefix("bert.")
    for theirs, ours in RENAMES.items():
        name = name.replace(theirs, ours)
    return name


def check_config(config) -> None:
    """Refuse a configuration that asks for more than is built here.

    Parameters
    ----------
    config : BertConfig of `transformers`

    Raises
    ------
    ValueError
        If it is of a decoder, or has other than learned absolute positions.
    """
    positions = getattr(config, "position_embedding_type", "absolute")
    if getattr(config, "is_decoder", False) or positions != "absolute":
        raise ValueError("an encoder with learned absolute positions is built here, only")


def rebuild(config, weights: Mapping[str, torch.Tensor]) -> Bert:
    """Fill a `Bert` with the weights of a checkpoint.

    Parameters
    ----------
    config : BertConfig
    weights : mapping of str to Tensor
        From ``model.safetensors`` or ``model.state_dict()``, under their own names; those
        of a pretraining or task head are left out. Tensors in float32 are not copied.

    Returns
    -------
    Bert
        In evaluation mode, on the device of the weights.

    Raises
    ------
    RuntimeError
        If a weight is missing, left over or of another shape, naming it.
    ValueError
        If the configuration is of a decoder, or has other than learned absolute positions,
        if the activation is not in `lmcourse.transformer.ACTIVATIONS`, or the heads do not
        divide ``hidden_size``.
    """
    check_config(config)
    parts = ("embeddings.", "layers.", "pooler.")
    named = {rename(name): tensor.float() for name, tensor in weights.items()}
    state = {name: tensor for name, tensor in named.items() if name.startswith(parts)}
    state.pop("embeddings.position_ids", None)  # only 0, 1, 2, …: nothing was learned
    with torch.device("meta"):  # shapes without memory: the weights bring their own
        model = Bert(config, pooler="pooler.weight" in state)
    model.load_state_dict(state, strict=True, assign=True)
    return model.eval()
