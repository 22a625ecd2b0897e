/* Texts that readers bring: bytes become characters, and what cannot be learned is told in
   words. The parts are those of `lmcourse.own_text.parts_of`. */

import { count, plural } from "./dom.js";
import { decodeStrictly, wellFormed } from "./text.js";

const LEAST = 1000; // characters of a text
export const MOST = 1_000_000; // characters of a text that are learned
const DIFFERENT = 6000; // characters of an alphabet, at the most
const HELD_OUT = 20_000; // characters of each held-out part, at the most
const PIECE = 1000; // characters of a held-out piece, at the least
const PIECES = 10; // pieces of a held-out part, at the most

/**
 * Whether a character is none of a text: text has tabs, and ends of lines and pages, but no
 * other signs for machines.
 *
 * @param {string} character
 */
const isStrange = (character) =>
  character === "\ufffd" || (/\p{Cc}/u.test(character) && !"\t\n\v\f".includes(character));

/**
 * Read the bytes of a file as text: UTF-8, UTF-16 if it begins as such, or else the bytes of
 * the old Windows (Latin-1 and a few more).
 *
 * @param {Uint8Array} bytes
 * @returns {{ text: string, note: string }} the note says what was guessed, if something was
 */
export function decodeText(bytes) {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe)
    return { text: decodeStrictly("utf-16le", bytes), note: "" };
  if (first === 0xfe && second === 0xff)
    return { text: decodeStrictly("utf-16be", bytes), note: "" };
  try {
    return { text: decodeStrictly("utf-8", bytes), note: "" };
  } catch {
    const note =
      "The file is not in UTF-8, so it was read as Latin-1. Is a letter wrong? Save the file " +
      "as UTF-8 and choose it again. ";
    return { text: new TextDecoder("windows-1252").decode(bytes), note };
  }
}

/**
 * The characters that are learned of a text, the first MOST: every line ends in a newline, and the
 * mark that some programs put before a text is not of it.
 *
 * @param {string} text
 * @returns {string[]}
 */
export function charactersOf(text) {
  const plain = text.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
  return Array.from(wellFormed(plain)).slice(0, MOST);
}

/**
 * Each character once, in the order of their numbers in Unicode, as Python sorts them.
 *
 * @param {string[]} characters
 * @returns {string[]}
 */
export function alphabetOf(characters) {
  /**
   * The number of a character in Unicode.
   *
   * @param {string} character
   */
  const number = (character) => character.codePointAt(0) ?? 0;
  return Array.from(new Set(characters)).sort((a, b) => number(a) - number(b));
}

/**
 * Say why a text cannot be learned, and what to do; "" if it can.
 *
 * @param {string[]} characters
 * @returns {string}
 */
export function faultOf(characters) {
  const all = characters.length;
  if (!characters.some((character) => character.trim()))
    return "There is no text yet: paste one, or choose a file.";
  if (characters.filter(isStrange).length > all / 100)
    return "This is not text: it has characters that only programs read. A PDF or a document of a word processor must be saved as plain text (.txt, UTF-8) first.";
  if (all < LEAST)
    return (
      `This text has ${plural(all, "character")}, and ${count(LEAST)} are the ` +
      "least that can be learned. Paste more; from 50,000 on it gets interesting."
    );
  const different = new Set(characters).size;
  if (different === 1)
    return (
      `This text is one character, “${characters[0]}”, over and over: ` +
      "there is nothing to predict. Paste another text."
    );
  if (different > DIFFERENT)
    return (
      `This text has ${count(different)} different characters, ` +
      `and a model this small learns ${count(DIFFERENT)} at the most. Paste a part of it.`
    );
  return "";
}

/**
 * A text in three: to learn from, to choose by, and to judge by. What is held out are pieces
 * from everywhere in the text, since its end may be about something else.
 *
 * @template {{ slice(from: number, to: number): any, length: number }} Text
 * @param {Text} text characters or their numbers
 * @returns {{ training: Text[], validation: Text[], test: Text[] }} in pieces
 */
export function partsOf(text) {
  const heldOut = Math.min(Math.floor(text.length / 10), HELD_OUT);
  const pieceCount = Math.max(1, Math.min(PIECES, Math.floor(heldOut / PIECE)));
  const size = Math.floor(heldOut / pieceCount);
  /** @type {{ training: Text[], validation: Text[], test: Text[] }} */
  const parts = { training: [], validation: [], test: [] };
  for (let piece = 0; piece < pieceCount; piece++) {
    const start = Math.floor((text.length * piece) / pieceCount);
    const end = Math.floor((text.length * (piece + 1)) / pieceCount);
    const middle = Math.floor((start + end) / 2);
    parts.training.push(text.slice(start, middle - size), text.slice(middle, end - size));
    parts.validation.push(text.slice(middle - size, middle));
    parts.test.push(text.slice(end - size, end));
  }
  return parts;
}
