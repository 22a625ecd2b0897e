/* Tasks: choices that answer, what is done, how far the reader is. It is kept in this browser
   only, by the book's title and the task's label; where nothing can be kept, as long as the
   page is open. `lmcourse.tasks` (tasks-table.js) says which tasks each page has. A press on
   "Forget my progress" forgets the line that the reader typed in views (`dom.js`) and the
   models that the browser keeps (`play/store.js`), too. */

import { button, forgetLine, LINE, lastLine, make } from "./dom.js";
import { forgetWeights, keepsWeights, WEIGHTS_FORGOTTEN, WEIGHTS_KEPT } from "./play/store.js";
import { inClass } from "./tasks/class-codes.js";

/** @typedef {HTMLElement & { button: HTMLButtonElement }} Option one of a choice */

const { book, pages } = window.lmcourse.tasks;
const key = `lmcourse:${book}`;
const ownScript = /** @type {HTMLScriptElement} */ (document.currentScript);
const home = new URL("../../", ownScript.src).pathname;
/** @type {HTMLElement[]} */
const tasks = Array.from(document.querySelectorAll("div.exercise[id]"));
const all = Object.values(pages).flat();
/** @type {(() => void)[]} */
const resets = [];
/** @type {Record<string, "right" | "done">} how each task was done, by its label */
let done = {};
let canKeep = true;
let hasWeights = false;

/**
 * Do something with what the browser keeps, if it keeps anything.
 *
 * @param {() => void} action
 */
function attempt(action) {
  try {
    if (canKeep) action();
  } catch {
    canKeep = false;
  }
}

/**
 * What was kept, by the tasks' labels; of what is broken or has another shape, nothing.
 *
 * @param {string} text
 * @returns {Record<string, "right" | "done">}
 */
function readKept(text) {
  try {
    const record = JSON.parse(text);
    const entries = Object.entries(Array.isArray(record) ? {} : Object(record));
    return Object.fromEntries(entries.filter(([, how]) => how === "right" || how === "done"));
  } catch {
    return {};
  }
}

/* Read what is done of what the browser keeps. */
function load() {
  attempt(() => {
    done = readKept(localStorage.getItem(key) ?? "null");
  });
}

/**
 * Keep how a task was done, and show it.
 *
 * @param {string} label of a task
 * @param {"right" | "done" | false} how it was done; false if it was not
 */
function mark(label, how) {
  load();
  if (how) done[label] = how;
  else delete done[label];
  attempt(() => localStorage.setItem(key, JSON.stringify(done)));
  show();
}

/**
 * The hash of a text (FNV-1a), in eight hexadecimal digits. A page has it of the right answer
 * with the task's key, so that which option is right is not to be read there.
 *
 * @param {string} text
 */
function hashAnswer(text) {
  let hash = 2166136261;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 16777619) >>> 0;
  return hash.toString(16).padStart(8, "0");
}

/**
 * Make the options of a choice buttons that answer. Which one is right is told by a hash, see
 * `hashAnswer`; a right answer is kept and shown again on the next visit, a wrong one is not.
 *
 * @param {HTMLElement} root a list of options; those that have an explanation carry it along,
 *   hidden until tasks.css finds a verdict at the option
 */
function choices(root) {
  const task = /** @type {HTMLElement} */ (root.closest("div.exercise"));
  const items = /** @type {Element} */ (root.querySelector("ol")).children;
  const options = /** @type {Option[]} */ (Array.from(items));
  const status = make("p", { class: "visually-hidden", role: "status" });
  root.append(status);
  const words = options.map((option) => /** @type {Element} */ (option.firstElementChild));
  const forClass = task.classList.contains("predict") ? inClass(task.id, words) : null;
  if (forClass) root.append(forClass.element);

  /**
   * Whether an option is the right one.
   *
   * @param {Option} option
   */
  function isRight(option) {
    return hashAnswer(`${root.dataset.key}:${option.button.textContent}`) === root.dataset.hash;
  }

  /**
   * Show whether an option is right, and its explanation. It begins with the verdict, which is
   * written there once and stays even when the reader's progress is forgotten.
   *
   * @param {Option} option
   * @returns {string} what is said of it
   */
  function judge(option) {
    /** @type {HTMLElement | null} */
    let explanation = option.querySelector(".lm-told");
    if (!explanation) {
      explanation = make("div", { class: "lm-told" });
      option.append(explanation);
    }
    if (!explanation.querySelector("strong.lm-said")) {
      const verdict = isRight(option) ? "Right" : "Not this one";
      const end = explanation.textContent.trim() ? ": " : ". ";
      const paragraph = explanation.querySelector("p") ?? explanation.appendChild(make("p"));
      paragraph.prepend(make("strong", { class: "lm-said" }, verdict + end));
    }
    option.dataset.verdict = isRight(option) ? "right" : "wrong";
    options.forEach((o) => o.button.setAttribute("aria-pressed", String(o === option)));
    return explanation.textContent;
  }

  /**
   * Answer with an option: show whether it is right, and keep that it is.
   *
   * @param {Option} option
   */
  function answer(option) {
    status.textContent = judge(option);
    forClass?.answer(options.indexOf(option));
    if (isRight(option)) mark(task.id, "right");
  }

  options.forEach((option, index) => {
    const words = /** @type {Element} */ (option.firstElementChild);
    const letter = "abcdefgh"[index];
    words.id = `${task.id}-${letter}`;
    const id = `${words.id}-button`;
    option.button = button(letter, () => answer(option), {
      class: "lm-letter",
      id,
      "aria-labelledby": `${id} ${words.id}`,
      "aria-pressed": "false",
    });
    option.prepend(option.button);
  });
  root.dataset.ready = ""; // for tasks.css: letters take the place of the list's numbers
  const right = options.find(isRight);
  if (done[task.id] === "right" && right) judge(right);
  resets.push(() => {
    status.textContent = "";
    forClass?.reset();
    options.forEach((option) => {
      option.button.setAttribute("aria-pressed", "false");
      delete option.dataset.verdict;
    });
  });
}

