/* Sentences to choose from: the tokens of one in a row, and where the chosen token looks
   in the chosen head, as shades, per cents and arcs. All of it is HTML, in the page's
   colours; the arcs alone are a drawing, and say nothing that the shades do not. */
(function () {
  "use strict";
  const LEAST = 4; // per cent; arcs for less would be a haze
  const SVG = "http://www.w3.org/2000/svg";

  function make(name, attributes, text) {
    const element = document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
    if (text !== undefined) element.textContent = text;
    return element;
  }

  /* Tokens as one would write them: for the list to choose from. */
  function written(tokens) {
    return tokens
      .join(" ")
      .replace(/^\[CLS\] | \[SEP\]$| ##/g, "")
      .replace(/ ([.,;:!?])/g, "$1")
      .replace(/ (['’]) /g, "$1");
  }

  /* One of a set of buttons is pressed. */
  function choose(buttons, chosen) {
    buttons.forEach(function (button, index) {
      button.setAttribute("aria-pressed", String(index === chosen));
      button.setAttribute("tabindex", index === chosen ? "0" : "-1");
    });
    lmcourse.roving(buttons, 1);
  }

  /* A button for each label, and the arrow keys between them. */
  function row(parent, labels, className, press) {
    parent.textContent = "";
    return labels.map(function (label, index) {
      const button = make("button", { type: "button", class: className }, label);
      button.addEventListener("click", () => press(index));
      parent.append(button);
      return button;
    });
  }

  /* From the top of one box to the top of another, above the line or across lines. */
  function arc(frame, from, to, share) {
    const box = frame.getBoundingClientRect();
    const [a, b] = [from, to].map(function (element) {
      const r = element.getBoundingClientRect();
      return { x: r.left + r.width / 2 - box.left, y: r.top - box.top };
    });
    const lift = Math.min(34, 10 + Math.abs(a.x - b.x) / 6);
    const path = document.createElementNS(SVG, "path");
    const [up, down] = [a.y - lift, b.y - lift];
    path.setAttribute("d", `M${a.x},${a.y} C${a.x},${up} ${b.x},${down} ${b.x},${b.y}`);
    path.setAttribute("stroke-width", (1 + (7 * share) / 100).toFixed(1));
    path.setAttribute("stroke-opacity", (0.25 + (0.6 * share) / 100).toFixed(2));
    return path;
  }

  lmcourse.drawers.sentences = function ({ canvas, data }) {
    const plain = data.sentences.map((sentence) => written(sentence.tokens));
    const state = { sentence: 0, head: data.head, query: data.sentences[0].query };
    let tokens = [];

    const bar = make("p", { class: "lmc-choice" });
    const select = make("select", { "aria-label": "Sentence" });
    plain.forEach((text, index) => select.add(new Option(text, index)));
    const back = make("button", { type: "button", "aria-label": "previous sentence" }, "‹");
    const next = make("button", { type: "button", "aria-label": "next sentence" }, "›");
    bar.append(back, select, next);
    const heads = make("div", { class: "lmc-head-row", role: "group", "aria-label": "Head" });
    const line = make("div", { class: "lmc-line" });
    const arcs = document.createElementNS(SVG, "svg");
    arcs.setAttribute("aria-hidden", "true");
    const words = make("div", { class: "lmc-words", role: "group", "aria-label": "Tokens" });
    line.append(arcs, words);
    const told = make("p", { class: "lmc-told", "aria-live": "polite" });
    const note = make("p", { class: "lmc-note" });
    canvas.append(bar, heads, line, told, note);

    const count = data.sentences[0].weights.length;
    const names = Array.from({ length: count }, (_, head) => String(head));
    const squares = row(heads, names, "lmc-square", (head) => show({ head }));
    squares.forEach((button, head) => button.setAttribute("aria-label", "Head " + head));
    heads.prepend(make("span", {}, "Head "));

    function draw() {
      const shares = data.sentences[state.sentence].weights[state.head][state.query];
      arcs.textContent = "";
      shares.forEach(function (share, key) {
        if (share < LEAST || key === state.query) return;
        arcs.append(arc(line, tokens[state.query], tokens[key], share));
      });
    }

    function show(change) {
      const moved = change.sentence !== undefined;
      if (moved) change.query = data.sentences[change.sentence].query;
      Object.assign(state, change);
      const sentence = data.sentences[state.sentence];
      if (moved) {
        select.value = String(state.sentence);
        note.textContent = data.notes[state.sentence];
        tokens = row(words, sentence.tokens, "lmc-word", (query) => show({ query }));
        tokens.forEach((token) => token.append(make("small", {})));
      }
      const shares = sentence.weights[state.head][state.query];
      tokens.forEach(function (token, key) {
        token.style.setProperty("--share", shares[key] / 100);
        token.lastChild.textContent = shares[key] ? shares[key] + "\u2009%" : "";
      });
      const most = shares.map((share, key) => [share, sentence.tokens[key]]);
      most.sort((a, b) => b[0] - a[0]);
      const list = most.slice(0, 3).map(([share, token]) => `${token} ${share} %`);
      told.textContent =
        `Head ${state.head}: “${sentence.tokens[state.query]}” looks at ` + list.join(", ");
      choose(squares, state.head);
      choose(tokens, state.query);
      draw();
    }

    const turn = (by) => () =>
      show({ sentence: (state.sentence + by + plain.length) % plain.length });
    back.addEventListener("click", turn(-1));
    next.addEventListener("click", turn(1));
    select.addEventListener("change", () => show({ sentence: Number(select.value) }));
    show({ sentence: 0 });
    new ResizeObserver(draw).observe(line);
    document.fonts.ready.then(draw);
  };
})();
