/* The drawing of the view *whole*: text, vectors, layers, answer, from left to right; on a
   narrow screen in three strips. Each part is a button; one layer is open, the others are
   narrow. */

import { percent, svg } from "./dom.js";
import { pressable, roving } from "./keys.js";

/** @import { Reading } from "./whole-reading.js" */

/**
 * What is opened: a part (tokens, vectors, stream, heads, head, neurons, norm, next), and the
 * layer and the head that are shown large, counted from 0.
 *
 * @typedef {{ part: string, layer: number, head: number }} Opened
 */

/**
 * A rectangle in pixels of the drawing; x and y are its upper left corner.
 *
 * @typedef {{ x: number, y: number, width: number, height: number }} Box
 */

/**
 * What is called when a reader presses a part, or a token.
 *
 * @typedef {object} Presses
 * @property {(opened: Partial<Opened>) => void} open is given what changes: what it leaves out
 *   stays as it is
 * @property {(token: number) => void} choose is given the position of the token
 */

/** @typedef {ReturnType<typeof planOf>} Plan where things stand */
/** @typedef {ReturnType<typeof planAnswers>} AnswerPlan where the answer stands */

/* Lengths are in pixels of the drawing. */
const TOP = 40; // above the rows: names
const LENS = 64; // below the rows: what each layer would say
const NARROW = 600; // a narrower drawing has three strips, one below the other
const GAP = 8;
const SHADES = [0.04, 0.12, 0.25, 0.45, 0.7]; // strengths at which the shades begin; below, none
const ANSWERS = 8; // likeliest tokens that are shown
const MAPS = 0.33; // share of the open layer's width that the maps of its heads have
const SUMS = 0.71; // where the heads are added, as a share of the same width from the left
const MAP_GAP = 6; // to the right of each head's map
const NUMBER = 13; // above each map: the head's number
const MAP_ROW = 17; // that number, and a gap to the map above
const FLOW = 3; // seconds that a spark takes along the stream: see lmw-flow in whole-view.css

/**
 * A value, or the nearer of two limits where it lies outside them; `least` where they cross.
 *
 * @type {(value: number, least: number, most: number) => number}
 */
const between = (value, least, most) => Math.max(least, Math.min(most, value));
/**
 * A number with one digit after the point, for the coordinates of paths.
 *
 * @type {(number: number) => string}
 */
const short = (number) => number.toFixed(1);

/**
 * Plan where tokens, vectors and layers stand. All lengths are in pixels of the drawing.
 *
 * @param {Reading} reading
 * @param {Opened} opened its layer is the wide one
 * @param {number} width of the drawing
 */
function planOf(reading, opened, width) {
  const tokens = reading.ids.length;
  const { layers } = reading.sizes;
  const isNarrow = width < NARROW;
  const row = between(300 / tokens, 12.5, 38);
  const height = Math.max(tokens * row, isNarrow ? 220 : 270);
  const above = (height - tokens * row) / 2; // what is free above the first row
  const longest = Math.max(...reading.ids.map((id) => Array.from(reading.pieces[id]).length));
  const labels = between(7.5 * longest + 22, 54, isNarrow ? 92 : 110);
  const blocks = reading.position ? 3 : 1;
  const beside = 15 * (blocks - 1) + 6; // signs, and a margin
  const cell = isNarrow
    ? between((width - labels - beside - 8) / (8 * blocks), 3, 9)
    : 6 - blocks * 0.8;
  const vectors = 8 * blocks * cell + beside;
  const wordsOfAnswers = reading.next.slice(0, ANSWERS).map(([id]) => reading.pieces[id].length);
  const words = between(7.5 * Math.max(...wordsOfAnswers) + 6, 20, 96);
  const answer = words + 182; // with the norm and the fan
  const first = isNarrow ? labels : labels + vectors + 2 * GAP;
  const last = isNarrow ? width - 6 : width - answer;
  const least = isNarrow ? 185 : 245;
  const most = isNarrow ? 18 : 27;
  const closed = layers > 1 ? between((last - first - least) / (layers - 1), 2, most) : 0;
  const open = last - first - closed * (layers - 1);
  const shift = isNarrow ? TOP + tokens * row + 18 : 0; // of the layers
  const end = isNarrow ? shift + TOP + height + LENS + 20 : 0; // where the answer's strip begins
  const answersHeight = 24 * ANSWERS;
  return {
    tokens, // how many
    row, // height of a token's row
    height, // of the layers
    above: isNarrow ? 0 : above, // in the strip of tokens and vectors
    isNarrow,
    width,
    labels, // width of the column of tokens
    cell, // width of the cell of one number of a vector
    vectors, // width of the column of vectors
    words, // width of the column of tokens before the bars of the answer
    layers, // how many
    first, // x of the first layer's left edge
    last, // x of the last layer's right edge
    closed, // width of a layer that is not open
    open, // width of the open layer
    shift, // from the strip of the tokens down to that of the layers
    end,
    total: isNarrow ? end + answersHeight + 60 : TOP + height + LENS + 8, // height of the drawing
    /**
     * The x of a layer's left edge.
     *
     * @param {number} layer
     */
    layerAt: (layer) => first + closed * layer + (layer > opened.layer ? open - closed : 0),
    /**
     * How wide a layer is.
     *
     * @param {number} layer
     */
    layerWidth: (layer) => (layer === opened.layer ? open : closed),
    /**
     * The y of the middle of a token's row among tokens and vectors.
     *
     * @param {number} token
     */
    y: (token) => TOP + (isNarrow ? 0 : above) + (token + 0.5) * row,
    /**
     * The y of the middle of a token's row in the layers.
     *
     * @param {number} token
     */
    layerY: (token) => TOP + shift + above + (token + 0.5) * row,
  };
}

