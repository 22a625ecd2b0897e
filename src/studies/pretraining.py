"""What has a small BERT learned after how many steps, and what has counting?

Varied: the steps of an encoder's training, three seeds, and one for three times as long, at
the rate and dropout that served it best on validation poems. Rivals: counting one, two and
three neighbours on each side. Null: the model untrained. Statistic: the loss of each piece
of the unseen poems, hidden once; the interval, of 95 % over poems, is that of the encoder's
loss at its last step less that of counting three neighbours.
"""

import json
from functools import cache

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import BertTokenizerFast

from lmcourse.families import SENTINELS, Family, family_loss
from lmcourse.masking import count_infill, place_losses, train
from lmcourse.mini_bert import passages, poem_splits
from studies.harness import best_tuned, count, verdict
from studies.mini_bert import train_tokenizer

CHAPTER = "pretraining"
CLAIM = (
    "A training of 900 steps, 40 % hidden, ends behind counting three neighbours on each "
    "side at blanks in unseen poems, as a mean over pieces"
)
RIVAL = "counting one, two and three neighbours on each side"
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


def whole_words(text, tokenizer):
    """Return a poem's first passage, and where its first line has words of one piece."""
    line = next(x for x in text.splitlines() if x.strip())
    names = tokenizer.tokenize(line)
    after = [*names[1:], ""]
    alone = [
        a.isalpha() and not b.startswith("##") for a, b in zip(names, after, strict=True)
    ]
    ids = cut(text, tokenizer)[0]
    return ids, [k + 1 for k, whole in enumerate(alone) if whole and k + 2 < len(ids)]


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
    runs = [
        {"group": "runs", "seed": seed, "steps": steps} for seed in SETTINGS["seeds"][:most]
    ]
    counted = {"group": "counting", "poems": 2 if small else None}
    longer = {"group": "longer", "seed": SETTINGS["seeds"][0], "steps": 3 * steps}
    return [{"group": "vocabulary"}, *tuned, *runs, counted, longer]


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
        self.tokenizer, self.texts = tokenizer, texts
        self.stops = {step: {} for step in stops}

    @torch.no_grad()
    def __call__(self, model, step):
        """Note what a model does after a step that is looked at."""
        if step in self.stops:
            model.eval()
            self.stops[step] |= {"losses": self.losses(model), "lines": self.lines(model)}
            model.train()

    def losses(self, model):
        """Return the mean loss of each unseen poem, each piece hidden once."""
        found = []
        for text in self.texts:
            ids = pad_sequence(cut(text, self.tokenizer), batch_first=True)
            costs = place_losses(lambda x, p: model(x, places=p), ids, self.tokenizer)
            found.append(mean_of(costs[costs > 0]))
        return found

    def lines(self, model):
        """Return for each word of one piece the first guess and the right one's share."""
        found = []
        for text in self.texts:
            ids, places = whole_words(text, self.tokenizer)
            rows = ids.expand(len(places), -1).clone()  # (places, tokens)
            rows[range(len(places)), places] = self.tokenizer.mask_token_id
            said = model(rows)[range(len(places)), places, : len(self.tokenizer)]
            found.append(guesses(said.softmax(-1), ids[places]))
        return found


def guesses(said, right):
    """Return the first guess and the right piece's probability, for each row."""
    share = said[range(len(right)), right]
    return [
        [int(a), round(float(b), 3)] for a, b in zip(said.argmax(-1), share, strict=True)
    ]


def mean_of(costs):
    """Return a mean to store."""
    return round(float(np.mean([float(cost) for cost in costs])), 4)


def counting(folder, tokenizer, poems):
    """Return what counting makes of the same blanks."""
    learn, _, judge = poem_splits()
    read = torch.cat([x for text in learn for x in cut(text, tokenizer)]).numpy()
    tables = {reach: count_infill(read, len(tokenizer), reach) for reach in (1, 2, 3)}
    found = {"losses": {}, "lines": {}}

    def says(reach, ids, at):
        return tables[reach](*neighbours(ids, at, reach, tokenizer))

    for reach in tables:
        found["losses"][reach] = [
            mean_of(
                -says(reach, ids, at)[ids[at]]
                for ids in cut(text, tokenizer)
                for at in range(1, len(ids) - 1)
            )
            for text in judge[:poems]
        ]
        found["lines"][reach] = [
            guesses(np.exp([says(reach, ids, at) for at in places]), ids[places])
            for ids, places in (whole_words(text, tokenizer) for text in judge[:poems])
        ]
    return found


def summary(results):
    """Compare the encoders' last losses with counting three neighbours, over poems."""
    last = [list(row["stops"].values())[-1]["losses"] for row in results["runs"]]
    counted = list(results["counting"][0]["losses"].values())[-1]
    gap = np.mean(last, axis=0)[: len(counted)] - counted
    random = np.random.default_rng(1886)
    means = gap[random.integers(len(gap), size=(2000, len(gap)))].mean(1)
    interval = np.quantile(means, [0.025, 0.975]).round(4).tolist()
    return count(results["runs"]) | {
        "interval": interval,
        "verdict": verdict(interval[0] > 0),
    }
