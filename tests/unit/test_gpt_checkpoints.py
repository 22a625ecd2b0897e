"""Checkpoints: a run goes on as if it had not stopped; a file is not to be trusted."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from lmcourse.data import fingerprint
from lmcourse.gpt.checkpoints import describe, load_gpt, restore, save
from lmcourse.tokenization import CharTokenizer
from lmcourse.train import new_run

TEXT = "Shall I compare thee to a summer's day?\nThou art more lovely, and more so.\n" * 3
CORPUS, ALPHABET = fingerprint(TEXT), CharTokenizer(TEXT).alphabet
SIZES = {"context": 5, "layers": 1, "heads": 2, "d_model": 8, "ngrams": (13, 17)}
TRAINING = {
    "steps": 8,
    "batch": 3,
    "warmup": 2,
    "evaluate_every": 2,
    "validation_windows": 4,
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.safetensors"


def trainer(**changes):
    return new_run(TEXT, "fast", device="cpu", **SIZES | TRAINING | changes)[1]


def advance(one, steps, path=None):
    """Take steps, estimate, and save if there is a file to save to."""
    for _ in range(steps):
        one.step()
    one.evaluate()
    if path:
        save(path, one, ALPHABET, CORPUS)
    return one


def same(one, other):
    """Are two states equal, bit by bit?"""
    assert one.keys() == other.keys()
    return all(torch.equal(one[name], other[name]) for name in one)


def optimizer_states(one):
    """Return what the optimizers keep, by number, parameter and key."""
    return {
        (number, index, key): tensor.clone()
        for number, optimizer in enumerate(one.optimizers)
        for index, state in optimizer.state_dict()["state"].items()
        for key, tensor in state.items()
    }


# --- round trips ----------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("steps", [0, 3])
def test_a_restored_run_goes_on_as_if_it_had_not_stopped(path, optimizer, steps):
    whole = advance(trainer(optimizer=optimizer), steps, path)
    resumed = trainer(optimizer=optimizer)
    torch.nn.init.ones_(resumed.gpt.tokens.weight)
    restore(path, resumed, CORPUS)
    assert same(resumed.gpt.state_dict(), whole.gpt.state_dict())
    assert resumed.progress == whole.progress
    for one in (whole, resumed):
        advance(one, 4)
    assert same(resumed.gpt.state_dict(), whole.gpt.state_dict())
    assert optimizer_states(resumed)
    assert same(optimizer_states(resumed), optimizer_states(whole))
    losses = [
        [(h["train_loss"], h["val_loss"]) for h in x.history] for x in (whole, resumed)
    ]
    assert losses[0] == losses[1]
    assert [entry["step"] for entry in resumed.history] == [steps, steps + 4]


def test_a_checkpoint_is_one_file_and_a_model_is_loaded_from_it(path):
    one = advance(advance(trainer(), 1, path), 1, path)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert {name.split(".")[0] for name in load_file(path)} == {"model", "optimizer"}
    tokenizer, model, record = load_gpt(path, "cpu")
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT
    assert model.config == one.gpt.config
    assert not model.training
    assert same(model.state_dict(), one.gpt.state_dict())
    assert record["progress"]["history"] == one.history
    assert record["threads"] == torch.get_num_threads()
    ids = torch.tensor([tokenizer.encode("Thou ")])
    assert torch.equal(model(ids), one.gpt.eval()(ids))


# --- files that are not to be trusted -------------------------------------------------


def refused(path, message, loads=False):
    """Nothing is restored (or loaded, unless it ``loads``); the error names the file."""
    one = advance(trainer(), 1)
    weights = {name: x.clone() for name, x in one.gpt.state_dict().items()}
    before, progress = optimizer_states(one), (one.progress.step, list(one.history))
    with pytest.raises(ValueError, match=message) as caught:
        restore(path, one, CORPUS)
    assert str(path) in str(caught.value)
    assert same(one.gpt.state_dict(), weights)  # all or nothing
    assert same(optimizer_states(one), before)
    assert (one.progress.step, one.history) == progress
    if loads:
        load_gpt(path, "cpu")
    else:
        with pytest.raises(ValueError, match=message):
            load_gpt(path, "cpu")


def rewrite(path, spoil_tensors=None, spoil_record=None):
    """Write a checkpoint of two steps whose tensors or whose record are changed."""
    one = advance(trainer(), 2, path)
    tensors, record = load_file(path), describe(one, ALPHABET, CORPUS)
    if spoil_tensors:
        spoil_tensors(tensors)
    if spoil_record:
        spoil_record(record)
    save_file(tensors, path, {"record": json.dumps(record)})


STEP, MOMENT = "optimizer.tokens.weight.step", "optimizer.tokens.weight.exp_avg"
NORM = "model.norm.weight"


def drop_optimizer(tensors):
    for name in [name for name in tensors if name.startswith("optimizer.")]:
        del tensors[name]


@pytest.mark.parametrize(
    ("spoil", "message", "loads"),
    [
        (lambda t: t.pop(NORM), f"lacks 1 tensor: {NORM}", False),
        (lambda t: t.update(alien=torch.ones(2)), "alien", False),
        (drop_optimizer, "lacks", True),
        (lambda t: t.update({MOMENT: torch.ones(2)}), "exp_avg has the shape", True),
        (lambda t: t.update({MOMENT[:-3]: t.pop(MOMENT)}), "lacks", True),
        (lambda t: t.update({STEP: torch.tensor(9.0)}), "is not the step 2", True),
    ],
)
def test_tensors_of_another_kind(path, spoil, message, loads):
    rewrite(path, spoil)
    refused(path, message, loads)


def put(part, **values):
    return lambda record: record[part].update(values)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (put("model", context=10**9), "context"),
        (put("model", layers=2000), "fewer tensors than 2002 layers|layers = 2000"),
        (put("model", d_model=10**8), "d_model|has the shape"),
        (put("model", heads=3), "heads"),
        (put("model", ngrams=[13, 10**8]), "ngrams|has the shape"),
        (lambda record: record["model"].clear(), "vocab_size"),
        (lambda record: record.update(model=[]), "a wrong 'model'"),
        (lambda record: record.pop("model"), "a wrong 'model'"),
    ],
)
def test_a_record_that_makes_no_model(path, spoil, message):
    rewrite(path, spoil_record=spoil)
    refused(path, message)


@pytest.mark.parametrize("alphabet", [ALPHABET[1:], "ab", None, list(ALPHABET)])
def test_an_alphabet_is_as_long_as_the_table(path, alphabet):
    rewrite(path, spoil_record=lambda record: record.update(alphabet=alphabet))
    with pytest.raises(ValueError, match=r"cannot be right: .* no alphabet") as caught:
        load_gpt(path, "cpu")
    assert str(path) in str(caught.value)


ENTRY = {"step": 2, "train_loss": 1.0, "val_loss": 1.0, "seconds": 0.0}


@pytest.mark.parametrize(
    "progress",
    [
        {"mood": "good"},
        {"step": "2"},
        {"seconds": None},
        {"history": []},
        *({"history": value} for value in (3, [3], [{"step": 2}])),
        *({"history": [ENTRY | {"val_loss": value}]} for value in (None, "x", 10**400)),
    ],
    ids=lambda value: str(value)[:40],
)
def test_strange_progress_restores_nothing(path, progress):
    rewrite(path, spoil_record=put("progress", **progress))
    refused(path, "a wrong 'progress'", loads=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 16}, "trained with d_model = 8, not 16"),
        ({"ngrams": (13, 18)}, r"trained with ngrams = \(13, 17\), not \(13, 18\)"),
        ({"learning_rate": 0.5}, "trained with learning_rate = 0.02, not 0.5"),
        ({"seed": 1}, "trained with seed = 0, not 1: resume with the same settings, or"),
        ({}, "another corpus"),
    ],
    ids=str,
)
def test_other_settings_and_another_corpus_are_named(path, changes, message):
    advance(trainer(), 2, path)
    with pytest.raises(ValueError, match=message):
        restore(path, trainer(**changes), CORPUS if changes else fingerprint("another"))
