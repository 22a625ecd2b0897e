"""What do more parameters and more tokens gain: the loss of a GPT by both.

What varies: six sizes, over a factor of 538 in parameters, and five numbers of tokens, over
a factor of 64: 30 configurations, each with a schedule of its own that ends at its last
token. The three fifths with the fewest tokens, and the two largest configurations, run from
three seeds. The learning rate of a size is the one of four with the lowest validation loss
after 65,536 tokens, the mean of three other seeds. All models start from weights whose
spread is 0.4 over the root of the width. The two configurations of most FLOPs run last:
their losses are predicted from all others before, and the predictions are stored.

Rivals: a straight line in logarithms; the last ratio of losses once more; what the same
tokens gained for the next smaller size.

Null: nothing more is gained.

Statistic: the loss on test text in nats a character. The interval is that of the power
law's prediction of the largest run, 95 % over configurations drawn again.
"""

import torch

from lmcourse import scaling
from lmcourse.data import load_corpus, train_val_test_split
from lmcourse.gpt.generation import generate
from lmcourse.gpt.model import GPTConfig
from lmcourse.gpt.training import estimate
from lmcourse.train import new_run
from studies.harness import best_rate, count, finished, grid, verdict
from studies.scaling.predictions import predict_runs, relative_errors

CHAPTER = "scaling"
CLAIM = (
    "A power law with an offset, fitted to smaller runs, predicts the loss of the largest "
    "run within 2 %"
)
RIVAL = (
    "a straight line in logarithms; the last ratio once more; the gain of the next smaller "
    "size"
)
NULL = "the largest run gains nothing"
SIZES = [[1, 4], [1, 10], [1, 24], [2, 32], [2, 64], [2, 128]]  # layers, width
STEPS = [32, 91, 256, 724, 2048]
TUNED = 2**16  # tokens of a training that chooses a learning rate
RATES = [1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1]
FIRST = [2, 2, 1, 1, 0, 0]  # of each size: its four rates begin here
SEEDS = [1, 2, 3]
TUNING = [11, 12, 13]  # seeds that choose the learning rate
SPREAD = 0.4  # of the first weights, times the square root of the width
TRAINING = {"batch": 8, "heads": 2, "context": 64, "weight_decay": 0.01}
TRAINING |= {"validation_windows": 200}
VOCABULARY = 65  # characters of tiny Shakespeare
PROMPT = "\nROMEO:\n"
SETTINGS = {"corpus": "tinyshakespeare", "sizes": SIZES, "steps": STEPS, "tuned": TUNED}
SETTINGS |= {"rates": RATES, "first": FIRST, "tuning": TUNING, "spread": SPREAD}
SETTINGS |= {"how": TRAINING, "prompt": PROMPT}
STEP = TRAINING["batch"] * TRAINING["context"]  # tokens of a step
TOKENS = [STEP * steps for steps in STEPS]


def plan(small):
    """Return the settings of all runs, in the order in which they have to be made.

    Six sizes, each with five numbers of tokens; each tries four of six learning rates,
    small ones higher rates, from three seeds. Of "smaller" all have the first seed, those
    with one of the three smallest numbers of tokens two more; "largest" have three seeds.

    Parameters
    ----------
    small : bool
        Whether to return those of two sizes and one seed, on the Sonnets, with few steps.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, in this order: "tuning"; "smaller", all
        configurations but the two of most FLOPs; "foretold", their prediction; "largest".
        Of trainings ``size``, (layers, width), ``tokens`` that are read, and ``seed``; of
        "tuning" also ``rate``, the learning rate. Of "foretold" ``targets``, the
        configurations to predict, and ``rows``, how many smaller runs there have to be.
        ``corpus``: the name of the text.
    """
    corpus = {"corpus": "sonnets" if small else SETTINGS["corpus"]}
    sizes = SIZES[:2] if small else SIZES
    seeds = SEEDS[:1] if small else SEEDS
    tokens = [STEP * 2**i for i in range(1, 5)] if small else TOKENS
    rate_count = 1 if small else 4
    tuning_seeds = TUNING[:1] if small else TUNING
    tuning = []
    for size, first in zip(sizes, FIRST, strict=False):
        tuning += grid(
            group="tuning",
            size=[size],
            rate=RATES[first : first + rate_count],
            seed=tuning_seeds,
            tokens=tokens[1] if small else TUNED,
        )
    configurations = grid(size=sizes, tokens=tokens)
    configurations.sort(key=lambda each: flops_of(**each))
    smaller = configurations[:-2]
    largest = configurations[-2:]
    repeated = [each for each in smaller if each["tokens"] <= tokens[-3]]
    runs = [{"group": "smaller"} | each | {"seed": seeds[0]} for each in smaller]
    for seed in seeds[1:]:
        runs += [{"group": "smaller"} | each | {"seed": seed} for each in repeated]
    prediction = {"group": "foretold", "targets": largest, "rows": len(runs)}
    last = [
        {"group": "largest"} | each | {"seed": seed} for seed in seeds for each in largest
    ]
    return [each | corpus for each in [*tuning, *runs, prediction, *last]]


