/* A GPT learns in the page: what the chapter *backpropagation* derives, for the model of
   engine.js, whose weights are changed where they stand. The steps forward are those of
   engine.js; what is here is the way back, which needs each step's own results, and a batch.

   Each step of the model is a function that returns what it computes and, with it, the way
   back: a function from the gradient of the loss by that result to the gradient by x. On
   its way it adds to the gradients of the step's weights. Texts of a batch are of one length
   and stand one under the other: x is (batch · tokens, d_model). */

import {
  ACTIVATIONS,
  added,
  attentionScores,
  linear,
  Model,
  mixValues,
  normalise,
  softmax,
  softmaxRows,
} from "./engine.js";
import { randomness } from "./writing.js";

/** @import { Config, Dense, WeightAndBias } from "./engine.js" */

/**
 * The way back: from the gradient of the loss by a result to that by x.
 *
 * @typedef {(delta: Float32Array) => Float32Array} Back
 */

/**
 * @typedef {object} TrainerSettings
 * @property {number} [learning_rate] the highest
 * @property {number} [weight_decay] of matrices
 * @property {number} [clip] the longest gradient that is taken as it is
 * @property {number} [steps] of the whole training, for the schedule
 */

/**
 * A new model with the weights that `GPT.initialise` draws: N(0, 0.02²), and smaller where a
 * block adds to the residual stream.
 *
 * @param {Config} config
 * @param {number} seed
 * @returns {Model}
 */
