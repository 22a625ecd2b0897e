/* The view *choices*: the reader takes the better of two lines, twenty times. A reward is fitted
   to the choices, and the GPT learns from them in a worker. preferences.js has the numbers.
   What was chosen is kept nowhere: only a link that the reader copies takes it along. */

import source from "worker:./choices-worker.js";
import { Client } from "./client.js";
import {
  arrow,
  button,
  controls,
  fixed,
  heading,
  learnedSwitch,
  make,
  plural,
  row,
  stateOf,
  WORLDS,
} from "./dom.js";
import { mean } from "./numbers.js";
import { chanceOf, differences, fitReward, foretold, properties } from "./preferences.js";
import { randomness } from "./writing.js";

/** @import { Measured } from "./choices-worker.js" */

const ENOUGH = 8; // choices, from which on a reward is fitted
const RARE = 0.05; // a result that a coin reaches with a higher probability tells nothing
const WIDE = 2.58; // standard errors to each side: 99 %, as several properties are measured
const SHOWN = 6; // lines before and after

/**
 * @typedef {object} Settings
 * @property {[string, string][]} pairs of lines to choose from
 * @property {string[]} names of the properties: keys of what `properties` returns
 * @property {number} ridge how strongly the weights of the reward are kept small
 * @property {number} seed of all that is drawn at random
 * @property {string} alphabet of the GPT: the character of each ID
 * @property {string[]} held_out texts that the GPT never read
 * @property {number} longest the most characters of a line that the model writes
 * @property {number} temperature at which it writes
 * @property {{ steps: number, pairs: number, rate: number, beta: number, lines: number }} training
 *   how many steps; how many pairs a step has; the learning rate; the beta of direct preference
 *   optimisation; how many lines the model writes when it is measured
 */

/** @typedef {Record<string, [more: string, fewer: string]>} Words */

/** @type {Words} what a line with more of a property is called, and one with less */
const CALLED = {
  characters: ["the longer line", "the shorter line"],
  words: ["the line with more words", "the line with fewer words"],
  echoes: ["the line with more echoes", "the line with fewer echoes"],
  capitals: ["the line with more capitals", "the line with fewer capitals"],
  marks: ["the line with more punctuation", "the line with less punctuation"],
};

/**
 * Choices by a rule; where a rule gives 0, a coin chooses.
 *
 * @type {Record<string, (pair: [string, string]) => number>} above 0: the first line
 */
const RULES = {
  "more echoes": ([a, b]) => properties(a).echoes - properties(b).echoes,
  shorter: ([a, b]) => b.length - a.length,
  "a coin": () => 0,
};

/**
 * The mean of numbers, and how far its 99 % interval goes to each side.
 *
 * @param {number[]} values two or more
 * @returns {[mean: number, width: number]}
 */
function meanAndWidth(values) {
  const middle = mean(values);
  const square = mean(values.map((value) => (value - middle) ** 2));
  return [middle, WIDE * Math.sqrt(square / (values.length - 1))];
}

/**
 * Say how often the reader took the line that has more of a property, or the one that has
 * less, whichever is more frequent; pairs whose lines have as many are left out.
 *
 * @param {string} name the property: a key of `CALLED`
 * @param {number[]} gaps for each pair: how much more the line that was taken has than the other
 */
function tellTaken(name, gaps) {
  const more = gaps.filter((gap) => gap > 0).length;
  const fewer = gaps.filter((gap) => gap < 0).length;
  if (!more && !fewer) return "Both lines of each pair have as many.";
  if (more === fewer) return `You took ${CALLED[name][0]} as often as the other.`;
  const which = CALLED[name][more > fewer ? 0 : 1];
  if (more + fewer === 1) return `You took ${which} in the one pair that differs.`;
  const differing = more + fewer;
  const total = differing === gaps.length ? differing : `${differing} pairs that differ`;
  return `You took ${which} in ${Math.max(more, fewer)} of ${total}.`;
}

