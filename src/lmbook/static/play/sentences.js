/* Sentences to choose from: the tokens of one in a row, and what the chosen token attends to
   in the chosen head, as shades, per cents and arcs; below, what each noun gets. All of it
   is HTML, in the page's colours; the arcs alone are a drawing, and say nothing that the
   shades do not. With `layer` the reader's own sentences are read, too, once the weights
   of the model are loaded, after a click. A switch puts random weights in the model's place, or
   the words in another order: `untrained` has the weights of the stored sentences in a model
   that has learned nothing, and the model that is loaded reads all else. */
import {
  bar,
  button,
  changedHow,
  countField,
  greatest,
  learnedSwitch,
  make,
  row,
  select,
  someOf,
  stateOf,
  svg,
  WORLDS,
} from "./dom.js";
import { roving } from "./keys.js";
import { inAnotherOrder, LINES, ONE_ORDER, ownLines, ROOM, SEED } from "./own-lines.js";

/** @import { Line } from "./own-lines.js" */

/**
 * What a model made of a sentence.
 *
 * @typedef {object} Reading
 * @property {number[][][]} weights [head][query][key], in per cent
 * @property {number[]} order for each token that was read its position in the sentence
 */

/**
 * @typedef {object} Sentence
 * @property {string[]} tokens
 * @property {Record<string, Reading>} readings by the state of the switch, as far as they are known
 * @property {number} query position of the token that is chosen to begin with
 * @property {[first: number, end: number][]} nouns positions of each one's tokens; end is the first
 *   behind them
 * @property {string} note what is said of it
 */

/**
 * @typedef {object} Data
 * @property {(Omit<Sentence, "note" | "readings"> & Pick<Reading, "weights">)[]} sentences
 * @property {string[]} notes one for each
 * @property {number} head the one that is chosen to begin with
 * @property {number} [layer] whose heads they are, if the reader's own sentences are read
 * @property {[number, number]} around the ids before and after a line
 * @property {string} [pair] the lines to begin with where the reader's own are typed
 * @property {number[][][][]} [untrained] weights of the same sentences in another model
 */

/**
 * What is shown: the position of the sentence, the head, the position of the token that attends.
 *
 * @typedef {{ sentence: number, head: number, query: number }} State
 */

const LEAST = 4; // per cent; arcs for less would be a haze
const OWN =
  "The dog didn't eat the soup because it was too hot.\nThe dog didn't eat the soup because it was too sick.";
/* A noun's place in a reader's sentence is right after one of these. */
const BEFORE = /^(the|an?|my|your|his|her|its|our|their|this|that|these|those)$/;
const PRONOUN = /^(it|he|she|they|him|her|them)$/;

/**
 * Tokens as one would write them, pieces of a word together, without [CLS] and [SEP].
 *
 * @type {(tokens: string[]) => string}
 */
