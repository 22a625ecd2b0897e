/* What the views have in common: elements, keys, and how numbers are written. */

/**
 * Something that is called with an event. Of which kind the event is, its name says; no type
 * can read that from the name of an attribute, so the event is any.
 *
 * @typedef {(event: any) => unknown} Listener
 */

/**
 * Attributes of an element by name. What begins with "on" is a listener; null and false set
 * nothing.
 *
 * @typedef {Record<string, string | number | boolean | null | Listener>} Attributes
 */

/**
 * What an element holds: text is text, never HTML.
 *
 * @typedef {Node | string | number} Content
 */

/**
 * Make an element: make("button", { type: "button", onclick: f }, "Load", icon).
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {...Content} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, String(value));
  }
  element.append(...children.map(asNode));
  return element;
}

/**
 * Make a part of a drawing, without listeners.
 *
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number>} [attributes]
 * @param {...Content} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children.map(asNode));
  return element;
}

/**
 * What an element may hold as what can be appended to it: a number becomes text.
 *
 * @param {Content} content
 * @returns {Node | string}
 */
const asNode = (content) => (typeof content === "number" ? String(content) : content);

/**
 * Make a button.
 *
 * @param {Content} text what stands on it
 * @param {Listener | null} onclick called on each click
 * @param {Attributes} [attributes]
 * @returns {HTMLButtonElement}
 */
export const button = (text, onclick, attributes = {}) =>
  make("button", { type: "button", ...attributes, onclick }, text);

/**
 * Make a row of controls.
 *
 * @param {...Content} parts
 * @returns {HTMLElement}
 */
export const controls = (...parts) => make("p", { class: "play-controls" }, ...parts);

/**
 * Make a list to choose from; the value of an option is its position, from 0 on.
 *
 * @param {Content[]} names
 * @param {Listener | null} onchange
 * @param {Attributes} [attributes]
 * @returns {HTMLSelectElement}
 */
export const select = (names, onchange, attributes = {}) =>
  make(
    "select",
    { ...attributes, onchange },
    ...names.map((name, value) => make("option", { value }, name)),
  );

/**
 * Make a slider in its label, and beside it an element for its value in words.
 *
 * @param {string} name what the label says
 * @param {Attributes} attributes of the input: min, max, step, value, oninput
 * @returns {{ input: HTMLInputElement, value: HTMLElement, label: HTMLLabelElement }}
 */
export function slider(name, attributes) {
  const input = make("input", { type: "range", ...attributes });
  const value = make("span", { class: "play-value" });
  return {
    input,
    value,
    label: make("label", { class: "play-slider" }, name, " ", input, " ", value),
  };
}

/**
 * What is remembered of a view: a control of the browser, or a way to ask and to set it. What
 * cannot be set stays as it was.
 *
 * @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement | HTMLFieldSetElement
 *   | { get(): string | number | boolean, set(value: any): unknown }} Field
 */

/**
 * The buttons of a group of which one is chosen.
 *
 * @type {(group: HTMLFieldSetElement) => HTMLInputElement[]}
 */
const radiosOf = (group) => Array.from(group.querySelectorAll("input"));

/**
 * The value of a field: of radios the position of the one that is chosen, of a checkbox whether it
 * is checked, of a slider a number, of others a text.
 *
 * @param {Field} field
 * @returns {string | number | boolean}
 */
function askValue(field) {
  if ("get" in field) return field.get();
  if (field instanceof HTMLFieldSetElement) return radiosOf(field).findIndex((e) => e.checked);
  if (field.type === "checkbox") return /** @type {HTMLInputElement} */ (field).checked;
  return field.type === "range" ? Number(field.value) : field.value;
}

/**
 * Set a control as a reader does: what listens to it hears of it.
 *
 * @param {Field} field
 * @param {any} value as `askValue` returns it: of radios the position, of a checkbox whether it
 *   is checked. A position that no radio has changes nothing
 */
function setValue(field, value) {
  if ("set" in field) {
    field.set(value);
    return;
  }
  const group = field instanceof HTMLFieldSetElement;
  const control = group ? radiosOf(field)[value] : field;
  if (!control) return;
  if (group || control.type === "checkbox")
    /** @type {HTMLInputElement} */ (control).checked = group || value;
  else control.value = value;
  control.dispatchEvent(new Event("input"));
  // A text that came with a link is not the line that the reader typed last: see ownLine.
  if (control.type !== "textarea") control.dispatchEvent(new Event("change"));
}

