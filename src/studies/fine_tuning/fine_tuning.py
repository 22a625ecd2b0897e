"""What is forgotten because the text is new, and what because training begins again?

What varies: the text on which a model of Shakespeare's sonnets is trained further,
Dickinson's poems or again the sonnets, at three learning rates from five seeds. The method
(all weights, the last layer, LoRA, a prefix), each at three rates with equal work, and at
two rates between them with one seed or, where they matter, five. Whether some windows of
each batch are Shakespeare's (replay).

Rivals: that starting again is enough, with a new optimizer and a raised learning rate, on
the old text (three seeds for a method at its best rate). For a method: all weights, at
their best rate and at the next lower one.

Null: training on the old text, compared with another seed of the same.

Statistic: losses on held-out poems, in nats a character, averaged over seeds; an
interval is that of 95 % over poems drawn again. Rates are chosen on Dickinson's
validation poems, by the first seed.

Other groups of runs: "letters" has the probabilities of a model at each letter of two
pieces. "marker" makes ``marker.safetensors``, adapters that write as the chapter's markers
say; "plain" makes adapters of as many steps on Dickinson alone; "samples" has what models
write with them. "labels" has which held-out poems a classifier assigns to the right poet
that is trained on few labelled poems, the mean of a hundred draws of labels: by the states
of the model, those of an untrained one, a bag of words, of letters and pairs of letters, or
the length of lines.
"""

from functools import cache

import numpy as np
import torch

from lmcourse import adapters
from lmcourse import fine_tuning as teaching
from lmcourse.adapters import load_adapters, merge, remove, save_adapters
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.model import GPT
from lmcourse.numbers import bootstrap_interval
from studies.fine_tuning import labels
from studies.fine_tuning.equal_work import steps_within
from studies.harness import alike, count, grid, verdict

CHAPTER = "fine-tuning"
CLAIM = (
    "A short training on Dickinson raises the loss on Shakespeare more than an equally "
    "long training on Shakespeare itself"
)
RIVAL = "starting again: the same steps, learning rate and new optimizer on Shakespeare"
NULL = "two trainings on Shakespeare that differ in their seed alone"
CHECKPOINTS = ("marker",)
AFTER = ("sonnets",)
MARKER = {"rank": 16, "steps": 700, "rate": 1e-2, "batch": 16}
LABEL_COUNTS = (8, 24, 96)
SETTINGS = {"budget": 100, "seeds": 5, "size": 8, "marker": MARKER, "labels": LABEL_COUNTS}
SEEDS = range(SETTINGS["seeds"])
BUDGET = SETTINGS["budget"]  # work, in steps of training all weights
# By method: learning rates for all seeds, those between them, those that matter, and those
# at which training on the old text is repeated.
RATES = {
    "all weights": (1e-3, 3e-3, 1e-2),
    "last layer": (3e-3, 1e-2, 3e-2),
    "LoRA": (3e-3, 1e-2, 3e-2),
    "prefix": (1e-1, 3e-1, 1.0),
}
RATES_BETWEEN = {
    "all weights": (1.7e-3, 5.5e-3),
    "last layer": (5.5e-3, 1.7e-2),
    "LoRA": (5.5e-3, 1.7e-2),
    "prefix": (1.7e-1, 5.5e-1),
}
RATES_REPEATED = {"all weights": (1.7e-3,), "last layer": (5.5e-3,), "LoRA": (1.7e-2,)}
RATES_RESTART = RATES_REPEATED | {"last layer": (3e-3, 5.5e-3, 1e-2), "prefix": (3e-1,)}
CURVE_STEPS = (0, 5, 10, 20, 40, 70, BUDGET)
LETTER_STEPS = (0, 5, 20, 50, BUDGET)
PIECES = {
    "Dickinson": "Not knowing when the dawn will come\nI open every door;\n"
    "Or has it feathers like a bird,\nOr billows like a shore?",
    "Shakespeare": "Not marble, nor the gilded monuments\n"
    "Of princes, shall outlive this powerful rhyme;",
}
SETTINGS |= {"pieces": PIECES}


