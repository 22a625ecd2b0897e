"""A visit to a page in a real browser: what it asks for, what goes wrong, what it shows.

Helpers of ``test_browser.py``; everything is asked of the page, nothing of its source.
"""

import itertools
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from patience import PATIENCE

LOAD = 1000 * PATIENCE  # milliseconds
expect.set_options(timeout=LOAD)
NEW = "Got invalid theme mode: ."  # the theme, where none was chosen
# What Chromium says of a request that nobody waits for any more, since the reader went on
# to another page. A server that is gone or a file that does not come has other words.
LEFT = "net::ERR_ABORTED"
# SLOWED=5 pytest -m browser: pages compute five times slower and their files come late, so
# that a test which does not wait for what it looks at fails here, not one day elsewhere.
SLOWED = float(os.environ.get("SLOWED", 1))


@dataclass
class Visit:
    """An open page and what was recorded about it."""

    page: object
    origin: str
    outside: list = field(default_factory=list)  # addresses of other hosts that it tried
    inside: list = field(default_factory=list)  # addresses of the site that it asked for
    errors: list = field(default_factory=list)  # script errors, failed requests

    def clean(self):
        """Fail if anything left the site, or went wrong."""
        assert self.outside == [], f"requests to other hosts: {self.outside}"
        assert self.errors == [], f"errors in the page: {self.errors}"
        assert not self.page.evaluate("window.harmed"), "text was executed"

    def theme(self, wanted):
        """Switch the theme as a reader does, with the button."""
        for _ in range(3):
            if self.page.evaluate("document.documentElement.dataset.theme") == wanted:
                break
            button = self.page.locator("button.theme-switch-button:visible").first
            button.click()
        assert self.page.evaluate("document.documentElement.dataset.theme") == wanted
        self.page.mouse.move(0, 0)
        settle(self.page)

    def turn(self, width):
        """Give the window another width."""
        self.page.set_viewport_size({"width": width, "height": 900})
        settle(self.page)

    def views(self):
        """Every view as (locator, kind, data)."""
        roots = self.page.locator(".lmc-view")
        for index in range(roots.count()):
            root = roots.nth(index)
            data = root.locator(".lmc-data").text_content()
            yield root, root.get_attribute("data-kind"), json.loads(data)

    def draw(self):
        """Unfold the page, scroll to each view, and wait until it is drawn."""
        every = "document.querySelectorAll"
        self.page.evaluate(
            f"{every}('details:not(.lmc-table)').forEach(d => d.open = true)"
        )
        hidden = ".toggle-hidden .toggle-button"
        self.page.evaluate(f"{every}('{hidden}').forEach(button => button.click())")
        for root, _, _ in self.views():
            root.evaluate("e => e.scrollIntoView({block: 'center'})")
            expect(root).to_have_attribute("data-state", "drawn", timeout=LOAD)
        scrolling_is_seen(self.page)


def scrolling_is_seen(page):
    """Wait until the theme, which looks some time after, lets keys scroll what scrolls."""
    # It looks when a window changes its width; a font that came later is not seen before.
    page.evaluate("dispatchEvent(new Event('resize'))")
    page.wait_for_timeout(400)
    page.wait_for_function(
        """() => Array.from(document.querySelectorAll("pre[id^=codecell]")).every(
          (e) => e.scrollWidth <= e.clientWidth || e.tabIndex === 0)""",
        timeout=LOAD,
    )


def new_page(browser, **how):
    """Open an empty page of its own, which waits as long as a visit does.

    Parameters
    ----------
    browser : Browser
        Playwright's.
    **how
        What Playwright's ``Browser.new_page`` takes.

    Returns
    -------
    Page
        Playwright's. Its caller closes it.
    """
    page = browser.new_page(**how)
    page.set_default_timeout(LOAD)
    return page


def settle(page):
    """Wait for two frames."""
    page.evaluate(
        "() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"
    )


