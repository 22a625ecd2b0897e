"""What has a small BERT learned after how many steps, and what does counting know?

What varies: the steps of an encoder's training, from three seeds, and from one for three
times and ten times as long, at the learning rate and dropout with the lowest loss on
validation poems.

Rivals: counting what stood between two neighbours, or between two or three neighbours on
each side.

Null: the untrained model.

Statistic: the loss in nats of each token of the test poems, masked once. The interval is
that of the encoder's loss at its last step less that of counting three neighbours, 95 %
over poems drawn again.
"""

import json
from functools import cache

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import BertTokenizerFast

from lmcourse.families import SENTINELS, Family, family_loss
from lmcourse.files import write_whole
from lmcourse.masking import place_losses, train_masked
from lmcourse.mini_bert import passages, poem_splits
from lmcourse.numbers import bootstrap_interval
from studies.harness import best_tuned, count, grid, verdict
from studies.pretraining.counting import between_infill, count_infill
from studies.pretraining.mini_bert import train_tokenizer

CHAPTER = "pretraining"
CLAIM = (
    "A small encoder, trained briefly, fills blanks in held-out poems worse than counting "
    "the three neighbours on each side does"
)
RIVAL = "counting what stood between two neighbours, or between two or three on each side"
NULL = "an untrained model, whose loss is about the logarithm of its vocabulary's size"
TRAINING = {"vocab_size": 300, "room": 32, "batch": 32, "share": 0.4, "steps": 900}
TRAINING |= {"muon_learning_rate": 0.02, "weight_decay": 0.05}
GRID = [(0.01, 0.1), (0.02, 0.1), (0.02, 0.0)]  # learning rate, dropout
SETTINGS = {"training": TRAINING, "grid": GRID, "tuning steps": 300, "seeds": [1, 2, 3]}
SETTINGS |= {"stops": [0, 30, 100, 200, 300, 450, 600, 900]}  # steps to measure after


@cache
def load_tokenizer(folder):
    """Load the tokenizer that the first run has trained.

    Parameters
    ----------
    folder : Path
        Holds ``vocabulary.txt``, a list of tokens in JSON.

    Returns
    -------
    BertTokenizerFast
    """
    tokens = json.loads((folder / "vocabulary.txt").read_text(encoding="utf-8"))
    return BertTokenizerFast({token: i for i, token in enumerate(tokens)})


def cut(text, tokenizer, overlap=False):
    """Return the passages of a poem, a list of int64 Tensors of at most 32 ids.

    Parameters
    ----------
    text : str
    tokenizer : BertTokenizerFast
    overlap : bool
        Whether a passage begins at every line of the poem, or only where the one before
        ended.
    """
    return list(passages(text, tokenizer, TRAINING["room"], overlap))


def whole_words(ids, tokenizer):
    """Return the positions of a passage at which a token is a whole word.

    Parameters
    ----------
    ids : int64 Tensor of shape (tokens,)
        With a special token at each end.
    tokenizer : BertTokenizerFast

    Returns
    -------
    list of int
        From 0, ascending; never the first or the last. Words behind an apostrophe are left
        out.
    """
    tokens = tokenizer.convert_ids_to_tokens(ids)
    rows = zip(tokens[:-2], tokens[1:-1], tokens[2:], strict=True)
    return [
        position
        for position, (left, token, right) in enumerate(rows, start=1)
        if token.isalpha() and left not in "'’" and not right.startswith("##")
    ]


def neighbours(ids, position, reach, tokenizer):
    """Return a few ids on each side of a position, as two lists.

    Parameters
    ----------
    ids : int64 Tensor of shape (tokens,)
        A passage.
    position, reach : int
        Which position, from 0, and how many ids to return on each side.
    tokenizer : BertTokenizerFast

    Returns
    -------
    left : list of int
        Of length ``reach``, in the order of the text. Before the passage stands the end of
        another one: zeros, then a separator.
    right : list of int
        Shorter where the passage ends.
    """
    before = [0] * reach + [tokenizer.sep_token_id, *ids[:position].tolist()]
    return before[-reach:], ids[position + 1 : position + 1 + reach].tolist()