/**
 * The state of a view as a small object, which a link carries: see link.js.
 *
 * @param {Record<string, Field>} fields by the names that the link has, in the order in which
 *   they are set
 * @param {() => unknown} [after] called once all are set
 * @returns {{
 *   say(): Record<string, string | number | boolean>, take(state: Record<string, any>): void
 * }}
 *   `say` gives the value of each field; `take` sets those that a state names and that differ
 */
export function stateOf(fields, after = () => {}) {
  const all = Object.entries(fields);
  return {
    say: () => Object.fromEntries(all.map(([name, field]) => [name, askValue(field)])),
    take(state) {
      for (const [name, field] of all)
        if (name in state && askValue(field) !== state[name]) setValue(field, state[name]);
      after();
    },
  };
}

/**
 * A field that holds several numbers: the state has them in a line.
 *
 * @param {() => Iterable<number>} get
 * @param {(numbers: number[]) => unknown} set is given finite numbers, perhaps none; a line with
 *   anything else changes nothing
 * @returns {Field}
 */
export const numbersField = (get, set) => ({
  get: () => Array.from(get()).join(" "),
  /* Read the numbers of a line. */
  set(/** @type {string} */ line) {
    const numbers = line.split(" ").filter(Boolean).map(Number);
    if (numbers.every(Number.isFinite)) set(numbers);
  },
});

/**
 * A field that holds a whole number from 0 on.
 *
 * @param {() => number} get
 * @param {(number: number) => unknown} set
 * @param {() => number} count the number must be below it
 * @returns {Field}
 */
export const countField = (get, set, count) => ({
  get,
  /* Take a number if it is one that the field can have. */
  set(/** @type {number} */ number) {
    if (Number.isInteger(number) && number >= 0 && number < count()) set(number);
  },
});

/** The states of "Had it learned nothing?", by the value of the switch. */
export const WORLDS = { asItIs: "0", random: "1", shuffled: "2" };

/**
 * Make the switch "Had it learned nothing?": the model as it is, with random weights, or as it
 * is with what it reads in another order.
 *
 * @param {Listener} onchange
 * @param {string | null} [shuffled] what is put in another order; null if nothing is
 * @returns {{ worlds: HTMLSelectElement, label: HTMLElement, remains: HTMLElement }} the switch;
 *   it in its label; a paragraph for the sentence that says what is left
 */
export function learnedSwitch(onchange, shuffled = "shuffled words") {
  const names = ["as it is", "random weights", ...(shuffled === null ? [] : [shuffled])];
  const worlds = select(names, onchange);
  const remains = make("p", { class: "play-remains", role: "status" });
  return { worlds, remains, label: make("label", {}, "Had it learned nothing? ", worlds) };
}

/**
 * How many members of a list are also in another, in words.
 *
 * @param {ArrayLike<unknown>} before
 * @param {ArrayLike<unknown>} now
 * @returns {string} "none is", "one is", "3 are": "left" is for the sentence to say
 */
export function leftOf(before, now) {
  const current = Array.from(now);
  const count = Array.from(before).filter((each) => current.includes(each)).length;
  return ["none is", "one is"][count] ?? `${count} are`;
}

/**
 * How a sentence on what is left begins.
 *
 * @param {string} world the state of the switch, random or shuffled
 * @param {string} shuffled what is put in another order
 * @returns {string}
 */
export const changedHow = (world, shuffled) =>
  world === WORLDS.random ? "With random weights" : `With ${shuffled} in another order`;

/**
 * Say how many there are of several.
 *
 * @param {number} count
 * @param {number} all
 * @param {string} noun in the singular
 * @returns {string} "none of the 12 heads", "one of the 12 heads", "3 of the 12 heads"
 */
export const someOf = (count, all, noun) =>
  `${["none", "one"][count] ?? count} of the ${plural(all, noun)}`;

/**
 * The position of the greatest number.
 *
 * @param {ArrayLike<number>} numbers
 * @returns {number} -1 if several are as great: which of them is greater, rounding has hidden
 */
export function greatest(numbers) {
  const all = Array.from(numbers);
  const most = Math.max(...all);
  const first = all.indexOf(most);
  return all.indexOf(most, first + 1) < 0 ? first : -1;
}

let groups = 0;

/**
 * Make a group of which one is chosen.
 *
 * @param {string} legend what the choice is about
 * @param {Content[]} names one for each possibility
 * @param {number} first the position of the one that is chosen to begin with
 * @param {(chosen: number) => void} choose called with the position of the new choice
 * @returns {HTMLFieldSetElement}
 */
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

