"""Three families on the one block, trained for the same compute and asked the same.

``--write`` trains all of them anew, some minutes of one core, and writes
``data/sweeps/families.json``, which the chapter *pretraining* shows: of each family and
seed the losses; for each unseen poem the mean loss where it should go on and where it
should fill a blank; and whether its vectors tell the poet. Then fine-tuning with few
labels, with pretraining and without, and what counting pieces makes of the same labels.
Without the option it trains each family for a thousandth of that, and writes nothing.
"""

import argparse
import copy
import json
import time

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from lmbook.bench import report
from lmcourse.data import corpora_folder, load_texts
from lmcourse.families import (
    KINDS,
    SENTINELS,
    Family,
    blank_log_probs,
    family_loss,
    fine_tune,
    mean_states,
    training_flops,
)
from lmcourse.masking import bigram_infill, train
from lmcourse.mini_bert import passages, poem_splits, train_tokenizer
from lmcourse.models import one_thread
from lmcourse.ngrams import NgramModel
from lmcourse.probe import predict

__all__ = ["SETTINGS", "blanks", "labels_of", "main", "stored_at"]

SETTINGS = {"vocab_size": 300, "room": 32, "batch": 32, "share": 0.4, "steps": 1000}
SETTINGS |= {"learning_rate": 0.01, "muon_learning_rate": 0.02, "weight_decay": 0.05}
SEEDS, PLACES = range(4), 5
LABELS, RATES, DRAWS = (4, 16, 64, 192), (3e-4, 1e-3, 3e-3), range(4)


def stored_at():
    """Return where the runs are kept."""
    return corpora_folder() / "sweeps" / "families.json"


def labels_of(texts):
    """Return 1.0 for each poem of Shakespeare's, 0.0 for one of Dickinson's."""
    sonnets = set(load_texts("sonnets"))
    return torch.tensor([float(text in sonnets) for text in texts])


def blanks(texts, tokenizer, room, places):
    """Return for each poem some places of its first passage: lists of (ids, place)."""
    random, found = np.random.default_rng(0), []
    for text in texts:
        ids = next(passages(text, tokenizer, room))
        if len(ids) >= 20:
            chosen = random.choice(np.arange(6, len(ids) - 2), places, replace=False)
            found.append([(ids, int(place)) for place in sorted(chosen)])
    return found


def steps_of(kind, ids, tokenizer, settings):
    """Return how many steps of a family cost what an encoder's ``steps`` cost."""
    batch = pad_sequence(ids[: settings["batch"]], batch_first=True)
    size = len(tokenizer) + SENTINELS
    costs = {
        name: training_flops(Family(name, size), batch, tokenizer, settings["share"])
        for name in ("encoder", kind)
    }
    steps = settings["steps"] * costs["encoder"] / costs[kind]
    return max(round(steps), 1), costs[kind]


def run(kind, seed, data, tokenizer, settings):
    """Train a family; return it, and what it answered."""
    ids, asked, texts = data
    steps, cost = steps_of(kind, ids, tokenizer, settings)
    torch.manual_seed(seed)
    model, losses = Family(kind, len(tokenizer) + SENTINELS), []
    start = time.process_time()
    how = settings | {"steps": steps, "seed": seed}
    train(model, ids, tokenizer, how, lambda _, loss: losses.append(loss), family_loss)
    seconds = time.process_time() - start
    said = {"goes on": [], "fills": []}
    for places in asked:
        for name, mean in said.items():
            costs = [
                -blank_log_probs(
                    model, x[:at], x[at + 1 :] if name == "fills" else x[:0], tokenizer
                )[x[at]].item()
                for x, at in places
            ]
            mean.append(round(float(np.mean(costs)), 4))
    with torch.no_grad():
        states = mean_states(
            model, [next(passages(x, tokenizer, how["room"])) for x in texts]
        )
    hits = predict(states, labels_of(texts).numpy()).hits.astype(int).tolist()
    means = [
        round(float(np.mean(part)), 3) for part in np.array_split(losses, min(20, steps))
    ]
    found = {"kind": kind, "seed": seed, "steps": steps, "operations": cost * steps}
    found |= {"seconds": round(seconds, 1), "losses": means} | said
    return model, found | {"vectors": hits}


