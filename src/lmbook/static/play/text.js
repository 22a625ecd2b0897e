/* Text as readers type it and see it, in browsers of several ages. */

/**
 * Put U+FFFD for each half of a surrogate pair, which is no character.
 *
 * @param {string} text
 * @returns {string}
 */
export const wellFormed = (text) => text.replace(/\p{Surrogate}/gu, "\ufffd");

/**
 * Cut a text into letters, each with its marks; where the browser cannot, into code points.
 *
 * @param {string} text
 * @returns {string[]}
 */
export function letters(text) {
  if (!Intl.Segmenter) return Array.from(text);
  return Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment);
}

/**
 * Read bytes as text.
 *
 * @param {string} encoding
 * @param {Uint8Array} bytes
 * @returns {string}
 * @throws {TypeError} if they are no text in this encoding
 */
export const decodeStrictly = (encoding, bytes) =>
  new TextDecoder(encoding, { fatal: true }).decode(bytes);

/**
 * A text in quotation marks, isolated: Hebrew turns nothing around it.
 *
 * @param {string} text
 * @returns {string}
 */
export const quoted = (text) => `“\u2068${text}\u2069”`;

/** @type {Record<string, string | undefined>} */
const SIGNS = { " ": "·", "\n": "⏎" };

/**
 * A character as it is shown: a space and an end of line get a sign.
 *
 * @param {string} character
 * @returns {string}
 */
export const visible = (character) => SIGNS[character] ?? character;

const NAMED = 8; // characters that are named one by one

/**
 * Say which characters of a text were left out.
 *
 * @param {string[]} names of characters that a model has never read
 * @returns {string} names the first eight, and ends in a space; "" if there are none
 */
export function neverRead(names) {
  if (!names.length) return "";
  const rest = names.length - NAMED;
  const more = rest > 0 ? ` and ${rest} more` : "";
  return `Left out, as it has never read them: ${names.slice(0, NAMED).join(" ")}${more}. `;
}
