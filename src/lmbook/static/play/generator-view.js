/* The view *generator*: a line, and how the book's GPT goes on. `lmcourse.views.generator`
   gives what it begins with; the model is loaded when the reader first comes near.

   Bars, lens and attention are those at the end of the line. What is written after it is a
   function of the line, the switches and the dice alone: a head switched off and on again
   brings the same text back. */
import { openModel } from "./client.js";
import { make, svg } from "./dom.js";
import { softmax } from "./engine.js";
import { chances } from "./writing.js";

const LONGEST = 10000; // characters of a line that are read, from its end
const MORE = 300, MOST = 2000; // characters that "go on" adds, and writes at all
const BARS = 10, FIRST = 3; // rows of the bars, choices of the lens
let views = 0;

const sign = (character) => ({ " ": "·", "\n": "⏎" })[character] ?? character;
const percent = (share, digits = 0) => (100 * share).toFixed(digits) + " %";

/* The places of the largest numbers, the largest first. */
const largest = (numbers, count) =>
  Array.from(numbers.keys()).sort((a, b) => numbers[b] - numbers[a] || a - b).slice(0, count);

/* A character that is to be named: to be seen, and to turn no others round. */
const named = (c) => /[\p{C}\p{Z}\p{M}]/u.test(c) ? "U+" + c.codePointAt(0).toString(16) : `\u2068${c}\u2069`;

const row = (name, ...cells) => make("tr", {}, make("th", { scope: "row" }, name),
  ...cells.map((cell) => make("td", {}, cell)));

