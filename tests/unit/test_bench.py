"""What a benchmark prints, and that all of them are run."""

import subprocess
from types import SimpleNamespace

from lmbook.bench import __main__ as command


def test_without_a_name_all_are_run_whatever_one_says(monkeypatch, capsys):
    def run(line, check):
        ran.append(line[-1])
        return SimpleNamespace(returncode=int(line[-1] == "bpe"))

    ran = []
    monkeypatch.setattr(subprocess, "run", run)
    assert command.main([]) == 1
    assert tuple(ran) == command.NAMES
    assert command.main(["cat"]) == 2
    assert "bpe|layers|numpy|play" in capsys.readouterr().out
