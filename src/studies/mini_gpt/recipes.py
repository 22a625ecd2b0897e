"""What is each idea of the fast recipe worth?

Varied: the recipe (classic, fast, fast without each of its ideas), three seeds each, until
the validation loss reaches a target. Rival: that one idea does it all. Null: recipes take
the same time. Statistic: seconds in which the processor worked for this process, estimates
not counted, so that what else the machine does counts little; the interval is that of
classic's power of ten less fast's, by seed.
"""

import math
import time

from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.train import IDEAS, new_run
from studies.harness import alike, count, grid, paired

CHAPTER = "mini-gpt"
CLAIM = "On each of three seeds the fast recipe needs a tenth of classic's seconds at most"
RIVAL = "classic, with the same target, corpus and machine"
NULL = "both take the same time, up to what differs from seed to seed"
SETTINGS = {"corpus": "sonnets", "target": 1.85, "most": 2000, "threads": 1}
WAYS = {"classic": ("classic", ()), "fast": ("fast", ())}
WAYS |= {f"without {idea}": ("fast", (idea,)) for idea in IDEAS}
EVERY = 10
FIXED = {"device": "cpu", "validation_windows": 100}


def plan(small):
    """All ways from three seeds; or each for one step."""
    target, most = (9.0, 1) if small else (SETTINGS["target"], SETTINGS["most"])
    seeds = range(1 if small else 3)
    return grid(group="ways", seed=seeds, way=[*WAYS], target=target, most=most)


def run(folder, group, way, seed, target, most):
    """Train in a way until a validation loss is reached, or for so many steps."""
    corpus = SETTINGS["corpus"]
    text, parts = load_corpus(corpus), train_val_test_split(load_texts(corpus))
    preset, without = WAYS[way]
    _, trainer = new_run(text, preset, without, parts=parts, seed=seed, **FIXED)
    seconds, loss, most = 0.0, float("inf"), min(most, trainer.config.steps)
    while loss > target and trainer.progress.step < most:
        start = time.process_time()
        for _ in range(min(EVERY, most - trainer.progress.step)):
            trainer.step()
        seconds += time.process_time() - start
        loss = trainer.estimate()
    found = {"parameters": trainer.gpt.parameters_count, "steps": trainer.progress.step}
    found |= {"seconds": round(seconds, 2), "loss": round(loss, 4)}
    return {"way": way, "seed": seed} | found | {"reached": loss <= target}


def summary(results):
    """Compare the two recipes' seconds."""
    powers, reached = [], True
    for way in ("classic", "fast"):
        rows = alike(results["ways"], way=way)
        powers.append([math.log10(each["seconds"]) for each in rows])
        reached = reached and all(each["reached"] for each in rows)
    told = paired(*powers, reached and min(map(float.__sub__, *powers)) > 1)
    return count(results["ways"]) | told
