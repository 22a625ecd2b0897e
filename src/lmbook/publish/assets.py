"""The JavaScript that the site runs: pinned, checked, staged once, served by the site.

Libraries come from installed Python packages where these carry them (`lmcourse` has d3 and
jQuery, which notebooks need too), and otherwise from `lmbook.publish.npm`. A page gets only
what it uses: `page_assets` adds one small script, which loads a drawing library when the
first view that needs it is scrolled near; MathJax goes to pages with math.
"""

import hashlib
import json
from collections.abc import Collection
from importlib import metadata
from itertools import chain
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from lmbook.execute.keys import build_folder
from lmbook.pages.renderer import DRAWERS, module_name
from lmbook.play import stores as play
from lmbook.publish import bundles, npm
from lmcourse.views import notebook
from lmcourse.views.markup import library

FOLDER = "lib"  # below _static; not _static itself, whose scripts go to every page
SCRIPTS_OF_EVERY_PAGE = ("site.js",)
VIEWS_SCRIPT = "play.js"  # all views that run in the page
NEVER_LOADED = ("**/*.map", "copybutton_funcs.js")

# plotly's partial bundles, and traces that each draws. The whole is three times theirs.
PARTIAL_BUNDLES = {
    "plotly-cartesian/plotly-cartesian.min.js": {
        "bar",
        "box",
        "contour",
        "heatmap",
        "histogram",
        "image",
        "scatter",
        "violin",
    },
    "plotly-gl3d/plotly-gl3d.min.js": {"mesh3d", "scatter", "scatter3d", "surface"},
}

# --- Python packages ------------------------------------------------------------------


def _installed_file(distribution: str, path: str) -> str:
    """Return the text of a file of an installed package.

    ``distribution`` : the package's name; ``path`` : the file's, below ``site-packages``.
    """
    return metadata.distribution(distribution).locate_file(path).read_text("utf-8")


def bertviz_script(name: str) -> str:
    """Return one of bertviz's scripts as JavaScript that defines a function.

    It is ``lmcourse.head_view`` or ``lmcourse.model_view``, which ``play/bertviz.js``
    calls; ``name`` is "head_view" or "model_view".
    """
    body = notebook.bertviz_script(name)
    return f"(window.lmcourse = window.lmcourse || {{}}).{name} = {body};\n"


FROM_PACKAGES = {
    "jquery/jquery.slim.min.js": lambda: library("jquery.slim.min.js"),
    "d3/d3.min.js": lambda: library("d3.min.js"),
    "bertviz/head_view.js": lambda: bertviz_script("head_view"),
    "bertviz/model_view.js": lambda: bertviz_script("model_view"),
    "circuitsvis/iife.js": lambda: _installed_file(
        "circuitsvis", "circuitsvis/dist/cdn/iife.js"
    ),
    "plotly/plotly.min.js": lambda: _installed_file(
        "plotly", "plotly/package_data/plotly.min.js"
    ),
}


# --- staging --------------------------------------------------------------------------


def stage_site(static: Path, work: Path) -> None:
    """Put our own scripts and what every site needs below ``static/lib``.

    The latter are MathJax, MiniSearch (for searching) and the font Source Serif.

    Parameters
    ----------
    static : Path
        The site's ``_static``.
    work : Path
        Where npm installs; not published.
    """
    packages = npm.install(work)
    for name in ("mathjax", "minisearch", "source-serif"):
        npm.copy_library(packages, name, static / FOLDER)
    bundles.write_bundles(work, static / FOLDER)


def stage_library(name: str, lib: Path, work: Path) -> None:
    """Put a drawing library below ``lib``, unless it is there.

    Parameters
    ----------
    name : str
        A path below ``lib``, such as "d3/d3.min.js": of a folder that npm installs, or of a
        file that a Python package carries.
    lib : Path
        The site's folder of libraries.
    work : Path
        Where npm installs.
    """
    if (lib / name).is_file():
        return
    folder = name.partition("/")[0]
    if folder in npm.LIBRARIES:
        npm.copy_library(npm.install(work), folder, lib)
    else:
        (lib / name).parent.mkdir(parents=True, exist_ok=True)
        (lib / name).write_text(FROM_PACKAGES[name](), encoding="utf-8")


def _address(lib: Path, name: str) -> str:
    """Return a staged file's address, which changes when the file does.

    Parameters
    ----------
    lib : Path
        The site's folder of libraries.
    name : str
        The file's path below it.

    Returns
    -------
    str
        "NAME?v=HASH": ``name``, and eight hexadecimal digits of the file's SHA-256.
    """
    return f"{name}?v={hashlib.sha256((lib / name).read_bytes()).hexdigest()[:8]}"


def view_scripts(kind: str, traces: set[str] = frozenset()) -> list[str]:
    """Return the scripts that draw a kind of view.

    Parameters
    ----------
    kind : str
        Of view, such as "head_view": a key of `DRAWERS`, or the name of a JavaScript module
        in ``static/play``.
    traces : set of str
        The kinds of traces that the page's plots have, such as "scatter"; used for the kind
        "plot" alone. If a part of plotly that npm has (`PARTIAL_BUNDLES`) can draw all of
        them, the first such part is taken in place of the whole.

    Returns
    -------
    list of str
        Paths below the site's folder of libraries, in the order of loading; the last is
        `VIEWS_SCRIPT`, which has the modules of all kinds.
    """
    _module, *libraries = DRAWERS.get(kind, (kind,))
    partial = [bundle for bundle, kinds in PARTIAL_BUNDLES.items() if traces <= kinds]
    if kind == "plot" and partial:
        libraries = partial[:1]
    return [*libraries, VIEWS_SCRIPT]


