"""Small models that are trained on short texts and read longer ones.

At each position of a text of characters a model predicts which character comes next, and
names the one that stood some positions back: the second is no guess, for a model that can
count.
"""

from functools import cache, partial

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.attention import causal_mask
from lmcourse.data import load_sonnets
from lmcourse.positions import alibi_bias, relative_buckets, rotate, sinusoidal
from lmcourse.training_loop import train_one_cycle
from lmcourse.transformer import Stack

SHORT = 32  # characters of a text in training
LONG = 128  # characters of the longest text that is read
BACK = 3  # how many positions back the character stands that is to be named
D_MODEL = 48
HEADS = 4
BUCKETS = 32  # of relative positions


@cache
def sonnet_ids():
    """Return the Sonnets as numbers of characters, for the studies of this module's models.

    Whole poems (`lmcourse.data.train_val_test_split`) would be the better split. The stored
    runs learned the first nine tenths, rounded down to a character, where
    `lmcourse.gpt.training.split` rounds up: another split would make them other runs.

    Returns
    -------
    training, held_out : int64 Tensor of shape (characters,)
        Nine tenths, and the last one.
    vocab_size : int
        How many different characters there are.
    """
    text = "\n\n".join(load_sonnets().text)
    alphabet = sorted(set(text))
    ids = torch.tensor([alphabet.index(character) for character in text])
    training, held_out = ids.tensor_split([len(ids) * 9 // 10])
    return training, held_out, len(alphabet)


def sample_windows(ids, count, tokens, generator, back=BACK):
    """Return random windows of a text, and the answers to two questions at each position.

    The questions are which character comes next, and which stood ``back`` positions before.

    Parameters
    ----------
    ids : int64 Tensor of shape (characters,)
        At least ``tokens + back + 2``; a RuntimeError if there are fewer.
    count, tokens : int
        How many windows, and how long each is.
    generator : torch.Generator
    back : int
        How many positions back the character stands that the second question asks for, by
        default 3.

    Returns
    -------
    inputs : int64 Tensor of shape (count, tokens)
    answers : int64 Tensor of shape (2, count, tokens)
        The next character, and the one that stood ``back`` positions before.
    """
    # The start is drawn below this, and one more would still fit: the last character of a
    # text is never asked for. The stored trainings drew so, and would change.
    last = len(ids) - tokens - 1
    start = torch.randint(back, last, (count, 1), generator=generator)
    positions = start + torch.arange(tokens)  # (count, tokens)
    answers = torch.stack((ids[positions + 1], ids[positions - back]))
    return ids[positions], answers


class PositionModel(nn.Module):
    """A block behind a causal mask, with positions of one scheme, which reads the Sonnets.

    Its states are 48 wide, with 4 heads; learned positions there are 128, and 32 buckets of
    relative ones. It predicts the next character and names an earlier one.

    Parameters
    ----------
    scheme : str
        "none", "sinusoidal", "learned", "rotary", "ALiBi" or "relative".
    reach : int
        Of relative positions: the distance from which all share a bucket.
    base : float
        Of rotary positions: pair i turns by base^(-2i / d_head) radians a position.
    back : int
        How many positions back the character stands that the model is asked for, by default
        3.
    """

    def __init__(self, scheme, reach=24, base=10000.0, back=BACK):
        super().__init__()
        self.scheme = scheme
        self.reach = reach
        self.base = base
        self.back = back
        vocab_size = sonnet_ids()[-1]
        self.embed = nn.Embedding(vocab_size, D_MODEL)
        nn.init.normal_(self.embed.weight, std=0.1)
        self.learned = nn.Parameter(0.02 * torch.randn(LONG, D_MODEL))
        self.relative = nn.Parameter(torch.zeros(BUCKETS, HEADS))
        self.stack = Stack(1, D_MODEL, HEADS, 4 * D_MODEL)
        self.answer = nn.Linear(D_MODEL, 2 * vocab_size)

    def add_positions(self, x):
        """Add vectors of positions to those of tokens, or say what attention is to do.

        Which of the two depends on ``scheme``: "sinusoidal" and "learned" vectors are
        added, "rotary" positions rotate queries and keys, "ALiBi" and "relative" ones are a
        bias of the scores; with "none" nothing is done.

        Parameters
        ----------
        x : Tensor of shape (batch, tokens, d_model)

        Returns
        -------
        x : Tensor of shape (batch, tokens, d_model)
        options : dict
            What attention is given besides, if anything: ``rotate``, a callable that
            rotates queries and keys, or ``bias``, a Tensor (heads, tokens, tokens) that is
            added to the scores.
        """
        tokens = x.shape[1]
        if self.scheme == "sinusoidal":
            return x + sinusoidal(tokens, D_MODEL), {}
        if self.scheme == "learned":
            return x + self.learned[:tokens], {}
        if self.scheme == "rotary":
            return x, {"rotate": partial(rotate, base=self.base)}
        if self.scheme == "ALiBi":
            return x, {"bias": alibi_bias(HEADS, tokens)}
        if self.scheme == "relative":
            buckets = relative_buckets(tokens, BUCKETS, self.reach)
            return x, {"bias": self.relative[buckets].permute(2, 0, 1)}
        return x, {}

    def forward(self, ids, **options):
        """Answer two questions at each position: what comes next, and what stood before.

        The second asks for the character ``back`` positions before, by default 3.

        Parameters
        ----------
        ids : int64 Tensor of shape (batch, tokens)
        **options
            Of attention, in place of the causal mask and of what the scheme of positions
            gives: ``mask``, ``bias`` or ``rotate`` of
            `lmcourse.attention.MultiHeadAttention`.

        Returns
        -------
        Tensor of shape (2, batch, tokens, vocab_size)
            Logits of characters: of the first question, and of the second.
        """
        x, own_options = self.add_positions(self.embed(ids))
        mask = causal_mask(ids.shape[1])
        x, _ = self.stack(x, **{"mask": mask, **own_options, **options})
        return self.answer(x).unflatten(-1, (2, -1)).movedim(-2, 0)


def answer_losses(model, ids, answers, **options):
    """Return the loss of each answer to two questions at each position of some texts.

    Parameters
    ----------
    model : PositionModel
    ids : int64 Tensor of shape (batch, tokens)
    answers : int64 Tensor of shape (2, batch, tokens)
        To both questions: the next character, and the one some positions back.
    **options
        How the model is run otherwise: options of attention, such as ``rotate``, a
        rotation of queries and keys, or ``mask``, in place of its own.

    Returns
    -------
    Tensor of shape (2, batch, tokens - back)
        In nats; from the first position on at which something stands ``back`` before.
    """
    logits = model(ids, **options).movedim(-1, 1)  # classes on axis 1
    return F.cross_entropy(logits, answers, reduction="none")[..., model.back :]


def train_position_model(
    scheme, steps=1000, seed=0, length=SHORT, learning_rate=8e-3, **options
):
    """Train a `PositionModel`, one block, on short texts: random windows of the Sonnets.

    At each position it is asked for the next character and for the one ``back`` positions
    before; each step sees 32 windows.

    Parameters
    ----------
    scheme : str
        "none", "sinusoidal", "learned", "rotary", "ALiBi" or "relative".
    steps : int
        Of the training.
    seed : int
        Of the first weights and of the windows.
    length : int
        Characters of a text, by default 32.
    learning_rate : float
        The highest, of one cycle.
    **options
        ``reach``, of relative positions, the distance from which all share a bucket;
        ``base``, of rotary frequencies; ``back``, how many positions back the character
        stands that the model is asked for.

    Returns
    -------
    PositionModel
    """
    torch.manual_seed(seed)
    model = PositionModel(scheme, **options)
    generator = torch.Generator().manual_seed(seed + 1)
    training = sonnet_ids()[0]

    def loss_at(step):
        """Return the mean loss of both answers on 32 random windows, in nats, a Tensor.

        `train_model` asks for it; ``step`` is not used.
        """
        batch = sample_windows(training, 32, length, generator, model.back)
        return answer_losses(model, *batch).mean()

    train_one_cycle(model, loss_at, steps, learning_rate)
    return model


@torch.no_grad()
def losses_by_position(model, tokens=LONG, **options):
    """Return the mean loss of two questions at each position of 64 held-out texts.

    They ask for the next character, and for the one ``model.back`` positions before.

    Parameters
    ----------
    model : PositionModel
    tokens : int
        Of a text, by default 128.
    **options
        How the model is run otherwise: options of attention, such as ``rotate``, a
        rotation of queries and keys, or ``mask``, in place of its own.

    Returns
    -------
    Tensor of shape (2, tokens)
        In nats; NaN at the first positions, which have no answer.
    """
    generator = torch.Generator().manual_seed(2)
    batch = sample_windows(sonnet_ids()[1], 64, tokens, generator, model.back)
    losses = answer_losses(model, *batch, **options).mean(1)
    return F.pad(losses, (model.back, 0), value=torch.nan)


def near_mask(tokens=LONG, length=SHORT):
    """Return a causal mask of the nearest keys only, as many as in training.

    Parameters
    ----------
    tokens, length : int
        How many tokens the text has, by default 128; and how many keys each query sees, by
        default 32: its own token and those just before it.

    Returns
    -------
    bool Tensor of shape (tokens, tokens)
    """
    return causal_mask(tokens).triu(1 - length)
