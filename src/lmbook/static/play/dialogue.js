/* The tokenizer of a GGUF file, and the form of a dialogue: equal to what `lmcourse.llama`
   makes of the same file. */

import { wellFormed } from "./text.js";
import { BYTE_CHARACTERS, ByteBPE } from "./tokenizers.js";
import { demand } from "./weights.js";

const UNMERGED = [3, 4]; // the types of tokens that no merge makes

const SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
/* The template that the page knows: it is compared with the file's. */
const TEMPLATE =
  "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}" +
  `{{ '<|im_start|>system\n${SYSTEM}<|im_end|>\n' }}{% endif %}` +
  "{{'<|im_start|>' + message['role'] + '\n' + " +
  "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}" +
  "{{ '<|im_start|>assistant\n' }}{% endif %}";

/** @typedef {{ role: string, content: string }} Turn "system", "user" or "assistant" says it */

/**
 * A dialogue as the model reads it, up to where it is to answer. If the system says nothing first,
 * it says SYSTEM.
 *
 * @param {Turn[]} turns one or more
 * @returns {string}
 */
export function dialogueText(turns) {
  const all = turns[0].role === "system" ? turns : [{ role: "system", content: SYSTEM }, ...turns];
  const texts = all.map(({ role, content }) => `<|im_start|>${role}\n${content}<|im_end|>\n`);
  return `${texts.join("")}<|im_start|>assistant\n`;
}

/* The tokenizer of a GGUF file. */
export class GgufTokenizer {
  /**
   * Read the tokenizer. An Error if it is of another kind than the page knows.
   *
   * @param {Record<string, any>} fields of a GGUF file
   */
  constructor(fields) {
    /**
     * A field of the tokenizer.
     *
     * @param {string} name
     */
    const of = (name) => fields[`tokenizer.${name}`];
    const isKnown = of("ggml.model") === "gpt2" && of("ggml.pre") === "smollm";
    demand(isKnown, `the page has no tokenizer ${of("ggml.model")} ${of("ggml.pre")}`);
    /** @type {string[]} in the order of their IDs */
    this.vocabulary = of("ggml.tokens");
    this.ids = new Map(this.vocabulary.map((piece, id) => [piece, id]));
    this.bpe = new ByteBPE(pairs(of("ggml.merges")), (symbol) => this.ids.has(symbol));
    const whole = this.vocabulary.filter((_, id) => UNMERGED.includes(of("ggml.token_type")[id]));
    this.whole = new Set(whole.map((piece) => this.id(piece))); // of tokens that no merge makes
    const marks = whole.map((piece) => piece.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
    this.marks = new RegExp(marks.sort((a, b) => b.length - a.length).join("|"), "gu");
    /** @type {number} the token that ends an answer */
    this.end = of("ggml.eos_token_id");
    /** Whether its dialogues are those of `dialogueText`. */
    this.talks = of("chat_template") === TEMPLATE;
  }

  /**
   * Cut a text: first at the tokens that stand for no text, then digits apart.
   *
   * @param {string} text
   * @returns {number[]} the IDs of its tokens
   */
  encode(text) {
    /** @type {number[]} */
    const ids = [];
    let start = 0;
    text = wellFormed(text);
    for (const { 0: mark, index } of text.matchAll(this.marks)) {
      ids.push(...this.part(text.slice(start, index)), this.id(mark));
      start = index + mark.length;
    }
    return ids.concat(this.part(text.slice(start)));
  }

  /**
   * The IDs of a part of a text; each digit is cut by itself.
   *
   * @param {string} text without tokens that stand for no text
   */
  part(text) {
    const apart = text.match(/\p{N}|\P{N}+/gu) ?? [];
    return apart.flatMap((each) => this.bpe.encode(each).map(({ piece }) => this.id(piece)));
  }

  /**
   * The ID of a piece.
   *
   * @param {string} piece of the vocabulary
   */
  id(piece) {
    return /** @type {number} */ (this.ids.get(piece));
  }

  /**
   * The text that tokens stand for; those that stand for none are left out.
   *
   * @param {number[]} ids
   * @returns {string}
   */
  decode(ids) {
    const symbols = ids.filter((id) => !this.whole.has(id)).map((id) => this.vocabulary[id]);
    const bytes = Array.from(symbols.join(""), (symbol) => BYTE_CHARACTERS.indexOf(symbol));
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
  }
}

/**
 * The IDs that ByteBPE gives the symbols of merges, left and right in turn.
 *
 * @param {string[]} merges each two symbols with a space between
 */
function pairs(merges) {
  const ids = new Map([...BYTE_CHARACTERS].sort().map((symbol, id) => [symbol, id]));
  const out = new Uint16Array(2 * merges.length);
  merges.forEach((merge, rank) => {
    const both = merge.split(" ");
    out.set(
      both.map((symbol) => /** @type {number} */ (ids.get(symbol))),
      2 * rank,
    );
    if (!ids.has(both.join(""))) ids.set(both.join(""), ids.size);
  });
  return out;
}
