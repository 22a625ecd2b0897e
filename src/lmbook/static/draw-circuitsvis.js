/* circuitsvis: heat maps of heads, and coloured tokens. It draws dark on white, on
   canvases whose colours no style sheet reaches; in the dark theme the style sheet turns
   the picture over, as it does static figures. Here: names and keys for what it draws. */
(function () {
  "use strict";
  const BLUE = "#0072B2";
  const SKY = "#56B4E9"; // light enough for the black letters of a token
  const ORANGE = "#E69F00";
  const TINT = 0.35; // of tokens without values

  /* React draws after this function returns: wait for the first mark. */
  function shown(canvas, selector) {
    return new Promise(function (resolve) {
      const look = () =>
        canvas.querySelector(selector) ? resolve() : requestAnimationFrame(look);
      look();
    });
  }

  function nameHeads(canvas, names) {
    const rows = canvas.firstElementChild.children;
    const cells = Array.from(rows[1].querySelectorAll("h4"), (label) =>
      label.parentElement.parentElement // the pattern's frame, in what is clicked
    );
    rows[1].classList.add("lmc-heads");
    rows[2].classList.add("lmc-zoomed");
    canvas
      .querySelectorAll("h2, h3, h4")
      .forEach((label) => label.setAttribute("role", "presentation"));
    cells.forEach(function (cell, index) {
      const chosen = cell.firstElementChild.style.boxShadow !== "";
      cell.setAttribute("role", "button");
      cell.setAttribute("aria-label", names[index]);
      cell.setAttribute("aria-pressed", String(chosen));
      lmcourse.pressable(cell, () => cell.click());
      if (!cell.lmcourseFocus) {
        cell.lmcourseFocus = true;
        cell.addEventListener("focus", () => cell.click());
      }
    });
    lmcourse.roving(cells, 1);
    canvas.querySelectorAll("canvas").forEach(function (picture) {
      const cell = picture.closest("[role=button]");
      if (cell) picture.setAttribute("role", "presentation");
      else picture.setAttribute("aria-label", "Weights of the chosen head");
    });
  }

  lmcourse.drawers.attention_heads = async function (view) {
    const data = view.data;
    const names = data.head_names.map(lmcourse.inert);
    CircuitsVis.render(view.canvas.id, CircuitsVis.AttentionHeads, {
      attention: data.attention,
      tokens: data.tokens.map(lmcourse.inert),
      attentionHeadNames: names,
      maskUpperTri: data.causal,
      positiveColor: BLUE,
      negativeColor: ORANGE,
    });
    await shown(view.canvas, "canvas");
    lmcourse.keep(view.canvas, () => nameHeads(view.canvas, names));
    view.canvas.addEventListener("click", () => nameHeads(view.canvas, names));
  };

  /* circuitsvis shows a token's value beside the pointer; here also beside the focus. */
  function pointAt(token) {
    const box = token.getBoundingClientRect();
    const at = { clientX: box.left + box.width / 2, clientY: box.bottom, bubbles: true };
    token.dispatchEvent(new MouseEvent("mouseenter", at));
    token.dispatchEvent(new MouseEvent("mousemove", at));
  }

  lmcourse.drawers.tokens = async function (view) {
    const data = view.data;
    const plain = data.values === null;
    const values = plain ? data.tokens.map((_, i) => (i % 2 ? -TINT : TINT)) : data.values;
    CircuitsVis.render(view.canvas.id, CircuitsVis.ColoredTokens, {
      tokens: data.tokens.map(lmcourse.inert),
      values: values,
      minValue: plain ? -1 : undefined,
      maxValue: plain ? 1 : undefined,
      positiveColor: SKY,
      negativeColor: ORANGE,
    });
    await shown(view.canvas, ".colored-tokens > span");
    view.root.classList.toggle("lmc-no-values", plain);
    if (plain) return;
    const tokens = view.canvas.querySelectorAll(".colored-tokens > span");
    tokens.forEach(function (token, index) {
      token.setAttribute("role", "img");
      token.setAttribute("aria-label", data.tokens[index] + ": " + values[index]);
      token.addEventListener("focus", () => pointAt(token));
      token.addEventListener("blur", () =>
        token.dispatchEvent(new MouseEvent("mouseleave"))
      );
    });
    lmcourse.roving(tokens, 1);
  };
})();
