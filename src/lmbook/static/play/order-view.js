/* The view *order*: the scores of a short line under several schemes of positions, while
   the reader changes the order of its words and where it begins. The chapter on positions
   gives the numbers; here they are added up. */
import { make } from "./dom.js";

/* The score of word `a` at place `m` looking at word `b` at place `n`. A scheme either
   depends on the offset alone, or is a sum of four terms: word or place with word or place. */
export function score(scheme, a, b, m, n) {
  if (scheme.offsets) {
    const row = scheme.offsets[a][b];
    return row[n - m + (row.length - 1) / 2];
  }
  return scheme.ww[a][b] + scheme.wp[a][n] + scheme.pw[m][b] + scheme.pp[m][n];
}

/* All scores of the words in this order, the first at place `start`. */
export function scores(scheme, order, start) {
  return order.map((a, m) => order.map((b, n) => score(scheme, a, b, m + start, n + start)));
}

const ENOUGH = 0.005; // what is less is not seen in two digits
const written = (number) => number.toFixed(1).replace("-0.0", "0.0").replace("-", "−");

/* Which cells differ from what the same two words have in the line as it was. */
export function changes(scheme, order, start) {
  return scores(scheme, order, start).map((row, m) =>
    row.map((now, n) => {
      const [a, b] = [order[m], order[n]];
      return Math.abs(now - score(scheme, a, b, a, b)) > ENOUGH;
    }));
}

export function mount(element, data) {
  const { words, schemes } = data;
  const first = words.map((_, i) => i);
  let order = [...first];
  let taken = null; // the word that waits for another to change places with
  let chosen = 0;
  const most = schemes.map((scheme) => Math.max(...scores(scheme, first, 0).flat().map(Math.abs)));

  const kinds = schemes.map((scheme, i) => {
    const radio = make("input", { type: "radio", name: "lmo-" + element.id, onchange: () => { chosen = i; draw(); } });
    radio.checked = i === 0;
    return make("label", {}, radio, " " + scheme.name);
  });
  const line = make("div", { class: "lmo-line", role: "group", "aria-label": "The line; choose two words to change their places" });
  const buttons = words.map((_, place) =>
    make("button", { type: "button", onclick: () => take(place), onkeydown: (event) => move(event, place) }));
  line.append(...buttons);
  const start = make("input", { type: "range", min: 0, max: data.most, value: 0, oninput: draw });
  const begins = make("span", { class: "lmo-value" });
  const back = make("button", { type: "button", onclick: reset }, "Start again");
  const table = make("table", {});
  const told = make("p", { class: "lmo-told", role: "status" });
  const note = make("p", { class: "lmo-note" });
  element.append(
    make("fieldset", { class: "lmo-kinds" }, make("legend", {}, "Positions"), ...kinds),
    line,
    make("p", { class: "lmo-start" }, make("label", {}, "words before the line ", start, " ", begins), back),
    make("div", { class: "lmo-both" }, table, make("div", { class: "lmo-words" }, told, note)));

  function reset() {
    order = [...first];
    taken = null;
    start.value = 0;
    draw();
  }

  function exchange(one, other) {
    [order[one], order[other]] = [order[other], order[one]];
    taken = null;
    draw();
  }

  function take(place) {
    if (taken === null) taken = place;
    else if (taken === place) taken = null;
    else return exchange(taken, place);
    draw();
  }

  /* The arrow keys carry a word along the line. */
  function move(event, place) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || !(place + by in order)) return;
    event.preventDefault();
    exchange(place, place + by);
    buttons[place + by].focus();
  }

  function draw() {
    const scheme = schemes[chosen];
    const at = Number(start.value);
    const now = scores(scheme, order, at);
    const other = changes(scheme, order, at);
    begins.textContent = at;
    buttons.forEach((button, place) => {
      button.textContent = words[order[place]];
      button.setAttribute("aria-pressed", String(taken === place));
    });
    const names = order.map((word) => make("th", { scope: "col" }, words[word]));
    const rows = now.map((row, m) =>
      make("tr", {}, make("th", { scope: "row" }, words[order[m]]), ...row.map((value, n) => {
        const share = Math.round(65 * Math.min(1, Math.abs(value) / most[chosen]));
        const cell = make("td", { class: (value < 0 ? "lmo-less" : "lmo-more") + (other[m][n] ? " lmo-other" : ""),
          style: `--share: ${share}%` }, written(value));
        if (other[m][n]) cell.append(make("span", { class: "lmo-hidden" }, " changed"));
        return cell;
      })));
    table.replaceChildren(
      make("caption", {}, "Row: the word that looks. Column: the word it looks at."),
      make("thead", {}, make("tr", {}, make("td"), ...names)), make("tbody", {}, ...rows));
    const count = other.flat().filter(Boolean).length;
    const all = words.length ** 2;
    const text = order.map((word) => words[word]).join(" ");
    const moved = order.some((word, place) => word !== place) || at > 0;
    told.textContent = moved
      ? `“${text}”: ${count || "none"} of the ${all} scores ${count === 1 ? "is" : "are"} ` +
        "not what the same two words had in the poem’s line."
      : "This is the poem’s line. Click two words, or carry one with the arrow keys.";
    note.textContent = scheme.told;
  }

  draw();
}
