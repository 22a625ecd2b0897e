/* A view: a small GPT is trained on the reader's device while they watch. The curve is its
   loss on text that it is not trained on; lines across are what simpler models reach. What
   it wrote on the way can be looked at again; until it begins, that of a stored training. */

import source from "worker:./training-worker.js";
import { button, count, make, plural, slider, stateOf, svg } from "./dom.js";
import { startWorker } from "./start-worker.js";
import { readText } from "./store.js";

/* Of the chart in pixels: its size, and the margins around the curve. */
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [400, 290, 44, 8, 40, 44];

/** @import { Report, Settings } from "./training-worker.js" */

/** @typedef {{ step: number, loss: number, sample: string }} Moment of a training */
/** @typedef {{ label: string, loss: number }} Mark what a simpler model reaches */

/**
 * @typedef {object} Shown
 * @property {Mark[]} marks lines across the chart
 * @property {string} passes the label of the mark whose passing is told
 * @property {Moment[]} run the moments of the stored training
 */

/**
 * Make a chart of losses over steps, with a level line for each mark. Curves fall from the upper
 * left to the lower right; the names of the marks stand elsewhere.
 *
 * @param {Mark[]} marks
 * @param {number} steps of the training
 * @returns {{ picture: SVGSVGElement, drawCurve: (moments: Moment[], of: "run" | "now") => void }}
 *   the drawing; and what draws a curve in it anew, that of the stored training ("run") or of the
 *   one that goes on
 */
export function chart(marks, steps) {
  const losses = marks.map(({ loss }) => loss);
  const top = Math.max(...losses) + 0.15;
  const bottom = Math.min(...losses) - 0.15;
  /**
   * The x of a step.
   *
   * @param {number} step
   */
  const x = (step) => LEFT + (step / steps) * (WIDTH - LEFT - RIGHT);
  /**
   * The y of a loss.
   *
   * @param {number} loss
   */
  const y = (loss) => TOP + ((top - loss) / (top - bottom)) * (HEIGHT - TOP - BOTTOM);
  const root = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "lmr-chart" });
  for (const { label, loss } of marks) {
    const line = { x1: LEFT, x2: WIDTH - RIGHT, y1: y(loss), y2: y(loss), class: "lmr-mark" };
    const above = { x: WIDTH - RIGHT, y: y(loss) - 5, "text-anchor": "end" };
    const below = { x: LEFT + 4, y: y(loss) + 16 };
    const place = loss > Math.min(...losses) ? above : below;
    root.append(svg("line", line), svg("text", place, label));
    root.append(svg("text", { x: 0, y: y(loss) + 5 }, loss.toFixed(2)));
  }
  root.append(svg("text", { x: 0, y: 12 }, "loss (nats per character)"));
  const curves = {
    run: svg("path", { class: "lmr-run" }),
    now: svg("path", { class: "lmr-curve" }),
  };
  const [low, end] = [HEIGHT - 8, WIDTH - RIGHT];
  root.append(curves.run, curves.now, svg("text", { x: LEFT, y: low }, "step 0"));
  root.append(svg("text", { x: end, y: low, "text-anchor": "end" }, `step ${count(steps)}`));
  /**
   * Draw a curve anew; a loss above the chart is drawn at its upper end.
   *
   * @type {(moments: Moment[], of: "run" | "now") => void}
   */
  const drawCurve = (moments, of) => {
    const at = moments.map(({ step, loss }) => `${x(step)} ${y(Math.min(loss, top))}`);
    curves[of].setAttribute("d", at.length ? `M${at.join("L")}` : "");
  };
  return { picture: root, drawCurve };
}

