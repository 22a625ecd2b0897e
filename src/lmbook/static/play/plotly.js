/* plotly: figures in the page's colours, as wide as the page, usable by keyboard. */
import { arrow } from "./dom.js";
import { keep, name, pressable } from "./keys.js";
import { COLOURS } from "./palette.js";

const NARROW = 520;
const HEIGHT = 450;

function template(root) {
  const style = getComputedStyle(root);
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

/* A legend beside the plot leaves a narrow screen no room for the plot. */
function fitted({ width, ...layout }, available) {
  const fit = { ...layout, autosize: true };
  if (available < NARROW)
    fit.legend = { ...fit.legend, orientation: "h", x: 0, y: -0.25, yanchor: "top" };
  return fit;
}

/* Text that Python escaped, as it is shown. */
const words = (text) => new DOMParser().parseFromString(text, "text/html").body.textContent;

function sliderKeys(plot, group, number) {
  const slider = () => plot._fullLayout.sliders[number];
  const { steps, active, currentvalue } = slider();
  const last = steps.length - 1;
  const states = { "aria-valuemin": 0, "aria-valuemax": last, "aria-valuenow": active };
  name(group, "slider", currentvalue.prefix || "Slider", {
    ...states,
    "aria-valuetext": words(steps[active]?.label ?? ""),
  });
  group.onkeydown = async (event) => {
    const [right, down] = arrow(event) || [];
    const target = { Home: 0, End: last }[event.key] ?? slider().active + right - down;
    if (Number.isNaN(target)) return;
    event.preventDefault();
    const chosen = Math.min(Math.max(target, 0), last);
    const { method, args } = slider().steps[chosen];
    await Plotly.relayout(plot, { [`sliders[${number}].active`]: chosen });
    if (method !== "skip") await Plotly[method](plot, ...args);
    plot.querySelectorAll("g.slider-group")[number].focus();
  };
}

function legendKeys(plot, entry) {
  const toggle = entry.querySelector(".legendtoggle");
  const trace = entry.__data__?.[0]?.trace;
  if (!toggle || !trace) return;
  name(toggle, "checkbox", `Show ${words(trace.name || "trace")}`, {
    "aria-checked": trace.visible === true,
  });
  pressable(toggle, async () => {
    const isShown = plot._fullData[trace.index].visible === true;
    await Plotly.restyle(plot, { visible: isShown ? "legendonly" : true }, [trace.index]);
    Array.from(plot.querySelectorAll(".legend .traces"))
      .find((again) => again.__data__[0].trace.index === trace.index)
      .querySelector(".legendtoggle")
      .focus();
  });
}

function nameParts(plot) {
  plot.querySelectorAll("g.slider-group").forEach((group, i) => sliderKeys(plot, group, i));
  plot.querySelectorAll("g.updatemenu-button, g.updatemenu-header").forEach((group) => {
    name(group, "button", group.textContent.trim());
    pressable(group, () => group.dispatchEvent(new MouseEvent("click", { bubbles: true })));
  });
  plot.querySelectorAll(".legend .traces").forEach((entry) => legendKeys(plot, entry));
}

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
  keep(canvas, () => nameParts(canvas));
  return { theme: () => Plotly.relayout(canvas, { template: template(root) }) };
}
