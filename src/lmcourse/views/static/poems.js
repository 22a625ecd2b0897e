/* Poems between the editors' shelves and a model's, and words struck out of them. All
   controls are the browser's own, so keys and screen readers know them; the two drawings
   say nothing that the tables and sentences beside them do not. */
(function () {
  "use strict";
  const lmcourse = (window.lmcourse = window.lmcourse || {});
  lmcourse.drawers = lmcourse.drawers || {};
  const SVG = "http://www.w3.org/2000/svg";
  const SHAPES = [
    "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0",
    "M0,-6.5L6.5,0L0,6.5L-6.5,0Z",
    "M-4.5,-4.5H4.5V4.5H-4.5Z",
    "M0,-6L6,5H-6Z",
  ];
  let views = 0;

  function make(name, attributes, ...children) {
    const own = ["svg", "g", "path", "line", "text", "title", "polygon", "polyline"];
    const element = own.includes(name)
      ? document.createElementNS(SVG, name)
      : document.createElement(name);
    Object.entries(attributes || {}).forEach(function ([key, value]) {
      if (typeof value === "function") element.addEventListener(key, value);
      else if (value !== undefined) element.setAttribute(key, value);
    });
    element.append(...children);
    return element;
  }

  /* The arrow keys go from button to button, in a grid so many columns wide. */
  function arrows(buttons, columns) {
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
    buttons.forEach((button, index) =>
      button.addEventListener("keydown", function (event) {
        const next = buttons[index + by[event.key]];
        if (!next) return;
        event.preventDefault();
        next.focus();
        next.click();
      })
    );
  }

  const firstLine = (text) => text.split("\n")[0];
  const most = (row) => row.indexOf(Math.max(...row));
  /* With a real minus, and no sign before nothing. */
  const told = (value, digits) =>
    (value <= -0.5 / 10 ** digits ? "−" : "") + Math.abs(value).toFixed(digits);
  const two = (value) => told(value, 2);
  const share = (value) => told(value / 100, 1);

  /* --- the explorer ----------------------------------------------------------------- */

  lmcourse.drawers.poems = function ({ canvas, data }) {
    const { texts, places, shelves, names, levels, support, planes, near } = data;
    const top = levels.length - 1;
    const state = { level: top, poem: data.first, cell: null };
    const id = "lmp-" + ++views;
    const model = (poem, level) => most(support[level][poem]);
    const cellOf = (poem) => [shelves[poem], model(poem, state.level)];
    const lead = function (poem) {
      const row = support[state.level][poem];
      const own = shelves[poem];
      const rest = row.filter((_, shelf) => shelf !== own);
      return model(poem, state.level) === own
        ? row[own] - Math.max(...rest)
        : Math.max(...row) - row[own];
    };
    const levelName = (level) =>
      level === 0 ? "static (words alone)" : "layer " + levels[level];

    /* The level. */
    const slider = make("input", {
      type: "range", min: 0, max: top, step: 1, value: top, id: id + "-level",
      input: () => show({ level: Number(slider.value) }),
    });
    const said = make("output", { for: id + "-level" });
    const bar = make("p", { class: "lmp-bar" },
      make("label", { for: id + "-level" }, "Level"), slider, said);

    /* The plane. */
    const plane = make("svg", { viewBox: "-112 -112 224 224", role: "img" });
    const points = texts.map(function (text, poem) {
      const point = make("path", {
        d: SHAPES[shelves[poem] % 4], class: "lmp-point lmp-" + (shelves[poem] % 4),
        click: () => show({ poem, cell: null }),
      }, make("title", {}, firstLine(text) + " (" + places[poem] + ")"));
      plane.append(point);
      return point;
    });
    const legend = make("p", { class: "lmp-legend", "aria-hidden": "true" },
      ...names.map((name, shelf) =>
        make("span", {},
          make("svg", { viewBox: "-7 -7 14 14" },
            make("path", { d: SHAPES[shelf % 4], class: "lmp-" + (shelf % 4) })),
          name)));

    /* The shelves against each other. */
    const buttons = names.map((own, row) =>
      names.map((other, column) =>
        make("button", {
          type: "button", class: row === column ? "lmp-own" : "",
          click: () => show({ cell: [row, column], poem: members(row, column)[0] }),
        })));
    const grid = make("table", { class: "lmp-grid" },
      make("caption", {},
        "Rows: the editors’ shelf. Columns: where the model would put the poem, " +
          "judging by all the others. Press a number to see its poems."),
      make("thead", {}, make("tr", {}, make("td"),
        ...names.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...names.map((name, row) =>
        make("tr", {}, make("th", { scope: "row" }, name),
          ...buttons[row].map((button) => make("td", {}, button))))));
    arrows(buttons.flat(), names.length);

    /* One poem. */
    const select = make("select", {
      id: id + "-poem", change: () => show({ poem: Number(select.value) }),
    });
    const turn = (by) => function () {
      const list = [...select.options].map((option) => Number(option.value));
      const at = (list.indexOf(state.poem) + by + list.length) % list.length;
      show({ poem: list[at] });
    };
    const step = (by, label, sign) =>
      make("button", { type: "button", "aria-label": label, click: turn(by) }, sign);
    const chosen = make("label", { for: id + "-poem" });
    const choice = make("p", { class: "lmp-bar" }, step(-1, "previous poem", "‹"),
      select, step(1, "next poem", "›"));
    const verdict = make("p", { class: "lmp-verdict", "aria-live": "polite" });
    const text = make("blockquote", { class: "lmp-text" });
    const where = make("p", { class: "lmp-where" });
    const climb = make("tbody");
    const path = make("table", { class: "lmp-path" },
      make("caption", {},
        "What speaks for each shelf, level by level, the last on top: 1 is no more than " +
          "the shelf’s share of the other poems. The greatest is the model’s shelf; the " +
          "editors’ column is marked."),
      make("thead", {}), climb);
    const others = make("ul", { class: "lmp-near" });
    const nearTitle = make("p", { class: "lmp-where" });
    canvas.append(bar,
      make("div", { class: "lmp-two" },
        make("div", {}, plane, legend), make("div", {}, grid)),
      make("p", { class: "lmp-where" }, chosen), choice,
      make("div", { class: "lmp-two" },
        make("div", {}, verdict, text, where),
        make("div", {}, path, nearTitle, others)));

    function members(row, column) {
      const found = texts.map((_, poem) => poem).filter(
        (poem) => shelves[poem] === row && model(poem, state.level) === column);
      return found.sort((a, b) => lead(b) - lead(a));
    }

    function drawPlane() {
      const [row, column] = state.cell;
      points.forEach(function (point, poem) {
        const [x, y] = planes[state.level][poem];
        const inside = shelves[poem] === row && model(poem, state.level) === column;
        point.style.transform = "translate(" + x / 10 + "px," + -y / 10 + "px)";
        point.classList.toggle("lmp-faint", !inside);
        point.classList.toggle("lmp-chosen", poem === state.poem);
      });
      plane.append(points[state.poem]);
      plane.setAttribute("aria-label",
        "The poems at " + levelName(state.level) + "; the cell’s poems stand out.");
    }

    function drawGrid() {
      names.forEach(function (own, row) {
        const total = shelves.filter((shelf) => shelf === row).length;
        names.forEach(function (other, column) {
          const count = members(row, column).length;
          const button = buttons[row][column];
          const here = state.cell[0] === row && state.cell[1] === column;
          button.textContent = count;
          button.disabled = count === 0;
          button.style.setProperty("--share", count / total);
          button.setAttribute("aria-pressed", String(here));
          button.setAttribute("aria-label",
            count + " poems: editors " + own + ", model " + other);
        });
      });
    }

    function drawPoem() {
      const { poem, level } = state;
      const own = shelves[poem];
      const list = members(...state.cell);
      select.replaceChildren(...list.map((index) =>
        make("option", { value: index }, firstLine(texts[index]))));
      select.value = String(poem);
      chosen.textContent = list.length + " poem" + (list.length > 1 ? "s" : "") +
        " that the editors put under " + names[own] + " and the model under " +
        names[state.cell[1]] + ", the most decided first:";
      const row = support[level][poem];
      const shelf = most(row);
      verdict.textContent = shelf === own
        ? "The editors and the model agree: " + names[own] + "."
        : "The editors: " + names[own] + " (" + share(row[own]) + "). The model: " +
          names[shelf] + " (" + share(row[shelf]) + ").";
      text.textContent = texts[poem];
      where.textContent = places[poem];
      path.tHead.replaceChildren(make("tr", {}, make("td"), ...names.map((name, index) =>
        make("th", { scope: "col", class: index === own ? "lmp-mark" : "" },
          name + (index === own ? " ✎" : "")))));
      climb.replaceChildren(...levels.map((name, index) => pathRow(index)).reverse());
      nearTitle.textContent = "Nearest at " + levelName(level) + ":";
      others.replaceChildren(...near[level][poem].map((other) =>
        make("li", {}, make("button", {
          type: "button", click: () => show({ poem: other, cell: null }),
        }, firstLine(texts[other])), " " + names[shelves[other]])));
    }

    function pathRow(level) {
      const row = support[level][state.poem];
      const shelf = most(row);
      return make("tr", { class: level === state.level ? "lmp-here" : "" },
        make("th", { scope: "row" }, levels[level]),
        ...row.map(function (value, index) {
          const cell = make("td", {}, share(value));
          cell.style.setProperty("--share", Math.min(1, Math.max(0, value / 350)));
          if (index === shelf) cell.classList.add("lmp-most");
          if (index === shelves[state.poem]) cell.classList.add("lmp-mark");
          return cell;
        }));
    }

    function show(change) {
      Object.assign(state, change);
      if (!state.cell || change.level !== undefined) state.cell = cellOf(state.poem);
      said.textContent = levelName(state.level);
      slider.setAttribute("aria-valuetext", levelName(state.level));
      drawPlane();
      drawGrid();
      drawPoem();
    }
    show({});
  };

  /* --- words struck out ------------------------------------------------------------- */

  lmcourse.drawers.strike_out = function ({ canvas, data }) {
    const { levels, themes } = data;
    const id = "lmp-" + ++views;
    const state = { theme: 0, level: levels.length - 1 };

    const select = make("select", {
      id: id + "-theme", change: () => show({ theme: Number(select.value) }),
    }, ...themes.map((theme, index) =>
      make("option", { value: index }, theme.name + " (" + theme.poems + " poems)")));
    const owner = {};
    themes.forEach((theme, index) =>
      theme.words.forEach(([word]) => (owner[word] = owner[word] ?? index)));
    const options = make("datalist", { id: id + "-words" },
      ...Object.keys(owner).sort().map((word) => make("option", { value: word })));
    const word = make("input", {
      id: id + "-word", list: id + "-words", size: 12, autocomplete: "off",
      input: function () {
        const found = owner[word.value.trim().toLowerCase()];
        if (found !== undefined) show({ theme: found });
      },
    });
    const bar = make("p", { class: "lmp-bar lmp-wrap" },
      make("label", { for: id + "-theme" }, "Theme"), select,
      make("label", { for: id + "-word" }, "or a word"), word, options);
    const struck = make("p", { class: "lmp-struck" });
    const chart = make("svg", { role: "img" });
    const key = make("p", { class: "lmp-legend", "aria-hidden": "true" });
    [["lmp-said", "as printed"], ["lmp-out", "words struck out"], ["lmp-bag", "bag of words"]]
      .forEach(([name, label]) => key.append(make("span", {},
        make("svg", { viewBox: "0 -7 26 14", class: "lmp-long" },
          make("line", { x1: 0, x2: 26, class: name })), label)));
    const slider = make("input", {
      type: "range", min: 0, max: state.level, step: 1, value: state.level,
      id: id + "-level", input: () => show({ level: Number(slider.value) }),
    });
    const verdict = make("p", { class: "lmp-verdict", "aria-live": "polite" });
    canvas.append(bar, struck, chart, key, make("p", { class: "lmp-bar" },
      make("label", { for: id + "-level" }, "Read off at level"), slider), verdict);

    const name = (level) => (level === 0 ? "static" : levels[level]);

    function draw() {
      const theme = themes[state.theme];
      const width = Math.max(260, canvas.clientWidth);
      const height = Math.min(300, Math.max(220, width * 0.5));
      const left = 34, right = 8, top = 10, bottom = 40;
      const x = (level) =>
        left + ((level + 0.5) * (width - left - right)) / levels.length;
      const y = (value) => top + ((1 - value) * (height - top - bottom)) / 0.65;
      chart.setAttribute("viewBox", "0 0 " + width + " " + height);
      chart.style.height = height + "px";
      chart.replaceChildren();
      const line = (x1, y1, x2, y2, style) =>
        chart.append(make("line", { x1, y1, x2, y2, class: style }));
      const label = (at, down, text, anchor) =>
        chart.append(make("text", { x: at, y: down, "text-anchor": anchor }, text));
      [0.4, 0.6, 0.8, 1].forEach(function (value) {
        line(left, y(value), width - right, y(value), "lmp-rule");
        label(left - 5, y(value) + 4, value.toFixed(1), "end");
      });
      line(left, y(0.5), width - right, y(0.5), "lmp-blind");
      label(left + 2, y(0.5) - 4, "blind", "start");
      const band = (width - left - right) / levels.length;
      chart.prepend(make("polygon", {
        class: "lmp-now",
        points: [[-1, top], [1, top], [1, height - bottom], [-1, height - bottom]]
          .map(([s, h]) => x(state.level) + (s * band) / 2 + "," + h).join(" "),
      }));
      levels.forEach((_, level) => label(x(level), height - 22, name(level), "middle"));
      label((left + width) / 2, height - 4, "level", "middle");
      theme.bag.forEach((value) =>
        line(left, y(value), width - right, y(value), "lmp-bag"));
      [["said", -3], ["struck", 3]].forEach(function ([kind, aside]) {
        const style = kind === "said" ? "lmp-said" : "lmp-out";
        const at = theme[kind].map(([value], level) => [x(level) + aside, y(value)]);
        chart.append(make("polyline", { points: at.join(" "), class: style }));
        theme[kind].forEach(function ([, low, high], level) {
          line(at[level][0], y(low), at[level][0], y(high), style);
          chart.append(make("path", {
            d: SHAPES[kind === "said" ? 0 : 2], class: style + " lmp-dot",
            transform: "translate(" + at[level] + ") scale(0.8)",
          }));
        });
      });
    }

    function show(change) {
      Object.assign(state, change);
      const theme = themes[state.theme];
      const [said] = theme.said[state.level];
      const [left, low, high] = theme.struck[state.level];
      const [lost, least, greatest] = theme.lost[state.level];
      select.value = String(state.theme);
      slider.setAttribute("aria-valuetext", "level " + name(state.level));
      struck.replaceChildren("Struck out: ", ...theme.words.flatMap(([word, count]) =>
        [make("s", {}, word), make("small", {}, " " + count + "  ")]));
      const change_ = least > 0
        ? "the words carried " + two(lost) + " (" + two(least) + " to " + two(greatest) + ")"
        : "a difference of " + two(lost) + " (" + two(least) + " to " + two(greatest) +
          ") that may be chance";
      const rest = low > 0.5
        ? "What is left still speaks of it: " + two(left) + " (" + two(low) + " to " +
          two(high) + ")."
        : "Whether anything is left these poems cannot show: " + two(left) + " (" +
          two(low) + " to " + two(high) + ").";
      verdict.textContent = theme.name + ", level " + name(state.level) + ": " +
        two(said) + " as printed; " + change_ + ". " + rest;
      chart.setAttribute("aria-label",
        "Scores of the theme " + theme.name + " by level; the sentence below reads them off.");
      draw();
    }
    show({});
    new ResizeObserver(draw).observe(canvas);
  };
})();
