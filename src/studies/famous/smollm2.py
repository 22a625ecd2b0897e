"""Published results asked of SmolLM2, or of another Llama that stands in its place.

Each function is named as in ``published.toml``, which says what it measures and when the
sentence holds. ``small`` asks for a tenth of the texts or so, for a quick run.
"""

from functools import cache

import numpy as np
import torch
import torch.nn.functional as F

from lmcourse.data import load_poems, load_texts
from lmcourse.gpt.generation import Cache, generate
from lmcourse.gpt.inside import states
from lmcourse.llama import load_talker
from lmcourse.numbers import bootstrap_interval
from lmcourse.prompts import LUNCH, NAMES, errands
from lmcourse.shuffled import shuffled_weights
from studies.famous.outcomes import above, below, both, outcome
from studies.famous.words import LISTS, NOUNS, PREPOSITIONS, TASKS, THINGS
from studies.measures import ratio_of_sums

BATCH = 10  # texts that are read at once


@cache
def talker():
    """Return the tokenizer and the model, a `lmcourse.llama.Llama`, on the CPU.

    The model is SmolLM2, or what ``LMCOURSE_TALKER`` names. The tokenizer, called with a
    str, gives ids as ``input_ids``, a list of int. Both are loaded once.
    """
    return load_talker(device="cpu")


def first_tokens(words):
    """Return the id of SmolLM2's first token of each word after a space, int64 (words,).

    ``words`` : iterable of str.
    """
    return torch.tensor([talker()[0](f" {word}").input_ids[0] for word in words])


@torch.no_grad()
def last_logits(texts, model=None):
    """Return the logits of the token that follows each text.

    Parameters
    ----------
    texts : list of str
        Of any lengths.
    model : Llama, optional
        Default: SmolLM2, or what stands in its place (`talker`).

    Returns
    -------
    Tensor of shape (texts, vocab_size)
    """
    tokenizer, trained = talker()
    model = model or trained
    rows = [tokenizer(text).input_ids for text in texts]
    by_text = [None] * len(rows)
    for length in sorted({len(ids) for ids in rows}):
        alike = [number for number, ids in enumerate(rows) if len(ids) == length]
        for start in range(0, len(alike), BATCH):
            batch = alike[start : start + BATCH]
            logits = model(torch.tensor([rows[number] for number in batch]), last=True)
            for number, row in zip(batch, logits[:, -1], strict=True):
                by_text[number] = row
    return torch.stack(by_text)


@torch.no_grad()
def logits_after(beginning, ends):
    """Return SmolLM2's logits of the token that follows a text with each of some ends.

    Texts of one length, in tokens, are read together. What they begin with in common is
    read once only, and its keys and values are kept, so that this is faster than
    `last_logits`, which returns the same but for rounding.

    Parameters
    ----------
    beginning : str
        What comes before each of the ends.
    ends : list of str
        Of any lengths.

    Returns
    -------
    Tensor of shape (ends, vocab_size)
    """
    tokenizer, model = talker()
    rows = [tokenizer(beginning + end).input_ids for end in ends]
    by_end = [None] * len(rows)
    for length in sorted({len(ids) for ids in rows}):
        alike = [number for number, ids in enumerate(rows) if len(ids) == length]
        ids = torch.tensor([rows[number] for number in alike])  # (texts, tokens)
        # 1 at each token up to the first that differs; the last is never shared, since its
        # logits are asked.
        same = (ids[:, :-1] == ids[:1, :-1]).all(0).int().cumprod(0)
        shared = int(same.sum())
        read = Cache(model)
        if shared:
            model(ids[:1, :shared], read, last=True)
            # each text continues the one row that was read
            read.reorder(torch.zeros(len(alike), dtype=torch.int64))
        # With the whole texts, of which the model reads what the cache does not hold.
        for number, row in zip(alike, model(ids, read, last=True)[:, -1], strict=True):
            by_end[number] = row
    return torch.stack(by_end)


@cache
def poem_tokens(count, tokens):
    """Return the first tokens of the first of Dickinson's poems that are long enough.

    Parameters
    ----------
    count : int
        How many poems.
    tokens : int
        How many of SmolLM2's tokens of each; shorter poems are left out.

    Returns
    -------
    int64 Tensor of shape (count, tokens)
        Not a copy: it is cached.
    """
    return beginnings(load_poems().text, count, tokens)


