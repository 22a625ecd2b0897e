/* The model's side of client.js: a worker that reads the weights and answers one request
   after the other, so that no page ever waits for it. */

import { joined } from "./store.js";
import { Model } from "./engine.js";
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
  *nearest(model, { vector, count }) {
    return model.nearest(vector, count);
  },
};

/* Answer messages: { request: "open" } brings the weights, "cancel" says that an answer is no
   longer wanted; the others ask something. */
export function serve(scope) {
  let model = null, current = null; // the request that is being answered
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

  async function open({ id, parts, about, name }) {
    try {
      model = Model.read(await joined(parts, about, name));
      scope.postMessage({ id, value: model.config });
    } catch (error) {
      scope.postMessage({ id, error: error.message });
    }
  }

  function cancel(id) {
    const place = waiting.findIndex((message) => message.id === id);
    if (place >= 0) waiting.splice(place, 1);
    else cancelled.add(id);
  }

  scope.onmessage = function ({ data }) {
    if (data.request === "open") return open(data);
    if (data.request === "cancel") return cancel(data.id);
    waiting.push(data);
    work();
  };
}
