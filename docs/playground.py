"""``.venv/bin/python docs/playground.py``: make the README's picture of the built site."""

from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from lmbook.bench.play import serve
from lmbook.browser import find_chromium
from lmbook.execute.keys import ROOT, build_folder

SIZE = {"width": 1400, "height": 1490}
LINE = "Shall I compare thee to a summer's d"

path = find_chromium()
with serve(build_folder(ROOT) / "html") as site, sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
    page = browser.new_page(viewport=SIZE, color_scheme="light")
    page.goto(f"{site}/play.html")
    line = page.get_by_label("Your line").first
    line.fill(LINE)
    stop = page.get_by_role("button", name="stop", exact=True).first
    page.wait_for_function("button => !button.disabled", arg=stop.element_handle())
    page.wait_for_function("button => button.disabled", arg=stop.element_handle())
    line.blur()
    page.evaluate("scrollTo(0, 0)")
    shot = Image.open(BytesIO(page.screenshot())).convert("RGB")
    browser.close()
shot.quantize(128).save(Path(__file__).with_suffix(".png"), optimize=True)
