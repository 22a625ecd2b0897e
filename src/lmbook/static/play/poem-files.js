/* Texts that readers bring, one after the other: what a file holds, and what is wrong with it,
   as `lmcourse.own_poems.read` and `check` say it. */

import { plural } from "./dom.js";
import { decodeStrictly } from "./text.js";

const LEAST = 4; // texts, so that each has three others
const LEAST_OF_A_LABEL = 3; // texts: two are left out at once
const COLUMNS = ["text", "label", "title"];
/** @type {Record<string, string>} */
const TABLES = { csv: ",", tsv: "\t" };
/** @type {Record<string, string>} */
const DELIMITERS = { ",": "commas", "\t": "tabs", ";": "semicolons" };
/** How files begin that are no text.
 * @type {[beginning: string, what: string][]} */
const PROGRAMS = [
  ["PK\x03\x04", "a packed file: a document (.docx, .odt), a sheet (.xlsx) or a .zip"],
  ["%PDF", "a PDF"],
  ["{\\rtf", "a document in RTF"],
  ["\xd0\xcf\x11\xe0", "a document or sheet of an old office program (.doc, .xls)"],
  ["\x1f\x8b", "a packed file (.gz)"],
];
// What Python takes for an empty place in a line.
const BLANK =
  "[\\t\\v\\f \\x1c-\\x1f\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const EMPTY = `\\n${BLANK}*`; // the end of a line, and what stands in the next if it is empty
export const SPACE = BLANK.replace("[", "[\\n\\r");
const ENDS = new RegExp(`^${SPACE}+`);
const NO_SPACE = new RegExp(`[^${SPACE.slice(1)}`);

/**
 * A text; the title is its first line where the file has none.
 *
 * @typedef {{ text: string, title: string, label?: string }} Poem
 */

/**
 * A text without the empty places before and behind it.
 *
 * @param {string} text
 * @returns {string}
 */
function strip(text) {
  const rest = text.replace(ENDS, "");
  let end = rest.length;
  while (end && !NO_SPACE.test(rest[end - 1])) end--;
  return rest.slice(0, end);
}

/**
 * A text whose lines all end in a newline, whatever they ended in.
 *
 * @type {(content: string) => string}
 */
const inLines = (content) => content.replace(/\r\n?/g, "\n");

/**
 * The rule by which a text that is no table is cut into texts, and why, in a sentence.
 *
 * @param {string} content
 * @returns {string}
 */
export const tellCut = (content) =>
  isCutAtTwo(inLines(content))
    ? "Two empty lines in a row were found, so a new text begins only where two or more empty lines stand; a single one stays inside a text."
    : "A new text begins after each empty line.";

/**
 * Whether a text's first line looks like that of a table, with a cell `text` and others.
 *
 * @param {string} content
 * @returns {boolean}
 */
export function isLikeTable(content) {
  const first = strip(content).split(/[\r\n]/, 1)[0];
  const cells = first.split(/[,;\t]/).map((cell) => cell.replace(/^[ "]+|[ "]+$/g, ""));
  return cells.length > 1 && cells.some((cell) => cell.toLowerCase() === "text");
}

/**
 * The texts in what a file holds, those that are not empty, one or more.
 *
 * @param {string} content
 * @param {string} name of the file: a table if it ends in .csv or .tsv
 * @returns {Poem[]}
 * @throws {Error} which says what is wrong, in which line, and what to do
 */
export function poemsOf(content, name) {
  const lines = inLines(content);
  const zero = lines.indexOf("\0");
  if (zero >= 0)
    throw new Error(
      `${name}, line ${linesBefore(lines, zero)}: a zero byte, so this is no text. ` +
        "Export a text file or a table from the program that made it",
    );
  const delimiter = TABLES[name.split(".").pop()?.toLowerCase() ?? ""];
  const rows = delimiter
    ? tableRows(lines, delimiter, name)
    : parts(lines).map((text) => ({ text }));
  const poems = rows.filter(({ text }) => strip(text)).map(withTitle);
  if (!poems.length)
    throw new Error(`${name} holds no text: every line of it is empty. Choose another file`);
  return poems;
}

/**
 * A text with a title: its own, or else its first line.
 *
 * @param {{ text: string, title?: string, label?: string }} row
 * @returns {Poem}
 */
function withTitle(row) {
  const title = row.title && strip(row.title) ? row.title : strip(strip(row.text).split("\n")[0]);
  return { ...row, title };
}

/**
 * The number of the line in which a position stands.
 *
 * @param {string} text
 * @param {number} end the position
 * @returns {number} from 1
 */
const linesBefore = (text, end) => text.slice(0, end).split("\n").length;

