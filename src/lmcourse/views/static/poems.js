/* A poem, its nearest others at each level of a model, and all poems between the
   editors' sections and the model's. All controls are the browser's own, so keys and screen
   readers know them. */
import {
  arrow,
  button,
  changedHow,
  countField,
  fixed,
  heading,
  learnedSwitch,
  make,
  numbersField,
  plural,
  row,
  someOf,
  stateOf,
  WORLDS,
} from "./dom.js";

const SHOWN = 3; // neighbours; the others are counted

/**
 * Support of each poem for each section: [level][poem][section].
 *
 * @typedef {number[][][]} Support
 */

/**
 * The nearest others of each poem: [level][poem], the nearest first.
 *
 * @typedef {number[][][]} Near
 */

/**
 * @typedef {object} Data
 * @property {string[]} texts of the poems
 * @property {string[]} places where each poem stands
 * @property {number[]} shelves the editors' section of each poem
 * @property {string[]} names of the sections
 * @property {string[]} levels their names
 * @property {Support} support in hundredths
 * @property {Near} near
 * @property {number} first the poem to begin with
 * @property {{ support: Support, near: Near }} [untrained] the same of random weights
 * @property {{ support: Support, near: Near, texts: string[] }} [reordered] the same of poems
 *   whose words are in another order, and these
 */

/**
 * The first line of a text.
 *
 * @type {(text: string) => string}
 */
const firstLine = (text) => text.split("\n")[0];
/**
 * The position of the largest number, the first of equals: as in the site's numbers.js, which
 * notebooks do not have.
 *
 * @type {(values: number[]) => number}
 */
const argmax = (values) => values.indexOf(Math.max(...values));
/**
 * Make a paragraph with a class of this view.
 *
 * @type {(name: string, ...children: import("./dom.js").Content[]) => HTMLElement}
 */
const paragraph = (name, ...children) => make("p", { class: `lmp-${name}` }, ...children);
/* Make the paragraph that says what editors and model think; its changes are read out. */
const status = () => make("p", { class: "lmp-verdict", "aria-live": "polite" });

/**
 * What a level is called in a sentence.
 *
 * @type {(levels: string[], level: number) => string}
 */
const levelTitle = (levels, level) => (level === 0 ? "static (words alone)" : levels[level]);

/**
 * Make a slider of levels, from 0 to the last, where it begins.
 *
 * @type {(last: number, choose: (level: number) => void) => HTMLInputElement}
 */
const levelSlider = (last, choose) =>
  make("input", {
    type: "range",
    min: 0,
    max: last,
    value: last,
    oninput: (event) => choose(Number(event.target.value)),
  });

/* --- the explorer ------------------------------------------------------------------- */

