"""How far back do a decoder's heads attend while it learns its text by heart?

What varies: the steps of training, up to 2,000; and the text, which is the sonnets, their
words shuffled once (an order that means nothing but can be learned by heart), or their
words shuffled anew at every step (nothing can be learned by heart). In short trainings
also what happens to the word vectors: they are trained, kept fixed for the first half,
or brought to unit length at every step, at two learning rates. Three seeds each.

Rivals: the order of the words, which shuffled words do not have; an n-gram model counted on
other sonnets.

Null: untrained heads; words that are shuffled anew at every step.

Statistic: how many words back the last word of seven attends, averaged by its attention
weights and over the heads of a layer; losses, in nats a word; samples, none left out. The
interval is that of how much nearer the heads attend after training, over the seeds.

The first decoder is saved as ``decoder.safetensors``.
"""

import numpy as np

from lmcourse.data import load_texts, train_val_test_split
from lmcourse.embeddings import unit
from lmcourse.numpy_nn import decoder
from lmcourse.numpy_nn.decoder import mean_distances
from lmcourse.numpy_nn.layers import SoftmaxCrossEntropy
from studies.harness import count, grid, paired

CHAPTER = "backpropagation"
CLAIM = (
    "A decoder that has learned its text by heart attends, on average, to words less than "
    "two positions back"
)
RIVAL = "the order of the words: a decoder that learns shuffled words would not change"
NULL = "the words are shuffled anew at every step, so that nothing can be learned by heart"
CHECKPOINTS = ("decoder",)
SETTINGS = {
    "steps": 2000,
    "batch": 64,
    "marks": [0, 25, 50, 100, 200, 500, 1000, 2000],  # steps after which to measure
    "texts": ["sonnets", "shuffled", "dealt"],  # "dealt": shuffled anew at every step
    "dealt": 500,  # steps of a training on that text
    "seeds": [0, 1, 2],
    "samples": {"temperature": 0.8, "most": 60, "draws": 3},
    "vectors": {
        "steps": 300,
        "every": 30,
        "rates": [0.004, 0.008],
        "ways": ["trained", "held", "unit"],
    },
}
CONTEXT = 7  # words that the decoder sees


def load_words():
    """Load the sonnets as the decoder reads them.

    Tokens stand among the words where sentences begin and end, and where a line ends.

    Returns
    -------
    vocabulary : list of str
        The words of the training sonnets, then those of other sonnets alone.
    vectors : array of shape (vocab_size, 60)
        Initial word vectors, counted on the training sonnets; zeros for other words.
    training, held_out : int array of shape (words of the text,)
        Numbers in the vocabulary: of training sonnets; of validation and test sonnets.
    known : int
        How many words of the vocabulary occur in training.
    """
    parts = train_val_test_split(load_texts("sonnets"))
    training_words = decoder.mark_sentences(parts.training)
    other_words = decoder.mark_sentences(parts.validation + "\n\n" + parts.test)
    vocabulary, vectors = decoder.initial_vectors(training_words, other_words)
    number = {word: i for i, word in enumerate(vocabulary)}
    training = np.array([number[word] for word in training_words])
    held_out = np.array([number[word] for word in other_words])
    return vocabulary, vectors, training, held_out, len(set(training_words))


def plan(small):
    """Return the settings of all runs: nine long trainings and eighteen short ones.

    Parameters
    ----------
    small : bool
        Whether to return one of each, with one or two steps.

    Returns
    -------
    list of dict
        The arguments of each run: ``group`` and ``seed``. Of long trainings ``group`` is
        the text ("sonnets", "shuffled" once, or "dealt", shuffled anew at every step), and
        ``marks`` are the steps after which they are measured. Of short ones it is
        "vectors"; ``way`` is what happens to the word vectors ("trained", "held" or
        "unit"), ``rate`` the learning rate, ``steps`` the length.
    """
    long_runs = []
    for text in SETTINGS["texts"]:
        last = SETTINGS["dealt"] if text == "dealt" else SETTINGS["steps"]
        marks = [1] if small else [mark for mark in SETTINGS["marks"] if mark <= last]
        long_runs += grid(group=text, seed=SETTINGS["seeds"], marks=[marks])
    sizes = SETTINGS["vectors"]
    short_runs = grid(
        group="vectors",
        way=sizes["ways"],
        rate=sizes["rates"],
        seed=SETTINGS["seeds"],
        steps=2 if small else sizes["steps"],
    )
    if small:
        return [long_runs[0], short_runs[6]]
    return long_runs + short_runs


