"""Five encoder-decoders that learn to read dates, and what they make of other styles.

Writes ``data/sweeps/encoder-decoder.json``, which the chapter *encoder-decoder* shows: of
each seed the losses, the share of held-out days that it reads in every style, where it
looks and what goes wrong when a part is hidden, and what it writes for odd dates; of the
first, chances and cross-attention for some days in all styles. The task, the model and its
training are the chapter's own, read from it. On the CPU.
"""

import argparse
import ast
import datetime
import json
from functools import cache
from types import SimpleNamespace

import jupytext
import torch

from lmbook.bench import report
from lmbook.execute.keys import ROOT
from lmcourse.data import corpora_folder
from lmcourse.models import one_thread

__all__ = ["main", "run", "states", "stored_at"]

SEEDS = range(5)
DAYS = ["1886-05-15", "1830-12-10", "1861-03-01", "1899-09-09", "1912-11-30", "1984-06-21"]
PROBES = ["February 31, 1886", "15 May 1750", "15 May 2050", "15 Mai 1886", "1 Sept 1886"]


@cache
def chapter(name="encoder-decoder"):
    """Return a chapter's imports, constants (in capitals) and definitions."""
    cells = jupytext.read(ROOT / "chapters" / f"{name}.md", fmt="md:myst").cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    keep = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)

    def kept(node):
        if not isinstance(node, ast.Assign):
            return isinstance(node, keep)
        stored = [
            n.id for target in node.targets for n in ast.walk(target) if hasattr(n, "id")
        ]
        return all(name.isupper() and len(name) > 1 for name in stored)

    tree = ast.parse(code)
    tree.body = [node for node in tree.body if kept(node)]
    found: dict = {"__name__": name}
    exec(compile(tree, f"chapters/{name}.md", "exec"), found)
    return SimpleNamespace(**found)


@torch.no_grad()
def state(model, source, wanted):
    """Return what a model writes, its likeliest characters and where it looks, in per cent.

    Parameters
    ----------
    model : Transformer
    source, wanted : str

    Returns
    -------
    dict
        ``source``, ``wanted``, ``written`` and, for each character written and the end
        mark, ``chances``, three pairs, and ``looks``, (heads, sources).
    """
    page = chapter()
    written = page.write(model, [source])[0]
    memory, mask = model.encode(page.ids([source]))
    logits, weights = model.decode(page.ids(["<" + written]), memory, mask)
    top = logits[0].softmax(-1).topk(3)  # (targets, 3)
    chances = [
        [[page.CHARACTERS[i], round(100 * p)] for p, i in zip(*row, strict=True)]
        for row in zip(top.values.tolist(), top.indices.tolist(), strict=True)
    ]
    looks = (100 * weights[-1][0]).round().int()  # (heads, targets, sources)
    found = {"source": source, "wanted": wanted, "written": written, "chances": chances}
    return found | {"looks": looks.transpose(0, 1).tolist()}


def states(model):
    """Return the `state` of the shown days, (styles, days)."""
    days = [datetime.date.fromisoformat(day) for day in DAYS]
    every = zip(*map(chapter().styles, days), strict=True)  # (styles, days)
    return [
        [state(model, text, day) for text, day in zip(row, DAYS, strict=True)]
        for row in every
    ]


def run(seed, steps=400):
    """Train a model; return it, and what is kept of it."""
    page = chapter()
    held_out, known = page.split_days([datetime.date.fromisoformat(day) for day in DAYS])
    model = page.new_model(seed)
    losses = page.train(model, page.drawing(known, seed), steps)
    looks, hidden = page.tables(model.eval(), held_out[:100])
    kinds = range(len(page.styles(known[0])))
    return model, {
        "seed": seed,
        "losses": [round(loss, 4) for loss in losses[::10]],
        "right": [page.read_right(model, held_out[:500], kind) for kind in kinds],
        "looks": looks.round(3).to_numpy().tolist(),
        "hidden": hidden.round(3).to_numpy().tolist(),
        "probes": dict(zip(PROBES, page.write(model, PROBES), strict=True)),
    }


def stored_at():
    """Return where the runs are kept."""
    return corpora_folder() / "sweeps" / "encoder-decoder.json"


def main(arguments) -> int:
    """Train all, print the share that each reads right, by style, and keep it."""
    argparse.ArgumentParser(prog="lmbook.bench dates", description=__doc__).parse_args(
        arguments
    )
    one_thread()
    models, runs = zip(*map(run, SEEDS), strict=True)
    kept = {"runs": runs, "states": states(models[0])}
    stored_at().write_text(json.dumps(kept, ensure_ascii=False) + "\n", encoding="utf-8")
    names = chapter().styles(datetime.date.fromisoformat(DAYS[0]))
    rights = [[right[0] for right in run["right"]] for run in runs]
    report([dict(zip(names, row, strict=True)) for row in rights], runs[0]["probes"])
    return 0
