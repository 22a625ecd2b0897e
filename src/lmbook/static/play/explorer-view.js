/* The view *BERT explorer*: a line, and what each head of a BERT does with it.
   `lmcourse.views.bert_explorer` gives a line of which all is known; for the reader's own
   lines the weights are loaded, after a click. What takes a run of its own (a head removed,
   neighbours) is asked for when it is first to be seen. A switch puts random weights in the
   model's place, or the line's words in another order. */
import { openModel } from "./client.js";
import {
  announcer,
  arrow,
  button,
  changedHow,
  countField,
  fixed,
  heading,
  learnedSwitch,
  make,
  megabytes,
  ownLine,
  percent,
  row,
  stateOf,
  WORLDS,
} from "./dom.js";
import { argmax } from "./numbers.js";
import { inAnotherOrder, ONE_ORDER, SEED } from "./own-lines.js";
import { readText } from "./store.js";
import { quoted } from "./text.js";
import { shown, WordPiece } from "./tokenizers.js";

const LONGEST = 5000; // characters of a line that are cut into tokens
const NEAREST = 6; // tokens of the table that are shown
const COLUMNS = ["weight", "weight × length", "moved without it"];
let views = 0;

/** @typedef {number[] | Float32Array} Numbers */

/**
 * A token of the table that is near, with the cosine.
 *
 * @typedef {[piece: string, cosine: number]} Near
 */

/**
 * What is known of the line that is shown. A line that the model has read here has ids, states
 * and the model, too. Level 0 is what the first layer is given, level n what layer n - 1 returns.
 *
 * @typedef {object} Seen
 * @property {string[]} tokens its pieces, in the order in which they were read
 * @property {Numbers[][]} weights of attention, [layer][head], (tokens · tokens): a row attends
 * @property {Numbers[][]} lengths of what each head fetches from a token, [layer][head], (tokens,)
 * @property {(Numbers | undefined)[][]} moved how far each token's final vector moves without a
 *   head, as a share of its length, [layer][head], (tokens,); undefined: not asked for yet
 * @property {(Near[] | undefined)[][]} near the nearest tokens of the table, [level][token];
 *   undefined: not asked for yet
 * @property {number[]} order for each token its position in the line as it was written
 * @property {number[]} [ids] of the tokens
 * @property {Float32Array[]} [states] [level], (tokens · d_model)
 * @property {Client} [model] that has read it
 */

/**
 * What a model does with the line to begin with, in texts: a line for what is an array in Seen.
 *
 * @typedef {object} Measured
 * @property {string[][]} weights [layer][head], numbers with spaces between
 * @property {string[][]} lengths [layer][head]
 * @property {string[][]} moved [layer][head]
 * @property {string[][]} near [level][token], pieces and cosines in turn
 */

/**
 * @typedef {object} Own
 * @property {string} text the line to begin with
 * @property {string[]} tokens of it
 * @property {Measured} [untrained] what is measured of the model with random weights
 * @property {number} room the most tokens of a line
 * @property {number[]} around the ids before and after a line
 * @property {number} drift how far rounding moves the states, as a share of the largest number
 * @property {number} layer that is chosen to begin with
 * @property {number} head that is chosen to begin with
 * @property {number} token position of the one that is chosen to begin with
 */

/** @typedef {Measured & Own} Data */
/** @import { Client } from "./client.js" */
/** @import { Answer, ForwardOptions } from "./engine.js" */

/**
 * Numbers of a line with spaces between.
 *
 * @type {(line: string) => number[]}
 */
const numbers = (line) => line.split(" ").map(Number);
/**
 * How far each row has moved, as a share of its length before.
 *
 * @param {Float32Array} before (rows, width)
 * @param {Float32Array} after (rows, width)
 * @param {number} width
 * @returns {number[]}
 */
function distances(before, after, width) {
  return Array.from({ length: before.length / width }, (_, row) => {
    let moved = 0;
    let length = 0;
    for (let i = row * width; i < (row + 1) * width; i++) {
      moved += (after[i] - before[i]) ** 2;
      length += before[i] ** 2;
    }
    return Math.sqrt(moved / length);
  });
}

