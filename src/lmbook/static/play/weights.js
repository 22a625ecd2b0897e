/* Weights from a safetensors file: eight bytes of length, a header in JSON, numbers. The file
   is one that the site was built with: store.js has compared its checksum. */

import { shuffled } from "./random.js";

/**
 * A tensor of a file; `toFloats` reads it.
 *
 * @typedef {object} Tensor
 * @property {"F32" | "F16" | "I8"} dtype
 * @property {number[]} shape
 * @property {Uint8Array} bytes its numbers, row after row
 * @property {ArrayLike<number>} [scale] of int8: what the numbers of each row are multiplied by
 */

/** @import { Config } from "./engine.js" */

const BYTES = { F32: 4, F16: 2, I8: 1 };

/**
 * Throw an Error with a message unless something holds.
 *
 * @param {unknown} condition
 * @param {string} message
 * @returns {asserts condition}
 */
export function demand(condition, message) {
  if (!condition) throw new Error(message);
}

/**
 * Read a safetensors file.
 *
 * @param {Uint8Array} bytes of the file
 * @param {string} [key] of the metadata that holds the configuration
 * @returns {{ config: Config, tensors: Map<string, Tensor> }} the configuration, undefined if the
 *   file has no metadata; tensors by name, parts of the file that are read when they are needed
 */
export function readSafetensors(bytes, key = "config") {
  const start = 8 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, start)));
  const { __metadata__: metadata, ...entries } = header;
  const tensors = new Map();
  for (const [
    name,
    {
      dtype,
      shape,
      data_offsets: [from, to],
    },
  ] of Object.entries(entries))
    tensors.set(name, { dtype, shape, bytes: bytes.subarray(start + from, start + to) });
  return { config: metadata && JSON.parse(metadata[key]), tensors };
}

/**
 * A number of 16 bits (sign, 5 of exponent, 10 of fraction) as JavaScript's.
 *
 * @param {number} half its bits, as a whole number
 * @returns {number}
 */
export function fromHalf(half) {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/**
 * Return rows of a tensor as float32. An Error if it is int8 without scales.
 *
 * @param {Tensor} tensor
 * @param {number} [first] the first row
 * @param {number} [last] the first row behind them that is left out
 * @returns {Float32Array<ArrayBuffer>} row after row
 */
export function toFloats(tensor, first = 0, last = tensor.shape[0]) {
  const { dtype, shape, scale } = tensor;
  const columns = shape[1] || 1;
  const size = BYTES[dtype];
  const { buffer } = tensor.bytes.slice(first * columns * size, last * columns * size);
  if (dtype === "F32") return new Float32Array(buffer);
  if (dtype === "F16") return new Float32Array(new Uint16Array(buffer)).map(fromHalf);
  demand(scale, "int8 without scales");
  /**
   * The row of the tensor in which a number stands.
   *
   * @param {number} i its position among those that are read
   */
  const row = (i) => first + Math.floor(i / columns);
  return new Float32Array(new Int8Array(buffer)).map((value, i) => value * scale[row(i)]);
}

/**
 * The same tensors, the numbers of each in a random order: nothing that was learned is left.
 *
 * @param {Map<string, Tensor>} tensors by name
 * @param {number} seed
 * @returns {Map<string, Tensor>}
 */
export function shuffledTensors(tensors, seed) {
  /** @type {Map<string, Tensor>} */
  const mixed = new Map();
  for (const [name, tensor] of tensors) {
    // Whole numbers stay in a byte each, and the scales of rows, a tensor of their own, are
    // shuffled, too.
    const isWhole = tensor.dtype === "I8";
    const values = isWhole ? new Int8Array(tensor.bytes.slice().buffer) : toFloats(tensor);
    const bytes = new Uint8Array(shuffled(values, seed + mixed.size).buffer);
    mixed.set(name, { dtype: isWhole ? "I8" : "F32", shape: tensor.shape, bytes });
  }
  return mixed;
}
