"""The Colab-shaped run installs the wheel that is here, and reaches no other machine."""

import json
import subprocess
import sys
import textwrap

import pytest

import colab_shape
from lmbook.publish.notebooks import _install_cell


def notebook(path, source):
    cells = [
        {"cell_type": "markdown", "source": ["words"]},
        {"cell_type": "code", "source": source.splitlines(keepends=True)},
        {"cell_type": "code", "source": ["1 + 1"]},
    ]
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return path


def test_the_first_cell_is_run_with_the_wheel_that_is_here(tmp_path):
    wheel = tmp_path / "lmcourse-1-py3-none-any.whl"
    for address in (wheel.name, f"https://example.org/{wheel.name}"):
        source = _install_cell(address).source
        one, two = (notebook(tmp_path / name, source) for name in ("a.ipynb", "b.ipynb"))
        found = colab_shape.first_cell([one, two], wheel)
        assert found == _install_cell(wheel.name).source
    with pytest.raises(ValueError, match=f"want https://.*{wheel.name}, not other"):
        colab_shape.first_cell([one], tmp_path / "other.whl")
    notebook(two, source.replace("bertviz", "birdviz"))
    with pytest.raises(ValueError, match="first cells differ"):
        colab_shape.first_cell([one, two], wheel)


def test_the_guard_lets_only_this_machine_be_reached(tmp_path):
    (tmp_path / "offline_guard.py").write_text(colab_shape.OFFLINE, encoding="utf-8")
    program = """
        import socket
        import offline_guard

        server = socket.create_server(("127.0.0.1", 0))
        socket.create_connection(server.getsockname()).close()
        for reach in (
            lambda: socket.socket().connect(("192.0.2.1", 80)),
            lambda: socket.getaddrinfo("example.org", 80),
        ):
            try:
                reach()
            except OSError as error:
                assert "no network here" in str(error), error
            else:
                raise AssertionError("reached")
        """
    code = textwrap.dedent(program)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, timeout=60, check=True)
