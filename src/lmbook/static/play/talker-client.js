/* The model that talks, for views: like client.js, whose worker it has.

     const talker = openTalker("talker", context);
     await talker.load((share) => ...);
     const { ids, pieces } = await talker.tokens({ turns: [{ role: "user", content: "Hi" }] });
     await talker.when("speak", { ids, count: 100, temperature: 0 }, "mine", (pieces) => ...);

   talker-worker.js says what may be asked. */

import source from "worker:./talker-worker.js";
import { Client } from "./client.js";
import { CACHE, WEIGHTS_KEPT } from "./store.js";

/** @type {Record<string, TalkerClient>} */
const opened = {};

/**
 * What is known of a model that came; see `open` in talker-worker.js.
 *
 * @typedef {object} Arrived
 * @property {import("./engine.js").Config} config
 * @property {boolean} fromCache whether the browser had kept it
 * @property {string | null} notKept why the browser keeps it not for the next visit
 * @property {boolean} simd whether it multiplies in WebAssembly
 * @property {number} memory in bytes
 */

/**
 * The page's one client of a model.
 *
 * @param {string} name of its store
 * @param {ViewContext} context of the view
 * @returns {TalkerClient}
 */
export function openTalker(name, context) {
  opened[name] ??= new TalkerClient(name, context, source);
  return opened[name];
}

/* A model that talks, in a worker. */
export class TalkerClient extends Client {
  /** @type {boolean | undefined} false: to do without WebAssembly */
  simd;

  /* Why the model cannot be loaded from this page; "" if it can. */
  get obstacle() {
    if (this.context.folder.startsWith("http")) return "";
    return (
      "A page that was opened as a file may load no model of this size. Serve the book from " +
      "your own machine: run “make serve” in its folder, then open http://127.0.0.1:8000/."
    );
  }

  /* Whether the browser kept it on an earlier visit: its last part. */
  async isKept() {
    const { about, context, name } = this;
    const last = `${context.folder}play/${name}/${about.parts - 1}.bin?v=${about.key}`;
    try {
      return Boolean(await window.caches?.match(last));
    } catch {
      return false;
    }
  }

  /**
   * Start the worker and let it load the model; null if that was stopped. An Error if it cannot be
   * loaded.
   *
   * @param {(share: number) => void} progress called with the share that has come, 0 to 1
   * @returns {Promise<any>} an Arrived, or null
   */
  async open(progress) {
    if (this.obstacle) throw new Error(this.obstacle);
    if (!this.worker) this.start();
    const { about, context, name, simd } = this;
    const details = { about, folder: context.folder, name, simd };
    /**
     * Tell what was reported last.
     *
     * @param {any[]} reports
     */
    const tell = (reports) => progress(reports.at(-1).share);
    const answer = await this.ask("open", details, undefined, tell);
    if (answer && !answer.notKept) dispatchEvent(new Event(WEIGHTS_KEPT));
    return answer;
  }

  /* End all work, loading too: what waits for an answer gets null. */
  stop() {
    for (const { resolve } of this.waiting.values()) resolve(null);
    this.waiting.clear();
    if (this.worker) this.end();
  }

  /* Let the browser forget it, and end the worker. */
  async forget() {
    this.stop();
    try {
      const cache = await caches.open(CACHE);
      for (const request of await cache.keys())
        if (request.url.includes(`/play/${this.name}/`)) await cache.delete(request);
    } catch {
      // nothing was kept
    }
  }

  /**
   * The tokens of a text, or of a dialogue.
   *
   * @param {{ text?: string, turns?: import("./dialogue.js").Turn[] }} of
   * @returns {Promise<import("./talker-worker.js").Tokens | null>}
   */
  tokens(of) {
    return this.when("tokens", of);
  }
}
