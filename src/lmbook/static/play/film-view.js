/* The view *film*: a training to move through. `lmcourse.views.film` gives what the study
   recorded of each stop, and what the model at the first one shown does with a line; the
   weights of all stops come when the reader first moves or types.

   What is written is a function of the line, the stop and the seed alone. */

import source from "worker:./film-worker.js";
import { Client } from "./client.js";
import {
  announcer,
  arrow,
  bar,
  button,
  controls,
  count,
  countField,
  make,
  ownLine,
  percent,
  plural,
  row,
  select,
  slider,
  stateOf,
  svg,
} from "./dom.js";
import { softmax } from "./engine.js";
import { argmax } from "./numbers.js";
import { reordered } from "./random.js";
import { visible } from "./text.js";

/** @import { Answer } from "./engine.js" */
/** @import { Piece } from "./writing.js" */

/**
 * What the study recorded of a stop.
 *
 * @typedef {object} Stop
 * @property {number} step how many steps of training were made
 * @property {number} train the loss on the training text, in nats a character
 * @property {number} held_out the loss on held-out text, in nats a character
 * @property {number[]} agrees by the length of n-grams, 1 first: the share of all positions at
 *   which the model's likeliest character is also theirs
 * @property {number} closest the length at which that share is largest
 * @property {string} told a sentence on this stop
 */

/**
 * A stop at which something begins: its position, its name, and a sentence.
 *
 * @typedef {{ stop: number, name: string, told: string }} Named
 */

/**
 * What the model of one stop computes at the last character of a line.
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
 * @property {number} stop the position of the one to begin with
 * @property {number} seed of the random numbers with which characters are drawn
 * @property {number} temperature at which they are drawn
 * @property {number} room the most characters that the model sees
 * @property {string} alphabet of the model: the character of each ID
 * @property {number} heads in a layer
 * @property {number} head the one to begin with, counted layer by layer
 * @property {Named[]} named stops that have a button
 * @property {number[]} ngrams the loss of n-gram models on held-out text, of 1 character first
 * @property {string} cost how many nats the storing changed the loss at most
 * @property {Stop[]} stops
 */

const COUNT = 120; // characters that are written
const LONGEST = 1000; // characters of a line that are read, from its end
const FIRST = 3; // characters of each layer of the lens
const PAUSE = 1600; // milliseconds at a stop while it plays
const SEED = 1; // of the other order
/* Of the curve in pixels: its size, and the margins around it. */
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [400, 230, 40, 10, 26, 34];

/** @type {Client | undefined} of all views of the page */
let shared;
let views = 0;

/** The weights of all stops, in a worker of their own. */
class FilmClient extends Client {
  /**
   * Make a client of the store *film*; the worker starts when it is first asked.
   *
   * @param {ViewContext} context of the view
   */
  constructor(context) {
    super("film", context, source);
  }
}

/**
 * Draw the losses at all stops over log(1 + step), since most happens early, and as level lines
 * the losses of the n-gram models of length 1, of length 2 and of the best length.
 *
 * @param {Stop[]} stops
 * @param {number[]} ngrams the loss of n-gram models by length, 1 first
 * @returns {{ picture: SVGSVGElement, mark: (stop: number) => void }} the drawing; and what marks
 *   a stop in it
 */
