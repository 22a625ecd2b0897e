/* circuitsvis: heat maps of heads, and coloured tokens. It draws dark on white, on
   canvases whose colours no style sheet reaches; in the dark theme the style sheet turns
   the picture over, as it does static figures. Here: names and keys for what it draws. */
import { countField, stateOf } from "./dom.js";
import { inert, name, nowAndAfterChanges, pressable, roving } from "./keys.js";

const BLUE = "#0072B2";
const SKY = "#56B4E9"; // light enough for the black letters of a token
const ORANGE = "#E69F00";

/**
 * Wait for the first mark: React draws after it was called.
 *
 * @param {HTMLElement} canvas
 * @param {string} selector of a mark
 * @returns {Promise<void>}
 */
function shown(canvas, selector) {
  return new Promise((/** @type {() => void} */ resolve) => {
    /* Look now, and in each frame until it is there. */
    function check() {
      if (canvas.querySelector(selector)) resolve();
      else requestAnimationFrame(check);
    }
    check();
  });
}

/**
 * Wait until what is drawn has had one size for two frames: React draws in several steps.
 *
 * @param {HTMLElement} canvas
 * @returns {Promise<void>}
 */
function settled(canvas) {
  const drawn = /** @type {Element} */ (canvas.firstElementChild);
  let before = "";
  let frames = 0; // in which the size stayed
  return new Promise((/** @type {() => void} */ resolve) => {
    /* Look at the size now, and in each frame until it has stayed. */
    const check = () => {
      const { width, height } = drawn.getBoundingClientRect();
      const size = `${width} ${height}`;
      frames = size === before ? frames + 1 : 0;
      before = size;
      if (frames === 2) resolve();
      else requestAnimationFrame(check);
    };
    check();
  });
}

/**
 * Let what is drawn take no more room than is kept for it until it has its size, so that the
 * page does not jump.
 *
 * @param {HTMLElement} canvas
 * @param {() => Promise<unknown>} draw draws into it
 */
async function withinItsRoom(canvas, draw) {
  const { style } = canvas;
  style.maxHeight = style.minHeight;
  style.overflow = "hidden";
  try {
    await draw();
    await settled(canvas);
  } finally {
    style.maxHeight = "";
    style.overflow = "";
  }
}

/**
 * Of what is drawn of attention heads: `rows`, its parts from top to bottom; `cells`, for each head
 * the element around its small picture, which is clicked.
 *
 * @param {HTMLElement} canvas
 */
function partsOf(canvas) {
  const rows = /** @type {Element} */ (canvas.firstElementChild).children;
  const cells = Array.from(
    rows[1].querySelectorAll("h4"),
    (label) => /** @type {HTMLElement} */ (label.parentElement?.parentElement),
  );
  return { rows, cells };
}

/**
 * Give what is drawn of attention heads roles, names and keys. React draws anew after a click, and
 * this is called again.
 *
 * @param {HTMLElement} canvas
 */
function nameHeads(canvas) {
  const { rows, cells } = partsOf(canvas);
  rows[1].classList.add("lmc-heads");
  rows[2].classList.add("lmc-zoomed");
  canvas
    .querySelectorAll("h2, h3, h4")
    .forEach((label) => label.setAttribute("role", "presentation"));
  cells.forEach((cell, head) => {
    const frame = /** @type {HTMLElement} */ (cell.firstElementChild);
    const pressed = frame.style.boxShadow !== "";
    const tabindex = cell.getAttribute("tabindex") ?? -1; // as it was, if it had a name before
    name(cell, "button", `Head ${head}`, { tabindex, "aria-pressed": pressed });
    cell.onfocus = () => cell.click();
    pressable(cell, () => cell.click());
  });
  roving(cells, 1);
  canvas.querySelectorAll("canvas").forEach((picture) => {
    if (picture.closest("[role=button]")) picture.setAttribute("role", "presentation");
    else picture.setAttribute("aria-label", "Weights of the chosen head");
  });
}

/**
 * Draw the attention of several heads: a small picture of each, and the chosen one large.
 *
 * @param {HTMLElement} canvas empty
 * @param {object} data
 * @param {number[][][]} data.attention weights, [head][query][key]
 * @param {string[]} data.tokens
 * @param {boolean} data.causal whether keys behind the query are not shown
 * @returns its state, for links: see `stateOf` in dom.js
 */
export async function attention_heads(canvas, { attention, tokens, causal }) {
  await withinItsRoom(canvas, async () => {
    CircuitsVis.render(canvas.id, CircuitsVis.AttentionHeads, {
      attention,
      tokens: tokens.map(inert),
      maskUpperTri: causal,
      positiveColor: BLUE,
      negativeColor: ORANGE,
    });
    await shown(canvas, "canvas");
    nowAndAfterChanges(canvas, () => nameHeads(canvas));
  });
  let chosen = 0; // the head that was clicked last
  canvas.addEventListener("click", ({ target }) => {
    const clicked = partsOf(canvas).cells.findIndex((cell) =>
      cell.contains(/** @type {Node} */ (target)),
    );
    if (clicked >= 0) chosen = clicked;
    setTimeout(() => nameHeads(canvas)); // once React has drawn
  });
  const head = countField(
    () => chosen,
    (number) => partsOf(canvas).cells[number].click(),
    () => attention.length,
  );
  return { state: stateOf({ head }) };
}

/**
 * Show a token's value, as circuitsvis does when the pointer is on it.
 *
 * @param {HTMLElement} token
 */
function pointAt(token) {
  const box = token.getBoundingClientRect();
  const at = { clientX: box.left + box.width / 2, clientY: box.bottom, bubbles: true };
  token.dispatchEvent(new MouseEvent("mouseenter", at));
  token.dispatchEvent(new MouseEvent("mousemove", at));
}

/**
 * Draw tokens, coloured by a value: one colour above 0, another below. The value is shown beside
 * the token that has the pointer or the focus.
 *
 * @param {HTMLElement} canvas empty
 * @param {object} data
 * @param {string[]} data.tokens
 * @param {number[]} data.values one for each token
 */
export async function tokens(canvas, { tokens, values }) {
  const colours = { positiveColor: SKY, negativeColor: ORANGE };
  await withinItsRoom(canvas, async () => {
    CircuitsVis.render(canvas.id, CircuitsVis.ColoredTokens, {
      tokens: tokens.map(inert),
      values,
      ...colours,
    });
    await shown(canvas, ".colored-tokens > span");
  });
  /** @type {NodeListOf<HTMLElement>} */
  const marks = canvas.querySelectorAll(".colored-tokens > span");
  marks.forEach((token, index) => {
    name(token, "img", `${tokens[index]}: ${values[index]}`);
    token.addEventListener("focus", () => pointAt(token));
    token.addEventListener("blur", () => token.dispatchEvent(new MouseEvent("mouseleave")));
  });
  roving(marks, 1);
}