/**
 * Read the bytes of a file as text, in UTF-8, or in UTF-16 if it begins as such.
 *
 * @param {Uint8Array} bytes
 * @param {string} name of the file
 * @returns {string}
 * @throws {Error} if it is no text: which says what it is, or in which line it goes wrong
 */
export function decoded(bytes, name) {
  const first = String.fromCharCode(...bytes.subarray(0, 8));
  for (const [beginning, what] of PROGRAMS)
    if (first.startsWith(beginning))
      throw new Error(
        `${name} is ${what}, and no text. In the program that made it, ` +
          "save it as a text file (.txt) or a table (.csv)",
      );
  const mark = first.slice(0, 2);
  if (mark === "\xff\xfe" || mark === "\xfe\xff") {
    try {
      return decodeStrictly(mark === "\xff\xfe" ? "utf-16le" : "utf-16be", bytes);
    } catch {
      throw new Error(`${name} begins as UTF-16 and goes on otherwise. Save the file as UTF-8`);
    }
  }
  try {
    return decodeStrictly("utf-8", bytes);
  } catch {
    throw new Error(
      `${name}, line ${firstOther(bytes)}: a byte there is no UTF-8. Save the file as UTF-8`,
    );
  }
}

/**
 * The first line that is no UTF-8, from 1.
 *
 * @param {Uint8Array} bytes
 */
function firstOther(bytes) {
  let start = 0;
  for (let line = 1; ; line++) {
    const end = bytes.indexOf(10, start);
    try {
      decodeStrictly("utf-8", bytes.subarray(start, end < 0 ? bytes.length : end));
    } catch {
      return line;
    }
    if (end < 0) return line;
    start = end + 1;
  }
}

/**
 * Cut a text at two empty lines or more, if it has such, else at each empty line.
 *
 * @param {string} content
 * @returns {string[]}
 */
function parts(content) {
  const mark = new RegExp(`(?:${EMPTY}){${isCutAtTwo(content) ? 3 : 2},}`);
  return content.split(mark);
}

/**
 * Whether two empty lines stand in a row in a text.
 *
 * @type {(content: string) => boolean}
 */
const isCutAtTwo = (content) => new RegExp(`(?:${EMPTY}){2}\\n`).test(strip(content));

/**
 * The texts of a table, with their labels and titles if it has such columns; other columns and
 * empty rows are left out.
 *
 * @param {string} content
 * @param {string} delimiter between cells
 * @param {string} name of the file
 * @returns {{ text: string, label?: string, title?: string }[]}
 * @throws {Error} which says what is wrong, in which line, and what to do
 */
function tableRows(content, delimiter, name) {
  if (!strip(content)) return [];
  checkDelimiter(content, delimiter, name);
  const rows = cellsOf(content, delimiter, name);
  const header = (rows.next().value?.cells ?? []).map((cell) => strip(cell).toLowerCase());
  checkHeader(header, name);
  /** @type {{ text: string, label?: string, title?: string }[]} */
  const records = [];
  for (const { line, cells } of rows) {
    if (!cells.some((cell) => strip(cell))) continue;
    if (cells.length !== header.length)
      throw new Error(
        `${name}, line ${line}: ${plural(cells.length, "cell")}, and the first line has ` +
          `${header.length}. A text with ${DELIMITERS[delimiter]} in it stands in quotes`,
      );
    const known = COLUMNS.filter((column) => header.includes(column));
    const row = Object.fromEntries(known.map((column) => [column, cells[header.indexOf(column)]]));
    records.push(/** @type {{ text: string }} */ (row));
  }
  return records;
}

/**
 * Each row of a table: the line it begins in, and its cells, none if the line is empty.
 *
 * @param {string} content
 * @param {string} delimiter between cells
 * @param {string} name of the file
 * @returns {Generator<{ line: number, cells: string[] }, undefined, void>}
 * @throws {Error} if a cell in quotes is not closed, or something follows its quotes
 */
function* cellsOf(content, delimiter, name) {
  let line = 1;
  let start = 0;
  while (start < content.length) {
    const begins = line;
    /** @type {string[]} */
    const cells = [];
    for (let isRow = content[start] !== "\n"; isRow; ) {
      const { cell, end } =
        content[start] === '"' ? quoted(content, start) : plain(content, start, delimiter);
      isRow = content[end] === delimiter;
      const ends = isRow || end === content.length || content[end] === "\n";
      if (!ends) throw new Error(openQuote(name, begins));
      cells.push(cell);
      line += cell.split("\n").length - 1;
      start = isRow ? end + 1 : end;
    }
    yield { line: begins, cells };
    line++;
    start++;
  }
}

