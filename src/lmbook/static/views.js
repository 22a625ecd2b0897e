/* Finds the page's views, loads what draws them when they are scrolled near, and tells
   them of a change of theme. A view's module exports a function of the view's kind, or
   `mount`:

     export function mount(element, data, context) { ...; return { theme() {} }; }

   element   the view's place, emptied, with an id; until then it shows the stored state.
   data      what the Python side gave.
   context   root: the whole view; the rest is for store.js, which reads vocabularies, and
             client.js, which runs models.

   It may be async. What it returns may have `theme`, called when the theme changes, and
   `state`, by which a link brings it back as it was left (play/link.js). If it throws, what
   was there comes back, with a note and a button that tries again. The page works from a
   folder too: classic scripts, and data in the page. */
const ownScript = /** @type {HTMLScriptElement} */ (document.currentScript);
const folder = ownScript.src.replace(/[^/]*$/, "");
/**
 * For each kind of view the scripts that draw it, by their addresses below `folder`.
 *
 * @type {Record<string, string[]>}
 */
const libraries = JSON.parse(ownScript.dataset.libraries ?? "{}");
/** @type {Record<string, Promise<void>>} */
const loading = {};
/** @type {View[]} */
const drawn = [];

/**
 * Run a script; several asked for together run in the order of asking. An Error if it does not
 * come.
 *
 * @param {string} address below `folder`
 * @returns {Promise<void>}
 */
function run(address) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = folder + address;
    script.async = false;
    script.onload = () => {
      script.remove(); // its text may be large
      resolve();
    };
    script.onerror = () => {
      script.remove();
      reject(new Error(`could not load ${script.src}`));
    };
    document.head.append(script);
  });
}

/**
 * Run a script once for all views; one that did not come is asked for again the next time.
 *
 * @param {string} address below `folder`
 */
function load(address) {
  loading[address] ??= run(address).catch((error) => {
    delete loading[address];
    throw error;
  });
  return loading[address];
}

window.lmcourse ??= /** @type {Shared} */ ({});
Object.assign(window.lmcourse, {
  stores: JSON.parse(ownScript.dataset.stores || "{}"),
  carried: {}, // what scripts of stores bring, by address
  folder,
  run,
});

/**
 * The part of a view that its module draws in.
 *
 * @param {HTMLElement} root
 * @returns {HTMLElement}
 */
function canvasOf(root) {
  return /** @type {HTMLElement} */ (root.querySelector(".lmc-canvas"));
}

/**
 * The name that a link has for a view: that of its figure, or one by its position.
 *
 * @param {HTMLElement} root
 * @param {number} index its position among the views of the page
 * @returns {string}
 */
function nameOf(root, index) {
  const figure = root.closest("figure[id]");
  if (figure) return figure.id;
  root.id ||= `view-${index}`;
  return root.id;
}

/**
 * Draw a view, unless it is drawn or being drawn; if that fails, show what stood there before.
 *
 * @param {HTMLElement} root
 * @param {number} index its position among the views of the page
 */
async function draw(root, index) {
  if (root.dataset.state !== "waiting") return;
  root.dataset.state = "loading";
  const canvas = canvasOf(root);
  const stored = Array.from(canvas.childNodes);
  const { kind = "", module = "" } = root.dataset;
  try {
    await Promise.all(libraries[kind].map(load));
    const data = JSON.parse(root.querySelector(".lmc-data")?.textContent ?? "");
    canvas.textContent = "";
    canvas.id = `lmc-view-${index}`;
    // Libraries would take the wheel for themselves: here it scrolls the page.
    canvas.addEventListener("wheel", (event) => event.stopPropagation(), true);
    const exported = window.lmcourse.play[module];
    const mount = exported[kind] ?? exported.mount;
    const handle = await mount(canvas, data, { ...window.lmcourse, root });
    drawn.push(handle || {});
    window.lmcourse.play.link.attach(root, nameOf(root, index), handle?.state);
    root.dataset.state = "drawn";
    canvas.style.minHeight = "";
    performance.mark("lmcourse-view");
  } catch (error) {
    root.dataset.state = "failed";
    showStored(root, stored, index, error.message);
    console.error(error);
  }
}

/**
 * Show what stood there before, why no more does, and a button that tries again.
 *
 * @param {HTMLElement} root
 * @param {ChildNode[]} stored what stood there before
 * @param {number} index its position among the views of the page
 * @param {string} message why it was not drawn
 */
function showStored(root, stored, index, message) {
  const canvas = canvasOf(root);
  const note = document.createElement("p");
  note.className = "lmc-alt";
  note.textContent = `${root.getAttribute("aria-label")} (${message}) `;
  const again = document.createElement("button");
  again.type = "button";
  again.textContent = "Try again";
  again.addEventListener("click", () => {
    canvas.replaceChildren(...stored);
    root.dataset.state = "waiting";
    draw(root, index);
  });
  note.append(again);
  const remaining = stored.filter((node) => !(node instanceof Element && node.matches(".lmc-alt")));
  canvas.replaceChildren(...remaining, note);
  /** @type {NodeListOf<HTMLDetailsElement>} */
  const tables = root.querySelectorAll("details.lmc-table");
  for (const table of tables) table.open = true;
}

/** @type {HTMLElement[]} */
const views = Array.from(document.querySelectorAll(".lmc-view"));
const near = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      const root = /** @type {HTMLElement} */ (target);
      draw(root, views.indexOf(root));
    }
  },
  { rootMargin: "500px 0px" },
);
views.forEach((root) => near.observe(root));
window.addEventListener("beforeprint", () => views.forEach(draw));

/* Draw the view whose state the address has; where it is not, say so. */
async function openLink() {
  const [name, ...fields] = location.hash.slice(1).split("&");
  if (!fields.length) return;
  const index = names.indexOf(name);
  if (index < 0) return tellMissing();
  views[index].scrollIntoView();
  await draw(views[index], index);
  views[index].scrollIntoView(); // what stands above it may have grown
}

/* Say below the page's title that it has no such view. */
function tellMissing() {
  const note = document.createElement("p");
  note.className = "lmc-link";
  note.setAttribute("role", "status");
  note.textContent = "The link asks for a view that is not on this page.";
  document.querySelector("main h1, h1")?.after(note);
}

const names = views.map(nameOf);
addEventListener("hashchange", openLink);
openLink();

new MutationObserver(() => {
  for (const handle of drawn) handle.theme?.();
}).observe(document.documentElement, { attributeFilter: ["data-theme"] });