def plan(small):
    """Return the settings of all runs; the tokenizer is trained first.

    Three pairs of learning rate and dropout are tried for 300 steps from one seed; "runs"
    have 900 steps and three seeds, "longer" three and ten times as many steps and one seed.

    Parameters
    ----------
    small : bool
        Whether to return one run of most groups, with two steps or on two poems.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``. "vocabulary" takes no other. "tuning":
        ``steps`` of training; ``rate``, the learning rate; ``dropout``, the share of
        numbers that are dropped. "runs" and "longer": ``seed`` and ``steps``. "counting":
        ``poems``, how many test poems are used (None: all).
    """
    most = 1 if small else None
    steps = 2 if small else TRAINING["steps"]
    tuning = [
        {
            "group": "tuning",
            "steps": min(steps, SETTINGS["tuning steps"]),
            "rate": rate,
            "dropout": dropout,
        }
        for rate, dropout in GRID[:most]
    ]
    seeds = SETTINGS["seeds"][:most]
    longer = [] if small else [3 * steps, 10 * steps]
    return [
        {"group": "vocabulary"},
        *tuning,
        *grid(group="runs", seed=seeds, steps=steps),
        {"group": "counting", "poems": 2 if small else None},
        *grid(group="longer", seed=seeds[0], steps=longer),
    ]


def run(folder, group, **setting):
    """Train a tokenizer or an encoder, or count.

    Parameters
    ----------
    folder : Path
        Where the vocabulary is saved, and the finished runs of the group "tuning" are.
    group : str
        What to do. "vocabulary": train and save the tokenizer; "tuning": train an encoder
        at one learning rate; "runs" and "longer": train it at the best one, and measure it
        on the way; "counting": count neighbours.
    **setting
        Of "tuning" ``steps``, ``rate`` and ``dropout``; of "runs" and "longer" ``seed`` and
        ``steps``; of "counting" ``poems``, how many test poems, None for all.

    Returns
    -------
    dict or list of str
        - "vocabulary": the tokens, list of str,
        - "tuning": ``seed``, ``rate``, ``dropout`` and ``validation``, the loss in nats a
          token,
        - "runs" and "longer": ``seed`` and ``stops``: step → dict of two lists by test
          poem: ``losses``, in nats a token, and ``words``, a dict for each poem: ``loss``,
          the mean loss of its words in nats; ``right``, how many of them have the highest
          probability; ``begin``, for each word of its first passage [the id with the
          highest probability, the probability of the right one],
        - "counting": ``losses`` and ``words``, each a dict, how many neighbours on each
          side are known (1 to 3) → such a list; and ``places``, for each poem a list by
          passage of the positions of whole words.
    """
    if group == "vocabulary":
        training_poems, _, _ = poem_splits()
        tokenizer = train_tokenizer(training_poems, TRAINING["vocab_size"])
        tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        write_whole(folder / "vocabulary.txt", json.dumps(tokens))
        return tokens
    functions = {
        "tuning": tune_encoder,
        "runs": train_encoder,
        "longer": train_encoder,
        "counting": count_neighbours,
    }
    return functions[group](folder, load_tokenizer(folder), **setting)


def pretrain(tokenizer, seed, steps, rate, dropout, measure):
    """Train an encoder of one block on the training poems, to fill in hidden tokens.

    The model's vocabulary ends with ids of sentinels, which the tokenizer does not have and
    an encoder does not use. Nothing is returned: ``measure`` sees the model.

    Parameters
    ----------
    tokenizer : BertTokenizerFast
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.
    rate : float
        The learning rate.
    dropout : float
        The share of each block's updates that is zeroed in training.
    measure : callable
        Called with the model, a `Family`, and the number of steps taken: before the first
        step, and after each.
    """
    training_poems, _, _ = poem_splits()
    ids = [
        passage for text in training_poems for passage in cut(text, tokenizer, overlap=True)
    ]
    torch.manual_seed(seed)
    model = Family("encoder", len(tokenizer) + SENTINELS, dropout=dropout)
    settings = TRAINING | {"steps": steps, "seed": seed, "learning_rate": rate}
    measure(model, 0)

    def watch(step, _loss):
        """Measure the model after ``step`` (int) steps; the step's loss is not used."""
        measure(model, step)

    train_masked(model, ids, tokenizer, settings, watch, family_loss)


def tune_encoder(folder, tokenizer, steps, rate, dropout):
    """Train an encoder from seed 0 at one learning rate and dropout.

    Parameters
    ----------
    folder : Path
        Unused.
    tokenizer : BertTokenizerFast
    steps : int
        How many steps of training.
    rate : float
        The learning rate.
    dropout : float
        The share of activations that is zeroed in training.

    Returns
    -------
    dict
        The settings ``seed``, ``rate``, ``dropout``; ``validation``, the mean loss of
        validation poems, in nats a token.
    """
    _, validation_poems, _ = poem_splits()
    measure = Measurements(tokenizer, [steps], validation_poems)
    pretrain(tokenizer, 0, steps, rate, dropout, measure)
    loss = rounded_mean(measure.stops[steps]["losses"])
    return {"seed": 0, "rate": rate, "dropout": dropout, "validation": loss}


