/* A poem whose letters are coloured by surprise: what was expected at the one chosen, by
   pointer, by touch, or with the slider below it by key. */
(function () {
  "use strict";
  const NAMES = {" ": "space", "\n": "new line"};
  const make = function (tag, name, text) {
    const node = document.createElement(tag);
    node.className = name;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const named = (letter) => NAMES[letter] || letter;
  const percent = (share) => (share < 1 ? "under 1 %" : `${Math.round(share)} %`);

  function bar(letter, share, written) {
    const row = make("div", written ? "lm-bar lm-written" : "lm-bar");
    const rule = make("span", "lm-rule");
    rule.style.setProperty("--p", `${share}%`);
    row.append(make("span", "lm-guess", named(letter)), rule,
      make("span", "lm-share", percent(share)));
    return row;
  }

  function start(root) {
    const [text, found] = JSON.parse(root.dataset.letters);
    const letters = Array.from(root.querySelectorAll(".lm-verse span"));
    const panel = root.querySelector(".lm-expected");
    const said = make("p", "lm-said"), bars = make("div", "lm-bars");
    const slider = document.createElement("input");
    Object.assign(slider, {type: "range", min: 0, max: text.length - 1});
    slider.setAttribute("aria-label", "Go through the poem letter by letter");
    panel.append(said, bars, slider);

    function before(at) {
      const line = text.slice(Math.max(0, at - 18), at);
      return at > 18 ? "…" + line.replace(/^\S*\s/, "") : line;
    }

    function choose(at) {
      const [share, guesses] = found[at], letter = text[at];
      letters.forEach((node, n) => node.classList.toggle("lm-here", n === at));
      said.replaceChildren(
        at ? "After " : "At the start",
        make("q", "", before(at).replace(/\n/g, " / ")),
        " the model expected"
      );
      if (!at) said.querySelector("q").remove();
      const rows = guesses.map(([guess, p]) => bar(guess, p, guess === letter));
      if (!guesses.some(([guess]) => guess === letter)) rows.push(bar(letter, share, true));
      bars.replaceChildren(...rows);
      slider.value = at;
      const likely = guesses.slice(0, 2).map(([guess, p]) => `${named(guess)} ${percent(p)}`);
      slider.setAttribute("aria-valuetext",
        `${named(letter)}, expected with ${percent(share)}; likeliest ${likely.join(", ")}`);
    }

    const point = function (event) {
      const at = letters.indexOf(document.elementFromPoint(event.clientX, event.clientY));
      if (at >= 0) choose(at);
    };
    root.querySelector(".lm-verse").addEventListener("pointermove", point);
    root.querySelector(".lm-verse").addEventListener("pointerdown", point);
    slider.addEventListener("input", () => choose(+slider.value));
    choose(5); // the first word that could have gone on otherwise
  }

  document.querySelectorAll(".lm-surprise").forEach(start);
})();
