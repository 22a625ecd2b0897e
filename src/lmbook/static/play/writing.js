/* Writing with a model that predicts the next token: probabilities, a draw, one token more. */

import { softmax } from "./engine.js";
import { argmax } from "./numbers.js";

/** @import { Model } from "./engine.js" */

/**
 * How a token is chosen: logits are divided by the temperature; of the probabilities only
 * the top_k likeliest stay, and of those the fewest that hold top_p of the whole.
 * Temperature 0 leaves the likeliest alone.
 *
 * @typedef {{ temperature?: number, top_k?: number, top_p?: number }} Sampling
 */

/**
 * Probabilities of the next token.
 *
 * @param {Float32Array | Float64Array} logits (vocab_size,)
 * @param {Sampling} [sampling]
 * @returns {Float32Array} (vocab_size,)
 */
export function nextProbs(logits, { temperature = 1, top_k = Infinity, top_p = 1 } = {}) {
  const out = new Float32Array(logits.length);
  if (temperature === 0) {
    out[argmax(logits)] = 1;
    return out;
  }
  const all = softmax(logits.map((logit) => logit / temperature));
  if (top_k >= all.length && top_p >= 1) return Float32Array.from(all);
  const few = firsts(all, logits, top_k, top_p);
  const whole = few.slice(0, top_k).reduce((sum, id) => sum + all[id], 0);
  const share = top_k < all.length ? whole : 1;
  let sum = 0;
  for (const id of few.slice(0, Math.max(1, top_k))) {
    if (sum > 0 && sum >= top_p * share) break;
    out[id] = all[id];
    sum += all[id];
  }
  return out.map((prob) => prob / sum);
}

/**
 * The likeliest tokens in order, as many as top_k and top_p need, or some more: a vocabulary
 * is large, and most of it is never drawn.
 *
 * @param {Float32Array | Float64Array} probs (vocab_size,)
 * @param {Float32Array | Float64Array} logits (vocab_size,)
 * @param {number} top_k
 * @param {number} top_p
 * @returns {number[]}
 */
function firsts(probs, logits, top_k, top_p) {
  /**
   * Sort tokens in their place, the likeliest first.
   *
   * @param {number[]} ids
   */
  const order = (ids) => ids.sort((a, b) => logits[b] - logits[a] || a - b);
  const largest = probs[argmax(logits)];
  for (let least = largest / 1e3; least > 1e-30; least /= 1e3) {
    /** @type {number[]} */
    const ids = [];
    let sum = 0;
    for (let id = 0; id < probs.length; id++)
      if (probs[id] >= least) {
        ids.push(id);
        sum += probs[id];
      }
    const enough = top_k < probs.length ? ids.length >= top_k : sum >= top_p + 1e-6;
    if (enough) return order(ids);
  }
  return order(Array.from(logits.keys()));
}

/**
 * Random numbers that are the same for the same seed (mulberry32).
 *
 * @param {number} seed
 * @param {number} [drawn] how many of the first ones are left out
 * @returns {() => number} gives the next one, 0 or more and below 1
 */
export function randomness(seed, drawn = 0) {
  let state = (seed + Math.imul(drawn, 0x6d2b79f5)) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Draw a token: where a random number falls if the probabilities are laid end to end.
 *
 * @param {Float32Array} probs (vocab_size,)
 * @param {() => number} random from 0 to 1
 * @returns {number} its id
 */
export function draw(probs, random) {
  let left = random();
  for (let id = 0; id < probs.length; id++) {
    left -= probs[id];
    if (left < 0) return id;
  }
  return probs.findLastIndex((prob) => prob > 0); // rounding left a little
}

/**
 * A token that was written, and the probabilities that it was drawn from.
 *
 * @typedef {{ id: number, probs: Float32Array }} Piece
 */

/**
 * How a model writes on.
 *
 * @typedef {object} WriteOptions
 * @property {number} count how many tokens are written
 * @property {number} [seed] of the random numbers, one for each token; 0 by default
 * @property {number} [drawn] how many random numbers were used up before
 * @property {[number, number][]} [ablate] heads that add nothing, as [layer, head]
 */

/**
 * Write on, token after token. When the context is full the model reads its last half again and
 * goes on, so from then on it always sees between half a context and a whole one.
 *
 * @param {Model} model a causal one
 * @param {number[]} ids the text, one or more; of a longer one its last tokens are read
 * @param {WriteOptions & Sampling} options
 * @returns {Generator<Piece, void, void>}
 */
export function* write(model, ids, { count, seed = 0, drawn = 0, ablate, ...sampling }) {
  const { context } = model.config;
  const random = randomness(seed, drawn);
  let text = Array.from(ids).slice(-context);
  let cache = model.cache();
  let fresh = text;
  for (let written = 0; written < count; written++) {
    if (cache.length + fresh.length > context) {
      text = text.slice(-Math.max(1, context >> 1));
      cache = model.cache();
      fresh = text;
    }
    const logits_of = [fresh.length - 1];
    const { logits } = model.forward(fresh, { cache, ablate, logits_of });
    const probs = nextProbs(/** @type {Float32Array} */ (logits), sampling); // one row was asked
    const id = draw(probs, random);
    text.push(id);
    fresh = [id];
    yield { id, probs };
  }
}
