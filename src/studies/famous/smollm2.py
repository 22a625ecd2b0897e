"""Published results asked of SmolLM2, or of another Llama that stands in its place.

Each function is named as in ``published.toml``, which says what it measures and when the
sentence holds. ``small`` asks for a tenth of the texts or so, for a quick run.
"""

from functools import cache

import numpy as np
import torch
import torch.nn.functional as F

from lmcourse.data import load_poems
from lmcourse.gpt.generation import generate
from lmcourse.gpt.inside import states
from lmcourse.llama import load_talker
from lmcourse.numbers import bootstrap_interval
from lmcourse.prompts import NAMES, errands
from lmcourse.shuffled import shuffled_weights
from studies.famous.outcomes import outcome
from studies.measures import ratio_of_sums

BATCH = 10  # texts that are read at once


@cache
def talker():
    """Return the tokenizer and the model, a `lmcourse.llama.Llama`, on the CPU."""
    return load_talker(device="cpu")


def encoded(texts):
    """Return texts of the same number of tokens as an int64 Tensor (texts, tokens)."""
    return torch.tensor([talker()[0](text).input_ids for text in texts])


def first_tokens(words):
    """Return the id of each word's first token after a space, int64 Tensor (words,)."""
    return torch.tensor([talker()[0](f" {word}").input_ids[0] for word in words])


@torch.no_grad()
def last_logits(texts, model=None):
    """Return the logits of the token that follows each text.

    Parameters
    ----------
    texts : list of str
        Of any lengths.
    model : Llama, optional
        Default: the model that is asked.

    Returns
    -------
    Tensor of shape (texts, vocab_size)
    """
    tokenizer, trained = talker()
    model = model or trained
    rows = [tokenizer(text).input_ids for text in texts]
    found = [None] * len(rows)
    for length in sorted({len(ids) for ids in rows}):
        alike = [number for number, ids in enumerate(rows) if len(ids) == length]
        for start in range(0, len(alike), BATCH):
            batch = alike[start : start + BATCH]
            logits = model(torch.tensor([rows[number] for number in batch]), last=True)
            for number, row in zip(batch, logits[:, -1], strict=True):
                found[number] = row
    return torch.stack(found)


@cache
def poem_tokens(count, tokens):
    """Return the first tokens of the first poems that are long enough.

    Parameters
    ----------
    count, tokens : int

    Returns
    -------
    int64 Tensor of shape (count, tokens)
    """
    texts = [talker()[0](text).input_ids for text in load_poems().text]
    long = [ids[:tokens] for ids in texts if len(ids) >= tokens]
    return torch.tensor(long[:count])


# --- sentences about two people ----------------------------------------------------------


def errand(small=False):
    """Whom does it name, the one who gets it or the one who gives?

    Parameters
    ----------
    small : bool
        Whether on little: few texts, or few short trainings.

    Returns
    -------
    dict
        What `outcome` returns: the mean with its interval, the null, and whether the
        published sentence holds; also ``ahead``, ``null_ahead``.
    """
    told = errands(20 if small else 200, seed=3)
    third = [
        next(name for name in NAMES if name not in pair)
        for pair in zip(told.other, told.giver, strict=True)
    ]
    other_texts = [
        text.replace(f" {giver} gave", f" {name} gave")
        for text, giver, name in zip(told.texts, told.giver, third, strict=True)
    ]
    gaps = name_gaps(told.texts, told.other, told.giver)
    without = name_gaps(other_texts, told.other, told.giver)
    ahead = float((gaps > 0).mean())
    return outcome(
        gaps,
        without.mean(),
        lambda mean, span: span[0] > 0 and ahead >= 0.95,
        ahead=ahead,
        null_ahead=float((without > 0).mean()),
    )


def name_gaps(texts, right, wrong):
    """Return of each text the logit of one name minus that of another.

    Parameters
    ----------
    texts, right, wrong : list of str

    Returns
    -------
    float array of shape (texts,)
    """
    logits = last_logits(texts)
    rows = torch.arange(len(texts))
    return (logits[rows, first_tokens(right)] - logits[rows, first_tokens(wrong)]).numpy()


# --- attention ---------------------------------------------------------------------------


