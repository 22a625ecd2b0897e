/* The view *neurons*: two lists of texts, a neuron's and its shuffled copy's. Which is the
   neuron's is told after a guess. `lmcourse.views.neurons` ranked them. */
import { button, controls, make, numbersField, plural, select, stateOf } from "./dom.js";

/**
 * A text whose spaces and ends of lines can be seen.
 *
 * @type {(text: string) => string}
 */
const seen = (text) => text.replaceAll("\n", "⏎").replaceAll(" ", "\u00a0");

/**
 * How many of the texts end in the character that most of them end in.
 *
 * @param {string[]} texts
 * @returns {number}
 */
function alike(texts) {
  const counts = new Map();
  for (const text of texts) counts.set(text.at(-1), (counts.get(text.at(-1)) || 0) + 1);
  return Math.max(...counts.values());
}

/**
 * Mount the view *neurons*: two lists of texts, of which the reader guesses which is a neuron's and
 * which its shuffled copy's.
 *
 * @param {HTMLElement} element empty
 * @param {object} data
 * @param {{ name: string, lists: string[][], neuron: number }[]} data.pairs two lists of texts,
 *   and which of the two is the neuron's, 0 or 1
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, { pairs }) {
  /** @type {Map<number, number>} */
  const guesses = new Map(); // place of a pair → the side that was chosen first
  const chosen = select(
    pairs.map(({ name }) => name),
    draw,
  );
  const next = button("Next", () => {
    chosen.value = String((+chosen.value + 1) % pairs.length);
    draw();
  });
  const sides = ["A", "B"].map((letter, side) => {
    const list = make("ol", {});
    const guess = button(`${letter} is the neuron`, () => {
      if (!guesses.has(+chosen.value)) guesses.set(+chosen.value, side);
      draw();
      next.focus(); // a button that is switched off loses the focus
    });
    return { list, guess, letter, box: make("div", { class: "lmn-side" }, list, guess) };
  });
  const status = make("p", { role: "status" });
  element.append(
    controls(make("label", {}, "Open ", chosen), next),
    make("div", { class: "play-both" }, ...sides.map(({ box }) => box)),
    status,
  );

  /* Show the two lists of the pair that is open, and, after a guess, which is the neuron's. */
  function draw() {
    const { lists, neuron } = pairs[+chosen.value];
    const guess = guesses.get(+chosen.value);
    sides.forEach(({ list, guess: press, box }, side) => {
      list.replaceChildren(
        ...lists[side].map((text) =>
          make("li", {}, seen(text.slice(0, -1)), make("b", {}, seen(text.slice(-1)))),
        ),
      );
      press.disabled = guess !== undefined;
      box.classList.toggle("lmn-neuron", guess !== undefined && side === neuron);
    });
    const right = Array.from(guesses).filter(([i, side]) => pairs[i].neuron === side).length;
    status.textContent =
      guess === undefined
        ? "Each text ends with the letter at which the neuron, or its copy, answers strongly. " +
          "An underline with no letter above it is a space. One list is the neuron’s."
        : `${guess === neuron ? "Right" : "No"}: ${sides[neuron].letter} is the neuron. ` +
          `Of its ${plural(lists[0].length, "text")}, ` +
          `${alike(lists[neuron])} end in the same letter. ` +
          `In the other list it is ${alike(lists[1 - neuron])}. ` +
          `Right so far: ${right} of ${guesses.size}.`;
  }

  draw();
  const state = {
    open: chosen,
    guesses: numbersField(
      () => Array.from(guesses).flat(),
      (numbers) => {
        guesses.clear();
        for (let i = 0; i + 1 < numbers.length; i += 2)
          if (numbers[i] in pairs && numbers[i + 1] in sides)
            guesses.set(numbers[i], numbers[i + 1]);
      },
    ),
  };
  return { state: stateOf(state, draw) };
}