/**
 * Mount the view *choices*: the reader takes the better of two lines, again and again; then a
 * reward is fitted to the choices, and the GPT learns from them.
 *
 * @param {HTMLElement} element empty
 * @param {Settings} data
 * @param {ViewContext} context
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data, context) {
  const { pairs, names, ridge, training } = data;
  /** @type {number[]} of each pair so far the position of the line that was taken, 0 or 1 */
  const chosen = [];
  const random = randomness(data.seed);
  const coins = pairs.map(() => (random() < 0.5 ? 1 : 0)); // what a coin would take of each pair
  let learning = 0; // the number of the training that is shown
  /** @type {Client | null} the model that learns, while it does */
  let client = null;

  const { worlds, remains, label } = learnedSwitch(change, "a coin’s choices");
  const lines = [0, 1].map((which) =>
    button("", (event) => choice(event, which), {
      class: "lmv-line",
      "aria-keyshortcuts": `${which + 1}`,
    }),
  );
  const progress = make("progress", { max: pairs.length, "aria-label": "pairs chosen" });
  const count = make("span", { role: "status" });
  const both = make("div", { class: "lmv-both" }, ...lines);
  const undo = button("Undo", takeBack);
  const anew = button("Begin anew", () => set([]));
  const filling = Object.keys(RULES).map((rule) => button(rule, () => fill(rule)));
  const board = make(
    "div",
    { class: "lmv-board", onkeydown: press },
    make(
      "p",
      { class: "lmv-ask" },
      make("b", {}, "Which line do you like better?"),
      progress,
      count,
    ),
    both,
    controls(
      undo,
      anew,
      make("span", { class: "play-muted" }, "Keys: 1 and 2, or ← and →; Backspace takes back."),
    ),
    controls("Choose the rest for me:", ...filling),
    make("p", { class: "play-muted" }, "An echo is a word that begins as another of its line."),
  );
  const fitted = make("div", { class: "lmv-fitted lmv-reward", tabindex: "0" });
  const prediction = make("p");
  const begin = button("Let the model learn it", learn);
  const halt = button("Stop", stop, { hidden: "" });
  const steps = make("progress", { max: training.steps, hidden: "", "aria-label": "steps" });
  const note = make("p", { class: "play-note", role: "status" });
  const result = make("div", { class: "lmv-result" });
  const after = make(
    "section",
    {},
    make("p", {}, make("b", {}, "What your choices say")),
    fitted,
    prediction,
    remains,
    controls(
      begin,
      halt,
      steps,
      make("span", { class: "play-muted" }, "On an ordinary computer this takes a minute or two."),
    ),
    note,
    result,
  );
  element.append(controls(label), board, after);

  /* --- what the reader chooses --- */

  /**
   * Take a line of the pair that is shown; after the last pair the focus goes on.
   *
   * @param {number} which its position, 0 or 1
   */
  function choose(which) {
    if (chosen.length < pairs.length) set([...chosen, which]);
    if (chosen.length === pairs.length) (undo.disabled ? begin : undo).focus();
  }

  /**
   * Take the line that was clicked; the second click of a double click takes none, as it would
   * choose from a pair that nobody has read.
   *
   * @param {Event} event
   * @param {number} which the line's position, 0 or 1
   */
  function choice(event, which) {
    if (/** @type {MouseEvent} */ (event).detail < 2) choose(which);
  }

  /* Take the last choice back. */
  function takeBack() {
    set(chosen.slice(0, -1));
  }

  /**
   * Choose from the pairs that are left by a rule.
   *
   * @param {string} rule a key of RULES
   */
  function fill(rule) {
    const rest = pairs.slice(chosen.length).map((pair, i) => {
      const first = RULES[rule](pair);
      if (first === 0) return coins[chosen.length + i];
      return first < 0 ? 1 : 0;
    });
    set([...chosen, ...rest]);
  }

  /**
   * Put choices in the place of those so far.
   *
   * @param {number[]} choices 0 or 1 for each pair, from the first on
   */
  function set(choices) {
    chosen.splice(0, chosen.length, ...choices);
    change();
  }

  /**
   * Choose by keys: 1 and 2, or the arrows; Backspace takes the last choice back.
   *
   * @param {KeyboardEvent} event
   */
  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    /* A key that is held would choose from pairs that nobody has read. */
    if (event.repeat && event.key !== "Tab") return event.preventDefault();
    const which = ["1", "2"].indexOf(event.key);
    const across = arrow(event)?.[0] ?? 0;
    if (event.key === "Backspace" && chosen.length) takeBack();
    else if (which >= 0) choose(which);
    else if (across) choose(across > 0 ? 1 : 0);
    else return;
    event.preventDefault();
  }

  /**
   * Say how the training goes.
   *
   * @param {string} text
   * @param {boolean} [isCalm] false: it went wrong or was stopped, and the text stands out
   */
  function tell(text, isCalm = true) {
    note.textContent = text;
    note.classList.toggle("lmv-calm", isCalm);
  }

  /* The choices or the switch are others: end a training, hide what was trained before, and draw
     anew. */
  function change() {
    tell(
      client ? "The training has stopped, because the choices or the model changed." : "",
      false,
    );
    end();
    result.replaceChildren();
    draw();
  }

  /* --- what the choices say --- */

  /* Whether a coin's choices stand in the place of the reader's. */
  const isCoin = () => worlds.value === WORLDS.shuffled;
  /* The choices that count, the coin's or the reader's, of as many pairs as the reader's. */
  const taken = () => (isCoin() ? coins.slice(0, chosen.length) : chosen);

  /**
   * Of each pair so far the properties of the line that was taken less those of the other:
   * (choices, properties).
   *
   * @param {number[]} choices 0 or 1 for each pair, from the first on
   */
  const rowsOf = (choices) =>
    choices.map((which, i) => differences(which ? [pairs[i][1], pairs[i][0]] : pairs[i], names));

  /* Show the next pair, and what the choices say once there are ENOUGH of them. */
  function draw() {
    const nextPair = chosen.length;
    const isDone = nextPair === pairs.length;
    progress.value = nextPair;
    count.textContent = isDone ? "All are chosen." : `${nextPair + 1} of ${pairs.length}`;
    both.hidden = isDone;
    if (!isDone) lines.forEach((line, i) => line.replaceChildren(pairs[nextPair][i]));
    undo.disabled = !nextPair;
    anew.disabled = !nextPair;
    for (const each of filling) each.disabled = isDone;
    begin.disabled = nextPair < ENOUGH;
    fitted.hidden = nextPair < ENOUGH;
    remains.textContent =
      worlds.value === WORLDS.random
        ? "Your choices stay as they are; it is the model with random weights that learns them."
        : "";
    if (nextPair < ENOUGH) {
      const missing = plural(ENOUGH - nextPair, "more choice");
      prediction.textContent = `After ${missing}, a reward is fitted to what you took.`;
      return;
    }
    drawFitted();
  }

  /* Fit a reward to the choices, and show its weights and how well it predicts choices; a coin's
     beside the reader's. */
  function drawFitted() {
    const rows = rowsOf(taken());
    const weights = fitReward(rows, names.length, ridge);
    const most = Math.max(...weights.map(Math.abs), 1e-9);
    const body = names.map((name, i) => {
      const share = weights[i] / most;
      const style = `--from: ${Math.min(share, 0)}; --share: ${Math.abs(share)}`;
      const gaps = rows.map((each) => each[i]);
      const line = tellTaken(name, gaps);
      return row(
        name,
        fixed(weights[i]),
        make("span", { class: "lmv-weight", style }, make("i")),
        isCoin() ? line.replace("You", "The coin") : line,
      );
    });
    fitted.replaceChildren(
      make("table", {}, heading("property", "weight", "", ""), make("tbody", {}, ...body)),
    );
    prediction.textContent = tellForetold(rows);
    if (isCoin()) {
      const own = foretold(rowsOf(chosen), names.length, ridge);
      const coin = foretold(rows, names.length, ridge);
      remains.textContent =
        `With a coin’s choices in the place of yours, ${fixed(coin, coin % 1 ? 1 : 0)} of ` +
        `${chosen.length} are predicted correctly instead of ${fixed(own, own % 1 ? 1 : 0)}.`;
    }
  }

  /**
   * Say how many choices a reward predicts that was fitted to all the others, and how probable it
   * is that a coin does as well.
   *
   * @param {number[][]} rows as `rowsOf` returns them
   */
  function tellForetold(rows) {
    const right = foretold(rows, names.length, ridge);
    const chance = chanceOf(Math.floor(right), rows.length);
    const share = chance < 0.001 ? "less than 0.1" : fixed(100 * chance, 1);
    return (
      "Fitted to all choices but one, " +
      `the reward predicts that one correctly ${fixed(right, right % 1 ? 1 : 0)} ` +
      `${right === 1 ? "time" : "times"} in ${rows.length}. A coin would be ` +
      `right ${fixed(rows.length / 2, rows.length % 2 ? 1 : 0)} times on average, ` +
      `and as often as the reward or more with a probability of ${share}\u00a0%: ` +
      (chance > RARE
        ? "by these properties, the choices tell nothing."
        : "the choices follow something that these properties see.")
    );
  }

  /* --- the model learns --- */

  /**
   * The IDs of a text's characters.
   *
   * @type {(text: string) => number[]}
   */
  const idsOf = (text) => Array.from(text, (character) => data.alphabet.indexOf(character));
  /**
   * The text of IDs.
   *
   * @type {(ids: number[]) => string}
   */
  const textOf = (ids) => ids.map((id) => data.alphabet[id]).join("");

  /* End a training, if there is one: `learn` shows nothing more of it. */
  function end() {
    learning++;
    client?.end();
    client = null;
    begin.hidden = false;
    halt.hidden = true;
    steps.hidden = true;
  }

  /* Stop the training. If it has made a step, the model is measured as it stands; else it ends. */
  function stop() {
    if (steps.value) return client?.cancel("learn");
    end();
    tell("It was stopped before it learned.", false);
    begin.focus();
  }

  /* Let the model learn the choices in a worker, measure it before and after, and show both. A
     training that was ended meanwhile shows nothing; an error is told. */
  async function learn() {
    end();
    const mine = learning;
    const isRandom = worlds.value === WORLDS.random;
    result.replaceChildren();
    begin.hidden = true;
    halt.hidden = false;
    steps.hidden = false;
    steps.value = 0;
    halt.focus();
    tell("The model comes …");
    const model = new Client("gpt", context, source);
    client = model;
    model.seed = isRandom ? data.seed : null;
    const settings = {
      ...training,
      newLine: data.alphabet.indexOf("\n"),
      seed: data.seed,
      chosen: taken().map((which, i) => [idsOf(pairs[i][which]), idsOf(pairs[i][1 - which])]),
    };
    const asked = {
      count: training.lines,
      longest: data.longest,
      temperature: data.temperature,
      texts: data.held_out.map(idsOf),
    };
    let step = 0;
    try {
      const { config } = await model.load();
      if (config.alphabet !== data.alphabet)
        throw new Error("the site carries another GPT: reload the page");
      tell("It writes, before it learns …");
      await model.ask("begin", { settings });
      /** @type {Measured} */
      const before = await model.ask("measure", asked);
      if (mine !== learning) return;
      await model.ask("learn", {}, "learn", (reports) => {
        const last = /** @type {{ step: number, loss: number }} */ (
          /** @type {any} */ (reports.at(-1))
        );
        step = last.step;
        steps.value = step;
        tell(
          `Step ${step} of ${training.steps}: a loss of ${fixed(last.loss)} ` +
            `on its pairs (${fixed(Math.LN2)} before it learned).`,
        );
      });
      if (mine !== learning) return;
      tell("It writes again …");
      /** @type {Measured} */
      const now = await model.ask("measure", asked);
      if (mine !== learning) return;
      drawResult(before, now);
      tell(`It learned for ${plural(step, "step")}.`);
      const isWaiting = document.activeElement === halt;
      end();
      if (isWaiting) begin.focus();
    } catch (error) {
      if (mine !== learning) return;
      end();
      tell(`The model does not learn: ${error.message}`, false);
    }
  }

  /**
   * Show what the training changed: the properties of lines that the model writes, the pairs on
   * which it agrees with the choices, its loss, and some lines.
   *
   * @param {Measured} before
   * @param {Measured} now after it
   */
  function drawResult(before, now) {
    const texts = [before, now].map((each) => each.lines.map(textOf));
    const counted = texts.map((all) => all.map(properties));
    /** @type {string[]} */
    const moved = [];
    const body = names.map((name) => {
      const each = counted.map((all) => all.map((one) => one[name])); // [before, now][line]
      const [middle, width] = meanAndWidth(each[1].map((value, i) => value - each[0][i]));
      if (Math.abs(middle) > width) moved.push(`${middle > 0 ? "more" : "fewer"} ${name}`);
      const [low, high] = [middle - width, middle + width];
      const range = `${fixed(middle, 1)} (${fixed(low, 1)} to ${fixed(high, 1)})`;
      return row(name, fixed(mean(each[0]), 1), fixed(mean(each[1]), 1), range);
    });
    const total = taken().length;
    const agreed =
      "After learning, the model gives the line that was chosen a higher probability than " +
      `the other in ${now.agreed} of the ${total} pairs; before, it did in ${before.agreed}.`;
    const loss =
      "Its loss on sonnets that it never read: " +
      `${fixed(before.loss)} before, ${fixed(now.loss)} after, in nats a character.`;
    const verdict = moved.length
      ? `The model moved: it writes ${moved.join(", ")}.`
      : "The model did not move, as far as these properties tell: each interval includes 0.";
    /* The first SHOWN of some lines below a title. */
    const side = (/** @type {string} */ name, /** @type {string[]} */ all) =>
      make(
        "div",
        {},
        make("p", {}, make("b", {}, name)),
        make("p", { class: "play-poem" }, all.slice(0, SHOWN).join("\n")),
      );
    result.replaceChildren(
      make("p", {}, make("b", {}, verdict)),
      make(
        "div",
        { class: "lmv-fitted", tabindex: "0" },
        make(
          "table",
          {},
          heading("a line has", "before", "after", "difference (99 %)"),
          make("tbody", {}, ...body),
        ),
      ),
      make(
        "p",
        {},
        `Means of ${plural(training.lines, "line")} each, from the same draw. ${agreed} ${loss}`,
      ),
      make("div", { class: "lmv-sides" }, side("Before", texts[0]), side("After", texts[1])),
    );
  }

  draw();
  const field = {
    get: () => chosen.join(""),
    /* Take choices, each a character 0 or 1; what is no such text changes nothing. */
    set(/** @type {string} */ text) {
      if (/^[01]*$/.test(text) && text.length <= pairs.length) set(Array.from(text, Number));
    },
  };
  return { state: stateOf({ world: worlds, chosen: field }) };
}
