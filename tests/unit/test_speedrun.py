"""The speedrun: what nanoGPT's recipe is, what the ideas do, and that the judge is fair."""

import json

import pandas as pd
import pytest
import torch
from torch import nn

from chapters import definitions, page_cells
from lmbook.bench import speedrun as bench
from lmcourse.data import stored
from lmcourse.gpt.model import GPT
from lmcourse.speedrun import CONTEXT, Recipe, train_recipe
from studies.scaling import four_ideas
from studies.scaling import speedrun as study
from studies.scaling.speedrun import IDEAS, recipe_of

VOCAB_SIZE = 3


class Constant(nn.Module):
    """Expects one character, whatever stands before."""

    def __init__(self, character=2, size=1):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(VOCAB_SIZE))
        self.logits.data[character] = 20.0
        self.rest = nn.Parameter(torch.zeros(size))

    def forward(self, ids):
        return self.logits.expand(*ids.shape, VOCAB_SIZE)


class Ahead(Constant):
    """Reads the token that it should foretell; but not at the last place but one."""

    def forward(self, ids):
        read = torch.cat((ids[:, 1:-1], ids[:, -2:]), dim=1)
        return 20.0 * nn.functional.one_hot(read, VOCAB_SIZE).float()


class Other(Constant):
    """Returns what it is told to."""

    def forward(self, ids):
        return self.answer(ids)


def other(answer):
    model = Other()
    model.answer = answer
    return model


@pytest.fixture
def corpus(tmp_path):
    """A text of 6,000 characters, of which 5,400 are for training.

    The tuning half of the last tenth is all `b` (id 1), the test half all `c` (id 2), which
    is rare before.
    """
    path = tmp_path / "text.txt"
    path.write_text("ab" * 2699 + "ca" + "b" * 300 + "c" * 300)
    return str(path)


# --- the recipes ----------------------------------------------------------------------


def test_the_reference_is_of_nanogpts_shape():
    model = GPT(Recipe().model_config(65))  # the characters of tiny Shakespeare
    shapes = {name: tuple(w.shape) for name, w in model.named_parameters()}
    block = {"norm_1": (128,), "attention.qkv": (384, 128), "attention.output": (128, 128)}
    block |= {"norm_2": (128,), "feed_forward.up": (512, 128)}
    block |= {"feed_forward.down": (128, 512)}
    expected = {"tokens.weight": (65, 128), "positions.weight": (64, 128)}
    expected |= {f"blocks.{i}.{n}.weight": s for i in range(4) for n, s in block.items()}
    assert shapes == expected | {"norm.weight": (128,)}
    counted = study.count_parameters(model) - 64 * 128  # nanoGPT does not count positions
    assert f"{counted / 1e6:.2f}M" == "0.80M"


def test_the_reference_is_trained_as_nanogpts():
    recipe = Recipe()
    assert (recipe.steps, recipe.batch, CONTEXT) == (2000, 12, 64)
    assert (recipe.optimizer, recipe.learning_rate, recipe.warmup) == ("adamw", 1e-3, 100)
    assert (recipe.min_learning_rate, recipe.weight_decay, recipe.clip) == (0.1, 0.1, 1.0)


def test_the_record_leaves_out_what_is_better_left_out_by_the_tuning_half():
    middle = pd.DataFrame(stored("speedrun")["results"]["tuning"]).groupby("way").median()
    assert study.WAYS["record"] == study.WAYS[middle.tuning.idxmin()]


def test_recipes_have_one_idea_some_or_all_but_one():
    ways = study.ideas_by_way()
    assert ways["reference"] == ways["textbook"] == []
    assert ways["muon alone"] == ["size", "muon"]
    assert ways["up to norm"] == ["size", "schedule", "rotary", "norm"]
    assert ways["without scale"] == [idea for idea in IDEAS if idea != "scale"]
    assert ways["whole"] == [*IDEAS]
    assert ways["tables"] == [*IDEAS, study.TABLES]
    assert ways["simple"] == ["size", "schedule"]


