/* What bundle.mjs uses of Node.js and of esbuild, whose own types may lie anywhere. */

declare module "node:fs" {
  export function readdirSync(folder: string): string[];
  export function readFileSync(path: string, encoding: "utf8"): string;
}

declare module "node:module" {
  /** A function that loads packages as a script at a path would. */
  export function createRequire(path: string): (name: string) => any;
}

declare module "node:path" {
  export function join(...parts: string[]): string;
}

declare module "node:process" {
  const process: { argv: string[]; cwd(): string };
  export default process;
}

/** Which imports a plugin of esbuild answers for. */
interface ImportFilter {
  filter: RegExp;
  namespace?: string;
}

/** What a plugin of esbuild may ask for, and how it answers. */
interface PluginBuild {
  /** Say which file an import means, or what it is called in a namespace of the plugin's. */
  onResolve(
    which: ImportFilter,
    answer: (asked: { path: string }) => { path: string; namespace?: string },
  ): void;
  /** Bring what a file or a name in the namespace stands for. */
  onLoad(
    which: ImportFilter,
    answer: (
      asked: { path: string },
    ) => Promise<{ contents: string | Uint8Array; loader: "binary" | "text" }>,
  ): void;
}