def run(folder, group, seed, **setting):
    """Train one decoder, and measure it on the way.

    Parameters
    ----------
    folder : Path
        Where one decoder is saved for the page, as ``decoder.safetensors`` in float16: that
        of the sonnets with the first seed.
    group : {"sonnets", "shuffled", "dealt", "vectors"}
        The text of a long training ("dealt": shuffled anew at every step); "vectors" is a
        short training.
    seed : int
        Of the first weights, and of all that is drawn.
    **setting
        ``marks``, the steps after which a long training is measured, the last of them its
        end; or, for a short training, ``way``, what happens to the word vectors, ``rate``,
        the learning rate, and ``steps``.

    Returns
    -------
    dict
        ``seed`` and ``states``, a list with a dict for each mark: ``looks`` and
        ``elsewhere``, the attention weights of the last of seven words, (layers, heads, 7),
        on its own text and on held-out sonnets; ``trained`` and ``unseen``, the losses on
        these, in nats a word; of "sonnets" also ``samples``, a list of three poems. Of a
        short training ``way``, ``rate``, ``seed``; ``unseen``, the lowest loss on held-out
        sonnets, in nats a word; and ``step``, after how many steps it was measured.
    """
    if group == "vectors":
        return train_briefly(seed, **setting)
    vocabulary, vectors, training, held_out, known = load_words()
    model = decoder.Decoder(vocabulary, vectors, seed=seed)
    rng = np.random.default_rng(seed)
    own = training if group == "sonnets" else rng.permutation(training)
    marks = setting["marks"]
    states = []

    def watch(step, *_):
        """Measure the model if ``step`` is a mark; shuffle the words of "dealt".

        ``step`` : int, after how many steps it is called; what else is handed over is not
        used.
        """
        if step in marks:
            states.append(measure(model, own, held_out, known, group))
        if group == "dealt":
            rng.shuffle(own)  # in place: `train_decoder` reads windows of this array

    decoder.train_decoder(
        model, own, marks[-1], batch=SETTINGS["batch"], seed=seed, watch=watch
    )
    watch(marks[-1])
    if (group, seed) == ("sonnets", SETTINGS["seeds"][0]):
        decoder.save(model, folder / "decoder.safetensors", np.float16)
    return {"seed": seed, "states": states}


def train_briefly(seed, way, rate, steps):
    """Train a decoder for some steps, and find its lowest loss on held-out sonnets.

    Parameters
    ----------
    seed : int
        Of the first weights, and of all that is drawn.
    way : {"trained", "held", "unit"}
        What happens to the word vectors: nothing special; they are fixed for the first half
        of the steps; those of training words are brought to unit length before every step.
    rate : float
        The learning rate.
    steps : int
        How many steps of training.

    Returns
    -------
    dict
        ``way``, ``rate``, ``seed``; ``unseen``, the lowest loss on held-out sonnets, in
        nats a word; ``step``, after how many steps it was measured.
    """
    vocabulary, vectors, training, held_out, known = load_words()
    model = decoder.Decoder(vocabulary, vectors, seed=seed)
    table = model.dictionary.table
    losses = {}

    def watch(step, *_):
        """Scale or fix the word vectors, as ``way`` says; every 30 steps measure the loss.

        Where ``way`` is "unit", those of training words get length 1; where it is "held",
        none is trained in the first half of the steps. The loss, on held-out sonnets, is
        added to ``losses`` by its step. ``step`` : int; what else is handed over is not
        used.
        """
        if way == "unit":
            table.value[:known] = unit(table.value[:known])
        table.trainable = way != "held" or step >= steps // 2
        if step % SETTINGS["vectors"]["every"] == 0:
            losses[step] = loss_of_last(model, held_out, known)

    decoder.train_decoder(
        model, training, steps, learning_rate=rate, seed=seed, watch=watch
    )
    watch(steps)
    best = min(losses, key=losses.get)
    return {
        "way": way,
        "rate": rate,
        "seed": seed,
        "step": best,
        "unseen": round(losses[best], 4),
    }


