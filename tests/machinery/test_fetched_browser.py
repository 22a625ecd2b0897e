"""The Chromium that is fetched where there is none opens a page, WebGL included."""

import platform

import pytest
from playwright.sync_api import sync_playwright

from lmbook import browser
from patience import PATIENCE


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the package is for x86-64")
def test_it_opens_a_page(tmp_path):
    browser.fetch(tmp_path / "chromium")
    path = str(tmp_path / "chromium" / "start")
    with sync_playwright() as playwright:
        how = {"executable_path": path, "args": ["--no-sandbox"]}
        opened = playwright.chromium.launch(**how, timeout=1000 * PATIENCE)
        page = opened.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.set_content("<h1>Wild nights!</h1><canvas></canvas>")
        assert page.inner_text("h1") == "Wild nights!"
        assert page.evaluate("!!document.querySelector('canvas').getContext('webgl')")
        opened.close()
