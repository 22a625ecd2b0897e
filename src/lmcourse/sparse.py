"""Features: superposition in a toy, and sparse autoencoders on the states of a model.

A feature is a direction in the states of a model; more of them can be stored than a state
has numbers, if few are there at a time (Elhage et al. 2022). A sparse autoencoder looks for
such directions: it writes a state as a sum of a few of many (Bricken et al. 2023).
"""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from lmcourse.training_loop import train_model

# --- the toy ------------------------------------------------------------------------------

EXAMPLES = 1024  # of each step of the toy's training; one fixed set, so that all agree
STEPS = 1200
RATE = 0.03


class Draws:
    """Random numbers that JavaScript draws alike: a linear congruential generator.

    Parameters
    ----------
    seed : int
        Not negative.
    """

    def __init__(self, seed):
        self.state = seed

    def __call__(self, *shape):
        """Return the next numbers, from 0 to below 1, as a float64 Tensor.

        ``*shape`` : int, the length of each of its axes.
        """
        numbers = []
        for _ in range(math.prod(shape)):
            # Numerical Recipes' constants: products stay below 2**53
            self.state = (1664525 * self.state + 1013904223) % 2**32
            numbers.append(self.state / 2**32)
        return torch.tensor(numbers, dtype=torch.float64).view(shape)


def toy_examples(sparsity, features=5, seed=0):
    """Return examples of features, most of which are absent.

    Parameters
    ----------
    sparsity : float
        The probability that a feature is 0; otherwise it is uniform from 0 to 1.
    features : int
        How many there are.
    seed : int
        Not negative.

    Returns
    -------
    float64 Tensor of shape (1024, features)
    """
    draws = Draws(seed)
    is_there = draws(EXAMPLES, features) >= sparsity
    return is_there * draws(EXAMPLES, features)


def toy_start(features=5, dimensions=2, seed=1):
    """Return the weights with which the toy's training begins, random from -0.5 to 0.5.

    ``features``, ``dimensions`` : int; ``seed`` : int, not negative. Returned is a float64
    Tensor (dimensions, features).
    """
    return Draws(seed)(dimensions, features) - 0.5


def train_toy(sparsity, steps=STEPS, features=5, dimensions=2, seed=1, bend=True):
    """Train Elhage's toy: features through fewer dimensions, and back.

    What comes back is relu(Wᵀ W x + b), and the loss is the mean of its squared errors.
    Trained by Adam on the 1,024 examples of `toy_examples`, all of them in every step; the
    learning rate falls from 0.03 to 0.

    Parameters
    ----------
    sparsity : float
        The probability that a feature is 0.
    steps : int
        Of the training.
    features, dimensions : int
        How many features there are, and through how many numbers they have to pass.
    seed : int
        Of the first weights.
    bend : bool
        Whether there is a ReLU; else Wᵀ W x + b comes back.

    Returns
    -------
    weights : float64 Tensor of shape (dimensions, features)
        A feature's column is its arrow.
    bias : float64 Tensor of shape (features,)
    loss : float
        At the end.
    """
    examples = toy_examples(sparsity, features)
    weights = nn.Parameter(toy_start(features, dimensions, seed))
    bias = nn.Parameter(torch.zeros(features, dtype=torch.float64))
    optimizer = torch.optim.Adam([weights, bias], RATE)
    scheduler = LambdaLR(optimizer, lambda step: 1 - step / steps)

    def loss_at(_step):
        """Return the mean squared error of all examples, a Tensor; ``_step`` isn't used."""
        back = examples @ weights.T @ weights + bias
        return ((F.relu(back) if bend else back) - examples).square().mean()

    toy = nn.ParameterList([weights, bias])
    losses = train_model(toy, loss_at, steps, [optimizer], [scheduler])
    return weights.detach(), bias.detach(), losses[-1]


# --- a sparse autoencoder -----------------------------------------------------------------


class SparseAutoencoder(nn.Module):
    """Write a state as a sum of a few directions out of many (Gao et al. 2024).

    Parameters
    ----------
    d_model : int
        The numbers of a state.
    features : int
        How many directions there are.
    active : int
        How many of them a state may use.
    generator : torch.Generator, optional
        Of the first directions.

    Attributes
    ----------
    encoder, decoder : Parameter of shape (features, d_model)
        A direction for each feature: to measure it in a state, and to add it.
    bias : Parameter of shape (features,)
        Added to a feature's measure.
    centre : Tensor of shape (d_model,)
        Subtracted from each state, and added again; `train_autoencoder` sets it to the mean
        state.
    scale : Tensor of shape ()
        By which states are divided, and multiplied again; `train_autoencoder` sets it to
        their spread.
    """

    def __init__(self, d_model, features, active, generator=None):
        super().__init__()
        self.active = active
        directions = torch.randn(features, d_model, generator=generator)
        directions = F.normalize(directions, dim=1)
        self.encoder = nn.Parameter(directions.clone())  # (features, d_model)
        self.decoder = nn.Parameter(directions)  # (features, d_model), rows of length 1
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("centre", torch.zeros(d_model))
        self.register_buffer("scale", torch.ones(()))

    def encode(self, states):
        """Return the strength of each feature, (..., features), from states (..., d_model).

        It is the ReLU of the state's product with the feature's direction, after centring
        and scaling, plus a bias.

        All but the ``active`` strongest are 0, and none is below.
        """
        centred = (states - self.centre) / self.scale
        strengths = F.relu(centred @ self.encoder.T + self.bias)
        best = strengths.topk(self.active, dim=-1)
        return torch.zeros_like(strengths).scatter(-1, best.indices, best.values)

    def decode(self, strengths):
        """Return states (..., d_model) from strengths (..., features)."""
        return strengths @ self.decoder * self.scale + self.centre

    def forward(self, states):
        """Return states as the features give them back, of the same shape."""
        return self.decode(self.encode(states))