def counting(data, tokenizer, settings):
    """Return what counting pairs of neighbours, and pieces, makes of the same questions."""
    _, asked, texts = data
    room, size = settings["room"], len(tokenizer)
    poems = poem_splits()[0]
    read = torch.cat([x for text in poems for x in passages(text, tokenizer, room)]).numpy()
    pairs, both = NgramModel(read, 2, size), bigram_infill(read, size)
    said = {"goes on": [], "fills": []}
    for places in asked:
        on = [-np.log(pairs.next_probs(x[at - 1 : at])[x[at]]) for x, at in places]
        sides = [[x[at + k].item() for x, at in places] for k in (-1, 1)]
        here = [x[at].item() for x, at in places]
        fills = -both(*map(np.array, sides))[range(len(here)), here]
        for name, costs in (("goes on", on), ("fills", fills)):
            said[name].append(round(float(np.mean(costs)), 4))
    rows = [next(passages(text, tokenizer, room)) for text in texts]
    bags = torch.stack([torch.bincount(x, minlength=size) for x in rows]).double()
    return said | {
        "vectors": predict(bags, labels_of(texts).numpy()).hits.astype(int).tolist()
    }


def share_right(say, rows):
    """Return for each poem how many of its passages are told right."""
    shares = []
    for label, ids in rows:
        right = (say(ids) > 0) == bool(label)
        shares.append(round(right.double().mean().item(), 3))
    return shares


def count_pieces(ids, labels, size):
    """Guess by naive Bayes: how often each piece occurs in either poet, plus one."""
    rows = torch.stack([torch.bincount(x, minlength=size) for x in ids]).double()
    sides = [(rows[labels == k].sum(0) + 1) for k in (1, 0)]
    weights = (sides[0] / sides[0].sum()).log() - (sides[1] / sides[1].sum()).log()
    return lambda texts: torch.stack([weights[x].sum() for x in texts])


def few_labels(models, parts, tokenizer, room):
    """Fine-tune with few labels; return a row for each way, number and draw."""
    rows = [
        [(y, [*passages(x, tokenizer, room)]) for y, x in zip(labels_of(p), p, strict=True)]
        for p in parts
    ]
    found = []
    for draw in DRAWS:
        order = np.random.default_rng(draw).permutation(len(rows[0]))
        for number in LABELS:
            both = [[i for i in order if rows[0][i][0] == k][: number // 2] for k in (0, 1)]
            chosen = [*both[0], *both[1]]
            ids = [rows[0][i][1][draw % len(rows[0][i][1])] for i in chosen]
            labels = torch.tensor([float(rows[0][i][0]) for i in chosen])
            torch.manual_seed(draw)
            fresh = Family("encoder", models[0].embeddings.num_embeddings)
            say = count_pieces(ids, labels, len(tokenizer))
            about = {"labels": number, "draw": draw}
            row = {"way": "counting", "rate": 0, "validation": share_right(say, rows[1])}
            found.append(about | row | {"test": share_right(say, rows[2])})
            for way, model in {"pretrained": models[draw], "from nothing": fresh}.items():
                for rate in RATES:
                    say = fine_tune(copy.deepcopy(model), ids, labels, rate, seed=draw)
                    row = {
                        "way": way,
                        "rate": rate,
                        "validation": share_right(say, rows[1]),
                    }
                    found.append(about | row | {"test": share_right(say, rows[2])})
    return found


def main(arguments) -> int:
    """Train all, print what each can do, and keep it if asked to."""
    parser = argparse.ArgumentParser(prog="lmbook.bench families", description=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args(arguments).write
    one_thread()
    settings = SETTINGS | ({} if write else {"steps": 1})
    parts = poem_splits()
    tokenizer = train_tokenizer(parts[0], settings["vocab_size"])
    room = settings["room"]
    ids = [x for text in parts[0] for x in passages(text, tokenizer, room, overlap=True)]
    asked = blanks(parts[2], tokenizer, room, PLACES if write else 1)
    texts = [*parts[1], *parts[2]]
    data = (ids, asked, texts)
    kept = [run(kind, seed, data, tokenizer, settings) for kind in KINDS for seed in SEEDS]
    encoders = [model for model, found in kept if found["kind"] == "encoder"]
    stored = {"settings": settings, "places": PLACES, "runs": [found for _, found in kept]}
    stored["counting"] = counting(data, tokenizer, settings)
    stored["vocabulary"] = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    if write:
        stored["few labels"] = few_labels(encoders, parts, tokenizer, room)
        text = json.dumps(stored, ensure_ascii=False)
        stored_at().write_text(text + "\n", encoding="utf-8")
    names = ("goes on", "fills", "vectors")
    rows = [
        {k: r[k] for k in ("kind", "seed", "steps", "seconds")}
        | {k: float(np.mean(r[k])) for k in names}
        for r in stored["runs"]
    ]
    report(rows, {"benchmark": "families", "steps": settings["steps"]})
    return 0