def sonnet_tokens(count, tokens):
    """Return the first tokens of the first of Shakespeare's sonnets that are long enough.

    ``count`` : int, how many sonnets; ``tokens`` : int, how many of SmolLM2's tokens of
    each. Returns an int64 Tensor (count, tokens).
    """
    return beginnings(load_texts("sonnets"), count, tokens)


def beginnings(texts, count, tokens):
    """Return the first tokens of the first texts that are long enough.

    Parameters
    ----------
    texts : sequence of str
    count : int or None
        How many texts at most; None: all.
    tokens : int
        How many of SmolLM2's tokens of each; shorter texts are left out.

    Returns
    -------
    int64 Tensor of shape (texts, tokens)
        ``count`` texts, or as many as are long enough.
    """
    texts = [talker()[0](text).input_ids for text in texts]
    long = [ids[:tokens] for ids in texts if len(ids) >= tokens]
    return torch.tensor(long[:count])


# --- sentences about two people ----------------------------------------------------------


def errand(small=False):
    """Measure whom SmolLM2 names at the end: who gets a thing, or who gives it.

    The sentences are of the form "When Ann and Tom went to the shop, Ann gave a ring to".

    Parameters
    ----------
    small : bool
        Whether to read a tenth of the sentences.

    Returns
    -------
    dict
        Of the gap of the two names' logits in each sentence, the receiver's less the
        giver's: ``ours``, the mean; ``interval``, that of the mean at 95 %; ``n``, how many
        numbers; ``null``, the mean gap where a third person gives; ``holds``, whether the
        interval is above 0 and ``ahead`` 0.95 at least, or None if it is too close to say.

        Also ``ahead`` and ``null_ahead``, the shares of sentences with a gap above 0;
        ``lunch`` and ``lunch_ahead``, the mean gap and that share in "… After lunch Ann
        showed the ring to".
    """
    sentences = errands(20 if small else 200, seed=3)
    third = [
        next(name for name in NAMES if name not in pair)
        for pair in zip(sentences.other, sentences.giver, strict=True)
    ]
    other_texts = [
        text.replace(f" {giver} gave", f" {name} gave")
        for text, giver, name in zip(sentences.texts, sentences.giver, third, strict=True)
    ]
    gaps = name_gaps(sentences.texts, sentences.other, sentences.giver)
    lunch = name_gaps(*errands(5 if small else 50, seed=3, form=LUNCH))
    without = name_gaps(other_texts, sentences.other, sentences.giver)
    ahead = float((gaps > 0).mean())
    return outcome(
        gaps,
        without.mean(),
        lambda mean, span: both(above(span, 0), ahead >= 0.95),
        ahead=ahead,
        null_ahead=float((without > 0).mean()),
        lunch=float(lunch.mean()),
        lunch_ahead=float((lunch > 0).mean()),
    )


def name_gaps(texts, right, wrong):
    """Return, after each text, SmolLM2's logit of one name minus that of another.

    Parameters
    ----------
    texts : list of str
    right, wrong : list of str
        The two names for each text, each one token after a space.

    Returns
    -------
    float array of shape (texts,)
    """
    logits = last_logits(texts)
    rows = torch.arange(len(texts))
    return (logits[rows, first_tokens(right)] - logits[rows, first_tokens(wrong)]).numpy()


# --- attention ---------------------------------------------------------------------------


