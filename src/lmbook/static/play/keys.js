/* Names and keys for what libraries draw. */
import { arrow } from "./dom.js";

/**
 * Return the same characters, never read as a tag or an entity.
 *
 * @param {string} token
 * @returns {string}
 */
export const inert = (token) => token.replace(/[<&]/g, "$&\u2060");

/**
 * Tell a screen reader what an element is, and let it be reached by the tab key.
 *
 * @param {Element} element
 * @param {string} role
 * @param {string} label
 * @param {Record<string, string | number | boolean>} [states] other attributes
 */
export function name(element, role, label, states = {}) {
  for (const [state, value] of Object.entries({
    role,
    tabindex: 0,
    "aria-label": label,
    ...states,
  }))
    element.setAttribute(state, String(value));
}

/**
 * Call a function now, and again after elements below another one were added or removed: at the
 * next frame, once for all changes until then.
 *
 * @param {Element} element
 * @param {() => void} change what it adds or removes itself does not count
 */
export function nowAndAfterChanges(element, change) {
  let waiting = false;
  const observer = new MutationObserver(() => {
    if (!waiting) requestAnimationFrame(run);
    waiting = true;
  });
  /* Call the function, and listen to no changes meanwhile. */
  function run() {
    waiting = false;
    observer.disconnect();
    change();
    observer.observe(element, { childList: true, subtree: true });
  }
  run();
}

/** @typedef {HTMLElement | SVGElement} Focusable */

/* Elements that listen to keys already, for each kind of listener. */
const listening = { roving: new WeakSet(), pressable: new WeakSet() };

/**
 * Listen to the keys of an element, unless such a listener is there already.
 *
 * @param {Focusable} element
 * @param {keyof typeof listening} kind
 * @param {(event: KeyboardEvent) => void} listen
 */
function onKey(element, kind, listen) {
  if (listening[kind].has(element)) return;
  listening[kind].add(element);
  element.addEventListener("keydown", (event) => listen(/** @type {KeyboardEvent} */ (event)));
}

/**
 * Leave one tab stop to a set of elements; arrow keys go from one to the next.
 *
 * @param {Iterable<Focusable> | ArrayLike<Focusable>} elements row after row
 * @param {number} columns how many stand in a row
 */
export function roving(elements, columns) {
  const list = Array.from(elements);
  /**
   * Make an element the only tab stop.
   *
   * @param {Focusable} chosen
   */
  const stop = (chosen) =>
    list.forEach((e) => e.setAttribute("tabindex", e === chosen ? "0" : "-1"));
  stop(list.find((e) => e.getAttribute("tabindex") === "0") || list[0]);
  list.forEach((element, index) =>
    onKey(element, "roving", (event) => {
      const step = arrow(event);
      const next = step && list[index + step[0] + columns * step[1]];
      if (!next) return;
      event.preventDefault();
      stop(next);
      next.focus();
    }),
  );
}

/**
 * Let Enter and the space bar do what a click does.
 *
 * @param {Focusable} element
 * @param {(event: KeyboardEvent) => void} press
 */
export function pressable(element, press) {
  onKey(element, "pressable", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    press(event);
  });
}
