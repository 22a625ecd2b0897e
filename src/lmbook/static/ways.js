/* Two ways to read a page: the switch at its top. <html data-way> is "read" or "work"; ways.css
   hides in the first what belongs to the second. It is kept in this browser, and set before
   anything is drawn. The block under the reader's eye stays where it is. */
const KEY = "lmcourse:way";
const ROOT = document.documentElement;
/** @type {Record<string, [string, string]>} its name, and what it shows */
const WAYS = {
  read: ["Read", "Without code"],
  work: ["Work", "With code, tasks in code and proofs"],
};
const LEFT_OUT = ".lm-work, .cell_input, .above-input";
const BLOCKS = ["p", "li", "h1", "h2", "h3", "dt", "tr", "figure", "pre", ".lmc-view"];
/** @type {Record<string, HTMLButtonElement>} */
const buttons = {};

/* Returns the way that this browser keeps, "read" or "work"; null if it keeps none. */
function storedWay() {
  try {
    const way = localStorage.getItem(KEY);
    return way !== null && way in WAYS ? way : null;
  } catch {
    return null; // nothing can be kept
  }
}

/* Show at the switch which way is chosen. */
function show() {
  for (const [way, button] of Object.entries(buttons))
    button.setAttribute("aria-pressed", String(way === ROOT.dataset.way));
}

/**
 * Show the page in a way.
 *
 * @param {string} way a key of WAYS
 */
function set(way) {
  ROOT.dataset.way = way;
  show();
  window.dispatchEvent(new Event("resize")); // what was hidden had no width
}

/* The last block that both ways show and that begins above the reader's eye. */
function underEye() {
  const seen = Array.from(
    document.querySelectorAll(BLOCKS.map((name) => `article ${name}`).join()),
  ).filter((block) => !block.closest(LEFT_OUT) && block.getClientRects().length);
  const eye = innerHeight / 3;
  return seen.findLast((block) => block.getBoundingClientRect().top <= eye) || seen[0];
}

/**
 * Show the page in a way, keep that, and hold the block under the reader's eye where it is.
 *
 * @param {string} way a key of WAYS
 */
function choose(way) {
  const block = way !== ROOT.dataset.way && scrollY > 0 ? underEye() : undefined;
  /* How far the block is below the top of the window. */
  const top = () => (block ? block.getBoundingClientRect().top : 0);
  const before = top();
  /* Scroll to where it was before. */
  function hold() {
    if (block) scrollBy({ top: top() - before, behavior: "instant" });
  }
  ROOT.style.overflowAnchor = "none"; // the browser's own way to hold it
  try {
    localStorage.setItem(KEY, way);
  } catch {
    /* as long as the page is open */
  }
  set(way);
  hold();
  requestAnimationFrame(() => {
    hold();
    ROOT.style.overflowAnchor = "";
  });
}

/**
 * Show a place that a link leads to: choose *Work* if *Read* leaves it out.
 *
 * @param {Element} place
 * @returns {boolean} whether it was left out
 */
function reveal(place) {
  const hidden = ROOT.dataset.way === "read" && place.closest(LEFT_OUT);
  if (hidden) choose("work");
  return Boolean(hidden);
}

/* Put the switch at the top of the page. */
function add() {
  const group = document.createElement("div");
  group.className = "lm-ways";
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", "Two ways to read");
  for (const [way, [name, title]] of Object.entries(WAYS)) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: name, title });
    button.dataset.way = way;
    buttons[way] = button;
    group.append(button);
  }
  document.querySelector(".header-article-items__end")?.prepend(group);
  show();
}

window.lmcourse ??= /** @type {Shared} */ ({});
window.lmcourse.reveal = reveal;
ROOT.dataset.way = storedWay() ?? "read";
document.addEventListener("DOMContentLoaded", add);
document.addEventListener("click", (event) => {
  const target = /** @type {Element} */ (event.target);
  /** @type {HTMLElement | null} */
  const element = target.closest("[data-way]:not(html)");
  const way = element?.dataset.way;
  if (way) choose(way);
});
window.addEventListener("storage", ({ key }) => {
  const way = storedWay();
  if (key === KEY && way) set(way);
});
