"""What does each part of a GPT gain, how far does it see, and what does counting add?

What varies: the parts of the model, from a table of pairs of characters to two layers, each
trained for equally many steps on the same batches. The spread of the first weights and the
learning rate are chosen for each by the validation loss of seed 0; three other seeds are
tested. Of the whole model also how many characters it is shown, by the kind of character
that is predicted, always where 64 come before. And the test loss of the mean of two models'
probabilities.

Rivals: n-gram models, their order chosen on the validation text, that see as many
characters; two seeds of one GPT, averaged.

Null: averaging any two models gains as much.

Statistic: the loss in nats a character. For what averaging gains, a 95 % interval over the
sonnets of the test text, drawn again.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.generation import generate
from lmcourse.gpt.inside import losses_at
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.gpt.training import Trainer, TrainingConfig, split
from lmcourse.live import SETTINGS as LIVE
from lmcourse.live import SIZES as LIVE_SIZES
from lmcourse.ngrams import NgramModel
from lmcourse.numbers import bootstrap_interval
from lmcourse.tokenization import CharTokenizer
from studies.harness import best_tuned, count, grid, verdict

CHAPTER = "mini-gpt"
AFTER = ("sonnets",)
CLAIM = (
    "Averaged with an n-gram model, the course's GPT improves more on held-out sonnets "
    "than two small GPTs averaged with each other do"
)
RIVAL = "averaging two small GPTs that differ in their seed alone"
NULL = "averaging any two models improves them equally"


@dataclass(frozen=True)
class RungParts:
    """What the model of a rung has.

    Parameters
    ----------
    layers, heads : int
    attention : bool
        Whether it attends. If not, it has nothing but a table of pairs of tokens: the token
        and the one that follows.
    feed_forward : bool
        Whether the layer has its feed-forward network.
    paths_and_norms : bool
        Whether it is a whole GPT: with residual paths and norms.
    """

    layers: int = 1
    heads: int = 4
    attention: bool = True
    feed_forward: bool = True
    paths_and_norms: bool = True


PARTS = {
    "a table of pairs": RungParts(
        attention=False, feed_forward=False, paths_and_norms=False
    ),
    "one head": RungParts(heads=1, feed_forward=False, paths_and_norms=False),
    "four heads": RungParts(feed_forward=False, paths_and_norms=False),
    "feed-forward": RungParts(paths_and_norms=False),
    "residual paths and norms": RungParts(),
    "a second layer": RungParts(layers=2),
}
RUNGS = [*PARTS]
SPREADS = (0.05, 0.125)  # standard deviations of the first weights
RATES = (3e-3, 1e-2, 3e-2, 1e-1)  # highest learning rates
SEEDS = (1, 2, 3)  # of what is tested; seed 0 chooses spread and rate
SIZES = {"context": 64, "heads": 4, "d_model": 64}
FAR = 64  # characters before each position that is tested
REACHES = {1: 2, 2: 3, 5: 6, 10: 8, 20: 8, 64: 8}  # characters shown → order of n-grams
TRAINING = {"batch": 24, "warmup": 40, "weight_decay": 0.01, "validation_windows": 150}
SETTINGS = {"rungs": RUNGS, "spreads": SPREADS, "rates": RATES, "model": SIZES}
SETTINGS |= {"training": TRAINING, "far": FAR, "live": LIVE_SIZES | LIVE}


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return some of them, with two steps, tested at few positions.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``. "tuning": ``rung``, the last part that the
        model has, such as "four heads", one of six; ``spread``, the standard deviation of
        its first weights, 0.05 or 0.125; ``rate``, the highest learning rate, four from
        0.003 to 0.1; ``steps`` of training, 1,000. "runs": ``rung``, ``seed`` and
        ``steps``. "averaged": ``seeds``, whose models are averaged. "live": ``steps``. All
        but "tuning" and "live" also have ``every``: one position in so many is tested.
    """
    steps = 2 if small else 1000
    every = {"every": 200 if small else 1}
    seeds = SEEDS[: 2 if small else 3]
    tuned = grid(group="tuning", rung=RUNGS, spread=SPREADS, rate=RATES, steps=steps)
    runs = grid(group="runs", rung=RUNGS[::-1], seed=seeds, steps=steps, **every)
    others = [
        {"group": "counting"} | every,
        {"group": "averaged", "seeds": seeds} | every,
        {"group": "live", "steps": 20 if small else LIVE["steps"]},
    ]
    return tuned[:: 8 if small else 1] + runs + others


