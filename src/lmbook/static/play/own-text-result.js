/* What own-text.js shows when a training rests: who predicts a text better that neither has
   read, what both write, where each is surprised, and the model as a file. */

import { button, controls, fixed, heading, make, megabytes, plural, radios, row } from "./dom.js";
import { checkpoint, keepOwn } from "./own-model.js";
import { bitsAt } from "./random.js";
import { mount as surprise } from "./surprise.js";

/** @import { Config } from "./engine.js" */
/** @import { Counted, Result, State } from "./own-text-worker.js" */

/**
 * @typedef {object} Rested
 * @property {Result} result
 * @property {Counted} counted
 * @property {State} state
 * @property {Omit<Config, "vocab_size">} config
 */

/**
 * Make the title of a part.
 *
 * @param {string} text
 */
const title = (text) => make("p", { class: "lmo-title" }, text);

/**
 * Say whose loss is lower; neither's is where the interval of the difference includes 0.
 *
 * @param {Result} result
 * @returns {string}
 */
function verdict({ losses, interval }) {
  const apart = losses.gpt - losses.ngrams;
  if (!interval) return "That is too little text to decide.";
  const [low, high] = interval;
  if (low <= 0 && high >= 0) return "Neither is clearly better.";
  const [winner, loser] = apart < 0 ? ["The GPT", "counting"] : ["Counting", "the GPT"];
  const range = `95 % interval ${[low, high]
    .map(Math.abs)
    .sort((a, b) => a - b)
    .map((value) => fixed(value))
    .join(" to ")}`;
  return (
    `${winner} is better than ${loser}, ` +
    `by ${fixed(Math.abs(apart))} nats a character (${range}).`
  );
}

/**
 * Make the part on who predicts the test text better: in a sentence, in a table of losses, and how
 * either was chosen.
 *
 * @param {Rested} rested
 * @returns {HTMLElement[]}
 */
function contest({ result, counted }) {
  const { losses, characters, step } = result;
  const { alphabet, order } = counted;
  /**
   * A row of the table: a loss, and among how many characters one would choose as well.
   *
   * @type {(name: string, loss: number) => HTMLElement}
   */
  const line = (name, loss) => row(name, fixed(loss), fixed(Math.exp(loss), 1));
  const advice =
    losses.gpt > losses.ngrams
      ? "Counting learns from little, a GPT from practice: " +
        "go on, take a longer text, or the larger model. "
      : "";
  return [
    title("Who predicts the rest of your text?"),
    make(
      "p",
      {},
      `Both read ${plural(characters, "character")} that neither has learned from. `,
      make("strong", {}, verdict(result)),
    ),
    make(
      "table",
      {},
      heading("", "loss, nats a character", "as if choosing among"),
      make(
        "tbody",
        {},
        line(`the GPT, after ${plural(step, "step")}`, losses.gpt),
        line(`counting: ${order}-grams`, losses.ngrams),
        line("blind guessing", Math.log(alphabet.length)),
      ),
    ),
    make(
      "p",
      { class: "play-muted" },
      `Lower is better. ${advice}` +
        "The moment of the GPT and the length of the n-grams were chosen by " +
        `${plural(counted.sizes.validation, "other character")}.`,
    ),
  ];
}

/**
 * Make the part with two texts side by side; the reader guesses which is the n-gram model's.
 *
 * @param {Rested} rested
 */
function guess({ result, counted }) {
  const { samples, characters } = result;
  const swapped = bitsAt(characters + result.step, 0) & 1;
  const both = [
    { text: samples.gpt, whose: "the GPT" },
    { text: samples.ngrams, whose: "counting" },
  ];
  if (swapped) both.reverse();
  const reply = make("p", { role: "status" });
  const names = both.map(() => make("span", { class: "lmo-whose" }));
  /**
   * Say whether the reader has guessed right, and whose texts they are.
   *
   * @param {number} at the position of the text that was chosen
   */
  function answer(at) {
    const right = both[at].whose === "counting";
    names.forEach((name, i) => {
      name.textContent = `: ${both[i].whose}`;
    });
    const which = both[0].whose === "counting" ? "A" : "B";
    reply.textContent =
      `${right ? "Right" : "No"}: ${which} is by counting. ` +
      `It sees ${plural(counted.order - 1, "character")} back, ` +
      "and forgets how the line or the sentence began.";
    for (const button of buttons) button.disabled = true;
  }
  const buttons = both.map((_, at) => button(`${"AB"[at]} is by counting`, () => answer(at)));
  return [
    title("Which of the two is by counting?"),
    make(
      "div",
      { class: "lmo-two" },
      ...both.map(({ text }, at) =>
        make(
          "div",
          {},
          make("p", {}, make("strong", {}, "AB"[at]), names[at]),
          make("pre", { class: "lmo-sample", dir: "auto", tabindex: 0 }, text),
          buttons[at],
        ),
      ),
    ),
    reply,
  ];
}

/**
 * Make the part on where each is surprised.
 *
 * @param {Rested} rested
 */
function surprises({ result }) {
  const { passage, letters } = result;
  const place = make("div", { class: "lmo-surprise" });
  const { read } = surprise(place, { text: passage, letters: letters.gpt, kind: "passage" });
  return [
    title("Where is each surprised?"),
    make("p", {}, "A passage that neither has learned from: the darker, the less expected."),
    radios("Read by", ["the GPT", "counting"], 0, (i) =>
      read(passage, i ? letters.ngrams : letters.gpt),
    ),
    place,
  ];
}

/**
 * Make the part in which the model is saved as a file, or used in the book's views.
 *
 * @param {Rested} rested
 * @param {ViewContext} context
 */
function file({ result, counted, state, config }, context) {
  const { alphabet, sizes, order } = counted;
  const whole = { ...config, vocab_size: alphabet.length, alphabet: alphabet.join("") };
  const bytes = checkpoint(state.best.weights, whole, {
    made: "in the page, on a text of the reader's",
    steps: result.step,
    test_loss: result.losses.gpt,
    test_characters: result.characters,
    ngrams: { order, test_loss: result.losses.ngrams },
    characters: sizes,
  });
  const status = make("p", { role: "status" });
  const save = button(`save the model (${megabytes(bytes.length, 1)})`, () => {
    const address = URL.createObjectURL(new Blob([bytes]));
    make("a", { href: address, download: "my-gpt.safetensors" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });
  const use = button("use it in the book’s views", async () => {
    const isKept = await keepOwn(bytes, context);
    status.textContent = isKept
      ? "Where a GPT of the book writes, or is shown as a whole, there is now a button “your model”. Your browser keeps the model until you press Forget my progress."
      : "Where a GPT of this page writes, or is shown as a whole, there is now a button “your model”. The browser keeps nothing for this page: save the model to use it elsewhere.";
  });
  return [
    title("Take the model along"),
    make(
      "p",
      {},
      "The file holds the weights and the characters, not the text. But a model repeats pieces of what it has learned: give it to nobody who may not read your text. In Python, ",
      make("code", {}, 'load_gpt("my-gpt.safetensors")'),
      " opens it.",
    ),
    controls(save, use),
    status,
  ];
}

/**
 * All that is shown when a training rests.
 *
 * @param {Rested} rested
 * @param {ViewContext} context
 * @returns {HTMLElement[]}
 */
export const resultOf = (rested, context) => [
  ...contest(rested),
  ...guess(rested),
  ...surprises(rested),
  ...file(rested, context),
];
