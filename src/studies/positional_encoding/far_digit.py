"""Can a model trained on short texts find a digit far back, and still count to three?

In each text of 32 characters one character is replaced by a digit. From there on the model
names two things at every position: the digit, which it has to find by what it is, and the
character three positions back, which it has to find by where it is. Then it reads texts of
128 characters with the digit among the first 32.

What varies: the scheme of positions; the base of rotary positions; the seed.

Rivals: far keys hidden; all pairs of dimensions slowed, or those that completed a turn in
training; a larger base (NTK-aware scaling); the other schemes, each also stretched for long
texts in the way that suits it.

Null: a guess of each answer from its frequencies in training.

Statistic: the loss of both answers, in nats, over the last 32 of 128 characters. The
interval is that of the larger of both losses with the new pairs slowed, from the lowest to
the highest rotary model; those whose first new pair almost completed a turn are left out.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.lengths import (
    BACK,
    D_MODEL,
    LONG,
    SHORT,
    PositionModel,
    near_mask,
    sonnet_ids,
)
from lmcourse.positions import alibi_bias, frequencies, rotate
from lmcourse.training_loop import train_one_cycle
from studies.harness import count, grid, verdict
from studies.positional_encoding.positional_encoding import (
    TIMES,
    flatten_far_buckets,
    slowed_frequencies,
)

CHAPTER = "positional-encoding"
CLAIM = (
    "A small rotary model whose slow frequencies are slowed finds a digit a hundred "
    "characters back; one that hides far keys can only guess it"
)
RIVAL = "far keys hidden; all pairs slowed; a larger base; five other schemes, stretched"
NULL = "a guess from the frequencies of digits and of characters"
DIGITS = 10
BASES = [100, 1_000, 10_000, 30_000, 100_000]
NEARLY_ROUND = [30_000]  # the first new pair has a wavelength of 1.09 trained lengths
SCHEMES = ["none", "sinusoidal", "learned", "ALiBi", "relative"]
SETTINGS = {"steps": 400, "seeds": [0, 1, 2]}


def plan(small):
    """Return the settings of all runs, or of two of them with two steps.

    Five bases of rotary positions and five other schemes, each from three seeds.

    Parameters
    ----------
    small : bool
        Whether two short runs are enough, to try the study.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, "rotary" with ``base``, that of rotary
        positions, or "others" with ``scheme``, the kind of positions; ``seed``; ``steps``
        of training.
    """
    steps = 2 if small else SETTINGS["steps"]
    runs = grid(group="rotary", base=BASES, seed=SETTINGS["seeds"], steps=steps)
    others = grid(group="others", scheme=SCHEMES, seed=SETTINGS["seeds"], steps=steps)
    return [runs[0], others[0]] if small else runs + others


class DigitModel(PositionModel):
    """A `PositionModel`, one causal block over characters, that also knows ten digits.

    From ids (batch, tokens) it returns logits (2, batch, tokens, vocab_size): for the digit
    of the text, then for the character three positions back. Ids are those of the Sonnets'
    characters, then those of the ten digits.

    Attributes
    ----------
    scheme : str
        "none", "sinusoidal", "learned", "rotary", "ALiBi" or "relative".
    embed : nn.Embedding
        Of characters and digits; ``answer``, a linear layer, makes both logits.
    table : Tensor of shape (tokens, d_model) or None
        Position vectors in place of the sinusoidal or the learned ones.
    """

    def __init__(self, scheme, **options):
        """Make a model with random weights; ``table`` is None.

        Parameters
        ----------
        scheme : str
            Of positions: "none", "sinusoidal", "learned", "rotary", "ALiBi" or "relative".
        **options
            Of `PositionModel`: ``base``, float, of rotary frequencies; ``reach``, int, of
            relative positions, the distance from which all share a bucket.
        """
        super().__init__(scheme, **options)
        vocab_size = sonnet_ids()[-1] + DIGITS
        self.embed = nn.Embedding(vocab_size, D_MODEL)
        nn.init.normal_(self.embed.weight, std=0.1)
        self.answer = nn.Linear(D_MODEL, 2 * vocab_size)
        self.table = None

    def add_positions(self, x):
        """Add the vectors of ``table``, if there are any; else those of the scheme.

        Parameters
        ----------
        x : Tensor of shape (batch, tokens, d_model)

        Returns
        -------
        x : Tensor of that shape
        options : dict
            What attention is to be given: ``rotate``, a function that turns queries and
            keys, or ``bias``, which is added to the scores; empty if ``table`` is used.
        """
        if self.table is None:
            return super().add_positions(x)
        return x + self.table[: x.shape[1]], {}


def sample_texts(ids, texts, tokens, generator):
    """Cut random texts from a long one, put a digit among the first 32 characters of each.

    Parameters
    ----------
    ids : int64 Tensor of shape (characters,)
        One long text, of ids of the Sonnets' characters; the ids after these are digits.
    texts, tokens : int
        How many texts, and how long each, 32 at least.
    generator : torch.Generator

    Returns
    -------
    inputs : int64 Tensor of shape (texts, tokens)
    digit : int64 Tensor of shape (texts, tokens)
        The id of each text's digit, the same at all positions.
    back : int64 Tensor of shape (texts, tokens)
        What stood three positions back; meaningless at the first three positions.
    known : bool Tensor of shape (texts, tokens)
        Whether the digit stands at the position or before it.
    """
    start = torch.randint(len(ids) - tokens, (texts, 1), generator=generator)
    inputs = ids[start + torch.arange(tokens)]  # (texts, tokens)
    at = torch.randint(SHORT, (texts, 1), generator=generator)
    digit = sonnet_ids()[-1] + torch.randint(DIGITS, (texts, 1), generator=generator)
    inputs.scatter_(1, at, digit)
    back = inputs.roll(BACK, 1)
    return inputs, digit.expand(-1, tokens), back, torch.arange(tokens) >= at


def losses(model, inputs, digit, back, **options):
    """Return the loss of both answers at every position, two Tensors (texts, tokens).

    Parameters
    ----------
    model : DigitModel
        From ids to logits (2, texts, tokens, vocab_size): of the digit, of three back.
    inputs : int Tensor of shape (texts, tokens)
    digit, back : int Tensor of shape (texts, tokens)
        The right answers: the digit, and what stood three characters back.
    **options
        For the model's attention, in place of its own: ``rotate``, a function that turns
        queries and keys; ``mask``, bool (tokens, tokens), True where a query sees a key;
        ``bias``, which is added to the scores.

    Returns
    -------
    list of Tensor
        In nats: of the digit, then of what stood three characters back.
    """
    logits = model(inputs, **options).movedim(-1, 2)  # (2, texts, vocab_size, tokens)
    return [
        F.cross_entropy(of_one, answer, reduction="none")
        for of_one, answer in zip(logits, (digit, back), strict=True)
    ]


def train_digit_model(scheme, steps, seed, **options):
    """Return a `DigitModel` trained on random batches of 32 texts of 32 characters.

    In each text one character is replaced by a digit. The model is trained to answer twice
    at every position: from the digit on, which digit it was; and from the fourth position
    on, which character stood three positions back. The learning rate rises to 8e-3 and
    falls again.

    Parameters
    ----------
    scheme : str
        Of the positions: "none", "sinusoidal", "learned", "rotary", "ALiBi" or "relative".
    steps : int
        How many steps of training.
    seed : int
        Of the first weights, and of all that is drawn.
    **options
        ``base``, of rotary frequencies; ``reach``, of relative positions, the distance from
        which all share a bucket.

    Returns
    -------
    DigitModel
    """
    torch.manual_seed(seed)
    model = DigitModel(scheme, **options)
    generator = torch.Generator().manual_seed(seed + 1)
    training = sonnet_ids()[0]

    def loss_at(_step):
        """Return the mean loss of the digit, and added to it that of what stood before.

        ``_step`` is not used: every batch is new.
        """
        inputs, digit, back, known = sample_texts(training, 32, SHORT, generator)
        of_digit, of_back = losses(model, inputs, digit, back)
        return of_digit[known].mean() + of_back[:, BACK:].mean()

    train_one_cycle(model, loss_at, steps, 8e-3)
    return model


@torch.no_grad()
def measured(model, **options):
    """Return the losses on 64 held-out texts of 128 characters.

    In each of them one of the first 32 characters is replaced by a digit. From there on the
    model names it at every position, and everywhere the character three positions back.

    Parameters
    ----------
    model : DigitModel
        From ids to logits (2, texts, tokens, vocab_size): of the digit, of three back.
    **options
        What the model does otherwise than in training: ``rotate``, a function that turns
        queries and keys; ``mask``, bool (128, 128), True where a query sees a key;
        ``bias``, (heads, 128, 128), which is added to the scores.

    Returns
    -------
    dict of str to float
        Mean losses, in nats, of the digit and of the character three back: ``digit`` (from
        the digit's position on) and ``back`` over the first 32 characters but three,
        ``digit far`` and ``back far`` over the last 32.
    """
    generator = torch.Generator().manual_seed(2)
    inputs, digit, back, known = sample_texts(sonnet_ids()[1], 64, LONG, generator)
    of_digit, of_back = losses(model, inputs, digit, back, **options)
    near = slice(BACK, SHORT)
    means = {
        "digit": of_digit[:, near][known[:, near]].mean(),
        "back": of_back[:, near].mean(),
        "digit far": of_digit[:, -SHORT:].mean(),
        "back far": of_back[:, -SHORT:].mean(),
    }
    return {name: round(mean.item(), 4) for name, mean in means.items()}


def stretched(model):
    """Measure a model of another scheme, changed for texts four times as long.

    Sinusoids: the pairs that did not complete a turn are four times slower. Learned rows:
    each is used for four positions, with rows between them. ALiBi: the slopes are divided
    by four. Relative: all distances beyond training have the bias of the last one. A model
    without positions is measured as it is.

    Parameters
    ----------
    model : DigitModel
        Not rotary. Its ``table`` or its relative biases may be changed.

    Returns
    -------
    dict
        Losses in nats, of the digit and of the character three positions back: ``digit``
        and ``back``, at trained lengths; ``digit far`` and ``back far``, over the last 32
        characters of long texts.
    """
    options = {}
    if model.scheme == "sinusoidal":
        speeds = frequencies(D_MODEL)
        speeds = torch.where(2 * math.pi / speeds > SHORT, speeds / TIMES, speeds)
        angle = torch.arange(LONG)[:, None] * speeds  # (tokens, pairs)
        model.table = torch.stack((angle.sin(), angle.cos()), -1).flatten(-2).float()
    elif model.scheme == "learned":
        rows = model.learned[:SHORT].detach().T[None]  # (1, d_model, 32)
        model.table = F.interpolate(rows, size=LONG, mode="linear", align_corners=True)[0].T
    elif model.scheme == "ALiBi":
        options["bias"] = alibi_bias(4, LONG) / TIMES
    elif model.scheme == "relative":
        flatten_far_buckets(model)
    return measured(model, **options)


def run(folder, group, seed, steps, scheme="rotary", base=10_000):
    """Train one model on short texts; return its losses on long ones, way by way.

    Parameters
    ----------
    folder : Path
        Unused: no weights are saved.
    group : {"rotary", "others"}
        Rotary positions of several bases, or other schemes; unused, since ``scheme`` and
        ``base`` say it.
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.
    scheme : str
        Of positions: "none", "sinusoidal", "learned", "rotary", "ALiBi" or "relative".
    base : float
        Of rotary positions: pair i turns by base^(-2i / d_head) radians a position.

    Returns
    -------
    dict
        The settings ``scheme``, ``base``, ``seed``, ``steps``; and ``ways``, a dict: how
        the model reads long texts → dict of losses in nats: ``digit`` and ``back`` at
        trained lengths, ``digit far`` and ``back far`` beyond them. The ways are:

        - ``none``: as it is,
        - ``near keys``: all keys but the nearest 32 are hidden,
        - of a rotary model, by which pairs of dimensions turn four times slower: ``all``,
          the ``new`` ones, which did not complete a turn in training, or the ``old`` ones;
          and ``NTK-aware``, with a larger base,
        - of any other model ``stretched``, changed for long texts as suits its positions.
    """
    model = train_digit_model(scheme, steps, seed, base=base)
    ways = {"none": measured(model), "near keys": measured(model, mask=near_mask())}
    if scheme == "rotary":
        for name, speeds in slowed_frequencies(base, SHORT).items():
            if name in ("all", "new", "old", "NTK-aware"):
                ways[name] = measured(
                    model, rotate=lambda x, speeds=speeds: rotate(x, speeds=speeds)
                )
    else:
        ways["stretched"] = stretched(model)
    return {"scheme": scheme, "base": base, "seed": seed, "steps": steps, "ways": ways}


def worse(losses):
    """Return the larger far loss of both answers.

    Parameters
    ----------
    losses : dict of str to float
        ``digit far``, of finding the digit, and ``back far``, of naming the character three
        back, over the end of a long text; in nats.

    Returns
    -------
    float
        In nats.
    """
    return max(losses["digit far"], losses["back far"])


def summary(results):
    """Compare the ways of reading long texts.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "rotary" have ``base``, ``seed`` and
        ``ways``, dict: the model as it is ("none"), with far keys hidden ("near keys"),
        with its "new" pairs slowed, which did not complete a turn in training, the "old"
        ones or "all" → dict with ``digit far`` and ``back far``, its losses at the end of
        long texts, in nats.

    Returns
    -------
    dict
        Of rotary models whose base is not 30,000: ``n``, the number of outcomes, and their
        ``seeds``; ``interval``, which is no confidence interval but a range over models:
        the lowest and the highest of the worse of a model's two losses, in nats, with its
        new pairs slowed; ``verdict``, "holds" or "not so": whether these are below half a
        nat, while with each model as it is, with far keys hidden, and with all or the old
        pairs slowed, the worse is above a nat.
    """
    runs = [run for run in results["rotary"] if run["base"] not in NEARLY_ROUND]
    slowed = [worse(run["ways"]["new"]) for run in runs]
    rivals = ("none", "near keys", "all", "old")
    holds = max(slowed) < 0.5 and all(
        worse(run["ways"][way]) > 1 for run in runs for way in rivals
    )
    return count(runs) | {
        "interval": [min(slowed), max(slowed)],
        "verdict": verdict(holds),
    }
