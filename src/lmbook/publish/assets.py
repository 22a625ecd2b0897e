"""The JavaScript that the site runs: pinned, checked, staged once, served by the site.

Libraries come from installed Python packages where these carry them (`lmcourse` has d3 and
jQuery, which notebooks need too), and otherwise from `lmbook.publish.npm`. A page gets only
what it uses: `page_assets` adds one small script, which loads a drawing library when the
first view that needs it is scrolled near; MathJax goes to pages with math.
"""

import hashlib
import json
from importlib import metadata
from pathlib import Path

from sphinx.errors import ExtensionError

from lmbook.play import modules
from lmbook.play import stores as play
from lmbook.publish import npm
from lmcourse.views import notebook

__all__ = ["LIBRARIES", "setup", "stage"]

OWN = Path(__file__).parents[1] / "static"
FOLDER = "lib"  # below _static; not _static itself, whose scripts go to every page


# What a kind of view loads, in order; below `FOLDER`.
BERTVIZ = ("jquery/jquery.slim.min.js", "d3/d3.min.js")
POEMS = ("poems/poems.js", "poems/poems.css")
LIBRARIES = {
    "circuitsvis": ("circuitsvis/iife.js", "draw-circuitsvis.js"),
    "head_view": (*BERTVIZ, "bertviz/head_view.js", "draw-bertviz.js"),
    "model_view": (*BERTVIZ, "bertviz/model_view.js", "draw-bertviz.js"),
    "plotly": ("plotly/plotly.min.js", "draw-plotly.js"),
    "sentences": ("draw-sentences.js",),
    "poems": POEMS[:1],
}
# plotly's partial bundles, and the traces that each draws. The whole is three times theirs.
PARTIAL = {
    "plotly-cartesian/plotly-cartesian.min.js": {
        *("bar", "box", "contour", "heatmap", "histogram", "histogram2d"),
        *("histogram2dcontour", "image", "pie", "scatter", "scatterternary", "violin"),
    },
    "plotly-gl3d/plotly-gl3d.min.js": {
        *("cone", "isosurface", "mesh3d", "scatter", "scatter3d", "streamtube"),
        *("surface", "volume"),
    },
}
OWN_FILES = (
    "draw-play.js",
    "modules.js",
    "site.js",
    "views.js",
    "views.css",
    "proofs.css",
    "drawings.css",
    "steps.css",
    "frame.css",
    "folds.js",
    "tasks.css",
    "tasks.js",
    "search.js",
    "surprise.js",
    "surprise.css",
    *sorted({f[-1] for f in LIBRARIES.values()} - {*POEMS}),
)


# --- Python packages ------------------------------------------------------------------


def _installed(distribution: str, path: str) -> str:
    """Return a text file of an installed package.

    Raises
    ------
    ExtensionError
        If the package does not carry it.
    """
    file = Path(metadata.distribution(distribution).locate_file(path))
    if not file.is_file():
        version = metadata.version(distribution)
        raise ExtensionError(f"{distribution} {version} has no {path}")
    return file.read_text(encoding="utf-8")


def bertviz_script(name: str) -> str:
    """Return one of bertviz's scripts as a function that `draw-bertviz.js` calls."""
    body = notebook.bertviz_script(name)
    return f"(window.lmcourse = window.lmcourse || {{}}).{name} = {body};\n"


def plotly_script() -> str:
    """Return plotly's whole library; its version must be that of the partial ones.

    Raises
    ------
    ExtensionError
        If they differ.
    """
    body = _installed("plotly", "plotly/package_data/plotly.min.js")
    for key in ("plotly-cartesian", "plotly-gl3d"):
        package = npm.FILES[key][0]
        if f"plotly.js v{npm.version(package)}" not in body[:200]:
            raise ExtensionError(
                f"plotly {metadata.version('plotly')} carries {body[:30]!r}, but "
                f"{package} {npm.version(package)} is locked: lock the same version"
            )
    return body


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
    npm.install(work, lib)
    texts = {
        **{name: notebook.library(Path(name).name) for name in (*BERTVIZ, *POEMS)},
        "bertviz/head_view.js": bertviz_script("head_view"),
        "bertviz/model_view.js": bertviz_script("model_view"),
        "circuitsvis/iife.js": _installed("circuitsvis", "circuitsvis/dist/cdn/iife.js"),
        "plotly/plotly.min.js": plotly_script(),
    }
    own = {name: (OWN / name).read_text(encoding="utf-8") for name in OWN_FILES}
    for path in modules.PLAY.glob("*.css"):
        own[f"play/{path.name}"] = path.read_text("utf-8")
    own |= {f"play/{name}": body for name, body in modules.scripts(work).items()}
    for name, body in {**texts, **own}.items():
        path = lib / name
        if not path.is_file() or path.read_text(encoding="utf-8") != body:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body, encoding="utf-8")


