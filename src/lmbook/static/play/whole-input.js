/* How a line of the view *whole* becomes what a model is given: its tokens, and the position at
   which it is asked. */

import { plural } from "./dom.js";
import { reordered } from "./random.js";
import { neverRead, quoted } from "./text.js";
import { shown } from "./tokenizers.js";

/** @import { WordPiece } from "./tokenizers.js" */

const SEED = 1; // of the order of shuffled tokens

/**
 * Tokens, and the position at which the model is asked for one.
 *
 * @typedef {{ ids: number[], place: number }} Asked
 */

/**
 * A text as the model is given it; `message`: what the reader is told of what is left out, or "".
 * With no tokens there is nothing to ask.
 *
 * @typedef {Asked & { message: string }} Input
 */

/**
 * What the model is given of an empty line: nothing.
 *
 * @type {Input}
 */
export const EMPTY = { ids: [], place: 0, message: "Type something: the picture follows." };

/**
 * A name for a text and the position at which it is asked.
 *
 * @param {Asked} input
 */
export const asked = ({ place, ids }) => String([place, ...ids]);

/**
 * The tokens that may change places: all before the one that is asked; BERT's all but the gap and
 * the first and last special token.
 *
 * @param {Asked} input
 * @param {string} name of the model
 * @returns {number[]} their positions
 */
function movable({ ids, place }, name) {
  const all = Array.from(ids.keys());
  if (name === "bert") return all.slice(1, -1).filter((position) => position !== place);
  return all.slice(0, place);
}

/**
 * Whether a text has no other order: fewer than two different tokens may change places.
 *
 * @param {Asked} input
 * @param {string} name of the model
 */
export const isAlone = (input, name) =>
  new Set(movable(input, name).map((position) => input.ids[position])).size < 2;

/**
 * A text whose movable tokens are in another order, the same each time.
 *
 * @param {Input} input
 * @param {string} name of the model
 * @returns {Input}
 */
export function mixed(input, name) {
  const positions = movable(input, name);
  const ids = [...input.ids];
  reordered(positions, SEED).forEach((from, i) => {
    ids[positions[i]] = input.ids[from];
  });
  return { ...input, ids };
}

/**
 * A text that the model goes on with: its last tokens, asked at the one that was pressed or else
 * at the last.
 *
 * @param {number[]} all IDs, one or more
 * @param {number} room the most tokens
 * @param {number | null} pressed the position of the token that was pressed
 * @param {string} [message] what is said of the text before
 * @returns {Input}
 */
export function atEnd(all, room, pressed, message = "") {
  const ids = all.slice(-room);
  const cut =
    ids.length < all.length ? `The picture has room for the last ${plural(room, "token")}.` : "";
  const place = Math.min(pressed ?? ids.length - 1, ids.length - 1);
  return { ids, place, message: `${message}${cut}` };
}

/**
 * A text of letters, without those that the model does not know.
 *
 * @param {string} line
 * @param {{ alphabet?: string, room: number }} model what it knows, and the most tokens of a text
 * @param {number | null} pressed the position of the letter that was pressed, as in `atEnd`
 * @returns {Input}
 */
export function readLetters(line, { alphabet = "", room }, pressed) {
  const known = Array.from(alphabet);
  const letters = Array.from(line);
  const strange = new Set(letters.filter((c) => !known.includes(c)));
  const message = neverRead(Array.from(strange, (c) => quoted(shown(c))));
  const ids = letters.map((c) => known.indexOf(c)).filter((id) => id >= 0);
  if (ids.length) return atEnd(ids, room, pressed, message);
  return message
    ? { ...EMPTY, message: `${message}Nothing is left to read: the picture stays as it was.` }
    : EMPTY;
}

/**
 * A text with a gap: at the token that was pressed; else where the first [MASK] stands; else in
 * the place of the last word.
 *
 * @param {string} line
 * @param {{ around?: number[], room: number }} model around: the IDs before and after a text, and
 *   that of [MASK]; room: the most tokens of a text
 * @param {number | null} pressed the position of the token that was pressed, or null
 * @param {WordPiece} reader the model's tokenizer
 * @returns {Input}
 */
export function readGap(line, { around = [], room }, pressed, reader) {
  const [first, last, mask] = around;
  const tokens = reader.encode(line);
  const all = tokens.map(({ id }) => id);
  if (!all.length) return EMPTY;
  const some = all.slice(0, room - 2);
  const ids = [first, ...some, last];
  const gap = ids.indexOf(mask);
  const wanted = pressed ?? (gap > 0 ? gap : ids.length - 2);
  const place = Math.max(1, Math.min(wanted, ids.length - 2));
  let message =
    some.length < all.length
      ? `The picture has room for the first ${plural(some.length, "token")}. `
      : "";
  if (gap < 0 && pressed === null)
    message +=
      "The last word is hidden. Press another token to hide it, or write [MASK] for a gap.";
  ids[place] = mask;
  message += ` ${reader.tellUnknown(tokens.slice(0, some.length))}`;
  return { ids, place, message };
}
