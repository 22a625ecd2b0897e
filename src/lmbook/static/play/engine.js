/* The book's models, run in the page: a BERT, a GPT or a Llama from its own weights.

   The same mechanism as `lmcourse.transformer` and under the same names; what differs
   between models stands in a configuration. A matrix is one Float32Array, row after row,
   and x, the vectors of a text, is one too: (tokens, d_model) in comments means tokens
   rows of d_model numbers. There is no batch: a reader types one text. */

import { demand, readSafetensors, shuffledTensors, toFloats } from "./weights.js";

/** @import { Tensor } from "./weights.js" */

/**
 * What a model is; `lmbook.play.stores` writes it.
 *
 * @typedef {object} Config
 * @property {number} vocab_size
 * @property {number} context the most tokens of a text
 * @property {number} layers
 * @property {number} heads
 * @property {number} d_model
 * @property {number} d_ff
 * @property {number} eps added to the variance in a norm
 * @property {string} activation a name of ACTIVATIONS
 * @property {"learned" | "rotary"} positions
 * @property {boolean} causal
 * @property {boolean} norm_first whether a norm stands before its sublayer (GPT)
 * @property {"tied" | "mlm" | "none"} output how logits are read out, if they are
 * @property {number} [kv_heads] how many keys and values the heads share, if not one each
 * @property {number} [base] of rotary positions
 * @property {"rms"} [norm] if it is not LayerNorm
 * @property {boolean} [gated] whether the feed-forward network has a gate (SwiGLU)
 * @property {number} [token_types]
 * @property {boolean} [embedding_norm]
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
 * A norm, or a linear layer with a bias: weight and bias (d_model,); RMSNorm has no bias.
 *
 * @typedef {{ weight: Float32Array, bias: Float32Array }} WeightAndBias
 */

/**
 * Keys and values of the tokens so far, each (tokens or more, kv_heads · d_head).
 *
 * @typedef {{ key: Float32Array, value: Float32Array }} KeysAndValues
 */

/**
 * @typedef {object} Cache
 * @property {number} length how many tokens it has
 * @property {KeysAndValues[]} layers
 */

/**
 * Where a model's weights come from.
 *
 * @typedef {object} Source
 * @property {(name: string, ...shape: number[]) => Float32Array} floats
 * @property {(name: string, ...shape: number[]) => Tensor} [tensor] as they are stored
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
 * @property {Cache} [cache] from Model.cache: the ids follow those that it has seen (causal
 *   models)
 * @property {number[]} [logits_of] the tokens whose logits are wanted; all by default
 * @property {number[]} [lens_of] the tokens whose lens is wanted, if it is kept; all by default
 * @property {string[]} [keep] names of activations to hand back; * stands for any layer
 * @property {[number, number][]} [ablate] heads that add nothing, as [layer, head]
 * @property {Record<string, Patch | Patch[]>} [patch] activations to be replaced, by name, before the
 *   model goes on
 */

/**
 * @typedef {object} Patch
 * @property {number[]} [rows] those that are replaced; all by default
 * @property {number[]} [columns] the first of those that are replaced, and the first behind
 *   them; all by default
 * @property {Float32Array} values
 */

/**
 * @typedef {object} Answer
 * @property {Float32Array | null} logits (tokens asked for, vocab_size)
 * @property {Record<string, { values: Float32Array, shape: number[] }>} kept activations by name
 */

/**
 * What is done with activations on the way: `see` patches one, keeps it if it is asked for,
 * and hands it on.
 *
 * @typedef {object} Look
 * @property {(name: string) => boolean} wants
 * @property {(name: string, values: Float32Array, ...shape: number[]) => Float32Array} see
 * @property {(layer: number, head: number) => boolean} isOff
 */

