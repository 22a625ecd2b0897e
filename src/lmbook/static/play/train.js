/* A GPT learns in the page: its loss on a batch, the gradients by all weights, and AdamW. The
   weights of the model are changed where they stand. The model computes as engine.js says;
   recording.js finds the gradients. */

import { Model, softmax } from "./engine.js";
import { checkTrainable, Recording } from "./recording.js";
import { randomness } from "./writing.js";

/** @import { Config } from "./engine.js" */

/**
 * @typedef {object} TrainerSettings
 * @property {number} [learning_rate] the highest
 * @property {number} [weight_decay] of matrices
 * @property {number} [clip] the longest gradient that is taken as it is
 * @property {number} steps of the whole training, for the schedule
 */

/**
 * A new model with weights drawn as `GPT.initialise` draws them: matrices from N(0, 0.02²), and
 * smaller where a block adds to the residual stream; weights of norms are 1, all biases 0.
 *
 * @param {Config} config
 * @param {number} seed
 * @returns {Model}
 */
export function initial(config, seed) {
  const random = randomness(seed);
  /* A number from N(0, 1), by the method of Box and Muller. */
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  /**
   * The first numbers of a weight.
   *
   * @type {(name: string, rows: number, columns?: number) => Float32Array}
   */
  const floats = (name, rows, columns = 1) => {
    const values = new Float32Array(rows * columns);
    if (columns === 1) return values.fill(name.endsWith("weight") ? 1 : 0); // norms, biases
    const adds = name.endsWith("attention.output.weight") || name.endsWith("down.weight");
    const scale = adds ? 0.02 / Math.sqrt(2 * config.layers) : 0.02;
    return values.map(() => scale * normal());
  };
  return new Model(config, { floats });
}

export class Trainer {
  /**
   * Begin to train a model. An Error if it is none that the page can train.
   *
   * @param {Model} model a GPT with learned positions whose weights are float32; they are changed
   * @param {TrainerSettings} settings
   */
  constructor(model, { learning_rate = 3e-3, weight_decay = 0.1, clip = 1, steps }) {
    checkTrainable(model.config);
    this.model = model;
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
   * The gradient by a weight.
   *
   * @param {Float32Array} weight one of the model's
   * @returns {Float32Array} of the same length
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
    const { table, positions, blocks, norm } = this.model;
    /** @type {Record<string, Float32Array>} */
    const weights = {};
    /**
     * Enter a weight, or all weights of a part that holds several.
     *
     * @type {(name: string, part: Float32Array | object | undefined) => void}
     */
    const enter = (name, part) => {
      if (part instanceof Float32Array) weights[name] = part;
      else for (const [key, inner] of Object.entries(part || {})) enter(`${name}.${key}`, inner);
    };
    enter("tokens", table);
    enter("positions.weight", positions);
    blocks.forEach((block, layer) => enter(`blocks.${layer}`, block));
    enter("norm", norm);
    return weights;
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
    const { config } = this.model;
    const recording = new Recording(config, this.named(), this.gradients);
    const { logits } = recording.forward(inputs, { tokens });
    const p = /** @type {Float32Array} */ (logits); // logits until softmax makes them probabilities
    /**
     * Where a row of p begins and ends.
     *
     * @type {(row: number) => [start: number, end: number]}
     */
    const placeOf = (row) => [row * config.vocab_size, (row + 1) * config.vocab_size];
    const losses = Float32Array.from(targets, (target, row) => {
      const [start, end] = placeOf(row);
      softmax(p, start, end);
      return -Math.log(p[start + target]);
    });
    /**
     * Put the gradients of a weighted sum of the losses in the place of the gradients there.
     *
     * @param {ArrayLike<number>} shares how much of each loss counts
     */
    const back = (shares) => {
      for (const gradient of this.gradients.values()) gradient.fill(0);
      const delta = p.slice(); // (p - wanted) · share
      targets.forEach((target, row) => {
        const [start, end] = placeOf(row);
        delta[start + target] -= 1;
        for (let i = start; i < end; i++) delta[i] *= shares[row];
      });
      recording.back(p, delta);
    };
    return [losses, back];
  }

  /**
   * The mean loss of what follows each token, in nats, and the way back to all gradients.
   *
   * @param {number[]} inputs ids (batch · tokens)
   * @param {number[]} targets ids (batch · tokens)
   * @param {number} tokens of each text
   * @returns {[loss: number, back: () => void]}
   */
  loss(inputs, targets, tokens) {
    const [losses, back] = this.losses(inputs, targets, tokens);
    const { length } = targets;
    const mean = losses.reduce((sum, loss) => sum + loss / length, 0);
    return [mean, () => back(new Float32Array(length).fill(1 / length))];
  }

  /* --- learning --------------------------------------------------------------------------- */

  /* The share of the highest learning rate: it rises to 1 for a twentieth of the steps, or in
     the first of fewer than 20, then falls to a tenth along a cosine. */
  schedule() {
    const { steps } = this.settings;
    const warm = steps / 20;
    if (this.step < warm) return Math.min(1, (this.step + 1) / warm);
    const gone = Math.min(1, (this.step - warm) / (steps - warm));
    return 0.1 + 0.45 * (1 + Math.cos(Math.PI * gone));
  }

  /**
   * Take one step of AdamW on a batch.
   *
   * @param {number[]} inputs ids (batch · tokens)
   * @param {number[]} targets ids (batch · tokens)
   * @param {number} tokens of each text
   * @returns {number} the mean loss of the batch before the step, in nats
   */
  learn(inputs, targets, tokens) {
    const [loss, back] = this.loss(inputs, targets, tokens);
    back();
    this.update();
    return loss;
  }

  /** Take one step of AdamW along the gradients that are there; a longer one than `clip` is
      shortened to that. */
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
