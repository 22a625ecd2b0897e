/* Make of the site's modules and style sheets what browsers load; `lmbook.publish.bundles`
   runs it:

     node bundle.mjs '{"own": FOLDER, "shared": FOLDER, "out": FOLDER}'

   own      the site's modules, those of its views in `play`.
   shared   modules that notebooks have as well; others import them as if they lay in `play`.
   out      gets a script for each module in `own` (what these import lies in folders),
            `play.js` with all views, which is `lmcourse.play` in a page, and the style
            sheets.

   Scripts are classic ones: browsers load no module on a page that was opened as a file.
   esbuild and wabt lie in the working folder's `node_modules`. */

import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";

const requireHere = createRequire(join(process.cwd(), "package.json"));
const { build } = requireHere("esbuild");
const wabt = requireHere("wabt");
const { own, shared, out } = JSON.parse(process.argv[2]);
const play = join(own, "play");
const isShared = /^\.\/(dom|poems)\.js$/;

/* import code from "wasm:./NAME.wat": the instructions that a text of WebAssembly stands
   for, as a Uint8Array. */
const assembled = {
  name: "assembled",
  /**
   * Tell esbuild how such an import is found, and what it holds.
   *
   * @param {PluginBuild} build
   */
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^wasm:/ }, ({ path }) => ({
      path: join(play, path.slice("wasm:".length)),
      namespace: "wasm",
    }));
    onLoad({ filter: /.*/, namespace: "wasm" }, async ({ path }) => {
      const module = (await wabt()).parseWat(path, readFileSync(path, "utf8"));
      module.validate();
      return { contents: module.toBinary({}).buffer, loader: "binary" };
    });
  },
};

const settings = {
  bundle: true,
  format: "iife",
  minify: true,
  charset: "utf8",
  logLevel: "silent", // errors are thrown, with all that is said of them
  // What came later is written in older words, where there are any.
  target: ["chrome103", "firefox115", "safari16"],
};

/* Shared modules are imported as if they lay in `play`. */
const sharedModules = {
  name: "shared modules",
  /**
   * Tell esbuild where they lie.
   *
   * @param {PluginBuild} build
   */
  setup({ onResolve }) {
    onResolve({ filter: isShared }, ({ path }) => ({ path: join(shared, path) }));
  },
};

/* import source from "worker:./NAME.js": the text of a script that runs what this module
   exports as `serve`. A worker starts from a text, since a page that was opened as a file
   may load none from its folder. */
const workers = {
  name: "workers",
  /**
   * Tell esbuild how such an import is found, and what it holds: the worker's script, bundled.
   *
   * @param {PluginBuild} build
   */
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^worker:/ }, ({ path }) => ({
      path: path.slice("worker:".length),
      namespace: "worker",
    }));
    onLoad({ filter: /.*/, namespace: "worker" }, async ({ path }) => {
      const contents = `import { serve } from "${path}"; serve(self);`;
      const result = await build({
        ...settings,
        stdin: { contents, resolveDir: play },
        plugins: [sharedModules, assembled],
        write: false,
      });
      return { contents: result.outputFiles[0].text, loader: "text" };
    });
  },
};

/**
 * The paths of the files in a folder whose names have a suffix.
 *
 * @param {string} folder
 * @param {string} suffix such as ".js"
 */
const named = (folder, suffix) =>
  readdirSync(folder)
    .filter((name) => name.endsWith(suffix))
    .map((name) => join(folder, name));

const plugins = [sharedModules, workers];
const builds = await Promise.allSettled([
  build({ ...settings, plugins, entryPoints: named(own, ".js"), outdir: out }),
  build({
    ...settings,
    plugins,
    entryPoints: [join(play, "index.js")],
    globalName: "lmcourse.play",
    outfile: join(out, "play.js"),
  }),
  build({ ...settings, entryPoints: named(own, ".css"), outdir: out }),
  build({
    ...settings,
    entryPoints: [...named(play, ".css"), ...named(shared, "poems.css")],
    outdir: join(out, "play"),
    outbase: undefined,
    entryNames: "[name]",
  }),
]);

// Not before all have ended: if Node ends within a build, esbuild's service crashes, and
// what it prints then hides the error.
for (const each of builds) {
  if (each.status === "rejected") {
    throw each.reason;
  }
}
