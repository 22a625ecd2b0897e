/* The view *sequence*: what follows a line, by counting (as `lmcourse.ngrams`) and by an LSTM
   (`lmcourse.recurrent`), and at each character the LSTM's forget gate. */
import { make } from "./dom.js";
import { readStore } from "./store.js";
import { readSafetensors, toFloats } from "./weights.js";

/* Counts the n-grams of a text, smoothed (modified Kneser-Ney): returns a function of context
   and order that gives the distribution of the next character. */
export function makeCounts(text, alphabet) {
  const seen = {}, levels = {};

  const occurring = (size) =>
    (seen[size] ??= tally(Array.from(text.slice(size - 1), (_, i) => text.slice(i, i + size))));

  /* What contexts of `size - 1` characters say. The longest n-grams of a model count as they
     occur, others by how many different characters stand before them. */
  function makeLevel(size, longest) {
    const counts = longest ? occurring(size)
      : tally(Array.from(occurring(size + 1).keys(), (gram) => gram.slice(1)));
    const n = [0, 0, 0, 0, 0], taken = [0, 0.5, 1, 1.5], contexts = new Map();
    for (const count of counts.values()) n[count]++;
    for (let k = 1; k < 4; k++) {
      const found = k - ((k + 1) * n[1] * n[k + 1]) / (n[1] + 2 * n[2]) / n[k];
      if (n[1] && n[2] && n[k] && n[k + 1]) taken[k] = found > 0 ? found : k / 2;
    }
    for (const [gram, count] of counts) {
      const before = gram.slice(0, -1), [total, left] = contexts.get(before) || [0, 0];
      contexts.set(before, [total + count, left + taken[Math.min(count, 3)]]);
    }
    return [counts, taken, contexts];
  }

  return (context, order) => {
    let chances = alphabet.map(() => 1 / alphabet.length);
    for (let size = 1; size <= Math.min(order, context.length + 1); size++) {
      const [counts, taken, contexts] = (levels[[size, size === order]] ??= makeLevel(size, size === order));
      const before = context.slice(context.length - size + 1), known = contexts.get(before);
      if (known) chances = chances.map((chance, i) => {
        const count = counts.get(before + alphabet[i]) || 0;
        return (count - taken[Math.min(count, 3)] + known[1] * chance) / known[0];
      });
    }
    return chances;
  };
}

function tally(all) {
  const found = new Map();
  for (const one of all) found.set(one, (found.get(one) || 0) + 1);
  return found;
}

/* The LSTM: reads ids, returns its forget gates at each and the chances of the next (lstm). */
export function makeReader(bytes) {
  const { tensors } = readSafetensors(bytes), at = (name) => toFloats(tensors.get(name));
  const names = ["lstm.read", "lstm.carry", "output"], tokens = at("tokens.weight");
  const [input, carry, output] = names.map((name) => at(name + ".weight"));
  const [one, other, last] = names.map((name) => at(name + ".bias"));
  const width = output.length / last.length, wide = input.length / one.length;
  const dot = (matrix, row, x) => x.reduce((sum, value, i) => sum + value * matrix[row * x.length + i], 0);
  const sigmoid = (x) => 1 / (1 + Math.exp(-x));
  return (ids) => {
    let h = new Float64Array(width), memory = h;
    const gates = ids.map((id) => {
      const x = tokens.subarray(id * wide, (id + 1) * wide);
      const four = Array.from(one, (bias, row) => bias + other[row] + dot(input, row, x) + dot(carry, row, h));
      const keep = four.slice(width, 2 * width).map(sigmoid);
      memory = memory.map((m, i) => keep[i] * m + sigmoid(four[i]) * Math.tanh(four[2 * width + i]));
      h = memory.map((m, i) => sigmoid(four[3 * width + i]) * Math.tanh(m));
      return keep;
    });
    const powers = Array.from(last, (bias, row) => Math.exp(bias + dot(output, row, h)));
    const sum = powers.reduce((a, b) => a + b);
    return { gates, lstm: powers.map((power) => power / sum) };
  };
}

const named = (character) => ({ "\n": "⏎", " ": "␣" })[character] ?? character;
const percent = (share) => (100 * share).toFixed(1) + " %";

export function mount(element, data, context) {
  const alphabet = Array.from(data.alphabet), units = data.gates[0].length;
  let text = data.text, found = data, counts, reader;
  const line = make("textarea", { rows: 1, maxlength: 80, spellcheck: "false", oninput: typed, onfocus: typed });
  const range = (min, max, value, oninput) => make("input", { type: "range", min, max, value, oninput });
  const order = range(1, 6, data.order, typed), unit = range(0, units, data.unit, draw);
  const dial = (...parts) => make("label", { class: "lms-dial" }, ...parts);
  const [note, told] = ["play-note", "lms-told"].map((name) => make("p", { class: name, role: "status" }));
  const bars = make("table", { class: "lms-bars" }), shown = make("p", { class: "lms-line" });
  const runs = make("output"), which = make("output");
  line.value = text;
  element.append(make("label", { class: "play-line" }, "Your line", line), note,
    dial("Count runs of ", order, runs), bars,
    dial("Forget gate of ", unit, which), shown, told);

  async function typed() {
    try {
      counts ??= makeCounts(new TextDecoder().decode(await readStore("sonnets-training", context)), alphabet);
      reader ??= makeReader(await readStore("lstm", context));
    } catch (error) {
      note.textContent = error.message;
      return draw();
    }
    const all = Array.from(line.value), ids = ["\n", ...all].map((c) => alphabet.indexOf(c)).filter((id) => id >= 0);
    const strange = Array.from(new Set(all)).filter((c) => !alphabet.includes(c)).join(" ");
    note.textContent = strange && "Not in the Sonnets: " + strange;
    found = { ...reader(ids), counted: counts(ids.map((id) => alphabet[id]).join(""), +order.value) };
    text = ids.slice(1).map((id) => alphabet[id]).join("");
    found.gates.shift(); // of the line end before it
    draw();
  }

  function draw() {
    const { counted, lstm, gates } = found, row = +unit.value;
    runs.textContent = order.value;
    which.textContent = row ? "unit " + row : `all ${units}, their mean`;
    const likely = alphabet.map((_, i) => i).sort((a, b) => counted[b] - counted[a]).slice(0, 8);
    bars.replaceChildren(make("tr", {}, ...["next", "", "counts", "LSTM"].map((name) => make(name ? "th" : "td", name ? { scope: "col" } : {}, name))),
      ...likely.map((i) => make("tr", {}, make("th", { scope: "row" }, named(alphabet[i])),
        make("td", {}, make("span", { style: `--share: ${counted[i]}; --own: ${lstm[i]}` }, make("i"))),
        make("td", {}, percent(counted[i])), make("td", {}, percent(lstm[i])))));
    const kept = gates.map((gate) => row ? gate[row - 1] : gate.reduce((a, b) => a + b) / units);
    shown.replaceChildren(...Array.from(text, (character, i) =>
      make("span", { style: `--share: ${kept[i]}` }, character)));
    const least = kept.indexOf(Math.min(...kept)), most = kept.indexOf(Math.max(...kept));
    const say = (i) => `${percent(kept[i])} at ${named(text[i])}, character ${i + 1}`;
    told.textContent = kept.length ? `It keeps most, ${say(most)}; least, ${say(least)}.` : "";
  }

  draw();
}
