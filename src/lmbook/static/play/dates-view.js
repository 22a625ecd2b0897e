/* The view *dates*: an encoder-decoder that reads a date and writes it in another form, run in
   the page. A click hides a character of the source from the decoder, which then writes anew. */
import { button, make, ownLine, percent } from "./dom.js";
import { ACTIVATIONS, added, linear, norm, softmax } from "./engine.js";

const START = 1;
const STOP = 2;
const LONGEST = 24;
const EPS = 1e-5;
const visible = (character) => ({ " ": "␣", ">": "end" })[character] ?? character;

/* A matrix in int8: bytes in base64, and a scale for each row; anything else as it is. */
function unpack(stored) {
  if (!stored.int8) return new Float32Array(stored);
  const bytes = Int8Array.from(atob(stored.int8), (letter) => letter.charCodeAt(0));
  const columns = bytes.length / stored.scale.length;
  return Float32Array.from(bytes, (value, i) => value * stored.scale[Math.floor(i / columns)]);
}

/* One block on either side, norms first, as the chapter's Transformer. */
export class Reader {
  constructor({ weights, vocabulary, heads }) {
    Object.assign(this, { vocabulary, heads, weights: {} });
    for (const name in weights) this.weights[name] = unpack(weights[name]);
    this.width = this.weights["encoder.norm.weight"].length;
  }

  at(name) {
    return { weight: this.weights[`${name}.weight`], bias: this.weights[`${name}.bias`] };
  }

  /* Token vectors and sinusoids: (tokens, width). */
  embed(ids) {
    const { width } = this;
    const table = this.weights["embed.table.weight"];
    return Float32Array.from({ length: ids.length * width }, (_, n) => {
      const place = Math.floor(n / width);
      const i = n % width;
      const angle = place * 10000 ** (-(i - (i % 2)) / width);
      return table[ids[place] * width + i] + (i % 2 ? Math.cos(angle) : Math.sin(angle));
    });
  }

  /* Attention of x to a memory where `may(i, j)`: the update, and weights [heads][i][j]. */
  attend(name, x, memory, may) {
    const { heads, width } = this;
    const size = width / heads;
    const tokens = x.length / width;
    const [query, key, value] = ["query", "key", "value"].map((part) =>
      linear(part === "query" ? x : memory, this.at(`${name}.${part}`), width),
    );
    const mixed = new Float32Array(x.length);
    const places = Array.from({ length: memory.length / width }, (_, j) => j);
    const weights = Array.from({ length: heads }, (_, head) =>
      Array.from({ length: tokens }, (_, i) => {
        const a = i * width + head * size;
        const b = (j) => j * width + head * size;
        const shares = softmax(
          places.map((j) => {
            let sum = 0;
            for (let n = 0; n < size; n++) sum += query[a + n] * key[b(j) + n];
            return may(i, j) ? sum / Math.sqrt(size) : -Infinity;
          }),
        );
        for (const j of places)
          for (let n = 0; n < size; n++) mixed[a + n] += shares[j] * value[b(j) + n];
        return shares;
      }),
    );
    return { update: linear(mixed, this.at(`${name}.output`), width), weights };
  }

  feedForward(name, x) {
    const raised = linear(
      norm(x, this.at(`${name}.norm_2`), EPS),
      this.at(`${name}.feed_forward.up`),
      this.width,
    );
    const down = this.at(`${name}.feed_forward.down`);
    const wide = down.weight.length / this.width;
    return added(x, linear(raised.map(ACTIVATIONS.gelu), down, wide));
  }

  ids(text) {
    return Array.from(text, (character) => this.vocabulary.indexOf(character));
  }

  encode(text) {
    const name = "encoder.blocks.0";
    let x = this.embed(this.ids(text));
    const seen = norm(x, this.at(`${name}.norm_1`), EPS);
    x = added(x, this.attend(`${name}.attention`, seen, seen, () => true).update);
    return norm(this.feedForward(name, x), this.at("encoder.norm"), EPS);
  }

  /* What it expects after each of the ids, and where it looks: weights [heads][i][j]. */
  decode(ids, memory, hidden) {
    const name = "decoder.blocks.0";
    const { width } = this;
    let x = this.embed(ids);
    const seen = norm(x, this.at(`${name}.norm_1`), EPS);
    x = added(x, this.attend(`${name}.attention`, seen, seen, (i, j) => j <= i).update);
    const asks = norm(x, this.at(`${name}.norm_cross`), EPS);
    const { update, weights } = this.attend(
      `${name}.cross`,
      asks,
      memory,
      (_, j) => !hidden.has(j),
    );
    x = norm(this.feedForward(name, added(x, update)), this.at("decoder.norm"), EPS);
    const logits = linear(x, this.at("output"), width);
    const size = this.vocabulary.length;
    return { weights, probs: ids.map((_, i) => softmax(logits.slice(i * size, (i + 1) * size))) };
  }

  /* Write greedily: { written, probs, weights }, of each character and the end. */
  write(text, hidden = new Set()) {
    const memory = this.encode(text);
    const ids = [START];
    for (;;) {
      const found = this.decode(ids, memory, hidden);
      const last = found.probs.at(-1);
      const best = last.indexOf(Math.max(...last));
      if (best === STOP || ids.length === LONGEST)
        return {
          written: ids
            .slice(1)
            .map((id) => this.vocabulary[id])
            .join(""),
          ...found,
        };
      ids.push(best);
    }
  }
}

