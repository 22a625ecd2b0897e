"""How far back do a decoder's heads look while it learns its text by heart?

Varied: the steps of training, up to 4,000, from three seeds; and, in short trainings, a
warm start or none, at two learning rates, five seeds each. Rivals: that attention learns to
look far; that what learns its text becomes a better model of others. Null: the heads look
three words back, as even shares do. Statistic: how many words back the last word looks,
over heads and blocks; losses on the text and on sonnets kept apart, and samples, none left
out. The interval is that of how much nearer the heads look in the end, by seed. The first
decoder is kept as ``decoder.safetensors``.
"""

import numpy as np

from lmcourse.data import load_texts, train_val_test_split
from lmcourse.numpy_nn.decoder import (
    END,
    START,
    Decoder,
    initial_vectors,
    mark_sentences,
    sample,
    save,
    train,
    verse,
    windows,
)
from studies.chapter import page
from studies.harness import count, paired

CHAPTER = "backpropagation"
CLAIM = (
    "The longer a decoder of words trains the nearer its heads look; in the end it knows "
    "its text, and unseen sonnets surprise it more than after a few hundred steps"
)
RIVAL = "what it learns by heart makes it a better model of other sonnets, too"
NULL = "heads look back as far as even shares do, three words"
CHECKPOINTS = ("decoder",)
SETTINGS = {"steps": 4000, "batch": 64, "marks": [0, 50, 100, 300, 600, 1000, 2000, 4000]}
SETTINGS |= {"seeds": [0, 1, 2], "samples": {"temperature": 0.8, "most": 60, "draws": 3}}
SETTINGS |= {
    "warm": {"steps": 150, "warm": 20, "rates": [0.004, 0.02], "seeds": [0, 1, 2, 3, 4]}
}


def material():
    """Return the vocabulary and its vectors, both texts as numbers, how many are known."""
    parts = train_val_test_split(load_texts("sonnets"))
    apart = parts.validation + "\n\n" + parts.test
    seen, unseen = mark_sentences(parts.training), mark_sentences(apart)
    vocabulary, vectors = initial_vectors(seen, unseen)
    number = {word: i for i, word in enumerate(vocabulary)}
    text, other = (np.array([number[word] for word in part]) for part in (seen, unseen))
    return vocabulary, vectors, text, other, len(set(seen))


def plan(small):
    """Three long trainings and twenty short ones; or one of each for two steps."""
    warm, marks = SETTINGS["warm"], [0, 2] if small else SETTINGS["marks"]
    runs = [{"group": "runs", "seed": seed, "marks": marks} for seed in SETTINGS["seeds"]]
    steps, warmed = (2, [0, 1]) if small else (warm["steps"], [0, warm["warm"]])
    return runs[: 1 if small else None] + [
        {"group": "warm", "rate": rate, "seed": seed, "steps": steps, "warm": warmed}
        for rate in warm["rates"][: 1 if small else None]
        for seed in warm["seeds"][: 1 if small else None]
    ]


def run(folder, group, seed, **setting):
    """Train one decoder for long, or two for a few steps."""
    if group == "warm":
        return short(seed, **setting)
    marks = setting["marks"]
    vocabulary, vectors, text, other, known = material()
    model, states = Decoder(vocabulary, vectors, seed=seed), []

    def watch(step, *_):
        if step in marks:
            states.append(state(model, text, other, known))

    train(model, text, marks[-1], batch=SETTINGS["batch"], seed=seed, watch=watch)
    watch(marks[-1])
    if seed == SETTINGS["seeds"][0]:
        save(model, folder / "decoder.safetensors", np.float16)
    return {"seed": seed, "states": states}


def short(seed, rate, steps, warm):
    """Return the floating losses after short trainings, by how many steps are warm."""
    vocabulary, vectors, text, *_ = material()
    found = {"rate": rate, "seed": seed}
    for first in warm:
        model = Decoder(vocabulary, vectors, seed=seed)
        losses = train(model, text, steps, learning_rate=rate, warm=first, seed=seed)
        found[str(first)] = round(losses[-1], 4)
    return found


def state(model, text, other, known):
    """Measure a decoder and let it write."""
    (start, end), how = model.dictionary.encode([START, END]), SETTINGS["samples"]
    loss_after, last_looks = page(CHAPTER).loss_after, page(CHAPTER).last_looks
    words = []
    for draw in range(how["draws"]):
        dice, heat = np.random.default_rng(draw), how["temperature"]
        drawn = sample(model, [start], how["most"], dice, end, temperature=heat)
        words.append(verse(model.dictionary.decode(drawn)))
    return {
        "trained": round(loss_after(model, text, known=known), 4),
        "unseen": round(loss_after(model, other, known=known), 4),
        "looks": last_looks(model, windows(text, 7)[::7, :-1]).round(4).tolist(),
        "samples": words,
    }


def summary(results):
    """Compare the first state with the last one."""
    before, after, learned = [], [], []
    for each in results["runs"]:
        states, words = each["states"], np.arange(7)[::-1]
        far = [float((np.array(one["looks"]) @ words).mean()) for one in states]
        before.append(far[0])
        after.append(far[-1])
        unseen = [one["unseen"] for one in states]
        learned.append(states[-1]["trained"] < 0.3 and unseen[-1] > min(unseen) + 3)
    holds = all(learned) and max(after) < min(before) - 1
    return count(results["runs"]) | paired(before, after, holds)
