/* Workers that start from a text. */

/**
 * Start a worker: `import source from "worker:./NAME.js"` is a script's text.
 *
 * @param {string} source
 * @returns {Worker}
 */
export function startWorker(source) {
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(address);
  URL.revokeObjectURL(address);
  return worker;
}
