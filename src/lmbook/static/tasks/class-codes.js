/* Codes for a class: the first answer to a *predict* task in six characters, written as
   `lmcourse.exercises.codes` says, and the part *In class*, where who pastes the codes of a class
   sees how often each answer was given. Nothing of it is sent or kept. */
import { bar, make, percent, plural, row } from "./dom.js";

const SYMBOLS = "23456789abcdefghjkmnpqrstuvwxyz"; // no 0, 1, i, l, o
const BASE = SYMBOLS.length;
const LENGTH = 6;
const LETTERS = "abcdefgh";
const TOLD = 5; // problems that are told one by one
const QUOTED = 20; // characters of a line that are quoted

/**
 * The hash of a text (FNV-1a), a whole number of 32 bits.
 *
 * @param {string} text
 */
function hashOf(text) {
  let hash = 2166136261;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 16777619) >>> 0;
  return hash;
}

/**
 * The number of a code's last character, by which mistakes are found.
 *
 * @param {number[]} numbers of the characters before it, positions in SYMBOLS
 */
const checkOf = (numbers) => numbers.reduce((sum, number, i) => sum + (i + 1) * number, 0) % BASE;

/**
 * The numbers that stand for a task: four of its code, and by how much an answer is moved.
 *
 * @param {string} label of the task
 */
function taskNumbers(label) {
  const hash = hashOf(label);
  /* The hash divided by a power of BASE. */
  const at = (/** @type {number} */ place) => Math.floor(hash / BASE ** place);
  return { four: [0, 1, 2, 3].map((place) => at(place) % BASE), moved: at(4) };
}

/**
 * The code of an answer, such as "k7f-2qx".
 *
 * @param {string} label of the task
 * @param {number} option from 0
 */
function classCode(label, option) {
  const { four, moved } = taskNumbers(label);
  const numbers = [...four, (option + moved) % BASE];
  const code = [...numbers, checkOf(numbers)].map((number) => SYMBOLS[number]).join("");
  return `${code.slice(0, 3)}-${code.slice(3)}`;
}

/**
 * Read a code.
 *
 * @param {string} line as it was typed; a name may stand before a colon
 * @param {string} label of the task
 * @param {number} options how many there are
 * @param {string[]} others labels of other tasks
 * @returns {number | string} the option; or what is wrong
 */
function readCode(line, label, options, others) {
  const whole = line.slice(line.lastIndexOf(":") + 1).trim();
  const start = Array.from(whole).slice(0, QUOTED).join("");
  const typed = start === whole ? whole : `${start}…`;
  const code = whole.toLowerCase().replace(/[\s\-–—.,;]/g, "");
  const strange = Array.from(code).find((character) => !SYMBOLS.includes(character));
  if (strange) return `“${typed}”: no code has “${strange}” in it. Codes have no 0, 1, i, l or o.`;
  if (code.length !== LENGTH)
    return `“${typed}”: ${plural(code.length, "character")}, and a code has ${LENGTH}.`;
  const numbers = Array.from(code, (character) => SYMBOLS.indexOf(character));
  if (checkOf(numbers.slice(0, -1)) !== numbers[LENGTH - 1])
    return `“${typed}” is mistyped: a character is wrong, or two changed places.`;
  /**
   * Whether the code is one of a task's.
   *
   * @type {(of: string) => boolean}
   */
  const fits = (of) => taskNumbers(of).four.every((number, i) => number === numbers[i]);
  if (!fits(label)) {
    const other = others.find(fits);
    const name = other ? ` (${other.replace(/^ex-/, "")})` : "";
    return `“${typed}” is the code of another task${name}.`;
  }
  const option = (((numbers[4] - taskNumbers(label).moved) % BASE) + BASE) % BASE;
  return option < options ? option : `“${typed}” stands for an answer that is not here.`;
}

/**
 * Read the codes of a class, one a line.
 *
 * @param {string} text
 * @param {string} label of the task
 * @param {number} options how many there are
 * @param {string[]} others labels of other tasks
 * @returns {{ counts: number[], problems: string[] }} how often each option was chosen; what is
 *   wrong with which line
 */
function readCodes(text, label, options, others) {
  const counts = Array(options).fill(0);
  /** @type {string[]} */
  const problems = [];
  text.split(/\r\n|\r|\n/).forEach((line, i) => {
    if (!line.trim()) return;
    const answer = readCode(line, label, options, others);
    if (typeof answer === "number") counts[answer]++;
    else problems.push(`Line ${i + 1}: ${answer}`);
  });
  return { counts, problems };
}

/**
 * A copy of an element, formulas too, without ids.
 *
 * @param {Element} element
 */
function copyOf(element) {
  const copy = /** @type {Element} */ (element.cloneNode(true));
  for (const each of [copy, ...copy.querySelectorAll("[id]")]) each.removeAttribute("id");
  return copy;
}

/**
 * Give a task the code of the reader's first answer, and the part *In class*.
 *
 * @param {string} label of the task
 * @param {Element[]} options their words
 * @returns {{ element: HTMLElement, answer(option: number): void, reset(): void }} what is shown;
 *   what is told each answer, of which the first counts; what forgets all
 */
export function inClass(label, options) {
  const all = Object.values(window.lmcourse.tasks.pages).flat();
  const others = all.filter((other) => other !== label);
  const mine = make("p", { class: "lm-code", hidden: "" });
  const area = make("textarea", {
    rows: 5,
    spellcheck: "false",
    autocomplete: "off",
    placeholder: "k7f-2qx",
    oninput: count,
  });
  const status = make("p", { "aria-live": "polite" });
  const wrong = make("ul");
  const answers = make("tbody");
  const table = make("table", { hidden: "" }, answers);
  const element = make(
    "div",
    { class: "lm-class" },
    mine,
    make(
      "details",
      {},
      make("summary", {}, "In class"),
      make(
        "p",
        {},
        "For a teacher: everybody answers this task on a device of their own. After the answer a code " +
          "appears above the words “In class”; ask them to send it to you. Paste the codes below, one a " +
          "line (a name and a colon may stand before it). This page sends nothing and keeps nothing.",
      ),
      make("label", {}, "Codes of the class", area),
      status,
      wrong,
      table,
    ),
  );

  /* Show how often each answer was given, by the codes that were pasted, and which could not be
     read. */
  function count() {
    const { counts, problems } = readCodes(area.value, label, options.length, others);
    const total = counts.reduce((a, b) => a + b);
    const left = problems.length ? ` ${plural(problems.length, "line")} could not be read:` : "";
    status.textContent = area.value.trim()
      ? `${plural(total, "answer")}.${left || " Now run the experiment: who was right?"}`
      : "";
    const more = problems.length - TOLD;
    const items = more > 0 ? [...problems.slice(0, TOLD), `and ${more} more`] : problems;
    wrong.replaceChildren(...items.map((each) => make("li", {}, each)));
    table.hidden = !total;
    answers.replaceChildren(
      ...options.map((words, i) => {
        const share = total ? counts[i] / total : 0;
        const name = make("span", {}, `${LETTERS[i]}. `, copyOf(words));
        return row(name, bar(share, share), counts[i], percent(share));
      }),
    );
  }

  return {
    element,
    answer(option) {
      if (!mine.hidden) return; // the first answer counts
      mine.hidden = false;
      mine.replaceChildren(
        "In class, send this code: ",
        make("code", {}, classCode(label, option)),
        ` (your first answer, ${LETTERS[option]}).`,
      );
    },
    reset() {
      mine.hidden = true;
      area.value = "";
      count();
    },
  };
}
