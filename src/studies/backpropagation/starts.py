"""Does it matter where a decoder's training begins?

Varied: the start. At random: the word vectors are counted and of length 1, everything else
is random, the output's biases are 0. At the word frequencies: the biases are the logarithms
of how often each word occurs in training, and the word vectors are a tenth as long, so that
the first predictions are the frequencies. The learning rate of each start is chosen on
validation sonnets, and so is the step at which a training is stopped.
All losses are those of test sonnets. Three seeds each.

Rivals: smoothed n-gram models of the same text (modified Kneser–Ney): of single words,
pairs and triples.

Null: the same training, from the word frequencies, on the training words shuffled.

Statistic: the mean loss of the word after seven, in nats, where that word occurs in
training. The interval is that of the decoder that began at the word frequencies less the
pairs, over the test sonnets, whose windows depend on each other; the decoders' mean loss
is taken over the seeds first.
"""

from functools import cache

import numpy as np

from lmcourse.data import load_texts, train_val_test_split
from lmcourse.ngrams import NgramModel
from lmcourse.numbers import bootstrap_interval
from lmcourse.numpy_nn import decoder
from lmcourse.numpy_nn.layers import softmax
from studies.backpropagation.backpropagation import CONTEXT
from studies.harness import best_tuned, count, grid, verdict
from studies.measures import ratio_of_sums

CHAPTER = "backpropagation"
CLAIM = (
    "Given a good start, a small decoder predicts new sonnets as well as smoothed counts "
    "of word pairs, to a tenth of a nat"
)
RIVAL = (
    "smoothed counts of single words, pairs and triples; the same decoder begun at random"
)
NULL = "begun at the word frequencies, but the training words are shuffled"
SETTINGS = {
    "steps": 140,
    "every": 20,  # steps between two measurements
    "batch": 32,
    "rates": [0.0015, 0.004],
    "starts": ["frequencies", "random"],
    "seeds": [0, 1, 2],
    "orders": [1, 2, 3],  # of the n-gram models
}


@cache
def load_parts():
    """Load the sonnets as numbers of words, and which test sonnet each test word is from.

    Returns
    -------
    vocabulary : list of str
        The words of training first.
    vectors : array of shape (vocab_size, 60)
        Initial word vectors, counted on training sonnets; zeros for other words.
    texts : dict of str to int array of shape (words of the text,)
        "training", "validation" and "test" → the words' numbers in the vocabulary.
    sonnet : int array of shape (words of the test,)
        Of which test sonnet each word is, from 0.
    known : int
        How many words of the vocabulary occur in training.
    """
    parts = train_val_test_split(load_texts("sonnets"))
    words = {
        name: decoder.mark_sentences(getattr(parts, name))
        for name in ("training", "validation", "test")
    }
    others = words["validation"] + words["test"]
    vocabulary, vectors = decoder.initial_vectors(words["training"], others)
    number = {word: i for i, word in enumerate(vocabulary)}
    texts = {name: np.array([number[w] for w in each]) for name, each in words.items()}
    lengths = [len(decoder.mark_sentences(each)) for each in parts.test.split("\n\n")]
    sonnet = np.repeat(np.arange(len(lengths)), lengths)
    return vocabulary, vectors, texts, sonnet, len(set(words["training"]))


def plan(small):
    """Return the settings: tuning, then three seeds of each start, the null, counting.

    Parameters
    ----------
    small : bool
        Whether to return one run of each kind, with two steps.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``. Of "tuning" and "runs": ``start``, from which
        first weights the training begins (so that the words' frequencies are predicted, or
        at random; "shuffled", the null, trains on words in a random order); ``seed``;
        ``steps``. Of "tuning" also ``rate``, the learning rate. Of "counting": ``order``,
        that of the n-grams.
    """
    chosen = {"steps": 2} if small else {"steps": SETTINGS["steps"]}
    tuning = grid(
        group="tuning",
        start=SETTINGS["starts"],
        rate=SETTINGS["rates"],
        seed=0,
        **chosen,
    )
    runs = grid(
        group="runs",
        start=[*SETTINGS["starts"], "shuffled"],
        seed=SETTINGS["seeds"],
        **chosen,
    )
    counting = grid(group="counting", order=SETTINGS["orders"])
    return [tuning[0], runs[0], counting[0]] if small else [*tuning, *runs, *counting]


