/* A view: a small GPT is trained on the reader's device while they watch. The curve is its
   loss on text that it is not trained on; lines across are what simpler models reach.

   data: config, batch, steps, learning_rate, seed; marks, [{ label, loss }]; passes, the
   label of the mark whose passing is told. */

import { button, make, svg } from "./dom.js";
import { readText } from "./store.js";
import { serve } from "./training-worker.js";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [480, 256, 44, 8, 18, 42];

/* A chart whose horizontal axis grows: draw(points), with points [seconds, loss]. The curve
   falls from the left above to the right below; the names of the marks stand elsewhere. */
function chart(marks) {
  const losses = marks.map(({ loss }) => loss);
  const top = Math.max(...losses) + 0.15, bottom = Math.min(...losses) - 0.15;
  const y = (loss) => TOP + ((top - loss) / (top - bottom)) * (HEIGHT - TOP - BOTTOM);
  const root = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "lmr-chart" });
  for (const { label, loss } of marks) {
    const line = { x1: LEFT, x2: WIDTH - RIGHT, y1: y(loss), y2: y(loss), class: "lmr-mark" };
    const above = { x: WIDTH - RIGHT, y: y(loss) - 5, "text-anchor": "end" };
    const below = { x: LEFT + 4, y: y(loss) + 16 };
    const place = loss > (top + bottom) / 2 ? above : below;
    root.append(svg("line", line), svg("text", place, label));
    root.append(svg("text", { x: 0, y: y(loss) + 5 }, loss.toFixed(2)));
  }
  const curve = svg("polyline", { class: "lmr-curve", points: "" });
  const end = svg("text", { x: WIDTH - RIGHT, y: HEIGHT - 6, "text-anchor": "end" });
  root.append(curve, svg("text", { x: LEFT, y: HEIGHT - 6 }, "0 s"), end);
  root.draw = function (points) {
    const longest = Math.max(10, ...points.map(([seconds]) => seconds));
    const x = (seconds) => LEFT + (seconds / longest) * (WIDTH - LEFT - RIGHT);
    const at = points.map(([seconds, loss]) => `${x(seconds)},${y(Math.min(loss, top))}`);
    curve.setAttribute("points", at.join(" "));
    end.textContent = longest.toFixed(0) + " s of training";
  };
  return root;
}

export function mount(element, data, context) {
  const { marks, passes, ...settings } = data;
  const wanted = marks.find(({ label }) => label === passes);
  const picture = chart(marks), status = make("p", { role: "status" });
  const sample = make("pre", { class: "lmr-sample" });
  const writes = make("div", { hidden: "" }, make("p", {}, "What it writes now:"), sample);
  const now = make("p", { class: "lmr-now" });
  const start = button("Train it here", begin);
  const stop = button("Stop", end, { hidden: "" });
  let worker = null, points = [], below = false;

  async function begin() {
    start.disabled = true;
    try {
      const text = await readText("sonnets", context);
      worker = context.worker(serve);
      worker.onmessage = ({ data }) => report(data);
      worker.onerror = (event) => fail(event.message);
      [points, below] = [[], false];
      worker.postMessage({ start: { ...settings, text } });
      status.textContent = "It begins by knowing nothing.";
      [start.hidden, stop.hidden] = [true, false];
      stop.focus();
    } catch (error) {
      fail(error.message);
    }
  }

  function report({ step, seconds, loss, sample: written, done, error }) {
    if (error) return fail(error);
    points.push([seconds, loss]);
    picture.draw(points);
    const reached = `${loss.toFixed(2)} nats a character after ${step} steps`;
    picture.setAttribute("aria-label", `Loss while training: ${reached}.`);
    now.textContent = `Loss ${reached}, ${seconds.toFixed(0)} s.`;
    writes.hidden = false;
    sample.textContent = written;
    if (!below && loss < wanted.loss) {
      below = true;
      status.textContent = `After ${seconds.toFixed(0)} s it is better than: ${wanted.label}.`;
    }
    if (done) end();
  }

  function end() {
    if (worker) worker.terminate();
    worker = null;
    const hadFocus = document.activeElement === stop;
    [start.hidden, start.disabled, stop.hidden] = [false, false, true];
    start.textContent = "Train it anew";
    if (hadFocus) start.focus();
  }

  function fail(message) {
    end();
    status.textContent = "The training stopped: " + message;
  }

  picture.setAttribute("aria-label", "Loss while training; it has not begun.");
  element.append(make("p", {}, start, stop), picture, now, status, writes);
}