def train_encoder(folder, tokenizer, seed, steps):
    """Train an encoder at its tuned settings, and measure it on the way.

    Parameters
    ----------
    folder : Path
        Holds the finished runs of the group "tuning", of which the one with the lowest loss
        says the learning rate and the dropout.
    tokenizer : BertTokenizerFast
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.

    Returns
    -------
    dict
        ``seed``; ``stops``: step → a dict of two lists by test poem: ``losses``, the mean
        loss in nats a token, and ``words``, how well the words of a poem are predicted, a
        dict: ``loss``, their mean loss in nats; ``right``, how many have the highest
        probability; ``begin``, for those of its first passage [the id of the highest
        probability, the probability of the right one].
    """
    tuned = best_tuned(folder)
    stops = [step for step in (*SETTINGS["stops"], steps) if step <= steps]
    _, _, test_poems = poem_splits()
    measure = Measurements(tokenizer, stops, test_poems)
    pretrain(tokenizer, seed, steps, tuned["rate"], tuned["dropout"], measure)
    return {"seed": seed, "stops": measure.stops}


class Measurements:
    """Measures an encoder after some of its training steps.

    Parameters
    ----------
    tokenizer : BertTokenizerFast
    stops : list of int
        The steps.
    texts : list of str
        Poems that it is not trained on.

    Attributes
    ----------
    stops : dict of int to dict
        Step → ``losses``, the mean loss of each poem, in nats a token; ``words``, for each
        poem how well its words are predicted: ``loss``, ``right`` and ``begin``, a dict.
        Empty before that step.
    """

    def __init__(self, tokenizer, stops, texts):
        """Cut the poems into passages of at most 32 tokens, which do not overlap.

        The parameters are those of the class.
        """
        self.tokenizer = tokenizer
        self.poems = [cut(text, tokenizer) for text in texts]
        self.stops = {step: {} for step in stops}

    @torch.no_grad()
    def __call__(self, model, step):
        """Measure a model, if the step is one of the stops.

        Parameters
        ----------
        model : lmcourse.families.Family
            It is in training mode before and afterwards.
        step : int
            How many training steps it has had.
        """
        if step in self.stops:
            model.eval()
            self.stops[step] |= {"losses": self.losses(model), "words": self.words(model)}
            model.train()

    def losses(self, model):
        """Return the mean loss of each poem, a list of float, each token masked once.

        ``model`` : Family, from ids to logits; losses are in nats a token.
        """

        def scores(ids, positions):
            """Return the logits (chosen, vocab_size) of some positions of ids.

            ``ids`` : (batch, tokens); ``positions`` : bool, of the same shape.
            """
            return model(ids, positions=positions)

        means = []
        for poem in self.poems:
            ids = pad_sequence(poem, batch_first=True)
            losses = place_losses(scores, ids, self.tokenizer)
            means.append(rounded_mean(losses[losses > 0]))  # zero where nothing is masked
        return means

    def words(self, model):
        """Return how well the words of each poem are predicted: a list of dict.

        The words that are one token are masked one by one. Each dict has ``loss``, in nats
        a word; ``right``, how many words have the highest probability; and ``begin``, for
        each word of the poem's first passage [the id with the highest probability, the
        probability of the right one]. ``model`` : Family, from ids to logits.
        """

        def predict(ids, positions):
            """Return log probabilities (positions, vocab_size), each position masked alone.

            ``ids`` : a passage, int64 (tokens,); ``positions`` : a list of int.
            """
            rows = range(len(positions))
            masked = ids.expand(len(positions), -1).clone()  # (positions, tokens)
            masked[rows, positions] = self.tokenizer.mask_token_id
            logits = model(masked)[rows, positions, : len(self.tokenizer)]
            return logits.log_softmax(-1)

        return [predictions_at_words(poem, predict, self.tokenizer) for poem in self.poems]


def predictions_at_words(poem, predict, tokenizer):
    """Return how well the words of a poem are predicted, those that are one token.

    Parameters
    ----------
    poem : list of int64 Tensor of shape (tokens,)
        Its passages, with a special token at each end; one at least has a whole word.
    predict : callable
        From a passage and a list of its positions to log probabilities (positions,
        vocab_size).
    tokenizer : BertTokenizerFast

    Returns
    -------
    dict
        ``loss``, the mean over its whole words, in nats; ``right``, for how many of them
        the right id has the highest probability; ``begin``, a list with a pair for each
        word of the first passage that has any: [the id with the highest probability, the
        probability of the right one].
    """
    rows = [(ids, whole_words(ids, tokenizer)) for ids in poem]
    log_probs = [predict(ids, positions) for ids, positions in rows if positions]
    right = torch.cat([ids[positions] for ids, positions in rows])
    by_word = torch.cat(log_probs)  # (words, vocab_size)
    guesses = by_word.argmax(-1)
    losses = -by_word[range(len(right)), right]
    probabilities = (-losses).exp()
    begin = [
        [guess, round(probability, 3)]
        for guess, probability in zip(guesses.tolist(), probabilities.tolist(), strict=True)
    ]
    return {
        "loss": rounded_mean(losses),
        "right": int((guesses == right).sum()),
        "begin": begin[: len(log_probs[0])],
    }


