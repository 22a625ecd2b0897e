/* Language models that only count: n-grams with modified Kneser-Ney smoothing, the numbers of
   `lmcourse.ngrams`, made for a text of a million tokens. An n-gram of each length has a
   number, which is that of its context and its last token; so no n-gram is ever written out,
   and an alphabet may be large.

     const counted = new Ngrams(ids, vocab_size, 6);
     counted.losses(others);             // of the models of 1-grams, 2-grams, …, 6-grams
     counted.next(before, 5);            // probabilities of the next token, by 5-grams */

/* Numbers for pairs of a context and a token, in the order in which they come first. */
class Pairs {
  /**
   * Begin with no pair.
   *
   * @param {number} most how many there may be
   */
  constructor(most) {
    this.mask = 2 ** Math.ceil(Math.log2(2 * most + 2)) - 1;
    this.slots = new Int32Array(this.mask + 1); // 1 more than the number that is there
    this.contexts = new Int32Array(most);
    this.tokens = new Int32Array(most);
    this.count = 0;
  }

  /**
   * The position of a pair in `slots`: where it is, or the free one where it would be entered.
   *
   * @param {number} context its number
   * @param {number} token
   */
  slot(context, token) {
    let slot = Math.imul(context + 1, 0x9e3779b1) ^ Math.imul(token + 1, 0x85ebca6b);
    slot ^= slot >>> 15;
    for (slot &= this.mask; this.slots[slot]; slot = (slot + 1) & this.mask) {
      const number = this.slots[slot] - 1;
      if (this.contexts[number] === context && this.tokens[number] === token) break;
    }
    return slot;
  }

  /**
   * The number of a pair; -1 if it never came, or its context never did.
   *
   * @param {number} context its number, -1 if it never came
   * @param {number} token
   */
  find(context, token) {
    return context < 0 ? -1 : this.slots[this.slot(context, token)] - 1;
  }

  /**
   * The number of a pair; one that is new is entered and gets the next number.
   *
   * @param {number} context its number
   * @param {number} token
   */
  enter(context, token) {
    const slot = this.slot(context, token);
    if (!this.slots[slot]) {
      this.contexts[this.count] = context;
      this.tokens[this.count] = token;
      this.slots[slot] = ++this.count;
    }
    return this.slots[slot] - 1;
  }
}

/**
 * The discounts of modified Kneser-Ney smoothing: how much is taken from a count of 0, of 1, of 2,
 * and of 3 or more. Where a text is too short to estimate one, it is half the count (1.5 for 3 or
 * more).
 *
 * @param {Int32Array} counts of n-grams; 0 says that it is not counted
 * @returns {number[]} four numbers
 */
export function discounts(counts) {
  const n = [0, 0, 0, 0, 0];
  const taken = [0, 0.5, 1, 1.5];
  for (const count of counts) if (count < 5) n[count]++;
  for (let k = 1; k < 4; k++) {
    if (![1, 2, k, k + 1].every((of) => n[of])) continue;
    const discount = k - ((k + 1) * n[1] * n[k + 1]) / (n[1] + 2 * n[2]) / n[k];
    if (discount > 0) taken[k] = discount;
  }
  return taken;
}

/* What contexts of one length predict, and what they leave to shorter ones. */
class Level {
  /**
   * Sum the counts after each context, and what is taken from them.
   *
   * @param {Pairs} pairs the n-grams
   * @param {Int32Array} counts of each, by its number
   * @param {number} contexts how many there are
   */
  constructor(pairs, counts, contexts) {
    this.pairs = pairs;
    this.counts = counts;
    this.taken = discounts(counts.subarray(0, pairs.count));
    this.totals = new Float64Array(contexts); // of the counts after a context
    this.left = new Float64Array(contexts); // of what was taken from them
    for (let number = 0; number < pairs.count; number++) {
      const context = pairs.contexts[number];
      this.totals[context] += counts[number];
      this.left[context] += this.taken[Math.min(counts[number], 3)];
    }
  }

  /**
   * The probability of a token after a context: `lower`, if that context was never counted.
   *
   * @param {number} context its number, -1 if it never came
   * @param {number} token
   * @param {number} lower the probability after the shorter context
   */
  interpolate(context, token, lower) {
    if (context < 0 || !this.totals[context]) return lower;
    const number = this.pairs.find(context, token);
    const count = number < 0 ? 0 : this.counts[number];
    const share = count - this.taken[Math.min(count, 3)];
    return (share + this.left[context] * lower) / this.totals[context];
  }
}

