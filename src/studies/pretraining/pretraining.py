"""What has a small BERT learned after how many steps, and what has counting?

Varied: the steps of an encoder's training, three seeds, and one for three times and for ten
times as long, at the rate and dropout that served it best on validation poems. Rivals:
counting what stood between two neighbours, and two and three neighbours on each side. Null:
the model untrained. Statistic: the loss of each piece of the unseen poems, hidden once; the
interval, of 95 % over poems, is that of the encoder's loss at its last step less that of
counting three neighbours.
"""

import json
from functools import cache, partial

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import BertTokenizerFast

from lmcourse.families import SENTINELS, Family, family_loss
from lmcourse.masking import between_infill, count_infill, place_losses, train
from lmcourse.mini_bert import passages, poem_splits
from studies.harness import best_tuned, count, grid, verdict
from studies.pretraining.mini_bert import train_tokenizer

CHAPTER = "pretraining"
CLAIM = (
    "A training of 900 steps, 40 % hidden, ends behind counting three neighbours on each "
    "side at blanks in unseen poems, as a mean over pieces"
)
RIVAL = "counting what stood between two neighbours; two and three on each side"
NULL = "an untrained model, near the logarithm of its 320 pieces and sentinels"
TRAINING = {"vocab_size": 300, "room": 32, "batch": 32, "share": 0.4, "steps": 900}
TRAINING |= {"muon_learning_rate": 0.02, "weight_decay": 0.05}
GRID = [(0.01, 0.1), (0.02, 0.1), (0.02, 0.0)]  # learning rate, dropout
SETTINGS = {"training": TRAINING, "grid": GRID, "tuning steps": 300, "seeds": [1, 2, 3]}
SETTINGS |= {"stops": [0, 30, 100, 200, 300, 450, 600, 900]}


@cache
def tokenizer_in(folder):
    """Return the tokenizer whose vocabulary was learned before all else."""
    pieces = json.loads((folder / "vocabulary.txt").read_text(encoding="utf-8"))
    return BertTokenizerFast({piece: i for i, piece in enumerate(pieces)})


def cut(text, tokenizer, overlap=False):
    """Return a poem's passages."""
    return list(passages(text, tokenizer, TRAINING["room"], overlap))


def whole_words(ids, tokenizer):
    """Return where a passage has words of one piece; what follows an apostrophe is none."""
    names = tokenizer.convert_ids_to_tokens(ids)
    rows = zip(names[:-2], names[1:-1], names[2:], strict=True)
    return [
        k
        for k, (left, name, right) in enumerate(rows, start=1)
        if name.isalpha() and left not in "'’" and not right.startswith("##")
    ]


def neighbours(ids, at, reach, tokenizer):
    """Return what stands on both sides of a place; before a text ended another."""
    before = [0] * reach + [tokenizer.sep_token_id, *ids[:at].tolist()]
    return before[-reach:], ids[at + 1 : at + 1 + reach].tolist()


def plan(small):
    """All of it; or each group once, for next to nothing."""
    most, steps = (1, 2) if small else (None, TRAINING["steps"])
    tuned = [
        {"group": "tuning", "steps": min(steps, SETTINGS["tuning steps"])}
        | {"rate": rate, "dropout": dropout}
        for rate, dropout in GRID[:most]
    ]
    seeds, more = SETTINGS["seeds"][:most], [] if small else [3 * steps, 10 * steps]
    runs = grid(group="runs", seed=seeds, steps=steps)
    counted = {"group": "counting", "poems": 2 if small else None}
    longer = grid(group="longer", seed=seeds[0], steps=more)
    return [{"group": "vocabulary"}, *tuned, *runs, counted, *longer]


def run(folder, group, **setting):
    """Do what a group does; the vocabulary comes first."""
    if group == "vocabulary":
        tokenizer = train_tokenizer(poem_splits()[0], TRAINING["vocab_size"])
        pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        (folder / "vocabulary.txt").write_text(json.dumps(pieces), encoding="utf-8")
        return pieces
    groups = {"tuning": tune, "runs": learn, "longer": learn, "counting": counting}
    return groups[group](folder, tokenizer_in(folder), **setting)


def pretrain(tokenizer, seed, steps, rate, dropout, look):
    """Train an encoder, and look at it after some steps."""
    ids = [x for text in poem_splits()[0] for x in cut(text, tokenizer, overlap=True)]
    torch.manual_seed(seed)
    model = Family("encoder", len(tokenizer) + SENTINELS, dropout=dropout)
    how = TRAINING | {"steps": steps, "seed": seed, "learning_rate": rate}
    look(model, 0)
    train(model, ids, tokenizer, how, lambda step, _: look(model, step), family_loss)


