/* The view *sequence*: the next character after some lines, by an n-gram model (as
   `lmcourse.ngrams`) and by an LSTM (`lmcourse.recurrent`), trained or with random weights;
   the memory of one unit, and the loss when it is frozen. */
import {
  bar,
  fixed,
  heading,
  learnedSwitch,
  leftOf,
  make,
  ownLine,
  percent,
  radios,
  row,
  slider,
  stateOf,
  WORLDS,
} from "./dom.js";
import { Ngrams } from "./ngrams.js";
import { mean } from "./numbers.js";
import { reordered } from "./random.js";
import { readStore, readText } from "./store.js";
import { readSafetensors, toFloats } from "./weights.js";

const LONGEST = 6; // of the n-grams

/**
 * What an LSTM does on its way through a text.
 *
 * @typedef {object} Reading
 * @property {number[]} memory of one unit, after each character
 * @property {number[]} gates the forget gate of that unit at each character, from 0 to 1
 * @property {number[]} losses of each character but the first, in nats
 * @property {number[] | null} next probabilities of what follows the last character, (alphabet,);
 *   null if there was none
 */

/**
 * What is known of the text that is shown. Probabilities are those of the next character,
 * (alphabet,).
 *
 * @typedef {object} Results
 * @property {number[]} counted probabilities by the n-gram model
 * @property {number[]} lstm those of the LSTM
 * @property {number[]} off those of the LSTM whose unit is frozen
 * @property {number[]} memory of the unit, after each character of the text
 * @property {number[]} gates its forget gate at each character of the text
 * @property {[on: number[], off: number[]]} losses of each character of the text, in nats: as the
 *   LSTM is, and with the unit frozen
 */

/**
 * @typedef {object} Settings
 * @property {string} text to begin with
 * @property {string} alphabet the character of each ID
 * @property {number} order length of the n-grams to begin with
 * @property {number} unit to begin with
 * @property {number[]} means of each unit's memory
 * @property {{means: number[]}} untrained the same of the LSTM with random weights
 */

/**
 * Make an n-gram model of a text.
 *
 * @param {string} text
 * @param {string[]} alphabet the character of each ID
 * @returns {(context: string, order: number) => number[]} takes a context and the length of the
 *   n-grams, 1 to LONGEST, the predicted character included; gives the smoothed probabilities of
 *   the next character, (alphabet,)
 */
export function makeCounts(text, alphabet) {
  /**
   * The IDs of a text's characters.
   *
   * @param {string} of
   */
  const encode = (of) => Array.from(of, (character) => alphabet.indexOf(character));
  const counted = new Ngrams(encode(text), alphabet.length, LONGEST);
  return (context, order) => Array.from(counted.next(encode(context), order));
}

/**
 * Make an LSTM that reads texts.
 *
 * @param {Uint8Array} bytes its safetensors file
 * @returns {(ids: number[], unit: number, value?: number) => Reading} reads a text, the IDs of its
 *   characters, and tells of one unit of the LSTM, a number from 0; if a value is given, that
 *   unit's memory is set to it after each character
 */
