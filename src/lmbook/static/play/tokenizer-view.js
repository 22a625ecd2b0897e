/* The view *tokenizer*: a line in characters, our BPE, GPT-2's BPE and BERT's WordPiece.
   `lmcourse.views.tokenizer` gives what it begins with. The vocabularies of GPT-2 and BERT
   are loaded when the line is first changed. */
import { make } from "./dom.js";
import { decode, readStore } from "./store.js";
import { ByteBPE, Characters, WordPiece, shown } from "./tokenizers.js";

const NAMES = {
  characters: "characters",
  ours: "our BPE",
  gpt2: "GPT-2's BPE",
  bert: "BERT's WordPiece",
};
const COLOURS = 5;
const LONGEST = 500; // characters; of a longer text the beginning is cut
const RIGHT_TO_LEFT = /^\P{L}*[\p{Script=Hebrew}\p{Script=Arabic}]/u;

const whole = (number) => number.toLocaleString("en");
const plural = (count, noun) => whole(count) + " " + noun + (count === 1 ? "" : "s");
const size = (text) => Array.from(text).length;

export function mount(element, data, context) {
  const ours = new ByteBPE(new Uint16Array(decode(data.merges).buffer));
  const tokenizers = { characters: new Characters(data.alphabet), ours };
  let text = data.text;
  let missing = "";
  let waiting = 0;
  /* The merges that join something in this line, in the order of their learning. After the
     first n of them the line stands as it did when the next one was learned. */
  let used = [];

  /* --- what stands there ----------------------------------------------------------- */

  const area = make("textarea", { rows: 2, spellcheck: "false", dir: "auto", oninput: typed });
  area.value = text;
  const language = make("select", { onchange: chosen }, make("option", { value: "" }, "…"));
  for (const name of Object.keys(data.others)) language.append(make("option", {}, name));
  const ids = make("input", {
    type: "checkbox",
    onchange: () => list.classList.toggle("lmc-ids", ids.checked),
  });
  const slider = make("input", { type: "range", min: 0, step: 1, oninput: replay });
  const merge = make("output", { class: "lmc-merge" });
  const note = make("p", { class: "play-note", role: "status" });
  const detail = make("p", { class: "lmc-detail" }, "Point at a piece, or go there by keyboard.");
  const live = make("p", { class: "play-live", "aria-live": "polite" });
  const list = make("div", { onfocusin: tell, onmouseover: tell, onclick: tell, onkeydown: move });
  const rows = {};
  for (const [key, name] of Object.entries(NAMES)) {
    const count = make("span");
    const pieces = make("div", { class: "lmc-pieces", role: "group", "aria-label": name });
    const title = make("p", { class: "lmc-name" }, make("b", {}, name), ": ", count);
    rows[key] = { count, pieces };
    list.append(make("div", { class: "lmc-row" }, title, pieces));
  }
  const replayed = make("label", { class: "lmc-slider" }, "Replay its merges ", slider, merge);
  rows.ours.pieces.after(replayed);
  const controls = make("p", { class: "lmc-controls" }, make("label", {}, ids, " show IDs"));
  if (language.length > 1)
    controls.prepend(make("label", {}, "The same sentence in ", language));
  const line = make("label", { class: "play-line" }, "Your line", area);
  element.append(line, note, controls, list, detail, live);

  /* --- what it answers to ---------------------------------------------------------- */

  async function typed() {
    if (area.value !== data.others[language.value]) language.value = "";
    text = Array.from(area.value).slice(0, LONGEST).join("").toWellFormed();
    const cut = text.length < area.value.length;
    note.textContent = cut ? `Only the first ${plural(LONGEST, "character")} are cut.` : "";
    missing = "loading its vocabulary …";
    draw();
    if (tokenizers.bert) return;
    try {
      const merges = await readStore("gpt2-merges", context);
      tokenizers.gpt2 ??= new ByteBPE(new Uint16Array(merges.buffer));
      const pieces = await readStore("bert-pieces", context);
      tokenizers.bert ??= new WordPiece(JSON.parse(new TextDecoder().decode(pieces)));
    } catch (error) {
      missing = "its vocabulary is not here: " + error.message;
    }
    draw();
  }

  function chosen() {
    area.value = data.others[language.value] ?? area.value;
    typed();
  }

  function replay() {
    tellMerge();
    fill("ours", ours.encode(text, used[slider.value]));
  }

  function tellMerge() {
    const done = Number(slider.value);
    const name = (id) => shown(ours.symbols[id], true);
    let said = "no merge: each byte by itself";
    if (done) {
      const rank = used[done - 1];
      const joined = ours.pair(rank).map(name).join(" + ") + " → " + name(ours.made[rank]);
      const learned = `number ${whole(rank + 1)} of ${whole(ours.merges)} that were learned`;
      said = `${done} of ${used.length}: ${joined} (${learned})`;
    }
    merge.textContent = said;
    slider.setAttribute("aria-valuetext", said);
  }

  /* --- drawing --------------------------------------------------------------------- */

  function drawOurs() {
    const ranks = new Set();
    const tokens = ours.encode(text, ours.merges, ranks);
    used = Array.from(ranks).sort((a, b) => a - b);
    slider.max = slider.value = used.length;
    tellMerge();
    fill("ours", tokens);
  }

  function draw() {
    drawOurs();
    for (const key of ["characters", "gpt2", "bert"]) {
      if (tokenizers[key]) fill(key, tokenizers[key].encode(text));
      else {
        rows[key].count.textContent = missing;
        rows[key].pieces.replaceChildren();
      }
    }
    clearTimeout(waiting);
    waiting = setTimeout(announce, 800);
  }

  function fill(key, tokens) {
    let unknown = 0;
    const boxes = tokens.map(({ id, piece }, index) => {
      const label = shown(piece, key === "ours" || key === "gpt2");
      const number = id === null ? "not in the alphabet" : "ID " + id;
      const known = id !== null && piece !== "[UNK]";
      unknown += !known;
      const box = make("button", { type: "button", tabindex: index ? -1 : 0 }, label);
      box.className = `lmc-piece lmc-${id % COLOURS}${known ? "" : " lmc-unknown"}`;
      box.dataset.id = id ?? "–";
      box.ariaLabel = label + ", " + number;
      box.told = `${NAMES[key]}: “${label}”, ${number}`;
      return box;
    });
    const { count, pieces } = rows[key];
    pieces.replaceChildren(...boxes);
    pieces.dir = RIGHT_TO_LEFT.test(text) ? "rtl" : "ltr";
    let said = plural(boxes.length, "token");
    if (boxes.length) said += `, ${(size(text) / boxes.length).toFixed(1)} characters each`;
    if (unknown) said += `, ${whole(unknown)} unknown`;
    if (language.value) {
      const english = tokenizers[key].encode(data.others.English).length;
      said += `; ${(boxes.length / english).toFixed(1)} times the English sentence`;
    }
    count.textContent = said;
  }

  function announce() {
    const said = Object.keys(NAMES).map((key) => NAMES[key] + ": " + rows[key].count.textContent);
    live.textContent = said.join(". ");
  }

  function tell(event) {
    if (event.target.told) detail.textContent = event.target.told;
  }

  /* Arrow keys go from piece to piece. */
  function move({ target, key }) {
    const turned = target.parentNode.dir === "rtl";
    const ahead = key === (turned ? "ArrowLeft" : "ArrowRight");
    const back = key === (turned ? "ArrowRight" : "ArrowLeft");
    const next = ahead ? target.nextSibling : back ? target.previousSibling : null;
    if (!target.told || !next) return;
    target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  for (const [key, tokens] of Object.entries(data.rows))
    fill(key, tokens.map(([id, piece]) => ({ id, piece })));
  drawOurs();
}
