/* Names and keys for what libraries draw. */
import { arrow } from "./dom.js";

/* The same characters, never read as a tag or an entity. */
export const inert = (token) => token.replace(/[<&]/g, "$&\u2060");

/* Tell what an element is, and let it be reached by key. */
export function name(element, role, label, states = {}) {
  for (const [state, value] of Object.entries({
    role,
    tabindex: 0,
    "aria-label": label,
    ...states,
  }))
    element.setAttribute(state, value);
}

/* Call a function now and after every change below an element, until the next frame. */
export function keep(element, change) {
  let waiting = false;
  const observer = new MutationObserver(() => {
    if (!waiting) requestAnimationFrame(run);
    waiting = true;
  });
  function run() {
    waiting = false;
    observer.disconnect();
    change();
    observer.observe(element, { childList: true, subtree: true });
  }
  run();
}

/* Listen to the keys of an element once, however often it is named anew. */
function onKey(element, name, listen) {
  if (element[name]) return;
  element[name] = true;
  element.addEventListener("keydown", listen);
}

/* One tab stop for a set of elements; arrow keys go from one to the next. */
export function roving(elements, columns) {
  const list = Array.from(elements);
  const stop = (chosen) => list.forEach((e) => e.setAttribute("tabindex", e === chosen ? 0 : -1));
  stop(list.find((e) => e.getAttribute("tabindex") === "0") || list[0]);
  list.forEach((element, index) =>
    onKey(element, "lmcourseRoving", (event) => {
      const step = arrow(event);
      const next = step && list[index + step[0] + columns * step[1]];
      if (!next) return;
      event.preventDefault();
      stop(next);
      next.focus();
    }),
  );
}

/* Enter and the space bar do what a click does. */
export function pressable(element, press) {
  onKey(element, "lmcoursePressable", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    press(event);
  });
}
