/* What stands below the picture of the view *whole*: the part that is open, in a sentence, in
   rows with bars, and in numbers on demand. */

import { count, fixed, heading, make, percent, plural, row } from "./dom.js";
import { quoted } from "./text.js";

/** @import { Reading } from "./whole-reading.js" */
/** @import { Opened } from "./whole-picture.js" */

/**
 * What is shown of a part: a title, a sentence, rows to be seen, and a table of numbers.
 *
 * @typedef {object} Inside
 * @property {string} title
 * @property {string} text
 * @property {HTMLElement[]} shown
 * @property {HTMLElement[]} numbers head and rows of a table
 */

/**
 * @typedef {{ name: string, unit: string }} About the model's name ("bert"), and "letter" or
 *   "token"
 */

const SHOWN = 6; // tokens that a head attends to

/**
 * A table of rows.
 *
 * @type {(...rows: Node[]) => HTMLElement}
 */
const table = (...rows) => make("table", { class: "lmw-rows" }, ...rows);

/**
 * A bar, from 0 to 1.
 *
 * @type {(share: number, className?: string) => HTMLElement}
 */
const bar = (share, className = "") =>
  make("span", { class: `play-bar ${className}`, style: `--share: ${share}` });

/**
 * A token, isolated: one that is read from right to left turns nothing around it.
 *
 * @type {(piece: string) => HTMLElement}
 */
const word = (piece) => make("bdi", {}, piece);

/**
 * A change of a probability in percentage points, with its sign.
 *
 * @type {(change: number) => string}
 */
const points = (change) => `${change >= 0 ? "+" : ""}${fixed(100 * change, 1)} points`;

/**
 * What is shown of each part, by its name: made of a reading, of which layer and head are open,
 * and of the model.
 *
 * @type {Record<string, (reading: Reading, opened: Opened, model: About) => Inside>}
 */