/**
 * Plan where the answer stands: beside the layers, or in a strip below them on a narrow screen.
 *
 * @param {Reading} reading
 * @param {Plan} plan
 */
function planAnswers(reading, plan) {
  const askedY = plan.layerY(reading.place); // of the token that is asked
  const top = plan.isNarrow ? plan.end + 40 : TOP + plan.height / 2 - 12 * ANSWERS;
  const left = plan.isNarrow ? plan.words + 40 : plan.last + 74 + plan.words; // of the bars
  const x = plan.isNarrow ? 14 : plan.last + 16; // of the norm's middle
  // Where the curves to the answers begin.
  const start = plan.isNarrow ? top + 12 * ANSWERS : askedY;
  const height = Math.min(plan.height, 120); // of the norm
  const lowest = plan.isNarrow ? Infinity : TOP + plan.height - height;
  const highest = plan.isNarrow ? -Infinity : top - 30;
  const y = Math.min(Math.max(start - height / 2, highest), lowest);
  const edge = left - plan.words - 2; // of the tokens before the bars
  return {
    askedY,
    left,
    right: plan.width - 48, // end of the longest bar
    x,
    start,
    norm: { x: x - 5, y, width: 11, height },
    // The rectangle below tokens and bars, which is pressed to open the answer.
    ground: {
      x: edge,
      y: top - 4,
      width: plan.width - 2 - edge,
      height: 24 * ANSWERS + 8,
    },
    /**
     * The y of the top of an answer's row.
     *
     * @param {number} answer from 0, the likeliest
     */
    rowY: (answer) => top + 24 * answer,
  };
}

/**
 * Make a part of the drawing that can be pressed, by pointer and by key.
 *
 * @param {string} key names it for the focus, and for the tour
 * @param {string} label what a screen reader says
 * @param {() => void} press called on each press
 * @param {(SVGElement)[]} children what it is drawn with
 */
function pressed(key, label, press, ...children) {
  const group = svg(
    "g",
    { class: "lmw-part", role: "button", tabindex: 0, "aria-label": label, "data-key": key },
    ...children,
  );
  group.addEventListener("click", press);
  pressable(group, press);
  return group;
}

/**
 * Make a text; y is its baseline. It begins at x if its class says nothing else (lmw-middle,
 * lmw-end).
 *
 * @type {(x: number, y: number, text: string, className?: string) => SVGTextElement}
 */
const label = (x, y, text, className = "") => svg("text", { x, y, class: className }, text);

/**
 * Make a rectangle with corners of radius `r`; a width below 0 is drawn as 0.
 *
 * @type {(box: Box, className: string, r?: number) => SVGRectElement}
 */
const rect = ({ x, y, width, height }, className, r = 5) =>
  svg("rect", { x, y, width: Math.max(0, width), height, rx: r, class: className });

/**
 * The path (the attribute d) from one point [x, y] to another that leaves and arrives level.
 *
 * @type {(from: [number, number], to: [number, number]) => string}
 */
function curve([x1, y1], [x2, y2]) {
  const middle = short((x1 + x2) / 2);
  return (
    `M${short(x1)} ${short(y1)}C${middle} ${short(y1)} ` +
    `${middle} ${short(y2)} ${short(x2)} ${short(y2)}`
  );
}

/**
 * Draw cells in one of a few shades, the stronger, the darker: one path for each of SHADES. A
 * cell that is weaker than the first of these is not drawn.
 *
 * @param {{ x: number, y: number, strength: number }[]} cells strength from 0 to 1
 * @param {number} width of a cell
 * @param {number} height of a cell
 * @param {string} className of each path
 */
function shaded(cells, width, height, className) {
  return SHADES.map((least, i) => {
    const most = SHADES[i + 1] ?? Infinity;
    const d = cells
      .filter(({ strength }) => strength >= least && strength < most)
      .map(
        ({ x, y }) => `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`,
      )
      .join("");
    return svg("path", { d, class: className, "fill-opacity": (i + 1) / SHADES.length });
  });
}

