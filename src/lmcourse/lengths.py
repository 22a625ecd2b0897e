"""Small models that are trained on short texts and read longer ones.

At each position of a text of characters a model says which character comes next and which
one stood some places back: the second is no guess, for a model that can count.
"""

from functools import cache, partial

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.attention import causal_mask
from lmcourse.data import load_sonnets
from lmcourse.optimizers import fit
from lmcourse.positions import alibi_bias, relative_buckets, rotate, sinusoidal
from lmcourse.transformer import Stack

SHORT, LONG, BACK = 32, 128, 3
D_MODEL, HEADS, BUCKETS = 48, 4, 32


@cache
def sonnets():
    """Return the Sonnets in numbers, nine tenths and the last one, and how many numbers."""
    text = "\n\n".join(load_sonnets().text)
    alphabet = sorted(set(text))
    codes = torch.tensor([alphabet.index(character) for character in text])
    return *codes.tensor_split([len(codes) * 9 // 10]), len(alphabet)


def windows(codes, count, tokens, generator, back=BACK):
    """Return texts (count, tokens) and the answers to both questions (2, count, tokens)."""
    last = len(codes) - tokens - 1
    start = torch.randint(back, last, (count, 1), generator=generator)
    at = start + torch.arange(tokens)  # (count, tokens)
    return codes[at], torch.stack((codes[at + 1], codes[at - back]))


class Small(nn.Module):
    """A block behind a causal mask, with positions of one scheme.

    Parameters
    ----------
    scheme : str
        "none", "sinusoidal", "learned", "rotary", "ALiBi" or "relative".
    reach : int
        Of relative positions, as in `lmcourse.positions.relative_buckets`.
    base : float
        Of rotary positions.
    back : int
        How many places back the character stands that the model is asked for.
    """

    def __init__(self, scheme, reach=24, base=10000.0, back=BACK):
        super().__init__()
        self.scheme, self.reach, self.base, self.back = scheme, reach, base, back
        self.embed = nn.Embedding(symbols := sonnets()[-1], D_MODEL)
        nn.init.normal_(self.embed.weight, std=0.1)
        self.rows = nn.Parameter(0.02 * torch.randn(LONG, D_MODEL))
        self.prices = nn.Parameter(torch.zeros(BUCKETS, HEADS))
        self.stack = Stack(1, D_MODEL, HEADS, 4 * D_MODEL)
        self.answer = nn.Linear(D_MODEL, 2 * symbols)

    def placed(self, x):
        """Return vectors (batch, tokens, d_model), and what attention is told."""
        tokens = x.shape[1]
        if self.scheme == "sinusoidal":
            return x + sinusoidal(tokens, D_MODEL), {}
        if self.scheme == "learned":
            return x + self.rows[:tokens], {}
        if self.scheme == "rotary":
            return x, {"rotate": partial(rotate, base=self.base)}
        if self.scheme == "none":
            return x, {}
        bucket = relative_buckets(tokens, BUCKETS, self.reach)
        learned = self.prices[bucket].permute(2, 0, 1)
        return x, {"bias": alibi_bias(HEADS, tokens) if self.scheme == "ALiBi" else learned}

    def forward(self, ids, **told):
        """Return logits (2, batch, tokens, symbols); what is ``told`` goes to attention."""
        x, options = self.placed(self.embed(ids))
        x, _ = self.stack(x, **{"mask": causal_mask(ids.shape[1]), **options, **told})
        return self.answer(x).unflatten(-1, (2, -1)).movedim(-2, 0)


def losses(model, ids, answers, **told):
    """Cross-entropy of each answer, (2, batch, tokens - back)."""
    logits = model(ids, **told).movedim(-1, 1)  # classes on axis 1
    return F.cross_entropy(logits, answers, reduction="none")[..., model.back :]


def train(scheme, steps=1000, seed=0, length=SHORT, rate=8e-3, **options):
    """Train a `Small` on texts of so many characters; return it."""
    torch.manual_seed(seed)
    model = Small(scheme, **options)
    dice = torch.Generator().manual_seed(seed + 1)

    def loss_of(step):
        return losses(model, *windows(sonnets()[0], 32, length, dice, model.back)).mean()

    return fit(model, loss_of, steps, rate)


@torch.no_grad()
def by_position(model, tokens=LONG, **told):
    """Mean loss of each question at each position of held-out texts, (2, tokens)."""
    texts = windows(sonnets()[1], 64, tokens, torch.Generator().manual_seed(2), model.back)
    lost = losses(model, *texts, **told).mean(1)
    return F.pad(lost, (model.back, 0), value=torch.nan)  # no answer at the first


def near_mask(tokens=LONG, length=SHORT):
    """Return a causal mask of the nearest keys only, as many as in training."""
    return causal_mask(tokens).triu(1 - length)
