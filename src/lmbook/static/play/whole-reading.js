/* What the view *whole* shows of a text, computed where the model is: in a worker. The same
   numbers as `lmcourse.views.whole.read`, and under the same names. */

import { linear, softmax } from "./engine.js";
import { copyOfRow, largest } from "./numbers.js";

/** @import { Dense, Model } from "./engine.js" */

const NUMBERS = 8; // of a vector that are shown
const LENS = 5; // words of a layer
const NEURONS = 6; // of a layer
const NEXT = 10; // likeliest tokens
const ALIKE = 0.99; // of the largest change: what differs by less may be rounding

/**
 * A neuron: its number, its value, the token whose probability it raises most and by how much,
 * the token whose probability it lowers most and by how much. Both are changes of probabilities
 * that the model would give if it ended after the layer; of tokens alike see `firstAlike`.
 *
 * @typedef {[
 *   neuron: number, value: number, up: number, more: number, down: number, less: number
 * ]} Neuron
 */

/**
 * @typedef {object} Sizes see Config in engine.js
 * @property {number} layers
 * @property {number} heads
 * @property {number} d_model
 * @property {number} d_ff
 * @property {number} vocab_size
 * @property {boolean} causal
 * @property {boolean} norm_first
 */

/**
 * All that the picture shows of a text.
 *
 * @typedef {object} Reading
 * @property {number[]} ids
 * @property {number} place the position at which the model is asked for a token
 * @property {Sizes} sizes
 * @property {number[][]} token of each token the first numbers of its vector in the table
 * @property {number[][] | null} position of what is added for its position
 * @property {number[][]} sum of what the first block is given
 * @property {ArrayLike<number>[][]} weights [layer][head], (tokens · tokens)
 * @property {number[]} attention by layer, how long its update is at the place
 * @property {number[]} feed_forward the same of the feed-forward network
 * @property {number[]} stream by layer, how long the state after it is at the place
 * @property {[id: number, share: number][][]} lens by layer, the likeliest if it ended here
 * @property {number[]} rise by layer, the probability of the final answer there
 * @property {Neuron[][]} neurons by layer, the strongest first
 * @property {[id: number, logit: number, share: number][]} next the likeliest tokens
 * @property {Record<number, string>} pieces how tokens are shown, by id
 */

/**
 * The length of a vector.
 *
 * @param {Float32Array} x
 */
const lengthOf = (x) => Math.sqrt(x.reduce((sum, value) => sum + value * value, 0));

/**
 * The first numbers of each row.
 *
 * @param {Float32Array} x (tokens, d_model)
 * @param {number} d_model
 */
const firstOf = (x, d_model) =>
  Array.from({ length: x.length / d_model }, (_, row) =>
    Array.from(x.slice(row * d_model, row * d_model + NUMBERS)),
  );

/**
 * How long each column of a matrix is.
 *
 * @param {Dense} matrix (rows, columns)
 * @param {number} rows
 * @param {number} columns
 */
function columnLengths(matrix, rows, columns) {
  const squares = new Float32Array(columns);
  for (let row = 0; row < rows; row++) {
    const values = matrix.row ? matrix.row(row) : copyOfRow(matrix.weight, row, columns);
    for (let i = 0; i < columns; i++) squares[i] += values[i] * values[i];
  }
  return squares.map(Math.sqrt);
}

/**
 * What neurons add to the residual stream, each alone: a column of the matrix times its value.
 *
 * @param {Dense} down (d_model, d_ff)
 * @param {number[]} neurons their numbers
 * @param {Float32Array} values of all neurons, (d_ff,)
 * @param {number} d_model
 * @returns {Float32Array} (neurons, d_model)
 */
function parts(down, neurons, values, d_model) {
  const d_ff = values.length;
  const alone = new Float32Array(neurons.length * d_ff);
  neurons.forEach((neuron, i) => {
    alone[i * d_ff + neuron] = values[neuron];
  });
  const added = linear(alone, down, d_ff);
  const { bias } = down;
  return bias ? added.map((value, i) => value - bias[i % d_model]) : added;
}

/**
 * Probabilities that a model would give if it ended with some states.
 *
 * @param {Model} model
 * @param {Float32Array} x (rows, d_model)
 * @returns {Float32Array[]} for each row (vocab_size,)
 */
function answers(model, x) {
  const { d_model, vocab_size } = model.config;
  const logits = model.readOut(x);
  return Array.from({ length: x.length / d_model }, (_, row) =>
    softmax(copyOfRow(logits, row, vocab_size)),
  );
}

/**
 * The state at the place after a layer as it would be without each one of some neurons.
 *
 * @param {Model} model
 * @param {number} layer
 * @param {Record<"out" | "middle" | "added", Float32Array>} states at the place, each (d_model,):
 *   out: after the layer; middle: what its first norm returns; added: what its feed-forward
 *   network adds
 * @param {Float32Array} taken what each neuron adds, (neurons, d_model)
 * @returns (neurons, d_model)
 */
function statesWithout(model, layer, { out, middle, added }, taken) {
  const { d_model, norm_first } = model.config;
  if (norm_first) return taken.map((value, i) => out[i % d_model] - value);
  const before = taken.map((value, i) => middle[i % d_model] + added[i % d_model] - value);
  return model.normed(before, model.blocks[layer].norm_2);
}

