/* plotly: figures in the page's colours, as wide as the page, usable by keyboard. */
import { arrow, stateOf } from "./dom.js";
import { name, nowAndAfterChanges, pressable } from "./keys.js";
import { COLOURS } from "./palette.js";

const NARROW = 520; // pixels: a narrower plot has its legend below it
const HEIGHT = 450; // of a plot whose figure has none, in pixels

/**
 * A figure, as plotly's Python writes it.
 *
 * @typedef {object} Figure
 * @property {object[]} data
 * @property {Layout} layout
 * @property {object[]} [frames]
 */

/** @typedef {{ width?: number, height?: number, legend?: object, template?: object }} Layout */

/**
 * A plot: plotly keeps in its element what it made of a figure.
 *
 * @typedef {HTMLElement & {
 *   _fullLayout: { sliders: Slider[] }, _fullData: { visible: unknown }[]
 * }} Plot
 */

/**
 * A slider of a plot: its steps, each with what plotly is to do there; the position of the step
 * that it is at; the label of its value.
 *
 * @typedef {object} Slider
 * @property {{ label?: string, method: string, args: unknown[] }[]} steps
 * @property {number} active
 * @property {{ prefix?: string }} currentvalue
 */

/**
 * An entry of a legend; d3 keeps its trace in the element.
 *
 * @typedef {{ index: number, name?: string, visible: unknown }} Trace
 * @typedef {Element & { __data__?: { trace: Trace }[] }} Entry
 */

/**
 * Make a template of plotly's, with the fonts and the colours that the page has now.
 *
 * @param {HTMLElement} root the whole view
 */
function template(root) {
  const style = getComputedStyle(root);
  /**
   * A colour of the theme.
   *
   * @param {string} name
   */
  const colour = (name) => style.getPropertyValue(`--pst-color-${name}`);
  const [ink, line] = [colour("text-base"), colour("border")];
  const [paper, faint] = [colour("background"), colour("text-muted")];
  const axis = { automargin: true, gridcolor: line, linecolor: line, zerolinecolor: line };
  const scene = { ...axis, backgroundcolor: "rgba(0,0,0,0)", color: ink };
  const font = { color: ink };
  return {
    layout: {
      colorway: COLOURS.slice(0, 7),
      font: { color: ink, family: style.getPropertyValue("--lm-sans") },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { t: 30, r: 10, l: 50, b: 50 },
      xaxis: { ...axis, zeroline: false },
      yaxis: { ...axis, zeroline: false },
      scene: { xaxis: scene, yaxis: scene, zaxis: scene },
      hoverlabel: { bgcolor: paper, bordercolor: ink, font },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: faint, activecolor: ink },
      sliderdefaults: {
        bgcolor: line,
        bordercolor: faint,
        activebgcolor: ink,
        tickcolor: faint,
        font,
        pad: { t: 45 }, // below the axis and its title
      },
      updatemenudefaults: { bgcolor: paper, bordercolor: line, font },
      annotationdefaults: { font, arrowcolor: ink },
      shapedefaults: { line: { color: ink } },
    },
  };
}

/**
 * A layout that is as wide as its element. On a narrow screen the legend is below the plot, since
 * beside it it would leave no room for the plot.
 *
 * @param {Layout} layout its width is left out
 * @param {number} available width, in pixels
 * @returns {Layout}
 */
function fitted({ width, ...layout }, available) {
  /** @type {Layout & { autosize: boolean }} */
  const fit = { ...layout, autosize: true };
  if (available < NARROW)
    fit.legend = { ...fit.legend, orientation: "h", x: 0, y: -0.25, yanchor: "top" };
  return fit;
}

/**
 * Text that Python escaped, as it is shown.
 *
 * @type {(text: string) => string}
 */
const words = (text) => new DOMParser().parseFromString(text, "text/html").body.textContent;

/**
 * Give a slider of a plot a role, a name and keys: arrows go by a step, Home and End to the
 * first and the last. Plotly draws a slider anew whenever it moves, and this is called again.
 *
 * @param {Plot} plot
 * @param {HTMLElement} group what plotly drew of the slider
 * @param {number} number which of the plot's sliders it is
 */
