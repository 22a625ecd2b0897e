/* The encoder-decoder of the chapter, one block on either side, norms first. Its arithmetic is
   that of engine.js; what is here is the order of things, and the attention of the decoder to
   what the encoder made. */

import {
  ACTIVATIONS,
  added,
  attentionScores,
  linear,
  mixValues,
  norm,
  softmax,
  softmaxRows,
} from "./engine.js";
import { shuffled } from "./random.js";
import { decode } from "./store.js";
import { toFloats } from "./weights.js";

const START = 1;
export const STOP = 2;
export const LONGEST = 24;
const EPS = 1e-5;
/** @typedef {(query: number, key: number) => boolean} Sees which queries attend to which keys */

/** @type {Sees} */
const always = () => true;
/** @type {Sees} */
const causal = (query, key) => key <= query;

/**
 * A weight as float32.
 *
 * @param {number[] | { int8: string, scale: number[] }} stored numbers; or bytes in base64,
 *   with a scale for each row
 * @returns {Float32Array}
 */
function unpack(stored) {
  if (Array.isArray(stored)) return new Float32Array(stored);
  const { int8, scale } = stored;
  const bytes = decode(int8);
  return toFloats({
    dtype: "I8",
    shape: [scale.length, bytes.length / scale.length],
    scale,
    bytes,
  });
}

export class EncoderDecoder {
  /**
   * @param {object} data
   * @param {Record<string, number[] | { int8: string, scale: number[] }>} data.weights by the
   *   names of the chapter's model; see unpack
   * @param {string} data.vocabulary a character for each id
   * @param {number} data.heads
   */
  constructor({ weights, vocabulary, heads }) {
    this.vocabulary = vocabulary;
    this.heads = heads;
    this.weights = Object.fromEntries(
      Object.entries(weights).map(([name, stored]) => [name, unpack(stored)]),
    );
    this.d_model = this.weights["encoder.norm.weight"].length;
  }

  /**
   * The same model with the numbers of each weight in a random order: it has learned nothing.
   *
   * @param {number} seed
   * @returns {EncoderDecoder}
   */
  untrained(seed) {
    const other = Object.assign(Object.create(EncoderDecoder.prototype), this);
    const entries = Object.entries(this.weights);
    other.weights = Object.fromEntries(
      entries.map(([name, values], i) => [name, shuffled(values, seed + i)]),
    );
    return other;
  }

  /**
   * A linear layer or a norm.
   *
   * @param {string} name
   */
  part(name) {
    return { weight: this.weights[`${name}.weight`], bias: this.weights[`${name}.bias`] };
  }

  /**
   * @param {Float32Array} x (tokens, d_model)
   * @param {string} name
   */
  norm(x, name) {
    return norm(x, this.part(name), EPS);
  }

  /**
   * Token vectors and sinusoids.
   *
   * @param {number[]} ids
   * @returns {Float32Array} (tokens, d_model)
   */
  embed(ids) {
    const { d_model } = this;
    const table = this.weights["embed.table.weight"];
    return Float32Array.from({ length: ids.length * d_model }, (_, n) => {
      const position = Math.floor(n / d_model);
      const i = n % d_model;
      const angle = position * 10000 ** (-(i - (i % 2)) / d_model);
      const sinusoid = i % 2 ? Math.cos(angle) : Math.sin(angle);
      return table[ids[position] * d_model + i] + sinusoid;
    });
  }

  /**
   * Multi-head attention to a memory.
   *
   * @param {string} name of the four matrices
   * @param {Float32Array} x (tokens, d_model)
   * @param {Float32Array} memory (keys, d_model)
   * @param {Sees} sees
   * @returns {{ update: Float32Array, weights: Float32Array }} (tokens, d_model) and (heads,
   *   tokens, keys)
   */
  attend(name, x, memory, sees) {
    const { heads, d_model } = this;
    const keys = memory.length / d_model;
    const shape = { heads, d_model, keys };
    const query = linear(x, this.part(`${name}.query`), d_model);
    const key = linear(memory, this.part(`${name}.key`), d_model);
    const value = linear(memory, this.part(`${name}.value`), d_model);
    const weights = softmaxRows(attentionScores(query, key, shape, sees), keys);
    const mixed = mixValues(weights, value, shape);
    return { update: linear(mixed, this.part(`${name}.output`), d_model), weights };
  }

  /**
   * The last part of a block: norm, up, activation, down; added to x.
   *
   * @param {Float32Array} x (tokens, d_model)
   * @param {string} block its name
   * @returns {Float32Array} (tokens, d_model)
   */
  addFeedForward(x, block) {
    const up = this.part(`${block}.feed_forward.up`);
    const down = this.part(`${block}.feed_forward.down`);
    const hidden = linear(this.norm(x, `${block}.norm_2`), up, this.d_model);
    return added(x, linear(hidden.map(ACTIVATIONS.gelu), down, up.bias.length));
  }

  /**
   * @param {string} text of characters of the vocabulary
   * @returns {Float32Array} (characters, d_model)
   */
  encode(text) {
    const block = "encoder.blocks.0";
    const ids = Array.from(text, (character) => this.vocabulary.indexOf(character));
    const x = this.embed(ids);
    const normed = this.norm(x, `${block}.norm_1`);
    const { update } = this.attend(`${block}.attention`, normed, normed, always);
    return this.norm(this.addFeedForward(added(x, update), block), "encoder.norm");
  }

  /**
   * What the decoder expects after each id, and where it attends in the source.
   *
   * @param {number[]} ids written so far
   * @param {Float32Array} memory (characters, d_model), what `encode` returned
   * @param {Set<number>} hidden positions of the source that it must not see
   * @returns {{ probs: Float32Array[], weights: Float32Array }} (ids, vocabulary) and
   *   (heads, ids, characters)
   */
  decode(ids, memory, hidden) {
    const block = "decoder.blocks.0";
    const size = this.vocabulary.length;
    let x = this.embed(ids);
    const normed = this.norm(x, `${block}.norm_1`);
    x = added(x, this.attend(`${block}.attention`, normed, normed, causal).update);
    const asking = this.norm(x, `${block}.norm_cross`);
    /** @type {Sees} */
    const isSeen = (_query, key) => !hidden.has(key);
    const { update, weights } = this.attend(`${block}.cross`, asking, memory, isSeen);
    x = this.addFeedForward(added(x, update), block);
    const logits = linear(this.norm(x, "decoder.norm"), this.part("output"), this.d_model);
    const probs = ids.map((_, i) => softmax(logits.slice(i * size, (i + 1) * size)));
    return { probs, weights };
  }

  /**
   * Write the likeliest character until the end, or until there are too many.
   *
   * @param {string} text
   * @param {Set<number>} hidden positions of the source that the decoder must not see
   * @returns {{ written: string, probs: Float32Array[], weights: Float32Array }} with a row
   *   for each character and for the end
   */
  write(text, hidden = new Set()) {
    const memory = this.encode(text);
    const ids = [START];
    for (;;) {
      const { probs, weights } = this.decode(ids, memory, hidden);
      const last = probs[probs.length - 1];
      const best = last.indexOf(Math.max(...last));
      if (best === STOP || ids.length === LONGEST) {
        const written = ids.slice(1).map((id) => this.vocabulary[id]);
        return { written: written.join(""), probs, weights };
      }
      ids.push(best);
    }
  }
}
