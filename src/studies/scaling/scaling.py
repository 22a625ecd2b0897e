"""What does more buy: the loss of a GPT by its parameters and its tokens.

Varied: six sizes, over a factor of 538 in parameters, and five numbers of tokens, over a
factor of 64: 30 configurations, each with a schedule of its own that ends at its last
token; the two largest and the three fifths with fewer tokens from three seeds. The
learning rate of a size is the one of four with the lowest validation loss after 65,536
tokens, the mean of three other seeds. All start from weights whose spread is 0.4 over the
root of the width. The two configurations of most FLOPs run last: what they would give is
foretold, and stored, from the others before. Rivals: a straight line in logarithms; the
last ratio, once more; what the same text brought the next smaller size. Null: nothing more
is gained. Statistic: nats a character on test text; the interval is that of the law's
prediction of the largest run, over configurations drawn again.
"""

import torch

from lmcourse import scaling
from lmcourse.data import load_corpus, train_val_test_split
from lmcourse.gpt.generation import generate
from lmcourse.gpt.model import GPTConfig
from lmcourse.gpt.training import estimate
from lmcourse.train import new_run
from studies.harness import best_rate, count, finished, grid, verdict

CHAPTER = "scaling"
CLAIM = (
    "A power law with an offset, fitted to the 28 smaller configurations, foretells the "
    "largest within 2 %, and closer than its rivals"
)
RIVAL = (
    "a straight line in logarithms; the last ratio, once more; the next smaller size's gain"
)
NULL = "the largest run gains nothing"
SIZES = [[1, 4], [1, 10], [1, 24], [2, 32], [2, 64], [2, 128]]  # layers, width
STEPS, TUNED = [32, 91, 256, 724, 2048], 2**16
RATES = [1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1]  # four of each size, the larger the lower
FIRST = [2, 2, 1, 1, 0, 0]
SEEDS, TUNING, SPREAD = [1, 2, 3], [11, 12, 13], 0.4
HOW = {"batch": 8, "heads": 2, "context": 64, "weight_decay": 0.01}
HOW |= {"validation_windows": 200}
VOCABULARY, PROMPT = 65, "\nROMEO:\n"
SETTINGS = {"corpus": "tinyshakespeare", "sizes": SIZES, "steps": STEPS, "tuned": TUNED}
SETTINGS |= {"rates": RATES, "first": FIRST, "tuning": TUNING, "spread": SPREAD}
SETTINGS |= {"how": HOW, "prompt": PROMPT}
STEP = HOW["batch"] * HOW["context"]  # tokens
TOKENS = [STEP * steps for steps in STEPS]


def plan(small):
    """Tune, train the smaller, foretell, train the two largest; or two sizes, briefly."""
    corpus = {"corpus": "sonnets" if small else SETTINGS["corpus"]}
    sizes, seeds = (SIZES[:2], SEEDS[:1]) if small else (SIZES, SEEDS)
    tokens = [STEP * 2**i for i in range(1, 5)] if small else TOKENS
    rates, tuning = (1, TUNING[:1]) if small else (4, TUNING)
    tuned = []
    for size, first in zip(sizes, FIRST, strict=False):
        how = {"size": [size], "rate": RATES[first : first + rates], "seed": tuning}
        tuned += grid(group="tuning", **how, tokens=tokens[1] if small else TUNED)
    every = grid(size=sizes, tokens=tokens)
    every.sort(key=lambda each: cost(**each))
    few, largest = every[:-2], every[-2:]
    again = [each for each in few if each["tokens"] <= tokens[-3]]
    runs = [each | {"seed": seeds[0]} for each in few]
    runs += [each | {"seed": seed} for seed in seeds[1:] for each in again]
    told = {"group": "foretold", "targets": largest, "rows": len(runs)}
    last = [each | {"seed": seed} for seed in seeds for each in largest]
    runs = [{"group": "smaller"} | each for each in runs]
    last = [{"group": "largest"} | each for each in last]
    return [each | corpus for each in [*tuned, *runs, told, *last]]


