/* The book's models, run in the page: a BERT, a GPT, a Llama, an encoder or a decoder.

   The same mechanism as `lmcourse.transformer` and under the same names; what differs
   between models stands in a configuration. In which order the parts of a Transformer are
   computed stands here alone: `recording.js` keeps the steps for the way back (training), and
   `encoder-decoder.js` puts two models together.

   A matrix is one Float32Array, row after row, and x, the vectors of a text, is one too:
   (tokens, d_model) in comments means tokens rows of d_model numbers. A batch is made of texts
   of one length, whose rows stand one under another. */

import { rowOf } from "./numbers.js";
import { demand, readSafetensors, shuffledTensors, toFloats } from "./weights.js";

/** @import { Tensor } from "./weights.js" */

/**
 * What a model is; `lmbook.play.stores` writes it.
 *
 * @typedef {object} Config
 * @property {number} vocab_size
 * @property {number} context the most tokens of a text
 * @property {number} layers how many blocks
 * @property {number} heads of each block
 * @property {number} d_model numbers of a state
 * @property {number} d_ff neurons of a feed-forward network
 * @property {number} eps added to the variance in a norm
 * @property {string} activation a name of ACTIVATIONS
 * @property {"learned" | "rotary" | "sinusoidal"} positions
 * @property {boolean} causal whether a token attends to no later one
 * @property {boolean} norm_first whether a norm stands before its sublayer (GPT); else after the
 *   sum (BERT)
 * @property {"tied" | "untied" | "mlm" | "none"} output how logits are read out: with the table of
 *   tokens; with a matrix of its own; with BERT's head and the table; not at all
 * @property {number} [kv_heads] how many keys and values the heads share, if not one each
 * @property {number} [base] of rotary positions
 * @property {"rms"} [norm] if it is not LayerNorm
 * @property {boolean} [gated] whether the feed-forward network has a gate (SwiGLU)
 * @property {boolean} [cross] whether its blocks attend to a memory, too (a decoder)
 * @property {number} [token_types] how many types of tokens have a vector (BERT)
 * @property {boolean} [embedding_norm] whether a norm stands before the first block (BERT)
 * @property {number} [patch] numbers of a patch, if the model reads pixels
 * @property {string} [alphabet] a character for each id
 */

/**
 * A linear layer: weight (rows, columns), bias (rows,).
 *
 * @typedef {object} Dense
 * @property {Float32Array} weight
 * @property {Float32Array} [bias]
 * @property {(x: Float32Array) => Float32Array<ArrayBuffer>} [multiply] of a matrix that is
 *   stored in another way: x (tokens, columns) to (tokens, rows)
 * @property {(row: number) => Float32Array} [row] of such a matrix
 */

/**
 * The matrices of attention: query and output (d_model, d_model), the others (kv_heads ·
 * d_head, d_model).
 *
 * @typedef {Record<"query" | "key" | "value" | "output", Dense>} Attention
 */

/**
 * A norm: weight and bias (d_model,), of RMSNorm an empty bias. Or a linear layer with a bias:
 * weight (rows, columns), bias (rows,).
 *
 * @typedef {{ weight: Float32Array, bias: Float32Array }} WeightAndBias
 */

/**
 * Keys and values of the tokens so far, each (tokens or more, kv_heads · d_head).
 *
 * @typedef {{ key: Float32Array, value: Float32Array }} KeysAndValues
 */

/**
 * What a causal model computed of the tokens so far.
 *
 * @typedef {object} Cache
 * @property {number} length how many tokens it has
 * @property {KeysAndValues[]} layers of each layer
 */

/**
 * Where a model's weights come from.
 *
 * @typedef {object} Source
 * @property {(name: string, ...shape: number[]) => Float32Array} floats of the tensor of a name and
 *   a shape
 * @property {(name: string, ...shape: number[]) => Tensor} [tensor] the same as it is stored
 * @property {(name: string, rows: number, columns: number) => Dense} [matrix] those that stay
 *   as they are stored, and multiply by themselves
 */

/**
 * How a model is run, and what is handed back.
 *
 * @typedef {object} ForwardOptions
 * @property {ArrayLike<number>} [token_types] for each token 0 or 1: first or second text (BERT)
 * @property {Float32Array} [pixels] (tokens, numbers of a patch): they take the place of the
 *   ids' vectors
 * @property {number} [tokens] how many each text of a batch has; without it there is one text.
 *   Of a batch no activations are kept, and it has no cache
 * @property {Cache} [cache] from Model.cache: the ids follow those that it has seen (causal
 *   models)
 * @property {Float32Array} [memory] (sources, d_model), the states of an encoder, for a model
 *   with cross-attention and for no other
 * @property {Set<number>} [hidden] positions of the memory that are not attended to
 * @property {number[]} [logits_of] the tokens whose logits are wanted; all by default
 * @property {number[]} [lens_of] the tokens whose lens is wanted, if it is kept; all by default
 * @property {string[]} [keep] names of activations to hand back; * stands for any layer
 * @property {[number, number][]} [ablate] heads of self-attention that add nothing, as
 *   [layer, head]
 * @property {Record<string, Patch | Patch[]>} [patch] activations to be replaced, by name, before
 *   the model goes on
 */

/**
 * What replaces a part of an activation.
 *
 * @typedef {object} Patch
 * @property {number[]} [rows] positions of those that are replaced; all by default
 * @property {number[]} [columns] the first of those that are replaced, and the first behind
 *   them; all by default
 * @property {Float32Array} values (rows, columns)
 */

/**
 * What a run of the model returns.
 *
 * @typedef {object} Answer
 * @property {Float32Array | null} logits (tokens asked for, vocab_size); null if the model has no
 *   output, or no token was asked for
 * @property {Record<string, { values: Float32Array, shape: number[] }>} kept activations by name
 */

/**
 * What all blocks are given of a run of the model.
 *
 * @typedef {object} Run
 * @property {Hooks} hooks what is done with activations
 * @property {number} tokens of each text
 * @property {Cache} [cache] of the tokens before
 * @property {Float32Array} [memory] (sources, d_model)
 * @property {Set<number>} [hidden] positions of the memory that are not attended to
 */

/**
 * The sizes of attention. A batch has as many queries and keys of each text.
 *
 * @typedef {object} AttentionShape
 * @property {number} heads
 * @property {number} kv_heads how many keys and values the heads share
 * @property {number} d_model
 * @property {number} queries of a text
 * @property {number} keys of a text
 */

