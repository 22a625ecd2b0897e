/* Folds open for whoever looks for something in them: a link, or paper. */
(function () {
  "use strict";
  const folds = "details.lm-proof, details.lm-deeper";

  function openTarget() {
    const name = decodeURIComponent(location.hash.slice(1));
    const target = name && document.getElementById(name);
    if (!target || !target.closest("details")) return;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details"))
      fold.open = true;
    target.scrollIntoView();
  }
  window.addEventListener("hashchange", openTarget);
  document.addEventListener("DOMContentLoaded", openTarget);
  document.addEventListener("click", function (event) {
    // A second click on the same link changes no hash.
    const link = event.target.closest('a[href^="#"]');
    if (link && link.hash === location.hash) openTarget();
  });

  let closed = [];
  window.addEventListener("beforeprint", function () {
    closed = [...document.querySelectorAll(folds)].filter((fold) => !fold.open);
    for (const fold of closed) fold.open = true;
  });
  window.addEventListener("afterprint", function () {
    for (const fold of closed) fold.open = false;
  });
})();
