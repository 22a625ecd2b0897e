"""What does each part of a GPT bring, how far does it look back, what does counting add?

Varied: the parts, from a table of pairs to two layers; equal steps on the same batches,
spread of the first weights and learning rate chosen for each by the validation loss of seed
0, judged by the test text on three other seeds. Of the whole model: how many characters it
is shown, by the kind of place, always where 64 stand before. And the test text by the mean
of two models' probabilities. Rivals: counting, its order chosen on the validation text, at
the same reach; two seeds of one GPT averaged. Null: averaging any two gains as much.
Statistic: nats a character; for what averaging gains, a 95 % interval over the sonnets.
"""

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
from lmcourse.ngrams import NgramModel
from lmcourse.tokenization import CharTokenizer
from lmcourse.views.training import SETTINGS as LIVE
from lmcourse.views.training import SIZES as LIVE_SIZES
from studies.harness import best_tuned, count, grid, verdict

CHAPTER, AFTER = "mini-gpt", ("sonnets",)
CLAIM = (
    "Averaged with counting, the course's GPT gains more on unseen sonnets than two GPTs "
    "of the page gain averaged with each other"
)
RIVAL = "two GPTs of the page that differ in their seed, averaged"
NULL = "averaging any two models gains as much"
RUNGS = ["a table of pairs", "one head", "four heads", "feed-forward"]
RUNGS += ["residual paths and norms", "a second layer"]
SPREADS, RATES, SEEDS = (0.05, 0.125), (3e-3, 1e-2, 3e-2, 1e-1), (1, 2, 3)
SIZES, FAR = {"context": 64, "heads": 4, "d_model": 64}, 64
REACHES = {1: 2, 2: 3, 5: 6, 10: 8, 20: 8, 64: 8}  # characters shown → counted in runs of
HOW = {"batch": 24, "warmup": 40, "weight_decay": 0.01, "validation_windows": 150}
SETTINGS = {"rungs": RUNGS, "spreads": SPREADS, "rates": RATES, "model": SIZES}
SETTINGS |= {"training": HOW, "far": FAR, "live": LIVE_SIZES | LIVE}


def plan(small):
    """All rungs from three seeds; or two steps of each, judged at few places."""
    steps, far = 2 if small else 1000, {"every": 200 if small else 1}
    seeds = SEEDS[: 2 if small else 3]
    tuned = grid(group="tuning", rung=RUNGS, spread=SPREADS, rate=RATES, steps=steps)
    runs = grid(group="runs", rung=RUNGS[::-1], seed=seeds, steps=steps, **far)
    last = [{"group": "counting"} | far, {"group": "averaged", "seeds": seeds} | far]
    last += [{"group": "live", "steps": 20 if small else LIVE["steps"]}]
    return tuned[:: 8 if small else 1] + runs + last


class Rung(GPT):
    """As much of a GPT as stands on a rung of the ladder."""

    def __init__(self, vocab_size, rung, spread):
        self.rung = RUNGS.index(rung)
        sizes = SIZES | {"heads": 1 if self.rung == 1 else 4}
        super().__init__(GPTConfig(vocab_size, **sizes, layers=1 + (self.rung == 5)))
        with torch.no_grad():
            for weight in self.parameters():
                weight.mul_(spread / 0.02 if weight.ndim == 2 else 1)
        self.pairs = nn.Embedding(vocab_size, vocab_size) if self.rung == 0 else None
        if self.pairs is not None:
            nn.init.zeros_(self.pairs.weight)

    def forward(self, ids):
        """Return the logits of what follows each token."""
        if self.pairs is not None:
            return self.pairs(ids)  # (batch, tokens, vocab_size)
        if self.rung > 3:
            return super().forward(ids)
        x, _ = self.blocks[0].attention(self.embed(ids))  # (batch, tokens, d_model)
        x = self.blocks[0].feed_forward(x) if self.rung == 3 else x
        return F.linear(x, self.tokens.weight)


def run(folder, group, **setting):
    """Train or judge one thing."""
    tokenizer = CharTokenizer(load_corpus("sonnets"))
    texts = train_val_test_split(load_texts("sonnets"))
    parts = [torch.tensor(tokenizer.encode(text)) for text in texts]
    how = {"tuning": tuning, "runs": climb, "counting": counting}
    how |= {"averaged": averaged, "live": live}
    return how[group](folder, tokenizer, parts, **setting)


def trained(tokenizer, parts, rung, seed, spread, rate, steps):
    """Return the trainer of a rung after its last step."""
    torch.manual_seed(seed)
    model = Rung(tokenizer.vocab_size, rung, spread)
    how = HOW | {"warmup": min(HOW["warmup"], steps - 1), "steps": steps, "seed": seed}
    config = TrainingConfig(**how, learning_rate=rate, evaluate_every=50)
    trainer = Trainer(model, *parts[:2], config, "cpu")
    trainer.run(quiet=True)
    return trainer


def tuning(folder, tokenizer, parts, rung, spread, rate, steps):
    """Return the validation loss of seed 0."""
    history = trained(tokenizer, parts, rung, 0, spread, rate, steps).history
    found = {"rung": rung, "spread": spread, "rate": rate}
    return found | {"validation": round(history[-1]["val_loss"], 4)}