@cache
def load_material():
    """Load the model of the sonnets and the poems of both poets.

    Returns
    -------
    tokenizer : CharTokenizer
    model : GPT
    poets : dict
        Poet ("Shakespeare" or "Dickinson") → part ("training", "validation" or "test") →
        list of poems as ids, int64 Tensors of shape (tokens,).
    """
    tokenizer, model, _ = load_gpt("sonnets")
    return tokenizer, model, teaching.read_poets(tokenizer)


def training_texts():
    """Return all training poems of each poet as one text: dict of str to ids (tokens,).

    Its keys are "Shakespeare" and "Dickinson"; ids are an int64 Tensor (tokens,).
    """
    _, _, poets = load_material()
    return {poet: torch.cat(poems["training"]) for poet, poems in poets.items()}


def plan_trainings():
    """Return the settings of all trainings on a poet's poems.

    Each method has three learning rates with five seeds on Dickinson, and two between these
    with one seed or, where they matter, five; all weights have the same three on
    Shakespeare with five seeds, and each method one more there with three (the last layer
    three rates). All weights are also trained with replay.

    Returns
    -------
    list of dict
        ``method``, "all weights", "last layer", "LoRA" or "prefix"; ``rate``, the highest
        learning rate; ``fed``, the poet: "Dickinson" or "Shakespeare"; ``seed``;
        ``replayed``, how many of the eight windows of each batch are Shakespeare's all the
        same.
    """

    def settings_at(rates, fed="Dickinson", seeds=SEEDS, replayed=0):
        """Return a list of settings, one for each method, rate and seed.

        ``rates`` : dict, method → a learning rate or several. ``fed`` : the poet whose
        poems are trained on. ``seeds`` : a seed or several; by default 0 to 4. ``replayed``
        : how many of the eight windows of a batch are Shakespeare's all the same.
        """
        settings = []
        for method, some_rates in rates.items():
            settings += grid(
                method=method, rate=some_rates, fed=fed, seed=seeds, replayed=replayed
            )
        return settings

    all_weights = {"all weights": RATES["all weights"]}
    return [
        *settings_at(RATES),
        *settings_at(all_weights, "Shakespeare"),
        *settings_at(RATES_RESTART, "Shakespeare", range(3)),
        *settings_at({"all weights": 3e-3}, replayed=2),
        *settings_at(RATES_BETWEEN, seeds=0),
        *settings_at(RATES_REPEATED, seeds=SEEDS[1:]),
    ]


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return some of them, with one or two steps in place of a hundred or more.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``. "runs": ``method``, what is trained; ``rate``,
        the learning rate; ``fed``, whose poems it reads; ``seed``; ``replayed``, how many
        windows of a batch are Shakespeare's all the same; ``budget``, the work in steps of
        training all weights. "letters": ``method``, ``rate`` and ``budget``. "marker" and
        "plain": ``steps`` of training. "samples": ``count``, how many texts. "labels":
        ``length``, the characters of each of a poem's lines; ``draws``, how often the
        labelled poems are drawn; ``pairs``, whether only letters and pairs of them are
        used; of a small plan also ``every``, 2 for every other poem, and ``untrained``, how
        many untrained models.
    """
    trainings = plan_trainings()
    budget = {"budget": 2 if small else BUDGET}
    if small:
        trainings = alike(trainings, rate=3e-3, seed=1)
        trainings = [each for each in trainings if each["method"] != "last layer"]
    settings = [{"group": "runs"} | each | budget for each in trainings]
    methods = [("all weights", 3e-3), ("LoRA", 1e-2)]
    if small:
        methods = [("LoRA", 1e-2)]
    for method, rate in methods:
        settings.append({"group": "letters", "method": method, "rate": rate} | budget)
    marker_steps = 1 if small else MARKER["steps"]
    settings += [{"group": group, "steps": marker_steps} for group in ("marker", "plain")]
    settings.append({"group": "samples", "count": 2 if small else 192})
    draws = 1 if small else 100
    lengths = (20,) if small else (64, 20)
    few = {"every": 2, "untrained": 1} if small else {}
    for length in lengths:
        settings.append({"group": "labels", "length": length, "draws": draws} | few)
    settings.append({"group": "labels", "length": 20, "draws": draws, "pairs": True})
    return settings


def run(folder, group, **setting):
    """Train the model of the sonnets further, or test what was trained.

    Parameters
    ----------
    folder : Path
        Where adapters are saved, and read by the group "samples".
    group : {"runs", "letters", "marker", "plain", "samples", "labels"}
        What to do: train by one method and measure; measure how probable single letters
        become on the way; train an adapter with a marker or without ("plain"); sample with
        these; classify poems.
    **setting
        Its other arguments:

        - "runs": ``method``, str, what is trained, such as "LoRA"; ``rate``, the learning
          rate; ``fed``, the poet whose poems it reads; ``seed``; ``replayed``, how many
          windows of a batch are Shakespeare's all the same; ``budget``, int, the work in
          steps of training all weights,
        - "letters": ``method``, ``rate`` and ``budget``,
        - "marker" and "plain": ``steps``, how many,
        - "samples": ``count``, how many texts are written,
        - "labels": ``length``, the characters of each of a poem's lines that are read;
          ``draws``, how often the labelled poems are drawn; and perhaps ``pairs``, bool,
          whether only letters and pairs of them are used, ``every``, 2 to take every other
          poem, and ``untrained``, how many untrained models are tried.

    Returns
    -------
    dict, list of dict or None
        - "runs": the setting, ``steps``, ``parameters``, by "POET PART" a list of the loss
          on each poem, and ``curve``, step → loss on Shakespeare; in nats a character
          (`train_method`),
        - "letters": ``method``, ``rate`` and ``rows``, the probabilities of letters on the
          way (`train_with_probabilities`),
        - "samples": marker → list of texts (`sample_all`),
        - "labels": a dict for each classifier, with ``hits``, of each poem the share of
          draws, 0 to 1, in which its poet is recognised (`classify_poems`),
        - "marker" and "plain": None; their adapters are saved.
    """
    if group in ("marker", "plain"):
        model = train_adapters(marked=group == "marker", **setting)
        return save_adapters(folder / f"{group}.safetensors", model)
    if group == "samples":
        return sample_all(folder, **setting)
    functions = {
        "runs": train_method,
        "letters": train_with_probabilities,
        "labels": classify_poems,
    }
    return functions[group](**setting)


def prepare(method, budget, seed=0):
    """Return a copy of the model of the sonnets for a method, and how many steps it gets.

    Parameters
    ----------
    method : str
        A key of `teaching.METHODS`: "all weights", "last layer", "LoRA" (of rank 8) or
        "prefix" (of eight positions).
    budget : int
        The work, in steps of training all weights.
    seed : int
        Of the weights that the method adds.

    Returns
    -------
    model : GPT
        The copy, in which only what the method trains is trainable.
    steps : int
        How many steps of the method cost as much arithmetic as ``budget`` steps of all
        weights.
    """
    _, base, _ = load_material()
    model = teaching.adapted(base, method, SETTINGS["size"], seed)
    return model, steps_within(budget, model, base)


def mean_loss(model, poet):
    """Return a model's mean loss on a poet's validation poems, rounded to 4 decimals.

    ``model`` : GPT; ``poet`` : "Dickinson" or "Shakespeare". In nats a character.
    """
    _, _, poets = load_material()
    losses = teaching.poem_losses(model, poets[poet]["validation"])
    return round(float(losses.mean()), 4)


def train_method(method, fed, rate, seed, replayed, budget):
    """Train a copy of the model of the sonnets on a poet's poems, and measure its losses.

    Parameters
    ----------
    method : str
        A key of `teaching.METHODS`: "all weights", "last layer", "LoRA" or "prefix".
    fed : {"Dickinson", "Shakespeare"}
        Whose poems.
    rate : float
        The highest learning rate.
    seed : int
        Of the first weights, and of all that is drawn.
    replayed : int
        How many of the eight windows of each batch are Shakespeare's instead.
    budget : int
        The work, in steps of training all weights.

    Returns
    -------
    dict
        The settings ``method``, ``fed``, ``rate``, ``seed``, ``replayed``; ``steps`` made;
        ``parameters``, how many are trained; ``Dickinson validation``, ``Dickinson test``,
        ``Shakespeare validation``, ``Shakespeare test``: lists of the loss on each poem, in
        nats a character; ``curve``: step (seven, from 0 to the last) → mean loss on
        Shakespeare's validation poems, where all weights are trained without replay; else
        it is empty.
    """
    _, _, poets = load_material()
    texts = training_texts()
    model, steps = prepare(method, budget, seed)
    draws = [teaching.windows(texts[fed], teaching.BATCH - replayed)]
    if replayed:
        draws.append(teaching.windows(texts["Shakespeare"], replayed))
    curve = {}

    def watch(step, model):
        """Add the loss on Shakespeare to ``curve``, if ``step`` is one of `CURVE_STEPS`.

        It does so only where all weights are trained, without replay. ``step`` : int;
        ``model`` : GPT.
        """
        if method == "all weights" and not replayed and step in CURVE_STEPS:
            curve[step] = mean_loss(model, "Shakespeare")

    teaching.fine_tune(model, teaching.mixed(*draws), steps, rate, seed, watch)
    watch(steps, model)
    row = {"method": method, "fed": fed, "rate": rate, "seed": seed, "replayed": replayed}
    row |= {"steps": steps, "parameters": adapters.trainable(model)}
    for poet, poems in poets.items():
        for part in ("validation", "test"):
            losses = teaching.poem_losses(model, poems[part])
            row[f"{poet} {part}"] = np.round(losses, 4).tolist()
    return row | {"curve": curve}


def train_with_readings(model, steps, rate, moments):
    """Train a model on Dickinson, and let it read two pieces now and then (`reading_of`).

    Parameters
    ----------
    model : GPT
        It is changed.
    steps : int
        How many steps of training.
    rate : float
        The highest learning rate.
    moments : list of int
        After how many steps it reads.

    Returns
    -------
    list of dict
        One for each moment, as `reading_of` returns it: by each poet's name, "Dickinson"
        and "Shakespeare", a list with a pair for each letter of a piece, its probability in
        per cent and a list of the two most probable characters with theirs; as ``Dickinson
        validation`` and ``Shakespeare validation`` mean losses on validation poems, in nats
        a character.
    """
    readings = []

    def watch(step, model):
        """Add a reading, if ``step``, an int, is one of ``moments``. ``model`` : GPT."""
        if step in moments:
            readings.append(reading_of(model))

    draw = teaching.windows(training_texts()["Dickinson"])
    teaching.fine_tune(model, draw, steps, rate, 0, watch)
    watch(steps, model)
    return readings


def reading_of(model):
    """Return how probable a model finds each letter of two pieces, and its mean losses.

    The pieces are four lines by Dickinson and two by Shakespeare (`PIECES`).

    Parameters
    ----------
    model : GPT

    Returns
    -------
    dict
        By each poet's name, "Dickinson" and "Shakespeare", a list with a pair for each
        letter of the poet's piece: its probability in per cent, and the two most probable
        characters, a list of pairs with their own. As ``Dickinson validation`` and
        ``Shakespeare validation`` the mean losses on held-out poems, in nats a character.
    """
    reading = {}
    for poet, piece in PIECES.items():
        reading[poet] = letter_probabilities(model, piece)
        reading[f"{poet} validation"] = mean_loss(model, poet)
    return reading


def train_with_probabilities(method, rate, budget):
    """Train a model on Dickinson, and store its probabilities at each letter of two pieces.

    Parameters
    ----------
    method : {"all weights", "LoRA"}
        What is trained.
    rate : float
        The highest learning rate.
    budget : int
        The work, in steps of training all weights.

    Returns
    -------
    dict
        ``method``, ``rate``, and ``rows``, a list of dict, one for each of five moments,
        from before the first step to after the last: ``method``, ``rate``; ``step``;
        ``work``, how many steps of training all weights cost as much; and what `reading_of`
        returns: by a poet's name the probabilities of a piece's letters, by "POET
        validation" a mean loss in nats a character. With LoRA there is a sixth row, of step
        0: the trained model from which the adapters were removed.
    """
    model, steps = prepare(method, budget)
    share = steps / budget  # steps of LoRA cost less, so there are more of them
    moments = [round(share * step) for step in LETTER_STEPS]
    readings = train_with_readings(model, steps, rate, moments)
    at = moments[: len(readings)]
    if method == "LoRA":
        readings.append(reading_of(remove(model)))
        at = [*at, 0]
    rows = [
        {"method": method, "rate": rate, "step": step, "work": round(step / share)} | each
        for step, each in zip(at, readings, strict=True)
    ]
    return {"method": method, "rate": rate, "rows": rows}


@torch.no_grad()
def letter_probabilities(model, piece, guesses=2):
    """Return the probability of each letter of a text, and the most probable characters.

    Parameters
    ----------
    model : GPT
    piece : str
        It stands after an empty line.
    guesses : int
        How many of the most probable characters to return.

    Returns
    -------
    list of [float, list of [str, float]]
        For each letter of ``piece`` its probability in per cent; and the most probable
        characters in its place, each with its probability in per cent, the highest first.
    """
    tokenizer, base, _ = load_material()
    ids = torch.tensor(tokenizer.encode("\n\n" + piece))
    context = base.config.context
    rows = []
    for position in range(2, len(ids)):
        before = ids[max(0, position - context) : position]
        percent = 100 * model.eval()(before[None])[0, -1].softmax(-1)  # (vocab_size,)
        top = percent.topk(guesses)
        pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
        likeliest = [[tokenizer.decode([i]), round(share, 1)] for i, share in pairs]
        rows.append([round(percent[ids[position]].item(), 2), likeliest])
    return rows


def train_adapters(steps, marked):
    """Train LoRA's adapters on poems behind markers, or on Dickinson's without markers.

    The markers are "(W)" for Shakespeare and "(E)" for Dickinson, each with a line's end.
    LoRA has rank 16; a step sees 16 windows, the highest rate is 0.01.

    Parameters
    ----------
    steps : int
        How many steps of training.
    marked : bool
        Whether to train on windows of both poets, each behind the poet's marker, instead of
        windows of Dickinson alone.

    Returns
    -------
    GPT
        With the adapters.
    """
    tokenizer, base, _ = load_material()
    texts = training_texts()
    if marked:
        markers = {poet: tokenizer.encode(mark) for poet, mark in teaching.MARKS.items()}
        size = MARKER["batch"] // len(texts)
        draws = [teaching.behind(markers[poet], text, size) for poet, text in texts.items()]
    else:
        draws = [teaching.windows(texts["Dickinson"], MARKER["batch"])]
    model = teaching.adapted(base, "LoRA", MARKER["rank"])
    return teaching.fine_tune(model, teaching.mixed(*draws), steps, MARKER["rate"])


def sample_all(folder, count):
    """Sample texts of 120 characters from a model that knows markers, and from two others.

    It begins behind each marker; the others, which are the model before any training on
    markers and one that was trained on Dickinson alone, begin after a line break.

    Parameters
    ----------
    folder : Path
        Holds the adapters of the groups "marker" and "plain", LoRA of rank 16.
    count : int
        How many texts of each.

    Returns
    -------
    dict of str to list of str
        A marker, "(W)" or "(E)" → what the model with adapters writes behind it;
        ``Dickinson alone, no marker`` → what the one with the other adapters writes;
        ``before, no marker`` → what the model writes that has none.
    """
    tokenizer, base, _ = load_material()
    sources = {mark.strip(): ("marker", mark) for mark in teaching.MARKS.values()}
    sources["Dickinson alone, no marker"] = ("plain", "\n")
    sources["before, no marker"] = ("", "\n")
    samples = {}
    for name, (file, mark) in sources.items():
        model = base
        if file:
            model = teaching.adapted(base, "LoRA", MARKER["rank"])
            model = merge(load_adapters(folder / f"{file}.safetensors", model))
        ids = tokenizer.encode(mark)
        samples[name] = teaching.write_behind(model, tokenizer, ids, batch=count)
    return samples


def classify_poems(length, draws, pairs=False, every=1, untrained=3):
    """Classify held-out poems by poet, from few labelled ones.

    Parameters
    ----------
    length : int
        Characters to which each line is cut, at most; of a poem its first four lines of 20
        characters or more are used.
    draws : int
        How often the labelled poems are drawn.
    pairs : bool
        Whether to use single letters and pairs of letters, and nothing else.
    every : int
        Use one poem in so many.
    untrained : int
        How many untrained models are read beside the trained one.

    Returns
    -------
    list of dict
        ``length``; ``reader``, what the classifier knows of a poem ("pairs of letters",
        "bag of words", "ruler": the mean length of its lines, "last state" or "mean state"
        of the model, or one of these two with ", untrained"); ``layer``, after how many
        layers the states are taken (0 without states; with ``length`` 20 each layer, else
        the last alone); ``size``, how many labelled poems a ridge classifier is trained on,
        8, 24 or 96, half of them of each poet; ``hits``, a list of float, for each held-out
        poem the share of draws (and of untrained models) in which it is classified
        correctly.
    """
    tokenizer, model, _ = load_material()
    table = labels.cut_poems(length)[::every]
    config = model.config
    rows = []

    def classify(reader, layer, *features, **options):
        """Classify by some features; add a row to ``rows`` for each number of labels.

        ``reader`` : str, their name in the row; ``layer`` : int, after how many layers they
        are taken; ``features`` : one or more lists of texts, or arrays (poems, d_model),
        whose hits are averaged; ``options`` : those of `TfidfVectorizer`, for texts.
        """
        cases = [(x, draw) for x in features for draw in range(draws)]
        for size in LABEL_COUNTS:
            right = [
                labels.told_right(x, table, size, draw, **options) for x, draw in cases
            ]
            row = {"length": length, "reader": reader, "layer": layer, "size": size}
            rows.append(row | {"hits": np.mean(right, axis=0).round(3).tolist()})

    texts = [" ".join(lines) for lines in table.lines]
    if pairs:
        classify("pairs of letters", 0, texts, analyzer="char", ngram_range=(1, 2))
        return rows
    classify("bag of words", 0, texts)
    line_lengths = np.array([[np.mean([*map(len, lines)])] for lines in table.lines])
    classify("ruler", 0, line_lengths)
    layers = range(config.layers + 1) if length == 20 else [config.layers]
    others = []
    for seed in range(untrained):
        torch.manual_seed(seed)
        others.append(GPT(config).eval())

    def classify_by_states(name, last):
        """Classify by the states of the trained model, and by those of untrained ones.

        ``name`` : str, of these states in the rows; ``last`` : bool, whether to use the
        state of each line's last character, instead of the mean of all.
        """
        own = labels.readings(model, tokenizer, table, last)
        rest = [labels.readings(each, tokenizer, table, last) for each in others]
        for layer in layers:
            classify(name, layer, own[layer])
            classify(f"{name}, untrained", layer, *(each[layer] for each in rest))

    classify_by_states("last state", last=True)
    classify_by_states("mean state", last=False)
    return rows


def summary(results):
    """Compare training on Dickinson and on Shakespeare at each rate, over sonnets.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "runs": ``method``, "all weights" for one;
        ``fed``, the poet whose poems were read, "Dickinson" or "Shakespeare"; ``rate``;
        ``replayed``, 0 for no replay; ``seed``; ``Shakespeare validation`` and
        ``Shakespeare test``, lists of the loss on each held-out sonnet, in nats a
        character.

    Returns
    -------
    dict
        ``n``, the number of runs, and ``seeds``, those of the group "runs"; ``interval``,
        at the middle rate, 0.003, the 95 % interval of the loss on held-out sonnets after
        training on Dickinson less that after training on Shakespeare, in nats a character,
        sonnets drawn again, or (0, 0) if these trainings are missing; ``verdict``, "holds"
        if at each rate the interval is above zero, else "not so". Counted are trainings of
        all weights without replay.

    Raises
    ------
    ValueError
        If there is none of these trainings.
    """
    rng = np.random.default_rng(0)
    lower_ends = []
    middle = (0, 0)
    for rate in RATES["all weights"]:
        losses = {}
        for fed in ("Dickinson", "Shakespeare"):
            kind = {"method": "all weights", "fed": fed, "rate": rate, "replayed": 0}
            runs = alike(results["runs"], **kind)
            by_seed = [
                [*run["Shakespeare validation"], *run["Shakespeare test"]] for run in runs
            ]
            losses[fed] = np.mean(by_seed, axis=0)  # (sonnets,)
        gap = losses["Dickinson"] - losses["Shakespeare"]  # (sonnets,)
        if not gap.ndim:  # a short run has no such training
            continue
        interval = bootstrap_interval(gap, draws=5000, seed=rng)
        interval = np.round(interval, 4).tolist()
        lower_ends.append(interval[0])
        if rate == 3e-3:
            middle = interval
    holds = min(lower_ends) > 0
    return count(results["runs"]) | {"interval": middle, "verdict": verdict(holds)}
