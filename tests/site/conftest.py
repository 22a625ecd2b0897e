"""What the tests of the built site share: its folder, servers, a browser."""

from functools import cache

import pytest
from filelock import FileLock

import visits
from bare import make_page, opening
from lmbook.browser import find_chromium
from lmbook.publish import bundles
from serving import SITE, build_demo, serve

INDEX = """<!doctype html><title>Engine</title><script>
async function open() {
  const { Model } = await import("/play/engine.js");
  const file = await fetch("/model.safetensors", { cache: "no-store" });
  return Model.read(new Uint8Array(await file.arrayBuffer()));
}</script>"""


@pytest.fixture(scope="session")
def site():
    """The built site's folder; never skipped."""
    if not (SITE / "index.html").is_file():
        pytest.fail(f"{SITE} has no index.html: run `make html` first", pytrace=False)
    return SITE


@pytest.fixture(scope="session")
def server(site):
    """The address of the built site."""
    with serve(site) as address:
        yield address


@pytest.fixture(scope="session")
def demo(tmp_path_factory, worker_id):
    """The folder of the demonstration book, built as the real one is, once for all."""
    base = tmp_path_factory.getbasetemp()
    base = base if worker_id == "master" else base.parent  # all workers have this one
    with FileLock(base / "demo.lock"):
        if not (base / "demo").is_dir():
            part = tmp_path_factory.mktemp("part")
            build_demo(part)
            part.rename(base / "demo")  # whole or not at all
    return base / "demo" / "_build" / "html"


@pytest.fixture(scope="session")
def demo_server(demo):
    """The address of the demonstration book."""
    with serve(demo) as address:
        yield address


@pytest.fixture(scope="session")
def browser_type_launch_args():
    """How pytest-playwright starts the browser; a machine without Chromium fails."""
    try:
        path = find_chromium()
    except FileNotFoundError as error:
        pytest.fail(str(error), pytrace=False)
    return {
        "executable_path": path,
        "args": ["--no-sandbox", "--disable-background-networking"],
        "timeout": visits.LOAD,
    }


@pytest.fixture(scope="session")
def lab(browser, tmp_path_factory):
    """A page that has the modules of play, and files that tests put in its folder."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "play").mkdir()
    for name, path in bundles.view_files(".js").items():
        (folder / "play" / name).symlink_to(path)
    (folder / "index.html").write_text(INDEX)
    with serve(folder) as address:
        opened = visits.new_page(browser)
        opened.goto(f"{address}/index.html")
        opened.folder = folder
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """Return the address of the page with a test module's view, served or as a file.

    The module's `make()` returns the view and, by name, the stores that the page has
    instead of the site's.
    """
    root = tmp_path_factory.mktemp("views")

    @cache
    def written(module):
        view, own = module.make()
        make_page(root / module.__name__, [view], own)
        return f"{module.__name__}/index.html"

    with serve(root) as origin:
        yield (
            lambda module, way="file": (
                f"{origin if way == 'http' else root.as_uri()}/{written(module)}"
            )
        )


@pytest.fixture
def opened(request, browser, address):
    """A visit to the page with this module's view; opened as a file, if no more is said."""
    place = address(request.module, getattr(request, "param", "file"))
    with opening(browser, place) as visit:
        yield visit
        visit.clean()
