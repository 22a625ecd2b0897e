/* The view *dates*: what an encoder-decoder writes for a day in a style, character by
   character, with its probabilities and where it looks. All states are stored. */
import { button, make, select } from "./dom.js";

const visible = (character) => ({ " ": "␣", ">": "end" })[character] ?? character;

export function mount(element, data) {
  let state, place = data.place, head = null; // the pair chosen, the character written, the head (or all)
  const style = make("select", { onchange: choose });
  const day = select(data.days, choose);
  const groups = [["It learned from", 0, data.seen], ["It never saw", data.seen, data.styles.length]];
  for (const [label, from, to] of groups)
    style.append(make("optgroup", { label }, ...data.styles.slice(from, to).map((name, i) =>
      make("option", { value: from + i }, name))));
  const read = make("div", { class: "lmd-row lmd-read" });
  const written = make("div", { class: "lmd-row", role: "group", "aria-label": "Characters written" });
  const heads = make("div", { class: "lmd-heads", role: "group", "aria-label": "Heads" });
  const bars = make("div", { class: "lmd-bars" });
  const verdict = make("p", { class: "lmd-verdict", role: "status" });
  const summary = make("p", { class: "lmd-summary", "aria-live": "polite" });
  element.append(
    make("p", { class: "play-controls" }, make("label", {}, "Style ", style),
      make("label", {}, "Day ", day)),
    make("p", { class: "play-muted" }, "It reads"), read,
    make("p", { class: "play-muted" }, "and writes (choose a character)"), written, verdict,
    make("div", { class: "play-both" }, bars, make("div", {}, heads, summary)));

  function choose() {
    state = data.states[style.value][day.value];
    place = Math.min(place ?? 0, state.probs.length - 1);
    const isRight = state.written === state.wanted;
    verdict.classList.toggle("lmd-wrong", !isRight);
    verdict.textContent = isRight ? "✓ That is the day." : `✗ The day is ${state.wanted}.`;
    draw();
  }

  /* Buttons of which one is pressed; the focus stays where it was. */
  function drawButtons(parent, labels, pressed, press, name = (label) => label) {
    const focused = Array.from(parent.children).indexOf(document.activeElement);
    parent.replaceChildren(...labels.map((label, i) => button(label, () => press(i),
      { "aria-pressed": String(i === pressed), "aria-label": name(label, i) })));
    parent.children[focused]?.focus();
  }

  function draw() {
    const count = state.looks[0].length;
    const looks = state.looks[place];
    const mean = looks[0].map((_, i) => looks.reduce((sum, row) => sum + row[i], 0) / count);
    const weights = head === null ? mean : looks[head];
    read.replaceChildren(...Array.from(state.source, (character, i) => {
      const share = Math.round(weights[i]);
      return make("span", { style: `--share: ${weights[i] / 100}` }, visible(character),
        make("small", {}, share ? share + "\u2009%" : ""));
    }));
    const characters = [...state.written, ">"].slice(0, state.probs.length);
    drawButtons(written, characters.map(visible), place, (i) => { place = i; draw(); },
      (label, i) => `${label}, place ${i + 1}`);
    characters.forEach((character, i) =>
      written.children[i].classList.toggle("lmd-wrong", character !== (state.wanted + ">")[i]));
    const names = ["mean of heads", ...looks.map((_, i) => "head " + i)];
    drawButtons(heads, names, head === null ? 0 : head + 1, (i) => { head = i ? i - 1 : null; draw(); });
    bars.replaceChildren(...state.probs[place].map(([character, share]) =>
      make("p", {}, make("b", {}, visible(character)),
        make("span", { class: "lmd-bar", style: `width: ${share / 12}em` }), ` ${share} %`)));
    const order = weights.map((share, i) => [share, i]).sort((a, b) => b[0] - a[0]).slice(0, 3);
    summary.textContent = `While it writes “${visible(characters[place])}” it looks most at ` +
      order.map(([share, i]) => `“${visible(state.source[i])}” (place ${i + 1}, ${Math.round(share)} %)`).join(", ") + ".";
  }

  choose();
}
