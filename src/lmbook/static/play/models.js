/* A view of what the page can run: each model, its size, and how fast it is on the reader's
   device. data.models: name → { label, ids }, ids being a text to be measured with. */

import { openModel } from "./client.js";
import { make } from "./dom.js";

const WRITTEN = 200; // tokens, to measure how fast a model writes

export function mount(element, data, context) {
  for (const [name, { label, ids }] of Object.entries(data.models)) {
    const model = openModel(name, context);
    const status = make("p", { role: "status" });
    const bar = make("progress", { max: 1, value: 0, "aria-label": "Loading " + label });
    const button = make("button", { type: "button", onclick: run }, "Load and measure");
    bar.hidden = true;

    async function run() {
      button.disabled = true;
      bar.hidden = false;
      status.textContent = "Loading " + model.size + " …";
      try {
        const from = performance.now();
        const opened = await model.load((share) => (bar.value = share));
        const loaded = performance.now() - from;
        status.textContent = await measure(model, opened, ids, loaded);
      } catch (error) {
        status.textContent = "It did not load: " + error.message;
      }
      bar.hidden = true;
      button.disabled = false;
      button.textContent = "Measure again";
    }

    const title = make("strong", {}, label);
    element.append(make("div", {}, title, ", " + model.size + " ", button, " ", bar, status));
  }
}

const seconds = (milliseconds) => (milliseconds / 1000).toFixed(2) + " s";

/* Say how long a model takes, in a sentence or two. */
async function measure(model, { config, fromShelf, notKept }, ids, loaded) {
  const said = [];
  const where = fromShelf ? "Taken from what your browser kept" : "Loaded";
  said.push(where + " in " + seconds(loaded) + ": " + config.layers + " layers.");
  if (notKept) said.push("It is not kept for the next visit: " + notKept + ".");
  let from = performance.now();
  if (!(await model.forward(ids, {}, "measure"))) return said.join(" ");
  said.push("It reads " + ids.length + " tokens in " + seconds(performance.now() - from));
  if (config.causal) {
    from = performance.now();
    await model.write(ids, { count: WRITTEN }, () => {}, "measure");
    const speed = Math.round(WRITTEN / ((performance.now() - from) / 1000));
    said.push("and writes " + speed + " a second.");
  } else said[said.length - 1] += ".";
  return said.join(" ");
}