/**
 * Make the picture: its `element`; `draw`, which draws a reading into it; `point`, which
 * highlights a part; and `box`, which tells where a part stands, a Box. There is no box before
 * the first drawing, and none of a part that `boxesOf` does not name.
 *
 * @param {Presses} presses
 */
export function makePicture({ open, choose }) {
  const root = svg("svg", { class: "lmw-picture", role: "group", "aria-label": "The model" });
  /** @type {Record<string, Box>} */
  let boxes = {};
  /**
   * The open layer and the plan of the last drawing.
   *
   * @type {{ layer: number, plan: Plan } | null}
   */
  let before = null;

  /**
   * Draw a reading in the place of the last one; what has the focus keeps it.
   *
   * @param {Reading} reading
   * @param {Opened} opened
   * @param {number} width in pixels
   * @param {string} asked what a newcomer calls the position that is asked
   */
  function draw(reading, opened, width, asked) {
    const plan = planOf(reading, opened, width);
    const focused = root.contains(document.activeElement)
      ? document.activeElement?.getAttribute("data-key")
      : null;
    const isNew = before?.layer !== opened.layer;
    boxes = boxesOf(reading, opened, plan);
    root.setAttribute("viewBox", `0 0 ${short(width)} ${short(plan.total)}`);
    root.style.height = `${plan.total}px`;
    root.replaceChildren(
      ...streams(reading, plan),
      tokens(reading, plan, asked),
      vectors(reading, plan, opened),
      ...layerColumns(reading, plan, opened),
      openLayer(reading, plan, opened, isNew),
      lens(reading, plan, opened),
      answers(reading, plan, opened),
    );
    roving(root.querySelectorAll("[data-key^='token ']"), 1);
    roving(root.querySelectorAll("[data-key^='layer ']"), plan.layers);
    roving(root.querySelectorAll("[data-key^='head ']"), mapColumns(reading, plan).columns);
    if (isNew && before?.plan.layers === plan.layers && before.plan.width === width)
      slide(before.plan, plan);
    before = { layer: opened.layer, plan };
    if (focused) {
      const redrawn = root.querySelector(`[data-key="${focused}"]`);
      /** @type {SVGElement | null} */ (redrawn)?.focus({ preventScroll: true });
    }
  }

  /**
   * Let the layers slide from where they stood in one plan to where they stand in another; not
   * for readers who asked for less motion.
   *
   * @type {(from: Plan, to: Plan) => void}
   */
  function slide(from, to) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    root.querySelectorAll(".lmw-layer").forEach((group, layer) => {
      const keyframes = [from, to].map((plan) => ({
        transform: `translate(${short(plan.layerAt(layer))}px, 0)`,
      }));
      group.animate(keyframes, { duration: 350, easing: "ease" });
    });
  }

  /* --- the stream: a line for each token --- */

  /**
   * For each token the line of its stream through the layers, and a spark that runs along it;
   * on a narrow screen, where the layers have a strip of their own, also the line from its label
   * through its vectors. The token that the model is asked at goes on to the answer.
   *
   * @type {(reading: Reading, plan: Plan) => SVGElement[]}
   */
  function streams({ place }, plan) {
    const left = plan.labels + (plan.isNarrow ? 2 : 0);
    const right = plan.last + (plan.isNarrow ? 2 : 16);
    return Array.from({ length: plan.tokens }, (_, token) => {
      const y = plan.layerY(token);
      const isAsked = token === place;
      const line = svg("path", {
        d: `M${short(left)} ${short(y)}H${short(isAsked ? right : plan.last)}`,
        class: isAsked ? "lmw-stream lmw-own" : "lmw-stream",
      });
      const throughVectors = svg("path", {
        d: `M${short(plan.labels)} ${short(plan.y(token))}h${short(plan.vectors)}`,
        class: "lmw-stream",
      });
      const moving = svg("path", {
        d: `M${short(left)} ${short(y)}H${short(plan.last)}`,
        class: "lmw-moving",
        style: `animation-delay: ${-((token * 0.37) % FLOW)}s`, // not all sparks at once
      });
      return svg(
        "g",
        { "data-part": "stream" },
        ...(plan.isNarrow ? [throughVectors] : []),
        line,
        moving,
      );
    });
  }

  /* --- tokens --- */

  /**
   * The tokens, one below the other, each a button; on a narrow screen once more beside the
   * layers. `asked` is what a newcomer calls the position that is asked.
   *
   * @type {(reading: Reading, plan: Plan, asked: string) => SVGElement}
   */
  function tokens({ ids, pieces, place }, plan, asked) {
    const height = Math.min(plan.row - 1.5, 22);
    const chips = ids.map((id, token) => {
      const y = plan.y(token);
      const box = { x: 2, y: y - height / 2, width: plan.labels - 8, height };
      const isAsked = token === place;
      return pressed(
        `token ${token}`,
        `${pieces[id]}${isAsked ? `, ${asked}` : ""}`,
        () => choose(token),
        rect(box, isAsked ? "lmw-chip lmw-own" : "lmw-chip", 4),
        label(plan.labels / 2 - 2, y + 4, clip(pieces[id], plan.labels - 12), "lmw-middle"),
      );
    });
    const besideLayers = plan.isNarrow
      ? ids.map((id, token) =>
          label(
            plan.labels - 4,
            plan.layerY(token) + 4,
            clip(pieces[id], plan.labels - 6),
            token === place ? "lmw-end lmw-strong" : "lmw-end",
          ),
        )
      : [];
    return svg(
      "g",
      { "data-part": "tokens head", role: "group", "aria-label": "Tokens" },
      pressed(
        "tokens",
        "All tokens and their numbers",
        () => open({ part: "tokens" }),
        rect({ x: 0, y: 1, width: 46, height: 22 }, "lmw-ground", 4),
        label(2, 16, "tokens", "lmw-title"),
      ),
      ...chips,
      svg("g", { "aria-hidden": "true" }, ...besideLayers),
    );
  }

  /* --- vectors: the first numbers of each --- */

  /**
   * The first numbers of each token's vector: token + position = sum, or the sum alone.
   *
   * @type {(reading: Reading, plan: Plan, opened: Opened) => SVGElement}
   */
  function vectors({ token, position, sum }, plan, opened) {
    const left = plan.labels + 2;
    const blockWidth = 8 * plan.cell;
    /** @type {[rows: number[][], x: number, sign: string][]} */
    const blocks = position
      ? [
          [token, left, ""],
          [position, left + blockWidth + 15, "+"],
          [sum, left + 2 * (blockWidth + 15), "="],
        ]
      : [[sum, left, ""]];
    const drawn = blocks.flatMap(([rows, x, sign]) => [
      ...stripes(rows, x, plan),
      label(x - 7.5, TOP + plan.above - 4, sign, "lmw-middle"),
    ]);
    return svg(
      "g",
      { "data-part": "vectors" },
      label(left, 16, "vectors", "lmw-title"),
      pressed(
        "vectors",
        "Vectors: what each token becomes",
        () => open({ part: "vectors" }),
        rect(
          {
            x: left - 2,
            y: TOP + plan.above - 2,
            width: plan.vectors,
            height: plan.tokens * plan.row + 4,
          },
          opened.part === "vectors" ? "lmw-ground lmw-opened" : "lmw-ground",
        ),
        ...drawn,
      ),
    );
  }

  /**
   * Vectors, (tokens, numbers), as rows of cells from `x` on: one colour above zero, another
   * below, the stronger, the larger the number is beside the largest of all.
   *
   * @type {(rows: number[][], x: number, plan: Plan) => SVGElement[]}
   */
  function stripes(rows, x, plan) {
    const most = Math.max(...rows.flat().map(Math.abs)) || 1;
    const cells = rows.flatMap((row, token) =>
      row.map((value, i) => ({
        x: x + i * plan.cell,
        y: plan.y(token) - plan.row / 2 + 1,
        strength: Math.sqrt(Math.abs(value) / most),
        isUp: value > 0,
      })),
    );
    const height = plan.row - 2;
    return [
      ...shaded(
        cells.filter(({ isUp }) => isUp),
        plan.cell - 0.4,
        height,
        "lmw-plus",
      ),
      ...shaded(
        cells.filter(({ isUp }) => !isUp),
        plan.cell - 0.4,
        height,
        "lmw-minus",
      ),
    ];
  }

  /* --- layers --- */

  /**
   * How long the two updates of a layer are beside the residual stream behind it, at the token
   * that is asked: that of attention and that of the feed-forward network, each from 0.06 to 1.
   *
   * @type {(reading: Reading, layer: number) => [attention: number, feedForward: number]}
   */
  function strengths({ attention, feed_forward, stream }, layer) {
    /**
     * An update's share of its own length and the stream's; at least 0.06, so that it is seen.
     *
     * @param {number} update its length
     */
    const share = (update) => between(update / (stream[layer] + update), 0.06, 1);
    return [share(attention[layer]), share(feed_forward[layer])];
  }

  /**
   * A column for each layer, narrow but for the open one: how dark its two halves are says how
   * strong its attention and its feed-forward network are.
   *
   * @type {(reading: Reading, plan: Plan, opened: Opened) => SVGElement[]}
   */
  function layerColumns(reading, plan, opened) {
    const step = Math.ceil(18 / Math.max(plan.closed, 1)); // every so many has room for its number
    return Array.from({ length: plan.layers }, (_, layer) => {
      const x = plan.layerAt(layer);
      const isOpen = layer === opened.layer;
      const width = plan.layerWidth(layer);
      const inner = Math.max(width - Math.min(4, width / 4), 1.5);
      const [attention, feedForward] = strengths(reading, layer);
      const y = TOP + plan.shift;
      const box = { x: 0, y, width: inner, height: plan.height };
      const half = inner / 2;
      const body = isOpen
        ? [rect(box, "lmw-panel", 8)]
        : [
            rect(box, "lmw-closed", Math.min(7, half)),
            svg("rect", {
              x: half * 0.3,
              y: y + 6,
              width: half * 0.6,
              height: plan.height - 12,
              rx: 2,
              class: "lmw-attention",
              "fill-opacity": Math.sqrt(attention),
            }),
            svg("rect", {
              x: half * 1.1,
              y: y + 6,
              width: half * 0.6,
              height: plan.height - 12,
              rx: 2,
              class: "lmw-neurons",
              "fill-opacity": Math.sqrt(feedForward),
            }),
          ];
      const isNamed = isOpen || (layer % step === 0 && Math.abs(layer - opened.layer) >= step / 2);
      const name = isOpen ? `layer ${layer}` : String(layer);
      const title = label(inner / 2, y - 8, isNamed ? name : "", "lmw-middle lmw-number");
      const column = pressed(
        `layer ${layer}`,
        `Layer ${layer}${isOpen ? ", open" : ""}`,
        () => open({ part: "stream", layer }),
        rect({ x: 0, y: y - 22, width, height: plan.height + 22 }, "lmw-hit", 0),
        ...body,
        title,
      );
      const group = svg(
        "g",
        {
          class: "lmw-layer",
          "data-part": isOpen ? "stream heads head neurons" : "stream",
          style: `transform: translate(${short(x)}px, 0)`,
        },
        column,
      );
      return group;
    });
  }

  /**
   * In how many columns the maps of the heads are largest, and how wide and high each is then, in
   * pixels.
   *
   * @type {(reading: Reading, plan: Plan) => { columns: number, size: number }}
   */
  function mapColumns({ sizes }, plan) {
    const width = (plan.open - 18) * MAPS - 6;
    let best = { columns: 1, size: 0 };
    for (let columns = 1; columns <= sizes.heads; columns++) {
      const rows = Math.ceil(sizes.heads / columns);
      const size = Math.min(width / columns - MAP_GAP, (plan.height - 16) / rows - MAP_ROW, 96);
      if (size > best.size) best = { columns, size };
    }
    return best;
  }

  /**
   * What is in the open layer, from left to right: its heads, the attention of the open head, a
   * sum, the feed-forward network, and a sum again. It appears gradually if this layer was not the
   * open one before (`isNew`), also at first.
   *
   * @type {(reading: Reading, plan: Plan, opened: Opened, isNew: boolean) => SVGElement}
   */
  function openLayer(reading, plan, opened, isNew) {
    const left = plan.layerAt(opened.layer) + 8;
    const width = plan.open - 18;
    const askedY = plan.layerY(reading.place);
    const endOfMaps = left + width * MAPS;
    const sums = [left + width * SUMS, left + width - 8];
    return svg(
      "g",
      { class: isNew ? "lmw-open" : "" },
      headMaps(reading, plan, opened, left),
      attentionCurves(reading, plan, opened, [endOfMaps, sums[0] - 9], askedY),
      plus(sums[0], askedY, "head heads stream"),
      hourglass(reading, plan, opened, [sums[0] + 12, sums[1] - 12], askedY),
      plus(sums[1], askedY, "neurons stream"),
    );
  }

  /**
   * A plus sign in a circle around a point; `parts` are those with which it is highlighted.
   *
   * @type {(x: number, y: number, parts: string) => SVGElement}
   */
  const plus = (x, y, parts) =>
    svg(
      "g",
      { "data-part": parts },
      svg("circle", { cx: x, cy: y, r: 7.5, class: "lmw-sum" }),
      svg("path", { d: `M${x - 4} ${y}h8M${x} ${y - 4}v8`, class: "lmw-sign" }),
    );

  /**
   * The attention of each head of the open layer: a small map with its number above it, from
   * x = `left` on.
   *
   * @type {(reading: Reading, plan: Plan, opened: Opened, left: number) => SVGElement}
   */
  function headMaps(reading, plan, opened, left) {
    const { columns, size } = mapColumns(reading, plan);
    const { heads } = reading.sizes;
    const rows = Math.ceil(heads / columns);
    const top = TOP + plan.shift + (plan.height - rows * (size + MAP_ROW)) / 2 + NUMBER;
    const buttons = Array.from({ length: heads }, (_, head) => {
      const x = left + (head % columns) * (size + MAP_GAP);
      const y = top + Math.floor(head / columns) * (size + MAP_ROW);
      const isOpen = head === opened.head;
      return pressed(
        `head ${head}`,
        `Head ${head} of layer ${opened.layer}${isOpen ? ", open" : ""}`,
        () => open({ part: "head", head }),
        rect(
          { x: x - 1, y: y - 1, width: size + 2, height: size + 2 },
          isOpen ? "lmw-map lmw-opened" : "lmw-map",
          2,
        ),
        ...map(reading, reading.weights[opened.layer][head], x, y, size),
        label(x + size / 2, y - 3, String(head), isOpen ? "lmw-middle lmw-strong" : "lmw-middle"),
      );
    });
    return svg(
      "g",
      { "data-part": "heads head", role: "group", "aria-label": "Heads" },
      label(left, TOP + plan.shift - 24, "heads", "lmw-title"),
      ...buttons,
    );
  }

  /**
   * A head's attention weights, (tokens · tokens) row after row, as a square with its upper left
   * corner at x and y, `size` pixels wide: a row attends, a column is attended to. The row of the
   * token that is asked is highlighted.
   *
   * @type {(
   *   reading: Reading, weights: ArrayLike<number>, x: number, y: number, size: number
   * ) => SVGElement[]}
   */
  function map({ ids, place }, weights, x, y, size) {
    const tokens = ids.length;
    const step = size / tokens;
    const cells = Array.from(weights, (weight, i) => ({
      x: x + (i % tokens) * step,
      y: y + Math.floor(i / tokens) * step,
      strength: weight,
    }));
    const row = svg("path", {
      d: `M${short(x)} ${short(y + (place + 0.5) * step)}h${short(size)}`,
      class: "lmw-row",
      "stroke-width": step,
    });
    return [row, ...shaded(cells, step, step, "lmw-attention")];
  }

  /**
   * The attention of the open head at the token that is asked: a curve to it from each token
   * that gets at least 1 %, the wider, the more. A token that gets 4 % is named; along a curve
   * that gets more than a quarter of the largest weight something moves. `span` is the x of the
   * left and the right end; `askedY` is the y of the token that is asked.
   *
   * @type {(
   *   reading: Reading, plan: Plan, opened: Opened, span: number[], askedY: number
   * ) => SVGElement}
   */
  function attentionCurves({ weights, ids, place, pieces }, plan, opened, [from, to], askedY) {
    const row = Array.from(weights[opened.layer][opened.head]).slice(
      place * ids.length,
      (place + 1) * ids.length,
    );
    const largest = Math.max(...row);
    const named = row.map((weight, token) => (weight >= 0.04 ? pieces[ids[token]] : ""));
    const longest = Math.max(...named.map((name) => Array.from(name).length));
    const room = between(7.4 * longest, 8, (to - from) * 0.55); // for the names of tokens
    const curves = row.flatMap((weight, token) => {
      if (weight < 0.01) return [];
      const y = plan.layerY(token);
      const d = curve([from + room + 3, y], [to, askedY]);
      const line = svg("path", {
        d,
        class: "lmw-look",
        "stroke-width": short(0.6 + 6 * weight),
        "stroke-opacity": short(0.25 + 0.75 * weight),
      });
      const moving = svg("path", { d, class: "lmw-fetched" });
      const name = label(from + room, y + 4, clip(named[token], room), "lmw-end lmw-halo");
      return weight > largest / 4 ? [line, moving, name] : [line, name];
    });
    return svg(
      "g",
      { "data-part": "head" },
      label(
        (from + to) / 2 - 8,
        TOP + plan.shift - 24,
        plan.open > 250 ? "attention" : "",
        "lmw-title lmw-middle",
      ),
      ...curves,
    );
  }

  /**
   * The feed-forward network of the open layer: high in the middle, with a dot for each of its
   * strongest neurons and, where there is room, the token whose probability the neuron raises
   * most. `span` is the x of the left and the right end; `askedY` is the y of the token that is
   * asked.
   *
   * @type {(
   *   reading: Reading, plan: Plan, opened: Opened, span: number[], askedY: number
   * ) => SVGElement}
   */
  function hourglass(reading, plan, opened, [left, right], askedY) {
    const neurons = reading.neurons[opened.layer];
    const size = Math.min(plan.height * 0.7, 230);
    const centre = between(
      askedY,
      TOP + plan.shift + size / 2 + 14,
      TOP + plan.shift + plan.height - size / 2,
    );
    const middle = (left + right) / 2;
    const low = size * 0.26; // half of how high it is at its ends
    const slope = Math.min(16, (right - left) * 0.25); // width over which its height changes
    const high = size / 2; // half of how high it is in the middle
    /** @type {[number, number][]} */
    const corners = [
      [left, centre - low],
      [left + slope, centre - high],
      [right - slope, centre - high],
      [right, centre - low],
      [right, centre + low],
      [right - slope, centre + high],
      [left + slope, centre + high],
      [left, centre + low],
    ];
    const shape = `M${corners.map((corner) => corner.map(short).join(" ")).join("L")}z`;
    const most = Math.max(...neurons.map(([, value]) => Math.abs(value)));
    const hasRoom = right - left > 46;
    const dots = neurons.flatMap(([, value, up], i) => {
      const y = centre + (i - (neurons.length - 1) / 2) * (size / (neurons.length + 0.6));
      const x = hasRoom ? left + 15 : middle;
      const dot = svg("circle", {
        cx: x,
        cy: y,
        r: 6.5,
        class: value > 0 ? "lmw-neuron" : "lmw-neuron lmw-below",
        "fill-opacity": short(0.15 + 0.85 * (Math.abs(value) / most)),
      });
      const name = hasRoom ? clip(reading.pieces[up], right - x - 12) : "";
      return [dot, label(x + 11, y + 4, name)];
    });
    return svg(
      "g",
      { "data-part": "neurons" },
      label(right + 22, TOP + plan.shift - 24, "feed-forward", "lmw-title lmw-end"),
      svg("path", { d: curve([left - 10, askedY], [left, centre]), class: "lmw-way" }),
      svg("path", { d: curve([right, centre], [right + 10, askedY]), class: "lmw-way" }),
      pressed(
        "neurons",
        `The feed-forward network of layer ${opened.layer}`,
        () => open({ part: "neurons" }),
        svg("path", {
          d: shape,
          class: opened.part === "neurons" ? "lmw-glass lmw-opened" : "lmw-glass",
        }),
        ...dots,
      ),
    );
  }

  /* --- what the stream would say after each layer --- */

  /**
   * Below each layer a bar for the probability that the final answer has if the model ends there,
   * and, where there is room, the token that is likeliest there; below the open layer also that
   * token's own probability.
   *
   * @type {(reading: Reading, plan: Plan, opened: Opened) => SVGElement}
   */
  function lens(reading, plan, opened) {
    const top = TOP + plan.shift + plan.height + 10;
    const most = Math.max(...reading.rise, 0.05);
    const bars = reading.rise.flatMap((share, layer) => {
      const x = plan.layerAt(layer) + plan.layerWidth(layer) - 2;
      const isOpen = layer === opened.layer;
      const height = Math.max(1.5, (28 * share) / most);
      const [[id, probability]] = reading.lens[layer];
      const text = isOpen ? `“${reading.pieces[id]}” ${percent(probability)}` : reading.pieces[id];
      const fits = isOpen || 7.5 * text.length < plan.closed;
      const barWidth = Math.min(plan.closed * 0.6, 12);
      return [
        rect(
          { x: x - barWidth - 1, y: top + 28 - height, width: Math.max(barWidth, 1.5), height },
          isOpen ? "lmw-rise lmw-own" : "lmw-rise",
          1,
        ),
        label(x, top + 43, fits ? text : "", isOpen ? "lmw-end lmw-strong" : "lmw-end"),
      ];
    });
    const isOpen = opened.part === "stream";
    return svg(
      "g",
      { "data-part": "lens" },
      pressed(
        "lens",
        "If the model stopped after a layer",
        () => open({ part: "stream" }),
        rect(
          {
            x: plan.isNarrow ? 2 : plan.first - 2,
            y: top - 4,
            width: plan.last - (plan.isNarrow ? 2 : plan.first),
            height: LENS - 10,
          },
          isOpen ? "lmw-ground lmw-opened" : "lmw-ground",
        ),
        ...bars,
      ),
      plan.isNarrow
        ? label(6, top + 10, "if it stopped here", "lmw-title")
        : label(plan.first - 10, top + 27, "if it stopped here", "lmw-title lmw-end"),
    );
  }

  /* --- the answer --- */

  /**
   * The last norm, and the likeliest tokens with their probabilities.
   *
   * @type {(reading: Reading, plan: Plan, opened: Opened) => SVGElement}
   */
  function answers(reading, plan, opened) {
    const spots = planAnswers(reading, plan);
    const { ground, norm } = spots;
    return svg(
      "g",
      {},
      svg("g", { "data-part": "next" }, ...streamToAnswers(plan, spots), ...fan(reading, spots)),
      svg(
        "g",
        { "data-part": "norm" },
        pressed(
          "norm",
          "The last norm",
          () => open({ part: "norm" }),
          rect(norm, opened.part === "norm" ? "lmw-norm lmw-opened" : "lmw-norm", 5),
        ),
        label(norm.x + 5, norm.y - 6, "norm", "lmw-middle"),
      ),
      svg(
        "g",
        { "data-part": "next" },
        label(
          ground.x + 2,
          plan.isNarrow ? ground.y - 8 : 16,
          reading.sizes.causal ? "what comes next" : "what fits the gap",
          "lmw-title",
        ),
        pressed(
          "next",
          "The answer: probabilities",
          () => open({ part: "next" }),
          rect(ground, opened.part === "next" ? "lmw-ground lmw-opened" : "lmw-ground"),
          ...answerBars(reading, plan, spots),
        ),
      ),
    );
  }

  /**
   * On a narrow screen, the stream of the token that is asked, from the last layer down to the
   * norm in the strip of the answer; else nothing, since `streams` draws it to the norm.
   *
   * @type {(plan: Plan, spots: AnswerPlan) => SVGElement[]}
   */
  function streamToAnswers(plan, { askedY, x, norm }) {
    if (!plan.isNarrow) return [];
    const d =
      `M${short(plan.last)} ${short(askedY)}H${short(plan.width - 10)}q8 0 8 8V${short(plan.end - 8)}` +
      `q0 8 -8 8H${x + 8}q-8 0 -8 8V${short(norm.y)}`;
    return [svg("path", { d, class: "lmw-stream lmw-own" })];
  }

  /**
   * A curve from the norm to each answer: the likelier, the wider.
   *
   * @type {(reading: Reading, spots: AnswerPlan) => SVGElement[]}
   */
  function fan({ next }, { x, start, ground, rowY }) {
    const most = next[0][2];
    return next.slice(0, ANSWERS).map(([, , share], i) =>
      svg("path", {
        d: curve([x + 6, start], [ground.x, rowY(i) + 12]),
        class: "lmw-fan",
        "stroke-width": short(0.7 + (5 * share) / most),
      }),
    );
  }

  /**
   * Each answer: the token, a bar in proportion to its probability (the likeliest token's fills
   * the width), and that probability in percent.
   *
   * @type {(reading: Reading, plan: Plan, spots: AnswerPlan) => SVGElement[]}
   */
  function answerBars({ next, pieces }, plan, { left, right, rowY }) {
    const most = next[0][2];
    return next.slice(0, ANSWERS).flatMap(([id, , share], i) => {
      const y = rowY(i);
      const width = Math.max(1, ((right - left) * share) / most);
      const written = percent(share, share < 0.0995 ? 1 : 0);
      return [
        label(left - 4, y + 16, clip(pieces[id], plan.words), i ? "lmw-end" : "lmw-end lmw-strong"),
        rect({ x: left, y: y + 4, width, height: 16 }, i ? "lmw-answer" : "lmw-answer lmw-own", 3),
        label(left + width + 5, y + 16, written, ""),
      ];
    });
  }

  /* --- where parts are, for the tour --- */

  /**
   * Where each part stands, by its name; head, heads and neurons are those of the open layer.
   *
   * @type {(reading: Reading, opened: Opened, plan: Plan) => Record<string, Box>}
   */
  function boxesOf(reading, opened, plan) {
    const y = TOP + plan.shift;
    const { height } = plan;
    const x = plan.layerAt(opened.layer);
    const inside = plan.open - 18;
    const rows = { y: TOP + plan.above - 4, height: plan.tokens * plan.row + 8 };
    const answerTop = plan.isNarrow ? plan.end + 30 : TOP + height / 2 - 12 * ANSWERS - 6;
    const answerLeft = plan.isNarrow ? 34 : plan.last + 68;
    return {
      tokens: { x: 0, width: plan.labels - 3, ...rows },
      vectors: { x: plan.labels - 2, width: plan.vectors + 4, ...rows },
      stream: {
        x: plan.first - 3,
        y: plan.layerY(reading.place) - plan.row / 2 - 3,
        width: plan.last - plan.first + 6,
        height: plan.row + 6,
      },
      head: { x: x + 6 + inside * MAPS, y, width: inside * (SUMS - MAPS) + 12, height },
      heads: { x: x + 3, y, width: inside * MAPS - 2, height },
      neurons: { x: x + 14 + inside * SUMS, y, width: inside * (1 - SUMS) - 4, height },
      lens: {
        x: plan.isNarrow ? 0 : plan.first - 4,
        y: y + height + 4,
        width: plan.last - (plan.isNarrow ? 0 : plan.first - 4),
        height: LENS - 8,
      },
      norm: plan.isNarrow
        ? { x: 2, y: answerTop, width: 26, height: 24 * ANSWERS + 16 }
        : { x: plan.last + 6, y: TOP, width: 22, height },
      next: {
        x: answerLeft,
        y: answerTop,
        width: plan.width - answerLeft,
        height: 24 * ANSWERS + 14,
      },
    };
  }

  /**
   * Highlight a part, with a ring around it and all else paler; with null, nothing.
   *
   * @param {string | null} part
   */
  function point(part) {
    root.classList.toggle("lmw-pointing", Boolean(part));
    for (const group of root.querySelectorAll("[data-part]")) {
      const parts = (group.getAttribute("data-part") ?? "").split(" ");
      group.classList.toggle("lmw-on", parts.includes(part ?? ""));
    }
    root.querySelector(".lmw-ring")?.remove();
    if (!part || !boxes[part]) return;
    const { x, y, width, height } = boxes[part];
    root.append(rect({ x: x + 1, y, width: width - 2, height }, "lmw-ring", 8));
  }

  return { element: root, draw, point, box: (/** @type {string} */ part) => boxes[part] };
}

/**
 * A text that fits a width, at about 7.2 pixels a letter; one that is cut ends in an ellipsis.
 *
 * @type {(text: string, width: number) => string}
 */
function clip(text, width) {
  const all = Array.from(text);
  const room = Math.max(1, Math.floor(width / 7.2));
  return all.length <= room ? text : `${all.slice(0, Math.max(1, room - 1)).join("")}…`;
}
