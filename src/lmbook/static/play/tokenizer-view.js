/* The view *tokenizer*: a line in characters, our BPE, GPT-2's BPE and BERT's WordPiece.
   `lmcourse.views.tokenizer` gives what it begins with. The vocabularies of GPT-2 and BERT
   are loaded when the line is first changed. */
import {
  announcer,
  arrow,
  button,
  controls,
  count,
  make,
  ownLine,
  plural,
  slider,
  stateOf,
} from "./dom.js";
import { decode, readStore, readText } from "./store.js";
import { letters, wellFormed } from "./text.js";
import { ByteBPE, Characters, shown, WordPiece } from "./tokenizers.js";

/** @import { Token } from "./tokenizers.js" */

/** @typedef {"characters" | "ours" | "gpt2" | "bert"} Key */

/**
 * @typedef {object} Data
 * @property {string} text the line to begin with
 * @property {Record<string, string>} others the same sentence in other languages
 * @property {Record<Key, [id: number | null, piece: string][]>} rows tokens of the line
 * @property {string} alphabet of the characters
 * @property {string} merges ours, in base64
 * @property {string} [untrained] merges learned from shuffled letters, in base64
 */

/** @type {Record<Key, string>} */
const NAMES = {
  characters: "characters",
  ours: "our BPE",
  gpt2: "GPT-2's BPE",
  bert: "BERT's WordPiece",
};
const COLOURS = 5;
const HINT = "Point at a piece, or go there by keyboard.";
const LONGEST = 500; // characters; of a longer text the beginning is cut
const RIGHT_TO_LEFT = /^\P{L}*[\p{Script=Hebrew}\p{Script=Arabic}]/u;

/** @type {Key[]} */
const KEYS = ["characters", "ours", "gpt2", "bert"];

/**
 * How many characters a text has.
 *
 * @type {(text: string) => number}
 */
const size = (text) => Array.from(text).length;

