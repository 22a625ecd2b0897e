"""What a benchmark prints, and that all of them are run."""

import pkgutil
import subprocess
from importlib import import_module

from lmbook import bench
from lmbook.bench import __main__ as command


def test_without_a_name_all_are_run_though_one_fails(monkeypatch):
    """In processes of their own, each module of the package that can be run."""
    names = [module.name for module in pkgutil.iter_modules(bench.__path__)]
    names.remove("__main__")
    wanted = [n for n in names if hasattr(import_module(f"lmbook.bench.{n}"), "main")]
    begun = []

    def run(arguments, **_options):
        begun.append(arguments[1:])
        return subprocess.CompletedProcess(arguments, 2 if len(begun) == 1 else 0)

    monkeypatch.setattr(command.subprocess, "run", run)
    assert command.main([]) == 2
    assert begun == [["-m", "lmbook.bench", name] for name in wanted]


def test_an_unknown_name_gets_those_that_there_are(capsys):
    assert command.main(["cat"]) == 2
    assert "bpe|layers|numpy|play" in capsys.readouterr().out
