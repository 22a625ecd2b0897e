/* The view *talker*: a model that answers, and what goes on inside while it does.
   `lmcourse.views.talker` gives a line of which the answer, the next tokens, the lens and one
   layer's attention are known; the model is loaded after a click. What a tab shows is
   computed when it is first to be seen. */
import {
  announcer,
  arrow,
  bar,
  button,
  controls,
  countField,
  heading,
  learnedSwitch,
  leftOf,
  make,
  megabytes,
  ownLine,
  percent,
  radios,
  row,
  select,
  slider,
  stateOf,
  WORLDS,
} from "./dom.js";
import { reordered } from "./random.js";
import { WEIGHTS_FORGOTTEN } from "./store.js";
import { openTalker } from "./talker-client.js";
import { talkerLoader } from "./talker-loader.js";
import {
  arrivedSentence,
  attentionSentence,
  headsSentence,
  leftSentence,
  lensSentence,
  mostBehindFirst,
  nextSentence,
  tooLongSentence,
} from "./talker-sentences.js";

const LONGEST = 2000; // characters of a line
const COUNT = 80; // tokens that it writes until it is told to go on
const SEED = 1; // of random weights, and of the order of shuffled words
const FEW = 5; // likeliest tokens of which it is told how many are left
const TABS = {
  next: "Next token",
  lens: "Layer by layer",
  attention: "Attention",
  heads: "Change heads",
};
const FORMS = ["a dialogue", "a text that goes on"];
let views = 0;

/** @import { Likely, Tokens } from "./talker-worker.js" */
/** @import { Turn } from "./dialogue.js" */

/**
 * What was computed inside, as far as it was asked for, of the token that is chosen.
 *
 * @typedef {object} Outputs
 * @property {Likely[]} [next] the likeliest next tokens, the likeliest first
 * @property {Likely[]} [whole] the same of the model with no head changed
 * @property {Likely[][]} [lens] by layer, the next tokens if the model ended after it
 * @property {ArrayLike<number>[]} [attention] of the chosen layer, from the chosen token: (heads,
 *   tokens up to the chosen one)
 */

/**
 * What Python gives: a line, and what is known of it.
 *
 * @typedef {object} Given
 * @property {string} text the line
 * @property {string} other another text, to take heads from
 * @property {boolean} dialogue whether the line is a question; else it is a text to go on with
 * @property {string} answer what the model wrote to it
 * @property {number} layers how many the model has
 * @property {number} heads of each layer
 * @property {number} room the most tokens that are read and written
 * @property {number} read how many of the tokens were read
 * @property {number} place of the token that is chosen at first
 * @property {number} layer that is chosen at first
 * @property {number} head that is chosen at first
 * @property {string} store the name of the store that has the model
 */

/** @typedef {Tokens & { read: number }} Seen pieces and IDs, and how many were read */

/** @typedef {"off" | "other"} How a head is changed: switched off, or taken from another text */

/** @typedef {{ place: [layer: number, head: number], how: How }} Changed a head that is changed */

/**
 * A head's name, "LAYER.HEAD".
 *
 * @type {(place: [layer: number, head: number]) => string}
 */
const key = ([layer, head]) => `${layer}.${head}`;

/**
 * A name for a text, as token IDs, that is read with some heads switched off.
 *
 * @type {(ids: number[], off: [layer: number, head: number][]) => string}
 */
const keyOf = (ids, off) => JSON.stringify([ids, off]);

/**
 * A line with its words in another order, the same each time; spaces and ends of lines stay where
 * they are. A line with fewer than two words to reorder is returned as it is.
 *
 * @param {string} line
 * @param {boolean} keepLast the last word stays where it is, unless a space follows it: what
 *   comes after it is asked
 */
function shuffledWords(line, keepLast) {
  const words = line.match(/\S+/g) ?? [];
  const least = keepLast ? 3 : 2;
  if (words.length < least) return line;
  const mixed = reordered(words, SEED, keepLast && /\S$/.test(line));
  return line.replace(/\S+/g, () => String(mixed.shift()));
}

/**
 * Changed heads in one line, as a link to the page holds it: "0.3:off 2.1:other" is head 3 of
 * layer 0 switched off, and head 1 of layer 2 taken from the other text.
 *
 * @param {Iterable<Changed>} changed
 */
