/* Sentences to choose from: the tokens of one in a row, and where the chosen token looks
   in the chosen head, as shades, per cents and arcs. All of it is HTML, in the page's
   colours; the arcs alone are a drawing, and say nothing that the shades do not. */
import { button, make, select, svg } from "./dom.js";
import { roving } from "./keys.js";

const LEAST = 4; // per cent; arcs for less would be a haze

/* Tokens as one would write them: for the list to choose from. */
const written = (tokens) =>
  tokens.join(" ").replace(/^\[CLS\] | \[SEP\]$| ##/g, "").replace(/ ([.,;:!?])/g, "$1").replace(/ (['’]) /g, "$1");

/* One of a set of buttons is pressed. */
function choose(buttons, chosen) {
  buttons.forEach((button, index) => {
    button.setAttribute("aria-pressed", index === chosen);
    button.setAttribute("tabindex", index === chosen ? 0 : -1);
  });
  roving(buttons, 1);
}

/* From the top of one box to the top of another, above the line or across lines. */
function arc(frame, from, to, share) {
  const box = frame.getBoundingClientRect();
  const [a, b] = [from, to].map((element) => {
    const r = element.getBoundingClientRect();
    return { x: r.left + r.width / 2 - box.left, y: r.top - box.top };
  });
  const lift = Math.min(34, 10 + Math.abs(a.x - b.x) / 6);
  return svg("path", {
    d: `M${a.x},${a.y} C${a.x},${a.y - lift} ${b.x},${b.y - lift} ${b.x},${b.y}`,
    "stroke-width": (1 + (7 * share) / 100).toFixed(1),
    "stroke-opacity": (0.25 + (0.6 * share) / 100).toFixed(2),
  });
}

export function sentences(canvas, data) {
  const count = data.sentences.length;
  const state = { sentence: 0, head: data.head, query: data.sentences[0].query };
  let tokens = [];
  const turn = (by) => () => show({ sentence: (state.sentence + by + count) % count });
  const choice = select(data.sentences.map((sentence) => written(sentence.tokens)),
    () => show({ sentence: Number(choice.value) }), { "aria-label": "Sentence" });
  const squares = data.sentences[0].weights.map((_, head) =>
    button(head, () => show({ head }), { class: "lmc-square", "aria-label": "Head " + head }));
  const arcs = svg("svg", { "aria-hidden": "true" });
  const words = make("div", { class: "lmc-words", role: "group", "aria-label": "Tokens" });
  const line = make("div", { class: "lmc-line" }, arcs, words);
  const summary = make("p", { class: "lmc-told", "aria-live": "polite" });
  const note = make("p", { class: "lmc-note" });
  canvas.append(
    make("p", { class: "lmc-choice" }, button("‹", turn(-1), { "aria-label": "previous sentence" }),
      choice, button("›", turn(1), { "aria-label": "next sentence" })),
    make("div", { class: "lmc-head-row", role: "group", "aria-label": "Head" },
      make("span", {}, "Head "), ...squares),
    line, summary, note);

  const weights = () => data.sentences[state.sentence].weights[state.head][state.query];

  function draw() {
    const drawn = weights().map((share, key) =>
      share >= LEAST && key !== state.query ? arc(line, tokens[state.query], tokens[key], share) : "");
    arcs.replaceChildren(...drawn);
  }

  function show(change) {
    const isAnother = change.sentence !== undefined;
    if (isAnother) change.query = data.sentences[change.sentence].query;
    Object.assign(state, change);
    const sentence = data.sentences[state.sentence];
    if (isAnother) {
      choice.value = state.sentence;
      note.textContent = data.notes[state.sentence];
      tokens = sentence.tokens.map((token, query) => button(token, () => show({ query }), { class: "lmc-word" }));
      tokens.forEach((token) => token.append(make("small")));
      words.replaceChildren(...tokens);
    }
    const shares = weights();
    tokens.forEach((token, key) => {
      token.style.setProperty("--share", shares[key] / 100);
      token.lastChild.textContent = shares[key] ? shares[key] + "\u2009%" : "";
    });
    const most = shares.map((share, key) => [share, sentence.tokens[key]]).sort((a, b) => b[0] - a[0]);
    const list = most.slice(0, 3).map(([share, token]) => `${token} ${share} %`);
    summary.textContent =
      `Head ${state.head}: “${sentence.tokens[state.query]}” looks at ` + list.join(", ");
    choose(squares, state.head);
    choose(tokens, state.query);
    draw();
  }

  show({ sentence: 0 });
  new ResizeObserver(draw).observe(line);
  document.fonts.ready.then(draw);
}
