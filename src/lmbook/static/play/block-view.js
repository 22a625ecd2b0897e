/* The view *block*: a block of a GPT as a drawing, whose parts are switched off by a click,
   and what the model loses and writes without them. What a part is worth shows once it was
   clicked. `lmcourse.views.block` measured it. */
import { button, fixed, heading, make, row, select, svg } from "./dom.js";
import { name, pressable } from "./keys.js";

/**
 * A part of a layer: its name; what the loss changes without it, on average, and the ends of
 * the interval; what the model writes without it.
 *
 * @typedef {[part: string, mean: number, low: number, high: number, written: string]} Row
 */

/**
 * @typedef {object} Data
 * @property {Record<string, [string, string]>} parts the title of each, and what happens
 *   without it
 * @property {Row[][]} layers
 * @property {string[]} controls parts that are not in the drawing
 * @property {string} drawing SVG
 * @property {number} first the layer to begin with
 * @property {number} whole the loss with all parts
 * @property {string} line what the model writes with all parts
 */

/** @type {(number: number) => string} */
const signed = (number) => (number < 0 ? "" : "+") + fixed(number);

/**
 * @param {HTMLElement} element
 * @param {Data} data
 */
export function mount(element, data) {
  /** @type {string | null} */
  let off = null; // the part that is switched off
  /** @type {Set<string>[]} */
  const known = data.layers.map(() => new Set()); // parts that were clicked, of each layer
  const layer = select(
    data.layers.map((_, i) => `layer ${i}`),
    () => {
      off = null;
      draw();
    },
  );
  layer.value = String(data.first);
  const figure = make("div", {
    class: "lmb-figure play-drawing",
    onclick: (event) => press(event.target),
  });
  figure.innerHTML = data.drawing; // ours, and without a word of anybody else's
  /** @type {SVGElement[]} */
  const drawn = Array.from(figure.querySelectorAll("[data-part]"));
  for (const part of drawn) name(part, "button", data.parts[String(part.dataset.part)][0]);
  pressable(figure, (event) => press(/** @type {Element} */ (event.target)));
  const controls = data.controls.map((part) =>
    button(data.parts[part][0], (event) => press(event.target), { "data-part": part }),
  );
  const status = make("p", { class: "lmb-status", role: "status" });
  const line = make("p", { class: "lmb-line" });
  const body = make("tbody");
  const all = button("Show all", () => {
    rows().forEach(([part]) => knownHere().add(part));
    draw();
  });
  element.append(
    make(
      "div",
      { class: "play-both" },
      make(
        "div",
        {},
        figure,
        make(
          "p",
          { class: "play-controls" },
          ...(controls.length ? ["Controls: "] : []),
          ...controls,
        ),
      ),
      make(
        "div",
        { class: "lmb-losses" },
        make("p", { class: "play-controls" }, make("label", {}, "Parts of ", layer), all),
        status,
        line,
        make("table", {}, heading("changed", "the loss", "±"), body),
      ),
    ),
  );

  const rows = () => data.layers[Number(layer.value)];
  const knownHere = () => known[Number(layer.value)];

  /** @param {Element} target */
  function press(target) {
    const part = target.closest("[data-part]")?.getAttribute("data-part");
    if (!part) return;
    off = off === part ? null : part;
    knownHere().add(part);
    draw();
  }

  /** @param {Row} row */
  function told([part, mean]) {
    const [title, missing] = data.parts[part];
    const place = /^all/.test(title) ? "" : ` in layer ${layer.value}`;
    const changed = /→/.test(title)
      ? `With ${title}`
      : `Without ${/^path/.test(title) ? "the " : ""}${title}`;
    return (
      `${changed}${place}, ${missing}. The loss goes from ${fixed(data.whole)} to ` +
      `${fixed(data.whole + mean)}: ${signed(mean)}. ` +
      rank(part)
    );
  }

  /**
   * The first click in a layer is a guess: is there a part that is missed more?
   *
   * @param {string} part
   */
  function rank(part) {
    const seen = rows().filter(([each]) => knownHere().has(each));
    const most = seen.reduce((a, b) => (b[1] > a[1] ? b : a));
    if (seen.length === 1) return "Is there a part that is missed more?";
    return most[0] === part ? "Of those clicked in this layer it is missed most." : "";
  }

  function draw() {
    const ends = rows().flatMap(([, , low, high]) => [low, high]);
    const [least, most] = [Math.min(0, ...ends), Math.max(0, ...ends)];
    /** @param {number} number */
    const across = (number) => (150 * (number - least)) / (most - least || 1);
    for (const part of [...drawn, ...controls])
      part.setAttribute("aria-pressed", String(part.dataset.part === off));
    const chosen = rows().find(([part]) => part === off);
    status.textContent = chosen
      ? told(chosen)
      : `With all its parts the loss of the model is ${fixed(data.whole)}. ` +
        "Which part will be missed most? Click it: that is your guess.";
    const written = chosen ? chosen[4] : data.line;
    line.hidden = !written;
    line.textContent = `It writes: ${written}`;
    body.replaceChildren(
      ...rows().map(([part, mean, low, high]) => {
        const [title] = data.parts[part];
        if (!knownHere().has(part)) return row(title, "?", "");
        const [from, to] = [across(Math.min(0, mean)), across(Math.max(0, mean))];
        const bar = svg(
          "svg",
          { viewBox: "0 0 150 14", class: "lmb-bar", "aria-hidden": "true" },
          svg("rect", { x: from, y: 2, width: to - from, height: 10 }),
          svg("path", { d: `M${across(0)} 0V14` }),
          svg("path", { d: `M${across(low)} 7H${across(high)}`, class: "lmb-interval" }),
        );
        const shown = row(
          title,
          [bar, " ", make("span", {}, signed(mean))],
          fixed((high - low) / 2),
        );
        shown.classList.toggle("lmb-off", part === off);
        return shown;
      }),
    );
  }

  draw();
}
