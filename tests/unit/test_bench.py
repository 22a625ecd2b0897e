"""What a benchmark prints, and that all of them are run."""

import json
import subprocess
from types import SimpleNamespace

from lmbook.bench import __main__ as command
from lmbook.bench import build


def test_without_a_name_all_are_run_whatever_one_says(monkeypatch, capsys):
    def run(line, check):
        ran.append(line[-1])
        return SimpleNamespace(returncode=int(line[-1] == "bpe"))

    ran = []
    monkeypatch.setattr(subprocess, "run", run)
    assert command.main([]) == 1
    assert tuple(ran) == command.NAMES
    assert command.main(["cat"]) == 2
    assert "bpe|layers|numpy|play|build" in capsys.readouterr().out


def test_where_the_time_went_is_told_of_the_build_that_is_meant(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("LMBOOK_BUILD", str(tmp_path))
    assert build.main() == 1
    assert f"{tmp_path / 'times.json'} is missing" in capsys.readouterr().out
    (tmp_path / "times.json").write_text('{"reading": 2.5}')
    assert build.main() == 0
    *table, last = capsys.readouterr().out.splitlines()
    assert table[-1].split() == ["reading", "2.5"]
    assert json.loads(last)["build_s"] == 2.5
