/* The controls with which a reader loads the model that talks, in each view that asks it. */

import { button, make, percent } from "./dom.js";

/** @import { Listener } from "./dom.js" */
/** @import { Arrived, TalkerClient } from "./talker-client.js" */

/**
 * Make a button that loads the model that talks, one that stops that, a bar of how much has come,
 * and room for a sentence on it.
 *
 * @param {() => TalkerClient} talker the model
 * @param {Listener} onload called when the first button is pressed; it calls `bring`
 * @param {Listener} onstop called when the second one is pressed
 */
export function talkerLoader(talker, onload, onstop) {
  const loader = button("", onload);
  const halt = button("Stop loading", onstop, { hidden: "" });
  const progress = make("progress", { max: 1, value: 0, hidden: "", "aria-label": "Loading" });
  const status = make("span", { class: "play-muted" });

  /**
   * Load the model, and show how much of it has come; an error is told beside the button.
   *
   * @returns {Promise<Arrived | null | undefined>} null if it was stopped, undefined after an error
   */
  async function bring() {
    loader.disabled = true;
    progress.hidden = false;
    halt.hidden = false;
    status.textContent = "";
    try {
      return /** @type {any} */ (await talker().load(showShare));
    } catch (error) {
      status.textContent = `The model does not load: ${error.message}`;
      return undefined;
    } finally {
      progress.hidden = true;
      halt.hidden = true;
      loader.disabled = false;
    }
  }

  /**
   * Show how much has come.
   *
   * @param {number} share from 0 to 1
   */
  function showShare(share) {
    progress.value = share;
    status.textContent = percent(share);
  }

  return { loader, status, parts: [loader, halt, progress, status], bring };
}
