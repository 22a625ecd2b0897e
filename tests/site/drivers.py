"""Firefox and WebKit, driven in the way that each brings with it.

Firefox listens for Marionette, WebKitGTK comes with a WebDriver; both know the same
commands. No package is needed beside the browsers, which are those of the system.
"""

import functools
import http.client
import http.server
import itertools
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from glob import glob
from io import BytesIO
from pathlib import Path

from lmbook.bench.play import QuietHandler
from patience import PATIENCE

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # by which the standard names an element
KEYS = {"Home": "\ue011", "ArrowRight": "\ue014", "Enter": "\ue007", "Tab": "\ue004"}

# Written before a page's own scripts: what goes wrong is kept, and who comes has been here.
LISTEN = """<script>
window.wrong = [];
addEventListener("error", ({ message, target }) => {
  // Firefox fetches the next page early, and leaves it when it goes elsewhere.
  if (["next", "prefetch"].includes(target.rel)) return;
  wrong.push(message || `${target.src || target.href} did not come`);
}, true);
addEventListener("unhandledrejection", ({ reason }) => wrong.push(String(reason)));
console.error = (...said) => wrong.push(said.join(" "));
localStorage.mode ??= "light";
localStorage.theme ??= "light";
localStorage["lmcourse:way"] ??= "read";
</script>"""

# The first element that is seen, matches, and has a text or a name with these words.
FIND = """const [css, words, root] = given;
const text = (e) => e.ariaLabel ?? (e.labels?.[0] ?? e).textContent;
return Array.from((root || document).querySelectorAll(css))
  .find((e) => e.checkVisibility() && text(e).includes(words)) || null;"""


class MissingBrowser(Exception):
    """A browser, or what it needs, is not installed; the message says what to install."""


class Driver(ABC):
    """A browser with one window; what its commands are is WebDriver's standard."""

    name: str
    version: str

    @abstractmethod
    def send(self, command, **parameters):
        """Let the browser do something; return what it answers.

        Raises
        ------
        RuntimeError
            If it cannot, with its own words.
        """

    @abstractmethod
    def close(self):
        """End the browser."""

    def prepare(self):
        """Give scripts and pages time enough, and the window the size of a desk's."""
        limit = 1000 * PATIENCE
        self.send("SetTimeouts", script=limit, pageLoad=limit)
        self.send("SetWindowRect", width=1280, height=900)

    def open(self, address):
        """Go to a page; return when it is loaded."""
        self.send("Navigate", url=address)

    def run(self, script, *arguments):
        """Run the body of a function in the page; return what it returns or resolves to."""
        found = self.send("ExecuteScript", script=script, args=list(arguments))
        # Marionette wraps an answer; a WebDriver's is what it is.
        return found["value"] if self.name == "firefox" else found

    def until(self, expression, *arguments):
        """Wait until a JavaScript expression is true; return its value."""
        end = time.monotonic() + PATIENCE
        while not (found := self.run(f"return {expression}", *arguments)):
            assert time.monotonic() < end, f"still not: {expression}"
            time.sleep(0.1)
        return found

    def find(self, css, words="", root=None):
        """Wait for an element that is seen, with these words in its text or name."""
        return self.until(f"((...given) => {{ {FIND} }})(...arguments)", css, words, root)

    def click(self, css, words="", root=None):
        """Click an element as a hand does: what lies over it is in the way."""
        element = self.find(css, words, root)
        self.run("arguments[0].scrollIntoView({ block: 'center' })", element)
        self.send("ElementClick", id=element[ELEMENT])

    def press(self, key, css, words="", root=None):
        """Press a key of `KEYS`, or type a text, in an element."""
        element = self.find(css, words, root)
        self.send("ElementSendKeys", id=element[ELEMENT], text=KEYS.get(key, key))

    def fill(self, text, css, words="", root=None):
        """Type a text in the place of what stands in a field."""
        element = self.find(css, words, root)
        self.send("ElementClear", id=element[ELEMENT])
        keys = text.replace("\n", KEYS["Enter"])  # WebKit types no line end
        self.send("ElementSendKeys", id=element[ELEMENT], text=keys)


def program(*names, how):
    """Return the path of the first program that is installed."""
    for name in names:
        if path := shutil.which(name):
            return path
    raise MissingBrowser(f"no {names[0]} here: {how}")


