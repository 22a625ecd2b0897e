/* Arithmetic in WebAssembly (kernels.wat), and the memory that it works in.

   A file lies there whole, and matrices are multiplied where they lie. Vectors are brought
   as whole numbers of 16 bits with a scale for 32 of them: within 1/65,000 of the largest. */

import { BLOCK } from "./gguf.js";
import { HALVES } from "./quantised.js";

const PAGE = 65536; // bytes, of which a memory is made
const VECTORS = HALVES.byteLength; // where vectors lie, behind the table of halves
const ROOM = 8 * 2 ** 20; // bytes for vectors and results
const FILE = VECTORS + ROOM; // where the file lies
const PACKED = 80; // bytes of a block of a vector
const AT_ONCE = 16; // vectors at most: so many stay in the processor's cache
const LARGEST = 32767;

/**
 * Memory for a file, and what multiplies in it.
 *
 * @param {number} length of the file, in bytes
 * @param {Uint8Array<ArrayBuffer> | null} source kernels.wat, assembled; null does without
 * @returns {Promise<{ bytes: Uint8Array<ArrayBuffer>, kernels: Kernels | null }>} bytes: to be
 *   filled with the file; kernels: null where the browser knows no such instructions
 */
export async function openMemory(length, source) {
  if (!source || !globalThis.WebAssembly?.validate(source))
    return { bytes: new Uint8Array(length), kernels: null };
  const memory = new WebAssembly.Memory({ initial: Math.ceil((FILE + length) / PAGE) });
  const { instance } = await WebAssembly.instantiate(source, { page: { memory } });
  /** @type {any} functions, by kind of matrix */
  const functions = instance.exports;
  const kernels = new Kernels(memory.buffer, functions);
  return { bytes: new Uint8Array(memory.buffer, FILE, length), kernels };
}

/* What multiplies vectors with quantised matrices, in WebAssembly. */
export class Kernels {
  /**
   * Put the table of numbers of 16 bits into the memory.
   *
   * @param {ArrayBuffer} buffer the memory
   * @param {Record<string, Function>} functions by kind of matrix
   */
  constructor(buffer, functions) {
    this.floats = new Float32Array(buffer);
    this.integers = new Int16Array(buffer);
    this.functions = functions;
    this.floats.set(HALVES);
  }

  /**
   * Vectors times a matrix, transposed; some vectors at a time.
   *
   * @param {import("./quantised.js").QuantisedMatrix} matrix (rows, columns), whose bytes lie in
   *   the memory
   * @param {Float32Array} x (tokens, columns)
   * @returns {Float32Array<ArrayBuffer>} (tokens, rows)
   */
  multiply({ kind, bytes, rows, columns }, x) {
    const blocks = columns / BLOCK;
    const tokens = x.length / columns;
    const fitting = Math.floor(ROOM / (blocks * PACKED + rows * 4));
    const step = Math.max(1, Math.min(AT_ONCE, fitting));
    const out = new Float32Array(tokens * rows);
    for (let token = 0; token < tokens; token += step) {
      const count = Math.min(step, tokens - token);
      const result = VECTORS + count * blocks * PACKED;
      this.pack(x, token * columns, (token + count) * columns);
      this.functions[kind](bytes.byteOffset, rows, blocks, VECTORS, count, result);
      out.set(this.floats.subarray(result / 4, result / 4 + count * rows), token * rows);
    }
    return out;
  }

  /**
   * Write numbers of x into the memory, from VECTORS on, as blocks: of 32 numbers the scale, the
   * sum, and whole numbers of 16 bits.
   *
   * @param {Float32Array} x
   * @param {number} from the first, a multiple of 32
   * @param {number} to the first behind them that is left out, a multiple of 32
   */
  pack(x, from, to) {
    const { floats, integers } = this;
    for (let start = from, at = VECTORS; start < to; start += BLOCK, at += PACKED) {
      let sum = 0;
      let largest = 0;
      for (let i = start; i < start + BLOCK; i++) {
        sum += x[i];
        largest = Math.max(largest, Math.abs(x[i]));
      }
      floats[at / 4] = largest / LARGEST;
      floats[at / 4 + 1] = sum;
      const times = largest && LARGEST / largest;
      for (let n = 0; n < BLOCK; n++) integers[at / 2 + 8 + n] = Math.round(x[start + n] * times);
    }
  }
}
