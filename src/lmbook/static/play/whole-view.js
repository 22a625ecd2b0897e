/* The view *whole*: a model in one picture, from the text to the next token. Each part opens to
   its numbers, and a tour goes through all of them. `lmcourse.views.whole` gives a text for each
   model of which all is known; small models are loaded when the reader first comes near, the
   model that talks after a click. */

import { openModel } from "./client.js";
import {
  announcer,
  button,
  controls,
  countField,
  learnedSwitch,
  leftOf,
  make,
  megabytes,
  ownLine,
  percent,
  radios,
  slider,
  stateOf,
  WORLDS,
} from "./dom.js";
import { follow } from "./link.js";
import { OwnClient, offerOwn, ownState, sayOwn } from "./own-model.js";
import { readText, WEIGHTS_FORGOTTEN } from "./store.js";
import { openTalker } from "./talker-client.js";
import { talkerLoader } from "./talker-loader.js";
import { quoted } from "./text.js";
import { shown, WordPiece } from "./tokenizers.js";
import { asked, atEnd, EMPTY, isAlone, mixed, readGap, readLetters } from "./whole-input.js";
import { inside, PARTS } from "./whole-inside.js";
import { makePicture } from "./whole-picture.js";
import { mentioned } from "./whole-reading.js";
import { stops, strongestAttention, tellingLayer } from "./whole-tour.js";

/** @import { Client } from "./client.js" */
/** @import { Config } from "./engine.js" */
/** @import { Asked, Input } from "./whole-input.js" */
/** @import { Opened } from "./whole-picture.js" */
/** @import { Reading } from "./whole-reading.js" */

const LONGEST = 2000; // characters of a line that are read
const ROOM = 40; // tokens of a text, at the most
const SEED = 1; // of random weights
const FEW = 5; // likeliest tokens of which it is told how many are left
const NAMES = {
  gpt: "GPT: next letter",
  bert: "BERT: hidden word",
  talker: "Model that talks: next word",
};
let views = 0;

/**
 * A model, and what is known of a text to begin with.
 *
 * @typedef {object} Given
 * @property {keyof typeof NAMES} name
 * @property {string} text to begin with
 * @property {number} room the most tokens of a text
 * @property {string} store the name of the store that has the model
 * @property {Uint8Array<ArrayBuffer>} [own] the reader's model, as `asStore` of own-model.js makes
 *   it, in the place of that store
 * @property {string} pieces the store of its vocabulary; "" if there is none
 * @property {string} [alphabet] of a model that reads letters
 * @property {number[]} [around] the ids of [CLS], [SEP] and [MASK]
 * @property {string} unit "letter" or "token"
 * @property {string} why it does not run in the page; "" if it does
 * @property {Reading} reading of that text
 */

/**
 * What is known of a model's first text. The weights that Python gives are in thousandths; those
 * of the reader's model are as they are.
 *
 * @param {Given} given
 * @returns {Reading}
 */
const firstReading = ({ own, reading }) =>
  own
    ? reading
    : {
        ...reading,
        weights: reading.weights.map((heads) =>
          heads.map((weights) => Array.from(weights, (weight) => weight / 1000)),
        ),
      };

/**
 * @typedef {object} Data
 * @property {Given[]} models
 * @property {Data} [book] what was given for the book's models, if the reader's is shown
 */

/**
 * The reader's model, and what is known of a text.
 *
 * @param {Uint8Array<ArrayBuffer>} own the model, as `asStore` of own-model.js makes it
 * @param {string} alphabet of the model
 * @param {number} room the most tokens of a text
 * @param {string} text
 * @param {Omit<Reading, "pieces">} reading what the model makes of it
 * @returns {Given}
 */
function givenOf(own, alphabet, room, text, reading) {
  const letters = Array.from(alphabet);
  const pieces = Object.fromEntries(mentioned(reading).map((id) => [id, shown(letters[id])]));
  return {
    name: "gpt",
    unit: "letter",
    store: "",
    pieces: "",
    why: "",
    text,
    room,
    alphabet,
    own,
    reading: { ...reading, pieces },
  };
}

/**
 * What a changed model says, and, if it is known, what the trained one says of the same text in its
 * order, and how many of its FEW likeliest tokens are left.
 *
 * @param {Reading} result of the changed model
 * @param {Reading | null} usual of the trained one, of the same text in its order; null if it is
 *   not known
 * @param {{ isRandom: boolean, isAlone: boolean, unit: string }} how isRandom: the model has random
 *   weights, else the text was in another order; isAlone: the text has no other order; unit:
 *   "letter" or "token"
 */
