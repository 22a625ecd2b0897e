/* The three tokenizers of the chapter *tokenization*, for the page itself: characters,
   byte-level BPE (ours and GPT-2's) and WordPiece (BERT's).

   Each has `encode(text)`, which returns a list of tokens { id, piece }, where `piece` is the
   token as its vocabulary spells it ("Ġthing", "##ery"). A browser's tests hold them equal
   to the Python library `tokenizers`.

   Half of a surrogate pair is no character: it is read as U+FFFD. */

import { wellFormed } from "./text.js";

/**
 * A token as its vocabulary spells it; without an id where the vocabulary does not have it.
 *
 * @typedef {{ id: number | null, piece: string }} Token
 */

/* --- characters -------------------------------------------------------------------- */

/* One token a character. A character that is not in the alphabet has the ID null. */
export class Characters {
  /**
   * Number the characters of an alphabet.
   *
   * @param {string} alphabet the character of each ID
   */
  constructor(alphabet) {
    this.alphabet = Array.from(alphabet);
    this.ids = new Map(this.alphabet.map((character, id) => [character, id]));
  }

  /**
   * Cut a text into characters.
   *
   * @param {string} text
   * @returns {Token[]}
   */
  encode(text) {
    /**
     * The token of a character.
     *
     * @type {(piece: string) => Token}
     */
    const token = (piece) => ({ id: this.ids.get(piece) ?? null, piece });
    return Array.from(wellFormed(text), token);
  }
}

/* --- byte-level BPE ---------------------------------------------------------------- */

/* GPT-2's pattern: contractions, then runs of letters, of digits, of other signs, each
   with the one space before it, and white space. JavaScript's \s is not Unicode's. */
const GPT2_PATTERN = new RegExp(
  String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
    .replaceAll("\\s", "\\p{White_Space}")
    .replaceAll("\\S", "\\P{White_Space}"),
  "gu",
);

/* Byte → the character that stands for it: itself if it can be seen, else one from U+0100
   on. The IDs 0 to 255 are the bytes in the order of these characters. */
export const BYTE_CHARACTERS = (() => {
  /**
   * Whether something is to be seen of the character with the number of a byte.
   *
   * @param {number} b
   */
  const seen = (b) => (b > 32 && b < 127) || (b > 160 && b !== 173);
  let next = 256;
  return Array.from({ length: 256 }, (_, b) => String.fromCharCode(seen(b) ? b : next++));
})();

export class ByteBPE {
  /**
   * A merge gets the next ID, unless its symbol has one.
   *
   * @param {Uint16Array} merges the IDs of left and right for each merge, in the order in which
   *   they were learned
   * @param {(symbol: string) => boolean} [knows] whether a vocabulary has a byte's symbol; one
   *   that it has not is left out, as the library does
   */
  constructor(merges, knows = () => true) {
    this.knows = BYTE_CHARACTERS.map(knows);
    this.pairs = merges;
    this.symbols = [...BYTE_CHARACTERS].sort();
    this.bytes = BYTE_CHARACTERS.map((character) => this.symbols.indexOf(character));
    this.merges = merges.length / 2;
    this.mergedIds = new Uint16Array(this.merges); // rank → ID
    /** @type {Map<number, number>} left and right → rank */
    this.ranks = new Map();
    const ids = new Map(this.symbols.map((symbol, id) => [symbol, id]));
    for (let rank = 0; rank < this.merges; rank++) {
      const [left, right] = merges.subarray(2 * rank);
      const symbol = this.symbols[left] + this.symbols[right];
      const id = ids.get(symbol) ?? this.symbols.push(symbol) - 1;
      ids.set(symbol, id);
      this.mergedIds[rank] = id;
      const pair = left * 65536 + right;
      if (!this.ranks.has(pair)) this.ranks.set(pair, rank);
    }
    this.encoder = new TextEncoder();
  }

  /**
   * Cut a text into tokens.
   *
   * @param {string} text
   * @param {number} [merges] how many of the merges are used, the first ones; all by default
   * @param {Set<number>} [used] is given the ranks of those that joined something
   * @returns {{ id: number, piece: string }[]}
   */
  encode(text, merges = this.merges, used = new Set()) {
    const words = wellFormed(text).match(GPT2_PATTERN) ?? [];
    return words.flatMap((word) => this.word(word, merges, used));
  }

