/**
 * Make an open page ready for paper. Folds are opened or left out, views are drawn, controls
 * become words. Names of places begin with the page's: the book has all pages in one document.
 *
 * @param {object} page
 * @param {string} page.name its file's, without a suffix
 * @param {string} page.site the site's address, with a slash
 * @param {boolean} page.open whether folds are opened, else they are left out
 * @param {number} page.patience milliseconds that each view has to be drawn in, and all
 *   formulas to be set in, and all plots to find their places in
 * @returns {Promise<{ title: string, html: string, links: string[], rules: string[] }>} the
 *   page's title, its article, the addresses of its style sheets, rules that stand in the page
 */
// biome-ignore lint/correctness/noUnusedVariables: paper.py calls it
async function makeReadyForPaper({ name, site, open, patience }) {
  const article = /** @type {HTMLElement} */ (document.querySelector("article.bd-article"));
  /**
   * Do something with each element of the article that a selector names.
   *
   * @template {Element} [Kind=HTMLElement]
   * @param {string} what
   * @param {(e: Kind) => unknown} then
   */
  const all = (what, then) => {
    for (const e of article.querySelectorAll(what)) then(/** @type {Kind} */ (e));
  };
  /**
   * Wait.
   *
   * @param {number} time in milliseconds
   */
  const sleep = (time) => new Promise((done) => setTimeout(done, time));
  /**
   * Wait for something that the page does by itself; an error if it takes too long.
   *
   * @param {Promise<unknown> | undefined} done
   * @param {string} what is not so yet, for the error
   * @param {string} of what the page's console may say something, for the error
   */
  const within = (done, what, of) => {
    const late = sleep(patience).then(() => {
      const hang = `the ${what} in ${patience / 1000} seconds`;
      const look = `open ${location.href} and look at what its console says of ${of}`;
      throw new Error(`${hang}: print again; if it hangs again, ${look}`);
    });
    return Promise.race([done, late]);
  };
  /* The places and sizes of plots and of all their parts. */
  const places = () =>
    Array.from(article.querySelectorAll(".js-plotly-plot, .js-plotly-plot *"), (e) => {
      const { x, y, width, height } = e.getBoundingClientRect();
      return `${x} ${y} ${width} ${height}`;
    }).join();
  /* Wait until fonts are there and plots have found their places: of two looks the second is the
     same. Plotly answers a new size 100 milliseconds later; a page's timers go off in their order,
     so a plot that is to be drawn again has begun with it before the second look. */
  const settled = async () => {
    await document.fonts.ready;
    let before = "";
    for (let now = places(); now !== before; now = places()) {
      before = now;
      await sleep(300);
    }
  };
  /**
   * Make an element; attributes are set by their names in JavaScript.
   *
   * @type {(tag: string, attributes: object) => HTMLElement}
   */
  const make = (tag, attributes) => Object.assign(document.createElement(tag), attributes);
  /**
   * Whether an element is to go, as nothing of it is seen.
   *
   * @param {Element} e
   */
  const unseen = (e) =>
    !e.checkVisibility() && !e.matches("h1, h1 *, script, style, option, optgroup");

  all(".lm-choice", (choice) => {
    /** @type {NodeListOf<HTMLInputElement>} */
    const checked = choice.querySelectorAll(":checked");
    const chosen = Array.from(checked, (e) => e.value).join("");
    const labels = choice.querySelectorAll("label");
    // Of a few panels all are printed.
    const few = labels.length < 5 && !choice.querySelector("fieldset ~ fieldset");
    choice.querySelectorAll("section").forEach((panel, i) => {
      if (few) panel.prepend(make("b", { textContent: labels[i].textContent }));
      else if (panel.dataset.choice !== chosen) panel.remove();
    });
    if (few) labels.forEach((label) => label.remove());
  });
  if (open) all(".toggle-hidden .toggle-button, .lm-letter", (e) => e.click());
  else all(".dropdown, details:not(.lm-claim), .lm-claim > dl", (e) => e.remove());
  all("details:not(.lmc-table)", (/** @type {HTMLDetailsElement} */ e) => {
    e.open = true;
  });
  all("*:not(svg *)", (e) => {
    if (unseen(e)) e.remove();
  });
  /** @type {NodeListOf<HTMLElement>} */
  const views = article.querySelectorAll(".lmc-view");
  for (const view of views) {
    view.scrollIntoView();
    const end = performance.now() + patience;
    while (!/drawn|failed/.test(String(view.dataset.state)) && performance.now() < end)
      await sleep(50);
    if (view.dataset.state !== "drawn") {
      const why = view.dataset.state === "failed" ? "" : ` in ${patience / 1000} seconds`;
      const label = view.getAttribute("aria-label");
      throw new Error(`a view of the page ${name} was not drawn${why}: ${label}`);
    }
  }
  if (open) all(".lmb-losses .play-controls button", (e) => e.click()); // all that is asked
  all(".lmc-canvas details", (/** @type {HTMLDetailsElement} */ e) => {
    if (open) e.open = true;
    else e.remove();
  });
  const formulas = `formulas of the page ${name} were not set`;
  await within(window.MathJax?.startup?.promise, formulas, "MathJax");
  await within(settled(), `plots of the page ${name} did not find their places`, "Plotly");

  for (const plot of article.querySelectorAll(".js-plotly-plot:has(canvas)")) {
    const size = { width: plot.clientWidth, height: plot.clientHeight };
    const src = await Plotly.toImage(plot, { format: "png", scale: 2, ...size });
    plot.replaceChildren(make("img", { src, ...size }));
  }
  all("canvas", (/** @type {HTMLCanvasElement} */ e) => {
    const image = make("img", {
      src: e.toDataURL(),
      className: e.className,
      style: e.style.cssText,
    });
    Object.assign(image.style, { width: `${e.clientWidth}px`, height: `${e.clientHeight}px` });
    e.replaceWith(image);
  });
  /**
   * Put words in the place of a control.
   *
   * @type {(e: Element, textContent: string | undefined) => void}
   */
  const words = (e, textContent) =>
    e.replaceWith(make("span", { className: "lm-typed", textContent }));
  all("textarea, [type=text]", (/** @type {HTMLInputElement} */ e) => words(e, e.value));
  all("select", (/** @type {HTMLSelectElement} */ e) => words(e, e.selectedOptions[0]?.text));
  all(":is([type=radio], [type=checkbox]):not(:checked)", (e) => e.closest("label")?.remove());
  const useless = [
    ".headerlink",
    ".copybtn",
    ".toggle-button",
    "details.hide > summary",
    ".lmc-hint",
    ".lmc-table",
    ".lmc-detail",
    ".lmx-offer",
    ".lm-left-out",
    ".lm-doors",
    ".lm-done",
    ".lm-sort",
    ".course-end",
    "input",
    ".lmc-view button:not([aria-pressed], [role], .lmc-piece, li *)",
    ".lmc-square[aria-pressed=false]",
    ":is(.play-controls, .lmd-heads) [aria-pressed=false]",
    ".modebar-container",
    ".lmc-attention-heads h3",
    "summary svg",
    ":is(.slider-rail-rect, .slider-rail-touch-rect, .slider-grip-rect, .slider-tick-rect, .slider-labels)",
    ".updatemenu-container",
    ".play-hidden",
    "script",
    "template",
  ];
  all(useless.join(), (e) => e.remove());
  all("details.hide", (e) => e.replaceWith(...e.children));
  const rules = Array.from(document.styleSheets)
    .filter((sheet) => !sheet.href)
    .flatMap((sheet) => Array.from(sheet.cssRules, (rule) => rule.cssText));
  all("*:not(svg *)", (e) => {
    if (unseen(e)) e.remove();
  });
  all("style", (e) => e.remove());

  for (const e of [article, ...article.querySelectorAll("*")]) {
    if (/^H[1-6]$/.test(e.tagName)) {
      const level = Number(e.tagName[1]) + 1; // parts stand above
      e.setAttribute("aria-level", String(level));
    }
    const link =
      e.localName === "a" ? new URL(String(e.getAttribute("href")), location.href).href : null;
    const inside = link?.startsWith(site);
    if (link && inside) {
      const [page, place] = link.slice(site.length).split("#");
      if (page.endsWith(".html"))
        e.setAttribute("href", `#${page.slice(0, -5)}${place ? `.${place}` : ""}`);
      else e.removeAttribute("href"); // a file of the site
    }
    for (const { name: key, value } of [...e.attributes])
      if (key === "id") e.id = `${name}.${value}`;
      else if (/^aria-(labelledby|describedby)$/.test(key))
        e.setAttribute(key, value.replace(/\S+/g, `${name}.$&`));
      else if (key.endsWith("href") ? !inside : value.includes("url("))
        e.setAttribute(key, value.replace(/^#|(url\(["']?)#/g, `$1#${name}.`));
    if (e instanceof HTMLImageElement) e.setAttribute("src", e.src); // the whole address
  }
  const title = article.querySelector("h1")?.textContent ?? "";
  const html = article.innerHTML;
  /** @type {NodeListOf<HTMLLinkElement>} */
  const sheets = document.querySelectorAll("link[rel=stylesheet]");
  const links = Array.from(sheets, (link) => link.href);
  return { title, html, links, rules };
}
