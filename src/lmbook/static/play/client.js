/* A model for views: it runs in a worker of its own, shared by all views of the page.

     const gpt = openModel("gpt", context);
     await gpt.load((share) => ...);          // once; gpt.size says how much is to come
     const answer = await gpt.forward(ids, { keep: ["blocks.*.attention.weights"] }, "mine");
     if (!answer) return;                     // a newer request took its place
     await gpt.write(ids, { count: 200 }, (pieces) => ..., "mine");

   The last argument, a lane, is any word of the view's: a new request ends an older one of
   the same lane, whose promise resolves to null. Errors reject, with a message to show. */

import source from "worker:./worker.js";
import { megabytes } from "./dom.js";
import { startWorker } from "./start-worker.js";
import { CACHE, loadParts, WEIGHTS_KEPT } from "./store.js";

/** @import { Answer, Config, ForwardOptions, Neighbour } from "./engine.js" */
/** @import { Piece, Sampling, WriteOptions } from "./writing.js" */

/**
 * What a request waits for.
 *
 * @typedef {object} Waiting
 * @property {(value: any) => void} resolve the value is what the request's kind returns
 * @property {(error: Error) => void} reject
 * @property {(pieces: Piece[]) => void} [onPieces]
 */

/**
 * A model that is loaded.
 *
 * @typedef {object} Opened
 * @property {Config} config
 * @property {boolean} fromCache whether the browser had kept its weights
 * @property {string | null} notKept why the weights are not kept for the next visit; null if they
 *   are
 */

const IDLE = 120_000; // milliseconds without a request, after which the worker ends
/** @type {Record<string, Client>} */
const opened = {};

/**
 * Return the one client of a model, made when it is first asked for.
 *
 * @param {string} name of a store
 * @param {ViewContext} context
 * @param {number | null} [seed] of a random order in which its weights are shuffled, so that it has
 *   learned nothing; null: they stay as they are
 * @returns {Client}
 */
export function openModel(name, context, seed = null) {
  const key = seed === null ? name : `${name}, shuffled by ${seed}`;
  if (!opened[key]) {
    opened[key] = new Client(name, context);
    opened[key].seed = seed;
  }
  return opened[key];
}

/** A model in a worker. */
export class Client {
  /**
   * Make a client; the worker starts when it is first asked.
   *
   * @param {string} name of a store
   * @param {ViewContext} context
   * @param {string} [text] of the worker's script
   */
  constructor(name, context, text = source) {
    this.text = text;
    this.name = name;
    /** @type {number | null} of a model whose weights are shuffled */
    this.seed = null;
    this.context = context;
    this.about = context.stores[name];
    this.address = `${context.folder}play/${name}?v=${this.about.key}`;
    this.size = megabytes(this.about.bytes, 1);
    /** @type {Map<number, Waiting>} by the id of the request */
    this.waiting = new Map();
    /** @type {Record<string, number>} the id of the last request of each lane */
    this.lanes = {};
    this.count = 0;
    /** @type {Worker | null} */
    this.worker = null;
    /** @type {Promise<Opened> | null} */
    this.loading = null;
    /** @type {number | undefined} the timer that ends the worker */
    this.idle = undefined;
  }

  /**
   * Start the worker and load the weights, from what the browser kept if it did. Once they are
   * there, or on their way, nothing is begun anew.
   *
   * @param {(share: number) => void} [progress] called with the share that has come, 0 to 1
   * @returns {Promise<Opened>}
   */
  load(progress = () => {}) {
    this.loading ??= this.open(progress).catch((error) => {
      this.loading = null; // so that it may be tried again
      throw error;
    });
    return this.loading;
  }

  /**
   * What the browser kept of an earlier visit, or undefined; `open` checks it. It keeps
   * nothing for pages that were opened as files or came over an unencrypted line.
   *
   * @returns {Promise<Response | undefined>}
   */
  cached() {
    /** @type {Promise<Response | undefined>} */
    const asked = new Promise((resolve) => resolve(window.caches?.match(this.address)));
    return asked.catch(() => undefined);
  }

  /**
   * What `load` does when nothing is loaded: weights that the browser kept are asked of it first;
   * if they are not those of this build, they are loaded from the site.
   *
   * @param {(share: number) => void} progress called with the share that has come, 0 to 1
   * @returns {Promise<Opened>}
   */
  async open(progress) {
    if (!this.worker) this.start();
    const { name, about, seed } = this;
    /**
     * Give the worker the weights.
     *
     * @type {(parts: Uint8Array<ArrayBuffer>[]) => Promise<Config>}
     */
    const send = (parts) => this.ask("open", { parts, about, name, seed });
    const cached = await this.cached();
    if (cached) {
      const config = await send([new Uint8Array(await cached.arrayBuffer())]).catch(() => null);
      progress(1);
      if (config) return { config, fromCache: true, notKept: null };
    }
    const parts = await loadParts(name, this.context, progress);
    return { config: await send(parts), fromCache: false, notKept: await this.keep(parts) };
  }

