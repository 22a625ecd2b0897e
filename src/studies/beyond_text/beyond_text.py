"""What else is a sequence: patches of digits, nodes of graphs, letters under a rule?

Varied: who reads the digits, on five stretches of the file, with three seeds; how a graph's
edges come to the blocks, and how many blocks there are; whether sequences keep a rule.
Rivals: for digits the nearest neighbours, logistic regression and a small convolution, all
tuned alike, by another stretch than the one that judges; for graphs tables of what counts
of neighbours, one step and two steps tell, and the same blocks with the count of its
neighbours in each token; for sequences counts of three letters in a row, of letters at two
places, and of pairs at every distance. Null: images whose patches change places; the most
frequent distance; a model of letters without a rule. Statistic: the share of digits and
nodes told right, and nats per letter with a head away; the interval is that of how much
more the vision Transformer tells right than the nearest neighbours, by training.
"""

from itertools import combinations

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

from lmcourse import graphs, rules
from lmcourse.training_loop import train_one_cycle
from lmcourse.vision import (
    STARTS,
    VisionTransformer,
    digits,
    split_digits,
    train_classifier,
)
from lmcourse.weights import save_model
from studies.harness import count, grid, paired

CHAPTER = "beyond-text"
CHECKPOINTS = ("digits", "graphs", "rules")
CLAIM = (
    "On each stretch of scikit-learn's digits the nearest neighbours tell more right than "
    "a small vision Transformer, also after ten times the steps"
)
RIVAL = "the nearest neighbours"
NULL = "one reader is as good as the other"
SETTINGS = {
    "digits": {"steps": 200, "rates": [2e-3, 5e-3, 1e-2], "longer": 2000},
    "tuned": {"neighbours": [1, 3, 5, 9], "logistic": [0.01, 0.1, 1, 10, 100]},
    "graphs": {"steps": 400, "rate": 5e-3, "batch": 64, "judged": 500},
    "rules": {"steps": 400, "rate": 5e-3, "batch": 64, "judged": 500, "longer": 4000},
    "seeds": [0, 1, 2, 3, 4],
}
NETWORKS = ("Transformer", "convolution", "convolution, dealt")