def stop_once(page, begun, name="Stop"):
    """Have the page click its own button to stop as soon as something is so.

    A test that clicks itself may come too late, when all is done, on a busy machine.

    Parameters
    ----------
    page : Page
        Playwright's. Its ``stopped`` is true as soon as the button was clicked.
    begun : str
        JavaScript: a condition, looked at whenever the page changes.
    name : str
        What stands on the button, which must be seen and enabled.
    """
    page.evaluate(
        f"""(name) => {{
          window.stopped = false;
          const observer = new MutationObserver(() => {{
            const button = Array.from(document.querySelectorAll("button")).find(
              (e) => e.textContent === name && !e.disabled && e.checkVisibility()
            );
            if (!button || !({begun})) return;
            observer.disconnect();
            window.stopped = true;
            button.click();
          }});
          const all = {{ attributes: true, characterData: true, childList: true }};
          observer.observe(document.body, {{ ...all, subtree: true }});
        }}""",
        name,
    )


def slow(page):
    """Slow a page's processor and its network, where SLOWED asks for it."""
    if SLOWED > 1:
        tools = page.context.new_cdp_session(page)
        tools.send("Emulation.setCPUThrottlingRate", {"rate": SLOWED})
        late = {"offline": False, "latency": 40 * SLOWED}
        tools.send(
            "Network.emulateNetworkConditions",
            late | {"downloadThroughput": -1, "uploadThroughput": -1},
        )


def heard(live, text):
    """Wait until a live region says something; it may have begun with something else."""
    expect(live).to_contain_text(text, timeout=LOAD)