def repeats(small=False):
    """Is a row of random tokens continued when it is read for the second time?

    Parameters
    ----------
    small : bool
        Whether on little: few texts, or few short trainings.

    Returns
    -------
    dict
        What `outcome` returns: the mean with its interval, the null, and whether the
        published sentence holds; also ``heads``, ``null_heads``, ``all_heads``.
    """
    count, length = (4 if small else 30), 25
    generator = torch.Generator().manual_seed(0)
    vocab_size = talker()[1].config.vocab_size
    draw = torch.randint(100, vocab_size, (2, count, length), generator=generator)
    twice = torch.cat([draw[0], draw[0]], 1)  # (count, 2 * length)
    once = torch.cat([draw[0], draw[1]], 1)
    hits, heads = continued(twice, length)
    null_hits, null_heads = continued(once, length)
    return outcome(
        hits,
        null_hits.mean(),
        lambda mean, span: heads > 0 and span[0] > 0.5,
        heads=heads,
        null_heads=null_heads,
        all_heads=talker()[1].config.layers * talker()[1].config.heads,
    )


@torch.no_grad()
def continued(ids, length):
    """Return how often the second half is foretold, and how many heads look for it.

    Parameters
    ----------
    ids : int64 Tensor of shape (rows, 2 * length)
    length : int

    Returns
    -------
    hits : float array of shape (rows,)
        The share of tokens of the second half, but its first, that were the likeliest.
    heads : int
        How many heads give more than half of their attention, in the second half, to the
        token after the one ``length`` places before.
    """
    model, hits, scores = talker()[1], [], []
    for rows in ids.split(BATCH):
        right = model(rows).argmax(-1)[:, length:-1] == rows[:, length + 1 :]
        hits.append(right.float().mean(1))
        queries = torch.arange(length, 2 * length - 1)
        layers = [weights[:, :, queries, queries - length + 1] for weights in
                  model.attentions(rows)]  # fmt: skip
        scores.append(torch.stack(layers).mean((1, 3)))  # (layers, heads)
    heads = int((torch.stack(scores).mean(0) > 0.5).sum())
    return torch.cat(hits).numpy(), heads


def sink(small=False):
    """How much attention does the first token get?

    Parameters
    ----------
    small : bool
        Whether on little: few texts, or few short trainings.

    Returns
    -------
    dict
        What `outcome` returns: the mean with its interval, the null, and whether the
        published sentence holds; also ``even``.
    """
    ids = poem_tokens(4 if small else 30, 64)
    model = talker()[1]
    shares = first_token_shares(model, ids)
    without = first_token_shares(shuffled_weights(model), ids)
    even = float((1 / torch.arange(2, ids.shape[1] + 1)).mean())
    return outcome(shares, without.mean(), lambda mean, span: span[0] > 0.5, even=even)


def first_token_shares(model, ids):
    """Return the share of attention on the first token after two layers, by text.

    Parameters
    ----------
    model : Llama
    ids : int64 Tensor of shape (texts, tokens)

    Returns
    -------
    float array of shape (texts,)
    """
    shares = []
    for rows in ids.split(BATCH):
        layers = model.attentions(rows)[2:]
        by_layer = torch.stack([weights[:, :, 1:, 0].mean((1, 2)) for weights in layers])
        shares.append(by_layer.mean(0))  # (texts,)
    return torch.cat(shares).numpy()


# --- states ------------------------------------------------------------------------------


def rogue(small=False):
    """How much of a cosine do three of the dimensions make up?

    Parameters
    ----------
    small : bool
        Whether on little: few texts, or few short trainings.

    Returns
    -------
    dict
        What `outcome` returns: the mean with its interval, the null, and whether the
        published sentence holds; also ``cosine``.
    """
    ids = poem_tokens(6 if small else 30, 64)
    model = talker()[1]
    middle = model.config.layers // 2
    parts = [states(model, rows)[middle, :, 1:] for rows in ids.split(BATCH)]
    vectors = torch.cat(parts).double()  # (poems, tokens, d_model)
    size = vectors.shape[-1]
    generator = torch.Generator().manual_seed(0)
    gaussian = torch.randn(size, size, generator=generator, dtype=torch.float64)
    turned = vectors @ torch.linalg.qr(gaussian)[0]
    return outcome(
        largest_shares(vectors),
        largest_shares(turned).mean(),
        lambda mean, span: span[0] > 0.5,
        cosine=float(with_others(vectors).sum(1).mean()),
    )


