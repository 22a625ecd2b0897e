/* A model for views: it runs in a worker of its own, shared by all views of the page.

     const gpt = openModel("gpt", context);
     await gpt.load((share) => ...);          // once; gpt.size says how much is to come
     const answer = await gpt.forward(ids, { keep: ["blocks.*.attention.weights"] }, "mine");
     if (!answer) return;                     // a newer request took its place
     await gpt.write(ids, { count: 200 }, (pieces) => ..., "mine");

   The last argument, a lane, is any word of the view's: a new request ends an older one of
   the same lane, whose promise resolves to null. Errors reject, with a message to show. */

import source from "worker:./worker.js";
import { startWorker } from "./start-worker.js";
import { loadParts } from "./store.js";

const CACHE = "lmcourse-weights";
const IDLE = 120_000; // milliseconds without a request, after which the worker ends
const opened = {};

export function openModel(name, context) {
  opened[name] ??= new Client(name, context);
  return opened[name];
}

class Client {
  constructor(name, context) {
    this.name = name;
    this.context = context;
    this.about = context.stores[name];
    this.address = `${context.folder}play/${name}?v=${this.about.key}`;
    this.size = `${(this.about.bytes / 1e6).toFixed(1)} MB`;
    this.waiting = new Map(); // id → { resolve, reject, onPieces }
    this.lanes = {};
    this.count = 0;
  }

  /* Start the worker and load the weights, from what the browser kept if it did. Returns
     { config, fromCache, notKept: why they are not kept for the next visit, or null }. */
  load(progress = () => {}) {
    this.loading ??= this.open(progress).catch((error) => {
      this.loading = null; // so that it may be tried again
      throw error;
    });
    return this.loading;
  }

  /* What the browser kept of an earlier visit, or undefined; `open` checks it. It keeps
     nothing for pages that were opened as files or came over an unencrypted line. */
  kept() {
    const asked = new Promise((resolve) => resolve(window.caches?.match(this.address)));
    return asked.catch(() => undefined);
  }

  async open(progress) {
    if (!this.worker) this.start();
    const { name, about } = this;
    const send = (parts) => this.ask("open", { parts, about, name });
    const kept = await this.kept();
    if (kept) {
      const config = await send([new Uint8Array(await kept.arrayBuffer())]).catch(() => null);
      progress(1);
      if (config) return { config, fromCache: true, notKept: null };
    }
    const parts = await loadParts(name, this.context, progress);
    return { config: await send(parts), fromCache: false, notKept: await this.keep(parts) };
  }

  /* Keep weights, in the place of those of an earlier build; return why not, or null. */
  async keep(parts) {
    if (!window.caches || !this.address.startsWith("http"))
      return "this page's address does not let the browser keep them";
    try {
      const cache = await caches.open(CACHE);
      const place = this.address.split("?")[0];
      for (const { url } of await cache.keys())
        if (url.split("?")[0] === place) await cache.delete(url);
      await cache.put(this.address, new Response(new Blob(parts)));
      return null;
    } catch (error) {
      return `the browser has no room for them (${error.name})`;
    }
  }

  start() {
    this.worker = startWorker(source);
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
    this.worker.terminate();
    this.worker = null;
    this.loading = null;
  }

  /* End the worker after a while, if nothing waits for an answer and nothing is asked. */
  endWhenIdle() {
    clearTimeout(this.idle);
    if (!this.waiting.size) this.idle = setTimeout(() => this.end(), IDLE);
  }

  onMessage({ id, value, pieces, error }) {
    const { resolve, reject, onPieces } = this.waiting.get(id) || {};
    if (!resolve) return; // it was cancelled
    if (pieces) return onPieces(pieces);
    this.waiting.delete(id);
    this.endWhenIdle();
    if (error) reject(new Error(error));
    else resolve(value);
  }

  ask(request, details, lane, onPieces) {
    const id = ++this.count;
    if (lane) {
      this.cancel(lane);
      this.lanes[lane] = id;
    }
    clearTimeout(this.idle);
    this.worker.postMessage({ id, request, ...details });
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject, onPieces }));
  }

  /* End what a lane waits for. */
  cancel(lane) {
    const id = this.lanes[lane];
    if (!this.waiting.has(id)) return;
    this.waiting.get(id).resolve(null);
    this.waiting.delete(id);
    this.worker.postMessage({ id, request: "cancel" });
    this.endWhenIdle();
  }

  async when(request, details, lane, onPieces) {
    await this.load();
    return this.ask(request, details, lane, onPieces);
  }

  /* See Model.forward in engine.js for the options and the answer. */
  forward(ids, options, lane) {
    return this.when("forward", { ids, options }, lane);
  }

  /* See write in writing.js; pieces are { id, probs } of new tokens, some at a time. */
  write(ids, options, onPieces, lane) {
    return this.when("write", { ids, options }, lane, onPieces);
  }

  /* The tokens nearest to a vector. */
  nearest(vector, count, lane) {
    return this.when("nearest", { vector, count }, lane);
  }
}
