"""What drives Firefox and WebKit waits for nobody for ever, and says what stood still.

No browser is needed: what answers here, or does not, is a socket.
"""

import json
import socket
import threading
from contextlib import contextmanager

import pytest

import drivers
from drivers import Driver, Firefox, Silence, WebKit

STATES = '[["own-text", "waiting", -1568]]'


@contextmanager
def listening(answer):
    """Listen on a port; let `answer` have each connection; yield the port."""
    came = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept():
            while True:
                try:
                    line, _ = server.accept()
                except OSError:  # the test has ended
                    return
                came.append(line)
                answer(line)

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    for line in came:
        line.close()


def never(line):
    """Give no answer."""


def webkit(port):
    """What drives WebKit, in a session with a WebDriver at a port."""
    driver = object.__new__(WebKit)
    driver.address, driver.session, driver.processes = f"127.0.0.1:{port}", "/session/1", []
    return driver


def firefox(port):
    """What drives Firefox, on a line to a port."""
    driver = object.__new__(Firefox)
    driver.connect(socket.create_connection(("127.0.0.1", port)))
    return driver


@pytest.fixture
def hurried(monkeypatch):
    """No patience: what never comes never comes, however long one waits."""
    for name in ("LIMIT", "GLANCE", "PATIENCE"):
        monkeypatch.setattr(drivers, name, 0.1)


@pytest.mark.parametrize("make", [webkit, firefox])
def test_who_never_answers_is_told_with_the_test_and_the_question(hurried, make):
    with listening(never) as port:
        driver = make(port)
        with pytest.raises(Silence) as first:
            driver.run("return document.title")
        message = str(first.value)
        assert message.startswith(f"{driver.name} gave no answer to ExecuteScript")
        assert "return document.title" in message
        assert "test_who_never_answers_is_told" in message
        assert "What the page shows is not known: TimeoutError" in message


@pytest.mark.parametrize("make", [webkit, firefox])
def test_who_gave_no_answer_is_asked_no_more(hurried, make):
    with listening(never) as port:
        driver = make(port)
        with pytest.raises(Silence) as first:
            driver.open("data:,page")
        driver.exchange = driver.ask = None  # whoever called them would fail otherwise
        with pytest.raises(Silence) as second:
            driver.run("return 1")
        assert str(second.value) == str(first.value)
        if make is webkit:
            driver.close()  # it is not asked to end its session, either


@pytest.mark.parametrize("make", [webkit, firefox])
def test_who_ended_is_not_waited_for(make):
    with listening(lambda line: line.shutdown(socket.SHUT_RDWR)) as port:
        driver = make(port)
        with pytest.raises(Silence, match="gave no answer to Navigate"):
            driver.open("data:,page")


def test_who_is_not_there_is_not_waited_for():
    with listening(never) as port:
        driver = webkit(port)
    with pytest.raises(Silence, match="ConnectionRefusedError"):
        driver.open("data:,page")


def say(line, *message):
    """Say something as Firefox does."""
    text = json.dumps(message).encode()
    line.sendall(b"%d:%s" % (len(text), text))


def test_an_answer_that_came_too_late_is_not_taken_for_another(monkeypatch):
    monkeypatch.setattr(drivers, "LIMIT", 0.1)  # GLANCE stays: this answer comes
    heard = threading.Event()

    def answer(line):
        def late():
            asked = b""
            while asked.count(b"WebDriver:") < 2:
                asked += line.recv(1 << 16)
            say(line, 1, 1, None, {"value": "late"})
            say(line, 1, 2, None, {"value": STATES})
            heard.set()

        threading.Thread(target=late, daemon=True).start()

    with listening(answer) as port:
        driver = firefox(port)
        with pytest.raises(Silence) as error:
            driver.run("return document.title")
        assert heard.wait(drivers.PATIENCE)  # it is set after what was said arrived
        assert str(error.value).endswith(f"The page shows {STATES}")


class Waiting(Driver):
    """A browser in which nothing comes, and one question has no answer in its time."""

    name = "webkit"

    def exchange(self, command, parameters, limit):
        if command == "Navigate":
            raise RuntimeError("timeout: ")
        return STATES if parameters["script"] == drivers.SHOWN else False

    def close(self):
        pass


def test_what_does_not_come_is_told_with_what_the_page_shows(hurried):
    with pytest.raises(AssertionError) as error:
        Waiting().until("document.title === 'over'")
    message = f"still not: document.title === 'over'. The page shows {STATES}"
    assert message in str(error.value)


def test_what_takes_too_long_is_told_with_what_the_page_shows():
    with pytest.raises(RuntimeError) as error:
        Waiting().open("data:,page")
    assert str(error.value) == f"timeout: . The page shows {STATES}"
