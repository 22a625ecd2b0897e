/* The view *BERT explorer*: a line, and what each head of a BERT does with it.
   `lmcourse.views.bert_explorer` gives a line of which all is known; for the reader's own
   lines the weights are loaded, after a click. What takes a run of its own (a head removed,
   neighbours) is asked for when it is first to be seen. */
import { openModel } from "./client.js";
import { announcer, arrow, button, fixed, heading, make, ownLine, percent, row } from "./dom.js";
import { readText } from "./store.js";
import { shown, WordPiece } from "./tokenizers.js";

const LONGEST = 5000; // characters of a line that are cut into tokens
const NEAREST = 6;
const COLUMNS = ["weight", "weight × length", "moved without it"];
let views = 0;

const numbers = (line) => line.split(" ").map(Number);
const best = (numbers) => numbers.indexOf(Math.max(...numbers));

/* How far each row of width numbers has moved, as a share of its length. */
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

/* A tensor's numbers in so many equal parts. */
function parts(values, count) {
  const size = values.length / count;
  return Array.from({ length: count }, (_, i) => values.subarray(size * i, size * (i + 1)));
}

/* "hope 0.550 hopes 0.463" → [["hope", 0.55], ["hopes", 0.463]]. */
const pairs = (line) =>
  Array.from(line.matchAll(/(\S+) (\S+)/g), ([, piece, cosine]) => [piece, +cosine]);