@contextmanager
def visit(
    browser,
    address,
    *,
    theme="light",
    width=1280,
    way="work",
    javascript=True,
    wait=True,
    first="",
):
    """Open a page with every other host cut off; without a ``way``, as who comes first.

    The script ``first`` runs before the page's own.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=theme,
        java_script_enabled=javascript,
        reduced_motion="reduce",
    )
    # Written before a page's own, what is kept of files may split in two.
    settings = f"localStorage.mode = localStorage.theme = '{theme}';"
    settings += f"localStorage['lmcourse:way'] ??= '{way}';"
    harm = "window.harm = () => { window.harmed = true; };"  # what hostile text would call
    context.add_init_script(f"{settings if way else ''}{harm}{first}")
    scheme, _, rest = address.partition("://")
    origin = f"{scheme}://{rest.partition('/')[0]}"
    context.set_default_timeout(LOAD)
    opened = Visit(context.new_page(), origin)
    slow(opened.page)

    def route(request):
        url = request.request.url
        if url.startswith((origin, "data:", "blob:")):
            opened.inside.append(url)
            request.continue_()
        else:
            opened.outside.append(url)
            request.abort()

    def failed(request):
        if request.failure != LEFT:
            opened.errors.append(f"{request.failure} {request.url}")

    def answered(response):
        if response.status >= 400:
            opened.errors.append(f"{response.status} {response.url}")

    context.route("**/*", route)
    opened.page.on("pageerror", lambda error: opened.errors.append(str(error)))
    opened.page.on("requestfailed", failed)
    opened.page.on("response", answered)
    opened.page.on(
        "console",
        lambda m: m.type == "error" and NEW not in m.text and opened.errors.append(m.text),
    )
    try:
        opened.page.goto(address, wait_until="load" if wait else "commit", timeout=LOAD)
        yield opened
    finally:
        context.close()


# --- marks ----------------------------------------------------------------------------


def marks(root, selector):
    """Count the elements of a view that match."""
    return root.locator(selector).count()


def check_heads(root, data):
    """A heat map a head and one in full, none of them blank."""
    heads = len(data["attention"])
    assert marks(root, "canvas") == heads + 1
    labels = root.locator("h4").all_text_contents()
    assert [plain(label) for label in labels] == [f"Head {head}" for head in range(heads)]
    painted = root.locator("canvas").evaluate_all(
        """canvases => canvases.map(c => {
          const p = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
          let blue = 0;
          for (let i = 0; i < p.length; i += 4)
            if (p[i + 3] > 200 && p[i + 2] > p[i] + 30) blue++;
          return blue;
        })"""
    )
    assert all(count > 0 for count in painted), painted


def check_head_view(root, data):
    """A line a head and a pair of tokens; a square a head; a choice a layer."""
    layers, heads = len(data["attention"]), len(data["attention"][0])
    count = len(data["tokens"])
    assert marks(root, "#bertviz-attention line") == heads * count * count
    assert marks(root, "rect[role=checkbox]") == heads
    assert marks(root, "#layer option") == layers
    assert root.locator("#layer").input_value() == str(data["layer"])
    checked = root.locator("rect[role=checkbox]").evaluate_all(
        "squares => squares.map(s => s.getAttribute('aria-checked') === 'true')"
    )
    assert [head for head, on in enumerate(checked) if on] == data["heads"]
    for side in ("left", "right"):
        texts = root.locator(f"#{side} text").all_text_contents()
        assert texts == [pretty(token) for token in data["tokens"]]


def check_model_view(root, data):
    """A frame a head of each layer, and its lines."""
    count = len(data["tokens"])
    frames = len(data["layers"]) * len(data["heads"])
    assert marks(root, "rect.attn_background") == frames
    assert marks(root, "svg > g > g > line") == frames * count * count
    assert marks(root, "rect[role=button]") == frames


def check_sentences(root, data):
    """A button a token of the first sentence, with its share; an option a sentence."""
    first = data["sentences"][0]
    shares = first["weights"][data["head"]][first["query"]]
    wanted = [
        token + (f"{share}\u2009%" if share else "")
        for token, share in zip(first["tokens"], shares, strict=True)
    ]
    assert root.locator(".lmc-word").all_text_contents() == wanted
    assert marks(root.get_by_label("Sentence", exact=True), "option") == len(
        data["sentences"]
    )
    assert marks(root, ".lmc-square") == len(first["weights"])
    arcs = [share >= 4 for share in shares]
    arcs[first["query"]] = False
    assert marks(root, ".lmc-line path") == sum(arcs)


def check_tokens(root, data):
    """A span a token, with its text."""
    texts = root.locator(".colored-tokens > span").all_text_contents()
    wanted = [" ".join(token.split()) for token in data["tokens"]]
    assert [" ".join(plain(text).split()) for text in texts] == wanted


FLAT = ".scatterlayer > .trace, .barlayer > .trace, .boxlayer > .trace"
FLAT += ", .violinlayer > .trace, .heatmaplayer > .hm, .contourlayer > .contour"


def check_plot(root, data):
    """A group a trace, or a painted canvas; a mark a point where there are markers."""
    traces = [t for t in data["figure"]["data"] if t.get("visible", True) is True]
    flat = [t for t in traces if not t.get("type", "").endswith(("3d", "surface"))]
    assert marks(root, FLAT) == len(flat)
    if len(flat) < len(traces):
        assert marks(root, ".gl-container canvas") > 0
    shown, wanted = root.locator(".js-plotly-plot").evaluate(
        """plot => [
          plot.querySelectorAll(".scatterlayer .point").length,
          plot._fullData.filter(t => t.type === "scatter" && t.visible === true
                                && (t.mode || "").includes("markers"))
            .reduce((n, t) => n + Array.from(t.x || t.y).filter(
              (_, i) => (t.x ? t.x[i] : 0) !== null && (t.y ? t.y[i] : 0) !== null
            ).length, 0),
        ]"""
    )
    assert shown == wanted


def shelf(data, poem, level=-1):
    """Return where the model would put a poem."""
    row = data["support"][level][poem]
    return row.index(max(row))


def cell(data, own, model):
    """Return the poems that the editors put on one shelf and the model on another."""
    poems = range(len(data["texts"]))
    return [p for p in poems if (data["shelves"][p], shelf(data, p)) == (own, model)]


def check_poems(root, data):
    """A count a pair of shelves; the first poem, letter by letter; who is beside it."""
    names, first = data["names"], data["first"]
    counts = [
        len(cell(data, *pair)) for pair in itertools.product(range(len(names)), repeat=2)
    ]
    assert root.locator(".lmp-grid button").all_text_contents() == list(map(str, counts))
    assert root.locator(".lmp-text").text_content() == data["texts"][first]
    assert root.locator(".lmp-where").first.text_content() == data["places"][first]
    own, model = data["shelves"][first], shelf(data, first)
    poems = root.get_by_label("poem", exact=True)
    assert marks(poems, "option") == len(cell(data, own, model))
    assert names[own] in root.locator(".lmp-verdict").text_content()
    assert marks(root, ".lmp-path tbody tr") == len(data["levels"])


def plain(text):
    """Return a token as it was handed over: without what makes it inert."""
    return text.replace("\u2060", "").replace("\u00a0", " ")


def pretty(token):
    """Return a token as bertviz writes it."""
    return token.replace("\u0120", " ").replace("\u2581", " ").replace("</w>", "")


# --- reactions ------------------------------------------------------------------------


def focus(root, selector):
    """Focus the one tab stop among the elements that match."""
    stop = root.locator(f"{selector}[tabindex='0']")
    assert stop.count() == 1, f"{selector}: one stop for the tab key, not {stop.count()}"
    stop.focus()


def react_heads(visit, root, data):
    """An arrow key goes to the next head and shows it in full."""
    if len(data["attention"]) < 2:
        return
    visit.page.mouse.move(0, 0)  # a head under the pointer is the one in full
    expect(root.locator("h2")).to_have_text("Head 0")
    before = root.locator("canvas").last.evaluate("c => c.toDataURL()")
    focus(root, ".lmc-heads [role=button]")
    visit.page.keyboard.press("ArrowRight")
    expect(root.locator("h2")).to_have_text("Head 1")
    visit.page.keyboard.press("Enter")
    expect(root.locator("[role=button]").nth(1)).to_have_attribute("aria-pressed", "true")
    if data["attention"][0] != data["attention"][1]:
        visit.page.wait_for_function(  # it is painted a little later
            "([e, b]) => [...e.querySelectorAll('canvas')].at(-1).toDataURL() !== b",
            arg=[root.element_handle(), before],
            timeout=LOAD,
        )


def opacities(root):
    """Return the opacity of every line."""
    return root.locator("#bertviz-attention line").evaluate_all(
        "lines => lines.map(l => +l.getAttribute('stroke-opacity'))"
    )


def react_head_view(visit, root, data):
    """Another layer, a head switched off, and a token with the focus change the lines."""
    layers, heads = len(data["attention"]), len(data["attention"][0])
    count = len(data["tokens"])
    if layers > 1:
        before = opacities(root)
        root.locator("#layer").select_option(str((data["layer"] + 1) % layers))
        settle(visit.page)
        assert opacities(root) != before
    if len(data["heads"]) > 1:
        square = root.locator("rect[role=checkbox]").nth(data["heads"][0])
        square.press("Enter")
        expect(square).to_have_attribute("aria-checked", "false")
        first = data["heads"][0] * count * count
        assert opacities(root)[first : first + count * count] == [0] * count * count
        square.press("Shift+Enter")
        checked = root.locator("rect[aria-checked=true]")
        expect(checked).to_have_count(1)
        expect(checked).to_have_attribute("aria-label", f"Head {data['heads'][0]}")
    focus(root, "#left g[role=img]")
    visible = root.locator("#bertviz-attention line[visibility=visible]")
    assert visible.count() == heads * count


def react_model_view(visit, root, data):
    """Enter opens a head, and closes it again; an arrow leads to the next layer's."""
    focus(root, "rect[role=button]")
    visit.page.keyboard.press("ArrowDown")
    visit.page.keyboard.press("Enter")
    layer = data["layers"][:2][-1]
    heading = root.locator("text.detail").text_content()
    assert heading == f"Layer {layer}, Head {data['heads'][0]}"
    shown = root.locator("g.detail text").all_text_contents()
    assert shown == 2 * [pretty(token) for token in data["tokens"]]
    visit.page.keyboard.press("Enter")
    assert marks(root, ".detail") == 0


