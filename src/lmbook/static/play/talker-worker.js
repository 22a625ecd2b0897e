/* The model that talks, in a worker: it fetches the file's parts, which the browser keeps,
   and answers what talker-client.js asks. The page never holds the weights. */

import code from "wasm:./kernels.wat";
import { dialogueText, GgufTokenizer } from "./dialogue.js";
import { Hooks, placed, softmax } from "./engine.js";
import { readGguf } from "./gguf.js";
import { openMemory } from "./kernels.js";
import { readLlama, turnBits } from "./llama.js";
import { copyOfRow, largest } from "./numbers.js";
import { CACHE, checksum } from "./store.js";
import { shown } from "./tokenizers.js";
import { demand } from "./weights.js";
import { mentioned, readWhole } from "./whole-reading.js";
import { serve as answer, REQUESTS } from "./worker.js";
import { draw, nextProbs, randomness } from "./writing.js";

/** @import { Answer, Cache as Keys, ForwardOptions, Patch } from "./engine.js" */
/** @import { Kernels } from "./kernels.js" */
/** @import { Sampling } from "./writing.js" */

/**
 * The tokens of a text: as the page shows them, and their IDs.
 *
 * @typedef {{ ids: number[], pieces: string[] }} Tokens
 */

/** @typedef {{ id: number, piece: string, share: number }} Likely a token and its probability */

/** @typedef {[layer: number, head: number]} Head */

/**
 * What a question about a text says of it.
 *
 * @typedef {object} Asked
 * @property {number[]} ids of the text
 * @property {number} [place] the position of the token that is asked about; 0 by default
 * @property {number} [layer] 0 by default
 * @property {Head[]} [off] heads that are switched off
 * @property {{ ids: number[], heads: Head[] } | null} [from] another text, and heads that at the
 *   last token return what they do there
 */

/**
 * What was computed of a text with some heads off: keys, values and the residual stream, which
 * texts that begin alike share.
 *
 * @typedef {object} Reading
 * @property {string} key for which heads off, in words
 * @property {Head[]} off
 * @property {number[]} ids
 * @property {Keys} cache
 * @property {Float32Array[]} streams before each block and after the last, (tokens, d_model)
 */

/**
 * What is needed to open the model.
 *
 * @typedef {object} Opening
 * @property {Store} about the store
 * @property {string} folder the address of the site's scripts
 * @property {string} name of the store
 * @property {boolean} [simd] false: do without WebAssembly
 */

/**
 * @typedef {(piece: { share: number }) => void} Report is told which share of the file has come,
 *   from 0 to 1
 */

const TOP = 10; // next tokens that are told
const LENS = 3; // of each layer
const READINGS = 3; // of texts, that are kept

// --- the file -------------------------------------------------------------------------

/**
 * Read the bytes of a response into an array.
 *
 * @param {Response} response
 * @param {Uint8Array} target filled; as long as what is expected
 * @param {(bytes: number) => void} report called with how many more came
 * @returns {Promise<boolean>} whether it is filled; false if too little or too much came
 */
async function receive(response, target, report) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  let filled = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return filled === target.length;
    if (filled + value.length > target.length) return false;
    target.set(value, filled);
    filled += value.length;
    report(value.length);
  }
}

/**
 * Read a part of the file into an array, from what the browser kept or else from the site. An
 * Error, with a message to show, if it does not come or is another build's.
 *
 * @param {{ address: string, sum: number, name: string }} part sum: its checksum; name: what a
 *   reader calls it
 * @param {Uint8Array} target filled
 * @param {Cache | undefined} cache what the browser keeps
 * @param {(bytes: number) => void} report called with how many more bytes came
 * @returns whether it came from the site, and has to be kept
 */
async function bring({ address, sum, name }, target, cache, report) {
  const cached = await cache?.match(address);
  if (cached && (await receive(cached, target, report)) && checksum(target) === sum) return false;
  const response = await fetch(address, { cache: "no-store" }).catch(() => null);
  if (!response?.ok) throw new Error(`${name} did not come (${response?.status ?? "no answer"})`);
  const isWhole = await receive(response, target, report);
  const isRight = isWhole && checksum(target) === sum;
  demand(isRight, `${name} is not what this page was built with: reload the page`);
  return true;
}