def repeats(small=False):
    """Measure how often SmolLM2 continues a row of random tokens that it reads again.

    A row has 25 tokens.

    Parameters
    ----------
    small : bool
        Whether to read four rows in place of 30.

    Returns
    -------
    dict
        Of the share of tokens that are predicted in the repetition, a number for each row:
        ``ours``, the mean; ``interval``, that of the mean at 95 %; ``n``, how many numbers;
        ``null``, the mean where the second half is another row; ``holds``, whether the
        interval is above 0.5 and ``heads`` above 0, or None if it is too close to say.

        Also ``heads`` and ``null_heads``, how many heads give more than half of their
        attention to the token after the earlier occurrence, with the repetition and in the
        null; ``all_heads``, how many there are.
    """
    count = 4 if small else 30
    length = 25
    generator = torch.Generator().manual_seed(0)
    vocab_size = talker()[1].config.vocab_size
    rows = torch.randint(100, vocab_size, (2, count, length), generator=generator)
    twice = torch.cat([rows[0], rows[0]], 1)  # (count, 2 * length)
    once = torch.cat([rows[0], rows[1]], 1)
    hits, heads = continued(twice, length)
    null_hits, null_heads = continued(once, length)
    return outcome(
        hits,
        null_hits.mean(),
        lambda mean, span: both(above(span, 0.5), heads > 0),
        heads=heads,
        null_heads=null_heads,
        all_heads=talker()[1].config.layers * talker()[1].config.heads,
    )


@torch.no_grad()
def continued(ids, length):
    """Return how often SmolLM2 predicts the second half, and how many heads attend back.

    Parameters
    ----------
    ids : int64 Tensor of shape (rows, 2 * length)
        Rows of tokens, of two halves.
    length : int
        How many tokens a half has.

    Returns
    -------
    hits : float array of shape (rows,)
        The share of tokens of the second half, but its first, that the model finds
        likeliest.
    heads : int
        How many heads give more than half of their attention, as a mean over the second
        half and all rows, to the token after the one ``length`` positions before.
    """
    model = talker()[1]
    hits = []
    scores = []
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
    """Measure how much attention of SmolLM2 the first token of a text gets.

    Means over all heads of all layers but the first two, and over 63 tokens after the
    first.

    Parameters
    ----------
    small : bool
        Whether to read four poems by Dickinson and four sonnets, not 30 each; of each the
        first 64 tokens.

    Returns
    -------
    dict
        Of the share of attention that the first token gets, a number for each text:
        ``ours``, the mean; ``interval``, that of the mean at 95 %; ``n``, how many numbers;
        ``null``, the mean over the poems with shuffled weights; ``holds``, whether the
        interval is above 0.5, or None if it is too close to say.

        Also ``even``, what an even share would be; ``dickinson`` and ``shakespeare``, the
        mean shares in the texts of each.
    """
    count = 4 if small else 30
    poems = poem_tokens(count, 64)
    sonnets = sonnet_tokens(count, 64)
    model = talker()[1]
    shares = [first_token_shares(model, ids) for ids in (poems, sonnets)]
    without = first_token_shares(shuffled_weights(model), poems)
    return outcome(
        np.concatenate(shares),
        without.mean(),
        lambda mean, span: above(span, 0.5),
        even=float((1 / torch.arange(2, poems.shape[1] + 1)).mean()),
        dickinson=float(shares[0].mean()),
        shakespeare=float(shares[1].mean()),
    )


def first_token_shares(model, ids):
    """Return the share of attention on the first token, by text.

    It is the mean over all layers but the first two, over heads, and over all tokens after
    the first.

    Parameters
    ----------
    model : Llama
        ``attentions(ids)`` returns each layer's weights, (texts, heads, tokens, tokens).
    ids : int64 Tensor of shape (texts, tokens)
        Numbers of tokens.

    Returns
    -------
    float array of shape (texts,)
        From 0 to 1.
    """
    shares = []
    for rows in ids.split(BATCH):
        layers = model.attentions(rows)[2:]
        by_layer = torch.stack([weights[:, :, 1:, 0].mean((1, 2)) for weights in layers])
        shares.append(by_layer.mean(0))  # (texts,)
    return torch.cat(shares).numpy()


# --- states ------------------------------------------------------------------------------