def run(folder, group, seed=0, steps=0, start="", order=0, **tuned):
    """Train one decoder, or count.

    Parameters
    ----------
    folder : Path
        Holds a file for each finished run of the tuning.
    group : {"tuning", "runs", "counting"}
        "tuning" tries a learning rate, "runs" trains at the best one, "counting" tests an
        n-gram model.
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.
    start : {"frequencies", "random", "shuffled"}
        "shuffled" begins at the word frequencies and trains on shuffled words.
    order : int
        Of an n-gram model.
    **tuned
        ``rate``, the learning rate; for "runs" the best of the tuning is taken.

    Returns
    -------
    dict
        For a training ``start``, ``rate``, ``seed``, ``step`` (where the loss on
        validation is lowest), the mean losses ``validation`` and ``test`` there, in nats a
        word; ``sonnets``: of each test sonnet, the sum of its losses and how many there
        are. For counting ``order``, ``validation``, ``test`` and ``sonnets``.
    """
    if group == "counting":
        return count_words(order)
    if group == "runs":
        as_tuned = "random" if start == "random" else "frequencies"
        best = best_tuned(folder, start=as_tuned)
        tuned = {"rate": best["rate"]}
    return {"start": start, "seed": seed} | tuned | train_from(start, seed, steps, **tuned)


def begin(start, seed):
    """Return an untrained decoder that predicts the word frequencies, or one as it is made.

    Parameters
    ----------
    start : {"random", "frequencies", "shuffled"}
        "random": the decoder as it is made. Else its word vectors are a tenth as long, and
        the biases of its output are the logarithms of the words' frequencies in training.
        "shuffled", which is trained on shuffled words, begins the same.
    seed : int
        Of the first weights of the blocks.

    Returns
    -------
    lmcourse.numpy_nn.decoder.Decoder
    """
    vocabulary, vectors, texts, _, _ = load_parts()
    if start == "random":
        return decoder.Decoder(vocabulary, vectors, seed=seed)
    model = decoder.Decoder(vocabulary, 0.1 * vectors, seed=seed)
    often = np.bincount(texts["training"], minlength=len(vocabulary)) + 0.5
    model.output.bias.value[...] = np.log(often / often.sum())
    return model


def train_from(start, seed, steps, rate):
    """Train a decoder; return its losses at the step with the lowest on validation sonnets.

    They are measured every 20 steps and at the end.

    Parameters
    ----------
    start : {"random", "frequencies", "shuffled"}
        How it begins: with random weights, or so that it predicts words by their
        frequencies, with word vectors a tenth as long. "shuffled" begins at the frequencies
        and trains on shuffled words.
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.
    rate : float
        The learning rate.

    Returns
    -------
    dict
        ``step``, where the loss on validation sonnets is lowest, and ``validation``, that
        loss; there also ``test``, the mean loss on the test sonnets, and ``sonnets``: of
        each test sonnet, the sum of its losses and how many there are. Losses are in nats.
    """
    texts = load_parts()[2]
    # Each of `records` had the lowest validation loss when it was added.
    words = texts["training"]
    model = begin(start, seed)
    records = []
    if start == "shuffled":
        words = np.random.default_rng(seed).permutation(words)

    def watch(step, *_):
        """Record the test losses whenever the validation loss is the lowest so far.

        ``step`` : int; what else is handed over is not used.
        """
        if step % SETTINGS["every"] == 0 or step == steps:
            validation = round(float(losses(model, "validation").mean()), 4)
            if not records or validation < records[-1]["validation"]:
                row = {"step": step, "validation": validation}
                records.append(row | by_sonnet(losses(model, "test")))

    decoder.train_decoder(
        model,
        words,
        steps,
        batch=SETTINGS["batch"],
        learning_rate=rate,
        seed=seed,
        watch=watch,
    )
    watch(steps)
    return records[-1]


def targets(name):
    """Return the windows of a text, and which count: those whose last word is of training.

    Parameters
    ----------
    name : {"training", "validation", "test"}
        The text.

    Returns
    -------
    windows : int array of shape (windows, 8)
        Numbers of words: seven, and the next one, from each position of the text.
    rows : int array of shape (counted,)
        Indices of the windows that count.
    """
    _, _, texts, _, known = load_parts()
    windows = decoder.windows(texts[name], CONTEXT)
    return windows, np.flatnonzero(windows[:, -1] < known)


def losses(model, name):
    """Return a decoder's loss of the last word of each window that counts, in nats.

    A window is eight words of the text; it counts if its last one, which is predicted from
    the others, occurs in training. ``model`` : `lmcourse.numpy_nn.decoder.Decoder`;
    ``name`` : "validation" or "test", the text. Returns a float array (counted windows,).
    """
    windows, rows = targets(name)
    parts = []
    for part in np.array_split(windows[rows], 8):
        x = model.dictionary.forward(part[:, :-1])
        last = model.blocks.forward(x)[:, -1]  # (windows, d_model)
        shares = softmax(model.output.forward(last))  # (windows, vocab_size)
        parts.append(-np.log(shares[np.arange(len(part)), part[:, -1]]))
    return np.concatenate(parts)


