/* The view *word removal*: a poem whose every word can be struck out, coloured by what that
   changes of the support for a section. It shows what the model answered when the page was
   built.

   data: poems, [{ text, own, words, printed[level][section], said[level][word][section] }],
   support in hundredths, of the whole text and without each word; own, the editors' section;
   names, the sections; levels, the names of the levels; first, the poem to begin with. */

import { fixed, make, select, slider } from "./dom.js";
import { pressable, roving } from "./keys.js";

const FULL = 60; // hundredths of support at which a colour is full

const argmax = (values) => values.indexOf(Math.max(...values));

export function mount(element, { poems, names, levels, first }) {
  let poem = first;
  let level = levels.length - 1;
  let section = null; // the one asked for; null: the likeliest
  let struck = null; // the word struck out
  let stop = 0; // the word that is the poem's tab stop

  const titles = poems.map(({ text }) => text.split("\n")[0]);
  const poemChoice = select(titles, choosePoem);
  const sectionChoice = select(names, chooseSection);
  const levelChoice = slider("Level", { min: 0, max: level, value: level, oninput: chooseLevel });
  const text = make("blockquote", { class: "play-poem" });
  const status = make("p", { class: "lmf-told", role: "status" });
  poemChoice.value = first;
  element.append(
    make(
      "p",
      { class: "play-controls" },
      make("label", {}, "Poem ", poemChoice),
      make("label", {}, "What speaks for ", sectionChoice),
      levelChoice.label,
    ),
    text,
    make(
      "p",
      { class: "lmf-key" },
      make("span", { class: "lmf-holds" }, "holds it there"),
      make("span", { class: "lmf-hinders" }, "speaks against it"),
      " Press a word to strike it out; arrow keys go from word to word.",
    ),
    status,
  );

  function choosePoem() {
    poem = Number(poemChoice.value);
    section = null;
    struck = null;
    stop = 0;
    draw();
  }

  function chooseSection() {
    section = Number(sectionChoice.value);
    draw();
  }

  function chooseLevel() {
    level = Number(levelChoice.input.value);
    draw();
  }

  function strike(word) {
    struck = struck === word ? null : word;
    draw();
  }

  /* A word as a button, coloured by the support that is lost without it. It is a span, since
     a button would break the line before a comma. */
  function makeWord(word, i, lost) {
    const span = make(
      "span",
      {
        role: "button",
        tabindex: i === stop ? 0 : -1,
        onclick: () => strike(i),
        onfocus: () => {
          stop = i;
        },
        "aria-pressed": String(struck === i),
        class: lost < 0 ? "lmf-hinders" : "lmf-holds",
        style: `--share: ${Math.min(1, Math.abs(lost) / FULL).toFixed(2)}`,
      },
      word,
    );
    pressable(span, () => strike(i));
    return span;
  }

  /* The words as buttons, with the text between them as it is; the focus stays. */
  function drawText(shownSection) {
    const { text: whole, words, printed, said } = poems[poem];
    const focused = Array.from(text.children).indexOf(document.activeElement);
    const parts = [];
    let end = 0;
    words.forEach((word, i) => {
      const start = whole.indexOf(word, end);
      const lost = printed[level][shownSection] - said[level][i][shownSection];
      parts.push(whole.slice(end, start), makeWord(word, i, lost));
      end = start + word.length;
    });
    text.replaceChildren(...parts, whole.slice(end));
    roving(text.children, words.length);
    text.children[focused]?.focus();
  }

  function describe() {
    const { own, words, printed, said } = poems[poem];
    const support = (values) =>
      names.map((name, i) => `${name} ${fixed(values[i] / 100)}`).join(", ");
    const now = printed[level];
    const model = `The model (${levels[level]}) as printed: ${names[argmax(now)]}.`;
    const beginning = `The editors: ${names[own]}. ${model}`;
    if (struck === null) return `${beginning} ${support(now)}.`;
    const without = said[level][struck];
    return `${beginning} Without “${words[struck]}”: ${names[argmax(without)]}. ${support(without)}.`;
  }

  function draw() {
    const shownSection = section ?? argmax(poems[poem].printed[levels.length - 1]);
    sectionChoice.value = shownSection;
    levelChoice.value.textContent = levels[level];
    drawText(shownSection);
    status.textContent = describe();
  }

  draw();
}