def rogue(small=False):
    """Measure how much of the cosine of two states of SmolLM2 three dimensions make up.

    The states are those after half of the layers, of the tokens of poems but the first of
    each; a cosine is that of two states of different poems. The three dimensions are those
    that add most to the mean cosine.

    Parameters
    ----------
    small : bool
        Whether to read six poems in place of 30.

    Returns
    -------
    dict
        Of the share of three dimensions in the mean cosine, a number for each poem:
        ``ours``, the mean; ``interval``, that of the mean at 95 %; ``n``, how many numbers;
        ``null``, the mean where the states are rotated at random; ``holds``, whether the
        interval is above 0.5, or None if it is too close to say.

        Also ``cosine``, the mean cosine of states of different poems.
    """
    ids = poem_tokens(6 if small else 30, 64)
    model = talker()[1]
    middle = model.config.layers // 2
    parts = [states(model, rows)[middle, :, 1:] for rows in ids.split(BATCH)]
    vectors = torch.cat(parts).double()  # (poems, tokens, d_model)
    size = vectors.shape[-1]
    generator = torch.Generator().manual_seed(0)
    gaussian = torch.randn(size, size, generator=generator, dtype=torch.float64)
    rotated = vectors @ torch.linalg.qr(gaussian)[0]
    return outcome(
        largest_shares(vectors),
        largest_shares(rotated).mean(),
        lambda mean, span: above(span, 0.5),
        cosine=float(with_others(vectors).sum(1).mean()),
    )


def with_others(vectors):
    """Return what each dimension adds to the mean cosine of a text's states with others.

    Parameters
    ----------
    vectors : float64 Tensor of shape (texts, tokens, d)

    Returns
    -------
    float64 Tensor of shape (texts, d)
        The mean is over all pairs of a token of the text and a token of another text; it is
        the sum of a row.
    """
    means = F.normalize(vectors, dim=-1).mean(1)  # (texts, d)
    return means * (means.sum(0) - means) / (len(means) - 1)