/**
 * Make a place for a reader's own line; a button offers the one that was typed last elsewhere.
 *
 * @param {string} text what stands there to begin with
 * @param {Listener} oninput called when it changes
 * @param {Attributes & { maxlength?: number }} [attributes] of the area
 * @returns {{ area: HTMLTextAreaElement, note: HTMLElement, label: HTMLElement }} where it is
 *   typed; a paragraph for what is said of it; the area in its label, with the offer
 */
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
  const most = attributes.maxlength ?? Number.POSITIVE_INFINITY;
  const full = make("p", { class: "play-full", role: "status" });
  /* Offer the line that was typed last if it is another, and say if the area is full. */
  function look() {
    // The browser cuts what is pasted, and says nothing.
    full.textContent =
      area.value.length < most
        ? ""
        : `There is room for ${plural(most, "character")} here: what goes beyond is cut off.`;
    const line = lastLine().slice(0, attributes.maxlength);
    offer.hidden = !line || line === area.value;
    offer.textContent = `Take yours: “${line.length > 40 ? `${line.slice(0, 39)}…` : line}”`;
  }
  area.addEventListener("input", look);
  area.addEventListener("change", () => {
    if (lastLine(area.value.trim())) dispatchEvent(new Event(LINE));
  });
  for (const event of [LINE, "storage", "pageshow"]) addEventListener(event, look);
  look();
  const label = make("label", { class: "play-line" }, "Your line", area);
  return { area, note, label: make("div", {}, label, full, offer) };
}

/**
 * Make a paragraph that is read out and not seen.
 *
 * @param {() => string | null} tell what it is to say
 * @returns {{ live: HTMLElement, later: () => void }} the paragraph; it says what `tell`
 *   returns once `later` was called and was not called again for a while
 */
export function announcer(tell) {
  const live = make("p", { class: "play-hidden", "aria-live": "polite" });
  let waiting = 0; // the timer
  /* Say it in 800 milliseconds, unless this is called again before. */
  const later = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      live.textContent = tell();
    }, 800);
  };
  return { live, later };
}

/** @type {Record<string, [number, number] | undefined>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * Return where an arrow key goes, as [right, down]; undefined for another key.
 *
 * @param {KeyboardEvent} event
 * @returns {[number, number] | undefined}
 */
export function arrow(event) {
  return ARROWS[event.key];
}

/**
 * Make a row of a table.
 *
 * @param {Content} name the cell at its head
 * @param {...(Content | Content[])} cells
 * @returns {HTMLTableRowElement}
 */
export const row = (name, ...cells) =>
  make(
    "tr",
    {},
    make("th", { scope: "row" }, name),
    ...cells.map((cell) => make("td", {}, ...[cell].flat())),
  );

/**
 * Make the head of a table.
 *
 * @param {...Content} names of its columns; "" for one without a name
 * @returns {HTMLTableSectionElement}
 */
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

/**
 * Draw a share as a bar, with a mark where another share is.
 *
 * @param {number} share from 0 to 1
 * @param {number} other from 0 to 1
 * @returns {HTMLElement}
 */
export const bar = (share, other) =>
  make("span", { class: "play-bar", style: `--share: ${share}; --other: ${other}` }, make("i"));

/**
 * Write a number with so many digits after the point.
 *
 * @param {number} number
 * @param {number} [digits] after the point
 * @returns {string} with a minus sign, which a number that is written as 0 does not get
 */
export function fixed(number, digits = 2) {
  const written = number.toFixed(digits);
  return written.replace("-", Number(written) ? "−" : "");
}

/**
 * Write a share in per cent, with a space that does not break.
 *
 * @param {number} share 1 is 100 %
 * @param {number} [digits] after the point
 * @returns {string} "40 %"
 */
export const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)}\u00a0%`;

/**
 * Write a whole number with commas.
 *
 * @param {number} number
 * @returns {string} "12,000"
 */
export const count = (number) => number.toLocaleString("en");

/**
 * Write a number of things; the plural has an s.
 *
 * @param {number} number
 * @param {string} noun in the singular
 * @returns {string} "1 token", "2,000 tokens"
 */
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/**
 * Write a number of bytes in megabytes.
 *
 * @param {number} bytes
 * @param {number} [digits] after the point
 * @returns {string} "271 MB", "4.4 MB"
 */
export const megabytes = (bytes, digits = 0) => `${(bytes / 1e6).toFixed(digits)} MB`;

/**
 * Write a time, in seconds below 100 of them, else in minutes.
 *
 * @param {number} seconds
 * @returns {string} "40 s", "3 min"
 */
export const duration = (seconds) =>
  seconds < 100 ? `${Math.ceil(seconds)} s` : `${Math.round(seconds / 60)} min`;