/** @typedef {{ id: number, cosine: number }} Neighbour */

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
 * The same of one row of a and four of b, which stand one after the other. Each number of a
 * is read once for four products, and no sum waits for another: this is twice as fast as
 * four calls of dot.
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
 * Multiply with a matrix, transposed. A row of the matrix meets four tokens at a time; tokens
 * that are left over meet four rows. A matrix that is quantised multiplies by itself.
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
      const at = token * columns;
      const to = token * rows + row;
      dot4(weight, row * columns, x, at, columns, out, to, rows);
    }
  for (let token = tokensInFours; token < tokens; token++) {
    const at = token * columns;
    const to = token * rows;
    for (let row = 0; row < rowsInFours; row += 4)
      dot4(x, at, weight, row * columns, columns, out, to + row, 1);
    for (let row = rowsInFours; row < rows; row++)
      out[to + row] = dot(x, at, weight, row * columns, columns);
  }
  if (bias) for (let i = 0; i < out.length; i++) out[i] += bias[i % rows];
  return out;
}

/**
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
 * LayerNorm.
 *
 * @param {Float32Array} x (tokens, d_model)
 * @param {{ weight: Float32Array, bias: Float32Array }} norm both (d_model,)
 * @param {number} eps
 * @returns {Float32Array} (tokens, d_model)
 */
