/* The view *block*: a block of a GPT as a drawing, whose parts are switched off by a click,
   and what the model loses without them. `lmcourse.views.block` measured it. */
import { heading, make, row, select, svg } from "./dom.js";
import { name, pressable } from "./keys.js";

const signed = (number) => (number < 0 ? "−" : "+") + Math.abs(number).toFixed(3);

export function mount(element, data) {
  let off = null; // the part that is switched off
  const layer = select(data.layers.map((_, i) => "layer " + i), draw);
  const figure = make("div", { class: "lmb-figure play-drawing", onclick: (event) => press(event.target) });
  figure.innerHTML = data.drawing; // ours, and without a word of anybody else's
  const parts = Array.from(figure.querySelectorAll("[data-part]"));
  for (const part of parts) name(part, "button", data.parts[part.dataset.part][0]);
  pressable(figure, (event) => press(event.target));
  const status = make("p", { class: "lmb-status", role: "status" });
  const body = make("tbody");
  const note = "Each is measured on the same text by a model that was trained with all its " +
    "parts; one that was trained without a part would have learned to do without it.";
  element.append(make("div", { class: "play-both" }, figure,
    make("div", { class: "lmb-losses" },
      make("label", {}, "Parts of ", layer), status,
      make("table", {}, heading("without", "change of the loss", "(95 % interval)"), body),
      make("p", { class: "play-muted" }, note))));

  function press(target) {
    const name = target.closest("[data-part]")?.dataset.part;
    if (!name) return;
    off = off === name ? null : name;
    draw();
  }

  function draw() {
    const rows = data.layers[layer.value];
    const ends = rows.flatMap(([, , low, high]) => [low, high]);
    const [least, most] = [Math.min(0, ...ends), Math.max(0, ...ends)];
    const across = (number) => (150 * (number - least)) / (most - least || 1);
    for (const part of parts)
      part.setAttribute("aria-pressed", part.dataset.part === off);
    status.textContent = `With all its parts the loss of the model is ${data.whole.toFixed(2)}.` +
      " Click a part of the drawing to switch it off.";
    body.replaceChildren(...rows.map(([name, mean, low, high]) => {
      const [title, missing] = data.parts[name];
      const numbers = `${signed(mean)} (${signed(low)} to ${signed(high)})`;
      if (name === off)
        status.textContent = `Without ${/^path/.test(title) ? "the " : ""}${title} in layer ${layer.value}, ${missing}. The loss goes ` +
          `from ${data.whole.toFixed(2)} to ${(data.whole + mean).toFixed(2)}: ${numbers}.`;
      const [from, to] = [across(Math.min(0, mean)), across(Math.max(0, mean))];
      const bar = svg("svg", { viewBox: "0 0 150 14", class: "lmb-bar", "aria-hidden": "true" },
        svg("rect", { x: from, y: 2, width: to - from, height: 10 }),
        svg("path", { d: `M${across(0)} 0V14` }),
        svg("path", { d: `M${across(low)} 7H${across(high)}`, class: "lmb-interval" }));
      const line = row(title, bar, numbers);
      line.classList.toggle("lmb-off", name === off);
      return line;
    }));
  }

  draw();
}
