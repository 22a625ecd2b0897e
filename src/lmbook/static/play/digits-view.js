/* The view *digits*: a reader draws a digit of 8 × 8 cells, a vision Transformer names it,
   and each of its tokens shows where it attends. A switch puts random weights in its place, or
   the drawing's patches in another order. */

import { openModel } from "./client.js";
import {
  arrow,
  bar,
  button,
  controls,
  countField,
  learnedSwitch,
  make,
  percent,
  radios,
  row,
  stateOf,
  svg,
  WORLDS,
} from "./dom.js";
import { softmax } from "./engine.js";
import { roving } from "./keys.js";
import { argmax } from "./numbers.js";
import { reordered } from "./random.js";

const SIDE = 8; // cells in a row of the drawing
const SIZE = 2; // cells in a row of a patch
const ACROSS = SIDE / SIZE; // patches in a row
const TOKENS = 1 + ACROSS * ACROSS; // the class token, and a token for each patch, row after row
const SEED = 1; // of the order of shuffled patches
const FULL = 240; // ink in a link: two digits a cell, by which sixteenths and halves are whole

/**
 * Weights of attention, [layer][head][token][key].
 *
 * @typedef {(number[] | Float32Array)[][][]} Weights
 */

/**
 * @typedef {object} Data
 * @property {{ ink: number[], probs: number[], weights: Weights }[]} examples ink is from 0 to 1,
 *   in 64 cells; what the model answers to it: the probabilities of the ten digits, and its
 *   attention
 */

/**
 * Ink as the model takes it, cut into patches.
 *
 * @param {number[]} ink (64,), from 0 to 1
 * @returns {Float32Array} (tokens · cells of a patch), the first row empty: the class token's
 */
function patches(ink) {
  const rows = new Float32Array(TOKENS * SIZE * SIZE);
  ink.forEach((value, cell) => {
    const y = Math.floor(cell / SIDE);
    const x = cell % SIDE;
    const token = 1 + Math.floor(y / SIZE) * ACROSS + Math.floor(x / SIZE);
    rows[(token * SIZE + (y % SIZE)) * SIZE + (x % SIZE)] = value;
  });
  return rows;
}

/**
 * The cells of a patch, row after row, by their positions in the drawing.
 *
 * @type {(patch: number) => number[]}
 */
const cellsOf = (patch) =>
  Array.from(
    { length: SIZE * SIZE },
    (_, i) =>
      (Math.floor(patch / ACROSS) * SIZE + Math.floor(i / SIZE)) * SIDE +
      (patch % ACROSS) * SIZE +
      (i % SIZE),
  );

/**
 * A drawing whose patches are in another order, the same each time.
 *
 * @param {number[]} ink (64,)
 * @returns {number[]} (64,)
 */
function shuffledPatches(ink) {
  const mixed = [...ink];
  const order = reordered(Array.from(Array(TOKENS - 1).keys()), SEED);
  order.forEach((from, to) => {
    const cells = cellsOf(to);
    cellsOf(from).forEach((cell, i) => {
      mixed[cells[i]] = ink[cell];
    });
  });
  return mixed;
}

