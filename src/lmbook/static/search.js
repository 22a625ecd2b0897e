/* The page of results: MiniSearch over the text of every section (`lmbook.pages.search`). A word
   that the book does not have is taken for the nearest that it has, and the page says so. */
import { make, plural } from "./dom.js";

const FIELDS = ["title", "heading", "text", "work", "code"];
const NAMES = ["page", "title", "anchor", "heading", "text", "work", "code"]; // of its values
const MOST = 40; // results shown

/**
 * A section of the book: `work` is what only *Work* shows.
 *
 * @typedef {"page" | "title" | "anchor" | "heading" | "text" | "work" | "code"} Part
 * @typedef {Record<Part, string>} Section
 */

/**
 * A result of MiniSearch: the words of the book that were found, and where.
 *
 * @typedef {{ id: number, terms: string[], match: Record<string, string[]> }} Result
 */

/**
 * @typedef {object} Answer
 * @property {Result[]} results the best first
 * @property {string[]} changed words that the book does not have
 * @property {string} meant what was looked for in the end
 * @property {boolean} all whether each section found has all words
 */

const sections = window.lmbookSections.map((values, id) => ({
  id,
  .../** @type {Section} */ (Object.fromEntries(NAMES.map((name, n) => [name, values[n]]))),
}));
/**
 * A word without accents, in small letters.
 *
 * @param {string} word
 */
const plain = (word) => word.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
const index = new MiniSearch({ fields: FIELDS, processTerm: plain });
index.addAll(sections);

/**
 * The words of a text.
 *
 * @param {string} text
 */
const words = (text) => text.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
const boost = { heading: 4, title: 2, text: 1, work: 0.8, code: 0.3 };
/**
 * Sections that have a word, or, if it is longer than two letters, one that begins with it.
 *
 * @type {(word: string) => Result[]}
 */
const exact = (word) => index.search(word, { prefix: word.length > 2 });
/**
 * A word without the s at its end, if it looks like a plural.
 *
 * @param {string} word
 */
const singular = (word) => word.replace(/^(.*\p{L}{3}[^s])s$/u, "$1");

/**
 * The word of the book that a word which it has not is nearest to: one slip away, or two;
 * among several the one that stands in most sections.
 *
 * @param {string} word
 * @returns {string | null} null if there is none so near
 */
function nearest(word) {
  for (const slips of word.length > 5 ? [1, 2] : [1]) {
    /** @type {Record<string, number>} */
    const count = {};
    /** @type {Result[]} */
    const results = index.search(word, { fuzzy: slips });
    for (const result of results)
      for (const term of result.terms) count[term] = (count[term] || 0) + 1;
    const terms = Object.keys(count).filter((term) => !/\d/.test(term));
    if (terms.length) return terms.sort((a, b) => count[b] - count[a])[0];
  }
  return null;
}

/**
 * Find the sections that have all words of a query, or, if there are none, some of them. A word
 * that the book does not have is taken for the nearest that it has.
 *
 * @param {string} query
 * @returns {Answer}
 */
function look(query) {
  /** @type {string[]} */
  const changed = [];
  const meant = words(query).map((word) => {
    if (exact(word).length || exact(singular(word)).length) return word;
    const near = nearest(word);
    if (near) changed.push(word);
    return near || word;
  });
  const queries = meant.map((word) => ({
    combineWith: "OR",
    queries: Array.from(new Set([word, singular(word)])),
  }));
  const how = { boost, prefix: (/** @type {string} */ term) => term.length > 2 };
  let results = index.search({ combineWith: "AND", queries }, how);
  const all = results.length > 0;
  if (!all) results = index.search({ combineWith: "OR", queries }, how);
  return { results, changed, meant: meant.join(" "), all: all || meant.length < 2 };
}

/**
 * Make a paragraph of some words around the first that was found, those found marked.
 *
 * @param {string} text of the section
 * @param {Set<string>} terms words that were found, as `plain` makes them
 */
function quote(text, terms) {
  const parts = text.split(/([\p{L}\p{N}]+)/u);
  /**
   * Whether a part of the text is a word that was found.
   *
   * @param {string} part
   */
  const hit = (part) => terms.has(plain(part));
  const first = parts.findIndex(hit);
  const start = Math.max(0, first - 24);
  const shown = parts.slice(start, start + 70);
  const nodes = shown.map((part) => (hit(part) ? make("mark", {}, part) : part));
  if (start) nodes.unshift("… ");
  if (start + 70 < parts.length) nodes.push(" …");
  return make("p", { class: "context" }, ...nodes);
}

/**
 * Make the entry of a result: a link to the section, its page, and a quotation.
 *
 * @param {Result} result
 */
function row(result) {
  const section = sections[result.id];
  const terms = new Set(result.terms);
  const fields = new Set(Object.values(result.match).flat());
  const work = fields.has("work") && !fields.has("text");
  const read = ["title", "heading", "text"].some((field) => fields.has(field));
  const way = { "data-way": !read && "work" }; // what only Work shows, it shows there
  const link = make("a", { href: `${section.page}#${section.anchor}`, ...way }, section.heading);
  const where = make("span", { class: "lm-where" }, section.title, read ? "" : " · in Work");
  return make("li", {}, link, where, quote(work ? section.work : section.text, terms));
}

/**
 * How much was found, and for which words, in sentences: parts of a paragraph.
 *
 * @param {Answer} answer
 */
function summary({ results, changed, meant, all }) {
  const pages = new Set(results.map((result) => sections[result.id].page)).size;
  /** @type {(string | Node)[]} */
  const parts = changed.flatMap((word, n) => [n ? " or " : "No page has ", make("em", {}, word)]);
  if (changed.length) parts.push(". Showing results for ", make("em", {}, meant), ". ");
  if (!results.length) return [...parts, "No page has this. A part of a word is enough."];
  if (!all) parts.push("No section has all these words. ");
  parts.push(`${plural(results.length, "section")} on ${plural(pages, "page")}.`);
  return parts;
}

const place = /** @type {HTMLElement} */ (document.getElementById("search-results"));
const status = make("p", { class: "search-summary", role: "status" });
const list = make("ul", { class: "search" });
place.append(status, list);
const field = /** @type {HTMLInputElement} */ (
  document.querySelector(".bd-search-container input[name=q]")
);
/* Show what is found for the words in the field; nothing if there are none. */
function show() {
  status.replaceChildren();
  list.replaceChildren();
  if (!words(field.value).length) return;
  const answer = look(field.value);
  status.append(...summary(answer));
  list.append(...answer.results.slice(0, MOST).map(row));
}
field.value = new URLSearchParams(location.search).get("q") || "";
field.addEventListener("input", show);
show();