export function mount(element, data, context) {
  const { room, heads } = data, alphabet = Array.from(data.alphabet);
  const gpt = openModel(data.store, context), lane = "generator " + ++views;
  const encode = (text) => Array.from(text, (character) => alphabet.indexOf(character));
  const decode = (ids) => ids.map((id) => alphabet[id]).join("");
  const places = data.weights.map((_, i) => [Math.floor(i / heads), i % heads]);
  const title = (i) => `head ${places[i][1]} of layer ${places[i][0]}`;
  let line = encode(data.text), written = encode(data.written);
  let { seed } = data, goal = written.length, drawn = 0, follows = false, waiting;
  let seen = { ...data, ids: line }; // lens (layers, vocab_size), weights (layers · heads, ids)
  let shown = 0; // the head whose attention colours the line
  const off = new Set();

  /* --- what stands there --- */

  const part = (tag, name, ...rest) => make(tag, { class: "lmg-" + name }, ...rest);
  const press = (text, onclick) => make("button", { type: "button", onclick }, text);
  const area = make("textarea", { rows: 2, spellcheck: "false", dir: "auto", oninput: typed });
  area.value = data.text;
  const note = make("p", { class: "play-note", role: "status" });
  const first = press("one character", one), stop = press("stop", halt);
  const allOn = press("all heads on", () => answer(off.clear()));
  const text = make("p", { class: "lmg-text", tabindex: 0, role: "region", "aria-label": "What it writes" });
  const bars = part("table", "bars"), lens = part("table", "lens");
  const colours = part("p", "line"), told = part("p", "told");
  const live = make("p", { class: "play-live", "aria-live": "polite" });
  const cells = places.map((_, head) => make("button", { type: "button",
    "aria-label": "switch off " + title(head), onfocus: () => look(head),
    onmouseenter: () => look(head), onclick: () => toggle(head) }));
  const grid = make("div", { class: "lmg-grid", role: "group", "aria-label": "Heads", onkeydown: move,
    style: "--heads: " + heads }, ...cells);
  const slider = (name, min, max, step, value = max) => {
    const input = make("input", { type: "range", min, max, step, value, oninput: () => answer() });
    return { input, label: make("label", {}, name + " ", input, make("output")) };
  };
  const sliders = {
    temperature: slider("temperature", 0, 2, 0.05, data.temperature),
    top_k: slider("top-k", 1, alphabet.length, 1),
    top_p: slider("top-p", 0.05, 1, 0.05),
  };
  element.append(make("label", { class: "play-line" }, "Your line", area), note,
    part("p", "controls", first, press("go on", more), stop, press("other dice", () => answer(seed++))),
    part("p", "controls", ...Object.values(sliders).map(({ label }) => label)), text,
    part("div", "both",
      make("div", {}, "The next character (mark: at temperature 1, none left out)", bars),
      make("div", {}, "If the model ended after a layer", lens)),
    "What each head looks at from the last character. A row is a layer; a click switches a head off.",
    grid, allOn, told, colours, live);
  element.addEventListener("focusin", () => gpt.load().catch(() => {}), { once: true });

  /* --- what it answers to --- */

  /* Read the line, and say what of it the model does not get. */
  function read() {
    const all = Array.from(area.value), last = all.slice(-LONGEST);
    const strange = Array.from(new Set(last.filter((c) => !alphabet.includes(c))), named);
    line = encode(last).filter((id) => id >= 0);
    if (!line.length) line = [Math.max(0, alphabet.indexOf("\n"))];
    if (strange.length > 8) strange.push(`and ${strange.splice(8).length} more`);
    let said = strange.length ? `Left out, as it has never read them: ${strange.join(" ")}. ` : "";
    if (line.length > room || all.length > LONGEST)
      said += `It sees the last ${tail(line).length} characters.`;
    return said;
  }

  /* What the model sees of a text: `write` begins anew with half a context when it is full,
     and this is where it would stand. */
  function tail(ids) {
    const step = room + 1 - (room >> 1);
    return ids.slice(step * Math.max(0, Math.ceil((ids.length - room) / step)));
  }

  const sampling = () =>
    Object.fromEntries(Object.entries(sliders).map(([name, { input }]) => [name, +input.value]));

  /* Ask about the line, then write until `goal` characters stand after it, of which some
     may be known. A newer call ends this one. */
  async function answer(_, known = []) {
    written = known;
    follows = false;
    stop.disabled = false;
    const said = (note.textContent = read());
    draw();
    try {
      const { config } = await gpt.load((share) => {
        note.textContent = `Loading ${gpt.size}: ${percent(share)}. ${said}`;
      });
      note.textContent = said;
      if (config.alphabet !== data.alphabet) throw new Error("the site carries another one");
      const ids = tail(line), ablate = Array.from(off, (head) => places[head]);
      const keep = ["blocks.*.lens", "blocks.*.attention.weights"];
      const found = await gpt.forward(ids, { keep, ablate, logits_of: [] }, lane);
      if (!found) return;
      take(ids, found.kept);
      const count = Math.max(0, goal - written.length);
      const options = { ...sampling(), seed, drawn: drawn + written.length, ablate, count };
      if (!(await gpt.write(tail([...line, ...written]), options, hear, lane))) return;
    } catch (error) {
      note.textContent = "The model does not answer: " + error.message;
    }
    stop.disabled = true;
  }

  function take(ids, kept) {
    const last = (name, layer, head = 0) => {
      const { values, shape } = kept[`blocks.${layer}.${name}`], [rows, width] = shape.slice(-2);
      return Array.from(values.slice(((head + 1) * rows - 1) * width, (head + 1) * rows * width));
    };
    const lens = data.lens.map((_, layer) => last("lens", layer));
    seen = { ids, lens, weights: places.map((place) => last("attention.weights", ...place)) };
    draw();
  }

  function hear(pieces) {
    written.push(...pieces.map(({ id }) => id));
    drawText();
    if (follows) text.scrollTop = text.scrollHeight;
  }

  function typed() {
    drawn = 0;
    answer();
  }

  /* The first character that was written becomes part of the line. */
  function one() {
    area.value += alphabet[written[0]];
    drawn++;
    answer(0, written.slice(1));
  }

  function more() {
    goal = Math.min(MOST, goal + MORE);
    answer(0, written);
    follows = true; // what is written stays in sight
  }

  function halt() {
    gpt.cancel(lane);
    goal = Math.max(2, written.length);
    stop.disabled = true;
  }

  function toggle(head) {
    answer(off.delete(head) || off.add(head));
  }

  /* Arrow keys go from head to head. */
  function move(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -heads, ArrowDown: heads }[event.key];
    if (step) event.preventDefault();
    cells[shown + step]?.focus();
  }

  function look(head) {
    shown = head;
    drawLine();
  }

  /* --- drawing --- */

  function draw() {
    const [own, ...others] = seen.lens.map((logits) => softmax(Float64Array.from(logits))).reverse();
    const shares = chances(Float64Array.from(seen.lens.at(-1)), sampling());
    for (const { input, label } of Object.values(sliders))
      label.lastChild.textContent = input.max > 2 && input.value === input.max ? "all" : input.value;
    bars.replaceChildren(...largest(own, BARS).map((id) => {
      const style = `--share: ${shares[id]}; --own: ${own[id]}`;
      return row(sign(alphabet[id]), make("span", { style }, make("i")), percent(shares[id], 1));
    }));
    lens.replaceChildren(...[own, ...others].reverse().map((shares, layer) =>
      row("layer " + layer, ...largest(shares, FIRST).map((id) => `${sign(alphabet[id])} ${percent(shares[id])}`))));
    cells.forEach((cell, head) => {
      const weights = seen.weights[head];
      const d = weights.map((weight, i) => `M${i + 0.5} 10V${10 - 10 * weight}`).join("");
      const viewBox = `0 0 ${weights.length} 10`;
      cell.setAttribute("aria-pressed", off.has(head));
      cell.replaceChildren(svg("svg", { viewBox, preserveAspectRatio: "none" }, svg("path", { d })));
    });
    allOn.disabled = !off.size;
    drawText();
    drawLine();
  }

  function drawText() {
    text.replaceChildren(decode(line.slice(-2 * room)), make("b", {}, decode(written)));
    first.disabled = !written.length;
    clearTimeout(waiting);
    waiting = setTimeout(announce, 800);
  }

  function drawLine() {
    const weights = seen.weights[shown], [best] = largest(weights, 1);
    const spans = seen.ids.map((id, i) => make("span", { style: "--share: " + weights[i] }, sign(alphabet[id])));
    cells.forEach((cell, head) => (cell.tabIndex = head === shown ? 0 : -1));
    told.textContent = `${title(shown)}${off.has(shown) ? ", switched off," : ""} looks most at ` +
      `“${spans[best].textContent}”, ${weights.length - 1 - best} before the last: ${percent(weights[best])}`;
    colours.replaceChildren(...spans);
  }

  function announce() {
    const next = Array.from(bars.rows, ({ cells }) => cells[0].textContent + " " + cells[2].textContent);
    live.textContent = `Next: ${next.slice(0, 3).join(", ")}. It goes on: ${decode(written.slice(0, 100))}`;
  }

  draw();
}