/** @typedef {(query: number, key: number) => boolean} Sees whether a query sees a key */

/**
 * Queries (texts · queries, d_model), and keys and values (texts · keys or more, kv_heads ·
 * d_head).
 *
 * @typedef {{ query: Float32Array } & KeysAndValues} Projected
 */

/**
 * What attention is told beside queries, keys and values.
 *
 * @typedef {object} AttentionRules
 * @property {Sees} sees
 * @property {(head: number) => boolean} isOff heads that bring nothing
 * @property {(part: "scores" | "weights", values: Float32Array) => void} see is given both,
 *   (texts, heads, queries, keys)
 */

/** @typedef {"norm_1" | "norm_cross" | "norm_2"} NormName the norms of a block */
/**
 * @typedef {(seen: Float32Array) => Float32Array} Update what is added to states, from what a part
 *   sees of them
 */
/** @typedef {{ id: number, cosine: number }} Neighbour a token whose vector is near another */

// --- arithmetic -----------------------------------------------------------------------

/**
 * Σ a[i + n] · b[j + n] over n from 0 to length.
 *
 * @param {Float32Array} a
 * @param {number} i
 * @param {Float32Array} b
 * @param {number} j
 * @param {number} length
 * @returns {number}
 */
function dot(a, i, b, j, length) {
  let sum = 0;
  for (let n = 0; n < length; n++) sum += a[i + n] * b[j + n];
  return sum;
}

/**
 * The same sum (`dot`) of one row of a with each of four rows of b, which stand one after the
 * other from j on. Each number of a is read once for four products, and no sum waits for another:
 * this is twice as fast as four calls of dot.
 *
 * @param {Float32Array} a
 * @param {number} i
 * @param {Float32Array} b
 * @param {number} j
 * @param {number} length of a row
 * @param {Float32Array} out the results go to out[to], out[to + step], …
 * @param {number} to
 * @param {number} step
 */
function dot4(a, i, b, j, length, out, to, step) {
  const k = j + length;
  const l = k + length;
  const m = l + length;
  let first = 0;
  let second = 0;
  let third = 0;
  let fourth = 0;
  for (let n = 0; n < length; n++) {
    const value = a[i + n];
    first += value * b[j + n];
    second += value * b[k + n];
    third += value * b[l + n];
    fourth += value * b[m + n];
  }
  out[to] = first;
  out[to + step] = second;
  out[to + 2 * step] = third;
  out[to + 3 * step] = fourth;
}

/**
 * Multiply with a matrix, transposed, and add its bias if there is one. A row of the matrix meets
 * four tokens at a time; tokens that are left over meet four rows. A matrix that is quantised
 * multiplies by itself.
 *
 * @param {Float32Array} x (tokens, columns)
 * @param {Dense} matrix its weight is (rows, columns)
 * @param {number} columns
 * @returns {Float32Array<ArrayBuffer>} (tokens, rows)
 */
export function linear(x, matrix, columns) {
  if (matrix.multiply) return matrix.multiply(x);
  const { weight, bias } = matrix;
  const rows = weight.length / columns;
  const tokens = x.length / columns;
  const out = new Float32Array(tokens * rows);
  const tokensInFours = tokens - (tokens % 4);
  const rowsInFours = rows - (rows % 4);
  for (let row = 0; row < rows; row++)
    for (let token = 0; token < tokensInFours; token += 4) {
      const start = token * columns;
      const to = token * rows + row;
      dot4(weight, row * columns, x, start, columns, out, to, rows);
    }
  for (let token = tokensInFours; token < tokens; token++) {
    const start = token * columns;
    const to = token * rows;
    for (let row = 0; row < rowsInFours; row += 4)
      dot4(x, start, weight, row * columns, columns, out, to + row, 1);
    for (let row = rowsInFours; row < rows; row++)
      out[to + row] = dot(x, start, weight, row * columns, columns);
  }
  if (bias) for (let i = 0; i < out.length; i++) out[i] += bias[i % rows];
  return out;
}

/**
 * Add two arrays number by number.
 *
 * @param {Float32Array} a
 * @param {Float32Array} b of the same length
 * @returns {Float32Array<ArrayBuffer>} their sum
 */
export function added(a, b) {
  const out = new Float32Array(a.length);
  for (let i = 0; i < a.length; i++) out[i] = a[i] + b[i];
  return out;
}

/**
 * Give each row the mean 0 and the variance 1, as LayerNorm does first.
 *
 * @param {Float32Array} x (tokens, d_model)
 * @param {number} d_model
 * @param {number} eps added to the variance
 * @returns {{ normed: Float32Array, scales: Float32Array }} of x's shape; (tokens,), what
 *   each row was multiplied by
 */
export function normalise(x, d_model, eps) {
  const normed = new Float32Array(x.length);
  const scales = new Float32Array(x.length / d_model);
  for (let token = 0; token < scales.length; token++) {
    const start = token * d_model;
    let mean = 0;
    let variance = 0;
    for (let i = 0; i < d_model; i++) mean += x[start + i] / d_model;
    for (let i = 0; i < d_model; i++) variance += (x[start + i] - mean) ** 2 / d_model;
    scales[token] = 1 / Math.sqrt(variance + eps);
    for (let i = 0; i < d_model; i++) normed[start + i] = (x[start + i] - mean) * scales[token];
  }
  return { normed, scales };
}

/**
 * Multiply each column by a weight and add a bias, as LayerNorm does last.
 *
 * @param {Float32Array} normed (tokens, d_model), by `normalise`
 * @param {WeightAndBias} norm
 * @returns {Float32Array} (tokens, d_model)
 */
export function rescaled(normed, { weight, bias }) {
  const d_model = weight.length;
  return normed.map((value, n) => value * weight[n % d_model] + bias[n % d_model]);
}

/**
 * RMSNorm: each row over its root mean square, by `lmcourse.llama.RMSNorm`.
 *
 * @param {Float32Array} x (tokens, d_model)
 * @param {{ weight: Float32Array }} norm (d_model,)
 * @param {number} eps added to the mean square
 * @returns {Float32Array} (tokens, d_model)
 */