function whatRemains(result, usual, { isRandom, isAlone, unit }) {
  /**
   * The likeliest token and its probability, in words.
   *
   * @param {Reading} reading
   */
  const likeliestOf = ({ next: [[id, , share]], pieces }) =>
    `${quoted(pieces[id])} (${percent(share)})`;
  /**
   * The IDs of the FEW likeliest tokens.
   *
   * @param {Reading} reading
   */
  const top = ({ next }) => next.slice(0, FEW).map(([id]) => id);
  const says = isRandom
    ? `Random weights say ${likeliestOf(result)}`
    : `With its other tokens in another order, the model says ${likeliestOf(result)}`;
  if (!isRandom && isAlone)
    return "There is no other order: more than one token has to stand before the one that is asked.";
  if (!usual) return `${says}.`;
  return (
    `${says}; ${isRandom ? "the trained model says" : "in your order it says"} ` +
    `${likeliestOf(usual)}. ` +
    `Of its five likeliest ${unit}s, ${leftOf(top(usual), top(result))} left.`
  );
}

/**
 * Scroll as little as shows a part of the picture below the card; the card first, if it is out of
 * sight.
 *
 * @param {{ y: number, height: number }} box of the part, in pixels from the top of the frame
 * @param {Element} frame of the picture
 * @param {Element} card of the tour, above the frame
 */
function bringIntoSight({ y, height }, frame, card) {
  const top = frame.getBoundingClientRect().top + y;
  const above = card.getBoundingClientRect().bottom;
  const behaviour = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  const room = Math.max(0, innerHeight - 40);
  if (card.getBoundingClientRect().top < 0 || card.getBoundingClientRect().bottom > innerHeight)
    card.scrollIntoView({ block: "start", behavior: behaviour });
  else if (top < above) scrollBy({ top: top - above - 20, behavior: behaviour });
  else if (top + Math.min(height, room - above) > room)
    scrollBy({ top: Math.min(top - above - 20, top + height - room), behavior: behaviour });
}

