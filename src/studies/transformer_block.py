"""What does a small model miss that never had a part of its blocks?

Varied: the part that is lacking from the beginning (norms, attention, feed-forward
networks, residual paths; nothing), in few blocks and in many; dropout on little text; the
place of the norm, with a warm-up and without. Rivals: that the other parts make up for it;
that what breaks a trained model when it is taken away is what a model could not have
learned without. Null: models with the part and without it lose the same. Statistic: the
loss on held-out sonnets (of the last groups: on digits read backwards) by seed; the
interval is that of how much more a model without attention loses than one with all parts.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.attention import causal_mask
from lmcourse.data import load_texts, train_val_test_split
from lmcourse.tokenization import CharTokenizer
from lmcourse.transformer import Embed, Stack
from studies.harness import count, paired

CHAPTER = "transformer-block"
CLAIM = (
    "With four blocks, attention and the feed-forward networks are missed in every run, "
    "the norms in none, and without the residual paths only letter frequencies are learned"
)
RIVAL = "the other parts make up for the one that is lacking"
NULL = "models with the part and without it end at the same loss"
SETTINGS = {
    "seeds": [0, 1, 2],
    "base": {"layers": 4, "d_model": 48, "steps": 400, "learning_rate": 3e-3},
    "context": 32,
    "batch": 16,
    "heads": 4,
    "every": 25,
}
PARTS = ("nothing", "norms", "attention", "feed_forward", "residuals")
GROUPS = {
    "parts": [{"off": part} for part in PARTS],
    "deep": [
        {"off": part, "layers": 12, "steps": 150, "xavier": True}
        for part in ("nothing", "norms")
    ],
    "dropout": [{"dropout": p, "sonnets_read": 16, "steps": 1200} for p in (0.0, 0.2)],
    "warmup": [
        {"norm_first": first, "warmup": steps, "layers": 12, "d_model": 32, "steps": 200}
        for first in (True, False)
        for steps in (0, 50)
    ],
}
CONTEXT, EVERY = SETTINGS["context"], SETTINGS["every"]


class Nothing(nn.Module):
    """Takes the place of a step: its update is zero."""

    def forward(self, x, **looking):
        """Return zeros, and no weights where weights are expected."""
        return (0 * x, None) if looking else 0 * x


class Model(nn.Module):
    """Embedding, blocks that may lack the part ``off``, and an output layer."""

    def __init__(self, vocab_size, layers, d_model, off="nothing", xavier=False, **options):
        super().__init__()
        self.embed = Embed(vocab_size, d_model)
        self.stack = Stack(layers, d_model, SETTINGS["heads"], 2 * d_model, **options)
        self.output = nn.Linear(d_model, vocab_size)
        for block in self.stack.blocks:
            if off == "norms":
                block.norm_1 = block.norm_2 = nn.Identity()
            elif off == "residuals":
                block.after = lambda x, update, norm: update
            elif off != "nothing":
                setattr(block, off, Nothing())
        for matrix in self.stack.parameters():
            if matrix.dim() > 1 and xavier:
                nn.init.xavier_uniform_(matrix)

    def forward(self, ids, targets, mask=None):
        """Return the mean cross-entropy, in nats, of targets (batch, tokens)."""
        x, _ = self.stack(self.embed(ids), mask=mask)
        return F.cross_entropy(self.output(x).mT, targets)


def sonnets(number=None):
    """Return a function that draws inputs and targets, the held-out ones, and a mask."""
    parts = train_val_test_split(load_texts("sonnets"))
    tokenizer = CharTokenizer(parts.training + parts.validation)
    text = "\n\n".join(parts.training.split("\n\n")[:number])
    ids, held = (torch.tensor(tokenizer.encode(t)) for t in (text, parts.validation))
    held = held.unfold(0, CONTEXT + 1, 2 * CONTEXT)

    def draw():
        starts = torch.randint(len(ids) - CONTEXT, (SETTINGS["batch"], 1))
        windows = ids[starts + torch.arange(CONTEXT + 1)]
        return windows[:, :-1], windows[:, 1:]

    return tokenizer.vocab_size, draw, (held[:, :-1], held[:, 1:]), causal_mask(CONTEXT)


def mirror():
    """Return the same for a task that makes its own data: eight digits, read backwards."""

    def draw(batch=32):
        digits = torch.randint(10, (batch, 8))
        return digits, digits.flip(1)

    return 10, draw, draw(256), None


def plan(small):
    """All kinds from every seed; or four steps of each from one."""
    base, seeds = SETTINGS["base"], SETTINGS["seeds"][: 1 if small else None]
    few = {"steps": 4} if small else {}
    return [
        {"group": group, "seed": seed} | base | kind | few
        for group, kinds in GROUPS.items()
        for kind in kinds
        for seed in seeds
    ]


def run(folder, group, seed, layers, d_model, steps, learning_rate, **options):
    """Train one model; return its losses in training and on what is held out.

    ``warmup`` counts steps in which the learning rate rises from zero; then it stays. If it
    is given, the task is `mirror`, and first weights are Xavier's; else it is the sonnets.
    """
    torch.manual_seed(seed)
    warmup, read = options.pop("warmup", None), options.pop("sonnets_read", None)
    options |= {} if warmup is None else {"xavier": True}
    vocab_size, draw, held, mask = sonnets(read) if warmup is None else mirror()
    model = Model(vocab_size, layers, d_model, **options)
    optimizer = torch.optim.Adam(model.parameters(), learning_rate)
    rise = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / max(1, warmup or 0))
    )
    history = []
    for step in range(steps + 1):
        loss = model(*draw(), mask)
        if step % EVERY == 0:
            model.eval()
            with torch.no_grad():
                found = model(*held, mask).item()
            history.append([step, round(loss.item(), 4), round(found, 4)])
            model.train()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rise.step()
    return {"seed": seed, **options, "warmup": warmup, "history": history}


def summary(results):
    """Compare models that lack a part with those that lack nothing."""
    ends = {part: [] for part in PARTS}
    for each in results["parts"]:
        ends[each["off"]].append(np.mean([loss for *_, loss in each["history"][-3:]]))
    best, worst = ({k: pick(v) for k, v in ends.items()} for pick in (min, max))
    missed = worst["nothing"] < best["feed_forward"] < worst["feed_forward"]
    missed = missed and worst["feed_forward"] < best["attention"]
    holds = missed and worst["norms"] < best["nothing"] + 0.05
    holds = holds and best["residuals"] > worst["attention"] + 0.3
    told = paired(ends["attention"], ends["nothing"], holds)
    return count([each for rows in results.values() for each in rows]) | told
