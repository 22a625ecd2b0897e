"""What else is a sequence: patches of digits, nodes of graphs, letters under a rule?

Varied: who reads the digits, on five stretches of the file, each with its own seed; how a
graph's edges come to the blocks; whether sequences keep a rule. Rivals: for digits the
nearest neighbours, logistic regression and a small convolution, all tuned alike, by
another stretch than the one that judges; for graphs a table of counts of neighbours, the
same blocks with these counts in the tokens, and with rows of the adjacency matrix there;
for sequences counts of three letters in a row, and of pairs at every distance. Null: the
most frequent distance; a model of letters without a rule. Statistic: the share of digits
and nodes told right, and nats per letter with a head away; the interval is that of how much
more the vision Transformer tells right than the nearest neighbours, by stretch.
"""

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

from lmcourse import graphs, rules
from lmcourse.vision import FOLDS, VisionTransformer, digits, fit, read, stretches
from lmcourse.weights import save_model
from studies.harness import count, paired

CHAPTER = "beyond-text"
CHECKPOINTS = ("digits", "graphs", "rules")
CLAIM = (
    "On each stretch of scikit-learn's digits the nearest neighbours tell more right than "
    "a small vision Transformer, also after ten times the steps"
)
RIVAL = "the nearest neighbours"
NULL = "one reader is as good as the other"
SETTINGS = {
    "digits": {"steps": 300, "rates": [2e-3, 5e-3], "longer": 3000},
    "tuned": {"neighbours": [1, 3, 5], "logistic": [0.1, 1, 10]},
    "graphs": {"steps": 300, "rate": 5e-3, "batch": 64, "judged": 500, "longer": 1500},
    "rules": {"steps": 400, "rate": 5e-3, "batch": 64, "judged": 500},
    "graph seeds": [0, 1, 2],
    "rule seeds": [0, 1, 2, 3, 4],
}
NETWORKS = ("Transformer", "no places", "convolution", "convolution, dealt")


