/* The view *generator*: a line, and how the book's GPT goes on. `lmcourse.views.generator`
   gives what it begins with; the model is loaded when the reader first comes near.

   Bars, lens and attention are those at the end of the line. What is written after it is a
   function of the line, the switches and the seed alone: a head switched off and on again
   brings the same text back. */
import { openModel } from "./client.js";
import {
  announcer,
  arrow,
  bar,
  button,
  controls,
  countField,
  learnedSwitch,
  leftOf,
  make,
  ownLine,
  percent,
  plural,
  row,
  slider,
  stateOf,
  svg,
  WORLDS,
} from "./dom.js";
import { softmax } from "./engine.js";
import { follow } from "./link.js";
import { largest } from "./numbers.js";
import { OwnClient, offerOwn, ownState, sayOwn } from "./own-model.js";
import { reordered } from "./random.js";
import { neverRead, visible } from "./text.js";
import { nextProbs } from "./writing.js";

const LONGEST = 10000; // characters of a line that are read, from its end
const MORE = 300; // characters that "go on" adds
const MOST = 2000; // characters that stand after a line at the most
const BARS = 10; // characters that the bars show
const SEED = 1; // of random weights
const FEW = 5; // likeliest characters that are compared
const FIRST = 3; // characters of each layer of the lens
let views = 0;

/** @import { Field } from "./dom.js" */
/** @import { Answer, Config } from "./engine.js" */
/** @import { Piece } from "./writing.js" */

/**
 * What the model computes at the last character of a line.
 *
 * @typedef {object} End
 * @property {number[][]} lens logits of the next character if the model ended after a layer,
 *   (layers, vocab_size)
 * @property {number[][]} weights attention of each head, layer by layer, (layers · heads, tokens)
 */

/**
 * @typedef {object} Settings
 * @property {string} text the line to begin with
 * @property {string} written what stands after it
 * @property {string} alphabet of the model: the character of each ID
 * @property {string} store name of the model's store
 * @property {number} room the most characters that the model sees
 * @property {number} heads in a layer
 * @property {number} temperature to begin with
 * @property {number} seed of the random numbers with which characters are drawn
 * @property {string[]} lines that are offered
 * @property {Uint8Array<ArrayBuffer>} [own] the reader's model, if it is to be used, as `asStore`
 *   of own-model.js makes it
 * @property {number} [goal] how many characters are to stand after the line; without it, as many
 *   as `written` has
 * @property {any} [book] if the model is the reader's: the data of the view of the book's model
 */

/**
 * The name of a character in a message: its number ("U+200b") if nothing would be seen of it, else
 * itself, isolated so that one that is read from right to left reorders no others.
 *
 * @type {(c: string) => string}
 */
const named = (c) =>
  /[\p{C}\p{Z}\p{M}]/u.test(c) ? `U+${c.codePointAt(0)?.toString(16)}` : `\u2068${c}\u2069`;

/**
 * What a model sees of a text, its last IDs. `write` begins anew with half a context when the
 * context is full, and this is what it would see had it written the text.
 *
 * @param {number[]} ids
 * @param {number} room how many IDs the model sees
 */
function tail(ids, room) {
  const step = room + 1 - (room >> 1);
  return ids.slice(step * Math.max(0, Math.ceil((ids.length - room) / step)));
}

/**
 * The last row of a matrix, or of one of several matrices.
 *
 * @param {Answer["kept"][string]} activation one or more matrices, each (rows, width), one under
 *   another
 * @param {number} [which] the number of the matrix
 * @returns {number[]} (width,)
 */
function lastRow({ values, shape }, which = 0) {
  const [rows, width] = shape.slice(-2);
  return Array.from(values.slice(((which + 1) * rows - 1) * width, (which + 1) * rows * width));
}

/**
 * Draw weights as strokes side by side, each as high as its weight.
 *
 * @param {number[]} weights from 0 to 1
 */
function strokes(weights) {
  const d = weights.map((weight, i) => `M${i + 0.5} 10V${10 - 10 * weight}`).join("");
  const viewBox = `0 0 ${weights.length} 10`;
  return svg("svg", { viewBox, preserveAspectRatio: "none" }, svg("path", { d }));
}

/**
 * How many of the likeliest next characters of the trained model are also among those of the
 * changed one.
 *
 * @param {string} world the state of the switch, random or shuffled
 * @param {string} left how many, as `leftOf` says it
 */
