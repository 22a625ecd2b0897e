"""Why do word vectors lean the same way, and does subtracting the mean help?

Varied: the negatives drawn for each pair that is met (k, one to five); a constant added to
every score; the hundred commonest words left out. Rivals: that the company of the
commonest words pushes all vectors the same way; that k makes no difference. Null: with ln k
given or taken by the constant the lean stays as it was. Remedy: shared neighbours with
BERT's table, the sixty commonest words left out, before and after the mean is subtracted;
its null are words dealt at random. Statistic: the mean cosine of all words, at its greatest
in 3,300 steps; the interval is that of five negatives' less five with -ln 5 built in, by
seed. Model and training are the chapter's.
"""

import math
from collections import Counter
from functools import cache
from itertools import chain

import numpy as np

from lmcourse.data import load_poems, load_sonnets
from lmcourse.embeddings import neighbour_overlap, unit, words
from lmcourse.models import load_bert
from studies.embeddings import shown
from studies.harness import alike, count, grid, paired

CHAPTER = "embeddings"
CLAIM = (
    "At their most words lean with five negatives a pair almost wholly, with one half as "
    "much; with -ln 5 built into the score five are as one, with +ln 5 one is as five"
)
RIVAL = (
    "the commonest words push all vectors the same way; without a hundred they lean less"
)
NULL = "a constant added to every score changes no lean"
SETTINGS = {"seeds": [0, 1, 2], "steps": 3300, "drawn_at": 330, "remedy_at": [660, 3300]}
LN5 = round(math.log(5), 4)
KINDS = [{"k": k} for k in range(1, 6)]
KINDS += [{"k": 5, "shift": -LN5}, {"k": 1, "shift": LN5}, {"k": 5, "without": 100}]
EVERY, LOOKS = 20, 30  # every twentieth word is drawn; steps from look to look
WIDTH, LEAST, NEAR, LEFT_OUT = 50, 5, 10, 60


@cache
def split():
    """Return the words of each poem and sonnet."""
    return [words(text) for text in [*load_poems().text, *load_sonnets().text]]


def deal(seed):
    """Return the same words, dealt at random to poems of the same lengths."""
    ends = np.cumsum([len(text) for text in split()])[:-1]
    every = np.random.default_rng(seed).permutation(np.concatenate(split()))
    return [part.tolist() for part in np.split(every, ends)]


def material(texts, without=0):
    """Return the words to learn, the commonest first, what is met, and how often each."""
    counted = Counter(word for text in split() for word in text)
    often = sorted(counted, key=lambda word: (-counted[word], word))
    learned = [word for word in often[without:] if counted[word] >= LEAST]
    times = np.array([counted[word] for word in learned]) ** 0.75
    return learned, shown.company(texts, learned), times / times.sum()


def plan(small):
    """Every kind, short and long, and the remedy; or two short runs of ten steps."""
    seeds, steps = SETTINGS["seeds"], SETTINGS["steps"]
    if small:
        return [
            {"group": "lean", "seed": 0, "steps": 30, "k": 1},
            {"group": "remedy", "seed": 0, "steps": 10, "text": "poems"},
        ]
    how = {"steps": SETTINGS["remedy_at"], "text": ("poems", "dealt")}
    lean = [grid(group="lean", seed=seeds, steps=steps, **kind) for kind in KINDS]
    return [*chain(*lean), *grid(group="remedy", **how, seed=seeds)]


def run(folder, group, seed, steps, k=5, shift=0.0, without=0, text="poems"):
    """Train; return how much words lean, or what subtracting the mean gains."""
    learned, met, often = material(split() if text == "poems" else deal(seed), without)
    lean, drawn = [], {}
    for step, model in enumerate(shown.learn(met, often, k, shift, seed, steps), 1):
        if step % LOOKS == 0:
            lean.append(round(shown.lean_of(model)["words"], 4))
        if step == SETTINGS["drawn_at"] and seed == 0 and not without:
            drawn = {"rays": rays(model), "drawn": learned[::EVERY]}
            told = shown.lean_of(model)
            drawn |= {f"{name} then": round(float(x), 4) for name, x in told.items()}
    found = {"seed": seed, "steps": steps}
    if group == "remedy":
        return found | {"text": text} | remedy(learned, model)
    found |= {"k": k, "shift": shift, "without": without, "most": max(lean)}
    return found | {"last": lean[-1], "lean": lean[: SETTINGS["drawn_at"] // LOOKS]} | drawn


def remedy(learned, model):
    """Return the share of neighbours that BERT's table has, before and after."""
    tokenizer, bert = load_bert(device="cpu")
    table = bert.embeddings.word_embeddings.weight.detach().double().numpy()
    number, counted = tokenizer.get_vocab(), Counter(w for text in split() for w in text)
    kept = [i for i, w in enumerate(learned) if counted[w] >= 10 and w in number]
    vectors = model.word.weight.detach().double().numpy()
    theirs = table[[number[learned[i]] for i in kept[LEFT_OUT:]]]
    both = (vectors[kept[LEFT_OUT:]], (vectors - vectors.mean(0))[kept[LEFT_OUT:]])
    before, after = (round(neighbour_overlap(v, theirs, NEAR), 4) for v in both)
    return {"before": before, "after": after}


def rays(model):
    """Return the angle of words, and of company, to the axis between their means."""
    tables = [x.weight.detach().double().numpy() for x in (model.word, model.company)]
    axis = unit(unit(tables[1].mean(0)) - unit(tables[0].mean(0)))
    around = tables[0] - np.outer(tables[0] @ axis, axis)
    side = np.linalg.svd(around - around.mean(0), full_matrices=False)[2][0]
    return [
        [
            round(math.degrees(math.copysign(math.acos(v @ axis), v @ side)), 1)
            for v in unit(table[::EVERY])
        ]
        for table in tables
    ]


def summary(results):
    """Compare five negatives with five whose ln 5 is built in, and the other kinds."""

    def of(k, shift=0.0, without=0):
        rows = alike(results["lean"], k=k, shift=shift, without=without)
        return [each["most"] for each in rows] or [0.0]

    five, one, mended, put_back = of(5), of(1), of(5, -LN5), of(1, LN5)
    holds = min(five) > 0.95 > 0.7 > max(one) and max(mended) < 0.7
    holds = holds and min(put_back) > 0.95 and min(of(5, without=100)) > 0.95
    return count(results["lean"]) | paired(five, mended, holds)