  /**
   * Keep weights, in the place of those of an earlier build; return why not, or null.
   *
   * @param {Uint8Array<ArrayBuffer>[]} parts
   * @returns {Promise<string | null>}
   */
  async keep(parts) {
    if (!window.caches || !this.address.startsWith("http"))
      return "this page's address does not let the browser keep them";
    try {
      const cache = await caches.open(CACHE);
      const place = this.address.split("?")[0];
      for (const { url } of await cache.keys())
        if (url.split("?")[0] === place) await cache.delete(url);
      await cache.put(this.address, new Response(new Blob(parts)));
      dispatchEvent(new Event(WEIGHTS_KEPT));
      return null;
    } catch (error) {
      return `the browser has no room for them (${error.name})`;
    }
  }

  /* Start the worker. If it stops by itself, all that waits for an answer gets an Error. */
  start() {
    this.worker = startWorker(this.text);
    this.worker.onmessage = ({ data }) => this.onMessage(data);
    this.worker.onerror = (event) => {
      event.preventDefault();
      const error = new Error(`the model stopped: ${event.message || "out of memory?"}`);
      for (const { reject } of this.waiting.values()) reject(error);
      this.waiting.clear();
      this.end();
    };
  }

  /* End the worker: the memory of its weights is free. The next request starts another. */
  end() {
    clearTimeout(this.idle);
    this.worker?.terminate();
    this.worker = null;
    this.loading = null;
  }

  /* End the worker after a while, if nothing waits for an answer and nothing is asked. */
  endWhenIdle() {
    clearTimeout(this.idle);
    if (!this.waiting.size) this.idle = setTimeout(() => this.end(), IDLE);
  }

  /**
   * Hand a message of the worker to the request that waits for it: pieces of the answer, or the
   * answer or an error, which end the request.
   *
   * @param {{ id: number, value?: any, pieces?: Piece[], error?: string }} message
   */
  onMessage({ id, value, pieces, error }) {
    const waiting = this.waiting.get(id);
    if (!waiting) return; // it was cancelled
    if (pieces) return waiting.onPieces?.(pieces);
    this.waiting.delete(id);
    this.endWhenIdle();
    if (error) waiting.reject(new Error(error));
    else waiting.resolve(value);
  }

  /**
   * Send a request to the worker, which is there.
   *
   * @param {string} request
   * @param {object} details what the request needs
   * @param {string} [lane] what waits for an answer in the same lane is cancelled
   * @param {(pieces: Piece[]) => void} [onPieces] called with new pieces of the answer
   * @returns {Promise<any>} what worker.js answers to a request of this kind; null if a newer
   *   one took its place
   */
  ask(request, details, lane, onPieces) {
    const id = ++this.count;
    if (lane) {
      this.cancel(lane);
      this.lanes[lane] = id;
    }
    clearTimeout(this.idle);
    /** @type {Worker} */ (this.worker).postMessage({ id, request, ...details });
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject, onPieces }));
  }

  /**
   * End the last request of a lane, if it waits for an answer: it gets null.
   *
   * @param {string} lane
   */
  cancel(lane) {
    const id = this.lanes[lane];
    const waiting = this.waiting.get(id);
    if (!waiting) return;
    waiting.resolve(null);
    this.waiting.delete(id);
    this.worker?.postMessage({ id, request: "cancel" });
    this.endWhenIdle();
  }

  /**
   * Load the model, if need be, and send a request.
   *
   * @param {string} request
   * @param {object} details what the request needs
   * @param {string} [lane]
   * @param {(pieces: Piece[]) => void} [onPieces]
   * @returns {Promise<any>} as `ask`
   */
  async when(request, details, lane, onPieces) {
    await this.load();
    return this.ask(request, details, lane, onPieces);
  }

  /**
   * See Model.forward in engine.js.
   *
   * @param {number[]} ids
   * @param {ForwardOptions} options
   * @param {string} [lane]
   * @returns {Promise<Answer | null>} null if a newer request took its place
   */
  forward(ids, options, lane) {
    return this.when("forward", { ids, options }, lane);
  }

  /**
   * See write in writing.js.
   *
   * @param {number[]} ids
   * @param {WriteOptions & Sampling} options
   * @param {(pieces: Piece[]) => void} onPieces is given new tokens, some at a time
   * @param {string} [lane]
   * @returns {Promise<true | null>} null if a newer request took its place
   */
  write(ids, options, onPieces, lane) {
    return this.when("write", { ids, options }, lane, onPieces);
  }

  /**
   * See Model.nearest in engine.js.
   *
   * @param {Float32Array} vector
   * @param {number} count
   * @param {string} [lane]
   * @returns {Promise<Neighbour[] | null>} null if a newer request took its place
   */
  nearest(vector, count, lane) {
    return this.when("nearest", { vector, count }, lane);
  }
}