function leftSentence(world, left) {
  const how =
    world === WORLDS.random
      ? "With random weights"
      : "With the characters before the last in another order";
  return `${how}, of the model’s five likeliest next characters ${left} left.`;
}

/**
 * Mount the view *generator*: a line, what the GPT writes after it, and the next token's
 * probabilities, by layer and with heads switched off. In it, a head is a number, counted layer by
 * layer.
 *
 * @param {HTMLElement} element empty
 * @param {Settings & End} data
 * @param {ViewContext} context
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data, context) {
  const { room, heads } = data;
  const alphabet = Array.from(data.alphabet);
  /**
   * The reader's model, or the book's.
   *
   * @param {number | null} [seed] of the order in which its weights are shuffled; null: as trained
   */
  const open = (seed = null) =>
    data.own ? new OwnClient(data.own, context, seed) : openModel(data.store, context, seed);
  let gpt = open();
  const lane = `generator ${++views}`; // of this view's requests
  /**
   * The IDs of characters, -1 for one that the model does not know.
   *
   * @param {Iterable<string>} text its characters
   */
  const encode = (text) => Array.from(text, (character) => alphabet.indexOf(character));
  /**
   * The text of IDs.
   *
   * @param {number[]} ids
   */
  const decode = (ids) => ids.map((id) => alphabet[id]).join("");
  /** @type {[layer: number, head: number][]} */
  const headIndices = data.weights.map((_, i) => [Math.floor(i / heads), i % heads]);
  /**
   * A head's name: "head 2 of layer 1".
   *
   * @param {number} i counted layer by layer
   */
  const title = (i) => `head ${headIndices[i][1]} of layer ${headIndices[i][0]}`;
  let line = encode(data.text);
  let written = encode(data.written);
  let { seed } = data;
  let goal = data.goal ?? written.length; // how many characters are to stand after the line
  let drawn = 0; // how many characters of the line were drawn, one random number each
  let follows = false; // whether what is written is kept in sight
  /** @type {End & { ids: number[] }} */
  let seen = { lens: data.lens, weights: data.weights, ids: line };
  /** @type {{ key: string, top: number[] } | undefined} */
  let usual; // IDs that the trained model holds likeliest after a line in its own order, its key
  let shown = 0; // the head whose attention colours the line
  /** @type {Set<number>} */
  const off = new Set(); // heads that are switched off

  /* --- what stands there --- */

  const { area, note, label } = ownLine(data.text, typed);
  const first = button("one character", one);
  const stop = button("stop", halt);
  const allOn = button("all heads on", switchAllOn);
  const text = make("p", {
    class: "lmg-text",
    tabindex: 0,
    role: "region",
    "aria-label": "What it writes",
  });
  const bars = make("table", { class: "lmg-bars" });
  const lens = make("table", { class: "lmg-lens" });
  const colours = make("p", { class: "play-shades" });
  const summary = make("p", { class: "lmg-summary" });
  const { live, later } = announcer(tell);
  const cells = headIndices.map((_, head) =>
    button("", () => toggle(head), {
      "aria-label": `switch off ${title(head)}`,
      onfocus: () => showHead(head),
      onmouseenter: () => showHead(head),
    }),
  );
  const grid = make(
    "div",
    {
      class: "lmg-grid",
      role: "group",
      "aria-label": "Heads",
      onkeydown: moveFocus,
      style: `--heads: ${heads}`,
    },
    ...cells,
  );
  /**
   * A slider of how characters are drawn; it begins at its end if no value is given.
   *
   * @type {(
   *   name: string, min: number, max: number, step: number, value?: number
   * ) => ReturnType<typeof slider>}
   */
  const range = (name, min, max, step, value = max) =>
    slider(name, { min, max, step, value, oninput: () => answer() });
  const sliders = {
    temperature: range("temperature", 0, 2, 0.05, data.temperature),
    top_k: range("top-k", 1, alphabet.length, 1),
    top_p: range("top-p", 0.05, 1, 0.05),
  };
  const writing = [
    controls(first, button("go on", more), stop, button("draw again", drawAgain)),
    controls(...Object.values(sliders).map(({ label }) => label)),
    text,
  ];
  const inside = [
    make(
      "div",
      { class: "play-both" },
      make("div", {}, "The next character (mark: at temperature 1, none left out)", bars),
      make("div", {}, "If the model ended after a layer", lens),
    ),
    "What each head attends to from the last character. A row is a layer; a click switches a head off.",
    grid,
    allOn,
    summary,
    colours,
  ];
  const { worlds, remains, label: switchLabel } = learnedSwitch(changeWorld, "shuffled characters");
  const world = controls(switchLabel);
  const lines = data.lines.map((line) =>
    button(`“${line}”`, () => {
      area.value = line;
      typed();
    }),
  );
  element.append(
    label,
    note,
    world,
    remains,
    ...(lines.length ? [controls(...lines), ...inside, ...writing] : [...writing, ...inside]),
    live,
    data.own ? sayOwn(element, leaveOwn) : offerOwn(context, useOwn),
  );
  element.addEventListener("focusin", () => gpt.load().catch(() => {}), { once: true });

  /* --- what it answers to --- */

  /* Set `line` to the IDs of what is typed: its last LONGEST characters, without those that the
     model does not know; if none is left, an end of line. Return what is to be said of what the
     model does not see, or "". */
  function read() {
    const all = Array.from(area.value);
    const last = all.slice(-LONGEST);
    const strange = Array.from(new Set(last.filter((c) => !alphabet.includes(c))), named);
    line = encode(last).filter((id) => id >= 0);
    if (!line.length) line = [Math.max(0, alphabet.indexOf("\n"))];
    let message = neverRead(strange);
    if (line.length > room || all.length > LONGEST)
      message += `It sees the last ${plural(tail(line, room).length, "character")}.`;
    return message;
  }

  /* How characters are drawn, as `nextProbs` takes it: temperature, top_k, top_p. */
  const sampling = () =>
    Object.fromEntries(Object.entries(sliders).map(([name, { input }]) => [name, +input.value]));

  /**
   * Ask about the line, then write until `goal` characters stand after it. A newer call ends
   * this one. An error is told below the line.
   *
   * @param {number[]} [known] IDs of what stands after it already
   */
  async function answer(known = []) {
    written = known;
    follows = false;
    stop.disabled = false;
    const message = read();
    const asked = tail(line, room);
    const ids = worlds.value === WORLDS.shuffled ? reordered(asked, SEED, true) : asked;
    line.splice(line.length - ids.length, ids.length, ...ids);
    note.textContent = message;
    draw();
    try {
      const { config } = await gpt.load((share) => {
        note.textContent = `Loading ${gpt.size}: ${percent(share)}. ${message}`;
      });
      note.textContent = message;
      if (config.alphabet !== data.alphabet) throw new Error("the site carries another one");
      const ablate = Array.from(off, (head) => headIndices[head]);
      const keep = ["blocks.*.lens", "blocks.*.attention.weights"];
      const result = await gpt.forward(ids, { keep, ablate, logits_of: [] }, lane);
      if (!result) return;
      keepEnd(ids, result.kept);
      tellLeft(asked, ablate);
      const count = Math.max(0, goal - written.length);
      const options = { ...sampling(), seed, drawn: drawn + written.length, ablate, count };
      if (!(await gpt.write(tail([...line, ...written], room), options, onPieces, lane))) return;
    } catch (error) {
      note.textContent = `The model does not answer: ${error.message}`;
    }
    stop.disabled = true;
  }

  /**
   * Say how many of the FEW likeliest next characters of the trained model, which reads the line in
   * its own order, are also among those of the changed one. If the switch says "as it is",
   * nothing is said: they are kept in `usual`.
   *
   * @param {number[]} asked the IDs of the line in its own order
   * @param {[layer: number, head: number][]} ablate heads that are switched off
   */
  async function tellLeft(asked, ablate) {
    /* The IDs that are likeliest now. */
    const top = () => largest(seen.lens[seen.lens.length - 1], FEW);
    const key = JSON.stringify([asked, ablate]);
    if (worlds.value === WORLDS.asItIs) {
      usual = { key, top: top() };
      remains.textContent = "";
      return;
    }
    // What is seen, and the switch, may be others once the trained model has answered.
    const now = top();
    const world = worlds.value;
    if (usual?.key !== key && !data.own) {
      const logits_of = [asked.length - 1];
      const trained = openModel(data.store, context);
      const result = await trained.forward(asked, { ablate, logits_of }, `${lane} usual`);
      if (result?.logits) usual = { key, top: largest(Array.from(result.logits), FEW) };
    }
    if (usual?.key !== key || worlds.value !== world) return;
    remains.textContent = leftSentence(world, leftOf(usual.top, now));
  }

  /**
   * Of what the model computed, keep in `seen` what is at the last character, and draw it.
   *
   * @param {number[]} ids that it read
   * @param {Answer["kept"]} activations the lens and the attention of each layer
   */
  function keepEnd(ids, activations) {
    seen = {
      ids,
      lens: data.lens.map((_, layer) => lastRow(activations[`blocks.${layer}.lens`])),
      weights: headIndices.map(([layer, head]) =>
        lastRow(activations[`blocks.${layer}.attention.weights`], head),
      ),
    };
    draw();
  }

  /**
   * Show what the model has written since the last call.
   *
   * @param {Piece[]} tokens
   */
  function onPieces(tokens) {
    written.push(...tokens.map(({ id }) => id));
    drawText();
    if (follows) text.scrollTop = text.scrollHeight;
  }

  /* The reader changed the line: begin with the first random number again. */
  function typed() {
    drawn = 0;
    answer();
  }

  /* The first character that was written becomes part of the line. */
  function one() {
    area.value += alphabet[written[0]];
    drawn += 1;
    answer(written.slice(1));
  }

  /* Write MORE characters, up to MOST. */
  function more() {
    goal = Math.min(MOST, goal + MORE);
    answer(written);
    follows = true; // what is written stays in sight
  }

  /* Stop; what is written stays. */
  function halt() {
    gpt.cancel(lane);
    goal = Math.max(2, written.length);
    stop.disabled = true;
  }

  /**
   * Switch a head off, or on again, and answer anew.
   *
   * @param {number} head
   */
  function toggle(head) {
    if (!off.delete(head)) off.add(head);
    answer();
  }

  /* Switch all heads on again, and answer anew. */
  function switchAllOn() {
    off.clear();
    answer();
  }

  /* Ask the model as it was trained, or the one whose weights are shuffled. */
  function changeWorld() {
    gpt.cancel(lane);
    if (data.own) gpt.end();
    gpt = open(worlds.value === WORLDS.random ? SEED : null);
    answer();
  }

  /**
   * Begin again with the reader's model: the view is made anew in the same element.
   *
   * @param {Config} config of the model
   * @param {Uint8Array<ArrayBuffer>} own the model, as `asStore` of own-model.js makes it
   */
  function useOwn({ alphabet = "", layers, heads, context: room, vocab_size }, own) {
    gpt.cancel(lane);
    const text = area.value.slice(-room);
    const unknown = new Array(vocab_size).fill(0); // until it answers
    const end = {
      weights: new Array(layers * heads).fill([1]),
      lens: new Array(layers).fill(unknown),
    };
    const model = { book: data, own, alphabet, heads, room };
    element.replaceChildren();
    mount(element, { ...data, ...model, ...end, goal, text, written: "", lines: [] }, context);
  }

  /* Begin again with the book's model (`data` is that of the reader's model). */
  function leaveOwn() {
    gpt.end();
    element.replaceChildren();
    mount(element, data.book, context);
  }

  /* Write anew, by other random numbers. */
  function drawAgain() {
    seed += 1;
    answer();
  }

  /**
   * Arrow keys go from head to head.
   *
   * @param {KeyboardEvent} event
   */
  function moveFocus(event) {
    const step = arrow(event);
    if (!step) return;
    event.preventDefault();
    cells[shown + step[0] + heads * step[1]]?.focus();
  }

  /**
   * Show the attention of a head.
   *
   * @param {number} head
   */
  function showHead(head) {
    shown = head;
    drawLine();
  }

  /* --- drawing --- */

  /* Draw all that can change: the bars (a mark at each is the probability at temperature 1, no
     character left out), the lens, the heads, and both texts. */
  function draw() {
    const [final, ...others] = seen.lens // the last layer's probabilities, then those before it
      .map((logits) => softmax(Float64Array.from(logits)))
      .reverse();
    const shares = nextProbs(Float64Array.from(seen.lens[seen.lens.length - 1]), sampling());
    for (const { input, value } of Object.values(sliders))
      value.textContent = Number(input.max) > 2 && input.value === input.max ? "all" : input.value;
    bars.replaceChildren(
      ...largest(final, BARS).map((id) =>
        row(visible(alphabet[id]), bar(shares[id], final[id]), percent(shares[id], 1)),
      ),
    );
    lens.replaceChildren(
      ...[final, ...others]
        .reverse()
        .map((shares, layer) =>
          row(
            `layer ${layer}`,
            ...largest(shares, FIRST).map(
              (id) => `${visible(alphabet[id])} ${percent(shares[id])}`,
            ),
          ),
        ),
    );
    cells.forEach((cell, head) => {
      cell.setAttribute("aria-pressed", String(off.has(head)));
      cell.replaceChildren(
        strokes(seen.weights[head]),
        make("small", {}, headIndices[head].join(".")),
      );
    });
    allOn.disabled = !off.size;
    drawText();
    drawLine();
  }

  /* The end of the line, and what is written after it. */
  function drawText() {
    text.replaceChildren(decode(line.slice(-2 * room)), make("b", {}, decode(written)));
    first.disabled = !written.length;
    later();
  }

  /* Colour the line by the attention of the head that is shown, and say where most of it goes. */
  function drawLine() {
    const weights = seen.weights[shown];
    const [best] = largest(weights, 1);
    const distance = weights.length - 1 - best;
    const spans = seen.ids.map((id, i) =>
      make("span", { style: `--share: ${weights[i]}` }, visible(alphabet[id])),
    );
    cells.forEach((cell, head) => {
      cell.tabIndex = head === shown ? 0 : -1;
    });
    summary.textContent =
      `${title(shown)}${off.has(shown) ? ", switched off," : ""} attends most to ` +
      `“${spans[best].textContent}”, ` +
      `${distance ? `${plural(distance, "character")} before the last` : "the last itself"}, ` +
      `with ${percent(weights[best])} of its attention`;
    colours.replaceChildren(...spans);
  }

  /* What is read out: the first three rows of the bars, each a character and its probability, and
     the first 100 characters that were written. */
  function tell() {
    const next = Array.from(
      bars.rows,
      ({ cells }) => `${cells[0].textContent} ${cells[2].textContent}`,
    );
    return `Next: ${next.slice(0, 3).join(", ")}. It goes on: ${decode(written.slice(0, 100))}`;
  }

  draw();
  if (data.own) answer();
  const state = {
    world: worlds,
    text: area,
    ...Object.fromEntries(Object.entries(sliders).map(([name, { input }]) => [name, input])),
    dice: countField(
      () => seed,
      (number) => {
        seed = number;
      },
      () => Number.MAX_SAFE_INTEGER,
    ),
    drawn: countField(
      () => drawn,
      (number) => {
        drawn = number;
      },
      () => LONGEST,
    ),
    goal: countField(
      () => goal,
      (number) => {
        goal = number;
      },
      () => MOST + 1,
    ),
    head: countField(
      () => shown,
      (head) => {
        shown = head;
      },
      () => headIndices.length,
    ),
    /* Heads that are switched off: layer.head layer.head. */
    off: {
      get: () => Array.from(off, (head) => headIndices[head].join(".")).join(" "),
      /* Switch off the heads that the line names, and no others. */
      set(/** @type {string} */ line) {
        const names = headIndices.map((indices) => indices.join("."));
        off.clear();
        for (const head of line.split(" ").map((name) => names.indexOf(name)))
          if (head >= 0) off.add(head);
      },
    },
  };
  const whole = stateOf(data.own ? shared(state) : state, answer);
  const now = data.own ? ownState(whole, leaveOwn) : whole;
  follow(context.root, now);
  return { state: now };

  /**
   * The fields of a link that the book's model takes, made of those of the reader's model: none of
   * heads, and a top-k that is at most the size of the book's alphabet, and just this size if it
   * leaves no character out.
   *
   * @param {Record<string, Field>} fields of the reader's model
   */
  function shared({ head, off, ...rest }) {
    const all = Array.from(data.book.alphabet).length;
    /* The slider's top-k. */
    const few = () => +sliders.top_k.input.value;
    /* The top-k that the link carries. */
    const get = () => (few() === alphabet.length ? all : Math.min(few(), all));
    // It is not set: a link is taken by the book’s model (`leaveOwn`).
    return { ...rest, top_k: { get, set() {} } };
  }
}
