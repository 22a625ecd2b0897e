"""``python -m lmcourse.numpy_nn.longer``: a decoder trained until it knows its text.

Writes ``data/decoder/run.json``, what was seen on the way with three seeds, and
``data/decoder/sonnets.safetensors``, the first seed's weights at the end. The chapter
*backpropagation* reads both.
"""

import json

import numpy as np

from lmcourse.data import corpora_folder, load_texts, train_val_test_split
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
from lmcourse.numpy_nn.layers import SoftmaxCrossEntropy

STEPS, BATCH, SEEDS = 4000, 64, (0, 1, 2)
MARKS = (0, 50, 100, 300, 600, 1000, 2000, STEPS)
WARM = {"steps": 150, "warm": 20, "rates": (0.004, 0.02), "seeds": (0, 1, 2, 3, 4)}
CHOSEN = {"temperature": 0.8, "most": 60, "draws": 3}  # samples, none left out


def stored_at():
    """Return the folder of the run."""
    return corpora_folder() / "decoder"


def loss_after(model, numbers, context=7, known=None):
    """Return the mean loss of the word after ``context`` others, in nats.

    Parameters
    ----------
    model : Decoder
    numbers : int array of shape (words,)
    context : int
    known : int, optional
        Leave out places whose word has this number or a higher one.
    """
    examples = windows(numbers, context)  # (examples, context + 1)
    examples = examples[examples[:, -1] < (known or len(model.dictionary.vocabulary))]
    x = model.dictionary.forward(examples[::3, :-1])
    last = model.blocks.forward(x)[:, -1]  # (examples, d_model)
    logits = model.output.forward(last)  # (examples, vocab_size)
    return float(SoftmaxCrossEntropy().forward(logits, examples[::3, -1]))


def last_looks(model, lines):
    """Return where the last word of lines looks, (layers, heads, tokens), averaged."""
    model.forward(lines)  # (lines, tokens)
    layers = range(model.sizes["layers"])
    return np.stack([model.weights(i)[:, :, -1].mean(axis=0) for i in layers])


def texts():
    """Return the words to train on, and those of the sonnets that are kept apart."""
    parts = train_val_test_split(load_texts("sonnets"))
    unseen = parts.validation + "\n\n" + parts.test
    return mark_sentences(parts.training), mark_sentences(unseen)


def main():
    """Train three decoders, and store what is drawn and read."""
    seen, unseen = texts()
    vocabulary, vectors = initial_vectors(seen, unseen)
    known, number = len(set(seen)), {word: i for i, word in enumerate(vocabulary)}
    text, other = (np.array([number[word] for word in part]) for part in (seen, unseen))
    runs = []
    for seed in SEEDS:
        model, marks = Decoder(vocabulary, vectors, seed=seed), []

        def watch(step, loss, wanted, floating, model=model, marks=marks):
            if step in MARKS:
                marks.append(_state(model, text, other, known, number))

        train(model, text, STEPS, batch=BATCH, seed=seed, watch=watch)
        watch(STEPS, None, None, None)
        runs.append(marks)
        if seed == SEEDS[0]:
            stored_at().mkdir(exist_ok=True)
            save(model, stored_at() / "sonnets.safetensors", np.float16)
    settings = vocabulary, vectors, text
    pairs = [(rate, seed) for rate in WARM["rates"] for seed in WARM["seeds"]]
    warm = [
        {"rate": rate, "seed": seed}
        | {str(n): _final(*settings, rate, n, seed) for n in (0, WARM["warm"])}
        for rate, seed in pairs
    ]
    record = {"steps": STEPS, "batch": BATCH, "marks": MARKS, "samples": CHOSEN}
    stored = json.dumps({"record": record | {"warm": WARM}, "runs": runs, "warm": warm})
    (stored_at() / "run.json").write_text(stored + "\n", encoding="utf-8")


def _final(vocabulary, vectors, text, rate, warm, seed):
    """Return the floating loss after a short training, perhaps with a warm start."""
    model, settings = Decoder(vocabulary, vectors, seed=seed), {"warm": warm, "seed": seed}
    losses = train(model, text, WARM["steps"], learning_rate=rate, **settings)
    return round(losses[-1], 4)


def _state(model, text, other, known, number):
    """Measure a decoder and let it write."""
    end, words = number[END], []
    for draw in range(CHOSEN["draws"]):
        dice, heat = np.random.default_rng(draw), CHOSEN["temperature"]
        drawn = sample(model, [number[START]], CHOSEN["most"], dice, end, temperature=heat)
        words.append(verse(model.dictionary.decode(drawn)))
    return {
        "trained": round(loss_after(model, text, known=known), 4),
        "unseen": round(loss_after(model, other, known=known), 4),
        "looks": last_looks(model, windows(text, 7)[::7, :-1]).round(4).tolist(),
        "samples": words,
    }


if __name__ == "__main__":
    main()