/**
 * A tensor's numbers in equal parts.
 *
 * @param {Float32Array} values
 * @param {number} count how many parts
 */
function parts(values, count) {
  const size = values.length / count;
  return Array.from({ length: count }, (_, i) => values.subarray(size * i, size * (i + 1)));
}

/**
 * Read pieces and cosines: "hope 0.550 hopes 0.463" → [["hope", 0.55], ["hopes", 0.463]].
 *
 * @type {(line: string) => Near[]}
 */
const pairs = (line) =>
  Array.from(line.matchAll(/(\S+) (\S+)/g), ([, piece, cosine]) => [piece, +cosine]);

/**
 * The numbers of lines, [layer][head].
 *
 * @type {(rows: string[][]) => number[][][]}
 */
const read = (rows) => rows.map((lines) => lines.map(numbers));

/**
 * What was measured of the line to begin with, as what is known of a line.
 *
 * @param {Measured} measured
 * @param {string[]} tokens of the line
 * @returns {Seen}
 */
const stored = (measured, tokens) => ({
  tokens,
  weights: read(measured.weights),
  lengths: read(measured.lengths),
  moved: read(measured.moved),
  near: measured.near.map((lines) => lines.map(pairs)),
  order: Array.from(tokens.keys()),
});

/**
 * What a model's answer says of a line; how far tokens move without a head, and which are near,
 * nobody has asked yet.
 *
 * @param {Answer["kept"]} kept the embeddings, and of each layer what it returns and its attention
 * @param {number} layers
 * @param {number} heads of each layer
 */
function seenIn(kept, layers, heads) {
  /**
   * What was kept of a layer: what it returns, or a part by its name.
   *
   * @type {(layer: number, name?: string) => Float32Array}
   */
  const of = (layer, name = "") => kept[`blocks.${layer}${name}`].values;
  /**
   * A list of what a function gives for each layer.
   *
   * @type {<Item>(f: (layer: number) => Item) => Item[]}
   */
  const each = (f) => Array.from({ length: layers }, (_, layer) => f(layer));
  return {
    weights: each((layer) => parts(of(layer, ".attention.weights"), heads)),
    lengths: each((layer) => parts(of(layer, ".attention.lengths"), heads)),
    moved: each(() => []),
    states: [kept.embeddings.values, ...each((layer) => of(layer))],
    near: [[], ...each(() => [])],
  };
}

/**
 * The weights of a head, rows and columns in the order in which the line was written.
 *
 * @param {Seen} line
 * @param {number} layer
 * @param {number} head
 * @returns {number[]} (tokens · tokens)
 */
function inOrderOf({ weights, order }, layer, head) {
  const inOrder = new Array(order.length ** 2);
  weights[layer][head].forEach((/** @type {number} */ weight, i) => {
    const row = order[Math.floor(i / order.length)];
    inOrder[row * order.length + order[i % order.length]] = weight;
  });
  return inOrder;
}

/**
 * Draw a small map of weights. How opaque a point is: the root of the weight, so that a tenth can
 * be seen.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {ArrayLike<number>} weights (count · count)
 * @param {number} count how many points stand in a row
 * @param {string} colour
 */
function drawMap(canvas, weights, count, colour) {
  canvas.width = count;
  canvas.height = count;
  const image = new ImageData(count, count);
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  for (let point = 0; point < weights.length; point++)
    image.data[4 * point + 3] = 255 * Math.sqrt(weights[point]);
  pen.putImageData(image, 0, 0);
  pen.globalCompositeOperation = "source-in"; // colour what is there
  pen.fillStyle = colour;
  pen.fillRect(0, 0, count, count);
}

/**
 * Cut a text into the tokens that the model reads.
 *
 * @param {string} text
 * @param {WordPiece} tokenizer
 * @param {number} room the most tokens of a line
 * @param {number[]} around the ids before and after a line
 * @returns {{ line: { id: number, piece: string }[], message: string }} the tokens; what the
 *   reader is told of what is left out or not known, or ""
 */
