/* The training of own-text.js, in a worker: a GPT learns a text of the reader's, beside the
   best n-gram model of the same text. When it is stopped, or has done its steps, it reads
   what was held out, and hands over all that is needed to go on. */

import { Model } from "./engine.js";
import { Ngrams } from "./ngrams.js";
import { largest, mean } from "./numbers.js";
import { alphabetOf, partsOf } from "./own-texts.js";
import { initial, Trainer } from "./train.js";
import { draw, nextProbs, randomness, write } from "./writing.js";

const EVERY = 1200; // milliseconds between two reports, of which estimates take a part
const WINDOWS = 24; // of the validation text, always the same
const SAMPLE = 120; // characters on the way
const WRITTEN = 400; // characters of each of the samples at the end
const PASSAGE = 280; // characters whose surprise is shown
const GUESSES = 4; // likeliest characters that are shown for each
const LONGEST = 7; // of the n-grams: longer ones bring nothing more
const TEMPERATURE = 0.8; // of what is written
const SURPRISED = 7; // nats: the darkest colour

/** @import { Config } from "./engine.js" */
/** @import { Letter } from "./surprise.js" */

/** @typedef {Record<string, Float32Array>} Weights by name */

/**
 * What a training begins with.
 *
 * @typedef {object} Settings
 * @property {string[]} text its characters
 * @property {Omit<Config, "vocab_size">} config
 * @property {number} batch texts a step
 * @property {number} steps of the whole training
 * @property {number} learning_rate the highest
 * @property {number} seed of the first weights, of the texts of each step and of what is written
 * @property {State | null} state of a training that goes on; null: it begins
 */

/**
 * Where a training stands.
 *
 * @typedef {object} State
 * @property {number} step how many were taken
 * @property {number} seconds that they took
 * @property {Weights} weights
 * @property {Weights[]} moments Adam's two running means, of each weight
 * @property {Best} best
 */

/**
 * The moment of the lowest loss on the validation text.
 *
 * @typedef {{ step: number, loss: number, weights: Weights }} Best
 */

/**
 * What is known before the first step.
 *
 * @typedef {object} Counted
 * @property {string[]} alphabet
 * @property {Record<"training" | "validation" | "test", number>} sizes characters of each part
 * @property {number[]} losses of n-grams on the validation text, in nats a character, by their
 *   length from 1 on
 * @property {number} order the length of the n-grams with the lowest loss
 * @property {number} line their loss, in nats a character, at the characters on which the GPT's
 *   is estimated: a line in its chart
 */

/**
 * What is told of a training on its way.
 *
 * @typedef {object} Report
 * @property {number} step how many are done
 * @property {number} seconds of training since it began
 * @property {number} loss in nats a character, estimated on the validation text
 * @property {string} sample what the model writes
 */

/**
 * What is told at the end.
 *
 * @typedef {object} Result
 * @property {number} step of the weights that were taken: those with the lowest loss
 * @property {number} characters that both predicted, of the test text
 * @property {{ gpt: number, ngrams: number }} losses of these, in nats a character
 * @property {[number, number] | null} interval 95 % of the difference, the GPT's less the
 *   n-grams'; null if the text is too short to tell
 * @property {{ gpt: string, ngrams: string }} samples what each writes
 * @property {string} passage of the test text, without its first character
 * @property {{ gpt: Letter[], ngrams: Letter[] }} letters what each expected of its characters
 */

/**
 * Predictions along a text: each token but the first is predicted from what stands before it, half
 * a context at least, if there is as much, and a whole one at most.
 *
 * @param {Model} model
 * @param {number[]} ids
 * @returns {Generator<{ position: number, probs: Float32Array }, void, void>} for each position from
 *   1 on, `position`, the probabilities of its token, (vocab_size,)
 */
