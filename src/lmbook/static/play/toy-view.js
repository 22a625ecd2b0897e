/* The view *attention toy*: words as points of the plane, which are keys, and a query to
   drag. `lmcourse.views.attention_toy` gives what it begins with. */

import {
  announcer,
  arrow,
  button,
  controls,
  fixed,
  heading,
  make,
  numbersField,
  percent,
  row,
  select,
  slider,
  stateOf,
  svg,
} from "./dom.js";
import { softmax } from "./engine.js";

/** @typedef {number[]} Point two numbers, across and up */

/**
 * Attention of one query.
 *
 * @param {Point} query
 * @param {Point[]} keys
 * @param {Point[]} values one for each key
 * @param {number} divisor of the products
 * @param {boolean[]} hidden for each key whether it must not be attended to; not all
 * @returns {{ products: number[], scaled: number[], weights: number[], output: Point }} for each
 *   key its dot product with the query, the same divided, and its weight, 0 if it is hidden; the
 *   mean of the values by these weights
 */
export function attend(query, keys, values, divisor, hidden) {
  /**
   * The dot product of two lists of numbers.
   *
   * @type {(a: number[], b: number[]) => number}
   */
  const dot = (a, b) => a.reduce((sum, number, i) => sum + number * b[i], 0);
  const products = keys.map((key) => dot(query, key));
  const scaled = products.map((product) => product / divisor);
  const scores = scaled.map((score, i) => (hidden[i] ? -Infinity : score));
  const weights = softmax([...scores]);
  const output = query.map((_, axis) =>
    dot(
      weights,
      values.map((value) => value[axis]),
    ),
  );
  return { products, scaled, weights, output };
}

const LIMIT = 3; // the plane reaches from -3 to 3
const UNIT = 75; // of the plane, in pixels of the drawing
/**
 * Where a point of the plane stands in the drawing.
 *
 * @type {(point: Point) => Point}
 */
const toPixels = ([x, y]) => [240 + UNIT * x, 240 - UNIT * y];
/**
 * A point in words: "1.0, −0.5".
 *
 * @type {(point: Point) => string}
 */
const place = (point) => point.map((number) => fixed(number, 1)).join(", ");

/**
 * Draw an arrow from the middle of the plane to a point.
 *
 * @param {Point} point
 * @param {string} name of what it is, for the style sheet
 */
function vector(point, name) {
  const [x, y] = toPixels(point);
  const angle = (Math.atan2(y - 240, x - 240) * 180) / Math.PI;
  const head = { d: "M0 0L-13 6L-13 -6Z", transform: `translate(${x} ${y}) rotate(${angle})` };
  return svg(
    "g",
    { class: `lmt-${name}` },
    svg("line", { x1: 240, y1: 240, x2: x, y2: y }),
    svg("path", head),
  );
}

/**
 * Write a text above a point, but inside the drawing.
 *
 * @param {Point} point
 * @param {string} text
 * @param {number} distance in pixels of the drawing; negative: below the point
 */
function label(point, text, distance) {
  const [x, y] = toPixels(point);
  const half = 5 * text.length;
  const above = y - distance < 18 ? y + distance + 14 : y - distance;
  return svg("text", { x: Math.min(Math.max(x, half), 480 - half), y: above }, text);
}

