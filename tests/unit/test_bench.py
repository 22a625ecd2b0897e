"""What a benchmark prints, and that all of them are run."""

from lmbook.bench import __main__ as command


def test_without_a_name_all_are_run_though_one_fails(monkeypatch, capfd):
    """In processes of their own, which know neither of these names."""
    monkeypatch.setattr(command, "NAMES", ("no such one", "nor this one"))
    assert command.main([]) == 2
    usage = "usage: python -m lmbook.bench [bpe|layers|numpy|play"
    assert capfd.readouterr().out.count(usage) == 2


def test_an_unknown_name_gets_those_that_there_are(capsys):
    assert command.main(["cat"]) == 2
    assert "bpe|layers|numpy|play" in capsys.readouterr().out