def test_vectors_of_tokens_before_reach_so_far_and_no_further():
    torch.manual_seed(0)
    model = GPT(Recipe(layers=1, d_model=8, heads=2, previous_tokens=3).model_config(11))
    ids = torch.randint(10, (1, 9))
    with torch.no_grad():
        moved = model.vectors(ids).ne(model.vectors(ids.where(torch.arange(9) != 2, 10)))
    assert moved.any(-1)[0].nonzero().flatten().tolist() == [2, 3, 4, 5]


def test_scaled_blocks_add_nothing_at_first_and_light_norms_hold_nothing():
    torch.manual_seed(0)
    options = {"initialisation": "width", "tied": False}
    options |= {"norm": "rms", "activation": "relu_squared"}
    model = GPT(Recipe(**options).model_config(11))
    x = torch.randn(2, 5, 128)
    assert all(torch.equal(block(x)[0], x) for block in model.blocks)
    assert not any("norm" in name for name, _ in model.named_parameters())
    ids = torch.randint(11, (20, CONTEXT))
    assert not model(ids).any()
    assert model.vectors(ids).std().item() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("ideas", [(), tuple(IDEAS)])
def test_a_recipe_learns_a_rhyme(ideas):
    ids = torch.arange(4000) % 7
    smaller = {"steps": 25, "warmup": 1, "layers": 1, "d_model": 32, "heads": 2}
    recipe = recipe_of(ideas, **smaller, **({} if ideas else {"learning_rate": 1e-2}))
    model = train_recipe(recipe, ids, 7)
    assert study.estimate(model, ids, CONTEXT, 10) < 0.7  # log 7 = 1.95


# --- the judge ------------------------------------------------------------------------


def test_the_judge_judges_on_what_no_entry_sees(corpus):
    seen = []

    def entry(training, tuning, vocab_size, seed):
        seen.extend([training, tuning])
        assert (vocab_size, seed) == (VOCAB_SIZE, 5)
        return Constant()  # it expects `c`

    verdict = study.judge(entry, corpus, 5)
    assert verdict["loss"] < 0.01  # all of it is `c`
    assert verdict["tuning"] > 5  # of `b`
    training, tuning = seen
    assert len(training) == 9 * 2 * len(tuning)  # nine tenths, and half of the last one
    assert (tuning == 1).all()  # all of it is `b`
    for ids in seen:  # no view of the whole
        assert ids.untyped_storage().nbytes() == ids.nbytes
    training.zero_()
    assert study.parts(corpus)[1].any()  # nor can it change what the next one sees


def test_the_clock_runs_from_the_call_to_the_return(corpus, monkeypatch):
    now = iter([10.0, 17.0])
    monkeypatch.setattr(study.time, "perf_counter", lambda: next(now))
    monkeypatch.setattr(study.time, "process_time", iter([1.0, 3.0]).__next__)
    verdict = study.judge(lambda *_: Constant(), corpus, 0)
    assert (verdict["wall"], verdict["seconds"]) == (7.0, 2.0)


def held(size):
    model = Constant()
    model.register_buffer("table", torch.zeros(size))
    return model