def with_others(vectors):
    """Return what each dimension adds to a text's mean cosine with all other texts.

    Parameters
    ----------
    vectors : float64 Tensor of shape (texts, tokens, d)

    Returns
    -------
    float64 Tensor of shape (texts, d)
        Over all pairs of a token of the text and one of another.
    """
    means = F.normalize(vectors, dim=-1).mean(1)  # (texts, d)
    return means * (means.sum(0) - means) / (len(means) - 1)


def largest_shares(vectors):
    """Return the share of three dimensions in the cosines of each text with the others.

    They are the three that add most over all texts.

    Parameters
    ----------
    vectors : float64 Tensor of shape (texts, tokens, d)

    Returns
    -------
    float64 array of shape (texts,)
    """
    parts = with_others(vectors)
    largest = parts.mean(0).topk(3).indices
    return (parts[:, largest].sum(1) / parts.sum(1)).numpy()


# --- texts -------------------------------------------------------------------------------


def loops(small=False):
    """Does it repeat itself when it always takes the likeliest token?

    Parameters
    ----------
    small : bool
        Whether on little: few texts, or few short trainings.

    Returns
    -------
    dict
        What `outcome` returns: the mean with its interval, the null, and whether the
        published sentence holds; also ``poets``.
    """
    count, tokens = (4, 20) if small else (20, 60)
    poems = poem_tokens(count, 8 + tokens)
    model, start = talker()[1], poems[:, :8]
    generator = torch.Generator().manual_seed(0)
    likeliest = generate(model, start, tokens, temperature=0.0)
    sampled = generate(model, start, tokens, temperature=1.0, generator=generator)
    greedy, drawn, poets = (
        np.array([said_before(row) for row in texts[:, 8:].tolist()])
        for texts in (likeliest, sampled, poems)
    )
    return outcome(
        greedy,
        drawn.mean(),
        lambda mean, span: mean > 0.25 and span[0] > bootstrap_interval(drawn)[1],
        poets=float(poets.mean()),
    )


def said_before(ids, length=4):
    """Return the share of runs of tokens that stand earlier in the same text.

    Parameters
    ----------
    ids : list of int
    length : int
        Tokens of a run.

    Returns
    -------
    float
    """
    runs = [tuple(ids[at : at + length]) for at in range(len(ids) - length + 1)]
    return 1 - len(set(runs)) / len(runs)


@torch.no_grad()
def letters(small=False):
    """How many bits does it need for a letter of a poem?

    Parameters
    ----------
    small : bool
        Whether on little: few texts, or few short trainings.

    Returns
    -------
    dict
        What `outcome` returns: the mean with its interval, the null, and whether the
        published sentence holds.
    """
    tokenizer, model = talker()
    ids = poem_tokens(4 if small else 30, 64)
    losses = []
    for rows in ids.split(BATCH):
        logits = model(rows)[:, :-1].transpose(1, 2)
        losses.append(F.cross_entropy(logits, rows[:, 1:], reduction="none").sum(1))
    bits = (torch.cat(losses) / np.log(2)).numpy()  # (poems,)
    sizes = np.array([len(tokenizer.decode(row[1:])) for row in ids])
    span = bootstrap_interval(bits, sizes, statistic=lambda bits, sizes, axis:
                              ratio_of_sums(bits, sizes, axis))  # fmt: skip
    counted = token_counts(ids, model.config.vocab_size)
    by_count = -(counted / counted.sum()).log2()[ids[:, 1:]].sum(1).numpy()
    found = outcome(
        bits / sizes, by_count.sum() / sizes.sum(), lambda mean, _: span[1] < 1.3
    )
    return found | {"ours": round(float(bits.sum() / sizes.sum()), 4),
                    "interval": [round(end, 4) for end in span]}  # fmt: skip


def token_counts(left_out, vocab_size):
    """Return how often each token stands in the poems, and one.

    Parameters
    ----------
    left_out : int64 Tensor of shape (poems, tokens)
        How the poems begin that are not counted.
    vocab_size : int

    Returns
    -------
    Tensor of shape (vocab_size,)
    """
    begun = {tuple(ids) for ids in left_out.tolist()}
    counts = torch.ones(vocab_size)
    for text in load_poems().text:
        ids = talker()[0](text).input_ids
        if tuple(ids[: left_out.shape[1]]) not in begun:
            counts += torch.bincount(torch.tensor(ids), minlength=vocab_size)
    return counts


