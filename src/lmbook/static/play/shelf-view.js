/* The view *shelf*, in two ways: a poem whose every word can be struck out, coloured by what
   that changes; or poems to be filed by the reader, who is compared with editors and layers.
   Both show what the model said when the page was built. */
import { button, fixed, heading, make, row, select, slider } from "./dom.js";

const argmax = (values) => values.indexOf(Math.max(...values));
const MOST = 60; // hundredths of support at which a colour is full

export const mount = (element, data) => (data.words ? words : filing)(element, data);

/* --- a word struck out ------------------------------------------------------------------ */

function words(element, { poems, names, levels, first }) {
  let poem = first;
  let level = levels.length - 1;
  let shelf = null;
  let word = null;
  const choice = select(
    poems.map(({ text }) => text.split("\n")[0]),
    () => show({ poem: Number(choice.value), shelf: null, word: null }),
  );
  const way = slider("Level", {
    min: 0,
    max: level,
    value: level,
    oninput: () => show({ level: Number(way.input.value) }),
  });
  const asked = select(names, () => show({ shelf: Number(asked.value) }));
  const text = make("blockquote", { class: "lmf-poem" });
  const told = make("p", { class: "lmf-told", role: "status" });
  choice.value = first;
  element.append(
    make(
      "p",
      { class: "play-controls" },
      make("label", {}, "Poem ", choice),
      make("label", {}, "What speaks for ", asked),
      way.label,
    ),
    text,
    make(
      "p",
      { class: "lmf-key" },
      make("span", { class: "lmf-holds" }, "holds it there"),
      make("span", { class: "lmf-hinders" }, "speaks against it"),
      " Press a word to strike it out.",
    ),
    told,
  );

  function show(change) {
    poem = change.poem ?? poem;
    level = change.level ?? level;
    shelf = "shelf" in change ? change.shelf : shelf;
    word = "word" in change ? change.word : word;
    draw();
  }

  function draw() {
    const { text: whole, own, words, printed, said } = poems[poem];
    const now = printed[level];
    const shown = shelf ?? argmax(printed.at(-1));
    asked.value = shown;
    way.value.textContent = levels[level];
    let at = 0;
    const parts = words.flatMap((each, i) => {
      const place = whole.indexOf(each, at);
      const before = whole.slice(at, place);
      at = place + each.length;
      const lost = now[shown] - said[level][i][shown];
      const press = () => show({ word: word === i ? null : i });
      const mark = make(
        "span",
        {
          // a button would break the line before a comma
          role: "button",
          tabindex: 0,
          onclick: press,
          "aria-pressed": String(word === i),
          onkeydown: (event) => {
            if (!["Enter", " "].includes(event.key)) return;
            event.preventDefault();
            press();
          },
          class: lost < 0 ? "lmf-hinders" : "lmf-holds",
          style: `--share: ${Math.min(1, Math.abs(lost) / MOST).toFixed(2)}`,
        },
        each,
      );
      return [before, mark];
    });
    const focus = [...text.children].indexOf(document.activeElement);
    text.replaceChildren(...parts, whole.slice(at));
    text.children[focus]?.focus();
    const scores = (values) =>
      names.map((name, i) => `${name} ${fixed(values[i] / 100)}`).join(", ");
    told.textContent =
      `The editors: ${names[own]}. The model (${levels[level]}) as printed: ${names[argmax(now)]}. ` +
      (word === null
        ? `${scores(now)}.`
        : `Without “${words[word]}”: ${names[argmax(said[level][word])]}. ${scores(said[level][word])}.`);
  }
  draw();
}

/* --- poems to be filed -------------------------------------------------------------------- */

function filing(element, { texts, editors, models, names, levels }) {
  const filed = [];
  const [count, text, end] = [
    make("p"),
    make("blockquote", { class: "lmf-poem", tabindex: -1 }),
    make("div", { role: "status" }),
  ];
  const answers = names.map((name, shelf) =>
    button(name, () => {
      filed.push(shelf);
      show();
      text.focus();
    }),
  );
  const back = button("Take back", () => {
    filed.pop();
    show();
  });
  element.append(count, text, make("p", { class: "play-controls" }, ...answers, back), end);
  const agree = (one, other) => filed.filter((_, i) => one[i] === other[i]).length;

  function show() {
    const n = filed.length;
    const done = n === texts.length;
    count.textContent = done
      ? "All are filed."
      : `Poem ${n + 1} of ${texts.length}: in which section would you put it?`;
    text.textContent = done ? "" : texts[n];
    answers.forEach((each) => (each.disabled = done));
    back.disabled = n === 0;
    end.replaceChildren(...(done ? result() : []));
  }

  function result() {
    const of = (one, other) => `${agree(one, other)} of ${filed.length}`;
    const rows = [row("you", of(filed, editors), "")];
    models.forEach((model, i) => rows.push(row(levels[i], of(model, editors), of(model, filed))));
    const odd = texts.filter((_, i) => filed[i] === models.at(-1)[i] && filed[i] !== editors[i]);
    return [
      make("table", {}, heading("", "as the editors", "as you"), make("tbody", {}, ...rows)),
      make(
        "p",
        {},
        odd.length
          ? "You and the last layer against the editors: " +
              odd.map((each) => each.split("\n")[0]).join("; ") +
              "."
          : "On no poem did you and the last layer agree against the editors.",
      ),
    ];
  }
  show();
}