export function mount(element, data, context) {
  const layers = data.weights.length;
  const heads = data.weights[0].length;
  const { room } = data;
  const bert = openModel("bert", context);
  const lane = `explorer ${++views}`;
  const bytes = bert.about.bytes + context.stores["bert-pieces"].bytes;
  const size = `${(bytes / 1e6).toFixed(1)} MB`;
  let { layer, head, token } = data;
  let tokenizer;
  /* Of the line that is shown: weights[layer][head] (tokens · tokens), lengths[layer][head]
     (tokens), moved[layer][head] (tokens), near[level][token]; of the last two, what is
     known. A line that the model has read here has ids and states[level], too. */
  const read = (rows, how) => rows.map((lines) => lines.map(how));
  let seen = { tokens: data.tokens, near: read(data.near, pairs) };
  for (const name of ["weights", "lengths", "moved"]) seen[name] = read(data[name], numbers);

  /* --- what stands there --- */

  const part = (tag, name, ...rest) => make(tag, { class: `lmx-${name}` }, ...rest);
  const { area, note, label } = ownLine(data.text, typed);
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
  const places = Array.from({ length: layers * heads }, (_, i) => [
    Math.floor(i / heads),
    i % heads,
  ]);
  const cells = places.map(([l, h]) =>
    button(make("canvas"), () => choose(l, h, token), {
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
  element.append(
    label,
    note,
    offer,
    part(
      "div",
      "all",
      part(
        "div",
        "heads",
        make("b", {}, "Every head"),
        ", a row a layer. In a square each row is a token that " +
          "looks, each column one that is looked at; the more weight, the stronger.",
        grid,
      ),
      part("div", "three", title, summary, part("div", "scroll", rows)),
      part("div", "tokens", nearTitle, near),
    ),
    live,
  );
  let isKept = false;
  bert.kept().then((kept) => {
    isKept = Boolean(kept);
    if (kept) loader.textContent = `Open the model: your browser kept its ${size}`;
  });

  /* --- what it answers to --- */

  async function load() {
    loader.disabled = true;
    progress.hidden = false;
    note.textContent = "Loading …";
    try {
      const { config, notKept } = await bert.load((share) => (progress.value = share));
      if (config.layers !== layers || config.heads !== heads)
        throw new Error("the site carries another one");
      tokenizer = new WordPiece(JSON.parse(await readText("bert-pieces", context)));
      loader.hidden = true;
      note.textContent = "The model is here: write a line.";
      if (notKept) offer.append(` They are not kept for the next visit: ${notKept}.`);
      if (document.activeElement === document.body) area.focus({ preventScroll: true });
      if (area.value !== data.text) await answer();
    } catch (error) {
      note.textContent = `The model does not load: ${error.message}`;
      loader.disabled = false;
    }
    progress.hidden = true;
  }

  function typed() {
    if (tokenizer) answer();
    else if (isKept && !loader.disabled) load();
    else if (!loader.disabled)
      note.textContent =
        "The model that reads your line has to be loaded first; what stands below is still the book's line.";
  }

  async function answer() {
    const all = Array.from(area.value);
    const text = all.slice(0, LONGEST).join("");
    const found = tokenizer.encode(text);
    const tokens = found.slice(0, room - 2);
    const whole = tokens.length === found.length && all.length <= LONGEST;
    note.textContent = whole ? "" : `Only the first ${tokens.length} tokens are read.`;
    const [first, last] = data.around.map((id) => ({ id, piece: tokenizer.pieces[id] }));
    const line = [first, ...tokens, last];
    const ids = line.map(({ id }) => id);
    const keep = [
      "embeddings",
      "blocks.*",
      "blocks.*.attention.weights",
      "blocks.*.attention.lengths",
    ];
    const answered = await asked(() => bert.forward(ids, { keep, logits_of: [] }, lane));
    if (!answered) return;
    const of = (layer, name = "") => answered.kept[`blocks.${layer}${name}`].values;
    const each = (f) => Array.from({ length: layers }, (_, layer) => f(layer));
    seen = {
      ids,
      tokens: line.map(({ piece }) => piece),
      weights: each((layer) => parts(of(layer, ".attention.weights"), heads)),
      lengths: each((layer) => parts(of(layer, ".attention.lengths"), heads)),
      moved: each(() => []),
      states: [answered.kept.embeddings.values, ...each((layer) => of(layer))],
      near: [[], ...each(() => [])],
    };
    token = Math.min(token, ids.length - 1);
    draw();
  }

  /* Ask the model; an error is told, and the answer is null. */
  async function asked(question) {
    try {
      return await question();
    } catch (error) {
      note.textContent = `The model does not answer: ${error.message}`;
      return null;
    }
  }

  /* The line without the head that is chosen. */
  async function remove() {
    const line = seen;
    const known = line.moved[layer];
    const own = head;
    const last = `blocks.${layers - 1}`;
    if (known[own]) return;
    const options = { keep: [last], ablate: [[layer, own]], logits_of: [] };
    const found = await asked(() => bert.forward(line.ids, options, `${lane} removed`));
    if (!found) return;
    const { values, shape } = found.kept[last];
    known[own] = distances(line.states[layers], values, shape[1]);
    if (line === seen) drawHead();
  }

  async function look(level) {
    const line = seen;
    const own = token;
    if (line.near[level][own]) return;
    const vector = parts(line.states[level], line.ids.length)[own].slice();
    const found = await asked(() => bert.nearest(vector, NEAREST, `${lane} near ${level - layer}`));
    if (!found) return;
    line.near[level][own] = found.map(({ id, cosine }) => [tokenizer.pieces[id], cosine]);
    if (line === seen) drawNear();
  }

  function choose(...place) {
    [layer, head, token] = place;
    drawHead();
    drawNear();
  }

  /* Arrow keys go from head to head, and from token to token. */
  function go(event) {
    const step = arrow(event);
    const columns = event.currentTarget === grid ? heads : 1;
    if (!step) return;
    event.preventDefault();
    const all = Array.from(event.currentTarget.querySelectorAll("button"));
    const next = all[all.indexOf(event.target) + step[0] + columns * step[1]];
    next?.focus();
    next?.click();
  }

  /* --- drawing --- */

  const word = (i) => shown(seen.tokens[i]);
  const quoted = (i) => `“\u2068${word(i)}\u2069”`; // what turns round turns nothing else

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

  /* How opaque a point is: the root of the weight, so that a tenth can be seen. */
  function drawGrid() {
    const colour = getComputedStyle(grid).color;
    const count = seen.tokens.length;
    cells.forEach((cell, i) => {
      const canvas = cell.firstChild;
      const [l, h] = places[i];
      canvas.width = canvas.height = count;
      const image = new ImageData(count, count);
      const pen = canvas.getContext("2d");
      seen.weights[l][h].forEach(
        (weight, point) => (image.data[4 * point + 3] = 255 * Math.sqrt(weight)),
      );
      pen.putImageData(image, 0, 0);
      pen.globalCompositeOperation = "source-in"; // colour what is there
      pen.fillStyle = colour;
      pen.fillRect(0, 0, count, count);
    });
  }

  function drawHead() {
    const count = seen.tokens.length;
    const moved = seen.moved[layer][head];
    const weights = Array.from(seen.weights[layer][head].slice(token * count, (token + 1) * count));
    const long = weights.map((weight, i) => weight * seen.lengths[layer][head][i]);
    const columns = [weights, long, moved];
    cells.forEach((cell, i) => {
      const isOwn = i === layer * heads + head;
      cell.setAttribute("aria-checked", isOwn);
      cell.tabIndex = isOwn ? 0 : -1;
    });
    [...body.rows].forEach(({ cells: [name, ...tds] }, i) => {
      name.firstChild.setAttribute("aria-pressed", i === token);
      name.firstChild.tabIndex = i === token ? 0 : -1;
      tds.forEach((td, column) => {
        const all = columns[column];
        td.style.setProperty("--share", all ? all[i] / (Math.max(...all) || 1) : 0);
        td.lastChild.textContent = all ? fixed(all[i]) : "…";
      });
    });
    title.textContent = `Layer ${layer}, head ${head}: where ${quoted(token)} looks`;
    summary.textContent =
      `${quoted(token)} looks most at ${quoted(best(weights))}, with a weight of ` +
      `${fixed(Math.max(...weights))}. By weight times length, most of what it gets comes from ${quoted(best(long))}.` +
      (moved
        ? ` Without this head the final state of ${quoted(best(moved))} moves most: by ${fixed(Math.max(...moved))} of its length.`
        : "");
    later();
    remove();
  }

  function drawNear() {
    const lists = [
      ["Before", layer],
      ["After", layer + 1],
    ].map(([name, level]) => {
      const found = seen.near[level][token];
      const items = (found || []).map(([piece, cosine]) =>
        make("li", {}, make("bdi", {}, shown(piece)), ` ${fixed(cosine)}`),
      );
      if (!found) look(level);
      return make("div", {}, `${name} layer ${layer}`, make("ol", {}, ...items));
    });
    nearTitle.replaceChildren(
      make("b", {}, `Where ${quoted(token)} is`),
      ": the tokens of the table whose vectors are nearest, with the cosine.",
    );
    near.replaceChildren(...lists);
  }

  draw();
  return { theme: drawGrid };
}
