/* A Llama from a GGUF file, for engine.js; as `lmcourse.llama`, and under the same names. */

import { Model } from "./engine.js";
import { BLOCKS } from "./gguf.js";
import { QuantisedMatrix } from "./quantised.js";
import { bitsAt } from "./random.js";
import { demand } from "./weights.js";

/* What the engine calls a tensor of a block → what a GGUF file calls it. */
/** @type {Record<string, string>} */
const NAMES = {
  norm_1: "attn_norm",
  "attention.query": "attn_q",
  "attention.key": "attn_k",
  "attention.value": "attn_v",
  "attention.output": "attn_output",
  norm_2: "ffn_norm",
  "feed_forward.gate": "ffn_gate",
  "feed_forward.up": "ffn_up",
  "feed_forward.down": "ffn_down",
};
/** @type {Record<string, string>} */
const OUTSIDE = { tokens: "token_embd", norm: "output_norm" };

/* Tensors whose rows are in the order of engine.js. */
const IN_HALVES = new WeakSet();

/**
 * What a GGUF file calls a tensor: "blocks.3.attention.query" → "blk.3.attn_q.weight".
 *
 * @param {string} name
 */
function nameInFile(name) {
  const [, layer, part] = /^blocks\.(\d+)\.(.*)$/.exec(name) || [];
  return `${part ? `blk.${layer}.${NAMES[part]}` : OUTSIDE[name]}.weight`;
}

/**
 * What engine.js is to know of a Llama. An Error if the file has a model of another kind.
 *
 * @param {Record<string, any>} fields of its GGUF file
 * @returns {import("./engine.js").Config}
 */
function llamaConfig(fields) {
  const architecture = fields["general.architecture"];
  demand(architecture === "llama", `a model of kind ${architecture} is not a Llama`);
  /**
   * A field of the architecture.
   *
   * @param {string} name
   */
  const of = (name) => fields[`llama.${name}`];
  return {
    vocab_size: of("vocab_size"),
    context: of("context_length"),
    layers: of("block_count"),
    heads: of("attention.head_count"),
    kv_heads: of("attention.head_count_kv"),
    d_model: of("embedding_length"),
    d_ff: of("feed_forward_length"),
    base: of("rope.freq_base"),
    eps: of("attention.layer_norm_rms_epsilon"),
    positions: "rotary",
    norm: "rms",
    activation: "silu",
    gated: true,
    causal: true,
    norm_first: true,
    output: "tied",
  };
}

/**
 * Make a model of a file, whose matrices stay where they lie. An Error if the file is no Llama, or
 * has a tensor of another shape or kind than the model needs.
 *
 * @param {import("./gguf.js").GgufFile} file the rows of its queries and keys are put in
 *   another order, once
 * @param {import("./kernels.js").Kernels | null} kernels what multiplies in the memory of the file;
 *   null: JavaScript does
 * @returns {Model}
 */
export function readLlama(file, kernels) {
  const config = llamaConfig(file.fields);
  /** @type {Record<string, number | undefined>} */
  const heads = { query: config.heads, key: config.kv_heads };

  /**
   * A tensor of a shape, as it is stored.
   *
   * @type {(name: string, ...shape: number[]) => import("./gguf.js").StoredTensor}
   */
  function stored(name, ...shape) {
    const entry = file.tensors.get(nameInFile(name));
    const isRight = entry && String(entry.shape) === String(shape);
    if (!entry || !isRight) throw new Error(`${name} has the shape ${entry?.shape}, not ${shape}`);
    return entry;
  }

  /**
   * A matrix that stays quantised, with its rows in the order of engine.js.
   *
   * @type {(name: string, ...shape: number[]) => QuantisedMatrix}
   */
  function matrix(name, ...shape) {
    const entry = stored(name, ...shape);
    demand(BLOCKS[entry.kind], `the page cannot multiply from ${entry.kind}`);
    const shared = heads[name.split(".")[3]];
    if (shared && !IN_HALVES.has(entry)) {
      putInHalves(entry, shared);
      IN_HALVES.add(entry);
    }
    return new QuantisedMatrix(entry, kernels);
  }

  /**
   * A copy of a tensor that is stored as float32.
   *
   * @type {(name: string, ...shape: number[]) => Float32Array}
   */
  function floats(name, ...shape) {
    const { kind, bytes } = stored(name.replace(/\.weight$/, ""), ...shape);
    demand(kind === "F32", `${name} is stored as ${kind}`);
    return new Float32Array(bytes.slice().buffer);
  }

  return new Model(config, { floats, matrix });
}

/**
 * Put the rows of a query or key matrix in the order of engine.js. A file has the rotary pairs
 * of a head side by side, rows 0 and 1, 2 and 3, …; the engine takes the first of each pair
 * from the first half of the head.
 *
 * @param {import("./gguf.js").StoredTensor} tensor changed
 * @param {number} heads how many the rows belong to
 */
function putInHalves({ shape, bytes }, heads) {
  const d_head = shape[0] / heads;
  const size = bytes.length / shape[0]; // bytes of a row
  const old = bytes.slice();
  for (let row = 0; row < shape[0]; row++) {
    const head = Math.floor(row / d_head);
    const within = row % d_head;
    const place = (within % 2) * (d_head / 2) + (within >> 1);
    const target = (head * d_head + place) * size;
    bytes.set(old.subarray(row * size, (row + 1) * size), target);
  }
}

/**
 * Make the integers of every matrix random ones, or bring them back: the second call undoes
 * the first, with the same seed. Each bit is kept or turned (0 to 1, 1 to 0) as a sequence of
 * random bits says. Scales and minima stay, so every block of 32 keeps its range.
 *
 * @param {Map<string, import("./gguf.js").StoredTensor>} tensors changed, but for those in float32
 * @param {number} seed of the random bits
 */
export function turnBits(tensors, seed) {
  let place = 0;
  for (const { kind, bytes } of tensors.values()) {
    if (!BLOCKS[kind]) continue;
    const { size, head } = BLOCKS[kind];
    for (let block = 0; block < bytes.length; block += size)
      for (let at = block + head; at < block + size; at += 4) {
        const bits = bitsAt(seed, place++);
        bytes[at] ^= bits;
        bytes[at + 1] ^= bits >>> 8;
        bytes[at + 2] ^= bits >>> 16;
        bytes[at + 3] ^= bits >>> 24;
      }
  }
}