def train_autoencoder(
    states, features=512, active=8, steps=1500, batch=512, rate=2e-3, seed=0
):
    """Train a sparse autoencoder to give states back.

    After each step every direction of the decoder is brought back to length 1.

    Parameters
    ----------
    states : Tensor of shape (states, d_model)
    features, active : int
        How many directions there are, and how many a state may use.
    steps, batch : int
        How many steps, and how many states each sees.
    rate : float
        Of Adam; it falls to zero.
    seed : int

    Returns
    -------
    SparseAutoencoder
        It needs no gradients any more.
    """
    generator = torch.Generator().manual_seed(seed)
    model = SparseAutoencoder(states.shape[1], features, active, generator)
    model.centre.copy_(states.mean(0))
    model.scale.copy_((states - model.centre).square().mean().sqrt())
    optimizer = torch.optim.Adam(model.parameters(), rate)
    scheduler = LambdaLR(optimizer, lambda step: 1 - step / steps)

    def loss_at(_step):
        """Return the mean squared error of states drawn at random, a Tensor.

        It is in units of the states' spread, ``model.scale``. ``_step`` is not used.
        """
        drawn = states[torch.randint(len(states), (batch,), generator=generator)]
        return ((model(drawn) - drawn) / model.scale).square().mean()

    @torch.no_grad()
    def restore_lengths(_steps, _loss):
        """Give every direction of the decoder the length 1 again: after each step.

        `train_model` calls it with the number of steps and the loss, which are not used.
        """
        model.decoder.copy_(F.normalize(model.decoder, dim=1))

    train_model(model, loss_at, steps, [optimizer], [scheduler], report=restore_lengths)
    return model.requires_grad_(False)


# --- known properties of places in a text -------------------------------------------------

VOWELS = set("aeiouAEIOU")
ITSELF = ("a space", "a line’s end", "a vowel", "a capital letter")
NEAR = ("after a vowel", "after “th”", "a word’s second letter", "a word’s third letter")
FAR = (
    "in a line’s first word",
    "in a line’s second word",
    "far into a line",
    "in a word that begins with “th”",
    "in a word after a comma",
    "in a word after “my”",
    "after “thou” or its kin",
    "in a line after a comma’s",
)
MARKS = ITSELF + NEAR + FAR
KIN = {"thou", "thee", "thy", "thine"}


def character_marks(text):
    """Return which of 16 properties each character has, by the text up to there.

    Parameters
    ----------
    text : str

    Returns
    -------
    bool Tensor of shape (characters, marks)
        In the order of `MARKS`. Four of the character itself: a space, a line's end, a
        vowel, a capital letter. Four of the last few: after a vowel, after "th", a word's
        second and third letter. Eight of the line: in its first and second word, far into
        it (beyond 30 characters), in a word that begins with "th", after a comma, after
        "my", after "thou" or its kin, and in a line after one that ends in a comma.
    """
    rows = []
    line = ""
    last_line = ""
    for character in text:
        line += character
        rows.append(_marks_at(line, last_line))
        if character == "\n":
            last_line = line
            line = ""
    return torch.tensor(rows)


def _marks_at(line, last_line):
    """Return which of 16 properties the last character of a line has, a list of bool.

    They stand in the order of `MARKS`: a space, a line's end, a vowel, and so on.

    ``line`` : str, up to and with the character; ``last_line`` : str, the line before, with
    its end.
    """
    words = line.lower().split(" ")
    letter = line[-1]
    word = words[-1].strip("\n,.:;!?'()-—") if letter.isalpha() or letter == "'" else ""
    before = words[-2] if len(words) > 1 else ""
    return [
        letter == " ",
        letter == "\n",
        letter in VOWELS,
        letter.isupper(),
        len(line) > 1 and line[-2] in VOWELS,
        line[-3:-1].lower() == "th",
        len(word) == 2,
        len(word) == 3,
        bool(word) and len(words) == 1,
        bool(word) and len(words) == 2,
        len(line) > 30,
        word.startswith("th"),
        bool(word) and before.endswith(","),
        bool(word) and before == "my",
        bool(word) and before.strip("',.;:!?") in KIN,
        last_line.endswith(",\n"),
    ]
