/* Weights from a safetensors file: eight bytes of length, a header in JSON, numbers.
   Nothing that a header claims is believed, or allocated, before it fits the file. */

const BYTES = { F32: 4, F16: 2, I8: 1 };
const LONGEST = 2 ** 20; // bytes of header; the largest here has some thousands

/* Throw an Error with a message unless something holds. */
export function demand(condition, message) {
  if (!condition) throw new Error(message);
}

export const isSize = (value) => Number.isSafeInteger(value) && value >= 1 && value <= 1e8;

function readHeader(bytes) {
  demand(bytes.length >= 8, "the weights end before they begin");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const length = view.getUint32(0, true), beyond = view.getUint32(4, true);
  const fits = beyond === 0 && length <= LONGEST && length <= bytes.length - 8;
  demand(fits, "the header of the weights is longer than it can be");
  let header;
  try {
    const text = new TextDecoder("utf-8", { fatal: true });
    header = JSON.parse(text.decode(bytes.subarray(8, 8 + length)));
  } catch (error) {
    throw new Error("the header of the weights is no JSON: " + error.message);
  }
  const isObject = header && typeof header === "object" && !Array.isArray(header);
  demand(isObject, "the header of the weights is no table of tensors");
  return { header, start: 8 + length };
}

/* Check one entry of the header: type, shape, and that it takes the place it should. */
function checkEntry(name, entry) {
  const { dtype, shape, data_offsets: offsets } = entry || {};
  demand(Object.hasOwn(BYTES, dtype), `${name} is ${dtype}, not one of F32, F16, I8`);
  const isShape = Array.isArray(shape) && shape.length <= 2 && shape.every(isSize);
  demand(isShape, `${name} has no shape that a vector or a matrix has`);
  const isPlace = Array.isArray(offsets) && offsets.length === 2;
  const isIn = isPlace && offsets.every(Number.isSafeInteger);
  demand(isIn, `${name} has no place in the file`);
  const size = shape.reduce((product, side) => product * side, BYTES[dtype]);
  const isRoom = offsets[1] - offsets[0] === size;
  demand(isRoom, `${name} has the shape ${shape}, but room for other than its numbers`);
}

/* Read a safetensors file. Returns its configuration and, by name, tensors: { shape, dtype,
   bytes }, parts of the file that are read when they are needed. */
export function readSafetensors(bytes) {
  const { header, start } = readHeader(bytes);
  const { __metadata__: metadata, ...entries } = header;
  for (const [name, entry] of Object.entries(entries)) checkEntry(name, entry);
  const place = (name) => entries[name].data_offsets;
  const inOrder = Object.keys(entries).sort((a, b) => place(a)[0] - place(b)[0]);
  const tensors = new Map();
  let end = 0;
  for (const name of inOrder) {
    demand(place(name)[0] === end, `${name} overlaps another tensor, or leaves a gap`);
    end = place(name)[1];
    const part = bytes.subarray(start + place(name)[0], start + end);
    tensors.set(name, { ...entries[name], bytes: part });
  }
  demand(start + end === bytes.length, "the weights are cut off, or something follows");
  let config;
  try {
    config = JSON.parse(metadata.config);
  } catch {
    throw new Error("the weights come without a configuration");
  }
  return { config, tensors };
}

/* A number of 16 bits (sign, 5 of exponent, 10 of fraction) as JavaScript's. */
function fromHalf(half) {
  const sign = half & 0x8000 ? -1 : 1, exponent = (half >> 10) & 31, fraction = half & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/* Return rows [first, last) of a tensor as float32. Of int8, each row has a scale. */
export function toFloats(tensor, first = 0, last = tensor.shape[0]) {
  const { dtype, shape, scale } = tensor, columns = shape[1] || 1, size = BYTES[dtype];
  const { buffer } = tensor.bytes.slice(first * columns * size, last * columns * size);
  if (dtype === "F32") return new Float32Array(buffer);
  const stored = dtype === "F16" ? new Uint16Array(buffer) : new Int8Array(buffer);
  const values = new Float32Array(stored);
  if (dtype === "F16") {
    for (let i = 0; i < values.length; i++) values[i] = fromHalf(stored[i]);
    return values;
  }
  for (let row = first, i = 0; row < last; row++)
    for (const end = i + columns; i < end; i++) values[i] *= scale[row];
  return values;
}