export function* predictions(model, ids) {
  const { context, vocab_size } = model.config;
  const step = context >> 1;
  for (let start = 0, next = 1; next < ids.length; start += step) {
    const window = ids.slice(start, Math.min(start + context, ids.length - 1));
    const logits_of = [];
    for (let row = next - start - 1; row < window.length; row++) logits_of.push(row);
    const { logits } = model.forward(window, { logits_of });
    for (let row = 0; row < logits_of.length; row++, next++) {
      const of = /** @type {Float32Array} */ (logits);
      yield {
        position: next,
        probs: nextProbs(of.slice(row * vocab_size, (row + 1) * vocab_size)),
      };
    }
  }
}

/**
 * The 95 % interval of the mean of differences. Neighbouring characters are alike, so the text is
 * cut into pieces of a hundred, and the means of these are what varies.
 *
 * @param {number[]} differences one for each character of a text
 * @returns {[number, number] | null} its ends; null if there are fewer than ten pieces
 */
export function interval(differences) {
  const means = [];
  for (let start = 0; start + 100 <= differences.length; start += 100)
    means.push(mean(differences.slice(start, start + 100)));
  if (means.length < 10) return null;
  const middle = mean(means);
  const variance = mean(means.map((one) => (one - middle) ** 2)) / (means.length - 1);
  const half = 2.1 * Math.sqrt(variance); // half the interval's width
  return [middle - half, middle + half];
}

/**
 * What was expected of a character, for surprise.js: its probability in percent; its surprise,
 * from 0 to 1 (SURPRISED nats or more); the GUESSES likeliest characters with their probabilities
 * in percent.
 *
 * @param {ArrayLike<number>} probs of all characters, (alphabet,)
 * @param {number} id of the one that stands there
 * @param {string[]} alphabet the character of each ID
 * @returns {Letter}
 */
function letterOf(probs, id, alphabet) {
  const likeliest = largest(probs, GUESSES);
  const surprise = Math.min(1, -Math.log(probs[id]) / SURPRISED);
  return [100 * probs[id], surprise, likeliest.map((i) => [alphabet[i], 100 * probs[i]])];
}

/**
 * Wait until the messages that have come in are handled.
 *
 * @returns {Promise<unknown>}
 */
function messagesHandled() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = resolve;
    port2.postMessage(0);
  });
}

/** A training, and what it is compared with. */
export class Learning {
  /**
   * Cut the text into its parts and make a model, a new one or that of a state.
   *
   * @param {Settings} settings
   */
  constructor({ text, config, batch, steps, learning_rate, seed, state }) {
    this.alphabet = alphabetOf(text);
    const idOf = new Map(this.alphabet.map((character, id) => [character, id]));
    const ids = text.map((character) => /** @type {number} */ (idOf.get(character)));
    const parts = partsOf(ids);
    this.training = parts.training.flat();
    this.validation = parts.validation.flat();
    this.test = parts.test.flat();
    this.context = config.context;
    this.batch = batch;
    this.steps = steps;
    this.seed = seed;
    this.first = idOf.get("\n") ?? idOf.get(" ") ?? ids[0]; // what samples begin after
    this.config = { ...config, vocab_size: this.alphabet.length };
    this.trainer = new Trainer(initial(this.config, seed), { learning_rate, steps });
    this.seconds = 0;
    this.starts = this.evenly(this.validation.length - this.context - 1);
    /** @type {Best} */
    this.best = { step: 0, loss: Infinity, weights: {} };
    if (state) this.restore(state);
  }

  /**
   * Positions that lie evenly from 0 to the last: `WINDOWS` of them, or fewer in a short text.
   *
   * @param {number} last
   */
  evenly(last) {
    const windows = Math.min(WINDOWS, last + 1);
    return Array.from({ length: windows }, (_, i) =>
      Math.round((last * i) / Math.max(1, windows - 1)),
    );
  }

