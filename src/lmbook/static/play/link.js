/* A link that brings a view back as it was left. It has the name of the view's figure and,
   behind that, what differs from the beginning of the view:

     play.html#fig-play-generator&text=Rough+winds&temperature=1

   All of it is in the fragment, which a browser sends nowhere. A view says its state as a
   small object and takes one (`stateOf` in dom.js); names and kinds of values are those of its
   beginning, and what a view does not take as it stands in the link is no state of it. A view
   that is mounted anew in its place, with a reader's own model, tells its new state to `follow`:
   the button copies that one. What no link carries, such a model or whole texts, is said by
   `lacks`; `leave` goes back to what a link can open. */
import { button, LINE, lastLine, make } from "./dom.js";

const LONGEST = 8000; // characters of "#" and fragment: mail and chat cut longer links

/** The page's address without a fragment. */
const pageAddress = () => location.href.replace(/#.*/s, "");

/** @typedef {Record<string, string | number | boolean>} State */

/** The state of a view that nothing can be changed in. */
const STATELESS = { say: () => ({}), take() {} };

/** @type {WeakMap<HTMLElement, NonNullable<View["state"]>>} the state of each view as it is now */
const states = new WeakMap();

/**
 * Let the link of a view carry another state from now on. What differs is still told from the
 * view's first beginning, because that is where a link opens it.
 *
 * @param {HTMLElement} root
 * @param {NonNullable<View["state"]>} state
 */
export function follow(root, state) {
  states.set(root, state);
}

/**
 * The name of a view's figure and the fields that a fragment has, or null if it is no link
 * to the state of a view.
 *
 * @param {string} fragment
 * @returns {{ name: string, fields: [string, string][] } | null}
 */
function readLink(fragment) {
  const [name, ...rest] = fragment.replace(/^#/, "").split("&");
  if (!rest.length) return null;
  return { name, fields: Array.from(new URLSearchParams(rest.join("&"))) };
}

/**
 * A value as its view has it; a RangeError if it can be none.
 *
 * @param {string} text
 * @param {State[string]} first what the view began with
 */
function parse(text, first) {
  if (typeof first === "string") return text;
  if (typeof first === "boolean" && /^(true|false)$/.test(text)) return text === "true";
  if (typeof first === "number" && text.trim() && Number.isFinite(Number(text)))
    return Number(text);
  throw new RangeError();
}

/**
 * A text, at most 30 characters of it.
 *
 * @type {(text: string) => string}
 */
const short = (text) => (text.length > 30 ? `${text.slice(0, 29)}…` : text);

/**
 * Give a view its button *Copy link*, and the state that the address has for it, now and whenever
 * the address changes.
 *
 * @param {HTMLElement} root the whole view
 * @param {string} name of its figure
 * @param {View["state"]} [state] what says and takes its state; without it, it has none
 */
export function attach(root, name, state = STATELESS) {
  follow(root, state);
  const beginning = state.say();
  /* What says and takes the view's state now. */
  const current = () => states.get(root) ?? state;
  const place = make("p", { class: "lmc-link" }, button("Copy link", copy));
  /** @type {HTMLElement | undefined} */
  let status; // made when there is something to tell

  /**
   * Tell something beside the button; without words, nothing stands there.
   *
   * @param {...(Node | string)} words
   */
  function tell(...words) {
    status ??= place.appendChild(make("span", { role: "status" }));
    status.replaceChildren();
    setTimeout(() => status?.replaceChildren(...words)); // into what is there: so it is read out
  }

  /* The address of the view as it stands now. */
  function link() {
    const now = Object.entries(current().say()).filter(
      ([field, value]) => value !== beginning[field],
    );
    const fields = new URLSearchParams(now.map(([field, value]) => [field, String(value)]));
    return `${pageAddress()}#${name}${now.length ? `&${fields}` : ""}`;
  }

  /* Copy the link, and say so; show it where the browser does not allow that. */
  async function copy() {
    const address = link();
    if (address.length > pageAddress().length + LONGEST)
      return tell("The text is too long for a link: take a part of it.");
    const where = address.startsWith("file:") ? ", on this computer" : "";
    const lacking = current().lacks?.();
    const what = lacking ? "this view" : "this view as it stands now, with the text in it";
    try {
      await navigator.clipboard.writeText(address);
      tell(`Copied. It opens ${what}${where}.${lacking ? ` ${lacking}` : ""}`);
    } catch {
      const field = make("input", { type: "text", readonly: "", "aria-label": "The link" });
      field.value = address;
      const after = lacking ? ` ${lacking}` : "";
      tell("The browser does not let the page copy it; here it is: ", field, after);
      setTimeout(() => field.select());
    }
  }

  /* Bring the view into the state that the address has for it, if it has one. A link that says what
     the view cannot show leaves it as it is at first. */
  function take() {
    const asked = readLink(location.hash);
    if (asked?.name !== name) return;
    current().leave?.();
    let wrong = "";
    /** @type {State} */
    const wanted = { ...beginning };
    for (const [field, text] of asked.fields)
      try {
        wanted[field] = parse(text, beginning[field]);
      } catch {
        wrong ||= `“${short(text)}” for “${short(field)}”`;
      }
    if (!wrong)
      wrong = put(
        wanted,
        asked.fields.map(([field]) => field),
      );
    if (wrong) {
      put(beginning, []);
      tell(`The link has ${wrong}, which this view does not know. It stands as at first.`);
    } else if (status) tell();
  }

  /**
   * Bring the view into a state.
   *
   * @param {State} wanted
   * @param {string[]} fields those that must be as they are wanted
   * @returns {string} the first of these that was not taken, in words; "" if all were
   */
  function put(wanted, fields) {
    current().take(wanted);
    const now = current().say();
    const field = fields.find((each) => now[each] !== wanted[each]);
    return field === undefined ? "" : `“${short(String(wanted[field]))}” for “${field}”`;
  }

  root.append(place);
  take();
  addEventListener("hashchange", take);
}

/* *Forget* forgets the text in the address, too. */
addEventListener(LINE, () => {
  if (lastLine() || !readLink(location.hash)) return;
  history.replaceState(history.state, "", pageAddress());
});