def react_sentences(visit, root, data):
    """Another sentence, another head and another token change what is shown."""
    caption = root.locator(".lmc-told")
    seen = [caption.text_content()]
    steps = [
        lambda: root.get_by_role("button", name="next sentence").click(),
        lambda: root.locator(".lmc-word").last.click(),
        lambda: visit.page.keyboard.press("ArrowLeft"),
        lambda: visit.page.keyboard.press("Enter"),
        lambda: root.locator(".lmc-square").first.click(),
        lambda: root.get_by_label("Sentence", exact=True).select_option("0"),
    ]
    for step in steps:
        step()
        seen.append(caption.text_content())
    assert seen[2] == seen[3]  # an arrow moves, Enter chooses
    assert all(seen[i] != seen[i + 1] for i in (0, 1, 3, 4, 5))
    assert root.locator(".lmc-note").text_content() == data["notes"][0]
    root.locator(".lmc-square").nth(data["head"]).click()
    assert caption.text_content() == seen[0]
    switch_untrained_sentences(root, data)


def switch_untrained_sentences(root, data):
    """Random weights give the shown sentence other shares; then the trained come back."""
    chosen = root.get_by_label("Had it learned nothing?")
    if "untrained" not in data:
        assert chosen.count() == 0
        return
    first = data["sentences"][0]
    worlds = {"random weights": data["untrained"][0], "as it is": first["weights"]}
    for name, weights in worlds.items():
        chosen.select_option(label=name)
        shown = root.locator(".lmc-word small").all_text_contents()
        shares = weights[data["head"]][first["query"]]
        assert shown == [f"{share}\u2009%" if share else "" for share in shares]


