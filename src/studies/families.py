"""Which of three families does what best, for the same compute on the same poems?

Varied: the family (decoder, encoder, encoder–decoder; one block), four seeds each, with as
many floating-point operations. Rivals: counting pairs of neighbours; that each family is
best at what it was asked in training. Null: the families can't be told apart. Statistic:
the mean loss of the next piece, and of a piece at a blank, by unseen poem, and whether a
ridge regression on a poem's vectors tells its poet; the interval, of 95 % over poems, is
that of the encoder's loss less the decoder's in going on. Then encoders fine-tuned to tell
the poets with few labels, with pretraining and without, at three rates and four draws of
labels, and naive Bayes on the same labels.
"""

import copy
import itertools
import json
import time
from functools import cache, partial

import numpy as np
import torch
from safetensors.torch import load_model, save_model
from torch.nn.utils.rnn import pad_sequence
from transformers import BertTokenizerFast

from lmcourse.data import load_texts
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
from lmcourse.mini_bert import passages, poem_splits
from lmcourse.ngrams import NgramModel
from lmcourse.probe import predict
from studies.harness import count, verdict
from studies.mini_bert import train_tokenizer

CHAPTER = "pretraining"
CLAIM = (
    "For equal compute on little text a decoder goes on better than an encoder, and in "
    "filling blanks the two can't be told apart"
)
RIVAL = "each family is best at what it was asked in training"
NULL = "over poems the difference of the two families' losses is zero"
TRAINING = {"vocab_size": 300, "room": 32, "batch": 32, "share": 0.4, "steps": 1000}
TRAINING |= {"learning_rate": 0.01, "muon_learning_rate": 0.02, "weight_decay": 0.05}
SETTINGS = {"training": TRAINING, "places": 5, "seeds": [0, 1, 2, 3]}
SETTINGS |= {"labels": [4, 16, 64, 192], "rates": [3e-4, 1e-3, 3e-3]}


def labels_of(texts):
    """Return 1.0 for each poem of Shakespeare's, 0.0 for one of Dickinson's."""
    sonnets = set(load_texts("sonnets"))
    return torch.tensor([float(text in sonnets) for text in texts])


@cache
def tokenizer_in(folder):
    """Return the tokenizer whose vocabulary was learned before all else."""
    pieces = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
    return BertTokenizerFast({piece: i for i, piece in enumerate(pieces)})


def first_passages(texts, tokenizer):
    """Return the ids of each poem's first lines."""
    return [next(passages(text, tokenizer, TRAINING["room"])) for text in texts]


def blanks(texts, tokenizer, places):
    """Return for each poem some places of its first passage: lists of (ids, place)."""
    random, found = np.random.default_rng(0), []
    for ids in first_passages(texts, tokenizer):
        if len(ids) >= 20:
            chosen = random.choice(np.arange(6, len(ids) - 2), places, replace=False)
            found.append([(ids, int(place)) for place in sorted(chosen)])
    return found


def hits_of(rows, texts):
    """Return for each poem whether a ridge regression tells its poet: 0 or 1."""
    return predict(rows, labels_of(texts).numpy()).hits.astype(int).tolist()


def plan(small):
    """All of it; or each family once, trained for next to nothing."""
    most, steps = (1, 1) if small else (None, TRAINING["steps"])
    seeds = SETTINGS["seeds"][:most]
    places = 1 if small else SETTINGS["places"]
    runs = [
        {"group": "runs", "kind": kind, "seed": seed, "steps": steps, "places": places}
        for kind in KINDS
        for seed in seeds
    ]
    few = {"labels": SETTINGS["labels"][:most], "rates": SETTINGS["rates"][:most]}
    draws = [{"group": "few labels", "seed": seed} | few for seed in seeds]
    counted = {"group": "counting", "places": places}
    return [{"group": "vocabulary"}, *runs, counted, *draws]


def run(folder, group, **setting):
    """Do what a group does; the vocabulary comes first."""
    if group == "vocabulary":
        tokenizer = train_tokenizer(poem_splits()[0], TRAINING["vocab_size"])
        pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        (folder / "vocabulary.json").write_text(json.dumps(pieces), encoding="utf-8")
        return pieces
    tokenizer, groups = tokenizer_in(folder), {"runs": pretrain, "counting": counting}
    return groups.get(group, few_labels)(folder, tokenizer, **setting)


