/* A model that the reader trained: its file, which `lmcourse.gpt.checkpoints.load_gpt` reads
   as well, and the views of the book that open it.

   The file is a checkpoint of the course: the weights as float32 under `model.`, query, key
   and value in one matrix, and in the metadata a record with the sizes and the alphabet.
   `asStore` makes of it what the site carries of its own models. */

import { Client } from "./client.js";
import { button, controls, make } from "./dom.js";
import { CACHE, checksum, WEIGHTS_FORGOTTEN, WEIGHTS_KEPT } from "./store.js";
import { demand, readSafetensors, toFloats } from "./weights.js";

/** @import { Config } from "./engine.js" */
/** @import { Tensor } from "./weights.js" */

/** The event that the window hears when there is a model of the reader's, or none any more. */
const OWN_MODEL = "lmcourse:own-model";

const LARGEST = 64 * 2 ** 20; // bytes of a file
const PARTS = ["query", "key", "value"];
const SIZES = /** @type {const} */ (["vocab_size", "context", "layers", "heads", "d_model"]);

/**
 * What a course's record says of a model.
 *
 * @typedef {Record<(typeof SIZES)[number], number> & Record<string, unknown>} Sizes
 */

/* --- files ------------------------------------------------------------------------------ */

/**
 * Write a safetensors file.
 *
 * @param {Record<string, { shape: number[], values: Float32Array }>} tensors by name
 * @param {Record<string, string>} metadata texts by name
 * @returns {Uint8Array<ArrayBuffer>} the bytes of the file
 */
function writeSafetensors(tensors, metadata) {
  /** @type {Record<string, object>} */
  const header = { __metadata__: metadata };
  let length = 0;
  for (const [name, { shape, values }] of Object.entries(tensors)) {
    const data_offsets = [length, length + 4 * values.length];
    header[name] = { dtype: "F32", shape, data_offsets };
    length = data_offsets[1];
  }
  const plain = new TextEncoder().encode(JSON.stringify(header));
  const start = 8 + 8 * Math.ceil(plain.length / 8); // numbers begin at a multiple of eight
  const bytes = new Uint8Array(start + length).fill(0x20, 8, start);
  new DataView(bytes.buffer).setUint32(0, start - 8, true);
  bytes.set(plain, 8);
  let at = start;
  for (const { values } of Object.values(tensors)) {
    bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), at);
    at += values.byteLength;
  }
  return bytes;
}

/**
 * The sizes of a model, and nothing else that is said of it.
 *
 * @param {Sizes | Config} all
 */
const sizesOf = ({ vocab_size, context, layers, heads, d_model }) => ({
  ...{ vocab_size, context, layers },
  ...{ heads, d_model },
});

/**
 * The shape of each weight of a GPT, by the names of engine.js.
 *
 * @param {ReturnType<typeof sizesOf>} sizes
 * @returns {Record<string, number[]>}
 */
function shapesOf({ vocab_size, context, layers, d_model }) {
  /** @type {Record<string, number[]>} */
  const shapes = { "tokens.weight": [vocab_size, d_model], "positions.weight": [context, d_model] };
  /**
   * Enter a norm or, with columns, a linear layer: its weight and its bias.
   *
   * @type {(name: string, rows: number, columns?: number) => void}
   */
  const enter = (name, rows, columns) => {
    shapes[`${name}.weight`] = columns ? [rows, columns] : [rows];
    shapes[`${name}.bias`] = [rows];
  };
  for (let layer = 0; layer < layers; layer++) {
    const block = `blocks.${layer}.`;
    enter(`${block}norm_1`, d_model);
    for (const part of [...PARTS, "output"]) enter(`${block}attention.${part}`, d_model, d_model);
    enter(`${block}norm_2`, d_model);
    enter(`${block}feed_forward.up`, 4 * d_model, d_model);
    enter(`${block}feed_forward.down`, d_model, 4 * d_model);
  }
  enter("norm", d_model);
  return shapes;
}

/**
 * Put tensors of one length into one, row after row, as the course's checkpoints have query, key
 * and value.
 *
 * @param {Float32Array[]} values one or more
 * @returns {Float32Array}
 */
function stacked(values) {
  const [{ length }] = values;
  const whole = new Float32Array(values.length * length);
  values.forEach((part, i) => whole.set(part, i * length));
  return whole;
}

