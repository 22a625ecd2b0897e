/* A matrix that stays quantised: it is multiplied from the bytes of its file.

   Each row is cut into blocks of 32 numbers, whole numbers times a scale (Q8_0), plus a
   minimum (Q4_1). Where the browser has WebAssembly with SIMD, kernels.js multiplies;
   elsewhere a row is unpacked and multiplied as any other. */

import { linear } from "./engine.js";
import { BLOCK, BLOCKS } from "./gguf.js";
import { fromHalf } from "./weights.js";

/** The value of every number of 16 bits, by its bits. */
export const HALVES = Float32Array.from({ length: 65536 }, (_, bits) => fromHalf(bits));

/**
 * The number of 16 bits that begins at a byte.
 *
 * @type {(bytes: Uint8Array, at: number) => number}
 */
const half = (bytes, at) => HALVES[bytes[at] | (bytes[at + 1] << 8)];

/**
 * What unpacks the blocks of each kind from a byte on, as many as fill `out`.
 *
 * @type {Record<string, (bytes: Uint8Array, at: number, out: Float32Array) => void>}
 */
const UNPACK = {
  /* A scale, a minimum, and 32 whole numbers of 4 bits: 0 and 16 in the first byte, 1 and 17 … */
  Q4_1(bytes, at, out) {
    for (let to = 0; to < out.length; to += BLOCK, at += BLOCKS.Q4_1.size) {
      const scale = half(bytes, at);
      const least = half(bytes, at + 2);
      for (let n = 0; n < 16; n++) {
        const both = bytes[at + 4 + n];
        out[to + n] = (both & 15) * scale + least;
        out[to + n + 16] = (both >> 4) * scale + least;
      }
    }
  },
  /* A scale, and 32 whole numbers of 8 bits with a sign. */
  Q8_0(bytes, at, out) {
    for (let to = 0; to < out.length; to += BLOCK, at += BLOCKS.Q8_0.size) {
      const scale = half(bytes, at);
      for (let n = 0; n < BLOCK; n++) out[to + n] = ((bytes[at + 2 + n] << 24) >> 24) * scale;
    }
  },
};
const AT_ONCE = 32; // rows that are unpacked at a time

export class QuantisedMatrix {
  /**
   * Make a matrix of a tensor; nothing is unpacked yet.
   *
   * @param {import("./gguf.js").StoredTensor} stored of two dimensions
   * @param {import("./kernels.js").Kernels | null} kernels in whose memory the bytes lie; null:
   *   rows are unpacked here
   */
  constructor({ kind, shape, bytes }, kernels = null) {
    this.rows = shape[0];
    this.columns = shape[1];
    this.kind = kind;
    this.bytes = bytes;
    this.kernels = kernels;
  }

  /**
   * One row as floats.
   *
   * @param {number} row
   * @returns {Float32Array} (columns,)
   */
  row(row) {
    return this.unpack(row, 1);
  }

  /**
   * Some rows as floats, one after the other.
   *
   * @param {number} first
   * @param {number} count how many
   * @param {Float32Array} [out] where to put them, (count · columns,)
   * @returns {Float32Array} out
   */
  unpack(first, count, out = new Float32Array(count * this.columns)) {
    const { size } = BLOCKS[this.kind];
    const start = ((first * this.columns) / BLOCK) * size;
    UNPACK[this.kind](this.bytes, start, out);
    return out;
  }

  /**
   * The whole matrix as floats: four bytes a number.
   *
   * @returns {Float32Array} (rows · columns,)
   */
  get weight() {
    return this.unpack(0, this.rows);
  }

  /**
   * Vectors times the matrix, transposed.
   *
   * @param {Float32Array} x (tokens, columns)
   * @returns {Float32Array<ArrayBuffer>} (tokens, rows)
   */
  multiply(x) {
    if (this.kernels) return this.kernels.multiply(this, x);
    const tokens = x.length / this.columns;
    const out = new Float32Array(tokens * this.rows);
    const room = new Float32Array(AT_ONCE * this.columns);
    for (let first = 0; first < this.rows; first += AT_ONCE) {
      const count = Math.min(AT_ONCE, this.rows - first);
      const weight = this.unpack(first, count, room.subarray(0, count * this.columns));
      const products = linear(x, { weight }, this.columns); // (tokens, count)
      for (let token = 0; token < tokens; token++)
        out.set(products.subarray(token * count, (token + 1) * count), token * this.rows + first);
    }
    return out;
  }
}
