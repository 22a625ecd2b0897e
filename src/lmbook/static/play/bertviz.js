/* bertviz: its scripts are functions (see `lmcourse.views.notebook.bertviz_script`) that
   ask for jQuery and d3 by way of require.js; a few lines stand in for that. Here too:
   colours that hold in both themes, names and keys for what it draws. */
import { make, numbersField, select, stateOf } from "./dom.js";
import { name, nowAndAfterChanges, pressable, roving } from "./keys.js";
import { COLOURS } from "./palette.js";

/**
 * @typedef {object} Data
 * @property {string[]} tokens
 * @property {number[][][][]} attention weights, [layer][head][query][key]
 * @property {number[]} heads those that are shown
 * @property {number} layer of the head view: the one it begins with
 * @property {number[]} layers of the model view: those that are shown
 */

/**
 * Run one of bertviz's scripts.
 *
 * @param {"head_view" | "model_view"} name
 * @param {object} params as bertviz's Python writes them
 */
function run(name, params) {
  const library = Object.create(d3, { schemeCategory10: { value: COLOURS } });
  /**
   * What stands in for require.js: it gives the script jQuery and d3.
   *
   * @type {(names: string[], body: (jquery: any, d3: any) => void) => void}
   */
  const requirejs = (_names, body) => body(jQuery, library);
  lmcourse[name](params, { config() {} }, requirejs, { log() {} });
}

/**
 * A token without the signs that tokenizers write for spaces and ends of words.
 *
 * @type {(token: string) => string}
 */
const pretty = (token) => token.replace(/[\u0120\u2581]/g, " ").replace("</w>", "");

/**
 * The parameters that both scripts take, for one text that attends to itself.
 *
 * @param {HTMLElement} canvas that they draw in
 * @param {Data} data
 * @param {number[]} layers that are shown
 */
function given(canvas, data, layers) {
  const tokens = data.tokens.map(pretty);
  const all = { name: "All", attn: data.attention, left_text: tokens, right_text: tokens };
  return { attention: [all], default_filter: "0", root_div_id: canvas.id, include_layers: layers };
}

/**
 * Send an element an event of the mouse, such as "click".
 *
 * @type {(element: Element, kind: string) => void}
 */
const press = (element, kind) => element.dispatchEvent(new MouseEvent(kind, { bubbles: true }));

/**
 * Whether a head's lines are shown: its square has its colour.
 *
 * @param {Element} square
 * @param {number} head
 */
function isOn(square, head) {
  const colours = [square.getAttribute("fill"), COLOURS[head % COLOURS.length]];
  const [own, full] = colours.map((colour) => `${d3.color(colour)}`);
  return own === full;
}

/**
 * Give what the head view draws names and keys: its squares switch heads; tokens, when focused,
 * show their lines.
 *
 * @param {SVGElement} svg
 */
function nameLines(svg) {
  /** @type {NodeListOf<SVGElement>} */
  const squares = svg.querySelectorAll(":scope > g:last-of-type > rect");
  /* Tell a screen reader which heads are shown. */
  const state = () =>
    squares.forEach((square, head) =>
      square.setAttribute("aria-checked", String(isOn(square, head))),
    );
  squares.forEach((square, head) => {
    name(square, "checkbox", `Head ${head}`);
    square.addEventListener("click", () => setTimeout(state));
    square.addEventListener("dblclick", () => setTimeout(state));
    pressable(square, (event) => press(square, event.shiftKey ? "dblclick" : "click"));
  });
  roving(squares, 1);
  state();
  for (const [side, where] of [
    ["left", "from "],
    ["right", "to "],
  ]) {
    const group = /** @type {SVGElement} */ (svg.querySelector(`#${side}`));
    const texts = Array.from(group.querySelectorAll("text"));
    const tokens = texts.map((text) => /** @type {SVGElement} */ (text.parentNode));
    for (const [i, token] of tokens.entries()) {
      name(token, "img", where + texts[i].textContent);
      token.addEventListener("focus", () => press(token, "mouseover"));
      token.addEventListener("blur", () => press(group, "mouseleave"));
    }
    roving(tokens, 1);
  }
}

/**
 * Draw bertviz's head view, with names and keys; its state has the layer and the heads shown.
 * bertviz draws anew when the layer changes, so the names are given again.
 *
 * @param {HTMLElement} canvas
 * @param {Data} data
 */
export function head_view(canvas, data) {
  const layer = select([], null, { id: "layer", "aria-label": "Layer" });
  const vis = make("div", { id: "vis" });
  canvas.append(make("span", {}, "Layer: ", layer, " "), vis);
  const layers = data.attention.map((_, index) => index);
  run("head_view", { ...given(canvas, data, layers), layer: data.layer, heads: data.heads });
  /** @type {SVGElement | null} */
  let named = null;
  nowAndAfterChanges(vis, () => {
    const svg = vis.querySelector("svg");
    if (svg && svg !== named) nameLines(svg);
    named = svg;
  });
  /* The squares of the heads; bertviz may have drawn them anew. */
  const squares = () => Array.from(vis.querySelectorAll("svg > g:last-of-type > rect"));
  const shown = numbersField(
    () => squares().flatMap((square, head) => (isOn(square, head) ? [head] : [])),
    (wanted) =>
      squares().forEach((square, head) => {
        if (isOn(square, head) !== wanted.includes(head)) press(square, "click");
      }),
  );
  return { state: stateOf({ layer, heads: shown }) };
}

/**
 * Draw bertviz's model view: a small picture of each layer and head, which is shown large when
 * it is pressed, and small again when it is pressed once more.
 *
 * @param {HTMLElement} canvas
 * @param {Data} data
 */
export function model_view(canvas, data) {
  const columns = data.heads.length;
  let open = -1; // the picture that is shown large
  const vis = make("div", { id: "vis" });
  canvas.append(vis);
  run("model_view", {
    ...given(canvas, data, data.layers),
    display_mode: "light", // the dark theme is the style sheet's
    include_heads: data.heads,
    total_heads: columns,
  });
  // It is made as wide as the page, not as it was drawn.
  const svg = /** @type {SVGSVGElement} */ (vis.querySelector("svg"));
  svg.setAttribute("viewBox", `0 0 ${svg.width.baseVal.value} ${svg.height.baseVal.value}`);
  // bertviz puts a transparent rectangle last in each picture's group, which hears clicks.
  const cells = Array.from(
    vis.querySelectorAll("g > rect.attn_background"),
    (background) => /** @type {SVGElement} */ (background.parentNode?.lastChild),
  );
  cells.forEach((cell, index) => {
    const layer = data.layers[Math.floor(index / columns)];
    cell.classList.add("lmc-thumbnail");
    name(cell, "button", `Layer ${layer}, head ${data.heads[index % columns]}`);
    pressable(cell, () => press(cell, "click"));
    cell.addEventListener("click", () => {
      open = open === index ? -1 : index;
    });
  });
  roving(cells, columns);
  const picture = {
    get: () => open, // -1 if none is
    /* Open another than the open one; -1 closes that by pressing it once more. */
    set(/** @type {number} */ index) {
      const cell = cells[index < 0 ? open : index];
      if (cell) press(cell, "click");
    },
  };
  return { state: stateOf({ open: picture }) };
}