def react_poems(visit, root, data):
    """A number shows its poems, a neighbour's line its poem; keys move level and cell."""
    text, press = root.locator(".lmp-text"), visit.page.keyboard.press
    root.locator("details").first.evaluate("d => d.open = false")  # or draw() opened it
    root.locator("summary").first.click()
    root.locator("input[type=range]").focus()
    press("Home")
    assert root.locator("output").text_content().startswith(data["levels"][0])
    press("End")
    place = root.locator(".lmp-grid button").evaluate_all(
        "e => e.findIndex(b => !b.disabled && b.getAttribute('aria-pressed') !== 'true')"
    )
    chosen = root.locator(".lmp-grid button").nth(place)
    chosen.focus()
    press("Enter")
    assert chosen.get_attribute("aria-pressed") == "true"
    poems = root.get_by_label("poem", exact=True)
    assert marks(poems, "option") == int(chosen.text_content())
    root.locator(".lmp-near button").first.click()
    near = root.get_by_label("poem", exact=True).evaluate("s => Number(s.value)")
    assert text.text_content() == data["texts"][near]
    root.get_by_role("button", name="next poem").click()
    react_untrained(root, data)


def react_untrained(root, data):
    """Random weights put other poems beside the one that is shown; so may another order."""
    chosen = root.get_by_label("Had it learned nothing?")
    if "untrained" not in data:
        assert chosen.count() == 0
        return
    poem = root.get_by_label("poem", exact=True).evaluate("s => Number(s.value)")
    mixed = {"shuffled words": data["reordered"]} if "reordered" in data else {}
    for world, expected in {
        "random weights": data["untrained"],
        **mixed,
        "as it is": data,
    }.items():
        chosen.select_option(label=world)
        top = root.locator(".lmp-near").first.locator("button").all_text_contents()
        near = expected["near"][-1][poem][: len(top)]
        assert top == [data["texts"][other].split("\n")[0] for other in near]


def react_tokens(visit, root, data):
    """A token with the focus shows its value."""
    focus(root, ".colored-tokens > span")
    tip = root.locator("[data-popper-interactive]")
    tip.first.wait_for()
    value = plain(tip.first.text_content()).removeprefix(data["tokens"][0])
    assert float(value) == pytest.approx(float(data["values"][0]))


def react_plot(visit, root, data):
    """A slider moves by key, and what is drawn moves with it."""
    sliders = root.locator("g.slider-group")
    for index in range(sliders.count()):
        slider = sliders.nth(index)
        before = int(slider.get_attribute("aria-valuenow"))
        slider.press("ArrowLeft" if before else "ArrowRight")
        after = before - 1 if before else 1
        expect(slider).to_have_attribute("aria-valuenow", str(after), timeout=LOAD)


# What a view has drawn, and what it does when a reader does something. Those that run in
# the page have their own tests.
VIEWS = {
    "attention_heads": (check_heads, react_heads),
    "head_view": (check_head_view, react_head_view),
    "model_view": (check_model_view, react_model_view),
    "poems": (check_poems, react_poems),
    "sentences": (check_sentences, react_sentences),
    "tokens": (check_tokens, react_tokens),
    "plot": (check_plot, react_plot),
}


def check(root, kind, data):
    """Look whether a view has drawn what its data say."""
    if kind in VIEWS:
        VIEWS[kind][0](root, data)
    else:
        assert root.locator(".lmc-canvas").inner_text().strip()


def react(visit, root, kind, data):
    """Do to a view what a reader does."""
    if kind in VIEWS:
        VIEWS[kind][1](visit, root, data)
        visit.page.evaluate("document.activeElement.blur()")


