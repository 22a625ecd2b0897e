/* Poems between the editors' shelves and a model's, and words struck out of them. All
   controls are the browser's own, so keys and screen readers know them; the two drawings
   say nothing that the tables and sentences beside them do not. */
import { arrow, button, fixed, heading, make, row, select, svg } from "./dom.js";

const SHAPES = [
  "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0",
  "M0,-6.5L6.5,0L0,6.5L-6.5,0Z",
  "M-4.5,-4.5H4.5V4.5H-4.5Z",
  "M0,-6L6,5H-6Z",
];

const firstLine = (text) => text.split("\n")[0];
const argmax = (values) => values.indexOf(Math.max(...values));
const paragraph = (name, ...children) => make("p", { class: "lmp-" + name }, ...children);
const status = () => make("p", { class: "lmp-verdict", "aria-live": "polite" });

/* Of hidden states the first stands before layer 0, the next after layer 0. */
const levelTitle = (levels, level) => level === 0 ? "static (words alone)"
  : levels[level] === "before" ? "before layer 0" : "after layer " + levels[level];

const levelSlider = (last, choose) =>
  make("input", { type: "range", min: 0, max: last, value: last,
    oninput: (event) => choose(Number(event.target.value)) });

/* What marks and lines mean, each a part of a drawing and a name. */
const legend = (viewBox, ...entries) =>
  make("p", { class: "lmp-legend", "aria-hidden": "true" }, ...entries.map(([mark, name]) =>
    make("span", {}, svg("svg", { viewBox }, mark), name)));

/* --- the explorer ------------------------------------------------------------------- */