const written = (tokens) =>
  tokens
    .join(" ")
    .replace(/^\[CLS\] | \[SEP\]$| ##/g, "")
    .replace(/ ([.,;:!?])/g, "$1")
    .replace(/ (['’]) /g, "$1");

/**
 * The positions of tokens, in order.
 *
 * @type {(tokens: string[]) => number[]}
 */
const inOrder = (tokens) => Array.from(tokens.keys());

/**
 * Weights in whole per cents, as they are stored.
 *
 * @param {Float32Array} values (heads · tokens · tokens)
 * @param {number} count of tokens
 * @returns {Reading["weights"]}
 */
function perCents(values, count) {
  const all = Array.from(values, (value) => Math.round(100 * value));
  /**
   * A row of all matrices, which stand one under another.
   *
   * @type {(row: number) => number[]}
   */
  const rowAt = (row) => all.slice(row * count, (row + 1) * count);
  return Array.from({ length: values.length / count ** 2 }, (_, head) =>
    Array.from({ length: count }, (_, query) => rowAt(head * count + query)),
  );
}

/**
 * A sentence of the reader's that the model has read as it is. The first pronoun is chosen, or
 * else the token behind [CLS].
 *
 * @param {string[]} tokens
 * @param {Float32Array} values (heads · tokens · tokens), weights
 * @returns {Sentence}
 */
function own(tokens, values) {
  const count = tokens.length;
  /** @type {Sentence["nouns"]} */
  const nouns = [];
  tokens.forEach((_, i) => {
    if (!/\w/.test(tokens[i]) || !BEFORE.test(tokens[i - 1]) || i === count - 1) return;
    let end = i + 1;
    while (tokens[end].startsWith("##")) end += 1;
    nouns.push([i, end]);
  });
  const query = Math.max(
    1,
    tokens.findIndex((token) => PRONOUN.test(token)),
  );
  return {
    tokens,
    readings: { [WORLDS.asItIs]: { weights: perCents(values, count), order: inOrder(tokens) } },
    query,
    nouns,
    note: "Yours. As nouns count the words right after “the”, “a”, “my” and their like.",
  };
}

/**
 * Show which one of a set of buttons is chosen; it alone is reached by the tab key, the others by
 * arrow keys.
 *
 * @param {HTMLElement[]} buttons
 * @param {number} chosen its position
 */
function choose(buttons, chosen) {
  buttons.forEach((button, index) => {
    button.setAttribute("aria-pressed", String(index === chosen));
    button.setAttribute("tabindex", index === chosen ? "0" : "-1");
  });
  roving(buttons, 1);
}

/**
 * Make an arc from the top of one box to the top of another, above the line or across lines.
 *
 * @param {Element} frame that it is drawn in
 * @param {Element} from
 * @param {Element} to
 * @param {number} share how thick it is, in per cent
 */
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

/**
 * Mount the view *sentences*: the tokens of one sentence in a row, and how much of a head's
 * attention the chosen token gives to each. `data` has the sentences with their weights
 * [head][query][key], in per cent.
 *
 * @param {HTMLElement} canvas empty
 * @param {Data} data
 * @param {ViewContext} context
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(canvas, data, context) {
  /** @type {Sentence[]} */
  const stored = data.sentences.map(({ weights, ...sentence }, i) => {
    const order = inOrder(sentence.tokens);
    const readings = { [WORLDS.asItIs]: { weights, order } };
    const random = data.untrained?.[i];
    if (random) readings[WORLDS.random] = { weights: random, order };
    return { ...sentence, readings, note: data.notes[i] };
  });
  let all = stored; // the stored sentences, and behind them the reader's
  /** @type {{ sentence?: number, query?: number }} */
  let later = {}; // what a link has chosen of sentences that were not read yet
  /** @type {HTMLElement[]} in the order of the sentence, not that in which they stand */
  let tokens = [];
  /** @type {number[] | null} the order in which they stand */
  let standing = null;
  /** @type {{ sentence: Sentence, world: string } | null} what the model is reading */
  let waiting = null;
  /** @type {State} */
  const state = { sentence: 0, head: data.head, query: stored[0].query };
  /**
   * Make what shows the sentence some places on; behind the last comes the first.
   *
   * @param {number} by 1 or -1
   */
  const turn = (by) => () => show({ sentence: (state.sentence + by + all.length) % all.length });
  /** @type {HTMLSelectElement} */
  const choice = select([], () => show({ sentence: Number(choice.value) }), {
    "aria-label": "Sentence",
  });
  const {
    worlds,
    remains,
    label: worldLabel,
  } = learnedSwitch(() => show({}), data.layer === undefined ? null : "shuffled words");
  const squares = data.sentences[0].weights.map((_, head) =>
    button(head, () => show({ head }), { class: "lmc-square", "aria-label": `Head ${head}` }),
  );
  const arcs = svg("svg", { "aria-hidden": "true" });
  const words = make("div", { class: "lmc-words", role: "group", "aria-label": "Tokens" });
  const line = make("div", { class: "lmc-line" }, arcs, words);
  const summary = make("p", { class: "lmc-told", "aria-live": "polite" });
  const note = make("p", { class: "lmc-note" });
  const nouns = make("table", { class: "lmc-nouns" });
  if (data.untrained) canvas.append(make("p", { class: "lmc-world" }, worldLabel), remains);
  canvas.append(
    make(
      "p",
      { class: "lmc-choice" },
      button("‹", turn(-1), { "aria-label": "previous sentence" }),
      choice,
      button("›", turn(1), { "aria-label": "next sentence" }),
    ),
    make(
      "div",
      { class: "lmc-head-row", role: "group", "aria-label": "Head" },
      make("span", {}, data.layer === undefined ? "Head " : `Layer ${data.layer}, head `),
      ...squares,
    ),
    line,
    summary,
    nouns,
    note,
  );
  const { layer } = data;
  const pair =
    layer !== undefined &&
    ownLines(
      {
        text: data.pair ?? OWN,
        name: "Your own pair, a sentence a line",
        around: data.around,
        fits: (config) => config.heads === squares.length && layer < config.layers,
        keep: [`blocks.${layer}.attention.weights`],
        take,
      },
      context,
    );
  if (pair) canvas.append(...pair.parts);

  /* What the model made of the sentence in the state of the switch. If that is not known it is
     asked for; until it comes, the sentence as it is. */
  function reading() {
    const sentence = all[state.sentence];
    const { [worlds.value]: now, [WORLDS.asItIs]: usual } = sentence.readings;
    if (!now) read(sentence, worlds.value);
    return now ?? usual;
  }

  /**
   * Let the model read a sentence by random weights or in another order, and show it; nothing if it
   * is not loaded, or reads just that already.
   *
   * @param {Sentence} sentence the reading is added to it
   * @param {string} world state of the switch
   */
  async function read(sentence, world) {
    if (!pair || (waiting?.sentence === sentence && waiting.world === world)) return;
    if (!pair.isHere()) return;
    const asked = { sentence, world };
    waiting = asked;
    const isRandom = world === WORLDS.random;
    const order = isRandom ? inOrder(sentence.tokens) : inAnotherOrder(sentence.tokens);
    const seed = isRandom ? SEED : null;
    const values = await pair.ask(
      order.map((old) => sentence.tokens[old]),
      seed,
    );
    if (waiting !== asked) return; // something newer was asked for, and may have come already
    waiting = null;
    if (values) {
      const weights = perCents(values[0], order.length);
      sentence.readings[world] = { weights, order };
      show({});
    } else remains.textContent = "";
  }

  /**
   * What the chosen token gives each token, in per cent, in the order of the sentence, by one head.
   *
   * @param {Reading} reading of the sentence that is shown
   * @param {number} head
   */
  function sharesOf({ weights, order }, head) {
    const shares = new Array(order.length);
    weights[head][order.indexOf(state.query)].forEach((share, i) => {
      shares[order[i]] = share;
    });
    return shares;
  }

  /* Say in how many heads the chosen token attends most to the same token as in the trained model;
     why it is not known; nothing if the switch says "as it is". */
  function tellLeft() {
    const world = worlds.value;
    const { tokens: words, readings } = all[state.sentence];
    const usual = readings[WORLDS.asItIs];
    const now = readings[world];
    if (world === WORLDS.asItIs) remains.textContent = "";
    else if (!now)
      remains.textContent = waiting
        ? "Reading …"
        : "The model that reads this has to be loaded first: the button is below.";
    else if (world === WORLDS.shuffled && now.order.every((old, i) => old === i))
      remains.textContent = ONE_ORDER;
    else {
      const same = squares.filter((_, head) => {
        const key = greatest(sharesOf(usual, head));
        return key >= 0 && key === greatest(sharesOf(now, head));
      });
      remains.textContent =
        `${changedHow(world, "the words")}, “${words[state.query]}” attends most to the same ` +
        `token as before in ${someOf(same.length, squares.length, "head")}.`;
    }
  }

  /**
   * Put the reader's sentences in the place of those before, behind the stored ones, and show the
   * first, or what a link has chosen.
   *
   * @param {Line[]} lines
   */
  function take(lines) {
    const read = lines.map((line) => own(line.tokens, line.values[0]));
    all = [...stored, ...read];
    list();
    const { sentence = stored.length, query = -1 } = later;
    later = {};
    show({ sentence: sentence in all ? sentence : 0 });
    if (query in all[state.sentence].tokens) show({ query });
  }

  /* List the sentences to choose from. */
  function list() {
    choice.replaceChildren(
      ...all.map((sentence, value) =>
        make(
          "option",
          { value },
          (value < stored.length ? "" : "Yours: ") + written(sentence.tokens),
        ),
      ),
    );
  }

  /* Draw an arc to each token that gets at least LEAST per cent, but to the chosen one itself. */
  function draw() {
    const drawn = sharesOf(reading(), state.head).map((share, key) =>
      share >= LEAST && key !== state.query
        ? arc(line, tokens[state.query], tokens[key], share)
        : "",
    );
    arcs.replaceChildren(...drawn);
  }

  /**
   * Show another sentence, head or token; with another sentence, its own token is chosen.
   *
   * @param {Partial<State>} change what changes
   */
  function show(change) {
    const isAnother = change.sentence !== undefined;
    Object.assign(state, change);
    if (isAnother) state.query = all[state.sentence].query;
    const sentence = all[state.sentence];
    if (isAnother) {
      choice.value = String(state.sentence);
      note.textContent = sentence.note;
    }
    const now = reading();
    if (isAnother || String(now.order) !== String(standing)) {
      tokens = sentence.tokens.map((token, query) =>
        button(token, () => show({ query }), { class: "lmc-word" }),
      );
      tokens.forEach((token) => token.append(make("small")));
      const isInside = words.contains(document.activeElement);
      words.replaceChildren(...now.order.map((old) => tokens[old]));
      if (isInside) tokens[state.query].focus();
    }
    standing = now.order;
    const shares = sharesOf(now, state.head);
    tokens.forEach((token, key) => {
      token.style.setProperty("--share", String(shares[key] / 100));
      /** @type {Node} */ (token.lastChild).textContent = shares[key]
        ? `${shares[key]}\u2009%`
        : "";
    });
    const most = shares
      .map((share, key) => ({ share, token: sentence.tokens[key] }))
      .sort((a, b) => b.share - a.share);
    const top = most.slice(0, 3).map(({ share, token }) => `${token} ${share}\u00a0%`);
    const query = sentence.tokens[state.query];
    summary.textContent = `Head ${state.head}: “${query}” attends to ${top.join(", ")}`;
    nouns.replaceChildren(
      ...sentence.nouns.map(([start, end], i) => {
        const share = shares.slice(start, end).reduce((a, b) => a + b, 0);
        const name = written(sentence.tokens.slice(start, end)) + (i ? "" : " (named first)");
        return row(
          make("bdi", {}, name),
          `${share}\u00a0%`,
          bar(share / 100, (end - start) / tokens.length),
        );
      }),
    );
    choose(squares, state.head);
    choose(
      now.order.map((old) => tokens[old]),
      now.order.indexOf(state.query),
    );
    tellLeft();
    draw();
  }

  list();
  show({ sentence: 0 });
  new ResizeObserver(draw).observe(line);
  document.fonts.ready.then(draw);
  const most = stored.length + (pair ? LINES : 0);
  const fields = {
    ...(pair ? { text: pair.area } : {}),
    sentence: countField(
      () => later.sentence ?? state.sentence,
      (sentence) => {
        if (sentence in all) show({ sentence });
        else later = { sentence };
      },
      () => most,
    ),
    head: countField(
      () => state.head,
      (head) => show({ head }),
      () => squares.length,
    ),
    token: countField(
      () => later.query ?? state.query,
      (query) => {
        if (later.sentence !== undefined) later.query = query;
        else if (query in tokens) show({ query });
      },
      () => ROOM + 2,
    ),
    world: worlds,
  };
  return { state: stateOf(fields) };
}
