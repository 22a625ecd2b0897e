/* The view *shannon*: a game. The reader guesses a line letter by letter; n-grams, the GPT and,
   once it is loaded, the model that talks guess the same letters. guessing.js has the numbers.
   What was guessed is kept nowhere: only a link that the reader copies takes it along. */

import { openModel } from "./client.js";
import {
  button,
  controls,
  countField,
  fixed,
  heading,
  learnedSwitch,
  make,
  megabytes,
  plural,
  row,
  select,
  stateOf,
  WORLDS,
} from "./dom.js";
import { bitsOf, guessLine, LETTERS, letterOf, letterProbs, lettersOf, MOST } from "./guessing.js";
import { Ngrams } from "./ngrams.js";
import { mean } from "./numbers.js";
import { reordered } from "./random.js";
import { readText, WEIGHTS_FORGOTTEN } from "./store.js";
import { openTalker } from "./talker-client.js";
import { talkerLoader } from "./talker-loader.js";

/** @import { Guessed } from "./guessing.js" */

const SEED = 1; // of random weights, and of the order of shuffled letters
const FEW = 100; // letters, below which it is said that they are few
const SYMBOLS = LETTERS.flatMap((letter) => Array.from(new Set([letter, letter.toUpperCase()])));

/**
 * @typedef {{ name: string, before: string, text: string }} Line one to guess; before: the two
 *   lines above it
 */

/**
 * @typedef {object} Settings
 * @property {Line[]} lines
 * @property {number} order of the n-grams
 * @property {string} alphabet of the Sonnets: the character of each ID
 * @property {string} gpt_alphabet the same of the GPT
 * @property {number} room how many characters the GPT reads
 */

/**
 * What the reader did with a line.
 *
 * @typedef {object} Game
 * @property {number[]} guesses how many each letter took, up to the one that is asked
 * @property {string} tried what was guessed of that one, all wrong
 * @property {boolean} isOpen whether the rest is shown
 */

/**
 * Somebody who guesses beside the reader.
 *
 * @typedef {object} Player
 * @property {string} name
 * @property {string} short a shorter name
 * @property {(line: Line, isRandom: boolean) => Promise<Guessed | null>} read guesses the letters
 *   of a line, by random weights if `isRandom`; null if that was ended
 */

/**
 * A letter's name in a sentence.
 *
 * @type {(letter: string) => string}
 */
const named = (letter) => (letter === " " ? "the space" : letter);
/**
 * A letter as it is shown: the space gets a sign.
 *
 * @type {(letter: string) => string}
 */
const visible = (letter) => (letter === " " ? "␣" : letter);
/**
 * How many letters took one guess.
 *
 * @type {(guesses: number[]) => number}
 */
const atOnce = (guesses) => guesses.filter((count) => count === 1).length;

/**
 * A line to guess with the lines before it, the characters of each shuffled within it; the last
 * character of a line stays there.
 *
 * @param {Line} line
 * @returns {Line}
 */
function shuffledLine({ name, before, text }) {
  /**
   * The characters of a line in another order, the same each time.
   *
   * @param {string} part
   */
  const mix = (part) => reordered(part, SEED, true).join("");
  const above = before.split("\n").map((part) => (part ? mix(part) : part));
  return { name, before: above.join("\n"), text: mix(text) };
}

/**
 * How the games stand, in a few characters: the number of a line, and how many guesses each
 * letter took, in digits of base 36; after "-" what was tried of the next; at the end "." if the
 * rest is shown. A game that was not begun is left out.
 *
 * @param {Game[]} games one for each line
 */
function written(games) {
  /**
   * How one game stands.
   *
   * @param {Game} game
   */
  const one = ({ guesses, tried, isOpen }) =>
    `${guesses.map((count) => count.toString(36)).join("")}-${tried.replace(" ", "_")}${isOpen ? "." : ""}`;
  return games
    .map((game, i) => `${i}:${one(game)}`)
    .filter((line) => !line.endsWith(":-"))
    .join(" ");
}

/**
 * Set games as a text says that they stand.
 *
 * @param {string} text as `written` makes it; what cannot be is left out
 * @param {Game[]} games changed; those that the text does not name stay as they are
 * @param {Line[]} lines that are guessed in them
 */
