/* Text as readers type it, in browsers of several ages. */

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
