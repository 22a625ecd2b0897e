/* The model's side of client.js: a worker that reads the weights and answers one request
   after the other, so that no page ever waits for it. */

import { Model } from "./engine.js";
import { joined } from "./store.js";
import { write } from "./writing.js";

const PAUSE = 12; // milliseconds between two looks at what has come in

/* Wait until the messages that have come in are handled. */
function messagesHandled() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = resolve;
    port2.postMessage(0);
  });
}

/* Requests, each a generator: what it yields is a piece of the answer or a mere pause. */
const REQUESTS = {
  forward: (model, { ids, options }) => model.steps(ids, options),
  *write(model, { ids, options }) {
    for (const piece of write(model, ids, options)) yield { piece };
  },
  // biome-ignore lint/correctness/useYield: it has no pieces
  *nearest(model, { vector, count }) {
    return model.nearest(vector, count);
  },
};

/* Answer messages: { request: "open" } brings the weights, "cancel" says that an answer is no
   longer wanted; the others ask something. */
export function serve(scope) {
  let model = null;
  let last = Promise.resolve(); // when the last request is answered
  const cancelled = new Set();

  async function open({ id, parts, about, name }) {
    model = Model.read(await joined(parts, about, name));
    scope.postMessage({ id, value: model.config });
  }

  async function answer({ id, request, ...details }) {
    let pieces = [];
    let looked = performance.now();
    const run = REQUESTS[request](model, details);
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

  async function handle(message) {
    try {
      await messagesHandled(); // a newer request may cancel this one
      if (message.request === "open") await open(message);
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
