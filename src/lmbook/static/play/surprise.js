/* A poem whose letters are coloured by surprise: what was expected at the one chosen, by
   pointer, by touch, or with the slider below it by key. With `ways` it is one of several
   pieces, read by a model at several moments of a training, in several ways. */
import { make, plural, radios, slider, stateOf } from "./dom.js";

/**
 * A letter: how probable it was, in per cent; how surprising, from 0 to 1; the likeliest
 * letters with their probabilities.
 *
 * @typedef {[share: number, surprise: number, guesses: [string, number][]]} Letter
 */

/**
 * Pieces that are read in several ways, each at some moments of a training.
 *
 * @typedef {object} Runs
 * @property {{ name: string, text: string }[]} pieces
 * @property {{ name: string, letters: Letter[][][], losses: string[] }[]} ways letters stand
 *   under [piece][moment]
 * @property {number[]} moments steps of the training
 */

/**
 * @typedef {Partial<Runs> & { text: string, letters: Letter[], kind?: string }} Data the kind
 *   of text, a poem if nothing else is said
 */

/** @type {Record<string, string | undefined>} */
const NAMES = { " ": "space", "\n": "new line" };
const BEFORE = 18; // letters of the line that are repeated
/**
 * A letter's name.
 *
 * @type {(letter: string) => string}
 */
const named = (letter) => NAMES[letter] || letter;
/**
 * A share that is given in per cent, in words.
 *
 * @type {(share: number) => string}
 */
const percent = (share) => (share < 1 ? "under 1\u00a0%" : `${Math.round(share)}\u00a0%`);

/**
 * Draw the probability of a letter as a bar.
 *
 * @param {string} letter
 * @param {number} share its probability, in per cent
 * @param {boolean} isWritten whether it is the one that stands in the text
 */
function bar(letter, share, isWritten) {
  return make(
    "div",
    { class: isWritten ? "lm-bar lm-written" : "lm-bar" },
    make("span", { class: "lm-guess" }, named(letter)),
    make("span", { class: "lm-rule", style: `--p: ${share}%` }),
    make("span", { class: "lm-share" }, percent(share)),
  );
}

/**
 * Make what chooses between pieces, ways and moments; a way with fewer moments stays at its last.
 *
 * @param {Runs} runs
 * @param {(text: string, letters: Letter[]) => void} read is called with what was chosen
 * @returns its `element`; its `fields`, for links; `draw`, which shows what is chosen
 */
function choices({ pieces, ways, moments }, read) {
  let piece = 0;
  let way = 0;
  const lossNote = make("p", { class: "lm-losses", role: "status" });
  const steps = slider("Steps of Dickinson", {
    min: 0,
    max: moments.length - 1,
    value: 0,
    oninput: draw,
  });
  /* Show what is chosen. */
  function draw() {
    const moment = Number(steps.input.value);
    const { letters, losses } = ways[way];
    const now = Math.min(moment, losses.length - 1);
    steps.value.textContent = String(moments[moment]);
    steps.input.setAttribute("aria-valuetext", plural(moments[moment], "step"));
    lossNote.textContent = losses[now];
    read(pieces[piece].text, letters[piece][now]);
  }
  const reads = radios(
    "It reads",
    pieces.map(({ name }) => name),
    0,
    (i) => {
      piece = i;
      draw();
    },
  );
  const taught = radios(
    "Taught",
    ways.map(({ name }) => name),
    0,
    (i) => {
      way = i;
      draw();
    },
  );
  return {
    draw,
    fields: { reads, taught, steps: steps.input },
    element: make("div", { class: "lm-runs" }, reads, taught, steps.label, lossNote),
  };
}

/**
 * Mount a view of a poem whose letters are coloured by surprise: at the chosen letter it tells what
 * the model expected there.
 *
 * @param {HTMLElement} element empty
 * @param {Data} data
 * @returns `read`, which shows another text; its `state`, for links: see `stateOf` in dom.js
 */
export function mount(element, data) {
  /** @type {string[]} its letters */
  let text = [];
  /** @type {Letter[]} */
  let letters;
  /** @type {HTMLElement[]} */
  let shown;
  // The position of the letter that is chosen: at first in a word that could go on otherwise.
  let here = 5;
  const whole = make("p", { class: "visually-hidden" });
  const verse = make("p", {
    class: "lm-verse",
    "aria-hidden": "true",
    onpointermove: point,
    onpointerdown: point,
  });
  const expected = make("p", { class: "lm-said" });
  const bars = make("div");
  /** @type {HTMLInputElement} */
  const along = make("input", {
    type: "range",
    min: 0,
    "aria-label": `Go through the ${data.kind ?? "poem"} letter by letter`,
    oninput: () => choose(Number(along.value)),
  });
  const { pieces, ways, moments } = data;
  const runs = pieces && ways && moments ? choices({ pieces, ways, moments }, read) : null;
  element.append(
    ...(runs ? [runs.element] : []),
    whole,
    verse,
    make("div", { class: "lm-expected" }, expected, bars, along),
  );

  /**
   * Show a text and what was expected of its letters; with the same text the same letter stays
   * chosen.
   *
   * @param {string} piece
   * @param {Letter[]} newLetters one for each letter of the text
   */
  function read(piece, newLetters) {
    if (piece !== text.join("")) here = 5;
    text = Array.from(piece);
    letters = newLetters;
    shown = text.map((letter, i) =>
      make("span", { style: `--s: ${letters[i][1]}` }, letter === "\n" ? "↵" : letter),
    );
    verse.replaceChildren(
      ...shown.flatMap((span, i) => (text[i] === "\n" ? [span, make("br")] : [span])),
    );
    whole.textContent = piece;
    along.max = String(text.length - 1);
    choose(here);
  }

  /**
   * What stands before a letter, at most BEFORE letters, from the beginning of a word on.
   *
   * @param {number} position
   */
  function before(position) {
    const letters = text.slice(Math.max(0, position - BEFORE), position);
    const line = letters.join("").replace(/\n/g, " / ");
    return position > BEFORE ? `…${line.replace(/^\S*\s/, "")}` : line;
  }

  /**
   * Choose a letter, and show what was expected there.
   *
   * @param {number} position its position
   */
  function choose(position) {
    here = position;
    const [share, , guesses] = letters[position];
    const letter = text[position];
    shown.forEach((span, i) => span.classList.toggle("lm-here", i === position));
    expected.replaceChildren(
      ...(position ? ["After ", make("q", {}, before(position))] : ["At the start"]),
      " the model expected",
    );
    const rows = guesses.map(([guess, p]) => bar(guess, p, guess === letter));
    if (!guesses.some(([guess]) => guess === letter)) rows.push(bar(letter, share, true));
    bars.replaceChildren(...rows);
    along.value = String(position);
    const likely = guesses.slice(0, 2).map(([guess, p]) => `${named(guess)} ${percent(p)}`);
    along.setAttribute(
      "aria-valuetext",
      `${named(letter)}, expected with ${percent(share)}; likeliest ${likely.join(", ")}`,
    );
  }

  /**
   * Choose the letter under the pointer.
   *
   * @param {PointerEvent} event
   */
  function point(event) {
    const under = document.elementFromPoint(event.clientX, event.clientY);
    const position = shown.indexOf(/** @type {HTMLElement} */ (under));
    if (position >= 0) choose(position);
  }

  if (runs) runs.draw();
  else read(data.text, data.letters);
  return { read, state: stateOf({ ...runs?.fields, letter: along }) };
}
