/* The model that talks, for views: like client.js, whose worker it has.

     const talker = openTalker("talker", context);
     await talker.load((share) => ...);
     const { ids, pieces } = await talker.tokens({ turns: [{ role: "user", content: "Hi" }] });
     await talker.when("speak", { ids, count: 100, temperature: 0 }, "mine", (pieces) => ...);

   talker-worker.js says what may be asked. */

import source from "worker:./talker-worker.js";
import { Client } from "./client.js";
import { CACHE, KEPT } from "./store.js";

const opened = {};

/**
 * The page's one client of a model.
 *
 * @param {string} name of its store
 * @param {object} context of the view
 * @returns {TalkerClient}
 */
export function openTalker(name, context) {
  opened[name] ??= new TalkerClient(name, context, source);
  return opened[name];
}

class TalkerClient extends Client {
  /* Why the model cannot be loaded from this page; nothing if it can. */
  get obstacle() {
    if (this.context.folder.startsWith("http")) return "";
    return (
      "A page that was opened as a file may load no model of this size. Serve the book from " +
      "your own machine: run “make serve” in its folder, then open http://127.0.0.1:8000/."
    );
  }

  /* Whether the browser kept it on an earlier visit. */
  async isKept() {
    const { about, context, name } = this;
    const last = `${context.folder}play/${name}/${about.parts.length - 1}.bin?v=${about.key}`;
    try {
      return Boolean(await window.caches?.match(last));
    } catch {
      return false;
    }
  }

  /* See `open` in talker-worker.js for what is returned. */
  async open(progress) {
    if (this.obstacle) throw new Error(this.obstacle);
    if (!this.worker) this.start();
    const { about, context, name, simd } = this;
    const details = { about, folder: context.folder, name, simd };
    const tell = (pieces) => progress(pieces.at(-1).share);
    const answer = await this.ask("open", details, null, tell);
    if (answer && !answer.notKept) dispatchEvent(new Event(KEPT));
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

  /* The tokens of { text } or { turns }: { ids, pieces }. */
  tokens(of) {
    return this.when("tokens", of);
  }
}
