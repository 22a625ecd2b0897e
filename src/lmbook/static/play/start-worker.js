/* Workers that start from a text. */

/**
 * Start a worker from the text of its script, because a page that was opened as a file can
 * start none from another file.
 *
 * @param {string} source what `import source from "worker:./NAME.js"` gives
 * @returns {Worker}
 */
export function startWorker(source) {
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(address);
  URL.revokeObjectURL(address); // the worker has taken the text already
  return worker;
}