class Rung(GPT):
    """A GPT of which only some parts are used, those up to a rung.

    Rungs are "a table of pairs" (logits by the last token alone), "one head", "four heads"
    and "feed-forward" (one block, without residual paths and norms), "residual paths and
    norms" (one whole block) and "a second layer".

    Parameters
    ----------
    vocab_size : int
        How many characters there are.
    rung : str
        One of `RUNGS`, such as "one head": the last part that it has.
    spread : float
        The standard deviation of the first weights of its matrices.
    """

    def __init__(self, vocab_size, rung, spread):
        """Draw the first weights; a table of pairs begins with zeros.

        The parameters are those of the class.
        """
        parts = PARTS[rung]
        sizes = SIZES | {"heads": parts.heads, "layers": parts.layers}
        super().__init__(GPTConfig(vocab_size, **sizes))
        self.rung_parts = parts
        with torch.no_grad():
            for weight in self.parameters():
                if weight.ndim == 2:
                    weight.mul_(spread / 0.02)  # GPT's own spread is 0.02
        if not parts.attention:
            self.pairs = nn.Embedding(vocab_size, vocab_size)
            nn.init.zeros_(self.pairs.weight)

    def forward(self, ids):
        """Return the logits of the token that follows each.

        Parameters
        ----------
        ids : int64 Tensor of shape (batch, tokens)

        Returns
        -------
        Tensor of shape (batch, tokens, vocab_size)
        """
        if not self.rung_parts.attention:
            return self.pairs(ids)
        if self.rung_parts.paths_and_norms:
            return super().forward(ids)
        x, _ = self.blocks[0].attention(self.embed(ids))  # (batch, tokens, d_model)
        if self.rung_parts.feed_forward:
            x = self.blocks[0].feed_forward(x)
        return F.linear(x, self.tokens.weight)


def run(folder, group, **setting):
    """Train or test models on the sonnets: GPTs with some of their parts, n-grams, means.

    Parameters
    ----------
    folder : Path
        Holds finished runs, and the losses that are averaged later.
    group : str
        What to do: "tuning": try a learning rate; "runs": train a model and test it;
        "counting": test n-grams; "averaged": average the probabilities of two models;
        "live": train as the page does.
    **setting
        Of "tuning" ``rung``, the last part that the model has, ``spread`` of its first
        weights, ``rate``, ``steps``; of "runs" ``rung``, ``seed``, ``steps``; of "averaged"
        ``seeds``; of "live" ``steps``; of the three that test ``every``: one
        position in so many is tested.

    Returns
    -------
    dict or list of dict
        The setting, and what was found; all losses are in nats a character.

        - "tuning": ``validation``, a loss,
        - "runs" and "counting": ``test``, the mean loss on the test text, and ``reach``,
          kind of character → how many characters are shown, a str → mean loss; and more
          (`train_and_test`, `count_ngrams`),
        - "averaged": a list, one dict for each model and each two models: ``models``, their
          names; ``test``, the mean loss; and ``sonnets``, of one model its loss on each
          sonnet, of two by how much their average is better there than the better one,
        - "live": a list, one dict for each estimate: ``step``, ``loss`` and ``sample``, a
          text that the model wrote.
    """
    tokenizer = CharTokenizer(load_corpus("sonnets"))
    texts = train_val_test_split(load_texts("sonnets"))
    parts = [torch.tensor(tokenizer.encode(text)) for text in texts]
    functions = {
        "tuning": tune_rung,
        "runs": train_and_test,
        "counting": count_ngrams,
        "averaged": average_models,
        "live": train_live,
    }
    return functions[group](folder, tokenizer, parts, **setting)