/**
 * Mount the view *tokenizer*: a line as four tokenizers cut it, a row of tokens for each; a slider
 * replays the merges of our BPE.
 *
 * @param {HTMLElement} element empty
 * @param {Data} data
 * @param {ViewContext} context
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data, context) {
  const learned = new ByteBPE(new Uint16Array(decode(data.merges).buffer));
  let ours = learned; // or what was learned from shuffled letters
  /** @type {ByteBPE | null} */
  let shuffled = null;
  /** @type {{ [key in Key]?: { encode(text: string): Token[] } }} */
  const tokenizers = { characters: new Characters(data.alphabet), ours };
  let line = data.text; // what is cut
  /** Why a row has no pieces, for those whose vocabulary has to come. */
  const missing = { gpt2: "", bert: "" };
  /* The merges that join something in this line, by their ranks, in the order of their learning.
     The line is cut by the first n of them as it was before the next one was learned. */
  /** @type {number[]} */
  let usedRanks = [];

  /* --- what stands there ----------------------------------------------------------- */

  const { area, note, label } = ownLine(line, typed);
  const language = make("select", { onchange: chooseLanguage }, make("option", { value: "" }, "…"));
  for (const name of Object.keys(data.others)) language.append(make("option", {}, name));
  const turn = button("turn it round", turnRound);
  /** @type {HTMLInputElement} */
  const ids = make("input", {
    type: "checkbox",
    onchange: () => list.classList.toggle("lmc-ids", ids.checked),
  });
  const merges = slider("Replay its merges", { min: 0, step: 1, oninput: replay });
  const detail = make("p", { class: "lmc-detail play-muted" }, HINT);
  const { live, later } = announcer(tell);
  const list = make("div", {
    onfocusin: describe,
    onmouseover: describe,
    onclick: describe,
    onkeydown: moveFocus,
  });
  /** What is said of each piece that is shown. @type {WeakMap<EventTarget, string>} */
  const descriptions = new WeakMap();
  const rows = /** @type {Record<Key, { total: HTMLElement, strip: HTMLElement }>} */ ({});
  for (const key of KEYS) {
    const name = NAMES[key];
    const total = make("span");
    const strip = make("div", { class: "lmc-pieces", role: "group", "aria-label": name });
    const title = make("p", { class: "lmc-name" }, make("b", {}, name), ": ", total);
    rows[key] = { total, strip };
    list.append(make("div", { class: "lmc-row" }, title, strip));
  }
  rows.ours.strip.after(merges.label);
  const switches = controls(make("label", {}, ids, " show IDs"), turn);
  if (language.length > 1) switches.prepend(make("label", {}, "The same sentence in ", language));
  const worlds = make(
    "select",
    { onchange: chooseWorld },
    new Option("poems and sonnets", "trained"),
    new Option("their letters, shuffled", "shuffled"),
  );
  const question = "Had it learned nothing? Our BPE learned from ";
  const world = controls(make("label", {}, question, worlds));
  world.hidden = !data.untrained;
  const left = make("p", { class: "play-muted", role: "status" }); // of what was learned
  element.append(label, note, switches, world, left, list, detail, live);

  /* --- what it answers to ---------------------------------------------------------- */

  /* Cut the line that is typed, and load the vocabularies that are missing. */
  async function typed() {
    if (area.value !== data.others[language.value]) language.value = "";
    line = wellFormed(Array.from(area.value).slice(0, LONGEST).join(""));
    const cut = line.length < area.value.length;
    note.textContent = cut ? `Only the first ${plural(LONGEST, "character")} are cut.` : "";
    missing.gpt2 = "loading its vocabulary …";
    missing.bert = "loading its vocabulary …";
    detail.textContent = HINT; // the piece that was told of may be gone
    draw();
    if (tokenizers.gpt2 && tokenizers.bert) return;
    await Promise.all([
      open("gpt2", async () => {
        const pairs = await readStore("gpt2-merges", context);
        return new ByteBPE(new Uint16Array(pairs.buffer));
      }),
      open("bert", async () => new WordPiece(JSON.parse(await readText("bert-pieces", context)))),
    ]);
    draw();
  }

  /**
   * Open one tokenizer, unless it is open; if its vocabulary does not come, its row will say so.
   *
   * @param {keyof typeof missing} key which
   * @param {() => Promise<ByteBPE | WordPiece>} load makes it
   */
  async function open(key, load) {
    try {
      tokenizers[key] ??= await load();
    } catch (error) {
      missing[key] = error.message;
    }
  }

  /* Turn the line round; a letter and its accents stay together. */
  function turnRound() {
    area.value = letters(area.value).reverse().join("");
    typed();
  }

  /* Take the sentence in the language that is chosen. */
  function chooseLanguage() {
    area.value = data.others[language.value] ?? area.value;
    typed();
  }

  /* Take our BPE as it learned from poems, or from their letters shuffled. */
  function chooseWorld() {
    if (worlds.value === "shuffled" && data.untrained) {
      shuffled ??= new ByteBPE(new Uint16Array(decode(data.untrained).buffer));
      ours = shuffled;
    } else ours = learned;
    tokenizers.ours = ours;
    drawOurs();
    later();
  }

  /* Show the line as our BPE cuts it after the first n of the merges that join something in it; n
     is the slider's value. The rank of the next such merge, `usedRanks[n]`, is where `encode` stops;
     behind the last it is undefined, and all merges are used. */
  function replay() {
    describeMerge();
    fill("ours", ours.encode(line, usedRanks[Number(merges.input.value)]));
  }

  /* Say beside the slider what the last of these merges joins. */
  function describeMerge() {
    const done = Number(merges.input.value);
    /**
     * A symbol as it is shown.
     *
     * @param {number} id
     */
    const name = (id) => shown(ours.symbols[id], true);
    let text = "no merge: each byte by itself";
    if (done) {
      const rank = usedRanks[done - 1];
      const joined = `${ours.pair(rank).map(name).join(" + ")} → ${name(ours.mergedIds[rank])}`;
      const learned = `number ${count(rank + 1)} of ${count(ours.merges)} that were learned`;
      text = `${done} of ${usedRanks.length}: ${joined} (${learned})`;
    }
    merges.value.textContent = text;
    merges.input.setAttribute("aria-valuetext", text);
  }

  /* --- drawing --------------------------------------------------------------------- */

  /* Show the line as our BPE cuts it by all its merges, and, if it learned from shuffled letters,
     into how many tokens it would be cut otherwise. */
  function drawOurs() {
    /** @type {Set<number>} */
    const ranks = new Set(); // of the merges that join something: `encode` adds them
    const tokens = ours.encode(line, ours.merges, ranks);
    usedRanks = Array.from(ranks).sort((a, b) => a - b);
    merges.input.max = String(usedRanks.length); // first: no value can be above it
    merges.input.value = merges.input.max;
    describeMerge();
    fill("ours", tokens);
    left.textContent = "";
    if (ours === learned) return;
    const usual = plural(learned.encode(line).length, "token");
    left.textContent =
      "Learned from shuffled letters, our BPE cuts this text into " +
      `${plural(tokens.length, "token")}; learned from the poems and sonnets, into ${usual}.`;
  }

  /* Show the line as each tokenizer cuts it, or why it does not. */
  function draw() {
    drawOurs();
    for (const key of KEYS) {
      if (key === "ours") continue; // drawn
      const tokenizer = tokenizers[key];
      if (tokenizer) fill(key, tokenizer.encode(line));
      else if (key !== "characters") {
        rows[key].total.textContent = missing[key];
        rows[key].strip.replaceChildren();
      }
    }
    later();
  }

  /**
   * Show the tokens of a row, how many they are and how many of them are unknown; if the line is in
   * a chosen language, also how many times as many as those of the English sentence.
   *
   * @param {Key} key of the row
   * @param {Token[]} tokens
   */
  function fill(key, tokens) {
    let unknown = 0;
    const boxes = tokens.map(({ id, piece }, index) => {
      const label = shown(piece, key === "ours" || key === "gpt2");
      const number = id === null ? "not in the alphabet" : `ID ${id}`;
      const known = id !== null && piece !== "[UNK]";
      if (!known) unknown += 1;
      const box = button(label, null, {
        tabindex: index ? -1 : 0,
        "data-id": id ?? "–",
        "aria-label": `${label}, ${number}`,
        class: `lmc-piece lmc-${Number(id) % COLOURS}${known ? "" : " lmc-unknown"}`,
      });
      descriptions.set(box, `${NAMES[key]}: “${label}”, ${number}`);
      return box;
    });
    const { total, strip } = rows[key];
    strip.replaceChildren(...boxes);
    strip.dir = RIGHT_TO_LEFT.test(line) ? "rtl" : "ltr";
    let text = plural(boxes.length, "token");
    if (boxes.length) text += `, ${(size(line) / boxes.length).toFixed(1)} characters each`;
    if (unknown) text += `, ${count(unknown)} unknown`;
    const tokenizer = tokenizers[key];
    if (language.value && tokenizer) {
      const english = tokenizer.encode(data.others.English).length;
      text += `; ${(boxes.length / english).toFixed(1)} times the English sentence`;
    }
    total.textContent = text;
  }

  /* What is read out: how many tokens each row has. */
  function tell() {
    return KEYS.map((key) => `${NAMES[key]}: ${rows[key].total.textContent}`).join(". ");
  }

  /**
   * Say below the rows what the piece is that is pointed at, if it is one.
   *
   * @param {Event} event
   */
  function describe({ target }) {
    const description = target && descriptions.get(target);
    if (description) detail.textContent = description;
  }

  /**
   * Arrow keys go from piece to piece, the way the text is read.
   *
   * @param {KeyboardEvent} event
   */
  function moveFocus(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const [right] = arrow(event) ?? [0];
    if (!right || !descriptions.has(target)) return;
    const isAhead = right > 0 === (target.parentElement?.dir !== "rtl");
    const sibling = isAhead ? target.nextSibling : target.previousSibling;
    const next = /** @type {HTMLElement | null} */ (sibling);
    if (!next) return;
    target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  for (const key of KEYS)
    fill(
      key,
      data.rows[key].map(([id, piece]) => ({ id, piece })),
    );
  drawOurs();
  const state = { world: worlds, language, text: area, ids, merges: merges.input };
  return { state: stateOf(state) };
}