def measure(model, own, held_out, known, group):
    """Return where the heads of a decoder attend, its losses, and perhaps samples.

    Parameters
    ----------
    model : lmcourse.numpy_nn.decoder.Decoder
    own : int array of shape (words of the text,)
        The text that it is trained on, as numbers in the vocabulary.
    held_out : int array of shape (words of the text,)
        Sonnets that it is not trained on, in the same way.
    known : int
        Words with a number below this occur in training. From the held-out text of the
        heads the others are cut out; of the losses, windows are left out that ask for one.
    group : {"sonnets", "shuffled", "dealt"}
        The text of the training; "dealt" is shuffled anew at every step. Samples are drawn
        for "sonnets" only.

    Returns
    -------
    dict
        ``looks``: the attention weights of the last of seven words, mean over windows of
        the text of its training, nested lists of shape (layers, heads, 7), the farthest
        word first. ``elsewhere``: the same on held-out sonnets. ``trained``, ``unseen``:
        the mean loss of the word after seven, in nats, on its own text and on held-out
        sonnets. ``samples``, of "sonnets"
        alone: three poems that it writes, a list of str.
    """
    row = {}
    for name, text in {"looks": own, "elsewhere": held_out[held_out < known]}.items():
        windows = decoder.windows(text, CONTEXT)[::CONTEXT, :-1]  # (windows, 7)
        row[name] = decoder.last_attention(model, windows).round(4).tolist()
    for name, text in {"trained": own, "unseen": held_out}.items():
        row[name] = round(loss_of_last(model, text, known), 4)
    if group == "sonnets":
        row["samples"] = sample_poems(model)
    return row


def sample_poems(model):
    """Sample three poems from a decoder, with the same random numbers at each call.

    Parameters
    ----------
    model : lmcourse.numpy_nn.decoder.Decoder

    Returns
    -------
    list of str
        Each of at most 60 words, drawn at temperature 0.8; it ends earlier if the token
        that ends a sentence is drawn. Lines are separated by line breaks.
    """
    start, end = model.dictionary.encode([decoder.START, decoder.END])
    settings = SETTINGS["samples"]
    poems = []
    for seed in range(settings["draws"]):
        numbers = decoder.sample_words(
            model,
            [start],
            settings["most"],
            np.random.default_rng(seed),
            end,
            temperature=settings["temperature"],
        )
        poems.append(decoder.verse(model.dictionary.decode(numbers)))
    return poems


def loss_of_last(model, numbers, known, context=7, every=3):
    """Return a decoder's mean loss of the word after a window, in nats.

    Parameters
    ----------
    model : Decoder
    numbers : int array of shape (words of the text,)
        The words' numbers in the model's vocabulary.
    known : int
        Windows count whose next word has a number below this, so that it is one of the
        training words.
    context : int
        Words of a window.
    every : int
        Use one of so many windows: 3 means every third.

    Returns
    -------
    float
    """
    examples = decoder.windows(numbers, context)  # (examples, context + 1)
    examples = examples[examples[:, -1] < known][::every]
    x = model.dictionary.forward(examples[:, :-1])
    last = model.blocks.forward(x)[:, -1]  # (examples, d_model)
    return float(SoftmaxCrossEntropy().forward(model.output.forward(last), examples[:, -1]))


def summary(results):
    """Compare where the heads attend before training and after it, seed by seed.

    Parameters
    ----------
    results : dict of str to list of dict
        By text, "sonnets", "shuffled" and "dealt" (shuffled anew at every step), an outcome
        of each seed: ``seed``, and ``states``, a dict for each mark, the steps after which
        it was measured. Each has ``looks``, attention weights of the last of seven words,
        (layers, heads, 7), the farthest first, and ``unseen``, the loss on held-out
        sonnets.

    Returns
    -------
    dict
        ``n``, the number of outcomes on the sonnets, and their ``seeds``; ``interval``,
        [lowest, highest] over seeds of by how many words the mean distance fell on the
        sonnets; ``verdict``, "holds" or "not so": whether, on the
        sonnets and on shuffled words, both layers end below two words, while layer 0 is at
        three (to 0.05) at the mark with the lowest loss on held-out sonnets, and on words
        that are shuffled anew at every step.
    """
    distances = {
        text: mean_distances(results[text]) for text in SETTINGS["texts"] if text in results
    }
    sonnets = distances["sonnets"]  # (seeds, marks, layers)
    seeds = range(len(sonnets))
    losses = [[state["unseen"] for state in each["states"]] for each in results["sonnets"]]
    unchanged = [sonnets[seeds, np.argmin(losses, axis=1), 0]]  # (seeds,)
    if "dealt" in distances:
        unchanged.append(distances["dealt"][:, -1, 0])
    last = [distances[text][:, -1].max() for text in distances if text != "dealt"]
    holds = max(last) < 2 and max(abs(each - 3).max() for each in unchanged) < 0.05
    fall = (sonnets[:, 0] - sonnets[:, -1]).mean(-1)  # (seeds,)
    return count(results["sonnets"]) | paired(fall, 0 * fall, bool(holds))
