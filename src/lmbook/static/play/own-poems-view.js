/* The view *own poems*: texts that the reader brings, read level by level by the site's BERT.
   `lmcourse.views.own_poems` gives texts to begin with, of which all is known. What a reader
   brings stays in the page. */

import {
  button,
  controls,
  countField,
  duration,
  learnedSwitch,
  leftOf,
  make,
  megabytes,
  plural,
  row,
  select,
  slider,
  stateOf,
  WORLDS,
} from "./dom.js";
import { decoded, faultOf, poemsOf, tellCut } from "./poem-files.js";
import { readerOf } from "./poem-reading.js";
import {
  howCut,
  labelsSentence,
  leftOut,
  leftSentence,
  neighboursTable,
  readSentence,
  summaryOf,
  WORDS,
} from "./poem-sentences.js";
import { quoted } from "./text.js";

/** @import { Poem } from "./poem-files.js" */
/** @import { Accuracy } from "./poem-numbers.js" */
/** @import { Line } from "./poem-reading.js" */
/** @import { Shown } from "./poem-sentences.js" */

const STOPPED = "Stopped. Choose the same at the switch to go on: what was read is not read again.";
/** @type {Record<string, string>} */
const READ = {
  [WORLDS.random]: "Random weights have read them, too.",
  [WORLDS.shuffled]: "The model has read them with their words in another order, too.",
};

/**
 * The texts to begin with, and what was found of them. `told` is how often a text's label is
 * guessed correctly from the other texts; near are the three nearest texts, by their positions.
 *
 * @typedef {object} Data
 * @property {Poem[]} poems
 * @property {string[]} levels their names, the lowest first
 * @property {[number, number]} around the ids before and after a text
 * @property {[texts: number, tokens: number]} most that are read
 * @property {number} text the one that is shown first
 * @property {number[][]} words (texts, 3), the nearest by counted words
 * @property {number[][][]} near (levels, texts, 3), by the model as it is
 * @property {number[][][]} random the same by random weights
 * @property {Accuracy[]} told one a level, by the model as it is
 * @property {number[]} told_random one a level, by random weights, from 0 to 1
 * @property {number[][][]} shuffled as near, by the model with the words in another order
 * @property {number[]} told_shuffled one a level, with the words in another order, from 0 to 1
 * @property {string[]} shuffled_texts what it read then
 * @property {Accuracy} told_words by counted words
 * @property {Accuracy} told_dealt at the last level, with shuffled labels
 */

/**
 * The texts to begin with, as what is shown.
 *
 * @param {Data} data
 * @returns {Shown}
 */
function example(data) {
  const { poems, levels, words } = data;
  /**
   * Shares without an interval, as accuracies.
   *
   * @type {(shares: number[]) => Accuracy[]}
   */
  const plain = (shares) => shares.map((share) => [share, share, share]);
  return {
    poems,
    rivals: { words, accuracy: data.told_words, shuffled: data.told_dealt },
    worlds: {
      [WORLDS.asItIs]: { levels, near: data.near, accuracy: data.told },
      [WORLDS.random]: { levels, near: data.random, accuracy: plain(data.told_random) },
      [WORLDS.shuffled]: {
        levels,
        near: data.shuffled,
        accuracy: plain(data.told_shuffled),
        texts: data.shuffled_texts,
      },
    },
  };
}

/**
 * Make a box in which a text scrolls, by keys as well.
 *
 * @param {string} name read out for it
 * @param {...string} words the text
 */
const textBox = (name, ...words) =>
  make(
    "div",
    {
      class: "play-poem lmy-poem",
      dir: "auto",
      tabindex: 0,
      role: "group",
      "aria-label": name,
    },
    ...words,
  );