function takeWritten(text, games, lines) {
  for (const [, number, counts, tried, end] of text.matchAll(
    /(\d+):([1-9a-r]*)-([a-z_]{0,26})(\.?)/g,
  )) {
    const i = Number(number);
    const letters = lines[i] ? lettersOf(lines[i].text) : [];
    const asked = letters[counts.length];
    const wrong = Array.from(new Set(tried.replaceAll("_", " "))).filter((each) => each !== asked);
    if (counts.length > letters.length || !letters.length) continue;
    games[i] = {
      guesses: Array.from(counts, (count) => Number.parseInt(count, 36)),
      tried: asked ? wrong.join("") : "",
      isOpen: Boolean(end),
    };
  }
}

/**
 * A game in which nothing was guessed.
 *
 * @returns {Game}
 */
const newGame = () => ({ guesses: [], tried: "", isOpen: false });

/**
 * Make a column of a line: a letter and below it, for the reader and each player, how many guesses
 * it took.
 *
 * @param {string} name the letter
 * @param {string[]} cells what stands below it
 * @param {string} [kind] a class
 */
const columnOf = (name, cells, kind = "") =>
  make(
    "span",
    { class: `lmq-letter ${kind}` },
    make("b", {}, name),
    ...cells.map((cell) =>
      make("i", { style: `--share: ${Number(cell) ? 1 / Number(cell) : 0}` }, cell || "\u00a0"),
    ),
  );

/**
 * Make the column at the beginning of a line, which has names in place of numbers.
 *
 * @param {string[]} names
 */
const nameColumn = (names) =>
  make("span", { class: "lmq-word", "data-ended": "true" }, columnOf("\u00a0", names, "lmq-names"));

/**
 * Add a column to a line: to its last word, or as a new one if the last has ended. Columns of a
 * word stay together; a space ends it.
 *
 * @param {HTMLElement[]} words one or more, changed
 * @param {string} name as `columnOf` takes it and what follows
 * @param {string[]} cells
 * @param {string} [kind]
 */
function put(words, name, cells, kind) {
  if (words.at(-1)?.dataset.ended) words.push(make("span", { class: "lmq-word" }));
  const word = /** @type {HTMLElement} */ (words.at(-1));
  if (name === "␣") word.dataset.ended = "true";
  word.append(columnOf(name, cells, kind));
}

/**
 * Make a row of the results.
 *
 * @param {{ name: string } & Guessed} result who guesses; how many guesses each letter took; the
 *   bits of each letter by the probabilities, none if there are no probabilities
 */
function resultRow({ name, guesses, bits }) {
  const bounds = bitsOf(guesses);
  return row(
    name,
    guesses.length,
    atOnce(guesses),
    ...(bounds.lower > bounds.upper
      ? ["too few letters", ""] // the bounds have not found their order yet
      : [`${fixed(bounds.lower, 1)} to ${fixed(bounds.upper, 1)}`, range(bounds)]),
    `${fixed(bounds.low, 1)} to ${fixed(bounds.high, 1)}`,
    bits.length ? fixed(mean(bits), 1) : "",
  );
}

/**
 * Say how wide the interval of a row is.
 *
 * @param {{ name: string, guesses: number[] }} first who guesses, and how many guesses each
 *   letter took
 */
function tellInterval({ name, guesses }) {
  const { low, high } = bitsOf(guesses);
  const width = fixed(high - low, 1);
  const few = guesses.length < FEW ? "Few letters make a wide interval: play more lines. " : "";
  const whose = name === "you" ? "your" : `${name}’s`;
  return (
    `After ${plural(guesses.length, "letter")}, ${whose} interval is ${width} bits wide. ${few}` +
    "It says how much other letters of such lines could change the two bounds. " +
    `Whoever knows nothing needs ${fixed(MOST, 2)} bits.`
  );
}

