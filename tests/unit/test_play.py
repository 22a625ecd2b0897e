"""What the site's models are made of."""

import pytest

from compare import VIEW
from gpts import write_gpt2
from lmbook.execute.run import chapter_paths, load_stored_notebook
from lmbook.play import stores as play
from lmcourse.gpt.checkpoints import save
from lmcourse.train import new_run

SIZES = {"context": 5, "layers": 1, "heads": 2, "d_model": 8, "ngrams": (13, 17)}
SIZES |= {"steps": 9, "batch": 3, "warmup": 2, "validation_windows": 4}


def test_a_store_is_made_once_and_staged_anew_when_it_changes(tmp_path, monkeypatch):
    calls = []

    def make():
        calls.append(1)
        return b"x" * 10

    monkeypatch.setitem(play.STORES, "gpt", make)
    lib, work = tmp_path / "lib", tmp_path / "work"
    description = play.stage("gpt", lib, work)
    assert description == play.stage("gpt", lib, work)
    (lib / "play" / "gpt" / "about.json").unlink()
    play.stage("gpt", lib, work)
    assert (lib / "play" / "gpt" / "about.json").is_file()
    assert len(calls) == 1
    monkeypatch.setenv("LMCOURSE_GPT", str(tmp_path))
    assert play.stage("gpt", lib, work)["key"] != description["key"]
    assert len(calls) == 2


@pytest.mark.parametrize("name", ["gpt", "talker"])  # as scripts, as files
@pytest.mark.parametrize("torn", ["", '{"bytes": 10, "che', "null"])
def test_a_store_that_was_not_written_to_its_end_is_made_again(
    name, torn, tmp_path, monkeypatch
):
    monkeypatch.setitem(play.STORES, name, lambda: b"x" * 10)
    lib, work = tmp_path / "lib", tmp_path / "work"
    description = play.stage(name, lib, work)
    (about,) = work.glob("*/about.json")
    whole = about.read_text()
    about.write_text(torn)
    assert play.stage(name, lib, work) == description
    assert about.read_text() == whole
    assert (lib / "play" / name / "about.json").read_text() == whole


def test_a_store_that_is_made_again_leaves_the_files_of_a_site_alone(tmp_path, monkeypatch):
    """A site's large files are links to them: written over, they are torn for a while."""
    monkeypatch.setitem(play.STORES, "talker", lambda: b"x" * 10)
    work = tmp_path / "work"
    play.stage("talker", tmp_path / "lib", work)
    (about,) = work.glob("*/about.json")
    (part,) = work.glob("*/0.bin")
    (tmp_path / "site.bin").hardlink_to(part)
    about.write_text("torn")
    play.stage("talker", tmp_path / "lib", work)
    assert part.read_bytes() == b"x" * 10
    assert not part.samefile(tmp_path / "site.bin")


def gpt_2(path):
    write_gpt2(path, std=0.02)


def with_ngrams(path):
    tokenizer, trainer = new_run("Wild nights! " * 40, device="cpu", **SIZES)
    save(path, trainer, tokenizer.alphabet, "0" * 64)


@pytest.mark.parametrize(
    ("write", "name"), [(gpt_2, "folder"), (with_ngrams, "fast.safetensors")]
)
def test_a_gpt_that_does_not_run_in_the_page_leaves_the_course_s_there(
    write, name, tmp_path, monkeypatch
):
    wanted, path = play.STORES["gpt"](), tmp_path / name
    write(path)
    monkeypatch.setenv("LMCOURSE_GPT", str(path))
    assert play.STORES["gpt"]() == wanted


@pytest.mark.parametrize("page", chapter_paths(), ids=lambda page: page.stem)
def test_a_page_asks_for_the_model_whose_weights_it_is_given(page):
    notebook = load_stored_notebook(page.stem)
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