const inLine = (changed) =>
  Array.from(changed, ({ place, how }) => `${key(place)}:${how}`).join(" ");

/**
 * The changed heads that a line names.
 *
 * @param {string} line as `inLine` makes it; what is no such name is left out
 * @returns {Changed[]} perhaps of more layers and heads than a model has
 */
const headsIn = (line) =>
  Array.from(line.matchAll(/(\d+)\.(\d+):(off|other)\b/g), ([, layer, head, how]) => ({
    place: [Number(layer), Number(head)],
    how: /** @type {How} */ (how),
  }));

/**
 * On an arrow key, go from one button to the one before or behind it, and press that.
 *
 * @param {any} event of a key, heard by the element around the buttons
 */
function goAcross(event) {
  const moved = arrow(event);
  if (!moved) return;
  event.preventDefault();
  const all = Array.from(event.currentTarget.querySelectorAll("button"));
  const next = all[all.indexOf(event.target) + moved[0] + moved[1]];
  next?.focus();
  next?.click();
}

/**
 * Make a turn of a dialogue.
 *
 * @param {string} role whose it is: see Turn
 * @param {string} name of who says it
 * @param {string} content "" if nothing is said yet
 */
const spoken = (role, name, content) =>
  make(
    "p",
    { class: `lmk-${role}` },
    make("b", {}, name),
    make("span", { dir: "auto" }, content || "…"),
  );

/**
 * Make a text that goes on.
 *
 * @param {string} line as the model read it
 * @param {string} more what was written behind it
 */
const continued = (line, more) => make("p", { class: "lmk-assistant" }, line, make("b", {}, more));

/**
 * Make a row for each of the next tokens: a bar with its probability.
 *
 * @param {Likely[]} next
 * @param {Likely[] | null} whole those of the model with no head changed, which are the marks at
 *   the bars; null if there are no marks
 */
function nextRows(next, whole) {
  const unchanged = new Map(whole?.map(({ id, share }) => [id, share]));
  /**
   * A bar without a mark.
   *
   * @param {number} share from 0 to 1
   */
  const plain = (share) => make("span", { class: "play-bar", style: `--share: ${share}` });
  return next.map(({ id, piece, share }) =>
    row(piece, whole ? bar(share, unchanged.get(id) ?? 0) : plain(share), percent(share, 1)),
  );
}

/**
 * Make the head and the rows of the table of the likeliest tokens after each layer.
 *
 * @param {Likely[][]} lens by layer
 */
const lensRows = (lens) => [
  heading("after", "likeliest", "second", "third"),
  ...lens.map((likeliest, i) =>
    row(`layer ${i}`, ...likeliest.map(({ piece, share }) => `${piece} ${percent(share)}`)),
  ),
];