def train_rung(tokenizer, parts, rung, seed, spread, rate, steps):
    """Train a GPT that has only the parts up to a rung on the sonnets.

    A step sees 24 windows of 64 characters; every 50 steps the validation loss is
    estimated.

    Parameters
    ----------
    tokenizer : CharTokenizer
    parts : list of int64 Tensor of shape (tokens,)
        The ids of the training, validation and test text.
    rung : str
        One of `RUNGS`, such as "one head": the last part that the model has.
    seed : int
        Of the first weights, and of all that is drawn.
    spread : float
        The standard deviation of the first weights.
    rate : float
        The highest learning rate.
    steps : int
        How many steps of training.

    Returns
    -------
    lmcourse.gpt.training.Trainer
        After its last step.
    """
    torch.manual_seed(seed)
    model = Rung(tokenizer.vocab_size, rung, spread)
    settings = TRAINING | {"warmup": min(TRAINING["warmup"], steps - 1)}
    config = TrainingConfig(
        **settings, steps=steps, seed=seed, learning_rate=rate, evaluate_every=50
    )
    trainer = Trainer(model, *parts[:2], config, "cpu")
    trainer.run(quiet=True)
    return trainer


def tune_rung(folder, tokenizer, parts, rung, spread, rate, steps):
    """Train the model of a rung from seed 0, with a spread and a learning rate.

    Parameters
    ----------
    folder : Path
        Unused.
    tokenizer : CharTokenizer
    parts : list of int64 Tensor of shape (tokens,)
        The ids of the training, validation and test text.
    rung : str
        One of `RUNGS`, such as "one head": the last part that the model has.
    spread : float
        The standard deviation of the first weights.
    rate : float
        The highest learning rate.
    steps : int
        How many steps of training.

    Returns
    -------
    dict
        The settings ``rung``, ``spread``, ``rate``; ``validation``, the last validation
        loss, in nats a character.
    """
    history = train_rung(tokenizer, parts, rung, 0, spread, rate, steps).history
    row = {"rung": rung, "spread": spread, "rate": rate}
    return row | {"validation": round(history[-1]["val_loss"], 4)}


def train_and_test(folder, tokenizer, parts, rung, seed, steps, every):
    """Train the model of a rung at its tuned spread and rate, and test it.

    Parameters
    ----------
    folder : Path
        Holds the finished runs of the group "tuning"; the losses of the whole GPT are
        saved there as ``SEED.npy``.
    tokenizer : CharTokenizer
    parts : list of int64 Tensor of shape (tokens,)
        The ids of the training, validation and test text.
    rung : str
        One of `RUNGS`, such as "one head": the last part that the model has.
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.
    every : int
        Test at one position in so many.

    Returns
    -------
    dict
        The settings ``rung``, ``seed``, ``spread``, ``rate``; ``test``, the mean loss on
        the test text with 64 characters shown, in nats a character; ``reach``, kind of
        character ("line ends", "word starts" or "elsewhere") → how many are shown before
        it, 64 or, to the whole GPT, six numbers from 1 to 64, a str → mean loss. Of the
        whole GPT also ``history``, a list of (step, training loss, validation loss), and
        ``seconds`` of training.
    """
    best = best_tuned(folder, rung=rung)
    best = {name: best[name] for name in ("spread", "rate")}
    trainer = train_rung(tokenizer, parts, rung, seed, **best, steps=steps)
    positions = torch.arange(FAR, len(parts[2]), every)
    reaches = REACHES if rung == RUNGS[-1] else (FAR,)
    losses = {
        reach: losses_at(trainer.gpt, parts[2], positions, reach) for reach in reaches
    }
    row = {"rung": rung, "seed": seed} | best
    row |= mean_losses(tokenizer, parts[2], losses, every)
    if rung != RUNGS[-1]:
        return row
    np.save(folder / f"{seed}.npy", losses[FAR])
    row["history"] = [
        [each["step"], each["train_loss"], round(each["val_loss"], 4)]
        for each in trainer.history
    ]
    return row | {"seconds": round(trainer.progress.seconds, 1)}