export class Ngrams {
  /**
   * Count the n-grams of a text, of each length up to the longest.
   *
   * @param {ArrayLike<number>} ids the text that is counted
   * @param {number} vocab_size
   * @param {number} longest of the n-grams, 1 or more
   */
  constructor(ids, vocab_size, longest) {
    this.vocab_size = vocab_size;
    this.longest = Math.min(longest, ids.length);
    const of = Array.from({ length: this.longest + 1 }, (_, size) => size);
    this.pairs = of.map((size) => new Pairs(size ? ids.length : 1)); // those of size 0 are none
    /** How often an n-gram occurs, by size and number. */
    const occurs = of.map((size) => new Int32Array(size ? ids.length : 1));
    /** After how many different tokens it stands, by size and number. */
    const follows = of.map((size) => new Int32Array(size ? ids.length : 1));
    let ends = this.start();
    for (let i = 0; i < ids.length; i++) {
      const now = ends.slice();
      for (let size = 1; size <= Math.min(this.longest, i + 1); size++) {
        const known = this.pairs[size].count;
        now[size] = this.pairs[size].enter(ends[size - 1], ids[i]);
        occurs[size][now[size]]++;
        if (this.pairs[size].count > known) follows[size - 1][now[size - 1]]++;
      }
      ends = now;
    }
    /**
     * A level for each size, from counts by size and number.
     *
     * @param {Int32Array[]} counts
     */
    const levels = (counts) =>
      of.map((size) => new Level(this.pairs[size], counts[size], this.contexts(size)));
    this.last = levels(occurs);
    this.shorter = levels(follows);
  }

  /**
   * How many contexts n-grams of a size have.
   *
   * @param {number} size
   */
  contexts(size) {
    return size > 1 ? this.pairs[size - 1].count : 1;
  }

  /** The numbers of the last tokens before a text begins, by how many they are, (longest + 1,): of
      no token 0; there are no others, -1. */
  start() {
    return new Int32Array(this.longest + 1).fill(-1).fill(0, 0, 1);
  }

  /**
   * The numbers of the last tokens of a text, by how many they are, (longest + 1,); -1 for those
   * that never came together.
   *
   * @param {Int32Array} before those before the last token
   * @param {number} token
   */
  after(before, token) {
    const now = this.start();
    for (let size = 1; size <= this.longest; size++)
      now[size] = this.pairs[size].find(before[size - 1], token);
    return now;
  }

  /**
   * The probability of a token in a text, by n-grams of each size.
   *
   * @param {Int32Array} before numbers of what stands before it
   * @param {number} token
   * @returns {number[]} (longest,)
   */
  bySize(before, token) {
    let lower = 1 / this.vocab_size;
    const probs = [];
    for (let size = 1; size <= this.longest; size++) {
      probs.push(this.last[size].interpolate(before[size - 1], token, lower));
      lower = this.shorter[size].interpolate(before[size - 1], token, lower);
    }
    return probs;
  }

  /**
   * The loss of each token of a text, in nats; what stands before the text is unknown.
   *
   * @param {ArrayLike<number>} ids
   * @param {number} order the size of the n-grams, 1 to longest
   * @returns {Float64Array} (tokens,)
   */
  lossesOf(ids, order) {
    let before = this.start();
    return Float64Array.from(ids, (token) => {
      const prob = this.bySize(before, token)[order - 1];
      before = this.after(before, token);
      return -Math.log(prob);
    });
  }

  /**
   * The mean loss of a text, in nats, by n-grams of each size.
   *
   * @param {ArrayLike<number>} ids
   * @returns {number[]} (longest,)
   */
  losses(ids) {
    let before = this.start();
    const sums = new Float64Array(this.longest);
    for (let i = 0; i < ids.length; i++) {
      this.bySize(before, ids[i]).forEach((prob, size) => {
        sums[size] -= Math.log(prob);
      });
      before = this.after(before, ids[i]);
    }
    return Array.from(sums, (sum) => sum / ids.length);
  }

  /**
   * The probability of each token after a text.
   *
   * @param {ArrayLike<number>} ids the text, perhaps empty
   * @param {number} order the size of the n-grams, 1 to longest
   * @returns {Float64Array} (vocab_size,)
   */
  next(ids, order) {
    let before = this.start();
    for (let i = Math.max(0, ids.length - this.longest); i < ids.length; i++)
      before = this.after(before, ids[i]);
    const probs = new Float64Array(this.vocab_size);
    return probs.map((_, token) => this.bySize(before, token)[order - 1]);
  }
}
