/* Random numbers that are the same on every machine. */

/**
 * The whole number of 32 bits, with a sign, at a position of a long sequence that looks random
 * (mulberry32).
 *
 * @param {number} seed
 * @param {number} place the position, from 0 on
 */
export function bitsAt(seed, place) {
  const state = (seed + Math.imul(place + 1, 0x6d2b79f5)) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), state | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return mixed ^ (mixed >>> 14);
}

/**
 * The numbers of an array in a random order.
 *
 * @template {Float32Array | Int8Array} Numbers
 * @param {Numbers} values
 * @param {number} seed
 * @returns {Numbers}
 */
export function shuffled(values, seed) {
  const mixed = /** @type {Numbers} */ (values.slice());
  for (let last = mixed.length - 1; last > 0; last--) {
    const other = (bitsAt(seed, last) >>> 0) % (last + 1);
    [mixed[last], mixed[other]] = [mixed[other], mixed[last]];
  }
  return mixed;
}

/**
 * Things in another order, the same for the same seed. If the random order is the one that they
 * have, the first goes to the end.
 *
 * @template Item
 * @param {ArrayLike<Item>} items
 * @param {number} seed
 * @param {boolean} [keepLast] the last one stays where it is: what follows it is asked
 * @returns {Item[]}
 */
export function reordered(items, seed, keepLast = false) {
  const all = Array.from(items);
  const end = keepLast ? all.splice(-1) : [];
  const order = Array.from(shuffled(Float32Array.from(all.keys()), seed));
  if (order.every((place, i) => place === i)) order.push(...order.splice(0, 1));
  return [...order.map((place) => all[place]), ...end];
}
