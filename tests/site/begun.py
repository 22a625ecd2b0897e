"""Chromium for the tests of a worker, through Playwright."""

import warnings
from contextlib import ExitStack, contextmanager

from playwright.sync_api import Error, sync_playwright

ATTEMPTS = 3  # to begin, before the tests are given up


@contextmanager
def begun(options):
    """Start Playwright's driver, and Chromium by it; end both when they are done with.

    The driver is a program of its own. On a machine that is short of something it may end
    before the browser is there; then all tests of its worker, some hundred, would fail,
    though none has begun. So another one is started, with a warning.

    Parameters
    ----------
    options : dict
        What `BrowserType.launch` is given.

    Yields
    ------
    tuple of (Playwright, Browser)

    Raises
    ------
    playwright.sync_api.Error
        If the browser was not there after `ATTEMPTS` attempts.
    """
    for attempt in range(1, ATTEMPTS + 1):
        with ExitStack() as running:
            try:
                driver = running.enter_context(sync_playwright())
                browser = driver.chromium.launch(**options)
            except Error as error:
                if attempt == ATTEMPTS:
                    raise
                warnings.warn(f"attempt {attempt} to start Chromium: {error}", stacklevel=3)
                continue
            running.callback(browser.close)
            yield driver, browser
            return
