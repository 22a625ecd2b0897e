/* Tasks: choices that answer, what is done, how far the reader is. It is kept in this browser
   only, by the book's title and the task's label; where nothing can be kept, as long as the
   page is open. `lmcourse.tasks` (tasks-table.js) says which tasks each page has. A press on
   "Forget my progress" forgets the line that the reader typed in views (`dom.js`), too. */
import { button, forgetLine, LINE, lastLine, make } from "./dom.js";

const { book, pages } = window.lmcourse.tasks;
const key = `lmcourse:${book}`;
const home = new URL("../../", document.currentScript.src).pathname;
const tasks = Array.from(document.querySelectorAll("div.exercise[id]"));
const all = Object.values(pages).flat();
const resets = [];
let done = {};
let kept = true;

/* Do something with what the browser keeps, if it keeps anything. */
function attempt(action) {
  try {
    if (kept) action();
  } catch {
    kept = false;
  }
}

function load() {
  attempt(() => (done = Object(JSON.parse(localStorage.getItem(key)))));
}

function mark(label, how) {
  load();
  if (how) done[label] = how;
  else delete done[label];
  attempt(() => localStorage.setItem(key, JSON.stringify(done)));
  show();
}

/* FNV-1a of an answer and the task's key: which option is right is not to be read. */
function hashAnswer(text) {
  let hash = 2166136261;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 16777619) >>> 0;
  return hash.toString(16).padStart(8, "0");
}

function choices(root) {
  const task = root.closest("div.exercise");
  const options = Array.from(root.querySelector("ol").children);
  const status = make("p", { class: "visually-hidden", role: "status" });
  root.append(status);

  function isRight(option) {
    return hashAnswer(`${root.dataset.key}:${option.button.textContent}`) === root.dataset.hash;
  }

  /* What is said of an option begins with the verdict. */
  function judge(option) {
    let told = option.querySelector(".lm-told");
    if (!told) {
      told = make("div", { class: "lm-told" });
      option.append(told);
    }
    if (!told.querySelector("strong.lm-said")) {
      const verdict = isRight(option) ? "Right" : "Not this one";
      const end = told.textContent.trim() ? ": " : ". ";
      if (!told.querySelector("p")) told.append(make("p"));
      told.querySelector("p").prepend(make("strong", { class: "lm-said" }, verdict + end));
    }
    option.dataset.verdict = isRight(option) ? "right" : "wrong";
    options.forEach((o) => o.button.setAttribute("aria-pressed", o === option));
    return told.textContent;
  }

  function answer(option) {
    status.textContent = judge(option);
    if (isRight(option)) mark(task.id, "right");
  }

  options.forEach((option, index) => {
    const words = option.firstElementChild;
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
  root.dataset.ready = "";
  if (done[task.id] === "right") judge(options.find(isRight));
  resets.push(() => {
    status.textContent = "";
    options.forEach((option) => {
      option.button.setAttribute("aria-pressed", false);
      delete option.dataset.verdict;
    });
  });
}

function box(task) {
  const name = task.querySelector(".lm-asked") || task.querySelector(".admonition-title");
  const input = make("input", {
    type: "checkbox",
    "aria-label": `Done: ${name.textContent}`,
    onchange: () => mark(task.id, input.checked && "done"),
  });
  task.append(make("label", { class: "lm-done" }, input, " Done"));
}

function ring(link) {
  const page = new URL(link.href).pathname.slice(home.length).replace(/\.html$/, "");
  const labels = pages[decodeURIComponent(page)];
  if (!labels) return;
  const count = labels.filter((label) => done[label]).length;
  const text = `${count} of ${labels.length} tasks done`;
  if (!link.querySelector(".lm-progress")) link.append(make("span", { class: "lm-progress" }));
  const drawn = link.querySelector(".lm-progress");
  drawn.title = text;
  drawn.dataset.full = count === labels.length;
  const share = (100 * count) / labels.length;
  const circle = '<circle cx="10" cy="10" r="7.5"';
  drawn.innerHTML = `<svg viewBox="0 0 20 20" aria-hidden="true">${circle}/>
      ${circle} pathLength="100" stroke-dasharray="${share} 100"/>
      <path d="M6.5 10.5l2.5 2.5l4.5 -5.5"/></svg><span class="visually-hidden">(${text})</span>`;
}

function show() {
  for (const task of tasks) task.querySelector(".lm-done input").checked = task.id in done;
  document.querySelectorAll(".bd-sidebar-primary .bd-links a.internal").forEach(ring);
  const count = all.filter((label) => done[label]).length;
  sum.textContent = `${count} of ${all.length} tasks done. `;
  foot.hidden = !count && !lastLine();
}

function forget() {
  const question = "Forget which tasks of this book you have done, and the line you typed?";
  if (!confirm(question)) return;
  done = {};
  attempt(() => localStorage.removeItem(key));
  forgetLine(); // last: all that shows what is stored reads it again
  resets.forEach((reset) => reset());
  show();
}

const nav = document.querySelector(".bd-sidebar-primary nav.bd-links");
const sum = make("p");
const foot = make("div", { class: "lm-sum" }, sum, button("Forget my progress", forget));
(nav ? nav.parentElement : document.body).append(foot);
load();
document.querySelectorAll(".lm-choose").forEach(choices);
tasks.forEach(box);
show();
for (const event of ["storage", "pageshow", LINE])
  addEventListener(event, () => {
    load();
    show();
  });
