/* The view *superposition*: five features go through two numbers and come back, and their
   arrows move while the toy learns. `lmcourse.sparse.train_toy` is the same in Python. */

import {
  announcer,
  controls,
  fixed,
  heading,
  make,
  percent,
  row,
  select,
  slider,
  stateOf,
  svg,
} from "./dom.js";

/**
 * @typedef {object} Data
 * @property {number} features
 * @property {number} examples of each step
 * @property {number} steps of a training
 * @property {number} rate of Adam, to begin with; it falls to 0
 * @property {number[]} seeds of the examples, and of the first weights
 * @property {number} sparsity to begin with: the probability that a feature is 0
 */

/**
 * The toy model: two numbers are the sum of each feature times its arrow; a feature comes back as
 * the dot product of these with its arrow, plus its bias, through a ReLU.
 *
 * @typedef {object} Toy
 * @property {number[][]} arrows of each feature, two numbers
 * @property {number[]} bias of each feature
 * @property {number} loss before the last step: the mean squared error of a feature
 */

/**
 * Make what draws random numbers, the same as in Python.
 *
 * @param {number} seed
 * @returns {() => number} gives the next one, 0 or more and below 1
 */
function draws(seed) {
  let state = seed;
  return () => {
    state = (1664525 * state + 1013904223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

/**
 * A list of several numbers.
 *
 * @param {number} count how many
 * @param {() => number} next gives each of them
 */
const several = (count, next) => Array.from({ length: count }, next);

/**
 * Draw examples, each a number for every feature: 0, or else between 0 and 1.
 *
 * @param {Data} data
 * @param {number} sparsity the probability of 0
 * @returns {number[][]} (examples, features)
 */
function sample(data, sparsity) {
  const random = draws(data.seeds[0]);
  const count = data.examples * data.features;
  const there = several(count, () => (random() >= sparsity ? 1 : 0));
  const values = there.map((present) => present * random());
  return several(data.examples, () => 0).map((_, i) =>
    values.slice(i * data.features, (i + 1) * data.features),
  );
}

/**
 * The toy before it learns: arrows at random.
 *
 * @param {Data} data
 * @returns {Toy}
 */
function start(data) {
  const random = draws(data.seeds[1]);
  const axes = [0, 1].map(() => several(data.features, () => random() - 0.5));
  const arrows = axes[0].map((across, i) => [across, axes[1][i]]);
  return { arrows, bias: arrows.map(() => 0), loss: 0 };
}

/**
 * Send an example through the toy.
 *
 * @param {Toy} toy
 * @param {number[]} example (features,)
 * @returns {{ hidden: number[], back: number[] }} the two numbers; what comes back, before the
 *   ReLU, (features,)
 */
function through({ arrows, bias }, example) {
  const hidden = [0, 1].map((axis) =>
    example.reduce((sum, value, i) => sum + value * arrows[i][axis], 0),
  );
  const back = arrows.map((arrow, i) => hidden[0] * arrow[0] + hidden[1] * arrow[1] + bias[i]);
  return { hidden, back };
}

/**
 * Make a toy that learns, a step of Adam for each call.
 *
 * @param {Data} data
 * @param {number} sparsity the probability that a feature of an example is 0
 * @returns {{ toy: Toy, step: () => boolean }} the toy, which each step changes; what takes a step,
 *   and returns false if all were taken before
 */
export function learner(data, sparsity) {
  const toy = start(data);
  const examples = sample(data, sparsity);
  const moments = several(3 * data.features, () => 0).map(() => [0, 0]); // Adam's running means
  let done = 0; // steps
  /* Take a step, if one is left. */
  const step = () => {
    if (done === data.steps) return false;
    const gradients = slopes(toy, examples);
    const rate = data.rate * (1 - done / data.steps);
    done += 1;
    gradients.forEach((gradient, i) => {
      const moment = moments[i];
      moment[0] = 0.9 * moment[0] + 0.1 * gradient;
      moment[1] = 0.999 * moment[1] + 0.001 * gradient ** 2;
      const mean = moment[0] / (1 - 0.9 ** done);
      const spread = Math.sqrt(moment[1] / (1 - 0.999 ** done)) + 1e-8;
      const [feature, part] = [Math.floor(i / 3), i % 3];
      if (part === 2) toy.bias[feature] -= (rate * mean) / spread;
      else toy.arrows[feature][part] -= (rate * mean) / spread;
    });
    return true;
  };
  return { toy, step };
}

/**
 * The gradient of the loss by all weights of the toy.
 *
 * @param {Toy} toy its loss is set
 * @param {number[][]} examples (examples, features)
 * @returns {number[]} (3 · features,), of each feature by the two numbers of its arrow and by its
 *   bias
 */
function slopes(toy, examples) {
  const gradient = several(3 * toy.bias.length, () => 0);
  const scale = 2 / (examples.length * toy.bias.length);
  let sum = 0;
  for (const example of examples) {
    const { hidden, back } = through(toy, example);
    const errors = back.map((value, i) => Math.max(value, 0) - example[i]);
    const slope = errors.map((error, i) => (back[i] > 0 ? scale * error : 0));
    for (const error of errors) sum += error ** 2;
    const inner = [0, 1].map((axis) =>
      slope.reduce((total, value, i) => total + value * toy.arrows[i][axis], 0),
    );
    slope.forEach((value, i) => {
      gradient[3 * i] += value * hidden[0] + inner[0] * example[i];
      gradient[3 * i + 1] += value * hidden[1] + inner[1] * example[i];
      gradient[3 * i + 2] += value;
    });
  }
  toy.loss = sum / (examples.length * toy.bias.length);
  return gradient;
}

const UNIT = 150; // an arrow of length 1, in pixels of the drawing
const AT_ONCE = 30; // steps between two pictures

/**
 * Draw an arrow with the number of its feature, from 1 on.
 *
 * @param {number[]} arrow two numbers, across and up
 * @param {number} i the feature, from 0 on
 */
function drawn(arrow, i) {
  const [x, y] = [240 + UNIT * arrow[0], 240 - UNIT * arrow[1]];
  const beyond = 1 + 22 / (UNIT * Math.hypot(...arrow) || 1);
  const [u, v] = [240 + beyond * UNIT * arrow[0], 246 - beyond * UNIT * arrow[1]];
  return svg(
    "g",
    {},
    svg("line", { x1: 240, y1: 240, x2: x, y2: y }),
    svg("circle", { cx: x, cy: y, r: 7 }),
    svg("text", { x: u, y: v }, i + 1),
  );
}

/**
 * Mount the view *superposition*: a toy model learns to send five features through two numbers, and
 * each feature is an arrow that moves meanwhile.
 *
 * @param {HTMLElement} element empty
 * @param {Data} data
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data) {
  /** @type {Toy} */
  let toy = start(data);
  let running = 0; // the number of the training that is shown
  const worlds = select(["trained", "random weights"], train);
  const zeros = slider("how often a feature is 0", {
    min: 0,
    max: 0.95,
    step: 0.05,
    oninput: train,
  });
  const lines = svg("g");
  const plane = svg(
    "svg",
    { viewBox: "0 0 480 480", class: "lms-plane play-drawing", "aria-hidden": "true" },
    svg("path", { d: "M15 240H465M240 15V465", class: "lms-axes" }),
    lines,
  );
  const body = make("tbody");
  const result = make("p", { class: "lms-result" });
  const { live, later } = announcer(tell);
  const head = heading(
    "feature that is 1",
    "length of its arrow",
    "comes back for it (1 is right)",
    "most for another (0 is right)",
  );
  element.append(
    controls(zeros.label, make("label", {}, "Had it learned nothing? ", worlds)),
    make(
      "div",
      { class: "play-both" },
      plane,
      make("div", { class: "lms-told" }, make("table", {}, head, body), result),
    ),
    live,
  );

  /* Draw the arrows, and for each feature what comes back if it alone is 1 (after the ReLU, with
     its bias). */
  function draw() {
    lines.replaceChildren(...toy.arrows.map(drawn));
    body.replaceChildren(
      ...toy.arrows.map((arrow, i) => {
        const alone = toy.arrows.map((_, j) => (i === j ? 1 : 0));
        const back = through(toy, alone).back.map((value) => Math.max(value, 0));
        const other = Math.max(...back.filter((_, j) => j !== i));
        return row(i + 1, fixed(Math.hypot(...arrow)), fixed(back[i]), fixed(other));
      }),
    );
    result.textContent = tell();
  }

  /* How many arrows are longer than 0.8. */
  const long = () => toy.arrows.filter((arrow) => Math.hypot(...arrow) > 0.8).length;
  /* How many features have an arrow, and the loss, in a sentence. */
  function tell() {
    if (worlds.selectedIndex)
      return "Random weights: the arrows point anywhere. How often a feature is 0 makes no difference.";
    return `Arrows longer than 0.8: ${long()} of ${data.features}. Loss ${fixed(toy.loss, 4)}.`;
  }

  /** Begin anew, and show the arrows while they learn; random weights stay as they are. */
  function train() {
    const sparsity = Number(zeros.input.value);
    zeros.value.textContent = percent(sparsity);
    zeros.input.setAttribute("aria-valuetext", percent(sparsity));
    const mine = ++running;
    const learning = learner(data, sparsity);
    toy = learning.toy;
    const atRest = worlds.selectedIndex === 1;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    /* Take some steps and draw, again and again until the end; all at once for readers who asked
       for less motion. */
    const more = () => {
      if (mine !== running) return;
      let goesOn = !atRest;
      for (let i = 0; goesOn && (still || i < AT_ONCE); i++) goesOn = learning.step();
      draw();
      if (goesOn) requestAnimationFrame(more);
      else later();
    };
    more();
  }

  zeros.input.value = String(data.sparsity);
  train();
  return { state: stateOf({ zeros: zeros.input, learned: worlds }) };
}