function cutLine(text, tokenizer, room, around) {
  const all = Array.from(text);
  const encoded = tokenizer.encode(all.slice(0, LONGEST).join(""));
  const tokens = encoded.slice(0, room - 2);
  const whole = tokens.length === encoded.length && all.length <= LONGEST;
  const messages = [
    whole ? "" : `Only the first ${tokens.length} tokens are read.`,
    encoded.length ? "" : "There is nothing to read here: two special tokens are left.",
    tokenizer.tellUnknown(tokens),
  ];
  const [first, last] = around.map((id) => ({ id, piece: tokenizer.vocabulary[id] }));
  return { line: [first, ...tokens, last], message: messages.filter(Boolean).join(" ") };
}

/**
 * An element with a class of this view.
 *
 * @type {(tag: "p" | "div" | "table", name: string, ...rest: (Node | string)[]) => HTMLElement}
 */
const part = (tag, name, ...rest) => make(tag, { class: `lmx-${name}` }, ...rest);

/**
 * Mount the view *BERT explorer*: the tokens of a line, and for each head of a BERT where a token
 * attends, and what changes without the head.
 *
 * @param {HTMLElement} element empty
 * @param {Data} data
 * @param {ViewContext} context
 * @returns its state, for links: see `stateOf` in dom.js; and `theme`, which is called when the
 *   page's colours change
 */