class Convolution(nn.Module):
    """Two layers of 3 × 3 convolutions, the largest of each 2 × 2, and a linear layer."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(512, 10)),
        )

    def forward(self, images):
        """Return logits (batch, 10), alone in a tuple."""
        return (self.layers(images[:, None]),)


def plan(small):
    """Every way to tell edges, every kind of letters, every reader on every stretch."""
    seeds, sizes = SETTINGS["seeds"], SETTINGS["rules"]
    rows, graph_steps = [], SETTINGS["graphs"]["steps"]
    for counted, layers in ((False, (3, 2, 1)), (True, 3)):
        kind = {"group": "graphs", "counted": counted, "layers": layers}
        rows += grid(**kind, seed=seeds[:3], steps=graph_steps)
    for kept, some, steps in (
        (rules.RULED, range(12), sizes["steps"]),
        (0.0, seeds[:3], sizes["steps"]),
        (rules.RULED, seeds[:1], sizes["longer"]),
    ):
        rows += grid(group="rules", kept=kept, seed=some, steps=steps)
    rows += grid(group="counted", kind=("edges", "letters")) + readings()
    first = {"seed": 0, "fold": 0, "rate": SETTINGS["digits"]["rates"][0]}
    few = [row for row in rows if all(row.get(k, v) == v for k, v in first.items())]
    return [row | {"steps": 2} if "steps" in row else row for row in few] if small else rows


def readings():
    """Return every reader on every stretch at each rate, and some that learn longer."""
    folds, sizes = range(len(STARTS)), SETTINGS["digits"]
    rates, seeds = sizes["rates"], SETTINGS["seeds"]
    ways = [(name, rates, sizes["steps"], seeds[:3]) for name in NETWORKS]
    ways += [("no places", rates, sizes["steps"], seeds[:1])]
    ways += [("Transformer", rates[:2], sizes["longer"], seeds[:1])]
    rows = grid(group="simple", fold=folds)
    for reader, some, steps, those in ways:
        kind = {"group": "digits", "reader": reader, "fold": folds}
        rows += grid(**kind, seed=those, rate=some, steps=steps)
    return rows


def run(folder, group, **setting):
    """Do one of these, and return what was found."""
    ways = {"simple": simple, "digits": network, "graphs": graph, "rules": rule}
    return ways.get(group, told)(folder, **setting)


# --- digits ---------------------------------------------------------------------------


def simple(folder, fold):
    """Return what neighbours and logistic regression tell right, tuned on validation."""
    images, labels = (x.numpy() for x in digits())
    parts = [(images[s].reshape(len(s), -1), labels[s]) for s in split_digits(fold)]
    tuned = SETTINGS["tuned"]
    tried = {
        "neighbours": [KNeighborsClassifier(k) for k in tuned["neighbours"]],
        "logistic": [LogisticRegression(C=c, max_iter=1000) for c in tuned["logistic"]],
    }
    found = {"fold": fold, "seed": fold}
    for name, models in tried.items():
        scores = [m.fit(*parts[0]).score(*parts[1]) for m in models]
        best = int(np.argmax(scores))
        found[name] = round(models[best].score(*parts[2]), 4)
        found[f"{name} at"] = tuned[name][best]
    return found


def network(folder, reader, fold, seed, rate, steps):
    """Train one network; return what it tells right of validation and test."""
    images, labels = digits()
    if reader == "convolution, dealt":  # patches change places, alike in all images
        order = torch.randperm(16, generator=torch.Generator().manual_seed(seed))
        images = nn.functional.unfold(images[:, None], 2, stride=2)[:, :, order]
        images = nn.functional.fold(images, (8, 8), 2, stride=2)[:, 0]
    torch.manual_seed(seed)
    if reader.startswith("convolution"):
        model = Convolution()
    else:
        model = VisionTransformer(positions=reader == "Transformer")
    kept, *asked = split_digits(fold)
    train_classifier(model, images[kept], labels[kept], steps, rate, seed)
    with torch.no_grad():
        hits = [model(images[s])[0].argmax(-1) == labels[s] for s in asked]
    found = {"reader": reader, "fold": fold, "seed": seed, "rate": rate, "steps": steps}
    shown = reader, fold, rate, steps != SETTINGS["digits"]["steps"]
    if shown == ("Transformer", 0, SETTINGS["digits"]["rates"][0], True):
        save_model(folder / "digits.safetensors", model, found)
    validation, test = (round(h.float().mean().item(), 4) for h in hits)
    return found | {"validation": validation, "test": test}


# --- graphs ---------------------------------------------------------------------------


def graph_loss(model, joined, marked):
    """Return the mean cross-entropy of all nodes but the marked one, in nats.

    Parameters
    ----------
    model : lmcourse.graphs.GraphTransformer
    joined, marked
        As of `lmcourse.graphs.sample_graphs`.

    Returns
    -------
    Tensor of shape ()
    """
    logits, _ = model(joined, marked)
    judged = graphs.unmarked_nodes(joined, marked)
    return nn.functional.cross_entropy(
        logits[judged], graphs.distance_classes(joined, marked)[judged]
    )


def graph(folder, counted, layers, seed, steps):
    """Train one reader of graphs; return what it tells right, its edges taken away."""
    torch.manual_seed(seed)
    sizes, generator = SETTINGS["graphs"], torch.Generator().manual_seed(seed)
    model = graphs.GraphTransformer(counted, layers)

    def loss_at(step):
        return graph_loss(model, *graphs.sample_graphs(sizes["batch"], generator))

    train_one_cycle(model, loss_at, steps, sizes["rate"])
    held = held_graphs()
    found = {"counted": counted, "layers": layers, "seed": seed}
    found |= {"right": graphs.accuracy(model, *held)}
    if (counted, layers, seed) == (False, 3, 0):
        save_model(folder / "graphs.safetensors", model, found)
    return found if counted else found | without_edges(model, *held)


def held_graphs():
    """Return the graphs that judge."""
    return graphs.sample_graphs(
        SETTINGS["graphs"]["judged"], torch.Generator().manual_seed(99)
    )


def without_edges(model, joined, marked):
    """Return what is told right with the bias away, of another graph, and back."""
    found, bonus = {}, model.bonus.data.clone()
    model.bonus.data.zero_()
    found["away"] = graphs.accuracy(model, joined, marked)
    model.bonus.data.copy_(bonus)
    found["other graph"] = graphs.accuracy(model, joined, marked, joined.roll(1, 0))
    return found | {"back": graphs.accuracy(model, joined, marked)}


# --- rules ----------------------------------------------------------------------------


def rule(folder, kept, seed, steps):
    """Train one sequence model; return its heads, and the costs without each."""
    torch.manual_seed(seed)
    sizes, generator = SETTINGS["rules"], torch.Generator().manual_seed(seed)
    model = rules.SequenceModel()

    def loss_at(step):
        return rules.letter_losses(
            model, rules.sample_sequences(sizes["batch"], generator, kept)[0]
        ).mean()

    train_one_cycle(model, loss_at, steps, sizes["rate"])
    if (kept, seed) == (rules.RULED, 0) and steps != sizes["longer"]:
        save_model(folder / "rules.safetensors", model, {"steps": steps})
    found = {"kept": kept, "seed": seed, "steps": steps}
    heads = rules.ablate_heads(model, sizes["judged"])
    heads["looks"] = heads.pop("attention")  # so the stored runs have it
    return found | heads


def letters_counted(seed=99, learned=20_000):
    """Return what counting costs, in nats per letter, on the same sequences.

    Of pairs at every distance to `rules.REACH`, each counted in the sequences alone that it
    told best, and weighed by how well it did so far (``again``); of three letters in a row;
    and of letters at the ``two places`` that tell the texts best.
    """
    texts, _ = rules.sample_sequences(learned, torch.Generator().manual_seed(seed + 1))
    ids, _ = rules.sample_sequences(
        SETTINGS["rules"]["judged"], torch.Generator().manual_seed(seed)
    )
    reach, late = rules.REACH, slice(12 - rules.REACH, None)

    def logs(counted, x):
        tables = [pairs_counted(each, b) for b, each in enumerate(counted, 1)]
        at = enumerate(tables, 1)
        return torch.stack([t[x[:, reach - b : -b], x[:, reach:]] for b, t in at])

    told = logs([texts] * reach, texts).sum(-1).argmax(0)  # by which distance best
    each = logs([texts[told == b] for b in range(reach)], ids)
    past = each.cumsum(-1) - each  # of what stands before
    again = -(past.log_softmax(0) + each).logsumexp(0)[:, late].mean().item()
    pairs = combinations(range(1, reach + 1), 2)
    best = min(pairs, key=lambda two: threes(texts, texts, *two))
    found = {"again": round(again, 4), "best two": best}
    ways = {"three in a row": (1, 2), "two places": best}
    return found | {name: threes(texts, ids, *two) for name, two in ways.items()}


def threes(texts, ids, near, far):
    """Return what a letter costs by counts of those so far before it, from place 12 on."""
    seen = 20 * ids[:, 12 - far : -far] + ids[:, 12 - near : -near]
    return round(-pairs_counted(texts, near, far)[seen, ids[:, 12:]].mean().item(), 4)


def pairs_counted(texts, *back):
    """Return logarithms of shares of letters, given those so far before: (20 ** n, 20)."""
    start, key = max(back), 0
    for each in sorted(back, reverse=True):
        key = 20 * key + texts[:, start - each : texts.shape[1] - each]
    pairs = (20 * key + texts[:, start:]).flatten()
    counted = torch.bincount(pairs, None, 20 ** (1 + len(back))).view(-1, 20)
    shares = (counted + 0.5).double()
    return (shares / shares.sum(1, keepdim=True)).log()


# --- the whole ------------------------------------------------------------------------


def told(folder, kind):
    """Return what counting tells of edges, or of letters."""
    found = (
        graphs.table_accuracies(*held_graphs()) if kind == "edges" else letters_counted()
    )
    return {"seed": 0} | found


def best(results, steps):
    """Return, by stretch and seed, the Transformer's test share at the rate best chosen."""
    runs = [r for r in results.get("digits", [])[::-1] if r["reader"] == "Transformer"]
    runs = sorted(runs, key=lambda each: each["validation"])  # the best comes last
    return {(r["fold"], r["seed"]): r["test"] for r in runs if r["steps"] == steps}


def summary(results):
    """Compare the Transformer with the nearest neighbours, stretch by stretch."""
    near = {each["fold"]: each["neighbours"] for each in results.get("simple", [])}
    sizes, pairs = SETTINGS["digits"], []
    for steps in (sizes["steps"], sizes["longer"]):
        ours = best(results, steps)
        pairs.append([(ours[key], near[key[0]]) for key in ours if key[0] in near])
    holds = all(a < b for some in pairs for a, b in some) and bool(pairs[0])
    ones, others = zip(*(pairs[0] or [(0.0, 0.0)]), strict=True)
    rows = [each for group in results.values() for each in group]
    return count(rows) | paired(ones, others, holds)