def config(size, vocab_size=VOCABULARY):
    """Return the configuration of a size."""
    sizes = {"heads": HOW["heads"], "context": HOW["context"]}
    return GPTConfig(vocab_size, layers=size[0], d_model=size[1], **sizes)


def cost(size, tokens):
    """Return the FLOPs of a training."""
    return scaling.training_flops(config(size), tokens)


def run(folder, group, **setting):
    """Train one model, or foretell."""
    return {"tuning": tuning, "foretold": foretold}.get(group, final)(folder, **setting)


def trained(corpus, size, tokens, rate, seed):
    """Train a model; return its trainer, its tokenizer and the test text."""
    text = load_corpus(corpus)
    parts = train_val_test_split(text.strip().split("\n\n"))
    steps = tokens // STEP
    how = HOW | {"layers": size[0], "d_model": size[1], "parts": parts, "seed": seed}
    how |= {"steps": steps, "warmup": steps // 10, "learning_rate": rate}
    how |= {"evaluate_every": max(1, steps // 4)}
    tokenizer, trainer = new_run(text, "classic", **how)
    with torch.no_grad():
        for weight in trainer.gpt.parameters():
            weight.mul_(SPREAD / size[1] ** 0.5 / 0.02 if weight.ndim == 2 else 1)
    trainer.run(quiet=True)
    return trainer, tokenizer, torch.from_numpy(tokenizer.encode_array(parts.test))


def tuning(folder, corpus, size, tokens, rate, seed):
    """Return the validation loss of one rate and seed."""
    loss = trained(corpus, size, tokens, rate, seed)[0].history[-1]["val_loss"]
    return {"size": size, "rate": rate, "seed": seed, "validation": round(loss, 4)}


def final(folder, corpus, size, tokens, seed):
    """Train at the size's rate; judge by the test text."""
    rate = best_rate(folder, size=size)
    trainer, tokenizer, test = trained(corpus, size, tokens, rate, seed)
    loss = estimate(trainer.gpt.eval(), test, trainer.context, 800)
    found = {"size": size, "tokens": tokens, "seed": seed, "rate": rate}
    found |= {"parameters": trainer.gpt.parameters_count, "flops": cost(size, tokens)}
    curve = [[each["step"] * STEP, round(each["val_loss"], 4)] for each in trainer.history]
    found |= {"test": round(loss, 4), "history": curve}
    if seed == SEEDS[0]:
        start = torch.tensor([tokenizer.encode(PROMPT)], device=trainer.accelerator.device)
        draw = torch.Generator().manual_seed(0)
        ids = generate(trainer.gpt, start, 160, 0.8, draw, cached=False)
        found["sample"] = tokenizer.decode(ids[0].tolist())
    return found | {"seconds": round(trainer.progress.seconds, 1)}


def foretold(folder, corpus, targets, rows):
    """Foretell the largest from the smaller, before they run."""
    smaller = finished(folder, "smaller")
    if finished(folder, "largest") or len(smaller) != rows:
        raise ValueError(f"{rows} smaller runs, and no larger one, are to be there")
    size = {tuple(row["size"]): row["parameters"] for row in smaller}
    targets = [each | {"parameters": size[tuple(each["size"])]} for each in targets]
    smaller.sort(key=lambda row: (row["parameters"], row["tokens"], row["seed"]))
    return scaling.predict_runs(smaller, targets)


def summary(results):
    """Compare what was foretold of the largest with what came."""
    runs = [*results["smaller"], *results["largest"]]
    told = results["foretold"]
    law, *rivals = map(abs, scaling.relative_errors(told, results["largest"])[-1].values())
    holds = law < min(0.02, *rivals)
    return count(runs) | {"interval": told[-1]["interval"], "verdict": verdict(holds)}
