/* The view *dates*: an encoder-decoder that reads a date and writes it in another form, run in
   the page. A click hides a character of the source from the decoder, which then writes again;
   a switch shuffles the weights of the model. */
import {
  button,
  controls,
  countField,
  learnedSwitch,
  make,
  numbersField,
  ownLine,
  percent,
  stateOf,
  WORLDS,
} from "./dom.js";
import { EncoderDecoder, LONGEST, STOP } from "./encoder-decoder.js";
import { largest } from "./numbers.js";
import { reordered } from "./random.js";

const SEED = 1; // of the shuffled weights
/** @type {Record<string, string | undefined>} */
const SIGNS = { " ": "␣", ">": "end" };
/**
 * A character as it is shown: a space and the end (">") get a sign.
 *
 * @type {(character: string) => string}
 */
const visible = (character) => SIGNS[character] ?? character;

/**
 * @typedef {object} Data beside what the model is made of
 * @property {[string, string][]} examples dates, as they are read and as they are written
 * @property {number} seen how many of them, the first ones, have a style that the model learned
 * @property {number} place position of the character, of those written, that is chosen to begin
 *   with
 */

/**
 * Mount the view *dates*: an encoder-decoder reads a date and writes it in another form; the reader
 * hides characters of the source from the decoder.
 *
 * @param {HTMLElement} element empty
 * @param {Data & Parameters<typeof EncoderDecoder.read>[0]} data
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data) {
  const trained = EncoderDecoder.read(data);
  /** @type {EncoderDecoder | undefined} */
  let untrained; // made when it is first asked for
  let model = trained;
  /** @type {Set<number>} */
  const hidden = new Set(); // positions of the source that the decoder does not see
  /** @type {string} */
  let date; // with its characters in order
  /** @type {string} */
  let source; // what the model reads: the date, or its characters in another order
  /** @type {string | null} */
  let wanted; // as it is to be written; null if nobody knows
  /** @type {ReturnType<EncoderDecoder["write"]>} */
  let state; // what the model wrote, how likely, and where it attended
  let chosen = data.place; // the position of the chosen character of what is written
  let place = chosen; // the same, or that of the end if what is written is not so long
  /** @type {number | null} */
  let head = null; // the chosen head, or null for the mean of all
  const { area, note, label } = ownLine("", type, {
    rows: 1,
    maxlength: LONGEST,
    "aria-label": "A date of your own",
  });
  /** @type {Text} */ (label.querySelector(".play-line")?.firstChild).data = "or type one";
  const style = make("select", { onchange: choose });
  /** @type {[string, number, number][]} name, the first example, the first that is not in it */
  const groups = [
    ["Styles it learned from", 0, data.seen],
    ["Others", data.seen, data.examples.length],
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
  const learned = learnedSwitch(chooseWorld, "shuffled characters");
  const { worlds, remains } = learned;
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
  const showAll = button("Hide nothing", () => {
    hidden.clear();
    answer();
  });
  element.append(
    controls(make("label", {}, "A date ", style), showAll),
    label,
    note,
    controls(learned.label),
    remains,
    make("p", { class: "play-muted" }, "It reads (click a character to hide it from the decoder)"),
    read,
    make("p", { class: "play-muted" }, "and writes (click a character to see what it attended to)"),
    written,
    verdict,
    make("div", { class: "play-both" }, bars, make("div", {}, heads, summary)),
  );

  /* Take the model, and the order of the source's characters, that the switch says. */
  function chooseWorld() {
    untrained ??= trained.untrained(SEED);
    model = worlds.value === WORLDS.random ? untrained : trained;
    const before = source;
    setSource();
    // Shuffled, other characters stand at the positions that are hidden.
    if (source !== before) hidden.clear();
    answer();
  }

  /* Begin with the example that is selected. */
  function choose() {
    area.value = "";
    begin(...data.examples[Number(style.value)]);
  }

  /* Begin with the date that the reader typed, without the characters that are unknown, and say if
     there were any. If nothing is left, the date before stays. */
  function type() {
    const known = Array.from(area.value).filter((c) => model.vocabulary.indexOf(c) > STOP);
    const lacks =
      known.length < area.value.length ? "It knows letters, digits, spaces and , - . / only." : "";
    note.textContent = known.length ? lacks : `${lacks} Below is the date before.`.trim();
    if (known.length) begin(known.join(""), null);
  }

  /* Set what is read: the date, or its characters in another order. */
  function setSource() {
    const isShuffled = worlds.value === WORLDS.shuffled;
    source = isShuffled ? reordered(date, SEED).join("") : date;
  }

  /* Say how many characters are the same, position by position, in what is written now and in what
     the trained model writes for the date in its own order; nothing if the switch says "as it is".
     From the trained model the same characters are hidden if the switch says "random weights", and
     none if it says "shuffled characters". */
  function tellSame() {
    const usual = Array.from(
      trained.write(date, worlds.value === WORLDS.random ? hidden : new Set()).written,
    );
    const same = usual.filter((character, i) => character === state.written[i]).length;
    const how =
      worlds.value === WORLDS.random
        ? "With random weights"
        : "With the characters of the date in another order";
    remains.textContent =
      worlds.value === WORLDS.asItIs
        ? ""
        : `${how}, of the ${usual.length} characters that the trained model writes for this ` +
          `date ${same || "none"} ${same > 1 ? "stand" : "stands"} in the same position.`;
  }

  /**
   * Begin with another date, of which nothing is hidden.
   *
   * @param {string} text as it is read
   * @param {string | null} right as it is to be written; null if nobody knows
   */
  function begin(text, right) {
    date = text;
    wanted = right;
    setSource();
    hidden.clear();
    answer();
  }

  /* Let the model write, say whether that is right, and draw all. */
  function answer() {
    state = model.write(source, hidden);
    place = Math.min(chosen, state.written.length);
    const isRight = state.written === wanted;
    tellSame();
    verdict.classList.toggle("lmd-wrong", Boolean(wanted) && !isRight);
    if (!wanted) verdict.textContent = "";
    else verdict.textContent = isRight ? "✓ That is the day." : `✗ The day is ${wanted}.`;
    showAll.disabled = !hidden.size;
    draw();
  }

  /**
   * Hide a character of the source from the decoder, or show it again; one is always left.
   *
   * @param {number} i its position
   */
  function hide(i) {
    if (!hidden.delete(i) && hidden.size < source.length - 1) hidden.add(i);
    answer();
  }

  /**
   * Fill an element with buttons, of which some are pressed; the focus stays at its position. Each
   * function is given the position of a button.
   *
   * @param {HTMLElement} parent
   * @param {string[]} labels what stands on them
   * @param {(i: number) => boolean} isPressed
   * @param {(i: number) => void} press called when one is pressed
   * @param {(label: string, i: number) => string} [name] what a screen reader says; without it,
   *   the label
   */
  function drawButtons(parent, labels, isPressed, press, name = (label) => label) {
    const active = /** @type {Element} */ (document.activeElement);
    const focused = Array.from(parent.children).indexOf(active);
    parent.replaceChildren(
      ...labels.map((label, i) =>
        button(label, () => press(i), {
          "aria-pressed": String(isPressed(i)),
          "aria-label": name(label, i),
        }),
      ),
    );
    /** @type {HTMLElement | undefined} */ (parent.children[focused])?.focus();
  }

  /* Attention from the chosen character to the source: (heads, characters of the source). */
  function attentionByHead() {
    const keys = source.length;
    const queries = state.probs.length;
    return Array.from({ length: data.heads }, (_, each) => {
      const start = (each * queries + place) * keys;
      return Array.from(state.weights.subarray(start, start + keys));
    });
  }

  /**
   * Draw the characters read, with the share of the attention that each gets.
   *
   * @param {number[]} weights from the chosen character, one for each character read
   */
  function drawSource(weights) {
    const labels = Array.from(source, visible);
    /**
     * What a screen reader says of a character.
     *
     * @type {(label: string, i: number) => string}
     */
    const name = (label, i) => `${label}, position ${i + 1}${hidden.has(i) ? ", hidden" : ""}`;
    drawButtons(read, labels, (i) => hidden.has(i), hide, name);
    weights.forEach((weight, i) => {
      let share = weight < 0.005 ? "" : percent(weight);
      if (hidden.has(i)) share = "hidden";
      const character = /** @type {HTMLElement} */ (read.children[i]);
      character.style.setProperty("--share", String(weight));
      character.append(make("small", {}, share));
    });
  }

  /**
   * Draw the characters written; those that are not the right ones are marked, if these are known.
   *
   * @param {string[]} characters the last is the end, ">"
   */
  function drawWritten(characters) {
    /**
     * Choose the character at a position.
     *
     * @param {number} i
     */
    const choosePlace = (i) => {
      chosen = i;
      place = i;
      draw();
    };
    /**
     * What a screen reader says of a character.
     *
     * @type {(label: string, i: number) => string}
     */
    const name = (label, i) => `${label}, position ${i + 1}`;
    drawButtons(written, characters.map(visible), (i) => i === place, choosePlace, name);
    characters.forEach((character, i) => {
      const isWrong = Boolean(wanted) && character !== `${wanted}>`[i];
      written.children[i].classList.toggle("lmd-wrong", isWrong);
    });
  }

  /* Draw the buttons of the heads; the first is the mean of all. */
  function drawHeads() {
    const names = ["mean of heads"];
    for (let each = 0; each < data.heads; each++) names.push(`head ${each}`);
    /**
     * Choose by the position of a button.
     *
     * @param {number} i
     */
    const chooseHead = (i) => {
      head = i ? i - 1 : null;
      draw();
    };
    drawButtons(heads, names, (i) => i === (head ?? -1) + 1, chooseHead);
  }

  /* Draw bars of the three characters that the decoder held likeliest at the chosen position. */
  function drawBars() {
    const probs = state.probs[place];
    const rows = largest(probs, 3).map((i) =>
      make(
        "p",
        {},
        make("b", {}, visible(model.vocabulary[i])),
        make("span", { class: "lmd-bar", style: `width: ${8 * probs[i]}em` }),
        ` ${percent(probs[i])}`,
      ),
    );
    bars.replaceChildren(...rows);
  }

  /* Draw all that depends on what was written and chosen, and say where the attention goes. */
  function draw() {
    const byHead = attentionByHead();
    const mean = byHead[0].map((_, j) => byHead.reduce((sum, row) => sum + row[j], 0) / data.heads);
    const weights = head === null ? mean : byHead[head];
    const characters = [...state.written, ">"];
    drawSource(weights);
    drawWritten(characters);
    drawHeads();
    drawBars();
    const most = largest(weights, 3).map(
      (i) => `“${visible(source[i])}” (position ${i + 1}, ${percent(weights[i])})`,
    );
    const written = visible(characters[place]);
    summary.textContent = `While it writes “${written}” it attends most to ${most.join(", ")}.`;
  }

  choose();
  const fields = {
    world: worlds,
    date: {
      get: () => date,
      /* Begin with an example if this is one, else with it as with a date that was typed. */
      set(/** @type {string} */ text) {
        const example = data.examples.findIndex(([each]) => each === text);
        if (example < 0) {
          area.value = text;
          return type();
        }
        style.value = String(example);
        choose();
      },
    },
    hidden: numbersField(
      () => Array.from(hidden).sort((a, b) => a - b),
      (positions) => {
        if (positions.length >= source.length || !positions.every((i) => i in Array.from(source)))
          return;
        hidden.clear();
        for (const each of positions) hidden.add(each);
        answer();
      },
    ),
    place: countField(
      () => chosen,
      (number) => {
        chosen = number;
        place = Math.min(chosen, state.written.length);
      },
      () => LONGEST + 1,
    ),
    head: countField(
      () => (head ?? -1) + 1,
      (number) => {
        head = number ? number - 1 : null;
      },
      () => data.heads + 1,
    ),
  };
  return { state: stateOf(fields, draw) };
}
