"""What the tests of the built site share: its folder, a server, a browser."""

import pytest
from playwright.sync_api import sync_playwright
from serving import SITE, serve

from lmbook.browser import find_chromium


@pytest.fixture(scope="session")
def site():
    """The built site's folder; never skipped."""
    if not (SITE / "index.html").is_file():
        pytest.fail(f"{SITE} has no index.html: run `make html` first", pytrace=False)
    return SITE


@pytest.fixture(scope="session")
def server(site):
    """The address of the built site."""
    httpd, address = serve(site)
    yield address
    httpd.shutdown()


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium; a machine without one fails.

    It is closed with the module: as long as it is open, no other test of the process can
    run an event loop.
    """
    try:
        path = find_chromium()
    except FileNotFoundError as error:
        pytest.fail(str(error), pytrace=False)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--disable-background-networking"],
        )
        yield chromium
        chromium.close()