/**
 * Read a text, and return all that the picture shows of it, with a pause after each layer.
 *
 * @param {Model} model
 * @param {{ ids: number[], place: number }} asked place: the position at which the model is asked
 *   for a token
 * @returns {Generator<unknown, Omit<Reading, "pieces">, any>}
 */
export function* readWhole(model, { ids, place }) {
  const { d_model, d_ff, layers, heads, vocab_size, causal, norm_first } = model.config;
  const ofBlocks = ["attention.weights", "attention", "feed_forward", "feed_forward.hidden"];
  const keep = ["tokens", "embeddings", "blocks.*", "blocks.*.norm_1"];
  keep.push(...ofBlocks.map((name) => `blocks.*.${name}`));
  const { kept: activations, logits } = yield* model.steps(ids, { keep, logits_of: [place] });
  const scores = /** @type {Float32Array} */ (logits);
  const probs = softmax(scores.slice());
  const best = largest(scores, NEXT);
  const { token, position } = added(model, activations.tokens.values, ids.length);
  /** @type {Omit<Reading, "pieces">} */
  const reading = {
    ids,
    place,
    sizes: { layers, heads, d_model, d_ff, vocab_size, causal, norm_first },
    token,
    position,
    sum: firstOf(activations.embeddings.values, d_model),
    weights: [],
    attention: [],
    feed_forward: [],
    stream: [],
    lens: [],
    rise: [],
    neurons: [],
    next: best.map((id) => [id, scores[id], probs[id]]),
  };
  for (let layer = 0; layer < layers; layer++) {
    /**
     * The row of the place of an activation of this layer; "" is the state after it.
     *
     * @type {(name: string, width?: number) => Float32Array}
     */
    const at = (name, width = d_model) =>
      copyOfRow(activations[`blocks.${layer}${name}`].values, place, width);
    const [out, update, raised] = [at(""), at(".attention"), at(".feed_forward")];
    const [own] = answers(model, out);
    reading.weights.push(ofHeads(activations[`blocks.${layer}.attention.weights`].values, heads));
    reading.attention.push(lengthOf(update));
    reading.feed_forward.push(lengthOf(raised));
    reading.stream.push(lengthOf(out));
    reading.lens.push(largest(own, LENS).map((id) => [id, own[id]]));
    reading.rise.push(own[best[0]]);
    const states = { out, middle: at(".norm_1"), added: raised };
    reading.neurons.push(neuronsOf(model, layer, states, at(".feed_forward.hidden", d_ff), own));
    yield layer;
  }
  return reading;
}

/**
 * What is added up for each token: the first numbers of its own vector and of its position's; the
 * latter is null if the model adds none.
 *
 * @param {Model} model
 * @param {Float32Array} rows of the table, (tokens, d_model)
 * @param {number} tokens
 */
function added(model, rows, tokens) {
  const { d_model } = model.config;
  const positions = model.positions?.slice(0, tokens * d_model);
  return {
    token: firstOf(rows, d_model),
    position: positions ? firstOf(positions, d_model) : null,
  };
}

/**
 * Attention weights, cut into those of each head, (tokens · tokens).
 *
 * @param {Float32Array} weights (heads, tokens, tokens)
 * @param {number} heads
 */
function ofHeads(weights, heads) {
  const size = weights.length / heads;
  return Array.from({ length: heads }, (_, head) => copyOfRow(weights, head, size));
}

/**
 * The token whose probability changes most. Of tokens that change as much, to a hundredth
 * (`ALIKE`), the first is taken: which of them is the most may be a matter of rounding.
 *
 * @param {Float32Array} changes (vocab_size,)
 */
function firstAlike(changes) {
  const most = changes[largest(changes, 1)[0]];
  const least = Math.min(most, ALIKE * most); // also if rounding leaves none above 0
  return changes.findIndex((change) => change >= least);
}

/**
 * The neurons of a layer that add the longest vectors at the place, and which tokens each makes
 * likelier and less likely: by how much the layer's answer would change without it.
 *
 * @param {Model} model
 * @param {number} layer
 * @param {Record<"out" | "middle" | "added", Float32Array>} states as for `statesWithout`
 * @param {Float32Array} values of the neurons, (d_ff,)
 * @param {Float32Array} own the layer's answer, (vocab_size,)
 * @returns {Neuron[]}
 */
function neuronsOf(model, layer, states, values, own) {
  const { d_model, d_ff } = model.config;
  const { down } = model.blocks[layer].feed_forward;
  const lengths = columnLengths(down, d_model, d_ff);
  const strongest = largest(
    values.map((value, i) => Math.abs(value) * lengths[i]),
    NEURONS,
  );
  const taken = parts(down, strongest, values, d_model);
  const others = answers(model, statesWithout(model, layer, states, taken));
  return others.map((other, i) => {
    const change = own.map((share, id) => share - other[id]);
    const up = firstAlike(change);
    const down = firstAlike(change.map((value) => -value));
    return [strongest[i], values[strongest[i]], up, change[up], down, change[down]];
  });
}

/**
 * The ids of all tokens that a reading names.
 *
 * @param {Omit<Reading, "pieces">} reading
 * @returns {number[]}
 */
export const mentioned = ({ ids, next, lens, neurons }) =>
  Array.from(
    new Set([
      ...ids,
      ...next.map(([id]) => id),
      ...lens.flat().map(([id]) => id),
      ...neurons.flat().flatMap(([, , up, , down]) => [up, down]),
    ]),
  );
