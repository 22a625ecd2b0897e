"""Checks for the tasks of the chapter *features*."""

import operator
from types import SimpleNamespace

import torch

from lmcourse.data import load_texts, train_val_test_split
from lmcourse.exercises import Case, Faults, exercise, judge, predict
from lmcourse.exercises.answers import Unfit, normal
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.inside import states
from lmcourse.models import trained
from lmcourse.sparse import ITSELF, SparseAutoencoder, character_marks

BAR = 0.5  # the F1 that a feature must reach

# The proof `five_in_two` measures it.
predict(
    "features.bend",
    a="with nothing to cut them off, small wrong numbers come back everywhere.",
    b=None,
    c="two numbers can still carry something without a ReLU, and the toy uses them.",
)


@exercise("features.encode")
def encode():
    """Check a reader's encoder of a sparse autoencoder.

    The answer is a function of states (states, d_model), directions (features, d_model),
    bias (features,) and how many features of a state may be active. It returns their
    strengths (states, features): the largest of state times direction plus bias, never
    below 0, and 0 for all other features. Oracle: a loop over the states that sorts the
    strengths of each.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    directions = normal(9, 4, seed=3)
    bias = normal(9, seed=4) - 2
    x = normal(6, 4, seed=5)
    active = 3
    raw = x @ directions.T + bias
    want = torch.zeros(6, 9)
    for number, row in enumerate(raw):
        for feature in sorted(range(9), key=lambda i, row=row: -row[i])[:active]:
            want[number, feature] = max(row[feature], 0)
    lowest = raw.relu().topk(active).values[:, -1:]
    largest = raw.abs().topk(active)
    mistakes = {
        "negative strengths are still there; they must become 0.": torch.zeros(
            6, 9
        ).scatter(1, raw.topk(active).indices, raw.topk(active).values),
        "all positive strengths are kept, not only the strongest.": raw.relu(),
        "these are the strongest values alone; each must stay in its feature's column.": (
            raw.relu().topk(active).values
        ),
        "the kept ones are 1; a strength says how much.": (want > 0).float(),
        "the bias is missing.": torch.zeros(6, 9).scatter(
            1,
            (x @ directions.T).topk(active).indices,
            (x @ directions.T).relu().topk(active).values,
        ),
        "one too few is kept: the weakest of the strongest belongs, too.": torch.where(
            raw > lowest, raw.relu(), 0.0
        ),
        "the largest by absolute value are kept, also negative ones.": torch.zeros(
            6, 9
        ).scatter(1, largest.indices, raw.gather(1, largest.indices)),
    }
    yield Case([x, directions, bias, active], want, mistakes)


@exercise("features.penalty", kind="spot the bug")
def penalty():
    """Check a reader's penalty on the strengths of a sparse autoencoder's features.

    The answer is a function of strengths (states, features) and the decoder (features,
    d_model), which returns a mean over states. Oracle: a sum over features, each strength
    times the length of its row of the decoder.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    strengths = normal(5, 4, seed=6).abs()
    decoder = normal(4, 3, seed=7)
    lengths = [sum(float(x) ** 2 for x in row) ** 0.5 for row in decoder]
    weighted = torch.stack([strengths[:, i] * lengths[i] for i in range(4)], 1)
    want = weighted.sum(1).mean()
    mistakes = {
        "a long row of the decoder still makes a strength cheap.": strengths.sum(1).mean(),
        "divided: now a long row makes a strength cheaper still.": (
            (strengths / torch.tensor(lengths)).sum(1).mean()
        ),
        "this is the mean over features, too; a state's penalty is their sum.": (
            weighted.mean()
        ),
        "these are squared lengths; multiply by the length.": (
            (strengths * torch.tensor(lengths) ** 2).sum(1).mean()
        ),
        "this is the sum over states; take their mean.": weighted.sum(),
        "squares hardly punish small strengths, so they stay.": (
            weighted.square().sum(1).mean()
        ),
        "these are lengths of columns; a feature's direction is a row.": (
            strengths.sum(1).mean() * decoder.norm(dim=0).mean()
        ),
    }
    yield Case([strengths, decoder], want, mistakes)


def _measured(answer):
    """Compare where a feature is present with the capital letters, on the test sonnets.

    The states of the course's GPT after its third block (level 3) are encoded by the page's
    autoencoder of 512 features; a feature is present where its strength is above 0. Windows
    of 64 characters are read, and the second half of each is measured.

    Parameters
    ----------
    answer : int
        The number of a feature, 0 to 511; anything else is `Unfit`.

    Returns
    -------
    SimpleNamespace
        ``present``, int, at how many characters the feature is present; ``precision``, the
        share of these that are capitals, 0 if there are none; ``recall``, the share of
        capitals at which it is present; ``f1``, the harmonic mean of these two shares.
    """
    if isinstance(answer, bool) or not hasattr(answer, "__index__"):
        raise Unfit("hand in the number of a feature, an int.")
    answer = operator.index(answer)
    if not 0 <= answer < 512:
        raise Unfit("the features have the numbers 0 to 511.")
    tokenizer, model, _ = load_gpt("sonnets", device="cpu")
    coder = trained("autoencoder", lambda: SparseAutoencoder(128, 512, 8))
    text = train_val_test_split(load_texts("sonnets")).test
    starts = range(0, len(text) - 64, 32)
    ids = torch.tensor([tokenizer.encode(text[at : at + 64]) for at in starts])
    is_present = coder.encode(states(model, ids)[3, :, 32:]).flatten(0, 1)[:, answer] > 0
    marks = character_marks(text)[:, ITSELF.index("a capital letter")]
    is_capital = torch.stack([marks[at + 32 : at + 64] for at in starts]).flatten()
    both = int((is_present & is_capital).sum())
    present = int(is_present.sum())
    capitals = int(is_capital.sum())
    return SimpleNamespace(
        f1=2 * both / (present + capitals),
        present=present,
        precision=both / max(present, 1),
        recall=both / capitals,
    )


@exercise("features.capital", kind="experiment")
def capital():
    """Check which feature of the page's autoencoder a reader takes for capital letters.

    The answer is the number of a feature, an int. Oracle: `_measured` reads the test
    sonnets and compares the feature with the capital letters; its F1 must reach `BAR`, 0.5.

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    faults = {
        "this feature is present nowhere in the test sonnets.": lambda seen: (
            seen.present == 0
        ),
        "where it is present, only {precision:.0%} are capital letters: F1 is {f1:.2f}.": (
            lambda seen: seen.f1 < BAR and seen.precision < 0.5
        ),
        "it is mostly right, but is present at only {recall:.0%} of the capital letters: "
        "F1 is {f1:.2f}.": lambda seen: seen.f1 < BAR,
    }
    yield Faults(_measured, faults)


# The proofs `names_come_without_learning` and `means_reach_further` measure what they ask.
judge(
    "features.top_ten",
    a="more of the strongest positions are still only the strongest ones.",
    b="a name must be tested on positions that did not suggest it, whoever found it.",
    c=None,
    d="how long it trained says nothing about this one feature.",
)
judge(
    "features.one_prompt",
    a=None,
    b="a strong push is easily seen; the question is what it does elsewhere.",
    c="where a direction comes from does not decide what it does.",
    d="the same prompt written again is still one prompt.",
)
