/* The view *word removal*: a poem whose every word can be struck out, coloured by what that
   changes of the support for a section. It shows what the model answered when the page was
   built. */

import { controls, countField, fixed, make, select, slider, stateOf } from "./dom.js";
import { pressable, roving } from "./keys.js";
import { argmax } from "./numbers.js";

const FULL = 60; // hundredths of support at which a colour is full

/**
 * @typedef {object} Poem
 * @property {string} text
 * @property {number} own the editors' section
 * @property {string[]} words in order, as they stand in the text
 * @property {number[][]} printed support of the whole text, [level][section], in hundredths
 * @property {number[][][]} said support without each word, [level][word][section], in hundredths
 */

/**
 * Mount the view *word removal*: a poem whose words the reader strikes out, coloured by how much
 * that changes the support for a section.
 *
 * @param {HTMLElement} element empty
 * @param {object} data
 * @param {Poem[]} data.poems
 * @param {string[]} data.names of the sections
 * @param {string[]} data.levels their names
 * @param {number} data.first the poem to begin with
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, { poems, names, levels, first }) {
  let poem = first;
  let level = levels.length - 1;
  /** @type {number | null} */
  let section = null; // the one asked for; null: the likeliest
  /** @type {number | null} */
  let struck = null; // the word struck out
  let stop = 0; // the word that is the poem's tab stop

  const titles = poems.map(({ text }) => text.split("\n")[0]);
  const poemChoice = select(titles, choosePoem);
  const sectionChoice = select(names, chooseSection);
  const levelChoice = slider("Level", { min: 0, max: level, value: level, oninput: chooseLevel });
  const text = make("blockquote", { class: "play-poem" });
  const status = make("p", { class: "lmf-told", role: "status" });
  poemChoice.value = String(first);
  element.append(
    controls(
      make("label", {}, "Poem ", poemChoice),
      make("label", {}, "What speaks for ", sectionChoice),
      levelChoice.label,
    ),
    text,
    make(
      "p",
      { class: "lmf-key" },
      make("span", { class: "lmf-holds" }, "speaks for it"),
      make("span", { class: "lmf-hinders" }, "speaks against it"),
      " Press a word to strike it out; arrow keys go from word to word.",
    ),
    status,
  );

  /* Show the poem that is selected, with no word struck out. */
  function choosePoem() {
    poem = Number(poemChoice.value);
    section = null;
    struck = null;
    stop = 0;
    draw();
  }

  /* Colour the words by the section that is selected. */
  function chooseSection() {
    section = Number(sectionChoice.value);
    draw();
  }

  /* Show the level at which the slider stands. */
  function chooseLevel() {
    level = Number(levelChoice.input.value);
    draw();
  }

  /**
   * Strike a word out, or put it back.
   *
   * @param {number} word its position
   */
  function strike(word) {
    struck = struck === word ? null : word;
    draw();
  }

  /**
   * A word as a button, coloured by the support that is lost without it. It is a span, since
   * a button would break the line before a comma.
   *
   * @param {string} word
   * @param {number} i its position
   * @param {number} lost support, in hundredths; below 0 if there is more without it
   */
  function makeWord(word, i, lost) {
    const span = make(
      "span",
      {
        role: "button",
        tabindex: i === stop ? 0 : -1,
        onclick: () => strike(i),
        onfocus: () => {
          stop = i;
        },
        "aria-pressed": String(struck === i),
        class: lost < 0 ? "lmf-hinders" : "lmf-holds",
        style: `--share: ${Math.min(1, Math.abs(lost) / FULL).toFixed(2)}`,
      },
      word,
    );
    pressable(span, () => strike(i));
    return span;
  }

  /**
   * Draw the words as buttons, with the text between them as it is; the focus stays.
   *
   * @param {number} shownSection by whose support they are coloured
   */
  function drawText(shownSection) {
    const { text: whole, words, printed, said: supportWithout } = poems[poem];
    const active = /** @type {Element} */ (document.activeElement);
    const focused = Array.from(text.children).indexOf(active);
    /** @type {(string | HTMLElement)[]} */
    const parts = [];
    let end = 0;
    words.forEach((word, i) => {
      const start = whole.indexOf(word, end);
      const lost = printed[level][shownSection] - supportWithout[level][i][shownSection];
      parts.push(whole.slice(end, start), makeWord(word, i, lost));
      end = start + word.length;
    });
    text.replaceChildren(...parts, whole.slice(end));
    const spans = /** @type {HTMLCollectionOf<HTMLElement>} */ (text.children);
    roving(spans, words.length);
    spans[focused]?.focus();
  }

  /* Where editors and model put the poem, and its support for each section, without the word that
     is struck out if there is one. */
  function describe() {
    const { own, words, printed, said: supportWithout } = poems[poem];
    /**
     * The support for each section, in words.
     *
     * @param {number[]} values in hundredths
     */
    const support = (values) =>
      names.map((name, i) => `${name} ${fixed(values[i] / 100)}`).join(", ");
    const now = printed[level];
    const model = `The model (${levels[level]}) as printed: ${names[argmax(now)]}.`;
    const beginning = `The editors: ${names[own]}. ${model}`;
    if (struck === null) return `${beginning} ${support(now)}.`;
    const without = supportWithout[level][struck];
    return (
      `${beginning} Without “${words[struck]}”: ` +
      `${names[argmax(without)]}. ${support(without)}.`
    );
  }

  /* Draw the poem, coloured by the chosen section, or else by the one that the model, at its last
   * level, holds likeliest for the whole text; and say what the model makes of it. */
  function draw() {
    const shownSection = section ?? argmax(poems[poem].printed[levels.length - 1]);
    sectionChoice.value = String(shownSection);
    levelChoice.value.textContent = levels[level];
    drawText(shownSection);
    status.textContent = describe();
  }

  draw();
  /**
   * A field that holds a whole number below `count`, or none: in a link from 1 on, and 0 for none.
   *
   * @type {(
   *   get: () => number | null,
   *   set: (number: number | null) => void,
   *   count: () => number,
   * ) => import("./dom.js").Field}
   */
  const orNone = (get, set, count) =>
    countField(
      () => (get() ?? -1) + 1,
      (number) => set(number ? number - 1 : null),
      () => count() + 1,
    );
  const state = {
    poem: poemChoice,
    section: orNone(
      () => section,
      (number) => {
        section = number;
      },
      () => names.length,
    ),
    level: levelChoice.input,
    word: orNone(
      () => struck,
      (number) => {
        struck = number;
      },
      () => poems[poem].words.length,
    ),
  };
  return { state: stateOf(state, draw) };
}
