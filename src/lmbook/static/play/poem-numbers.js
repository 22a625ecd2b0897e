/* What texts' vectors say: which texts are near to one another, and how well a label is told
   from all the other texts. The numbers of `lmcourse.own_poems.encode_texts`. */

import { bitsAt } from "./random.js";

const PENALTIES = Array.from({ length: 9 }, (_, half) => 10 ** (half / 2 - 2)); // 0.01 to 100
const SHUFFLES = 20; // how often labels are shuffled
const DRAWS = 1000; // samples for an interval
const NEAREST = 3; // texts that are named

/** @typedef {ArrayLike<number>} Vector */

/**
 * A share that is predicted correctly, from 0 to 1, and its 95 % interval.
 *
 * @typedef {[right: number, from: number, to: number]} Accuracy
 */

/**
 * The mean of rows.
 *
 * @param {ArrayLike<number>} values (rows · width)
 * @param {number} width
 * @returns {Float64Array} (width,)
 */
export function meanOf(values, width) {
  const mean = new Float64Array(width);
  const rows = values.length / width;
  for (let i = 0; i < values.length; i++) mean[i % width] += values[i] / rows;
  return mean;
}

/**
 * Vectors without their mean, and the products of each with each.
 *
 * @param {Vector[]} vectors of one length
 * @returns {Float64Array} (texts · texts)
 */
function products(vectors) {
  const count = vectors.length;
  const width = vectors[0].length;
  const x = vectors.map((vector) => Float64Array.from(vector));
  for (let i = 0; i < width; i++) {
    let mean = 0;
    for (const vector of x) mean += vector[i] / count;
    for (const vector of x) vector[i] -= mean;
  }
  const matrix = new Float64Array(count * count);
  for (let a = 0; a < count; a++)
    for (let b = 0; b <= a; b++) {
      let sum = 0;
      for (let i = 0; i < width; i++) sum += x[a][i] * x[b][i];
      matrix[a * count + b] = sum;
      matrix[b * count + a] = sum;
    }
  return matrix;
}

/**
 * The nearest other texts of each text, by the cosine around the mean.
 *
 * @param {Vector[]} vectors
 * @returns {number[][]} (texts, NEAREST), the nearest first
 */
export function nearest(vectors) {
  const count = vectors.length;
  const all = products(vectors);
  const length = vectors.map((_, i) => Math.sqrt(all[i * count + i]) || 1e-12);
  return vectors.map((_, a) => {
    /**
     * The cosine of text a and another.
     *
     * @param {number} b
     */
    const cosine = (b) => all[a * count + b] / length[a] / length[b];
    const others = Array.from(vectors.keys()).filter((b) => b !== a);
    return others.sort((b, c) => cosine(c) - cosine(b)).slice(0, NEAREST);
  });
}

/**
 * How frequent each word (letters, digits, "_") is in each text, weighted by its rarity, each
 * vector brought to length 1 (TF-IDF, as scikit-learn has it with the logarithm of counts).
 *
 * @param {string[]} texts
 * @returns {Float64Array[]} one for each text, (words,)
 */
export function wordVectors(texts) {
  /** @type {Map<string, number>} */
  const numbers = new Map();
  const counts = texts.map((text) => {
    /** @type {Map<number, number>} */
    const ownCounts = new Map();
    for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}_]+/gu)) {
      const number = numbers.get(word) ?? numbers.size;
      numbers.set(word, number);
      ownCounts.set(number, (ownCounts.get(number) ?? 0) + 1);
    }
    return ownCounts;
  });
  const textsWith = new Float64Array(numbers.size);
  for (const ownCounts of counts) for (const number of ownCounts.keys()) textsWith[number]++;
  return counts.map((ownCounts) => {
    const vector = new Float64Array(numbers.size);
    for (const [number, times] of ownCounts)
      vector[number] =
        (1 + Math.log(times)) * (1 + Math.log((1 + texts.length) / (1 + textsWith[number])));
    const length = Math.sqrt(vector.reduce((sum, value) => sum + value ** 2, 0)) || 1;
    return vector.map((value) => value / length);
  });
}

/**
 * What turns targets into the residuals of a ridge regression on the vectors, for each of
 * PENALTIES: the identity minus the regression's hat matrix.
 *
 * @param {Vector[]} vectors one for each text, of one length
 * @returns {Float64Array[]} (texts · texts) for each penalty
 */
export function remainders(vectors) {
  const count = vectors.length;
  const kernel = products(vectors);
  let size = 0;
  for (let i = 0; i < count; i++) size += kernel[i * count + i] / count;
  return PENALTIES.map((penalty) => {
    const sum = kernel.map((value) => value / (size || 1) + 1);
    for (let i = 0; i < count; i++) sum[i * count + i] += penalty;
    return inverse(sum, count).map((value) => penalty * value);
  });
}

/**
 * The inverse of a positive definite matrix.
 *
 * @param {Float64Array} matrix (count · count); it is overwritten
 * @param {number} count
 * @returns the same array
 */
function inverse(matrix, count) {
  for (let pivot = 0; pivot < count; pivot++) {
    const own = pivot * count;
    const scale = 1 / matrix[own + pivot];
    matrix[own + pivot] = 1;
    for (let i = 0; i < count; i++) matrix[own + i] *= scale;
    for (let row = 0; row < count; row++) {
      if (row === pivot) continue;
      const factor = matrix[row * count + pivot];
      matrix[row * count + pivot] = 0;
      for (let i = 0; i < count; i++) matrix[row * count + i] -= factor * matrix[own + i];
    }
  }
  return matrix;
}

