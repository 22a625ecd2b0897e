/* Choices between two lines: what can be counted in a line, a reward that fits the choices, and
   a step of direct preference optimisation. The numbers are those of `lmcourse.preferences`. */

/** @import { Trainer } from "./train.js" */

const WORD = /[A-Za-z][A-Za-z'’-]*/g;

/** @typedef {Record<string, number>} Properties by name */

/**
 * What can be counted in a line: `characters`; `words`; `echoes`, words that begin with the same
 * letter as another word of the line; `capitals`; `marks` of punctuation.
 *
 * @param {string} line
 * @returns {Properties}
 */
export function properties(line) {
  const words = line.match(WORD) ?? [];
  const letters = words.map((word) => word[0].toLowerCase()); // with which they begin
  /* Whether several words begin with a letter. */
  const isEcho = (/** @type {string} */ letter) => letters.filter((x) => x === letter).length > 1;
  return {
    characters: line.length,
    words: words.length,
    echoes: letters.filter(isEcho).length,
    capitals: (line.match(/\p{Lu}/gu) ?? []).length,
    marks: (line.match(/[,.;:!?—]/g) ?? []).length,
  };
}

/**
 * The properties of the first line less those of the second.
 *
 * @param {string[]} pair
 * @param {string[]} names which properties, in this order
 * @returns {number[]}
 */
export function differences([first, second], names) {
  const [a, b] = [properties(first), properties(second)];
  return names.map((name) => a[name] - b[name]);
}

/**
 * The product of two vectors.
 *
 * @type {(a: number[], b: number[]) => number}
 */
const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
/**
 * log(1 + exp(x)), without overflow.
 *
 * @type {(x: number) => number}
 */
const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));

/**
 * Solve a set of linear equations whose matrix is positive definite, by elimination.
 *
 * @param {number[][]} matrix (count, count); changed
 * @param {number[]} right the right side, (count,); changed
 * @returns {number[]} the solution, (count,)
 */
function solved(matrix, right) {
  const count = right.length;
  for (let i = 0; i < count; i++)
    for (let j = 0; j < count; j++) {
      if (i === j) continue;
      const share = matrix[j][i] / matrix[i][i];
      for (let k = i; k < count; k++) matrix[j][k] -= share * matrix[i][k];
      right[j] -= share * right[i];
    }
  return right.map((value, i) => value / matrix[i][i]);
}

/**
 * The reward that fits choices best: a weight for each property, by Newton's method. The reward
 * of a line is the sum of its properties times these; the probability that it is chosen is the
 * logistic function of the difference of both rewards.
 *
 * @param {number[][]} rows of each pair what was chosen less what was not, (pairs, properties)
 * @param {number} count of the properties
 * @param {number} ridge half of this, times the squared length of the weights, is added to the
 *   loss: it keeps them small
 * @returns {number[]} (properties,)
 */
export function fitReward(rows, count, ridge) {
  let weights = new Array(count).fill(0);
  /**
   * The loss of all choices and the ridge, at some weights.
   *
   * @param {number[]} at
   */
  const loss = (at) =>
    rows.reduce((sum, row) => sum + softplus(-dot(row, at)), (ridge / 2) * dot(at, at));
  for (let round = 0; round < 100; round++) {
    const wrong = rows.map((row) => Math.exp(-softplus(dot(row, weights))));
    const gradient = weights.map(
      (weight, i) => ridge * weight - rows.reduce((sum, row, n) => sum + row[i] * wrong[n], 0),
    );
    const curvature = weights.map((_, i) =>
      weights.map((_, j) =>
        rows.reduce(
          (sum, row, n) => sum + row[i] * row[j] * wrong[n] * (1 - wrong[n]),
          i === j ? ridge : 0,
        ),
      ),
    );
    const step = solved(curvature, gradient);
    let size = 1;
    /* The weights after a step of this size. */
    const moved = () => weights.map((weight, i) => weight - size * step[i]);
    while (loss(moved()) > loss(weights) && size > 1e-9) size /= 2;
    weights = moved();
    if (Math.max(...step.map(Math.abs)) < 1e-12) break;
  }
  return weights;
}

