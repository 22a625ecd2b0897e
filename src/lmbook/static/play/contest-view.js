/* The view *contest*: how far a word of the reader's lines leans to the verbs, after each
   layer of a BERT that runs in the page, and how far the word before it does: its row of the
   table alone. The chapter on embeddings gives a direction for each level and where its
   middle is; a lean is a dot product with the one, less the other. A switch puts random weights
   in the model's place, or the words in another order. Of the lines that it opens with there
   are the leans in untrained layers; for others the page learns directions of its own, from a
   few plain sentences, since those of the trained model would say nothing of random weights. */
import {
  button,
  changedHow,
  fixed,
  heading,
  learnedSwitch,
  make,
  row,
  someOf,
  stateOf,
  WORLDS,
} from "./dom.js";
import { inAnotherOrder, ONE_ORDER, ownLines, SEED } from "./own-lines.js";

const MOST = 4; // occurrences that are shown
const FULL = 0.12; // the lean that fills half a bar
const LEAST = 0.005; // a lean that is written as 0.01

/** @import { Line } from "./own-lines.js" */

/**
 * The name of a level, its direction, and the middle between verbs and nouns.
 *
 * @typedef {[name: string, direction: ArrayLike<number>, middle: number]} Level
 */

/**
 * Two sentences with "_" in the place of a verb, and of a noun.
 *
 * @typedef {[verb: string, noun: string]} Pair
 */

/**
 * A word in a line.
 *
 * @typedef {{ line: Line, position: number }} Place
 */

/**
 * What a model made of a line's tokens, in the order in which they stood.
 *
 * @typedef {{ values: Float32Array[], order: number[] }} Reading
 */

/**
 * @typedef {object} Data
 * @property {Level[]} levels the name of each level, its direction
 *   (d_model,), and the middle between verbs and nouns
 * @property {string[]} texts lines to begin with
 * @property {string} word the word of these lines
 * @property {[string, ...number[]][]} told of each level, the name and how far the word leans
 *   in each text
 * @property {[string, ...number[]][]} [untrained] the same in untrained layers
 * @property {[number, number]} around the ids before and after a line
 * @property {{ words: string[], pairs: Pair[], before: Pair[] }} lessons from which directions
 *   are learned: with each of the words in pairs in which it stands after the same words, and
 *   of the word before from others
 */

/**
 * The side to which a word leans.
 *
 * @param {number} lean how far the word's vector, brought to length 1, is from the middle along
 *   the level's direction; above 0 to the verbs, below 0 to the nouns
 * @returns {"neither" | "verb" | "noun"} "neither" below `LEAST` to each side
 */
function sideOf(lean) {
  if (Math.abs(lean) < LEAST) return "neither";
  return lean > 0 ? "verb" : "noun";
}

/**
 * A token's vector, brought to length 1.
 *
 * @param {Float32Array} states (tokens, width)
 * @param {number} width
 * @param {number} position the token
 */
function unitAt(states, width, position) {
  const vector = states.slice(position * width, (position + 1) * width);
  const length = Math.hypot(...vector);
  return vector.map((x) => x / length);
}

/**
 * The dot product of two vectors.
 *
 * @type {(a: ArrayLike<number>, b: ArrayLike<number>) => number}
 */
const product = (a, b) => Array.from(a).reduce((sum, x, i) => sum + x * b[i], 0);

/**
 * The vector in the middle of some: the mean of each of their numbers.
 *
 * @param {Float32Array[]} vectors one or more, of one length
 * @returns {number[]} (width,)
 */
const middleOf = (vectors) =>
  Array.from(vectors[0], (_, i) => vectors.reduce((sum, v) => sum + v[i], 0) / vectors.length);

/**
 * Draw a lean as a bar from the middle: to the right for verbs, to the left for nouns; beside it
 * the number and the side, "neither" below `LEAST`.
 *
 * @param {number} value the lean, as `sideOf` takes it
 */
