/* The model of engine.js, with the way back: what the chapter *backpropagation* derives, step
   by step. In which order the parts of a block are computed is said in engine.js alone; here
   each step, when it is taken, puts on a tape how to go back through it.

   A way back is given delta, the gradient of the loss by what the step returned. It adds to the
   gradients of the step's weights and hands to the step's inputs what is theirs. An input that
   was used several times gets the sum. Nothing that is handed on is changed later, so one
   array may be the gradient of two inputs. */

import { linear, Model, normalise, rescaled } from "./engine.js";
import { demand } from "./weights.js";

/** @import { AttentionRules, AttentionShape, Config, Dense } from "./engine.js" */
/** @import { ForwardOptions, Projected, WeightAndBias } from "./engine.js" */

/**
 * A step that was taken, and its way back.
 *
 * @typedef {{ result: Float32Array, back: (delta: Float32Array) => void }} Step
 */

const ROOT = Math.sqrt(2 / Math.PI);
const CUBIC = 0.044715;

/**
 * The derivative of an activation function, by its name.
 *
 * @type {Record<string, (x: number) => number>}
 */
const SLOPES = {
  /* Of GELU by its approximation with tanh. */
  gelu_new(x) {
    const t = Math.tanh(ROOT * (x + CUBIC * x ** 3));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * ROOT * (1 + 3 * CUBIC * x ** 2);
  },
};

/**
 * A matrix, transposed.
 *
 * @param {Float32Array} x (rows, columns)
 * @param {number} columns
 * @returns {Float32Array} (columns, rows)
 */
function transposed(x, columns) {
  const rows = x.length / columns;
  const out = new Float32Array(x.length);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      out[column * rows + row] = x[row * columns + column];
  return out;
}

/**
 * The gradients by queries, keys and values. A value gets what the weights let through to it. A
 * softmax only shares out: from the gradients by a query's weights their mean is taken off.
 *
 * @param {Float32Array} delta by what the heads bring, (texts · queries, d_model)
 * @param {Float32Array} weights (texts, heads, queries, keys)
 * @param {Projected} projected
 * @param {AttentionShape} shape each head has keys and values of its own
 * @returns {{ dQuery: Float32Array, dKey: Float32Array, dValue: Float32Array }} of the shapes of
 *   query, key and value
 */
function backThroughAttention(delta, weights, { query, key, value }, shape) {
  const { heads, d_model, queries, keys } = shape;
  const d_head = d_model / heads;
  const root = Math.sqrt(d_head);
  const [dQuery, dKey, dValue] = [query, key, value].map((x) => new Float32Array(x.length));
  const dWeights = new Float32Array(keys); // of one query
  for (let row = 0; row < weights.length; row += keys) {
    const i = (row / keys) % queries;
    const head = Math.floor(row / keys / queries) % heads;
    const text = Math.floor(row / keys / queries / heads);
    const at = (text * queries + i) * d_model + head * d_head; // where the query begins
    const first = text * keys * d_model + head * d_head; // where the first key begins
    let mean = 0;
    for (let j = 0, other = first; j < keys; j++, other += d_model) {
      const weight = weights[row + j];
      if (weight === 0) continue; // a key that the query does not see
      let product = 0;
      for (let n = 0; n < d_head; n++) {
        product += delta[at + n] * value[other + n];
        dValue[other + n] += weight * delta[at + n];
      }
      dWeights[j] = product;
      mean += weight * product;
    }
    for (let j = 0, other = first; j < keys; j++, other += d_model) {
      const weight = weights[row + j];
      if (weight === 0) continue;
      const dScore = (weight * (dWeights[j] - mean)) / root;
      for (let n = 0; n < d_head; n++) {
        dQuery[at + n] += dScore * key[other + n];
        dKey[other + n] += dScore * query[at + n];
      }
    }
  }
  return { dQuery, dKey, dValue };
}

/**
 * Throw an Error unless every step of a model has its way back here.
 *
 * @param {Config} config
 */
export function checkTrainable({ activation, positions, output, norm, gated, kv_heads }) {
  const isGpt = positions === "learned" && output === "tied" && norm !== "rms";
  const isKnown = isGpt && !gated && !kv_heads && SLOPES[activation];
  demand(isKnown, "the page trains only a GPT with learned positions");
}

/** One run of a model, recorded: `forward` once, then `back` once. */
export class Recording extends Model {
  /**
   * Make a model whose run will be recorded.
   *
   * @param {Config} config of a model that `checkTrainable` lets pass
   * @param {Record<string, Float32Array>} weights by name
   * @param {Map<Float32Array, Float32Array>} gradients of each weight, of the same length: what
   *   is found on the way back is added to them
   */
  constructor(config, weights, gradients) {
    super(config, { floats: (name) => weights[name] });
    this.gradients = gradients;
    /** @type {Step[]} in the order in which they were taken */
    this.tape = [];
    /** @type {Map<Float32Array, Float32Array>} gradients of results, until a step needs them */
    this.deltas = new Map();
  }

  /**
   * Go back from a result to every weight. An Error at a second call, or if a step that used a
   * result was not recorded.
   *
   * @param {Float32Array} result of the last step
   * @param {Float32Array} delta the gradient of the loss by it
   */
  back(result, delta) {
    demand(this.tape.length, "a recording leads back once");
    this.hand(result, delta);
    for (let step = this.tape.pop(); step; step = this.tape.pop()) {
      const gradient = this.deltas.get(step.result);
      demand(gradient, "a step that used this result was not recorded");
      this.deltas.delete(step.result);
      step.back(gradient);
    }
  }

