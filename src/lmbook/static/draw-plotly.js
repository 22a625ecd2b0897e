/* plotly: figures in the page's colours, as wide as the page, usable by keyboard. */
(function () {
  "use strict";
  if (lmcourse.drawers.plot) return; // loaded with each of the two bundles
  // lmcourse.views.PALETTE
  const COLOURS = [
    "#0072B2", "#D55E00", "#0EA266", "#C37AAB", "#96562C", "#3067DC", "#696969",
  ];
  const NARROW = 520;
  const HEIGHT = 450;

  function colour(element, name, fallback) {
    return getComputedStyle(element).getPropertyValue(name).trim() || fallback;
  }

  function template(root) {
    const ink = colour(root, "--pst-color-text-base", lmcourse.isDark() ? "#ddd" : "#222");
    const line = colour(root, "--pst-color-border", lmcourse.isDark() ? "#444" : "#ccc");
    const paper = colour(root, "--pst-color-background", lmcourse.isDark() ? "#111" : "#fff");
    const faint = colour(root, "--pst-color-text-muted", ink);
    const axis = { automargin: true, gridcolor: line, linecolor: line, zerolinecolor: line };
    const scene = { ...axis, backgroundcolor: "rgba(0,0,0,0)", color: ink };
    const button = { bgcolor: paper, bordercolor: line, font: { color: ink } };
    return {
      layout: {
        colorway: COLOURS,
        font: { color: ink, family: colour(root, "--lm-sans", "system-ui, sans-serif") },
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        margin: { t: 30, r: 10, l: 50, b: 50 },
        xaxis: { ...axis, zeroline: false },
        yaxis: { ...axis, zeroline: false },
        scene: { xaxis: scene, yaxis: scene, zaxis: scene },
        hoverlabel: { bgcolor: paper, bordercolor: ink, font: { color: ink } },
        modebar: { bgcolor: "rgba(0,0,0,0)", color: faint, activecolor: ink },
        sliderdefaults: {
          bgcolor: line,
          bordercolor: faint,
          activebgcolor: ink,
          tickcolor: faint,
          font: { color: ink },
          pad: { t: 45 }, // below the axis and its title
        },
        updatemenudefaults: button,
        annotationdefaults: { font: { color: ink }, arrowcolor: ink },
        shapedefaults: { line: { color: ink } },
      },
    };
  }

  /* A legend beside the plot leaves a narrow screen no room for the plot. */
  function fitted(layout, width) {
    const fit = { ...layout, autosize: true };
    delete fit.width;
    if (width < NARROW) {
      fit.legend = { ...fit.legend, orientation: "h", x: 0, y: -0.25, yanchor: "top" };
    }
    return fit;
  }

  /* Text that views.plain made plain, as it is shown. */
  function words(text) {
    return new DOMParser().parseFromString(text, "text/html").body.textContent;
  }

  function sliderKeys(plot, group, number) {
    const slider = () => plot._fullLayout.sliders[number];
    function say() {
      const step = slider().steps[slider().active];
      group.setAttribute("aria-valuemax", slider().steps.length - 1);
      group.setAttribute("aria-valuenow", slider().active);
      group.setAttribute("aria-valuetext", step ? words(step.label) : "");
    }
    group.setAttribute("role", "slider");
    group.setAttribute("tabindex", "0");
    group.setAttribute("aria-valuemin", "0");
    group.setAttribute("aria-label", slider().currentvalue.prefix || "Slider");
    say();
    if (group.lmcourseKeys) return;
    group.lmcourseKeys = true;
    group.addEventListener("keydown", async function (event) {
      const last = slider().steps.length - 1;
      const now = slider().active;
      const targets = {
        ArrowRight: now + 1, ArrowUp: now + 1, ArrowLeft: now - 1, ArrowDown: now - 1,
        Home: 0, End: last,
      };
      const target = targets[event.key];
      if (target === undefined) return;
      event.preventDefault();
      const active = Math.min(Math.max(target, 0), last);
      const step = slider().steps[active];
      await Plotly.relayout(plot, { ["sliders[" + number + "].active"]: active });
      if (step.method !== "skip") await Plotly[step.method](plot, ...step.args);
      plot.querySelectorAll("g.slider-group")[number].focus();
    });
  }

  function buttonKeys(group, text) {
    group.setAttribute("role", "button");
    group.setAttribute("tabindex", "0");
    group.setAttribute("aria-label", text);
    lmcourse.pressable(group, () =>
      group.dispatchEvent(new MouseEvent("click", { bubbles: true }))
    );
  }

  function legendKeys(plot, entry) {
    const toggle = entry.querySelector(".legendtoggle");
    const trace = entry.__data__ && entry.__data__[0] && entry.__data__[0].trace;
    if (!toggle || !trace) return;
    toggle.setAttribute("role", "checkbox");
    toggle.setAttribute("tabindex", "0");
    toggle.setAttribute("aria-checked", String(trace.visible === true));
    toggle.setAttribute("aria-label", "Show " + words(trace.name || "trace"));
    lmcourse.pressable(toggle, async function () {
      const shown = plot._fullData[trace.index].visible === true;
      await Plotly.restyle(plot, { visible: shown ? "legendonly" : true }, [trace.index]);
      const again = plot.querySelectorAll(".legend .traces");
      Array.from(again)
        .filter((e) => e.__data__[0].trace.index === trace.index)
        .forEach((e) => e.querySelector(".legendtoggle").focus());
    });
  }

  function nameParts(plot) {
    plot.querySelectorAll("g.slider-group").forEach((g, i) => sliderKeys(plot, g, i));
    plot.querySelectorAll("g.updatemenu-button, g.updatemenu-header").forEach((group) =>
      buttonKeys(group, group.textContent.trim())
    );
    plot.querySelectorAll(".legend .traces").forEach((entry) => legendKeys(plot, entry));
  }

  lmcourse.drawers.plot = async function (view) {
    const figure = view.data.figure;
    const plot = view.canvas;
    const layout = fitted(figure.layout, plot.clientWidth);
    layout.template = template(view.root);
    plot.style.height = (layout.height || HEIGHT) + "px";
    await Plotly.newPlot(plot, {
      data: figure.data,
      layout: layout,
      frames: figure.frames || [],
      config: { responsive: true, displaylogo: false, scrollZoom: false },
    });
    lmcourse.keep(plot, () => nameParts(plot));
    return {
      theme: () => Plotly.relayout(plot, { template: template(view.root) }),
    };
  };
})();