  /**
   * Count the n-grams of the training text, and find the length with the lowest loss on the
   * validation text. `result` needs both.
   *
   * @returns {Counted}
   */
  count() {
    const { training, validation, test, alphabet } = this;
    this.ngrams = new Ngrams(training, alphabet.length, LONGEST);
    this.losses = this.ngrams.losses(validation);
    this.order = this.losses.indexOf(Math.min(...this.losses)) + 1;
    const byToken = this.ngrams.lossesOf(validation, this.order);
    const scored = this.starts.flatMap((start) => Array.from(this.scored(byToken, start)));
    const line = mean(scored); // of the same tokens as the GPT's loss in `estimate`
    const sizes = {
      training: training.length,
      validation: validation.length,
      test: test.length,
    };
    return { alphabet, sizes, losses: this.losses, order: this.order, line };
  }

  /**
   * What is scored of a window: its second half, where enough stands before each character.
   *
   * @template {{ slice(from: number, to: number): any }} All
   * @param {All} all one for each token
   * @param {number} start of the window
   * @returns {All}
   */
  scored(all, start) {
    return all.slice(start + (this.context >> 1) + 1, start + this.context + 1);
  }

  /** The mean loss on some windows of the validation text, always the same, in nats a character. */
  estimate() {
    const { model } = this.trainer;
    const rows = Array.from({ length: this.context }, (_, i) => i).slice(this.context >> 1);
    const { vocab_size } = this.config;
    let sum = 0;
    for (const start of this.starts) {
      const window = this.validation.slice(start, start + this.context);
      const logits = /** @type {Float32Array} */ (
        model.forward(window, { logits_of: rows }).logits
      );
      this.scored(this.validation, start).forEach((id, row) => {
        const probs = nextProbs(logits.slice(row * vocab_size, (row + 1) * vocab_size));
        sum -= Math.log(probs[id]) / rows.length / this.starts.length;
      });
    }
    return sum;
  }

  /** Take one step; its windows depend on the seed and the step's number alone, so a training can
      go on where it was stopped. */
  learn() {
    const { context, training, trainer } = this;
    const random = randomness(Math.imul(this.seed, 1_000_003) + trainer.step);
    /** @type {number[]} */
    const inputs = [];
    /** @type {number[]} */
    const targets = [];
    for (let i = 0; i < this.batch; i++) {
      const start = Math.floor(random() * (training.length - context));
      inputs.push(...training.slice(start, start + context));
      targets.push(...training.slice(start + 1, start + context + 1));
    }
    trainer.learn(inputs, targets, context);
  }

  /** Copies of all weights, by name. */
  weights() {
    const named = Object.entries(this.trainer.named());
    return Object.fromEntries(named.map(([name, weight]) => [name, weight.slice()]));
  }

  /**
   * Estimate the loss, and keep the weights if it was never lower; let the model write. An Error
   * if the loss is no number.
   *
   * @returns {Report}
   */
  report() {
    const { trainer, alphabet, first, seconds } = this;
    const { step } = trainer;
    const loss = this.estimate();
    if (!Number.isFinite(loss)) throw new Error("its numbers grew without end");
    if (loss < this.best.loss) this.best = { step, loss, weights: this.weights() };
    const options = { count: SAMPLE, temperature: TEMPERATURE, seed: step };
    const written = Array.from(write(trainer.model, [first], options));
    return { step, seconds, loss, sample: written.map(({ id }) => alphabet[id]).join("") };
  }

  /**
   * Where the training stands, in copies but for Adam's running means and the best weights.
   *
   * @returns {State}
   */
  state() {
    const { trainer, seconds, best } = this;
    const named = Object.entries(trainer.named());
    const moments = [0, 1].map((which) =>
      Object.fromEntries(
        named.map(([name, weight]) => [name, (trainer.moments.get(weight) ?? [])[which]]),
      ),
    );
    return { step: trainer.step, seconds, weights: this.weights(), moments, best };
  }