function sliderKeys(plot, group, number) {
  /* The slider as it is now. */
  const slider = () => plot._fullLayout.sliders[number];
  const { steps, active, currentvalue } = slider();
  const last = steps.length - 1;
  const states = { "aria-valuemin": 0, "aria-valuemax": last, "aria-valuenow": active };
  name(group, "slider", currentvalue.prefix || "Slider", {
    ...states,
    "aria-valuetext": words(steps[active]?.label ?? ""),
  });

  /**
   * The step that a key leads to, perhaps before the first or behind the last; undefined for
   * another key.
   *
   * @param {KeyboardEvent} event
   */
  function targetOf(event) {
    if (event.key === "Home") return 0;
    if (event.key === "End") return last;
    const step = arrow(event);
    return step && slider().active + step[0] - step[1];
  }

  group.onkeydown = async (event) => {
    const target = targetOf(event);
    if (target === undefined) return;
    event.preventDefault();
    const chosen = Math.min(Math.max(target, 0), last);
    await goTo(plot, number, chosen);
    // What was drawn before may be gone, and the focus with it.
    /** @type {NodeListOf<SVGElement>} */
    const groups = plot.querySelectorAll("g.slider-group");
    groups[number].focus();
  };
}

/**
 * Make an entry of a legend a checkbox that shows and hides its trace. Plotly draws the legend
 * anew after that, so the focus goes to the new entry.
 *
 * @param {Plot} plot
 * @param {Entry} entry
 */
function legendKeys(plot, entry) {
  /** @type {SVGElement | null} */
  const toggle = entry.querySelector(".legendtoggle");
  const trace = entry.__data__?.[0]?.trace;
  if (!toggle || !trace) return;
  name(toggle, "checkbox", `Show ${words(trace.name || "trace")}`, {
    "aria-checked": trace.visible === true,
  });
  pressable(toggle, async () => {
    const isShown = plot._fullData[trace.index].visible === true;
    await Plotly.restyle(plot, { visible: isShown ? "legendonly" : true }, [trace.index]);
    /** @type {Entry[]} */
    const entries = Array.from(plot.querySelectorAll(".legend .traces"));
    const redrawn = entries.find((each) => each.__data__?.[0].trace.index === trace.index);
    /** @type {SVGElement | null | undefined} */
    const next = redrawn?.querySelector(".legendtoggle");
    next?.focus();
  });
}

/**
 * Give what can be pressed in a plot roles, names and keys.
 *
 * @param {Plot} plot
 */
function nameParts(plot) {
  /** @type {NodeListOf<HTMLElement>} */
  const sliders = plot.querySelectorAll("g.slider-group");
  sliders.forEach((group, i) => sliderKeys(plot, group, i));
  /** @type {NodeListOf<SVGElement>} */
  const menus = plot.querySelectorAll("g.updatemenu-button, g.updatemenu-header");
  menus.forEach((group) => {
    name(group, "button", group.textContent.trim());
    pressable(group, () => group.dispatchEvent(new MouseEvent("click", { bubbles: true })));
  });
  plot.querySelectorAll(".legend .traces").forEach((entry) => legendKeys(plot, entry));
}

/**
 * The plot's sliders as fields of links, "slider0", "slider1" …: each is the step that it is at.
 *
 * @param {Plot} plot
 */
function sliderFields(plot) {
  const sliders = plot._fullLayout.sliders ?? [];
  return Object.fromEntries(
    sliders.map(({ steps, active }, number) => {
      let at = active;
      /** @type {any} */ (plot).on("plotly_sliderchange", (/** @type {any} */ change) => {
        if (change.slider._index === number) at = change.slider.active;
      });
      /* Put the slider at a step, by its position; one that it does not have changes nothing. */
      const set = (/** @type {number} */ step) => {
        if (!(step in steps)) return;
        at = step;
        goTo(plot, number, step);
      };
      return [`slider${number}`, { get: () => at, set }];
    }),
  );
}

/**
 * Put a slider at a step, and do what the step does.
 *
 * @param {Plot} plot
 * @param {number} number of the slider
 * @param {number} step
 */
async function goTo(plot, number, step) {
  const { method, args } = plot._fullLayout.sliders[number].steps[step];
  await Plotly.relayout(plot, { [`sliders[${number}].active`]: step });
  if (method !== "skip") await Plotly[method](plot, ...args);
}

/**
 * Draw a figure.
 *
 * @param {HTMLElement} canvas empty; it becomes the plot
 * @param {{ figure: Figure }} data
 * @param {ViewContext} context
 * @returns its state, for links: see `stateOf` in dom.js; and `theme`, which is called when the
 *   page's colours change
 */
export async function plot(canvas, { figure }, { root }) {
  const layout = fitted(figure.layout, canvas.clientWidth);
  layout.template = template(root);
  canvas.style.height = `${layout.height || HEIGHT}px`;
  await Plotly.newPlot(canvas, {
    data: figure.data,
    layout,
    frames: figure.frames || [],
    config: { responsive: true, displaylogo: false, scrollZoom: false },
  });
  nowAndAfterChanges(canvas, () => nameParts(/** @type {Plot} */ (canvas)));
  return {
    theme: () => Plotly.relayout(canvas, { template: template(root) }),
    state: stateOf({ ...sliderFields(/** @type {Plot} */ (canvas)) }),
  };
}
