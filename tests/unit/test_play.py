"""What the site's models are made of."""

import pytest
import torch
from sphinx.errors import ExtensionError

from gpts import write_gpt2
from lmbook.bench.play import over_limits
from lmbook.execute.compare import VIEW
from lmbook.execute.run import chapters, stored
from lmbook.play import stores as play
from lmcourse.gpt.checkpoints import save
from lmcourse.gpt.model import GPTConfig, make_model
from lmcourse.train import new_run

SIZES = {"context": 5, "layers": 1, "heads": 2, "d_model": 8, "ngrams": (13, 17)}
SIZES |= {"steps": 9, "batch": 3, "warmup": 2, "validation_windows": 4}


def test_a_store_is_made_once_and_staged_anew_when_it_changes(tmp_path, monkeypatch):
    made = []

    def make():
        made.append(1)
        return b"x" * 10

    monkeypatch.setitem(play.STORES, "gpt", make)
    lib, work = tmp_path / "lib", tmp_path / "work"
    about = play.stage("gpt", lib, work)
    assert about == play.stage("gpt", lib, work)
    (lib / "play" / "gpt" / "about.json").unlink()
    play.stage("gpt", lib, work)
    assert (lib / "play" / "gpt" / "about.json").is_file()
    assert len(made) == 1
    monkeypatch.setenv("LMCOURSE_GPT", str(tmp_path))
    assert play.stage("gpt", lib, work)["key"] != about["key"]
    assert len(made) == 2


def test_a_store_that_is_none_is_told(tmp_path):
    with pytest.raises(ExtensionError, match="a view asks for 'cat'"):
        play.stage("cat", tmp_path, tmp_path)


def test_a_model_that_the_page_cannot_run_is_refused():
    model = make_model(GPTConfig(5, 4, 1, heads=1, d_model=4, ngrams=[7]))
    with pytest.raises(ValueError, match="n-grams does not run in the page"):
        play.gpt_file(model, "abcde")


def test_query_key_and_value_have_their_own_matrices():
    model = make_model(GPTConfig(5, 4, 1, heads=2, d_model=4))
    found = play.gpt_tensors(model)
    parts = [found[f"blocks.0.attention.{p}.weight"] for p in ("query", "key", "value")]
    assert torch.equal(torch.cat(parts), model.blocks[0].attention.qkv.weight)
    assert "blocks.0.attention.qkv.weight" not in found


def test_what_breaks_a_limit_is_told():
    row = {"gpt_first_s": 0.1, "bert_20_s": 0.2, "longest_ms": 0, "characters_s": 300.0}
    assert over_limits([{"way": "served", **row}]) == []
    slow = {"way": "a file", **row, "bert_20_s": 2.0, "characters_s": 50.0}
    assert over_limits([slow]) == [
        "a file: bert_20_s 2.00, more than 1.5",
        "a file: 50 characters a second",
    ]


def test_a_gpt_that_does_not_run_in_the_page_leaves_the_course_s_there(
    tmp_path, monkeypatch
):
    wanted = play.STORES["gpt"]()
    write_gpt2(tmp_path / "gpt-2", std=0.02)
    monkeypatch.setenv("LMCOURSE_GPT", str(tmp_path / "gpt-2"))
    assert play.STORES["gpt"]() == wanted


def test_nor_does_a_fast_run_of_ours(tmp_path, monkeypatch):
    wanted = play.STORES["gpt"]()
    tokenizer, trainer = new_run("Wild nights! " * 40, device="cpu", **SIZES)
    path = tmp_path / "fast.safetensors"
    save(path, trainer, tokenizer.alphabet, "0" * 64)
    monkeypatch.setenv("LMCOURSE_GPT", str(path))
    assert play.STORES["gpt"]() == wanted


@pytest.mark.parametrize("page", chapters(), ids=lambda page: page.stem)
def test_a_page_asks_for_the_model_whose_weights_it_is_given(page):
    notebook = stored(page.stem)
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", ())]
    views = [o["data"][VIEW] for o in outputs if VIEW in o.get("data", ())]
    asked, of_bert = notebook.metadata.lmbook.asked, {"bert", "bert-pieces", "neighbours"}
    for view in views:
        stores = {*view["data"].get("stores", [])}
        assert "gpt" not in stores or "LMCOURSE_GPT" in asked
        assert not stores & of_bert or "LMCOURSE_BERT" in asked


def test_whatever_makes_a_store_is_in_its_key(tmp_path, monkeypatch):
    before = play._key("sonnets-training")
    (tmp_path / "data.py").write_text("another")
    files = [
        tmp_path / "data.py" if f.name == "data.py" else f for f in play.course_modules()
    ]
    monkeypatch.setattr(play, "course_modules", lambda: files)
    assert play._key("sonnets-training") != before
