/* What the view *talker* says of a model that talks, and of what goes on inside it. */

import { megabytes, percent, plural, WORLDS } from "./dom.js";
import { quoted } from "./text.js";

/** @import { Likely } from "./talker-worker.js" */

/**
 * What is said of a model that has come.
 *
 * @param {number} memory that it takes, in bytes
 * @param {string | null} notKept why the browser does not keep it, or null
 */
export function arrivedSentence(memory, notKept) {
  const keeps = notKept ? `It is not kept: ${notKept}` : "Your browser keeps it";
  return `The model is here, in ${megabytes(memory)} of memory. ${keeps}.`;
}

/**
 * What is said of a text that is too long.
 *
 * @param {number} tokens of the text
 * @param {number} most tokens that are read
 */
export const tooLongSentence = (tokens, most) =>
  `That is too long: ${plural(tokens, "token")}, and it reads ${most} at the most.`;

/**
 * How many of the likeliest first tokens of the trained model are also among those of the changed
 * one.
 *
 * @param {string} world the state of the switch, random or shuffled
 * @param {string} left how many, as `leftOf` says it
 */
export function leftSentence(world, left) {
  const how = world === WORLDS.random ? "With random weights" : "With your words in another order";
  return `${how}, of the five tokens with which the model would most likely begin, ${left} left.`;
}

/**
 * Which token is likeliest after another.
 *
 * @param {string} chosen the token before
 * @param {Likely} first the likeliest token
 */
export const nextSentence = (chosen, first) =>
  `After ${quoted(chosen)} the likeliest token is ${quoted(first.piece)}: ` +
  `${percent(first.share, 1)}.`;

/**
 * What the table of layers shows.
 *
 * @param {string} chosen the token before
 */
export const lensSentence = (chosen) =>
  `What the model would say after ${quoted(chosen)} if it ended after a layer.`;

/**
 * The position of the largest weight behind the first one, which most heads attend to; 0 if
 * there is no other.
 *
 * @param {ArrayLike<number>} weights one or more
 */
export function mostBehindFirst(weights) {
  let best = weights.length > 1 ? 1 : 0;
  for (let i = best; i < weights.length; i++) if (weights[i] > weights[best]) best = i;
  return best;
}

/**
 * What a head attends to from a token.
 *
 * @param {[layer: number, head: number]} which the head
 * @param {string[]} pieces the tokens
 * @param {number} place the position of the one that attends
 * @param {ArrayLike<number>} weights of all tokens up to that one
 */
export function attentionSentence([layer, head], pieces, place, weights) {
  const best = mostBehindFirst(weights);
  const behind = `most goes to ${quoted(pieces[best])}: ${percent(weights[best])}.`;
  return (
    `Head ${head} of layer ${layer}, from ${quoted(pieces[place])}: ` +
    `the first token gets ${percent(weights[0])}; of the rest ${behind}`
  );
}

/**
 * What changed heads do to the next token.
 *
 * @param {number} count how many heads are changed
 * @param {Likely} first the likeliest token
 * @param {Likely} [unchanged] the same with no head changed, if it is known
 */
export function headsSentence(count, first, unchanged) {
  const now = `the likeliest token is ${quoted(first.piece)}, ${percent(first.share, 1)}`;
  if (!count) return `No head is changed; ${now}.`;
  const then = unchanged
    ? `; before it was ${quoted(unchanged.piece)}, ${percent(unchanged.share, 1)}`
    : "";
  return `${plural(count, "head")} changed: ${now}${then}. The marks are the model unchanged.`;
}
