/* The tour of the view *whole*: ten stops, each a sentence or two about the reader's own text. */

import { count, fixed, percent, plural, WORLDS } from "./dom.js";
import { quoted } from "./text.js";

/** @import { Reading } from "./whole-reading.js" */
/** @import { Opened } from "./whole-picture.js" */

/**
 * @typedef {object} Stop
 * @property {string} part that it points at
 * @property {string} title
 * @property {string} text
 * @property {Partial<Opened>} open what is opened there
 */

/**
 * What the tour is told of the model: its name ("bert"); "letter" or "token"; one of WORLDS.
 *
 * @typedef {{ name: string, unit: string, world: string }} About
 */

/** The last sentence of the tour, by what the model is. @type {Record<string, string>} */
const ENDS = {
  [WORLDS.asItIs]: " Now switch to random weights above: the same machine, and nothing learned.",
  [WORLDS.random]: " All this was random weights: the same machine, but it has learned nothing.",
  [WORLDS.shuffled]: " All this was your text in another order: the same model, and less to read.",
};

/**
 * How many heads a model has, in a sentence.
 *
 * @param {number} layers
 * @param {number} heads of each layer
 */
function headsOf(layers, heads) {
  const all = layers * heads;
  if (all === 1) return "This model has one head.";
  const each = layers === 1 ? "" : `, ${count(all)} in all`;
  return `Each layer has ${plural(heads, "head")}${each}, and each attends in its own way.`;
}

/**
 * The head of a layer that gives one token the largest weight, from the token that is asked. The
 * first token and that one itself count only if there is no other.
 *
 * @param {Reading} reading
 * @param {number} layer
 * @returns {{ head: number, token: number, weight: number }} token: the position of the token that
 *   is attended to
 */
export function strongestAttention({ weights, ids, place }, layer) {
  const tokens = ids.length;
  const all = Array.from(ids.keys());
  const others = all.filter((token) => token !== 0 && token !== place);
  let best = { head: 0, token: 0, weight: -1 };
  weights[layer].forEach((ofHead, head) => {
    for (const token of others.length ? others : all) {
      const weight = ofHead[place * tokens + token];
      if (weight > best.weight) best = { head, token, weight };
    }
  });
  return best;
}

/**
 * The layer at which most is to be seen of attention: that of the largest weight by
 * `strongestAttention`, the last of equals. The first layer is left out if there are at least three,
 * since most first layers attend to the token before.
 *
 * @param {Reading} reading
 */
export function tellingLayer(reading) {
  const { layers } = reading.sizes;
  const first = layers > 2 ? 1 : 0;
  let best = first;
  for (let layer = first; layer < layers; layer++)
    if (strongestAttention(reading, layer).weight >= strongestAttention(reading, best).weight)
      best = layer;
  return best;
}

/**
 * The position of the first token that is neither [CLS], which stands at 0, nor the gap.
 *
 * @param {number} gap the position of the gap
 */
const firstOrdinary = (gap) => (gap === 1 ? 2 : 1);

/**
 * The stops of the tour, in order.
 *
 * @param {Reading} reading of the reader's text
 * @param {About} model
 * @returns {Stop[]}
 */