  /**
   * Cut one word into tokens: join the pair that was learned first, wherever it stands, as long as
   * one is there.
   *
   * @param {string} word a match of GPT2_PATTERN
   * @param {number} merges how many of the merges are used, the first ones
   * @param {Set<number>} used is given the ranks of those that joined something
   */
  word(word, merges, used) {
    const known = this.encoder.encode(word).filter((byte) => this.knows[byte]);
    let ids = Array.from(known, (byte) => this.bytes[byte]);
    for (;;) {
      const first = Math.min(merges, ...ids.slice(1).map((id, i) => this.rank(ids[i], id)));
      if (first === merges) break;
      used.add(first);
      /** @type {number[]} */
      const merged = [];
      for (const id of ids) {
        const end = merged.length - 1;
        if (end >= 0 && this.rank(merged[end], id) === first) merged[end] = this.mergedIds[first];
        else merged.push(id);
      }
      ids = merged;
    }
    return ids.map((id) => ({ id, piece: this.symbols[id] }));
  }

  /**
   * The IDs that a merge joins, left and right.
   *
   * @param {number} rank of the merge, 0 for the first
   */
  pair(rank) {
    return Array.from(this.pairs.subarray(2 * rank, 2 * rank + 2));
  }

  /**
   * The rank of the merge that joins a pair; Infinity if none does.
   *
   * @param {number} left ID
   * @param {number} right ID
   */
  rank(left, right) {
    return this.ranks.get(left * 65536 + right) ?? Infinity;
  }
}

/* --- WordPiece --------------------------------------------------------------------- */

/**
 * What `lmbook.play.vocabularies.wordpiece` says of a tokenizer.
 *
 * @typedef {object} Vocabulary
 * @property {string[]} vocab pieces in the order of their IDs
 * @property {string[]} special pieces that stand for themselves in a text
 * @property {string} unknown the piece for a word that cannot be cut
 * @property {string} prefix of a piece that goes on with a word
 * @property {number} longest characters of a word that is cut
 * @property {boolean} lowercase whether letters are made small
 * @property {boolean} accents whether they are kept
 * @property {Record<"removed" | "ideographs" | "punctuation" | "marks", number[]>} tables
 *   kinds of characters as ranges, [first, last, first, last, ...]
 */

/* BERT's: clean the text, cut it into words, cut each word into the longest pieces that
   fit. What is a mark, a sign or a control character depends on the version of Unicode,
   and must not depend on that of the browser: it is read from the library's own tables,
   lists of [first, last, first, last, ...]. */
export class WordPiece {
  /**
   * Make the tokenizer of a vocabulary.
   *
   * @param {Vocabulary} vocabulary
   */
  constructor({ vocab, special, unknown, prefix, longest, lowercase, accents, tables }) {
    this.vocabulary = vocab; // in the order of their IDs
    this.ids = new Map(vocab.map((piece, id) => [piece, id]));
    this.unknown = unknown;
    this.prefix = prefix;
    this.longest = longest;
    this.lowercase = lowercase;
    this.accents = accents;
    /**
     * Make what says whether a character is of a kind.
     *
     * @type {(kind: keyof Vocabulary["tables"]) => (character: string) => boolean}
     */
    const isOf = (kind) => (character) =>
      within(tables[kind], /** @type {number} */ (character.codePointAt(0)));
    this.is = {
      removed: isOf("removed"),
      ideographs: isOf("ideographs"),
      punctuation: isOf("punctuation"),
      marks: isOf("marks"),
    };
    const marks = special.map((s) => s.replace(/[^\p{L}\p{N}]/gu, "\\$&"));
    this.special = new RegExp(marks.sort((a, b) => b.length - a.length).join("|"), "gu");
  }

  /**
   * Cut a text into tokens, without [CLS] and [SEP] around it; one that stands in the text is a
   * token.
   *
   * @param {string} text
   * @returns {{ id: number, piece: string }[]}
   */
  encode(text) {
    text = wellFormed(text);
    /** @type {{ id: number, piece: string }[]} */
    const tokens = [];
    let start = 0;
    for (const { 0: special, index } of text.matchAll(this.special)) {
      tokens.push(...this.part(text.slice(start, index)), this.token(special));
      start = index + special.length;
    }
    return tokens.concat(this.part(text.slice(start)));
  }

  /**
   * Whether all tokens stand for words that cannot be cut; true of none.
   *
   * @param {{ piece: string }[]} tokens
   */
  areUnknown(tokens) {
    return tokens.every(({ piece }) => piece === this.unknown);
  }

  /**
   * What is to be said of tokens that stand for words which cannot be cut; "" if there are none.
   *
   * @param {{ piece: string }[]} tokens
   * @returns {string}
   */
  tellUnknown(tokens) {
    const has = tokens.some(({ piece }) => piece === this.unknown);
    return has ? `${this.unknown} stands for what its vocabulary does not have.` : "";
  }

