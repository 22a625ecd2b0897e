/* The view *block*: a block of a GPT as a drawing, whose parts are switched off by a click,
   and what the model loses and writes without them. What a part is worth shows once it was
   clicked. `lmcourse.views.block` measured it. */
import { button, fixed, heading, make, row, select, svg } from "./dom.js";
import { name, pressable } from "./keys.js";

const signed = (number) => (number < 0 ? "" : "+") + fixed(number);

export function mount(element, data) {
  let off = null; // the part that is switched off
  const known = data.layers.map(() => new Set()); // parts that were clicked
  const layer = select(
    data.layers.map((_, i) => `layer ${i}`),
    () => {
      off = null;
      draw();
    },
  );
  layer.value = data.first;
  const figure = make("div", {
    class: "lmb-figure play-drawing",
    onclick: (event) => press(event.target),
  });
  figure.innerHTML = data.drawing; // ours, and without a word of anybody else's
  const drawn = Array.from(figure.querySelectorAll("[data-part]"));
  for (const part of drawn) name(part, "button", data.parts[part.dataset.part][0]);
  pressable(figure, (event) => press(event.target));
  const controls = data.controls.map((part) =>
    button(data.parts[part][0], (event) => press(event.target), { "data-part": part }),
  );
  const status = make("p", { class: "lmb-status", role: "status" });
  const line = make("p", { class: "lmb-line" });
  const body = make("tbody");
  const all = button("Show all", () => {
    rows().forEach(([part]) => known[layer.value].add(part));
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

  const rows = () => data.layers[layer.value];

  function press(target) {
    const part = target.closest("[data-part]")?.dataset.part;
    if (!part) return;
    off = off === part ? null : part;
    known[layer.value].add(part);
    draw();
  }

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

  /* The first click in a layer is a guess: is there a part that is missed more? */
  function rank(part) {
    const seen = rows().filter(([each]) => known[layer.value].has(each));
    const most = seen.reduce((a, b) => (b[1] > a[1] ? b : a));
    if (seen.length === 1) return "Is there a part that is missed more?";
    return most[0] === part ? "Of those clicked in this layer it is missed most." : "";
  }

  function draw() {
    const ends = rows().flatMap(([, , low, high]) => [low, high]);
    const [least, most] = [Math.min(0, ...ends), Math.max(0, ...ends)];
    const across = (number) => (150 * (number - least)) / (most - least || 1);
    for (const part of [...drawn, ...controls])
      part.setAttribute("aria-pressed", part.dataset.part === off);
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
        if (!known[layer.value].has(part)) return row(title, "?", "");
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