/**
 * Fill an array with the model's file, which comes in parts.
 *
 * @param {Uint8Array<ArrayBuffer>} bytes filled; as long as the file
 * @param {Opening} opening
 * @param {Report} report
 * @returns {Promise<{ fromCache: boolean, notKept: string | null }>} whether the browser had kept
 *   all of it; why the browser does not keep it for the next visit, or null
 */
async function fill(bytes, { about, folder, name }, report) {
  const cache = await Promise.resolve(globalThis.caches?.open(CACHE)).catch(() => undefined);
  /** @type {string | null} */
  let notKept = cache ? null : "this browser keeps nothing for this page";
  let fromCache = true;
  let arrived = 0;
  let start = 0;
  const files = about.files ?? [];
  for (const [part, { bytes: length, checksum: sum }] of files.entries()) {
    const address = `${folder}play/${name}/${part}.bin?v=${about.key}`;
    const target = bytes.subarray(start, start + length);
    const which = `part ${part + 1} of ${files.length} of ${name}`;
    /**
     * Count bytes that came, and report.
     *
     * @param {number} more how many
     */
    const count = (more) => {
      arrived += more;
      report({ share: Math.min(1, arrived / bytes.length) });
    };
    if (await bring({ address, sum, name: which }, target, cache, count)) {
      fromCache = false;
      const keeping = cache?.put(address, new Response(target.slice()));
      await keeping?.catch((error) => {
        notKept = `the browser has no room for it (${error.name})`;
      });
    }
    start += length;
    arrived = start;
  }
  if (cache && !fromCache) await dropOlder(cache, `${folder}play/${name}/`, about.key);
  return { fromCache, notKept };
}

/**
 * Drop what an earlier build's page kept.
 *
 * @param {Cache} cache
 * @param {string} prefix where the parts' addresses begin
 * @param {string} key of this build
 */
async function dropOlder(cache, prefix, key) {
  for (const request of await cache.keys())
    if (request.url.startsWith(prefix) && !request.url.endsWith(`?v=${key}`))
      await cache.delete(request);
}

/**
 * Load the model, as `serve` asks.
 *
 * @param {Opening} message
 * @param {Report} report is told how much of the file has come
 * @returns the model, and as `value` what the page is answered: an Arrived of talker-client.js
 */
async function open(message, report) {
  const { about, simd = true } = message;
  const { bytes, kernels } = await openMemory(about.bytes, simd ? code : null);
  const { fromCache, notKept } = await fill(bytes, message, report);
  const talker = new Talker(bytes, kernels);
  const { config } = talker.model;
  const value = { config, fromCache, notKept, simd: Boolean(kernels) };
  return { model: talker, value: { ...value, memory: bytes.buffer.byteLength } };
}

// --- the model ------------------------------------------------------------------------

/* The model with its tokenizer, and what it has read last. */
class Talker {
  /** @type {number | null} of the random weights that it has now; null: the trained ones */
  seed = null;

  /** @type {Reading[]} the last ones, the newest first */
  readings = [];

  /** @type {string[] | undefined} the text of each token */
  decoded;

  /**
   * Make the model of its file.
   *
   * @param {Uint8Array<ArrayBuffer>} bytes of the file
   * @param {Kernels | null} kernels what multiplies in the memory of the file
   */
  constructor(bytes, kernels) {
    this.kernels = kernels;
    this.file = readGguf(bytes);
    this.tokenizer = new GgufTokenizer(this.file.fields);
    this.model = readLlama(this.file, kernels);
  }

  /**
   * Give it random weights by a seed, or with null the trained ones; what was read by others is
   * forgotten. Weights of norms are 1 then.
   *
   * @param {number | null} seed
   */
  setSeed(seed) {
    if (seed === this.seed) return;
    for (const each of [this.seed, seed]) if (each !== null) turnBits(this.file.tensors, each);
    this.seed = seed;
    this.readings = [];
    this.model = readLlama(this.file, this.kernels);
    if (seed === null) return;
    for (const { norm_1, norm_2 } of this.model.blocks)
      for (const norm of [norm_1, norm_2]) norm.weight.fill(1);
    this.model.norm?.weight.fill(1);
  }

  /**
   * The reading with some heads off, an empty one when it is first asked for. The last READINGS of
   * them are kept.
   *
   * @param {Head[]} off
   * @returns {Reading}
   */
  reading(off) {
    const key = JSON.stringify(off);
    let reading = this.readings.find((each) => each.key === key);
    if (!reading) {
      const streams = Array.from(
        { length: this.model.config.layers + 1 },
        () => new Float32Array(0),
      );
      reading = { key, off, ids: [], cache: this.model.cache(), streams };
    }
    this.readings = [reading, ...this.readings.filter((each) => each !== reading)].slice(
      0,
      READINGS,
    );
    return reading;
  }

