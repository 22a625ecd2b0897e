/* Tasks: choices that answer, what is done, how far the reader is. It is kept in this browser
   only, by the book's title and the task's label; where nothing can be kept, as long as the
   page is open. `lmcourse.tasks` (tasks-table.js) says which tasks each page has. */
(function () {
  "use strict";
  const { book, pages } = window.lmcourse.tasks;
  const key = "lmcourse:" + book;
  const home = new URL("../../", document.currentScript.src).pathname;
  const tasks = Array.from(document.querySelectorAll("div.exercise[id]"));
  const all = Object.values(pages).flat();
  const resets = [];
  let done = {};
  let kept = true;

  function load() {
    try {
      if (kept) done = Object(JSON.parse(localStorage.getItem(key)));
    } catch {
      kept = false;
    }
  }

  function mark(label, how) {
    load();
    if (how) done[label] = how;
    else delete done[label];
    try {
      localStorage.setItem(key, JSON.stringify(done));
    } catch {
      kept = false;
    }
    show();
  }

  function add(parent, name, properties) {
    const made = Object.assign(document.createElement(name), properties);
    parent.append(made);
    return made;
  }

  function hashAnswer(text) {
    let hash = 2166136261;
    for (const byte of new TextEncoder().encode(text)) {
      hash = Math.imul(hash ^ byte, 16777619) >>> 0;
    }
    return hash.toString(16).padStart(8, "0");
  }

  function choices(root) {
    const task = root.closest("div.exercise");
    const options = Array.from(root.querySelector("ol").children);
    const status = add(root, "p", { className: "visually-hidden", role: "status" });

    function right(option) {
      return hashAnswer(root.dataset.key + ":" + option.button.textContent) === root.dataset.hash;
    }

    function answer(option, quietly) {
      const ok = right(option);
      const told = option.querySelector(".lm-told") || add(option, "div", { className: "lm-told" });
      if (!told.querySelector("strong.lm-said")) {
        const end = told.textContent.trim() ? ": " : ". ";
        const place = told.querySelector("p") || add(told, "p");
        const said = add(place, "strong", { className: "lm-said" });
        said.textContent = (ok ? "Right" : "Not this one") + end;
        place.prepend(said);
      }
      option.dataset.verdict = ok ? "right" : "wrong";
      options.forEach((o) => o.button.setAttribute("aria-pressed", o === option));
      if (quietly) return;
      status.textContent = told.textContent;
      if (ok) mark(task.id, "right");
    }

    options.forEach(function (option, index) {
      const words = option.firstElementChild;
      const button = add(option, "button", { type: "button", className: "lm-letter" });
      option.button = button;
      button.textContent = "abcdefgh"[index];
      words.id = task.id + "-" + button.textContent;
      button.id = words.id + "-button";
      button.setAttribute("aria-labelledby", button.id + " " + words.id);
      button.setAttribute("aria-pressed", false);
      button.addEventListener("click", () => answer(option));
      option.prepend(button);
    });
    root.dataset.ready = "";
    if (done[task.id] === "right") answer(options.find(right), true);
    resets.push(function () {
      status.textContent = "";
      options.forEach(function (option) {
        option.button.setAttribute("aria-pressed", false);
        delete option.dataset.verdict;
      });
    });
  }

  function box(task) {
    const name = task.querySelector(".lm-asked") || task.querySelector(".admonition-title");
    const label = add(task, "label", { className: "lm-done" });
    const input = add(label, "input", { type: "checkbox" });
    label.append(" Done");
    input.setAttribute("aria-label", "Done: " + name.textContent);
    input.addEventListener("change", () => mark(task.id, input.checked && "done"));
  }

  function ring(link) {
    const page = new URL(link.href).pathname.slice(home.length).replace(/\.html$/, "");
    const labels = pages[decodeURIComponent(page)];
    if (!labels) return;
    const count = labels.filter((label) => done[label]).length;
    const said = count + " of " + labels.length + " tasks done";
    const drawn =
      link.querySelector(".lm-progress") || add(link, "span", { className: "lm-progress" });
    drawn.title = said;
    drawn.dataset.full = count === labels.length;
    drawn.innerHTML =
      '<svg viewBox="0 0 20 20" aria-hidden="true"><circle cx="10" cy="10" r="7.5"/>' +
      '<circle cx="10" cy="10" r="7.5" pathLength="100" stroke-dasharray="' +
      (100 * count) / labels.length +
      ' 100"/><path d="M6.5 10.5l2.5 2.5l4.5 -5.5"/></svg>' +
      '<span class="visually-hidden">(' + said + ")</span>";
  }

  function show() {
    for (const task of tasks) {
      task.querySelector(".lm-done input").checked = task.id in done;
      task.classList.toggle("lm-is-done", task.id in done);
    }
    document.querySelectorAll(".bd-sidebar-primary .bd-links a.internal").forEach(ring);
    const count = all.filter((label) => done[label]).length;
    sum.firstChild.textContent = count + " of " + all.length + " tasks done. ";
    foot.hidden = !count;
  }

  function forget() {
    if (!confirm("Forget which tasks of this book you have done?")) return;
    done = {};
    try {
      localStorage.removeItem(key);
    } catch {}
    resets.forEach((reset) => reset());
    show();
  }

  const nav = document.querySelector(".bd-sidebar-primary nav.bd-links");
  const foot = add(nav ? nav.parentElement : document.body, "div", { className: "lm-sum" });
  const sum = add(foot, "p");
  sum.append("");
  add(sum, "button", { type: "button", textContent: "Forget my progress", onclick: forget });
  load();
  document.querySelectorAll(".lm-choose").forEach(choices);
  tasks.forEach(box);
  show();
  for (const event of ["storage", "pageshow"]) {
    addEventListener(event, function () {
      load();
      show();
    });
  }
})();
