/* A poem whose letters are coloured by surprise: what was expected at the one chosen, by
   pointer, by touch, or with the slider below it by key. */
import { make } from "./dom.js";

const NAMES = { " ": "space", "\n": "new line" };
const BEFORE = 18; // letters of the line that are repeated
const named = (letter) => NAMES[letter] || letter;
const percent = (share) => (share < 1 ? "under 1 %" : `${Math.round(share)} %`);

function bar(letter, share, isWritten) {
  return make("div", { class: isWritten ? "lm-bar lm-written" : "lm-bar" },
    make("span", { class: "lm-guess" }, named(letter)),
    make("span", { class: "lm-rule", style: `--p: ${share}%` }),
    make("span", { class: "lm-share" }, percent(share)));
}

export function mount(element, { text, letters }) {
  const shown = Array.from(text, (letter, i) =>
    make("span", { style: `--s: ${letters[i][1]}` }, letter === "\n" ? "↵" : letter));
  const verse = make("p", { class: "lm-verse", "aria-hidden": "true", onpointermove: point, onpointerdown: point },
    ...shown.flatMap((span, i) => (text[i] === "\n" ? [span, make("br")] : [span])));
  const expected = make("p", { class: "lm-said" });
  const bars = make("div");
  const slider = make("input", { type: "range", min: 0, max: text.length - 1,
    "aria-label": "Go through the poem letter by letter", oninput: () => choose(Number(slider.value)) });
  element.append(make("p", { class: "visually-hidden" }, text), verse,
    make("div", { class: "lm-expected" }, expected, bars, slider));

  function before(at) {
    const line = text.slice(Math.max(0, at - BEFORE), at).replace(/\n/g, " / ");
    return at > BEFORE ? "…" + line.replace(/^\S*\s/, "") : line;
  }

  function choose(at) {
    const [share, , guesses] = letters[at], letter = text[at];
    shown.forEach((span, i) => span.classList.toggle("lm-here", i === at));
    expected.replaceChildren(...(at ? ["After ", make("q", {}, before(at))] : ["At the start"]), " the model expected");
    const rows = guesses.map(([guess, p]) => bar(guess, p, guess === letter));
    if (!guesses.some(([guess]) => guess === letter)) rows.push(bar(letter, share, true));
    bars.replaceChildren(...rows);
    slider.value = at;
    const likely = guesses.slice(0, 2).map(([guess, p]) => `${named(guess)} ${percent(p)}`);
    slider.setAttribute("aria-valuetext",
      `${named(letter)}, expected with ${percent(share)}; likeliest ${likely.join(", ")}`);
  }

  function point(event) {
    const at = shown.indexOf(document.elementFromPoint(event.clientX, event.clientY));
    if (at >= 0) choose(at);
  }

  choose(5); // the first word that could have gone on otherwise
}