  /**
   * The likeliest tokens and their probabilities, the likeliest first.
   *
   * @param {Float32Array} logits (vocab_size,)
   * @param {number} count how many
   * @returns {Likely[]}
   */
  likeliest(logits, count) {
    const probs = softmax(Float32Array.from(logits));
    return largest(logits, count).map((id) => ({ id, piece: this.shown(id), share: probs[id] }));
  }

  /**
   * The text that each token stands for, made when it is first asked for.
   *
   * @returns {string[]}
   */
  get texts() {
    this.decoded ??= this.tokenizer.vocabulary.map((_, id) => this.tokenizer.decode([id]));
    return this.decoded;
  }

  /**
   * A token so that it can be seen.
   *
   * @param {number} id
   */
  shown(id) {
    const { whole, vocabulary } = this.tokenizer;
    return whole.has(id) ? vocabulary[id] : shown(vocabulary[id], true);
  }
}

/**
 * How many tokens two texts have in common at the beginning.
 *
 * @param {number[]} one
 * @param {number[]} other
 */
function common(one, other) {
  const length = Math.min(one.length, other.length);
  for (let i = 0; i < length; i++) if (one[i] !== other[i]) return i;
  return length;
}

/**
 * Read a text on from where a reading stands: only the tokens behind what both have in common
 * are computed. The reading is of this text afterwards.
 *
 * @param {Talker} talker
 * @param {Reading} reading changed
 * @param {number[]} ids one or more; with none, or more than the model reads, it throws an Error
 * @param {boolean} [again] whether the last token is read again if all was read before
 * @returns {Generator<unknown, Float32Array | null, any>} pauses after each layer; returns the
 *   logits of the last token, (vocab_size,), or null if nothing had to be read
 */
function* readOn({ model }, reading, ids, again = true) {
  const { cache, streams, off } = reading;
  const { d_model } = model.config;
  let same = Math.min(cache.length, common(reading.ids, ids));
  if (same === ids.length && !again) return null;
  same = Math.min(same, ids.length - 1);
  cache.length = same;
  reading.ids = ids.slice();
  const fresh = ids.slice(same);
  const options = { cache, ablate: off, keep: ["embeddings", "blocks.*"] };
  const { kept: activations, logits } = yield* model.steps(fresh, {
    ...options,
    logits_of: [fresh.length - 1],
  });
  // They are kept in the order in which they are computed: the embeddings, then each block.
  Object.values(activations).forEach(({ values }, level) => {
    streams[level] = placed(streams[level], values, same * d_model);
  });
  return logits;
}

/**
 * What heads of another text return at its last token, as a patch of `Model.steps` for a run on one
 * token.
 *
 * @param {Talker} talker
 * @param {{ ids: number[], heads: Head[] }} from the other text, and the heads
 */
function* patching({ model }, { ids, heads }) {
  const layers = Array.from(new Set(heads.map(([layer]) => layer)));
  const keep = layers.map((layer) => `blocks.${layer}.attention.heads`);
  const { kept: activations } = yield* model.steps(ids, { keep, logits_of: [] });
  /** @type {Record<string, Patch[]>} */
  const patch = {};
  for (const [layer, head] of heads) {
    const name = `blocks.${layer}.attention.heads`;
    const columns = [head * model.d_head, (head + 1) * model.d_head];
    const last = copyOfRow(activations[name].values, ids.length - 1, model.config.d_model);
    patch[name] ??= [];
    patch[name].push({ rows: [0], columns, values: last.slice(...columns) });
  }
  return patch;
}

/**
 * The residual stream of a text before each block and after the last, (layers + 1) times
 * (tokens or more, d_model).
 *
 * @param {Talker} talker
 * @param {Asked} asked
 * @returns {Generator<unknown, Float32Array[], any>}
 */
