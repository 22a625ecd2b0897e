/* The encoder-decoder of the chapter: two models of engine.js, of which the second attends to
   what the first made of the source, and writes. */

import { Model, softmax } from "./engine.js";
import { argmax } from "./numbers.js";
import { shuffled } from "./random.js";
import { decode } from "./store.js";
import { toFloats } from "./weights.js";

/** @import { Config } from "./engine.js" */

const START = 1; // the ID of what stands before what is written
export const STOP = 2; // the ID of the end; characters have larger ones
export const LONGEST = 24; // characters that are read

/** @typedef {number[] | { int8: string, scale: number[] }} Stored a weight, see `unpack` */

/**
 * A weight as float32.
 *
 * @param {Stored} stored numbers; or bytes in base64,
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
   * Make the model that a page carries.
   *
   * @param {object} data
   * @param {Record<string, Stored>} data.weights by the names of the chapter's model
   * @param {string} data.vocabulary a character for each id
   * @param {number} data.heads of each attention
   * @returns {EncoderDecoder}
   */
  static read({ weights, vocabulary, heads }) {
    const unpacked = Object.entries(weights).map(([name, stored]) => [name, unpack(stored)]);
    return new EncoderDecoder(Object.fromEntries(unpacked), vocabulary, heads);
  }

  /**
   * Make the encoder and the decoder.
   *
   * @param {Record<string, Float32Array>} weights by the names of the chapter's model
   * @param {string} vocabulary a character for each id
   * @param {number} heads of each attention
   */
  constructor(weights, vocabulary, heads) {
    this.weights = weights;
    this.vocabulary = vocabulary;
    this.heads = heads;
    this.encoder = this.model("encoder", { causal: false, output: "none" });
    this.decoder = this.model("decoder", { causal: true, cross: true, output: "untied" });
  }

  /**
   * One of the two models. They share the table of token vectors.
   *
   * @param {"encoder" | "decoder"} name
   * @param {Pick<Config, "causal" | "cross" | "output">} how
   * @returns {Model}
   */
  model(name, how) {
    const { weights, vocabulary, heads } = this;
    /** @type {Record<string, string>} */
    const shared = { "tokens.weight": "embed.table.weight" };
    for (const part of ["output.weight", "output.bias"]) shared[part] = part;
    /** @type {Config} */
    const config = {
      vocab_size: vocabulary.length,
      context: LONGEST,
      layers: 1,
      heads,
      d_model: weights[`${name}.norm.weight`].length,
      d_ff: weights[`${name}.blocks.0.feed_forward.up.bias`].length,
      eps: 1e-5,
      activation: "gelu",
      positions: "sinusoidal",
      norm_first: true,
      ...how,
    };
    return new Model(config, { floats: (part) => weights[shared[part] ?? `${name}.${part}`] });
  }

  /**
   * The same model with the numbers of each weight in a random order: it has learned nothing.
   *
   * @param {number} seed
   * @returns {EncoderDecoder}
   */
  untrained(seed) {
    const mixed = Object.entries(this.weights).map(([name, values], i) => [
      name,
      shuffled(values, seed + i),
    ]);
    return new EncoderDecoder(Object.fromEntries(mixed), this.vocabulary, this.heads);
  }

  /**
   * Read a source with the encoder.
   *
   * @param {string} text of characters of the vocabulary
   * @returns {Float32Array} the memory, (characters, d_model)
   */
  encode(text) {
    const ids = Array.from(text, (character) => this.vocabulary.indexOf(character));
    return this.encoder.forward(ids, { keep: ["norm"] }).kept.norm.values;
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
    const size = this.vocabulary.length;
    const name = "blocks.0.cross.weights";
    const { logits, kept: activations } = this.decoder.forward(ids, {
      memory,
      hidden,
      keep: [name],
    });
    const scores = /** @type {Float32Array} */ (logits);
    const probs = ids.map((_, i) => softmax(scores.slice(i * size, (i + 1) * size)));
    return { probs, weights: activations[name].values };
  }

  /**
   * Write the likeliest character, one after the other, until the end or until there are
   * `LONGEST` - 1.
   *
   * @param {string} text the source, of characters of the vocabulary
   * @param {Set<number>} hidden positions of the source that the decoder must not see
   * @returns {{ written: string, probs: Float32Array[], weights: Float32Array }} the
   *   probabilities of each character written and of what follows the last, an array
   *   (vocabulary,) each; attention to the source, (heads, characters written + 1, characters
   *   of the source)
   */
  write(text, hidden = new Set()) {
    const memory = this.encode(text);
    const ids = [START];
    for (;;) {
      const { probs, weights } = this.decode(ids, memory, hidden);
      const last = probs[probs.length - 1];
      const best = argmax(last);
      if (best === STOP || ids.length === LONGEST) {
        const written = ids.slice(1).map((id) => this.vocabulary[id]);
        return { written: written.join(""), probs, weights };
      }
      ids.push(best);
    }
  }
}
