"""The corpora: what is in them, and damaged files."""

import hashlib

import pandas as pd
import pytest

from lmcourse import data
from lmcourse.data import load_corpus, load_poems, load_sonnets


def test_poems():
    poems = load_poems()
    assert " ".join(poems.columns) == "title first_line text series section number"
    assert len(poems) >= 100
    assert sorted(poems.series.unique()) == [1890, 1891, 1896]
    assert {*poems.section} == {"Life", "Love", "Nature", "Time and Eternity"}
    assert not poems.duplicated("text").any()
    assert (poems.text.str.count("\n") >= 2).all()
    assert (poems.text == poems.text.str.strip()).all()
    for poem in poems.itertuples():
        assert poem.text.startswith(poem.first_line)


DEATH = "THE CHARIOT", 1890, "Time and Eternity", 27


@pytest.mark.parametrize(
    ("first_line", "row"),
    [
        ("Because I could not stop for Death,", DEATH),
        ("I'm nobody! Who are you?", ("", 1891, "Life", 1)),
        ("There is no frigate like a book", ("A BOOK", 1896, "Life", 16)),
        ("Wild nights! Wild nights!", ("", 1891, "Love", 7)),
    ],
)
def test_well_known_poems(first_line, row):
    poems = load_poems().set_index("first_line")
    assert (*poems.loc[first_line, ["title", "series", "section", "number"]],) == row


def test_sonnets():
    sonnets = load_sonnets()
    assert list(sonnets.number) == list(range(1, 155))
    lines = sonnets.set_index("number").text.str.count("\n") + 1
    assert lines[99] == 15
    assert lines[126] == 12
    assert (lines.drop([99, 126]) == 14).all()
    assert sonnets.first_line[17] == "Shall I compare thee to a summer's day?"


def test_known_misprints_are_mended():
    text = "\n".join(load_sonnets().text)
    for wrong, right in data.MISPRINTS.values():
        assert wrong not in text
        assert right in text


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "corpora_folder", lambda: tmp_path)
    return tmp_path


LOADERS = {"dickinson.txt": load_poems, "sonnets.txt": load_sonnets}
FOLDER = data.corpora_folder()


@pytest.mark.parametrize("name", LOADERS)
def test_a_corpus_is_whole_or_named(folder, name):
    whole, path = (FOLDER / name).read_bytes(), folder / name
    path.write_bytes(whole)
    want = LOADERS[name]()
    path.write_bytes(whole.replace(b"\n", b"\r\n"))  # as in a checkout on Windows
    pd.testing.assert_frame_equal(LOADERS[name](), want)
    for damaged in (whole[: len(whole) // 2], whole.replace(b"love", b"hate", 1), None):
        path.unlink()
        if damaged:
            path.write_bytes(damaged)
        with pytest.raises(ValueError, match="missing or not the corpus") as error:
            LOADERS[name]()
        assert f"{path} is missing" in str(error.value)
        assert "git checkout" in str(error.value)


def test_a_download_is_verified_kept_and_told_of_where_there_is_no_network(
    tmp_path, monkeypatch
):
    play, path = "First Citizen:\nSpeak.\n", tmp_path / "tinyshakespeare.txt"
    monkeypatch.setenv("LMCOURSE_CACHE", str(tmp_path))
    monkeypatch.setattr(data, "TINY_SHAKESPEARE", "http://127.0.0.1:9/input.txt")
    digest = hashlib.sha256(play.encode()).hexdigest()
    monkeypatch.setattr(data, "TINY_SHAKESPEARE_SHA256", digest)
    path.write_text(play)
    assert load_corpus("tinyshakespeare") == play  # no download
    path.write_text(play + "!")
    with pytest.raises(OSError, match=r"could not be had .*:9/input\.txt") as error:
        load_corpus("tinyshakespeare")
    assert f"{digest}) at {path} yourself" in str(error.value)
    assert 'load_corpus("sonnets"), which needs no network' in str(error.value)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"A bee\n", "A bee\n"),
        (b"\xef\xbb\xbfA bee\n", "A bee\n"),  # a byte-order mark
        (b"A bee\r\nsang\r\n", "A bee\nsang\n"),
        (b"A bee\rsang\r", "A bee\nsang\n"),
    ],
)
def test_how_a_file_was_saved_is_not_in_the_corpus(tmp_path, content, text):
    (tmp_path / "mine.txt").write_bytes(content)
    assert load_corpus(tmp_path / "mine.txt") == text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"caf\xe9", "is not UTF-8"),
        ("A bee".encode("utf-16"), "is not UTF-8 text, save it as such"),
        (b"A\nbee\0", "holds a NUL"),
        (b" \n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
    ],
)
def test_what_is_no_text_is_refused_by_name(tmp_path, content, message):
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        load_corpus(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("name", ["hamlet", "."])
def test_other_corpora_are_refused(name):
    with pytest.raises(FileNotFoundError, match="the corpora are 'sonnets'"):
        load_corpus(name)


@pytest.mark.parametrize("name", ["dickinson", "Sonnets", "tinyshakespeare", ""])
def test_other_collections_are_refused(name):
    with pytest.raises(ValueError, match=f"no collection of poems '{name}'; .*'sonnets'"):
        data.load_texts(name)


def test_too_few_to_split():
    with pytest.raises(ValueError, match="9 texts cannot be split"):
        data.train_val_test_split(["x"] * 9)


@pytest.mark.parametrize("name", data.POEMS)
def test_a_corpus_is_its_poems(name):
    assert "\n\n".join(data.load_texts(name)) + "\n" == data.load_corpus(name)


def test_poems_are_split_whole():
    texts = [f"poem {i}\nline" for i in range(23)]
    parts = data.train_val_test_split(texts)
    assert parts.validation == "poem 4\nline\n\npoem 14\nline\n"
    assert parts.test == "poem 9\nline\n\npoem 19\nline\n"
    poems = [poem for part in parts for poem in part.removesuffix("\n").split("\n\n")]
    assert sorted(poems) == sorted(texts)
