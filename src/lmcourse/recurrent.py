"""Recurrence: the LSTM that the chapter *sequences* writes, and a language model of it.

It reads a text token by token and carries a state along. The LSTM [1]_ has the forget gate
of Gers et al. [2]_ and no peepholes, as PyTorch's.

.. [1] S. Hochreiter and J. Schmidhuber, "Long short-term memory", Neural Computation 9(8),
   1997.
.. [2] F. A. Gers, J. Schmidhuber and F. Cummins, "Learning to forget: continual prediction
   with LSTM", Neural Computation 12(10), 2000.
"""

import torch
from torch import nn

from lmcourse.data import corpora_folder
from lmcourse.tokenization import CharTokenizer
from lmcourse.weights import load_model, read_header, read_record


class LSTM(nn.Module):
    """A recurrent layer with a memory and gates (equals ``nn.LSTM``).

    Parameters
    ----------
    d_in : int
        Numbers of a token's vector.
    d_model : int
        Numbers of the state.
    """

    def __init__(self, d_in, d_model):
        super().__init__()
        self.read = nn.Linear(d_in, 4 * d_model)
        self.carry = nn.Linear(d_model, 4 * d_model)

    def step(self, token, h, memory):
        """Read one token.

        Parameters
        ----------
        token : Tensor of shape (batch, d_in)
            Its vector.
        h, memory : Tensor of shape (batch, d_model)
            What was carried along so far.

        Returns
        -------
        h, memory, keep : Tensor of shape (batch, d_model)
            The new state and memory, and the forget gate.
        """
        four = self.read(token) + self.carry(h)  # (batch, 4 * d_model)
        write, keep, new, show = four.chunk(4, -1)
        keep = keep.sigmoid()  # the forget gate: 1 keeps, 0 forgets
        memory = keep * memory + write.sigmoid() * new.tanh()
        return show.sigmoid() * memory.tanh(), memory, keep

    def forward(self, x):
        """Return states and forget gates, each (batch, tokens, d_model).

        ``x`` : Tensor (batch, tokens, d_in), a vector for each token.
        """
        h = memory = x.new_zeros(len(x), self.carry.in_features)
        states, gates = [], []
        for token in x.unbind(1):
            h, memory, keep = self.step(token, h, memory)
            states.append(h)
            gates.append(keep)
        return torch.stack(states, 1), torch.stack(gates, 1)


class CharLSTM(nn.Module):
    """An LSTM between a table of token vectors and an output layer.

    Parameters
    ----------
    vocab_size, d_in, d_model : int
    """

    def __init__(self, vocab_size, d_in, d_model):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_in)
        self.lstm = LSTM(d_in, d_model)
        self.output = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        """Return logits (batch, tokens, vocab_size), forget gates (batch, tokens, d_model).

        ``ids`` : int64 Tensor (batch, tokens).
        """
        states, gates = self.lstm(self.tokens(ids))
        return self.output(states), gates


@torch.no_grad()
def watch(model, ids, held=None):
    """Read tokens one by one; return logits, memories and forget gates.

    Parameters
    ----------
    model : CharLSTM
    ids : int Tensor of shape (batch, tokens)
    held : Tensor of shape (batch, d_model), optional
        What replaces the memory after every token; NaN where it is left alone.

    Returns
    -------
    logits : Tensor of shape (batch, tokens, vocab_size)
    memories, gates : Tensor of shape (batch, tokens, d_model)
        After each token the memory, and the forget gate, 0 to 1, by which the one before
        was multiplied.
    """
    d_model = model.lstm.carry.in_features
    h = memory = model.output.weight.new_zeros(len(ids), d_model)
    states, memories, gates = [], [], []
    for token in model.tokens(ids).unbind(1):
        h, memory, keep = model.lstm.step(token, h, memory)
        if held is not None:
            memory = torch.where(held.isnan(), memory, held)
        states.append(h)
        memories.append(memory)
        gates.append(keep)
    logits = model.output(torch.stack(states, 1))
    return logits, torch.stack(memories, 1), torch.stack(gates, 1)


def load_char_lstm():
    """Return the characters' tokenizer and the LSTM trained on the Sonnets, on the CPU.

    Returns
    -------
    tokenizer : CharTokenizer
    model : CharLSTM
        From ids (batch, tokens) to logits. Its weights want no gradient.

    Raises
    ------
    OSError, ValueError
        If the file is missing, damaged or holds something else.
    """
    path = corpora_folder() / "checkpoints" / "lstm.safetensors"
    shapes, _ = read_header(path)
    record = read_record(path)
    try:
        tokenizer = CharTokenizer(record["alphabet"])
        sizes = shapes["model.tokens.weight"][1], shapes["model.output.weight"][1]
    except (LookupError, TypeError) as error:
        raise ValueError(f"{path} is not the LSTM of the Sonnets: {error!r}") from error
    model = load_model(path, lambda: CharLSTM(tokenizer.vocab_size, *sizes), 1)
    return tokenizer, model.requires_grad_(False)
