"""The weekly run goes on after a failure, and does not forget it."""

import sys

import pytest

import steady

SAYS = "import os, sys; print('says', os.environ['N']); print('end'); sys.exit({status})"


def run(name, status):
    return steady.Run(
        "fuzz", [sys.executable, "-c", SAYS.format(status=status)], {"N": name}
    )


@pytest.mark.parametrize(("statuses", "failed"), [("0110", 2), ("00", 0)])
def test_every_run_is_made_and_failures_are_shown(monkeypatch, statuses, failed, capfd):
    runs = [run(str(i), status) for i, status in enumerate(statuses)]
    monkeypatch.setattr(steady, "plan", lambda parts, options: runs)
    assert steady.main([]) == (failed > 0)
    *lines, last = capfd.readouterr().out.splitlines()
    verdicts = [line for line in lines if line.startswith(("passed", "failed"))]
    assert [line.startswith("failed") for line in verdicts] == [s == "1" for s in statuses]
    assert all(f"N={i}: end" in line for i, line in enumerate(verdicts))
    assert ("says 1" in lines) == bool(failed)
    assert "says 0" not in lines
    assert last.startswith(f"{len(runs) - failed} of {len(runs)} runs passed")


def parts(*arguments, monkeypatch):
    seen = []
    monkeypatch.setattr(steady, "succeeds", lambda run, allowed: not seen.append(run))
    assert steady.main([*arguments]) == 0
    return seen


def test_what_is_run(monkeypatch):
    runs = parts(monkeypatch=monkeypatch)
    assert list(dict.fromkeys(run.part for run in runs)) == list(steady.PARTS)
    settings = [run.setting for run in runs if run.part == "settings"]
    assert [s["JITTER"] for s in settings] == [*"12345"] + 5 * ["off"]
    assert len({str(setting) for setting in settings}) == 10
    runs = parts("-k", "mini-gpt", monkeypatch=monkeypatch)
    assert {run.part for run in runs} == {"settings", "looks"}
    assert all(run.command[-2:] == ["-k", "mini-gpt"] for run in runs)
    (only,) = parts("--only", "swap", monkeypatch=monkeypatch)
    assert only.part == "swap"
