/* The training of choices-view.js, in a worker: the GPT learns which of two lines was chosen.
   The reader's choices are in what it is asked, and nowhere else. */

import { lineLogProbs, preferenceStep } from "./preferences.js";
import { shuffled } from "./random.js";
import { Trainer } from "./train.js";
import { serve as answer, REQUESTS } from "./worker.js";
import { write } from "./writing.js";

/** @import { Model } from "./engine.js" */
/** @import { Pair } from "./preferences.js" */

/**
 * @typedef {object} Settings
 * @property {number} newLine the ID of the end of a line
 * @property {number} steps of the whole training
 * @property {number} pairs of a step
 * @property {number} rate the highest learning rate
 * @property {number} beta of direct preference optimisation
 * @property {number} seed of the order of pairs and of what is written
 * @property {number[][][]} chosen pairs of lines as ids: what was chosen, and the other
 */

/**
 * What is measured of a model, before and after.
 *
 * @typedef {object} Measured
 * @property {number[][]} lines that it writes, as ids
 * @property {number} loss on held-out texts, in nats a character
 * @property {number} agreed in how many pairs it gives the line that was chosen a higher
 *   probability than the other
 */

/** @typedef {{ trainer: Trainer, settings: Settings, pairs: Pair[] }} Learning a training */

/** @type {WeakMap<Model, Learning>} the training of each model, by `begin` */
const learnings = new WeakMap();

/**
 * The log-probabilities of both lines of each pair, with a pause after each.
 *
 * @param {Learning} learning
 * @returns {Generator<{}, [chosen: number, rejected: number][], void>} in nats
 */
function* judged({ trainer, settings, pairs }) {
  /** @type {[number, number][]} */
  const logProbs = [];
  for (const { chosen, rejected } of pairs) {
    const [sums] = lineLogProbs(trainer, [chosen, rejected], settings.newLine);
    logProbs.push([sums[0], sums[1]]);
    yield {};
  }
  return logProbs;
}

const requests = {
  ...REQUESTS,
  /**
   * Begin a training of a model, which learned nothing yet: its own log-probabilities are the
   * reference.
   *
   * @param {Model} model
   * @param {{ settings: Settings }} details
   */
  *begin(model, { settings }) {
    const { rate, steps, chosen } = settings;
    const trainer = new Trainer(model, { learning_rate: rate, steps, weight_decay: 0 });
    const pairs = chosen.map(([chosen, rejected]) => {
      /** @type {Pair} */
      const pair = { chosen, rejected, reference: [0, 0] };
      return pair;
    });
    const learning = { trainer, settings, pairs };
    learnings.set(model, learning);
    const before = yield* judged(learning);
    pairs.forEach((pair, i) => {
      pair.reference = before[i];
    });
    return true;
  },
  /**
   * Take all steps of the training, a piece { step, loss } after each. Who cancels the request
   * stops it there.
   *
   * @param {Model} model
   */
  *learn(model) {
    const { trainer, settings, pairs } = /** @type {Learning} */ (learnings.get(model));
    const order = Float32Array.from(pairs.keys());
    /** @type {number[]} */
    let left = [];
    for (let round = 0; trainer.step < settings.steps; ) {
      if (!left.length) left = Array.from(shuffled(order, settings.seed + round++));
      const batch = left.splice(0, settings.pairs).map((place) => pairs[place]);
      const loss = preferenceStep(trainer, batch, settings.newLine, settings.beta);
      yield { piece: { step: trainer.step, loss } };
    }
    return true;
  },
  /**
   * Measure a model as it stands: what it writes, its loss, and on which pairs it agrees.
   *
   * @param {Model} model
   * @param {{ count: number, longest: number, temperature: number, texts: number[][] }} details how
   *   many lines it writes, the most characters of each, at which temperature; held-out texts as
   *   IDs
   * @returns {Generator<{}, Measured, void>}
   */
  *measure(model, { count, longest, temperature, texts }) {
    const learning = /** @type {Learning} */ (learnings.get(model));
    const { newLine, seed } = learning.settings;
    const lines = [];
    for (let number = 0; number < count; number++) {
      const line = [];
      const options = { count: longest, temperature, seed: seed * 1000 + number };
      for (const { id } of write(model, [newLine], options)) {
        if (id === newLine) break;
        line.push(id);
      }
      lines.push(line);
      yield {};
    }
    let loss = 0;
    for (const text of texts) {
      const tokens = text.length - 1;
      const [mean] = learning.trainer.loss(text.slice(0, -1), text.slice(1), tokens);
      loss += mean / texts.length;
      yield {};
    }
    const now = yield* judged(learning);
    return { lines, loss, agreed: now.filter(([chosen, rejected]) => chosen > rejected).length };
  },
};

/**
 * What the worker runs.
 *
 * @param {WorkerScope} scope
 */
export const serve = (scope) => answer(scope, undefined, requests);
