"""Firefox and WebKit, driven in the way that each brings with it.

Firefox listens for Marionette, WebKitGTK comes with a WebDriver; both know the same
commands. No package is needed beside the browsers, which are those of the system.

Nothing here waits for ever. A browser that gives no answer is asked no more: the test that
asked fails and says what was asked and what the page shows, and so do those after it.
"""

import functools
import http.client
import http.server
import itertools
import json
import os
import select
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

# A script and a page have `PATIENCE`; the browser says so itself when they had it.
LIMIT = 2 * PATIENCE  # seconds for an answer
GLANCE = PATIENCE / 10  # seconds to say what a page shows

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
console.error = (...words) => wrong.push(words.join(" "));
localStorage.mode ??= "light";
localStorage.theme ??= "light";
localStorage["lmcourse:way"] ??= "read";
</script>"""

# The first element that is seen, matches, and has a text or a name with these words.
FIND = """const [css, words, root] = given;
const text = (e) => e.ariaLabel ?? (e.labels?.[0] ?? e).textContent;
return Array.from((root || document).querySelectorAll(css))
  .find((e) => e.checkVisibility() && text(e).includes(words)) || null;"""

# Is every view drawn, or given up? The first that waits comes into sight, and comes again
# where it has left: what stands above may grow or shrink before the page looks who is near,
# and WebKit does not hold what is in sight in its place.
DRAWN = """((views) => Array.from(views).every((view) => {
  if (view.dataset.state === "waiting") view.scrollIntoView({ block: "center" });
  return ["drawn", "failed"].includes(view.dataset.state);
}))"""

# What a page is at, for whoever reads why a test failed.
SHOWN = """const views = document.querySelectorAll(".lmc-view");
const middle = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
return JSON.stringify({
  address: location.href,
  loaded: document.readyState,
  wrong: window.wrong,
  views: Array.from(views, (view) => {
    const { module, state } = view.dataset;
    return [module, state, Math.round(view.getBoundingClientRect().top)];
  }),
  focus: document.activeElement?.cloneNode().outerHTML.slice(0, 200),
  seen: middle?.innerText?.slice(0, 500),
}, null, 1);"""


class Silence(Exception):
    """A browser gave no answer: it ended, or it stands still."""


class MissingBrowser(Exception):
    """A browser, or what it needs, is not installed; the message says what to install."""


class Driver(ABC):
    """A browser with one window; what its commands are is WebDriver's standard."""

    name: str
    version: str
    silence = ""  # since when, once it has given no answer

    @abstractmethod
    def exchange(self, command, parameters, limit):
        """Send a command; return what the browser answers.

        Raises
        ------
        OSError
            If it ended, or gives no answer for `limit` seconds.
        RuntimeError
            If it cannot do that, with its own words.
        """

    @abstractmethod
    def close(self):
        """End the browser."""

    def send(self, command, **parameters):
        """Let the browser do something; return what it answers.

        Raises
        ------
        RuntimeError
            If it cannot, with its own words.
        Silence
            If it gives no answer, or once gave none.
        """
        if self.silence:
            raise Silence(self.silence)
        try:
            return self.exchange(command, parameters, LIMIT)
        except OSError as error:
            test = os.environ.get("PYTEST_CURRENT_TEST", "no test")
            asked = f"{command} {json.dumps(parameters)[:500]}"
            self.silence = (
                f"{self.name} gave no answer to {asked} in {test}: {error!r}. {self.look()}"
            )
            raise Silence(self.silence) from error
        except RuntimeError as error:
            if "timeout" not in str(error):
                raise
            raise RuntimeError(f"{error}. {self.look()}") from error

    def look(self):
        """Say what the page shows, which may answer where another question stands still."""
        try:
            shown = self.exchange("ExecuteScript", {"script": SHOWN, "args": []}, GLANCE)
        except (OSError, RuntimeError) as error:
            return f"What the page shows is not known: {error!r}."
        return f"The page shows {self.unwrap(shown)}"

    def unwrap(self, answer):
        """Return a script's value, of what the browser answered."""
        return answer

    @contextmanager
    def or_close(self):
        """End what has begun if the rest fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise

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
        answer = self.send("ExecuteScript", script=script, args=list(arguments))
        return self.unwrap(answer)

    def until(self, expression, *arguments):
        """Wait until a JavaScript expression is true; return its value."""
        end = time.monotonic() + PATIENCE
        while not (value := self.run(f"return {expression}", *arguments)):
            assert time.monotonic() < end, f"still not: {expression}. {self.look()}"
            time.sleep(0.1)
        return value

    def find(self, css, words="", root=None):
        """Wait for an element that is seen, with these words in its text or name."""
        return self.until(f"((...given) => {{ {FIND} }})(...arguments)", css, words, root)

    def draw(self, views, *arguments):
        """Come to the views that an expression lists until each is drawn, or given up."""
        self.until(f"{DRAWN}({views})", *arguments)

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


def program(*names, advice):
    """Return the path of the first program that is installed.

    ``advice`` : what to do if none is, for the message of `MissingBrowser`.
    """
    for name in names:
        if path := shutil.which(name):
            return path
    raise MissingBrowser(f"no {names[0]} here: {advice}")


def stop(process):
    """End a program, which may not want to."""
    process.terminate()
    try:
        process.wait(GLANCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(PATIENCE)


class Firefox(Driver):
    """Firefox, without a screen."""

    name = "firefox"

    def unwrap(self, answer):
        """Return a script's value, which Marionette puts into an object."""
        return answer["value"]

    def __init__(self):
        path = program(
            "firefox", "firefox-esr", advice="apt install firefox-esr, or firefox"
        )
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
        with self.or_close():
            self.connect(socket.create_connection(("127.0.0.1", self.port()), LIMIT))
            self.read()  # it says who it is
            session = self.send("NewSession")
            self.version = session["capabilities"]["browserVersion"]
            self.prepare()

    def connect(self, line):
        """Have a line to the browser, on which nothing was said."""
        self.line, self.came = line, b""
        self.count = itertools.count(1)

    def port(self):
        """Wait until the browser says where it listens."""
        port_file = self.profile / "MarionetteActivePort"
        end = time.monotonic() + PATIENCE
        while not (port_file.is_file() and port_file.read_text()):
            assert time.monotonic() < end, "Firefox does not start"
            assert self.process.poll() is None, "Firefox ended"
            time.sleep(0.1)
        return int(port_file.read_text())

    def receive(self, enough):
        """Have more of what the browser says, until it is enough."""
        while not enough():
            part = self.line.recv(1 << 16)
            if not part:
                raise ConnectionResetError("Firefox ended")
            self.came += part

    def read(self):
        """Return the next message: its length, a colon, JSON."""
        self.receive(lambda: b":" in self.came)
        length, _, text = self.came.partition(b":")
        end = len(length) + 1 + int(length)
        self.receive(lambda: len(self.came) >= end)
        text, self.came = self.came[len(length) + 1 : end], self.came[end:]
        return json.loads(text)

    def exchange(self, command, parameters, limit):
        self.line.settimeout(limit)
        number = next(self.count)
        message = json.dumps([0, number, f"WebDriver:{command}", parameters])
        text = message.encode()
        self.line.sendall(b"%d:%s" % (len(text), text))
        answered = None
        # An answer that came too late, to another question, is passed by.
        while answered != number:
            _, answered, error, answer = self.read()
        if error:
            raise RuntimeError(f"{error['error']}: {error['message']}")
        return answer

    def close(self):
        stop(self.process)
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
    INSTALL = "apt install webkit2gtk-driver xvfb"

    def __init__(self):
        driver = program("WebKitWebDriver", advice=self.INSTALL)
        screen = program("Xvfb", advice=self.INSTALL)
        patterns = (
            "/usr/lib*/*/webkit2gtk-*/MiniBrowser",
            "/usr/lib*/webkit2gtk-*/MiniBrowser",
        )
        browsers = sorted(path for pattern in patterns for path in glob(pattern))
        if not browsers:
            raise MissingBrowser(f"no MiniBrowser of WebKitGTK here: {self.INSTALL}")
        self.processes, self.session = [], None
        with self.or_close():
            display = self.start_screen(screen)
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            command = [driver, "--host=127.0.0.1", f"--port={port}"]
            self.start(command, env=os.environ | {"DISPLAY": display})
            self.address = f"127.0.0.1:{port}"
            self.begin({"binary": browsers[-1], "args": ["--automation"]})
            self.prepare()

    def begin(self, options):
        """Begin a session, once the WebDriver listens."""
        wanted = {"browserName": "MiniBrowser", "webkitgtk:browserOptions": options}
        body = {"capabilities": {"alwaysMatch": wanted}}
        end = time.monotonic() + PATIENCE
        while True:
            try:
                session = self.ask("POST", "/session", body, LIMIT)
                break
            except ConnectionRefusedError:
                assert time.monotonic() < end, "WebKitWebDriver does not start"
                assert self.processes[-1].poll() is None, "WebKitWebDriver ended"
                time.sleep(0.1)
        self.session = f"/session/{session['sessionId']}"
        self.version = session["capabilities"]["browserVersion"]

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
        with os.fdopen(ours) as output:
            assert select.select([output], [], [], PATIENCE)[0], "Xvfb does not start"
            number = output.readline().strip()
        assert number, "Xvfb ended"
        return f":{number}"

    def ask(self, method, path, body, limit):
        """Send a request to the WebDriver; return its answer."""
        text = None if body is None else json.dumps(body)
        line = http.client.HTTPConnection(self.address, timeout=limit)
        try:
            line.request(method, path, text)
            answer = json.loads(line.getresponse().read())["value"]
        except http.client.HTTPException as error:
            raise ConnectionError(repr(error)) from error
        finally:
            line.close()
        if isinstance(answer, dict) and "error" in answer:
            raise RuntimeError(f"{answer['error']}: {answer['message']}")
        return answer

    def exchange(self, command, parameters, limit):
        rest = dict(parameters)
        path = PATHS[command].format(id=rest.pop("id", ""))
        return self.ask("POST", f"{self.session}/{path}", rest, limit)

    def close(self):
        if self.session and not self.silence:
            with suppress(OSError, RuntimeError):
                self.ask("DELETE", self.session, None, GLANCE)
        for process in reversed(self.processes):
            stop(process)


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