/**
 * Mount the view *shannon*: the reader guesses a line letter by letter, and models guess the same
 * letters. A parameter `line` that is a number is the line's position in `data.lines`.
 *
 * @param {HTMLElement} element empty
 * @param {Settings} data
 * @param {ViewContext} context
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, data, context) {
  const inOrder = data.lines;
  const mixed = inOrder.map(shuffledLine);
  const alphabet = Array.from(data.alphabet);
  const talker = openTalker("talker", context);
  let chosen = 0; // the line that is guessed
  let isHere = false; // whether the model that talks is loaded
  /** @type {Ngrams | undefined} */
  let counts; // n-grams of the Sonnets, once they are loaded
  /** The reader's games with the lines in order, and with shuffled letters. */
  const games = { inOrder: inOrder.map(newGame), mixed: inOrder.map(newGame) };
  /** @type {Map<string, Guessed>} what the models do, by who, how and which line */
  const known = new Map();
  /** @type {Set<string>} what of that is on its way */
  const asked = new Set();

  /* --- what stands there --- */

  const which = select(
    inOrder.map(({ name }) => name),
    () => choose(Number(which.value)),
  );
  const next = button("Another line", () => choose((chosen + 1) % inOrder.length));
  const { worlds, remains, label: worldLabel } = learnedSwitch(changeWorld, "shuffled letters");
  const above = make("p", { class: "lmq-before" });
  const strip = make("div", { class: "lmq-line", "aria-hidden": "true" });
  const spoken = make("p", { class: "play-hidden" });
  const entry = make("input", {
    type: "text",
    size: 3,
    maxlength: 8,
    autocomplete: "off",
    autocapitalize: "none",
    spellcheck: "false",
    oninput: () => {
      const typed = Array.from(entry.value);
      entry.value = "";
      for (const letter of typed) guess(letter);
    },
  });
  const keys = LETTERS.map((letter) =>
    button(visible(letter), () => guess(letter), {
      "data-letter": letter,
      "aria-label": letter === " " ? "space" : letter,
      tabindex: -1, // the keyboard has the field beside them
    }),
  );
  const verdict = make("p", { class: "lmq-said play-note", role: "status" });
  const rest = button("Show the rest", showRest);
  const again = button("Begin this line anew", beginAnew);
  const results = make("table", { class: "lmq-results" });
  const summary = make("p", { class: "lmq-summary" });
  const note = make("p", { class: "play-note", role: "status" });
  const LOAD = `Let the model that talks guess, too: load ${megabytes(talker.about.bytes)}`;
  const loading = talkerLoader(
    () => talker,
    load,
    () => talker.stop(),
  );
  const { loader, status: loadStatus } = loading;
  loader.textContent = LOAD;
  const board = make(
    "div",
    {
      class: "lmq-board",
      role: "group",
      "aria-label": "The line",
      onkeydown: press,
      onkeyup: rise,
    },
    above,
    strip,
    spoken,
    make("label", { class: "lmq-entry" }, "Your guess ", entry),
    make("div", { class: "lmq-keys" }, ...keys),
    verdict,
  );
  element.append(
    controls(make("label", {}, "A line of ", which), next, worldLabel),
    remains,
    board,
    controls(rest, again),
    make(
      "div",
      { class: "lmq-wide", tabindex: 0, role: "region", "aria-label": "Bits a letter" },
      results,
    ),
    summary,
    controls(...loading.parts),
    note,
  );
  element.addEventListener("focusin", askAll, { once: true });

  /* --- who guesses --- */

  /** @type {Player} */
  const counting = {
    name: `counting (${data.order}-grams)`,
    short: "count",
    async read({ before, text }) {
      counts ??= countIn(await readText("sonnets-training", context), alphabet, data.order);
      const model = counts;
      const all = Array.from(before + text, (character) => alphabet.indexOf(character));
      return guessLine(
        text,
        letterPositions(text).map((position) =>
          letterProbs(model.next(all.slice(0, before.length + position), data.order), alphabet),
        ),
      );
    },
  };
  /** @type {Player} */
  const gpt = {
    name: "the GPT",
    short: "GPT",
    async read({ before, text }, isRandom) {
      const model = openModel("gpt", context, isRandom ? SEED : null);
      const known = Array.from(data.gpt_alphabet);
      const { config } = await model.load();
      if (config.alphabet !== data.gpt_alphabet)
        throw new Error("the site carries another GPT: reload the page");
      const all = Array.from(before + text, (character) => known.indexOf(character));
      const probs = [];
      for (const position of letterPositions(text)) {
        const end = before.length + position;
        const ids = all.slice(Math.max(0, end - data.room), end);
        const answer = await model.forward(ids, { logits_of: [ids.length - 1] });
        if (!answer?.logits) return null;
        probs.push(letterProbs(softmaxed(answer.logits), known));
      }
      return guessLine(text, probs);
    },
  };
  /** @type {Player} */
  const talks = {
    name: "the model that talks",
    short: "talks",
    async read({ before, text }, isRandom) {
      const random = isRandom ? SEED : null;
      const asking = { before, line: text, symbols: SYMBOLS, random };
      const probs = await talker.when("characters", asking);
      return (
        probs &&
        guessLine(
          text,
          letterPositions(text).map((position) => letterProbs(probs[position], SYMBOLS)),
        )
      );
    },
  };

  /* Those who guess beside the reader. */
  const players = () => (isHere ? [counting, gpt, talks] : [counting, gpt]);
  /* Whether the switch says that letters are shuffled. */
  const isMixed = () => worlds.value === WORLDS.shuffled;
  /**
   * The lines, with their letters in order or shuffled.
   *
   * @param {boolean} [mix] as the switch says by default
   */
  const linesOf = (mix = isMixed()) => (mix ? mixed : inOrder);
  /**
   * The reader's games with the lines in order, or with shuffled letters.
   *
   * @param {boolean} mix
   */
  const gamesWith = (mix) => (mix ? games.mixed : games.inOrder);
  /* The reader's games with the lines that are shown. */
  const mine = () => gamesWith(isMixed());

  /**
   * Whether a player guesses by random weights: counts have no weights.
   *
   * @param {Player} player
   * @param {string} world state of the switch
   */
  const isByRandom = (player, world) => world === WORLDS.random && player !== counting;

  /**
   * A name for what a player guesses in a line.
   *
   * @param {Player} player
   * @param {number} line
   * @param {string} world state of the switch
   */
  const keyOf = (player, line, world) =>
    [player.short, isByRandom(player, world), world === WORLDS.shuffled, line].join(" ");

  /**
   * What a player guessed in a line; undefined if it is not known.
   *
   * @param {Player} player
   * @param {number} line
   * @param {string} [world] state of the switch, that of now by default
   */
  const of = (player, line, world = worlds.value) => known.get(keyOf(player, line, world));

  /**
   * Let a player guess a line, unless that is known or on its way, and draw it; an error is told.
   *
   * @param {Player} player
   * @param {number} line
   * @param {string} world state of the switch
   */
  async function ask(player, line, world) {
    const key = keyOf(player, line, world);
    if (known.has(key) || asked.has(key)) return;
    asked.add(key);
    try {
      const guessed = await player.read(
        linesOf(world === WORLDS.shuffled)[line],
        isByRandom(player, world),
      );
      if (guessed) known.set(key, guessed);
      note.textContent = "";
    } catch (error) {
      note.textContent = `${player.name} does not guess: ${error.message}`;
    }
    asked.delete(key);
    draw();
  }

  /* Ask all players about the line that is shown and those that were played, as they are and as the
     switch says. */
  function askAll() {
    for (const world of new Set([worlds.value, WORLDS.asItIs])) {
      const played = gamesWith(world === WORLDS.shuffled);
      played.forEach(({ guesses }, line) => {
        if (line !== chosen && !guesses.length) return;
        for (const player of players()) ask(player, line, world);
      });
    }
  }

  /* --- what the reader does --- */

  /**
   * Show another line.
   *
   * @param {number} line
   */
  function choose(line) {
    chosen = line;
    which.value = String(line);
    verdict.textContent = "";
    askAll();
    draw();
  }

  /* The switch was moved. */
  function changeWorld() {
    verdict.textContent = "";
    askAll();
    draw();
  }

  /* The letter that is asked; undefined if all are found, or the rest is shown. */
  function wanted() {
    const { guesses, isOpen } = mine()[chosen];
    return isOpen ? undefined : lettersOf(linesOf()[chosen].text)[guesses.length];
  }

  /**
   * Take a guess of the letter that is asked, and say whether it is right.
   *
   * @param {string} typed a character
   */
  function guess(typed) {
    const letter = letterOf(typed);
    const right = wanted();
    const game = mine()[chosen];
    if (right === undefined) return;
    if (letter === null)
      verdict.textContent = `“${typed}” is none of the 27: guess a letter or the space.`;
    else if (game.tried.includes(letter))
      verdict.textContent = `You have tried ${named(letter)} already.`;
    else if (letter !== right) {
      game.tried += letter;
      verdict.textContent = `Not ${named(letter)}.`;
    } else {
      game.guesses.push(game.tried.length + 1);
      game.tried = "";
      verdict.textContent = tellRight(letter);
    }
    askAll();
    draw();
  }

  /**
   * What is said of a letter that was found: how many guesses it took, and how many the players.
   *
   * @param {string} letter the last one that was found
   */
  function tellRight(letter) {
    const last = mine()[chosen].guesses.length - 1;
    const count = mine()[chosen].guesses[last];
    const others = players().flatMap((player) => {
      const guessed = of(player, chosen);
      return guessed ? [`${player.name} ${guessed.guesses[last]}`] : [];
    });
    const beside = others.length ? ` Beside you: ${others.join(", ")}.` : "";
    const end = wanted() === undefined ? " That was the last letter." : "";
    return `Yes, ${named(letter)}: ${count === 1 ? "at once" : `${count} guesses`}.${beside}${end}`;
  }

  /**
   * Take a key as a guess, unless it is typed into the field.
   *
   * @param {KeyboardEvent} event
   */
  function press(event) {
    if (event.target === entry || event.ctrlKey || event.metaKey || event.altKey) return;
    if (letterOf(event.key) === null) return;
    event.preventDefault();
    guess(event.key);
  }

  /**
   * When the space key is released: it was a guess (`press`), and presses no button.
   *
   * @param {KeyboardEvent} event
   */
  function rise(event) {
    if (event.key === " " && event.target !== entry) event.preventDefault();
  }

  /* Show the rest of the line; it is not guessed any more. */
  function showRest() {
    mine()[chosen].isOpen = true;
    verdict.textContent = "Here is the line. Only the letters that you guessed count.";
    askAll();
    draw();
  }

  /* Forget what was guessed of this line. */
  function beginAnew() {
    mine()[chosen] = newGame();
    verdict.textContent = "";
    draw();
    entry.focus();
  }

  /* --- what is shown --- */

  /* Draw all that can change. */
  function draw() {
    const line = linesOf()[chosen];
    const game = mine()[chosen];
    const right = wanted();
    above.textContent = line.before.trimEnd();
    drawStrip(line, game);
    board.dataset.ended = String(right === undefined);
    for (const key of keys) {
      const isTried = String(game.tried.includes(key.dataset.letter ?? ""));
      key.setAttribute("aria-disabled", isTried);
    }
    entry.disabled = right === undefined;
    rest.disabled = right === undefined;
    again.disabled = !game.guesses.length && !game.tried && !game.isOpen;
    drawResults();
    remains.textContent = leftSentence();
    loader.hidden = isHere;
  }

  /**
   * The line as far as it is known, below each letter how many guesses it took.
   *
   * @param {Line} line
   * @param {Game} game
   */
  function drawStrip({ text }, { guesses, tried, isOpen }) {
    const who = players();
    const words = [nameColumn(["you", ...who.map(({ short }) => short)])];
    let shown = "";
    let letterIndex = 0;
    for (const character of text) {
      const letter = letterOf(character);
      const isMine = letterIndex < guesses.length;
      if (letter !== null && !isMine && !isOpen) break;
      shown += character;
      if (letter === null) put(words, character, ["", ...who.map(() => "")]);
      else {
        const theirs = who.map((player) => String(of(player, chosen)?.guesses[letterIndex] ?? "…"));
        put(words, visible(character), [isMine ? String(guesses[letterIndex]) : "–", ...theirs]);
        letterIndex++;
      }
    }
    if (wanted() !== undefined)
      put(words, "?", [tried ? String(tried.length + 1) : "", ...who.map(() => "")], "lmq-asked");
    strip.replaceChildren(...words);
    const end =
      wanted() === undefined
        ? " That is all of it."
        : ` The next letter is asked.${tried && ` Tried: ${Array.from(tried, named).join(", ")}.`}`;
    spoken.textContent = `The line so far: ${shown || "nothing yet"}.${end}`;
  }

  /**
   * What a player did with the letters that are compared: those that the reader guessed, in all
   * lines; if there are none, all of a line that is shown.
   *
   * @param {Player | null} player null is the reader
   * @returns {Guessed}
   */
  function compared(player) {
    const all = mine();
    const isWhole = all.every(({ guesses }) => !guesses.length);
    /** @type {Guessed} */
    const guessed = { guesses: [], bits: [] };
    all.forEach(({ guesses, isOpen }, line) => {
      if (!player) {
        guessed.guesses.push(...guesses);
        return;
      }
      const count = isWhole && isOpen ? Infinity : guesses.length;
      const theirs = of(player, line);
      guessed.guesses.push(...(theirs?.guesses.slice(0, count) ?? []));
      guessed.bits.push(...(theirs?.bits.slice(0, count) ?? []));
    });
    return guessed;
  }

  /* A row for the reader and for each player. A reader who has guessed nothing has no row: then
     the sentence below is about the first player, on a line that is shown as a whole. */
  function drawResults() {
    const own = compared(null);
    const rows = [{ name: "you", ...own }];
    for (const player of players()) rows.push({ name: player.name, ...compared(player) });
    const some = rows.filter(({ guesses }) => guesses.length);
    results.replaceChildren();
    summary.textContent = some.length
      ? tellInterval(some[0])
      : "Guess a letter, and this is where it is counted. A line takes two or three minutes. If you know the poem by heart, choose another.";
    if (!some.length) return;
    results.append(
      heading(
        "",
        "letters",
        "at once",
        "bits a letter",
        "",
        "95 % interval",
        "by its probabilities",
      ),
      make("tbody", {}, ...some.map(resultRow)),
    );
  }

  /* What is left of the players' guesses with random weights, or with letters in another order: how
     many of the line's letters each player now gets with its first guess, how many it got before,
     and how many are spaces, which whoever always guesses the space gets. Until a model has
     answered it says that they are reading; "" if the switch says "as it is". */
  function leftSentence() {
    if (worlds.value === WORLDS.asItIs) return "";
    const lost = players().filter(
      (player) => worlds.value !== WORLDS.random || player !== counting,
    );
    const parts = lost.flatMap((player) => {
      const now = of(player, chosen);
      const usual = of(player, chosen, WORLDS.asItIs);
      return now && usual
        ? [`${player.name} guesses ${atOnce(now.guesses)} instead of ${atOnce(usual.guesses)}`]
        : [];
    });
    if (!parts.length) return "They are reading …";
    const letters = lettersOf(linesOf()[chosen].text);
    const spaces = letters.filter((letter) => letter === " ").length;
    const always = `Whoever always guesses the space is right ${plural(spaces, "time")}.`;
    const all = plural(letters.length, "letter");
    const comparison = `of this line’s ${all}, at once ${parts.join(", ")}.`;
    return worlds.value === WORLDS.random
      ? `With random weights: ${comparison} ${always} Counting has no weights, and stays.`
      : "With its letters in another order: " +
          `${comparison} ${always} Your guesses of this order are counted apart.`;
  }

  /* --- the model that talks --- */

  /* Load the model that talks, and let it guess. */
  async function load() {
    const arrived = await loading.bring();
    if (arrived !== undefined) {
      isHere = Boolean(arrived);
      loadStatus.textContent = isHere
        ? "The model is here: it reads each line for some seconds."
        : "What has come so far is kept.";
    }
    askAll();
    draw();
  }

  addEventListener(WEIGHTS_FORGOTTEN, () => {
    talker.stop();
    isHere = false;
    loadStatus.textContent = "";
    draw();
  });
  if (talker.obstacle) {
    loader.disabled = true;
    loadStatus.textContent = talker.obstacle;
  }

  draw();
  /**
   * The reader's games as a field of links.
   *
   * @param {boolean} mix those with shuffled letters, or in order
   */
  const field = (mix) => ({
    get: () => written(gamesWith(mix)),
    set: (/** @type {string} */ text) => takeWritten(text, gamesWith(mix), linesOf(mix)),
  });
  const line = countField(
    () => chosen,
    choose,
    () => inOrder.length,
  );
  const state = { world: worlds, line, guesses: field(false), shuffled: field(true) };
  return {
    state: stateOf(state, () => {
      askAll();
      draw();
    }),
  };
}

