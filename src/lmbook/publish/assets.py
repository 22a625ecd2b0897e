"""The JavaScript that the site runs: pinned, checked, staged once, served by the site.

Libraries come from installed Python packages where these carry them (`lmcourse` has d3 and
jQuery, which notebooks need too), and otherwise from `lmbook.publish.npm`. A page gets only
what it uses: `page_assets` adds one small script, which loads a drawing library when the
first view that needs it is scrolled near; MathJax goes to pages with math.
"""

import hashlib
import json
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from docutils import nodes

from lmbook.execute.keys import build_folder
from lmbook.pages.renderer import BERTVIZ, DRAWERS, module
from lmbook.play import modules
from lmbook.play import stores as play
from lmbook.publish import npm
from lmcourse.views import notebook
from lmcourse.views.markup import library

OWN = Path(__file__).parents[1] / "static"
FOLDER = "lib"  # below _static; not _static itself, whose scripts go to every page
EVERYWHERE = ("site.js", "modules.js", "play/dom.js")


# plotly's partial bundles, and traces that each draws. The whole is three times theirs.
PARTIAL = {
    "plotly-cartesian/plotly-cartesian.min.js": {
        *("bar", "box", "contour", "heatmap", "histogram", "image", "scatter", "violin")
    },
    "plotly-gl3d/plotly-gl3d.min.js": {"mesh3d", "scatter", "scatter3d", "surface"},
}

# --- Python packages ------------------------------------------------------------------


def _installed(distribution: str, path: str) -> str:
    """Return a text file of an installed package."""
    return metadata.distribution(distribution).locate_file(path).read_text("utf-8")


def bertviz_script(name: str) -> str:
    """Return one of bertviz's scripts as a function that `play/bertviz.js` calls."""
    body = notebook.bertviz_script(name)
    return f"(window.lmcourse = window.lmcourse || {{}}).{name} = {body};\n"


# --- staging --------------------------------------------------------------------------


def stage(static: Path, work: Path) -> None:
    """Put every library and our own scripts below ``static/lib``.

    Parameters
    ----------
    static : Path
        The site's ``_static``.
    work : Path
        Where npm installs; not published.
    """
    lib = static / FOLDER
    npm.copy_libraries(npm.install(work), lib)
    styles = modules.files(".css")
    play_scripts = {f"play/{name}": modules.script(name) for name in modules.files(".js")}
    texts = {
        **{name: library(Path(name).name) for name in BERTVIZ},
        "bertviz/head_view.js": bertviz_script("head_view"),
        "bertviz/model_view.js": bertviz_script("model_view"),
        "circuitsvis/iife.js": _installed("circuitsvis", "circuitsvis/dist/cdn/iife.js"),
        "plotly/plotly.min.js": _installed("plotly", "plotly/package_data/plotly.min.js"),
        **{path.name: path.read_text("utf-8") for path in OWN.glob("*.[cj]s*")},
        **{f"play/{name}": path.read_text("utf-8") for name, path in styles.items()},
        **npm.minify(work, play_scripts),
    }
    for name, text in texts.items():
        (lib / name).parent.mkdir(parents=True, exist_ok=True)
        (lib / name).write_text(text, encoding="utf-8")


def _address(lib: Path, name: str) -> str:
    """Return a staged file's address, which changes when the file does."""
    return f"{name}?v={hashlib.sha256((lib / name).read_bytes()).hexdigest()[:8]}"


def scripts(kind: str, traces: set[str] = frozenset()) -> list[str]:
    """Return what draws a kind of view on a page whose plots have these kinds of traces."""
    _, *libraries = DRAWERS.get(kind, (kind,))
    partial = [bundle for bundle, kinds in PARTIAL.items() if traces <= kinds]
    if kind == "plot" and partial:
        libraries = partial[:1]
    own = [f"play/{name}" for name in modules.order(f"{module(kind)}.js")]
    return [*libraries, *(name for name in own if name not in EVERYWHERE)]


def styles(kinds: Iterable[str]) -> list[str]:
    """Return the style sheets of some kinds of views."""
    shared = [] if set(kinds) <= DRAWERS.keys() else ["play.css"]
    wanted = dict.fromkeys([*shared, *(f"{module(kind)}.css" for kind in kinds)])
    own = [f"play/{name}" for name in wanted if name in modules.files(".css")]
    return ["views.css", *own]


def page_assets(app, pagename, templatename, context, doctree) -> None:
    """Add the views' script and style to a page that has views."""
    found = [] if doctree is None else doctree.findall(nodes.raw)
    views = [node for node in found if "lmcourse_kind" in node]
    if not views:
        return
    lib = Path(app.outdir) / "_static" / FOLDER
    kinds = sorted({view["lmcourse_kind"] for view in views})
    traces = {trace for view in views for trace in view["lmcourse_traces"]}
    table = {k: [_address(lib, name) for name in scripts(k, traces)] for k in kinds}
    used = {name for view in views for name in view["lmcourse_stores"]}
    work = build_folder(Path(app.srcdir).parent) / "play"
    stores = {name: play.stage(name, lib, work) for name in sorted(used)}
    for name in styles(kinds):
        app.add_css_file(f"{FOLDER}/{name}")
    told = {"data-libraries": table, "data-stores": stores}
    settings = {k: json.dumps(v, separators=(",", ":")) for k, v in told.items() if v}
    app.add_js_file(f"{FOLDER}/views.js", loading_method="defer", **settings)


def drop_unused_mathjax(app, pagename, templatename, context, doctree) -> None:
    """Take MathJax off a page without math; Sphinx adds it to pages that link to math."""
    if 'class="math' not in context.get("body", ""):
        files, mathjax = context["script_files"], app.config.mathjax_path
        files[:] = [f for f in files if not str(f.filename).endswith(mathjax)]


def _stage(app) -> None:
    if app.builder.format == "html":
        stage(Path(app.outdir) / "_static", build_folder(Path(app.srcdir).parent) / "npm")


def drop_icon_script(app, exception) -> None:
    """Empty the theme's largest script, which redraws as SVG the icons of its icon font.

    The font and its style sheet are there all the same, and show every icon without it.
    """
    script = Path(app.outdir) / "_static" / "scripts" / "fontawesome.js"
    if exception is None and script.is_file():
        script.write_text("/* icons: the style sheet's font */\n", encoding="utf-8")


def setup(app) -> None:
    """Stage the libraries before anything is written, and add them page by page."""
    for name in EVERYWHERE:  # before what uses them
        app.add_js_file(f"{FOLDER}/{name}", priority=400, loading_method="defer")
    app.connect("builder-inited", _stage)
    app.connect("html-page-context", page_assets)
    app.connect("html-page-context", drop_unused_mathjax, priority=900)
    app.connect("build-finished", drop_icon_script)
