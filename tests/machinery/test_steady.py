"""The run under many conditions goes on after a failure, and does not forget it."""

import sys

import pytest

import steady

SCRIPT = "import os, sys; print('says', os.environ['N']); sys.exit(os.environ['N'] in 'bc')"
COMMAND = [sys.executable, "-c", SCRIPT]


@pytest.mark.parametrize(("names", "failed"), [("abcd", 2), ("ad", 0)])
def test_every_setting_is_run_and_failures_are_shown(names, failed, capfd):
    status = steady.main([{"N": name, "M": "1"} for name in names], COMMAND)
    lines = capfd.readouterr().out.splitlines()
    verdicts = [line for line in lines if line.startswith(("passed", "failed"))]
    assert [v.split()[0] == "failed" for v in verdicts] == [n in "bc" for n in names]
    assert [v.split()[-2:] for v in verdicts] == [[f"N={n}", "M=1"] for n in names]
    assert ("says b" in lines) == bool(failed)
    assert "says a" not in lines
    assert status == (failed > 0)
    assert lines[-1] == (
        f"{failed} of {len(names)} settings failed" if failed else "steady"
    )


def test_the_settings_are_ten_and_no_two_alike():
    assert [s["JITTER"] for s in steady.SETTINGS] == [*"12345"] + 5 * ["off"]
    assert len({str(setting) for setting in steady.SETTINGS}) == 10
    assert {s["OMP_NUM_THREADS"] for s in steady.SETTINGS} == {"1", "2", "4"}
    assert any(s.get("ATEN_CPU_CAPABILITY") == "default" for s in steady.SETTINGS)
    fewer = {"ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_CBWR": "COMPATIBLE"}
    assert any(s | fewer == s for s in steady.SETTINGS)
