/* The view *graph*: attention with one key, its gradients, and steps against them. */
import {
  button,
  controls,
  fixed,
  heading,
  make,
  numbersField,
  row,
  slider,
  stateOf,
  svg,
} from "./dom.js";

/** @typedef {"q" | "k" | "v" | "t"} Input */
/** @typedef {Input | "s" | "a" | "o" | "d" | "L"} Name */

/**
 * Every value of the graph, and the gradient of the loss by it: the score s = q · k, the weight a
 * (the sigmoid of s), the output o = a · v, its distance d = o - t from the target, the loss
 * L = d².
 *
 * @param {Record<Input, number>} inputs query, key, value and target
 * @returns {{ values: Record<Name, number>, slopes: Record<Name, number> }} slopes: the gradients
 */
function passes({ q, k, v, t }) {
  const s = q * k;
  const a = 1 / (1 + Math.exp(-s));
  const o = a * v;
  const d = o - t;
  const back = 2 * d;
  const ds = back * v * a * (1 - a);
  return {
    values: { q, k, v, t, s, a, o, d, L: d * d },
    slopes: {
      q: ds * k,
      k: ds * q,
      v: back * a,
      t: -back,
      s: ds,
      a: back * v,
      o: back,
      d: back,
      L: 1,
    },
  };
}

/** @type {Input[]} */
const INPUTS = ["q", "k", "v", "t"];
const FAR = 4; // inputs are from -4 to 4
const [LEFT, RIGHT, TOP, BOTTOM] = [44, 330, 16, 190]; // of the curve in its drawing, in pixels

/**
 * Mount the view *graph*: attention with one key as a computational graph, each value with the
 * gradient of the loss by it, and steps against the gradients of the inputs.
 *
 * @param {HTMLElement} element empty
 * @param {object} data
 * @param {Record<Input, number>} data.start
 * @param {number} data.rate the size of a step to begin with
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data) {
  const now = { ...data.start };
  /** @type {number[]} */
  let losses = []; // at the beginning and after each step
  /** @type {[Input, ReturnType<typeof slider>][]} */
  const sliders = INPUTS.map((name) => {
    /** @type {ReturnType<typeof slider>} */
    const one = slider(name, {
      min: -FAR,
      max: FAR,
      step: 0.01,
      value: now[name],
      oninput: () => {
        now[name] = Number(one.input.value);
        losses = [];
        draw();
      },
    });
    return [name, one];
  });
  const rate = slider("size of a step", {
    min: 0.05,
    max: 2,
    step: 0.05,
    value: data.rate,
    oninput: draw,
  });
  const table = make("table", { class: "lmg-numbers" });
  const curve = svg("svg", {
    viewBox: "0 0 340 224",
    class: "lmg-curve play-drawing",
    "aria-hidden": "true",
  });
  const status = make("p", { role: "status" });

  /* Take a step: move query, key and value against their gradients. */
  function step() {
    const { slopes } = passes(now);
    for (const name of INPUTS.slice(0, 3)) {
      now[name] = Math.max(
        -FAR,
        Math.min(FAR, now[name] - Number(rate.input.value) * slopes[name]),
      );
    }
    draw();
  }

  /* Begin again. */
  function again() {
    Object.assign(now, data.start);
    losses = [];
    draw();
  }

  element.append(
    controls(...sliders.map(([, one]) => one.label)),
    controls(button("One step", step), button("Back to the start", again), rate.label),
    make("div", { class: "play-both" }, table, make("div", {}, curve, status)),
  );

  /* Draw the values and gradients, and the curve of the losses. */
  function draw() {
    const { values, slopes } = passes(now);
    for (const [name, one] of sliders) {
      one.input.value = String(now[name]);
      one.value.textContent = fixed(now[name]);
    }
    rate.value.textContent = fixed(Number(rate.input.value));
    if (losses.at(-1) !== values.L) losses.push(values.L);
    table.replaceChildren(
      heading("", "value", "gradient of L"),
      make(
        "tbody",
        {},
        .../** @type {Name[]} */ (Object.keys(values)).map((name) =>
          row(name, fixed(values[name]), fixed(slopes[name])),
        ),
      ),
    );
    const top = Math.max(...losses, 0.01);
    /**
     * The x of a step.
     *
     * @param {number} i
     */
    const x = (i) => LEFT + ((RIGHT - LEFT) * i) / Math.max(10, losses.length - 1);
    /**
     * The y of a loss.
     *
     * @param {number} loss
     */
    const y = (loss) => BOTTOM - ((BOTTOM - TOP) * loss) / top;
    const dots = losses.map((loss, i) => svg("circle", { cx: x(i), cy: y(loss), r: 4.5 }));
    curve.replaceChildren(
      svg("path", { d: `M${LEFT} ${TOP}V${BOTTOM}H${RIGHT}`, class: "play-axes" }),
      svg("text", { x: LEFT - 6, y: TOP + 6, class: "play-end" }, fixed(top)),
      svg("text", { x: LEFT - 6, y: BOTTOM + 5, class: "play-end" }, "0"),
      svg("text", { x: (LEFT + RIGHT) / 2, y: BOTTOM + 26 }, "steps; up: the loss L"),
      svg("path", {
        d: `M${losses.map((loss, i) => `${x(i)} ${y(loss)}`).join("L")}`,
        class: "lmg-line",
      }),
      ...dots,
    );
    const steps = losses.length === 2 ? "step" : "steps";
    status.textContent = `After ${losses.length - 1} ${steps} L is ${fixed(values.L, 3)}.`;
  }

  draw();
  const state = {
    values: numbersField(
      () => INPUTS.map((name) => now[name]),
      (numbers) => {
        if (numbers.length !== INPUTS.length || numbers.some((x) => Math.abs(x) > FAR)) return;
        INPUTS.forEach((name, i) => {
          now[name] = numbers[i];
        });
      },
    ),
    losses: numbersField(
      () => losses,
      (numbers) => {
        losses = numbers;
      },
    ),
    rate: rate.input,
  };
  return { state: stateOf(state, draw) };
}
