/* The view *block*: a block of a GPT as a drawing, whose parts are switched off by a click,
   and what the model loses and writes without them. What a part is worth shows once it was
   clicked. `lmcourse.views.block` measured it. A switch shows the same of a model with
   random weights (`untrained`), or of text whose letters are in another order. */
import {
  button,
  changedHow,
  controls,
  fixed,
  heading,
  learnedSwitch,
  make,
  plural,
  row,
  select,
  stateOf,
  svg,
  WORLDS,
} from "./dom.js";
import { name, pressable } from "./keys.js";

/**
 * A part of a layer: its name; by how much the loss changes without it, on average, and the ends
 * of the 95 % interval of this, in nats; what the model writes without it.
 *
 * @typedef {[part: string, mean: number, low: number, high: number, written: string]} Row
 */

/**
 * What was measured of one model.
 *
 * @typedef {object} Measured
 * @property {Row[][]} layers by layer, a row for each part
 * @property {number} whole the loss with all parts, in nats
 * @property {string} line what the model writes with all parts; may be ""
 */

/**
 * @typedef {object} More
 * @property {Record<string, [string, string]>} parts the title of each, and what happens
 *   without it
 * @property {string} drawing SVG, in which each part has its name as data-part
 * @property {number} first the layer to begin with
 * @property {Measured} [untrained] the same of random weights
 * @property {Measured} [reordered] the same of text whose letters are in another order
 */

/**
 * A number with its sign and two digits after the point; one that is written as 0 has no sign.
 *
 * @type {(number: number) => string}
 */
const signed = (number) => (Number(number.toFixed(2)) > 0 ? "+" : "") + fixed(number);

