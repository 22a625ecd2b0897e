"""How far back do a decoder's heads look while it learns its text by heart?

Varied: the steps of training, up to 2,000, and what is learned: the sonnets, the same
words shuffled once, or dealt anew at every step, so that there is neither an order nor a
text that stays. In short trainings, the word vectors: trained, held for the first half, or
brought to unit length once a step, at two learning rates. Three seeds each. Rivals:
shuffled words, which have no order to learn but can be learned by heart; counting, of
other sonnets. Null: untrained heads; words dealt anew. Statistic: how many words back the
last word looks, over the heads of a layer, on the text learned and on sonnets kept apart;
losses, and samples, none left out. The interval is that of how much nearer the heads look
in the end, by seed. The first decoder is kept as ``decoder.safetensors``.
"""

import numpy as np

from lmcourse.data import load_texts, train_val_test_split
from lmcourse.embeddings import unit
from lmcourse.numpy_nn import decoder
from studies.harness import count, grid, paired

CHAPTER = "backpropagation"
CLAIM = (
    "After 2,000 steps both layers of a decoder look less than two words back, on the "
    "sonnets and on the same words shuffled; at the stored step that is best on unseen "
    "sonnets layer 0 still looks three words back"
)
RIVAL = "the order of the words: a decoder that learns shuffled words does not turn"
NULL = "words dealt anew at every step: after 500 layer 0 still looks three words back"
CHECKPOINTS = ("decoder",)
SETTINGS = {"steps": 2000, "batch": 64, "marks": [0, 25, 50, 100, 200, 500, 1000, 2000]}
SETTINGS |= {"texts": ["sonnets", "shuffled", "dealt"], "dealt": 500, "seeds": [0, 1, 2]}
SETTINGS |= {"samples": {"temperature": 0.8, "most": 60, "draws": 3}}
SETTINGS["vectors"] = {"steps": 300, "every": 30, "rates": [0.004, 0.008]}
SETTINGS["vectors"] |= {"ways": ["trained", "held", "unit"]}


def material():
    """Return the vocabulary and its vectors, both texts as numbers, how many are known."""
    parts = train_val_test_split(load_texts("sonnets"))
    apart = parts.validation + "\n\n" + parts.test
    seen, unseen = map(decoder.mark_sentences, (parts.training, apart))
    vocabulary, vectors = decoder.initial_vectors(seen, unseen)
    number = {word: i for i, word in enumerate(vocabulary)}
    text, other = (np.array([number[word] for word in part]) for part in (seen, unseen))
    return vocabulary, vectors, text, other, len(set(seen))


def plan(small):
    """Nine long trainings and eighteen short ones; or one of each for a step or two."""
    marks, found = SETTINGS["marks"], []
    for text in SETTINGS["texts"]:
        last = SETTINGS["dealt"] if text == "dealt" else SETTINGS["steps"]
        at = [1] if small else [mark for mark in marks if mark <= last]
        found += grid(group=text, seed=SETTINGS["seeds"], marks=[at])
    sizes = SETTINGS["vectors"]
    how = {"way": sizes["ways"], "rate": sizes["rates"], "seed": SETTINGS["seeds"]}
    short = grid(group="vectors", **how, steps=2 if small else sizes["steps"])
    return [*found[:1], short[6]] if small else found + short


def run(folder, group, seed, **setting):
    """Train one decoder for long, or one briefly."""
    if group == "vectors":
        return short(seed, **setting)
    vocabulary, vectors, text, other, known = material()
    model, states = decoder.Decoder(vocabulary, vectors, seed=seed), []
    dice, marks = np.random.default_rng(seed), setting["marks"]
    own = text if group == "sonnets" else dice.permutation(text)

    def watch(step, *_):
        if step in marks:
            states.append(state(model, own, other, known, group))
        if group == "dealt":
            dice.shuffle(own)  # in place: `train_decoder` sees a view

    decoder.train_decoder(
        model, own, marks[-1], batch=SETTINGS["batch"], seed=seed, watch=watch
    )
    watch(marks[-1])
    if (group, seed) == ("sonnets", SETTINGS["seeds"][0]):
        decoder.save(model, folder / "decoder.safetensors", np.float16)
    return {"seed": seed, "states": states}


def short(seed, way, rate, steps):
    """Return the lowest loss on unseen sonnets, and after how many steps it was met."""
    vocabulary, vectors, text, other, known = material()
    model = decoder.Decoder(vocabulary, vectors, seed=seed)
    table, losses = model.dictionary.table, {}

    def watch(step, *_):
        if way == "unit":
            table.value[:known] = unit(table.value[:known])
        table.trainable = way != "held" or step >= steps // 2
        if step % SETTINGS["vectors"]["every"] == 0:
            losses[step] = decoder.loss_of_last(model, other, known)

    decoder.train_decoder(model, text, steps, learning_rate=rate, seed=seed, watch=watch)
    watch(steps)
    best = min(losses, key=losses.get)
    found = {"way": way, "rate": rate, "seed": seed, "step": best}
    return found | {"unseen": round(losses[best], 4)}


def state(model, own, other, known, group):
    """Measure a decoder, and let it write if it learns the sonnets."""
    found = {}
    for name, text in {"looks": own, "elsewhere": other[other < known]}.items():
        windows = decoder.windows(text, 7)[::7, :-1]
        found[name] = decoder.last_attention(model, windows).round(4).tolist()
    for name, text in {"trained": own, "unseen": other}.items():
        found[name] = round(decoder.loss_of_last(model, text, known), 4)
    if group == "sonnets":
        found["samples"] = samples(model)
    return found


def samples(model):
    """Return what the decoder writes, with the same dice at every mark."""
    start, end = model.dictionary.encode([decoder.START, decoder.END])
    how = SETTINGS["samples"]
    words = []
    for draw in range(how["draws"]):
        dice, heat = np.random.default_rng(draw), how["temperature"]
        drawn = decoder.sample_words(
            model, [start], how["most"], dice, end, temperature=heat
        )
        words.append(decoder.verse(model.dictionary.decode(drawn)))
    return words


def far(runs):
    """Return how many words back the heads look, (seeds, marks, layers)."""
    looks = [[state["looks"] for state in each["states"]] for each in runs]
    return (np.array(looks) @ np.arange(7)[::-1]).mean(-1)


def summary(results):
    """Compare the first state with the last one; hold every seed to the claim."""
    back = {text: far(results[text]) for text in SETTINGS["texts"] if text in results}
    learned, seeds = back["sonnets"], range(len(back["sonnets"]))
    unseen = [[state["unseen"] for state in one["states"]] for one in results["sonnets"]]
    still = [learned[seeds, np.argmin(unseen, axis=1), 0]]  # (seeds,)
    still += [back[text][:, -1, 0] for text in back if text == "dealt"]
    turned = [back[text][:, -1].max() for text in back if text != "dealt"]
    holds = max(turned) < 2 and max(abs(each - 3).max() for each in still) < 0.05
    gone = (learned[:, 0] - learned[:, -1]).mean(-1)
    return count(results["sonnets"]) | paired(gone, 0 * gone, bool(holds))
