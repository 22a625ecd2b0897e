/* Two lines of the reader's, read by BERT once its weights are loaded, after a click. */
import { openModel } from "./client.js";
import { button, make, ownLine } from "./dom.js";
import { readText } from "./store.js";
import { WordPiece } from "./tokenizers.js";

const LINES = 2;
const LONGEST = 300;
const ROOM = 46; // characters and tokens of a line

/* Returns elements. They open with `text`; `name` is what the area is called. The site may
   carry another model: `fits` is asked about its config. `around` are the ids before and
   after a line. `take` is handed the lines: their pieces, and the values of all of `keep`. */
export function ownLines({ text, name, around, fits, keep, take }, context) {
  const bert = openModel("bert", context);
  const { area, note, label } = ownLine(text, read, { maxlength: LINES * LONGEST });
  area.parentNode.firstChild.textContent = name;
  const loader = button(`Load the model (${bert.size}) and read`, load);
  let tokenizer;

  async function load() {
    loader.disabled = true;
    try {
      const { config } = await bert.load(
        (share) => (note.textContent = `Loading … ${Math.round(100 * share)} %`),
      );
      if (!fits(config)) throw new Error("the site carries another one");
      tokenizer = new WordPiece(JSON.parse(await readText("bert-pieces", context)));
      loader.hidden = true;
      await read();
    } catch (error) {
      note.textContent = `The model does not load: ${error.message}`;
      loader.disabled = false;
    }
  }

  async function read() {
    if (!tokenizer) return;
    const lines = area.value.split("\n").filter((line) => line.trim());
    const found = [];
    note.textContent = lines.length > LINES ? "The first two lines are read." : "";
    const [first, last] = around.map((id) => ({ id, piece: tokenizer.pieces[id] }));
    try {
      for (const line of lines.slice(0, LINES)) {
        const tokens = [first, ...tokenizer.encode(line.slice(0, LONGEST)).slice(0, ROOM), last];
        const answer = await bert.forward(
          tokens.map(({ id }) => id),
          { keep, logits_of: [] },
          "own lines",
        );
        if (!answer) return; // something else was typed
        found.push({
          pieces: tokens.map(({ piece }) => piece),
          values: keep.map((each) => answer.kept[each].values),
        });
      }
    } catch (error) {
      note.textContent = `The model does not answer: ${error.message}`;
      return;
    }
    take(found);
  }

  return [label, note, make("p", {}, loader)];
}
