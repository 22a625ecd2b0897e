"""Schemes of positions, trained short and tested long, with several seeds.

Trains the small models of the chapter *positional-encoding* with the code of that page
(its cells tagged ``trial``). ``--write`` trains all of `GRID` with five seeds, about half
an hour on one core, and writes ``data/sweeps/positional-encoding.json``, which the page
draws. Without it, one seed of the short trainings is compared with what is stored.
"""

import argparse
import json
from pathlib import Path

import jupytext
import torch
from torch.nn import functional as F

from lmbook.bench import report
from lmcourse import positions
from lmcourse.data import corpora_folder
from lmcourse.models import one_thread

__all__ = ["GRID", "SEEDS", "main", "page", "run"]

PAGE = Path(__file__).parents[3] / "chapters" / "positional-encoding.md"
SCHEMES = ("none", "sinusoidal", "learned", "rotary", "ALiBi", "relative")
GRID = [(scheme, 1, steps) for steps in (300, 1000) for scheme in SCHEMES]
GRID += [(scheme, 2, 1000) for scheme in ("none", "ALiBi", "rotary")]
GRID += [("none", 1, 3000), ("none", 2, 3000), ("ALiBi", 1, 3000)]
SEEDS = range(5)


def stored_at() -> Path:
    """Return where the record is kept."""
    return corpora_folder() / "sweeps" / "positional-encoding.json"


def page() -> dict:
    """Return the names that the page's imports and its cells tagged ``trial`` define."""
    cells = [c for c in jupytext.read(PAGE, fmt="md:myst").cells if c.cell_type == "code"]
    imports = next(c.source for c in cells if c.source.lstrip().startswith("import "))
    trial = [c.source for c in cells if "trial" in c.metadata.get("tags", ())]
    names = dict(vars(positions))
    exec("\n\n".join([imports, *trial]), names)
    return names


def run(names: dict, scheme: str, layers: int, steps: int, seed: int) -> dict:
    """Train one model; return its losses by groups of eight positions, per question."""
    model = names["train"](scheme, steps, layers, seed)
    groups = names["by_position"](model).view(2, -1, 8).nanmean(-1)
    found = {"scheme": scheme, "layers": layers, "steps": steps, "seed": seed}
    found["loss"] = [[round(loss, 3) for loss in row] for row in groups.tolist()]
    if scheme == "learned":
        table = model.learned.table.detach()
        unit = F.normalize(table[: names["SHORT"]], dim=-1)
        cosines = [(unit @ unit.T).diagonal(d).mean().item() for d in range(len(unit))]
        found["cosine"] = [round(cosine, 3) for cosine in cosines]
        found["lengths"] = [round(size, 3) for size in table.norm(dim=-1).tolist()]
    return found


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="positions", description=__doc__)
    parser.add_argument("--write", action="store_true", help="train all, write the record")
    parser.add_argument("--steps", type=int, default=300, help="of what is compared")
    asked = parser.parse_args(argv)
    one_thread()
    names = page()
    if asked.write:
        runs = [run(names, *kind, seed) for kind in GRID for seed in SEEDS]
        record = {"grid": GRID, "seeds": [*SEEDS], "torch": torch.__version__}
        text = json.dumps({"record": record, "runs": runs})
        text = text.replace('{"scheme"', '\n{"scheme"') + "\n"  # a run a line
        stored_at().write_text(text, encoding="utf-8")
        return 0
    stored = json.loads(stored_at().read_text(encoding="utf-8"))["runs"]
    first = {r["scheme"]: r["loss"] for r in stored if (r["steps"], r["seed"]) == (300, 0)}
    rows = []
    for scheme in SCHEMES:
        here = run(names, scheme, 1, asked.steps, 0)["loss"]
        rows.append(
            {"scheme": scheme}
            | {"three back, 8 to 15": here[1][1], "stored": first[scheme][1][1]}
            | {"three back, last 8": here[1][-1], "as stored": first[scheme][1][-1]}
        )
    report(rows, {"steps": asked.steps})
    return 0