export function poems(canvas, data) {
  const { texts, places, shelves, names, levels, support, planes, near } = data;
  const state = { level: levels.length - 1, poem: data.first, cell: null };
  const model = (poem) => argmax(support[state.level][poem]);
  const levelName = () => levelTitle(levels, state.level);
  const ofShelf = names.map((_, shelf) => shelves.filter((own) => own === shelf).length);
  const members = (own, other) =>
    texts.map((_, poem) => poem)
      .filter((poem) => shelves[poem] === own && model(poem) === other)
      .sort((a, b) => lead(b) - lead(a));

  function lead(poem) {
    const own = shelves[poem], scores = support[state.level][poem];
    const rest = scores.filter((_, shelf) => shelf !== own);
    return model(poem) === own ? scores[own] - Math.max(...rest) : Math.max(...scores) - scores[own];
  }

  /* The level and the plane. */
  const slider = levelSlider(state.level, (level) => show({ level, cell: null }));
  const output = make("output");
  const plane = svg("svg", { viewBox: "-112 -112 224 224", role: "img" });
  const mark = (shelf, name = "") => svg("path", { d: SHAPES[shelf % 4], class: `${name} lmp-${shelf % 4}` });
  const points = texts.map((text, poem) => {
    const point = mark(shelves[poem], "lmp-point");
    point.append(svg("title", {}, `${firstLine(text)} (${places[poem]})`));
    point.addEventListener("click", () => show({ poem, cell: null }));
    return point;
  });
  plane.append(...points);

  /* The shelves against each other; the arrow keys go from cell to cell. */
  const cells = names.map((_, own) => names.map((_, other) =>
    button("", () => show({ cell: [own, other], poem: members(own, other)[0] }), {
      class: own === other && "lmp-own",
      onkeydown: (event) => {
        const [right, down] = arrow(event) || [];
        const next = cells[own + down]?.[other + right];
        if (!next) return;
        event.preventDefault();
        next.focus();
        next.click();
      },
    })));
  const grid = make("table", { class: "lmp-grid" },
    make("caption", {},
      "Rows: the editors’ shelf. Columns: where the model would put the poem, " +
        "judging by all the others. Press a number to see its poems."),
    heading("", ...names),
    make("tbody", {}, ...names.map((name, own) => row(name, ...cells[own]))));

  /* One poem. */
  const choice = make("select", { onchange: () => show({ poem: Number(choice.value) }) });
  const turn = (by) => () => {
    const list = members(...state.cell);
    show({ poem: list[(list.indexOf(state.poem) + by + list.length) % list.length] });
  };
  const chosen = make("label");
  const verdict = status();
  const text = make("blockquote", { class: "lmp-text" });
  const [where, nearTitle] = [paragraph("where"), paragraph("where")];
  const head = make("thead"), body = make("tbody");
  const path = make("table", { class: "lmp-path" },
    make("caption", {},
      "What speaks for each shelf, level by level, the last on top: 1 is no more than " +
        "the shelf’s share of the other poems. The greatest is the model’s shelf; the " +
        "editors’ column is marked."),
    head, body);
  const others = make("ul", { class: "lmp-near" });
  choice.id = chosen.htmlFor = canvas.id + "-poem";
  canvas.append(paragraph("bar", make("label", {}, "Level", slider), output),
    make("div", { class: "lmp-two" },
      make("div", {}, plane, legend("-7 -7 14 14", ...names.map((name, shelf) => [mark(shelf), name]))),
      make("div", {}, grid)),
    paragraph("where", chosen),
    paragraph("bar", button("‹", turn(-1), { "aria-label": "previous poem" }), choice,
      button("›", turn(1), { "aria-label": "next poem" })),
    make("div", { class: "lmp-two" },
      make("div", {}, verdict, text, where), make("div", {}, path, nearTitle, others)));

  function drawPlane() {
    const inside = members(...state.cell);
    points.forEach((point, poem) => {
      const [x, y] = planes[state.level][poem];
      point.style.transform = `translate(${x / 10}px,${-y / 10}px)`;
      point.classList.toggle("lmp-faint", !inside.includes(poem));
      point.classList.toggle("lmp-chosen", poem === state.poem);
    });
    plane.append(points[state.poem]);
    plane.setAttribute("aria-label", `The poems at ${levelName()}; the cell’s poems stand out.`);
  }

  function drawGrid() {
    cells.forEach((line, own) => line.forEach((cell, other) => {
      const count = members(own, other).length;
      cell.textContent = count;
      cell.disabled = count === 0;
      cell.style.setProperty("--share", count / ofShelf[own]);
      cell.setAttribute("aria-pressed", state.cell[0] === own && state.cell[1] === other);
      cell.setAttribute("aria-label", `${count} poems: editors ${names[own]}, model ${names[other]}`);
    }));
  }

  const share = (value) => fixed(value / 100, 1);

  function drawPoem() {
    const { poem, level } = state;
    const own = shelves[poem], scores = support[level][poem], other = model(poem);
    const list = members(...state.cell);
    choice.replaceChildren(...list.map((index) => new Option(firstLine(texts[index]), index)));
    choice.value = poem;
    chosen.textContent = `${list.length} poem${list.length > 1 ? "s" : ""} that the editors put ` +
      `under ${names[own]} and the model under ${names[other]}, the most decided first:`;
    verdict.textContent = other === own
      ? `The editors and the model agree: ${names[own]}.`
      : `The editors: ${names[own]} (${share(scores[own])}). The model: ${names[other]} (${share(scores[other])}).`;
    text.textContent = texts[poem];
    where.textContent = places[poem];
    head.replaceChildren(...heading("", ...names.map((name, i) => name + (i === own ? " ✎" : ""))).children);
    head.rows[0].cells[own + 1].classList.add("lmp-mark");
    body.replaceChildren(...levels.map((_, index) => pathRow(index)).reverse());
    nearTitle.textContent = `Nearest at ${levelName()}:`;
    others.replaceChildren(...near[level][poem].map((other) =>
      make("li", {}, button(firstLine(texts[other]), () => show({ poem: other, cell: null })),
        " " + names[shelves[other]])));
  }

  function pathRow(level) {
    const scores = support[level][state.poem];
    const line = row(levels[level], ...scores.map(share));
    line.classList.toggle("lmp-here", level === state.level);
    scores.forEach((value, shelf) =>
      line.cells[shelf + 1].style.setProperty("--share", Math.min(1, Math.max(0, value / 350))));
    line.cells[argmax(scores) + 1].classList.add("lmp-most");
    line.cells[shelves[state.poem] + 1].classList.add("lmp-mark");
    return line;
  }

  function show(change) {
    Object.assign(state, change);
    state.cell ??= [shelves[state.poem], model(state.poem)];
    output.textContent = levelName();
    slider.setAttribute("aria-valuetext", levelName());
    drawPlane();
    drawGrid();
    drawPoem();
  }
  show({});
}

/* --- words struck out ----------------------------------------------------------------- */

const LEFT = 34, RIGHT = 8, TOP = 10, BOTTOM = 40; // of the chart