/**
 * The file of a model that was trained in the page.
 *
 * @param {Record<string, Float32Array>} weights by the names of engine.js
 * @param {Config} config with its alphabet
 * @param {Record<string, unknown>} more what the record says besides
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function checkpoint(weights, config, more) {
  const model = sizesOf(config);
  /** @type {Record<string, { shape: number[], values: Float32Array }>} */
  const tensors = {};
  for (const [name, shape] of Object.entries(shapesOf(model))) {
    const [, before, part, kind] = /^(.*attention\.)(query|key|value)\.(.*)$/.exec(name) ?? [];
    if (part && part !== "query") continue;
    const names = part ? PARTS.map((of) => `${before}${of}.${kind}`) : [name];
    tensors[`model.${part ? `${before}qkv.${kind}` : name}`] = {
      shape: part ? [3 * shape[0], ...shape.slice(1)] : shape,
      values: stacked(names.map((of) => weights[of])),
    };
  }
  return writeSafetensors(tensors, {
    record: JSON.stringify({ model, alphabet: config.alphabet, ...more }),
  });
}

/**
 * Read what a checkpoint of the course says of itself; an Error in plain words if it is none,
 * or one of a model that does not run in the page.
 *
 * @param {Uint8Array} bytes
 * @returns {{ sizes: Sizes, alphabet: string, tensors: Map<string, Tensor> }}
 */
function readCheckpoint(bytes) {
  const none = "this is no model of the course: choose a .safetensors file that was saved here";
  demand(bytes.length < LARGEST, "this file is too large for a page");
  /** @type {ReturnType<typeof readSafetensors>} */
  let file;
  /** @type {any} */
  let record;
  try {
    file = readSafetensors(bytes, "record");
    record = file.config;
  } catch {
    throw new Error(none);
  }
  const sizes = record?.model;
  demand(sizes && typeof record.alphabet === "string", none);
  for (const name of SIZES) {
    const size = sizes[name];
    demand(Number.isInteger(size) && size > 0 && size < 1e5, `${none} (its ${name} is ${size})`);
  }
  /** @type {Record<string, unknown>} */
  const usual = { positions: "learned", norm: "layer", activation: "gelu_new", bias: true };
  for (const [name, value] of Object.entries({ ...usual, tied: true, previous_tokens: 0 }))
    demand(
      (sizes[name] ?? value) === value,
      `this model does not run in the page: its ${name} is ${sizes[name]}`,
    );
  demand(!sizes.ngrams?.length, "this model does not run in the page: it has tables of n-grams");
  demand(sizes.d_model % sizes.heads === 0, none);
  demand(new Set(record.alphabet).size === sizes.vocab_size, `${none} (its alphabet is another's)`);
  return { sizes, alphabet: record.alphabet, tensors: file.tensors };
}

/**
 * Whether a tensor has a shape, and all of its numbers.
 *
 * @param {Tensor} tensor
 * @param {number[]} wanted
 */
function isWhole({ dtype, shape, bytes }, wanted) {
  const size = { F32: 4, F16: 2, I8: NaN }[dtype];
  return String(shape) === String(wanted) && bytes.length === wanted.reduce((a, b) => a * b, size);
}

/**
 * Make of a checkpoint what the site carries of its own models. An Error, with a message to show,
 * if it is no checkpoint of a model that runs in the page, or is damaged.
 *
 * @param {Uint8Array} bytes of the checkpoint
 * @returns {{ config: Config, store: Uint8Array<ArrayBuffer> }} store: a safetensors file with the
 *   names of engine.js
 */
export function asStore(bytes) {
  const { sizes, alphabet, tensors } = readCheckpoint(bytes);
  /** @type {Record<string, { shape: number[], values: Float32Array }>} */
  const weights = {};
  for (const [name, shape] of Object.entries(shapesOf(sizes))) {
    const [, part = ""] = /attention\.(query|key|value)\./.exec(name) ?? [];
    const tensor = tensors.get(`model.${part ? name.replace(part, "qkv") : name}`);
    const first = shape[0] * Math.max(0, PARTS.indexOf(part));
    const whole = [part ? 3 * shape[0] : shape[0], ...shape.slice(1)];
    demand(
      tensor && isWhole(tensor, whole),
      `the file is damaged: ${name} is not what it should be`,
    );
    const values = toFloats(tensor, first, first + shape[0]);
    demand(values.every(Number.isFinite), `the file is damaged: ${name} has no numbers`);
    weights[name] = { shape, values };
  }
  /** @type {Config} */
  const config = {
    ...sizesOf(sizes),
    ...{ d_ff: 4 * sizes.d_model, positions: "learned", causal: true, norm_first: true },
    ...{ eps: 1e-5, output: "tied", activation: "gelu_new", alphabet },
  };
  return { config, store: writeSafetensors(weights, { config: JSON.stringify(config) }) };
}

/* --- the reader's model ----------------------------------------------------------------- */

/** @type {Uint8Array<ArrayBuffer> | null} the checkpoint that this page knows */
let own = null;

/**
 * Where the browser keeps it, beside the weights of the book's models.
 *
 * @param {ViewContext} context
 */
const place = (context) => `${context.folder}play/own-model`;

