/* The training of training.js, in a worker: steps, a loss on text that is kept apart, and
   what the model writes so far. */

import { initial, Trainer } from "./train.js";
import { randomness, write } from "./writing.js";

const EVERY = 700; // milliseconds between two reports, of which estimates take a part
const WINDOWS = 48; // of the text kept apart, always the same
const SAMPLE = 120; // characters

/** @import { Config } from "./engine.js" */

/**
 * What a training begins with.
 *
 * @typedef {object} Settings
 * @property {string} text what is learned; its last tenth is kept apart
 * @property {Omit<Config, "vocab_size">} config
 * @property {number} batch texts a step
 * @property {number} steps of the whole training
 * @property {number} learning_rate the highest
 * @property {number} seed of the first weights and of the texts of each step
 */

/**
 * What is told of a training on its way.
 *
 * @typedef {object} Report
 * @property {number} step how many are done
 * @property {number} seconds since it began
 * @property {number} loss in nats a character, on the text that is kept apart
 * @property {string} sample what the model writes
 * @property {boolean} done whether this was the last step
 */

/**
 * Answer { start: settings } with reports, until the last step, or with { error }. To stop is to
 * end the worker.
 *
 * @param {WorkerScope} scope
 */
export function serve(scope) {
  scope.onmessage = ({ data }) => {
    try {
      train(data.start);
    } catch (error) {
      scope.postMessage({ error: error.message });
    }
  };

  /**
   * Train a new model, with all steps in one go.
   *
   * @param {Settings} settings
   */
  function train({ text, config, batch, steps, learning_rate, seed }) {
    const alphabet = Array.from(new Set(text)).sort();
    const { context } = config;
    const place = new Map(alphabet.map((character, id) => [character, id]));
    /* The ID of a character. */
    const idOf = (/** @type {string} */ character) => /** @type {number} */ (place.get(character));
    const ids = Array.from(text, idOf);
    const cut = ids.length - Math.floor(ids.length / 10); // as lmcourse.gpt.training.split
    const model = initial({ ...config, vocab_size: alphabet.length }, seed);
    const trainer = new Trainer(model, { learning_rate, steps });
    const random = randomness(seed + 1);
    /**
     * Texts as long as the context, one after the other, and what follows each of their characters.
     *
     * @param {number[]} starts their first positions
     */
    const windows = (starts) => ({
      inputs: starts.flatMap((start) => ids.slice(start, start + context)),
      targets: starts.flatMap((start) => ids.slice(start + 1, start + context + 1)),
    });
    const last = ids.length - context - 1;
    const apart = Array.from({ length: WINDOWS }, (_, i) =>
      Math.round(cut + ((last - cut) * i) / (WINDOWS - 1)),
    );
    let spent = 0; // milliseconds of training
    let from = performance.now(); // when the training began or went on after a report

    /* Tell how far it is; the time that this takes is not counted. */
    function report() {
      spent += performance.now() - from;
      const { inputs, targets } = windows(apart);
      const [loss] = trainer.loss(inputs, targets, context);
      const first = place.get("\n") ?? 0;
      const sampling = { count: SAMPLE, temperature: 0.8 };
      const written = Array.from(write(model, [first], { ...sampling, seed: trainer.step }));
      const sample = written.map(({ id }) => alphabet[id]).join("");
      const done = trainer.step >= steps;
      scope.postMessage({ step: trainer.step, seconds: spent / 1000, loss, sample, done });
      from = performance.now();
    }

    report();
    while (trainer.step < steps) {
      /* Where a text of the training part begins. */
      const randomStart = () => Math.floor(random() * (cut - context));
      const { inputs, targets } = windows(Array.from({ length: batch }, randomStart));
      trainer.learn(inputs, targets, context);
      if (performance.now() - from >= EVERY || trainer.step >= steps) report();
    }
  }
}
