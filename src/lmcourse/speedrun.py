"""How soon can a small GPT learn? nanoGPT's recipe, and ideas that change it one at a time.

`Recipe` begins as nanoGPT's for a CPU (Karpathy 2022, the README's characters of
Shakespeare on a laptop); an idea changes some of its fields. The ideas, the judge and the
stored runs are the study's, ``studies/speedrun.py``.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.gpt import training
from lmcourse.gpt.model import GPT, GPTConfig

CONTEXT = 64


@dataclass(frozen=True)
class Recipe(training.TrainingConfig):
    """A model and its training.

    Parameters
    ----------
    layers, heads, d_model, positions, ngrams
        As in `lmcourse.gpt.model.GPTConfig`.
    before : int
        To each token's vector are added those of so many tokens before it, each from a
        table of its own: a row a character, not one for each pair.
    light : bool
        RMS norms without weights and squared ReLU (So et al. 2021).
    scaled : bool
        Matrices start by their width, what blocks add at zero, token vectors at size 1,
        and the logits come from a matrix of their own, which starts at zero.
    linear : bool
        The learning rate falls in a line, to zero, not along a cosine.
    """

    layers: int = 4
    heads: int = 4
    d_model: int = 128
    positions: str = "learned"
    ngrams: tuple[int, ...] = ()
    before: int = 0
    light: bool = False
    scaled: bool = False
    linear: bool = False


class Sprinter(GPT):
    """A GPT without biases, as nanoGPT trains it, with the ideas of a recipe.

    Parameters
    ----------
    recipe : Recipe
    vocab_size : int
    """

    def __init__(self, recipe, vocab_size):
        sizes = {"layers": recipe.layers, "heads": recipe.heads, "d_model": recipe.d_model}
        kinds = {"positions": recipe.positions, "ngrams": recipe.ngrams}
        super().__init__(GPTConfig(vocab_size, CONTEXT, **sizes, **kinds))
        tables = (
            nn.Embedding(vocab_size + 1, recipe.d_model) for _ in range(recipe.before)
        )
        self.before, self.head = nn.ModuleList(tables), None
        for module in self.modules():
            if getattr(module, "bias", None) is not None:
                module.bias = None
        if recipe.light:
            self.norm = norm = nn.RMSNorm(recipe.d_model, elementwise_affine=False)
            for block in self.blocks:
                block.norm_1 = block.norm_2 = norm
                block.feed_forward.activation = lambda x: F.relu(x).square()
        if recipe.scaled:
            self.head = nn.Linear(recipe.d_model, vocab_size, bias=False)
            self.scale()
        else:
            self.initialise()

    def scale(self):
        """Draw the weights so that nothing is small but what shall be zero."""
        tables = 1 + len(self.before) + len(self.ngrams) + (self.positions is not None)
        for name, weight in self.named_parameters():
            if name.endswith(("attention.output.weight", "down.weight", "head.weight")):
                nn.init.zeros_(weight)
            elif name.startswith("blocks.") and weight.ndim == 2:
                nn.init.normal_(weight, std=1 / math.sqrt(weight.shape[1]))
            elif weight.ndim == 2:
                nn.init.normal_(weight, std=1 / math.sqrt(tables))

    def vectors(self, ids):
        """Return the vectors (batch, tokens, d_model) of tokens and of those before."""
        x = super().vectors(ids)
        for back, table in enumerate(self.before, start=1):
            x = x + table(F.pad(ids + 1, (back, 0))[:, : ids.shape[1]])  # 0: none
        return x

    def forward(self, ids):
        """Return the logits (batch, tokens, vocab_size) of the token after each."""
        x = self.embed(ids)  # (batch, tokens, d_model)
        for block in self.blocks:
            x, _ = block(x)
        return F.linear(self.norm(x), (self.head or self.tokens).weight)


def train(recipe, ids, vocab_size, seed=0):
    """Return a model trained by a recipe.

    Parameters
    ----------
    recipe : Recipe
    ids : integer Tensor of shape (tokens,)
    vocab_size, seed : int
    """
    torch.manual_seed(seed)
    model = Sprinter(recipe, vocab_size)
    optimizers = training.make_optimizers(model, recipe)
    for step in range(recipe.steps):
        starts = torch.randint(len(ids) - CONTEXT, (recipe.batch,))
        inputs, targets = training.cut_windows(ids, starts, CONTEXT)
        training.cross_entropy(model(inputs), targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        share = training.schedule(step, recipe)
        if recipe.linear:
            share = min((step + 1) / (recipe.warmup + 1), 1 - step / recipe.steps)
        training.move(optimizers, share)
    return model
