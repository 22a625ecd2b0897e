"""Which positions still work on a text longer than any in training?

Varied: the scheme of positions, of six; blocks and steps; five seeds. Rivals: that a scheme
with a value at every position, or with nothing but angles between two, goes on by itself.
Null: beyond the trained length a model loses what it lost within it. Statistic: the loss of
saying which character stood three back (and of the next), by groups of eight positions,
trained on 32 characters and read on 128; the interval is that of rotary's loss less that of
relative positions, over the last 32, by seed. Of learned tables also how alike and how long
their rows are. Task, model and training are the chapter's.
"""

import numpy as np
from torch.nn import functional as F

from studies.chapter import page as read_page
from studies.harness import count, paired

CHAPTER = "positional-encoding"
CLAIM = (
    "Beyond the trained length sinusoidal, learned and rotary positions fail at counting "
    "back; ALiBi and relative positions hold on"
)
RIVAL = "positions that a formula gives go on beyond the trained length"
NULL = "at unseen positions a model loses what it lost at seen ones"
SCHEMES = ("none", "sinusoidal", "learned", "rotary", "ALiBi", "relative")
GRID = [(scheme, 1, steps) for steps in (300, 1000) for scheme in SCHEMES]
GRID += [(scheme, 2, 1000) for scheme in ("none", "ALiBi", "rotary")]
GRID += [("none", 1, 3000), ("none", 2, 3000), ("ALiBi", 1, 3000)]
SETTINGS = {"grid": [[*kind] for kind in GRID], "seeds": [0, 1, 2, 3, 4]}


def plan(small):
    """All kinds from every seed; or each scheme once, for two steps."""
    kinds = [(scheme, 1, 2) for scheme in SCHEMES] if small else GRID
    names = ("scheme", "layers", "steps", "seed")
    return [
        {"group": "runs"} | dict(zip(names, (*kind, seed), strict=True))
        for kind in kinds
        for seed in SETTINGS["seeds"][: 1 if small else None]
    ]


def run(folder, group, scheme, layers, steps, seed):
    """Train one model; return its losses by groups of eight positions, per question."""
    page = read_page(CHAPTER)
    model = page.train(scheme, steps, layers, seed)
    groups = page.by_position(model).view(2, -1, 8).nanmean(-1)
    found = {"scheme": scheme, "layers": layers, "steps": steps, "seed": seed}
    found["loss"] = [[round(loss, 3) for loss in row] for row in groups.tolist()]
    if scheme == "learned":
        table = model.learned.table.detach()
        unit = F.normalize(table[: page.SHORT], dim=-1)
        cosines = [(unit @ unit.T).diagonal(d).mean().item() for d in range(len(unit))]
        found["cosine"] = [round(cosine, 3) for cosine in cosines]
        found["lengths"] = [round(size, 3) for size in table.norm(dim=-1).tolist()]
    return found


def summary(results):
    """Compare schemes where no training was, on what stood three back."""
    runs = results["runs"]
    steps = 1000 if any(each["steps"] == 1000 for each in runs) else runs[0]["steps"]
    far = {
        scheme: [
            np.mean(each["loss"][1][-4:])
            for each in runs
            if (each["scheme"], each["layers"], each["steps"]) == (scheme, 1, steps)
        ]
        for scheme in SCHEMES
    }
    failing = min(min(far[scheme]) for scheme in ("sinusoidal", "learned", "rotary"))
    holds = failing > 3 and max(*far["ALiBi"], *far["relative"]) < 1
    return count(runs) | paired(far["rotary"], far["relative"], holds)
