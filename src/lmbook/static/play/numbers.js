/* Functions of lists of numbers, for pages and for workers. */

/**
 * The position of the largest number, the first of equals; 0 of none.
 *
 * @param {ArrayLike<number>} numbers
 * @returns {number}
 */
export function argmax(numbers) {
  let best = 0;
  for (let i = 1; i < numbers.length; i++) if (numbers[i] > numbers[best]) best = i;
  return best;
}

/**
 * The positions of the largest numbers, the largest first; of equal ones the first.
 *
 * @param {ArrayLike<number>} numbers
 * @param {number} count how many
 * @returns {number[]}
 */
export function largest(numbers, count) {
  /** @type {number[]} */
  const best = [];
  for (let i = 0; i < numbers.length; i++) {
    if (best.length === count && numbers[i] <= numbers[best[count - 1]]) continue;
    const at = best.findIndex((other) => numbers[other] < numbers[i]);
    best.splice(at < 0 ? best.length : at, 0, i);
    best.length = Math.min(best.length, count);
  }
  return best;
}

/**
 * The mean of numbers; NaN of none.
 *
 * @param {ArrayLike<number>} numbers
 * @returns {number}
 */
export const mean = (numbers) => Array.from(numbers).reduce((a, b) => a + b, 0) / numbers.length;

/**
 * A row of a matrix; it shares the memory of x.
 *
 * @param {Float32Array} x (rows, width), row after row
 * @param {number} row
 * @param {number} width of a row
 * @returns {Float32Array} (width,)
 */
export const rowOf = (x, row, width) => x.subarray(row * width, (row + 1) * width);

/**
 * A copy of a row of a matrix, which keeps none of the memory of x.
 *
 * @param {Float32Array} x (rows, width), row after row
 * @param {number} row
 * @param {number} width of a row
 * @returns {Float32Array} (width,)
 */
export const copyOfRow = (x, row, width) => x.slice(row * width, (row + 1) * width);