def by_sonnet(found):
    """Return the mean of the losses on the test text, and by sonnet their sum and number.

    Parameters
    ----------
    found : float array of shape (windows,)
        The loss in nats of each test window that counts, that is, whose last word occurs in
        training.

    Returns
    -------
    dict
        ``test``, the mean, in nats a word; ``sonnets``, a list with a pair for each test
        sonnet, [sum of its losses in nats, how many there are].
    """
    _, rows = targets("test")
    sonnet = load_parts()[3][rows + CONTEXT]
    size = sonnet.max() + 1
    sums = np.bincount(sonnet, found, minlength=size).round(4)
    counts = np.bincount(sonnet, minlength=size)
    pairs = [[float(s), int(n)] for s, n in zip(sums, counts, strict=True)]
    return {"test": round(float(found.mean()), 4), "sonnets": pairs}


def count_words(order):
    """Return the losses of an n-gram model of words, on the words that decoders predict.

    Parameters
    ----------
    order : int
        Length of the n-grams.

    Returns
    -------
    dict
        ``order``, that of the n-grams; ``validation`` and ``test``, mean losses in nats a
        word; ``sonnets``, for each test sonnet [sum of its losses, how many they are].
    """
    vocabulary, _, texts, _, _ = load_parts()
    model = NgramModel(texts["training"], order, len(vocabulary))
    by_part = {}
    for name in ("validation", "test"):
        # Those of the words that have `order - 1` words before them in the text.
        probabilities = model.probabilities(texts[name])[-len(texts[name]) + order - 1 :]
        _, rows = targets(name)
        by_part[name] = -np.log(probabilities[rows + CONTEXT - order + 1])
    mean = round(float(by_part["validation"].mean()), 4)
    return {"order": order, "validation": mean} | by_sonnet(by_part["test"])


def sonnet_losses(rows):
    """Return sums and numbers of losses by test sonnet, the sums averaged over the rows.

    Parameters
    ----------
    rows : list of dict
        Outcomes of runs that differ in their seed; ``sonnets`` has, for each test sonnet,
        the sum of its losses, in nats, and how many there are, the same in all rows.

    Returns
    -------
    sums, counts : array of shape (sonnets,)
    """
    both = np.array([row["sonnets"] for row in rows])  # (rows, sonnets, 2)
    return both[..., 0].mean(axis=0), both[0, :, 1]


def gap(ones, others):
    """Return the difference of two mean losses, and its 95 % interval over test sonnets.

    Parameters
    ----------
    ones, others : list of dict
        Outcomes: of several seeds, whose losses are averaged, or one of counting. Each has
        ``sonnets``: for each test sonnet [sum of its losses in nats, how many they are].

    Returns
    -------
    mean : float
        Of ``ones`` less ``others``, in nats a word.
    interval : pair of float
        The ends, in nats a word.
    """
    one, size = sonnet_losses(ones)
    other, _ = sonnet_losses(others)
    interval = bootstrap_interval(one - other, size, statistic=ratio_of_sums)
    return float((one - other).sum() / size.sum()), interval


def summary(results):
    """Compare the decoder that began at the word frequencies with pairs.

    Parameters
    ----------
    results : dict of str to list of dict
        "runs" → dicts, one a training, with ``start`` (where it began: "frequencies",
        "random" or "shuffled") and ``seed``; "counting" → dicts with ``order``, the length
        of n-grams. Both have ``sonnets``: for each test sonnet [sum of its losses in nats,
        how many they are].

    Returns
    -------
    dict
        ``n``, the number of trainings from the word frequencies, and their ``seeds``;
        ``interval``, of their loss less that of the pairs, in nats a word, 95 % over test
        sonnets; ``verdict``, "holds" or "not so": whether that lies within a tenth of a nat
        on either side.
    """
    ours = [row for row in results["runs"] if row["start"] == "frequencies"]
    pairs = [row for row in results["counting"] if row["order"] == 2]
    if not pairs:  # a small plan
        pairs = results["counting"]
    _, (low, high) = gap(ours, pairs)
    return count(ours) | {
        "interval": [round(low, 4), round(high, 4)],
        "verdict": verdict(max(abs(low), abs(high)) < 0.1),
    }