/**
 * How many choices are predicted, each by a reward that was fitted to all the others; a pair whose
 * lines have the same reward counts one half.
 *
 * @param {number[][]} rows as for `fitReward`
 * @param {number} count of the properties
 * @param {number} ridge as for `fitReward`
 */
export function foretold(rows, count, ridge) {
  return rows.reduce((right, row, left) => {
    const others = rows.filter((_, i) => i !== left);
    const margin = dot(row, fitReward(others, count, ridge));
    if (margin > 0) return right + 1;
    return margin === 0 ? right + 0.5 : right;
  }, 0);
}

/**
 * The probability that a coin predicts as many choices, or more.
 *
 * @param {number} right how many are predicted correctly, a whole number
 * @param {number} count of all choices
 */
export function chanceOf(right, count) {
  let [ways, sum] = [1, 0]; // ways to predict i of them
  for (let i = 0; i <= count; i++) {
    if (i >= right) sum += ways / 2 ** count;
    ways = (ways * (count - i)) / (i + 1);
  }
  return sum;
}

/**
 * Lines as a trainer reads them: a new line stands before each, and ends it.
 *
 * @param {number[][]} lines ids of each, without the new lines
 * @param {number} newLine its id
 * @returns {{ inputs: number[], targets: number[], tokens: number, lengths: number[] }} shorter
 *   ones are filled up, which no token before sees; how many targets each line has
 */
function stacked(lines, newLine) {
  const tokens = 1 + Math.max(...lines.map((line) => line.length));
  /* IDs, filled up with new lines. */
  const filled = (/** @type {number[]} */ ids) => [
    ...ids,
    ...new Array(tokens - ids.length).fill(newLine),
  ];
  return {
    inputs: lines.flatMap((line) => filled([newLine, ...line])),
    targets: lines.flatMap((line) => filled([...line, newLine])),
    tokens,
    lengths: lines.map((line) => line.length + 1),
  };
}

/**
 * The log-probability of each line as a whole, in nats, and the way back: given how much of
 * each line's loss counts, it leaves the gradients of the sum in the trainer.
 *
 * @param {Trainer} trainer
 * @param {number[][]} lines as for `stacked`
 * @param {number} newLine its id
 * @returns {[logProbs: number[], back: (shares: number[]) => void]}
 */
export function lineLogProbs(trainer, lines, newLine) {
  const { inputs, targets, tokens, lengths } = stacked(lines, newLine);
  const [losses, back] = trainer.losses(inputs, targets, tokens);
  const sums = lengths.map((length, line) => {
    const mine = losses.subarray(line * tokens, line * tokens + length);
    return -mine.reduce((sum, loss) => sum + loss, 0);
  });
  /* Go back: each token of a line counts as much as the line. */
  const spread = (/** @type {number[]} */ shares) =>
    back(
      targets.map((_, row) => {
        const line = Math.floor(row / tokens);
        return row % tokens < lengths[line] ? shares[line] : 0;
      }),
    );
  return [sums, spread];
}

/**
 * A pair of lines as ids, and the log-probabilities that the model gave them before it learned:
 * that of the chosen one, that of the other.
 *
 * @typedef {{ chosen: number[], rejected: number[], reference: [number, number] }} Pair
 */

/**
 * One step of direct preference optimisation. The gradient of a pair's loss is that of its
 * lines' losses, times a factor that is large while the pair is not settled.
 *
 * @param {Trainer} trainer its weights are changed
 * @param {Pair[]} pairs of this step
 * @param {number} newLine its id
 * @param {number} beta what log-probabilities are multiplied by: the larger, the sooner a pair is
 *   settled
 * @returns {number} the loss before the step, in nats a pair
 */
export function preferenceStep(trainer, pairs, newLine, beta) {
  const lines = [...pairs.map(({ chosen }) => chosen), ...pairs.map(({ rejected }) => rejected)];
  const [now, back] = lineLogProbs(trainer, lines, newLine);
  const margins = pairs.map(
    ({ reference }, i) => beta * (now[i] - reference[0] - (now[pairs.length + i] - reference[1])),
  );
  const factors = margins.map((margin) => (beta * Math.exp(-softplus(margin))) / pairs.length);
  back([...factors, ...factors.map((factor) => -factor)]);
  trainer.update();
  return margins.reduce((sum, margin) => sum + softplus(-margin), 0) / pairs.length;
}
