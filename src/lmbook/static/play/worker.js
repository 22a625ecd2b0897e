/* The model's side of client.js: a worker that reads the weights, keeps them for the next
   visit, and answers one request after the other, so that no page ever waits for it. */

import { checksum, decode, joined } from "./store.js";
import { Model } from "./engine.js";
import { write } from "./writing.js";

const CACHE = "lmcourse-weights";
const PAUSE = 12; // milliseconds between two looks at what has come in

/* Wait until the messages that have come in are handled. */
function messagesHandled() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = resolve;
    port2.postMessage(0);
  });
}

/* What the browser kept of an earlier visit, or null: it keeps nothing for pages that were
   opened as files or came over an unencrypted line. */
async function fromCache(address, about) {
  if (!address.startsWith("http") || !self.caches) return null;
  const found = await (await caches.open(CACHE)).match(address);
  const bytes = found && new Uint8Array(await found.arrayBuffer());
  const isRight = bytes && bytes.length === about.bytes && checksum(bytes) === about.checksum;
  return isRight ? bytes : null;
}

/* Keep weights, in the place of those of an earlier build; return why not, or null. */
async function toCache(address, bytes) {
  if (!address.startsWith("http") || !self.caches)
    return "this page's address does not let the browser keep them";
  try {
    const cache = await caches.open(CACHE), place = address.split("?")[0];
    for (const { url } of await cache.keys())
      if (url.split("?")[0] === place) await cache.delete(url);
    await cache.put(address, new Response(bytes));
    return null;
  } catch (error) {
    return "the browser has no room for them (" + error.name + ")";
  }
}

/* Requests, each a generator: what it yields is a piece of the answer or a mere pause. */
const REQUESTS = {
  forward: (model, { ids, options }) => model.steps(ids, options),
  *write(model, { ids, options }) {
    for (const piece of write(model, ids, options)) yield { piece };
  },
  *nearest(model, { vector, id, count }) {
    return model.nearest(vector || model.vector(id), count);
  },
};

/* Answer messages: { find } and { open } bring weights, { part } a part of them, { request }
   asks something, { cancel } says that an answer is no longer wanted. */
export function serve(scope) {
  let model = null, parts = [], current = null; // the request that is being answered
  const waiting = [], cancelled = new Set();

  async function answer({ id, request, ...details }) {
    let pieces = [], looked = performance.now();
    const run = REQUESTS[request](model, details);
    for (;;) {
      const { done, value } = run.next();
      if (!done && value.piece) pieces.push(value.piece);
      if (pieces.length && (done || performance.now() - looked > PAUSE)) {
        scope.postMessage({ id, pieces });
        pieces = [];
      }
      if (done) return scope.postMessage({ id, value: value === undefined ? true : value });
      if (performance.now() - looked > PAUSE) {
        await messagesHandled();
        looked = performance.now();
      }
      if (cancelled.has(id)) return;
    }
  }

  async function work() {
    if (current) return;
    while (waiting.length) {
      current = waiting.shift();
      try {
        await messagesHandled(); // a newer request may cancel this one
        if (!cancelled.has(current.id)) await answer(current);
      } catch (error) {
        scope.postMessage({ id: current.id, error: error.message });
      }
      cancelled.clear(); // those that wait were taken out
    }
    current = null;
  }

  function open(bytes, kept) {
    model = Model.read(bytes);
    return { config: model.config, ...kept };
  }

  const LOADING = {
    async find({ address, about }) {
      const bytes = await fromCache(address, about).catch(() => null);
      return bytes ? open(bytes, { fromCache: true, notKept: null }) : null;
    },
    async open({ address, about, name }) {
      const bytes = joined(parts, about, name);
      parts = [];
      const opened = open(bytes, { fromCache: false });
      return { ...opened, notKept: await toCache(address, bytes) };
    },
    part({ text }) {
      parts.push(decode(text));
    },
    forget() {
      parts = [];
    },
  };

  scope.onmessage = async function ({ data }) {
    const { id, request } = data;
    if (request === "cancel") {
      const place = waiting.findIndex((message) => message.id === id);
      if (place >= 0) waiting.splice(place, 1);
      else cancelled.add(id);
      return;
    }
    if (!Object.hasOwn(LOADING, request)) {
      waiting.push(data);
      return work();
    }
    try {
      const value = await LOADING[request](data);
      if (id !== undefined) scope.postMessage({ id, value });
    } catch (error) {
      scope.postMessage({ id, error: error.message });
    }
  };
}