function rmsNorm(x, { weight }, eps) {
  const d_model = weight.length;
  const out = new Float32Array(x.length);
  for (let start = 0; start < x.length; start += d_model) {
    const scale = 1 / Math.sqrt(dot(x, start, x, start, d_model) / d_model + eps);
    for (let i = 0; i < d_model; i++) out[start + i] = x[start + i] * scale * weight[i];
  }
  return out;
}

/**
 * Turn scores into weights that sum to 1; the largest score is subtracted first, so that no
 * exponential overflows.
 *
 * @template {Float32Array | Float64Array | number[]} Numbers
 * @param {Numbers} scores changed
 * @param {number} [start] the first score that is turned; those before it are left alone
 * @param {number} [end] the first score behind them that is left alone
 * @returns {Numbers} the same array
 */
export function softmax(scores, start = 0, end = scores.length) {
  let largest = -Infinity;
  let sum = 0;
  for (let i = start; i < end; i++) if (scores[i] > largest) largest = scores[i];
  for (let i = start; i < end; i++) {
    const power = Math.exp(scores[i] - largest); // the sum is of powers that were not rounded
    scores[i] = power;
    sum += power;
  }
  for (let i = start; i < end; i++) scores[i] /= sum;
  return scores;
}

/**
 * Turn every row of scores into weights.
 *
 * @param {Float32Array} scores rows of `keys` numbers; changed
 * @param {number} keys
 * @returns {Float32Array} the same array
 */
function softmaxRows(scores, keys) {
  for (let start = 0; start < scores.length; start += keys) softmax(scores, start, start + keys);
  return scores;
}

/**
 * Where a head's key or value of a token stands, counted in heads: head h has those of number
 * h // (heads / kv_heads).
 *
 * @type {(token: number, head: number, heads: number, kv_heads: number) => number}
 */
const sharedPlace = (token, head, heads, kv_heads) =>
  token * kv_heads + Math.floor((head * kv_heads) / heads);

/**
 * How well each key answers each query, in each head: their product over √d_head, and
 * -Infinity where a query doesn't see a key.
 *
 * @param {Float32Array} query (texts · queries, d_model)
 * @param {Float32Array} key (texts · keys or more, kv_heads · d_head)
 * @param {AttentionShape} shape
 * @param {Sees} sees
 * @returns {Float32Array} (texts, heads, queries, keys)
 */
function attentionScores(query, key, { heads, kv_heads, d_model, queries, keys }, sees) {
  const d_head = d_model / heads;
  const texts = query.length / d_model / queries;
  const scores = new Float32Array(texts * heads * queries * keys).fill(-Infinity);
  for (let text = 0; text < texts; text++)
    for (let head = 0; head < heads; head++)
      for (let i = 0; i < queries; i++) {
        const row = ((text * heads + head) * queries + i) * keys;
        const ofQuery = (text * queries + i) * d_model + head * d_head;
        for (let j = 0; j < keys; j++) {
          if (!sees(i, j)) continue;
          const ofKey = sharedPlace(text * keys + j, head, heads, kv_heads) * d_head;
          scores[row + j] = dot(query, ofQuery, key, ofKey, d_head) / Math.sqrt(d_head);
        }
      }
  return scores;
}

/**
 * Add numbers, each times a factor, to others.
 *
 * @param {Float32Array} sums changed
 * @param {number} to where the first of them stands
 * @param {Float32Array} values
 * @param {number} from where the first of them stands
 * @param {number} count how many are added
 * @param {number} factor
 */
function addTimes(sums, to, values, from, count, factor) {
  for (let n = 0; n < count; n++) sums[to + n] += factor * values[from + n];
}

/**
 * What the heads bring: for each query the mean of the values by its weights, head beside
 * head.
 *
 * @param {Float32Array} weights (texts, heads, queries, keys)
 * @param {Float32Array} value (texts · keys or more, kv_heads · d_head)
 * @param {AttentionShape} shape
 * @param {(head: number) => boolean} isOff heads that bring nothing
 * @returns {Float32Array} (texts · queries, d_model)
 */
function mixValues(weights, value, { heads, kv_heads, d_model, queries, keys }, isOff) {
  const d_head = d_model / heads;
  const texts = weights.length / heads / queries / keys;
  const mixed = new Float32Array(texts * queries * d_model);
  for (let text = 0; text < texts; text++)
    for (let head = 0; head < heads; head++) {
      if (isOff(head)) continue; // its part stays zero
      for (let i = 0; i < queries; i++)
        for (let j = 0; j < keys; j++) {
          const weight = weights[((text * heads + head) * queries + i) * keys + j];
          if (weight === 0) continue;
          const to = (text * queries + i) * d_model + head * d_head;
          const from = sharedPlace(text * keys + j, head, heads, kv_heads) * d_head;
          addTimes(mixed, to, value, from, d_head, weight);
        }
    }
  return mixed;
}

/**
 * The error function within 2e-7 (Abramowitz & Stegun 1964, 7.1.26).
 *
 * @param {number} x
 * @returns {number}
 */
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const p =
    ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return Math.sign(x) * (1 - p * Math.exp(-x * x));
}

/**
 * GELU by its approximation with tanh.
 *
 * @type {(x: number) => number}
 */