/**
 * Mount the view *own poems*: texts that the reader brings; at each level of a BERT the texts
 * nearest to the chosen one, and how often labels are predicted correctly. In it, a text is a
 * number, its position among those that are shown.
 *
 * @param {HTMLElement} element empty
 * @param {Data} data
 * @param {ViewContext} context
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data, context) {
  const reader = readerOf(data, context);
  const size = megabytes(reader.bytes, 1);
  let shown = example(data);
  let chosen = data.text; // the text that is shown
  /** @type {Poem[] | null} the reader's texts that came in last, whether they were read or not */
  let own = null;
  /** @type {Poem[] | null} those that the model reads just now */
  let reading = null;
  let message = ""; // of the texts that came in last
  /** @type {string} the state of the switch that is shown */
  let state = WORLDS.asItIs;
  let isBusy = false; // whether texts are being read

  /* --- what stands there --- */

  /** @type {HTMLTextAreaElement} */
  const area = make("textarea", {
    rows: 6,
    dir: "auto",
    spellcheck: "false",
    placeholder: "Paste poems, letters, songs: an empty line between two of them.",
    oninput: () =>
      take(
        () => poemsOf(area.value, "Your text"),
        "Your texts",
        () => howCut(area.value),
      ),
    ondragover: (/** @type {Event} */ event) => event.preventDefault(),
    ondrop: drop,
  });
  /** @type {HTMLInputElement} */
  const input = make("input", {
    type: "file",
    hidden: "",
    "aria-label": "A file of texts",
    onchange: () => open(input.files?.[0]),
  });
  const note = make("p", { class: "play-note", role: "status" });
  const status = make("p", { class: "play-note", role: "status" });
  const read = button(`Load the model and read them: ${size}`, readOwn, { disabled: "" });
  const stop = button("Stop", () => reader.stop(), { hidden: "" });
  const back = button("the book’s texts again", restore, { hidden: "" });
  const progress = make("progress", { max: 1, value: 0, hidden: "", "aria-label": "Reading" });
  const { worlds, label: worldLabel, remains } = learnedSwitch(switchWorld);
  /** @type {HTMLSelectElement} */
  const texts = select([], () => show(Number(texts.value)), { "aria-label": "Text" });
  /**
   * Make what shows the text some places on; behind the last comes the first.
   *
   * @param {number} by 1 or -1
   */
  const turn = (by) => () => show((chosen + by + shown.poems.length) % shown.poems.length);
  const level = slider("Level", { min: 0, max: 1, step: 1, value: 0, oninput: draw });
  const poem = textBox("the text");
  const ownLabel = make("p", { class: "play-muted" });
  const beside = make("div", { class: "lmy-near" });
  const summary = make("p", { role: "status" });
  const rows = make("tbody");
  const labels = make("div", { class: "lmy-labels" });
  element.append(
    controls(worldLabel),
    remains,
    make("label", { class: "lmy-text" }, "Your texts", area),
    make(
      "p",
      { class: "play-muted" },
      "Or a file: a text file with an empty line between two texts (two, if texts have stanzas), " +
        "or a table (.csv, .tsv) with a column text; label and title may stand beside it. At " +
        `most ${plural(data.most[0], "text")} and ${plural(data.most[1], "token")} are read, of ` +
        "a text the first 512. They stay in this page.",
    ),
    controls(
      button("choose a file", () => input.click()),
      input,
      read,
      stop,
      back,
    ),
    note,
    progress,
    status,
    controls(
      button("‹", turn(-1), { "aria-label": "previous text" }),
      texts,
      button("›", turn(1), { "aria-label": "next text" }),
      level.label,
    ),
    make("div", { class: "lmy-two" }, make("div", {}, poem, ownLabel), beside),
    summary,
    make(
      "div",
      {
        class: "lmc-scroll lmy-scroll",
        tabindex: 0,
        role: "region",
        "aria-label": "Nearest texts by level",
      },
      make("table", { class: "lmy-rows" }, rows),
    ),
    labels,
    controls(button("save the neighbours as a table", save)),
  );

  /* --- texts come in --- */

  /**
   * Take texts, or say what is wrong with them: then what came in before stays, unless these were
   * typed.
   *
   * @param {() => Poem[]} ask gives the texts, or throws an Error
   * @param {string} name of the file; "Your texts" if they were typed
   * @param {() => string} how tells, once they were asked for, how they were cut
   * @returns {boolean} whether they were taken
   */
  function take(ask, name, how) {
    try {
      const poems = ask();
      const fault = faultOf(poems.slice(0, data.most[0]));
      if (fault) throw new Error(`${name}: ${fault}`);
      own = poems;
      message = `${summaryOf(poems, name, data.most[0])}${how()}`;
      tellNote();
      read.disabled = isBusy;
      return true;
    } catch (error) {
      message = area.value || name !== "Your texts" ? `${error.message}.${how()}` : "";
      note.textContent = message;
      if (name === "Your texts") {
        own = null;
        read.disabled = true;
      }
      return false;
    }
  }

  /* Say what came in last. Texts that came while others are read are not among those that are
     counted below: that is said, too. */
  function tellNote() {
    const isLater = isBusy && own && own !== reading;
    note.textContent = isLater
      ? `${message} Other texts are being read now: ` +
        "wait until they are, or press Stop; then press the button to read these."
      : message;
  }

  /**
   * Read a file that is dropped; the browser takes anything else.
   *
   * @param {DragEvent} event
   */
  function drop(event) {
    const dropped = event.dataTransfer?.files[0];
    if (!dropped) return;
    event.preventDefault();
    open(dropped);
  }

  /**
   * Take the texts of a file; an error is told.
   *
   * @param {File | undefined} file
   */
  async function open(file) {
    if (!file) return;
    try {
      const bytes = new Uint8Array(await file.arrayBuffer());
      const isTable = /\.[ct]sv$/i.test(file.name);
      let how = "";
      /* The file's texts; `how` says then how they were cut, unless it is a table. */
      const ask = () => {
        const content = decoded(bytes, file.name);
        if (!isTable) how = ` ${tellCut(content)}`;
        return poemsOf(content, file.name);
      };
      take(ask, file.name, () => how);
    } catch (error) {
      message = `${file.name} cannot be read: ${error.message}.`;
      note.textContent = message;
    }
    input.value = ""; // so that the same one may be chosen again
  }

  /* --- they are read --- */

  /**
   * Do what takes a while; an error is told. Afterwards the switch stands again at what is
   * shown, because the work may have failed or been stopped.
   *
   * @param {() => Promise<void>} work
   */
  async function busy(work) {
    isBusy = true;
    stop.hidden = false;
    progress.hidden = false;
    read.disabled = true;
    worlds.disabled = true;
    progress.value = 0;
    try {
      await work();
    } catch (error) {
      status.textContent = `The model does not load: ${error.message}`;
    }
    isBusy = false;
    reading = null;
    tellNote();
    stop.hidden = true;
    progress.hidden = true;
    worlds.disabled = false;
    read.disabled = !own;
    worlds.value = state;
  }

  /* Let the model read the texts that came in last, and show what is found; if that is stopped or
     too few of them can be read, what was shown before stays. */
  function readOwn() {
    const poems = own;
    if (!poems || isBusy) return;
    reading = poems;
    busy(async () => {
      status.textContent = "Loading …";
      const { lines, left } = await reader.prepare(poems, (share) => {
        progress.value = share;
      });
      const fault = faultOf(lines.map(({ poem }) => poem));
      if (fault) {
        status.textContent = `Of what can be read: ${fault}. ${leftOut(left)}`;
        return;
      }
      const trained = await reader.read(lines, WORLDS.asItIs, count(lines));
      if (!trained) {
        status.textContent =
          "Stopped. What stood here before is still below. Press the same button to go on.";
        return;
      }
      shown = {
        poems: lines.map(({ poem }) => poem),
        worlds: { [WORLDS.asItIs]: trained },
        rivals: await reader.rivals(lines),
        lines,
      };
      status.textContent = `${readSentence(lines)} ${leftOut(left)}`;
      state = WORLDS.asItIs;
      back.hidden = false;
      list(0, trained.levels.length - 1);
    });
  }

  /**
   * Make what shows how many texts are read, and how long the others will take.
   *
   * @param {Line[]} lines all texts
   * @returns {(done: number) => void}
   */
  const count = (lines) => {
    const begun = performance.now();
    return (done) => {
      const left = ((performance.now() - begun) / 1000 / done) * (lines.length - done);
      progress.value = done / lines.length;
      const some = `${done} of ${plural(lines.length, "text")}`;
      status.textContent = `${some} read; ${duration(left)} to go …`;
    };
  };

  /* Show the book's texts again, unless others are being read. */
  function restore() {
    if (!isBusy) showExample();
  }

  /* Show the book's texts, as the trained model reads them. */
  function showExample() {
    shown = example(data);
    state = WORLDS.asItIs;
    worlds.value = WORLDS.asItIs;
    back.hidden = true;
    status.textContent = "";
    list(data.text, data.levels.length - 1);
  }

  /* The switch was moved: show what is known of that state; of a reader's texts it is found first,
     if it is not known. */
  function switchWorld() {
    const wanted = worlds.value;
    const asked = shown;
    const { lines } = asked;
    if (asked.worlds[wanted]) {
      state = wanted;
      draw();
      return;
    }
    if (!lines || isBusy) return;
    busy(async () => {
      const result = await reader.read(lines, wanted, count(lines));
      if (shown !== asked) return; // a link has brought the book's texts back
      if (result) {
        asked.worlds[wanted] = result;
        state = wanted;
      }
      status.textContent = result ? READ[wanted] : STOPPED;
      draw();
    });
  }

  /* --- drawing --- */

  /* What is known in the state of the switch. */
  const world = () => shown.worlds[state];
  /**
   * The title of a text, at most 80 characters of it.
   *
   * @param {number} text
   */
  const titleOf = (text) => shown.poems[text].title.slice(0, 80);
  /**
   * A text as it was read, its words perhaps in another order.
   *
   * @param {number} text
   */
  const wordsOf = (text) => world().texts?.[text] ?? shown.poems[text].text;

  /**
   * List the texts to choose from, and show one at the highest level.
   *
   * @param {number} text
   * @param {number} top the highest level
   */
  function list(text, top) {
    texts.replaceChildren(
      ...shown.poems.map((_, value) =>
        make("option", { value }, `${value + 1}. ${titleOf(value)}`),
      ),
    );
    level.input.max = String(top);
    level.input.value = String(top);
    show(text);
  }

  /**
   * Show a text.
   *
   * @param {number} text
   */
  function show(text) {
    chosen = text;
    texts.value = String(text);
    draw();
  }

  /**
   * Make a button with a text's title that shows it.
   *
   * @param {number} text
   */
  const leads = (text) =>
    button(make("bdi", {}, titleOf(text)), () => show(text), { class: "lmy-lead" });

  /* Draw the chosen text, the three nearest at the chosen level, and those at each level. */
  function draw() {
    const { levels, near } = world();
    const levelIndex = Number(level.input.value);
    const now = shown.poems[chosen];
    level.value.textContent = levels[levelIndex];
    level.input.setAttribute("aria-valuetext", levels[levelIndex]);
    poem.textContent = wordsOf(chosen);
    ownLabel.textContent = now.label === undefined ? "" : `Its label: ${now.label}`;
    beside.replaceChildren(
      ...near[levelIndex][chosen].map((text) => {
        const { label } = shown.poems[text];
        return make(
          "details",
          {},
          make(
            "summary",
            {},
            make("bdi", {}, titleOf(text)),
            label === undefined ? "" : ` (${label})`,
          ),
          textBox(titleOf(text), wordsOf(text)),
          button("go to this text", () => show(text)),
        );
      }),
    );
    const counted = shown.rivals.words[chosen];
    const title = quoted(titleOf(chosen).replace(/[\s,;:.]+$/, "")); // a line of verse may end so
    summary.textContent =
      `Of the three nearest to ${title} at the level “${levels[levelIndex]}”, ` +
      `${leftOf(counted, near[levelIndex][chosen])} among the three by ${WORDS}.`;
    remains.textContent = leftSentence(shown, state, chosen, levelIndex);
    const lines = levels.map((name, i) => line(name, near[i][chosen], i === levelIndex)).reverse();
    rows.replaceChildren(...lines, line(WORDS, counted, false));
    labels.replaceChildren(...labelsSentence(world(), shown.rivals, state));
  }

  /**
   * Make a row of the table: the three nearest texts at a level, or by counting.
   *
   * @param {string} name of the level
   * @param {number[]} near the three texts
   * @param {boolean} isHere whether it is the chosen level
   */
  function line(name, near, isHere) {
    const tableRow = row(name, ...near.map(leads));
    if (isHere) tableRow.setAttribute("aria-current", "true");
    return tableRow;
  }

  /* Save the three nearest texts of each text, at each level and by counting, as a CSV file. */
  function save() {
    const content = neighboursTable(shown, world());
    const address = URL.createObjectURL(new Blob(["\ufeff", content], { type: "text/csv" }));
    make("a", { href: address, download: "neighbours.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  list(data.text, data.levels.length - 1);
  const fields = {
    world: worlds,
    text: countField(
      () => (shown.lines ? data.text : chosen),
      show,
      () => shown.poems.length,
    ),
    level: level.input,
  };
  return { state: { ...stateOf(fields), lacks, leave } };

  /* What is said of a link if the reader has texts: it does not have them. Else "". */
  function lacks() {
    const theirs = shown.lines || own || area.value;
    return theirs
      ? "It shows the book’s texts: yours are not in the link, because they stay in this page."
      : "";
  }

  /* A link is of the book's texts, even where others are being read. */
  function leave() {
    if (isBusy) reader.stop();
    if (shown.lines) showExample();
  }
}