# axe looks at each element, for seconds on a long page. What it need not see is lifted out
# and put back: lines of drawings, and glyphs of equations (the words of an equation stay).
LIFT = """() => {
  window.lifted ||= [];
  window.lift = parent => {
    lifted.push([parent, Array.from(parent.childNodes)]);
    parent.replaceChildren();
  };
  new Set(Array.from(document.querySelectorAll(".lmc-canvas line"), l => l.parentNode))
    .forEach(lift);
  document.querySelectorAll("mjx-math").forEach(lift);
}"""
# And for the rules about colours, which take the longest: what has stood three times before
# in the same ink, size and decoration, on the same grounds. (Three: axe doesn't judge a
# word that lies under a button.)
ALIKE = """() => {
  const inks = new Map(), times = new Map();
  const ink = e => {
    if (!inks.has(e)) {
      const s = getComputedStyle(e);
      const ground = [
        s.backgroundColor.replace("rgba(0, 0, 0, 0)", ""), s.opacity.replace(/^1$/, ""),
        ...[s.backgroundImage, s.filter, s.clipPath].map(v => v.replace("none", "")),
        s.clip.replace("auto", "")].join("");
      const [under] = e.parentElement ? ink(e.parentElement) : [""];
      const own = [s.color, s.fontSize, s.fontWeight, s.textDecoration, s.textShadow];
      inks.set(e, [ground ? under + ">" + ground : under, own.join(";")]);
    }
    return inks.get(e);
  };
  const again = e => {
    const kind = [...ink(e), ink(e.parentElement)[1]].join("|");
    times.set(kind, (times.get(kind) || 0) + 1);
    return times.get(kind) > 3;
  };
  const shown = e => e.checkVisibility({ visibilityProperty: true });
  const of = ":is(p, li, td, th, dt, dd, pre)", whole = [], words = [];
  for (const block of document.body.querySelectorAll(`${of}:not(:has(${of}))`)) {
    const parts = [block, ...block.querySelectorAll("*")].filter(shown);
    const alike = parts.filter(again);
    if (alike.length === parts.length) whole.push(block);
    else words.push(...alike.filter(part => part.matches("span:not(:has(*))")));
  }
  document.querySelectorAll("svg").forEach(lift); // axe leaves their words to CONTRAST
  whole.forEach(lift); // not one by one: a look at a style after each takes seconds
  window.hidden = words; // a word keeps its place, or the next would move under a button
  hidden.forEach(word => { word.style.visibility = "hidden"; });
}"""
LOWER = """() => {
  lifted.splice(0).reverse()
    .forEach(([parent, children]) => parent.replaceChildren(...children));
  window.hidden?.splice(0).forEach(word => word.style.removeProperty("visibility"));
}"""


COLOURS = ["color-contrast", "link-in-text-block"]
# The slowest of the others, which axe never calls serious, is not asked either.
OTHERS = {rule: {"enabled": False} for rule in (*COLOURS, "region")}
AUDITS = {
    "colours": ([LIFT, ALIKE], {"runOnly": COLOURS}),
    "others": ([LIFT], {"rules": OTHERS}),
}


def audit(page, *parts):
    """What axe finds that keeps somebody out: by its rules of colours, the others, all."""
    violations = []
    for scripts, options in (AUDITS[part] for part in parts or AUDITS):
        for script in scripts:  # these thin the page
            page.evaluate(script)
        options = options | {"resultTypes": ["violations"], "preload": False}
        violations += Axe().run(page, options=options).response["violations"]
        page.evaluate(LOWER)
    return [
        (rule["id"], rule["impact"], [node["html"][:200] for node in rule["nodes"]][:5])
        for rule in violations
        if rule["impact"] in ("serious", "critical")
    ]


# The least contrast of a view's words with the page, or with the button that they are on,
# as WCAG reckons it.
CONTRAST = """root => {
  const rgb = text => (text.match(/[\\d.]+/g) || []).slice(0, 3).map(Number);
  const light = c => {
    const [r, g, b] = c.map(v => v / 255).map(
      v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const page = light(rgb(getComputedStyle(document.body).backgroundColor));
  const words = Array.from(root.querySelectorAll("svg text"))
    .filter(t => t.textContent && !t.closest(".trace")); // not those on bars
  return words.map(t => {
    const front = light(rgb(getComputedStyle(t).fill));
    const button = t.parentElement.querySelector(":scope > rect.updatemenu-item-rect");
    const back = button ? light(rgb(getComputedStyle(button).fill)) : page;
    return (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
  }).reduce((a, b) => Math.min(a, b), 21);
}"""