export function strike_out(canvas, { levels, themes }) {
  const state = { theme: 0, level: levels.length - 1 };
  const choice = select(themes.map(({ name, poems }) => `${name} (${poems} poems)`),
    () => show({ theme: Number(choice.value) }));
  const owner = {};
  themes.forEach(({ words }, theme) => words.forEach(([word]) => (owner[word] ??= theme)));
  const options = make("datalist", { id: canvas.id + "-words" },
    ...Object.keys(owner).sort().map((value) => make("option", { value })));
  const word = make("input", { list: options.id, size: 12, autocomplete: "off", oninput: () => {
    const theme = owner[word.value.trim().toLowerCase()];
    if (theme !== undefined) show({ theme });
  } });
  const struck = paragraph("struck");
  const chart = svg("svg", { role: "img" });
  const line = (name, x1, x2, y1, y2) => svg("line", { class: "lmp-" + name, x1, x2, y1, y2 });
  const key = [["said", "as printed"], ["out", "words struck out"], ["bag", "bag of words"]];
  const slider = levelSlider(state.level, (level) => show({ level }));
  const verdict = status();
  canvas.append(
    paragraph("bar lmp-wrap", make("label", {}, "Theme", choice), make("label", {}, "or a word", word), options),
    struck, chart, legend("0 -7 26 14", ...key.map(([name, label]) => [line(name, 0, 26, 0, 0), label])),
    paragraph("bar", make("label", {}, "Read off at level", slider)), verdict);

  const name = (level) => (level ? levels[level] : "static");
  const written = ([value, low, high]) => `${fixed(value)} (${fixed(low)} to ${fixed(high)})`;

  function draw() {
    const theme = themes[state.theme];
    const width = Math.max(260, canvas.clientWidth);
    const height = Math.min(300, Math.max(220, width * 0.5));
    const band = (width - LEFT - RIGHT) / levels.length;
    const x = (level) => LEFT + (level + 0.5) * band;
    const y = (value) => TOP + ((1 - value) * (height - TOP - BOTTOM)) / 0.65;
    const across = (name, value) => line(name, LEFT, width - RIGHT, y(value), y(value));
    const label = (x, y, text, anchor) => svg("text", { x, y, "text-anchor": anchor }, text);
    const now = { class: "lmp-now", x: x(state.level) - band / 2, y: TOP, width: band, height: height - BOTTOM - TOP };
    chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
    chart.style.height = height + "px";
    chart.replaceChildren(
      svg("rect", now),
      ...[0.4, 0.6, 0.8, 1].flatMap((value) =>
        [across("rule", value), label(LEFT - 5, y(value) + 4, value.toFixed(1), "end")]),
      across("blind", 0.5), label(LEFT + 2, y(0.5) - 4, "blind", "start"),
      ...levels.map((_, level) => label(x(level), height - 22, name(level), "middle")),
      label((LEFT + width) / 2, height - 4, "after layer", "middle"),
      ...theme.bag.map((value) => across("bag", value)),
      ...scores(theme.said, "said", -3, SHAPES[0], x, y), ...scores(theme.struck, "out", 3, SHAPES[2], x, y));
  }

  function scores(values, style, aside, d, x, y) {
    const at = values.map(([value], level) => [x(level) + aside, y(value)]);
    return [svg("polyline", { points: at.join(" "), class: "lmp-" + style }),
      ...values.flatMap(([, low, high], level) => [
        line(style, at[level][0], at[level][0], y(low), y(high)),
        svg("path", { d, class: `lmp-${style} lmp-dot`, transform: `translate(${at[level]}) scale(0.8)` })])];
  }

  function show(change) {
    Object.assign(state, change);
    const theme = themes[state.theme];
    const [said, left, lost] = [theme.said, theme.struck, theme.lost].map((values) => values[state.level]);
    choice.value = state.theme;
    slider.setAttribute("aria-valuetext", levelTitle(levels, state.level));
    struck.replaceChildren("Struck out: ", ...theme.words.flatMap(([word, count]) =>
      [make("s", {}, word), make("small", {}, ` ${count}  `)]));
    const difference = lost[1] > 0
      ? `the words carried ${written(lost)}`
      : `a difference of ${written(lost).replace(")", ") that may be chance")}`;
    const rest = left[1] > 0.5
      ? `What is left still speaks of it: ${written(left)}.`
      : `Whether anything is left these poems cannot show: ${written(left)}.`;
    verdict.textContent =
      `${theme.name}, ${levelTitle(levels, state.level)}: ${fixed(said[0])} as printed; ${difference}. ${rest}`;
    chart.setAttribute("aria-label",
      `Scores of the theme ${theme.name} by level; the sentence below reads them off.`);
    draw();
  }
  show({});
  new ResizeObserver(draw).observe(canvas);
}