function curve(stops, ngrams) {
  const losses = stops.flatMap(({ train, held_out }) => [train, held_out]);
  const best = ngrams.indexOf(Math.min(...ngrams));
  const top = Math.max(...losses);
  const bottom = Math.min(...losses, ngrams[best]) - 0.1;
  const end = Math.log1p(stops[stops.length - 1].step);
  /**
   * The x of a step.
   *
   * @param {number} step
   */
  const x = (step) => LEFT + (Math.log1p(step) / end) * (WIDTH - LEFT - RIGHT);
  /**
   * The y of a loss.
   *
   * @param {number} loss
   */
  const y = (loss) => TOP + ((top - loss) / (top - bottom)) * (HEIGHT - TOP - BOTTOM);
  const picture = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: "img",
    class: "lmf-curve",
  });
  picture.append(svg("text", { x: 0, y: 13 }, "loss (nats a character) after so many steps"));
  for (const order of new Set([0, 1, best])) {
    const height = y(ngrams[order]);
    picture.append(
      svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: height, y2: height, class: "lmf-ngrams" }),
      svg(
        "text",
        { x: LEFT + 4, y: order === best ? height + 15 : height - 5 },
        `${order + 1}-grams`,
      ),
      svg("text", { x: 0, y: height + 5 }, ngrams[order].toFixed(2)),
    );
  }
  for (const which of /** @type {const} */ (["train", "held_out"]))
    picture.append(
      svg("path", {
        d: `M${stops.map((stop) => `${x(stop.step)} ${y(stop[which])}`).join("L")}`,
        class: `lmf-${which}`,
      }),
    );
  const low = HEIGHT - 8;
  for (const step of [0, 10, 100, 1000].filter((step) => step <= stops[stops.length - 1].step))
    picture.append(svg("text", { x: x(step), y: low, "text-anchor": "middle" }, step));
  const line = svg("line", { y1: TOP - 4, y2: HEIGHT - BOTTOM, class: "lmf-now" });
  const dot = svg("circle", { r: 5, class: "lmf-dot" });
  picture.append(line, dot);
  return {
    picture,
    /* Show a stop: a line at its step, a dot at its loss, and both losses in words. */
    mark(stop) {
      const { step, held_out, train } = stops[stop];
      line.setAttribute("x1", String(x(step)));
      line.setAttribute("x2", String(x(step)));
      dot.setAttribute("cx", String(x(step)));
      dot.setAttribute("cy", String(y(held_out)));
      const onHeldOut = `${held_out.toFixed(2)} on held-out text`;
      const lossText = `${onHeldOut}, ${train.toFixed(2)} on training text`;
      picture.setAttribute(
        "aria-label",
        `The loss falls; after ${plural(step, "step")} it is ${lossText}.`,
      );
    },
  };
}

