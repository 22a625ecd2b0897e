/* A reader's texts, read by a BERT: each text's vector at each level, and what these say. */

import { openModel } from "./client.js";
import { WORLDS } from "./dom.js";
import { SEED } from "./own-lines.js";
import { labelsOf } from "./poem-files.js";
import {
  labelAccuracy,
  meanOf,
  nearest,
  remainders,
  shuffledLabelAccuracy,
  wordVectors,
} from "./poem-numbers.js";
import { reorderedWords } from "./poem-words.js";
import { readText } from "./store.js";
import { WordPiece } from "./tokenizers.js";

const LONGEST = 512; // tokens of a text
const CUT = 40_000; // characters of a text that are cut into tokens
let views = 0;

/** @import { Client } from "./client.js" */
/** @import { Poem } from "./poem-files.js" */
/** @import { Accuracy } from "./poem-numbers.js" */

/**
 * What is found at the levels in one state of the switch; without labels nothing is told of them.
 *
 * @typedef {object} World
 * @property {string[]} levels their names, the lowest first
 * @property {number[][][]} near (levels, texts, 3)
 * @property {Accuracy[]} [accuracy] one a level
 * @property {string[]} [texts] what was read, if it was not the texts as they are
 */

/**
 * What is found of texts by counting words, `words` (texts, 3) the nearest and `accuracy` how often
 * labels are guessed correctly; and, `shuffled`, how often they are at the model's last level if
 * they are shuffled.
 *
 * @typedef {{ words: number[][], accuracy?: Accuracy, shuffled?: Accuracy }} Rivals
 */

/**
 * A text in tokens, whether they are its beginning alone, and whether the vocabulary has none.
 *
 * @typedef {{ poem: Poem, ids: number[], isCut: boolean, isUnknown: boolean }} Line
 */

/** Wait until the page has drawn and heard its reader. */
const pause = () => new Promise((resolve) => setTimeout(resolve));

/**
 * Make what reads texts with the site's BERT: `bytes`, how much has to be loaded; `prepare`, which
 * loads the model and cuts texts; `read`; `rivals`; and `stop`, which ends reading.
 *
 * @param {{ around: [number, number], most: [texts: number, tokens: number] }} data the IDs before
 *   and after a text; how much is read at the most
 * @param {ViewContext} context
 */
