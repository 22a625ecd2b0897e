/* The view *neighbours*: the words nearest to one, in BERT's table and in vectors made by
   counting; a switch shows both with nothing learned. `lmcourse.views.neighbours` found those
   of every word; they are loaded when the reader first goes to the view. */
import {
  announcer,
  button,
  count,
  fixed,
  learnedSwitch,
  leftOf,
  make,
  megabytes,
  plural,
  stateOf,
  WORLDS,
} from "./dom.js";
import { readStore, readText } from "./store.js";
import { wellFormed } from "./text.js";
import { WordPiece } from "./tokenizers.js";

const LONGEST = 40; // characters of a word

/**
 * What is said of a word in one space: the space's name; a note; the nearest words, the nearest
 * first, in one list among all words and, where words were counted, in another one without the
 * most frequent; the pieces in which the word is read, if it has no row of its own.
 *
 * @typedef {[name: string, note: string, near: Near[][], cut?: string[]]} List
 */

/** @typedef {[word: string, cosine: number]} Near a word that is near; cosine in hundredths */

/**
 * A space of words, as its store tells of it.
 *
 * @typedef {object} About
 * @property {string} name
 * @property {string[]} [words] the word of each row; without it, they are BERT's pieces
 * @property {number[]} [counts] how often each word stands in the text, if words were counted
 * @property {number} asked for how many words the neighbours were found: the first ones
 */

/**
 * What was found in a space.
 *
 * @typedef {object} Neighbours
 * @property {string[]} words the word of each row
 * @property {{ near: Uint16Array | Uint32Array, cosines: Int8Array }[]} tables the rows of the
 *   nearest words and their cosines in hundredths, each (asked · nearest): among all words and,
 *   where words were counted, without the most frequent
 * @property {Map<string, number>} rows the row of each word
 * @property {number} nearest how many neighbours each word has
 */

/** @typedef {About & Neighbours} Space */