const tanhGelu = (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

/**
 * Activation functions of the feed-forward network, by their names in a configuration.
 *
 * @type {Record<string, (x: number) => number>}
 */
export const ACTIVATIONS = {
  relu: (x) => Math.max(x, 0),
  gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  gelu_new: tanhGelu, // as GPT-2 computes it
  gelu_pytorch_tanh: tanhGelu,
  silu: (x) => x / (1 + Math.exp(-x)),
};

/**
 * Rotary positions: rotate the pair (i, i + d_head / 2) of each head by an angle that grows with
 * its token's position, and less for larger i.
 *
 * @param {Float32Array} x (tokens, heads · d_head)
 * @param {{ heads: number, d_head: number, base?: number }} shape
 * @param {(row: number) => number} positionOf the position of the token of a row
 * @returns {Float32Array} of x's shape
 */
function rotated(x, { heads, d_head, base = 10000 }, positionOf) {
  const half = d_head / 2;
  const tokens = x.length / (heads * d_head);
  const out = new Float32Array(x.length);
  for (let token = 0; token < tokens; token++)
    for (let i = 0; i < half; i++) {
      const angle = positionOf(token) * base ** ((-2 * i) / d_head);
      const cos = Math.cos(angle);
      const sin = Math.sin(angle);
      for (let head = 0; head < heads; head++) {
        const index = (token * heads + head) * d_head + i;
        const a = x[index];
        const b = x[index + half];
        out[index] = a * cos - b * sin;
        out[index + half] = a * sin + b * cos;
      }
    }
  return out;
}

/**
 * Sinusoidal position vectors, by `lmcourse.positions.sinusoidal`.
 *
 * @param {number} tokens
 * @param {number} d_model
 * @returns {Float32Array} (tokens, d_model): sines in the even columns, cosines in the odd ones
 */
function sinusoidal(tokens, d_model) {
  return Float32Array.from({ length: tokens * d_model }, (_, n) => {
    const i = n % d_model;
    const angle = Math.floor(n / d_model) * 10000 ** (-(i - (i % 2)) / d_model);
    return i % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

// --- looking into a run ---------------------------------------------------------------

/** What is done with activations on the way: they are replaced, kept or left as they are. */
export class Hooks {
  /**
   * Begin with nothing kept.
   *
   * @param {Pick<ForwardOptions, "keep" | "ablate" | "patch">} options
   */
  constructor({ keep = [], ablate = [], patch = {} }) {
    /** @type {Answer["kept"]} */
    this.kept = {};
    this.wanted = keep.map(
      (name) => new RegExp(`^${name.replaceAll(".", "\\.").replace("*", "\\d+")}$`),
    );
    this.off = new Set(ablate.map(([layer, head]) => `blocks.${layer}.attention.${head}`));
    this.patch = patch;
    /** @type {Set<string>} */
    this.patched = new Set();
  }

  /**
   * Whether an activation is to be kept.
   *
   * @param {string} name
   */
  wants(name) {
    return this.wanted.some((pattern) => pattern.test(name));
  }

  /**
   * Replace an activation, in its place, and keep a copy of it, if that is asked for. Throw an
   * Error if what is to replace it does not fit.
   *
   * @param {string} name
   * @param {Float32Array} values changed if it is replaced
   * @param {...number} shape
   * @returns {Float32Array} the same array
   */
  see(name, values, ...shape) {
    if (Object.hasOwn(this.patch, name)) {
      for (const one of [this.patch[name]].flat()) put(values, one, shape, name);
      this.patched.add(name);
    }
    if (this.wants(name)) this.kept[name] = { values: values.slice(), shape };
    return values;
  }

  /**
   * Whether a head is ablated.
   *
   * @param {string} attention "blocks.LAYER.attention"
   * @param {number} head
   * @returns {boolean}
   */
  isOff(attention, head) {
    return this.off.size > 0 && this.off.has(`${attention}.${head}`);
  }

  /** Throw an Error unless there was every activation that was to be replaced. */
  checkPatched() {
    for (const name of Object.keys(this.patch))
      demand(this.patched.has(name), `there is no activation ${name} to patch`);
  }
}

// --- the model ------------------------------------------------------------------------

/**
 * Make the source of a model that is read from a file.
 *
 * @param {Map<string, Tensor>} tensors of the file, by name
 * @returns {Required<Omit<Source, "matrix">>}
 */
function fromFile(tensors) {
  /**
   * A tensor as it is stored; one in int8 gets its scales. Throw an Error unless it is there and
   * has the shape that is asked for.
   *
   * @type {Required<Omit<Source, "matrix">>["tensor"]}
   */
  function tensor(name, ...shape) {
    const entry = tensors.get(name);
    demand(
      entry && String(entry.shape) === String(shape),
      `${name} has the shape ${entry?.shape}, not ${shape}`,
    );
    if (entry.dtype === "I8") entry.scale = floats(`${name}.scale`, shape[0]);
    return entry;
  }
  /**
   * The same as numbers.
   *
   * @type {Source["floats"]}
   */
  const floats = (name, ...shape) => toFloats(tensor(name, ...shape));
  return { tensor, floats };
}

/* A model and its weights, which come from a file (`read`) or are drawn (train.js). */
export class Model {
  /**
   * Read a model from a safetensors file, as `lmbook.play.stores` writes it. Throw an Error if the
   * file has not what its configuration asks for.
   *
   * @param {Uint8Array} bytes of the file
   * @param {number | null} [seed] of a random order in which the numbers of each weight are
   *   shuffled; null: they stay as they are
   * @returns {Model}
   */
  static read(bytes, seed = null) {
    const { config, tensors } = readSafetensors(bytes);
    return new Model(config, fromFile(seed === null ? tensors : shuffledTensors(tensors, seed)));
  }

  /**
   * Take all weights that the configuration asks for from a source. Matrices come from the
   * source's `matrix` if it has that; otherwise each is read by `floats`, with its bias. Throw an
   * Error if the activation is unknown, or if the source throws one.
   *
   * @param {Config} config
   * @param {Source} source
   */
  constructor(config, { floats, tensor, matrix }) {
    const { vocab_size, context, d_model, d_ff, activation, heads, kv_heads = heads } = config;
    demand(ACTIVATIONS[activation], `the page has no activation ${activation}`);
    /**
     * A matrix with its bias.
     *
     * @type {(name: string, rows: number, columns: number) => WeightAndBias}
     */
    const withBias = (name, rows, columns) => ({
      weight: floats(`${name}.weight`, rows, columns),
      bias: floats(`${name}.bias`, rows),
    });
    /** @type {(name: string, rows: number, columns: number) => Dense} */
    const dense = matrix || withBias;
    /**
     * A norm; the bias of RMSNorm is empty.
     *
     * @type {(name: string) => WeightAndBias}
     */
    const layerNorm = (name) => ({
      weight: floats(`${name}.weight`, d_model),
      bias: config.norm === "rms" ? new Float32Array(0) : floats(`${name}.bias`, d_model),
    });
    this.config = config;
    this.d_head = d_model / heads;
    const shared = kv_heads * this.d_head;
    /**
     * The matrices of attention.
     *
     * @param {string} name what the names of its weights begin with
     */
    const attention = (name) => ({
      query: dense(`${name}.query`, d_model, d_model),
      key: dense(`${name}.key`, shared, d_model),
      value: dense(`${name}.value`, shared, d_model),
      output: dense(`${name}.output`, d_model, d_model),
    });
    /**
     * The matrices of a feed-forward network; `gate` is null if the model has none.
     *
     * @param {string} name what the names of its weights begin with
     */
    const feedForward = (name) => ({
      gate: config.gated ? dense(`${name}.gate`, d_ff, d_model) : null,
      up: dense(`${name}.up`, d_ff, d_model),
      down: dense(`${name}.down`, d_model, d_ff),
    });
    /** @type {[string, number, number]} */
    const table = ["tokens.weight", vocab_size, d_model];
    if (tensor) this.stored = tensor(...table);
    /* The token vectors. If they are stored in int8, nothing is converted here: the method
       `vector` converts one row at a time, and the getter `matrix` the whole table, when logits
       are first computed. */
    /** @type {Dense | undefined} */
    this.table = undefined;
    if (matrix) this.table = matrix("tokens", vocab_size, d_model);
    else if (this.stored?.dtype !== "I8") this.table = { weight: floats(...table) };
    if (config.patch) this.patch = dense("patch", d_model, config.patch);
    if (config.positions === "learned")
      this.positions = floats("positions.weight", context, d_model);
    if (config.positions === "sinusoidal") this.positions = sinusoidal(context, d_model);
    if (config.token_types)
      this.token_types = floats("token_types.weight", config.token_types, d_model);
    if (config.embedding_norm) this.embedding_norm = layerNorm("embedding_norm");
    this.blocks = Array.from({ length: config.layers }, (_, layer) => ({
      norm_1: layerNorm(`blocks.${layer}.norm_1`),
      attention: attention(`blocks.${layer}.attention`),
      norm_cross: config.cross ? layerNorm(`blocks.${layer}.norm_cross`) : null,
      cross: config.cross ? attention(`blocks.${layer}.cross`) : null,
      norm_2: layerNorm(`blocks.${layer}.norm_2`),
      feed_forward: feedForward(`blocks.${layer}.feed_forward`),
    }));
    if (config.norm_first) this.norm = layerNorm("norm");
    if (config.output === "untied") this.output = dense("output", vocab_size, d_model);
    if (config.output === "mlm")
      this.mlm = {
        dense: dense("mlm.dense", d_model, d_model),
        norm: layerNorm("mlm.norm"),
        bias: floats("mlm.bias", vocab_size),
      };
  }

  /**
   * The vector of one token in the table. A table in int8 stays so: it is large, and a text
   * has few of its rows.
   *
   * @param {number} id
   * @returns {Float32Array} (d_model,)
   */
  vector(id) {
    if (this.table?.row) return this.table.row(id);
    if (this.table) return rowOf(this.table.weight, id, this.config.d_model);
    return toFloats(/** @type {Tensor} */ (this.stored), id, id + 1);
  }

  /* The whole table (vocab_size, d_model), for logits. */
  get matrix() {
    this.table = this.table || { weight: toFloats(/** @type {Tensor} */ (this.stored)) };
    return this.table;
  }

  /**
   * Make an empty cache: it will hold what was computed of the tokens so far, for those that
   * follow.
   *
   * @returns {Cache}
   */
  cache() {
    /* An empty array, in the place of which a larger one is put. */
    const room = () => new Float32Array(0);
    const of = Array.from({ length: this.config.layers }, () => ({ key: room(), value: room() }));
    return { length: 0, layers: of };
  }

  /**
   * Run the model on token ids. Throw an Error if it cannot read them, or if an activation to be
   * patched is not there.
   *
   * The names of activations, each preceded by blocks.LAYER. from norm_1 on to lens; what has no
   * shape here is (tokens, d_model): tokens (rows of the table alone), embeddings; norm_1,
   * attention.query, attention.key and attention.value (tokens, kv_heads · d_head),
   * attention.scores, attention.weights (heads, tokens, keys), attention.heads (what the heads
   * bring, side by side), attention.lengths (heads, keys: how long each key's value is after the
   * output matrix), attention; norm_cross, cross.query, …, cross, the same of cross-attention;
   * norm_2, feed_forward.up, feed_forward.hidden (tokens, d_ff), feed_forward; lens (tokens of
   * lens_of, vocab_size: the logits if the model ended here); blocks.LAYER itself, the state after
   * it; at the end norm and logits, of the tokens of logits_of.
   *
   * @param {number[]} ids one or more
   * @param {ForwardOptions} [options]
   * @returns {Answer}
   */
  forward(ids, options = {}) {
    const steps = this.steps(ids, options);
    let step = steps.next();
    while (!step.done) step = steps.next();
    return step.value;
  }

  /**
   * Run the model as `forward` does, in steps: a pause after each layer, for a worker to look
   * whether the answer is still wanted.
   *
   * @param {number[]} ids one or more
   * @param {ForwardOptions} [options]
   * @returns {Generator<number, Answer, void>} yields the number of each layer that is done
   */
  *steps(ids, options = {}) {
    this.check(ids, options);
    const { tokens = ids.length, cache, memory, hidden, logits_of, lens_of } = options;
    const { d_model, vocab_size, layers, output } = this.config;
    const hooks = new Hooks(options);
    const run = { hooks, tokens, cache, memory, hidden };
    if (hooks.wants("tokens")) hooks.see("tokens", this.vectors(ids), ids.length, d_model);
    let x = hooks.see("embeddings", this.embed(ids, options), ids.length, d_model);
    for (let layer = 0; layer < layers; layer++) {
      x = this.block(x, layer, run);
      const lens = `blocks.${layer}.lens`;
      if (hooks.wants(lens)) {
        const states = rowsOf(x, lens_of, d_model);
        hooks.see(lens, this.readOut(states), states.length / d_model, vocab_size);
      }
      yield layer;
    }
    if (cache) cache.length += ids.length;
    x = this.lastNorm(rowsOf(x, logits_of, d_model), hooks);
    const logits = output !== "none" && x.length ? this.logits(x) : null;
    if (logits) hooks.see("logits", logits, x.length / d_model, vocab_size);
    hooks.checkPatched();
    return { logits, kept: hooks.kept };
  }

  /**
   * Throw an Error unless the model can read this.
   *
   * @param {number[]} ids
   * @param {ForwardOptions} options
   */
  check(ids, { token_types = [], tokens = ids.length, cache, memory, keep = [] }) {
    const { vocab_size, context, causal, cross = false, token_types: types = 0 } = this.config;
    const length = (cache ? cache.length : 0) + tokens;
    const fits = ids.length && length <= context;
    demand(fits, `${length} tokens, but this model sees 1 to ${context}`);
    /**
     * Whether a number is the ID of a token.
     *
     * @param {number} id
     */
    const known = (id) => Number.isInteger(id) && id >= 0 && id < vocab_size;
    for (const id of ids) demand(known(id), `${id} is no token of this model`);
    demand(causal || !cache, "only a causal model can go on from a cache");
    for (const type of Array.from(token_types))
      demand(type >= 0 && type < types, `${type} is no type of a token`);
    demand(Boolean(memory) === cross, "cross-attention and a memory to look at go together");
    demand(ids.length % tokens === 0, `${ids.length} ids are no texts of ${tokens} tokens`);
    const isBatch = ids.length > tokens;
    demand(!isBatch || !(cache || keep.length), "a batch has no cache, and nothing of it is kept");
  }

  /**
   * The rows of the table for some tokens.
   *
   * @param {number[]} ids
   * @returns {Float32Array} (tokens, d_model)
   */
  vectors(ids) {
    const { d_model } = this.config;
    const rows = new Float32Array(ids.length * d_model);
    Array.from(ids).forEach((id, token) => rows.set(this.vector(id), token * d_model));
    return rows;
  }

  /**
   * What the first block is given: token vectors (or those of patches), the vectors of positions
   * and of token types, added, and normed if the model has a norm there.
   *
   * @param {number[]} ids
   * @param {ForwardOptions} options
   * @returns {Float32Array} (tokens, d_model)
   */
  embed(ids, { token_types, tokens = ids.length, cache, pixels }) {
    const { d_model } = this.config;
    const before = cache ? cache.length : 0;
    const x = pixels ? this.patches(pixels) : this.vectors(ids);
    for (let row = 0; row < ids.length; row++) {
      const position = before + (row % tokens);
      const type = token_types ? token_types[row] : 0;
      for (let i = 0; i < d_model; i++) {
        let sum = x[row * d_model + i];
        if (this.positions) sum += this.positions[position * d_model + i];
        if (this.token_types) sum += this.token_types[type * d_model + i];
        x[row * d_model + i] = sum;
      }
    }
    return this.embedding_norm ? this.normed(x, this.embedding_norm) : x;
  }

  /**
   * The vectors of patches of a picture. Throw an Error if the model reads no pixels.
   *
   * @param {Float32Array} pixels (tokens, numbers of a patch)
   * @returns {Float32Array} (tokens, d_model)
   */
  patches(pixels) {
    demand(this.patch && this.config.patch, "this model reads no pixels");
    return this.linear(pixels, this.patch, this.config.patch);
  }

  /**
   * One block: attention; in a decoder, attention to the memory; a feed-forward network. What
   * each of them computes is added to the states. A norm stands before it (GPT) or after the
   * sum (BERT).
   *
   * @param {Float32Array} x (tokens, d_model)
   * @param {number} layer
   * @param {Run} run
   * @returns {Float32Array} (tokens, d_model)
   */
  block(x, layer, run) {
    const { d_model, norm_first, cross } = this.config;
    const block = this.blocks[layer];
    const name = `blocks.${layer}`;
    /**
     * Let an activation of this block be looked at.
     *
     * @type {(part: string, values: Float32Array) => Float32Array}
     */
    const see = (part, values) =>
      run.hooks.see(`${name}.${part}`, values, values.length / d_model, d_model);
    /**
     * States after a norm of this block.
     *
     * @type {(which: NormName, x: Float32Array) => Float32Array}
     */
    const through = (which, x) =>
      see(which, this.normed(x, /** @type {WeightAndBias} */ (block[which])));
    /**
     * States after a part, named `part`, has added its update, and its norm has been computed
     * before or after.
     *
     * @type {(x: Float32Array, which: NormName, part: string, update: Update) => Float32Array}
     */
    const updated = (x, which, part, update) => {
      if (norm_first) return this.added(x, see(part, update(through(which, x))));
      return through(which, this.added(x, see(part, update(x))));
    };
    x = updated(x, "norm_1", "attention", (seen) => this.attend(seen, layer, run));
    if (cross)
      x = updated(x, "norm_cross", "cross", (seen) => this.attendToMemory(seen, layer, run));
    x = updated(x, "norm_2", "feed_forward", (seen) => this.feedForward(seen, layer, run.hooks));
    return run.hooks.see(name, x, x.length / d_model, d_model);
  }

  /**
   * Multi-head attention of the tokens to each other, and to those in the cache, to which their
   * keys and values are added.
   *
   * @param {Float32Array} x (tokens, d_model)
   * @param {number} layer
   * @param {Run} run
   * @returns {Float32Array} the update, (tokens, d_model)
   */
  attend(x, layer, run) {
    const { heads, kv_heads = heads, causal, positions } = this.config;
    const { tokens, cache, hooks } = run;
    const name = `blocks.${layer}.attention`;
    const matrices = this.blocks[layer].attention;
    const before = cache ? cache.length : 0;
    let projected = this.project(x, x, matrices);
    if (positions === "rotary") {
      /**
       * The position of the token of a row.
       *
       * @param {number} row
       */
      const positionOf = (row) => before + (row % tokens);
      projected.query = this.rotated(projected.query, heads, positionOf);
      projected.key = this.rotated(projected.key, kv_heads, positionOf);
    }
    this.seeProjected(name, projected, hooks);
    if (cache) projected = { ...projected, ...remembered(cache, layer, projected, tokens) };
    /**
     * A causal model's query sees no later key; those of the cache stand before all queries.
     *
     * @type {Sees}
     */
    const sees = (i, j) => !causal || j <= before + i;
    return this.bring(name, matrices.output, projected, before + tokens, sees, run);
  }

  /**
   * Multi-head attention to the memory (cross-attention).
   *
   * @param {Float32Array} x (tokens, d_model)
   * @param {number} layer
   * @param {Run} run
   * @returns {Float32Array} the update, (tokens, d_model)
   */
  attendToMemory(x, layer, run) {
    const { memory = x, hidden, tokens, hooks } = run;
    const name = `blocks.${layer}.cross`;
    const matrices = /** @type {Attention} */ (this.blocks[layer].cross);
    const projected = this.project(x, memory, matrices);
    this.seeProjected(name, projected, hooks);
    const sources = memory.length / (x.length / tokens); // of each text
    /**
     * Each query sees each position of the memory that is not hidden.
     *
     * @type {Sees}
     */
    const sees = (_, source) => !hidden?.has(source);
    return this.bring(name, matrices.output, projected, sources, sees, run);
  }

  /**
   * Queries of x, keys and values of a source.
   *
   * @param {Float32Array} x (tokens, d_model)
   * @param {Float32Array} source (tokens or sources, d_model)
   * @param {Attention} matrices
   * @returns {Projected}
   */
  project(x, source, { query, key, value }) {
    const { d_model } = this.config;
    return {
      query: this.linear(x, query, d_model),
      key: this.linear(source, key, d_model),
      value: this.linear(source, value, d_model),
    };
  }

  /**
   * Let queries, keys and values be looked at.
   *
   * @param {string} name of the attention
   * @param {Projected} projected
   * @param {Hooks} hooks
   */
  seeProjected(name, { query, key, value }, hooks) {
    const { heads, kv_heads = heads, d_model } = this.config;
    const shared = kv_heads * this.d_head; // the width of keys and values
    hooks.see(`${name}.query`, query, query.length / d_model, d_model);
    hooks.see(`${name}.key`, key, key.length / shared, shared);
    hooks.see(`${name}.value`, value, value.length / shared, shared);
  }

  /**
   * What the heads bring, put together by the output matrix.
   *
   * @param {string} name of the attention
   * @param {Dense} output the output matrix
   * @param {Projected} projected
   * @param {number} keys of each text; rows beyond them are not looked at
   * @param {Sees} sees
   * @param {Run} run
   * @returns {Float32Array} the update, (tokens, d_model)
   */
  bring(name, output, { query, key, value }, keys, sees, { hooks, tokens }) {
    const { heads, kv_heads = heads, d_model } = this.config;
    const shape = { heads, kv_heads, d_model, queries: tokens, keys };
    const { mixed } = this.attention(query, key, value, shape, {
      sees,
      isOff: (head) => hooks.isOff(name, head),
      see: (part, values) => hooks.see(`${name}.${part}`, values, heads, tokens, keys),
    });
    if (hooks.wants(`${name}.lengths`))
      hooks.see(`${name}.lengths`, this.lengths(value, keys, output), heads, keys);
    hooks.see(`${name}.heads`, mixed, mixed.length / d_model, d_model);
    return this.linear(mixed, output, d_model);
  }

  /**
   * How long each value is once its head's columns of the output matrix have moved it, the
   * length that a weight multiplies (Kobayashi et al. 2020).
   *
   * @param {Float32Array} value (keys or more, kv_heads · d_head)
   * @param {number} keys how many
   * @param {Dense} output the output matrix
   * @returns {Float32Array} (heads, keys)
   */
  lengths(value, keys, { weight }) {
    const { heads, kv_heads = heads, d_model } = this.config;
    const { d_head } = this;
    const lengths = new Float32Array(heads * keys);
    for (let head = 0; head < heads; head++)
      for (let j = 0; j < keys; j++) {
        let square = 0;
        const from = sharedPlace(j, head, heads, kv_heads) * d_head;
        for (let row = 0; row < d_model; row++) {
          const start = row * d_model + head * d_head;
          square += dot(value, from, weight, start, d_head) ** 2;
        }
        lengths[head * keys + j] = Math.sqrt(square);
      }
    return lengths;
  }

  /**
   * Up, activation, down: each token by itself. Gated (SwiGLU), the activation is that of a
   * gate, which multiplies what goes up.
   *
   * @param {Float32Array} x (tokens, d_model)
   * @param {number} layer
   * @param {Hooks} hooks
   * @returns {Float32Array} (tokens, d_model)
   */
  feedForward(x, layer, hooks) {
    const { d_model, d_ff } = this.config;
    const { gate, up, down } = this.blocks[layer].feed_forward;
    const name = `blocks.${layer}.feed_forward`;
    const tokens = x.length / d_model;
    const raised = hooks.see(`${name}.up`, this.linear(x, up, d_model), tokens, d_ff);
    const hidden = gate
      ? this.multiplied(this.activated(this.linear(x, gate, d_model)), raised)
      : this.activated(raised);
    return this.linear(hooks.see(`${name}.hidden`, hidden, tokens, d_ff), down, d_ff);
  }

  /**
   * Logits of states of any layer: the last norm, then the output.
   *
   * @param {Float32Array} x (tokens, d_model)
   * @returns {Float32Array} (tokens, vocab_size)
   */
  readOut(x) {
    return this.logits(this.lastNorm(x));
  }

  /**
   * States after the norm above the last block; x itself if there is none.
   *
   * @param {Float32Array} x (tokens, d_model)
   * @param {Hooks} [hooks] is shown what the norm returns
   * @returns {Float32Array} (tokens, d_model)
   */
  lastNorm(x, hooks) {
    if (!this.norm) return x;
    const normed = this.normed(x, this.norm);
    const { d_model } = this.config;
    return hooks ? hooks.see("norm", normed, x.length / d_model, d_model) : normed;
  }

  /**
   * Logits of states that the last norm has seen.
   *
   * @param {Float32Array} x (tokens, d_model)
   * @returns {Float32Array} (tokens, vocab_size)
   */
  logits(x) {
    const { d_model } = this.config;
    if (this.output) return this.linear(x, this.output, d_model);
    if (!this.mlm) return this.linear(x, this.matrix, d_model);
    const transformed = this.activated(this.linear(x, this.mlm.dense, d_model));
    const { weight } = this.matrix;
    const { bias } = this.mlm;
    return this.linear(this.normed(transformed, this.mlm.norm), { weight, bias }, d_model);
  }

  /* --- steps -------------------------------------------------------------------------------

     All that is computed of states is computed by these, and by `embed`. Each returns a new
     array and leaves alone what it is given: recording.js adds to each its way back. */

  /**
   * Multiply with a matrix, transposed, and add its bias if there is one.
   *
   * @param {Float32Array} x (tokens, columns)
   * @param {Dense} matrix its weight is (rows, columns)
   * @param {number} columns
   * @returns {Float32Array} (tokens, rows)
   */
  linear(x, matrix, columns) {
    return linear(x, matrix, columns);
  }

  /**
   * Add two arrays number by number.
   *
   * @param {Float32Array} a
   * @param {Float32Array} b of the same length
   * @returns {Float32Array} their sum
   */
  added(a, b) {
    return added(a, b);
  }

  /**
   * Multiply two arrays number by number.
   *
   * @param {Float32Array} a
   * @param {Float32Array} b of the same length
   * @returns {Float32Array} their product
   */
  multiplied(a, b) {
    return a.map((value, i) => value * b[i]);
  }

  /**
   * Norm each row, by LayerNorm or RMSNorm, as the configuration says.
   *
   * @param {Float32Array} x (tokens, d_model)
   * @param {WeightAndBias} weights of the norm
   * @returns {Float32Array} (tokens, d_model)
   */
  normed(x, weights) {
    const { eps, norm } = this.config;
    if (norm === "rms") return rmsNorm(x, weights, eps);
    return rescaled(normalise(x, weights.weight.length, eps).normed, weights);
  }

  /**
   * Apply the model's activation function to each number.
   *
   * @param {Float32Array} x
   * @returns {Float32Array} of x's shape
   */
  activated(x) {
    return x.map(ACTIVATIONS[this.config.activation]);
  }

  /**
   * Rotate queries or keys by their tokens' positions (rotary positions).
   *
   * @param {Float32Array} x (tokens, heads · d_head)
   * @param {number} heads how many x has: of keys, kv_heads
   * @param {(row: number) => number} positionOf the position of the token of a row
   * @returns {Float32Array} of x's shape
   */
  rotated(x, heads, positionOf) {
    const { base } = this.config;
    return rotated(x, { heads, d_head: this.d_head, base }, positionOf);
  }

  /**
   * Scores of queries and keys, weights, and the mean of the values by them.
   *
   * @param {Float32Array} query (texts · queries, d_model)
   * @param {Float32Array} key (texts · keys or more, kv_heads · d_head)
   * @param {Float32Array} value of key's shape
   * @param {AttentionShape} shape
   * @param {AttentionRules} rules
   * @returns {{ mixed: Float32Array, weights: Float32Array }} (texts · queries, d_model) and
   *   (texts, heads, queries, keys)
   */
  attention(query, key, value, shape, { sees, isOff, see }) {
    const scores = attentionScores(query, key, shape, sees);
    see("scores", scores);
    const weights = softmaxRows(scores, shape.keys); // the same array
    see("weights", weights);
    return { mixed: mixValues(weights, value, shape, isOff), weights };
  }

  /* --- the table --------------------------------------------------------------------------- */

  /**
   * The tokens whose vectors in the table point most nearly the same way as a vector (cosine). If
   * it is itself of the table, its token is among them.
   *
   * @param {Float32Array} vector (d_model,)
   * @param {number} count how many
   * @returns {Neighbour[]} the nearest first
   */
  nearest(vector, count) {
    const { vocab_size, d_model } = this.config;
    /** @type {Neighbour[]} */
    const neighbours = [];
    const length = Math.sqrt(dot(vector, 0, vector, 0, d_model));
    for (let id = 0; id < vocab_size; id++) {
      const other = this.vector(id);
      const norm = Math.sqrt(dot(other, 0, other, 0, d_model));
      const cosine = dot(vector, 0, other, 0, d_model) / (length * norm || 1);
      if (neighbours.length === count && cosine <= neighbours[count - 1].cosine) continue;
      const rank = neighbours.findIndex((entry) => entry.cosine < cosine);
      neighbours.splice(rank < 0 ? neighbours.length : rank, 0, { id, cosine });
      neighbours.length = Math.min(neighbours.length, count);
    }
    return neighbours;
  }
}

/**
 * Some rows of x, one after the other.
 *
 * @param {Float32Array} x
 * @param {number[] | undefined} rows all by default
 * @param {number} width of a row
 * @returns {Float32Array} (rows, width); x itself, if it is all
 */
function rowsOf(x, rows, width) {
  if (!rows) return x;
  const out = new Float32Array(rows.length * width);
  rows.forEach((row, i) => out.set(rowOf(x, row, width), i * width));
  return out;
}

/**
 * Put keys and values of a layer behind those of a cache.
 *
 * @param {Cache} cache
 * @param {number} layer
 * @param {KeysAndValues} fresh both (tokens, kv_heads · d_head)
 * @param {number} tokens
 * @returns {KeysAndValues} all of them, and maybe room for more
 */
function remembered(cache, layer, { key, value }, tokens) {
  const stored = cache.layers[layer];
  const start = (cache.length * key.length) / tokens;
  stored.key = placed(stored.key, key, start);
  stored.value = placed(stored.value, value, start);
  return stored;
}

/**
 * Put numbers into an array from a position on.
 *
 * @param {Float32Array} array changed, if there is room for them
 * @param {Float32Array} numbers
 * @param {number} start the position of the first
 * @returns {Float32Array} the array, or else a larger one with what it held before that position
 */
export function placed(array, numbers, start) {
  const needed = start + numbers.length;
  if (needed > array.length) {
    const larger = new Float32Array(Math.max(needed, 2 * array.length));
    larger.set(array.subarray(0, start));
    array = larger;
  }
  array.set(numbers, start);
  return array;
}

/**
 * Replace rows of an activation, or columns of them. Throw an Error if there are no such rows or
 * columns, or if the patch has not as many numbers.
 *
 * @param {Float32Array} values changed
 * @param {Patch} patch
 * @param {number[]} shape of the activation; first the number of its rows
 * @param {string} name of the activation
 */
function put(values, { rows, columns, values: given }, shape, name) {
  const width = values.length / shape[0];
  const [first, last] = columns || [0, width];
  const indices = rows || Array.from({ length: shape[0] }, (_, row) => row);
  const fits = indices.every((row) => Number.isInteger(row) && row >= 0 && row < shape[0]);
  demand(fits, `${name} has rows 0 to ${shape[0] - 1}, not ${indices}`);
  demand(0 <= first && last <= width, `${name}: a row has ${width} numbers`);
  const size = last - first; // numbers of a row that are replaced
  demand(given.length === indices.length * size, `${name}: a row has ${size} numbers`);
  indices.forEach((row, i) => values.set(rowOf(given, i, size), row * width + first));
}
