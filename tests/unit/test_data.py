"""The corpora: what is in them, from a checkout and from a wheel, and damaged files."""

import functools
import hashlib
import http.server
import os
import subprocess
import sys
import threading

import pandas as pd
import pytest

from lmcourse import data
from lmcourse.data import load_corpus, load_poems, load_sonnets

SECTIONS = ["Life", "Love", "Nature", "Time and Eternity"]


def test_poems():
    poems = load_poems()
    assert list(poems.columns) == [
        "title",
        "first_line",
        "text",
        "series",
        "section",
        "number",
    ]
    assert len(poems) >= 100
    assert sorted(poems.series.unique()) == [1890, 1891, 1896]
    assert set(poems.section) == set(SECTIONS)
    assert not poems.duplicated("text").any()
    assert (poems.text.str.count("\n") >= 2).all()
    assert (poems.text == poems.text.str.strip()).all()
    for poem in poems.itertuples():
        assert poem.text.startswith(poem.first_line)


@pytest.mark.parametrize(
    ("title", "first_line", "where"),
    [
        (
            "THE CHARIOT",
            "Because I could not stop for Death,",
            (1890, "Time and Eternity", 27),
        ),
        ("", "I'm nobody! Who are you?", (1891, "Life", 1)),
        ("A BOOK", "There is no frigate like a book", (1896, "Life", 16)),
        ("", "Wild nights! Wild nights!", (1891, "Love", 7)),
    ],
)
def test_well_known_poems(title, first_line, where):
    poems = load_poems()
    row = poems[poems.first_line == first_line].iloc[0]
    assert (row.series, row.section, row.number) == where
    assert row.title == title


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
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b"love", b"hate", 1),
    ],
)
def test_a_damaged_file_is_named(folder, name, damage):
    whole = (FOLDER / name).read_bytes()
    assert damage(whole) != whole
    (folder / name).write_bytes(damage(whole))
    with pytest.raises(ValueError, match="not the corpus it should be") as error:
        LOADERS[name]()
    assert str(folder / name) in str(error.value)
    assert "git checkout" in str(error.value)


@pytest.mark.parametrize("name", LOADERS)
def test_a_checkout_on_windows_holds_the_same_corpus(folder, name):
    whole = (FOLDER / name).read_bytes()
    (folder / name).write_bytes(whole)
    want = LOADERS[name]()
    (folder / name).write_bytes(whole.replace(b"\n", b"\r\n"))
    pd.testing.assert_frame_equal(LOADERS[name](), want)


@pytest.mark.parametrize("name", LOADERS)
def test_a_missing_file_is_named(folder, name):
    with pytest.raises(FileNotFoundError, match=rf"{name} is missing: restore"):
        LOADERS[name]()


PLAY = "First Citizen:\nBefore we proceed any further, hear me speak.\n"


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A server on loopback that has the file, and an empty cache."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "input.txt").write_text(PLAY)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    monkeypatch.setattr(handler.func, "log_message", lambda *args: None)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/input.txt"
    monkeypatch.setattr(data, "TINY_SHAKESPEARE", url)
    digest = hashlib.sha256(PLAY.encode()).hexdigest()
    monkeypatch.setattr(data, "TINY_SHAKESPEARE_SHA256", digest)
    monkeypatch.setenv("LMCOURSE_CACHE", str(tmp_path / "cache"))
    yield folder / "input.txt"
    server.shutdown()


def test_download_is_verified_and_kept(served, tmp_path):
    assert load_corpus("tinyshakespeare") == PLAY
    served.unlink()
    assert load_corpus("tinyshakespeare") == PLAY  # from the cache
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["tinyshakespeare.txt"]


def test_a_wrong_download_is_refused_and_not_left(served, tmp_path):
    served.write_text(PLAY + "!")
    with pytest.raises(OSError, match="could not be had") as error:
        load_corpus("tinyshakespeare")
    assert str(tmp_path / "cache" / "tinyshakespeare.txt") in str(error.value)
    assert 'load_corpus("sonnets")' in str(error.value)
    assert list((tmp_path / "cache").iterdir()) == []


def test_offline_the_error_tells_what_to_do(served, monkeypatch):
    monkeypatch.setattr(data, "TINY_SHAKESPEARE", "http://127.0.0.1:9/input.txt")
    with pytest.raises(OSError, match="needs no network"):
        load_corpus("tinyshakespeare")


def test_embedded_corpora_and_files(tmp_path):
    assert load_corpus("sonnets").startswith("From fairest creatures")
    assert load_corpus("poems").count("\n\n") >= len(load_poems())
    path = tmp_path / "mine.txt"
    path.write_text("A bee\n", encoding="utf-8")
    assert load_corpus(path) == "A bee\n"
    with pytest.raises(FileNotFoundError, match="the corpora are 'sonnets'"):
        load_corpus("hamlet")
    with pytest.raises(OSError, match="is a folder"):
        load_corpus(tmp_path)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\xef\xbb\xbfA bee\n", "A bee\n"),  # a byte-order mark
        (b"A bee\r\nsang\r\n", "A bee\nsang\n"),
        (b"A bee\rsang\r", "A bee\nsang\n"),
    ],
)
def test_how_a_file_was_saved_is_not_in_the_corpus(tmp_path, content, text):
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    assert load_corpus(path) == text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"caf\xe9", "is not UTF-8"),
        ("A bee".encode("utf-16"), "is not UTF-8 text, save it as such"),
        (b"A\nbee\0", "NUL at character 5, in line 2"),
        (b" \n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
    ],
)
def test_what_is_no_text_is_refused_by_name(tmp_path, content, said):
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=said) as error:
        load_corpus(path)
    assert str(path) in str(error.value)


def test_a_file_too_large_is_not_read(tmp_path):
    path = tmp_path / "mine.txt"
    with path.open("wb") as file:
        file.truncate(data.LARGEST + 1)  # takes no room on the disk
    with pytest.raises(ValueError, match=r"mine\.txt has 268,435,457 bytes"):
        load_corpus(path)


@pytest.mark.slow
def test_the_wheel_carries_the_corpora(tmp_path):
    root = data.Path(data.__file__).parents[2]
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*pip, "wheel", *options, "-w", tmp_path, root], check=True, cwd=tmp_path
    )
    (wheel,) = tmp_path.glob("lmcourse-*.whl")
    subprocess.run(
        [*pip, "install", "--no-deps", "--target", tmp_path / "site", wheel], check=True
    )
    code = (
        "import lmcourse.data as d; assert 'site' in d.__file__; "
        "d.load_poems().to_json('poems.json'); print(len(d.load_sonnets()))"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout.strip() == "154"
    stored = pd.read_json(tmp_path / "poems.json", dtype={"title": str})
    assert list(stored.text) == list(load_poems().text)


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
    found = [piece for part in parts for piece in part.removesuffix("\n").split("\n\n")]
    assert sorted(found) == sorted(texts)
