"""The model that comes with the course is the one its record describes."""

import pytest
import torch

from lmcourse import data
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.gpt2 import to_transformers
from lmcourse.gpt.training import TrainingConfig, estimate


def test_the_model_of_the_sonnets():
    tokenizer, model, record = load_gpt("sonnets", device="cpu")
    text = data.load_corpus("sonnets")
    assert record["corpus_sha256"] == data.fingerprint(text)
    assert tokenizer.alphabet == "".join(sorted(set(text)))
    assert model.parameters_count == record["parameters"]
    assert not model.training
    parts = data.train_val_test_split(data.load_texts("sonnets"))
    validation = torch.tensor(tokenizer.encode(parts.validation))
    count = TrainingConfig(**record["training"]).validation_windows
    loss = estimate(model, validation, model.config.context, count)
    assert loss == pytest.approx(record["val_loss"], abs=1e-4)
    assert to_transformers(model).config.n_layer == model.config.layers


def test_the_files_are_small():
    """They travel in the wheel, which Colab downloads for every notebook."""
    largest = 4 * 2**20  # bytes
    for file in (data.corpora_folder() / "checkpoints").iterdir():
        assert file.stat().st_size < largest, file.name
