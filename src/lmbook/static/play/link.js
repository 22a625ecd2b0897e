/* A link that brings a view back as it was left. It has the name of the view's figure and,
   behind that, what differs from the beginning of the view:

     play.html#fig-play-generator&text=Rough+winds&temperature=1

   All of it is in the fragment, which a browser sends nowhere. A view says its state as a
   small object and takes one (`stateOf` in dom.js); names and kinds of values are those of its
   beginning, and what a view does not take as it stands in the link is no state of it. */
import { button, LINE, lastLine, make } from "./dom.js";

const LONGEST = 8000; // characters behind the address: longer ones are cut by mail and chat

/** @typedef {Record<string, string | number | boolean>} State */

/** The state of a view that nothing can be changed in. */
const NOTHING = { say: () => ({}), take() {} };

/**
 * The name of a view's figure and the fields that a fragment has, or null if it is no link
 * to the state of a view.
 *
 * @param {string} fragment
 * @returns {{ name: string, fields: [string, string][] } | null}
 */
export function readLink(fragment) {
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

/** @type {(text: string) => string} */
const short = (text) => (text.length > 30 ? `${text.slice(0, 29)}…` : text);

/**
 * Give a view its button *Copy link*, and the state that the address has for it.
 *
 * @param {HTMLElement} root
 * @param {string} name of its figure
 * @param {View["state"]} [state]
 */
export function attach(root, name, state = NOTHING) {
  const beginning = state.say();
  const place = make("p", { class: "lmc-link" }, button("Copy link", copy));
  /** @type {HTMLElement | undefined} */
  let told; // made when there is something to tell

  /** @param {...(Node | string)} words */
  function tell(...words) {
    told ??= place.appendChild(make("span", { role: "status" }));
    told.replaceChildren();
    setTimeout(() => told?.replaceChildren(...words)); // into what is there: so it is read out
  }

  function link() {
    const now = Object.entries(state.say()).filter(([field, value]) => value !== beginning[field]);
    const fields = new URLSearchParams(now.map(([field, value]) => [field, String(value)]));
    const address = location.href.replace(/#.*/s, "");
    return `${address}#${name}${now.length ? `&${fields}` : ""}`;
  }

  async function copy() {
    const address = link();
    if (address.length > LONGEST + location.href.length)
      return tell("The text is too long for a link: take a part of it.");
    const where = address.startsWith("file:") ? ", on this computer" : "";
    try {
      await navigator.clipboard.writeText(address);
      tell(`Copied. It opens this view as it stands now, with the text in it${where}.`);
    } catch {
      const field = make("input", { type: "text", readonly: "", "aria-label": "The link" });
      field.value = address;
      tell("The browser does not let the page copy it; here it is: ", field);
      setTimeout(() => field.select());
    }
  }

  /* A link that says what the view cannot show leaves it as it is at first. */
  function take() {
    const asked = readLink(location.hash);
    if (asked?.name !== name) return;
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
    } else if (told) tell();
  }

  /**
   * @param {State} wanted
   * @param {string[]} fields those that must be as they are wanted
   * @returns {string} what was not taken
   */
  function put(wanted, fields) {
    state.take(wanted);
    const now = state.say();
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
  history.replaceState(history.state, "", location.href.replace(/#.*/s, ""));
});
