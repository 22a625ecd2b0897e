/* What the view *own poems* says of texts that came in, were read and were found near. */

import { changedHow, leftOf, make, percent, plural, row, WORLDS } from "./dom.js";
import { ONE_ORDER } from "./own-lines.js";
import { isLikeTable, tellCut } from "./poem-files.js";
import { quoted } from "./text.js";

/** @import { Poem } from "./poem-files.js" */
/** @import { Accuracy } from "./poem-numbers.js" */
/** @import { Line, Rivals, World } from "./poem-reading.js" */

export const WORDS = "words counted";
const MIXED = "each text’s words"; // what is put in another order

/**
 * Texts of which something is known.
 *
 * @typedef {object} Shown
 * @property {Poem[]} poems
 * @property {Rivals} rivals
 * @property {Record<string, World>} worlds what is known, by the value of the switch
 * @property {Line[]} [lines] of a reader's texts
 */

/**
 * How a text that was typed is cut into texts; if it looks like a table, that tables are read from
 * files only.
 *
 * @param {string} content
 */
export const howCut = (content) =>
  isLikeTable(content)
    ? " This looks like a table. A table is read from a file only: save it as a .csv or .tsv file and choose that file."
    : ` ${tellCut(content)}`;

/**
 * How many texts and labels came in, and which texts are too many.
 *
 * @param {Poem[]} poems
 * @param {string} name where they come from
 * @param {number} most texts that are read
 */
export function summaryOf(poems, name, most) {
  const kinds = new Set(poems.map(({ label }) => label)).size;
  const labelled = poems[0].label === undefined ? "no labels" : plural(kinds, "label");
  const left = poems.slice(most);
  const rest = left.length ? ` The first ${most} are read. ${leftOut(left)}` : "";
  return `${name}: ${plural(poems.length, "text")}, ${labelled}.${rest}`;
}

/**
 * Which texts are left out, by the titles of the first five; "" if there are none.
 *
 * @param {Poem[]} left
 */
export function leftOut(left) {
  const names = left.slice(0, 5).map(({ title }) => quoted(title.slice(0, 60)));
  const more = left.length > 5 ? ` and ${left.length - 5} more` : "";
  return left.length ? `Left out: ${names.join(", ")}${more}.` : "";
}

/**
 * How many texts were read, of how many only the beginning, and of how many the model knows no
 * word.
 *
 * @param {Line[]} lines
 */
export function readSentence(lines) {
  const cut = lines.filter(({ isCut }) => isCut).length;
  const short = cut ? ` Of ${plural(cut, "text")} only the beginning was.` : "";
  return `${plural(lines.length, "text")} were read.${short}${unknownSentence(lines)}`;
}

/**
 * Of how many texts the model knows no word; "" if there are none.
 *
 * @param {Line[]} lines
 */
function unknownSentence(lines) {
  const unknown = lines.filter(({ isUnknown }) => isUnknown).length;
  if (unknown === 1)
    return " The model’s vocabulary has no word of one of the texts: of this text it knows only the length.";
  return unknown
    ? ` Of ${plural(unknown, "text")} the model’s vocabulary has no word: ` +
        "by their length alone it tells them apart."
    : "";
}

/**
 * How many of the three nearest texts that the model as it is finds at a level are left, and how
 * often labels are guessed correctly there; "" if the switch says "as it is".
 *
 * @param {Shown} shown
 * @param {string} state of the switch
 * @param {number} chosen the text
 * @param {number} level
 */
export function leftSentence(shown, state, chosen, level) {
  if (state === WORLDS.asItIs) return "";
  const { [WORLDS.asItIs]: usual, [state]: changed } = shown.worlds;
  const { near, accuracy: accuracies, texts: read } = changed;
  if (read?.every((text, i) => text === shown.poems[i].text)) return ONE_ORDER;
  const some = leftOf(usual.near[level][chosen], near[level][chosen]);
  const three =
    `${changedHow(state, MIXED)}, ` +
    `${some} left of the three that the model finds at this level.`;
  const labels =
    accuracies && usual.accuracy
      ? ` Labels are guessed correctly in ${percent(accuracies[level][0])} ` +
        `of the cases there; as it is, in ${percent(usual.accuracy[level][0])}.`
      : "";
  const counts =
    state === WORLDS.shuffled
      ? " The three by counted words are the same, because counting takes no notice of order."
      : "";
  return three + labels + counts;
}

/**
 * An accuracy with its interval, if it has one, in words.
 *
 * @param {Accuracy} accuracy
 */
const share = ([right, from, to]) =>
  percent(right) + (from === to ? "" : ` (${percent(from)} to ${percent(to)})`);

/**
 * Make a paragraph and a table of how often labels are guessed correctly, at each level, by
 * counting words and with shuffled labels.
 *
 * @param {World} world what the model found
 * @param {Rivals} rivals
 * @param {string} state of the switch
 * @returns {HTMLElement[]} none if the texts have no labels
 */
export function labelsSentence(
  { levels, accuracy: accuracies },
  { accuracy: words, shuffled },
  state,
) {
  if (!accuracies || !words || !shuffled) return [];
  const all = levels.map((name, i) => row(name, share(accuracies[i]))).reverse();
  const [top] = accuracies[accuracies.length - 1];
  const how =
    {
      [WORLDS.random]: " with random weights",
      [WORLDS.shuffled]: ` with ${MIXED} in another order`,
    }[state] ?? "";
  return [
    make(
      "p",
      {},
      "From all the other texts, a text’s label is guessed correctly in " +
        `${percent(top)} of the cases at the last level${how}. By counting words it is ` +
        `${percent(words[0])}. If the labels are shuffled, it is ${percent(shuffled[0])}. ` +
        "The brackets hold 95 % intervals: over texts, and over the ways to shuffle.",
    ),
    make(
      "table",
      {},
      make("tbody", {}, ...all, row(WORDS, share(words)), row("labels shuffled", share(shuffled))),
    ),
  ];
}

/**
 * A cell of a CSV file, in quotes.
 *
 * @param {string} cell
 */
const inCsv = (cell) => `"${cell.replaceAll('"', '""')}"`;

/**
 * A table of the three nearest texts of each text, at each level and by counting.
 *
 * @param {Shown} shown
 * @param {World} world what the model found
 * @returns {string} as a CSV file has it
 */
export function neighboursTable({ poems, rivals }, { levels, near }) {
  const lines = [["text", "title", "level", "nearest", "second", "third"]];
  poems.forEach(({ title }, text) => {
    const all = [...levels.map((name, i) => [name, near[i][text]]), [WORDS, rivals.words[text]]];
    for (const [name, nearest] of /** @type {[string, number[]][]} */ (all))
      lines.push([String(text + 1), title, name, ...nearest.map((each) => poems[each].title)]);
  });
  return lines.map((cells) => `${cells.map(inCsv).join(",")}\r\n`).join("");
}
