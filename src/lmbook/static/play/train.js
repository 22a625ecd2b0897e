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

/* A new model with the weights that `GPT.initialise` draws: N(0, 0.02²), and smaller where
   a block adds to the residual stream. */
export function initial(config, seed) {
  const random = randomness(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const floats = (name, rows, columns = 1) => {
    const values = new Float32Array(rows * columns);
    if (columns === 1) return values.fill(name.endsWith("weight") ? 1 : 0); // norms, biases
    const adds = name.endsWith("attention.output.weight") || name.endsWith("down.weight");
    const scale = adds ? 0.02 / Math.sqrt(2 * config.layers) : 0.02;
    return values.map(() => scale * normal());
  };
  return new Model(config, { floats });
}

/* (rows, columns) → (columns, rows). */
function transposed(x, columns) {
  const rows = x.length / columns;
  const out = new Float32Array(x.length);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      out[column * rows + row] = x[row * columns + column];
  return out;
}

function add(to, x) {
  for (let i = 0; i < to.length; i++) to[i] += x[i];
  return to;
}

export class Trainer {
  constructor(model, { learning_rate = 3e-3, weight_decay = 0.1, clip = 1, steps } = {}) {
    this.model = model;
    this.settings = { learning_rate, weight_decay, clip, steps };
    this.step = 0;
    this.gradients = new Map(); // weight → its gradient, of the same length
    this.moments = new Map(); // weight → Adam's two running means
    for (const weight of Object.values(this.named())) {
      this.gradients.set(weight, new Float32Array(weight.length));
      this.moments.set(weight, [new Float32Array(weight.length), new Float32Array(weight.length)]);
    }
  }

  /* Every weight: name → Float32Array, under the names of engine.js. */
  named() {
    const { model } = this;
    const found = { "tokens.weight": model.table.weight, "positions.weight": model.positions };
    const enter = (name, part) => {
      if (part instanceof Float32Array) found[name] = part;
      else for (const [key, inner] of Object.entries(part || {})) enter(`${name}.${key}`, inner);
    };
    model.blocks.forEach((block, layer) => enter(`blocks.${layer}`, block));
    enter("norm", model.norm);
    return found;
  }

  /* --- steps, forward and back ----------------------------------------------------------- */

  /* y = x Wᵀ + b; back: x's is δ W, W's is δᵀ x, b's is δ summed over the rows. */
  dense(x, { weight, bias }, columns) {
    const y = linear(x, { weight, bias }, columns);
    const rows = weight.length / columns;
    const count = x.length / columns;
    const back = (delta) => {
      const across = { weight: transposed(x, columns) };
      add(this.gradients.get(weight), linear(transposed(delta, rows), across, count));
      if (bias) {
        const gradient = this.gradients.get(bias);
        for (let i = 0; i < delta.length; i++) gradient[i % rows] += delta[i];
      }
      return linear(delta, { weight: transposed(weight, columns) }, rows);
    };
    return [y, back];
  }

  /* LayerNorm: n = (x - mean) · scale, y = n · weight + bias. Back through n: what would move
     the mean or the length of n is taken out, since the norm undoes it. */
  norm(x, { weight, bias }) {
    const d_model = weight.length;
    const { normed, scales } = normalise(x, d_model, this.model.config.eps);
    const y = normed.map((value, n) => value * weight[n % d_model] + bias[n % d_model]);
    const back = (delta) => {
      const dWeight = this.gradients.get(weight);
      const dBias = this.gradients.get(bias);
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

  /* Causal attention of each text by itself; query, key, value (batch · tokens, d_model). */
  attention(query, key, value, tokens) {
    const { heads, d_model } = this.model.config;
    const { d_head } = this.model;
    const texts = query.length / d_model / tokens;
    const root = Math.sqrt(d_head);
    const shape = { heads, d_model, keys: tokens };
    const sees = (i, j) => j <= i;
    const y = new Float32Array(query.length);
    const weights = new Float32Array(texts * heads * tokens * tokens); // 0 ahead of a token
    for (let text = 0; text < texts; text++) {
      const start = text * tokens * d_model;
      const of = (x) => x.subarray(start, start + tokens * d_model);
      const scores = attentionScores(of(query), of(key), shape, sees);
      softmaxRows(scores, tokens);
      weights.set(scores, text * scores.length);
      y.set(mixValues(scores, of(value), shape), start);
    }
    /* Call `visit` for each token i of each head, with where i's numbers and its weights
       begin, and with where those of token 0 begin. */
    const each = (visit) => {
      for (let text = 0; text < texts; text++)
        for (let head = 0; head < heads; head++) {
          const first = text * tokens * d_model + head * d_head;
          for (let i = 0; i < tokens; i++)
            visit(i, first + i * d_model, ((text * heads + head) * tokens + i) * tokens, first);
        }
    };
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

  /* GELU, as GPT-2 computes it; back: by its slope. */
  gelu(x) {
    const root = Math.sqrt(2 / Math.PI);
    const cubic = 0.044715;
    const slope = (value) => {
      const t = Math.tanh(root * (value + cubic * value ** 3));
      return 0.5 * (1 + t) + 0.5 * value * (1 - t * t) * root * (1 + 3 * cubic * value ** 2);
    };
    return [x.map(ACTIVATIONS.gelu_new), (delta) => delta.map((d, i) => d * slope(x[i]))];
  }

  /* One block; where two ways meet, back, their gradients are added. */
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
    const back = (delta) => {
      delta = added(delta, backNorm2(backUp(backGelu(backDown(delta)))));
      const [dQuery, dKey, dValue] = backAttention(backOutput(delta));
      const dSeen = add(add(backQuery(dQuery), backKey(dKey)), backValue(dValue));
      return added(delta, backNorm1(dSeen));
    };
    return [added(middle, lowered), back];
  }

  /* Token vectors and positions; back: each row of the two tables gets what used it. */
  embed(ids, tokens) {
    const { model } = this;
    const { d_model } = model.config;
    const table = model.table.weight;
    const x = new Float32Array(ids.length * d_model);
    for (let start = 0; start < ids.length; start += tokens)
      x.set(model.embed(ids.slice(start, start + tokens)), start * d_model);
    const back = (delta) => {
      const dTable = this.gradients.get(table);
      const dPositions = this.gradients.get(model.positions);
      for (let row = 0; row < ids.length; row++)
        for (let i = 0; i < d_model; i++) {
          dTable[ids[row] * d_model + i] += delta[row * d_model + i];
          dPositions[(row % tokens) * d_model + i] += delta[row * d_model + i];
        }
    };
    return [x, back];
  }

  /* The mean loss of what follows each token, in nats, and the way back to all gradients.
     inputs, targets: ids (batch · tokens). */
  loss(inputs, targets, tokens) {
    const { model } = this;
    const { d_model, vocab_size } = model.config;
    let [x, backEmbed] = this.embed(inputs, tokens);
    const backs = [];
    for (const block of model.blocks) {
      const [next, back] = this.block(x, block, tokens);
      backs.push(back);
      x = next;
    }
    const [normed, backNorm] = this.norm(x, model.norm);
    const [p, backOutput] = this.dense(normed, model.table, d_model); // logits, yet
    let loss = 0;
    targets.forEach((target, row) => {
      softmax(p, row * vocab_size, (row + 1) * vocab_size);
      loss -= Math.log(p[row * vocab_size + target]) / targets.length;
    });
    const back = () => {
      for (const gradient of this.gradients.values()) gradient.fill(0);
      const delta = p.map((prob) => prob / targets.length); // (p - wanted) / rows
      targets.forEach((target, row) => (delta[row * vocab_size + target] -= 1 / targets.length));
      backEmbed(backs.reduceRight((d, back) => back(d), backNorm(backOutput(delta))));
    };
    return [loss, back];
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

  /* One step of AdamW on a batch; returns its loss. */
  learn(inputs, targets, tokens) {
    const [loss, back] = this.loss(inputs, targets, tokens);
    back();
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
      const gradient = this.gradients.get(weight);
      const [first, second] = this.moments.get(weight);
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
    return loss;
  }
}
