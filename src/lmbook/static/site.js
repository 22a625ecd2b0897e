/* On every page. The theme gives a tab stop to what scrolls sideways, as wide as it is when
   the page is loaded or resized; what is folded then has no width. Look again when it is
   unfolded. A notebook is kept, not opened: some servers call it text. A fold opens for a
   link to something in it, and what *Read* leaves out is shown (`ways.js`). */

/* Let all that listens to a change of the window's size look again. */
const again = () => window.dispatchEvent(new Event("resize"));

/* The element that the address leads to, or null. Readers write addresses, too: one that
     ends in "#100%" is no valid code of a name, and leads nowhere. Behind a view's name the
     address may have the state that it is to be in (play/link.js). */
function findTarget() {
  try {
    const [name] = location.hash.slice(1).split("&");
    return document.getElementById(decodeURIComponent(name));
  } catch {
    return null;
  }
}

/* Show what the address leads to: choose the way of reading that has it (`reveal` in ways.js
   returns whether it was left out), open all folds around it, and scroll there. The browser has
   scrolled by itself to what was neither left out nor folded. */
function openTarget() {
  const target = findTarget();
  if (!target) return;
  const folded = target.closest("details");
  const wasHidden = window.lmcourse.reveal(target);
  if (!wasHidden && !folded) return;
  for (let fold = folded; fold; fold = fold.parentElement?.closest("details") ?? null)
    fold.open = true;
  target.scrollIntoView();
}

window.addEventListener("resize", () => {
  /** @type {NodeListOf<HTMLElement>} */
  const outputs = document.querySelectorAll("figure > .output"); // the theme passes over them
  for (const e of outputs) e.tabIndex = e.scrollWidth > e.clientWidth ? 0 : -1;
});
document.addEventListener("toggle", again, true);
document.addEventListener("click", (event) => {
  const target = /** @type {Element} */ (event.target);
  if (target.closest(".admonition-title, .toggle-button")) again();
  /** @type {HTMLAnchorElement | null} */
  const link = target.closest('a[href^="#"]');
  if (link && link.hash === location.hash) openTarget(); // a second click changes no hash
});
window.addEventListener("hashchange", openTarget);
document.addEventListener("DOMContentLoaded", () => {
  again();
  openTarget();
  /** @type {NodeListOf<HTMLAnchorElement>} */
  const notebooks = document.querySelectorAll('a[href^="notebooks/"]');
  for (const link of notebooks) {
    link.download = "";
    link.removeAttribute("target");
  }
});