# --- grammar -----------------------------------------------------------------------------

# Written down before any model had read them; the plural ends in s.
_NOUNS = (
    "key cabinet letter garden river window teacher farmer doctor pilot author singer "
    "neighbour driver painter worker lawyer guest friend cousin student player sailor "
    "tailor baker hunter manager guard soldier visitor bird horse dog cat cow goat duck "
    "tree flower rose apple lemon table chair lamp clock book picture mirror door car "
    "boat train ship wagon bridge tower house school shop"
)
NOUNS = _NOUNS.split()


def agreement(small=False):
    """Does *was* or *were* follow the subject, past another noun?

    Parameters
    ----------
    small : bool
        Whether on little: few texts, or few short trainings.

    Returns
    -------
    dict
        What `outcome` returns: the mean with its interval, the null, and whether the
        published sentence holds.
    """
    nouns = NOUNS[:10] if small else NOUNS
    texts = []
    for subject, other in zip(nouns, nouns[1:] + nouns[:1], strict=True):
        texts += [f"The {subject} near the {other}s", f"The {subject}s near the {other}"]
    was_right = np.array([True, False] * len(nouns))
    model = talker()[1]
    hits, without = (
        (was_likelier(texts, each) == was_right).reshape(-1, 2).mean(1)
        for each in (model, shuffled_weights(model))
    )
    return outcome(hits, without.mean(), lambda mean, span: span[0] > 0.9)


def was_likelier(texts, model):
    """Return of each text whether *was* is likelier than *were*, a bool array (texts,).

    ``texts`` : list of str; ``model`` : Llama.
    """
    logits = last_logits(texts, model)[:, first_tokens(["was", "were"])]
    return (logits[:, 0] > logits[:, 1]).numpy()


# --- examples ----------------------------------------------------------------------------

# Written down before any model had read them.
_ANIMALS = (
    "lion horse cow dog cat sheep goat wolf fox bear tiger mouse rabbit monkey elephant "
    "camel eagle owl snake frog whale shark bee spider"
)
_PLANTS = (
    "oak rose tulip daisy lily fern moss pine maple willow clover ivy wheat barley rice "
    "corn cactus bamboo orchid poppy nettle palm birch thistle"
)
KINDS = {"animal": _ANIMALS.split(), "plant": _PLANTS.split()}
EXAMPLES = 8
DRAWS = 3  # of the examples, for each word


