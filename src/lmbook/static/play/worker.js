/* The model's side of client.js: a worker that reads the weights and answers one request
   after the other, so that no page ever waits for it. */

import { Model } from "./engine.js";
import { joined } from "./store.js";
import { readWhole } from "./whole-reading.js";
import { write } from "./writing.js";

/** @import { ForwardOptions } from "./engine.js" */
/** @import { Piece, Sampling, WriteOptions } from "./writing.js" */

/**
 * A request that brings the weights.
 *
 * @typedef {object} Open
 * @property {number} id of the request
 * @property {"open"} request
 * @property {Uint8Array<ArrayBuffer>[]} parts of the store
 * @property {Store} about the store
 * @property {string} name of the store
 * @property {number | null} [seed] of a random order in which the weights are shuffled; null: they
 *   stay as they are
 */

/**
 * A request that asks something; each kind has details of its own.
 *
 * @typedef {{ id: number, request: keyof typeof REQUESTS } & Record<string, any>} Question
 */

const PAUSE = 12; // milliseconds between two looks at what has come in

/**
 * Wait until the messages that have come in are handled: one that the worker sends itself comes
 * behind them. A timer would wait longer, because browsers give it at least some milliseconds.
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

/** Requests, each a generator: it yields { piece }, a piece of the answer, or anything else for a
    mere pause, and returns the answer. */
export const REQUESTS = {
  /**
   * Run the model: see Model.forward in engine.js.
   *
   * @param {Model} model
   * @param {{ ids: number[], options: ForwardOptions }} details
   */
  forward: (model, { ids, options }) => model.steps(ids, options),
  /**
   * Write on, a piece for each token: see writing.js.
   *
   * @param {Model} model
   * @param {{ ids: number[], options: WriteOptions & Sampling }} details
   */
  *write(model, { ids, options }) {
    for (const piece of write(model, ids, options)) yield { piece };
  },
  /**
   * Find the tokens nearest to a vector: see Model.nearest in engine.js.
   *
   * @param {Model} model
   * @param {{ vector: Float32Array, count: number }} details
   */
  // biome-ignore lint/correctness/useYield: it has no pieces
  *nearest(model, { vector, count }) {
    return model.nearest(vector, count);
  },
  whole: readWhole,
};

/**
 * Read the weights that a message brings. The answer is the model's configuration.
 *
 * @param {Open} message
 */
async function openStore({ parts, about, name, seed }) {
  const model = Model.read(await joined(parts, about, name), seed);
  return { model, value: model.config };
}

/**
 * Answer messages: { request: "open" } brings the weights, "cancel" says that an answer is no
 * longer wanted; the others ask something.
 *
 * @param {WorkerScope} scope
 * @param {(
 *   message: any, report: (piece: unknown) => void
 * ) => Promise<{ model: any, value: unknown }>} [open]
 *   how a model is opened; the value is what is answered
 * @param {Record<string, (model: any, details: any) => Generator<any, any, any>>} [requests] what
 *   may be asked
 */
export function serve(scope, open = openStore, requests = REQUESTS) {
  /** @type {unknown} */
  let model = null;
  let last = Promise.resolve(); // when the last request is answered
  /** @type {Set<number>} */
  const cancelled = new Set();

  /**
   * Open a model and answer with what is said of it; pieces on the way tell how far it is.
   *
   * @param {Open} message
   */
  async function begin(message) {
    const { id } = message;
    const opened = await open(message, (piece) => scope.postMessage({ id, pieces: [piece] }));
    model = opened.model;
    scope.postMessage({ id, value: opened.value });
  }

  /**
   * Answer a question, unless that is cancelled on the way. Pieces are sent a few at a time; what
   * returns nothing is answered with true.
   *
   * @param {Question} message
   */
  async function answer({ id, request, ...details }) {
    /** @type {Piece[]} */
    let pieces = [];
    let looked = performance.now();
    const run = requests[request](model, details);
    for (;;) {
      const { done, value } = run.next();
      if (!done && value.piece) pieces.push(value.piece);
      if (!done && performance.now() - looked <= PAUSE) continue;
      if (pieces.length) scope.postMessage({ id, pieces });
      if (done) return scope.postMessage({ id, value: value ?? true });
      await messagesHandled();
      if (cancelled.has(id)) return;
      pieces = [];
      looked = performance.now();
    }
  }

  /**
   * Do what a message asks; an error is sent back.
   *
   * @param {Open | Question} message
   */
  async function handle(message) {
    try {
      await messagesHandled(); // a newer request may cancel this one
      if (message.request === "open") await begin(/** @type {Open} */ (message));
      else if (!cancelled.has(message.id)) await answer(message);
    } catch (error) {
      scope.postMessage({ id: message.id, error: error.message });
    }
    cancelled.delete(message.id);
  }

  scope.onmessage = ({ data }) => {
    if (data.request === "cancel") cancelled.add(data.id);
    else last = last.then(() => handle(data));
  };
}