def tune(folder, tokenizer, steps, rate, dropout):
    """Judge a setting by the loss on the validation poems."""
    look = Watch(tokenizer, [steps], poem_splits()[1])
    pretrain(tokenizer, 0, steps, rate, dropout, look)
    loss = mean_of(look.stops[steps]["losses"])
    return {"seed": 0, "rate": rate, "dropout": dropout, "validation": loss}


def learn(folder, tokenizer, seed, steps):
    """Train an encoder as serves it best, and keep what it does after some steps."""
    tuned = best_tuned(folder)
    stops = [step for step in (*SETTINGS["stops"], steps) if step <= steps]
    look = Watch(tokenizer, stops, poem_splits()[2])
    pretrain(tokenizer, seed, steps, tuned["rate"], tuned["dropout"], look)
    return {"seed": seed, "stops": look.stops}


class Watch:
    """Look at an encoder while it learns: its losses by poem, and what it guesses."""

    def __init__(self, tokenizer, stops, texts):
        self.tokenizer, self.poems = tokenizer, [cut(x, tokenizer) for x in texts]
        self.stops = {step: {} for step in stops}

    @torch.no_grad()
    def __call__(self, model, step):
        """Note what a model does after a step that is looked at."""
        if step in self.stops:
            model.eval()
            self.stops[step] |= {"losses": self.losses(model), "words": self.words(model)}
            model.train()

    def losses(self, model):
        """Return the mean loss of each unseen poem, each piece hidden once."""
        found = []
        for poem in self.poems:
            ids = pad_sequence(poem, batch_first=True)
            costs = place_losses(lambda x, p: model(x, places=p), ids, self.tokenizer)
            found.append(mean_of(costs[costs > 0]))
        return found

    def words(self, model):
        """Return what it makes of the words of each poem, hidden one by one."""

        def says(ids, places):
            rows = ids.expand(len(places), -1).clone()  # (places, tokens)
            rows[range(len(places)), places] = self.tokenizer.mask_token_id
            said = model(rows)[range(len(places)), places, : len(self.tokenizer)]
            return said.log_softmax(-1)

        return [at_words(poem, says, self.tokenizer) for poem in self.poems]


def at_words(poem, says, tokenizer):
    """Return what is made of a poem's words: mean loss, right first guesses, some guesses.

    These are, in its first passage, each guess and the right piece's probability.
    """
    rows = [(ids, whole_words(ids, tokenizer)) for ids in poem]
    said = [says(*row) for row in rows if row[1]]
    right = torch.cat([ids[places] for ids, places in rows])
    first = torch.cat(said).argmax(-1)
    costs = -torch.cat(said)[range(len(right)), right]
    begin = zip(first.tolist(), (-costs).exp().tolist(), strict=True)
    begin = [[piece, round(share, 3)] for piece, share in begin][: len(said[0])]
    return {"loss": mean_of(costs), "right": int((first == right).sum()), "begin": begin}


def mean_of(costs):
    """Return a mean to store."""
    return round(float(np.mean([float(cost) for cost in costs])), 4)


def counting(folder, tokenizer, poems):
    """Return what counting makes of the same blanks."""
    learn, _, judge = ([cut(x, tokenizer) for x in part] for part in poem_splits())
    judge, size = judge[:poems], len(tokenizer)
    read = torch.cat([ids for poem in learn for ids in poem]).numpy()
    tables = {1: between_infill(read, size)}
    tables |= {reach: count_infill(read, size, reach) for reach in (2, 3)}
    found = {"losses": {}, "words": {}}

    def says(reach, ids, places):
        sides = [neighbours(ids, at, reach, tokenizer) for at in places]
        return torch.tensor(np.array([tables[reach](*pair) for pair in sides]))

    def costs(reach, ids):
        return -says(reach, ids, range(1, len(ids) - 1)).gather(1, ids[1:-1, None])

    for reach in tables:
        found["losses"][reach] = [
            mean_of(torch.cat([costs(reach, ids) for ids in poem])) for poem in judge
        ]
        say = partial(says, reach)
        found["words"][reach] = [at_words(poem, say, tokenizer) for poem in judge]
    return found | {"places": [[whole_words(x, tokenizer) for x in poem] for poem in judge]}


def summary(results):
    """Compare the encoders' last losses with counting three neighbours, over poems."""
    last = [list(row["stops"].values())[-1]["losses"] for row in results["runs"]]
    counted = list(results["counting"][0]["losses"].values())[-1]
    gap = np.mean(last, axis=0)[: len(counted)] - counted
    random = np.random.default_rng(1886)
    means = gap[random.integers(len(gap), size=(2000, len(gap)))].mean(1)
    interval = np.quantile(means, [0.025, 0.975]).round(4).tolist()
    told = {"interval": interval, "verdict": verdict(interval[0] > 0)}
    return count(results["runs"]) | told