def labelled(small=False):
    """Return words with their kind, and the examples to read before each.

    Parameters
    ----------
    small : bool

    Returns
    -------
    list of (str, str, list of (str, str))
        A word, its kind, and eight other words with their kinds, four of each, in a random
        order.
    """
    rng = np.random.default_rng(0)
    words = [(word, kind) for kind, words in KINDS.items() for word in words]
    found = []
    for word, kind in words[:: 12 if small else 1] * (1 if small else DRAWS):
        others = []
        for each in KINDS:
            rest = [other for other in KINDS[each] if other != word]
            drawn = rng.choice(rest, EXAMPLES // 2, replace=False)
            others += [(str(other), each) for other in drawn]
        rng.shuffle(others)
        found.append((word, kind, [tuple(map(str, pair)) for pair in others]))
    return found


def guessed(asked):
    """Return which kind is the likelier label of each word.

    Parameters
    ----------
    asked : list of (str, list of (str, str))
        Words, and the examples to read before.

    Returns
    -------
    list of str
    """
    texts = [
        "".join(f"{other}: {kind}\n" for other, kind in examples) + f"{word}:"
        for word, examples in asked
    ]
    kinds = [*KINDS]
    best = last_logits(texts)[:, first_tokens(kinds)].argmax(1)
    return [kinds[number] for number in best]


def by_word(hits):
    """Return the mean of each word's draws, float array (words,).

    ``hits`` : sequence of bool, word by word, each with as many draws.
    """
    return np.asarray(hits, dtype=float).reshape(-1, len(KINDS) * 24).mean(0)


def labels(small=False):
    """What do right labels do for the answer that dealt labels don't?

    Parameters
    ----------
    small : bool
        Whether on little: few texts, or few short trainings.

    Returns
    -------
    dict
        What `outcome` returns: the mean with its interval, the null, and whether the
        published sentence holds; also ``right``, ``dealt``.
    """
    asked = labelled(small)
    rng = np.random.default_rng(1)
    kinds = [*KINDS]
    dealt = [
        (word, [(other, kinds[rng.integers(2)]) for other, _ in examples])
        for word, _, examples in asked
    ]
    answers = [kind for _, kind, _ in asked]
    worlds = {
        "right": [(word, examples) for word, _, examples in asked],
        "dealt": dealt,
        "none": [(word, []) for word, _, _ in asked],
    }
    hits = {}
    for name, world in worlds.items():
        same = np.array(guessed(world)) == np.array(answers)
        hits[name] = same.astype(float) if small else by_word(same)
    return outcome(
        hits["right"] - hits["dealt"],
        hits["none"].mean(),
        lambda mean, span: mean <= 0.05,
        right=float(hits["right"].mean()),
        dealt=float(hits["dealt"].mean()),
    )


def recency(small=False):
    """Is the label that stands last said more often?

    Parameters
    ----------
    small : bool
        Whether on little: few texts, or few short trainings.

    Returns
    -------
    dict
        What `outcome` returns: the mean with its interval, the null, and whether the
        published sentence holds.
    """
    asked = labelled(small)[: 4 if small else 48]
    blocks, mixed, last = [], [], []
    for word, _, examples in asked:
        for turn in (False, True):
            ordered = sorted(examples, key=lambda pair: pair[1], reverse=turn)
            blocks.append((word, ordered))
            last.append(ordered[-1][1])
        mixed.append((word, examples))
    said = np.array(guessed(blocks)) == np.array(last)
    ends = np.array([examples[-1][1] for _, examples in mixed])
    without = np.array(guessed(mixed)) == ends
    return outcome(
        said.reshape(-1, 2).mean(1), without.mean(), lambda mean, span: span[0] > 0.5
    )


# --- a long text -------------------------------------------------------------------------

_THINGS = (
    "drum ring lamp coin book rope ball cake flag boat clock knife plate shirt watch chair "
    "piano apple candle bottle mirror basket hammer ladder"
)
THINGS = _THINGS.split()
PLACES = 6  # parts of the list that are told apart
ABLE = 0.25  # right answers below which a model can't be asked where it finds them


def middle(small=False):
    """Who has what, by the place of the line that says it?

    Parameters
    ----------
    small : bool
        Whether on little: few texts, or few short trainings.

    Returns
    -------
    dict
        What `outcome` returns: the mean with its interval, the null, and whether the
        published sentence holds; also ``able``, ``first``, ``last``.
    """
    seeds = 2 if small else 30
    found, without = zip(*(asked_list(seed) for seed in range(seeds)), strict=True)
    hits = np.array(found, dtype=float)  # (lists, places)
    inner = hits[:, 1:-1].mean(1)
    ends = [bootstrap_interval(hits[:, end] - inner)[0] for end in (0, -1)]
    return outcome(
        inner,
        np.mean(without),
        lambda mean, span: min(ends) > 0,
        able=bool(hits.mean() >= ABLE),
        first=float(hits[:, 0].mean()),
        last=float(hits[:, -1].mean()),
    )


def asked_list(seed):
    """Ask who has what, once in each part of a list.

    Parameters
    ----------
    seed : int
        Of the list, and of the line of each part that is asked for.

    Returns
    -------
    hits : list of bool, one for each part
    without : bool
        The same for one of the parts, where the line that says it is left out.
    """
    rng = np.random.default_rng(seed)
    names = rng.choice(NAMES, len(THINGS), replace=False)
    things = rng.permutation(THINGS)
    lines = [f"{name} has the {thing}." for name, thing in zip(names, things, strict=True)]
    size = len(lines) // PLACES
    chosen = [part * size + int(rng.integers(size)) for part in range(PLACES)]
    texts = ["\n".join(lines) + question(names[at]) for at in chosen]
    out = chosen[seed % PLACES]
    texts.append("\n".join(lines[:out] + lines[out + 1 :]) + question(names[out]))
    *answers, blind = last_logits(texts)[:, first_tokens(things)].argmax(1).tolist()
    hits = [answer == at for answer, at in zip(answers, chosen, strict=True)]
    return hits, blind == out


def question(name):
    """Return the question what somebody has, and the beginning of its answer, a str.

    ``name`` : str, who it is.
    """
    return f"\nWhat does {name} have? {name} has the"
