"""A page with views that run in it and nothing else, made without building the book."""

import json
import shutil

from serving import ROOT

from lmbook import assets, modules, play
from lmbook.renderer import library, view_html

PAGE = """<!DOCTYPE html>
<html lang="en" data-theme="light"><head><meta charset="utf-8"><title>Views</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
{styles}
<style>body {{ color: var(--pst-color-text-base); margin: 1rem;
background: var(--pst-color-background); font-family: system-ui, sans-serif }}</style>
</head><body><main><h1>Views</h1>
{views}
</main>{script}</body></html>
"""


def make_page(folder, views, work):
    """Write ``index.html`` and all that its views load; return its path.

    Parameters
    ----------
    folder : Path
        Where; made.
    views : list of lmcourse.views.View
    work : Path
        Where stores are kept once made.
    """
    lib = folder / "lib"
    (lib / "play").mkdir(parents=True)
    described = [view.description() for view in views]
    names = sorted({library(each) for each in described})
    for name in ("modules.js", "draw-play.js", "views.js", "views.css"):
        shutil.copy(assets.OWN / name, lib)
    shutil.copy(ROOT / "chapters" / "_static" / "course.css", lib)
    for path in modules.PLAY.iterdir():
        body = path.read_text("utf-8")
        body = modules.script(path.name) if path.suffix == ".js" else body
        (lib / "play" / path.name).write_text(body, "utf-8")
    used = {name for each in described for name in each["data"]["stores"]}
    stores = {name: play.stage(name, lib, work) for name in sorted(used)}
    table = {name: assets.scripts(name, set()) for name in names}
    styles = ["course.css", "views.css", "play/play.css", *(f"{n}.css" for n in names)]
    styles = [name for name in styles if (lib / name).is_file()]
    settings = {"libraries": table, "stores": stores}
    told = " ".join(f"data-{k}='{json.dumps(v)}'" for k, v in settings.items())
    page = PAGE.format(
        styles="\n".join(f'<link rel="stylesheet" href="lib/{n}">' for n in styles),
        views="\n".join(view_html(each) for each in described),
        script=f'<script src="lib/views.js" defer {told}></script>',
    )
    (folder / "index.html").write_text(page, "utf-8")
    return folder / "index.html"
