/* What scripts find in a page beside what they import. */

/** The text of a script that runs a module's `serve` in a worker: see bundle.mjs. */
declare module "worker:*" {
  const source: string;
  export default source;
}

/** The instructions that a text of WebAssembly stands for: see bundle.mjs. */
declare module "wasm:*" {
  const instructions: Uint8Array<ArrayBuffer>;
  export default instructions;
}

/** What a page is to know of a store (`lmbook.play.stores`): weights or a vocabulary. */
interface Store {
  /** How many scripts or files carry it. */
  parts: number;
  /** How long it is, whole. */
  bytes: number;
  /** Its CRC-32. */
  checksum: number;
  /** Of one that plain files carry: how long each is, and its CRC-32. */
  files?: { bytes: number; checksum: number }[];
  /** Changes with what it is made of. */
  key: string;
}

/** What views.js hands to a view beside its data. */
interface ViewContext {
  /** The whole view: the place that it draws in, its stored state, its caption. */
  root: HTMLElement;
  /** The address of the site's scripts. */
  folder: string;
  stores: Record<string, Store>;
  /** What scripts of stores bring, in base64, by address. */
  carried: Record<string, string>;
  /** Run a script of the site once more. */
  run(address: string): Promise<void>;
}

/** What a view may return: what is to be done when the theme changes, and its state. */
interface View {
  theme?(): unknown;
  /** What a link carries: names and values, said and taken (`stateOf` in dom.js). */
  state?: {
    say(): Record<string, string | number | boolean>;
    take(state: Record<string, string | number | boolean>): void;
    /** A sentence on what stands there and is in no link, or "". */
    lacks?(): string;
    /** Go back to what a link can open; called before a link is taken. */
    leave?(): void;
  };
}

/** Draws a view; a module's data are those of its own kind. */
type Mount = (canvas: HTMLElement, data: any, context: ViewContext) => View | void | Promise<View | void>;

/** What is `self` in a worker, of what the site's workers need. */
interface WorkerScope {
  onmessage: ((event: MessageEvent) => void) | null;
  postMessage(message: object): void;
}

/** A script of bertviz: it is given what require.js and the browser give it elsewhere. */
type Bertviz = (
  params: object,
  require: { config(): void },
  requirejs: (names: string[], body: (jquery: any, d3: any) => void) => void,
  console: { log(): void },
) => void;

/** What the parts of a page share. A part that comes first finds it empty. */
interface Shared extends Omit<ViewContext, "root"> {
  /** bertviz's scripts, as functions (`lmcourse.views.notebook.bertviz_script`). */
  head_view: Bertviz;
  model_view: Bertviz;
  /** Show a place that a link leads to; say whether it was hidden (ways.js). */
  reveal(place: Element): boolean;
  /** The book's title, and the labels of each page's tasks (tasks-table.js). */
  tasks: { book: string; pages: Record<string, string[]> };
  /** The modules of views (play/index.js): functions that draw them. */
  play: Record<string, Record<string, Mount>> & {
    link: { attach(root: HTMLElement, name: string, state?: View["state"]): void };
  };
}

declare var lmcourse: Shared;

interface Window {
  lmcourse: Shared;
  /** For each section of the book: page, title, anchor, heading, text, work, code. */
  lmbookSections: string[][];
  MathJax?: { startup?: { promise?: Promise<void> } };
}

/* Libraries that other scripts of a page bring. They are used in a few places each; what
   types there are for them is not in the packages that the site serves. */
declare var CircuitsVis: any;
declare var d3: any;
declare var jQuery: any;
declare var MiniSearch: any;
declare var Plotly: any;