function leaning(value) {
  const share = Math.min(1, Math.abs(value) / FULL) / 2;
  const from = value < 0 ? 50 - 100 * share : 50;
  const style = `--from: ${from}%; --share: ${100 * share}%`;
  const side = sideOf(value);
  return make(
    "span",
    { class: `lmw-lean lmw-${side}`, style },
    make("i"),
    `${fixed(value)} ${side}`,
  );
}

/**
 * Whether a line with its tokens in another order is the same line.
 *
 * @param {Line} line
 */
const hasOneOrder = ({ tokens }) => inAnotherOrder(tokens).every((old, i) => old === i);

/**
 * Where a word occurs in lines; at the beginning of a line stands a special token, and no word.
 *
 * @param {string | undefined} word
 * @param {Line[]} lines
 * @returns {Place[]}
 */
const occurrencesOf = (word, lines) =>
  lines.flatMap((line) =>
    line.tokens.flatMap((other, position) =>
      other === word && position ? [{ line, position }] : [],
    ),
  );

/**
 * Mount the view *contest*: how far a word of the reader's lines leans to verbs or nouns, after
 * each layer of a BERT.
 *
 * @param {HTMLElement} element empty
 * @param {Data} data
 * @param {ViewContext} context
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data, context) {
  const names = data.levels.map(([name]) => name);
  const layers = names.length - 2; // after the word before and "before layer 0"
  const width = data.levels[0][1].length;
  const chosen = make("p", {
    class: "lmw-words play-words",
    role: "group",
    "aria-label": "The word",
  });
  const table = make("table");
  const summary = make("p", { class: "play-hidden", role: "status" });
  /** @type {string | undefined} */
  let word = data.word; // the token whose leans are shown
  /** @type {Line[]} */
  let lines = []; // the reader's, once they are read
  const {
    worlds,
    remains,
    label: worldLabel,
  } = learnedSwitch(() => {
    if (lines.length) choose(word);
    else drawStored();
  });
  let questions = 0; // only the last one may be answered
  /** @type {Map<Line, Record<string, Reading>>} by the state of the switch */
  const readings = new Map();
  /** @type {Promise<Level[] | null> | null} */
  let learned = null; // the directions of random weights
  if (data.untrained) element.append(make("p", { class: "lmw-world" }, worldLabel), remains);
  const own = ownLines(
    {
      text: data.texts.join("\n"),
      name: "Your line",
      around: data.around,
      take,
      fits: (config) => config.layers === layers && config.d_model === width,
      keep: ["tokens", "embeddings", ...Array.from({ length: layers }, (_, i) => `blocks.${i}`)],
    },
    context,
  );
  element.append(...own.parts, chosen, make("div", { class: "lmw-wide" }, table), summary);

  /**
   * Take lines that were read, list their words, and choose one: the same as before, or else the
   * most frequent, of these the longest.
   *
   * @param {Line[]} read
   */
  function take(read) {
    lines = read;
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const piece of lines.flatMap(({ tokens }) => tokens.slice(1, -1)))
      if (/\p{L}/u.test(piece)) counts.set(piece, (counts.get(piece) || 0) + 1);
    if (!word || !counts.has(word))
      word = Array.from(counts).sort(([a, m], [b, n]) => n - m || b.length - a.length)[0]?.[0];
    chosen.replaceChildren(
      counts.size ? "The word: " : "Type a line.",
      ...Array.from(counts.keys(), (piece) => button(piece, () => choose(piece))),
    );
    choose(word);
  }

  /* Draw the lines that it opens with, before the model is here, as far as the state of the switch
     is stored. */
  function drawStored() {
    const isRandom = worlds.value === WORLDS.random && data.untrained;
    draw(data.texts, isRandom || data.told);
    if (isRandom) tellLeft(data.told, isRandom);
    else
      remains.textContent =
        worlds.value === WORLDS.asItIs
          ? ""
          : "The model that reads this has to be loaded first: the button is below.";
  }

  /**
   * Show how far a word leans where it occurs in the lines, up to MOST times, in the state of the
   * switch; if that cannot be found, as the trained model reads them.
   *
   * @param {string | undefined} piece the token; undefined if there is none
   */
  async function choose(piece) {
    word = piece;
    const question = ++questions;
    for (const each of chosen.querySelectorAll("button"))
      each.setAttribute("aria-pressed", String(each.textContent === word));
    const occurrences = occurrencesOf(word, lines).slice(0, MOST);
    const world = worlds.value;
    const usual = leansOf(occurrences, data.levels, ({ tokens, values }) => ({
      values,
      order: Array.from(tokens.keys()),
    }));
    if (world === WORLDS.asItIs || !occurrences.length) {
      remains.textContent = "";
      return draw(usual.heads, usual.rows);
    }
    remains.textContent = "Reading …";
    const now = await changedLeans(occurrences, world, question);
    if (question !== questions) return;
    if (!now) {
      remains.textContent = "";
      return draw(usual.heads, usual.rows);
    }
    draw(now.heads, now.rows);
    if (world === WORLDS.shuffled && occurrences.every(({ line }) => hasOneOrder(line)))
      remains.textContent = ONE_ORDER;
    else tellLeft(usual.rows, now.rows);
  }

  /**
   * How far the chosen word leans by random weights, or in lines in another order.
   *
   * @param {Place[]} occurrences of the word
   * @param {string} world state of the switch, random or shuffled
   * @param {number} question the number of this choice: after a later one nothing more is read
   * @returns {Promise<ReturnType<typeof leansOf> | null>} null if it is not found
   */
  async function changedLeans(occurrences, world, question) {
    const levels = world === WORLDS.random ? await directions() : data.levels;
    for (const { line } of occurrences) {
      if (question !== questions) return null;
      await read(line, world);
    }
    const answers = occurrences.map(({ line }) => readings.get(line)?.[world]);
    if (!levels || answers.includes(undefined)) return null;
    return leansOf(
      occurrences,
      levels,
      (line) => /** @type {Record<string, Reading>} */ (readings.get(line))[world],
    );
  }

  /**
   * Let the model read a line by random weights or in another order, unless that is known; the
   * reading is kept in `readings`.
   *
   * @param {Line} line
   * @param {string} world state of the switch
   */
  async function read(line, world) {
    const known = readings.get(line) ?? {};
    readings.set(line, known);
    if (known[world]) return;
    const isRandom = world === WORLDS.random;
    const order = isRandom ? Array.from(line.tokens.keys()) : inAnotherOrder(line.tokens);
    const tokens = order.map((old) => line.tokens[old]);
    const values = await own.ask(tokens, isRandom ? SEED : null);
    if (values) known[world] = { values, order };
  }

  /* The directions of random weights, learned once; null if they could not be. */
  function directions() {
    learned ??= learn().then((levels) => {
      if (!levels) learned = null;
      return levels;
    });
    return learned;
  }

  /**
   * Learn directions for the model with random weights: at each level the unit vector from the mean
   * noun to the mean verb, and the midpoint along it. Level 0 is the table's row of the token
   * before the word, learned from the lessons `before`; all other levels use the word's own state,
   * from the lessons `pairs`.
   *
   * @returns {Promise<Level[] | null>} null if the model did not answer
   */
  async function learn() {
    const { words, pairs, before } = data.lessons;
    /** @type {Float32Array[][][]} */
    const vectors = names.map(() => [[], []]); // [level][verbs, nouns]
    const all = [
      ...before.map((pair) => ({ pair, each: words[0], isBefore: true })),
      ...pairs.flatMap((pair) => words.map((each) => ({ pair, each, isBefore: false }))),
    ];
    for (const [count, { pair, each, isBefore }] of all.entries()) {
      if (worlds.value === WORLDS.random)
        remains.textContent = `Reading … ${count} of ${all.length} lessons on verbs and nouns`;
      for (const [side, text] of pair.entries()) {
        const tokens = own.cut(text.replace("_", each));
        const values = await own.ask(tokens, SEED, "lessons");
        if (!values) return null;
        const position = tokens.indexOf(each);
        names.forEach((_, i) => {
          const isWordBefore = i === 0;
          if (isBefore === isWordBefore)
            vectors[i][side].push(unitAt(values[i], width, isWordBefore ? position - 1 : position));
        });
      }
    }
    return names.map((name, i) => {
      const [verbs, nouns] = vectors[i].map(middleOf);
      const difference = verbs.map((x, n) => x - nouns[n]);
      const length = Math.hypot(...difference) || 1;
      const direction = difference.map((x) => x / length);
      const sum = verbs.map((x, n) => x + nouns[n]);
      return [name, direction, product(sum, direction) / 2];
    });
  }

  /**
   * How far a word leans at each level where it occurs, and the words around it there.
   *
   * @param {Place[]} occurrences
   * @param {Level[]} levels
   * @param {(line: Line) => Reading} reading gives what the model made of a line
   * @returns {{ heads: string[], rows: Data["told"] }} the words around each occurrence; of each
   *   level the name and the leans
   */
  function leansOf(occurrences, levels, reading) {
    const columns = occurrences.map(({ line, position }) => {
      const { values, order } = reading(line);
      return {
        values,
        position: order.indexOf(position),
        tokens: order.map((old) => line.tokens[old]),
      };
    });
    const heads = columns.map(({ tokens, position }) =>
      tokens
        .slice(Math.max(1, position - 2), position + 2)
        .join(" ")
        .replace(/ ##| \[SEP\]/g, ""),
    );
    /** @type {Data["told"]} */
    const rows = names.map((name, i) => [
      name,
      ...columns.map(({ values, position }) =>
        lean(values[i], levels[i], i ? position : position - 1),
      ),
    ]);
    return { heads, rows };
  }

  /**
   * How far a vector, brought to length 1, is from the middle along its level's direction.
   *
   * @param {Float32Array} states (tokens, d_model)
   * @param {Level} level
   * @param {number} position the token
   */
  const lean = (states, [, direction, middle], position) =>
    product(direction, unitAt(states, width, position)) - middle;

  /**
   * Say how many bars, of all levels and occurrences of the word, still point to the side (verbs
   * or nouns) to which they point when the trained model reads the words in their own order. A bar
   * that then pointed to neither side is never counted.
   *
   * @param {Data["told"]} before of each level its name and the leans, in the trained model
   * @param {Data["told"]} now the same with random weights, or with the words in another order
   */
  function tellLeft(before, now) {
    /**
     * The sides of all leans.
     *
     * @type {(rows: Data["told"]) => string[]}
     */
    const sides = (rows) => rows.flatMap(([, ...leans]) => leans.map(sideOf));
    const sidesNow = sides(now);
    const sidesBefore = sides(before);
    const same = sidesBefore.filter((side, i) => side !== "neither" && side === sidesNow[i]).length;
    remains.textContent =
      `${changedHow(worlds.value, "the words")}, ${someOf(same, sidesBefore.length, "bar")} ` +
      `${same > 1 ? "point" : "points"} to the same side as before.`;
  }

  /**
   * Draw the table of leans; what is read out are those of the last level.
   *
   * @param {string[]} heads of the columns
   * @param {Data["told"]} rows
   */
  function draw(heads, rows) {
    table.replaceChildren(
      heading("", ...heads),
      make("tbody", {}, ...rows.map(([name, ...values]) => row(name, ...values.map(leaning)))),
    );
    const [last, ...values] = rows[rows.length - 1];
    summary.textContent = heads.map((head, i) => `${head}: ${last} ${fixed(values[i])}`).join("; ");
  }

  drawStored();
  const state = {
    text: own.area,
    word: {
      get: () => word ?? "",
      /* Choose a word of the lines; one of lines that are not read yet will be chosen then. */
      set(/** @type {string} */ piece) {
        const isThere = lines.some(({ tokens }) => tokens.includes(piece));
        if (isThere) choose(piece);
        else if (own.area.value.toLowerCase().includes(piece.replace(/^##/, ""))) word = piece;
      },
    },
    world: worlds,
  };
  return { state: stateOf(state) };
}