def config_of(size, vocab_size=VOCABULARY):
    """Return the `GPTConfig` of a size, with two heads and a context of 64 characters.

    Parameters
    ----------
    size : list of int
        Layers and width.
    vocab_size : int
        How many characters.
    """
    layers, d_model = size
    sizes = {"heads": TRAINING["heads"], "context": TRAINING["context"]}
    return GPTConfig(vocab_size, layers=layers, d_model=d_model, **sizes)


def flops_of(size, tokens):
    """Return the floating-point operations of training a size on so many tokens, an int.

    ``size`` : list of int, layers and width; ``tokens`` : int.
    """
    return scaling.training_flops(config_of(size), tokens)


def run(folder, group, **setting):
    """Train one model, or predict the largest.

    Parameters
    ----------
    folder : Path
        Holds the finished runs.
    group : str
        What to do. "tuning": train at one learning rate; "smaller" and "largest": train at
        the best one, and test; "foretold": predict the losses of the largest.
    **setting
        ``corpus``, the name of the text. Of trainings ``size``, (layers, width), ``tokens``
        that are read, and ``seed``; of "tuning" also ``rate``. Of "foretold" ``targets``,
        the configurations to predict, and ``rows``, how many smaller runs there have to be.

    Returns
    -------
    dict or list of dict
        Of "tuning" ``size``, ``rate``, ``seed`` and ``validation``, a loss. Of "smaller"
        and "largest" ``size``, ``tokens``, ``seed``, ``rate``; ``parameters``, how many;
        ``flops`` of the training; ``test``, the loss; ``history``, a list of (tokens,
        validation loss); ``seconds``; with the first seed ``sample``, a text that the model
        wrote. Of "foretold" a list, for each configuration a dict of the predicted losses
        by way, such as ``law``. Losses are in nats a character.
    """
    functions = {
        "tuning": tune_rate,
        "smaller": train_and_test,
        "largest": train_and_test,
        "foretold": predict_largest,
    }
    return functions[group](folder, **setting)