/**
 * Mount the view *talker*: a conversation with a model, and for the chosen token what the model
 * computed: next tokens, layer by layer, attention, and what changed heads do.
 *
 * @param {HTMLElement} element empty
 * @param {Given & Tokens & Required<Omit<Outputs, "whole">>} data the line, and what the model
 *   computed of it
 * @param {ViewContext} context
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data, context) {
  const talker = openTalker(data.store, context);
  const lane = `talker ${++views}`; // how the lanes of this view's requests begin
  const { layers, heads, room } = data;
  let readsAsChat = data.dialogue; // as a turn; else it is plain text to go on with
  /** @type {Turn[]} */
  let turns = [{ role: "user", content: data.text }]; // the reader's and the model's
  let isHere = false; // whether the model is loaded
  /** @type {string} */
  let answered = WORLDS.asItIs; // the world that gave the last answer
  let seed = 0; // of the random numbers with which tokens are drawn
  let hasLinkQuestion = false; // whether a link has a question that was not asked yet
  /** @type {number | null} */
  let later = null; // the token that a link has chosen of what was not written yet
  let latest = 0; // number of the last answer or continuation that was asked for
  /** @type {Seen} */
  let seen = { ids: data.ids, pieces: data.pieces, read: data.read };
  /** @type {Outputs} */
  let outputs = { next: data.next, lens: data.lens, attention: data.attention };
  /** @type {keyof typeof TABS} */
  let tab = "next";
  let { place, layer, head } = data;
  /** @type {Map<string, Changed>} */
  const changed = new Map(); // by layer and head
  /** What the trained model would say first to the text in its own order: `key` is that text and
      the heads that are off (`keyOf`), `top` the IDs of the likeliest first tokens. */
  let usual = {
    key: keyOf(data.ids.slice(0, data.read), []),
    top: data.next.map(({ id }) => id),
  };

  /* --- what stands there --- */

  const LOAD = `Load the model: ${megabytes(talker.about.bytes)}`;
  const loading = talkerLoader(() => talker, load, stopLoading);
  const { loader, status: loadStatus } = loading;
  loader.textContent = LOAD;
  const forget = button("Forget the model", () => talker.forget().then(leave), { hidden: "" });
  const { area, note, label } = ownLine(data.text, typed, { maxlength: LONGEST, onkeydown: enter });
  // It goes when the area is left, and must not take a button from under the pointer.
  const offer = /** @type {Element} */ (label.lastElementChild);
  const log = make("div", { class: "lmk-log" });
  const ask = button("Ask", begin);
  const more = button("Go on", goOn);
  const stop = button("Stop", stopWriting, { disabled: "" });
  const anew = button("Begin anew", beginAnew);
  const again = button("Draw again", drawAgain);
  const sliders = {
    temperature: slider("temperature", {
      min: 0.1,
      max: 2,
      step: 0.1,
      value: 1,
      oninput: showSampling,
    }),
    top_p: slider("top-p", { min: 0.05, max: 1, step: 0.05, value: 0.9, oninput: showSampling }),
  };
  const samplingControls = controls(...Object.values(sliders).map((each) => each.label), again);
  let isDrawn = false;
  const forms = radios("Read it as", FORMS, readsAsChat ? 0 : 1, choose);
  const ways = radios("Next token:", ["always the likeliest", "drawn"], 0, (way) => {
    isDrawn = way === 1;
    showSampling();
  });
  const { worlds, remains, label: worldLabel } = learnedSwitch(answerAnew);
  const learnedNote = make("p", { class: "lmk-learned play-muted" });
  const tokens = make("p", {
    class: "lmk-tokens play-shades",
    role: "group",
    "aria-label": "What it read and wrote, token by token",
    onkeydown: goAlong,
  });
  const names = /** @type {(keyof typeof TABS)[]} */ (Object.keys(TABS));
  const tabs = names.map((name) =>
    button(TABS[name], () => open(name), {
      role: "tab",
      id: `${lane.replace(" ", "-")}-${name}`,
      "aria-controls": `${lane.replace(" ", "-")}-panel`,
    }),
  );
  const panel = make("div", { role: "tabpanel", id: `${lane.replace(" ", "-")}-panel` });
  const bars = make("table", { class: "lmk-bars" });
  const lens = make("table", { class: "lmk-lens" });
  const summary = make("p", { class: "lmk-summary" });
  const layerChoice = select(
    Array.from({ length: layers }, (_, i) => `layer ${i}`),
    () => showChosen({ layer: +layerChoice.value }),
    { "aria-label": "Layer" },
  );
  const headChoice = make(
    "div",
    { class: "play-words", role: "radiogroup", "aria-label": "Head", onkeydown: goAcross },
    ...Array.from({ length: heads }, (_, i) =>
      button(i, () => showChosen({ head: i }), { role: "radio", "aria-label": `head ${i}` }),
    ),
  );
  const chips = make("div", { class: "play-words", role: "group", "aria-label": "Changed heads" });
  const other = make("textarea", { rows: 2, maxlength: LONGEST, spellcheck: "false", dir: "auto" });
  other.value = data.other;
  other.addEventListener("change", () => {
    if (changed.size) renew();
  });
  const otherLabel = make("label", { class: "play-line" }, "Another text", other);
  const where = controls(layerChoice, headChoice);
  const changes = make(
    "div",
    {},
    controls(
      button("Switch it off", () => change("off")),
      button("Take it from another text", () => change("other")),
    ),
    chips,
    otherLabel,
  );
  const { live, later: tellSoon } = announcer(tell);
  element.append(
    controls(...loading.parts, forget),
    controls(worldLabel),
    remains,
    learnedNote,
    log,
    label,
    controls(forms),
    controls(ask, stop, more, anew),
    offer,
    ways,
    samplingControls,
    note,
    make(
      "p",
      { class: "lmk-title" },
      make("b", {}, "Inside"),
      ": choose a token, and what to see of it.",
    ),
    tokens,
    make("div", { class: "lmk-tabs", role: "tablist", onkeydown: goAcross }, ...tabs),
    panel,
    live,
  );

  /* --- the model comes and goes --- */

  /* Load the model, and go on with it. */
  async function load() {
    const arrived = await loading.bring();
    if (arrived) arrive(arrived);
  }

  /**
   * Go on with the model, which is loaded now; a question that a link brought is asked.
   *
   * @param {import("./talker-client.js").Arrived} found
   */
  function arrive({ notKept, memory }) {
    isHere = true;
    loader.hidden = true;
    forget.hidden = false;
    loadStatus.textContent = arrivedSentence(memory, notKept);
    draw();
    if (hasLinkQuestion) begin();
  }

  /* The model was forgotten, by the button here or with all that the browser keeps. */
  function leave() {
    isHere = false;
    loader.hidden = false;
    loader.textContent = LOAD;
    forget.hidden = true;
    loadStatus.textContent = "";
    draw();
  }

  /* Stop loading the model; the next load goes on from there. */
  function stopLoading() {
    talker.stop();
    loadStatus.textContent = "What has come so far is kept.";
  }

  /**
   * Ask the model, of the weights that the switch has chosen. If it is not loaded or fails, that
   * is told below the line, and the answer is null.
   *
   * @param {string} request of what kind: see talker-worker.js
   * @param {object} details what such a request needs
   * @param {string} own a newer request takes the place of an older one of this name
   * @param {(pieces: any[]) => void} [onPieces] called with new pieces of an answer, some at a time
   * @returns {Promise<any>} what talker-worker.js answers; null if there is no answer, or if a
   *   newer request took its place
   */
  async function asked(request, details, own, onPieces) {
    if (!isHere) {
      note.textContent = talker.obstacle || "The model has to be loaded first.";
      return null;
    }
    try {
      const random = worlds.value === WORLDS.random ? SEED : null;
      return await talker.when(request, { random, ...details }, `${lane} ${own}`, onPieces);
    } catch (error) {
      note.textContent = `The model does not answer: ${error.message}`;
      return null;
    }
  }

  /* --- writing --- */

  /* The line was changed: without the model, say that it has to be loaded, or why it cannot. */
  function typed() {
    note.textContent = isHere ? "" : talker.obstacle || "To ask, load the model first.";
  }

  /**
   * Ask when Enter is pressed; with the shift key, or while a character is composed, it does what
   * it always does.
   *
   * @param {KeyboardEvent} event
   */
  function enter(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    begin();
  }

  /**
   * Choose whether the line is read as a dialogue or as a text that goes on.
   *
   * @param {number} which position in FORMS
   */
  function choose(which) {
    readsAsChat = which === 0;
    beginAnew();
  }

  /* Forget the turns; the tokens of the last answer stay until something is written. */
  function beginAnew() {
    talker.cancel(`${lane} write`);
    note.textContent = turns.length ? "Below is still the text before, until you write." : "";
    turns = [];
    ask.textContent = readsAsChat ? "Ask" : "Write on";
    drawLog();
    area.focus({ preventScroll: true });
  }

  /* How the next token is chosen, as `speak` in talker-worker.js takes it. */
  const sampling = () =>
    isDrawn
      ? { temperature: +sliders.temperature.input.value, top_p: +sliders.top_p.input.value, seed }
      : { temperature: 0 };

  /* What the model is to read; of a question, without the spaces around it. */
  const typedLine = () => (readsAsChat ? area.value.trim() : area.value);

  /* Make the typed line the reader's last turn, and answer it; an earlier one without an answer is
     dropped. All turns are dropped if the line is to be continued as plain text and not read as a
     turn of a chat (`readsAsChat` is false), or if it is a link's question that was not asked yet
     (`hasLinkQuestion`). */
  function begin() {
    const line = typedLine();
    if (!line) {
      note.textContent = "There is nothing to read yet: type something.";
      return;
    }
    if (!readsAsChat) turns = [];
    if (hasLinkQuestion) turns = []; // a link has no dialogue before its question
    hasLinkQuestion = false;
    if (turns.at(-1)?.role === "user") turns.pop(); // it was not answered
    turns.push({ role: "user", content: line });
    answer();
  }

  /**
   * The tokens of a line; in a dialogue, of all turns before the reader's last one and then the
   * line. The first turns are left out when there is no room for them.
   *
   * @param {string} line
   * @returns {Promise<Tokens | null>} null if the model gives no answer. A line alone may be
   *   longer than what the model reads
   */
  async function read(line) {
    if (!readsAsChat) return asked("tokens", { text: line }, "read");
    const all = [
      ...turns.slice(
        0,
        turns.findLastIndex(({ role }) => role === "user"),
      ),
    ];
    for (;;) {
      const encoded = await asked(
        "tokens",
        { turns: [...all, { role: "user", content: line }] },
        "read",
      );
      if (!encoded || encoded.ids.length <= room - COUNT || !all.length) return encoded;
      all.splice(0, 2);
      note.textContent = "The first turns are too far back: it no longer sees them.";
    }
  }

  /* Answer the last question anew, by the model that the switch has chosen; what was answered to
     it before goes. A line that is too long gets a note. */
  async function answer() {
    const mine = ++latest; // a later call has another number: then this one stops
    note.textContent = "";
    const last = turns.findLastIndex(({ role }) => role === "user");
    if (last < 0) return;
    turns = turns.slice(0, last + 1);
    answered = worlds.value;
    remains.textContent = "";
    drawLog();
    stop.disabled = false;
    const encoded = await read(asRead(turns[last].content));
    await askUsual(turns[last].content);
    if (mine !== latest) return;
    if (encoded && encoded.ids.length <= room - COUNT) {
      seen = { ...encoded, read: encoded.ids.length };
      place = seen.read - 1;
      outputs = {};
      turns.push({ role: "assistant", content: "" });
      drawLog(); // a long text takes seconds before the first token is written
      await write(mine);
    } else if (encoded) {
      note.textContent = tooLongSentence(encoded.ids.length, room - COUNT);
    }
    if (mine === latest) stop.disabled = true;
  }

  /**
   * A line as the model reads it: its words in another order if the switch says so.
   *
   * @param {string} line
   */
  const asRead = (/** @type {string} */ line) =>
    answered === WORLDS.shuffled ? shuffledWords(line, !readsAsChat) : line;

  /**
   * Ask what the trained model would say first to a line in its own order, unless that is known,
   * and keep it in `usual`. Nothing is asked if the switch says "as it is".
   *
   * @param {string} line
   */
  async function askUsual(line) {
    if (answered === WORLDS.asItIs) return;
    const plain = await read(line);
    if (!plain || keyOf(plain.ids, switchedOff()) === usual.key) return;
    const [ids, off] = [plain.ids, switchedOff()];
    const details = { ids, off, place: ids.length - 1, layer, random: null };
    const likeliest = await asked("next", details, "usual");
    if (!likeliest) return;
    usual = { key: keyOf(ids, off), top: likeliest.map((/** @type {Likely} */ { id }) => id) };
  }

  /**
   * Say how many of the FEW likeliest first tokens of the trained model, which read the words in
   * their own order, are also among those of the changed one. If the switch says "as it is",
   * nothing is said: the tokens are kept in `usual`.
   *
   * @param {Likely[]} next the first tokens that were likeliest, the likeliest first
   */
  function tellLeft(next) {
    const top = next.map(({ id }) => id);
    if (answered === WORLDS.asItIs) {
      usual = { key: keyOf(seen.ids.slice(0, seen.read), switchedOff()), top };
      return;
    }
    const left = leftOf(usual.top.slice(0, FEW), top.slice(0, FEW));
    remains.textContent = leftSentence(answered, left);
  }

  /**
   * Let the model write on behind all tokens, into the last turn, until it ends or COUNT tokens
   * are written; tokens are shown as they come.
   *
   * @param {number} mine the number of this answer: if a later one was asked for meanwhile, the
   *   buttons and what is inside are left to it
   */
  async function write(mine) {
    const turn = turns[turns.length - 1];
    const before = turn.content;
    stop.disabled = false;
    more.disabled = true;
    const count = Math.min(COUNT, room - seen.ids.length);
    const details = { ids: seen.ids, off: switchedOff(), count, ...sampling() };
    const end = await asked("speak", details, "write", (written) => {
      const isFirst = seen.ids.length === seen.read; // what follows the text that was read
      if (isFirst) tellLeft(written[0].next);
      seen.ids = seen.ids.concat(written.map(({ id }) => id));
      seen.pieces = seen.pieces.concat(written.map(({ piece }) => piece));
      turn.content = before + written.at(-1).text;
      if (isFirst && !outputs.next && place === seen.read - 1 && !changed.size) {
        outputs.next = written[0].next;
      }
      drawLog();
      drawTokens();
    });
    if (mine !== latest) return;
    stop.disabled = true;
    more.disabled = end === "end" || seen.ids.length >= room;
    if (end === "end" && !before && !turn.content) turn.content = "(nothing)";
    tellSoon();
    if (later !== null && later < seen.pieces.length) place = later;
    later = null;
    // Another token than the last one read may just have been chosen by a link.
    outputs = place === seen.read - 1 ? outputs : {};
    draw();
    compute();
  }

  /* Let the model write on behind its last turn; if the last turn is the reader's, do nothing. */
  function goOn() {
    if (turns.at(-1)?.role === "assistant") write(++latest);
  }

  /* Stop; what is written stays. */
  function stopWriting() {
    talker.cancel(`${lane} write`);
  }

  /* Answer anew, by other random numbers. */
  function drawAgain() {
    seed += 1;
    answer();
  }

  /* The switch was moved: ask the last question again; without the model, say that it is needed. */
  function answerAnew() {
    learnedNote.textContent =
      worlds.value === WORLDS.random
        ? "The same blocks, and every block of 32 weights in its own range, but drawn at random: " +
          "it has learned nothing. What is still to be seen below was not learned."
        : "";
    if (isHere) answer();
    else typed();
  }

  /* Show the sliders' values, and the sliders only if tokens are drawn at random. */
  function showSampling() {
    for (const { input, value } of Object.values(sliders)) value.textContent = input.value;
    samplingControls.hidden = !isDrawn;
  }

  /* --- looking inside --- */

  /**
   * The heads that are changed in one way, as pairs [layer, head].
   *
   * @param {How} how
   */
  const changedBy = (how) =>
    Array.from(changed.values()).flatMap((each) => (each.how === how ? [each.place] : []));
  /* The heads that are switched off, as pairs [layer, head]. */
  const switchedOff = () => changedBy("off");

  /**
   * Open a tab.
   *
   * @param {keyof typeof TABS} name
   */
  function open(name) {
    tab = name;
    showChosen({});
  }

  /**
   * Choose another token, layer or head, drop what was computed of the former one, and show what
   * the tab shows.
   *
   * @param {{ place?: number, layer?: number, head?: number }} chosen what changes; `place` is the
   *   position of a token
   */
  function showChosen(chosen) {
    if ((chosen.place ?? place) !== place) outputs = {};
    if ((chosen.layer ?? layer) !== layer) delete outputs.attention;
    place = chosen.place ?? place;
    layer = chosen.layer ?? layer;
    head = chosen.head ?? head;
    draw();
    compute();
  }

  /* Heads were changed, or the other text: all that was computed inside is asked for anew. */
  function renew() {
    outputs = {};
    draw();
    compute();
  }

  /* Ask for what the tab shows, if it is not known, and draw it. Where heads are changed, the next
     tokens of the model unchanged are asked for, too: they are the marks at the bars. */
  async function compute() {
    const wanted = outputs; // `showChosen` and `renew` put another in its place
    const name = tab === "heads" ? "next" : tab;
    if (wanted[name] && (wanted.whole || !changed.size)) return;
    const from = await headsOfOther();
    if (from === null) return;
    const ids = from ? seen.ids.slice(0, place + 1) : seen.ids;
    const details = { ids, place, layer };
    const result = await asked(name, { ...details, off: switchedOff(), from }, "look");
    if (!result) return;
    wanted[name] = result;
    if (changed.size && name === "next" && !wanted.whole) {
      wanted.whole = await asked("next", details, "whole");
    }
    if (wanted === outputs) draw();
  }

  /**
   * The heads that are to be taken from the other text, and that text's tokens.
   *
   * @returns {Promise<{ ids: number[], heads: [number, number][] } | null | undefined>}
   *   undefined if there are no such heads; null if the tokens are not to be had
   */
  async function headsOfOther() {
    const patched = changedBy("other");
    if (!patched.length) return undefined;
    const encoded = await read(other.value);
    return encoded && { ids: encoded.ids, heads: patched };
  }

  /**
   * Change the chosen head.
   *
   * @param {How} how
   */
  function change(how) {
    if (!isHere) return typed();
    changed.set(key([layer, head]), { place: [layer, head], how });
    renew();
  }

  /**
   * Leave a head as it is in the model again.
   *
   * @param {string} name "LAYER.HEAD"
   */
  function restore(name) {
    changed.delete(name);
    renew();
  }

  /* --- keys --- */

  /**
   * On an arrow key, choose the token before or behind the chosen one.
   *
   * @param {KeyboardEvent} event
   */
  function goAlong(event) {
    const moved = arrow(event);
    if (!moved) return;
    event.preventDefault();
    const next = tokens.querySelectorAll("button")[place + moved[0] + moved[1]];
    if (!next) return;
    showChosen({ place: place + moved[0] + moved[1] });
    tokens.querySelectorAll("button")[place].focus();
  }

  /* --- drawing --- */

  /* Draw all that can change. */
  function draw() {
    drawLog();
    drawTokens();
    drawTabs();
    const chosen = [layer, head].join(".");
    layerChoice.value = String(layer);
    headChoice.querySelectorAll("button").forEach((each, i) => {
      each.setAttribute("aria-checked", String(i === head));
      each.setAttribute("aria-pressed", String(i === head)); // play.css colours it by this
      each.tabIndex = i === head ? 0 : -1;
    });
    chips.replaceChildren(
      ...Array.from(changed, ([name, { how }]) =>
        button(`${name} ${how === "off" ? "off" : "from the other"} ×`, () => restore(name), {
          "aria-label": `head ${name}: as it was again`,
          "aria-pressed": name === chosen,
        }),
      ),
    );
    bars.replaceChildren(
      ...nextRows(outputs.next ?? [], changed.size ? (outputs.whole ?? []) : null),
    );
    lens.replaceChildren(...lensRows(outputs.lens ?? []));
    drawSummary();
  }

  /* Draw the dialogue, turn by turn, the last question as the model read it; of a text that goes
     on, the text and what was written behind it. */
  function drawLog() {
    const last = turns.findLastIndex(({ role }) => role === "user");
    const isShuffled = answered === WORLDS.shuffled;
    const model = answered === WORLDS.random ? "Random weights" : "Model";
    /**
     * Who says a turn; `i` is its position.
     *
     * @type {(role: string, i: number) => string}
     */
    const nameOf = (role, i) => {
      if (role !== "user") return model;
      return isShuffled && i === last ? "You, shuffled" : "You";
    };
    if (!readsAsChat && turns.length) {
      const [line, written] = turns;
      log.replaceChildren(continued(asRead(line.content), written?.content ?? ""));
    } else {
      const shownTurns = turns.map(({ role, content }, i) =>
        spoken(role, nameOf(role, i), i === last ? asRead(content) : content),
      );
      log.replaceChildren(...shownTurns);
    }
    log.hidden = !turns.length;
  }

  /* Draw a button for each token; while attention is shown, the darker, the more of it the token
     gets, beside the token that gets most (the first one aside). */
  function drawTokens() {
    const weights = tab === "attention" ? outputs.attention?.[head] : null;
    const largest = weights ? weights[mostBehindFirst(weights)] : 1;
    const buttons = seen.pieces.map((piece, i) =>
      button(piece, () => showChosen({ place: i }), {
        "aria-pressed": i === place,
        class: i < seen.read ? "" : "lmk-written",
        tabindex: i === place ? 0 : -1,
        style: weights ? `--share: ${Math.min(1, (weights[i] ?? 0) / largest)}` : "--share: 0",
      }),
    );
    tokens.replaceChildren(
      ...buttons.flatMap((each, i) => (seen.pieces[i].endsWith("⏎") ? [each, make("br")] : [each])),
    );
  }

  /* Mark the tab that is open, and fill the panel with what it shows. */
  function drawTabs() {
    tabs.forEach((each, i) => {
      const isOpen = names[i] === tab;
      each.setAttribute("aria-selected", String(isOpen));
      each.tabIndex = isOpen ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", tabs[names.indexOf(tab)].id);
    const shown = {
      next: [summary, bars],
      lens: [
        summary,
        make(
          "div",
          { class: "lmk-scroll", tabindex: 0, role: "region", "aria-label": "Layers" },
          lens,
        ),
      ],
      attention: [where, summary],
      heads: [where, changes, summary, bars],
    }[tab];
    panel.replaceChildren(...shown);
  }

  /* Say what the tab shows, in a sentence; while it is not known, what is missing. */
  function drawSummary() {
    const chosen = seen.pieces[place];
    const missing = isHere ? "Computing …" : talker.obstacle || "Load the model to see this.";
    const [first] = outputs.next ?? [];
    const sentences = {
      next: () => first && nextSentence(chosen, first),
      lens: () => outputs.lens && lensSentence(chosen),
      attention: () =>
        outputs.attention &&
        attentionSentence([layer, head], seen.pieces, place, outputs.attention[head]),
      heads: () => first && headsSentence(changed.size, first, outputs.whole?.[0]),
    };
    summary.textContent = sentences[tab]() || missing;
  }

  /* What is read out when something was written. */
  function tell() {
    const last = turns.at(-1);
    return last?.role === "assistant" ? `It writes: ${last.content}` : "";
  }

  addEventListener(WEIGHTS_FORGOTTEN, () => {
    talker.stop();
    leave();
  });
  turns.push({ role: "assistant", content: data.answer });
  ask.textContent = readsAsChat ? "Ask" : "Write on";
  if (talker.obstacle) {
    loader.disabled = true;
    loadStatus.textContent = talker.obstacle;
  } else
    talker.isKept().then((isKept) => {
      if (isKept && !isHere) loader.textContent = "Open the model: your browser kept it";
    });
  more.disabled = true;
  showSampling();
  draw();

  /* --- what a link carries: the last question, and what is chosen --- */

  /** @type {Record<string, import("./dom.js").Field>} */
  const fields = {
    learned: worlds,
    form: forms,
    text: area,
    way: ways,
    temperature: sliders.temperature.input,
    top_p: sliders.top_p.input,
    dice: countField(
      () => seed,
      (number) => {
        seed = number;
      },
      () => Number.MAX_SAFE_INTEGER,
    ),
    other,
    heads: {
      get: () => inLine(changed.values()),
      /* Change the heads that the line names; what is no head of the model is left out. */
      set(line) {
        changed.clear();
        for (const each of headsIn(line))
          if (each.place[0] < layers && each.place[1] < heads) changed.set(key(each.place), each);
      },
    },
    layer: countField(
      () => layer,
      (number) => {
        layer = number;
      },
      () => layers,
    ),
    head: countField(
      () => head,
      (number) => {
        head = number;
      },
      () => heads,
    ),
    tab: {
      get: () => tab,
      /* Open a tab by its name; another name changes nothing. */
      set(name) {
        if (name in TABS) tab = /** @type {keyof typeof TABS} */ (name);
      },
    },
    token: countField(
      () => later ?? place,
      (number) => {
        if (isAnother()) later = number;
        else if (number < seen.pieces.length) place = number;
      },
      () => room,
    ),
  };

  /* Whether the answer to what is typed and chosen may be another than the one that Python gave. */
  const isAnother = () =>
    area.value !== turns[0]?.content ||
    readsAsChat !== data.dialogue ||
    isDrawn ||
    worlds.value !== WORLDS.asItIs;

  /* A link has set the fields: ask its question at once if the model is here, or else when it
     comes. If it is the question that Python answered, only draw what the link has chosen. */
  function asking() {
    hasLinkQuestion = isAnother();
    if (hasLinkQuestion && isHere) return begin();
    outputs = hasLinkQuestion || layer !== data.layer || place !== data.place ? {} : outputs;
    if (hasLinkQuestion)
      note.textContent = typedLine()
        ? "Load the model, and it answers the question of your link."
        : "Your link has no question: load the model, and type one.";
    draw();
    if (isHere) compute();
  }

  return { state: stateOf(fields, asking) };
}
