"""What the tests of the built site share: its folder, a server, a browser."""

import pytest
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
    }


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items):
    """Give each page of the site to one worker, and the demonstration book to one."""
    for item in items:
        if item.get_closest_marker("browser"):
            values = getattr(item, "callspec", None)
            names = [str(v) for v in values.params.values()] if values else []
            page = next((name for name in names if name.startswith("site:")), "demo")
            item.add_marker(pytest.mark.xdist_group(page))
