/* The view *own-text*: a small GPT learns a text of the reader's on their device, beside the
   best n-gram model of the same text. `own-text-worker.js` does the work; it ends when the
   training is stopped, and another one begins where it stood. */

import source from "worker:./own-text-worker.js";
import { button, controls, duration, fixed, make, plural, radios } from "./dom.js";
import { resultOf } from "./own-text-result.js";
import { charactersOf, decodeText, faultOf, MOST } from "./own-texts.js";
import { startWorker } from "./start-worker.js";
import { readText } from "./store.js";
import { chart } from "./training.js";

const SHOWN = 20_000; // characters that a box for typing holds without trouble
const BEGINNING = 400; // characters of a longer text that are shown
const LITTLE = 20_000; // characters, below which counting is hard to beat

/** @import { Counted, Report, Result, Settings, State } from "./own-text-worker.js" */
/** @import { Moment } from "./training.js" */

/**
 * A size of a model, and how it is trained.
 *
 * @typedef {Omit<Settings, "text" | "state" | "seed"> & { name: string }} Size
 */

/**
 * A training that was begun.
 *
 * @typedef {object} Run
 * @property {string[]} text its characters
 * @property {Size} size of the model
 * @property {number} steps at which it stops: more when the reader has it go on
 * @property {Counted | null} counted the n-gram model of the text, once it is there
 * @property {Moment[]} moments what was reported while it learned
 * @property {State | null} state where it stood when it stopped last
 * @property {boolean} ahead whether it was better than the n-grams at some time
 */

/**
 * Make the place where a text is typed, pasted, dropped or taken from a file. A long one does not
 * go into the box, which would be slow: its beginning is shown.
 *
 * @param {ViewContext} context
 * @param {() => void} changed is called when there is another text
 * @returns its `element`; in it `area`, the box, and `note`, a paragraph for what is said of the
 *   text; functions that return the `text`, and the `remark` on where it comes from
 */
function textBox(context, changed) {
  /** @type {string | null} a text that is too long for the box */
  let long = null;
  let fileRemark = ""; // of the file
  /** @type {HTMLTextAreaElement} */
  const area = make("textarea", {
    rows: 7,
    spellcheck: "false",
    dir: "auto",
    placeholder: "Paste letters, lyrics, a chapter, another language …",
    oninput: () => take(area.value),
    onpaste: paste,
    ondrop: drop,
  });
  const beginning = make("p", { class: "lmo-beginning", dir: "auto", hidden: "" });
  const note = make("p", { class: "play-note", role: "status" });
  /** @type {HTMLInputElement} */
  const input = make("input", {
    type: "file",
    hidden: "",
    "aria-label": "A text file",
    onchange: () => readFile(input.files?.[0]),
  });
  const another = button("another text", () => put(""), { hidden: "" });
  const sonnets = button("take the Sonnets", takeSonnets);
  const file = button("choose a file", () => input.click());

  /**
   * Show a new text: the box, or, if the text is too long for it, its beginning in place of the
   * box. This does not write into the box, as `put` does: the reader may have typed the text.
   *
   * @param {string} text
   * @param {string} [remark] what is said of where it comes from
   */
  function take(text, remark = "") {
    long = text.length > SHOWN ? text : null;
    fileRemark = remark;
    area.hidden = long !== null;
    beginning.hidden = !area.hidden;
    another.hidden = !area.hidden;
    beginning.textContent = long === null ? "" : `${long.slice(0, BEGINNING)} …`;
    changed();
  }

  /**
   * Put a text in the place of the one before; "" asks the reader for another one.
   *
   * @param {string} text
   * @param {string} [remark] what is said of where it comes from
   */
  function put(text, remark) {
    area.value = text.length > SHOWN ? "" : text;
    take(text, remark);
    if (!text) area.focus();
  }

  /**
   * Keep a long text that is pasted out of the box, which would be slow: join it with what
   * stands before and after the selection. The browser pastes a short one.
   *
   * @param {ClipboardEvent} event
   */
  function paste(event) {
    const pasted = event.clipboardData?.getData("text") ?? "";
    if (pasted.length <= SHOWN) return;
    event.preventDefault();
    const before = area.value.slice(0, area.selectionStart);
    const after = area.value.slice(area.selectionEnd);
    put(before + pasted + after);
  }

  /**
   * Read a file that is dropped; the browser takes anything else.
   *
   * @param {DragEvent} event
   */
  function drop(event) {
    const dropped = event.dataTransfer?.files[0];
    if (!dropped) return;
    event.preventDefault();
    readFile(dropped);
  }

  /**
   * Take a file's text; an error is shown.
   *
   * @param {File | undefined} chosen
   */
  async function readFile(chosen) {
    if (!chosen) return;
    try {
      // Four bytes are the most that a character has; four more, because the last may be cut.
      const bytes = new Uint8Array(await chosen.slice(0, 4 * MOST + 4).arrayBuffer());
      const whole = chosen.size > 4 * MOST ? bytes.subarray(0, lastWhole(bytes)) : bytes;
      const { text, note: guessed } = decodeText(whole);
      put(text, text.trim() ? guessed : "The file is empty: choose another one.");
    } catch (error) {
      note.textContent = `The file cannot be read: ${error.message}`;
    }
    input.value = ""; // so that the same one may be chosen again
  }

  /* Put the Sonnets, which the site carries, in the place of the text; an error is told. */
  async function takeSonnets() {
    sonnets.disabled = true;
    try {
      put(await readText("sonnets", context), "Shakespeare’s Sonnets. ");
    } catch (error) {
      note.textContent = `The Sonnets do not come: ${error.message}`;
    }
    sonnets.disabled = false;
  }

  return {
    note,
    area,
    text: () => long ?? area.value,
    remark: () => fileRemark,
    element: make(
      "div",
      {},
      make("label", { class: "lmo-text" }, "Your text", area),
      beginning,
      controls(file, input, sonnets, another),
      note,
    ),
  };
}