def train_size(corpus, size, tokens, rate, seed):
    """Train one GPT of characters on a text's training part.

    A step reads eight windows of 64 tokens. Matrices start with a spread of 0.4 over the
    root of the width.

    Parameters
    ----------
    corpus : str
        The name of the text, such as "tinyshakespeare".
    size : list of int
        Layers and width.
    tokens : int
        How many to train on.
    rate : float
        The highest learning rate.
    seed : int
        Of the first weights, and of all that is drawn.

    Returns
    -------
    trainer : lmcourse.gpt.training.Trainer
        After its last step: ``gpt``, the model; ``history``, list of dict with ``step`` and
        ``val_loss``, in nats a character; ``progress.seconds``.
    tokenizer : CharTokenizer
    test : integer Tensor of shape (characters,)
        The ids of the test text, in the smallest type that holds them, such as int8.
    """
    text = load_corpus(corpus)
    parts = train_val_test_split(text.strip().split("\n\n"))
    layers, d_model = size
    steps = tokens // STEP
    settings = TRAINING | {
        "layers": layers,
        "d_model": d_model,
        "parts": parts,
        "seed": seed,
        "steps": steps,
        "warmup": steps // 10,
        "learning_rate": rate,
        "evaluate_every": max(1, steps // 4),
    }
    tokenizer, trainer = new_run(text, "classic", **settings)
    with torch.no_grad():
        for weight in trainer.gpt.parameters():
            if weight.ndim == 2:
                weight.mul_(SPREAD / d_model**0.5 / 0.02)  # GPT's own spread is 0.02
    trainer.run(quiet=True)
    return trainer, tokenizer, torch.from_numpy(tokenizer.encode_array(parts.test))


def tune_rate(folder, corpus, size, tokens, rate, seed):
    """Train one model at one learning rate, and return its validation loss.

    Parameters
    ----------
    folder : Path
        Unused.
    corpus : str
        The name of the text, such as "tinyshakespeare".
    size : list of int
        Layers and width.
    tokens : int
        How many to train on.
    rate : float
        The highest learning rate.
    seed : int
        Of the first weights, and of all that is drawn.

    Returns
    -------
    dict
        The settings ``size``, ``rate``, ``seed``; ``validation``, the last validation loss,
        in nats a character.
    """
    trainer, _, _ = train_size(corpus, size, tokens, rate, seed)
    loss = trainer.history[-1]["val_loss"]
    return {"size": size, "rate": rate, "seed": seed, "validation": round(loss, 4)}


def train_and_test(folder, corpus, size, tokens, seed):
    """Train one model at its size's learning rate, and test it.

    Parameters
    ----------
    folder : Path
        Holds the finished runs of the group "tuning"; of those of this size, the rate with
        the lowest mean loss is taken.
    corpus : str
        The name of the text, such as "tinyshakespeare".
    size : list of int
        Layers and width.
    tokens : int
        How many to train on.
    seed : int
        Of the first weights, and of all that is drawn.

    Returns
    -------
    dict
        The settings ``size``, ``tokens``, ``seed``, ``rate``; ``parameters``, how many;
        ``flops``, of the training; ``test``, the loss on test text, in nats a character;
        ``history``, a list of (tokens, validation loss); ``seconds`` of the training; of
        the first seed ``sample``, a text that it wrote.
    """
    rate = best_rate(folder, size=size)
    trainer, tokenizer, test = train_size(corpus, size, tokens, rate, seed)
    loss = estimate(trainer.gpt.eval(), test, trainer.context, 800)
    row = {
        "size": size,
        "tokens": tokens,
        "seed": seed,
        "rate": rate,
        "parameters": trainer.gpt.parameters_count,
        "flops": flops_of(size, tokens),
        "test": round(loss, 4),
    }
    row["history"] = [
        [each["step"] * STEP, round(each["val_loss"], 4)] for each in trainer.history
    ]
    if seed == SEEDS[0]:
        start = torch.tensor([tokenizer.encode(PROMPT)], device=trainer.accelerator.device)
        generator = torch.Generator().manual_seed(0)
        # 160 characters at temperature 0.8; beyond the context a cache can keep nothing.
        ids = generate(trainer.gpt, start, 160, 0.8, generator, cached=False)
        row["sample"] = tokenizer.decode(ids[0].tolist())
    return row | {"seconds": round(trainer.progress.seconds, 1)}


def predict_largest(folder, corpus, targets, rows):
    """Predict the losses of the largest configurations from the smaller ones.

    Parameters
    ----------
    folder : Path
        Holds the finished runs of the group "smaller".
    corpus : str
        Unused: the runs have been made on it.
    targets : list of dict
        ``size`` and ``tokens`` of what is to be predicted.
    rows : int
        How many smaller runs there have to be.

    Returns
    -------
    list of dict
        Of each target what `studies.scaling.predictions.predict_runs` predicts, losses in
        nats a character: ``law``, by the power law, with its 95 % ``interval``; ``line``,
        ``ratio``, ``neighbour`` and ``same``, by its rivals and if nothing more is gained.

    Raises
    ------
    ValueError
        If a smaller run is missing, or a larger one has been made already.
    """
    smaller = finished(folder, "smaller")
    if finished(folder, "largest") or len(smaller) != rows:
        raise ValueError(f"{rows} smaller runs, and no larger one, are to be there")
    parameters = {tuple(row["size"]): row["parameters"] for row in smaller}
    targets = [each | {"parameters": parameters[tuple(each["size"])]} for each in targets]
    smaller.sort(key=lambda row: (row["parameters"], row["tokens"], row["seed"]))
    return predict_runs(smaller, targets)


def summary(results):
    """Compare the predictions of the largest run with its loss.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "smaller" and "largest" are trainings:
        ``seed``, ``parameters``, ``tokens``; ``test``, the loss in nats a character. Those
        of "foretold", one a configuration, the largest last: ``parameters``, ``tokens``,
        the loss predicted by ``law`` and by rivals, and ``interval``, of the law.

    Returns
    -------
    dict
        ``n``, the number of trainings, and their ``seeds``; ``interval``, [low, high], 95 %
        of the power law's prediction for the largest configuration, in nats a character;
        ``verdict``, "holds" or "not so": whether it misses the mean loss by less than 2 %,
        and by less than each of its rivals.
    """
    runs = [*results["smaller"], *results["largest"]]
    predictions = results["foretold"]
    errors = relative_errors(predictions, results["largest"])[-1]
    law, *rivals = (abs(error) for error in errors.values())
    holds = law < min(0.02, *rivals)
    return count(runs) | {
        "interval": predictions[-1]["interval"],
        "verdict": verdict(holds),
    }
