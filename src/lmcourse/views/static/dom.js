/* What the views have in common: elements, keys, and how numbers are written. */

/* Elements in a line: make("button", { type: "button", onclick: f }, "Load", icon). What
   begins with "on" is a listener; null and false set nothing. Text is text, never HTML. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/* The same for a part of a drawing, without listeners. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const button = (text, onclick, attributes = {}) =>
  make("button", { type: "button", ...attributes, onclick }, text);

export const select = (names, onchange, attributes = {}) =>
  make(
    "select",
    { ...attributes, onchange },
    ...names.map((name, value) => make("option", { value }, name)),
  );

/* A slider in its label, and beside it an element for its value in words. */
export function slider(name, attributes) {
  const input = make("input", { type: "range", ...attributes });
  const value = make("span", { class: "play-value" });
  return {
    input,
    value,
    label: make("label", { class: "play-slider" }, name, " ", input, " ", value),
  };
}

let groups = 0;

/* One of several names to choose, the one at place `first` to begin with. */
export function radios(legend, names, first, choose) {
  const name = `play-radios-${++groups}`;
  return make(
    "fieldset",
    {},
    make("legend", {}, legend),
    ...names.map((text, i) =>
      make(
        "label",
        {},
        make("input", {
          type: "radio",
          name,
          checked: i === first && "",
          onchange: () => choose(i),
        }),
        ` ${text}`,
      ),
    ),
  );
}

/* The line that the reader typed last, in any view of the book. The browser keeps it under
   this name, which is also the name of the event that a change sends to the window. */
export const LINE = "lmcourse:line";

/**
 * Return the line that the reader typed last; "" if there is none.
 *
 * @param {string} [typed] a new one, which is kept first
 * @returns {string}
 */
export function lastLine(typed) {
  try {
    if (typed) localStorage.setItem(LINE, typed);
    return localStorage.getItem(LINE) || "";
  } catch {
    return typed || ""; // nothing can be kept
  }
}

/** Forget the line that the reader typed last; every view hears of it. */
export function forgetLine() {
  try {
    localStorage.removeItem(LINE);
  } catch {
    // nothing was kept
  }
  window.dispatchEvent(new Event(LINE));
}

/* A reader's own line: where it is typed, and what is said of it; a button offers the one
   that was typed last elsewhere. */
export function ownLine(text, oninput, attributes = {}) {
  const area = make("textarea", {
    rows: 2,
    spellcheck: "false",
    dir: "auto",
    ...attributes,
    oninput,
  });
  area.value = text;
  const note = make("p", { class: "play-note", role: "status" });
  const offer = button(
    "",
    () => {
      area.value = lastLine().slice(0, attributes.maxlength);
      area.dispatchEvent(new Event("input"));
      area.focus();
    },
    { class: "play-offer" },
  );
  function look() {
    const line = lastLine().slice(0, attributes.maxlength);
    offer.hidden = !line || line === area.value;
    offer.textContent = `Take yours: “${line.length > 40 ? `${line.slice(0, 39)}…` : line}”`;
  }
  area.addEventListener("input", look);
  area.addEventListener(
    "change",
    () => lastLine(area.value.trim()) && dispatchEvent(new Event(LINE)),
  );
  for (const event of [LINE, "storage", "pageshow"]) addEventListener(event, look);
  look();
  const label = make("label", { class: "play-line" }, "Your line", area);
  return { area, note, label: make("div", {}, label, offer) };
}

/* A paragraph that is read out and not seen: it says what `tell` returns, once `later` was
   called and nothing has changed for a while. */
export function announcer(tell) {
  const live = make("p", { class: "play-hidden", "aria-live": "polite" });
  let waiting = 0;
  const later = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => (live.textContent = tell()), 800);
  };
  return { live, later };
}

/* Where an arrow key goes, as [right, down]; undefined for another key. */
export function arrow(event) {
  return { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
}

/* Rows of tables; a cell is a text, an element, or a list of them. */
export const row = (name, ...cells) =>
  make(
    "tr",
    {},
    make("th", { scope: "row" }, name),
    ...cells.map((cell) => make("td", {}, ...[cell].flat())),
  );

export const heading = (...names) =>
  make(
    "thead",
    {},
    make(
      "tr",
      {},
      ...names.map((name) => (name ? make("th", { scope: "col" }, name) : make("td"))),
    ),
  );

/* A share of a table's column as a bar, with a mark where another share is. */
export const bar = (share, other) =>
  make("span", { class: "play-bar", style: `--share: ${share}; --other: ${other}` }, make("i"));

/* Numbers and counts in words. */
export function fixed(number, digits = 2) {
  const written = number.toFixed(digits);
  return written.replace("-", Number(written) ? "−" : "");
}
export const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;
export const plural = (count, noun) =>
  `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