export function mount(element, data, context) {
  const layers = data.weights.length;
  const heads = data.weights[0].length;
  const { room } = data;
  const bert = openModel("bert", context);
  const random = openModel("bert", context, SEED); // the same with random weights
  const lane = `explorer ${++views}`; // how the lanes of this view's requests begin
  const bytes = bert.about.bytes + context.stores["bert-pieces"].bytes;
  const size = megabytes(bytes, 1);
  let { layer, head, token } = data;
  /** @type {number | null} */
  let wantedToken = null; // position that a link has chosen in a line that was not read yet
  let questions = 0; // only the last one may be answered
  /** @type {WordPiece | undefined} */
  let tokenizer;
  let seen = stored(data, data.tokens);
  let usual = seen; // what the trained model makes of the same line as it is

  /* --- what stands there --- */

  const { area, note, label } = ownLine(data.text, changed, { maxlength: LONGEST });
  const loader = button(`Load the model: ${size}`, load);
  const progress = make("progress", {
    max: 1,
    value: 0,
    hidden: "",
    "aria-label": "Loading the model",
  });
  const offer = make(
    "p",
    { class: "lmx-offer play-muted" },
    loader,
    progress,
    " Its weights are rounded to a byte each: on the book's own line, that moves the states by at most " +
      `${percent(data.drift, 1)} of their largest number.`,
  );
  const headIndices = Array.from({ length: layers * heads }, (_, i) => [
    Math.floor(i / heads),
    i % heads,
  ]);
  const canvases = headIndices.map(() => make("canvas"));
  const cells = headIndices.map(([l, h], i) =>
    button(canvases[i], () => choose(l, h, token), {
      role: "radio",
      title: `layer ${l}, head ${h}`,
      "aria-label": `layer ${l}, head ${h}`,
    }),
  );
  const grid = make(
    "div",
    {
      class: "lmx-grid",
      role: "radiogroup",
      "aria-label": "Heads, a row a layer",
      style: `--heads: ${heads}`,
      onkeydown: go,
    },
    ...cells,
  );
  const title = part("p", "title");
  const summary = part("p", "summary");
  const body = make("tbody", { onkeydown: go });
  const rows = part("table", "rows", heading("token", ...COLUMNS), body);
  const nearTitle = make("p");
  const near = part("div", "near");
  const { live, later } = announcer(() => summary.textContent);
  const { worlds, remains, label: worldLabel } = learnedSwitch(changed);
  element.append(
    make("p", { class: "lmx-world" }, worldLabel),
    label,
    note,
    offer,
    remains,
    part(
      "div",
      "all",
      part(
        "div",
        "heads",
        make("b", {}, "Every head"),
        ", a row a layer. In a square each row is a token that " +
          "attends, each column one that is attended to; the stronger the colour, the more weight.",
        grid,
      ),
      part("div", "three", title, summary, part("div", "scroll", rows)),
      part("div", "tokens", nearTitle, near),
    ),
    live,
  );
  let isKept = false;
  bert.cached().then((cached) => {
    isKept = Boolean(cached);
    if (cached) loader.textContent = `Open the model: your browser kept its ${size}`;
  });

  /* --- what it answers to --- */

  /* Load the trained model and its tokenizer, and read what is typed if it is not the line to begin
     with; an error is told below the line. */
  async function load() {
    loader.disabled = true;
    progress.hidden = false;
    note.textContent = "Loading …";
    try {
      const { config, notKept } = await bert.load((share) => {
        progress.value = share;
      });
      if (config.layers !== layers || config.heads !== heads)
        throw new Error("the site carries another one");
      tokenizer = new WordPiece(JSON.parse(await readText("bert-pieces", context)));
      loader.hidden = true;
      note.textContent = "The model is here: write a line.";
      if (notKept) offer.append(` They are not kept for the next visit: ${notKept}.`);
      if (document.activeElement === document.body) area.focus({ preventScroll: true });
      if (area.value !== data.text || worlds.value !== WORLDS.asItIs) await answer();
    } catch (error) {
      note.textContent = `The model does not load: ${error.message}`;
      loader.disabled = false;
    }
    progress.hidden = true;
  }

  /* The line or the switch is another: read it; if the model is not loaded, show what is stored of
     the line to begin with, or say that the model is needed. What the browser kept is opened. */
  function changed() {
    if (tokenizer) {
      answer();
      return;
    }
    if (loader.disabled) return; // it is on its way
    const isRandom = worlds.value === WORLDS.random && data.untrained;
    const isThere = area.value === data.text && (isRandom || worlds.value === WORLDS.asItIs);
    if (!isThere && isKept) {
      load();
      return;
    }
    note.textContent = isThere
      ? ""
      : "The model that reads this has to be loaded first; what stands below is still the book's line" +
        (isRandom ? "." : " as the trained model reads it.");
    seen = isRandom ? stored(isRandom, data.tokens) : usual;
    token = Math.min(token, seen.tokens.length - 1);
    draw();
  }

  /* Read the line that is typed as the switch says, and as the trained model reads it in order, and
     draw it. The chosen token stays the one at the same position of the line. Only the last call
     draws. */
  async function answer() {
    if (!tokenizer) return;
    const question = ++questions;
    const { line, message } = cutLine(area.value, tokenizer, room, data.around);
    note.textContent = message;
    for (const model of [bert, random]) model.cancel(lane);
    const isUsual = worlds.value === WORLDS.asItIs;
    if (!isUsual) remains.textContent = "Reading …";
    const inOrder = Array.from(line.keys());
    const isKnown = JSON.stringify(usual.ids) === JSON.stringify(line.map(({ id }) => id));
    const before = isKnown ? usual : await readLine(bert, line, inOrder);
    if (!before || question !== questions) return;
    usual = before;
    const now = isUsual ? before : await readChanged(line);
    if (!now || question !== questions) return;
    const position = Math.min(wantedToken ?? seen.order[token], line.length - 1); // as written
    seen = now;
    token = seen.order.indexOf(position);
    wantedToken = null;
    draw();
  }

  /**
   * What random weights make of a line, or the trained model of the line in another order, as the
   * switch says; null as in `readLine`.
   *
   * @param {{ id: number, piece: string }[]} line its tokens, as written
   */
  function readChanged(line) {
    if (worlds.value === WORLDS.random) return readLine(random, line, Array.from(line.keys()));
    return readLine(bert, line, inAnotherOrder(line.map(({ piece }) => piece)));
  }

  /**
   * What a model makes of a line; null if another question took its place, or after an error.
   *
   * @param {Client} model
   * @param {{ id: number, piece: string }[]} line its tokens, as written
   * @param {number[]} order in which the model reads them: positions in the line
   * @returns {Promise<Seen | null>}
   */
  async function readLine(model, line, order) {
    const ids = order.map((old) => line[old].id);
    const pieces = order.map((old) => line[old].piece);
    const keep = [
      "embeddings",
      "blocks.*",
      "blocks.*.attention.weights",
      "blocks.*.attention.lengths",
    ];
    const answered = await asked(() => model.forward(ids, { keep, logits_of: [] }, lane));
    if (!answered) return null;
    return { ...seenIn(answered.kept, layers, heads), ids, order, model, tokens: pieces };
  }

  /**
   * Ask the model; an error is told below the line, and the answer is null.
   *
   * @template Found
   * @param {() => Promise<Found | null>} question sends the request
   */
  async function asked(question) {
    try {
      return await question();
    } catch (error) {
      note.textContent = `The model does not answer: ${error.message}`;
      remains.textContent = "";
      return null;
    }
  }

  /* Find how far the final vectors move without the chosen head, if that is not known, and draw
     it. What is only stored, and was not read here, is left as it is. */
  async function remove() {
    const line = seen;
    const known = line.moved[layer];
    const removed = head; // another may be chosen before the answer comes
    const last = `blocks.${layers - 1}`;
    const { ids, states, model } = line;
    if (known[removed] || !ids || !states || !model) return;
    /** @type {ForwardOptions} */
    const options = { keep: [last], ablate: [[layer, removed]], logits_of: [] };
    const result = await asked(() => model.forward(ids, options, `${lane} removed`));
    if (!result) return;
    const { values, shape } = result.kept[last];
    known[removed] = distances(states[layers], values, shape[1]);
    if (line === seen) drawHead();
  }

  /**
   * Find the tokens of the table that are nearest to the chosen one, if that is not known, and draw
   * them.
   *
   * @param {number} level at which the chosen token's vector is taken
   */
  async function findNear(level) {
    const line = seen;
    const position = token; // another may be chosen before the answer comes
    const { ids, states, model } = line;
    if (line.near[level][position] || !ids || !states || !model || !tokenizer) return;
    const { vocabulary } = tokenizer;
    const vector = parts(states[level], ids.length)[position].slice();
    const neighbours = await asked(() =>
      model.nearest(vector, NEAREST, `${lane} near ${level - layer}`),
    );
    if (!neighbours) return;
    line.near[level][position] = neighbours.map(({ id, cosine }) => [vocabulary[id], cosine]);
    if (line === seen) drawNear();
  }

  /**
   * Choose a layer, a head and a token, and show what is known of them.
   *
   * @param {[layer: number, head: number, token: number]} indices
   */
  function choose(...indices) {
    [layer, head, token] = indices;
    wantedToken = null;
    drawHead();
    drawNear();
  }

  /**
   * Arrow keys go from head to head, and from token to token.
   *
   * @param {KeyboardEvent} event
   */
  function go(event) {
    const step = arrow(event);
    const container = /** @type {Element} */ (event.currentTarget);
    const columns = container === grid ? heads : 1;
    if (!step) return;
    event.preventDefault();
    const all = Array.from(container.querySelectorAll("button"));
    const now = all.indexOf(/** @type {HTMLButtonElement} */ (event.target));
    const next = all[now + step[0] + columns * step[1]];
    next?.focus();
    next?.click();
  }

  /* --- drawing --- */

  /**
   * A token as it is shown.
   *
   * @param {number} i its position
   */
  const word = (i) => shown(seen.tokens[i]);
  /**
   * The same in quotation marks.
   *
   * @param {number} i its position
   */
  const quotedWord = (i) => quoted(word(i));

  /* Draw all that depends on the line. */
  function draw() {
    drawGrid();
    body.replaceChildren(
      ...seen.tokens.map((_, i) => {
        const name = button(make("bdi", {}, word(i)), () => choose(layer, head, i));
        return row(name, ...COLUMNS.map(() => [make("i", { class: "play-bar" }), make("span")]));
      }),
    );
    drawHead();
    drawNear();
  }

  /* Draw a small map of each head's weights. */
  function drawGrid() {
    const colour = getComputedStyle(grid).color;
    canvases.forEach((canvas, i) => {
      const [l, h] = headIndices[i];
      drawMap(canvas, seen.weights[l][h], seen.tokens.length, colour);
    });
  }

  /* Show what the chosen token attends to in the chosen head: its weights, these times the lengths
     of what is fetched, and how far tokens move without the head. */
  function drawHead() {
    const count = seen.tokens.length;
    const moved = seen.moved[layer][head];
    const weights = Array.from(seen.weights[layer][head].slice(token * count, (token + 1) * count));
    const fetched = weights.map((weight, i) => weight * seen.lengths[layer][head][i]);
    const columns = [weights, fetched, moved];
    cells.forEach((cell, i) => {
      const isChosen = i === layer * heads + head;
      cell.setAttribute("aria-checked", String(isChosen));
      cell.tabIndex = isChosen ? 0 : -1;
    });
    [...body.rows].forEach(({ cells: [name, ...tds] }, i) => {
      const press = /** @type {HTMLElement} */ (name.firstChild);
      press.setAttribute("aria-pressed", String(i === token));
      press.tabIndex = i === token ? 0 : -1;
      tds.forEach((td, column) => {
        const all = columns[column];
        const share = all ? all[i] / (Math.max(...all) || 1) : 0;
        td.style.setProperty("--share", String(share));
        /** @type {Node} */ (td.lastChild).textContent = all ? fixed(all[i]) : "…";
      });
    });
    title.textContent = `Layer ${layer}, head ${head}: what ${quotedWord(token)} attends to`;
    summary.textContent =
      `${quotedWord(token)} attends most to ${quotedWord(argmax(weights))}, with a weight of ` +
      `${fixed(Math.max(...weights))}. If each weight is multiplied by the ` +
      `length of what is fetched, ${quotedWord(argmax(fetched))} contributes most.` +
      (moved
        ? ` Without this head the final vector of ${quotedWord(argmax(moved))} changes ` +
          `more than any other: by ${fixed(Math.max(...moved))} of its length.`
        : "");
    tellLeft();
    later();
    remove();
  }

  /* Say what share of the chosen head's attention goes from and to the same tokens as in the
     trained model that reads the line in order; nothing if that is what is shown. */
  function tellLeft() {
    if (seen === usual || worlds.value === WORLDS.asItIs) {
      remains.textContent = "";
      return;
    }
    if (worlds.value === WORLDS.shuffled && seen.order.every((old, i) => old === i)) {
      remains.textContent = ONE_ORDER;
      return;
    }
    const before = inOrderOf(usual, layer, head);
    const now = inOrderOf(seen, layer, head);
    const overlap = before.reduce((sum, weight, i) => sum + Math.min(weight, now[i]), 0);
    remains.textContent =
      `${changedHow(worlds.value, "the words")}, ${percent(overlap / seen.order.length)} of the ` +
      "attention in this head goes to the same tokens as before.";
  }

  /* Show the tokens of the table that are nearest to the chosen one before and after the chosen
     layer; what is not known is asked for. */
  function drawNear() {
    /** @type {[name: string, level: number][]} */
    const levels = [
      ["Before", layer],
      ["After", layer + 1],
    ];
    const lists = levels.map(([name, level]) => {
      const neighbours = seen.near[level][token];
      const items = (neighbours || []).map(([piece, cosine]) =>
        make("li", {}, make("bdi", {}, shown(piece)), ` ${fixed(cosine)}`),
      );
      if (!neighbours) findNear(level);
      return make("div", {}, `${name} layer ${layer}`, make("ol", {}, ...items));
    });
    nearTitle.replaceChildren(
      make("b", {}, `Where ${quotedWord(token)} is`),
      ": the tokens of the table whose vectors are nearest, with the cosine.",
    );
    near.replaceChildren(...lists);
  }

  draw();
  const state = {
    world: worlds,
    text: area,
    layer: countField(
      () => layer,
      (number) => choose(number, head, token),
      () => layers,
    ),
    head: countField(
      () => head,
      (number) => choose(layer, number, token),
      () => heads,
    ),
    token: countField(
      () => wantedToken ?? seen.order[token],
      (number) => {
        if (number < seen.tokens.length) choose(layer, head, seen.order.indexOf(number));
        else wantedToken = number;
      },
      () => (area.value === data.text ? data.tokens.length : room),
    ),
  };
  return { theme: drawGrid, state: stateOf(state) };
}
