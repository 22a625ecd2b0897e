"""The Colab-shaped run reaches no other machine."""

import subprocess
import sys
import textwrap

import colab_shape


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