export const PARTS = {
  /* The tokens and their IDs. */
  tokens({ ids, pieces, sizes }) {
    return {
      title: "Tokens",
      text:
        `Your text is ${plural(ids.length, "token")}. ` +
        "The model never sees letters or words, only their numbers " +
        `in a vocabulary of ${count(sizes.vocab_size)}. Press a token to ask the model there.`,
      shown: [],
      numbers: [
        heading("position", "token", "number"),
        ...ids.map((id, i) => row(i, word(pieces[id]), count(id))),
      ],
    };
  },

  /* The first numbers of the vector with which the token that is asked begins, and of what it is
     the sum. */
  vectors({ ids, place, pieces, token, position, sum, sizes }) {
    const asked = quoted(pieces[ids[place]]);
    /**
     * A row of numbers.
     *
     * @type {(name: string, numbers: number[]) => HTMLTableRowElement}
     */
    const line = (name, numbers) => row(name, ...numbers.map((number) => fixed(number)));
    const lines = position
      ? [
          line("token", token[place]),
          line("+ position", position[place]),
          line(sizes.norm_first ? "= start" : "= start, after a norm", sum[place]),
        ]
      : [line("start", sum[place])];
    return {
      title: "Vectors",
      text:
        `${asked} begins as ${count(sizes.d_model)} numbers; ` +
        "these are the first eight. They were learned: " +
        "tokens that are used alike have vectors that point the same way.",
      shown: [
        make(
          "div",
          { class: "lmw-scroll", tabindex: 0, role: "region", "aria-label": "Vectors" },
          table(...lines),
        ),
      ],
      numbers: [
        heading("what each token starts with"),
        ...ids.map((id, i) => row(word(pieces[id]), ...sum[i].map((number) => fixed(number)))),
      ],
    };
  },

  /* What the model would say if it ended after the open layer, or after each. */
  stream(reading, { layer }) {
    const { ids, place, pieces, lens, rise, next, sizes } = reading;
    const asked = quoted(pieces[ids[place]]);
    const [[id, most]] = lens[layer]; // the likeliest, and its probability
    const final = quoted(pieces[next[0][0]]);
    return {
      title: `The stream after layer ${layer}`,
      text:
        "If the model stopped here, " +
        `it would say ${quoted(pieces[id])} at ${asked}, with ${percent(most)}. ` +
        (layer < sizes.layers - 1
          ? `The final answer, ${final}, has ${percent(rise[layer])} here.`
          : "This is the last layer, so this is its answer."),
      shown: [
        table(
          ...lens[layer].map(([token, share]) =>
            row(word(pieces[token]), bar(share / most), percent(share, 1)),
          ),
        ),
      ],
      numbers: [
        heading(
          "after layer",
          "likeliest",
          "second",
          "third",
          "the final answer",
          "length of the vector",
        ),
        ...lens.map((likeliest, i) =>
          row(
            i,
            ...likeliest
              .slice(0, 3)
              .map(([token, share]) => [word(pieces[token]), ` ${percent(share)}`]),
            percent(rise[i], 1),
            fixed(reading.stream[i], 1),
          ),
        ),
      ],
    };
  },

  /* The same as of the open head. */
  heads(reading, { layer, head }) {
    return PARTS.head(reading, { part: "head", layer, head }, { name: "", unit: "" });
  },

  /* What the open head attends to from the token that is asked. */
  head({ ids, place, pieces, weights }, { layer, head }) {
    const asked = quoted(pieces[ids[place]]);
    const all = Array.from(ids.keys(), (token) => ({
      token,
      weight: weights[layer][head][place * ids.length + token],
    }));
    const best = all.slice().sort((a, b) => b.weight - a.weight || a.token - b.token);
    /**
     * Where a token stands, in words.
     *
     * @param {number} token its position
     */
    const whereOf = (token) => (token === place ? "itself" : `position ${token}`);
    return {
      title: `Layer ${layer}, head ${head}`,
      text:
        `From ${asked} it attends most to ${quoted(pieces[ids[best[0].token]])} ` +
        `(${whereOf(best[0].token)}): ${percent(best[0].weight)}.`,
      shown: [
        table(
          ...best
            .slice(0, SHOWN)
            .map(({ token, weight }) =>
              row(word(pieces[ids[token]]), bar(weight), percent(weight, 1), whereOf(token)),
            ),
        ),
      ],
      numbers: [
        heading("position", "token", "weight"),
        ...all.map(({ token, weight }) => row(token, word(pieces[ids[token]]), fixed(weight, 3))),
      ],
    };
  },

  /* The strongest neurons of the open layer, and the tokens that each makes likelier and less
     likely. */
  neurons({ neurons, pieces, sizes, ids, place }, { layer }) {
    const ofLayer = neurons[layer];
    const most = Math.max(...ofLayer.map(([, value]) => Math.abs(value)));
    return {
      title: `The feed-forward network of layer ${layer}`,
      text:
        `Of ${count(sizes.d_ff)} neurons these add most to the ` +
        `stream at ${quoted(pieces[ids[place]])}. Beside each: ` +
        "the token that it makes likelier, if the model stopped after this layer, and the one that it makes less likely.",
      shown: [
        table(
          heading("neuron", "", "its value", "raises", "lowers"),
          ...ofLayer.map(([neuron, value, up, more, down, less]) =>
            row(
              neuron,
              bar(Math.abs(value) / most, value < 0 ? "lmw-low" : "lmw-high"),
              fixed(value, 1),
              [word(pieces[up]), ` ${points(more)}`],
              [word(pieces[down]), ` ${points(less)}`],
            ),
          ),
        ),
      ],
      numbers: [
        heading("layer", "strongest neuron", "its value", "raises", "lowers"),
        ...neurons.map(([[neuron, value, up, more, down, less]], i) =>
          row(
            i,
            neuron,
            fixed(value),
            [word(pieces[up]), ` ${points(more)}`],
            [word(pieces[down]), ` ${points(less)}`],
          ),
        ),
      ],
    };
  },

  /* How long the vector of the token that is asked is after each layer, and what is added to it. */
  norm({ attention, feed_forward, stream, sizes }) {
    const last = sizes.layers - 1;
    return {
      title: "The last norm",
      text: sizes.norm_first
        ? `After the last layer the vector is ${fixed(stream[last], 1)} long. ` +
          "The norm brings it to a standard size, " +
          "so that only its direction counts when it is compared with every token."
        : "In a BERT a norm follows each part, so that the vector never grows. At the end a small network of its own turns it into scores.",
      shown: [],
      numbers: [
        heading("layer", "attention adds", "feed-forward adds", "length after it"),
        ...stream.map((length, i) =>
          row(i, fixed(attention[i], 1), fixed(feed_forward[i], 1), fixed(length, 1)),
        ),
      ],
    };
  },

  /* The likeliest tokens with their logits and probabilities. */
  next({ next, pieces, ids, place, sizes }, _, { name, unit }) {
    const [[best, , share]] = next;
    const where = name === "bert" ? "In the gap" : `After ${quoted(pieces[ids[place]])}`;
    return {
      title: "The answer",
      text:
        `${where} the likeliest ${unit} is ${quoted(pieces[best])}: ${percent(share, 1)}. ` +
        `All ${count(sizes.vocab_size)} together have 100 %.`,
      shown: [],
      numbers: [
        heading(unit, "score (logit)", "probability"),
        ...next.map(([id, logit, probability]) =>
          row(word(pieces[id]), fixed(logit), percent(probability, 2)),
        ),
      ],
    };
  },
};

/**
 * What is shown of the part that is open.
 *
 * @param {Reading} reading
 * @param {Opened} opened
 * @param {About} model
 * @returns {Inside}
 */
export const inside = (reading, opened, model) => PARTS[opened.part](reading, opened, model);
