/* The view *sorting*: poems, one after the other, to be sorted into the editors' sections by
   the reader, who is compared with the editors and with the model at each level. */

import { button, controls, heading, make, numbersField, row, stateOf } from "./dom.js";

/**
 * Mount the view *sorting*: one poem after the other, which the reader sorts into a section, and
 * then how often reader, editors and model agree. In it, a section is a number, its position among
 * the names.
 *
 * @param {HTMLElement} element empty
 * @param {object} data
 * @param {string[]} data.texts of the poems
 * @param {number[]} data.editors a section for each text
 * @param {number[][]} data.models [level], a section for each text
 * @param {string[]} data.names of the sections
 * @param {string[]} data.levels their names
 * @returns its state, for links: see `stateOf` in dom.js
 */
export function mount(element, { texts, editors, models, names, levels }) {
  /** @type {number[]} */
  let sorted = []; // the reader's section for each text so far
  const count = make("p");
  const text = make("blockquote", { class: "play-poem", tabindex: -1 });
  const end = make("div", { role: "status", tabindex: -1 });
  const answers = names.map((name, section) => button(name, () => sort(section)));
  const back = button("Take back", takeBack);
  element.append(count, text, controls(...answers, back), end);

  /**
   * Put the poem that is shown into a section, and show the next.
   *
   * @param {number} section
   */
  function sort(section) {
    sorted.push(section);
    show();
    (text.hidden ? end : text).focus();
  }

  /* Take the last choice back. */
  function takeBack() {
    sorted.pop();
    show();
  }

  /* Show the next poem, or the results once all are sorted. */
  function show() {
    const next = sorted.length;
    const isDone = next === texts.length;
    count.textContent = isDone
      ? summary()
      : `Poem ${next + 1} of ${texts.length}: in which section would you put it?`;
    text.hidden = isDone;
    text.textContent = isDone ? "" : texts[next];
    for (const answer of answers) answer.disabled = isDone;
    back.disabled = next === 0;
    end.replaceChildren(...(isDone ? [agreement(), disagreement()] : []));
  }

  /**
   * On how many of the texts that are sorted two agree, in words.
   *
   * @param {number[]} one a section for each text
   * @param {number[]} other a section for each text
   */
  function agreeing(one, other) {
    const count = sorted.filter((_, i) => one[i] === other[i]).length;
    return `${count} of ${sorted.length}`;
  }

  /* How the reader did, beside the last level. */
  function summary() {
    const last = models.length - 1;
    return (
      `All are sorted. You chose the editors’ section for ${agreeing(sorted, editors)} poems; ` +
      `the model (${levels[last]}) chose it for ${agreeing(models[last], editors)}.`
    );
  }

  /* A table: how often each level agrees with the editors and with the reader. */
  function agreement() {
    const rows = models.map((model, level) =>
      row(levels[level], agreeing(model, editors), agreeing(model, sorted)),
    );
    const reader = row("you", agreeing(sorted, editors), "");
    const head = heading("", "as the editors", "as you");
    return make("table", {}, head, make("tbody", {}, reader, ...rows));
  }

  /* The poems on which reader and last layer agree against the editors. */
  function disagreement() {
    const last = models[models.length - 1];
    const odd = texts.filter((_, i) => sorted[i] === last[i] && sorted[i] !== editors[i]);
    if (!odd.length)
      return make("p", {}, "On no poem did you and the last layer agree against the editors.");
    const titles = odd.map((each) => each.split("\n")[0]);
    return make("p", {}, `You and the last layer against the editors: ${titles.join("; ")}.`);
  }

  show();
  const state = {
    sorted: numbersField(
      () => sorted,
      (sections) => {
        if (sections.length <= texts.length && sections.every((i) => i in names)) sorted = sections;
      },
    ),
  };
  return { state: stateOf(state, show) };
}