def view_styles(kinds: Collection[str]) -> list[str]:
    """Return the style sheets that some kinds of views need.

    Parameters
    ----------
    kinds : collection of str
        Such as "head_view" or "toy-view".

    Returns
    -------
    list of str
        Paths below the site's folder of libraries, ``_static/lib``. The first is always
        ``views.css``. ``play/play.css`` follows if a kind is not in `DRAWERS`; such views
        share it. Then come the sheets ``play/MODULE.css`` of the modules that have one.
    """
    names = [f"{module_name(kind)}.css" for kind in kinds]
    if any(kind not in DRAWERS for kind in kinds):
        names = ["play.css", *names]
    existing = bundles.view_files(".css")
    sheets = [f"play/{name}" for name in dict.fromkeys(names) if name in existing]
    return ["views.css", *sheets]


def page_assets(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict,
    doctree: nodes.document | None,
) -> None:
    """Add scripts, styles and data to a page that has views. Sphinx calls it for each page.

    A view is a raw node with ``lmcourse_kind``, a str; ``lmcourse_traces``, a list of str,
    the types of traces of a plotly figure, such as "scatter", by which plotly's bundle is
    chosen; and ``lmcourse_stores``, a list of str, the weights and vocabularies that it
    loads (`lmbook.pages.renderer.view_node`).

    Libraries that draw the page's views, and stores that these load, are put into the site
    first. The page gets the views' style sheets and the script ``views.js``, whose
    attributes hold JSON: ``data-libraries``, kind of view → addresses of its scripts, and
    ``data-stores``, name of a store → what `lmbook.play.stores.stage` returns of it; it is
    missing if there are no stores.

    ``app`` : Sphinx's; ``doctree`` : the page, None if it was made of no source. The other
    arguments, which Sphinx hands on, are not used.
    """
    raw = [] if doctree is None else doctree.findall(nodes.raw)
    views = [node for node in raw if "lmcourse_kind" in node]
    if not views:
        return
    lib = Path(app.outdir) / "_static" / FOLDER
    work = build_folder(Path(app.srcdir).parent)
    kinds = sorted({view["lmcourse_kind"] for view in views})
    traces = {trace for view in views for trace in view["lmcourse_traces"]}
    wanted = {kind: view_scripts(kind, traces) for kind in kinds}
    for name in set(chain(*wanted.values())):
        stage_library(name, lib, work / "npm")
    table = {k: [_address(lib, name) for name in names] for k, names in wanted.items()}
    used = {name for view in views for name in view["lmcourse_stores"]}
    stores = {name: play.stage(name, lib, work / "play") for name in sorted(used)}
    for name in view_styles(kinds):
        app.add_css_file(f"{FOLDER}/{name}")
    data = {"data-libraries": table, "data-stores": stores}
    settings = {k: json.dumps(v, separators=(",", ":")) for k, v in data.items() if v}
    app.add_js_file(f"{FOLDER}/views.js", loading_method="defer", **settings)


def add_findings_script(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict,
    doctree: nodes.document | None,
) -> None:
    """Add the script that groups claims to a page with claims.

    Sphinx calls this for each page, whose HTML is ``body`` of its ``context``; ``app`` is
    Sphinx's, the other arguments are not used.
    """
    if 'class="lm-findings"' in context.get("body", ""):
        app.add_js_file(f"{FOLDER}/findings.js", loading_method="defer")


def drop_unused_mathjax(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict,
    doctree: nodes.document | None,
) -> None:
    """Take MathJax off a page without math; Sphinx adds it to pages that link to math.

    Sphinx calls this for each page. Of its ``context`` ``body`` is the HTML, and
    ``script_files``, which is changed, are its scripts; ``app`` is Sphinx's, the other
    arguments are not used.
    """
    if 'class="math' not in context.get("body", ""):
        files = context["script_files"]
        mathjax = app.config.mathjax_path
        files[:] = [f for f in files if not str(f.filename).endswith(mathjax)]


def _stage_site(app: Sphinx) -> None:
    """Put scripts, styles and fonts into the site, if Sphinx is to write HTML.

    Sphinx calls this before it reads the pages.
    """
    if app.builder.format == "html":
        stage_site(
            Path(app.outdir) / "_static", build_folder(Path(app.srcdir).parent) / "npm"
        )


def drop_unused(app: Sphinx, exception: Exception | None) -> None:
    """Empty the theme's largest script, and remove what no page loads.

    Sphinx calls this at its end; ``exception`` is what ended it, None if all is well: after
    an error nothing is removed.

    The script redraws as SVG the icons of its icon font; the font and its style sheet are
    there all the same, and show every icon without it. No page loads the theme's source
    maps, or what sphinx-copybutton made its script of.
    """
    if exception is not None:
        return
    static = Path(app.outdir) / "_static"
    icons = static / "scripts" / "fontawesome.js"
    if icons.is_file():
        icons.write_text("/* icons: the style sheet's font */\n", encoding="utf-8")
    for pattern in NEVER_LOADED:
        for path in static.glob(pattern):
            path.unlink()


def setup(app: Sphinx) -> None:
    """Have Sphinx put scripts, styles and fonts into the site, and add them to its pages.

    What each page does not use is taken off it, and what no page loads is removed.
    """
    for name in SCRIPTS_OF_EVERY_PAGE:  # before what uses them
        app.add_js_file(f"{FOLDER}/{name}", priority=400, loading_method="defer")
    app.connect("builder-inited", _stage_site)
    app.connect("html-page-context", page_assets)
    app.connect("html-page-context", add_findings_script)
    app.connect("html-page-context", drop_unused_mathjax, priority=900)
    app.connect("build-finished", drop_unused)