def count_ngrams(folder, tokenizer, parts, every):
    """Test n-gram models of orders 1 to 8, and the one that is best on the validation text.

    Parameters
    ----------
    folder : Path
        The best order's losses are saved there as ``counting.npy``: an array (positions,)
        of the test text from the 64th character on, one in ``every``.
    tokenizer : CharTokenizer
    parts : list of int64 Tensor of shape (tokens,)
        The ids of the training, validation and test text.
    every : int
        Test at one position in so many.

    Returns
    -------
    dict
        ``test``, the mean test loss of the best order; ``reach``, kind ("line ends", "word
        starts" or "elsewhere") → how many characters a GPT would be shown, a str → mean
        loss of n-grams that see about as far; ``order``, the one that was chosen;
        ``validation``, its validation loss. In nats a character.
    """
    training, validation, test = (part.numpy() for part in parts)
    models = {n: NgramModel(training, n, tokenizer.vocab_size) for n in range(1, 9)}
    validation_losses = {n: model.loss(validation) for n, model in models.items()}
    losses = {
        n: -np.log(model.probabilities(test)[FAR::every]) for n, model in models.items()
    }
    best = min(validation_losses, key=validation_losses.get)
    np.save(folder / "counting.npy", losses[best])
    by_reach = {reach: losses[n] for reach, n in REACHES.items()}
    row = mean_losses(tokenizer, parts[2], by_reach, every)
    row["test"] = round(float(losses[best].mean()), 4)
    return row | {"order": best, "validation": round(validation_losses[best], 4)}


def positions_to_test(tokenizer, ids, every):
    """Return the test text, and the positions at which models are tested.

    Parameters
    ----------
    tokenizer : CharTokenizer
    ids : int64 Tensor of shape (characters,)
        The test text.
    every : int
        One position in so many, from the 64th on.

    Returns
    -------
    text : str
    positions : int array of shape (positions,)
        In the text, from 0.
    sonnets : int array of shape (positions,)
        The number of the sonnet in which each position is.
    """
    text = tokenizer.decode(ids.tolist())
    positions = np.arange(FAR, len(text), every)
    sonnets = np.array([text.count("\n\n", 0, position) for position in positions])
    return text, positions, sonnets


def mean_losses(tokenizer, ids, losses, every):
    """Return the mean loss on the test text, in all and by the kind of character.

    Parameters
    ----------
    tokenizer : CharTokenizer
    ids : int64 Tensor of shape (characters,)
        The test text.
    losses : dict of int to array of shape (positions,)
        Characters shown → the loss at each position, in nats.
    every : int
        Positions are one in so many, from the 64th on.

    Returns
    -------
    dict
        ``test``: the mean with 64 characters shown. ``reach``: kind ("line ends", "word
        starts" or "elsewhere") → characters shown, a str → mean loss. In nats a character.
    """
    text, positions, _ = positions_to_test(tokenizer, ids, every)
    letter = np.array([character.isalpha() or character in "'’" for character in text])
    ends = np.array([text[position] == "\n" for position in positions])
    starts = letter[positions] & ~letter[positions - 1]
    kinds = {"line ends": ends, "word starts": starts, "elsewhere": ~ends & ~starts}
    by_kind = {
        kind: {str(r): round(float(each[chosen].mean()), 4) for r, each in losses.items()}
        for kind, chosen in kinds.items()
    }
    return {"test": round(float(losses[FAR].mean()), 4), "reach": by_kind}


def average_models(folder, tokenizer, parts, seeds, every):
    """Test each model, and each two of them with their probabilities averaged.

    The models are the n-gram model, the small GPTs, and the course's GPT.

    Parameters
    ----------
    folder : Path
        Holds the losses of all but the course's GPT, arrays (positions,): ``counting.npy``,
        and ``SEED.npy`` of each small GPT.
    tokenizer : CharTokenizer
    parts : list of int64 Tensor of shape (tokens,)
        The ids of the training, validation and test text.
    seeds : sequence of int
        Of the small GPTs.
    every : int
        Test at one position in so many.

    Returns
    -------
    list of dict
        ``models``, a list of one or two names ("counting", a seed as a str, "the
        course's"); ``test``, the mean loss; ``sonnets``, a list: of one model its mean loss
        on each sonnet, of two by how much their average is better there than the one of
        them that is better on the whole. In nats a character.
    """
    losses = {str(name): np.load(folder / f"{name}.npy") for name in ("counting", *seeds)}
    positions = torch.arange(FAR, len(parts[2]), every)
    _, course_gpt, *_ = load_gpt("sonnets", device="cpu")
    losses["the course's"] = losses_at(course_gpt, parts[2], positions, FAR)
    _, _, sonnets = positions_to_test(tokenizer, parts[2], every)

    def row(names, test, by_position):
        """Return a row of the result.

        Parameters
        ----------
        names : list of str
            One model, or two that are averaged.
        test : float array of shape (positions,)
            Their loss, in nats; the mean over all positions is stored.
        by_position : float array of shape (positions,)
            Of one model the same loss; of two by how much their average is better than the
            one of them that is better on the whole, in nats. The mean over the positions of
            each sonnet is stored; ``sonnets`` has the number of each position's sonnet.

        Returns
        -------
        dict
            ``models``, ``test`` and ``sonnets``, as `average_models` returns them.
        """
        means = [
            round(float(by_position[sonnets == n].mean()), 4) for n in np.unique(sonnets)
        ]
        return {"models": names, "test": round(float(test.mean()), 4), "sonnets": means}

    rows = [row([name], each, each) for name, each in losses.items()]
    for one, other in combinations(losses, 2):
        both = np.log(2) - np.logaddexp(-losses[one], -losses[other])
        better = min(losses[one], losses[other], key=np.mean)
        rows.append(row([one, other], both, better - both))
    return rows