/**
 * Mount the view *poems*: the explorer. In it, poems and sections are numbers, their positions;
 * "own" is the editors' section of a poem, "other" the model's.
 *
 * @param {HTMLElement} canvas empty
 * @param {Data} data
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function poems(canvas, data) {
  const { texts, places, shelves, names, levels } = data;
  let { support, near } = data;
  /** @type {[number, number]} the editors' section and the model's, whose poems are listed */
  let cell = [0, 0];
  const state = { level: levels.length - 1, poem: data.first };
  /**
   * The section in which the model would put a poem, at the level that is shown.
   *
   * @param {number} poem
   */
  const model = (poem) => argmax(support[state.level][poem]);
  /* What the level that is shown is called. */
  const levelName = () => levelTitle(levels, state.level);
  const ofShelf = names.map((_, shelf) => shelves.filter((own) => own === shelf).length); // poems
  /**
   * The poems that the editors put into one section and the model into another, the clearest cases
   * first.
   *
   * @type {(own: number, other: number) => number[]}
   */
  const members = (own, other) =>
    texts
      .map((_, poem) => poem)
      .filter((poem) => shelves[poem] === own && model(poem) === other)
      .sort((a, b) => lead(b) - lead(a));

  /**
   * How clear a poem's case is, in hundredths of support: by how much the section of the model's is
   * ahead of the editors', or, if both are one, of the next.
   *
   * @param {number} poem
   */
  function lead(poem) {
    const own = shelves[poem];
    const scores = support[state.level][poem];
    const rest = scores.filter((_, shelf) => shelf !== own);
    return model(poem) === own
      ? scores[own] - Math.max(...rest)
      : Math.max(...scores) - scores[own];
  }

  const slider = levelSlider(state.level, (level) => show({ level }));
  const output = make("output");

  /* The sections against each other; the arrow keys go from cell to cell. */
  const cells = names.map((_, own) =>
    names.map((_, other) =>
      button("", () => show({ poem: members(own, other)[0] }, [own, other]), {
        class: own === other && "lmp-own",
        onkeydown: (event) => {
          const step = arrow(event);
          const next = step && cells[own + step[1]]?.[other + step[0]];
          if (!next) return;
          event.preventDefault();
          next.focus();
          next.click();
        },
      }),
    ),
  );
  const grid = make(
    "table",
    { class: "lmp-grid" },
    make(
      "caption",
      {},
      "Rows: the editors’ section. Columns: where the model would put the poem, " +
        "judging by all the others. Press a number to see its poems.",
    ),
    heading("", ...names),
    make("tbody", {}, ...names.map((name, own) => row(name, ...cells[own]))),
  );

  /* One poem. */
  /** @type {HTMLSelectElement} */
  const choice = make("select", {
    "aria-label": "poem",
    onchange: () => show({ poem: Number(choice.value) }, cell),
  });
  /**
   * Make what shows the poem some places on in the list; behind the last comes the first.
   *
   * @param {number} by 1 or -1
   */
  const turn = (by) => () => {
    const list = members(...cell);
    show({ poem: list[(list.indexOf(state.poem) + by + list.length) % list.length] }, cell);
  };
  const chosen = make("span");
  const verdict = status();
  const text = make("blockquote", { class: "lmp-text" });
  const where = paragraph("where");
  const body = make("tbody");
  const path = make(
    "table",
    { class: "lmp-path" },
    make(
      "caption",
      {},
      "Each row has the poem’s three nearest at one level; the last level is on top. “Kept” counts how many " +
        `of its ${near[0][0].length} nearest were already near one level below; ` +
        "a dot (•) marks any of the three that were.",
    ),
    heading("", "model’s section", "nearest poems", "kept"),
    body,
  );

  /* The same with random weights, and with the words in another order, if they came along. */
  const {
    worlds,
    remains,
    label: worldLabel,
  } = learnedSwitch(
    () => {
      ({ support, near } = worldData());
      show({});
    },
    data.reordered ? "shuffled words" : null,
  );
  /* The numbers of the state of the switch. */
  function worldData() {
    const { untrained = data, reordered = data } = data;
    return { [WORLDS.random]: untrained, [WORLDS.shuffled]: reordered }[worlds.value] ?? data;
  }
  if (data.untrained) canvas.append(paragraph("bar", worldLabel), remains);
  canvas.append(
    paragraph(
      "bar",
      button("‹", turn(-1), { "aria-label": "previous poem" }),
      choice,
      button("›", turn(1), { "aria-label": "next poem" }),
    ),
    make("div", { class: "lmp-two" }, make("div", {}, text, where, verdict), make("div", {}, path)),
    make(
      "details",
      {},
      make("summary", {}, "All poems, by the editors’ section and the model’s"),
      paragraph("bar", make("label", {}, "Level", slider), output),
      grid,
      paragraph("where", chosen),
    ),
  );

  /* Draw how many poems are in each cell of the table of sections. */
  function drawGrid() {
    cells.forEach((line, own) =>
      line.forEach((square, other) => {
        const count = members(own, other).length;
        square.textContent = String(count);
        square.disabled = count === 0;
        square.style.setProperty("--share", String(count / ofShelf[own]));
        square.setAttribute("aria-pressed", String(cell[0] === own && cell[1] === other));
        square.setAttribute(
          "aria-label",
          `${plural(count, "poem")}: editors ${names[own]}, model ${names[other]}`,
        );
      }),
    );
  }

  /**
   * Support with one digit after the point.
   *
   * @param {number} value in hundredths
   */
  const share = (value) => fixed(value / 100, 1);

  /* Draw the poem that is shown, where editors and model put it, and its nearest at each level. */
  function drawPoem() {
    const { poem, level } = state;
    const own = shelves[poem];
    const scores = support[level][poem];
    const other = model(poem);
    const list = members(...cell);
    choice.replaceChildren(
      ...list.map((index) => new Option(firstLine(texts[index]), String(index))),
    );
    choice.value = String(poem);
    chosen.textContent =
      `In the list above: ${list.length} poem${list.length > 1 ? "s" : ""} that the editors ` +
      `put under ${names[own]} and the model under ${names[other]}, the clearest cases first.`;
    verdict.textContent =
      other === own
        ? `The editors and the model agree: ${names[own]}.`
        : `The editors: ${names[own]} (support ${share(scores[own])}). ` +
          `The model: ${names[other]} (support ${share(scores[other])}).`;
    const { reordered } = data;
    text.textContent =
      worlds.value === WORLDS.shuffled && reordered ? reordered.texts[poem] : texts[poem];
    where.textContent = places[poem];
    body.replaceChildren(...levels.map((_, index) => pathRow(index)).reverse());
  }

  /* Say how many of the poem's nearest others are left, and how often the sections agree; nothing
     if the switch says "as it is". */
  function tellLeft() {
    const { poem, level } = state;
    if (worlds.value === WORLDS.asItIs) {
      remains.textContent = "";
      return;
    }
    const before = data.near[level][poem];
    const same = before.filter((other) => near[level][poem].includes(other)).length;
    /**
     * On how many poems model and editors agree.
     *
     * @param {Support} support
     */
    const agreed = (support) =>
      shelves.filter((own, i) => argmax(support[level][i]) === own).length;
    const where = level ? levelName() : "by the words alone";
    remains.textContent =
      `${changedHow(worlds.value, "each poem’s words")}, ` +
      `${someOf(same, before.length, "nearest poem")} ${where} ${same > 1 ? "are" : "is"} ` +
      `left. Model and editors agree on ${agreed(support)} of ${texts.length} poems; as it is, ` +
      `on ${agreed(data.support)}.`;
  }

  /**
   * Make the row of a level: the model's section, the poem's nearest, and how many of these were
   * near one level below.
   *
   * @param {number} level
   */
  function pathRow(level) {
    const { poem } = state;
    /**
     * Whether another poem was near one level below already.
     *
     * @param {number} other
     */
    const stayed = (other) => level > 0 && near[level - 1][poem].includes(other);
    const beside = near[level][poem].slice(0, SHOWN).map((other) =>
      make(
        "li",
        { class: stayed(other) && "lmp-kept" },
        button(firstLine(texts[other]), () => show({ poem: other }), {
          title: names[shelves[other]],
        }),
      ),
    );
    const shelf = argmax(support[level][poem]);
    const line = row(
      levels[level],
      names[shelf].replace("Time and ", ""),
      make("ul", { class: "lmp-near" }, ...beside),
      level ? near[level][poem].filter(stayed).length : "",
    );
    line.classList.toggle("lmp-here", level === state.level);
    line.cells[1].classList.toggle("lmp-mark", shelf === shelves[poem]);
    return line;
  }

  /**
   * Show another level, poem or list of poems.
   *
   * @param {{ level?: number, poem?: number }} change of what is shown
   * @param {[own: number, other: number]} [chosen] the cell whose poems are listed; that of the
   *   poem itself, if none is chosen
   */
  function show(change, chosen) {
    Object.assign(state, change);
    cell = chosen ?? [shelves[state.poem], model(state.poem)];
    output.textContent = levelName();
    slider.setAttribute("aria-valuetext", levelName());
    drawGrid();
    drawPoem();
    tellLeft();
  }
  show({});
  const fields = {
    world: worlds,
    level: slider,
    poem: countField(
      () => state.poem,
      (poem) => show({ poem }),
      () => texts.length,
    ),
    list: numbersField(
      () => cell,
      ([own, other]) => {
        if (members(own, other).includes(state.poem)) show({}, [own, other]);
      },
    ),
  };
  return { state: stateOf(fields) };
}