/**
 * What is said of a cell in quotes that does not end as it should.
 *
 * @type {(name: string, line: number) => string}
 */
const openQuote = (name, line) =>
  `${name}, line ${line}: a quote opens a cell here and does not close it. ` +
  "A quote inside of a cell in quotes is written twice";

/**
 * A cell, and where it ends.
 *
 * @typedef {{ cell: string, end: number }} Cell
 */

/**
 * A cell without quotes: it ends at the delimiter or at the end of the line.
 *
 * @param {string} content
 * @param {number} start of the cell
 * @param {string} delimiter between cells
 * @returns {Cell}
 */
function plain(content, start, delimiter) {
  let end = start;
  while (end < content.length && content[end] !== delimiter && content[end] !== "\n") end++;
  return { cell: content.slice(start, end), end };
}

/**
 * A cell in quotes; it ends behind the content if its quote is not closed.
 *
 * @param {string} content
 * @param {number} start of its first quote
 * @returns {Cell}
 */
function quoted(content, start) {
  let end = content.indexOf('"', start + 1);
  while (end >= 0 && content[end + 1] === '"') end = content.indexOf('"', end + 2);
  if (end < 0) return { cell: "", end: content.length + 1 };
  return { cell: content.slice(start + 1, end).replaceAll('""', '"'), end: end + 1 };
}

/**
 * Throw an Error if the first line names a column `text` with other delimiters alone.
 *
 * @param {string} content
 * @param {string} delimiter that the file should have
 * @param {string} name of the file
 */
function checkDelimiter(content, delimiter, name) {
  const first = content.split("\n")[0];
  /**
   * Whether the line, cut at a delimiter, has a cell `text`.
   *
   * @param {string} mark
   */
  const hasText = (mark) =>
    first.split(mark).some((cell) => cell.replace(/^[ "]+|[ "]+$/g, "").toLowerCase() === "text");
  const other = Object.keys(DELIMITERS).find((mark) => first.includes(mark) && hasText(mark));
  if (other && !hasText(delimiter))
    throw new Error(
      `${name}, line 1: its cells are parted by ${DELIMITERS[other]}, ` +
        `where ${DELIMITERS[delimiter]} are needed. ` +
        "Save it as CSV with commas; or with tabs, and a name that ends in .tsv",
    );
}

/**
 * Throw an Error unless a table names a column `text`, and each of COLUMNS at most once.
 *
 * @param {string[]} header the names of its columns, in lower case
 * @param {string} name of the file
 */
function checkHeader(header, name) {
  for (const column of COLUMNS) {
    const count = header.filter((each) => each === column).length;
    if (count > 1)
      throw new Error(
        `${name}, line 1: ${count} columns are named \`${column}\`. Rename all but one`,
      );
  }
  if (!header.includes("text"))
    throw new Error(
      `${name}, line 1: ` +
        `it names the columns ${header.map((each) => `\`${each}\``).join(", ")}; ` +
        `one should be \`text\`. \`label\` and \`title\` may stand beside it`,
    );
}

/**
 * Say why texts cannot be compared, and what to do; "" if they can.
 *
 * @param {Poem[]} poems
 * @returns {string}
 */
export function faultOf(poems) {
  const all = poems.length;
  if (all < LEAST)
    return (
      `${plural(all, "text")}, where ${LEAST} are the least that can be compared: ` +
      "there is nothing to compare. A text file has an empty line between two texts"
    );
  if (new Set(poems.map(({ text }) => strip(text))).size === 1)
    return `all ${all} texts are equal, so that none is nearer than another. Give texts that differ`;
  if (poems[0].label === undefined) return "";
  const labels = labelsOf(poems);
  const empty = poems.filter((_, i) => !labels[i]).map(({ title }) => title);
  if (empty.length)
    return (
      `${empty.length} of ${all} texts ${empty.length === 1 ? "has" : "have"} no label: ` +
      `${empty.slice(0, 3).join("; ")}. Give each one, or leave the column \`label\` out`
    );
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  if (counts.size < 2)
    return (
      `all texts have the label “${labels[0]}”: ` +
      "give two labels or more, or leave the column out"
    );
  const rare = [...counts].filter(([, count]) => count < LEAST_OF_A_LABEL).map(([label]) => label);
  if (rare.length)
    return (
      `${rare.slice(0, 5).join(", ")}: a label needs ${LEAST_OF_A_LABEL} texts, ` +
      "else none is left to tell it by. Join rare labels, or leave those texts out"
    );
  return "";
}

/**
 * The label of each text, without the space around it.
 *
 * @param {Poem[]} poems that have labels
 * @returns {string[]} "" for one without a label
 */
export const labelsOf = (poems) => poems.map(({ label }) => strip(label ?? ""));