def pretrain(folder, tokenizer, kind, seed, steps, places):
    """Train a family for what ``steps`` of an encoder cost; return what it answers."""
    learn, choose, judge = poem_splits()
    room, texts = TRAINING["room"], [*choose, *judge]
    ids = [x for text in learn for x in passages(text, tokenizer, room, overlap=True)]
    batch, size = pad_sequence(ids[: TRAINING["batch"]], True), len(tokenizer) + SENTINELS
    dear, cost = (
        training_flops(Family(name, size), batch, tokenizer, TRAINING["share"])
        for name in ("encoder", kind)
    )
    how = TRAINING | {"steps": max(round(steps * dear / cost), 1), "seed": seed}
    torch.manual_seed(seed)
    model, losses, start = Family(kind, size), [], time.process_time()
    train(model, ids, tokenizer, how, lambda _, loss: losses.append(loss), family_loss)
    seconds = time.process_time() - start
    save_model(model, folder / f"{kind}-{seed}.safetensors")
    means = [np.mean(part) for part in np.array_split(losses, min(20, how["steps"]))]
    found = {"kind": kind, "seed": seed, "steps": how["steps"]}
    found |= {"operations": cost * how["steps"], "seconds": round(seconds, 1)}
    found |= {"losses": [round(float(mean), 3) for mean in means]}
    asked = blanks(judge, tokenizer, places)
    for name, end in {"goes on": 0, "fills": None}.items():  # of what stands behind
        found[name] = [
            mean_of(
                -blank_log_probs(model, x[:at], x[at + 1 :][:end], tokenizer)[x[at]]
                for x, at in row
            )
            for row in asked
        ]
    with torch.no_grad():
        states = mean_states(model, first_passages(texts, tokenizer))
    return found | {"vectors": hits_of(states, texts)}


def mean_of(costs):
    """Return a mean to store."""
    return round(float(np.mean([float(cost) for cost in costs])), 4)


def counting(folder, tokenizer, places):
    """Return what counting pairs of neighbours, and pieces, makes of the same questions."""
    learn, choose, judge = poem_splits()
    size, texts = len(tokenizer), [*choose, *judge]
    read = [x for text in learn for x in passages(text, tokenizer, TRAINING["room"])]
    read, found = torch.cat(read).numpy(), {"goes on": [], "fills": []}
    pairs, both = NgramModel(read, 2, size), bigram_infill(read, size)
    for row in blanks(judge, tokenizer, places):
        here = [x[at].item() for x, at in row]
        sides = [np.array([x[at + k].item() for x, at in row]) for k in (-1, 1)]
        on = [-np.log(pairs.next_probs(x[at - 1 : at])[x[at]]) for x, at in row]
        found["goes on"].append(mean_of(on))
        found["fills"].append(mean_of(-both(*sides)[range(len(here)), here]))
    rows = first_passages(texts, tokenizer)
    bags = torch.stack([torch.bincount(x, minlength=size) for x in rows]).double()
    return found | {"vectors": hits_of(bags, texts)}


def count_pieces(ids, labels, size):
    """Guess by naive Bayes: how often each piece occurs in either poet, plus one."""
    rows = torch.stack([torch.bincount(x, minlength=size) for x in ids]).double()
    sides = [(rows[labels == k].sum(0) + 1) for k in (1, 0)]
    weights = (sides[0] / sides[0].sum()).log() - (sides[1] / sides[1].sum()).log()
    return lambda texts: torch.stack([weights[x].sum() for x in texts])


def few_labels(folder, tokenizer, seed, labels, rates):
    """Tell the poets with few labels; return a row for each way, number and rate."""
    cut = partial(passages, tokenizer=tokenizer, room=TRAINING["room"])
    parts = [[[*cut(text)] for text in part] for part in poem_splits()]
    truths = [labels_of(part) for part in poem_splits()]
    size, found = len(tokenizer) + SENTINELS, []
    order = np.random.default_rng(seed).permutation(len(truths[0]))
    pretrained = Family("encoder", size)
    load_model(pretrained, folder / f"encoder-{seed}.safetensors")
    for number in labels:
        both = [[i for i in order if truths[0][i] == k][: number // 2] for k in (0, 1)]
        few = [*both[0], *both[1]]
        ids, truth = [parts[0][i][seed % len(parts[0][i])] for i in few], truths[0][few]
        torch.manual_seed(seed)
        ways = {"pretrained": pretrained, "from nothing": Family("encoder", size)}
        tellers = {("counting", 0): count_pieces(ids, truth, len(tokenizer))}
        for way, rate in itertools.product(ways, rates):
            model = copy.deepcopy(ways[way])
            tellers[way, rate] = fine_tune(model, ids, truth, rate, seed=seed)
        for (way, rate), say in tellers.items():
            row = {"labels": number, "draw": seed, "way": way, "rate": rate}
            for name, k in {"validation": 1, "test": 2}.items():
                right = zip(parts[k], truths[k], strict=True)
                right = ((say(x) > 0) == bool(label) for x, label in right)
                row[name] = [round(each.double().mean().item(), 3) for each in right]
            found.append(row)
    return found


def summary(results):
    """Compare encoder and decoder, over poems; seeds are averaged."""
    intervals = []
    for name in ("goes on", "fills"):
        encoder, decoder = (
            np.mean([row[name] for row in results["runs"] if row["kind"] == kind], axis=0)
            for kind in ("encoder", "decoder")
        )
        gap, random = encoder - decoder, np.random.default_rng(1886)
        means = gap[random.integers(len(gap), size=(2000, len(gap)))].mean(1)
        intervals.append(np.quantile(means, [0.025, 0.975]).round(4).tolist())
    on, fills = intervals
    holds = on[0] > 0 and fills[0] < 0 < fills[1]
    return count(results["runs"]) | {"interval": on, "verdict": verdict(holds)}
