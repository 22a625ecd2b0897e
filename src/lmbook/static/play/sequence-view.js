/* The view *sequence*: what follows a line, by counting (as `lmcourse.ngrams`) and by an LSTM
   (`lmcourse.recurrent`), and at each character the LSTM's forget gate. */
import { bar, heading, make, ownLine, percent, row, slider } from "./dom.js";
import { readStore, readText } from "./store.js";
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
    let probs = alphabet.map(() => 1 / alphabet.length);
    for (let size = 1; size <= Math.min(order, context.length + 1); size++) {
      const [counts, taken, contexts] = (levels[[size, size === order]] ??= makeLevel(size, size === order));
      const before = context.slice(context.length - size + 1), known = contexts.get(before);
      if (known) probs = probs.map((prob, i) => {
        const count = counts.get(before + alphabet[i]) || 0;
        return (count - taken[Math.min(count, 3)] + known[1] * prob) / known[0];
      });
    }
    return probs;
  };
}

function tally(all) {
  const found = new Map();
  for (const one of all) found.set(one, (found.get(one) || 0) + 1);
  return found;
}

/* The LSTM: reads ids, returns its forget gates at each and the probabilities of the next (lstm). */
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

const visible = (character) => ({ "\n": "⏎", " ": "␣" })[character] ?? character;

export function mount(element, data, context) {
  const alphabet = Array.from(data.alphabet), units = data.gates[0].length;
  let text = data.text, found = data, counts, reader;
  const { area, note, label } = ownLine(text, typed, { rows: 1, maxlength: 80, dir: null, onfocus: typed });
  const order = slider("Count runs of", { min: 1, max: 6, value: data.order, oninput: typed });
  const unit = slider("Forget gate of", { min: 0, max: units, value: data.unit, oninput: draw });
  const summary = make("p", { class: "lms-summary", role: "status" });
  const bars = make("table", { class: "lms-bars" }), gated = make("p", { class: "play-shades" });
  element.append(label, note, order.label, bars, unit.label, gated, summary);

  async function typed() {
    try {
      counts ??= makeCounts(await readText("sonnets-training", context), alphabet);
      reader ??= makeReader(await readStore("lstm", context));
    } catch (error) {
      note.textContent = error.message;
      return draw();
    }
    const all = Array.from(area.value), ids = ["\n", ...all].map((c) => alphabet.indexOf(c)).filter((id) => id >= 0);
    const strange = Array.from(new Set(all)).filter((c) => !alphabet.includes(c)).join(" ");
    note.textContent = strange && "Not in the Sonnets: " + strange;
    found = { ...reader(ids), counted: counts(ids.map((id) => alphabet[id]).join(""), +order.input.value) };
    text = ids.slice(1).map((id) => alphabet[id]).join("");
    found.gates.shift(); // of the line end before it
    draw();
  }

  function draw() {
    const { counted, lstm, gates } = found, number = +unit.input.value;
    order.value.textContent = order.input.value;
    unit.value.textContent = number ? "unit " + number : `all ${units}, their mean`;
    const likely = alphabet.map((_, i) => i).sort((a, b) => counted[b] - counted[a]).slice(0, 8);
    bars.replaceChildren(heading("next", "", "counts", "LSTM"), make("tbody", {}, ...likely.map((i) =>
      row(visible(alphabet[i]), bar(counted[i], lstm[i]), percent(counted[i], 1), percent(lstm[i], 1)))));
    const kept = gates.map((gate) => number ? gate[number - 1] : gate.reduce((a, b) => a + b) / units);
    gated.replaceChildren(...Array.from(text, (character, i) =>
      make("span", { style: `--share: ${kept[i]}` }, character)));
    const least = kept.indexOf(Math.min(...kept)), most = kept.indexOf(Math.max(...kept));
    const say = (i) => `${percent(kept[i], 1)} at ${visible(text[i])}, character ${i + 1}`;
    summary.textContent = kept.length ? `It keeps most, ${say(most)}; least, ${say(least)}.` : "";
  }

  draw();
}