def climb(folder, tokenizer, parts, rung, seed, steps, every):
    """Train a rung and judge it; of the whole GPT also the way, and its reach."""
    best = best_tuned(folder, rung=rung)
    best = {name: best[name] for name in ("spread", "rate")}
    trainer = trained(tokenizer, parts, rung, seed, **best, steps=steps)
    places = torch.arange(FAR, len(parts[2]), every)
    reaches = REACHES if rung == RUNGS[-1] else (FAR,)
    cost = {r: losses_at(trainer.gpt, parts[2], places, r) for r in reaches}
    found = {"rung": rung, "seed": seed} | best | judged(tokenizer, parts[2], cost, every)
    if rung != RUNGS[-1]:
        return found
    np.save(folder / f"{seed}.npy", cost[FAR])
    curve = [[x["step"], x["train_loss"], round(x["val_loss"], 4)] for x in trainer.history]
    return found | {"history": curve, "seconds": round(trainer.progress.seconds, 1)}


def counting(folder, tokenizer, parts, every):
    """Choose an order on the validation text; judge it, and all reaches."""
    train, validation, test = (part.numpy() for part in parts)
    models = {n: NgramModel(train, n, tokenizer.vocab_size) for n in range(1, 9)}
    losses = {n: model.loss(validation) for n, model in models.items()}
    shares = {n: model.probabilities(test)[FAR::every] for n, model in models.items()}
    cost = {n: -np.log(share) for n, share in shares.items()}
    best = min(losses, key=losses.get)
    np.save(folder / "counting.npy", cost[best])
    found = judged(tokenizer, parts[2], {r: cost[n] for r, n in REACHES.items()}, every)
    found |= {"test": round(float(cost[best].mean()), 4)}
    return found | {"order": best, "validation": round(losses[best], 4)}


def sonnet_of(tokenizer, ids, every):
    """Return the text and, of each place judged, where it is and its sonnet."""
    text = tokenizer.decode(ids.tolist())
    places = np.arange(FAR, len(text), every)
    return text, places, np.array([text.count("\n\n", 0, place) for place in places])


def judged(tokenizer, ids, cost, every):
    """Return the mean cost; and, shown so many characters, by the kind of place."""
    text, places, _ = sonnet_of(tokenizer, ids, every)
    letter = np.array([c.isalpha() or c in "'’" for c in text])
    ends = np.array([text[place] == "\n" for place in places])
    starts = letter[places] & ~letter[places - 1]
    kinds = {"line ends": ends, "word starts": starts, "elsewhere": ~ends & ~starts}
    by_kind = {
        kind: {str(r): round(float(each[at].mean()), 4) for r, each in cost.items()}
        for kind, at in kinds.items()
    }
    return {"test": round(float(cost[FAR].mean()), 4), "reach": by_kind}


def averaged(folder, tokenizer, parts, seeds, every):
    """Return what each sonnet costs, and what averaging two gains over the better one."""
    costs = {str(name): np.load(folder / f"{name}.npy") for name in ("counting", *seeds)}
    places = torch.arange(FAR, len(parts[2]), every)
    course = load_gpt("sonnets", device="cpu")[1]
    costs["the course's"] = losses_at(course, parts[2], places, FAR)
    _, _, sonnet = sonnet_of(tokenizer, parts[2], every)

    def row(names, cost, gain):
        each = [round(float(gain[sonnet == n].mean()), 4) for n in np.unique(sonnet)]
        return {"models": names, "test": round(float(cost.mean()), 4), "sonnets": each}

    rows = [row([name], cost, cost) for name, cost in costs.items()]
    for one, other in combinations(costs, 2):
        both = np.log(2) - np.logaddexp(-costs[one], -costs[other])
        better = min(costs[one], costs[other], key=np.mean)
        rows.append(row([one, other], both, better - both))
    return rows


def live(folder, tokenizer, parts, steps):
    """Train the model of the view *training* as the page does; return its moments."""
    sizes = {n: LIVE_SIZES[n] for n in ("context", "layers", "heads", "d_model")}
    how = {n: LIVE[n] for n in ("batch", "learning_rate", "seed")} | {"steps": steps}
    how |= {"warmup": steps // 20, "evaluate_every": max(10, steps // 30)}
    torch.manual_seed(LIVE["seed"])
    model = GPT(GPTConfig(tokenizer.vocab_size, **sizes))
    ids = torch.tensor(tokenizer.encode(load_corpus("sonnets")))
    trainer = Trainer(model, *split(ids), TrainingConfig(**how), "cpu")
    start, rows = torch.tensor([tokenizer.encode("\n")]), []

    def watch(trainer):
        draw = torch.Generator().manual_seed(1)
        more = generate(trainer.gpt.eval(), start, 120, 0.8, draw, cached=False)
        loss, text = trainer.history[-1]["val_loss"], tokenizer.decode(more[0].tolist())
        rows.append({"step": trainer.progress.step, "loss": round(loss, 4), "sample": text})

    trainer.run(on_estimate=watch, quiet=True)
    return rows


def summary(results):
    """Compare what counting and the course's gain with what two GPTs gain, by sonnet."""
    of = {tuple(row["models"]): row["sonnets"] for row in results["averaged"]}
    two = [of[pair] for pair in of if len(pair) == 2 and all(map(str.isdigit, pair))]
    more = np.subtract(of["counting", "the course's"], np.mean(two, axis=0))
    drawn = np.random.default_rng(0).integers(len(more), size=(2000, len(more)))
    ends = np.quantile(more[drawn].mean(1), [0.025, 0.975]).round(4).tolist()
    return count(results["runs"]) | {"interval": ends, "verdict": verdict(ends[0] > 0)}