/**
 * Mount the view of a training: a small GPT learns in the page, and its loss and what it writes on
 * the way are shown.
 *
 * @param {HTMLElement} element empty
 * @param {Omit<Settings, "text"> & Shown} data
 * @param {ViewContext} context
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data, context) {
  const { marks, passes, run, ...settings } = data;
  const wanted = /** @type {Mark} */ (marks.find(({ label }) => label === passes));
  const { picture, drawCurve } = chart(marks, settings.steps);
  const status = make("p", { role: "status" });
  const sample = make("pre", { class: "lmr-sample" });
  /* Show the moment at which the slider stands. */
  const showChosen = () => show(Number(back.input.value));
  const back = slider("Look back", {
    min: 0,
    value: 0,
    "aria-label": "Look back",
    oninput: showChosen,
  });
  const writes = make("div", {}, back.label, sample);
  const now = make("p", { class: "lmr-now" });
  const start = button("Train it here", begin);
  const stop = button("Stop", end, { hidden: "" });
  /** @type {Worker | null} */
  let worker = null;
  let moments = run; // those that can be looked at
  let below = false; // whether the loss was below the mark whose passing is told

  /* Show what was written at a moment; with no moment at the last one. */
  function show(at = moments.length - 1) {
    writes.hidden = !moments.length;
    if (!moments.length) return;
    back.input.max = String(moments.length - 1);
    back.input.value = String(at);
    const { step, loss, sample: written } = moments[at];
    const whose = moments === run ? "A stored training wrote" : "It wrote";
    const after = plural(step, "step");
    back.value.textContent = `${whose} this after ${after}, at a loss of ${loss.toFixed(2)}:`;
    back.input.setAttribute("aria-valuetext", plural(step, "step"));
    sample.textContent = written;
  }

  /* Load the text, and start a worker that trains; an error is told. */
  async function begin() {
    start.disabled = true;
    try {
      const text = await readText("sonnets", context);
      worker = startWorker(source);
      worker.onmessage = ({ data }) => report(data);
      worker.onerror = (event) => fail(event.message);
      moments = [];
      below = false;
      worker.postMessage({ start: { ...settings, text } });
      status.textContent = "It begins by knowing nothing.";
      start.hidden = true;
      stop.hidden = false;
      stop.focus();
    } catch (error) {
      fail(error.message);
    }
  }

  /**
   * Show what the worker tells of the training. What is written is shown unless the reader looks
   * back.
   *
   * @param {Report & { error?: string }} message
   */
  function report({ step, seconds, loss, sample: written, done, error }) {
    if (error) return fail(error);
    const follows = !moments.length || Number(back.input.value) === moments.length - 1;
    moments.push({ step, loss, sample: written });
    drawCurve(moments, "now");
    const reached = `${loss.toFixed(2)} nats a character after ${plural(step, "step")}`;
    picture.setAttribute("aria-label", `Loss while training: ${reached}.`);
    now.textContent = `Loss ${reached}, ${seconds.toFixed(0)} s.`;
    show(follows ? undefined : Number(back.input.value));
    if (!below && loss < wanted.loss) {
      below = true;
      status.textContent = `After ${seconds.toFixed(0)} s it is better than: ${wanted.label}.`;
    }
    if (done) end();
  }

  /* End the worker; another training may be begun. */
  function end() {
    if (!below) status.textContent = ""; // it speaks of the beginning
    if (worker) worker.terminate();
    worker = null;
    const hadFocus = document.activeElement === stop;
    start.hidden = false;
    start.disabled = false;
    stop.hidden = true;
    start.textContent = "Train another";
    if (hadFocus) start.focus();
  }

  /**
   * End the worker, and say why it failed.
   *
   * @param {string} message
   */
  function fail(message) {
    end();
    status.textContent = `The training stopped: ${message}`;
  }

  picture.setAttribute("aria-label", "Loss while training; it has not begun.");
  drawCurve(run, "run");
  show();
  element.append(make("p", {}, start, stop), picture, now, status, writes);
  const last = run.length - 1;
  const moment = {
    get: () => (moments === run ? Number(back.input.value) : last), // no link has a training
    /* Show a moment of the stored training; nothing if another is shown. */
    set(/** @type {number} */ number) {
      if (moments === run && number in run) show(number);
    },
  };
  return { state: stateOf({ moment }) };
}
