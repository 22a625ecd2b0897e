/* All views that run in the page, as `lmcourse.play[MODULE]`: `views.js` calls a module's
   function of the view's kind, or `mount`. What else is here, tests and benchmarks ask. */
export * as bertviz from "./bertviz.js";
export * as "block-view" from "./block-view.js";
export * as circuitsvis from "./circuitsvis.js";
export * as client from "./client.js";
export * as "contest-view" from "./contest-view.js";
export * as "dates-view" from "./dates-view.js";
export * as "dials-view" from "./dials-view.js";
export * as "digits-view" from "./digits-view.js";
export * as "explorer-view" from "./explorer-view.js";
export * as "generator-view" from "./generator-view.js";
export * as "graph-view" from "./graph-view.js";
export * as "lengths-view" from "./lengths-view.js";
export * as "neighbours-view" from "./neighbours-view.js";
export * as "neurons-view" from "./neurons-view.js";
export * as "order-view" from "./order-view.js";
export * as plotly from "./plotly.js";
export * as poems from "./poems.js";
export * as sentences from "./sentences.js";
export * as "sequence-view" from "./sequence-view.js";
export * as "sorting-view" from "./sorting-view.js";
export * as surprise from "./surprise.js";
export * as "tokenizer-view" from "./tokenizer-view.js";
export * as "toy-view" from "./toy-view.js";
export * as training from "./training.js";
export * as "word-removal-view" from "./word-removal-view.js";
