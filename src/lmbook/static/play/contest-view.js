/* The view *contest*: how far a word of the reader's lines leans to the verbs, after each
   layer of a BERT that runs in the page, and how far the word before it does: its row of the
   table alone. The chapter on embeddings gives a direction for each level and where its
   middle is; a lean is a dot product with the one, less the other. Of the lines that it
   opens with there are the leans in untrained layers, too, behind a switch. */
import { button, fixed, heading, make, row, select, stateOf } from "./dom.js";
import { ownLines } from "./own-lines.js";

const MOST = 4; // occurrences that are shown
const FULL = 0.12; // the lean that fills half a bar

/** @import { Line } from "./own-lines.js" */

/**
 * @typedef {object} Data
 * @property {[string, number[], number][]} levels the name of each level, its direction
 *   (d_model,), and the middle between verbs and nouns
 * @property {string[]} texts lines to begin with
 * @property {string} word the word of these lines
 * @property {[string, ...number[]][]} told of each level, the name and how far the word leans
 *   in each text
 * @property {[string, ...number[]][]} [untrained] the same in untrained layers
 * @property {[number, number]} around the ids before and after a line
 */

/**
 * A bar from the middle: to the right for verbs, to the left for nouns.
 *
 * @param {number} value
 */
function leaning(value) {
  const share = Math.min(1, Math.abs(value) / FULL) / 2;
  const from = value < 0 ? 50 - 100 * share : 50;
  const style = `--from: ${from}%; --share: ${100 * share}%`;
  const side = Math.abs(value) < 0.005 ? "neither" : value > 0 ? "verb" : "noun";
  return make(
    "span",
    { class: `lmw-lean lmw-${side}`, style },
    make("i"),
    `${fixed(value)} ${side}`,
  );
}

/**
 * @param {HTMLElement} element
 * @param {Data} data
 * @param {ViewContext} context
 */
export function mount(element, data, context) {
  const names = data.levels.map(([name]) => name);
  const layers = names.length - 2; // after the word before and "before layer 0"
  const chosen = make("p", {
    class: "lmw-words play-words",
    role: "group",
    "aria-label": "The word",
  });
  const table = make("table");
  const summary = make("p", { class: "play-hidden", role: "status" });
  /** @type {string | undefined} */
  let word = data.word;
  /** @type {Line[]} */
  let lines = [];
  const worlds = select(["trained", "random weights"], () => {
    if (data.untrained && worlds.value === "1") draw(data.texts, data.untrained);
    else if (lines.length) choose(word);
    else draw(data.texts, data.told);
  });
  if (data.untrained)
    element.append(
      make("p", { class: "lmw-world" }, make("label", {}, "Had it learned nothing? ", worlds)),
    );
  const own = ownLines(
    {
      text: data.texts.join("\n"),
      name: "Your line",
      around: data.around,
      take,
      fits: (config) => config.layers === layers && config.d_model === data.levels[0][1].length,
      keep: ["tokens", "embeddings", ...Array.from({ length: layers }, (_, i) => `blocks.${i}`)],
    },
    context,
  );
  element.append(...own.parts, chosen, make("div", { class: "lmw-wide" }, table), summary);

  /** @param {Line[]} read */
  function take(read) {
    lines = read;
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const piece of lines.flatMap(({ pieces }) => pieces.slice(1, -1)))
      if (/\p{L}/u.test(piece)) counts.set(piece, (counts.get(piece) || 0) + 1);
    if (!word || !counts.has(word))
      word = Array.from(counts).sort(([a, m], [b, n]) => n - m || b.length - a.length)[0]?.[0];
    chosen.replaceChildren(
      counts.size ? "The word: " : "Type a line.",
      ...Array.from(counts.keys(), (piece) => button(piece, () => choose(piece))),
    );
    choose(word);
  }

  /** @param {string | undefined} piece */
  function choose(piece) {
    word = piece;
    worlds.value = "0"; // there are no untrained layers in the page
    for (const each of chosen.querySelectorAll("button"))
      each.setAttribute("aria-pressed", String(each.textContent === word));
    const found = lines
      .flatMap(({ pieces, values }) =>
        pieces.flatMap((other, at) => (other === word && at ? [{ pieces, values, at }] : [])),
      )
      .slice(0, MOST);
    /** @type {(place: { pieces: string[], at: number }) => string} */
    const around = ({ pieces, at }) =>
      pieces
        .slice(Math.max(1, at - 2), at + 2)
        .join(" ")
        .replace(/ ##| \[SEP\]/g, "");
    /** @type {Data["told"]} */
    const told = names.map((name, i) => [
      name,
      ...found.map(({ values, at }) => lean(values[i], data.levels[i], i ? at : at - 1)),
    ]);
    draw(found.map(around), told);
  }

  /**
   * How far a vector, brought to length 1, is from the middle along its level's direction.
   *
   * @param {Float32Array} states (tokens, d_model)
   * @param {Data["levels"][number]} level
   * @param {number} at the token
   */
  function lean(states, [, direction, middle], at) {
    const vector = states.subarray(at * direction.length, (at + 1) * direction.length);
    const product = direction.reduce((sum, x, i) => sum + x * vector[i], 0);
    return product / Math.hypot(...vector) - middle;
  }

  /**
   * @param {string[]} heads of the columns
   * @param {Data["told"]} told
   */
  function draw(heads, told) {
    table.replaceChildren(
      heading("", ...heads),
      make("tbody", {}, ...told.map(([name, ...values]) => row(name, ...values.map(leaning)))),
    );
    const [last, ...values] = told[told.length - 1];
    summary.textContent = heads.map((head, i) => `${head}: ${last} ${fixed(values[i])}`).join("; ");
  }

  draw(data.texts, data.told);
  const state = {
    text: own.area,
    word: {
      get: () => word ?? "",
      set(/** @type {string} */ piece) {
        const isThere = lines.some(({ pieces }) => pieces.includes(piece));
        if (isThere) choose(piece);
        else if (own.area.value.toLowerCase().includes(piece.replace(/^##/, ""))) word = piece;
      },
    },
    world: worlds,
  };
  return { state: stateOf(state) };
}