export function stops(reading, { name, unit, world }) {
  const { ids, place, pieces, sizes, next, lens, neurons } = reading;
  const { layers, heads, d_model, d_ff, vocab_size } = sizes;
  const isGap = name === "bert";
  /**
   * A token in quotation marks.
   *
   * @param {number} id
   */
  const word = (id) => quoted(pieces[id]);
  const asked = word(ids[place]);
  const first = isGap ? firstOrdinary(place) : 0;
  const layer = tellingLayer(reading);
  const strongest = strongestAttention(reading, layer);
  const [neuron, , up, more] = neurons[layer][0];
  const [best, logit, share] = next[0];
  const [second, otherLogit, otherShare] = next[1];
  const [[early, earlyShare]] = lens[0];
  const question = isGap
    ? `which ${unit} belongs in the gap`
    : `which ${unit} comes after ${place === ids.length - 1 ? "the last one, " : ""}${asked}`;
  const hasSpace = ids.some((id) => pieces[id].includes("·"));
  return [
    {
      part: "next",
      title: "One question",
      text:
        `From your text the model works out one thing: ${question}. Here it says ${word(best)}, ` +
        `with ${percent(share)}. Let us see how it gets there.`,
      open: { part: "next", layer, head: strongest.head },
    },
    {
      part: "tokens",
      title: "Text becomes tokens",
      text:
        `The text is cut into ${plural(ids.length, "token")}. ` +
        "For the model each is only a number: " +
        `${word(ids[first])} is number ${count(ids[first])} of ` +
        `${count(vocab_size)}.${hasSpace ? " (The dot is a space.)" : ""}`,
      open: { part: "tokens" },
    },
    {
      part: "vectors",
      title: "Tokens become vectors",
      text: reading.position
        ? `Each token becomes a list of ${count(d_model)} learned numbers: ` +
          "one list for what it is, plus one for where it stands. " +
          "You see the first eight of each, blue above zero, orange below."
        : `Each token becomes a list of ${count(d_model)} learned numbers, a vector. ` +
          "You see the first eight, blue above zero, orange below. " +
          "Where a token stands comes in later, inside attention.",
      open: { part: "vectors" },
    },
    {
      part: "stream",
      title: "The residual stream",
      text:
        `Every token's vector flows from left to right through ${plural(layers, "layer")}. ` +
        `This line is that of ${asked}: ` +
        "each part reads from it and adds something to it (⊕).",
      open: { part: "stream", layer, head: strongest.head },
    },
    {
      part: "head",
      title: "Attention fetches from other tokens",
      text:
        `In layer ${layer}, head ${strongest.head} lets ${asked} attend to ` +
        `${word(ids[strongest.token])} with ${percent(strongest.weight)} of its weight. ` +
        "What it finds there is added to the stream: this is the only way in which tokens hear of each other.",
      open: { part: "head", layer, head: strongest.head },
    },
    {
      part: "heads",
      title: "Many heads at once",
      text:
        `${headsOf(layers, heads)} In a small map every row is a token that attends` +
        (sizes.causal
          ? "; the upper half is empty, because no token may see what comes later."
          : ", and both halves are full: this model sees the text after the gap, too."),
      open: { part: "heads", layer, head: strongest.head },
    },
    {
      part: "neurons",
      title: "The feed-forward network",
      text:
        `Then each token by itself goes through ${count(d_ff)} neurons. ` +
        `Here the strongest is number ${count(neuron)}: ` +
        "if the model stopped after this layer, " +
        `${word(up)} would have ${fixed(100 * more, 1)} percentage points less without it.`,
      open: { part: "neurons", layer, head: strongest.head },
    },
    {
      part: "lens",
      title: "The answer takes shape",
      text:
        "If the model stopped after layer 0, " +
        `it would say ${word(early)} (${percent(earlyShare)}); ` +
        `after the last layer it says ${word(best)} (${percent(share)}). ` +
        "The bars show how likely that final answer is after each layer.",
      open: {
        part: "stream",
        layer: layers - 1,
        head: strongestAttention(reading, layers - 1).head,
      },
    },
    {
      part: "norm",
      title: "Every token gets a score",
      text:
        (sizes.norm_first
          ? "A last norm brings the vector to a standard size; "
          : "A last small network prepares the vector; ") +
        `then it is compared with all ${count(vocab_size)} tokens. ` +
        `${word(best)} scores ${fixed(logit, 1)}, ` +
        `${word(second)} ${fixed(otherLogit, 1)}: these are the logits.`,
      open: { part: "norm" },
    },
    {
      part: "next",
      title: "Scores become probabilities",
      text:
        "The softmax turns scores into shares of 100 %: " +
        `${word(best)} gets ${percent(share)}, ${word(second)} ${percent(otherShare)}. ` +
        (isGap
          ? "Press another token to hide it, and the model guesses that one."
          : "Append one, and everything starts again: that is how a model writes.") +
        ENDS[world],
      open: { part: "next" },
    },
  ];
}
