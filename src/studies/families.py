"""Which of three families does what best, for the same compute on the same poems?

Varied: the family (decoder, encoder, encoder-decoder; one block) for equal compute, three
seeds each, at the rate and dropout that served it best on the validation poems. Rivals:
counting runs of four pieces, three neighbours on each side, and the pieces of a passage.
Null: the same models untrained. Statistic: the mean loss of the next piece, and of a piece
at a blank, by unseen poem, and whether a ridge regression on a passage's vectors tells its
poet; the interval, of 95 % over poems, is that of the encoder's loss less the decoder's in
filling.
"""

import json
from functools import cache

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import BertTokenizerFast

from lmcourse.data import load_texts
from lmcourse.families import (
    KINDS,
    SENTINELS,
    Family,
    blank_log_probs,
    family_loss,
    mean_states,
    training_flops,
)
from lmcourse.masking import count_infill, train
from lmcourse.mini_bert import passages, poem_splits
from lmcourse.ngrams import NgramModel
from lmcourse.probe import predict
from studies.harness import best_tuned, count, verdict
from studies.mini_bert import train_tokenizer

CHAPTER = "pretraining"
CLAIM = (
    "For equal compute on little text, each tuned for itself, an encoder and a decoder "
    "can't be told apart in filling blanks"
)
RIVAL = "counting runs of four pieces, and three neighbours on each side"
NULL = "over poems the difference of the two families' losses is zero"
TRAINING = {"vocab_size": 300, "room": 32, "batch": 32, "share": 0.4, "steps": 400}
TRAINING |= {"muon_learning_rate": 0.02, "weight_decay": 0.05}
GRID = [(0.01, 0.1), (0.02, 0.0)]  # learning rate, dropout
SETTINGS = {"training": TRAINING, "grid": GRID, "tuning steps": 150, "seeds": [1, 2, 3]}
SETTINGS |= {"places": 4}


def labels_of(texts):
    """Return 1.0 for each poem of Shakespeare's, 0.0 for one of Dickinson's."""
    sonnets = set(load_texts("sonnets"))
    return torch.tensor([float(text in sonnets) for text in texts])


@cache
def tokenizer_in(folder):
    """Return the tokenizer whose vocabulary was learned before all else."""
    pieces = json.loads((folder / "vocabulary.txt").read_text(encoding="utf-8"))
    return BertTokenizerFast({piece: i for i, piece in enumerate(pieces)})


def cut(text, tokenizer, overlap=False):
    """Return a poem's passages."""
    return list(passages(text, tokenizer, TRAINING["room"], overlap))


def blanks(texts, tokenizer, places):
    """Return for each poem some places of its first passage: lists of (ids, place)."""
    random, found = np.random.default_rng(0), []
    for text in texts:
        ids = cut(text, tokenizer)[0]
        if len(ids) >= 20:
            chosen = random.choice(np.arange(6, len(ids) - 2), places, replace=False)
            found.append([(ids, int(place)) for place in sorted(chosen)])
    return found


def neighbours(ids, at, reach, tokenizer):
    """Return what stands on both sides of a place; before a text ended another."""
    before = [0] * reach + [tokenizer.sep_token_id, *ids[:at].tolist()]
    return before[-reach:], ids[at + 1 : at + 1 + reach].tolist()


def plan(small):
    """All of it; or each group once, trained for next to nothing."""
    most, steps = (1, 2) if small else (None, TRAINING["steps"])
    tuning_steps = min(steps, SETTINGS["tuning steps"])
    places, seeds = (1 if small else SETTINGS["places"]), SETTINGS["seeds"][:most]
    kinds = [{"kind": kind, "places": places} for kind in KINDS]
    tuned = [
        {"group": "tuning", "seed": 0, "steps": tuning_steps, "rate": rate, "dropout": drop}
        | kind
        for kind in kinds
        for rate, drop in GRID[:most]
    ]
    runs = [
        {"group": "runs", "seed": seed, "steps": steps} | kind
        for seed in seeds
        for kind in kinds
    ]
    counted = [{"group": "counting", "places": places}]
    return [{"group": "vocabulary"}, *tuned, *runs, *counted]


def run(folder, group, **setting):
    """Do what a group does; the vocabulary comes first."""
    if group == "vocabulary":
        tokenizer = train_tokenizer(poem_splits()[0], TRAINING["vocab_size"])
        pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        (folder / "vocabulary.txt").write_text(json.dumps(pieces), encoding="utf-8")
        return pieces
    groups = {"tuning": tune, "runs": contest, "counting": counting}
    return groups[group](folder, tokenizer_in(folder), **setting)