/**
 * Mount the view *whole*: a model as one picture, from the text to the next token, whose parts open
 * to their numbers.
 *
 * @param {HTMLElement} element empty
 * @param {Data} data
 * @param {ViewContext} context
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data, context) {
  const lane = `whole ${++views}`; // of this view's requests
  const { models } = data;
  let given = models[0];
  let reading = firstReading(given);
  /** @type {Opened} */
  let opened = opening();
  /** @type {number | null} the token that was pressed; null: the last one, or the gap */
  let pressed = null;
  let stop = -1; // of the tour; -1: it is not on
  let left = -1; // the stop at which the tour was left; -1: at its end, or never begun
  /** @type {Record<string, string>} what was typed for each model */
  const lines = {};
  /** @type {WordPiece | undefined} */
  let wordPiece; // BERT's tokenizer, once it is loaded
  let isHere = false; // whether the model that talks is loaded
  /** @type {Map<number | null, Client>} the reader's model, by the seed of its random weights */
  const owned = new Map();
  let questions = 0; // how many were asked
  let remainder = ""; // what is said of the picture, if not all is as it is
  let usual = reading; // what the trained model made of a text in its order

  /* --- what stands there --- */

  const picture = makePicture({ open, choose });
  const which = radios(
    "Model",
    models.map(({ name }) => NAMES[name]),
    0,
    (chosen) => change(models[chosen]),
  );
  which.classList.add("lmw-models");
  const { area, note, label } = ownLine(given.text, typed, { maxlength: LONGEST });
  const { worlds, remains, label: worldLabel } = learnedSwitch(changeWorld, "shuffled text");
  const tourButton = button("Take the tour: three minutes", startTour, { class: "lmw-start" });
  const loading = talkerLoader(talker, load, stopLoading);
  const { loader, status: loadStatus } = loading;
  const offer = make("p", { class: "play-controls lmw-offer" }, ...loading.parts);
  const back = button("Back", () => goTo(stop - 1));
  const forth = button("Next", () => goTo(stop + 1));
  const cardTitle = make("b");
  const cardText = make("p", { role: "status" });
  const card = make(
    "div",
    { class: "lmw-card", role: "group", "aria-label": "Tour", hidden: "", onkeydown: onCardKey },
    cardTitle,
    cardText,
    controls(back, forth, button("Leave", leaveTour)),
  );
  const layerSlider = slider("open layer", {
    min: 0,
    max: reading.sizes.layers - 1,
    step: 1,
    value: opened.layer,
    oninput: () => open({ layer: +layerSlider.input.value }),
  });
  const title = make("p", { class: "lmw-heading" });
  const text = make("p", { class: "lmw-text" });
  const shownParts = make("div");
  const numbers = make("table");
  const details = make(
    "details",
    {},
    make("summary", {}, "The numbers"),
    make(
      "div",
      { class: "lmw-scroll", tabindex: 0, role: "region", "aria-label": "The numbers" },
      numbers,
    ),
  );
  const append = button("", appendBest);
  const frame = make("div", { class: "lmw-frame" }, picture.element);
  const panel = make("div", { class: "lmw-inside" }, title, text, shownParts, append, details);
  const { live, later } = announcer(() => `${title.textContent}. ${text.textContent}`);
  element.append(
    which,
    label,
    note,
    offer,
    controls(tourButton, worldLabel),
    remains,
    card,
    frame,
    make("p", { class: "play-controls lmw-layer-choice" }, layerSlider.label),
    panel,
    live,
    data.book ? sayOwn(element, leaveOwn) : offerOwn(context, useOwn),
  );
  /* Load the chosen model before it is asked, but not the one that waits for a click. */
  function prepareSmall() {
    if (given.name !== "talker") prepare().catch(() => {});
  }
  element.addEventListener("focusin", prepareSmall, { once: true });
  new ResizeObserver(draw).observe(frame);
  addEventListener(WEIGHTS_FORGOTTEN, () => {
    if (!models.some(({ name }) => name === "talker")) return;
    talker().stop();
    isHere = false;
    drawOffer();
  });

  /* --- models --- */

  /** What is open to begin with: the layer at which attention tells most. */
  function opening() {
    const layer = tellingLayer(reading);
    return { part: "head", layer, head: strongestAttention(reading, layer).head };
  }

  /* The model that talks, loaded or not. */
  function talker() {
    return openTalker("talker", context);
  }

  /**
   * The chosen model, with the weights that the switch says.
   *
   * @returns {Client}
   */
  function model() {
    return given.name === "talker" ? talker() : smallModel(isRandom() ? SEED : null);
  }

  /**
   * The chosen model if it is one of those that are loaded without a click.
   *
   * @param {number | null} seed of random weights; null: the trained ones
   * @returns {Client}
   */
  function smallModel(seed) {
    const { own, store } = given;
    if (!own) return openModel(store, context, seed);
    const client = owned.get(seed) ?? new OwnClient(own, context, seed);
    owned.set(seed, client);
    return client;
  }

  /**
   * Begin again with the reader's model, which reads first what it knows of the line: the view is
   * made anew in the same element.
   *
   * @param {Config} config of the model
   * @param {Uint8Array<ArrayBuffer>} own the model, as `asStore` of own-model.js makes it
   */
  async function useOwn({ alphabet = "", context: longest }, own) {
    const letters = Array.from(alphabet);
    const room = Math.min(ROOM, longest);
    const known = Array.from(area.value).filter((letter) => letters.includes(letter));
    const text = known.slice(-room).join("") || letters[0];
    const ids = Array.from(text, (letter) => letters.indexOf(letter));
    const reader = new OwnClient(own, context, null);
    const reading = await reader.when("whole", { ids, place: ids.length - 1 });
    reader.end();
    cancel();
    const mine = givenOf(own, alphabet, room, text, reading);
    element.replaceChildren();
    mount(element, { models: [mine], book: data }, context);
    element.querySelector("textarea")?.focus({ preventScroll: true });
  }

  /* Begin again with the book's models (`data` is that of the reader's model). */
  function leaveOwn() {
    for (const client of owned.values()) client.end();
    element.replaceChildren();
    mount(element, /** @type {Data} */ (data.book), context);
  }

  /* Load the chosen model, a small one, and its vocabulary; nothing if it cannot run in the
     page. */
  async function prepare() {
    if (given.why) return;
    if (given.pieces && !wordPiece)
      wordPiece = new WordPiece(JSON.parse(await readText(given.pieces, context)));
    await model().load();
  }

  /* Load the model that talks, and answer if the line or the switch is another than at first. */
  async function load() {
    const arrived = await loading.bring(); // null: it was stopped; undefined: an error, told
    if (arrived !== undefined) isHere = Boolean(arrived);
    if (isHere) {
      loadStatus.textContent = "The model is here: change the text.";
      note.textContent = ""; // it may ask for what was done now
    }
    drawOffer();
    if (isHere && (area.value !== given.text || !isUsual())) answer();
  }

  /* Whether the model that talks is loaded, or kept by the browser. Another view may have forgotten
     it: then it comes back after a click alone. */
  async function isStillHere() {
    isHere = Boolean(talker().worker) || (await talker().isKept());
    if (!isHere) loadStatus.textContent = "";
    drawOffer();
    return isHere;
  }

  /* Stop loading the model that talks; the next load goes on from there. */
  function stopLoading() {
    talker().stop();
    loadStatus.textContent = "What has come so far is kept.";
  }

  /**
   * Show another model: its first text, or, if it can be asked, the line that was typed for it
   * last.
   *
   * @param {Given} chosen
   */
  function change(chosen) {
    lines[given.name] = area.value;
    cancel();
    given = chosen;
    pressed = null;
    worlds.value = WORLDS.asItIs;
    note.textContent = given.why;
    area.value = given.text;
    show(firstReading(given));
    opened = opening();
    const line = lines[given.name];
    if (line !== undefined && line !== given.text && isReady()) {
      area.value = line;
      answer();
    }
    drawOffer();
    draw();
    if (stop >= 0) goTo(stop);
  }

  /* Whether the switch says "as it is". */
  const isUsual = () => worlds.value === WORLDS.asItIs;
  /* Whether it says "random weights". */
  const isRandom = () => worlds.value === WORLDS.random;
  /* Whether the chosen model can be asked: it is here, or comes without a click. */
  const isReady = () => !given.why && (given.name !== "talker" || isHere);

  /* Show the button that loads the model that talks, if this one is chosen and not loaded. */
  function drawOffer() {
    offer.hidden = given.name !== "talker" || Boolean(given.why);
    if (offer.hidden) return;
    const { obstacle, about: store } = talker();
    loader.hidden = isHere;
    loader.disabled = Boolean(obstacle);
    loader.textContent = `Load the model: ${megabytes(store.bytes)}`;
    if (obstacle) loadStatus.textContent = obstacle;
    else if (!isHere)
      talker()
        .isKept()
        .then((isKept) => {
          if (isKept) loader.textContent = "Open the model: your browser kept it";
        });
  }

  /* End what the chosen model was asked before: of the models with trained and with random weights
     only the last one asked may answer. */
  function cancel() {
    if (given.why) return;
    if (given.name === "talker") return talker().cancel(lane);
    for (const seed of [null, SEED]) smallModel(seed).cancel(lane);
  }

  /* --- asking --- */

  /* The reader changed the line: it is asked at its end, or at its gap. */
  function typed() {
    pressed = null;
    answer();
  }

  /**
   * Ask at a token that was pressed.
   *
   * @param {number} token its position
   */
  function choose(token) {
    if (!isReady()) return tellMissing();
    pressed = token;
    answer();
  }

  /* The switch was moved: answer; if the model cannot be asked, put it back and say why. */
  function changeWorld() {
    if (!isReady()) {
      worlds.value = WORLDS.asItIs;
      return tellMissing();
    }
    answer();
  }

  /* Say why the chosen model cannot be asked. */
  function tellMissing() {
    note.textContent =
      given.why ||
      talker().obstacle ||
      "To ask this model, load it first: the button is above the picture.";
  }

  /* Show what the model makes of the line, as the switch says; the trained model is asked about the
     line in its order, too, if that is not known. An answer that comes after another model was
     chosen is not shown; an error is told below the line. */
  async function answer() {
    if (!isReady()) return tellMissing();
    const chosen = given; // another may be chosen before the answer comes
    if (chosen.name === "talker" && !(await isStillHere())) return tellMissing();
    const question = ++questions;
    if (chosen.name === "talker") showWork(true);
    try {
      await answerBy(chosen);
    } catch (error) {
      note.textContent = `The model does not answer: ${error.message}`;
    } finally {
      if (question === questions) showWork(false);
    }
  }

  /**
   * Show what a model makes of the line, unless another is chosen by then.
   *
   * @param {Given} chosen the model, which can be asked
   */
  async function answerBy(chosen) {
    if (chosen.name !== "talker") {
      note.textContent = "";
      await prepare();
    }
    const input = await read();
    if (chosen !== given || !input) return;
    note.textContent = input.message;
    cancel();
    if (!input.ids.length) return;
    const isUsualText = asked(input) === asked(usual);
    // The trained model is asked first: random weights of the large one are made anew each time.
    const before = isUsual() || isUsualText ? usual : await ask(input, null);
    if (!before) return;
    usual = before;
    const seed = isRandom() ? SEED : null;
    const text = worlds.value === WORLDS.shuffled ? mixed(input, given.name) : input;
    const result = await ask(text, seed);
    if (result && chosen === given) show(result, input);
  }

  /**
   * Say that the model computes, which takes the large one seconds, or what is to be said
   * of the picture.
   *
   * @param {boolean} isWorking
   */
  function showWork(isWorking) {
    frame.setAttribute("aria-busy", String(isWorking));
    remains.textContent = isWorking ? "Computing …" : remainder;
  }

  /**
   * What the chosen model makes of tokens; null if a newer question took the place of this one, or
   * another model was chosen.
   *
   * @param {Input} input
   * @param {number | null} random a seed of random weights; null: the trained ones
   * @returns {Promise<Reading | null>}
   */
  async function ask({ ids, place }, random) {
    const chosen = given;
    const result =
      chosen.name === "talker"
        ? await talker().when("whole", { ids, place, random }, lane)
        : await smallModel(random).when("whole", { ids, place }, lane);
    if (!result || chosen !== given) return null;
    return { ...result, pieces: result.pieces ?? piecesOf(result) };
  }

  /**
   * The line as the chosen model is given it.
   *
   * @returns {Promise<Input | null>} null if the model that talks cuts it into no tokens now
   */
  async function read() {
    const line = area.value;
    if (given.name === "gpt") return readLetters(line, given, pressed);
    if (given.name === "bert")
      return readGap(line, given, pressed, /** @type {WordPiece} */ (wordPiece));
    if (!line) return EMPTY;
    const tokens = await talker().tokens({ text: line });
    return tokens && atEnd(tokens.ids, given.room, pressed);
  }

  /**
   * How the tokens of a small model are shown.
   *
   * @param {Reading} result
   * @returns {Record<string, string>}
   */
  function piecesOf(result) {
    const all = wordPiece && given.pieces ? wordPiece.vocabulary : Array.from(given.alphabet ?? "");
    return Object.fromEntries(mentioned(result).map((id) => [id, shown(all[id])]));
  }

  /* --- opening --- */

  /**
   * Show what a model makes of a text, and what that says beside the trained model.
   *
   * @param {Reading} result
   * @param {Asked} [input] the text in its order; without it, as it was read
   */
  function show(result, input = result) {
    reading = result;
    const { layers, heads } = reading.sizes;
    opened.layer = Math.min(opened.layer, layers - 1);
    opened.head = Math.min(opened.head, heads - 1);
    layerSlider.input.max = String(layers - 1);
    if (isUsual()) usual = result;
    remainder = isUsual()
      ? ""
      : whatRemains(result, asked(input) === asked(usual) ? usual : null, {
          isRandom: isRandom(),
          isAlone: isAlone(input, given.name),
          unit: given.unit,
        });
    remains.textContent = remainder;
    if (stop >= 0) drawStop();
    else draw();
  }

  /**
   * Open a part, a layer or a head; what is not given stays as it is.
   *
   * @param {Partial<Opened>} wanted
   */
  function open(wanted) {
    opened = { ...opened, ...wanted };
    draw();
    later();
  }

  /* The likeliest token becomes part of the text. */
  function appendBest() {
    if (!isReady()) return tellMissing();
    const [[id]] = reading.next;
    const piece = reading.pieces[id];
    const word = piece.replaceAll("·", " ").replaceAll("⏎", "\n").replaceAll("⇥", "\t");
    area.value += word;
    pressed = null;
    answer();
  }

  /* --- the tour --- */

  /* The stops of the tour, as they are for what is shown. */
  const tour = () => stops(reading, { name: given.name, unit: given.unit, world: worlds.value });

  /* Begin the tour, or go on where it was left. */
  function startTour() {
    card.hidden = false;
    tourButton.hidden = true;
    goTo(Math.max(0, left));
    forth.focus({ preventScroll: true });
  }

  /**
   * Go to a stop of the tour, and open what it tells of; behind the last one the tour ends.
   *
   * @param {number} wanted from 0 on; below 0, the first
   */
  function goTo(wanted) {
    if (wanted >= tour().length) return leaveTour();
    stop = Math.max(0, wanted);
    opened = { ...opened, ...tour()[stop].open };
    drawStop();
    bringIntoSight(picture.box(tour()[stop].part), frame, card);
  }

  /* Leave the tour, and remember where, unless that is its end. */
  function leaveTour() {
    const all = tour().length;
    left = stop >= all - 1 ? -1 : stop;
    stop = -1;
    card.hidden = true;
    tourButton.hidden = false;
    tourButton.textContent =
      left < 0 ? "Take the tour again" : `Go on with the tour: stop ${left + 1} of ${all}`;
    draw();
    tourButton.focus({ preventScroll: true });
  }

  /* Draw the stop at which the tour is: its card, which points at a part, and the picture. */
  function drawStop() {
    const all = tour();
    const { title, text, part } = all[stop];
    cardTitle.textContent = `${stop + 1} of ${all.length} · ${title}`;
    cardText.textContent = text;
    back.disabled = stop === 0;
    forth.textContent = stop === all.length - 1 ? "Done" : "Next";
    draw();
    const box = picture.box(part);
    const share = (box.x + box.width / 2) / frame.clientWidth;
    card.style.setProperty("--pointer", `${Math.round(100 * share)}%`);
  }

  /**
   * Go through the tour by the arrow keys, and leave it by Escape.
   *
   * @param {KeyboardEvent} event
   */
  function onCardKey(event) {
    /** @type {Record<string, (() => void) | undefined>} */
    const keys = {
      ArrowRight: () => goTo(stop + 1),
      ArrowLeft: () => goTo(stop - 1),
      Escape: leaveTour,
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  /* --- drawing --- */

  /* Draw the picture, and what is inside the open part. */
  function draw() {
    const width = Math.max(300, frame.clientWidth);
    const role = given.name === "bert" ? "the gap" : "what follows is asked";
    picture.draw(reading, opened, width, role);
    picture.point(stop >= 0 ? tour()[stop].part : null);
    layerSlider.input.value = String(opened.layer);
    layerSlider.value.textContent = String(opened.layer);
    drawInside();
  }

  /* Show the open part in words and numbers. */
  function drawInside() {
    const part = inside(reading, opened, given);
    title.textContent = part.title;
    text.textContent = part.text;
    shownParts.replaceChildren(...part.shown);
    numbers.replaceChildren(...part.numbers);
    append.hidden = opened.part !== "next" || given.name === "bert" || pressed !== null;
    append.textContent = `Append ${quoted(reading.pieces[reading.next[0][0]])} and go on`;
  }

  drawOffer();
  note.textContent = given.why;
  draw();

  /* What a link asks of a model that is not here is asked when it is: see `load`. */
  const known = () => reading.sizes; // of the model that is shown
  const fields = {
    model: which,
    world: {
      get: () => worlds.value,
      set(/** @type {string} */ wanted) {
        worlds.value = wanted;
        answer();
      },
    },
    text: area,
    token: countField(
      () => (pressed ?? -1) + 1,
      (token) => {
        pressed = token ? token - 1 : null;
        answer();
      },
      () => given.room + 1,
    ),
    part: {
      get: () => opened.part,
      /* Open a part, if there is one of this name. */
      set(/** @type {string} */ part) {
        if (part in PARTS) open({ part });
      },
    },
    layer: countField(
      () => opened.layer,
      (layer) => open({ layer }),
      () => known().layers,
    ),
    head: countField(
      () => opened.head,
      (head) => open({ head }),
      () => known().heads,
    ),
    /* The stop of the tour, from 1 on. */
    stop: countField(
      () => stop + 1,
      (number) => {
        if (!number) {
          if (stop >= 0) leaveTour();
          return;
        }
        card.hidden = false;
        tourButton.hidden = true;
        goTo(number - 1);
      },
      () => tour().length + 1,
    ),
  };
  /* Of the reader's model only what the book's has as well: its heads and layers are others. */
  const { model: chosen, token, layer, head, ...shared } = fields;
  const state = data.book ? ownState(stateOf(shared), leaveOwn) : stateOf(fields);
  follow(context.root, state);
  return { state };
}
