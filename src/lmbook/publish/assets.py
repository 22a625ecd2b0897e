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

from sphinx.errors import ExtensionError

from lmbook.pages.renderer import BERTVIZ, DRAWERS
from lmbook.play import modules
from lmbook.play import stores as play
from lmbook.publish import npm
from lmcourse.views import notebook
from lmcourse.views.markup import library

__all__ = ["setup", "stage"]

OWN = Path(__file__).parents[1] / "static"
FOLDER = "lib"  # below _static; not _static itself, whose scripts go to every page
EVERYWHERE = ("site.js", "modules.js", "play/dom.js")


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
    """Put every library and our own scripts below ``static/lib``; write what is another.

    Parameters
    ----------
    static : Path
        The site's ``_static``.
    work : Path
        Where npm installs; not published.
    """
    lib = static / FOLDER
    npm.install(work, lib)
    styles = modules.files(".css")
    texts = {
        **{name: library(Path(name).name) for name in BERTVIZ},
        "bertviz/head_view.js": bertviz_script("head_view"),
        "bertviz/model_view.js": bertviz_script("model_view"),
        "circuitsvis/iife.js": _installed("circuitsvis", "circuitsvis/dist/cdn/iife.js"),
        "plotly/plotly.min.js": plotly_script(),
        **{path.name: path.read_text("utf-8") for path in OWN.glob("*.[cj]s*")},
        **{f"play/{name}": path.read_text("utf-8") for name, path in styles.items()},
        **{f"play/{name}": text for name, text in modules.scripts(work).items()},
    }
    for name, text in texts.items():
        path = lib / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def _address(lib: Path, name: str) -> str:
    """Return a staged file's address, which changes when the file does."""
    return f"{name}?v={hashlib.sha256((lib / name).read_bytes()).hexdigest()[:8]}"


def scripts(kind: str, traces: set[str] = frozenset()) -> list[str]:
    """Return what draws a kind of view on a page whose plots have these kinds of traces."""
    module, *libraries = DRAWERS.get(kind, (kind,))
    partial = [bundle for bundle, kinds in PARTIAL.items() if traces <= kinds]
    if kind == "plot" and partial:
        libraries = partial[:1]
    own = [f"play/{name}" for name in modules.order(f"{module}.js")]
    return [*libraries, *(name for name in own if name not in EVERYWHERE)]


def styles(kinds: Iterable[str]) -> list[str]:
    """Return the style sheets of some kinds of views."""
    named = [f"{DRAWERS.get(kind, (kind,))[0]}.css" for kind in kinds]
    shared = [] if set(kinds) <= DRAWERS.keys() else ["play.css"]
    own = [
        name for name in dict.fromkeys([*shared, *named]) if name in modules.files(".css")
    ]
    return ["views.css", *(f"play/{name}" for name in own)]


def page_assets(app, pagename, templatename, context, doctree) -> None:
    """Add the views' script and style to a page that has views."""
    views = [] if doctree is None else list(doctree.findall(_is_view))
    if not views:
        return
    lib = Path(app.outdir) / "_static" / FOLDER
    kinds = sorted({view["lmcourse_kind"] for view in views})
    traces = {trace for view in views for trace in view["lmcourse_traces"]}
    table = {
        kind: [_address(lib, name) for name in scripts(kind, traces)] for kind in kinds
    }
    used = {name for view in views for name in view["lmcourse_stores"]}
    work = Path(app.outdir).parent / "play"
    stores = {name: play.stage(name, lib, work) for name in sorted(used)}
    for name in styles(kinds):
        app.add_css_file(f"{FOLDER}/{name}")
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
    return getattr(node, "attributes", {}).get("lmcourse_kind") is not None


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
    for name in EVERYWHERE:  # before what uses them
        app.add_js_file(f"{FOLDER}/{name}", priority=400, loading_method="defer")
    app.connect("config-inited", _configure)
    app.connect("builder-inited", _stage)
    app.connect("html-page-context", page_assets)
    app.connect("html-page-context", drop_unused_mathjax, priority=900)
    app.connect("build-finished", drop_icon_script)
