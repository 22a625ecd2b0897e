"""How soon can a small GPT learn? nanoGPT's recipe, and ideas that change it one at a time.

`Recipe` begins as nanoGPT's for a CPU (Karpathy 2022, the README's characters of
Shakespeare on a laptop); an idea changes some of its fields. The ideas, the judge and the
stored runs are those of the study *speedrun*.
"""

from dataclasses import fields
from functools import partial
from typing import Literal

import torch
from torch.optim.lr_scheduler import LambdaLR

from lmcourse.gpt import training
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.settings import Size, Switch, Whole, settings
from lmcourse.training_loop import train_model

CONTEXT = 64


@settings
class Recipe(training.TrainingConfig):
    """A model and its training: fields of both configurations, and one more.

    Parameters
    ----------
    layers, heads, d_model, positions, ngrams, previous_tokens
        The number of blocks and heads, the width of a state, the kind of positions, tables
        of n-grams, and how many tokens before are added to each
        (`lmcourse.gpt.model.GPTConfig`).
    norm, activation, tied, initialisation
        The kind of norm and of activation, whether the output matrix is the table of token
        vectors, and how weights start.
    linear_schedule : bool
        Whether the learning rate falls in a line to zero, instead of along a cosine.
    """

    layers: Size = 4
    heads: Size = 4
    d_model: Size = 128
    positions: Literal["learned", "rotary"] = "learned"
    ngrams: tuple[Size, ...] = ()
    previous_tokens: Whole = 0
    norm: Literal["layer", "rms"] = "layer"
    activation: Literal["gelu_new", "relu_squared"] = "gelu_new"
    tied: Switch = True
    initialisation: Literal["gpt2", "width"] = "gpt2"
    linear_schedule: Switch = False

    def model_config(self, vocab_size):
        """Return the `GPTConfig` of a model without biases, as nanoGPT trains it.

        Its context is 64 tokens; fields that the recipe has too are the recipe's.

        Parameters
        ----------
        vocab_size : int
        """
        names = {field.name for field in fields(GPTConfig)}
        own = {field.name for field in fields(self)}
        options = {name: getattr(self, name) for name in names & own}
        return GPTConfig(vocab_size, CONTEXT, bias=False, **options)


def learning_rate_share(step, recipe):
    """Return the share of the highest learning rate at a step.

    It rises in the first steps, and then falls: along a cosine
    (`lmcourse.gpt.training.schedule`), or, with a linear schedule, in a line to zero.

    Parameters
    ----------
    step : int
        From 0.
    recipe : Recipe
        Used are ``linear_schedule``, and how many steps there are, ``steps``, of which the
        rate rises in the first ``warmup``.

    Returns
    -------
    float
        From 0 to 1.
    """
    if not recipe.linear_schedule:
        return training.schedule(step, recipe)
    rising = (step + 1) / (recipe.warmup + 1)
    falling = 1 - step / recipe.steps
    return min(rising, falling)


def train_recipe(recipe, ids, vocab_size, seed=0):
    """Return a GPT trained by a recipe, on random windows of 64 tokens.

    Parameters
    ----------
    recipe : Recipe
        Of the model and its training: ``model_config(vocab_size)`` gives the GPTConfig;
        ``steps``, ``batch`` (windows a step), ``clip`` (the largest length of the
        gradients), and what `make_optimizers` and `learning_rate_share` read.
    ids : integer Tensor of shape (tokens,)
        The training text.
    vocab_size, seed : int

    Returns
    -------
    GPT
        In evaluation mode.
    """
    torch.manual_seed(seed)
    model = GPT(recipe.model_config(vocab_size))
    optimizers = training.make_optimizers(model, recipe)
    share_at = partial(learning_rate_share, recipe=recipe)
    schedulers = [LambdaLR(optimizer, share_at) for optimizer in optimizers]

    def loss_at(step):
        """Return the mean loss of a random batch of windows of 64 tokens, in nats.

        `train_model` asks for it; ``step`` is not used.
        """
        starts = torch.randint(len(ids) - CONTEXT, (recipe.batch,))
        inputs, targets = training.cut_windows(ids, starts, CONTEXT)
        return training.cross_entropy(model(inputs), targets)

    train_model(model, loss_at, recipe.steps, optimizers, schedulers, recipe.clip)
    return model
