/* Shannon's game, in numbers: the same as `lmcourse.guessing`, where the source is told. */

/** The letters that are guessed: capitals are small ones here, other characters are shown. */
export const LETTERS = Array.from("abcdefghijklmnopqrstuvwxyz ");

/** Bits a letter where nothing is known. */
export const MOST = Math.log2(LETTERS.length);

const ORDINARY = 1.96; // standard errors to each side of a 95 % interval

/**
 * What a model does with the letters of a line, one entry for each letter.
 *
 * @typedef {object} Guessed
 * @property {number[]} guesses how many it needs
 * @property {number[]} bits minus the binary logarithm of the letter's probability
 */

/**
 * Shannon's bounds (lower, upper), the lower end of the lower one's 95 % interval (low), and the
 * upper end of the upper one's (high), in bits a letter.
 *
 * @typedef {{ lower: number, upper: number, low: number, high: number }} Bits
 */

/**
 * Which of the 27 letters a character is; null for one that nobody guesses.
 *
 * @param {string} character
 * @returns {string | null}
 */
export function letterOf(character) {
  const low = character.toLowerCase();
  return LETTERS.includes(low) ? low : null;
}

/**
 * The letters of a line in their order.
 *
 * @param {string} line
 * @returns {string[]}
 */
export const lettersOf = (line) =>
  Array.from(line, letterOf).flatMap((letter) => (letter === null ? [] : [letter]));

/**
 * The probabilities of the 27 letters, given that it is one of them; capitals count as their small
 * letters.
 *
 * @param {ArrayLike<number>} probs of the next character, (alphabet,)
 * @param {string[]} alphabet the character of each ID
 * @returns {number[]} (27,)
 */
export function letterProbs(probs, alphabet) {
  const totals = LETTERS.map(() => 0);
  alphabet.forEach((character, id) => {
    const letter = letterOf(character);
    if (letter !== null) totals[LETTERS.indexOf(letter)] += probs[id];
  });
  const sum = totals.reduce((a, b) => a + b);
  return totals.map((prob) => prob / sum);
}

/**
 * At which guess a letter comes, from 1, if the likeliest are guessed first.
 *
 * @param {number[]} probs of the 27 letters
 * @param {string} letter
 */
function guessesFor(probs, letter) {
  const order = Array.from(probs.keys()).sort((a, b) => probs[b] - probs[a] || a - b);
  return 1 + order.indexOf(LETTERS.indexOf(letter));
}

/**
 * With which guess a model finds each letter of a line (1 if it is the likeliest), and the
 * surprisal of each in bits, by the model's probabilities.
 *
 * @param {string} line
 * @param {number[][]} probs of the 27 letters, for each letter of the line
 * @returns {Guessed}
 */
export function guessLine(line, probs) {
  const letters = lettersOf(line);
  return {
    guesses: letters.map((letter, i) => guessesFor(probs[i], letter)),
    bits: letters.map((letter, i) => -Math.log2(probs[i][LETTERS.indexOf(letter)])),
  };
}

/**
 * How many letters took each number of guesses: at position 1 those that were right at once.
 *
 * @param {number[]} guesses of each letter, 1 to 27
 * @returns (29,)
 */
function tally(guesses) {
  const counts = Array(LETTERS.length + 2).fill(0);
  for (const each of guesses) counts[each]++;
  return counts;
}

/**
 * Counts with one less at a position.
 *
 * @param {number[]} counts left as they are
 * @param {number} i
 */
const less = (counts, i) => counts.map((count, at) => (at === i ? count - 1 : count));

/**
 * Shannon's bounds on the entropy of a letter.
 *
 * @param {number[]} counts as `tally` makes them
 * @param {number} total their sum
 * @returns {[lower: number, upper: number]} in bits a letter
 */
function boundsOf(counts, total) {
  let lower = 0;
  let upper = 0;
  for (let i = 1; i <= LETTERS.length; i++) {
    const share = counts[i] / total;
    lower += i * (share - counts[i + 1] / total) * Math.log2(i);
    if (share) upper -= share * Math.log2(share);
  }
  return [Math.max(0, lower), Math.max(0, upper)];
}

/**
 * Shannon's bounds, and how uncertain they are, by the jackknife over letters; of one letter the
 * interval is all that is possible.
 *
 * @param {number[]} guesses for each letter, of which there is at least one: with which guess,
 *   1 to 27, it was found
 * @returns {Bits}
 */
export function bitsOf(guesses) {
  const counts = tally(guesses);
  const count = guesses.length;
  const [lower, upper] = boundsOf(counts, count);
  if (count < 2) return { lower, upper, low: 0, high: MOST };
  const without = counts.map((some, i) => (some ? boundsOf(less(counts, i), count - 1) : [0, 0]));
  /**
   * The mean of a bound when each letter is left out once, and the bound's standard error.
   *
   * @param {0 | 1} which the lower or the upper
   */
  const spread = (which) => {
    const mean = without.reduce((sum, each, i) => sum + counts[i] * each[which], 0) / count;
    const squares = without.reduce(
      (sum, each, i) => sum + counts[i] * (each[which] - mean) ** 2,
      0,
    );
    return { mean, error: Math.sqrt(((count - 1) / count) * squares) };
  };
  const [below, above] = [spread(0), spread(1)];
  const low = count * lower - (count - 1) * below.mean - ORDINARY * below.error;
  const high = count * upper - (count - 1) * above.mean + ORDINARY * above.error;
  return {
    lower,
    upper,
    low: Math.min(lower, Math.max(0, low)),
    high: Math.max(upper, Math.min(MOST, high)),
  };
}