/**
 * Keep a model for the views of the book; they hear of it.
 *
 * @param {Uint8Array<ArrayBuffer>} bytes its checkpoint
 * @param {ViewContext} context
 * @returns {Promise<boolean>} whether the browser keeps it for other pages, too
 */
export async function keepOwn(bytes, context) {
  own = bytes;
  let isKept = false;
  try {
    if (place(context).startsWith("http")) {
      const cache = await caches.open(CACHE);
      await cache.put(place(context), new Response(bytes));
      isKept = true;
      dispatchEvent(new Event(WEIGHTS_KEPT));
    }
  } catch {
    // there is no room: this page has it
  }
  dispatchEvent(new Event(OWN_MODEL));
  return isKept;
}

addEventListener(WEIGHTS_FORGOTTEN, () => {
  own = null;
  dispatchEvent(new Event(OWN_MODEL));
});

/**
 * The checkpoint of the reader's model, or null.
 *
 * @param {ViewContext} context
 * @returns {Promise<Uint8Array<ArrayBuffer> | null>}
 */
async function ownModel(context) {
  if (own) return own;
  try {
    const cached = await window.caches?.match(place(context));
    if (cached) own = new Uint8Array(await cached.arrayBuffer());
  } catch {
    // it keeps nothing
  }
  return own;
}

/** The reader's model in a worker of its own. */
export class OwnClient extends Client {
  /**
   * Make a client; the worker starts when it is first asked.
   *
   * @param {Uint8Array<ArrayBuffer>} store of `asStore`
   * @param {ViewContext} context
   * @param {number | null} seed of a random order in which the weights are shuffled; null: they
   *   stay as they are
   */
  constructor(store, context, seed) {
    const entry = { parts: 1, bytes: store.length, checksum: checksum(store), key: "" };
    super("your model", { ...context, stores: { "your model": entry } });
    this.store = store;
    this.seed = seed;
  }

  /**
   * Start the worker with the weights, which are here already.
   *
   * @override
   */
  async open() {
    if (!this.worker) this.start();
    const { name, about, seed } = this;
    const config = await this.ask("open", { parts: [this.store.slice()], about, name, seed });
    return { config, fromCache: false, notKept: null };
  }
}

/**
 * The state of a view that shows the reader's model: a link opens it with the book's.
 *
 * @param {NonNullable<View["state"]>} state with fields that the book's model has, too
 * @param {() => void} leave mounts the view with the book's model
 * @returns {NonNullable<View["state"]>}
 */
export const ownState = (state, leave) => ({
  ...state,
  lacks: () =>
    "Your own model is not in the link, because a link can hold no model: it opens with the " +
    "book’s model, which gives other answers.",
  leave,
});

/**
 * Make what says that a view shows the reader's model, and brings the book's back. When the
 * browser forgets the reader's, the book's comes by itself.
 *
 * @param {HTMLElement} element of the view
 * @param {() => void} leave mounts the view with the book's model
 * @returns {HTMLElement}
 */
export function sayOwn(element, leave) {
  const back = button("the book’s model again", () => {
    leave();
    element.querySelector("textarea")?.focus();
  });
  addEventListener(WEIGHTS_FORGOTTEN, () => {
    if (back.isConnected) leave();
  });
  return controls(make("strong", {}, "This is your model."), back);
}

/**
 * Make what lets a view open the reader's model: a button for the one that was trained in the
 * page, and another for one in a file.
 *
 * @param {ViewContext} context
 * @param {(config: Config, store: Uint8Array<ArrayBuffer>) => unknown} use what it throws, or
 *   rejects with, is told
 * @returns {HTMLElement}
 */
export function offerOwn(context, use) {
  const status = make("span", { role: "status" });
  const input = make("input", {
    type: "file",
    accept: ".safetensors",
    hidden: "",
    "aria-label": "The file of your model",
    onchange: read,
  });
  const mine = button("your model", () => {
    if (own) open(own);
  });
  const file = button("your model from a file", () => input.click());
  /* Show the button of the model that was trained in the page if there is one. */
  async function show() {
    mine.hidden = !(await ownModel(context));
  }
  addEventListener(OWN_MODEL, show);
  show();

  /**
   * Use a model; an error is told.
   *
   * @param {Uint8Array<ArrayBuffer>} bytes of its file
   */
  async function open(bytes) {
    try {
      const { config, store } = asStore(bytes);
      status.textContent = "";
      await use(config, store);
    } catch (error) {
      status.textContent = `It does not open: ${error.message}.`;
    }
  }

  /* Open the file that was chosen. */
  async function read() {
    const [chosen] = Array.from(input.files ?? []);
    if (!chosen) return;
    await open(new Uint8Array(await chosen.arrayBuffer()));
    input.value = "";
  }
  return controls(mine, file, input, status);
}
