/* A reader's texts, read by a BERT: each text's vector at each level, and what these say. */

import { openModel } from "./client.js";
import { labelsOf } from "./poem-files.js";
import { dealt, meanOf, nearest, remainders, told, wordVectors } from "./poem-numbers.js";
import { readText } from "./store.js";
import { WordPiece } from "./tokenizers.js";

const SEED = 1; // of random weights
const LONGEST = 512; // tokens of a text
const CUT = 40_000; // characters of a text that are cut into tokens
let views = 0;

/** @import { Poem } from "./poem-files.js" */
/** @import { Told } from "./poem-numbers.js" */

/**
 * What is found at the levels of one model; without labels nothing is told of them.
 *
 * @typedef {object} World
 * @property {string[]} levels their names, the lowest first
 * @property {number[][][]} near (levels, texts, 3)
 * @property {Told[]} [told] one a level
 */

/**
 * What is found of texts without a model, or at the last level with labels dealt anew.
 *
 * @typedef {{ words: number[][], told?: Told, dealt?: Told }} Rivals
 */

/**
 * A text in tokens, whether they are its beginning alone, and whether the vocabulary has none.
 *
 * @typedef {{ poem: Poem, ids: number[], isCut: boolean, isUnknown: boolean }} Line
 */

/** Wait until the page has drawn and heard its reader. */
const pause = () => new Promise((resolve) => setTimeout(resolve));

/**
 * Make what reads texts with the site's BERT.
 *
 * @param {{ around: [number, number], most: [number, number] }} data
 * @param {ViewContext} context
 */
export function readerOf({ around, most }, context) {
  const bert = openModel("bert", context);
  const lane = `own poems ${++views}`;
  let isStopped = false;
  /** @type {WordPiece | undefined} */
  let tokenizer;
  /** @type {import("./client.js").Client | null} */
  let reading = null;
  /**
   * The vectors of each text at all levels, by its tokens: whoever stops loses nothing.
   *
   * @type {Map<string, Float64Array[]>}
   */
  const known = new Map();

  /**
   * Load the model, and cut texts into tokens: as many as there is room for.
   *
   * @param {Poem[]} poems
   * @param {(share: number) => void} progress
   * @returns {Promise<{ lines: Line[], left: Poem[] }>} those that are read, and those that are not
   */
  async function prepare(poems, progress) {
    isStopped = false;
    const { config } = await bert.load(progress);
    tokenizer ??= new WordPiece(JSON.parse(await readText("bert-pieces", context)));
    const room = Math.min(LONGEST, config.context);
    let tokens = 0;
    /** @type {Line[]} */
    const lines = [];
    /** @type {Poem[]} */
    const left = [];
    for (const poem of poems) {
      const pieces = tokenizer.encode(poem.text.slice(0, CUT));
      const isUnknown = tokenizer.areUnknown(pieces);
      const found = pieces.map(({ id }) => id);
      const ids = [around[0], ...found.slice(0, room - 2), around[1]];
      const isCut = found.length > room - 2 || poem.text.length > CUT;
      const fits = found.length && lines.length < most[0] && tokens + ids.length <= most[1];
      if (!fits) left.push(poem);
      else lines.push({ poem, ids, isCut, isUnknown });
      tokens += fits ? ids.length : 0;
    }
    return { lines, left };
  }

  /**
   * Read texts, each in its turn.
   *
   * @param {Line[]} lines
   * @param {boolean} isRandom with random weights
   * @param {(done: number) => void} progress how many texts are read
   * @returns {Promise<World | null>} null if it was stopped
   */
  async function read(lines, isRandom, progress) {
    if (isRandom) isStopped = false; // the trained model is stopped while it is loaded, too
    reading = isRandom ? openModel("bert", context, SEED) : bert;
    try {
      const { config } = await reading.load();
      const names = ["tokens", "embeddings"];
      for (let layer = 0; layer < config.layers; layer++) names.push(`blocks.${layer}`);
      /** @type {Float64Array[][]} */
      const levels = names.map(() => []);
      for (const { ids } of lines) {
        if (isStopped) return null;
        const key = `${isRandom} ${ids}`;
        let means = known.get(key);
        if (!means) {
          const answer = await reading.forward(ids, { keep: names, logits_of: [] }, lane);
          if (!answer) return null;
          const { kept } = answer;
          means = names.map((name) => meanOf(kept[name].values, kept[name].shape[1]));
          known.set(key, means);
        }
        means.forEach((vector, level) => levels[level].push(vector));
        progress(levels[0].length);
      }
      return await worldOf(levels, lines);
    } finally {
      if (isRandom) reading.end();
      reading = null;
    }
  }

  /**
   * @param {Float64Array[][]} levels
   * @param {Line[]} lines
   * @returns {Promise<World | null>}
   */
  async function worldOf(levels, lines) {
    /** @type {World} */
    const world = { levels: levels.map((_, i) => nameOf(i)), near: [] };
    const poems = lines.map(({ poem }) => poem);
    if (poems[0].label !== undefined) world.told = [];
    for (const vectors of levels) {
      await pause();
      if (isStopped) return null;
      world.near.push(nearest(vectors));
      world.told?.push(told(remainders(vectors), labelsOf(poems)));
    }
    last = levels[levels.length - 1];
    return world;
  }
  /** @type {Float64Array[]} the vectors of the last level */
  let last = [];

  return {
    bytes: bert.about.bytes + context.stores["bert-pieces"].bytes,
    prepare,
    read,
    /**
     * What is found without reading; call it when the trained model has read.
     *
     * @param {Line[]} lines
     * @returns {Promise<Rivals>}
     */
    async rivals(lines) {
      const poems = lines.map(({ poem }) => poem);
      const words = wordVectors(poems.map(({ text }) => text));
      const near = nearest(words);
      if (poems[0].label === undefined) return { words: near };
      await pause();
      const labels = labelsOf(poems);
      const counted = told(remainders(words), labels);
      return { words: near, told: counted, dealt: dealt(remainders(last), labels) };
    },
    stop() {
      isStopped = true;
      reading?.cancel(lane);
    },
  };
}

/** @param {number} level */
const nameOf = (level) =>
  level < 2 ? ["static", "before layer 0"][level] : `after layer ${level - 2}`;
