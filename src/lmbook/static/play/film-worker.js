/* The model's side of film-view.js: the weights of a GPT at many steps of its training, in a
   worker. `lmcourse.film` says how they are stored; here they are found again, to the bit. */

import { Model } from "./engine.js";
import { joined } from "./store.js";
import { fromHalf, readSafetensors } from "./weights.js";
import { serve as answer, REQUESTS } from "./worker.js";

/** @import { Config } from "./engine.js" */

/**
 * What the store says beside the model's configuration.
 *
 * @typedef {object} Stops
 * @property {number[]} steps how many were made at each stop
 * @property {[name: string, shape: number[]][]} weights in the order in which they are stored;
 *   query, key and value of a layer are one
 */

/**
 * What changed in all weights from one stop to the next; at the first stop, from 0.
 *
 * @typedef {object} Change
 * @property {Int8Array} numbers of all rows of all weights, one after the other
 * @property {Float32Array} scales what 1 stands for in each row
 */

const PARTS = ["query", "key", "value"];

/**
 * Unpack bytes; an Error if the browser cannot.
 *
 * @param {Uint8Array} bytes as zlib compressed them
 * @returns {Promise<ArrayBuffer>} as they were before
 */
function inflated(bytes) {
  if (typeof DecompressionStream === "undefined")
    throw new Error("this browser is too old to unpack the weights");
  const stream = new Blob([bytes.slice()]).stream();
  return new Response(stream.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

/** A GPT at many steps of its training. */
class Film {
  /**
   * Hold what the store has.
   *
   * @param {Config & Stops} config
   * @param {Change[]} changes one for each stop
   */
  constructor(config, changes) {
    this.config = config;
    this.changes = changes;
    /** @type {Map<number, Model>} those that were asked, by stop */
    this.models = new Map();
  }

  /**
   * Read a store.
   *
   * @param {Uint8Array} bytes of the store
   * @returns {Promise<Film>}
   */
  static async read(bytes) {
    const { config, tensors } = readSafetensors(bytes);
    const film = /** @type {Config & Stops} */ (config);
    /**
     * The bytes of a tensor; none if there is no such tensor.
     *
     * @type {(name: string) => Uint8Array}
     */
    const bytesOf = (name) => tensors.get(name)?.bytes ?? new Uint8Array();
    const changes = film.steps.map(async (_, stop) => ({
      numbers: new Int8Array(await inflated(bytesOf(`${stop}.numbers`))),
      scales: Float32Array.from(
        new Uint16Array(bytesOf(`${stop}.scales`).slice().buffer),
        fromHalf,
      ),
    }));
    return new Film(film, await Promise.all(changes));
  }

  /**
   * All weights at a stop, one after the other: the sum of all changes up to it.
   *
   * @param {number} stop
   * @returns {Float32Array}
   */
  values(stop) {
    const values = new Float32Array(this.changes[0].numbers.length);
    for (const { numbers, scales } of this.changes.slice(0, stop + 1)) {
      let at = 0;
      let row = 0;
      for (const [, shape] of this.config.weights) {
        const columns = shape[shape.length - 1];
        const rows = shape.length > 1 ? shape[0] : 1;
        for (const end = row + rows; row < end; row++)
          for (const last = at + columns; at < last; at++) values[at] += numbers[at] * scales[row];
      }
    }
    return values;
  }

  /**
   * The model at a stop, made when it is first asked for.
   *
   * @param {number} stop
   * @returns {Model}
   */
  at(stop) {
    const known = this.models.get(stop);
    if (known) return known;
    const values = this.values(stop);
    /** @type {Record<string, Float32Array>} */
    const weights = {};
    let at = 0;
    for (const [name, shape] of this.config.weights) {
      const size = shape.reduce((a, b) => a * b);
      const parts = name.includes(".qkv.") ? PARTS : [""];
      parts.forEach((part, i) => {
        const from = at + (i * size) / parts.length;
        weights[name.replace("qkv", part)] = values.slice(from, from + size / parts.length);
      });
      at += size;
    }
    const model = new Model(this.config, { floats: (name) => weights[name] });
    this.models.set(stop, model);
    return model;
  }
}

/** What may be asked: what a model may be asked, of the one at a stop. */
/** @type {Record<string, (film: Film, details: any) => Generator<any, any, any>>} */
const ASKED = {
  forward: (film, { stop, ...details }) => REQUESTS.forward(film.at(stop), details),
  write: (film, { stop, ...details }) => REQUESTS.write(film.at(stop), details),
};

/**
 * Read the weights that a message brings.
 *
 * @param {{ parts: Uint8Array<ArrayBuffer>[], about: Store, name: string }} message
 */
async function open({ parts, about, name }) {
  const film = await Film.read(await joined(parts, about, name));
  return { model: film, value: film.config };
}

/**
 * What the worker runs.
 *
 * @param {WorkerScope} scope
 */
export const serve = (scope) => answer(scope, open, ASKED);