def _address(lib: Path, name: str) -> str:
    """Return a staged file's address, which changes when the file does."""
    return f"{name}?v={hashlib.sha256((lib / name).read_bytes()).hexdigest()[:8]}"


def scripts(library: str, traces: set[str]) -> list[str]:
    """Return what a library loads on a page whose plots have these kinds of traces."""
    if library.startswith("play/"):
        own = modules.order(f"{Path(library).name}.js")
        return ["modules.js", *(f"play/{name}" for name in own), "draw-play.js"]
    names = list(LIBRARIES[library])
    partial = [bundle for bundle, kinds in PARTIAL.items() if traces <= kinds]
    if library == "plotly" and partial:
        names[0] = partial[0]
    return names


def page_assets(app, pagename, templatename, context, doctree) -> None:
    """Add the views' script and style to a page that has views."""
    views = [] if doctree is None else list(doctree.findall(_is_view))
    if not views:
        return
    lib = Path(app.outdir) / "_static" / FOLDER
    needed = sorted({view["lmcourse_library"] for view in views})
    traces = {trace for view in views for trace in view["lmcourse_traces"]}
    table = {key: [_address(lib, name) for name in scripts(key, traces)] for key in needed}
    used = {name for view in views for name in view["lmcourse_stores"]}
    work = Path(app.outdir).parent / "play"
    stores = {name: play.stage(name, lib, work) for name in sorted(used)}
    app.add_css_file(f"{FOLDER}/views.css")
    if "poems" in needed:
        app.add_css_file(f"{FOLDER}/{POEMS[1]}")
    for name in ("play.css", *(f"{name.removeprefix('play/')}.css" for name in needed)):
        if any("/" in key for key in needed) and (lib / "play" / name).is_file():
            app.add_css_file(f"{FOLDER}/play/{name}")
    settings = {"data-libraries": table} | ({"data-stores": stores} if stores else {})
    settings = {k: json.dumps(v, separators=(",", ":")) for k, v in settings.items()}
    app.add_js_file(f"{FOLDER}/views.js", loading_method="defer", **settings)


def drop_unused_mathjax(app, pagename, templatename, context, doctree) -> None:
    """Take MathJax off a page without math; Sphinx adds it to pages that link to math."""
    if 'class="math' not in context.get("body", ""):
        context["script_files"][:] = [
            script
            for script in context["script_files"]
            if not str(script.filename).endswith(app.config.mathjax_path)
        ]


def _is_view(node) -> bool:
    """Say whether a node is a rendered view."""
    return getattr(node, "attributes", {}).get("lmcourse_library") is not None


def _configure(app, config) -> None:
    config.mathjax_path = f"{FOLDER}/mathjax/tex-chtml.js"


def _stage(app) -> None:
    if app.builder.format == "html":
        stage(Path(app.outdir) / "_static", Path(app.outdir).parent / "npm")


def drop_icon_script(app, exception) -> None:
    """Empty the theme's largest script, which redraws as SVG the icons of its icon font.

    The font and its style sheet are there all the same, and show every icon without it.
    """
    script = Path(app.outdir) / "_static" / "scripts" / "fontawesome.js"
    if exception is None and script.is_file():
        script.write_text("/* icons: the style sheet's font */\n", encoding="utf-8")


def setup(app) -> None:
    """Stage the libraries before anything is written, and add them page by page."""
    app.add_js_file(f"{FOLDER}/site.js", loading_method="defer")
    app.connect("config-inited", _configure)
    app.connect("builder-inited", _stage)
    app.connect("html-page-context", page_assets)
    app.connect("html-page-context", drop_unused_mathjax, priority=900)
    app.connect("build-finished", drop_icon_script)