/**
 * Where a file that was cut off is to end so that no character is cut in two. In UTF-16, which
 * `decodeText` knows by the same first two bytes, each two bytes are one unit, and only a last
 * unit that is the first half of a character is left out. In UTF-8 the last character is left out,
 * be it cut or not.
 *
 * @param {Uint8Array} bytes an even number of them
 * @returns how many of the bytes are kept
 */
function lastWhole(bytes) {
  const [first, second] = bytes;
  const isLittle = first === 0xff && second === 0xfe;
  if (isLittle || (first === 0xfe && second === 0xff)) {
    const high = bytes[bytes.length - (isLittle ? 1 : 2)];
    return bytes.length - ((high & 0xfc) === 0xd8 ? 2 : 0);
  }
  let end = bytes.length;
  while (end > bytes.length - 4 && (bytes[end - 1] & 0xc0) === 0x80) end--;
  return end - 1;
}

/**
 * Mount the view *own-text*: a small GPT learns a text of the reader's in the page, and its loss
 * and what it writes are shown beside the best n-gram model.
 *
 * @param {HTMLElement} element empty
 * @param {{ sizes: Size[], seed: number }} data the sizes to choose from; the seed of a training
 * @param {ViewContext} context
 */
export function mount(element, data, context) {
  let chosen = 0; // position of the size
  /** @type {Worker | null} while something is learned */
  let worker = null;
  /** @type {Run | null} the last training */
  let run = null;
  const box = textBox(context, checkText);
  const sizes = radios(
    "A model of",
    data.sizes.map(({ name }) => name),
    chosen,
    (i) => {
      chosen = i;
    },
  );
  const learn = button("Learn it", begin, { disabled: "" });
  const stop = button("Stop", halt, { hidden: "" });
  const more = button("Go on", goOn, { hidden: "" });
  const status = make("p", { role: "status", class: "lmo-status" });
  const now = make("p", { class: "lmr-now" });
  const sample = make("pre", { class: "lmr-sample", dir: "auto" });
  const writes = make("div", {}, "It writes now:", sample);
  const drawing = make("div", {});
  const going = make("div", { class: "lmo-going", hidden: "" }, drawing, now, writes);
  const results = make("div", { class: "lmo-results" });
  /** @type {ReturnType<typeof chart>["drawCurve"]} */
  let drawCurve = () => {};

  /* Say what the text is, and whether it can be learned. */
  function checkText() {
    const text = box.text();
    const characters = charactersOf(text);
    const fault = faultOf(characters);
    learn.disabled = Boolean(fault) || worker !== null;
    box.note.textContent = fault && text ? fault : box.remark() + summaryOf(characters);
  }

  /**
   * A sentence on how many characters a text has, and how many different ones; "" for none.
   *
   * @param {string[]} characters of the text, those that are learned
   */
  function summaryOf(characters) {
    if (!characters.length) return "";
    const different = new Set(characters).size;
    const isCut = characters.length === MOST && box.text().length > MOST;
    const cut = isCut ? "Of a longer text the beginning is learned: " : "";
    const little = characters.length < LITTLE ? " That is little: counting is hard to beat." : "";
    return (
      `${cut}${plural(characters.length, "character")}, ` +
      `${plural(different, "different one")}.${little}`
    );
  }

  /* Learn the text from the beginning; what was shown of another training goes. */
  function begin() {
    const size = data.sizes[chosen];
    const text = charactersOf(box.text());
    const { steps } = size;
    run = { text, size, steps, counted: null, moments: [], state: null, ahead: false };
    results.replaceChildren();
    drawing.replaceChildren();
    now.textContent = "";
    sample.textContent = "";
    status.textContent = "It counts first, and begins by knowing nothing.";
    start(run);
  }

  /* Take as many steps again, or those that are left. */
  function goOn() {
    if (!run?.state) return;
    if (run.state.step >= run.steps) run.steps += run.size.steps;
    status.textContent = "It goes on where it was.";
    drawChart(run);
    start(run);
  }

  /**
   * Start a worker that trains, from where the training stood or else from the beginning.
   *
   * @param {Run} run
   */
  function start({ text, size, steps, state }) {
    const { name, ...settings } = size;
    worker = startWorker(source);
    worker.onmessage = ({ data }) => heard(data);
    worker.onerror = (event) => fail(event.message || "there is not enough memory");
    worker.postMessage({ start: { ...settings, text, steps, state, seed: data.seed } });
    learn.hidden = true;
    more.hidden = true;
    stop.hidden = false;
    stop.disabled = false;
    stop.focus();
  }

  /**
   * Show what the worker says: one of these, or a result with its state.
   *
   * @param {{
   *   counted?: Counted, report?: Report, reading?: true, result?: Result, state?: State,
   *   error?: string
   * }} message
   */
  function heard({ counted, report, reading, result, state, error }) {
    if (error) return fail(error);
    if (!run) return;
    if (counted && !run.counted) {
      run.counted = counted;
      drawChart(run);
    }
    if (report) tell(run, report);
    if (reading) {
      stop.disabled = true;
      status.textContent = "Both read the text that was held out …";
    }
    if (result && state) finish(run, result, state);
  }

  /**
   * Draw the curve of the loss anew, with as many steps as the training has; nothing before the
   * n-grams are counted.
   *
   * @param {Run} run
   */
  function drawChart({ counted, steps, moments }) {
    if (!counted) return;
    const { alphabet, order, line } = counted;
    const marks = [
      { label: "blind guessing", loss: Math.log(alphabet.length) },
      { label: `counting: ${order}-grams`, loss: line },
    ];
    const { picture, drawCurve: drawn } = chart(marks, steps);
    drawCurve = drawn;
    drawing.replaceChildren(picture);
    drawCurve(moments, "now");
    going.hidden = false;
  }

  /**
   * Show a report of the training: the curve, the loss, the time, and what the model writes; say
   * so when it is first better than the n-grams.
   *
   * @param {Run} run the report is added to its moments
   * @param {Report} report
   */
  function tell(run, { step, seconds, loss, sample: written }) {
    run.moments.push({ step, loss, sample: written });
    drawCurve(run.moments, "now");
    const reached = `${fixed(loss)} nats a character after ${plural(step, "step")}`;
    const left = step && step < run.steps ? (seconds / step) * (run.steps - step) : 0;
    const toGo = left ? `; ${duration(left)} to go` : "";
    now.textContent = `Loss ${reached}, ${duration(seconds)}${toGo}.`;
    drawing.firstElementChild?.setAttribute("aria-label", `Loss while it learns: ${reached}.`);
    sample.textContent = written;
    const line = run.counted?.line ?? 0;
    if (run.ahead || loss >= line) return;
    run.ahead = true;
    status.textContent = `After ${duration(seconds)} it is better than counting.`;
  }

  /**
   * Show the result of a training that ended, or was stopped.
   *
   * @param {Run} run keeps the state
   * @param {Result} result
   * @param {State} state from which it can go on
   */
  function finish(run, result, state) {
    run.state = state;
    end();
    const done = state.step >= run.steps;
    more.textContent = done ? "Go on: as many steps again" : "Go on";
    more.hidden = false;
    status.textContent = done ? "It has done its steps." : "It stopped; nothing is lost.";
    const { config } = run.size;
    const counted = /** @type {Counted} */ (run.counted);
    results.replaceChildren(...resultOf({ result, counted, state, config }, context));
  }

  /* Let the worker stop after this step; it sends its result then. */
  function halt() {
    stop.disabled = true;
    status.textContent = "It finishes this step …";
    worker?.postMessage({ stop: true });
  }

  /* End the worker, and show what may be done next. */
  function end() {
    worker?.terminate();
    worker = null;
    const hadFocus = document.activeElement === stop;
    stop.hidden = true;
    learn.hidden = false;
    learn.textContent = "Learn anew";
    checkText();
    if (hadFocus) learn.focus();
  }

  /**
   * Say that the training failed; it can go on from where it stopped last.
   *
   * @param {string} message why
   */
  function fail(message) {
    end();
    more.hidden = !run?.state;
    status.textContent = `The training stopped: ${message}.`;
  }

  element.append(box.element, sizes, controls(learn, stop, more), status, going, results);
}