/**
 * Mount the view *neighbours*: the words nearest to a word, in BERT's table and in vectors made by
 * counting.
 *
 * @param {HTMLElement} element empty
 * @param {object} data
 * @param {string} data.word the word to begin with
 * @param {List[]} data.lists what is said of it, a list for each space: first those that learned
 *   something, then, in the same order, the same with nothing learned
 * @param {number} data.learned how many of these are of spaces that learned something
 * @param {ViewContext} context
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data, context) {
  const bytes = context.stores.neighbours.bytes + context.stores["bert-pieces"].bytes;
  /** @type {Space[] | undefined} */
  let spaces; // once they are loaded
  /** @type {WordPiece | undefined} */
  let tokenizer; // BERT's, once it is loaded
  let shown = data.lists; // of all spaces
  /** @type {HTMLInputElement} */
  const input = make("input", {
    type: "text",
    maxlength: LONGEST,
    spellcheck: "false",
    autocapitalize: "none",
    autocomplete: "off",
    oninput: typed,
    onfocus: load,
  });
  const note = make("p", { class: "lmn-note" });
  const { live, later } = announcer(tell);
  const lists = make("div", { class: "lmn-lists" });
  input.value = data.word;
  const rare = make("input", { type: "checkbox", onchange: () => draw(shown) });
  const learned = learnedSwitch(() => {
    draw(shown);
    later();
  }, "shuffled text");
  const { worlds, remains } = learned;
  element.append(
    make("p", { class: "lmn-world" }, learned.label),
    remains,
    make("label", { class: "lmn-word" }, "Your word ", input),
    make("label", {}, rare, " without the sixty most frequent words"),
    note,
    lists,
    live,
  );

  /* --- what was found for every word -------------------------------------------------- */

  /* Load the neighbours of all words once, and answer if the word is another than the first; an
     error is told below it. */
  async function load() {
    if (spaces) return;
    note.textContent = `Loading the neighbours of all words (${megabytes(bytes, 1)}) …`;
    try {
      tokenizer = new WordPiece(JSON.parse(await readText("bert-pieces", context)));
      spaces = parse(await readStore("neighbours", context), tokenizer.vocabulary);
    } catch (error) {
      note.textContent = `The neighbours of other words are not here: ${error.message}`;
      return;
    }
    note.textContent = "";
    if (input.value !== data.word) typed();
  }

  /**
   * Read the store of neighbours.
   *
   * @param {Uint8Array<ArrayBuffer>} bytes a line of JSON, then for each space the rows of the
   *   nearest words and their cosines; twice if it has counts: among all words, and without the
   *   most frequent
   * @param {string[]} vocabulary BERT's
   * @returns {Space[]}
   */
  function parse(bytes, vocabulary) {
    let at = 0;
    /**
     * The next `length` bytes, and what fills them up to a multiple of four.
     *
     * @param {number} length
     */
    function take(length) {
      const start = at;
      at += 4 * Math.ceil(length / 4);
      return bytes.slice(start, at);
    }
    /** @type {{ nearest: number, spaces: About[] }} */
    const head = JSON.parse(new TextDecoder().decode(take(bytes.indexOf(10) + 1)));
    return head.spaces.map((space) => {
      const words = space.words || vocabulary;
      const size = space.asked * head.nearest;
      const Rows = words.length > 65536 ? Uint32Array : Uint16Array;
      const tables = (space.counts ? [0, 1] : [0]).map(() => ({
        near: new Rows(take(size * Rows.BYTES_PER_ELEMENT).buffer),
        cosines: new Int8Array(take(size).buffer),
      }));
      /** @type {Map<string, number>} */
      const rows = new Map(words.map((word, row) => [word, row]));
      return { ...space, words, tables, rows, nearest: head.nearest };
    });
  }

  /* --- answers -------------------------------------------------------------------------- */

  /**
   * Ask about a word that was pressed, as if it had been typed.
   *
   * @param {string} word
   */
  function ask(word) {
    input.value = word;
    input.focus();
    typed();
  }

  /* Show the neighbours of the word that is typed; if no space has any, words that are alike. What
     is not loaded yet is loaded first. */
  async function typed() {
    if (!spaces) return load();
    const typedWord = Array.from(input.value.trim().replace("’", "'"));
    const word = wellFormed(typedWord.slice(0, LONGEST).join(""));
    const answers = spaces.map((space) => answerOf(space, word));
    note.textContent = word ? "" : "Type a word.";
    draw(word ? answers : []);
    later();
    if (!word || answers.some(([, , [near]]) => near.length)) return;
    note.append(`None of the lists has neighbours for “${word}”.`);
    const close = alike(word.toLowerCase(), spaces);
    if (close.length)
      note.append(
        " Did you mean ",
        ...close.flatMap((each, i) => [i ? " or " : "", wordButton(each)]),
        "?",
      );
    live.textContent = tell();
  }

  /**
   * What a space says of a word, or of the word in small letters; its lists are empty if it has
   * no neighbours.
   *
   * @param {Space} space
   * @param {string} word
   * @returns {List}
   */
  function answerOf(space, word) {
    const row = space.rows.get(word) ?? space.rows.get(word.toLowerCase());
    const known = row !== undefined;
    let note = `${plural((known && space.counts?.[row]) || 0, "time")} in the text`;
    if (known && row >= space.asked) note += ": too seldom";
    if (!space.counts)
      note = known ? `one of ${count(space.words.length)} rows` : "no row of its own";
    const near = space.tables.map(({ near, cosines }) => {
      const at = known && row < space.asked ? row * space.nearest : near.length;
      return Array.from(
        near.subarray(at, at + space.nearest),
        (other, i) => /** @type {Near} */ ([space.words[other], cosines[at + i]]),
      );
    });
    const cut =
      known || space.counts || !tokenizer ? [] : tokenizer.encode(word).map(({ piece }) => piece);
    return [space.name, note, near, cut];
  }

  /**
   * Up to three words that have neighbours and differ from a word in one or two letters, but not
   * in all: those nearer first; of these the poets' before BERT's, the more frequent first.
   *
   * @param {string} word in small letters
   * @param {Space[]} among
   * @returns {string[]}
   */
  function alike(word, among) {
    /** @type {string[][]} */
    const near = [[], [], []];
    for (const { words, counts, asked } of among.slice().reverse())
      for (const other of words.slice(0, asked)) {
        if (Math.abs(other.length - word.length) > 2 || (!counts && !/^\p{L}{3,}$/u.test(other)))
          continue;
        const far = distance(word, other);
        if (far < word.length) near[far]?.push(other);
      }
    return Array.from(new Set(near.flat())).slice(0, 3);
  }

  /**
   * How many letters must be put in, left out or changed to make one word of another.
   *
   * @param {string} one
   * @param {string} other
   */
  function distance(one, other) {
    let row = Array.from({ length: other.length + 1 }, (_, i) => i);
    for (let i = 1; i <= one.length; i++) {
      const next = [i];
      for (let j = 1; j <= other.length; j++) {
        const change = one[i - 1] === other[j - 1] ? 0 : 1;
        next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + change));
      }
      row = next;
    }
    return row[other.length];
  }

  /* --- drawing -------------------------------------------------------------------------- */

  /**
   * A button that asks about its word.
   *
   * @param {string} word
   */
  const wordButton = (word) => button(word, () => ask(word));

  /**
   * Draw the lists of the spaces that learned something, as the switch says: one of them may be
   * replaced by its counterpart that learned nothing.
   *
   * @param {List[]} answers of all spaces, or none
   */
  function draw(answers) {
    shown = answers;
    /* A table has weights and reads no text; counts have a text and no weights: each has one
       state in which nothing was learned, and stays as it is in the other. */
    const trained = answers.slice(0, data.learned);
    const without = { [WORLDS.random]: 0, [WORLDS.shuffled]: 1 }[worlds.value];
    const drawn = trained.map((list, i) => (i === without ? answers[data.learned + i] : list));
    remains.textContent = without === undefined ? "" : whatIsLeft(trained[without], drawn[without]);
    lists.replaceChildren(
      ...drawn.map(([name, note, both, cut = []]) => {
        const near = (rare.checked && both[1]) || both[0];
        const rows = near.map(([word, cosine]) =>
          make(
            "li",
            { style: `--cosine: ${Math.max(0, cosine)}%` },
            wordButton(word),
            make("span", {}, fixed(cosine / 100)),
          ),
        );
        const title = make("p", { class: "lmn-name" }, make("b", {}, name), " ", note);
        const none = cut.length
          ? make("p", {}, "It is read in pieces: ", ...cut.map(wordButton))
          : "";
        return make("div", {}, title, near.length ? make("ol", {}, ...rows) : none);
      }),
    );
  }

  /**
   * How many of the nearest words in a space are also among those in its counterpart that learned
   * nothing, in a sentence; "" if there are none or nothing is asked.
   *
   * @param {List | undefined} before of the space that learned
   * @param {List | undefined} now of its counterpart
   */
  function whatIsLeft(before, now) {
    if (!before || !now) return "";
    /**
     * The nearest words of a list, without the most frequent if the box is ticked.
     *
     * @type {(list: List) => string[]}
     */
    const words = ([, , both]) => ((rare.checked && both[1]) || both[0]).map(([word]) => word);
    if (!words(before).length) return "";
    return (
      `${before[0]}: of the ${words(before).length} nearest ` +
      `words ${leftOf(words(before), words(now))} left.`
    );
  }

  /* What is read out: the note, and the words of each list. */
  function tell() {
    const sentences = Array.from(lists.children, (list) => {
      const near = Array.from(list.querySelectorAll("li button"), (each) => each.textContent);
      return `${list.querySelector("b")?.textContent}: ${near.join(", ") || "none"}`;
    });
    return [String(note.textContent).replace(/[.?]$/, ""), ...sentences].filter(Boolean).join(". ");
  }

  draw(data.lists);
  return { state: stateOf({ world: worlds, frequent: rare, word: input }) };
}