  /**
   * Put a step on the tape.
   *
   * @param {Float32Array} result of the step
   * @param {Step["back"]} back its way back
   * @returns {Float32Array} the result
   */
  recorded(result, back) {
    this.tape.push({ result, back });
    return result;
  }

  /**
   * Add a part of the gradient by what a step was given to the parts that are there.
   *
   * @param {Float32Array} x what a step was given
   * @param {Float32Array} delta a part of the gradient by it, of the same length
   */
  hand(x, delta) {
    const others = this.deltas.get(x);
    this.deltas.set(x, others ? super.added(others, delta) : delta);
  }

  /**
   * The gradient by a weight, to which a way back adds.
   *
   * @param {Float32Array} weight
   * @returns {Float32Array} of the same length
   */
  gradientOf(weight) {
    return /** @type {Float32Array} */ (this.gradients.get(weight));
  }

  /* --- steps ------------------------------------------------------------------------------- */

  /**
   * Token vectors and positions; back: each row of the two tables gets what used it.
   *
   * @override
   * @param {number[]} ids
   * @param {ForwardOptions} options
   */
  embed(ids, options) {
    const { tokens = ids.length } = options;
    const { d_model } = this.config;
    return this.recorded(super.embed(ids, options), (delta) => {
      const dTable = this.gradientOf(this.matrix.weight);
      const dPositions = this.gradientOf(/** @type {Float32Array} */ (this.positions));
      for (let row = 0; row < ids.length; row++)
        for (let i = 0; i < d_model; i++) {
          dTable[ids[row] * d_model + i] += delta[row * d_model + i];
          dPositions[(row % tokens) * d_model + i] += delta[row * d_model + i];
        }
    });
  }

  /**
   * y = x Wᵀ + b; back: W gets δᵀ x, b gets δ summed over the rows, x gets δ W.
   *
   * @override
   * @param {Float32Array} x (rows of x, columns)
   * @param {Dense} dense its weight is (rows, columns)
   * @param {number} columns
   */
  linear(x, dense, columns) {
    const { weight, bias } = dense;
    const rows = weight.length / columns;
    return this.recorded(super.linear(x, dense, columns), (delta) => {
      const dWeight = this.gradientOf(weight);
      const across = { weight: transposed(x, columns) };
      const product = linear(transposed(delta, rows), across, x.length / columns);
      for (let i = 0; i < dWeight.length; i++) dWeight[i] += product[i];
      if (bias) {
        const dBias = this.gradientOf(bias);
        for (let i = 0; i < delta.length; i++) dBias[i % rows] += delta[i];
      }
      this.hand(x, linear(delta, { weight: transposed(weight, columns) }, rows));
    });
  }

  /**
   * A sum; back: both parts get all.
   *
   * @override
   * @param {Float32Array} a
   * @param {Float32Array} b
   */
  added(a, b) {
    return this.recorded(super.added(a, b), (delta) => {
      this.hand(a, delta);
      this.hand(b, delta);
    });
  }

  /**
   * LayerNorm: n = (x - mean) · scale, y = n · weight + bias. Back through n: what would move
   * the mean or the length of n is taken out, since the norm undoes it.
   *
   * @override
   * @param {Float32Array} x (batch · tokens, d_model)
   * @param {WeightAndBias} norm
   */
  normed(x, norm) {
    const { weight, bias } = norm;
    const d_model = weight.length;
    const { normed, scales } = normalise(x, d_model, this.config.eps);
    return this.recorded(rescaled(normed, norm), (delta) => {
      const dWeight = this.gradientOf(weight);
      const dBias = this.gradientOf(bias);
      const out = new Float32Array(delta.length);
      for (let row = 0, start = 0; row < scales.length; row++, start += d_model) {
        let mean = 0;
        let along = 0;
        for (let i = 0; i < d_model; i++) {
          const d = delta[start + i];
          const n = normed[start + i];
          dWeight[i] += d * n;
          dBias[i] += d;
          mean += (d * weight[i]) / d_model;
          along += (d * weight[i] * n) / d_model;
        }
        for (let i = 0; i < d_model; i++) {
          const d = delta[start + i] * weight[i];
          out[start + i] = scales[row] * (d - mean - normed[start + i] * along);
        }
      }
      this.hand(x, out);
    });
  }

  /**
   * The activation, number by number; back: by its slope.
   *
   * @override
   * @param {Float32Array} x
   */
  activated(x) {
    const slope = SLOPES[this.config.activation];
    return this.recorded(super.activated(x), (delta) => {
      const product = delta.map((d, i) => d * slope(x[i]));
      this.hand(x, product);
    });
  }

  /**
   * Attention; back: see backThroughAttention.
   *
   * @override
   * @param {Float32Array} query (texts · queries, d_model)
   * @param {Float32Array} key (texts · keys, d_model)
   * @param {Float32Array} value of key's shape
   * @param {AttentionShape} shape
   * @param {AttentionRules} rules
   */
  attention(query, key, value, shape, rules) {
    const result = super.attention(query, key, value, shape, rules);
    this.recorded(result.mixed, (delta) => {
      const projected = { query, key, value };
      const { dQuery, dKey, dValue } = backThroughAttention(
        delta,
        result.weights,
        projected,
        shape,
      );
      this.hand(query, dQuery);
      this.hand(key, dKey);
      this.hand(value, dValue);
    });
    return result;
  }
}