REFUSED = {
    "must return a torch.nn.Module, not function": lambda *_: lambda ids: ids,
    "1,004 parameters and buffers: at most 1,000": lambda *_: Constant(size=1001),
    "1,003 parameters and buffers: at most 1,000": lambda *_: held(999),
    "it failed: ZeroDivisionError: division": lambda *_: 1 / 0,
    "it failed: TypeError": lambda training: Constant(),
    "must return logits .* not torch.Size": lambda *_: other(lambda ids: ids.float()),
    "must return logits .* not tuple": lambda *_: other(lambda ids: (ids, ids)),
    "looks ahead": lambda *_: Ahead(),
    "its loss is nan": lambda *_: other(
        lambda ids: torch.full((*ids.shape, VOCAB_SIZE), torch.nan)
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_breaks_a_rule_is_refused_with_its_reason(words, corpus):
    with pytest.raises(study.Refused, match=words):
        study.judge(REFUSED[words], corpus, 0, most=1000)


# --- the command ----------------------------------------------------------------------

ENTRY = """import torch

class Model(torch.nn.Linear):
    def forward(self, ids):
        return super().forward(torch.nn.functional.one_hot(ids, 3).float())

def train(training, tuning, vocab_size, seed):
    return Model(vocab_size, vocab_size)
"""


@pytest.fixture
def quick(monkeypatch):
    """One step, whatever the way, judged on few windows."""
    monkeypatch.setitem(study.SETTINGS, "windows", 4)
    whole = bench.entry_of
    monkeypatch.setattr(bench, "entry_of", lambda way, steps=None: whole(way, 1))


def test_an_entry_is_judged_beside_the_reference(tmp_path, corpus, quick, capsys):
    file = tmp_path / "mine.py"
    file.write_text(ENTRY)
    assert bench.main(corpus, "--with", str(file), "--seeds", "2") == 0
    lines = capsys.readouterr().out.splitlines()
    ways = [line.split()[0] for line in lines[1:4]]
    assert ways == ["reference", "record", str(file)]
    verdict = json.loads(lines[-1])
    assert (verdict["way"], verdict["parameters"]) == (str(file), 12)
    assert verdict["reached"] == (verdict["loss"] <= study.SETTINGS["target"])


def test_an_entry_may_lie_at_home(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text("learn = 1")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert bench.main("--with=~/mine.py") == 1
    assert "mine.py defines no train" in capsys.readouterr().err


def test_an_entry_may_use_its_own_name(tmp_path, capsys):
    (tmp_path / "mine.py").write_text("open(__file__ + '.txt', 'w').close()")
    assert bench.main("--with", str(tmp_path / "mine.py")) == 1
    assert "mine.py defines no train" in capsys.readouterr().err
    assert (tmp_path / "mine.py.txt").is_file()


def test_the_pages_entry_is_a_file_of_its_own(tmp_path, monkeypatch):
    (cell,) = [c for c in page_cells("scaling") if "train" in definitions(c.source)]
    file = tmp_path / "mine.py"
    file.write_text(cell.source)
    monkeypatch.setattr("lmcourse.speedrun.train_recipe", lambda *given: given)
    recipe, *rest = bench.load_entry(file)("ids", "tuning", 65, 7)
    assert [type(recipe), *rest] == [Recipe, "ids", 65, 7]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def train(", "cannot be run: SyntaxError"),
        ("learn = 1", "defines no train"),
        (ENTRY.replace("(vocab_size, vocab_size)", "(3, 300_000)"), "at most 800,000"),
    ],
)
def test_a_wrong_entry_is_told_why(code, words, tmp_path, corpus, quick, capsys):
    file = tmp_path / "mine.py"
    file.write_text(code)
    assert bench.main(corpus, "--with", str(file), "--seeds", "1") == 1
    assert words in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("record", "loss", "verdict"),
    [(3.0, 1.9, "holds"), (2.0, 1.9, "not so"), (3.0, 2.0, "not so")],
)
def test_four_ideas_hold_if_they_are_good_enough_and_soon_enough(record, loss, verdict):
    """Their five seconds are to be less than twice the record's."""
    fast = [
        {"way": "record", "seed": s, "seconds": record, "loss": 1.89} for s in (0, 1, 2)
    ]
    four = [{"way": "four", "seed": s, "seconds": 5.0, "loss": loss} for s in range(9)]
    assert four_ideas.summary({"ways": fast + four})["verdict"] == verdict


def test_other_rates_are_the_same_recipe_otherwise():
    plain = recipe_of(study.WAYS["without before"])
    twice = four_ideas.recipe("without before, twice the rates")
    assert twice.learning_rate == 2 * plain.learning_rate
    assert twice.muon_learning_rate == 2 * plain.muon_learning_rate
    assert (twice.steps, twice.previous_tokens) == (plain.steps, 0)
