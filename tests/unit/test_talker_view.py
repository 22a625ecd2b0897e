"""Another model for the view *talker*: what the page cannot run is refused; why is said."""

import gguf
import numpy as np
import pytest

from lmcourse import llama, views
from lmcourse.gguf import GgufFile
from lmcourse.views.talker import page_file, why_not_in_page

OWN = GgufFile(llama.talker_file()).fields
SAME = {
    name: OWN[name]
    for name in ("tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.chat_template")
}
OTHER_TEMPLATE = "{% for message in messages %}[{{ message['content'] }}]{% endfor %}"


def write(path, fields, kind="Q4_1", matrices=("token_embd.weight",)):
    """Write a GGUF file that has these fields, and a matrix of each name."""
    writer = gguf.GGUFWriter(path, "llama")
    for name, text in fields.items():
        writer.add_string(name, text)
    number = gguf.GGMLQuantizationType[kind]
    for name in matrices:
        stored = gguf.quants.quantize(np.ones((5, 64), np.float32), number)
        writer.add_tensor(name, stored, raw_dtype=number)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def without(name):
    return {key: text for key, text in SAME.items() if key != name}


@pytest.mark.parametrize(
    ("fields", "more", "reason"),
    [
        (SAME, {}, ""),
        (SAME | {"tokenizer.chat_template": OTHER_TEMPLATE}, {}, "another chat template"),
        (without("tokenizer.chat_template"), {}, "another chat template"),
        (SAME | {"tokenizer.ggml.pre": "llama-bpe"}, {}, "another tokenizer"),
        (without("tokenizer.ggml.model"), {}, "another tokenizer"),
        (SAME, {"kind": "Q4_0"}, "stored as Q4_0"),
        (SAME, {"matrices": ("token_embd.weight", "output.weight")}, "matrix of its own"),
    ],
)
def test_what_the_page_cannot_run_is_said(tmp_path, monkeypatch, fields, more, reason):
    file = write(tmp_path / "other.gguf", fields, **more)
    monkeypatch.setenv(llama.VARIABLE, str(file))
    why = why_not_in_page()
    assert reason in why
    assert bool(why) == bool(reason)
    assert page_file() == (llama.talker_file() if reason else file)


def test_the_view_shows_what_was_computed_and_why_no_more(tmp_path, monkeypatch):
    tokenizer, model = llama.load_talker(device="cpu")
    fields = SAME | {"tokenizer.chat_template": OTHER_TEMPLATE}
    file = write(tmp_path / "other.gguf", fields)
    monkeypatch.setenv(llama.VARIABLE, str(file))
    view = views.talker("The sea is", tokenizer, model, dialogue=False, count=2)
    assert view.data is None
    assert not view.stores
    assert "another chat template" in view.stored
    assert "The sea is" in view.stored