  /**
   * Go on where a training stood.
   *
   * @param {State} state
   */
  restore({ step, seconds, weights, moments, best }) {
    const { trainer } = this;
    trainer.step = step;
    for (const [name, weight] of Object.entries(trainer.named())) {
      weight.set(weights[name]);
      trainer.moments.get(weight)?.forEach((moment, which) => moment.set(moments[which][name]));
    }
    this.seconds = seconds;
    this.best = best;
  }

  /**
   * Let the best weights and the n-grams read the test text, and write. In pieces, for a worker to
   * look whether it goes on. An Error if `count` was not called.
   *
   * @returns {Generator<number, Result, void>} yields the position of each character that is read
   */
  *result() {
    const { alphabet, test, ngrams, order = 1, best } = this;
    if (!ngrams) throw new Error("nothing was counted");
    const model = new Model(this.config, { floats: (name) => best.weights[name] });
    const counted = Array.from(ngrams.lossesOf(test, order)).slice(1);
    const losses = [];
    const passage = test.slice(0, PASSAGE);
    const gpt = [];
    for (const { position, probs } of predictions(model, test)) {
      losses.push(-Math.log(Math.max(probs[test[position]], 1e-30)));
      if (position < passage.length) gpt.push(letterOf(probs, test[position], alphabet));
      yield position;
    }
    const byCount = passage.slice(1).map((id, i) => {
      const before = passage.slice(Math.max(0, i + 1 - order), i + 1);
      return letterOf(ngrams.next(before, order), id, alphabet);
    });
    /**
     * The text of IDs.
     *
     * @param {number[]} ids
     */
    const textOf = (ids) => ids.map((id) => alphabet[id]).join("");
    const options = { count: WRITTEN, temperature: TEMPERATURE, seed: this.seed };
    const written = Array.from(write(model, [this.first], options));
    const random = randomness(this.seed + 1);
    const drawn = [this.first];
    for (let i = 0; i < WRITTEN; i++) {
      const probs = ngrams.next(drawn.slice(-order), order).map(Math.log);
      drawn.push(draw(nextProbs(probs, { temperature: TEMPERATURE }), random));
    }
    return {
      step: best.step,
      characters: losses.length,
      losses: { gpt: mean(losses), ngrams: mean(counted) },
      interval: interval(losses.map((loss, i) => loss - counted[i])),
      samples: { gpt: textOf(written.map(({ id }) => id)), ngrams: textOf(drawn.slice(1)) },
      passage: textOf(passage.slice(1)),
      letters: { gpt, ngrams: byCount },
    };
  }
}

/**
 * Answer { start: settings } with { counted }, some { report } and, at the last step or after
 * { stop: true }, with { reading: true } and then { result, state }; with { error } if something
 * fails.
 *
 * @param {WorkerScope} scope
 */
export function serve(scope) {
  let stopped = false;
  scope.onmessage = ({ data }) => {
    if (data.stop) stopped = true;
    else
      train(data.start).catch((error) => {
        scope.postMessage({ error: error.message || "there is not enough memory" });
      });
  };

  /**
   * Train from the beginning or from a state, until the last step or until it is stopped.
   *
   * @param {Settings} settings
   */
  async function train(settings) {
    const learning = new Learning(settings);
    scope.postMessage({ counted: learning.count() });
    let from = performance.now(); // when the step began
    let reported = from;
    /* Tell how far it is. */
    const report = () => scope.postMessage({ report: learning.report() });
    if (!settings.state) report();
    while (learning.trainer.step < learning.steps && !stopped) {
      from = performance.now();
      learning.learn();
      await messagesHandled();
      learning.seconds += (performance.now() - from) / 1000;
      if (performance.now() - reported < EVERY) continue;
      report();
      reported = performance.now();
    }
    report();
    scope.postMessage({ reading: true });
    const reading = learning.result();
    let part = reading.next();
    while (!part.done) part = reading.next();
    scope.postMessage({ result: part.value, state: learning.state() });
  }
}
