/* The view *sequence*: what follows some lines, by counting (as `lmcourse.ngrams`) and by an
   LSTM (`lmcourse.recurrent`); what one unit of it holds, and the loss when that is held still. */
import { bar, fixed, heading, make, ownLine, percent, radios, row, slider } from "./dom.js";
import { readStore, readText } from "./store.js";
import { readSafetensors, toFloats } from "./weights.js";

/* Counts the n-grams of a text, smoothed (modified Kneser-Ney): returns a function of context
   and order that gives the distribution of the next character. */
export function makeCounts(text, alphabet) {
  const seen = {};
  const levels = {};

  const occurring = (size) =>
    (seen[size] ??= tally(Array.from(text.slice(size - 1), (_, i) => text.slice(i, i + size))));

  /* What contexts of `size - 1` characters say. The longest n-grams of a model count as they
     occur, others by how many different characters stand before them. */
  function makeLevel(size, longest) {
    const counts = longest
      ? occurring(size)
      : tally(Array.from(occurring(size + 1).keys(), (gram) => gram.slice(1)));
    const n = [0, 0, 0, 0, 0];
    const taken = [0, 0.5, 1, 1.5];
    const contexts = new Map();
    for (const count of counts.values()) n[count]++;
    for (let k = 1; k < 4; k++) {
      const found = k - ((k + 1) * n[1] * n[k + 1]) / (n[1] + 2 * n[2]) / n[k];
      if (n[1] && n[2] && n[k] && n[k + 1]) taken[k] = found > 0 ? found : k / 2;
    }
    for (const [gram, count] of counts) {
      const before = gram.slice(0, -1);
      const [total, left] = contexts.get(before) || [0, 0];
      contexts.set(before, [total + count, left + taken[Math.min(count, 3)]]);
    }
    return [counts, taken, contexts];
  }

  return (context, order) => {
    let probs = alphabet.map(() => 1 / alphabet.length);
    for (let size = 1; size <= Math.min(order, context.length + 1); size++) {
      const isLast = size === order;
      levels[[size, isLast]] ??= makeLevel(size, isLast);
      const [counts, taken, contexts] = levels[[size, isLast]];
      const before = context.slice(context.length - size + 1);
      const known = contexts.get(before);
      if (known)
        probs = probs.map((prob, i) => {
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

/* The LSTM: reads ids, the memory of one unit held at a value if there is one. Returns that
   unit's memory and forget gate at each, the loss of each but the first, and what comes next. */
export function makeReader(bytes) {
  const { tensors } = readSafetensors(bytes);
  const at = (name) => toFloats(tensors.get(name));
  const names = ["lstm.read", "lstm.carry", "output"];
  const tokens = at("tokens.weight");
  const [input, carry, output] = names.map((name) => at(`${name}.weight`));
  const [one, other, last] = names.map((name) => at(`${name}.bias`));
  const width = output.length / last.length;
  const wide = input.length / one.length;
  const sigmoid = (x) => 1 / (1 + Math.exp(-x));
  function dot(matrix, row, x) {
    let sum = 0;
    for (let i = 0, from = row * x.length; i < x.length; i++) sum += x[i] * matrix[from + i];
    return sum;
  }
  return (ids, unit, value) => {
    const found = { memory: [], gates: [], losses: [], next: null };
    const h = new Float64Array(width);
    const memory = new Float64Array(width);
    for (const id of ids) {
      if (found.next) found.losses.push(-Math.log(found.next[id]));
      const x = tokens.subarray(id * wide, (id + 1) * wide);
      const four = Array.from(
        one,
        (bias, row) => bias + other[row] + dot(input, row, x) + dot(carry, row, h),
      );
      for (let i = 0; i < width; i++) {
        const keep = sigmoid(four[width + i]);
        if (i === unit) found.gates.push(keep);
        memory[i] = keep * memory[i] + sigmoid(four[i]) * Math.tanh(four[2 * width + i]);
        h[i] = sigmoid(four[3 * width + i]) * Math.tanh(memory[i]);
      }
      if (value !== undefined) memory[unit] = value;
      found.memory.push(memory[unit]);
      const powers = Array.from(last, (bias, row) => Math.exp(bias + dot(output, row, h)));
      const sum = powers.reduce((a, b) => a + b);
      found.next = powers.map((power) => power / sum);
    }
    return found;
  };
}

const SIGNS = { "\n": "⏎", " ": "␣" };
const mean = (all) => all.reduce((a, b) => a + b, 0) / all.length;

/* What a colour may say of each character: a share of 1 from what is found. */
const COLOURS = {
  "what the unit holds": ({ memory }) => {
    const low = Math.min(...memory);
    const high = Math.max(...memory);
    return memory.map((value) => (value - low) / (high - low || 1));
  },
  "how much it keeps": ({ gates }) => gates,
  "what holding it costs": ({ losses: [on, off] }) =>
    on.map((loss, i) => Math.min(1, Math.max(0, off[i] - loss) / 2)),
};

export function mount(element, data, context) {
  const alphabet = Array.from(data.alphabet);
  const kinds = Object.keys(COLOURS);
  let text = data.text;
  let found = data;
  let colour = 0;
  let counts;
  let reader;
  const { area, note, label } = ownLine(text, typed, {
    rows: 4,
    maxlength: 640,
    dir: null,
    onfocus: typed,
  });
  const order = slider("Count runs of", { min: 1, max: 6, value: data.order, oninput: typed });
  const unit = slider("Unit", {
    min: 0,
    max: data.means.length - 1,
    value: data.unit,
    oninput: typed,
  });
  const colours = radios("Colour", kinds, colour, (i) => {
    colour = i;
    draw();
  });
  const summary = make("p", { class: "lms-summary", role: "status" });
  const bars = make("table", { class: "lms-bars" });
  const shades = make("p", { class: "play-shades" });
  element.append(
    label,
    note,
    unit.label,
    colours,
    shades,
    summary,
    order.label,
    make("div", { class: "lms-wide", tabindex: 0 }, bars),
  );

  async function typed() {
    try {
      counts ??= makeCounts(await readText("sonnets-training", context), alphabet);
      reader ??= makeReader(await readStore("lstm", context));
    } catch (error) {
      note.textContent = error.message;
      return draw();
    }
    const all = Array.from(area.value);
    const ids = ["\n", ...all].map((c) => alphabet.indexOf(c)).filter((id) => id >= 0);
    const strange = Array.from(new Set(all))
      .filter((c) => !alphabet.includes(c))
      .join(" ");
    note.textContent = strange && `Not in the Sonnets: ${strange}`;
    const number = +unit.input.value;
    const on = reader(ids, number);
    const off = reader(ids, number, data.means[number]);
    text = ids
      .slice(1)
      .map((id) => alphabet[id])
      .join("");
    found = {
      counted: counts(`\n${text}`, +order.input.value),
      lstm: on.next,
      off: off.next,
      memory: on.memory.slice(1),
      gates: on.gates.slice(1),
      losses: [on.losses, off.losses], // not of the line end before
    };
    draw();
  }

  function draw() {
    const { counted, lstm, off, losses } = found;
    const number = unit.input.value;
    order.value.textContent = order.input.value;
    unit.value.textContent = number;
    const likely = alphabet
      .map((_, i) => i)
      .sort((a, b) => Math.max(counted[b], lstm[b]) - Math.max(counted[a], lstm[a]))
      .slice(0, 6);
    bars.replaceChildren(
      heading("next", "", "counts", "LSTM", "unit held"),
      make(
        "tbody",
        {},
        ...likely.map((i) =>
          row(
            SIGNS[alphabet[i]] ?? alphabet[i],
            bar(counted[i], lstm[i]),
            ...[counted, lstm, off].map((share) => percent(share[i], 1)),
          ),
        ),
      ),
    );
    const shares = COLOURS[kinds[colour]](found);
    shades.replaceChildren(
      ...Array.from(text, (character, i) =>
        make("span", { style: `--share: ${shares[i]}` }, character === "\n" ? "⏎\n" : character),
      ),
    );
    const ends = (all) => all.filter((_, i) => text[i] === "\n");
    const [one, two] = losses.map((all) => fixed(mean(all)));
    const [three, four] = losses.map((all) => fixed(mean(ends(all))));
    summary.textContent =
      text &&
      `Unit ${number} held at its mean: the loss is ${two} nats a character, it was ${one}` +
        (text.includes("\n") ? `; at line ends ${four}, it was ${three}.` : ".");
  }

  draw();
}