class Convolution(nn.Module):
    """Two layers of 3 × 3 convolutions, the largest of each 2 × 2, and a linear layer."""

    def __init__(self, channels=16):
        super().__init__()
        wide = 2 * channels
        self.layers = nn.Sequential(
            *(nn.Conv2d(1, channels, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(channels, wide, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(16 * wide, 10)),
        )

    def forward(self, images):
        """Return logits (batch, 10), alone in a tuple."""
        return (self.layers(images[:, None]),)


def plan(small):
    """Every reader on every stretch, every way to tell edges, every seed; or a few."""
    rates, steps = SETTINGS["digits"]["rates"], SETTINGS["digits"]["steps"]
    rows = [{"group": "simple", "fold": fold} for fold in range(FOLDS)]
    rows += [
        {"group": "digits", "reader": reader, "fold": fold, "rate": rate, "steps": steps}
        for reader in NETWORKS
        for fold in range(FOLDS)
        for rate in rates
    ]
    seeds, told = SETTINGS["graph seeds"], ("bias", "degree", "rows", "nothing")
    ways = [{"told": t, "seed": s} for t in told for s in seeds]
    rows += [{"group": "graphs", **w, "steps": SETTINGS["graphs"]["steps"]} for w in ways]
    kinds = [{"kept": rules.KEPT, "seed": s} for s in SETTINGS["rule seeds"]]
    kinds += [{"kept": 0.0, "seed": s} for s in SETTINGS["rule seeds"][:3]]
    rows += [{"group": "rules", **k, "steps": SETTINGS["rules"]["steps"]} for k in kinds]
    if small:
        return [each | {"steps": 2} if "steps" in each else each for each in rows[::9]]
    longer = {"reader": "Transformer", "steps": SETTINGS["digits"]["longer"]}
    steps = SETTINGS["graphs"]["longer"]  # with a bias: does every seed begin?
    rows += [{"group": "graphs longer", **w, "steps": steps} for w in ways[:3]]
    return rows + [
        {"group": "longer", **longer, "fold": fold, "rate": rates[0]} for fold in range(3)
    ]


def run(folder, group, **setting):
    """Do one of these, and return what was found."""
    ways = {"simple": simple, "graphs": graph, "graphs longer": graph, "rules": rule}
    return ways.get(group, network)(folder, **setting)


# --- digits ---------------------------------------------------------------------------


def simple(folder, fold):
    """Return what neighbours and logistic regression tell right, tuned on validation."""
    images, labels = (x.numpy() for x in digits())
    parts = [(images[s].reshape(len(s), -1), labels[s]) for s in stretches(fold)]
    tuned = SETTINGS["tuned"]
    tried = {
        "neighbours": [KNeighborsClassifier(k) for k in tuned["neighbours"]],
        "logistic": [LogisticRegression(C=c, max_iter=300) for c in tuned["logistic"]],
    }
    found = {"fold": fold, "seed": fold}
    for name, models in tried.items():
        scores = [m.fit(*parts[0]).score(*parts[1]) for m in models]
        best = int(np.argmax(scores))
        found[name] = round(models[best].score(*parts[2]), 4)
        found[f"{name} at"] = tuned[name][best]
    return found


def network(folder, reader, fold, rate, steps):
    """Train one network; return what it tells right of validation and test."""
    images, labels = digits()
    if reader == "convolution, dealt":  # patches change places, alike in all images
        order = torch.randperm(16, generator=torch.Generator().manual_seed(fold))
        images = nn.functional.unfold(images[:, None], 2, stride=2)[:, :, order]
        images = nn.functional.fold(images, (8, 8), 2, stride=2)[:, 0]
    torch.manual_seed(fold)
    if reader.startswith("convolution"):
        model = Convolution()
    else:
        model = VisionTransformer(placed=reader == "Transformer")
    kept, chosen, judged = stretches(fold)
    read(model, images[kept], labels[kept], steps, rate, seed=fold)
    with torch.no_grad():
        hits = [model(images[s])[0].argmax(-1) == labels[s] for s in (chosen, judged)]
    found = {"reader": reader, "fold": fold, "seed": fold, "rate": rate, "steps": steps}
    if (fold, steps) == (0, SETTINGS["digits"]["longer"]):
        save_model(folder / "digits.safetensors", model, found)
    validation, test = (round(h.float().mean().item(), 4) for h in hits)
    return found | {"validation": validation, "test": test}


# --- graphs ---------------------------------------------------------------------------


def graph(folder, told, seed, steps):
    """Train one reader of graphs; return what it tells right, its edges taken away."""
    torch.manual_seed(seed)
    sizes, dice = SETTINGS["graphs"], torch.Generator().manual_seed(seed)
    model = graphs.GraphTransformer(told)
    fit(
        model,
        lambda step: graphs.loss_on(model, *graphs.draw(sizes["batch"], dice)),
        steps,
        sizes["rate"],
    )
    held = graphs.draw(sizes["judged"], torch.Generator().manual_seed(99))
    found = {"told": told, "seed": seed, "right": graphs.right(model, *held)}
    if told == "bias":
        found |= without_edges(model, *held)
        if (seed, steps) == (0, sizes["longer"]):
            save_model(folder / "graphs.safetensors", model, found)
    return found | neighbours_counted(*held) if told == "degree" else found


def without_edges(model, joined, marked):
    """Return what is told right with the bias away, of another graph, and back."""
    found, prices = {}, model.prices.data.clone()
    model.prices.data.zero_()
    found["away"] = graphs.right(model, joined, marked)
    model.prices.data.copy_(prices)
    found["other graph"] = graphs.right(model, joined, marked, joined.roll(1, 0))
    return found | {"back": graphs.right(model, joined, marked)}


def neighbours_counted(joined, marked, learned=10_000):
    """Return what counts of neighbours tell right: a node's and the marked one's.

    ``constant`` is the most frequent distance alone; ``table`` looks both counts up, and
    ``shared`` how many neighbours both have in common, too.
    """
    texts = graphs.draw(learned, torch.Generator().manual_seed(7))

    def keys(joined, marked):
        other = nn.functional.one_hot(marked, joined.shape[-1]) == 0
        own = joined.sum(-1)  # (count, nodes)
        theirs = own.gather(1, marked[:, None]).expand_as(own)
        row = joined[torch.arange(len(marked)), marked]  # (count, nodes)
        both = (joined & row[:, None]).sum(-1).clamp(max=graphs.NODES - 1)
        ways = {"constant": 0 * own, "table": graphs.NODES * own + theirs}
        ways["shared"] = graphs.NODES * ways["table"] + both
        return {name: way[other] for name, way in ways.items()}, graphs.answers(
            joined, marked
        )[other]

    (seen, wanted), (asked, truth) = keys(*texts), keys(joined, marked)
    found = {}
    for name, way in seen.items():
        table = torch.bincount(
            (graphs.FAR + 1) * way + wanted, None, (graphs.FAR + 1) * graphs.NODES**3
        )
        guess = table.view(-1, graphs.FAR + 1).argmax(-1)[asked[name]]
        found[name] = round((guess == truth).float().mean().item(), 4)
    return found


# --- rules ----------------------------------------------------------------------------


def rule(folder, kept, seed, steps):
    """Train one sequence model; return its heads, and the costs without each."""
    torch.manual_seed(seed)
    sizes, dice = SETTINGS["rules"], torch.Generator().manual_seed(seed)
    model = rules.SequenceModel()
    fit(
        model,
        lambda step: rules.costs(model, rules.grow(sizes["batch"], dice, kept)[0]).mean(),
        steps,
        sizes["rate"],
    )
    found = {"kept": kept, "seed": seed} | rules.dissected(model, sizes["judged"])
    if not kept or seed:
        return found
    save_model(folder / "rules.safetensors", model, {"steps": steps})
    return found | {"counted": letters_counted(sizes["judged"])}


def letters_counted(count=500, seed=99, learned=20_000):
    """Return what counting costs, in nats per letter, on the same sequences.

    Of pairs at each distance to `rules.REACH`; of pairs at all of them, each weighed by how
    well it did in the sequence so far, counted ``once``, or ``again`` where each distance
    reads the sequences alone that it told best; and of three letters in a row.
    """
    texts, _ = rules.grow(learned, torch.Generator().manual_seed(seed + 1))
    ids, _ = rules.grow(count, torch.Generator().manual_seed(seed))
    reach, late = rules.REACH, slice(12 - rules.REACH, None)

    def logs(counted):
        tables = (pairs_counted(*each) for each in zip(counted, range(1, 9), strict=True))
        return lambda x: torch.stack(
            [t[x[:, reach - b : -b], x[:, reach:]] for b, t in enumerate(tables, 1)]
        )

    def mixed(each):
        past = each.cumsum(-1) - each  # of what stands before
        return -(past.log_softmax(0) + each).logsumexp(0)[:, late].mean().item()

    once = [texts] * reach
    told = logs(once)(texts).sum(-1).argmax(0)  # by which distance each is told best
    each = logs(once)(ids)
    again = logs([texts[told == b] for b in range(reach)])(ids)
    found = {"pairs": [round(-x[:, late].mean().item(), 4) for x in each]}
    found |= {"once": round(mixed(each), 4), "again": round(mixed(again), 4)}
    keys = 20 * texts[:, :-2] + texts[:, 1:-1]
    threes = torch.bincount((20 * keys + texts[:, 2:]).flatten(), None, 8000) + 0.1
    threes = (threes.view(400, 20) / threes.view(400, 20).sum(1, keepdim=True)).log()
    row = threes[20 * ids[:, 10:-2] + ids[:, 11:-1], ids[:, 12:]]
    return found | {"three in a row": round(-row.mean().item(), 4)}


def pairs_counted(texts, back):
    """Return logarithms of shares: of a letter, given the one so far before, (20, 20)."""
    pairs = (20 * texts[:, :-back] + texts[:, back:]).flatten()
    shares = (torch.bincount(pairs, None, 400).view(20, 20) + 1).double()
    return (shares / shares.sum(1, keepdim=True)).log()


# --- the whole ------------------------------------------------------------------------


def best(results, reader):
    """Return, by stretch, the test share of the rate that was best on validation."""
    found = {}
    for each in results.get("digits", []):
        if each["reader"] == reader:
            found.setdefault(each["fold"], []).append(each)
    return {
        fold: max(runs, key=lambda r: r["validation"])["test"]
        for fold, runs in found.items()
    }


def summary(results):
    """Compare the Transformer with the nearest neighbours, stretch by stretch."""
    ours = best(results, "Transformer")
    near = {each["fold"]: each["neighbours"] for each in results.get("simple", [])}
    both = [fold for fold in ours if fold in near]
    ones = [ours[fold] for fold in both] or [0.0]
    others = [near[fold] for fold in both] or [0.0]
    longer = [(r["test"], near[r["fold"]]) for r in results.get("longer", [])]
    holds = all(a < b for a, b in [*zip(ones, others, strict=True), *longer])
    rows = [each for group in results.values() for each in group]
    return count(rows) | paired(ones, others, holds)