/**
 * Mount the view *digits*: the reader draws a digit, and a vision Transformer names it and shows
 * where each of its tokens attends.
 *
 * @param {HTMLElement} element empty
 * @param {Data} data
 * @param {ViewContext} context
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data, context) {
  const { worlds, remains, label: worldLabel } = learnedSwitch(changed, "shuffled patches");
  let ink = [...data.examples[0].ink];
  let read = ink; // the same, or its patches in another order
  let example = 0; // position of the one that was shown last
  let keyCell = 27; // the cell where the keys draw
  let erasing = false;
  /** @type {[x: number, y: number] | null} */
  let pen = null; // where it touched last, as `positionOf` says it; null if it is lifted
  let { probs, weights } = data.examples[0]; // weights[layer][head][token][key]
  let layer = weights.length - 1;
  let head = 0;
  let chosen = 0; // the token whose attention is shown
  let failure = ""; // why there is no answer to what is drawn; "" if there is one

  /**
   * A cell of a picture that is `size` cells wide, by its position, row after row.
   *
   * @type {(size: number) => (cell: number) => SVGRectElement}
   */
  const square = (size) => (cell) =>
    svg("rect", { x: (cell % size) * 20, y: Math.floor(cell / size) * 20, width: 20, height: 20 });
  const drawn = ink.map((_, i) => square(SIDE)(i));
  const cursor = svg("rect", { width: 20, height: 20, class: "lmd-cursor" });
  const picture = svg("svg", { viewBox: "0 0 160 160", "aria-hidden": "true" }, ...drawn, cursor);
  const paper = make(
    "div",
    {
      class: "lmd-paper",
      tabindex: 0,
      role: "application",
      "aria-label": "Your digit: arrow keys move, space adds ink, Delete takes it away",
      onkeydown: keys,
      onpointerdown: (event) => {
        if (event.button !== 0) return;
        pen = positionOf(event);
        follow(event);
      },
      onpointermove: follow,
      onpointerup: lift,
      onpointercancel: lift,
    },
    picture,
  );
  const status = make("p", { class: "lmd-status", role: "status" });
  const where = make("p", { class: "play-hidden", "aria-live": "polite" });
  const table = make("table", { class: "lmd-bars" });
  const small = Array.from({ length: TOKENS - 1 }, (_, patch) =>
    cellsOf(patch).map((_, i) => square(SIZE)(i)),
  );
  const tokens = Array.from({ length: TOKENS }, (_, token) =>
    button(
      "",
      () => {
        chosen = token;
        draw();
      },
      { class: token ? "lmd-patch" : "lmd-class" },
    ),
  );
  small.forEach((cells, patch) =>
    tokens[patch + 1].append(
      svg("svg", { viewBox: "0 0 40 40", "aria-hidden": "true" }, ...cells),
      make("span", {}),
    ),
  );
  roving(tokens.slice(1), ACROSS);

  const eraser = make("input", {
    type: "checkbox",
    onchange: () => {
      erasing = eraser.checked;
    },
  });
  const layers = radios(
    "Layer",
    weights.map((_, i) => i),
    layer,
    (i) => {
      layer = i;
      draw();
    },
  );
  const heads = radios(
    "Head",
    weights[0].map((_, i) => i),
    head,
    (i) => {
      head = i;
      draw();
    },
  );
  element.append(
    controls(worldLabel),
    remains,
    make(
      "div",
      { class: "lmd-both" },
      make(
        "div",
        {},
        make("p", { class: "lmd-title" }, "Draw"),
        paper,
        controls(
          button("Clear", () => startAnew(ink.map(() => 0))),
          button("Another", startNext),
          make("label", {}, eraser, " erase"),
        ),
      ),
      make("div", {}, make("p", { class: "lmd-title" }, "What it predicts"), table),
      make(
        "div",
        {},
        make("p", { class: "lmd-title" }, "Where it attends"),
        make("div", { class: "lmd-grid" }, ...tokens.slice(1)),
        tokens[0],
      ),
    ),
    layers,
    heads,
    status,
    make(
      "p",
      { class: "play-muted" },
      "The token in the frame attends to the others. Click another one. You can draw with keys, " +
        "too: the arrows move over the paper, the space bar adds ink, and Delete removes it.",
    ),
    where,
  );

  /**
   * Begin with another drawing.
   *
   * @param {number[]} other its ink, (64,)
   */
  function start(other) {
    ink = [...other];
    changed();
  }

  /* Begin with the next example; after the last comes the first. */
  function startNext() {
    example = (example + 1) % data.examples.length;
    startAnew(data.examples[example].ink);
  }

  /**
   * Begin with another drawing, and with a pen that draws: an eraser would not be expected there.
   *
   * @param {number[]} other its ink, (64,)
   */
  function startAnew(other) {
    erasing = false;
    eraser.checked = false;
    start(other);
  }

  /* The pen is lifted: a pointer that moves draws nothing. */
  function lift() {
    pen = null;
  }

  /**
   * Where the pointer is, [x, y] in cells, 0 in the middle of the first.
   *
   * @param {PointerEvent} event
   * @returns {[number, number]}
   */
  function positionOf(event) {
    const box = picture.getBoundingClientRect();
    return [
      (SIDE * (event.clientX - box.left)) / box.width - 0.5,
      (SIDE * (event.clientY - box.top)) / box.height - 0.5,
    ];
  }

  /**
   * Draw with a soft pen from where it was to where the pointer is: the nearer a cell's middle is
   * to this way, the more ink it has at least. The eraser empties the cells that are near it.
   *
   * @param {PointerEvent} event of a pointer that touches, or moves
   */
  function follow(event) {
    if (!pen) return;
    if (event.buttons === 0) return lift();
    const from = pen;
    const to = positionOf(event);
    pen = to;
    const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    ink = ink.map((old, cell) => {
      const [x, y] = [(cell % SIDE) - from[0], Math.floor(cell / SIDE) - from[1]];
      const projected = (x * dx + y * dy) / (dx * dx + dy * dy || 1);
      const along = Math.max(0, Math.min(1, projected)); // the nearest point of the way: 0 to 1
      const far = Math.hypot(x - along * dx, y - along * dy); // in cells
      const touch = Math.max(0, Math.min(1, 1.3 - far));
      return erasing ? Math.min(old, far < 0.8 ? 0 : 1) : Math.max(old, touch);
    });
    changed();
  }

  /**
   * Draw by keys: arrows move from cell to cell, space adds ink (or takes it away with the
   * eraser), Delete and Backspace take it away. Say where that is, and its ink.
   *
   * @param {KeyboardEvent} event
   */
  function keys(event) {
    const step = arrow(event);
    const takes = ["Delete", "Backspace"].includes(event.key);
    if (!step && !takes && event.key !== " ") return;
    event.preventDefault();
    if (step) {
      const [x, y] = [(keyCell % SIDE) + step[0], Math.floor(keyCell / SIDE) + step[1]];
      if (x in ink && x < SIDE && y >= 0 && y < SIDE) keyCell = y * SIDE + x;
    } else ink[keyCell] = takes || erasing ? 0 : Math.min(1, ink[keyCell] + 0.5);
    where.textContent =
      `Row ${Math.floor(keyCell / SIDE)}, column ${keyCell % SIDE}: ` +
      `ink ${percent(ink[keyCell])}`;
    if (step) draw();
    else changed();
  }

  /* The drawing or the switch is another: ask the model, and draw what it answers. An answer that
     comes after another change is not shown; an error is told in its place. */
  async function changed() {
    const world = worlds.value;
    read = world === WORLDS.shuffled ? shuffledPatches(ink) : ink;
    if (world === WORLDS.asItIs) remains.textContent = "";
    draw();
    try {
      const answer = await ask(
        world === WORLDS.random ? "digits-random" : "digits",
        read,
        "digits",
      );
      if (!answer || world !== worlds.value) return;
      failure = "";
      probs = probsOf(answer);
      weights = Object.values(answer.kept).map(({ values, shape: [heads] }) =>
        Array.from({ length: heads }, (_, h) =>
          Array.from({ length: TOKENS }, (_, token) =>
            values.subarray((h * TOKENS + token) * TOKENS, (h * TOKENS + token + 1) * TOKENS),
          ),
        ),
      );
      draw();
      if (world !== WORLDS.asItIs) await tellLeft(probs);
    } catch (error) {
      if (world !== worlds.value) return;
      failure = `The model could not answer: ${error.message}`;
      remains.textContent = "";
      draw();
    }
  }

  /**
   * Ask a model about a drawing; null if a newer request took its place.
   *
   * @param {string} name of the model's store
   * @param {number[]} drawing (64,)
   * @param {string} lane of the request
   * @returns the logits of the class token, and the attention of each layer
   */
  function ask(name, drawing, lane) {
    const options = {
      pixels: patches(drawing),
      logits_of: [0],
      keep: ["blocks.*.attention.weights"],
    };
    return openModel(name, context).forward(Array(TOKENS).fill(0), options, lane);
  }

  /**
   * The probabilities of the ten digits.
   *
   * @param {import("./engine.js").Answer} answer
   */
  const probsOf = ({ logits }) => softmax(Array.from(/** @type {Float32Array} */ (logits)));

  /**
   * Say what became of the probability of the digit that the trained model predicts for the drawing
   * as it is, and whether it is still predicted.
   *
   * @param {number[]} now the probabilities of the ten digits in the changed model
   */
  async function tellLeft(now) {
    const world = worlds.value;
    const usual = await ask("digits", ink, "digits usual");
    if (!usual || world !== worlds.value) return;
    const before = probsOf(usual);
    const digit = argmax(before);
    const how =
      world === WORLDS.random ? "With random weights" : "With the patches in another order";
    const end =
      argmax(now) === digit ? "it is still predicted" : `${argmax(now)} is predicted instead`;
    remains.textContent =
      `${how}, the probability of ${digit} goes from ${percent(before[digit])} to ` +
      `${percent(now[digit])}; ${end}.`;
  }

  /**
   * What a token is called.
   *
   * @type {(token: number) => string}
   */
  const nameOf = (token) =>
    !token
      ? "the class token"
      : `the patch in row ${Math.floor((token - 1) / ACROSS)}, column ${(token - 1) % ACROSS}`;

  /* Draw the digit, its tokens with the attention of the chosen one, and the probabilities, and
     say it in words; if the model gives no answer, the digit alone, and why. */
  function draw() {
    const shares = failure ? tokens.map(() => 0) : weights[layer][head][chosen];
    const most = Math.max(...shares) || 1;
    drawn.forEach((cell, i) => cell.setAttribute("fill-opacity", ink[i].toFixed(2)));
    cursor.setAttribute(
      "transform",
      `translate(${20 * (keyCell % SIDE)} ${20 * Math.floor(keyCell / SIDE)})`,
    );
    tokens.forEach((each, token) => {
      const share = failure ? "" : percent(shares[token]);
      each.style.setProperty("--strength", (shares[token] / most).toFixed(3));
      each.setAttribute("aria-pressed", String(token === chosen));
      if (token) /** @type {Node} */ (each.lastChild).textContent = share;
      else each.textContent = `class token ${share}`;
      each.setAttribute("aria-label", failure ? nameOf(token) : `${nameOf(token)}, ${share}`);
      if (token)
        cellsOf(token - 1).forEach((cell, i) =>
          small[token - 1][i].setAttribute("fill-opacity", read[cell].toFixed(2)),
        );
    });
    table.replaceChildren(
      make(
        "tbody",
        {},
        ...probs.map((share, digit) =>
          failure ? row(digit, bar(0, 0), "") : row(digit, bar(share, share), percent(share)),
        ),
      ),
    );
    if (failure) {
      status.textContent = failure;
      return;
    }
    const digit = argmax(probs);
    const seen = shares.indexOf(most);
    status.textContent =
      (ink.some((x) => x > 0) ? "" : "Nothing is drawn, but it knows only ten answers. ") +
      `It predicts ${digit}, with a probability of ${percent(probs[digit])}. ` +
      `In layer ${layer}, head ${head}, ${nameOf(chosen)} attends most to ` +
      `${seen === chosen ? "itself" : nameOf(seen)} (${percent(most)}).`;
  }

  draw();
  const state = {
    world: worlds,
    erase: eraser,
    layer: layers,
    head: heads,
    token: countField(
      () => chosen,
      (token) => {
        chosen = token;
        draw();
      },
      () => TOKENS,
    ),
    /* Two hexadecimal digits a cell, from 00 to f0 (FULL). */
    ink: {
      get: () =>
        ink
          .map((value) =>
            Math.round(FULL * value)
              .toString(16)
              .padStart(2, "0"),
          )
          .join(""),
      /* Begin with this drawing; what is none changes nothing. */
      set(/** @type {string} */ digits) {
        const cells = digits.match(/../g)?.map((two) => parseInt(two, 16) / FULL) ?? [];
        if (cells.length === ink.length && cells.every((value) => value >= 0 && value <= 1))
          start(cells);
      },
    },
  };
  return { state: stateOf(state) };
}