/**
 * Mount the view *attention toy*: words as points of the plane, their keys, and a query that the
 * reader drags. In it, a handle is a number: 0 is the query, n the word n - 1.
 *
 * @param {HTMLElement} element empty
 * @param {object} data
 * @param {string[]} data.words
 * @param {Point[]} data.keys one for each word
 * @param {Point} data.query
 * @param {number} data.position of the query among the words
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data) {
  const { words } = data;
  /** @type {Point} */
  let query;
  /** @type {Point[]} */
  let keys;
  /** @type {ReturnType<typeof attend>} */
  let attended;
  /**
   * Make an input after whose change all is drawn anew.
   *
   * @type {(attributes: import("./dom.js").Attributes) => HTMLInputElement}
   */
  const change = (attributes) => make("input", { ...attributes, oninput: draw });
  const root = change({ type: "checkbox" });
  const causal = change({ type: "checkbox" });
  const position = select(words, draw);
  const warmth = slider("temperature", { min: -3, max: 3, step: 0.25, oninput: draw });
  const head = heading("word", "q · k", "÷", "mask", "weight");
  const body = make("tbody");
  const result = make("p");
  const { live, later } = announcer(tell);
  const lines = svg("g");
  /* What is focused stays in the page while it is drawn anew. The first is the query. */
  const handles = ["query", ...words].map((name) =>
    svg("g", {
      tabindex: 0,
      role: "slider",
      "aria-label": name,
      "aria-roledescription": "point",
      "aria-valuemin": -LIMIT,
      "aria-valuemax": LIMIT,
    }),
  );
  const plane = svg(
    "svg",
    {
      viewBox: "0 0 480 480",
      class: "lmt-plane play-drawing",
      role: "group",
      "aria-label": "A plane; each word and the query can be moved",
    },
    svg("path", { d: "M15 240H465M240 15V465", class: "lmt-axes" }),
    lines,
    ...handles,
  );
  plane.addEventListener("pointerdown", drag);
  plane.addEventListener("keydown", press);
  plane.addEventListener("touchstart", hold, { passive: false });
  element.append(
    controls(
      make("label", {}, root, " divide by √2"),
      make("label", {}, causal, " causal mask"),
      make("label", {}, "which hides what stands after ", position),
      warmth.label,
      button("Start again", reset),
    ),
    make(
      "div",
      { class: "play-both" },
      plane,
      make("div", {}, make("table", {}, head, body), result),
    ),
    live,
  );

  /* Begin again: with all points and controls as they were at first. */
  function reset() {
    query = [...data.query];
    keys = data.keys.map((key) => [...key]);
    root.checked = true;
    causal.checked = false;
    position.selectedIndex = data.position;
    warmth.input.value = "0";
    draw();
  }

  /* --- moving a point --- */

  /**
   * The point of a handle; to change it moves the handle.
   *
   * @type {(handle: number) => Point}
   */
  const point = (handle) => (handle ? keys[handle - 1] : query);

  /**
   * Move a handle, inside the plane and to twentieths.
   *
   * @param {number} handle
   * @param {number} x
   * @param {number} y
   */
  function put(handle, x, y) {
    /**
     * The nearest number that a point can have.
     *
     * @param {number} number
     */
    const inside = (number) => Math.min(LIMIT, Math.max(-LIMIT, Math.round(20 * number) / 20));
    point(handle).splice(0, 2, inside(x), inside(y));
    draw();
  }

  /**
   * The handle that an event is about; -1 if it is about none.
   *
   * @param {Event} event
   */
  const held = ({ target }) => {
    const handle = /** @type {Element} */ (target).closest("[role=slider]");
    return handles.indexOf(/** @type {SVGGElement} */ (handle));
  };

  /**
   * Keep a finger on a point from scrolling the page.
   *
   * @param {Event} event
   */
  function hold(event) {
    if (held(event) >= 0) event.preventDefault();
  }

  /**
   * Let a point follow the pointer that is pressed on it, until it is released.
   *
   * @param {PointerEvent} event
   */
  function drag(event) {
    const handle = held(event);
    if (handle < 0 || event.button) return;
    event.preventDefault();
    handles[handle].focus();
    plane.setPointerCapture(event.pointerId);
    plane.onpointermove = ({ clientX, clientY }) => {
      const { left, top, width } = plane.getBoundingClientRect();
      const unit = (UNIT * width) / 480;
      put(handle, (clientX - left) / unit - 3.2, 3.2 - (clientY - top) / unit);
    };
    plane.onlostpointercapture = () => {
      plane.onpointermove = null;
    };
  }

  /**
   * Move a point by the arrow keys, with the shift key farther.
   *
   * @param {KeyboardEvent} event
   */
  function press(event) {
    const step = arrow(event);
    if (!step) return;
    event.preventDefault();
    const far = event.shiftKey ? 0.5 : 0.1;
    const handle = held(event);
    const [x, y] = point(handle);
    put(handle, x + far * step[0], y - far * step[1]);
  }

  /* --- drawing --- */

  /* Compute the attention of the query, and draw the plane and the table. */
  function draw() {
    const temperature = 2 ** Number(warmth.input.value);
    const divisor = (root.checked ? Math.SQRT2 : 1) * temperature;
    const hidden = keys.map((_, i) => causal.checked && i > position.selectedIndex);
    attended = attend(query, keys, keys, divisor, hidden);
    const { products, scaled, weights, output } = attended;
    warmth.value.textContent = fixed(temperature);
    head.rows[0].cells[2].textContent = `÷ ${fixed(divisor)}`;
    body.replaceChildren(
      ...words.map((name, i) => {
        const bar = make("span", { class: "lmt-bar", style: `width: ${3.5 * weights[i]}em` });
        const cells = [fixed(products[i]), fixed(scaled[i]), hidden[i] ? "−∞" : "0"];
        return row(name, ...cells, [bar, percent(weights[i])]);
      }),
    );
    const beyond = 1 + 0.4 / (Math.hypot(...output) || 1);
    lines.replaceChildren(
      ...keys.map((key) => vector(key, "key")),
      vector(output, "output"),
      vector(query, "query"), // the thinner one, so that both are seen where they meet
      label(
        output.map((number) => beyond * number),
        "output",
        -5,
      ),
    );
    handles.forEach((handle, i) => {
      const weight = i ? `; weight ${percent(weights[i - 1])}` : "";
      handle.setAttribute("aria-valuenow", String(point(i)[0]));
      handle.setAttribute("aria-valuetext", place(point(i)) + weight);
      handle.replaceChildren(...(i ? drawWord(i - 1, hidden[i - 1], weights[i - 1]) : drawQuery()));
    });
    result.textContent = `The output is at ${place(output)}.`;
    later();
  }

  /**
   * Make an invisible circle around a handle, large enough for a finger.
   *
   * @type {(x: number, y: number) => SVGElement}
   */
  const touch = (x, y) => svg("circle", { cx: x, cy: y, r: 26, class: "lmt-touch" });

  /**
   * Draw a word at the end of its key. The area of its circle grows with its weight.
   *
   * @param {number} i the word's position
   * @param {boolean} hidden whether the mask hides it
   * @param {number} weight from 0 to 1
   */
  function drawWord(i, hidden, weight) {
    const [x, y] = toPixels(keys[i]);
    const r = 7 + 26 * Math.sqrt(weight);
    return [
      touch(x, y),
      svg("circle", { cx: x, cy: y, r, class: hidden ? "lmt-word lmt-hidden" : "lmt-word" }),
      label(keys[i], `${words[i]} ${hidden ? "(hidden)" : percent(weight)}`, r + 8),
    ];
  }

  /* Draw the end of the query. */
  function drawQuery() {
    const [x, y] = toPixels(query);
    return [
      touch(x, y),
      svg("path", { d: `M${x} ${y - 10}l10 10l-10 10l-10 -10Z`, class: "lmt-asks" }),
      label(query, "query", 18),
    ];
  }

  /* What a screen reader says: the weight of each word, and where the output is. */
  function tell() {
    const weights = words.map((name, i) => `${name} ${percent(attended.weights[i])}`).join(", ");
    return `Weights: ${weights}. Output at ${place(attended.output)}.`;
  }

  reset();
  const state = {
    divide: root,
    mask: causal,
    position,
    temperature: warmth.input,
    points: numbersField(
      () => [query, ...keys].flat(),
      (numbers) => {
        if (numbers.length !== 2 * handles.length) return;
        handles.forEach((_, i) => {
          const to = numbers.slice(2 * i, 2 * i + 2);
          if (point(i).some((number, axis) => number !== to[axis])) put(i, to[0], to[1]);
        });
      },
    ),
  };
  return { state: stateOf(state) };
}
