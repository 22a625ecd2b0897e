/* Two lines of the reader's, read by BERT once its weights are loaded, after a click. */
import { openModel } from "./client.js";
import { button, make, ownLine, percent } from "./dom.js";
import { reordered } from "./random.js";
import { readText } from "./store.js";
import { WordPiece } from "./tokenizers.js";

let instances = 0;
export const LINES = 2; // that are read
const LONGEST = 300; // characters of a line that are cut into tokens
export const ROOM = 46; // tokens of a line that are read, without the first and the last
export const SEED = 1; // of random weights, and of another order
const NO_LINE = "There is nothing to read yet: type a line.";
export const ONE_ORDER = "A single word has one order only.";

/** @import { Config } from "./engine.js" */

/**
 * A line that was read: its tokens, and the values of each activation that was asked for.
 *
 * @typedef {{ tokens: string[], values: Float32Array[] }} Line
 */

/**
 * The values of each activation for a line's tokens, by the trained model or, with a seed, by
 * random weights; null if the model is not here, or another question took the place of this one.
 *
 * @typedef {(
 *   tokens: string[], seed: number | null, purpose?: string
 * ) => Promise<Float32Array[] | null>} Ask
 */

/**
 * Where the tokens of a line stand once its words have changed places; the first token and the
 * last, which are no words, stay.
 *
 * @param {string[]} tokens
 * @returns {number[]} for each new position the old one
 */
export function inAnotherOrder(tokens) {
  /** @type {number[][]} the positions of each word's tokens */
  const words = [];
  tokens.slice(1, -1).forEach((piece, i) => {
    if (piece.startsWith("##") && words.length) words[words.length - 1].push(i + 1);
    else words.push([i + 1]);
  });
  return [0, ...reordered(words, SEED).flat(), tokens.length - 1];
}

/**
 * Make a place for two lines, which BERT reads.
 *
 * @param {object} options
 * @param {string} options.text what stands there to begin with
 * @param {string} options.name what the area is called
 * @param {[number, number]} options.around the ids before and after a line
 * @param {(config: Config) => boolean} options.fits whether the model that the site carries,
 *   which may be another one, will do
 * @param {string[]} options.keep names of activations
 * @param {(lines: Line[]) => void} options.take is given the lines when they are read
 * @param {ViewContext} context
 * @returns {{ area: HTMLTextAreaElement, parts: HTMLElement[], isHere(): boolean, ask: Ask,
 *   cut(line: string): string[] }} where they are typed; that and all that belongs to it; whether
 *   the model is loaded; a way to ask it for the same of other tokens; and the tokens of a line,
 *   once it is loaded
 */
export function ownLines({ text, name, around, fits, keep, take }, context) {
  const bert = openModel("bert", context);
  const { area, note, label } = ownLine(text, read, { maxlength: LINES * LONGEST });
  /** @type {Text} */ (area.parentNode?.firstChild).data = name;
  const loader = button(`Load the model (${bert.size}) and read`, load);
  /** @type {WordPiece | undefined} */
  let tokenizer;
  const lane = `own lines ${++instances}`;

  /* Load the model and read the lines; an error, or that there is no line, is told below them. */
  async function load() {
    if (!area.value.trim()) {
      note.textContent = NO_LINE;
      area.focus();
      return;
    }
    loader.disabled = true;
    try {
      const { config } = await bert.load((share) => {
        note.textContent = `Loading … ${percent(share)}`;
      });
      if (!fits(config)) throw new Error("the site carries another one");
      tokenizer = new WordPiece(JSON.parse(await readText("bert-pieces", context)));
      loader.hidden = true;
      await read();
    } catch (error) {
      note.textContent = `The model does not load: ${error.message}`;
      loader.disabled = false;
    }
  }

  /**
   * The tokens of a line that are read, between the first and the last special token.
   *
   * @param {WordPiece} tokenizer
   * @param {string} line
   */
  function tokensOf(tokenizer, line) {
    const [first, last] = around.map((id) => ({ id, piece: tokenizer.vocabulary[id] }));
    return [first, ...tokenizer.encode(line.slice(0, LONGEST)).slice(0, ROOM), last];
  }

  /**
   * What the reader is told of lines, before they are read: what is left out, what is unknown, that
   * there is nothing to read; "" if there is nothing to tell.
   *
   * @param {WordPiece} tokenizer
   * @param {string[]} lines those that are not empty
   */
  function noteOn(tokenizer, lines) {
    const some = lines.slice(0, LINES);
    const all = some.map((line) => tokenizer.encode(line));
    const isCut = all.some(({ length }, i) => length > ROOM || some[i].length > LONGEST);
    return [
      lines.length > LINES ? "The first two lines are read." : "",
      isCut ? `Of a line the first ${ROOM} tokens are read.` : "",
      all.some(({ length }) => length) ? "" : NO_LINE,
      tokenizer.tellUnknown(all.flat()),
    ]
      .filter(Boolean)
      .join(" ");
  }

  /* Let the model read the lines, and give them to `take`; nothing before the model is loaded, and
     no lines are given if something else is typed meanwhile or the model fails. */
  async function read() {
    if (!tokenizer) return;
    const lines = area.value.split("\n").filter((line) => line.trim());
    /** @type {Line[]} */
    const answers = [];
    note.textContent = noteOn(tokenizer, lines);
    try {
      for (const line of lines.slice(0, LINES)) {
        const tokens = tokensOf(tokenizer, line);
        const answer = await bert.forward(
          tokens.map(({ id }) => id),
          { keep, logits_of: [] },
          lane,
        );
        if (!answer) return; // something else was typed
        answers.push({
          tokens: tokens.map(({ piece }) => piece),
          values: keep.map((each) => answer.kept[each].values),
        });
      }
    } catch (error) {
      note.textContent = `The model does not answer: ${error.message}`;
      return;
    }
    take(answers);
  }

  /**
   * The activations `keep` for other tokens than `read` has, such as a line's in another order, or
   * for random weights; an error is told below the lines. A newer request takes the place of an
   * older one with the same purpose.
   *
   * @type {Ask}
   */
  async function ask(line, seed, purpose = "asked") {
    if (!tokenizer) return null;
    const { vocabulary } = tokenizer;
    const ids = line.map((piece) => vocabulary.indexOf(piece));
    try {
      const model = openModel("bert", context, seed);
      const answer = await model.forward(ids, { keep, logits_of: [] }, `${lane} ${purpose}`);
      return answer && keep.map((each) => answer.kept[each].values);
    } catch (error) {
      note.textContent = `The model does not answer: ${error.message}`;
      return null;
    }
  }

  return {
    area,
    parts: [label, note, make("p", {}, loader)],
    isHere: () => Boolean(tokenizer),
    ask,
    cut: (line) => (tokenizer ? tokensOf(tokenizer, line).map(({ piece }) => piece) : []),
  };
}