class Firefox(Driver):
    """Firefox, without a screen."""

    name = "firefox"

    def __init__(self):
        path = program("firefox", "firefox-esr", how="apt install firefox-esr, or firefox")
        self.profile = Path(tempfile.mkdtemp(prefix="firefox-"))
        settings = {
            "marionette.port": 0,  # one that is free
            "ui.prefersReducedMotion": 1,
            "app.update.enabled": False,
            "datareporting.policy.dataSubmissionEnabled": False,
            "network.captive-portal-service.enabled": False,
            "network.connectivity-service.enabled": False,
            "services.settings.server": "data:,none",
            "browser.shell.checkDefaultBrowser": False,
        }
        lines = [
            f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in settings.items()
        ]
        (self.profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
        options = ["--marionette", "--headless", "--no-remote", "--profile", self.profile]
        self.process = subprocess.Popen(
            [path, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.count = itertools.count(1)
        self.stream = socket.create_connection(("127.0.0.1", self.port())).makefile("rwb")
        self.read()  # it says who it is
        session = self.send("NewSession")
        self.version = session["capabilities"]["browserVersion"]
        self.prepare()

    def port(self):
        """Wait until the browser says where it listens."""
        said = self.profile / "MarionetteActivePort"
        end = time.monotonic() + PATIENCE
        while not (said.is_file() and said.read_text()):
            assert time.monotonic() < end, "Firefox does not start"
            assert self.process.poll() is None, "Firefox ended"
            time.sleep(0.1)
        return int(said.read_text())

    def read(self):
        """Return the next message: its length, a colon, JSON."""
        length = b""
        while not length.endswith(b":"):
            length += self.stream.read(1)
        return json.loads(self.stream.read(int(length[:-1])))

    def send(self, command, **parameters):
        message = json.dumps([0, next(self.count), f"WebDriver:{command}", parameters])
        text = message.encode()
        self.stream.write(b"%d:%s" % (len(text), text))
        self.stream.flush()
        _, _, error, answer = self.read()
        if error:
            raise RuntimeError(f"{error['error']}: {error['message']}")
        return answer

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        shutil.rmtree(self.profile, ignore_errors=True)


PATHS = {
    "Navigate": "url",
    "ExecuteScript": "execute/sync",
    "ElementClick": "element/{id}/click",
    "ElementClear": "element/{id}/clear",
    "ElementSendKeys": "element/{id}/value",
    "SetWindowRect": "window/rect",
    "SetTimeouts": "timeouts",
}


class WebKit(Driver):
    """WebKitGTK's small browser, on a screen of its own that nobody sees."""

    name = "webkit"
    HOW = "apt install webkit2gtk-driver xvfb"

    def __init__(self):
        driver = program("WebKitWebDriver", how=self.HOW)
        screen = program("Xvfb", how=self.HOW)
        places = (
            "/usr/lib*/*/webkit2gtk-*/MiniBrowser",
            "/usr/lib*/webkit2gtk-*/MiniBrowser",
        )
        browsers = sorted(path for place in places for path in glob(place))
        if not browsers:
            raise MissingBrowser(f"no MiniBrowser of WebKitGTK here: {self.HOW}")
        self.processes = []
        display = self.start_screen(screen)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [driver, "--host=127.0.0.1", f"--port={port}"]
        self.start(command, env=os.environ | {"DISPLAY": display})
        self.address = f"127.0.0.1:{port}"
        options = {"binary": browsers[-1], "args": ["--automation"]}
        wanted = {"browserName": "MiniBrowser", "webkitgtk:browserOptions": options}
        session = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{session['sessionId']}"
        self.version = session["capabilities"]["browserVersion"]
        self.prepare()

    def start(self, command, **options):
        """Start a program that ends with the browser."""
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.processes.append(subprocess.Popen(command, **quiet, **options))

    def start_screen(self, path):
        """Start a screen; return its name."""
        ours, theirs = os.pipe()
        size = ["-screen", "0", "1400x1000x24", "-nolisten", "tcp"]
        self.start([path, "-displayfd", str(theirs), *size], pass_fds=[theirs])
        os.close(theirs)
        with os.fdopen(ours) as said:
            return f":{said.readline().strip()}"

    def ask(self, method, path, body=None):
        """Send a request to the WebDriver, once it listens."""
        text = None if body is None else json.dumps(body)
        end = time.monotonic() + PATIENCE
        while True:
            line = http.client.HTTPConnection(self.address, timeout=2 * PATIENCE)
            try:
                line.request(method, path, text)
                break
            except ConnectionRefusedError:
                assert time.monotonic() < end, "WebKitWebDriver does not start"
                time.sleep(0.1)
        answer = json.loads(line.getresponse().read())["value"]
        line.close()
        if isinstance(answer, dict) and "error" in answer:
            raise RuntimeError(f"{answer['error']}: {answer['message']}")
        return answer

    def send(self, command, **parameters):
        path = PATHS[command].format(id=parameters.pop("id", ""))
        return self.ask("POST", f"{self.session}/{path}", parameters)

    def close(self):
        with suppress(OSError, RuntimeError):
            self.ask("DELETE", self.session)
        for process in reversed(self.processes):
            process.terminate()
            process.wait(PATIENCE)


BROWSERS = {kind.name: kind for kind in (Firefox, WebKit)}


class ListeningHandler(QuietHandler):
    """Serves a site whose pages keep what goes wrong in them, as `wrong`."""

    def send_head(self):
        """Answer with a page that begins with `LISTEN`, or with a file as it is."""
        path = Path(self.translate_path(self.path))
        if path.suffix != ".html" or not path.is_file():
            return super().send_head()
        text = path.read_text("utf-8").replace("<head>", f"<head>{LISTEN}", 1).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        return BytesIO(text)


@contextmanager
def serve_listening(folder):
    """Serve a folder's pages, which keep what goes wrong; yield the address."""
    handler = functools.partial(ListeningHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