def train_live(folder, tokenizer, parts, steps):
    """Train a GPT on the sonnets with the sizes and settings that the page's view has.

    They are those of `lmcourse.live`, so that the page can show losses and texts.

    Parameters
    ----------
    folder : Path
        Unused.
    tokenizer : CharTokenizer
    parts
        Unused: the view splits the text as one.
    steps : int
        How many steps of training.

    Returns
    -------
    list of dict
        At each estimate: ``step``, ``loss`` (of the validation text, in nats a character),
        ``sample`` (a text of 120 characters after a line break).
    """
    sizes = {name: LIVE_SIZES[name] for name in ("context", "layers", "heads", "d_model")}
    config = TrainingConfig(
        batch=LIVE["batch"],
        learning_rate=LIVE["learning_rate"],
        seed=LIVE["seed"],
        steps=steps,
        warmup=steps // 20,
        evaluate_every=max(10, steps // 30),
    )
    torch.manual_seed(LIVE["seed"])
    model = GPT(GPTConfig(tokenizer.vocab_size, **sizes))
    ids = torch.tensor(tokenizer.encode(load_corpus("sonnets")))
    trainer = Trainer(model, *split(ids), config, "cpu")
    start = torch.tensor([tokenizer.encode("\n")])
    rows = []

    def watch(trainer):
        """Add a row to ``rows``: ``step``, ``loss`` and ``sample``.

        ``trainer`` : Trainer, which calls this after each estimate of the loss. The sample
        is 120 characters that follow a line break, at temperature 0.8, drawn with the same
        random numbers each time.
        """
        generator = torch.Generator().manual_seed(1)
        # Most of the text is beyond the model's context, where a cache can keep nothing.
        sample = generate(trainer.gpt.eval(), start, 120, 0.8, generator, cached=False)
        loss = trainer.history[-1]["val_loss"]
        row = {"step": trainer.progress.step, "loss": round(loss, 4)}
        rows.append(row | {"sample": tokenizer.decode(sample[0].tolist())})

    trainer.run(on_estimate=watch, quiet=True)
    return rows


def summary(results):
    """Compare what averaging with an n-gram model gains with what two GPTs gain.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs; those of "averaged" have ``models``, one or two names
        ("counting", seeds such as "1", "the course's"), and ``sonnets``, a list, of two
        what averaging gains on each sonnet, in nats a character. Those of "runs" have
        ``seed``.

    Returns
    -------
    dict
        ``n``, the number of outcomes of "runs", and their ``seeds``; ``interval``, [low,
        high], 95 % of the gain of n-grams with the course's GPT less that of two small
        GPTs, in nats a character, over sonnets drawn again; ``verdict``, "holds" or "not
        so": whether it is above zero.
    """
    gains = {tuple(row["models"]): row["sonnets"] for row in results["averaged"]}
    two_gpts = [
        gains[names]
        for names in gains
        if len(names) == 2 and all(name.isdigit() for name in names)
    ]
    difference = gains["counting", "the course's"] - np.mean(two_gpts, axis=0)
    interval = np.round(bootstrap_interval(difference), 4).tolist()
    holds = interval[0] > 0
    return count(results["runs"]) | {"interval": interval, "verdict": verdict(holds)}