def rounded_mean(losses):
    """Return the mean of losses as a float, rounded to four decimals.

    ``losses`` : iterable of numbers, or a Tensor of one dimension.
    """
    return round(float(np.mean([float(loss) for loss in losses])), 4)


def count_neighbours(folder, tokenizer, poems):
    """Predict the tokens of test poems by counting what stood between their neighbours.

    Parameters
    ----------
    folder : Path
        Unused.
    tokenizer : BertTokenizerFast
    poems : int or None
        How many test poems to use; None stands for all.

    Returns
    -------
    dict
        ``losses``: reach (1, 2 or 3 neighbours on each side) → a list of float, the mean
        loss of each poem, in nats a token. ``words``: reach → a list of dict, for each poem
        how well its words are predicted: ``loss``, their mean loss in nats; ``right``, how
        many have the highest probability; ``begin``, for those of its first passage [the id
        of the highest probability, the probability of the right one]. ``places``: for each
        poem a list by passage of the positions of whole words, from 0.
    """
    training_poems, _, test_poems = poem_splits()
    training = [ids for text in training_poems for ids in cut(text, tokenizer)]
    test = [cut(text, tokenizer) for text in test_poems][:poems]
    size = len(tokenizer)
    tokens = torch.cat(training).numpy()
    tables = {1: between_infill(tokens, size)}
    tables |= {reach: count_infill(tokens, size, reach) for reach in (2, 3)}
    row = {"losses": {}, "words": {}}
    for reach, table in tables.items():

        def predict(ids, positions, reach=reach, table=table):
            """Return log probabilities (positions, vocab_size) of a passage's positions.

            ``ids`` : the passage, (tokens,); ``positions`` : a sequence of int; ``reach`` :
            int, how many neighbours on each side are known; ``table`` : callable, from the
            ids on the left and those on the right, two lists, to log probabilities
            (vocab_size,).
            """
            sides = [neighbours(ids, each, reach, tokenizer) for each in positions]
            return torch.tensor(np.array([table(*pair) for pair in sides]))

        def losses_of(ids, predict=predict):
            """Return the loss of each token of a passage but the first and last, in nats.

            ``ids`` : int64 Tensor (tokens,); ``predict`` : callable, from ids and positions
            to log probabilities. Returns a Tensor (tokens - 2, 1).
            """
            log_probs = predict(ids, range(1, len(ids) - 1))
            return -log_probs.gather(1, ids[1:-1, None])

        row["losses"][reach] = [
            rounded_mean(torch.cat([losses_of(ids) for ids in poem])) for poem in test
        ]
        row["words"][reach] = [
            predictions_at_words(poem, predict, tokenizer) for poem in test
        ]
    row["places"] = [[whole_words(ids, tokenizer) for ids in poem] for poem in test]
    return row


def summary(results):
    """Compare the encoders' last losses with counting three neighbours, over poems.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "runs", one a seed: ``seed``; ``stops``, step
        of training, ascending → dict with ``losses``, the mean loss of each test poem, in
        nats a token. Of "counting", one outcome: ``losses``, dict, neighbours on each side
        (1, 2, 3, in this order) → the same list.

    Returns
    -------
    dict
        ``n``, the number of outcomes of "runs", and their ``seeds``; ``interval``, [low,
        high], 95 % of the encoders' mean loss at the last step less that of counting three
        neighbours, in nats a token, over test poems drawn again; ``verdict``, "holds" or
        "not so": whether it is above zero.
    """
    last = [list(run["stops"].values())[-1]["losses"] for run in results["runs"]]
    three_neighbours = list(results["counting"][0]["losses"].values())[-1]
    gap = np.mean(last, axis=0)[: len(three_neighbours)] - three_neighbours  # (poems,)
    interval = np.round(bootstrap_interval(gap, seed=1886), 4).tolist()
    holds = interval[0] > 0
    return count(results["runs"]) | {"interval": interval, "verdict": verdict(holds)}
