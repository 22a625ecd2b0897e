"""The model that talks in a page of Chromium: `lmbook.bench.talker` asks."""

import tempfile
from pathlib import Path

from lmbook.bench.play import PATIENCE, serve
from lmbook.browser import find_chromium
from lmbook.execute.keys import ROOT, build_folder
from lmbook.play.stores import stage
from lmbook.publish import bundles, npm

PAGE = """<!doctype html><title>Talker</title><script>
lmcourse = {{ stores: {{ talker: {manifest} }}, carried: {{}}, folder: "{folder}" }};
</script><script src="lib/play.js"></script>"""
IN_PAGE = """async ([text, count, simd]) => {
  const { openTalker } = lmcourse.play["talker-client"];
  const talker = openTalker("talker", lmcourse);
  if (talker.worker) talker.end();
  talker.simd = simd;
  const start = performance.now();
  const { memory } = await talker.load();
  const loaded = performance.now();
  const { ids } = await talker.tokens({ text });
  const written = [];
  await talker.when("speak", { ids, count, temperature: 0 }, null,
    (tokens) => written.push(...tokens.map(({ id }) => id)));
  const seconds = (performance.now() - loaded) / 1000;
  return { loading: (loaded - start) / 1000, seconds, memory, written };
}"""


def make_page(folder: Path) -> None:
    """Write what a page needs to run the model that talks, into ``folder/lib``.

    That is the site's scripts, the model's client among them, and the parts of the model's
    file. The page itself is written by `write_in_pages`.
    """
    work = build_folder(ROOT)
    npm.install(work / "npm")
    bundles.write_bundles(work / "npm", folder / "lib")
    stage("talker", folder / "lib", work / "play")


def write_in_pages(prompt: str, tokens: int) -> dict[str, dict]:
    """Let the model that talks, opened in three ways, write in a page of Chromium.

    "page" is with WebAssembly, and loads the model from a server of this machine; "page,
    kept" is the same once more, with the file that the browser kept; "page, no SIMD"
    multiplies in JavaScript alone.

    Parameters
    ----------
    prompt : str
        What it continues.
    tokens : int
        How many to write, always the likeliest.

    Returns
    -------
    dict of str to dict
        Of each way ``loading``, the seconds of loading; ``seconds``, those of cutting the
        prompt into tokens and of writing; ``memory``, the bytes of the buffer in which the
        model lies; ``written``, the ids, a list of int.
    """
    from playwright.sync_api import sync_playwright

    path = find_chromium()
    ways = {"page": True, "page, kept": True, "page, no SIMD": False}
    with tempfile.TemporaryDirectory() as place, serve(Path(place)) as origin:
        make_page(Path(place))
        manifest = (Path(place) / "lib/play/talker/about.json").read_text()
        page = PAGE.format(manifest=manifest, folder=f"{origin}/lib/")
        (Path(place) / "index.html").write_text(page)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=path, args=["--no-sandbox"], timeout=PATIENCE
            )
            opened = browser.new_page()
            opened.set_default_timeout(PATIENCE)
            opened.goto(f"{origin}/index.html")
            return {
                way: opened.evaluate(IN_PAGE, [prompt, tokens, simd])
                for way, simd in ways.items()
            }
