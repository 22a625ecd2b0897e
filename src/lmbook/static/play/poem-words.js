/* A text in which the words that BERT reads change places, as
   `lmcourse.random_order.reordered_words` does it. */

import { SEED } from "./own-lines.js";
import { SPACE } from "./poem-files.js";
import { reordered } from "./random.js";

// An ideograph is a word by itself, as a BERT reads it.
const IDEOGRAPHS = "\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{2fa1f}";
const WORD = new RegExp(`[${IDEOGRAPHS}]|[^${IDEOGRAPHS}${SPACE.slice(1)}+`, "gu");
const TOUCHES = new RegExp(`[^${SPACE.slice(1)}$`, "u");

/**
 * Put a text's words in another order. Spaces and ends of lines stay, and punctuation goes with
 * the word that it is written to. Where a text is longer than what is read, only the words that
 * are read whole change places.
 *
 * @param {string} text
 * @param {(word: string) => number} sizeOf how many tokens a word has
 * @param {number} room tokens that are read
 * @returns {string}
 */
export function reorderedWords(text, sizeOf, room) {
  const words = text.match(WORD) ?? [];
  let tokens = 0;
  const end = words.findIndex((word) => {
    tokens += sizeOf(word);
    return tokens > room;
  });
  const whole = end < 0 ? words.length : end;
  const all = [...reordered(words.slice(0, whole), SEED), ...words.slice(whole)];
  let next = 0;
  return text.replace(WORD, (_, at) => {
    const space = TOUCHES.test(text.slice(Math.max(0, at - 1), at)) ? " " : "";
    return space + all[next++];
  });
}