/**
 * Mount the view *film*: what a GPT does with a line at each stop (checkpoint) of its training,
 * which the reader chooses with a slider. In it, a head is a number, counted layer by layer.
 *
 * @param {HTMLElement} element empty
 * @param {Settings & End} data
 * @param {ViewContext} context
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data, context) {
  const { stops, named, heads, room } = data;
  const alphabet = Array.from(data.alphabet);
  shared ??= new FilmClient(context);
  const film = shared;
  const lane = `film ${++views}`; // of this view's requests
  const last = stops.length - 1;
  /** @type {[layer: number, head: number][]} */
  const headIndices = data.weights.map((_, i) => [Math.floor(i / heads), i % heads]);
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
  let line = encode(data.text);
  let written = encode(data.written);
  let { seed, head } = data;
  let playing = 0; // the timer of the next stop; 0 if it does not play
  let loaded = false; // whether the weights have come
  /** @type {(End & { ids: number[], stop: number }) | null} null: the line is not read yet */
  let seen = { lens: data.lens, weights: data.weights, ids: line, stop: data.stop };

  /* --- what stands there --- */

  const steps = slider("Steps of training", {
    ...{ min: 0, max: last, step: 1, value: data.stop },
    oninput: moved,
  });
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const play = still
    ? button("Next stop", () => goTo(now() === last ? 0 : now() + 1))
    : button("Play", () => {
        if (playing) rest();
        else begin();
      });
  const jumps = named.map(({ stop, name }) =>
    button(name, () => goTo(stop), { "aria-pressed": "false" }),
  );
  const description = make("p", { class: "lmf-told", role: "status" });
  const { picture, mark } = curve(stops, data.ngrams);
  const agreement = make("table", { class: "lmf-bars" });
  const { area, note, label } = ownLine(data.text, typed);
  const order = select(["as it is", "shuffled characters"], ask);
  const remains = make("p", { class: "play-remains", role: "status" });
  const text = make("p", {
    ...{ class: "lmf-text", tabindex: 0, role: "region" },
    "aria-label": "What it writes",
  });
  const lens = make("table", { class: "lmf-lens" });
  const cells = headIndices.map(([layer, number], i) =>
    button(`${layer}.${number}`, () => showHead(i), {
      "aria-label": `head ${number} of layer ${layer}`,
      onfocus: () => showHead(i),
    }),
  );
  const grid = make(
    "div",
    { class: "lmf-grid", role: "group", "aria-label": "Heads", onkeydown: moveFocus },
    ...cells,
  );
  grid.style.setProperty("--heads", String(heads));
  const summary = make("p", { class: "lmf-summary" });
  const colours = make("p", { class: "play-shades" });
  const { live, later } = announcer(tell);
  const size =
    `The weights of all ${stops.length} stops (${film.size}) ` +
    "come when you first move the slider, press a button or type.";
  const stored = `They are stored in few bits, which changed the loss by at most ${data.cost} nats.`;
  const sizeNote = make("p", { class: "lmf-about" }, size, " ", stored);
  element.append(
    make("div", { class: "lmf-steps" }, play, steps.label),
    make("p", { class: "play-words lmf-named" }, ...jumps),
    description,
    make(
      "div",
      { class: "play-both" },
      make("div", { class: "lmf-half" }, picture, key()),
      make(
        "div",
        { class: "lmf-half" },
        "Share of positions at which its likeliest next character is that of n-grams (mark: after the last step)",
        agreement,
      ),
    ),
    label,
    note,
    controls(
      make("label", {}, "Had it learned nothing? ", order),
      make("span", { class: "play-muted" }, "Random weights: that is step 0."),
    ),
    remains,
    text,
    controls(button("draw again", drawAgain)),
    make(
      "div",
      { class: "play-both" },
      make("div", { class: "lmf-half" }, "If the model ended after a layer", lens),
      make("div", { class: "lmf-half" }, "What a head attends to from the last character", grid),
    ),
    summary,
    colours,
    sizeNote,
    live,
  );

  /* The legend of the curve. */
  function key() {
    /**
     * One of its entries.
     *
     * @type {(kind: "held_out" | "train", name: string) => HTMLElement}
     */
    const entry = (kind, name) => make("span", { class: `lmf-key lmf-${kind}` }, name);
    return make("p", {}, entry("held_out", "held-out text"), " ", entry("train", "training text"));
  }

  /* --- what it answers to --- */

  /* The position of the stop at which the slider stands. */
  const now = () => Number(steps.input.value);

  /**
   * Go to a stop, and stay there.
   *
   * @param {number} stop
   */
  function goTo(stop) {
    rest();
    steps.input.value = String(stop);
    arrived();
  }

  /* The reader moved the slider: stay there. */
  function moved() {
    rest();
    arrived();
  }

  /* Show the stop at which the slider stands, and ask the model of that time. */
  function arrived() {
    drawStop();
    ask();
  }

  /* Play from here, or from the beginning if this is the end. */
  function begin() {
    if (now() === last) steps.input.value = "0";
    play.textContent = "Stop";
    playing = -1; // until there is a timer
    arrived();
  }

  /* Play no further. */
  function rest() {
    clearTimeout(playing);
    if (playing) play.textContent = "Play";
    playing = 0;
  }

  /* Once a stop is shown, wait for the next. */
  function goOn() {
    if (!playing) return;
    clearTimeout(playing);
    if (now() === last || !element.isConnected) return rest();
    playing = window.setTimeout(() => {
      steps.input.value = String(now() + 1);
      arrived();
    }, PAUSE);
  }

  /* The reader changed the line: play no further, and ask about it. */
  function typed() {
    rest();
    ask();
  }

  /* Write anew, by other random numbers. */
  function drawAgain() {
    rest();
    seed += 1;
    ask();
  }

  /**
   * Read the line: its last LONGEST characters, without those that the model does not know, and of
   * these no more than it sees; an end of line if none is left.
   *
   * @returns {{ ordered: number[], message: string }} the IDs that the model sees, in the order
   *   of the line; and a sentence on what is left out, or ""
   */
  function read() {
    const all = Array.from(area.value).slice(-LONGEST);
    const known = encode(all).filter((id) => id >= 0);
    // The model has to read something: where it knows no character, the end of a line before.
    const ordered = known.length ? known.slice(-room) : [Math.max(0, alphabet.indexOf("\n"))];
    const strange = all.length - known.length;
    let message = "";
    if (strange === 1) message = "Left out: one character that it has never read. ";
    if (strange > 1) message = `Left out: ${strange} characters that it has never read. `;
    if (known.length > room) message += `It sees the last ${plural(room, "character")}.`;
    return { ordered, message };
  }

  /* Ask the model at this stop about the line, and let it write; while it plays, go on to the next
     stop then. A newer call ends this one. If the model does not load or answer, the note below the
     line says why, and it plays no further: nothing is thrown. */
  async function ask() {
    const { ordered, message } = read();
    const stop = now();
    const mixed = order.value === "1";
    line = mixed ? reordered(ordered, SEED, true) : ordered;
    remains.textContent = mixed ? "The characters before the last are in another order." : "";
    written = [];
    if (!loaded) seen = null;
    note.textContent = message;
    draw();
    try {
      await film.load((share) => {
        note.textContent = `Loading ${film.size}: ${percent(share)}. ${message}`;
      });
      loaded = true;
      note.textContent = message;
      const keep = ["blocks.*.lens", "blocks.*.attention.weights"];
      const options = { keep, logits_of: [] }; // the lens of the last layer is the logits
      const ids = line;
      const result = await film.when("forward", { stop, ids, options }, lane);
      if (!result) return;
      seen = { ...endOf(result.kept), ids, stop };
      draw();
      const sampling = { seed, temperature: data.temperature, count: COUNT };
      const wrote = await film.when("write", { stop, ids, options: sampling }, lane, onPieces);
      if (!wrote) return;
      if (mixed) await tellLeft(stop, ordered);
      later();
      goOn();
    } catch (error) {
      rest();
      note.textContent = `The model does not answer: ${error.message}`;
    }
  }

  /**
   * Say whether the likeliest next character is the same as after the line in its own order;
   * nothing if something else is shown by the time that the model has answered.
   *
   * @param {number} stop whose model is asked
   * @param {number[]} ids the line in its own order
   */
  async function tellLeft(stop, ids) {
    const shown = seen;
    const options = { logits_of: [ids.length - 1] };
    const result = await film.when("forward", { stop, ids, options }, `${lane} order`);
    if (!result || !shown || seen !== shown) return;
    const usual = alphabet[argmax(result.logits)];
    const here = alphabet[argmax(shown.lens[shown.lens.length - 1])];
    remains.textContent =
      usual === here
        ? "With the characters before the last in another order, " +
          `its likeliest next character is the same: “${visible(usual)}”.`
        : "With the characters before the last in another order, " +
          `its likeliest next character is “${visible(here)}” instead of “${visible(usual)}”.`;
  }

  /**
   * Of what the model computed, what is at the last character.
   *
   * @param {Answer["kept"]} activations the lens and the attention of each layer
   * @returns {End}
   */
  function endOf(activations) {
    /**
     * The last row of a matrix, or of the matrix of one head.
     *
     * @type {(name: string, layer: number, head?: number) => number[]}
     */
    const end = (name, layer, head = 0) => {
      const { values, shape } = activations[`blocks.${layer}.${name}`];
      const [rows, width] = shape.slice(-2);
      return Array.from(values.slice(((head + 1) * rows - 1) * width, (head + 1) * rows * width));
    };
    return {
      lens: data.lens.map((_, layer) => end("lens", layer)),
      weights: headIndices.map((indices) => end("attention.weights", ...indices)),
    };
  }

  /**
   * Show what the model has written since the last call.
   *
   * @param {Piece[]} tokens
   */
  function onPieces(tokens) {
    written.push(...tokens.map(({ id }) => id));
    drawText();
  }

  /**
   * Arrow keys go from head to head: left and right to the one before and behind, up and down to
   * the one in the layer above and below.
   *
   * @param {KeyboardEvent} event
   */
  function moveFocus(event) {
    const step = arrow(event);
    if (!step) return;
    event.preventDefault();
    cells[head + step[0] + heads * step[1]]?.focus();
  }

  /**
   * Show the attention of a head.
   *
   * @param {number} chosen counted through all layers
   */
  function showHead(chosen) {
    head = chosen;
    drawHead();
  }

  /* --- drawing --- */

  /* Show what the study recorded of this stop. */
  function drawStop() {
    const stop = now();
    const { step, agrees, closest, told: sentence } = stops[stop];
    const here = named.filter((each) => each.stop === stop);
    steps.value.textContent = count(step);
    steps.input.setAttribute("aria-valuetext", plural(step, "step"));
    jumps.forEach((jump, i) => jump.setAttribute("aria-pressed", String(named[i].stop === stop)));
    const nothing = stop === 0 ? ["This model has learned nothing: its weights are random."] : [];
    description.replaceChildren(
      ...[...nothing, ...here.map((each) => each.told)].flatMap((each) => [
        make("b", {}, each),
        " ",
      ]),
      sentence,
    );
    agreement.replaceChildren(
      ...agrees.map((share, i) => {
        const line = row(`${i + 1}-grams`, bar(share, stops[last].agrees[i]), percent(share));
        line.classList.toggle("lmf-closest", i + 1 === closest);
        return line;
      }),
    );
    mark(stop);
  }

  /* Draw what the model makes of the line: lens, text and attention. */
  function draw() {
    lens.replaceChildren(
      ...data.lens.map((_, layer) => row(`layer ${layer}`, ...likeliestAt(layer))),
    );
    drawText();
    drawHead();
  }

  /**
   * The FIRST likeliest next characters if the model ended after a layer, each with its
   * probability, as texts; "…" for each while the line is not read.
   *
   * @param {number} layer
   */
  function likeliestAt(layer) {
    if (!seen) return Array(FIRST).fill("…");
    const shares = softmax(Float64Array.from(seen.lens[layer]));
    return Array.from(shares.keys())
      .sort((a, b) => shares[b] - shares[a] || a - b)
      .slice(0, FIRST)
      .map((id) => `${visible(alphabet[id])} ${percent(shares[id])}`);
  }

  /* Show the line, and what is written after it. */
  function drawText() {
    text.replaceChildren(decode(line), make("b", {}, decode(written)));
  }

  /* Colour the line by the attention of the chosen head, and say where most of it goes; only the
     choice is shown while the line is not read. */
  function drawHead() {
    cells.forEach((cell, i) => {
      cell.tabIndex = i === head ? 0 : -1;
      cell.setAttribute("aria-pressed", String(i === head));
    });
    if (!seen) return;
    const weights = seen.weights[head];
    const best = argmax(weights);
    const away = weights.length - 1 - best;
    const spans = seen.ids.map((id, i) =>
      make("span", { style: `--share: ${weights[i]}` }, visible(alphabet[id])),
    );
    const [layer, number] = headIndices[head];
    summary.textContent =
      `Head ${number} of layer ${layer} attends most to “${spans[best].textContent}”, ` +
      `${away ? `${plural(away, "character")} before the last` : "the last itself"}, ` +
      `with ${percent(weights[best])} of its attention`;
    colours.replaceChildren(...spans);
  }

  /* What is read out: the step, and the first 60 characters that were written. */
  function tell() {
    return `After ${plural(stops[now()].step, "step")} it goes on: ${decode(written.slice(0, 60))}`;
  }

  drawStop();
  draw();
  const state = {
    stop: {
      get: now,
      set: (/** @type {number} */ stop) => {
        if (stop in stops) steps.input.value = String(stop);
      },
    },
    order,
    text: area,
    dice: countField(
      () => seed,
      (number) => {
        seed = number;
      },
      () => Number.MAX_SAFE_INTEGER,
    ),
    head: countField(
      () => head,
      showHead,
      () => headIndices.length,
    ),
  };
  return { state: stateOf(state, arrived) };
}