def pretrain(tokenizer, kind, seed, steps, rate, dropout):
    """Train a family for what ``steps`` of an encoder cost; return it and its cost."""
    ids = [x for text in poem_splits()[0] for x in cut(text, tokenizer, overlap=True)]
    batch, size = pad_sequence(ids[: TRAINING["batch"]], True), len(tokenizer) + SENTINELS
    dear, cost = (
        training_flops(Family(name, size), batch, tokenizer, TRAINING["share"])
        for name in ("encoder", kind)
    )
    how = TRAINING | {"steps": max(round(steps * dear / cost), 1), "seed": seed}
    torch.manual_seed(seed)
    model, losses = Family(kind, size, dropout=dropout), []
    how |= {"learning_rate": rate}
    train(model, ids, tokenizer, how, lambda _, loss: losses.append(loss), family_loss)
    ends = round(float(np.mean(losses[-100:])), 3)
    return model, {"operations": cost * how["steps"], "loss": ends}


def answers(model, texts, tokenizer, places):
    """Return the losses of going on and of filling, a mean for each poem."""
    asked, found = blanks(texts, tokenizer, places), {}
    for name, end in {"goes on": 0, "fills": None}.items():  # of what stands behind
        found[name] = [
            mean_of(
                -blank_log_probs(model, x[:at], x[at + 1 :][:end], tokenizer)[x[at]]
                for x, at in row
            )
            for row in asked
        ]
    return found


def tune(folder, tokenizer, kind, seed, steps, rate, dropout, places):
    """Judge a setting by the mean of both losses on the validation poems."""
    model, _ = pretrain(tokenizer, kind, seed, steps, rate, dropout)
    found = answers(model, poem_splits()[1], tokenizer, max(places // 2, 1))
    told = {"kind": kind, "rate": rate, "dropout": dropout}
    return told | {"validation": mean_of([*found["goes on"], *found["fills"]])}


def best(folder, kind):
    """Return the rate and the dropout that served a family best."""
    return [best_tuned(folder, kind=kind)[name] for name in ("rate", "dropout")]


def contest(folder, tokenizer, kind, seed, steps, places):
    """Train a family as serves it best, and ask it what all are asked."""
    found, texts = {"kind": kind, "seed": seed}, [*poem_splits()[1], *poem_splits()[2]]
    torch.manual_seed(seed)
    null = Family(kind, len(tokenizer) + SENTINELS).eval()
    found |= {"untrained": vectors(null, texts, tokenizer)}
    model, cost = pretrain(tokenizer, kind, seed, steps, *best(folder, kind))
    found |= cost | answers(model, poem_splits()[2], tokenizer, places)
    return found | {"vectors": vectors(model, texts, tokenizer)}


def vectors(model, texts, tokenizer):
    """Return for each poem whether a ridge regression on mean states tells its poet."""
    with torch.no_grad():
        rows = mean_states(model, [cut(text, tokenizer)[0] for text in texts])
    return hits_of(rows, texts)


def hits_of(rows, texts):
    """Return for each poem whether a ridge regression tells its poet: 0 or 1."""
    return predict(rows, labels_of(texts).numpy()).hits.astype(int).tolist()


def mean_of(costs):
    """Return a mean to store."""
    return round(float(np.mean([float(cost) for cost in costs])), 4)


def counting(folder, tokenizer, places):
    """Return what counting makes of the same questions."""
    learn, choose, judge = poem_splits()
    size, texts = len(tokenizer), [*choose, *judge]
    read = torch.cat([x for text in learn for x in cut(text, tokenizer)]).numpy()
    infill, four = count_infill(read, size, 3), NgramModel(read, 4, size)
    found = {"goes on": [], "fills": []}
    for row in blanks(judge, tokenizer, places):
        on = [-np.log(four.next_probs(x[:at])[x[at]]) for x, at in row]
        fills = [-infill(*neighbours(x, at, 3, tokenizer))[x[at]] for x, at in row]
        found["goes on"].append(mean_of(on))
        found["fills"].append(mean_of(fills))
    rows = bags([cut(text, tokenizer)[0] for text in texts], size)
    return found | {"vectors": hits_of(rows, texts)}


def bags(ids, size):
    """Return how often each piece stands in each text, (texts, size)."""
    return torch.stack([torch.bincount(x, minlength=size) for x in ids]).double()


def summary(results):
    """Compare encoder and decoder at filling, over poems; seeds are averaged."""
    encoder, decoder = (
        np.mean([row["fills"] for row in results["runs"] if row["kind"] == kind], axis=0)
        for kind in ("encoder", "decoder")
    )
    gap, random = encoder - decoder, np.random.default_rng(1886)
    means = gap[random.integers(len(gap), size=(2000, len(gap)))].mean(1)
    low, high = np.quantile(means, [0.025, 0.975]).round(4).tolist()
    return count(results["runs"]) | {
        "interval": [low, high],
        "verdict": verdict(low < 0 < high),
    }
