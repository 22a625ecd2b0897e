/* The view *dials*: a query's and a key's pairs of numbers as hands of dials, turned by
   their positions, and the score against the offset for as many pairs as are chosen. */
import { controls, fixed, make, plural, radios, slider, stateOf, svg } from "./dom.js";

/** @typedef {[number, number]} Pair two numbers of a query or key: a hand, across and up */

/**
 * @typedef {object} Data
 * @property {Pair[]} query
 * @property {Pair[]} key
 * @property {number[]} speeds of each pair, in radians a token
 * @property {number} far the most tokens of a position and of an offset
 * @property {number[]} counts how many pairs can be chosen
 * @property {number} place the position of the query to begin with
 * @property {number} behind how far before it the key is
 */

/**
 * What each pair adds to the score of a key.
 *
 * @param {Pair[]} query
 * @param {Pair[]} key
 * @param {number[]} speeds
 * @param {number} offset how many tokens the key is before the query
 * @returns {number[]}
 */
function products(query, key, speeds, offset) {
  return speeds.map((speed, i) => {
    const [a, b] = query[i];
    const [c, d] = key[i];
    const angle = offset * speed;
    return Math.cos(angle) * (a * c + b * d) + Math.sin(angle) * (a * d - b * c);
  });
}

/**
 * A hand, turned.
 *
 * @param {Pair} hand
 * @param {number} angle in radians
 * @returns {Pair}
 */
function turned([x, y], angle) {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  return [x * cos - y * sin, x * sin + y * cos];
}

/**
 * The sum of numbers.
 *
 * @type {(numbers: number[]) => number}
 */
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const RADIUS = 58; // of a dial, in pixels of the drawing
const SHORT = 0.72; // the hand of the query: its share of the radius
const [LEFT, RIGHT, TOP, BOTTOM] = [44, 470, 14, 190]; // of the curve in its drawing, in pixels

/**
 * Mount the view *dials*: the pairs of numbers of a query and a key as hands of dials, which turn
 * with their positions, and their score by distance as a curve.
 *
 * @param {HTMLElement} element empty
 * @param {Data} data
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data) {
  const { query, key, speeds, far, counts } = data;
  let count = counts[counts.length - 1]; // how many pairs are counted, the first ones
  /**
   * Make a slider for tokens, from 0 to `far`.
   *
   * @type {(name: string, value: number) => ReturnType<typeof slider>}
   */
  const range = (name, value) => slider(name, { min: 0, max: far, value, oninput: draw });
  const place = range("position of the query", data.place);
  const behind = range("the key is before it by", data.behind);
  const names = counts.map((each) => plural(each, "pair"));
  const dials = svg("svg", {
    viewBox: "0 0 480 330",
    class: "lmd-dials play-drawing",
    "aria-hidden": "true",
  });
  const curve = svg("svg", {
    viewBox: "0 0 480 232",
    class: "lmd-curve play-drawing",
    "aria-hidden": "true",
  });
  const status = make("p", { role: "status" });
  const pairs = radios("The score of", names, counts.length - 1, (i) => {
    count = counts[i];
    draw();
  });
  element.append(
    pairs,
    controls(place.label, behind.label),
    make(
      "p",
      { class: "play-controls lmd-names" },
      make("span", { class: "lmd-query" }, "query: full, short"),
      make("span", { class: "lmd-key" }, "key: dashed, long"),
    ),
    make("div", { class: "play-both" }, dials, make("div", {}, curve, status)),
  );

  /**
   * A hand of a dial. The key's has the larger end and is dashed, by the style sheet.
   *
   * @param {Pair} hand where it ends, across and up from the middle, in radii
   * @param {"key" | "query"} name
   * @param {Pair} middle of the dial in the drawing
   */
  function hand([x, y], name, [left, top]) {
    const end = { x2: left + RADIUS * x, y2: top - RADIUS * y };
    return svg(
      "g",
      { class: `lmd-${name}` },
      svg("line", { x1: left, y1: top, ...end }),
      svg("circle", { cx: end.x2, cy: end.y2, r: name === "key" ? 8 : 5 }),
    );
  }

  /**
   * The dial of a pair. The hand of the query is shorter than that of the key, so that both can
   * be seen where they meet.
   *
   * @param {number} i the pair
   * @param {number} m position of the query
   * @param {number} n position of the key
   * @param {number} product what the pair adds to the score
   */
  function dial(i, m, n, product) {
    /** @type {Pair} */
    const middle = [80 + 160 * (i % 3), 72 + 164 * Math.floor(i / 3)];
    const off = i >= count;
    const [x, y] = query[i];
    return svg(
      "g",
      { class: off ? "lmd-off" : "" },
      svg("circle", { cx: middle[0], cy: middle[1], r: RADIUS + 4, class: "lmd-face" }),
      hand(turned(key[i], n * speeds[i]), "key", middle),
      hand(turned([SHORT * x, SHORT * y], m * speeds[i]), "query", middle),
      svg("text", { x: middle[0], y: middle[1] + 84 }, off ? "not counted" : fixed(product)),
    );
  }

  /* Draw the dials, and the score against the offset. */
  function draw() {
    const [position, distance] = [Number(place.input.value), Number(behind.input.value)];
    const now = products(query, key, speeds, distance);
    place.value.textContent = String(position);
    behind.value.textContent = String(distance);
    dials.replaceChildren(...speeds.map((_, i) => dial(i, position, position - distance, now[i])));
    /**
     * The score at an offset, of the pairs that are counted.
     *
     * @param {number} offset
     */
    const score = (offset) => sum(products(query, key, speeds, offset).slice(0, count));
    /**
     * The x of an offset.
     *
     * @param {number} offset
     */
    const x = (offset) => LEFT + ((RIGHT - LEFT) * offset) / far;
    /**
     * The y of a score.
     *
     * @param {number} value
     */
    const y = (value) => TOP + ((BOTTOM - TOP) * (1 - value / count)) / 2;
    const points = Array.from(
      { length: 8 * far + 1 },
      (_, i) => `${x(i / 8).toFixed(1)} ${y(score(i / 8)).toFixed(1)}`,
    );
    const ticks = Array.from({ length: far / 10 + 1 }, (_, i) => 10 * i);
    curve.replaceChildren(
      svg("path", {
        d: `M${LEFT} ${TOP}V${BOTTOM}H${RIGHT}M${LEFT} ${y(0)}H${RIGHT}`,
        class: "play-axes",
      }),
      ...ticks.map((offset) => svg("text", { x: x(offset), y: BOTTOM + 18 }, offset)),
      ...[-count, 0, count].map((value) =>
        svg("text", { x: LEFT - 8, y: y(value) + 5, class: "play-end" }, fixed(value, 0)),
      ),
      svg("text", { x: (LEFT + RIGHT) / 2, y: BOTTOM + 37 }, "tokens from key to query"),
      svg("path", { d: `M${points.join("L")}`, class: "play-curve" }),
      svg("circle", { cx: x(distance), cy: y(score(distance)), r: 7, class: "lmd-now" }),
    );
    const early =
      distance > position ? " That is before the text begins; but only the distance counts." : "";
    status.textContent =
      `The query is at position ${position}, the key ${distance} before it.${early} The score of ` +
      `${count === 1 ? "one pair" : `${count} pairs`}: ${fixed(score(distance))} of at most ${count}.`;
  }

  draw();
  return { state: stateOf({ pairs, position: place.input, before: behind.input }) };
}
