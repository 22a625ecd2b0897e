/* The view *order*: the scores of a short line under several schemes of positions, while
   the reader changes the order of its words and where it begins. The chapter on positions
   gives the numbers; here they are added up. */
import {
  arrow,
  button,
  controls,
  fixed,
  heading,
  make,
  numbersField,
  radios,
  row,
  slider,
  stateOf,
} from "./dom.js";

/**
 * A scheme of positions: it either depends on the offset alone, or its score is a sum of four
 * terms, word or place with word or place.
 *
 * @typedef {object} Scheme
 * @property {string} name
 * @property {string} told of it
 * @property {number[][][]} [offsets] [word][word][offset], from the least on
 * @property {number[][]} ww [word][word]
 * @property {number[][]} wp [word][place]
 * @property {number[][]} pw [place][word]
 * @property {number[][]} pp [place][place]
 */

/**
 * @typedef {object} Data
 * @property {string[]} words of the line
 * @property {Scheme[]} schemes
 * @property {number} most words before the line
 * @property {{ order?: number[], scheme?: number }} [opens] what it begins with
 */

/**
 * The score of a word that attends to another.
 *
 * @param {Scheme} scheme
 * @param {number} a the word that attends
 * @param {number} b the word that is attended to
 * @param {number} m the place of `a`
 * @param {number} n the place of `b`
 * @returns {number}
 */
function score(scheme, a, b, m, n) {
  if (scheme.offsets) {
    const offsets = scheme.offsets[a][b];
    return offsets[n - m + (offsets.length - 1) / 2];
  }
  return scheme.ww[a][b] + scheme.wp[a][n] + scheme.pw[m][b] + scheme.pp[m][n];
}

/**
 * All scores of the words in an order, [place that attends][place that is attended to].
 *
 * @param {Scheme} scheme
 * @param {number[]} order the words, by their numbers
 * @param {number} start the position of the first in the text
 */
function scores(scheme, order, start) {
  return order.map((a, m) => order.map((b, n) => score(scheme, a, b, m + start, n + start)));
}

const ENOUGH = 0.005; // what is less is not seen in two digits

/**
 * Mount the view *order*: the words of a short line, which the reader moves, and their attention
 * scores under several schemes of positions. In it, a word is its number in the poem's line, and a
 * place its position in the line as it stands now.
 *
 * @param {HTMLElement} element empty
 * @param {Data} data
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data) {
  const { words, schemes } = data;
  const first = words.map((_, i) => i);
  let { order, scheme: chosen } = { order: [...first], scheme: 0, ...data.opens };
  /** @type {number | null} */
  let waiting = null; // the place whose word waits for another to change places with
  const most = schemes.map((scheme) => Math.max(...scores(scheme, first, 0).flat().map(Math.abs)));

  const kinds = radios(
    "Positions",
    schemes.map(({ name }) => name),
    chosen,
    (i) => {
      chosen = i;
      draw();
    },
  );
  const buttons = words.map((_, place) =>
    button("", () => choose(place), { onkeydown: (event) => moveWord(event, place) }),
  );
  const line = make(
    "div",
    {
      class: "lmo-line play-words",
      role: "group",
      "aria-label": "The line; choose two words to change their places",
    },
    ...buttons,
  );
  const start = slider("words before the line", {
    min: 0,
    max: data.most,
    value: 0,
    oninput: draw,
  });
  const table = make("table", {});
  const status = make("p", { class: "lmo-status", role: "status" });
  const note = make("p", { class: "lmo-note play-muted" });
  element.append(
    kinds,
    line,
    make(
      "p",
      { class: "play-muted" },
      "Click two words to swap them, or move one with the arrow keys.",
    ),
    controls(start.label, button("Start again", reset)),
    make("div", { class: "play-both" }, table, make("div", { class: "lmo-words" }, status, note)),
  );

  /* Begin again with the poem's line. */
  function reset() {
    order = [...first];
    waiting = null;
    start.input.value = "0";
    draw();
  }

  /**
   * Let the words of two places change places.
   *
   * @param {number} one place
   * @param {number} other place
   */
  function exchange(one, other) {
    [order[one], order[other]] = [order[other], order[one]];
    waiting = null;
    draw();
  }

  /**
   * Choose the word at a place: the second one that is chosen changes places with the first; the
   * same one again is let go.
   *
   * @param {number} place
   */
  function choose(place) {
    if (waiting !== null && waiting !== place) return exchange(waiting, place);
    waiting = waiting === place ? null : place;
    draw();
  }

  /**
   * The arrow keys carry a word along the line; Escape lets go of the one that was chosen.
   *
   * @param {KeyboardEvent} event
   * @param {number} place
   */
  function moveWord(event, place) {
    if (event.key === "Escape") {
      waiting = null;
      draw();
    }
    const [by] = arrow(event) || [];
    if (!by || !(place + by in order)) return;
    event.preventDefault();
    exchange(place, place + by);
    buttons[place + by].focus();
  }

  /* Draw the line and its scores, and mark the pairs of words whose score has changed. */
  function draw() {
    const scheme = schemes[chosen];
    const startsAt = Number(start.input.value);
    start.value.textContent = String(startsAt);
    buttons.forEach((button, place) => {
      button.textContent = words[order[place]];
      button.setAttribute("aria-pressed", String(waiting === place));
    });
    let count = 0; // of cells that are not what the same two words had in the line as it was
    const rows = scores(scheme, order, startsAt).map((line, m) => {
      const tableRow = row(words[order[m]], ...line.map((value) => fixed(value, 1)));
      line.forEach((value, n) => {
        const cell = tableRow.cells[n + 1];
        const share = Math.min(1, Math.abs(value) / most[chosen]);
        cell.className = value < 0 ? "lmo-less" : "lmo-more";
        cell.style.setProperty("--share", `${Math.round(65 * share)}%`);
        const [a, b] = [order[m], order[n]];
        if (Math.abs(value - score(scheme, a, b, a, b)) <= ENOUGH) return;
        count++;
        cell.classList.add("lmo-changed");
        cell.append(make("span", { class: "play-hidden" }, " changed"));
      });
      return tableRow;
    });
    table.replaceChildren(
      make("caption", {}, "Row: the word that attends. Column: the word it attends to."),
      heading("", ...order.map((word) => words[word])),
      make("tbody", {}, ...rows),
    );
    const all = words.length ** 2;
    const text = order.map((word) => words[word]).join(" ");
    const moved = order.some((word, position) => word !== position) || startsAt > 0;
    status.textContent = moved
      ? `“${text}”: compared with the poem’s line, “${words.join(" ")}”, ${count || "none"} of ` +
        `the ${all} pairs of words ${count > 1 ? "have" : "has"} another score.`
      : "This is the poem’s line.";
    note.textContent = scheme.told;
  }

  draw();
  const state = {
    positions: kinds,
    order: numbersField(
      () => order,
      (newOrder) => {
        const isOrder =
          newOrder.length === first.length && first.every((i) => newOrder.includes(i));
        if (isOrder) order = newOrder;
      },
    ),
    before: start.input,
  };
  return { state: stateOf(state, draw) };
}
