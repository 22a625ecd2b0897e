/* The view *contest*: how far a word of the reader's lines leans to the verbs, after each
   layer of a BERT that runs in the page, and how far the word before it does: its row of the
   table alone. The chapter on embeddings gives a direction for each level; a lean is a dot
   product with it. */
import { button, fixed, heading, make, row } from "./dom.js";
import { ownLines } from "./own-lines.js";

const MOST = 4; // occurrences that are shown
const FULL = 0.12; // the lean that fills half a bar

/* A bar from the middle: to the right for verbs, to the left for nouns. */
function leaning(value) {
  const share = Math.min(1, Math.abs(value) / FULL) / 2;
  const style = `--from: ${50 - 100 * (value < 0) * share}%; --share: ${100 * share}%`;
  const side = Math.abs(value) < 0.005 ? "neither" : value > 0 ? "verb" : "noun";
  return make(
    "span",
    { class: `lmw-lean lmw-${side}`, style },
    make("i"),
    `${fixed(value)} ${side}`,
  );
}

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
  let word = data.word;
  let lines = [];
  element.append(
    ...ownLines(
      {
        text: data.texts.join("\n"),
        name: "Your line",
        around: data.around,
        take,
        fits: (config) => config.layers === layers && config.d_model === data.levels[0][1].length,
        keep: ["tokens", "embeddings", ...Array.from({ length: layers }, (_, i) => `blocks.${i}`)],
      },
      context,
    ),
    chosen,
    make("div", { class: "lmw-wide" }, table),
    summary,
  );

  function take(read) {
    lines = read;
    const counts = new Map();
    for (const piece of lines.flatMap(({ pieces }) => pieces.slice(1, -1)))
      if (/\p{L}/u.test(piece)) counts.set(piece, (counts.get(piece) || 0) + 1);
    if (!counts.has(word))
      word = Array.from(counts.keys()).sort(
        (a, b) => counts.get(b) - counts.get(a) || b.length - a.length,
      )[0];
    chosen.replaceChildren(
      counts.size ? "The word: " : "Type a line.",
      ...Array.from(counts.keys(), (piece) => button(piece, () => choose(piece))),
    );
    choose(word);
  }

  function choose(piece) {
    word = piece;
    for (const each of chosen.querySelectorAll("button"))
      each.setAttribute("aria-pressed", each.textContent === word);
    const found = lines
      .flatMap(({ pieces, values }) =>
        pieces.flatMap((other, at) => (other === word && at ? [{ pieces, values, at }] : [])),
      )
      .slice(0, MOST);
    const around = ({ pieces, at }) =>
      pieces
        .slice(Math.max(1, at - 2), at + 2)
        .join(" ")
        .replace(/ ##| \[SEP\]/g, "");
    const told = names.map((name, i) => [
      name,
      ...found.map(({ values, at }) => lean(values[i], data.levels[i][1], i ? at : at - 1)),
    ]);
    draw(found.map(around), told);
  }

  /* The dot product of a vector, brought to length 1, with the direction of its level. */
  function lean(states, direction, at) {
    const vector = states.subarray(at * direction.length, (at + 1) * direction.length);
    return direction.reduce((sum, x, i) => sum + x * vector[i], 0) / Math.hypot(...vector);
  }

  function draw(heads, told) {
    table.replaceChildren(
      heading("", ...heads),
      make("tbody", {}, ...told.map(([name, ...values]) => row(name, ...values.map(leaning)))),
    );
    summary.textContent = heads
      .map((head, i) => `${head}: ${told.at(-1)[0]} ${fixed(told.at(-1)[i + 1])}`)
      .join("; ");
  }

  draw(data.texts, data.told);
}
