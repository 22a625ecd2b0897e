/* bertviz: its scripts are loaded as functions (see assets.bertviz_script) that ask for
   jQuery and d3 by way of require.js; a few lines stand in for that. Here too: colours
   that hold in both themes, names and keys for what it draws. */
(function () {
  "use strict";
  if (lmcourse.drawers.head_view) return; // loaded with each of the two scripts
  // lmcourse.views.PALETTE, and five between: more hues than anyone tells apart, so the
  // squares also have places, names and keys.
  const COLOURS = [
    "#0072B2", "#D55E00", "#0EA266", "#C37AAB", "#96562C", "#3067DC", "#696969",
    "#8C6BB1", "#5B8C2A", "#C2504F", "#2A8C8C", "#A6761D",
  ];

  function run(name, params) {
    const library = Object.create(d3, { schemeCategory10: { value: COLOURS } });
    const require = { config: function () {} };
    const requirejs = (names, body) => body(jQuery, library);
    lmcourse[name](params, require, requirejs, { log: function () {} });
  }

  function pretty(token) {
    return token.replace(/[\u0120\u2581]/g, " ").replace("</w>", "");
  }

  /* The frame that bertviz's Python writes around the drawing. */
  function frame(canvas, selects) {
    canvas.textContent = "";
    const bar = document.createElement("span");
    selects.forEach(function ([id, label, options]) {
      const select = document.createElement("select");
      select.id = id;
      select.setAttribute("aria-label", label);
      options.forEach((text, value) => select.add(new Option(text, value)));
      bar.append(label + ": ", select, " ");
    });
    const vis = document.createElement("div");
    vis.id = "vis";
    canvas.append(bar, vis);
    return vis;
  }

  function press(element, kind) {
    element.dispatchEvent(new MouseEvent(kind, { bubbles: true }));
  }

  function cut(layers, rows, columns) {
    return layers.map((heads) =>
      heads.map((head) => head.slice(...rows).map((row) => row.slice(...columns)))
    );
  }

  /* All, and the four blocks of a pair of texts. */
  function blocks(data) {
    const tokens = data.tokens.map(pretty);
    const block = (name, rows, columns) => ({
      name: name,
      attn: cut(data.attention, rows, columns),
      left_text: tokens.slice(...rows),
      right_text: tokens.slice(...columns),
    });
    const every = [0, tokens.length];
    if (data.sentence_b_start === null) return [block("All", every, every)];
    const a = [0, data.sentence_b_start];
    const b = [data.sentence_b_start, tokens.length];
    return [
      block("All", every, every),
      block("Sentence A → Sentence A", a, a),
      block("Sentence B → Sentence B", b, b),
      block("Sentence A → Sentence B", a, b),
      block("Sentence B → Sentence A", b, a),
    ];
  }

  /* Squares switch heads; tokens, when focused, show their lines. */
  function nameLines(svg) {
    const squares = svg.querySelectorAll(":scope > g:last-of-type > rect");
    function state() {
      squares.forEach(function (square, head) {
        const on = d3.color(square.getAttribute("fill")) + "";
        const full = d3.color(COLOURS[head % COLOURS.length]) + "";
        square.setAttribute("aria-checked", String(on === full));
      });
    }
    squares.forEach(function (square, head) {
      square.setAttribute("role", "checkbox");
      square.setAttribute("aria-label", "Head " + head);
      square.addEventListener("click", () => setTimeout(state));
      square.addEventListener("dblclick", () => setTimeout(state));
      lmcourse.pressable(square, (event) =>
        press(square, event.shiftKey ? "dblclick" : "click")
      );
    });
    lmcourse.roving(squares, 1);
    state();
    ["left", "right"].forEach(function (side) {
      const group = svg.querySelector("#" + side);
      const tokens = Array.from(group.querySelectorAll("text"), (t) => t.parentElement);
      tokens.forEach(function (token) {
        token.setAttribute("role", "img");
        token.setAttribute(
          "aria-label",
          (side === "left" ? "from " : "to ") + token.querySelector("text").textContent
        );
        token.addEventListener("focus", () => press(token, "mouseover"));
        token.addEventListener("blur", () => press(group, "mouseleave"));
      });
      lmcourse.roving(tokens, 1);
    });
  }

  lmcourse.drawers.head_view = function (view) {
    const data = view.data;
    const choices = blocks(data);
    const selects = [["layer", "Layer", []]];
    if (choices.length > 1) {
      selects.push(["filter", "Attention", choices.map((choice) => choice.name)]);
    }
    const vis = frame(view.canvas, selects);
    run("head_view", {
      attention: choices,
      default_filter: "0",
      root_div_id: view.canvas.id,
      layer: data.layer,
      heads: data.heads,
      include_layers: data.attention.map((_, layer) => layer),
    });
    let named = null;
    lmcourse.keep(vis, function () {
      const svg = vis.querySelector("svg");
      if (svg !== named) nameLines(svg);
      named = svg;
    });
  };

  function nameThumbnails(view, vis) {
    const data = view.data;
    const columns = data.heads.length;
    const cells = Array.from(
      vis.querySelectorAll("g > rect.attn_background"),
      (background) => background.parentElement.lastElementChild
    );
    cells.forEach(function (cell, index) {
      const layer = data.layers[Math.floor(index / columns)];
      const head = data.heads[index % columns];
      cell.classList.add("lmc-thumbnail");
      cell.setAttribute("role", "button");
      cell.setAttribute("aria-label", "Layer " + layer + ", head " + head);
      cell.addEventListener("click", () => (view.open = view.open === index ? null : index));
      lmcourse.pressable(cell, () => press(cell, "click"));
    });
    lmcourse.roving(cells, columns);
    return cells;
  }

  lmcourse.drawers.model_view = function (view) {
    const data = view.data;
    const tokens = data.tokens.map(pretty);
    const whole = { name: null, attn: data.attention, left_text: tokens, right_text: tokens };

    function draw() {
      const vis = frame(view.canvas, []);
      run("model_view", {
        attention: [whole],
        default_filter: "0",
        display_mode: lmcourse.isDark() ? "dark" : "light",
        root_div_id: view.canvas.id,
        include_layers: data.layers,
        include_heads: data.heads,
        total_heads: data.heads.length,
      });
      const svg = vis.querySelector("svg"); // as wide as the page, not as it was drawn
      svg.setAttribute("viewBox", [0, 0, svg.width.baseVal.value, svg.height.baseVal.value].join(" "));
      const cells = nameThumbnails(view, vis);
      const open = view.open;
      view.open = null;
      if (open != null) press(cells[open], "click");
    }
    draw();
    return { theme: draw };
  };
})();
