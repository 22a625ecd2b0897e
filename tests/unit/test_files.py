"""Files are whole or as they were; one process at a time; `~` is the home folder."""

import multiprocessing
import os
from pathlib import Path

import pytest

from lmcourse.files import locked, write_whole
from patience import PATIENCE


@pytest.mark.parametrize("content", [b"\x00\xff", "Liebe, ἀγάπη\n"])
def test_what_is_written_is_there_and_alone(tmp_path, content):
    path = tmp_path / "a" / "b.txt"
    for _ in range(2):
        write_whole(path, content)
    expected = content if isinstance(content, bytes) else content.encode()
    assert path.read_bytes() == expected
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.parametrize("moment", ["open", "fsync", "replace"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_whatever_stops_it_the_former_file_is_whole(tmp_path, monkeypatch, error, moment):
    def stop(*args, **kwargs):
        raise error("No space left")

    path = tmp_path / "a.txt"
    write_whole(path, "before")
    monkeypatch.setattr(os if moment == "fsync" else Path, moment, stop)
    with pytest.raises(error, match="No space left"):
        write_whole(path, "after")
    monkeypatch.undo()
    assert path.read_text() == "before"
    assert [*tmp_path.iterdir()] == [path]


def test_home_is_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    write_whole("~/runs/x", "here")
    assert (tmp_path / "runs" / "x").read_text() == "here"
    assert not (tmp_path / "~").exists()


def try_lock(path, answers):
    try:
        with locked(path):
            answers.put("mine")
    except OSError as error:
        answers.put(str(error))


def test_one_process_at_a_time(tmp_path):
    path = tmp_path / "run.safetensors"
    processes = multiprocessing.get_context("fork")
    answers = processes.Queue()

    def ask():
        process = processes.Process(target=try_lock, args=(path, answers))
        process.start()
        answer = answers.get(timeout=PATIENCE)
        process.join()
        return answer

    with locked(path):
        assert ask().startswith(f"another process is writing {path}: wait until it ends")
    assert ask() == "mine"
    assert [*tmp_path.iterdir()] == []