function* states(talker, { ids, off = [], from = null }) {
  const reading = talker.reading(off);
  yield* readOn(talker, reading, ids, false);
  if (!from) return reading.streams;
  const { model } = talker;
  const { cache } = reading;
  const before = cache.length;
  const last = ids.length - 1;
  const patch = yield* patching(talker, from);
  cache.length = last; // the last token is read again
  const options = { cache, ablate: off, patch, keep: ["embeddings", "blocks.*"], logits_of: [] };
  const { kept: activations } = model.forward([ids[last]], options);
  const { d_model } = model.config;
  const changed = Object.values(activations).map(({ values }, level) =>
    placed(reading.streams[level].slice(0, last * d_model), values, last * d_model),
  );
  model.forward([ids[last]], { cache: { ...cache, length: last }, ablate: off, logits_of: [] });
  cache.length = before;
  return changed;
}

/**
 * The likeliest tokens after the token at a place.
 *
 * @param {Talker} talker
 * @param {Asked} asked
 * @returns {Generator<unknown, Likely[], any>} pauses after each layer; returns TOP tokens, the
 *   likeliest first
 */
function* next(talker, asked) {
  const { model } = talker;
  const { place = 0 } = asked;
  const streams = yield* states(talker, asked);
  const logits = model.readOut(
    copyOfRow(streams[model.config.layers], place, model.config.d_model),
  );
  return talker.likeliest(logits, TOP);
}

/**
 * By layer, the likeliest tokens after the token at a place if the model ended after it.
 *
 * @param {Talker} talker
 * @param {Asked} asked
 * @returns {Generator<unknown, Likely[][], any>} pauses after each layer; returns LENS tokens for
 *   each of the layers, the likeliest first
 */
function* lens(talker, asked) {
  const { model } = talker;
  const { place = 0 } = asked;
  const { d_model } = model.config;
  const [, ...streams] = yield* states(talker, asked);
  const byLayer = [];
  for (let layer = 0; layer < streams.length; layer++) {
    const logits = model.readOut(copyOfRow(streams[layer], place, d_model));
    byLayer.push(talker.likeliest(logits, LENS));
    yield layer;
  }
  return byLayer;
}

/**
 * The attention weights of each head of a layer from the token at a place to all up to it.
 *
 * @param {Talker} talker
 * @param {Asked} asked
 * @returns {Generator<unknown, Float32Array[], any>} pauses after each layer; returns
 *   (heads, place + 1)
 */
function* attention(talker, asked) {
  const { model } = talker;
  const { place = 0, layer = 0 } = asked;
  const streams = yield* states(talker, asked);
  const name = `blocks.${layer}.attention.weights`;
  const tokens = asked.ids.length;
  const hooks = new Hooks({ keep: [name] });
  const x = streams[layer].subarray(0, tokens * model.config.d_model);
  model.block(x, layer, { hooks, tokens });
  const weights = hooks.kept[name].values;
  return Array.from({ length: model.config.heads }, (_, head) =>
    weights.slice((head * tokens + place) * tokens, (head * tokens + place) * tokens + place + 1),
  );
}

/**
 * Write on until the dialogue's end or until there are `count` tokens. A piece for each token: its
 * `id`; the `piece` as it is shown; the `text` of all that was written so far; `next`, the TOP
 * likeliest tokens among which it was drawn. Return why it ended: "end" or "count".
 *
 * @param {Talker} talker
 * @param {Asked & Sampling & { count: number, seed?: number }} asked seed of the random numbers; 0
 *   by default
 */
function* speak(talker, { ids, count, off = [], seed = 0, ...sampling }) {
  const { tokenizer } = talker;
  const random = randomness(seed);
  /** @type {number[]} */
  const written = [];
  const reading = talker.reading(off);
  let text = ids;
  while (written.length < count) {
    const logits = /** @type {Float32Array} */ (yield* readOn(talker, reading, text));
    const id = draw(nextProbs(logits, sampling), random);
    if (id === tokenizer.end) return "end";
    written.push(id);
    text = [...text, id];
    const decoded = tokenizer.decode(written).replace(/\ufffd+$/, "");
    const next = talker.likeliest(logits, TOP);
    yield { piece: { id, piece: talker.shown(id), text: decoded, next } };
  }
  return "count";
}

/**
 * The tokens of a text, or of a dialogue up to where the model is to answer. An Error if the file's
 * form of dialogues is not known here.
 *
 * @param {Talker} talker
 * @param {{ text?: string, turns?: import("./dialogue.js").Turn[] }} of
 * @returns {Generator<unknown, Tokens, any>}
 */