/**
 * Give a task a box for *done*.
 *
 * @param {HTMLElement} task
 */
function box(task) {
  const name = task.querySelector(".lm-asked") || task.querySelector(".admonition-title");
  /** @type {HTMLInputElement} */
  const input = make("input", {
    type: "checkbox",
    "aria-label": `Done: ${name?.textContent}`,
    onchange: () => mark(task.id, input.checked && "done"),
  });
  task.append(make("label", { class: "lm-done" }, input, " Done"));
}

/**
 * Give a link to a page a ring that says how many of its tasks are done; none if it has no tasks.
 *
 * @param {HTMLAnchorElement} link
 */
function ring(link) {
  const page = new URL(link.href).pathname.slice(home.length).replace(/\.html$/, "");
  const labels = pages[decodeURIComponent(page)];
  if (!labels) return;
  const count = labels.filter((label) => done[label]).length;
  const text = `${count} of ${labels.length} tasks done`;
  /** @type {HTMLElement} */
  const drawn =
    link.querySelector(".lm-progress") ?? link.appendChild(make("span", { class: "lm-progress" }));
  drawn.title = text;
  drawn.dataset.full = String(count === labels.length);
  const share = (100 * count) / labels.length;
  const circle = '<circle cx="10" cy="10" r="7.5"';
  drawn.innerHTML = `<svg viewBox="0 0 20 20" aria-hidden="true">${circle}/>
      ${circle} pathLength="100" stroke-dasharray="${share} 100"/>
      <path d="M6.5 10.5l2.5 2.5l4.5 -5.5"/></svg><span class="visually-hidden">(${text})</span>`;
}

/* Show what is done: at the tasks of this page, at the links to pages, and in the sum. */
function show() {
  for (const task of tasks) {
    const input = /** @type {HTMLInputElement} */ (task.querySelector(".lm-done input"));
    input.checked = task.id in done;
  }
  /** @type {NodeListOf<HTMLAnchorElement>} */
  const links = document.querySelectorAll(".bd-sidebar-primary .bd-links a.internal");
  links.forEach(ring);
  const count = all.filter((label) => done[label]).length;
  sum.textContent = `${count} of ${all.length} tasks done. `;
  foot.hidden = !count && !lastLine() && !hasWeights; // then there is nothing to forget
}

/* Ask whether to forget all that the browser keeps for the book, and do so. */
function forget() {
  const question =
    "Forget which tasks of this book you have done, the line you typed, and the models that " +
    "your browser keeps?";
  if (!confirm(question)) return;
  done = {};
  attempt(() => localStorage.removeItem(key));
  forgetLine(); // last: all that shows what is stored reads it again
  resets.forEach((reset) => reset());
  forgetWeights();
  show();
}

/* Look whether the browser keeps models. */
async function lookForWeights() {
  hasWeights = await keepsWeights();
  show();
}

const nav = document.querySelector(".bd-sidebar-primary nav.bd-links");
const sum = make("p");
const foot = make("div", { class: "lm-sum" }, sum, button("Forget my progress", forget));
(nav?.parentElement ?? document.body).append(foot);
load();
/** @type {NodeListOf<HTMLElement>} */
const choosers = document.querySelectorAll(".lm-choose");
choosers.forEach(choices);
tasks.forEach(box);
show();
lookForWeights();
for (const event of [WEIGHTS_KEPT, WEIGHTS_FORGOTTEN]) addEventListener(event, lookForWeights);
for (const event of ["storage", "pageshow", LINE])
  addEventListener(event, () => {
    load();
    show();
  });