/**
 * Count the n-grams of a text.
 *
 * @param {string} text
 * @param {string[]} alphabet the character of each ID
 * @param {number} order of the n-grams
 */
function countIn(text, alphabet, order) {
  const ids = Array.from(text, (character) => alphabet.indexOf(character));
  return new Ngrams(ids, alphabet.length, order);
}

/**
 * The positions in a line at which letters or spaces stand.
 *
 * @param {string} text
 */
const letterPositions = (text) =>
  Array.from(text, (_, i) => i).filter((i) => letterOf(text[i]) !== null);

/**
 * The probabilities that logits stand for.
 *
 * @param {ArrayLike<number>} logits left as they are
 */
function softmaxed(logits) {
  const all = Array.from(logits);
  const most = Math.max(...all);
  const powers = all.map((logit) => Math.exp(logit - most));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
}

/**
 * Draw two bounds as a bar, and their interval as a line, from 0 to MOST bits.
 *
 * @param {import("./guessing.js").Bits} bits
 */
const range = ({ lower, upper, low, high }) =>
  make(
    "span",
    {
      class: "lmq-range",
      style: [lower, upper, low, high]
        .map((value, i) => `--${["lower", "upper", "low", "high"][i]}: ${value / MOST}`)
        .join("; "),
    },
    make("i"),
    make("b"),
  );