export function norm(x, { weight, bias }, eps) {
  const d_model = weight.length;
  const { normed } = normalise(x, d_model, eps);
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
export function rmsNorm(x, { weight }, eps) {
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
 * @param {number} [start]
 * @param {number} [end] the first score that is left alone
 * @returns {Numbers} the same array
 */
export function softmax(scores, start = 0, end = scores.length) {
  let largest = -Infinity;
  let sum = 0;
  for (let i = start; i < end; i++) if (scores[i] > largest) largest = scores[i];
  for (let i = start; i < end; i++) sum += scores[i] = Math.exp(scores[i] - largest);
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
export function softmaxRows(scores, keys) {
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
 * @param {Float32Array} query (queries, d_model)
 * @param {Float32Array} key (keys or more, kv_heads · d_head)
 * @param {{ heads: number, kv_heads?: number, d_model: number, keys: number }} shape
 *   kv_heads: how many keys and values the heads share, as many as heads by default
 * @param {(query: number, key: number) => boolean} sees
 * @returns {Float32Array} (heads, queries, keys)
 */
export function attentionScores(query, key, { heads, kv_heads = heads, d_model, keys }, sees) {
  const d_head = d_model / heads;
  const queries = query.length / d_model;
  const scores = new Float32Array(heads * queries * keys).fill(-Infinity);
  for (let head = 0; head < heads; head++)
    for (let i = 0; i < queries; i++) {
      const row = (head * queries + i) * keys;
      const ofQuery = i * d_model + head * d_head;
      for (let j = 0; j < keys; j++) {
        if (!sees(i, j)) continue;
        const ofKey = sharedPlace(j, head, heads, kv_heads) * d_head;
        scores[row + j] = dot(query, ofQuery, key, ofKey, d_head) / Math.sqrt(d_head);
      }
    }
  return scores;
}

/**
 * What the heads bring: for each query the mean of the values by its weights, head beside
 * head.
 *
 * @param {Float32Array} weights (heads, queries, keys)
 * @param {Float32Array} value (keys or more, kv_heads · d_head)
 * @param {{ heads: number, kv_heads?: number, d_model: number, keys: number }} shape
 * @param {(head: number) => boolean} isOff heads that bring nothing
 * @returns {Float32Array} (queries, d_model)
 */
export function mixValues(weights, value, shape, isOff = () => false) {
  const { heads, kv_heads = heads, d_model, keys } = shape;
  const d_head = d_model / heads;
  const queries = weights.length / heads / keys;
  const mixed = new Float32Array(queries * d_model);
  for (let head = 0; head < heads; head++) {
    if (isOff(head)) continue; // its part stays zero
    for (let i = 0; i < queries; i++)
      for (let j = 0; j < keys; j++) {
        const weight = weights[(head * queries + i) * keys + j];
        if (weight === 0) continue;
        const to = i * d_model + head * d_head;
        const from = sharedPlace(j, head, heads, kv_heads) * d_head;
        for (let n = 0; n < d_head; n++) mixed[to + n] += weight * value[from + n];
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

/** @type {(x: number) => number} */
const tanhGelu = (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

/** @type {Record<string, (x: number) => number>} */
export const ACTIVATIONS = {
  relu: (x) => Math.max(x, 0),
  gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  gelu_new: tanhGelu, // as GPT-2 computes it
  gelu_pytorch_tanh: tanhGelu,
  silu: (x) => x / (1 + Math.exp(-x)),
};

/**
 * Rotary positions: turn the pair (i, i + d_head / 2) of each head by its token's angle.
 *
 * @param {Float32Array} x (tokens, d_model), changed
 * @param {number} first the position of its first token
 * @param {number} heads
 * @param {number} d_head
 * @param {number} [base]
 */
function rotate(x, first, heads, d_head, base = 10000) {
  const half = d_head / 2;
  const tokens = x.length / (heads * d_head);
  for (let token = 0; token < tokens; token++)
    for (let i = 0; i < half; i++) {
      const angle = (first + token) * base ** ((-2 * i) / d_head);
      const cos = Math.cos(angle);
      const sin = Math.sin(angle);
      for (let head = 0; head < heads; head++) {
        const at = (token * heads + head) * d_head + i;
        const a = x[at];
        const b = x[at + half];
        x[at] = a * cos - b * sin;
        x[at + half] = a * sin + b * cos;
      }
    }
}

// --- the model ------------------------------------------------------------------------

/**
 * What a model takes from a file: tensors by name, each of the shape that the configuration
 * asks for.
 *
 * @param {Map<string, Tensor>} tensors
 * @returns {Required<Omit<Source, "matrix">>}
 */
function fromFile(tensors) {
  /** @type {Required<Omit<Source, "matrix">>["tensor"]} */
  function tensor(name, ...shape) {
    const found = tensors.get(name);
    demand(
      found && String(found.shape) === String(shape),
      `${name} has the shape ${found?.shape}, not ${shape}`,
    );
    if (found.dtype === "I8") found.scale = floats(`${name}.scale`, shape[0]);
    return found;
  }
  /** @type {Source["floats"]} */
  const floats = (name, ...shape) => toFloats(tensor(name, ...shape));
  return { tensor, floats };
}

/* A model and its weights, which come from a file (`read`) or are drawn (train.js). */
export class Model {
  /**
   * Read a model from a safetensors file, as `lmbook.play.stores` writes it.
   *
   * @param {Uint8Array} bytes
   * @param {number | null} [seed] if the numbers of each weight are to be shuffled
   * @returns {Model}
   */
  static read(bytes, seed = null) {
    const { config, tensors } = readSafetensors(bytes);
    return new Model(config, fromFile(seed === null ? tensors : shuffledTensors(tensors, seed)));
  }

  /**
   * @param {Config} config
   * @param {Source} source
   */
  constructor(config, { floats, tensor, matrix }) {
    const { vocab_size, context, d_model, d_ff, activation, heads, kv_heads = heads } = config;
    demand(ACTIVATIONS[activation], `the page has no activation ${activation}`);
    /** @type {(name: string, rows: number, columns: number) => WeightAndBias} */
    const withBias = (name, rows, columns) => ({
      weight: floats(`${name}.weight`, rows, columns),
      bias: floats(`${name}.bias`, rows),
    });
    /** @type {(name: string, rows: number, columns: number) => Dense} */
    const dense = matrix || withBias;
    /** @type {(name: string) => WeightAndBias} */
    const layerNorm = (name) => ({
      weight: floats(`${name}.weight`, d_model),
      bias: config.norm === "rms" ? new Float32Array(0) : floats(`${name}.bias`, d_model),
    });
    this.config = config;
    this.d_head = d_model / heads;
    const shared = kv_heads * this.d_head;
    /** @param {string} name */
    const attention = (name) => ({
      query: dense(`${name}.query`, d_model, d_model),
      key: dense(`${name}.key`, shared, d_model),
      value: dense(`${name}.value`, shared, d_model),
      output: dense(`${name}.output`, d_model, d_model),
    });
    /** @param {string} name */
    const feedForward = (name) => ({
      gate: config.gated ? dense(`${name}.gate`, d_ff, d_model) : null,
      up: dense(`${name}.up`, d_ff, d_model),
      down: dense(`${name}.down`, d_model, d_ff),
    });
    /** @type {[string, number, number]} */
    const table = ["tokens.weight", vocab_size, d_model];
    if (tensor) this.stored = tensor(...table);
    /** @type {Dense | undefined} */
    this.table = undefined;
    if (matrix) this.table = matrix("tokens", vocab_size, d_model);
    else if (this.stored?.dtype !== "I8") this.table = { weight: floats(...table) };
    if (config.patch) this.patch = dense("patch", d_model, config.patch);
    if (config.positions === "learned")
      this.positions = floats("positions.weight", context, d_model);
    if (config.token_types)
      this.token_types = floats("token_types.weight", config.token_types, d_model);
    if (config.embedding_norm) this.embedding_norm = layerNorm("embedding_norm");
    this.blocks = Array.from({ length: config.layers }, (_, layer) => ({
      norm_1: layerNorm(`blocks.${layer}.norm_1`),
      attention: attention(`blocks.${layer}.attention`),
      norm_2: layerNorm(`blocks.${layer}.norm_2`),
      feed_forward: feedForward(`blocks.${layer}.feed_forward`),
    }));
    if (config.norm_first) this.norm = layerNorm("norm");
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
   * An empty cache: what was computed of the tokens so far, for those that follow.
   *
   * @returns {Cache}
   */
  cache() {
    const room = () => new Float32Array(0); // it grows
    const of = Array.from({ length: this.config.layers }, () => ({ key: room(), value: room() }));
    return { length: 0, layers: of };
  }

  /**
   * Run the model on token ids.
   *
   * The names of activations, each preceded by blocks.LAYER. from norm_1 on: tokens (rows of
   * the table alone), embeddings; norm_1, attention.query, attention.key, attention.value (all
   * (tokens, d_model)), attention.scores, attention.weights (heads, tokens, keys),
   * attention.heads (what the heads bring, side by side), attention.lengths (heads, keys: how
   * long each key's value is after the output matrix), attention, norm_2, feed_forward.up,
   * feed_forward.hidden (tokens, d_ff), feed_forward; lens (tokens, vocab_size: the logits if
   * the model ended here); blocks.LAYER itself, the state after it; at the end norm and logits.
   *
   * @param {number[]} ids
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
   * The same, in steps: a pause after each layer, for a worker to look whether the answer is
   * still wanted.
   *
   * @param {number[]} ids
   * @param {ForwardOptions} [options]
   * @returns {Generator<number, Answer, void>}
   */
  *steps(ids, options = {}) {
    const { token_types, pixels, cache, keep = [], ablate = [], patch = {} } = options;
    const { logits_of = Array.from(ids.keys()), lens_of = Array.from(ids.keys()) } = options;
    const { config } = this;
    const { d_model } = config;
    this.check(ids, token_types, cache);
    /** @type {Answer["kept"]} */
    const kept = {};
    const wanted = keep.map(
      (name) => new RegExp(`^${name.replaceAll(".", "\\.").replace("*", "\\d+")}$`),
    );
    const patched = new Set();
    const shape = [ids.length, d_model];
    /** @type {Look} */
    const look = {
      wants: (name) => wanted.some((pattern) => pattern.test(name)),
      see(name, values, ...shape) {
        if (Object.hasOwn(patch, name)) {
          for (const one of [patch[name]].flat()) put(values, one, shape, name);
          patched.add(name);
        }
        if (look.wants(name)) kept[name] = { values: values.slice(), shape };
        return values;
      },
      isOff: (layer, head) => ablate.some(([l, h]) => l === layer && h === head),
    };
    if (look.wants("tokens")) {
      const rows = new Float32Array(ids.length * d_model);
      ids.forEach((id, token) => rows.set(this.vector(id), token * d_model));
      look.see("tokens", rows, ...shape);
    }
    let x = look.see("embeddings", this.embed(ids, token_types, cache, pixels), ...shape);
    for (let layer = 0; layer < config.layers; layer++) {
      x = this.block(x, layer, cache ? cache.layers[layer] : null, cache, look);
      const lens = `blocks.${layer}.lens`;
      if (look.wants(lens))
        look.see(
          lens,
          this.readOut(rowsOf(x, lens_of, d_model)),
          lens_of.length,
          config.vocab_size,
        );
      yield layer;
    }
    if (cache) cache.length += ids.length;
    let logits = null;
    if (config.output !== "none" && logits_of.length) {
      logits = this.readOut(rowsOf(x, logits_of, d_model), look);
      look.see("logits", logits, logits_of.length, config.vocab_size);
    }
    for (const name of Object.keys(patch))
      demand(patched.has(name), `there is no activation ${name} to patch`);
    return { logits, kept };
  }

  /**
   * Throw an Error unless the model can read this.
   *
   * @param {number[]} ids
   * @param {ArrayLike<number>} [token_types]
   * @param {Cache} [cache]
   */
  check(ids, token_types, cache) {
    const { vocab_size, context, causal } = this.config;
    const before = cache ? cache.length : 0;
    const length = before + ids.length;
    const fits = ids.length && length <= context;
    demand(fits, `${length} tokens, but this model sees 1 to ${context}`);
    /** @param {number} id */
    const known = (id) => Number.isInteger(id) && id >= 0 && id < vocab_size;
    for (const id of ids) demand(known(id), `${id} is no token of this model`);
    demand(causal || !cache, "only a causal model can go on from a cache");
    const types = this.config.token_types ?? 0;
    for (const type of Array.from(token_types || []))
      demand(type >= 0 && type < types, `${type} is no type of a token`);
  }

  /**
   * Token vectors, and what is added to them.
   *
   * @param {number[]} ids
   * @param {ArrayLike<number>} [token_types]
   * @param {Cache} [cache]
   * @param {Float32Array} [pixels]
   * @returns {Float32Array} (tokens, d_model)
   */
  embed(ids, token_types, cache, pixels) {
    const { d_model, eps, patch } = this.config;
    const before = cache ? cache.length : 0;
    let rows = null;
    if (pixels) {
      demand(this.patch && patch, "this model reads no pixels");
      rows = linear(pixels, this.patch, patch);
    }
    const x = new Float32Array(ids.length * d_model);
    Array.from(ids).forEach((id, token) => {
      const vector = rows ? rowOf(rows, token, d_model) : this.vector(id);
      const type = token_types ? token_types[token] : 0;
      for (let i = 0; i < d_model; i++) {
        let sum = vector[i];
        if (this.positions) sum += this.positions[(before + token) * d_model + i];
        if (this.token_types) sum += this.token_types[type * d_model + i];
        x[token * d_model + i] = sum;
      }
    });
    return this.embedding_norm ? norm(x, this.embedding_norm, eps) : x;
  }

  /**
   * The norm that this model has.
   *
   * @param {Float32Array} x (tokens, d_model)
   * @param {WeightAndBias} weights
   * @returns {Float32Array} (tokens, d_model)
   */
  normed(x, weights) {
    const { eps } = this.config;
    return this.config.norm === "rms" ? rmsNorm(x, weights, eps) : norm(x, weights, eps);
  }

  /**
   * One block. A norm stands before each of the two sublayers (GPT) or after its result was
   * added (BERT).
   *
   * @param {Float32Array} x (tokens, d_model)
   * @param {number} layer
   * @param {KeysAndValues | null} kept this layer's part of the cache
   * @param {Cache | undefined} cache
   * @param {Look} look
   * @returns {Float32Array} (tokens, d_model)
   */
  block(x, layer, kept, cache, look) {
    const { d_model, norm_first } = this.config;
    const block = this.blocks[layer];
    const name = `blocks.${layer}`;
    const tokens = x.length / d_model;
    /** @type {(part: string, values: Float32Array) => Float32Array} */
    const see = (part, values) => look.see(`${name}.${part}`, values, tokens, d_model);
    /** @type {(which: "norm_1" | "norm_2", x: Float32Array) => Float32Array} */
    const through = (which, x) => see(which, this.normed(x, block[which]));
    /** @param {Float32Array} x */
    const attention = (x) => see("attention", this.attend(x, layer, kept, cache, look));
    /** @param {Float32Array} x */
    const feedForward = (x) => see("feed_forward", this.feedForward(x, layer, look));
    if (norm_first) {
      x = added(x, attention(through("norm_1", x)));
      x = added(x, feedForward(through("norm_2", x)));
    } else {
      x = through("norm_1", added(x, attention(x)));
      x = through("norm_2", added(x, feedForward(x)));
    }
    return look.see(name, x, tokens, d_model);
  }

  /**
   * Multi-head attention.
   *
   * @param {Float32Array} x (tokens, d_model)
   * @param {number} layer
   * @param {KeysAndValues | null} kept this layer's part of the cache
   * @param {Cache | undefined} cache
   * @param {Look} look
   * @returns {Float32Array} the update, (tokens, d_model)
   */
  attend(x, layer, kept, cache, look) {
    const { heads, kv_heads = heads, d_model, causal, positions, base } = this.config;
    const { d_head } = this;
    const shared = kv_heads * d_head; // the width of keys and values
    const { query: q, key: k, value: v, output } = this.blocks[layer].attention;
    const name = `blocks.${layer}.attention`;
    const queries = x.length / d_model;
    const before = cache ? cache.length : 0;
    const keys = before + queries;
    /** @type {(matrix: Dense) => Float32Array} */
    const project = (matrix) => linear(x, matrix, d_model);
    let [query, key, value] = [project(q), project(k), project(v)];
    if (positions === "rotary") {
      rotate(query, before, heads, d_head, base);
      rotate(key, before, kv_heads, d_head, base);
    }
    /** @type {(part: string, values: Float32Array, width?: number) => Float32Array} */
    const see = (part, values, width = d_model) =>
      look.see(`${name}.${part}`, values, queries, width);
    [query, key, value] = [
      see("query", query),
      see("key", key, shared),
      see("value", value, shared),
    ];
    if (kept) {
      kept.key = placed(kept.key, key, before * shared);
      kept.value = placed(kept.value, value, before * shared);
      ({ key, value } = kept); // rows beyond `keys` are not looked at
    }
    const shape = { heads, kv_heads, d_model, keys };
    /** @type {(query: number, key: number) => boolean} */
    const sees = (i, j) => !causal || j <= before + i;
    const scores = attentionScores(query, key, shape, sees);
    look.see(`${name}.scores`, scores, heads, queries, keys);
    const weights = softmaxRows(scores, keys);
    look.see(`${name}.weights`, weights, heads, queries, keys);
    const mixed = mixValues(weights, value, shape, (head) => look.isOff(layer, head));
    if (look.wants(`${name}.lengths`))
      look.see(`${name}.lengths`, this.lengths(value, keys, output), heads, keys);
    return linear(see("heads", mixed), output, d_model);
  }

  /**
   * How long each value is once its head's columns of the output matrix have moved it, the
   * length that a weight multiplies (Kobayashi et al. 2020).
   *
   * @param {Float32Array} value (keys or more, d_model)
   * @param {number} keys
   * @param {Dense} output
   * @returns {Float32Array} (heads, keys)
   */
  lengths(value, keys, { weight }) {
    const { heads, kv_heads = heads, d_model } = this.config;
    const { d_head } = this;
    const found = new Float32Array(heads * keys);
    for (let head = 0; head < heads; head++)
      for (let j = 0; j < keys; j++) {
        let square = 0;
        const from = sharedPlace(j, head, heads, kv_heads) * d_head;
        for (let row = 0; row < d_model; row++) {
          const at = row * d_model + head * d_head;
          square += dot(value, from, weight, at, d_head) ** 2;
        }
        found[head * keys + j] = Math.sqrt(square);
      }
    return found;
  }

  /**
   * Up, activation, down: each token by itself. Gated (SwiGLU), the activation is that of a
   * gate, which multiplies what goes up.
   *
   * @param {Float32Array} x (tokens, d_model)
   * @param {number} layer
   * @param {Look} look
   * @returns {Float32Array} (tokens, d_model)
   */
  feedForward(x, layer, look) {
    const { d_model, d_ff, activation } = this.config;
    const { gate, up, down } = this.blocks[layer].feed_forward;
    const name = `blocks.${layer}.feed_forward`;
    const tokens = x.length / d_model;
    const raised = look.see(`${name}.up`, linear(x, up, d_model), tokens, d_ff);
    const hidden = (gate ? linear(x, gate, d_model) : raised).map(ACTIVATIONS[activation]);
    if (gate) for (let i = 0; i < hidden.length; i++) hidden[i] *= raised[i];
    return linear(look.see(`${name}.hidden`, hidden, tokens, d_ff), down, d_ff);
  }

  /**
   * Logits of states.
   *
   * @param {Float32Array} x (tokens, d_model)
   * @param {Look} [look]
   * @returns {Float32Array} (tokens, vocab_size)
   */
  readOut(x, look) {
    const { d_model, eps, activation } = this.config;
    const tokens = x.length / d_model;
    if (this.norm) x = this.normed(x, this.norm);
    if (this.norm && look) x = look.see("norm", x, tokens, d_model);
    if (!this.mlm) return linear(x, this.matrix, d_model);
    const turned = linear(x, this.mlm.dense, d_model).map(ACTIVATIONS[activation]);
    const { weight } = this.matrix;
    const { bias } = this.mlm;
    return linear(norm(turned, this.mlm.norm, eps), { weight, bias }, d_model);
  }

  /**
   * The tokens whose vectors in the table point most nearly the same way (cosine), itself
   * among them.
   *
   * @param {Float32Array} vector (d_model,)
   * @param {number} count
   * @returns {Neighbour[]} the nearest first
   */
  nearest(vector, count) {
    const { vocab_size, d_model } = this.config;
    /** @type {Neighbour[]} */
    const found = [];
    const length = Math.sqrt(dot(vector, 0, vector, 0, d_model));
    for (let id = 0; id < vocab_size; id++) {
      const other = this.vector(id);
      const norm = Math.sqrt(dot(other, 0, other, 0, d_model));
      const cosine = dot(vector, 0, other, 0, d_model) / (length * norm || 1);
      if (found.length === count && cosine <= found[count - 1].cosine) continue;
      const place = found.findIndex((entry) => entry.cosine < cosine);
      found.splice(place < 0 ? found.length : place, 0, { id, cosine });
      found.length = Math.min(found.length, count);
    }
    return found;
  }
}

/** @type {(x: Float32Array, row: number, width: number) => Float32Array} */
const rowOf = (x, row, width) => x.subarray(row * width, (row + 1) * width);

/**
 * Some rows of x, one after the other.
 *
 * @param {Float32Array} x
 * @param {number[]} rows
 * @param {number} width of a row
 * @returns {Float32Array} (rows, width)
 */
function rowsOf(x, rows, width) {
  const out = new Float32Array(rows.length * width);
  rows.forEach((row, i) => out.set(rowOf(x, row, width), i * width));
  return out;
}

/**
 * Put numbers at a place of an array.
 *
 * @param {Float32Array} array
 * @param {Float32Array} numbers
 * @param {number} at
 * @returns {Float32Array} the array, or a larger one with what it held before the place
 */
export function placed(array, numbers, at) {
  const needed = at + numbers.length;
  if (needed > array.length) {
    const larger = new Float32Array(Math.max(needed, 2 * array.length));
    larger.set(array.subarray(0, at));
    array = larger;
  }
  array.set(numbers, at);
  return array;
}

/**
 * Replace rows of an activation, or columns of them.
 *
 * @param {Float32Array} values changed
 * @param {Patch} patch
 * @param {number[]} shape of the activation; first the number of its rows
 * @param {string} name of the activation
 */
function put(values, { rows, columns, values: given }, shape, name) {
  const width = values.length / shape[0];
  const [first, last] = columns || [0, width];
  const places = rows || Array.from({ length: shape[0] }, (_, row) => row);
  const fits = places.every((row) => Number.isInteger(row) && row >= 0 && row < shape[0]);
  demand(fits, `${name} has rows 0 to ${shape[0] - 1}, not ${places}`);
  demand(0 <= first && last <= width, `${name}: a row has ${width} numbers`);
  const wide = last - first;
  demand(given.length === places.length * wide, `${name}: a row has ${wide} numbers`);
  places.forEach((row, i) => values.set(rowOf(given, i, wide), row * width + first));
}