function makeReader(bytes) {
  const { tensors } = readSafetensors(bytes);
  /**
   * The numbers of a tensor.
   *
   * @param {string} name
   */
  const at = (name) => toFloats(/** @type {import("./weights.js").Tensor} */ (tensors.get(name)));
  const names = ["lstm.read", "lstm.carry", "output"];
  const tokens = at("tokens.weight");
  const [input, carry, output] = names.map((name) => at(`${name}.weight`));
  const [inputBias, carryBias, outputBias] = names.map((name) => at(`${name}.bias`));
  const width = output.length / outputBias.length; // units
  const vectorSize = input.length / inputBias.length; // numbers of a character's vector
  /**
   * The logistic function.
   *
   * @param {number} x
   */
  const sigmoid = (x) => 1 / (1 + Math.exp(-x));
  /**
   * The product of a row of a matrix and a vector.
   *
   * @param {Float32Array} matrix (rows · width), row after row
   * @param {number} row
   * @param {Float32Array | Float64Array} x (width,)
   */
  function dot(matrix, row, x) {
    let sum = 0;
    for (let i = 0, from = row * x.length; i < x.length; i++) sum += x[i] * matrix[from + i];
    return sum;
  }
  return (ids, unit, value) => {
    /** @type {Reading} */
    const reading = { memory: [], gates: [], losses: [], next: null };
    const h = new Float64Array(width);
    const memory = new Float64Array(width);
    for (const id of ids) {
      if (reading.next) reading.losses.push(-Math.log(reading.next[id]));
      const x = tokens.subarray(id * vectorSize, (id + 1) * vectorSize);
      // (4 · units), before the sigmoid or tanh: all units' input gates, their forget gates, what
      // is new, and their output gates.
      const four = Array.from(
        inputBias,
        (bias, row) => bias + carryBias[row] + dot(input, row, x) + dot(carry, row, h),
      );
      for (let i = 0; i < width; i++) {
        const keep = sigmoid(four[width + i]);
        if (i === unit) reading.gates.push(keep);
        memory[i] = keep * memory[i] + sigmoid(four[i]) * Math.tanh(four[2 * width + i]);
        h[i] = sigmoid(four[3 * width + i]) * Math.tanh(memory[i]);
      }
      if (value !== undefined) memory[unit] = value;
      reading.memory.push(memory[unit]);
      const powers = Array.from(outputBias, (bias, row) => Math.exp(bias + dot(output, row, h)));
      const sum = powers.reduce((a, b) => a + b);
      reading.next = powers.map((power) => power / sum);
    }
    return reading;
  };
}

const SEED = 1; // of the order of shuffled characters
/** @type {Record<string, string | undefined>} */
const SIGNS = { "\n": "⏎", " ": "␣" };

/**
 * What the colour of characters may show: by its name, a function from the results to how strong
 * the colour of each character is, from 0 to 1.
 *
 * @type {Record<string, (results: Results) => number[]>}
 */
const COLOURS = {
  "the unit’s memory": ({ memory }) => {
    const low = Math.min(...memory);
    const high = Math.max(...memory);
    return memory.map((value) => (value - low) / (high - low || 1));
  },
  "its forget gate (how much it keeps)": ({ gates }) => gates,
  "loss added by freezing it": ({ losses: [on, off] }) =>
    on.map((loss, i) => Math.min(1, Math.max(0, off[i] - loss) / 2)),
};