def largest_shares(vectors):
    """Return which share of each text's mean cosine with the others three dimensions make.

    They are the three that add most to the mean cosine over all texts.

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
    """Measure how often SmolLM2 repeats itself when it always takes the likeliest token.

    It continues the first eight tokens of each poem by 60.

    Parameters
    ----------
    small : bool
        Whether to write four short texts in place of 20.

    Returns
    -------
    dict
        Of the share of sequences of four tokens that stand earlier in the same text, a
        number for each text: ``ours``, the mean; ``interval``, that of the mean at 95 %;
        ``n``, how many numbers; ``null``, the mean where each token is drawn by its
        probability; ``holds``, whether the interval is above 0.25 and above the whole
        interval of the null, or None if it is too close to say.

        Also ``poets``, that share in the poems themselves, and ``able``: whether the model
        needs fewer bits for the poems than counts of single tokens do. One that doesn't
        repeats itself at once.
    """
    count = 4 if small else 20
    tokens = 20 if small else 60
    poems = poem_tokens(count, 8 + tokens)
    model = talker()[1]
    start = poems[:, :8]
    generator = torch.Generator().manual_seed(0)
    likeliest = generate(model, start, tokens, temperature=0.0)
    sampled = generate(model, start, tokens, temperature=1.0, generator=generator)
    greedy, drawn, poets = (
        np.array([said_before(row) for row in texts[:, 8:].tolist()])
        for texts in (likeliest, sampled, poems)
    )
    most_drawn = bootstrap_interval(drawn)[1]
    return outcome(
        greedy,
        drawn.mean(),
        lambda mean, span: both(above(span, 0.25), above(span, most_drawn)),
        able=bool(bits_of(poems).sum() < bits_by_count(poems).sum()),
        poets=float(poets.mean()),
    )


def said_before(ids, length=4):
    """Return the share of a text's sequences of tokens that stood earlier in it.

    Parameters
    ----------
    ids : list of int
        The tokens of one text, ``length`` at least.
    length : int
        How many tokens a sequence has; they overlap.

    Returns
    -------
    float
        One minus the share of sequences that are different.
    """
    sequences = [tuple(ids[at : at + length]) for at in range(len(ids) - length + 1)]
    return 1 - len(set(sequences)) / len(sequences)


def letters(small=False):
    """Measure how many bits SmolLM2 needs for a letter of a poem.

    Parameters
    ----------
    small : bool
        Whether to read four poems and four sonnets in place of 30 each.

    Returns
    -------
    dict
        Of the bits that the model needs, over all letters of all poems together: ``ours``,
        bits a letter; ``interval``, that of this at 95 %; ``n``, how many poems; ``null``,
        the bits a letter of counts of single tokens in other poems; ``holds``, whether the
        interval is below 1.3, or None if it is too close to say. Also ``sonnets``, the bits
        a letter of Shakespeare's.
    """
    count = 4 if small else 30
    ids = poem_tokens(count, 64)
    sonnets = sonnet_tokens(count, 64)
    bits = bits_of(ids)
    sizes = letters_in(ids)
    span = bootstrap_interval(bits, sizes, statistic=ratio_of_sums)
    result = outcome(
        bits / sizes,
        bits_by_count(ids).sum() / sizes.sum(),
        lambda mean, _: below(span, 1.3),
        sonnets=float(bits_of(sonnets).sum() / letters_in(sonnets).sum()),
    )
    return result | {"ours": round(float(bits.sum() / sizes.sum()), 4),
                    "interval": [round(end, 4) for end in span]}  # fmt: skip


@torch.no_grad()
def bits_of(ids):
    """Return how many bits SmolLM2 needs for each text, after its first token.

    Parameters
    ----------
    ids : int64 Tensor of shape (texts, tokens)
        Numbers of tokens.

    Returns
    -------
    float array of shape (texts,)
    """
    losses = []
    for rows in ids.split(BATCH):
        logits = talker()[1](rows)[:, :-1].transpose(1, 2)
        losses.append(F.cross_entropy(logits, rows[:, 1:], reduction="none").sum(1))
    return (torch.cat(losses) / np.log(2)).numpy()


def letters_in(ids):
    """Return how many characters each text has after its first token.

    ``ids`` : int64 Tensor (texts, tokens) of SmolLM2's ids; spaces and ends of lines count.
    The result is an int array (texts,).
    """
    return np.array([len(talker()[0].decode(row[1:])) for row in ids])


def bits_by_count(ids):
    """Return the bits that counts of tokens need for each text, after its first token.

    ``ids`` : int64 Tensor (texts, tokens), SmolLM2's. Tokens are counted in Dickinson's
    poems; those that begin as the texts do are left out. The result is a float array
    (texts,).
    """
    counted = token_counts(ids, talker()[1].config.vocab_size)
    return -(counted / counted.sum()).log2()[ids[:, 1:]].sum(1).numpy()


def token_counts(left_out, vocab_size):
    """Return how often each token stands in Dickinson's poems, some left out, plus one.

    Parameters
    ----------
    left_out : int64 Tensor of shape (poems, tokens)
        The first tokens of the poems that are not counted.
    vocab_size : int
        How many different tokens there are.

    Returns
    -------
    float Tensor of shape (vocab_size,)
        At least 1 for each token.
    """
    begun = {tuple(ids) for ids in left_out.tolist()}
    counts = torch.ones(vocab_size)
    for text in load_poems().text:
        ids = talker()[0](text).input_ids
        if tuple(ids[: left_out.shape[1]]) not in begun:
            counts += torch.bincount(torch.tensor(ids), minlength=vocab_size)
    return counts


# --- grammar -----------------------------------------------------------------------------


def agreement(small=False):
    """Measure how often SmolLM2 lets the verb agree with the subject, not the last noun.

    The verb is *was* or *were*. It reads "The key near the cabinets" and the like, with 60
    nouns and ten prepositions.

    Parameters
    ----------
    small : bool
        Whether to take ten nouns.

    Returns
    -------
    dict
        Of the share of right choices, a number for each noun: ``ours``, the mean;
        ``interval``, that of the mean at 95 %; ``n``, how many numbers; ``null``, the mean
        with shuffled weights; ``holds``, whether the interval is above 0.9, or None if it
        is too close to say.

        Also ``first``, the mean with the first preposition; ``lowest`` and ``highest``, the
        means with the two prepositions after which the verb is right least and most often,
        and these, ``hardest`` and ``easiest``, str.
    """
    nouns = NOUNS[:10] if small else NOUNS
    hits = np.array([agrees(nouns, word, talker()[1]) for word in PREPOSITIONS])
    without = agrees(nouns, PREPOSITIONS[0], shuffled_weights(talker()[1]))
    means = hits.mean(1)
    return outcome(
        hits.mean(0),
        without.mean(),
        lambda mean, span: above(span, 0.9),
        first=float(means[0]),
        lowest=float(means.min()),
        highest=float(means.max()),
        hardest=PREPOSITIONS[means.argmin()],
        easiest=PREPOSITIONS[means.argmax()],
    )


def agrees(nouns, preposition, model):
    """Return for each noun how often the verb agrees with it, not with the noun in between.

    The texts are "The key near the cabinets" and "The keys near the cabinet".

    Parameters
    ----------
    nouns : list of str
        Singulars whose plural ends in -s.
    preposition : str
        It stands between the two nouns.
    model : Llama

    Returns
    -------
    float array of shape (nouns,)
        0, 0.5 or 1: how many of its singular and its plural are followed by the right one
        of *was* and *were*.
    """
    texts = []
    for subject, other in zip(nouns, nouns[1:] + nouns[:1], strict=True):
        texts.append(f"The {subject} {preposition} the {other}s")
        texts.append(f"The {subject}s {preposition} the {other}")
    was_right = np.array([True, False] * len(nouns))
    return (was_likelier(texts, model) == was_right).reshape(-1, 2).mean(1)


def was_likelier(texts, model):
    """Return whether *was* is likelier than *were* after each text, a bool array (texts,).

    Compared are the logits of the first tokens of " was" and " were". ``texts`` : list of
    str; ``model`` : Llama.
    """
    logits = last_logits(texts, model)[:, first_tokens(["was", "were"])]
    return (logits[:, 0] > logits[:, 1]).numpy()


# --- examples ----------------------------------------------------------------------------

EXAMPLES = 8
DRAWS = 8  # of the examples, for each task
ASKED = 4  # words of each kind, for each draw


def draws_of(task, small=False):
    """Draw examples of a task, and other words to label after them, eight times.

    Parameters
    ----------
    task : dict of str to list of str
        Two labels, and the words of each.
    small : bool
        Whether to draw once in place of eight times.

    Returns
    -------
    list of (list of (str, str), list of (str, str))
        Of each draw, words with their labels: the eight examples, four of each label, in a
        random order; and the eight words that are asked, four of each label, the first
        label's first.
    """
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(1 if small else DRAWS):
        examples = []
        asked = []
        for label, words in task.items():
            drawn = [str(word) for word in rng.permutation(words)]
            examples += [(word, label) for word in drawn[: EXAMPLES // 2]]
            asked += [(word, label) for word in drawn[EXAMPLES // 2 :][:ASKED]]
        examples = [examples[at] for at in rng.permutation(EXAMPLES)]
        draws.append((examples, asked))
    return draws


def guessed(task, examples, words):
    """Return which label of a task SmolLM2 finds likeliest for each word.

    It reads the examples as lines, "oak: plant", and then "lion:"; a label counts by its
    first token.

    Parameters
    ----------
    task : dict
        Its keys are the labels, str.
    examples : list of (str, str)
        Words with the labels that are read before.
    words : list of str
        Which are to be labelled.

    Returns
    -------
    list of str
        A label for each of the words.
    """
    prompt = "".join(f"{word}: {label}\n" for word, label in examples)
    logits = logits_after(prompt, [f"{word}:" for word in words])
    best = logits[:, first_tokens(task)].argmax(1)
    return [[*task][number] for number in best]


def labels(small=False):
    """Measure by how much right labels of examples help SmolLM2 more than random ones.

    Asked are six tasks of two labels, such as "animal" or "plant", after eight examples.

    Parameters
    ----------
    small : bool
        Whether to draw once for each task in place of eight times.

    Returns
    -------
    dict
        Of the share of right answers after right labels less that after random ones, a
        number for each eight examples: ``ours``, the mean; ``interval``, that of the mean
        at 95 %; ``n``, how many numbers; ``null``, the mean share of right answers without
        examples; ``holds``, whether the interval is below 0.05, or None if it is too close
        to say.

        Also ``right`` and ``dealt``, the mean shares after right labels and after random
        ones; ``able``, whether the first is surely above a half; ``harmed``, in how many
        tasks random labels are worse than no examples; ``tasks``, how many there are, and
        of their mean differences the ``lowest`` and ``highest``, with the labels of these
        two, ``low_task`` and ``high_task``, str.
    """
    rng = np.random.default_rng(1)
    hits = []
    for task in TASKS:
        for examples, asked in draws_of(task, small):
            dealt = [(word, [*task][rng.integers(2)]) for word, _ in examples]
            words, answers = zip(*asked, strict=True)
            worlds = [guessed(task, each, words) for each in (examples, dealt, [])]
            hits.append((np.array(worlds) == np.array(answers)).mean(1))
    right, dealt, none = np.array(hits).T  # (tasks * draws,) each
    harmed = (dealt - none).reshape(len(TASKS), -1).mean(1) < 0
    return outcome(
        right - dealt,
        none.mean(),
        lambda mean, span: below(span, 0.05),
        able=bool(bootstrap_interval(right)[0] > 0.5),
        right=float(right.mean()),
        dealt=float(dealt.mean()),
        harmed=int(harmed.sum()),
        **by_task(right - dealt),
    )


def by_task(values):
    """Return in which of the six tasks the mean of some values is lowest and highest.

    Parameters
    ----------
    values : float array of shape (tasks * draws,)
        A number for each draw of examples, task after task.

    Returns
    -------
    dict
        ``tasks``, how many; ``lowest`` and ``highest``, the means; ``low_task`` and
        ``high_task``, their two labels, such as "animal or plant".
    """
    means = values.reshape(len(TASKS), -1).mean(1)
    names = [" or ".join(task) for task in TASKS]
    return {
        "tasks": len(TASKS),
        "lowest": float(means.min()),
        "highest": float(means.max()),
        "low_task": names[means.argmin()],
        "high_task": names[means.argmax()],
    }


def recency(small=False):
    """Measure how often SmolLM2 answers with the label that it read last.

    Parameters
    ----------
    small : bool
        Whether to draw once for each task in place of eight times.

    Returns
    -------
    dict
        Of the share of answers that are the last label read, where the examples of each
        label stand together, a number for each eight examples: ``ours``, the mean;
        ``interval``, that of the mean at 95 %; ``n``, how many numbers; ``null``, the mean
        where the labels are mixed; ``holds``, whether the interval is above 0.5, or None if
        it is too close to say.

        Also ``able``, whether the share of right answers is surely above a half; ``tasks``,
        how many there are, and of their mean shares the ``lowest`` and ``highest``, with
        the labels of these two, ``low_task`` and ``high_task``, str.
    """
    together = []
    mixed = []
    right = []
    for task in TASKS:
        for examples, asked in draws_of(task, small):
            words, answers = zip(*asked, strict=True)
            by_label = sorted(examples, key=lambda pair: pair[1])
            backwards = sorted(examples, key=lambda pair: pair[1], reverse=True)
            together.append(said_last(task, [by_label, backwards], words)[0])
            share, given = said_last(task, [examples, other_last(examples)], words)
            mixed.append(share)
            right.append((np.array(given) == np.array(answers)).mean())
    return outcome(
        together,
        np.mean(mixed),
        lambda mean, span: above(span, 0.5),
        able=bool(bootstrap_interval(right)[0] > 0.5),
        **by_task(np.array(together)),
    )


def other_last(examples):
    """Return examples in an order that ends in another label than before.

    The last example changes places with the last one that has another label.

    ``examples`` : list of (str, str), words with their labels; there are two different
    labels at least. Returns such a list.
    """
    moved = [*examples]
    at = max(at for at, pair in enumerate(examples) if pair[1] != examples[-1][1])
    moved[at], moved[-1] = moved[-1], moved[at]
    return moved


def said_last(task, orders, words):
    """Return how often SmolLM2 says the label that it read last.

    Parameters
    ----------
    task : dict
        Its keys are the labels, str; its values, the words of each, are not read.
    orders : list of list of (str, str)
        The same examples, pairs of a word and its label, in two orders: one label comes
        last in the first, the other in the second. So a model that ignores the order says
        the last label half of the time.
    words : list of str
        Which are to be labelled.

    Returns
    -------
    share : float
        How often the answer is the last example's label: of both orders and all words, 0 to
        1.
    given : list of str
        The label of each word after the first order.
    """
    given = [guessed(task, examples, words) for examples in orders]
    last = [examples[-1][1] for examples in orders]
    hits = [np.array(each) == label for each, label in zip(given, last, strict=True)]
    return float(np.mean(hits)), given[0]


# --- a long text -------------------------------------------------------------------------

PLACES = 6  # parts of the list that are told apart
ABLE = 0.25  # right answers below which a model can't be asked where it finds them


def middle(small=False):
    """Measure how often SmolLM2 finds what somebody has in a list, by the line's place.

    It reads lists of 24 lines, "Ann has the ring.", then "What does Ann have? Ann has the".

    Parameters
    ----------
    small : bool
        Whether to read few lists.

    Returns
    -------
    dict
        Of the share of right answers from the four inner sixths of the list, a number for
        each list: ``ours``, the mean; ``interval``, that of the mean at 95 %; ``n``, how
        many numbers; ``null``, the mean without the line that says it; ``holds``, whether
        the first and the last sixth are each surely better than these, or None if it is too
        close to say.

        Also ``first`` and ``last``, the shares at the ends; ``able``, whether a quarter of
        all answers are right; ``others``, in how many other forms the list is tried (those
        of `LISTS` but the first, with other words or fewer lines); ``best``, the share of
        right answers in the form that has most.
    """
    hits, without = lists(2 if small else 30, *LISTS[0])
    others = [lists(1 if small else 6, *form)[0].mean() for form in LISTS[1:]]
    inner = hits[:, 1:-1].mean(1)
    ends = [bootstrap_interval(hits[:, end] - inner) for end in (0, -1)]
    return outcome(
        inner,
        without.mean(),
        lambda mean, span: both(above(ends[0], 0), above(ends[1], 0)),
        able=bool(hits.mean() >= ABLE),
        first=float(hits[:, 0].mean()),
        last=float(hits[:, -1].mean()),
        others=len(others),
        best=float(max(others)),
    )


def lists(count, *form):
    """Ask SmolLM2 who has what, of some lists, once in each sixth of them.

    Parameters
    ----------
    count : int
        How many lists; each list's number is its seed.
    *form
        Three arguments of `asked_list`: the statement, such as "{} has the {}.", with gaps
        for a name and a thing; the question, with one for the name; and the number of
        lines.

    Returns
    -------
    hits : float array of shape (count, 6)
        1 where the answer is right, else 0.
    without : float array of shape (count,)
        1 or 0 of the answer for one of the sixths, after the line that says it was left
        out.
    """
    hits, without = zip(*(asked_list(seed, *form) for seed in range(count)), strict=True)
    return np.array(hits, dtype=float), np.array(without, dtype=float)


def asked_list(seed, statement, question, length):
    """Ask SmolLM2 who has what, once in each of six parts of a list.

    Parameters
    ----------
    seed : int
        Of the list, which has names and things in a random order, and of the line of each
        part that is asked for.
    statement, question : str
        With a gap ``{}`` for the name; the statement with another one for the thing.
    length : int
        How many lines, a multiple of six, the number of parts (`PLACES`).

    Returns
    -------
    hits : list of bool, one for each part
        Whether the thing of the line is the likeliest of all things of the list.
    without : bool
        The same for the part with the number ``seed`` modulo six, in a list from which the
        line that is asked for is left out.
    """
    rng = np.random.default_rng(seed)
    names = rng.choice(NAMES, length, replace=False)
    things = rng.permutation(THINGS)[:length]
    lines = [statement.format(*pair) for pair in zip(names, things, strict=True)]
    size = length // PLACES
    chosen = [part * size + int(rng.integers(size)) for part in range(PLACES)]
    ends = [question.format(names[at]) for at in chosen]
    left_out = chosen[seed % PLACES]
    rest = "\n".join(lines[:left_out] + lines[left_out + 1 :])
    known = first_tokens(things)
    answers = logits_after("\n".join(lines), ends)[:, known].argmax(1).tolist()
    guess = logits_after(rest, [question.format(names[left_out])])[0, known].argmax()
    hits = [answer == at for answer, at in zip(answers, chosen, strict=True)]
    return hits, int(guess) == left_out