  /**
   * The token of a piece.
   *
   * @param {string} piece one of the vocabulary
   */
  token(piece) {
    return { id: /** @type {number} */ (this.ids.get(piece)), piece };
  }

  /**
   * Cut a part of a text into tokens.
   *
   * @param {string} text without special pieces
   */
  part(text) {
    return this.words(text).flatMap((word) => this.word(word));
  }

  /**
   * A text as words, each a list of normalised characters. Each punctuation mark and each Chinese
   * character is a word; white space stands between words.
   *
   * @param {string} text
   */
  words(text) {
    /** @type {string[][]} */
    const words = [];
    /** @type {string[] | null} */
    let word = null; // the one that is being read
    for (const character of text) {
      if (this.is.removed(character)) continue;
      const alone = this.is.ideographs(character);
      if (alone) word = null;
      for (const clean of this.normalized(character)) {
        const sign = this.is.punctuation(clean);
        if (/\p{White_Space}/u.test(clean)) {
          word = null;
          continue;
        }
        if (!word || sign) {
          word = [];
          words.push(word);
        }
        word.push(clean);
        if (sign) word = null;
      }
      if (alone) word = null;
    }
    return words;
  }

  /**
   * A character without accents, and in small letters, if the model is made so; a list, as it may
   * become several or none.
   *
   * @param {string} character
   */
  normalized(character) {
    let parts = Array.from(this.accents ? character : character.normalize("NFD"));
    if (!this.accents) parts = parts.filter((part) => !this.is.marks(part));
    return parts.flatMap((p) => Array.from(this.lowercase ? p.toLowerCase() : p));
  }

  /**
   * Cut a word into tokens: the longest piece that fits, from left to right. If none fits
   * somewhere, or the word is too long, the unknown piece alone.
   *
   * @param {string[]} word its characters
   */
  word(word) {
    const tokens = [];
    for (let from = 0, to = 0; from < word.length; from = to) {
      /* The characters between `from` and `to`, as the vocabulary spells them. */
      const piece = () => (from ? this.prefix : "") + word.slice(from, to).join("");
      to = word.length <= this.longest ? word.length : from;
      while (to > from && !this.ids.has(piece())) to--;
      if (to === from) return [this.token(this.unknown)];
      tokens.push(this.token(piece()));
    }
    return tokens;
  }
}

/**
 * Whether a number lies in one of the ranges, which stand in order.
 *
 * @param {number[]} ranges [first, last, first, last, ...]
 * @param {number} number
 * @returns {boolean}
 */
function within(ranges, number) {
  const end = ranges.findIndex((last, i) => i % 2 && number <= last);
  return number >= ranges[end - 1];
}

/* --- to be seen -------------------------------------------------------------------- */

/** @type {Record<string, string | undefined>} */
const SIGNS = { " ": "·", "\n": "⏎", "\t": "⇥" };

/**
 * A number in hexadecimal, of at least so many digits.
 *
 * @type {(number: number, digits: number) => string}
 */
const hex = (number, digits) => number.toString(16).toUpperCase().padStart(digits, "0");

/**
 * A character so that it can be seen: white space as a sign, a mark on a circle, what cannot be
 * seen as its number ("U+200B").
 *
 * @param {string} character
 * @returns {string}
 */
function visible(character) {
  const sign = SIGNS[character];
  if (sign) return sign;
  if (/\p{M}/u.test(character)) return `◌${character}`;
  const code = character.codePointAt(0) ?? 0;
  return /[\p{C}\p{Z}]/u.test(character) ? `U+${hex(code, 4)}` : character;
}

/**
 * A piece so that it can be seen.
 *
 * @param {string} piece
 * @param {boolean} [ofBytes] of byte-level BPE; where it holds parts of characters, its bytes
 *   are shown
 * @returns {string}
 */
export function shown(piece, ofBytes = false) {
  if (ofBytes) {
    const bytes = Array.from(piece, (symbol) => BYTE_CHARACTERS.indexOf(symbol));
    try {
      const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
      piece = strict.decode(Uint8Array.from(bytes));
    } catch {
      return bytes.map((byte) => (byte === 32 ? "·" : hex(byte, 2))).join(" ");
    }
  }
  const [first = "", ...rest] = piece;
  return visible(first) + rest.map((c) => (/\p{M}|\u200d/u.test(c) ? c : visible(c))).join("");
}