/**
 * Mount the view *sequence*: what comes after some lines, by an n-gram model and by an LSTM, and
 * the memory of one of its units along the text.
 *
 * @param {HTMLElement} element empty
 * @param {Settings & Results} data
 * @param {ViewContext} context
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data, context) {
  const alphabet = Array.from(data.alphabet);
  const kinds = Object.keys(COLOURS);
  let text = data.text; // as the models read it
  /** @type {Results} */
  let results = data; // of that text
  let colour = 0; // position in `kinds`
  /** @type {ReturnType<typeof makeCounts> | undefined} */
  let counts; // once the Sonnets are loaded
  /** @type {Record<string, ReturnType<typeof makeReader>>} */
  const readers = {}; // by the name of the store, once it is loaded
  const { area, note, label } = ownLine(text, typed, {
    rows: 4,
    maxlength: 640,
    dir: null,
    onfocus: typed,
  });
  const order = slider("Length of the n-grams", {
    min: 1,
    max: LONGEST,
    value: data.order,
    oninput: typed,
  });
  const unit = slider("Unit", {
    min: 0,
    max: data.means.length - 1,
    value: data.unit,
    oninput: typed,
  });
  const learned = learnedSwitch(typed, "shuffled characters");
  const { worlds, remains } = learned;
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
    make("p", {}, learned.label),
    remains,
    unit.label,
    colours,
    shades,
    summary,
    order.label,
    make("p", { class: "play-muted" }, "Bars are the n-gram model’s, marks the LSTM’s."),
    make("div", { class: "lms-wide", tabindex: 0 }, bars),
  );

  /* Read what is typed with both models, as switch and sliders say, and draw it. Models that are
     missing are loaded first; if they do not come, that is told. */
  async function typed() {
    try {
      counts ??= makeCounts(await readText("sonnets-training", context), alphabet);
      for (const name of worlds.value === WORLDS.random ? ["lstm", "lstm-random"] : ["lstm"])
        readers[name] ??= makeReader(await readStore(name, context));
    } catch (error) {
      note.textContent = `The models do not answer: ${error.message}`;
      return draw();
    }
    const all = Array.from(area.value);
    const ids = ["\n", ...all].map((c) => alphabet.indexOf(c)).filter((id) => id >= 0);
    const strange = Array.from(new Set(all))
      .filter((c) => !alphabet.includes(c))
      .join(" ");
    note.textContent = strange && `Not in the Sonnets: ${strange}`;
    const number = +unit.input.value;
    const isRandom = worlds.value === WORLDS.random;
    const reader = readers[isRandom ? "lstm-random" : "lstm"];
    const { means } = isRandom ? data.untrained : data;
    const inOrder = ids.slice();
    if (worlds.value === WORLDS.shuffled)
      ids.splice(1, ids.length, ...reordered(ids.slice(1), SEED, true));
    const on = reader(ids, number);
    const off = reader(ids, number, means[number]);
    text = ids
      .slice(1)
      .map((id) => alphabet[id])
      .join("");
    results = {
      counted: counts(`\n${text}`, +order.input.value),
      lstm: on.next ?? [],
      off: off.next ?? [],
      memory: on.memory.slice(1),
      gates: on.gates.slice(1),
      losses: [on.losses, off.losses], // not of the line end before
    };
    tellLeft(inOrder);
    draw();
  }

  /**
   * Say how many of the five characters that each model holds likeliest after the text in order are
   * also among the five now; nothing if the switch says "as it is".
   *
   * @param {number[]} ids the text in order, after an end of line
   */
  function tellLeft(ids) {
    /**
     * The IDs of the five largest probabilities.
     *
     * @type {(probs: number[]) => number[]}
     */
    const top = (probs) =>
      Array.from(probs.keys())
        .sort((a, b) => probs[b] - probs[a])
        .slice(0, 5);
    remains.textContent = "";
    if (worlds.value === WORLDS.asItIs || !counts) return;
    const usual = readers.lstm(ids, +unit.input.value).next ?? [];
    const lstm = leftOf(top(usual), top(results.lstm));
    if (worlds.value === WORLDS.random) {
      remains.textContent =
        `With random weights, of the LSTM’s five likeliest characters ${lstm} left. ` +
        "The n-gram model has no weights: it stays.";
      return;
    }
    const text = ids.map((id) => alphabet[id]).join("");
    const counted = leftOf(top(counts(text, +order.input.value)), top(results.counted));
    remains.textContent =
      "With the characters before the last in another order, " +
      `of the LSTM’s five likeliest ${lstm} left; of the n-gram model’s ${counted}.`;
  }

  /* Draw the results: the six likeliest characters, the text in colours, and what freezing the unit
     does to the loss. */
  function draw() {
    const { counted, lstm, off, losses } = results;
    const number = unit.input.value;
    order.value.textContent = order.input.value;
    unit.value.textContent = number;
    const likely = alphabet
      .map((_, i) => i)
      .sort((a, b) => Math.max(counted[b], lstm[b]) - Math.max(counted[a], lstm[a]))
      .slice(0, 6);
    bars.replaceChildren(
      heading("next", "", "n-gram", "LSTM", "unit frozen"),
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
    const shares = COLOURS[kinds[colour]](results);
    shades.replaceChildren(
      ...Array.from(text, (character, i) =>
        make("span", { style: `--share: ${shares[i]}` }, character === "\n" ? "⏎\n" : character),
      ),
    );
    /**
     * Of a number for each character, those at the ends of lines.
     *
     * @param {number[]} all
     */
    const ends = (all) => all.filter((_, i) => text[i] === "\n");
    const [usual, frozen] = losses.map((all) => fixed(mean(all)));
    const [usualAtEnds, frozenAtEnds] = losses.map((all) => fixed(mean(ends(all))));
    summary.textContent =
      text &&
      `With unit ${number} frozen at its mean the loss ` +
        `is ${frozen} nats a character instead of ${usual}` +
        (text.includes("\n") ? `; at line ends ${frozenAtEnds} instead of ${usualAtEnds}.` : ".");
  }

  draw();
  const state = {
    world: worlds,
    text: area,
    unit: unit.input,
    colour: colours,
    length: order.input,
  };
  return { state: stateOf(state) };
}
