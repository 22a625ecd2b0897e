/* The view *lengths*: how well a model that was trained on short texts reads on, and above
   the curve, what of a longer text it has met in training. The study's numbers. */
import { fixed, make, radios, stateOf, svg } from "./dom.js";

/* In pixels of the drawing: where the curve begins and ends, and how high a strip and it are. */
const [LEFT, RIGHT, STRIP, HEIGHT] = [138, 460, 25, 170];
const BETWEEN = 11; // two strips: their dashed edges stay apart on a narrow screen

/**
 * What is shown of one model.
 *
 * @typedef {object} Case
 * @property {number[]} loss of each part of the text, in nats; the parts have one length
 * @property {number} far the loss at the far end
 * @property {string} told a sentence on the model
 * @property {{ name: string, met: string }[]} strips a letter for each position: "1" was met in
 *   training
 */

/**
 * @typedef {object} Data
 * @property {Case[]} cases one for each way to choose, the last control's values first
 * @property {{ name: string, values: string[], first?: number }[]} controls what can be chosen;
 *   first: the position of the value to begin with
 * @property {number} guess the loss of a guess
 * @property {number} most the loss at the top
 * @property {number} tokens of the text
 * @property {number} short tokens of the texts that were trained on
 */

/**
 * Cut a text where its letters change.
 *
 * @param {string} text
 * @returns {[letter: string, from: number, to: number][]} of each part the letter, the position of
 *   its first, and the first behind it
 */
function runs(text) {
  /** @type {[string, number, number][]} */
  const spans = [];
  [...text].forEach((letter, i) => {
    const last = spans[spans.length - 1];
    if (last?.[0] === letter) last[2] = i + 1;
    else spans.push([letter, i, i + 1]);
  });
  return spans;
}

/**
 * Mount the view *lengths*: the loss of a model along a text longer than those of its training, as
 * a curve, and above it, what of that text it has met in training.
 *
 * @param {HTMLElement} element empty
 * @param {Data} data
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data) {
  const { cases, controls, guess, most } = data;
  const chosen = controls.map(({ first }) => first || 0);
  const picture = svg("svg", { class: "lml-picture play-drawing", "aria-hidden": "true" });
  const status = make("p", { class: "lml-status", role: "status" });
  /**
   * The x of a position in the text.
   *
   * @param {number} position
   */
  const x = (position) => (LEFT + ((RIGHT - LEFT) * position) / data.tokens).toFixed(1);
  const choices = controls.map(({ name, values }, i) =>
    radios(name, values, chosen[i], (value) => {
      chosen[i] = value;
      draw();
    }),
  );
  element.append(
    ...choices,
    make(
      "p",
      { class: "play-controls lml-legend" },
      make("span", { class: "lml-key" }),
      "met in training ",
      make("span", { class: "lml-key lml-key-new" }),
      "new",
    ),
    picture,
    status,
  );

  /**
   * Draw a strip above the curve: what of the text was met in training.
   *
   * @param {Case["strips"][number]} strip
   * @param {number} i its place among the others
   */
  function strip({ name, met }, i) {
    const top = 6 + i * STRIP;
    return svg(
      "g",
      {},
      svg("text", { x: LEFT - 8, y: top + 13, class: "play-end" }, name),
      ...runs(met).map(([letter, from, to]) =>
        svg("rect", {
          x: x(from),
          y: top,
          width: (Number(x(to)) - Number(x(from))).toFixed(1),
          height: STRIP - BETWEEN,
          class: letter === "1" ? "lml-met" : "lml-new",
        }),
      ),
    );
  }

  /* Draw what is chosen: the strips, the curve of the loss, and a sentence. */
  function draw() {
    const shown =
      cases[chosen.reduce((index, value, i) => index * controls[i].values.length + value, 0)];
    const top = 14 + STRIP * shown.strips.length;
    const bottom = top + HEIGHT;
    /**
     * The y of a loss; one above the top is drawn there.
     *
     * @param {number} loss
     */
    const y = (loss) => (bottom - (HEIGHT * Math.min(loss, most)) / most).toFixed(1);
    const step = data.tokens / shown.loss.length;
    const points = shown.loss.map((loss, i) => [x((i + 0.5) * step), y(loss)]);
    picture.setAttribute("viewBox", `0 0 480 ${bottom + 48}`);
    picture.replaceChildren(
      ...shown.strips.map(strip),
      svg("path", { d: `M${LEFT} ${top}V${bottom}H${RIGHT}`, class: "play-axes" }),
      svg("path", { d: `M${x(data.short)} 0V${bottom}`, class: "lml-short" }),
      svg("path", { d: `M${LEFT} ${y(guess)}H${RIGHT}`, class: "lml-guess" }),
      svg("text", { x: LEFT - 8, y: Number(y(guess)) + 5, class: "play-end" }, "a guess"),
      svg("text", { x: LEFT - 8, y: bottom, class: "play-end" }, "0 nats"),
      svg("text", { x: LEFT - 8, y: top + 12, class: "play-end" }, most),
      ...[0, data.short, data.tokens / 2, data.tokens].map((position) =>
        svg("text", { x: x(position), y: bottom + 19 }, position),
      ),
      svg("text", { x: (LEFT + RIGHT) / 2, y: bottom + 40 }, "position in the text (characters)"),
      svg("path", {
        d: `M${points.map((point) => point.join(" ")).join("L")}`,
        class: "play-curve",
      }),
      ...points.map(([cx, cy]) => svg("circle", { cx, cy, r: 4, class: "lml-dot" })),
    );
    status.textContent =
      `${shown.told} At the far end the loss is ${fixed(shown.far)} nats; ` +
      `a guess has ${fixed(guess)}.`;
  }

  draw();
  return { state: stateOf(Object.fromEntries(choices.map((each, i) => [`choice${i}`, each]))) };
}