function* tokens(talker, { text = "", turns }) {
  demand(
    !turns || talker.tokenizer.talks,
    "this model writes dialogues in another form (another chat template) than the page knows",
  );
  const ids = talker.tokenizer.encode(turns ? dialogueText(turns) : text);
  return { ids, pieces: ids.map((id) => talker.shown(id)) };
}

/**
 * Make what returns the probabilities of the next token after a text, with no head off. Each
 * text is read once, and its probabilities are remembered: they must not be changed.
 *
 * @param {Talker} talker
 * @returns {(ids: number[]) => Generator<unknown, Float32Array, any>} gives (vocab_size,) for
 *   one token or more, and throws an Error for none
 */
function nextTokens(talker) {
  /** @type {Map<string, Float32Array>} */
  const known = new Map();
  /** @param {number[]} ids */
  return function* ask(ids) {
    const name = ids.join();
    const remembered = known.get(name);
    if (remembered) return remembered;
    const logits = /** @type {Float32Array} */ (yield* readOn(talker, talker.reading([]), ids));
    const probs = softmax(Float32Array.from(logits)); // a copy, because softmax changes it
    known.set(name, probs);
    return probs;
  };
}

/**
 * How probable it is that a text goes on with each of some characters. The model knows tokens,
 * and the word that is not ended may be cut in many ways: summed is over where in it the token
 * begins in which the next character stands. What stands before that place is cut as the
 * tokenizer cuts it.
 *
 * @param {Talker} talker
 * @param {string} text at least a line
 * @param {string[]} symbols the characters
 * @param {ReturnType<typeof nextTokens>} ask gives the probabilities of the next token
 * @returns {Generator<unknown, number[], any>} the probability of each of the characters
 */
function* nextCharacter(talker, text, symbols, ask) {
  const { tokenizer } = talker;
  const probs = symbols.map(() => 0);
  const start = Math.max(text.lastIndexOf(" "), text.lastIndexOf("\n") + 1);
  const settled = tokenizer.encode(text.slice(0, start)).length;
  for (let end = start; end <= text.length; end++) {
    const ids = tokenizer.encode(text.slice(0, end));
    let path = 1;
    for (let position = settled; position < ids.length; position++)
      path *= (yield* ask(ids.slice(0, position)))[ids[position]];
    const next = yield* ask(ids);
    const rest = text.slice(end);
    talker.texts.forEach((token, id) => {
      if (token.length <= rest.length || !token.startsWith(rest)) return;
      const which = symbols.indexOf(token[rest.length]);
      if (which >= 0) probs[which] += path * next[id];
    });
  }
  return probs;
}

/**
 * The probabilities of `nextCharacter` before each character of a line.
 *
 * @param {Talker} talker
 * @param {{ before: string, line: string, symbols: string[] }} asked before: the text before the
 *   line, at least a line
 * @returns {Generator<unknown, number[][], any>} (characters of the line, symbols)
 */
function* characters(talker, { before, line, symbols }) {
  const ask = nextTokens(talker);
  const probs = [];
  for (let i = 0; i < line.length; i++) {
    probs.push(yield* nextCharacter(talker, before + line.slice(0, i), symbols, ask));
    yield i;
  }
  return probs;
}

/**
 * Run the model: see Model.forward in engine.js.
 *
 * @type {(
 *   talker: Talker, details: { ids: number[], options: ForwardOptions }
 * ) => Generator<unknown, Answer, any>}
 */
const forward = ({ model }, details) => REQUESTS.forward(model, details);

/**
 * All that the view *whole* shows of a text, and how its tokens are shown.
 *
 * @param {Talker} talker
 * @param {{ ids: number[], place: number }} asked
 */
function* whole(talker, asked) {
  const reading = yield* readWhole(talker.model, asked);
  const pieces = Object.fromEntries(mentioned(reading).map((id) => [id, talker.shown(id)]));
  return { ...reading, pieces };
}

/* What may be asked. With `random`, a seed, it is asked of random weights; without it or with null,
   of the trained ones. */
/** @type {Record<string, (talker: Talker, details: any) => Generator<any, any, any>>} */
const ASKED = Object.fromEntries(
  Object.entries({ attention, characters, forward, lens, next, speak, tokens, whole }).map(
    ([name, ask]) => [
      name,
      function* (talker, { random = null, ...details }) {
        talker.setSeed(random);
        return yield* ask(talker, details);
      },
    ],
  ),
);

/**
 * What the worker runs.
 *
 * @param {WorkerScope} scope
 */
export const serve = (scope) => answer(scope, open, ASKED);
