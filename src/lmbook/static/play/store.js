/* What a view loads after the page: weights and vocabularies, carried by scripts.

   context.stores[name] says how many parts (scripts), how many bytes, their checksum. Each
   script puts a part, in base64, into context.carried. */

/** What a reader calls a store of a single part. @type {Record<string, string | undefined>} */
const IN_WORDS = {
  "gpt2-merges": "GPT-2's vocabulary",
  "bert-pieces": "BERT's vocabulary",
  "mini-bert-pieces": "the small BERT's vocabulary",
};

/** What the browser calls the cache that it keeps weights in, for the next visit. */
export const CACHE = "lmcourse-weights";

/** The event that the window hears when the browser has kept weights. */
export const WEIGHTS_KEPT = "lmcourse:weights-kept";

/** The event that the window hears when the browser has forgotten all weights. */
export const WEIGHTS_FORGOTTEN = "lmcourse:weights-forgotten";

/**
 * Forget the weights that the browser keeps for this book; views hear of it.
 *
 * @returns {Promise<void>}
 */
export async function forgetWeights() {
  await Promise.resolve(window.caches?.delete(CACHE)).catch(() => false); // nothing was kept
  window.dispatchEvent(new Event(WEIGHTS_FORGOTTEN));
}

/**
 * Whether the browser keeps any weights.
 *
 * @returns {Promise<boolean>}
 */
export const keepsWeights = () =>
  Promise.resolve(window.caches?.has(CACHE)).then(Boolean, () => false);

/**
 * Load a store's parts, all at the same time. An Error, with a message to show, if one does not
 * come.
 *
 * @param {string} name
 * @param {ViewContext} context
 * @param {(share: number) => void} [progress] called with the share that has come, 0 to 1
 * @returns {Promise<Uint8Array<ArrayBuffer>[]>} in order
 */
export async function loadParts(name, context, progress = () => {}) {
  const store = context.stores[name];
  let arrived = 0;

  /**
   * Load one part.
   *
   * @param {number} part its number, from 0 on
   */
  async function loadPart(part) {
    const address = `play/${name}/${part}.js`;
    try {
      await context.run(`${address}?v=${store.key}`);
    } catch {
      const files = store.parts > 1 ? `one of the ${store.parts} files` : "the file";
      const which = IN_WORDS[name] ?? `${files} with the numbers of the model (${name})`;
      throw new Error(`${which} did not come. Is this device online? Then try again.`);
    }
    const bytes = decode(context.carried[address]);
    delete context.carried[address]; // it is large
    arrived += 1;
    progress(arrived / store.parts);
    return bytes;
  }

  return Promise.all(Array.from({ length: store.parts }, (_, part) => loadPart(part)));
}

/**
 * The bytes that a text in base64 stands for.
 *
 * @param {string} text in base64
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function decode(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const plain = atob(text);
  const bytes = new Uint8Array(plain.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = plain.charCodeAt(i);
  return bytes;
}

/* For each byte, what it does to the checksum. */
const TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = (byte >>> 1) ^ (byte & 1 ? 0xedb88320 : 0);
  return byte;
});

/**
 * CRC-32, as zlib computes it: tells a file that was cut or is another build's.
 *
 * @param {Uint8Array} bytes
 * @returns {number}
 */
export function checksum(bytes) {
  let crc = -1;
  for (let i = 0; i < bytes.length; i++) crc = (crc >>> 8) ^ TABLE[(crc ^ bytes[i]) & 255];
  return ~crc >>> 0;
}

/**
 * Put the parts of a store together; an Error if they are not what the page expects.
 *
 * @param {Uint8Array<ArrayBuffer>[]} parts
 * @param {Store} store
 * @param {string} name
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
export async function joined(parts, store, name) {
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  if (bytes.length !== store.bytes || checksum(bytes) !== store.checksum)
    throw new Error(`${name} is not what this page was built with: reload the page`);
  return bytes;
}

/** @type {Record<string, Promise<Uint8Array<ArrayBuffer>>>} */
const read = {};

/**
 * A small store as bytes, on this thread: a vocabulary. It is read once for all views; after an
 * error, once more when it is next asked for.
 *
 * @param {string} name
 * @param {ViewContext} context
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
export function readStore(name, context) {
  /* Load it and check it. */
  async function load() {
    return joined(await loadParts(name, context), context.stores[name], name);
  }
  read[name] ??= load().catch((error) => {
    delete read[name]; // so that it may be tried again
    throw error;
  });
  return read[name];
}

/**
 * A small store as text in UTF-8; as `readStore`.
 *
 * @param {string} name
 * @param {ViewContext} context
 * @returns {Promise<string>}
 */
export const readText = async (name, context) =>
  new TextDecoder().decode(await readStore(name, context));