export function initial(config, seed) {
  const random = randomness(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  /** @type {(name: string, rows: number, columns?: number) => Float32Array} */
  const floats = (name, rows, columns = 1) => {
    const values = new Float32Array(rows * columns);
    if (columns === 1) return values.fill(name.endsWith("weight") ? 1 : 0); // norms, biases
    const adds = name.endsWith("attention.output.weight") || name.endsWith("down.weight");
    const scale = adds ? 0.02 / Math.sqrt(2 * config.layers) : 0.02;
    return values.map(() => scale * normal());
  };
  return new Model(config, { floats });
}

/**
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
 * @param {Float32Array} to changed: x is added to it
 * @param {Float32Array} x
 * @returns {Float32Array} `to`
 */
function add(to, x) {
  for (let i = 0; i < to.length; i++) to[i] += x[i];
  return to;
}

export class Trainer {
  /**
   * @param {Model} model a GPT with learned positions whose weights are float32
   * @param {TrainerSettings} [settings]
   */
  constructor(model, { learning_rate = 3e-3, weight_decay = 0.1, clip = 1, steps = NaN } = {}) {
    this.model = model;
    this.table = /** @type {Dense} */ (model.table);
    this.positions = /** @type {Float32Array} */ (model.positions);
    this.settings = { learning_rate, weight_decay, clip, steps };
    this.step = 0;
    /** @type {Map<Float32Array, Float32Array>} each weight's gradient, of the same length */
    this.gradients = new Map();
    /** @type {Map<Float32Array, [Float32Array, Float32Array]>} Adam's two running means */
    this.moments = new Map();
    for (const weight of Object.values(this.named())) {
      this.gradients.set(weight, new Float32Array(weight.length));
      this.moments.set(weight, [new Float32Array(weight.length), new Float32Array(weight.length)]);
    }
  }

  /**
   * @param {Float32Array} weight one of the model's
   * @returns {Float32Array}
   */
  gradientOf(weight) {
    return /** @type {Float32Array} */ (this.gradients.get(weight));
  }

  /**
   * Every weight under its name of engine.js.
   *
   * @returns {Record<string, Float32Array>}
   */
  named() {
    const { model } = this;
    /** @type {Record<string, Float32Array>} */
    const found = { "tokens.weight": this.table.weight, "positions.weight": this.positions };
    /** @type {(name: string, part: Float32Array | object | undefined) => void} */
    const enter = (name, part) => {
      if (part instanceof Float32Array) found[name] = part;
      else for (const [key, inner] of Object.entries(part || {})) enter(`${name}.${key}`, inner);
    };
    model.blocks.forEach((block, layer) => enter(`blocks.${layer}`, block));
    enter("norm", model.norm);
    return found;
  }

  /* --- steps, forward and back ----------------------------------------------------------- */

  /**
   * y = x Wᵀ + b; back: x's is δ W, W's is δᵀ x, b's is δ summed over the rows.
   *
   * @param {Float32Array} x (rows of x, columns)
   * @param {Dense} dense its weight is (rows, columns)
   * @param {number} columns
   * @returns {[Float32Array, Back]}
   */
  dense(x, { weight, bias }, columns) {
    const y = linear(x, { weight, bias }, columns);
    const rows = weight.length / columns;
    const count = x.length / columns;
    /** @type {Back} */
    const back = (delta) => {
      const across = { weight: transposed(x, columns) };
      add(this.gradientOf(weight), linear(transposed(delta, rows), across, count));
      if (bias) {
        const gradient = this.gradientOf(bias);
        for (let i = 0; i < delta.length; i++) gradient[i % rows] += delta[i];
      }
      return linear(delta, { weight: transposed(weight, columns) }, rows);
    };
    return [y, back];
  }

  /**
   * LayerNorm: n = (x - mean) · scale, y = n · weight + bias. Back through n: what would move
   * the mean or the length of n is taken out, since the norm undoes it.
   *
   * @param {Float32Array} x (batch · tokens, d_model)
   * @param {WeightAndBias} norm
   * @returns {[Float32Array, Back]}
   */
  norm(x, { weight, bias }) {
    const d_model = weight.length;
    const { normed, scales } = normalise(x, d_model, this.model.config.eps);
    const y = normed.map((value, n) => value * weight[n % d_model] + bias[n % d_model]);
    /** @type {Back} */
    const back = (delta) => {
      const dWeight = this.gradientOf(weight);
      const dBias = this.gradientOf(bias);
      const out = new Float32Array(x.length);
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
      return out;
    };
    return [y, back];
  }

  /**
   * Causal attention of each text by itself.
   *
   * @param {Float32Array} query (batch · tokens, d_model)
   * @param {Float32Array} key of the same shape
   * @param {Float32Array} value of the same shape
   * @param {number} tokens of each text
   * @returns {[Float32Array, (delta: Float32Array) => Float32Array[]]} back gives the gradients
   *   by query, key and value
   */
  attention(query, key, value, tokens) {
    const { heads, d_model } = this.model.config;
    const { d_head } = this.model;
    const texts = query.length / d_model / tokens;
    const root = Math.sqrt(d_head);
    const shape = { heads, d_model, keys: tokens };
    /** @type {(query: number, key: number) => boolean} */
    const sees = (i, j) => j <= i;
    const y = new Float32Array(query.length);
    const weights = new Float32Array(texts * heads * tokens * tokens); // 0 ahead of a token
    for (let text = 0; text < texts; text++) {
      const start = text * tokens * d_model;
      /** @param {Float32Array} x */
      const of = (x) => x.subarray(start, start + tokens * d_model);
      const scores = attentionScores(of(query), of(key), shape, sees);
      softmaxRows(scores, tokens);
      weights.set(scores, text * scores.length);
      y.set(mixValues(scores, of(value), shape), start);
    }
    /**
     * Call `visit` for each token i of each head.
     *
     * @param {(i: number, at: number, row: number, first: number) => void} visit is given i,
     *   where its numbers begin, where its weights begin, where the numbers of token 0 begin
     */
    const each = (visit) => {
      for (let text = 0; text < texts; text++)
        for (let head = 0; head < heads; head++) {
          const first = text * tokens * d_model + head * d_head;
          for (let i = 0; i < tokens; i++)
            visit(i, first + i * d_model, ((text * heads + head) * tokens + i) * tokens, first);
        }
    };
    /** @param {Float32Array} delta */
    const back = (delta) => {
      const [dQuery, dKey, dValue] = [query, key, value].map((x) => new Float32Array(x.length));
      const dWeights = new Float32Array(tokens);
      each((i, at, row, first) => {
        let mean = 0; // of the weights' gradients: a softmax only shares out
        for (let j = 0, other = first; j <= i; j++, other += d_model) {
          let product = 0;
          for (let n = 0; n < d_head; n++) {
            product += delta[at + n] * value[other + n];
            dValue[other + n] += weights[row + j] * delta[at + n];
          }
          dWeights[j] = product;
          mean += weights[row + j] * product;
        }
        for (let j = 0, other = first; j <= i; j++, other += d_model) {
          const dScore = (weights[row + j] * (dWeights[j] - mean)) / root;
          for (let n = 0; n < d_head; n++) {
            dQuery[at + n] += dScore * key[other + n];
            dKey[other + n] += dScore * query[at + n];
          }
        }
      });
      return [dQuery, dKey, dValue];
    };
    return [y, back];
  }

  /**
   * GELU, as GPT-2 computes it; back: by its slope.
   *
   * @param {Float32Array} x
   * @returns {[Float32Array, Back]}
   */
  gelu(x) {
    const root = Math.sqrt(2 / Math.PI);
    const cubic = 0.044715;
    /** @param {number} value */
    const slope = (value) => {
      const t = Math.tanh(root * (value + cubic * value ** 3));
      return 0.5 * (1 + t) + 0.5 * value * (1 - t * t) * root * (1 + 3 * cubic * value ** 2);
    };
    return [x.map(ACTIVATIONS.gelu_new), (delta) => delta.map((d, i) => d * slope(x[i]))];
  }

  /**
   * One block; where two ways meet, back, their gradients are added.
   *
   * @param {Float32Array} x (batch · tokens, d_model)
   * @param {Model["blocks"][number]} block
   * @param {number} tokens of each text
   * @returns {[Float32Array, Back]}
   */
  block(x, { norm_1, attention, norm_2, feed_forward }, tokens) {
    const { d_model, d_ff } = this.model.config;
    const [seen, backNorm1] = this.norm(x, norm_1);
    const [query, backQuery] = this.dense(seen, attention.query, d_model);
    const [key, backKey] = this.dense(seen, attention.key, d_model);
    const [value, backValue] = this.dense(seen, attention.value, d_model);
    const [brought, backAttention] = this.attention(query, key, value, tokens);
    const [update, backOutput] = this.dense(brought, attention.output, d_model);
    const middle = added(x, update);
    const [normed, backNorm2] = this.norm(middle, norm_2);
    const [raised, backUp] = this.dense(normed, feed_forward.up, d_model);
    const [bent, backGelu] = this.gelu(raised);
    const [lowered, backDown] = this.dense(bent, feed_forward.down, d_ff);
    /** @type {Back} */
    const back = (delta) => {
      delta = added(delta, backNorm2(backUp(backGelu(backDown(delta)))));
      const [dQuery, dKey, dValue] = backAttention(backOutput(delta));
      const dSeen = add(add(backQuery(dQuery), backKey(dKey)), backValue(dValue));
      return added(delta, backNorm1(dSeen));
    };
    return [added(middle, lowered), back];
  }

  /**
   * Token vectors and positions; back: each row of the two tables gets what used it.
   *
   * @param {number[]} ids (batch · tokens)
   * @param {number} tokens of each text
   * @returns {[Float32Array, (delta: Float32Array) => void]}
   */
  embed(ids, tokens) {
    const { model } = this;
    const { d_model } = model.config;
    const x = new Float32Array(ids.length * d_model);
    for (let start = 0; start < ids.length; start += tokens)
      x.set(model.embed(ids.slice(start, start + tokens)), start * d_model);
    /** @param {Float32Array} delta */
    const back = (delta) => {
      const dTable = this.gradientOf(this.table.weight);
      const dPositions = this.gradientOf(this.positions);
      for (let row = 0; row < ids.length; row++)
        for (let i = 0; i < d_model; i++) {
          dTable[ids[row] * d_model + i] += delta[row * d_model + i];
          dPositions[(row % tokens) * d_model + i] += delta[row * d_model + i];
        }
    };
    return [x, back];
  }

  /**
   * The loss of what follows each token, and the way back to all gradients.
   *
   * @param {number[]} inputs ids (batch · tokens)
   * @param {number[]} targets ids (batch · tokens)
   * @param {number} tokens of each text
   * @returns {[Float32Array, (shares: ArrayLike<number>) => void]} the losses in nats, (batch ·
   *   tokens,); back is given how much of each loss counts, and gives the gradients of the sum
   */
  losses(inputs, targets, tokens) {
    const { model } = this;
    const { d_model, vocab_size } = model.config;
    let [x, backEmbed] = this.embed(inputs, tokens);
    /** @type {Back[]} */
    const backs = [];
    for (const block of model.blocks) {
      const [next, back] = this.block(x, block, tokens);
      backs.push(back);
      x = next;
    }
    const lastNorm = /** @type {WeightAndBias} */ (model.norm);
    const [normed, backNorm] = this.norm(x, lastNorm);
    const [p, backOutput] = this.dense(normed, this.table, d_model); // logits, yet
    const losses = Float32Array.from(targets, (target, row) => {
      softmax(p, row * vocab_size, (row + 1) * vocab_size);
      return -Math.log(p[row * vocab_size + target]);
    });
    /** @param {ArrayLike<number>} shares */
    const back = (shares) => {
      for (const gradient of this.gradients.values()) gradient.fill(0);
      const delta = p.slice(); // (p - wanted) · share
      targets.forEach((target, row) => {
        delta[row * vocab_size + target] -= 1;
        for (let i = row * vocab_size; i < (row + 1) * vocab_size; i++) delta[i] *= shares[row];
      });
      backEmbed(backs.reduceRight((d, back) => back(d), backNorm(backOutput(delta))));
    };
    return [losses, back];
  }

  /**
   * The mean loss of what follows each token, in nats, and the way back to all gradients.
   *
   * @param {number[]} inputs ids (batch · tokens)
   * @param {number[]} targets ids (batch · tokens)
   * @param {number} tokens of each text
   * @returns {[number, () => void]}
   */
  loss(inputs, targets, tokens) {
    const [losses, back] = this.losses(inputs, targets, tokens);
    const { length } = targets;
    const mean = losses.reduce((sum, loss) => sum + loss / length, 0);
    return [mean, () => back(new Float32Array(length).fill(1 / length))];
  }

  /* --- learning --------------------------------------------------------------------------- */

  /* The share of the highest learning rate: it rises for a twentieth of the steps, then falls
     to a tenth along a cosine. */
  schedule() {
    const { steps } = this.settings;
    const warm = steps / 20;
    if (this.step < warm) return (this.step + 1) / warm;
    const gone = Math.min(1, (this.step - warm) / (steps - warm));
    return 0.1 + 0.45 * (1 + Math.cos(Math.PI * gone));
  }

  /**
   * One step of AdamW on a batch.
   *
   * @param {number[]} inputs ids (batch · tokens)
   * @param {number[]} targets ids (batch · tokens)
   * @param {number} tokens of each text
   * @returns {number} the loss of the batch before the step
   */
  learn(inputs, targets, tokens) {
    const [loss, back] = this.loss(inputs, targets, tokens);
    back();
    this.update();
    return loss;
  }

  /** One step of AdamW along the gradients that are there. */
  update() {
    const { learning_rate, weight_decay, clip } = this.settings;
    let square = 0;
    for (const gradient of this.gradients.values()) for (const g of gradient) square += g * g;
    const shorter = Math.min(1, clip / (Math.sqrt(square) + 1e-6));
    const rate = learning_rate * this.schedule();
    const [keep1, keep2] = [0.9, 0.99];
    this.step++;
    const warm1 = 1 - keep1 ** this.step;
    const warm2 = 1 - keep2 ** this.step;
    for (const [name, weight] of Object.entries(this.named())) {
      const gradient = this.gradientOf(weight);
      const [first, second] = /** @type {[Float32Array, Float32Array]} */ (
        this.moments.get(weight)
      );
      const isMatrix = name.endsWith("weight") && !name.includes("norm");
      const decay = 1 - (isMatrix ? rate * weight_decay : 0);
      for (let i = 0; i < weight.length; i++) {
        const g = gradient[i] * shorter;
        first[i] = keep1 * first[i] + (1 - keep1) * g;
        second[i] = keep2 * second[i] + (1 - keep2) * g * g;
        const update = first[i] / warm1 / (Math.sqrt(second[i] / warm2) + 1e-8);
        weight[i] = weight[i] * decay - rate * update;
      }
    }
  }
}
