/* Reading a GGUF file, as `lmcourse.gguf` does: named fields, named tensors, and then the
   tensors' bytes. The file is one that the site was built with: whoever loads it compares
   its checksum. */

import { demand } from "./weights.js";

export const BLOCK = 32; // numbers that share a scale
const ALIGNMENT = 32; // bytes, unless a field says otherwise

/* A field's type, by the number that stands for it: how DataView reads it, and its bytes. */
/** @type {Record<number, [read: any, bytes: number]>} */
const SCALARS = {
  0: ["getUint8", 1],
  1: ["getInt8", 1],
  2: ["getUint16", 2],
  3: ["getInt16", 2],
  4: ["getUint32", 4],
  5: ["getInt32", 4],
  6: ["getFloat32", 4],
  7: ["getUint8", 1],
  10: ["getBigUint64", 8],
  11: ["getBigInt64", 8],
  12: ["getFloat64", 8],
};
const STRING = 8;
const ARRAY = 9;

/**
 * For each kind of quantised numbers the bytes of a block, and how many of them come before
 * its integers.
 *
 * @type {Record<string, { size: number, head: number }>}
 */
export const BLOCKS = { Q4_1: { size: 20, head: 4 }, Q8_0: { size: 34, head: 2 } };

/* How a tensor's numbers are stored: name, numbers in a block, bytes of a block. */
/** @type {Record<number, [kind: string, numbers: number, bytes: number]>} */
const KINDS = {
  0: ["F32", 1, 4],
  3: ["Q4_1", BLOCK, BLOCKS.Q4_1.size],
  8: ["Q8_0", BLOCK, BLOCKS.Q8_0.size],
};

/**
 * @typedef {object} StoredTensor
 * @property {string} kind "F32", "Q4_1" or "Q8_0"
 * @property {number[]} shape rows first, as in PyTorch
 * @property {Uint8Array<ArrayBuffer>} bytes whole blocks, where they lie in the file
 */

/**
 * @typedef {object} GgufFile
 * @property {Record<string, any>} fields numbers, strings, and lists of them
 * @property {Map<string, StoredTensor>} tensors
 */

/**
 * What a file says of a tensor: its name; its shape, rows first; the number of its kind, a key of
 * KINDS; where it begins, in bytes behind the beginning of all tensors.
 *
 * @typedef {{ name: string, shape: number[], number: number, offset: number }} Announced
 */

/**
 * Read the fields of a GGUF file, and where its tensors lie. An Error if it is no such file, or
 * has tensors of a kind that is not known here.
 *
 * @param {Uint8Array<ArrayBuffer>} bytes the whole file
 * @returns {GgufFile}
 */
export function readGguf(bytes) {
  const header = new Header(bytes);
  demand(header.text(4) === "GGUF", "this is not a GGUF file");
  header.scalar(4); // its version
  const counts = { tensors: header.scalar(10), fields: header.scalar(10) };
  /** @type {Record<string, any>} */
  const fields = {};
  for (let i = 0; i < counts.fields; i++) {
    const name = header.string();
    fields[name] = header.value(header.scalar(4));
  }
  const announced = Array.from({ length: counts.tensors }, () => header.announced());
  const alignment = fields["general.alignment"] ?? ALIGNMENT;
  const start = Math.ceil(header.at / alignment) * alignment;
  const tensors = new Map(announced.map((each) => [each.name, stored(each, bytes, start)]));
  return { fields, tensors };
}

/* What stands before the tensors' bytes; it is read from the beginning to the end. */
class Header {
  /**
   * Begin before the first byte.
   *
   * @param {Uint8Array} bytes of the file
   */
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset);
    this.decoder = new TextDecoder();
    this.at = 0;
  }

  /**
   * Read a text in UTF-8, and go on behind it.
   *
   * @param {number} length in bytes
   */
  text(length) {
    this.at += length;
    return this.decoder.decode(this.bytes.subarray(this.at - length, this.at));
  }

  /**
   * Read a number, and go on behind it. One of 64 bits is rounded to JavaScript's.
   *
   * @param {number} type of SCALARS; a TypeError for any other
   */
  scalar(type) {
    const [read, size] = SCALARS[type];
    this.at += size;
    /** @type {any} each name is of a method */
    const view = this.view;
    return Number(view[read](this.at - size, true));
  }

  /* Read a text behind its length. */
  string() {
    return this.text(this.scalar(10));
  }

  /**
   * Read the value of a field: a number, a text, or a list behind its type and its length.
   *
   * @param {number} type STRING, ARRAY or one of SCALARS; a TypeError for any other
   * @returns {any}
   */
  value(type) {
    if (type === STRING) return this.string();
    if (type !== ARRAY) return this.scalar(type);
    const inner = this.scalar(4);
    return Array.from({ length: this.scalar(10) }, () => this.value(inner));
  }

  /**
   * Read what is said of the next tensor.
   *
   * @returns {Announced}
   */
  announced() {
    const name = this.string();
    const shape = Array.from({ length: this.scalar(4) }, () => this.scalar(10)).reverse();
    return { name, shape, number: this.scalar(4), offset: this.scalar(10) };
  }
}

/**
 * A tensor where it lies in the file. An Error if its kind is not known here.
 *
 * @param {Announced} announced
 * @param {Uint8Array<ArrayBuffer>} bytes the whole file
 * @param {number} start of the tensors' bytes
 * @returns {StoredTensor}
 */
function stored({ name, shape, number, offset }, bytes, start) {
  demand(KINDS[number], `the page cannot read how ${name} is stored`);
  const [kind, numbers, size] = KINDS[number];
  const length = (shape.reduce((product, n) => product * n, 1) / numbers) * size;
  const from = start + offset;
  return { kind, shape, bytes: bytes.subarray(from, from + length) };
}