export function mount(element, data) {
  const reader = new Reader(data);
  const hidden = new Set();
  let source;
  let wanted;
  let state;
  let place = data.place;
  let head = null; // the character written; the head (or all)
  const { area, note, label } = ownLine("", type, {
    rows: 1,
    maxlength: LONGEST,
    "aria-label": "A date of your own",
  });
  label.querySelector(".play-line").firstChild.data = "or type one";
  const style = make("select", { onchange: choose });
  const groups = [
    ["It learned from", 0, data.seen],
    ["It never saw", data.seen, data.examples.length],
  ];
  for (const [label, from, to] of groups)
    style.append(
      make(
        "optgroup",
        { label },
        ...data.examples
          .slice(from, to)
          .map(([name], i) => make("option", { value: from + i }, name)),
      ),
    );
  const read = make("div", {
    class: "lmd-row lmd-read",
    role: "group",
    "aria-label": "Characters read; press one to hide it",
  });
  const written = make("div", {
    class: "lmd-row",
    role: "group",
    "aria-label": "Characters written",
  });
  const heads = make("div", { class: "lmd-heads", role: "group", "aria-label": "Heads" });
  const bars = make("div", { class: "lmd-bars" });
  const verdict = make("p", { class: "lmd-verdict", role: "status" });
  const summary = make("p", { class: "lmd-summary", "aria-live": "polite" });
  const again = button("Hide nothing", () => {
    hidden.clear();
    answer();
  });
  element.append(
    make("p", { class: "play-controls" }, make("label", {}, "A date ", style), again),
    label,
    note,
    make("p", { class: "play-muted" }, "It reads (click a character to hide it from the decoder)"),
    read,
    make("p", { class: "play-muted" }, "and writes (click a character to see where it looked)"),
    written,
    verdict,
    make("div", { class: "play-both" }, bars, make("div", {}, heads, summary)),
  );

  function choose() {
    begin(...data.examples[style.value]);
  }

  function type() {
    const known = Array.from(area.value).filter((c) => reader.vocabulary.indexOf(c) > STOP);
    note.textContent =
      known.length < area.value.length ? "It knows letters, digits, spaces and , - . / only." : "";
    if (known.length) begin(known.join(""), null);
  }

  function begin(text, right) {
    [source, wanted] = [text, right];
    hidden.clear();
    answer();
  }

  function answer() {
    state = reader.write(source, hidden);
    place = Math.min(place, state.written.length);
    const isRight = state.written === wanted;
    verdict.classList.toggle("lmd-wrong", !!wanted && !isRight);
    verdict.textContent = !wanted ? "" : isRight ? "✓ That is the day." : `✗ The day is ${wanted}.`;
    again.disabled = !hidden.size;
    draw();
  }

  function hide(i) {
    if (!hidden.delete(i) && hidden.size < source.length - 1) hidden.add(i);
    answer();
  }

  /* Buttons of which some are pressed; the focus stays where it was. */
  function drawButtons(parent, labels, isPressed, press, name = (label) => label) {
    const focused = Array.from(parent.children).indexOf(document.activeElement);
    parent.replaceChildren(
      ...labels.map((label, i) =>
        button(label, () => press(i), {
          "aria-pressed": String(isPressed(i)),
          "aria-label": name(label, i),
        }),
      ),
    );
    parent.children[focused]?.focus();
  }

  function draw() {
    const rows = state.weights.map((weights) => weights[place]);
    const mean = rows[0].map((_, j) => rows.reduce((sum, row) => sum + row[j], 0) / rows.length);
    const weights = head === null ? mean : rows[head];
    const characters = [...state.written, ">"];
    drawButtons(
      read,
      [...source].map(visible),
      (i) => hidden.has(i),
      hide,
      (label, i) => `${label}, place ${i + 1}${hidden.has(i) ? ", hidden" : ""}`,
    );
    weights.forEach((weight, i) => {
      read.children[i].style.setProperty("--share", weight);
      const told = hidden.has(i) ? "hidden" : weight < 0.005 ? "" : percent(weight);
      read.children[i].append(make("small", {}, told));
    });
    drawButtons(
      written,
      characters.map(visible),
      (i) => i === place,
      (i) => {
        place = i;
        draw();
      },
      (label, i) => `${label}, place ${i + 1}`,
    );
    characters.forEach((character, i) =>
      written.children[i].classList.toggle("lmd-wrong", !!wanted && character !== `${wanted}>`[i]),
    );
    const names = ["mean of heads", ...rows.map((_, i) => `head ${i}`)];
    drawButtons(
      heads,
      names,
      (i) => i === (head ?? -1) + 1,
      (i) => {
        head = i ? i - 1 : null;
        draw();
      },
    );
    const likely = (list, count) =>
      Array.from(list, (share, i) => [share, i])
        .sort((a, b) => b[0] - a[0])
        .slice(0, count);
    bars.replaceChildren(
      ...likely(state.probs[place], 3).map(([share, i]) =>
        make(
          "p",
          {},
          make("b", {}, visible(reader.vocabulary[i])),
          make("span", { class: "lmd-bar", style: `width: ${8 * share}em` }),
          ` ${percent(share)}`,
        ),
      ),
    );
    summary.textContent =
      `While it writes “${visible(characters[place])}” it looks most at ` +
      likely(weights, 3)
        .map(([share, i]) => `“${visible(source[i])}” (place ${i + 1}, ${percent(share)})`)
        .join(", ") +
      ".";
  }

  choose();
}