export function readerOf({ around, most }, context) {
  const bert = openModel("bert", context);
  const lane = `own poems ${++views}`; // of this view's requests
  let isStopped = false;
  /** @type {WordPiece | undefined} */
  let tokenizer;
  let room = 0; // tokens of a text, those around it aside
  /** @type {import("./client.js").Client | null} */
  let reading = null; // the model that reads just now
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
   * @param {(share: number) => void} progress called with the share of the model that has come
   * @returns {Promise<{ lines: Line[], left: Poem[] }>} those that are read, and those that are
   *   not: too many, or without a token
   */
  async function prepare(poems, progress) {
    isStopped = false;
    const { config } = await bert.load(progress);
    tokenizer ??= new WordPiece(JSON.parse(await readText("bert-pieces", context)));
    room = Math.min(LONGEST, config.context) - around.length;
    let tokens = 0;
    /** @type {Line[]} */
    const lines = [];
    /** @type {Poem[]} */
    const left = [];
    for (const poem of poems) {
      const encoded = tokenizer.encode(poem.text.slice(0, CUT));
      const isUnknown = tokenizer.areUnknown(encoded);
      const ids = idsOf(encoded);
      const isCut = encoded.length > room || poem.text.length > CUT;
      const fits = encoded.length && lines.length < most[0] && tokens + ids.length <= most[1];
      if (!fits) left.push(poem);
      else lines.push({ poem, ids, isCut, isUnknown });
      tokens += fits ? ids.length : 0;
    }
    return { lines, left };
  }

  /**
   * The IDs that the model reads of a text's tokens, with those around it.
   *
   * @param {{ id: number }[]} encoded
   */
  const idsOf = (encoded) => [around[0], ...encoded.slice(0, room).map(({ id }) => id), around[1]];

  /**
   * A text whose words, those that are read, are in another order, and its IDs.
   *
   * @param {WordPiece} tokenizer
   * @param {Line} line
   * @returns {{ text: string, ids: number[] }}
   */
  function inAnotherOrder(tokenizer, { poem }) {
    /**
     * How many tokens a word has.
     *
     * @param {string} word
     */
    const sizeOf = (word) => tokenizer.encode(word).length;
    const read = reorderedWords(poem.text.slice(0, CUT), sizeOf, room);
    return { text: read + poem.text.slice(CUT), ids: idsOf(tokenizer.encode(read)) };
  }

  /**
   * A text as the model reads it, and its IDs.
   *
   * @param {Line} line
   * @param {string} state of the switch
   * @returns {{ text: string, ids: number[] }}
   */
  function asRead(line, state) {
    if (state === WORLDS.shuffled && tokenizer) return inAnotherOrder(tokenizer, line);
    return { text: line.poem.text, ids: line.ids };
  }

  /**
   * The mean vectors of a text at each level; what was read before is not read again.
   *
   * @param {Client} model
   * @param {number[]} ids of the text
   * @param {string[]} names of the levels, as `Model.forward` keeps them
   * @param {boolean} isRandom whether the model has random weights
   * @returns {Promise<Float64Array[] | null>} null if it was stopped
   */
  async function meansOf(model, ids, names, isRandom) {
    const key = `${isRandom} ${ids}`;
    const before = known.get(key);
    if (before) return before;
    const answer = await model.forward(ids, { keep: names, logits_of: [] }, lane);
    if (!answer) return null;
    const { kept: activations } = answer;
    const means = names.map((name) => meanOf(activations[name].values, activations[name].shape[1]));
    known.set(key, means);
    return means;
  }

  /**
   * Read texts, one after the other, and find what their vectors say.
   *
   * @param {Line[]} lines
   * @param {string} state of the switch: as they are, by random weights, or in another order
   * @param {(done: number) => void} progress called with how many texts are read
   * @returns {Promise<World | null>} null if it was stopped
   */
  async function read(lines, state, progress) {
    // As it is, the model may have been stopped while it was loaded.
    if (state !== WORLDS.asItIs) isStopped = false;
    const isRandom = state === WORLDS.random;
    reading = isRandom ? openModel("bert", context, SEED) : bert;
    try {
      const { config } = await reading.load();
      const names = ["tokens", "embeddings"];
      for (let layer = 0; layer < config.layers; layer++) names.push(`blocks.${layer}`);
      /** @type {Float64Array[][]} */
      const levels = names.map(() => []);
      const texts = [];
      for (const line of lines) {
        if (isStopped) return null;
        const { text, ids } = asRead(line, state);
        texts.push(text);
        const means = await meansOf(reading, ids, names, isRandom);
        if (!means) return null;
        means.forEach((vector, level) => levels[level].push(vector));
        progress(levels[0].length);
      }
      const world = await worldOf(levels, lines);
      return world && { ...world, texts: state === WORLDS.shuffled ? texts : undefined };
    } finally {
      if (isRandom) reading.end();
      reading = null;
    }
  }

  /**
   * What vectors say at each level; those of the last level are kept for `rivals`.
   *
   * @param {Float64Array[][]} levels [level][text], (d_model,)
   * @param {Line[]} lines the texts
   * @returns {Promise<World | null>} null if it was stopped
   */
  async function worldOf(levels, lines) {
    /** @type {World} */
    const world = { levels: levels.map((_, i) => nameOf(i)), near: [] };
    const poems = lines.map(({ poem }) => poem);
    if (poems[0].label !== undefined) world.accuracy = [];
    for (const vectors of levels) {
      await pause();
      if (isStopped) return null;
      world.near.push(nearest(vectors));
      world.accuracy?.push(labelAccuracy(remainders(vectors), labelsOf(poems)));
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
      const counted = labelAccuracy(remainders(words), labels);
      const shuffled = shuffledLabelAccuracy(remainders(last), labels);
      return { words: near, accuracy: counted, shuffled };
    },
    /* End reading; what was read is not read again. */
    stop() {
      isStopped = true;
      reading?.cancel(lane);
    },
  };
}

/**
 * What a level is called.
 *
 * @param {number} level from 0 on
 */
const nameOf = (level) =>
  level < 2 ? ["static", "before layer 0"][level] : `after layer ${level - 2}`;