/**
 * Mount the view *block*: a drawing of a GPT's block, whose parts the reader switches off, and the
 * loss and the text without them.
 *
 * @param {HTMLElement} element empty
 * @param {Measured & More} data
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data) {
  /** @type {Measured} */
  let model = data; // or one of the others, as the switch says
  /** @type {string | null} */
  let off = null; // the part that is switched off
  // Of each layer the parts that were clicked, or shown by "Show all".
  /** @type {Set<string>[]} */
  const known = data.layers.map(() => new Set());
  const layer = select(
    data.layers.map((_, i) => `layer ${i}`),
    () => {
      off = null;
      draw();
    },
  );
  layer.value = String(data.first);
  const {
    worlds,
    remains,
    label: worldLabel,
  } = learnedSwitch(
    () => {
      const { untrained = data, reordered = data } = data;
      model = { [WORLDS.random]: untrained, [WORLDS.shuffled]: reordered }[worlds.value] ?? data;
      draw();
    },
    data.reordered ? "shuffled letters" : null,
  );
  const world = make("p", {}, worldLabel);
  world.hidden = !data.untrained;
  const figure = make("div", {
    class: "lmb-figure play-drawing",
    onclick: (event) => press(event.target),
  });
  figure.innerHTML = data.drawing; // ours, and without a word of anybody else's
  /** @type {SVGElement[]} */
  const drawn = Array.from(figure.querySelectorAll("[data-part]"));
  for (const part of drawn) name(part, "button", data.parts[String(part.dataset.part)][0]);
  pressable(figure, (event) => press(/** @type {Element} */ (event.target)));
  const status = make("p", { class: "lmb-status", role: "status" });
  const line = make("p", { class: "lmb-line" });
  const body = make("tbody");
  const all = button("Show all", () => {
    rowsHere().forEach(([part]) => knownHere().add(part));
    draw();
  });
  element.append(
    make(
      "div",
      { class: "play-both" },
      figure,
      make(
        "div",
        { class: "lmb-losses" },
        world,
        remains,
        controls(make("label", {}, "Parts of ", layer), all),
        status,
        line,
        make("table", {}, heading("changed", "the loss", "95 % interval"), body),
      ),
    ),
  );

  /* The parts of the layer that is shown. */
  const rowsHere = () => model.layers[Number(layer.value)];
  /* The names of those of them that were clicked. */
  const knownHere = () => known[Number(layer.value)];

  /**
   * Switch the part that was clicked off, or on again; the part that was off before is on then. A
   * click beside all parts changes nothing. From then on the part's row is shown in the table of
   * this layer.
   *
   * @param {Element} target what was clicked
   */
  function press(target) {
    const part = target.closest("[data-part]")?.getAttribute("data-part");
    if (!part) return;
    off = off === part ? null : part;
    knownHere().add(part);
    draw();
  }

  /**
   * What happens without a part, in words.
   *
   * @param {Row} row
   */
  function sentenceOf([part, mean]) {
    const [title, missing] = data.parts[part];
    const article = /^path/.test(title) ? "the " : "";
    return (
      `Without ${article}${title} in layer ${layer.value}, ${missing}. ` +
      `The loss goes from ${fixed(model.whole)} to ` +
      `${fixed(model.whole + mean)}: ${signed(mean)}. ` +
      rank(part)
    );
  }

  /**
   * What is said of a part beside the others that were clicked in this layer: a question if there
   * is no other; that the loss rises most without it, if so; else "".
   *
   * @param {string} part which was clicked
   */
  function rank(part) {
    const seen = rowsHere().filter(([each]) => knownHere().has(each));
    const most = seen.reduce((a, b) => (b[1] > a[1] ? b : a));
    if (seen.length === 1) return "Is there a part that is missed more?";
    return most[0] === part ? "Of those clicked in this layer it is missed most." : "";
  }

  /* Say what random weights, or shuffled letters, make of the loss. Of the parts that are shown and
     that are missed in the model as it is (the interval lies above 0), say also how many are now
     missed at least half as much, again with an interval above 0. Say nothing if the switch says
     "as it is". */
  function tellLeft() {
    if (worlds.value === WORLDS.asItIs) {
      remains.textContent = "";
      return;
    }
    const now = new Map(rowsHere().map((row) => [row[0], row]));
    const before = data.layers[Number(layer.value)].filter(
      ([part, , low]) => low > 0 && knownHere().has(part),
    );
    const stillMissed = before.filter(([part, usual]) => {
      const [, mean, low] = now.get(part) ?? ["", 0, 0];
      return low > 0 && 2 * mean >= usual;
    }).length;
    remains.textContent =
      `${changedHow(worlds.value, "the letters")}, the loss goes from ${fixed(data.whole)} to ` +
      `${fixed(model.whole)}.` +
      (before.length
        ? ` Of the ${plural(before.length, "part")} shown below that it misses as it is, ` +
          `${["none is", "one is"][stillMissed] ?? `${stillMissed} are`} ` +
          "missed at least half as much now."
        : "");
  }

  /**
   * A bar from no change to the mean change of the loss, and a line for its interval.
   *
   * @param {Row} row
   * @param {(number: number) => number} across from a change of the loss to its x, 0 to 150
   */
  function lossBar([, mean, low, high], across) {
    const [from, to] = [across(Math.min(0, mean)), across(Math.max(0, mean))];
    return svg(
      "svg",
      {
        viewBox: "0 0 150 14",
        preserveAspectRatio: "none", // on a phone it is shorter, and as high
        class: "lmb-bar",
        "aria-hidden": "true",
      },
      svg("rect", { x: from, y: 2, width: to - from, height: 10 }),
      svg("path", { d: `M${across(0)} 0V14` }),
      svg("path", { d: `M${across(low)} 7H${across(high)}`, class: "lmb-interval" }),
    );
  }

  /* Show which part is off, what the model loses and writes then, and a row for each part of
     the layer: how much the loss changes without it, or "?" until it was clicked. */
  function draw() {
    tellLeft();
    const ends = rowsHere().flatMap(([, , low, high]) => [low, high]);
    const [least, most] = [Math.min(0, ...ends), Math.max(0, ...ends)];
    /**
     * The x of a change of the loss in the bars, from 0 to 150.
     *
     * @param {number} number
     */
    const across = (number) => (150 * (number - least)) / (most - least || 1);
    for (const part of drawn) part.setAttribute("aria-pressed", String(part.dataset.part === off));
    const chosen = rowsHere().find(([part]) => part === off);
    status.textContent = chosen
      ? sentenceOf(chosen)
      : `With all its parts the loss of the model is ${fixed(model.whole)}. ` +
        "Which part will be missed most? Click it: that is your guess.";
    const written = chosen ? chosen[4] : model.line; // without the part, or with all
    line.hidden = !written;
    line.textContent = `It writes: ${written}`;
    body.replaceChildren(
      ...rowsHere().map((each) => {
        const [part, mean, low, high] = each;
        const [title] = data.parts[part];
        if (!knownHere().has(part)) return row(title, "?", "");
        const shown = row(
          title,
          [lossBar(each, across), " ", make("span", {}, signed(mean))],
          `${signed(low)} to ${signed(high)}`,
        );
        shown.classList.toggle("lmb-off", part === off);
        return shown;
      }),
    );
  }

  draw();
  const state = {
    world: worlds,
    layer,
    off: {
      get: () => off ?? "",
      /* Switch a part off; none if there is no such part. */
      set(/** @type {string} */ part) {
        off = part in data.parts ? part : null;
      },
    },
    /* The parts that were clicked, in one line: layer:part layer:part. */
    known: {
      get: () => known.flatMap((parts, i) => Array.from(parts, (part) => `${i}:${part}`)).join(" "),
      /* Take the parts that the line names as clicked, and no others. */
      set(/** @type {string} */ line) {
        for (const parts of known) parts.clear();
        for (const [i, part] of line.split(" ").map((each) => each.split(":")))
          if (part in data.parts) known[Number(i)]?.add(part);
      },
    },
  };
  return { state: stateOf(state, draw) };
}