/**
 * Predict each text's label from all the others, by the penalty that is best among these: see
 * `lmcourse.probe.predict`. A label's prediction is divided by its share of the other texts, so
 * that a frequent one is not preferred.
 *
 * @param {Float64Array[]} rests as `remainders` returns them
 * @param {string[]} labels
 * @returns {boolean[]} for each text whether its label is predicted correctly
 */
export function hits(rests, labels) {
  const count = labels.length;
  const names = Array.from(new Set(labels)).sort();
  const own = labels.map((label) => names.indexOf(label));
  const sizes = names.map((name) => labels.filter((label) => label === name).length);
  const guesses = rests.map((rest) => guess(rest, own, names.length));
  return own.map((label, text) => {
    const errors = guesses.map(({ errors }) => errors[text]);
    const { without } = guesses[errors.indexOf(Math.min(...errors))];
    const support = names.map((_, each) => {
      const others = each === label ? sizes[each] - 1 : sizes[each];
      return without[text * names.length + each] / (others / (count - 1));
    });
    return support.indexOf(Math.max(...support)) === label;
  });
}

/**
 * Predict each text's label from all the others, and tell from the others alone how good the
 * penalty is: each of them is predicted without itself and without the text in question. Nothing
 * is fitted again. Leaving out texts divides what the regression leaves of them by the part of
 * `rest` that is theirs: a number for one text, two by two numbers for two.
 *
 * @param {Float64Array} rest (texts · texts), what a ridge regression leaves: see `remainders`
 * @param {number[]} own each text's label, from 0 on
 * @param {number} width how many labels there are
 * @returns {{ without: Float64Array, errors: Float64Array }} (texts · width), for each label the
 *   value that is 1 at the text's own and 0 at the others; (texts,), the sum of the others'
 *   squared errors
 */
function guess(rest, own, width) {
  const count = own.length;
  const residuals = new Float64Array(count * width); // of all texts, none left out
  for (let i = 0; i < count; i++)
    for (let j = 0; j < count; j++) residuals[i * width + own[j]] += rest[i * count + j];
  const without = new Float64Array(count * width);
  const errors = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const left = rest[i * count + i];
    for (let l = 0; l < width; l++) {
      const target = own[i] === l ? 1 : 0;
      without[i * width + l] = target - residuals[i * width + l] / left;
    }
    for (let j = 0; j < count; j++) {
      if (i === j) continue;
      const between = rest[i * count + j];
      const determinant = left * rest[j * count + j] - between ** 2;
      for (let l = 0; l < width; l++) {
        const both = left * residuals[j * width + l] - between * residuals[i * width + l];
        errors[i] += (both / determinant) ** 2; // of j, with i and j left out
      }
    }
  }
  return { without, errors };
}

/**
 * The mean over all labels of the share of a label's texts that are predicted correctly: each
 * label counts as much, however many texts it has.
 *
 * @param {ArrayLike<boolean>} right for each text whether its label is predicted correctly
 * @param {string[]} labels one for each text
 * @param {(place: number, all: number[]) => number} [pick] which text stands in for the one at
 *   `place` among `all` texts of its label, such as another one in a bootstrap; itself by default
 * @returns {number} from 0 to 1
 */
export function score(right, labels, pick = (place, all) => all[place]) {
  const names = Array.from(new Set(labels));
  const shares = names.map((name) => {
    const all = Array.from(labels.keys()).filter((text) => labels[text] === name);
    return all.filter((_, place) => right[pick(place, all)]).length / all.length;
  });
  return shares.reduce((a, b) => a + b) / names.length;
}

/**
 * The ends of the middle 95 % of numbers.
 *
 * @param {number[]} numbers sorted in their place
 * @returns {[from: number, to: number]}
 */
function middle(numbers) {
  const sorted = numbers.sort((a, b) => a - b);
  /**
   * The number below which a share of all lies, between two of them if need be.
   *
   * @param {number} share from 0 to 1
   */
  const at = (share) => {
    const place = share * (sorted.length - 1);
    const below = Math.floor(place);
    const next = Math.min(below + 1, sorted.length - 1);
    return sorted[below] + (place - below) * (sorted[next] - sorted[below]);
  };
  return [at(0.025), at(0.975)];
}

/**
 * How often labels are predicted correctly from the other texts (`score`), with an interval: the
 * texts of each label are drawn again, with repetition (bootstrap).
 *
 * @param {Float64Array[]} rests as `remainders` returns them
 * @param {string[]} labels one for each text
 * @returns {Accuracy}
 */
export function labelAccuracy(rests, labels) {
  const right = hits(rests, labels);
  let counter = 0;
  const draws = Array.from({ length: DRAWS }, () =>
    score(right, labels, (_, all) => all[(bitsAt(1, counter++) >>> 0) % all.length]),
  );
  return [score(right, labels), ...middle(draws)];
}

/**
 * How often labels are predicted correctly that were shuffled among the texts: the mean of
 * SHUFFLES orders, and the middle 95 % of them.
 *
 * @param {Float64Array[]} rests as `remainders` returns them
 * @param {string[]} labels one for each text
 * @returns {Accuracy}
 */
export function shuffledLabelAccuracy(rests, labels) {
  const scores = Array.from({ length: SHUFFLES }, (_, shuffle) => {
    const order = Array.from(labels.keys());
    const bits = order.map((text) => bitsAt(shuffle + 1, text));
    const anew = order.sort((a, b) => bits[a] - bits[b]).map((text) => labels[text]);
    return score(hits(rests, anew), anew);
  });
  return [scores.reduce((a, b) => a + b) / SHUFFLES, ...middle(scores)];
}
